"""UNICORN: couplings learned from data that keeps coming [Zhu 2019, ch. 8].

Dynamic couplings are counts added over time: every window is seen once, what was learned from the
windows before is its prior, and nothing has to be stored but counts. After each window `drift_`
says how much the couplings of each column have turned. A window costs its counting; learning
waits until it is asked for and costs O(V³).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse

from tabweave._compat import Interval
from tabweave.columns.frames import in_memory
from tabweave.columns.table import require_rows
from tabweave.columns.vocabulary import Vocabulary, union
from tabweave.counts.counts import Counts
from tabweave.counts.couplings import chosen_kernels
from tabweave.counts.merging import expand
from tabweave.embed.base import ValueEmbedder
from tabweave.embed.register import embedder
from tabweave.embed.untie import column_kernels, dependence, landmarked, represented
from tabweave.embed.weave import mean_one
from tabweave.embed.windowed import Memory, Remembering, check_window_columns
from tabweave.engines import is_distributed, read_with_classes
from tabweave.engines.reading import (
    count_first,
    count_table,
    hold_counts,
    read_fitted,
    read_rows,
    start_counts,
)
from tabweave.io.register import storable
from tabweave.space.value_tables import ValueTables


@storable
@dataclass(frozen=True)
class CouplingChange:
    """How far the couplings of a stream have turned: 0 not at all, 1 altogether; NaN at first."""

    overall: float
    columns: dict[str, float]


@embedder("unicorn", "couplings accumulated over a stream", "Zhu 2019, ch. 8")
class UNICORN(Remembering, ValueEmbedder):
    """Embed the rows of a stream by couplings accumulated over its windows.

    Parameters
    ----------
    n_clusters : int, optional
        Number of clusters k, if known: rows are projected on the 2k directions in which they
        differ most. The first windows may have fewer rows than that.
    kernels : mapping of name to kernel, optional
        By default 11 Gaussians and 3 polynomials, as in :class:`~tabweave.UNTIE`.
    decay : float, default=1.0
        What the counts of the past are multiplied by when a window comes. 1 keeps everything;
        0 is the static variant UNICORN-S, which learns from the last window only.
    align : bool, default=True
        Turn what is learned towards what was learned before, as :class:`~tabweave.Windowed` does:
        vectors of one row from different windows can be compared, distances stay as they are.
    schema, unknown, dtype
        As in :class:`~tabweave.OneHot`.

    Attributes
    ----------
    drift_ : CouplingChange
        ``1 - ξ`` of Eq. (8.19) after the last window: ``drift_.overall`` and, by name,
        ``drift_.columns``.
    history_ : list of dict
        For the last 100 windows: their number, rows, values seen so far and overall drift.
    counts_ : Counts
        What is remembered.
    n_windows_, n_rows_ : int
        The position in the stream.
    weights_, landmarks_, tables_, numbers_
        As in :class:`~tabweave.Weave`.
    space_, schema_
        As in :class:`~tabweave.OneHot`.

    Notes
    -----
    *Erratum.* (8.5), missing in print, is the merged conditional probability; in (8.19) ξ is a mean
    over all (column, value) terms. The objective (8.18), which
    :class:`tabweave.papers.UNICORN` has, is best at a single kernel of a single column: here
    the kernels of all couplings, each at unit inertia, are averaged on accumulated counts. Columns
    weigh ``∛ΣSU⁺``, how far they depend on the others: on a stream what is rare matters, and a
    factor of entropy, as in :class:`~tabweave.UNTIE`, would hide the columns that show it.

    A window may have new values and missing ones; one without rows only moves the position; one
    with other columns is an error that names the column, and the model stays as it was.

    Examples
    --------
    >>> from tabweave import UNICORN
    >>> from tabweave.datasets import led24
    >>> digits = led24(600, random_state=0)
    >>> stream = UNICORN(n_clusters=10)
    >>> for start in range(0, 600, 200):
    ...     _ = stream.partial_fit(digits.X[start : start + 200])
    >>> stream.transform(digits.X[:5]).shape
    (5, 20)
    >>> [h["window"] for h in stream.history_]
    [1, 2, 3]
    >>> 0 < stream.drift_.overall < 0.1
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **ValueEmbedder._parameter_constraints,
        "n_clusters": [Interval(Integral, 2, None, closed="left"), None],
        "decay": [Interval(Real, 0, 1, closed="both")],
        "align": ["boolean"],
        "kernels": [Mapping, None],
    }

    def __init__(
        self,
        n_clusters: int | None = None,
        *,
        kernels: Any = None,
        decay: float = 1.0,
        align: bool = True,
        schema: Any = None,
        unknown: str = "centroid",
        dtype: str = "float64",
    ) -> None:
        self.n_clusters = n_clusters
        self.kernels = kernels
        self.decay = decay
        self.align = align
        super().__init__(schema=schema, unknown=unknown, dtype=dtype)

    # -- windows ---------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Start a stream with its first window."""
        self._validate_params()
        return self._first_window(X, y, sample_weight).learn()

    def fit_counts(self, counts: Counts) -> Self:
        """Start a stream with counts of earlier rows."""
        self._validate_params()
        return start_counts(self, counts)._begin(int(counts.n)).learn()

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Eqs. (8.1)–(8.5): add a window to what was seen before."""
        self._validate_params()
        if not hasattr(self, "_memory"):
            return self._first_window(X, y, sample_weight)
        X, y = read_with_classes(X, y)
        check_window_columns(X, self.schema_)
        table = read_fitted(self, X)
        memory = self._memory.add(table, None, sample_weight, decay=self.decay)
        if memory.total is not self.counts_:
            self._advance(memory.total)
        self._memory = memory
        return self._note(table.n_rows)

    def _first_window(self, X: Any, y: Any, sample_weight: Any) -> Self:
        if not in_memory(X) and is_distributed(X):
            counts = count_first(self, X, y, sample_weight)
            return start_counts(self, counts)._begin(int(counts.n))
        X, y = read_with_classes(X, y)
        table = read_rows(self, X)
        require_rows(table)
        return start_counts(self, count_table(self, table, y, sample_weight))._begin(table.n_rows)

    def _begin(self, n_rows: int) -> Self:
        self._memory = Memory(self.counts_, (), 1, n_rows)
        unmeasured = float("nan")
        self.drift_ = CouplingChange(unmeasured, dict.fromkeys(self.counts_.names, unmeasured))
        self.history_: list[dict[str, Any]] = []
        return self._note(n_rows)

    def _advance(self, counts: Counts) -> None:
        """Go on to the counts after one more window."""
        self.drift_ = change(self.counts_, counts, self.decay)
        hold_counts(self, counts, align=self.align)

    def _note(self, n_rows: int, *, max_windows: int = 100) -> Self:
        entry = {
            "window": self._memory.n_windows,
            "rows": n_rows,
            "values": int(self.counts_.sizes.sum()),
            "drift": self.drift_.overall if n_rows else float("nan"),
        }
        self.history_ = [*self.history_, entry][-max_windows:]
        return self

    # -- learning --------------------------------------------------------------------------

    def _learn(self, counts: Counts) -> ValueTables:
        weights = stream_weights(counts)
        self.weights_ = dict(zip(counts.names, weights.tolist(), strict=True))
        columns = column_kernels(counts, chosen_kernels(self.kernels), smoothing=5.0)
        self.landmarks_ = landmarked(columns)
        tables = [c.mean_factors().scaled(w) for c, w in zip(columns, weights, strict=True)]
        return represented(counts, tables, self.n_clusters)


def stream_weights(counts: Counts) -> np.ndarray:
    """``w_a ∝ (Σ_b SU⁺_ab)^⅓``, mean 1, of the columns that vary."""
    entropy, tied = dependence(counts)
    return mean_one(np.where(entropy > 0, tied, 0) ** (2 / 3))


def change(before: Counts, after: Counts, decay: float = 1.0) -> CouplingChange:
    """Eq. (8.19): 1 minus the mean cosine of the coupling vectors ``[f(v), p(v|w)…]``.

    Taken over the values of the new window, those that count more than before. A value that was
    not seen before has turned altogether.
    """
    label_pairs = zip(after.labels, before.labels, strict=True)
    vocabulary = Vocabulary(
        after.vocabulary.names, tuple(tuple(union(a, b)) for a, b in label_pairs)
    )
    column = np.repeat(np.arange(len(vocabulary)), vocabulary.sizes)
    old, new = (expand(c, vocabulary) for c in (before, after))
    c_old, c_new = (np.asarray(pairs.diagonal(), np.float64) for pairs in (old, new))
    f_old, f_new = c_old / before.n, c_new / after.n
    p_old, p_new = (given(p, c, column) for p, c in ((old, c_old), (new, c_new)))
    dot = f_old * f_new + _row_sums(p_old, p_new)
    length = np.sqrt((f_old**2 + _row_sums(p_old, p_old)) * (f_new**2 + _row_sums(p_new, p_new)))
    turned = 1 - np.minimum(dot / np.where(length > 0, length, 1), 1)
    occurred = c_new > decay * c_old * (1 + 1e-9)
    share = np.bincount(column, occurred, len(vocabulary))
    by_column = np.bincount(column, occurred * turned, len(vocabulary)) / np.where(
        share > 0, share, 1
    )
    overall = float(turned[occurred].mean()) if occurred.any() else 0.0
    return CouplingChange(overall, dict(zip(after.names, by_column.tolist(), strict=True)))


def given(pairs: Any, count: np.ndarray, column: np.ndarray) -> Any:
    """Eqs. (8.3)–(8.6): ``p(v|w)`` for w of the other columns, 0 for those of its own."""
    scale = 1 / np.where(count > 0, count, 1)
    if not sparse.issparse(pairs):
        return np.where(column[:, None] == column, 0, pairs * scale)
    coo = pairs.tocoo()
    row, col = coo.coords
    others = column[row] != column[col]
    data = (coo.data * scale[col])[others]
    return sparse.coo_array((data, (row[others], col[others])), shape=coo.shape).tocsr()


def _row_sums(a: Any, b: Any) -> np.ndarray:
    if sparse.issparse(a):
        return np.asarray(a.multiply(b).sum(axis=1)).ravel()
    return np.einsum("ij,ij->i", a, b)
