"""Space: the geometry of a table, what every fitted embedder holds and everything else asks.

Names, coordinates, a power, steps for other systems: distances, shares of columns, inner products
and search follow. Spaces stand side by side (:class:`Joined`) or are summed (:class:`Summed`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from tabweave._compat import html_table, in_threads, require
from tabweave.columns.cells import column_of
from tabweave.columns.column import Schema
from tabweave.columns.nominal import Codes
from tabweave.columns.sets import Sets
from tabweave.columns.table import Table
from tabweave.columns.vocabulary import Label, Unknown
from tabweave.gpu import arrays as gpu
from tabweave.space.points import (
    Writer,
    cdist_squared,
    checked_type,
    inner_products,
    row_blocks,
    row_writer,
    summed_differences,
)


class Labels(ABC):
    """The labels of a column as a space sees them: all that comparing values needs to know.

    Attributes
    ----------
    gaps : ndarray of shape (labels,)
        What a missing label adds to squared distances, see :meth:`Space.gaps`.
    """

    gaps: np.ndarray

    @abstractmethod
    def take(self, labels: Any) -> Self:
        """Some of the labels, in an order that may repeat them."""

    @abstractmethod
    def between(self, other: Self) -> np.ndarray:
        """What adds up between these labels and others, without what missing ones add."""

    @abstractmethod
    def opposite(self, other: Self) -> np.ndarray:
        """The same between each label and the one that is opposite."""

    def __len__(self) -> int:
        return len(self.gaps)


@dataclass(frozen=True, eq=False)
class LabelPoints(Labels):
    """Labels as points: coordinates, and of columns of many values an axis that only one has.

    Of more values than a column has coordinates no two differ by less than what both have of their
    own: each lies on an axis of its own, which is not written out.

    Attributes
    ----------
    points : ndarray of shape (labels, coordinates)
        The coordinates that labels share.
    gaps : ndarray of shape (labels,)
        What a missing label adds.
    power : {1, 2}
        What adds up over coordinates.
    lengths, values : ndarray of shape (labels,) or None
        How far each label lies along the axis of a value, and which value that is.
    """

    points: np.ndarray
    gaps: np.ndarray
    power: int = 2
    lengths: np.ndarray | None = None
    values: np.ndarray | None = None

    @classmethod
    def of(cls, points: np.ndarray) -> Self:
        """Points of squared distances, none of them missing."""
        return cls(points, np.zeros(len(points)))

    def take(self, labels: Any) -> Self:
        """Some of the labels."""
        lengths, values = (x if x is None else x[labels] for x in (self.lengths, self.values))
        return type(self)(self.points[labels], self.gaps[labels], self.power, lengths, values)

    def between(self, other: Self) -> np.ndarray:
        """Sums of differences: each pair alone, whatever is beside it."""
        return self._with_lengths(summed_differences(self.points, other.points, self.power), other)

    def squared(self, other: Self) -> np.ndarray:
        """The same of squares, wide ones by products: ten times faster, but for rounding."""
        return self._with_lengths(cdist_squared(self.points, other.points), other)

    def products(self, other: Self) -> np.ndarray:
        """Inner products."""
        out = self.points @ other.points.T
        if self.lengths is None or other.lengths is None:
            return out
        return out + self._same(other) * np.outer(self.lengths, other.lengths)

    def opposite(self, other: Self) -> np.ndarray:
        """What adds up between each label and the one that is opposite."""
        differences = np.abs(self.points - other.points)
        out = (differences if self.power == 1 else differences**2).sum(axis=1)
        if self.lengths is None or other.lengths is None:
            return out
        same = self.values == other.values
        squares = self.lengths**2 + other.lengths**2
        return out + (squares - 2 * same * self.lengths * other.lengths)

    def _with_lengths(self, out: np.ndarray, other: Self) -> np.ndarray:
        if self.lengths is None or other.lengths is None:
            return out
        left, right = self.lengths[:, None], other.lengths
        return out + np.where(self._same(other), (left - right) ** 2, left**2 + right**2)

    def _same(self, other: Self) -> np.ndarray:
        return np.equal.outer(self.values, other.values)


class Space(ABC):
    """Coordinates of some columns, and the distances that they make.

    A subclass says which columns it reads, how many coordinates they get, how to write them, what
    these are called, and how another system can compute them. The rest follows.

    Attributes
    ----------
    names : sequence of str
        The columns.
    width : int
        Number of coordinates.
    power : {1, 2}
        What adds up over coordinates and parts: ``|x - y|`` or ``(x - y)²``.
    root : bool
        Whether the distance of two rows is the square root of what adds up.
    by_value : bool
        Whether it is of one column and the coordinates are those of the column's values, see
        :meth:`points`: these are then compared by :meth:`locate`.
    """

    power: int = 2
    root: bool = True

    if TYPE_CHECKING:  # fields in some subclasses: a property here would be their default

        @property
        def names(self) -> Sequence[str]:
            """The columns."""

        @property
        def width(self) -> int:
            """Number of coordinates."""

    @property
    def by_value(self) -> bool:
        """Whether there is one column, whose values have points of their own."""
        return False

    # -- what a subclass says --------------------------------------------------------------

    @abstractmethod
    def writer(self, table: Table, dtype: np.dtype, unknown: Unknown) -> Writer:
        """Read the columns of a table; return what writes the coordinates of its rows."""

    @abstractmethod
    def feature_names(self) -> list[str]:
        """A name for each coordinate."""

    @abstractmethod
    def export(self, unknown: Unknown = "centroid") -> list[Step]:
        """How to compute the coordinates, side by side; raise where no step can say it."""

    def parts(self) -> list[Space]:
        """Spaces of as few columns as can be separated, which add up to this one."""
        return [self]

    def only(self, names: Iterable[str]) -> Space | None:
        """What is left if some columns count only; None if nothing is."""
        allowed = set(names)
        absent = [name for name in self.names if name not in allowed]
        if absent and len(absent) < len(self.names):
            raise ValueError(
                f"column {absent[0]!r} is missing, but the numeric columns "
                f"({', '.join(map(repr, self.names))}) share one transformer: pass all of them "
                f"or none"
            )
        return None if absent else self

    def split(self, table: Table, unknown: Unknown = "centroid") -> dict[str, np.ndarray]:
        """What each column brings to the coordinates; they add up to them."""
        return {self.names[0]: self.coordinates(table, unknown=unknown)}

    def gaps(self, table: Table) -> dict[str, np.ndarray]:
        """By column what the missing cell of each row adds to its squared distances.

        A missing cell is at its expected distance from every cell: at the mean of the column's
        values, and on an axis that no other cell has, as long as values lie from their mean. So
        this is added to squared distances of different rows, once for each missing cell, and to
        the inner product of a row with itself; coordinates are those of the mean. Columns without
        such cells are left out.
        """
        return {}

    def label_gaps(self, column: Codes | Sets) -> np.ndarray:
        """The same for each label of the one column there is."""
        return np.zeros(len(column.labels))

    # -- rows ------------------------------------------------------------------------------

    def coordinates(
        self,
        table: Table,
        *,
        out: np.ndarray | None = None,
        dtype: Any = np.float64,
        unknown: Unknown = "centroid",
    ) -> np.ndarray:
        """The coordinates of each row of a table, optionally into a given array.

        Parameters
        ----------
        table : Table
            The rows; columns are found by name.
        out : ndarray of shape (rows, width), optional
            Where to write them.
        dtype : float32 or float64
            Their type, without ``out``.
        unknown : {"centroid", "error"}
            What becomes of a value that was not seen in fit.
        """
        shape = table.n_rows, self.width
        target = np.empty(shape, checked_type(dtype)) if out is None else out
        checked_type(target.dtype)
        if target.shape != shape:
            raise ValueError(f"expected out to have shape {shape}, got {target.shape}")
        write = self.writer(table, target.dtype, unknown)
        rows = row_blocks(len(target), target.shape[1] * target.itemsize)
        in_threads(lambda some: write(some, target[some]), rows)
        return target

    def coordinates_on_device(
        self, table: Table, dtype: Any = np.float64, unknown: Unknown = "centroid"
    ) -> Any:
        """The coordinates of each row as an array of the device that was chosen.

        Values are looked up there; what other columns add is computed on the CPU, and copied.
        """
        device, parts = gpu.device(), self.parts()
        assert device is not None
        if sum(part.width for part in parts) != self.width:  # their coordinates add up
            parts = [self]
        out = device.xp.empty((table.n_rows, self.width), checked_type(dtype))
        ends = np.cumsum([part.width for part in parts]).tolist()
        for part, end in zip(parts, ends, strict=True):
            target = out[:, end - part.width : end]
            if part.is_looked_up(table) and len(part.names) == 1:
                column = table[part.names[0]]
                gpu.look_up(part.points(column, unknown), column.codes, target)
            else:
                target[:] = device.xp.asarray(part.coordinates(table, dtype=dtype, unknown=unknown))
        return out

    def summands(
        self, A: Table, B: Table | None = None, unknown: Unknown = "centroid"
    ) -> np.ndarray:
        """What adds up over parts between the rows of A and of B (or A)."""
        if self.is_looked_up(A, A if B is None else B):  # many coordinates are never laid out
            one, rows = self._locate_rows(A, unknown)
            other, columns = (one, rows) if B is None else self._locate_rows(B, unknown)
            return self._distances_with_gaps(one.between(other)[rows].take(columns, axis=1), A, B)
        left = self.coordinates(A, unknown=unknown)
        right = left if B is None or B is A else self.coordinates(B, unknown=unknown)
        return self._distances_with_gaps(summed_differences(left, right, self.power), A, B)

    def _locate_rows(self, table: Table, unknown: Unknown) -> tuple[Labels, np.ndarray]:
        """The labels that rows have, each once, and which of them is each row's."""
        column = table[self.names[0]]
        present, rows = np.unique(column.codes, return_inverse=True)
        labels = [column.labels[i] for i in present]
        return self.locate(Codes(np.arange(len(present)), labels), unknown), rows

    def _distances_with_gaps(self, squared: np.ndarray, A: Table, B: Table | None) -> np.ndarray:
        """Add what missing cells add to squared distances, but not between a row and itself."""
        same = B is None or B is A
        left_gaps = total_gaps(self, A)
        right_gaps = left_gaps if same else total_gaps(self, B)  # type: ignore[arg-type]
        alone = squared.diagonal().copy() if same else None
        if left_gaps is not None:
            squared += left_gaps[:, None]
        if right_gaps is not None:
            squared += right_gaps
        if alone is not None:
            np.fill_diagonal(squared, alone)
        return squared

    def _products_with_gaps(self, products: np.ndarray, A: Table, B: Table | None) -> np.ndarray:
        """Add what missing cells add to the inner product of a row with itself."""
        gaps = total_gaps(self, A) if B is None or B is A else None
        if gaps is not None:
            products[np.diag_indices(len(products))] += gaps
        return products

    def distances(
        self,
        A: Table,
        B: Table | None = None,
        *,
        squared: bool = False,
        unknown: Unknown = "centroid",
    ) -> np.ndarray:
        """The distances between rows; ``squared`` leaves out the root."""
        summed = self.summands(A, B, unknown)
        return np.maximum(summed, 0) if squared else self.rooted(summed)

    def rooted(self, summed: np.ndarray) -> np.ndarray:
        """Distances for what adds up between rows."""
        return np.sqrt(np.maximum(summed, 0)) if self.root else summed

    def limit(self, distance: float) -> float:
        """What may add up within a distance, with room for rounding."""
        return float(distance**2 if self.root else distance) * (1 + 1e-9) + 1e-18

    def kernel(self, A: Table, B: Table | None = None, unknown: Unknown = "centroid") -> np.ndarray:
        """The inner products between rows."""
        if self.power != 2:
            raise ValueError(
                "these distances are sums of absolute differences, which no inner product gives; "
                "use distances, or the products of what transform returns"
            )
        left = self.coordinates(A, unknown=unknown)
        right = left if B is None or B is A else self.coordinates(B, unknown=unknown)
        return self._products_with_gaps(inner_products(left, right), A, B)

    def shares(self, A: Table, B: Table, unknown: Unknown = "centroid") -> dict[str, np.ndarray]:
        """Each column's share in what adds up between row i of A and row i of B.

        Where columns are mixed (summed, or through a transformer) a share may be negative: the
        column's difference points against the total one.

        Parameters
        ----------
        A, B : Table
            The rows.
        unknown : {"centroid", "error"}
            What becomes of a value that was not seen in fit.
        """
        parts = self.parts()
        if parts != [self]:
            return added(part.shares(A, B, unknown) for part in parts)
        if self.is_looked_up(A, B):
            (one, rows), (other, others) = (self._locate_rows(x, unknown) for x in (A, B))
            shares = one.take(rows).opposite(other.take(others))
            return added([{self.names[0]: shares}, self.gaps(A), self.gaps(B)])
        brought, others = (self.split(rows, unknown) for rows in (A, B))
        differences = {name: brought[name] - others[name] for name in brought}
        total = np.sum(list(differences.values()), axis=0)
        towards = np.sign(total) if self.power == 1 else total
        out = {name: (difference * towards).sum(axis=1) for name, difference in differences.items()}
        return added([out, self.gaps(A), self.gaps(B)])

    # -- values ----------------------------------------------------------------------------

    def points(self, column: Codes | Sets, unknown: Unknown = "centroid") -> np.ndarray:
        """The coordinates of a column's labels, and those of an unknown value last."""
        raise TypeError(f"expected a space of one column of values, got {type(self).__name__}")

    def locate(self, column: Codes | Sets, unknown: Unknown = "centroid") -> Labels:
        """A column's labels, as they are compared."""
        return LabelPoints(self.points(column, unknown)[:-1], self.label_gaps(column), self.power)

    def is_looked_up(self, *tables: Table) -> bool:
        """Whether rows of these tables are compared by :meth:`locate`: each has one."""
        return self.by_value and not any(table[self.names[0]].is_set for table in tables)

    def pairs(self, column: Codes | Sets) -> np.ndarray:
        """What adds up between any two labels of a column."""
        labels = self.locate(column)
        return labels.between(labels) + labels.gaps[:, None] + labels.gaps


