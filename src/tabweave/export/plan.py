"""Plan: what a fitted embedder does with a row, as steps that other systems can do.

A fitted embedder comes in; the steps of its space, under its policies, go out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from tabweave._compat import warn_caller
from tabweave.columns.cells import column_of
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

    def period(self, line: Line | Cuts) -> float | None:
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
                "leave the column out, declare it 'nominal' if it is text, or export the tables "
                "with tabweave.export.parquet"
            )
    _tell_spelled(plan, embedder.unknown)
    return plan


# -- scores that add up ---------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Cuts:
    """A column of numbers whose code is how many edges are at most the number.

    ``missing`` is the code of a missing number; None if it is refused.
    """

    part: str
    edges: np.ndarray
    missing: int | None

    @property
    def column(self) -> str:
        """The column."""
        return column_of(self.part)


@dataclass(frozen=True, eq=False)
class JointTable:
    """What one column, or a few joined ones, add to each score.

    Attributes
    ----------
    title : str
        The columns.
    axes : tuple of int
        Which codes are joined, by their places in the plan.
    strides : tuple of int
        What each code is multiplied by; the sum is the row of the table.
    rows : ndarray of shape (cells, scores)
        What is added.
    """

    title: str
    axes: tuple[int, ...]
    strides: tuple[int, ...]
    rows: np.ndarray


@dataclass(frozen=True, eq=False)
class ScorePlan:
    """Codes of cells, tables that they lead to, and what becomes of the sums.

    Attributes
    ----------
    cells : Plan
        The lookups of values, each of one coordinate: the code; and what the columns are.
    axes : list of Lookup or Cuts
        How a cell of each column becomes a code.
    terms : list of JointTable
        What is added up.
    intercept : ndarray of shape (scores,)
        What they are added to.
    classes : list or None
        The classes, whose probabilities the scores give; None of numbers.
    """

    cells: Plan
    axes: list[Lookup | Cuts]
    terms: list[JointTable]
    intercept: np.ndarray
    classes: list[Any] | None

    @property
    def names(self) -> list[str]:
        """What comes out: the prediction, and a score or probability for each class."""
        if self.classes is None:
            return ["prediction"]
        return ["prediction", *(f"probability {label}" for label in self.classes)]


def scores_of(model: Any) -> ScorePlan | None:
    """What a model of scores does with a row; None of what makes vectors.

    Predictors have scores where neighbours have no share in their answers.
    """
    if not hasattr(model, "kneighbors"):
        return score_plan(model, model.classes_) if hasattr(model, "additive_score") else None
    check_is_fitted(model)
    additive, share = getattr(model, "additive_", None), getattr(model, "additive_weight_", 0.0)
    if additive is not None and share == 1:
        return score_plan(additive, getattr(model, "classes_", None))
    name, remedy = type(model).__name__, "fit BoostedWeave to these rows"
    if additive is not None:
        remedy = "export its additive_ (whose classes are numbered in the order of classes_)"
    raise TypeError(
        f"{name} asks its training rows, of which an export has none: the votes of neighbours are "
        f"{1 - share:.0%} of its answers; {remedy}, or keep it with tabweave.export.save"
    )


def score_plan(model: Any, labels: Iterable[Any] | None) -> ScorePlan:
    """What an additive model does with a row; raise where a cell has more than one value."""
    check_is_fitted(model)
    schema: Schema = model.schema_
    places: dict[tuple[Any, ...], int] = {}
    axes: list[Lookup | Cuts] = []
    terms = []
    for term in model.terms_:
        joined = []
        for axis in term.axes:
            codes = axis.groups if axis.edges is None else axis.edges
            key = axis.part, axis.edges is None, codes.tobytes()
            if key not in places:
                places[key] = len(axes)
                axes.append(_coded(axis, schema, model.unknown))
            joined.append(places[key])
        sizes = np.array([axis.size for axis in term.axes])
        strides = np.append(np.cumprod(sizes[::-1])[::-1][1:], 1)
        terms.append(JointTable(term.title, tuple(joined), tuple(strides.tolist()), term.rows))
    columns = {column.name: column for column in schema.columns}
    missing_texts = ("",) * schema.empty_is_missing + schema.missing_words
    lookups: list[Step] = [axis for axis in axes if isinstance(axis, Lookup)]
    cells = Plan(lookups, [], np.dtype(np.float64), missing_texts, columns)
    classes = None if labels is None else list(labels)
    if isinstance(labels, np.ndarray):
        classes = labels.tolist()  # as Python has them
    return ScorePlan(cells, axes, terms, np.asarray(model.intercept_, np.float64), classes)


def _coded(axis: Any, schema: Schema, unknown: str) -> Lookup | Cuts:
    """How a cell becomes a code of an axis of an additive model."""
    column = schema[column_of(axis.part)]
    strict = schema.missing == "error"
    if axis.edges is not None:
        return Cuts(axis.part, axis.edges, None if strict else axis.size - 1)
    if column.is_set:
        raise ValueError(
            f"column {column.name!r} holds sets, and a lookup finds one value a cell; leave the "
            "column out, or declare it 'nominal' if it is text"
        )
    if axis.is_element:
        raise ValueError(
            f"column {column.name!r}: words of its strings count, which no lookup finds; leave the "
            f"column out, or fit with schema={{{column.name!r}: Column({column.name!r}, "
            "spelling=False)} to have whole strings count"
        )
    codes = dict(zip(axis.labels, axis.groups.tolist(), strict=True))
    last = np.array([axis.size - 1.0])
    missing = np.array([float(codes.pop(None, axis.size - 1))])
    rows = np.array(list(codes.values()), np.float64)[:, None]
    others = None if unknown == "error" else last
    return Lookup(column.name, tuple(codes), rows, None if strict else missing, others)


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
