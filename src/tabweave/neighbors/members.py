"""Members: which variant of the space, and how many neighbours, foretell held-out rows best.

The rows are cut into folds. Those of a fold are compared with all others in the space that the
others teach each member of the family of :class:`~tabweave.SupervisedWeave`; scores by member and
number of neighbours come in, and the best ones, with factors for the weights of columns, go out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.optimize import minimize
from sklearn.base import clone

from tabweave._compat import blas_threads, in_threads, one_blas_thread
from tabweave.columns.table import Table, canonical_codes, distinct_rows, take_rows
from tabweave.embed.supervised import FOLDS, SupervisedWeave
from tabweave.engines.reading import start_counts
from tabweave.neighbors.local_weights import ColumnCoordinates, column_edges, part_distances
from tabweave.neighbors.votes import Neighbors, Targets, TrainingTargets, kth_distance
from tabweave.space.scan import Queries, Ranking, gap_axes
from tabweave.space.space import Joined, Space, Summed, total_gaps

NEIGHBORS = (3, 5, 9, 15, 25, 40, 80, 160, 320)
POWERS = (0.5, 1.0)  # of the weights of columns
DISCRIMINANTS = (0.0, 0.3, 1.0)  # how much the discriminant counts
BOOSTED = (0.0, 0.0)  # Stands for the boosted space, which has neither powers nor a discriminant.
LINEAR = (0.0, 0.5, 1.0)  # shares of the linear prediction, for numbers
# Most rows among which neighbours are looked for when members are compared.
REFERENCE_ROWS = 10_000
# Most distances by column from which the factors of columns are learned.
MAX_FACTOR_DISTANCES = 4_000_000

Member = tuple[float, float]  # the power of the weights of columns, and the discriminant


class CVFold(NamedTuple):
    """Held-out rows by which members are compared.

    Attributes
    ----------
    targets : TrainingTargets
        Those of the other rows.
    lines : tuple of ndarray or None
        The linear predictions for the other rows and for the held-out ones, if there are any.
    neighbors : dict
        By member, the distances and who is near.
    """

    targets: TrainingTargets
    lines: tuple[np.ndarray, np.ndarray] | None
    neighbors: dict[Member, tuple[FoldDistances, Neighbors]]

    def tuned(self, member: Member, factors: np.ndarray) -> CVFold:
        """Who is near by one member whose columns count by factors."""
        distances, neighbors = self.neighbors[member]
        distances = distances.tuned(factors)
        (neighbors,) = distances.nearest([member[1]], neighbors.nodes.shape[1])
        return self._replace(neighbors={member: (distances, neighbors)})


class FoldDistances:
    """Distances of held-out rows to others, by the columns and by the discriminant.

    Parameters
    ----------
    space : Joined
        What was taught without the held-out rows; its discriminant, which is last, counts as
        its columns do.
    table, query_rows, others
        All rows, and the numbers of the held-out ones and of those they are compared with.
    """

    def __init__(
        self, space: Joined, table: Table, query_rows: np.ndarray, others: np.ndarray
    ) -> None:
        self.query_rows = query_rows
        parts = space.parts()
        gapped = [total_gaps(part, table) is not None for part in parts]
        self.inner_widths = [part.width for part in parts]
        self.widths = [
            part.width + 2 * has_gaps for part, has_gaps in zip(parts, gapped, strict=True)
        ]
        self.vectors = [
            _vectors(space, parts, gapped, take_rows(table, rows), asks=asks)
            for rows, asks in ((query_rows, True), (others, False))
        ]
        last = space.spaces[-1]
        self.columns_end = sum(self.widths) - (last.width if isinstance(last, Summed) else 0)

    def nearest(self, shares: Sequence[float], k: int) -> list[Neighbors]:
        """The k nearest, where the discriminant counts so much, for each share."""
        left, right = self.vectors
        end = self.columns_end
        columns = squared_distances(left[:, :end], right[:, :end])
        discriminant = squared_distances(left[:, end:], right[:, end:])

        def nearest(share: float) -> Neighbors:
            squared = columns + share * discriminant if share else columns
            return Neighbors(self.query_rows, *smallest_entries(squared, k))

        return in_threads(nearest, shares)

    def tuned(self, factors: np.ndarray) -> FoldDistances:
        """Distances to which columns, and the discriminant, count by factors."""
        out, roots = copy(self), np.ones(len(self.widths))
        roots[: len(factors)] = np.sqrt(factors)
        scale = np.repeat(roots, self.widths).astype(np.float32)
        out.vectors = [vectors * scale for vectors in self.vectors]
        return out

    def parts(self, neighbors: Neighbors, share: float) -> np.ndarray:
        """Squared distances of each column, and of a discriminant that counts so."""
        left, right = self.vectors
        edges = column_edges(self.widths)
        has_discriminant = self.columns_end < edges[-1]
        n_parts = len(self.widths) - (has_discriminant and not share)
        out = np.empty((*neighbors.nodes.shape, n_parts), np.float32)
        part_distances(left, right, neighbors.nodes, edges[: n_parts + 1], out)
        if has_discriminant and share:
            out[..., -1] *= share
        return out

    def reranked(
        self, neighbors: Neighbors, targets: TrainingTargets, share: float, strength: float
    ) -> Neighbors:
        """Neighbors by columns that are weighted anew around each row."""
        # As a search has them: for others numba would compile the same loops again.
        left, right = (vectors.astype(np.float64) for vectors in self.vectors)
        squared, nodes = neighbors.squared.astype(np.float64), np.ascontiguousarray(neighbors.nodes)
        neighbors = neighbors._replace(squared=squared, nodes=nodes)
        widths, inner_widths, scales = self.widths, self.inner_widths, np.ones(len(self.widths))
        if self.columns_end < sum(widths):
            scales[-1] = share
            if not share:  # what counts nothing has no weight
                widths, inner_widths, scales = widths[:-1], inner_widths[:-1], scales[:-1]
        columns = ColumnCoordinates.of_vectors(right, widths, inner_widths)
        queries = Queries.of([], [], left)
        return columns.reranked(neighbors, targets, queries, strength, scales)[0]


def _vectors(
    space: Space, parts: Sequence[Space], gapped: Sequence[bool], table: Table, *, asks: bool
) -> np.ndarray:
    """Coordinates of rows, and behind those of a part the ones of missing cells."""
    vectors = space.coordinates(table, dtype=np.float32)
    ends = np.cumsum([part.width for part in parts])[np.array(gapped, bool)]
    if not len(ends):
        return vectors
    gaps = (
        total_gaps(part, table) for part, has_gaps in zip(parts, gapped, strict=True) if has_gaps
    )
    axes = [gap_axes(np.zeros(len(vectors)) if g is None else g, asks=asks) for g in gaps]
    return np.insert(vectors, np.repeat(ends, 2), np.hstack(axes), axis=1)


def squared_distances(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Squared distances by products; small ones may be rounded."""
    with blas_threads(x.size * len(y)):
        out = (-2 * x) @ y.T
    out += (x**2).sum(axis=1)[:, None]
    out += (y**2).sum(axis=1)
    return np.maximum(out, 0, out=out)


