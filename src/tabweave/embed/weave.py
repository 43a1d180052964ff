"""Weave: couplings of all kinds and scales, woven with fixed, reasoned weights.

The default unsupervised embedder for categories. Two values are close if they are as frequent,
appear in the same company and keep the same company, at all scales; a column counts as far as it
varies and is tied to the others. Nothing is searched for, so nothing collapses. Rows are seen
once; learning costs O(V³), not O(n).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np

from tabweave._compat import Interval
from tabweave.base import ValueEmbedder
from tabweave.blocks.value_tables import ValueTables
from tabweave.counts import couplings
from tabweave.counts.counts import Counts
from tabweave.counts.couplings import corrected_uncertainty, information
from tabweave.counts.spectra import leading_axes, projected
from tabweave.embed.register import embedder


@embedder("weave", "couplings of the columns at all scales", "tabweave, from Zhu 2019, ch. 6 and 7")
class Weave(ValueEmbedder):
    """Embed categorical rows by what their values have in common, without labels.

    Parameters
    ----------
    n_clusters : int, optional
        Number of clusters looked for, if known: vectors are then projected on the 2k directions
        in which objects differ most.
    smoothing : float, default=5.0
        Pseudo-counts of the marginal in each conditional probability; without them rare values
        ruin the couplings.
    kernels : mapping of name to kernel, optional
        The scales at which couplings are seen; by default 11 Gaussians and 3 polynomials.
    max_landmarks : int, default=512
        Columns with more values are seen through this many of their most frequent ones.
    schema, unknown, dtype
        As in :class:`~tabweave.OneHot`.

    Attributes
    ----------
    weights_ : dict of str to float
        Weight of each column, mean 1.
    landmarks_ : dict of str to int
        The columns seen through landmarks, and through how many.
    tables_ : ValueTables
        The representation.

    Notes
    -----
    Per column the kernels of f(v), [p(v|w)] and [p(w|v)], each centred and scaled to unit inertia,
    are averaged together with the identity. Column weights are ``√(H √ΣSU⁺)``: entropy times
    bias-corrected symmetric uncertainty with the other columns.

    Examples
    --------
    >>> from tabweave import Weave
    >>> from tabweave.datasets import led24
    >>> digits = led24(500, random_state=0)
    >>> weave = Weave(n_clusters=10).fit(digits.X)
    >>> weave.transform(digits.X).shape
    (500, 20)
    >>> noise = [w for name, w in weave.weights_.items() if int(name[1:]) >= 7]
    >>> max(noise) < min(w for name, w in weave.weights_.items() if int(name[1:]) < 7)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **ValueEmbedder._parameter_constraints,
        "n_clusters": [Interval(Integral, 2, None, closed="left"), None],
        "smoothing": [Interval(Real, 0, None, closed="left")],
        "kernels": [Mapping, None],
        "max_landmarks": [Interval(Integral, 2, None, closed="left")],
    }

    def __init__(
        self,
        n_clusters: int | None = None,
        *,
        smoothing: float = 5.0,
        kernels: Any = None,
        max_landmarks: int = couplings.MAX_LANDMARKS,
        schema: Any = None,
        unknown: str = "centroid",
        dtype: str = "float64",
    ) -> None:
        super().__init__(schema=schema, unknown=unknown, dtype=dtype)
        self.n_clusters = n_clusters
        self.smoothing = smoothing
        self.kernels = kernels
        self.max_landmarks = max_landmarks

    def _learn(self, counts: Counts) -> ValueTables:
        check_clusters(self.n_clusters, counts)
        weights = column_weights(counts)
        self.weights_ = dict(zip(counts.names, weights.tolist(), strict=True))
        tables, self.landmarks_ = woven(
            counts, weights, chosen_kernels(self.kernels), self.smoothing, self.max_landmarks
        )
        return represented(counts, tables, self.n_clusters)


def check_clusters(n_clusters: int | None, counts: Counts) -> None:
    """Raise for more clusters than rows were counted."""
    # Weights may add up to anything: only whole counts tell the number of rows.
    if n_clusters is not None and isinstance(counts.n, Integral) and n_clusters > counts.n:
        raise ValueError(
            f"expected n_clusters of at most n_samples={counts.n}, got {n_clusters}: look for "
            "fewer clusters"
        )


