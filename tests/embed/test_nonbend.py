"""Non-BEND against brute force, planted mixtures, its own promises, and bad input."""

import itertools
import pickle
from collections import Counter
from functools import partial

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.spatial.distance import cdist
from scipy.special import betaln, digamma, gammaln
from scipy.stats import chi2
from sklearn.metrics import adjusted_rand_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from tabweave import Counts, Table
from tabweave.datasets import make_coupled
from tabweave.embed import nonbend
from tabweave.embed.nonbend import (
    VI,
    Fit,
    Gibbs,
    NonBEND,
    Prior,
    Sampler,
    WeightedRows,
    add_assigned,
    embedding_grams,
    first_fit,
    log_joint,
    mean_grams,
    step,
    stick_expectations,
    sweep,
    tidied,
    value_expectations,
)
from tabweave.engines.reading import read_fitted
from tabweave.space.value_tables import ValueTables


def planted(k, n, n_columns=10, n_values=4, concentration=0.2, seed=0):
    rng = np.random.default_rng(seed)
    theta = rng.dirichlet(np.full(n_values, concentration), size=(k, n_columns))
    z = rng.integers(k, size=n)
    below = np.cumsum(theta[z], axis=2)
    return (rng.random((n, n_columns, 1)) * below[..., -1:] >= below).sum(axis=2), z


def rows_of(X):
    table = Table.of(np.asarray(X), numbers="nominal")
    counts = Counts.of(table)
    return WeightedRows.of(table, counts, None), counts


SHORT = {"vi": VI(max_iter=30), "gibbs": Gibbs(max_iter=30)}
TINY = np.array([[0, 0], [0, 0], [0, 1], [1, 1], [1, 2]])


# -- Gibbs -------------------------------------------------------------------------------------


def partition_of(z):
    names = {}
    return tuple(names.setdefault(t, len(names)) for t in z)


def exact_posterior(X, prior, counts_of):
    """Every partition of the rows, by brute force from the products of Eqs. (5.8) and (5.9)."""
    out = {}
    for z in itertools.product(range(len(X)), repeat=len(X)):
        if partition_of(z) == z:
            out[z] = np.exp(log_joint(*counts_of(z), prior))
    total = sum(out.values())
    return {z: p / total for z, p in out.items()}


def assigned_counts(cells, n_values):
    def counts_of(z):
        z = np.array(z)
        counts, sizes = np.zeros((n_values, z.max() + 1)), np.zeros(z.max() + 1)
        add_assigned(cells, np.ones(len(z)), z, counts, sizes)
        return counts, sizes

    return counts_of


def sequential_log_joint(X, z, alpha, alpha0, widths):
    """log P(X, z) by the chain rule: each row given those before it, with plain loops."""
    total = 0.0
    for i, row in enumerate(X):
        before = [X[m] for m in range(i) if z[m] == z[i]]
        total += np.log((len(before) or alpha) / (i + alpha))
        for j, value in enumerate(row):
            same = sum(other[j] == value for other in before)
            total += np.log((same + alpha0) / (len(before) + alpha0 * widths[j]))
    return total


def test_log_joint_is_the_chain_rule():
    rows, _ = rows_of(TINY)
    prior = Prior(0.7, 0.4, 5, rows.offsets)
    cells = TINY.astype(np.int32) + rows.offsets[:-1].astype(np.int32)
    counts_of = assigned_counts(cells, rows.n_values)
    for z in [(0, 0, 0, 0, 0), (0, 0, 1, 1, 1), (0, 1, 2, 3, 4), (0, 1, 0, 1, 2)]:
        expected = sequential_log_joint(TINY, z, 0.7, 0.4, rows.sizes)
        assert log_joint(*counts_of(z), prior) == pytest.approx(expected)


@pytest.mark.parametrize(("alpha", "alpha0"), [(1.0, 0.5), (3.0, 1.0)])
def test_gibbs_reaches_the_exact_posterior_over_partitions(alpha, alpha0):
    rows, _ = rows_of(TINY)
    prior = Prior(alpha, alpha0, 5, rows.offsets)
    cells = TINY.astype(np.int32) + rows.offsets[:-1].astype(np.int32)
    exact = exact_posterior(TINY, prior, assigned_counts(cells, rows.n_values))
    assert len(exact) == 52  # the Bell number of 5

    rng = np.random.default_rng(7)
    sampler = Sampler(cells, prior, np.zeros(5, int))
    n_draws, thin = 8_000, 5
    seen = Counter()
    for _ in range(n_draws):
        for _ in range(thin):
            sampler.sweep(rng)
        seen[partition_of(sampler.assignment)] += 1
    expected = np.array([exact[z] * n_draws for z in exact])
    found = np.array([seen[z] for z in exact])
    rare = expected < 5
    if rare.any():
        expected = np.append(expected[~rare], expected[rare].sum())
        found = np.append(found[~rare], found[rare].sum())
    statistic = ((found - expected) ** 2 / expected).sum()
    assert chi2.sf(statistic, len(expected) - 1) > 0.001


