"""Rows in memory: a table by its columns, what people call these, and what is told of them."""

from __future__ import annotations

import shlex
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import tabweave
from tabweave.apps.cli.options import Misuse
from tabweave.apps.cli.show import note, plural
from tabweave.columns.decision import Finding
from tabweave.columns.frames import categories, infer_kind, named_columns, object_array
from tabweave.columns.kinds import dropped_line
from tabweave.columns.numeric import Numbers, number_of, numbers_written
from tabweave.columns.texts import PANDAS_MISSING_WORDS, looks_missing
from tabweave.engines.opening import fitted_columns, open_source, read
from tabweave.engines.source import as_list


@dataclass(frozen=True)
class Rows:
    """A table in memory: its columns by name, whatever library holds them."""

    columns: dict[str, Any]
    n_rows: int

    @classmethod
    def read(cls, source: Any, counts: Any = None) -> Rows:
        """The rows of an opened source.

        Parameters
        ----------
        source : Source
            Where the rows are.
        counts : Counts, optional
            What a model has seen, so that its columns are read as they were then.
        """
        if counts is not None:
            source = open_source(source, fitted_columns(source, counts))
        columns, n_rows = named_columns(read(source))
        if not n_rows:
            raise ValueError(f"{source.name!r} has columns but no rows")
        return cls(columns, n_rows)

    def row(self, number: int) -> dict[str, Any]:
        """One row, its cells as Python has them."""
        if number >= self.n_rows:
            raise ValueError(f"expected a row number from 0 to {self.n_rows - 1}, got {number}")
        return {name: cell_of(cells, number) for name, cells in self.columns.items()}

    def column(self, name: str) -> list[Any]:
        """The cells of a column as a list."""
        check_columns([name], self.columns)
        return as_list(self.columns[name])

    def targets(self, name: str) -> Any:
        """The cells of the target: text that is numbers, such as money, as these."""
        check_columns([name], self.columns)
        cells = self.columns[name]
        if infer_kind(cells) == "nominal":
            ((_, data),) = tabweave.Table.of({name: cells}, rules="all")
            if isinstance(data, Numbers):
                return data.values
        return self.column(name)

    def without(self, words: Sequence[str], as_text: Container[str] = ()) -> tuple[Rows, list[str]]:
        """The rows with nothing in cells that are one of some words, and the words that none is.

        What is left of a column may be numbers, as it would be had these cells been empty, unless
        it is to stay text. Each distinct value is looked at once.
        """
        columns, unseen = dict(self.columns), set(words) - {"pandas"}
        gap_words = {*unseen, *(PANDAS_MISSING_WORDS if "pandas" in words else ())}
        for name, cells in self.columns.items():
            codes, labels = categories(cells) if infer_kind(cells) == "nominal" else ([], [])
            gaps = {v for v in labels if isinstance(v, str) and v.strip() in gap_words}
            if gaps:
                values = [None if label in gaps else label for label in labels]
                values = values if name in as_text else _as_numbers(values)
                columns[name] = object_array(values)[codes]
            unseen -= {text.strip() for text in gaps}
        return Rows(columns, self.n_rows), sorted(unseen)

    def frame(self) -> Any:
        """The columns as what the engines take: an Arrow table, or a mapping without it."""
        if not tabweave.engines.has_arrow():
            return self.columns
        import pyarrow as pa

        typed = (pa.Array, pa.ChunkedArray)
        try:
            return pa.table(
                {n: c if isinstance(c, typed) else pa.array(c) for n, c in self.columns.items()}
            )
        except (TypeError, ValueError):  # cells of several types
            return self.columns


def _as_numbers(labels: list[Any]) -> list[Any]:
    """Texts that are all plain numbers as these; others as they are."""
    texts = [label for label in labels if label is not None]
    if not texts or numbers_written(texts) != ("numbers", ".") or any("," in t for t in texts):
        return labels
    integers = all(text.strip().lstrip("+-").isdecimal() for text in texts)
    return [None if v is None else int(v) if integers else number_of(v) for v in labels]


@dataclass(frozen=True)
class Ids:
    """What rows are called: by the cells of a column, or by their numbers."""

    cells: list[str] | None

    @classmethod
    def of(cls, rows: Rows, name: str | None) -> Ids:
        """The ids of rows, in a column if one is named."""
        if name is None:
            return cls(None)
        return cls(list(map(str, rows.column(full_name(name, rows.columns)))))

    def name(self, number: int) -> str:
        """What a row is called."""
        return str(number) if self.cells is None else self.cells[number]

    def number(self, text: str, option: str) -> int:
        """The number of the row that is called so."""
        if self.cells is None:
            return row_number(text, option)
        numbers = [i for i, cell in enumerate(self.cells) if cell == text]
        if len(numbers) != 1:
            close = get_close_matches(text, self.cells, 1)
            hint = f"; did you mean {close[0]!r}?" if close and not numbers else ""
            raise ValueError(
                f"{option}: expected the id of one row, got {text!r}, which "
                f"{plural(len(numbers), 'row')} has{hint}"
            )
        return numbers[0]


