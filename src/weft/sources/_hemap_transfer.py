"""One transfer of HeMap: align, project, select, bridge, learn [Shi 2013, Figure 18]."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn.cluster import KMeans

from weft.sources import _hemap_alignment as alignment
from weft.sources import _hemap_outputs as outputs
from weft.sources._hemap_projection import Factor, Frame, embed, linear_map

_ROUNDS = 3
_FOLDS = 3


class Target(NamedTuple):
    """The target's rows, the labels of those that have one, and the source row of each (or -1)."""

    X: np.ndarray
    y: np.ndarray
    labeled: np.ndarray
    pairs: np.ndarray | None


class Source(NamedTuple):
    """The source's rows, their outputs, and whether these are numbers."""

    X: np.ndarray
    v: np.ndarray
    numeric: bool


class Options(NamedTuple):
    """What a user may choose; ``make`` gives an unfitted learner for so many rows."""

    make: Callable[[int], Any]
    numeric: bool
    alignment: str
    n_components: int
    beta: float
    theta: float
    selection: bool
    scale: bool
    seed: int


class Side(NamedTuple):
    """How the rows of one table are projected."""

    frame: Frame
    clusters: Any
    W: np.ndarray

    def features(self, X: np.ndarray) -> np.ndarray:
        """Return the scaled columns, and the row's cluster if clusters are kept."""
        Z = self.frame.apply(X)
        return Z if self.clusters is None else np.hstack([Z, _indicators(self.clusters, Z)])

    def project(self, X: np.ndarray) -> np.ndarray:
        """Return the projected rows."""
        return self.features(X) @ self.W


