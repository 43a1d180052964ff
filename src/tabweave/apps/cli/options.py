"""Options that commands share, each described once, and how their values are completed.

Column names are completed from the file that is named on the command line.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from inspect import Parameter, signature
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

import tabweave
from tabweave.apps.methods import check, described
from tabweave.io.files import csv_header

FORMATS = ("csv", "tsv", "parquet", "json", "jsonl", "arrow")
KINDS = ("nominal", "ordinal", "numeric", "datetime", "set")


class Misuse(ValueError):
    """The command line is not valid: exit code 2."""


# -- Completion


def methods(incomplete: str) -> list[tuple[str, str]]:
    """The methods that begin so, each with a line of help."""
    return [item for item in described("shell").items() if item[0].startswith(incomplete)]


def formats(incomplete: str) -> list[str]:
    """The formats that begin so."""
    return [name for name in FORMATS if name.startswith(incomplete)]


def column(ctx: typer.Context, incomplete: str) -> list[str]:
    """The columns that begin so."""
    return [name for name in header(ctx) if name.startswith(incomplete)]


def columns(ctx: typer.Context, incomplete: str) -> list[str]:
    """Completions of the last name of a list with commas; names that it has are left out."""
    list_before, comma, last = incomplete.rpartition(",")
    used = list_before.split(",")
    names = [name for name in header(ctx) if name.startswith(last) and name not in used]
    return [list_before + comma + name for name in names]


def settings(ctx: typer.Context, incomplete: str) -> list[str]:
    """Completions of the last column of a list such as color=red,size=big."""
    list_before, comma, last = incomplete.rpartition(",")
    return [f"{list_before}{comma}{name}=" for name in header(ctx) if name.startswith(last)]


def kinds(ctx: typer.Context, incomplete: str) -> list[str]:
    """Completions of COLUMN=KIND."""
    name, equals, start = incomplete.partition("=")
    if equals:
        return [f"{name}={kind}" for kind in KINDS if kind.startswith(start)]
    return [f"{other}=" for other in header(ctx) if other.startswith(name)]


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


# -- Options


def listed(texts: Sequence[str] | None) -> tuple[str, ...]:
    """The parts of lists with commas; an option may be given more than once.

    What has a comma in it goes in double quotes, as in CSV.
    """
    lines = csv.reader(texts or (), skipinitialspace=True)
    return tuple(part.strip() for line in lines for part in line if part.strip())


def input_option(
    name: str, metavar: str, help: str, complete: Callable[..., Any] | None = None, *short: str
) -> Any:
    """An option of the panel about what is read."""
    return typer.Option(
        name, *short, metavar=metavar, help=help, autocompletion=complete,
        rich_help_panel="Input options",
    )  # fmt: skip


def method_option(*names: str, help: str, complete: Callable[..., Any] | None = None) -> Any:
    """An option of the panel about how rows are embedded."""
    return typer.Option(
        *names, help=help, autocompletion=complete, rich_help_panel="Method options"
    )


def output_option(help: str) -> Any:
    """The option that names the file to write."""
    return typer.Option("--output", "-o", help=f"{help}; - is standard output.")


Names = list[str] | None
Source = Annotated[
    str,
    typer.Argument(
        metavar="IN",
        help="A file (CSV, TSV, Parquet, JSON, JSONL, Arrow), a folder or glob pattern of files "
        "('2026-*.csv'), a SQL query (\"SELECT ... FROM 'x.csv'\"), or - for standard input.",
        show_default=False,
    ),
]
From = Annotated[
    str | None,
    input_option(
        "--from", "FORMAT",
        "Format of standard input (csv, tsv, parquet, json, jsonl or arrow); detected by default.",
        formats,
    ),
]  # fmt: skip
Target = Annotated[
    str | None,
    input_option(
        "--target", "COLUMN",
        "Target column, such as class labels: not embedded. Only supervised methods learn from it.",
        column, "-t",
    ),
]  # fmt: skip
Columns = Annotated[
    Names, input_option("--columns", "A,B,...", "Use these columns only.", columns, "-c")
]
Drop = Annotated[Names, input_option("--drop", "A,B,...", "Ignore these columns.", columns)]
Kind = Annotated[
    Names,
    input_option(
        "--kind", "COLUMN=KIND",
        "Read a column as nominal, numeric, datetime[:dmy|:mdy], ordinal[:LOW<...<HIGH] or "
        "set[:DELIMITER]; by default the kind is inferred. '*' means all columns. Can be repeated.",
        kinds,
    ),
]  # fmt: skip
Missing = Annotated[
    Names,
    input_option(
        "--missing", "A,B,...",
        "Values to treat as missing in categorical columns, such as '?,NA', or 'pandas' for those "
        "of pandas; in numeric and date columns such words are always missing.",
    ),
]  # fmt: skip
Encoding = Annotated[
    str | None,
    input_option(
        "--encoding", "NAME",
        "Encoding of text files, such as cp1252 or utf-16; by default UTF-8, or found by trial.",
    ),
]  # fmt: skip
Id = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Column with the ids of the rows: rows are called by them, and it is not compared.",
        autocompletion=column,
    ),
]
Method = Annotated[
    str,
    method_option(
        "--method", "-m", complete=methods,
        help="Method that embeds the rows; 'tabweave methods' lists them.",
    ),
]  # fmt: skip
Model = Annotated[
    Path | None,
    method_option(help="Use a model saved by 'tabweave embed --save' instead of fitting one."),
]
Seed = Annotated[int, method_option("--seed", help="Random seed.")]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Force = Annotated[bool, typer.Option("--force", "-f", help="Overwrite existing files.")]
Format = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="FORMAT",
        help="Output format (csv, tsv, parquet, json, jsonl or arrow); by default from the file "
        "extension, or CSV on standard output.",
        autocompletion=formats,
    ),
]


@dataclass(frozen=True)
class Job:
    """What a command is asked to compare, and how: the options that most commands take."""

    source: Source
    method: Method = "auto"
    target: Target = None
    columns: Columns = None
    drop: Drop = None
    kind: Kind = None
    missing: Missing = None
    from_: From = None
    encoding: Encoding = None
    model: Model = None
    seed: Seed = 0

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


_types = get_type_hints(Job, include_extras=True)
JOB_OPTIONS = [
    option.replace(annotation=_types[option.name], kind=Parameter.KEYWORD_ONLY)
    for option in signature(Job).parameters.values()
]
