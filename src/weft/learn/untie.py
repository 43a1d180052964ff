"""UNTIE: unsupervised heterogeneous coupling learning. [Zhu 2019, ch. 7]

Learns how much each coupling of each column should count, by asking which kernels of which
couplings agree with the clusters that all of them together suggest. The paper does so by
mini-batches of an n × n kernel; here every step is exact over all objects, from counts, at a cost
that does not depend on their number.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from weft import couplings
from weft._base import ValueEmbedder
from weft.counts import Counts
from weft.learn.weave import column_weights
from weft.spaces import frequencies
from weft.spectra import centred_counts, principal_axes, projected
from weft.tables import ValueTables


class UNTIE(ValueEmbedder):
    """Embed categorical rows by couplings whose weights are learned without labels.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters that the weights should bring out.
    objective : {"entropic", "paper"}, default="entropic"
        ``"entropic"`` keeps each column's total weight and spreads it over the column's kernels
        by how much of their inertia the clusters explain, softened by ``temperature``.
        ``"paper"`` is Eq. (7.22) as printed, for the record; see the notes.
    temperature : float, default=0.1
        How evenly a column's weight is spread; large values give all kernels the same.
    smoothing : float, default=5.0
        Pseudo-counts of the marginal in each conditional probability (``"entropic"`` only).
    kernels : mapping of name to kernel, optional
        By default 11 Gaussians and 3 polynomials.
    max_iter : int, default=50
        At most so many alternations.
    schema, unknown
        As in :class:`~weft.OneHot`.

    Attributes
    ----------
    weights_ : dict of str to dict
        For each column, the weight of each ``space/kernel``.
    objective_ : list of float
        The objective after each alternation; it never rises.
    landmarks_ : dict of str to int
        The columns with many values, seen through so many of them; their kernels weigh equally.

    Notes
    -----
    *Erratum.* Eq. (7.22) is smallest at ω = 0: its gradient in ω, the inertia that the clusters
    leave unexplained, is never negative. The printed procedure, Adam from ω = 1, merely walks that
    way until its steps run out. Here each kernel is centred and scaled to unit inertia, the weight
    W_a of a column is fixed (as in :class:`~weft.Weave`), and ``τ Σ W_a β log β`` is added:
    minimising over β on each column's simplex gives ``β ∝ exp(alignment / τ)``, over H the top
    eigenvectors. Both steps are exact, so the objective falls until it stands.

    Examples
    --------
    >>> from weft import UNTIE
    >>> from weft.datasets import led24
    >>> digits = led24(500, random_state=0)
    >>> untie = UNTIE(n_clusters=10).fit(digits.X)
    >>> untie.transform(digits.X).shape
    (500, 20)
    >>> all(a >= b for a, b in zip(untie.objective_, untie.objective_[1:]))
    True
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        objective: Literal["entropic", "paper"] = "entropic",
        temperature: float = 0.1,
        smoothing: float = 5.0,
        kernels: Any = None,
        max_iter: int = 50,
        schema: Any = None,
        unknown: str = "centroid",
        dtype: str = "float64",
    ) -> None:
        super().__init__(schema=schema, unknown=unknown, dtype=dtype)
        self.n_clusters = n_clusters
        self.objective = objective
        self.temperature = temperature
        self.smoothing = smoothing
        self.kernels = kernels
        self.max_iter = max_iter
