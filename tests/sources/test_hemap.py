"""HeMap: the equations against dense brute force, the alignments, the bridges, and the guard."""

import pickle

import numpy as np
import pytest
from scipy.stats import norm
from scipy.stats import t as student
from sklearn.base import BaseEstimator, ClassifierMixin, is_classifier, is_regressor
from sklearn.cluster import KMeans
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.linear_model import Ridge
from sklearn.metrics import brier_score_loss
from sklearn.model_selection import cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC, LinearSVC

from tabweave import HeMap, Sources, papers
from tabweave.sources import hemap
from tabweave.sources.hemap import (
    Factor,
    Frame,
    Options,
    SourceRows,
    TargetRows,
    Transfer,
    embed,
    linear_map,
    nearest,
)

RNG = np.random.default_rng


class NearestCentroidWithoutScores(ClassifierMixin, BaseEstimator):
    """A learner that says no more than the class."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.centers_ = np.array([X[y == c].mean(axis=0) for c in self.classes_])
        return self

    def predict(self, X):
        return self.classes_[nearest(X, self.centers_)[1]]


@pytest.fixture(scope="module")
def digits():
    """Two views of digits: 600 things, 60 target labels, 300 new things to predict."""
    data = load_digits()
    rows = RNG(0).permutation(len(data.target))[:900]
    even, odd = (data.images[rows, i::2].reshape(900, -1) for i in (0, 1))
    return even, odd, data.target[rows].astype(str)


def hidden(y, n_labeled):
    y = y.astype(object)
    y[n_labeled:] = None
    return y


def fit_digits(digits, alignment, **options):
    even, odd, y = digits
    order = RNG(1).permutation(600)
    pairs = np.argsort(order) if alignment == "pairs" else None
    model = HeMap(alignment=alignment, random_state=0, **options)
    return model.fit(even[:600], hidden(y[:600], 60), source=(odd[order], y[order]), pairs=pairs)


# -- equations ----------------------------------------------------------------------------------


def dense_matrix(T, S, C_T, C_S, beta, theta):
    """Eqs. (5.14) and (5.15), block by block as published."""
    g = (1 - theta) * (beta + 2 * theta)
    A1 = 2 * theta**2 * T @ T.T + beta**2 / 2 * S @ S.T + g * C_T @ C_T.T
    A2 = beta * theta * (T @ T.T + S @ S.T)
    A4 = 2 * theta**2 * S @ S.T + beta**2 / 2 * T @ T.T + g * C_S @ C_S.T
    return np.block([[A1, A2], [A2, A4]])


def parts(n, m, q, seed=0):
    rng = RNG(seed)
    C_T, C_S = np.eye(3)[rng.integers(3, size=n)], np.eye(4)[rng.integers(4, size=n)]
    return rng.normal(size=(n, m)), rng.normal(size=(n, q)), C_T, C_S


@pytest.mark.parametrize("shape", [(60, 5, 7), (12, 20, 30)], ids=["tall", "wide"])
@pytest.mark.parametrize(("beta", "theta"), [(1.0, 1.0), (0.3, 1.0), (1.0, 0.5), (2.0, 0.2)])
def test_low_rank_equals_dense(shape, beta, theta):
    blocks = parts(*shape)
    found = embed(Factor.of(*blocks, beta, theta), 6)
    values, vectors = np.linalg.eigh(dense_matrix(*blocks, beta, theta))
    U, B = vectors[:, ::-1][:, :6], np.vstack([found.B_T, found.B_S])
    np.testing.assert_allclose(found.eigenvalues, values[::-1][:6], rtol=1e-8)
    np.testing.assert_allclose(B @ B.T, U @ U.T, atol=1e-8)
    np.testing.assert_allclose(B.T @ B, np.eye(6), atol=1e-8)


def test_linear_matrix_is_the_published_one():
    T, S, *_ = parts(9, 3, 4)
    A1 = 2 * T @ T.T + 0.5 * S @ S.T
    A2 = S @ S.T + T @ T.T
    A4 = 0.5 * T @ T.T + 2 * S @ S.T  # Eq. (5.8) with β = 1
    empty = np.zeros((9, 0))
    F = Factor.of(T, S, empty, empty, 1.0, 1.0)
    stacked = np.vstack([F.Z * F.a, F.Z * F.b])
    np.testing.assert_allclose(stacked @ stacked.T, np.block([[A1, A2], [A2, A4]]), atol=1e-12)


def test_embedding_minimises_the_objective():
    """Eq. (5.4) under BᵀB = I: no other frame does better, with the maps of Eq. (5.5)."""
    T, S, *_ = parts(20, 4, 5)
    empty = np.zeros((20, 0))

    def objective(B, beta=0.7):
        B_T, B_S = B[:20], B[20:]
        trace = 0.0  # the part of (5.9) that depends on B, from Lemma 2
        for own, other, X in ((B_T, B_S, T), (B_S, B_T, S)):
            P = (2 * own.T @ X + beta * other.T @ X) / (2 + beta)
            trace += (1 + beta / 2) * np.sum(P * P)
        return -trace

    best = np.vstack(embed(Factor.of(T, S, empty, empty, 0.7, 1.0), 3)[:2])
    others = [np.linalg.qr(RNG(s).normal(size=(40, 3)))[0] for s in range(50)]
    near = [np.linalg.qr(best + 0.05 * RNG(s).normal(size=(40, 3)))[0] for s in range(50)]
    assert objective(best) < min(map(objective, others + near))


def test_no_more_dimensions_than_rank():
    T, S, *_ = parts(30, 2, 3)
    empty = np.zeros((30, 0))
    assert embed(Factor.of(T, S, empty, empty, 1.0, 1.0), 50).B_T.shape == (30, 5)


def test_linear_map_wide_equals_tall():
    rng = RNG(3)
    X, B = rng.normal(size=(8, 8)), rng.normal(size=(8, 2))
    wide = linear_map(np.hstack([X, np.zeros((8, 1))]), B)  # one more column than rows
    tall = linear_map(np.vstack([X, np.zeros((1, 8))]), np.vstack([B, np.zeros((1, 2))]))
    ridge = 1e-3 * np.trace(X.T @ X)
    for W, m in ((wide[:-1], 9), (tall, 8)):
        np.testing.assert_allclose(W, np.linalg.solve(X.T @ X + ridge / m * np.eye(8), X.T @ B))


def test_frame_has_unit_rows_and_forgets_constants():
    X = np.column_stack([RNG(0).normal(3, 5, 50), RNG(1).normal(size=50), np.full(50, 7.1)])
    for scale in (True, False):
        Z = Frame.of(X, scale).apply(X)
        assert np.isclose(np.mean(np.sum(Z * Z, axis=1)), 1)
        assert np.all(Z[:, 2] == 0)
    stds = Frame.of(X, True).apply(X).std(axis=0)
    assert np.isclose(stds[0], stds[1])


# -- erratum ------------------------------------------------------------------------------------


def test_hemap_depends_on_row_order():
    """Section 5.3 says that the order of rows will not affect the result; it does."""
    T, S, *_ = parts(40, 4, 5)
    S = S + T @ RNG(5).normal(size=(4, 5))
    empty, order = np.zeros((40, 0)), RNG(6).permutation(40)
    first = embed(Factor.of(T, S, empty, empty, 1.0, 1.0), 3)
    other = embed(Factor.of(T, S[order], empty, empty, 1.0, 1.0), 3)
    assert abs(first.eigenvalues[0] / other.eigenvalues[0] - 1) > 0.02
    back = np.empty_like(other.B_S)
    back[order] = other.B_S
    for a, b in ((first.B_T, other.B_T), (first.B_S, back)):
        assert np.abs(a @ a.T - b @ b.T).max() > 0.01
    # Only through TᵀS: one order for both tables changes nothing.
    both = embed(Factor.of(T[order], S[order], empty, empty, 1.0, 1.0), 3)
    np.testing.assert_allclose(both.eigenvalues, first.eigenvalues)
    np.testing.assert_allclose(np.abs(both.B_T), np.abs(first.B_T[order]), atol=1e-10)


def test_scale_matters_too():
    """The same sentence says so of scale."""
    T, S, *_ = parts(40, 4, 5)
    empty = np.zeros((40, 0))
    first = embed(Factor.of(T, S, empty, empty, 1.0, 1.0), 2).B_T
    other = embed(Factor.of(3 * T, S, empty, empty, 1.0, 1.0), 2).B_T
    assert np.abs(first @ first.T - other @ other.T).max() > 0.01


# -- alignments ---------------------------------------------------------------------------------


def cloud(n=400, seed=0):
    """Rows with three classes and components of very different, skewed spread."""
    rng = RNG(seed)
    codes = rng.integers(3, size=n)
    centres = np.array([[4.0, 0, 0], [-4, 2, 0], [0, -3, 1]])
    return centres[codes] + rng.exponential([2.0, 1.0, 0.4], size=(n, 3)), codes


def test_components_find_a_rotated_and_reordered_copy():
    T, codes = cloud()
    T = T - T.mean(axis=0)
    Q = np.linalg.qr(RNG(1).normal(size=(3, 3)))[0]
    order = RNG(2).permutation(len(T))
    S = (T @ Q)[order]
    i, j = hemap.by_components(T, S, None)
    assert np.array_equal(order[j], i)
    i, j = hemap.by_components(T, S, (np.where(codes, codes, -1), codes[order]))
    assert np.mean(order[j] == i) > 0.95


def test_turn_meets_class_means():
    A, codes = cloud(seed=3)
    A = A - A.mean(axis=0)
    Q = np.linalg.qr(RNG(4).normal(size=(3, 3)))[0]
    R = hemap.turn(A, A @ Q, (codes, codes))
    means = [np.array([X[codes == c].mean(axis=0) for c in range(3)]) for X in (A, A @ Q @ R)]
    np.testing.assert_allclose(R.T @ R, np.eye(3), atol=1e-12)
    assert np.abs(means[0] - means[1]).max() < 0.5
    np.testing.assert_array_equal(hemap.turn(A, A, None), np.eye(3))


def test_clusters_meet_by_class():
    T, c_T = cloud(seed=5)
    S, c_S = cloud(300, seed=6)
    i, j = hemap.by_clusters(
        T, S @ RNG(7).normal(size=(3, 5)), (c_T, c_S), np.random.RandomState(0)
    )
    assert set(i) == set(range(400)) and set(j) == set(range(300))
    assert np.mean(c_T[i] == c_S[j]) > 0.7


def test_rank_alignment_repeats_the_shorter_evenly():
    i, j = hemap.by_rank(np.arange(3), np.arange(6))
    assert i.tolist() == [0, 0, 1, 1, 2, 2] and j.tolist() == [0, 1, 2, 3, 4, 5]


# -- selection and bridges ----------------------------------------------------------------------


def test_selection_takes_rows_among_the_target():
    rng = RNG(0)
    B_T = rng.normal(size=(200, 2))
    B_S = np.vstack([rng.normal(size=(100, 2)), rng.normal(40, 1, size=(100, 2))])
    chosen = hemap.selected_rows(B_T, B_S, np.random.RandomState(0))
    assert len(chosen) > 60 and chosen.max() < 100


def test_selection_takes_as_many_rows_as_the_targets_share_asks_for():
    """Eq. (5.17): 90 % of the target in one cloud, half of the source in either."""
    rng = RNG(0)
    clouds = np.array([[0.0, 0.0], [50.0, 0.0]])
    B_T = clouds[np.repeat([0, 1], [90, 10])] + rng.normal(size=(100, 2))
    B_S = clouds[np.repeat([0, 1], [100, 100])] + rng.normal(size=(200, 2))
    chosen = hemap.selected_rows(B_T, B_S, np.random.RandomState(0))
    # At most a cluster's share of all rows, rounded up in each of the 20 clusters.
    assert (chosen >= 100).sum() <= 0.1 * 200 + 20
    assert (chosen < 100).sum() > 60


def test_rows_with_a_partner_are_used_whatever_clusters_say(monkeypatch):
    rng = RNG(0)
    X, S = rng.normal(size=(60, 4)), rng.normal(size=(50, 3))
    y, v = np.arange(60) % 2, np.arange(50) % 2
    monkeypatch.setattr(hemap, "selected_rows", lambda B_T, B_S, rng: np.array([3, 49]))
    pairs = np.full(60, -1)
    pairs[:30] = np.arange(30, 0, -1)
    model = HeMap(random_state=0, guard=None).fit(X, y, source=(S, v), pairs=pairs)
    assert model.selected_.tolist() == [*range(1, 31), 49]
    plain = HeMap(random_state=0, guard=None).fit(X, y, source=(S, v))
    assert plain.selected_.tolist() == [3, 49]


def test_alignment_is_refined_in_the_space_found(monkeypatch):
    """Without refinement rows would be matched once only."""
    rng = RNG(0)
    X, S = rng.normal(size=(60, 4)), rng.normal(size=(50, 3))
    y, v = np.arange(60) % 2, np.arange(50) % 2
    calls = []
    monkeypatch.setattr(hemap, "nearest", lambda A, B: calls.append(len(B)) or nearest(A, B))
    HeMap(random_state=0, guard=None).fit(X, y, source=(S, v))
    assert len(calls) == 1 + 3


def test_too_few_selected_rows_are_too_risky(monkeypatch):
    rng = RNG(0)
    X, S = rng.normal(size=(60, 4)), rng.normal(size=(50, 3))
    y, v = np.arange(60) % 2, np.arange(50) % 2
    monkeypatch.setattr(hemap, "selected_rows", lambda B_T, B_S, rng: np.arange(2))
    monkeypatch.setattr(hemap, "judge", lambda *given: hemap.SourceDecision(False, "let in", {}))
    model = HeMap(random_state=0).fit(X, y, source=(S, v))
    assert model.refused_ and "2 of 50 source rows" in model.reason_


def test_class_bridge_is_the_mean_of_target_opinions():
    p = np.array([[0.9, 0.1], [0.7, 0.3], [0.2, 0.8]])
    np.testing.assert_allclose(
        hemap.class_bridge(p, np.array([0, 0, 1]), 2), [[0.8, 0.2], [0.2, 0.8]]
    )


def test_number_bridges():
    y_s, v = np.array([1.0, 2.0, 3.0, 4.0]), np.array([10.0, 20.0, 30.0, 40.0])
    np.testing.assert_allclose(hemap.number_bridge(y_s, v, False), y_s)
    np.testing.assert_allclose(hemap.number_bridge(y_s, np.full(4, 5.0), False), 2.5)
    names = np.array(["a", "a", "b", "b"])
    np.testing.assert_allclose(hemap.number_bridge(y_s, names, True), [1.5, 1.5, 3.5, 3.5])


def test_other_names_are_bridged(digits):
    """Renamed source classes reach nearly what equal names do, through p(y|v)."""
    even, odd, y = digits
    few = np.isin(y, ["0", "1", "2"])
    even, odd, y = even[few], odd[few], y[few]
    n, renamed = 200, np.char.add("digit ", y)
    model = HeMap(KNeighborsClassifier(3), random_state=0, guard=None).fit(
        even[:n], hidden(y[:n], 30), source=(odd[:n], renamed[:n]), pairs=np.arange(n)
    )
    assert model.transfer_.bridge.shape == (3, 3)
    assert np.all(model.transfer_.bridge.argmax(axis=1) == np.arange(3))
    assert model.score(even[n:], y[n:]) > 0.9
    np.testing.assert_allclose(model.predict_proba(even[n:]).sum(axis=1), 1)


def test_numbers_in_another_unit_are_bridged():
    rng = RNG(0)
    things = rng.normal(size=(400, 4))
    y = things @ [1.0, -2.0, 0.5, 0.3]
    ours = things @ rng.normal(size=(4, 6)) + 0.05 * rng.normal(size=(400, 6))
    theirs = things @ rng.normal(size=(4, 8)) + 0.05 * rng.normal(size=(400, 8))
    known = np.where(np.arange(300) < 12, y[:300], np.nan)
    model = HeMap(Ridge(), random_state=0, guard=None).fit(
        ours[:300], known, source=(theirs[:300], 100 + 32 * y[:300]), pairs=np.arange(300)
    )
    assert model.score(ours[300:], y[300:]) > 0.9


@pytest.mark.parametrize("how", ["pc", "score", "cluster", "published"])
@pytest.mark.parametrize("linearity", [1.0, 0.5])
@pytest.mark.parametrize("kinds", ["classes-numbers", "numbers-classes", "classes-classes"])
def test_mixed_outputs_go_through(how, linearity, kinds):
    wine, cancer = load_wine(), load_breast_cancer()
    ours, theirs = kinds.split("-")
    y = wine.target.astype(str) if ours == "classes" else wine.data[:, 0]
    v = cancer.target if theirs == "classes" else cancer.data[:, 0]
    options = {"linearity": linearity, "random_state": 0}
    learner = None if ours == "classes" else Ridge()
    if how == "published":
        model = papers.HeMap(learner, **options)
    else:
        model = HeMap(learner, alignment=how, guard=None, **options)
    model.fit(wine.data[:, 1:], y, source=(cancer.data[:, 1:], v))
    assert model.alignment_ == ("random" if how == "published" else how) and not model.refused_
    assert len(model.predict(wine.data[:, 1:])) == len(y)


# -- the estimator ------------------------------------------------------------------------------


def test_pairs_halve_the_error(digits):
    even, _, y = digits
    model = fit_digits(digits, "pairs")
    alone = 1 - model.target_estimator_.score(even[600:], y[600:])
    assert not model.refused_ and "helps" in model.reason_
    assert 1 - model.score(even[600:], y[600:]) < 0.5 * alone


@pytest.mark.slow
def test_components_help_without_pairs(digits):
    even, _, y = digits
    model = fit_digits(digits, "auto")
    alone = 1 - model.target_estimator_.score(even[600:], y[600:])
    assert model.alignment_ == "pc" and not model.refused_
    assert 1 - model.score(even[600:], y[600:]) < 0.9 * alone


@pytest.mark.parametrize("how", ["cluster", "pc"])
def test_guard_refuses_permuted_labels(digits, how):
    even, odd, y = digits
    lies = RNG(0).permutation(y)
    model = HeMap(alignment=how, random_state=0).fit(
        even[:600], hidden(y[:600], 60), source=(odd, lies)
    )
    alone = KNeighborsClassifier(10).fit(even[:60], y[:60])
    assert model.refused_ and model.reason_
    np.testing.assert_array_equal(model.predict(even), alone.predict(even))
    np.testing.assert_array_equal(model.classes_, alone.classes_)


def test_guard_refuses_what_the_commonest_class_does_as_well():
    """A bridge that says the same of every source class is no transfer, even if it beats kNN."""
    rng = RNG(0)
    X, y = rng.normal(size=(150, 6)), np.where(rng.random(150) < 0.7, "yes", "no")
    source = rng.normal(size=(150, 4)), rng.choice(["x", "z"], 150)
    for seed in range(5):
        model = HeMap(KNeighborsClassifier(1), random_state=seed).fit(X, y, source=source)
        assert model.refused_


def test_guard_can_be_turned_off(digits):
    even, odd, y = digits
    lies = RNG(0).permutation(y)
    model = HeMap(random_state=0, guard=None).fit(even[:300], y[:300], source=(odd, lies))
    assert not model.refused_ and "off" in model.reason_


def test_guard_standard_errors():
    """They are exceeded by chance as often for few rows as for many, in one of 6.3 draws."""
    for n in (5, 10, 80):
        gains = RNG(n).normal(size=(40_000, n))
        errors = hemap.standard_errors(gains)
        assert np.mean(gains.mean(axis=1) > errors) == pytest.approx(norm.sf(1), abs=0.006)
        plain = gains.std(axis=1, ddof=1) / np.sqrt(n)
        np.testing.assert_allclose(errors, plain * student.isf(norm.sf(1), n - 1))
    one = np.zeros((1, 40))
    one[0, 3] = 1.0
    assert one.mean() < hemap.standard_errors(one)[0]  # a single row is not enough


def test_a_learner_without_probabilities_is_judged_by_its_scores():
    rng = RNG(0)
    X = rng.normal(size=(90, 3))
    for y in ((X[:, 0] > 0).astype(int), np.digitize(X[:, 0], [-0.5, 0.5])):
        learner = SVC().fit(X, y)
        found = hemap.probabilities(learner, X)
        assert found.shape == (90, len(np.unique(y)))
        np.testing.assert_allclose(found.sum(axis=1), 1)
        agree = learner.classes_[found.argmax(axis=1)] == learner.predict(X)
        assert agree.mean() > 0.97  # votes of pairs and scores may differ on the border
    sure = hemap.probabilities(NearestCentroidWithoutScores().fit(X, y), X)
    assert set(np.unique(sure)) == {0.0, 1.0}


@pytest.mark.parametrize(
    ("errors", "refused"),
    [
        ((12, 12, 12), False),
        ((12, 1, 12), True),
        ((1, 12, 12), True),
        ((12, 12, 1), True),
        ((0, 0, 0), True),
        ((1, 1, 1), True),
    ],
)
def test_guard_asks_to_beat_every_rival(monkeypatch, errors, refused):
    """Of 40 rows the source errs on none, its rivals on so many."""
    errs = np.array([np.zeros(40), *(np.arange(40) < n for n in errors)], float)

    monkeypatch.setattr(hemap, "held_out_losses", lambda *given: (errs, []))
    monkeypatch.setattr(hemap, "_does_as_well", lambda *given: False)
    options = Options(None, False, None, 0, 2, 1.0, 1.0, True, 0)
    rows = TargetRows(np.zeros((40, 1)), np.arange(40) % 2, np.ones(40, bool), None)
    verdict = hemap.judge(options, rows, SourceRows(np.zeros((3, 1)), np.zeros(3), False), 5)
    assert verdict.refused is refused
    assert verdict.losses["target"] == errors[0] / 40


def test_guard_asks_to_beat_every_shuffled_copy(monkeypatch):
    """One copy of 19 that does as well is enough to refuse; of many sources each has more."""
    errs = np.array([np.zeros(40), *(np.arange(40) < 30 for _ in range(3))], float)
    monkeypatch.setattr(hemap, "held_out_losses", lambda *given: (errs, []))
    options = Options(None, False, None, 0, 2, 1.0, 1.0, True, 0)
    rows = TargetRows(np.zeros((40, 1)), np.arange(40) % 2, np.ones(40, bool), np.arange(40) % 3)
    source = SourceRows(np.zeros((3, 1)), np.arange(3), False)
    for n_sources, worse, refused in ((1, 38, False), (1, 37, True), (2, 38, True), (2, 78, False)):
        seen = []

        def as_well(options, copy, folds, limit, known, seen=seen, worse=worse):
            seen.append(copy)
            return len(seen) > worse

        monkeypatch.setattr(hemap, "_does_as_well", as_well)
        assert hemap.judge(options, rows, source, 5, n_sources).refused is refused
    assert len(seen) == 78  # of 39 shuffled outputs and 39 shuffled pairs
    pairs = {tuple(target.pairs) for target, _ in seen}
    outputs_seen = {tuple(source.v) for _, source in seen}
    assert len(pairs) > 20 and len(outputs_seen) == 6


def test_a_copy_that_does_as_well_is_told_from_one_that_does_not(digits):
    even, odd, y = digits
    model = HeMap(random_state=0)
    target = TargetRows(even[:200], y[:60], np.arange(200) < 60, np.arange(200))
    options = model._options(*model._alignment(target)[1:])
    true, lies = (
        SourceRows(odd[:200], y[:200], False),
        SourceRows(odd[:200], RNG(0).permutation(y[:200]), False),
    )
    folds = np.arange(60) % 3
    losses, transfers = hemap.held_out_losses(options, target, true, folds)
    for known in (None, transfers):  # learned from the start, or in the space that is known
        assert hemap.ignores_outputs(options)
        assert hemap._does_as_well(options, (target, true), folds, losses[0].sum(), known)
        assert not hemap._does_as_well(
            options, (target, true), folds, 0.99 * losses[0].sum(), known
        )
        assert not hemap._does_as_well(options, (target, lies), folds, 0.25 * 60, known)


@pytest.mark.parametrize(
    ("made", "linearity", "ignores"),
    [("pairs", 1.0, True), ("pairs", 0.5, False), ("pc", 1.0, False)],
)
def test_learners_alone_are_trained_again_where_outputs_do_not_enter_the_space(
    digits, made, linearity, ignores
):
    even, odd, y = digits
    model = HeMap(alignment=made, linearity=linearity, random_state=0)
    target = TargetRows(even[:150], y[:60], np.arange(150) < 60, np.arange(150))
    options = model._options(*model._alignment(target)[1:])
    assert hemap.ignores_outputs(options) is ignores
    if ignores:
        true, lies = (
            SourceRows(odd[:150], v, False) for v in (y[:150], RNG(0).permutation(y[:150]))
        )
        whole = Transfer(options, target, lies)
        again = Transfer(options, target, true).relearned(options, target, lies)
        np.testing.assert_allclose(again.predict_proba(even), whole.predict_proba(even))


def test_losses_of_the_guard_are_squared_errors_of_probabilities():
    said = np.array([[0.7, 0.3], [0.2, 0.8], [1.0, 0.0]])
    answer = hemap._Answer(said, np.array(["a", "b"]))
    right = np.array(["a", "a", "c"])  # the last one is a class that nobody knew of
    one_hot = np.array([[1, 0, 0], [1, 0, 0], [0, 0, 1]])
    expected = ((np.hstack([said, np.zeros((3, 1))]) - one_hot) ** 2).sum(axis=1) / 2
    np.testing.assert_allclose(hemap._losses(answer, right), expected)
    for p, label in ((0.7, 1), (0.2, 1)):  # of two classes scikit-learn says the same
        answer = hemap._Answer(np.array([[1 - p, p]]), np.arange(2))
        found = hemap._losses(answer, np.array([label]))
        assert found[0] == pytest.approx(brier_score_loss([label, 1 - label], [p, 1 - p]))


def test_judged_rows_are_few_and_keep_their_partners():
    pairs = np.arange(5000)[::-1].copy()
    target = TargetRows(pairs[:, None] * 1.0, np.arange(50), np.arange(5000) < 50, pairs)
    source = SourceRows(np.arange(5000.0)[:, None], np.arange(5000), False)
    some, others = hemap.fewer(target, source, 400)
    assert len(some.X) == len(others.X) == 400 and some.labeled.sum() == 50
    np.testing.assert_array_equal(others.X[some.pairs, 0], some.X[:, 0])
    assert some.y.tolist() == list(range(50))


@pytest.mark.slow
@pytest.mark.parametrize("n_labels", [12, 20])
def test_noise_is_let_in_seldom(n_labels):
    """The stated rate is 5 %: of 60 runs more than 7 would be 1 in 50."""
    admitted = 0
    for seed in range(60):
        rng = RNG(seed)
        kind = rng.integers(0, 2, 150)
        X = rng.normal(size=(150, 4)) + 1.5 * kind[:, None]
        noise = rng.normal(size=(150, 5)), rng.integers(0, 2, 150)
        model = HeMap(random_state=seed).fit(X, hidden(kind, n_labels), source=noise)
        admitted += not model.refused_
    assert admitted <= 7


def test_sources_gaps_and_several_sources_are_taken():
    rng = RNG(0)
    things = rng.normal(size=(300, 2))
    kind = np.where(things[:, 0] * things[:, 1] > 0, "even", "odd")
    ours = things @ rng.normal(size=(2, 5)) + 0.1 * rng.normal(size=(300, 5))
    theirs = things @ rng.normal(size=(2, 6)) + 0.1 * rng.normal(size=(300, 6))
    ours[rng.random(ours.shape) < 0.02] = np.nan
    noise = rng.normal(size=(300, 4))
    ids = np.array([f"i{i}" for i in range(300)])
    turned = rng.permutation(300)
    sources = Sources(
        {"ours": (ids, ours), "noise": (ids, noise), "theirs": (ids[turned], theirs[turned])}
    )
    few = {ids[i]: kind[i] for i in range(40)}
    every = dict(zip(ids, kind, strict=True))
    model = HeMap(random_state=0).fit(sources, few, source={"theirs": every, "noise": every})
    plain = HeMap(random_state=0).fit(
        ours,
        hidden(kind, 40),
        source={"noise": (noise, kind), "theirs": (theirs[turned], kind[turned])},
        pairs={"noise": np.arange(300), "theirs": np.argsort(turned)},
    )
    for one in (model, plain):
        assert {n: v.refused for n, v in one.verdicts_.items()} == {"noise": True, "theirs": False}
        assert not one.refused_ and "all 39 shuffled" in one.reason_
    np.testing.assert_array_equal(model.predict(sources), plain.predict(ours))
    assert model.score(sources, every) == plain.score(ours, kind) > 0.85


def test_labels_are_read_by_index():
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    rng = RNG(0)
    frame = pandas.DataFrame(rng.normal(size=(40, 2)), index=[f"r{i}" for i in range(40)])
    y = pandas.Series(np.where(frame[0] > 0, "a", "b"), index=frame.index)
    expected = HeMap().fit(frame, y.to_numpy()).predict(frame)
    for given in (y.sample(frac=1, random_state=0), y.to_dict()):
        np.testing.assert_array_equal(HeMap().fit(frame, given).predict(frame), expected)
    with pytest.raises(ValueError, match=r"y\.to_numpy\(\) goes by position"):
        HeMap().fit(frame, y.reset_index(drop=True))


def test_weights_of_a_score_go_with_the_labels():
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    rng = RNG(0)
    frame = pandas.DataFrame(rng.normal(size=(40, 2)), index=[f"r{i}" for i in range(40)])
    y = pandas.Series(np.where(frame[0] + rng.normal(size=40) > 0, "a", "b"), index=frame.index)
    weights = pandas.Series(rng.random(40), index=frame.index)
    model = HeMap().fit(frame, y)
    expected = np.average(model.predict(frame) == y, weights=weights)
    order = rng.permutation(40)
    assert model.score(frame, y, weights) == pytest.approx(expected)
    assert model.score(frame, y.iloc[order], weights.iloc[order]) == pytest.approx(expected)
    sources = Sources({"ours": frame}, key=None)
    model = HeMap().fit(sources, y)
    assert model.score(sources, y, weights.iloc[order]) == pytest.approx(expected)


def test_held_out_rows_take_their_partners_along():
    """With the pair left in, a row's own label would come back to it."""
    target = TargetRows(
        np.arange(8.0).reshape(4, 2),
        np.array(["a", "b", "a"]),
        np.array([True, True, True, False]),
        np.array([2, 0, -1, 1]),
    )
    source = SourceRows(np.arange(3.0)[:, None], np.array(["x", "y", "z"]), False)
    held = hemap._Held.of(target, source, np.array([True, False, False]))
    rest, others = held.target, held.source
    assert held.asked.tolist() == [[0, 1]] and held.right.tolist() == ["a"]
    assert others.v.tolist() == ["x", "y"]
    assert rest.pairs.tolist() == [0, -1, 1]
    assert rest.y.tolist() == ["b", "a"] and rest.labeled.tolist() == [True, True, False]


