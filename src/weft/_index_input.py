"""What users give an index: rows to keep, rows to look for, and an embedder.

Comes in: rows of any library. Goes out: tables under the schema of the index. An embedder that
does not read tables gives its vectors, kept as numeric columns with hidden names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from weft._base import ValueEmbedder
from weft._frames import columns_of
from weft._index_space import HIDDEN, NATIVE
from weft._input import require_rows
from weft.learn.weave import Weave
from weft.mixed import MixedEmbedder
from weft.table import Column, Numbers, Schema, Table


def first_rows(embedder: Any, X: Any, y: Any) -> tuple[Any, Table]:
    """Return a fitted embedder and the first rows of an index.

    An unfitted embedder is cloned and fitted on the rows; without any, categories are woven and
    mixed tables embedded as such.
    """
    if embedder is not None and not hasattr(embedder, "transform"):
        raise TypeError(f"embedder={embedder!r} has no transform; give an embedder of weft")
    if embedder is None:
        X = Table.of(X)
        embedder = MixedEmbedder() if X.schema.numeric else Weave()
    if _is_fitted(embedder):
        return embedder, _table(embedder, X)
    embedder = clone(embedder)
    if isinstance(embedder, NATIVE):
        numbers: Any = "nominal" if isinstance(embedder, ValueEmbedder) else "numeric"
        X = Table.of(X, Schema.of(embedder.schema), numbers=numbers)
        require_rows(X)
    embedder.fit(X, y)
    return embedder, _table(embedder, X)


def _is_fitted(embedder: Any) -> bool:
    try:
        check_is_fitted(embedder)
    except NotFittedError:
        return False
    return True


def _table(embedder: Any, X: Any) -> Table:
    """Read the first rows: the embedder's columns as it reads them, others as they look."""
    if not isinstance(embedder, NATIVE):
        return with_vectors(embedder, X, Table.of(X))
    known = embedder.schema_
    if isinstance(X, Table) or names_of(X) is None or not known.named:
        return _checked(Table.of(X, known), known)
    table = Table.of(X, replace(known, complete=False))
    require_rows(table)
    return table


def with_vectors(embedder: Any, X: Any, table: Table) -> Table:
    """Return a table with the vectors of its rows as hidden columns."""
    vectors = np.asarray(embedder.transform(X), dtype=np.float64)
    if vectors.ndim != 2 or len(vectors) != table.n_rows or not np.isfinite(vectors).all():
        raise ValueError(
            f"{type(embedder).__name__}.transform must give {table.n_rows} rows of finite "
            f"numbers, not shape {vectors.shape}"
        )
    require_rows(table)
    names = [f"{HIDDEN}{i}" for i in range(vectors.shape[1])]
    columns = tuple(Column(name, "numeric") for name in names)
    schema = replace(table.schema, columns=table.schema.columns + columns)
    parts = tuple(Numbers(np.ascontiguousarray(column)) for column in vectors.T)
    return Table(schema, table.columns + parts, table.n_rows)


def more_rows(embedder: Any, X: Any, schema: Schema) -> Table:
    """Read rows to be added: all columns of the first ones must be there."""
    if isinstance(embedder, NATIVE):
        return _checked(Table.of(_as_rows(X), schema), schema)
    shown = [name for name in schema.names if not name.startswith(HIDDEN)]
    return with_vectors(embedder, X, Table.of(X, schema.select(shown)))


def _checked(table: Table, schema: Schema) -> Table:
    if table.schema.names != schema.names:
        raise ValueError(f"the table has columns {table.schema.names}, not {schema.names}")
    require_rows(table)
    return table


def asked_rows(embedder: Any, X: Any, schema: Schema) -> tuple[Table, list[str] | None]:
    """Read rows to look for, and say which columns they have if those are not all.

    Columns that the index does not know are refused: they may be misspelt.
    """
    X = _as_rows(X)
    if not isinstance(embedder, NATIVE):
        return with_vectors(embedder, X, Table.of(X)), None
    own, given = embedder.schema_, names_of(X)
    if given is None or not own.named:
        table = Table.of(X, own)
        require_rows(table)
        return table, None
    for name in given:
        if name not in schema.names:
            raise ValueError(
                f"column {name!r} is not in the index; there are "
                f"{', '.join(map(repr, schema.names))}"
            )
    names = [name for name in own.names if name in given]
    if not names:
        raise ValueError(f"the rows have none of the columns {', '.join(map(repr, own.names))}")
    if isinstance(X, list):
        _refuse_ragged(X, names)
    if isinstance(X, Table):
        chosen = tuple(X[name] for name in names)
        X = Table(X.schema.select(names), chosen, X.n_rows)
    table = Table.of(X, own.select(names))
    require_rows(table)
    return table, None if names == own.names else names


def _refuse_ragged(rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> None:
    """Refuse rows of which some lack a column: it may be missing, or not asked about."""
    for i, row in enumerate(rows):
        for name in names:
            if name not in row:
                raise ValueError(
                    f"row {i} has no {name!r}, which other rows have; query rows with different "
                    "columns apart, or write None for a missing value"
                )


def names_of(X: Any) -> list[str] | None:
    """Return the names of the columns of rows, None if they have none."""
    return X.schema.names if isinstance(X, Table) else columns_of(X)[0]


def _as_rows(X: Any) -> Any:
    """Return one row (a dict of cells, a sequence of cells, a pandas row) as a list of rows."""
    if isinstance(X, Mapping):
        columns = all(_is_column(v) for v in X.values())
        return X if columns and X else [dict(X)]
    if hasattr(X, "iloc") and X.ndim == 1:
        return [X.to_dict()]
    if isinstance(X, np.ndarray) and X.ndim == 1 and X.dtype.names is None:
        return X.reshape(1, -1)
    if isinstance(X, list | tuple) and len(X):
        cells = not isinstance(X[0], list | tuple | Mapping | np.ndarray)
        return [list(X)] if cells and not isinstance(X[0], Set) else X
    return X


def _is_column(cells: Any) -> bool:
    listed = hasattr(cells, "__array__") and not isinstance(cells, np.generic)
    return listed or isinstance(cells, list | tuple)
