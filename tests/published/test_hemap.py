"""HeMap as published: rows aligned at random, one dimension, untested."""

from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

import tabweave
from tabweave import published
from tabweave.published.hemap import at_random
from tabweave.sources.hemap.transfer import Scaled

FILES = Path(__file__).parents[1] / "fixtures" / "house" / "files"


def test_every_row_of_both_tables_is_aligned():
    T, S = np.zeros((5, 1)), np.zeros((7, 1))
    i, j = at_random(Scaled(None, None, None, T, S, np.random.RandomState(0)))
    assert len(i) == len(j) == 7 and set(j) == set(range(7)) and set(i) == set(range(5))


def test_erratum_rows_in_random_order_carry_nothing_over():
    """Two views of the same digits: pairs help, the published alignment does not."""
    data = load_digits()
    rows = np.random.default_rng(0).permutation(len(data.target))[:700]
    even, odd = (data.images[rows, i::2].reshape(700, -1) for i in (0, 1))
    y = data.target[rows].astype(str)
    labels = y[:500].astype(object)
    labels[50:] = None
    source = odd[:500], y[:500]
    paired = tabweave.HeMap(random_state=0).fit(
        even[:500], labels, source=source, pairs=np.arange(500)
    )
    model = published.HeMap(random_state=0).fit(even[:500], labels, source=source)
    assert not model.refused_ and model.project(even[:3]).shape == (3, 1)
    errors = [1 - m.score(even[500:], y[500:]) for m in (paired, model, model.target_estimator_)]
    assert errors[0] < errors[2] < errors[1]


def test_the_source_is_never_tested():
    rng = np.random.default_rng(0)
    X, kind = rng.normal(size=(60, 3)), np.repeat(["a", "b"], 30)
    model = published.HeMap(random_state=0)
    model.fit(X, kind, source=(rng.normal(size=(90, 5)), rng.choice(["a", "b"], 90)))
    assert not model.refused_ and model.alignment_ == "random" and model.losses_ == {}
    assert published.HeMap().fit(X, kind).refused_  # there is no source
