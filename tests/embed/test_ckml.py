"""cKML against its published definition, its erratum, and what clipping gives."""

import math

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from tabweave import Counts, Table, papers
from tabweave.counts.couplings import context, symmetric_uncertainty
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


def published_alpha(rows):
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


def published_beta(rows, alpha):
    n, size = len(rows), range(len(rows[0]))

    def differ(items):
        return 1 - sum(items.count(v) / n * (items.count(v) - 1) / (n - 1) for v in set(items))

    p_ia = np.array([differ([r[l] for r in rows]) for l in size])
    p_ie = np.array(
        [sum(alpha[l, m] * differ([(r[l], r[m]) for r in rows]) for m in size) for l in size]
    )
    beta = np.maximum(p_ia / p_ia.sum(), p_ie / p_ie.sum())
    return beta / beta.sum()


def published_kernels(rows, alpha, l, v, w):
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
def test_equals_the_published_definition(seed):
    rows = random_rows(seed)
    model = papers.CKML().fit(columns(rows))
    alpha = published_alpha(rows)
    beta = published_beta(rows, alpha)
    assert alpha.any(axis=1).all()
    assert np.allclose(model.alpha_, alpha) and np.allclose(model.beta_, beta)
    squares = {variant: published_squares(model.counts_, variant) for variant in VARIANTS}
    for l, labels in enumerate(model.counts_.labels):
        for i, v in enumerate(labels):
            for j, w in enumerate(labels):
                intra, inter = published_kernels(rows, alpha, l, v, w)
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

    d = papers.CKML("inter").fit(ERRATUM).value_distances("x")
    assert d.loc["v", "u"] > d.loc["v", "w"] + d.loc["w", "u"] + 0.01
    model = CKML("inter").fit(ERRATUM)
    clipped = model.value_distances("x")
    assert model.psd_clip_[0] > 0.001
    assert clipped.loc["v", "u"] <= clipped.loc["v", "w"] + clipped.loc["w", "u"]


def test_how_often_the_published_kernel_is_indefinite():
    found = [CKML("inter").fit(random_rows(s, n=50, n_values=6)).psd_clip_.max() for s in range(40)]
    assert sum(r > 1e-9 for r in found) > 20


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("seed", range(8))
def test_clipped_it_is_a_metric_of_values_and_rows(variant, seed):
    rows = random_rows(seed, n=50, n_values=6)
    model = CKML(variant).fit(columns(rows))
    tables = [np.array(model.value_distances(name)) for name in model.counts_.names]
    for d, labels in zip(tables, model.counts_.labels, strict=True):
        if None in labels:  # two missing cells are apart, one and itself are not
            d[labels.index(None), labels.index(None)] = 0
    for d in [*tables, model.pairwise_distances(columns(rows))]:
        assert np.allclose(d, d.T, rtol=0, atol=1e-12) and (d.diagonal() == 0).all()
        assert (d[:, None] <= d[:, :, None] + d[None] + 1e-9).all()


def test_the_clip_is_the_lowest_eigenvalue_of_the_centred_gram():
    rows = random_rows(0, n=50, n_values=6)
    model = CKML("inter").fit(columns(rows))
    for square, clip in zip(model.squares_, model.psd_clip_, strict=True):
        size = len(square) - 1
        centring = np.eye(size) - 1 / size
        lowest = np.linalg.eigvalsh(centring @ (-square[:-1, :-1] / 2) @ centring)[0]
        assert clip == pytest.approx(max(0, -lowest), abs=1e-12)


# -- the estimator ------------------------------------------------------------------------------


def test_vectors_kernels_distances_and_shares_agree():
    rows = columns([row for row in random_rows(3) if None not in row])
    model = CKML().fit(columns(random_rows(3)))
    x = model.transform(rows)
    d = model.pairwise_distances(rows)
    assert np.allclose(d, np.linalg.norm(x[:, None] - x, axis=2))
    assert np.allclose(model.pairwise_kernel(rows), x @ x.T)
    first, second = ([c[i] for c in rows.values()] for i in (0, 1))
    assert sum(model.explain(first, second).values()) == pytest.approx(d[0, 1] ** 2)


# -- contract -----------------------------------------------------------------------------------


@parametrize_with_checks([CKML()])
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
@pytest.mark.parametrize("cls", [CKML, papers.CKML])
@pytest.mark.parametrize(
    "rows", [{"x": ["a"]}, {"x": list("ab")}, {"x": list("aa"), "y": list("pq")}, {"x": list("aa")}]
)
def test_degenerate_tables(rows, variant, cls):
    model = cls(variant).fit(rows)
    assert np.isfinite(model.pairwise_distances(rows)).all()
    assert model.beta_.sum() == pytest.approx(1)


def test_values_stay_apart_where_columns_do_not_depend():
    rows = {"x": list("aabb"), "y": list("pqpq")}
    model = CKML().fit(rows)
    assert not model.alpha_.any() and np.allclose(model.beta_, 0.5)
    expected = math.sqrt(2 * 0.5 * (1 - math.exp(-1)))
    assert model.value_distances("x").loc["a", "b"] == pytest.approx(expected)


def test_sets_are_means():
    rows = {"tags": [{"a", "b"}, {"a"}, {"c"}], "x": ["u", "u", "w"]}
    model = CKML(schema={"tags": "set"}).fit(rows)
    x = model.transform(rows)
    assert np.isfinite(x).all() and (model.pairwise_distances(rows) >= 0).all()


def test_bad_variant_is_named():
    with pytest.raises(ValueError, match=r"'variant' parameter of CKML .* Got 'intre'"):
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


@pytest.mark.parametrize(
    ("kernel", "of"), [("laplacian", lambda z: math.exp(-z)), ("cauchy", lambda z: 1 / (1 + z * z))]
)
def test_other_kernels_of_the_same_differences(kernel, of):
    """The watermelons of 4.2.3 once more: v and w of five rows, z = ½ and a frequency apart."""
    rows = {"x": list("vvww"), "y": list("aaba")}
    model = CKML(kernel=kernel).fit(rows)
    square = model.value_distances("x").loc["v", "w"] ** 2
    assert square == pytest.approx(2 * model.beta_[0] * (of(0) - of(0) * of(0.5)))


def test_columns_leave_the_context_in_the_order_asked_for():
    rows = random_rows(4, n=60, n_columns=8)
    met = []
    for order in ("relevance", "column"):
        model = CKML(context=order).fit(rows)
        chosen = context(symmetric_uncertainty(model.counts_), order)
        np.testing.assert_array_equal(model.alpha_ > 0, chosen)
        met.append(chosen)
    assert not np.array_equal(*met)
