"""Drift: two counts in, which columns and couplings changed between them out, ranked and tested.

Each column's value counts are compared by Pearson's chi-square; its p-value is exact: with the
margins fixed, the counts of the second sample are hypergeometric if nothing changed, so the share
of simulated statistics that are as large never falls below a level more often than the level says.
Holm's adjustment then controls false alarms over all columns, however they depend on each other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from tabweave.base import seed_of
from tabweave.counts.counts import Counts
from tabweave.counts.merging import check_same_columns
from tabweave.rows.vocabulary import positions, union


@dataclass(frozen=True)
class Finding:
    """What changed in one column or coupling.

    ``p_value`` is that of its own test, ``adjusted`` the one to compare with a level when many
    are tested at once. ``effect`` is the standardised statistic: how many standard deviations it
    lies above what an unchanged stream gives. ``values`` are those whose share moved most.
    """

    name: str
    statistic: float
    p_value: float
    adjusted: float
    effect: float
    values: tuple[Any, ...] = ()


@dataclass(frozen=True)
class DriftReport:
    """Columns and couplings, the most changed first."""

    columns: tuple[Finding, ...]
    couplings: tuple[Finding, ...]
    level: float

    @property
    def changed(self) -> list[str]:
        """Names of the columns that changed, at the level asked for, all tests taken together."""
        return [f.name for f in self.columns if f.adjusted <= self.level]

    @property
    def changed_couplings(self) -> list[str]:
        """Names of the couplings that changed, likewise."""
        return [f.name for f in self.couplings if f.adjusted <= self.level]

    def __str__(self) -> str:
        lines = [f"{'column':<24}{'effect':>9}{'p':>10}{'adjusted':>10}"]
        for f in (*self.columns, *self.couplings[:10]):
            star = " *" if f.adjusted <= self.level else ""
            lines.append(
                f"{f.name[:23]:<24}{f.effect:9.1f}{f.p_value:10.2g}{f.adjusted:10.2g}{star}"
            )
        return "\n".join(lines)


def drift_report(
    before: Counts,
    after: Counts,
    *,
    level: float = 0.05,
    couplings: bool = True,
    n_draws: int | None = None,
    random_state: Any = 0,
) -> DriftReport:
    """Say which columns, and which couplings between columns, changed from one time to another.

    Parameters
    ----------
    before, after : Counts
        Two windows, or a window and what came before it: no row may be in both.
    level : float, default=0.05
        Chance of any false alarm among the columns, and likewise among the couplings.
    couplings : bool, default=True
        Whether to test pairs of columns, too.
    n_draws : int, optional
        Simulated samples per column; by default enough that a column can pass ``level`` tenfold.
    random_state : int, RandomState, Generator or None
        Seed of the simulation.

    Returns
    -------
    DriftReport
        ``columns`` and ``couplings``, ranked; ``changed`` and ``changed_couplings``, named.

    Notes
    -----
    A coupling counts as changed if both p(a|b) and p(b|a) did: the larger of two p-values, each of
    a chi-square stratified by the other column with its exact mean and variance [Dawson 1954],
    matched by a gamma distribution. Numeric columns are compared by Welch's test of their means,
    set-valued ones element by element. Counts with decayed rows are not whole numbers; they are
    tested by the same matching, which is cautious there, since n is smaller than it was.

    Examples
    --------
    >>> import numpy as np
    >>> from tabweave import Counts
    >>> from tabweave.tasks.drift import drift_report
    >>> rng = np.random.default_rng(0)
    >>> monday, tuesday = ({"size": rng.integers(3, size=400)} for _ in range(2))
    >>> monday["color"] = rng.choice(["red", "blue"], 400, p=[0.5, 0.5])
    >>> tuesday["color"] = rng.choice(["red", "blue"], 400, p=[0.8, 0.2])
    >>> kinds = {"size": "nominal", "color": "nominal"}
    >>> from tabweave import Table
    >>> counts = [Counts.of(Table.of(day, kinds)) for day in (monday, tuesday)]
    >>> drift_report(*counts).changed
    ['color']
    """
    if before.schema is None or after.schema is None:
        raise ValueError("expected two counts of rows, got empty ones")
    if not 0 < level < 1:
        raise ValueError(f"expected level between 0 and 1, got {level}")
    check_same_columns(before, after)
    after = after.select(before.schema.names)
    if isinstance(random_state, np.random.RandomState):
        random_state = seed_of(random_state)
    rng = np.random.default_rng(random_state)
    n_tests = len(before.schema)
    draws = max(999, int(np.ceil(10 * n_tests / level)) - 1) if n_draws is None else n_draws
    columns = [_column(before, after, name, draws, rng) for name in before.schema.names]
    pairs = _couplings(before, after) if couplings else []
    return DriftReport(_ranked(columns), _ranked(pairs), level)


# -- columns ------------------------------------------------------------------------------------


def _column(before: Counts, after: Counts, name: str, draws: int, rng: Any) -> Finding:
    kind = before.schema[name].kind  # type: ignore[index]
    if kind == "numeric":
        return _numeric(before, after, name)
    i = before.vocabulary.index(name)
    labels = union(before.labels[i], after.labels[i])
    table = np.array([_expanded(c, i, labels) for c in (before, after)])
    totals = np.array([before.n, after.n])
    if kind == "set":
        return _set_valued(name, table, totals, labels, draws, rng)
    statistic, p, effect = chi_square(table, draws, rng)
    return Finding(name, statistic, p, p, effect, _moved(table, totals, labels))


def chi_square(table: np.ndarray, draws: int, rng: Any) -> tuple[float, float, float]:
    """Return chi-square of a 2 × V table, its p-value, and how far it exceeds its mean.

    Exact for whole numbers: ``(1 + #{simulated ≥ observed}) / (1 + draws)``.
    """
    statistic, mean, variance = (float(x[0]) for x in homogeneity(table[:, :, None]))
    effect = (statistic - mean) / np.sqrt(variance) if variance > 0 else 0.0
    pooled = table.sum(axis=0)
    if (pooled > 0).sum() < 2:
        return 0.0, 1.0, 0.0
    if table.dtype.kind != "i" or pooled.sum() > 10**9:  # as far as the simulation goes
        return statistic, _gamma_tail(statistic, mean, variance), effect
    simulated = _simulated(pooled, int(table[1].sum()), draws, rng)
    as_large = int((simulated >= statistic * (1 - 1e-9)).sum())
    return statistic, (1 + as_large) / (1 + draws), effect


def _simulated(pooled: np.ndarray, n_after: int, draws: int, rng: Any) -> np.ndarray:
    """Return chi-square of samples drawn without replacement from both windows together."""
    n = int(pooled.sum())
    drawn = rng.multivariate_hypergeometric(pooled, n_after, size=draws, method="marginals")
    expected = pooled * (n_after / n)
    gap = (drawn - expected) ** 2 / np.where(pooled > 0, expected, 1)
    return gap.sum(axis=1) * n / (n - n_after)  # both rows of the table


def homogeneity(tables: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Pearson's chi-square of 2 × V tables, with its exact mean and variance for fixed margins.

    Dawson (1954): with R, C the margins and N the total, the mean is N(r-1)(c-1)/(N-1) and the
    variance ``2N/(N-3) (v₁-w₁)(v₂-w₂) + N²/(N-1) w₁w₂``, where ``v = (N-r)(r-1)/(N-1)`` and
    ``w = (N Σ1/R - r²)/(N-2)``. A table in which nothing can vary has 0, 0, 0.

    Parameters
    ----------
    tables : ndarray of shape (2, V, number of tables)
    """
    rows, columns = tables.sum(axis=1), tables.sum(axis=0)
    n = rows.sum(axis=0).astype(np.float64)
    alive = (rows > 0).all(axis=0) & ((columns > 0).sum(axis=0) > 1) & (n > 3)
    size = np.where(alive, n, 4.0)
    expected = rows[:, None, :] * columns[None] / size
    statistic = ((tables - expected) ** 2 / np.where(expected > 0, expected, 1)).sum(axis=(0, 1))
    (v1, w1, r1), (v2, w2, r2) = (_margin_terms(m, size) for m in (rows, columns))
    mean = size * (r1 - 1) * (r2 - 1) / (size - 1)
    variance = 2 * size / (size - 3) * (v1 - w1) * (v2 - w2) + size**2 / (size - 1) * w1 * w2
    return tuple(np.where(alive, x, 0.0) for x in (statistic, mean, np.maximum(variance, 0)))


def _margin_terms(margin: np.ndarray, n: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return v, w and r of a margin, as :func:`homogeneity` needs them."""
    present = margin > 0
    r = present.sum(axis=0)
    inverse = np.where(present, 1 / np.where(present, margin, 1), 0).sum(axis=0)
    return (n - r) * (r - 1) / (n - 1), (n * inverse - r**2) / (n - 2), r


def _gamma_tail(statistic: float, mean: float, variance: float) -> float:
    """Return the chance of a larger statistic, from a gamma of the same mean and variance."""
    if mean <= 0 or variance <= 0:
        return 1.0
    return float(stats.gamma.sf(statistic, mean**2 / variance, scale=variance / mean))


def _numeric(before: Counts, after: Counts, name: str) -> Finding:
    """Welch's test of the means, from merged moments."""
    n, mean, variance = (
        np.array(x) for x in zip(before.moments(name), after.moments(name), strict=True)
    )
    if (n < 2).any() or not np.isfinite(variance).all():
        return Finding(name, 0.0, 1.0, 1.0, 0.0)
    error = variance / (n - 1)
    if not error.sum():
        p = float(mean[0] == mean[1])
        return Finding(name, 0.0, p, p, 0.0 if p else np.inf)
    t = float((mean[1] - mean[0]) / np.sqrt(error.sum()))
    freedom = error.sum() ** 2 / (error**2 / (n - 1)).sum()
    p = float(2 * stats.t.sf(abs(t), freedom))
    return Finding(name, t, p, p, (t * t - 1) / np.sqrt(2))


def _set_valued(
    name: str, table: np.ndarray, totals: np.ndarray, labels: list[Any], draws: int, rng: Any
) -> Finding:
    """Test each element with against without, Bonferroni over the elements."""
    found = [
        chi_square(np.stack([with_it, totals - with_it], axis=1), draws, rng) for with_it in table.T
    ]
    best = min(found, key=lambda f: (f[1], -f[2]))
    p = min(1.0, best[1] * len(found))
    return Finding(name, best[0], p, p, best[2], _moved(table, totals, labels))


def _moved(table: np.ndarray, totals: np.ndarray, labels: list[Any]) -> tuple[Any, ...]:
    shares = table / totals[:, None]
    order = np.argsort(-np.abs(shares[1] - shares[0]), kind="stable")[:3]
    return tuple(labels[v] for v in order if shares[1, v] != shares[0, v])


def _expanded(counts: Counts, column: int, labels: list[Any]) -> np.ndarray:
    """Return the counts of a column's values, 0 for those it does not have."""
    own = counts.value_counts[counts.span(column)]
    out = np.zeros(len(labels), own.dtype)
    out[positions(labels, counts.labels[column])] = own
    return out


# -- couplings ----------------------------------------------------------------------------------


def _couplings(before: Counts, after: Counts) -> list[Finding]:
    """Test every pair of single-valued columns."""
    columns = before.schema.categorical  # type: ignore[union-attr]
    single = [i for i, c in enumerate(columns) if c.kind != "set"]
    labels = [union(a, b) for a, b in zip(before.labels, after.labels, strict=True)]
    out = []
    for i, a in enumerate(single):
        for b in single[i + 1 :]:
            tables = np.array([_joint(c, a, b, labels) for c in (before, after)])
            out.append(_coupling(f"{before.names[a]} × {before.names[b]}", tables))
    return out


def _coupling(name: str, tables: np.ndarray) -> Finding:
    """Test p(a|b) and p(b|a): the larger p-value, since a coupling changed only if both did."""
    sides = []
    for strata in (tables, tables.transpose(0, 2, 1)):
        statistic, mean, variance = (float(x.sum()) for x in homogeneity(strata))
        effect = (statistic - mean) / np.sqrt(variance) if variance > 0 else 0.0
        sides.append((_gamma_tail(statistic, mean, variance), -effect, statistic))
    p, effect, statistic = max(sides)
    return Finding(name, statistic, p, p, -effect)


def _joint(counts: Counts, a: int, b: int, labels: list[list[Any]]) -> np.ndarray:
    block = counts.block(a, b)
    out = np.zeros((len(labels[a]), len(labels[b])), block.dtype)
    indices = [positions(labels[c], counts.labels[c]) for c in (a, b)]
    out[np.ix_(*indices)] = block
    return out


def _ranked(findings: list[Finding]) -> tuple[Finding, ...]:
    """Sort by p-value, equal ones by effect, and adjust for the number of tests [Holm 1979]."""
    order = sorted(findings, key=lambda f: (f.p_value, -f.effect))
    out, highest = [], 0.0
    for rank, f in enumerate(order):
        highest = max(highest, min(1.0, f.p_value * (len(order) - rank)))
        out.append(Finding(f.name, f.statistic, f.p_value, highest, f.effect, f.values))
    return tuple(out)
