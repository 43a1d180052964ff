"""The Python that makes what is on screen: the same models, maps, reports and explanations."""

from __future__ import annotations

from typing import Any

from sklearn import config_context

from tabweave.apps.methods import learns_from_classes
from tabweave.embed.mixed import MixedEmbedder
from tabweave.rows.table import Codes, Numbers


def program(
    name: str, shown: list[tuple[str, Any, Any]], rows: tuple[int, int] | None = None
) -> str:
    """Return a program.

    Parameters
    ----------
    name : str
        The file, as the program finds it.
    shown : list of (method, reading, model)
        What is on screen, left to right.
    rows : (int, int), optional
        Two rows that are explained.
    """
    reading = shown[0][1]
    target = reading.target
    classed = next((m for m, _, _ in shown if learns_from_classes(m)), None)
    kinds = f", {{{target!r}: 'nominal'}}" if classed else ""
    used = sorted({n for _, _, model in shown for n in _classes_of(model)} | {"Table", "engines"})
    lines = [
        "from pathlib import Path",
        "",
        f"from tabweave import {', '.join(sorted(used, key=_import_order))}",
        "from tabweave.apps.report import describe, page",
        "",
        f"table = Table.of(engines.read({name!r}){kinds})",
        *_list_of("columns", reading.kept),
        "rows = table.select(columns)",
    ]
    if classed:
        lines.append(f"classes = [table[{target!r}].labels[c] for c in table[{target!r}].codes]")
    if rows is not None:
        lines += _row_lines("first", reading, rows[0]) + _row_lines("other", reading, rows[1])
    for letter, (method, _, model) in zip("ab", shown, strict=False):
        lines += ["", *_of_model(f"_{letter}" if len(shown) > 1 else "", method, model, target)]
        if rows is not None:
            tail = f"_{letter}" if len(shown) > 1 else ""
            lines.append(f"print(model{tail}.explain(first, other))")
    return "\n".join([*lines, ""])


def _of_model(tail: str, method: str, model: Any, target: str | None) -> list[str]:
    with config_context(print_changed_only=True):
        written = " ".join(repr(_unfitted(model)).split())
    classes = ", classes" if learns_from_classes(method) else ""
    given = "" if target is None else f"target={target!r}, "
    return [
        f"model{tail} = {written}.fit(rows{classes})",
        f"vectors{tail} = model{tail}.transform(rows)",
        f"found{tail} = describe(table, {given}method=model{tail})  # map, clusters, neighbours",
        f"Path('report{tail}.html').write_text(page(found{tail}), encoding='utf-8')",
    ]


def _unfitted(model: Any) -> Any:
    from sklearn.base import clone

    return clone(model)


def _classes_of(model: Any) -> list[str]:
    inner = model.categorical if isinstance(model, MixedEmbedder) else None
    named = [type(model).__name__]
    return named if inner is None or isinstance(inner, str) else [*named, type(inner).__name__]


def _import_order(name: str) -> tuple[int, str]:
    """Constants, classes, functions: as sorted imports stand."""
    return (0 if name.isupper() else 1 if name[0].isupper() else 2, name)


def _list_of(name: str, values: list[str]) -> list[str]:
    one = f"{name} = {values!r}"
    if len(one) <= 88:
        return [one]
    return [f"{name} = [", *(f"    {value!r}," for value in values), "]"]


def _row_lines(name: str, reading: Any, row: int) -> list[str]:
    cells = {column: _cell(reading.table[column], row) for column in reading.kept}
    one = f"{name} = {cells!r}  # row {row}"
    if len(one) <= 96:
        return [one]
    inner = (f"    {column!r}: {value!r}," for column, value in cells.items())
    return [f"{name} = {{  # row {row}", *inner, "}"]


def _cell(data: Any, row: int) -> Any:
    if isinstance(data, Numbers):
        value = float(data.values[row])
        return None if value != value else value
    if isinstance(data, Codes):
        return data.labels[data.codes[row]]
    return [data.labels[c] for c in data.codes[data.starts[row] : data.starts[row + 1]]]