class Transfer:
    """A fitted transfer: target rows in, predictions out.

    ``learner`` saw source rows too, ``target_learner`` only target rows, in the same space.
    """

    def __init__(self, options: Options, target: Target, source: Source) -> None:
        rng = np.random.RandomState(options.seed)
        self.side, B_T, B_S, self.eigenvalues = _project(options, target, source, rng)
        known = B_T[target.labeled]
        self.target_learner = options.make(len(known)).fit(known, target.y)
        rows = np.arange(len(B_S))
        if options.selection:
            rows = outputs.selected_rows(B_T, B_S, rng)
        self.selected = rows
        self.projected_source = B_S
        self._learn(options, target.y, known, B_S[rows], source.v[rows], source.numeric)

    def _learn(
        self,
        options: Options,
        y: np.ndarray,
        known: np.ndarray,
        B_S: np.ndarray,
        v: np.ndarray,
        v_numeric: bool,
    ) -> None:
        """Eqs. (5.19) and (5.20), or one learner for all rows where the outputs are one."""
        self.bridge: np.ndarray | None = None
        self.classes = None if options.numeric else np.unique(y)
        if not len(B_S):
            self.learner = self.target_learner
            return
        if options.numeric:
            v = outputs.number_bridge(self.target_learner.predict(B_S), v, not v_numeric)
        elif v_numeric or not outputs.same_classes(y, v):
            names, codes = np.unique(
                outputs.quantile_codes(v) if v_numeric else v, return_inverse=True
            )
            seen = outputs.probabilities(self.target_learner, B_S)
            self.bridge = outputs.class_bridge(seen, codes, len(names))
            self.learner = options.make(len(B_S)).fit(B_S, codes)
            return
        rows, values = np.vstack([known, B_S]), np.concatenate([y, v])
        self.learner = options.make(len(rows)).fit(rows, values)
        self.classes = getattr(self.learner, "classes_", None)

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """Eq. (5.19): p(y|x), through the source's classes where those are others."""
        found = outputs.probabilities(self.learner, self.side.project(X))
        return found if self.bridge is None else found @ self.bridge

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return the class or number of each row."""
        if self.bridge is None:
            return self.learner.predict(self.side.project(X))
        assert self.classes is not None
        return self.classes[self.predict_proba(X).argmax(axis=1)]


def _project(
    options: Options, target: Target, source: Source, rng: np.random.RandomState
) -> tuple[Side, np.ndarray, np.ndarray, np.ndarray]:
    """Algorithms 3 and 4, on aligned rows, repeated where the projection betters the alignment."""
    frames = Frame.of(target.X, options.scale), Frame.of(source.X, options.scale)
    T, S = frames[0].apply(target.X), frames[1].apply(source.X)
    clusters, C_T, C_S = _partitions(options, T, source, rng)
    i, j = _align(options, target, source, T, S, rng)
    features_T, features_S = np.hstack([T, C_T]), np.hstack([S, C_S])
    rounds = _ROUNDS if options.alignment in alignment.REFINED else 0
    for remaining in range(rounds, -1, -1):
        F = Factor.of(T[i], S[j], C_T[i], C_S[j], options.beta, options.theta)
        found = embed(F, options.n_components)
        # Eigenvectors all have length 1; like principal components they should weigh as they vary.
        weight = np.sqrt(found.eigenvalues)
        W_T = linear_map(features_T[i], found.B_T) * weight
        W_S = linear_map(features_S[j], found.B_S) * weight
        B_T, B_S = features_T @ W_T, features_S @ W_S
        if remaining:
            i, j = alignment.nearest(B_T, B_S)
    return Side(frames[0], clusters, W_T), B_T, B_S, found.eigenvalues


def _partitions(
    options: Options, T: np.ndarray, source: Source, rng: np.random.RandomState
) -> tuple[Any, np.ndarray, np.ndarray]:
    """Algorithm 4, step 34: target rows in clusters, source rows in classes; nothing if linear."""
    if options.theta == 1:
        return None, np.zeros((len(T), 0)), np.zeros((len(source.X), 0))
    v = outputs.quantile_codes(source.v) if source.numeric else source.v
    names, codes = np.unique(v, return_inverse=True)
    k = min(len(names), len(np.unique(T, axis=0)))
    means = KMeans(k, n_init=5, random_state=rng.randint(2**31 - 1)).fit(T)
    return means, _indicators(means, T), np.eye(len(names))[codes]


def _indicators(means: KMeans, Z: np.ndarray) -> np.ndarray:
    return np.eye(means.n_clusters)[means.predict(Z)]


def _align(
    options: Options,
    target: Target,
    source: Source,
    T: np.ndarray,
    S: np.ndarray,
    rng: np.random.RandomState,
) -> alignment.Aligned:
    if options.alignment == "pairs":
        assert target.pairs is not None
        rows = np.flatnonzero(target.pairs >= 0)
        return rows, target.pairs[rows]
    if options.alignment == "random":
        return alignment.at_random(len(T), len(S), rng)
    codes = outputs.shared_codes(
        target.y, target.labeled, source.v, options.numeric, source.numeric
    )
    if options.alignment == "pc":
        return alignment.by_components(T, S, codes)
    if options.alignment == "cluster":
        return alignment.by_clusters(T, S, codes, rng)
    return alignment.nearest(*_scores(options, target, source, T, S))


def _scores(
    options: Options, target: Target, source: Source, T: np.ndarray, S: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return what a learner of each table's own makes of its rows: a rank, or p(class|row).

    Source rows are scored by learners that did not see them. Classes of other names are compared
    by how frequent they are.
    """
    labeled = T[target.labeled]
    ours = options.make(len(labeled)).fit(labeled, target.y)
    v = np.unique(source.v, return_inverse=True)[1] if options.numeric else source.v
    v = source.v if options.numeric and source.numeric else v
    if options.numeric:
        scores = ours.predict(T), _out_of_fold(options, S, v.astype(float), None)[:, 0]
        ranks = [np.argsort(np.argsort(s, kind="stable"), kind="stable") for s in scores]
        return ranks[0][:, None] / len(T), ranks[1][:, None] / len(S)
    v = outputs.quantile_codes(v) if source.numeric else v
    names = np.unique(v)
    found, theirs = outputs.probabilities(ours, T), _out_of_fold(options, S, v, names)
    if not source.numeric and outputs.same_classes(target.y, v):
        common = np.intersect1d(ours.classes_, names)
        return found[:, np.isin(ours.classes_, common)], theirs[:, np.isin(names, common)]
    k = min(found.shape[1], theirs.shape[1])
    by_size = [P[:, np.argsort(-P.sum(axis=0), kind="stable")[:k]] for P in (found, theirs)]
    return by_size[0], by_size[1]


def _out_of_fold(
    options: Options, S: np.ndarray, v: np.ndarray, names: np.ndarray | None
) -> np.ndarray:
    """Return predictions (or p(name|row)) of each row by a learner of the other folds."""
    folds = outputs.fold_numbers(v, _FOLDS, np.random.RandomState(options.seed))
    out = np.zeros((len(S), 1 if names is None else len(names)))
    for fold in np.unique(folds):
        seen, asked = folds != fold, folds == fold
        learner = options.make(int(seen.sum())).fit(S[seen], v[seen])
        if names is None:
            out[asked, 0] = learner.predict(S[asked])
        else:
            places = np.searchsorted(names, learner.classes_)
            out[np.ix_(asked, places)] = outputs.probabilities(learner, S[asked])
    return out
