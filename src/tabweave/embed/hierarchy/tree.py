"""DistanceHierarchy: mixed rows by the trees of their values [Huang and Hsu, 004].

Every categorical column gets a tree, given by hand or grown from the classes (or, without labels,
from the other columns); numbers and grades lie on a line. Rows become vectors whose Manhattan
distance is the sum of the tree distances, exactly. Only the rows given to ``fit`` are looked at.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import isfinite
from numbers import Real
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import _check_feature_names, check_is_fitted

from tabweave._compat import require
from tabweave.base import TabularInput, _one_row, check_input_features, remember_names, require_rows
from tabweave.blocks.trees import Tree, TreeBlock, dissimilarity, edges, gather, learn
from tabweave.counts.counts import Counts
from tabweave.io.store import Storable
from tabweave.rows.table import Numbers, Schema, Table
from tabweave.rows.vocabulary import Label, canonical, identity


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
    >>> from tabweave.embed.hierarchy import DistanceHierarchy
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
        self._blocks = learn(counts, ranges, trees)
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
                apart = dissimilarity(counts, name)
                out[name] = from_linkage(apart, labels, self.linkage)
        return out

    def _check_parameters(self) -> None:
        if self.linkage not in LINKAGES:
            raise ValueError(f"linkage={self.linkage!r}: use one of {', '.join(LINKAGES)}")
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
        return gather(table, self._blocks, self.unknown, np.dtype(self.dtype))

    def pairwise_distances(self, X: Any, Y: Any = None) -> np.ndarray:
        """Return the sums of tree distances between the rows of X and of Y (or X)."""
        from scipy.spatial.distance import cdist

        left = gather(self._known(X), self._blocks, self.unknown, np.dtype("f8"))
        if Y is None:
            return cdist(left, left, "cityblock")
        right = gather(self._known(Y), self._blocks, self.unknown, np.dtype("f8"))
        return cdist(left, right, "cityblock")

    def explain(self, a: Any, b: Any) -> dict[str, float]:
        """Say why two rows are apart: each column's share in their distance.

        Parameters
        ----------
        a, b : dict, sequence or one-row frame
            The two rows.
        """
        ours, theirs = (
            gather(self._known(_one_row(row)), self._blocks, self.unknown, np.dtype("f8"))
            for row in (a, b)
        )
        apart = np.split(np.abs(ours - theirs)[0], edges(self._blocks)[1:-1])
        return {
            name: float(part.sum()) for name, part in zip(self.schema_.names, apart, strict=True)
        }

    def value_distances(self, column: str) -> Any:
        """Return the distances between the values of a column, as a labelled pandas frame."""
        check_is_fitted(self, "counts_")
        labels = self.counts_.labels[self.counts_.vocabulary.index(column)]
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
            line = not isinstance(block, TreeBlock)
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


# -- Growing trees: from what people write, and from dissimilarities by linkage [004, 3.1]

LINKAGES = ("single", "average", "complete")
Edge = tuple[Label, int, float]  # name, number of the parent, weight


# -- written by hand ----------------------------------------------------------------------------


def read_tree(tree: Any, separator: str, root: Label) -> Tree:
    """Return a tree from a nested mapping, a table of parents, or paths."""
    if isinstance(tree, Mapping):
        edges = _from_parents(_parent_rows(tree)) if _is_parents(tree) else _from_nested(tree, root)
    elif isinstance(tree, str) or not isinstance(tree, Iterable):
        raise TypeError(f"tree {tree!r}: give a nested mapping, a table of parents, or paths")
    else:
        rows = list(tree)
        if rows and all(isinstance(row, str) for row in rows):
            edges = _from_paths(rows, separator, root)
        else:
            edges = _from_parents(rows)
    if len(edges) < 2:
        raise ValueError(f"tree {tree!r} has no edge; a tree needs a root and a leaf")
    names, parents, weights = zip(*edges, strict=True)
    return Tree(np.array(parents), np.array(weights, float), tuple(names), separator)


def _weight(weight: Any, name: Any) -> float:
    if not isinstance(weight, Real) or isinstance(weight, bool) or not isfinite(weight):
        raise TypeError(f"node {name!r}: the weight of its edge is {weight!r}, not a number")
    if weight < 0:
        raise ValueError(
            f"node {name!r}: the weight of its edge is {weight}; distances need weights >= 0"
        )
    return float(weight)


def _is_parents(tree: Mapping[Any, Any]) -> bool:
    """Tell a table of parents from a nested mapping: its values name nodes."""
    return any(
        isinstance(v, str) or (isinstance(v, tuple) and len(v) == 2 and isinstance(v[0], str))
        for v in tree.values()
    )


def _parent_rows(tree: Mapping[Any, Any]) -> list[tuple[Any, ...]]:
    return [(c, *p) if isinstance(p, tuple) else (c, p) for c, p in tree.items()]


def _from_nested(tree: Any, root: Label) -> list[Edge]:
    if len(tree) == 1:
        name, below = next(iter(tree.items()))
        if isinstance(below, Mapping) or (isinstance(below, Sequence) and not _weighted(below)):
            root, tree = canonical(name), below
    edges: list[Edge] = [(root, -1, 0.0)]
    waiting: list[tuple[Any, int]] = [(tree, 0)]
    while waiting:
        below, parent = waiting.pop(0)
        items = below.items() if isinstance(below, Mapping) else ((leaf, None) for leaf in below)
        met: set[Any] = set()
        for name, rest in items:
            label = canonical(name)
            if identity(label) in met:
                raise ValueError(f"node {label!r} hangs twice from {edges[parent][0]!r}")
            met.add(identity(label))
            weight, children = _nested_value(rest, label)
            edges.append((label, parent, weight))
            if children is not None:
                waiting.append((children, len(edges) - 1))
    return edges


def _weighted(value: Any) -> bool:
    return isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], Real)


def _nested_value(value: Any, name: Label) -> tuple[float, Any]:
    """Return (weight of the edge, what hangs below or None) of one entry of a nested mapping."""
    if value is None:
        return 1.0, None
    if _weighted(value):
        return _weight(value[0], name), value[1]
    if isinstance(value, Mapping | list | tuple | set | frozenset):
        return 1.0, sorted(value, key=str) if isinstance(value, set | frozenset) else value
    return _weight(value, name), None


def _from_paths(paths: Sequence[str], separator: str, root: Label) -> list[Edge]:
    split = [path.split(separator) for path in paths]
    for path, parts in zip(paths, split, strict=True):
        if not all(parts):
            raise ValueError(f"path {path!r} has an empty part; write it as A{separator}B")
    if len({parts[0] for parts in split}) == 1 and all(len(parts) > 1 for parts in split):
        root, split = split[0][0], [parts[1:] for parts in split]
    edges: list[Edge] = [(root, -1, 0.0)]
    place: dict[tuple[str, ...], int] = {(): 0}
    for depth in range(1, max(map(len, split)) + 1):  # parents before their children
        for parts in split:
            key = tuple(parts[:depth])
            if len(key) == depth and key not in place:
                place[key] = len(edges)
                edges.append((key[-1], place[key[:-1]], 1.0))
    return edges


def _from_parents(rows: Sequence[Any]) -> list[Edge]:
    """Read rows (child, parent[, weight]); the root has no parent, or is nobody's child."""
    parent: dict[Any, Any] = {}
    weight: dict[Any, float] = {}
    name: dict[Any, Label] = {}
    for row in rows:
        if isinstance(row, str) or not isinstance(row, Sequence) or len(row) not in (2, 3):
            raise TypeError(f"row {row!r}: write (child, parent) or (child, parent, weight)")
        child, above = canonical(row[0]), canonical(row[1])
        key, up = identity(child), identity(above)
        if key in parent and parent[key] != up:
            raise ValueError(f"node {child!r} has two parents, {parent[key][1]!r} and {above!r}")
        name[key] = child
        if above is not None:
            name.setdefault(up, above)
            parent[key] = up
            weight[key] = _weight(row[2] if len(row) == 3 else 1.0, child)
    roots = [key for key in name if key not in parent]
    if len(roots) > 1:
        shown = ", ".join(repr(name[key]) for key in roots[:5])
        raise ValueError(f"the tree has {len(roots)} roots, {shown}; give them one parent")
    _refuse_cycles(parent, name)
    edges: list[Edge] = [(name[roots[0]], -1, 0.0)]
    below: dict[Any, list[Any]] = {}
    for key, up in parent.items():
        below.setdefault(up, []).append(key)
    waiting = [(roots[0], 0)]
    while waiting:
        up, number = waiting.pop(0)
        for key in below.get(up, []):
            edges.append((name[key], number, weight[key]))
            waiting.append((key, len(edges) - 1))
    return edges


