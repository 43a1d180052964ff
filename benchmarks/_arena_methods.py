"""Who takes part in the arena: our defaults, those of before, and peers as their pages show them.

Encoders are fitted on a pandas frame and turn frames into vectors, or give distances or clusters;
whole classifiers and regressors predict. Numeric gaps reach the methods that take them and are
filled by the mean of the training rows for the others.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from _peer_methods import (
    Filled,
    Method,
    Prince,
    Prototypes,
    Umap,
    names_of,
    one_hot,
    table_vectorizer,
    target_encoding,
)

Kinds = dict[str, str]
ALONE = ("retrieval", "clusters")  # without classes
TAUGHT = ("knn", "linear", "forest")  # vectors, and something on top that learns classes
WHOLE = ("classify", "regress")  # nothing on top
TASKS = ("classify", "knn", "retrieval", "clusters", "linear", "forest", "regress")


# -- ours: everything that names one of our defaults stands here -----------------------------------


def weave(kinds: Kinds, k: int) -> Any:
    """Return the default embedder, whichever it is at present."""
    from tabweave import Weave

    return Weave()


def supervised_weave(kinds: Kinds, k: int) -> Any:
    from tabweave import SupervisedWeave

    return SupervisedWeave()


def weave_predictor(kinds: Kinds, k: int) -> Any:
    if k:
        from tabweave import WeaveClassifier

        return WeaveClassifier()
    from tabweave import WeaveRegressor

    return WeaveRegressor()


def weave_before(kinds: Kinds, k: int) -> Any:
    """Return the default as it was until 0.1.0.dev196: cells that later versions compare with."""
    import tabweave

    if hasattr(tabweave, "SupervisedWeave"):
        raise ImportError("expected a version of tabweave before SupervisedWeave")
    return tabweave.MixedEmbedder()


def untie(kinds: Kinds, k: int) -> Any:
    from tabweave import UNTIE

    return UNTIE(k, schema=kinds)


def helic(kinds: Kinds, k: int) -> Any:
    from tabweave import HELIC

    return HELIC(random_state=0, schema=kinds)


# -- peers -----------------------------------------------------------------------------------------


def hot(kinds: Kinds) -> Filled:
    """Return one-hot categories beside standardised numbers."""
    return Filled(kinds, one_hot(kinds), scale=False)


class Gower:
    """Gower's distance (1971): range-scaled differences and mismatches, averaged over columns.

    Ranges are those of the training rows. Cells with a gap are left out of the average.
    """

    def __init__(self, kinds: Kinds) -> None:
        self.numeric, self.other = names_of(kinds)

    def fit(self, X: pd.DataFrame, y: Any = None) -> Gower:
        reach = X[self.numeric].max() - X[self.numeric].min()
        self.ranges = {c: float(reach[c]) or 1.0 for c in self.numeric}
        return self

    def pairwise_distances(self, X: pd.DataFrame, Y: pd.DataFrame) -> np.ndarray:
        total, columns = np.zeros((len(X), len(Y))), np.zeros((len(X), len(Y)))
        for c in self.numeric:
            apart = np.abs(X[c].to_numpy()[:, None] - Y[c].to_numpy()) / self.ranges[c]
            total, columns = total + np.nan_to_num(apart), columns + ~np.isnan(apart)
        for c in self.other:
            codes = pd.factorize(pd.concat([X[c], Y[c]]))[0]
            total += codes[: len(X), None] != codes[len(X) :]
            columns += 1
        return total / np.maximum(columns, 1)


class OnTop:
    """A linear model on an encoder's cross-fitted vectors."""

    def __init__(self, encoder: Any, model: Any) -> None:
        self.encoder, self.model = encoder, model

    def fit(self, X: pd.DataFrame, y: np.ndarray) -> OnTop:
        self.model.fit(self.encoder.fit_transform(X, y), y)
        return self

    def predict(self, X: pd.DataFrame) -> np.ndarray:
        return self.model.predict(self.encoder.transform(X))

    def predict_proba(self, X: pd.DataFrame) -> np.ndarray:
        return self.model.predict_proba(self.encoder.transform(X))


def target_linear(kinds: Kinds, k: int) -> OnTop:
    from sklearn.linear_model import LogisticRegression, Ridge

    model = LogisticRegression(max_iter=500) if k else Ridge()
    return OnTop(target_encoding(kinds, k), model)


def supervised_linear(kinds: Kinds, k: int) -> OnTop:
    from sklearn.linear_model import Ridge

    return OnTop(supervised_weave(kinds, k), Ridge())


def forest(kinds: Kinds, k: int) -> Any:
    """Return a random forest on one-hot categories; it takes numeric gaps as they are."""
    from sklearn.compose import ColumnTransformer
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    encode = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    columns = ColumnTransformer([("one", encode, names_of(kinds)[1])], remainder="passthrough")
    kind = RandomForestClassifier if k else RandomForestRegressor
    return make_pipeline(columns, kind(random_state=0, n_jobs=1))


