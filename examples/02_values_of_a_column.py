"""What a table knows about its values.

Nobody told Weave what first class and crew mean: the company a value keeps in the other columns
says how close it is to another value of its own.
"""

from tabweave import Weave, plots
from tabweave.datasets import titanic

weave = Weave().fit(titanic().frame())
distances = weave.value_distances("status")
print(distances.round(2))

ax = plots.value_heatmap(distances.to_numpy(), list(distances.index))
ax.set_title("distance between the classes on the Titanic")
ax.figure.savefig("values_of_a_column.png", bbox_inches="tight")
