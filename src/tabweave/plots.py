"""Plots of results, readable in greyscale: each returns the Axes it drew on.

Comes in: the arrays that `tabweave.evaluate` and the embedders give. Goes out: a Matplotlib Axes,
on a new figure unless ``ax`` is passed; save it with ``ax.figure.savefig("name.png")``.
Nothing is shown and no global state of pyplot is touched.
"""

from __future__ import annotations

import datetime as dt
import io
import warnings
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import cycle, islice
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.spatial.distance import squareform
from scipy.stats import gaussian_kde

from tabweave._compat import require
from tabweave.columns.frames import is_missing

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "association_heatmap",
    "biplot",
    "cd_diagram",
    "column_weights",
    "convergence",
    "coupling_graph",
    "dendrogram",
    "drift",
    "epsilon_gamma_curve",
    "indicator_density",
    "overlap",
    "precision_curve",
    "reliability_diagram",
    "scatter_map",
    "score_bars",
    "scree",
    "sensitivity",
    "time_cost",
    "value_heatmap",
    "weights_heatmap",
]

# -- The house style of all pictures, and the one palette of plots, reports, studio and maps ------
#
# Classes have colours that differ for the colour-blind, too (a test simulates them), and a
# marker or hatch besides; numbers have one colour from pale to dark. Pages have the same in
# ``style.css``, with another set for dark screens.

QUALITATIVE = (
    "#2d5f8f", "#d36a18", "#689d6d", "#751a65", "#a48d48", "#1f9dc8", "#a13343", "#4a3710",
)  # fmt: skip
SEQUENTIAL = ("#b9d3e8", "#86b3d6", "#5490c0", "#2f6c9f", "#123f66")
OTHERS = "#85878d"

