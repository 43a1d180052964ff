"""Cells that are sets.

Products with tags: terms are the tags and their pairs, weighted by how rare they are. K-SVD learns
a small dictionary and codes every cell with a few of its atoms.
"""

import matplotlib.pyplot as plt
import numpy as np

from tabweave import KSVD, SetTfidf

rng = np.random.default_rng(0)
themes = [["tea", "cup", "warm"], ["ball", "run", "warm"], ["book", "quiet", "tea"]]
kind = rng.choice(3, 300)
tags = [
    set(rng.choice(themes[k], rng.integers(1, 4))) | ({"new"} if rng.random() < 0.3 else set())
    for k in kind
]
terms = SetTfidf().fit_transform({"tags": tags})
model = KSVD(n_atoms=6, random_state=0).fit(terms)
codes = model.transform(terms)
print(terms.shape, codes.shape, f"{codes.nnz / len(tags):.1f} atoms a cell")

fig, ax = plt.subplots(figsize=(6, 3))
use = np.array([np.abs(codes[kind == k]).sum(axis=0) for k in range(3)])
ax.imshow(use / use.sum(axis=1, keepdims=True), cmap="Greys")
ax.set_xlabel("atom")
ax.set_ylabel("theme")
fig.savefig("cells_that_are_sets.png", bbox_inches="tight")
