"""Pictures of results, readable in greyscale: each returns the Axes it drew on.

Comes in: the arrays that `weft.evaluate` and the embedders give. Goes out: a Matplotlib Axes, on a
figure of its own unless ``ax`` is passed; save it with ``ax.figure.savefig("name.png")``. Nothing
is shown and no global state of pyplot is touched.
"""

from weft.plots.bars import score_bars
from weft.plots.changes import drift
from weft.plots.curves import (
    convergence,
    epsilon_gamma_curve,
    indicator_density,
    precision_curve,
    sensitivity,
    time_cost,
)
from weft.plots.graphs import coupling_graph
from weft.plots.maps import scatter_map, value_heatmap
from weft.plots.ranks import cd_diagram
from weft.plots.sources import overlap
from weft.plots.trees import dendrogram
from weft.plots.weights import column_weights, weights_heatmap

__all__ = [
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
    "sensitivity",
    "time_cost",
    "value_heatmap",
    "weights_heatmap",
]
