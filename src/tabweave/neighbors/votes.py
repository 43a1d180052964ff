"""Votes: what the nearest training rows say of a row, and how much each of them counts.

The targets of training rows and the distances of the nodes near a row come in; weights of nodes,
shares of classes and probabilities go out. A node stands for all training rows that are equal.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from tabweave._compat import in_threads
from tabweave.columns.inputs import check_target, target_array
from tabweave.columns.vocabulary import slices
from tabweave.space.scan import Nodes, Queries, Ranking, nearest_nodes

# Relative difference up to which two squared distances, or two sums of weights, count as equal.
DISTANCE_ROUNDING = 1e-9
FLOORS = (0.001, 0.003, 0.01, 0.03, 0.1)
ADDITIVE_WEIGHTS = tuple(i / 20 for i in range(21))
EXPONENTS = (0.5, 0.6, 0.7, 0.85, 1.0, 1.2, 1.5, 2.0)


class Neighbors(NamedTuple):
    """The nodes nearest to some rows, nearest first.

    Attributes
    ----------
    query_rows : ndarray of shape (rows,)
        The numbers of these rows in the table they come from.
    squared, nodes : ndarray of shape (rows, neighbors)
        Squared distances and numbers of the nodes.
    """

    query_rows: np.ndarray
    squared: np.ndarray
    nodes: np.ndarray


class Targets(NamedTuple):
    """The targets of rows, and how many rows each of them counts for; None: one each.

    Attributes
    ----------
    scores : ndarray of shape (rows, outputs) or None
        What an additive model says of them that has not seen them.
    """

    values: np.ndarray
    weight: np.ndarray | None = None
    scores: np.ndarray | None = None

    def take(self, rows: np.ndarray) -> Targets:
        """Targets of some rows."""
        return Targets(*(None if part is None else part[rows] for part in self))

    def mean(self, numbers: np.ndarray | None = None) -> float:
        """Mean of the targets, or of other numbers of the rows."""
        numbers = self.values if numbers is None else numbers
        return float(
            np.mean(numbers) if self.weight is None else np.average(numbers, weights=self.weight)
        )

    @property
    def n(self) -> int:
        """How many rows they count for; of fractions, the whole part of their sum."""
        if self.weight is None:
            return len(self.values)
        return int(self.weight.sum() + DISTANCE_ROUNDING)


class TrainingTargets:
    """The targets of training rows, gathered in nodes: rows that are equal have the same say.

    Parameters
    ----------
    targets : Targets
        The target of each row: the number of its class, or a number.
    node_of : ndarray
        The node of each row.
    n_nodes : int
        Number of nodes.

    Attributes
    ----------
    sizes : ndarray
        How many rows each node has, or counts for.
    """

    def __init__(self, targets: Targets, node_of: np.ndarray, n_nodes: int) -> None:
        self.targets = targets
        self.node_of = node_of
        self.sizes = np.bincount(node_of, targets.weight, n_nodes)

    def ballots(
        self, neighbors: Neighbors, ks: Sequence[int], sharpness: float
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield for each k the weights and the numbers of the nodes that vote.

        These are the ones that hold k rows, or are as far as the last; lines end where no node of
        any line votes.
        """
        n_held = self.sizes[neighbors.nodes].cumsum(axis=1)
        for k in ks:
            farthest = kth_distance(neighbors.squared, n_held, k)[:, None]
            votes = neighbors.squared <= farthest * (1 + DISTANCE_ROUNDING)
            width = int(votes.sum(axis=1).max(initial=1))
            squared, nodes = neighbors.squared[:, :width], neighbors.nodes[:, :width]
            yield vote_weights(squared, (k,), sharpness, self.sizes[nodes]), nodes

    def weights(self, neighbors: Neighbors, ks: Sequence[int], sharpness: float) -> np.ndarray:
        """Weight of each node near some rows."""
        _, squared, nodes = neighbors
        out = np.empty(squared.shape)

        def weigh(rows: slice) -> None:
            out[rows] = vote_weights(squared[rows], ks, sharpness, self.sizes[nodes[rows]])

        in_threads(weigh, slices(len(out), 1, 512))
        return out

    def means(self, numbers: np.ndarray) -> np.ndarray:
        """Mean of numbers, one for each row, in each node."""
        weight = self.targets.weight
        weighted = numbers if weight is None else numbers * weight
        return np.bincount(self.node_of, weighted, len(self.sizes)) / self.sizes

    @cached_property
    def classes(self) -> Any:
        """The share of each class in each node."""
        classes, weight = self.targets.values, self.targets.weight
        shares = (1 if weight is None else weight) / self.sizes[self.node_of]
        shape = len(self.sizes), int(classes.max()) + 1
        return sparse.csr_array((shares, (self.node_of, classes)), shape)

    def class_votes(
        self, ballots: Sequence[tuple[np.ndarray, np.ndarray]], n_classes: int
    ) -> list[Any]:
        """Each class's share in ballots, which are weights and the nodes they are of.

        Sparse: of thousands of classes few have votes.
        """
        lengths = np.concatenate([np.full(len(nodes), nodes.shape[1]) for _, nodes in ballots])
        starts = np.concatenate([[0], np.cumsum(lengths)])
        weights, nodes = (
            np.concatenate([part.ravel() for part in parts]) for parts in zip(*ballots, strict=True)
        )
        by_node = sparse.csr_array((weights, nodes, starts), (len(lengths), len(self.sizes)))
        votes = by_node @ self.classes
        votes.resize((len(lengths), n_classes))
        votes.sort_indices()
        ends = np.cumsum([len(nodes) for _, nodes in ballots])
        return [votes[begin:end] for begin, end in zip([0, *ends[:-1]], ends, strict=True)]