class Boosted:
    """LightGBM or CatBoost with their defaults, categories declared, gaps left to them."""

    def __init__(self, kinds: Kinds, k: int, name: str) -> None:
        self.other, self.k, self.name = names_of(kinds)[1], k, name

    def fit(self, X: pd.DataFrame, y: np.ndarray) -> Boosted:
        self.levels = {c: sorted(set(X[c])) for c in self.other}
        self.model = self._cat() if self.name == "CatBoost" else self._light()
        declared = {"cat_features": self.other} if self.name == "CatBoost" else {}
        self.model.fit(self._read(X), y, **declared)
        return self

    def _cat(self) -> Any:
        from catboost import CatBoostClassifier, CatBoostRegressor

        kind = CatBoostClassifier if self.k else CatBoostRegressor
        return kind(verbose=0, random_seed=0, thread_count=1, allow_writing_files=False)

    def _light(self) -> Any:
        from lightgbm import LGBMClassifier, LGBMRegressor

        kind = LGBMClassifier if self.k else LGBMRegressor
        return kind(random_state=0, n_jobs=1, verbose=-1)

    def _read(self, X: pd.DataFrame) -> pd.DataFrame:
        if self.name == "CatBoost":
            return X
        columns = {  # numbered, since LightGBM takes no brackets or commas in names
            f"c{i}": pd.Categorical(X[c], categories=self.levels[c]) if c in self.levels else X[c]
            for i, c in enumerate(X)
        }
        return pd.DataFrame(columns, index=X.index)

    def predict(self, X: pd.DataFrame) -> np.ndarray:
        return np.asarray(self.model.predict(self._read(X))).ravel()

    def predict_proba(self, X: pd.DataFrame) -> np.ndarray:
        return self.model.predict_proba(self._read(X))


class Nearest:
    """Five nearest neighbours on an encoder's vectors; all at the fifth distance vote."""

    def __init__(self, encoder: Any, k: int = 5) -> None:
        self.encoder, self.k = encoder, k

    def fit(self, X: pd.DataFrame, y: np.ndarray) -> Nearest:
        self.known = self.encoder.fit(X).transform(X)
        self.classes_, codes = np.unique(y, return_inverse=True)
        self.votes = np.eye(len(self.classes_))[codes]
        return self

    def predict_proba(self, X: pd.DataFrame) -> np.ndarray:
        from scipy.spatial.distance import cdist

        return vote(cdist(self.encoder.transform(X), self.known), self.votes, self.k)

    def predict(self, X: pd.DataFrame) -> np.ndarray:
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


def vote(D: np.ndarray, votes: np.ndarray, k: int = 5) -> np.ndarray:
    """Return shares of the k nearest rows' votes, with all that tie with the k-th."""
    k = min(k, D.shape[1])
    reach = np.partition(D, k - 1, axis=1)[:, k - 1 : k]
    shares = (reach * (1 + 1e-9) + 1e-12 >= D) @ votes
    return shares / shares.sum(axis=1, keepdims=True)


METHODS: dict[str, Method] = {
    # ours
    "weave": Method(weave, ALONE + TAUGHT),
    "supervised weave": Method(supervised_weave, TAUGHT, supervised=True),
    "WeaveClassifier": Method(weave_predictor, ("classify",), True, "answers"),
    "WeaveRegressor": Method(weave_predictor, ("regress",), True, "answers"),
    "SupervisedWeave + linear": Method(supervised_linear, ("regress",), True, "answers"),
    "weave before": Method(weave_before, ALONE + TAUGHT),
    "untie": Method(untie, ALONE + TAUGHT),
    "helic": Method(helic, TAUGHT, supervised=True),
    # peers, cheap ones first
    "one-hot": Method(lambda kinds, k: hot(kinds), ALONE + TAUGHT),
    "gower": Method(lambda kinds, k: Gower(kinds), (*ALONE, "knn"), gives="distances"),
    "TargetEncoder": Method(target_encoding, TAUGHT, supervised=True),
    "TableVectorizer": Method(table_vectorizer, ALONE + TAUGHT),
    "one-hot 5-NN": Method(lambda kinds, k: Nearest(hot(kinds)), ("classify",), True, "answers"),
    "TargetEncoder + linear": Method(target_linear, WHOLE, True, "answers"),
    "random forest": Method(forest, WHOLE, True, "answers"),
    "LightGBM": Method(lambda kinds, k: Boosted(kinds, k, "LightGBM"), WHOLE, True, "answers"),
    "prince": Method(lambda kinds, k: Filled(kinds, Prince(kinds), scale=False), ALONE + TAUGHT),
    "k-prototypes": Method(Prototypes, ("clusters",), gives="clusters"),
    "UMAP on one-hot": Method(lambda kinds, k: Umap(hot(kinds)), ALONE),
    "CatBoost": Method(lambda kinds, k: Boosted(kinds, k, "CatBoost"), WHOLE, True, "answers"),
}
PAST = ("weave before", "untie", "helic")
OURS = (
    *("weave", "supervised weave", "WeaveClassifier", "WeaveRegressor", "SupervisedWeave + linear"),
    *PAST,
)
DEAR = ("prince", "k-prototypes", "UMAP on one-hot", "CatBoost")  # measured last


def is_there(name: str) -> bool:
    """Say whether this version of tabweave has what a method needs."""
    try:
        METHODS[name].make({"a": "nominal"}, 0 if METHODS[name].tasks == ("regress",) else 2)
    except ImportError:
        return False
    return True
