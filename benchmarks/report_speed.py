"""How long a report takes and how large it is: 50,000 rows, 14 categorical and 6 numeric columns.

Run ``python benchmarks/report_speed.py``. Then flights with dates, tail numbers and an identifier,
50,000 × 23, beside skrub's TableReport and ydata-profiling: processor time of the first call, and
of loading the package before it, and size, each in an interpreter of its own. ``--peers PYTHON``
names one that has the peers, which do not agree with each newest package. The table goes in as a
frame and comes out as a file. The same for what a page must not do: the browser, if there is one,
opens it without network and says what it asked for.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from _report import Report

COMMAND = "python benchmarks/report_speed.py"
SIZES = (2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 30, 60, 150, 400)


def table(n: int, seed: int = 0) -> dict[str, Any]:
    """Return five groups of rows in 14 columns of 2 to 400 values and 6 of numbers, with gaps."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 5, n)
    out: dict[str, Any] = {}
    for j, size in enumerate(SIZES):
        own = rng.integers(0, size, 5)[group]
        codes = np.where(rng.random(n) < 0.5, rng.integers(0, size, n), own)
        cells = np.array([f"value {v}" for v in range(size)], object)[codes]
        cells[rng.random(n) < 0.02 * (j % 4)] = None
        out[f"category {j}"] = cells
    for j in range(6):
        numbers = rng.normal(rng.normal(0, 1.5, 5)[group], 1)
        numbers[rng.random(n) < 0.03 * (j % 3)] = np.nan
        out[f"number {j}"] = np.exp(numbers) if j % 2 else numbers
    return out


def make(folder: Path) -> None:
    """Make the report of the table in a folder, as a new user's first call would."""
    import pandas

    from tabweave.apps.report import report

    frame = pandas.read_parquet(folder / "table.parquet")
    start = time.perf_counter()
    report(frame, folder / "report.html", target="category 0")
    first = time.perf_counter() - start
    start = time.perf_counter()
    report(frame, folder / "report.html", target="category 0")
    print(json.dumps({"first": first, "second": time.perf_counter() - start}))


def flights_table(n: int) -> Any:
    """Return flights with four more columns: an identifier, two moments and a price."""
    from studio_visit import flights

    rng = np.random.default_rng(1)
    out = flights(336_776).sample(n, random_state=0).reset_index(drop=True)
    booked = out["time_hour"].to_numpy() - rng.integers(1, 90 * 24, n).astype("timedelta64[h]")
    paid = booked + rng.integers(0, 60, n).astype("timedelta64[m]")
    names = [f"T{i:07d}" for i in rng.permutation(10 * n)[:n]]
    return out.assign(ticket=names, booked=booked, paid=paid, price=rng.gamma(3, 60, n).round(2))


def peer(which: str, folder: Path) -> None:
    """Make one report of the flights in a folder, and say what it cost."""
    import pandas

    frame = pandas.read_parquet(folder / "flights.parquet")
    path = folder / f"{which}.html"
    name = which.replace("-", "_")
    begun = time.process_time()
    if which == "tabweave":
        from tabweave.apps.report import report as made
    elif which == "skrub":
        from skrub import TableReport as made
    else:
        from ydata_profiling import ProfileReport as made
    start, cpu = time.perf_counter(), time.process_time()
    if which == "tabweave":
        made(frame, path)
    elif which == "skrub":
        made(frame, verbose=0).write_html(path)  # with plots and associations: 23 columns
    else:
        made(frame, progress_bar=False).to_file(path)
    spent = {"cpu": time.process_time() - cpu, "wall": time.perf_counter() - start}
    spent["loading"] = cpu - begun
    versions = f"{sys.modules[name].__version__}, pandas {pandas.__version__}"
    print(json.dumps(spent | {"megabytes": path.stat().st_size / 1e6, "version": versions}))


def whole(spent: dict[str, float]) -> float:
    return spent["cpu"] + spent["loading"]


