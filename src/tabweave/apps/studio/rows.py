"""Rows: every cell of an open table, for pages of a table, filters, charts, find and groups.

A child process reads the file and writes its cells, as tabweave reads them, to a database, and
beside it what its columns are and the bars that charts count. The server opens the database without
access to files or network, and its configuration is locked. The page sends filters as JSON: values
are bound, and no text of a page becomes SQL. A filter is a boolean for each row, so that charts,
marks of a map and groups are sums.
"""

from __future__ import annotations

import datetime as dt
import json
import math
import re
import threading
from calendar import monthrange
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tabweave._compat import require
from tabweave.apps.report.columns import by_frequency
from tabweave.apps.report.reading import read as read_rows
from tabweave.apps.studio.files import Refused, open_table
from tabweave.columns.frames import MAX_EXACT_INT, named_columns, object_array
from tabweave.columns.identifiers import corrected_cramers_v, naming_columns
from tabweave.columns.table import Table
from tabweave.engines.opening import read
from tabweave.engines.source import has_arrow
from tabweave.io.dialects import sql_name, sql_path
from tabweave.io.files import replacing

MAX_BARS = 12  # Values of a column that have a bar each; the others share one.
TARGET_BINS = 24  # A histogram has about so many bars, which end at round numbers.
MAX_PAGE_ROWS = 500  # Rows of one answer.
MAX_LISTED_ROWS = 10_000  # Rows that a filter may list one by one.
MAX_SETS = 32  # Selections that are remembered, the latest ones.
MAX_MASKS = 24  # Filters whose rows are remembered.
CHANCE_LEVEL = 0.001  # Two groups differ in a column if chance does so less often.
QUERY_SECONDS = 20.0  # After which a query is ended.
MAX_LISTED_NUMBERS = 50_000  # Distinct numbers of a column that find looks up in a list.
SECONDS_A_DAY = 86_400
MIN_MONTHS_SECONDS = 240 * SECONDS_A_DAY  # Longer spans of time are divided by months.
ROUND_SECONDS = (1, 5, 15, 30, 60, 300, 900, 1800, 3600, 10_800, 21_600, 43_200, SECONDS_A_DAY,
                 2 * SECONDS_A_DAY, 7 * SECONDS_A_DAY, 14 * SECONDS_A_DAY)  # fmt: skip

FOLDED = "strip_accents(lower(CAST({} AS VARCHAR)))"  # Text as find compares it.

# -- in a child process: a file becomes a database ------------------------------------------------


def write_rows(
    path: Path, encoding: str | None, folder: Path, max_bytes: int, target: Path
) -> None:
    """Read a file and write its cells, its bars and what its columns are to a folder."""
    raw = read(open_table(path, encoding, folder, max_bytes))
    cells, _ = named_columns(raw)
    table = Table.of(raw, rules="all")
    stored: dict[str, Any] = {"r": np.arange(table.n_rows)}
    select, charts = ["r"], []
    bars: dict[str, np.ndarray] = {}
    for i, (column, data) in enumerate(table):
        stored[f"c{i}"], sql = _stored(column, data, cells.get(column.name))
        select.append(f"{sql.format(f'c{i}')} AS c{i}")
        chart, codes = _chart(column, data)
        charts.append(chart)
        bars |= _flat_codes(i, codes, data) if data.is_set else {f"b{i}": codes}
    names = naming_columns(table)
    columns = _described_columns(table, names)
    types = _write_database(target / "rows.duckdb", _as_relation(stored), select, columns)
    parts = zip(columns, charts, types, strict=True)
    columns = [about | {"type": kind, "chart": chart} for about, chart, kind in parts]
    np.savez(target / "bars.npz", **bars)
    described = {"rows": table.n_rows, "columns": columns, "name_choices": names}
    with replacing(target / "rows.json") as part:
        part.write_text(json.dumps(described, allow_nan=False), encoding="utf-8")


def _described_columns(table: Table, names: list[list[str]]) -> list[dict[str, Any]]:
    """What each column holds, and whether rows are compared or named by it."""
    left_out = read_rows(table, None).left_out
    columns = []
    for column, data in table:
        role = "left out" if column.name in left_out else "column"
        columns.append(
            {
                "name": column.name,
                "kind": column.kind,
                "role": "identifier" if [column.name] in names else role,
                "why": left_out.get(column.name, ""),
                "missing": int(data.missing.sum()),
                **_extent(column, data),
            }
        )
    return columns


def _write_database(
    path: Path, stored: Any, select: Sequence[str], columns: Sequence[Mapping[str, Any]]
) -> list[str]:
    """Write the cells, and the distinct values that find looks through; return their types."""
    duckdb = require("duckdb", "files")
    with duckdb.connect(str(path)) as connection:
        connection.register("stored", stored)
        connection.execute(f"CREATE TABLE rows AS SELECT {', '.join(select)} FROM stored")
        described = connection.execute("DESCRIBE rows").fetchall()
        types = [_type_of(str(kind)) for _, kind, *_ in described[1:]]
        fields = "col INTEGER, n BIGINT, first BIGINT"
        connection.execute(f"CREATE TABLE texts ({fields}, value VARCHAR, folded VARCHAR)")
        connection.execute(f"CREATE TABLE numbers ({fields}, value DOUBLE)")
        for i, (kind, column) in enumerate(zip(types, columns, strict=True)):
            cells = f"(SELECT r, {_each(kind, i)} AS v FROM rows)"
            query = (
                f"SELECT {i}, count(*), min(r), v{{}} FROM {cells} WHERE v IS NOT NULL GROUP BY v"
            )
            if kind in ("text", "set"):
                folded = f", {FOLDED.format('v')}"
                connection.execute(f"INSERT INTO texts {query.format(folded)}")
            elif kind in ("number", "integer") and column["distinct"] <= MAX_LISTED_NUMBERS:
                connection.execute(f"INSERT INTO numbers {query.format('')}")
        return types


