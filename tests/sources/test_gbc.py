"""GBC: against plain LightGBM, planted structure, laws, and what is refused."""

import gc
import pickle
import weakref
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import expit
from sklearn.model_selection import GridSearchCV, cross_val_score

from tabweave import GBCClassifier, GBCRegressor, Sources
from tabweave.sources import gbc
from tabweave.sources.container import blend
from tabweave.sources.team import (
    Binned,
    ClassSmoother,
    Fusion,
    Logistic,
    Team,
    beliefs,
    choose_fusion,
)

lgb = pytest.importorskip("lightgbm", reason="the extra boost is not installed")
ONE_THREAD = {"num_threads": 1}
OFF = {"consensus": 0, "connectivity": 0, "graph_smoothing": 0}


def drawn(n=240, n_classes=3, noise=(), seed=0, missing=0.2):
    """Draw informative tables and some of noise, each without some ids; return labels, too."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n)
    centers = rng.normal(0, 1.2, (4, n_classes, 5))
    tables = {}
    for i in range(4):
        known = np.flatnonzero(rng.random(n) > missing)
        tables[f"good{i}"] = (known, centers[i][y[known]] + rng.normal(size=(len(known), 5)))
    for name in noise:
        tables[name] = (np.arange(n), rng.normal(size=(n, 5)))
    return tables, y


def planted(n=300, inside=6, seed=0):
    """Draw two classes, weak columns, a graph mostly within classes and one at random."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    matrix = rng.normal(size=(n, 4)) + 0.4 * y[:, None]
    a = rng.integers(0, n, inside * n)
    b = rng.integers(0, n, inside * n)
    keep = (y[a] == y[b]) | (rng.random(len(a)) < 0.1)
    near = {"a": a[keep], "b": b[keep]}
    random = {"a": rng.permutation(n), "b": rng.permutation(n)}
    return matrix, y, near, random


@pytest.mark.parametrize("n_classes", [2, 3])
def test_without_terms_it_is_independent_boosting(n_classes):
    tables, y = drawn(n_classes=n_classes)
    # Few distinct values: bins are the same whichever rows they are made from.
    tables = {name: (ids, np.round(matrix).clip(-1, 1)) for name, (ids, matrix) in tables.items()}
    sources = Sources(tables)
    train = np.arange(120)
    trees = {**ONE_THREAD, "feature_fraction": 1.0, "num_leaves": 6, "learning_rate": 0.3}
    model = GBCClassifier(12, weights="equal", params=trees, **OFF)
    model.fit(sources, dict(enumerate(y[:120].tolist())))
    found = model.source_scores(sources)
    start = model._start
    for name, (ids, matrix) in tables.items():
        rows = np.flatnonzero(np.isin(ids, train))
        known = model.boosters_[name].params
        params = {k: known[k] for k in ("num_leaves", "learning_rate", "min_data_in_leaf")}
        params |= {k: known[k] for k in ("min_sum_hessian_in_leaf", "max_bin", "num_threads")}
        params |= {"verbosity": -1, "boost_from_average": False, "force_col_wise": True}
        params |= {"feature_pre_filter": False}
        outputs = 1 if n_classes == 2 else n_classes
        kind = "binary" if n_classes == 2 else "multiclassova"
        params |= {"objective": kind} | ({"num_class": n_classes} if outputs > 1 else {})
        labels = y[ids[rows]]
        initial = np.broadcast_to(start, (len(rows), outputs))
        data = lgb.Dataset(matrix[rows], labels, init_score=initial.ravel("F"))
        plain = lgb.train(params, data, 12).predict(matrix, raw_score=True)
        np.testing.assert_allclose(
            found[name][sources.rows(name)],
            start + plain.reshape(len(ids), -1),
            atol=1e-5,
        )


def test_equal_weights_without_terms_are_the_mean_of_the_boosters():
    tables, y = drawn()
    sources = Sources(tables)
    model = GBCClassifier(8, weights="equal", params=ONE_THREAD, **OFF)
    model.fit(sources, dict(enumerate(y[:120].tolist())))
    mean = np.nanmean(list(model.source_scores(sources).values()), axis=0)
    known = sources.present.any(axis=1)
    assert (model.predict(sources)[known] == model.classes_[mean[known].argmax(axis=1)]).all()


def test_noise_weighs_at_least_five_times_less():
    for seed in range(2):
        tables, y = drawn(noise=("noise a", "noise b"), seed=seed)
        model = GBCClassifier(20, params=ONE_THREAD, random_state=seed)
        model.fit(Sources(tables), dict(enumerate(y[:150].tolist())))
        good = [w for name, w in model.source_weights_.items() if name.startswith("good")]
        for name in ("noise a", "noise b"):
            assert model.source_weights_[name] <= np.median(good) / 5
        assert sum(model.source_weights_.values()) + model.joined_weight_ == pytest.approx(1)
        assert min(good) > 0


