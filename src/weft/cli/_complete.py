"""Tab completion: method names, formats, and the column names of the file on the command line."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path

import typer

from weft.cli._methods import EMBEDDERS, MEASURES

FORMATS = ("csv", "tsv", "parquet", "json", "jsonl", "arrow")
KINDS = ("nominal", "ordinal", "numeric", "set")


def methods(incomplete: str) -> list[tuple[str, str]]:
    """Return the methods that begin so, each with a line of help."""
    known = {name: text for name, (_, text) in EMBEDDERS.items()}
    known |= dict.fromkeys(MEASURES, "value measure")
    return [(name, text) for name, text in known.items() if name.startswith(incomplete)]


def formats(incomplete: str) -> list[str]:
    """Return the formats that begin so."""
    return [name for name in FORMATS if name.startswith(incomplete)]


def column(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the columns that begin so."""
    return [name for name in header(ctx) if name.startswith(incomplete)]


def columns(ctx: typer.Context, incomplete: str) -> list[str]:
    """Complete the last name of a list with commas, leaving out those that are there."""
    done, comma, last = incomplete.rpartition(",")
    taken = done.split(",")
    return [done + comma + c for c in header(ctx) if c.startswith(last) and c not in taken]


def settings(ctx: typer.Context, incomplete: str) -> list[str]:
    """Complete the last column of a list such as color=red,size=big."""
    done, comma, last = incomplete.rpartition(",")
    return [f"{done}{comma}{c}=" for c in header(ctx) if c.startswith(last)]


def kinds(ctx: typer.Context, incomplete: str) -> list[str]:
    """Complete COLUMN=KIND."""
    name, equals, kind = incomplete.partition("=")
    if equals:
        return [f"{name}={k}" for k in KINDS if k.startswith(kind)]
    return [f"{c}=" for c in header(ctx) if c.startswith(name)]


def header(ctx: typer.Context) -> list[str]:
    """Return the column names of the file that was named; nothing if it cannot be read."""
    # An option that still waits for its value keeps arguments from being told apart.
    words = [ctx.params.get("source"), ctx.params.get("old"), *ctx.args]
    try:
        path = next(Path(word) for word in words if word and Path(word).is_file())
        return list(_names(path))
    except Exception:  # completion is silent: the command itself will say what is wrong
        return []


def _names(path: Path) -> Iterator[str]:
    kind = path.suffix.lower()
    if kind in (".csv", ".tsv"):
        with path.open(newline="", encoding="utf-8-sig") as lines:
            yield from next(csv.reader(lines, delimiter="\t" if kind == ".tsv" else ","))
    elif kind in (".jsonl", ".ndjson"):
        with path.open(encoding="utf-8-sig") as lines:
            yield from json.loads(next(lines))
    else:
        from weft.engines import open_source

        yield from open_source(path).types
