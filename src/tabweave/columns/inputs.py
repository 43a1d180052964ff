"""Inputs of estimators: read as those of fit were, their columns checked as scikit-learn does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
from scipy.sparse import issparse

from tabweave.columns.column import Schema
from tabweave.columns.frames import columns_of
from tabweave.columns.table import Table, check_feature_names

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
