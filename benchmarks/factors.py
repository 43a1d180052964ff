"""MCA and FAMD beside prince: equality on real and drawn tables, seconds and memory at size.

    python benchmarks/factors.py [--rows 400000] [--columns 20] [--no-large] [--factominer folder]
    python benchmarks/factors.py --parquet 50000000 [--folder somewhere] [--kinds FAMD]

Each timed run has a process of its own; peak memory is that of the process above what it had before
fitting. The table is drawn: columns of 8 values that follow 6 hidden classes. ``--parquet`` writes
files (a million rows, again and again, each time beginning elsewhere), fits them and counts them,
and deletes them; peak memory is then all that the process ever had. ``--factominer`` is a folder
with tea.rda and wine.rda of that R package (pyreadr reads them).
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd


def drawn(n: int, columns: int, numbers: int = 0, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    z = rng.integers(6, size=n)
    frame = {}
    for j in range(columns):
        own = rng.integers(8, size=6)[z]
        code = np.where(rng.random(n) < 0.5, own, rng.integers(8, size=n))
        frame[f"c{j}"] = pd.Categorical.from_codes(code, [f"v{i}" for i in range(8)])
    for j in range(numbers):
        frame[f"x{j}"] = z * rng.normal() + rng.normal(size=n)
    out = pd.DataFrame(frame)
    return out.astype({c: str for c in out if c.startswith("c")})


def apart(a: np.ndarray, b: np.ndarray) -> float:
    """Return the largest difference of coordinates, axes pointing either way."""
    return float(np.abs(np.abs(np.asarray(a)) - np.abs(np.asarray(b))).max())


def factominer(folder: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return FactoMineR's tea and wine, categories as text."""
    import pyreadr

    found = []
    for name in ("tea", "wine"):
        frame = pyreadr.read_r(str(Path(folder, f"{name}.rda")))[name]
        kinds = {c: float if frame[c].dtype.kind in "if" else str for c in frame}
        found.append(frame.astype(kinds).reset_index(drop=True))
    return found[0], found[1]


def famd(prince, FAMD, frame: pd.DataFrame) -> tuple[float, float]:
    theirs = prince.FAMD(n_components=3, engine="scipy").fit(frame)
    ours = FAMD(3).fit(frame)
    values = np.abs(theirs.eigenvalues_ - ours.eigenvalues_).max()
    return values, apart(theirs.row_coordinates(frame).to_numpy(), ours.transform(frame))


def equality(folder: str | None) -> None:
    import prince

    from tabweave import CA, FAMD, MCA

    poison = prince.datasets.load_poison()
    poison.columns = [c[-1] for c in poison.columns]
    active = poison.iloc[:, 4:].astype(str)
    rows = [("poison (FactoMineR), MCA of 11 columns", *mca(prince, MCA, active))]
    print("FactoMineR's poison: eigenvalues", MCA(11).fit(active).eigenvalues_.round(8).tolist())
    for name, frame in (("drawn 2,000 × 12, MCA", drawn(2000, 12)),):
        rows.append((name, *mca(prince, MCA, frame)))
    rows.append(("drawn 2,000 × 11, FAMD", *famd(prince, FAMD, drawn(2000, 6, 5))))
    if folder:
        tea, wine = factominer(folder)
        rows.append(
            ("tea (FactoMineR), MCA of columns 1 to 18", *mca(prince, MCA, tea.iloc[:, :18]))
        )
        some = tea[["Tea", "How", "how", "sugar", "where", "lunch"]]
        rows.append(("tea, MCA of six columns", *mca(prince, MCA, some)))
        rows.append(("wine (FactoMineR), FAMD of all 31 columns", *famd(prince, FAMD, wine)))
        some = wine.iloc[:, [0, 1, 15, 21, 28, 27, 29, 30]]
        rows.append(("wine, FAMD of eight columns", *famd(prince, FAMD, some)))
        for name, model in (("tea", MCA(5).fit(tea.iloc[:, :18])), ("wine", FAMD(5).fit(some))):
            share = (100 * model.explained_inertia_ratio_).round(3).tolist()
            print(f"{name}: eigenvalues {model.eigenvalues_.round(5).tolist()}, % {share}")
    table = pd.crosstab(poison["Sick"], poison["Age"])
    theirs = prince.CA(1, engine="scipy").fit(table)
    ours = CA(1).fit(table)
    values = np.abs(theirs.eigenvalues_ - ours.eigenvalues_).max()
    coordinates = apart(theirs.row_coordinates(table).to_numpy(), ours.transform(table))
    rows.append(("poison, CA of Sick × Age", values, coordinates))
    print("\n| table | eigenvalues, largest difference | row coordinates |\n|---|---|---|")
    for name, values, coordinates in rows:
        print(f"| {name} | {values:.1e} | {coordinates:.1e} |")


def mca(prince, MCA, frame: pd.DataFrame) -> tuple[float, float]:
    theirs = prince.MCA(3, engine="scipy").fit(frame)
    ours = MCA(3).fit(frame)
    values = np.abs(theirs.eigenvalues_ - ours.eigenvalues_).max()
    every = sum(frame[c].nunique() - 1 for c in frame)  # prince's shares are of those it computes
    for correction in ("benzecri", "greenacre"):
        peer = prince.MCA(every, engine="scipy", correction=correction).fit(frame)
        own = MCA(3, correction=correction).fit(frame)
        values = max(values, np.abs(peer.eigenvalues_[:3] - own.corrected_eigenvalues_).max())
        share = np.asarray(peer.percentage_of_variance_)[:3] / 100
        values = max(values, np.abs(share - own.explained_inertia_ratio_).max())
    columns = apart(theirs.column_coordinates(frame).to_numpy(), ours.column_coordinates())
    return values, max(
        columns, apart(theirs.row_coordinates(frame).to_numpy(), ours.transform(frame))
    )


