"""A tree of values.

Distance hierarchies put the values of a column on a tree, built from labels or from couplings, or
given by you. The Manhattan distance of the vectors is exactly the tree distance.
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
