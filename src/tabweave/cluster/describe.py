"""What clusters are: the values and numbers in which they differ from the whole table."""

from __future__ import annotations

from typing import Any

import numpy as np

from tabweave._compat import require
from tabweave.columns.datetime import Datetimes
from tabweave.columns.frames import is_missing
from tabweave.columns.nominal import Codes
from tabweave.columns.sets import Sets
from tabweave.columns.table import Table

FIELDS = ("cluster", "size", "column", "value", "here", "overall", "z")


def describe_clusters(X: Any, labels: Any, *, n_values: int = 8, min_z: float = 3.0) -> Any:
    """What each cluster has more or less of than the whole table, most characteristic first.

    Parameters
    ----------
    X : frame, array, mapping of columns, list of dicts or Table
        The rows, any kind of column, read by the rules of :mod:`tabweave.columns.kinds`.
    labels : array-like of shape (n_rows,)
        The cluster of each row, whoever found it.
    n_values : int, default=8
        At most so many lines for a cluster.
    min_z : float, default=3.0
        Leave out what is fewer standard deviations away from what a random part of the rows of
        the same size would have.

    Returns
    -------
    DataFrame
        ``cluster``, its ``size``, a ``column`` and a ``value``; the share of rows that have the
        value ``here`` and ``overall``, or for numbers (``value`` "mean") the two means, for
        datetimes the shares that are later than the median; and ``z``, how many standard
        deviations ``here`` is away from chance.

    Examples
    --------
    >>> from tabweave.cluster import describe_clusters
    >>> rows = {"job": ["cook"] * 20 + ["judge"] * 20, "age": [25.0, 31.0] * 10 + [50.0, 61.0] * 10}
    >>> found = describe_clusters(rows, [0] * 20 + [1] * 20)
    >>> found[["cluster", "column", "value", "here", "overall"]].head(3)
       cluster column  value  here  overall
    0        0    job   cook   1.0     0.50
    1        0    job  judge   0.0     0.50
    2        0    age   mean  28.0    41.75
    """
    pandas = require("pandas", "frames")
    table = Table.of(X, numbers="numeric", rules="texts")
    labels = np.asarray(labels)
    if labels.shape != (table.n_rows,):
        raise ValueError(f"expected {table.n_rows} labels, one per row, got shape {labels.shape}")
    gap = next((i for i, label in enumerate(labels.tolist()) if is_missing(label)), None)
    if gap is not None:
        raise ValueError(
            f"expected a cluster for each row, got {labels[gap]!r} in row {gap}; drop such rows, "
            "or give them a separate label"
        )
    names, owner = np.unique(labels, return_inverse=True)
    sizes = np.bincount(owner, minlength=len(names))
    lines: list[list[tuple[Any, ...]]] = [[] for _ in names]
    for column, data in table:
        if column.is_dated:
            data = _halves(data)
        of_column = _of_numbers if data.is_continuous else _of_values
        for k, value, share, overall, z in of_column(data, owner, sizes):
            if abs(z) >= min_z:
                lines[k].append((names[k], int(sizes[k]), column.name, value, share, overall, z))
    shown_lines = [
        line
        for cluster_lines in lines
        for line in sorted(cluster_lines, key=lambda line: -abs(line[-1]))[:n_values]
    ]
    return pandas.DataFrame(shown_lines, columns=list(FIELDS))


def _of_values(data: Any, owner: np.ndarray, sizes: np.ndarray) -> list[tuple[Any, ...]]:
    """Shares of values; z by the hypergeometric distribution of a random part of rows."""
    data = data.as_values()
    counts = value_counts_by_cluster(data, owner, len(sizes))
    n = sizes.sum()
    overall = counts.sum(axis=0) / n
    share = counts / np.maximum(sizes[:, None], 1)
    variance = sizes[:, None] * overall * (1 - overall) * (n - sizes[:, None]) / max(n - 1, 1)
    z = (counts - sizes[:, None] * overall) / np.sqrt(np.where(variance > 0, variance, np.inf))
    ks, values = np.nonzero(z)
    return [
        (k, data.labels[v], float(share[k, v]), float(overall[v]), float(z[k, v]))
        for k, v in zip(ks.tolist(), values.tolist(), strict=True)
    ]


def value_counts_by_cluster(data: Codes | Sets, owner: np.ndarray, n_clusters: int) -> np.ndarray:
    """How many rows of each cluster have each value."""
    width = len(data.labels)
    flat = np.bincount(data.by_code(owner) * width + data.codes, minlength=n_clusters * width)
    return np.asarray(flat.reshape(n_clusters, width))


def _halves(data: Datetimes) -> Codes:
    """Datetimes as later than their median, or not."""
    if np.isnan(data.values).all():
        return Codes(np.zeros(len(data.values), np.uint8), [None])
    middle = float(np.nanquantile(data.values, 0.5, method="lower"))
    when = data.text(middle)
    code = np.where(np.isnan(data.values), 2, data.values > middle).astype(np.uint8)
    return Codes(code, [f"up to {when}", f"after {when}", None])


def _of_numbers(data: Any, owner: np.ndarray, sizes: np.ndarray) -> list[tuple[Any, ...]]:
    """Means; z by the variance of the mean of as many numbers drawn without replacement."""
    is_known = np.isfinite(data.values)
    x, k = data.values[is_known], owner[is_known]
    if len(x) < 2 or (x == x[0]).all():
        return []
    unit = np.abs(x).max()  # squares of numbers near the largest float64 would be infinite
    x, size = x / unit, np.bincount(k, minlength=len(sizes))
    mean = np.bincount(k, x, minlength=len(sizes)) / np.maximum(size, 1)
    error = x.var() * (len(x) - size) / np.maximum(size, 1) / (len(x) - 1)
    z = (mean - x.mean()) / np.sqrt(np.where(error > 0, error, np.inf))
    return [
        (i, "mean", float(unit * mean[i]), float(unit * x.mean()), float(z[i]))
        for i in range(len(sizes))
        if size[i]
    ]
