"""A year of flights as people have it: 336,776 rows, 19 columns with dates, ids, codes and gaps.

Usage: python benchmarks/flights.py [--rows N] [--no-report]
Goes on inside the environment of the peers, unless skrub is there. The table is drawn, in the shape
of nycflights13. Every measurement is a process of its own, so that memory is its own, too. Ratios
are of processor time: the machine may have other work. Frames are embedded three times, and the
best counts, for the peer, too.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd

from _report import Report
from peers import enter_environment

ROWS = 336_776
STEPS = ("TableVectorizer", "Weave", "Weave, CSV", "Weave, Parquet")


def flights(n: int = ROWS, seed: int = 0) -> pd.DataFrame:
    """Draw flights: routes belong to carriers, tail numbers to carriers, delays to hours."""
    rng = np.random.default_rng(seed)
    carriers = np.array("9E AA AS B6 DL EV F9 FL HA MQ OO UA US VX WN YV".split())
    share = rng.dirichlet(np.full(16, 0.7))
    carrier = rng.choice(16, n, p=share)
    tails = np.array([f"N{i:03}{carriers[i % 16]}" for i in range(4043)])
    tail = tails[(carrier + 16 * np.minimum(rng.geometric(0.008, n), 250)) % 4043]
    places = np.array([a + b + "X" for a in "ABCDEFGHIJK" for b in "LMNOPQRSTU"])[:105]
    destination = places[(7 * carrier + np.minimum(rng.geometric(0.12, n), 30)) % 105]
    day = np.sort(rng.integers(0, 365, n))
    hour = np.clip(rng.normal(13, 4.5, n), 5, 23).astype(int)
    minute = 5 * rng.integers(0, 12, n)
    date = pd.Timestamp("2013-01-01") + pd.to_timedelta(day, "D")
    late = rng.exponential(6 + 1.4 * (hour - 5), n) - 10
    cancelled = rng.random(n) < 0.025
    miles = 100 + 25 * (np.unique(destination, return_inverse=True)[1] % 97)
    minutes = miles / 7.5 + rng.normal(20, 6, n)
    frame = pd.DataFrame(
        {
            "year": 2013,
            "month": date.month,
            "day": date.day,
            "dep_time": 100.0 * hour + minute,
            "sched_dep_time": 100 * hour + minute,
            "dep_delay": np.round(late),
            "arr_time": 100.0 * ((hour + 2) % 24) + minute,
            "sched_arr_time": 100 * ((hour + 2) % 24) + minute,
            "arr_delay": np.round(late + rng.normal(0, 12, n)),
            "carrier": carriers[carrier],
            "flight": 100 * carrier + rng.integers(1, 90, n),
            "tailnum": np.where(rng.random(n) < 0.007, None, tail),
            "origin": np.array(["EWR", "JFK", "LGA"])[(carrier + rng.integers(0, 2, n)) % 3],
            "dest": destination,
            "air_time": np.round(minutes),
            "distance": miles,
            "hour": hour,
            "minute": minute,
            "time_hour": date + pd.to_timedelta(hour, "h"),
        }
    )
    frame.loc[cancelled, ["dep_time", "dep_delay", "arr_time", "arr_delay", "air_time"]] = np.nan
    return frame


MEASURE = """
import json, resource, sys, time
import numpy as np, pandas as pd
step, folder = sys.argv[1:]
def ready(rows):
    return rows
if step == "TableVectorizer":
    from skrub import TableVectorizer as Model
else:
    from tabweave import Weave as Model
few = pd.read_parquet(f"{folder}/few.parquet")
Model().fit_transform(few)                      # imported and compiled
out = {}
if step in ("TableVectorizer", "Weave"):
    rows = pd.read_parquet(f"{folder}/flights.parquet")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    out["seconds"] = out["cpu"] = np.inf
    for _ in range(3):                          # memory is touched for the first time in the first
        start, cpu = time.perf_counter(), time.process_time()
        vectors = Model().fit_transform(rows)
        out["seconds"] = min(out["seconds"], time.perf_counter() - start)
        out["cpu"] = min(out["cpu"], time.process_time() - cpu)
        out["shape"] = list(vectors.shape)
        del vectors
