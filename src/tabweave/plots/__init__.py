"""Plots of results, readable in greyscale: each returns the Axes it drew on.

Comes in: the arrays that `tabweave.evaluate` and the embedders give. Goes out: a Matplotlib Axes,
on a new figure unless ``ax`` is passed; save it with ``ax.figure.savefig("name.png")``.
Nothing is shown and no global state of pyplot is touched.
"""

from tabweave.plots.comparisons import (
    cd_diagram,
    convergence,
    epsilon_gamma_curve,
    indicator_density,
    precision_curve,
    score_bars,
    sensitivity,
    time_cost,
)
from tabweave.plots.structure import (
    association_heatmap,
    biplot,
    column_weights,
    coupling_graph,
    dendrogram,
    drift,
    overlap,
    scatter_map,
    scree,
    value_heatmap,
    weights_heatmap,
)

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
    "scatter_map",
    "score_bars",
    "scree",
    "sensitivity",
    "time_cost",
    "value_heatmap",
    "weights_heatmap",
]
