"""What a hierarchy makes of each column: a tree's edges, or a line, as coordinates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from weft._labels import Label, positions
from weft.counts import Counts
from weft.hierarchy.nodes import Tree
from weft.spaces import partners, shares
from weft.table import Codes, Numbers, Table

_MOST_VALUES = 10_000  # of a column whose tree is grown: the dissimilarities take V² numbers


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
    from weft import _gather_kernels as kernels

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
