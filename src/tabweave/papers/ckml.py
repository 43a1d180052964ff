"""cKML as published [Zhu 2019, ch. 4], its negative eigenvalues included.

For comparison with :class:`tabweave.CKML`, whose distances are a metric; here the kernel is none.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from tabweave.columns.table import Table
from tabweave.counts.counts import Counts
from tabweave.counts.couplings import check_no_sets
from tabweave.embed import ckml
from tabweave.io.register import storable
from tabweave.space.value_tables import ValueTables, lookup_sum


@storable
class CKML(ckml.CKML):
    """Compare rows by the coupled kernel metric, its negative eigenvalues included.

    ``pairwise_distances``, ``value_distances``, ``explain`` and ``lookups`` give the published
    numbers, Eq. (4.5); ``transform`` and ``pairwise_kernel`` the nearest that vectors can have, see
    ``distortion_``. Set-valued columns are an error.

    Parameters
    ----------
    variant, schema, unknown, dtype
        As in :class:`tabweave.CKML`.

    Attributes
    ----------
    alpha_, beta_, psd_clip_, squares_, distortion_, counts_, tables_, blocks_, schema_
        As in :class:`tabweave.CKML`.

    Notes
    -----
    *Errata.* Theorem 4.2: ``exp(-z²)`` with the L1-like z of k_Ie is not a kernel. Proposition 4.2:
    on the same rows the distance violates the triangle inequality. After (4.5) the range
    ``√(2 - 2/e)`` holds for k_Ia alone; for k_O it is ``√(2 - 2/e²)``. Section 4.2.3: a column that
    is coupled to no other has k_Ie = 1/e for all pairs, also for a value with itself, and so
    differs by frequency alone; under ``"inter"`` not at all.

    Examples
    --------
    >>> from tabweave import papers
    >>> rows = {"x": list("vvwuu"), "y": list("aaabc")}
    >>> d = papers.CKML("inter").fit(rows).value_distances("x")
    >>> bool(d.loc["v", "u"] > d.loc["v", "w"] + d.loc["w", "u"])
    True
    """

    _missing_agrees: ClassVar[bool] = True
    _uncoupled_match: ClassVar[float] = float(np.exp(-1))

    def _learn(self, counts: Counts) -> ValueTables:
        check_no_sets(counts, "CKML as published")
        return super()._learn(counts)

    def pairwise_distances(self, X: Any, Y: Any = None) -> np.ndarray:
        """Eq. (4.5): return the distances between the rows of X and of Y (or X)."""
        left, right = self._read_pair(X, Y)
        ours = self._codes(left)
        theirs = ours if right is None else self._codes(right)
        return np.sqrt(lookup_sum(ours, theirs, self.learn().squares_))

    def value_distances(self, column: str) -> Any:
        """Return the distances between the values of a column, as a labelled pandas frame."""
        self.learn()
        i = self.counts_.vocabulary.index(column)
        return self._labelled(i, np.sqrt(self.squares_[i][:-1, :-1]))

    def _shares(self, left: Table, right: Table) -> dict[str, np.ndarray]:
        columns = zip(self.learn().squares_, self._codes(left), self._codes(right), strict=True)
        shares = [square[i, j] for square, i, j in columns]
        return dict(zip(self.counts_.names, shares, strict=True))

    def lookups(self) -> tuple[list[np.ndarray], bool]:
        """Return per column the squared distances of its values, unknown last, and True: a root."""
        return list(self.learn().squares_), True
