"""Ids: what names the same thing in every source, as one array and a way back to places in it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from weft import _read
from weft._frames import _listed
from weft._labels import identity

_KINDS = {0: "true or false", 1: "numbers", 2: "text", 3: "bytes"}


def read_ids(column: Any, where: str) -> np.ndarray:
    """Return ids as int64, or as canonical labels; refuse a missing one."""
    column = _listed(column, "id")
    if isinstance(column, np.ndarray) and column.dtype.kind in "iu" and column.dtype != np.uint64:
        return column.astype(np.int64, copy=False)
    codes, labels = _read.categories(column)
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
    return identity(value)[0]


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