def test_history_importances_and_early_stopping():
    tables, y = drawn(noise=("noise",))
    wrong = np.arange(150) % 3 == 0  # labels to overfit to
    labels = np.where(wrong, (y[:150] + 1) % 3, y[:150])
    model = GBCClassifier(60, params={**ONE_THREAD, "learning_rate": 0.5}, random_state=0)
    model.fit(Sources(tables), dict(enumerate(labels.tolist())))
    assert len(model.history_) == model.n_rounds_ < 60
    for entry in model.history_:
        assert sum(entry["source_weights"].values()) == pytest.approx(1)
        assert set(entry["validation_loss"]) == set(tables)
    fused = [entry["fused_loss"] for entry in model.history_ if "fused_loss" in entry]
    assert min(fused) < 0.9 * np.log(3)
    assert model.source_importances_["noise"] == 0
    assert max(model.source_importances_.values()) > 0
    gains = model.feature_importances_
    assert sum(sum(of.values()) for of in gains.values()) == pytest.approx(1)
    assert list(gains["good0"]) == ["x0", "x1", "x2", "x3", "x4"]


def test_consensus_brings_sources_together_on_unlabeled_rows():
    tables, y = drawn(n_classes=2, missing=0)
    sources, labels = Sources(tables), dict(enumerate(y[:40].tolist()))
    distances = []
    for consensus in (0, 3):
        model = GBCClassifier(40, weights="equal", params=ONE_THREAD, random_state=0)
        model.set_params(consensus=consensus, connectivity=0, graph_smoothing=0)
        scores = model.fit(sources, labels).source_scores(sources)
        distances.append(np.var([own[40:] for own in scores.values()], axis=0).mean())
    assert distances[1] < 0.7 * distances[0]


def test_connectivity_brings_neighbours_together():
    matrix, y, near, _ = planted()
    sources, labels = (
        Sources({"t": (np.arange(300), matrix)}, {"near": near}),
        dict(enumerate(y[:60])),
    )
    distances = []
    for connectivity in (0, 3):
        model = GBCClassifier(40, weights="equal", params=ONE_THREAD, random_state=0)
        model.set_params(consensus=0, connectivity=connectivity, graph_smoothing=0)
        score = model.fit(sources, labels).source_scores(sources)["t"][:, 0]
        free = (near["a"] >= 60) & (near["b"] >= 60)
        gap = score[sources.index(near["a"][free])] - score[sources.index(near["b"][free])]
        distances.append((gap**2).mean() / score.var())
    assert distances[1] < distances[0]


def test_smoothing_follows_the_graph_that_helps():
    matrix, y, near, random = planted()
    ids = np.arange(300)
    # The last fifty have edges only.
    sources = Sources({"t": (ids[:250], matrix[:250])}, {"near": near, "random": random})
    model = GBCClassifier(20, consensus=0, connectivity=0, params=ONE_THREAD, random_state=0)
    model.fit(sources, dict(enumerate(y[:100].tolist())))
    assert model.graph_smoothing_["near"] > 0 == model.graph_smoothing_["random"]
    assert model.graph_weights_["near"] > model.graph_weights_["random"]
    assert (model.predict(sources, ids[250:]) == y[250:]).mean() > 0.85
    plain = GBCClassifier(20, params=ONE_THREAD, random_state=0, **OFF)
    plain.fit(sources, dict(enumerate(y[:100].tolist())))
    held = ids[100:250]
    assert (model.predict(sources, held) == y[held]).mean() > 0.1 + (
        plain.predict(sources, held) == y[held]
    ).mean()


