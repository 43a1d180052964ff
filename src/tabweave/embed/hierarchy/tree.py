"""DistanceHierarchy: mixed rows by the trees of their values (Huang and Hsu).

Every categorical column gets a tree, given by hand or grown from the classes (or, without labels,
from the other columns); numbers and grades lie on a line. Rows become vectors whose Manhattan
distance is the sum of the tree distances, exactly. Only the rows given to ``fit`` are looked at.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np

from tabweave._compat import StrOptions
from tabweave.base import Embedder
from tabweave.columns.column import Column, Schema
from tabweave.columns.nominal import Codes
from tabweave.columns.numeric import Numbers
from tabweave.columns.table import Table, require_rows
from tabweave.columns.targets import check_discrete
from tabweave.columns.vocabulary import Label
from tabweave.counts.counts import Counts, counted_schema
from tabweave.counts.couplings import partners, shares
from tabweave.embed.register import embedder
from tabweave.embed.row_embedder import readable
from tabweave.space.block import Block, Blocks, label_column
from tabweave.space.trees import LevelBlock, LineBlock, Tree, TreeBlock

LINKAGES = ("single", "average", "complete")


@embedder(
    "hierarchy",
    "distances on a tree of values per column, learned from classes if there is a target",
    "Huang & Hsu",
    reads="mixed",
    offered="shell",
    page="distance-hierarchy",
)
class DistanceHierarchy(Embedder):
    """Embed rows so that Manhattan distance is the sum of their columns' tree distances.

    Parameters
    ----------
    trees : mapping of column to tree, optional
        Trees made by hand, as :meth:`Tree.of` reads them; the other categorical columns get
        theirs from the data. To save the model, give ``Tree.of(...)`` in place of a frame or graph.
    linkage : {"average", "single", "complete"}, default="average"
        How trees are grown from the dissimilarities of values.
    schema : Schema or mapping of column to kind, optional
        What the columns are; numbers are numeric unless declared otherwise.
    unknown : {"centroid", "error"}, default="centroid"
        What becomes of a value that no tree has. A path ("A/B/new") goes to its nearest
        ancestor in the tree in any case.
    dtype : {"float64", "float32"}, default="float64"
        Type of the vectors.

    Attributes
    ----------
    trees_ : dict of str to Tree
        The tree of every categorical column.
    blocks_ : Blocks
        A tree or a line for each column: what rows, distances and explanations are made of.
    counts_ : Counts
        What was seen; with classes if ``y`` was given.
    ranges_ : dict of str to (float, float)
        Lowest and highest number of every numeric column.
    schema_, n_features_in_, feature_names_in_
        The columns.

    Notes
    -----
    With classes P the dissimilarity of two values is Eq. (11), ``Σ_D |p(D|A) - p(D|B)|``. Without,
    the other categorical columns stand for P, averaged. A node lies as high above its leaves as the
    linkage says, so the distance of two leaves is twice the height at which they join.
    Numbers span 0 to 1 over the rows of fit; so do an ordinal column's levels, evenly. A missing
    number counts as the mean; a missing value has its own leaf, or is the root of a given tree.
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

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **Embedder._parameter_constraints,
        "trees": [Mapping, None],
        "linkage": [StrOptions(set(LINKAGES))],
    }

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
        super().__init__(schema=schema, unknown=unknown, dtype=dtype)

    # -- learning --------------------------------------------------------------------------

    trees_: dict[str, Tree]
    ranges_: dict[str, tuple[float, float]]
    _blocks: list[Block]

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn from rows, and from their classes if they are given.

        Parameters
        ----------
        X, y
            As in :meth:`tabweave.MixedEmbedder.fit`.
        """
        return self._add(X, y, first=True).learn()

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Add rows to what was seen so far; same result as one ``fit`` on all of them.

        Nothing is learned yet: :meth:`learn` does, or the first method that needs it.
        """
        return self._add(X, y, first=not hasattr(self, "counts_"))

    def _add(self, X: Any, y: Any, *, first: bool) -> Self:
        self._validate_params()
        table = self._read(X, Schema.of(self.schema)) if first else self._read_fitted(X)
        require_rows(table)
        y = readable(y)
        if y is not None:
            check_discrete(type(self).__name__, y)
        counts, ranges = Counts.of(table, y), number_ranges(table)
        self._check_trees(counts)
        if first:
            self._start(counts, table.schema)
        else:
            if (y is None) != (self.counts_.classes is None):
                raise ValueError("y was given for some batches only; give it for all or for none")
            self._hold(self.counts_ + counts)
            for name, (low, high) in self.ranges_.items():
                ranges[name] = min(low, ranges[name][0]), max(high, ranges[name][1])
        self.ranges_ = ranges
        return self

    def fit_counts(self, counts: Counts) -> Self:
        """Learn from counts of categories; counts of numbers do not hold their range."""
        self._validate_params()
        for column in counted_schema(counts).numeric:
            raise ValueError(
                f"column {column.name!r} is numeric, and counts do not hold its range; use fit, or "
                "leave the column out"
            )
        self._check_trees(counts)
        self._start(counts)
        self.ranges_ = {}
        return self.learn()

    def _learn_all(self) -> None:
        """Algorithm 1: a tree for each categorical column, from a hand or from the data."""
        counts = self.counts_
        self.trees_ = {name: Tree.of(tree) for name, tree in (self.trees or {}).items()}
        for name in _treed(self.schema_):
            if name not in self.trees_:
                labels = counts.labels[counts.names.index(name)]
                self.trees_[name] = from_linkage(dissimilarity(counts, name), labels, self.linkage)
        self._blocks = [self._block(column) for column in self.schema_.columns]

    def _block(self, column: Column) -> Block:
        if column.kind in ("numeric", "datetime"):
            return line_block(self.counts_, column.name, *self.ranges_[column.name])
        if column.kind == "ordinal":
            return level_block(self.counts_, column)
        return tree_block(self.counts_, column.name, self.trees_[column.name])

    @property
    def blocks_(self) -> Blocks:
        """The tree or line of each column, side by side."""
        return Blocks(self._blocks)

    def _check_trees(self, counts: Counts) -> None:
        """Raise for trees of columns that are not there, and for values that are not in theirs."""
        schema = counted_schema(counts)
        nominal = _treed(schema)
        for name, tree in (self.trees or {}).items():
            if name not in nominal:
                kind = next((c.kind for c in schema.columns if c.name == name), "no column")
                remedy = "" if kind == "no column" else f"; declare schema={{{name!r}: 'nominal'}}"
                raise ValueError(
                    f"expected trees of nominal or set columns ({', '.join(map(repr, nominal))}), "
                    f"got one of {name!r}, which is {kind}{remedy}"
                )
            leaves = Tree.of(tree)
            for label in counts.labels[counts.names.index(name)]:
                if label is not None and leaves.nearest(label) is None:
                    raise ValueError(
                        f"column {name!r}: value {label!r} is not in its tree; add it, or write it "
                        f"as a path below a node of the tree (A{leaves.separator}{label!s})"
                    )


