"""What a hierarchy makes of each column: a tree's edges, or a line, as coordinates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from tabweave.counts.counts import Counts
from tabweave.counts.couplings import partners, shares
from tabweave.io.register import storable
from tabweave.rows.table import Codes, Numbers, Table
from tabweave.rows.vocabulary import Label, canonical, identity, positions

_MOST_VALUES = 10_000  # of a column whose tree is grown: the dissimilarities take V² numbers


@storable
@dataclass(frozen=True, eq=False)
class TreeBlock:
    """A nominal or set column: one coordinate per edge that has a length."""

    tree: Tree
    kept: np.ndarray
    centroid: np.ndarray

    @property
    def width(self) -> int:
        """Number of coordinates."""
        return len(self.kept)

    def rows(self, labels: Sequence[Label], column: str, unknown: str) -> np.ndarray:
        """Return the coordinates of labels, and those of an unknown value last."""
        out = np.tile(self.centroid, (len(labels) + 1, 1))
        for i, label in enumerate(labels):
            node = self.tree.nearest(label)
            if node is None and label is None:
                node = 0  # nothing is known: the root
            if node is not None:
                out[i] = self.tree.embed([(node, self.tree.depths[node])])[0, self.kept]
            elif unknown == "error":
                _refuse(column, label)
        return out


@storable
@dataclass(frozen=True, eq=False)
class LevelBlock:
    """An ordinal column: levels at even steps from 0 to 1."""

    levels: tuple[Label, ...]
    centroid: np.ndarray
    width: int = 1

    def rows(self, labels: Sequence[Label], column: str, unknown: str) -> np.ndarray:
        """Return the places of labels, and that of an unknown or missing value last."""
        place = positions(self.levels, labels)
        for label, here in zip(labels, place, strict=True):
            if here == len(self.levels) and label is not None and unknown == "error":
                _refuse(column, label)
        line = np.append(np.arange(len(self.levels)) / max(len(self.levels) - 1, 1), self.centroid)
        return np.append(line[place], self.centroid)[:, None]


@storable
@dataclass(frozen=True, eq=False)
class LineBlock:
    """A numeric column: the range of fit is 0 to 1, a missing number lies at the mean."""

    low: float
    high: float
    mean: float
    width: int = 1

    def values(self, numbers: np.ndarray) -> np.ndarray:
        """Return the place of each number."""
        span = self.high - self.low
        filled = np.where(np.isnan(numbers), self.mean, numbers)
        return (filled - self.low) / span if span > 0 else np.zeros(len(numbers))


Block = TreeBlock | LevelBlock | LineBlock


def learn(counts: Counts, ranges: dict[str, tuple[float, float]], trees: dict[str, Tree]) -> list:
    """Return the block of every column, in the order of the schema."""
    out: list[Block] = []
    schema: Any = counts.schema
    for column in schema.columns:
        if column.kind == "numeric":
            out.append(_line(counts, column.name, *ranges[column.name]))
            continue
        labels = counts.labels[counts.names.index(column.name)]
        share = counts.value_counts[counts.span(column.name)].astype(float)
        if column.kind == "ordinal":
            levels = column.levels or tuple(v for v in labels if v is not None)
            known = [v is not None for v in labels]
            block = LevelBlock(levels, np.full(1, 0.5))
            if any(known):
                places = block.rows(labels, column.name, "centroid")[:-1, 0]
                block = LevelBlock(
                    levels, np.atleast_1d(np.average(places[known], weights=share[known]))
                )
            out.append(block)
            continue
        tree = trees[column.name]
        kept = np.flatnonzero(tree.weights[1:] > 0)
        rows = TreeBlock(tree, kept, np.zeros(len(kept))).rows(labels, column.name, "centroid")
        out.append(TreeBlock(tree, kept, share @ rows[:-1] / share.sum()))
    return out


def _line(counts: Counts, name: str, low: float, high: float) -> LineBlock:
    if low > high:  # no number was seen
        return LineBlock(0.0, 0.0, 0.0)
    if not np.isfinite(high - low):
        raise ValueError(f"column {name!r} spans {low:g} to {high:g}, beyond float64; scale it")
    return LineBlock(low, high, counts.moments(name)[1])


def gather(table: Table, blocks: Sequence[Block], unknown: str, dtype: np.dtype) -> np.ndarray:
    """Return the coordinates of each row of a table."""
    from tabweave.blocks import kernels

    starts = edges(blocks)
    out = np.zeros((table.n_rows, starts[-1]), dtype)
    sources: list[tuple[slice, Any, Any]] = []
    for (column, data), block, a, b in zip(table, blocks, starts[:-1], starts[1:], strict=True):
        if isinstance(data, Numbers):
            out[:, a] = block.values(data.values)  # type: ignore[union-attr]
        else:
            rows = block.rows(data.labels, column.name, unknown)  # type: ignore[union-attr]
            sources.append((slice(a, b), data, np.ascontiguousarray(rows, dtype)))

    def fill(block: slice) -> None:
        for span, data, rows in sources:
            if isinstance(data, Codes):
                kernels.put_rows(data.codes[block], rows, out[block, span])
            else:
                around = data.starts[block.start : block.stop + 1]
                kernels.add_means(around, data.codes, rows[:-1], rows[-1], out[block, span])

    kernels.in_threads(fill, kernels.row_blocks(len(out), out.shape[1] * out.itemsize))
    return out


def edges(blocks: Sequence[Block]) -> np.ndarray:
    """Return where the coordinates of each column start; their number comes last."""
    return np.concatenate([[0], np.cumsum([block.width for block in blocks])]).astype(int)


def dissimilarity(counts: Counts, column: str) -> np.ndarray:
    """Eq. (11): ``d(A, B) = Σ_D |p(D|A) - p(D|B)|`` over the classes D.

    Without classes the values of each other categorical column are the probes, and the columns
    are averaged; without other columns all values are equally far apart.
    """
    from scipy.spatial.distance import cdist

    a = counts.names.index(column)
    n_values = int(counts.sizes[a])
    if n_values > _MOST_VALUES:
        raise ValueError(
            f"column {column!r} has {n_values} values, too many to grow a tree from; give it one "
            "by hand, or group its values"
        )
    if counts.class_pairs is not None:
        probes = [counts.class_pairs[counts.span(a)]]
    else:
        probes = [block for _, block in partners(counts, a)]
    if not probes:
        return 1 - np.eye(n_values)
    total = np.zeros((n_values, n_values))
    for block in probes:
        confidence = shares(block)
        total += cdist(confidence, confidence, "cityblock")
    np.fill_diagonal(total, 0)
    return total / len(probes)


def _refuse(column: str, label: Label) -> None:
    raise ValueError(
        f"column {column!r}: value {label!r} is not in its tree and was not seen in fit; add it, "
        "write it as a path below a known node, or use unknown='centroid'"
    )


SEPARATOR = "/"


class Point(NamedTuple):
    """A place in a tree: the node it lies at or above, and its distance from the root."""

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

    @classmethod
    def of(cls, tree: Any, *, separator: str = SEPARATOR, root: Label = "Any") -> Tree:
        """Read a tree as people write them.

        Parameters
        ----------
        tree : Tree, mapping or sequence
            A nested mapping ``{"Coffee": ["Latte"], "Tea": {"Oolong": 0.5}}`` (a number is the
            weight of an edge, ``(weight, children)`` a weighted subtree); a table of parents
            ``{"Latte": "Coffee", "Coffee": None}``, or rows ``(child, parent, weight)``; or paths
            ``["Coffee/Latte", "Tea/Oolong"]``. Weights are 1 unless given.
        separator : str, default="/"
            What separates the parts of a path.
        root : default="Any"
            Name of the root, where there are several first nodes in a mapping or in paths.
        """
        from tabweave.embed.hierarchy.tree import read_tree

        return tree if isinstance(tree, Tree) else read_tree(tree, separator, root)

    # -- shape -----------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.parents)

    def __repr__(self) -> str:
        return f"Tree({len(self)} nodes, {len(self.leaves)} leaves)"

    @cached_property
    def depths(self) -> np.ndarray:
        """Distance of every node from the root."""
        out = np.zeros(len(self))
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
    def _places(self) -> dict[Any, list[int]]:
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
        """Return the node of a value: by name, else by path; None if it is not in the tree."""
        label = canonical(value)
        met = self._places.get(identity(label), [])
        if len(met) == 1:
            return met[0]
        if len(met) > 1:
            raise ValueError(
                f"{label!r} names {len(met)} nodes of the tree; write its path, such as "
                f"{self.path(met[0])!r}"
            )
        return self._paths.get(label) if isinstance(label, str) and self.separator else None

    def nearest(self, value: Any) -> int | None:
        """Return the node of a value, or its nearest known ancestor if the value is a path."""
        node = self.find(value)
        label = canonical(value)
        while (
            node is None and self.separator and isinstance(label, str) and self.separator in label
        ):
            label = label.rpartition(self.separator)[0]
            node = self.find(label)
        return node

    def path(self, node: int) -> str:
        """Return the names from below the root down to a node."""
        parts = []
        while node > 0:
            parts.append(str(self.names[node]))
            node = int(self.parents[node])
        return self.separator.join(reversed(parts))

    def point(self, p: Any) -> tuple[int, float]:
        """Return (node, distance from the root) of a value or of a pair (anchor, offset)."""
        pair = isinstance(p, tuple) and len(p) == 2
        anchor = p[0] if pair else p
        node = self.find(anchor)
        if node is None:
            raise ValueError(
                f"{anchor!r} is not in the tree; it has {', '.join(map(repr, self.names[:8]))}"
                f"{', ...' if len(self) > 8 else ''}: add it, or give a path to a known ancestor"
            )
        depth = float(self.depths[node])
        offset = float(p[1]) if pair else depth
        if not 0 <= offset <= depth * (1 + 1e-12):
            raise ValueError(
                f"offset {offset:g} of {anchor!r} must lie between 0 and {depth:g}, its depth"
            )
        return node, min(offset, depth)

    # -- distances -------------------------------------------------------------------------

    def lca(self, a: Any, b: Any) -> Label:
        """Return the name of the lowest common ancestor of two nodes."""
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
        """Return one coordinate per edge (node by node, without the root) of each point."""
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
        """Return the tree in Newick's notation, weights to 12 digits."""
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