def wordy(n=500, n_classes=2, seed=0):
    """Draw two tables of many weak words, and a sparse graph mostly within classes."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n)
    odds = rng.choice([-0.7, 0.7], (2, n_classes, 40))
    tables = {
        f"words{i}": (np.arange(n), (rng.random((n, 40)) < expit(odds[i][y] - 0.5)).astype(float))
        for i in range(2)
    }
    a, b = rng.integers(0, n, (2, 4 * n))
    keep = (y[a] == y[b]) | (rng.random(len(a)) < 0.1)
    return Sources(tables, {"cites": {"a": a[keep], "b": b[keep]}}), y


def test_nodes_that_nothing_is_known_of_are_predicted_as_the_constant_wherever_they_are():
    """Their neighbours weigh against the classes of training, not against labels at hand."""
    matrix, y, near, _ = planted()
    rare = np.flatnonzero((y == 0) | (np.arange(300) < 60))  # most rows are of class 0
    sources = Sources({"t": (rare, matrix[rare])}, {"near": near})
    labels = {int(i): int(y[i]) for i in rare[:120]}
    model = GBCClassifier(20, graph_smoothing=4, params=ONE_THREAD, random_state=0)
    model.fit(sources, labels)
    pair = [(900, 901)]
    alone = model.predict_proba(Sources(graphs={"near": pair}), [900])
    labelled = next(i for i, label in labels.items() if label == 1)
    beside = model.predict_proba(
        Sources({"t": ([labelled], matrix[[labelled]])}, {"near": pair}), [900]
    )
    constant = expit(model._start)[0]
    np.testing.assert_allclose(alone, [[1 - constant, constant]], atol=1e-9)
    np.testing.assert_allclose(beside, alone, atol=1e-9)


def test_shares_of_no_table_are_no_names_of_tables():
    matrix, y, _, _ = planted()
    model = GBCClassifier(5, params=ONE_THREAD, **OFF)
    model.fit(Sources({"graphs": (np.arange(300), matrix)}), y)
    with pytest.raises(ValueError, match="expected no table of the name 'graphs'"):
        model.explain(Sources({"graphs": (np.arange(2), matrix[:2])}))


def test_pseudo_labels_are_smoothed_predictions():
    sources, y = wordy()
    labels = dict(enumerate(y[:60].tolist()))
    trees = {**ONE_THREAD, "feature_fraction": 1.0}
    model = GBCClassifier(15, params=trees, random_state=0)
    plain = GBCClassifier(15, params=trees, random_state=0, consensus=0, connectivity=0)
    model.fit(sources, labels)
    plain.fit(sources, labels)
    assert model.self_trained_ and model.search_["self_training"] and not plain.self_trained_
    assert model.n_rounds_ == 2 * plain.n_rounds_ == 2 * len(model.history_)
    wrong = [(one.predict(sources)[60:] != y[60:]).mean() for one in (model, plain)]
    assert wrong[0] < wrong[1]
    # The same by LightGBM's own loss for labels that are probabilities.
    predicted = plain.predict_proba(sources)[60:]
    balanced = ClassSmoother().balanced(predicted, np.eye(2)[y[:60]])[:, 1]
    targets = np.concatenate([y[:60], balanced])
    start = Logistic().start(targets[:, None])
    for name in sources.names:
        params = {**model.boosters_[name].params, "objective": "cross_entropy", "num_class": 1}
        params["boost_from_average"] = False
        matrix = sources.matrix(name)
        data = lgb.Dataset(matrix, targets, init_score=np.full(len(targets), start[0]))
        alone = lgb.train(params, data, model.n_rounds_).predict(matrix, raw_score=True)
        found = model.boosters_[name].predict(matrix, raw_score=True)
        np.testing.assert_allclose(found, alone, atol=1e-4)


def test_no_pseudo_labels_without_need():
    sources, y = wordy(300, 3)
    model = GBCClassifier(8, params=ONE_THREAD, random_state=0)
    assert not model.fit(sources, dict(enumerate(y.tolist()))).self_trained_  # all have labels
    some = dict(enumerate(y[:100].tolist()))
    for given in ({"connectivity": 0}, {"consensus": 1}, {"graph_smoothing": 1}):
        assert (
            not GBCClassifier(8, params=ONE_THREAD, random_state=0, **given)
            .fit(sources, some)
            .search_["self_training"]
        )


def test_pseudo_labels_have_the_shares_of_the_labels():
    rng = np.random.default_rng(0)
    labels = np.eye(3)[rng.choice(3, 2000, p=[0.6, 0.3, 0.1])]
    predictions = rng.dirichlet([6, 1, 1], 500)
    balanced = ClassSmoother().balanced(predictions, labels)
    np.testing.assert_allclose(balanced.sum(axis=1), 1)
    np.testing.assert_allclose(balanced.mean(axis=0), labels.mean(axis=0), atol=0.01)
    # Classes are multiplied: the odds of two of them change by the same factor in every row.
    factor = (balanced[:, 0] / balanced[:, 1]) / (predictions[:, 0] / predictions[:, 1])
    np.testing.assert_allclose(factor, factor[0])


def test_new_ids_in_some_of_the_sources():
    tables, y = drawn()
    model = GBCClassifier(15, params=ONE_THREAD, random_state=0)
    model.fit(Sources(tables), dict(enumerate(y[:200].tolist())))
    ids, matrix = tables["good1"]
    new = Sources({"good1": (1000 + ids, matrix)})
    found = model.predict_proba(new)
    assert found.shape == (len(ids), 3) and np.allclose(found.sum(axis=1), 1)
    alone = model.source_scores(new)
    assert np.isnan(alone["good0"]).all() and not np.isnan(alone["good1"]).any()
    order = [1000 + int(ids[5]), 1000 + int(ids[2])]
    assert (model.predict_proba(new, order) == found[[5, 2]]).all()
    nobody = Sources({"unknown table": ([1, 2], [[0], [1]])})
    share = np.bincount(y[:200]) / 200
    with pytest.warns(UserWarning, match=r"sources of fit, 'good0', .*, got 'unknown table': left"):
        np.testing.assert_allclose(model.predict_proba(nobody), [share, share], atol=0.01)


def test_categories_missing_values_and_unknown_categories():
    rng = np.random.default_rng(0)
    color = rng.choice(["red", "green", "blue", None], 300)
    y = np.where(color == "red", "yes", "no")
    frame = {"id": np.arange(300), "color": color, "size": rng.normal(size=300)}
    model = GBCClassifier(30, params=ONE_THREAD, random_state=0)
    model.fit(Sources({"t": frame}), dict(enumerate(y[:200].tolist())))
    new = {"id": [1, 2, 3, 4], "color": ["blue", "red", "violet", None], "size": [0.0] * 4}
    assert model.predict(Sources({"t": new})).tolist() == ["no", "yes", "no", "no"]


@pytest.mark.slow
def test_threads_do_not_matter():
    tables, y = drawn()
    sources, labels = Sources(tables), dict(enumerate(y[:120].tolist()))
    one, two = (
        GBCClassifier(3, weights="equal", params={"num_threads": n}, random_state=0, **OFF)
        for n in (1, 2)
    )
    one.fit(sources, labels)
    two.fit(sources, labels)
    assert (one.predict_proba(sources) == two.predict_proba(sources)).all()


def test_models_pickle():
    tables, y = drawn()
    sources = Sources(tables)
    model = GBCClassifier(5, params=ONE_THREAD, random_state=0)
    model.fit(sources, dict(enumerate(y[:120].tolist())))
    again = pickle.loads(pickle.dumps(model))
    assert (again.predict_proba(sources) == model.predict_proba(sources)).all()


def test_a_graph_alone_becomes_a_table():
    _, y, near, _ = planted()
    sources, labels = Sources(graphs={"near": near}), {i: int(y[i]) for i in range(0, 300, 2)}
    with pytest.raises(ValueError, match="got graphs only; turn one into a table"):
        GBCClassifier(5).fit(sources, labels)
    for kind in ("adjacency", "spectral"):
        made = sources.with_features_of("near", kind)
        model = GBCClassifier(20, params=ONE_THREAD, random_state=0).fit(made, labels)
        assert model.score(made, {i: int(y[i]) for i in range(1, 300, 2)}) > 0.8


def test_numbers_whatever_their_unit():
    rng = np.random.default_rng(0)
    hidden = rng.normal(size=300)
    tables = {
        name: (np.arange(300), hidden[:, None] + rng.normal(0, 0.5, (300, 3))) for name in "ab"
    }
    tables["noise"] = (np.arange(300), rng.normal(size=(300, 3)))
    sources = Sources(tables)
    model = GBCRegressor(30, params=ONE_THREAD, random_state=0)
    plain = model.fit(sources, dict(enumerate(hidden[:150]))).predict(sources)
    rest = dict(zip(range(150, 300), hidden[150:], strict=True))
    assert model.score(sources, rest) > 0.7
    assert model.source_weights_["noise"] == 0
    scaled = model.fit(sources, dict(enumerate(1000 * hidden[:150] + 7))).predict(sources)
    np.testing.assert_allclose(scaled, 1000 * plain + 7, rtol=1e-6)


def test_numbers_of_graph_neighbours():
    rng = np.random.default_rng(0)
    group = rng.integers(0, 40, 400)
    value = rng.normal(size=40)[group]
    a, b = rng.integers(0, 400, (2, 20_000))
    keep = group[a] == group[b]
    tables = {"t": (np.arange(350), rng.normal(size=(350, 2)) + 0.3 * value[:350, None])}
    sources = Sources(tables, {"group": {"a": a[keep], "b": b[keep]}})
    model = GBCRegressor(15, params=ONE_THREAD, random_state=0)
    model.fit(sources, dict(enumerate(value[:200])))
    assert model.graph_smoothing_["group"] > 0 and model.search_["self_training"]
    linked = np.intersect1d(np.arange(350, 400), np.union1d(a[keep], b[keep]))
    assert np.corrcoef(model.predict(sources, linked), value[linked])[0, 1] > 0.6


def test_an_empty_table_and_one_row_are_left_out():
    tables, y = drawn()
    tables |= {"empty": ([], np.zeros((0, 2))), "single": ([0], [[1.0]])}
    model = GBCClassifier(8, params=ONE_THREAD, random_state=0)
    model.fit(Sources(tables), dict(enumerate(y[:100].tolist())))
    for name in ("empty", "single"):
        assert model.boosters_[name] is None and model.source_weights_[name] == 0


def test_very_few_labels():
    tables, _ = drawn(n_classes=2)
    labels = {0: "a", 1: "b", 2: "a"}
    model = GBCClassifier(5, params=ONE_THREAD).fit(Sources(tables), labels)
    assert set(model.predict(Sources(tables))) <= {"a", "b"}
    assert model.lambdas_ == (0, 0)


def test_series_arrays_and_missing_labels_are_read_alike():
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    tables, y = drawn()
    sources = Sources(tables)
    by_id = {int(i): int(y[i]) for i in range(100)}
    array = [by_id.get(i) for i in sources.ids.tolist()]
    shuffled = pd.Series(by_id).sample(frac=1, random_state=0)
    forms = [by_id, pd.Series(by_id), array, {**by_id, 150: None}, shuffled]
    found = [
        GBCClassifier(5, params=ONE_THREAD, random_state=0)
        .fit(sources, form)
        .predict_proba(sources)
        for form in forms
    ]
    assert all((one == found[0]).all() for one in found)


@pytest.mark.parametrize(
    ("labels", "error", "match"),
    [
        ({0: "a", 10_000: "b"}, ValueError, "got 1 of other ids, 10000 the first"),
        ({"0": "a", "1": "b"}, ValueError, "got 2 of other ids, '0' the first"),
        ({}, ValueError, "expected a label for some of the ids"),
        ({0: None}, ValueError, "expected a label for some of the ids"),
        ({0: "a", 1: "a"}, ValueError, "one class only, 'a'"),
        ([1, 2], ValueError, "expected 240 labels, .* got 2"),
        (None, ValueError, "requires y"),
    ],
)
def test_labels_that_are_refused(labels, error, match):
    sources = Sources({"t": (np.arange(240), np.zeros((240, 2)))})
    with pytest.raises(error, match=match):
        GBCClassifier(5, params=ONE_THREAD).fit(sources, labels)


@pytest.mark.parametrize(
    ("parameters", "match"),
    [
        ({"consensus": "on"}, r"'consensus' .* must be .* among {'auto'} or a float in .*'on'"),
        ({"graph_smoothing": -1}, "'graph_smoothing' .* Got -1"),
        ({"weights": "best"}, "'weights' .* Got 'best'"),
        ({"n_rounds": 0}, "'n_rounds' .* Got 0"),
        ({"cv": 1}, r"'cv' .* int in the range \[2, inf\). Got 1"),
        ({"random_state": "x"}, "'random_state' .* Got 'x'"),
    ],
)
def test_parameters_that_are_refused(parameters, match):
    with pytest.raises(ValueError, match=match):
        GBCClassifier(**parameters).fit([[0.0], [1.0]], [0, 1])


def test_rows_and_sources_do_not_mix():
    rng = np.random.default_rng(0)
    rows, y = rng.normal(size=(60, 3)), rng.integers(0, 2, 60)
    sources = Sources({"t": (np.arange(60), rows)})
    model = GBCClassifier(5, params=ONE_THREAD, random_state=0)
    with pytest.raises(TypeError, match="expected plain rows as in fit"):
        model.fit(rows, y).predict(sources)
    with pytest.raises(TypeError, match="expected Sources with some"):
        model.fit(sources, dict(enumerate(y))).predict(rows)
    with pytest.raises(KeyError, match="expected ids of the sources, got 77"):
        model.predict(sources, [77])
    with pytest.raises(ValueError, match="numbers, got 'a'; use GBCClassifier"):
        GBCRegressor(5).fit(sources, {0: "a", 1: "b"})


# -- planted errors: each of these was once wrong without a test that said so -------------------


def coupled_fit(monkeypatch, judged):
    """Fit two sources and a graph; ``judged`` are the losses of the rows that λ is tried on."""
    matrix, y, near, random = planted()
    ids = np.arange(300)
    tables = {"t": (ids, matrix), "u": (ids, matrix + 1.0)}
    sources = Sources(tables, {"near": near, "random": random})
    seen = []
    couple = Team.couple

    def spy(team, unlabeled, lambdas, weights, graph=None):
        seen.append((lambdas, np.array(weights), graph))
        return couple(team, unlabeled, lambdas, weights, graph)

    def losses(training, team):
        return np.full((training.folds == 0).sum(), judged)

    uneven = Fusion(np.array([0.8, 0.2, 0.0]))  # the last one is of all columns
    monkeypatch.setattr(gbc, "choose_fusion", lambda *given, **options: uneven)
    monkeypatch.setattr(Team, "couple", spy)
    monkeypatch.setattr(gbc.Training, "_judge_first", losses)
    model = GBCClassifier(20, graph_smoothing=0, params=ONE_THREAD, random_state=0)
    return model.fit(sources, dict(enumerate(y[:100].tolist()))), sources, seen


def test_lambda_is_turned_on_by_rows_that_gain(monkeypatch):
    model, _, _ = coupled_fit(monkeypatch, 0.0)
    assert model.lambdas_[0] == 1.0


def test_lambda_stays_off_without_a_gain(monkeypatch):
    model, _, seen = coupled_fit(monkeypatch, 9.0)
    assert model.lambdas_ == (0.0, 0.0)
    assert {lambdas for lambdas, _, _ in seen} == {(1.0, 0.0), (0.0, 1.0)}  # both were tried


def test_terms_take_the_weights_of_sources_and_graphs(monkeypatch):
    model, sources, seen = coupled_fit(monkeypatch, 9.0)
    graphs = [sources.graph(name) for name in sources.graph_names]
    expected = blend(graphs, list(model.graph_weights_.values()))
    assert not np.allclose(expected.toarray(), blend(graphs, [0.5, 0.5]).toarray())
    for _, weights, graph in seen:
        np.testing.assert_allclose(weights[:2], list(model.source_weights_.values()))
        assert weights.tolist() == [0.8, 0.2, 0.0]
        np.testing.assert_allclose(graph.toarray(), expected.toarray())


def test_a_team_expects_what_heavy_sources_say():
    """Eq. (3.2): E is the mean by the weights, not by any other."""
    matrix, y, _, _ = planted()
    ids = np.arange(300)
    sources = Sources({"t": (ids, matrix), "u": (ids, matrix[:, ::-1] + 1.0)})
    binned = Binned(sources, {**gbc.PARAMS, **gbc.FIXED}, 1)
    team = Team(binned, Logistic(), ids[:100], y[:100, None].astype(float), ids[:0])
    team.couple(ids[100:], (1.0, 0.0), np.array([0.9, 0.1])).begin().step()
    scores = team._training_scores()
    scores[0] += 5.0  # the sources differ
    mean, _ = team._means(scores, 1)
    np.testing.assert_allclose(mean, 0.9 * scores[0] + 0.1 * scores[1])


# -- ordinary use ------------------------------------------------------------------------------


def test_sources_are_cross_validated_with_their_neighbours():
    sources, y = wordy(200)
    y = y[sources.ids]
    model = GBCClassifier(8, params=ONE_THREAD, random_state=0)
    with_graph = cross_val_score(model, sources, y, cv=3)
    alone = Sources({name: (sources.ids, sources.matrix(name)) for name in sources.names})
    without = cross_val_score(model, alone, y, cv=3)
    assert with_graph.mean() > without.mean()
    search = GridSearchCV(model, {"n_rounds": [2, 4]}, cv=2).fit(sources, y)
    assert search.best_params_["n_rounds"] in (2, 4)
    assert len(search.predict(sources[:20])) == 20


def test_a_fold_sees_no_labels_of_other_ids():
    sources, y = wordy(200)
    y = y[sources.ids]
    seen = []

    class Spy(GBCClassifier):
        def _train(self, problem, rng):
            seen.append((len(problem.binned.sources), len(problem.labeled)))
            return super()._train(problem, rng)

    model = Spy(5, params=ONE_THREAD, random_state=0)
    cross_val_score(model, sources, y, cv=2)
    assert seen == [(200, 100), (200, 100)]
    seen.clear()
    alone = Sources({name: (sources.ids, sources.matrix(name)) for name in sources.names})
    cross_val_score(model, alone, y, cv=2)
    assert seen == [(100, 100), (100, 100)]  # without graphs there is nothing around


@pytest.mark.parametrize("n_classes", [2, 3])
def test_shares_sum_up_to_the_prediction(n_classes):
    sources, y = wordy(300, n_classes)
    model = GBCClassifier(10, params=ONE_THREAD, random_state=0)
    model.fit(sources, dict(enumerate(y[:200].tolist())))
    ids = [250, 3, 299]
    chance = model.predict_proba(sources, ids).max(axis=1)
    for shares, p in zip(model.explain(sources, ids), chance, strict=True):
        found = sum(sum(v.values()) if isinstance(v, dict) else v for v in shares.values())
        assert found == pytest.approx(np.log(p / (1 - p)))
        assert set(shares["words0"]) == set(sources.columns("words0"))


def test_shares_of_numbers_sum_up_to_the_prediction():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    y = 100 + 20 * X[:, 0]
    model = GBCRegressor(20, params=ONE_THREAD, random_state=0).fit(X, y)
    for row, shares, value in zip(X, model.explain(X), model.predict(X), strict=True):
        parts = shares["X"]
        assert sum(parts.values()) + shares["constant"] == pytest.approx(value)
        if abs(row[0]) > 1:  # next to the mean there is nothing to explain
            assert max(parts, key=lambda name: abs(parts[name])) == "x0"


def test_weights_of_rows_count():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y = rng.integers(0, 2, 200)
    lies = np.where(y == 1, 0.05, 1.0)
    plain, weighted = (
        GBCClassifier(10, params=ONE_THREAD, random_state=0).fit(X, y, sample_weight=w)
        for w in (None, lies)
    )
    assert weighted.predict_proba(X)[:, 1].mean() < 0.5 * plain.predict_proba(X)[:, 1].mean()
    sources = Sources({"t": (np.arange(200), X)})
    by_id = GBCClassifier(10, params=ONE_THREAD, random_state=0).fit(
        sources, y, sample_weight=dict(enumerate(lies.tolist()))
    )
    np.testing.assert_allclose(by_id.predict_proba(sources), weighted.predict_proba(X))
    right = plain.predict(X) == y
    assert plain.score(X, y, sample_weight=lies) == pytest.approx(np.average(right, weights=lies))
    assert by_id.score(sources, y, sample_weight=lies) == pytest.approx(
        np.average(by_id.predict(sources) == y, weights=lies)
    )
    with pytest.raises(ValueError, match="sample_weight: expected finite numbers of at least 0"):
        plain.fit(X, y, sample_weight=-lies)


def test_what_is_of_no_use_is_refused_by_name():
    matrix, y, near, random = planted()
    ids = np.arange(300)
    noise = np.random.default_rng(5).normal(size=(300, 4))
    good = matrix + y[:, None]
    tables = {"t": (ids, good), "noise": (ids, noise), "few": (ids[:1], noise[:1])}
    model = GBCClassifier(20, params=ONE_THREAD, random_state=0)
    model.fit(Sources(tables, {"near": near, "random": random}), dict(enumerate(y[:100].tolist())))
    assert set(model.refused_) == {"noise", "few", "random"}
    assert "two labeled" in model.refused_["few"] and "held-out" in model.refused_["random"]


def test_a_refused_source_is_told_to_count_in_the_booster_of_all_columns():
    model = SimpleNamespace(
        graph_smoothing_={}, source_weights_={"t": 0.0}, boosters_={"t": object()}, joined_weight_=1
    )
    assert "which sees its columns too" in gbc.refused(model)["t"]
    model.joined_weight_ = 0.0
    assert "no better than a constant" in gbc.refused(model)["t"]


def test_neighbours_that_differ_are_used_as_such():
    """A bipartite graph: every edge joins two classes."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 400)
    a, b = rng.integers(0, 400, (2, 4000))
    differ = y[a] != y[b]
    weak = y[:, None] + rng.normal(0, 2.0, (400, 3))
    sources = Sources({"t": (np.arange(400), weak)}, {"g": {"a": a[differ], "b": b[differ]}})
    labels = dict(enumerate(y[:120].tolist()))
    model = GBCClassifier(20, params=ONE_THREAD, random_state=0).fit(sources, labels)
    assert model.graph_smoothing_["g"] < 0 and model.refused_ == {}
    free = np.arange(120, 400)
    assert (model.predict(sources, free) == y[free]).mean() > 0.95


