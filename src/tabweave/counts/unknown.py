"""Values that fit has not seen: tallied over all batches of some rows, judged when all were read.

A batch of sorted rows may hold nothing but new values where the rows as a whole hold few. So what
reads rows in batches collects a tally of all of them with :func:`tallying`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from itertools import islice
from typing import Any
from weakref import WeakKeyDictionary, ref

import numpy as np

from tabweave._compat import warn_caller
from tabweave.columns.decision import CODE_NAMES
from tabweave.columns.vocabulary import Label, Vocabulary, types_of
from tabweave.counts.counts import Counts
from tabweave.updates import origin_of

# A message shows this many values.
N_EXAMPLES = 3

# Of each embedder, after which counts and of which columns it has warned.
_warned: WeakKeyDictionary[Any, tuple[ref[Counts], set[str]]] = WeakKeyDictionary()
_collecting: ContextVar[UnknownTally | None] = ContextVar("tabweave_unknown", default=None)


@dataclass
class UnknownColumn:
    """How many values of a column an embedder has not seen, and the first of them.

    Attributes
    ----------
    embedder : ValueEmbedder
        The embedder.
    unknown, total : int
        Values that it has not seen, and all values that are not missing.
    examples : list
        The first different values that it has not seen.
    """

    embedder: Any
    unknown: int = 0
    total: int = 0
    examples: list[Label] = field(default_factory=list)

    def add(self, values: Mapping[Label, int], total: int) -> None:
        """Add the unknown values of a batch, and how many values it has."""
        self.unknown += sum(values.values())
        self.total += total
        new = (value for value in values if value not in self.examples)
        self.examples += islice(new, N_EXAMPLES - len(self.examples))

    def report(self, name: str) -> None:
        """Raise if all values are unknown where that is not to be expected; warn once of many."""
        spelled = name in spelled_columns(self.embedder)
        times = _times(self.embedder.counts_, name)
        closed = not spelled and not CODE_NAMES.search(name) and _is_closed(times)
        if self.total < 20:  # too few to call many of them unknown
            return
        if self.unknown == self.total and closed:
            vocabulary = value_vocabulary(self.embedder)
            raise ValueError(
                f"column {name!r}: none of its {self.total} values was seen in fit, e.g. "
                f"{shown(self.examples)}; in fit it had e.g. "
                f"{shown(vocabulary.labels[vocabulary.index(name)])}. Write them as in "
                f"fit, fit again with them, or leave the column out"
            )
        limit = _expected(times, self.total) if closed else self.total / 2
        if self.unknown > limit:
            fate = "lie between values spelled like them" if spelled else "count as average"
            self._warn_once(name, fate)

    def _warn_once(self, name: str, fate: str) -> None:
        embedder = self.embedder
        origin = origin_of(embedder)
        counted, names = _warned.get(origin, (None, set()))
        if counted is None or counted() is not embedder.counts_:
            names = set()
            _warned[origin] = ref(embedder.counts_), names
        if name not in names:
            names.add(name)
            warn_caller(
                f"column {name!r}: {self.unknown} of {self.total} values were not seen in fit, "
                f"e.g. {shown(self.examples)}; they {fate} "
                f"({type(embedder).__name__}.unknown_counts lists them; its "
                "unknown='error' raises an error instead)"
            )


class UnknownTally:
    """What embedders have not seen in some rows: an :class:`UnknownColumn` for each column."""

    def __init__(self) -> None:
        self.columns: dict[tuple[int, str], UnknownColumn] = {}

    def add(self, embedder: Any, table: Any) -> None:
        """Add the rows of a table; raise for a column of another type than in fit."""
        vocabulary = value_vocabulary(embedder)
        unknown = vocabulary.unknown(table)
        for name in unknown:
            check_types(name, table[name], vocabulary.labels[vocabulary.index(name)])
        for name in vocabulary.names:
            if name in table.schema.names:
                present: dict[Label, int] = {
                    v: times for v, times in unknown.get(name, {}).items() if v is not None
                }
                column = self.columns.setdefault(
                    (id(origin_of(embedder)), name), UnknownColumn(embedder)
                )
                column.add(present, _n_present(table[name]))

    def report(self) -> None:
        """Raise for a column of which nothing is known, warn once of one of which little is."""
        for (_, name), column in self.columns.items():
            if column.unknown:
                column.report(name)


def report_unknown(embedder: Any, table: Any) -> None:
    """Raise for a column that fit has seen nothing of, warn once of one that it saw little of.

    A column is refused if its values are of another type than in fit; or if none of at least 20 is
    known, unless new ones are to be expected: fit saw one value only, or mostly values that occur
    once [Good 1953], its name says that they are codes (a fold of other shops has other shop_ids),
    or the column is compared by spelling. Such a column is warned of if more than half of at least
    20 values are unknown; any other if more than a twentieth are, and clearly more than the values
    that occur once in fit lead to expect. Inside :func:`tallying` all this waits for the last row.
    """
    collecting = _collecting.get()
    tally = UnknownTally() if collecting is None else collecting
    tally.add(embedder, table)
    if collecting is None:
        tally.report()


@contextmanager
def tallying(tally: UnknownTally) -> Iterator[None]:
    """Let a tally collect what is not known of the rows read meanwhile, instead of reporting it."""
    token = _collecting.set(tally)
    try:
        yield
    finally:
        _collecting.reset(token)


def value_vocabulary(embedder: Any) -> Vocabulary:
    """The values of the columns that are read as values, as fit saw them."""
    valued = {column.name for column in embedder.schema_.categorical}
    vocabulary: Vocabulary = embedder.counts_.vocabulary
    return vocabulary.select([name for name in vocabulary.names if name in valued])


def spelled_columns(embedder: Any) -> set[str]:
    """The columns whose unknown values lie between those that are spelled like them."""
    return set(getattr(vars(embedder).get("tables_"), "spelling", ()))


def check_types(name: str, column: Any, fitted_labels: Sequence[Label]) -> None:
    """Raise if a column has values, and none of the types of those that fit has seen."""
    times = np.bincount(column.codes, minlength=len(column.labels))
    values = [label for label, n in zip(column.labels, times, strict=True) if n]
    types, fitted = types_of(values), types_of(fitted_labels) - {"buckets"}
    if types and fitted and not types & fitted:
        raise ValueError(
            f"column {name!r}: expected {' or '.join(sorted(fitted))} as in fit (e.g. "
            f"{shown(fitted_labels)}), got {' and '.join(sorted(types))} (e.g. {shown(values)}); "
            "convert the column to the type that it had in fit"
        )


def shown(values: Any) -> str:
    """The first values that are not missing, as an error shows them."""
    present = (value for value in values if value is not None)
    return ", ".join(map(repr, islice(present, N_EXAMPLES)))


def _n_present(column: Any) -> int:
    """How many values a column has that are not missing."""
    if None not in column.labels:
        return len(column.codes)
    return int(np.count_nonzero(column.codes != column.labels.index(None)))


def _times(counts: Counts, name: str) -> np.ndarray:
    """How often each value of a column occurs; gaps say nothing of what is to come."""
    labels = counts.labels[counts.names.index(name)]
    present = np.array([label is not None for label in labels], bool)
    return counts.value_counts[counts.span(name)][present]


def _is_closed(times: np.ndarray) -> bool:
    """Whether fit saw several values, and most rows had one that occurs again."""
    return len(times) > 1 and bool(times[times <= 1].sum() < times.sum() / 2)


def _expected(times: np.ndarray, total: int) -> float:
    """How many of so many values may be unknown by chance.

    The share of values that are new is about that of the values that occurred once [Good 1953].
    """
    expected = total * int(np.count_nonzero(times <= 1) + 1) / float(times.sum() + 1)
    return max(0.05 * total, expected + 4 * math.sqrt(expected) + 3)
