"""The metric of a task: a measure's name or an embedder in, rows read, coded and compared out.

Tasks that compare values (kNN, k-modes) have a parameter ``metric``; what it may be, and how rows
are read by it, is said here once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import _check_feature_names

from tabweave.base import ValueEmbedder, remember_names, require_rows
from tabweave.rows.table import Schema, Table

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
        from tabweave.embed.value_metric import ValueMetric

        metric = ValueMetric(metric, schema=schema)
    elif not isinstance(metric, ValueEmbedder):
        raise TypeError(
            f"expected metric to be the name of a measure or an embedder, got {metric!r}"
        )
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
    structured = getattr(getattr(X, "dtype", None), "names", None) is not None
    if not structured and not isinstance(X, Mapping | list | tuple | Table):
        _check_feature_names(task, X, reset=False)
    return _read(task.metric_, X, task.metric_.schema_)


def _read(metric: ValueEmbedder, X: Any, schema: Schema) -> Table:
    table = metric._read(X, schema)
    if schema.complete and table.schema.names != schema.names:
        raise ValueError(f"expected columns {schema.names}, got {table.schema.names}")
    require_rows(table)
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
    return metric._codes(table)