def test_gibbs_keeps_its_counts_and_grows():
    X, _ = planted(3, 200, seed=3)
    rows, _ = rows_of(X)
    prior = Prior(500.0, 0.05, 4, rows.offsets)  # many subspaces: more slots than at the start
    sampler = Sampler(rows.cells, prior, np.zeros(len(rows.cells), int))
    for _ in range(3):
        sampler.sweep(np.random.default_rng(0))
    assert sampler.n_slots > 9
    counts, sizes = assigned_counts(rows.cells, rows.n_values)(sampler.assignment)
    np.testing.assert_array_equal(sampler.counts[:, : len(sizes)], counts)
    np.testing.assert_array_equal(sampler.sizes[: len(sizes)], sizes)
    np.testing.assert_allclose(sampler._logs, np.log(sampler.counts + 0.05))


# -- variational inference ---------------------------------------------------------------------


def reference_elbo(X, phi, gamma, tau, alpha, alpha0):
    """Eq. (5.16) term by term, for free parameters: no term is assumed to be at its best."""
    n_t = phi.shape[1]
    both = digamma(gamma.sum(axis=1))
    log_v, log_rest = digamma(gamma[:, 0]) - both, digamma(gamma[:, 1]) - both
    log_pi = np.append(log_v, 0) + np.concatenate([[0], np.cumsum(log_rest)])
    elbo = ((alpha - 1) * log_rest - betaln(1, alpha)).sum() + (phi @ log_pi).sum()
    elbo -= (phi * np.log(np.maximum(phi, 1e-300))).sum()
    elbo -= (
        (gamma[:, 0] - 1) * log_v + (gamma[:, 1] - 1) * log_rest - betaln(gamma[:, 0], gamma[:, 1])
    ).sum()
    for j, t in itertools.product(range(X.shape[1]), range(n_t)):
        own = tau[j][t]
        log_theta = digamma(own) - digamma(own.sum())
        width = len(own)
        elbo += gammaln(width * alpha0) - width * gammaln(alpha0) + ((alpha0 - 1) * log_theta).sum()
        elbo -= gammaln(own.sum()) - gammaln(own).sum() + ((own - 1) * log_theta).sum()
        elbo += phi[:, t] @ log_theta[X[:, j]]
    return elbo


def updates(X, phi, alpha, alpha0):
    """The package's updates of γ and τ from responsibilities, as free parameters."""
    rows, _ = rows_of(X)
    sizes = phi.sum(axis=0)
    gamma = np.stack([1 + sizes[:-1], alpha + np.cumsum(sizes[::-1])[::-1][1:]], axis=1)
    tau = [
        np.array([alpha0 + np.bincount(X[:, j], phi[:, t], width) for t in range(phi.shape[1])])
        for j, width in enumerate(rows.sizes)
    ]
    return rows, gamma, tau


def test_the_bound_is_equation_5_16_at_the_updated_parameters():
    rng = np.random.default_rng(0)
    X = rng.integers(3, size=(12, 3))
    phi = rng.dirichlet(np.ones(4), size=12)
    alpha, alpha0 = 1.3, 0.4
    rows, gamma, tau = updates(X, phi, alpha, alpha0)
    prior = Prior(alpha, alpha0, 4, rows.offsets)
    counts = np.vstack([t.T for t in tau]) - alpha0
    after = step(lambda: (rows,), Fit(counts, phi.sum(axis=0)), prior)

    log_pi, _ = stick_expectations(phi.sum(axis=0), alpha)
    log_theta, _ = value_expectations(counts, phi.sum(axis=0), prior)
    scores = log_pi + sum(log_theta[rows.offsets[j] + X[:, j]] for j in range(3))
    best_phi = np.exp(scores - scores.max(axis=1, keepdims=True))
    best_phi /= best_phi.sum(axis=1, keepdims=True)
    expected = reference_elbo(X, best_phi, gamma, tau, alpha, alpha0)
    assert after.trace[-1] == pytest.approx(expected)
    np.testing.assert_allclose(after.sizes, best_phi.sum(axis=0))


