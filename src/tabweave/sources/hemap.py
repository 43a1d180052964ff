"""HeMap: labels from a table with other columns, if they honestly help [Shi 2013, ch. 5].

Target and source are projected into one space that keeps the structure of both; source rows that
lie among target rows become training rows. Everything rests on which source row is aligned with
which target row, so that is the first choice here; and a guard refuses sources that do not help.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from scipy.linalg import solve, svd
from scipy.optimize import linear_sum_assignment
from scipy.special import ndtr, softmax, stdtrit
from scipy.stats import rankdata, skew
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.cluster import KMeans
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.metrics import accuracy_score, pairwise_distances_argmin, r2_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.utils import assert_all_finite, check_array, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted, validate_data

from tabweave._compat import HasMethods, Interval, StrOptions, eigh, fix_signs, one_thread, seed_of
from tabweave.base import Estimator
from tabweave.columns.inputs import check_class_labels, numbers_only, target_array, target_numbers
from tabweave.columns.vocabulary import canonical
from tabweave.io.register import storable
from tabweave.sources.coca import cells, column_means
from tabweave.sources.container import Sources, check_form
from tabweave.sources.tables import (
    labels_of_rows,
    position_of_each,
    read_labels,
    without_attributes,
)

# -- One transfer of HeMap: align, project, select, bridge, learn [Shi 2013, Figure 18] -----------
#
# Below the class: the alignments, the two projections (section 5.4) solved in the space of columns,
# and what follows them, which source rows to use and how to read their outputs (section 5.5).


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


# -- the estimator --------------------------------------------------------------------------------

EMBED_FIRST = "HeMap reads numbers: embed categories first, e.g. with tabweave.Weave"
_HELD = {"pairs": "pairs", "source": "outputs"}  # of a source, by parameter of fit
# Without the source: the learner, the learner in the common space, the commonest class or mean. A
# bridge that says the same of every source class falls back to the last: nothing is transferred.
_RIVALS = ("target", "projected", "prior")


def _gives_probabilities(model: HeMap) -> bool:
    return hasattr(model._estimator(), "predict_proba")


@storable
class HeMap(Estimator):
    """Learn from the labels of a source table with other columns, if validation shows a gain.

    Parameters
    ----------
    estimator : classifier or regressor, optional
        The learner; 10 nearest neighbours if not given.
    alignment : {"auto", "pairs", "pc", "score", "cluster"}, default="auto"
        How source rows are aligned with target rows: by the ``pairs`` of fit; nearest in the first
        principal components, turned so that the means of shared classes meet ("pc"); nearest in
        what a learner of each table's own predicts ("score"); matched clusters ("cluster").
        "auto" is "pairs" if pairs are given, else "pc".
    n_components : int, default=20
        Dimensions of the common space, at most.
    similarity : float, default=1.0
        How much the two tables should agree there (β).
    linearity : float in (0, 1], default=1.0
        1 keeps the columns only, the linear HeMap; less keeps clusters too (θ; nonlinear at 0.5).
    scale : bool, default=True
        Whether columns are brought to variance 1; turn it off where all are in one unit.
    guard : int or None, default=5
        Folds of the cross-validation that must show a gain, by more than a standard error, over
        the learner on the target alone, in the original and in the common space, and over the
        commonest class (or mean). Then the source must do better than all of 19 copies of it whose
        outputs were shuffled, and, if there are pairs, than 19 whose pairs were: a source that has
        nothing to do with the target is let in with probability 0.05 at most, however few labels
        there are. None trusts the source untested.
    random_state : int, RandomState or None, default=None
        Decides folds and clusters.

    Attributes
    ----------
    refused_ : bool
        Whether predictions are those of the learner on the target alone.
    reason_ : str
        Why, with the figures.
    verdicts_ : dict of str to tuple
        Of each source: whether it is refused, why, and its losses. Of those let in, the one with
        the smallest loss is used, and it is what the other attributes are about.
    losses_ : dict
        Mean held-out loss with the source ("transfer"), without ("target"), without in the common
        space ("projected"), of the commonest class or mean ("prior"); and, as "target_error" and
        so on, standard errors of the differences. The loss is the squared error of numbers, or half
        that of probabilities: 0 if all are right for sure, 1 if all are wrong for sure.
    alignment_ : str or None
        The alignment used.
    target_estimator_ : estimator
        The learner on the target's labeled rows alone.
    transfer_ : object or None
        What was learned with the source, refused or not; it has ``predict`` as well.
    selected_ : ndarray or None
        The source rows that are used: those with a partner among the target rows, and those in
        clusters shared with the target, Eq. (5.17).
    eigenvalues_ : ndarray or None
        What each dimension of the common space weighs.
    classes_ : ndarray
        Of a classifier.
    n_features_in_, feature_names_in_
        The target's columns.

    Notes
    -----
    Erratum: the thesis says that the order of rows does not matter. It does: row i of the target
    is projected with row i of the source. Rows aligned at random carry nothing over; that is
    :class:`tabweave.papers.HeMap`.

    Classes of equal names are taken to mean the same; other classes, and numbers, are bridged
    (Eqs. 5.19 and 5.20). Rename classes to have them bridged.

    Examples
    --------
    >>> import numpy as np
    >>> from tabweave import HeMap
    >>> rng = np.random.default_rng(0)
    >>> things = rng.normal(size=(500, 2))          # what both tables are about
    >>> kind = np.where(things[:, 0] * things[:, 1] > 0, "even", "odd")
    >>> ours = things @ rng.normal(size=(2, 5)) + 0.1 * rng.normal(size=(500, 5))
    >>> theirs = things @ rng.normal(size=(2, 8)) + 0.1 * rng.normal(size=(500, 8))
    >>> labels = kind[:400].astype(object)
    >>> labels[40:] = None                          # 40 of our rows have a label
    >>> model = HeMap(random_state=0)
    >>> model = model.fit(
    ...     ours[:400], labels, source=(theirs[:400], kind[:400]), pairs=np.arange(400)
    ... )
    >>> model.refused_
    False
    >>> alone = model.target_estimator_.score(ours[400:], kind[400:])
    >>> model.score(ours[400:], kind[400:]) > alone + 0.1
    True

    A source about something else is refused, and the learner on the target alone answers.

    >>> noise = rng.normal(size=(400, 8))
    >>> model = model.fit(ours[:400], labels, source=(noise, kind[:400]))
    >>> model.refused_
    True
    >>> model.score(ours[400:], kind[400:]) == alone
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "estimator": [HasMethods(["fit", "predict"]), None],
        "alignment": [StrOptions({"auto", "pairs", "pc", "score", "cluster"})],
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "similarity": [Interval(Real, 0, None, closed="left")],
        "linearity": [Interval(Real, 0, 1, closed="right")],
        "scale": ["boolean"],
        "guard": [Interval(Integral, 2, None, closed="left"), None],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        estimator: Any = None,
        *,
        alignment: str = "auto",
        n_components: int = 20,
        similarity: float = 1.0,
        linearity: float = 1.0,
        scale: bool = True,
        guard: int | None = 5,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.alignment = alignment
        self.n_components = n_components
        self.similarity = similarity
        self.linearity = linearity
        self.scale = scale
        self.guard = guard
        self.random_state = random_state

    # -- learning --------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, source: Any = None, pairs: Any = None) -> Self:
        """Learn from target rows, and from the source if validation shows a gain.

        Parameters
        ----------
        X : array or frame of numbers, or Sources
            Target rows, with or without labels; a missing number stands at the mean of its column.
            Of `Sources` the first table is the target, every other one a source; ids that two
            tables share are pairs.
        y : array-like, pandas series by index, or mapping
            Classes or numbers of the rows (or ids); None or NaN where there is none.
        source : (rows, outputs), or mapping of name to such a pair, optional
            Rows of other columns, and a class or number for each. Without a source this is the
            learner on the target alone. For `Sources`: a mapping of table to its outputs by id;
            a table that is not in it has those of ``y``.
        pairs : array-like of int, or mapping of name to such, optional
            For each target row the number of the source row about the same thing, or -1.
        """
        self._validate_params()
        self._check_learner()
        numeric = self._is_regressor()
        X, y, tables_with_pairs = self._read_training(X, y, source, pairs, numeric)
        values, labeled = read_target(y, len(X), numeric)
        self.target_estimator_ = self._estimator(len(values)).fit(X[labeled], values)
        tried = {}
        for name, (others, partners) in tables_with_pairs.items():
            target = TargetRows(X, values, labeled, partners)
            tried[name] = self._try(target, others, len(tables_with_pairs))
        self.verdicts_ = {name: attempt.verdict for name, attempt in tried.items()}
        none = Attempt(SourceDecision(True, "no source was given", {}), None, None)
        best = min(tried.values(), key=Attempt.rank) if tried else none
        self.alignment_, self.transfer_ = best.alignment, best.transfer
        self.selected_ = getattr(best.transfer, "selected", None)
        self.eigenvalues_ = getattr(best.transfer, "eigenvalues", None)
        self.refused_, self.reason_, self.losses_ = best.verdict
        if not numeric:
            self.classes_ = self._model().classes_
        return self

    def _read_training(
        self, X: Any, y: Any, source: Any, pairs: Any, numeric: bool
    ) -> tuple[np.ndarray, Any, dict[str, tuple[SourceRows, np.ndarray | None]]]:
        """Target rows without gaps, their labels, and each source with its pairs."""
        without_attributes(self, "reference_")
        if isinstance(X, Sources):
            self.reference_ = X.select(X.ids[:0])
            X, y, source, pairs = of_sources(X, y, source)
        else:
            y = None if y is None else labels_of_rows(X, y)
        with numbers_only(X, EMBED_FIRST):
            X = validate_data(self, X, dtype=np.float64, ensure_all_finite="allow-nan")
        self._means = column_means(X)
        X = filled(X, self._means)
        if source is None:
            return X, y, {}
        if not isinstance(source, Mapping):
            source, pairs = {"source": source}, {"source": pairs}
        check_names("pairs", pairs, [*source])
        tables = {name: read_source(pair, numeric, name) for name, pair in source.items()}
        partners = {
            name: read_pairs((pairs or {}).get(name), len(X), len(others.X))
            for name, others in tables.items()
        }
        return X, y, {name: (others, partners[name]) for name, others in tables.items()}

    def _try(self, target: TargetRows, source: SourceRows, n_sources: int) -> Attempt:
        """Fit the transfer and have it judged."""
        how, align, rounds = self._alignment(target)
        options = self._options(align, rounds)
        paired = len(source.X) if target.pairs is None else np.sum(target.pairs >= 0)
        hindrance = ""
        if min(len(source.X), paired) < 2:
            hindrance = "the source has fewer than two rows to align"
        elif (source.X == source.X[0]).all() or (target.X == target.X[0]).all():
            hindrance = "all rows of a table are the same: nothing can be aligned"
        if hindrance:
            return Attempt(SourceDecision(True, hindrance, {}), how, None)
        transfer = Transfer(options, target, source)
        if self.guard is None:
            decision = SourceDecision(False, "the guard is off: the source is used untested", {})
            return Attempt(decision, how, transfer)
        # Section 5.5.2: hardly a row lies among the target's rows.
        if len(transfer.selected) < 0.05 * len(source.X):
            text = (
                f"{len(transfer.selected)} of {len(source.X)} source rows lie among the target rows"
            )
            return Attempt(SourceDecision(True, f"{text}: too risky", {}), how, transfer)
        with one_thread():  # hundreds of small fits: threads would wait for each other
            decision = judge(options, target, source, int(self.guard), n_sources)
        return Attempt(decision, how, transfer)

    def _alignment(self, target: TargetRows) -> tuple[str, Align, int]:
        """The alignment by name and as a function, and how often it is refined."""
        how = self.alignment
        if how == "auto":
            how = "pc" if target.pairs is None else "pairs"
        if how == "pairs" and target.pairs is None:
            raise ValueError(
                "alignment='pairs': expected pairs, the source row of each row, got none in fit"
            )
        return how, partial(align, how), 0 if how == "pairs" else 3

    def _options(self, align: Align, rounds: int) -> Options:
        return Options(
            make=self._estimator,
            numeric=self._is_regressor(),
            align=align,
            rounds=rounds,
            n_components=int(self.n_components),
            beta=float(self.similarity),
            theta=float(self.linearity),
            scale=bool(self.scale),
            seed=seed_of(self.random_state),
        )

    def _estimator(self, n_rows: int = 10) -> Any:
        if self.estimator is None:
            return KNeighborsClassifier(min(10, n_rows))
        return clone(self.estimator)

    def _is_regressor(self) -> bool:
        return self.estimator is not None and is_regressor(self.estimator)

    def _check_learner(self) -> None:
        learner = self.estimator
        if learner is not None and not (is_classifier(learner) or is_regressor(learner)):
            raise TypeError(f"estimator: expected a classifier or a regressor, got {learner!r}")

    # -- using -----------------------------------------------------------------------------

    def predict(self, X: Any) -> np.ndarray:
        """The class or number of each target row (of `Sources`, in the order of ids)."""
        return self._model().predict(self._read(X))

    @available_if(_gives_probabilities)
    def predict_proba(self, X: Any) -> np.ndarray:
        """The probability of each class."""
        return self._model().predict_proba(self._read(X))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The accuracy, or R² of numbers, over the rows that ``y`` has labels for."""
        predictions = self.predict(X)
        of_rows = partial(labels_of_rows, X)
        if isinstance(X, Sources):
            of_rows = partial(of_ids, X, self._target_rows(X)[1])
        values, present = read_outputs(of_rows(y), "y")
        measure = r2_score if self._is_regressor() else accuracy_score
        weights = None if sample_weight is None else np.asarray(of_rows(sample_weight))[present]
        return float(measure(values, predictions[present], sample_weight=weights))

    def project(self, X: Any) -> np.ndarray:
        """Target rows in the common space, whether or not the source was refused."""
        X = self._read(X)
        if self.transfer_ is None:
            raise ValueError(f"expected a source that can be aligned, got none: {self.reason_}")
        return self.transfer_.side.project(X)

    def _model(self) -> Any:
        check_is_fitted(self, "refused_")
        return self.target_estimator_ if self.refused_ else self.transfer_

    def _read(self, X: Any) -> np.ndarray:
        check_is_fitted(self, "refused_")
        if isinstance(X, Sources):
            check_form(X, hasattr(self, "reference_"))
            X = self._target_rows(X)[0]
        X = validate_data(self, X, dtype=np.float64, reset=False, ensure_all_finite="allow-nan")
        return filled(X, self._means)

    def _target_rows(self, X: Sources) -> tuple[np.ndarray, np.ndarray]:
        """The rows of the table that was the target in fit, and the index of their ids."""
        name = self.reference_.names[0]
        if name not in X.names:
            raise ValueError(f"expected the target of fit, table {name!r}, got {[*X.names]}")
        return target_rows(X.like(self.reference_))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        base_tags = get_tags(self._estimator())
        tags.estimator_type = base_tags.estimator_type
        tags.classifier_tags = base_tags.classifier_tags
        tags.regressor_tags = base_tags.regressor_tags
        if tags.classifier_tags is not None:
            tags.classifier_tags.multi_label = False
        tags.target_tags.required = True
        tags.input_tags.allow_nan = True
        return tags


# -- what HeMap is given: outputs with gaps, a source, pairs ------------------------------------


def of_sources(X: Sources, y: Any, outputs: Any) -> tuple[np.ndarray, Any, Any, Any]:
    """The first table's rows with their labels, and the others as sources with pairs."""
    if y is None:
        raise ValueError("HeMap requires y to be passed, but the target y is None")
    if not X.names:
        raise ValueError("expected at least one table, got graphs only")
    check_names("source", outputs, X.names[1:])
    rows, ids = target_rows(X)
    tables, pairs, everyone = {}, {}, np.arange(len(X))
    labels = of_ids(X, everyone, y)
    for name in X.names[1:]:
        has_own = outputs is not None and name in outputs
        source_labels = of_ids(X, everyone, outputs[name]) if has_own else labels
        index = X.rows(name)
        has_label = np.array([source_labels[i] is not None for i in index], dtype=bool)
        if not has_label.any():
            continue  # a table without outputs has nothing to hand on
        row = position_of_each(index[has_label], len(X))
        tables[name] = _dense(cells(X, name))[has_label], source_labels[index[has_label]]
        pairs[name] = row[ids] if (row[ids] >= 0).any() else None
    return rows, labels[ids], tables or None, pairs