def test_without_a_source_it_is_the_learner():
    wine = load_wine()
    model = HeMap(GaussianNB()).fit(wine.data, wine.target)
    alone = GaussianNB().fit(wine.data, wine.target)
    assert model.refused_ and model.reason_ == "no source was given"
    np.testing.assert_array_equal(model.predict_proba(wine.data), alone.predict_proba(wine.data))
    with pytest.raises(ValueError, match="no source was given"):
        model.project(wine.data)


def test_kind_follows_the_learner():
    assert is_classifier(HeMap()) and is_classifier(HeMap(LinearSVC()))
    assert is_regressor(HeMap(Ridge())) and not is_classifier(HeMap(Ridge()))
    assert not hasattr(HeMap(LinearSVC()), "predict_proba")
    assert hasattr(HeMap(), "predict_proba")


def test_learners_without_probabilities_are_bridged():
    wine, cancer = load_wine(), load_breast_cancer()
    model = HeMap(LinearSVC(random_state=0), random_state=0, guard=None)
    model.fit(wine.data, wine.target, source=(cancer.data, np.array(["b", "m"])[cancer.target]))
    assert set(model.predict(wine.data)) <= {0, 1, 2}


def test_same_seed_same_answer_and_pickle(digits):
    even, odd, y = (part[:200] for part in digits)
    a, b = (
        HeMap(alignment="pc", random_state=0).fit(even, hidden(y, 30), source=(odd, y))
        for _ in range(2)
    )
    X = digits[0][600:700]
    np.testing.assert_array_equal(a.predict_proba(X), b.predict_proba(X))
    assert a.losses_ == b.losses_
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(a)).predict(X), a.predict(X))


