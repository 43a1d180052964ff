"""Reading: the rows of a report, which column is the target, and which say nothing of rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from tabweave.apps.report.html import between, bin_names, cell, shown
from tabweave.columns.column import Column, Schema
from tabweave.columns.decision import Finding
from tabweave.columns.frames import RowLabels, row_labels
from tabweave.columns.nominal import Codes
from tabweave.columns.numeric import Numbers
from tabweave.columns.sets import Sets
from tabweave.columns.spelling import is_text
from tabweave.columns.table import Table, require_rows
from tabweave.columns.vocabulary import canonical
from tabweave.space.numbers import binned, quantile_edges

MAX_REPORT_COLUMNS = 1_000  # Columns of a report.
MAX_COMPARED_VALUES = 10_000  # Values of a column that rows are compared by.

FREE_TEXT = "is free text that hardly repeats"


@dataclass(frozen=True, eq=False)
class Reading:
    """A table as a report sees it."""

    table: Table  # every column, the target last
    target: str | None
    left_out: dict[str, str]  # columns that the embedding does not see, and why
    labels: RowLabels | None = None  # by which a frame calls its rows, if not by position

    @property
    def kept(self) -> list[str]:
        """The columns that the embedding sees."""
        return [n for n in self.table.schema.names if n not in self.left_out and n != self.target]

    @property
    def compared(self) -> list[str]:
        """The columns that the embedding sees, and the target."""
        return self.kept + ([self.target] if self.target else [])

    @cached_property
    def findings(self) -> dict[str, Finding]:
        """What each column was read as, and why."""
        return {found.column: found for found in self.table.kinds()}

    @cached_property
    def codes(self) -> dict[str, np.ndarray]:
        """Each column's cells as codes in the order of values: equal cells have equal codes."""
        return {column.name: data.ranks() for column, data in self.table}

    @cached_property
    def id_name(self) -> str | None:
        """What holds an id of each row: the index of a frame, or a column left out for that."""
        if self.labels is not None:
            return "index"
        for name in self.left_out:
            is_distinct = self.codes[name].max(initial=-1) + 1 == self.table.n_rows
            if is_distinct and _may_identify(self.table[name]):
                return name
        return None

    def id_of(self, row: int) -> str | None:
        """The id of a row as text; None where rows have none."""
        if self.labels is not None:
            return shown(str(self.labels.id_of(row)))
        return cell(self.table[self.id_name], row) if self.id_name else None

    def row_and_id(self, row: int) -> dict[str, Any]:
        """The position of a row and, where rows have one, its id: as descriptions have them."""
        return {"row": row} | ({"id": self.id_of(row)} if self.id_name else {})

    def ids_of(self, rows: np.ndarray) -> dict[str, Any]:
        """The ids of rows, where they have any."""
        return {"ids": [self.id_of(row) for row in rows.tolist()]} if self.id_name else {}

    def features(self) -> Table:
        """The columns that the embedding sees."""
        return self.table.select(self.kept)

    def values(self) -> Table:
        """The kept columns and the target with a value in every cell: numbers as bins."""
        table = self.table.select(self.compared)
        columns = tuple(
            column if column.has_values else Column(column.name) for column in table.schema.columns
        )
        schema = Schema(columns, undeclared="ignored", named=table.schema.named)
        return Table(schema, tuple(map(as_values, table.columns)), table.n_rows)


def read(X: Any, target: Any) -> Reading:
    """Read rows; ``target`` is the name of a column, or a class for each row."""
    table, name = Table.of(X, rules="all"), None
    require_rows(table)
    if len(table.schema) > MAX_REPORT_COLUMNS:
        raise ValueError(
            f"expected at most {MAX_REPORT_COLUMNS} columns in a report, got {len(table.schema)}; "
            f"select some"
        )
    if target is not None:
        table, name = _with_target(table, target)
    others = table.select([n for n in table.schema.names if n != name])
    left_out = {}
    for finding, (column, data) in zip(others.kinds(), others, strict=True):
        dropped = "" if finding.kept or finding.why == "constant" else finding.why
        if reason := _useless(column, data) or dropped:
            left_out[finding.column] = finding.why if is_doubtful(finding) else reason
    labels = row_labels(X)
    return Reading(table, name, left_out, None if labels is None or labels.is_default else labels)


