"""The walk of a row, counted: how many files of the package a reader passes through."""

import pandas as pd

from tabweave import Weave

FRAME = pd.DataFrame(
    {
        "color": ["red", "blue", None, "green"] * 5,
        "size": ["S", "M", "S", "L"] * 5,
        "grade": [1, 2, 3, 2] * 5,
    }
)


def test_fit_and_transform_cross_few_files(calls):
    Weave().fit(FRAME).transform(FRAME)  # importing a module enters it, too
    model = Weave()
    with calls() as fitting:
        model.fit(FRAME)
    with calls() as transforming:
        model.transform(FRAME)
    # Compiled loops and LAPACK are entered through _compat, as numba and NumPy are; every public
    # method through updates, and scikit-learn asks base for tags.
    doors = {"tabweave._compat", "tabweave.updates", "tabweave.base"}
    # A kind of column is a file, whichever kinds a table has.
    doors |= {
        f"tabweave.columns.{kind}"
        for kind in ("cells", "nominal", "ordinal", "numeric", "datetime", "sets")
    }
    fitted, transformed = (work.modules("tabweave") - doors for work in (fitting, transforming))
    assert len(fitted) <= 14, sorted(fitted)
    # What is unknown is judged in a file, and the arrays of a space are one.
    assert len(transformed) <= 12, sorted(transformed)
