"""Embedders of categories as published: value measures, UNTIE, HELIC, UNICORN, Non-BEND.

All are of one thesis [Zhu 2019].
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
from scipy import sparse
from scipy.linalg import block_diag
from scipy.optimize import linprog

from tabweave._compat import Interval, StrOptions, seed_of
from tabweave.columns.vocabulary import canonical, positions
from tabweave.counts import couplings
from tabweave.counts.counts import Counts
from tabweave.counts.couplings import check_no_sets, chosen_kernels, named_weights
from tabweave.counts.merging import expand
from tabweave.counts.spectra import responses
from tabweave.embed import ckml, helic, nonbend, unicorn, value_metric
from tabweave.embed.base import ValueEmbedder
from tabweave.embed.helic import RowPairs, ValuePairs, coupling_spaces
from tabweave.embed.nonbend import (
    VI,
    DistinctRowEmbedder,
    Fit,
    Gibbs,
    Passes,
    Prior,
    WeightedRows,
    add_assigned,
    assign,
    embedding_grams,
    stick_expectations,
    value_expectations,
    value_probabilities,
)
from tabweave.embed.weave import check_clusters
from tabweave.engines.reading import read_pair
from tabweave.io.register import storable
from tabweave.measures.coupled import KERNELS
from tabweave.measures.frequency import on_match
from tabweave.space.space import Space
from tabweave.space.value_tables import Dissimilarities, ValueTables, lookup_sum

# -- Value measures and cKML as published: tables of values whose distances no vectors have -------
#
# :class:`tabweave.ValueMetric` makes dissimilarities of the similarities of [Boriah 2008; Zhu 2019,
# ch. 2]; here they are 1 − S, also on the diagonal, so that a row may differ from itself.
# :class:`tabweave.CKML` is a metric; here [Zhu 2019, ch. 4] keeps its negative eigenvalues.


@storable
class ValueMetric(value_metric.ValueMetric):
    """Compare rows by the sum over columns of 1 − S, S the similarity that was published.

    ``pairwise_distances``, ``value_distances`` and ``explain`` give these numbers: of
    ``rough``, ``goodall1`` to ``goodall4``, ``gambaryan`` and ``cos_intra`` they are not 0 between
    equal rows, of ``smirnov`` they can be negative. The vectors are those of 1 − S with a diagonal
    of 0. Measures that were published as distances, or whose matches are worth 1, are the same as
    in :class:`tabweave.ValueMetric`.

    Parameters
    ----------
    measure, unknown, dtype
        As in :class:`tabweave.ValueMetric`.
    schema : Schema, mapping of column to kind, or kind, default="nominal"
        The kinds of the columns; by default all are categories.

    Attributes
    ----------
    counts_, measure_, dissimilarities_, tables_, numbers_, distortion_, total_distortion_
    space_, schema_
        As in :class:`tabweave.ValueMetric`.

    Notes
    -----
    *Errata.* (2.5), (2.7): a row is at a distance from itself, the larger the more common its
    values are (2.5), or the rarer (2.7). The thesis's tables are met by these numbers nevertheless.

    *Deviations.* ``dilca`` conditions on the values of the context, as Ienco et al. do, where
    (2.22) prints the other way round. (2.10), a maximum over subsets, is computed as half the L1
    distance, which it equals. A missing cell is a value of its own.

    Examples
    --------
    >>> from tabweave import papers
    >>> rows = {"color": ["red", "blue", "red", "red"]}
    >>> papers.ValueMetric("rough").fit(rows).value_distances("color").round(2)
    color  blue   red
    color
    blue    0.0  1.00
    red     1.0  0.67
    """

    def __init__(
        self,
        measure: Any = "hamming",
        *,
        schema: Any = "nominal",
        unknown: str = "centroid",
        dtype: str = "float64",
    ) -> None:
        super().__init__(measure, schema=schema, unknown=unknown, dtype=dtype)

    def _learn(self, counts: Counts) -> None:
        self._counted = self._counted.where_missing_is_a_value()
        super()._learn(counts)
        similarity = self.measure_.similarity
        if similarity is not None:
            self.dissimilarities_ = [1 - s for s in similarity(self._compared)]
            zeroed = [np.maximum(on_match(0.0, d), 0.0) for d in self.dissimilarities_]
            self._scaling = value_metric.Scaling(zeroed, self._compared, [])

    def pairwise_distances(self, X: Any, Y: Any = None) -> np.ndarray:
        """Sums of 1 − S between the rows of X and of Y (or X)."""
        if self.learn().measure_.form != "table":
            return super().pairwise_distances(X, Y)
        left, right = read_pair(self, X, Y)
        codes = value_metric.value_codes(self, left)
        others = codes if right is None else value_metric.value_codes(self, right)
        return lookup_sum(codes, others, value_metric.value_lookups(self)[0])


@storable
class CKML(ckml.CKML):
    """Compare rows by the coupled kernel metric, its negative eigenvalues included.

    ``pairwise_distances``, ``value_distances`` and ``explain`` give the published numbers,
    Eq. (4.5); ``transform`` and ``pairwise_kernel`` the nearest that vectors can have, see
    ``distortion_``. Set-valued columns are an error.

    Parameters
    ----------
    variant, kernel, context, schema, unknown, dtype
        As in :class:`tabweave.CKML`; by default all columns are categories.

    Attributes
    ----------
    alpha_, beta_, psd_clip_, squares_, distortion_, counts_, tables_, numbers_, space_, schema_
        As in :class:`tabweave.CKML`.

    Notes
    -----
    *Errata.* Theorem 4.2: ``exp(-z²)`` with the L1-like z of k_Ie is not a kernel. Proposition 4.2:
    on the same rows the distance violates the triangle inequality. After (4.5) the range
    ``√(2 - 2/e)`` holds for k_Ia alone; for k_O it is ``√(2 - 2/e²)``. Section 4.2.3: a column that
    is coupled to no other has k_Ie = 1/e for all pairs, also for a value with itself, and so
    differs by frequency alone; under ``"inter"`` not at all.

    *Deviations.* Columns that repeat others leave the context of a column one after another, in
    the order that ``context`` says, where section 4.2.3 sets α to 0 as soon as any one column is
    nearer to both. A missing cell is a value of its own.

    Examples
    --------
    >>> from tabweave import papers
    >>> rows = {"x": list("vvwuu"), "y": list("aaabc")}
    >>> d = papers.CKML("inter").fit(rows).value_distances("x")
    >>> bool(d.loc["v", "u"] > d.loc["v", "w"] + d.loc["w", "u"])
    True
    """

    def __init__(
        self,
        variant: ckml.Variant = "object",
        *,
        kernel: str = "gaussian",
        context: ckml.Order = "relevance",
        schema: Any = "nominal",
        unknown: str = "centroid",
        dtype: str = "float64",
    ) -> None:
        options: dict[str, Any] = {"schema": schema, "unknown": unknown, "dtype": dtype}
        super().__init__(variant, kernel=kernel, context=context, **options)

    def _uncoupled_match(self) -> float:
        return float(KERNELS[self.kernel](1.0))

    def _learn(self, counts: Counts) -> ValueTables:
        self._counted = self._counted.where_missing_is_a_value()
        check_no_sets(counts, "CKML as published")
        return super()._learn(counts)

    @property
    def space_(self) -> Space:
        """Eq. (4.5): squared distances of values, and the vectors nearest to them."""
        if self.numbers_ is not None:
            return super().space_
        vocabulary = self._counted.coupled(self.counts_).vocabulary
        return Dissimilarities(
            vocabulary, lambda: list(self.squares_), lambda: self.tables_, root=True
        )


# -- UNTIE as published [Zhu 2019, ch. 7]: Eq. (7.22), whose minimum is ω = 0 ---------------------
#
# Counts and raw kernel columns in, their weights and the falling objective out. For comparison with
# :class:`tabweave.UNTIE`, which says what is wrong with it.

BOUNDED = couplings.kernel_family(degrees=()) | {
    f"poly{d}": partial(couplings.bounded_polynomial, degree=d) for d in couplings.DEGREES
}


def family_of(kernels: Mapping[str, couplings.Kernel] | None) -> dict[str, couplings.Kernel]:
    """The kernels that were given, or those of Section 6.2.3, polynomials scaled to 1 at most."""
    return dict(BOUNDED) if kernels is None else chosen_kernels(kernels)


@storable
class UNTIE(DistinctRowEmbedder):
    """Embed categorical rows by kernel columns, weighted as Algorithm 3 does.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters that the weights should bring out.
    kernels : mapping of name to kernel, optional
        By default 11 Gaussians and 3 polynomials, the latter scaled to 1 at most: those of raw
        inner products drown all others.
    batch_size : int or None, default=20
        Rows that each step of Adam looks at, drawn anew; ``None`` takes exact gradients over all
        of them, from counts alone.
    max_iter : int, default=50
        At most so many alternations, of 20 steps of Adam each: 1000 steps. Over batches it stops
        when an alternation changes the mean loss by 1 % at most.
    random_state : int, RandomState or None, default=None
        Seed of the batches.
    schema, unknown, dtype
        As in :class:`~tabweave.OneHot`; by default all columns are categories.

    Attributes
    ----------
    weights_ : dict of str to dict
        For each column, the weight of each ``space/kernel``, summed over the kernel's columns.
    objective_ : list of float
        The objective of each alternation: over all rows, where it never rises, or the mean over
        its batches.
    n_iter_ : int
        Number of alternations.
    landmarks_ : dict
        Empty: a column with many values is an error, it would have 28 V² features.
    tables_ : ValueTables
        The representation, Eq. (7.23).
    counts_, numbers_, space_, schema_
        As in :class:`~tabweave.OneHot`.

    Notes
    -----
    *Erratum.* ``tr(S(I - HHᵀ))``, Eq. (7.22), is smallest at ω = 0: its gradient in ω is the
    inertia that H leaves unexplained, never negative, and the objective scales with ω. Adam from
    ω = 1 walks that way until its steps run out. There is no identity space: on tables with uniform
    frequencies all rows fall together. In batches H has the eigenvectors of 20 rows, which explain
    most of them whatever the weights: these go to 0 together, and after 1000 steps of 10⁻³ only
    those of rare values are left. When to stop (δ of Algorithm 3, which is not printed) decides.

    *Deviations.* Polynomials are scaled to 1 at most. Each batch has eigenvectors of its own S,
    where Algorithm 3 has those of all rows (``batch_size=None``, without batches). δ is not
    printed: learning stops when 20 steps change the mean loss by 1 % at most. (7.13) is taken, not
    (7.10), with which it disagrees. A missing cell is a value of its own.

    Examples
    --------
    >>> from tabweave import papers
    >>> from tabweave.datasets import led24
    >>> digits = led24(200, random_state=0)
    >>> untie = papers.UNTIE(n_clusters=10, max_iter=20, random_state=0).fit(digits.X)
    >>> untie.objective_[-1] < untie.objective_[0]
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **ValueEmbedder._parameter_constraints,
        "n_clusters": [Interval(Integral, 2, None, closed="left")],
        "kernels": [Mapping, None],
        "batch_size": [Interval(Integral, 2, None, closed="left"), None],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        batch_size: int | None = 20,
        max_iter: int = 50,
        kernels: Any = None,
        random_state: Any = None,
        schema: Any = "nominal",
        unknown: str = "centroid",
        dtype: str = "float64",
    ) -> None:
        self.n_clusters = n_clusters
        self.batch_size = batch_size
        self.max_iter = max_iter
        self.kernels = kernels
        self.random_state = random_state
        super().__init__(schema=schema, unknown=unknown, dtype=dtype)

    def _rows_needed_for(self) -> str:
        return "draws batches of rows" if self.batch_size is not None else ""

    def _learn(self, counts: Counts) -> ValueTables:
        self._counted = self._counted.where_missing_is_a_value()
        check_clusters(self.n_clusters, counts)
        self.landmarks_: dict[str, int] = {}
        kernels = family_of(self.kernels)
        columns = [kernel_columns(counts, a, kernels) for a in range(len(counts.names))]
        if self.batch_size is None:
            omegas, self.objective_ = descend_untie(counts, columns, self.n_clusters, self.max_iter)
        else:
            rng = np.random.default_rng(seed_of(self.random_state))
            omegas, self.objective_ = descend_in_batches(
                self._row_digest, columns, self.n_clusters, self.max_iter, int(self.batch_size), rng
            )
        self.n_iter_ = len(self.objective_)
        self.weights_ = weights_of(counts, columns, omegas)
        grams = [c.gram(w) for c, w in zip(columns, omegas, strict=True)]
        return ValueTables.from_grams(grams, counts)


