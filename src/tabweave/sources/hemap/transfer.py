"""One transfer of HeMap: align, project, select, bridge, learn [Shi 2013, Figure 18].

Below the class: the alignments, the two projections (section 5.4) solved in the space of columns,
and what follows them, which source rows to use and how to read their outputs (section 5.5).
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import solve, svd
from scipy.optimize import linear_sum_assignment
from scipy.special import softmax
from scipy.stats import rankdata, skew
from sklearn.cluster import KMeans
from sklearn.metrics import pairwise_distances_argmin

from tabweave._compat import eigh, fix_signs
from tabweave.io.register import storable


class TargetRows(NamedTuple):
    """The target's rows, the labels of those that have one, and the source row of each (or -1)."""

    X: np.ndarray
    y: np.ndarray
    labeled: np.ndarray
    pairs: np.ndarray | None


class SourceRows(NamedTuple):
    """The source's rows, their outputs, and whether these are numbers."""

    X: np.ndarray
    v: np.ndarray
    numeric: bool


class Options(NamedTuple):
    """What a user may choose; ``make`` gives an unfitted learner for so many rows."""

    make: Callable[[int], Any]
    numeric: bool
    align: Align
    rounds: int  # in which rows are aligned again, in the space found
    n_components: int
    beta: float
    theta: float
    scale: bool
    seed: int


class Scaled(NamedTuple):
    """What an alignment looks at: both tables, their scaled rows T and S, a source of chance."""

    options: Options
    target: TargetRows
    source: SourceRows
    T: np.ndarray
    S: np.ndarray
    rng: np.random.RandomState


Aligned = tuple[np.ndarray, np.ndarray]
Align = Callable[[Scaled], Aligned]
Codes = tuple[np.ndarray, np.ndarray] | None


@storable
class Side(NamedTuple):
    """How the rows of one table are projected."""

    frame: Frame
    clusters: Any
    W: np.ndarray

    def features(self, X: np.ndarray) -> np.ndarray:
        """The scaled columns, and the row's cluster if clusters are kept."""
        Z = self.frame.apply(X)
        return Z if self.clusters is None else np.hstack([Z, _indicators(self.clusters, Z)])

    def project(self, X: np.ndarray) -> np.ndarray:
        """The projected rows."""
        return self.features(X) @ self.W


@storable
class Transfer:
    """A fitted transfer: target rows in, predictions out.

    ``learner`` saw source rows too, ``target_learner`` only target rows, in the same space.
    """

    def __init__(self, options: Options, target: TargetRows, source: SourceRows) -> None:
        rng = np.random.RandomState(options.seed)
        self.side, B_T, B_S, self.eigenvalues = _project(options, target, source, rng)
        labeled = B_T[target.labeled]
        self.target_learner = options.make(len(labeled)).fit(labeled, target.y)
        # A source row about the same thing as a target row lies among them, whatever clusters say.
        self.selected = rows = paired_rows(target)
        if len(rows) < len(B_S):
            self.selected = rows = np.union1d(rows, selected_rows(B_T, B_S, rng))
        self.projected_source = B_S
        self._learn(options, target.y, labeled, B_S[rows], source.v[rows], source.numeric)

    def relearned(self, options: Options, target: TargetRows, source: SourceRows) -> Transfer:
        """The same transfer of other outputs, if the common space ignores these."""
        out = copy(self)
        labeled, rows = self.side.project(target.X[target.labeled]), self.selected
        B_S, v = self.projected_source[rows], source.v[rows]
        out._learn(options, target.y, labeled, B_S, v, source.numeric)
        return out

    def _learn(
        self,
        options: Options,
        y: np.ndarray,
        labeled: np.ndarray,
        B_S: np.ndarray,
        v: np.ndarray,
        v_numeric: bool,
    ) -> None:
        """Eqs. (5.19) and (5.20), or one learner for all rows where the outputs are one."""
        self.bridge: np.ndarray | None = None
        self.classes_ = None if options.numeric else np.unique(y)
        if not len(B_S):
            self.learner = self.target_learner
            return
        if options.numeric:
            v = number_bridge(self.target_learner.predict(B_S), v, not v_numeric)
        elif v_numeric or not same_classes(y, v):
            names, codes = np.unique(quantile_codes(v) if v_numeric else v, return_inverse=True)
            opinions = probabilities(self.target_learner, B_S)
            self.bridge = class_bridge(opinions, codes, len(names))
            self.learner = options.make(len(B_S)).fit(B_S, codes)
            return
        rows, values = np.vstack([labeled, B_S]), np.concatenate([y, v])
        self.learner = options.make(len(rows)).fit(rows, values)
        self.classes_ = getattr(self.learner, "classes_", None)

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """Eq. (5.19): p(y|x), through the source's classes where those are others."""
        proba = probabilities(self.learner, self.side.project(X))
        return proba if self.bridge is None else proba @ self.bridge

    def predict(self, X: np.ndarray) -> np.ndarray:
        """The class or number of each row."""
        if self.bridge is None:
            return self.learner.predict(self.side.project(X))
        assert self.classes_ is not None
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


