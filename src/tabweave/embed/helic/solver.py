"""Weights for HELIC: pairs of rows and tables of pairs of values in, weights out.

A pair of rows is a handful of pairs of values, and few of those are distinct: a squared distance is
looked up, ``d = M T ω``, with M telling which pairs of values each pair of rows consists of and T
the squared distance of each pair of values in each block. The residuals of all pairs of rows are
first added up per pair of values, ``A = Mᵀ residual``, so that the gradient is ``TᵀA``. The matrix
of pairs × features, which the paper works on, is never formed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, cast

import numpy as np
from scipy import sparse
from scipy.optimize import minimize

from tabweave.blocks.value_tables import gram_factor
from tabweave.counts import couplings
from tabweave.counts.counts import Counts
from tabweave.counts.couplings import frequencies
from tabweave.io.register import storable
from tabweave.rows.table import Codes, Table, distinct_rows
from tabweave.rows.vocabulary import Label, positions, union


@dataclass(frozen=True, eq=False)
class ValuePairs:
    """The distinct pairs of unlike values of one column that a sample of pairs of rows holds."""

    first: np.ndarray
    second: np.ndarray
    met: Any  # csr_array (pairs of rows, pairs of values): which one each pair of rows has

    @classmethod
    def of(cls, pairs: Pairs, column: int, n_values: int) -> ValuePairs:
        """Collect the pairs of values of pairs of rows; equal values are at distance 0."""
        left, right = pairs.left[:, column], pairs.right[:, column]
        low, high = np.minimum(left, right), np.maximum(left, right)
        unlike = np.flatnonzero(low != high)
        keys, place = np.unique(
            low[unlike].astype(np.int64) * n_values + high[unlike], return_inverse=True
        )
        met = sparse.csr_array(
            (np.ones(len(unlike)), (unlike, place)), shape=(len(left), len(keys))
        )
        return cls(keys // max(n_values, 1), keys % max(n_values, 1), met)


@dataclass(frozen=True, eq=False)
class Distances:
    """Squared distances of pairs of rows as a linear function of weights, and its transpose."""

    met: Any  # (pairs of rows, pairs of values of all columns)
    tables: list[np.ndarray]  # per column (pairs of values, weights)

    @classmethod
    def of(cls, columns: Sequence[ValuePairs], tables: Sequence[np.ndarray]) -> Distances:
        """Join the columns."""
        return cls(sparse.hstack([c.met for c in columns], format="csr"), list(tables))

    def __call__(self, omega: np.ndarray) -> np.ndarray:
        """Eq. (6.17): ``d_ij = Σ ω_l k_ijl``, through the distances of values."""
        parts = np.split(omega, np.cumsum([t.shape[1] for t in self.tables])[:-1])
        looked_up = [t @ w for t, w in zip(self.tables, parts, strict=True)]
        return self.met @ np.concatenate(looked_up)

    def transposed(self, residual: np.ndarray) -> np.ndarray:
        """Return ``Σ_ij residual_ij k_ijl`` for each weight, through sums per pair of values."""
        mass = np.split(self.met.T @ residual, np.cumsum([len(t) for t in self.tables])[:-1])
        return np.concatenate([t.T @ m for t, m in zip(self.tables, mass, strict=True)])


@dataclass(frozen=True, eq=False)
class Objective:
    """``½ Σ p_ij [1 + r_ij (d_ij - b)]₊² + (μ/2) Σ s_l (ω_l - ω⁰_l)²``, convex in ω and b.

    Eq. (6.19) with the hinge squared, so that it is smooth, and with a pull towards the starting
    weights in place of λ‖ω‖₁, which pulls towards nothing at all. Called with (ω, b) it returns
    its value and gradient.
    """

    distances: Distances
    pairs: Pairs
    start: np.ndarray
    stiffness: np.ndarray
    pull: float

    def __call__(self, point: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the value and the gradient at (ω, b)."""
        omega, b = point[:-1], point[-1]
        relation, weight = self.pairs.relation, self.pairs.weight
        slack = np.maximum(1 + relation * (self.distances(omega) - b), 0)
        residual = weight * slack * relation
        off = omega - self.start
        value = 0.5 * (weight @ slack**2) + 0.5 * self.pull * (self.stiffness @ off**2)
        by_omega = self.distances.transposed(residual) + self.pull * self.stiffness * off
        return float(value), np.append(by_omega, -residual.sum())


