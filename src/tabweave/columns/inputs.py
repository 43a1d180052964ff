"""Inputs of estimators: columns as those of fit, checked as scikit-learn does, and targets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from tabweave.columns.column import Schema
from tabweave.columns.frames import columns_of, object_array, objects, typed
from tabweave.columns.table import Table, check_feature_names
from tabweave.columns.vocabulary import canonical

_NO_NUMBERS = "could not convert string", "setting an array element"  # of text, of lists


def check_input_features(estimator: Any, input_features: Any) -> None:
    """Refuse names given to ``get_feature_names_out`` that are not those of fit."""
    if input_features is None:
        return
    names, fitted_names = list(input_features), list(estimator.schema_.given)
    if hasattr(estimator, "feature_names_in_") and names != fitted_names:
        raise ValueError("input_features is not equal to feature_names_in_")
    if len(names) != len(fitted_names):
        raise ValueError(
            "input_features should have length equal to number of features "
            f"({len(fitted_names)}), got {len(names)}"
        )


def check_categorical(estimator: Any, schema: Schema | None) -> None:
    """Raise for a numeric column, which an estimator of categories does not read."""
    for column in schema.numeric if schema is not None else ():
        raise ValueError(
            f"column {column.name!r} is {column.kind}; {type(estimator).__name__} reads "
            "categories: declare it nominal (schema='nominal'), or leave it out"
        )


@contextmanager
def numbers_only(X: Any, remedy: str, where: str = "X") -> Iterator[None]:
    """Say which column of what is to be numbers holds text, and what to do about it."""
    if isinstance(X, Mapping) and not issparse(X):
        raise TypeError(
            f"{where}: expected an array or a frame of numbers, got {type(X).__name__}; "
            f"pandas.DataFrame(...) makes a frame of columns; {remedy}"
        )
    try:
        yield
    except ValueError as error:
        if not any(message in str(error) for message in _NO_NUMBERS):
            raise
        names, cells, _ = columns_of(X)
        texts = [i for i, column in enumerate(cells) if not _are_numbers(column)]
        which = f"{where}, column {names[texts[0]]!r}" if names and texts else where
        raise ValueError(f"{which}: {error}; {remedy}") from error


def _are_numbers(column: Any) -> bool:
    try:
        np.asarray(column, np.float64)
    except (TypeError, ValueError):
        return False
    return True


def read_with_fitted_schema(estimator: Any, X: Any, *, numbers: Any = "nominal") -> Table:
    """Read rows as the rows of fit were read, columns checked as scikit-learn does."""
    if not isinstance(X, Mapping | list | tuple | Table):
        check_feature_names(estimator, X, estimator.schema_)
    table = Table.of(X, estimator.schema_, numbers=numbers)
    if table.schema.names != estimator.schema_.names:
        raise ValueError(f"expected columns {estimator.schema_.names}, got {table.schema.names}")
    return table


# -- targets ---------------------------------------------------------------------------------------


def target_array(y: Any) -> np.ndarray:
    """A target as an array: objects that are all numbers or bools as such."""
    if isinstance(y, str):
        raise TypeError(
            f"expected y to be an array of targets, one per row, got the string {y!r}; pass the "
            f"column"
        )
    if hasattr(y, "to_pylist"):
        y = objects(y)
    types = set(map(type, y)) if isinstance(y, list | tuple) else set()
    if types & {str, bool} and len(types) > 1:
        y = object_array(y)  # NumPy would make text of 1 and of NaN beside text, and 1 of True
    numpy_dtype = getattr(getattr(y, "dtype", None), "numpy_dtype", None)
    if numpy_dtype is not None:  # of pandas: bools and whole numbers may be floats
        y = y.to_numpy(object if y.isna().any() else numpy_dtype)
    return _unboxed(column_or_1d(y, warn=True))


def _unboxed(labels: np.ndarray) -> np.ndarray:
    if labels.dtype != object or labels.ndim != 1:
        return labels
    cells = labels.tolist()
    types = set(map(type, cells))
    if types == {str}:
        return labels
    if any(issubclass(kind, Decimal) for kind in types):
        cells = [float(cell) if isinstance(cell, Decimal) else cell for cell in cells]
    return np.asarray(typed(object_array(cells)))


def target_numbers(labels: np.ndarray, otherwise: str, name: str = "y") -> np.ndarray:
    """A target as numbers; ``otherwise`` is what to use for classes."""
    check_unit(labels, name)
    try:
        return labels.astype(np.float64)
    except (TypeError, ValueError):
        example = labels.tolist()[0]
        raise ValueError(
            f"expected {name} to be numbers, got {example!r}; use {otherwise} for classes"
        ) from None


def check_unit(labels: np.ndarray, name: str = "y") -> None:
    """Raise for dates and durations, whose numbers depend on the unit they are stored in."""
    if labels.dtype.kind in "Mm":
        start = " - np.datetime64('1970-01-01')" if labels.dtype.kind == "M" else ""
        raise ValueError(
            f"expected {name} to be numbers, got {labels.dtype}; convert them to a unit, such as "
            f"days: (y{start}) / np.timedelta64(1, 'D')"
        )


def check_class_labels(labels: np.ndarray) -> None:
    """Raise for a target that holds numbers, or classes of several types, which do not sort."""
    if labels.dtype == object:
        examples = {type(canonical(label)).__name__: label for label in labels.tolist()}
        if len(examples) > 1:
            named = " and ".join(f"{value!r} of type {kind}" for kind, value in examples.items())
            raise ValueError(
                f"expected classes of one type in y, got {named}; convert all of them to strings"
            )
    check_classification_targets(labels)


def check_target(labels: np.ndarray) -> None:
    """Raise for a row that has no target, and name it."""
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        row = int(np.flatnonzero(~np.isfinite(labels))[0])
        raise ValueError(
            f"Input y contains NaN or infinity: row {row} is {labels.ravel()[row]}; drop the row "
            "or give it a target"
        )
    if labels.dtype.kind == "O":
        for row, label in enumerate(labels.ravel().tolist()):
            if canonical(label) is None:
                raise ValueError(f"y of row {row} is missing; drop the row or give it a target")


def check_discrete(name: str, y: Any) -> None:
    """Raise for a target of many numbers with fractions, each of which would be a class.

    Up to twenty may be classes, such as half stars.
    """
    labels = _unboxed(np.asarray(y))
    if labels.dtype.kind != "f":
        return
    finite = labels[np.isfinite(labels)]
    if (finite % 1 != 0).any() and len(np.unique(finite)) > 20:
        raise ValueError(
            f"{name}: expected classes in y, got numbers such as {finite[0]:.6g}; bin them, or "
            f"use SupervisedWeave, which learns from numbers"
        )
