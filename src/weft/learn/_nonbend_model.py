"""What both inferences of Non-BEND share: the prior, the fit they leave, and its evidence."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from scipy.special import gammaln

from weft.counts import Counts


@dataclass(frozen=True, eq=False)
class Fit:
    """What inference leaves: how much of the table each subspace holds.

    Attributes
    ----------
    counts : ndarray of shape (V, subspaces)
        Expected number of rows of each subspace that have each value.
    sizes : ndarray of shape (subspaces,)
        Expected number of rows of each subspace, largest first.
    trace : tuple of float
        The objective after each step: the lower bound, or the log joint probability of Gibbs.
    """

    counts: np.ndarray
    sizes: np.ndarray
    trace: tuple[float, ...] = field(default=())

    def chosen(self, which: np.ndarray) -> Fit:
        """Return some of the subspaces, in the order given."""
        return replace(self, counts=self.counts[:, which], sizes=self.sizes[which])

    def occupied(self) -> Fit:
        """Return the subspaces that hold at least half a row, or half as much as the largest."""
        return self.chosen(self.sizes >= 0.5 * min(1.0, self.sizes.max()))


@dataclass(frozen=True)
class Prior:
    """The concentrations: α of the subspaces, α₀ of each value in a subspace; most subspaces."""

    alpha: float
    alpha0: float
    truncation: int
    offsets: np.ndarray


def log_prior_normaliser(prior: Prior) -> float:
    """Log C(α₀) of all columns together, C as below Eq. (5.9)."""
    widths = np.diff(prior.offsets)
    return float((widths * gammaln(prior.alpha0) - gammaln(widths * prior.alpha0)).sum())


def value_evidence(counts: np.ndarray, sizes: np.ndarray, prior: Prior) -> np.ndarray:
    """Return per subspace what the values add to the bound at their best: log C(τ) − log C(α₀)."""
    widths = np.diff(prior.offsets)
    own = gammaln(counts + prior.alpha0).sum(axis=0)
    both = gammaln(sizes + prior.alpha0 * widths[:, None]).sum(axis=0)
    return own - both - log_prior_normaliser(prior)


def total_inertia(grams: list[np.ndarray], counts: Counts) -> float:
    """Return the rows' mean squared distance to their centroid under Grams of columns."""
    inertia = 0.0
    for a, gram in enumerate(grams):
        share = counts.value_counts[counts.span(a)] / counts.n
        inertia += float(share @ gram.diagonal() - share @ gram @ share)
    return inertia
