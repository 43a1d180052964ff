"""The same four values by six measures.

How far apart are the classes on the Titanic? Measures of frequency use how many people were in a
class, measures of context who travelled in it, and supervised ones who was saved. Each measure is
scaled to a largest distance of 1.
"""

import matplotlib.pyplot as plt

from tabweave import ValueMetric, plots
from tabweave.datasets import titanic

data = titanic()
rows = data.frame()

fig, cells = plt.subplots(2, 3, figsize=(10, 6.5))
for ax, name in zip(cells.flat, ("hamming", "of", "rough", "ahmad", "ckml", "vdm"), strict=True):
    metric = ValueMetric(name).fit(rows, data.y) if name == "vdm" else ValueMetric(name).fit(rows)
    distances = metric.value_distances("status")
    distances = (distances / distances.to_numpy().max()).round(2)
    plots.value_heatmap(distances.to_numpy(), list(distances.index), ax=ax)
    ax.set_title(name)
fig.tight_layout()
fig.savefig("six_measures.png", bbox_inches="tight")
