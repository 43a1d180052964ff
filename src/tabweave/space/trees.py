"""Trees as spaces: a value is a point of a tree, a grade or a number a point of a line.

One coordinate per edge (its weight, where the edge lies on the way from the root) makes the sum of
absolute differences equal to the distance in the tree, exactly. A :class:`Tree` is read here as
people write it; what grows one from data is in :mod:`tabweave.embed.hierarchy`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isfinite
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from tabweave.columns.frames import columns_of, objects
from tabweave.columns.nominal import Codes
from tabweave.columns.sets import Sets
from tabweave.columns.table import Table
from tabweave.columns.vocabulary import Label, Unknown, canonical, identity, positions
from tabweave.io.register import storable
from tabweave.space.points import Writer, value_writer
from tabweave.space.space import Line, Lookup, Space, Step, label_column

SEPARATOR = "/"
Edge = tuple[Label, int, float]  # name, number of the parent, weight


class _OfTree(Space):
    """A space of one column whose distances are sums of absolute differences."""

    power = 1
    root = False
    column: str

    @property
    def names(self) -> list[str]:
        """The column."""
        return [self.column]

    def feature_names(self) -> list[str]:
        """The column's name."""
        return [self.column]


class _OfValues(_OfTree):
    """One whose points are those of values: a set is the mean of its elements."""

    by_value = True

    def writer(self, table: Table, dtype: np.dtype, unknown: Unknown) -> Writer:
        """Look up the points of a table's labels."""
        data = table[self.column]
        return value_writer(data, self.points(data, unknown), dtype)


@storable
@dataclass(frozen=True, eq=False)
class TreeSpace(_OfValues):
    """A nominal or set column: one coordinate per edge that has a length.

    Attributes
    ----------
    tree : Tree
        The tree of its values.
    kept : ndarray
        The edges that have a length.
    centroid : ndarray
        The point of an unknown value.
    column : str
        The column.
    """

    tree: Tree
    kept: np.ndarray
    centroid: np.ndarray
    column: str = ""

    @property
    def width(self) -> int:
        """Number of coordinates."""
        return len(self.kept)

    def feature_names(self) -> list[str]:
        """The column's name with a number for each edge."""
        return [f"{self.column}_{i}" for i in range(self.width)]

    def points(self, column: Codes | Sets, unknown: Unknown = "centroid") -> np.ndarray:
        """The points of labels, and that of an unknown value last.

        Missing, if it is no value of the tree, lies at the mean of the values seen: along an edge,
        which a value lies below or not, the mean is at its expected distance from both.
        """
        out: np.ndarray = np.tile(self.centroid, (len(column.labels) + 1, 1))
        for i, label in enumerate(column.labels):
            node = self.tree.nearest(label)
            if node is not None:
                out[i] = self._point(node)
            elif unknown == "error" and label is not None:
                check_in_tree(self.column, column, i)
        return out

    def _point(self, node: int) -> np.ndarray:
        return self.tree.embed([(node, float(self.tree.depths[node]))])[0, self.kept]

    def export(self, unknown: Unknown = "centroid") -> list[Step]:
        """A lookup of the tree's nodes; a tree that reads paths has no end of values."""
        if self.tree.separator:
            raise ValueError(
                f"column {self.column!r}: its tree accepts any path below its nodes, which a "
                f"lookup table cannot list; build it with Tree.of(..., separator=''), or keep "
                f"the model with "
                "tabweave.export.save"
            )
        # The name of an inner node that is of another type than every leaf is nobody's value.
        kinds = {type(self.tree.names[leaf]) for leaf in self.tree.leaves} - {type(None)}
        value_names = (label for label in self.tree.names if type(label) in kinds)
        labels = tuple(label for label in value_names if self.tree.is_unique(label))
        points = self.points(label_column([*labels, None]))
        unknown_point = None if unknown == "error" else points[-1]
        return [Lookup(self.column, labels, points[:-2], points[-2], unknown_point)]


@storable
@dataclass(frozen=True, eq=False)
class LevelSpace(_OfValues):
    """An ordinal column: levels at even steps from 0 to 1; missing counts as their mean."""

    levels: tuple[Label, ...]
    centroid: np.ndarray
    width: int = 1
    column: str = ""

    def points(self, column: Codes | Sets, unknown: Unknown = "centroid") -> np.ndarray:
        """The points of labels, and that of an unknown or missing value last."""
        index = positions(self.levels, column.labels)
        for i in np.flatnonzero(index == len(self.levels)) if unknown == "error" else ():
            if column.labels[i] is not None:
                check_in_tree(self.column, column, i)
        line = np.append(np.arange(len(self.levels)) / max(len(self.levels) - 1, 1), self.centroid)
        return np.append(line[index], self.centroid)[:, None]

    def export(self, unknown: Unknown = "centroid") -> list[Step]:
        """A lookup of the levels."""
        points = self.points(label_column(self.levels))
        middle = points[-1]
        unknown_point = None if unknown == "error" else middle
        return [Lookup(self.column, self.levels, points[:-1], middle, unknown_point)]


