"""Associations between all pairs of columns.

One counting pass gives every pair of columns, whatever their kinds, a strength and a p-value
adjusted for the number of pairs.
"""

from tabweave import associations, plots
from tabweave.datasets import led24

digits = led24(1500, random_state=0)
columns = digits.frame().iloc[:, :10].assign(digit=digits.y)
found = associations(columns, schema=dict.fromkeys(columns, "nominal"))
print(found.frame(level=0.01)[["left", "right", "strength", "adjusted_p_value"]][:8])
ax = plots.association_heatmap(found)
ax.figure.savefig("associations.png", bbox_inches="tight")
