"""Drift: two tables or counts in, which columns and couplings changed out, ranked and tested.

Each column's value counts are compared by Pearson's chi-square; its p-value is exact: with the
margins fixed, the counts of the second sample are hypergeometric if nothing changed, so the share
of simulated statistics that are as large never falls below a level more often than the level says.
Numbers are compared by their whole distribution (Kolmogorov and Smirnov) and by their gaps.
Holm's adjustment then controls false alarms over all columns, however they depend on each other.
An effect size says how much changed, since with many rows every change is certain.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from numbers import Integral, Real
from typing import Any

import numpy as np
from scipy import stats
from scipy.special import erf

from tabweave._compat import seed_of
from tabweave.columns.cells import kind_of
from tabweave.columns.column import Column, Schema
from tabweave.columns.frames import columns_of
from tabweave.columns.kinds import dropped_line
from tabweave.columns.table import Table, other_kinds_as_values
from tabweave.columns.texts import CellError
from tabweave.columns.vocabulary import Vocabulary, union
from tabweave.counts.counts import Counts
from tabweave.counts.merging import check_same_columns, expand
from tabweave.engines.reading import counted_elsewhere
from tabweave.space.numbers import quantiles
from tabweave.tasks.associations import pair_tables

ENOUGH_AS_LARGE = 400  # A p-value is known after so many simulated statistics as large as observed.


@dataclass(frozen=True)
class DriftFinding:
    """What changed in one column or coupling.

    ``p_value`` is that of its own test, ``adjusted`` the one to compare with a level when many
    are tested at once. ``effect`` is the standardised statistic: how many standard deviations it
    lies above what an unchanged stream gives. ``values`` are those whose share moved most.

    ``sizes`` are named effect sizes, the one that ``min_size`` is compared with first: ``"KS"``
    (largest gap between two distribution functions), ``"gaps"`` (difference of the shares of
    missing numbers), ``"Cramér's V"``, all from 0 to 1; ``"PSI"``, the population stability index.
    ``comparison`` shows both sides: what, before, after. Of a numeric column these are mean,
    standard deviation and share of gaps, of others the shares of the values that moved most.
    """

    name: str
    statistic: float
    p_value: float
    adjusted: float
    effect: float
    values: tuple[Any, ...] = ()
    sizes: Mapping[str, float] = field(default_factory=dict)
    comparison: tuple[tuple[Any, float, float], ...] = ()

    @property
    def size(self) -> float:
        """Effect size that a threshold is for: the first of ``sizes``."""
        return next(iter(self.sizes.values()), 0.0)


@dataclass(frozen=True)
class DriftReport:
    """Columns and couplings, the most changed first."""

    columns: tuple[DriftFinding, ...]
    couplings: tuple[DriftFinding, ...]
    level: float
    min_size: float = 0.0
    dropped: Mapping[str, str] = field(default_factory=dict)  # identifiers, which never come again
    gone: tuple[str, ...] = ()  # columns that only the rows before have
    new: tuple[str, ...] = ()  # and those that only the rows after have
    kinds: Mapping[str, str] = field(default_factory=dict)  # columns of another kind than before

    def is_changed(self, change: DriftFinding) -> bool:
        """Whether a change is both certain enough and large enough to be named."""
        return change.adjusted <= self.level and change.size >= self.min_size

    @property
    def changed(self) -> list[str]:
        """Names of the columns that changed, at the level asked for, all tests taken together.

        Those that are of another kind than before, such as words in place of numbers, come first.
        """
        return [*self.kinds, *(f.name for f in self.columns if self.is_changed(f))]

    @property
    def changed_couplings(self) -> list[str]:
        """Names of the couplings that changed, likewise."""
        return [f.name for f in self.couplings if self.is_changed(f)]

    def __str__(self) -> str:
        lines = [f"{'column':<24}{'effect size':>17}{'p':>10}{'adjusted':>10}"]
        for f in (*self.columns, *self.couplings[:10]):
            star = " *" if self.is_changed(f) else ""
            size = f"{next(iter(f.sizes), '')} {f.size:.2f}"
            lines.append(f"{f.name[:23]:<24}{size:>17}{f.p_value:10.2g}{f.adjusted:10.2g}{star}")
        lines += [f"{name}: {sentence} *" for name, sentence in self.kinds.items()]
        lines += [dropped_line(dict(self.dropped))] if self.dropped else []
        for what, names in (("gone", self.gone), ("new", self.new)):
            lines += [f"{what}: {', '.join(names)}"] if names else []
        return "\n".join(lines)


def drift_report(
    before: Any,
    after: Any,
    *,
    level: float = 0.05,
    min_size: float = 0.0,
    couplings: bool = True,
    n_draws: int | None = None,
    random_state: Any = 0,
) -> DriftReport:
    """Test which columns, and which couplings between columns, changed between two periods.

    Parameters
    ----------
    before, after : Table, frame, mapping of columns, Counts, or source
        Two windows, or a window and what came before it: no row may be in both. Files, queries
        and frames on a cluster are counted where they are. Counts hold
        thousands of buckets of numbers; those in one count as equal. How columns are read is
        inferred (:mod:`tabweave.columns.kinds`: dates, times of day and money in text are
        compared as numbers), identifiers are dropped. Columns that both sides have are
        compared; the report also names the other columns, and those whose kind changed: words or
        lists instead of numbers.
    level : float, default=0.05
        Chance of any false alarm among the columns, and likewise among the couplings.
    min_size : float, default=0.0
        Smallest effect size of a change that is reported: with many rows even small changes are
        significant. Around 0.1 is small, 0.3 medium, 0.5 large.
    couplings : bool, default=True
        Whether to test pairs of columns, too.
    n_draws : int, optional
        Simulated samples per column, at most; by default enough that a column can pass ``level``
        tenfold. Few are drawn for a column that shows no change.
    random_state : int, RandomState, Generator or None
        Seed of the simulation.

    Returns
    -------
    DriftReport
        ``columns`` and ``couplings``, ranked; ``changed`` and ``changed_couplings``, named;
        ``gone`` and ``new``, the columns that only one side has; ``kinds``, what is to be said of
        the columns that are of another kind after, which are changed without a test.

    Notes
    -----
    A coupling counts as changed if both p(a|b) and p(b|a) did: the larger of two p-values, each of
    a chi-square stratified by the other column with its exact mean and variance [Dawson 1954],
    matched by a gamma distribution. Numeric columns are compared by the test of Kolmogorov and
    Smirnov, and by Fisher's exact test of their gaps: the smaller p-value, doubled if there are
    gaps. Set-valued ones are compared element by
    element. Counts with decayed rows are not whole numbers; they are tested by the same matching,
    which is cautious there, since n is smaller than it was.

    Cramér's V is that of Bergsma (2013), 0 where chance explains what changed: the mean of χ² among
    all ways to cut the same rows in two is taken off, of sets that of the largest of as many χ² as
    there are elements.

    The population stability index is ``Σ (q - p) log(q / p)`` over values, or over tenths of the
    numbers before and their gaps, with half a row added to each share.

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
    >>> same, wide = ({"weight": rng.normal(0, scale, 400)} for scale in (1, 3))
    >>> found = drift_report(same, wide).columns[0]
    >>> list(found.sizes), [what for what, _, _ in found.comparison]
    (['KS', 'PSI'], ['mean', 'standard deviation'])
    """
    before, after, names, kinds = _read(before, after)
    if not isinstance(level, Real) or not 0 < level < 1:
        raise ValueError(f"expected level between 0 and 1, got {level!r}")
    if not isinstance(min_size, Real) or not min_size >= 0:
        raise ValueError(f"expected min_size of at least 0, got {min_size!r}")
    identifiers = {column.name: column.why for column in before.schema.dropped}
    gone, new = (tuple(n for n in a if n not in b) for a, b in (names, names[::-1]))
    if n_draws is not None and (not isinstance(n_draws, Integral) or n_draws < 1):
        raise ValueError(f"expected n_draws of at least 1, got {n_draws!r}")
    for when, rows in (("before", before), ("after", after)):
        if not (rows.n if isinstance(rows, Counts) else rows.n_rows):
            raise ValueError(f"expected rows to compare, got none {when}")
    if isinstance(after, Table):  # counts of other kinds were counted for something else
        kinds |= _other_kinds(before.schema, after.schema)
    shared = [n for n in before.schema.names if n in after.schema and n not in kinds]
    if not shared:
        return DriftReport((), (), level, min_size, identifiers, gone, new, kinds)
    tables = before.select(shared), after.select(shared)
    tables = tuple(x if isinstance(x, Counts) else other_kinds_as_values(x) for x in tables)
    before, after = (x if isinstance(x, Counts) else _counted(x, couplings) for x in tables)
    check_same_columns(before, after)
    before, after = _of_same_values(before, after)
    sides = (before, after) if any(isinstance(x, Counts) for x in tables) else tables
    if isinstance(random_state, np.random.RandomState):
        random_state = seed_of(random_state)
    rng = np.random.default_rng(random_state)
    n_tests = len(before.schema)
    draws = max(999, int(np.ceil(10 * n_tests / level)) - 1) if n_draws is None else n_draws
    columns = [
        _numeric(before, after, name, *_tallies(sides, name))
        if before.schema[name].is_continuous
        else _valued(before, after, name, draws, rng)
        for name in before.schema.names
    ]
    pairs = _couplings(before, after) if couplings else []
    ranked = _ranked(columns), _ranked(pairs)
    return DriftReport(*ranked, level, min_size, identifiers, gone, new, kinds)


def _counted(table: Table, couplings: bool) -> Counts:
    """Value counts of rows, without those of pairs if no couplings are to be tested."""
    schema = table.schema if couplings else replace(table.schema, coupled=False)
    return Counts.of(replace(table, schema=schema))


def _of_same_values(before: Counts, after: Counts) -> tuple[Counts, Counts]:
    """Counts of the values that either of both has."""
    labels = [tuple(union(a, b)) for a, b in zip(before.labels, after.labels, strict=True)]
    vocabulary = Vocabulary(before.vocabulary.names, tuple(labels))
    sides = (replace(counts, classes=None, class_pairs=None) for counts in (before, after))
    one, other = (replace(c, vocabulary=vocabulary, pairs=expand(c, vocabulary)) for c in sides)
    return one, other


def _read(before: Any, after: Any) -> tuple[Any, Any, tuple[list[str], list[str]], dict[str, str]]:
    """Both tables or counts, their columns, and sentences on those of another kind than before."""
    before = counted_elsewhere(before)
    if not isinstance(before, Counts):
        before = Table.of(before, rules="sample")  # a column that was constant may change
    if before.schema is None or (isinstance(after, Counts) and after.schema is None):
        raise ValueError("expected two counts of rows, got empty ones")
    schema: Schema = before.schema
    kinds: dict[str, str] = {}
    after = counted_elsewhere(after, schema)
    if isinstance(after, Counts | Table):
        names = after.schema.given  # type: ignore[union-attr]
    else:
        names, cells, n_rows = columns_of(after)
        if names is None or not schema.named:  # by position
            names = schema.given if len(cells) == len(schema.given) else schema.names
            if len(cells) != len(names):
                raise ValueError(f"expected {len(names)} columns, as before, got {len(cells)}")
        after, kinds = _read_each(dict(zip(names, cells, strict=True)), schema, n_rows)
    if not kinds and not any(name in after.schema for name in schema.names):
        raise ValueError(f"expected tables that share columns, got {schema.given} and {names}")
    return before, after, (schema.given, names), kinds


def _read_each(
    by_name: Mapping[str, Any], schema: Schema, n_rows: int
) -> tuple[Table, dict[str, str]]:
    """Columns read as they were before, and sentences on those that cannot be."""
    columns: list[Column] = []
    parts: list[Any] = []
    kinds: dict[str, str] = {}
    for column in schema.columns:
        if column.name not in by_name:
            continue
        rows = {column.name: by_name[column.name]}
        try:
            table = Table.of(rows, replace(schema.select([column.name]), named=True))
        except (TypeError, ValueError) as error:
            cell = repr(error.cell) if isinstance(error, CellError) else ""
            sentence = _kind_change(column, Table.of(rows, rules="all"), cell)
            if not sentence:
                raise
            kinds[column.name] = sentence
            continue
        columns.append(column)
        parts += table.columns
    return Table(replace(schema, columns=tuple(columns), dropped=()), tuple(parts), n_rows), kinds


def _kind_change(column: Column, after: Table, cell: str) -> str:
    """Sentence on what a column was and is now, empty if it is what it was.

    ``cell`` is one that could not be read as before.
    """
    (kind_after,) = after.kinds()
    now = after.schema.columns[0]
    if column.cells_type.holds != kind_of(kind_after.kind).holds:
        such = f" such as {cell}" if cell and kind_after.why == "values" else ""
        return f"{column.kind} before, {kind_after.kind} after ({kind_after.why}{such})"
    how = f"written in another way ({kind_after.why})"
    if column.is_dated and column.date_order != now.date_order:
        return f"datetime before, datetime after, but {how}"
    if column.is_dated or not column.is_continuous or column.format == now.format:
        return ""
    mark = {".": "points", ",": "commas"}.get(now.format or "")
    comparable = column.decimal is not None or kind_after.why.startswith("numbers")
    if mark and comparable and column.decimal != now.decimal:
        how = f"with decimal {mark} now"
    return f"numeric before, numeric after, but {how}"


def _other_kinds(before: Schema, after: Schema) -> dict[str, str]:
    """Sentences on columns that were read as another kind than before."""
    pairs = {c.name: (c, after[c.name]) for c in before.columns if c.name in after}
    return {
        name: f"{a.kind} before, {b.kind} after"
        for name, (a, b) in pairs.items()
        if a.cells_type.holds != b.cells_type.holds
    }


# -- columns ------------------------------------------------------------------------------------


def _valued(before: Counts, after: Counts, name: str, draws: int, rng: Any) -> DriftFinding:
    labels = before.labels[before.vocabulary.index(name)]
    table = np.array([counts.value_counts[counts.span(name)] for counts in (before, after)])
    totals = np.array([before.n, after.n])
    if before.schema[name].is_set:  # type: ignore[index]
        return _set_valued(name, table, totals, labels)
    statistic, p, effect = chi_square(table, draws, rng)
    _, mean, _ = _homogeneity_of(table)
    sizes = {"Cramér's V": cramers_v(statistic, mean, totals), "PSI": stability_index(table)}
    return DriftFinding(name, statistic, p, p, effect, *_moved(table, totals, labels, sizes))


def chi_square(table: np.ndarray, draws: int, rng: Any) -> tuple[float, float, float]:
    """Chi-square of a 2 × V table, its p-value, and how far it exceeds its mean.

    Exact for whole numbers: ``(1 + #{simulated ≥ observed}) / (1 + draws)``, or ``h / l`` where the
    l-th sample is the h-th that is as large, and no more are drawn [Besag and Clifford 1991].
    """
    statistic, mean, variance = _homogeneity_of(table)
    effect = _excess(statistic, mean, variance)
    pooled = table.sum(axis=0)
    if (pooled > 0).sum() < 2:
        return 0.0, 1.0, 0.0
    if table.dtype.kind != "i" or pooled.sum() >= 10**9:  # as far as the simulation goes
        return statistic, _gamma_tail(statistic, mean, variance), effect
    drawn, as_large, step = 0, 0, max(1, min(1000, (1 << 21) // len(pooled)))
    while drawn < draws:
        simulated = _simulated(pooled, int(table[1].sum()), min(step, draws - drawn), rng)
        hits = np.flatnonzero(simulated >= statistic * (1 - 1e-9))
        if as_large + len(hits) >= ENOUGH_AS_LARGE:
            last = int(hits[ENOUGH_AS_LARGE - as_large - 1])
            return statistic, ENOUGH_AS_LARGE / (drawn + last + 1), effect
        drawn, as_large = drawn + len(simulated), as_large + len(hits)
    return statistic, (1 + as_large) / (1 + draws), effect


def _simulated(pooled: np.ndarray, n_after: int, draws: int, rng: Any) -> np.ndarray:
    """Chi-square of samples drawn without replacement from both windows together."""
    n = int(pooled.sum())
    drawn = rng.multivariate_hypergeometric(pooled, n_after, size=draws, method="marginals")
    expected = pooled * (n_after / n)
    gap = (drawn - expected) ** 2 / np.where(pooled > 0, expected, 1)
    return gap.sum(axis=1) * n / (n - n_after)  # both rows of the table


def homogeneity(
    cells: np.ndarray, table: np.ndarray, n_tables: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Pearson's chi-square of 2 × V tables, with its exact mean and variance for fixed margins.

    Dawson (1954): with R, C the margins and N the total, the mean is N(r-1)(c-1)/(N-1) and the
    variance ``2N/(N-3) (v₁-w₁)(v₂-w₂) + N²/(N-1) w₁w₂``, where ``v = (N-r)(r-1)/(N-1)`` and
    ``w = (N Σ1/R - r²)/(N-2)``. A table in which nothing can vary has 0, 0, 0.

    Parameters
    ----------
    cells : ndarray of shape (2, V)
        The counts of all tables.
    table : ndarray of shape (V,)
        Which of ``n_tables`` each column of ``cells`` belongs to.
    """

    def total(x: np.ndarray) -> np.ndarray:
        return np.bincount(table, x, n_tables)

    occurs = cells.any(axis=0)
    cells, table = cells[:, occurs].astype(np.float64), table[occurs]
    pooled, rows = cells.sum(axis=0), np.array([total(cells[0]), total(cells[1])])
    n, c = rows.sum(axis=0), np.bincount(table, minlength=n_tables)
    alive = (rows > 0).all(axis=0) & (c > 1) & (n > 3)
    size, rows = np.where(alive, n, 4.0), np.where(alive, rows, 2.0)
    expected = pooled * (rows[1] / size)[table]
    # Both rows of a table are as far from what is expected.
    statistic = total((cells[1] - expected) ** 2 / pooled) * size**2 / rows.prod(axis=0)
    (v1, w1), (v2, w2) = (
        _margin_terms(inverse, r, size)
        for inverse, r in (((1 / rows).sum(axis=0), 2), (total(1 / pooled), c))
    )
    mean = size * (c - 1) / (size - 1)
    variance = 2 * size / (size - 3) * (v1 - w1) * (v2 - w2) + size**2 / (size - 1) * w1 * w2
    return tuple(np.where(alive, x, 0.0) for x in (statistic, mean, np.maximum(variance, 0)))


def _homogeneity_of(table: np.ndarray) -> tuple[float, ...]:
    """The same of one table of 2 × V."""
    return tuple(float(x[0]) for x in homogeneity(table, np.zeros(table.shape[1], np.intp), 1))


def _margin_terms(inverse: np.ndarray, r: Any, n: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """V and w of a margin, as :func:`homogeneity` needs them."""
    return (n - r) * (r - 1) / (n - 1), (n * inverse - r**2) / (n - 2)


def _gamma_tail(statistic: float, mean: float, variance: float) -> float:
    """Chance of a larger statistic, from a gamma of the same mean and variance."""
    if mean <= 0 or variance <= 0:
        return 1.0
    return float(stats.gamma.sf(statistic, mean**2 / variance, scale=variance / mean))


def _excess(statistic: float, mean: float, variance: float) -> float:
    """How many deviations a statistic is above its mean."""
    return (statistic - mean) / np.sqrt(variance) if variance > 0 else 0.0


def cramers_v(statistic: float, mean: float, totals: np.ndarray) -> float:
    """Cramér's V of tables of two rows, less what chance brings.

    Bergsma (2013): ``√((χ² - E[χ²]) / n · (n-1) / (n-2))``, where E[χ²] is the exact mean if
    nothing changed, and 0 if the statistic is below it.
    """
    n = float(totals.sum())
    square = (statistic - mean) / n * (n - 1) / (n - 2) if n > 2 else 0.0
    return float(np.sqrt(np.clip(square, 0, 1)))


def stability_index(table: np.ndarray) -> float:
    """PSI, the population stability index ``Σ (q - p) log(q / p)`` of a 2 × V table.

    Half a row is added to each count, so that values which one side lacks stay finite.
    """
    smoothed = table + 0.5
    p, q = smoothed / smoothed.sum(axis=1, keepdims=True)
    return float(((q - p) * np.log(q / p)).sum())


# -- numbers ------------------------------------------------------------------------------------


def _numeric(
    before: Counts, after: Counts, name: str, values: np.ndarray, times: np.ndarray
) -> DriftFinding:
    """Compare numbers, and how many there are: the stronger of two tests.

    ``times`` says how often each of the sorted ``values`` (or buckets of numbers) occurs before
    and after.
    """
    moments = np.array([before.moments(name), after.moments(name)])
    totals = np.array([before.n, after.n])
    tests = [kolmogorov_smirnov(values, times)]
    sizes = {"KS": tests[0][2], "PSI": stability_index(_in_tenths(values, times, totals))}
    present = moments[:, 0].astype(totals.dtype)
    gaps = 1 - present / totals
    comparison = [
        ("mean", *moments[:, 1].tolist()),
        ("standard deviation", *np.sqrt(moments[:, 2]).tolist()),
    ]
    if gaps.any():
        tests.append(fisher(np.stack([present, totals - present], axis=1)))
        sizes["gaps"] = abs(float(gaps[1] - gaps[0]))
        sizes = dict(sorted(sizes.items(), key=lambda s: (s[0] == "PSI", -s[1])))
        comparison.append(("missing", *gaps.tolist()))
    p, effect, statistic = min(tests, key=lambda t: (t[0], -t[1]))
    p = min(1.0, p * len(tests))
    return DriftFinding(name, statistic, p, p, effect, (), sizes, tuple(comparison))


def _tallies(sides: tuple[Any, Any], name: str) -> tuple[np.ndarray, np.ndarray]:
    """Sorted numbers of a column, and how often each occurs before and after.

    Where a side is counts, numbers of one bucket count as equal.
    """
    if isinstance(sides[0], Counts):
        histograms = [side.numbers.histograms[name] for side in sides]
        grid = histograms[0].grid.coarser(histograms[1].grid)
        tallies = [(part.starts, part.times) for part in (h.at(grid) for h in histograms)]
    else:
        numbers = [np.asarray(side[name].values, np.float64) for side in sides]
        tallies = [np.unique(x[~np.isnan(x)], return_counts=True) for x in numbers]
    values = np.union1d(tallies[0][0], tallies[1][0])
    times = np.zeros((2, len(values)), np.result_type(*(t for _, t in tallies)))
    for line, (starts, counted) in zip(times, tallies, strict=True):
        line[np.searchsorted(values, starts)] = counted
    return values, times


def kolmogorov_smirnov(values: np.ndarray, times: np.ndarray) -> tuple[float, float, float]:
    """P-value, effect and statistic; ties make the p-value cautious, never too small."""
    n = times.sum(axis=1)
    if not n.all():
        return 1.0, 0.0, 0.0
    shares = np.cumsum(times, axis=1) / n[:, None]
    statistic = float(np.abs(shares[0] - shares[1]).max())
    size = n[0] * n[1] / n.sum()
    if times.dtype.kind == "i" and n.max() <= 1000:  # the exact distribution is affordable
        with warnings.catch_warnings():  # it may overflow: SciPy then takes the other
            warnings.filterwarnings("ignore", "ks_2samp: Exact calculation unsuccessful")
            p = stats.ks_2samp(*(np.repeat(values, t) for t in times), method="exact").pvalue
    else:
        p = np.clip(stats.kstwo.sf(statistic, max(np.round(size), 1)), 0, 1)
    mean, deviation = 0.8687, 0.2603  # of Kolmogorov's limit distribution
    return float(p), (np.sqrt(size) * statistic - mean) / deviation, statistic


def _in_tenths(values: np.ndarray, times: np.ndarray, totals: np.ndarray) -> np.ndarray:
    """How many numbers fall in each tenth of the ones before, gaps last if there are any."""
    edges = np.zeros(0)
    if times[0].any():
        present = times[0] > 0
        tenths = np.arange(1, 10) / 10
        edges = np.unique(quantiles(values[present], tenths, times[0][present]))
    bins = np.searchsorted(edges, values)
    counts = np.array([np.bincount(bins, line, len(edges) + 1) for line in times])
    gaps = totals - times.sum(axis=1)
    return np.column_stack([counts, gaps]) if gaps.any() else counts


def fisher(table: np.ndarray) -> tuple[float, float, float]:
    """P-value, effect and statistic of a 2 × 2 table: Fisher's exact test."""
    statistic, mean, variance = _homogeneity_of(table)
    effect = _excess(statistic, mean, variance)
    if table.dtype.kind != "i":
        return _gamma_tail(statistic, mean, variance), effect, statistic
    return float(stats.fisher_exact(table).pvalue), effect, statistic


# -- values -------------------------------------------------------------------------------------


def _set_valued(
    name: str, table: np.ndarray, totals: np.ndarray, labels: Sequence[Any]
) -> DriftFinding:
    """Test each element with against without, exactly, Bonferroni over the elements."""
    if not labels:  # every set is empty
        return DriftFinding(name, 0.0, 1.0, 1.0, 0.0, (), {"Cramér's V": 0.0})
    tests = [fisher(np.stack([with_it, totals - with_it], axis=1)) for with_it in table.T]
    p, effect, statistic = min(tests, key=lambda f: (f[0], -f[1]))
    p = min(1.0, p * len(tests))
    sizes = {"Cramér's V": cramers_v(statistic, mean_of_largest(len(tests)), totals)}
    return DriftFinding(name, statistic, p, p, effect, *_moved(table, totals, labels, sizes))


def mean_of_largest(n: int) -> float:
    """Mean of the largest of n independent chi-squares of one degree of freedom."""
    z = np.linspace(0, 10, 1001)  # their roots
    return float(np.trapezoid(2 * z * (1 - erf(z / np.sqrt(2)) ** n), z))


def _moved(
    table: np.ndarray, totals: np.ndarray, labels: Sequence[Any], sizes: Mapping[str, float]
) -> tuple[tuple[Any, ...], Mapping[str, float], tuple[tuple[Any, float, float], ...]]:
    """Values whose share moved most, the sizes, and the shares before and after."""
    shares = table / totals[:, None]
    order = np.argsort(-np.abs(shares[1] - shares[0]), kind="stable")[:3]
    order = order[shares[1, order] != shares[0, order]]
    comparison = tuple((labels[v], *shares[:, v].tolist()) for v in order)
    return tuple(labels[v] for v in order), sizes, comparison


# -- couplings ----------------------------------------------------------------------------------


def _couplings(before: Counts, after: Counts) -> list[DriftFinding]:
    """Test every pair of single-valued columns."""
    single = [c.name for c in before.schema.categorical if not c.is_set]  # type: ignore[union-attr]
    pairs = list(combinations(single, 2))
    labels = dict(zip(before.names, before.labels, strict=True))
    totals = np.array([before.n, after.n])
    tables = [pair_tables(counts, pairs) for counts in (before, after)]
    out = []
    for pair, *blocks in zip(pairs, *tables, strict=True):
        place = sum(block != 0 for block in blocks).nonzero()
        cells = np.array([np.asarray(block[place]).ravel() for block in blocks])
        out.append(_coupling(cells, place, pair, labels, totals))
    return out


def _coupling(
    cells: np.ndarray,
    place: tuple[np.ndarray, np.ndarray],
    pair: tuple[str, str],
    labels: Mapping[str, Sequence[Any]],
    totals: np.ndarray,
) -> DriftFinding:
    """Test p(a|b) and p(b|a): the larger p-value, since a coupling changed only if both did."""
    sides = []
    for name, stratum in zip(pair, place, strict=True):
        moments = homogeneity(cells, stratum, len(labels[name]))
        statistic, mean, variance = (float(x.sum()) for x in moments)
        effect = _excess(statistic, mean, variance)
        sides.append((_gamma_tail(statistic, mean, variance), -effect, statistic, mean))
    p, effect, statistic, mean = max(sides)
    shares = cells / totals[:, None]
    order = np.argsort(-np.abs(shares[1] - shares[0]), kind="stable")[:2]
    comparison = tuple(
        (" & ".join(str(labels[n][at[i]]) for n, at in zip(pair, place, strict=True)),
         *shares[:, i].tolist())
        for i in order
    )  # fmt: skip
    sizes = {"Cramér's V": cramers_v(statistic, mean, totals)}
    return DriftFinding(" × ".join(pair), statistic, p, p, -effect, (), sizes, comparison)


def _ranked(changes: list[DriftFinding]) -> tuple[DriftFinding, ...]:
    """Sort by p-value, equal ones by effect, and adjust for the number of tests [Holm 1979]."""
    order = sorted(changes, key=lambda f: (f.p_value, -f.effect))
    out, highest = [], 0.0
    for rank, f in enumerate(order):
        highest = max(highest, min(1.0, f.p_value * (len(order) - rank)))
        out.append(replace(f, adjusted=highest))
    return tuple(out)