def test_each_update_is_a_maximum_of_the_bound():
    rng = np.random.default_rng(1)
    X = rng.integers(2, size=(6, 2))
    alpha, alpha0 = 0.8, 0.6
    phi = rng.dirichlet(np.ones(3), size=6)
    _, gamma, tau = updates(X, phi, alpha, alpha0)

    def at(free):  # γ and τ, free, at fixed responsibilities
        free = np.exp(free)
        moved = [free[4 + 6 * j : 10 + 6 * j].reshape(3, 2) for j in range(2)]
        return -reference_elbo(X, phi, free[:4].reshape(2, 2), moved, alpha, alpha0)

    found = minimize(at, np.zeros(16), method="BFGS", options={"gtol": 1e-7})
    expected = np.concatenate([gamma.ravel(), *(t.ravel() for t in tau)])
    np.testing.assert_allclose(np.exp(found.x), expected, rtol=1e-3)

    def over_rows(free):  # responsibilities, free, at fixed γ and τ
        scores = np.hstack([free.reshape(6, 2), np.zeros((6, 1))])
        moved = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
        return -reference_elbo(X, moved, gamma, tau, alpha, alpha0)

    found = minimize(over_rows, np.zeros(12), method="BFGS", options={"gtol": 1e-7})
    rows, _ = rows_of(X)
    prior = Prior(alpha, alpha0, 3, rows.offsets)
    counts = np.vstack([t.T for t in tau]) - alpha0
    after = step(lambda: (rows,), Fit(counts, phi.sum(axis=0)), prior)
    assert after.trace[-1] == pytest.approx(-found.fun, abs=1e-5)


@pytest.mark.parametrize("start", ["sweeps", "random", "rows"])
@pytest.mark.parametrize("alpha0", [0.1, 1.0])
def test_the_bound_never_falls(start, alpha0):
    X, _ = planted(4, 400, concentration=0.8, seed=2)
    rows, _ = rows_of(X)
    for seed in range(3):
        prior = Prior(1.0, alpha0, 15, rows.offsets)
        engine = VI(start, tol=-1.0, merge=bool(seed), max_iter=60)
        fit = engine.run(rows, prior, np.random.default_rng(seed))
        assert np.diff(fit.trace).min() >= -1e-7 * abs(fit.trace[-1])


def test_dropping_and_ordering_subspaces_keeps_the_bound():
    X, _ = planted(3, 300)
    rows, _ = rows_of(X)
    prior = Prior(1.0, 0.1, 12, rows.offsets)
    fit = first_fit(rows, prior, "random", np.random.default_rng(0))
    for _ in range(40):
        plain = step(lambda: (rows,), fit, prior)
        tidy = step(lambda: (rows,), tidied(fit, prior), prior)
        assert tidy.trace[-1] >= plain.trace[-1] - 1e-8 * abs(plain.trace[-1])
        fit = plain


def test_merging_raises_the_bound_and_finds_the_planted_number():
    X, _ = planted(3, 1_000, concentration=0.3, seed=1)
    rows, _ = rows_of(X)
    prior = Prior(1.0, 0.1, 30, rows.offsets)
    separate = VI("random", max_iter=200).run(rows, prior, np.random.default_rng(0))
    united = VI("random", merge=True, max_iter=200).run(rows, prior, np.random.default_rng(0))
    assert united.trace[-1] > separate.trace[-1]
    assert len(united.sizes) < len(separate.sizes)
    model = NonBEND(VI(merge=True), n_fits=4, random_state=0).fit(X)
    assert model.n_subspaces_ == 3


def test_many_blocks_equal_one(monkeypatch):
    X, _ = planted(3, 5_000)
    rows, _ = rows_of(X)
    base, values = np.zeros(4), np.random.default_rng(0).normal(size=(rows.n_values, 4))
    one = nonbend.expect(rows.cells, rows.weight, base, values)
    monkeypatch.setattr(nonbend, "_blocks", partial(nonbend._blocks, block_rows=100))
    many = nonbend.expect(rows.cells, rows.weight, base, values)
    for a, b in zip(one, many, strict=True):
        np.testing.assert_allclose(a, b)


# -- recovery ----------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [3, 6, 12])
@pytest.mark.parametrize("method", ["vi", "gibbs"])
def test_recovers_planted_subspaces(k, method):
    X, z = planted(k, 2_000, seed=k)
    model = NonBEND(method, n_fits=4, random_state=0, schema="nominal").fit(X)
    assert (model.weights_ > 0.2 / k).sum() == k
    assert adjusted_rand_score(z, model.predict_subspace(X)) >= 0.95


# -- the representation ------------------------------------------------------------------------