@dataclass(frozen=True)
class KernelColumns:
    """Names of a column's kernels, and their columns side by side: one row per value."""

    names: list[str]
    stack: np.ndarray

    def gram(self, omega: np.ndarray) -> np.ndarray:
        """Eq. (7.14): the inner products of the values under weights of the kernel columns."""
        return (self.stack * omega) @ self.stack.T


def kernel_columns(
    counts: Counts,
    column: int,
    kernels: dict[str, couplings.Kernel],
    *,
    with_classes: bool = False,
) -> KernelColumns:
    """Eqs. (6.15), (7.9), (7.23): raw columns of the kernels of each space, one weight each."""
    n_values = int(counts.sizes[column])
    if n_values > couplings.MAX_LANDMARKS:
        raise ValueError(
            f"column {counts.names[column]!r}: expected at most {couplings.MAX_LANDMARKS} values, "
            f"got {n_values}; the published algorithm weighs each of their kernel columns: leave "
            "the column out, or use tabweave.Weave"
        )
    spaces = coupling_spaces(counts, column)
    if not with_classes:
        spaces.pop("class", None)
    blocks = list(couplings.kernel_blocks(spaces, kernels, np.arange(n_values)))
    names = [f"{b.space}/{b.kernel}" for b in blocks]
    return KernelColumns(names, np.hstack([b.gram for b in blocks]))


