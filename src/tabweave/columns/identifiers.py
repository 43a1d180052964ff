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
    n_bins, n_classes = bins.max(initial=0) + 1, classes.max(initial=0) + 1
    joint = np.bincount(bins * n_classes + classes, minlength=n_bins * n_classes)
    return corrected_cramers_v(joint.reshape(n_bins, n_classes))


def corrected_cramers_v(joint: np.ndarray, level: float = 1e-6) -> float:
    """Cramér's V of a table of counts, corrected for chance; 0 if chance explains it."""
    from scipy.stats import chi2

    joint = joint[joint.any(axis=1)][:, joint.any(axis=0)].astype(np.float64)
    n, (n_bins, n_classes) = joint.sum(), joint.shape
    freedom = (n_bins - 1) * (n_classes - 1)
    max_statistic = n * (min(n_bins, n_classes) - 1)
    if freedom <= 0 or max_statistic <= freedom:
        return 0.0
    expected = np.outer(joint.sum(1), joint.sum(0)) / n
    statistic = float(((joint - expected) ** 2 / expected).sum())
    if chi2.sf(statistic, freedom) > level:
        return 0.0
    return float(np.sqrt((statistic - freedom) / (max_statistic - freedom)))


# -- columns that name rows -----------------------------------------------------------------------

MIN_NAMING_SHARE = 0.9  # Distinct values of a column that names rows, as a share of the rows.
MAX_CODE_LENGTH = (
    12  # Characters of a value, on average, of a column that says no more than a code.
)


def naming_columns(table: Table) -> list[list[str]]:
    """The columns that can name rows, the best choice first: a short code and a text, or one.

    A column names rows if hardly any value repeats and few are missing. Text goes before numbers.

    Parameters
    ----------
    table : Table
        The rows, every column of them.

    Examples
    --------
    >>> from tabweave import Table
    >>> rows = {"code": ["SEA", "BOS"], "city": ["Seattle", "Boston"], "zone": ["west", "west"]}
    >>> naming_columns(Table.of(rows, rules="all"))
    [['code', 'city'], ['code'], ['city']]
    """
    shares = {column.name: _distinct_share(data) for column, data in table}
    names = [name for name, share in shares.items() if share >= MIN_NAMING_SHARE]
    length = {name: _mean_length(table[name].labels) for name in names if _has_text(table[name])}
    texts = sorted(length, key=length.__getitem__)
    codes = [n for n in texts if shares[n] == 1 and length[n] <= MAX_CODE_LENGTH]
    longer = [name for name in texts if codes and length[name] > length[codes[0]]]
    pairs = [[codes[0], longer[0]]] if longer else []
    numbers = [name for name in names if name not in length]
    return pairs + [[name] for name in [*texts, *numbers]]


def _distinct_share(data: Any) -> float:
    """The distinct values of a column as a share of the rows; 0 of what names nothing."""
    if not len(data) or data.is_set or data.is_dated or data.missing.mean() > 1 - MIN_NAMING_SHARE:
        return 0.0
    if not data.is_continuous:
        return len(np.unique(data.codes)) / len(data)
    first_rows = 10_000  # which tell of most columns that they repeat
    for values in (data.values[:first_rows], data.values):
        share = len(np.unique(values)) / len(values)
        if share < MIN_NAMING_SHARE or not (values % 1 == 0).all():
            return 0.0
    return share


def _has_text(data: Any) -> bool:
    return not data.is_continuous and any(isinstance(label, str) for label in data.labels)


def _mean_length(labels: Any) -> float:
    return float(np.mean([len(str(label)) for label in labels if label is not None]))
