"""Vocabulary: the values of a table's columns, in one canonical form and order.

A label is a ``str``, ``int``, ``float``, ``bool``, ``bytes`` or ``None`` (missing). The same value
gets the same label whatever library, dtype or chunk it came from: ``1``, ``np.int8(1)`` and ``1.0``
are one label, ``"1"`` and ``True`` are two others. Labels are ordered by type, then by value, and
missing comes last, so a vocabulary never depends on the order of arrival. What a column of too
many values does not keep falls into a :class:`Bucket`, a label of a separate type.
"""

from __future__ import annotations

import datetime as dt
import decimal
import math
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, repeat
from typing import Any, Literal, cast
from zlib import crc32

import numpy as np

from tabweave._compat import in_threads
from tabweave.columns.texts import CellError
from tabweave.io.register import storable

Label = str | int | float | bool | bytes | None
Unknown = Literal["centroid", "error"]
BLOCK_CODES = 1 << 16  # Codes that are looked up at a time.


@storable
class Bucket(str):
    """The label of the values that a column does not keep: one for all, or one of several.

    It reads like text, but equals no text of the data.

    Parameters
    ----------
    number, total : int
        Which of how many buckets it is.

    Examples
    --------
    >>> Bucket(), Bucket(3, 64), Bucket() == "⟨other⟩"
    ('⟨other⟩', '⟨other 3/64⟩', False)
    """

    number: int
    total: int

    def __new__(cls, number: int = 0, total: int = 1) -> Bucket:
        """A bucket."""
        out = super().__new__(cls, "⟨other⟩" if total == 1 else f"⟨other {number}/{total}⟩")
        out.number, out.total = number, total
        return out

    def __eq__(self, other: object) -> bool:
        return type(other) is Bucket and str.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash((Bucket, str(self)))

    def __reduce__(self) -> tuple[type[Bucket], tuple[int, int]]:
        return Bucket, (self.number, self.total)


Rule = frozenset[tuple[float, Label]] | int  # the values that are kept, or a number of buckets
_RANKS: dict[type, float] = {
    bool: 0,
    int: 1,
    float: 1,
    str: 2,
    Bucket: 2.5,
    bytes: 3,
    type(None): 9,
}