# -- the nodes that vote ------------------------------------------------------------------------


def nearest_and_ties(nodes: Nodes, sizes: np.ndarray, queries: Queries, k: int) -> Ranking:
    """Squared distances and numbers of the nearest nodes that hold k rows, and of all their ties.

    They come nearest first; lines are filled up with infinity, and node 0. Where a column tells
    every row from every other, all may be equally far: of 1,024 nodes the rest is left out.
    """
    k = min(k, max(int(sizes.sum()), 1))
    width, max_width = (min(n, len(nodes)) for n in (k + 1, max(k + 1, 1024)))
    squared, numbers = nearest_nodes(nodes, queries, width)
    while width < max_width:
        farthest = kth_distance(squared, sizes[numbers].cumsum(axis=1), k)
        cut = np.flatnonzero(squared[:, -1] <= farthest * (1 + DISTANCE_ROUNDING))
        if not len(cut):
            break
        wider = min(4 * width, max_width)
        squared = np.pad(squared, ((0, 0), (0, wider - width)), constant_values=np.inf)
        numbers = np.pad(numbers, ((0, 0), (0, wider - width)))
        squared[cut], numbers[cut] = nearest_nodes(nodes, queries.take(cut), wider)
        width = wider
    return np.maximum(squared, 0, out=squared), numbers


def kth_distance(squared: np.ndarray, n_held: np.ndarray, k: int) -> np.ndarray:
    """Distance of the k-th row of each line, or of the last: nodes so far hold so many rows."""
    reached = (n_held < k * (1 - DISTANCE_ROUNDING)).sum(axis=1)
    return np.asarray(squared[np.arange(len(squared)), np.minimum(reached, squared.shape[1] - 1)])


def vote_weights(
    squared: np.ndarray, ks: Sequence[int], sharpness: float, sizes: np.ndarray
) -> np.ndarray:
    """Weights of neighbours, nearest first: ``exp(-s d / d_k)``, mean over the ks.

    A neighbour may stand for several rows. Rows at the distance d_k of the k-th share the places
    that are left, so that no order of rows decides; of rows that are all at distance 0, each has
    the same weight. Weights of a line add up to 1.
    """
    n_held, out = sizes.cumsum(axis=1), np.zeros(squared.shape)
    for k in ks:
        farthest = kth_distance(squared, n_held, k)[:, None]
        nearer = squared < farthest * (1 - DISTANCE_ROUNDING)
        tied = (squared <= farthest * (1 + DISTANCE_ROUNDING)) & ~nearer
        places = sizes * nearer
        left = np.minimum(k, n_held[:, -1]) - places.sum(axis=1)
        places = places + sizes * tied * (left / (sizes * tied).sum(axis=1))[:, None]
        weights = np.exp(-sharpness * squared / np.where(farthest > 0, farthest, 1)) * places
        out += weights / weights.sum(axis=1, keepdims=True) / len(ks)
    return out