def _as_relation(columns: Mapping[str, Any]) -> Any:
    return require("pyarrow", "frames").table(dict(columns)) if has_arrow() else dict(columns)


def _stored(column: Any, data: Any, raw: Any) -> tuple[Any, str]:
    """The cells of a column as DuckDB takes them, and the SQL that makes them what they are."""
    if data.is_dated:
        present = data.values[~np.isnan(data.values)]
        kind = (
            "TIME"
            if column.is_clock
            else "TIMESTAMP"
            if (present % SECONDS_A_DAY).any()
            else "DATE"
        )
        moment = "make_timestamp(CAST(round({0} * 1e6) AS BIGINT))"
        return data.values, f"CAST(CASE WHEN isfinite({{0}}) THEN {moment} END AS {kind})"
    if data.is_continuous:
        if _is_arrow_number(raw):
            return raw, "{0}"
        whole = bool((np.isnan(data.values) | (data.values % 1 == 0)).all())
        is_exact = np.nanmax(np.abs(data.values), initial=0) < MAX_EXACT_INT
        number = "CAST({0} AS BIGINT)" if whole and is_exact else "{0}"
        return data.values, f"CASE WHEN NOT isnan({{0}}) THEN {number} END"
    values = _as_cells(data.labels)
    if data.is_set:
        return _lists(data, values), "{0}"
    return _taken(values, data.codes), "{0}"


def _is_arrow_number(raw: Any) -> bool:
    if not has_arrow() or not hasattr(raw, "type"):
        return False
    types = require("pyarrow", "frames").types
    return any(test(raw.type) for test in (types.is_integer, types.is_floating, types.is_decimal))


def _as_cells(labels: Sequence[Any]) -> list[Any]:
    """Labels as cells of one type: as they are if all are bools or numbers, else as text."""
    present = [label for label in labels if label is not None]
    for kind in (bool, int, float):
        if present and all(type(label) is kind for label in present):
            is_long = kind is int and any(abs(label) >= 2**63 for label in present)
            return [str(v) if is_long and v is not None else v for v in labels]
    return [None if label is None else str(label) for label in labels]


def _taken(values: Sequence[Any], codes: np.ndarray) -> Any:
    if not has_arrow():
        return object_array(values)[codes]
    arrow = require("pyarrow", "frames")
    kind = arrow.large_string() if any(isinstance(v, str) for v in values) else None
    return arrow.array(values, kind).take(arrow.array(codes))


def _lists(data: Any, values: Sequence[Any]) -> Any:
    missing = data.missing
    if not has_arrow():
        ends = zip(data.starts[:-1], data.starts[1:], missing, strict=True)
        lists = [None if gap else [values[c] for c in data.codes[a:b]] for a, b, gap in ends]
        return object_array(lists)
    arrow = require("pyarrow", "frames")
    offsets = arrow.array(np.asarray(data.starts, np.int64))
    return arrow.LargeListArray.from_arrays(
        offsets, _taken(values, data.codes), mask=arrow.array(missing)
    )


def _each(kind: str, i: int) -> str:
    """The cells of a column in SQL; of sets, their elements."""
    return f"unnest(c{i})" if kind == "set" else f"c{i}"


def _type_of(kind: str) -> str:
    """What the page calls a type of DuckDB."""
    if kind.endswith("[]"):
        return "set"
    for name, starts in (
        ("bool", ("BOOL",)), ("datetime", ("TIMESTAMP",)), ("date", ("DATE",)), ("time", ("TIME",)),
        ("number", ("FLOAT", "DOUBLE", "DECIMAL")), ("text", ("VARCHAR",)),
    ):  # fmt: skip
        if kind.startswith(starts):
            return name
    return "integer"


def _extent(column: Any, data: Any) -> dict[str, Any]:
    """How many values a column has, and the ends of its numbers."""
    if not data.is_continuous:
        return {"distinct": len(by_frequency(data)), "min": None, "max": None}
    present = data.values[np.isfinite(data.values)]
    ends = [present.min(), present.max()] if len(present) else [None, None]
    low, high = (None if end is None else round_end(column, float(end)) for end in ends)
    return {"distinct": len(np.unique(present)), "min": low, "max": high}


# -- charts: bars of values, histograms of numbers ------------------------------------------------


def _chart(column: Any, data: Any) -> tuple[dict[str, Any], np.ndarray]:
    """The chart of a column, and the bar of each cell: behind the last one what is missing."""
    if data.is_continuous:
        return _histogram(column, data)
    order, n_rows = by_frequency(data), len(data)
    is_text = not data.is_set and len(order) > 50 and len(order) > 0.5 * n_rows
    n_bars = 0 if is_text else len(order) if len(order) <= MAX_BARS + 1 else MAX_BARS
    index = np.full(len(data.labels), n_bars)
    index[order[:n_bars]] = np.arange(n_bars)
    if None in data.labels:
        index[data.labels.index(None)] = n_bars + 1
    codes = index[data.codes].astype(np.uint8)
    if is_text or not n_bars:
        return {"form": "none"}, codes
    labels = _as_cells(data.labels)
    values = [labels[i] for i in order[:n_bars]]
    return {"form": "bars", "values": values, "others": len(order) - n_bars}, codes


