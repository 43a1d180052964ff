"""Numbers as a space: on curves that are straight between knots.

Below the curves, how numbers are counted beside categories (:class:`Numbering`: bins and their
knots). All of it rests on one fact: |z - y| is a squared Euclidean distance, that of a ladder with
one coordinate per rung, 1 below the number and 0 above
(:func:`~tabweave.columns.numeric.ladder`).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from tabweave._compat import njit
from tabweave.columns.cells import Part, column_of
from tabweave.columns.column import Column, Schema
from tabweave.columns.datetime import cycle_of, ring_knots
from tabweave.columns.decision import MIN_ROWS_TO_INFER
from tabweave.columns.nominal import Codes
from tabweave.columns.numeric import Knots
from tabweave.columns.sets import Sets
from tabweave.columns.table import Table, values_schema
from tabweave.columns.vocabulary import Label, Unknown, Vocabulary, positions, slices
from tabweave.counts.counting import first_of, merged_values
from tabweave.counts.counts import Counts, NumberCounts
from tabweave.io.register import storable
from tabweave.space.points import Piece, Turn, Writer
from tabweave.space.space import Line, Lookup, Space, Step, added, label_column

Levels = Mapping[str, tuple[Label, ...]]


@storable
@dataclass(frozen=True, eq=False, kw_only=True)
class Curves(Space):
    """Numbers on curves that are straight between knots, a number of coordinates for each column.

    Attributes
    ----------
    curved : list of str
        The columns of numbers, or of grades that are read as their ranks, and parts of columns: one
        of datetimes stands here for its trend, and each of its cycles for itself.
    knots : list of ndarray
        The numbers at which each column's curves bend, in increasing order.
    rows : list of ndarray of shape (knots, coordinates)
        The coordinates at the knots; beyond the outer ones the last piece goes on.
    missing : list of ndarray
        The coordinates of a missing number.
    spread : list of float
        How far numbers lie from a missing one, squared and on average; 0 where missing is a value.
    levels : mapping of str to tuple
        The levels of the columns that hold grades.
    """

    curved: list[str]
    knots: list[np.ndarray]
    rows: list[np.ndarray]
    missing: list[np.ndarray]
    spread: list[float] = field(default_factory=list)
    levels: Levels = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        """The columns, one for each curve."""
        return [column_of(part) for part in self.curved]

    @property
    def widths(self) -> list[int]:
        """Number of coordinates of each column."""
        return [rows.shape[1] for rows in self.rows]

    def shared_points(self, before: Curves) -> list[Piece]:
        """The curves at their knots, now and then; one piece a curve."""
        index = {part: i for i, part in enumerate(before.curved)}
        pieces = []
        for part, x, rows in zip(self.curved, self.knots, self.rows, strict=True):
            i = index.get(part)
            then = np.zeros((len(x), 0))
            if i is not None:
                then = np.stack([np.interp(x, before.knots[i], y) for y in before.rows[i].T], 1)
            pieces.append((rows, then, np.ones(len(x))))
        return pieces

    def turned(self, turns: Sequence[Turn]) -> Curves:
        """Curves that are turned, in the order of :meth:`shared_points`."""
        pairs = list(zip(turns, self.rows, self.missing, strict=True))
        rows = [np.ascontiguousarray(turn(points)) for turn, points, _ in pairs]
        return replace(self, rows=rows, missing=[turn(gap) for turn, _, gap in pairs])

    def feature_names(self) -> list[str]:
        """The column, its cycle if it is one, and a number for each coordinate."""
        pairs = zip(self.curved, self.widths, strict=True)
        return [f"{part}_{i}" for part, width in pairs for i in range(width)]

    def _of(self, chosen: list[int]) -> Self:
        return type(self)(  # a table may have thousands of columns: replace() takes its time
            curved=[self.curved[j] for j in chosen],
            knots=[self.knots[j] for j in chosen],
            rows=[self.rows[j] for j in chosen],
            missing=[self.missing[j] for j in chosen],
            spread=[self.spreads()[j] for j in chosen],
            levels=self.levels,
        )

    def _put(self, j: int, values: np.ndarray, out: np.ndarray) -> None:
        put_pieces(values, self.knots[j], self.rows[j], self.missing[j], out)

    def split(self, table: Table, unknown: Unknown = "centroid") -> dict[str, np.ndarray]:
        """What each column brings on its own."""
        alone = ((name, self._of([j])) for j, name in enumerate(self.names))
        return added({name: one.coordinates(table, unknown=unknown)} for name, one in alone)

    def _line(self, j: int) -> Line:
        knots, rows, missing = self.knots[j], self.rows[j], self.missing[j]
        return Line(self.curved[j], 0.0, 1.0, missing, knots, rows)

    def scaled(self, factor: float) -> Curves:
        """The curves with every coordinate multiplied."""
        rows, missing = ([factor * part for part in points] for points in (self.rows, self.missing))
        spread = [factor**2 * part for part in self.spread]
        return replace(self, rows=rows, missing=missing, spread=spread)

    def spreads(self) -> list[float]:
        """The mean squared distance of each column's numbers to a missing one."""
        return self.spread or [0.0] * len(self.names)

    @property
    def width(self) -> int:
        """Number of coordinates."""
        return sum(self.widths)

    def parts(self) -> list[Space]:
        """A space for each column."""
        return [self] if len(self.names) == 1 else [self._of([j]) for j in range(len(self.names))]

    def only(self, names: Iterable[str]) -> Space | None:
        """The space of some columns."""
        allowed = set(names)
        chosen = [j for j, name in enumerate(self.names) if name in allowed]
        return self._of(chosen) if chosen else None

    @property
    def by_value(self) -> bool:
        """Whether there is one column, of grades."""
        return len(self.names) == 1 and self.names[0] in self.levels

    def points(self, column: Codes | Sets, unknown: Unknown = "centroid") -> np.ndarray:
        """The points of the grades of the one column there is, a missing one last."""
        (name,) = self.names
        ranks = ranks_of(column, name, self.levels[name], unknown)
        out = np.empty((len(ranks) + 1, self.width))
        self._put(0, np.append(ranks, np.nan), out)
        return out

    def gaps(self, table: Table) -> dict[str, np.ndarray]:
        """By column what missing numbers add to squared distances."""
        spreads: dict[str, float] = {}
        for name, spread in zip(self.names, self.spreads(), strict=True):
            spreads[name] = spreads.get(name, 0.0) + spread
        missing = {name: table[name].missing for name, spread in spreads.items() if spread}
        return {name: spreads[name] * cells for name, cells in missing.items() if cells.any()}

    def label_gaps(self, column: Codes | Sets) -> np.ndarray:
        """What a missing grade adds to squared distances, for each label."""
        spread = sum(self.spreads())
        return np.array([spread if label is None else 0.0 for label in column.labels])

    def writer(self, table: Table, dtype: np.dtype, unknown: Unknown) -> Writer:
        """Read the numbers of a table."""
        numbers = [numbers_of(table, part, self.levels, unknown) for part in self.curved]
        ends = np.cumsum([0, *self.widths]).tolist()

        def write(rows: slice, out: np.ndarray) -> None:
            for j, values in enumerate(numbers):
                self._put(j, values[rows], out[:, ends[j] : ends[j + 1]])

        return write

    def export(self, unknown: Unknown = "centroid") -> list[Step]:
        """A line for each column of numbers, and a lookup for each column of grades."""
        return [
            graded(self._of([j]), name, self.levels[name], unknown)
            if name in self.levels
            else self._line(j)
            for j, name in enumerate(self.names)
        ]


