"""Maps of objects and of values: what lies near what."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from tabweave.plots.style import MARKERS, axes, colours

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def scatter_map(points: Any, labels: Any, *, ax: Axes | None = None) -> Axes:
    """Draw a map of objects, each class with a colour and marker of its own.

    Parameters
    ----------
    points : array-like of shape (n_objects, 2)
        Coordinates, e.g. from t-SNE or MDS (Zhu 2019, section 3.5.1).
    labels : array-like of shape (n_objects,)
        Class or cluster of each object.
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
    labels = list(labels)
    if points.shape != (len(labels), 2) or not labels:
        raise ValueError(
            f"expected points of shape ({len(labels)}, 2), got {points.shape}; reduce them to two "
            "dimensions first, e.g. with PCA or t-SNE"
        )
    ax = axes(ax, (5, 4.5))
    # Numbers by size, then text: labels of mixed types have no order of their own.
    names = sorted(set(labels), key=lambda v: (0, v, "") if isinstance(v, Real) else (1, 0, str(v)))
    for i, (name, colour) in enumerate(zip(names, colours(len(names)), strict=True)):
        x, y = points[[label == name for label in labels]].T
        look = {"color": [colour], "marker": MARKERS[i % len(MARKERS)], "edgecolors": "black"}
        ax.scatter(x, y, s=22, linewidths=0.3, label=str(name), **look)
    ax.set(xticks=[], yticks=[])
    ax.legend(fontsize="small", frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
    return ax


def value_heatmap(distances: Any, labels: Sequence[Any], *, ax: Axes | None = None) -> Axes:
    """Draw the distances between the values of a column; dark is far, up to 12 are written out.

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
    names = [str(label) for label in labels]
    if distances.shape != (len(names), len(names)) or not names:
        raise ValueError(
            f"expected {len(names)} × {len(names)} distances, got shape {distances.shape}"
        )
    side = float(np.clip(0.45 * len(names) + 1.5, 3, 12))
    ax = axes(ax, (side + 0.8, side))
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