def test_grams_are_inner_products_of_the_features():
    X, _ = planted(3, 200, n_columns=4, seed=5)
    model = NonBEND(n_fits=1, random_state=0, schema="nominal").fit(X)
    grams = embedding_grams(model.fits_[0], model._prior(model.counts_))
    for theta, gram in zip(model.theta_, grams, strict=True):
        one_zero = 1 - np.eye(theta.shape[1])
        parts = [
            pi * np.exp(-own)[:, None] * one_zero
            for pi, own in zip(model.weights_, theta, strict=True)
        ]
        features = np.hstack(parts)
        np.testing.assert_allclose(gram, features @ features.T)


def test_several_fits_weigh_alike():
    X, _ = planted(3, 200, n_columns=4, seed=5)
    model = NonBEND(n_fits=3, random_state=0, schema="nominal").fit(X)
    prior = model._prior(model.counts_)
    grams = [embedding_grams(fit, prior) for fit in model.fits_]
    expected = ValueTables.from_grams(mean_grams(grams, model.counts_), model.counts_)
    table = read_fitted(model, X)
    rows = expected.gather(table)
    np.testing.assert_allclose(model.pairwise_distances(X), cdist(rows, rows))
    single = [ValueTables.from_grams(g, model.counts_).gather(table) for g in grams]
    mean = np.mean([cdist(z, z) ** 2 / z.var(axis=0).sum() for z in single], axis=0)
    np.testing.assert_allclose(cdist(rows, rows) ** 2 / rows.var(axis=0).sum(), mean, atol=1e-9)


def test_same_answer_however_the_rows_arrive():
    X, _ = planted(3, 300, seed=1)
    settings = {"n_fits": 2, "random_state": 0}
    whole = NonBEND(**settings, schema="nominal").fit(X)
    shuffled = NonBEND(**settings, schema="nominal").fit(
        X[np.random.default_rng(0).permutation(len(X))]
    )
    parts = NonBEND(**settings, schema="nominal").fit(X[:50])
    for start in range(50, 300, 50):
        parts.partial_fit(X[start : start + 50])
    unique, weight = np.unique(X, axis=0, return_counts=True)
    weighted = NonBEND(**settings, schema="nominal").fit(unique, sample_weight=weight)
    for other in (shuffled, parts, weighted):
        np.testing.assert_allclose(other.transform(X), whole.transform(X))
        assert other.trace_ == pytest.approx(whole.trace_)
    again = pickle.loads(pickle.dumps(whole))
    np.testing.assert_array_equal(again.transform(X), whole.transform(X))


def test_partial_fit_takes_new_values():
    first = {"a": ["x", "y"] * 10, "b": ["u", "v"] * 10}
    second = {"a": ["w", "x"] * 10, "b": ["t", "u"] * 10}
    both = {name: first[name] + second[name] for name in first}
    parts = NonBEND(n_fits=2, random_state=0).fit(first).partial_fit(second)
    whole = NonBEND(n_fits=2, random_state=0).fit(both)
    np.testing.assert_allclose(parts.transform(both), whole.transform(both))


@pytest.mark.parametrize(
    "method",
    ["vi", "gibbs", VI(n_init=2, max_iter=20), Gibbs(assignment="last", max_iter=20)],
)
@pytest.mark.parametrize("seed", [3, np.random.RandomState])
def test_only_the_seed_decides(method, seed):
    X, _ = planted(3, 200)
    seeds = (seed if isinstance(seed, int) else seed(3) for _ in range(2))
    a, b = (NonBEND(method, n_fits=2, random_state=own).fit(X) for own in seeds)
    np.testing.assert_array_equal(a.transform(X), b.transform(X))


# -- out of core -------------------------------------------------------------------------------


def test_batches_continue_to_a_fixed_point_of_the_whole():
    X, z = planted(4, 3_000, seed=9)
    batches = [X[i : i + 500] for i in range(0, 3_000, 500)]
    model = NonBEND(n_fits=2, random_state=0, schema="nominal").fit_batches(lambda: iter(batches))
    assert model.counts_ == Counts.of(Table.of(X, numbers="nominal"))
    assert adjusted_rand_score(z, model.predict_subspace(X)) > 0.95
    for fit in model.fits_:
        assert np.diff(fit.trace).min() >= -1e-7 * abs(fit.trace[-1])
    rows, _ = rows_of(X)
    after = step(lambda: (rows,), model.fits_[0], model._prior(model.counts_))
    assert after.trace[-1] - after.trace[-2] < 1e-5 * abs(after.trace[-1])
    assert model.transform(X).shape[0] == 3_000
    with pytest.raises(ValueError, match="fit_batches"):
        model.partial_fit(X)


