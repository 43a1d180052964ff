"""Value measures as published [Boriah 2008; Zhu 2019, ch. 2]: 1 − S, also on the diagonal.

For comparison with :class:`tabweave.ValueMetric`, which makes dissimilarities of the same
similarities; here a row may differ from itself.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from tabweave.embed import value_metric
from tabweave.io.register import storable
from tabweave.measures.frequency import on_match
from tabweave.space.value_tables import lookup_sum


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

    _missing_agrees: ClassVar[bool] = True

    def _learn_all(self) -> None:
        super()._learn_all()
        similarity = self.measure_.similarity
        if similarity is not None:
            self.dissimilarities_ = [1 - s for s in similarity(self.counts_)]
            self.__dict__.pop("_scaling", None)

    def _scaled(self) -> value_metric.Scaling:
        if "_scaling" not in vars(self):
            zeroed = [np.maximum(on_match(0.0, d), 0.0) for d in self.dissimilarities_]
            self._scaling = value_metric.Scaling(zeroed, self.counts_)
        return self._scaling

    def pairwise_distances(self, X: Any, Y: Any = None) -> np.ndarray:
        """Return the sums of 1 − S between the rows of X and of Y (or X)."""
        if self.learn().measure_.form != "table":
            return super().pairwise_distances(X, Y)
        left, right = self._read_pair(X, Y)
        codes = self._codes(left)
        return lookup_sum(codes, codes if right is None else self._codes(right), self.lookups()[0])

    def _title(self) -> str:
        return f"papers.{super()._title()}"
