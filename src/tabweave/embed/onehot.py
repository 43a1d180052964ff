"""OneHot: every value its own dimension. The baseline that everything is compared with.

OneHotAutoencoder is the deep baseline, "AE" in the thesis: three fully connected layers of 10 nodes
learn to give back the one-hot row they are given, and the middle layer is the representation
[Zhu 2019, 5.4.1]. It learns from rows, again and again, and has no value tables.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from itertools import chain, count
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import expit
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from tabweave._compat import Interval, Options, StrOptions
from tabweave.base import Estimator, TabularInput
from tabweave.columns.table import Table, remember_names
from tabweave.columns.vocabulary import Label
from tabweave.counts.counts import Counts
from tabweave.counts.couplings import check_table_size, check_values
from tabweave.embed.base import ValueEmbedder
from tabweave.embed.register import embedder
from tabweave.engines import vector_types
from tabweave.engines.reading import by_parts
from tabweave.space.value_tables import ValueTables

TOLERANCE = 1e-7  # One-hot rows lose little: at scikit-learn's 1e-4 learning has just begun.
_ACTIVATIONS = {
    "relu": lambda x: np.maximum(x, 0),
    "tanh": np.tanh,
    "logistic": expit,
    "identity": np.asarray,
}


@embedder("onehot", "one dimension per value; the baseline", "one-hot encoding", page="baselines")
class OneHot(ValueEmbedder):
    """Embed rows by one-hot encoding: one indicator per value.

    All values of a column are equally distant. A set-valued cell gets the mean of its elements'
    indicators; an unknown value, or a missing cell, the column's value frequencies.

    Parameters
    ----------
    schema : Schema, mapping of column to kind, or kind, optional
        The kinds of the columns that it names; the others are inferred, as :meth:`kinds` says.
        ``"nominal"`` takes all columns as categories.
    unknown : {"centroid", "error"}, default="centroid"
        What to do with values not seen in fit: use the column's centroid, or raise an error.
    dtype : {"float64", "float32"}, default="float64"
        Type of the vectors.

    Attributes
    ----------
    counts_ : Counts
        What was seen.
    tables_ : ValueTables
        The representation.
    numbers_ : Curves or None
        The coordinates of numbers, grades and dates; None without any.
    space_ : Space
        What each column contributes to a row: vectors, distances and explanations come from it.
    schema_ : Schema
        How each column was read.

    Examples
    --------
    >>> from tabweave import OneHot
    >>> rows = {"color": ["red", "blue", "red"], "size": ["S", "S", "L"]}
    >>> embedder = OneHot().fit(rows)
    >>> embedder.transform(rows)
    array([[0., 1., 0., 1.],
           [1., 0., 0., 1.],
           [0., 1., 1., 0.]])
    >>> embedder.explain({"color": "red", "size": "S"}, {"color": "blue", "size": "S"})
    {'color': 2.0, 'size': 0.0}
    """

    def _countable(self, table: Table, y: Any, sample_weight: Any = None) -> tuple[Table, Any]:
        check_values(table, "OneHot", 1 << 29)
        return super()._countable(table, y, sample_weight)

    def _learn(self, counts: Counts) -> ValueTables:
        check_table_size(counts, "OneHot", 1 << 29)
        identities = [
            np.eye(len(labels))[:, self._has_axis(name, labels)]
            for name, labels in zip(counts.names, counts.labels, strict=True)
        ]
        return ValueTables.from_features(identities, counts, compact=False)

    def _has_axis(self, name: str, labels: Sequence[Label]) -> list[bool]:
        """Return which values of a column have a dimension: missing, only where it is a value."""
        is_gap = name in self._counted.gaps and len(labels) > 1
        return [label is not None or not is_gap for label in labels]

    def get_feature_names_out(self, input_features: object = None) -> np.ndarray:
        """Return ``column_value`` for each dimension."""
        of_numbers = super().get_feature_names_out(input_features)[sum(self.tables_.widths) :]
        names: dict[str, None] = {}
        for name, labels in zip(self.tables_.names, self.tables_.labels, strict=True):
            has_axis = self._has_axis(name, labels)
            for label in (label for label, is_one in zip(labels, has_axis, strict=True) if is_one):
                # 1 and "1", or columns whose names contain "_", may ask for the same name.
                candidates = (f"{name}_{_shown(label)}", f"{name}_{label!r}")
                numbered = (f"{candidates[1]}_{i}" for i in count(2))
                names[next(n for n in chain(candidates, numbered) if n not in names)] = None
        return np.asarray([*names, *of_numbers], dtype=object)


def _shown(label: Label) -> str:
    return "<missing>" if label is None else str(label)


@embedder(
    "autoencoder",
    "one-hot through a small autoencoder; a baseline",
    "Zhu 2019, section 5.4.1",
    offered="python",
    page="baselines",
)
class OneHotAutoencoder(TabularInput, ClassNamePrefixFeaturesOutMixin, TransformerMixin, Estimator):
    """Embed rows by the middle layer of an autoencoder of their one-hot vectors. A baseline.

    Not a value embedder: there are no counts, no ``partial_fit``, no ``explain``; the one-hot rows
    (n × V numbers of 4 bytes) are held in memory and passed over up to ``max_iter`` times.

    Parameters
    ----------
    width : int, default=10
        Number of nodes in each of the three hidden layers.
    activation : {"relu", "tanh", "logistic", "identity"}, default="tanh"
        The activation function.
    max_iter : int, default=5000
        Largest number of passes over the rows; training stops earlier if ten passes in a row have
        not lowered the loss by 1e-7.
    schema, unknown, dtype
        As in :class:`~tabweave.OneHot`.
    random_state : int, RandomState or None, default=None
        Where the network starts and how rows are shuffled.

    Attributes
    ----------
    network_ : MLPRegressor
        The network.
    onehot_ : OneHot
        The encoder in front of it.
    loss_ : float
        Half the mean squared error of the rows given back.
    n_iter_ : int
        Number of passes over the rows.
    converged_ : bool
        Whether learning came to rest before ``max_iter``.

    Examples
    --------
    >>> from tabweave.embed.onehot import OneHotAutoencoder
    >>> from tabweave.datasets import led24
    >>> digits = led24(200, random_state=0)
    >>> encoder = OneHotAutoencoder(max_iter=20, random_state=0).fit(digits.X)
    >>> encoder.transform(digits.X).shape
    (200, 10)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **ValueEmbedder._parameter_constraints,
        "dtype": [Options(type, {np.float32, np.float64}), StrOptions({"float32", "float64"})],
        "width": [Interval(Integral, 1, None, closed="left")],
        "activation": [StrOptions(set(_ACTIVATIONS))],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        width: int = 10,
        *,
        activation: str = "tanh",
        max_iter: int = 5000,
        schema: Any = None,
        unknown: str = "centroid",
        dtype: str = "float64",
        random_state: Any = None,
    ) -> None:
        self.width = width
        self.activation = activation
        self.max_iter = max_iter
        self.schema = schema
        self.unknown = unknown
        self.dtype = dtype
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Train the autoencoder to reconstruct the one-hot vectors of rows.

        Parameters
        ----------
        X : frame, array, mapping of columns or list of dicts
            The rows.
        y : ignored
            Here for scikit-learn's pipelines.
        """
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.neural_network import MLPRegressor

        self._validate_params()
        encoder = OneHot(schema=self.schema, unknown=self.unknown, dtype="float32").fit(X)
        rows = encoder.transform(X)
        network = MLPRegressor(
            hidden_layer_sizes=(self.width,) * 3,
            activation=self.activation,
            max_iter=self.max_iter,
            tol=TOLERANCE,
            random_state=self.random_state,
        )
        with warnings.catch_warnings():
            # Said in converged_: a baseline cut short is no reason to alarm.
            warnings.simplefilter("ignore", ConvergenceWarning)
            network.fit(rows, rows[:, 0] if rows.shape[1] == 1 else rows)
        self.onehot_, self.network_ = encoder, network
        self.loss_, self.n_iter_ = float(network.loss_), int(network.n_iter_)
        self.converged_ = self.n_iter_ < self.max_iter
        remember_names(self, encoder.schema_)
        return self

    @by_parts(vector_types)
    def transform(self, X: Any) -> np.ndarray:
        """Middle layer's output for each row."""
        check_is_fitted(self, "network_")
        activate = _ACTIVATIONS[self.network_.activation]
        hidden = self.onehot_.transform(X)
        layers = list(zip(self.network_.coefs_, self.network_.intercepts_, strict=True))
        for weights, bias in layers[:2]:
            hidden = activate(hidden @ weights.astype(np.float64) + bias)
        return hidden.astype(self.dtype, copy=False)

    @property
    def _n_features_out(self) -> int:
        return int(self.width)