def test_batches_larger_than_the_sample(monkeypatch):
    few = partial(nonbend._first_pass, sample_rows=100)
    monkeypatch.setattr(nonbend, "_first_pass", few)
    X, z = planted(3, 1_000, seed=9)
    model = NonBEND(n_fits=1, random_state=0, schema="nominal").fit_batches([X[:300], X[300:]])
    assert adjusted_rand_score(z, model.predict_subspace(X)) > 0.95
    with pytest.raises(TypeError, match="only once"):
        NonBEND(schema="nominal").fit_batches(iter([X]))
    with pytest.raises(ValueError, match="'vi'"):
        NonBEND("gibbs", schema="nominal").fit_batches([X])
    with pytest.raises(ValueError, match="at least one row in the batches"):
        NonBEND(schema="nominal").fit_batches([])
    with pytest.raises(ValueError, match="'tags' holds sets"):
        NonBEND().fit_batches([{"tags": [{"a"}, {"b"}]}, {"tags": [{"a"}, {"b"}]}])


# -- the model of the table --------------------------------------------------------------------


def test_density_and_reconstruction_are_one_distribution():
    X, _ = planted(3, 500, n_columns=4, n_values=3)
    model = NonBEND(n_fits=1, random_state=0, schema="nominal").fit(X)
    tensor = model.reconstruct()
    assert tensor.sum() == pytest.approx(1)
    cells = np.array(list(itertools.product(*model.counts_.labels)))
    np.testing.assert_allclose(np.exp(model.score_samples(cells)), tensor.ravel())
    np.testing.assert_allclose(model.reconstruct(["x2", "x0"]), tensor.sum(axis=(1, 3)).T)


def test_reconstruction_nears_the_table_as_rows_are_added():
    X, _ = planted(3, 100_000, n_columns=4, n_values=3, seed=4)
    divergences = [
        NonBEND(n_fits=2, random_state=0, schema="nominal").fit(X[:n]).divergence(X[:n])
        for n in (100, 1_000, 10_000, 100_000)
    ]
    assert all(a > 2 * b for a, b in itertools.pairwise(divergences)), divergences
    assert divergences[-1] < 0.001


def test_samples_follow_the_model():
    X, _ = planted(3, 2_000, n_columns=3, n_values=3)
    model = NonBEND(n_fits=1, random_state=0, schema="nominal").fit(X)
    drawn = model.sample(20_000, random_state=1)
    assert model.divergence(drawn) < 0.003
    same = model.sample(20_000, random_state=1)
    assert all((drawn[c] == same[c]).all() for c in drawn)
    assert set(drawn["x0"]) <= set(model.counts_.labels[0])
    assert model.transform(drawn).shape[0] == 20_000


def test_anomalies_score_low():
    X, _ = planted(3, 2_000, seed=3)
    model = NonBEND(n_fits=1, random_state=0, schema="nominal").fit(X)
    mixed = np.stack([np.random.default_rng(j).permutation(X[:, j]) for j in range(10)], axis=1)
    assert np.median(model.score_samples(mixed)) < np.quantile(model.score_samples(X), 0.2)


def test_unknown_values_are_unlikely_or_refused():
    rows = {"a": ["x", "y"] * 20, "b": ["u", "v"] * 20}
    model = NonBEND(n_fits=1, random_state=0).fit(rows)
    scores = model.score_samples({"a": ["x", "new"], "b": ["u", "u"]})
    assert np.isfinite(scores).all()
    assert scores[1] < scores[0] - 3
    model.set_params(unknown="error")
    with pytest.raises(ValueError, match="column 'a': value 'new'"):
        model.predict_subspace({"a": ["new"], "b": ["u"]})


# -- bad input and edges -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"alpha": 0}, "'alpha' parameter of NonBEND"),
        ({"alpha": -1.0}, "'alpha' parameter of NonBEND"),
        ({"alpha": np.nan}, "'alpha' parameter of NonBEND"),
        ({"alpha0": 0.0}, "'alpha0' parameter of NonBEND"),
        ({"alpha0": "much"}, "'alpha0' parameter of NonBEND"),
        ({"n_fits": 0}, "'n_fits' parameter of NonBEND"),
        ({"method": "em"}, "'method' parameter of NonBEND"),
        ({"method": VI(truncation=1)}, r"'truncation' parameter of VI .* \[2, inf\)"),
        ({"method": VI(truncation=2.5)}, "'truncation' parameter of VI"),
        ({"method": VI(max_iter=0)}, "'max_iter' parameter of VI"),
        ({"method": VI(start="far")}, "'start' parameter of VI"),
        ({"method": VI(n_init=0)}, "'n_init' parameter of VI"),
        ({"method": Gibbs(assignment="mean")}, "'assignment' parameter of Gibbs"),
        ({"method": Gibbs(burn_in=1.0)}, "'burn_in' parameter of Gibbs"),
        ({"method": Gibbs(n_init=0)}, "'n_init' parameter of Gibbs"),
        ({"method": Gibbs(max_iter=0)}, "'max_iter' parameter of Gibbs"),
        ({"random_state": "x"}, "'random_state' parameter of NonBEND"),
    ],
)
def test_bad_parameters_are_named(settings, named):
    with pytest.raises(ValueError, match=named):
        NonBEND(**settings).fit(TINY)