def test_cross_validation_slices_pairs(digits):
    even, odd, y = digits
    scores = cross_val_score(
        HeMap(random_state=0, guard=None),
        even[:300],
        y[:300],
        cv=3,
        params={"source": (odd[:300], y[:300]), "pairs": np.arange(300)},
    )
    assert scores.min() > 0.7


def test_projections_of_two_views_agree(digits):
    """Two views of a thing land nearer to each other than to views of other things."""
    even = digits[0]
    model = fit_digits(digits, "pairs", guard=None)
    ours, theirs = model.project(even[:600]), model.transfer_.projected_source
    order = RNG(1).permutation(600)
    partner = np.argsort(order)
    near = np.linalg.norm(ours - theirs[partner], axis=1)
    far = np.linalg.norm(ours - theirs[RNG(2).permutation(600)], axis=1)
    assert np.mean(near < far) > 0.9


def test_pairs_from_sources():
    ours = {"id": ["a", "b", "c"], "x": [1.0, 2.0, 3.0]}
    theirs = {"id": ["c", "z", "a"], "u": [7.0, 8.0, 9.0]}
    sources = Sources({"ours": ours, "theirs": theirs})
    row = np.full(len(sources), -1)
    row[sources.rows("theirs")] = np.arange(3)
    assert row[sources.rows("ours")].tolist() == [2, -1, 0]


