"""Why two rows differ.

A squared distance is a sum over columns, so each column has a share of it. Two passengers of the
Titanic differ in class and sex: which of the two contributes more?
"""

import matplotlib.pyplot as plt

from tabweave import Weave
from tabweave.datasets import titanic

weave = Weave().fit(titanic().frame())
officer = {"status": "crew", "age": "adult", "sex": "male"}
lady = {"status": "first", "age": "adult", "sex": "female"}

shares = weave.explain(officer, lady)
print({column: round(share, 2) for column, share in shares.items()})

fig, ax = plt.subplots(figsize=(6, 3))
ax.barh(list(shares), list(shares.values()))
ax.invert_yaxis()
ax.set_xlabel("share in the squared distance")
fig.savefig("explain_two_rows.png", bbox_inches="tight")
