"""Data sets from files: `load("zoo")` finds, reads and types `zoo.csv.gz`.

A data directory holds one gzip-compressed CSV per data set: a header line, the label last under
the name `class` or `target`, an empty cell where a value is missing. A `COLUMNS.csv` beside them
(`name,column,kind`) says which columns are numbers; without it, that is guessed from the values.
"""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Callable
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tabweave._compat import require
from tabweave.datasets import generated
from tabweave.datasets.dataset import Dataset, dtype_of
from tabweave.io.dialects import sql_path
from tabweave.io.files import csv_header
from tabweave.io.register import KINDS

SUFFIX = ".csv.gz"
LABELS = ("class", "target")
# Kinds in COLUMNS.csv. An identifier is kept as a nominal column: the caller knows what to join.
OTHER_KINDS = {"categorical": "nominal", "id": "nominal", "class": "class", "target": "target"}
EXACT: dict[str, Callable[[], Dataset]] = {
    "balance": generated.balance,
    "car": generated.car,
    "krkopt": generated.krkopt,
    "monks1": partial(generated.monks, 1),
    "monks2": partial(generated.monks, 2),
    "monks3": partial(generated.monks, 3),
    "nursery": generated.nursery,
    "three_of_9": generated.three_of_9,
    "tictactoe": generated.tictactoe,
    "titanic": generated.titanic,
}


def load(
    name: str, data_dir: str | os.PathLike[str] | None = None, *, download: bool = True
) -> Dataset:
    """Load a data set by name: from a file, else from its rule, else from OpenML.

    Parameters
    ----------
    name : str
        Letters, digits and underscores, as in `available()`.
    data_dir : path, optional
        Directory of `<name>.csv.gz` files. By default the environment variable TABWEAVE_DATA;
        failing that, in a source checkout, `../shared/data` next to it.
    download : bool, default=True
        Whether OpenML may be asked. Its copies keep their own column names and spelling.

    Returns
    -------
    Dataset
        Categories are strings exactly as in the file, None where missing; numbers are float64,
        NaN where missing. Identifiers stay among the columns, as nominal ones.

    Raises
    ------
    FileNotFoundError
        If nothing by that name is found, or it could not be downloaded.
    ValueError
        If the name or the file is malformed.

    Examples
    --------
    >>> from tabweave.datasets import load
    >>> load("monks3", download=False)
    Dataset('monks3': 432 rows x 6 columns (6 nominal), 2 classes)
    """
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z0-9_]+", name):
        raise ValueError(f"expected a name of letters, digits and underscores, got {name!r}")
    directory = _data_dir(data_dir)
    if directory is not None and (path := directory / (name + SUFFIX)).is_file():
        return read(path, name)
    if name in EXACT:
        return EXACT[name]()
    if name in OPENML and download:
        try:
            return fetch(name)
        except OSError as error:
            reason = f"and OpenML could not be reached ({error})"
            raise FileNotFoundError(_not_found(name, directory, reason)) from error
    reason = "and download=False" if name in OPENML else "and there is no rule or source for it"
    raise FileNotFoundError(_not_found(name, directory, reason))


def available(data_dir: str | os.PathLike[str] | None = None) -> list[str]:
    """Names that `load` finds without a network: files, and sets generated from a rule.

    Parameters
    ----------
    data_dir : path, optional
        As in `load`.

    Examples
    --------
    >>> from tabweave.datasets import available
    >>> {"car", "nursery", "titanic"} <= set(available())
    True
    """
    directory = _data_dir(data_dir)
    files = directory.glob("*" + SUFFIX) if directory is not None else ()
    return sorted({path.name.removesuffix(SUFFIX) for path in files} | EXACT.keys())


def read(path: Path, name: str) -> Dataset:
    """Read one `.csv.gz` file, with the kinds of the COLUMNS.csv beside it if there is one."""
    # Imported here: a program that only generates data should not pay for a database engine.
    duckdb = require("duckdb", "files")
    header = _header(path)
    kinds = _declared_kinds(path.parent / "COLUMNS.csv", name, header)
    # Everything is declared rather than sniffed, so that a column of digits stays one of strings.
    # The columns get numbers for names: header cells may differ by nothing but their case.
    types = ", ".join(f"c{i}: 'VARCHAR'" for i in range(len(header)))
    with duckdb.connect() as database:
        try:
            database.execute(
                f"CREATE TABLE cells AS FROM read_csv({sql_path(path)}, columns = {{{types}}}, "
                "header = true, auto_detect = false, compression = 'gzip', delim = ',', "
                "quote = '\"', escape = '\"', nullstr = '')"
            )
        except duckdb.Error as error:
            raise ValueError(f"data set {name!r}: cannot read {path}: {error}") from error
        kinds = kinds or _guessed_kinds(database, header)
        columns = {}
        for i, column in enumerate(header):
            kind = "numeric" if kinds[column] == "target" else kinds[column]
            where = f"data set {name!r}, column {column!r}"
            columns[column] = _cells(database, f"c{i}", where, dtype_of(kind))
    label = next((c for c in header if kinds[c] in LABELS), None)
    y = None if label is None else columns.pop(label)
    return Dataset(name, columns, y, {c: kinds[c] for c in columns}, f"read from {path.name}")


