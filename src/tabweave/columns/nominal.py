"""Nominal columns: categories without an order, as codes and labels."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from tabweave.columns.cells import Cells, all_equal, kind
from tabweave.columns.decision import (
    IDENTIFIER,
    MIN_ROWS_TO_INFER,
    NAMES_OF_ROWS,
    Decision,
    Question,
    is_index,
)
from tabweave.columns.frames import categories, object_array
from tabweave.columns.spelling import is_spelled, is_text
from tabweave.columns.texts import CellError
from tabweave.columns.vocabulary import Label, code_type, identity, order, positions

if TYPE_CHECKING:
    from tabweave.columns.column import Column, Schema
    from tabweave.columns.kinds import TextColumn


@kind("nominal", "categories without an order")
@dataclass(frozen=True, eq=False)
class Codes(Cells):
    """A nominal column: one code a row, and the label of each code."""

    codes: np.ndarray
    labels: list[Label]

    options = ("spelling",)
    holds = "values"

    @classmethod
    def read(cls, cells: Any, column: Column, schema: Schema) -> Self:
        """Codes and labels, words for missing taken out."""
        codes, labels = categories(cells, empty_is_missing=schema.empty_is_missing)
        if schema.missing_words:
            codes, labels = without_words(codes, labels, schema)
        if schema.missing == "error" and None in labels:
            check_no_gaps(codes == labels.index(None))
        return cls(codes, labels)

    @classmethod
    def remedy(cls, column: Column, error: CellError) -> str:
        """Lists are sets; anything else may be written as text."""
        collection = isinstance(error.cell, list | tuple | Set | np.ndarray)
        as_set = ", or declare the column as kind 'set'" * (cls is Codes and collection)
        return f"{super().remedy(column, error)}{as_set}"

    def __len__(self) -> int:
        return len(self.codes)

    def take(self, rows: np.ndarray) -> Self:
        """The codes of some rows; labels stay."""
        return replace(self, codes=self.codes[rows])

    def joined(self, more: Self) -> Self:
        """Codes of both, new labels behind the old ones."""
        labels, index = joined_labels(self.labels, more.labels)
        codes = np.concatenate([self.codes.astype(index.dtype), index[more.codes]])
        return replace(self, codes=codes, labels=labels)

    def cell(self, row: int) -> Label:
        """The label of a cell."""
        return self.labels[int(self.codes[row])]

    def to_numpy(self) -> np.ndarray:
        """The label of each cell."""
        return object_array(self.labels)[self.codes]

    def as_values(self) -> Self:
        """The codes and labels themselves."""
        return self

    @property
    def starts(self) -> np.ndarray:
        """Where the codes of each row begin, and where those of the last one end."""
        return np.arange(len(self) + 1)

    def by_code(self, values: np.ndarray) -> np.ndarray:
        """Values of rows, each for all codes that its row has."""
        return values

    def any_element(self, passing: np.ndarray) -> np.ndarray:
        """Which rows have a code that passes, given which of all codes do."""
        return passing

    @property
    def missing(self) -> np.ndarray:
        """Which cells are missing."""
        if None not in self.labels:
            return np.zeros(len(self.codes), bool)
        return np.asarray(self.codes == self.labels.index(None))

    def is_constant(self) -> bool:
        """Whether there are rows, and all hold the same."""
        return len(self.codes) > 0 and all_equal(self.codes[0], self.codes)

    def ranks(self) -> np.ndarray:
        """The rank of each cell's label."""
        return label_ranks(self.labels)[self.codes]

    def _check_loaded(self) -> None:
        check_codes(self.codes, len(self.labels))


def label_ranks(labels: Sequence[Label]) -> np.ndarray:
    """The rank of each label in canonical order."""
    rank = np.empty(len(labels), np.int64)
    rank[order(labels)] = np.arange(len(labels))
    return rank


def joined_labels(old: list[Label], new: list[Label]) -> tuple[list[Label], np.ndarray]:
    """Old labels with the new ones behind them, and the code of each label of the others."""
    index = positions(old, new)
    absent = np.flatnonzero(index == len(old))
    index[absent] = len(old) + np.arange(len(absent))
    labels = [*old, *(new[i] for i in absent)]
    return labels, index.astype(code_type(len(labels)))


