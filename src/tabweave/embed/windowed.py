"""Windowed: any embedder on a stream, with a memory that keeps, fades or slides.

Windows of rows in, an embedder that has learned from what is remembered out. Learning waits until
it is asked for, so that a window costs its counting. ``save`` after any window, ``resume`` later:
the numbers are the same to the bit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from numbers import Integral, Real
from os import PathLike
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted

from tabweave._compat import Interval
from tabweave.base import Estimator
from tabweave.columns.column import Schema
from tabweave.columns.frames import joined_name
from tabweave.columns.table import Table, remember_names
from tabweave.counts.counts import Counts, append, checked_weight
from tabweave.embed.base import ValueEmbedder, learns_from_rows
from tabweave.embed.register import embedder
from tabweave.embed.weave import Weave
from tabweave.engines.reading import hold_counts, needs_classes, read_fitted, read_rows
from tabweave.io.files import remove_leftovers
from tabweave.io.register import storable
from tabweave.io.store import Storable, load
from tabweave.updates import completing, exclusive, updating


class Resumable(Storable):
    """Gives an estimator of streams ``save`` and ``resume``."""

    get_params: Callable[..., dict[str, Any]]

    @exclusive
    def save(self, path: str | PathLike[str], *, compress: bool = True) -> None:
        """Write a checkpoint, whole or not at all; :meth:`resume` or :func:`tabweave.load` read it.

        Parameters
        ----------
        path : str or path
            The file; one that is there is replaced.
        compress : bool, default=True
            Whether arrays are packed.
        """
        remove_leftovers(path)  # of a process that was killed: a stream has one writer
        super().save(path, compress=compress)

    @updating
    def resume(self, path: str | PathLike[str]) -> Self:
        """Go on from a checkpoint of the same parameters; the numbers are the same to the bit."""
        saved = load(path)
        if type(saved) is not type(self):
            expected, actual = map(_named, (type(self), type(saved)))
            raise ValueError(f"{path}: expected a {expected}, got a {actual}")
        old, new = (_comparable(model.get_params(deep=True)) for model in (saved, self))
        for name in sorted(old):
            if new.get(name) != old[name]:
                raise ValueError(
                    f"{path}: expected {name}={new.get(name)!r}, got {name}={old[name]!r}; resume "
                    "with the same parameters"
                )
        names = saved.get_params(deep=False)
        parameters = {name: value for name, value in self.__dict__.items() if name in names}
        learned = {name: value for name, value in saved.__dict__.items() if name not in names}
        self.__dict__ = parameters | learned
        return self


class Remembering(Resumable):
    """Gives an estimator that holds a :class:`Memory` its position in the stream."""

    _memory: Memory

    @property
    def n_windows_(self) -> int:
        """Number of windows so far."""
        return self._memory.n_windows

    @property
    def n_rows_(self) -> int:
        """Number of rows so far."""
        return self._memory.n_rows


@embedder(
    "windowed",
    "any embedder on the last windows of a stream",
    "Zhu 2019, ch. 8",
    offered="python",
    page="unicorn",
)
class Windowed(Remembering, TransformerMixin, Estimator):
    """Fit an embedder to a stream of windows, with decay or a sliding window.

    Parameters
    ----------
    embedder : ValueEmbedder, optional
        The embedder; :class:`~tabweave.Weave` by default. It is cloned, not changed. Embedders that
        learn from whole rows (:class:`~tabweave.HELIC`, :class:`~tabweave.NonBEND`) cannot forget.
    decay : float, default=1.0
        Factor by which earlier counts are multiplied for each new window: 1 keeps everything, 0
        learns from the last window only.
    window : int, optional
        Number of windows to remember; the oldest is subtracted exactly. Instead of ``decay``.
    refresh : int, default=1
        Learn again after this many windows; until then :meth:`transform` uses what was learned
        last. Every window is counted.
    align : bool, default=True
        Rotate the vectors towards those before, so that vectors of one row from different windows
        can be compared. Distances are not affected.

    Attributes
    ----------
    embedder_ : ValueEmbedder
        The fitted embedder; its other methods (``explain``, ``value_distances``, ...) work here,
        too.
    counts_ : Counts
        The counts of the windows that are remembered.
    n_windows_, n_rows_ : int
        The position in the stream: windows and rows so far.

    Notes
    -----
    Axes are arbitrary up to a rotation, and a rotation is what two windows would differ by most.
    With ``align``, each column's values (of projected rows all columns together) are turned by
    orthogonal Procrustes to where the values that both windows know were before, weighted by their
    counts. A column keeps its dimensions, filled with zeros where fewer are needed, and gets more
    as values come: compare by the names of :meth:`get_feature_names_out`, or take an embedder with
    ``n_components``, whose number of dimensions is fixed. What still moves was learned anew.

    A window may have new values and missing ones. One without rows changes nothing but the
    position. One with other columns is an error that names the column, and the model stays as it
    was.

    Examples
    --------
    >>> from tabweave import Counts, OneHot, Windowed
    >>> days = [{"color": ["red", "blue"]}, {"color": ["red"]}, {"color": ["green"]}]
    >>> stream = Windowed(OneHot(), window=2)
    >>> for day in days:
    ...     _ = stream.partial_fit(day)
    >>> stream.counts_ == Counts.of({"color": ["red", "green"]})
    True
    >>> stream.transform({"color": ["green"]})
    array([[1., 0.]])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "embedder": [ValueEmbedder, None],
        "decay": [Interval(Real, 0, 1, closed="both")],
        "window": [Interval(Integral, 1, None, closed="left"), None],
        "refresh": [Interval(Integral, 1, None, closed="left")],
        "align": ["boolean"],
    }
    embedder_: ValueEmbedder

    def __init__(
        self,
        embedder: ValueEmbedder | None = None,
        *,
        decay: float = 1.0,
        window: int | None = None,
        refresh: int = 1,
        align: bool = True,
    ) -> None:
        self.embedder = embedder
        self.decay = decay
        self.window = window
        self.refresh = refresh
        self.align = align

    # -- learning --------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Start a stream with its first window."""
        return self._first_window(X, y, sample_weight).learn()

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Add a window; the embedder is refitted by :meth:`learn`, or when a method needs it."""
        if not hasattr(self, "embedder_"):
            return self._first_window(X, y, sample_weight)
        self._check_forgetting()
        table, embedder, memory = self.read(X), self.embedder_, self._memory
        if learns_from_rows(embedder):  # counts would leave it at the first window
            if table.n_rows:
                embedder.partial_fit(table, y, sample_weight)
            n_rows = memory.n_rows + table.n_rows
            self._memory = Memory(embedder.counts_, (), memory.n_windows + 1, n_rows)
            return self
        if not needs_classes(embedder) and embedder.counts_.classes is None:
            y = None
        if table.n_rows:
            table, y = embedder._countable(table, y)
        memory = memory.add(table, y, sample_weight, decay=self.decay, window=self.window)
        if memory.n_windows % self.refresh == 0 and memory.total is not embedder.counts_:
            hold_counts(embedder, memory.total, align=self.align)
        self._memory = memory
        return self

    @completing
    def learn(self) -> Self:
        """Refit the embedder to the windows seen so far, if there are new ones."""
        check_is_fitted(self, "embedder_")
        self.embedder_.learn()
        return self

    def _first_window(self, X: Any, y: Any, sample_weight: Any) -> Self:
        self._check_forgetting()
        embedder = self._new_embedder()
        if learns_from_rows(embedder) and (self.decay != 1 or self.window or self.refresh != 1):
            raise ValueError(
                f"{type(embedder).__name__} learns from whole rows, but decay, window and "
                f"refresh work on counts: use decay=1, window=None and refresh=1, or an embedder "
                f"such as Weave"
            )
        table = read_rows(embedder, X)
        embedder.partial_fit(table, y, sample_weight)
        counts = embedder.counts_
        recent = () if self.window is None else (counts,)
        self.embedder_, self._memory = embedder, Memory(counts, recent, 1, table.n_rows)
        remember_names(self, embedder.schema_)
        return self

    def read(self, X: Any) -> Table:
        """Read a window under the schema of the stream: do it once to learn and to transform."""
        check_is_fitted(self, "embedder_")
        check_window_columns(X, self.embedder_.schema_)
        return read_fitted(self.embedder_, X)

    def _check_forgetting(self) -> None:
        self._validate_params()
        if self.window is not None and self.decay != 1:
            raise ValueError(
                f"expected decay or window, got decay={self.decay} and window={self.window}: they "
                "are two ways to forget"
            )

    def _new_embedder(self) -> ValueEmbedder:
        return Weave() if self.embedder is None else clone(self.embedder)

    # -- using -----------------------------------------------------------------------------

    def transform(self, X: Any) -> np.ndarray:
        """Vector of each row, from the last fit."""
        check_is_fitted(self, "embedder_")
        return self.embedder_.transform(X)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """A name for each dimension of :meth:`transform`."""
        check_is_fitted(self, "embedder_")
        return self.embedder_.get_feature_names_out(input_features)

    def __getattr__(self, name: str) -> Any:
        # Only reached when absent here: what the fitted embedder has, this has.
        if not name.startswith("_") and "embedder_" in self.__dict__:
            return getattr(self.embedder_, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @property
    def counts_(self) -> Counts:
        """The counts that are remembered; the embedder was fitted to ``embedder_.counts_``."""
        check_is_fitted(self, "embedder_")
        return self._memory.total

    def __sklearn_tags__(self) -> Any:
        return self._new_embedder().__sklearn_tags__()


# -- memory -------------------------------------------------------------------------------------


@storable
@dataclass(frozen=True, eq=False)
class Memory:
    """The counts of a stream, and its position.

    Attributes
    ----------
    total : Counts
        What is remembered.
    recent : tuple of Counts
        The windows in it, oldest first, if they will be taken away again.
    n_windows, n_rows : int
        How many windows and rows have come by, forgotten ones too.
    """

    total: Counts = field(default_factory=Counts)
    recent: tuple[Counts, ...] = ()
    n_windows: int = 0
    n_rows: int = 0

    def add(
        self,
        table: Table,
        y: Any = None,
        sample_weight: Any = None,
        *,
        decay: float = 1.0,
        window: int | None = None,
    ) -> Memory:
        """Memory after one more window.

        One without rows, or whose rows all weigh nothing, only moves the position.
        """
        n_windows, n_rows = self.n_windows + 1, self.n_rows + table.n_rows
        weight = checked_weight(sample_weight, table.n_rows)
        if not (table.n_rows if weight is None else weight.any()):
            return replace(self, n_windows=n_windows, n_rows=n_rows)
        if window is None:
            older = self.total if decay == 1 else self.total.scaled(decay)
            total = append(older, table, y, sample_weight=sample_weight)
            recent: tuple[Counts, ...] = ()
        else:
            latest = Counts.of(table, y, sample_weight=sample_weight)
            total, recent = self.total + latest, (*self.recent, latest)
            while len(recent) > window:
                total, recent = total - recent[0], recent[1:]
            if total.is_widened:  # by numbers that are gone
                total = sum(recent, Counts())
        return Memory(total, recent, n_windows, n_rows)


def check_window_columns(X: Any, schema: Schema) -> None:
    """Raise for a window with a column that the stream did not have."""
    if not schema.named or isinstance(X, Table):
        return
    if isinstance(X, Mapping):
        names = list(X)
    elif isinstance(X, list | tuple):
        names = [name for row in X if isinstance(row, Mapping) for name in row]
    elif isinstance(X, np.ndarray):
        names = list(X.dtype.names or ())
    else:  # pyarrow says column_names, and means something else by columns
        names = list(getattr(X, "column_names", getattr(X, "columns", ())))
    expected = schema.given
    for name in (joined_name(n) if isinstance(n, tuple) else str(n) for n in names):
        of_record = any(expected_name.startswith(f"{name}.") for expected_name in expected)
        if name not in expected and not of_record:
            raise ValueError(
                f"column {name!r} is new: expected {', '.join(map(repr, expected))}, the "
                "columns of the stream; drop it, or fit a new model"
            )


# -- files --------------------------------------------------------------------------------------


def _comparable(value: Any) -> Any:
    """A parameter as plain values, enough to see whether two are the same."""
    if value is None or isinstance(value, str | bool | Real):
        return value
    if isinstance(value, Mapping):
        return {key: _comparable(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_comparable(part) for part in value]
    return type(value).__name__


def _named(cls: type) -> str:
    """Name of a class; of those as published, with their room."""
    room = "papers." if cls.__module__.startswith("tabweave.papers") else ""
    return room + cls.__name__