# -- bad input ----------------------------------------------------------------------------------


def test_sources_without_the_target_are_refused_though_another_table_would_fit():
    rng = RNG(0)
    ids, y = np.arange(40), dict(enumerate("ab" * 20))
    sources = Sources({name: (ids, rng.normal(size=(40, 3))) for name in ("ours", "theirs")})
    model = HeMap(random_state=0).fit(sources, y)
    other = Sources({"theirs": (ids, rng.normal(size=(40, 3)))})
    for use in (model.predict, lambda X: model.score(X, y)):
        with pytest.raises(ValueError, match=r"target of fit, table 'ours', got \['theirs'\]"):
            use(other)
    with pytest.raises(ValueError, match=r"source: expected names of sources, \['theirs'\], got"):
        model.fit(sources, y, source={"their": y})
    with pytest.raises(TypeError, match="source: expected a mapping of source to its outputs"):
        model.fit(sources, y, source=list(y.values()))


def test_pairs_of_no_source_are_refused():
    rows, kind = RNG(0).normal(size=(40, 3)), np.array(["a", "b"] * 20)
    given = {"theirs": (rows, kind)}
    with pytest.raises(ValueError, match=r"pairs: expected names of sources, \['theirs'\], got"):
        HeMap().fit(rows, kind, source=given, pairs={"their": np.arange(40)})
    with pytest.raises(TypeError, match="pairs: expected a mapping of source to its pairs"):
        HeMap().fit(rows, kind, source=given, pairs=np.arange(40))


