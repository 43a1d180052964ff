"""DistanceHierarchy: mixed rows by the trees of their values [Huang and Hsu, 004].

Every categorical column gets a tree, given by hand or grown from the classes (or, without labels,
from the other columns); numbers and grades lie on a line. Rows become vectors whose Manhattan
distance is the sum of the tree distances, exactly. Only the rows given to ``fit`` are looked at.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import _check_feature_names, check_is_fitted

from weft._base import _one_row
from weft._input import TabularInput, check_input_features, remember_names, require_rows
from weft._optional import require
from weft._store import Storable
from weft.counts import Counts
from weft.hierarchy import _blocks, _grow
from weft.hierarchy.nodes import Tree
from weft.table import Numbers, Schema, Table


class DistanceHierarchy(Storable, TabularInput, TransformerMixin, BaseEstimator):
    """Embed rows so that Manhattan distance is the sum of their columns' tree distances.

    Parameters
    ----------
    trees : mapping of column to tree, optional
        Trees made by hand, as :meth:`Tree.of` reads them; the other categorical columns get
        theirs from the data.
    linkage : {"average", "single", "complete"}, default="average"
        How trees are grown from the dissimilarities of values.
    schema : Schema or mapping of column to kind, optional
        What the columns are; numbers are numeric unless declared otherwise.
    unknown : {"centroid", "error"}, default="centroid"
        What becomes of a value that no tree has. A path ("A/B/new") goes to its nearest known
        ancestor in any case.
    dtype : {"float64", "float32"}, default="float64"
        Type of the vectors.

    Attributes
    ----------
    trees_ : dict of str to Tree
        The tree of every categorical column.
    counts_ : Counts
        What was seen; with classes if ``y`` was given.
    ranges_ : dict of str to (float, float)
        Lowest and highest number of every numeric column.
    schema_, n_features_in_, feature_names_in_
        The columns.

    Notes
    -----
    With classes P the dissimilarity of two values is Eq. (11), ``Σ_D |p(D|A) - p(D|B)|``. Without,
    the other categorical columns take the place of P, averaged. A node lies as high above its
    leaves as the linkage says, so two leaves are twice the height apart at which they join.
    Numbers span 0 to 1 over the rows of fit; so do an ordinal column's levels, evenly. A missing
    number lies at the mean, a missing value at its own leaf, or at the root of a tree made by hand.
    As in the paper, values that go with the classes in equal shares fall together.

    Examples
    --------
    >>> from weft.hierarchy import DistanceHierarchy
    >>> rows = {"drink": ["latte", "mocha", "oolong", "latte"], "price": [3.0, 3.5, 2.0, 4.0]}
    >>> trees = {"drink": {"coffee": ["latte", "mocha"], "tea": ["oolong"]}}
    >>> model = DistanceHierarchy(trees).fit(rows)
    >>> model.explain({"drink": "latte", "price": 3.0}, {"drink": "oolong", "price": 2.0})
    {'drink': 4.0, 'price': 0.5}
    >>> grown = DistanceHierarchy().fit(rows, ["warm", "warm", "cold", "warm"])
    >>> grown.trees_["drink"].distance("latte", "mocha")
    0.0
    """

    def __init__(
        self,
        trees: Any = None,
        *,
        linkage: str = "average",
        schema: Any = None,
        unknown: str = "centroid",
        dtype: str = "float64",
    ) -> None:
        self.trees = trees
        self.linkage = linkage
        self.schema = schema
        self.unknown = unknown
        self.dtype = dtype

    # -- learning --------------------------------------------------------------------------

    counts_: Counts
    ranges_: dict[str, tuple[float, float]]

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn from rows, and from their classes if they are given.

        Parameters
        ----------
        X : frame, array, mapping of columns or list of dicts
            The rows.
        y : array-like, optional
            A class for each row.
        """
        self.__dict__.pop("counts_", None)
        return self.partial_fit(X, y)

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Add rows to what was seen so far; same result as one ``fit`` on all of them."""
        self._check_parameters()
        first = "counts_" not in vars(self)
        table = _read(X, Schema.of(self.schema)) if first else self._known(X)
        require_rows(table)
        y = y if y is None or hasattr(y, "__len__") else np.asarray(y)
        counts, ranges = Counts.of(table, y), _ranges(table)
        if not first:
            if (y is None) != (self.counts_.classes is None):
                raise ValueError("y was given for some batches only; give it for all or for none")
            counts = self.counts_ + counts
            for name, (low, high) in self.ranges_.items():
                ranges[name] = min(low, ranges[name][0]), max(high, ranges[name][1])
        trees = self._grown(counts)
        if first:
            remember_names(self, table.schema)
        self.counts_, self.ranges_, self.trees_ = counts, ranges, trees
        self.schema_ = table.schema
        self._blocks = _blocks.learn(counts, ranges, trees)
        return self

    def _grown(self, counts: Counts) -> dict[str, Tree]:
        """Algorithm 1: a tree for each categorical column, from a hand or from the data."""
        given = {} if self.trees is None else dict(self.trees)
        schema: Any = counts.schema
        nominal = [c.name for c in schema.categorical if c.kind != "ordinal"]
        for name in given:
            if name not in nominal:
                raise ValueError(
                    f"trees names column {name!r}, which is no nominal or set column; "
                    f"there are {', '.join(map(repr, nominal))}"
                )
        out = {}
        for name in nominal:
            labels = counts.labels[counts.names.index(name)]
            if name in given:
                out[name] = Tree.of(given[name])
                _refuse_leaves(name, out[name], labels)
            else:
                apart = _blocks.dissimilarity(counts, name)
                out[name] = _grow.from_linkage(apart, labels, self.linkage)
        return out

    def _check_parameters(self) -> None:
        if self.linkage not in _grow.LINKAGES:
            raise ValueError(f"linkage={self.linkage!r}: use one of {', '.join(_grow.LINKAGES)}")
        if self.unknown not in ("centroid", "error"):
            raise ValueError(f"unknown={self.unknown!r}: use 'centroid' or 'error'")
        if self.trees is not None and not isinstance(self.trees, Mapping):
            raise TypeError(f"trees={self.trees!r}: give a mapping of column to tree")

    def _known(self, X: Any) -> Table:
        check_is_fitted(self, "counts_")
        if not isinstance(X, Mapping | list | tuple | Table):
            _check_feature_names(self, X, reset=False)
        table = _read(X, self.schema_)
        if table.schema.names != self.schema_.names:
            raise ValueError(
                f"the table has columns {table.schema.names}, not {self.schema_.names}"
            )
        return table

    # -- using -----------------------------------------------------------------------------

    def transform(self, X: Any) -> np.ndarray:
        """Return the vector of each row, one coordinate per edge; learns nothing."""
        table = self._known(X)
        return _blocks.gather(table, self._blocks, self.unknown, np.dtype(self.dtype))

    def pairwise_distances(self, X: Any, Y: Any = None) -> np.ndarray:
        """Return the sums of tree distances between the rows of X and of Y (or X)."""
        from scipy.spatial.distance import cdist

        left = _blocks.gather(self._known(X), self._blocks, self.unknown, np.dtype("f8"))
        if Y is None:
            return cdist(left, left, "cityblock")
        right = _blocks.gather(self._known(Y), self._blocks, self.unknown, np.dtype("f8"))
        return cdist(left, right, "cityblock")

    def explain(self, a: Any, b: Any) -> dict[str, float]:
        """Say why two rows are apart: each column's share in their distance.

        Parameters
        ----------
        a, b : dict, sequence or one-row frame
            The two rows.
        """
        ours, theirs = (
            _blocks.gather(self._known(_one_row(row)), self._blocks, self.unknown, np.dtype("f8"))
            for row in (a, b)
        )
        apart = np.split(np.abs(ours - theirs)[0], _blocks.edges(self._blocks)[1:-1])
        return {
            name: float(part.sum()) for name, part in zip(self.schema_.names, apart, strict=True)
        }

    def value_distances(self, column: str) -> Any:
        """Return the distances between the values of a column, as a labelled pandas frame."""
        check_is_fitted(self, "counts_")
        labels = self.counts_.labels[self.counts_._index(column)]
        rows = self._blocks[self.schema_.names.index(column)].rows(labels, column, self.unknown)
        pandas = require("pandas", "frames")
        index = pandas.Index(labels, dtype=object, name=column)
        apart = np.abs(rows[:-1, None] - rows[None, :-1]).sum(axis=2)
        return pandas.DataFrame(apart, index=index, columns=index)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return a name for each dimension: the column's, with a number for each edge of a tree."""
        check_is_fitted(self, "counts_")
        check_input_features(self, input_features)
        names: list[str] = []
        for name, block in zip(self.schema_.names, self._blocks, strict=True):
            line = not isinstance(block, _blocks.TreeBlock)
            names += [name] if line else [f"{name}_{i}" for i in range(block.width)]
        return np.asarray(names, dtype=object)


def _read(X: Any, schema: Schema) -> Table:
    return Table.of(X, schema, numbers="numeric")


def _ranges(table: Table) -> dict[str, tuple[float, float]]:
    """Return the lowest and highest number of each numeric column; (inf, -inf) if it has none."""
    out = {}
    for column, data in table:
        if isinstance(data, Numbers):
            present = data.values[~np.isnan(data.values)]
            out[column.name] = (
                float(present.min(initial=np.inf)),
                float(present.max(initial=-np.inf)),
            )
    return out


def _refuse_leaves(column: str, tree: Tree, labels: Any) -> None:
    for label in labels:
        if label is not None and tree.nearest(label) is None:
            raise ValueError(
                f"column {column!r}: value {label!r} is not in its tree; add it, or write it as a "
                f"path below a node of the tree (A{tree.separator}{label})"
            )
