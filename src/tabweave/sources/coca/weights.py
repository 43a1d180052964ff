"""Weights of sources from must-links and cannot-links, Eqs. (4.15)-(4.19).

Labels are links of all their pairs; their sums have a closed form, so no pair is listed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from tabweave.rows.vocabulary import identity
from tabweave.sources.container import Sources


class Links(NamedTuple):
    """C of Eq. (4.15): labelled ids (by index) with their classes, single pairs with signs."""

    labelled: np.ndarray
    classes: np.ndarray
    left: np.ndarray
    right: np.ndarray
    sign: np.ndarray

    def __bool__(self) -> bool:
        return bool(len(self.labelled) > 1 or len(self.left))


def read_links(sources: Sources, y: Any, must_link: Any, cannot_link: Any) -> Links:
    """Return what labels and pairs of ids say."""
    labelled, classes = _read_labels(sources, y)
    pairs = [
        _read_pairs(sources, given, name)
        for given, name in ((must_link, "must_link"), (cannot_link, "cannot_link"))
    ]
    sign = np.repeat([1.0, -1.0], [len(p) for p in pairs])
    left, right = np.concatenate(pairs).T
    return Links(labelled, classes, left, right, sign)


def _read_labels(sources: Sources, y: Any) -> tuple[np.ndarray, np.ndarray]:
    if y is None:
        return np.zeros(0, np.intp), np.zeros(0, np.intp)
    if isinstance(y, Mapping):
        index, labels = _index(sources, list(y), "y"), list(y.values())
    else:
        labels = np.asarray(y, dtype=object).ravel().tolist()
        index = np.arange(len(labels))
        if len(labels) != len(sources):
            raise ValueError(
                f"y: expected {len(sources)} labels, one for each of sources.ids (or None), got "
                f"{len(labels)}; or pass a mapping of id to label"
            )
    given = np.array([v is not None and v == v for v in labels], dtype=bool)
    code: dict[Any, int] = {}
    classes = [
        code.setdefault(identity(v), len(code)) for v, ok in zip(labels, given, strict=True) if ok
    ]
    return index[given], np.array(classes, dtype=np.intp)


def _read_pairs(sources: Sources, pairs: Any, name: str) -> np.ndarray:
    pairs = [] if pairs is None else [tuple(pair) for pair in pairs]
    for pair in pairs:
        if len(pair) != 2:
            raise ValueError(f"{name}: expected pairs of ids, got {pair}")
    if not pairs:
        return np.zeros((0, 2), np.intp)
    return _index(sources, [v for pair in pairs for v in pair], name).reshape(-1, 2)


def _index(sources: Sources, ids: list[Any], name: str) -> np.ndarray:
    return sources._index_of_all(ids, name) if ids else np.zeros(0, np.intp)


def vector_terms(phis: Sequence[np.ndarray], links: Links) -> tuple[np.ndarray, np.ndarray]:
    """Eq. (4.19): K and v of projections Φ⁽ᵏ⁾ (n × r each), E⁽ᵏ⁾(i, j) = Φ(i)·Φ(j) where linked.

    Each Φ is brought to mean square 1 over its rows first: E is compared with ±1.
    """
    phis = [phi / _root_mean_square(phi) for phi in phis]
    own = [phi[links.labelled] for phi in phis]
    K = np.array([[((a.T @ b) ** 2).sum() for b in own] for a in own])
    v = np.array([2 * _same(a, links.classes) - (a.sum(axis=0) ** 2).sum() for a in own])
    E = np.column_stack([(phi[links.left] * phi[links.right]).sum(axis=1) for phi in phis])
    return K + 2 * E.T @ E, v + 2 * E.T @ links.sign  # C is symmetric: a pair stands twice


def _root_mean_square(phi: np.ndarray) -> float:
    squares = (phi**2).sum(axis=1)
    return float(np.sqrt(squares.sum() / max(np.count_nonzero(squares), 1)))  # absent rows are 0


def _same(rows: np.ndarray, classes: np.ndarray) -> float:
    """Return the sum of the inner products of all pairs of a class."""
    member = sp.csr_array(
        (np.ones(len(classes)), (classes, np.arange(len(classes)))),
        shape=(int(classes.max(initial=-1)) + 1, len(classes)),
    )
    return float(((member @ rows) ** 2).sum())


def graph_terms(graphs: Sequence[sp.csr_array], links: Links) -> tuple[np.ndarray, np.ndarray]:
    """Eq. (4.19) for graphs: E⁽ᵏ⁾ is 1 where linked ids are connected, −1 where they are not."""
    at, classes = links.labelled, links.classes
    own = [sp.csr_array(g[at][:, at] > 0, dtype=float) for g in graphs]
    m2 = float(len(at)) ** 2
    edges = np.array([g.nnz for g in own], dtype=float)
    both = np.array([[a.multiply(b).sum() for b in own] for a in own]).reshape(len(own), -1)
    K = 4 * both - 2 * edges - 2 * edges[:, None] + m2
    total = 2.0 * (np.bincount(classes).astype(float) ** 2).sum() - m2 if len(at) else 0.0
    signed = [2.0 * _agreeing(g, classes) - g.nnz for g in own]
    v = 2 * np.array(signed) - total
    E = np.column_stack([np.where(_connected(g, links), 1.0, -1.0) for g in graphs])
    return K + 2 * E.T @ E, v + 2 * E.T @ links.sign  # C is symmetric: a pair stands twice


def _connected(graph: sp.csr_array, links: Links) -> np.ndarray:
    n, edges = graph.shape[0], graph.tocoo()
    return np.isin(
        links.left * n + links.right, edges.coords[0].astype(np.int64) * n + edges.coords[1]
    )


def _agreeing(graph: sp.csr_array, classes: np.ndarray) -> int:
    edges = graph.tocoo()
    return int((classes[edges.coords[0]] == classes[edges.coords[1]]).sum())


def on_simplex(K: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Eq. (4.19): minimise ωᵀKω − 2vᵀω over ω ≥ 0, Σω = 1, by an active set.

    A hair of ridge makes the answer unique: two copies of a source share its weight.
    """
    size = np.trace(K) / len(v)
    if not size > 0:
        return np.full(len(v), 1 / len(v))
    K, v = K / size + 1e-10 * np.eye(len(v)), v / size
    first = np.argmin(np.diag(K) - 2 * v)
    omega = np.eye(len(v))[first]
    free = omega > 0
    for _ in range(10 * len(v)):  # a set never comes back, and few are ever seen
        slope = K @ omega - v
        outside = np.where(free, np.inf, slope)
        best = int(np.argmin(outside))
        if outside[best] >= omega @ slope - 1e-12:
            break
        free[best] = True
        omega, free = _descend(K, v, omega, free)
    return omega


def _descend(
    K: np.ndarray, v: np.ndarray, omega: np.ndarray, free: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Go to the minimum over the free weights, fixing those that would turn negative on the way."""
    omega, free = omega.copy(), free.copy()
    while True:
        m = int(free.sum())
        kkt = np.ones((m + 1, m + 1))
        kkt[:m, :m], kkt[m, m] = K[np.ix_(free, free)], 0.0
        goal = np.zeros(len(v))
        goal[free] = np.linalg.solve(kkt, np.append(v[free], 1.0))[:m]
        low = free & (goal <= 0)
        if not low.any():
            return goal, free
        step = (omega[low] / (omega[low] - goal[low])).min()
        omega += step * (goal - omega)
        free &= omega > 1e-15
        omega = np.where(free, omega, 0.0)
