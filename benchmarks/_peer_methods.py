"""Peers: what people use today, and us, behind one small face. Runs in the peers' environment.

A method is fitted on a pandas frame (strings and floats, gaps as NaN or None) and turns frames into
dense vectors; a few give distances or clusters instead. Each comes with the tasks it can take part
in. Every package is used as its documentation shows, with its defaults; ours are those of the day.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

ALONE = ("clustering", "retrieval")  # tasks without labels
TAUGHT = ("kNN", "linear", "tree")  # tasks with labels


@dataclass(frozen=True)
class Method:
    """How a method is made, and what it is asked for."""

    make: Callable[[dict[str, str], int], Any]  # from kinds of columns and number of classes
    tasks: tuple[str, ...] = ALONE + TAUGHT
    supervised: bool = False
    gives: str = "vectors"  # or "distances", "clusters", "classes"


def names_of(kinds: dict[str, str]) -> tuple[list[str], list[str]]:
    """Return the numeric and the other columns."""
    numeric = [c for c, kind in kinds.items() if kind == "numeric"]
    return numeric, [c for c in kinds if c not in numeric]


def fill(X: pd.DataFrame, numeric: list[str], means: dict[str, float]) -> pd.DataFrame:
    """Return the frame without gaps: means for numbers, "?" for categories."""
    out = {}
    for c in X.columns:
        if c in numeric:
            out[c] = X[c].fillna(means[c]).to_numpy(float)
        else:
            text = ["?" if v is None or v != v else str(v) for v in X[c]]
            out[c] = np.array(text, dtype=object)
    return pd.DataFrame(out, index=X.index)


def means_of(X: pd.DataFrame, numeric: list[str]) -> dict[str, float]:
    return {c: float(X[c].mean()) if X[c].notna().any() else 0.0 for c in numeric}


class Filled:
    """An encoder behind gap filling, its output scaled to variance 1 unless told otherwise."""

    def __init__(self, kinds: dict[str, str], encoder: Any, scale: bool = True) -> None:
        self.numeric, _ = names_of(kinds)
        self.encoder, self.scale = encoder, scale

    def fit(self, X: pd.DataFrame, y: Any = None) -> Any:
        self.means = means_of(X, self.numeric)
        filled = fill(X, self.numeric, self.means)
        if y is None:
            self.encoder.fit(filled)
        else:
            self.encoder.fit(filled, y)
        self._learn_scale(self._dense(self.encoder.transform(filled)))
        return self

    def fit_transform(self, X: pd.DataFrame, y: Any = None) -> np.ndarray:
        """Return what the encoder gives its own rows: cross-fitted vectors, if it sees classes."""
        self.means = means_of(X, self.numeric)
        raw = self._dense(self.encoder.fit_transform(fill(X, self.numeric, self.means), y))
        self._learn_scale(raw)
        return (raw - self.mean) / self.std

    def _learn_scale(self, raw: np.ndarray) -> None:
        self.mean, self.std = 0.0, 1.0
        if self.scale:
            self.mean, std = raw.mean(axis=0), raw.std(axis=0)
            self.std = np.where(std > 1e-12, std, 1)

    def transform(self, X: pd.DataFrame) -> np.ndarray:
        filled = fill(X, self.numeric, self.means)
        return (self._dense(self.encoder.transform(filled)) - self.mean) / self.std

    @staticmethod
    def _dense(out: Any) -> np.ndarray:
        out = out.toarray() if hasattr(out, "toarray") else out
        return np.nan_to_num(np.asarray(out, dtype=float))


def one_hot(kinds: dict[str, str]) -> Any:
    from sklearn.compose import ColumnTransformer
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    numeric, other = names_of(kinds)
    parts = [
        ("z", StandardScaler(), numeric),
        ("one", OneHotEncoder(handle_unknown="ignore", sparse_output=False), other),
    ]
    return ColumnTransformer([part for part in parts if part[2]])


def target_encoding(kinds: dict[str, str], k: int) -> Any:
    from sklearn.compose import ColumnTransformer
    from sklearn.preprocessing import StandardScaler, TargetEncoder

    numeric, other = names_of(kinds)
    kind = {0: "continuous", 2: "binary"}.get(k, "multiclass")  # no classes: a number
    parts = [
        ("z", StandardScaler(), numeric),
        ("t", TargetEncoder(target_type=kind, random_state=0), other),
    ]
    return Filled(kinds, ColumnTransformer([part for part in parts if part[2]]))


class PerClass:
    """category_encoders' supervised encoders know two classes; more are coded one against rest.

    One encoder a class takes minutes on tables of many columns: the five largest classes it is.
    """

    def __init__(self, make: Callable[[], Any], other: list[str]) -> None:
        self.make, self.other = make, other

    def fit(self, X: pd.DataFrame, y: Any) -> Any:
        classes, sizes = np.unique(y, return_counts=True)
        asked = classes[1:] if len(classes) == 2 else classes[np.argsort(-sizes)[:5]]
        self.parts = [self.make().fit(X[self.other], pd.Series((y == c) * 1)) for c in asked]
        return self

    def transform(self, X: pd.DataFrame) -> np.ndarray:
        coded = [np.asarray(part.transform(X[self.other]), dtype=float) for part in self.parts]
        rest = X.drop(columns=self.other).to_numpy(float)
        return np.hstack([rest, *coded])


def encoder(name: str, supervised: bool = False, **options: Any) -> Callable[[dict, int], Any]:
    """Return one of category_encoders' encoders, numbers passed through, everything scaled."""

    def make(kinds: dict[str, str], k: int) -> Any:
        import category_encoders

        cls, other = getattr(category_encoders, name), names_of(kinds)[1]
        if supervised:
            return Filled(kinds, PerClass(lambda: cls(cols=other, **options), other))
        return Filled(kinds, cls(cols=other, **options))

    return make