@pytest.mark.parametrize("method", ["vi", "gibbs"])
def test_rows_all_identical(method):
    rows = {"a": ["x"] * 30, "b": ["u"] * 30}
    model = NonBEND(method, n_fits=2, random_state=0).fit(rows)
    # Gibbs draws from the prior here: such rows say nothing about the number of subspaces
    assert method == "gibbs" or model.n_subspaces_ == 1
    assert model.transform(rows).shape == (30, 0)
    assert model.score_samples(rows) == pytest.approx(0.0)
    assert model.reconstruct().shape == (1, 1)


@pytest.mark.parametrize("method", ["vi", "gibbs"])
def test_rows_all_distinct(method):
    X = np.array(list(itertools.product(range(3), repeat=4)))
    model = NonBEND(SHORT[method], n_fits=2, random_state=0).fit(X)
    distances = model.pairwise_distances(X)
    off = ~np.eye(len(X), dtype=bool)
    assert np.isfinite(distances).all()
    assert (distances[off] > 0).all()


@pytest.mark.parametrize("method", ["vi", "gibbs"])
def test_a_constant_column_adds_nothing(method):
    X, _ = planted(3, 200, n_columns=4)
    constant = np.column_stack([X, np.full(len(X), 7)])
    model = NonBEND(SHORT[method], n_fits=2, random_state=0, schema="nominal")
    with_it = model.fit_transform(constant)
    assert model.explain(constant[0], constant[1])["x4"] == 0
    np.testing.assert_allclose(with_it, model.fit_transform(X))


def test_rows_of_next_to_no_weight_are_rows():
    model = NonBEND(n_fits=1, random_state=0).fit([["x"], ["y"], ["y"]], sample_weight=[1e-10] * 3)
    assert np.isfinite(model.transform([["x"], ["y"]])).all()


def test_what_cannot_be_learned_is_refused():
    with pytest.raises(TypeError, match="use fit"):
        NonBEND().fit_counts(Counts.of(Table.of({"a": ["x"]})))
    with pytest.raises(ValueError, match="column 'tags' holds sets"):
        NonBEND().fit({"tags": [{"a"}, {"b"}]})
    with pytest.raises(ValueError, match="0 sample"):
        NonBEND().fit(np.zeros((0, 2)))
    with pytest.raises(ValueError, match="counts of at least one row"):
        NonBEND().fit([["x"]], sample_weight=[0])
    with pytest.raises(ValueError, match="whole numbers"):
        NonBEND("gibbs").fit([["x"], ["y"]], sample_weight=[0.5, 1])
    values = {f"x{i}": "nominal" for i in range(6)}
    wide = NonBEND(n_fits=1, schema=values).fit(np.arange(40)[:, None] + np.zeros((1, 6), int))
    with pytest.raises(ValueError, match="name fewer columns"):
        wide.reconstruct()


@pytest.mark.parametrize("engine", [VI, Gibbs])
def test_progress_is_told_of_each_fit(engine, capsys):
    heard = []
    NonBEND(engine(progress=heard.append), n_fits=2, random_state=0).fit(TINY)
    assert [(p.done, p.total, p.unit) for p in heard] == [(1, 2, "fits"), (2, 2, "fits")]
    assert "subspaces" in heard[-1].note
    assert capsys.readouterr() == ("", "")


def test_progress_is_told_of_each_fit_on_batches():
    heard = []
    NonBEND(VI(progress=heard.append), n_fits=2, random_state=0, schema="nominal").fit_batches(
        [TINY, TINY]
    )
    assert [p.done for p in heard] == [1, 2] and heard[-1].note.endswith("passes")


@parametrize_with_checks([NonBEND(schema="nominal")])
def test_sklearn(estimator, check):
    check(estimator)


@pytest.mark.parametrize("n", [-1, 1.5, "3"])
def test_sample_of_no_number_of_rows(n):
    model = NonBEND(n_fits=1, random_state=0).fit([["a"], ["b"]])
    with pytest.raises(ValueError, match="expected n to be a whole number of rows, got"):
        model.sample(n)


def test_samples_have_the_shares_of_the_model():
    X = np.random.default_rng(0).choice(3, (300, 2), p=[0.6, 0.3, 0.1]).astype(str)
    model = NonBEND(n_fits=1, random_state=0).fit(X)
    drawn = model.sample(20_000, random_state=0)
    expected = model.reconstruct()
    found = np.histogram2d(drawn["x0"].astype(int), drawn["x1"].astype(int), (range(4),) * 2)[0]
    np.testing.assert_allclose(found / 20_000, expected, atol=0.015)


