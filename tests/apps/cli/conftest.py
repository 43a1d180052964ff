"""Files to try the command line on, and two ways to run it: here, and as a process of its own."""

import csv
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tabweave.datasets import titanic

# Nothing of the surroundings may show in what is compared.
PLAIN = {"NO_COLOR": "1", "TERM": "dumb", "COLUMNS": "100", "OMP_NUM_THREADS": "1"}


@dataclass
class Done:
    code: int
    out: str
    err: str


def process(*arguments, cwd, stdin=None, **env):
    """Run ``tabweave`` as a shell does."""
    command = [sys.executable, "-m", "tabweave.apps.cli", *map(str, arguments)]
    done = subprocess.run(
        command, cwd=cwd, input=stdin, capture_output=True, timeout=600,
        env=os.environ | PLAIN | env,
    )  # fmt: skip
    return Done(done.returncode, done.stdout.decode(), done.stderr.decode())


def called(*arguments, cwd, stdin=None):
    """Run ``tabweave`` in this process: the same way through the code, without starting one."""
    from tabweave.apps.cli import app

    before = Path.cwd()
    os.chdir(cwd)
    try:
        done = CliRunner(env=PLAIN).invoke(app, [str(a) for a in arguments], input=stdin)
    finally:
        os.chdir(before)
    return Done(done.exit_code, done.stdout, done.stderr)


@pytest.fixture(scope="session")
def tables(tmp_path_factory):
    """A folder with the Titanic in six formats, two halves of it, and a small mixed table."""
    pa = pytest.importorskip("pyarrow", reason="the files are written with pyarrow")
    from pyarrow import csv as pa_csv
    from pyarrow import feather, parquet

    folder = tmp_path_factory.mktemp("tables")
    data = titanic()
    columns = {name: list(cells) for name, cells in data.columns.items()}
    table = pa.table(columns | {"fate": ["lost" if y == "no" else "saved" for y in data.y]})
    pa_csv.write_csv(table, folder / "titanic.csv")
    tabs = pa_csv.WriteOptions(delimiter="\t")
    pa_csv.write_csv(table, folder / "titanic.tsv", tabs)
    parquet.write_table(table, folder / "titanic.parquet")
    feather.write_feather(table, folder / "titanic.arrow", compression="uncompressed")
    rows = table.to_pandas()
    rows.to_json(folder / "titanic.json", orient="records")
    rows.to_json(folder / "titanic.jsonl", orient="records", lines=True)
    rows.iloc[::2].to_csv(folder / "even.csv", index=False)
    aboard = rows.iloc[1::2].assign(sex=lambda r: r["sex"].where(r.index % 3 > 0, "female"))
    aboard.to_csv(folder / "odd.csv", index=False)
    write_shop(folder / "shop.csv")
    return folder


def write_shop(path):
    """Write 24 rows of a key, categories, a number and a missing cell."""
    kinds = [("tea", "hot", "leaf"), ("coffee", "hot", "bean"), ("juice", "cold", "fruit")]
    with path.open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow(["sku", "drink", "served", "made_of", "price"])
        for i in range(24):
            drink, served, made_of = kinds[i % 3]
            served = "cold" if i % 7 == 0 else served
            price = "" if i == 5 else 1.5 + (i % 3) + (i % 4) / 4
            out.writerow([f"sku{i:02d}", drink, served, made_of, price])


@pytest.fixture
def folder(tables, tmp_path):
    """An own folder with the tables in it, so that what a test leaves behind can be seen."""
    for path in tables.iterdir():
        (tmp_path / path.name).symlink_to(path)
    return tmp_path
