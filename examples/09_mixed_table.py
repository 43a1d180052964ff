"""Numbers, categories and grades in one space.

Each block gets as much say as it has columns; numbers are binned as well, so that what a
category says about them counts in its couplings.
"""

import numpy as np
from sklearn.decomposition import PCA

from tabweave import MixedEmbedder, plots

rng = np.random.default_rng(0)
job = rng.choice(["cook", "clerk", "judge"], 600)
pay = np.select([job == "cook", job == "clerk"], [2.0, 3.0], 6.0) + rng.normal(0, 0.5, 600)
people = {
    "job": job,
    "pay": pay,
    "age": rng.uniform(20, 65, 600),
    "commute": np.where(
        (pay > 4) & (rng.random(600) < 0.8), "car", rng.choice(["bus", "bike"], 600)
    ),
}
model = MixedEmbedder().fit(people)
vectors = model.transform(people)
print(model.explain({c: v[0] for c, v in people.items()}, {c: v[1] for c, v in people.items()}))

ax = plots.scatter_map(PCA(2, random_state=0).fit_transform(vectors), job)
ax.figure.savefig("mixed_table.png", bbox_inches="tight")