def test_too_many_values_are_refused_before_any_work():
    ids = {"id": [f"u{i}" for i in range(20_000)]}
    with pytest.raises(ValueError, match="column 'id' has 20000 values, and NonBEND"):
        NonBEND(schema="nominal").fit(ids)


def test_sweeps_of_the_burn_in_do_not_count():
    """When only the last sweep counts, the most frequent subspace is the last one."""
    X = make_coupled(80, 4, n_values=3, coupling=0.4, random_state=0).X

    def counted(**settings):
        engine = Gibbs(max_iter=10, truncation=8, **settings)
        return NonBEND(engine, n_fits=1, random_state=0).fit(X).fits_[0].counts

    last = counted(assignment="last")
    np.testing.assert_array_equal(counted(burn_in=0.9), last)
    everything = counted(burn_in=0.0)
    assert everything.shape != last.shape or (everything != last).any()


# -- cells that say nothing ----------------------------------------------------------------------

GAPPY = [["a", "x"], ["a", None], ["b", "x"], [None, "y"], ["b", "y"]]


def gappy_prior(alpha=1.0, alpha0=0.5):
    table = Table.of({"p": [r[0] for r in GAPPY], "q": [r[1] for r in GAPPY]})
    counts = Counts.of(table)
    found = [o + labels.index(None) for o, labels in zip(counts.offsets, counts.labels)]  # noqa: B905
    cells = np.array(
        [[o + labels.index(v) for o, labels, v in zip(counts.offsets, counts.labels, row)]  # noqa: B905
         for row in GAPPY], np.int32)  # fmt: skip
    return cells, Prior(alpha, alpha0, 5, counts.offsets, np.array(found))


def sequential_with_gaps(z, alpha, alpha0):
    """log P(X, z) by the chain rule, a gap summed out: it adds no factor and no count."""
    total = 0.0
    for i, row in enumerate(GAPPY):
        before = [GAPPY[m] for m in range(i) if z[m] == z[i]]
        total += np.log((len(before) or alpha) / (i + alpha))
        for j, value in enumerate(row):
            own = [other[j] for other in before if other[j] is not None]
            if value is not None:
                total += np.log((own.count(value) + alpha0) / (len(own) + 2 * alpha0))
    return total


def test_log_joint_leaves_gaps_out():
    cells, prior = gappy_prior(0.7, 0.4)
    counts_of = assigned_counts(cells, int(prior.offsets[-1]))
    for z in [(0, 0, 0, 0, 0), (0, 0, 1, 1, 1), (0, 1, 2, 3, 4), (0, 1, 0, 1, 2)]:
        expected = sequential_with_gaps(z, 0.7, 0.4)
        assert log_joint(*counts_of(z), prior) == pytest.approx(expected)
        sampler = Sampler(cells, prior, np.array(z))
        assert sampler.log_joint() == pytest.approx(expected)


@pytest.mark.parametrize("alpha0", [0.5, np.array([0.3, 0.8, 1.0, 2.0, 0.4, 1.0])])
def test_gibbs_draws_rows_with_gaps_from_the_conditional(alpha0):
    """One sweep of one row, against the ratios of log P(X, z) over its subspaces."""
    cells, prior = gappy_prior(1.3, alpha0)
    rng, seen = np.random.default_rng(0), np.zeros(4)
    start = np.array([0, 0, 1, 2, 1])
    sampler = Sampler(cells, prior, start)
    for _ in range(4000):
        sampler.assignment[:] = start
        sampler.n_slots = 3
        sampler._count(11)
        state = sampler.counts, sampler._logs, sampler.sizes
        values = sampler._kinds, sampler._log_of_count
        subspaces = sampler._log_of_size, sampler._log_rest, np.log(prior.alpha)
        draws = np.array([3]), rng.random(5)
        sweep(0, draws, sampler.cells, sampler.assignment, state, values, subspaces, 3)
        seen[sampler.assignment[3]] += 1
    counts_of = assigned_counts(cells, int(prior.offsets[-1]))
    joint = [log_joint(*counts_of((0, 0, 1, t, 1)), prior) for t in range(3)]
    share = np.exp(joint) / np.exp(joint).sum()
    np.testing.assert_allclose(seen[:3] / 4000, share, atol=4 * 0.5 / np.sqrt(4000))