def descend_untie(
    counts: Counts,
    columns: list[KernelColumns],
    n_clusters: int,
    max_iter: int,
    *,
    n_steps: int = 20,
) -> tuple[list[np.ndarray], list[float]]:
    """Eq. (7.22) by Algorithm 3: Adam from ω = 1 at 10⁻³, H renewed every 20 steps."""
    edges = np.cumsum([0] + [c.stack.shape[1] for c in columns])
    omega, optimizer = np.ones(edges[-1]), Adam()
    trace: list[float] = []
    for _ in range(max_iter):
        slope = gradient(counts, columns, omega, edges, n_clusters)
        trace.append(float(omega @ slope))
        for _ in range(n_steps):
            omega = optimizer.step(omega, slope)
    return np.split(omega, edges[1:-1]), trace


def descend_in_batches(
    rows: WeightedRows,
    columns: list[KernelColumns],
    n_clusters: int,
    max_iter: int,
    batch_size: int,
    rng: np.random.Generator,
    *,
    n_steps: int = 20,
    tolerance: float = 0.01,
) -> tuple[list[np.ndarray], list[float]]:
    """Section 7.4.1: the same over batches, each with the eigenvectors of its own S."""
    edges = np.cumsum([c.stack.shape[1] for c in columns])
    omega, optimizer = np.ones(edges[-1]), Adam()
    cells, share = rows.cells - rows.offsets[:-1], rows.weight / rows.total
    trace: list[float] = []
    for _ in range(max_iter):
        loss = 0.0
        for _ in range(n_steps):
            batch = cells[rng.choice(len(cells), batch_size, p=share)]
            X = np.hstack([c.stack[batch[:, a]] for a, c in enumerate(columns)])
            _, vectors = np.linalg.eigh((X * omega) @ X.T)
            left = (X**2).sum(axis=0) - ((vectors[:, -n_clusters:].T @ X) ** 2).sum(axis=0)
            slope = np.maximum(left, 0)
            loss += float(omega @ slope)
            omega = optimizer.step(omega, slope)
        trace.append(loss / n_steps)
        if len(trace) > 1 and abs(trace[-2] - trace[-1]) <= tolerance * trace[-2]:
            break
    return np.split(omega, edges[:-1]), trace


def gradient(
    counts: Counts,
    columns: list[KernelColumns],
    omega: np.ndarray,
    edges: np.ndarray,
    n_clusters: int,
) -> np.ndarray:
    """Eq. (7.24): for each feature, the inertia (not centred) that H leaves unexplained."""
    tables = []
    for c, start, stop in zip(columns, edges[:-1], edges[1:], strict=True):
        gram = c.gram(omega[start:stop])
        tables.append(couplings.factor(gram, np.arange(len(gram))))
    response = responses(counts, tables, n_clusters, centred=False)
    out = []
    for a, c in enumerate(columns):
        span = counts.span(a)
        inertia = counts.value_counts[span] @ c.stack**2
        out.append(inertia - ((response[span].T @ c.stack) ** 2).sum(axis=0))
    return np.maximum(np.concatenate(out), 0)


