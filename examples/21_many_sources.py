"""Several tables about the same people.

The breast cancer table of scikit-learn has means, errors and worst values of ten measurements. Here
they are three tables, each without a third of the patients, and there is a fourth one of noise. GBC
trains a model for each and weights them by held-out rows. Patients that a table does not have are
predicted as the most common class.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer

from tabweave import GBCClassifier, Sources

rng = np.random.default_rng(0)
X, y = load_breast_cancer(return_X_y=True)
order = rng.permutation(len(X))
X, y = X[order], y[order]
noise = rng.normal(size=X.shape)
parts = {"means": X[:, :10], "errors": X[:, 10:20], "worst": X[:, 20:], "noise": noise}
tables = {}
for name, part in parts.items():
    ids = np.sort(rng.choice(len(X), 2 * len(X) // 3, replace=False))
    tables[name] = (ids, part[ids])
labels = {i: int(y[i]) for i in range(120)}  # of the first 120 patients


def error(names):
    sources = Sources({name: tables[name] for name in names})
    known = set(sources.ids)
    model = GBCClassifier(60, cv=3, random_state=0)
    model.fit(sources, {i: label for i, label in labels.items() if i in known})
    guesses = np.full(len(X), np.bincount(list(labels.values())).argmax())
    guesses[sources.ids] = model.predict(sources)
    return 100 * np.mean(guesses[120:] != y[120:]), model


found = {name: error([name])[0] for name in tables}
found["GBC of all"], model = error(list(tables))
print({name: round(weight, 2) for name, weight in model.source_weights_.items()})

fig, ax = plt.subplots(figsize=(6, 3))
ax.barh(list(found), list(found.values()))
ax.invert_yaxis()
ax.set_xlabel("wrong predictions of new patients (%)")
fig.savefig("many_sources.png", bbox_inches="tight")
