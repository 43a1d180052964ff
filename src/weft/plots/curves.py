"""Curves of methods, a line each: goodness, retrieval, convergence, cost, sensitivity."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from weft.plots._style import axes, draw_series


def epsilon_gamma_curve(
    curves: Mapping[str, tuple[Any, Any]], *, nonnegative: bool = True, ax: Any = None
) -> Any:
    """Draw (ε, γ)-curves; the higher curve is the better similarity.

    Parameters
    ----------
    curves : mapping of str to (epsilon, gamma)
        From `weft.evaluate.epsilon_gamma`, by name of the method.
    nonnegative : bool
        Show only γ >= 0, as the thesis does.
    ax : matplotlib Axes, optional
        Where to draw.

    Returns
    -------
    matplotlib Axes

    References
    ----------
    Zhu (2019), Figures 6.4 and 7.8.

    Examples
    --------
    >>> from weft.plots import epsilon_gamma_curve
    >>> ax = epsilon_gamma_curve({"ours": ([0, 0.5], [0.1, 0.4])})
    >>> ax.get_xlabel()
    'ε: share of objects given up'
    """
    ax = axes(ax, (5, 3.6))
    draw_series(ax, curves, drawstyle="steps-post")
    if nonnegative:
        ax.set_ylim(bottom=0)
    ax.set(xlabel="ε: share of objects given up", ylabel="γ: margin of the others", xlim=(0, 1))
    return ax


def precision_curve(
    k: Any, curves: Mapping[str, Any], *, ylabel: str = "precision@k", ax: Any = None
) -> Any:
    """Draw precision@k (or recall@k) against k, a line for each method.

    Parameters
    ----------
    k, curves : array-like of int, mapping of str to array-like
        From `weft.evaluate.precision_at_k`: the numbers retrieved, the results by method.
    ylabel : str
        What the curves show.
    ax : matplotlib Axes, optional
        Where to draw.

    Returns
    -------
    matplotlib Axes

    References
    ----------
    Zhu (2019), Figures 4.2, 6.3, 7.3.

    Examples
    --------
    >>> from weft.plots import precision_curve
    >>> ax = precision_curve([1, 5, 10], {"ours": [0.9, 0.8, 0.7], "theirs": [0.8, 0.6, 0.5]})
    >>> [line.get_label() for line in ax.lines]
    ['ours', 'theirs']
    """
    ax = axes(ax, (5, 3.6))
    draw_series(ax, {name: (k, values) for name, values in curves.items()})
    ax.set(xlabel="k", ylabel=ylabel)
    return ax


def convergence(trace: Sequence[float] | Mapping[str, Sequence[float]], *, ax: Any = None) -> Any:
    """Draw how an objective falls from one iteration to the next.

    Parameters
    ----------
    trace : sequence of float, or mapping of str to sequence
        E.g. ``UNTIE.objective_``, or several by name.
    ax : matplotlib Axes, optional
        Where to draw.

    Returns
    -------
    matplotlib Axes

    References
    ----------
    Zhu (2019), Figure 7.10.

    Examples
    --------
    >>> from weft.plots import convergence
    >>> ax = convergence([3.0, 2.0, 1.5])
    >>> ax.lines[0].get_xdata().tolist()
    [1.0, 2.0, 3.0]
    """
    traces = trace if isinstance(trace, Mapping) else {"objective": trace}
    ax = axes(ax, (5, 3.6))
    curves = {name: (np.arange(1, len(t) + 1), t) for name, t in traces.items()}
    for name, (steps, _) in curves.items():
        if not len(steps):
            raise ValueError(f"the trace {name!r} is empty; fit first, then pass objective_")
    draw_series(ax, curves)
    if len(curves) == 1:
        ax.get_legend().remove()  # one line needs no name
    ax.set(xlabel="iteration", ylabel="objective")
    return ax


def time_cost(
    sizes: Any, seconds: Mapping[str, Any], *, xlabel: str = "rows", ax: Any = None
) -> Any:
    """Draw how time grows with the data, both on logarithmic axes; a grey line grows linearly.

    Parameters
    ----------
    sizes : array-like of float
        How large the data were.
    seconds : mapping of str to array-like
        How long each method took.
    xlabel : str
        What was varied: rows, columns, values of a column.
    ax : matplotlib Axes, optional
        Where to draw.

    Returns
    -------
    matplotlib Axes

    References
    ----------
    Zhu (2019), Figures 4.4, 5.6, 6.8, 7.11.

    Examples
    --------
    >>> from weft.plots import time_cost
    >>> ax = time_cost([100, 1000], {"ours": [0.01, 0.02], "theirs": [0.1, 10.0]})
    >>> ax.get_xscale(), ax.get_ylabel()
    ('log', 'seconds')
    """
    sizes = np.asarray(sizes, dtype=float)
    for name, times in {"sizes": sizes, **seconds}.items():
        if not (np.asarray(times, dtype=float) > 0).all():
            raise ValueError(f"{name!r} must be positive to be drawn on a logarithmic axis")
    ax = axes(ax, (5, 3.6))
    draw_series(ax, {name: (sizes, times) for name, times in seconds.items()})
    start = min(float(np.asarray(times)[0]) for times in seconds.values())
    ax.plot(sizes, start * sizes / sizes[0], color="0.7", linewidth=0.8, zorder=0)
    ax.set(xscale="log", yscale="log", xlabel=xlabel, ylabel="seconds")
    return ax


def sensitivity(
    values: Any,
    scores: Mapping[str, Any],
    *,
    errors: Mapping[str, Any] | None = None,
    xlabel: str = "parameter",
    ylabel: str = "score",
    ax: Any = None,
) -> Any:
    """Draw how a score depends on a parameter, a line for each data set or method.

    Parameters
    ----------
    values : array-like of float
        The parameter.
    scores : mapping of str to array-like
        The scores by name.
    errors : mapping of str to array-like, optional
        Standard deviations, drawn as bands.
    xlabel, ylabel : str
        What the axes show.
    ax : matplotlib Axes, optional
        Where to draw.

    Returns
    -------
    matplotlib Axes

    References
    ----------
    Zhu (2019), Figures 6.10, 7.6, 7.7, 8.6, 8.7; Wang (2013), Figure 2; Shi (2013), Figure 25.

    Examples
    --------
    >>> from weft.plots import sensitivity
    >>> ax = sensitivity([1, 2, 3], {"zoo": [0.7, 0.9, 0.8]}, errors={"zoo": [0.1, 0.1, 0.1]})
    >>> len(ax.lines), len(ax.collections)
    (1, 1)
    """
    ax = axes(ax, (5, 3.6))
    x = np.asarray(values, dtype=float)
    draw_series(ax, {name: (x, y) for name, y in scores.items()})
    for name, spread in (errors or {}).items():
        middle, spread = np.asarray(scores[name], float), np.asarray(spread, float)
        colour = next(line.get_color() for line in ax.lines if line.get_label() == name)
        ax.fill_between(x, middle - spread, middle + spread, color=colour, alpha=0.15, lw=0)
    ax.set(xlabel=xlabel, ylabel=ylabel)
    return ax


def indicator_density(
    indicators: Mapping[str, Any], *, xlabel: str = "heterogeneity indicator", ax: Any = None
) -> Any:
    """Draw the probability density of indicators by kernel density estimation, a line for each.

    Parameters
    ----------
    indicators : mapping of str to array-like
        E.g. from `weft.evaluate.intra_coupling_heterogeneity`, by name of the data set.
    xlabel : str
        What was estimated.
    ax : matplotlib Axes, optional
        Where to draw.

    Returns
    -------
    matplotlib Axes

    References
    ----------
    Zhu (2019), Figures 7.4 and 7.5.

    Examples
    --------
    >>> from weft.plots import indicator_density
    >>> ax = indicator_density({"zoo": [0.1, 0.2, 0.25, 0.4]})
    >>> ax.get_ylabel()
    'density'
    """
    from scipy.stats import gaussian_kde

    curves = {}
    for name, given in indicators.items():
        values = np.asarray(given, dtype=float)
        values = values[np.isfinite(values)]
        if len(np.unique(values)) < 2:
            raise ValueError(f"{name!r} needs two different numbers to have a density")
        margin = 0.5 * np.ptp(values)
        x = np.linspace(values.min() - margin, values.max() + margin, 200)
        curves[name] = (x, gaussian_kde(values)(x))
    ax = axes(ax, (5, 3.6))
    draw_series(ax, curves)
    ax.set(xlabel=xlabel, ylabel="density")
    ax.set_ylim(bottom=0)
    return ax
