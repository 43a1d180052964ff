"""Retrieval: every object asks for its nearest others; how many share its class.

Comes in: distances (or lists of neighbours) and labels. Goes out: precision@k and recall@k for
one or several k. Ties count by expectation, so no result depends on the order of rows: on
categorical data most neighbours are tied. [Zhu 2019, section 3.5.2]
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tabweave.evaluate.scores import encode, recode

Sizes = int | Sequence[int]  # one k, or several


def precision_at_k(
    distances: Any,
    y_query: Any,
    y_reference: Any = None,
    *,
    k: Sizes = 10,
    own: Any = None,
    tolerance: float = 1e-9,
) -> float | np.ndarray:
    """Precision@k: the share of the k nearest objects that are of the query's class.

    All objects tied at the k-th distance share the remaining ranks equally.

    Parameters
    ----------
    distances : array-like of shape (n_queries, n_references)
        Distance of every query to every reference; small is near. Without ``y_reference`` it is
        square and each object is left out of its own neighbours.
    y_query : array-like of shape (n_queries,)
        Class of each query.
    y_reference : array-like of shape (n_references,), optional
        Class of each reference; by default the queries are the references.
    k : int or sequence of int, default=10
        How many objects are retrieved.
    own : array-like of int of shape (n_queries,), optional
        Column to leave out for each query, when ``distances`` is a block of rows of a square
        matrix. By default nothing is left out if ``y_reference`` is given.
    tolerance : float, default=1e-09
        Distances closer than this share of the query's largest finite distance are tied, so
        that rounding does not break ties.

    Returns
    -------
    float or ndarray
        The mean over queries: a float for a single k, an array for several.

    See Also
    --------
    neighbor_precision_at_k : The same from lists of neighbours.

    References
    ----------
    Zhu (2019), section 3.5.2.

    Examples
    --------
    >>> import numpy as np
    >>> from tabweave.evaluate import precision_at_k
    >>> x = np.array([0.0, 1.0, 2.0, 10.0])
    >>> distances = abs(x[:, None] - x)
    >>> precision_at_k(distances, ["a", "a", "b", "b"], k=[1, 3])
    array([0.625     , 0.33333333])
    """
    hits, _ = _distance_hits(distances, y_query, y_reference, k, own, tolerance)
    return _answer(np.mean(hits / _as_sizes(k), axis=0), k)


def recall_at_k(
    distances: Any, y_query: Any, y_reference: Any = None, *, k: Sizes = 10, own: Any = None,
    tolerance: float = 1e-9,
) -> float | np.ndarray:  # fmt: skip
    """Recall@k: the share of the objects of the query's class that are among its k nearest.

    Queries with no other object of their class have nothing to find and are left out of the mean.

    Parameters
    ----------
    distances, y_query, y_reference, k, own, tolerance
        As in `precision_at_k`, and so is what is returned.

    References
    ----------
    Zhu (2019), section 3.5.2: recall@k.

    Examples
    --------
    >>> import numpy as np
    >>> from tabweave.evaluate import recall_at_k
    >>> x = np.array([0.0, 1.0, 2.0, 10.0])
    >>> recall_at_k(abs(x[:, None] - x), ["a", "a", "b", "b"], k=[1, 3])
    array([0.625, 1. ])
    """
    hits, relevant = _distance_hits(distances, y_query, y_reference, k, own, tolerance)
    return _answer(_mean_recall(hits, relevant), k)


def neighbor_precision_at_k(
    neighbors: Any, y_query: Any, y_reference: Any = None, *, k: Sizes = 10
) -> float | np.ndarray:
    """Precision@k from ranked lists of neighbours.

    Parameters
    ----------
    neighbors : array-like of int of shape (n_queries, n_listed)
        Row numbers of the references, nearest first; -1 where an index found nothing (a miss).
    y_query, y_reference, k
        As in `precision_at_k`. Without ``y_reference`` a query found in its own list is skipped.

    References
    ----------
    Zhu (2019), section 3.5.2.

    Examples
    --------
    >>> from tabweave.evaluate import neighbor_precision_at_k
    >>> neighbor_precision_at_k([[0, 1], [1, 0], [2, 0]], ["a", "a", "b"], k=1)
    0.666...
    """
    hits, _ = _listed_hits(neighbors, y_query, y_reference, k)
    return _answer(np.mean(hits / _as_sizes(k), axis=0), k)


def neighbor_recall_at_k(
    neighbors: Any, y_query: Any, y_reference: Any = None, *, k: Sizes = 10
) -> float | np.ndarray:
    """Recall@k from ranked lists of neighbours.

    Parameters
    ----------
    neighbors, y_query, y_reference, k
        As in `neighbor_precision_at_k`; the mean is over queries that have something to find.

    References
    ----------
    Zhu (2019), section 3.5.2.

    Examples
    --------
    >>> from tabweave.evaluate import neighbor_recall_at_k
    >>> neighbor_recall_at_k([[0, 1], [1, 2], [2, 0]], ["a", "a", "a"], k=1)
    0.5
    """
    hits, relevant = _listed_hits(neighbors, y_query, y_reference, k)
    return _answer(_mean_recall(hits, relevant), k)


def _distance_hits(
    distances: Any, y_query: Any, y_reference: Any, k: Any, own: Any, tolerance: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return the expected hits of every query at every k and its number of relevant objects."""
    distances = np.asarray(distances)
    query, reference = _codes(y_query, y_reference)
    if distances.shape != (query.size, reference.size):
        raise ValueError(
            f"distances: expected shape {(query.size, reference.size)}, got {distances.shape}; "
            "pass y_reference if the columns are other objects"
        )
    if np.isnan(distances).any():
        raise ValueError("distances hold NaN; fill or drop the objects they belong to")
    if own is None and y_reference is None:
        own = np.arange(query.size)
    left_out = None if own is None else _check_own(own, query.size, reference.size)
    sizes = _as_sizes(k)
    _check_reach(sizes, reference.size - (left_out is not None), "other objects")
    hits = np.empty((query.size, sizes.size))
    relevant = np.empty(query.size)
    for i in range(query.size):  # a row at a time: memory O(n), whatever the number of queries
        row, same = distances[i], reference == query[i]
        if left_out is not None:
            row, same = np.delete(row, left_out[i]), np.delete(same, left_out[i])
        hits[i], relevant[i] = _expected_hits(row, same, sizes, tolerance), same.sum()
    return hits, relevant


