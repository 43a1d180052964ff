"""HELIC: metric learning on hierarchical, heterogeneous couplings [Zhu 2019, ch. 6].

Learns from classes how much each coupling of each column should count, so that rows of one class
come close and others move away. Rows are seen once: counts give the couplings, a bounded sample of
pairs of rows gives what to learn from, and the cost of learning does not depend on their number.

A pair of rows is a handful of pairs of values, and few of those are distinct: a squared distance is
looked up, ``d = M T ω``, M saying which pairs of values each pair of rows consists of and T
the squared distance of each pair of values in each block. The residuals of all pairs of rows are
first added up per pair of values, ``A = Mᵀ residual``, so that the gradient is ``TᵀA``. The matrix
of pairs × features, which the paper works on, is never formed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, cast

import numpy as np
from scipy import sparse
from scipy.optimize import minimize

from tabweave._compat import Interval, StrOptions, in_threads, seed_of
from tabweave.columns.nominal import Codes
from tabweave.columns.table import Table, distinct_rows
from tabweave.columns.vocabulary import Label, positions, union
from tabweave.counts import couplings
from tabweave.counts.counts import Counts
from tabweave.counts.couplings import Factors, check_no_sets, named_weights
from tabweave.embed.base import RowEmbedder, ValueEmbedder
from tabweave.embed.register import embedder
from tabweave.io.register import storable
from tabweave.space.value_tables import ValueTables, gram_factor

LINEAR = couplings.kernel_family((), (1,))


@embedder("helic", "couplings with weights learned from classes", "Zhu 2019, ch. 6", needs_y=True)
class HELIC(RowEmbedder):
    """Embed categorical rows by couplings whose weights are learned from classes.

    Parameters
    ----------
    variant : {"helic", "balanced", "linear", "hc"}, default="helic"
        Weights start with values merely equal or not, as in one-hot, or, ``"balanced"``, with all
        spaces of a column alike. ``"linear"`` sees couplings through linear kernels only; ``"hc"``
        learns no weights and puts the coupling spaces side by side (Section 6.4.4).
    pull : float, default=0.01
        How strongly weights are pulled to where they start; ``inf`` leaves them there. Choose it
        with ``variant`` by cross-validation, see ``docs/systems/helic.md``.
    n_pairs : int, default=20000
        Number of pairs of rows to learn from; all pairs of distinct rows if they are no more.
    max_iter : int, default=200
        Most steps of the solver, which is done after some 20.
    random_state : int, RandomState or None, default=None
        Seed of the sample of pairs.
    schema, unknown, dtype
        As in :class:`~tabweave.OneHot`.

    Attributes
    ----------
    weights_ : dict of str to dict
        For each column, the weight of each ``space/kernel``, and of each value as itself
        (``identity/value``); at the start those of a column's spaces add up to 1.
    threshold_ : float
        The squared distance b that divides pairs of one class from others.
    objective_ : list of float
        The objective at the start and after each step.
    n_iter_ : int
        Number of steps noted in ``objective_``, at least 1.
    pairs_ : RowPairs
        The pairs learned from: values of both rows, relation and weight.
    landmarks_ : dict of str to int
        The columns with more than 512 values, and how many landmarks they have; one weight each.
    tables_ : ValueTables
        The representation.
    counts_, numbers_, space_, schema_
        As in :class:`~tabweave.OneHot`.

    Notes
    -----
    ``d_ij = Σ ω_l (φ_il - φ_jl)²`` (6.17), over 11 Gaussians and 3 polynomials of each space. Each
    is scaled so that the mean distance of two rows is the column's Gini index ``1 - Σf²`` over the
    sum of those of all columns, and
    ω ≥ 0, b minimise ``½ Σ p_ij [1 + r_ij (d_ij - b)]₊² + (μ/2) Σ s_l (ω_l - ω⁰_l)²``.

    *Errata.* The penalty λ‖ω‖₁ of Eq. (6.19) shrinks ω to 0 and 1000 steps of 10⁻³ move a weight by
    1 at most (:class:`tabweave.papers.HELIC` has both); a kernel matrix has one weight here, not
    one per column.

    With one class alone there is nothing to learn and weights stay where they start.
    Where there are more pairs than ``n_pairs``, they are drawn by the rows' positions: another
    order of the rows is another sample, as another seed is.

    Examples
    --------
    >>> from tabweave import HELIC
    >>> from tabweave.datasets import led24
    >>> digits = led24(500, random_state=0)
    >>> helic = HELIC(random_state=0).fit(digits.X, digits.y)
    >>> total = {name: sum(w.values()) for name, w in helic.weights_.items()}
    >>> min(total[f"x{i}"] for i in range(7)) > max(total[f"x{i}"] for i in range(7, 24))
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **ValueEmbedder._parameter_constraints,
        "variant": [StrOptions({"helic", "balanced", "linear", "hc"})],
        "pull": [Interval(Real, 0, np.inf, closed="both")],
        "n_pairs": [Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        variant: Literal["helic", "balanced", "linear", "hc"] = "helic",
        *,
        pull: float = 0.01,
        n_pairs: int = 20_000,
        max_iter: int = 200,
        random_state: Any = None,
        schema: Any = None,
        unknown: str = "centroid",
        dtype: str = "float64",
    ) -> None:
        self.variant = variant
        self.pull = pull
        self.n_pairs = n_pairs
        self.max_iter = max_iter
        self.random_state = random_state
        super().__init__(schema=schema, unknown=unknown, dtype=dtype)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    def _rows_needed_for(self) -> str:
        learning = "learns from pairs of rows and their classes"
        return "" if self.variant == "hc" else f"{learning}, unlike variant='hc'"

    def _digested(self, digest: Any, table: Table, y: Any, weight: Any, counts: Counts) -> Any:
        check_no_sets(counts, "HELIC")
        if digest is None:
            seed = seed_of(self.random_state)
            digest = PairSample.empty(len(table.schema), int(self.n_pairs), seed)
        return digest.add(table, y, weight)

    # -- learning --------------------------------------------------------------------------

    def _learn(self, counts: Counts) -> ValueTables:
        if counts.class_pairs is None:
            raise ValueError("HELIC needs classes; count the rows with y")
        check_no_sets(counts, "HELIC")
        self.landmarks_ = {
            name: couplings.MAX_LANDMARKS
            for name, size in zip(counts.names, counts.sizes, strict=True)
            if size > couplings.MAX_LANDMARKS
        }
        self.n_iter_ = 1
        if self.variant == "hc":
            return self._side_by_side(counts)
        self.pairs_ = self._row_digest.pairs(counts)
        tables = self._weighted(counts)
        self.n_iter_ = max(len(self.objective_) - 1, 1)
        return tables

    def _weighted(self, counts: Counts) -> ValueTables:
        max_kept_entries = 1 << 20  # of a column; larger blocks are built twice
        columns = range(len(counts.names))
        kept: dict[int, list[WeightedBlock]] = {}

        def measured(a: int) -> tuple[ValuePairs, np.ndarray, list[tuple[str, float, float]]]:
            """The pairs of values of a column, their distances, and what weights begin with."""
            blocks = self._blocks(counts, a)
            if len(blocks) == 1 or sum(b.rows.size for b in blocks) <= max_kept_entries:
                kept[a] = blocks
            pairs = ValuePairs.of(self.pairs_, a, int(counts.sizes[a]))
            table = distance_table(blocks, pairs.first, pairs.second)
            return pairs, table, [(b.name, b.start, b.stiffness) for b in blocks]

        pairs, tables, starts = zip(*in_threads(measured, columns), strict=True)
        objective = Objective(
            Distances.of(pairs, tables),
            self.pairs_,
            np.array([start for column in starts for _, start, _ in column]),
            np.array([stiffness for column in starts for *_, stiffness in column]),
            float(self.pull),
        )
        omega, self.threshold_, self.objective_ = minimise(objective, int(self.max_iter))
        weights = np.split(omega, np.cumsum(list(map(len, starts)))[:-1])
        names = [[name for name, *_ in column] for column in starts]
        self.weights_ = named_weights(counts, names, weights)

        def weighted(a: int) -> Any:
            blocks = kept.get(a) or self._blocks(counts, a)
            return weighted_table(blocks, weights[a], int(counts.sizes[a]))

        return ValueTables.from_features(in_threads(weighted, columns), counts)

    def _side_by_side(self, counts: Counts) -> ValueTables:
        tables, names = [], []
        for a in range(len(counts.names)):
            landmark_ids = couplings.landmarks(counts, a, couplings.MAX_LANDMARKS)
            blocks = list(couplings.kernel_blocks(coupling_spaces(counts, a), LINEAR, landmark_ids))
            tables.append(couplings.factor(np.sum([b.gram for b in blocks], axis=0), landmark_ids))
            names.append([f"{b.space}/{b.kernel}" for b in blocks])
        self.weights_ = named_weights(counts, names, [np.ones(len(n)) for n in names])
        return ValueTables.from_features(tables, counts)

    def _blocks(self, counts: Counts, column: int) -> list[WeightedBlock]:
        return column_blocks(counts, column, self._kernels(), self.variant == "balanced")

    def _kernels(self) -> dict[str, couplings.Kernel]:
        return LINEAR if self.variant == "linear" else couplings.kernel_family()


