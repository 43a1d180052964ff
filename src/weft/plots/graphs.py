"""Graphs: which columns depend on each other."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from weft.plots._style import axes


def coupling_graph(
    strength: Any, names: Sequence[str], *, max_lines: int = 40, ax: Any = None
) -> Any:
    """Draw columns on a circle and a line for each coupling, thick and dark where it is strong.

    Parameters
    ----------
    strength : array-like of shape (n_columns, n_columns)
        How much two columns know about each other, from 0 to 1, symmetric; e.g.
        ``weft.spaces.symmetric_uncertainty(counts)``. The diagonal is not looked at.
    names : sequence of str
        The columns, e.g. ``counts.names``.
    max_lines : int, default=40
        How many couplings are drawn, strongest first: more would hide each other.
    ax : matplotlib Axes, optional
        Where to draw.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from weft import Counts
    >>> from weft.plots import coupling_graph
    >>> from weft.spaces import symmetric_uncertainty
    >>> rows = {"crop": list("aabb"), "soil": list("xxyy"), "luck": list("pqpq")}
    >>> counts = Counts.of(rows)
    >>> ax = coupling_graph(symmetric_uncertainty(counts), counts.names)
    >>> len(ax.lines), sorted(text.get_text() for text in ax.texts)
    (1, ['crop', 'luck', 'soil'])
    """
    matrix = np.asarray(strength, dtype=float)
    if matrix.shape != (len(names), len(names)) or not len(names):
        raise ValueError(f"strength has shape {matrix.shape} for {len(names)} names")
    order = circle_order(matrix)
    place = np.empty((len(names), 2))
    angle = 2 * np.pi * (np.arange(len(names)) + 0.5) / len(names)
    place[order] = np.stack([np.sin(angle), np.cos(angle)], axis=1)
    ax = axes(ax, (5.5, 5.5))
    a, b = np.triu_indices(len(names), 1)
    lines = np.argsort(matrix[a, b], kind="stable")[-max_lines:]
    strongest = matrix[a, b].max(initial=0)
    for i, j in zip(a[lines], b[lines], strict=True):
        if matrix[i, j] > 0:
            share = matrix[i, j] / strongest
            shade = {"color": str(0.85 - 0.85 * share), "lw": 0.5 + 4.5 * share}
            ax.plot(*_bent(place[i], place[j]), solid_capstyle="round", **shade)
    ax.scatter(*place.T, s=36, facecolor="white", edgecolor="black", zorder=3)
    for name, (x, y) in zip(names, place, strict=True):
        turn = np.degrees(np.arctan2(y, x))
        left = x < -1e-9
        ax.text(
            1.07 * x, 1.07 * y, str(name), ha="right" if left else "left", va="center",
            rotation=turn - 180 if left else turn, rotation_mode="anchor", fontsize="small",
        )  # fmt: skip
    ax.set(aspect="equal", xlim=(-1.7, 1.7), ylim=(-1.7, 1.7))
    ax.set_axis_off()
    return ax


def _bent(start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Return a curve bent towards the centre, so that it stays off the names of neighbours."""
    t = np.linspace(0, 1, 24)[:, None]
    middle = 0.2 * (start + end)
    return ((1 - t) ** 2 * start + 2 * t * (1 - t) * middle + t**2 * end).T


def circle_order(strength: np.ndarray) -> np.ndarray:
    """Return an order of columns in which strongly coupled ones are neighbours."""
    from scipy.cluster.hierarchy import leaves_list, linkage
    from scipy.spatial.distance import squareform

    if len(strength) < 3:
        return np.arange(len(strength))
    apart = 1 - np.minimum((strength + strength.T) / 2, 1)
    np.fill_diagonal(apart, 0)
    steps = linkage(squareform(apart, checks=False), "average", optimal_ordering=True)
    return leaves_list(steps)