def smallest_entries(squared: np.ndarray, k: int) -> Ranking:
    """Smallest k entries of each line, in order, and where they are.

    Entries are float32 and not negative, so that their bits are in their order: with the number of
    the entry behind them they are whole numbers, none equal to another, which NumPy sorts fast.
    """
    k, half = min(k, squared.shape[1]), np.uint64(32)
    keys = np.abs(squared).view(np.uint32).astype(np.uint64) << half
    keys |= np.arange(squared.shape[1], dtype=np.uint64)
    if k < squared.shape[1]:
        keys.partition(k - 1, axis=1)
    keys = np.sort(keys[:, :k], axis=1)
    entries = keys & ((np.uint64(1) << half) - np.uint64(1))
    return (keys >> half).astype(np.uint32).view(np.float32), entries.astype(np.int64)


NearByMember = dict[Member, tuple[FoldDistances, Neighbors]]


# -- comparing members --------------------------------------------------------------------------


def member_of(embedder: SupervisedWeave, power: float, discriminant: float) -> SupervisedWeave:
    """Another member of the family of an embedder, learned from the same counts."""
    model = clone(embedder).set_params(weight_power=power, discriminant=discriminant)
    for name in ("target_", "_cache"):
        setattr(model, name, getattr(embedder, name))
    return start_counts(model, embedder.counts_).learn()


