"""Bars: scores of methods, side by side for each data set."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from weft.plots._style import HATCHES, axes, greys


def score_bars(
    scores: Mapping[str, Any],
    names: Sequence[str],
    *,
    errors: Mapping[str, Any] | None = None,
    ylabel: str = "score",
    ax: Any = None,
) -> Any:
    """Draw the scores of methods on data sets: a group of bars for each set, a bar per method.

    Parameters
    ----------
    scores : mapping of str to array-like of shape (n_sets,)
        The scores of each method; NaN leaves a gap.
    names : sequence of str
        The data sets.
    errors : mapping of str to array-like of shape (n_sets,), optional
        Standard deviations, drawn as whiskers.
    ylabel : str
        What the bars show.
    ax : matplotlib Axes, optional
        Where to draw.

    Returns
    -------
    matplotlib Axes

    References
    ----------
    Wang (2013), Figures 3 and 4; Shi (2013), Figures 4 to 9; Huang and Hsu, Figures 3 and 4.

    Examples
    --------
    >>> from weft.plots import score_bars
    >>> ax = score_bars({"ours": [0.9, 0.8], "theirs": [0.7, 0.8]}, ["zoo", "car"])
    >>> [float(bar.get_height()) for bar in ax.patches]
    [0.9, 0.8, 0.7, 0.8]
    """
    if not scores:
        raise ValueError("there are no scores to draw; pass a mapping of methods to scores")
    places, width = np.arange(len(names)), 0.8 / len(scores)
    ax = axes(ax, (float(np.clip(1.2 + 0.28 * len(names) * len(scores), 4, 14)), 3.6))
    for i, (method, values) in enumerate(scores.items()):
        heights = np.asarray(values, dtype=float)
        if heights.shape != places.shape:
            raise ValueError(f"{method!r} has {heights.size} scores for {len(names)} data sets")
        ax.bar(
            places + (i - (len(scores) - 1) / 2) * width, heights, width, label=method,
            yerr=None if errors is None else errors[method], color=greys(len(scores))[i],
            hatch=HATCHES[i % len(HATCHES)], edgecolor="black", linewidth=0.5, capsize=2,
        )  # fmt: skip
    turned = max(map(len, names), default=0) * len(names) > 60
    ax.set_xticks(places, names, rotation=90 if turned else 0, fontsize="small")
    ax.set_ylabel(ylabel)
    ax.legend(frameon=False, fontsize="small", loc="center left", bbox_to_anchor=(1, 0.5))
    return ax
