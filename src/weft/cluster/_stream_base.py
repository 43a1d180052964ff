"""What the stream clusterers of the literature share: windows, profiles, a first k-modes."""

from __future__ import annotations

from numbers import Integral
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils.validation import _check_feature_names, check_is_fitted

from weft._base import remember_names, require_rows
from weft._memory import refuse_new_columns
from weft._store import Storable
from weft.cluster import _profiles
from weft.cluster._profiles import Vocabulary
from weft.table import Schema, Table


class ProfileClusterer(Storable, ClusterMixin, BaseEstimator):
    """Base of CCDS-DC, CCTED and DCD: clusters are profiles of values, windows come one by one.

    A subclass implements ``_next(places) -> labels`` for the windows after the first and
    ``_scores(places)``, larger for a better cluster; it may set ``drifted_``.
    """

    n_clusters: int
    n_init: int
    random_state: Any
    schema: Any
    _vocabulary: Vocabulary
    _profiles: np.ndarray

    def fit(self, X: Any, y: Any = None) -> Self:
        """Start a stream with its first window."""
        self._check()
        table = self._nominal(Table.of(X, Schema.of(self.schema), numbers="nominal"))
        require_rows(table)
        self._vocabulary = _profiles.empty(table).grown(table)
        self.schema_ = table.schema
        remember_names(self, table.schema)
        places = self._vocabulary.places(table)
        self.n_windows_ = 1
        self.drifted_ = False
        self._take(places, self._cluster(places))
        return self

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Go on with a window; one without rows only moves the position."""
        if "_vocabulary" not in vars(self):
            return self.fit(X, y)
        self._check()
        refuse_new_columns(X, self.schema_)
        table = self._read_known(X)
        self.n_windows_ += 1
        if not table.n_rows:
            self.labels_ = np.zeros(0, np.intp)
            return self
        grown = self._vocabulary.grown(table)
        self._profiles = grown.spread(self._profiles, self._vocabulary)
        self._vocabulary = grown
        places = grown.places(table)
        self._take(places, self._next(places))
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return the cluster of each row under the last model."""
        check_is_fitted(self, "schema_")
        places = self._vocabulary.places(self._read_known(X))
        return self._scores(places).argmax(axis=1)

    def _next(self, places: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def _scores(self, places: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def _take(self, places: np.ndarray, labels: np.ndarray) -> None:
        """Make a window's clusters the model."""
        k, size = self.n_clusters, int(self._vocabulary.starts[-1])
        self.labels_ = labels
        self._sizes = np.bincount(labels, minlength=k).astype(np.float64)
        self._profiles = _profiles.profiles_of(places, labels, k, size)

    def _cluster(self, places: np.ndarray) -> np.ndarray:
        """Cluster a window on its own, by k-modes as the papers do."""
        from weft.cluster.kmodes import KModes

        k = min(self.n_clusters, len(np.unique(places, axis=0)))
        model = KModes(k, n_init=self.n_init, random_state=self.random_state)
        return model.fit(places).labels_.astype(np.intp)

    def _read_known(self, X: Any) -> Table:
        table = self._nominal(Table.of(X, self.schema_, numbers="nominal"))
        if not isinstance(X, dict | list | tuple | Table):
            _check_feature_names(self, X, reset=False)
        return table

    def _nominal(self, table: Table) -> Table:
        for column in table.schema.numeric:
            raise ValueError(
                f"column {column.name!r} is numeric; {type(self).__name__} reads categories: "
                "declare it nominal, or leave it out"
            )
        return table

    def _check(self) -> None:
        for name in ("n_clusters", "n_init"):
            value = getattr(self, name)
            if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
                raise ValueError(f"{name}={value!r}: use a whole number >= 1")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.input_tags.allow_nan = True
        return tags
