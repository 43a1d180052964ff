"""Compare methods as the papers do.

1-NN with five measures on five built-in tables, average ranks, and the critical-difference
diagram of Bonferroni and Dunn.
"""

import numpy as np

from tabweave import ValueMetric, WeightedKNN, plots
from tabweave.datasets import balance, car, led24, monks, titanic
from tabweave.evaluate import bonferroni_dunn, macro_f
from tabweave.papers import monte_carlo_splits

measures = ["hamming", "of", "goodall1", "dilca", "ahmad"]
tables = [balance(), car(), led24(400, random_state=0), monks(2), titanic().take(range(0, 2201, 5))]
scores = np.zeros((len(tables), len(measures)))
for i, data in enumerate(tables):
    train, test = next(iter(monte_carlo_splits(data.y, 1, 0.3, random_state=0)))
    for j, name in enumerate(measures):
        metric = ValueMetric(name).fit(data.X[train], data.y[train])
        model = WeightedKNN(5, metric=metric).fit(data.X[train], data.y[train])
        scores[i, j] = macro_f(data.y[test], model.predict(data.X[test]))
result = bonferroni_dunn(scores, control=0)
print(dict(zip(measures, result.average_ranks.round(2).tolist(), strict=True)))

ax = plots.cd_diagram(result.average_ranks, measures, result.critical_difference, control=0)
ax.figure.savefig("compare_methods.png", bbox_inches="tight")
