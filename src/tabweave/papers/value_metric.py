"""Value measures and cKML as published: tables of values whose distances no vectors have.

:class:`tabweave.ValueMetric` makes dissimilarities of the similarities of [Boriah 2008; Zhu 2019,
ch. 2]; here they are 1 − S, also on the diagonal, so that a row may differ from itself.
:class:`tabweave.CKML` is a metric; here [Zhu 2019, ch. 4] keeps its negative eigenvalues.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from tabweave.base import ValueEmbedder
from tabweave.columns.table import Table
from tabweave.counts.counts import Counts
from tabweave.counts.couplings import check_no_sets
from tabweave.embed import ckml, value_metric
from tabweave.engines.reading import read_pair
from tabweave.io.register import storable
from tabweave.measures.frequency import on_match
from tabweave.space.explanation import labelled
from tabweave.space.value_tables import ValueTables, lookup_sum


@storable
class ValueMetric(value_metric.ValueMetric):
    """Compare rows by the sum over columns of 1 − S, S the similarity that was published.

    ``pairwise_distances``, ``value_distances``, ``explain`` and ``lookups`` give these numbers: of
    ``rough``, ``goodall1`` to ``goodall4``, ``gambaryan`` and ``cos_intra`` they are not 0 between
    equal rows, of ``smirnov`` they can be negative. The vectors are those of 1 − S with a diagonal
    of 0. Measures that were published as distances, or whose matches are worth 1, are the same as
    in :class:`tabweave.ValueMetric`.

    Parameters
    ----------
    measure, schema, unknown, dtype
        As in :class:`tabweave.ValueMetric`.

    Attributes
    ----------
    counts_, measure_, dissimilarities_, tables_, distortion_, total_distortion_, blocks_, schema_
        As in :class:`tabweave.ValueMetric`.

    Notes
    -----
    *Errata.* (2.5), (2.7): a row is at a distance from itself, the larger the more common its
    values are (2.5), or the rarer (2.7). The thesis's tables are met by these numbers nevertheless.

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

    _missing_is_value: ClassVar[bool] = True

    def _learn(self, counts: Counts) -> None:
        super()._learn(counts)
        similarity = self.measure_.similarity
        if similarity is not None:
            self.dissimilarities_ = [1 - s for s in similarity(self.counts_)]
            zeroed = [np.maximum(on_match(0.0, d), 0.0) for d in self.dissimilarities_]
            self._scaling = value_metric.Scaling(zeroed, self.counts_, [])

    def pairwise_distances(self, X: Any, Y: Any = None) -> np.ndarray:
        """Sums of 1 − S between the rows of X and of Y (or X)."""
        if self.learn().measure_.form != "table":
            return super().pairwise_distances(X, Y)
        return summed_lookups(self, X, Y)


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

    _missing_is_value: ClassVar[bool] = True
    _uncoupled_match: ClassVar[float] = float(np.exp(-1))

    def _learn(self, counts: Counts) -> ValueTables:
        check_no_sets(counts, "CKML as published")
        return super()._learn(counts)

    def pairwise_distances(self, X: Any, Y: Any = None) -> np.ndarray:
        """Eq. (4.5): distances between the rows of X and of Y (or X)."""
        return np.sqrt(summed_lookups(self, X, Y))

    def value_distances(self, column: str) -> Any:
        """Distances between the values of a column, as a labelled pandas frame."""
        self.learn()
        i = self.counts_.vocabulary.index(column)
        return labelled(np.sqrt(self.squares_[i][:-1, :-1]), column, self.counts_.labels[i])

    def _shares(self, left: Table, right: Table) -> dict[str, np.ndarray]:
        codes = value_metric.value_codes(self, left), value_metric.value_codes(self, right)
        columns = zip(self.learn().squares_, *codes, strict=True)
        shares = [square[i, j] for square, i, j in columns]
        return dict(zip(self.counts_.names, shares, strict=True))

    def lookups(self) -> tuple[list[np.ndarray], bool]:
        """Per column the squared distances of its values, unknown last, and True: a root."""
        return list(self.learn().squares_), True


def summed_lookups(model: ValueEmbedder, X: Any, Y: Any) -> np.ndarray:
    """Return the sums over columns of a model's tables, between the rows of X and of Y (or X)."""
    left, right = read_pair(model, X, Y)
    codes = value_metric.value_codes(model, left)
    others = codes if right is None else value_metric.value_codes(model, right)
    return lookup_sum(codes, others, model.lookups()[0])
