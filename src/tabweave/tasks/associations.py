"""Associations: how strongly every two columns of a table hang together, from one counting pass.

Categories are compared by what their pair counts say (Cramér's V, mutual information, Theil's U,
φ_K), numbers by correlation, a number and a category by the correlation ratio; numbers are counted
in bins as well, so that one measure, ``strength``, compares all pairs. Every pair has a p-value,
adjusted for the number of pairs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import combinations
from typing import Any, cast

import numpy as np
from scipy import sparse, stats
from scipy.interpolate import PchipInterpolator
from scipy.special import chdtrc, fdtrc, ndtr, stdtr

from tabweave._compat import html_table, in_threads, require
from tabweave.columns.column import Schema
from tabweave.columns.table import Table, as_values_or_numbers, take_rows
from tabweave.counts.counts import Counts
from tabweave.counts.couplings import entropies
from tabweave.counts.spectra import CrossMoments
from tabweave.engines.reading import read_sampled
from tabweave.space.numbers import binned_part, quantile_bins, with_bins

MEASURES = (
    "strength",
    "cramers_v",
    "cramers_v_corrected",
    "mutual_information",
    "symmetric_uncertainty",
    "theils_u",
    "theils_u_reversed",
    "phi_k",
    "correlation_ratio",
    "pearson",
    "spearman",
    "shared_gaps",
    "statistic",
    "p_value",
    "adjusted_p_value",
)
MAX_DENSE_CELLS = 1 << 22  # A table of two columns with more cells stays sparse.


@dataclass(frozen=True, eq=False)
class Associations:
    """What :func:`associations` found: one entry for each pair of columns.

    Attributes
    ----------
    names : list of str
        The columns.
    kinds : dict of str to str
        "category", "number" or "set".
    pairs : list of tuple of str
        The pairs, in the order of the columns.
    values : dict of str to ndarray
        Each measure of each pair; NaN where it does not apply.
    dropped : dict of str to str
        The columns that were dropped, and why.
    """

    names: list[str]
    kinds: dict[str, str]
    pairs: list[tuple[str, str]]
    values: dict[str, np.ndarray]
    dropped: dict[str, str] = field(default_factory=dict)

    def frame(self, level: float = 1.0) -> Any:
        """Pairs as a pandas frame, strongest first.

        Parameters
        ----------
        level : float, default=1.0
            Leave out pairs whose adjusted p-value is above; pairs with sets have none and stay.
        """
        if not 0 <= level <= 1:
            raise ValueError(f"expected level from 0 to 1, got {level!r}")
        pandas = require("pandas", "frames")
        left, right = ([pair[i] for pair in self.pairs] for i in (0, 1))
        frame = pandas.DataFrame({"left": left, "right": right, **self.values})
        frame = frame[~(frame["adjusted_p_value"] > level)]
        return frame.sort_values("strength", ascending=False, kind="stable", ignore_index=True)

    def matrix(self, measure: str = "strength") -> Any:
        """One measure of all pairs as a pandas frame.

        Theil's U is ``U(row | column)``, how much of the row's column the other one tells.
        """
        if measure not in self.values:
            raise ValueError(f"expected one of {', '.join(MEASURES)}, got {measure!r}")
        pandas = require("pandas", "frames")
        index = {name: i for i, name in enumerate(self.names)}
        out = np.full((len(index), len(index)), np.nan)
        same = 0.0 if measure.endswith("p_value") else 1.0
        np.fill_diagonal(out, np.nan if measure in ("statistic", "mutual_information") else same)
        other = {"theils_u": "theils_u_reversed", "theils_u_reversed": "theils_u"}
        back = self.values[other.get(measure, measure)]
        for p, (a, b) in enumerate(self.pairs):
            out[index[a], index[b]], out[index[b], index[a]] = self.values[measure][p], back[p]
        return pandas.DataFrame(out, index=self.names, columns=self.names)

    def __len__(self) -> int:
        return len(self.pairs)

    def __repr__(self) -> str:
        dropped = f"; dropped: {', '.join(self.dropped)}" if self.dropped else ""
        n_pairs = f"{len(self.pairs)} pair{'s' * (len(self.pairs) != 1)}"
        return f"Associations({len(self.names)} columns, {n_pairs}{dropped})"

    def __str__(self) -> str:
        """Strongest pairs, ten at most."""
        strength, p_value = self.values["strength"], self.values["adjusted_p_value"]
        order = np.argsort(-np.nan_to_num(strength, nan=-1), kind="stable")[:10]
        names = {i: " × ".join(self.pairs[i]) for i in order.tolist()}
        width = max(map(len, names.values()), default=0)
        lines = [
            f"{name:<{width}}  {strength[i]:.2f}  p = {p_value[i]:.2g}" for i, name in names.items()
        ]
        return "\n".join([repr(self), *lines])

    def _repr_html_(self) -> str:
        measures = ("strength", "adjusted_p_value", "shared_gaps")
        order = np.argsort(-np.nan_to_num(self.values["strength"], nan=-1), kind="stable")[:20]
        figures = np.stack([self.values[measure][order] for measure in measures], axis=1)
        cells = [
            [*self.pairs[p], *(None if np.isnan(figure) else figure for figure in row)]
            for p, row in zip(order.tolist(), figures.tolist(), strict=True)
        ]
        strongest = f", the {len(cells)} strongest" if len(cells) < len(self) else ""
        return html_table(
            f"Pairs of {len(self.names):,} columns{strongest}",
            ["left", "right", "strength", "p, adjusted", "shared gaps"],
            cells,
            lambda i, j: (
                min(max(figures[i, 0], 0.0), 1.0) if j == 2 and cells[i][2] is not None else None
            ),
        )


def associations(
    X: Any, *, schema: Any = None, n_bins: int = 10, missing: str = "drop"
) -> Associations:
    """Measure how strongly each pair of columns of a table is associated.

    Parameters
    ----------
    X : frame, array, mapping of columns, list of dicts, Table, Counts or source
        The rows, or their counts, of which only the categorical columns are used. Of a file, a
        query or a frame on a cluster 131,072 rows are read, drawn by their numbers.
    schema : Schema or mapping of column to kind, optional
        The kinds of the columns that it names; the others are inferred by the rules of
        :mod:`tabweave.columns.kinds`. Identifiers are dropped, since they predict every column.
    n_bins : int, default=10
        Number of quantile bins of numbers, for ``strength`` and for comparisons with categories.
    missing : {"drop", "value"}, default="drop"
        Whether rows with a missing cell are left out of the pair, or missing is a category of its
        own, so that columns that miss their cells in the same rows are strongly associated. Missing
        numbers are always left out of correlations.

    Returns
    -------
    Associations
        ``frame()`` lists the pairs, ``matrix(measure)`` returns one measure as a matrix.

    Notes
    -----
    ``cramers_v`` is the root of χ²/(n (min(r, k) - 1)), ``cramers_v_corrected`` that of Bergsma
    (2013), corrected for chance; ``mutual_information`` is in nats, ``symmetric_uncertainty`` is
    2I/(H + H), ``theils_u`` is U(left | right) = I/H(left) and ``theils_u_reversed`` the reverse;
    ``phi_k`` is the correlation of a bivariate normal distribution, cut into as many bins, that has
    this χ² after its noise is subtracted [Baak et al. 2020]; it is NaN for columns of more than 100
    values. For these measures numbers are binned.
    ``correlation_ratio`` is η, the root of the share of a number's variance that lies between the
    values of a category. ``strength`` is the corrected V for all pairs. ``shared_gaps`` is the
    correlation φ of being missing, NaN for columns without gaps and for sets. The p-value is that
    of Pearson's chi-square for two categories, of the F test of η for a number and a category, and
    of Spearman's correlation for two numbers; ``adjusted_p_value`` controls the false discovery
    rate [Benjamini and Hochberg 1995]. An element of a set counts as a row of its own.

    Examples
    --------
    >>> from tabweave import associations
    >>> rows = {"crop": list("aabb") * 9, "soil": list("xxyy") * 9, "luck": list("pqpq") * 9}
    >>> found = associations(rows)
    >>> found.frame()[["left", "right", "cramers_v"]].values.tolist()[0]
    ['crop', 'soil', 1.0]
    >>> found.matrix("theils_u").loc["crop", "luck"].item()
    0.0
    """
    if missing not in ("value", "drop"):
        raise ValueError(f"expected missing to be 'value' or 'drop', got {missing!r}")
    if n_bins < 2:
        raise ValueError(f"expected n_bins of at least 2, got {n_bins}")
    rows = X if isinstance(X, Counts) else _read(X, schema)
    return measured(rows, n_bins, drop=missing == "drop")


def measured(
    rows: Table | Counts, n_bins: int = 10, *, drop: bool = True, with_phi: bool = True
) -> Associations:
    """Associations of rows that were read; ``phi_k``, the slowest, can be left out."""
    table = None if isinstance(rows, Counts) else rows
    counts = rows if isinstance(rows, Counts) else Counts.of(_binned(rows, n_bins))
    if counts.schema is None:
        raise ValueError("expected rows, got none")
    if table is None:
        counts = counts.select([column.name for column in counts.schema.categorical])
    schema = cast(Schema, counts.schema) if table is None else table.schema
    names = schema.names
    kinds = {name: _kind(schema, name) for name in names}
    pairs = list(combinations(names, 2))
    values = {measure: np.full(len(pairs), np.nan) for measure in MEASURES}
    _count_measures(counts, pairs, kinds, drop, values, with_phi)
    if table is not None:
        _number_measures(table, pairs, kinds, drop, values)
    values["adjusted_p_value"] = false_discovery(values["p_value"])
    dropped = {} if table is None else {c.name: c.why for c in table.schema.dropped}
    return Associations(list(names), kinds, pairs, values, dropped)


def _read(X: Any, schema: Any) -> Table:
    table = Table.of(read_sampled(X), Schema.of(schema), numbers="numeric", rules="texts")
    if not table.n_rows:
        raise ValueError("expected rows, got none")
    return table


def _binned(table: Table, n_bins: int) -> Table:
    """Table with bins in place of numbers; grades stay the categories they are."""
    table = with_bins(as_values_or_numbers(table), quantile_bins(table, n_bins))
    return table.select([column.name for column in table.schema.categorical])


def _kind(schema: Schema, name: str) -> str:
    column = schema[name]
    return "number" if column.is_continuous else "set" if column.is_set else "category"


# -- from counts ----------------------------------------------------------------------------------


def _count_measures(
    counts: Counts,
    pairs: Sequence[tuple[str, str]],
    kinds: dict[str, str],
    drop: bool,
    values: dict[str, np.ndarray],
    with_phi: bool,
) -> None:
    """Fill in what the table of two columns says."""
    where = {name: binned_part(name) if kind == "number" else name for name, kind in kinds.items()}
    of_elements = {
        name for name, column in where.items() if cast(Schema, counts.schema)[column].is_set
    }
    values["shared_gaps"][:] = shared_gaps(counts, [(where[a], where[b]) for a, b in pairs])
    counts = counts.present(counts.names) if drop else counts
    blocks = pair_tables(counts, [(where[a], where[b]) for a, b in pairs])
    for p, ((a, b), block) in enumerate(zip(pairs, blocks, strict=True)):
        for measure, value in of_block(block, with_phi).items():
            values[measure][p] = value
        if of_elements & {a, b}:  # elements, and gaps, of one row are no independent rows
            values["p_value"][p] = values["shared_gaps"][p] = np.nan


def shared_gaps(counts: Counts, pairs: Sequence[tuple[str, str]]) -> np.ndarray:
    """The correlation φ of being missing of pairs of columns; NaN where one has no gap."""
    out = np.full(len(pairs), np.nan)
    gap = {
        name: counts.span(name).start + labels.index(None)
        for name, labels in zip(counts.names, counts.labels, strict=True)
        if None in labels
    }
    both = [p for p, (a, b) in enumerate(pairs) if a in gap and b in gap]
    left, right = (np.array([gap[pairs[p][i]] for p in both], np.intp) for i in (0, 1))
    n_left, n_right = (counts.value_counts[value].astype(float) for value in (left, right))
    n_both = np.asarray(counts.pairs[left, right], float).ravel() if both else np.zeros(0)
    n = float(counts.n)
    spread = np.sqrt(n_left * (n - n_left) * n_right * (n - n_right))
    with np.errstate(invalid="ignore", divide="ignore"):
        out[both] = np.where(spread > 0, (n * n_both - n_left * n_right) / spread, np.nan)
    return out


def pair_tables(counts: Counts, pairs: Sequence[tuple[str, str]]) -> Iterator[Any]:
    """The contingency table of each pair of columns, sparse where it has many cells.

    Tables with the same left column are cut from one strip of the pair counts. Cut one by one from
    sparse pair counts, each would cost as much as all values of the table, and all the cube of its
    columns. A table takes 32 MB at most, or as much as the pairs of values that occur.
    """
    left, strip = "", counts.pairs[:0]
    for a, b in pairs:
        if a != left:
            left, strip = a, counts.pairs[counts.span(a)]
            if sparse.issparse(strip):
                dense = strip.shape[0] * strip.shape[1] <= MAX_DENSE_CELLS
                strip = strip.toarray() if dense else strip.tocsc()
        block = strip[:, counts.span(b)]
        dense = sparse.issparse(block) and block.shape[0] * block.shape[1] <= MAX_DENSE_CELLS
        yield block.toarray() if dense else block


def of_block(block: Any, with_phi: bool = True) -> dict[str, float]:
    """Measures of one contingency table, dense or sparse, from its cells above 0."""
    row, column, count = cells_of(block)
    n = float(count.sum())
    rows, columns = np.bincount(row, count), np.bincount(column, count)
    r, k = np.count_nonzero(rows), np.count_nonzero(columns)
    if not n or min(r, k) < 2:
        return {"strength": 0.0, "cramers_v": np.nan, "p_value": np.nan, "mutual_information": 0.0}
    chi2 = n * max(float((count**2 / (rows[row] * columns[column])).sum()) - 1, 0.0)
    h_rows, h_columns, joint = entropies(n, rows, columns, count)
    mutual = min(max(h_rows + h_columns - joint, 0.0), h_rows, h_columns)
    mutual = mutual if mutual > 1e-12 else 0.0  # rounding
    corrected = bergsma(chi2, n, r, k)
    return {
        "strength": corrected,
        "cramers_v": float(np.sqrt(chi2 / n / (min(r, k) - 1))),
        "cramers_v_corrected": corrected,
        "mutual_information": mutual,
        "symmetric_uncertainty": 2 * mutual / (h_rows + h_columns),
        "theils_u": mutual / h_rows,
        "theils_u_reversed": mutual / h_columns,
        "phi_k": phi_k(chi2, n, r, k) if with_phi else np.nan,
        "statistic": chi2,
        "p_value": float(chdtrc((r - 1) * (k - 1), chi2)),
    }


def cells_of(block: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Row, column and count, a float, of the cells of a table that are not 0."""
    row, column = block.nonzero()
    count = block[row, column]
    return row, column, np.asarray(count, np.float64).ravel()


