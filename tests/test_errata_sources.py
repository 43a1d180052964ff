"""The errata of docs/errata.md in the thesis on many sources [Shi 2013], shown by numbers."""

import itertools
import math

import numpy as np
import pytest
from scipy.linalg import polar

from tabweave.papers import clustering_divergence
from tabweave.sources import hemap
from tabweave.sources.team import expected

RNG = np.random.default_rng(0)


# -- GBC, chapter 3 -----------------------------------------------------------------------------


def test_3_2_the_expectation_shrinks_where_a_source_is_missing():
    """Two sources that agree on every row: so does their expectation only if it is normalised."""
    weights = np.array([0.4, 0.6])
    scores = np.array([[2.0, 2.0, np.nan], [2.0, np.nan, 2.0]])
    printed = np.nansum(weights[:, None] * scores, axis=0)
    np.testing.assert_allclose(printed, [2, 0.8, 1.2])
    np.testing.assert_allclose(expected(scores[:, :, None], weights)[:, 0], 2)


def test_3_6_the_prediction_shrinks_where_a_source_is_missing():
    """Of numbers: a row of one source alone is predicted as a share of what that source says."""
    weights, scores = np.array([0.25, 0.75]), np.array([100.0, np.nan])
    assert np.nansum(weights * scores) == 25
    assert expected(scores[:, None, None], weights)[0, 0] == 100


def test_3_16_has_f1_twice_and_a_bound_that_fails():
    """Losses above the best one are 0.49 and 0, below their bounds ε."""
    epsilon, loss = np.array([0.5, 0.001]), np.array([0.49, 0.0])
    fused = epsilon[::-1] @ loss / epsilon.sum()  # L_GBC of the proof
    bound = 2 * math.sqrt(epsilon.prod() / epsilon.sum())
    printed, corrected = 2 * abs(loss[0] - fused), abs(loss - fused).sum()
    assert printed != pytest.approx(corrected)
    assert bound < 0.07 < 0.48 < corrected < printed
    assert fused <= 2 * epsilon.prod() / epsilon.sum() <= bound  # what Theorem 1 needs does hold


# -- CoCA, chapter 4 ----------------------------------------------------------------------------


def angles(n=721):
    """Directions in the plane, half a turn: -u is as good as u."""
    turn = np.linspace(0, np.pi, n)
    return np.array([np.cos(turn), np.sin(turn)]).T


def objectives(X, Y, alpha, omega=(0.5, 0.5)):
    """(4.3) and (4.4) of all pairs of directions, of either sign."""
    U = angles()
    V = np.vstack([U, -U])
    a, b = U @ X, V @ Y  # projections, directions × rows
    variance = omega[0] * (a**2).sum(1)[:, None] + omega[1] * (b**2).sum(1)
    gap = (a**2).sum(1)[:, None] + (b**2).sum(1) - 2 * a @ b.T
    total = (a**2).sum(1)[:, None] + (b**2).sum(1) + 2 * a @ b.T
    return variance - 2 * alpha * gap, variance + alpha * total


def test_coca_lemma_1_the_two_problems_have_other_solutions():
    """(4.3) is 34 at its best directions, -23 at those of (4.4): the squares depend on u."""
    rng = np.random.default_rng(3)
    shared = rng.normal(size=20)
    X, Y = (np.array([shared, 3 * rng.normal(size=20)]) for _ in "XY")  # one column is shared
    agreement, product = objectives(X, Y, alpha=0.3)
    assert agreement.max() == pytest.approx(33.6, abs=0.1)
    assert agreement.flat[product.argmax()] == pytest.approx(-22.7, abs=0.1)
    assert product.max() > 3 * product.flat[agreement.argmax()]


def test_coca_4_8_omits_alpha_on_the_diagonal():
    """The sums of (4.6) run over j = h, too."""
    alpha, omega = 0.7, [0.2, 0.8]
    X = [RNG.normal(size=(d, 15)) for d in (2, 3)]
    u = [RNG.normal(size=d) for d in (2, 3)]
    projected = [a @ b for a, b in zip(u, X, strict=True)]
    value = sum(w * p @ p for w, p in zip(omega, projected, strict=True))
    value += alpha * sum(p @ q for p, q in itertools.product(projected, repeat=2))
    for on_diagonal in (0.0, alpha):
        blocks = [
            [(omega[j] + on_diagonal if j == h else alpha) * X[j] @ X[h].T for h in range(2)]
            for j in range(2)
        ]
        found = np.concatenate(u) @ np.block(blocks) @ np.concatenate(u)
        assert (found == pytest.approx(value)) == (on_diagonal > 0)


def test_coca_4_9_one_multiplier_normalises_jointly():
    """The top eigenvector of the joined problem has norm 1 as a whole, not in each source."""
    X = [RNG.normal(size=(50, 4)), 0.1 * RNG.normal(size=(50, 3))]
    joined = np.hstack(X)
    u = np.linalg.eigh(joined.T @ joined)[1][:, -1]
    shares = [np.sum(u[:4] ** 2), np.sum(u[4:] ** 2)]
    assert sum(shares) == pytest.approx(1) and shares[1] < 0.5


# -- HeMap, chapter 5 ---------------------------------------------------------------------------


def reconstruction(T, S, B_T, B_S, P_T, P_S, beta=1.0):
    """The objective (5.4)."""
    terms = [(T, B_T, P_T, 1), (S, B_S, P_S, 1), (T, B_S, P_T, beta / 2), (S, B_T, P_S, beta / 2)]
    return sum(weight * ((table - B @ P) ** 2).sum() for table, B, P, weight in terms)


