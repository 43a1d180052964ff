"""How many latent classes a table has: mixtures of independent columns, one to many.

Each number of classes is fitted by EM to the distinct rows, and fit is weighed against parameters.
Below it, what every criterion of a number is looked up by.
"""

from __future__ import annotations

import numpy as np

from tabweave.columns.column import Schema
from tabweave.columns.decision import MIN_ROWS_TO_INFER
from tabweave.columns.nominal import Codes
from tabweave.columns.table import Table, as_values_or_numbers, datetime_as_numeric, take_rows
from tabweave.counts.counts import Counts
from tabweave.embed.nonbend import Prior, WeightedRows, expect, first_fit
from tabweave.space.numbers import quantile_bins, with_bins

OF_MIXTURES = ("bic", "aic", "aic3", "adjusted_bic")
_LARGER_IS_BETTER = ("bk", "silhouette", "gap", "stability")


def number_of_classes(table: Table, rng: np.random.Generator) -> int:
    """Number of latent classes by AIC3, for clusterers whose number is "auto"."""
    table, _ = without_texts(table, Schema.of(None))
    scores = mixture_scores(some_rows(table, rng), 15, rng)
    return chosen("aic3", scores["aic3"])


def some_rows(table: Table, rng: np.random.Generator, *, max_rows: int = 5_000) -> Table:
    """A table itself, or rows drawn from it if they are many."""
    if table.n_rows <= max_rows:
        return table
    return take_rows(table, np.sort(rng.permutation(table.n_rows)[:max_rows]))


def without_texts(table: Table, declared: Schema) -> tuple[Table, dict[str, str]]:
    """A table without undeclared columns whose values hardly repeat, and why each was dropped."""
    dropped = {}
    for column, data in zip(table.schema.columns, table.columns, strict=True):
        if column.kind == "nominal" and column.name not in declared and isinstance(data, Codes):
            times = np.bincount(data.codes)
            if table.n_rows >= MIN_ROWS_TO_INFER and (times == 1).sum() > table.n_rows / 2:
                dropped[column.name] = "most of its values occur once"
    names = [name for name in table.schema.names if name not in dropped]
    return (table.select(names), dropped) if names else (table, {})


def mixture_scores(
    table: Table,
    max_clusters: int,
    rng: np.random.Generator,
    criterion: str = "aic3",
    n_init: int = 8,
    *,
    patience: int = 3,
) -> dict[str, dict[int, float]]:
    """The information criteria of latent classes, one to many.

    Numbers end three after the best by the criterion that decides.
    """
    coded = in_bins(table)
    counts = Counts.of(coded)
    rows = WeightedRows.of(coded, counts, None)
    n, free = rows.total, int((rows.sizes - 1).sum())
    out: dict[str, dict[int, float]] = {name: {} for name in OF_MIXTURES}
    for k in range(1, min(max_clusters, len(rows.cells)) + 1):
        fit = max(latent_classes(rows, k, rng) for _ in range(n_init if k > 1 else 1))
        n_parameters = k - 1 + k * free
        each = {"bic": np.log(n), "aic": 2.0, "aic3": 3.0, "adjusted_bic": np.log((n + 2) / 24)}
        for name, price in each.items():
            out[name][k] = float(-2 * fit + price * n_parameters)
        if k - chosen(criterion, out[criterion]) >= patience:
            break
    return out


def latent_classes(
    rows: WeightedRows,
    k: int,
    rng: np.random.Generator,
    *,
    max_iter: int = 200,
    pseudo_rows: float = 0.01,
) -> float:
    """Log likelihood of k latent classes, fitted by EM from one start.

    ``pseudo_rows`` are those that a class has of each value before it has any.
    """
    prior = Prior(1.0, pseudo_rows, max(k, 1), rows.offsets)
    first = first_fit(rows, prior, "rows", rng)
    counts, sizes, last_likelihood = first.counts, first.sizes, -np.inf
    widths = np.diff(rows.offsets)
    for _ in range(max_iter):
        total = np.repeat(sizes + pseudo_rows * widths[:, None], widths, axis=0)
        values = np.log((counts + pseudo_rows) / total)
        base = np.log((sizes + pseudo_rows) / (sizes.sum() + pseudo_rows * len(sizes)))
        likelihood, counts, sizes = expect(rows.cells, rows.weight, base, values)
        if likelihood - last_likelihood < 1e-6 * abs(likelihood):
            break
        last_likelihood = likelihood
    return likelihood


def in_bins(table: Table, *, n_bins: int = 6) -> Table:
    """A table of categories: numbers and grades as they are, or in bins.

    Datetimes are numbers here. Their cycles would be columns that depend on each other whatever
    the rows are, and classes of independent columns would multiply to explain that.
    """
    table = datetime_as_numeric(table)
    names = [c.name for c in table.schema.columns if c.kind != "set"]
    if not names:
        raise ValueError("expected columns of categories or numbers, got sets alone")
    expanded = with_bins(as_values_or_numbers(table).select(names), quantile_bins(table, n_bins))
    return expanded.select([column.name for column in expanded.schema.categorical])


# -- the number that a criterion takes ------------------------------------------------------------


def chosen(criterion: str, scores: dict[int, float]) -> int:
    """The number that a criterion takes; of equals the smallest."""
    if criterion == "gap":
        return _first_gap(scores)
    sign = -1 if criterion in _LARGER_IS_BETTER else 1
    return min(scores, key=lambda k: (sign * scores[k], k))


def _first_gap(scores: dict[int, float]) -> int:
    """The first number whose gap the next does not pass."""
    for k in sorted(scores):
        if k + 1 in scores and scores[k] >= scores[k + 1]:
            return k
    return max(scores)
