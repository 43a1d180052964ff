"""UNTIE: unsupervised heterogeneous coupling learning [Zhu 2019, ch. 7].

Learns how much each coupling of each column should count, by asking which kernels of which
couplings agree with the clusters that all of them together suggest. The paper does so by
mini-batches of an n × n kernel; here every step is exact over all objects, from counts, at a cost
that does not depend on their number.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np

from tabweave._compat import Interval
from tabweave.counts import couplings
from tabweave.counts.counts import Counts
from tabweave.counts.couplings import Factors, corrected_uncertainty, information
from tabweave.counts.spectra import leading_axes, projected, responses
from tabweave.embed.base import ValueEmbedder
from tabweave.embed.register import embedder
from tabweave.embed.weave import check_clusters, mean_one
from tabweave.space.value_tables import ValueTables, coded


@embedder("untie", "couplings with weights learned without labels", "Zhu 2019, ch. 7")
class UNTIE(ValueEmbedder):
    """Embed categorical rows by couplings whose weights are learned without labels.

    Parameters
    ----------
    n_clusters : int or None, default=8
        Number of clusters that the weights should bring out; rows are projected on the 2k
        directions in which they differ most. ``None``, for classifiers and whoever else looks for
        no clusters, gives the vectors of (7.23) unprojected, with weights that bring out 8.
    temperature : float, default=0.3
        How evenly a column's weight is shared by its kernels; large values give all the same.
    smoothing : float, default=5.0
        Pseudo-counts of the marginal in each conditional probability.
    kernels : mapping of name to kernel, optional
        By default 11 Gaussians and 3 polynomials. A kernel is a function of ``x·y``, ``|x|²`` and
        ``|y|²``, arrays that broadcast.
    max_iter : int, default=50
        At most so many alternations.
    schema, unknown, dtype
        As in :class:`~tabweave.OneHot`.

    Attributes
    ----------
    weights_ : dict of str to dict
        For each column, the weight of each ``space/kernel``.
    objective_ : list of float
        The objective after each alternation; it never rises.
    n_iter_ : int
        Number of alternations.
    landmarks_ : dict of str to int
        The columns with more than 512 values, and how many landmarks they have; their kernels
        weigh equally.
    tables_ : ValueTables
        The representation.
    counts_, numbers_, space_, schema_
        As in :class:`~tabweave.OneHot`.

    Notes
    -----
    *Erratum.* Eq. (7.22) is smallest at ω = 0: its gradient in ω, the inertia that the clusters
    leave unexplained, is never negative (:class:`tabweave.papers.UNTIE` has it). Here each
    kernel is centred and scaled to unit inertia, the weight W_a of a column is fixed
    (``√(H_a √Σ_b SU⁺_ab)``: as it varies and depends on others), and ``τ Σ W_a β log β`` is added:
    minimising over β on each column's simplex gives ``β ∝ exp(alignment / τ)``, over H the top
    eigenvectors. Both steps are exact, so the objective falls until it stands.

    Examples
    --------
    >>> from tabweave import UNTIE
    >>> from tabweave.datasets import led24
    >>> digits = led24(500, random_state=0)
    >>> untie = UNTIE(n_clusters=10).fit(digits.X)
    >>> untie.transform(digits.X).shape
    (500, 20)
    >>> all(b <= a + 1e-9 for a, b in zip(untie.objective_, untie.objective_[1:]))
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **ValueEmbedder._parameter_constraints,
        "n_clusters": [Interval(Integral, 2, None, closed="left"), None],
        "temperature": [Interval(Real, 0, None, closed="neither")],
        "smoothing": [Interval(Real, 0, None, closed="left")],
        "kernels": [Mapping, None],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        n_clusters: int | None = 8,
        *,
        temperature: float = 0.3,
        smoothing: float = 5.0,
        kernels: Any = None,
        max_iter: int = 50,
        schema: Any = None,
        unknown: str = "centroid",
        dtype: str = "float64",
    ) -> None:
        self.n_clusters = n_clusters
        self.temperature = temperature
        self.smoothing = smoothing
        self.kernels = kernels
        self.max_iter = max_iter
        super().__init__(schema=schema, unknown=unknown, dtype=dtype)

    def _learn(self, counts: Counts) -> ValueTables:
        check_clusters(self.n_clusters, counts)
        kernels = couplings.chosen_kernels(self.kernels)
        columns = column_kernels(counts, kernels, self.smoothing)
        self.landmarks_ = landmarked(columns)
        mixtures = [mixture(column) for column in columns]
        share = column_weights(counts)
        n_sought = 8 if self.n_clusters is None else self.n_clusters
        betas, self.objective_ = entropic(
            counts, mixtures, share, n_sought, self.temperature, self.max_iter
        )
        self.n_iter_ = len(self.objective_)
        weights = [w * beta for w, beta in zip(share, betas, strict=True)]
        self.weights_ = couplings.named_weights(counts, [m.names for m in mixtures], weights)
        return represented(counts, mixed_tables(mixtures, share, betas), self.n_clusters)


