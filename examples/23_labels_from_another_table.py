"""Labels from another table.

One scanner keeps every second line of handwritten digits, 60 of them labeled; another one keeps the
lines in between, all labeled. HeMap projects both tables into one space. With the right pairs of
rows, labels can be transferred; with random pairs they cannot, and HeMap rejects the source.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.neighbors import KNeighborsClassifier

from tabweave import HeMap

X, y = load_digits(return_X_y=True)
lines = X.reshape(-1, 8, 8)
ours, theirs = lines[:, 1::2].reshape(-1, 32), lines[:, ::2].reshape(-1, 32)
labels = y[:900].astype(object)
labels[60:] = None

alone = KNeighborsClassifier(10).fit(ours[:60], y[:60])
found = {"60 labels alone": np.mean(alone.predict(ours[900:]) != y[900:])}
drawn = np.random.default_rng(0).permutation(900)
for name, pairs in (("the right pairs", np.arange(900)), ("pairs drawn at random", drawn)):
    for guard in (None, 5):
        model = HeMap(KNeighborsClassifier(10), guard=guard, random_state=0)
        model.fit(ours[:900], labels, source=(theirs[:900], y[:900]), pairs=pairs)
        kept = "untested" if guard is None else "refused" if model.refused_ else "tested"
        found[f"{name}, {kept}"] = np.mean(model.predict(ours[900:]) != y[900:])
print({name: f"{error:.1%}" for name, error in found.items()})

fig, ax = plt.subplots(figsize=(6, 3))
ax.barh(list(found), [100 * error for error in found.values()])
ax.invert_yaxis()
ax.set_xlabel("wrong predictions of new digits (%)")
fig.savefig("labels_from_another_table.png", bbox_inches="tight")
