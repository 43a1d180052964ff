"""Plan: what a fitted embedder does with a row, as lookups and lines that other systems can do.

A fitted embedder comes in; per column a table of vectors, or a straight line for numbers, goes out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from sklearn.utils.validation import check_is_fitted

from tabweave.base import ValueEmbedder
from tabweave.blocks.numbers import Absolute, Standard, bent, terms
from tabweave.blocks.value_tables import ValueTables
from tabweave.embed.mixed import MixedEmbedder
from tabweave.embed.windowed import Windowed
from tabweave.rows.table import Schema
from tabweave.rows.vocabulary import Bucket, Label


@dataclass(frozen=True, eq=False)
class Lookup:
    """A column of values: a row for each, and what becomes of those that are missing or unknown.

    None in the place of a row says that the embedder refuses such values.
    """

    column: str
    labels: tuple[Label, ...]  # without missing
    rows: np.ndarray
    missing: np.ndarray | None
    unknown: np.ndarray | None

    @property
    def width(self) -> int:
        """Number of dimensions."""
        return self.rows.shape[1]


@dataclass(frozen=True, eq=False)
class Line:
    """A column of numbers: ``z = (x - mean) * factor``, 0 for a missing one unless refused.

    With curves, each dimension is a sum: their rows say how often to take ``|z - bend|`` for each
    bend, ``z``, and 1.
    """

    column: str
    mean: float
    factor: float
    refuses_missing: bool
    curves: np.ndarray | None = None

    @property
    def missing(self) -> np.ndarray:
        """What a missing number becomes."""
        return np.zeros(1) if self.curves is None else (terms(np.zeros(1)) @ self.curves)[0]


@dataclass(frozen=True, eq=False)
class Plan:
    """Values looked up and combined, then the dimensions of numbers and grades."""

    values: list[Lookup]
    combine: Literal["concat", "sum"]
    numbers: list[Lookup | Line]
    names: list[str]
    dtype: np.dtype
    empty_is_missing: bool


def plan_of(embedder: Any, *, sets: bool = False) -> Plan:
    """Return what an embedder does with a row; refuse what is more than a lookup."""
    if isinstance(embedder, Windowed):
        check_is_fitted(embedder, "embedder_")
        embedder = embedder.embedder_
    if not isinstance(embedder, ValueEmbedder | MixedEmbedder):
        raise TypeError(
            f"{type(embedder).__name__} does more than look values up, so it cannot be exported; "
            "give an embedder of categories such as Weave, or keep it with tabweave.export.save"
        )
    check_is_fitted(embedder, "counts_")
    names = embedder.get_feature_names_out().tolist()
    schema, tables = embedder.schema_, embedder.tables_
    values = [] if tables is None else _lookups(tables, schema, embedder.unknown)
    if not sets:
        _refuse_sets(values, schema)
    numbers = _numbers(embedder) if isinstance(embedder, MixedEmbedder) else []
    return Plan(
        values,
        "concat" if tables is None else tables.combine,
        numbers,
        names,
        np.dtype(embedder.dtype),
        schema.empty_is_missing,
    )


def _lookups(tables: ValueTables, schema: Schema, policy: str) -> list[Lookup]:
    out = []
    for name, labels, rows in zip(tables.names, tables.labels, tables.tables, strict=True):
        unknown = None if policy == "error" else rows[-1]
        known = [i for i, v in enumerate(labels) if v is not None and type(v) is not Bucket]
        missing = rows[labels.index(None)] if None in labels else unknown
        if schema.missing == "error":
            missing = None
        rule = tables.vocabulary.buckets.get(name)
        if isinstance(rule, int):
            raise ValueError(
                f"column {name!r} was counted in hashed buckets, which no lookup can name; count "
                "it with other='frequency', or keep the embedder with tabweave.export.save"
            )
        if rule is not None:  # as in transform: what is not named is in the bucket
            unknown = rows[labels.index(Bucket())]
        out.append(Lookup(name, tuple(labels[i] for i in known), rows[known], missing, unknown))
    return out


def _numbers(embedder: MixedEmbedder) -> list[Lookup | Line]:
    block = embedder.numeric_
    if block is None:
        return []
    if not isinstance(block, Standard | Absolute):
        raise ValueError(
            f"numeric={embedder.numeric!r} is not linear in each column, so it cannot be exported; "
            "use numeric='standard' or 'absolute', or keep the model with tabweave.export.save"
        )
    refuses = embedder.schema_.missing == "error"
    return [_number(embedder, block, j, refuses) for j in range(len(block.names))]


def _number(embedder: MixedEmbedder, block: Any, j: int, refuses: bool) -> Lookup | Line:
    name, scale = block.names[j], embedder.numeric_scale_
    if name in embedder._numbering.levels:
        levels = embedder._numbering.levels[name]
        *ranks, middle = block.column(j, np.append(np.arange(len(levels)), np.nan)) * scale
        unknown = None if embedder.unknown == "error" else middle
        return Lookup(name, tuple(levels), np.array(ranks), None if refuses else middle, unknown)
    mean, factor = float(block.mean[j]), float(block.factor[j])
    if isinstance(block, Standard):
        return Line(name, mean, factor * scale, refuses)
    return Line(name, mean, factor, refuses, bent(block.rows * block.height[j] * scale))


def _refuse_sets(values: list[Lookup], schema: Schema) -> None:
    for part in values:
        if schema[part.column].kind == "set":
            raise ValueError(
                f"column {part.column!r} holds sets, and a lookup finds one value a cell; "
                "leave the column out, or export the tables with tabweave.export.parquet"
            )