WINE = load_wine()
GOOD = (load_breast_cancer().data, load_breast_cancer().target)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"alignment": "magic"}, "'alignment' .* Got 'magic'"),
        ({"alignment": "pairs"}, "expected pairs"),
        ({"n_components": 0}, "'n_components' .* Got 0"),
        ({"similarity": -1}, "'similarity' .* Got -1"),
        ({"linearity": 0}, r"'linearity' .* range \(0.0, 1.0\]. Got 0"),
        ({"guard": 1}, "'guard' .* Got 1"),
    ],
)
def test_bad_parameters(options, match):
    with pytest.raises(ValueError, match=match):
        HeMap(**options).fit(WINE.data, WINE.target, source=GOOD)


def test_estimator_must_be_a_learner():
    with pytest.raises(TypeError, match="implementing 'fit' and 'predict'"):
        HeMap("knn").fit(WINE.data, WINE.target)
    with pytest.raises(TypeError, match="expected a classifier or a regressor, got KMeans"):
        HeMap(KMeans()).fit(WINE.data, WINE.target)
    with pytest.raises(ValueError, match="give a regressor"):
        HeMap().fit(WINE.data, WINE.data[:, 0] + 0.5)


@pytest.mark.parametrize(
    ("source", "error", "match"),
    [
        ((GOOD[0][:0], GOOD[1][:0]), ValueError, "expected rows, got none"),
        ((GOOD[0], GOOD[1][:5]), ValueError, "expected 569 outputs, one per row, got 5"),
        (GOOD[0], TypeError, "pair"),
        ((GOOD[0][:3], [1, None, 0]), ValueError, "expected an output of row 1"),
        ((np.full((3, 2), np.inf), [0, 1, 0]), ValueError, "source"),
    ],
)
def test_bad_sources(source, error, match):
    with pytest.raises(error, match=match):
        HeMap().fit(WINE.data, WINE.target, source=source)