@storable
@dataclass(frozen=True, eq=False)
class Vocabulary:
    """The values of each categorical column: value v of column a is ``offsets[a] + v`` of V.

    Parameters
    ----------
    names : tuple of str
        The columns.
    labels : tuple of tuples
        The values of each column.

    Examples
    --------
    >>> from tabweave import Table
    >>> words = Vocabulary(("color", "size"), (("blue", "red"), ("L", "S")))
    >>> words.codes(Table.of({"size": ["S", "XL"], "color": ["red", "blue"]}))
    [array([1, 0], dtype=uint32), array([1, 2], dtype=uint32)]
    >>> words.union(Vocabulary(("color", "size"), (("green",), ("S",)))).labels[0]
    ('blue', 'green', 'red')
    """

    names: tuple[str, ...] = ()
    labels: tuple[tuple[Label, ...], ...] = ()

    @cached_property
    def sizes(self) -> np.ndarray:
        """Number of values of each column."""
        return np.array([len(labels) for labels in self.labels], dtype=np.intp)

    @cached_property
    def offsets(self) -> np.ndarray:
        """Where each column starts among the V values; V comes last."""
        return np.concatenate([[0], np.cumsum(self.sizes)])

    @property
    def n_values(self) -> int:
        """Number of values of all columns together."""
        return int(self.offsets[-1])

    @cached_property
    def buckets(self) -> dict[str, Rule]:
        """The columns that keep some of their values, with the rule that says which."""
        rules = (
            (name, _rule(labels)) for name, labels in zip(self.names, self.labels, strict=True)
        )
        return {name: rule for name, rule in rules if rule is not None}

    def __len__(self) -> int:
        return len(self.names)

    def __contains__(self, name: object) -> bool:
        return name in self._numbers

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Vocabulary):
            return NotImplemented
        if self is other:
            return True
        return self.names == other.names and all(map(_same, self.labels, other.labels))

    __hash__ = None  # type: ignore[assignment]

    # -- columns ---------------------------------------------------------------------------

    @cached_property
    def _words(self) -> dict[str, dict[str, Label]]:
        """The words for bools of the columns that have nothing else."""
        words_of = zip(self.names, map(_words_for_bools, self.labels), strict=True)
        return {name: words for name, words in words_of if words}

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.names)}

    def index(self, column: str | int) -> int:
        """The number of a column, by name or number."""
        if isinstance(column, int | np.integer):
            return range(len(self.names))[column]
        try:
            return self._numbers[column]
        except KeyError:
            raise KeyError(
                f"expected a categorical column, one of {list(self.names)}, got {column!r}"
            ) from None

    def span(self, column: str | int) -> slice:
        """The location of a column's values among the V values."""
        i = self.index(column)
        return slice(int(self.offsets[i]), int(self.offsets[i + 1]))

    def select(self, names: Sequence[str]) -> Vocabulary:
        """The vocabulary of some columns, in the order given."""
        chosen = [self.index(name) for name in names]
        return Vocabulary(tuple(names), tuple(self.labels[i] for i in chosen))

    def describe(self, value: int) -> str:
        """The name of one of the V values, for an error."""
        a = int(np.searchsorted(self.offsets, value, side="right")) - 1
        return f"column {self.names[a]!r}, value {self.labels[a][value - self.offsets[a]]!r}"

    # -- rows ------------------------------------------------------------------------------

    def find(self, table: Any) -> list[Any]:
        """The columns of a table, in the order of this vocabulary."""
        return [table[name] for name in self.names]

    def positions(self, table: Any, unknown: Unknown = "centroid") -> list[np.ndarray]:
        """The code of each label of a table, by column; the number of values if unknown.

        Parameters
        ----------
        table : Table
            Rows whose columns are found by name.
        unknown : {"centroid", "error"}
            Whether a value that is not in the vocabulary is coded behind the last, or an error.
        """
        if unknown not in ("centroid", "error"):
            raise ValueError(f"expected unknown to be 'centroid' or 'error', got {unknown!r}")
        out = []
        for name, labels, column in zip(self.names, self.labels, self.find(table), strict=True):
            index = positions(labels, column.labels)
            if unknown == "error":
                check_seen(name, index == len(labels), column)
            out.append(index)
        return out

    def codes(self, table: Any, unknown: Unknown = "centroid") -> list[np.ndarray]:
        """The codes of a table's single-valued columns; unknown values come last."""
        found = zip(self.positions(table, unknown), self.find(table), strict=True)
        return in_threads(lambda pair: pair[0].astype(np.uint32)[pair[1].codes], list(found))

    def unknown(self, table: Any) -> dict[str, dict[Label, int]]:
        """The values of a table that are not in the vocabulary, and how often they occur.

        Columns without any are left out; of a set-valued column elements are counted.
        """
        present = [name for name in self.names if name in table.schema.names]
        out = {name: _unknown(self.labels[self.index(name)], table[name]) for name in present}
        return {name: cells for name, cells in out.items() if cells}

    def fold(self, table: Any) -> Any:
        """A table with the values that are not kept in their buckets."""
        return fold(table, self.buckets)

    def in_words(self, table: Any) -> Any:
        """A table whose bools are words in the columns that have words for them alone.

        Those are columns of text files: data frames have bools there.
        """
        return _in_words(table, self._words) if self._words else table

    # -- other vocabularies ----------------------------------------------------------------

    def union(self, other: Vocabulary) -> Vocabulary:
        """The values of both, in canonical order."""
        labels = []
        for first, second in zip(self.labels, other.labels, strict=True):
            both = union(first, second)
            labels.append(tuple(both[i] for i in order(both)))
        return Vocabulary(self.names, tuple(labels))

    def reindex(self, other: Vocabulary) -> np.ndarray:
        """Where each of the V values stands in another vocabulary that has them all."""
        parts = [
            start + positions(other_labels, labels)
            for start, other_labels, labels in zip(
                other.offsets, other.labels, self.labels, strict=False
            )
        ]
        return np.concatenate([np.zeros(0, np.intp), *parts])


class OfVocabulary:
    """Mixin of what holds a vocabulary: its names, its labels, and where each column's are."""

    vocabulary: Vocabulary

    @cached_property
    def names(self) -> list[str]:
        """Names of the categorical columns."""
        return list(self.vocabulary.names)

    @cached_property
    def labels(self) -> tuple[tuple[Label, ...], ...]:
        """The values of each categorical column."""
        return self.vocabulary.labels

    @cached_property
    def sizes(self) -> np.ndarray:
        """Number of values of each column."""
        return self.vocabulary.sizes

    @cached_property
    def offsets(self) -> np.ndarray:
        """Where each column starts among the V values; V comes last."""
        return self.vocabulary.offsets

    @cached_property
    def column_of_value(self) -> np.ndarray:
        """The number of the column of each of the V values."""
        return np.repeat(np.arange(len(self.sizes)), self.sizes)

    def span(self, column: str | int) -> slice:
        """The location of a column (name or number) among the V values."""
        return self.vocabulary.span(column)


def _same(a: Sequence[Label], b: Sequence[Label]) -> bool:
    """Whether labels are the same in the same order; ``True`` is not ``1``."""
    return a is b or (len(a) == len(b) and all(map(_identical, a, b)))


def _identical(a: Label, b: Label) -> bool:
    return a == b and _RANKS[type(a)] == _RANKS[type(b)]