def printed_maps(T, S, B_T, B_S, beta=1.0):
    """Lemma 2, (5.5)."""
    return [
        (2 * own.T @ table + beta * other.T @ table) / (2 + beta)
        for table, own, other in ((T, B_T, B_S), (S, B_S, B_T))
    ]


def best_maps(T, S, B_T, B_S, beta=1.0):
    """The P of smallest objective for any B: least squares."""
    return [
        np.linalg.solve(
            own.T @ own + beta / 2 * other.T @ other, (own + beta / 2 * other).T @ table
        )
        for table, own, other in ((T, B_T, B_S), (S, B_S, B_T))
    ]


def eigenvectors(T, S, k, beta=1.0):
    """Algorithm 3: the halves of the top eigenvectors of (5.8)."""
    none = np.zeros((len(T), 0))
    found = hemap.embed(hemap.Factor.of(T, S, none, none, beta, 1.0), k)
    return found.B_T, found.B_S


def orthonormal_halves(T, S, k, beta=1.0, n_starts=8):
    """The best feasible B of (5.4), each half orthonormal: ascent of tr(BᵀAB) from many starts."""
    TT, SS = T @ T.T, S @ S.T
    A = [
        [2 * TT + beta**2 / 2 * SS, beta * (TT + SS)],
        [beta * (TT + SS), 2 * SS + beta**2 / 2 * TT],
    ]
    best = (-np.inf, None, None)
    for start in range(n_starts):
        rng = np.random.default_rng(start)
        halves = [np.linalg.qr(rng.normal(size=(len(T), k)))[0] for _ in range(2)]
        for _ in range(300):
            halves = [polar(row[0] @ halves[0] + row[1] @ halves[1])[0] for row in A]
        B = np.vstack(halves)
        best = max(best, (np.trace(B.T @ np.block(A) @ B), *halves), key=lambda found: found[0])
    return best[1:]


def test_hemap_theorem_4_its_solution_does_not_minimise():
    """The objective (5.4) is 154 at the printed solution, 120 with the best P for it, 110 at best.

    Lemma 2 takes both halves of B as orthonormal; Theorem 4 asks for BᵀB = I instead.
    """
    rng = np.random.default_rng(0)
    T, S = rng.normal(size=(30, 4)), rng.normal(size=(30, 3))
    halves = eigenvectors(T, S, 3)
    assert abs(halves[0].T @ halves[0] - np.eye(3)).max() > 0.6
    with_best_maps = reconstruction(T, S, *halves, *best_maps(T, S, *halves))
    feasible = orthonormal_halves(T, S, 3)
    best = reconstruction(T, S, *feasible, *best_maps(T, S, *feasible))
    as_printed = reconstruction(T, S, *halves, *printed_maps(T, S, *halves))
    np.testing.assert_allclose((as_printed, with_best_maps, best), (154.3, 119.8, 110.0), atol=0.1)
    for printed, right in zip(
        printed_maps(T, S, *feasible), best_maps(T, S, *feasible), strict=True
    ):
        np.testing.assert_allclose(printed, right, atol=1e-9)  # Lemma 2, where it holds


def test_hemap_theorem_7_its_solution_does_not_minimise():
    """The same of (5.11) with (5.12), clusters kept, θ = 1/2."""
    rng = np.random.default_rng(0)
    T, S = rng.normal(size=(30, 4)), rng.normal(size=(30, 3))
    C_T, C_S = (np.eye(2)[rng.integers(2, size=30)] for _ in "TS")
    found = hemap.embed(hemap.Factor.of(T, S, C_T, C_S, 1.0, 0.5), 3)
    B_T, B_S = found.B_T, found.B_S

    def objective(P_T, P_S, P_TC, P_SC):
        kept = ((T - B_T @ P_T) ** 2).sum() + ((S - B_S @ P_S) ** 2).sum()
        kept += ((C_T - B_T @ P_TC) ** 2).sum() + ((C_S - B_S @ P_SC) ** 2).sum()
        return (kept + ((T - B_S @ P_T) ** 2).sum() + ((S - B_T @ P_S) ** 2).sum()) / 2

    printed = [
        (own.T + other.T) @ table / 2 for table, own, other in ((T, B_T, B_S), (S, B_S, B_T))
    ]
    own_clusters = B_T.T @ C_T, B_S.T @ C_S  # (5.12)
    both = B_T.T @ B_T + B_S.T @ B_S
    best = [np.linalg.solve(both, (B_T + B_S).T @ table) for table in (T, S)]
    best += [np.linalg.lstsq(B, C, rcond=None)[0] for B, C in ((B_T, C_T), (B_S, C_S))]
    assert objective(*printed, *own_clusters) > 1.05 * objective(*best)


def test_hemap_depends_on_the_order_of_rows():
    """(5.8): A mixes row i of the target with row i of the source."""
    T, S, beta = RNG.normal(size=(20, 3)), RNG.normal(size=(20, 4)), 1.0

    def best(S):
        F = np.block([[2**0.5 * T, beta / 2**0.5 * S], [beta / 2**0.5 * T, 2**0.5 * S]])
        return np.linalg.svd(F, compute_uv=False)[:2]

    assert not np.allclose(best(S), best(S[RNG.permutation(20)]), rtol=1e-3)


def test_hemap_5_17_is_no_divergence_of_unequal_sizes():
    """Two clusters in halves in both tables: 0 for as many rows, but not for twice as many."""
    target = np.repeat([0, 1], 10)
    assert clustering_divergence(target, np.repeat([0, 1], 10)) == 0
    for source in (np.repeat([0, 1], 5), np.repeat([0, 1], 20)):
        assert clustering_divergence(target, source) == pytest.approx(math.log(2) / 3)
