"""Planted numbers of clusters, from 2 to 12, and who finds them again.

    python benchmarks/clusters.py [--repeats 1]

Tables are drawn from k groups, equally large or each a quarter smaller than the one before: a group
has a usual value in each column, kept with a chance, else any value. The criterion of
number_of_clusters was chosen on other tables (see the report). Compared: number_of_clusters (AIC3
of latent classes), the BIC of stepmix (StepMix, measurement="categorical", n_init=1, its default),
and the highest silhouette of k-means on one-hot codes. Numbers from 1 (silhouette: 2) to 15 are
tried.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np
import pandas as pd

from impute import markdown

SHAPES = {  # rows, columns, values, chance of the usual value, size of a group over the one before
    "600 × 12, 4 values, 0.6": (600, 12, 4, 0.6, 1.0),
    "1,000 × 10, 5 values, 0.7": (1000, 10, 5, 0.7, 1.0),
    "1,500 × 12, 4 values, 0.65, unequal": (1500, 12, 4, 0.65, 0.75),
}
NUMBERS = (2, 4, 6, 8, 10, 12)
MOST = 15


def drawn(k: int, shape: tuple[int, int, int, float, float], seed: int) -> np.ndarray:
    n, columns, values, kept, ratio = shape
    rng = np.random.default_rng(seed)
    chances = ratio ** np.arange(k)
    group = rng.choice(k, size=n, p=chances / chances.sum())
    usual = rng.integers(values, size=(k, columns))[group]
    return np.where(rng.random((n, columns)) < kept, usual, rng.integers(values, size=(n, columns)))


def ours(x: np.ndarray) -> int:
    from tabweave.cluster import number_of_clusters

    return number_of_clusters(x.astype(str), max_clusters=MOST).best


def stepmix(n_init: int):
    def best(x: np.ndarray) -> int:
        from stepmix.stepmix import StepMix

        scores = {}
        for k in range(1, MOST + 1):
            model = StepMix(
                k,
                measurement="categorical",
                n_init=n_init,
                random_state=0,
                progress_bar=0,
                verbose=0,
            )
            scores[k] = model.fit(x).bic(x)
            if k - min(scores, key=scores.get) >= 3:
                break
        return min(scores, key=scores.get)

    return best


def silhouette(x: np.ndarray) -> int:
    from sklearn.cluster import KMeans
    from sklearn.metrics import silhouette_score

    z = pd.get_dummies(pd.DataFrame(x.astype(str))).to_numpy(float)
    scores = {}
    for k in range(2, MOST + 1):
        labels = KMeans(k, n_init=5, random_state=0).fit_predict(z)
        scores[k] = silhouette_score(z, labels, sample_size=600, random_state=0)
    return max(scores, key=scores.get)


METHODS = {
    "number_of_clusters": ours,
    "stepmix, BIC": stepmix(1),
    "silhouette": silhouette,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--methods", nargs="*", default=list(METHODS))
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = []
    for name, shape in SHAPES.items():
        for k in NUMBERS:
            for seed in range(50, 50 + given.repeats):
                x = drawn(k, shape, 100 * k + seed)
                for method in given.methods:
                    start = time.perf_counter()
                    found = METHODS[method](x)
                    took = time.perf_counter() - start
                    rows.append((method, name, k, found == k, abs(found - k), took))
                    print("#", name, k, seed, method, found, round(took, 1), flush=True)
    columns = ["method", "table", "planted", "right", "off", "seconds"]
    found = pd.DataFrame(rows, columns=columns)
    table = found.pivot_table(index="method", columns="table", values="right")
    table["all"] = found.groupby("method")["right"].mean()
    table["mean distance"] = found.groupby("method")["off"].mean()
    table["seconds"] = found.groupby("method")["seconds"].mean()
    print(markdown(table))
    print(markdown(found.pivot_table(index="method", columns="planted", values="right")))


if __name__ == "__main__":
    main()