def _project(
    options: Options, target: TargetRows, source: SourceRows, rng: np.random.RandomState
) -> tuple[Side, np.ndarray, np.ndarray, np.ndarray]:
    """Algorithms 3 and 4, on aligned rows, repeated where the projection betters the alignment."""
    frames = Frame.of(target.X, options.scale), Frame.of(source.X, options.scale)
    T, S = frames[0].apply(target.X), frames[1].apply(source.X)
    clusters, C_T, C_S = _partitions(options, T, source, rng)
    i, j = options.align(Scaled(options, target, source, T, S, rng))
    features_T, features_S = np.hstack([T, C_T]), np.hstack([S, C_S])
    for remaining in range(options.rounds, -1, -1):
        F = Factor.of(T[i], S[j], C_T[i], C_S[j], options.beta, options.theta)
        embedding = embed(F, options.n_components)
        # Eigenvectors all have length 1; like principal components they should weigh as they vary.
        weight = np.sqrt(embedding.eigenvalues)
        W_T = linear_map(features_T[i], embedding.B_T) * weight
        W_S = linear_map(features_S[j], embedding.B_S) * weight
        B_T, B_S = features_T @ W_T, features_S @ W_S
        if remaining:
            i, j = nearest(B_T, B_S)
    return Side(frames[0], clusters, W_T), B_T, B_S, embedding.eigenvalues


def _partitions(
    options: Options, T: np.ndarray, source: SourceRows, rng: np.random.RandomState
) -> tuple[Any, np.ndarray, np.ndarray]:
    """Algorithm 4, step 34: target rows in clusters, source rows in classes; empty if linear."""
    if options.theta == 1:
        return None, np.zeros((len(T), 0)), np.zeros((len(source.X), 0))
    v = quantile_codes(source.v) if source.numeric else source.v
    names, codes = np.unique(v, return_inverse=True)
    k = min(len(names), len(np.unique(T, axis=0)))
    means = KMeans(k, n_init=5, random_state=rng.randint(2**31 - 1)).fit(T)
    return means, _indicators(means, T), np.eye(len(names))[codes]


def _indicators(means: KMeans, Z: np.ndarray) -> np.ndarray:
    return np.eye(means.n_clusters)[means.predict(Z)]


# -- alignments: which source row stands beside which target row --------------------------------


def align(how: str, scaled: Scaled) -> Aligned:
    """Align by "pairs", "pc", "score" or "cluster"."""
    options, target, source, T, S, rng = scaled
    if how == "pairs":
        assert target.pairs is not None
        rows = np.flatnonzero(target.pairs >= 0)
        return rows, target.pairs[rows]
    if how == "score":
        return nearest(*_scores(scaled))
    codes = shared_codes(target.y, target.labeled, source.v, options.numeric, source.numeric)
    if how == "pc":
        return by_components(T, S, codes)
    return by_clusters(T, S, codes, rng)