def _unknown(labels: Sequence[Label], column: Any) -> dict[Label, int]:
    new = np.flatnonzero(positions(labels, column.labels) == len(labels))
    if not len(new):
        return {}
    n_cells = np.bincount(column.codes, minlength=len(column.labels))
    return {column.labels[i]: int(n_cells[i]) for i in new if n_cells[i]}


def types_of(labels: Iterable[Label]) -> set[str]:
    """Of which types labels are, in words; missing is of every type."""
    return {_TYPES[type(label)] for label in labels if label is not None}


def check_seen(name: str, unseen: np.ndarray, column: Any) -> None:
    """Raise for a value that rows have and the vocabulary has not."""
    if unseen.any():
        occurs = np.bincount(column.codes, minlength=len(unseen))[: len(unseen)] > 0
        for i in np.flatnonzero(unseen & occurs):
            raise ValueError(
                f"column {name!r}: value {column.labels[i]!r} was not seen in fit; fit again "
                f"with it, or use unknown='centroid'"
            )


# -- labels -------------------------------------------------------------------------------------

_TYPES = {bool: "booleans", int: "numbers", float: "numbers", str: "text", bytes: "bytes"}
_TYPES[Bucket] = "buckets"


def canonical(value: Any) -> Label:
    """The label of one value; raise ``TypeError`` for what cannot be a category."""
    if value is None or type(value) in (str, Bucket):
        return cast(Label, value)
    if isinstance(value, np.datetime64 | np.timedelta64):
        if np.isnat(value):
            return None
        value = _as_python(value)
    if isinstance(value, np.longdouble):
        value = float(value)
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, bool | bytes):
        return value
    if isinstance(value, decimal.Decimal):
        value = _from_decimal(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        number = float(value)
        if number != number:
            return None
        return int(number) if number.is_integer() else number
    if type(value).__name__ in ("NAType", "NaTType"):  # pandas, without importing it
        return None
    if isinstance(value, dt.date | dt.time):
        return value.isoformat()
    if isinstance(value, dt.timedelta):
        return _duration(value)
    if isinstance(value, uuid.UUID) or type(value).__name__ in ("Period", "Interval"):
        return str(value)
    raise CellError("a category", value, f" of type {type(value).__name__}")


def _as_python(value: np.datetime64 | np.timedelta64) -> Any:
    """A moment or duration as Python has it, or as text where it has none so fine."""
    unit = np.datetime_data(value.dtype)[0]
    if unit in ("Y", "M"):  # of no fixed length, or no date
        return str(value)
    precision = "D" if unit == "D" and isinstance(value, np.datetime64) else "us"
    moment = value.astype(f"{value.dtype.kind}8[{precision}]")
    python = moment.item()
    return str(value) if moment != value or isinstance(python, int) else python


def _from_decimal(value: decimal.Decimal) -> int | float:
    """Whole numbers exactly, others as float64; none may turn into infinity."""
    if value.is_nan():
        return float("nan")
    if value.is_finite() and abs(value.adjusted()) < 400 and value == value.to_integral_value():
        return int(value)
    number = float(value)
    if math.isinf(number) and value.is_finite():
        raise ValueError(f"{value} is beyond the range of float64")
    return number


def _duration(value: dt.timedelta) -> str:
    """A duration as text, written in one way, whichever library's subclass it is."""
    text = str(dt.timedelta(value.days, value.seconds, value.microseconds))
    nanoseconds = getattr(value, "nanoseconds", 0)
    return f"{text} + {nanoseconds} ns" if nanoseconds else text


def identity(label: Label) -> tuple[float, Label]:
    """Key under which labels are equal; ``True == 1`` in Python, so the type takes part."""
    return _RANKS[type(label)], label


def order(labels: Sequence[Label], levels: Sequence[Label] | None = None) -> np.ndarray:
    """The permutation that sorts labels: by level if given, else canonically."""
    keys: list[Any]
    if levels is not None:
        index = {identity(level): i for i, level in enumerate(levels)}
        # Missing is no level; it goes last, as everywhere.
        keys = [index.get((_RANKS[type(v)], v), len(index)) for v in labels]
    elif set(map(type, labels)) == {str}:
        keys = list(labels)
    else:
        keys = [(_RANKS[type(v)], v) for v in labels]
    return np.array(sorted(range(len(labels)), key=keys.__getitem__), dtype=np.intp)


def positions(labels: Sequence[Label], queries: Iterable[Label]) -> np.ndarray:
    """Where each queried label stands among labels; ``len(labels)`` if nowhere."""
    queries = list(queries)
    if not _is_text(labels, queries):
        labels, queries = list(map(identity, labels)), list(map(identity, queries))  # type: ignore
    index = dict(zip(labels, range(len(labels)), strict=True))
    nowhere = repeat(len(index))
    return np.fromiter(map(index.get, queries, nowhere), np.intp, len(queries))


def union(*vocabularies: Sequence[Label]) -> list[Label]:
    """Every label of several vocabularies once, in order of first appearance."""
    if _is_text(*vocabularies):
        return list(dict.fromkeys(chain.from_iterable(vocabularies)))
    return [
        label for _, label in dict.fromkeys(identity(v) for labels in vocabularies for v in labels)
    ]


def _is_text(*vocabularies: Sequence[Label]) -> bool:
    """Whether labels are text or missing only, which Python itself tells apart."""
    return set(map(type, chain.from_iterable(vocabularies))) <= {str, type(None)}


def code_type(n_labels: int) -> np.dtype:
    """The smallest unsigned integer type that can number ``n_labels`` labels."""
    for candidate in (np.uint8, np.uint16, np.uint32):
        if n_labels <= np.iinfo(candidate).max + 1:
            return np.dtype(candidate)
    return np.dtype(np.uint64)


def slices(n: int, width: int, cells: int) -> list[slice]:
    """Slices of n rows of ``width`` cells, each of at most ``cells``, and of one row at least."""
    step = max(cells // max(width, 1), 1)
    return [slice(start, min(start + step, n)) for start in range(0, n, step)]


def take(table: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """``table[codes]``, looked up in blocks, so that only the result is as long as the column."""
    out = np.empty(len(codes), dtype=table.dtype)
    for part in slices(len(codes), 1, BLOCK_CODES):
        np.take(table, codes[part], out=out[part], mode="clip")
    return out


# -- buckets ------------------------------------------------------------------------------------


def _rule(labels: Sequence[Label]) -> Rule | None:
    """How the values of a column were put into buckets, if they were."""
    first_bucket = next((label for label in labels if type(label) is Bucket), None)
    if first_bucket is None:
        return None
    return frozenset(map(identity, labels)) if first_bucket.total == 1 else first_bucket.total


def bucket(label: Label, rule: Rule) -> Label:
    """The label itself, or that of its bucket; missing stays missing."""
    if label is None or type(label) is Bucket:
        return label
    if isinstance(rule, int):
        key = crc32(repr(identity(label)).encode("utf-8", "surrogatepass"))
        return Bucket(key % rule, rule)
    return label if identity(label) in rule else Bucket()


def fold(table: Any, rules: Mapping[str, Rule]) -> Any:
    """A table with the values of some columns in buckets."""
    if not rules:
        return table
    columns = [
        _fold(data, rules[column.name]) if column.name in rules else data for column, data in table
    ]
    return replace(table, columns=tuple(columns))


def _words_for_bools(labels: Sequence[Label]) -> dict[str, Label]:
    """The words for bools of a column that has nothing else, as one of a text file."""
    if len(labels) > 4:
        return {}
    words = {label.lower(): label for label in labels if label and isinstance(label, str)}
    empty = sum(label is None or label == "" for label in labels)
    only_bools = words.keys() <= {"true", "false"} and len(words) + empty == len(labels)
    return cast(dict[str, Label], words) if only_bools else {}


def _in_words(table: Any, words: Mapping[str, Mapping[str, Label]]) -> Any:
    columns = [
        _relabelled(data, [_word(label, words[column.name]) for label in data.labels])
        if column.name in words and bool in map(type, getattr(data, "labels", ()))
        else data
        for column, data in table
    ]
    return replace(table, columns=tuple(columns))


def _word(label: Label, words: Mapping[str, Label]) -> Label:
    return words.get(str(label).lower(), label) if type(label) is bool else label


def _fold(column: Any, rule: Rule) -> Any:
    return _relabelled(column, [bucket(label, rule) for label in column.labels])


def _relabelled(column: Any, names: Sequence[Label]) -> Any:
    """A column with other labels, of which some may be the same."""
    distinct = union(names)
    codes = take(positions(distinct, names).astype(code_type(len(distinct))), column.codes)
    if not column.is_set:
        return replace(column, codes=codes, labels=distinct)
    # Two elements of a set may share a bucket, which then counts once.
    starts, codes = distinct_elements(np.diff(column.starts), codes, len(distinct))
    return replace(column, starts=starts, codes=codes, labels=distinct)


def distinct_elements(
    sizes: np.ndarray | Sequence[int], codes: np.ndarray, n_labels: int
) -> tuple[np.ndarray, np.ndarray]:
    """The starts and codes of sets of some sizes, one after the other, each element once.

    One sorted key per (row, element) drops duplicates and fixes the order within a set.
    """
    row = np.repeat(np.arange(len(sizes)), sizes)
    row, codes = np.divmod(np.unique(row * n_labels + codes), n_labels)
    return np.searchsorted(row, np.arange(len(sizes) + 1)), codes.astype(code_type(n_labels))