def is_doubtful(finding: Finding) -> bool:
    """Whether a column may be meant as something else; how it is spelled is another matter."""
    return finding.question not in ("", "spelling")


def without_unused_labels(table: Table) -> Table:
    """A table without labels that none of its rows has: learning would carry them along."""
    parts = []
    for column, data in table:
        if column.has_values:
            used, codes = np.unique(data.codes, return_inverse=True)
            data = replace(data, codes=codes, labels=[data.labels[i] for i in used])
        parts.append(data)
    return Table(table.schema, tuple(parts), table.n_rows)


def as_values(data: Any, n_bins: int = 5) -> Codes | Sets:
    """A column as values: numbers in bins with about as many each, named by their ends."""
    if not data.is_continuous:
        return data.as_values()
    edges = quantile_edges(data.values, n_bins)
    bins = binned(data.values, edges)
    if data.is_dated and len(edges):
        names = between([str(data.text(edge)) for edge in edges])
    else:
        present = data.values[~np.isnan(data.values)]
        names = bin_names(edges, bool((present == np.floor(present)).all()))
    return Codes(
        bins.codes, [None if label is None else names[int(label)] for label in bins.labels]
    )


def _with_target(table: Table, target: Any) -> tuple[Table, str]:
    """The table with the target as its last column, and the target's name."""
    names = table.schema.names
    if isinstance(target, str):
        if target not in names:
            raise KeyError(
                f"expected target to be a column, one of {', '.join(map(repr, names[:20]))}, got "
                f"{target!r}"
            )
        if len(names) == 1:
            raise ValueError(f"expected columns besides the target {target!r}, got none")
        column, data = table.schema[target], table[target]
        table = table.select([name for name in names if name != target])
    else:
        name = "target"
        while name in names:
            name += "_"
        classes = Table.of({name: target})
        if classes.n_rows != table.n_rows:
            raise ValueError(f"expected {table.n_rows} values of the target, got {classes.n_rows}")
        column, data = classes.schema.columns[0], classes.columns[0]
    if column.is_continuous and not column.is_dated:
        column, data = _as_classes(column, data)
    schema = replace(table.schema, columns=(*table.schema.columns, column))
    return Table(schema, (*table.columns, data), table.n_rows), column.name


def _as_classes(column: Column, data: Numbers) -> tuple[Column, Any]:
    """A numeric target as classes, if it holds a few whole numbers."""
    present, codes = np.unique(data.values, return_inverse=True)
    is_whole = np.isnan(present) | (present == np.floor(present))
    if len(present) > 20 or not is_whole.all():
        return column, data
    return replace(column, kind="nominal"), Codes(codes, [canonical(v) for v in present])


def _useless(column: Column, data: Any) -> str:
    """Why a column identifies rows without describing them; empty if it does not."""
    if data.is_continuous:
        return "numbers the rows" if _numbers_rows(data.values) else ""
    if not column.has_values:
        return ""
    counts = np.bincount(data.codes, minlength=len(data.labels))
    if None in data.labels:
        counts[data.labels.index(None)] = 0
    n_values, n_present = int(np.count_nonzero(counts)), int(counts.sum())
    if not data.is_set and n_values > 0.5 * n_present and is_text(data.labels):
        return FREE_TEXT
    if not data.is_set and n_values > 20 and n_values >= 0.9 * n_present:
        return "has a different value in almost every row"
    if not data.is_set and n_values > 500 and n_values > 0.5 * n_present:
        return "is mostly text that occurs once"
    return f"has more than {MAX_COMPARED_VALUES:,} values" if n_values > MAX_COMPARED_VALUES else ""


def _may_identify(data: Any) -> bool:
    """Whether cells may be ids: text, categories or whole numbers."""
    if data.is_continuous:
        return not data.is_dated and bool((data.values % 1 == 0).all())
    return not data.is_set


def _numbers_rows(values: np.ndarray) -> bool:
    """Whether numbers are just 1, 2, 3 … in some order: each once, without wide gaps."""
    if len(values) <= 20 or np.isnan(values).any() or (values != np.floor(values)).any():
        return False
    return bool(len(np.unique(values)) == len(values) and np.ptp(values) < 1.1 * len(values))
