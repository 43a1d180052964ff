"""A map of a table.

DRDH: tree vectors, their nearest neighbours in Manhattan distance, and t-SNE; new rows are
projected onto the same map. Needs the extra `map`.
"""

from tabweave import DRDH, plots
from tabweave.datasets import car

cars = car()
model = DRDH(random_state=0).fit(cars.frame(), cars.y)
ax = plots.scatter_map(model.map_, cars.y)
ax.set_title("1,728 cars by acceptability")
ax.figure.savefig("map_of_a_table.png", bbox_inches="tight")
