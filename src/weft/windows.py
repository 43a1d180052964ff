"""Windowed: any embedder on a stream, with a memory that keeps, fades or slides.

Windows of rows in, an embedder that has learned from what is remembered out. Learning waits until
it is asked for, so that a window costs its counting. ``save`` after any window, ``resume`` later:
the numbers are the same to the bit.
"""

from __future__ import annotations

from numbers import Integral
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted

from weft._base import ValueEmbedder
from weft._input import remember_names
from weft._memory import Memory, Resumable, check_forgetting, refuse_new_columns
from weft.counts import Counts
from weft.table import Schema, Table


class Windowed(Resumable, TransformerMixin, BaseEstimator):
    """Let an embedder follow a stream and forget what is old.

    Parameters
    ----------
    embedder : ValueEmbedder, optional
        What learns; :class:`~weft.Weave` by default. It is cloned, not changed. One that learns
        from whole rows (:class:`~weft.HELIC`, :class:`~weft.NonBEND`) cannot forget.
    decay : float, default=1.0
        What the counts of the past are multiplied by when a window comes: 1 keeps everything,
        0 learns from the last window only.
    window : int, optional
        Remember so many windows; the oldest is subtracted, exactly. Instead of ``decay``.
    refresh : int, default=1
        Learn anew after every so many windows; :meth:`transform` uses what was learned last.
        Counting goes on all the time.

    Attributes
    ----------
    embedder_ : ValueEmbedder
        The fitted embedder; its other methods (``explain``, ``value_distances``, ...) work here,
        too.
    counts_ : Counts
        What is remembered.
    n_windows_, n_rows_ : int
        The position in the stream: windows and rows so far.

    Notes
    -----
    A window may have new values and missing ones. One without rows changes nothing but the
    position. One with other columns is refused, the column named, and the model stays as it was.

    Examples
    --------
    >>> from weft import Counts, OneHot, Windowed
    >>> days = [{"color": ["red", "blue"]}, {"color": ["red"]}, {"color": ["green"]}]
    >>> stream = Windowed(OneHot(), window=2)
    >>> for day in days:
    ...     _ = stream.partial_fit(day)
    >>> stream.counts_ == Counts.of({"color": ["red", "green"]})
    True
    >>> stream.transform({"color": ["green"]})
    array([[1., 0.]])
    """

    def __init__(
        self,
        embedder: ValueEmbedder | None = None,
        *,
        decay: float = 1.0,
        window: int | None = None,
        refresh: int = 1,
    ) -> None:
        self.embedder = embedder
        self.decay = decay
        self.window = window
        self.refresh = refresh

    # -- learning --------------------------------------------------------------------------

    embedder_: ValueEmbedder
    _memory: Memory

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Start a stream with its first window."""
        self._check()
        embedder = self._new_embedder()
        if embedder._needs_rows and (self.decay != 1 or self.window or self.refresh != 1):
            raise ValueError(
                f"{type(embedder).__name__} learns from whole rows, and a stream forgets and waits "
                "by counts: use decay=1, window=None and refresh=1, or an embedder such as Weave"
            )
        table = embedder._read(X, Schema.of(embedder.schema))
        embedder.fit(table, y, sample_weight)
        return self._started(embedder, Memory(embedder.counts_, (), 1, table.n_rows))

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Go on with a window."""
        if "embedder_" not in vars(self):
            return self.fit(X, y, sample_weight)
        self._check()
        table = self.read(X)
        if self.embedder_._needs_rows:
            return self._passed_on(table, y, sample_weight)
        given = self._given(self.embedder_, y, sample_weight)
        memory = self._memory.add(table, *given, decay=self.decay, window=self.window)
        if memory.n_windows % self.refresh == 0 and memory.total is not self.embedder_.counts_:
            self.embedder_._hold(memory.total)
        self._memory = memory
        return self

    def _passed_on(self, table: Table, y: Any, sample_weight: Any) -> Self:
        """Let an embedder that needs rows have them: counts would leave it at the first window."""
        if table.n_rows:
            self.embedder_.partial_fit(table, y, sample_weight)
        seen, old = self.embedder_.counts_, self._memory
        self._memory = Memory(seen, (), old.n_windows + 1, old.n_rows + table.n_rows)
        return self

    def read(self, X: Any) -> Table:
        """Read a window under the schema of the stream: do it once to learn and to transform."""
        check_is_fitted(self, "embedder_")
        refuse_new_columns(X, self.embedder_.schema_)
        return self.embedder_._read_known(X)

    def _check(self) -> None:
        check_forgetting(self.decay, self.window)
        if not isinstance(self.refresh, Integral) or self.refresh < 1:
            raise ValueError(f"refresh={self.refresh!r} must be a number of windows of at least 1")

    def _new_embedder(self) -> ValueEmbedder:
        if self.embedder is None:
            from weft.learn.weave import Weave

            return Weave()
        if not isinstance(self.embedder, ValueEmbedder):
            raise TypeError(f"embedder={self.embedder!r}: give an embedder of weft")
        return clone(self.embedder)

    def _given(self, embedder: ValueEmbedder, y: Any, sample_weight: Any) -> tuple[Any, Any]:
        counted = embedder._uses_classes or embedder.counts_.classes is not None
        return (y if counted else None), sample_weight

    def _started(self, embedder: ValueEmbedder, memory: Memory) -> Self:
        if self.window is not None and not memory.recent:
            memory = Memory(memory.total, (memory.total,), memory.n_windows, memory.n_rows)
        self.embedder_, self._memory = embedder, memory
        remember_names(self, embedder.schema_)
        return self

    # -- using -----------------------------------------------------------------------------

    def transform(self, X: Any) -> np.ndarray:
        """Return the vector of each row; learns nothing."""
        check_is_fitted(self, "embedder_")
        return self.embedder_.transform(X)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return a name for each dimension of :meth:`transform`."""
        check_is_fitted(self, "embedder_")
        return self.embedder_.get_feature_names_out(input_features)

    def __getattr__(self, name: str) -> Any:
        # Only reached when absent here: what the fitted embedder has, this has.
        if not name.startswith("_") and "embedder_" in vars(self):
            return getattr(self.embedder_, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @property
    def counts_(self) -> Counts:
        """What is remembered; ``embedder_.counts_`` is what was learned from."""
        check_is_fitted(self, "embedder_")
        return self._memory.total

    @property
    def n_windows_(self) -> int:
        """Number of windows so far."""
        return self._memory.n_windows

    @property
    def n_rows_(self) -> int:
        """Number of rows so far."""
        return self._memory.n_rows

    def __sklearn_tags__(self) -> Any:
        tags = self._new_embedder().__sklearn_tags__()
        return tags

    # -- files -----------------------------------------------------------------------------

    def _resumed(
        self, memory: Memory, state: dict[str, Any], arrays: dict[str, np.ndarray]
    ) -> Self:
        older = state.get("learned")
        learned = memory.total if older is None else Counts._restored(older, arrays)
        return self._started(self._new_embedder().fit_counts(learned), memory)