# -- from votes to classes ----------------------------------------------------------------------


def winners(votes: Any) -> np.ndarray:
    """Class with most votes in each row of sparse votes, the first of equal ones."""
    if not votes.shape[0]:
        return np.zeros(0, np.int64)
    sizes = np.diff(votes.indptr)
    largest = np.maximum.reduceat(votes.data, votes.indptr[:-1])  # every row has votes
    best = np.flatnonzero(votes.data == np.repeat(largest, sizes))
    rows = np.repeat(np.arange(len(sizes)), sizes)[best]
    return np.asarray(votes.indices[best[np.searchsorted(rows, np.arange(len(sizes)))]], np.int64)


def macro_f(
    y_true: np.ndarray, y_pred: np.ndarray, n_classes: int, weight: np.ndarray | None = None
) -> float:
    """Mean F of the classes, of those that are there or guessed."""
    hit = y_true == y_pred
    hits = np.bincount(y_true[hit], None if weight is None else weight[hit], n_classes)
    n_true, n_predicted = (np.bincount(labels, weight, n_classes) for labels in (y_true, y_pred))
    total = n_true + n_predicted
    return float(np.mean(2 * hits[total > 0] / total[total > 0]))


def calibrated(votes: Any, targets: Targets) -> tuple[float, float]:
    """Floor and exponent that make votes the most likely probabilities."""
    votes = sparse.csr_array(votes)
    return min(
        product(FLOORS, EXPONENTS),
        key=lambda pair: targets.mean(log_losses(votes, targets.values, *pair)),
    )


def log_losses(votes: Any, labels: np.ndarray, floor: float, exponent: float) -> np.ndarray:
    """Log-loss of each row for the probabilities that sparse votes become."""
    n_voted = np.diff(votes.indptr)
    raised = np.add.reduceat((votes.data + floor) ** exponent, votes.indptr[:-1])
    total = raised + (votes.shape[1] - n_voted) * floor**exponent
    of_label = np.asarray(votes[np.arange(len(labels)), labels]).ravel()
    return np.asarray(np.log(total) - exponent * np.log(of_label + floor))


def probabilities(votes: np.ndarray, floor: float, exponent: float) -> np.ndarray:
    """``(v + floor)^exponent``, scaled to 1."""
    out = (votes + floor) ** exponent
    return np.asarray(out / out.sum(axis=1, keepdims=True))


def additive_weight(
    votes: np.ndarray, additive: np.ndarray, labels: np.ndarray, weight: np.ndarray | None
) -> float:
    """Weight of additive probabilities beside those of votes for which the log-loss is least."""
    rows = np.arange(len(labels))
    of_vote, of_score = votes[rows, labels], additive[rows, labels]

    def log_loss(share: float) -> float:
        likelihood = (1 - share) * of_vote + share * of_score
        return -float(np.average(np.log(np.maximum(likelihood, 1e-15)), weights=weight))

    return min(ADDITIVE_WEIGHTS, key=log_loss)


# -- targets as they come in --------------------------------------------------------------------


def checked_target(y: Any, estimator_name: str) -> np.ndarray:
    """Targets as an array, one for each row; raise for rows that have none."""
    if y is None:
        raise ValueError(f"{estimator_name} requires y to be passed, but the target y is None")
    labels = target_array(y)
    check_target(labels)
    return labels


def check_length(labels: np.ndarray, n_rows: int) -> None:
    """Raise unless there is a target for each row."""
    if len(labels) != n_rows:
        raise ValueError(f"expected {n_rows} labels in y, one per row of X, got {len(labels)}")


def check_classes(classes: np.ndarray) -> None:
    """Raise unless there are two classes or more."""
    if len(classes) < 2:
        only = classes.tolist()[0]
        raise ValueError(f"expected two or more classes in y, got one class: {only!r}")
