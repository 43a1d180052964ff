"""How many clusters.

A table drawn from five groups: the criteria for latent classes have their minimum there.
"""

import matplotlib.pyplot as plt
import numpy as np

from tabweave.cluster import number_of_clusters

random = np.random.default_rng(0)
group = random.integers(5, size=800)
usual = random.integers(4, size=(5, 10))[group]
rows = np.where(random.random((800, 10)) < 0.7, usual, random.integers(4, size=(800, 10))).astype(
    str
)
found = number_of_clusters(rows, max_clusters=10)
print(found.criterion, "says", found.best)
fig, ax = plt.subplots(figsize=(5, 3.5))
for name, style in (("bic", "-"), ("aic3", "--")):
    scores = found.scores[name]
    ax.plot(
        list(scores), list(scores.values()), style, color="black", marker="o", label=name.upper()
    )
ax.set(xlabel="clusters", ylabel="criterion")
ax.legend()
fig.savefig("how_many_clusters.png", bbox_inches="tight")