def row_number(text: str, option: str) -> int:
    """The number of a row, of text."""
    if not text.strip().isdecimal():
        raise Misuse(
            f"{option}: expected a row number, counting from 0, got {text!r}; name the column of "
            "ids with --id"
        )
    return int(text)


def cell_of(cells: Any, number: int) -> Any:
    """One cell of a column as Python has it."""
    value = cells.iloc[number] if hasattr(cells, "iloc") else cells[number]
    value = value.as_py() if hasattr(value, "as_py") else value
    return value.item() if hasattr(value, "item") and getattr(value, "ndim", 0) == 0 else value


def full_name(name: str, columns: Iterable[str]) -> str:
    """A column's name with the blanks around it, if only they were left out."""
    matches = [column for column in columns if column.strip() == name.strip()]
    return matches[0] if len(matches) == 1 else name


def check_columns(names: Iterable[str], columns: Iterable[str]) -> None:
    """Refuse a name that is not one of the columns, and say which may be meant."""
    columns = list(columns)
    for name in names:
        if name not in columns:
            close = get_close_matches(name, columns, 1)
            close = close or [column for column in columns if column.startswith(name)]
            hint = f"did you mean {close[0]!r}?" if close else "the columns are "
            if close and "," in close[0]:
                hint += " Put a name with a comma in double quotes inside single ones"
            columns_shown = "" if close else ", ".join(map(repr, columns[:20]))
            raise ValueError(f"column not found: {name!r}; {hint}{columns_shown}")


# -- What is told of rows


def tell_columns(table: Any, *, spells: bool) -> None:
    """Tell how columns were read, and which tell rows apart without telling what they are.

    Strings that an embedder compares by how they are spelled tell more than that.
    """
    tell_kinds(table)
    explained = {c.column for c in table.kinds() if c.question or (spells and "spelling" in c.why)}
    for name, why in tabweave.report.read(table, None).left_out.items():
        if name not in explained:
            tell_noise(name, why)


def tell_kinds(table: Any) -> None:
    """Tell what was guessed when rows were read, and what to do if it was not meant."""
    findings, names = table.kinds(), table.schema.names
    kinds = {f.kind for f in findings if not f.kept and f.column not in names}
    dropped = {name: why for name, why in findings.dropped.items() if name not in names}
    tell_dropped(dropped, kind="numeric" if kinds == {"numeric"} else "nominal")
    tell_doubts(findings)
    tell_words(labels_of(table))


def labels_of(table: Any) -> dict[str, Any]:
    """The values of the columns that have some."""
    return {column.name: data.labels for column, data in table if hasattr(data, "labels")}


def tell_dropped(dropped: dict[str, str], *details: str, kind: str = "nominal") -> None:
    """Tell which columns take no part, and how to have them."""
    if dropped:
        option = f"--kind {shlex.quote(f'{next(iter(dropped))}={kind}')}"
        it = "it" if len(dropped) == 1 else "the first"
        note("; ".join([dropped_line(dropped), *details, f"to keep {it}, add {option}"]))


def tell_doubts(findings: Iterable[Finding]) -> None:
    """Tell which columns may be meant as something else, and how to have them so."""
    for name, kind, why, is_used, asks, delimiter, _ in findings:
        if not is_used or not asks or asks == "exceptions":  # of which reading warns
            continue
        text = f"column {name!r} holds {why}"
        if asks == "order":
            text += f", as in --kind {shlex.quote(f'{name}=datetime:dmy')}"
        elif asks == "lists":
            kind_of_lists = f"set:{delimiter}" if delimiter else "set"
            text += f", as in --kind {shlex.quote(f'{name}={kind_of_lists}')}"
        elif kind == "nominal":
            text += "; it is read as categories"
        note(text)


def tell_words(labels: Mapping[str, Sequence[Any]]) -> None:
    """Tell which categories look like words for missing, and how to have them missing."""
    for name, values in labels.items():
        for word in filter(str.strip, filter(looks_missing, values)):
            note(
                f"column {name!r} holds {word!r}, which is read as a category; if it means "
                f"missing, add --missing {shlex.quote(word.strip())}"
            )


def tell_noise(name: str, why: str) -> None:
    """Warn of a column that tells rows apart without telling what they are."""
    note(f"warning: column {name!r} {why}, so it only adds noise; consider --drop {name}")