@storable
@dataclass(frozen=True, eq=False)
class LineSpace(_OfTree):
    """A numeric column: the range of fit is 0 to 1, a missing number counts as the mean."""

    low: float
    high: float
    mean: float
    width: int = 1
    column: str = ""

    def values(self, numbers: np.ndarray) -> np.ndarray:
        """The point of each number."""
        span = self.high - self.low
        filled = np.where(np.isnan(numbers), self.mean, numbers)
        return (filled - self.low) / span if span > 0 else np.zeros(len(numbers))

    def writer(self, table: Table, dtype: np.dtype, unknown: Unknown) -> Writer:
        """Read the numbers of a table."""
        numbers = table[self.column].values

        def write(rows: slice, out: np.ndarray) -> None:
            out[:, 0] = self.values(numbers[rows])

        return write

    def export(self, unknown: Unknown = "centroid") -> list[Step]:
        """The line; one without a range is 0 everywhere."""
        span = self.high - self.low
        factor = 1 / span if span > 0 else 0.0
        return [Line(self.column, self.low, factor, self.values(np.full(1, np.nan)))]


def check_in_tree(name: str, column: Codes | Sets, i: int) -> None:
    """Raise for a label that rows have and no tree knows."""
    if (column.codes == i).any():
        raise ValueError(
            f"column {name!r}: value {column.labels[i]!r} is not in its tree and was not seen in "
            "fit; add it, write it as a path below a node of the tree, or use unknown='centroid'"
        )


class Point(NamedTuple):
    """A point of a tree: the node it lies at or above, and its distance from the root."""

    anchor: Label
    offset: float


