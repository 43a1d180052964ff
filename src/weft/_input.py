"""What every estimator that reads tables says of its input, in scikit-learn's words."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.table import Schema, Table


class TabularInput:
    """Tags of an estimator that takes categories, text and missing values; put it first."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.input_tags.allow_nan = True
        if tags.transformer_tags is not None:
            tags.transformer_tags.preserves_dtype = []
        return tags


def remember_names(estimator: Any, schema: Schema) -> None:
    """Set what scikit-learn wants to know of the input: how many columns, and their names."""
    estimator.n_features_in_ = len(schema)
    vars(estimator).pop("feature_names_in_", None)
    if schema.named:
        estimator.feature_names_in_ = np.asarray(schema.names, dtype=object)


def require_rows(table: Table) -> None:
    """Refuse a table without rows."""
    if not table.n_rows:
        raise ValueError(
            f"Found array with 0 sample(s) (shape=(0, {len(table.schema)})) while a minimum "
            "of 1 is required."
        )


def check_input_features(estimator: Any, input_features: Any) -> None:
    """Refuse names given to ``get_feature_names_out`` that are not those of fit."""
    if input_features is None:
        return
    given, known = list(input_features), list(estimator.schema_.names)
    if "feature_names_in_" in vars(estimator) and given != known:
        raise ValueError("input_features is not equal to feature_names_in_")
    if len(given) != len(known):
        raise ValueError(
            "input_features should have length equal to number of features "
            f"({len(known)}), got {len(given)}"
        )
