"""What GBC takes: sources with labels by id, or plain rows with a label each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import _check_feature_names, column_or_1d

from weft._input import remember_names, require_rows
from weft._labels import canonical
from weft.sources._blocks import Block, _as_floats
from weft.sources._ids import plain, read_ids
from weft.sources.container import Sources
from weft.table import Schema, Table

ONLY = "X"  # the name of the one table that plain rows make


def read_training(model: Any, X: Any, y: Any) -> tuple[Sources, np.ndarray, np.ndarray]:
    """Return the sources, the places of the labeled ids and their labels."""
    if y is None:
        raise ValueError(
            f"{type(model).__name__} requires y to be passed, but the target y is None"
        )
    if isinstance(X, Sources):
        if not X.names:
            raise ValueError(
                "there are graphs only; make a table of one by sources.with_features_of(graph)"
            )
        vars(model).pop("feature_names_in_", None)
        vars(model).pop("schema_", None)
        model.n_features_in_ = sum(len(X.columns(name)) for name in X.names)
        places, labels = labels_by_id(X, y)
        if not len(places):
            raise ValueError("no id has a label: y is empty, or all of its labels are missing")
        return X, places, labels
    sources = _read_rows(model, X, reset=True)
    labels = column_or_1d(y, warn=True)
    if len(labels) != len(sources):
        raise ValueError(f"y has {len(labels)} labels for {len(sources)} rows of X")
    _refuse_missing(labels)
    return sources, np.arange(len(sources)), labels


def read_rows(model: Any, X: Any) -> Sources:
    """Return what to predict, as the model was trained to read it."""
    if isinstance(X, Sources):
        if hasattr(model, "schema_"):
            raise TypeError("this model was fitted on plain rows; pass rows, not Sources")
        return X.like(model.reference_)
    if not hasattr(model, "schema_"):
        raise TypeError(
            "this model was fitted on Sources; pass Sources with some of its tables and graphs"
        )
    return _read_rows(model, X, reset=False).like(model.reference_)


def asked_places(sources: Sources, ids: Any) -> np.ndarray:
    """Return the places of the ids whose predictions are asked for."""
    asked = read_ids(ids, "ids")
    places = sources.places(asked)
    if (places < 0).any():
        raise KeyError(f"id {plain(asked, int(np.argmax(places < 0)))!r} is in no source")
    return places


def labels_by_id(sources: Sources, y: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return places and labels of the ids that have one; refuse a label of an unknown id."""
    if hasattr(y, "iloc") and getattr(y, "ndim", 1) == 1:  # a pandas series: its index has the ids
        ids, values = read_ids(y.index.to_numpy(), "y"), y.to_numpy()
    elif isinstance(y, Mapping):
        ids, values = read_ids(list(y), "y") if y else np.zeros(0, np.int64), list(y.values())
    else:
        values = column_or_1d(y)
        if len(values) != len(sources):
            raise ValueError(
                f"y has {len(values)} labels for {len(sources)} ids; pass a mapping or a series "
                "from id to label, or one label (or None) for each of sources.ids"
            )
        ids = sources.ids
    labels = np.empty(len(values), dtype=object)
    labels[:] = [canonical(value) for value in values]
    given = np.array([label is not None for label in labels], dtype=bool)
    places = sources.places(ids[given]) if given.any() else np.zeros(0, np.intp)
    if (places < 0).any():
        unknown = ids[given][places < 0]
        raise ValueError(
            f"y has labels of {len(unknown)} ids that no source has, {plain(unknown, 0)!r} the "
            "first; drop them, or check that both spell ids alike"
        )
    if len(np.unique(places)) < len(places):
        found, counts = np.unique(places, return_counts=True)
        twice = plain(sources.ids, int(found[counts > 1][0]))
        raise ValueError(f"y has two labels for id {twice!r}")
    labels = labels[given]
    return places, np.array(labels.tolist())


def _read_rows(model: Any, X: Any, *, reset: bool) -> Sources:
    if sp.issparse(X):
        return _read_sparse(model, X, reset=reset)
    if not reset and hasattr(X, "columns"):
        _check_feature_names(model, X, reset=False)
    table = Table.of(X, None if reset else model.schema_)
    if not reset and isinstance(X, np.ndarray):
        _check_feature_names(model, X, reset=False)
    require_rows(table)
    if reset:
        model.schema_ = table.schema
        remember_names(model, table.schema)
    ids = np.arange(len(table))
    return Sources._of(ids, {ONLY: Block(ids, *_as_floats(table, "X"))}, {}, {})


def _read_sparse(model: Any, X: Any, *, reset: bool) -> Sources:
    matrix = sp.csr_array(X, dtype=float)
    if reset:
        model.schema_ = Schema.of(dict.fromkeys(range(matrix.shape[1]), "numeric"))
        vars(model).pop("feature_names_in_", None)
        model.n_features_in_ = matrix.shape[1]
    elif matrix.shape[1] != model.n_features_in_:
        raise ValueError(
            f"X has {matrix.shape[1]} features, but {type(model).__name__} is expecting "
            f"{model.n_features_in_} features as input"
        )
    return Sources({ONLY: (np.arange(matrix.shape[0]), matrix)})


def _refuse_missing(labels: np.ndarray) -> None:
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        row = int(np.argmin(np.isfinite(labels)))
        raise ValueError(f"Input y contains NaN or infinity: row {row} is {labels[row]}")
    if labels.dtype.kind == "O":
        for row, label in enumerate(labels):
            if canonical(label) is None:
                raise ValueError(f"Input y contains NaN: y of row {row} is missing")
