"""Streams and drift.

Windows are added as they arrive and subtracted exactly when they are old. A drift report compares
two counts and ranks the columns and couplings that changed, with a test for each.
"""

import numpy as np

from tabweave import Counts, Weave, Windowed, plots
from tabweave.tasks.drift import drift_report

rng = np.random.default_rng(0)


def window(n, shift):
    shop = rng.choice(["north", "south", "web"], n, p=[0.5 - shift, 0.3, 0.2 + shift])
    paid = np.where((shop == "web") | (rng.random(n) < 0.2), "card", "cash")
    return {"shop": shop, "paid": paid, "day": rng.choice(["mon", "tue", "wed"], n)}


days = [window(2000, 0.0), window(2000, 0.0), window(2000, 0.3)]
stream = Windowed(Weave(), window=2)
for rows in days:
    stream.partial_fit(rows)  # the third one pushes the first one out
print(stream.embedder_.counts_)

report = drift_report(Counts.of(days[0]), Counts.of(days[2]))
print(report)
ax = plots.drift(report)
ax.figure.savefig("streams_and_drift.png", bbox_inches="tight")
