"""Fill missing cells.

A fifth of the cells of the LED digits are hidden and predicted from the rest of their rows. Cells
that the imputer is sure of are mostly right: its probabilities are well calibrated.
"""

import matplotlib.pyplot as plt
import numpy as np

from tabweave import Imputer
from tabweave.datasets import led24

digits = led24(1000, random_state=0)
whole = digits.frame().iloc[:, :7].assign(digit=digits.y).astype(object)
hidden = np.random.default_rng(0).random(whole.shape) < 0.2
rows = whole.mask(hidden, None)
model = Imputer().fit(rows)
notes = model.explain(rows)
for note in notes[:3]:
    print(note)
right = np.array([note.value == whole[note.column][note.row] for note in notes])
sure = np.array([note.probability for note in notes])
tenth = np.ceil(10 * sure).astype(int)
known = np.unique(tenth)
middle, share = ([own[tenth == t].mean() for t in known] for own in (sure, right))
fig, ax = plt.subplots(figsize=(4.5, 4.5))
ax.plot([0, 1], [0, 1], color="0.7")
ax.plot(middle, share, marker="o", color="black")
ax.set(xlabel="probability", ylabel="share that is right")
fig.savefig("fill_gaps.png", bbox_inches="tight")
