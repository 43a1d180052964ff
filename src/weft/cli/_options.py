"""The options that commands share, each described once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from weft.cli import _complete

ROWS = "What the rows are"
LEARN = "How they are compared"

Source = Annotated[
    str,
    typer.Argument(
        metavar="IN",
        help="A file (CSV, TSV, Parquet, JSON, JSONL, Arrow), a pattern, a query "
        "(\"SELECT ... FROM 'x.csv'\") or - for standard input.",
        show_default=False,
    ),
]
From = Annotated[
    str | None,
    typer.Option(
        "--from",
        metavar="FORMAT",
        help="Format of standard input; found out by itself.",
        autocompletion=_complete.formats,
        rich_help_panel=ROWS,
    ),
]
Target = Annotated[
    str | None,
    typer.Option(
        "--target",
        "-t",
        metavar="COLUMN",
        help="Column of classes: never embedded; learned from by methods that do.",
        autocompletion=_complete.column,
        rich_help_panel=ROWS,
    ),
]
Columns = Annotated[
    str | None,
    typer.Option(
        "--columns",
        "-c",
        metavar="A,B,...",
        help="Use these columns only.",
        autocompletion=_complete.columns,
        rich_help_panel=ROWS,
    ),
]
Drop = Annotated[
    str | None,
    typer.Option(
        "--drop",
        metavar="A,B,...",
        help="Leave these columns out.",
        autocompletion=_complete.columns,
        rich_help_panel=ROWS,
    ),
]
Kind = Annotated[
    list[str] | None,
    typer.Option(
        "--kind",
        metavar="COLUMN=KIND",
        help="Read a column as nominal, numeric, ordinal[:LOW<...<HIGH] or set[:DELIMITER]; "
        "'*' is all columns. Repeat as needed.",
        autocompletion=_complete.kinds,
        rich_help_panel=ROWS,
    ),
]
Method = Annotated[
    str,
    typer.Option(
        "--method",
        "-m",
        help="An embedder or a value measure; 'weft methods' lists them.",
        autocompletion=_complete.methods,
        rich_help_panel=LEARN,
    ),
]
Model = Annotated[
    Path | None,
    typer.Option(
        "--model",
        help="Use a model saved by 'weft embed --save' and learn nothing.",
        rich_help_panel=LEARN,
    ),
]
Seed = Annotated[
    int, typer.Option("--seed", help="Seed of everything random.", rich_help_panel=LEARN)
]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Force = Annotated[bool, typer.Option("--force", "-f", help="Overwrite files.")]
Format = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="FORMAT",
        help="Format of the output; by default what its name says, CSV on standard output.",
        autocompletion=_complete.formats,
    ),
]
