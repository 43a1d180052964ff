"""UNICORN as published [Zhu 2019, ch. 8]: Eq. (8.18), its errata corrected or not, by Adam.

Counts of the stream and of its last window in, weights of raw kernel columns out. Every term is
exact over all objects of the window, from V × V matrices: with ``C₀`` of the window,
``tr(HSH) = tr(G C₀)``, ``‖HSH‖² = tr(G C₀ G C₀)`` and ``tr(HSH HS'H) = tr(G C₀ G' C₀)``. With the
printed ``H = I - 11ᵀ`` it is the same with ``C + (n-2) ccᵀ`` for C₀.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse
from scipy.linalg import block_diag

from tabweave._compat import Interval
from tabweave.base import ValueEmbedder
from tabweave.columns.vocabulary import positions
from tabweave.counts.counts import Counts
from tabweave.counts.couplings import chosen_kernels
from tabweave.counts.merging import expand
from tabweave.embed import unicorn
from tabweave.io.register import storable
from tabweave.papers.untie import Adam, KernelColumns, kernel_columns, weights_of
from tabweave.space.value_tables import ValueTables


@storable
class UNICORN(unicorn.UNICORN):
    """Embed the rows of a stream by raw kernel columns, weighted as Algorithm 4 does.

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
        By default 11 Gaussians and 3 polynomials.
    literal : bool, default=False
        Whether (8.18) and (8.19) are taken to the letter, misprints included.
    schema, unknown, dtype
        As in :class:`~tabweave.OneHot`.

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
    blocks_, schema_
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

    _missing_is_value: ClassVar[bool] = True
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
        schema: Any = None,
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
        self.landmarks_ = {}
        kernels, prior = chosen_kernels(self.kernels), self._prior
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
        omegas, self.objective_ = descend(columns, window, other, self.delta * agreement, sigma)
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


def descend(
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