# -- what each weight of a column multiplies ---------------------------------------------------


@dataclass(frozen=True)
class WeightedBlock:
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
    own : ndarray, optional
        Of rows: what each value has of its own, see :class:`~tabweave.counts.couplings.Factors`.
    """

    name: str
    rows: np.ndarray
    start: float
    stiffness: float
    own: np.ndarray | None = None

    def squared(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """Eq. (6.11): the squared distances of pairs of values."""
        if self.own is not None:
            shared = ((self.rows[first] - self.rows[second]) ** 2).sum(axis=1)
            return shared + np.where(first == second, 0, self.own[first] + self.own[second])
        norms = np.diagonal(self.rows)
        return np.maximum(norms[first] + norms[second] - 2 * self.rows[first, second], 0)


def coupling_spaces(counts: Counts, column: int) -> dict[str, couplings.Points]:
    """Eqs. (6.2), (6.5), (6.8): intra-attribute, inter-attribute and attribute-class couplings."""
    spaces = {"intra": couplings.intra(counts, column)}
    if len(counts.names) > 1:
        spaces["inter"] = couplings.inter(counts, column)
    if counts.class_pairs is not None:
        spaces["class"] = couplings.by_class(counts, column)
    return spaces


def column_blocks(
    counts: Counts,
    column: int,
    kernels: dict[str, couplings.Kernel],
    balanced: bool,
    *,
    max_weighted_values: int = 64,
) -> list[WeightedBlock]:
    """Blocks of a column; a column with one value has none.

    The starting weight 1 of a column goes to the identity, or, if ``balanced``, is shared equally
    by its spaces, and within a space by its kernels.
    """
    frequencies = counts.frequencies
    f = frequencies[column]
    gini = 1 - f @ f
    if gini <= couplings.NEGLIGIBLE_INERTIA:
        return []
    mean = gini / sum(1 - values @ values for values in frequencies)
    landmark_ids = couplings.landmarks(counts, column, couplings.MAX_LANDMARKS)
    if len(landmark_ids) < len(f):
        factors = _mean_factors(counts, column, kernels, landmark_ids).scaled(mean)
        return [WeightedBlock("mean", factors.common, 1.0, mean, factors.own)]
    unit_blocks = list(_unit_blocks(counts, column, kernels, landmark_ids))
    n_kernels = Counter(block.space for block in unit_blocks)
    out: list[WeightedBlock] = []
    for block in unit_blocks:
        share = 1 / (len(n_kernels) * n_kernels[block.space])
        first = share if balanced else float(block.space == "identity")
        if block.space == "identity" and len(f) <= max_weighted_values:
            out += _own_blocks(counts, column, mean / gini, first, share)
        else:
            name = f"{block.space}/{block.kernel}"
            out.append(WeightedBlock(name, block.gram * mean, first, mean / share))
    return out


def _own_blocks(
    counts: Counts, column: int, unit: float, start: float, share: float
) -> Iterator[WeightedBlock]:
    """Yield the identity value by value: how much it matters to have this very value or not.

    Two rows differ in it with probability 2f(1 - f); over all values that adds up to 2 Gini.
    """
    f = counts.frequencies[column]
    for v, label in enumerate(counts.labels[column]):
        gram = np.zeros((len(f), len(f)))
        gram[v, v] = unit / 2
        yield WeightedBlock(f"identity/{label!s}", gram, start, unit * f[v] * (1 - f[v]) / share)


def _unit_blocks(
    counts: Counts, column: int, kernels: dict[str, couplings.Kernel], landmark_ids: np.ndarray
) -> Iterator[couplings.KernelBlock]:
    """Eq. (6.10): yield the kernels in which values differ, rows at mean squared distance 1."""
    f = counts.frequencies[column]
    spaces = coupling_spaces(counts, column)
    identity = couplings.identity_block(len(f), landmark_ids)
    for block in chain([identity], couplings.kernel_blocks(spaces, kernels, landmark_ids)):
        distance = 2 * block.inertia(f, landmark_ids)
        if distance > couplings.NEGLIGIBLE_INERTIA:
            yield couplings.KernelBlock(
                block.space, block.kernel, block.gram / distance, block.diagonal / distance
            )


def _mean_factors(
    counts: Counts, column: int, kernels: dict[str, couplings.Kernel], landmark_ids: np.ndarray
) -> Factors:
    """Balanced mean of a column's kernels, seen through landmarks."""
    f = counts.frequencies[column]
    sums: dict[str, list[Any]] = {}
    for block in _unit_blocks(counts, column, kernels, landmark_ids):
        total = sums.setdefault(block.space, [0.0, 0.0, 0])
        sums[block.space] = [total[0] + block.gram, total[1] + block.diagonal, total[2] + 1]
    sums.pop("identity", None)
    spaces = len(sums) + 1
    none = np.zeros((len(f), len(landmark_ids))), np.zeros(len(f))
    gram, diagonal = (sum((t[i] / t[2] for t in sums.values()), none[i]) / spaces for i in (0, 1))
    identity = 1 / (2 * (1 - f @ f)) / spaces  # rows at a mean squared distance of 1
    return Factors.of(gram, diagonal, identity, landmark_ids).bounded(f)


