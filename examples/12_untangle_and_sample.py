"""A mixture model of a table.

Non-BEND splits a table into parts within which columns are independent. It then gives the
likelihood of a row, so that odd rows stand out, and can draw new rows.
"""

import numpy as np

from tabweave import NonBEND, plots

rng = np.random.default_rng(0)
group = rng.choice(3, 1500)
rows = {
    f"c{j}": np.where(rng.random(1500) < 0.85, np.array(list("abc"))[(group + j) % 3], "d")
    for j in range(6)
}
model = NonBEND(random_state=0, n_fits=3).fit(rows)
print(model.n_subspaces_, "parts, with shares", model.weights_.round(2)[:3])
usual_and_odd = {c: ["abc"[j % 3], "a"] for j, c in enumerate(rows)}
print("log density of a usual and of an odd row:", model.score_samples(usual_and_odd).round(1))
print({c: v.tolist() for c, v in model.sample(2, random_state=0).items()})

ax = plots.convergence({f"fit {i}": fit.trace for i, fit in enumerate(model.fits_)})
ax.figure.savefig("untangle_and_sample.png", bbox_inches="tight")