@dataclass(frozen=True)
class Mixture:
    """The kernels of one column: their names and a stack of P Grams, V × V each."""

    names: list[str]
    stack: np.ndarray
    fixed: np.ndarray | None = None  # the table of a column with landmarks: nothing to mix

    def explained(self, response: np.ndarray) -> np.ndarray:
        """``tr(HᵀS_pH)`` of each kernel from the rows of ZᵀH for this column's values."""
        if self.fixed is not None:
            return np.array([((self.fixed.T @ response) ** 2).sum()])
        return (
            self.stack.reshape(len(self.stack), len(response) ** 2)
            @ (response @ response.T).ravel()
        )


def mixture(column: ColumnKernels) -> Mixture:
    """Eqs. (7.2), (7.6), (7.9): every kernel of every coupling, centred, of unit inertia."""
    f = column.frequency
    share = f / max(f.sum(), 1e-300)  # the elements of sets occur more than once a row
    if column.has_landmarks:
        table = coded(column.mean_factors(), f)
        table = table - share @ table
        scale = np.sqrt(max(f @ (table**2).sum(axis=1), np.finfo(float).tiny))
        return Mixture(["mean"], np.zeros((1, 0, 0)), table / scale)
    names, grams = [], []
    for block in column.blocks():
        names.append(f"{block.space}/{block.kernel}")
        gram = block.gram / block.inertia(f, column.landmark_ids)
        gram = gram - (share @ gram)[None, :]
        grams.append(gram - (gram @ share)[:, None])
    return Mixture(names, np.array(grams).reshape(len(grams), len(f), len(f)))


def entropic(
    counts: Counts,
    mixtures: list[Mixture],
    share: np.ndarray,
    n_clusters: int,
    temperature: float,
    max_iter: int,
) -> tuple[list[np.ndarray], list[float]]:
    """Alternate the two steps of Algorithm 3 on ``tr(S(I - HHᵀ))/n + τ Σ W_a β log β``.

    Returns
    -------
    betas : list of ndarray
        The weights of each column's kernels, each summing to 1.
    trace : list of float
        The objective after each alternation.
    """
    betas = [np.full(len(m.names), 1 / max(len(m.names), 1)) for m in mixtures]
    trace: list[float] = []
    for _ in range(max_iter):
        tables = mixed_tables(mixtures, share, betas)
        explained = alignments(counts, mixtures, tables, n_clusters)
        betas = [_softmax(a / temperature) for a in explained]
        parts = [
            b @ (1 - a + temperature * np.log(np.maximum(b, 1e-300)))
            for a, b in zip(explained, betas, strict=True)
        ]
        trace.append(float(share @ parts))
        if len(trace) > 1 and trace[-2] - trace[-1] <= 1e-9 * abs(trace[-2]):
            break
    return betas, trace


def mixed_tables(
    mixtures: list[Mixture], share: np.ndarray, betas: list[np.ndarray]
) -> list[np.ndarray]:
    """Eq. (7.14): value tables of the weighted sum of each column's kernels."""
    tables = []
    for m, w, beta in zip(mixtures, share, betas, strict=True):
        table = m.fixed
        if table is None:
            gram = np.tensordot(beta, m.stack, 1)
            table = couplings.factor(gram, np.arange(len(gram)))
        tables.append(np.sqrt(w) * table)
    return tables


def alignments(
    counts: Counts, mixtures: list[Mixture], tables: list[np.ndarray], n_clusters: int
) -> list[np.ndarray]:
    """Eq. (7.24): the share of each kernel's inertia that the current clusters explain.

    The clusters are H, the top eigenvectors of the centred object kernel (7.19); ``HᵀZ`` is
    ``C₀TU/√λ``, so ``tr(HᵀS_pH)/n`` is a trace over values, not objects.
    """
    response = responses(counts, tables, n_clusters)
    return [m.explained(response[counts.span(a)]) / counts.n for a, m in enumerate(mixtures)]