def distance_table(
    blocks: list[WeightedBlock], first: np.ndarray, second: np.ndarray
) -> np.ndarray:
    """Eq. (6.11): the squared distance of each pair of values in each block."""
    columns = [block.squared(first, second) for block in blocks]
    return np.array(columns).reshape(len(blocks), len(first)).T


def weighted_table(
    blocks: list[WeightedBlock], weights: np.ndarray, n_values: int
) -> np.ndarray | Factors:
    """Eq. (6.18): rows of values whose squared distances are ``Σ ω_p d_p``, Eq. (6.13)."""
    if not blocks:
        return np.zeros((n_values, 0))
    if blocks[0].own is not None:
        return Factors(blocks[0].rows, blocks[0].own).scaled(float(weights[0]))
    gram = np.zeros((n_values, n_values))
    for block, weight in zip(blocks, weights, strict=True):
        gram += weight * block.rows
    return gram_factor(gram)[0]


# -- what the weights minimise ------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ValuePairs:
    """The distinct pairs of unlike values of one column that a sample of pairs of rows holds."""

    first: np.ndarray
    second: np.ndarray
    met: Any  # csr_array (pairs of rows, pairs of values): which one each pair of rows has

    @classmethod
    def of(cls, pairs: RowPairs, column: int, n_values: int) -> ValuePairs:
        """Collect the pairs of values of pairs of rows; equal values are at distance 0."""
        left, right = pairs.left[:, column], pairs.right[:, column]
        low, high = np.minimum(left, right), np.maximum(left, right)
        unlike = np.flatnonzero(low != high)
        keys, index = np.unique(
            low[unlike].astype(np.int64) * n_values + high[unlike], return_inverse=True
        )
        pair_counts = sparse.csr_array(
            (np.ones(len(unlike)), (unlike, index)), shape=(len(left), len(keys))
        )
        return cls(keys // max(n_values, 1), keys % max(n_values, 1), pair_counts)


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
        """``Σ_ij residual_ij k_ijl`` for each weight, through sums per pair of values."""
        mass = np.split(self.met.T @ residual, np.cumsum([len(t) for t in self.tables])[:-1])
        return np.concatenate([t.T @ m for t, m in zip(self.tables, mass, strict=True)])


@dataclass(frozen=True, eq=False)
class Objective:
    """``½ Σ p_ij [1 + r_ij (d_ij - b)]₊² + (μ/2) Σ s_l (ω_l - ω⁰_l)²``, convex in ω and b.

    Eq. (6.19) with the hinge squared, so that it is smooth, and with a pull towards the starting
    weights in place of λ‖ω‖₁, which pulls towards 0. Called with (ω, b) it returns its value and
    gradient.
    """

    distances: Distances
    pairs: RowPairs
    start: np.ndarray
    stiffness: np.ndarray
    pull: float

    def __call__(self, point: np.ndarray) -> tuple[float, np.ndarray]:
        """Value and gradient at (ω, b)."""
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


# -- pairs of rows to learn from: batches of rows in, a bounded, uniform sample of pairs out -------
#
# A pair is two independent draws, each kept by a reservoir of one row: a slot. When a slot is
# renewed depends on its seed and on how much weight has come by, not on how the rows were cut into
# batches. While the pairs of all distinct rows are few, they are all used and chance has no part.


@storable
@dataclass(frozen=True, eq=False)
class RowPairs:
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


@storable
@dataclass(frozen=True, eq=False)
class PairSample:
    """What HELIC keeps of the rows it has seen: never more than two rows a pair.

    Rows are held as codes, the class last, of labels in order of first appearance.
    """

    seed: int
    seen: float
    labels: tuple[tuple[Label, ...], ...]
    held: np.ndarray  # (slots, columns + 1): the row in each slot
    due: np.ndarray  # (slots,): how much weight will have been seen when it is renewed
    draws: np.ndarray  # (slots,): how often it was
    few: tuple[np.ndarray, np.ndarray] | None  # distinct rows and weights, unless too many

    @classmethod
    def empty(cls, n_columns: int, n_pairs: int, seed: int) -> PairSample:
        """A sample that has seen no row."""
        n_slots = 2 * n_pairs
        return cls(
            seed=seed,
            seen=0.0,
            labels=((),) * (n_columns + 1),
            held=np.zeros((n_slots, n_columns + 1), np.int32),
            due=np.zeros(n_slots),
            draws=np.zeros(n_slots, np.int64),
            few=(np.zeros((0, n_columns + 1), np.int32), np.zeros(0)),
        )

    def add(self, table: Table, y: Any, weight: np.ndarray | None) -> PairSample:
        """Sample after more rows; weights as :class:`~tabweave.Counts` takes them."""
        row, due, draws = self._renewals(table.n_rows, weight)
        renewed = np.flatnonzero(row >= 0)
        present = np.arange(table.n_rows) if weight is None else np.flatnonzero(weight)
        columns = [cast(Codes, column) for _, column in table]
        columns.append(Table.of({"y": y}, {"y": "nominal"})["y"])
        labels = tuple(
            tuple(union(old, column.labels))
            for old, column in zip(self.labels, columns, strict=True)
        )
        index = [
            positions(known_labels, c.labels)
            for known_labels, c in zip(labels, columns, strict=True)
        ]

        def codes_of(rows: np.ndarray) -> np.ndarray:
            codes = [i[c.codes[rows]] for i, c in zip(index, columns, strict=True)]
            return np.stack(codes, axis=1).astype(np.int32)

        # A look at the first rows mostly decides whether few are distinct.
        first = present[: 4 * most_distinct(len(self.held) // 2)]
        few = self._few_after(codes_of(first), weight, first)
        if few is not None and len(present) > len(first):
            few = self._few_after(codes_of(present), weight, present)
        held = self.held.copy()
        held[renewed] = codes_of(row[renewed])
        return replace(
            self,
            seen=self.seen + float(table.n_rows if weight is None else weight.sum()),
            labels=labels,
            held=held,
            due=due,
            draws=draws,
            few=few,
        )

    def _renewals(
        self, n_rows: int, weight: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Row that each slot ends up with (-1: its old one), and its new state.

        Rows lie end to end on an axis of weight. A slot renewed by a row that ends at e is next
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
        self, codes: np.ndarray, weight: np.ndarray | None, rows: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """Distinct rows after some more, and their weights; None if too many."""
        if self.few is None:
            return None
        codes = np.vstack([self.few[0], codes])
        first, inverse = distinct_rows(list(codes.T))
        if len(first) > most_distinct(len(self.held) // 2):
            return None
        weights = np.ones(len(rows)) if weight is None else weight[rows]
        return codes[first], np.bincount(
            inverse, np.concatenate([self.few[1], weights]), len(first)
        )

    # -- reading ---------------------------------------------------------------------------

    def pairs(self, counts: Counts) -> RowPairs:
        """Pairs in the codes of counts of the same rows."""
        classes = counts.classes or ()
        index = [
            positions(new_labels, old_labels)
            for new_labels, old_labels in zip((*counts.labels, classes), self.labels, strict=True)
        ]
        rows = self.held if self.few is None else self.few[0]
        codes = np.stack([column_index[rows[:, a]] for a, column_index in enumerate(index)], axis=1)
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
        return RowPairs(left[:, :-1], right[:, :-1], relation, balanced(relation, weight))


def balanced(relation: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Weights of sum one half over each relation; all zero if one of them is absent."""
    same = weight @ (relation > 0)
    other = weight @ (relation < 0)
    if not (same > 0 and other > 0):
        return np.zeros(len(weight))
    return weight / np.where(relation > 0, 2 * same, 2 * other)


def most_distinct(n_pairs: int) -> int:
    """Number of rows whose pairs, each with itself included, are at most so many."""
    return int((np.sqrt(8 * n_pairs + 1) - 1) // 2)


def uniform(seed: int, slot: np.ndarray, draw: np.ndarray) -> np.ndarray:
    """A number in (0, 1) that is a function of its arguments alone."""
    key = (slot.astype(np.uint64) << np.uint64(20)) + draw.astype(np.uint64)
    mixed = _mix(_mix(key) ^ _mix(np.full(1, seed, np.uint64)))
    return (mixed >> np.uint64(11)) * 2.0**-53 + 2.0**-54


def _mix(x: np.ndarray) -> np.ndarray:
    """Splitmix64: an integer in, one that looks random out."""
    x = (x + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
