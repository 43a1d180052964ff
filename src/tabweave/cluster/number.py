"""How many clusters: criteria from one to many, for mixtures, k-means on blocks, and k-modes.

The default fits latent classes (mixtures of independent columns) for each number and weighs fit
against parameters, from counts of distinct rows. Partitions are judged by what their values' counts
say (nomclust's BIC, AIC and BK), by silhouette, gap, and by how they survive resampling.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score, silhouette_score

from tabweave._compat import one_thread, seed_of
from tabweave.cluster.kmeans import fitted_kmeans
from tabweave.cluster.kmodes import (
    OF_MIXTURES,
    KModes,
    chosen,
    in_bins,
    mixture_scores,
    some_rows,
    without_texts,
)
from tabweave.columns.column import Schema
from tabweave.columns.kinds import dropped_line
from tabweave.columns.table import Table, distinct_rows, take_rows
from tabweave.embed.onehot import OneHot
from tabweave.embed.weave import Weave

OF_PARTITIONS = ("entropy_bic", "entropy_aic", "bk", "silhouette", "gap", "stability")


@dataclass(frozen=True)
class NumberOfClusters:
    """Result of :func:`number_of_clusters`.

    Attributes
    ----------
    best : int
        The number by the criterion that was asked for.
    criterion : str
        That criterion.
    scores : dict of str to dict of int to float
        Each criterion for each number.
    choices : dict of str to int
        The number by each criterion.
    dropped : dict of str to str
        Columns that took no part, and why.
    """

    best: int
    criterion: str
    scores: dict[str, dict[int, float]]
    choices: dict[str, int]
    dropped: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        """The number, and the scores by which it was chosen."""
        lines = [f"{self.best} by {self.criterion}"]
        scores = self.scores[self.criterion]
        lines += [f"  {k}: {score:.6g}" for k, score in scores.items()]
        if len(scores) > 1 and self.best == max(scores):
            lines.append(f"{self.best} is the largest number looked at; there may be more clusters")
        return "\n".join(lines + ([dropped_line(self.dropped)] if self.dropped else []))


def number_of_clusters(
    X: Any,
    *,
    clusterer: str = "mixture",
    criterion: str = "auto",
    max_clusters: int = 15,
    n_init: int = 8,
    schema: Any = None,
    random_state: Any = 0,
) -> NumberOfClusters:
    """Estimate how many clusters a table has.

    Parameters
    ----------
    X : frame, array, mapping of columns, list of dicts or Table
        The rows; of more than 5,000 as many are drawn.
    clusterer : {"mixture", "kmeans", "kmodes"}, default="mixture"
        Latent classes (numbers in bins), k-means in the space of :class:`~tabweave.Weave`, or
        :class:`~tabweave.KModes` (numbers in bins).
    criterion : str, default="auto"
        What decides. Of mixtures "bic", "aic", "aic3" (three a parameter) and "adjusted_bic" (BIC
        with (n + 2) / 24 rows); of partitions "entropy_bic", "entropy_aic" and "bk" as nomclust has
        them, "silhouette", "gap" and "stability". "auto" is "aic3" for mixtures and "silhouette"
        for partitions.
    max_clusters : int, default=15
        The largest number looked at.
    n_init : int, default=8
        Starts of each mixture, of which the likeliest is taken.
    schema : Schema or mapping of column to kind, optional
        What the columns are; others are read by the rules of :mod:`tabweave.columns.kinds` (dates
        and money in text are numbers). Categories most of whose values occur once are dropped
        unless declared: they tell no rows apart from the others, and
        every value costs a parameter of each cluster.
    random_state : int, RandomState or None, default=0
        Seed of starts and draws.

    Returns
    -------
    NumberOfClusters
        ``best``, and all scores. 1 is among the numbers of mixtures and of the gap: no clusters.

    Notes
    -----
    Entropies are those of the values within clusters, summed over columns: nomclust's BIC is
    ``2 Σ_g n_g H_g + k Σ (V - 1) ln n``, its BK the second difference of the mean entropy [Chen and
    Liu 2009]. The gap is to tables whose columns are shuffled, after Tibshirani et al. (2001), and
    takes the first number that the next does not pass. Stability is the adjusted Rand index of
    two partitions learned from halves of the rows.

    Examples
    --------
    >>> import numpy as np
    >>> from tabweave.cluster import number_of_clusters
    >>> group = np.arange(300) % 3
    >>> noise = np.random.default_rng(0)
    >>> rows = {f"c{j}": (group + noise.choice(3, 300, p=[0.8, 0.1, 0.1])) % 3 for j in range(6)}
    >>> kinds = {name: "nominal" for name in rows}
    >>> number_of_clusters(rows, schema=kinds, max_clusters=6).best
    3
    """
    if clusterer not in ("mixture", "kmeans", "kmodes"):
        raise ValueError(
            f"expected clusterer to be 'mixture', 'kmeans' or 'kmodes', got {clusterer!r}"
        )
    criteria = OF_MIXTURES if clusterer == "mixture" else OF_PARTITIONS
    if criterion != "auto" and criterion not in criteria:
        raise ValueError(f"expected criterion to be 'auto' or one of {criteria}, got {criterion!r}")
    if max_clusters < 2:
        raise ValueError(f"expected max_clusters to be at least 2, got {max_clusters}")
    rng = np.random.default_rng(seed_of(random_state))
    declared = Schema.of(schema)
    table = Table.of(X, declared, numbers="numeric", rules="texts")
    keys = {column.name: column.why for column in table.schema.dropped}
    table, dropped = without_texts(table, declared)
    dropped = keys | dropped
    if clusterer != "kmeans":
        sets = [column.name for column in table.schema.columns if column.is_set]
        dropped |= dict.fromkeys(sets, f"holds sets, which clusterer={clusterer!r} does not read")
    table = some_rows(table, rng)
    decides = "aic3" if clusterer == "mixture" else "silhouette"
    decides = decides if criterion == "auto" else criterion
    if clusterer == "mixture":
        scores = mixture_scores(table, max_clusters, rng, decides, n_init)
    else:
        requested = [criterion] if criterion in ("gap", "stability") else []
        cheap = ["entropy_bic", "entropy_aic", "bk", "silhouette"]
        scores = partition_scores(table, clusterer, max_clusters, [*cheap, *requested], rng)
    choices = {name: chosen(name, by_number) for name, by_number in scores.items() if by_number}
    return NumberOfClusters(choices.get(decides, 1), decides, scores, choices, dropped)


# -- partitions -----------------------------------------------------------------------------------


def partition_scores(
    table: Table,
    clusterer: str,
    max_clusters: int,
    requested: Sequence[str],
    rng: np.random.Generator,
) -> dict[str, dict[int, float]]:
    """The criteria of partitions into two clusters to many, and of one where it has any."""
    fit = _CLUSTERERS[clusterer](table, seed_of(int(rng.integers(2**31 - 1))))
    codes = _codes(in_bins(table))
    n_distinct = len(distinct_rows(list(codes))[0])
    out: dict[str, dict[int, float]] = {name: {} for name in requested}
    entropy: dict[int, float] = {}
    for k in range(1, min(max_clusters, n_distinct - 1) + 1):
        labels, dispersion = fit(k, np.arange(table.n_rows))
        within, free = within_entropy(codes, labels)
        entropy[k] = within
        out["entropy_bic"][k] = 2 * within + k * free * np.log(table.n_rows)
        out["entropy_aic"][k] = 2 * within + 2 * k * free
        if k > 1:
            out["silhouette"][k] = fit.silhouette(labels, rng)
        if "gap" in requested:
            out["gap"][k] = _gap(table, clusterer, k, dispersion, rng)
        if "stability" in requested and k > 1:
            out["stability"][k] = _stability(fit, k, table.n_rows, rng)
    out["bk"] = best_k({k: h / table.n_rows for k, h in entropy.items()})
    return out


def within_entropy(codes: Sequence[np.ndarray], labels: np.ndarray) -> tuple[float, int]:
    """``Σ_g n_g Σ_c H_gc`` in nats, and how many values columns have beyond the first."""
    total, free = 0.0, 0
    for column in codes:
        width = int(column.max()) + 1
        table = np.bincount(labels * width + column, minlength=(labels.max() + 1) * width)
        table = table.reshape(-1, width).astype(float)
        sizes = table.sum(axis=1)
        present = table[table > 0]
        total += float(
            (sizes[sizes > 0] * np.log(sizes[sizes > 0])).sum() - (present * np.log(present)).sum()
        )
        free += int((table.sum(axis=0) > 0).sum()) - 1
    return total, free


def best_k(entropy: dict[int, float]) -> dict[int, float]:
    """Chen and Liu 2009: the second difference of the mean entropy within clusters."""
    gain = {k: entropy[k] - entropy[k + 1] for k in entropy if k + 1 in entropy}
    return {k: gain[k - 1] - gain[k] for k in gain if k - 1 in gain}


class _KMeans:
    """k-means in the space of Weave, and k-modes: partitions of a table's rows."""

    def __init__(self, table: Table, seed: int) -> None:
        self.seed = seed
        self.points = self._points(table)
        self.node_of = np.unique(self.points, axis=0, return_inverse=True)[1].ravel()

    def _points(self, table: Table) -> np.ndarray:
        return Weave().fit(table).transform(table)

    def __call__(self, k: int, rows: np.ndarray) -> tuple[np.ndarray, float]:
        """Partition and cost; of fewer clusters where some rows have fewer that differ."""
        return self._fitted(min(k, len(np.unique(self.node_of[rows]))), rows)

    def _fitted(self, k: int, rows: np.ndarray) -> tuple[np.ndarray, float]:
        if k == 1:
            centred = self.points - self.points[rows].mean(axis=0)
            return np.zeros(len(self.points), int), float((centred[rows] ** 2).sum())
        with one_thread():
            model = fitted_kmeans(KMeans(k, n_init=3, random_state=self.seed), self.points[rows])
            return model.predict(self.points).astype(int), float(model.inertia_)

    def silhouette(
        self, labels: np.ndarray, rng: np.random.Generator, *, max_paired_rows: int = 1_000
    ) -> float:
        sampled = rng.permutation(len(labels))[:max_paired_rows]
        if len(np.unique(labels[sampled])) < 2:
            return -1.0
        return float(silhouette_score(self.points[sampled], labels[sampled]))


