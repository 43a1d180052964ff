"""cKML against its printed definition, its erratum, and the repair."""

import math

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from tabweave import Counts, Table
from tabweave.embed.ckml import CKML
from tabweave.measures.coupled import inter_kernel, published_roots, published_squares

VARIANTS = ("object", "intra", "inter")
# v and w meet the same value only, so z(v, w) = 0; but z(v, u) = 3/4 and z(w, u) = 2/3.
ERRATUM = {"x": list("vvwuu"), "y": list("aaabc")}


def random_rows(seed, n=25, n_columns=4, n_values=4):
    rng = np.random.default_rng(seed)
    hidden = rng.integers(0, n_values, n)
    rows = [
        [f"v{h if rng.random() < 0.4 else rng.integers(n_values)}" for _ in range(n_columns)]
        for h in hidden
    ]
    rows[0][1] = rows[3][1] = rows[4][0] = None
    return rows


def columns(rows):
    return {f"c{a}": list(col) for a, col in enumerate(zip(*rows, strict=True))}


# -- the thesis, with loops over rows -----------------------------------------------------------


def entropy(items):
    shares = [items.count(v) / len(items) for v in set(items)]
    return -sum(p * math.log(p) for p in shares)


def printed_alpha(rows):
    cells = [list(c) for c in zip(*rows, strict=True)]
    size = range(len(cells))

    def su(l, m):
        x, y = cells[l], cells[m]
        both = entropy(list(zip(x, y, strict=True)))
        total = entropy(x) + entropy(y)
        return round(2 * (total - both) / total, 12) if total else 0

    alpha = np.zeros((len(cells), len(cells)))
    for l in size:
        kept = []
        for m in sorted((m for m in size if m != l and su(l, m) > 0), key=lambda m: -su(l, m)):
            if not any(su(q, m) >= su(l, m) for q in kept):
                kept.append(m)
        for m in kept:
            alpha[l, m] = su(l, m) / sum(su(l, q) for q in kept)
    return alpha


def printed_beta(rows, alpha):
    n, size = len(rows), range(len(rows[0]))

    def differ(items):
        return 1 - sum(items.count(v) / n * (items.count(v) - 1) / (n - 1) for v in set(items))

    p_ia = np.array([differ([r[l] for r in rows]) for l in size])
    p_ie = np.array(
        [sum(alpha[l, m] * differ([(r[l], r[m]) for r in rows]) for m in size) for l in size]
    )
    beta = np.maximum(p_ia / p_ia.sum(), p_ie / p_ie.sum())
    return beta / beta.sum()


def printed_kernels(rows, alpha, l, v, w):
    """k_Ia and k_Ie of column l, Eqs. (4.1), (4.2)."""
    f = [sum(r[l] == u for r in rows) / len(rows) for u in (v, w)]
    having_v, having_w = ([r for r in rows if r[l] == u] for u in (v, w))
    either = [r for r in rows if r[l] in (v, w)]
    inter = 0
    for m in range(len(rows[0])):
        z = 0
        for q in {r[m] for r in either}:
            x, y = (sum(r[m] == q for r in part) / len(part) for part in (having_v, having_w))
            z += sum(r[m] == q for r in either) / len(either) * abs(x - y)
        inter += alpha[l, m] * math.exp(-(z**2))
    return math.exp(-((f[0] - f[1]) ** 2)), inter


@pytest.mark.parametrize("seed", range(4))
def test_equals_the_printed_definition(seed):
    rows = random_rows(seed)
    model = CKML(repair=False).fit(columns(rows))
    alpha = printed_alpha(rows)
    beta = printed_beta(rows, alpha)
    assert alpha.any(axis=1).all()
    assert np.allclose(model.alpha_, alpha) and np.allclose(model.beta_, beta)
    squares = {variant: published_squares(model.counts_, variant) for variant in VARIANTS}
    for l, labels in enumerate(model.counts_.labels):
        for i, v in enumerate(labels):
            for j, w in enumerate(labels):
                intra, inter = printed_kernels(rows, alpha, l, v, w)
                kernels = {"object": intra * inter, "intra": intra, "inter": inter}
                for variant, k in kernels.items():
                    expected = 2 * beta[l] * (1 - k)
                    assert squares[variant][l][i, j] == pytest.approx(expected, abs=1e-12)
    roots = published_roots(model.counts_)
    assert all(np.allclose(r**2, s) for r, s in zip(roots, squares["object"], strict=True))


