"""GBC as published: weights from the training loss, sums from the first round, older files."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

from tabweave import Sources, papers
from tabweave.papers import sources as published
from tabweave.papers.sources import (
    SignedLogistic,
    SummedTeam,
    edge_loss,
    normalized,
    search_step,
    weighted_graphs,
)
from tabweave.sources.team import Logistic, Squared, Team, Terms

pytest.importorskip("lightgbm", reason="the extra boost is not installed")
ONE_THREAD = {"num_threads": 1}


def drawn(seed=0, n=240):
    """Draw two tables that know the classes and one of noise."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    tables = {
        name: (np.arange(n), shift * y[:, None] + rng.normal(size=(n, 5)))
        for name, shift in (("good", 1.0), ("weak", 0.5), ("noise", 0.0))
    }
    return Sources(tables), y


def test_sources_weigh_by_training_loss():
    sources, y = drawn()
    model = papers.GBCClassifier(
        60, consensus=0.1, connectivity=0, params=ONE_THREAD, random_state=0
    )
    model.fit(sources, dict(enumerate(y[:150].tolist())))
    losses = 150 * np.array(list(model.history_[-1]["training_loss"].values()))
    weights = np.array(list(model.source_weights_.values()))
    z = -losses / np.log(weights)
    assert z == pytest.approx(z[0]) and weights.sum() == pytest.approx(1)
    # The erratum: by training loss the noise is taken for knowledge.
    assert model.source_weights_["noise"] > 0.05  # held-out rows would give it none


def test_rounds_and_lambdas_are_those_of_the_smallest_error_on_held_out_labels(monkeypatch):
    sources, y = drawn()
    asked = []

    def scripted(problem, n_rounds, lambdas, learned, rng, held):
        asked.append((lambdas, len(problem.labeled), len(held.labeled)))
        assert not set(problem.labeled) & set(held.labeled)
        curve = abs(np.arange(n_rounds) - 4) / 10 + abs(lambdas[0] - 0.1)
        return SimpleNamespace(history=[{"held_out_error": e} for e in curve])

    trained = published.boost
    monkeypatch.setattr(published, "boost", scripted)
    problem = SimpleNamespace(labeled=np.arange(90), strata=y[:90])
    problem.part = lambda mask: SimpleNamespace(labeled=problem.labeled[mask])
    grid, rng = [(0.0, 0.1, 1.0), (0.0,)], np.random.default_rng(0)
    assert published.cross_validated(problem, 10, grid, True, rng) == (5, (0.1, 0.0))
    assert asked == [((l, 0.0), 60, 30) for l in grid[0] for _ in range(3)]
    monkeypatch.setattr(published, "boost", trained)
    model = papers.GBCClassifier(
        6, consensus="cv", connectivity="cv", params=ONE_THREAD, random_state=0
    )
    model.fit(sources, dict(enumerate(y[:60].tolist())))
    assert 1 <= model.n_rounds_ <= 6 and len(model.history_) == model.n_rounds_
    assert model.lambdas_[0] in published.LAMBDAS and model.lambdas_[1] == 0  # there is no graph


def test_an_expected_score_is_a_label_of_its_sign():
    scores = np.linspace(-3, 3, 7)[:, None]
    for label in (0.0, 1.0):
        sign = np.full((7, 1), 2 * label - 1)
        found = SignedLogistic().agreement(scores, sign)
        assert found == pytest.approx(Logistic().rows(scores, np.full((7, 1), label)))


def test_terms_are_sums_from_the_first_round():
    ids = np.arange(6)
    first, later = (
        kind(SimpleNamespace(sources=ids), Logistic(), ids[:2], np.eye(2)[:, :1], ids[:0]).couple(
            ids[2:], (0.5, 0.25), np.ones(1)
        )
        for kind in (SummedTeam, Team)
    )
    assert first.coupled and not later.coupled
    assert first._factors(ids < 2) == (0.5, 0.25)
    assert later._factors(ids < 2) == (0.25, 0.125)  # means, on the scale of two labels


def test_graph_weights_are_noted():
    sources, y = drawn()
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 240, (2, 900))
    same = y[a] == y[b]
    graphs = {
        "near": {"a": a[same], "b": b[same]},
        "random": {"a": a[:300], "b": rng.permutation(b[:300])},
    }
    tables = {name: (sources.ids, sources.matrix(name)) for name in sources.names}
    model = papers.GBCClassifier(8, consensus=0, connectivity=0.1, params=ONE_THREAD)
    model.fit(Sources(tables, graphs), dict(enumerate(y[:100].tolist())))
    last = model.history_[-1]["graph_weights"]
    assert last["near"] > last["random"] and sum(last.values()) == pytest.approx(1)
    assert model.graph_weights_ == last  # those that Ẽ is made with
    equal = papers.GBCClassifier(8, connectivity=0.1, weights="equal", params=ONE_THREAD)
    equal.fit(Sources(tables, graphs), dict(enumerate(y[:100].tolist())))
    assert equal.graph_weights_ == {"near": 0.5, "random": 0.5}
    assert list(equal.source_weights_.values()) == pytest.approx([1 / 3] * 3)