def check_names(what: str, by_name: Any, sources: Sequence[str]) -> None:
    """Raise for what is given by the name of a source, but is of none."""
    if by_name is not None and not isinstance(by_name, Mapping):
        raise TypeError(
            f"{what}: expected a mapping of source to its {_HELD[what]}, got {by_name!r}"
        )
    for name in by_name or ():
        if name not in sources:
            raise ValueError(f"{what}: expected names of sources, {[*sources]}, got {name!r}")


def target_rows(sources: Sources) -> tuple[np.ndarray, np.ndarray]:
    """The rows of the first table in the order of ids, and the index of these."""
    index = sources.rows(sources.names[0])
    order = np.argsort(index)
    return _dense(cells(sources, sources.names[0]))[order], index[order]


def of_ids(sources: Sources, rows: np.ndarray, y: Any) -> np.ndarray:
    """The labels of some ids by index, None where there is none."""
    out = np.full(len(sources), None, dtype=object)
    index, labels = read_labels(sources.ids, y)
    out[index] = labels.tolist()
    return out[rows]


def _dense(matrix: Any) -> np.ndarray:
    return matrix.toarray() if sp.issparse(matrix) else matrix


def filled(X: np.ndarray, means: np.ndarray) -> np.ndarray:
    """Rows with gaps at the means of their columns."""
    return np.where(np.isnan(X), means, X)


