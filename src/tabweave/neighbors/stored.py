"""Stored: the rows of an index, as they are read and as they are kept with their ids.

Rows come in as users give them, and are read as the embedder reads its own: the first ones, more,
or those asked about. They stay as codes, under ids by which they are found, removed and explained.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from importlib.util import find_spec
from numbers import Integral
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from tabweave._compat import require, warn_caller
from tabweave.columns.column import Column, Schema
from tabweave.columns.frames import (
    RowLabels,
    columns_of,
    index_labels,
    is_missing,
    label_as_python,
    object_array,
    objects,
    row_labels,
)
from tabweave.columns.numeric import Numbers
from tabweave.columns.table import Table, append_rows, as_rows, require_rows, take_rows
from tabweave.columns.vocabulary import Label, Unknown, positions, slices
from tabweave.counts.unknown import report_unknown, spelled_columns, value_vocabulary
from tabweave.embed.base import Embedder
from tabweave.embed.weave import Weave
from tabweave.engines.frames import fitted_names
from tabweave.io.register import storable
from tabweave.neighbors.filters import hint, matching
from tabweave.space.space import HIDDEN, Space, Vectors, VectorSpace, given_names

# The squares of larger coordinates, summed, are infinite.
LARGEST_COORDINATE = 1e150
# Rows that a segment takes before the next one begins: to lay them out again takes milliseconds.
SEGMENT_ROWS = 1 << 16
# Rows of a file that are read and compared at a time: with what is derived from them, some 100 MB.
BLOCK_ROWS = 1 << 20


@storable
@dataclass(frozen=True, eq=False)
class Stored:
    """Rows with their ids, and which of them are still there.

    Rows are only ever appended; a removed one stays as a tombstone until the index is rebuilt.
    """

    table: Table
    ids: np.ndarray
    alive: np.ndarray
    next_id: int

    @classmethod
    def of(cls, table: Table, ids: Any) -> Stored:
        """Store the first rows."""
        new_ids, next_id = _new_ids(ids, table.n_rows, (), 0)
        return cls(table, new_ids, np.ones(table.n_rows, bool), next_id)

    def _check_loaded(self) -> None:
        n = self.table.n_rows
        if self.ids.shape != (n,) or self.alive.shape != (n,) or self.alive.dtype != bool:
            raise ValueError(f"ids and tombstones do not fit {n} rows")

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def is_mapped(self) -> bool:
        """Whether rows stay in a file and are read when they are compared."""
        return isinstance(self.ids, np.memmap)

    @cached_property
    def n_alive(self) -> int:
        """How many rows are still there."""
        return int(np.count_nonzero(self.alive))

    @cached_property
    def _id_order(self) -> np.ndarray | None:
        """The order that sorts the ids, None if they rise."""
        is_rising = bool((self.ids[1:] > self.ids[:-1]).all())
        return None if is_rising else np.argsort(self.ids, kind="stable")

    def append(self, table: Table, ids: Any) -> Stored:
        """The stored rows and more; raise for ids that are in use already."""
        stored = self if self.n_alive else self.compacted()  # ids may then be of another kind
        return stored.extended(table, *_new_ids(ids, table.n_rows, (stored,), self.next_id))

    def extended(self, table: Table, new_ids: np.ndarray, next_id: int) -> Stored:
        """The stored rows and more, under ids that are not in use."""
        return Stored(
            append_rows(self.table, table),
            np.concatenate([self.ids, new_ids]) if len(self) else new_ids,
            np.concatenate([self.alive, np.ones(table.n_rows, bool)]),
            next_id,
        )

    def matches(self, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Numbers of the labels that are ids of rows, removed ones too, and these rows."""
        held, sought = _comparable(self.ids, labels)
        order = self._id_order if held is self.ids else np.argsort(held, kind="stable")
        begin, end = (np.searchsorted(held, sought, side, order) for side in ("left", "right"))
        sizes = end - begin
        inside = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        rows = np.repeat(begin, sizes) + inside
        return np.repeat(np.arange(len(sizes)), sizes), rows if order is None else order[rows]

    def id_of(self, row: int) -> Any:
        """Id of a row."""
        return label_as_python(self.ids[row])

    def without(self, ids: Any) -> Stored:
        """Rows without those of some ids, all rows of a label that repeats."""
        return Segments((self,)).without(ids).parts[0]

    def counting(self, weight: np.ndarray | None) -> Stored:
        """Rows without those of weight 0."""
        if weight is None or weight.all():
            return self
        return replace(self, alive=self.alive & (weight > 0))

    def compacted(self) -> Stored:
        """Rows that are still there."""
        rows = np.flatnonzero(self.alive)
        table = take_rows(self.table, rows)
        return Stored(table, self.ids[rows], np.ones(len(rows), bool), self.next_id)

    def blocks(self) -> list[slice]:
        """Rows to be compared at a time: all of them, unless they stay in a file."""
        all_rows = [slice(0, len(self))]
        return slices(len(self), 1, BLOCK_ROWS) if self.is_mapped else all_rows


