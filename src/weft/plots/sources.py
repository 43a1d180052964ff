"""Overlap: which sources know the same things."""

from typing import Any

import numpy as np

from weft.plots._style import axes


def overlap(sources: Any, *, ax: Any = None) -> Any:
    """Draw how many ids each pair of sources shares; the diagonal has the size of each.

    Parameters
    ----------
    sources : Sources
        Tables count the ids they have a row of, graphs those they link.
    ax : matplotlib Axes, optional
        Where to draw.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from weft import Sources
    >>> from weft.plots import overlap
    >>> sources = Sources({"a": ([1, 2, 3], [[0], [1], [2]]), "b": ([3, 4], [[1], [0]])})
    >>> ax = overlap(sources)
    >>> [text.get_text() for text in ax.texts]
    ['3', '1', '1', '2']
    """
    linked = [np.diff(sources.graph(name).indptr) > 0 for name in sources.graph_names]
    known = np.column_stack([sources.present, *linked]).astype(float)
    shared = known.T @ known
    names = [*sources.names, *sources.graph_names]
    side = float(np.clip(0.55 * len(names) + 1.8, 3, 12))
    ax = axes(ax, (side + 0.8, side))
    image = ax.imshow(shared, cmap="Greys", vmin=0, vmax=max(len(sources), 1))
    ax.figure.colorbar(image, ax=ax, label=f"ids of {len(sources):,}")
    for i, row in enumerate(shared):
        for j, count in enumerate(row):
            dark = count > 0.6 * len(sources)
            style = {"ha": "center", "va": "center", "fontsize": "x-small"}
            ax.text(j, i, f"{count:.0f}", color="white" if dark else "black", **style)
    ax.set_xticks(np.arange(len(names)), names, rotation=90, fontsize="small")
    ax.set_yticks(np.arange(len(names)), names, fontsize="small")
    return ax