# -- the erratum --------------------------------------------------------------------------------


def test_the_printed_kernel_is_no_kernel_and_its_distance_no_metric():
    """Theorem 4.2 and Proposition 4.2 fail on five rows."""
    block = Counts.of(Table.of(ERRATUM)).block("x", "y")[[1, 2, 0]]  # v, w, u
    k = inter_kernel(block)
    assert k[0, 1] == 1 and k[0, 2] == math.exp(-9 / 16)
    assert k[1, 2] == pytest.approx(math.exp(-4 / 9))
    assert np.linalg.eigvalsh(k)[0] < -0.001
    d = np.sqrt(2 - 2 * k)
    assert d[0, 2] > d[0, 1] + d[1, 2] + 0.05

    printed = CKML("inter", repair=False).fit(ERRATUM).value_distances("x")
    assert printed.loc["v", "u"] > printed.loc["v", "w"] + printed.loc["w", "u"] + 0.01
    model = CKML("inter").fit(ERRATUM)
    repaired = model.value_distances("x")
    assert model.repair_[0] > 0.001
    assert repaired.loc["v", "u"] <= repaired.loc["v", "w"] + repaired.loc["w", "u"]


def test_how_often_the_printed_kernel_is_indefinite():
    found = [CKML("inter").fit(random_rows(s, n=50, n_values=6)).repair_.max() for s in range(40)]
    assert sum(r > 1e-9 for r in found) > 20


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("seed", range(8))
def test_after_repair_it_is_a_metric_of_values_and_rows(variant, seed):
    rows = random_rows(seed, n=50, n_values=6)
    model = CKML(variant).fit(columns(rows))
    tables = [model.value_distances(name).to_numpy() for name in model.counts_.names]
    for d in [*tables, model.pairwise_distances(columns(rows))]:
        assert np.allclose(d, d.T, rtol=0, atol=1e-12) and (d.diagonal() == 0).all()
        assert (d[:, None] <= d[:, :, None] + d[None] + 1e-9).all()


def test_repair_is_the_lowest_eigenvalue_of_the_centred_gram():
    rows = random_rows(0, n=50, n_values=6)
    model = CKML("inter").fit(columns(rows))
    for square, repair in zip(model.squares_, model.repair_, strict=True):
        size = len(square) - 1
        centring = np.eye(size) - 1 / size
        lowest = np.linalg.eigvalsh(centring @ (-square[:-1, :-1] / 2) @ centring)[0]
        assert repair == pytest.approx(max(0, -lowest), abs=1e-12)


# -- the two modes ------------------------------------------------------------------------------


def test_vectors_kernels_distances_and_shares_agree():
    rows = columns(random_rows(3))
    model = CKML().fit(rows)
    x = model.transform(rows)
    d = model.pairwise_distances(rows)
    assert np.allclose(d, np.linalg.norm(x[:, None] - x, axis=2))
    assert np.allclose(model.pairwise_kernel(rows), x @ x.T)
    first, second = ([c[i] for c in rows.values()] for i in (0, 1))
    assert sum(model.explain(first, second).values()) == pytest.approx(d[0, 1] ** 2)


def test_printed_numbers_everywhere_without_repair():
    rows = columns(random_rows(0, n=50, n_values=6))
    model = CKML("inter", repair=False).fit(rows)
    d = model.pairwise_distances(rows)
    codes = model.tables_.codes(Table.of(rows))
    square = sum(s[np.ix_(c, c)] for s, c in zip(model.squares_, codes, strict=True))
    assert np.allclose(d, np.sqrt(square)) and (d.diagonal() == 0).all()
    first, second = ([c[i] for c in rows.values()] for i in (2, 9))
    shares = model.explain(first, second)
    assert list(shares) == list(rows) and sum(shares.values()) == pytest.approx(d[2, 9] ** 2)
    tables, root = model.lookups()
    assert root and np.array_equal(tables[1], model.squares_[1])
    assert np.allclose(model.value_distances("c1").to_numpy() ** 2, tables[1][:-1, :-1])
    x = model.transform(rows)
    gap = np.abs(((x[:, None] - x) ** 2).sum(axis=2) - d**2).max()
    assert 0 < gap <= model.distortion_.sum() + 1e-12
    half = {name: column[:20] for name, column in rows.items()}
    assert np.allclose(model.pairwise_distances(rows, half), d[:, :20])


