"""Rows sampled from a mixture that is learned from pair counts.

Rows of a mixture are independent within each of its components. Its tables of pairs are then sums
over components, which a composite likelihood fits to the counts of all pairs at once: the rows
themselves are not needed, and private counts give rows that may be shared.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from tabweave._compat import require
from tabweave.counts.counts import Counts, counted_schema
from tabweave.counts.merging import expand, with_classes
from tabweave.counts.private import spans_of
from tabweave.io.register import storable

N_ITERATIONS = 100  # more follow the noise of private counts
MAX_VALUES = 20_000  # a matrix of values by values is held


@storable
@dataclass(frozen=True, eq=False)
class PairMixture:
    """A mixture of independent columns whose pair tables are those of counts.

    Build one with :meth:`PairMixture.of`.

    Attributes
    ----------
    names : tuple of str
        The columns; of counts with classes, "y" is the last one.
    labels : tuple of tuple
        The values of each column; None is a missing cell.
    weights : ndarray of shape (n_components,)
        The share of each component.
    shares : ndarray of shape (V, n_components)
        The share of each value within its column, in each component.

    Examples
    --------
    >>> from tabweave import Counts
    >>> from tabweave.tasks import PairMixture
    >>> rows = {"color": ["red", "blue"] * 50, "size": ["S", "L"] * 50}
    >>> mixture = PairMixture.of(Counts.of(rows), n_components=4, random_state=0)
    >>> frame = mixture.sample(200, random_state=0)
    >>> sorted(set(zip(frame["color"], frame["size"])))
    [('blue', 'L'), ('red', 'S')]
    """

    names: tuple[str, ...]
    labels: tuple[tuple[Any, ...], ...]
    weights: np.ndarray
    shares: np.ndarray

    @classmethod
    def of(cls, counts: Counts, n_components: int = 100, *, random_state: Any = 0) -> PairMixture:
        """Learn from the counts of categories, private ones too.

        Parameters
        ----------
        counts : Counts
            Counts of categories. Numbers are cut into bins before: see
            :func:`tabweave.public_bins`.
        n_components : int, default=100
            Number of components; more than are needed do no harm.
        random_state : int, RandomState or None, default=0
            Where learning starts.
        """
        schema = counted_schema(counts)
        for column in schema.columns:
            if column.is_set or list(column.parts.values()) != [None]:
                raise ValueError(
                    f"column {column.name!r}: expected categories, got kind {column.kind!r}; cut "
                    f"it first: tabweave.public_bins(rows, {{{column.name!r}: [...]}})"
                )
        vocabulary = with_classes(counts)
        if not schema.coupled or vocabulary.n_values > MAX_VALUES:
            raise ValueError(
                f"expected pair counts of at most {MAX_VALUES:,} values, got "
                f"{vocabulary.n_values:,} values in {len(schema)} columns; leave some out"
            )
        pairs = expand(counts, vocabulary)
        pairs = np.asarray(pairs.toarray() if hasattr(pairs, "toarray") else pairs, np.float64)
        spans = spans_of(vocabulary.labels)
        weights, shares = fit_mixture(pairs, spans, int(n_components), random_state)
        return cls(tuple(vocabulary.names), tuple(vocabulary.labels), weights, shares)

    def sample(self, n_rows: int, random_state: Any = None) -> Any:
        """Rows as a pandas frame.

        Parameters
        ----------
        n_rows : int
            How many.
        random_state : int, RandomState or None, default=None
            Makes the rows the same each time.
        """
        pandas = require("pandas", "frames")
        rng = check_random_state(random_state)
        component = drawn(self.weights, n_rows, rng)
        members = [np.flatnonzero(component == k) for k in range(len(self.weights))]
        columns = {}
        for name, labels, span in zip(self.names, self.labels, spans_of(self.labels), strict=True):
            codes = np.empty(n_rows, np.intp)
            for rows, shares in zip(members, self.shares[span].T, strict=True):
                codes[rows] = drawn(shares, len(rows), rng)
            values = np.empty(len(labels), object)
            values[:] = labels
            columns[name] = pandas.Series(values[codes], dtype=object).infer_objects()
        return pandas.DataFrame(columns)


def drawn(shares: np.ndarray, n: int, rng: np.random.RandomState) -> np.ndarray:
    """Numbers of shares, each as often as expected but for less than one, in random order.

    Systematic sampling (Madow 1944): independent draws would add noise of their own.
    """
    points = (rng.random_sample() + np.arange(n)) / max(n, 1) * shares.sum()
    codes = np.searchsorted(shares.cumsum(), points, "right")
    return rng.permutation(np.minimum(codes, len(shares) - 1))


def fit_mixture(
    pairs: np.ndarray, spans: list[slice], n_components: int, random_state: Any
) -> tuple[np.ndarray, np.ndarray]:
    """Composite likelihood of all pairs of columns by EM (Lindsay 1988; Dempster et al. 1977).

    With shares T (V × components) and weights w, the model of a pair of values is (T diag(w) Tᵀ);
    a step multiplies ``T diag(w)`` by ``R T``, where R is counts over model, between columns only.
    """
    rng = check_random_state(random_state)
    joint = pairs / max(pairs.diagonal()[spans[0]].sum(), 1e-300)
    frequencies = joint.diagonal().copy()
    if len(spans) > 1:  # of a single column its margin is all there is
        for span in spans:
            joint[span, span] = 0
    starts = [span.start for span in spans]
    column = np.repeat(np.arange(len(spans)), [span.stop - span.start for span in spans])
    shares = (frequencies[:, None] + 1e-9) * rng.gamma(1.0, size=(len(joint), n_components))
    shares /= np.add.reduceat(shares, starts)[column]
    weights = np.full(n_components, 1 / n_components)
    for _ in range(N_ITERATIONS):
        model = (shares * weights) @ shares.T
        ratio = np.divide(joint, model, out=np.zeros_like(joint), where=joint > 0)
        expected = shares * weights * (ratio @ shares)
        weights = expected.sum(0) / expected.sum()
        sums = np.add.reduceat(expected, starts)[column]
        shares = np.divide(expected, sums, out=shares, where=sums > 0)
    return weights, shares
