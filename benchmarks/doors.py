"""Doors: the first call, the Arrow door, pushdown, wide tables, and Parquet beside its peers.

Wall time and core-seconds (user and system, of the process and its children), side by side with a
peer in the same run. Needs DuckDB, pyarrow and pandas; DataFusion, Daft and a PostgreSQL server
(``--postgres ADDRESS``, and ``--server PID`` for its processor time) are used where they are.

    python benchmarks/doors.py first
    python benchmarks/doors.py arrow --rows 2000000
    python benchmarks/doors.py pushdown --rows 2000000 --postgres postgresql://me@host/db
    python benchmarks/doors.py parquet --rows 50000000
    python benchmarks/doors.py written --rows 500000
    python benchmarks/doors.py wide
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

import numpy as np

DRAWN = """
import time, resource
import numpy as np, pandas as pd
rng = np.random.default_rng(0)
words = [np.array([f"v{j}" for j in range(5 + i)], object) for i in range(10)]
rows = pd.DataFrame({f"c{i}": w[rng.integers(0, len(w), 1000)] for i, w in enumerate(words)})
if MIXED:
    rows[["c0", "c1", "c2"]] = rng.normal(size=(1000, 3))
used = lambda: sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
t, c = time.perf_counter(), used()
PLACE
vectors = model.fit(rows).transform(rows)
print(time.perf_counter() - t, used() - c)
"""
OURS = "from tabweave import Weave\nmodel = Weave()"
THEIRS = "from sklearn.preprocessing import OneHotEncoder\nmodel = OneHotEncoder()"


def used() -> float:
    own, others = (
        resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    return own.ru_utime + own.ru_stime + others.ru_utime + others.ru_stime


def timed(work) -> tuple[float, float, object]:
    start, before = time.perf_counter(), used()
    result = work()
    return time.perf_counter() - start, used() - before, result


def line(*cells) -> None:
    print("| " + " | ".join(str(c) for c in cells) + " |", flush=True)


def head(*cells) -> None:
    line(*cells)
    line(*("---" for _ in cells))


def first(options) -> None:
    """Measure import, first fit and first transform of 1,000 × 10 in fresh processes."""
    head("1,000 × 10, fresh process", "wall s", "core-s")
    for name, place, mixed, environment in (
        ("OneHotEncoder, warm", THEIRS, False, {}),
        ("Weave, categories, warm cache", OURS, False, {}),
        ("Weave, categories, cold cache", OURS, False, {"cold": "1"}),
        ("Weave, with numbers, warm cache", OURS, True, {}),
        ("Weave, with numbers, cold cache", OURS, True, {"cold": "1"}),
    ):
        seen = []
        for _ in range(options.repeats):
            with tempfile.TemporaryDirectory() as folder:
                cold = {"NUMBA_CACHE_DIR": folder} if environment else {}
                code = DRAWN.replace("MIXED", str(mixed)).replace("PLACE", place)
                done = subprocess.run(
                    [sys.executable, "-c", code],
                    env=os.environ | cold, capture_output=True, text=True, check=True,
                )  # fmt: skip
                seen.append([float(v) for v in done.stdout.split()])
        wall, core = np.median(seen, axis=0)
        line(name, f"{wall:.2f}", f"{core:.2f}")


def drawn(n: int, n_columns: int = 20, seed: int = 0):
    """Text columns of 4 to 23 values."""
    import pyarrow as pa

    rng = np.random.default_rng(seed)
    columns = {}
    for i in range(n_columns):
        codes = pa.array(rng.integers(0, 4 + i, n).astype(np.int32))
        words = pa.array([f"value {j}" for j in range(4 + i)])
        columns[f"c{i}"] = pa.DictionaryArray.from_arrays(codes, words)
    return pa.table(columns)


def write(path: Path, n: int, part: int = 1 << 20) -> None:
    from pyarrow import parquet

    first_part = drawn(min(part, n))
    with parquet.ParquetWriter(path, first_part.schema) as file:
        for i in range(0, n, part):
            file.write_table(first_part if not i else drawn(min(part, n - i), seed=i))


def arrow(options) -> None:
    """Measure the Arrow door beside our own reader of the same Parquet file."""
    import pyarrow.dataset

    from tabweave import count

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "rows.parquet")
        write(path, options.rows)
        sources = {"tabweave's Parquet reader": lambda: path}
        sources["pyarrow dataset"] = lambda: pyarrow.dataset.dataset(path)
        if find_spec("datafusion"):
            import datafusion

            sources["DataFusion"] = lambda: datafusion.SessionContext().read_parquet(str(path))
        if find_spec("daft"):
            import daft

            sources["Daft"] = lambda: daft.read_parquet(str(path))
            sources["Daft, filtered"] = lambda: daft.read_parquet(str(path)).where("c0 <> ''")
        import duckdb

        sources["DuckDB relation"] = lambda: duckdb.read_parquet(str(path))
        sources["DuckDB, filtered"] = lambda: duckdb.read_parquet(str(path)).filter("c0 <> ''")
        if find_spec("polars"):
            import polars

            sources["polars lazy"] = lambda: polars.scan_parquet(path)
            sources["polars, filtered"] = lambda: polars.scan_parquet(path).filter(
                polars.col("c0") != ""
            )
        wanted = count(path)
        head(f"{options.rows:,} × 20 Parquet", "wall s", "core-s", "of ours", "equal counts")
        own = None
        for name, make in sources.items():
            runs = [timed(lambda m=make: count(m())) for _ in range(options.repeats)]
            wall, core, found = min(runs, key=lambda run: run[1])
            own = own or core
            line(name, f"{wall:.2f}", f"{core:.2f}", f"{core / own:.2f} ×", found == wanted)


def pushdown(options) -> None:
    """Count in the database, and by reading its rows."""
    import duckdb

    from tabweave import count
    from tabweave.engines import open_source

    rows = drawn(options.rows)
    connection = duckdb.connect()
    connection.register("frame", rows)
    connection.execute("CREATE TABLE t AS SELECT * FROM frame")
    sources = {"DuckDB": (connection, "SELECT * FROM t")}
    if options.postgres:
        import adbc_driver_postgresql.dbapi as driver
        import pyarrow as pa

        plain = pa.table(
            {n: c.cast(pa.string()) for n, c in zip(rows.column_names, rows.columns, strict=True)}
        )
        with driver.connect(options.postgres) as server, server.cursor() as cursor:
            cursor.execute("DROP TABLE IF EXISTS doors")
            cursor.adbc_ingest("doors", plain, mode="create")
            server.commit()
        sources["PostgreSQL"] = (options.postgres, "SELECT * FROM doors")
    wanted = count(rows)
    head(f"{options.rows:,} × 20", "how", "wall s", "core-s here", "core-s there", "rows moved",
         "equal counts")  # fmt: skip
    v2 = len(wanted.pairs) ** 2
    for name, source in sources.items():
        there = served(options.server)
        wall, core, found = timed(lambda s=source: count(s))
        there = served(options.server) - there
        line(name, "reading rows", f"{wall:.2f}", f"{core:.2f}", f"{there:.2f}",
             f"{options.rows:,}", found == wanted)  # fmt: skip
        opened, moved = open_source(source), []
        place = opened.place()

        def run(query, place=place, moved=moved):
            for batch in place.run(query):
                moved.append(len(batch))
                yield batch

        from dataclasses import replace

        opened.place = lambda place=place, run=run: replace(place, run=run)
        there = served(options.server)
        wall, core, found = timed(lambda o=opened: count(o, engine="pushdown"))
        there = served(options.server) - there
        line(name, "pushdown", f"{wall:.2f}", f"{core:.2f}", f"{there:.2f}",
             f"{sum(moved):,} (V² = {v2:,})", found == wanted)  # fmt: skip


def served(process: int) -> float:
    """Return the processor time of a server's sessions that have ended."""
    if not process:
        return 0.0
    time.sleep(1)  # the last session ends
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[13]) + int(fields[14])) / os.sysconf("SC_CLK_TCK")


