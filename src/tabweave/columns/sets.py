"""Set-valued columns: a set of elements in each cell."""

from __future__ import annotations

import ast
import csv
import json
import re
from collections.abc import Sequence, Set
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any, Self
from weakref import WeakKeyDictionary

import numpy as np

from tabweave.columns.cells import Cells, kind, named_error
from tabweave.columns.decision import Decision
from tabweave.columns.frames import categories, infer_kind, is_set_type, object_array, objects
from tabweave.columns.nominal import Codes, check_codes, check_no_gaps, joined_labels, label_ranks
from tabweave.columns.spelling import written
from tabweave.columns.texts import SAMPLED_TEXTS, CellError
from tabweave.columns.vocabulary import Label, canonical, code_type, distinct_elements, order

if TYPE_CHECKING:
    from tabweave.columns.column import Column, Schema
    from tabweave.columns.kinds import TextColumn


_WORD = re.compile(r"\w+")


@kind("set", "sets of elements")
@dataclass(frozen=True, eq=False)
class Sets(Cells):
    """A set-valued column: row i has the elements ``codes[starts[i]:starts[i + 1]]``."""

    starts: np.ndarray
    codes: np.ndarray
    labels: list[Label]

    options = ("delimiter", "spelling")
    holds = "sets"
    is_set = True

    @classmethod
    def read(cls, cells: Any, column: Column, schema: Schema) -> Self:
        """Lists, or text that a delimiter parts."""
        empty = schema.empty_is_missing
        out = cls(*sets(cells, column.delimiter, empty_is_missing=empty))
        if schema.missing_words:
            out = out.without(set(schema.missing_words).intersection(out.labels))
        if schema.missing == "error":
            check_no_gaps(out.missing)
        return out

    @classmethod
    def completed(cls, column: Column, cells: Any) -> Column:
        """The column with what joins the elements of its texts, where that is plain."""
        if column.delimiter is not None or infer_kind(cells) != "nominal":
            return column
        try:
            texts = [label for label in categories(cells)[1] if isinstance(label, str)]
        except (TypeError, ValueError) as error:
            raise named_error(error, column) from error
        return replace(column, delimiter=joined_by(texts) or None)

    @classmethod
    def detailed(cls, column: Column, detail: str, cells: Any) -> Column:
        """The column with its delimiter, as in ``set:;``."""
        return replace(column, delimiter=detail)

    @classmethod
    def remedy(cls, column: Column, error: CellError) -> str:
        """What parts a text may be declared; elements may be written as text."""
        if error.expected != "a set":
            return " as an element; turn such elements into text, or give them columns"
        mark = next((mark for mark in ";|" if mark in str(error.cell)), ",")
        declared = f"Column({column.name!r}, 'set', delimiter={mark!r})"
        in_shell = f"--kind '{column.name}=set:{mark}' in a shell"
        return f"; give lists, or declare what parts a text: {declared}, or {in_shell}"

    def __len__(self) -> int:
        return len(self.starts) - 1

    def take(self, rows: np.ndarray) -> Self:
        """The sets of some rows; labels stay."""
        starts, codes = take_sets(self.starts, self.codes, rows)
        return replace(self, starts=starts, codes=codes)

    def joined(self, more: Self) -> Self:
        """Sets of both, new labels behind the old ones."""
        labels, index = joined_labels(self.labels, more.labels)
        codes = np.concatenate([self.codes.astype(index.dtype), index[more.codes]])
        starts = np.concatenate([self.starts, more.starts[1:] + self.starts[-1]])
        return replace(self, starts=starts, codes=codes, labels=labels)

    def cell(self, row: int) -> list[Label]:
        """The elements of a cell."""
        return [self.labels[c] for c in self.codes[self.starts[row] : self.starts[row + 1]]]

    def as_values(self) -> Self:
        """The sets themselves."""
        return self

    @property
    def missing(self) -> np.ndarray:
        """Which cells are missing; an empty set is none of them."""
        if None not in self.labels:
            return np.zeros(len(self), bool)
        return self.any_element(self.codes == self.labels.index(None))

    def without(self, words: Set[Label]) -> Self:
        """The sets without some elements; one that had only such is missing."""
        if not words:
            return self
        is_word = np.array([label in words for label in self.labels])
        codes, kept, sizes = self.codes.astype(np.int64), ~is_word[self.codes], np.diff(self.starts)
        row = np.repeat(np.arange(len(self)), sizes)
        emptied = (np.bincount(row[kept], minlength=len(self)) == 0) & (sizes > 0)
        labels = [label for label in self.labels if label not in words]
        if emptied.any() and None not in labels:
            labels.append(None)
        index = np.cumsum(~is_word) - 1
        codes = index[codes]
        first = self.starts[:-1][emptied]
        codes[first], kept[first] = labels.index(None) if len(first) else 0, True
        starts = np.append(0, np.cumsum(np.bincount(row[kept], minlength=len(self))))
        codes = codes[kept].astype(code_type(len(labels)))
        return replace(self, starts=starts.astype(self.starts.dtype), codes=codes, labels=labels)

    def is_constant(self) -> bool:
        """Whether there are rows, and all hold the same."""
        sizes = np.diff(self.starts)
        if not len(sizes) or (sizes != sizes[0]).any():
            return False
        cells = np.sort(self.codes.reshape(len(sizes), -1), axis=1)
        return bool((cells == cells[0]).all())

    def ranks(self) -> np.ndarray:
        """The rank of each set, by the ranks of its elements."""
        rank = label_ranks(self.labels)
        row = self.by_code(np.arange(len(self)))
        elements = (np.sort(row * len(rank) + rank[self.codes]) - row * len(rank)).tolist()
        cells = [tuple(elements[a:b]) for a, b in pairwise(self.starts.tolist())]
        ranks = {cell: i for i, cell in enumerate(sorted(set(cells)))}
        return np.array([ranks[cell] for cell in cells], np.int64)

    def by_code(self, values: np.ndarray) -> np.ndarray:
        """Values of rows, each for all elements that its row has."""
        return np.repeat(values, np.diff(self.starts))

    def any_element(self, passing: np.ndarray) -> np.ndarray:
        """Which rows have an element that passes, given which of all elements do."""
        passed = np.concatenate([[0], np.cumsum(passing)])
        return passed[self.starts[1:]] > passed[self.starts[:-1]]

    def _check_loaded(self) -> None:
        check_codes(self.codes, len(self.labels))
        check_offsets(self.starts, len(self.codes))


