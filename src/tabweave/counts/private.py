"""Private counts: tables of pairs with noise under one budget, made consistent again.

Adding or removing one row, of weight at most ``max_weight``, changes one cell of each table of
counts. All tables are released by one Gaussian mechanism (Dwork, Roth 2014) whose noise is discrete
(Canonne, Kamath, Steinke 2020) and drawn by OpenDP. Its privacy is accounted for as
zero-concentrated differential privacy, rho (Bun, Steinke 2016), which adds up over releases. What
is done with noisy tables afterwards costs nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise
from typing import Any

import numpy as np
from scipy.optimize import brentq, minimize_scalar
from scipy.special import ndtri

from tabweave._compat import require
from tabweave.columns.column import Column
from tabweave.columns.table import Table
from tabweave.columns.vocabulary import Label
from tabweave.io.register import storable

OTHER = "(other)"  # the value of cells whose own value is not released
MAX_CELLS = 4_000_000  # of all tables together: each is drawn by itself, a minute for a million
N_PROJECTIONS = 50  # rounds in which a table of pairs comes to agree with its margins


@storable
@dataclass(frozen=True)
class Release:
    """What one release of private counts promises, and what it took.

    Attributes
    ----------
    epsilon, delta : float
        Adding or removing one row changes the probability of any outcome by a factor of at most
        exp(epsilon), but for a probability of delta.
    rho : float
        The same as zero-concentrated differential privacy; releases add up.
    scale : float
        Standard deviation of the noise of each cell.
    n_tables : int
        Number of tables that were released.
    max_weight : int
        The largest weight of a row.
    threshold : float or None
        Values without a public list whose noisy count was below are in "(other)".
    """

    epsilon: float
    delta: float
    rho: float
    scale: float
    n_tables: int
    max_weight: int
    threshold: float | None


@storable
@dataclass(frozen=True)
class Ledger:
    """The releases that counts are made of.

    Attributes
    ----------
    releases : tuple of Release
        Each release of the same rows, or of other rows of the same people.
    """

    releases: tuple[Release, ...] = ()

    @property
    def rho(self) -> float:
        """The sum over releases."""
        return sum(release.rho for release in self.releases)

    @property
    def delta(self) -> float:
        """The sum over releases."""
        return sum(release.delta for release in self.releases)

    @property
    def epsilon(self) -> float:
        """What all releases together promise, with :attr:`delta`."""
        if len(self.releases) == 1:
            return self.releases[0].epsilon
        thresholds = sum(r.delta / 2 for r in self.releases if r.threshold is not None)
        return epsilon_of(self.rho, self.delta - thresholds) if self.releases else 0.0


def public_bins(rows: Any, edges: Mapping[str, Sequence[float]]) -> Table:
    """A table whose numbers are cut into bins that everybody knows.

    Bins that follow from the numbers themselves would tell something of them. These are ordinal
    values, named by their ends.

    Parameters
    ----------
    rows : Table, or anything :meth:`tabweave.Table.of` reads
        The rows.
    edges : mapping of column to numbers
        Where the bins of each column begin, rising; one more lies below the first.

    Examples
    --------
    >>> import tabweave
    >>> table = tabweave.public_bins({"age": [17, 30, 64, None]}, {"age": [18, 40, 65]})
    >>> table.schema["age"].levels
    ('< 18', '18 to 40', '40 to 65', '>= 65')
    >>> tabweave.Counts.of(table).value_counts
    array([1, 1, 1, 1])
    """
    table = Table.of(rows)
    columns, cells = list(table.schema.columns), list(table.columns)
    for name, values in edges.items():
        ends = np.asarray(values, np.float64)
        i = table.schema.index(name) if name in table.schema.names else -1
        if i < 0 or not columns[i].is_continuous:
            numeric = [c.name for c in columns if c.is_continuous]
            raise ValueError(f"edges: expected one of the numeric columns {numeric}, got {name!r}")
        if ends.ndim != 1 or not len(ends) or not (np.diff(ends) > 0).all():
            raise ValueError(f"edges of {name!r}: expected rising numbers, got {values!r}")
        texts = [f"{end:.12g}" for end in ends.tolist()]
        between = [f"{low} to {high}" for low, high in pairwise(texts)]
        levels = (f"< {texts[0]}", *between, f">= {texts[-1]}")
        labels = np.array([*levels, None], object)
        numbers = cells[i].numbers(name)
        codes = np.where(np.isnan(numbers), len(levels), np.searchsorted(ends, numbers, "right"))
        columns[i] = Column(name, "ordinal", levels=levels)
        cells[i] = Table.of({name: labels[codes]}, {name: columns[i]})[name]
    return replace(
        table, schema=replace(table.schema, columns=tuple(columns)), columns=tuple(cells)
    )


# -- accounting ------------------------------------------------------------------------------------


def delta_of(rho: float, epsilon: float) -> float:
    """Canonne, Kamath, Steinke (2020), Corollary 13: delta of rho-zCDP at an epsilon."""

    def log_delta(log_order: float) -> float:
        order = 1 + np.exp(log_order)
        exponent = (order - 1) * (order * rho - epsilon)
        return float(exponent - log_order + order * np.log1p(-1 / order))

    best = minimize_scalar(log_delta, bounds=(-15, 15), method="bounded")
    return float(np.exp(min(best.fun, 0.0)))


def rho_of(epsilon: float, delta: float) -> float:
    """The largest rho whose releases are (epsilon, delta)-private."""
    return float(brentq(lambda rho: delta_of(rho, epsilon) - delta, 1e-12, epsilon + 1, xtol=1e-14))


def epsilon_of(rho: float, delta: float) -> float:
    """The smallest epsilon that rho-zCDP promises with a delta."""
    most = rho + 2 * np.sqrt(rho * np.log(1 / delta))
    return float(brentq(lambda epsilon: delta_of(rho, epsilon) - delta, 0, most + 1e-9))


def noise_scale(n_tables: int, rho: float, max_weight: int) -> float:
    """Bun, Steinke (2016), Proposition 1.6: noise of tables that change in one cell each."""
    return max_weight * float(np.sqrt(n_tables / (2 * rho)))


def release_threshold(scale: float, delta: float, n_columns: int, max_weight: int) -> float:
    """The noisy count from which a value is released: a row's own value passes with prob. delta.

    The tail of discrete noise at m is at most that of the Gaussian at m - 1 (Canonne, Kamath,
    Steinke 2020, Proposition 25).
    """
    return max_weight + 1 - scale * float(ndtri(delta / n_columns))


def with_noise(counts: np.ndarray, scale: float, change: float) -> tuple[np.ndarray, float]:
    """Counts with discrete Gaussian noise, and rho of tables that change by so much together."""
    dp: Any = require("opendp.prelude", "private")
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T="f64")
    mechanism = dp.m.make_gaussian(*space, scale=scale)
    return np.asarray(mechanism(counts.astype(np.int64)), np.float64), float(mechanism.map(change))


# -- tables ----------------------------------------------------------------------------------------


def spans_of(labels: Sequence[Sequence[Label]]) -> list[slice]:
    """Where the values of each column stand among those of all."""
    ends = np.cumsum([0, *map(len, labels)]).tolist()
    return [slice(start, end) for start, end in pairwise(ends)]


def released_labels(
    labels: Sequence[Sequence[Label]],
    margins: Sequence[np.ndarray],
    public: Sequence[Sequence[Label] | None],
    noise: tuple[float, float | None, int],
) -> list[list[Label]]:
    """The values of each column that may be told, missing and other ones behind them.

    Those without a public list are told if their noisy count is above a threshold.
    """
    scale, threshold, max_weight = noise
    private = [margin for margin, values in zip(margins, public, strict=True) if values is None]
    counts = np.concatenate([np.zeros(0, np.int64), *private])
    _check_size(len(counts))
    noisy, _ = with_noise(counts, scale, max_weight * len(private) ** 0.5)
    is_told = iter(np.split(noisy >= (threshold or 0), np.cumsum([len(m) for m in private])[:-1]))
    out = []
    for column, values in zip(labels, public, strict=True):
        told = column if values is None else values
        chosen = next(is_told) if values is None else np.ones(len(told), bool)
        known = [v for v, kept in zip(told, chosen.tolist(), strict=True) if kept]
        out.append([*(v for v in known if v is not None and v != OTHER), None, OTHER])
    return out


def noisy_tables(
    pairs: np.ndarray, labels: Sequence[Sequence[Label]], scale: float, max_weight: int
) -> list[np.ndarray]:
    """The counts of each column's values, then those of each two columns, with noise."""
    spans = spans_of(labels)
    tables = [pairs.diagonal()[span] for span in spans]
    tables += [pairs[spans[a], spans[b]] for a, b in _pairs(spans)]
    _check_size(sum(table.size for table in tables))
    cells = np.concatenate([table.ravel() for table in tables])
    noisy, _ = with_noise(cells, scale, max_weight * len(tables) ** 0.5)
    parts = np.split(noisy, np.cumsum([table.size for table in tables])[:-1])
    return [part.reshape(table.shape) for part, table in zip(parts, tables, strict=True)]