def _treed(schema: Schema) -> list[str]:
    return [c.name for c in schema.categorical if c.kind != "ordinal"]


# -- blocks from counts --------------------------------------------------------------------------


def tree_block(counts: Counts, name: str, tree: Tree) -> TreeBlock:
    """Return the block of a tree; an unknown value counts as the mean of those seen."""
    edges = np.flatnonzero(tree.weights[1:] > 0)
    labels, share = _seen(counts, name)
    points = TreeBlock(tree, edges, np.zeros(len(edges)), name).points(labels)[:-1]
    return TreeBlock(tree, edges, share @ points / max(share.sum(), 1e-300), name)


def level_block(counts: Counts, column: Column) -> LevelBlock:
    """Return the block of grades; a missing or unknown one counts as the mean of those seen."""
    labels, share = _seen(counts, column.name)
    present = np.array([label is not None for label in labels.labels], bool)
    levels = column.levels or tuple(v for v in labels.labels if v is not None)
    block = LevelBlock(levels, np.full(1, 0.5), column=column.name)
    if not present.any():
        return block
    points = block.points(labels)[:-1, 0]
    return replace(
        block, centroid=np.atleast_1d(np.average(points[present], weights=share[present]))
    )


def line_block(counts: Counts, name: str, low: float, high: float) -> LineBlock:
    """Return the block of numbers; a missing one counts as the mean."""
    if low > high:  # no number was seen
        return LineBlock(0.0, 0.0, 0.0, column=name)
    if not np.isfinite(high - low):
        raise ValueError(f"column {name!r} spans {low:g} to {high:g}, beyond float64; scale it")
    return LineBlock(low, high, counts.moments(name)[1], column=name)