def solve_untie(slope: np.ndarray, total: float = 0.0) -> np.ndarray:
    """Eq. (7.24) by linear programming: ω >= 0 of a given sum, for the gradient of its trace.

    Erratum: the printed problem says nothing of the sum, so it is solved by ω = 0, as no entry of
    the gradient is below 0. With a given sum all of it goes to the one kernel column whose inertia
    H explains best.
    """
    sums = {"A_eq": np.ones((1, len(slope))), "b_eq": [total]} if total else {}
    found = linprog(slope, bounds=(0, None), method="highs", **sums)
    return np.asarray(found.x)


def weights_of(
    counts: Counts, columns: list[KernelColumns], omegas: list[np.ndarray]
) -> dict[str, dict[str, float]]:
    """For each column the weight of each kernel, summed over the kernel's columns."""
    sums = [w.reshape(len(c.names), -1).sum(axis=1) for c, w in zip(columns, omegas, strict=True)]
    return named_weights(counts, [c.names for c in columns], sums)


class Adam:
    """Adam [Kingma and Ba 2015]: the moments of the gradients so far, and the step they ask for.

    The optimizer of all objectives as published, with steps of 10⁻³.

    Parameters
    ----------
    lower : float or ndarray, default=0.0
        The least that each entry may be: weights stay at 0 or above, ``-inf`` leaves one free.

    Examples
    --------
    >>> optimizer, point = Adam(), np.ones(2)
    >>> for _ in range(10):
    ...     point = optimizer.step(point, 2 * point)
    >>> point.round(2)
    array([0.99, 0.99])
    """

    rate = 1e-3
    mean_decay, square_decay = 0.9, 0.999  # how long the moments of the gradient remember

    def __init__(self, lower: float | np.ndarray = 0.0) -> None:
        self.lower = lower
        self.n_steps = 0
        self._mean: np.ndarray | float = 0.0
        self._square: np.ndarray | float = 0.0

    def step(self, point: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        """Next point."""
        self.n_steps += 1
        self._mean = self.mean_decay * self._mean + (1 - self.mean_decay) * gradient
        self._square = self.square_decay * self._square + (1 - self.square_decay) * gradient**2
        mean = self._mean / (1 - self.mean_decay**self.n_steps)
        size = np.sqrt(self._square / (1 - self.square_decay**self.n_steps)) + 1e-8
        return np.maximum(point - self.rate * (mean / size), self.lower)


# -- HELIC as published [Zhu 2019, ch. 6]: Adam on Eq. (6.19), a weight for each kernel column ----


@storable
class HELIC(helic.HELIC):
    """Embed categorical rows by kernel columns whose weights are learned from classes.

    Parameters
    ----------
    kernels : mapping of name to kernel or "linear", optional
        By default 11 Gaussians and 3 polynomials, the latter scaled to 1 at most: those of raw
        inner products drown all others. ``"linear"`` sees couplings through inner products only.
    sparsity : float, optional
        λ of Eq. (6.19); by default 1 / number of kernels, as printed.
    n_pairs : int, default=20000
        Number of pairs of rows to learn from; all pairs of distinct rows if they are no more.
    max_iter : int or None, default=1000
        Most steps of Adam; ``None`` solves Eq. (6.19) by linear programming instead, which takes
        memory for every pair and kernel column: use it on small tables.
    random_state : int, RandomState or None, default=None
        Seed of the sample of pairs and of the batches.
    schema, unknown, dtype
        As in :class:`~tabweave.OneHot`; by default all columns are categories.

    Attributes
    ----------
    weights_ : dict of str to dict
        For each column, the weight of each ``space/kernel``: the mean over the kernel's columns.
    threshold_ : float
        The squared distance b that divides pairs of one class from others.
    objective_ : list of float
        The objective over all pairs, every 50 steps; that of the solution alone.
    n_iter_ : int
        Number of looks at the objective after the first, at least 1.
    pairs_ : RowPairs
        The pairs learned from: values of both rows, relation and weight.
    landmarks_ : dict
        Empty: a column with many values is an error.
    tables_ : ValueTables
        The representation, Eq. (6.18).
    counts_, numbers_, space_, schema_
        As in :class:`~tabweave.OneHot`.

    Notes
    -----
    *Errata.* λ‖ω‖₁ in (6.19) pulls all weights to 0, whatever the kernels' scales, and 1000 steps
    of 10⁻³ move a weight by 1 at most: polynomials of raw inner products of the inter space
    (``kernels=tabweave.counts.couplings.kernel_family()``) are orders of magnitude larger than
    Gaussians and own the distance, so they are bounded, as the printed figures ask for. (6.14)
    prints ``k_p,ij = K_p,i`` for the difference ``K_p,i - K_p,j``; (6.9) calls the attribute-class
    space inter-attribute. Adam starts from ω = 1 and from b at the mean distance, which the thesis
    does not say.

    *Deviations.* Polynomials are scaled to 1 at most. Learned from is a sample of pairs (all, if
    ``n_pairs`` allows), in which pairs of one class and others count half each; print sums over
    all. It stops before 1000 steps if the objective has not fallen at three looks, every 50 steps,
    and keeps the best weights. A missing cell is a value of its own.

    Examples
    --------
    >>> from tabweave import papers
    >>> from tabweave.datasets import monks
    >>> data = monks(3)
    >>> model = papers.HELIC(max_iter=101, random_state=0).fit(data.X, data.y)
    >>> len(model.objective_)
    3
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **ValueEmbedder._parameter_constraints,
        "kernels": [Mapping, StrOptions({"linear"}), None],
        "sparsity": [Interval(Real, 0, None, closed="left"), None],
        "n_pairs": [Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left"), None],
        "random_state": ["random_state"],
    }

    variant = "helic"

    def __init__(
        self,
        kernels: Any = None,
        *,
        sparsity: float | None = None,
        n_pairs: int = 20_000,
        max_iter: int | None = 1000,
        random_state: Any = None,
        schema: Any = "nominal",
        unknown: str = "centroid",
        dtype: str = "float64",
    ) -> None:
        ValueEmbedder.__init__(self, schema=schema, unknown=unknown, dtype=dtype)
        self.kernels = kernels
        self.sparsity = sparsity
        self.n_pairs = n_pairs
        self.max_iter = max_iter  # type: ignore[assignment]
        self.random_state = random_state

    def _kernels(self) -> dict[str, couplings.Kernel]:
        return helic.LINEAR if self.kernels == "linear" else family_of(self.kernels)

    def _weighted(self, counts: Counts) -> ValueTables:
        kernels, columns = self._kernels(), range(len(counts.names))
        stacks = [kernel_columns(counts, a, kernels, with_classes=True) for a in columns]
        names, features = [s.names for s in stacks], [s.stack for s in stacks]
        sparsity = self.sparsity
        if sparsity is None:
            sparsity = 1 / sum(map(len, names))
        if self.max_iter is None:
            solved = solve_helic(features, self.pairs_, float(sparsity))
        else:
            seed, max_iter = self._row_digest.seed, int(self.max_iter)
            solved = descend_helic(features, self.pairs_, float(sparsity), max_iter, seed)
        weights, self.threshold_, self.objective_ = solved
        means = [w.reshape(len(n), -1).mean(axis=1) for w, n in zip(weights, names, strict=True)]
        self.weights_ = named_weights(counts, names, means)
        rows = [np.sqrt(w) * f for f, w in zip(features, weights, strict=True)]  # Eq. (6.18)
        return ValueTables.from_features(rows, counts)

    def _learn(self, counts: Counts) -> ValueTables:
        self._counted = self._counted.where_missing_is_a_value()
        return super()._learn(counts)


def hinge(
    distances: np.ndarray, b: float, omega: np.ndarray, pairs: RowPairs, sparsity: float
) -> float:
    """Eq. (6.19): ``Σ p_ij [1 + r_ij (d_ij - b)]₊ + λ‖ω‖₁``, over the sample of pairs."""
    slack = np.maximum(1 + pairs.relation * (distances - b), 0)
    return float(pairs.weight @ slack + sparsity * omega.sum())


def descend_helic(
    features: Sequence[np.ndarray],
    pairs: RowPairs,
    sparsity: float,
    max_iter: int,
    seed: int,
    *,
    batch_size: int = 20,
    check_interval: int = 50,
    patience: int = 3,
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
    optimizer = Adam(lower=np.append(np.zeros(len(point) - 1), -np.inf))
    best, trace = point, []
    for step in range(max_iter if pairs.weight.any() else 0):
        if step % check_interval == 0:
            omega, b = point[:-1], float(point[-1])
            trace.append(hinge(_distances(features, columns, omega), b, omega, pairs, sparsity))
            if trace[-1] <= min(trace):
                best = point
            if len(trace) - 1 - int(np.argmin(trace)) >= patience:
                break
        batch = rng.choice(len(pairs.weight), batch_size, p=pairs.weight)
        point = optimizer.step(point, batch_gradient(features, pairs, batch, point, sparsity))
    return _split(best[:-1], features), float(best[-1]), trace


def solve_helic(
    features: Sequence[np.ndarray], pairs: RowPairs, sparsity: float
) -> tuple[list[np.ndarray], float, list[float]]:
    """Eq. (6.19) by linear programming: ω, b and the objective, over the pairs that weigh."""
    counts = np.flatnonzero(pairs.weight)
    relation, n = pairs.relation[counts], len(counts)
    squares = np.hstack(
        [
            (f[pairs.left[counts, a]] - f[pairs.right[counts, a]]) ** 2
            for a, f in enumerate(features)
        ]
    )
    n_weights = squares.shape[1]
    if not n:  # one class alone
        return _split(np.ones(n_weights), features), 0.0, []
    cost = np.concatenate([np.full(n_weights, sparsity), [0.0], pairs.weight[counts]])
    # 1 + r (d - b) <= ξ
    above = sparse.hstack([squares * relation[:, None], -relation[:, None], -sparse.eye_array(n)])
    bounds = [(0, None)] * n_weights + [(None, None)] + [(0, None)] * n
    found = linprog(cost, sparse.csr_array(above), -np.ones(n), bounds=bounds, method="highs")
    if not found.success:
        raise ValueError(f"expected Eq. (6.19) to have a solution, got: {found.message}")
    return _split(found.x[:n_weights], features), float(found.x[n_weights]), [float(found.fun)]


def batch_gradient(
    features: Sequence[np.ndarray],
    pairs: RowPairs,
    batch: np.ndarray,
    point: np.ndarray,
    sparsity: float,
) -> np.ndarray:
    """Gradient of Eq. (6.19) in (ω, b) over a batch of pairs."""
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
    """Squared distances of all pairs of a sample, by Gram matrices of values."""
    out = np.zeros(columns[0].met.shape[0])
    for f, c, w in zip(features, columns, _split(omega, features), strict=True):
        gram = (f * w) @ f.T
        norms = np.diagonal(gram)
        out += c.met @ (norms[c.first] + norms[c.second] - 2 * gram[c.first, c.second])
    return out


def _split(omega: np.ndarray, features: Sequence[np.ndarray]) -> list[np.ndarray]:
    return np.split(omega, np.cumsum([f.shape[1] for f in features])[:-1])


# -- UNICORN as published [Zhu 2019, ch. 8]: Eq. (8.18), its errata corrected or not, by Adam -----
#
# Counts of the stream and of its last window in, weights of raw kernel columns out. Every term is
# exact over all objects of the window, from V × V matrices: with ``C₀`` of the window,
# ``tr(HSH) = tr(G C₀)``, ``‖HSH‖² = tr(G C₀ G C₀)`` and ``tr(HSH HS'H) = tr(G C₀ G' C₀)``. With the
# printed ``H = I - 11ᵀ`` it is the same with ``C + (n-2) ccᵀ`` for C₀.


@storable
class UNICORN(unicorn.UNICORN):
    """Embed the rows of a stream by kernel columns, weighted as Algorithm 4 does.

    Parameters
    ----------
    delta : float, default=0.01
        How much the new representation should agree with the last one.
    sigma : float, optional
        Penalty on the weights; by default 1 / number of kernels.
    decay : float, default=1.0
        What the counts of the past are multiplied by when a window comes. 1 keeps everything;
        0 is the static variant UNICORN-S, which learns from the last window only.
    kernels : mapping of name to kernel, optional
        By default 11 Gaussians and 3 polynomials, the latter scaled to 1 at most: those of raw
        inner products drown all others.
    literal : bool, default=False
        Whether (8.18) and (8.19) are taken to the letter, misprints included.
    schema, unknown, dtype
        As in :class:`~tabweave.OneHot`; by default all columns are categories.

    Attributes
    ----------
    drift_, history_, counts_, n_windows_, n_rows_
        As in :class:`tabweave.UNICORN`.
    weights_ : dict of str to dict
        For each column, the weight of each ``space/kernel``, summed over the kernel's columns.
    objective_ : list of float
        The objective at each step.
    landmarks_ : dict
        Empty: a column with many values is an error, it would have 28 V² features.
    tables_ : ValueTables
        The representation, Eq. (8.20).
    numbers_, space_, schema_
        As in :class:`~tabweave.OneHot`.

    Notes
    -----
    *Errata.* In (8.18) H is ``I - 11ᵀ/n`` and the first term is ``tr(HSH) / (‖HSH‖ √(n-1))``, equal
    to what is printed only if S has a unit diagonal; in (8.19) ξ is a mean over all (column, value)
    terms; (8.5), missing in print, is the merged conditional probability. ``literal=True`` takes
    ``H = I - 11ᵀ``, the first term ``n(1 - s̄) / (‖HSH‖ √(n-1))`` with ``s̄ = 1ᵀS1 / n``, and ξ
    divided once more by the number of columns. That first term never falls below
    ``-n / (n-1)^2.5``, since ``‖HSH‖ ≥ (n-1)² 1ᵀS1 / n``: all that is left to gain is a larger
    ω. With H corrected and the first term as published, the objective is unbounded below; with
    both corrected it is best at a single kernel of a single column, and Adam stays near its
    start. The representation before a window is part of the objective, so every window is
    learned from, unlike in :class:`tabweave.UNICORN`.

    *Deviations.* Without ``literal`` the errata are corrected. Always: polynomials are scaled to 1
    at most; gradients are exact, from counts, where print draws batches of 20 rows. A missing cell
    is a value of its own.

    Examples
    --------
    >>> from tabweave import papers
    >>> from tabweave.datasets import led24
    >>> digits = led24(120, random_state=0)
    >>> stream = papers.UNICORN(delta=0.1).fit(digits.X[:60]).partial_fit(digits.X[60:])
    >>> stream.transform(digits.X[:5]).shape[0]
    5
    >>> stream.objective_[-1] < stream.objective_[0]
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **ValueEmbedder._parameter_constraints,
        "delta": [Interval(Real, 0, None, closed="left")],
        "sigma": [Interval(Real, 0, None, closed="left"), None],
        "decay": [Interval(Real, 0, 1, closed="both")],
        "kernels": [Mapping, None],
        "literal": ["boolean"],
    }
    align = False  # the printed objective has a term of its own for what came before

    def __init__(
        self,
        delta: float = 0.01,
        *,
        sigma: float | None = None,
        decay: float = 1.0,
        kernels: Any = None,
        literal: bool = False,
        schema: Any = "nominal",
        unknown: str = "centroid",
        dtype: str = "float64",
    ) -> None:
        ValueEmbedder.__init__(self, schema=schema, unknown=unknown, dtype=dtype)
        self.delta = delta
        self.sigma = sigma
        self.decay = decay
        self.kernels = kernels
        self.literal = literal

    def _begin(self, n_rows: int) -> Self:
        self._prior: WindowBefore | None = None
        return super()._begin(n_rows)

    def _advance(self, counts: Counts) -> None:
        self._prior = WindowBefore(self.counts_, self.learn().tables_)
        super()._advance(counts)

    def _learn(self, counts: Counts) -> ValueTables:
        self._counted = self._counted.where_missing_is_a_value()
        self.landmarks_ = {}
        kernels, prior = family_of(self.kernels), self._prior
        columns = [kernel_columns(counts, a, kernels) for a in range(len(counts.names))]
        sigma = self.sigma
        if sigma is None:
            sigma = 1 / max(sum(len(c.names) for c in columns), 1)
        window = Window.of(counts, prior, self.decay, self.literal)
        other, agreement = None, 0.0
        if prior is not None:
            other = prior.gram(counts)
            agreement = 1 - unicorn.change(prior.counts, counts, self.decay).overall
            agreement /= len(columns) if self.literal else 1  # Eq. (8.19)
        omegas, self.objective_ = descend_unicorn(
            columns, window, other, self.delta * agreement, sigma
        )
        self.weights_ = weights_of(counts, columns, omegas)
        grams = [c.gram(w) for c, w in zip(columns, omegas, strict=True)]
        return ValueTables.from_grams(grams, counts)


