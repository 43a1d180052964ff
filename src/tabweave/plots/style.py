"""The house style of all pictures: figures of their own, greys in order, markers that differ."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from tabweave._compat import require

# Shape and dash tell series apart where colour does not.
MARKERS = "os^DvPX*<>"
HATCHES = ["", "///", "...", "xxx", "\\\\\\", "ooo"]
DASHES = ["-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1, 1, 1))]


def axes(ax: Any, size: tuple[float, float]) -> Any:
    """Return the given Axes, or those of a new figure that pyplot does not know of."""
    if ax is not None:
        return ax
    return (
        require("matplotlib.figure", "plots").Figure(figsize=size, layout="constrained").subplots()
    )


def colours(n: int) -> list:
    """Return colours that differ in lightness, from dark to light."""
    colormaps = require("matplotlib", "plots").colormaps
    # Its lightness rises evenly; the palest end is left out, it vanishes on paper.
    return [colormaps["viridis"](shade) for shade in np.linspace(0, 0.85, max(n, 1))][:n]


def greys(n: int) -> list[str]:
    """Return greys from dark to pale, evenly."""
    return [str(shade) for shade in np.linspace(0.35, 0.95, max(n, 1)).round(3)][:n]


def draw_series(ax: Any, series: Mapping[str, tuple[Any, Any]], **style: Any) -> None:
    """Draw curves, each with a colour, dash and marker of its own, and their legend."""
    if not series:
        raise ValueError("there are no curves to draw; pass a mapping of names to curves")
    shades = colours(len(series))
    for i, (name, (x, y)) in enumerate(series.items()):
        x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
        if x.shape != y.shape or x.ndim != 1:
            raise ValueError(
                f"curve {name!r}: expected as many x as y, got shapes {x.shape} and {y.shape}"
            )
        look = {"linestyle": DASHES[i % len(DASHES)], "marker": MARKERS[i % len(MARKERS)]}
        every = max(1, x.size // 12)  # a dozen markers are enough to tell lines apart
        ax.plot(x, y, label=name, color=shades[i], markersize=4, markevery=every, **look, **style)
    ax.legend(frameon=False, fontsize="small")