def _flat_codes(i: int, codes: np.ndarray, data: Any) -> dict[str, np.ndarray]:
    """The bars of the elements of sets, each once a row, and their rows."""
    row = np.repeat(np.arange(len(data)), np.diff(data.starts))
    pairs = np.unique(row * 256 + codes)
    return {f"b{i}": (pairs % 256).astype(np.uint8), f"rows{i}": pairs // 256}


def _histogram(column: Any, data: Any) -> tuple[dict[str, Any], np.ndarray]:
    present = data.values[np.isfinite(data.values)]
    if not len(present) or (present == present[0]).all():
        return {"form": "none"}, np.isnan(data.values).astype(np.uint8)
    low, high = float(present.min()), float(present.max())
    few, many = np.quantile(present, [0.0025, 0.9975], method="nearest").tolist()
    is_open = [False, False]
    if high - low > 2 * (many - few) > 0:  # the farthest would squeeze the others
        is_open = [few - low > 0.1 * (many - few), high - many > 0.1 * (many - few)]
        low, high = few if is_open[0] else low, many if is_open[1] else high
    is_whole = not data.is_dated and bool((present % 1 == 0).all())
    edges = _round_edges(low, high, data.is_dated, is_whole)
    codes = np.clip(np.searchsorted(edges, data.values, "right") - 1, 0, len(edges) - 2)
    codes[np.isnan(data.values)] = len(edges) - 1
    texts = [round_end(column, edge) for edge in edges.tolist()]
    is_single = is_whole and bool((np.diff(edges) == 1).all())  # a bar is of one number
    chart = {"form": "histogram", "edges": texts, "open": is_open, "single": is_single}
    return chart, codes.astype(np.uint8)


def round_end(column: Any, number: float) -> Any:
    """A number of a column as JSON has it: points of time as ISO text."""
    if not column.is_dated:
        return int(number) if number % 1 == 0 and abs(number) < MAX_EXACT_INT else number
    moment = str(np.datetime64(round(number * 1e6), "us"))
    day, time = moment.split("T")
    time = re.sub(r"(:00)?\.0+$", "", time)
    return time if column.is_clock else day if time == "00:00" else f"{day} {time}"


def _round_edges(low: float, high: float, is_dated: bool, is_whole: bool) -> np.ndarray:
    """The ends of bars between two numbers, at multiples of a round step."""
    span = high - low
    if is_whole and span < 2 * TARGET_BINS - 8:  # one bar a number
        return np.arange(low, high + 2)
    if not np.isfinite(span) or span <= 0:
        width = max(abs(low), 1.0) if np.isfinite(span) else np.inf
        return np.linspace(low, high, 9) if width == np.inf else np.array([low, low + width])
    if is_dated and span > MIN_MONTHS_SECONDS:
        return _month_edges(low, high)
    step = span / TARGET_BINS
    if is_dated:
        step = next((s for s in ROUND_SECONDS if s >= 0.8 * step), step)
    else:
        unit = 10.0 ** math.floor(math.log10(step))
        factors = (1, 2, 5, 10) if is_whole else (1, 2, 2.5, 5, 10)
        step = next(unit * factor for factor in factors if unit * factor >= 0.8 * step)
        step = max(step, 1.0) if is_whole else step
    first = math.floor(low / step)
    return step * np.arange(first, math.floor(high / step) + 2)


def _month_edges(low: float, high: float) -> np.ndarray:
    """The first days of months or years between two points of time."""
    months = np.array([low, high]).astype("datetime64[s]").astype("datetime64[M]")
    first, last = months.astype(int).tolist()
    step = (last - first + 1) / TARGET_BINS
    step = next((s for s in (1, 3, 6, 12, 60, 120, 600, 1200) if s >= 0.8 * step), 12_000)
    months = np.arange(first // step, last // step + 2) * step
    return months.astype("datetime64[M]").astype("datetime64[s]").astype(np.float64)


# -- in the server --------------------------------------------------------------------------------


class Group(NamedTuple):
    """A named group of rows."""

    key: str
    name: str
    colour: int
    mask: np.ndarray
    filters: list[dict[str, Any]]

    def described(self) -> dict[str, Any]:
        """What the page shows of it."""
        is_filter = bool(self.filters) and not any({"set", "rows"} & f.keys() for f in self.filters)
        return {
            "group": self.key,
            "name": self.name,
            "colour": self.colour,
            "rows": int(self.mask.sum()),
            "origin": "filter" if is_filter else "selection",
        } | ({"filters": self.filters} if is_filter else {})


class Rows:
    """The rows of a table that a child wrote to a folder.

    Parameters
    ----------
    folder : Path
        Where :func:`write_rows` wrote.
    clusters_of : callable
        The cluster of each row by the name of a job.
    """

    def __init__(self, folder: Path, clusters_of: Callable[[str], np.ndarray]) -> None:
        duckdb = require("duckdb", "files")
        self.folder = folder
        described = json.loads((folder / "rows.json").read_text(encoding="utf-8"))
        self.n_rows: int = described["rows"]
        self.columns: list[dict[str, Any]] = described["columns"]
        self.name_choices: list[list[str]] = described["name_choices"]
        self.names: list[str] = next(iter(self.name_choices), [])
        self._clusters_of = clusters_of
        self._index = {column["name"]: i for i, column in enumerate(self.columns)}
        self._connection = duckdb.connect(
            str(folder / "rows.duckdb"),
            read_only=True,
            config={
                "enable_external_access": "false",
                "autoload_known_extensions": "false",
                "autoinstall_known_extensions": "false",
                "lock_configuration": "true",
            },
        )
        self._lock = threading.Lock()
        self.export_lock = threading.Lock()
        self._bars: dict[str, np.ndarray] = {}
        self._masks: OrderedDict[str, np.ndarray] = OrderedDict()
        self._orders: OrderedDict[str, np.ndarray] = OrderedDict()
        self._sets: OrderedDict[str, np.ndarray] = OrderedDict()
        self._n_sets = 0
        self.groups: dict[str, Group] = {}

    def close(self) -> None:
        """Close the database."""
        self._connection.close()

    def described(self) -> dict[str, Any]:
        """What the page shows of the columns, of names and of groups."""
        columns = [{k: v for k, v in c.items() if k != "chart"} for c in self.columns]
        return {
            "rows": self.n_rows,
            "columns": columns,
            "names": self.names,
            "name_choices": self.name_choices,
            "groups": [group.described() for group in self.groups.values()],
        }

    def number_of(self, column: str) -> int:
        """The position of a column."""
        if not isinstance(column, str) or column not in self._index:
            raise KeyError(f"expected a column of the table, got {column!r}; look at its columns")
        return self._index[column]

    @contextmanager
    def _cursor(self) -> Iterator[Any]:
        """A cursor whose query is ended when it takes too long."""
        duckdb = require("duckdb", "files")
        cursor = self._connection.cursor()
        timer = threading.Timer(QUERY_SECONDS, cursor.interrupt)
        timer.start()
        try:
            yield cursor
        except duckdb.InterruptException:
            raise Refused(
                f"this took longer than {QUERY_SECONDS:.0f} seconds; ask for less"
            ) from None
        finally:
            timer.cancel()
            cursor.close()

    def _fetch(self, query: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        with self._cursor() as cursor:
            return list(cursor.execute(query, list(values)).fetchall())

    def _fetch_rows(self, query: str, values: Sequence[Any] = ()) -> np.ndarray:
        with self._cursor() as cursor:
            return np.asarray(cursor.execute(query, list(values)).fetchnumpy()["r"])

    # -- filters ---------------------------------------------------------------------------

    def mask(self, filters: Sequence[Mapping[str, Any]], without: str | None = None) -> np.ndarray:
        """Which rows pass every filter, or every one but those of a column."""
        out = np.ones(self.n_rows, bool)
        for filter_ in filters:
            if without is None or filter_.get("column") != without:
                passing = self._passing(filter_)
                out &= ~passing if filter_.get("not") else passing
        return out

    def _passing(self, filter_: Mapping[str, Any]) -> np.ndarray:
        if not isinstance(filter_, Mapping):
            raise TypeError(
                f"expected a filter such as {{'column': ..., 'in': [...]}}, got {filter_!r}"
            )
        for kind, rows_of in (("set", self._set), ("group", self._group), ("rows", self._listed)):
            if kind in filter_:
                return rows_of(filter_[kind])
        if "cluster" in filter_:
            return np.asarray(self._clusters_of(str(filter_.get("job"))) == filter_["cluster"])
        key = json.dumps(
            {k: v for k, v in filter_.items() if k != "not"}, sort_keys=True, default=str
        )
        with self._lock:
            if key in self._masks:
                self._masks.move_to_end(key)
                return self._masks[key]
        condition, values = self._condition(filter_)
        mask = np.zeros(self.n_rows, bool)
        mask[self._fetch_rows(f"SELECT r FROM rows WHERE {condition}", values)] = True
        with self._lock:
            self._masks[key] = mask
            while len(self._masks) > MAX_MASKS:
                self._masks.popitem(last=False)
        return mask

    def _set(self, key: Any) -> np.ndarray:
        if key not in self._sets:
            raise KeyError("this selection is no longer remembered; select the rows again")
        self._sets.move_to_end(key)
        return self._sets[key]

    def _group(self, key: Any) -> np.ndarray:
        return self.group(key).mask

    def group(self, key: Any) -> Group:
        """A group by its key."""
        if key not in self.groups:
            raise KeyError(f"group not found: {key!r}; it may have been removed")
        return self.groups[key]

    def _listed(self, numbers: Any) -> np.ndarray:
        if not isinstance(numbers, list) or len(numbers) > MAX_LISTED_ROWS:
            raise ValueError(
                f"expected at most {MAX_LISTED_ROWS:,} rows in a filter; make a set of more"
            )
        mask = np.zeros(self.n_rows, bool)
        for number in numbers:
            if type(number) is not int or not 0 <= number < self.n_rows:
                raise ValueError(
                    f"expected a row number from 0 to {self.n_rows - 1:,}, got {number!r}"
                )
            mask[number] = True
        return mask

    def _condition(self, filter_: Mapping[str, Any]) -> tuple[str, list[Any]]:
        """A filter on one column as SQL with its values bound."""
        i = self.number_of(filter_.get("column", ""))
        column, cell = self.columns[i], f"c{i}"
        if "in" in filter_:
            return _in_condition(column, cell, filter_["in"])
        if "text" in filter_:
            return f"contains({FOLDED.format(cell)}, {FOLDED.format('?')})", [str(filter_["text"])]
        if "missing" in filter_:
            return f"{cell} IS {'' if filter_['missing'] else 'NOT '}NULL", []
        conditions, values = [f"{cell} IS NOT NULL"], []
        for key, sign in (("min", ">="), ("above", ">"), ("below", "<"), ("max", "<=")):
            if filter_.get(key) is not None:
                sign, value = _bound(column, sign, filter_[key])
                conditions.append(f"{cell} {sign} {_cast(column)}")
                values.append(value)
        if not values:
            raise ValueError(
                f"column {column['name']!r}: expected a filter by 'in', 'min', 'above', 'max', "
                f"'below', 'text' or 'missing', got {sorted(filter_)}"
            )
        return " AND ".join(conditions), values

    def add_set(self, mask: np.ndarray) -> dict[str, Any]:
        """Remember rows as a selection."""
        with self._lock:
            self._n_sets += 1
            key = f"k{self._n_sets}"
            self._sets[key] = mask
            while len(self._sets) > MAX_SETS:
                self._sets.popitem(last=False)
        return {"set": key, "rows": int(mask.sum())}

    # -- pages of rows ---------------------------------------------------------------------

    def page(
        self,
        filters: Sequence[Mapping[str, Any]] = (),
        sort: Sequence[Mapping[str, Any]] = (),
        offset: int = 0,
        limit: int = 100,
        columns: Sequence[str] | None = None,
        distinct: bool = False,
    ) -> dict[str, Any]:
        """Some rows of those that pass, in an order; equal ones once if they are to be distinct."""
        if not (0 <= offset and 1 <= limit <= MAX_PAGE_ROWS):
            raise ValueError(
                f"expected an offset from 0 and a limit up to {MAX_PAGE_ROWS}, got {offset} and "
                f"{limit}"
            )
        names = [c["name"] for c in self.columns] if columns is None else list(columns)
        mask, order = self.mask(filters), self._order(sort)
        rows = np.flatnonzero(mask) if order is None else order[mask[order]]
        copies: dict[int, int] = {}
        if distinct:
            rows, copies = self._distinct(rows, names)
        shown = rows[offset : offset + limit]
        lines = self.cells(shown, names)
        for line in lines if distinct else ():
            line["copies"] = copies[line["row"]]
        return {"total": len(rows), "offset": offset, "columns": names, "rows": lines}

    def cells(self, rows: np.ndarray, columns: Sequence[str]) -> list[dict[str, Any]]:
        """Rows with their names and the cells of some columns."""
        fields = ", ".join(f", c{self.number_of(name)}" for name in columns).replace(", ,", ",")
        query = f"SELECT r, {self._name_sql()}{fields} FROM rows WHERE r IN (SELECT unnest(?))"
        lines = {line[0]: line for line in self._fetch(query, [rows.tolist()])}
        return [
            {"row": row, "name": lines[row][1], "cells": list(map(as_json, lines[row][2:]))}
            for row in rows.tolist()
        ]

    def names_of(self, rows: np.ndarray) -> list[str | None]:
        """What rows are called; None where no column names them."""
        return [line["name"] for line in self.cells(rows, [])] if self.names else [None] * len(rows)

    def _name_sql(self) -> str:
        if not self.names:
            return "NULL"
        parts = ", ".join(f"CAST(c{self.number_of(name)} AS VARCHAR)" for name in self.names)
        return f"nullif(concat_ws(' – ', {parts}), '')"

    def name_by(self, columns: Sequence[str]) -> None:
        """Name rows by some columns from here on."""
        if len(columns) > 3:
            raise ValueError(f"expected at most 3 columns that name rows, got {len(columns)}")
        for name in columns:
            self.number_of(name)
        self.names = list(columns)

    def _order(self, sort: Sequence[Mapping[str, Any]]) -> np.ndarray | None:
        """All rows in an order, or None if that is the order of the file."""
        keys = []
        for key in sort:
            way = "DESC" if key.get("descending") else "ASC"
            cell = "r" if key.get("column") == "#" else f"c{self.number_of(key.get('column', ''))}"
            keys.append(f"{cell} {way} NULLS LAST")
        if not keys or keys[0] == "r ASC NULLS LAST":
            return None
        text = ", ".join(keys)
        with self._lock:
            if text in self._orders:
                return self._orders[text]
        order = self._fetch_rows(f"SELECT r FROM rows ORDER BY {text}, r")
        with self._lock:
            self._orders[text] = order
            while len(self._orders) > 8:
                self._orders.popitem(last=False)
        return order

    def _distinct(
        self, rows: np.ndarray, names: Sequence[str]
    ) -> tuple[np.ndarray, dict[int, int]]:
        """The first of equal rows in their order, and how many are equal to each."""
        cells = ", ".join(f"c{self.number_of(name)}" for name in names)
        query = f"SELECT min(r), count(*) FROM rows WHERE r IN (SELECT unnest(?)) GROUP BY {cells}"
        copies = dict(self._fetch(query, [rows.tolist()]))
        return rows[np.isin(rows, np.fromiter(copies, np.int64, len(copies)))], copies

    # -- charts ----------------------------------------------------------------------------

    def _bars_of(self, i: int) -> tuple[np.ndarray, np.ndarray | None]:
        """The bar of each cell, or of each element of sets and the row that it is of."""
        if not self._bars:
            with np.load(self.folder / "bars.npz") as bars:
                self._bars = {name: bars[name] for name in bars.files}
        return self._bars[f"b{i}"], self._bars.get(f"rows{i}")

    def bar_counts(self, i: int, mask: np.ndarray | None = None) -> np.ndarray:
        """How many of the rows, or of those of a mask, each bar of a column has; missing last."""
        codes, rows = self._bars_of(i)
        chart = self.columns[i]["chart"]
        width = len(chart["edges"]) if "edges" in chart else len(chart.get("values", ())) + 2
        if mask is not None:
            codes = codes[mask if rows is None else mask[rows]]
        return np.bincount(codes, minlength=width)

    def charts(
        self, filters: Sequence[Mapping[str, Any]] = (), columns: Sequence[str] | None = None
    ) -> dict[str, Any]:
        """The bars of columns: all rows, and those that pass the filters of the other columns."""
        names = [c["name"] for c in self.columns] if columns is None else list(columns)
        mask = self.mask(filters)
        filtered = {f.get("column") for f in filters}
        charts = []
        for name in names:
            i = self.number_of(name)
            passing = self.mask(filters, without=name) if name in filtered else mask
            charts.append(self._described_chart(i, self.bar_counts(i), self.bar_counts(i, passing)))
        return {"rows": self.n_rows, "passing": int(mask.sum()), "charts": charts}

    def _described_chart(self, i: int, all_rows: np.ndarray, passing: np.ndarray) -> dict[str, Any]:
        column = self.columns[i]
        chart = column["chart"]
        out = {"column": column["name"], "type": column["type"], "form": chart["form"],
               "missing": {"all": int(all_rows[-1]), "passing": int(passing[-1])}}  # fmt: skip
        if chart["form"] == "none":
            return out | {"distinct": column["distinct"]}
        if chart["form"] == "histogram":
            n = len(chart["edges"]) - 1
            counts = {"all": all_rows[:n].tolist(), "passing": passing[:n].tolist()}
            return out | {key: chart[key] for key in ("edges", "open", "single")} | counts
        n = len(chart["values"])
        values = [
            {"value": value, "all": a, "passing": p}
            for value, a, p in zip(
                chart["values"], all_rows[:n].tolist(), passing[:n].tolist(), strict=True
            )
        ]
        others = {"values": chart["others"], "all": int(all_rows[n]), "passing": int(passing[n])}
        return out | {"values": values, "others": others}

    # -- find and values -------------------------------------------------------------------

    def find(self, text: str, limit: int = 20) -> dict[str, Any]:
        """The values that hold a text or are a number, the closest first, and their rows."""
        text = text.strip()
        hits = self._texts_with(text) + self._numbers_equal(text) if text else []
        by_column: dict[int, list[tuple[Any, int]]] = {}
        for i, value, n, _ in hits:
            by_column.setdefault(i, []).append((value, n))
        shown = hits[: max(1, min(limit, 100))]
        number = re.fullmatch(r"(?:row |#)(\d+)", text)
        row = int(number[1]) if number and int(number[1]) < self.n_rows else None
        rows = [first for *_, first in shown] + ([] if row is None else [row])
        names = dict(zip(rows, self.names_of(np.array(rows, np.int64)), strict=True))
        listed = [
            {
                "column": self.columns[i]["name"],
                "value": value,
                "rows": n,
                "row": first,
                "name": names[first],
            }
            for i, value, n, first in shown
        ]
        if row is not None:
            listed.insert(
                0, {"column": "#", "value": row, "rows": 1, "row": row, "name": names[row]}
            )
        columns = [
            {
                "column": self.columns[i]["name"],
                "values": len(values),
                "rows": sum(n for _, n in values),
            }
            for i, values in by_column.items()
        ]
        return {"total": len(hits) + (row is not None), "hits": listed, "columns": columns}

    def _texts_with(self, text: str) -> list[tuple[int, Any, int, int]]:
        """Column, text, rows and first row of the texts that hold a text."""
        query = (
            "SELECT col, value, n, first FROM texts WHERE contains(folded, {q}) ORDER BY "
            "folded <> {q}, NOT starts_with(folded, {q}), n DESC, value, col"
        ).format(q=FOLDED.format("$text"))
        with self._cursor() as cursor:
            return list(cursor.execute(query, {"text": text}).fetchall())

    def _numbers_equal(self, text: str) -> list[tuple[int, Any, int, int]]:
        """The same of the columns of numbers that hold a number."""
        try:
            number = int(text) if re.fullmatch(r"[+-]?\d{1,18}", text) else float(text)
        except ValueError:
            return []
        if not math.isfinite(number):
            return []
        query = "SELECT col, n, first FROM numbers WHERE value = ? ORDER BY col"
        hits = self._fetch(query, [number])
        for i, column in enumerate(self.columns):
            if column["type"] in ("number", "integer") and column["distinct"] > MAX_LISTED_NUMBERS:
                query = f"SELECT {i}, count(*), min(r) FROM rows WHERE c{i} = ?"
                hits += [line for line in self._fetch(query, [number]) if line[1]]
        return [(i, number, n, first) for i, n, first in hits]

    def values(
        self,
        column: str,
        text: str = "",
        filters: Sequence[Mapping[str, Any]] = (),
        limit: int = 50,
    ) -> dict[str, Any]:
        """The most frequent values of a column that hold a text, and how many rows have each."""
        i = self.number_of(column)
        cell = _each(self.columns[i]["type"], i)
        rows = np.flatnonzero(self.mask(filters))
        source = f"(SELECT {cell} AS v FROM rows WHERE r IN (SELECT r FROM passing))"
        folded = FOLDED.format("v")
        query = (
            f"SELECT v, count(*) AS n FROM {source} WHERE v IS NOT NULL AND "
            f"contains({folded}, {FOLDED.format('$text')}) GROUP BY v ORDER BY n DESC, v "
            f"LIMIT {max(1, min(int(limit), MAX_PAGE_ROWS))}"
        )
        with self._cursor() as cursor:
            cursor.register("passing", {"r": rows})
            lines = cursor.execute(query, {"text": text}).fetchall()
        values = [{"value": as_json(value), "rows": n} for value, n in lines]
        return {"values": values, "distinct": self.columns[i]["distinct"]}

    # -- groups ----------------------------------------------------------------------------

    def add_group(
        self, name: str, colour: int, filters: Sequence[Mapping[str, Any]]
    ) -> dict[str, Any]:
        """Name the rows that pass filters."""
        name = name.strip()
        if not name or len(name) > 200:
            raise ValueError(f"expected a name of 1 to 200 characters for a group, got {name!r}")
        if any(group.name == name for group in self.groups.values()):
            raise ValueError(f"there is a group {name!r} already; choose another name")
        mask = self.mask(filters)
        if not mask.any():
            raise ValueError(f"no row passes, so there is nothing to name {name!r}")
        with self._lock:
            self._n_sets += 1
            group = Group(f"g{self._n_sets}", name, int(colour) % 8, mask, list(map(dict, filters)))
            self.groups[group.key] = group
        return group.described()

    def change_group(self, key: str, name: str | None, colour: int | None) -> dict[str, Any]:
        """Give a group another name or colour."""
        group = self.group(key)
        if name is not None and name.strip():
            if any(g.name == name.strip() for g in self.groups.values() if g.key != key):
                raise ValueError(f"there is a group {name.strip()!r} already; choose another name")
            group = group._replace(name=name.strip()[:200])
        if colour is not None:
            group = group._replace(colour=int(colour) % 8)
        self.groups[key] = group
        return group.described()

    def labels(self) -> tuple[np.ndarray, list[str]]:
        """The group of each row, the last of several, -1 where it has none; and their names."""
        codes = np.full(self.n_rows, -1, np.int16)
        for i, group in enumerate(self.groups.values()):
            codes[group.mask] = i
        return codes, [group.name for group in self.groups.values()]

    def differences(self, a: np.ndarray, b: np.ndarray, n_values: int = 8) -> dict[str, Any]:
        """The columns in which two groups of rows differ, the most first, and how.

        The strength of a column is Cramér's V of its bars and the groups, corrected for chance.
        """
        out = []
        for i, column in enumerate(self.columns):
            if column["chart"]["form"] == "none":
                continue
            joint, values = self._joint(i, a, b)
            shares = joint / np.maximum([[a.sum()], [b.sum()]], 1)
            strength = (
                corrected_cramers_v(joint.T, CHANCE_LEVEL)
                if column["type"] != "set"
                else float(np.abs(shares[0] - shares[1]).max(initial=0.0))
            )
            order = np.argsort(-np.abs(shares[0] - shares[1]), kind="stable")
            order = np.sort(order) if "edges" in column["chart"] else order[:n_values]
            out.append(
                {
                    "column": column["name"],
                    "type": column["type"],
                    "strength": round(strength, 4),
                    "values": [
                        values[j]
                        | {"a": round(float(shares[0, j]), 6), "b": round(float(shares[1, j]), 6)}
                        for j in order.tolist()
                        if joint[:, j].any()
                    ],
                }
            )
        out.sort(key=lambda line: -line["strength"])
        return {"a": int(a.sum()), "b": int(b.sum()), "columns": out}

    def _joint(
        self, i: int, a: np.ndarray, b: np.ndarray
    ) -> tuple[np.ndarray, list[dict[str, Any]]]:
        """How many rows of two groups have each value or bar of a column, and what these are."""
        chart = self.columns[i]["chart"]
        joint = np.stack([self.bar_counts(i, a), self.bar_counts(i, b)])
        if "edges" in chart:
            edges = chart["edges"]
            values = [{"from": low, "below": high} for low, high in pairwise(edges)]
            if chart["single"]:
                values = [{"value": low} for low in edges[:-1]]
            is_open = chart["open"]
            if is_open[0]:
                values[0] = {"from": None, "below": edges[1]}
            if is_open[1]:
                values[-1] = {"from": edges[-2], "below": None}
            return joint, [*values, {"missing": True}]
        values = [{"value": value} for value in chart["values"]]
        if not chart["others"] or self.columns[i]["type"] == "set":
            return joint, [*values, {"others": chart["others"]}, {"missing": True}]
        return self._joint_of_values(i, a, b)

    def _joint_of_values(
        self, i: int, a: np.ndarray, b: np.ndarray
    ) -> tuple[np.ndarray, list[dict[str, Any]]]:
        """The same of a column of many values, each of them."""
        query = (
            f"SELECT c{i}, count(*) FILTER (a), count(*) FILTER (b) FROM "
            "(SELECT * FROM rows POSITIONAL JOIN sides) WHERE a OR b GROUP BY ALL "
            "ORDER BY count(*) DESC, 1"
        )
        with self._cursor() as cursor:
            cursor.register("sides", {"a": a, "b": b})
            lines = cursor.execute(query).fetchall()
        values = [{"missing": True} if v is None else {"value": as_json(v)} for v, _, _ in lines]
        return np.array([line[1:] for line in lines], np.int64).reshape(-1, 2).T, values


# -- filters as SQL -------------------------------------------------------------------------------

_SQL_TYPES = {"date": "DATE", "datetime": "TIMESTAMP", "time": "TIME"}


def _cast(column: Mapping[str, Any]) -> str:
    kind = _SQL_TYPES.get(column["type"])
    return f"CAST(? AS {kind})" if kind else "?"


def _in_condition(column: Mapping[str, Any], cell: str, values: Any) -> tuple[str, list[Any]]:
    if not isinstance(values, list) or len(values) > MAX_LISTED_ROWS:
        raise ValueError(
            f"column {column['name']!r}: expected a list of values, got {values!r:.80}"
        )
    bound = [_checked(column, value) for value in values if value is not None]
    parts = [f"{cell} IS NULL"] * (len(bound) < len(values))
    if bound and column["type"] == "set":
        parts.append(f"list_has_any({cell}, [{', '.join('?' for _ in bound)}])")
    elif bound:
        parts.append(f"{cell} IN ({', '.join(_cast(column) for _ in bound)})")
    return f"({' OR '.join(parts)})" if parts else "false", bound


def _checked(column: Mapping[str, Any], value: Any) -> Any:
    """A value of a filter as DuckDB compares it with the cells of a column."""
    kind, name = column["type"], column["name"]
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if kind in ("number", "integer"):
        if isinstance(value, str) and re.fullmatch(
            r"[+-]?\d{1,38}", value
        ):  # beyond what JSON holds
            return int(value)
        if not is_number or not math.isfinite(value):
            raise ValueError(f"column {name!r}: expected a number, got {value!r}")
        return value
    if kind == "bool":
        if not isinstance(value, bool):
            raise ValueError(f"column {name!r}: expected true or false, got {value!r}")
        return value
    if kind in _SQL_TYPES:
        return _checked_time(column, value)
    return value if kind == "set" and is_number else str(value)


def _checked_time(column: Mapping[str, Any], value: Any) -> str:
    try:
        text = str(value)
        if column["type"] == "time":
            return dt.time.fromisoformat(text).isoformat()
        moment = dt.datetime.fromisoformat(text)
    except ValueError:
        form = "05:30" if column["type"] == "time" else "2013-01-31 or 2013-01-31 05:30"
        raise ValueError(
            f"column {column['name']!r}: expected a time such as {form}, got {value!r}"
        ) from None
    return moment.replace(tzinfo=None).isoformat(" ")


def _bound(column: Mapping[str, Any], sign: str, value: Any) -> tuple[str, Any]:
    """An end of a range: days, months and years last until their last moment."""
    if column["type"] in ("text", "set", "bool"):
        raise ValueError(
            f"column {column['name']!r}: expected a filter by 'in', 'text' or 'missing', since it "
            f"holds no numbers or times, got an end of a range"
        )
    if column["type"] not in ("date", "datetime"):
        return sign, _checked(column, value)
    text = str(value)
    first, last = _days_of(text)
    if first is None:
        return sign, _checked_time(column, text)
    if sign in ("<=", ">"):
        return {"<=": "<", ">": ">="}[sign], (last + dt.timedelta(days=1)).isoformat()
    return sign, first.isoformat()


def _days_of(text: str) -> tuple[Any, Any]:
    """The first and the last day of a year, a month or a day as ISO text; else None."""
    match = re.fullmatch(r"(\d{4})(?:-(\d\d))?(?:-(\d\d))?", text)
    try:
        if match is None:
            return None, None
        year, month, day = (int(part or 0) for part in match.groups())
        last_month = month or 12
        last_day = day or monthrange(year, last_month)[1]
        return dt.date(year, month or 1, day or 1), dt.date(year, last_month, last_day)
    except ValueError:
        return None, None


def as_json(cell: Any) -> Any:
    """A cell of DuckDB as JSON has it: long whole numbers and times as text."""
    if cell is None or isinstance(cell, str | bool):
        return cell
    if isinstance(cell, int):
        return cell if abs(cell) <= MAX_EXACT_INT else str(cell)
    if isinstance(cell, float):
        return cell if math.isfinite(cell) else str(cell)
    if isinstance(cell, list):
        return list(map(as_json, cell))
    if isinstance(cell, Decimal):
        return float(cell) if Decimal(float(cell)) == cell else str(cell)
    if isinstance(cell, dt.datetime):
        return cell.isoformat(" ")
    return cell.isoformat() if hasattr(cell, "isoformat") else str(cell)


# -- in a child process: all rows with their labels, as a file ------------------------------------


def write_labelled(folder: Path, names: Sequence[str], target: Path, label: str) -> None:
    """Write every row and column of a table, and the group of each row, as CSV or Parquet."""
    duckdb = require("duckdb", "files")
    columns = json.loads((folder / "rows.json").read_text(encoding="utf-8"))["columns"]
    while any(label.casefold() == column["name"].casefold() for column in columns):
        label += "_"
    codes = np.load(folder / "labels.npy")
    select = [f"c{i} AS {sql_name(c['name'])}" for i, c in enumerate(columns)]
    query = (
        f"SELECT {', '.join(select)}, label AS {sql_name(label)} FROM rows "
        "JOIN coded USING (r) LEFT JOIN named USING (code) ORDER BY r"
    )
    form = "FORMAT parquet" if target.suffix == ".parquet" else "FORMAT csv, HEADER true"
    with duckdb.connect(str(folder / "rows.duckdb"), read_only=True) as connection:
        connection.register("coded", {"r": np.arange(len(codes)), "code": codes.astype(np.int64)})
        connection.register(
            "named", {"code": np.arange(len(names)), "label": object_array(list(names))}
        )
        with replacing(target) as part:
            connection.execute(f"COPY ({query}) TO {sql_path(part)} ({form})")
