"""Identifiers that predict: dropped columns whose order tells the target."""

from __future__ import annotations

from typing import Any

import numpy as np

from tabweave._compat import warn_caller
from tabweave.columns.column import Schema
from tabweave.columns.frames import infer_kind, named_columns
from tabweave.columns.table import Table


def predictive_identifiers(X: Any, schema: Schema, y: Any) -> dict[str, float]:
    """The columns dropped that predict a target, and how strongly (Cramér's V).

    Numbers that hardly repeat are mostly given out in order: by date, by place, by class. Such a
    column tells nothing by its values, and may tell much by its order.

    Parameters
    ----------
    X : frame, array, mapping of columns or list of dicts
        The rows.
    schema : Schema
        How they were read.
    y : array-like
        The target of each row.

    Examples
    --------
    >>> from tabweave import Table
    >>> rows = {"id": range(1000), "color": ["red", "blue"] * 500}
    >>> schema = Table.of(rows, rules="whole").schema
    >>> predictive_identifiers(rows, schema, ["old"] * 600 + ["new"] * 400)
    {'id': 1.0}
    """
    names = [column.name for column in schema.dropped if column.why != "constant"]
    if isinstance(X, Table) or not names:
        return {}
    cells, n_rows = named_columns(X)
    if not schema.named and len(cells) == len(schema.given):
        cells = dict(zip(schema.given, cells.values(), strict=True))
    classes = _classes(np.asarray(y))
    if n_rows != len(classes):
        return {}
    strengths = {n: _strength(_tenths(_ranks(cells[n])), classes) for n in names if n in cells}
    min_strength = 0.2  # above chance, from which a column is worth keeping
    return {name: value for name, value in strengths.items() if value >= min_strength}


def warn_of_predictive(X: Any, schema: Schema, y: Any) -> None:
    """Warn of columns that were dropped although they predict the target."""
    strengths = predictive_identifiers(X, schema, y)
    for column in schema.dropped:
        if column.name in strengths:
            warn_caller(
                f"column {column.name!r} was dropped ({column.why}), but its order predicts the "
                f"target (Cramér's V {strengths[column.name]:.2f}); if new rows have it, too, keep "
                f"it by schema={{{column.name!r}: {column.kind!r}}}, if not, drop it"
            )


def _ranks(cells: Any) -> np.ndarray:
    kind: Any = "numeric" if infer_kind(cells) == "numeric" else "nominal"
    return Table.of({"cells": cells}, {"cells": kind})["cells"].ranks()


def _classes(values: np.ndarray) -> np.ndarray:
    """The class of each row as a small integer; of many numbers, its tenth of the rows."""
    if values.dtype.kind in "iuf" and len(np.unique(values)) > 20:
        return _tenths(values)
    ranks = Table.of({"target": values}, {"target": "nominal"})["target"].ranks()
    return np.unique(ranks, return_inverse=True)[1]


def _tenths(values: np.ndarray) -> np.ndarray:
    """In which tenth of the rows each value lies; equal ones lie in one."""
    n_bins = min(10, len(values) // 10)  # of ten rows at least
    below = np.searchsorted(np.sort(values), values)
    return np.unique(below * n_bins // max(len(values), 1), return_inverse=True)[1]


def _strength(bins: np.ndarray, classes: np.ndarray) -> float:
    """Cramér's V of bins and classes, corrected for chance; 0 if chance explains it."""
    from scipy.stats import chi2

    n, n_bins, n_classes = len(bins), bins.max(initial=0) + 1, classes.max(initial=0) + 1
    freedom = (n_bins - 1) * (n_classes - 1)
    max_statistic = n * (min(n_bins, n_classes) - 1)
    if freedom == 0 or max_statistic <= freedom:
        return 0.0
    joint = np.bincount(bins * n_classes + classes, minlength=n_bins * n_classes)
    joint = joint.reshape(n_bins, n_classes).astype(np.float64)
    expected = np.outer(joint.sum(1), joint.sum(0)) / n
    statistic = float(((joint - expected) ** 2 / expected).sum())
    if chi2.sf(statistic, freedom) > 1e-6:
        return 0.0
    return float(np.sqrt((statistic - freedom) / (max_statistic - freedom)))