class Joined(Space):
    """Spaces side by side: coordinates follow each other, distances add up.

    Parameters
    ----------
    spaces : iterable of Space
        The spaces, all of one ``power``.
    """

    names: list[str]
    width: int

    def __init__(self, spaces: Iterable[Space]) -> None:
        self.spaces = list(spaces)
        self.names = list(dict.fromkeys(name for space in self.spaces for name in space.names))
        self.width = sum(space.width for space in self.spaces)
        kinds = {(space.power, space.root) for space in self.spaces} or {(2, True)}
        if len(kinds) > 1:
            raise ValueError(f"expected spaces of one power, got {self.spaces}")
        ((self.power, self.root),) = kinds

    def writer(self, table: Table, dtype: np.dtype, unknown: Unknown) -> Writer:
        """Let each space write its coordinates beside those of the one before."""
        writers = [space.writer(table, dtype, unknown) for space in self.spaces]
        return row_writer(writers, [space.width for space in self.spaces])

    def feature_names(self) -> list[str]:
        """The names of all coordinates."""
        return [name for space in self.spaces for name in space.feature_names()]

    def export(self, unknown: Unknown = "centroid") -> list[Step]:
        """The steps of all spaces."""
        return [step for space in self.spaces for step in space.export(unknown)]

    def parts(self) -> list[Space]:
        """The parts of all spaces."""
        return [part for space in self.spaces for part in space.parts()]

    def gaps(self, table: Table) -> dict[str, np.ndarray]:
        """What missing cells add in all spaces."""
        return added(space.gaps(table) for space in self.spaces)

    def only(self, names: Iterable[str]) -> Space | None:
        """What is left of the spaces."""
        chosen = list(names)
        parts = [part for space in self.spaces if (part := space.only(chosen)) is not None]
        return Joined(parts) if parts else None

    def summands(
        self, A: Table, B: Table | None = None, unknown: Unknown = "centroid"
    ) -> np.ndarray:
        """The sum over spaces of what adds up."""
        return self._sum(A, B, (space.summands(A, B, unknown) for space in self.spaces))

    def kernel(self, A: Table, B: Table | None = None, unknown: Unknown = "centroid") -> np.ndarray:
        """The sum over spaces of their inner products."""
        return self._sum(A, B, (space.kernel(A, B, unknown) for space in self.spaces))

    def _sum(self, A: Table, B: Table | None, parts: Iterable[np.ndarray]) -> np.ndarray:
        out = np.zeros((A.n_rows, A.n_rows if B is None else B.n_rows))
        for one in parts:
            out += one
        return out


