"""Graphs of a `Sources`: edge frames, networkx graphs and sparse matrices as weights between ids.

Below: means over neighbours, and features made from edges.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import eigsh

from tabweave._compat import fix_signs
from tabweave.columns.frames import columns_of
from tabweave.columns.numeric import numbers
from tabweave.io.register import storable
from tabweave.sources.tables import check_unique, naming, plain, read_ids


@storable
class Edges(NamedTuple):
    """A graph as it was given: its nodes' ids, its edges between them, whether directed."""

    nodes: np.ndarray  # ids, in order of first appearance
    source: np.ndarray  # ids
    target: np.ndarray
    weight: np.ndarray
    directed: bool


def read_graph(graph: Any, where: str, directed: bool) -> Edges:
    """Read a graph of any of the accepted forms."""
    if hasattr(graph, "edges") and hasattr(graph, "is_directed"):
        edges = _from_networkx(graph, where)
    elif isinstance(graph, tuple):
        edges = _from_matrix(graph, where, directed)
    elif sp.issparse(graph):
        raise TypeError(f"{where}: expected (ids, matrix), got a matrix without ids")
    else:
        edges = _from_frame(graph, where, directed)
    wrong = np.flatnonzero(~(np.isfinite(edges.weight) & (edges.weight >= 0)))
    if len(wrong):
        i = int(wrong[0])
        raise ValueError(
            f"{where}: expected weights of at least 0, got {edges.weight[i]} for the edge "
            f"{plain(edges.source, i)!r} - {plain(edges.target, i)!r}"
        )
    return edges


def _from_frame(frame: Any, where: str, directed: bool) -> Edges:
    with naming(f"{where}: "):
        names, cells, _ = columns_of(frame)
    if len(cells) < 2:
        raise ValueError(f"{where}: expected two columns, source and target, got one")
    weights = None
    if names is not None and "weight" in names[2:]:
        weights = cells[names.index("weight", 2)]
    elif len(cells) == 3 and names is None:
        weights = cells[2]
    elif len(cells) > 2:
        others = ", ".join(map(repr, (names or ["x0", "x1", "x2"])[2:]))
        raise ValueError(
            f"{where}: expected source, target and perhaps 'weight', got also {others}; drop them, "
            "or name the one with the weights 'weight'"
        )
    source, target = read_ids(cells[0], where), read_ids(cells[1], where)
    with naming(f"{where}, weight: "):
        weight = np.ones(len(source)) if weights is None else numbers(weights)
    both = np.empty(2 * len(source), dtype=source.dtype if source.dtype == target.dtype else object)
    both[0::2], both[1::2] = source, target
    return Edges(both, source, target, weight, directed)


def _from_networkx(graph: Any, where: str) -> Edges:
    triples = list(graph.edges(data="weight", default=1.0))
    nodes = read_ids(list(graph.nodes), where)
    source = read_ids([a for a, _, _ in triples], where) if triples else nodes[:0]
    target = read_ids([b for _, b, _ in triples], where) if triples else nodes[:0]
    weight = np.array([1.0 if w is None else float(w) for _, _, w in triples])
    return Edges(nodes, source, target, weight, graph.is_directed())


def _from_matrix(pair: tuple[Any, ...], where: str, directed: bool) -> Edges:
    if len(pair) != 2:
        raise ValueError(f"{where}: expected (ids, matrix), got a tuple of {len(pair)}")
    nodes = read_ids(pair[0], where)
    check_unique(nodes, where)
    matrix = sp.coo_array(pair[1])
    if matrix.shape != (len(nodes), len(nodes)):
        shape = (len(nodes), len(nodes))
        raise ValueError(f"{where}: expected a matrix of shape {shape}, got {matrix.shape}")
    source, target = nodes[matrix.coords[0]], nodes[matrix.coords[1]]
    return Edges(nodes, source, target, matrix.data.astype(float), directed)


def edge_matrix(n: int, source: np.ndarray, target: np.ndarray, weight: np.ndarray) -> sp.csr_array:
    """The n × n weights as given: repeated edges add up, self loops are dropped."""
    keep = (source != target) & (weight > 0)
    out = sp.csr_array((weight[keep], (source[keep], target[keep])), shape=(n, n))
    out.sum_duplicates()
    return out


def symmetric(matrix: sp.csr_array) -> sp.csr_array:
    """The larger of both directions: an edge that is listed twice counts once."""
    out = sp.csr_array(matrix.maximum(matrix.T))
    out.sort_indices()
    return out


def averaging(matrix: sp.csr_array) -> sp.csr_array:
    """The matrix that replaces each id's values by the mean of its neighbours'."""
    total = matrix.sum(axis=1)
    return sp.csr_array(sp.diags_array(1 / np.where(total > 0, total, 1)) @ matrix)


def blend(graphs: Sequence[sp.csr_array], weights: Sequence[float]) -> sp.csr_array:
    """Eq. (3.3): weighted mean of the neighbours' means, over the graphs that link an id."""
    total = sum(w * averaging(g) for g, w in zip(graphs, weights, strict=True))
    return averaging(sp.csr_array(total))


def adjacency(links: sp.csr_array, index: np.ndarray) -> sp.csr_array:
    """Some columns of the weights, an empty one for the index -1."""
    present = np.flatnonzero(index >= 0)
    part = sp.csr_array(links[:, index[present]])
    shape = (links.shape[0], len(index))
    return sp.csr_array((part.data, present[part.indices], part.indptr), shape=shape)


def spectral(matrix: sp.csr_array, n_components: int) -> np.ndarray:
    """Leading eigenvectors of the normalised graph, one row for each id."""
    n = matrix.shape[0]
    if not n:
        return np.zeros((0, n_components))
    root = np.sqrt(matrix.sum(axis=1))
    scale = sp.diags_array(1 / np.where(root > 0, root, 1))
    normal = scale @ matrix @ scale
    k = min(n_components, n)
    if n <= max(3 * k, 64):
        values, vectors = np.linalg.eigh(normal.toarray())
    else:
        # A fixed start, so that the same graph gives the same coordinates.
        start = np.random.default_rng(0).random(n)
        values, vectors = eigsh(normal, k=k, which="LA", v0=start)
    vectors = fix_signs(vectors[:, np.argsort(-values)[:k]])
    return np.asarray(scale @ vectors) * np.sqrt(n)
