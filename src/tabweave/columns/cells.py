"""Cells: what every kind of column can do; one subclass a kind, in a file of its own."""

from __future__ import annotations

from collections.abc import Set
from typing import TYPE_CHECKING

import numpy as np

from tabweave.columns.texts import CellError

if TYPE_CHECKING:
    from tabweave.columns.column import Column


def named_error(error: Exception, column: Column) -> Exception:
    """Return an error that says of which column it speaks, and what to do about a cell."""
    if not isinstance(error, CellError):
        kind = TypeError if isinstance(error, TypeError) else ValueError
        return kind(f"column {column.name!r}: {error}")
    remedy = "" if "; " in error.remark else cell_remedy(column, error)
    return CellError(error.expected, error.cell, error.remark + remedy, column.name)


def cell_remedy(column: Column, error: CellError) -> str:
    """Return what to do about a cell that a column cannot hold."""
    if column.kind in ("numeric", "datetime"):
        return "; mend it, leave it empty, or declare the column as kind 'nominal' and fit anew"
    if column.kind == "set" and error.expected == "a set":
        declared = f"Column({column.name!r}, 'set', delimiter=',')"
        return f"; give lists, or declare what parts a text: {declared}"
    if column.kind == "set":
        return " as an element; turn such elements into text, or give them columns"
    collection = isinstance(error.cell, list | tuple | Set | np.ndarray)
    as_set = ", or declare the column as kind 'set'" * (column.kind == "nominal" and collection)
    return f"; turn it into text or a number{as_set}"