def list_in_text(text: str) -> list[Any] | None:
    """A list as JSON, Python or PostgreSQL writes one, or a tuple or set; None of other text."""
    text = text.strip()
    if text[:1] + text[-1:] not in ("[]", "()", "{}") or len(text) < 2:
        return None
    for read in (json.loads, ast.literal_eval):
        try:
            out = read(text)
        except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
            continue
        return list(out) if isinstance(out, list | tuple | set) or out == {} else None
    return _array_in_text(text) if text.startswith("{") else None


def _array_in_text(text: str) -> list[Any] | None:
    """The elements of ``{a,"b c",NULL}``, as PostgreSQL writes an array; None of other text."""
    if any(mark in text[1:-1] for mark in "{}:\n"):  # arrays of arrays, and mappings
        return None
    written = csv.reader([text[1:-1]], doublequote=False, escapechar="\\", skipinitialspace=True)
    try:
        parts = next(written, [])
    except csv.Error:
        return None
    return [None if part == "NULL" else part.strip() for part in parts]


VECTORS = "vectors, not sets: split them into columns of numbers"


def are_vectors(data: Any) -> bool:
    """Whether sets are vectors, such as those of a model of text or pairs of coordinates.

    They are equally long, and most of their numbers occur once; some are not whole.
    """
    labels = [label for label in data.labels if label is not None]
    lengths = np.unique(np.diff(data.starts))
    if len(lengths[lengths > 1]) != 1 or 2 * len(labels) < len(data.codes):
        return False
    if not all(isinstance(label, int | float) for label in labels):
        return False
    return any(label != int(label) for label in labels if np.isfinite(label))


def are_lists(labels: Sequence[str]) -> bool:
    """Whether texts are lists in brackets, some of more than one element: no ``{4F2A-11}``."""
    texts = [label for label in labels[:SAMPLED_TEXTS] if label.strip()]
    if not texts or list_in_text(texts[0]) is None:
        return False
    cells = [list_in_text(label) for label in texts]
    return None not in cells and any(len(cell) > 1 for cell in cells if cell)


def joined_by(labels: Sequence[str]) -> str:
    """What joins the elements of lists written as text, few of which make up all of them."""
    if are_lists(labels):  # their commas are part of how they are written
        return ""
    for mark in (";", "|", ","):
        joined = sum(mark in label for label in labels[:SAMPLED_TEXTS])
        if joined >= 5 and 2 * joined >= len(labels[:SAMPLED_TEXTS]):
            elements = {part.strip() for label in labels for part in label.split(mark)}
            if 2 * len(elements) <= len(labels):
                return mark
    return ""


