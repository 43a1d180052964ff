"""The work: what is done to the batches of one place, and how its results add up.

A piece of work is a small object that can be sent to where the rows are. It takes batches and
returns a partial result; ``merge`` puts partial results together, in any grouping.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from weft import _buckets, _labels
from weft._distinct import joined_column
from weft._frames import columns_of
from weft._labels import Label
from weft._read import objects
from weft.counts import Counts
from weft.engines import _sizes
from weft.table import Codes, Schema, Sets, Table

_HELD_BYTES = 1 << 28
_MOST_JOINED = 1 << 14


@dataclass(frozen=True)
class Reading:
    """How rows become a table: which columns, as what, and which of them is the class."""

    schema: Schema = field(default_factory=Schema)
    numbers: str = "numeric"
    columns: tuple[str, ...] | None = None
    y: str | None = None
    classes: Any = None
    rules: Mapping[str, Any] = field(default_factory=dict)

    def table(self, batch: Any, schema: Schema | None = None) -> tuple[Table, Any]:
        """Return the rows of a batch, and their classes."""
        y = self.classes
        if self.columns is not None:
            names, cells, _ = columns_of(batch)
            names = [f"x{i}" for i in range(len(cells))] if names is None else names
            by_name = dict(zip(names, cells, strict=True))
            y = self.classes if self.y is None else by_name[self.y]
            batch = {name: by_name[name] for name in self.columns}
        table = Table.of(batch, schema or self.schema, numbers=self.numbers)  # type: ignore[arg-type]
        return _buckets.fold(table, self.rules), y


@dataclass(frozen=True)
class CountRows:
    """Count the rows of some batches."""

    reading: Reading
    n_rows: int | None = None

    def __call__(self, batches: Iterable[Any]) -> Counts:
        """Return the counts of all batches."""
        # Sums of equally many batches are added, so that a large vocabulary is merged seldom.
        sums: list[tuple[int, Counts]] = []
        for table, y in self._tables(batches):
            counts, level = Counts.of(table, y), 0
            while sums and sums[-1][0] == level:
                counts, level = sums.pop()[1] + counts, level + 1
            _sizes.refuse_counts(counts)
            sums.append((level, counts))
        return self.merge([counts for _, counts in sums])

    def _tables(self, batches: Iterable[Any]) -> Iterator[tuple[Table, Any]]:
        """Yield tables of as many rows as it takes to be worth a matrix of their own."""
        held: Table | None = None
        classes: list[Any] = []
        schema: Schema | None = None
        for batch in batches:
            table, y = self.reading.table(batch, schema)
            if not table.n_rows:
                continue
            if schema is None:
                _sizes.estimated(table, self.n_rows).refuse()
            schema = table.schema
            held = table if held is None else _joined(held, table)
            classes.append(y)
            if held.n_rows >= _enough(held):
                yield held, _joined_classes(classes)
                held, classes = None, []
        if held is not None:
            yield held, _joined_classes(classes)

    @staticmethod
    def merge(parts: Sequence[Counts]) -> Counts:
        """Add counts."""
        total = Counts()
        for part in reversed(parts):
            total = part + total
        return total


def _enough(table: Table) -> int:
    """Return how many rows make counting them dearer than the matrix it ends in.

    A cell of a pair's table costs about as much as 256 rows. Columns of very many values end in
    sparse tables, which grow with the rows: nothing is gained by waiting.
    """
    data = [d for d in table.columns if isinstance(d, Codes | Sets)]
    sizes = np.array([len(d.labels) for d in data], np.int64)
    if len(sizes) < 2 or sizes.max() > _MOST_JOINED:
        return 0
    cells = (sizes.sum() ** 2 - (sizes**2).sum()) // (len(sizes) * (len(sizes) - 1))
    width = sum(d.codes.itemsize for d in data) + 8 * (len(table.columns) - len(data))
    return min(256 * int(cells), _HELD_BYTES // width)


def _joined(a: Table, b: Table) -> Table:
    columns = map(joined_column, a.columns, b.columns)
    return Table(a.schema, tuple(columns), a.n_rows + b.n_rows)


def _joined_classes(parts: Sequence[Any]) -> Any:
    if len(parts) == 1 or parts[0] is None:
        return parts[0]
    return np.concatenate([p if isinstance(p, np.ndarray) else objects(p) for p in parts])


Tally = dict[str, Counter]


@dataclass(frozen=True)
class TallyValues:
    """Count the values of each column alone; with a limit, only until there are more."""

    reading: Reading
    limits: Mapping[str, int | None]

    def __call__(self, batches: Iterable[Any]) -> Tally:
        """Return how often each value occurs, by column; None for a column over its limit."""
        return self.merge([self._one(batch) for batch in batches])

    def _one(self, batch: Any) -> Tally:
        table, _ = self.reading.table(batch)
        out = {}
        for column, data in table:
            if isinstance(data, Codes | Sets) and column.levels is None:
                seen = np.bincount(data.codes, minlength=len(data.labels)).tolist()
                values = map(_labels.identity, data.labels)
                out[column.name] = +Counter(dict(zip(values, seen, strict=True)))
        return out

    def merge(self, parts: Sequence[Tally]) -> Tally:
        """Add tallies."""
        total: Tally = {}
        for part in parts:
            for name, tally in part.items():
                total.setdefault(name, Counter()).update(tally)
                limit = self.limits.get(name)
                if limit is not None and len(total[name]) > limit + 2:
                    for value in list(total[name])[limit + 2 :]:
                        del total[name][value]
        return total


def bucket_rules(
    tally: Tally, max_values: Mapping[str, int], other: str
) -> dict[str, _buckets.Rule]:
    """Return, for the columns with more values than allowed, which values stay."""
    rules: dict[str, _buckets.Rule] = {}
    for name, seen in tally.items():
        most = max_values.get(name)
        values: list[tuple[int, Label]] = [v for v in seen if v[1] is not None]
        if most is None or len(values) <= most:
            continue
        if other == "hash":
            rules[name] = most
        else:
            # Equal counts are settled by the order of values, never by that of arrival.
            values.sort(key=lambda v: (-seen[v], v))
            rules[name] = frozenset(values[: most - 1])
    return rules