def _scores(scaled: Scaled) -> tuple[np.ndarray, np.ndarray]:
    """What a learner of each table's own makes of its rows: a rank, or p(class|row).

    Source rows are scored by learners that did not see them. Classes of other names are compared
    by how frequent they are.
    """
    options, target, source, T, S, _ = scaled
    labeled = T[target.labeled]
    learner = options.make(len(labeled)).fit(labeled, target.y)
    if options.numeric:
        v = source.v if source.numeric else np.unique(source.v, return_inverse=True)[1]
        scores = learner.predict(T), _out_of_fold(options, S, v.astype(float), None)[:, 0]
        ranks = [rankdata(s, method="ordinal") - 1 for s in scores]
        return ranks[0][:, None] / len(T), ranks[1][:, None] / len(S)
    v = quantile_codes(source.v) if source.numeric else source.v
    names = np.unique(v)
    target_proba, source_proba = probabilities(learner, T), _out_of_fold(options, S, v, names)
    if not source.numeric and same_classes(target.y, v):
        common = np.intersect1d(learner.classes_, names)
        shared = np.isin(learner.classes_, common), np.isin(names, common)
        return target_proba[:, shared[0]], source_proba[:, shared[1]]
    k = min(target_proba.shape[1], source_proba.shape[1])
    orders = [np.argsort(-P.sum(axis=0), kind="stable")[:k] for P in (target_proba, source_proba)]
    return target_proba[:, orders[0]], source_proba[:, orders[1]]


def _out_of_fold(
    options: Options, S: np.ndarray, v: np.ndarray, names: np.ndarray | None, *, n_folds: int = 3
) -> np.ndarray:
    """Predictions (or p(name|row)) of each row by a learner of the other folds."""
    folds = fold_numbers(v, n_folds, np.random.RandomState(options.seed))
    out = np.zeros((len(S), 1 if names is None else len(names)))
    for fold in np.unique(folds):
        seen, held_out = folds != fold, folds == fold
        learner = options.make(int(seen.sum())).fit(S[seen], v[seen])
        if names is None:
            out[held_out, 0] = learner.predict(S[held_out])
        else:
            columns = np.searchsorted(names, learner.classes_)
            out[np.ix_(held_out, columns)] = probabilities(learner, S[held_out])
    return out


def nearest(A: np.ndarray, B: np.ndarray, *, max_queries: int = 2_000) -> Aligned:
    """Give rows of A their nearest row of B; some of A, evenly, if there are many.

    They serve to find a few directions: more than some thousands would only cost time.
    """
    rows = np.linspace(0, len(A) - 1, min(len(A), max_queries)).astype(int)
    return rows, pairwise_distances_argmin(A[rows], B)


def by_components(
    T: np.ndarray, S: np.ndarray, codes: Codes, *, max_components: int = 9
) -> Aligned:
    """Match rows by their first principal components, turned so that shared classes meet."""
    p = min(max_components, *T.shape, *S.shape)
    A, B = components(T, p), components(S, p)
    return nearest(A, B @ turn(A, B, codes))


def components(Z: np.ndarray, p: int) -> np.ndarray:
    """The scores on the first p principal components, skewed to the right."""
    n, m = Z.shape
    gram = Z.T @ Z if m <= n else Z @ Z.T
    squares, V = eigh(gram, p)
    sizes, V = np.sqrt(np.maximum(squares[::-1], 0)), V[:, ::-1]
    scores = Z @ V if m <= n else V * sizes
    # A component that does not vary has no skewness (0/0); its sign does not matter.
    varies = sizes > 1e-6 * max(sizes[0], 1e-300)
    bend = np.zeros(p)
    bend[varies] = skew(scores[:, varies])
    return scores * np.where(bend < 0, -1.0, 1.0)


def turn(A: np.ndarray, B: np.ndarray, codes: Codes, *, prior_weight: float = 0.05) -> np.ndarray:
    """The rotation of B whose class means are nearest to those of A (Procrustes)."""
    prior = np.diag(np.sqrt(np.mean(A * A, axis=0) * np.mean(B * B, axis=0)))
    means = None if codes is None else _class_means(A, B, *codes)
    if means is None:
        return np.eye(A.shape[1])
    cross = means[1].T @ means[0]
    weight = prior_weight * np.linalg.norm(cross) / max(np.linalg.norm(prior), 1e-300)
    U, _, Vt = svd(cross + weight * prior)
    return U @ Vt