def one(what: str, rows: int, columns: int) -> None:
    """Time one fit, in this process."""
    kind, who = what.split("-")
    frame = drawn(rows, columns) if kind == "MCA" else drawn(rows, columns // 2, columns // 2)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    if who == "prince":
        import prince

        model = getattr(prince, kind)(n_components=2)
    else:
        import tabweave

        model = getattr(tabweave, kind)(2)
        getattr(tabweave, kind)(2).fit(frame)  # numba and what it compiled are loaded before
    start, used = time.perf_counter(), time.process_time()
    model.fit(frame)
    seconds, used = time.perf_counter() - start, time.process_time() - used
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps({"seconds": seconds, "cpu": used, "gigabytes": (peak - before) / 2**20}))


def write(path: Path, n: int, columns: int, numbers: int) -> None:
    """Write a drawn table as Parquet, a million rows at a time; numbers have two decimals."""
    import pyarrow as pa
    from pyarrow.parquet import ParquetWriter

    size = min(n, 1_000_000)
    frame = drawn(size, columns, numbers).round(2)
    names = [c for c in frame if c.startswith("c")]
    frame[names] = frame[names].astype("category")
    table = pa.Table.from_pandas(frame, preserve_index=False)
    with ParquetWriter(path, table.schema) as file:
        for i, start in enumerate(range(0, n, size)):
            at = i * 7919 % size
            part = pa.concat_tables([table.slice(at), table.slice(0, at)])
            file.write_table(part.slice(0, min(size, n - start)))


def one_file(what: str, path: str) -> None:
    """Count or fit a file, in this process; what either needs is imported before."""
    import tabweave

    kind, who = what.split("-")
    count, model = tabweave.count, getattr(tabweave, kind)(2)
    start, used = time.perf_counter(), time.process_time()
    if who == "count":
        found = count(path).n
    else:
        found = model.fit(path).eigenvalues_.tolist()
    seconds, used = time.perf_counter() - start, time.process_time() - used
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(json.dumps({"seconds": seconds, "cpu": used, "gigabytes": peak, "found": found}))


def files(rows: int, columns: int, folder: str, kinds: list[str]) -> None:
    """Print what fits of Parquet files take beside counting them."""
    print(f"\n| {rows:,} × {columns} in Parquet | seconds | of processors | peak GB |")
    print("|---|---|---|---|", flush=True)
    for kind in kinds:
        path = Path(folder, f"{kind}.parquet")
        categories = columns if kind == "MCA" else columns // 2
        write(path, rows, categories, columns - categories)
        both: dict[str, dict] = {}
        for who in ("count", "fit"):
            command = [sys.executable, __file__, "--one", f"{kind}-{who}", "--file", str(path)]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            found = both[who] = json.loads(done.stdout.splitlines()[-1])
            name = f"counting what {kind} reads" if who == "count" else kind
            cells = f"{found['seconds']:.1f} | {found['cpu']:.1f} | {found['gigabytes']:.2f}"
            print(f"| {name} | {cells} |", flush=True)
        path.unlink()
        ratio = [both["fit"][k] / both["count"][k] for k in ("seconds", "cpu")]
        print(f"| {kind} over counting | {ratio[0]:.2f} × | {ratio[1]:.2f} × | |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=400_000)
    parser.add_argument("--columns", type=int, default=20)
    parser.add_argument("--one")
    parser.add_argument("--file", help="what --one reads")
    parser.add_argument("--parquet", type=int, help="only fit files of so many rows")
    parser.add_argument("--folder", default=tempfile.gettempdir())
    parser.add_argument("--factominer", help="a folder with tea.rda and wine.rda")
    parser.add_argument("--kinds", nargs="*", default=["MCA", "FAMD"], help="what is timed")
    parser.add_argument("--no-large", action="store_true")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    if given.parquet:
        files(given.parquet, given.columns, given.folder, given.kinds)
        return
    if given.file:
        one_file(given.one, given.file)
        return
    if given.one:
        one(given.one, given.rows, given.columns)
        return
    equality(given.factominer)
    if given.no_large:
        return
    print(f"\n| fit of {given.rows:,} × {given.columns} | seconds | of processors | peak GB |")
    print("|---|---|---|---|", flush=True)
    for kind in given.kinds:
        found = {}
        for who in ("tabweave", "prince"):
            command = [sys.executable, __file__, "--one", f"{kind}-{who}"]
            command += ["--rows", str(given.rows), "--columns", str(given.columns)]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                print(f"| {kind}, {who} | failed: {done.stderr.strip()[-80:]} | |", flush=True)
                continue
            found[who] = json.loads(done.stdout.splitlines()[-1])
            seconds, used, memory = found[who].values()
            print(f"| {kind}, {who} | {seconds:.2f} | {used:.2f} | {memory:.2f} |", flush=True)
        if len(found) == 2:
            ratio = [found["prince"][k] / found["tabweave"][k] for k in ("seconds", "cpu")]
            print(f"| prince over tabweave | {ratio[0]:.0f} × | {ratio[1]:.0f} × | |", flush=True)


if __name__ == "__main__":
    main()
