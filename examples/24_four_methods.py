"""One table by four methods.

Handwritten digits as categories: sixteen fields of the image, each empty, light, grey or dark. The
rows embedded by cKML, CDE, UNTIE and Non-BEND, on their first two principal axes; colours are the
digits, which none of the methods has seen.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA

from tabweave import CDE, CKML, UNTIE, NonBEND, plots

X, y = load_digits(n_class=5, return_X_y=True)
fields = X.reshape(-1, 4, 2, 4, 2).mean(axis=(2, 4)).reshape(len(X), 16)
shades = np.array(["empty", "light", "grey", "dark"])[np.digitize(fields, [1, 6, 11])]

fig, cells = plt.subplots(2, 2, figsize=(9, 7.5))
methods = (CKML(), CDE(random_state=0), UNTIE(5), NonBEND(random_state=0))
for ax, method in zip(cells.flat, methods, strict=True):
    vectors = method.fit(shades).transform(shades)
    plots.scatter_map(PCA(2, random_state=0).fit_transform(vectors), y, ax=ax)
    ax.set_title(type(method).__name__)
fig.tight_layout()
fig.savefig("four_methods.png", bbox_inches="tight")