def numbers_of(table: Table, part: str, levels: Levels, unknown: Unknown) -> np.ndarray:
    """The numbers of a part, or the ranks of grades; NaN where missing or unknown."""
    data = table[column_of(part)]
    if part in levels:
        return ranks_of(data, part, levels[part], unknown)[data.codes]
    return np.asarray(data.numbers(part))


def ranks_of(
    column: Codes | Sets, name: str, levels: Sequence[Label], unknown: Unknown
) -> np.ndarray:
    """The rank of each label of a column among its levels; NaN for one that is none."""
    rank = positions(levels, column.labels).astype(float)
    is_unknown = rank == len(levels)
    for i in np.flatnonzero(is_unknown) if unknown == "error" else ():
        if column.labels[i] is not None and (column.codes == i).any():
            raise ValueError(
                f"column {name!r}: expected one of its levels {list(levels)}, got "
                f"{column.labels[i]!r}; add it to the levels, or use unknown='centroid'"
            )
    rank[is_unknown] = np.nan
    return rank


def graded(space: Space, name: str, levels: Sequence[Label], unknown: Unknown) -> Lookup:
    """A lookup of the grades of the one column of a space."""
    points = space.points(label_column(levels))
    unknown_point = None if unknown == "error" else points[-1]
    return Lookup(name, tuple(levels), points[:-1], points[-1], unknown_point)


