"""One table in many places: files, databases, clusters."""

import os
import pwd
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest


def make_rows(n=3000, seed=0):
    """Text with gaps, text, whole numbers, numbers with gaps, and classes."""
    pa = pytest.importorskip("pyarrow", reason="writes Arrow tables")
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 3, n)
    colors = np.array(["red", "blue", "été", "grün"], dtype=object)
    color = colors[(group + rng.integers(0, 2, n)) % 4]
    color[rng.random(n) < 0.1] = None
    price = np.array([0.5, 2.0, 3.25])[(group * rng.integers(1, 3, n)) % 3].astype(object)
    price[rng.random(n) < 0.05] = None
    return pa.table(
        {
            "color": pa.array(color, pa.string()),
            "size": pa.array([f"s{v}" for v in (group + rng.integers(0, 4, n)) % 5]),
            "grade": pa.array((group * 2 + rng.integers(0, 2, n)).astype(np.int64)),
            "price": pa.array(price, pa.float64()),
            "class": pa.array([f"k{v}" for v in group]),
        }
    )


@pytest.fixture(scope="session")
def rows():
    return make_rows()


@pytest.fixture(scope="session")
def files(rows, tmp_path_factory):
    """The rows as Parquet in two files, CSV plain and packed, JSON lines, and SQLite."""
    import gzip
    import sqlite3

    from pyarrow import csv, feather, parquet

    folder = tmp_path_factory.mktemp("rows")
    parquet.write_table(rows.slice(0, 1000), folder / "part-0.parquet", row_group_size=300)
    parquet.write_table(rows.slice(1000), folder / "part-1.parquet")
    csv.write_csv(rows, folder / "all.csv")
    with open(folder / "all.csv", "rb") as plain, gzip.open(folder / "packed.csv.gz", "wb") as out:
        shutil.copyfileobj(plain, out)
    frame = rows.to_pandas()
    frame.to_json(folder / "all.jsonl", orient="records", lines=True)
    feather.write_feather(rows, folder / "all.arrow")
    connection = sqlite3.connect(folder / "all.db")
    connection.execute(
        "CREATE TABLE shirts (color TEXT, size TEXT, grade INTEGER, price REAL, class TEXT)"
    )
    cells = list(zip(*(column.to_pylist() for column in rows.columns), strict=True))
    connection.executemany("INSERT INTO shirts VALUES (?, ?, ?, ?, ?)", cells)
    connection.commit()
    connection.close()
    return folder


@pytest.fixture(scope="session")
def postgres():
    """The address of a PostgreSQL server of our own, from the system's package."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    programs = found[-1] if found else Path(shutil.which("pg_ctl") or "/none").parent
    if not (programs / "pg_ctl").exists():
        pytest.skip("PostgreSQL is not installed (no pg_ctl)")
    folder = Path(
        tempfile.mkdtemp(prefix="tabweave-postgres-")
    )  # pytest's own are for one user only
    become = {}
    if os.getuid() == 0:  # PostgreSQL refuses to run as root
        try:
            user = pwd.getpwnam("postgres")
        except KeyError:
            pytest.skip("PostgreSQL does not run as root, and there is no user postgres")
        os.chown(folder, user.pw_uid, user.pw_gid)
        become = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]

    def run(*command):
        done = subprocess.run(command, capture_output=True, text=True, cwd=folder, **become)
        assert not done.returncode, done.stderr + done.stdout

    data = str(folder / "data")
    run(
        programs / "initdb", "-D", data, "-U", "tabweave", "-A", "trust", "-E", "UTF8", "--locale=C"
    )
    options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={folder}"
    run(programs / "pg_ctl", "-D", data, "-w", "-o", options, "-l", str(folder / "log"), "start")
    yield f"postgresql://tabweave:secret@127.0.0.1:{port}/postgres"
    run(programs / "pg_ctl", "-D", data, "-m", "immediate", "stop")
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def spark():
    """A Spark session with two threads."""
    sql = pytest.importorskip("pyspark.sql", reason="pyspark is not installed")
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = (
        sql.SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "4")
        .getOrCreate()
    )
    yield session
    session.stop()