@storable
@dataclass(frozen=True, eq=False)
class WindowBefore:
    """The model of the window before: what it had counted, and its value tables."""

    counts: Counts
    tables: ValueTables

    def gram(self, counts: Counts) -> np.ndarray:
        """``G'`` over the values seen by now; one not seen then is its centroid."""
        parts = []
        for labels, rows, current_labels in zip(
            self.tables.labels, self.tables.tables, counts.labels, strict=True
        ):
            t = rows[positions(labels, current_labels)]
            parts.append(t @ t.T)
        return block_diag(*parts)


@dataclass(frozen=True)
class Window:
    """The objects of a window as the objective sees them, all of them V × V.

    Attributes
    ----------
    scatter : ndarray
        ``ZᵀHHZ``.
    linear, constant : ndarray, float
        The first term's numerator is ``constant + tr(G linear)``.
    n : float
        Number of objects.
    """

    scatter: np.ndarray
    linear: np.ndarray
    constant: float
    n: float

    @classmethod
    def of(cls, counts: Counts, prior: WindowBefore | None, decay: float, literal: bool) -> Window:
        """Last window: what came on top of the prior."""
        pairs, n = window_pairs(counts, prior, decay)
        c = np.diagonal(pairs)
        product = np.outer(c, c)
        if literal:  # n (1 - s̄) = n - cᵀGc
            return cls(pairs + (n - 2) * product, -product, n, n)
        scatter = pairs - product / n
        return cls(scatter, scatter, 0.0, n)


