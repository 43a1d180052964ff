"""River: an embedder of tabweave where river expects a transformer.

Rows come one by one as dicts, or in small frames; they are gathered into windows, and the embedder
learns a window at a time. What it gives back are dicts of numbers, which river's models take.
Works without river, too; with it, the adapter is a `river.base.MiniBatchTransformer`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sklearn.base import clone

from tabweave._compat import require
from tabweave.columns.table import Table
from tabweave.embed.windowed import Windowed, check_window_columns
from tabweave.updates import exclusive

try:  # a soft base class: pipelines of river ask for theirs
    from river.base import MiniBatchTransformer as _Base
except ImportError:
    _Base = object


class RiverEmbedder(_Base):
    """Make any embedder of tabweave a transformer of river.

    A key that a row lacks is a missing value; a key that the stream does not have is refused.

    Parameters
    ----------
    embedder : UNICORN, Windowed or ValueEmbedder, optional
        What learns; ``Windowed()`` by default. It is cloned, not changed.
    window_size : int, default=100
        How many rows of `learn_one` make a window. Rows that wait are learned, if need be, before
        the first `transform_one`.

    Attributes
    ----------
    model : object
        The embedder as far as it has learned.

    Examples
    --------
    >>> from tabweave import OneHot
    >>> from tabweave.tasks.river import RiverEmbedder
    >>> stream = RiverEmbedder(OneHot(), window_size=2)
    >>> for row in [{"color": "red"}, {"color": "blue"}]:
    ...     stream.learn_one(row)
    >>> stream.transform_one({"color": "red"})
    {'color_blue': 0.0, 'color_red': 1.0}
    """

    def __init__(self, embedder: Any = None, window_size: int = 100) -> None:
        if not isinstance(window_size, int) or window_size < 1:
            raise ValueError(f"expected window_size to be a whole number >= 1, got {window_size!r}")
        self.embedder = embedder
        self.window_size = window_size
        self.model = Windowed() if embedder is None else clone(embedder)
        self._waiting: list[Mapping[str, Any]] = []
        self._fitted = False

    @exclusive
    def learn_one(self, x: Mapping[str, Any]) -> None:
        """Learn from a row, with the others of its window."""
        self._waiting.append(self._complete(x))
        if len(self._waiting) >= self.window_size:
            self.flush()

    @exclusive
    def learn_many(self, X: Any) -> None:
        """Learn from a frame as one window, after the rows that wait."""
        self.flush()
        if len(X) or self._fitted:
            self.model.partial_fit(X)
            self._fitted = True

    @exclusive
    def flush(self) -> None:
        """Learn from the rows that wait.

        If that raises, they wait on, but for those that cannot be read as the stream has been.
        """
        if not self._waiting:
            return
        try:
            self.model.partial_fit(self._waiting)
        except (TypeError, ValueError):
            self._waiting = [row for row in self._waiting if self._is_readable(row)]
            raise
        self._waiting = []
        self._fitted = True

    def _is_readable(self, row: Mapping[str, Any]) -> bool:
        """Whether a row by itself is one of the stream, or of any stream at first."""
        try:
            return bool(Table.of([row], self.model.schema_ if self._fitted else None))
        except (TypeError, ValueError):
            return False

    def transform_one(self, x: Mapping[str, Any]) -> dict[str, float]:
        """The vector of a row as a dict; empty while nothing was learned."""
        if not self._fitted:
            self.flush()
        if not self._fitted:
            return {}
        vector = self.model.transform([self._complete(x)])[0]
        return dict(zip(self.model.get_feature_names_out().tolist(), vector.tolist(), strict=True))

    def _complete(self, x: Mapping[str, Any]) -> dict[str, Any]:
        """A row with all columns of the stream; refuse others while the row is at hand."""
        if not isinstance(x, Mapping):
            raise TypeError(f"expected a row as a dict of its cells, got {x!r}")
        if not self._fitted:
            return dict(x)
        check_window_columns(x, self.model.schema_)
        absent = [  # neither a cell nor a field of a record
            name
            for name in self.model.schema_.names
            if name not in x and name.partition(".")[0] not in x
        ]
        return {**x, **dict.fromkeys(absent)}

    def transform_many(self, X: Any) -> Any:
        """The vectors of a frame as a frame with the same index."""
        pandas = require("pandas", "frames")
        if not self._fitted:
            self.flush()
        index = getattr(X, "index", None)
        if not self._fitted:
            return pandas.DataFrame(index=index)
        names = self.model.get_feature_names_out()
        return pandas.DataFrame(self.model.transform(X), index=index, columns=names)