def _class_means(
    A: np.ndarray, B: np.ndarray, c_A: np.ndarray, c_B: np.ndarray
) -> tuple[np.ndarray, np.ndarray] | None:
    shared = np.intersect1d(c_A[c_A >= 0], c_B)
    if len(shared) < 2:
        return None
    M_A = np.array([A[c_A == c].mean(axis=0) for c in shared])
    M_B = np.array([B[c_B == c].mean(axis=0) for c in shared])
    return M_A - M_A.mean(axis=0), M_B - M_B.mean(axis=0)


def by_clusters(
    T: np.ndarray, S: np.ndarray, codes: Codes, rng: np.random.RandomState, *, max_clusters: int = 8
) -> Aligned:
    """Match clusters by what they hold, then the rows of two clusters by principal component."""
    k = min(max_clusters, len(T), len(S)) if codes is None else len(np.unique(codes[1]))
    k = min(k, len(np.unique(T, axis=0)), len(np.unique(S, axis=0)))
    seeds = rng.randint(2**31 - 1, size=2)
    in_T = KMeans(k, n_init=5, random_state=seeds[0]).fit_predict(T)
    in_S = KMeans(k, n_init=5, random_state=seeds[1]).fit_predict(S)
    codes_by_side = (None, None) if codes is None else codes
    cost = _profiles(T, in_T, k, codes_by_side[0], codes)[:, None] - _profiles(
        S, in_S, k, codes_by_side[1], codes
    )
    pairs = zip(*linear_sum_assignment(np.sum(cost**2, axis=2)), strict=True)
    first_T, first_S = components(T, 1)[:, 0], components(S, 1)[:, 0]
    parts = []
    for a, b in pairs:
        rows, others = np.flatnonzero(in_T == a), np.flatnonzero(in_S == b)
        parts.append(by_rank(rows[first_T[rows].argsort()], others[first_S[others].argsort()]))
    return np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])


def _profiles(
    Z: np.ndarray, cluster: np.ndarray, k: int, side_codes: np.ndarray | None, codes: Codes
) -> np.ndarray:
    """Describe clusters: their classes if those are shared, else size, variance and centre."""
    if side_codes is not None and codes is not None:
        n = int(max(codes[0].max(), codes[1].max())) + 1
        table = np.zeros((k, n))
        np.add.at(table, (cluster[side_codes >= 0], side_codes[side_codes >= 0]), 1.0)
        return (table + 1 / n) / (table.sum(axis=1, keepdims=True) + 1)
    rows = [Z[cluster == c] for c in range(k)]
    out = [(len(r) / len(Z), np.mean(r.var(axis=0)), np.sum(r.mean(axis=0) ** 2)) for r in rows]
    return np.asarray(out) / np.maximum(np.mean(out, axis=0), 1e-300)


def by_rank(rows: np.ndarray, others: np.ndarray) -> Aligned:
    """Match two ordered lists rank by rank; the shorter one is repeated evenly."""
    n = max(len(rows), len(others))
    ranks = (np.arange(n) + 0.5) / n
    return rows[(ranks * len(rows)).astype(int)], others[(ranks * len(others)).astype(int)]


# -- projections --------------------------------------------------------------------------------


@storable
class Frame(NamedTuple):
    """Where a table is centred, and the unit of each column; rows then have mean square 1."""

    mean: np.ndarray
    unit: np.ndarray

    @classmethod
    def of(cls, X: np.ndarray, scale: bool) -> Frame:
        """Measure a table; columns keep their units unless ``scale``."""
        mean = X.mean(axis=0)
        deviation = X.std(axis=0)
        # A constant column deviates by rounding only; it says nothing and stays at 0.
        flat = deviation <= 1e-12 * np.maximum(np.abs(mean), 1e-300)
        unit = np.where(flat, np.inf, deviation if scale else 1.0)
        size = np.sqrt(np.sum((deviation / unit) ** 2))
        return cls(mean, unit * size if size > 0 else unit)

    def apply(self, X: np.ndarray) -> np.ndarray:
        """The centred and scaled table."""
        return (X - self.mean) / self.unit


class Embedding(NamedTuple):
    """The projected rows and what they weigh: Algorithms 3 and 4."""

    B_T: np.ndarray
    B_S: np.ndarray
    eigenvalues: np.ndarray


