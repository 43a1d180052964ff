"""Clusters of categories.

k-modes with Hamming distance, k-modes with another measure, and k-means on Weave vectors: F under
the best matching with the true digits.
"""

import matplotlib.pyplot as plt
from sklearn.cluster import KMeans

from tabweave import KModes, Weave
from tabweave.datasets import led24
from tabweave.evaluate import clustering_f

digits = led24(1500, random_state=0)
found = {}
for measure in ("hamming", "of", "dilca"):
    labels = KModes(10, metric=measure, random_state=0).fit(digits.X).labels_
    found[f"k-modes, {measure}"] = 100 * clustering_f(digits.y, labels)
vectors = Weave(n_clusters=10).fit_transform(digits.X)
labels = KMeans(10, n_init=20, random_state=0).fit_predict(vectors)
found["k-means, Weave"] = 100 * clustering_f(digits.y, labels)
print({name: round(f, 1) for name, f in found.items()})

fig, ax = plt.subplots(figsize=(6, 3))
ax.barh(list(found), list(found.values()))
ax.invert_yaxis()
ax.set_xlabel("macro F (%)")
fig.savefig("clusters_of_categories.png", bbox_inches="tight")
