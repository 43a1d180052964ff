"""Whatever is random takes a seed of every kind that scikit-learn takes, and repeats with it."""

import numpy as np
import pytest

from tabweave import Counts, OneHot, datasets, papers
from tabweave.cluster import KModes, StreamClusterer
from tabweave.embed.sets import KSVD
from tabweave.papers import CCDSDC, CCTED, DCD
from tabweave.papers.recommend import MatrixFactorization, find_groups, make_ratings
from tabweave.tasks.drift import drift_report

ROWS = datasets.make_coupled(60, 4, random_state=0).X
CLASSES = np.repeat(list("abc"), 20)
SIGNALS = np.random.default_rng(0).normal(size=(40, 6))
USERS, ITEMS = np.arange(60) % 8, np.arange(60) % 7

RESULTS = {
    "KModes": lambda seed: KModes(3, random_state=seed).fit(ROWS).labels_,
    "StreamClusterer": lambda seed: (
        StreamClusterer(3, embedder=OneHot(), random_state=seed).fit(ROWS).labels_
    ),
    "CCDSDC": lambda seed: CCDSDC(3, random_state=seed).fit(ROWS).labels_,
    "CCTED": lambda seed: CCTED(3, random_state=seed).fit(ROWS).labels_,
    "DCD": lambda seed: DCD(3, random_state=seed).fit(ROWS).labels_,
    "KSVD": lambda seed: KSVD(4, max_iter=2, random_state=seed).fit(SIGNALS).components_,
    "MatrixFactorization": lambda seed: (
        MatrixFactorization(2, n_iter=3, burn_in=1, random_state=seed)
        .fit(USERS, ITEMS, ITEMS + 1.0)
        .rmse_
    ),
    "find_groups": lambda seed: list(
        find_groups(range(60), ROWS, OneHot(), max_groups=3, random_state=seed).values()
    ),
    "make_ratings": lambda seed: make_ratings(9, 8, 20, random_state=seed).ratings,
    "drift_report": lambda seed: [
        found.p_value
        for found in drift_report(
            Counts.of(ROWS[:30]), Counts.of(ROWS[30:]), random_state=seed
        ).columns
    ],
    "monte_carlo_splits": lambda seed: next(papers.monte_carlo_splits(CLASSES, 1, 0.3, seed))[1],
    "stream_windows": lambda seed: np.concatenate(
        papers.stream_windows(CLASSES, 3, random_state=seed)
    ),
    "make_coupled": lambda seed: datasets.make_coupled(9, 3, random_state=seed).X,
    "make_codes": lambda seed: datasets.make_codes(9, 3, 4, random_state=seed),
    "led24": lambda seed: datasets.led24(9, random_state=seed).X,
    "mofn_3_7_10": lambda seed: datasets.mofn_3_7_10(9, random_state=seed).X,
    "waveform": lambda seed: datasets.waveform(9, random_state=seed).X,
}


@pytest.mark.parametrize("name", RESULTS)
def test_seeds_of_every_kind(name):
    result = RESULTS[name]
    for make in (lambda: 0, lambda: np.int64(0), lambda: np.random.RandomState(0)):
        np.testing.assert_array_equal(result(make()), result(make()))
    assert np.shape(result(None)) == np.shape(result(0))
    source = np.random.RandomState(0)
    result(source)
    assert source.randint(2**31 - 1) != np.random.RandomState(0).randint(2**31 - 1)  # drawn from
