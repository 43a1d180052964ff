"""Weights: what each column and each coupling contributes."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from weft.plots._style import axes


def weights_heatmap(weights: Mapping[str, Mapping[str, float]], *, ax: Any = None) -> Any:
    """Draw how much each coupling of each column counts; dark is much.

    Parameters
    ----------
    weights : mapping of str to mapping of str to float
        Per column the weight of each ``space/kernel``, e.g. ``UNTIE.weights_``. A coupling that a
        column does not have is left white.
    ax : matplotlib Axes, optional
        Where to draw.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from weft.plots import weights_heatmap
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
    width = float(np.clip(0.22 * len(couplings) + 2, 3.5, 14))
    ax = axes(ax, (width, float(np.clip(0.22 * len(columns) + 1.8, 2.5, 14))))
    image = ax.imshow(table, cmap="Greys", vmin=0, aspect="auto")
    ax.figure.colorbar(image, ax=ax, label="weight")
    ax.set_xticks(np.arange(len(couplings)), couplings, rotation=90, fontsize="small")
    ax.set_yticks(np.arange(len(columns)), columns, fontsize="small")
    return ax


def column_weights(weights: Mapping[str, Any], *, ax: Any = None) -> Any:
    """Draw how much each column counts, as bars, the first column on top.

    Parameters
    ----------
    weights : mapping of str to float, or of str to mapping
        Weight of each column, e.g. ``Weave.weights_``; the weights of its couplings, as in
        ``UNTIE.weights_``, are added up.
    ax : matplotlib Axes, optional
        Where to draw.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from weft.plots import column_weights
    >>> ax = column_weights({"color": 1.5, "size": {"intra/poly1": 0.25, "inter/poly1": 0.25}})
    >>> [float(bar.get_width()) for bar in ax.patches]
    [1.5, 0.5]
    """
    if not weights:
        raise ValueError("there are no weights to draw; pass weights_ of a fitted embedder")
    totals = [sum(w.values()) if isinstance(w, Mapping) else w for w in weights.values()]
    ax = axes(ax, (5, float(np.clip(0.24 * len(totals) + 1, 2, 14))))
    places = np.arange(len(totals))
    ax.barh(places, totals, color="0.45")
    ax.set_yticks(places, [str(name) for name in weights], fontsize="small")
    ax.invert_yaxis()
    ax.set_xlabel("weight")
    return ax
