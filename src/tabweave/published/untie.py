"""UNTIE as published [Zhu 2019, ch. 7]: Eq. (7.22), whose minimum is ω = 0.

Counts and raw kernel columns in, their weights and the falling objective out. For comparison with
:class:`tabweave.UNTIE`, which says what is wrong with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar

import numpy as np

from tabweave._compat import Interval
from tabweave.base import ValueEmbedder
from tabweave.blocks.value_tables import ValueTables
from tabweave.counts import couplings
from tabweave.counts.counts import Counts
from tabweave.counts.couplings import chosen_kernels, named_weights
from tabweave.counts.spectra import responses
from tabweave.embed.weave import check_clusters
from tabweave.io.register import storable

STEPS = 20  # of Adam between two updates of H
RATE = 1e-3
MEAN, SQUARE = 0.9, 0.999  # how long the moments of the gradient remember
EPSILON = 1e-8


@storable
class UNTIE(ValueEmbedder):
    """Embed categorical rows by raw kernel columns, weighted as Algorithm 3 does.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters that the weights should bring out.
    kernels : mapping of name to kernel, optional
        By default 11 Gaussians and 3 polynomials.
    max_iter : int, default=50
        At most so many alternations, of 20 steps of Adam each.
    schema, unknown, dtype
        As in :class:`~tabweave.OneHot`.

    Attributes
    ----------
    weights_ : dict of str to dict
        For each column, the weight of each ``space/kernel``, summed over the kernel's columns.
    objective_ : list of float
        The objective after each alternation; it never rises.
    n_iter_ : int
        Number of alternations.
    landmarks_ : dict
        Empty: a column with many values is an error, it would have 28 V² features.
    tables_ : ValueTables
        The representation, Eq. (7.23).

    Notes
    -----
    *Erratum.* ``tr(S(I - HHᵀ))``, Eq. (7.22), is smallest at ω = 0: its gradient in ω is the
    inertia that H leaves unexplained, never negative, and the objective scales with ω. Adam from
    ω = 1 walks that way until its steps run out. There is no identity space: on tables with uniform
    frequencies all rows fall together. Exact gradients over all objects stand in for the paper's
    batches of 20.

    Examples
    --------
    >>> from tabweave import published
    >>> from tabweave.datasets import led24
    >>> digits = led24(200, random_state=0)
    >>> untie = published.UNTIE(n_clusters=10, max_iter=2).fit(digits.X)
    >>> untie.objective_[1] < untie.objective_[0]
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **ValueEmbedder._parameter_constraints,
        "n_clusters": [Interval(Integral, 2, None, closed="left")],
        "kernels": [Mapping, None],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
    }
    _former: ClassVar[dict[str, tuple[Any, ...]]] = {
        "objective": ("paper",),
        "temperature": (),
        "smoothing": (),
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        max_iter: int = 50,
        kernels: Any = None,
        schema: Any = None,
        unknown: str = "centroid",
        dtype: str = "float64",
    ) -> None:
        self.n_clusters = n_clusters
        self.max_iter = max_iter
        self.kernels = kernels
        super().__init__(schema=schema, unknown=unknown, dtype=dtype)

    def _learn(self, counts: Counts) -> ValueTables:
        check_clusters(self.n_clusters, counts)
        self.landmarks_: dict[str, int] = {}
        kernels = chosen_kernels(self.kernels)
        columns = [features(counts, a, kernels) for a in range(len(counts.names))]
        omegas, self.objective_ = descend(counts, columns, self.n_clusters, self.max_iter)
        self.n_iter_ = len(self.objective_)
        self.weights_ = weights_of(counts, columns, omegas)
        grams = [c.gram(w) for c, w in zip(columns, omegas, strict=True)]
        return ValueTables.from_grams(grams, counts)


@dataclass(frozen=True)
class Features:
    """Names of a column's kernels, and their columns side by side: one row per value."""

    names: list[str]
    stack: np.ndarray

    def gram(self, omega: np.ndarray) -> np.ndarray:
        """Eq. (7.14): the inner products of the values under weights of the kernel columns."""
        return (self.stack * omega) @ self.stack.T


def features(counts: Counts, column: int, kernels: dict[str, couplings.Kernel]) -> Features:
    """Eqs. (7.9), (7.23): raw kernel columns of the intra and inter spaces, one weight each."""
    n_values = int(counts.sizes[column])
    if n_values > couplings.MAX_LANDMARKS:
        raise ValueError(
            f"column {counts.names[column]!r}: expected at most {couplings.MAX_LANDMARKS} values, "
            f"got {n_values}; the published algorithm weighs each of their kernel columns: leave "
            "the column out, or use tabweave.Weave"
        )
    spaces = {"intra": couplings.intra(counts, column)}
    if len(counts.names) > 1:
        spaces["inter"] = couplings.inter(counts, column)
    blocks = list(couplings.kernel_blocks(spaces, kernels, np.arange(n_values)))
    names = [f"{b.space}/{b.kernel}" for b in blocks]
    return Features(names, np.hstack([b.gram for b in blocks]))


def descend(
    counts: Counts, columns: list[Features], n_clusters: int, max_iter: int
) -> tuple[list[np.ndarray], list[float]]:
    """Eq. (7.22) by Algorithm 3: Adam from ω = 1 at 10⁻³, H renewed every 20 steps."""
    edges = np.cumsum([0] + [c.stack.shape[1] for c in columns])
    omega, optimizer = np.ones(edges[-1]), Adam()
    trace: list[float] = []
    for _ in range(max_iter):
        slope = gradient(counts, columns, omega, edges, n_clusters)
        trace.append(float(omega @ slope))
        for _ in range(STEPS):
            omega = optimizer.step(omega, slope)
    return np.split(omega, edges[1:-1]), trace


def gradient(
    counts: Counts, columns: list[Features], omega: np.ndarray, edges: np.ndarray, n_clusters: int
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


def weights_of(
    counts: Counts, columns: list[Features], omegas: list[np.ndarray]
) -> dict[str, dict[str, float]]:
    """Return for each column the weight of each kernel, summed over the kernel's columns."""
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

    def __init__(self, lower: float | np.ndarray = 0.0) -> None:
        self.lower = lower
        self.n_steps = 0
        self._mean: np.ndarray | float = 0.0
        self._square: np.ndarray | float = 0.0

    def step(self, point: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        """Return the next point."""
        self.n_steps += 1
        self._mean = MEAN * self._mean + (1 - MEAN) * gradient
        self._square = SQUARE * self._square + (1 - SQUARE) * gradient**2
        mean = self._mean / (1 - MEAN**self.n_steps)
        size = np.sqrt(self._square / (1 - SQUARE**self.n_steps)) + EPSILON
        return np.maximum(point - RATE * (mean / size), self.lower)