else:
    from tabweave.engines import transform
    path = f"{folder}/flights." + step.rpartition(" ")[2].lower()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start, cpu = time.perf_counter(), time.process_time()
    model = Model().fit(path)
    transform(model, path, f"{folder}/vectors.parquet", overwrite=True)
    out["shape"] = [None, len(model.get_feature_names_out())]
    out["seconds"], out["cpu"] = time.perf_counter() - start, time.process_time() - cpu
out["peak"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
out["before"] = before / 2**20
print(json.dumps(out))
"""


def measured(step: str, folder: str) -> dict:
    """Return seconds and gigabytes of a step, in a process of its own."""
    command = [sys.executable, "-W", "ignore", "-c", MEASURE, step, folder]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        return {"error": done.stderr.strip().splitlines()[-1]}
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--no-report", action="store_true")
    options = parser.parse_args()
    if find_spec("skrub") is None:
        enter_environment()
    report = Report("A year of flights", "python benchmarks/flights.py")
    frame = flights(options.rows)
    with tempfile.TemporaryDirectory() as folder:
        frame.to_parquet(f"{folder}/flights.parquet", index=False)
        frame.to_csv(f"{folder}/flights.csv", index=False)
        frame[:60_000].to_parquet(f"{folder}/few.parquet", index=False)
        size = Path(folder, "flights.csv").stat().st_size / 2**20
        report.section(f"{len(frame):,} × {frame.shape[1]}, {size:.0f} MB as CSV")
        report.line("| | seconds | of processor | peak GB | dimensions |\n|---|---|---|---|---|")
        found = {}
        for step in STEPS:
            found[step] = one = measured(step, folder)
            shown = one.get("error") or (
                f"{one['seconds']:.1f} | {one['cpu']:.1f} | {one['peak']:.2f} | {one['shape'][1]}"
            )
            report.line(f"| {step} | {shown} |")
        report.line("\nFrames were embedded three times; the best counts, for the peer, too.\n")
        properties(report, frame)
    both = [found[step].get("cpu", float("nan")) for step in ("TableVectorizer", "Weave")]
    report.ratio("Weave against TableVectorizer, processor time", *both, 3)
    same = len({one["shape"][1] for step, one in found.items() if step != STEPS[0]}) == 1
    report.line(f"- the same dimensions from frame, CSV and Parquet: {'yes' if same else 'NO'}")
    for step in STEPS[1:]:
        report.at_most(f"{step}, peak GB", found[step].get("peak", float("nan")), 1.5)
    report.finish(None if options.no_report else "flights.md")


def properties(report: Report, frame: pd.DataFrame) -> None:
    """State what the vectors keep: no two tail numbers coincide, times come round."""
    from tabweave import Weave

    some = frame.sample(20_000, random_state=0)
    model = Weave().fit(some)
    tails = model.tables_.only(["tailnum"]).tables[0][:-1]
    distinct = len(np.unique(np.round(tails, 9), axis=0))
    report.line(f"\n- tail numbers of 20,000 rows: {len(tails):,}, distinct vectors: {distinct:,}")
    day = dict(some.iloc[0])
    apart = {}
    for text in ("2013-06-01 23:00", "2013-06-02 00:00", "2013-06-02 11:00"):
        other = day | {"time_hour": pd.Timestamp(text)}
        apart[text] = model.explain(day | {"time_hour": pd.Timestamp("2013-06-01 23:00")}, other)
    near, far = (apart[t]["time_hour"] for t in ("2013-06-02 00:00", "2013-06-02 11:00"))
    report.line(f"- from 23:00 to midnight {near:.3f}, to 11:00 of the next day {far:.3f}")
    report.line("- what was dropped: " + (str(getattr(model, "schema_", "")) and dropped(model)))


def dropped(model: object) -> str:
    """Return the columns that were dropped."""
    columns = getattr(model.schema_, "dropped", ())
    return ", ".join(f"{c.name} ({c.why})" for c in columns) or "nothing"


if __name__ == "__main__":
    main()