def _data_dir(data_dir: str | os.PathLike[str] | None) -> Path | None:
    """Choose the one directory to look in, or None."""
    origin = "data_dir"
    if data_dir is None:
        origin, data_dir = "the environment variable TABWEAVE_DATA", os.environ.get("TABWEAVE_DATA")
    if data_dir:
        directory = Path(data_dir).expanduser()
        if not directory.is_dir():
            raise NotADirectoryError(f"{origin} names {directory}, which is not a directory.")
        return directory
    checkout = _checkout_dir()
    return checkout if checkout is not None and checkout.is_dir() else None


def _checkout_dir() -> Path | None:
    """Where a source checkout keeps shared data; None for an installed package."""
    source = Path(__file__).resolve().parents[2]
    root = source.parent
    if source.name == "src" and (root / "pyproject.toml").is_file():
        return root.parent / "shared" / "data"
    return None


def _not_found(name: str, directory: Path | None, reason: str) -> str:
    looked = [str(directory)] if directory is not None else []
    if not looked and (checkout := _checkout_dir()) is not None:
        looked = [f"{checkout} (absent)"]
    where = f"no {name}{SUFFIX} in {looked[0]}" if looked else "no data directory is set"
    close = get_close_matches(name, {*available(directory), *OPENML}, n=3)
    hints = [f"Did you mean {', '.join(close)}?"] if close and name not in close else []
    if name in ("mofn_3_7_10", "led24", "waveform"):
        hints.append(f"tabweave.datasets.{name}() draws a new sample by the same rule.")
    hints.append("Set TABWEAVE_DATA to a directory of .csv.gz files, or pass data_dir.")
    return f"data set {name!r}: {where}, {reason}. {' '.join(hints)}"


def _header(path: Path) -> list[str]:
    header = csv_header(path, ",").names
    repeated = sorted({c for c in header if header.count(c) > 1 or not c})
    if repeated:
        raise ValueError(f"{path}: the first line must name every column once; check {repeated}.")
    return header


def _declared_kinds(path: Path, name: str, header: list[str]) -> dict[str, str] | None:
    """Kinds from COLUMNS.csv, or None if it is absent or silent about this data set."""
    if not path.is_file():
        return None
    with path.open(encoding="utf-8", newline="") as lines:
        declared = {r["column"]: r["kind"] for r in csv.DictReader(lines) if r["name"] == name}
    if not declared:
        return None
    if header[-1] in LABELS:
        declared.setdefault(header[-1], header[-1])  # its name says it already
    if declared.keys() != set(header):
        unknown = sorted(declared.keys() ^ set(header))
        raise ValueError(
            f"data set {name!r}: {path} and the file disagree about columns {unknown}."
        )
    for column, kind in declared.items():
        if kind not in (allowed := [*KINDS, *OTHER_KINDS]):
            raise ValueError(
                f"data set {name!r}, column {column!r}: expected one of {', '.join(allowed)}, got "
                f"{kind!r} in {path}"
            )
    return {column: OTHER_KINDS.get(kind, kind) for column, kind in declared.items()}


def _guessed_kinds(database: Any, header: list[str]) -> dict[str, str]:
    """Guess numeric where every value is a number and some have a decimal point, else nominal.

    Whole numbers are taken for codes: treating a code as a quantity is the worse mistake.
    """
    tests = ", ".join(
        f"bool_and(TRY_CAST(c{i} AS DOUBLE) IS NOT NULL) FILTER (c{i} IS NOT NULL) "
        f"AND bool_or(contains(c{i}, '.'))"
        for i in range(len(header))
    )
    answer = database.execute(f"SELECT {tests} FROM cells").fetchone()
    kinds = {c: "numeric" if yes else "nominal" for c, yes in zip(header, answer, strict=True)}
    if header[-1] in LABELS:
        kinds[header[-1]] = header[-1]
    return kinds


