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
from typing import Any

import numpy as np

from weft import _persist
from weft._append import append
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


def write_checkpoint(
    path: str | PathLike[str],
    estimator: Any,
    memory: Memory,
    state: dict[str, Any] | None = None,
    arrays: dict[str, np.ndarray] | None = None,
) -> None:
    """Write a stream's memory, parameters and whatever else it needs to go on, in one file."""
    stored = [c._stored() for c in (memory.total, *memory.recent)]
    header = {
        "estimator": type(estimator).__name__,
        "parameters": fingerprint(estimator),
        "position": [memory.n_windows, memory.n_rows],
        "counts": [h for h, _ in stored],
        "state": state or {},
    }
    parts = {f"counts{i}.{k}": v for i, (_, a) in enumerate(stored) for k, v in a.items()}
    parts |= {f"state.{k}": v for k, v in (arrays or {}).items()}
    for left in Path(path).parent.glob(f"{escape(Path(path).name)}.*.part"):
        left.unlink(missing_ok=True)  # of a process that was killed: a stream has one writer
    _persist.write(path, "stream", header, parts)


def read_checkpoint(
    path: str | PathLike[str], estimator: Any
) -> tuple[Memory, dict[str, Any], dict[str, np.ndarray]]:
    """Read what :func:`write_checkpoint` wrote, if the estimator is the one that wrote it."""
    header, arrays = _persist.read(path, "stream")
    try:
        _refuse_other(path, header, estimator)
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


def _refuse_other(path: Any, header: dict[str, Any], estimator: Any) -> None:
    if header["estimator"] != type(estimator).__name__:
        raise ValueError(
            f"{path} is of a {header['estimator']}, not of a {type(estimator).__name__}"
        )
    mine, theirs = fingerprint(estimator), header["parameters"]
    for name in mine.keys() | theirs.keys():
        if mine.get(name) != theirs.get(name):
            raise ValueError(
                f"{path} was written with {name}={theirs.get(name)!r}, this one has "
                f"{name}={mine.get(name)!r}; resume with the same parameters"
            )


def _under(arrays: dict[str, np.ndarray], prefix: str) -> dict[str, np.ndarray]:
    return {k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)}
