"""Column and Schema: what is declared, or was found, of the columns of a table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple

from tabweave._compat import html_table
from tabweave.columns.cells import Bins, Cells, kind_of, kinds_with
from tabweave.columns.datetime import CLOCK, DATE_ORDERS, PERIODS
from tabweave.columns.decision import Finding, Kind, Question
from tabweave.columns.nominal import check_spelling
from tabweave.columns.ordinal import checked_levels
from tabweave.columns.texts import PANDAS_MISSING_WORDS
from tabweave.columns.vocabulary import Label
from tabweave.io.register import KINDS, storable


@storable
class Origin(NamedTuple):
    """What made a column what it is."""

    why: str = ""  # in words
    inferred: bool = False  # whether rules say so
    position: int | None = None  # where the column was before it was dropped
    question: Question = ""  # what only the user knows of it
    delimiter: str = ""  # of what may be lists
    unreadable: tuple[tuple[str, int], ...] = ()  # values read as missing, and their cells


@storable
@dataclass(frozen=True)
class Column:
    """The kind of one column, and how its cells are written.

    Parameters
    ----------
    name : str
        Its name; arrays have ``x0``, ``x1``, ...
    kind : {"nominal", "ordinal", "numeric", "datetime", "set"}, default="nominal"
        How its cells are read. Numbers of a datetime column are seconds since 1970, unless all
        are dates such as 20240131.
    levels : sequence, optional
        The order of an ordinal column's values, lowest first.
    delimiter : str, optional
        What separates the elements of a set written as text; by default the one of ``; | ,`` that
        most of its values have, if few elements make them up. Lists in brackets, as JSON and Python
        write them, need none.
    format : str, optional
        How cells are written. Of a datetime column: the time zone by whose clock it is read, such
        as "Europe/Berlin"; "local" takes each cell by its own offset; "clock" says that cells are
        times of day without a date; the order of day, month and year in text that is no ISO text:
        "mdy", "dmy" or "ymd", which also reads digits such as 20240131; or "period" for months,
        quarters and weeks such as 2024-03, Q1 2024 or 2024-W05. Of a numeric column: the decimal
        mark of numbers in text, and their unit behind it, as in ".km"; ":" says that they are
        durations, such as 36:10:05. What is left open is found from the cells.
    spelling : bool, callable or object with ``transform``, optional
        Whether :class:`~tabweave.Weave` also compares values by how they are spelled; by default
        if there are more than 129, at least half of them text, codes of digits too. An encoder of
        your own (a list of strings in, an array with a row for each out) replaces the n-grams,
        e.g. for sentences.
    missing : {"expected", "value"}, optional
        What a missing cell is to a distance: "expected" puts it at its expected distance from every
        cell of the column, another missing one included; for "value", it is one more value, and two
        missing cells agree. If not given, the schema says.
    origin : Origin
        What was found when the column was read: see :attr:`why`, :attr:`inferred`,
        :attr:`position`, :attr:`question`.

    Examples
    --------
    >>> from tabweave import Column, Table
    >>> rows = {"size": ["L", "S", "L"], "tags": ["new; red", "old", ""]}
    >>> size = Column("size", "ordinal", levels=["S", "M", "L"])
    >>> table = Table.of(rows, {"size": size, "tags": Column("tags", "set", delimiter=";")})
    >>> table.schema["size"].levels, table["tags"].labels
    (('S', 'M', 'L'), ['new', 'old', 'red'])
    """

    name: str
    kind: Kind = "nominal"
    levels: tuple[Label, ...] | None = None
    delimiter: str | None = None
    format: str | None = None
    spelling: Any = None
    missing: Literal["expected", "value"] | None = None
    origin: Origin = field(default=Origin(), compare=False, repr=False)

    @property
    def zone(self) -> str | None:
        """The time zone of datetimes."""
        return self.format if self.kind == "datetime" and self.date_order is None else None

    @property
    def date_order(self) -> str | None:
        """The order of day, month and year in dates that are not ISO text, such as "mdy".

        Of months, quarters and weeks it is "period".
        """
        dated = self.kind == "datetime" and self.format in (*DATE_ORDERS, PERIODS)
        return self.format if dated else None

    @property
    def is_clock(self) -> bool:
        """Whether it holds times of day, without a date."""
        return self.zone == CLOCK

    @property
    def decimal(self) -> str | None:
        """The decimal mark of numbers that are written as text; ":" of durations."""
        return self.format[:1] if self.kind == "numeric" and self.format else None

    @property
    def unit(self) -> str:
        """The unit that follows each number that is written as text."""
        return self.format[1:] if self.kind == "numeric" and self.format else ""

    @property
    def why(self) -> str:
        """Why the column is read as it is; see :meth:`Table.kinds`."""
        return self.origin.why

    @property
    def inferred(self) -> bool:
        """Whether the kind was inferred."""
        return self.origin.inferred

    @property
    def position(self) -> int | None:
        """Where the column was before it was dropped."""
        return self.origin.position

    @property
    def question(self) -> Question:
        """What the user should check about the column; empty if nothing."""
        return self.origin.question

    def finding(self, *, kept: bool = True) -> Finding:
        """What the column was found to be; see :meth:`Table.kinds`."""
        why, _, _, question, delimiter, unreadable = self.origin
        return Finding(
            self.name, self.kind, why or self.kind, kept, question, delimiter, unreadable
        )

    @property
    def cells_type(self) -> type[Cells]:
        """The class of its kind: what can be said of the cells without having them."""
        return kind_of(self.kind)

    @property
    def is_continuous(self) -> bool:
        """Whether its cells are numbers."""
        return self.cells_type.is_continuous

    @property
    def is_dated(self) -> bool:
        """Whether its cells are points of time."""
        return self.cells_type.is_dated

    @property
    def is_ordered(self) -> bool:
        """Whether its values have an order."""
        return self.cells_type.is_ordered

    @property
    def is_set(self) -> bool:
        """Whether a cell has any number of values."""
        return self.cells_type.is_set

    @property
    def is_read(self) -> bool:
        """Whether text stands for the numbers of its cells: dates, amounts of money."""
        return self.is_dated or self.decimal is not None

    @cached_property
    def parts(self) -> dict[str, Bins | None]:
        """What is counted of it, and in which bins; values in none."""
        return self.cells_type.parts(self)

    @property
    def has_values(self) -> bool:
        """Whether its values are counted, not numbers in bins."""
        return None in self.parts.values()

    def __post_init__(self) -> None:
        try:
            options = kind_of(self.kind).options
        except (KeyError, TypeError):
            raise ValueError(
                f"column {self.name!r}: expected one of {', '.join(KINDS)}, got {self.kind!r}"
            ) from None
        for option in ("delimiter", "levels", "spelling"):
            if getattr(self, option) not in (None, False) and option not in options:
                verb = "are" if option == "levels" else "is"
                raise ValueError(
                    f"column {self.name!r}: {option} {verb} for columns of kind "
                    f"{kinds_with(option)}"
                )
        if self.delimiter is not None and not (isinstance(self.delimiter, str) and self.delimiter):
            raise ValueError(
                f"column {self.name!r}: expected a text as delimiter, got {self.delimiter!r}"
            )
        if self.spelling is not None:
            check_spelling(self.name, self.spelling)
        if self.missing not in (None, "expected", "value"):
            raise ValueError(
                f"column {self.name!r}: expected missing to be 'expected' or 'value', got "
                f"{self.missing!r}"
            )
        if self.levels is not None:
            object.__setattr__(self, "levels", checked_levels(self.name, self.levels))


@storable
@dataclass(frozen=True)
class Schema:
    """The kinds of the columns of a table, and what counts as missing.

    A schema given by a user may declare only some of the columns; the others are inferred. The
    schema of a :class:`Table` is complete. Wherever a schema is taken, the name of a kind stands
    for one under which all columns are of that kind: ``schema="nominal"``.

    Parameters
    ----------
    columns : mapping of name to kind or Column, or sequence of Column, optional
        The columns that are declared.
    missing : {"expected", "value", "error"}, default="expected"
        What a missing cell is to a distance, unless its column says so: see :class:`Column`; or
        "error", and missing cells are refused.
    empty_is_missing : bool, default=False
        Whether empty text counts as missing.
    missing_words : "pandas" or sequence of str, default=()
        Words that count as missing among categories and elements of sets: those that
        ``pandas.read_csv`` takes for missing, or others. Beside numbers and dates such words are
        missing without it.
    undeclared : {"inferred", "ignored"} or a kind, default="inferred"
        What all other columns are: of a kind that is inferred, or of this one; or they are ignored,
        as under the schema of a table.

    Attributes
    ----------
    named : bool
        Whether columns have names; those of an array are found by position.
    dropped : tuple of Column
        Columns that were dropped, and why.
    coupled : bool
        Whether values are counted in pairs; not where there are too many columns for that.

    Examples
    --------
    >>> from tabweave import Column, Schema
    >>> Schema({"size": Column("size", "ordinal", levels=("S", "M", "L"))}).columns[0].levels
    ('S', 'M', 'L')
    >>> Schema({"age": "numeric"}, undeclared="nominal").undeclared
    'nominal'
    """

    columns: tuple[Column, ...] = ()
    missing: Literal["expected", "value", "error"] = "expected"
    empty_is_missing: bool = False
    missing_words: Any = ()
    undeclared: Literal["inferred", "ignored"] | Kind = field(default="inferred", kw_only=True)
    named: bool = field(default=True, kw_only=True)
    dropped: tuple[Column, ...] = field(default=(), kw_only=True, compare=False)
    coupled: bool = field(default=True, kw_only=True)

    def _repr_html_(self) -> str:
        rows = [[c.name, c.kind, ", ".join(map(str, c.levels or ()))] for c in self.columns]
        return html_table(f"{len(self.columns):,} columns", ["column", "kind", "levels"], rows)

    def __post_init__(self) -> None:
        columns: Any = self.columns
        if isinstance(columns, Mapping):
            columns = [_declared(name, kind) for name, kind in columns.items()]
        if isinstance(columns, str) or not isinstance(columns, Iterable):
            raise TypeError(f"schema: expected a mapping of column name to kind, got {columns!r}")
        object.__setattr__(self, "columns", tuple(columns))
        for column in self.columns:
            if not isinstance(column, Column):
                raise TypeError(
                    f"schema: expected {{{column!r}: kind}}, got {column!r} without a kind"
                )
        if self.missing_words == "pandas":
            object.__setattr__(self, "missing_words", PANDAS_MISSING_WORDS)
        if isinstance(self.missing_words, str):
            raise ValueError(
                f"expected missing_words to be 'pandas' or a sequence of words, got "
                f"{self.missing_words!r}"
            )
        object.__setattr__(self, "missing_words", tuple(self.missing_words))
        if self.missing not in ("expected", "value", "error"):
            raise ValueError(
                f"expected missing to be 'expected', 'value' or 'error', got {self.missing!r}"
            )
        if self.undeclared not in ("inferred", "ignored", *KINDS):
            raise ValueError(
                f"schema: expected one of {', '.join(KINDS)} as the kind of all columns that are "
                f"not declared, got {self.undeclared!r}"
            )
        check_distinct(self.names)

    @classmethod
    def of(cls, schema: Schema | Mapping[Any, Any] | str | None) -> Schema:
        """A schema from None, a mapping of column to kind, the kind of all columns, or a schema."""
        if schema is None:
            return cls()
        if isinstance(schema, str):
            return cls(undeclared=schema)
        return schema if isinstance(schema, Schema) else cls(schema)  # type: ignore[arg-type]

    @cached_property
    def names(self) -> list[str]:
        """The names of the columns, in order."""
        return [column.name for column in self.columns]

    @property
    def categorical(self) -> list[Column]:
        """The columns that have values: nominal, ordinal and set."""
        return [column for column in self.columns if column.has_values]

    @property
    def numeric(self) -> list[Column]:
        """The columns that have numbers: numeric and datetime."""
        return [column for column in self.columns if not column.has_values]

    @property
    def given(self) -> list[str]:
        """The names of all columns given, including those that are dropped."""
        names = [*self.names]
        for column in self.dropped:
            names.insert(column.position or 0, column.name)
        return names

    def fields(self, name: str) -> list[str]:
        """The columns that a name stands for: the fields of a record, or just itself."""
        names = self.given
        within = [field for field in names if field.startswith(f"{name}.")]
        return [name] if name in names or not within else within

    @cached_property
    def parts(self) -> dict[str, Column]:
        """What is counted, and of which column."""
        return {part: column for column in self.columns for part in column.parts}

    @cached_property
    def bins(self) -> dict[str, Bins]:
        """The parts that are counted in bins, and how."""
        bins = {part: column.parts[part] for part, column in self.parts.items()}
        return {part: edges for part, edges in bins.items() if edges is not None}

    @cached_property
    def bucketed(self) -> list[str]:
        """The parts that are counted in buckets, which follow from their numbers."""
        return [part for part, bins in self.bins.items() if bins.edges is None]

    def __len__(self) -> int:
        return len(self.columns)

    @cached_property
    def _index(self) -> dict[str, int]:
        return {column.name: i for i, column in enumerate(self.columns)}

    def index(self, name: str) -> int:
        """The index of a column."""
        try:
            return self._index[name]
        except KeyError:
            named = ", ".join(map(repr, self.names))
            raise KeyError(f"no column {name!r}; there are {named}") from None

    def __contains__(self, name: object) -> bool:
        return name in self._index

    def __getitem__(self, name: str) -> Column:
        return self.columns[self.index(name)]

    @property
    def complete(self) -> bool:
        """Whether all columns are declared, as in the schema of a table: others are ignored."""
        return self.undeclared == "ignored"

    def declares(self, name: str) -> bool:
        """Whether it says of what kind a column is."""
        return self.undeclared in KINDS or name in self

    def over(self, names: Iterable[str]) -> Schema:
        """The schema of a table of these columns: one kind for all of them declares each."""
        if self.undeclared not in KINDS:
            return self
        others = [Column(name, self.undeclared) for name in names if name not in self]
        return replace(self, columns=(*self.columns, *others), undeclared="inferred")

    def select(self, names: Sequence[str]) -> Schema:
        """The schema of some columns, in the order given."""
        return replace(self, columns=tuple(self[name] for name in names), dropped=())


def _declared(name: Any, kind: Any) -> Column:
    name = f"x{name}" if isinstance(name, int) else name
    return replace(kind, name=name) if isinstance(kind, Column) else Column(name, kind)


def check_distinct(names: Sequence[str]) -> None:
    """Refuse two columns of the same name."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise ValueError(
                f"expected columns of different names, got {name!r} twice; rename or drop one"
            )
        seen.add(name)
