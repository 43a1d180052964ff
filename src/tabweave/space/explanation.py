"""Distances as notebooks show them: the share of each column, and a frame between values."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from tabweave._compat import html_table, require
from tabweave.columns.vocabulary import Label


class Explanation(dict[str, float]):
    """Each column's share in a distance: a dict, which notebooks show as bars.

    Examples
    --------
    >>> from tabweave import OneHot
    >>> found = OneHot().fit({"a": list("xy"), "b": list("pp")}).explain(["x", "p"], ["y", "p"])
    >>> found, "color-mix" in found._repr_html_()
    ({'a': 2.0, 'b': 0.0}, True)
    """

    def _repr_html_(self) -> str:
        total = sum(abs(share) for share in self.values()) or 1.0
        rows = sorted(self.items(), key=lambda item: -item[1])
        cells = [[name, share, f"{share / total:.0%}"] for name, share in rows]
        return html_table(
            f"What each column adds; together {sum(self.values()):.4g}",
            ["column", "adds", "share"],
            cells,
            lambda i, j: max(0.0, rows[i][1] / total) if j == 2 else None,
        )


def labelled(distances: np.ndarray, name: str, labels: Sequence[Label]) -> Any:
    """Distances between values as a pandas frame, shaded in notebooks."""
    pandas = require("pandas", "frames")
    index = pandas.Index(labels, dtype=object, name=name)
    frame = pandas.DataFrame(distances, index=index, columns=index)
    object.__setattr__(frame, "_repr_html_", partial(_shaded, frame))  # of this frame, not of parts
    return frame


def _shaded(frame: Any, most: int = 30) -> str:
    values = frame.to_numpy()[:most, :most]
    far = max(float(values.max(initial=0.0)), 1e-300)
    names = ["missing" if label is None else str(label) for label in frame.index[:most]]
    more = f", the first {most}" if len(frame) > most else ""
    return html_table(
        f"Distances between the values of {frame.index.name}{more}; dark is far",
        ["", *names],
        [[name, *map(float, row)] for name, row in zip(names, values, strict=True)],
        lambda i, j: values[i, j - 1] / far if j else None,
    )
