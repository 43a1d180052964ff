"""Blocks for HELIC: counts in, what each weight of a column multiplies out.

A block is one kernel of one coupling space of a column, scaled so that blocks of all kinds can be
compared: at weight 1 it places two rows as far apart, on average, as the column's share in the
Gini indices of all columns. Paper order: couplings (6.2.3), kernels (6.2.4), distances (6.2.5).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

import numpy as np

from weft import couplings
from weft.counts import Counts
from weft.spaces import frequencies
from weft.tables import gram_factor

LINEAR = couplings.kernel_family((), (1,))
OWN_WEIGHTS = 64  # a column of at most so many values has an identity weight for each of them


@dataclass(frozen=True)
class Block:
    """What one weight multiplies: inner products of a column's values, or rows that give them.

    Attributes
    ----------
    name : str
        ``space/kernel``, or ``identity/value``.
    rows : ndarray
        The Gram matrix of the values; for a column with many values, their rows.
    start : float
        The weight to start from.
    stiffness : float
        How strongly a weight is pulled back: the block's mean distance over its fair share.
    is_gram : bool
        What ``rows`` are.
    """

    name: str
    rows: np.ndarray
    start: float
    stiffness: float
    is_gram: bool = True

    def squared(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """Eq. (6.11): the squared distances of pairs of values."""
        if not self.is_gram:
            return ((self.rows[first] - self.rows[second]) ** 2).sum(axis=1)
        own = np.diagonal(self.rows)
        return np.maximum(own[first] + own[second] - 2 * self.rows[first, second], 0)


def coupling_spaces(counts: Counts, column: int) -> dict[str, couplings.Points]:
    """Eqs. (6.2), (6.5), (6.8): intra-attribute, inter-attribute and attribute-class couplings."""
    spaces = {"intra": couplings.intra(counts, column)}
    if len(counts.names) > 1:
        spaces["inter"] = couplings.inter(counts, column)
    return spaces | {"class": couplings.by_class(counts, column)}


def column_blocks(
    counts: Counts, column: int, kernels: dict[str, couplings.Kernel], start: str
) -> list[Block]:
    """Return the blocks of a column; a column with one value has none.

    The starting weight 1 of a column is shared equally by its spaces, and within a space by its
    kernels (``start="balanced"``), or goes to the identity (``start="identity"``).
    """
    every = frequencies(counts)
    f = every[column]
    gini = 1 - f @ f
    if gini <= couplings.NEGLIGIBLE:
        return []
    mean = gini / sum(1 - own @ own for own in every)
    marks = couplings.landmarks(counts, column, couplings.MAX_LANDMARKS)
    if len(marks) < len(f):
        rows = couplings.factor(_mean_gram(counts, column, kernels, marks) * mean, marks)
        return [Block("mean", rows, 1.0, mean, is_gram=False)]
    kept = list(_unit_blocks(counts, column, kernels, marks))
    n_kernels = Counter(block.space for block in kept)
    out: list[Block] = []
    for block in kept:
        share = 1 / (len(n_kernels) * n_kernels[block.space])
        first = share if start == "balanced" else float(block.space == "identity")
        if block.space == "identity" and len(f) <= OWN_WEIGHTS:
            out += _own_blocks(counts, column, mean / gini, first, share)
        else:
            name = f"{block.space}/{block.kernel}"
            out.append(Block(name, block.gram * mean, first, mean / share))
    return out


def _own_blocks(
    counts: Counts, column: int, unit: float, start: float, share: float
) -> Iterator[Block]:
    """Yield the identity value by value: how much it matters to have this very value or not.

    Two rows differ in it with probability 2f(1 - f); over all values that adds up to 2 Gini.
    """
    f = frequencies(counts)[column]
    for v, label in enumerate(counts.labels[column]):
        gram = np.zeros((len(f), len(f)))
        gram[v, v] = unit / 2
        yield Block(f"identity/{label!s}", gram, start, unit * f[v] * (1 - f[v]) / share)


def _unit_blocks(
    counts: Counts, column: int, kernels: dict[str, couplings.Kernel], marks: np.ndarray
) -> Iterator[couplings.KernelBlock]:
    """Eq. (6.10): yield the kernels that tell values apart, rows at mean squared distance 1."""
    f = frequencies(counts)[column]
    spaces = coupling_spaces(counts, column)
    identity = couplings.identity_block(len(f), marks)
    for block in chain([identity], couplings.kernel_blocks(spaces, kernels, marks)):
        distance = 2 * block.inertia(f, marks)
        if distance > couplings.NEGLIGIBLE:
            yield couplings.KernelBlock(
                block.space, block.kernel, block.gram / distance, block.diagonal / distance
            )


def _mean_gram(
    counts: Counts, column: int, kernels: dict[str, couplings.Kernel], marks: np.ndarray
) -> np.ndarray:
    """Return the balanced mean of a column's kernels, all values against the landmarks."""
    sums: dict[str, np.ndarray] = {}
    n_kernels: Counter[str] = Counter()
    for block in _unit_blocks(counts, column, kernels, marks):
        sums[block.space] = sums.get(block.space, 0) + block.gram
        n_kernels[block.space] += 1
    return np.sum([total / n_kernels[space] for space, total in sums.items()], axis=0) / len(sums)


def distance_table(blocks: list[Block], first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Eq. (6.11): the squared distance of each pair of values in each block."""
    columns = [block.squared(first, second) for block in blocks]
    return np.array(columns).reshape(len(blocks), len(first)).T


def weighted_table(blocks: list[Block], weights: np.ndarray, n_values: int) -> np.ndarray:
    """Eq. (6.18): rows of values whose squared distances are ``Σ ω_p d_p``, Eq. (6.13)."""
    if not blocks:
        return np.zeros((n_values, 0))
    if not blocks[0].is_gram:
        return np.sqrt(weights[0]) * blocks[0].rows
    gram = np.zeros((n_values, n_values))
    for block, weight in zip(blocks, weights, strict=True):
        gram += weight * block.rows
    return gram_factor(gram)[0]


def kernel_columns(
    counts: Counts, column: int, kernels: dict[str, couplings.Kernel]
) -> tuple[list[str], np.ndarray]:
    """Eq. (6.15): the raw columns of a column's kernel matrices, side by side, and their names."""
    marks = np.arange(int(counts.sizes[column]))
    blocks = list(couplings.kernel_blocks(coupling_spaces(counts, column), kernels, marks))
    return [f"{b.space}/{b.kernel}" for b in blocks], np.hstack([b.gram for b in blocks])
