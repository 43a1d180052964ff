"""Tables of a `Sources`: whose rows they have (ids), and their cells as floats.

Comes in: a frame with an id column, or ids and a matrix. Goes out: a `SourceTable`, and an
`IdIndex` that finds ids again. Ids are int64, or canonical labels in an array of objects.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp

from tabweave.io.register import storable
from tabweave.rows.frames import _listed, categories, columns_of
from tabweave.rows.table import Codes, Numbers, Table
from tabweave.rows.vocabulary import Label, identity, positions

Matrix: TypeAlias = Any  # a float ndarray or a csr_array; both are indexed alike


@storable
@dataclass(frozen=True, eq=False)
class SourceTable:
    """One table: the index of each row among all ids, its cells as floats, its columns."""

    rows: np.ndarray
    matrix: Matrix
    columns: tuple[str, ...]
    labels: tuple[list[Label] | None, ...]  # of each category's code; None for numbers


def read_table(source: Any, where: str, key: str) -> tuple[np.ndarray, SourceTable]:
    """Read a frame with an id column, or a pair of ids and a matrix; return ids and table."""
    ids, table = (
        _from_pair(source, where) if isinstance(source, tuple) else _from_frame(source, where, key)
    )
    check_unique(ids, where)
    return ids, table


def _from_pair(source: tuple[Any, ...], where: str) -> tuple[np.ndarray, SourceTable]:
    if len(source) != 2:
        raise ValueError(f"{where}: expected (ids, matrix), got a tuple of {len(source)}")
    ids = read_ids(source[0], where)
    sparse = sp.issparse(source[1])
    matrix = sp.csr_array(source[1], dtype=float) if sparse else np.asarray(source[1], dtype=float)
    if matrix.ndim != 2 or matrix.shape[0] != len(ids):
        raise ValueError(
            f"{where}: expected a matrix of {len(ids)} rows, one for each id, got {matrix.shape}"
        )
    if np.isinf(matrix.data if sparse else matrix).any():
        raise ValueError(f"{where}: expected finite cells, got infinity; use a number or NaN")
    columns = tuple(f"x{i}" for i in range(matrix.shape[1]))
    return ids, SourceTable(np.zeros(0, np.intp), matrix, columns, (None,) * len(columns))


def _from_frame(frame: Any, where: str, key: str) -> tuple[np.ndarray, SourceTable]:
    if sp.issparse(frame) or isinstance(frame, np.ndarray):
        raise TypeError(f"{where}: expected (ids, matrix), got a matrix without ids")
    names, cells, _ = columns_of(frame)
    if names is None or key not in names:
        got = ", ".join(map(repr, names or []))
        raise ValueError(f"{where}: expected an id column {key!r}, got {got}; pass key=...")
    at = names.index(key)
    ids = read_ids(cells[at], where)
    rest = {name: c for i, (name, c) in enumerate(zip(names, cells, strict=True)) if i != at}
    if not rest or len(rest) != len(names) - 1:
        got = "no column besides the id" if not rest else "two columns of one name"
        raise ValueError(f"{where}: expected columns of different names, got {got}")
    try:
        table = Table.of(rest)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{where}, {error}") from error
    return ids, SourceTable(np.zeros(0, np.intp), *as_floats(table, where))


def as_floats(table: Table, where: str) -> tuple[Matrix, tuple[str, ...], Any]:
    """Return cells as floats (categories as codes, NaN where missing), columns and labels."""
    matrix = np.empty((table.n_rows, len(table.columns)))
    labels: list[list[Label] | None] = []
    for i, (column, cells) in enumerate(table):
        if isinstance(cells, Numbers):
            matrix[:, i] = cells.values
            labels.append(None)
        elif isinstance(cells, Codes):
            named: list[Label] = [label for label in cells.labels if label is not None]
            # Missing is not a category here: the reader of floats sees NaN, as among numbers.
            code = _recoded(named, cells.labels)
            matrix[:, i] = code[cells.codes] if len(code) else np.nan
            labels.append(named)
        else:
            raise TypeError(
                f"{where}, column {column.name!r}: expected numbers or categories, got sets; turn "
                "them into vectors first, e.g. by tabweave.SetTfidf, and pass (ids, matrix)"
            )
    return matrix, tuple(table.schema.names), tuple(labels)


def conformed(table: SourceTable, like: SourceTable, where: str) -> SourceTable:
    """Return a table with the columns and the codes of another one."""
    if table.columns == like.columns and table.labels == like.labels:
        return table
    index = {name: i for i, name in enumerate(table.columns)}
    absent = [name for name in like.columns if name not in index]
    if absent:
        raise ValueError(
            f"{where}: expected column {absent[0]!r} ({len(absent)} of {len(like.columns)} are "
            f"missing), got {', '.join(map(repr, table.columns[:20]))}"
        )
    at = [index[name] for name in like.columns]
    matrix = table.matrix[:, at]
    for i, (name, wanted) in enumerate(zip(like.columns, like.labels, strict=True)):
        found = table.labels[at[i]]
        if found == wanted or not len(table.rows):
            continue
        if found is None or wanted is None:
            kinds = ("numbers", "categories") if wanted is None else ("categories", "numbers")
            raise TypeError(f"{where}, column {name!r}: expected {kinds[0]}, got {kinds[1]}")
        code, cells = _recoded(wanted, found), matrix[:, i]
        matrix[:, i] = np.where(np.isnan(cells), np.nan, code[np.nan_to_num(cells).astype(np.intp)])
    return SourceTable(table.rows, matrix, like.columns, like.labels)


def _recoded(labels: Sequence[Label], given: Sequence[Label]) -> np.ndarray:
    """Return the code of each given label among others, NaN for one that is not there."""
    code = positions(labels, given).astype(float)
    code[code == len(labels)] = np.nan
    return code


_KINDS = {0: "bools", 1: "numbers", 2: "text", 3: "bytes"}


def read_ids(column: Any, where: str) -> np.ndarray:
    """Return ids as int64, or as canonical labels; a missing one is an error."""
    column = _listed(column, "id")
    if isinstance(column, np.ndarray) and column.dtype.kind in "iu" and column.dtype != np.uint64:
        return column.astype(np.int64, copy=False)
    codes, labels = categories(column)
    if None in labels and (codes == labels.index(None)).any():
        row = int(np.flatnonzero(codes == labels.index(None))[0])
        raise ValueError(f"{where}: expected an id in row {row}, got null; fill it or drop the row")
    table = np.empty(len(labels), dtype=object)
    table[:] = labels
    values = table[codes]
    whole = all(type(v) is int and abs(v) < 2**63 for v in labels if v is not None)
    return values.astype(np.int64) if whole and len(values) else values


def check_one_kind(named: Sequence[tuple[str, np.ndarray]]) -> None:
    """Check that all ids are of one kind: text never meets numbers, though it may look alike."""
    seen: tuple[str, Any] | None = None
    for where, ids in named:
        for value in ids[:1].tolist() if ids.dtype == np.int64 else _one_of_each(ids):
            if seen is None:
                seen = (where, value)
            elif _kind(value) != _kind(seen[1]):
                raise TypeError(
                    f"{where}: expected ids that are {_KINDS[_kind(seen[1])]} as in {seen[0]} "
                    f"({seen[1]!r}), got {_KINDS[_kind(value)]} ({value!r}), which would never "
                    "meet them; convert one of the two"
                )


def _kind(value: Any) -> int:
    return int(identity(value)[0])


def _one_of_each(ids: np.ndarray) -> list[Any]:
    """Return the first id of each Python type."""
    cells = ids.tolist()
    first: dict[type, Any] = {}
    for kind in set(map(type, cells)):
        first[kind] = next(cell for cell in cells if type(cell) is kind)
    return list(first.values())


def check_unique(ids: np.ndarray, where: str) -> None:
    """Check that no id has two rows: which of them to believe is not ours to say."""
    if ids.dtype == np.int64:
        values, counts = np.unique(ids, return_counts=True)
        repeated = values[counts > 1].tolist()
    elif len(set(cells := ids.tolist())) == len(cells):
        return
    else:
        seen: set[Any] = set()
        repeated = [cell for cell in cells if cell in seen or seen.add(cell)]  # type: ignore[func-returns-value]
    if repeated:
        raise ValueError(
            f"{where}: expected one row for each id, got several for {repeated[0]!r}; keep one of "
            "them, or sum them up first"
        )


def plain(ids: np.ndarray, i: int) -> Any:
    """Return one id as Python writes it."""
    return ids[i : i + 1].tolist()[0]


def union(arrays: Sequence[np.ndarray]) -> np.ndarray:
    """Return every id once, in order of first appearance."""
    arrays = [a for a in arrays if len(a)]
    if not arrays:
        return np.zeros(0, dtype=np.int64)
    if all(a.dtype == np.int64 for a in arrays):
        values, first = np.unique(np.concatenate(arrays), return_index=True)
        return values[np.argsort(first, kind="stable")]
    distinct = dict.fromkeys(cell for a in arrays for cell in a.tolist())
    out = np.empty(len(distinct), dtype=object)
    out[:] = list(distinct)
    return out


@storable
class IdIndex:
    """Finds ids: ``index(ids)`` gives the position of each, -1 for one that is not there."""

    def __init__(self, ids: np.ndarray) -> None:
        self._ids = ids
        if ids.dtype == np.int64:
            self._order = np.argsort(ids, kind="stable")
            self._sorted = ids[self._order]

    @cached_property
    def _index(self) -> dict[Any, int]:
        return {value: i for i, value in enumerate(self._ids.tolist())}

    def __call__(self, asked: np.ndarray) -> np.ndarray:
        """Return the position of each id that is asked for."""
        if not len(self._ids) or not len(asked):
            return np.full(len(asked), -1, dtype=np.intp)
        if self._ids.dtype != np.int64 or asked.dtype != np.int64:
            return np.array([self._index.get(v, -1) for v in asked.tolist()], dtype=np.intp)
        at = np.minimum(np.searchsorted(self._sorted, asked), len(self._sorted) - 1)
        return np.where(self._sorted[at] == asked, self._order[at], -1)
