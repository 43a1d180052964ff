"""Latent classes: their likelihood, and what they are fitted to."""

import numpy as np
import pytest

from tabweave import Table
from tabweave.cluster.kmodes import OF_MIXTURES, expect, in_bins, mixture_scores

from .conftest import planted


def test_one_class_has_the_likelihood_of_independent_columns():
    rows = planted(2, 200, 3)
    scores = mixture_scores(Table.of(rows), 1, np.random.default_rng(0))
    likelihood = sum(
        (rows[c].value_counts() * np.log(rows[c].value_counts(normalize=True))).sum() for c in rows
    )
    free = sum(rows[c].nunique() - 1 for c in rows)
    assert scores["aic"][1] == pytest.approx(-2 * likelihood + 2 * free, rel=1e-6)
    assert scores["bic"][1] == pytest.approx(-2 * likelihood + np.log(200) * free, rel=1e-6)
    assert set(scores) == set(OF_MIXTURES)


def test_sets_alone_have_no_classes():
    with pytest.raises(ValueError, match="sets alone"):
        in_bins(Table.of({"s": [["a"], ["b"]]}))


def test_numbers_of_classes_end_three_after_the_best():
    rng = np.random.default_rng(0)
    rows = {name: rng.choice(list("pq"), 200).tolist() for name in "abcd"}
    scores = mixture_scores(Table.of(rows), 12, rng, n_init=1)
    for criterion, of_k in scores.items():
        assert list(of_k) == [1, 2, 3, 4], criterion  # one class is the best: they are independent
    longer = mixture_scores(Table.of(rows), 12, rng, n_init=1, patience=5)
    assert list(longer["aic3"]) == [1, 2, 3, 4, 5, 6]


def test_steps_of_one_class_end_when_it_has_settled(monkeypatch):
    steps = []

    def counted(*args):
        steps.append(1)
        return expect(*args)

    monkeypatch.setattr("tabweave.cluster.kmodes.expect", counted)
    rows = {name: list("pqqr") * 20 for name in "ab"}
    mixture_scores(Table.of(rows), 1, np.random.default_rng(0))
    assert 1 < len(steps) < 10
