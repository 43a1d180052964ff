"""Numbers, categories and ordinal levels in one space.

Every column counts as one column, whatever its kind. Numbers are also binned, so that categories
are compared by the numbers they occur with.
"""

import numpy as np
from sklearn.decomposition import PCA

from tabweave import Weave, plots

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
model = Weave().fit(people)
vectors = model.transform(people)
print(model.explain({c: v[0] for c, v in people.items()}, {c: v[1] for c, v in people.items()}))

ax = plots.scatter_map(PCA(2, random_state=0).fit_transform(vectors), job)
ax.figure.savefig("mixed_table.png", bbox_inches="tight")