def test_without_anything_to_repair_both_modes_agree():
    rows = {"x": list("aabbcc"), "y": list("ppqqpq")}
    plain, printed = CKML("intra").fit(rows), CKML("intra", repair=False).fit(rows)
    assert np.allclose(plain.pairwise_distances(rows), printed.pairwise_distances(rows))
    assert np.allclose(plain.distortion_, 0) and not plain.repair_.any()
    for (a, _), (b, _) in zip([plain.lookups()], [printed.lookups()], strict=True):
        assert all(np.allclose(x, y) for x, y in zip(a, b, strict=True))  # unknown row too


def test_unknown_values_are_the_frequency_weighted_mean():
    rows = columns(random_rows(1))
    new = {name: ["never"] for name in rows}
    model = CKML(repair=False).fit(rows)
    f = [model.counts_.value_counts[model.counts_.span(a)] / 25 for a in range(4)]
    expected = 0
    for square, share in zip(model.squares_, f, strict=True):
        s = square[:-1, :-1]
        expected += share @ s @ share / 2
    d = model.pairwise_distances(rows, new)[:, 0] ** 2
    assert d.mean() == pytest.approx(expected)
    with pytest.raises(ValueError, match="'never' was not seen in fit"):
        CKML(repair=False, unknown="error").fit(rows).pairwise_distances(new)


# -- contract -----------------------------------------------------------------------------------


@parametrize_with_checks([CKML(), CKML("inter", repair=False)])
def test_sklearn(estimator, check):
    check(estimator)


def test_partial_fit_equals_fit():
    rows = random_rows(5, n=40)
    whole = CKML().fit(columns(rows))
    parts = CKML().partial_fit(columns(rows[:13])).partial_fit(columns(rows[13:]))
    assert np.array_equal(parts.learn().beta_, whole.beta_)
    assert np.array_equal(parts.transform(columns(rows)), whole.transform(columns(rows)))
    assert np.array_equal(parts.squares_[0], whole.squares_[0])


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("repair", [True, False])
@pytest.mark.parametrize(
    "rows", [{"x": ["a"]}, {"x": list("ab")}, {"x": list("aa"), "y": list("pq")}, {"x": list("aa")}]
)
def test_degenerate_tables(rows, variant, repair):
    model = CKML(variant, repair).fit(rows)
    assert np.isfinite(model.pairwise_distances(rows)).all()
    assert model.beta_.sum() == pytest.approx(1)


def test_values_stay_apart_where_columns_do_not_depend():
    rows = {"x": list("aabb"), "y": list("pqpq")}
    model = CKML().fit(rows)
    assert not model.alpha_.any() and np.allclose(model.beta_, 0.5)
    expected = math.sqrt(2 * 0.5 * (1 - math.exp(-1)))
    assert model.value_distances("x").loc["a", "b"] == pytest.approx(expected)


def test_sets_are_means_and_need_repair():
    rows = {"tags": [{"a", "b"}, {"a"}, {"c"}], "x": ["u", "u", "w"]}
    model = CKML(schema={"tags": "set"}).fit(rows)
    x = model.transform(rows)
    assert np.isfinite(x).all() and (model.pairwise_distances(rows) >= 0).all()
    with pytest.raises(ValueError, match="'tags' is set-valued"):
        CKML(repair=False, schema={"tags": "set"}).fit(rows)


def test_bad_variant_is_named():
    with pytest.raises(
        ValueError, match="expected variant 'object', 'intra' or 'inter', got 'intre'"
    ):
        CKML("intre").fit([["a", "b"]])


def test_work_grows_as_the_pairs_of_columns_that_are_coupled(calls):
    rng = np.random.default_rng(0)
    total = []
    for m in (20, 40):
        hidden = rng.integers(0, 10, (500, 1))
        x = np.where(rng.random((500, m)) < 0.5, hidden, rng.integers(0, 10, (500, m)))
        counts = Counts.of(Table.of(x.astype(str)))
        with calls() as work:
            model = CKML().fit_counts(counts)
        assert work.of("inter_kernel") == np.count_nonzero(model.alpha_)
        total.append(sum(work.values()))
    assert total[1] <= 4 * total[0]
