"""Targets and sources for HeMap: views of digits, credit, concrete, and sources about nothing."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_wine


class Task(NamedTuple):
    """A target, a source, and (for views of the same things) that row i belongs to row i."""

    name: str
    X: np.ndarray
    y: np.ndarray
    source_X: np.ndarray
    source_y: np.ndarray
    paired: bool = False
    scale: bool = True

    @property
    def numeric(self) -> bool:
        return self.y.dtype.kind == "f"


def digit_views() -> list[Task]:
    """Even and odd rows of pixels of scikit-learn's digits, and views of mfeat if it is there."""
    digits = load_digits()
    y = digits.target.astype(str)
    even, odd = (
        digits.images[:, ::2].reshape(len(y), -1),
        digits.images[:, 1::2].reshape(len(y), -1),
    )
    tasks = [Task("digits: even ← odd pixel rows", even, y, odd, y, True)]
    try:
        views = {v: _mfeat(v) for v in ("pix", "fac", "kar")}
    except FileNotFoundError:
        return tasks
    for a, b in (("pix", "fac"), ("fac", "pix"), ("pix", "kar")):
        (X, labels), (other, _) = views[a], views[b]
        # Karhunen-Loeve coefficients: what they say is how much each of them varies.
        scale = "kar" not in (a, b)
        tasks.append(Task(f"mfeat: {a} ← {b}", X, labels, other, labels, True, scale))
    return tasks


def published_tasks() -> list[Task]:
    """Figure 19: credit in two countries, concrete in two tests."""
    from tabweave.datasets import load

    sets = {}
    for name in ("australian", "german_credit", "concrete_strength", "concrete_slump"):
        data = load(name, download=False)
        y = data.y.astype(float if name.startswith("concrete") else str)
        sets[name] = (_standardized(_dense(data)), y)
    pairs = (("australian", "german_credit"), ("concrete_strength", "concrete_slump"))
    return [Task(f"{a} ← {b}", *sets[a], *sets[b]) for pair in pairs for a, b in (pair, pair[::-1])]


def unrelated_tasks(seed: int) -> list[Task]:
    """Return sources that cannot help: noise, permuted labels, another subject."""
    rng = np.random.default_rng(seed)
    digits, wine, cancer = load_digits(), load_wine(), load_breast_cancer()
    y = digits.target.astype(str)
    even, odd = (
        digits.images[:, ::2].reshape(len(y), -1),
        digits.images[:, 1::2].reshape(len(y), -1),
    )
    noise = rng.normal(size=(800, 20))
    ill = np.array(["benign", "malign"])[cancer.target]
    cancer_X, wine_X = _standardized(cancer.data), _standardized(wine.data)
    kinds = np.array(["red", "white", "rose"])[wine.target]
    return [
        Task("digits ← noise, classes of the same names", even, y, noise, rng.choice(y, 800)),
        Task("digits ← other half, labels permuted", even, y, odd, rng.permutation(y)),
        Task("digits ← wine", even, y, wine_X, kinds),
        Task("cancer ← wine", cancer_X, ill, wine_X, kinds),
        Task(
            "cancer ← noise, classes of the same names", cancer_X, ill, noise, rng.choice(ill, 800)
        ),
        Task("wine ← cancer", wine_X, kinds, cancer_X, ill),
    ]


def _mfeat(view: str) -> tuple[np.ndarray, np.ndarray]:
    from tabweave.datasets import load

    data = load(f"mfeat_{view}", download=False)
    return np.column_stack(list(data.columns.values())).astype(float), data.y.astype(str)


def _dense(data) -> np.ndarray:
    """Return numbers as they are and each category as a column of its own."""
    parts = []
    for name, values in data.columns.items():
        if data.kinds[name] == "numeric":
            parts.append(values[:, None])
        else:
            text = values.astype(str)
            parts.append((text[:, None] == np.unique(text)).astype(float))
    return np.hstack(parts)


def _standardized(X: np.ndarray) -> np.ndarray:
    deviation = X.std(axis=0)
    return (X - X.mean(axis=0)) / np.where(deviation > 0, deviation, 1)