@storable
@dataclass(frozen=True, eq=False)
class Segments:
    """The rows of an index in segments, one after the other: what is added lies in the last.

    Numbers of rows go on from segment to segment. A code has the same label in all of them.
    """

    parts: tuple[Stored, ...]

    @classmethod
    def of(cls, table: Table, ids: Any) -> Segments:
        """Store the first rows."""
        return cls((Stored.of(table, ids),))

    def _check_loaded(self) -> None:
        if not self.parts or any(part.table.schema != self.schema for part in self.parts):
            raise ValueError("expected segments of the same columns")
        for part in self.parts:
            if part.ids.dtype.kind != self.parts[0].ids.dtype.kind:
                raise ValueError("expected ids of one kind in all segments")

    def __len__(self) -> int:
        return sum(map(len, self.parts))

    @property
    def schema(self) -> Schema:
        """The columns."""
        return self.parts[0].table.schema

    @property
    def n_alive(self) -> int:
        """How many rows are still there."""
        return sum(part.n_alive for part in self.parts)

    @cached_property
    def starts(self) -> np.ndarray:
        """The number of the first row of each segment."""
        return np.cumsum([0, *map(len, self.parts[:-1])])

    @cached_property
    def alive(self) -> np.ndarray:
        """Which rows are still there."""
        return _joined([part.alive for part in self.parts])

    @property
    def ids(self) -> np.ndarray:
        """The ids of the rows that are still there."""
        masks = ((part, part.n_alive == len(part)) for part in self.parts)
        return _joined([part.ids if whole else part.ids[part.alive] for part, whole in masks])

    def segment_of(self, rows: np.ndarray) -> np.ndarray:
        """The number of the segment of each row."""
        return np.searchsorted(self.starts, rows, "right") - 1

    def ids_of(self, rows: np.ndarray) -> np.ndarray:
        """The ids of some rows."""
        out = np.empty(rows.shape, np.result_type(*(part.ids.dtype for part in self.parts)))
        segment = self.segment_of(rows)
        for i, (start, part) in enumerate(zip(self.starts, self.parts, strict=True)):
            out[segment == i] = part.ids[rows[segment == i] - start]
        return out

    def take(self, rows: np.ndarray) -> Table:
        """The cells of some rows."""
        segment = self.segment_of(rows)
        tables = [
            take_rows(part.table, rows[segment == i] - start)
            for i, (start, part) in enumerate(zip(self.starts, self.parts, strict=True))
        ]
        order = np.empty(len(rows), np.intp)
        order[np.argsort(segment, kind="stable")] = np.arange(len(rows))
        return take_rows(reduce(append_rows, tables), order)

    def append(self, table: Table, ids: Any) -> Segments:
        """The stored rows and more; raise for ids that are in use already."""
        if not self.n_alive and len(self):  # ids may then be of another kind
            return Segments((self.parts[-1].compacted(),)).append(table, ids)
        *full, last = self.parts
        new_ids, next_id = _new_ids(ids, table.n_rows, self.parts, last.next_id)
        if last.is_mapped or len(last) >= SEGMENT_ROWS:
            full, none = [*full, last], np.zeros(0, np.intp)
            last = Stored(take_rows(last.table, none), last.ids[:0], last.alive[:0], next_id)
        last = last.extended(table, new_ids, next_id)
        full = [replace(part, table=_relabelled(part.table, last.table)) for part in full]
        return Segments((*full, last))

    def rows_of(self, ids: Any) -> np.ndarray:
        """Rows of each id, more than one where labels repeat; raise for absent ids."""
        labels = _asked_ids(ids, self.parts[0].ids)
        pairs = [part.matches(labels) for part in self.parts]
        label = np.concatenate([number for number, _ in pairs])
        numbered = zip(pairs, self.starts, strict=True)
        rows = np.concatenate([rows + start for (_, rows), start in numbered])
        order = np.argsort(label, kind="stable")
        label, rows = label[order], rows[order]
        alive = self.alive[rows]
        absent = np.flatnonzero(np.bincount(label[alive], minlength=len(labels)) == 0)
        if len(absent):
            fault = "was removed" if (label == absent[0]).any() else "is not in the index"
            id, n = label_as_python(labels[absent[0]]), self.n_alive
            raise KeyError(f"id {id!r} {fault}; there are {n} rows")
        return rows[alive]

    def row_of(self, id: Any) -> int:
        """Row of an id; raise where labels repeat, and for an absent id."""
        if np.ndim(id) and not (isinstance(id, tuple) and self.parts[0].ids.dtype.kind == "O"):
            raise ValueError(f"expected one id, got {id!r}; explain each of them")
        rows = self.rows_of([id])
        if len(rows) > 1:
            raise ValueError(
                f"id {label_as_python(id)!r} is that of {len(rows)} rows, since labels of the "
                "frame repeat; call .reset_index() first, or name the rows with ids="
            )
        return int(rows[0])

    def positions_of(self, rows: np.ndarray) -> np.ndarray:
        """Where rows are among those that are still there."""
        return rows if self.n_alive == len(self) else (np.cumsum(self.alive) - 1)[rows]

    def allowed(self, where: Any) -> np.ndarray | None:
        """Which rows may be found, as ``where`` says; None if all may."""
        if where is None:
            return None if self.n_alive == len(self) else self.alive
        if isinstance(where, Mapping):
            return self.alive & _joined([matching(part.table, where) for part in self.parts])
        mask, n = self._aligned(where), self.n_alive
        cells = mask.ravel().tolist() if mask.dtype == object else []
        if cells and all(is_missing(cell) or type(cell) is bool for cell in cells):
            mask = np.array([cell is True for cell in cells])  # a comparison with gaps has gaps
        if mask.dtype != bool or mask.shape != (n,):
            kind = repr(where) if mask.ndim == 0 else f"{mask.dtype} of shape {mask.shape}"
            raise TypeError(
                "expected where to be a mapping of column to value, values, range or function, or "
                f"{n} booleans, one for each of ids_, got {kind}"
            )
        out = self.alive.copy()
        out[self.alive] = mask
        return out

    def _aligned(self, where: Any) -> np.ndarray:
        """A mask as an array; that of a frame in the order of the ids, if it has these."""
        labels = index_labels(where.index) if hasattr(where, "iloc") else None
        mask = np.asarray(where)
        if labels is None or labels.values.shape != (self.n_alive,):
            return mask
        ids = self.ids
        if (labels.values == ids).all():
            return mask
        mask_ids, stored_ids = _comparable(labels.values, ids)
        order = np.argsort(mask_ids, kind="stable")
        unique = np.unique(stored_ids)
        if len(unique) == len(stored_ids) and (mask_ids[order] == unique).all():
            return mask[order[np.searchsorted(mask_ids[order], stored_ids)]]
        if labels.is_default:
            return mask
        raise ValueError(
            "expected where to have the index labels of the rows, got other labels; give "
            "where.to_numpy() for booleans in the order of ids_"
        )

    def without(self, ids: Any) -> Segments:
        """Rows without those of some ids, all rows of a label that repeats."""
        rows = self.rows_of(ids)
        if len(np.unique(rows)) < len(rows):
            raise ValueError("an id is given twice; give each id to remove once")
        parts, segment = list(self.parts), self.segment_of(rows)
        for i in np.unique(segment):
            alive = parts[i].alive.copy()
            alive[rows[segment == i] - self.starts[i]] = False
            parts[i] = replace(parts[i], alive=alive)
        return Segments(tuple(parts))

    def compacted(self) -> Segments:
        """Rows that are still there, in one segment."""
        parts = [part.compacted() for part in self.parts]
        table = reduce(append_rows, [part.table for part in parts])
        ids = _joined([part.ids for part in parts])
        return Segments((Stored(table, ids, np.ones(len(ids), bool), parts[-1].next_id),))


