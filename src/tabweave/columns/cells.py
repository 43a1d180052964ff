"""Cells: what every kind of column can do; a kind is one subclass, in a file of its own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

import numpy as np

from tabweave.columns.frames import object_array
from tabweave.columns.texts import CellError
from tabweave.columns.vocabulary import code_type
from tabweave.io.dialects import Dialect
from tabweave.io.register import KINDS, storable

if TYPE_CHECKING:
    from tabweave.columns.column import Column, Schema
    from tabweave.columns.numeric import Knots

    Counts = Any  # of a room above: kinds only ask it what was counted

CellsType = TypeVar("CellsType", bound=type)
MomentsOf = Callable[[str], tuple[float, float, float]]  # a part: how many, mean, variance


@storable
class Part(str):
    """The name of what is counted of a column beside its values: a cycle of datetimes, bins.

    It reads like text, but equals no text: a column may have any name.

    Parameters
    ----------
    column : str
        The column.
    aspect : str
        What is counted of it.

    Examples
    --------
    >>> part = Part("born", "weekday")
    >>> part, part.column, part == "born (weekday)"
    ('born (weekday)', 'born', False)
    """

    column: str
    aspect: str

    def __new__(cls, column: str, aspect: str) -> Part:
        """The part of a column."""
        out = super().__new__(cls, f"{column} ({aspect})")
        out.column, out.aspect = column, aspect
        return out

    def __eq__(self, other: object) -> bool:
        same = type(other) is Part and (self.column, self.aspect) == (other.column, other.aspect)
        return bool(same)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash((Part, self.column, self.aspect))

    def __reduce__(self) -> tuple[type[Part], tuple[str, str]]:
        return Part, (self.column, self.aspect)


def column_of(part: str) -> str:
    """The column of a part; a name that is no part is a column itself."""
    return part.column if isinstance(part, Part) else part


@dataclass(frozen=True)
class Bins:
    """How numbers are counted: in buckets that follow from them; a subclass may fix the edges."""

    @property
    def edges(self) -> np.ndarray | None:
        """The inner edges; None of buckets."""
        return None


class Cells(ABC):
    """The cells of one column, as its kind holds them.

    A kind of column is a subclass under ``@kind(name, summary)``. Instances hold the cells of a
    column; class methods say what follows from how the column is declared.

    Attributes
    ----------
    options : tuple of str
        What a :class:`~tabweave.Column` of this kind may declare, of ``levels``, ``delimiter`` and
        ``spelling``.
    holds : str
        What a cell holds, as in "numbers"; columns that hold the same can be compared.
    is_continuous : bool
        Whether cells are numbers, in ``values``, which may lie between others.
    is_dated : bool
        Whether these numbers are points of time.
    is_ordered : bool
        Whether cells are values with an order.
    is_set : bool
        Whether a cell has any number of values: row i those of ``codes[starts[i]:starts[i + 1]]``.
    """

    options: ClassVar[tuple[str, ...]] = ()
    holds: ClassVar[str] = "cells of another kind"
    is_continuous: ClassVar[bool] = False
    is_dated: ClassVar[bool] = False
    is_ordered: ClassVar[bool] = False
    is_set: ClassVar[bool] = False

    # -- reading ---------------------------------------------------------------------------

    @classmethod
    @abstractmethod
    def read(cls, cells: Any, column: Column, schema: Schema) -> Self:
        """The cells of a column of any library."""

    @classmethod
    def completed(cls, column: Column, cells: Any) -> Column:
        """The column with what its declaration leaves open and its cells tell."""
        return column

    @classmethod
    def detailed(cls, column: Column, detail: str, cells: Any) -> Column:
        """The column with what a command line says of it beside its kind, as in ``set:;``."""
        raise ValueError(f"expected {column.kind} without more, got {detail!r} behind it")

    @classmethod
    def remedy(cls, column: Column, error: CellError) -> str:
        """What to do about a cell that the column cannot hold."""
        return "; turn it into text or a number"

    # -- counting --------------------------------------------------------------------------

    @classmethod
    def parts(cls, column: Column) -> dict[str, Bins | None]:
        """What is counted of the column: values, or numbers in bins; under its name, or a part."""
        return {column.name: None}

    def numbers(self, part: str) -> np.ndarray:
        """The numbers of a part that is counted in bins."""
        raise KeyError(f"expected a part with numbers, got {part!r}")

    @classmethod
    def shown_parts(cls, column: Column, counts: Counts) -> list[str]:
        """The parts that get coordinates, by what was counted of them."""
        return list(column.parts)

    @classmethod
    def curve(cls, part: str, knots: Knots, moments: MomentsOf) -> np.ndarray:
        """Coordinates at the knots of a part; the mean squared distance of two rows is 1.

        Parameters
        ----------
        part : str
            The part.
        knots : Knots
            The bins of its numbers, as points of a line.
        moments : callable
            How many numbers a part has, their mean and variance.
        """
        raise TypeError(f"expected numbers or grades, got {part!r}, which has values")

    @classmethod
    def sql(cls, part: str, column: Column, cell: str, dialect: Dialect) -> str:
        """What computes the number of a part from a cell in SQL."""
        raise ValueError(f"column {column.name!r}: expected numbers to write in SQL, got values")

    @classmethod
    def period(cls, part: str) -> float | None:
        """After how much the number of a cell repeats in a part: 0 if never; None if it has none.

        ONNX and Parquet take the part from the number: it is what is left over whole periods.
        """
        return None

    # -- cells -----------------------------------------------------------------------------

    @abstractmethod
    def __len__(self) -> int:
        """Number of rows."""

    @abstractmethod
    def take(self, rows: np.ndarray) -> Self:
        """The cells of some rows."""

    @abstractmethod
    def joined(self, more: Self) -> Self:
        """These cells and others below them; codes stay what they are."""

    @abstractmethod
    def cell(self, row: int) -> Any:
        """A cell as Python has it: a label, a number, ISO text, a list; None if missing."""

    def to_numpy(self) -> np.ndarray:
        """The cells as Python has them, in an array."""
        return object_array([self.cell(row) for row in range(len(self))])

    def as_values(self) -> Any:
        """The cells as codes and labels: each distinct one is a label, as it is shown."""
        _, first, codes = np.unique(self.ranks(), return_index=True, return_inverse=True)
        labels = [self.cell(row) for row in first.tolist()]
        return kind_of("nominal")(codes.astype(code_type(len(labels))), labels)  # type: ignore[call-arg]

    @property
    @abstractmethod
    def missing(self) -> np.ndarray:
        """Which cells are missing."""

    @abstractmethod
    def is_constant(self) -> bool:
        """Whether there are rows, and all hold the same."""

    @abstractmethod
    def ranks(self) -> np.ndarray:
        """The rank of each cell among the distinct ones, in canonical order."""


def kind(name: str, summary: str, /) -> Callable[[CellsType], CellsType]:
    """Register a kind of column under a name; saved files may hold its cells.

    Name and summary are written out where the decorator stands: they are also read as text.
    """

    def register(cells: CellsType) -> CellsType:
        return KINDS.add(storable(cells), cells, name, summary)

    return register


@cache
def kind_of(name: str) -> type[Cells]:
    """The class of a kind of column."""
    cells_type: type[Cells] = KINDS[name]
    return cells_type


def kinds_with(option: str) -> str:
    """The kinds of columns that have an option, in words."""
    return " or ".join(repr(name) for name in KINDS if option in kind_of(name).options)


def all_equal(first: Any, rows: np.ndarray) -> bool:
    """Whether all rows equal the first, NaN too; mostly some of those right behind it do not."""
    test: Callable[[np.ndarray], Any] = np.isnan if first != first else first.__eq__
    return bool(test(rows[:1000]).all() and test(rows).all())


def named_error(error: Exception, column: Column) -> Exception:
    """An error that says of which column it speaks, and what to do about a cell."""
    if not isinstance(error, CellError):
        error_type = TypeError if isinstance(error, TypeError) else ValueError
        return error_type(f"column {column.name!r}: {error}")
    remedy = "" if "; " in error.remark else kind_of(column.kind).remedy(column, error)
    return CellError(error.expected, error.cell, error.remark + remedy, column.name)