def number_ranges(table: Table) -> dict[str, tuple[float, float]]:
    """Return the lowest and highest number of each numeric column; (inf, -inf) if it has none."""
    out = {}
    for column, data in table:
        if isinstance(data, Numbers):
            present = data.values[~np.isnan(data.values)]
            lowest, highest = present.min(initial=np.inf), present.max(initial=-np.inf)
            out[column.name] = float(lowest), float(highest)
    return out


def _seen(counts: Counts, name: str) -> tuple[Codes, np.ndarray]:
    """Return a column's values as a column without rows, and how often each was seen."""
    labels = counts.labels[counts.names.index(name)]
    share = counts.value_counts[counts.span(name)].astype(float)
    return label_column(labels), share


# -- trees from counts ---------------------------------------------------------------------------


def dissimilarity(counts: Counts, column: str, *, max_values: int = 10_000) -> np.ndarray:
    """Eq. (11): ``d(A, B) = Σ_D |p(D|A) - p(D|B)|`` over the classes D.

    Without classes the values of each other categorical column are the probes, and the columns
    are averaged; without other columns all values are equally distant.
    """
    from scipy.spatial.distance import cdist

    a = counts.names.index(column)
    n_values = int(counts.sizes[a])
    if n_values > max_values:
        raise ValueError(
            f"column {column!r} has {n_values} values, too many to learn a tree from; pass a "
            f"tree, or group its values"
        )
    if counts.class_pairs is not None:
        probes = [counts.class_pairs[counts.span(a)]]
    else:
        probes = [block for _, block in partners(counts, a) if block.shape[1]]
    if not probes:
        return 1 - np.eye(n_values)
    total = np.zeros((n_values, n_values))
    for block in probes:
        confidence = shares(block)
        total += cdist(confidence, confidence, "cityblock")
    np.fill_diagonal(total, 0)
    return total / len(probes)


def from_linkage(dissimilarity: np.ndarray, labels: Sequence[Label], method: str) -> Tree:
    """Return the dendrogram of values: a node is as far above its leaves as its height.

    An edge is the difference of the heights of its ends, so the distance of two leaves is twice
    the height at which they join.
    """
    from scipy.cluster.hierarchy import linkage
    from scipy.spatial.distance import squareform

    n = len(labels)
    if n < 2:  # a lone leaf, or, of sets that are all empty, a root alone
        return Tree(np.array([-1]), np.zeros(1), (*labels,) or ("",), "")
    steps = linkage(squareform(dissimilarity, checks=False), method)
    total = 2 * n - 1
    height = np.concatenate([np.zeros(n), np.maximum.accumulate(steps[:, 2])])
    above = np.full(total, -1)
    for i, (left, right) in enumerate(steps[:, :2].astype(int)):
        above[left] = above[right] = n + i
    # From the root down: scipy numbers the last merge highest, the tree wants parents first.
    number = total - 1 - np.arange(total)
    parents, weights = np.full(total, -1), np.zeros(total)
    parents[number[:-1]] = number[above[:-1]]
    weights[number[:-1]] = height[above[:-1]] - height[:-1]
    mark = "#"
    while any(isinstance(label, str) and label.startswith(mark) for label in labels):
        mark += "#"  # the names of inner nodes are nobody's value
    names = (*labels, *(f"{mark}{i}" for i in number[n:]))[::-1]
    return Tree(parents, weights, names, "")
