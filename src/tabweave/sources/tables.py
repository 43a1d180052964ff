"""Tables of a `Sources`: whose rows they have (ids), and their cells as floats.

Comes in: a frame with an id column, or ids and a matrix. Goes out: a `SourceTable`, and an
`IdIndex` that finds ids again. Ids are int64, or canonical labels in an array of objects.
Below: labels by id, and tables that others point to by a key.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import scipy.sparse as sp

from tabweave.columns.frames import as_column, categories, columns_of
from tabweave.columns.inputs import target_array
from tabweave.columns.table import Table
from tabweave.columns.vocabulary import Label, canonical, identity, positions
from tabweave.io.register import storable

Matrix: TypeAlias = Any  # a float ndarray or a csr_array; both are indexed alike


@storable
@dataclass(frozen=True, eq=False)
class SourceTable:
    """One table: the index of each row among all ids, its cells as floats, its columns."""

    rows: np.ndarray
    matrix: Matrix
    columns: tuple[str, ...]
    labels: tuple[list[Label] | None, ...]  # of each category's code; None for numbers


class ReadTable(NamedTuple):
    """A table as it was given: the id of each row, its cells, and the cells of its key columns."""

    ids: np.ndarray
    table: SourceTable
    keys: dict[str, Any]


def read_table(source: Any, where: str, key: str | None, foreign: Sequence[str] = ()) -> ReadTable:
    """Read a frame with an id column (or index), or a pair of ids and a matrix.

    Columns that are ``foreign`` keys are kept apart from the others.
    """
    if not isinstance(source, tuple):
        out = _from_frame(source, where, key, foreign)
    elif foreign:
        raise TypeError(f"{where}: expected a frame with column {foreign[0]!r}, got (ids, matrix)")
    else:
        out = ReadTable(*_from_pair(source, where), {})
    check_unique(out.ids, where)
    return out


@contextmanager
def naming(prefix: str, suffix: str = "") -> Iterator[None]:
    """Say in errors which table or graph they are about, and perhaps what to do."""
    try:
        yield
    except (TypeError, ValueError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"{prefix}{error}{suffix}") from error


def _from_pair(source: tuple[Any, ...], where: str) -> tuple[np.ndarray, SourceTable]:
    if len(source) != 2:
        raise ValueError(f"{where}: expected (ids, matrix), got a tuple of {len(source)}")
    ids = read_ids(source[0], where)
    sparse = sp.issparse(source[1])
    if np.iscomplexobj(source[1]):
        raise TypeError(f"{where}: expected real numbers, got complex ones; take .real and .imag")
    remedy = "; a pair is of ids and numbers, categories go in a frame with the ids"
    with naming(f"{where}: ", remedy):
        cells = source[1] if sparse else np.asarray(source[1], dtype=float)
    matrix = sp.csr_array(cells, dtype=float) if sparse else cells
    if matrix.ndim != 2 or matrix.shape[0] != len(ids):
        raise ValueError(
            f"{where}: expected a matrix of {len(ids)} rows, one for each id, got {matrix.shape}"
        )
    if np.isinf(matrix.data if sparse else matrix).any():
        raise ValueError(f"{where}: expected finite cells, got infinity; use a number or NaN")
    columns = tuple(f"x{i}" for i in range(matrix.shape[1]))
    return ids, SourceTable(np.zeros(0, np.intp), matrix, columns, (None,) * len(columns))


def _from_frame(frame: Any, where: str, key: str | None, foreign: Sequence[str]) -> ReadTable:
    if sp.issparse(frame) or isinstance(frame, np.ndarray):
        raise TypeError(f"{where}: expected (ids, matrix), got a matrix without ids")
    with naming(f"{where}: "):
        column_names, cells, _ = columns_of(frame)
    names = list(column_names or [f"x{i}" for i in range(len(cells))])
    ids = _ids_of(frame, names, cells, where, key)
    if len(set(names)) < len(names):
        raise ValueError(f"{where}: expected columns of different names, got two of one name")
    columns = {name: c for name, c in zip(names, cells, strict=True) if name != key}
    for name in foreign:
        if name not in columns:
            got = ", ".join(map(repr, columns))
            raise ValueError(f"{where}: expected a key column {name!r}, got {got}")
    keys = {name: columns.pop(name) for name in foreign}
    if not columns and not keys:
        raise ValueError(f"{where}: expected columns, got no column besides the id")
    if not columns:  # ids and keys only
        nothing = np.zeros((len(ids), 0))
        return ReadTable(ids, SourceTable(np.zeros(0, np.intp), nothing, (), ()), keys)
    with naming(f"{where}, "):
        table = Table.of(columns)
    return ReadTable(ids, SourceTable(np.zeros(0, np.intp), *as_floats(table, where)), keys)


def _ids_of(
    frame: Any, names: Sequence[str], cells: Sequence[Any], where: str, key: str | None
) -> np.ndarray:
    """The ids of a frame's rows: the column ``key``, or the index of that name.

    Without a column "id", an index that has a name was made to be one.
    """
    if key is not None and key in names:
        return read_ids(cells[list(names).index(key)], where)
    index = getattr(frame, "index", None) if hasattr(frame, "iloc") else None
    if index is not None and (
        key is None or index.name == key or (key == "id" and index.name is not None)
    ):
        return read_ids(index.to_numpy(), where)
    if key is None:
        raise TypeError(f"{where}: expected a pandas frame, whose index has the ids (key=None)")
    got = ", ".join(map(repr, names))
    raise ValueError(
        f"{where}: expected an id column {key!r}, got {got}; pass key='<column>', or key=None for "
        "the index of a pandas frame"
    )


def as_floats(table: Table, where: str) -> tuple[Matrix, tuple[str, ...], Any]:
    """Cells as floats (categories as codes, NaN where missing), columns and labels."""
    matrix = np.empty((table.n_rows, len(table.columns)))
    labels: list[list[Label] | None] = []
    for i, (column, cells) in enumerate(table):
        if column.is_continuous:
            matrix[:, i] = cells.values
            labels.append(None)
        elif not column.is_set:
            cells = cells.as_values()
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
    """A table with the columns and the codes of another one."""
    if table.columns == like.columns and table.labels == like.labels:
        return table
    index = {name: i for i, name in enumerate(table.columns)}
    absent = [name for name in like.columns if name not in index]
    if absent:
        raise ValueError(
            f"{where}: expected column {absent[0]!r} ({len(absent)} of {len(like.columns)} are "
            f"missing), got {', '.join(map(repr, table.columns[:20]))}"
        )
    order = [index[name] for name in like.columns]
    matrix = table.matrix[:, order]
    for i, (name, fitted_labels) in enumerate(zip(like.columns, like.labels, strict=True)):
        labels = table.labels[order[i]]
        empty = not sp.issparse(matrix) and np.isnan(matrix[:, i]).all()
        if labels == fitted_labels or empty:
            continue  # cells that are all missing are of any kind
        if fitted_labels == []:  # and so were those of fit, which has no use for any
            matrix[:, i] = np.nan
            continue
        if labels is None or fitted_labels is None:
            kinds = (
                ("numbers", "categories") if fitted_labels is None else ("categories", "numbers")
            )
            raise TypeError(f"{where}, column {name!r}: expected {kinds[0]}, got {kinds[1]}")
        code, cells = _recoded(fitted_labels, labels), matrix[:, i]
        matrix[:, i] = np.where(np.isnan(cells), np.nan, code[np.nan_to_num(cells).astype(np.intp)])
    return SourceTable(table.rows, matrix, like.columns, like.labels)


def _recoded(labels: Sequence[Label], values: Sequence[Label]) -> np.ndarray:
    """The code of each given label among others, NaN for one that is not there."""
    code = positions(labels, values).astype(float)
    code[code == len(labels)] = np.nan
    return code


def read_ids(column: Any, where: str) -> np.ndarray:
    """Ids as int64, or as canonical labels; a missing one is an error."""
    with naming(f"{where}: "):
        column = as_column(column, "id")
    if isinstance(column, np.ndarray) and column.dtype.kind in "iu" and column.dtype != np.uint64:
        return column.astype(np.int64, copy=False)
    with naming(f"{where}: "):
        codes, labels = categories(column)
    if None in labels and (codes == labels.index(None)).any():
        row = int(np.flatnonzero(codes == labels.index(None))[0])
        raise ValueError(f"{where}: expected an id in row {row}, got null; fill it or drop the row")
    table = np.empty(len(labels), dtype=object)
    table[:] = labels
    values = table[codes]
    are_whole = all(type(v) is int and abs(v) < 2**63 for v in labels if v is not None)
    return values.astype(np.int64) if are_whole and len(values) else values


def check_one_kind(named: Sequence[tuple[str, np.ndarray]]) -> None:
    """Check that all ids are of one kind: text never meets numbers, though it may look alike."""
    kinds = ("bools", "numbers", "text", "bytes")
    seen: tuple[str, Any, str] | None = None
    for where, ids in named:
        for value in ids[:1].tolist() if ids.dtype == np.int64 else _one_of_each_type(ids):
            kind = kinds[int(identity(value)[0])]
            seen = seen or (where, value, kind)
            if kind != seen[2]:
                raise TypeError(
                    f"{where}: expected ids that are {seen[2]} as in {seen[0]} ({seen[1]!r}), got "
                    f"{kind} ({value!r}), which would never match them; convert one of the two"
                )


def _one_of_each_type(ids: np.ndarray) -> list[Any]:
    """The first id of each Python type."""
    return [*{type(cell): cell for cell in reversed(ids.tolist())}.values()]


def check_unique(ids: np.ndarray, where: str) -> None:
    """Check that no id has two rows: which of them to believe is not ours to say."""
    cells = ids.tolist()
    if len(set(cells)) == len(cells):
        return
    repeated = next(cell for cell, n in Counter(cells).items() if n > 1)
    raise ValueError(
        f"{where}: expected one row for each id, got several for {repeated!r}; keep one of "
        "them, or sum them up first"
    )


def plain(ids: np.ndarray, i: int) -> Any:
    """One id as Python writes it."""
    return ids[i : i + 1].tolist()[0]


def union(arrays: Sequence[np.ndarray]) -> np.ndarray:
    """Every id once, in order of first appearance."""
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


def position_of_each(index: np.ndarray, n: int) -> np.ndarray:
    """The position in ``index`` of each number below n, -1 for one that is not there."""
    out = np.full(n, -1, dtype=np.intp)
    out[index] = np.arange(len(index))
    return out


def without_attributes(model: Any, *names: str) -> None:
    """Let a model, fitted again on other things, lose what only an earlier fit has."""
    for name in names:
        if hasattr(model, name):
            delattr(model, name)


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

    def __call__(self, ids: np.ndarray) -> np.ndarray:
        """The position of each id that is asked for."""
        if not len(self._ids) or not len(ids):
            return np.full(len(ids), -1, dtype=np.intp)
        if self._ids.dtype != np.int64 or ids.dtype != np.int64:
            return np.array([self._index.get(v, -1) for v in ids.tolist()], dtype=np.intp)
        position = np.minimum(np.searchsorted(self._sorted, ids), len(self._sorted) - 1)
        return np.where(self._sorted[position] == ids, self._order[position], -1)


# -- labels -------------------------------------------------------------------------------------


def read_labels(ids: np.ndarray, y: Any, where: str = "y") -> tuple[np.ndarray, np.ndarray]:
    """Index (among ``ids``) and value of every label that is there, in the order of ids.

    A pandas series (or frame of one column) or a mapping has them by id, in any order; anything
    else has one for each id, in their order. None, NaN, NaT and pandas' NA stand for no label; a
    label of another id is an error.
    """
    labeled_ids, values = _by_id(ids, y, where)
    labels = np.empty(len(values), dtype=object)
    labels[:] = [canonical(value) for value in values]
    present = np.array([label is not None for label in labels], dtype=bool)
    index = IdIndex(ids)(labeled_ids[present])
    if (index < 0).any():
        unknown = labeled_ids[present][index < 0]
        raise ValueError(
            f"{where}: expected labels of ids of the sources, got {len(unknown)} of other ids, "
            f"{plain(unknown, 0)!r} the first; drop them, or check that both spell ids alike (in "
            "cross-validation y must be in the order of sources.ids: y.reindex(sources.ids))"
        )
    distinct, counts = np.unique(index, return_counts=True)
    if len(distinct) < len(index):
        twice = plain(ids, int(distinct[counts > 1][0]))
        raise ValueError(f"{where}: expected one label for each id, got two for {twice!r}")
    check_one_kind([(f"{where}, label {i}", np.array([v], object)) for i, v in _kinds_of(labels)])
    order = np.argsort(index)  # folds must not depend on the order in which labels come
    return index[order], np.array(labels[present][order].tolist())


def labels_of_rows(X: Any, y: Any) -> Any:
    """Y in the order of plain rows X: a series by the index of a pandas frame.

    A mapping has labels by that index, or by row number. Anything else is as it was.
    """
    y = _one_series(y)
    series, framed = hasattr(y, "iloc") and y.ndim == 1, hasattr(X, "iloc")
    if series and (not framed or y.index.equals(X.index)):
        return y
    if not series and not isinstance(y, Mapping):
        return y
    ids = read_ids(X.index.to_numpy(), "X") if framed else np.arange(len(X))
    try:
        check_unique(ids, "X")
        index, labels = read_labels(ids, y)
    except ValueError as error:
        raise ValueError(
            f"{error}; y goes by the index of X here: y.to_numpy() goes by position"
        ) from None
    out = np.full(len(ids), None, dtype=object)
    out[index] = labels.tolist()
    return out


def _kinds_of(labels: np.ndarray) -> list[tuple[int, Any]]:
    """Number and value of one label of each Python type."""
    types = [type(label) for label in labels]
    return [(types.index(t), labels[types.index(t)]) for t in set(types) - {type(None)}]


def _one_series(y: Any) -> Any:
    """The series of a pandas frame of one column: its index has the ids as well."""
    return y.iloc[:, 0] if hasattr(y, "iloc") and y.ndim == 2 and y.shape[1] == 1 else y


def _by_id(ids: np.ndarray, y: Any, where: str) -> tuple[np.ndarray, Any]:
    y = _one_series(y)
    if hasattr(y, "iloc") and getattr(y, "ndim", 1) == 1:  # a pandas series: its index has the ids
        return read_ids(y.index.to_numpy(), where), y.to_numpy(dtype=object)
    if isinstance(y, Mapping):
        return read_ids(list(y), where) if y else ids[:0], list(y.values())
    values = target_array(y)
    if len(values) != len(ids):
        raise ValueError(
            f"{where}: expected {len(ids)} labels, one for each of sources.ids (or None), got "
            f"{len(values)}; or pass a mapping or a series from id to label"
        )
    return ids, values


# -- tables that others point to ----------------------------------------------------------------


class Reached(NamedTuple):
    """A table that keys lead to: its name, how it was reached, and its row for each id."""

    table: str
    by: tuple[str, str]  # the table and the column that point to it
    ids: np.ndarray
    rows: np.ndarray  # -1 where a key is missing or unknown


def look_up(
    read: Mapping[str, ReadTable], keys: Mapping[str, Mapping[str, str]]
) -> dict[str, tuple[np.ndarray, SourceTable]]:
    """Tables by id, other tables' rows where keys lead to them, in any number of steps.

    A table that two columns point to is named "airports by origin" and "airports by dest".
    """
    pointed = {target for columns in keys.values() for target in columns.values()}
    unpointed = [name for name in read if name not in pointed]
    if not unpointed:
        raise ValueError("keys: expected a table that no key points to, got a cycle of keys")
    out = {name: read[name][:2] for name in unpointed if read[name].table.columns}
    reached = [step for name in unpointed for step in _follow(read, keys, name)]
    for step, name in zip(reached, _names_of(reached), strict=True):
        is_reached = step.rows >= 0
        table = read[step.table].table
        if table.columns:
            out[name] = (
                step.ids[is_reached],
                replace(table, matrix=table.matrix[step.rows[is_reached]]),
            )
    return out


def _follow(
    read: Mapping[str, ReadTable], keys: Mapping[str, Mapping[str, str]], name: str
) -> Iterator[Reached]:
    """Yield the tables that keys of a table lead to, each before those further away."""
    ids = read[name].ids
    paths: list[tuple[str, np.ndarray, tuple[str, ...]]] = [(name, np.arange(len(ids)), (name,))]
    while paths:
        table, rows, seen = paths.pop(0)
        for column, target in keys.get(table, {}).items():
            if target in seen:
                raise ValueError(f"keys: expected no cycle, got {' -> '.join((*seen, target))}")
            step = _pointed_rows(
                read[table].keys[column], read[target].ids, (table, column, target)
            )
            target_rows = np.where(rows >= 0, step[rows], -1)
            yield Reached(target, (table, column), ids, target_rows)
            paths.append((target, target_rows, (*seen, target)))


def _pointed_rows(cells: Any, ids: np.ndarray, names: tuple[str, str, str]) -> np.ndarray:
    """The row of the id that each cell names, -1 for one that is missing or unknown."""
    with naming(f"table {names[0]!r}, key {names[1]!r}: "):
        codes, labels = categories(as_column(cells, names[1]))
    named = [label for label in labels if label is not None]
    row = np.full(len(labels), -1, dtype=np.intp)
    if named and len(ids):
        keys = read_ids(named, names[1])
        check_one_kind([(f"table {names[2]!r}", ids), (f"table {names[0]!r}, {names[1]!r}", keys)])
        row[[label is not None for label in labels]] = IdIndex(ids)(keys)
    return row[codes]


def _names_of(reached: Sequence[Reached]) -> list[str]:
    """A name for each: the table's own if there is one way to it, else with the column."""
    names = [(step.table, f"{step.table} by {step.by[1]}") for step in reached]
    ways, columns = Counter(step.table for step in reached), Counter(name[1] for name in names)
    return [
        name[0]
        if ways[step.table] == 1
        else name[1]
        if columns[name[1]] == 1
        else f"{step.table} by {step.by[0]}.{step.by[1]}"
        for step, name in zip(reached, names, strict=True)
    ]