def window_pairs(
    counts: Counts, prior: WindowBefore | None, decay: float
) -> tuple[np.ndarray, float]:
    """Pair counts C of the last window, and its n."""
    pairs, n = counts.pairs, float(counts.n)
    pairs = pairs.toarray() if sparse.issparse(pairs) else pairs.astype(np.float64)
    if prior is not None and decay:
        remembered = prior.counts.scaled(decay)
        if all(set(a) <= set(b) for a, b in zip(remembered.labels, counts.labels, strict=True)):
            older = expand(remembered, counts.vocabulary)
            pairs = pairs - (older.toarray() if sparse.issparse(older) else older)
            n = n - float(remembered.n)
    return pairs, n


def descend_unicorn(
    columns: list[KernelColumns],
    window: Window,
    other: np.ndarray | None,
    delta: float,
    sigma: float,
    *,
    n_steps: int = 250,
) -> tuple[list[np.ndarray], list[float]]:
    """Minimise (8.18) over ω ≥ 0 by Adam, with exact gradients over the whole window."""
    edges = np.cumsum([c.stack.shape[1] for c in columns])
    omega, optimizer = np.ones(edges[-1]), Adam()
    trace: list[float] = []
    for _ in range(n_steps):
        value, gradient = objective(columns, np.split(omega, edges[:-1]), window, other, delta)
        trace.append(float(value + sigma * omega.sum()))
        omega = optimizer.step(omega, gradient + sigma)
    return np.split(omega, edges[:-1]), trace


