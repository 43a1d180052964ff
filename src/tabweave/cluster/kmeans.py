"""k-means as scikit-learn has it, with its steps on a device where one was chosen.

Starts are drawn, and answers computed, by scikit-learn: the device takes the steps between them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.cluster import KMeans, kmeans_plusplus

from tabweave.gpu import arrays as gpu


def fitted_kmeans(model: KMeans, points: np.ndarray, sample_weight: Any = None) -> KMeans:
    """A k-means model fitted to points, as its ``fit`` does.

    A device goes from each start to where the next step ends the run. The model's last steps from
    there, its labels, centres and cost are scikit-learn's, so that partitions are those of the CPU
    unless a row lies midway between two centres, to rounding.
    """
    device, init = gpu.device(), model.init
    is_large = len(points) * model.n_clusters >= gpu.MIN_DEVICE_PAIRS
    if device is None or not is_large or not isinstance(init, str) or init != "k-means++":
        return model.fit(points, sample_weight=sample_weight)
    copied: list[tuple[Any, Any]] = []  # what lies on the device, for all starts

    def settled(X: np.ndarray, n_clusters: int, random_state: Any) -> np.ndarray:
        first, _ = kmeans_plusplus(
            X, n_clusters, sample_weight=sample_weight, random_state=random_state
        )
        if not copied:
            weight = np.ones(len(X)) if sample_weight is None else sample_weight
            copied.append((device.xp.asarray(X), device.xp.asarray(weight, X.dtype)))
        tolerance = model.tol * float(np.var(X, axis=0).mean())
        return gpu.settled_centers(device, *copied[0], first, model.max_iter - 1, tolerance)

    try:
        return model.set_params(init=settled).fit(points, sample_weight=sample_weight)
    finally:
        model.set_params(init=init)
