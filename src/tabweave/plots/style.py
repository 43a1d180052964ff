"""The house style of all pictures, and the one palette of plots, reports, studio and maps.

Classes have colours that differ for the colour-blind, too (a test simulates them), and a marker or
hatch besides; numbers have one colour from pale to dark. Pages have the same in ``style.css``, with
another set for dark screens.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import cycle, islice
from typing import Any

import numpy as np

from tabweave._compat import require

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


def sequence() -> Any:
    """The colours of numbers, from pale to dark, as a Matplotlib colour map."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("tabweave", ["#f6f9fc", *SEQUENTIAL])


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
    shades = ax.imshow(table, cmap=sequence(), vmin=0, **image)
    if label:
        ax.figure.colorbar(shades, ax=ax, label=label)
    ax.set_xticks(np.arange(len(columns)), columns, rotation=90, fontsize="small", **PLAIN)
    ax.set_yticks(np.arange(len(rows)), rows, fontsize="small", **PLAIN)
    style: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": "x-small"}
    for (i, j), text in () if texts is None else np.ndenumerate(texts):
        if text:
            ax.text(j, i, text, color=ink_on(shades.norm(table[i, j])), **style)
    return ax


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
