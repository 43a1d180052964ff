"""One-hot or Weave.

Seven segments of a faulty display and seventeen coin flips: one-hot gives every column the same
weight, Weave finds the columns that depend on each other. Both embeddings are projected on their
first two principal components.
"""

import matplotlib.pyplot as plt
from sklearn.decomposition import PCA

from tabweave import OneHot, Weave, plots
from tabweave.datasets import led24

digits = led24(1500, random_state=0)

fig, both = plt.subplots(1, 2, figsize=(10, 4.5))
for ax, embedder in zip(both, (OneHot(), Weave(n_clusters=10)), strict=True):
    vectors = embedder.fit_transform(digits.X)
    plots.scatter_map(PCA(2, random_state=0).fit_transform(vectors), digits.y, ax=ax)
    ax.set_title(type(embedder).__name__)
fig.savefig("one_hot_or_weave.png", bbox_inches="tight")