def _check_size(n_cells: int) -> None:
    if n_cells > MAX_CELLS:
        raise ValueError(
            f"expected at most {MAX_CELLS:,} cells in all tables, got {n_cells:,}; leave out "
            "columns of many values, or list those of them that matter in values="
        )


def folded(
    pairs: Any, old: Sequence[Sequence[Label]], new: Sequence[Sequence[Label]]
) -> np.ndarray:
    """Counts of the new labels of each column; what is none of them is counted as other."""
    index = np.concatenate([_index(a, b) for a, b in zip(old, new, strict=True)])
    index += np.repeat([span.start for span in spans_of(new)], [len(labels) for labels in old])
    cells = pairs.tocoo() if hasattr(pairs, "tocoo") else None
    size = sum(map(len, new))
    out = np.zeros((size, size), np.int64)
    if cells is None:
        np.add.at(out, (index[:, None], index), pairs)
    else:
        np.add.at(out, (index[cells.row], index[cells.col]), cells.data)
    return out


def _index(old: Sequence[Label], new: Sequence[Label]) -> np.ndarray:
    places = {label: i for i, label in enumerate(new)}
    return np.array([places.get(label, places[OTHER]) for label in old], np.intp)


# -- consistency -----------------------------------------------------------------------------------


def consistent(tables: Sequence[np.ndarray], sizes: Sequence[int], smallest: float) -> np.ndarray:
    """Pair counts without negative cells whose tables agree in their margins and their total.

    A margin is told by its own table and by those of all pairs that it is part of; noise of a sum
    of V cells has V times the variance, so that tables weigh by 1 / V. Missing and other cells
    count as none if they are fewer than noise may make them, ``smallest``.
    """
    alone, pairs = tables[: len(sizes)], dict(zip(_pairs(sizes), tables[len(sizes) :], strict=True))
    margins = [margin.copy() for margin in alone]
    weights = np.ones(len(sizes))
    for (a, b), table in pairs.items():
        margins[a] += table.sum(1) / sizes[b]
        margins[b] += table.sum(0) / sizes[a]
        weights[a] += 1 / sizes[b]
        weights[b] += 1 / sizes[a]
    margins = [margin / weight for margin, weight in zip(margins, weights, strict=True)]
    precision = weights / np.asarray(sizes)
    n = max(float(sum(p * m.sum() for p, m in zip(precision, margins, strict=True))), 0.0)
    n /= precision.sum()
    margins = [_margin(margin, n, smallest) for margin in margins]
    ends = np.cumsum([0, *sizes])
    out = np.zeros((ends[-1], ends[-1]))
    out[np.diag_indices(len(out))] = np.concatenate(margins)
    for (a, b), table in pairs.items():
        block = with_margins(table, margins[a], margins[b])
        out[ends[a] : ends[a + 1], ends[b] : ends[b + 1]] = block
        out[ends[b] : ends[b + 1], ends[a] : ends[a + 1]] = block.T
    return out