def _joined(parts: Sequence[np.ndarray]) -> np.ndarray:
    """Arrays one after the other; a single one as it is."""
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _relabelled(table: Table, later: Table) -> Table:
    """A table whose columns have the labels of a later one too; codes stay what they are."""
    pairs = list(zip(table.columns, later.columns, strict=True))
    if all(len(getattr(a, "labels", ())) == len(getattr(b, "labels", ())) for a, b in pairs):
        return table
    columns = (replace(a, labels=b.labels) if hasattr(a, "labels") else a for a, b in pairs)
    return replace(table, columns=tuple(columns))


def _as_ids(ids: Any) -> np.ndarray:
    """Ids as whole numbers or as text."""
    if isinstance(ids, Set):
        ids = sorted(ids)
    out = np.asarray(ids)
    if out.dtype.kind == "O" or (out.dtype.kind == "U" and not isinstance(ids, np.ndarray)):
        kinds = {type(i) for i in np.atleast_1d(np.asarray(ids, object)).tolist()}
        text = all(issubclass(kind, str) for kind in kinds)
        if not text and not all(issubclass(kind, Integral) for kind in kinds):
            names = ", ".join(sorted(kind.__name__ for kind in kinds))
            raise TypeError(
                f"expected ids to be whole numbers or text, all of one kind, got {names}"
            )
        out = out.astype(str if text else np.int64)
    if not out.size:
        return out.astype(np.int64)
    if out.dtype.kind not in "iuUT":
        raise TypeError(f"expected ids to be whole numbers or text, got {out.dtype}")
    if out.dtype == np.uint64 and (large := out[out > np.iinfo(np.int64).max]).size:
        raise ValueError(
            f"expected ids below 2**63, got {large.flat[0]}; give hashes as text, or as int64"
        )
    return out.astype(np.int64) if out.dtype.kind in "iu" else out.astype(str)