def read_target(y: Any, n_rows: int, numeric: bool) -> tuple[np.ndarray, np.ndarray]:
    """The labels that are there, and which rows have one."""
    if y is None:
        raise ValueError("HeMap requires y to be passed, but the target y is None")
    values, present = read_outputs(y, "y")
    if len(present) != n_rows:
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: {[n_rows, len(present)]}"
        )
    if not present.any():
        raise ValueError("y: expected a label for some of the rows, got None or NaN everywhere")
    if numeric:
        return target_numbers(values, "a classifier"), present
    if type_of_target(values) == "continuous":
        raise ValueError(
            "Unknown label type: expected classes for a classifier, got numbers; give a regressor, "
            "as in HeMap(Ridge())"
        )
    check_class_labels(values)
    return values, present


def read_outputs(y: Any, name: str) -> tuple[np.ndarray, np.ndarray]:
    """The outputs that are not missing, and where they are."""
    values = target_array(y)
    if values.dtype.kind == "O":
        labels = [canonical(value) for value in values.tolist()]
        present = np.array([label is not None for label in labels], bool)
        return target_array([label for label in labels if label is not None]), present
    present = values == values if values.dtype.kind == "f" else np.ones(len(values), bool)
    values = values[present]
    if values.dtype.kind == "f":
        assert_all_finite(values, input_name=name)
    return values, present


