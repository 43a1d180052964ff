"""Plan: what a fitted embedder does with a row, as steps that other systems can do.

A fitted embedder comes in; the steps of its space, under its policies, go out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from tabweave._compat import warn_caller
from tabweave.columns.column import Column, Schema
from tabweave.space.space import Line, Lookup, Step, Sum


@dataclass(frozen=True, eq=False)
class Plan:
    """Steps whose dimensions stand side by side."""

    steps: list[Step]
    names: list[str]
    dtype: np.dtype
    missing_texts: tuple[str, ...]  # which the schema reads as missing
    columns: dict[str, Column] = field(default_factory=dict)  # what the embedder reads

    @property
    def lookups(self) -> list[Lookup]:
        """Every table of values, those that are summed too."""
        return [part for part in self._parts() if isinstance(part, Lookup)]

    @property
    def lines(self) -> list[Line]:
        """Every line or curve of numbers, those that are summed too."""
        return [part for part in self._parts() if isinstance(part, Line)]

    def period(self, line: Line) -> float | None:
        """After how much the numbers of a line repeat: 0 if never; None if cells have none."""
        column = self.columns.get(line.column)
        return 0.0 if column is None else column.cells_type.period(line.part)

    def line_name(self, line: Line) -> str:
        """The name of a column of numbers, or of what is left of it over whole periods."""
        period = self.period(line)
        return f"{line.column} mod {period:.0f} s" if period else str(line.part)

    def _parts(self) -> Iterator[Lookup | Line]:
        for step in self.steps:
            yield from step.steps if isinstance(step, Sum) else (step,)


def plan_of(embedder: Any, *, sets: bool = False) -> Plan:
    """What an embedder does with a row; raise where that is more than steps can say."""
    check_is_fitted(embedder)
    if hasattr(embedder, "learn"):
        embedder.learn()
    space = getattr(embedder, "space_", None)
    if space is None:
        raise TypeError(
            f"{type(embedder).__name__} does more than look values up, so it cannot be exported; "
            "give an embedder of categories such as Weave, or keep it with tabweave.export.save"
        )
    schema: Schema = embedder.schema_
    names = embedder.get_feature_names_out().tolist()
    steps = space.export(embedder.unknown)
    if schema.missing == "error":
        steps = [_strict(step) for step in steps]
    columns = {column.name: column for column in schema.columns}
    missing_texts = ("",) * schema.empty_is_missing + schema.missing_words
    plan = Plan(steps, names, np.dtype(embedder.dtype), missing_texts, columns)
    for part in plan.lookups if not sets else ():
        if schema[part.column].is_set:
            raise ValueError(
                f"column {part.column!r} holds sets, and a lookup finds one value a cell; "
                "leave the column out, or export the tables with tabweave.export.parquet"
            )
    _tell_spelled(plan, embedder.unknown)
    return plan


def _tell_spelled(plan: Plan, unknown: str) -> None:
    """Warn of columns in which a string that is not known lies where no lookup can say."""
    spelled = [part.column for part in plan.lookups if part.unknown is None]
    if spelled and unknown == "centroid":
        first = spelled[0]
        warn_caller(
            f"columns {', '.join(map(repr, dict.fromkeys(spelled)))} are compared by spelling: "
            "rows with a string that fit has not seen get no vector (NULL or NaN) from an export, "
            "where transform places them beside strings spelled alike. To have them count as "
            "average, "
            f"fit with schema={{{first!r}: Column({first!r}, spelling=False)}}"
        )


def _strict(step: Any) -> Any:
    """A step that refuses missing values."""
    if isinstance(step, Sum):
        return Sum(tuple(map(_strict, step.steps)))
    return replace(step, missing=None)