def beside_peers(folder: Path, peers: str, out: Report) -> None:
    """Compare reports of the same flights."""
    flights_table(50_000).to_parquet(folder / "flights.parquet")
    found = {}
    for which in ("tabweave", "skrub", "ydata-profiling"):
        python = sys.executable if which == "tabweave" else peers
        command = [python, __file__, "--peer", which, str(folder)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=3600, check=True)
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
            last = (str(error.stderr or "").strip().splitlines() or ["more than an hour"])[-1]
            out.line(f"- {which}: not measured ({last[:90]})")
            continue
        found[which] = own = json.loads(done.stdout.splitlines()[-1])
        out.line(
            f"- {which} {own['version']}: {own['cpu']:.1f} s of processor time "
            f"(loading it {own['loading']:.1f} s more), {own['wall']:.1f} s, "
            f"{own['megabytes']:.2f} MB"
        )
    if "tabweave" in found:
        ours = found.pop("tabweave")
        out.at_most("tabweave, seconds of processor time", ours["cpu"], 5)
        for which, most in (("skrub", 3), ("ydata-profiling", 1)):
            if which in found:
                share = whole(ours) / whole(found[which])
                out.at_most(f"tabweave's processor time over {which}'s, with loading", share, most)
        if found:
            least = min(other["megabytes"] for other in found.values())
            out.at_most(
                "tabweave's megabytes over the smallest peer's", ours["megabytes"] / least, 1
            )


def requests(path: Path) -> list[str] | None:
    """Return what a browser asks for while it shows the page, or None if there is no browser."""
    chromium = shutil.which("chromium")
    driver = shutil.which("chromedriver")
    if not (chromium and driver):
        return None
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for switch in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(switch)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    browser = webdriver.Chrome(options=options, service=Service(driver))
    try:
        browser.get(path.as_uri())
        time.sleep(2)
        messages = [json.loads(e["message"])["message"] for e in browser.get_log("performance")]
        sent = [m["params"] for m in messages if m["method"] == "Network.requestWillBeSent"]
        errors = [e["message"] for e in browser.get_log("browser")]
        return [p["request"]["url"] for p in sent if p["request"]["url"] != path.as_uri()] + errors
    finally:
        browser.quit()


def main() -> None:
    import pandas

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peers", metavar="PYTHON", help="an interpreter that has the peers")
    peers = parser.parse_args().peers
    given = " --peers PYTHON" if peers else ""
    out = Report("The report", COMMAND + given)
    out.section("50,000 rows × 20 columns (14 categorical with up to 400 values, 6 numeric)")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pandas.DataFrame(table(50_000)).to_parquet(folder / "table.parquet")
        done = subprocess.run(
            [sys.executable, __file__, "--make", name], capture_output=True, text=True, check=True
        )
        seconds = json.loads(done.stdout.splitlines()[-1])
        size = (folder / "report.html").stat().st_size / 1e6
        asked = requests(folder / "report.html")
    out.at_most("seconds, first call in a new interpreter", seconds["first"], 60)
    out.at_most("seconds, second call", seconds["second"], 60)
    out.at_most("megabytes", size, 5)
    if asked is None:
        out.line("- requests while it is shown: not measured, no browser")
    else:
        out.at_most("requests and console messages while a browser shows it", len(asked), 0)
    out.section("50,000 flights × 23 columns (dates, tail numbers, an identifier, gaps)")
    with tempfile.TemporaryDirectory() as name:
        beside_peers(Path(name), peers or sys.executable, out)
    out.line(
        "\nThe first call loads what is compiled from the cache beside the package, if there is "
        "one. Times are those of a machine that may have had other work: a load average of "
        f"{os.getloadavg()[0]:.0f} on {os.cpu_count()} cores."
    )
    out.finish("report.md")


if __name__ == "__main__":
    if "--make" in sys.argv:
        make(Path(sys.argv[-1]))
    elif "--peer" in sys.argv:
        peer(sys.argv[-2], Path(sys.argv[-1]))
    else:
        main()