def _expected_hits(
    row: np.ndarray, same: np.ndarray, sizes: np.ndarray, tolerance: float
) -> np.ndarray:
    """Hits among the ``sizes`` nearest when tied objects share the last ranks equally."""
    row = row.astype(float)
    finite = row[np.isfinite(row)]
    slack = tolerance * np.abs(finite).max() if finite.size else 0.0
    farthest = np.partition(row, sizes.max() - 1)[sizes.max() - 1]
    near = np.flatnonzero(row <= farthest + slack)
    near = near[np.argsort(row[near], kind="stable")]
    ordered, found = row[near], np.append(0, np.cumsum(same[near]))
    edge = ordered[sizes - 1]
    below = np.searchsorted(ordered, edge - slack, side="left")
    upto = np.searchsorted(ordered, edge + slack, side="right")
    return found[below] + (sizes - below) * (found[upto] - found[below]) / (upto - below)


def _listed_hits(
    neighbors: Any, y_query: Any, y_reference: Any, k: Any
) -> tuple[np.ndarray, np.ndarray]:
    """Return the hits of every query at every k and its number of relevant objects."""
    lists = np.asarray(neighbors)
    query, reference = _codes(y_query, y_reference)
    _check_lists(lists, query.size, reference.size)
    hit = (reference[lists] == query[:, None]) & (lists >= 0)
    counted = np.ones(lists.shape, dtype=bool)
    if y_reference is None:
        counted = lists != np.arange(query.size)[:, None]
    sizes = _as_sizes(k)
    _check_reach(sizes, counted.sum(axis=1).min(), "neighbours listed for every query")
    rank = np.cumsum(counted, axis=1)
    hits = np.stack([(hit & counted & (rank <= size)).sum(axis=1) for size in sizes], axis=1)
    members = np.bincount(reference, minlength=int(query.max()) + 1)
    return hits.astype(float), members[query] - float(y_reference is None)


def _check_lists(lists: np.ndarray, n_queries: int, n_references: int) -> None:
    if lists.ndim != 2 or lists.shape[0] != n_queries or lists.dtype.kind not in "iu":
        raise ValueError(
            f"neighbors: expected whole numbers of shape ({n_queries}, n_listed), got "
            f"{lists.dtype} of shape {lists.shape}"
        )
    if lists.size and (lists.min() < -1 or lists.max() >= n_references):
        raise ValueError(f"neighbors: expected row numbers below {n_references}, or -1 for none")
    ordered = np.sort(lists, axis=1)
    if ((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)).any():
        raise ValueError("neighbors list the same object twice for a query; remove duplicates")


def _codes(y_query: Any, y_reference: Any) -> tuple[np.ndarray, np.ndarray]:
    values, query = encode(y_query, "y_query")
    if y_reference is None:
        return query, query
    labels, reference = encode(y_reference, "y_reference")
    codes = recode(values, labels, ("y_query", "y_reference"))
    strangers = np.flatnonzero(codes < 0)  # classes that no reference has: a code of their own
    codes[strangers] = len(labels) + np.arange(strangers.size)
    return codes[query], reference


def _check_own(own: Any, n_queries: int, n_references: int) -> np.ndarray:
    own = np.asarray(own)
    whole = own.shape == (n_queries,) and own.dtype.kind in "iu"
    if not whole or own.min() < 0 or own.max() >= n_references:
        raise ValueError(
            f"own: expected a column number below {n_references} for each of {n_queries} queries"
        )
    return own


def _as_sizes(k: Any) -> np.ndarray:
    sizes = np.atleast_1d(np.asarray(k))
    if sizes.ndim != 1 or sizes.size == 0 or sizes.dtype.kind not in "iu" or sizes.min() < 1:
        raise ValueError(
            f"expected k to be a whole number of at least 1, or a list of them, got {k!r}"
        )
    return sizes


def _check_reach(sizes: np.ndarray, available: int, what: str) -> None:
    if sizes.max() > available:
        raise ValueError(f"expected k of at most {available}, the {what}, got {sizes.max()}")


def _mean_recall(hits: np.ndarray, relevant: np.ndarray) -> np.ndarray:
    if not relevant.any():
        raise ValueError("no query has another object of its class; recall is undefined")
    asked = relevant > 0
    return np.mean(hits[asked] / relevant[asked, None], axis=0)


def _answer(values: np.ndarray, k: Any) -> float | np.ndarray:
    return float(values[0]) if np.ndim(k) == 0 else values