def test_one_source_may_do_better_than_any_mean():
    """Two sources that say the same, one of them half the time wrong in its own way."""
    rng = np.random.default_rng(0)
    targets = rng.integers(0, 2, (400, 1)).astype(float)
    sign = 2 * targets - 1
    good = 4 * sign + rng.normal(0, 1, (400, 1))
    poor = sign * np.where(rng.random((400, 1)) < 0.65, 6.0, -6.0)
    loss, start = Logistic(), np.zeros(1)
    chosen = choose_fusion(
        loss, lambda f: loss.rows(f, targets), start, np.array([good, poor]), targets
    )
    assert chosen.weights[0] > 0.95


def alike_members(n, seed, joined_noise):
    """Draw scores of two sources and of all columns, whose errors are their own."""
    rng = np.random.default_rng(seed)
    targets = rng.integers(0, 2, (n, 1)).astype(float)
    noise = np.array([1.5, 1.5, joined_noise])[:, None, None]
    return 2 * targets - 1 + noise * rng.normal(size=(3, n, 1)), targets


def test_the_fewer_labels_the_more_a_prior_counts():
    """Held-out rows that believe one source alone, and a prior of 10 labels that does not."""
    loss, start = Logistic(), np.zeros(1)
    for n, share in ((10, 1 / 2), (90, 1 / 10), (600, 0.0)):
        targets = (np.arange(n) % 2)[:, None] * 1.0
        sign = 2 * targets - 1
        wrong = np.where(np.arange(n) % 10 == 0, -1, 1)[:, None]
        scores = np.array([5 * sign, 0.7 * sign * wrong, 0.7 * sign * wrong])
        fusion = choose_fusion(
            loss, lambda f, y=targets: loss.rows(f, y), start, scores, targets, joined=True
        )
        assert fusion.prior_share == pytest.approx(share)
        prior = np.array([0.25, 0.25, 0.5])
        expected = (1 - share) * np.eye(3)[0] + share * prior
        np.testing.assert_allclose(fusion.weights, expected, atol=0.01)
    # Nothing is known of sources that do not beat the constant.
    silent = choose_fusion(loss, lambda f: np.ones(600), start, 0 * scores, targets, joined=True)
    assert (silent.prior_share, silent.weights.tolist()) == (1.0, [0.5, 0.5, 0.0])
    few = slice(None, 10)
    silent = choose_fusion(
        loss, lambda f: np.ones(10), start, 0 * scores[:, few], targets[few], joined=True
    )
    assert (silent.prior_share, silent.weights.tolist()) == (1.0, [0.25, 0.25, 0.5])