def moments_of(counts: Counts, name: str, levels: Levels) -> tuple[float, float, float]:
    """How many numbers a column has, their mean and variance; of grades, of their ranks."""
    if name not in levels:
        return counts.moments(name)
    labels = counts.labels[counts.vocabulary.index(name)]
    rank = positions(levels[name], labels).astype(float)
    weight = counts.value_counts[counts.span(name)]
    ranked = rank < len(levels[name])
    if not ranked.any():
        return 0, 0.0, 0.0
    ranks = Table.of({name: rank[ranked]}, {name: "numeric"})
    return Counts.of(ranks, sample_weight=weight[ranked]).moments(name)


# -- numbers and grades beside categories --------------------------------------------------------


@storable
@dataclass(frozen=True, eq=False)
class Numbering:
    """How each numeric and ordinal column becomes bins: learned from counts.

    Attributes
    ----------
    edges : dict of str to ndarray
        The inner edges of the bins of each numeric column.
    levels : dict of str to tuple
        The levels of each ordinal column.
    knots : dict of str to ndarray
        The lowest number of each numeric column, the mean of each of its quantile bins, and the
        highest.
    masses : dict of str to ndarray of shape (2, knots - 2)
        The bin of each inner knot, and how many numbers the knot stands for. Bins are unions of
        the buckets of counts: there may be fewer of them than knots.
    cycles : dict of str to ndarray
        The mean phase of each bin of the cycles of datetimes, by the name they are counted under.
    """

    edges: dict[str, np.ndarray]
    levels: dict[str, tuple[Label, ...]]
    knots: dict[str, np.ndarray] = field(default_factory=dict)
    masses: dict[str, np.ndarray] = field(default_factory=dict)
    cycles: dict[str, np.ndarray] = field(default_factory=dict)

    @classmethod
    def of(cls, counts: Counts, n_bins: int) -> Numbering:
        """Take quantiles of numbers as the edges of bins, and the levels of grades.

        They follow from the counts alone, not from the order in which rows were counted.
        """
        edges, levels, knots, masses, cycles = {}, {}, {}, {}, {}
        for column in counts.schema.columns if counts.schema else ():
            name = column.name
            if column.is_ordered:
                labels = counts.labels[counts.vocabulary.index(name)]
                levels[name] = column.levels or ordered(labels)
        for part, bins in counts.schema.bins.items() if counts.schema else ():
            fixed = bins.edges
            if fixed is None:
                edges[part], knots[part], masses[part] = _bins(counts, part, n_bins)
            else:
                phases = counts.numbers.histograms[part]
                around = (0.0, fixed[0] + fixed[-1])  # edges lie evenly between
                cycles[part] = _knots(phases.points, phases.times, fixed, around)[1:-1]
        return cls(edges, levels, knots, masses, cycles)

    def binned(self, counts: Counts) -> Counts:
        """The counts of values and bins: of categories only."""
        first, labels = [], list(counts.labels)
        for a, (name, column_labels) in enumerate(zip(counts.names, counts.labels, strict=True)):
            index = np.arange(len(column_labels))
            if name in self.edges:
                starts = np.array(
                    [label for label in column_labels if label is not None], np.float64
                )
                bins = np.searchsorted(self.edges[name], starts, side="right")
                index = first_of(bins)
                labels[a] = tuple(range(len(index)))
                if None in column_labels:
                    index, labels[a] = np.append(index, len(column_labels) - 1), (*labels[a], None)
            first.append(counts.offsets[a] + index)
        vocabulary = Vocabulary(counts.vocabulary.names, tuple(labels))
        index, side = np.concatenate([np.zeros(0, np.intp), *first]), counts.class_pairs
        assert counts.schema is not None
        return replace(
            counts,
            schema=values_schema(counts.schema),
            vocabulary=vocabulary,
            pairs=merged_values(counts.pairs, index),
            class_pairs=None if side is None else np.add.reduceat(side, index, axis=0),
            numbers=NumberCounts(np.zeros((0, *np.shape(counts.numbers.moments)[1:]), np.int64)),
        )

    def expand(self, table: Table) -> Table:
        """A table of categories only, with bins in place of numbers, as :meth:`binned`."""
        parts: list[Any] = []
        for column, data in table:
            for part, bins in column.parts.items():
                if bins is None:
                    parts.append(data)
                else:
                    edges = self.edges[part] if bins.edges is None else bins.edges
                    parts.append(binned(data.numbers(part), edges))
        return Table(values_schema(table.schema), tuple(parts), table.n_rows)


