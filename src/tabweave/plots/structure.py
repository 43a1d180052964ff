"""What was learned: couplings, trees of values, weights, drift, sources, and maps of what is near.

Each function takes what an embedder, a report or :class:`~tabweave.Sources` has to show.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.spatial.distance import squareform

from tabweave.columns.frames import is_missing
from tabweave.plots.style import (
    OTHERS,
    PLAIN,
    QUALITATIVE,
    axes,
    beside_legend,
    colours,
    heatmap,
    in_legend,
    marker,
    sequence,
    whole_numbers,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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


def scatter_map(points: Any, labels: Any, *, ax: Axes | None = None) -> Axes:
    """Draw a map of objects, each class with a distinct colour and marker.

    Parameters
    ----------
    points : array-like of shape (n_objects, 2)
        Coordinates, e.g. from t-SNE or MDS (Zhu 2019, section 3.5.1).
    labels : array-like of shape (n_objects,)
        Class or cluster of each object; or numbers on a scale (fractions, more than eight), which
        get shades and a scale beside the map; missing ones are a class. One unit is as long across
        as it is up.
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
    if _are_measured(labels):
        dots = ax.scatter(*points.T, s=22, c=np.asarray(labels, float), cmap=sequence(),
                          edgecolors="0.3", linewidths=0.3)  # fmt: skip
        ax.figure.colorbar(dots, ax=ax, shrink=0.8)
        return ax
    # Numbers by size, then text: labels of mixed types have no order of their own.
    names = sorted(set(labels), key=lambda v: (0, v, "") if isinstance(v, Real) else (1, 0, str(v)))
    for i, (name, colour) in enumerate(zip(names, colours(len(names)), strict=True)):
        x, y = points[[label == name for label in labels]].T
        look = {"color": [colour], "marker": marker(i), "edgecolors": "black"}
        shown = "missing" if name is None else str(name)
        ax.scatter(x, y, s=22, linewidths=0.3, label=in_legend(shown), **look)
    beside_legend(ax)
    return ax


def _are_measured(labels: list[Any]) -> bool:
    """Whether labels are numbers on a scale, not of classes: fractions, of many values."""
    numbers = [v for v in labels if isinstance(v, Real) and not isinstance(v, bool)]
    if len(numbers) < len(labels) or not np.isfinite(np.asarray(numbers, float)).all():
        return False
    return len(set(numbers)) > len(QUALITATIVE) and any(float(v) % 1 for v in numbers)


def value_heatmap(distances: Any, labels: Sequence[Any], *, ax: Axes | None = None) -> Axes:
    """Draw the distances between the values of a column; dark is far; up to 12 values have numbers.

    Values that are alike stand side by side.

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
    texts = np.vectorize("{:.2g}".format)(distances) if len(names) <= 12 else None
    return heatmap(ax, distances, names, names, label="distance", texts=texts)


# -- factorial maps -------------------------------------------------------------------------------


def biplot(
    model: Any, X: Any = None, *, dims: tuple[int, int] = (0, 1), ax: Axes | None = None
) -> Axes:
    """Draw values and numbers, and rows if given, on two axes of a factorial map.

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
    for (column, value), (x, y) in zip(coordinates.index, points, strict=True):
        shade = shades[order[column]]
        if column in numeric:
            ax.annotate("", (x, y), (0, 0), arrowprops={"arrowstyle": "->", "color": shade})
        else:
            ax.scatter([x], [y], s=18, color=[shade], marker=marker(order[column]))
        text = str(column) if column in numeric else f"{column}={value}"
        ax.text(x, y, f"{text}", fontsize="small", color=shade, **PLAIN)
    share = model.explained_inertia_ratio_
    ax.set(xlabel=f"axis {dims[0] + 1} ({share[dims[0]]:.0%})")
    ax.set(ylabel=f"axis {dims[1] + 1} ({share[dims[1]]:.0%})")
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
    ax = axes(ax, (0.45 * len(matrix) + 2, 0.45 * len(matrix) + 1.5))
    values = np.nan_to_num(np.abs(np.asarray(matrix, dtype=float)))
    order = likeness_order(values.max(initial=1.0) - values)
    matrix, values = matrix.iloc[order, order], values[np.ix_(order, order)]
    texts = np.vectorize("{:.2f}".format, otypes=[object])(values)
    texts[(values < 0.005) | np.eye(len(values), dtype=bool)] = ""
    return heatmap(ax, values, matrix.columns, matrix.index, texts=texts, vmax=1)