@storable
@dataclass(frozen=True, eq=False)
class Tree:
    """A rooted tree with a weight on every edge.

    Build one with :meth:`Tree.of`, or from arrays: node i hangs from ``parents[i]`` (-1 at the
    root) by an edge of weight ``weights[i]``; parents come before their children. Without a
    ``separator`` values are never read as paths.

    Examples
    --------
    >>> from tabweave.embed.hierarchy import Tree
    >>> drinks = Tree.of({"Coffee": ["Latte", "Black coffee"], "Tea": ["Black tea", "Oolong"]})
    >>> drinks.distance(("Black coffee", 1.8), ("Latte", 1.7))
    1.5
    >>> drinks.lca("Latte", "Oolong")
    'Any'
    >>> drinks.newick()
    '((Latte:1,Black_coffee:1)Coffee:1,(Black_tea:1,Oolong:1)Tea:1)Any;'
    """

    parents: np.ndarray
    weights: np.ndarray
    names: tuple[Label, ...]
    separator: str = SEPARATOR

    def _check_loaded(self) -> None:
        n = len(self.names)
        if self.parents.shape != (n,) or self.weights.shape != (n,) or not n:
            raise ValueError(f"expected a parent and a weight for each of {n} nodes")
        if self.parents[0] != -1 or (self.parents[1:] < 0).any():
            raise ValueError("expected one root, the first node")
        if (self.parents[1:] >= np.arange(1, n)).any():
            raise ValueError("expected parents before their children")

    @classmethod
    def of(cls, tree: Any, *, separator: str = SEPARATOR, root: Label = "Any") -> Tree:
        """Read a tree as people write them.

        Parameters
        ----------
        tree : Tree, mapping, sequence, frame or graph
            A nested mapping ``{"Coffee": ["Latte"], "Tea": {"Oolong": 0.5}}`` (a number is the
            weight of an edge, ``(weight, children)`` a weighted subtree); a table of parents
            ``{"Latte": "Coffee", "Coffee": None}``, or rows ``(child, parent, weight)``, or a frame
            with these columns; paths ``["Coffee/Latte", "Tea/Oolong"]``; or a directed graph of
            networkx, from parents to children. Weights are 1 unless given.
        separator : str, default="/"
            What separates the parts of a path.
        root : default="Any"
            Name of the root, where there are several first nodes in a mapping or in paths.
        """
        return tree if isinstance(tree, Tree) else read_tree(tree, separator, root)

    # -- shape -----------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.parents)

    def __repr__(self) -> str:
        return f"Tree({len(self)} nodes, {len(self.leaves)} leaves)"

    @cached_property
    def depths(self) -> np.ndarray:
        """Distance of every node from the root."""
        out: np.ndarray = np.zeros(len(self))
        for i in range(1, len(self)):
            out[i] = out[self.parents[i]] + self.weights[i]
        return out

    @cached_property
    def children(self) -> list[list[int]]:
        """The nodes that hang from each node."""
        out: list[list[int]] = [[] for _ in self.names]
        for i in range(1, len(self)):
            out[self.parents[i]].append(i)
        return out

    @cached_property
    def leaves(self) -> list[int]:
        """The nodes from which nothing hangs."""
        return [i for i, below in enumerate(self.children) if not below]

    @cached_property
    def _nodes(self) -> dict[Any, list[int]]:
        out: dict[Any, list[int]] = {}
        for i, name in enumerate(self.names):
            out.setdefault(identity(name), []).append(i)
        return out

    @cached_property
    def _paths(self) -> dict[str, int]:
        """Nodes by the path of their names, with and without the root."""
        top, texts = str(self.names[0]), [""]
        out = {top: 0}
        for i, name in enumerate(map(str, self.names[1:]), 1):
            above = texts[self.parents[i]]
            texts.append(f"{above}{self.separator}{name}" if above else name)
            out[texts[i]] = i
            out.setdefault(f"{top}{self.separator}{texts[i]}", i)
        return out

    # -- finding ---------------------------------------------------------------------------

    def find(self, value: Any) -> int | None:
        """The node of a value: by name, else by path; None if it is not in the tree."""
        label = canonical(value)
        nodes = self._nodes.get(identity(label), [])
        if len(nodes) == 1:
            return nodes[0]
        if len(nodes) > 1:
            raise ValueError(
                f"{label!r} names {len(nodes)} nodes of the tree; write its path, such as "
                f"{self.path(nodes[0])!r}"
            )
        return self._paths.get(label) if isinstance(label, str) and self.separator else None

    def is_unique(self, label: Label) -> bool:
        """Tell whether one node has this name."""
        return len(self._nodes.get(identity(label), ())) == 1

    def nearest(self, value: Any) -> int | None:
        """The node of a value, or of its nearest ancestor if the value is a path."""
        node = self.find(value)
        label = canonical(value)
        while (
            node is None and self.separator and isinstance(label, str) and self.separator in label
        ):
            label = label.rpartition(self.separator)[0]
            node = self.find(label)
        return node

    def path(self, node: int) -> str:
        """The names from below the root down to a node."""
        parts = []
        while node > 0:
            parts.append(str(self.names[node]))
            node = int(self.parents[node])
        return self.separator.join(reversed(parts))

    def point(self, p: Any) -> tuple[int, float]:
        """(node, distance from the root) of a value or of a pair (anchor, offset)."""
        pair = isinstance(p, tuple) and len(p) == 2
        anchor = p[0] if pair else p
        node = self.find(anchor)
        if node is None:
            raise ValueError(
                f"{anchor!r} is not in the tree; it has {', '.join(map(repr, self.names[:8]))}"
                f"{', ...' if len(self) > 8 else ''}: add it, or give a path below a node of it"
            )
        depth = float(self.depths[node])
        offset = float(p[1]) if pair else depth
        if not 0 <= offset <= depth * (1 + 1e-12):
            raise ValueError(
                f"offset of {anchor!r}: expected 0 to {depth:g}, its depth, got {offset:g}"
            )
        return node, min(offset, depth)

    # -- distances -------------------------------------------------------------------------

    def lca(self, a: Any, b: Any) -> Label:
        """The name of the lowest common ancestor of two nodes."""
        return self.names[self._lca(self.point(a)[0], self.point(b)[0])]

    def lcp(self, p: Any, q: Any) -> Point:
        """Eq. (1): the lowest common point: P or Q if one is an ancestor of the other, else LCA."""
        (a, dp), (b, dq) = self.point(p), self.point(q)
        meet = self._lca(a, b)
        if min(dp, dq) <= self.depths[meet]:
            return Point(self.names[a if dp <= dq else b], min(dp, dq))
        return Point(self.names[meet], float(self.depths[meet]))

    def distance(self, p: Any, q: Any) -> float:
        """Eq. (2): ``|P - Q| = d_P + d_Q - 2 d_LCP(P, Q)``."""
        return self.point(p)[1] + self.point(q)[1] - 2 * self.lcp(p, q).offset

    def _lca(self, a: int, b: int) -> int:
        while a != b:  # parents come before their children: the later node is never above
            if a > b:
                a = int(self.parents[a])
            else:
                b = int(self.parents[b])
        return a

    # -- coordinates -----------------------------------------------------------------------

    def embed(self, points: Sequence[tuple[int, float]]) -> np.ndarray:
        """One coordinate per edge (node by node, without the root) of each point."""
        out = np.zeros((len(points), len(self)))
        for row, (node, offset) in zip(out, points, strict=True):
            while node > 0:
                above = int(self.parents[node])
                row[node] = np.clip(offset - self.depths[above], 0, self.weights[node])
                if offset >= self.depths[node]:
                    row[node] = self.weights[node]  # to the last bit
                node = above
        return out[:, 1:]

    # -- showing ---------------------------------------------------------------------------

    def newick(self) -> str:
        """The tree in Newick's notation, weights to 12 digits."""
        texts = [_newick_name(name) for name in self.names]
        for node in reversed(range(len(self))):  # children come after their parents
            below = self.children[node]
            if below:
                texts[node] = f"({','.join(texts[i] for i in below)}){texts[node]}"
            if node:
                texts[node] += f":{self.weights[node]:.12g}"
        return texts[0] + ";"