def read_source(source: Any, target_numeric: bool, name: str = "source") -> SourceRows:
    """The rows and outputs of a source, gaps at the means of their columns.

    Fractions are numbers; whole numbers are, too, if the target's outputs are numbers.
    """
    try:
        X, v = source
    except (TypeError, ValueError):
        raise TypeError(
            f"{name}: expected a pair (rows, outputs), got {type(source).__name__}"
        ) from None
    v = labels_of_rows(X, v)
    with numbers_only(X, EMBED_FIRST, name):
        X = check_array(
            X,
            dtype=np.float64,
            input_name=name,
            ensure_min_samples=0,
            ensure_all_finite="allow-nan",
        )
    values, present = read_outputs(v, f"the outputs of {name}")
    if len(X) != len(present):
        raise ValueError(f"{name}: expected {len(X)} outputs, one per row, got {len(present)}")
    if not len(X):
        raise ValueError(f"{name}: expected rows, got none; leave it out")
    if not present.all():
        row = np.flatnonzero(~present)[0]
        raise ValueError(f"{name}: expected an output of row {row}, got null; leave such rows out")
    X = filled(X, column_means(X))
    numbers = values.dtype.kind in "iuf"
    numeric = numbers and (target_numeric or type_of_target(values) == "continuous")
    values = target_numbers(values, "a classifier", name) if numeric else values
    return SourceRows(X, values, numeric)