def _asked_ids(ids: Any, held: np.ndarray) -> np.ndarray:
    """Ids that are asked for, as those that are held: a tuple may be one label."""
    if held.dtype.kind in "iU" or not len(held):
        return np.atleast_1d(_as_ids(ids))
    several = isinstance(ids, list | Set) or bool(getattr(ids, "shape", ()))
    if held.dtype.kind != "O":
        return np.asarray(list(ids) if several else [ids], held.dtype)
    return object_array(list(ids) if several else [ids])


def _comparable(held: np.ndarray, others: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Both as arrays that can be sorted: labels of several types as numbers.

    Ids of one kind equal none of another.
    """
    if held.dtype.kind != others.dtype.kind:
        return np.zeros(len(held), np.int64), np.full(len(others), -1)
    if held.dtype.kind != "O":
        return held, others
    numbers = {label: i for i, label in enumerate(dict.fromkeys(held.tolist()))}
    held, others = (
        np.array([numbers.get(label, -1) for label in labels.tolist()], np.int64)
        for labels in (held, others)
    )
    return held, others


def _new_ids(
    ids: Any, n_rows: int, stored: Sequence[Stored], next_id: int
) -> tuple[np.ndarray, int]:
    """Ids of new rows, running numbers if none are given, and the next free number.

    Labels of a frame may repeat. A default index that would repeat ids of other rows is none.
    """
    from_frame, n_held = isinstance(ids, RowLabels), sum(part.n_alive for part in stored)
    held = stored[0].ids[:0] if stored else np.zeros(0, np.int64)
    if (
        from_frame
        and ids.is_default
        and (held.dtype.kind != "i" or _is_used(ids.values, stored).any())
    ):
        ids = None
    if ids is None:
        if held.dtype.kind != "i" and n_held:
            raise ValueError(
                f"the rows of this index have {_kind_name(held)} as ids; give ids for new rows, too"
            )
        return np.arange(next_id, next_id + n_rows), next_id + n_rows
    out = ids.values if from_frame else np.atleast_1d(_as_ids(ids))
    if out.shape != (n_rows,):
        raise ValueError(f"expected {n_rows} ids, one per row, got {out.size}")
    if n_held and n_rows and held.dtype.kind != out.dtype.kind:
        raise TypeError(
            f"expected ids to be {_kind_name(held)}, as those in the index are, got "
            f"{_kind_name(out)}"
        )
    _check_new(out, from_frame, stored)
    if out.dtype.kind == "i" and n_rows:
        next_id = max(next_id, int(out.max()) + 1)
    return out, next_id


def _check_new(ids: np.ndarray, from_frame: bool, stored: Sequence[Stored]) -> None:
    """Refuse ids that repeat, unless they are labels of a frame, and those of other rows."""
    ordered = ids[:0] if from_frame else np.sort(ids)
    twice = ordered[1:][ordered[1:] == ordered[:-1]]
    if len(twice):
        raise ValueError(f"expected ids that differ, got {twice[0].item()!r} twice")
    used = ids[_is_used(ids, stored)]
    if len(used):
        remedy = ", call .reset_index() on the new rows" if from_frame else ""
        raise ValueError(
            f"id {label_as_python(used[0])!r} is in the index already; remove it first{remedy}, "
            "or use another"
        )


def _is_used(ids: np.ndarray, stored: Sequence[Stored]) -> np.ndarray:
    """Which ids rows have that are still there."""
    out = np.zeros(len(ids), bool)
    for part in stored:
        number, rows = part.matches(ids)
        out[number[part.alive[rows]]] = True
    return out


def _kind_name(ids: np.ndarray) -> str:
    kinds = {"i": "whole numbers", "U": "text", "M": "datetimes"}
    return kinds.get(ids.dtype.kind, "labels of a frame")


def row_ids(X: Any, ids: Any, schema: Schema | None = None) -> Any:
    """What rows are called: by ``ids``, by the column of that name, or by their frame.

    None if nothing says. A text that is no column's name is the id of a single row.
    """
    if ids is None:
        return row_labels(X)
    if not isinstance(ids, str) or isinstance(X, Table):
        return ids
    names, columns, n_rows = columns_of(X if schema is None else as_rows(X, schema))
    names = names or []
    if ids in names:
        try:
            return _as_ids(objects(columns[names.index(ids)]))
        except TypeError as error:
            raise TypeError(f"column {ids!r}: {error}") from None
    if n_rows != 1:
        raise ValueError(
            f"expected ids to be an array or the name of a column, got {ids!r}; the columns are "
            f"{', '.join(map(repr, names))}"
        )
    return ids


def without_column(X: Any, name: Any) -> Any:
    """Rows without the column that has their ids, if a name says which it is."""
    names, columns, _ = columns_of(X) if isinstance(name, str) else (None, [], 0)
    if names is None or name not in names:
        return X
    return {other: cells for other, cells in zip(names, columns, strict=True) if other != name}


# -- reading ------------------------------------------------------------------------------------


def first_rows(embedder: Any, X: Any, y: Any, ids: Any = None) -> tuple[Any, Table]:
    """A fitted embedder and the first rows of an index.

    An unfitted embedder is cloned and fitted on the rows; without any, it is a Weave. It does not
    see the column that has the ids, if ``ids`` names one.
    """
    if embedder is None:
        embedder = Weave()
    if _is_fitted(embedder):
        return embedder, _as_read(embedder, _table(embedder, X))
    embedder, features = clone(embedder), without_column(X, ids)
    rows = features
    if isinstance(embedder, Embedder):
        rows = Table.of(features, Schema.of(embedder.schema), rules="whole")
        require_rows(rows)
        X = X if rows.schema.dropped or features is not X else rows
    embedder.fit(rows, y)
    return embedder, _table(embedder, X)


def _is_fitted(embedder: Any) -> bool:
    try:
        check_is_fitted(embedder)
    except NotFittedError:
        return False
    return True


def _table(embedder: Any, X: Any) -> Table:
    """Read the first rows: the embedder's columns as it reads them, others as their values look."""
    if not isinstance(embedder, Embedder):
        return with_vectors(embedder, X, Table.of(X, rules="all"))
    schema = embedder.schema_
    if isinstance(X, Table) or names_of(X) is None or not schema.named:
        return _checked(Table.of(X, schema), schema)
    table = Table.of(X, replace(schema, undeclared="inferred", dropped=()), rules="all")
    require_rows(table)
    return table


def with_vectors(embedder: Any, X: Any, table: Table) -> Table:
    """A table with the vectors of its rows as hidden columns."""
    vectors = embedder.transform(X)
    if issparse(vectors):
        raise TypeError(
            f"{type(embedder).__name__}.transform: expected dense vectors, got a sparse matrix of "
            f"shape {vectors.shape}; make them dense, or reduce them (TruncatedSVD, KSVD) in a "
            "pipeline"
        )
    vectors = np.asarray(vectors, dtype=np.float64)
    if vectors.ndim != 2 or len(vectors) != table.n_rows or not np.isfinite(vectors).all():
        raise ValueError(
            f"{type(embedder).__name__}.transform: expected {table.n_rows} rows of finite numbers, "
            f"got shape {vectors.shape}"
        )
    if vectors.size and np.abs(vectors).max() > LARGEST_COORDINATE:
        raise ValueError(
            f"{type(embedder).__name__}.transform: expected coordinates up to "
            f"{LARGEST_COORDINATE:g}, whose squares are numbers, got {np.abs(vectors).max():.3g}; "
            "scale the columns first"
        )
    require_rows(table)
    names = [f"{HIDDEN}{i}" for i in range(vectors.shape[1])]
    columns = tuple(Column(name, "numeric") for name in names)
    schema = replace(table.schema, columns=table.schema.columns + columns)
    parts = tuple(Numbers(np.ascontiguousarray(column)) for column in vectors.T)
    return Table(schema, table.columns + parts, table.n_rows)


def more_rows(embedder: Any, X: Any, schema: Schema) -> Table:
    """Read rows to be added: all columns of the first ones must be there."""
    if isinstance(embedder, Embedder):
        return _as_read(embedder, _checked(Table.of(as_rows(X, schema), schema), schema))
    X = _as_fitted(embedder, as_rows(X, schema))
    return with_vectors(embedder, X, Table.of(X, schema.select(given_names(schema))))


def _as_read(embedder: Any, table: Table) -> Table:
    """Rows to be stored as the embedder reads them; what it does not know is reported."""
    if not isinstance(embedder, Embedder):
        return table
    table = value_vocabulary(embedder).in_words(table)
    if embedder.unknown != "error":
        report_unknown(embedder, table)
    return table


def _checked(table: Table, schema: Schema) -> Table:
    if table.schema.names != schema.names:
        raise ValueError(f"expected columns {schema.names}, got {table.schema.names}")
    require_rows(table)
    return table


def asked_rows(embedder: Any, X: Any, schema: Schema) -> tuple[Table, list[str] | None]:
    """Read rows to look for, and say which columns they have if those are not all.

    Columns that the index does not know are refused: they may be misspelt.
    """
    X = as_rows(X, schema)
    if not isinstance(embedder, Embedder):
        X = _as_fitted(embedder, X)
        return with_vectors(embedder, X, Table.of(X)), None
    compared, names, listed = embedder.schema_, None, names_of(X)
    if listed is not None and (compared.named or {*listed} <= {*compared.names}):
        fields = [field for name in listed for field in schema.fields(name)]
        check_names(fields, schema)
        names = compared_names(fields, compared)
        if isinstance(X, list):
            _check_same_keys(X, names)
        if isinstance(X, Table):
            X = X.select(names)
        compared = replace(compared.select(names), named=True)
    table = value_vocabulary(embedder).in_words(Table.of(X, compared))
    require_rows(table)
    _report_unknown(embedder, table)
    return table, None if names == embedder.schema_.names else names


def check_names(asked: Iterable[str], schema: Schema) -> None:
    """Refuse columns that an index does not have: they may be misspelt."""
    names = given_names(schema)
    for name in asked:
        if name not in names:
            raise ValueError(
                f"column {name!r} is not in the index; the columns are "
                f"{', '.join(map(repr, names))}"
            )


def compared_names(asked: Sequence[str], compared: Schema) -> list[str]:
    """Columns of an embedder that are given, in its order; refuse to have none."""
    names = [name for name in compared.names if name in asked]
    if not names:
        raise ValueError(
            f"expected columns that are compared, got none of the columns "
            f"{', '.join(map(repr, compared.names))}"
        )
    return names


def _report_unknown(embedder: Embedder, table: Table) -> None:
    """Tell or refuse what the embedder has not seen; a set of nothing known is no empty set."""
    if embedder.unknown == "error":
        return
    report_unknown(embedder, table)
    vocabulary = value_vocabulary(embedder)
    by_hand = table.n_rows < 20  # so a value that was not seen may be misspelt
    if by_hand:
        _warn_of_levels(table)
    for name, values in vocabulary.unknown(table).items():
        column = table[name]
        if name in spelled_columns(embedder) or table.schema[name].is_ordered:
            continue
        if column.is_set:
            _check_elements(name, column, values)
        elif by_hand and (value := next(iter(values))) is not None:
            labels = vocabulary.labels[vocabulary.index(name)]
            _warn_asked(name, value, "average", hint(value, labels))


def _check_elements(name: str, column: Any, unknown: Mapping[Label, int]) -> None:
    """Refuse sets that are not empty, but have no element that was seen."""
    new = np.isin(column.codes, positions(column.labels, list(unknown)))
    lengths, n_new = np.diff(column.starts), np.append(0, np.cumsum(new))[column.starts]
    all_new = np.flatnonzero((lengths > 0) & (np.diff(n_new) == lengths))
    if len(all_new):
        row = all_new[0]
        elements = column.codes[column.starts[row] : column.starts[row + 1]]
        raise ValueError(
            f"column {name!r}: no element of {[column.labels[c] for c in elements]} (row {row}) "
            "was seen in fit, so no row can be similar to it; leave the column out of the "
            "query, or use elements that were seen"
        )


def _warn_of_levels(table: Table) -> None:
    """Warn of levels that a column has not."""
    for column in table.schema.columns:
        levels = column.levels or ()
        for value in table[column.name].labels if levels else ():
            if value is not None and value not in levels:
                _warn_asked(column.name, value, "missing", hint(value, levels))


def _warn_asked(name: str, value: Label, fate: str, hint: str) -> None:
    warn_caller(f"column {name!r}: {value!r} was not seen in fit and counts as {fate}{hint}")


def _check_same_keys(rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> None:
    """Refuse rows of which some lack a column: it may be missing, or not asked about."""
    for i, row in enumerate(rows):
        for name in names:
            if name not in row and name not in (names_of([row]) or ()):  # a field of a record
                raise ValueError(
                    f"row {i} has no {name!r}, which other rows have; query rows with different "
                    f"columns separately, or write None for a missing value"
                )


def check_whole_number(name: str, value: Any) -> None:
    """Raise unless a value is a whole number of at least 1."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
        raise ValueError(f"expected {name} to be a whole number >= 1, got {value!r}")


def names_of(X: Any) -> list[str] | None:
    """Names of the columns of rows, None if they have none."""
    return X.schema.names if isinstance(X, Table) else columns_of(X)[0]


def _as_fitted(embedder: Any, X: Any) -> Any:
    """Rows of cells as a transformer of another package reads them: a frame, or an array."""
    names = getattr(embedder, "feature_names_in_", None)
    if names is None or not isinstance(X, Mapping | list | tuple):
        return X
    names_of_x, parts, _ = columns_of(X)
    if names_of_x is None and len(parts) != len(names):
        raise ValueError(f"expected {len(names)} cells per row, got {len(parts)}")
    columns = dict(zip(names_of_x or names, parts, strict=True))
    fitted = fitted_names(embedder) or []
    for name in fitted:
        if name not in columns:
            raise ValueError(
                f"column {name!r} is not given; {type(embedder).__name__} does not say which "
                "column its coordinates come from, so a row needs all of them"
            )
    library = "pandas" if find_spec("pandas") else "polars"
    return require(library, "frames").DataFrame({name: columns[name] for name in fitted})


def space_of(embedder: Any, schema: Schema, metric: str = "auto") -> Space:
    """Space of a fitted embedder; ``metric`` is "auto" (its own), "l2" or "l1"."""
    if isinstance(embedder, Embedder):
        space = embedder.learn().space_
    else:
        space = Vectors([name for name in schema.names if name.startswith(HIDDEN)])
    return space if metric == "auto" else VectorSpace(space, int(metric[1]))


def unknown_rule(embedder: Any) -> Unknown:
    """What becomes of values that an embedder has not seen."""
    return embedder.unknown if isinstance(embedder, Embedder) else "centroid"
