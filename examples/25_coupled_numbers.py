"""Correlated numbers.

Fisher's irises: in the coupled representation, correlated columns and their squares reinforce each
other, so what they have in common stands out.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler

from tabweave import CoupledNumeric, plots

iris = load_iris()
coupled = CoupledNumeric(max_power=2, standardize=True).fit_transform(iris.data)
plain = StandardScaler().fit_transform(iris.data)

fig, both = plt.subplots(1, 2, figsize=(10, 4.5))
for ax, vectors, name in ((both[0], plain, "standardised"), (both[1], coupled, "coupled")):
    axes = PCA(2, random_state=0).fit(vectors)
    share = axes.explained_variance_ratio_[0]
    plots.scatter_map(axes.transform(vectors), iris.target_names[iris.target], ax=ax)
    ax.set_title(f"{name}: the first axis holds {share:.0%}")
fig.savefig("coupled_numbers.png", bbox_inches="tight")
