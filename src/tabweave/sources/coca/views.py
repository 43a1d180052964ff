"""Views: a table of a `Sources` as centred, scaled vectors, without ever centring a sparse one.

At the end, rows that are missing in some sources: what those would add to a coordinate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import validate_data

from tabweave.io.register import storable
from tabweave.sources.container import Sources

_CONSTANT = 1e-24  # variance that is only rounding, relative to the squared mean


@storable
@dataclass(frozen=True, eq=False)
class View:
    """X⁽ʲ⁾ᵀ of one source over all n ids: ``scale · (matrix − mean)``, zero where a row is absent.

    Dense cells are centred once. Sparse ones keep their zeros; the mean is taken off the products.
    """

    n: int
    rows: np.ndarray
    matrix: Any
    mean: np.ndarray
    scale: float

    @property
    def width(self) -> int:
        """Number of columns."""
        return int(self.matrix.shape[1])

    def forward(self, basis: np.ndarray) -> np.ndarray:
        """Return the projections of every id on some directions, ``n × k``."""
        out = np.zeros((self.n, basis.shape[1]))
        shift = self.mean @ basis if sp.issparse(self.matrix) else 0.0
        out[self.rows] = self.scale * (self.matrix @ basis - shift)
        return out

    def backward(self, values: np.ndarray) -> np.ndarray:
        """Return the transposed product, ``columns × k``."""
        values = values[self.rows]
        out = self.matrix.T @ values
        if sp.issparse(self.matrix):
            out = out - np.outer(self.mean, values.sum(axis=0))
        return self.scale * out


def plain_source(estimator: Any, X: Any, reset: bool) -> Sources:
    """Return a table of numbers as the only source; its ids are the row numbers."""
    if isinstance(X, Mapping) and not sp.issparse(X):
        raise TypeError("expected tabweave.Sources(...), got a mapping of tables")
    X = validate_data(
        estimator,
        X,
        reset=reset,
        accept_sparse="csr",
        dtype=np.float64,
        ensure_all_finite="allow-nan",
        ensure_min_samples=2 if reset else 1,
    )
    return Sources({"X": (np.arange(X.shape[0]), X)})


def learned_view(sources: Sources, name: str) -> View:
    """Return a source with its own mean, scaled to unit trace; scale 0 if it never varies."""
    matrix = cells(sources, name)
    mean = column_means(matrix)
    matrix = centred(matrix, mean)
    n_rows = max(matrix.shape[0], 1)
    if sp.issparse(matrix):
        at_zero = matrix.shape[0] - np.bincount(matrix.indices, minlength=matrix.shape[1])
        total = ((matrix.data - mean[matrix.indices]) ** 2).sum() + at_zero @ mean**2
    else:
        total = (matrix**2).sum()
    variance = total / n_rows
    varies = variance > _CONSTANT * (mean @ mean) and n_rows > 1
    scale = float(1 / np.sqrt(variance)) if varies else 0.0
    return View(len(sources), sources.rows(name), matrix, mean, scale)


def fitted_view(sources: Sources, name: str, mean: np.ndarray, scale: float) -> View:
    """Return a source as seen by a fitted model."""
    matrix = centred(cells(sources, name), mean)
    return View(len(sources), sources.rows(name), matrix, mean, scale)


def cells(sources: Sources, name: str) -> Any:
    """Return a table as numbers: a category becomes one column for each of its labels."""
    matrix: Any = sources.matrix(name)
    if sp.issparse(matrix):
        if np.isnan(matrix.data).any():
            raise ValueError(
                f"table {name!r}: expected a sparse matrix of numbers, got NaN; drop these entries "
                "(they count as 0) or pass it dense"
            )
        return sp.csr_array(matrix)
    parts = []
    for i, labels in enumerate(sources.labels(name)):
        column = matrix[:, i : i + 1]
        if labels is not None:  # missing: none of the labels
            column = (column == np.arange(len(labels))).astype(float)
        parts.append(column)
    return matrix if not sources.categorical(name).any() else np.hstack(parts)


def column_names(sources: Sources, name: str) -> list[str]:
    """Return the names of the columns of :func:`cells`."""
    out: list[str] = []
    for column, labels in zip(sources.columns(name), sources.labels(name), strict=True):
        out += [column] if labels is None else [f"{column}={label!s}" for label in labels]
    return out


def column_means(matrix: Any) -> np.ndarray:
    """Return the mean of each column's cells that are not missing, 0 if all are."""
    if sp.issparse(matrix):
        return np.asarray(matrix.sum(axis=0)).ravel() / max(matrix.shape[0], 1)
    present = ~np.isnan(matrix)
    return np.where(present, matrix, 0.0).sum(axis=0) / np.maximum(present.sum(axis=0), 1)


def centred(matrix: Any, mean: np.ndarray) -> Any:
    """Return dense cells around their means, a missing one at its mean; sparse ones as they are."""
    if sp.issparse(matrix):
        return matrix
    out = matrix - mean
    out[np.isnan(out)] = 0.0
    return out


def shares(parts: Sequence[np.ndarray], present: np.ndarray) -> np.ndarray:
    """Return the mean products of two sources' projections, d × p × p, over the rows of both."""
    p, d = len(parts), parts[0].shape[1]
    rows = present.astype(float)
    together = np.maximum(rows.T @ rows, 1.0)
    out = np.empty((d, p, p))
    for j in range(p):
        for h in range(j, p):
            out[:, j, h] = (parts[j] * parts[h]).sum(axis=0) / together[j, h]
            out[:, h, j] = out[:, j, h]
    return out


def factors(products: np.ndarray, present: np.ndarray) -> np.ndarray:
    """Return by how much the sum over present sources is multiplied to estimate that over all.

    The regression of the full sum on the sum at hand, through zero, each coordinate by itself: 1
    for a complete row, 1 where sources have nothing in common, more where they agree.
    """
    patterns, which = np.unique(present, axis=0, return_inverse=True)
    mask = patterns.astype(float)
    with_all = mask @ products.sum(axis=2).T  # patterns × d
    among = np.einsum("mj,djh,mh->md", mask, products, mask)
    total = np.maximum(products.sum(axis=(1, 2)), 0.0)
    usable = among > 1e-20 * total
    out = np.where(usable, with_all / np.where(usable, among, 1.0), 1.0)
    out[patterns.all(axis=1)] = 1.0
    return out[which.ravel()]
