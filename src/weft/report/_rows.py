"""Rows of a report: which are distinct, which are drawn, and where each lies on the map.

Comes in: a reading and a fitted embedder. Goes out: the sample that is drawn, its principal axes,
and one pass over all distinct rows in blocks, so that memory does not grow with the table.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from weft import _distinct
from weft.report._reading import Reading, select, take
from weft.report._text import rounded
from weft.table import Table

_BLOCK = 1 << 22  # numbers held at a time: 32 MB
_CELLS = 120_000  # cells of the rows drawn, which bound the size of the page
N_AXES = 12


@dataclass(frozen=True, eq=False)
class Rows:
    """Distinct rows, how often each occurs, and those that are drawn."""

    table: Table  # the columns the embedding sees
    first: np.ndarray  # where each distinct row first occurs
    copies: np.ndarray  # how many rows are equal to it
    of_row: np.ndarray  # number of each row among the distinct ones
    drawn: np.ndarray  # numbers of the distinct rows that are drawn

    @classmethod
    def of(cls, reading: Reading, random_state: Any, most_columns: int) -> Rows:
        """Find the distinct rows (the target counts, too) and draw some at random."""
        names = reading.kept + ([reading.target] if reading.target else [])
        codes = _distinct.canonical_codes(select(reading.table, names))
        first, of_row = _distinct.distinct_rows(codes)
        at_most = int(np.clip(_CELLS // min(len(names), most_columns), 500, 3000))
        drawn = np.arange(len(first))
        if len(first) > at_most:
            rng = np.random.default_rng(random_state)
            rows = rng.choice(reading.table.n_rows, at_most, replace=False)
            drawn = np.unique(of_row[rows])
        return cls(reading.features(), first, np.bincount(of_row), of_row, drawn)

    def vectors(self, model: Any, numbers: np.ndarray) -> np.ndarray:
        """Return the vectors of some distinct rows."""
        return np.asarray(model.transform(take(self.table, self.first[numbers])), dtype=float)

    def blocks(self, model: Any, width: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield (numbers, vectors) of all distinct rows, block by block."""
        step = max(256, _BLOCK // max(width, 1))
        for start in range(0, len(self.first), step):
            numbers = np.arange(start, min(start + step, len(self.first)))
            yield numbers, self.vectors(model, numbers)


@dataclass(frozen=True, eq=False)
class Axes:
    """Principal axes of weighted vectors."""

    mean: np.ndarray
    axes: np.ndarray
    explained: np.ndarray  # share of the variance along each axis

    @classmethod
    def of(cls, vectors: np.ndarray, weights: np.ndarray, n_axes: int = N_AXES) -> Axes:
        """Find the directions in which weighted vectors vary most."""
        from scipy.linalg import eigh

        share = weights / weights.sum()
        mean = share @ vectors
        centred = (vectors - mean) * np.sqrt(share)[:, None]
        tall = centred.shape[0] >= centred.shape[1]
        product = centred.T @ centred if tall else centred @ centred.T
        total, size = float(np.trace(product)), len(product)
        n_axes = min(n_axes, size)
        if not n_axes or not total > 0:
            return cls(mean, np.zeros((vectors.shape[1], 0)), np.zeros(0))
        values, found = eigh(product, subset_by_index=(size - n_axes, size - 1))
        keep = values > 1e-10 * total
        values, found = values[keep][::-1], found[:, keep][:, ::-1]
        axes = found if tall else centred.T @ found / np.sqrt(values)
        # An axis may point either way; make its largest entry positive, so that results repeat.
        signs = np.sign(axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])])
        return cls(mean, axes * signs, values / total)

    def place(self, vectors: np.ndarray) -> np.ndarray:
        """Return the coordinates of vectors along the axes."""
        return (vectors - self.mean) @ self.axes


def layouts(places: np.ndarray, axes: Axes, random_state: Any) -> list[dict[str, Any]]:
    """Return the maps: the first two axes, and t-SNE where openTSNE is there and rows are few."""
    flat = np.zeros((len(places), 2))
    flat[:, : min(2, places.shape[1])] = places[:, :2]
    share = [*rounded(axes.explained[:2]), 0.0, 0.0][:2]
    out = [{"name": "principal axes", "points": flat, "explained": share}]
    near = _tsne(places, random_state) if 30 <= len(places) <= MOST_NEAR else None
    if near is not None:
        out.append({"name": "neighbourhoods (t-SNE)", "points": near})
    return out


MOST_NEAR = 2000


def _tsne(places: np.ndarray, random_state: Any) -> np.ndarray | None:
    try:
        from openTSNE import TSNE
    except ImportError:  # an extra, and no reason to fail: the page does without
        return None
    perplexity = min(30, (len(places) - 1) // 3)
    start = places[:, :2] / max(float(places[:, 0].std()), 1e-12) * 1e-4
    if start.shape[1] < 2:
        return None
    seed = int(np.random.default_rng(random_state).integers(1 << 31))
    layout = TSNE(
        perplexity=perplexity, n_iter=250, neighbors="exact", negative_gradient_method="bh",
        initialization=start, n_jobs=1, random_state=seed,
    ).fit(places)  # fmt: skip
    return np.array(layout)
