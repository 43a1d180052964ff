"""Saved files beside skops, SQL dialects beside sqlglot: what either would cost or lack.

    pip install skops sqlglot
    python benchmarks/formats.py

The tables on standard output are what ``benchmarks/reports/formats.md`` shows.
"""

from __future__ import annotations

import sqlite3
import tempfile
import time
import warnings
import zipfile
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

import tabweave as tw


def fastest(work: Callable[[], Any], repeats: int = 5) -> tuple[Any, float]:
    """Return what work gives, and its shortest processor time in milliseconds."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        out = work()
        times.append(time.process_time() - start)
    return out, 1000 * min(times)


def models() -> dict[str, Any]:
    """Return fitted estimators: of mixed rows, of classes, and an index of 20,000 rows."""
    rng, n = np.random.default_rng(0), 20_000
    sizes = (3, 10, 50, 300)
    rows: dict[str, Any] = {
        f"c{size}": rng.choice([f"v{j}" for j in range(size)], n).tolist() for size in sizes
    }
    rows["x"] = rng.normal(size=n).tolist()
    dated = rows | {"when": np.datetime64("2024-01-01") + rng.integers(0, 400, n)}
    return {
        "Weave": tw.Weave().fit(dated),
        "WeaveClassifier": tw.WeaveClassifier().fit(rows, rng.choice(["u", "v"], n)),
        "SimilarityIndex": tw.SimilarityIndex().fit(rows),
    }


def compare_files() -> None:
    """Print sizes, times, sameness and refusals of both kinds of file."""
    import skops.io

    print("| | file | bytes | write, ms | read, ms | same bytes twice | types to trust |")
    print("|---|---|---:|---:|---:|---|---:|")
    for name, model in models().items():
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.tabweave"
            _, write = fastest(lambda m=model, p=path: m.save(p))  # type: ignore[misc]
            first = path.read_bytes()
            _, read = fastest(lambda p=path: tw.load(p))  # type: ignore[misc]
            model.save(path)
            same = "yes" if path.read_bytes() == first else "no"
        print(f"| {name} | tabweave | {len(first):,} | {write:.0f} | {read:.0f} | {same} | 0 |")

        def dump(model: Any = model) -> bytes:
            return skops.io.dumps(model, compression=zipfile.ZIP_DEFLATED)

        data, write = fastest(dump)
        time.sleep(2)  # a zip archive has its time to two seconds
        same = "yes" if dump() == data else "no"
        types = skops.io.get_untrusted_types(data=data)
        try:
            _, milliseconds = fastest(lambda d=data, t=types: skops.io.loads(d, trusted=t))  # type: ignore[misc]
            shown = f"{milliseconds:.0f}"
        except Exception as error:
            shown = f"fails: {type(error).__name__}"
        print(f"| | skops | {len(data):,} | {write:.0f} | {shown} | {same} | {len(types)} |")


def columns() -> dict[str, tuple[list[Any], str | None]]:
    """Return cells of each kind that a database computes, and the kind where it is declared."""
    rng, n = np.random.default_rng(0), 400
    moments = np.datetime64("2024-01-01T10:00:05") + rng.integers(0, 40_000_000, n)
    minutes = rng.integers(0, 1440, n).tolist()
    return {
        "numbers": (rng.normal(size=n).tolist(), None),
        "datetimes": ([str(m).replace("T", " ") for m in moments], "datetime"),
        "amounts": ([f"${v:,.2f}" for v in rng.normal(1000, 5000, n)], "numeric"),
        "times of day": ([f"{m // 60:02d}:{m % 60:02d}" for m in minutes], "datetime"),
    }


def compare_sql() -> None:
    """Print what sqlglot makes of DuckDB's SQL in other dialects, run where that is SQLite."""
    import sqlglot

    print("\n| | dialect | tabweave | sqlglot |\n|---|---|---|---|")
    for name, (cells, kind) in columns().items():
        rows = {"c": ["a", "b"] * (len(cells) // 2), "x": cells}
        model = tw.Weave(schema={"x": kind} if kind else None).fit(rows)
        script = tw.export.sql(model, "duckdb").select
        for dialect in ("sqlite", "postgres", "bigquery"):
            written = tw.export.sql(model, dialect)
            try:
                other = sqlglot.transpile(
                    script, "duckdb", dialect, unsupported_level=sqlglot.ErrorLevel.RAISE
                )[0]
                shown = "EPOCH_US stays, which is DuckDB's" if "EPOCH_US" in other else "written"
            except sqlglot.UnsupportedError as error:
                other, shown = "", f"refused: {str(error).splitlines()[0][:60]}"
            ours = "written"
            if dialect == "sqlite":
                expected = model.transform(rows)
                ours = computed(rows, written.tables, written.select, expected)
                shown = computed(rows, written.tables, other, expected)
            print(f"| {name} | {dialect} | {ours} | {shown} |")


def computed(rows: dict[str, Any], tables: str, select: str, expected: np.ndarray) -> str:
    """Return how far the vectors of SQLite lie from those of transform, or its error."""
    with sqlite3.connect(":memory:") as database:
        database.execute(f"CREATE TABLE rows ({', '.join(rows)})")
        cells = list(zip(*rows.values(), strict=True))
        database.executemany(f"INSERT INTO rows VALUES ({', '.join('?' * len(rows))})", cells)
        database.executescript(tables)
        try:
            found = np.array(database.execute(select).fetchall(), float)
        except sqlite3.Error as error:
            return f"fails: {error}"
    return f"off by {np.abs(found - expected).max():.0e}"


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    print(f"skops {version('skops')}, sqlglot {version('sqlglot')}\n")
    compare_files()
    compare_sql()