def minimise(objective: Objective, max_iter: int) -> tuple[np.ndarray, float, list[float]]:
    """Minimise over ω ≥ 0 and b by L-BFGS-B; return ω, b and the objective after each step.

    Weights are measured in units in which the pull is equally stiff everywhere. Without pairs of
    both relations, or with an infinite pull, weights stay where they start.
    """
    start, n = objective.start, len(objective.start)
    if not objective.pairs.weight.any() or np.isinf(objective.pull) or not n:
        return start, float(objective.pairs.weight @ objective.distances(start)), []
    unit = np.append(1 / np.sqrt(np.maximum(objective.stiffness, 1e-12)), 1.0)
    b = float(objective.pairs.weight @ objective.distances(start))
    first = np.append(start, b)
    trace = [objective(first)[0]]

    def scaled(point: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = objective(point * unit)
        return value, gradient * unit

    def note(intermediate_result: Any) -> None:
        trace.append(float(intermediate_result.fun))

    result = minimize(
        scaled,
        first / unit,
        jac=True,
        method="L-BFGS-B",
        bounds=[(0, None)] * n + [(None, None)],
        callback=note,
        options={"maxiter": max_iter, "maxcor": 20, "ftol": 1e-9},
    )
    point = result.x * unit
    return np.maximum(point[:-1], 0), float(point[-1]), trace


# -- as printed ---------------------------------------------------------------------------------


def hinge(
    distances: np.ndarray, b: float, omega: np.ndarray, pairs: Pairs, sparsity: float
) -> float:
    """Eq. (6.19): ``Σ p_ij [1 + r_ij (d_ij - b)]₊ + λ‖ω‖₁``, over the sample of pairs."""
    slack = np.maximum(1 + pairs.relation * (distances - b), 0)
    return float(pairs.weight @ slack + sparsity * omega.sum())


def adam(
    features: Sequence[np.ndarray],
    pairs: Pairs,
    sparsity: float,
    max_iter: int,
    seed: int,
) -> tuple[list[np.ndarray], float, list[float]]:
    """Section 6.4.1: Adam on Eq. (6.19), steps of 10⁻³, batches of 20 pairs, from ω = 1.

    Stops early when the objective over all pairs of the sample, looked at every 50 steps, has not
    fallen three times in a row; the best weights seen are returned. Batches are drawn by the
    pairs' weights, so that both relations come up equally often.
    """
    rng = np.random.default_rng(seed)
    point = np.ones(sum(f.shape[1] for f in features) + 1)
    columns = [ValuePairs.of(pairs, a, len(f)) for a, f in enumerate(features)]
    point[-1] = pairs.weight @ _distances(features, columns, point[:-1])
    moments = np.zeros((2, len(point)))
    best, trace = point.copy(), []
    for step in range(1, max_iter + 1 if pairs.weight.any() else 0):
        if step % 50 == 1:
            omega, b = point[:-1], float(point[-1])
            trace.append(hinge(_distances(features, columns, omega), b, omega, pairs, sparsity))
            if trace[-1] <= min(trace):
                best = point.copy()
            if len(trace) - 1 - int(np.argmin(trace)) >= 3:
                break
        batch = rng.choice(len(pairs.weight), 20, p=pairs.weight)
        gradient = batch_gradient(features, pairs, batch, point, sparsity)
        moments[0] = 0.9 * moments[0] + 0.1 * gradient
        moments[1] = 0.999 * moments[1] + 0.001 * gradient**2
        size = np.sqrt(moments[1] / (1 - 0.999**step)) + 1e-8
        point = point - 1e-3 * moments[0] / (1 - 0.9**step) / size
        point[:-1] = np.maximum(point[:-1], 0)
    return _split(best[:-1], features), float(best[-1]), trace


def _split(omega: np.ndarray, features: Sequence[np.ndarray]) -> list[np.ndarray]:
    return np.split(omega, np.cumsum([f.shape[1] for f in features])[:-1])


def batch_gradient(
    features: Sequence[np.ndarray],
    pairs: Pairs,
    batch: np.ndarray,
    point: np.ndarray,
    sparsity: float,
) -> np.ndarray:
    """Return the gradient of Eq. (6.19) in (ω, b) over a batch of pairs."""
    squares = np.hstack(
        [(f[pairs.left[batch, a]] - f[pairs.right[batch, a]]) ** 2 for a, f in enumerate(features)]
    )
    relation = pairs.relation[batch]
    active = 1 + relation * (squares @ point[:-1] - point[-1]) > 0
    residual = relation * active / len(batch)
    return np.append(residual @ squares + sparsity, -residual.sum())


def _distances(
    features: Sequence[np.ndarray], columns: Sequence[ValuePairs], omega: np.ndarray
) -> np.ndarray:
    """Return the squared distances of all pairs of a sample, by Gram matrices of values."""
    out = np.zeros(columns[0].met.shape[0])
    for f, c, w in zip(features, columns, _split(omega, features), strict=True):
        gram = (f * w) @ f.T
        own = np.diagonal(gram)
        out += c.met @ (own[c.first] + own[c.second] - 2 * gram[c.first, c.second])
    return out


# -- Blocks for HELIC: counts in, what each weight of a column multiplies out

LINEAR = couplings.kernel_family((), (1,))
OWN_WEIGHTS = 64  # a column of at most so many values has an identity weight for each of them


@dataclass(frozen=True)
class Block:
    """What one weight multiplies: inner products of a column's values, or rows that give them.

    Attributes
    ----------
    name : str
        ``space/kernel``, or ``identity/value``.
    rows : ndarray
        The Gram matrix of the values; for a column with many values, their rows.
    start : float
        The weight to start from.
    stiffness : float
        How strongly a weight is pulled back: the block's mean distance over its fair share.
    is_gram : bool
        What ``rows`` are.
    """

    name: str
    rows: np.ndarray
    start: float
    stiffness: float
    is_gram: bool = True

    def squared(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """Eq. (6.11): the squared distances of pairs of values."""
        if not self.is_gram:
            return ((self.rows[first] - self.rows[second]) ** 2).sum(axis=1)
        own = np.diagonal(self.rows)
        return np.maximum(own[first] + own[second] - 2 * self.rows[first, second], 0)


def coupling_spaces(counts: Counts, column: int) -> dict[str, couplings.Points]:
    """Eqs. (6.2), (6.5), (6.8): intra-attribute, inter-attribute and attribute-class couplings."""
    spaces = {"intra": couplings.intra(counts, column)}
    if len(counts.names) > 1:
        spaces["inter"] = couplings.inter(counts, column)
    return spaces | {"class": couplings.by_class(counts, column)}


def column_blocks(
    counts: Counts, column: int, kernels: dict[str, couplings.Kernel], start: str
) -> list[Block]:
    """Return the blocks of a column; a column with one value has none.

    The starting weight 1 of a column is shared equally by its spaces, and within a space by its
    kernels (``start="balanced"``), or goes to the identity (``start="identity"``).
    """
    every = frequencies(counts)
    f = every[column]
    gini = 1 - f @ f
    if gini <= couplings.NEGLIGIBLE:
        return []
    mean = gini / sum(1 - own @ own for own in every)
    marks = couplings.landmarks(counts, column, couplings.MAX_LANDMARKS)
    if len(marks) < len(f):
        rows = couplings.factor(_mean_gram(counts, column, kernels, marks) * mean, marks)
        return [Block("mean", rows, 1.0, mean, is_gram=False)]
    kept = list(_unit_blocks(counts, column, kernels, marks))
    n_kernels = Counter(block.space for block in kept)
    out: list[Block] = []
    for block in kept:
        share = 1 / (len(n_kernels) * n_kernels[block.space])
        first = share if start == "balanced" else float(block.space == "identity")
        if block.space == "identity" and len(f) <= OWN_WEIGHTS:
            out += _own_blocks(counts, column, mean / gini, first, share)
        else:
            name = f"{block.space}/{block.kernel}"
            out.append(Block(name, block.gram * mean, first, mean / share))
    return out


def _own_blocks(
    counts: Counts, column: int, unit: float, start: float, share: float
) -> Iterator[Block]:
    """Yield the identity value by value: how much it matters to have this very value or not.

    Two rows differ in it with probability 2f(1 - f); over all values that adds up to 2 Gini.
    """
    f = frequencies(counts)[column]
    for v, label in enumerate(counts.labels[column]):
        gram = np.zeros((len(f), len(f)))
        gram[v, v] = unit / 2
        yield Block(f"identity/{label!s}", gram, start, unit * f[v] * (1 - f[v]) / share)


def _unit_blocks(
    counts: Counts, column: int, kernels: dict[str, couplings.Kernel], marks: np.ndarray
) -> Iterator[couplings.KernelBlock]:
    """Eq. (6.10): yield the kernels that tell values apart, rows at mean squared distance 1."""
    f = frequencies(counts)[column]
    spaces = coupling_spaces(counts, column)
    identity = couplings.identity_block(len(f), marks)
    for block in chain([identity], couplings.kernel_blocks(spaces, kernels, marks)):
        distance = 2 * block.inertia(f, marks)
        if distance > couplings.NEGLIGIBLE:
            yield couplings.KernelBlock(
                block.space, block.kernel, block.gram / distance, block.diagonal / distance
            )


def _mean_gram(
    counts: Counts, column: int, kernels: dict[str, couplings.Kernel], marks: np.ndarray
) -> np.ndarray:
    """Return the balanced mean of a column's kernels, all values against the landmarks."""
    sums: dict[str, np.ndarray] = {}
    n_kernels: Counter[str] = Counter()
    for block in _unit_blocks(counts, column, kernels, marks):
        sums[block.space] = sums.get(block.space, 0) + block.gram
        n_kernels[block.space] += 1
    return np.sum([total / n_kernels[space] for space, total in sums.items()], axis=0) / len(sums)


def distance_table(blocks: list[Block], first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Eq. (6.11): the squared distance of each pair of values in each block."""
    columns = [block.squared(first, second) for block in blocks]
    return np.array(columns).reshape(len(blocks), len(first)).T


def weighted_table(blocks: list[Block], weights: np.ndarray, n_values: int) -> np.ndarray:
    """Eq. (6.18): rows of values whose squared distances are ``Σ ω_p d_p``, Eq. (6.13)."""
    if not blocks:
        return np.zeros((n_values, 0))
    if not blocks[0].is_gram:
        return np.sqrt(weights[0]) * blocks[0].rows
    gram = np.zeros((n_values, n_values))
    for block, weight in zip(blocks, weights, strict=True):
        gram += weight * block.rows
    return gram_factor(gram)[0]


def kernel_columns(
    counts: Counts, column: int, kernels: dict[str, couplings.Kernel]
) -> tuple[list[str], np.ndarray]:
    """Eq. (6.15): the raw columns of a column's kernel matrices, side by side, and their names."""
    marks = np.arange(int(counts.sizes[column]))
    blocks = list(couplings.kernel_blocks(coupling_spaces(counts, column), kernels, marks))
    return [f"{b.space}/{b.kernel}" for b in blocks], np.hstack([b.gram for b in blocks])


# -- Pairs of rows for HELIC: batches of rows in, a bounded, uniform sample of pairs out


@storable
@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs of rows, in the codes of some counts.

    Attributes
    ----------
    left, right : ndarray of shape (pairs, columns)
        The values of both rows, as numbers of ``counts.labels``.
    relation : ndarray of shape (pairs,)
        Eq. (6.20): 1 if both rows are of the same class, else -1.
    weight : ndarray of shape (pairs,)
        Weight of each pair in the loss: one half for all pairs of the same class together, one
        half for the others; zero where a relation is all there is.
    """

    left: np.ndarray
    right: np.ndarray
    relation: np.ndarray
    weight: np.ndarray


@dataclass(frozen=True, eq=False)
class Batch:
    """Some rows of a table, the class last, as codes of labels that only ever grow."""

    columns: list[Codes]
    places: list[np.ndarray]
    labels: tuple[tuple[Label, ...], ...]

    @classmethod
    def of(cls, table: Table, y: Any, rows: np.ndarray, labels: Sequence[Any]) -> Batch:
        """Read what ``rows`` needs: the classes of other rows stay unread where they can."""
        columns = [cast(Codes, column) for _, column in table]
        if isinstance(y, np.ndarray) and len(rows) < len(y):
            part = Table.of({"y": y[rows]}, {"y": "nominal"})["y"]
            codes = np.zeros(len(y), part.codes.dtype)
            codes[rows] = part.codes
            columns.append(Codes(codes, part.labels))
        else:
            columns.append(Table.of({"y": y}, {"y": "nominal"})["y"])
        known = tuple(
            tuple(union(old, column.labels)) for old, column in zip(labels, columns, strict=True)
        )
        places = [positions(k, column.labels) for k, column in zip(known, columns, strict=True)]
        return cls(columns, places, known)

    def rows(self, rows: np.ndarray) -> np.ndarray:
        """Return some of the rows as codes of ``labels``."""
        pairs = zip(self.places, self.columns, strict=True)
        return np.stack([p[c.codes[rows]] for p, c in pairs], axis=1).astype(np.int32)


@storable
@dataclass(frozen=True, eq=False)
class PairSample:
    """What HELIC keeps of the rows it has seen: never more than two rows a pair.

    Rows are held as codes, the class last, of labels in order of first appearance.
    """

    seed: int
    seen: float
    labels: tuple[tuple[Label, ...], ...]
    held: np.ndarray  # (places, columns + 1): the row at each place
    due: np.ndarray  # (places,): how much weight will have been seen when it is renewed
    draws: np.ndarray  # (places,): how often it was
    few: tuple[np.ndarray, np.ndarray] | None  # distinct rows and weights, unless too many

    @classmethod
    def empty(cls, n_columns: int, n_pairs: int, seed: int) -> PairSample:
        """Return a sample that has seen no row."""
        places = 2 * n_pairs
        return cls(
            seed=seed,
            seen=0.0,
            labels=((),) * (n_columns + 1),
            held=np.zeros((places, n_columns + 1), np.int32),
            due=np.zeros(places),
            draws=np.zeros(places, np.int64),
            few=(np.zeros((0, n_columns + 1), np.int32), np.zeros(0)),
        )

    def add(self, table: Table, y: Any, weight: np.ndarray | None) -> PairSample:
        """Return the sample after more rows; weights as :class:`~tabweave.Counts` takes them."""
        row, due, draws = self._renewals(table.n_rows, weight)
        renewed = np.flatnonzero(row >= 0)
        present = np.arange(table.n_rows) if weight is None else np.flatnonzero(weight)
        # A look at the first rows mostly settles whether few are distinct.
        some = present[: 4 * most_distinct(len(self.held) // 2)]
        batch = Batch.of(table, y, np.concatenate([row[renewed], some]), self.labels)
        few = self._few_after(batch, some, weight)
        if few is not None and len(present) > len(some):
            batch = Batch.of(table, y, present, self.labels)
            few = self._few_after(batch, present, weight)
        held = self.held.copy()
        held[renewed] = batch.rows(row[renewed])
        return replace(
            self,
            seen=self.seen + float(table.n_rows if weight is None else weight.sum()),
            labels=batch.labels,
            held=held,
            due=due,
            draws=draws,
            few=few,
        )

    def _renewals(
        self, n_rows: int, weight: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the row that each place ends up with (-1: its old one), and its new state.

        Rows lie end to end on an axis of weight. A place renewed by a row that ends at e is next
        renewed at e / U, with U uniform in (0, 1): no earlier than m with probability e / m.
        """
        due, draws = self.due.copy(), self.draws.copy()
        row = np.full(len(due), -1, np.int64)
        ends = None if weight is None else self.seen + np.cumsum(weight)
        last = self.seen + n_rows if ends is None else ends[-1]
        hit = np.flatnonzero(due < last)
        while len(hit):
            if ends is None:
                row[hit] = (due[hit] - self.seen).astype(np.int64)
                end = self.seen + row[hit] + 1
            else:
                row[hit] = np.searchsorted(ends, due[hit], side="right")
                end = ends[row[hit]]
            draws[hit] += 1
            due[hit] = end / uniform(self.seed, hit, draws[hit])
            hit = hit[due[hit] < last]
        return row, due, draws

    def _few_after(
        self, batch: Batch, rows: np.ndarray, weight: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """Return the distinct rows after some more, and their weights; None if too many."""
        if self.few is None:
            return None
        codes = np.vstack([self.few[0], batch.rows(rows)])
        first, inverse = distinct_rows(list(codes.T))
        if len(first) > most_distinct(len(self.held) // 2):
            return None
        own = np.ones(len(rows)) if weight is None else weight[rows]
        return codes[first], np.bincount(inverse, np.concatenate([self.few[1], own]), len(first))

    # -- reading ---------------------------------------------------------------------------

    def pairs(self, counts: Counts) -> Pairs:
        """Return the pairs in the codes of counts of the same rows."""
        classes = counts.classes or ()
        places = [
            positions(known, mine)
            for known, mine in zip((*counts.labels, classes), self.labels, strict=True)
        ]
        rows = self.held if self.few is None else self.few[0]
        codes = np.stack([place[rows[:, a]] for a, place in enumerate(places)], axis=1)
        if self.few is None:
            left, right = codes[0::2], codes[1::2]
            weight = np.ones(len(left))
        else:
            order = np.lexsort(codes.T[::-1])  # by values, not by arrival
            i, j = np.triu_indices(len(codes))
            left, right = codes[order][i], codes[order][j]
            share = self.few[1][order] / self.seen
            weight = share[i] * share[j] * np.where(i == j, 1, 2)
        relation = np.where(left[:, -1] == right[:, -1], 1.0, -1.0)
        return Pairs(left[:, :-1], right[:, :-1], relation, balanced(relation, weight))


def balanced(relation: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return weights of sum one half over each relation; all zero if one of them is absent."""
    same = weight @ (relation > 0)
    other = weight @ (relation < 0)
    if not (same > 0 and other > 0):
        return np.zeros(len(weight))
    return weight / np.where(relation > 0, 2 * same, 2 * other)


def most_distinct(n_pairs: int) -> int:
    """Return the number of rows whose pairs, each with itself included, are at most so many."""
    return int((np.sqrt(8 * n_pairs + 1) - 1) // 2)


def uniform(seed: int, place: np.ndarray, draw: np.ndarray) -> np.ndarray:
    """Return a number in (0, 1) that is a function of its arguments alone."""
    key = (place.astype(np.uint64) << np.uint64(20)) + draw.astype(np.uint64)
    mixed = _mix(_mix(key) ^ _mix(np.full(1, seed, np.uint64)))
    return (mixed >> np.uint64(11)) * 2.0**-53 + 2.0**-54


def _mix(x: np.ndarray) -> np.ndarray:
    """Splitmix64: an integer in, one that looks random out."""
    x = (x + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
