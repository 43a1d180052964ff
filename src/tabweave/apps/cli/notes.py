"""What commands tell beside the result: how columns were read, and which say nothing of rows."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tabweave.apps.cli.show import note
from tabweave.apps.report.reading import read
from tabweave.columns.decision import Finding
from tabweave.columns.kinds import aside_line
from tabweave.columns.texts import looks_missing


def tell_columns(table: Any, *, spells: bool) -> None:
    """Tell how columns were read, and which tell rows apart without telling what they are.

    Strings that an embedder compares by how they are spelled tell more than that.
    """
    tell_kinds(table)
    explained = {c.column for c in table.kinds() if c.asks or (spells and "spelling" in c.why)}
    for name, why in read(table, None).left_out.items():
        if name not in explained:
            tell_noise(name, why)


def tell_kinds(table: Any) -> None:
    """Tell what was guessed when rows were read, and what to do if it was not meant."""
    findings, names = table.kinds(), table.schema.names
    kinds = {f.kind for f in findings if not f.kept and f.column not in names}
    dropped = {name: why for name, why in findings.aside.items() if name not in names}
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
        note("; ".join([aside_line(dropped), *details, f"to keep {it}, add {option}"]))


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