def bergsma(chi2: float, n: float, r: int, k: int) -> float:
    """Bergsma 2013: Cramér's V without what chance brings, in n rows, to an r × k table."""
    if n <= 1:
        return 0.0
    square = max(chi2 / n - (r - 1) * (k - 1) / (n - 1), 0.0)
    rows, columns = r - (r - 1) ** 2 / (n - 1), k - (k - 1) ** 2 / (n - 1)
    largest = min(rows, columns) - 1
    return float(min(np.sqrt(square / largest), 1.0)) if largest > 0 else 0.0


def phi_k(chi2: float, n: float, r: int, k: int) -> float:
    """Baak et al. 2020: the correlation of normal numbers in r × k bins that have this χ².

    χ² is that of the normal distribution, stretched from the noise of independent columns up to
    the largest that a table can have; below the noise the correlation is 0. NaN for columns of more
    than 100 values.
    """
    if max(r, k) > 100:
        return float("nan")
    noise = (r - 1) * (k - 1)
    largest = n * (min(r, k) - 1)
    if chi2 <= noise or largest <= noise:
        return 0.0
    correlation, largest_per_row = _correlation_of(min(r, k), max(r, k))
    share = min((chi2 - noise) / (largest - noise), 1.0) * largest_per_row
    return float(correlation(np.sqrt(share)))


