"""Methods compared: scores as bars, ranks with their critical difference, curves with a line each.

Each function takes what :mod:`tabweave.evaluate` gives for several methods, by their names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import gaussian_kde

from tabweave.plots.style import (
    HATCHES,
    PLAIN,
    axes,
    beside_legend,
    colours,
    draw_series,
    in_legend,
    whole_numbers,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def score_bars(
    scores: Mapping[str, Any],
    names: Sequence[str],
    *,
    errors: Mapping[str, Any] | None = None,
    ylabel: str = "score",
    ax: Axes | None = None,
) -> Axes:
    """Draw the scores of methods on data sets: a group of bars for each set, a bar per method.

    Parameters
    ----------
    scores : mapping of str to array-like of shape (n_sets,)
        The scores of each method; NaN leaves a gap.
    names : sequence of str
        The data sets.
    errors : mapping of str to array-like of shape (n_sets,), optional
        Standard deviations, drawn as whiskers.
    ylabel : str, default="score"
        What the bars show.
    ax : matplotlib Axes, optional
        Where to draw.

    References
    ----------
    Wang (2013), Figures 3 and 4; Shi (2013), Figures 4 to 9; Huang and Hsu, Figures 3 and 4.

    Examples
    --------
    >>> from tabweave.plots import score_bars
    >>> ax = score_bars({"ours": [0.9, 0.8], "theirs": [0.7, 0.8]}, ["zoo", "car"])
    >>> [float(bar.get_height()) for bar in ax.patches]
    [0.9, 0.8, 0.7, 0.8]
    """
    if not scores:
        raise ValueError("there are no scores to draw; pass a mapping of methods to scores")
    centres, width = np.arange(len(names)), 0.8 / len(scores)
    ax = axes(ax, (float(np.clip(1.2 + 0.28 * len(names) * len(scores), 4, 14)), 3.6))
    for i, (method, values) in enumerate(scores.items()):
        heights = np.asarray(values, dtype=float)
        if heights.shape != centres.shape:
            raise ValueError(
                f"{method!r}: expected {len(names)} scores, one per data set, got {heights.size}"
            )
        ax.bar(
            centres + (i - (len(scores) - 1) / 2) * width, heights, width, label=in_legend(method),
            yerr=None if errors is None else errors[method], color=colours(len(scores))[i],
            hatch=HATCHES[i % len(HATCHES)], edgecolor="black", linewidth=0.5, capsize=2,
        )  # fmt: skip
    turned = max(map(len, names), default=0) * len(names) > 60
    ax.set_xticks(centres, names, rotation=90 if turned else 0, fontsize="small", **PLAIN)
    ax.set_ylabel(ylabel)
    beside_legend(ax)
    return ax


def cd_diagram(
    average_ranks: Any,
    names: Sequence[str],
    cd: float,
    *,
    control: int | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw a critical-difference diagram: methods on the axis of average ranks, best at left.

    Parameters
    ----------
    average_ranks, names : array-like of shape (n_methods,), sequence of str
        From `tabweave.evaluate.average_ranks`, and the names of the methods.
    cd : float
        From `tabweave.evaluate.critical_difference`.
    control : int, optional
        Without it, bars join the methods that do not differ (Nemenyi). With the position of a
        control, one bar marks the ranks that do not differ from the control's (Bonferroni–Dunn).
    ax : matplotlib Axes, optional
        Where to draw.

    References
    ----------
    Demšar (2006); Zhu (2019), Figures 5.3, 6.2, 7.2.

    Examples
    --------
    >>> from tabweave.plots import cd_diagram
    >>> ax = cd_diagram([1.4, 2.1, 2.5], ["ours", "theirs", "random"], cd=0.9)
    >>> sorted(text.get_text() for text in ax.texts)
    ['CD = 0.90', 'ours 1.40', 'random 2.50', 'theirs 2.10']
    """
    ranks = np.asarray(average_ranks, dtype=float)
    if ranks.ndim != 1 or len(names) != ranks.size or ranks.size < 2:
        raise ValueError(
            f"expected one name per rank, got {len(names)} names for ranks of shape {ranks.shape}"
        )
    if not np.isfinite(ranks).all():
        raise ValueError("expected an average rank of each method; leave out those without one")
    if not cd > 0:
        raise ValueError(f"expected a positive cd, got {cd}")
    if control is not None and not 0 <= control < ranks.size:
        raise ValueError(f"expected a control from 0 to {ranks.size - 1}, got {control}")
    order = np.argsort(ranks, kind="stable")
    if control is None:
        bars = _cliques(ranks[order], cd)
    else:
        bars = [(max(1, ranks[control] - cd), min(ranks.size, ranks[control] + cd))]
    names = [str(name) for name in names]
    wide = 7 + 0.16 * max(0, max(map(len, names)) - 20)
    ax = axes(ax, (wide, 0.28 * ranks.size / 2 + 0.1 * len(bars) + 1.3))
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
    ax.set(xlim=(0, n_methods + 1), xticks=range(1, n_methods + 1, 1 + n_methods // 16), yticks=[])
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
    for i, (rank, name) in enumerate(zip(ordered, names, strict=True)):
        left = i < half
        # From the ends inwards each leader lies deeper, so that none crosses another.
        depth = start - 0.8 - 0.8 * (i if left else n - 1 - i)
        edge = 0.9 if left else n + 0.1
        ax.plot([rank, rank, edge], [0, depth, depth], color="0.4", lw=0.8)
        side, gap = ("right", -0.05) if left else ("left", 0.05)
        ax.text(edge + gap, depth, f"{name} {rank:.2f}", ha=side, va="center", **PLAIN)
    ax.set_ylim(start - 0.8 * half - 0.6, 2.4)


def epsilon_gamma_curve(
    curves: Mapping[str, tuple[Any, Any]], *, nonnegative: bool = True, ax: Axes | None = None
) -> Axes:
    """Draw (ε, γ)-curves; the higher curve is the better similarity.

    Parameters
    ----------
    curves : mapping of str to (epsilon, gamma)
        From `tabweave.papers.epsilon_gamma`, by name of the method.
    nonnegative : bool, default=True
        Show only γ >= 0, as the thesis does.
    ax : matplotlib Axes, optional
        Where to draw.

    References
    ----------
    Zhu (2019), Figures 6.4 and 7.8.

    Examples
    --------
    >>> from tabweave.plots import epsilon_gamma_curve
    >>> ax = epsilon_gamma_curve({"ours": ([0, 0.5], [0.1, 0.4])})
    >>> ax.get_xlabel()
    'ε: share of objects given up'
    """
    labels = "ε: share of objects given up", "γ: margin of the others"
    ax = draw_series(ax, curves, *labels, drawstyle="steps-post")
    if nonnegative:
        ax.set_ylim(bottom=0)
    ax.set_xlim(0, 1)
    return ax


def precision_curve(
    k: Any, curves: Mapping[str, Any], *, ylabel: str = "precision@k", ax: Axes | None = None
) -> Axes:
    """Draw precision@k (or recall@k) against k, a line for each method.

    Parameters
    ----------
    k, curves : array-like of int, mapping of str to array-like
        From `tabweave.evaluate.precision_at_k`: the numbers retrieved, the results by method.
    ylabel : str, default="precision@k"
        What the curves show.
    ax : matplotlib Axes, optional
        Where to draw.

    References
    ----------
    Zhu (2019), Figures 4.2, 6.3, 7.3.

    Examples
    --------
    >>> from tabweave.plots import precision_curve
    >>> ax = precision_curve([1, 5, 10], {"ours": [0.9, 0.8, 0.7], "theirs": [0.8, 0.6, 0.5]})
    >>> [line.get_label() for line in ax.lines]
    ['ours', 'theirs']
    """
    ax = draw_series(ax, {name: (k, values) for name, values in curves.items()}, "k", ylabel)
    whole_numbers(ax.xaxis, k)
    return ax


def convergence(
    trace: Sequence[float] | Mapping[str, Sequence[float]], *, ax: Axes | None = None
) -> Axes:
    """Draw how an objective falls from one iteration to the next.

    Parameters
    ----------
    trace : sequence of float, or mapping of str to sequence
        E.g. ``UNTIE.objective_``, or several by name.
    ax : matplotlib Axes, optional
        Where to draw.

    References
    ----------
    Zhu (2019), Figure 7.10.

    Examples
    --------
    >>> from tabweave.plots import convergence
    >>> ax = convergence([3.0, 2.0, 1.5])
    >>> ax.lines[0].get_xdata().tolist()
    [1.0, 2.0, 3.0]
    """
    traces = trace if isinstance(trace, Mapping) else {"objective": trace}
    for name, values in traces.items():
        if not len(values):
            raise ValueError(f"the trace {name!r} is empty; fit first, then pass objective_")
    curves = {name: (np.arange(1, len(t) + 1), t) for name, t in traces.items()}
    ax = draw_series(ax, curves, "iteration", "objective")
    if len(curves) == 1:
        ax.get_legend().remove()  # one line needs no name
    whole_numbers(ax.xaxis, [0])
    return ax


def time_cost(
    sizes: Any, seconds: Mapping[str, Any], *, xlabel: str = "rows", ax: Axes | None = None
) -> Axes:
    """Draw how time grows with the data, both on logarithmic axes; a grey line grows linearly.

    Parameters
    ----------
    sizes : array-like of float
        How large the data were.
    seconds : mapping of str to array-like
        How long each method took.
    xlabel : str, default="rows"
        What was varied: rows, columns, values of a column.
    ax : matplotlib Axes, optional
        Where to draw.

    References
    ----------
    Zhu (2019), Figures 4.4, 5.6, 6.8, 7.11.

    Examples
    --------
    >>> from tabweave.plots import time_cost
    >>> ax = time_cost([100, 1000], {"ours": [0.01, 0.02], "theirs": [0.1, 10.0]})
    >>> ax.get_xscale(), ax.get_ylabel()
    ('log', 'seconds')
    """
    sizes = np.asarray(sizes, dtype=float)
    for name, times in {"sizes": sizes, **seconds}.items():
        if not (np.asarray(times, dtype=float) > 0).all():
            raise ValueError(
                f"{name!r}: expected numbers above 0 on a logarithmic axis, got {np.min(times):g}"
            )
    curves = {name: (sizes, times) for name, times in seconds.items()}
    ax = draw_series(ax, curves, xlabel, "seconds")
    start = min(float(np.asarray(times)[0]) for times in seconds.values())
    ax.plot(sizes, start * sizes / sizes[0], color="0.7", linewidth=0.8, zorder=0)
    ax.set(xscale="log", yscale="log")
    return ax


def sensitivity(
    values: Any,
    scores: Mapping[str, Any],
    *,
    errors: Mapping[str, Any] | None = None,
    xlabel: str = "parameter",
    ylabel: str = "score",
    ax: Axes | None = None,
) -> Axes:
    """Draw how a score depends on a parameter, a line for each data set or method.

    Parameters
    ----------
    values : array-like of float
        The parameter.
    scores : mapping of str to array-like
        The scores by name.
    errors : mapping of str to array-like, optional
        Standard deviations, drawn as bands.
    xlabel, ylabel : str, optional
        Labels of the axes.
    ax : matplotlib Axes, optional
        Where to draw.

    References
    ----------
    Zhu (2019), Figures 6.10, 7.6, 7.7, 8.6, 8.7; Wang (2013), Figure 2; Shi (2013), Figure 25.

    Examples
    --------
    >>> from tabweave.plots import sensitivity
    >>> ax = sensitivity([1, 2, 3], {"zoo": [0.7, 0.9, 0.8]}, errors={"zoo": [0.1, 0.1, 0.1]})
    >>> len(ax.lines), len(ax.collections)
    (1, 1)
    """
    x = np.asarray(values, dtype=float)
    ax = draw_series(ax, {name: (x, y) for name, y in scores.items()}, xlabel, ylabel)
    for name, deviations in (errors or {}).items():
        middle, width = np.asarray(scores[name], float), np.asarray(deviations, float)
        colour = next(line.get_color() for line in ax.lines if line.get_label() == in_legend(name))
        ax.fill_between(x, middle - width, middle + width, color=colour, alpha=0.15, lw=0)
    whole_numbers(ax.xaxis, x)
    return ax


def indicator_density(
    indicators: Mapping[str, Any],
    *,
    xlabel: str = "heterogeneity indicator",
    ax: Axes | None = None,
) -> Axes:
    """Draw the probability density of indicators by kernel density estimation, a line for each.

    Parameters
    ----------
    indicators : mapping of str to array-like
        E.g. from `tabweave.papers.intra_coupling_heterogeneity`, by name of the data set.
    xlabel : str, default="heterogeneity indicator"
        What was estimated.
    ax : matplotlib Axes, optional
        Where to draw.

    References
    ----------
    Zhu (2019), Figures 7.4 and 7.5.

    Examples
    --------
    >>> from tabweave.plots import indicator_density
    >>> ax = indicator_density({"zoo": [0.1, 0.2, 0.25, 0.4]})
    >>> ax.get_ylabel()
    'density'
    """
    curves = {}
    for name, numbers in indicators.items():
        values = np.asarray(numbers, dtype=float)
        values = values[np.isfinite(values)]
        if len(np.unique(values)) < 2:
            raise ValueError(f"{name!r} needs two different numbers to have a density")
        margin = 0.5 * np.ptp(values)
        x = np.linspace(values.min() - margin, values.max() + margin, 200)
        curves[name] = (x, gaussian_kde(values)(x))
    ax = draw_series(ax, curves, xlabel, "density")
    ax.set_ylim(bottom=0)
    return ax
