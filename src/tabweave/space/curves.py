"""Curves of columns of numbers, made from counts; tables and curves beside each other or summed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tabweave.columns.numeric import Knots, step_from
from tabweave.columns.vocabulary import Label
from tabweave.counts.counting import divisor
from tabweave.counts.counts import Counts
from tabweave.counts.couplings import Factors, class_ties
from tabweave.counts.spectra import principal_axes
from tabweave.space.numbers import CountedColumns, Curves, Numbering, knots_of, moments_of
from tabweave.space.points import turns
from tabweave.space.space import Space, Summed
from tabweave.space.value_tables import ValueTables


def with_missing(features: Any, labels: Sequence[Label], f: np.ndarray | None = None) -> Any:
    """Rows or factors with one for missing, if it is among the labels, but has none yet.

    It is at the mean by frequency, or, without any, at 0.
    """
    rows = features.common if isinstance(features, Factors) else features
    if len(rows) == len(labels):
        return features
    at, mean = list(labels).index(None), 0.0 if f is None else f / f.sum() @ rows
    extended = np.insert(rows, at, mean, axis=0)
    if not isinstance(features, Factors):
        return extended
    return Factors(extended, np.insert(features.own, at, 0.0))


@dataclass(frozen=True, eq=False)
class Curve:
    """The curves of one column of numbers, at the knots of its bins.

    ``missing`` is where missing numbers are; None if they are no value: then they are at the mean,
    each on an axis of its own (see :meth:`~tabweave.space.value_tables.ValueTables.with_gaps`).
    """

    name: str
    knots: Knots
    rows: np.ndarray
    missing: np.ndarray | None

    def without_coordinates(self) -> Curve:
        """The knots without coordinates, where missing is a value."""
        return replace(self, rows=np.zeros((len(self.knots.x), 0)), missing=np.zeros(0))

    def with_missing(self) -> Curve:
        """Curves on which missing is a value: an axis for missing numbers, if there are any.

        As the mean of the numbers lies half a mean squared distance from them, so does the axis:
        missing and present numbers are as far apart as two present ones.
        """
        if self.knots.missing is None:
            return self
        rows = np.column_stack([self.rows, np.zeros(len(self.rows))])
        missing = np.append(np.zeros(self.rows.shape[1]), np.sqrt(0.5))
        return replace(self, rows=rows, missing=missing)

    @property
    def gap(self) -> np.ndarray:
        """The coordinates of a missing number."""
        return self.knots.share @ self.rows if self.missing is None else self.missing

    @property
    def spread(self) -> float:
        """How far numbers lie from their mean, squared and on average; 0 if missing is a value."""
        if self.missing is not None:
            return 0.0
        return float(self.knots.share @ ((self.rows - self.gap) ** 2).sum(axis=1))

    def scaled(self, weight: float) -> Curve:
        """Curves whose squared distances are multiplied."""
        return self._turned(lambda rows: np.sqrt(weight) * rows)

    def along(self, axes: np.ndarray) -> Curve:
        """Curves along other axes."""
        return self._turned(lambda rows: rows @ axes)

    def _turned(self, turn: Callable[[np.ndarray], np.ndarray]) -> Curve:
        missing = None if self.missing is None else turn(self.missing)
        return replace(self, rows=turn(self.rows), missing=missing)

    def beside(self, rows: np.ndarray, missing: np.ndarray) -> Curve:
        """Curves with more coordinates: of each of the column's values, and of none."""
        more = replace(self, rows=np.column_stack([self.rows, rows[self.knots.value]]))
        if self.missing is None:
            return more
        gap = missing if self.knots.missing is None else rows[self.knots.missing]
        return replace(more, missing=np.append(self.missing, gap))

    def at_values(self, counts: Counts) -> np.ndarray:
        """The coordinates of each bin, as counts have them."""
        column = counts.vocabulary.index(self.name)
        out = np.zeros((counts.sizes[column], self.width))
        value, share = self.knots.value, self.knots.share
        out[value] = self.rows  # of a bin without rows either knot will do
        mass = np.bincount(value, share, len(out))
        out[mass > 0] = 0
        np.add.at(out, value, self.rows * (share / divisor(mass)[value])[:, None])
        if self.knots.missing is not None:
            out[self.knots.missing] = self.gap
        return out

    @property
    def width(self) -> int:
        """Number of coordinates."""
        return int(self.rows.shape[1])


def curve_of(coupled: Counts, part: str, numbering: Numbering, counts: Counts) -> Curve:
    """The curves of numbers, ranks or a cycle: two rows are 1 apart, squared, on average."""
    knots = knots_of(coupled, part, numbering)
    assert counts.schema is not None
    kind = counts.schema.parts[part].cells_type
    rows = kind.curve(part, knots, lambda name: moments_of(counts, name, numbering.levels))
    return Curve(part, knots, rows, None)


def join_curves(curves: Sequence[Curve], levels: Mapping[str, tuple[Label, ...]]) -> Curves | None:
    """The curves of all columns as one space; None if there are none."""
    if not curves:
        return None
    knots_and_rows = [two_knots(curve) for curve in curves]
    return Curves(
        curved=[curve.name for curve in curves],
        knots=[x for x, _ in knots_and_rows],
        rows=[np.ascontiguousarray(rows) for _, rows in knots_and_rows],
        missing=[curve.gap for curve in curves],
        spread=[curve.spread for curve in curves],
        levels=dict(levels),
    )


def two_knots(curve: Curve) -> tuple[np.ndarray, np.ndarray]:
    """Knots and rows, at least two: a column of one number lies on a flat line."""
    x, rows = curve.knots.x, curve.rows
    if len(x) >= 2:
        return x, rows
    start = x[0] if len(x) else 0.0
    row = rows[0] if len(rows) else np.zeros(curve.width)
    return np.array([start, start + step_from(start)]), np.stack([row, row])