def table_vectorizer(kinds: dict[str, str], k: int) -> Any:
    from skrub import TableVectorizer

    return Filled(kinds, TableVectorizer())


class Prince:
    """MCA, FAMD or PCA by the columns there are, 10 components at most."""

    def __init__(self, kinds: dict[str, str]) -> None:
        self.numeric, self.other = names_of(kinds)

    def fit(self, X: pd.DataFrame, y: Any = None) -> Any:
        import prince

        cls = prince.FAMD if self.numeric and self.other else prince.MCA
        cls = cls if self.other else prince.PCA
        width = X[self.other].nunique().sum() if self.other else 0
        most = int(width) - len(self.other) + len(self.numeric)
        self.seen = {c: set(X[c]) for c in self.other}
        self.common = {c: X[c].mode()[0] for c in self.other}
        self.model = cls(n_components=max(1, min(10, most)), random_state=0).fit(X)
        return self

    def transform(self, X: pd.DataFrame) -> Any:
        X = X.copy()
        for c in self.other:  # a category it has not seen stops it; give the commonest
            X[c] = X[c].where(X[c].isin(self.seen[c]), self.common[c])
        return self.model.transform(X)


class Umap:
    """umap-learn, 10 dimensions, on another method's vectors."""

    def __init__(self, before: Any) -> None:
        self.before = before

    def fit(self, X: pd.DataFrame, y: Any = None) -> Any:
        import umap

        self.before.fit(X)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            vectors = self.before.transform(X)
            near = min(15, len(X) - 1)
            self.model = umap.UMAP(n_neighbors=near, n_components=10, random_state=0).fit(vectors)
        return self

    def transform(self, X: pd.DataFrame) -> np.ndarray:
        return np.asarray(self.model.transform(self.before.transform(X)), dtype=float)


class Gower:
    """The package gower: a distance, no vectors."""

    def __init__(self, kinds: dict[str, str]) -> None:
        self.numeric, self.other = names_of(kinds)

    def distances(self, X: pd.DataFrame, Y: pd.DataFrame | None = None) -> np.ndarray:
        import gower

        both = X if Y is None else pd.concat([X, Y], ignore_index=True)
        both = fill(both, self.numeric, means_of(both, self.numeric))
        is_category = np.array([c in self.other for c in both.columns])
        D = gower.gower_matrix(both, cat_features=is_category)
        return D if Y is None else D[: len(X), len(X) :]


class Prototypes:
    """kmodes: k-modes, or k-prototypes with numbers."""

    def __init__(self, kinds: dict[str, str], k: int) -> None:
        (self.numeric, self.other), self.k = names_of(kinds), k

    def clusters(self, X: pd.DataFrame) -> np.ndarray:
        from kmodes.kmodes import KModes
        from kmodes.kprototypes import KPrototypes

        if not self.other:
            raise ValueError("k-prototypes needs a categorical column")
        X = fill(X, self.numeric, means_of(X, self.numeric))
        if not self.numeric:
            return KModes(self.k, n_init=5, random_state=0).fit_predict(X.to_numpy(object))
        scaled = X.copy()
        scaled[self.numeric] = (X[self.numeric] - X[self.numeric].mean()) / X[self.numeric].std()
        places = [list(X.columns).index(c) for c in self.other]
        model = KPrototypes(self.k, n_init=2, random_state=0)
        return model.fit_predict(scaled.to_numpy(object), categorical=places)


