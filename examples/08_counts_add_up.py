"""Counts add up.

Learning uses counts, never rows. Parts that were counted separately, on as many machines as you
like, give exactly the same model as the whole table, and counts can be subtracted again.
"""

import matplotlib.pyplot as plt
import numpy as np

from tabweave import Counts, Weave
from tabweave.datasets import led24

rows = led24(15_000, random_state=0).frame()
parts = [Counts.of(rows[i : i + 3000]) for i in range(0, len(rows), 3000)]
whole = Counts.of(rows)
assert sum(parts[1:], parts[0]) == whole
assert whole - parts[0] == sum(parts[2:], parts[1])

moved = []
for n in range(1, len(parts) + 1):
    some = sum(parts[1:n], parts[0])
    learned = Weave().fit_counts(some).pairwise_distances(rows[::100])
    final = Weave().fit_counts(whole).pairwise_distances(rows[::100])
    moved.append(float(np.abs(learned - final).mean()))
print([round(m, 4) for m in moved])

fig, ax = plt.subplots(figsize=(5, 3))
ax.plot(range(1, len(parts) + 1), moved, marker="o")
ax.set_xlabel("parts counted")
ax.set_ylabel("mean change of distances to come")
fig.savefig("counts_add_up.png", bbox_inches="tight")
