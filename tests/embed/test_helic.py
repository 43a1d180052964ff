"""HELIC: the objective term by term, weights that are what they say, pairs of rows."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from sklearn.utils.estimator_checks import check_estimator

from tabweave import HELIC, Counts, ValueMetric
from tabweave.datasets import led24, monks
from tabweave.embed.helic import (
    Distances,
    Objective,
    PairSample,
    ValuePairs,
    balanced,
    column_blocks,
    coupling_spaces,
    distance_table,
    minimise,
    most_distinct,
    uniform,
)
from tabweave.embed.value_metric import value_lookups
from tabweave.neighbors.knn import WeightedKNN


def small(n=60, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=n)
    X = np.stack([y + rng.integers(2, size=n), rng.integers(4, size=n), y > rng.random(n)], axis=1)
    return X.astype(int).astype(str), y


def problem(pull=0.1, variant="balanced"):
    """Return the objective of a small table, and its explicit pairs × features matrix."""
    X, y = small()
    model = HELIC(variant, pull=pull, random_state=0).fit(X, y)
    counts, pairs, kernels = model.counts_, model.pairs_, model._kernels()
    columns = [column_blocks(counts, a, kernels, variant == "balanced") for a in range(3)]
    met = [ValuePairs.of(pairs, a, int(counts.sizes[a])) for a in range(3)]
    tables = [distance_table(b, m.first, m.second) for b, m in zip(columns, met, strict=True)]
    blocks = [b for column in columns for b in column]
    objective = Objective(
        Distances.of(met, tables),
        pairs,
        np.array([b.start for b in blocks]),
        np.array([b.stiffness for b in blocks]),
        pull,
    )
    explicit = np.hstack(
        [
            np.stack([b.squared(pairs.left[:, a], pairs.right[:, a]) for b in column], axis=1)
            for a, column in enumerate(columns)
        ]
    )
    return model, objective, explicit


# -- the objective ------------------------------------------------------------------------------


def test_the_objective_through_value_tables_is_the_explicit_one():
    model, objective, explicit = problem()
    rng = np.random.default_rng(1)
    omega, b = rng.random(explicit.shape[1]), 0.7
    pairs = model.pairs_
    slack = np.maximum(1 + pairs.relation * (explicit @ omega - b), 0)
    off = omega - objective.start
    value = (pairs.weight * slack**2).sum() / 2 + 0.05 * (objective.stiffness * off**2).sum()
    residual = pairs.weight * slack * pairs.relation
    got, gradient = objective(np.append(omega, b))
    assert got == pytest.approx(value, abs=1e-10)
    np.testing.assert_allclose(
        gradient[:-1], residual @ explicit + 0.1 * objective.stiffness * off, atol=1e-10
    )
    np.testing.assert_allclose(gradient[-1], -residual.sum(), atol=1e-10)


def test_the_gradient_is_that_of_finite_differences():
    _, objective, explicit = problem()
    point = np.append(np.random.default_rng(2).random(explicit.shape[1]), 0.9)
    numeric = approx_fprime(point, lambda x: objective(x)[0], 1e-6)
    np.testing.assert_allclose(objective(point)[1], numeric, atol=1e-5)


def test_the_minimum_is_one():
    model, objective, _ = problem()
    omega, b, trace = minimise(objective, 500)
    assert (omega >= 0).all()
    assert all(a >= b for a, b in pairwise(trace))
    gradient = objective(np.append(omega, b))[1]
    free = omega > 1e-9
    unit = np.sqrt(objective.stiffness)
    np.testing.assert_allclose((gradient[:-1] / unit)[free], 0, atol=1e-3)
    assert ((gradient[:-1] / unit)[~free] > -1e-3).all()
    assert model.objective_[-1] <= trace[-1] + 1e-6


def test_distances_are_the_weighted_sum_of_the_blocks():
    X, _ = small()
    for variant in ("balanced", "helic"):
        model, _, explicit = problem(variant=variant)
        omega = np.concatenate([list(w.values()) for w in model.weights_.values()])
        squares = sum(
            table[model.pairs_.left[:, a], model.pairs_.right[:, a]]
            for a, table in enumerate(value_lookups(model)[0])
        )
        np.testing.assert_allclose(squares, explicit @ omega, atol=1e-10)
        vectors = model.transform(X)
        assert vectors.shape[1] <= (model.counts_.sizes - 1).sum()
        gaps = np.linalg.norm(vectors[:, None] - vectors[None], axis=2)
        np.testing.assert_allclose(gaps, model.pairwise_distances(X), atol=1e-8)


def test_blocks_have_the_mean_distance_of_their_column():
    X, y = small()
    counts = Counts.of(X, y)
    gini = [1 - ((c := np.unique(X[:, a], return_counts=True)[1] / len(X)) @ c) for a in range(3)]
    for a in range(3):
        f = counts.value_counts[counts.span(a)] / counts.n
        v, w = np.divmod(np.arange(len(f) ** 2), len(f))
        total = 0.0
        for block in column_blocks(counts, a, HELIC()._kernels(), balanced=True):
            mean = np.outer(f, f).ravel() @ block.squared(v, w)
            total += mean * block.start
            if not block.name.startswith("identity"):
                assert mean == pytest.approx(gini[a] / sum(gini))
                assert block.stiffness == pytest.approx(mean / block.start)
        assert total == pytest.approx(gini[a] / sum(gini))


# -- variants -----------------------------------------------------------------------------------


def test_hc_puts_the_spaces_side_by_side():
    X, y = small()
    model = HELIC("hc").fit(X, y)
    assert {w for column in model.weights_.values() for w in column.values()} == {1.0}
    counts = model.counts_
    for a in range(3):
        points = [p.matrix + np.outer(p.left, p.right) for p in coupling_spaces(counts, a).values()]
        rows = np.hstack(points)
        expected = ((rows[:, None] - rows[None]) ** 2).sum(axis=2)
        np.testing.assert_allclose(value_lookups(model)[0][a][:-1, :-1], expected, atol=1e-10)
    again = HELIC("hc").fit_counts(counts)
    np.testing.assert_allclose(again.transform(X), model.transform(X))


def test_an_infinite_pull_leaves_the_start():
    X, y = small()
    model = HELIC(pull=np.inf).fit(X, y)
    squared = model.pairwise_distances(X) ** 2
    gini = 1 - sum(
        ((c := np.unique(X[:, a], return_counts=True)[1] / len(X)) @ c) for a in range(3)
    )
    unlike = (X[:, None] != X[None]).sum(axis=2)
    np.testing.assert_allclose(squared, unlike / (gini + 2), atol=1e-10)


def test_linear_has_one_kernel_for_each_space():
    X, y = small()
    kernels = {name.split("/")[1] for name in HELIC("linear").fit(X, y).weights_["x1"]}
    assert kernels == {"poly1", *"0123"}


def test_it_learns_which_columns_matter():
    noise = led24(600, random_state=0)
    weights = HELIC(random_state=0).fit(noise.X, noise.y).weights_
    total = [sum(w.values()) for w in weights.values()]
    assert min(total[:7]) > 2 * max(total[7:])


def test_neighbours_get_better():
    data = monks(3)
    train, test = np.arange(432) % 4 != 0, np.arange(432) % 4 == 0
    scores = {
        name: WeightedKNN(1, metric=metric)
        .fit(data.X[train], data.y[train])
        .score(data.X[test], data.y[test])
        for name, metric in (("hamming", "hamming"), ("helic", HELIC(random_state=0)))
    }
    assert scores["helic"] >= scores["hamming"]
    assert scores["helic"] > 0.97


# -- pairs --------------------------------------------------------------------------------------


def test_all_pairs_if_they_fit_each_relation_one_half():
    X, y = small(40)
    pairs = HELIC().fit(X, y).pairs_
    rows = np.unique(np.column_stack([X, y.astype(str)]), axis=0)
    assert len(pairs.weight) == len(rows) * (len(rows) + 1) // 2
    assert pairs.weight[pairs.relation > 0].sum() == pytest.approx(0.5)
    assert pairs.weight[pairs.relation < 0].sum() == pytest.approx(0.5)
    assert most_distinct(20_000) == 199


def test_rows_are_sampled_evenly():
    X = np.arange(1000)[:, None] % 500
    y = np.arange(1000) % 2
    sample = HELIC(n_pairs=20_000, random_state=0, schema="nominal").fit(X, y)._digest
    assert sample.few is None
    share = np.bincount(sample.held[:, 0], minlength=500)
    assert len(sample.held) == 40_000 and abs(share[:250].sum() - 20_000) < 500
    assert (share > 40).all() and (share < 130).all()
    same = HELIC(n_pairs=20_000, random_state=0, schema="nominal").fit(X, y).pairs_.relation
    assert abs(same.mean()) < 0.03


def test_weights_of_rows_are_chances():
    X, y = np.arange(300)[:, None], np.arange(300) % 2
    weight = np.where(np.arange(300) < 100, 4.0, 1.0)
    values = {"x0": "nominal"}
    held = HELIC(n_pairs=5000, schema=values, random_state=0).fit(X, y, weight)._digest.held[:, 0]
    assert np.mean(held < 100) == pytest.approx(4 / 6, abs=0.03)
    draws = HELIC(n_pairs=5000, schema=values, random_state=0)
    none = draws.fit(X, y, (weight > 1).astype(int))._digest.held
    assert none[:, 0].max() < 100


def test_chance_is_a_function_of_its_seed():
    slots, draws = np.arange(10_000), np.ones(10_000, int)
    u = uniform(7, slots, draws)
    assert 0 < u.min() and u.max() < 1 and abs(u.mean() - 0.5) < 0.01
    assert (uniform(8, slots, draws) != u).all()
    assert balanced(np.ones(3), np.ones(3)).tolist() == [0, 0, 0]


@pytest.mark.parametrize("n_pairs", [50, 20_000])
def test_batches_give_the_result_of_the_whole(n_pairs):
    data = led24(300, random_state=1)
    X, y = data.X, data.y
    whole = HELIC(n_pairs=n_pairs, random_state=3).fit(X, y)
    parts = HELIC(n_pairs=n_pairs, random_state=3)
    for rows in np.array_split(np.arange(300), [1, 40, 41, 200]):
        parts.partial_fit(X[rows], y[rows])
    assert parts.counts_ == whole.counts_
    np.testing.assert_array_equal(parts.transform(X), whole.transform(X))
    np.testing.assert_array_equal(parts.pairs_.left, whole.pairs_.left)
    assert parts.weights_ == whole.weights_


def test_the_seed_decides():
    data = led24(400, random_state=1)
    first, same, other = (
        HELIC(n_pairs=500, random_state=seed).fit(data.X, data.y).weights_ for seed in (0, 0, 1)
    )
    assert first == same != other


def test_the_sample_is_bounded():
    empty = PairSample.empty(3, 100, 0)
    assert empty.held.shape == (200, 4) and empty.seen == 0


# -- borders ------------------------------------------------------------------------------------


def test_classes_and_values_that_come_later():
    X, y = small(90)
    order = np.argsort(y, kind="stable")
    model = HELIC(random_state=0)
    for part in np.array_split(order, 3):
        model.partial_fit(X[part], y[part])
    assert model.counts_.classes == (0, 1, 2)
    whole = HELIC(random_state=0).fit(X[order], y[order])
    np.testing.assert_allclose(model.transform(X), whole.transform(X))


def test_one_class_leaves_weights_where_they_start():
    X, _ = small()
    model = HELIC().fit(X, np.zeros(len(X)))
    assert model.objective_ == [] and not model.pairs_.weight.any()
    assert np.isfinite(model.transform(X)).all()
    start = HELIC(pull=np.inf).fit(X, np.zeros(len(X)))
    assert start.weights_ == HELIC().fit(X, np.zeros(len(X))).weights_


def test_a_constant_column_contributes_nothing():
    X, y = small()
    wide = np.column_stack([X, np.full(len(X), "same")])
    for variant in ("helic", "linear", "hc"):
        model = HELIC(variant, random_state=0, schema="nominal").fit(wide, y)
        assert model.tables_.widths[-1] == 0
        assert model.explain(wide[0], wide[1])["x3"] == 0
    assert HELIC(random_state=0, schema="nominal").fit(wide, y).weights_["x3"] == {}
    alone = HELIC(schema="nominal").fit([["a"], ["a"]], [0, 1])
    assert alone.transform([["a"]]).shape == (1, 0)


def test_labels_must_be_there():
    X, y = small()
    with pytest.raises(ValueError, match="requires y to be passed"):
        HELIC().fit(X)
    with pytest.raises(ValueError, match="requires y to be passed"):
        HELIC().fit(X, y).partial_fit(X)
    with pytest.raises(ValueError, match="y of row 1 is missing"):
        HELIC().fit(X[:3], ["a", None, "b"])
    with pytest.raises(ValueError, match="count the rows with y"):
        HELIC("hc").fit_counts(Counts.of(X))


def test_counts_alone_are_not_enough():
    X, y = small()
    with pytest.raises(TypeError, match="pairs of rows"):
        HELIC().fit_counts(Counts.of(X, y))
    given = HELIC("hc").fit_counts(Counts.of(X, y)).set_params(variant="helic")
    with pytest.raises(ValueError, match="only counted"):
        given.partial_fit(X, y)


def test_sets_are_refused():
    with pytest.raises(ValueError, match="'tags' is set-valued"):
        HELIC(schema={"tags": "set"}).fit({"tags": [["a"], ["b"]]}, [0, 1])


@pytest.mark.parametrize(
    "wrong",
    [
        {"variant": "x"},
        {"pull": -1},
        {"pull": np.nan},
        {"n_pairs": 0},
        {"n_pairs": 2.5},
        {"max_iter": -3},
        {"random_state": "x"},
    ],
)
def test_wrong_parameters_are_named(wrong):
    X, y = small()
    with pytest.raises(ValueError, match=f"'{next(iter(wrong))}' parameter of HELIC"):
        HELIC(**wrong).fit(X, y)


def test_many_values_are_seen_through_landmarks():
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=4000)
    X = np.column_stack([rng.integers(600, size=4000) * 2 + y, rng.integers(3, size=4000)])
    model = HELIC(n_pairs=1000, random_state=0, schema="nominal").fit(X, y)
    assert model.landmarks_ == {"x0": 512}
    assert list(model.weights_["x0"]) == ["mean"]
    assert HELIC("hc", schema="nominal").fit(X, y).landmarks_ == {"x0": 512}


def test_a_failed_partial_fit_changes_nothing():
    X, y = small()
    model = HELIC(random_state=0).fit(X, y)
    before = model.transform(X)
    with pytest.raises(ValueError, match="labels in y"):
        model.partial_fit(X, y[:-1])
    np.testing.assert_array_equal(model.transform(X), before)


def test_the_seed_may_be_a_random_state():
    data = led24(400, random_state=1)
    first, same = (
        HELIC(n_pairs=500, random_state=np.random.RandomState(7)).fit(data.X, data.y).weights_
        for _ in range(2)
    )
    assert first == same


@pytest.mark.parametrize("variant", ["helic", "hc"])
def test_scikit_learn_s_checks(variant):
    check_estimator(HELIC(variant), on_skip=None)


def test_few_rows_weigh_as_two_independent_draws_do():
    """All n² ordered pairs of rows, added up over unordered pairs of distinct ones."""
    X, y = [["a"], ["a"], ["b"], ["c"]], [0, 0, 0, 1]
    model = HELIC(random_state=0).fit(X, y)
    expected = {}
    for v, p in zip(X, y, strict=True):
        for w, q in zip(X, y, strict=True):
            key = tuple(sorted([v[0], w[0]]))
            expected[key] = (expected.get(key, (0,))[0] + 1 / 16, p == q)
    sums = [sum(e for e, s in expected.values() if s is same) for same in (True, False)]
    pairs, labels = model.pairs_, model.counts_.labels[0]
    for v, w, weight in zip(pairs.left[:, 0], pairs.right[:, 0], pairs.weight, strict=True):
        mass, same = expected.pop(tuple(sorted([labels[v], labels[w]])))
        assert weight == pytest.approx(mass / (2 * sums[0 if same else 1]))
    assert not expected


@pytest.mark.parametrize("model", [HELIC(), ValueMetric("vdm")])
def test_numbers_are_no_classes(model):
    rows = {"a": list("xyz") * 20, "b": list("pq") * 30}
    with pytest.raises(ValueError, match=r"expected classes in y, got numbers such as 0\.5; bin"):
        model.fit(rows, np.arange(60) + 0.5)
    assert len(model.fit(rows, np.arange(60) % 4 / 2).transform(rows)) == 60  # half stars


def test_times_of_day_are_weighed_by_their_cycle():
    rng = np.random.default_rng(0)
    y = rng.choice(["early", "late"], 200)
    hours = rng.integers(0, 10, 200) + 12 * (y == "late")
    hours = {"time": hours, "other": rng.integers(0, 24, 200)}
    rows = {name: [f"{hour:02d}:30" for hour in cells] for name, cells in hours.items()}
    model = HELIC(schema=dict.fromkeys(rows, "datetime"), random_state=0).fit(rows, y)
    names = model.get_feature_names_out().tolist()
    assert names[::2] == ["time (time of day)_0", "other (time of day)_0"]
    variance = model.transform(rows).var(axis=0)
    assert variance[:2].sum() > 1.5 * variance[2:].sum()  # the other tells nothing of the classes
