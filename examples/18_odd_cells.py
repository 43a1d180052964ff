"""Odd cells.

Twenty cells of the LED digits are flipped. Their values are common ones; only the rest of the row
shows that they are wrong.
"""

import matplotlib.pyplot as plt
import numpy as np

from tabweave import OutlierCells
from tabweave.datasets import led24

digits = led24(1000, noise=0.02, random_state=0)
rows = digits.frame().iloc[:, :7].assign(digit=digits.y)
random = np.random.default_rng(0)
flipped = random.choice(1000, 20, replace=False)
for row in flipped:
    column = rows.columns[random.integers(7)]
    values = rows[column].unique()
    rows.loc[row, column] = values[values != rows[column][row]][0]
model = OutlierCells(level=0.02)
for cell in model.fit_cells(rows, 5):  # each judged by what the others teach
    print(cell)
fits = model.score_samples(rows)
fig, ax = plt.subplots(figsize=(6, 3.5))
others = np.setdiff1d(np.arange(1000), flipped)
ax.hist(
    [fits[others], fits[flipped]],
    bins=30,
    color=["0.8", "black"],
    label=["as drawn", "flipped"],
    density=True,
)
ax.set(xlabel="how well a row fits", ylabel="share")
ax.legend()
fig.savefig("odd_cells.png", bbox_inches="tight")