def read_pairs(pairs: Any, n_rows: int, n_source: int) -> np.ndarray | None:
    """The source row of each target row, -1 for none."""
    if pairs is None:
        return None
    pairs = np.asarray(pairs)
    if pairs.dtype.kind not in "iu":
        raise TypeError(
            f"pairs: expected row numbers of the source (-1 for none), got {pairs.dtype}; "
            "pandas.Index(source_ids).get_indexer(ids) turns ids into row numbers"
        )
    if pairs.shape != (n_rows,):
        raise ValueError(f"pairs: expected shape ({n_rows},), got {pairs.shape}")
    wrong = (pairs < -1) | (pairs >= n_source)
    if wrong.any():
        raise ValueError(
            f"pairs[{np.flatnonzero(wrong)[0]}]: expected a source row from 0 to {n_source - 1}, "
            f"or -1 for none, got {pairs[wrong][0]}"
        )
    return pairs.astype(np.int64)


# -- the guard: a source is used only if it helps rows whose labels were held back ---------------
#
# The thesis calls a transfer "too risky" when few source rows are selected; that says nothing of
# the labels. Here the labeled target rows are dealt into folds; each is predicted by a transfer
# that was aligned, projected and learned without it, and by three rivals without the source. A
# source of noise may beat these, too: its class means are turned towards the target's, which makes
# a good learner of few labels. But then so do copies of it whose outputs are shuffled; a source
# without anything to tell is one of them, and comes first with probability 1/20.
#
# Of classes the loss is the squared error of the probabilities (Brier 1950), not the share of wrong
# rows: ten or twenty rows are wrong or right in few ways, and copies then do as well by chance.


