"""Distances between the values of a column.

Weave does not know what "first class" and "crew" mean. It learns how similar two values are from
the values of the other columns that they occur with.
"""

from tabweave import Weave, plots
from tabweave.datasets import titanic

weave = Weave().fit(titanic().frame())
distances = weave.value_distances("status")
print(distances.round(2))

ax = plots.value_heatmap(distances.to_numpy(), list(distances.index))
ax.set_title("distance between the classes on the Titanic")
ax.figure.savefig("values_of_a_column.png", bbox_inches="tight")
