"""Average ranks of methods: the critical-difference diagram."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from weft.plots._style import axes


def cd_diagram(
    average_ranks: Any,
    names: Sequence[str],
    cd: float,
    *,
    control: int | None = None,
    ax: Any = None,
) -> Any:
    """Draw a critical-difference diagram: methods on the axis of average ranks, best at left.

    Parameters
    ----------
    average_ranks, names : array-like of shape (n_methods,), sequence of str
        From `weft.evaluate.average_ranks`, and the names of the methods.
    cd : float
        From `weft.evaluate.critical_difference`.
    control : int, optional
        Without it, bars join the methods that do not differ (Nemenyi). With the position of a
        control, one bar marks the ranks that do not differ from the control's (Bonferroni–Dunn).
    ax : matplotlib Axes, optional
        Where to draw.

    Returns
    -------
    matplotlib Axes

    References
    ----------
    Demšar (2006); Zhu (2019), Figures 5.3, 6.2, 7.2.

    Examples
    --------
    >>> from weft.plots import cd_diagram
    >>> ax = cd_diagram([1.4, 2.1, 2.5], ["ours", "theirs", "random"], cd=0.9)
    >>> sorted(text.get_text() for text in ax.texts)
    ['CD = 0.90', 'ours 1.40', 'random 2.50', 'theirs 2.10']
    """
    ranks = np.asarray(average_ranks, dtype=float)
    if ranks.ndim != 1 or len(names) != ranks.size or ranks.size < 2:
        raise ValueError(f"got {len(names)} names for ranks of shape {ranks.shape}; pass as many")
    if not cd > 0:
        raise ValueError(f"cd must be positive, got {cd}")
    if control is not None and not 0 <= control < ranks.size:
        raise ValueError(f"control must be a position from 0 to {ranks.size - 1}, got {control}")
    order = np.argsort(ranks, kind="stable")
    if control is None:
        bars = _cliques(ranks[order], cd)
    else:
        bars = [(max(1, ranks[control] - cd), min(ranks.size, ranks[control] + cd))]
    ax = axes(ax, (7, 0.28 * ranks.size / 2 + 0.1 * len(bars) + 1.3))
    _rank_axis(ax, ranks.size, cd)
    for level, (start, end) in enumerate(bars):
        height = -0.3 * (level + 1)
        ax.plot([start, end], [height, height], color="black", lw=4, solid_capstyle="butt")
    _leaders(ax, ranks[order], [names[i] for i in order], -0.3 * len(bars))
    return ax


def _cliques(ordered: np.ndarray, cd: float) -> list[tuple[float, float]]:
    """Longest runs of methods, in order of rank, whose first and last do not differ."""
    ends = [int(np.flatnonzero(ordered < start + cd)[-1]) for start in ordered]
    # A run that ends where an earlier one does is a part of it.
    return [
        (float(ordered[i]), float(ordered[end]))
        for i, end in enumerate(ends)
        if end > i and (i == 0 or end > ends[i - 1])
    ]


def _rank_axis(ax: Any, n_methods: int, cd: float) -> None:
    """Draw the axis of ranks at height 0 and the length of the critical difference above it."""
    ax.set(xlim=(0, n_methods + 1), xticks=range(1, n_methods + 1), yticks=[])
    ax.xaxis.tick_top()
    for side, spine in ax.spines.items():
        spine.set_visible(side == "top")
    ax.spines["top"].set_position(("data", 0))
    ax.spines["top"].set_bounds(1, n_methods)
    ax.plot([1, 1 + cd], [1.5, 1.5], color="black", lw=1.5, marker="|")
    ax.text(1 + cd / 2, 1.6, f"CD = {cd:.2f}", ha="center", va="bottom")


def _leaders(ax: Any, ordered: np.ndarray, names: list, start: float) -> None:
    """Lead from each rank to a name: the better half to the left, the worse half to the right."""
    n = ordered.size
    half = (n + 1) // 2
    for place, (rank, name) in enumerate(zip(ordered, names, strict=True)):
        left = place < half
        # From the ends inwards each leader lies deeper, so that none crosses another.
        depth = start - 0.8 - 0.8 * (place if left else n - 1 - place)
        edge = 0.9 if left else n + 0.1
        ax.plot([rank, rank, edge], [0, depth, depth], color="0.4", lw=0.8)
        side, gap = ("right", -0.05) if left else ("left", 0.05)
        ax.text(edge + gap, depth, f"{name} {rank:.2f}", ha=side, va="center")
    ax.set_ylim(start - 0.8 * half - 0.6, 2.4)
