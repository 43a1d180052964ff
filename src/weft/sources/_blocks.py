"""Blocks: one table of a `Sources`, its cells as floats; how tables are read and matched."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp

from weft._frames import columns_of
from weft._labels import Label, positions
from weft.sources._ids import read_ids, refuse_repeated
from weft.table import Codes, Numbers, Table

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
                "e.g. by weft.SetTfidf, and pass (ids, matrix)"
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