def _refuse_cycles(parent: dict[Any, Any], name: dict[Any, Label]) -> None:
    safe: set[Any] = set()
    for start in name:
        trail: dict[Any, None] = {}
        key = start
        while key in parent and key not in safe:
            if key in trail:
                loop = [*list(trail)[list(trail).index(key) :], key]
                shown = " -> ".join(str(name[k]) for k in loop)
                raise ValueError(f"the tree has a cycle: {shown}; every node needs a way to a root")
            trail[key] = None
            key = parent[key]
        safe.update(trail)


# -- learned ------------------------------------------------------------------------------------


def from_linkage(dissimilarity: np.ndarray, labels: Sequence[Label], method: str) -> Tree:
    """Return the dendrogram of values: a node is as far above its leaves as its height.

    An edge is the difference of the heights of its ends, so two leaves are twice the height apart
    at which they join.
    """
    from scipy.cluster.hierarchy import linkage
    from scipy.spatial.distance import squareform

    n = len(labels)
    if n == 1:
        return Tree(np.array([-1]), np.zeros(1), (labels[0],), "")
    steps = linkage(squareform(dissimilarity, checks=False), method)
    total = 2 * n - 1
    height = np.concatenate([np.zeros(n), np.maximum.accumulate(steps[:, 2])])
    above = np.full(total, -1)
    for i, (left, right) in enumerate(steps[:, :2].astype(int)):
        above[left] = above[right] = n + i
    # From the root down: scipy numbers the last merge highest, the tree wants parents first.
    number = total - 1 - np.arange(total)
    parents, weights = np.full(total, -1), np.zeros(total)
    names: list[Label] = [""] * total
    mark = "#"
    while any(isinstance(label, str) and label.startswith(mark) for label in labels):
        mark += "#"  # the names of inner nodes are nobody's value
    for node in range(total):
        if above[node] >= 0:
            parents[number[node]] = number[above[node]]
            weights[number[node]] = height[above[node]] - height[node]
        names[number[node]] = labels[node] if node < n else f"{mark}{number[node]}"
    return Tree(parents, weights, tuple(names), "")