def _newick_name(name: Label) -> str:
    text = "" if name is None else str(name)
    if any(c in "()[]{}:;,'\"/\\_" or not c.isprintable() for c in text):
        return "'" + text.replace("'", "''") + "'"
    return text.replace(" ", "_")


# -- trees as people write them ------------------------------------------------------------------


def read_tree(tree: Any, separator: str, root: Label) -> Tree:
    """A tree from a nested mapping, a table of parents, or paths."""
    if hasattr(tree, "columns"):
        tree = _rows_of(tree)
    if hasattr(tree, "edges") and hasattr(tree, "is_directed"):  # of networkx
        if not tree.is_directed():
            raise TypeError("expected a directed graph, from parents to children, got edges only")
        tree = [(child, parent, w) for parent, child, w in tree.edges(data="weight", default=1.0)]
    if isinstance(tree, Mapping):
        edges = _from_parents(_parent_rows(tree)) if _is_parents(tree) else _from_nested(tree, root)
    elif isinstance(tree, str) or not isinstance(tree, Iterable):
        raise TypeError(f"expected a nested mapping, a table of parents, or paths, got {tree!r}")
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


def _rows_of(frame: Any) -> list[tuple[Any, ...]]:
    """(child, parent[, weight]) of a frame that has these columns, or has them first."""
    column_names, cells, _ = columns_of(frame)
    names = column_names or []
    if {"child", "parent"} <= set(names):
        cells = [cells[names.index(n)] for n in ("child", "parent", "weight") if n in names]
    elif len(cells) not in (2, 3):
        raise ValueError(
            f"expected a frame with columns 'child', 'parent' and perhaps 'weight', got {names}"
        )
    return list(zip(*map(objects, cells), strict=True))


def _weight(weight: Any, name: Any) -> float:
    if not isinstance(weight, Real) or isinstance(weight, bool) or not isfinite(weight):
        raise TypeError(f"node {name!r}: expected a number as weight of its edge, got {weight!r}")
    if weight < 0:
        raise ValueError(f"node {name!r}: expected the weight of its edge to be >= 0, got {weight}")
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
        seen: set[Any] = set()
        for name, rest in items:
            label = canonical(name)
            if identity(label) in seen:
                raise ValueError(f"node {label!r} is listed twice below {edges[parent][0]!r}")
            seen.add(identity(label))
            weight, children = _nested_value(rest, label)
            edges.append((label, parent, weight))
            if children is not None:
                waiting.append((children, len(edges) - 1))
    return edges


def _weighted(value: Any) -> bool:
    return isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], Real)


def _nested_value(value: Any, name: Label) -> tuple[float, Any]:
    """(weight of the edge, what hangs below or None) of one entry of a nested mapping."""
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
    number: dict[tuple[str, ...], int] = {(): 0}
    for depth in range(1, max(map(len, split)) + 1):  # parents before their children
        for parts in split:
            key = tuple(parts[:depth])
            if len(key) == depth and key not in number:
                number[key] = len(edges)
                edges.append((key[-1], number[key[:-1]], 1.0))
    return edges


def _from_parents(rows: Sequence[Any]) -> list[Edge]:
    """Read rows (child, parent[, weight]); the root has no parent, or is nobody's child."""
    parent: dict[Any, Any] = {}
    weight: dict[Any, float] = {}
    name: dict[Any, Label] = {}
    for row in rows:
        if isinstance(row, str) or not isinstance(row, Sequence) or len(row) not in (2, 3):
            raise TypeError(f"expected (child, parent) or (child, parent, weight), got {row!r}")
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
    _check_cycles(parent, name)
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


def _check_cycles(parent: dict[Any, Any], name: dict[Any, Label]) -> None:
    safe: set[Any] = set()
    for start in name:
        trail: dict[Any, None] = {}
        key = start
        while key in parent and key not in safe:
            if key in trail:
                loop = [*list(trail)[list(trail).index(key) :], key]
                shown = " -> ".join(str(name[k]) for k in loop)
                raise ValueError(
                    f"the tree has a cycle: {shown}; every node needs a path to a root"
                )
            trail[key] = None
            key = parent[key]
        safe.update(trail)