@storable
class SourceDecision(NamedTuple):
    """Whether the source is refused, why, and the mean held-out losses it rests on."""

    refused: bool
    reason: str
    losses: dict[str, float]


class Attempt(NamedTuple):
    """What became of one source: the verdict, how it was aligned, and the transfer."""

    verdict: SourceDecision
    alignment: str | None
    transfer: Transfer | None

    def rank(self) -> tuple[bool, float]:
        """Order attempts: those let in first, then by held-out loss."""
        return self.verdict.refused, self.verdict.losses.get("transfer", np.inf)


def judge(
    options: Options,
    target: TargetRows,
    source: SourceRows,
    n_folds: int,
    n_sources: int = 1,
    *,
    min_labels: int = 10,
    level: float = 0.05,
    max_rows: int = 1_000,
) -> SourceDecision:
    """Refuse unless the transfer beats every rival by a standard error, and all shuffled copies."""
    n = len(target.y)
    if n < max(min_labels, n_folds):
        return SourceDecision(True, f"{n} labeled rows are too few to judge the source", {})
    target, source = fewer(target, source, max_rows)
    folds = fold_numbers(target.y, n_folds, np.random.RandomState(options.seed))
    losses, transfers = held_out_losses(options, target, source, folds)
    gains = losses[1:] - losses[0]
    errors = standard_errors(gains)
    figures = dict(zip(("transfer", *_RIVALS), losses.mean(axis=1).tolist(), strict=True))
    figures |= {f"{rival}_error": float(e) for rival, e in zip(_RIVALS, errors, strict=True)}
    if not np.all(gains.mean(axis=1) > errors):
        return SourceDecision(True, f"no clear gain: {_reason(figures, options.numeric)}", figures)
    # One of many sources comes first more easily: each has to beat as many more copies.
    n_copies = int(np.ceil(n_sources / level)) - 1
    limit = float(losses[0].sum())
    for what, permuted in shuffled(target, source, n_copies, options.seed):
        same_space = transfers if what == "outputs" and ignores_outputs(options) else None
        if _does_as_well(options, permuted, folds, limit, same_space):
            text = f"no better than with {what} shuffled"
            return SourceDecision(True, f"{text}: {_reason(figures, options.numeric)}", figures)
    text = f"the source helps: {_reason(figures, options.numeric)}"
    return SourceDecision(False, f"{text}; better than all {n_copies} shuffled copies", figures)


