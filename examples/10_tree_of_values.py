"""A tree of values.

Distance hierarchies put the values of a column on a tree, grown from labels or from couplings,
or given by hand. Manhattan distance of the vectors is tree distance, exactly.
"""

from tabweave import DistanceHierarchy, plots
from tabweave.datasets import nursery

data = nursery()
model = DistanceHierarchy().fit(data.frame(), data.y)
tree = model.trees_["health"]
print(tree.newick())

ax = plots.dendrogram(model.trees_["has_nurs"])
ax.set_title("has_nurs, by what it says about the class")
ax.figure.savefig("tree_of_values.png", bbox_inches="tight")
