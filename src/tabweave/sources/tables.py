"""Tables of a `Sources`: their ids, and their cells as floats."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp

from tabweave.rows.cells import categories
from tabweave.rows.frames import _listed, columns_of
from tabweave.rows.table import Codes, Numbers, Table
from tabweave.rows.vocabulary import Label, identity, positions

Matrix: TypeAlias = Any  # a float ndarray or a csr_array; both are indexed alike


@dataclass(frozen=True, eq=False)
class Block:
    """One table: the place of each row among all ids, its cells as floats, its columns."""

    rows: np.ndarray
    matrix: Matrix
    columns: tuple[str, ...]
    labels: tuple[list[Label] | None, ...]  # of each category's code; None for numbers


def read_block(source: Any, where: str, key: str) -> tuple[np.ndarray, Block]:
    """Read a frame with an id column, or a pair of ids and a matrix; return ids and block."""
    ids, block = (
        _of_pair(source, where) if isinstance(source, tuple) else _of_frame(source, where, key)
    )
    refuse_repeated(ids, where)
    return ids, block


def _of_pair(source: tuple[Any, ...], where: str) -> tuple[np.ndarray, Block]:
    if len(source) != 2:
        raise ValueError(f"{where}: pass (ids, matrix), not a tuple of {len(source)}")
    ids = read_ids(source[0], where)
    sparse = sp.issparse(source[1])
    matrix = sp.csr_array(source[1], dtype=float) if sparse else np.asarray(source[1], dtype=float)
    if matrix.ndim != 2 or matrix.shape[0] != len(ids):
        raise ValueError(f"{where}: {len(ids)} ids, but a matrix of shape {matrix.shape}")
    if np.isinf(matrix.data if sparse else matrix).any():
        raise ValueError(f"{where}: the matrix holds infinity; replace it by a number or NaN")
    columns = tuple(f"x{i}" for i in range(matrix.shape[1]))
    return ids, Block(np.zeros(0, np.intp), matrix, columns, (None,) * len(columns))


def _of_frame(frame: Any, where: str, key: str) -> tuple[np.ndarray, Block]:
    if sp.issparse(frame) or isinstance(frame, np.ndarray):
        raise TypeError(f"{where}: a matrix does not say whose rows it has; pass (ids, matrix)")
    names, cells, _ = columns_of(frame)
    if names is None or key not in names:
        there = ", ".join(map(repr, names or []))
        raise ValueError(f"{where} has no id column {key!r}; there are {there}: pass key=...")
    at = names.index(key)
    ids = read_ids(cells[at], where)
    rest = {name: c for i, (name, c) in enumerate(zip(names, cells, strict=True)) if i != at}
    if not rest or len(rest) != len(names) - 1:
        why = "no column besides the id" if not rest else "two columns of one name"
        raise ValueError(f"{where} has {why}")
    try:
        table = Table.of(rest)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{where}, {error}") from error
    return ids, Block(np.zeros(0, np.intp), *_as_floats(table, where))


def _as_floats(table: Table, where: str) -> tuple[Matrix, tuple[str, ...], Any]:
    matrix = np.empty((table.n_rows, len(table.columns)))
    labels: list[list[Label] | None] = []
    for i, (column, cells) in enumerate(table):
        if isinstance(cells, Numbers):
            matrix[:, i] = cells.values
            labels.append(None)
        elif isinstance(cells, Codes):
            known: list[Label] = [label for label in cells.labels if label is not None]
            # Missing is no category here: whoever reads the floats sees NaN, as among numbers.
            code = positions(known, cells.labels).astype(float)
            code[code == len(known)] = np.nan
            matrix[:, i] = code[cells.codes] if len(code) else np.nan
            labels.append(known)
        else:
            raise TypeError(
                f"{where}, column {column.name!r} holds sets; turn them into vectors first, "
                "e.g. by tabweave.SetTfidf, and pass (ids, matrix)"
            )
    return matrix, tuple(table.schema.names), tuple(labels)


def conformed(block: Block, like: Block, where: str) -> Block:
    """Return a block with the columns and the codes of another one."""
    if block.columns == like.columns and block.labels == like.labels:
        return block
    place = {name: i for i, name in enumerate(block.columns)}
    absent = [name for name in like.columns if name not in place]
    if absent:
        raise ValueError(
            f"{where}: column {absent[0]!r} is missing ({len(absent)} of {len(like.columns)} "
            f"are); there are {', '.join(map(repr, block.columns[:20]))}"
        )
    at = [place[name] for name in like.columns]
    matrix = block.matrix[:, at]
    for i, (name, known) in enumerate(zip(like.columns, like.labels, strict=True)):
        found = block.labels[at[i]]
        if found == known or not len(block.rows):
            continue
        if found is None or known is None:
            was, now = ("numbers", "categories") if known is None else ("categories", "numbers")
            raise TypeError(f"{where}, column {name!r}: {was} before, {now} here")
        code = positions(known, found).astype(float)
        code[code == len(known)] = np.nan  # a category that was never seen
        cells = matrix[:, i]
        matrix[:, i] = np.where(np.isnan(cells), np.nan, code[np.nan_to_num(cells).astype(np.intp)])
    return Block(block.rows, matrix, like.columns, like.labels)


_KINDS = {0: "true or false", 1: "numbers", 2: "text", 3: "bytes"}


def read_ids(column: Any, where: str) -> np.ndarray:
    """Return ids as int64, or as canonical labels; refuse a missing one."""
    column = _listed(column, "id")
    if isinstance(column, np.ndarray) and column.dtype.kind in "iu" and column.dtype != np.uint64:
        return column.astype(np.int64, copy=False)
    codes, labels = categories(column)
    if None in labels and (codes == labels.index(None)).any():
        row = int(np.flatnonzero(codes == labels.index(None))[0])
        raise ValueError(f"{where}: the id of row {row} is missing; fill it or drop the row")
    table = np.empty(len(labels), dtype=object)
    table[:] = labels
    values = table[codes]
    whole = all(type(v) is int and abs(v) < 2**63 for v in labels if v is not None)
    return values.astype(np.int64) if whole and len(values) else values


def refuse_mixed(named: Sequence[tuple[str, np.ndarray]]) -> None:
    """Refuse ids of different kinds: text never meets numbers, though it may look like them."""
    seen: tuple[str, Any] | None = None
    for where, ids in named:
        for value in ids[:1].tolist() if ids.dtype == np.int64 else _one_of_each(ids):
            if seen is None:
                seen = (where, value)
            elif _kind(value) != _kind(seen[1]):
                raise TypeError(
                    f"{where}: ids are {_KINDS[_kind(value)]} ({value!r}), but those of {seen[0]} "
                    f"are {_KINDS[_kind(seen[1])]} ({seen[1]!r}): they would never meet; convert "
                    "one of them"
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


def refuse_repeated(ids: np.ndarray, where: str) -> None:
    """Refuse two rows of one id: which of them to believe is not ours to say."""
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
            f"{where}: id {repeated[0]!r} appears more than once; keep one row of each id, "
            "or sum up its rows first"
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


class Places:
    """Where each id stands: ``places(ids)`` gives positions, -1 for an id that is not known."""

    def __init__(self, ids: np.ndarray) -> None:
        self._ids = ids
        if ids.dtype == np.int64:
            self._order = np.argsort(ids, kind="stable")
            self._sorted = ids[self._order]

    @cached_property
    def _index(self) -> dict[Any, int]:
        return {value: i for i, value in enumerate(self._ids.tolist())}

    def __call__(self, asked: np.ndarray) -> np.ndarray:
        if not len(self._ids) or not len(asked):
            return np.full(len(asked), -1, dtype=np.intp)
        if self._ids.dtype != np.int64 or asked.dtype != np.int64:
            return np.array([self._index.get(v, -1) for v in asked.tolist()], dtype=np.intp)
        at = np.minimum(np.searchsorted(self._sorted, asked), len(self._sorted) - 1)
        return np.where(self._sorted[at] == asked, self._order[at], -1)
