"""Targets: y becomes an array of classes or numbers; rows without one are named."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from tabweave.columns.frames import object_array, objects, typed
from tabweave.columns.vocabulary import canonical


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