def check_no_gaps(gaps: np.ndarray) -> None:
    """Raise for the first missing cell."""
    if gaps.any():
        raise ValueError(
            f"row {gaps.argmax()} is missing; fill it or use Schema(missing='expected')"
        )


def hardly_repeats(data: Any, min_distinct: float) -> bool:
    """Whether the values of a column, but for missing, are distinct in most rows."""
    seen = np.bincount(data.codes, minlength=len(data.labels))
    if None in data.labels:
        seen[data.labels.index(None)] = 0
    return bool(np.count_nonzero(seen) >= min_distinct * max(seen.sum(), MIN_ROWS_TO_INFER))


def names_of_rows(texts: TextColumn) -> Decision | None:
    """What libraries call the names of rows, if they hardly repeat."""
    named = is_index(texts.name) and texts.hardly_repeat
    return Decision("nominal", NAMES_OF_ROWS, dropped=True) if named else None


def identifiers(texts: TextColumn) -> Decision | None:
    """Words that hardly repeat are dropped, whatever else they may be."""
    if not (is_one_word(texts.labels) and texts.hardly_repeat):
        return None
    return (texts.doubt or Decision("nominal", IDENTIFIER))._replace(dropped=True)


def is_one_word(labels: Sequence[str]) -> bool:
    """Whether most labels have no blank in them: names and sentences are no identifiers."""
    return sum(" " in label.strip() for label in labels) < 0.5 * len(labels)


def spelling_note(column: Column, labels: Sequence[Label]) -> str:
    """What a column of many strings is compared by; empty for others."""
    spelled = column.kind in ("nominal", "set") and column.spelling is not False
    if not spelled or not is_spelled(labels):
        return ""
    if column.why not in ("values", "declared"):
        return f"{column.why}; spelling counts"
    return "sentences: compared by spelling" if is_text(labels) else "many strings: spelling counts"


def near_duplicates(labels: Sequence[Any]) -> tuple[str, Question]:
    """A remark on values that differ only in case, blanks or type, and the question it raises.

    >>> near_duplicates(["Yes", "no", "yes "])
    (", of which 'Yes' and 'yes ' differ only in case or blanks", 'spelling')
    >>> near_duplicates([1, 2, "2"])
    (", of which '2' and 2 differ only in type", 'meaning')
    """
    by_text: dict[str, list[Any]] = {}
    for label in labels[:10_000]:
        if isinstance(label, str | int | float):
            by_text.setdefault(str(label).strip().casefold(), []).append(label)
    key = min((key for key, variants in by_text.items() if len(variants) > 1), default=None)
    if key is None:
        return "", ""
    one, other = sorted(by_text[key], key=repr)[:2]
    remark = f", of which {one!r} and {other!r} differ only in "
    if type(one) is type(other):
        return f"{remark}case or blanks", "spelling"
    return f"{remark}type", "meaning"


def without_words(
    codes: np.ndarray, labels: list[Label], schema: Schema
) -> tuple[np.ndarray, list[Label]]:
    """Codes and labels of a column, the words of a schema being missing."""
    words = set(schema.missing_words).intersection(labels)
    if not words:
        return codes, labels
    relabelled = [None if label in words else label for label in labels]
    distinct = list(dict.fromkeys(map(identity, relabelled)))
    index = {key: i for i, key in enumerate(distinct)}
    table = np.array([index[identity(label)] for label in relabelled], code_type(len(distinct)))
    return table[codes], [label for _, label in distinct]


def check_spelling(name: str, spelling: Any) -> None:
    """Raise for a spelling that says nothing."""
    is_encoder = callable(spelling) or hasattr(spelling, "transform")
    if not (isinstance(spelling, bool) or is_encoder):
        raise TypeError(
            f"column {name!r}: expected spelling to be True, False or an encoder of strings (a "
            f"callable, or an object with transform), got {spelling!r}"
        )


def check_codes(codes: np.ndarray, n_labels: int) -> None:
    """Raise for codes, as read from a file, that no label has: compiled loops trust them."""
    if codes.ndim != 1 or codes.dtype.kind not in "iu":
        raise ValueError(f"expected a column of whole codes, got {codes.shape} {codes.dtype}")
    if len(codes) and not 0 <= int(codes.min()) <= int(codes.max()) < n_labels:
        raise ValueError(f"expected codes of {n_labels} labels, got {codes.min()} to {codes.max()}")
