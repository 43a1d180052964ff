"""The objective of GBC: its derivatives against finite differences, weights and means by hand."""

import numpy as np
import pytest

from tabweave.papers.sources import SignedLogistic
from tabweave.sources.team import (
    ClassSmoother,
    Fusion,
    Logistic,
    Squared,
    Terms,
    better,
    choose_fusion,
    edge_loss,
    expected,
    informative,
    label_scale,
    source_weights,
)

LOSSES = [Logistic(), Squared(), SignedLogistic()]


@pytest.mark.parametrize("factors", [(0.0, 0.0), (0.7, 0.0), (0.0, 1.3), (0.5, 2.0)])
@pytest.mark.parametrize("loss", LOSSES, ids=["logistic", "squared", "published"])
def test_gradients_are_finite_differences_of_the_objective(loss, factors):
    rng = np.random.default_rng(0)
    scores, mean, near = rng.normal(size=(3, 9, 2))
    labeled = np.arange(9) < 4
    targets = (rng.random((9, 2)) < 0.5).astype(float)
    terms = Terms(loss, targets, labeled, factors)
    first, second = terms.gradient(scores, (mean, near))
    step = 1e-5
    for at in np.ndindex(scores.shape):
        up, down = scores.copy(), scores.copy()
        up[at] += step
        down[at] -= step
        slope = (terms.value(up, (mean, near)) - terms.value(down, (mean, near))) / (2 * step)
        assert first[at] == pytest.approx(slope, abs=1e-7)
        bend = (terms.gradient(up, (mean, near))[0] - terms.gradient(down, (mean, near))[0])[at]
        assert second[at] == pytest.approx(bend / (2 * step), abs=1e-7)


def test_terms_are_means_on_the_scale_of_the_labels():
    rng = np.random.default_rng(1)
    scores, mean = rng.normal(size=(2, 6, 1))
    labeled = np.arange(6) < 3
    one = Terms(Squared(), np.zeros((6, 1)), labeled, (label_scale(labeled), 0.0))
    twice = [np.concatenate([a[:3], a[3:], a[3:]]) for a in (scores, mean)]
    few = np.arange(9) < 3
    more = Terms(Squared(), np.zeros((9, 1)), few, (label_scale(few), 0.0))
    # The same unlabeled rows once more change nothing.
    assert more.value(twice[0], (twice[1], None)) == pytest.approx(one.value(scores, (mean, None)))


def test_the_logistic_loss_is_the_published_one_on_labels():
    scores = np.linspace(-3, 3, 7)[:, None]
    for label in (0.0, 1.0):
        sign = 2 * label - 1
        published = np.log1p(np.exp(-sign * scores[:, 0]))
        assert Logistic().rows(scores, np.full((7, 1), label)) == pytest.approx(published)
        assert SignedLogistic().agreement(scores, np.array([[sign]])) == pytest.approx(published)


def test_source_weights_by_hand():
    found = source_weights(np.array([0.2, 1.2, np.nan]))
    assert found == pytest.approx([1 / (1 + np.exp(-1)), 1 / (1 + np.exp(1)), 0])


def test_expected_is_the_mean_over_the_sources_that_have_a_row():
    scores = np.array([[[1.0], [3.0], [np.nan]], [[2.0], [np.nan], [np.nan]]])
    found = expected(scores, np.array([0.25, 0.75]))
    assert found[:2, 0] == pytest.approx([1.75, 3.0])
    assert np.isnan(found[2, 0])


def test_edge_loss_leaves_out_ends_without_a_score():
    scores = np.array([[0.0], [2.0], [np.nan]])
    assert edge_loss(Squared(), scores, np.array([[0, 0], [1, 2]])) == pytest.approx(4.0)


def test_fusion_by_hand():
    scores = np.array([[[1.0], [1.0], [np.nan]], [[3.0], [np.nan], [np.nan]]])
    fused = Fusion(np.array([0.5, 0.5]), 2.0)(np.array([10.0]), scores)
    # Both: twice the mean. One, with half of the weight: 1.5 times its score. None: the constant.
    assert fused[:, 0] == pytest.approx([14.0, 11.5, 10.0])


def test_noise_is_not_informative_and_gets_no_weight():
    rng = np.random.default_rng(0)
    targets = rng.integers(0, 2, (400, 1)).astype(float)
    good = (2 * targets - 1) * 1.5 + rng.normal(0, 1, (400, 1))
    scores = np.array([good, rng.normal(0, 1, (400, 1)), np.full((400, 1), np.nan)])
    loss, start = Logistic(), np.zeros(1)
    assert informative(loss, start, scores, targets).tolist() == [True, False, False]
    chosen = choose_fusion(loss, lambda f: loss.rows(f, targets), start, scores, targets)
    assert chosen.weights.tolist() == [1, 0, 0] and chosen.scale == 1


def test_better_asks_for_more_than_a_standard_error():
    rng = np.random.default_rng(0)
    old = rng.normal(size=100)
    assert better(old - 0.1, old)
    assert not better(old, old)
    assert not better(old + rng.normal(0.01, 1, 100), old)


def test_a_source_that_is_too_sure_keeps_its_order_of_classes():
    start = np.log([0.9 / 0.1, 0.1 / 0.9])
    scores = np.array([[[-1.0, 4.0], [np.nan, np.nan]], [[1.0, 0.0], [np.nan, np.nan]]])
    fused = Fusion(np.array([1.0, 0.0]), certainty=0.25)(start, scores)
    np.testing.assert_allclose(fused[0], 0.25 * (start + scores[0, 0]))
    np.testing.assert_allclose(fused[1], start)  # nobody has the row: the constant
    drawn_to_start = Fusion(np.array([1.0, 0.0]), 0.25)(start, scores)[0]
    assert fused[0].argmax() == 1 and drawn_to_start.argmax() == 0


def test_half_of_the_weight_has_half_of_the_effect():
    scores = np.array([[[2.0]], [[np.nan]]])
    fusion = Fusion(np.array([0.5, 0.5]), certainty=0.5)
    assert fusion(np.array([10.0]), scores)[0, 0] == pytest.approx(0.75 * 12)
    constant, factors = fusion.factors(~np.isnan(scores[:, :, 0]))
    assert constant[0] * 10 + factors[0, 0] * 2 == pytest.approx(0.75 * 12) and factors[1, 0] == 0


def test_unequal_classes_of_a_source_that_is_too_sure_are_not_given_to_the_largest():
    rng = np.random.default_rng(0)
    smoother = ClassSmoother()
    logits = np.array([1.4, -2.2, -2.2]) + rng.normal(0, 2.5, (600, 3))
    targets = np.array([rng.multinomial(1, p) for p in smoother.plain(logits)])
    start = Logistic().start(targets)
    scores = (3 * logits - start)[None]  # right, but three times too sure
    chosen = choose_fusion(
        Logistic(), lambda f: smoother.losses(smoother.plain(f), targets), start, scores, targets
    )
    assert chosen.certainty < 1 == chosen.scale
    found = chosen(start, scores).argmax(axis=1)
    assert (found == (start + scores[0]).argmax(axis=1)).all()