def _cells(database: Any, column: str, where: str, dtype: np.dtype) -> np.ndarray:
    if dtype.kind == "O":
        return _strings(database, column)
    sql_type, expected = (
        ("DOUBLE", "a number") if dtype.kind == "f" else ("TIMESTAMP", "a date or time")
    )
    typed = f"TRY_CAST({column} AS {sql_type})"
    wrong = f"SELECT {column} FROM cells WHERE {column} IS NOT NULL AND {typed} IS NULL LIMIT 1"
    if cells := database.execute(wrong).fetchone():
        raise ValueError(
            f"{where}: expected {expected}, got {cells[0]!r}; correct it or the column's kind"
        )
    values = database.execute(f"SELECT {typed} AS n FROM cells").fetchnumpy()["n"]
    missing = np.array("NaN" if dtype.kind == "f" else "NaT", dtype)
    return np.ma.filled(np.ma.asarray(values, dtype=dtype), missing)


def _strings(database: Any, column: str) -> np.ndarray:
    cells = database.execute(f"SELECT {column} FROM cells").fetchnumpy()[column]
    # One object per distinct value instead of one per cell: a tenth of the memory.
    same: dict[str | None, str | None] = {}
    strings = np.empty(len(cells), dtype=object)
    strings[:] = [same.setdefault(value, value) for value in np.ma.getdata(cells)]
    strings[np.ma.getmaskarray(cells)] = None
    return strings


# -- From OpenML, for those who do not have the files


class Remote(NamedTuple):
    """An OpenML data set: its number there, and how many rows it must have."""

    data_id: int
    n_rows: int


OPENML = {
    "adult_mixed": Remote(1590, 48842),
    "australian": Remote(40981, 690),
    "blood": Remote(1464, 748),
    "breast_cancer_w": Remote(15, 699),
    "connect4": Remote(40668, 67557),
    "german_credit": Remote(31, 1000),
    "house_votes_full": Remote(56, 435),
    "ilpd": Remote(1480, 583),
    "ionosphere": Remote(59, 351),
    "iris": Remote(61, 150),
    "krvskp": Remote(3, 3196),
    "letters": Remote(6, 20000),
    "lymphography": Remote(10, 148),
    "magic_telescope": Remote(1120, 19020),
    "mfeat_fac": Remote(12, 2000),
    "mfeat_fou": Remote(14, 2000),
    "mfeat_kar": Remote(16, 2000),
    "mfeat_mor": Remote(18, 2000),
    "mfeat_pix": Remote(20, 2000),
    "mfeat_zer": Remote(22, 2000),
    "mushroom_full": Remote(24, 8124),
    "primary_tumor": Remote(171, 339),
    "robot_navigation": Remote(1497, 5456),
    "seeds": Remote(1499, 210),
    "segment_full": Remote(36, 2310),
}


def fetch(name: str) -> Dataset:
    """Download one of `OPENML`; OSError (no network) is the caller's to explain."""
    # Imported here: scikit-learn's data sets take longer to import than all of tabweave.datasets.
    from sklearn.datasets import fetch_openml

    remote = OPENML[name]
    # Arrays, because frames would need pandas; the ARFF reader for the same reason.
    bunch = fetch_openml(data_id=remote.data_id, as_frame=False, parser="liac-arff")
    if len(bunch.data) != remote.n_rows:
        raise ValueError(
            f"data set {name!r}: OpenML {remote.data_id} has {len(bunch.data)} rows where "
            f"{remote.n_rows} were expected; get the file instead and pass data_dir."
        )
    categories = bunch.categories or {}
    columns = {
        column: _column(bunch.data[:, j], categories.get(column))
        for j, column in enumerate(bunch.feature_names)
    }
    kinds = {column: "nominal" if column in categories else "numeric" for column in columns}
    y = np.array([str(label) for label in bunch.target], dtype=object)
    text = f"OpenML {remote.data_id}; names and values are spelled as there"
    return Dataset(name, columns, y, kinds, text)


def _column(values: np.ndarray, categories: list[Any] | None) -> np.ndarray:
    numbers = values.astype(np.float64)
    if categories is None:
        return numbers
    # Categorical cells arrive as positions in the list of categories, missing ones as NaN.
    spelling = np.array([*(str(c) for c in categories), None], dtype=object)
    missing = np.isnan(numbers)
    return spelling[np.where(missing, len(categories), numbers).astype(np.intp)]