def _softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(initial=0))
    return e / max(e.sum(), 1e-300)


# -- kernels at unit inertia, for UNICORN too ---------------------------------------------------


@dataclass(frozen=True)
class ColumnKernels:
    """A column of counts, and the kernels in which its couplings are seen."""

    counts: Counts
    column: int
    kernels: dict[str, couplings.Kernel]
    smoothing: float

    @property
    def frequency(self) -> np.ndarray:
        """The share of the rows that have each value."""
        return self.counts.frequencies[self.column]

    @cached_property
    def landmark_ids(self) -> np.ndarray:
        """The values that all are compared with: all, or, of many, the most frequent."""
        return couplings.landmarks(self.counts, self.column, couplings.MAX_LANDMARKS)

    @property
    def has_landmarks(self) -> bool:
        """Whether the column has more values than landmarks."""
        return len(self.landmark_ids) < len(self.frequency)

    def blocks(self) -> Iterator[couplings.KernelBlock]:
        """Yield the identity, in which all values differ, and the kernels of the couplings."""
        f, ids = self.frequency, self.landmark_ids
        identity = couplings.identity_block(len(f), ids)
        if identity.inertia(f, ids) > couplings.NEGLIGIBLE_INERTIA:
            yield identity
        blocks = couplings.column_blocks(
            self.counts, self.column, ids, self.kernels, self.smoothing
        )
        yield from (block for block, _ in blocks)

    def mean_factors(self) -> Factors:
        """Factors of the average of the kernels, each scaled to unit inertia."""
        f, ids = self.frequency, self.landmark_ids
        total, diagonal, n_kernels = couplings.summed_kernels(
            self.counts, self.column, ids, self.kernels, self.smoothing
        )
        identity = 0.0
        if (mismatch := f.sum() - f @ f / max(f.sum(), 1e-300)) > couplings.NEGLIGIBLE_INERTIA:
            n_kernels, identity = n_kernels + 1, 1 / mismatch
        scale = 1 / max(n_kernels, 1)
        return Factors.of(total * scale, diagonal * scale, identity * scale, ids).bounded(f)


def column_kernels(
    counts: Counts, kernels: dict[str, couplings.Kernel], smoothing: float
) -> list[ColumnKernels]:
    """Columns of counts with their kernels."""
    return [ColumnKernels(counts, a, kernels, smoothing) for a in range(len(counts.names))]


def landmarked(columns: Sequence[ColumnKernels]) -> dict[str, int]:
    """Columns that are seen through landmarks, and through how many."""
    return {c.counts.names[c.column]: len(c.landmark_ids) for c in columns if c.has_landmarks}


def represented(
    counts: Counts, features: Sequence[np.ndarray | Factors], n_clusters: int | None
) -> ValueTables:
    """Tables side by side, or on the 2k directions in which objects differ most."""
    if n_clusters is None:
        return ValueTables.from_features(features, counts)
    tables = [coded(factors, f) for factors, f in zip(features, counts.frequencies, strict=True)]
    axes = leading_axes(counts, tables, 2 * n_clusters)
    return ValueTables.from_features(projected(tables, axes), counts, combine="sum")


def column_weights(counts: Counts) -> np.ndarray:
    """``w_a ∝ √(H_a √Σ_b SU⁺_ab)``, mean 1: columns count as they vary and depend."""
    entropy, tied = dependence(counts)
    return mean_one(np.sqrt(entropy * tied))


def dependence(counts: Counts) -> tuple[np.ndarray, np.ndarray]:
    """Entropy of each column, and ``√Σ_b SU⁺_ab``, its ties to the others.

    ``SU⁺`` is bias-corrected symmetric uncertainty. A column that depends on nothing has 1e-4 of
    the largest, so that rows which differ only there never coincide; without dependence all
    have 1.
    """
    mutual, marginal, _ = information(counts)
    tied = np.sqrt(corrected_uncertainty(counts, mutual, marginal).sum(axis=1))
    tied = np.maximum(tied, 1e-4 * tied.max()) if tied.any() else np.ones(len(tied))
    return np.diagonal(marginal), tied