def project(
    coupled: Counts,
    tables: dict[str, np.ndarray],
    curves: Sequence[Curve],
    levels: Mapping[str, tuple[Label, ...]],
    axes_of: Callable[[Counts, list[np.ndarray]], np.ndarray],
) -> tuple[ValueTables, Curves | None]:
    """Tables and curves along the axes that counts give, to be summed.

    Parameters
    ----------
    coupled : Counts
        Of the columns that have tables, and of the bins of those that have curves.
    tables : dict
        The vectors of the values of each column.
    curves : sequence of Curve
        The curves of the numbers.
    levels : mapping
        The order of the values of ordinal columns.
    axes_of : callable
        Gives the axes of counts and the vectors of their values.
    """
    tabled = coupled.select(list(tables))
    vectors = tables | {c.name: c.at_values(coupled) for c in curves}
    order = [name for name in coupled.names if name in vectors]
    axes = axes_of(coupled.select(order), [vectors[name] for name in order])
    edges = np.cumsum([0, *(vectors[name].shape[1] for name in order)])
    along = {n: axes[i:j] for n, i, j in zip(order, edges[:-1], edges[1:], strict=True)}
    turned = [c.along(along[c.name]) for c in curves]
    flat = [rows @ along[name] for name, rows in tables.items()]
    return ValueTables.from_features(flat, tabled, combine="sum"), join_curves(turned, levels)


def summed_space(tables: ValueTables, numbers: Curves | None) -> Space:
    """Projected tables and curves as one space."""
    if numbers is None:
        return tables
    return Summed([tables, *numbers.parts()] if tables.tables else numbers.parts())


def principal_directions(counts: Counts, tables: list[np.ndarray], n_axes: int) -> np.ndarray:
    """The axes of the largest eigenvalues, without those along which nothing varies."""
    values, axes = principal_axes(counts, tables, n_axes)
    return axes[:, values > 1e-9 * values.max(initial=0)]


# -- tables of values with the curves that come with the columns --------------------------------


def with_numbers(
    tables: ValueTables, coupled: Counts, counts: Counts, counted: CountedColumns
) -> tuple[ValueTables, Curves | None]:
    """A method's tables of values, and beside them the curves of numbers, grades and dates.

    Both are scaled to as much inertia as they have columns: a column counts as a column. If there
    are classes, half of a numeric column's weight is the same for all, half as it is tied to them.
    """
    tables = tables.with_gaps(coupled, counted.gaps)
    if not counted.numbered:
        return tables, None
    tables = tables.select(counted.valued)
    inertia = tables.inertia(coupled.select(counted.valued)) if counted.valued else 0.0
    factor = np.sqrt(len(counted.valued) / inertia) if inertia > 0 else 1.0
    tables = tables.scaled(factor * np.ones(len(counted.valued)))
    columns = list(dict.fromkeys(counted.owners[part] for part in counted.numbered))
    parts_of = [[p for p, owner in counted.owners.items() if owner == name] for name in columns]
    told = [[name] if name in p else p for name, p in zip(columns, parts_of, strict=True)]
    weights = class_weights(coupled, told)
    curves = []
    for parts, weight in zip(parts_of, weights, strict=True):
        for part in parts:
            curve = column_curve(part, coupled, counts, counted)
            curves.append(curve.scaled(2 * weight / len(parts)))  # a curve has an inertia of ½
    numbers = join_curves(curves, counted.numbering.levels)
    assert numbers is not None
    total = float(weights.sum())
    return tables, numbers.scaled(float(np.sqrt(len(columns) / total)) if total > 0 else 1.0)


def column_curve(part: str, coupled: Counts, counts: Counts, counted: CountedColumns) -> Curve:
    """The curves of a column, or of a cycle of it, missing too if it is a value."""
    curve = curve_of(coupled, part, counted.numbering, counts)
    return curve if part in counted.gaps else curve.with_missing()


def turned_towards(
    learned: tuple[ValueTables, Curves | None],
    earlier: tuple[ValueTables | None, Curves | None],
    counts: Counts,
) -> tuple[ValueTables, Curves | None]:
    """Tables and curves turned towards those before, as far as both know the same values."""
    (tables, numbers), (tables_before, numbers_before) = learned, earlier
    if tables_before is None or tables_before.combine != tables.combine:
        return learned
    pieces = tables.shared_points(tables_before, counts)
    n_tables = len(pieces)
    if numbers is not None and numbers_before is not None:
        pieces += numbers.shared_points(numbers_before)
    rotations = turns(pieces, together=tables.combine == "sum")
    if numbers is not None and numbers_before is not None:
        numbers = numbers.turned(rotations[n_tables:])
    return tables.turned(rotations[:n_tables]), numbers


def class_weights(counts: Counts, columns: Sequence[Sequence[str]]) -> np.ndarray:
    """How much each column counts, mean 1: half alike, half as its parts are tied to the classes.

    The tie of a part is ``SU⁺``, see :func:`~tabweave.counts.couplings.class_ties`. All weights are
    1 where no classes were counted, or they depend on no column.
    """
    if counts.class_pairs is None:
        return np.ones(len(columns))
    chosen = counts.select([part for parts in columns for part in parts])
    tie = dict(zip(chosen.names, class_ties(chosen, chosen.class_pairs), strict=True))
    ties = np.array([np.mean([tie[part] for part in parts]) for parts in columns])
    return (1 + ties / ties.mean()) / 2 if ties.sum() > 0 else np.ones(len(columns))