def ignores_outputs(options: Options) -> bool:
    """Whether the common space is the same whatever the source's outputs are."""
    return options.theta == 1 and getattr(options.align, "args", None) == ("pairs",)


def shuffled(
    target: TargetRows, source: SourceRows, n_copies: int, seed: int
) -> Iterator[tuple[str, tuple[TargetRows, SourceRows]]]:
    """Yield copies that have nothing to tell: of shuffled outputs, and of shuffled pairs."""
    rng = np.random.RandomState(seed)
    for _ in range(n_copies):
        yield "outputs", (target, source._replace(v=rng.permutation(source.v)))
        if target.pairs is not None:
            yield "pairs", (target._replace(pairs=rng.permutation(target.pairs)), source)


def _does_as_well(
    options: Options,
    copy: tuple[TargetRows, SourceRows],
    folds: np.ndarray,
    limit: float,
    same_space: Sequence[Transfer] | None,
) -> bool:
    """Whether held-out losses with a source sum up to no more than a limit.

    ``same_space`` are transfers of each fold in the same common space, of which only the learner is
    to be trained again.
    """
    total = 0.0
    for fold in range(int(folds.max()) + 1):
        held = _Held.of(copy[0], copy[1], folds == fold)
        if same_space is None:
            transfer = Transfer(options, held.target, held.source)
        else:
            transfer = same_space[fold].relearned(options, held.target, held.source)
        total += _losses(_answer(options, transfer, held.asked), held.right).sum()
        if total > limit + 1e-9 * abs(limit):
            return False  # the other folds cannot make it better
    return True