class Factor(NamedTuple):
    """Eqs. (5.8) and (5.15): A = FFᵀ, where F = [Z·a; Z·b] weighs the columns Z twice.

    Z holds the columns of T, of S and of the two partitions, row by aligned row; a is how much
    each counts in a projected target row, b in a projected source row.
    """

    Z: np.ndarray
    a: np.ndarray
    b: np.ndarray

    @classmethod
    def of(
        cls,
        T: np.ndarray,
        S: np.ndarray,
        C_T: np.ndarray,
        C_S: np.ndarray,
        beta: float,
        theta: float,
    ) -> Factor:
        """F of aligned rows; θ = 1 is the linear case."""
        diagonal, other = np.sqrt(2) * theta, beta / np.sqrt(2)
        residual = np.sqrt((1 - theta) * (beta + 2 * theta))
        widths = [M.shape[1] for M in (T, S, C_T, C_S)]
        return cls(
            np.hstack([T, S, C_T, C_S]),
            np.repeat([diagonal, other, residual, 0.0], widths),
            np.repeat([other, diagonal, 0.0, residual], widths),
        )

    def smaller_gram(self) -> np.ndarray:
        """FᵀF, or FFᵀ = A if there are more columns than rows to solve for."""
        Z, a, b = self
        if Z.shape[1] <= 2 * len(Z):
            return (np.outer(a, a) + np.outer(b, b)) * (Z.T @ Z)
        across = (Z * (a * b)) @ Z.T
        return np.block([[(Z * a**2) @ Z.T, across], [across, (Z * b**2) @ Z.T]])


def embed(F: Factor, n_components: int, *, rank_tolerance: float = 1e-10) -> Embedding:
    """The top eigenvectors of A = FFᵀ, through FᵀF when that is smaller.

    With FᵀF = VΛVᵀ the eigenvectors of A are FVΛ^(-1/2). Each is turned so that its largest
    entry is positive; directions without weight are left out.
    """
    gram = F.smaller_gram()
    size = len(gram)
    values, V = eigh(gram, min(n_components, size))
    values, V = values[::-1], V[:, ::-1]
    nonzero = values > rank_tolerance * max(values[0], 1e-300)
    values, V = values[nonzero], V[:, nonzero]
    if size == F.Z.shape[1]:
        V = np.vstack([F.Z @ (F.a[:, None] * V), F.Z @ (F.b[:, None] * V)]) / np.sqrt(values)
    V = fix_signs(V)
    return Embedding(V[: len(F.Z)], V[len(F.Z) :], values)


def linear_map(features: np.ndarray, B: np.ndarray, *, ridge_ratio: float = 1e-3) -> np.ndarray:
    """W with features @ W ≈ B (ridge): how a row alone, without its partner, is projected.

    A projected target row depends on the source row it is aligned with; a new row has none, so
    that part is replaced by what the target's own columns say about it.
    """
    n, m = features.shape
    gram = features @ features.T if m > n else features.T @ features
    gram[np.diag_indices_from(gram)] += max(ridge_ratio * np.trace(gram) / m, 1e-300)
    if m > n:
        return features.T @ solve(gram, B, assume_a="pos")
    return solve(gram, features.T @ B, assume_a="pos")


# -- selection and outputs ----------------------------------------------------------------------


def paired_rows(target: TargetRows) -> np.ndarray:
    """The source rows that are partners of target rows, in order."""
    return np.setdiff1d([] if target.pairs is None else target.pairs, [-1]).astype(np.intp)