@pytest.mark.parametrize(
    ("pairs", "error", "match"),
    [
        (np.zeros(5, int), ValueError, "shape"),
        (np.full(178, 900), ValueError, r"pairs\[0\]: expected .* got 900"),
        (np.full(178, -2), ValueError, "got -2"),
        (np.full(178, "id7"), TypeError, "row numbers"),
    ],
)
def test_bad_pairs(pairs, error, match):
    with pytest.raises(error, match=match):
        HeMap().fit(WINE.data, WINE.target, source=GOOD, pairs=pairs)


@pytest.mark.parametrize(
    ("source", "pairs", "match"),
    [
        ((GOOD[0][:1], GOOD[1][:1]), None, "fewer than two rows"),
        (GOOD, np.full(178, -1), "fewer than two rows"),
        ((np.ones((9, 2)), np.arange(9) % 2), None, "the same"),
    ],
)
def test_hopeless_sources_are_refused_with_a_reason(source, pairs, match):
    model = HeMap(random_state=0).fit(WINE.data, WINE.target, source=source, pairs=pairs)
    assert model.refused_ and match in model.reason_
    assert model.score(WINE.data, WINE.target) > 0.6


def test_few_labels_are_refused():
    y = hidden(WINE.target, 178)
    y[RNG(0).permutation(178)[8:]] = None
    model = HeMap(KNeighborsClassifier(1), random_state=0).fit(WINE.data, y, source=GOOD)
    assert model.refused_ and "8 labeled rows are too few" in model.reason_


def test_text_is_refused_with_a_remedy():
    text = np.array([["red"], ["blue"]], dtype=object)
    with pytest.raises(ValueError, match=r"X: .*'red'.*Weave"):
        HeMap().fit(text, [0, 1])
    with pytest.raises(ValueError, match=r"source: .*'red'.*Weave"):
        HeMap().fit(WINE.data, WINE.target, source=(text, [0, 1]))


def test_labels_nowhere():
    with pytest.raises(ValueError, match="expected a label for some of the rows"):
        HeMap().fit(WINE.data, np.full(178, None))
    with pytest.raises(ValueError, match="inconsistent"):
        HeMap().fit(WINE.data, WINE.target[:9])
