"""k-means as scikit-learn has it, with its steps on a device where one was chosen.

The device draws starts and takes the steps; scikit-learn takes the last ones, and answers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.cluster import KMeans

from tabweave.gpu import arrays as gpu


def fitted_kmeans(model: KMeans, points: np.ndarray, sample_weight: Any = None) -> KMeans:
    """A k-means model fitted to points, as its ``fit`` does.

    A device goes from each start to where the next step ends the run. The model's last steps from
    there, its labels, centres and cost are scikit-learn's, so that partitions are those of the CPU
    unless a row lies midway between two centres, to rounding.
    """
    device, init = gpu.device(), model.init
    is_large = len(points) * model.n_clusters >= gpu.MIN_DEVICE_PAIRS
    is_drawn = isinstance(init, str) and init == "k-means++"
    if device is None or not (is_large and is_drawn and points.dtype == np.float64):
        return model.fit(points, sample_weight=sample_weight)
    copied: list[gpu.DevicePoints] = []  # for all starts

    def settled(X: np.ndarray, n_clusters: int, random_state: Any) -> np.ndarray:
        if not copied:
            weight = np.ones(len(X)) if sample_weight is None else np.asarray(sample_weight)
            copied.append(gpu.DevicePoints(device, X, weight))
        first = copied[0].first_centers(n_clusters, random_state)
        return copied[0].settled(first, model.max_iter - 1, model.tol)

    try:
        return model.set_params(init=settled).fit(points, sample_weight=sample_weight)
    finally:
        model.set_params(init=init)