def test_ways_that_few_rows_cannot_tell_apart_are_averaged():
    loss, start = Logistic(), np.zeros(1)
    new, new_targets = alike_members(4000, 99, 1.1)
    losses = {"chosen": [], "mean": [], "all columns": []}
    for seed in range(10):
        scores, targets = alike_members(60, seed, 1.1)
        fusion = choose_fusion(
            loss, lambda f, t=targets: loss.rows(f, t), start, scores, targets, joined=True
        )
        assert 0.1 < fusion.weights[2] < 0.9  # sixty rows do not tell
        assert fusion.weights.sum() == pytest.approx(1)
        for name, way in {
            "chosen": fusion.weights,
            "mean": np.array([0.5, 0.5, 0]),
            "all columns": np.array([0, 0, 1.0]),
        }.items():
            wrong = (Fusion(way)(start, new) > 0) != (new_targets > 0)
            losses[name].append(wrong.mean())
    assert np.mean(losses["chosen"]) < min(np.mean(losses["mean"]), np.mean(losses["all columns"]))
    # Rows that say nothing leave all ways in, none of them twice as heavy as another.
    silent = choose_fusion(
        loss, lambda f: np.ones(60), start, scores, targets, joined=True, prior_labels=0
    )
    rows = np.array([loss.rows(one, targets).mean() for one in scores])
    ways = beliefs(rows, np.array([True, True, True]), joined=True)
    np.testing.assert_allclose(silent.weights, np.mean(ways, axis=0))
    scores, targets = alike_members(20_000, 1, 9.0)
    fusion = choose_fusion(
        loss, lambda f: loss.rows(f, targets), start, scores, targets, joined=True
    )
    assert fusion.weights[2] < 0.02  # many rows do
    np.testing.assert_allclose(fusion.weights[:2], 0.5, atol=0.05)