def chosen_kernels(given: Mapping[str, couplings.Kernel] | None) -> dict[str, couplings.Kernel]:
    """Return the kernels that were given, or the family of Section 6.2.3."""
    return couplings.kernel_family() if given is None else dict(given)


def woven(
    counts: Counts,
    weights: np.ndarray,
    kernels: dict[str, couplings.Kernel],
    smoothing: float,
    max_landmarks: int = couplings.MAX_LANDMARKS,
) -> tuple[list[np.ndarray], dict[str, int]]:
    """Return the weighted vectors of each column's values, and the columns seen by landmarks."""
    tables, seen_through = [], {}
    for a, name in enumerate(counts.names):
        landmark_ids = couplings.landmarks(counts, a, max_landmarks)
        if len(landmark_ids) < counts.sizes[a]:
            seen_through[name] = len(landmark_ids)
        gram = mean_kernel(counts, a, landmark_ids, kernels, smoothing)
        tables.append(np.sqrt(weights[a]) * couplings.factor(gram, landmark_ids))
    return tables, seen_through


def represented(counts: Counts, tables: list[np.ndarray], n_clusters: int | None) -> ValueTables:
    """Return the tables side by side, or on the 2k directions in which objects differ most."""
    if n_clusters is None:
        return ValueTables.from_features(tables, counts)
    axes = leading_axes(counts, tables, 2 * n_clusters)
    return ValueTables.from_features(projected(tables, axes), counts, combine="sum")


def column_blocks(
    counts: Counts,
    column: int,
    landmark_ids: np.ndarray,
    kernels: dict[str, couplings.Kernel],
    smoothing: float,
) -> Iterator[couplings.KernelBlock]:
    """Yield the kernels of f(v), [p(v|w)], [p(w|v)] and the identity in which values differ."""
    f = counts.frequencies[column]
    spaces = {"intra": couplings.intra(counts, column)}
    if len(counts.names) > 1:
        spaces["inter"] = couplings.inter(counts, column, smoothing)
        spaces["reverse"] = couplings.reverse(counts, column, smoothing)
    blocks = couplings.kernel_blocks(spaces, kernels, landmark_ids)
    for block in chain([couplings.identity_block(len(f), landmark_ids)], blocks):
        if block.inertia(f, landmark_ids) > couplings.NEGLIGIBLE:
            yield block


def mean_kernel(
    counts: Counts,
    column: int,
    landmark_ids: np.ndarray,
    kernels: dict[str, couplings.Kernel],
    smoothing: float,
) -> np.ndarray:
    """Return the average of a column's kernels, each scaled to unit inertia."""
    f = counts.frequencies[column]
    total = np.zeros((len(f), len(landmark_ids)))
    n_kernels = 0
    for block in column_blocks(counts, column, landmark_ids, kernels, smoothing):
        total += block.gram / block.inertia(f, landmark_ids)
        n_kernels += 1
    return total / max(n_kernels, 1)


def column_weights(counts: Counts) -> np.ndarray:
    """Return ``w_a ∝ √(H_a √Σ_b SU⁺_ab)``, mean 1: columns count as they vary and depend."""
    entropy, tied = dependence(counts)
    return mean_one(np.sqrt(entropy * tied))


def mean_one(weights: np.ndarray) -> np.ndarray:
    """Return weights scaled to mean 1; all alike if there are none."""
    return weights / weights.mean() if weights.any() else np.ones(len(weights))


def dependence(counts: Counts) -> tuple[np.ndarray, np.ndarray]:
    """Return of each column its entropy and ``√Σ_b SU⁺_ab``, its ties to the others.

    ``SU⁺`` is bias-corrected symmetric uncertainty. A column that depends on nothing has 1e-4 of
    the largest, so that rows which differ only there never coincide; without dependence all
    have 1.
    """
    mutual, marginal, _ = information(counts)
    tied = np.sqrt(corrected_uncertainty(counts, mutual, marginal).sum(axis=1))
    tied = np.maximum(tied, 1e-4 * tied.max()) if tied.any() else np.ones(len(tied))
    return np.diagonal(marginal), tied


def named_weights(
    counts: Counts, names: Sequence[Sequence[str]], weights: Sequence[np.ndarray]
) -> dict[str, dict[str, float]]:
    """Return the weights of each column's kernels by name."""
    return {
        column: dict(zip(own, w.tolist(), strict=True))
        for column, own, w in zip(counts.names, names, weights, strict=True)
    }
