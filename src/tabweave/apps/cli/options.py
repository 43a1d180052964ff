"""Options that commands share, and how their values are completed.

Column names are completed from the file that is named on the command line.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Annotated

import typer

import tabweave
from tabweave.apps.methods import check, described
from tabweave.io.files import csv_header
from tabweave.io.register import KINDS

FORMATS = ("csv", "tsv", "parquet", "json", "jsonl", "arrow")


class ExitCode(IntEnum):
    """How a command ended, if not well: with 0."""

    FAILED = 1  # trouble with the data
    MISUSED = 2  # a wrong command line
    CHANGED = 3  # what --check found
    STOPPED = 130  # Ctrl-C


class Misuse(ValueError):
    """The command line is not valid."""


# -- Completion


def complete_method(incomplete: str) -> list[tuple[str, str]]:
    """The methods that begin so, each with a line of help."""
    return [item for item in described("shell").items() if item[0].startswith(incomplete)]


def complete_format(incomplete: str) -> list[str]:
    """The formats that begin so."""
    return [name for name in FORMATS if name.startswith(incomplete)]


def complete_column(ctx: typer.Context, incomplete: str) -> list[str]:
    """The columns that begin so."""
    return [name for name in header(ctx) if name.startswith(incomplete)]


def complete_columns(ctx: typer.Context, incomplete: str) -> list[str]:
    """Completions of the last name of a list with commas; names that it has are left out."""
    list_before, comma, last = incomplete.rpartition(",")
    used = list_before.split(",")
    return [list_before + comma + n for n in complete_column(ctx, last) if n not in used]


def complete_values(ctx: typer.Context, incomplete: str) -> list[str]:
    """Completions of the last column of a list such as color=red,size=big."""
    list_before, comma, last = incomplete.rpartition(",")
    return [f"{list_before}{comma}{name}=" for name in complete_column(ctx, last)]


def complete_kind(ctx: typer.Context, incomplete: str) -> list[str]:
    """Completions of COLUMN=KIND, and of a KIND for all other columns."""
    name, equals, start = incomplete.rpartition("=")
    kinds = [f"{name}{equals}{kind}" for kind in KINDS if kind.startswith(start)]
    return kinds if equals else [*(f"{other}=" for other in complete_column(ctx, start)), *kinds]


def header(ctx: typer.Context) -> list[str]:
    """The column names of the file that was named; none if it cannot be read."""
    # An option that still waits for its value keeps arguments from being told apart.
    words = [ctx.params.get("source"), *ctx.args]
    try:
        return _header_of(next(Path(word) for word in words if word and Path(word).is_file()))
    except Exception:  # completion is silent: the command itself will say what is wrong
        return []


def _header_of(path: Path) -> list[str]:
    """The column names of a file; text is read no further than its first line."""
    if path.suffix.lower() in (".csv", ".tsv"):
        return list(csv_header(path).names)
    if path.suffix.lower() in (".jsonl", ".ndjson"):
        with path.open(encoding="utf-8-sig") as lines:
            return list(json.loads(next(lines)))
    return list(tabweave.engines.open_source(path).types)


# -- Options: what their values are; the help is in the docstrings of those who take them


Columns = Annotated[
    list[str] | None, typer.Option(metavar="A,B,...", autocompletion=complete_columns)
]
ColumnName = Annotated[str | None, typer.Option(metavar="COLUMN", autocompletion=complete_column)]
Conditions = Annotated[
    list[str] | None, typer.Option(metavar="COLUMN=VALUE,...", autocompletion=complete_values)
]
Force = Annotated[bool, typer.Option("--force", "-f")]
OutputPath = Annotated[Path, typer.Option("--output", "-o")]
Limit = Annotated[int, typer.Option(min=1)]


@dataclass(frozen=True)
class Job:
    """What a command is asked to compare, and how: the options that most commands take.

    Parameters
    ----------
    source
        A file (CSV, TSV, Parquet, JSON, JSONL, Arrow), a folder or glob pattern of files
        ('2026-*.csv'), a SQL query ("SELECT ... FROM 'x.csv'"), or - for standard input.
    target
        Target column, such as class labels: not embedded. Only supervised methods learn from it.
    columns
        Use these columns only.
    drop
        Ignore these columns.
    kind
        Read a column as nominal, numeric, datetime[:dmy|:mdy], ordinal[:LOW<...<HIGH] or
        set[:DELIMITER]; by default the kind is inferred. Can be repeated: 'nominal' alone is for
        all other columns.
    missing
        Values to treat as missing in categorical columns, such as '?,NA', or 'pandas' for those of
        pandas; in numeric and date columns such words are always missing.
    from_
        Format of standard input (csv, tsv, parquet, json, jsonl or arrow); detected by default.
    encoding
        Encoding of text files, such as cp1252 or utf-16; by default UTF-8, or found by trial.
    method
        Method that embeds the rows; 'tabweave methods' lists them.
    model
        Use a model saved by 'tabweave embed --save' instead of fitting one.
    seed
        Random seed.
    id
        Column with the ids of the rows: rows are called by them, and it is not compared.
    """

    source: Annotated[str, typer.Argument(metavar="IN", show_default=False)]
    target: Annotated[
        str | None,
        typer.Option("--target", "-t", metavar="COLUMN", autocompletion=complete_column),
    ] = None
    columns: Annotated[
        list[str] | None,
        typer.Option("--columns", "-c", metavar="A,B,...", autocompletion=complete_columns),
    ] = None
    drop: Columns = None
    kind: Annotated[
        list[str] | None, typer.Option(metavar="[COLUMN=]KIND", autocompletion=complete_kind)
    ] = None
    missing: Annotated[list[str] | None, typer.Option(metavar="A,B,...")] = None
    from_: Annotated[
        str | None, typer.Option("--from", metavar="FORMAT", autocompletion=complete_format)
    ] = None
    encoding: Annotated[str | None, typer.Option(metavar="NAME")] = None
    method: Annotated[str, typer.Option("--method", "-m", autocompletion=complete_method)] = "auto"
    model: Path | None = None
    seed: int = 0
    id: ColumnName = None

    def __post_init__(self) -> None:
        try:
            check(self.method, self.target)
        except ValueError as error:
            raise Misuse(str(error)) from None
        if self.model is not None and self.method != "auto":
            raise Misuse("a saved model already has a method; use --model without --method")
        if self.model is not None and (self.columns or self.drop or self.kind):
            raise Misuse(
                "a saved model already has its columns; use --model without --columns, --drop "
                "and --kind"
            )


def listed(texts: Sequence[str] | None) -> tuple[str, ...]:
    """The parts of lists with commas; an option may be given more than once.

    What has a comma in it goes in double quotes, as in CSV.
    """
    lines = csv.reader(texts or (), skipinitialspace=True)
    return tuple(part.strip() for line in lines for part in line if part.strip())