def test_held_out_rows_may_be_judged_by_error():
    matrix, y, _, _ = planted()
    labels = dict(enumerate(y[:100].tolist()))
    sources = Sources({"t": (np.arange(300), matrix)})
    trees = {**ONE_THREAD, "metric": "error"}
    model = GBCClassifier(20, params=trees, random_state=0).fit(sources, labels)
    assert model.history_[-1]["fused_loss"] < 1  # a share of rows
    with pytest.raises(ValueError, match="expected metric 'logloss' or 'error', got 'auc'"):
        GBCClassifier(params={"metric": "auc"}).fit(sources, labels)


def test_many_labels_are_held_out_once(monkeypatch):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 6000)
    X = y[:, None] + rng.normal(0, 1, (6000, 3))
    teams = []
    begin = Team.begin
    monkeypatch.setattr(Team, "begin", lambda t, w=None: teams.append(t) or begin(t, w))
    model = GBCClassifier(10, params=ONE_THREAD, random_state=0).fit(X, y)
    assert len(teams) == 2 and model.score(X, y) > 0.75
    assert teams[0]._is_labeled.sum() == 4800 and len(teams[0].watched) == 1200


def test_boosters_of_the_folds_count_as_much_as_that_of_all_labels(monkeypatch):
    tables, y = drawn(noise=("noise",))
    sources, labels = Sources(tables), dict(enumerate(y[:150].tolist()))
    model = GBCClassifier(8, params=ONE_THREAD, random_state=0, **OFF).fit(sources, labels)
    assert len(model._committee) == 3 and not any("noise" in team for team in model._committee)
    said = model.source_scores(sources)
    for name, weight in model.source_weights_.items():
        one = [team.get(name) for team in (model.boosters_, *model._committee)]
        one = [booster for booster in one if booster is not None]
        assert len(one) == (4 if weight else 1)
        raw = [b.predict(tables[name][1], raw_score=True, num_iteration=8) for b in one]
        expected = model._start + np.mean(raw, axis=0)
        np.testing.assert_allclose(said[name][sources.rows(name)], expected)
    # A fold's booster has not seen a third of the rows; none has seen those without a label.
    seen = {len({str(b.predict(tables["good0"][1])) for b in model._models("good0")})}
    assert seen == {4}
    monkeypatch.setattr(gbc, "MANY_LABELS", 100)
    assert not GBCClassifier(8, params=ONE_THREAD, **OFF).fit(sources, labels)._committee
    terms = GBCClassifier(8, params=ONE_THREAD, consensus=1, connectivity=0, cv=2)
    assert not terms.fit(sources, labels)._committee


