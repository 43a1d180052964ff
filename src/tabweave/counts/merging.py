"""Merging: two counts in, their sum or difference out, over the values of both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from scipy import sparse

from tabweave.columns.column import Schema
from tabweave.columns.vocabulary import Label, Vocabulary, union
from tabweave.counts.counting import (
    DENSE_VALUES,
    Grid,
    Histogram,
    canonical,
    carry,
    exact,
    first_of,
    merged_values,
    starts_of,
    tidy,
)

if TYPE_CHECKING:
    from tabweave.counts.counts import Counts

_MOST_ROWS = np.iinfo(np.int64).max  # or a count would wrap around


def combine(a: Counts, b: Counts, *, minus: bool = False) -> Counts:
    """``a + b``, or ``a - b``; both have rows."""
    check_same_columns(a, b)
    schema = cast(Schema, a.schema)
    b = b.select(schema.names)
    sign = -1 if minus else 1
    histograms = {
        k: histogram.plus(b.numbers.histograms[k], sign)
        for k, histogram in a.numbers.histograms.items()
    }
    a, b = in_same_buckets(a, b, {} if minus else histograms)
    n = a.n + sign * b.n
    noise = max(noise_of(a), noise_of(b)) if minus else 0.0
    if minus and abs(n) <= noise:
        n = 0
    if isinstance(n, int) and n > _MOST_ROWS:
        raise OverflowError(f"expected at most {_MOST_ROWS:,} rows in all, got {n:,}; scale them")
    left_values, right_values = with_classes(a), with_classes(b)
    both = zip(left_values.labels, right_values.labels, strict=True)
    vocabulary = Vocabulary(left_values.names, tuple(tuple(union(x, y)) for x, y in both))
    pairs = expand(a, vocabulary) + sign * expand(b, vocabulary)
    moments = carry(
        cast(np.ndarray, a.numbers.moments) + sign * cast(np.ndarray, b.numbers.moments)
    )
    if minus:
        pairs = check_nonnegative(schema, n, vocabulary, pairs, moments, noise)
        check_histograms(histograms, noise)
        histograms = {k: histogram.without(noise) for k, histogram in histograms.items()}
    if n == 0:
        return type(a)()
    vocabulary, pairs = canonical(vocabulary, pairs, _levels(a), noise)
    numbers = replace(a.numbers, moments=moments, histograms=histograms)
    return type(a).from_pairs(schema, n, vocabulary, pairs, numbers, a.classes is not None)


def in_same_buckets(
    a: Counts, b: Counts, histograms: Mapping[str, Histogram] = MappingProxyType({})
) -> tuple[Counts, Counts]:
    """Counts of the same columns with their numbers in the same buckets.

    They are as wide as the wider ones of both, and as the histograms of both together need them.
    """
    schema = cast(Schema, a.schema)
    n_columns = len(schema.bucketed) if schema.coupled else 1
    grids = {}
    for name, grid in a.numbers.grids.items():
        grids[name] = grid.coarser(b.numbers.grids[name])
        if name in histograms:
            grids[name] = grids[name].coarser(histograms[name].paired(n_columns).grid)
    return in_buckets(a, grids), in_buckets(b, grids)


def in_buckets(counts: Counts, grids: Mapping[str, Grid]) -> Counts:
    """Counts whose numbers are in wider buckets."""
    wider = [name for name, grid in grids.items() if counts.numbers.grids[name] != grid]
    if not wider:
        return counts
    labels, new = list(counts.labels), []
    for a, (name, column_labels) in enumerate(zip(counts.names, counts.labels, strict=True)):
        first = np.arange(len(column_labels))
        if name in wider:
            starts = np.array([label for label in column_labels if label is not None], np.float64)
            starts = starts_of(starts, grids[name])
            first = first_of(starts)
            gap = [len(column_labels) - 1] if None in column_labels else []
            labels[a] = (*starts[first].tolist(), *([None] if gap else []))
            first = np.concatenate([first, gap]).astype(np.intp)
        new.append(counts.offsets[a] + first)
    vocabulary, side = Vocabulary(counts.vocabulary.names, tuple(labels)), counts.class_pairs
    first = np.concatenate(new)
    return replace(
        counts,
        vocabulary=vocabulary,
        pairs=merged_values(counts.pairs, first),
        class_pairs=None if side is None else np.add.reduceat(side, first, axis=0),
        numbers=replace(counts.numbers, grids=dict(grids)),
    )


def _levels(counts: Counts) -> list[tuple[Label, ...] | None]:
    """The levels of each column, the classes last."""
    classes: list[tuple[Label, ...] | None] = [None] * (counts.classes is not None)
    parts = cast(Schema, counts.schema).parts
    return [c.levels if c.name == name else None for name, c in parts.items()] + classes


def with_classes(counts: Counts) -> Vocabulary:
    """The vocabulary of counts with the classes as a last column."""
    if counts.classes is None:
        return counts.vocabulary
    return Vocabulary((*counts.vocabulary.names, "y"), (*counts.vocabulary.labels, counts.classes))


def expand(counts: Counts, vocabulary: Vocabulary) -> Any:
    """The pair counts over a larger vocabulary; classes, if there are, come last in both."""
    pairs, values = counts.pairs, with_classes(counts)
    if counts.classes is not None:
        class_n = cast(np.ndarray, counts.class_n)
        corner = sparse.diags_array(class_n, format="csr", dtype=class_n.dtype)
        side = sparse.csr_array(counts.class_pairs)
        pairs = sparse.block_array(
            [[sparse.csr_array(pairs), side], [side.T, corner]], format="csr"
        )
    index, size = values.reindex(vocabulary), vocabulary.n_values
    if size > DENSE_VALUES:
        pairs = sparse.csr_array(pairs)
    if sparse.issparse(pairs):
        coo = pairs.tocoo()
        where = (index[coo.coords[0]], index[coo.coords[1]])
        return tidy(sparse.coo_array((coo.data, where), shape=(size, size)).tocsr())
    out = np.zeros((size, size), pairs.dtype)
    out[np.ix_(index, index)] = pairs
    return tidy(out)


def noise_of(counts: Counts) -> float:
    """What counts as zero after a subtraction: nothing for integers, else rounding."""
    integers = counts.pairs.dtype.kind == "i" and isinstance(counts.n, int)
    return 0.0 if integers else 1e-9 * max(abs(counts.n), 1e-300)


def check_nonnegative(
    schema: Schema,
    n: int | float,
    vocabulary: Vocabulary,
    pairs: Any,
    moments: np.ndarray,
    noise: float,
) -> Any:
    """Raise for counts below zero after a subtraction; return the pairs without rounding."""
    coo = sparse.coo_array(pairs)
    if len(coo.data) and coo.data.min() < -noise:
        worst = int(coo.data.argmin())
        values = dict.fromkeys(int(axis[worst]) for axis in coo.coords)
        where = " with ".join(map(vocabulary.describe, values))
        raise ValueError(f"{where}: cannot subtract more rows than were counted")
    for part, digits in zip(schema.bucketed, moments, strict=True):
        is_left = n == 0 and digits.dtype.kind == "i" and digits.any()
        if is_left or exact(digits[0]) < -noise:
            raise ValueError(f"column {part!r}: cannot subtract numbers that were not counted")
    if n < 0:
        raise ValueError("cannot subtract more rows than were counted")
    if coo.data.max(initial=0) > n + 2 * noise:  # rows of sets may be other rows, of fewer values
        value = vocabulary.describe(int(coo.coords[0][coo.data.argmax()]))
        raise ValueError(f"{value}: cannot subtract rows that were not counted")
    if not noise:
        return pairs
    present = np.abs(coo.data) > noise
    coords = tuple(axis[present] for axis in coo.coords)
    return tidy(sparse.coo_array((coo.data[present], coords), shape=coo.shape).tocsr())


def check_histograms(histograms: Mapping[str, Histogram], noise: float) -> None:
    """Raise for buckets of fewer than no numbers after a subtraction."""
    for name, histogram in histograms.items():
        if len(histogram.times) and histogram.times.min() < -noise:
            raise ValueError(
                f"column {name!r}: cannot subtract numbers that were not counted, near "
                f"{histogram.starts[histogram.times.argmin()]:g}"
            )


def equal_histograms(a: Mapping[str, Histogram], b: Mapping[str, Histogram]) -> bool:
    """Tell whether histograms of the same columns are equal, in the wider buckets of both."""
    pairs = [
        (histogram, b[name], histogram.grid.coarser(b[name].grid)) for name, histogram in a.items()
    ]
    regridded = [(histogram.at(grid), other.at(grid)) for histogram, other, grid in pairs]
    return all(
        np.array_equal(histogram.starts, other.starts)
        and np.array_equal(histogram.times, other.times)
        for histogram, other in regridded
    )


def drop_negligible(counts: Counts) -> Counts:
    """Drop the values that scaling has made too light to matter; classes stay."""
    noise = noise_of(counts)
    light = counts.value_counts <= noise
    if not light.any():
        return counts
    levels = _levels(replace(counts, classes=None))
    vocabulary, pairs = canonical(counts.vocabulary, counts.pairs, levels, noise)
    class_pairs = None if counts.class_pairs is None else counts.class_pairs[~light]
    histograms = {k: histogram.without(noise) for k, histogram in counts.numbers.histograms.items()}
    numbers = replace(counts.numbers, histograms=histograms)
    return replace(
        counts, vocabulary=vocabulary, pairs=pairs, class_pairs=class_pairs, numbers=numbers
    )


def check_same_columns(a: Counts, b: Counts) -> None:
    """Raise for counts of different columns."""
    left = {c.name: c for c in cast(Schema, a.schema).columns}
    right = {c.name: c for c in cast(Schema, b.schema).columns}
    for name in [*left, *right]:
        if name not in left or name not in right:
            raise ValueError(
                f"column {name!r} is in only one of the counts; keep the common columns with "
                f"select()"
            )
        if left[name] != right[name]:
            raise ValueError(
                f"column {name!r} is {left[name].kind} in one and {right[name].kind} in the other "
                "(or has other levels); declare it in the schema of both"
            )
    if (a.classes is None) != (b.classes is None):
        raise ValueError("only one of the counts has classes; count both with y")


def equal(a: Any, b: Any) -> bool:
    """Tell whether two matrices have the same storage, shape and entries."""
    if sparse.issparse(a) != sparse.issparse(b) or a.shape != b.shape:
        return False
    return not (a != b).nnz if sparse.issparse(a) else np.array_equal(a, b)
