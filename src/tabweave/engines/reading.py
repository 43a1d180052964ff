"""Rows of an embedder: read and counted, wherever they are; what it holds of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import wraps
from typing import Any, TypeVar, cast

import numpy as np
from sklearn.utils import get_tags
from sklearn.utils.validation import _check_feature_names, check_is_fitted

from tabweave.columns.column import Column, Schema
from tabweave.columns.decision import Finding
from tabweave.columns.frames import array_on_device, in_memory, named_columns, objects
from tabweave.columns.identifiers import warn_of_predictive
from tabweave.columns.kinds import Kinds
from tabweave.columns.nominal import spelling_note
from tabweave.columns.table import (
    Table,
    as_rows,
    check_feature_names,
    check_keys,
    remember_names,
    require_rows,
)
from tabweave.counts.counts import Counts, counted_schema
from tabweave.counts.unknown import report_unknown, spelled_columns
from tabweave.engines.counting import count, count_for, sample
from tabweave.engines.opening import is_countable, is_source, open_source, read
from tabweave.engines.source import join_batches
from tabweave.engines.transform import Types, results_of_source
from tabweave.gpu import arrays as gpu
from tabweave.space.numbers import varying_columns

Embedder = TypeVar("Embedder", bound=Any)
Method = TypeVar("Method", bound=Callable[..., Any])


def needs_classes(estimator: Any) -> bool:
    """Tell whether an estimator learns from y."""
    return bool(get_tags(estimator).target_tags.required)


def require_classes(estimator: Any, y: Any) -> None:
    """Raise if an estimator that learns from y has none."""
    if y is None and needs_classes(estimator):
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None"
        )


# -- reading -----------------------------------------------------------------------------------


def read_rows(embedder: Any, X: Any, schema: Schema | None = None, *, whole: bool = False) -> Table:
    """Read rows under a schema, or as they were declared; ``whole`` says that no others follow."""
    schema = Schema.of(embedder.schema) if schema is None else schema
    is_fitted = schema is vars(embedder).get("schema_")
    if not in_memory(X) and is_source(X):
        X = read(X, fitted=embedder.counts_.select(schema.names) if is_fitted else None)
    table = Table.of(X, schema, rules="whole" if whole else "first")
    if is_fitted:
        vocabulary = embedder.counts_.vocabulary
        table = vocabulary.fold(vocabulary.in_words(table))
    return table


def read_whole(embedder: Any, X: Any) -> Any:
    """Read rows to fit and to transform if they are in memory; leave what is elsewhere."""
    if not in_memory(X) or isinstance(X, Table):
        return X
    embedder._validate_params()
    return read_rows(embedder, X, whole=True)


def read_fitted(embedder: Any, X: Any) -> Table:
    """Read rows under the schema of fit, columns checked as scikit-learn does."""
    check_is_fitted(embedder, "counts_")
    schema = embedder.schema_
    is_frame = in_memory(X) or not is_source(X)  # what lies elsewhere is read by name
    if is_frame and hasattr(X, "columns") and not isinstance(X, Table):
        check_feature_names(embedder, X, schema)
    table = read_rows(embedder, X, schema)
    # A warning, and only for what can be read at all; a structured array has names.
    if isinstance(X, np.ndarray) and X.dtype.names is None:
        _check_feature_names(embedder, X, reset=False)
    if isinstance(X, Table) and X.schema.names != schema.names:
        raise ValueError(f"expected columns {schema.names}, got {X.schema.names}")
    return table


def read_queries(embedder: Any, X: Any) -> Table:
    """Read rows that are asked about: what fit has not seen is reported, or refused."""
    table = read_fitted(embedder.learn(), X)
    if embedder.unknown not in ("centroid", "error"):
        raise ValueError(f"expected unknown to be 'centroid' or 'error', got {embedder.unknown!r}")
    if embedder.unknown == "centroid":
        report_unknown(embedder, table)
    return table


def coordinates_of(embedder: Any, X: Any) -> Any:
    """The vectors of rows in memory, or where they lie: on a device those of a device."""
    table, space = read_queries(embedder, X), embedder.space_
    dtype, unknown = np.dtype(embedder.dtype), embedder.unknown
    array = array_on_device(X)
    if array is not None:
        return gpu.as_caller_has(space.coordinates_on_device(table, dtype, unknown), array)
    return space.coordinates(table, dtype=dtype, unknown=unknown)


def read_row(embedder: Any, row: Any) -> Table:
    """Read the one row that is asked about, in any form a row has."""
    if not hasattr(row, "__len__"):
        raise TypeError(
            f"expected a row (a dict, a sequence of cells or a one-row frame), got {row!r}"
        )
    table = read_queries(embedder, as_rows(row, embedder.learn().schema_))
    if table.n_rows != 1:
        raise ValueError(f"expected one row, got {table.n_rows}")
    return table


def read_pair(embedder: Any, X: Any, Y: Any) -> tuple[Table, Table | None]:
    """Read the rows of X, and of Y if these are others."""
    left = read_queries(embedder, X)
    return left, None if Y is None or Y is X else read_queries(embedder, Y)


def by_parts(types: Types | Mapping[str, str] | None) -> Callable[[Method], Method]:
    """Let a method of a fitted estimator take rows wherever they are.

    Parameters
    ----------
    types : mapping, or callable from estimator and source to one
        What the columns of results of a distributed frame are called, and hold; None refuses it.
    """

    def decorate(method: Method) -> Method:
        @wraps(method)
        def of_rows(self: Any, X: Any, *args: Any, **options: Any) -> Any:
            if in_memory(X) or not is_source(X):
                return method(self, X, *args, **options)
            return results_of_source(method, self, X, types, *args, **options)

        return cast(Method, of_rows)

    return decorate


# -- counting ----------------------------------------------------------------------------------


def count_first(
    embedder: Any, X: Any, y: Any, sample_weight: Any, *, whole: bool = False
) -> Counts:
    """Count the first rows, wherever they are; ``whole`` says that no others follow."""
    if not in_memory(X) and is_countable(X):
        return _count_source(embedder, X, y, sample_weight, Schema.of(embedder.schema), Counts())
    table = read_rows(embedder, X, whole=whole)
    require_rows(table)
    return count_table(embedder, table, y, sample_weight)


def count_more(embedder: Any, X: Any, y: Any, sample_weight: Any) -> Counts:
    """Count more rows as those before were counted, wherever they are."""
    schema = embedder.schema_
    if in_memory(X) or not is_countable(X):
        check_keys(X, schema)
        return count_table(embedder, read_fitted(embedder, X), y, sample_weight)
    counts = embedder.counts_.select(schema.names)
    return _count_source(embedder, X, y, sample_weight, schema, counts)


def count_table(embedder: Any, table: Table, y: Any, sample_weight: Any) -> Counts:
    """Count rows in memory as an embedder counts them."""
    table, y = embedder._countable(table, y, sample_weight)
    return Counts.of(table, y, sample_weight=sample_weight)


def read_sampled(X: Any) -> Any:
    """Rows in memory as they are; of a source those that stand for all, 131,072 at most."""
    if in_memory(X) or not is_source(X):
        return X
    source = open_source(X)
    names = source.choose()
    return join_batches(sample(source, names)[0], names)


def counted_elsewhere(X: Any, schema: Schema | None = None) -> Any:
    """Rows in memory as they are; of a source its counts, its columns read as others were."""
    if in_memory(X) or not is_source(X):
        return X
    source = open_source(X)
    if schema is None:
        return count_for(source, None, Schema.of(None), Counts(), _as_read)
    names = [name for name in schema.names if name in source.types]
    return count(source, columns=names, schema=schema.select(names))


def _as_read(table: Table, y: Any) -> tuple[Table, Any]:
    return table, y


def warn_of_predictive_in(X: Any, schema: Schema, y: Any) -> None:
    """Warn of columns that were dropped although they predict the target, wherever rows are.

    A source is judged by the rows that stand for all; one that is read only once is not.
    """
    names = [column.name for column in schema.dropped if column.why != "constant"]
    if not names:
        return
    if not in_memory(X) and is_countable(X):
        source = open_source(X)
        if not isinstance(y, str) or not source.repeats:
            return
        rows, _ = sample(source, [*names, y])
        X = dict(named_columns(join_batches(rows, [*names, y]))[0])
        y = objects(X.pop(y))
    warn_of_predictive(X, schema, y)


def _count_source(
    embedder: Any, X: Any, y: Any, sample_weight: Any, schema: Schema, fitted: Counts
) -> Counts:
    if sample_weight is not None:
        raise ValueError("sample_weight needs rows in memory; read the source first")
    require_classes(embedder, y)
    name = y if isinstance(y, str) else None
    counts = count_for(X, name, schema, fitted, embedder._countable)
    if needs_classes(embedder):
        return counts
    return replace(counts, classes=None, class_pairs=None, class_n=None)


# -- holding -----------------------------------------------------------------------------------


def start_counts(embedder: Embedder, counts: Counts, schema: Schema | None = None) -> Embedder:
    """Hold the first counts, and what they say of the columns."""
    hold_counts(embedder, counts)
    embedder.__dict__.pop("_earlier", None)  # of another stream
    embedder.schema_ = counted_schema(counts) if schema is None else schema
    remember_names(embedder, embedder.schema_)
    return embedder


def hold_counts(embedder: Embedder, counts: Counts, *, align: bool = False) -> Embedder:
    """Hold counts and drop what was learned from older ones.

    With ``align``, what is learned next will be turned towards what was learned before.
    """
    counted_schema(counts)
    state = embedder.__dict__
    if align and state.get("_learned"):
        embedder._earlier = state.get("tables_"), state.get("numbers_")
    for name in state.get("_learned", ()):
        state.pop(name, None)
    embedder._learned = ()
    embedder.counts_ = counts
    return embedder


def fitted_kinds(embedder: Any) -> Kinds:
    """Return what each column was read as, why, and which were dropped."""
    schema = embedder.schema_
    counted = embedder.__dict__.get("_counted")
    if counted is None:
        varying = {column.name for column in varying_columns(embedder.counts_, schema)}
    else:
        varying = set(counted.owners.values())
    out = [
        _finding(embedder, column)
        if column.name in varying
        else Finding(column.name, column.kind, "constant", False)
        for column in schema.columns
    ]
    for column in schema.dropped:
        out.insert(column.position or 0, column.finding(kept=False))
    return Kinds(out)


def _finding(embedder: Any, column: Column) -> Finding:
    """Return what a column that counts was read as, and whether its gaps count as a value."""
    finding = column.finding()
    if column.name in spelled_columns(embedder):
        counts = embedder.counts_
        labels = counts.labels[counts.vocabulary.index(column.name)]
        if spelled := spelling_note(column, labels):
            finding = finding._replace(why=spelled)
    informative = vars(embedder).get("gaps_", ())
    if column.name not in informative:
        return finding
    source = repr(informative[column.name]) if isinstance(informative, dict) else "the target"
    return finding._replace(why=f"{finding.why}; missing is a value: it depends on {source}")