def test_more_boosters_err_less_than_one():
    wrong = []
    for seed in range(3):
        tables, y = drawn(400, noise=("noise",), seed=seed, missing=0)
        sources = Sources({"good": tables["good0"], "noise": tables["noise"]})
        model = GBCClassifier(20, params=ONE_THREAD, random_state=seed, **OFF)
        model.fit(sources, dict(enumerate(y[:80].tolist())))
        found = [model.predict(sources)[80:] != y[80:]]
        model._committee = []
        wrong.append([*found, model.predict(sources)[80:] != y[80:]])
    committee, alone = np.mean(wrong, axis=(0, 2))
    assert committee < alone


def test_all_columns_are_a_member_of_the_team():
    """The product of two columns, each in a table of its own: no source knows it alone."""
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 600))
    y = (a * b > 0).astype(int)
    noise = rng.normal(size=(2, 600, 2))
    tables = {
        "left": (np.arange(600), np.column_stack([a, noise[0]])),
        "right": (np.arange(50, 600), np.column_stack([b, noise[1]])[50:]),
    }
    sources = Sources(tables)
    model = GBCClassifier(40, params=ONE_THREAD, random_state=0)
    model.fit(sources, dict(enumerate(y[:400].tolist())))
    assert model.joined_weight_ > 0.4
    free = np.arange(400, 600)
    assert (model.predict(sources, free) == y[free]).mean() > 0.8
    importances = model.feature_importances_
    assert importances["left"]["x0"] > 0.2 < importances["right"]["x0"]
    assert set(model.source_scores(sources)) == {"left", "right"}
    only = Sources({"left": tables["left"]})
    assert model.predict_proba(only).shape == (600, 2)  # the other table's columns are missing
    for shares, p in zip(
        model.explain(sources, [500, 10]), model.predict_proba(sources, [500, 10]), strict=True
    ):
        found = sum(sum(v.values()) if isinstance(v, dict) else v for v in shares.values())
        assert found == pytest.approx(np.log(p.max() / p.min()))
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(sources), model.predict(sources))