def test_gaps_of_many_columns_are_counted_apart():
    """A subspace has at most as many gaps in a column as rows: logarithms are looked up by it."""
    cells = np.tile(np.array([[0, 3, 6], [1, 4, 7]], np.int32), (20, 1))
    cells[1:, 1:] = [5, 8]  # all but one row have two gaps
    prior = Prior(1.0, 0.5, 5, np.array([0, 3, 6, 9]), gaps=np.array([2, 5, 8]))
    sampler = Sampler(cells, prior, np.zeros(len(cells), int))
    for _ in range(3):
        assert sampler.counts.max() < sampler._log_of_count.shape[1]
        sampler.sweep(np.random.default_rng(0))


@pytest.mark.parametrize("start", ["random", "rows", "sweeps"])
def test_the_bound_never_falls_with_gaps(start):
    X, _ = planted(3, 120, n_columns=5, seed=2)
    X = X.astype(object)
    X[np.random.default_rng(0).random(X.shape) < 0.2] = None
    model = NonBEND(VI(start=start, missing="marginal"), n_fits=2, random_state=0).fit(X)
    for fit in model.fits_:
        assert (np.diff(fit.trace) > -1e-9 * np.abs(fit.trace[-1])).all()
    for theta, labels in zip(model.theta_, model.counts_.labels, strict=True):
        assert (theta[:, labels.index(None)] == 0).all()
        np.testing.assert_allclose(theta.sum(axis=1), 1)


@pytest.mark.parametrize("method", [VI, Gibbs])
def test_gaps_are_summed_out(method):
    X, z = planted(3, 400, n_columns=30, seed=1)
    X = X.astype(object)
    rng = np.random.default_rng(5)
    X[(rng.random(X.shape) < 0.5) & (z == 0)[:, None]] = None  # only one subspace has gaps
    model = NonBEND(
        method(missing="marginal", max_iter=40), n_fits=1, random_state=0, schema="nominal"
    ).fit(X)
    assert adjusted_rand_score(z, model.predict_subspace(X)) > 0.85
    names = model.counts_.names
    row, holed = dict(zip(names, X[400 - 1], strict=True)), dict.fromkeys(names)
    assert model.score_samples([holed])[0] == pytest.approx(0, abs=1e-9)  # nothing is said
    alone = holed | {names[0]: row[names[0]]}
    chance = model.weights_ @ model.theta_[0][:, model.counts_.labels[0].index(row[names[0]])]
    assert model.score_samples([alone])[0] == pytest.approx(np.log(chance))
    drawn = model.sample(50, random_state=0)
    assert all(value is not None for column in drawn.values() for value in column)


def test_a_gap_lies_at_the_mean_of_its_column():
    X = [["a", "x"], ["a", "x"], ["b", "y"], [None, "y"], ["b", "x"], ["a", "y"]]
    model = NonBEND(VI(missing="marginal"), n_fits=1, random_state=0).fit(X)
    rows = model.transform([[v, "x"] for v in ("a", "b", None)])
    np.testing.assert_allclose(rows[2], 3 / 5 * rows[0] + 2 / 5 * rows[1], atol=1e-12)


@pytest.mark.parametrize("method", [VI, Gibbs])
def test_without_gaps_nothing_changes_and_empty_columns_say_nothing(method):
    X, _ = planted(2, 60, seed=4)
    plain = NonBEND(method(max_iter=20), n_fits=1, random_state=0, schema="nominal").fit(X)
    same = NonBEND(
        method(max_iter=20, missing="marginal"), n_fits=1, random_state=0, schema="nominal"
    ).fit(X)
    np.testing.assert_array_equal(plain.transform(X), same.transform(X))
    empty = np.hstack([X.astype(object), np.full((60, 1), None)])
    schema = {f"x{i}": "nominal" for i in range(11)}
    model = NonBEND(method(max_iter=20, missing="marginal"), n_fits=1, random_state=0,
                    schema=schema).fit(empty)  # fmt: skip
    np.testing.assert_allclose(model.trace_[-1], plain.trace_[-1])


def test_fits_of_batches_that_failed_are_not_those_of_other_rows(monkeypatch):
    model = NonBEND(n_fits=1, random_state=0, schema="nominal")

    def too_large(*_):
        raise ValueError("too large")

    with monkeypatch.context() as patched:
        patched.setattr("tabweave.embed.nonbend.check_table_size", too_large)
        with pytest.raises(ValueError, match="too large"):
            model.fit_batches([TINY, TINY])
    rows = {"a": ["x", "y"] * 20, "b": ["u", "v"] * 20, "c": ["p"] * 40}
    fresh = NonBEND(n_fits=1, random_state=0, schema="nominal").fit(rows)
    np.testing.assert_array_equal(model.fit(rows).transform(rows), fresh.transform(rows))