class Summed(Space):
    """Spaces on top of each other: coordinates add up, as those of a projection do.

    Parameters
    ----------
    spaces : iterable of Space
        The spaces, each of its own columns, all of one width.
    title : str
        What the coordinates are called, followed by a number.
    """

    names: list[str]
    width: int

    def __init__(self, spaces: Iterable[Space], title: str = "dim") -> None:
        self.spaces = list(spaces)
        self.title = title
        self.names = list(dict.fromkeys(name for space in self.spaces for name in space.names))
        widths = {space.width for space in self.spaces}
        if len(widths) != 1:
            raise ValueError(f"expected spaces of one width, got {sorted(widths)}")
        (self.width,) = widths

    def writer(self, table: Table, dtype: np.dtype, unknown: Unknown) -> Writer:
        """Add up what the spaces write."""
        first, *others = (space.writer(table, dtype, unknown) for space in self.spaces)

        def write(rows: slice, out: np.ndarray) -> None:
            first(rows, out)
            more = np.empty_like(out) if others else out
            for one in others:
                one(rows, more)
                out += more

        return write

    def feature_names(self) -> list[str]:
        """A number for each coordinate."""
        return [f"{self.title}{i}" for i in range(self.width)]

    def export(self, unknown: Unknown = "centroid") -> list[Step]:
        """The sum of the spaces' steps."""
        steps: list[Lookup | Line] = []
        for step in (step for space in self.spaces for step in space.export(unknown)):
            steps += step.steps if isinstance(step, Sum) else (step,)
        return [Sum(tuple(steps))]

    def only(self, names: Iterable[str]) -> Space | None:
        """The sum of what is left."""
        chosen = list(names)
        parts = [part for space in self.spaces if (part := space.only(chosen)) is not None]
        return Summed(parts, self.title) if len(parts) > 1 else parts[0] if parts else None

    def split(self, table: Table, unknown: Unknown = "centroid") -> dict[str, np.ndarray]:
        """What each column adds."""
        return added(space.split(table, unknown) for space in self.spaces)

    def gaps(self, table: Table) -> dict[str, np.ndarray]:
        """What missing cells add in all spaces."""
        return added(space.gaps(table) for space in self.spaces)


