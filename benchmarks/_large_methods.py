"""Who takes part on large tables, with defaults and with draws of random search.

Peers get numbers, days and strings (``_large_sets.columns_of``): boosted trees their categories
declared, forests one-hot categories (the 64 most frequent of a column), neighbours a TargetEncoder.
Ours gets the raw table. A tuned peer draws its options at random from ranges around its defaults,
keeps the draw with the lowest log-loss (or squared error) on a fifth of the training rows, and is
fitted once more on all of them. The first draw is the defaults.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from _peer_methods import names_of, target_encoding

Kinds = dict[str, str]
Options = dict[str, Any]
ONE_HOT_VALUES = 64  # The most frequent values of a column that get a column each.
HIST_VALUES = 254  # HistGradientBoosting takes no more values a column.
HELD_OUT = 0.2  # of the training rows, to choose a draw by


class Peer(NamedTuple):
    """How a peer is made of kinds, the number of classes (0: numbers) and options; its ranges."""

    make: Callable[[Kinds, int, Options], Any]
    ranges: dict[str, tuple[Any, ...]]


# -- what peers see --------------------------------------------------------------------------------


class Declared:
    """A booster whose categories are declared, as pandas categories of the training rows.

    Columns are numbered, since some take no brackets in names.
    """

    def __init__(self, model: Any, kinds: Kinds) -> None:
        self.model, self.other = model, names_of(kinds)[1]

    def fit(self, X: pd.DataFrame, y: np.ndarray) -> Declared:
        self.levels = {c: sorted(set(X[c].dropna())) for c in self.other}
        self.model.fit(self._read(X), y)
        return self

    def _read(self, X: pd.DataFrame) -> pd.DataFrame:
        columns = {
            f"c{i}": pd.Categorical(X[c], categories=self.levels[c]) if c in self.levels else X[c]
            for i, c in enumerate(X)
        }
        return pd.DataFrame(columns, index=X.index)

    def predict(self, X: pd.DataFrame) -> np.ndarray:
        return np.asarray(self.model.predict(self._read(X))).ravel()

    def predict_proba(self, X: pd.DataFrame) -> np.ndarray:
        return np.asarray(self.model.predict_proba(self._read(X)))


class Texts(Declared):
    """A model that takes strings; a gap is one of them."""

    def fit(self, X: pd.DataFrame, y: np.ndarray) -> Texts:
        self.model.fit(self._read(X), y)
        return self

    def _read(self, X: pd.DataFrame) -> pd.DataFrame:
        filled = {c: X[c].where(X[c].notna(), "?").astype(str) for c in self.other}
        return X.assign(**filled)


def lightgbm(kinds: Kinds, k: int, options: Options) -> Any:
    from lightgbm import LGBMClassifier, LGBMRegressor

    kind = LGBMClassifier if k else LGBMRegressor
    return Declared(kind(random_state=0, n_jobs=1, verbose=-1, **options), kinds)


def xgboost(kinds: Kinds, k: int, options: Options) -> Any:
    from xgboost import XGBClassifier, XGBRegressor

    kind = XGBClassifier if k else XGBRegressor
    model = kind(random_state=0, n_jobs=1, enable_categorical=True, **options)
    return Declared(model, kinds)


def catboost(kinds: Kinds, k: int, options: Options) -> Any:
    from catboost import CatBoostClassifier, CatBoostRegressor

    kind = CatBoostClassifier if k else CatBoostRegressor
    still = {"verbose": 0, "random_seed": 0, "thread_count": 1, "allow_writing_files": False}
    return Texts(kind(cat_features=names_of(kinds)[1], **still, **options), kinds)


def explainable(kinds: Kinds, k: int, options: Options) -> Any:
    from interpret.glassbox import ExplainableBoostingClassifier, ExplainableBoostingRegressor

    kind = ExplainableBoostingClassifier if k else ExplainableBoostingRegressor
    if k > 2:  # it has pairs of columns for two classes only
        options = {"interactions": 0, **options}
    return Texts(kind(random_state=0, n_jobs=1, **options), kinds)


def forest(kinds: Kinds, k: int, options: Options) -> Any:
    from sklearn.compose import ColumnTransformer
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    encode = OneHotEncoder(
        handle_unknown="infrequent_if_exist", max_categories=ONE_HOT_VALUES, sparse_output=False
    )
    columns = ColumnTransformer([("one", encode, names_of(kinds)[1])], remainder="passthrough")
    kind = RandomForestClassifier if k else RandomForestRegressor
    return Texts(make_pipeline(columns, kind(random_state=0, n_jobs=1, **options)), kinds)


def histogram(kinds: Kinds, k: int, options: Options) -> Any:
    from sklearn.compose import ColumnTransformer
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OrdinalEncoder

    other = names_of(kinds)[1]
    encode = OrdinalEncoder(
        handle_unknown="use_encoded_value", unknown_value=np.nan, max_categories=HIST_VALUES
    )
    columns = ColumnTransformer([("code", encode, other)], remainder="passthrough")
    kind = HistGradientBoostingClassifier if k else HistGradientBoostingRegressor
    model = kind(random_state=0, categorical_features=list(range(len(other))), **options)
    return Texts(make_pipeline(columns, model), kinds)


def target_neighbors(kinds: Kinds, k: int, options: Options) -> Any:
    from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
    from sklearn.pipeline import make_pipeline

    kind = KNeighborsClassifier if k else KNeighborsRegressor
    return make_pipeline(target_encoding(kinds, k), kind(**options))


def realmlp(kinds: Kinds, k: int, options: Options) -> Any:
    from pytabkit import RealMLP_TD_Classifier, RealMLP_TD_Regressor

    kind = RealMLP_TD_Classifier if k else RealMLP_TD_Regressor
    return Imputed(kind(random_state=0, device="cpu", n_threads=1, verbosity=0, **options), kinds)


class Imputed(Texts):
    """A network that takes strings but no gaps in numbers: the mean of the training rows."""

    def fit(self, X: pd.DataFrame, y: np.ndarray) -> Imputed:
        self.means = X.drop(columns=self.other).mean().fillna(0)
        super().fit(X, y)
        return self

    def _read(self, X: pd.DataFrame) -> pd.DataFrame:
        return super()._read(X).fillna(self.means)


def ours(kinds: Kinds, k: int, options: Options) -> Any:
    from tabweave import WeaveClassifier, WeaveRegressor

    return (WeaveClassifier if k else WeaveRegressor)(**options)


TREES = {"learning_rate": ("log", 0.02, 0.3), "reg_lambda": ("log", 0.01, 30)}
METHODS: dict[str, Peer] = {
    "tabweave": Peer(ours, {}),
    "LightGBM": Peer(
        lightgbm,
        {
            **TREES,
            "n_estimators": ("whole", 50, 600),
            "num_leaves": ("whole", 7, 127),
            "min_child_samples": ("whole", 5, 100),
            "colsample_bytree": ("linear", 0.4, 1.0),
        },
    ),
    "CatBoost": Peer(
        catboost,
        {
            "learning_rate": ("log", 0.02, 0.2),
            "l2_leaf_reg": ("log", 0.5, 30),
            "depth": ("whole", 4, 8),
            "iterations": ("whole", 200, 1000),
        },
    ),
    "XGBoost": Peer(
        xgboost,
        {
            **TREES,
            "n_estimators": ("whole", 50, 600),
            "max_depth": ("whole", 3, 9),
            "min_child_weight": ("log", 0.5, 50),
            "colsample_bytree": ("linear", 0.4, 1.0),
            "subsample": ("linear", 0.6, 1.0),
        },
    ),
    "HistGradientBoosting": Peer(
        histogram,
        {
            "learning_rate": ("log", 0.02, 0.3),
            "max_iter": ("whole", 50, 600),
            "max_leaf_nodes": ("whole", 7, 127),
            "min_samples_leaf": ("whole", 5, 100),
            "l2_regularization": ("log", 0.01, 30),
        },
    ),
    "random forest": Peer(
        forest,
        {"max_features": ("linear", 0.1, 0.9), "min_samples_leaf": ("whole", 1, 20)},
    ),
    "TargetEncoder kNN": Peer(target_neighbors, {"n_neighbors": ("whole", 3, 100)}),
    "EBM": Peer(
        explainable,
        {
            "learning_rate": ("log", 0.005, 0.05),
            "max_leaves": ("whole", 2, 4),
            "interactions": ("whole", 0, 40),
            "smoothing_rounds": ("whole", 0, 200),
        },
    ),
    "RealMLP": Peer(realmlp, {}),
}


# -- defaults, and draws of random search ----------------------------------------------------------


class Tuned(NamedTuple):
    """A fitted model, the draw that was taken, and how many there were time for."""

    model: Any
    draw: int
    n_draws: int


def fitted(
    method: str, kinds: Kinds, k: int, X: Any, y: np.ndarray, n_draws: int, seconds: float
) -> Tuned:
    """Return the best of so many draws on all rows; no draw begins after so many seconds."""
    peer = METHODS[method]
    best, start = (np.inf, 0, {}), time.perf_counter()
    train, held_out = _held_out(len(y))
    draw = 0
    while draw < n_draws and (draw == 0 or time.perf_counter() - start < seconds):
        options = drawn_options(peer.ranges, draw)
        model = peer.make(kinds, k, options).fit(X.iloc[train], y[train])
        loss = loss_of(model, X.iloc[held_out], y[held_out], k)
        best = min(best, (loss, draw, options), key=lambda one: one[0])
        draw += 1
    return Tuned(peer.make(kinds, k, best[2]).fit(X, y), best[1], draw)


def drawn_options(ranges: dict[str, tuple[Any, ...]], draw: int) -> Options:
    """Return the options of a draw; the first draw is the defaults."""
    rng = np.random.default_rng(draw)
    return {name: _drawn_option(rng, *spec) for name, spec in ranges.items()} if draw else {}


def _drawn_option(rng: np.random.Generator, kind: str, low: float, high: float) -> Any:
    if kind == "whole":
        return int(rng.integers(low, high + 1))
    if kind == "log":
        return float(np.exp(rng.uniform(np.log(low), np.log(high))))
    return float(rng.uniform(low, high))


def _held_out(n: int) -> tuple[np.ndarray, np.ndarray]:
    order = np.random.default_rng(1).permutation(n)
    cut = int(HELD_OUT * n)
    return np.sort(order[cut:]), np.sort(order[:cut])


def loss_of(model: Any, X: Any, y: np.ndarray, k: int) -> float:
    """Return the log-loss of classes that are numbers, or the mean squared error."""
    if not k:
        return float(np.mean((y - model.predict(X)) ** 2))
    shares = np.full((len(y), k), 0.0)
    shares[:, np.asarray(model.classes_ if hasattr(model, "classes_") else range(k))] = (
        model.predict_proba(X)
    )
    return float(-np.log(np.clip(shares[np.arange(len(y)), y], 1e-4, 1)).mean())