def _pairs(columns: Sequence[Any]) -> Iterator[tuple[int, int]]:
    return combinations(range(len(columns)), 2)


def _margin(counts: np.ndarray, n: float, smallest: float) -> np.ndarray:
    """Counts that add up; missing and other cells, which come last, if more than noise."""
    projected = on_simplex(counts[None], np.array([n]))[0]
    occurs = np.arange(len(counts)) < len(counts) - 2
    occurs |= projected >= min(smallest, projected.max())
    out = np.zeros_like(counts)
    out[occurs] = on_simplex(counts[None, occurs], np.array([n]))[0]
    return out


def with_margins(table: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """A table without negative cells, near another one, that has these margins."""
    for _ in range(N_PROJECTIONS):
        table = on_simplex(table, rows)
        table = on_simplex(table.T, columns).T
    if not rows.sum():
        return table
    table = table + 1e-12 * np.outer(rows, columns) / rows.sum()  # or nothing could be scaled
    for _ in range(N_PROJECTIONS):  # proportional fitting: margins agree to rounding
        table = table * _ratio(rows, table.sum(1))[:, None]
        table = table * _ratio(columns, table.sum(0))
    return table


def _ratio(wanted: np.ndarray, sums: np.ndarray) -> np.ndarray:
    return np.divide(wanted, sums, out=np.zeros_like(sums), where=sums > 0)


def on_simplex(rows: np.ndarray, totals: np.ndarray) -> np.ndarray:
    """The nearest rows without negative entries that add up to totals (Held et al. 1974)."""
    descending = -np.sort(-rows, axis=1)
    excess = (descending.cumsum(1) - totals[:, None]) / np.arange(1, rows.shape[1] + 1)
    n_positive = np.maximum((descending > excess).sum(1), 1)
    return np.maximum(rows - excess[np.arange(len(rows)), n_positive - 1][:, None], 0.0)
