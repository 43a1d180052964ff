"""``tabweave export``, ``methods`` and ``studio``: what reads no rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer
from rich.markup import escape

import tabweave
from tabweave.apps.cli.files import check_output, is_stdout
from tabweave.apps.cli.options import Misuse, listed
from tabweave.apps.cli.show import as_json, bold, emit, say, table
from tabweave.apps.methods import offered
from tabweave.io.files import replacing


def load_model(path: Path, *, or_predictor: bool = False) -> Any:
    """The embedder that a file holds, or the predictor, if it may be one."""
    if not path.is_file():
        raise ValueError(f"file not found: {str(path)!r}; 'tabweave embed --save' writes one")
    embedder: Any = tabweave.load(path)
    if or_predictor and hasattr(embedder, "kneighbors"):
        return embedder
    if not hasattr(embedder, "transform") or not hasattr(embedder, "schema_"):
        raise ValueError(f"{str(path)!r}: expected an embedder, got {type(embedder).__name__}")
    return embedder


def export(
    model: Path,
    sql: bool,
    onnx: bool,
    parquet: bool,
    output: Path | None,
    dialect: str,
    table: str,
    keep: list[str] | None,
    types: list[str] | None,
    force: bool,
) -> None:
    """Write a saved model as SQL, ONNX or Parquet."""
    flags = {"sql": sql, "onnx": onnx, "parquet": parquet}
    suffix = "" if output is None else output.suffix[1:]
    forms = [form for form in flags if flags[form]] or [form for form in flags if form == suffix]
    if len(forms) != 1:
        raise Misuse("expected one of --sql, --onnx and --parquet")
    form = forms[0]
    if output is None and form != "sql":
        raise Misuse(f"--{form} needs an output file; add --output FILE")
    check_output(output, force)
    embedder = load_model(model, or_predictor=True)
    if form == "sql":
        text = tabweave.export.sql(
            embedder, dialect, table=table, keep=listed(keep), types=_types(types or [])
        )
    if output is None or is_stdout(output):
        typer.echo(text, nl=False)
        return
    with replacing(output) as part:
        if form == "sql":
            part.write_text(text, encoding="utf-8")
        else:
            getattr(tabweave.export, form)(embedder, part)
    say(f"{escape(str(model))} as {form} in {bold(output)}")


def _types(texts: list[str]) -> dict[str, str]:
    """The types of columns in a database, of COLUMN=TYPE."""
    pairs = {text: text.rpartition("=") for text in texts}
    for text, (name, *_) in pairs.items():
        if not name:
            raise Misuse(f"--type {text!r}: write COLUMN=TYPE, e.g. day=date")
    return {name: kind for name, _, kind in pairs.values()}


def methods(json: bool) -> None:
    """List the methods."""
    entries = offered("shell")
    if json:
        as_json(
            [{"name": n, "kind": m.decorator, "summary": m.summary} for n, m in entries.items()]
        )
        return
    for kind, title in (("embedder", "embedder"), ("measure", "value measure")):
        lines = [
            [name, m.summary + ("; needs --target" if m.flags.get("needs_y") else "")]
            for name, m in entries.items()
            if m.decorator == kind
        ]
        emit(table([title, ""], lines, long=True))


def studio(path: Path, host: str, port: int, browser: bool) -> None:
    """Open a local web page to explore a table."""
    tabweave.studio.serve(path, host=host, port=port, open_browser=browser)