@lru_cache(maxsize=4096)
def _correlation_of(r: int, k: int) -> tuple[PchipInterpolator, float]:
    """Correlation as a curve over √(χ²/n), and the largest χ²/n on it."""
    rho, per_row = normal_chi2(r, k)
    return PchipInterpolator(np.sqrt(per_row), rho), float(per_row[-1])


def normal_chi2(r: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Correlations, and χ²/n of normal numbers so correlated in r × k even bins."""
    rho = np.sin(np.linspace(0, np.pi / 2, 49))
    x, y = (np.linspace(-5, 5, size + 1) for size in (r, k))  # in standard deviations
    p, q = np.diff(ndtr(x)), np.diff(ndtr(y))
    node, weight = np.polynomial.legendre.leggauss(8)
    per_row = []
    for correlation in rho:
        joint = _bivariate(x, y, correlation, node, weight)
        expected = np.outer(p, q)
        per_row.append(((joint - expected) ** 2 / expected).sum())
    # Few bins tell high correlations apart by less than rounding: of equal χ² the last one stays.
    later = np.append(np.minimum.accumulate(per_row[::-1])[::-1][1:], np.inf)
    rises = np.array(per_row) < later
    return rho[rises], np.array(per_row)[rises]


def _bivariate(
    x: np.ndarray, y: np.ndarray, rho: float, node: np.ndarray, weight: np.ndarray
) -> np.ndarray:
    """Share of normal numbers in each bin: an integral over x of a difference in y."""
    if rho > 1 - 1e-9:
        low, high = (np.maximum.outer(x[:-1], y[:-1]), np.minimum.outer(x[1:], y[1:]))
        return np.where(high > low, ndtr(high) - ndtr(low), 0.0)
    residual = np.sqrt(1 - rho**2)
    # Where y's edges cross, the integrand falls within `rest`: cut the bins there.
    falls = (y / max(rho, 1e-9) + step * residual for step in (-4, -1, 0, 1, 4))
    cuts = np.unique(np.clip(np.concatenate([x, *falls]), x[0], x[-1]))
    half = np.diff(cuts)[:, None] / 2
    points = (cuts[:-1, None] + half) + half * node
    density = np.exp(-(points**2) / 2) / np.sqrt(2 * np.pi) * weight * half
    below = ndtr((y[:, None, None] - rho * points) / residual)
    pieces = (np.diff(below, axis=0) * density).sum(axis=2)
    owner = np.clip(np.searchsorted(x, (cuts[:-1] + cuts[1:]) / 2, side="right") - 1, 0, len(x) - 2)
    out = np.zeros((len(x) - 1, len(y) - 1))
    np.add.at(out, owner, pieces.T)
    return out


# -- from numbers ---------------------------------------------------------------------------------


def _number_measures(
    table: Table,
    pairs: Sequence[tuple[str, str]],
    kinds: dict[str, str],
    drop: bool,
    values: dict[str, np.ndarray],
) -> None:
    """Fill in correlations of numbers, and what categories say of them."""
    table = as_values_or_numbers(table)
    moments = CrossMoments.of(table)
    index = {name: j for j, name in enumerate(moments.names)}
    if not index:
        return
    pearson = moments.correlations()
    number_pairs = [pair for pair in pairs if kinds[pair[0]] == kinds[pair[1]] == "number"]
    ranks = _PairedRanks({name: table[name].values for name in index}, number_pairs)

    def measure(pair: tuple[str, str]) -> dict[str, float]:
        a, b = pair
        if kinds[a] == kinds[b] == "number":
            n = int(moments.products[2][index[a], index[b]])
            rho = ranks.spearman(a, b)
            statistic, p_value = _t_test(rho, n)
            measures = {"pearson": pearson[index[a], index[b]], "spearman": rho}
        elif {kinds[a], kinds[b]} == {"number", "category"}:
            number, category = (a, b) if kinds[a] == "number" else (b, a)
            sums, j = moments, index[number]
            if drop and None in (labels := table[category].labels):
                present = np.flatnonzero(table[category].codes != labels.index(None))
                sums = CrossMoments.of(take_rows(table.select([category, number]), present))
                j = 0
            eta, statistic, p_value = correlation_ratio(sums, category, j)
            measures = {"correlation_ratio": eta}
        else:
            return {}
        return measures | {"statistic": statistic, "p_value": p_value}

    for p, measures in enumerate(in_threads(measure, pairs)):
        for name, value in measures.items():
            values[name][p] = value


def correlation_ratio(
    moments: CrossMoments, category: str, number: int
) -> tuple[float, float, float]:
    """Correlation ratio η of a number given a category, and F and p of the test of 0."""
    span = moments.vocabulary.span(category)
    total, n = moments.by_value[0][span, number], moments.by_value[1][span, number]
    total, n = total[n > 0], n[n > 0]
    count, size = float(n.sum()), len(n)
    if size < 2:
        return 0.0, np.nan, np.nan
    within = float(moments.products[0][number, number])
    between = float((total**2 / n).sum()) - total.sum() ** 2 / count
    total_squares = within - total.sum() ** 2 / count
    if total_squares <= 0:
        return 0.0, np.nan, np.nan
    share = min(max(between / total_squares, 0.0), 1.0)
    degrees = count - size
    if degrees <= 0 or share >= 1:
        return float(np.sqrt(share)), np.inf, 0.0 if degrees > 0 else np.nan
    f = share / (size - 1) / ((1 - share) / degrees)
    return float(np.sqrt(share)), f, float(fdtrc(size - 1, degrees, f))


class _PairedRanks:
    """Ranks of numbers over the rows that two columns have; gaps often fall on the same rows."""

    def __init__(self, values: dict[str, np.ndarray], pairs: Sequence[tuple[str, str]]) -> None:
        self.gaps = {name: np.packbits(np.isnan(numbers)) for name, numbers in values.items()}
        jobs = {self._key(a, b): (a, b) for pair in pairs for a, b in (pair, pair[::-1])}

        def ranked(job: tuple[str, str]) -> np.ndarray:
            """Ranks, less their mean, over the rows that another column has, too."""
            x, y = values[job[0]], values[job[1]]
            ranks = stats.rankdata(x[~np.isnan(x) & ~np.isnan(y)])
            return ranks - ranks.mean() if len(ranks) else ranks

        self.ranks = dict(zip(jobs, in_threads(ranked, list(jobs.values())), strict=True))

    def _key(self, name: str, other: str) -> tuple[str, bytes]:
        return name, (self.gaps[name] | self.gaps[other]).tobytes()

    def spearman(self, a: str, b: str) -> float:
        """Spearman's correlation over the rows that have both numbers."""
        x, y = self.ranks[self._key(a, b)], self.ranks[self._key(b, a)]
        length = np.sqrt((x @ x) * (y @ y)) if len(x) > 1 else 0.0
        return float(np.clip(x @ y / length, -1, 1)) if length > 0 else np.nan


def _t_test(rho: float, n: int) -> tuple[float, float]:
    if n < 3 or np.isnan(rho):
        return np.nan, np.nan
    if abs(rho) >= 1:
        return float(np.copysign(np.inf, rho)), 0.0
    t = rho * np.sqrt((n - 2) / (1 - rho**2))
    return float(t), float(2 * stdtr(n - 2, -abs(t)))


def false_discovery(p_values: np.ndarray) -> np.ndarray:
    """Benjamini and Hochberg 1995: p-values adjusted for how many there are; NaN stays."""
    out = np.full(len(p_values), np.nan)
    tested = np.flatnonzero(~np.isnan(p_values))
    out[tested] = stats.false_discovery_control(p_values[tested])
    return out
