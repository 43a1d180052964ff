"""A factorial map.

Multiple correspondence analysis of the Titanic from its pair counts: values that occur together lie
close together. Survival was not used, and is added to the map afterwards.
"""

import matplotlib.pyplot as plt

from tabweave import MCA, plots
from tabweave.datasets import titanic

data = titanic()
frame = data.frame()
model = MCA(n_components=2, correction="greenacre").fit(frame)
fig, (left, right) = plt.subplots(1, 2, figsize=(11, 5), width_ratios=[2, 1])
plots.biplot(model, frame, ax=left)
survived = model.supplementary(frame, {"survived": data.y})
for (_, value), (x, y) in zip(survived.index, survived.to_numpy(), strict=True):
    left.text(x, y, f"survived={value}", weight="bold")
plots.scree(model, ax=right)
print(survived.round(2))
fig.savefig("factorial_map.png", bbox_inches="tight")