def is_element(part: Any) -> bool:
    """Whether a part of a list can be an element of a set: no list of lists, no mapping."""
    return not isinstance(part, list | tuple | dict | set)


def lists_in_text(texts: TextColumn) -> Decision | None:
    """Sets, if texts are lists by what they are written like, and not all of one length.

    Texts of one length may be pairs, addresses or vectors, in which a position means something.
    """
    labels, mark = texts.labels, ""
    if are_lists(labels):
        cells = [list_in_text(label) for label in labels if label.strip()]
    else:
        mark = joined_by(labels)
        cells = [list(_split(label, mark)) for label in labels] if mark else [None]
    if not all(cell is not None and all(map(is_element, cell)) for cell in cells):
        return None
    if len({len(cell) for cell in cells if cell}) < 2:
        return None
    parted = f", parted at {mark!r}" if mark else ""
    why = f"lists in text{parted}; declare 'nominal' to compare whole texts"
    return Decision("set", why, question="lists", delimiter=mark)


def sets(
    column: Any, delimiter: str | None, *, empty_is_missing: bool = False
) -> tuple[np.ndarray, np.ndarray, list[Label]]:
    """Row starts, element codes and labels of a set-valued column, duplicates removed."""
    if delimiter is not None:
        codes, labels = categories(column, empty_is_missing=empty_is_missing)
        cells = [_split(label, delimiter) for label in labels]
        starts, elements, names = _number_sets(cells, empty_is_missing)
        return *take_sets(starts, elements, codes), names
    if hasattr(column, "to_pylist") or hasattr(column, "to_list"):
        column = objects(column)
    return _number_sets([_as_set(cell) for cell in column], empty_is_missing)


_WORDS: WeakKeyDictionary[Codes, Sets] = WeakKeyDictionary()


def words_of(column: Codes) -> Sets:
    """The words of each label of a column of strings, without case; computed once a column."""
    if column not in _WORDS:
        cells = [sorted(set(_WORD.findall(written(v).casefold()))) for v in column.labels]
        _WORDS[column] = Sets(*_number_sets(cells, empty_is_missing=False))
    return _WORDS[column]


def _split(label: Label, delimiter: str) -> Sequence[Any]:
    if label is None:
        return (None,)
    if isinstance(label, bytes):
        raise CellError(f"text to split at {delimiter!r}", label, "; decode it first")
    return [part.strip() for part in str(label).split(delimiter) if part.strip()]


def _as_set(cell: Any) -> Sequence[Any]:
    if is_set_type(type(cell)) or type(cell).__name__ == "Series":
        return list(cell)
    label = canonical(cell)
    if label is None:
        return (None,)
    listed = list_in_text(label) if isinstance(label, str) else None
    if listed is None:
        raise CellError("a set", cell)
    return listed


def _number_sets(
    cells: Sequence[Sequence[Any]], empty_is_missing: bool
) -> tuple[np.ndarray, np.ndarray, list[Label]]:
    flat = object_array(list(chain.from_iterable(cells)))
    codes, labels = categories(flat, empty_is_missing=empty_is_missing)
    first = order(labels)  # not by appearance: Python's sets come in another order each time,
    codes = np.argsort(first)[codes]  # and the mean of a cell has last digits that depend on it
    sizes = np.array([len(cell) for cell in cells], np.intp)
    return *distinct_elements(sizes, codes, len(labels)), [labels[i] for i in first]


def take_sets(
    starts: np.ndarray, elements: np.ndarray, index: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Some of the sets that lie one after the other, in the order of an index."""
    lengths = np.diff(starts)[index]
    ends = np.concatenate([[0], np.cumsum(lengths)])
    shift = np.repeat(starts[:-1][index] - ends[:-1], lengths)
    return ends, elements[np.arange(ends[-1]) + shift]


def check_offsets(offsets: np.ndarray, end: int) -> None:
    """Raise for offsets, as read from a file, that do not rise from 0 to ``end``."""
    fits = offsets.ndim == 1 and offsets.dtype.kind in "iu" and len(offsets) > 0
    if not (fits and offsets[0] == 0 and offsets[-1] == end and (np.diff(offsets) >= 0).all()):
        raise ValueError(f"expected offsets that rise from 0 to {end}, got others")
