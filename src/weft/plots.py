"""Pictures of results, readable in greyscale: each returns the Axes it drew on.

Comes in: the arrays that `weft.evaluate` and the embedders give. Goes out: a Matplotlib Axes, on a
figure of its own unless ``ax`` is passed; save it with ``ax.figure.savefig("name.png")``. Nothing
is shown and no global state of pyplot is touched.
"""

from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np

# Shape and dash tell series apart where colour does not.
_MARKERS = "os^DvPX*<>"
_DASHES = ["-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1, 1, 1))]


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
    ax = _axes(ax, (7, 0.28 * ranks.size / 2 + 0.1 * len(bars) + 1.3))
    _rank_axis(ax, ranks.size, cd)
    for level, (start, end) in enumerate(bars):
        height = -0.3 * (level + 1)
        ax.plot([start, end], [height, height], color="black", lw=4, solid_capstyle="butt")
    _leaders(ax, ranks[order], [names[i] for i in order], -0.3 * len(bars))
    return ax


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
    ax = _axes(ax, (5, 3.6))
    _draw_series(ax, curves, drawstyle="steps-post")
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
    ax = _axes(ax, (5, 3.6))
    _draw_series(ax, {name: (k, values) for name, values in curves.items()})
    ax.set(xlabel="k", ylabel=ylabel)
    return ax


def scatter_map(points: Any, labels: Any, *, ax: Any = None) -> Any:
    """Draw a map of objects, each class with a colour and marker of its own.

    Parameters
    ----------
    points : array-like of shape (n_objects, 2)
        Coordinates, e.g. from t-SNE or MDS (Zhu 2019, section 3.5.1).
    labels : array-like of shape (n_objects,)
        Class or cluster of each object.
    ax : matplotlib Axes, optional
        Where to draw.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from weft.plots import scatter_map
    >>> ax = scatter_map([[0, 0], [1, 1], [2, 0]], ["a", "b", "a"])
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['a', 'b']
    """
    points = np.asarray(points, dtype=float)
    labels = list(labels)
    if points.shape != (len(labels), 2) or not labels:
        raise ValueError(
            f"points must have shape ({len(labels)}, 2), got {points.shape}; reduce them to two "
            "dimensions first, e.g. with PCA or t-SNE"
        )
    ax = _axes(ax, (5, 4.5))
    # Numbers by size, then text: labels of mixed types have no order of their own.
    names = sorted(set(labels), key=lambda v: (0, v, "") if isinstance(v, Real) else (1, 0, str(v)))
    for i, (name, colour) in enumerate(zip(names, _colours(len(names)), strict=True)):
        x, y = points[[label == name for label in labels]].T
        look = {"color": [colour], "marker": _MARKERS[i % len(_MARKERS)], "edgecolors": "black"}
        ax.scatter(x, y, s=22, linewidths=0.3, label=str(name), **look)
    ax.set(xticks=[], yticks=[])
    ax.legend(fontsize="small", frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
    return ax


def value_heatmap(distances: Any, labels: Sequence[Any], *, ax: Any = None) -> Any:
    """Draw the distances between the values of a column; dark is far, up to 12 are written out.

    Parameters
    ----------
    distances, labels : array-like of shape (n_values, n_values), sequence
        E.g. from ``embedder.value_distances(column)``, and the values.
    ax : matplotlib Axes, optional
        Where to draw.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from weft.plots import value_heatmap
    >>> ax = value_heatmap([[0, 0.5], [0.5, 0]], ["red", "blue"])
    >>> [text.get_text() for text in ax.texts]
    ['0', '0.5', '0.5', '0']
    """
    distances = np.asarray(distances, dtype=float)
    names = [str(label) for label in labels]
    if distances.shape != (len(names), len(names)) or not names:
        raise ValueError(f"distances have shape {distances.shape} for {len(names)} labels")
    side = float(np.clip(0.45 * len(names) + 1.5, 3, 12))
    ax = _axes(ax, (side + 0.8, side))
    image = ax.imshow(distances, cmap="Greys", vmin=0)
    ax.figure.colorbar(image, ax=ax, shrink=0.8, label="distance")
    positions = np.arange(len(names))
    ax.set_xticks(positions, names, rotation=90)
    ax.set_yticks(positions, names)
    if len(names) <= 12:
        middle = distances.max() / 2
        for (i, j), value in np.ndenumerate(distances):
            colour = "white" if value > middle else "black"
            ax.text(j, i, f"{value:.2g}", ha="center", va="center", color=colour, fontsize="small")
    return ax


def _axes(ax: Any, size: tuple[float, float]) -> Any:
    """Return the given Axes, or those of a new figure that pyplot does not know of."""
    if ax is not None:
        return ax
    from matplotlib.figure import Figure

    return Figure(figsize=size, layout="constrained").subplots()


def _colours(n: int) -> list:
    from matplotlib import colormaps

    # Its lightness rises evenly; the palest end is left out, it vanishes on paper.
    return [colormaps["viridis"](shade) for shade in np.linspace(0, 0.85, max(n, 1))][:n]


def _draw_series(ax: Any, series: Mapping[str, tuple[Any, Any]], **style: Any) -> None:
    if not series:
        raise ValueError("there are no curves to draw; pass a mapping of names to curves")
    colours = _colours(len(series))
    for i, (name, (x, y)) in enumerate(series.items()):
        x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
        if x.shape != y.shape or x.ndim != 1:
            raise ValueError(f"curve {name!r} has {x.shape} points across and {y.shape} up")
        look = {"linestyle": _DASHES[i % len(_DASHES)], "marker": _MARKERS[i % len(_MARKERS)]}
        every = max(1, x.size // 12)  # a dozen markers are enough to tell lines apart
        ax.plot(x, y, label=name, color=colours[i], markersize=4, markevery=every, **look, **style)
    ax.legend(frameon=False, fontsize="small")


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