class LatentClasses:
    """stepmix: a mixture of products, categories and Gaussians."""

    def __init__(self, kinds: dict[str, str], k: int) -> None:
        (self.numeric, self.other), self.k = names_of(kinds), k

    def clusters(self, X: pd.DataFrame) -> np.ndarray:
        from stepmix.stepmix import StepMix

        X = fill(X, self.numeric, means_of(X, self.numeric))
        coded = {c: pd.factorize(X[c])[0] for c in self.other}
        coded |= {c: (X[c] - X[c].mean()) / (X[c].std() or 1) for c in self.numeric}
        measurement: Any = {}
        if self.other:
            measurement["c"] = {"model": "categorical", "n_columns": len(self.other)}
        if self.numeric:
            measurement["n"] = {"model": "gaussian_diag", "n_columns": len(self.numeric)}
        model = StepMix(
            self.k, measurement=measurement, n_init=3, random_state=0, verbose=0, progress_bar=0
        )
        frame = pd.DataFrame(coded)[[*self.other, *self.numeric]]
        return model.fit(frame).predict(frame)


class Boosted:
    """CatBoost or LightGBM on the table itself: classes, no vectors."""

    def __init__(self, kinds: dict[str, str], name: str) -> None:
        (self.numeric, self.other), self.name = names_of(kinds), name

    def fit(self, X: pd.DataFrame, y: Any) -> Any:
        self.means = means_of(X, self.numeric)
        X = fill(X, self.numeric, self.means)
        if self.name == "CatBoost":
            from catboost import CatBoostClassifier

            self.model = CatBoostClassifier(
                iterations=100, verbose=0, random_seed=0, thread_count=1, allow_writing_files=False
            ).fit(X, y, cat_features=self.other)
        else:
            from lightgbm import LGBMClassifier

            self.levels = {c: sorted(set(X[c])) for c in self.other}
            self.model = LGBMClassifier(n_estimators=100, random_state=0, n_jobs=1, verbose=-1)
            self.model.fit(self._categories(X), y)
        return self

    def _categories(self, X: pd.DataFrame) -> pd.DataFrame:
        X = X.copy()
        for c in self.other:
            X[c] = pd.Categorical(X[c], categories=self.levels[c])
        return X

    def predict(self, X: pd.DataFrame) -> np.ndarray:
        X = fill(X, self.numeric, self.means)
        X = X if self.name == "CatBoost" else self._categories(X)
        return np.asarray(self.model.predict(X)).ravel()


def auto(kinds: dict[str, str], k: int) -> Any:
    from tabweave import Weave

    return Weave(schema=kinds)


def auto_k(kinds: dict[str, str], k: int) -> Any:
    from tabweave import Weave

    return Weave(k, schema=kinds)


def supervised(kinds: dict[str, str], k: int) -> Any:
    from tabweave import HELIC

    return HELIC(random_state=0, schema=kinds)


METHODS: dict[str, Method] = {
    "tabweave": Method(auto),
    "tabweave, k known": Method(auto_k, ("clustering",)),
    "tabweave supervised": Method(supervised, TAUGHT, supervised=True),
    "one-hot": Method(lambda kinds, k: Filled(kinds, one_hot(kinds), scale=False)),
    "ordinal": Method(encoder("OrdinalEncoder")),
    "count": Method(encoder("CountEncoder", handle_unknown=0)),
    "binary": Method(encoder("BinaryEncoder")),
    "hashing": Method(encoder("HashingEncoder", max_process=1)),
    "TableVectorizer": Method(table_vectorizer),
    "prince": Method(lambda kinds, k: Filled(kinds, Prince(kinds), scale=False)),
    "UMAP on one-hot": Method(
        lambda kinds, k: Umap(Filled(kinds, one_hot(kinds), scale=False)), ALONE
    ),
    "UMAP on tabweave": Method(lambda kinds, k: Umap(auto(kinds, k)), ALONE),
    "gower": Method(lambda kinds, k: Gower(kinds), (*ALONE, "kNN"), gives="distances"),
    "k-prototypes": Method(Prototypes, ("clustering",), gives="clusters"),
    "stepmix": Method(LatentClasses, ("clustering",), gives="clusters"),
    "TargetEncoder": Method(target_encoding, TAUGHT, supervised=True),
    "target (ce)": Method(encoder("TargetEncoder", True), TAUGHT, supervised=True),
    "m-estimate": Method(encoder("MEstimateEncoder", True), TAUGHT, supervised=True),
    "CatBoost": Method(lambda kinds, k: Boosted(kinds, "CatBoost"), ("tree",), True, "classes"),
    "LightGBM": Method(lambda kinds, k: Boosted(kinds, "LightGBM"), ("tree",), True, "classes"),
}