def objective(
    columns: list[KernelColumns],
    omegas: list[np.ndarray],
    window: Window,
    other: np.ndarray | None,
    delta: float,
) -> tuple[float, np.ndarray]:
    """Eq. (8.18) without the penalty, and its gradient in ω."""
    gram = block_diag(*(c.gram(w) for c, w in zip(columns, omegas, strict=True)))
    scatter = window.scatter
    curved = scatter @ gram @ scatter
    trace = window.constant + float(np.vdot(gram, window.linear))
    norm = np.sqrt(max(float(np.vdot(gram, curved)), 0.0))
    if not norm:
        return 0.0, np.zeros(sum(len(w) for w in omegas))
    by_trace, by_norm = (_quadratic(columns, m) for m in (window.linear, curved / norm))
    root = np.sqrt(max(window.n - 1, 1))
    value = trace / (norm * root)
    gradient = (by_trace / norm - trace * by_norm / norm**2) / root
    if other is not None and delta:
        bridge = scatter @ other @ scatter
        norm_before = np.sqrt(max(float(np.vdot(other, bridge)), 0.0))
        if norm_before:
            shared = float(np.vdot(gram, bridge))
            value -= delta * shared / (norm * norm_before)
            towards = _quadratic(columns, bridge) / norm - shared * by_norm / norm**2
            gradient = gradient - delta * towards / norm_before
    return value, gradient


def _quadratic(columns: list[KernelColumns], matrix: np.ndarray) -> np.ndarray:
    """``φᵀ M φ`` of every kernel column φ, M the block of its own column."""
    out, start = [], 0
    for c in columns:
        block = matrix[start : start + len(c.stack), start : start + len(c.stack)]
        out.append(np.einsum("vp,vp->p", c.stack, block @ c.stack))
        start += len(c.stack)
    return np.concatenate(out)


# -- Non-BEND as published [Zhu 2019, ch. 5]: a single fit, columns weighted by Eq. (5.31) --------