def written(options) -> None:
    """Write vectors that are looked up, and such as are sums, to files."""
    from tabweave import UNTIE, OneHot
    from tabweave.engines import transform

    head(f"{options.rows:,} × 20 Parquet, as vectors", "dimensions", "core-s", "MB")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "rows.parquet")
        write(path, options.rows)
        for model in (OneHot(dtype="float32"), UNTIE(n_clusters=8, dtype="float32")):
            model.fit(path)
            for name, vector in (("x.parquet", None), ("x.parquet", "vector"), ("x.arrow", None)):
                target = Path(folder, name)
                core = min(
                    timed(lambda m=model, t=target, v=vector: transform(
                        m, path, t, vector=v, overwrite=True
                    ))[1]
                    for _ in range(options.repeats)
                )  # fmt: skip
                what = f"{type(model).__name__}, {target.suffix}, {vector or 'columns'}"
                size = target.stat().st_size / 1e6
                line(what, len(model.get_feature_names_out()), f"{core:.2f}", f"{size:.1f}")


def parquet(options) -> None:
    """Count all pairs of a Parquet file; DuckDB's distinct values and polars' read beside it."""
    import duckdb

    from tabweave import count

    folder = Path(tempfile.mkdtemp())
    path = folder / "rows.parquet"
    write(path, options.rows)
    names = ", ".join(f"count(DISTINCT c{i})" for i in range(20))
    works = {
        "tabweave.count: all 190 pairs": lambda: count(path),
        "DuckDB: count(distinct) of each": lambda: duckdb.sql(
            f"SELECT {names} FROM '{path}'"
        ).fetchall(),
    }
    if find_spec("polars"):
        import polars

        works["polars: read"] = lambda: polars.read_parquet(path).height
    head(f"{options.rows:,} × 20 Parquet, {path.stat().st_size / 1e6:,.0f} MB", "wall s", "core-s")
    for name, work in works.items():
        wall, core, _ = timed(work)
        line(name, f"{wall:.2f}", f"{core:.2f}")
    shutil.rmtree(folder)


def wide(options) -> None:
    """Count few rows of many columns, or see them refused."""
    code = """
import resource, sys, time
import numpy as np
from tabweave import Counts
n, columns = int(sys.argv[1]), int(sys.argv[2])
rows = np.random.default_rng(0).integers(0, 2, (n, columns)).astype(str)
before = sum(resource.getrusage(resource.RUSAGE_SELF)[:2]); start = time.perf_counter()
try:
    said = f"{Counts.of(rows)}"
except MemoryError as error:
    said = str(error)
used = sum(resource.getrusage(resource.RUSAGE_SELF)[:2]) - before
gigabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
print(f"{time.perf_counter() - start:.1f} | {used:.1f} | {gigabytes:.2f} | {said}")
"""
    head("rows × columns of two values", "wall s", "core-s", "peak GB", "result")
    for n, columns in ((50, 1000), (50, 2000), (50, 10_000)):
        done = subprocess.run(
            [sys.executable, "-c", code, str(n), str(columns)],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        line(f"{n} × {columns:,}", done.stdout.strip())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "part", choices=["first", "arrow", "pushdown", "parquet", "wide", "written"]
    )
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--postgres", default="")
    parser.add_argument("--server", type=int, default=0)
    given = parser.parse_args()
    globals()[given.part](given)
