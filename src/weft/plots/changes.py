"""Drift: which columns and couplings changed."""

from typing import Any

import numpy as np

from weft.plots._style import axes


def drift(report: Any, *, n_couplings: int = 10, ax: Any = None) -> Any:
    """Draw how much each column and the most changed couplings moved, as bars, largest on top.

    Dark bars are changes at the report's level, pale ones may be chance.

    Parameters
    ----------
    report : DriftReport
        What `weft.drift.drift_report` returns.
    n_couplings : int
        How many couplings to show below the columns.
    ax : matplotlib Axes, optional
        Where to draw.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from weft import Counts
    >>> from weft.drift import drift_report
    >>> from weft.plots import drift
    >>> days = [Counts.of({"color": ["red", "blue"] * 40}), Counts.of({"color": ["red"] * 40})]
    >>> ax = drift(drift_report(*days))
    >>> [text.get_text() for text in ax.get_yticklabels()]
    ['color']
    """
    found = [*report.columns, *report.couplings[:n_couplings]]
    if not found:
        raise ValueError("there is nothing to draw: the report has no columns")
    ax = axes(ax, (5, float(np.clip(0.24 * len(found) + 1, 2, 14))))
    places = np.arange(len(found))
    effects = [f.effect if np.isfinite(f.effect) else 0.0 for f in found]
    shades = ["0.25" if f.adjusted <= report.level else "0.8" for f in found]
    ax.barh(places, effects, color=shades)
    ax.axvline(0, color="0.4", linewidth=0.8)
    if report.couplings[:n_couplings]:
        ax.axhline(len(report.columns) - 0.5, color="0.4", linewidth=0.8, linestyle=":")
    ax.set_yticks(places, [f.name for f in found], fontsize="small")
    ax.invert_yaxis()
    ax.set_xlabel("standard deviations above no change")
    return ax