@storable
class NonBEND(nonbend.NonBEND):
    """Embed rows by the independent subspaces of one fit, columns weighted by how these differ.

    The representation is that of a single fit, and depends on its seed. Each row counts in its
    likeliest subspace alone (Algorithm 2), where :class:`tabweave.NonBEND` shares it out.

    Parameters
    ----------
    method, alpha, random_state
        As in :class:`tabweave.NonBEND`.
    alpha0 : float or dict, default=0.1
        The concentration of each column's distribution, Eq. (5.26): a number, or a dict of column
        to a number or to a dict of value to number (columns and values left out have 0.1).
    embedding : {"one-zero", "theta"}, default="one-zero"
        How values become vectors: by Eqs. (5.28) to (5.32), or, ``"theta"``, by their probability
        in each subspace on an axis of their own, without π and column weights.
    schema, unknown, dtype
        As in :class:`~tabweave.OneHot`; by default all columns are categories.

    Attributes
    ----------
    n_subspaces_, weights_, theta_, trace_, n_iter_, fits_, alpha_, tables_, numbers_
        As in :class:`tabweave.NonBEND`.
    counts_, space_, schema_
        As in :class:`~tabweave.OneHot`.

    Notes
    -----
    *Errata.* In (5.22) the sum of E[log(1−V_l)] stops at l = t−1; in (5.25) the digamma of the sum
    runs over the values of the column; (5.31) averages over all k subspaces with k−1 in the
    denominator. With one subspace alone every column weighs 1.

    *Deviations.* α and α₀ are not printed for single tables: they are those of
    :class:`tabweave.NonBEND`. The errata are corrected. ``embedding="theta"`` is not in print. A
    missing cell is a value of its own.

    Examples
    --------
    >>> from tabweave import papers
    >>> rows = {"color": ["red", "blue"] * 20, "size": ["S", "L"] * 20, "shape": ["o"] * 40}
    >>> model = papers.NonBEND(random_state=0).fit(rows)
    >>> len(model.fits_), model.n_subspaces_
    (1, 2)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        name: [*allowed, dict] if name == "alpha0" else allowed
        for name, allowed in nonbend.NonBEND._parameter_constraints.items()
        if name != "n_fits"
    } | {"embedding": [StrOptions({"one-zero", "theta"})]}

    def __init__(
        self,
        method: str | VI | Gibbs = "vi",
        *,
        alpha: float | str = "auto",
        alpha0: float | dict[str, Any] = 0.1,
        embedding: Literal["one-zero", "theta"] = "one-zero",
        random_state: Any = None,
        schema: Any = "nominal",
        unknown: str = "centroid",
        dtype: str = "float64",
    ) -> None:
        super().__init__(
            method,
            alpha=alpha,
            alpha0=alpha0,  # type: ignore[arg-type]
            n_fits=1,
            random_state=random_state,
            schema=schema,
            unknown=unknown,
            dtype=dtype,
        )
        self.embedding = embedding

    def _pseudo_counts(self, counts: Counts) -> float | np.ndarray:
        if isinstance(self.alpha0, dict):
            return pseudo_counts(self.alpha0, counts)
        return super()._pseudo_counts(counts)

    def _finished(self, fit: Fit, passes: Passes, prior: Prior) -> Fit:
        if isinstance(self._engine(), Gibbs):  # whose rows are in one subspace each
            return fit
        return assigned(passes(), fit, prior)

    def _grams(self, fit: Fit, prior: Prior) -> list[np.ndarray]:
        return theta_grams(fit, prior) if self.embedding == "theta" else weighted_grams(fit, prior)

    def _learn(self, counts: Counts) -> ValueTables:
        self._counted = self._counted.where_missing_is_a_value()
        return super()._learn(counts)


def pseudo_counts(
    given: dict[str, Any], counts: Counts, *, pseudo_count: float = 0.1
) -> np.ndarray:
    """Eq. (5.26): ``α₀ᵢ^(j)`` of each value of each column."""
    out = np.full(int(counts.offsets[-1]), pseudo_count)
    for name, declared in given.items():
        if name not in counts.names:
            raise ValueError(f"alpha0: expected columns {', '.join(counts.names)}, got {name!r}")
        a = counts.names.index(name)
        values = (
            declared if isinstance(declared, dict) else dict.fromkeys(counts.labels[a], declared)
        )
        for value, number in values.items():
            position = int(positions(counts.labels[a], [canonical(value)])[0])  # True is not 1
            if position == len(counts.labels[a]):
                raise ValueError(f"alpha0 of column {name!r}: expected its values, got {value!r}")
            if not isinstance(number, Real) or not 0 < float(number) < np.inf:
                raise ValueError(
                    f"alpha0 of {value!r} in column {name!r}: expected a number above 0, got "
                    f"{number!r}"
                )
            out[counts.offsets[a] + position] = number
    return out


def assigned(batches: Iterable[WeightedRows], fit: Fit, prior: Prior) -> Fit:
    """Algorithm 2: counts of rows that are each in their likeliest subspace alone."""
    log_stick, _ = stick_expectations(fit.sizes, prior.alpha)
    log_value, _ = value_expectations(fit.counts, fit.sizes, prior)
    counts, sizes = np.zeros_like(fit.counts), np.zeros_like(fit.sizes)
    for rows in batches:
        chosen, _ = assign(rows.cells, log_stick, log_value)
        add_assigned(rows.cells, rows.weight, chosen, counts, sizes)
    hard = Fit(counts, sizes, fit.trace).chosen(np.flatnonzero(sizes))
    return hard.chosen(np.argsort(-hard.sizes, kind="stable"))


def weighted_grams(fit: Fit, prior: Prior) -> list[np.ndarray]:
    """Eq. (5.32): per column, the inner products of its values' vectors, weighted by (5.31)."""
    edges = prior.offsets[1:-1]
    theta = np.split(value_probabilities(fit, prior), edges)
    columns = zip(
        embedding_grams(fit, prior), theta, np.split(prior.pseudo_counts, edges), strict=True
    )
    return [gram * column_weight(rows[pseudo > 0]) ** 2 for gram, rows, pseudo in columns]


def theta_grams(fit: Fit, prior: Prior) -> list[np.ndarray]:
    """Another reading of (5.28): θ of a value in each subspace, on an axis of the value's own."""
    theta = np.split(value_probabilities(fit, prior), prior.offsets[1:-1])
    return [np.diag((rows**2).sum(axis=1)) for rows in theta]


def column_weight(theta: np.ndarray) -> float:
    """Eq. (5.31): mean over a column's values of the deviation of θ (values × subspaces).

    Erratum: the sum runs over all k subspaces, with k−1 in the denominator.
    """
    return float(theta.std(axis=1, ddof=1).mean()) if theta.shape[1] > 1 and len(theta) else 1.0