def total_gaps(space: Space, table: Table) -> np.ndarray | None:
    """What the missing cells of each row add to its squared distances; None for nothing."""
    parts = list(space.gaps(table).values())
    return np.sum(parts, axis=0) if parts else None


def added(shares: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The sum of shares by column: a column may have several spaces."""
    out: dict[str, Any] = {}
    for part in shares:
        for name, share in part.items():
            out[name] = out[name] + share if name in out else share
    return out


def label_column(labels: Iterable[Label]) -> Codes:
    """Labels as a column without rows, for what is asked of labels alone."""
    return Codes(np.zeros(0, np.uint8), list(labels))


# -- steps: what other systems can do -------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Lookup:
    """A column of values: a row for each, and what becomes of those that are missing or unknown.

    None instead of a row says that such values are refused. The elements of a set get the mean of
    their rows.
    """

    column: str
    labels: tuple[Label, ...]  # without missing
    rows: np.ndarray
    missing: np.ndarray | None
    unknown: np.ndarray | None

    @property
    def width(self) -> int:
        """Number of coordinates."""
        return int(self.rows.shape[1])


@dataclass(frozen=True, eq=False)
class Line:
    """A column of numbers: one coordinate ``(x - mean) * factor``, or curves with knots.

    ``rows`` are the points of the curves at the ``knots``; they are straight between two knots, and
    go on beyond the outer ones. ``missing`` is what a missing number becomes; None if it is
    refused.
    """

    part: str
    mean: float
    factor: float
    missing: np.ndarray | None
    knots: np.ndarray | None = None
    rows: np.ndarray | None = None

    @property
    def column(self) -> str:
        """The column."""
        return column_of(self.part)

    @property
    def width(self) -> int:
        """Number of coordinates."""
        return 1 if self.rows is None else int(self.rows.shape[1])


@dataclass(frozen=True, eq=False)
class Sum:
    """Steps whose coordinates are added up."""

    steps: tuple[Lookup | Line, ...]

    @property
    def width(self) -> int:
        """Number of coordinates."""
        return self.steps[0].width


Step = Lookup | Line | Sum


# -- vectors of other embedders -------------------------------------------------------------------

# How the names of columns begin that hold the vectors of other embedders.
HIDDEN = "\0"


class Vectors(Space):
    """What an embedder of another package made of each row, kept as columns of numbers."""

    names: list[str]
    width: int

    def __init__(self, names: list[str]) -> None:
        self.names = names
        self.width = len(names)

    def writer(self, table: Table, dtype: np.dtype[Any], unknown: Unknown) -> Writer:
        """Read the columns."""
        vectors = np.stack([table[name].values for name in self.names], axis=1)

        def write(rows: slice, out: np.ndarray) -> None:
            out[:] = vectors[rows]

        return write

    def feature_names(self) -> list[str]:
        """The columns."""
        return self.names

    def export(self, unknown: Unknown = "centroid") -> list[Step]:
        """Raise: how they were computed is not recorded."""
        raise ValueError("expected an embedder of tabweave, got vectors of another")

    def only(self, names: Iterable[str]) -> Space | None:
        """Raise: which column brings what is not recorded."""
        raise ValueError(
            "the embedder does not say which column its coordinates come from, so a row needs all "
            "columns; index with an embedder of tabweave to search by some of them"
        )

    def split(self, table: Table, unknown: Unknown = "centroid") -> dict[str, np.ndarray]:
        """All columns as one."""
        return {"(all columns)": self.coordinates(table, unknown=unknown)}


class VectorSpace(Space):
    """The vectors of a space, compared by a distance of your own; nothing else counts.

    Parameters
    ----------
    space : Space
        What gives the vectors.
    power : {1, 2}
        Manhattan or Euclidean distance.
    """

    names: list[str]
    width: int

    def __init__(self, space: Space, power: int) -> None:
        self.space = space
        self.names, self.width = list(space.names), space.width
        self.power, self.root = power, power == 2

    @property
    def by_value(self) -> bool:
        """Whether there is one column of values."""
        return self.space.by_value

    def writer(self, table: Table, dtype: np.dtype[Any], unknown: Unknown) -> Writer:
        """Write the vectors."""
        return self.space.writer(table, dtype, unknown)

    def feature_names(self) -> list[str]:
        """Those of the vectors."""
        return self.space.feature_names()

    def export(self, unknown: Unknown = "centroid") -> list[Step]:
        """The steps of the vectors."""
        return self.space.export(unknown)

    def parts(self) -> list[Space]:
        """The vectors of each part."""
        parts = self.space.parts()
        return [self] if parts == [self.space] else [VectorSpace(p, self.power) for p in parts]

    def only(self, names: Iterable[str]) -> Space | None:
        """The vectors of what is left."""
        part = self.space.only(names)
        return None if part is None else VectorSpace(part, self.power)

    def split(self, table: Table, unknown: Unknown = "centroid") -> dict[str, np.ndarray]:
        """What each column brings to the vectors."""
        return self.space.split(table, unknown)

    def points(self, column: Codes | Sets, unknown: Unknown = "centroid") -> np.ndarray:
        """The vectors of a column's labels."""
        return self.space.points(column, unknown)


def given_names(schema: Schema) -> list[str]:
    """Columns as they were given, without those that hold vectors."""
    return [name for name in schema.names if not name.startswith(HIDDEN)]


# -- as notebooks show them: the share of each column, distances between values -------------------


class Explanation(dict[str, float]):
    """Each column's share in a distance: a dict, which notebooks show as bars.

    Examples
    --------
    >>> from tabweave import OneHot
    >>> found = OneHot().fit({"a": list("xy"), "b": list("pp")}).explain(["x", "p"], ["y", "p"])
    >>> found, "color-mix" in found._repr_html_()
    ({'a': 2.0, 'b': 0.0}, True)
    """

    def _repr_html_(self) -> str:
        total = sum(abs(share) for share in self.values()) or 1.0
        rows = sorted(self.items(), key=lambda item: -item[1])
        cells = [[name, share, f"{share / total:.0%}"] for name, share in rows]
        return html_table(
            f"What each column adds; together {sum(self.values()):.4g}",
            ["column", "adds", "share"],
            cells,
            lambda i, j: max(0.0, rows[i][1] / total) if j == 2 else None,
        )


def labelled(distances: np.ndarray, name: str, labels: Sequence[Label]) -> Any:
    """Distances between values as a pandas frame, shaded in notebooks."""
    pandas = require("pandas", "frames")
    index = pandas.Index(labels, dtype=object, name=name)
    frame = pandas.DataFrame(distances, index=index, columns=index)
    object.__setattr__(frame, "_repr_html_", partial(_shaded, frame))  # of this frame, not of parts
    return frame


def _shaded(frame: Any, most: int = 30) -> str:
    values = frame.to_numpy()[:most, :most]
    far = max(float(values.max(initial=0.0)), 1e-300)
    names = ["missing" if label is None else str(label) for label in frame.index[:most]]
    more = f", the first {most}" if len(frame) > most else ""
    return html_table(
        f"Distances between the values of {frame.index.name}{more}; dark is far",
        ["", *names],
        [[name, *map(float, row)] for name, row in zip(names, values, strict=True)],
        lambda i, j: values[i, j - 1] / far if j else None,
    )