def _bins(counts: Counts, name: str, n_bins: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The edges of the bins of a column, its knots, and the bin and mass of each knot.

    Knots are the means of quantile bins of the histogram. A bin is made of the buckets most of
    whose numbers lie in the same quantile bin.
    """
    histogram, grid = counts.numbers.histograms[name], counts.numbers.grids[name]
    x, times = histogram.points, histogram.times
    quantile_edges = _edges(x, times, n_bins)
    knots = _knots(x, times, quantile_edges)
    quantile = np.searchsorted(quantile_edges, x, side="right")
    mass = np.bincount(quantile, times, len(quantile_edges) + 1)
    few = histogram.at(grid)
    half = np.cumsum(few.times) - few.times / 2
    middle = np.searchsorted(np.cumsum(times), half).clip(max=max(len(x) - 1, 0))
    of = quantile[middle]
    start = first_of(of)
    bins = np.zeros(len(mass))
    if len(start):
        present = of[start]
        nearest = np.searchsorted((present[1:] + present[:-1]) / 2, np.arange(len(mass)))
        bins = nearest.astype(float)
    return few.edges[start[1:] - 1], knots, np.stack([bins, mass])


def quantile_bins(table: Table, n_bins: int) -> dict[str, np.ndarray]:
    """The inner edges of quantile bins of the columns of numbers of rows in memory."""
    return {
        column.name: quantile_edges(data.values, n_bins)
        for column, data in table
        if column.is_continuous
    }


def with_bins(table: Table, edges: Mapping[str, np.ndarray]) -> Table:
    """A table with bins beside numbers."""
    columns: list[Column] = []
    parts: list[Any] = []
    for column, data in table:
        columns.append(column)
        parts.append(data)
        if column.is_continuous:
            columns.append(Column(binned_part(column.name)))
            parts.append(binned(data.values, edges[column.name]))
    return Table(replace(table.schema, columns=tuple(columns)), tuple(parts), table.n_rows)


def binned_part(name: str) -> Part:
    """The part of a column of numbers that has their bins."""
    return Part(name, "binned")


def ordered(labels: Sequence[Label]) -> tuple[Label, ...]:
    """The labels that are not missing, sorted."""
    return tuple(sorted((v for v in labels if v is not None), key=_sortable))


def quantile_edges(values: np.ndarray, n_bins: int, weight: np.ndarray | None = None) -> np.ndarray:
    """The inner edges of bins with about as many numbers each."""
    return _edges(*_sorted(values, weight), n_bins)


def _edges(x: np.ndarray, weight: np.ndarray | None, n_bins: int) -> np.ndarray:
    if not len(x):
        return np.zeros(0)
    edges = np.unique(quantiles(x, np.arange(1, n_bins) / n_bins, weight))
    edges = edges[edges > x[0]]  # a bin below the lowest number would be empty
    above = np.searchsorted(x, x[0], side="right")
    if n_bins > 1 and not len(edges) and above < len(x):
        return x[above : above + 1]  # most numbers are the lowest one: tell those from others
    return edges


def quantiles(x: np.ndarray, q: np.ndarray, weight: np.ndarray | None = None) -> np.ndarray:
    """Quantiles of sorted numbers; whole weights are repetitions."""
    upto = np.cumsum(weight) if weight is not None else None
    if upto is not None and weight is not None and (weight != np.floor(weight)).any():
        return x[np.minimum(np.searchsorted(upto, q * upto[-1]), len(x) - 1)]
    position = q * ((len(x) if upto is None else upto[-1]) - 1)
    below, above = np.floor(position), np.ceil(position)
    if upto is None:
        low, high = x[below.astype(np.intp)], x[above.astype(np.intp)]
    else:
        low, high = (x[np.searchsorted(upto, at, side="right")] for at in (below, above))
    step = position - below
    with np.errstate(over="ignore", invalid="ignore"):
        gap = high - low
        between = np.where(step < 0.5, low + gap * step, high - gap * (1 - step))
    return np.where(np.isinf(gap), low * (1 - step) + high * step, between)


def bin_knots(
    values: np.ndarray, edges: np.ndarray, weight: np.ndarray | None = None
) -> np.ndarray:
    """The lowest number, the mean of the numbers in each bin, and the highest."""
    return _knots(*_sorted(values, weight), edges)


def _knots(
    x: np.ndarray,
    weight: np.ndarray | None,
    edges: np.ndarray,
    outer: tuple[float, float] | None = None,
) -> np.ndarray:
    """The same of sorted numbers; ``outer`` are the ends of bins that go beyond them."""
    if not len(x):
        return np.zeros(len(edges) + 3)
    first = np.concatenate([[0], np.searchsorted(x, edges)])
    filled = np.diff(first, append=len(x)) > 0
    low, high = outer or (x[0], x[-1])
    ends = np.concatenate([[low], edges, [high]])
    means = ends[1:] / 2 + ends[:-1] / 2  # of a bin without numbers
    with np.errstate(over="ignore"):  # of numbers near the end of float64; clipped below
        total = np.add.reduceat(x if weight is None else weight * x, first[filled])
    size = np.add.reduceat(np.ones(len(x)) if weight is None else weight, first[filled])
    means[filled] = total / size
    return np.concatenate([ends[:1], np.clip(means, ends[:-1], ends[1:]), ends[-1:]])


def _sorted(values: np.ndarray, weight: np.ndarray | None) -> tuple[np.ndarray, np.ndarray | None]:
    """The numbers that are there and count, in order, and their weights.

    In order, so that sums are the same however the rows were arranged.
    """
    if weight is None:
        x = np.sort(values)
        return x[: np.searchsorted(x, np.nan)], None
    counted = ~np.isnan(values) & (weight > 0)
    order = np.argsort(values[counted])
    return values[counted][order], weight[counted][order]


def _edges_below(values: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """How many edges are at most each number; of a missing one, any number."""
    max_compared, block_rows = 32, 1 << 13
    if len(edges) > max_compared or len(values) < block_rows:
        return np.searchsorted(edges, values, side="right").astype(np.uint16)
    codes = np.zeros(len(values), np.uint16)
    for rows in slices(len(values), 1, block_rows):  # edge by edge: no branches, rows in a cache
        part, part_codes = np.ascontiguousarray(values[rows]), codes[rows]
        for edge in edges:
            part_codes += part >= edge
    return codes


def binned(values: np.ndarray, edges: np.ndarray) -> Codes:
    """The bin of each number; missing is a separate category."""
    codes = _edges_below(values, edges)
    gaps = np.isnan(values)
    labels: list[Label] = list(range(len(edges) + 1))
    if gaps.any():
        codes[gaps] = len(labels)
        labels.append(None)
    return Codes(codes, labels)


def _sortable(label: Label) -> tuple[str, Any]:
    return (type(label).__name__ if not isinstance(label, int | float) else "", label)


def knots_of(counts: Counts, name: str, numbering: Numbering) -> Knots:
    """The points on a line of a column's bins in counts of bins, or of its grades."""
    if name in numbering.cycles:
        return ring_knots(counts, name, numbering.cycles[name], cycle_of(name))
    column = counts.vocabulary.index(name)
    labels, mass = counts.labels[column], counts.value_counts[counts.span(column)].astype(float)
    missing = labels.index(None) if None in labels else None
    if name in numbering.levels:
        levels = numbering.levels[name]
        index = positions(labels, levels)
        present = index < len(labels)
        x, value = np.arange(len(levels), dtype=float)[present], index[present]
        share = mass[value]
    else:
        value, share = numbering.masses[name]
        present = np.flatnonzero(share > 0)
        ends = np.r_[present[:1], present, present[-1:]].astype(np.intp)
        x = np.r_[numbering.knots[name][:1], numbering.knots[name][1:-1][present]]
        x = np.r_[x, numbering.knots[name][-1:]][: len(ends)] if len(present) else x[:0]
        value, share = value[ends].astype(np.intp), np.r_[0.0, share[present], 0.0][: len(ends)]
        if len(x) > 2:  # a bin of one number has its knot there
            keep = np.r_[x[0] < x[1], np.ones(len(x) - 2, bool), x[-1] > x[-2]]
            x, value, share = x[keep], value[keep], share[keep]
    return Knots(x, value, share / max(share.sum(), 1e-300), missing)


# -- the curves ---------------------------------------------------------------------------------


def _put_pieces_plain(
    values: np.ndarray, knots: np.ndarray, rows: np.ndarray, missing: np.ndarray, out: np.ndarray
) -> None:
    low = np.maximum(np.searchsorted(knots[:-1], values, "right") - 1, 0)
    low = np.minimum(low, len(knots) - 2)  # NaN is sorted last
    step = ((values - knots[low]) / (knots[low + 1] - knots[low]))[:, None]
    out[:] = rows[low] + step * (rows[low + 1] - rows[low])
    out[np.isnan(values)] = missing


@njit(nogil=True, cache=True, plain=_put_pieces_plain)
def put_pieces(
    values: np.ndarray, knots: np.ndarray, rows: np.ndarray, missing: np.ndarray, out: np.ndarray
) -> None:
    """Set ``out[i]`` to the point of ``values[i]`` on curves that are straight between knots.

    ``rows`` are the points at the knots; beyond them the outer pieces go on. NaN is ``missing``.
    """
    last = len(knots) - 2
    for i in range(len(values)):
        x = values[i]
        if math.isnan(x):
            for d in range(rows.shape[1]):
                out[i, d] = missing[d]
            continue
        low, high = 0, last
        while low < high:
            middle = (low + high + 1) // 2
            if knots[middle] <= x:
                low = middle
            else:
                high = middle - 1
        step = (x - knots[low]) / (knots[low + 1] - knots[low])
        for d in range(rows.shape[1]):
            out[i, d] = rows[low, d] + step * (rows[low + 1, d] - rows[low, d])


# -- what is asked of columns while a method learns ----------------------------------------------


@storable
@dataclass(frozen=True, eq=False)
class CountedColumns:
    """What is asked of the columns while a method learns, found once from counts.

    Attributes
    ----------
    owners : dict of str to str
        What is counted, values or bins or cycles of a column, and the column it is a part of.
    valued : list of str
        The columns whose values have tables: nominal ones and sets.
    gaps : list of str
        The parts in which a missing cell is no value.
    numbering : Numbering
        How the others become bins.
    """

    owners: dict[str, str]
    valued: list[str]
    gaps: list[str]
    numbering: Numbering

    @classmethod
    def of(
        cls,
        counts: Counts,
        schema: Schema,
        n_bins: int,
        *,
        constants: bool = False,
    ) -> CountedColumns:
        """Take the columns that vary, or constants, too."""
        columns = list(schema.columns) if constants else varying_columns(counts, schema)
        owners = {
            part: column.name
            for column in columns
            for part in column.cells_type.shown_parts(column, counts)
        }
        expected = {c.name for c in columns if (c.missing or schema.missing) != "value"}
        gaps = [part for part, owner in owners.items() if owner in expected]
        valued = [c.name for c in columns if c.has_values and not c.is_ordered]
        numbering = Numbering.of(counts, n_bins)
        return cls(owners, valued, gaps, numbering)

    @cached_property
    def numbered(self) -> list[str]:
        """The columns, or parts of them, that lie on curves."""
        return [part for part in self.owners if part not in self.valued]

    def where_missing_is_a_value(self, columns: Collection[str] | None = None) -> CountedColumns:
        """The same with missing as one more value of some columns, or of all."""
        if columns is None:
            return replace(self, gaps=[])
        return replace(self, gaps=[part for part in self.gaps if self.owners[part] not in columns])

    def coupled(self, counts: Counts) -> Counts:
        """The counts of values and bins, and of the cycles that datetimes show."""
        if not self.numbered and list(self.owners) == list(counts.names):
            return counts
        binned = self.numbering.binned(counts)
        return binned.select([name for name in binned.names if name in self.owners])

    def expanded(self, table: Table) -> Table:
        """Rows of values and bins, as :meth:`coupled` counts them."""
        rows = self.numbering.expand(table)
        return rows.select([name for name in rows.schema.names if name in self.owners])

    def groups(self, coupled: Counts) -> list[str]:
        """Whose part each counted column is: those of one column are no news to another."""
        return [self.owners[part] for part in coupled.names]


def varying_columns(counts: Counts, schema: Schema) -> list[Column]:
    """The columns that count: not those that were constant so far, unless declared."""
    columns = list(schema.columns)
    if counts.n < MIN_ROWS_TO_INFER:
        return columns
    vary = [c for c in columns if c.origin.why == "declared" or not is_constant(counts, c.name)]
    return vary or columns


def is_constant(counts: Counts, name: str) -> bool:
    """Tell whether all rows have the same value of a column."""
    if name in counts.vocabulary:
        return bool((counts.value_counts[counts.span(name)] == counts.n).all())
    n, _, variance = counts.moments(name)
    return n == 0 or (n == counts.n and variance == 0)