def cv_folds(
    embedder: SupervisedWeave,
    table: Table,
    targets: Targets,
    members: Sequence[Member],
    n_validation: int,
    n_neighbors: int,
    line: Callable[[np.ndarray], Callable[[Table], np.ndarray] | None],
) -> list[CVFold]:
    """Held-out rows, and the ones near to them as others teach each member.

    ``line`` makes linear predictions from counts of values with classes, if there are any; scores
    of an additive model come in their place.
    """
    # The discriminant of these models counts as their columns do.
    powers = list(dict.fromkeys(power for power, _ in members))
    of_powers = in_threads(lambda power: member_of(embedder, power, 1.0), powers)
    models = dict(zip(powers, of_powers, strict=True))

    def fold_of(held_out: tuple[np.ndarray, Any]) -> CVFold:
        part, pairs = held_out

        def near(power: float, query_rows: np.ndarray, others: np.ndarray) -> NearByMember:
            model = models[power].taught_by(pairs)
            distances = FoldDistances(model, table, query_rows, others)
            shares = [share for p, share in members if p == power]
            found = zip(shares, distances.nearest(shares, n_neighbors), strict=True)
            return {(power, share): (distances, nearest) for share, nearest in found}

        def near_all(query_rows: np.ndarray, others: np.ndarray) -> NearByMember:
            parts = in_threads(lambda power: near(power, query_rows, others), list(models))
            return {member: found for part in parts for member, found in part.items()}

        predicted = targets.scores
        if predicted is None and (predict := line(pairs)) is not None:
            predicted = predict(table)
        return held_out_fold(table, targets, part, n_validation, predicted, near_all)

    held_out = embedder.left_out(table, targets.values, targets.weight)
    return in_threads(fold_of, list(held_out))


def boosted_folds(
    spaces: Sequence[tuple[np.ndarray, Joined]],
    table: Table,
    targets: Targets,
    n_validation: int,
    n_neighbors: int,
) -> list[CVFold]:
    """The same in boosted spaces: rows, and the space of the model that has not seen them."""

    def fold_of(held_out: tuple[np.ndarray, Joined]) -> CVFold:
        part, space = held_out

        def near(query_rows: np.ndarray, others: np.ndarray) -> NearByMember:
            distances = FoldDistances(space, table, query_rows, others)
            (nearest,) = distances.nearest([0.0], n_neighbors)
            return {BOOSTED: (distances, nearest)}

        return held_out_fold(table, targets, part, n_validation, targets.scores, near)

    return in_threads(fold_of, [(part, space) for part, space in spaces if len(part)])