def test_rows_of_the_folds_are_let_go_before_the_last_training(monkeypatch):
    """Their copies of the binned rows are as large as those of the last training."""
    tables, y = drawn()
    alive, begin, train = [], Team.begin, gbc.Training._train

    def begun(team, wanted=None):
        alive.append(weakref.ref(team))
        return begin(team, wanted)

    def counted(self, *given):
        gc.collect()
        alive.append(sum(ref() is not None for ref in alive))
        train(self, *given)

    monkeypatch.setattr(Team, "begin", begun)
    monkeypatch.setattr(gbc.Training, "_train", counted)
    GBCClassifier(4, params=ONE_THREAD, random_state=0, **OFF).fit(Sources(tables), y)
    assert alive[3] == 0  # after the teams of three folds


def test_sources_with_one_label_each_weigh_nothing():
    tables = {f"t{k}": ([k, 8 + k], [[k, 1.0], [k + 0.1, 2.0]]) for k in range(8)}
    model = GBCClassifier(10, random_state=0).fit(Sources(tables), {k: k % 2 for k in range(8)})
    assert set(model.source_weights_.values()) == {0.0}
    assert set(model.refused_.values()) == {"fewer than two labeled rows"}
    assert len(model.predict(Sources(tables))) == 16


def test_categories_of_a_few_labeled_rows_are_heard():
    rng = np.random.default_rng(0)
    city = rng.choice(["Oslo", "Rome", "Paris", "Bergen", "Graz", "Lima"], 400)
    y = np.where(np.isin(city, ["Oslo", "Bergen", "Lima"]), "north", "south")
    sources = Sources({"t": {"id": np.arange(400), "city": city, "x": rng.normal(size=400)}})
    model = GBCClassifier(20, params=ONE_THREAD, random_state=0)
    model.fit(sources, dict(enumerate(y[:150].tolist())))
    assert np.mean(model.predict(sources, range(150, 400)) == y[150:]) > 0.95
