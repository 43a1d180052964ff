"""What HeMap is given: outputs with gaps, a source, pairs; and what of it is refused."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from sklearn.utils import assert_all_finite, check_array, column_or_1d
from sklearn.utils.multiclass import check_classification_targets, type_of_target

from weft.sources._hemap_transfer import Source


@contextmanager
def numbers_only(name: str) -> Iterator[None]:
    """Say what to do about a table that holds text."""
    try:
        yield
    except ValueError as error:
        if "could not convert string" not in str(error):
            raise
        raise ValueError(
            f"{name}: {error}; HeMap reads numbers: embed categories first, e.g. with "
            "weft.MixedEmbedder"
        ) from error


def read_target(y: Any, n_rows: int, numeric: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return the labels that are there, and which rows have one."""
    if y is None:
        raise ValueError("HeMap requires y to be passed, but the target y is None")
    values, present = read_outputs(y, "y")
    if len(present) != n_rows:
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: {[n_rows, len(present)]}"
        )
    if not present.any():
        raise ValueError("no row has a label: y is missing (None or NaN) everywhere")
    if numeric:
        return as_numbers(values, "y"), present
    if type_of_target(values) == "continuous":
        raise ValueError(
            "Unknown label type: y has numbers, the learner is a classifier; give a regressor, as "
            "in HeMap(Ridge())"
        )
    check_classification_targets(values)
    return values, present


def read_outputs(y: Any, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the outputs that are not missing, and where they are."""
    values = column_or_1d(y, warn=True)
    if values.dtype.kind == "f":
        present = ~np.isnan(values)
    elif values.dtype.kind == "O":
        # A missing value is None or differs from itself; pandas' NA answers neither yes nor no.
        present = np.array([v is not None and (v == v) is True for v in values.tolist()], bool)
    else:
        present = np.ones(len(values), bool)
    values = values[present]
    if values.dtype.kind == "O":
        values = np.array(values.tolist())
    if values.dtype.kind == "f":
        assert_all_finite(values, input_name=name)
    return values, present


def read_source(source: Any, target_numeric: bool) -> Source:
    """Return the rows and outputs of a source.

    Fractions are numbers; whole numbers are, too, if the target's outputs are numbers.
    """
    try:
        X, v = source
    except (TypeError, ValueError):
        raise TypeError(
            f"source must be a pair (rows, outputs), got {type(source).__name__}"
        ) from None
    with numbers_only("source"):
        X = check_array(X, dtype=np.float64, input_name="source", ensure_min_samples=0)
    values, present = read_outputs(v, "the source's outputs")
    if len(X) != len(present):
        raise ValueError(f"the source has {len(X)} rows, but {len(present)} outputs")
    if not len(X):
        raise ValueError("the source has no rows; leave it out")
    if not present.all():
        raise ValueError(
            f"source row {np.flatnonzero(~present)[0]} has no output; leave such rows out"
        )
    numbers = values.dtype.kind in "iuf"
    numeric = numbers and (target_numeric or type_of_target(values) == "continuous")
    return Source(X, as_numbers(values, "source") if numeric else values, numeric)


def read_pairs(pairs: Any, n_rows: int, n_source: int) -> np.ndarray | None:
    """Return the source row of each target row, -1 for none."""
    if pairs is None:
        return None
    pairs = np.asarray(pairs)
    if pairs.dtype.kind not in "iu":
        raise TypeError(
            f"pairs must be row numbers of the source (-1 for none), got {pairs.dtype}; "
            "ids are turned into row numbers by pandas.Index(source_ids).get_indexer(ids)"
        )
    if pairs.shape != (n_rows,):
        raise ValueError(f"pairs has shape {pairs.shape}; give one row number for {n_rows} rows")
    wrong = (pairs < -1) | (pairs >= n_source)
    if wrong.any():
        raise ValueError(
            f"pairs[{np.flatnonzero(wrong)[0]}] is {pairs[wrong][0]}; the source has rows 0 to "
            f"{n_source - 1}, and -1 says that there is no partner"
        )
    return pairs.astype(np.int64)


def as_numbers(values: np.ndarray, name: str) -> np.ndarray:
    """Return numbers, or refuse what is none."""
    try:
        return values.astype(np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name} has values that are no numbers; use a classifier") from None