def selected_rows(
    B_T: np.ndarray, B_S: np.ndarray, rng: np.random.RandomState, *, max_clusters: int = 20
) -> np.ndarray:
    """Eq. (5.17): the source rows in clusters that the target fills alike.

    The two clouds are clustered together. Each cluster gives at most as many source rows as the
    target's share in it asks for, those nearest to the target's centre there first: then the
    logarithms in (5.18) are near 0 and the centres near each other, as the constraint asks.
    """
    both = np.vstack([B_T, B_S])
    # Rows are as many as their sums under random weights: sorting numbers is cheaper than rows.
    k = min(max_clusters, len(np.unique(both @ rng.uniform(1, 2, both.shape[1]))))
    cluster = KMeans(k, n_init=1, random_state=rng.randint(2**31 - 1)).fit_predict(both)
    in_T, in_S = cluster[: len(B_T)], cluster[len(B_T) :]
    chosen = []
    for c in np.unique(in_T):
        rows = np.flatnonzero(in_S == c)
        n_chosen = int(np.ceil(np.mean(in_T == c) * len(B_S)))
        distance = np.sum((B_S[rows] - B_T[in_T == c].mean(axis=0)) ** 2, axis=1)
        chosen.append(rows[np.argsort(distance, kind="stable")[:n_chosen]])
    return np.sort(np.concatenate(chosen))


def class_bridge(p_y_s: np.ndarray, v: np.ndarray, n_v: int) -> np.ndarray:
    """Eq. (5.20): p(y|v), the mean of p(y|s) over the source rows s of class v."""
    totals = np.zeros((n_v, p_y_s.shape[1]))
    np.add.at(totals, v, p_y_s)
    return totals / np.maximum(np.bincount(v, minlength=n_v), 1)[:, None]


def number_bridge(y_s: np.ndarray, v: np.ndarray, classes: bool) -> np.ndarray:
    """Eq. (5.20) for numbers: E[y|v] of every source row, from predictions y_s of its y.

    The mean of y_s over the rows of the same class; the least-squares line if v is a number.
    """
    if classes:
        _, codes = np.unique(v, return_inverse=True)
        return class_bridge(y_s[:, None], codes, codes.max() + 1)[codes, 0]
    centred = v - v.mean()
    square = centred @ centred
    slope = centred @ (y_s - y_s.mean()) / square if square > 0 else 0.0
    return y_s.mean() + slope * centred


def quantile_codes(values: np.ndarray, *, n_bins: int = 5) -> np.ndarray:
    """Which fifth of the numbers each one lies in."""
    edges = np.quantile(values, np.arange(1, n_bins) / n_bins)
    return np.searchsorted(edges, values, side="right")


def shared_codes(
    y: np.ndarray, labeled: np.ndarray, v: np.ndarray, y_numeric: bool, v_numeric: bool
) -> tuple[np.ndarray, np.ndarray] | None:
    """Codes of what both share: classes of the same name, or fifths of numbers."""
    codes = np.full(len(labeled), -1)
    if y_numeric and v_numeric:
        codes[labeled] = quantile_codes(y.astype(float))
        return codes, quantile_codes(v.astype(float))
    if y_numeric or v_numeric or not same_classes(y, v):
        return None
    names = {name: i for i, name in enumerate(sorted({*y.tolist(), *v.tolist()}))}
    codes[labeled] = [names[name] for name in y.tolist()]
    return codes, np.array([names[name] for name in v.tolist()])


def same_classes(y: np.ndarray, v: np.ndarray) -> bool:
    """Whether one output's classes are among the other's; equal names then mean the same."""
    target_classes, source_classes = set(y.tolist()), set(v.tolist())
    return target_classes <= source_classes or source_classes <= target_classes


def fold_numbers(y: np.ndarray, n_folds: int, rng: np.random.RandomState) -> np.ndarray:
    """Deal rows out to folds at random, every class (or range of numbers) evenly."""
    dealt = np.lexsort([rng.permutation(len(y)), np.unique(y, return_inverse=True)[1]])
    folds = np.empty(len(y), int)
    folds[dealt] = np.arange(len(y)) % n_folds
    return folds


def probabilities(learner: Any, X: np.ndarray) -> np.ndarray:
    """P(class|x); of a learner that gives none, from the scores it decides by.

    A row on the margin of a support vector machine is taken to be right with 0.88; a learner
    without scores is taken to be sure.
    """
    if hasattr(learner, "predict_proba"):
        return np.asarray(learner.predict_proba(X))
    if hasattr(learner, "decision_function"):
        scores = np.asarray(learner.decision_function(X))
        scores = np.column_stack([-scores, scores]) if scores.ndim == 1 else scores
        if scores.shape[1] == len(learner.classes_):
            return softmax(scores, axis=1)
    return (learner.predict(X)[:, None] == learner.classes_).astype(float)
