"""Every erratum of docs/errata.md, shown by numbers: what is printed fails, what we use holds.

Where it matters the printed formula is written out here once more, in plain NumPy.
"""

import math
import re
from pathlib import Path

import numpy as np
import pytest
from scipy.special import digamma

from tabweave import CKML, Counts, OneHot, Table, ValueMetric, WeightedKNN, papers
from tabweave.counts import couplings
from tabweave.datasets import led24, three_of_9
from tabweave.evaluate import macro_f
from tabweave.papers import intra_coupling_heterogeneity, monte_carlo_splits

RNG = np.random.default_rng(0)


# -- cKML, chapter 4 ----------------------------------------------------------------------------


def published_inter_kernel(v, w):
    """exp(−z²) of two rows of counts over the values of another column."""
    both = v + w
    z = (both / both.sum() * abs(v / v.sum() - w / w.sum())).sum()
    return math.exp(-(z**2))


def test_theorem_4_2_the_inter_coupling_kernel_is_indefinite():
    counts = np.array([[2, 0, 0], [1, 0, 0], [0, 1, 1]], float)  # v, w, u over a, b, c
    K = np.array([[published_inter_kernel(v, w) for w in counts] for v in counts])
    centred = (np.eye(3) - 1 / 3) @ K @ (np.eye(3) - 1 / 3)
    assert np.linalg.eigvalsh(centred)[0] < -0.001
    rows = {"x": list("vvwuu"), "y": list("aaabc")}
    clipped = CKML("inter").fit(rows)
    assert np.linalg.eigvalsh(clipped.pairwise_kernel(rows))[0] > -1e-12
    assert clipped.psd_clip_[0] > 0.001


def test_proposition_4_2_the_triangle_inequality_fails():
    rows = {"x": list("vvwuu"), "y": list("aaabc")}
    printed = papers.CKML("inter").fit(rows).value_distances("x")
    assert printed.loc["v", "u"] > printed.loc["v", "w"] + printed.loc["w", "u"]
    ours = CKML("inter").fit(rows).value_distances("x")
    assert ours.loc["v", "u"] <= ours.loc["v", "w"] + ours.loc["w", "u"] + 1e-12


def test_after_4_5_the_distance_leaves_its_range():
    rare = {"x": ["a"] * 99 + ["b"], "y": ["p"] * 99 + ["q"]}
    d = papers.CKML().fit(rare).pairwise_distances(rare)[0, -1]
    assert math.sqrt(2 - 2 / math.e) < d < math.sqrt(2 - 2 / math.e**2)


def test_theorem_4_1_is_proved_of_another_kernel():
    """exp(-(f - g)²) is exp(-f²) exp(-g²) exp(2fg), not exp(-f) exp(-g) exp(2fg)."""
    f, g = RNG.random(5), RNG.random(5)
    kernel = np.exp(-((f - g) ** 2))
    np.testing.assert_allclose(np.exp(-(f**2) - g**2 + 2 * f * g), kernel)
    assert abs(np.exp(-f - g + 2 * f * g) - kernel).max() > 0.1


# -- baselines, chapter 2 -----------------------------------------------------------------------


