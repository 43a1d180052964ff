"""One space from many tables.

Handwritten digits in three tables: upper half, lower half, and one whose 32 columns all follow two
numbers that have nothing to do with the digit. PCA on the joined tables is dominated by the last
one; CoCA learns from some labels how much to trust each table.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA

from tabweave import CoCA, Sources, plots

X, y = load_digits(n_class=6, return_X_y=True)
rng = np.random.default_rng(0)
noise = 5 * rng.normal(size=(len(X), 2)) @ rng.normal(size=(2, 32))  # two strong, idle directions
ids = np.arange(len(X))
sources = Sources({"upper": (ids, X[:, :32]), "lower": (ids, X[:, 32:]), "noise": (ids, noise)})
model = CoCA(2).fit(sources, {i: int(y[i]) for i in range(180)})
print({name: round(weight, 2) for name, weight in model.weights_.items()})

fig, both = plt.subplots(1, 2, figsize=(10, 4.5))
joined = PCA(2, random_state=0).fit_transform(np.hstack([X, noise]))
plots.scatter_map(joined, y, ax=both[0])
both[0].set_title("PCA on the joined tables")
plots.scatter_map(model.transform(sources), y, ax=both[1])
both[1].set_title("CoCA, weights from 180 labels")
fig.savefig("one_space_from_many_tables.png", bbox_inches="tight")