def fewer(target: TargetRows, source: SourceRows, max_rows: int) -> tuple[TargetRows, SourceRows]:
    """Some of the rows, evenly, labeled ones first and pairs together: enough to judge."""
    if max(len(target.X), len(source.X)) <= max_rows:
        return target, source
    labeled, free = np.flatnonzero(target.labeled), np.flatnonzero(~target.labeled)
    labeled_rows = _evenly(len(labeled), max_rows // 2)
    rows = np.sort(
        np.append(labeled[labeled_rows], free[_evenly(len(free), max_rows - len(labeled_rows))])
    )
    others, pairs = _evenly(len(source.X), max_rows), None
    if target.pairs is not None:
        partners = np.setdiff1d(target.pairs[rows], [-1])
        unpaired = np.setdiff1d(np.arange(len(source.X)), partners)
        others = np.sort(
            np.append(partners, unpaired[_evenly(len(unpaired), max_rows - len(partners))])
        )
        pairs = _pairs_among(others, target.pairs[rows], len(source.X))
    smaller = TargetRows(target.X[rows], target.y[labeled_rows], target.labeled[rows], pairs)
    return smaller, SourceRows(source.X[others], source.v[others], source.numeric)


def _pairs_among(rows: np.ndarray, pairs: np.ndarray, n_source: int) -> np.ndarray:
    """Pairs with some of the source rows, -1 where the partner is none of them."""
    return position_of_each(rows, n_source + 1)[pairs]  # the last one answers -1, no partner


def _evenly(n: int, max_rows: int) -> np.ndarray:
    return np.linspace(0, n - 1, min(n, max(max_rows, 0))).astype(int) if n else np.zeros(0, int)


def standard_errors(gains: np.ndarray) -> np.ndarray:
    """The standard error of each mean gain over rows, wider the fewer they are.

    One standard error of so many rows is exceeded by chance as often as one of very many (Student
    1908): a single row that does better is not enough. Folds share training rows, which makes it a
    rule of thumb; the stated rate rests on the copies alone.
    """
    n = gains.shape[1]
    return gains.std(axis=1, ddof=1) / np.sqrt(n) * stdtrit(n - 1, ndtr(1.0))


def held_out_losses(
    options: Options, target: TargetRows, source: SourceRows, folds: np.ndarray
) -> tuple[np.ndarray, list[Transfer]]:
    """The losses of all labeled rows, by the transfer and its rivals, and the transfers."""
    losses = np.empty((1 + len(_RIVALS), len(folds)))
    transfers = []
    for fold in range(int(folds.max()) + 1):
        held = _Held.of(target, source, folds == fold)
        transfers.append(Transfer(options, held.target, held.source))
        losses[:, folds == fold] = _fold_losses(options, held, transfers[-1])
    return losses, transfers


def _fold_losses(options: Options, held: _Held, transfer: Transfer) -> np.ndarray:
    """The losses of held-out rows: by the transfer and by its rivals."""
    rows, y = held.target.X[held.target.labeled], held.target.y
    target_only = options.make(len(y)).fit(rows, y)
    answers = [
        _answer(options, transfer, held.asked),
        _answer(options, target_only, held.asked),
        _answer(options, transfer.target_learner, transfer.side.project(held.asked)),
    ]
    prior: Any = DummyRegressor()
    if not options.numeric:
        # The commonest class is as sure of itself as the learner: a tree always is.
        sure = np.isin(answers[0].values, (0, 1)).all()
        prior = DummyClassifier(strategy="most_frequent" if sure else "prior")
    answers.append(_answer(options, prior.fit(rows, y), held.asked))
    return np.array([_losses(answer, held.right) for answer in answers])


class _Answer(NamedTuple):
    """Numbers, or the probability of each class and what these classes are."""

    values: np.ndarray
    classes: np.ndarray | None


def _answer(options: Options, model: Any, X: np.ndarray) -> _Answer:
    """What a learner or a transfer says of rows."""
    if options.numeric:
        return _Answer(model.predict(X), None)
    return _Answer(probabilities(model, X), model.classes_)


def _losses(answer: _Answer, right: np.ndarray) -> np.ndarray:
    """The squared error of an answer for each row: of numbers, or half that of probabilities.

    Half of it is 1 for a row that is wrong for sure, as an error is.
    """
    values, classes = answer
    if classes is None:
        return (values - right) ** 2
    hits = right[:, None] == classes
    return (np.sum((values - hits) ** 2, axis=1) + ~hits.any(axis=1)) / 2


class _Held(NamedTuple):
    """Labeled rows that are held out, their labels, and what is left of target and source.

    Held-out rows leave the target altogether, and their partners the source: a row's own label
    must not come back to it through a pair.
    """

    asked: np.ndarray
    right: np.ndarray
    target: TargetRows
    source: SourceRows

    @classmethod
    def of(cls, target: TargetRows, source: SourceRows, held: np.ndarray) -> _Held:
        """Hold some of the labeled rows out."""
        rows, pairs = np.flatnonzero(target.labeled)[held], target.pairs
        stays = np.ones(len(target.X), bool)
        stays[rows] = False
        if pairs is not None:
            unpaired = np.setdiff1d(np.arange(len(source.X)), pairs[rows])
            pairs = _pairs_among(unpaired, pairs[stays], len(source.X))
            source = SourceRows(source.X[unpaired], source.v[unpaired], source.numeric)
        left = TargetRows(target.X[stays], target.y[~held], target.labeled[stays], pairs)
        return cls(target.X[rows], target.y[held], left, source)


def _reason(figures: dict[str, float], numeric: bool) -> str:
    what = "squared error" if numeric else "squared error of probabilities"
    return (
        f"held-out {what} {figures['transfer']:.3g} with the source; without it "
        f"{figures['target']:.3g} (standard error of the difference "
        f"{figures['target_error']:.2g}), "
        f"in the common space {figures['projected']:.3g} ({figures['projected_error']:.2g}), "
        f"by {'the mean' if numeric else 'shares of classes'} alone {figures['prior']:.3g} "
        f"({figures['prior_error']:.2g})"
    )
