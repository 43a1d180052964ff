"""Curves of methods, a line each: goodness, retrieval, convergence."""

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