def test_graphs_of_learned_weights_enter_training(monkeypatch):
    sources, y = drawn()
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 240, (2, 900))
    same = y[a] == y[b]
    graphs = {"near": {"a": a[same], "b": b[same]}, "random": {"a": a, "b": rng.permutation(b)}}
    tables = {name: (sources.ids, sources.matrix(name)) for name in sources.names}
    whole, seen = Sources(tables, graphs), []
    regard = SummedTeam.regard
    monkeypatch.setattr(SummedTeam, "regard", lambda t, g: seen.append(g) or regard(t, g))
    model = papers.GBCClassifier(3, consensus=0, connectivity=0.1, params=ONE_THREAD)
    model.fit(whole, dict(enumerate(y[:100].tolist())))
    links = [whole.graph(name).toarray() for name in whole.graph_names]
    means = [A / np.maximum(A.sum(axis=1), 1)[:, None] for A in links]
    for graph, entry in zip(seen[1:], model.history_, strict=True):  # the first are equal
        near, random = entry["graph_weights"].values()
        np.testing.assert_allclose(graph.toarray(), near * means[0] + random * means[1])


def test_expectations_are_sums_as_printed():
    """(3.2), (3.3): a source or a graph that does not have a row adds nothing to its mean."""
    ids = np.arange(3)
    team = SummedTeam(SimpleNamespace(sources=ids), Logistic(), ids[:1], np.ones((1, 1)), ids[:0])
    team.couple(ids[1:], (1.0, 1.0), np.array([0.4, 0.6]))
    path, pair = (sp.csr_array(np.array(A, float)) for A in (
        [[0, 1, 1], [1, 0, 0], [1, 0, 0]], [[0, 1, 0], [1, 0, 0], [0, 0, 0]],
    ))  # fmt: skip
    team.regard(weighted_graphs([path, pair], [0.4, 0.6]))
    team._rows = [ids, ids]
    scores = np.array([[4.0, 4.0, 4.0], [1.0, np.nan, np.nan]])[:, :, None]
    expected, neighbors = team._means(scores, 0)
    np.testing.assert_allclose(expected[:, 0], [0.4 * 4 + 0.6, 1.6, 1.6])  # 4 if normalised
    np.testing.assert_allclose(neighbors[:, 0], [4, 4, 1.6])  # of one graph alone


def test_edges_lose_as_a_signed_label_does():
    """(3.11) with the logistic loss of 3.4.2: log(1 + exp(-f(a) f(b)))."""
    scores = np.array([[3.0], [2.0], [-2.0], [np.nan]])
    pairs = np.array([[0, 0, 0], [1, 2, 3]])
    expected = (np.log1p(np.exp(-6)) + np.log1p(np.exp(6))) / 2
    assert edge_loss(SignedLogistic(), scores, pairs) == pytest.approx(expected)
    assert edge_loss(Squared(), scores, pairs[:, :2]) == pytest.approx((1 + 25) / 2)


def test_steps_are_searched():
    """Eq. (3.8): of squares the best step is known; of logistic losses there is none better."""
    rng = np.random.default_rng(0)
    targets, tree = rng.normal(size=(30, 2)), rng.normal(size=(30, 2))
    everyone = np.ones(30, bool)
    found = search_step(Terms(Squared(), targets, everyone), np.zeros((30, 2)), tree, (None, None))
    best = np.maximum((targets * tree).sum(axis=0) / (tree**2).sum(axis=0), 0)
    np.testing.assert_allclose(found, best, atol=1e-4)
    terms = Terms(Logistic(), (targets > 0) * 1.0, everyone)
    tree = -terms.gradient(np.zeros((30, 2)), (None, None))[0] + rng.normal(size=(30, 2))
    found = search_step(terms, np.zeros((30, 2)), tree, (None, None))
    at = terms.value(found * tree, (None, None))
    for near in (0.9, 1.1):
        assert terms.value(near * found * tree, (None, None)) > at


@pytest.mark.parametrize("lambdas", [(0.0, 0.0), (0.1, 0.0)])
def test_the_model_is_what_was_trained(lambdas):
    """Trees are lengthened in the boosters as in the scores of training."""
    sources, y = drawn()
    model = papers.GBCClassifier(6, consensus=lambdas[0], connectivity=0, params=ONE_THREAD)
    model.fit(sources, dict(enumerate(y[:100].tolist())))
    targets = y[:100, None].astype(float)
    for name, scores in model.source_scores(sources).items():
        loss = Logistic().rows(scores[:100], targets).mean()
        assert loss == pytest.approx(model.history_[-1]["training_loss"][name])
    losses = [entry["training_loss"]["good"] for entry in model.history_]
    assert all(after < before for before, after in itertools.pairwise(losses))


def test_weights_of_a_source_without_rows_or_loss():
    np.testing.assert_allclose(normalized(np.array([1.0, 1.0])), [0.5, 0.5])
    assert normalized(np.array([2.0, np.nan])).tolist() == [1, 0]
    assert normalized(np.array([0.0, 3.0])).tolist() == [1, 0]
    found = normalized(np.array([3.0, 500.0, 400.0]))
    assert found.sum() == pytest.approx(1) and found[0] > found[2] > found[1] > 0


def test_there_is_no_auto():
    with pytest.raises(ValueError, match=r"'consensus' .* Got 'auto'"):
        papers.GBCClassifier(consensus="auto").fit([[0.0], [1.0]], [0, 1])


def test_trees_are_as_long_as_the_search_says(monkeypatch):
    sources, y = drawn()
    still = papers.GBCClassifier(3, consensus=0, connectivity=0, params=ONE_THREAD)
    monkeypatch.setattr("tabweave.papers.sources.search_step", lambda *given: np.zeros(1))
    still.fit(sources, dict(enumerate(y[:100].tolist())))
    for scores in still.source_scores(sources).values():
        np.testing.assert_allclose(scores, scores[0, 0])
