"""The terms that are kept: choosing them from counts, finding them in cells, undoing that."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil
from numbers import Integral
from typing import Any

import numpy as np

from weft import _labels
from weft._labels import Label
from weft.sparse._terms import ColumnTerms, Found, Level, TermCounts, cells_of, row_blocks, walk
from weft.table import Codes, Sets


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """Terms after pruning: per column, where each column's terms start, and rows of each."""

    columns: tuple[ColumnTerms, ...]
    starts: np.ndarray
    df: np.ndarray


def choose(counts: TermCounts, min_df: int | float, max_terms: int | None) -> Vocabulary:
    """Keep frequent terms.

    No term is held by more rows than its subsets, so whatever stays, its beginnings stay, too.
    """
    levels = [level for column in counts.columns for level in column.levels]
    df = np.concatenate([np.zeros(0, np.int64), *(level.df for level in levels)])
    size = [np.full(len(a.df), s) for c in counts.columns for s, a in enumerate(c.levels)]
    least = min_df if isinstance(min_df, Integral) else ceil(min_df * counts.n)
    keep = df >= least
    if len(df) and not keep.any():
        raise ValueError(
            f"min_df={min_df!r} keeps no term: the most frequent is held by {df.max()} of "
            f"{counts.n} rows; lower it"
        )
    if max_terms is not None and keep.sum() > max_terms:
        order = np.lexsort((np.concatenate(size), -df))
        keep[order[max_terms:]] = False
    masks = iter(np.split(keep, np.cumsum([len(level.df) for level in levels])))
    columns = tuple(
        _pruned(column, [next(masks) for _ in column.levels]) for column in counts.columns
    )
    sizes = [sum(len(level.df) for level in column.levels) for column in columns]
    return Vocabulary(columns, np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64), df[keep])


def _pruned(column: ColumnTerms, masks: list[np.ndarray]) -> ColumnTerms:
    number, levels, width = np.zeros(1, np.int64), [], max(len(column.labels), 1)
    for level, mask in zip(column.levels, masks, strict=True):
        up, element = np.divmod(level.keys[mask], width)
        if not len(up):
            break
        levels.append(Level(number[up] * width + element, level.df[mask]))
        number = np.cumsum(mask) - 1
    return ColumnTerms(column.labels, tuple(levels))


def find_terms(data: Codes | Sets, terms: ColumnTerms, n_rows: int) -> Iterator[Found]:
    """Yield (rows, numbers of the terms they hold), in pieces."""
    starts, elements = cells_of(data, terms.labels, n_rows)
    width, depth = max(len(terms.labels), 1), len(terms.levels)
    above = np.concatenate([[0], np.cumsum([len(level.keys) for level in terms.levels])])

    def find(s: int, parent: np.ndarray, element: np.ndarray) -> Found:
        keys, known = parent * width + element, terms.levels[s].keys
        place = np.minimum(np.searchsorted(known, keys), len(known) - 1)
        hit = np.flatnonzero(known[place] == keys)
        return place[hit], hit

    for block in row_blocks(starts, depth):
        edges = starts[block.start : block.stop + 1]
        part = elements[edges[0] : edges[-1]]
        for s, (rows, number) in enumerate(walk(edges, part, depth, find)):
            yield rows + block.start, number + above[s]


def cells_from(
    terms: ColumnTerms, row: np.ndarray, term: np.ndarray, weight: np.ndarray, n_rows: int
) -> list[list[Label]]:
    """Return the elements of the terms that each row holds, in canonical order."""
    row, element, _ = _elements(terms, row, term, weight)
    width = max(len(terms.labels), 1)
    row, element = np.divmod(np.unique(row * width + element), width)
    labels = np.empty(len(terms.labels), dtype=object)
    labels[:] = terms.labels
    edges = np.searchsorted(row, np.arange(1, n_rows))
    return [part.tolist() for part in np.split(labels[element], edges)]


def values_from(
    terms: ColumnTerms, row: np.ndarray, term: np.ndarray, weight: np.ndarray, n_rows: int
) -> list[Label]:
    """Return the heaviest value of each row; None where there is none."""
    row, element, weight = _elements(terms, row, term, weight)
    out: list[Label] = [None] * n_rows
    for i in np.lexsort((-element, weight)):  # the heaviest comes last and stays
        out[row[i]] = terms.labels[element[i]]
    return out


def _elements(
    terms: ColumnTerms, row: np.ndarray, term: np.ndarray, weight: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Expand entries of terms to entries of their elements."""
    rows, elements, weights = [row[:0].astype(np.int64)], [row[:0].astype(np.int64)], [weight[:0]]
    first = 0
    for level in terms.elements():
        own = (term >= first) & (term < first + len(level))
        found = level[term[own] - first]
        rows.append(np.repeat(row[own].astype(np.int64), level.shape[1]))
        elements.append(found.ravel())
        weights.append(np.repeat(weight[own], level.shape[1]))
        first += len(level)
    return np.concatenate(rows), np.concatenate(elements), np.concatenate(weights)


def refuse_unknown(name: str, data: Codes | Sets, known: tuple[Label, ...]) -> None:
    """Refuse a value that fit has not seen."""
    odd = _labels.positions(known, data.labels) == len(known)
    met = np.bincount(data.codes, minlength=len(odd)) > 0
    for i in np.flatnonzero(odd & met):
        raise ValueError(
            f"column {name!r}: value {data.labels[i]!r} was not seen in fit; fit it too, or use "
            "unknown='ignore'"
        )


def shown(label: Any) -> str:
    """Write an element so that a comma always separates two of them."""
    if label is None:
        return "<missing>"
    return repr(label) if "," in str(label) else str(label)
