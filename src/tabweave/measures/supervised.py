"""Supervised measures: two values are alike if they speak for the same classes. VDM and MTDLE."""

from __future__ import annotations

from typing import cast

import numpy as np
from scipy import sparse
from scipy.linalg import block_diag
from scipy.optimize import nnls
from scipy.sparse.csgraph import csgraph_from_dense, floyd_warshall
from scipy.spatial.distance import cdist

from tabweave._compat import eigh
from tabweave.counts.counts import Counts
from tabweave.counts.couplings import shares
from tabweave.measures.register import measure

MAX_PATH_VALUES = 4096  # Shortest paths take time cubic in the number of values.


@measure(
    "vdm",
    "value difference metric: difference of the class probabilities of two values",
    "Stanfill & Waltz 1986; Zhu 2019, Eq. (2.18)",
    needs_y=True,
)
def vdm(counts: Counts) -> list[np.ndarray]:
    """Eq. (2.18): ``d = Σ_c (p(c|v) - p(c|w))²``."""
    parts = np.split(shares(_class_pairs(counts, "vdm")), counts.offsets[1:-1])
    return [cdist(p, p, "sqeuclidean") for p in parts]


@measure(
    "mtdle",
    "shortest paths between co-occurring values, weighted to agree with the classes",
    "Zhang, Wang, Chen, Marsic, Kumar, Jiang & Zhang 2015 (our reading)",
    metric=True,
    needs_y=True,
)
def mtdle(counts: Counts) -> list[np.ndarray]:
    """Zhang et al. 2015: ``d = Σ_k μ_k T_k(v, w)``, T_k the k-th transitive distance, μ from y.

    The thesis names MTDLE without formulas; this is the best reading of its published idea, several
    transitive distances between symbols, mixed so that the geometry of samples is maximally
    consistent with the classes. Values of all columns are the vertices of a graph with edges where
    two occur together, ``s = |O_v ∩ O_w| / |O_v ∪ O_w|``; the edge lengths 1 - s, -log s and
    1/s - 1 give three shortest-path distances (values of a column meet only through others). μ ≥ 0
    maximises the centred alignment of the summed distances of all pairs of rows with "the classes
    differ"; it is found in count space, exactly, whatever the number of rows. Embedding by scaling
    is what :class:`ValueMetric` does with any measure.

    Unreachable values are twice as far as the farthest reachable ones. Costs O(V³) time and O(V²)
    memory; more than ``MAX_PATH_VALUES`` values are an error.
    """
    class_pairs = _class_pairs(counts, "mtdle")
    _check_size(counts)
    pairs = counts.pairs.toarray() if sparse.issparse(counts.pairs) else counts.pairs
    joint = np.where(_same_column(counts), 0.0, pairs)
    c = counts.value_counts.astype(float)
    with np.errstate(divide="ignore"):
        s = np.minimum(joint / (c[:, None] + c - joint), 1)
        lengths = (np.where(s > 0, 1 - s, np.inf), -np.log(s), 1 / s - 1)
    bases = [_blocks(transitive(length), counts) for length in lengths]
    bases = [_unit_mean(base, counts) for base in bases]
    weights = class_alignment(bases, pairs, class_pairs, counts)
    return [np.tensordot(weights, tables, 1) for tables in zip(*bases, strict=True)]


def transitive(length: np.ndarray) -> np.ndarray:
    """All shortest-path distances of a symmetric matrix of edge lengths, inf for no edge."""
    graph = csgraph_from_dense(length, null_value=np.inf)
    return floyd_warshall(graph, directed=False)


def class_alignment(
    bases: list[list[np.ndarray]], pairs: np.ndarray, class_pairs: np.ndarray, counts: Counts
) -> np.ndarray:
    """Weights μ ≥ 0, sum 1, maximising ``⟨HDH, HLH⟩ / ‖HDH‖``, ``D = Σ_k μ_k D_k`` over row pairs.

    L is 1 where classes differ; H centres. With ``C₀ = ZᵀHZ`` and ``E = ZᵀHY`` from the counts,
    ``⟨HD_kH, HD_lH⟩ = tr(D_k C₀ D_l C₀)`` and ``⟨HD_kH, HLH⟩ = -tr(D_k E Eᵀ)``; the direction of
    the maximum solves a non-negative least-squares problem. Equal weights if no base agrees with y.
    """
    c, class_n = counts.value_counts, cast(np.ndarray, counts.class_n)
    centred = pairs - np.outer(c, c) / counts.n
    classes = class_pairs - np.outer(c, class_n) / counts.n
    tables = [block_diag(*base) for base in bases]
    moved = [table @ centred for table in tables]
    gram = np.array([[(x * y.T).sum() for y in moved] for x in moved])
    target = np.array([-np.einsum("vc,vw,wc->", classes, t, classes) for t in tables])
    values, vectors = eigh(gram)
    root = np.sqrt(np.where(values > 1e-12 * max(values.max(), 1e-300), values, np.inf))
    half = vectors * np.where(np.isfinite(root), root, 0)
    solution, _ = nnls(half.T, (vectors / root).T @ target)
    total = solution.sum()
    return solution / total if total > 0 else np.full(len(bases), 1 / len(bases))


def _class_pairs(counts: Counts, who: str) -> np.ndarray:
    if counts.class_pairs is None:
        raise ValueError(
            f"measure {who!r} expected counts with classes, got none; count the rows with y"
        )
    return counts.class_pairs


def _check_size(counts: Counts) -> None:
    if counts.offsets[-1] > MAX_PATH_VALUES:
        widest = int(np.argmax(counts.sizes))
        raise ValueError(
            f"measure 'mtdle' expected at most {MAX_PATH_VALUES} values, got {counts.offsets[-1]}; "
            f"column {counts.names[widest]!r} has {counts.sizes[widest]}: group its rare values, "
            "or leave it out"
        )


def _same_column(counts: Counts) -> np.ndarray:
    column = np.repeat(np.arange(len(counts.sizes)), counts.sizes)
    return column[:, None] == column


def _blocks(distances: np.ndarray, counts: Counts) -> list[np.ndarray]:
    """Distances within each column; the unreachable are far, but not infinitely."""
    spans = [counts.span(a) for a in range(len(counts.sizes))]
    finite = np.isfinite(distances)
    far = 2 * distances[finite & _same_column(counts)].max(initial=0) or 1.0
    out = np.where(finite, distances, far)
    return [out[span, span] for span in spans]


def _unit_mean(tables: list[np.ndarray], counts: Counts) -> list[np.ndarray]:
    """Scale a distance so that the mean distance of two rows is 1."""
    parts = np.split(counts.value_counts / counts.n, counts.offsets[1:-1])
    mean = sum(f @ table @ f for f, table in zip(parts, tables, strict=True))
    return [table / (mean or 1.0) for table in tables]
