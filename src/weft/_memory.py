"""Memory: what a stream keeps of its windows, and how it goes to disk and comes back.

Windows of rows in, the counts to learn from out. Everything is kept, or older windows fade by a
factor, or the oldest are taken away again, exactly. A memory is never changed: a window that is
refused leaves the old one as it was.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from glob import escape
from numbers import Integral, Real
from os import PathLike
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator

from weft import _persist
from weft._append import append
from weft._store import KIND, Storable, opened
from weft.counts import Counts
from weft.table import Schema, Table


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
        """Return the memory after one more window; one without rows only moves the position."""
        if not table.n_rows:
            return replace(self, n_windows=self.n_windows + 1)
        if window is None:
            faded = self.total if decay == 1 else self.total.scaled(decay)
            total = append(faded, table, y, sample_weight=sample_weight)
            recent: tuple[Counts, ...] = ()
        else:
            latest = Counts.of(table, y, sample_weight=sample_weight)
            total, recent = self.total + latest, (*self.recent, latest)
            while len(recent) > window:
                total, recent = total - recent[0], recent[1:]
        return Memory(total, recent, self.n_windows + 1, self.n_rows + table.n_rows)


def check_forgetting(decay: float, window: int | None) -> None:
    """Refuse a way to forget that is none."""
    if not isinstance(decay, Real) or not 0 <= decay <= 1:
        raise ValueError(f"decay={decay!r} must be a number from 0 (forget all) to 1 (keep all)")
    if window is None:
        return
    if not isinstance(window, Integral) or isinstance(window, bool) or window < 1:
        raise ValueError(f"window={window!r} must be a number of windows of at least 1")
    if decay != 1:
        raise ValueError("decay and window are two ways to forget; use one of them")


def refuse_new_columns(X: Any, schema: Schema) -> None:
    """Refuse a window with columns that the stream did not have, by name."""
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
    known = set(schema.names)
    for name in map(str, names):
        if name not in known:
            raise ValueError(
                f"column {name!r} is new; the stream has {', '.join(map(repr, schema.names))}: "
                "drop it, or fit a new model"
            )


# -- files --------------------------------------------------------------------------------------


class Resumable(Storable):
    """Gives an estimator of streams ``save`` and ``resume``.

    A subclass implements ``_resumed(memory, state, arrays)`` for checkpoints of format 1, which
    held counts and no tables.
    """

    def save(self, path: str | PathLike[str]) -> None:
        """Write a checkpoint, whole or not at all; :meth:`resume` or :func:`weft.load` read it.

        Parameters
        ----------
        path : str or path
            The file; one that is there is replaced.
        """
        for left in Path(path).parent.glob(f"{escape(Path(path).name)}.*.part"):
            left.unlink(missing_ok=True)  # of a process that was killed: a stream has one writer
        super().save(path)

    def resume(self, path: str | PathLike[str]) -> Self:
        """Go on from a checkpoint of the same parameters; the numbers are the same to the bit."""
        header, arrays = _persist.read(path, KIND, "stream")
        if header["weft"] == "stream":
            return self._resumed(*_checkpoint(path, header, arrays, self))
        saved = opened(path, header, arrays)
        theirs = fingerprint(saved) if isinstance(saved, BaseEstimator) else {}
        _refuse_other(path, type(saved).__name__, theirs, self)
        vars(self).update((k, v) for k, v in vars(saved).items() if k not in theirs)
        return self

    def _resumed(self, memory: Memory, state: dict[str, Any], arrays: dict[str, Any]) -> Self:
        raise NotImplementedError


def _checkpoint(
    path: str | PathLike[str], header: dict[str, Any], arrays: dict[str, Any], estimator: Any
) -> tuple[Memory, dict[str, Any], dict[str, np.ndarray]]:
    """Return what a checkpoint of format 1 holds, if the estimator is the one that wrote it."""
    try:
        _refuse_other(path, header["estimator"], header["parameters"], estimator)
        counts = [
            Counts._restored(h, _under(arrays, f"counts{i}."))
            for i, h in enumerate(header["counts"])
        ]
        n_windows, n_rows = header["position"]
        state = header["state"], _under(arrays, "state.")
        return Memory(counts[0], tuple(counts[1:]), n_windows, n_rows), *state
    except (LookupError, TypeError, AttributeError) as error:
        raise ValueError(f"{path} is damaged: {error}") from error


def fingerprint(estimator: Any) -> dict[str, Any]:
    """Return the parameters as JSON values, enough to see that they are the same."""
    return {name: _plain(value) for name, value in estimator.get_params(deep=True).items()}


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, Integral | Real):
        return value.item() if hasattr(value, "item") else value
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    return type(value).__name__


def _refuse_other(path: Any, name: str, theirs: dict[str, Any], estimator: Any) -> None:
    if name != type(estimator).__name__:
        raise ValueError(f"{path} is of a {name}, not of a {type(estimator).__name__}")
    mine = fingerprint(estimator)
    for key in sorted(theirs):  # what is a parameter only since then has its default in the file
        if mine.get(key) != theirs[key]:
            raise ValueError(
                f"{path} was written with {key}={theirs[key]!r}, this one has "
                f"{key}={mine.get(key)!r}; resume with the same parameters"
            )


def _under(arrays: dict[str, np.ndarray], prefix: str) -> dict[str, np.ndarray]:
    return {k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)}