def held_out_fold(
    table: Table,
    targets: Targets,
    part: np.ndarray,
    n_validation: int,
    predicted: np.ndarray | None,
    near: Callable[[np.ndarray, np.ndarray], NearByMember],
) -> CVFold:
    """A fold of the first rows of a part, which are compared with the rows outside of it."""
    heads, node_of = distinct_rows(canonical_codes(table))
    query_rows = part[: -(-n_validation // FOLDS)]
    others = np.setdiff1d(np.arange(table.n_rows), part)
    nodes, others_node = np.unique(node_of[others], return_inverse=True)
    lines = None if predicted is None else (predicted[others], predicted[query_rows])
    voters = TrainingTargets(targets.take(others), others_node, len(nodes))
    return CVFold(voters, lines, near(query_rows, heads[nodes]))


def fold_answers(
    folds: Sequence[CVFold],
    member: Member,
    ks: Sequence[int],
    strength: float,
    vote: Callable[[Neighbors, CVFold, Sequence[int]], dict[Any, Any]],
) -> dict[Any, tuple[np.ndarray, Any]]:
    """Held-out rows and what they get from a member, by what ``vote`` tells apart."""

    def of_fold(fold: CVFold) -> tuple[np.ndarray, dict[Any, Any]]:
        distances, neighbors = fold.neighbors[member]
        if strength:
            first = (part[:, : n_reranked(ks)] for part in neighbors[1:])
            neighbors = Neighbors(neighbors.query_rows, *first)
            neighbors = distances.reranked(neighbors, fold.targets, member[1], strength)
        return neighbors.query_rows, vote(neighbors, fold, ks)

    parts: dict[Any, list[tuple[np.ndarray, Any]]] = {}
    for query_rows, answers_of in in_threads(of_fold, folds):
        for key, answers in answers_of.items():
            parts.setdefault(key, []).append((query_rows, answers))
    out = {}
    for key, pairs in parts.items():
        rows, votes = zip(*pairs, strict=True)
        stacked = sparse.vstack(votes, format="csr") if sparse.issparse(votes[0]) else None
        out[key] = np.concatenate(rows), np.concatenate(votes) if stacked is None else stacked
    return out


def candidate_ks(n: int) -> tuple[int, ...]:
    """Numbers of neighbours that are tried: of those that all rows are, the first."""
    return tuple(k for k, smaller in zip(NEIGHBORS, (0, *NEIGHBORS), strict=False) if smaller < n)


def n_reranked(ks: Sequence[int]) -> int:
    """How many nodes are ranked anew by local weights: 100, or as many more as vote up to 100."""
    return max(100, max(ks) + min(max(ks), 100))


def best_member(
    scores: dict[Any, dict[int, float]],
) -> tuple[Any, tuple[int, ...], list[dict[str, Any]]]:
    """Member whose three best numbers of neighbours score highest, these, and all scores."""
    ranking = []
    for member, by_k in scores.items():
        best = sorted(by_k, key=lambda k: (-by_k[k], k))[:3]
        score = float(np.mean([by_k[k] for k in best]))
        ranking.append((score, member, tuple(sorted(best))))
    ranking.sort(key=lambda entry: -entry[0])
    names = ("weight_power", "discriminant", "linear")
    table = [
        {**dict(zip(names, member, strict=False)), "n_neighbors": ks, "score": score}
        for score, member, ks in ranking
    ]
    return ranking[0][1], ranking[0][2], table


def learning_bytes(values: np.ndarray, n_classes: int, n_rows: int) -> int:
    """About what it takes to learn classes from columns of so many values.

    Counts of values with classes and what is made of them, 16 arrays of floats at most; the
    coordinates of classes; those of the rows of five folds, for two powers of the weights and when
    they are compared; and those of all rows.
    """
    total = int(values.sum())
    width = int(np.minimum(values, n_classes).sum()) + min(total, n_classes)
    counted = 16 * 8 * total * n_classes + 3 * 8 * n_classes * min(total, n_classes)
    return counted + 3 * FOLDS * 4 * min(n_rows, REFERENCE_ROWS) * width + 3 * 8 * n_rows * width


# -- factors of columns, for numbers -------------------------------------------------------------


def column_factors(
    folds: Sequence[CVFold],
    member: tuple[float, float, float],
    ks: Sequence[int],
    targets: Targets,
    vote_sharpness: float,
) -> np.ndarray:
    """By what the columns of a member, and its discriminant, should be multiplied."""
    power, share, linear = member
    pairs = [fold.neighbors[power, share] for fold in folds]
    n_parts = len(pairs[0][0].widths)
    n_rows = sum(len(neighbors.query_rows) for _, neighbors in pairs)
    width = min(160, max(MAX_FACTOR_DISTANCES // (n_rows * n_parts), 20))
    width = min(width, *(neighbors.nodes.shape[1] for _, neighbors in pairs))
    n_fold_rows = MAX_FACTOR_DISTANCES // (width * n_parts * len(folds)) + 1
    k = max(15, ks[len(ks) // 2])
    parts = []
    for fold, (distances, neighbors) in zip(folds, pairs, strict=True):
        assert fold.lines is not None
        neighbors = Neighbors(*(part[:n_fold_rows] for part in neighbors))
        n_held = fold.targets.sizes[neighbors.nodes].cumsum(axis=1)
        farthest = kth_distance(neighbors.squared, n_held, k)
        rows, squared, nodes = neighbors
        nodes = nodes[:, :width]
        others_line, rows_line = fold.lines
        residuals = fold.targets.means(fold.targets.targets.values - linear * others_line)[nodes]
        truth = targets.values[rows] - linear * rows_line[:n_fold_rows]
        by_part = distances.parts(Neighbors(rows, squared[:, :width], nodes), share)
        parts.append((by_part, fold.targets.sizes[nodes], residuals, farthest, truth, rows))
    by_part, sizes, residuals, farthest, truth, rows = map(np.concatenate, zip(*parts, strict=True))
    # Most rows may have k twins.
    usual = float(np.median(farthest)) or float(farthest.max()) or 1.0
    sharpness = vote_sharpness / np.where(farthest > 0, farthest, usual)
    return learned_factors(by_part, sizes, residuals, sharpness, truth, targets.take(rows).weight)


def learned_factors(
    parts: np.ndarray,
    sizes: np.ndarray,
    values: np.ndarray,
    sharpness: np.ndarray,
    truth: np.ndarray,
    weight: np.ndarray | None = None,
) -> np.ndarray:
    """``exp(θ)``, by which columns should count for rows to be foretold by those near them.

    The answer to row i is ``Σ_j q_ij v_ij``, ``q_ij ∝ n_j exp(-s_i Σ_a exp(θ_a + θ₀) d_ija)``:
    votes as they are, but without an end. What is minimised is ``½ log`` of the mean squared error
    of n answers, plus ``Σ θ_a² / 2τ²n``: a likelihood, and weights drawn around those of today
    (θ = 0) with a deviation τ = 0.35. θ₀ only makes votes sharper, and is free. Found by L-BFGS and
    rounded, so that the last digits of sums do not matter.

    Parameters
    ----------
    parts : ndarray of shape (rows, near, columns)
        Squared distances d of rows to those near them, by column.
    sizes, values : ndarray of shape (rows, near)
        How many rows n_j a node stands for, and the number v that they have.
    sharpness : ndarray of shape (rows,)
        How fast votes fall with the distance from each row, s.
    truth : ndarray of shape (rows,)
        The numbers of the rows.
    weight : ndarray of shape (rows,), optional
        How many rows each of them counts for.
    """
    n_near, n_columns = parts.shape[1:]
    flat = parts.reshape(len(parts) * n_near, n_columns)
    targets = Targets(truth, weight)
    row_weight, n = (1.0, len(truth)) if weight is None else (weight, float(weight.sum()))
    prior = 1 / (0.35**2 * n)

    def objective(theta: np.ndarray) -> tuple[float, np.ndarray]:
        factors = np.exp(theta[:-1] + theta[-1])
        distances = (flat @ factors.astype(np.float32)).reshape(-1, n_near) * sharpness[:, None]
        votes = sizes * np.exp(distances.min(axis=1, keepdims=True) - distances)
        votes /= votes.sum(axis=1, keepdims=True)
        answers = (votes * values).sum(axis=1)
        error = answers - truth
        mean = max(targets.mean(error**2), 1e-300)
        votes *= (values - answers[:, None]) * (row_weight * error * sharpness / (mean * n))[
            :, None
        ]
        slopes = -(votes.ravel().astype(np.float32) @ flat) * factors
        slopes = np.append(slopes + prior * theta[:-1], slopes.sum())
        return np.log(mean) / 2 + prior / 2 * float(theta[:-1] @ theta[:-1]), slopes

    with one_blas_thread():
        best = minimize(
            objective,
            np.zeros(n_columns + 1),
            jac=True,
            method="L-BFGS-B",
            bounds=[(-6.0, 6.0)] * n_columns + [(-3.0, 3.0)],
            options={"maxiter": 30},
        )
    return np.asarray(np.exp(np.round(best.x[:-1], 2)))


def reliability(guess: np.ndarray, truth: np.ndarray, weight: np.ndarray | None = None) -> float:
    """Slope b of 0 to 1 for which ``(truth - b guess)²`` is least on average."""
    if weight is not None:
        guess, truth = np.sqrt(weight) * guess, np.sqrt(weight) * truth
    return float(np.clip(truth @ guess / max(float(guess @ guess), 1e-300), 0, 1))
