"""Rows as tasks see them: a fitted metric, distinct rows and how often each occurs.

Neighbours and clusters compare rows by their values, and tables of categories repeat themselves:
working on distinct rows is exact, faster, and makes results independent of the order of rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import _check_feature_names

from weft import _labels
from weft._base import ValueEmbedder, remember_names
from weft.table import Codes, Schema, Sets, Table

_LARGEST_TABLES = 1 << 27  # entries of all tables of pairs together: 1 GB


def fit_metric(
    task: Any, X: Any, y: Any = None, sample_weight: Any = None, schema: Any = None
) -> Table:
    """Read rows and give a task its ``metric_``: from a measure's name, or from an embedder.

    Names and unfitted embedders are fitted on X (an embedder as a clone); a fitted one is used as
    it is.
    """
    metric = task.metric
    if isinstance(metric, str):
        from weft.measures import ValueMetric

        metric = ValueMetric(metric, schema=schema)
    elif not isinstance(metric, ValueEmbedder):
        raise TypeError(f"metric={metric!r}: use the name of a measure or an embedder of weft")
    elif schema is not None:
        raise ValueError(f"give the schema to the metric: {type(metric).__name__}(schema=...)")
    elif "counts_" not in vars(metric):
        metric = clone(metric)
    if "counts_" in vars(metric):
        table = _read(metric, X, metric.schema_)
    else:
        table = _read(metric, X, Schema.of(metric.schema))
        metric.fit(table, y, sample_weight)
    task.metric_ = metric
    remember_names(task, metric.schema_)
    return table


def read_rows(task: Any, X: Any) -> Table:
    """Read rows under the schema of the task's metric, names checked as scikit-learn does."""
    if not isinstance(X, Mapping | list | tuple | Table):
        _check_feature_names(task, X, reset=False)
    return _read(task.metric_, X, task.metric_.schema_)


def _read(metric: ValueEmbedder, X: Any, schema: Schema) -> Table:
    table = metric._read(X, schema)
    if schema.complete and table.schema.names != schema.names:
        raise ValueError(f"the table has columns {table.schema.names}, not {schema.names}")
    if not table.n_rows:
        raise ValueError(
            f"Found array with 0 sample(s) (shape=(0, {len(table.schema)})) while a minimum of 1 "
            "is required."
        )
    return table


def value_lookups(metric: ValueEmbedder) -> tuple[list[np.ndarray], bool]:
    """Return the metric's tables of pairs of values; raise ValueError where there are none."""
    for column in metric.schema_.columns:
        if column.kind == "set":
            raise ValueError(f"column {column.name!r} holds sets, which have no table of values")
    sizes = metric.counts_.sizes + 1
    if int((sizes.astype(np.int64) ** 2).sum()) > _LARGEST_TABLES:
        worst = int(np.argmax(sizes))
        raise ValueError(
            f"column {metric.counts_.names[worst]!r} has {sizes[worst] - 1} values, too many for a "
            "table of all pairs; leave it out or group its values"
        )
    tables, root = metric.lookups()
    return [np.ascontiguousarray(table, np.float64) for table in tables], root


def value_codes(metric: ValueEmbedder, table: Table) -> list[np.ndarray]:
    """Return the codes of each column in the metric's vocabulary; unknown values come last."""
    return metric.tables_.codes(table, unknown=metric._policy())


def canonical_codes(table: Table) -> list[np.ndarray]:
    """Return, per column, codes that follow the canonical order of values, not that of arrival."""
    return [_ranks(column) for _, column in table]


def _ranks(column: Any) -> np.ndarray:
    rank = np.empty(len(column.labels), np.int64)
    rank[_labels.order(column.labels)] = np.arange(len(column.labels))
    if isinstance(column, Codes):
        return rank[column.codes]
    cells = rank[column.codes]
    edges = zip(column.starts[:-1], column.starts[1:], strict=True)
    keys = [tuple(np.sort(cells[a:b]).tolist()) for a, b in edges]
    place = {key: i for i, key in enumerate(sorted(set(keys)))}
    return np.array([place[key] for key in keys], np.int64)


def distinct_rows(columns: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return where each distinct row first occurs, in the order of codes, and each row's number.

    Codes are folded into one integer per row; when that would overflow, it is replaced by its
    rank, which keeps the order.
    """
    key = np.zeros(len(columns[0]), np.int64)
    size = 1
    for codes in columns:
        width = int(codes.max()) + 1 if len(codes) else 1
        if size * width >= 1 << 62:
            present, key = np.unique(key, return_inverse=True)
            size = len(present)
        key = key * width + codes
        size *= width
    _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
    return first, inverse


def take_rows(table: Table, index: np.ndarray) -> Table:
    """Return some rows of a table."""
    columns: list[Any] = []
    for _, column in table:
        if isinstance(column, Codes):
            columns.append(Codes(column.codes[index], column.labels))
        elif isinstance(column, Sets):
            lengths = np.diff(column.starts)[index]
            starts = np.concatenate([[0], np.cumsum(lengths)])
            shift = np.repeat(column.starts[:-1][index] - starts[:-1], lengths)
            codes = column.codes[np.arange(starts[-1]) + shift]
            columns.append(Sets(starts, codes, column.labels))
    return Table(table.schema, tuple(columns), len(index))