# Shape and dash tell series apart where colour does not.
MARKERS = "os^DvPX*<>"
HATCHES = ["", "///", "...", "xxx", "\\\\\\", "ooo"]
# Names may hold two dollars: they are money, no formula.
PLAIN = {"parse_math": False}
# Where a name may stand around its point, and how far from it, in points of print.
AROUND_A_POINT = np.array([(1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (-1, 1), (1, -1), (-1, -1)])
LABEL_REACHES = (6, 16, 30)
MAX_HEATMAP_NAMES = 60  # Names on a side of a heatmap; of more, every second (third, ...) is shown.
DASHES = ["-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1, 1, 1))]


def axes(ax: Any, size: tuple[float, float]) -> Any:
    """The given Axes, or those of a new figure that pyplot does not know of.

    New ones show themselves in a notebook.
    """
    if ax is not None:
        return ax
    figure = require("matplotlib.figure", "plots").Figure(figsize=size, layout="constrained")
    ax = figure.subplots()
    ax._repr_png_ = partial(as_png, ax)
    return ax


def as_png(ax: Any) -> bytes:
    """The figure of some Axes as a picture."""
    out = io.BytesIO()
    ax.figure.savefig(out, format="png", dpi=120)
    return out.getvalue()


def colours(n: int) -> list[str]:
    """A colour for each class; the next eight are pale, then they repeat; markers differ."""
    pale = [_mixed(colour, 0.55) for colour in QUALITATIVE]
    return list(islice(cycle([*QUALITATIVE, *pale]), n))


def _mixed(colour: str, white: float) -> str:
    """A colour mixed with a share of white."""
    parts = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return "#" + "".join(f"{round(part + white * (255 - part)):02x}" for part in parts)


def marker(i: int) -> str:
    """The marker of a class: one that its colour has not had before."""
    return MARKERS[(i + i // len(QUALITATIVE)) % len(MARKERS)]


def sequence(*, of_dots: bool = False) -> Any:
    """The colours of numbers, from pale to dark, as a Matplotlib colour map.

    That of cells begins near white; dots have to stand out from the paper.
    """
    from matplotlib.colors import LinearSegmentedColormap

    shades = list(SEQUENTIAL) if of_dots else ["#f6f9fc", *SEQUENTIAL]
    return LinearSegmentedColormap.from_list("tabweave", shades)


def ink_on(shade: float) -> str:
    """The colour of text on a shade of `sequence`, from 0 to 1."""
    return "white" if shade > 0.6 else "black"


def heatmap(
    ax: Any,
    table: np.ndarray,
    columns: Sequence[str],
    rows: Sequence[str],
    *,
    label: str = "",
    texts: Any = None,
    **image: Any,
) -> Any:
    """Draw a table in shades on empty Axes, with a scale if that has a label, and with texts."""
    shades = ax.imshow(table, cmap=sequence(), **({"vmin": 0} | image))
    if label:
        ax.figure.colorbar(
            shades, ax=ax, label=label, extend="both" if "vmin" in image else "neither"
        )
    for axis, names in ((ax.xaxis, columns), (ax.yaxis, rows)):
        named = np.arange(0, len(names), -(-len(names) // MAX_HEATMAP_NAMES) or 1)
        axis.set_ticks(named, [_short(names[i]) for i in named], fontsize="small", **PLAIN)
    ax.tick_params(axis="x", rotation=90)
    style: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": "x-small"}
    for (i, j), text in () if texts is None else np.ndenumerate(texts):
        if text:
            ax.text(j, i, text, color=ink_on(shades.norm(table[i, j])), **style)
    return ax


def label_points(ax: Any, points: np.ndarray, names: Sequence[str], inks: Sequence[str]) -> int:
    """Write names beside points so that none covers another, far points first; return how many.

    A name stands at one of eight places around its point, or farther out at the end of a line.
    """
    from matplotlib.patheffects import withStroke

    halo = [withStroke(linewidth=2, foreground="white")]
    ax.figure.draw_without_rendering()  # the layout decides where pixels are
    frame, dots_a_point = ax.get_window_extent().extents, ax.figure.dpi / 72
    pixels = ax.transData.transform(points)
    taken = np.empty((0, 4))
    for i in np.argsort(-np.abs(points).max(axis=1, initial=0), kind="stable"):
        text = ax.annotate(
            names[i], points[i], (0, 0), textcoords="offset points", fontsize="small",
            color=inks[i], ha="center", va="center", path_effects=halo, **PLAIN,
        )  # fmt: skip
        text.set_in_layout(False)
        extent = text.get_window_extent()
        size = np.array([extent.width, extent.height])
        for reach in LABEL_REACHES:
            centres = pixels[i] + AROUND_A_POINT * (size / 2 + reach * dots_a_point)
            boxes = np.hstack([centres - size / 2, centres + size / 2])
            free = np.flatnonzero(_are_free(boxes, taken, frame))
            if free.size:
                break
        else:
            text.remove()
            continue
        taken = np.vstack([taken, boxes[free[0]]])
        text.set_position((centres[free[0]] - pixels[i]) / dots_a_point)
        if reach > LABEL_REACHES[0]:
            end = (centres[free[0]] - AROUND_A_POINT[free[0]] * size / 2 - pixels[i]) / dots_a_point
            line = {"arrowstyle": "-", "color": inks[i], "lw": 0.5, "alpha": 0.7}
            ax.annotate("", points[i], end, textcoords="offset points", arrowprops=line)
    return len(taken)


def _are_free(boxes: np.ndarray, taken: np.ndarray, frame: np.ndarray) -> np.ndarray:
    """Whether boxes lie inside a frame and cover none of those that are taken."""
    inside = (boxes[:, :2] >= frame[:2]).all(axis=1) & (boxes[:, 2:] <= frame[2:]).all(axis=1)
    apart = (boxes[:, None, :2] >= taken[:, 2:]) | (boxes[:, None, 2:] <= taken[:, :2])
    return inside & apart.any(axis=2).all(axis=1)


def whole_numbers(axis: Any, values: Any) -> None:
    """Give an axis ticks at whole numbers only, where all its values are whole."""
    from matplotlib.ticker import MaxNLocator

    values = np.asarray(values, dtype=float)
    if values.size and (values == np.floor(values)).all():
        axis.set_major_locator(MaxNLocator(integer=True))


def draw_series(
    ax: Any, series: Mapping[str, tuple[Any, Any]], xlabel: str, ylabel: str, **style: Any
) -> Any:
    """Axes with curves, each with a distinct colour, dash and marker, and their legend."""
    if not series:
        raise ValueError("there are no curves to draw; pass a mapping of names to curves")
    ax = axes(ax, (5, 3.6))
    shades = colours(len(series))
    for i, (name, (x, y)) in enumerate(series.items()):
        x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
        if x.shape != y.shape or x.ndim != 1:
            raise ValueError(
                f"curve {name!r}: expected as many x as y, got shapes {x.shape} and {y.shape}"
            )
        line = {"linestyle": DASHES[i % len(DASHES)], "marker": marker(i), "markersize": 4}
        line["markevery"] = max(1, x.size // 12)  # a dozen are enough to tell lines apart
        ax.plot(x, y, label=in_legend(name), color=shades[i], **(line | style))
    beside_legend(ax)
    ax.set(xlabel=xlabel, ylabel=ylabel)
    return ax


def in_legend(name: Any) -> str:
    """A name as legends list it: Matplotlib leaves out what is blank or begins with _."""
    text = str(name)
    if not text.strip():
        return repr(text)
    return f" {text}" if text.startswith("_") else text


def beside_legend(ax: Any, **style: Any) -> None:
    """Put the legend beside the Axes, where it covers nothing."""
    lines = max(1, int(ax.figure.get_figheight() / 0.2))
    columns = -(-len(ax.get_legend_handles_labels()[0]) // lines)
    legend = ax.legend(
        frameon=False, fontsize="small", loc="center left", bbox_to_anchor=(1, 0.5),
        ncols=max(1, columns), **style,
    )  # fmt: skip
    for text in (legend.get_title(), *legend.get_texts()):
        text.set(**PLAIN)
    make_room(ax)


def make_room(ax: Any) -> None:
    """Let a figure of ours grow where a wide legend would leave little of it to the plot."""
    if hasattr(ax, "_repr_png_"):
        figure, legend = ax.figure, ax.get_legend()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # signs that the font lacks are told when it is drawn
            wide = legend.get_window_extent().width / figure.dpi
        figure.set_figwidth(figure.get_figwidth() + max(0.0, wide - 0.4 * figure.get_figwidth()))


# -- Methods compared: scores as bars, ranks with their critical difference, curves with a line each
#
# Each function takes what :mod:`tabweave.evaluate` gives for several methods, by their names.


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


def reliability_diagram(
    happened: Any, probabilities: Mapping[str, Any], *, n_bins: int = 10, ax: Axes | None = None
) -> Axes:
    """Draw how often what was predicted happened, a line for each method; a grey line is exact.

    Parameters
    ----------
    happened : array-like of bool
        Whether each row has the class whose probability is meant, as in ``y == "yes"``.
    probabilities : mapping of str to array-like
        By name of the method: the probability of each row, as in
        ``model.predict_proba(X)[:, 1]``.
    n_bins : int, default=10
        Number of bins, of as many rows each; a point is the mean of a bin.
    ax : matplotlib Axes, optional
        Where to draw.

    Examples
    --------
    >>> from tabweave.plots import reliability_diagram
    >>> ax = reliability_diagram([True, False] * 4, {"coin": [0.5] * 8})
    >>> [line.get_xydata().tolist() for line in ax.lines if line.get_label() == "coin"]
    [[[0.5, 0.5]]]
    """
    from sklearn.calibration import calibration_curve

    labels = np.asarray(happened, dtype=bool)
    curves = {}
    for name, shares in probabilities.items():
        observed, mean = calibration_curve(labels, shares, n_bins=n_bins, strategy="quantile")
        curves[name] = mean, observed
    ax = draw_series(ax, curves, "predicted probability", "share that happened")
    ax.plot([0, 1], [0, 1], color=OTHERS, linewidth=0.8, zorder=0)
    ax.set_xlim(0, 1)
    ax.set_ylim(0, 1)
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


# -- What was learned: couplings, trees of values, weights, drift, sources, and maps of what is near
#
# Each function takes what an embedder, a report or :class:`~tabweave.Sources` has to show.


def coupling_graph(
    strength: Any, names: Sequence[str], *, max_lines: int = 40, ax: Axes | None = None
) -> Axes:
    """Draw columns on a circle and a line for each coupling, thick and dark where it is strong.

    Parameters
    ----------
    strength : array-like of shape (n_columns, n_columns)
        How much two columns know about each other, from 0 to 1, symmetric; e.g.
        ``tabweave.counts.couplings.symmetric_uncertainty(counts)``. The diagonal is not looked at.
    names : sequence of str
        The columns, e.g. ``counts.names``.
    max_lines : int, default=40
        How many couplings are drawn, strongest first: more would hide each other.
    ax : matplotlib Axes, optional
        Where to draw.

    Examples
    --------
    >>> from tabweave import Counts
    >>> from tabweave.plots import coupling_graph
    >>> from tabweave.counts.couplings import symmetric_uncertainty
    >>> rows = {"crop": list("aabb"), "soil": list("xxyy"), "luck": list("pqpq")}
    >>> counts = Counts.of(rows)
    >>> ax = coupling_graph(symmetric_uncertainty(counts), counts.names)
    >>> len(ax.lines), sorted(text.get_text() for text in ax.texts)
    (1, ['crop', 'luck', 'soil'])
    """
    matrix = np.asarray(strength, dtype=float)
    if matrix.shape != (len(names), len(names)) or not len(names):
        raise ValueError(
            f"expected {len(names)} × {len(names)} strengths, got shape {matrix.shape}"
        )
    order = circle_order(matrix)
    points = np.empty((len(names), 2))
    angle = 2 * np.pi * (np.arange(len(names)) + 0.5) / len(names)
    points[order] = np.stack([np.sin(angle), np.cos(angle)], axis=1)
    ax = axes(ax, (5.5, 5.5))
    a, b = np.triu_indices(len(names), 1)
    lines = np.argsort(-matrix[a, b], kind="stable")[:max_lines][::-1]  # the strongest on top
    strongest = matrix[a, b].max(initial=0)
    for i, j in zip(a[lines], b[lines], strict=True):
        if matrix[i, j] > 0:
            share = matrix[i, j] / strongest
            shade = {"color": sequence()(0.25 + 0.75 * share), "lw": 0.5 + 4.5 * share}
            ax.plot(*_bent(points[i], points[j]), solid_capstyle="round", **shade)
    ax.scatter(*points.T, s=36, facecolor="white", edgecolor="black", zorder=3)
    for name, (x, y) in zip(names, points, strict=True):
        turn = np.degrees(np.arctan2(y, x))
        left = x < -1e-9
        ax.text(
            1.07 * x, 1.07 * y, _short(name), ha="right" if left else "left", va="center",
            rotation=turn - 180 if left else turn, rotation_mode="anchor", fontsize="small",
            **PLAIN,
        )  # fmt: skip
    ax.set(aspect="equal", xlim=(-1.7, 1.7), ylim=(-1.7, 1.7))
    ax.set_axis_off()
    return ax


def _short(name: Any, longest: int = 24) -> str:
    """A name that fits beside the circle."""
    text = str(name)
    return text if len(text) <= longest else text[: longest - 1] + "…"


def _bent(start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """A curve bent towards the centre, so that it stays off the names of neighbours."""
    t = np.linspace(0, 1, 24)[:, None]
    middle = 0.2 * (start + end)
    return ((1 - t) ** 2 * start + 2 * t * (1 - t) * middle + t**2 * end).T


def circle_order(strength: np.ndarray) -> np.ndarray:
    """An order of columns in which strongly coupled ones are neighbours."""
    return likeness_order(1 - np.minimum((strength + strength.T) / 2, 1))


def likeness_order(distances: np.ndarray) -> np.ndarray:
    """An order in which what is near is side by side: that of the leaves of a tree."""
    if len(distances) < 3 or not np.isfinite(distances).all():
        return np.arange(len(distances))
    distances = (distances + distances.T) / 2
    np.fill_diagonal(distances, 0)
    steps = linkage(squareform(distances, checks=False), "average", optimal_ordering=True)
    order = leaves_list(steps)
    # Either way round is as good: the one that is more like the order they came in.
    is_forward = order @ np.arange(len(order)) >= order[::-1] @ np.arange(len(order))
    return order if is_forward else order[::-1]


def dendrogram(tree: Any, *, max_leaves: int = 100, ax: Axes | None = None) -> Axes:
    """Draw a tree of values from the root on the left; lengths are the weights of its edges.

    Parameters
    ----------
    tree : tabweave.embed.hierarchy.Tree
        E.g. ``DistanceHierarchy().fit(X, y).trees_["color"]``.
    max_leaves : int, default=100
        Trees with more leaves are refused: nobody could read them.
    ax : matplotlib Axes, optional
        Where to draw.

    Examples
    --------
    >>> from tabweave.embed.hierarchy import Tree
    >>> from tabweave.plots import dendrogram
    >>> ax = dendrogram(Tree.of({"Coffee": ["Latte", "Mocha"], "Tea": ["Oolong"]}))
    >>> [text.get_text() for text in ax.texts]
    ['Latte', 'Mocha', 'Oolong']
    """
    leaves = leaves_in_order(tree)
    if len(leaves) > max_leaves:
        raise ValueError(
            f"expected a tree of at most {max_leaves} leaves, got {len(leaves)}; draw a part of "
            "it, or raise max_leaves"
        )
    height = np.zeros(len(tree))
    height[leaves] = np.arange(len(leaves))[::-1]
    for node in reversed(range(len(tree))):  # children come after their parents
        if tree.children[node]:
            height[node] = height[tree.children[node]].mean()
    ax = axes(ax, (5, float(np.clip(0.28 * len(leaves) + 0.8, 2, 20))))
    for node, below in enumerate(tree.children):
        x = tree.depths[node]
        if below:
            ax.plot([x, x], [height[below].min(), height[below].max()], color="black", lw=1)
        for child in below:
            ax.plot([x, tree.depths[child]], [height[child]] * 2, color="black", lw=1)
    for leaf in leaves:
        point = (float(tree.depths[leaf]), float(height[leaf]))
        ax.annotate(
            str(tree.names[leaf]), point, (4, 0), textcoords="offset points", va="center",
            fontsize="small", **PLAIN,
        )  # fmt: skip
    ax.set(yticks=[], xlabel="distance from the root")
    for side in ("top", "left", "right"):
        ax.spines[side].set_visible(False)
    return ax


def leaves_in_order(tree: Any) -> list[int]:
    """The leaves as they come from top to bottom."""
    leaves, waiting = [], [0]
    while waiting:
        node = waiting.pop()
        waiting += reversed(tree.children[node])
        if not tree.children[node]:
            leaves.append(node)
    return leaves


def weights_heatmap(weights: Mapping[str, Mapping[str, float]], *, ax: Axes | None = None) -> Axes:
    """Draw the weight of each coupling of each column; dark is large, similar columns together.

    Parameters
    ----------
    weights : mapping of str to mapping of str to float
        Per column the weight of each ``space/kernel``, e.g. ``UNTIE.weights_``. A coupling that a
        column does not have is left white.
    ax : matplotlib Axes, optional
        Where to draw.

    Examples
    --------
    >>> from tabweave.plots import weights_heatmap
    >>> ax = weights_heatmap({"color": {"intra/poly1": 0.2, "inter/poly1": 0.8}, "id": {}})
    >>> [text.get_text() for text in ax.get_xticklabels()]
    ['intra/poly1', 'inter/poly1']
    """
    columns = list(weights)
    couplings = list(dict.fromkeys(name for column in weights.values() for name in column))
    if not couplings:
        raise ValueError("there are no weights to draw; pass weights_ of a fitted UNTIE or HELIC")
    table = np.full((len(columns), len(couplings)), np.nan)
    for i, column in enumerate(columns):
        for name, weight in weights[column].items():
            table[i, couplings.index(name)] = weight
    filled = np.nan_to_num(table)
    order = likeness_order(np.abs(filled[:, None] - filled).sum(axis=2))
    table, columns = table[order], [columns[i] for i in order]
    width = float(np.clip(0.22 * len(couplings) + 2, 3.5, 14))
    ax = axes(ax, (width, float(np.clip(0.22 * len(columns) + 1.8, 2.5, 14))))
    return heatmap(ax, table, couplings, columns, label="weight", aspect="auto")


def column_weights(weights: Mapping[str, Any], *, ax: Axes | None = None) -> Axes:
    """Draw the weight of each column, as bars, the first column on top.

    Parameters
    ----------
    weights : mapping of str to float, or of str to mapping
        Weight of each column, e.g. ``Weave.weights_``; the weights of its couplings, as in
        ``UNTIE.weights_``, are added up.
    ax : matplotlib Axes, optional
        Where to draw.

    Examples
    --------
    >>> from tabweave.plots import column_weights
    >>> ax = column_weights({"color": 1.5, "size": {"intra/poly1": 0.25, "inter/poly1": 0.25}})
    >>> [float(bar.get_width()) for bar in ax.patches]
    [1.5, 0.5]
    """
    if not weights:
        raise ValueError("there are no weights to draw; pass weights_ of a fitted embedder")
    totals = [sum(w.values()) if isinstance(w, Mapping) else w for w in weights.values()]
    ax = _bar_axes(ax, list(weights))
    ax.barh(np.arange(len(totals)), totals, color=QUALITATIVE[0])
    ax.set_xlabel("weight")
    return ax


def drift(report: Any, *, n_couplings: int = 10, ax: Axes | None = None) -> Axes:
    """Draw how much each column and the most changed couplings moved, as bars on a log axis.

    Dark bars with their p-value are changes at the report's level, pale ones may be chance.

    Parameters
    ----------
    report : DriftReport
        What `tabweave.tasks.drift.drift_report` returns.
    n_couplings : int, default=10
        How many couplings to show below the columns.
    ax : matplotlib Axes, optional
        Where to draw.

    Examples
    --------
    >>> from tabweave import Counts
    >>> from tabweave.tasks.drift import drift_report
    >>> from tabweave.plots import drift
    >>> days = [Counts.of({"color": ["red", "blue"] * 40}), Counts.of({"color": ["red"] * 40})]
    >>> ax = drift(drift_report(*days))
    >>> [text.get_text() for text in ax.get_yticklabels()]
    ['color']
    """
    findings = [*report.columns, *report.couplings[:n_couplings]]
    if not findings:
        raise ValueError("expected a report with columns, got one without")
    ax = _bar_axes(ax, [finding.name for finding in findings])
    effects = np.array([f.effect if np.isfinite(f.effect) else 0.0 for f in findings])
    changed = np.array([report.is_changed(finding) for finding in findings])
    looks = ((changed, QUALITATIVE[0], "changed"), (~changed, "#c9ccd1", "may be chance"))
    for mask, colour, name in looks:
        if mask.any():
            ax.barh(np.flatnonzero(mask), effects[mask], color=colour, label=name)
    for i in np.flatnonzero(changed):
        style = {"textcoords": "offset points", "va": "center", "fontsize": "x-small"}
        ax.annotate(f"p {_p_value(findings[i].adjusted)}", (effects[i], i), (4, 0), **style)
    ax.set_xscale("symlog", linthresh=1)
    ax.set_xlim(right=3 * max([*effects, 1.0]))
    ax.axvline(0, color="0.4", linewidth=0.8)
    beside_legend(ax)
    if report.couplings[:n_couplings]:
        ax.axhline(len(report.columns) - 0.5, color="0.4", linewidth=0.8, linestyle=":")
    ax.set_xlabel("standard deviations above no change")
    return ax


def _bar_axes(ax: Any, names: Sequence[Any]) -> Any:
    """Axes for horizontal bars with names, the first on top."""
    ax = axes(ax, (5, float(np.clip(0.24 * len(names) + 1, 2, 14))))
    ax.set_yticks(np.arange(len(names)), list(map(str, names)), fontsize="small", **PLAIN)
    ax.invert_yaxis()
    return ax


def _p_value(p: float) -> str:
    return "< 0.0001" if p < 1e-4 else f"= {p:.2g}"


def overlap(sources: Any, *, ax: Axes | None = None) -> Axes:
    """Draw how many ids each pair of sources shares; the diagonal has the size of each.

    Parameters
    ----------
    sources : Sources
        Tables count the ids they have a row of, graphs those they link.
    ax : matplotlib Axes, optional
        Where to draw.

    Examples
    --------
    >>> from tabweave import Sources
    >>> from tabweave.plots import overlap
    >>> sources = Sources({"a": ([1, 2, 3], [[0], [1], [2]]), "b": ([3, 4], [[1], [0]])})
    >>> ax = overlap(sources)
    >>> [text.get_text() for text in ax.texts]
    ['3', '1', '1', '2']
    """
    linked = [np.diff(sources.graph(name).indptr) > 0 for name in sources.graph_names]
    present = np.column_stack([sources.present, *linked]).astype(float)
    shared = present.T @ present
    names = [*sources.names, *sources.graph_names]
    side = float(np.clip(0.55 * len(names) + 1.8, 3, 12))
    ax = axes(ax, (side + 0.8, side))
    label, largest = f"ids of {len(sources):,}", max(len(sources), 1)
    texts = shared.astype(int).astype(str)
    heatmap(ax, shared, names, names, label=label, texts=texts, vmax=largest)
    whole_numbers(ax.images[0].colorbar.ax.yaxis, shared)
    return ax


def scatter_map(points: Any, labels: Any, *, title: str = "", ax: Axes | None = None) -> Axes:
    """Draw a map of objects: classes by colour and marker, numbers and dates by shades.

    Parameters
    ----------
    points : array-like of shape (n_objects, 2)
        Coordinates, e.g. from t-SNE or MDS (Zhu 2019, section 3.5.1).
    labels : array-like of shape (n_objects,)
        Class or cluster of each object: the eight largest have colours, the rest are "other". Or
        numbers on a scale (fractions of more than eight values, whole numbers of more than 20) or
        dates, which get shades, a scale beside the map, and grey dots where one is missing. Shades
        are spread over the middle 96 %. One unit is as long across as it is up.
    title : str, optional
        What the labels are; above the legend, or beside the scale.
    ax : matplotlib Axes, optional
        Where to draw.

    Examples
    --------
    >>> from tabweave.plots import scatter_map
    >>> ax = scatter_map([[0, 0], [1, 1], [2, 0]], ["a", "b", "a"])
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['a', 'b']
    """
    points = np.asarray(points, dtype=float)
    labels = [None if is_missing(label) else label for label in labels]
    if points.shape != (len(labels), 2) or not labels:
        raise ValueError(
            f"expected points of shape ({len(labels)}, 2), got {points.shape}; reduce them to two "
            "dimensions first, e.g. with PCA or t-SNE"
        )
    ax = axes(ax, (5, 4.5))
    ax.set(xticks=[], yticks=[], aspect="equal", adjustable="datalim")
    dates = _as_days(labels)
    if dates is not None or _are_measured(labels):
        numbers = dates if dates is not None else np.array(labels, dtype=float)
        _draw_shades(ax, points, numbers, title, is_dated=dates is not None)
    else:
        _draw_classes(ax, points, labels, title)
    return ax


def _dots(n: int) -> dict[str, Any]:
    """How dots look: the more there are, the smaller and paler, so that many show as dark."""
    few = 500
    size = float(np.clip(22 * np.sqrt(few / n), 3, 22))
    opacity = float(np.clip((4 * few / n) ** 0.5, 0.15, 1.0))
    return {"s": size, "alpha": opacity, "linewidths": 0.3 if n <= few else 0.0}


def _draw_shades(
    ax: Any, points: np.ndarray, numbers: np.ndarray, title: str, *, is_dated: bool
) -> None:
    """Draw numbers from pale to dark with their scale; what is missing is grey."""
    is_gap = np.isnan(numbers)
    look = _dots(len(points))
    ax.scatter(*points[is_gap].T, color=OTHERS, marker="x", **(look | {"linewidths": 0.5}))
    # a few far ones would leave all others one shade
    low, high = np.quantile(numbers[~is_gap], [0.02, 0.98])
    low, high = (low, high) if low < high else (numbers[~is_gap].min(), numbers[~is_gap].max())
    dots = ax.scatter(
        *points[~is_gap].T, c=numbers[~is_gap], cmap=sequence(of_dots=True), vmin=low, vmax=high,
        edgecolors="0.3", **look,
    )  # fmt: skip
    beyond = (numbers[~is_gap].min() < low, numbers[~is_gap].max() > high)
    extend = {(0, 0): "neither", (1, 0): "min", (0, 1): "max", (1, 1): "both"}[beyond]
    bar = ax.figure.colorbar(dots, ax=ax, shrink=0.8, extend=extend)
    bar.solids.set_alpha(1)
    bar.set_label(f"{title}{', × missing' if is_gap.any() else ''}".removeprefix(", "), **PLAIN)
    if is_dated:
        from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

        bar.locator = AutoDateLocator()
        bar.formatter = ConciseDateFormatter(bar.locator)


def _draw_classes(ax: Any, points: np.ndarray, labels: list[Any], title: str) -> None:
    """Draw each class with a colour and a marker; beyond eight, the smaller ones are one."""
    classes: dict[Any, int] = {}
    class_of = np.empty(len(labels), np.intp)
    for i, label in enumerate(labels):
        class_of[i] = classes.setdefault(label, len(classes))
    sizes, values = np.bincount(class_of), list(classes)
    largest = np.argsort(-sizes, kind="stable")
    drawn = [values[i] for i in largest[: len(QUALITATIVE)] if values[i] is not None]
    # Numbers by size, then text: labels of mixed types have no order of their own.
    drawn.sort(key=lambda v: (0, v, "") if isinstance(v, Real) else (1, 0, str(v)))
    look = _dots(len(points))
    groups = [
        (_short(v), class_of == classes[v], c) for v, c in zip(drawn, QUALITATIVE, strict=False)
    ]
    rest = np.isin(class_of, [classes[v] for v in values if v is not None and v not in drawn])
    if rest.any():
        n_rest = len(values) - len(drawn) - (None in classes)
        groups.append((f"{n_rest:,} others", rest, OTHERS))
    if None in classes:
        groups.append(("missing", class_of == classes[None], "#d0d1d4"))
    for i, (name, mask, colour) in enumerate(groups):
        ax.scatter(
            *points[mask].T, color=[colour], marker=marker(i), edgecolors="black",
            label=in_legend(name), zorder=2 - mask.mean(), **look,
        )  # fmt: skip
    beside_legend(ax, title=title or None)
    for handle in ax.get_legend().legend_handles:
        handle.set(alpha=1, sizes=[22])


def _as_days(labels: list[Any]) -> np.ndarray | None:
    """Dates as days since 1970, NaN where missing; None if labels are no dates."""
    present = [label for label in labels if label is not None]
    if not all(isinstance(label, np.datetime64 | dt.date) for label in present) or not present:
        return None
    stamps = np.array([np.datetime64("NaT") if v is None else _as_stamp(v) for v in labels])
    days = stamps.astype("datetime64[us]").astype(float) / 86_400e6
    return np.where(np.isnat(stamps), np.nan, days)


def _as_stamp(moment: Any) -> np.datetime64:
    """A date or time by its own clock."""
    clock = moment.replace(tzinfo=None) if isinstance(moment, dt.datetime) else moment
    return np.datetime64(clock, "us")


def _are_measured(labels: list[Any]) -> bool:
    """Whether labels are numbers on a scale, not of classes: of many values, or fractions."""
    numbers = [v for v in labels if isinstance(v, Real) and not isinstance(v, bool)]
    if len(numbers) < sum(label is not None for label in labels) or not numbers:
        return False
    if not np.isfinite(np.asarray(numbers, float)).all():
        return False
    n_values, max_codes = len(set(numbers)), 20
    is_fraction = any(float(v) % 1 for v in numbers)
    return n_values > (len(QUALITATIVE) if is_fraction else max_codes)


def value_heatmap(distances: Any, labels: Sequence[Any], *, ax: Axes | None = None) -> Axes:
    """Draw the distances between the values of a column; dark is far; up to 12 values have numbers.

    Values that are alike stand side by side. Shades of more than 12 values are spread over the
    middle 96 % of the distances. Of more than 60 values every second (third, ...) has
    its name.

    Parameters
    ----------
    distances, labels : array-like of shape (n_values, n_values), sequence
        E.g. from ``embedder.value_distances(column)``, and the values.
    ax : matplotlib Axes, optional
        Where to draw.

    Examples
    --------
    >>> from tabweave.plots import value_heatmap
    >>> ax = value_heatmap([[0, 0.5], [0.5, 0]], ["red", "blue"])
    >>> [text.get_text() for text in ax.texts]
    ['0', '0.5', '0.5', '0']
    """
    distances = np.asarray(distances, dtype=float)
    names = ["missing" if is_missing(label) else str(label) for label in labels]
    if distances.shape != (len(names), len(names)) or not names:
        raise ValueError(
            f"expected {len(names)} × {len(names)} distances, got shape {distances.shape}"
        )
    order = likeness_order(distances)
    distances, names = distances[np.ix_(order, order)], [names[i] for i in order]
    side = float(np.clip(0.45 * len(names) + 1.5, 3, 12))
    ax = axes(ax, (side + 0.8, side))
    if len(names) <= 12:
        texts = np.vectorize("{:.2g}".format)(distances)
        return heatmap(ax, distances, names, names, label="distance", texts=texts)
    between = distances[~np.eye(len(names), dtype=bool)]
    low, high = np.quantile(between, [0.02, 0.98])
    scale = {"vmin": low, "vmax": high} if low < high else {}
    return heatmap(ax, distances, names, names, label="distance", **scale)


# -- factorial maps -------------------------------------------------------------------------------


def biplot(
    model: Any, X: Any = None, *, dims: tuple[int, int] = (0, 1), ax: Axes | None = None
) -> Axes:
    """Draw values and numbers, and rows if given, on two axes of a factorial map.

    Names keep clear of each other, those far from the centre first; what has no room is left out.

    Parameters
    ----------
    model : MCA, FAMD or MFA
        A fitted one.
    X : what ``model.transform`` takes, optional
        Rows to draw as grey dots.
    dims : pair of int, default=(0, 1)
        Which axes.
    ax : matplotlib Axes, optional
        Where to draw.

    Examples
    --------
    >>> from tabweave import MCA
    >>> from tabweave.plots import biplot
    >>> rows = {"sky": ["sun", "sun", "rain", "fog"], "hat": ["yes", "no", "no", "no"]}
    >>> ax = biplot(MCA(2).fit(rows), rows)
    >>> sorted(text.get_text() for text in ax.texts)
    ['hat=no', 'hat=yes', 'sky=fog', 'sky=rain', 'sky=sun']
    """
    coordinates = model.column_coordinates()
    if max(dims) >= coordinates.shape[1] or min(dims) < 0:
        raise ValueError(f"expected two of {coordinates.shape[1]} axes, got dims={dims}")
    points = coordinates.to_numpy()[:, list(dims)]
    numeric = set(model.schema_.names) - set(model.counts_.names)
    ax = axes(ax, (6, 6))
    if X is not None:
        ax.scatter(*model.transform(X)[:, list(dims)].T, s=6, color=OTHERS, alpha=0.5, linewidths=0)
    ax.axhline(0, color="0.6", lw=0.6)
    ax.axvline(0, color="0.6", lw=0.6)
    order = {name: i for i, name in enumerate(model.schema_.names)}
    shades = colours(len(order))
    for (column, _), (x, y) in zip(coordinates.index, points, strict=True):
        shade = shades[order[column]]
        if column in numeric:
            ax.annotate("", (x, y), (0, 0), arrowprops={"arrowstyle": "->", "color": shade})
        else:
            ax.scatter([x], [y], s=18, color=[shade], marker=marker(order[column]))
    values = ["missing" if is_missing(value) else _short(value) for _, value in coordinates.index]
    names = [
        str(column) if column in numeric else f"{column}={value}"
        for (column, _), value in zip(coordinates.index, values, strict=True)
    ]
    inks = [QUALITATIVE[order[column] % len(QUALITATIVE)] for column, _ in coordinates.index]
    ax.margins(0.12)
    share = model.explained_inertia_ratio_
    ax.set(xlabel=f"axis {dims[0] + 1} ({share[dims[0]]:.0%})")
    ax.set(ylabel=f"axis {dims[1] + 1} ({share[dims[1]]:.0%})")
    n_left = len(names) - label_points(ax, points, names, inks)
    if n_left:
        ax.set_title(f"{n_left:,} of {len(names):,} names left out", fontsize="small")
    return ax


def scree(model: Any, *, ax: Axes | None = None) -> Axes:
    """Draw the share of each axis in the inertia, and the cumulative share.

    Parameters
    ----------
    model : MCA, CA, FAMD or MFA
        A fitted one.
    ax : matplotlib Axes, optional
        Where to draw.

    Examples
    --------
    >>> from tabweave import MCA
    >>> from tabweave.plots import scree
    >>> rows = {"sky": ["sun", "sun", "rain", "fog"], "hat": ["yes", "no", "no", "no"]}
    >>> len(scree(MCA(3).fit(rows)).patches)
    3
    """
    share = np.asarray(model.explained_inertia_ratio_)
    ax = axes(ax, (5, 3.5))
    number = np.arange(1, len(share) + 1)
    ax.bar(number, share, color=QUALITATIVE[0])
    ax.plot(number, np.cumsum(share), color=QUALITATIVE[1], marker="o", ms=3, lw=1)
    ax.set(xlabel="axis", ylabel="share of the inertia", xticks=number)
    return ax


def association_heatmap(
    associations: Any, measure: str = "strength", *, ax: Axes | None = None
) -> Axes:
    """Draw how strongly each pair of columns is associated; similar columns stand side by side.

    Parameters
    ----------
    associations : Associations
        From :func:`tabweave.associations`.
    measure : str, default="strength"
        What to draw; see :class:`tabweave.tasks.associations.Associations`.
    ax : matplotlib Axes, optional
        Where to draw.

    Examples
    --------
    >>> from tabweave import associations
    >>> from tabweave.plots import association_heatmap
    >>> rows = {"crop": list("aabb"), "soil": list("xxyy"), "luck": list("pqpq")}
    >>> ax = association_heatmap(associations(rows))
    >>> [text.get_text() for text in ax.get_xticklabels()]
    ['crop', 'soil', 'luck']
    """
    matrix = associations.matrix(measure)
    side = float(np.clip(0.45 * len(matrix), 1.5, 12))
    ax = axes(ax, (side + 2, side + 1.5))
    values = np.nan_to_num(np.abs(np.asarray(matrix, dtype=float)))
    order = likeness_order(values.max(initial=1.0) - values)
    matrix, values = matrix.iloc[order, order], values[np.ix_(order, order)]
    texts = np.vectorize("{:.2f}".format, otypes=[object])(values)
    texts[(values < 0.005) | np.eye(len(values), dtype=bool)] = ""
    most = 1 if measure not in ("statistic", "mutual_information") else None
    if len(values) > 26:  # no room for figures
        return heatmap(ax, values, matrix.columns, matrix.index, label=measure, vmax=most)
    return heatmap(ax, values, matrix.columns, matrix.index, texts=texts, vmax=most)
