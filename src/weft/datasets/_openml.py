"""Data sets from OpenML, for those who do not have the files.

The table lists only sets whose OpenML copy has the same rows as the benchmark file of that name;
the number of rows is checked, so that a wrong or changed copy is refused rather than used.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from weft.datasets._dataset import Dataset


class Remote(NamedTuple):
    """An OpenML data set: its number there, and how many rows it must have."""

    data_id: int
    n_rows: int


OPENML = {
    "adult_mixed": Remote(1590, 48842),
    "australian": Remote(40981, 690),
    "blood": Remote(1464, 748),
    "breast_cancer_w": Remote(15, 699),
    "connect4": Remote(40668, 67557),
    "german_credit": Remote(31, 1000),
    "house_votes_full": Remote(56, 435),
    "ilpd": Remote(1480, 583),
    "ionosphere": Remote(59, 351),
    "iris": Remote(61, 150),
    "krvskp": Remote(3, 3196),
    "letters": Remote(6, 20000),
    "lymphography": Remote(10, 148),
    "magic_telescope": Remote(1120, 19020),
    "mfeat_fac": Remote(12, 2000),
    "mfeat_fou": Remote(14, 2000),
    "mfeat_kar": Remote(16, 2000),
    "mfeat_mor": Remote(18, 2000),
    "mfeat_pix": Remote(20, 2000),
    "mfeat_zer": Remote(22, 2000),
    "mushroom_full": Remote(24, 8124),
    "primary_tumor": Remote(171, 339),
    "robot_navigation": Remote(1497, 5456),
    "seeds": Remote(1499, 210),
    "segment_full": Remote(36, 2310),
}


def fetch(name: str) -> Dataset:
    """Download one of `OPENML`; OSError (no network) is the caller's to explain."""
    # Imported here: scikit-learn's data sets take longer to import than all of weft.datasets.
    from sklearn.datasets import fetch_openml

    remote = OPENML[name]
    # Arrays, because frames would need pandas; the ARFF reader for the same reason.
    bunch = fetch_openml(data_id=remote.data_id, as_frame=False, parser="liac-arff")
    if len(bunch.data) != remote.n_rows:
        raise ValueError(
            f"data set {name!r}: OpenML {remote.data_id} has {len(bunch.data)} rows where "
            f"{remote.n_rows} were expected; get the file instead and pass data_dir."
        )
    categories = bunch.categories or {}
    columns = {
        column: _column(bunch.data[:, j], categories.get(column))
        for j, column in enumerate(bunch.feature_names)
    }
    kinds = {column: "nominal" if column in categories else "numeric" for column in columns}
    y = np.array([str(label) for label in bunch.target], dtype=object)
    text = f"OpenML {remote.data_id}; names and values are spelled as there"
    return Dataset(name, columns, y, kinds, text)


def _column(values: np.ndarray, categories: list[Any] | None) -> np.ndarray:
    numbers = values.astype(np.float64)
    if categories is None:
        return numbers
    # Categorical cells arrive as positions in the list of categories, missing ones as NaN.
    spelling = np.array([*(str(c) for c in categories), None], dtype=object)
    missing = np.isnan(numbers)
    return spelling[np.where(missing, len(categories), numbers).astype(np.intp)]
