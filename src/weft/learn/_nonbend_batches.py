"""Non-BEND out of core: variational inference over batches that are read again for every pass."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from weft._input import remember_names
from weft.counts import Counts
from weft.learn._nonbend_model import Fit
from weft.learn._nonbend_rows import Rows, locate
from weft.learn._nonbend_vi import VI
from weft.table import Codes, Schema, Table

SAMPLE_ROWS = 20_000


def fit_batches(
    model: Any, batches: Iterable[Any] | Callable[[], Iterable[Any]]
) -> tuple[Counts, list[Fit]]:
    """Return the counts of all batches and the model's fits over them."""
    engine = model._engine()
    if not isinstance(engine, VI):
        raise ValueError("batches need method='vi'; Gibbs sampling keeps the state of every row")
    again = batches if callable(batches) else lambda: batches
    if not callable(batches) and isinstance(batches, Iterator):
        raise TypeError(
            "an iterator can be read only once; give a list, or a function that returns a new "
            "iterator for every pass"
        )
    generators = model._generators()
    counts, sample = _first_pass(model, again(), generators[0])
    prior = model._prior(counts)
    rows = Rows.of(sample, counts, None)
    total = float(counts.n)

    def passes() -> Iterator[Rows]:
        for batch in again():
            table = model._read(batch, counts.schema)
            if table.n_rows:
                yield Rows.of(table, counts, None)

    fits = []
    for number, rng in enumerate(generators):
        first = engine.run(rows, prior, int(model.max_iter), rng)
        scaled = Fit(first.counts * (total / rows.total), first.sizes * (total / rows.total))
        fits.append(engine.ascend(passes, scaled, prior, int(model.max_iter)))
        if model.verbose:
            print(f"NonBEND: fit {number + 1}: {len(fits[-1].trace)} passes", file=sys.stderr)
    return counts, fits


def _first_pass(
    model: Any, batches: Iterable[Any], rng: np.random.Generator
) -> tuple[Counts, Table]:
    """Count all batches, and keep the rows with the smallest of one random number each."""
    counts, schema = Counts(), Schema.of(model.schema)
    kept: Table | None = None
    keys = np.zeros(0)
    for batch in batches:
        table = model._read(batch, schema)
        if not table.n_rows:
            continue
        if kept is None:
            schema = table.schema
            remember_names(model, schema)
        counts = counts + Counts.of(table)
        keys = np.concatenate([keys, rng.random(table.n_rows)])
        joined = table if kept is None else _stacked(kept, table)
        order = np.sort(np.argsort(keys, kind="stable")[:SAMPLE_ROWS])
        kept, keys = _taken(joined, order), keys[order]
    if kept is None:
        raise ValueError("the batches hold no row; fit_batches needs at least one")
    return counts, kept


def _stacked(a: Table, b: Table) -> Table:
    columns = []
    for name in a.schema.names:
        left, right = a[name], b[name]
        for column in (left, right):
            if not isinstance(column, Codes):
                locate(a, Counts.of(a))  # refuses sets, and says which column
        codes = np.concatenate(
            [left.codes.astype(np.int64), right.codes.astype(np.int64) + len(left.labels)]
        )
        columns.append(_relabelled(codes, [*left.labels, *right.labels]))
    return Table(a.schema, tuple(columns), a.n_rows + b.n_rows)


def _relabelled(codes: np.ndarray, labels: list[Any]) -> Codes:
    from weft import _labels

    known = _labels.union(labels)
    return Codes(_labels.positions(known, labels)[codes], known)


def _taken(table: Table, index: np.ndarray) -> Table:
    columns = tuple(
        Codes(column.codes[index], column.labels) if isinstance(column, Codes) else column
        for _, column in table
    )
    return Table(table.schema, columns, len(index))
