"""UNTIE as published [Zhu 2019, ch. 7]: Eq. (7.22), whose minimum is ω = 0.

Counts and raw kernel columns in, their weights and the falling objective out. For comparison with
:class:`tabweave.UNTIE`, which says what is wrong with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from numbers import Integral
from typing import Any, ClassVar

import numpy as np

from tabweave._compat import Interval, seed_of
from tabweave.base import ValueEmbedder
from tabweave.counts import couplings
from tabweave.counts.counts import Counts
from tabweave.counts.couplings import named_weights
from tabweave.counts.spectra import responses
from tabweave.embed.helic import coupling_spaces
from tabweave.embed.nonbend import DistinctRowEmbedder, WeightedRows
from tabweave.embed.weave import check_clusters
from tabweave.io.register import storable
from tabweave.space.value_tables import ValueTables

BOUNDED = couplings.kernel_family(degrees=()) | {
    f"poly{d}": partial(couplings.bounded_polynomial, degree=d) for d in couplings.DEGREES
}


@storable
class UNTIE(DistinctRowEmbedder):
    """Embed categorical rows by raw kernel columns, weighted as Algorithm 3 does.

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
        As in :class:`~tabweave.OneHot`.

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
    counts_, blocks_, schema_
        As in :class:`~tabweave.OneHot`.

    Notes
    -----
    *Erratum.* ``tr(S(I - HHᵀ))``, Eq. (7.22), is smallest at ω = 0: its gradient in ω is the
    inertia that H leaves unexplained, never negative, and the objective scales with ω. Adam from
    ω = 1 walks that way until its steps run out. There is no identity space: on tables with uniform
    frequencies all rows fall together. In batches H has the eigenvectors of 20 rows, which explain
    most of them whatever the weights: these go to 0 together, and after 1000 steps of 10⁻³ only
    those of rare values are left. When to stop (δ of Algorithm 3, which is not printed) decides.

    Examples
    --------
    >>> from tabweave import papers
    >>> from tabweave.datasets import led24
    >>> digits = led24(200, random_state=0)
    >>> untie = papers.UNTIE(n_clusters=10, max_iter=20, random_state=0).fit(digits.X)
    >>> untie.objective_[-1] < untie.objective_[0]
    True
    """

    _missing_is_value: ClassVar[bool] = True
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
        schema: Any = None,
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
        check_clusters(self.n_clusters, counts)
        self.landmarks_: dict[str, int] = {}
        kernels = BOUNDED if self.kernels is None else dict(self.kernels)
        columns = [kernel_columns(counts, a, kernels) for a in range(len(counts.names))]
        if self.batch_size is None:
            omegas, self.objective_ = descend(counts, columns, self.n_clusters, self.max_iter)
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


def descend(
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
