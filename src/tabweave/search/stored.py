"""Rows that an index keeps: a table that grows, an id for each row, and filters on columns.

Rows are only ever appended; a removed one stays as a tombstone until the index is rebuilt.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np

from tabweave.io.register import storable
from tabweave.rows.table import (
    Codes,
    Numbers,
    Sets,
    Table,
    _ranks,
    distinct_rows,
    joined_column,
    take_rows,
)
from tabweave.rows.vocabulary import Label, canonical, positions
from tabweave.search.scan import _joined
from tabweave.search.space import HIDDEN, Space, chunks


@storable
@dataclass(frozen=True, eq=False)
class Stored:
    """Rows with their ids, and which of them are still there."""

    table: Table
    ids: np.ndarray
    alive: np.ndarray
    next_id: int

    @classmethod
    def of(cls, table: Table, ids: Any) -> Stored:
        """Store the first rows."""
        none = np.zeros(0, np.int64)
        named, next_id = _new_ids(ids, table.n_rows, none, 0)
        return cls(table, named, np.ones(table.n_rows, bool), next_id)

    def check(self) -> None:
        """Refuse rows, as read from a file, that do not fit together."""
        n = self.table.n_rows
        if self.ids.shape != (n,) or self.alive.shape != (n,) or self.alive.dtype != bool:
            raise ValueError(f"ids and tombstones do not fit {n} rows")
        for column, data in self.table:
            if isinstance(data, Numbers):
                fits = data.values.shape == (n,)
            else:
                last = data.starts[-1] if isinstance(data, Sets) else n
                fits = data.codes.shape == (last,) and data.codes.dtype.kind == "u"
                fits = fits and (not last or int(data.codes.max()) < len(data.labels))
            if isinstance(data, Sets):
                fits = fits and data.starts.shape == (n + 1,) and (np.diff(data.starts) >= 0).all()
            if not fits:
                raise ValueError(f"column {column.name!r} does not fit {n} rows")

    def append(self, table: Table, ids: Any) -> Stored:
        """Return these rows and more; ids that are in use already are refused."""
        held = self.ids[self.alive]
        named, next_id = _new_ids(ids, table.n_rows, held, self.next_id)
        columns = zip(self.table.columns, table.columns, strict=True)
        grown = tuple(joined_column(old, new) for old, new in columns)
        n_rows = self.table.n_rows + table.n_rows
        return Stored(
            Table(self.table.schema, grown, n_rows),
            np.concatenate([self.ids, named]) if len(self.ids) else named,
            np.concatenate([self.alive, np.ones(table.n_rows, bool)]),
            next_id,
        )

    def rows_of(self, ids: Any) -> np.ndarray:
        """Return the row of each id; refuse those that are not there."""
        asked = np.atleast_1d(_as_ids(ids))
        same = asked.dtype.kind == self.ids.dtype.kind
        met = np.flatnonzero(np.isin(self.ids, asked)) if same else np.zeros(0, np.intp)
        rows = met[self.alive[met]]
        rows = rows[np.argsort(self.ids[rows])]
        absent = np.flatnonzero(~np.isin(asked, self.ids[rows])) if same else np.arange(len(asked))
        if len(absent):
            first = asked[absent[0]].item()
            why = "was removed" if (self.ids[met] == first).any() else "is not in the index"
            n = np.count_nonzero(self.alive)
            raise KeyError(f"id {first!r} {why}; there are {n} rows")
        return rows[np.searchsorted(self.ids[rows], asked)]

    def without(self, ids: Any) -> Stored:
        """Return the rows without some of them."""
        rows = self.rows_of(ids)
        if len(np.unique(rows)) < len(rows):
            raise ValueError("an id is given twice; give each id to remove once")
        alive = self.alive.copy()
        alive[rows] = False
        return Stored(self.table, self.ids, alive, self.next_id)

    def compacted(self) -> Stored:
        """Return the rows that are still there."""
        rows = np.flatnonzero(self.alive)
        table = take_rows(self.table, rows)
        return Stored(table, self.ids[rows], np.ones(len(rows), bool), self.next_id)


def _as_ids(ids: Any) -> np.ndarray:
    """Return ids as whole numbers or as text."""
    if isinstance(ids, Set):
        ids = sorted(ids)
    out = np.asarray(ids)
    if out.dtype.kind == "O" or (out.dtype.kind == "U" and not isinstance(ids, np.ndarray)):
        kinds = {type(i) for i in np.atleast_1d(np.asarray(ids, object)).tolist()}
        text = all(issubclass(kind, str) for kind in kinds)
        if not text and not all(issubclass(kind, Integral) for kind in kinds):
            names = ", ".join(sorted(kind.__name__ for kind in kinds))
            raise TypeError(f"ids are whole numbers or text, all of one kind, not {names}")
        out = out.astype(str if text else np.int64)
    if not out.size:
        return out.astype(np.int64)
    if out.dtype.kind not in "iuUT":
        raise TypeError(f"ids are whole numbers or text, not {out.dtype}")
    return out.astype(np.int64) if out.dtype.kind in "iu" else out.astype(str)


def _new_ids(ids: Any, n_rows: int, held: np.ndarray, next_id: int) -> tuple[np.ndarray, int]:
    """Return the ids of new rows, running numbers if none are given, and the next free number."""
    if ids is None:
        if held.dtype.kind == "U" and len(held):
            raise ValueError("the rows of this index have text as ids; give ids for new rows, too")
        return np.arange(next_id, next_id + n_rows), next_id + n_rows
    out = np.atleast_1d(_as_ids(ids))
    if out.shape != (n_rows,):
        raise ValueError(f"{out.size} ids for {n_rows} rows; give one for each row")
    if len(held) and n_rows and held.dtype.kind != out.dtype.kind:
        kinds = {"i": "whole numbers", "U": "text"}
        raise TypeError(
            f"ids of this index are {kinds[held.dtype.kind]}, not {kinds[out.dtype.kind]}"
        )
    sort = np.sort(out)
    twice = sort[1:][sort[1:] == sort[:-1]]
    if len(twice):
        raise ValueError(f"id {twice[0].item()!r} appears twice; ids must differ")
    used = held[np.isin(held, out)]
    if len(used):
        raise ValueError(
            f"id {used[0].item()!r} is in the index already; remove it first, or use another"
        )
    if out.dtype.kind == "i" and n_rows:
        next_id = max(next_id, int(sort[-1]) + 1)
    return out, next_id


# -- filters ------------------------------------------------------------------------------------


def matching(table: Table, where: Mapping[str, Any]) -> np.ndarray:
    """Return which rows pass every condition: a value, several values, or a function."""
    if not isinstance(where, Mapping):
        raise TypeError(f"where={where!r}: give a mapping of column to value, values or function")
    out = np.ones(table.n_rows, bool)
    names = [name for name in table.schema.names if not name.startswith(HIDDEN)]
    for name, wanted in where.items():
        if name not in names:
            raise ValueError(
                f"where names column {name!r}, which is not there; "
                f"there are {', '.join(map(repr, names))}"
            )
        out &= _passes(name, table[name], wanted)
    return out


def _passes(name: str, column: Any, wanted: Any) -> np.ndarray:
    if isinstance(column, Numbers):
        if callable(wanted):
            return _answered(name, wanted, column.values, len(column.values))
        listed = np.array([_number(name, v) for v in _listed(wanted)], float)
        return np.isin(column.values, listed) | (np.isnan(column.values) & np.isnan(listed).any())
    if callable(wanted):
        passing = np.array([v is not None and _said(name, wanted, v) for v in column.labels], bool)
    else:
        passing = np.zeros(len(column.labels) + 1, bool)
        passing[positions(column.labels, map(canonical, _listed(wanted)))] = True
        passing = passing[:-1]
    hits = passing[column.codes] if len(passing) else np.zeros(len(column.codes), bool)
    if isinstance(column, Codes):
        return hits
    passed = np.concatenate([[0], np.cumsum(hits)])  # a set passes if one of its elements does
    return passed[column.starts[1:]] > passed[column.starts[:-1]]


def _listed(wanted: Any) -> Iterable[Any]:
    if isinstance(wanted, list | tuple | Set | np.ndarray):
        return list(wanted)
    return [wanted]


def _number(name: str, value: Any) -> float:
    if value is None:
        return float("nan")
    try:
        return float(value)
    except (TypeError, ValueError):
        raise TypeError(
            f"where asks for {name!r} = {value!r}, but it is a numeric column"
        ) from None


def _said(name: str, test: Callable[[Any], Any], value: Label) -> bool:
    try:
        return bool(test(value))
    except Exception as error:
        raise ValueError(
            f"the condition on column {name!r} failed at {value!r}: {error}"
        ) from error


def _answered(name: str, test: Callable[[Any], Any], values: np.ndarray, n: int) -> np.ndarray:
    try:
        out = np.asarray(test(values))
    except Exception as error:
        raise ValueError(f"the condition on column {name!r} failed: {error}") from error
    if out.shape != (n,) or out.dtype != bool:
        raise ValueError(
            f"the condition on column {name!r} must turn an array of numbers into an array of "
            f"{n} booleans, not {out.dtype} of shape {out.shape}"
        )
    return out


# -- Stored rows as a search sees them: distinct rows as nodes, in the codes of a space

_QUERIES = 16  # compared at a time: codes are read from memory once for all of them


@dataclass(frozen=True, eq=False)
class View:
    """Nodes and their rows.

    Attributes
    ----------
    node_of : ndarray
        The node of each row.
    members, starts : ndarray
        Node u has the rows ``members[starts[u] : starts[u + 1]]``.
    heads : ndarray
        The first row of each node.
    places : list of ndarray
        What the space knows of the labels of each of its columns.
    groups, codes : ndarray
        Columns that are looked up together, and the nodes' joint values in them.
    line : ndarray of shape (dimensions, nodes)
        The other coordinates.
    """

    space: Space
    table: Table
    node_of: np.ndarray
    members: np.ndarray
    starts: np.ndarray
    heads: np.ndarray
    places: list[np.ndarray]
    groups: np.ndarray
    codes: np.ndarray
    line: np.ndarray

    @classmethod
    def of(cls, table: Table, space: Space) -> View:
        """Find the distinct rows of a table and take them apart."""
        node_of, heads = _nodes(table, space)
        members = np.argsort(node_of, kind="stable")
        starts = np.concatenate([[0], np.cumsum(np.bincount(node_of, minlength=len(heads)))])
        columns = [table[block.names[0]] for block in space.values]
        places = [space.locate(block, c) for block, c in zip(space.values, columns, strict=True)]
        sizes = [len(c.labels) for c in columns]
        groups, codes = _joined([c.codes[heads] for c in columns], sizes, len(heads))
        parts = [space.line(rows) for rows in chunks(table, heads)] if space.lines else []
        line = np.ascontiguousarray(np.vstack(parts).T) if parts else np.zeros((0, len(heads)))
        return cls(space, table, node_of, members, starts, heads, places, groups, codes, line)

    def vectors(self, step: int = 1) -> Iterator[np.ndarray]:
        """Yield the coordinates of the nodes, or of every so many, some at a time."""
        for rows in chunks(self.table, self.heads[::step]):
            yield self.space.vectors(rows)

    def first(self, allowed: np.ndarray | None) -> np.ndarray:
        """Return each node's first allowed row, or -1."""
        if allowed is None:
            return self.heads
        from tabweave.search.kernels import first_allowed

        out = np.full(len(self.heads), -1, np.int64)
        first_allowed(self.node_of, allowed, out)
        return out

    def nearest(
        self, queries: Table, k: int, search: Any, size: int = _QUERIES
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the k nearest nodes of each query: (distances, first rows), nearest first.

        ``search(lookup, block, out, rows)`` fills in those of ``size`` queries; see
        :func:`everywhere`.
        """
        from tabweave.blocks.kernels import in_threads

        asked = _Asked(self, queries)
        widths = np.array([len(p) for p in self.places], np.int64)
        offsets = np.concatenate([[0], np.cumsum(widths)]).astype(np.int64)
        sizes = [int(np.prod(widths[g[g >= 0]])) for g in self.groups]
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        out = np.empty((queries.n_rows, k))
        rows = np.empty((queries.n_rows, k), np.int64)

        def work(block: slice) -> None:
            lookup = asked.values(block), asked.line[block], self.groups, offsets, widths, starts
            search(lookup, block, out[block], rows[block])

        n = queries.n_rows
        in_threads(work, [slice(i, min(i + size, n)) for i in range(0, n, size)])
        return out, rows

    def rows(
        self, found: np.ndarray, first: np.ndarray, k: int, allowed: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Turn nearest nodes into nearest rows: (distances, rows); inf and -1 where too few."""
        from tabweave.search.kernels import spread

        if allowed is None:
            allowed = np.ones(len(self.node_of), bool)
        distances, rows = np.empty((len(found), k)), np.empty((len(found), k), np.int64)
        spread(found, first, self.node_of, self.starts, self.members, allowed, distances, rows)
        if self.space.root:
            np.sqrt(np.maximum(distances, 0, out=distances), out=distances)
        return distances, rows


def everywhere(view: View, first: np.ndarray, begin: int = 0) -> Any:
    """Return a search that compares with every node from ``begin`` on."""
    from tabweave.search.kernels import scan

    codes, line = view.codes, view.line
    kept = begin + np.flatnonzero(first[begin:] >= 0)
    if begin or len(kept) < len(first) // 4:  # a part of the nodes, close together in memory
        codes, line = np.take(codes, kept, axis=1), np.take(line, kept, axis=1)
        first = first[kept]

    def search(lookup: Any, block: slice, out: np.ndarray, rows: np.ndarray) -> None:
        scan(*lookup, codes, line, view.space.power, first, out, rows)

    return search


class _Asked:
    """Queries as a view sees them."""

    def __init__(self, view: View, queries: Table) -> None:
        self.view = view
        columns = [queries[block.names[0]] for block in view.space.values]
        self.codes = [column.codes for column in columns]
        pairs = zip(view.space.values, columns, strict=True)
        self.places = [view.space.locate(block, column) for block, column in pairs]
        self.line = np.ascontiguousarray(view.space.line(queries))

    def values(self, block: slice) -> np.ndarray:
        """Return the distances of some queries to every value of every column, side by side."""
        parts = [np.zeros((block.stop - block.start, 0))]
        space = self.view.space
        pairs = zip(space.values, self.view.places, strict=True)
        for a, (one, stored) in enumerate(pairs):
            parts.append(space.between(one, self.places[a][self.codes[a][block]], stored))
        return np.hstack(parts)


def _nodes(table: Table, space: Space) -> tuple[np.ndarray, np.ndarray]:
    """Return the node of each row and the first row of each node, as they arrived."""
    everyone = np.arange(table.n_rows)
    names = [name for block in (*space.values, *space.lines) for name in block.names]
    if not names or any(name.startswith(HIDDEN) for name in names):
        return everyone, everyone  # vectors hardly ever repeat
    columns = [table[name] for name in names]
    codes = [c.codes if isinstance(c, Codes) else _ranks(c) for c in columns]
    first, inverse = distinct_rows(codes)
    order = np.argsort(first)
    number = np.empty(len(first), np.int64)
    number[order] = np.arange(len(first))
    return number[inverse], first[order]


# -- What an index derives from its rows: nodes, a graph or vectors; made when first needed
