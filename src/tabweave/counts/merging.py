"""Merging: what :class:`tabweave.Counts` does to bring two vocabularies together and into order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from scipy import sparse

from tabweave.counts.counting import DENSE_VALUES, tidy
from tabweave.counts.moments import exact as moments_exact
from tabweave.rows.table import Schema
from tabweave.rows.vocabulary import Label, identity, positions
from tabweave.rows.vocabulary import order as label_order

if TYPE_CHECKING:
    from tabweave.counts.counts import Counts


def canonical(
    counts: Counts, levels: Sequence[tuple[Label, ...] | None], noise: float = 0.0
) -> Counts:
    """Drop values that do not occur and put the others in order, whatever order they came in."""
    present = counts.value_counts > noise
    kept = [np.zeros(0, np.intp)]
    labels: list[tuple[Label, ...]] = []
    for start, column, order in zip(counts.offsets, counts.labels, levels, strict=False):
        places = np.flatnonzero(present[start : start + len(column)])
        own = [column[i] for i in places.tolist()]
        _refuse_unlevelled(counts, len(labels), own, order)
        permutation = label_order(own, order)
        kept.append(start + places[permutation])
        labels.append(tuple(map(own.__getitem__, permutation.tolist())))
    values = np.concatenate(kept)
    pairs = counts.pairs
    if not np.array_equal(values, np.arange(pairs.shape[0])):
        pairs = pairs[values][:, values]
    return replace(counts, labels=tuple(labels), pairs=tidy(pairs))


def _refuse_unlevelled(
    counts: Counts, column: int, labels: Sequence[Label], levels: tuple[Label, ...] | None
) -> None:
    if levels is None:
        return
    known = {identity(level) for level in levels} | {identity(None)}
    odd = [label for label in labels if identity(label) not in known]
    if odd:
        name = cast(Schema, counts.schema).categorical[column].name
        raise ValueError(f"column {name!r}: {odd[0]!r} is none of its levels {list(levels)}")


def split_class(counts: Counts, has_class: bool) -> Counts:
    """Take the last column of the pairs out as the class."""
    if not has_class:
        return counts
    *labels, classes = counts.labels
    v = sum(map(len, labels))
    rest = counts.pairs[:v][:, v:]
    return replace(
        counts,
        labels=tuple(labels),
        pairs=tidy(counts.pairs[:v][:, :v]),
        classes=classes,
        class_pairs=rest.toarray() if sparse.issparse(rest) else np.ascontiguousarray(rest),
        class_n=np.asarray(counts.pairs.diagonal())[v:],
    )


def spread(
    counts: Counts, labels: Sequence[Sequence[Label]], classes: Sequence[Label] | None
) -> Any:
    """Return the pairs (classes last) over a larger vocabulary."""
    pairs, own = counts.pairs, list(counts.labels)
    wanted = list(labels)
    if classes is not None:
        corner = sparse.csr_array(np.diag(cast(np.ndarray, counts.class_n)))
        side = sparse.csr_array(counts.class_pairs)
        pairs = sparse.block_array(
            [[sparse.csr_array(pairs), side], [side.T, corner]], format="csr"
        )
        own, wanted = [*own, cast(tuple, counts.classes)], [*wanted, classes]
    starts = np.concatenate([[0], np.cumsum([len(w) for w in wanted])])
    places = np.concatenate(
        [np.zeros(0, np.intp)]
        + [s + positions(w, o) for s, w, o in zip(starts, wanted, own, strict=False)]
    )
    size = int(starts[-1])
    if size > DENSE_VALUES and not sparse.issparse(pairs):
        pairs = sparse.csr_array(pairs)
    if sparse.issparse(pairs):
        coo = pairs.tocoo()
        where = (places[coo.coords[0]], places[coo.coords[1]])
        return tidy(sparse.coo_array((coo.data, where), shape=(size, size)).tocsr())
    out = np.zeros((size, size), pairs.dtype)
    out[np.ix_(places, places)] = pairs
    return tidy(out)


def noise(counts: Counts) -> float:
    """Return what counts as zero after a subtraction: nothing for integers, else rounding."""
    exact = counts.pairs.dtype.kind == "i" and isinstance(counts.n, int)
    return 0.0 if exact else 1e-9 * max(abs(counts.n), 1e-300)


def settled(counts: Counts, noise: float) -> Counts:
    """Refuse counts below zero after a subtraction, and set what is rounding only to zero."""
    coo = sparse.coo_array(counts.pairs)
    if len(coo.data) and coo.data.min() < -noise:
        worst = int(coo.data.argmin())
        places = dict.fromkeys(int(axis[worst]) for axis in coo.coords)
        where = " with ".join(_place(counts, place) for place in places)
        raise ValueError(f"{where}: more rows would be taken away than were counted")
    numeric = [c.name for c in cast(Schema, counts.schema).numeric]
    for name, digits in zip(numeric, cast(np.ndarray, counts.digits), strict=True):
        gone = counts.n == 0 and digits.dtype.kind == "i" and digits.any()
        if gone or moments_exact(digits[0]) < -noise:
            raise ValueError(f"column {name!r}: numbers would be taken away that were not counted")
    if counts.n < 0:
        raise ValueError("more rows would be taken away than were counted")
    if not noise:
        return counts
    kept = np.abs(coo.data) > noise
    coords = tuple(axis[kept] for axis in coo.coords)
    pairs = sparse.coo_array((coo.data[kept], coords), shape=coo.shape).tocsr()
    return replace(counts, pairs=tidy(pairs))


def faded(counts: Counts) -> Counts:
    """Drop the values that scaling has made too light to matter."""
    light = counts.value_counts <= noise(counts)
    if not light.any():
        return counts
    levels = [c.levels for c in cast(Schema, counts.schema).categorical]
    kept = canonical(counts, levels, noise(counts))
    if counts.class_pairs is None:
        return kept
    return replace(kept, class_pairs=counts.class_pairs[~light])


def _place(counts: Counts, value: int) -> str:
    i = int(np.searchsorted(counts.offsets, value, side="right")) - 1
    name = [*counts.names, "y"][i]
    return f"column {name!r}, value {counts.labels[i][value - counts.offsets[i]]!r}"


def refuse_other_columns(a: Counts, b: Counts) -> None:
    """Refuse to combine counts of different columns."""
    mine = {c.name: c for c in cast(Schema, a.schema).columns}
    theirs = {c.name: c for c in cast(Schema, b.schema).columns}
    for name in [*mine, *theirs]:
        if name not in mine or name not in theirs:
            raise ValueError(
                f"column {name!r} is in one of the counts only; select() the common ones"
            )
        if mine[name] != theirs[name]:
            raise ValueError(
                f"column {name!r} is {mine[name].kind} in one and {theirs[name].kind} in the other "
                "(or has other levels); declare it in the schema of both"
            )
    if (a.classes is None) != (b.classes is None):
        raise ValueError("one of the counts has classes, the other has not; count both with y")


def identical_labels(a: Counts, b: Counts) -> bool:
    """Tell ``True`` from ``1``, which Python holds equal, in values and in classes."""
    flat = [
        [identity(v) for column in (*c.labels, c.classes or ()) for v in column] for c in (a, b)
    ]
    return flat[0] == flat[1]


def equal(a: Any, b: Any) -> bool:
    """Tell whether two matrices have the same storage, shape and entries."""
    if sparse.issparse(a) != sparse.issparse(b) or a.shape != b.shape:
        return False
    return not (a != b).nnz if sparse.issparse(a) else np.array_equal(a, b)