def test_2_22_conditions_on_the_context_value():
    """A context value that is split in two at random says nothing new; in print, it does."""

    def printed(block):  # (2.22) with P(q|v): rows are the values compared
        p = block / block.sum(axis=1, keepdims=True)
        return math.sqrt(((p[0] - p[1]) ** 2).sum() / block.shape[1])

    def ours(block):
        cells = [(v, q) for v, row in enumerate(block) for q, c in enumerate(row) for _ in range(c)]
        rows = {"x": [f"v{v}" for v, _ in cells], "context": [f"q{q}" for _, q in cells]}
        return ValueMetric("dilca").fit(rows).value_distances("x").loc["v0", "v1"]

    whole = np.array([[6, 2, 4], [2, 10, 8]])
    halves = np.repeat(whole // 2, 2, axis=1)
    assert ours(halves) == pytest.approx(ours(whole))
    assert printed(halves) == pytest.approx(printed(whole) / 2)
    apart = np.array([[3, 3, 0, 0], [0, 0, 3, 3]])  # no company in common: as far as it goes
    assert ours(apart) == pytest.approx(1)
    assert printed(apart) == pytest.approx(1 / 2)


@pytest.mark.parametrize("measure", ["rough", "cos_intra"])
def test_2_5_and_2_7_leave_a_row_at_a_distance_from_itself(measure):
    rows = {"x": list("aaab")}
    printed = papers.ValueMetric(measure).fit(rows).pairwise_distances(rows)
    count = np.array([3, 3, 3, 1])
    same = np.equal.outer(list("aaab"), list("aaab"))
    if measure == "rough":
        s = same / count
    else:
        s = np.outer(count, count) / (count[:, None] + count + np.outer(count, count))
    np.testing.assert_allclose(printed, 1 - s)
    assert printed[0, 0] > 0
    assert ValueMetric(measure).fit(rows).pairwise_distances(rows)[0, 0] == 0


def test_2_10_the_maximum_over_subsets_is_half_the_l1_distance():
    for _ in range(20):
        p, q = RNG.dirichlet(np.ones(6), 2)
        subsets = (np.array([s >> i & 1 for i in range(6)], bool) for s in range(64))
        most = max(p[s].sum() + q[~s].sum() - 1 for s in subsets)
        assert most == pytest.approx(abs(p - q).sum() / 2)


# -- Non-BEND, chapter 5 ------------------------------------------------------------------------


def test_5_22_the_sum_over_sticks_stops_before_t():
    sticks = np.append(RNG.beta(1, 2, 9), 1.0)
    before = np.concatenate([[1.0], np.cumprod(1 - sticks)[:-1]])
    assert (sticks * before).sum() == pytest.approx(1)  # shares of the subspaces
    printed = sticks * np.cumprod(1 - sticks)  # l runs to t
    assert printed.sum() < 0.9


def test_5_25_the_digamma_runs_over_the_values_of_a_column():
    tau = [np.array([3.0, 1.0, 0.5]), np.array([2.0, 6.0])]  # two columns of one subspace
    drawn = np.log(RNG.dirichlet(tau[0], 200_000)).mean(axis=0)  # E[log θ] by its definition
    ours = digamma(tau[0]) - digamma(tau[0].sum())
    printed = digamma(tau[0]) - digamma([tau[0][0] + tau[1][0], tau[0][1] + tau[1][1], 0.5])
    assert np.allclose(drawn, ours, atol=0.02)
    assert abs(drawn - printed).max() > 0.3


def test_5_31_the_spread_is_over_all_subspaces_with_k_minus_1():
    from tabweave.papers.categories import column_weight

    theta = RNG.dirichlet(np.ones(4), 5).T  # values × subspaces
    assert column_weight(theta) == pytest.approx(theta.std(axis=1, ddof=1).mean())


def embedded(theta, shares):
    """(5.28) to (5.32) of one column: values × (subspaces · values), θ as values × subspaces."""
    n_values, k = theta.shape
    one_zero = 1 - np.eye(n_values)
    blocks = [shares[h] * np.exp(-theta[:, h])[:, None] * one_zero for h in range(k)]
    weight = theta.std(axis=1, ddof=1).mean()  # (5.31), its erratum corrected
    return weight * np.hstack(blocks)


def test_theorem_5_2_the_product_of_coordinates_is_no_distribution():
    """The proof has x* = πΘ; (5.28) has exp(-θ), once for every column, and zeros."""
    shares = np.array([0.3, 0.7])
    columns = [RNG.dirichlet(np.ones(n), 2).T for n in (2, 3)]  # values × subspaces
    whole = np.einsum("h,ah,bh->ab", shares, *columns)
    products = np.zeros_like(whole)
    for a, b in np.ndindex(*whole.shape):  # the largest coordinate of a value: its zero left out
        x = [embedded(t, shares).reshape(len(t), 2, -1)[v].max(axis=1)
             for t, v in zip(columns, (a, b), strict=True)]  # fmt: skip
        products[a, b] = (x[0] * x[1]).sum()
    assert whole.sum() == pytest.approx(1) and abs(products.sum() - 1) > 0.1
    assert abs(products / products.sum() - whole).max() > 0.02


def test_theorem_5_2_two_distributions_share_their_coordinates():
    """(5.31) is 0 where subspaces agree on a column: nothing of its distribution is left."""
    shares = np.array([0.5, 0.5])
    even, uneven = (np.tile(p, (2, 1)).T for p in ([0.5, 0.5], [0.9, 0.1]))
    assert (embedded(even, shares) == embedded(uneven, shares)).all()
    assert (even != uneven).all()


# -- HELIC, chapter 6 ---------------------------------------------------------------------------


def test_6_19_raw_kernels_are_not_comparable():
    """One λ for all weights: on led24 a cubic kernel outweighs a Gaussian a million times."""
    counts = Counts.of(Table.of(led24(500, random_state=0).X))
    M = couplings.inter(counts, 0).matrix
    cubic = (M @ M.T) ** 3
    gaussian = np.exp(-((M[:, None] - M) ** 2).sum(axis=2) / 2)
    apart = [((K[0] - K[1]) ** 2).sum() for K in (cubic, gaussian)]
    assert apart[0] > 1e6 * apart[1] > 0


# -- UNTIE, chapter 7 ---------------------------------------------------------------------------


def test_7_22_the_printed_minimum_is_no_weight_at_all():
    X = RNG.normal(size=(30, 12))

    def objective(omega):
        S = (X * omega) @ X.T
        values = np.linalg.eigvalsh(S)
        return values[:-3].sum()  # tr(S(I − HHᵀ)) with the best H of 3 columns

    for _ in range(20):
        omega = RNG.exponential(size=12)
        assert objective(omega) > objective(omega / 2) > objective(np.zeros(12)) - 1e-9
        up = omega + RNG.exponential(size=12)
        assert objective(up) >= objective(omega) - 1e-9  # it never pays to weigh more


def test_7_22_weights_on_one_simplex_keep_one_column():
    """With Σω = 1 over everything, the linear objective is smallest at a single feature."""
    X = RNG.normal(size=(30, 12))
    H = np.linalg.svd(X)[0][:, :3]
    left = (X**2).sum(axis=0) - ((H.T @ X) ** 2).sum(axis=0)  # the objective is ω·left
    best = np.eye(12)[left.argmin()]
    assert all(best @ left <= w @ left + 1e-12 for w in RNG.dirichlet(np.ones(12), 200))


def test_7_13_is_another_similarity_than_7_12():
    """By (7.10) the weights multiply rows of K, in (7.13) the entries of a row."""
    K = RNG.random((4, 4))
    T = np.diag(RNG.random(4))
    own = T @ K  # (7.10), so that (7.12) is own_i · own_j, j for the second i in print
    rows, entries = own @ own.T, K @ T.T @ T @ K.T
    weights = np.diag(T)
    np.testing.assert_allclose(rows, np.outer(weights, weights) * (K @ K.T))
    assert abs(rows - entries).max() > 0.1
    np.testing.assert_allclose((K @ T) @ (K @ T).T, entries)  # what (7.10) has to be


def test_theorem_7_4_relaxed_indicators_are_not_finite_in_number():
    """Three rows have three partitions in two clusters; each ω has an H of its own."""
    X = RNG.normal(size=(3, 5))
    projectors = []
    for _ in range(50):
        omega = RNG.exponential(size=5)
        H = np.linalg.eigh((X * omega) @ X.T)[1][:, -2:]
        projectors.append(H @ H.T)
    apart = [abs(a - b).max() for i, a in enumerate(projectors) for b in projectors[:i]]
    assert min(apart) > 1e-6


def test_7_25_the_indicator_needs_a_mean_over_values():
    """Values that each fill one cluster are as heterogeneous as can be: 1, not their number."""
    pure = 5 * np.eye(4)  # values × clusters
    own = [intra_coupling_heterogeneity([np.vstack([row, row])]) for row in pure]
    assert intra_coupling_heterogeneity([pure]) == pytest.approx(1)
    assert sum(own) == pytest.approx(4)  # as printed


# -- UNICORN, chapter 8 -------------------------------------------------------------------------


def test_8_18_centring_needs_one_over_n():
    n = 7
    H, printed = np.eye(n) - 1 / n, np.eye(n) - 1
    assert np.allclose(H @ H, H) and np.allclose(H @ np.ones(n), 0)
    assert not np.allclose(printed @ printed, printed)
    assert not np.allclose(printed @ np.ones(n), 0)


def test_8_18_the_printed_first_term_needs_a_unit_diagonal():
    n = 9
    H = np.eye(n) - 1 / n
    unit = RNG.normal(size=(n, 4))
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    for vectors, equal in ((unit, True), (unit * RNG.uniform(1, 3, (n, 1)), False)):
        S = vectors @ vectors.T
        exact, printed = np.trace(H @ S @ H), n * (1 - S.mean())
        assert np.isclose(exact, printed) == equal


def test_8_18_the_best_weights_are_a_single_feature():
    """The corrected first term over centred features of unit trace: vertices win."""
    X = RNG.normal(size=(40, 6))
    X -= X.mean(axis=0)
    X /= np.linalg.norm(X, axis=0)

    def first_term(omega):
        S = (X * omega) @ X.T
        return np.trace(S) / np.linalg.norm(S) / math.sqrt(len(X) - 1)

    corners = min(first_term(corner) for corner in np.eye(6))
    assert all(first_term(w) >= corners - 1e-12 for w in RNG.dirichlet(np.ones(6), 300))


def test_8_5_missing_in_print_is_the_merged_conditional():
    now, then = ({"a": RNG.choice(list("xy"), 40), "b": RNG.choice(list("pqr"), 40)} for _ in "12")
    both = {c: np.concatenate([now[c], then[c]]) for c in now}
    merged = Counts.of(Table.of(now)) + Counts.of(Table.of(then))
    joint = np.array([[((both["a"] == v) & (both["b"] == w)).mean() for w in "pqr"] for v in "xy"])
    share = joint / joint.sum(axis=0)
    found = merged.block("a", "b") / merged.block("a", "b").sum(axis=0)
    assert np.allclose(found, share)


# -- protocol, chapter 3 ------------------------------------------------------------------------


def test_3_ties_decide_nearest_neighbours_on_categories():
    data = three_of_9()
    scores = {"all": [], "first": []}
    for train, test in monte_carlo_splits(data.y, 5, 0.1, random_state=0):
        metric = OneHot().fit(data.X[train])
        for ties, found in scores.items():
            model = WeightedKNN(1, metric=metric, ties=ties).fit(data.X[train], data.y[train])
            found.append(macro_f(data.y[test], model.predict(data.X[test])))
    assert np.mean(scores["all"]) > np.mean(scores["first"]) + 0.1


# -- distance hierarchies and t-SNE, Hsu and others ---------------------------------------------


def test_drdh_10_the_gradient_has_p_minus_q():
    P = RNG.random((6, 6))
    P = P + P.T
    np.fill_diagonal(P, 0)
    P /= P.sum()
    Y = RNG.normal(size=(6, 2))

    def parts(Y):
        near = 1 / (1 + ((Y[:, None] - Y) ** 2).sum(-1))
        np.fill_diagonal(near, 0)
        return near, near / near.sum()

    def divergence(Y):
        Q = parts(Y)[1]
        off = ~np.eye(6, dtype=bool)
        return (P[off] * np.log(P[off] / Q[off])).sum()

    near, Q = parts(Y)
    forms = {
        sign: 4 * np.einsum("ij,ijd->id", (P + sign * Q) * near, Y[:, None] - Y) for sign in (-1, 1)
    }
    slope = np.zeros_like(Y)
    for i in np.ndindex(*Y.shape):
        step = np.zeros_like(Y)
        step[i] = 1e-6
        slope[i] = (divergence(Y + step) - divergence(Y - step)) / 2e-6
    assert np.allclose(forms[-1], slope, atol=1e-6)
    assert not np.allclose(forms[1], slope, atol=1e-2)


def test_drdh_12_and_13_vote_for_the_label_that_is_asked_for():
    """I(v = y of the test row): whoever the neighbours are, the right label wins."""
    weights = RNG.random((30, 5))
    neighbors, wanted = RNG.integers(3, size=(30, 5)), RNG.integers(3, size=30)
    printed = [[w.sum() * (v == y) for v in range(3)] for w, y in zip(weights, wanted, strict=True)]
    assert (np.argmax(printed, axis=1) == wanted).all()
    votes = [[w[n == v].sum() for v in range(3)] for w, n in zip(weights, neighbors, strict=True)]
    assert (np.argmax(votes, axis=1) == wanted).mean() < 0.6


# -- sparse categories --------------------------------------------------------------------------


def test_algorithm_2_least_squares_needs_the_transpose():
    D, y = RNG.normal(size=(8, 3)), RNG.normal(size=8)
    exact = np.linalg.lstsq(D, y, rcond=None)[0]
    assert np.allclose(np.linalg.inv(D.T @ D) @ D.T @ y, exact)
    with pytest.raises(ValueError):
        np.linalg.inv(D.T @ D) @ D @ y  # shapes do not even fit, as printed


def test_sparse_5_the_logarithm_has_base_ten():
    """Table II: a term of one of two rows weighs 0.3010."""
    assert round(math.log10(2 / 1), 4) == 0.3010 != round(math.log(2 / 1), 4)


def test_algorithm_4_an_atom_goes_with_its_own_coefficients():
    """Step 5 prints d_i α_j: without atom k the others have to give the rest of Y."""
    D, A = RNG.normal(size=(5, 3)), RNG.normal(size=(3, 8))
    Y = D @ A
    own = Y - sum(np.outer(D[:, i], A[i]) for i in (1, 2))
    printed = Y - sum(np.outer(D[:, i], A[j]) for i, j in ((1, 2), (2, 1)))
    assert np.allclose(own, np.outer(D[:, 0], A[0])) and not np.allclose(printed, own)


# -- the page -----------------------------------------------------------------------------------


def test_the_page_names_every_check_and_no_other():
    tests = Path(__file__).parent
    page = tests.parent / "docs" / "errata.md"
    named = set(re.findall(r"`(test_\w+)`", page.read_text(encoding="utf-8")))
    checks = {
        name
        for path in tests.glob("test_errata*.py")
        for name in re.findall(r"^def (test_\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)
    }
    assert named == checks - {"test_the_page_names_every_check_and_no_other"}
