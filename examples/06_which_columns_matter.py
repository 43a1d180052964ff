"""Which columns matter.

The column weights of Weave (without labels) and of HELIC (with labels) on the LED digits: seven
segments, seventeen coin flips. Both find the segments.
"""

import matplotlib.pyplot as plt

from tabweave import HELIC, Weave, plots
from tabweave.datasets import led24

digits = led24(1500, random_state=0)
frame = digits.frame()
fig, both = plt.subplots(1, 2, figsize=(10, 5))
plots.column_weights(Weave().fit(frame).weights_, ax=both[0])
both[0].set_title("Weave, without labels")
plots.column_weights(HELIC(random_state=0).fit(frame, digits.y).weights_, ax=both[1])
both[1].set_title("HELIC, with labels")
fig.savefig("which_columns_matter.png", bbox_inches="tight")