class _KModes(_KMeans):
    def _points(self, table: Table) -> np.ndarray:
        self.table = in_bins(table)
        return OneHot().fit(self.table).transform(self.table)

    def _fitted(self, k: int, rows: np.ndarray) -> tuple[np.ndarray, float]:
        model = KModes(k, n_init=3, random_state=self.seed).fit(take_rows(self.table, rows))
        return model.predict(self.table).astype(int), float(model.cost_)


_CLUSTERERS: dict[str, Callable[..., Any]] = {"kmeans": _KMeans, "kmodes": _KModes}


def _codes(table: Table) -> list[np.ndarray]:
    return [np.unique(data.codes, return_inverse=True)[1] for _, data in table]


def _gap(
    table: Table,
    clusterer: str,
    k: int,
    dispersion: float,
    rng: np.random.Generator,
    *,
    n_draws: int = 5,
) -> float:
    """How much narrower clusters are than those of shuffled columns, in logs."""
    reference = []
    for _ in range(n_draws):
        orders = [rng.permutation(table.n_rows) for _ in table.schema.columns]
        alone = (table.select([name]) for name in table.schema.names)
        columns = [take_rows(*pair).columns[0] for pair in zip(alone, orders, strict=True)]
        shuffled = Table(table.schema, tuple(columns), table.n_rows)
        fit = _CLUSTERERS[clusterer](shuffled, int(rng.integers(2**31 - 1)))
        reference.append(np.log(max(fit(k, np.arange(table.n_rows))[1], 1e-300)))
    return float(np.mean(reference) - np.log(max(dispersion, 1e-300)))


def _stability(
    fit: Any, k: int, n_rows: int, rng: np.random.Generator, *, n_draws: int = 5
) -> float:
    """How alike two partitions are that were learned from halves of the rows."""
    agreements = []
    for _ in range(n_draws):
        order = rng.permutation(n_rows)
        first, other = (fit(k, np.sort(part))[0] for part in np.array_split(order, 2))
        agreements.append(adjusted_rand_score(first, other))
    return float(np.mean(agreements))
