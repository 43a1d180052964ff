"""A visit to the studio with a year of flights, in a real browser, and how long each step takes.

Run ``python benchmarks/studio_visit.py``; it needs Chromium and chromedriver. The table has the
shape of the flights of 2013 that people try: 336,776 rows, 19 columns, dates, tail numbers, numbers
with gaps. It is given on the command line; then find, brushes, sorting, neighbours, a second visit.
With ``--marks``, a map of a million marks alone: how many frames a second while it is dragged and
zoomed, beside drawing all marks anew. With ``--rows N``, a table of so many rows.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from _report import Report

ROWS = 336_776
COMMAND = "python benchmarks/studio_visit.py"
CARRIERS = "UA B6 EV DL AA MQ US 9E WN VX FL AS F9 YV HA OO".split()
SHARES = [58.7, 54.6, 54.2, 48.1, 32.7, 26.4, 20.5, 18.5, 12.3, 5.2, 3.3, 0.7, 0.7, 0.6, 0.3, 0.03]
TIMES = """
const done = arguments[arguments.length - 1];
const rest = (ms) => new Promise((wake) => setTimeout(wake, ms));
const until = async (is) => { while (!is()) await new Promise(requestAnimationFrame); };
const out = { keys: [], brushes: [], pages: [] };
(async () => {
  for (const text of ["S", "SE", "SEA", "N1", "N14", "N142", "7", "77", "777"]) {
    const start = performance.now();
    await studio.ofTable("find", { text, limit: 12, filters: [] });
    out.keys.push(performance.now() - start);
  }
  const { charts } = await studio.ofTable("charts", { filters: [] });
  const { edges } = charts.find((c) => c.column === "dep_delay");
  const [map] = studio.maps;
  for (let i = 2; i < 12; i++) {
    const before = map.layer;
    const start = performance.now();
    studio.filterBy({ column: "dep_delay", min: edges[1], below: edges[i] }, { history: false });
    await until(() => map.layer !== before && map.passing);
    out.brushes.push(performance.now() - start);
    await rest(300);
  }
  studio.set({ filters: [] });
  await rest(500);
  for (let page = 0; page < 6; page++) {
    const start = performance.now();
    const sort = [{ column: "arr_delay", descending: true }];
    await studio.ofTable("rows", { filters: [], sort, offset: 40000 * page, limit: 100 });
    out.pages.push(performance.now() - start);
  }
  done(out);
})();
"""
MARKS = """
const done = arguments[arguments.length - 1];
const n = arguments[0];
const flat = new Float32Array(2 * n);
const clusters = new Uint8Array(n);
const normal = () => Math.random() + Math.random() + Math.random() + Math.random() - 2;
for (let i = 0; i < n; i++) {
  clusters[i] = i % 8;
  flat[2 * i] = 2 * (clusters[i] % 3) * Math.cos(clusters[i]) + normal();
  flat[2 * i + 1] = 2 * Math.sin(clusters[i]) + 0.7 * normal();
}
const groups = Array.from({ length: 8 }, () => ({ values: [] }));
const rows = Int32Array.from({ length: n }, (_, i) => i);
const start = performance.now();
const map = new tabweave.Map({
  map: { rows, copies: new Uint32Array(n).fill(1), clusters, columns: [], of: n,
    layouts: [{ name: "drawn", flat }] },
  clusters: { groups }, target: null,
}, { height: () => 560 });
document.getElementById("main").replaceChildren(map.stage, map.legend, map.says);
const out = {};
const frames = (name, step) => new Promise((ready) => {
  const begin = performance.now();
  let k = 0;
  const next = () => {
    step(k++);
    if (performance.now() - begin < 4000) requestAnimationFrame(next);
    else { out[name] = k / ((performance.now() - begin) / 1000); ready(); }
  };
  requestAnimationFrame(next);
});
requestAnimationFrame(() => requestAnimationFrame(async () => {
  out.built = (performance.now() - start) / 1000;
  const anew = performance.now();
  for (let i = 0; i < 5; i++) { map.layer = null; map.paintMarks(); }
  out.anew = (performance.now() - anew) / 5;
  await frames("dragged", (k) => map.pan(Math.sin(k / 20) * 6, Math.cos(k / 20) * 6));
  await frames("zoomed", (k) => map.zoom(k % 60 < 30 ? 1.03 : 1 / 1.03, 400, 200));
  done(out);
}));
"""


def flights(n: int = ROWS, seed: int = 0) -> Any:
    """Return a year of flights as drawn rows."""
    import pandas

    rng = np.random.default_rng(seed)
    carrier = rng.choice(16, n, p=np.array(SHARES) / sum(SHARES))
    dest = (carrier * 7 + (rng.pareto(1.2, n) * 4).astype(int)) % 105
    plane = carrier * 250 + (rng.beta(1, 1.5, n) * 250).astype(int)
    date = np.datetime64("2013-01-01") + np.sort(rng.integers(0, 365, n)).astype("timedelta64[D]")
    hour = np.clip((5 + rng.beta(1.5, 1.8, n) * 18).astype(int), 5, 23)
    minute = rng.choice([0, 5, 10, 15, 20, 25, 29, 30, 35, 40, 45, 50, 55, 59], n)
    distance = rng.uniform(80, 2600, 105)[dest].round()
    late = np.round(rng.exponential(22, n) - 10 + 1.5 * (hour - 12) * (rng.random(n) < 0.5))
    air = np.round(distance / 7.2 + 18 + rng.normal(0, 9, n))
    cancelled = rng.random(n) < 0.0245
    leaves = hour * 60 + minute
    tails = np.array([f"N{100 + p}{'ABCDEFGHJK'[p % 10]}{'UWXY'[p % 4]}" for p in range(4000)])
    tail = tails[plane].astype(object)
    tail[rng.random(n) < 0.0075] = None
    places = np.array([f"{chr(65 + i % 26)}{chr(65 + i // 26)}{chr(65 + i * 7 % 26)}"
                       for i in range(105)], object)  # fmt: skip
    month = (date.astype("datetime64[M]") - np.datetime64("2013-01", "M")).astype(int) + 1
    return pandas.DataFrame({
        "year": np.full(n, 2013), "month": month,
        "day": (date - date.astype("datetime64[M]")).astype(int) + 1,
        "dep_time": _with_gaps(_clock(leaves + late), cancelled),
        "sched_dep_time": hour * 100 + minute, "dep_delay": _with_gaps(late, cancelled),
        "arr_time": _with_gaps(_clock(leaves + late + air + 20), cancelled),
        "sched_arr_time": _clock(leaves + air + 15),
        "arr_delay": _with_gaps(np.round(late - 6 + rng.normal(0, 15, n)), cancelled),
        "carrier": np.array(CARRIERS, object)[carrier],
        "flight": carrier * 400 + rng.integers(1, 400, n), "tailnum": tail,
        "origin": np.array(["EWR", "JFK", "LGA"], object)[(carrier + dest % 2) % 3],
        "dest": places[dest], "air_time": _with_gaps(air, cancelled), "distance": distance,
        "hour": hour, "minute": minute,
        "time_hour": date.astype("datetime64[h]") + hour.astype("timedelta64[h]"),
    })  # fmt: skip


def _clock(minutes: np.ndarray) -> np.ndarray:
    return (minutes // 60 % 24) * 100 + minutes % 60


def _with_gaps(values: np.ndarray, gaps: np.ndarray) -> np.ndarray:
    return np.where(gaps, np.nan, values)


def browser(folder: Path) -> Any:
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = str(shutil.which("chromium"))
    for switch in (
        "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
        "--window-size=1280,720",
    ):  # fmt: skip
        options.add_argument(switch)
    driver = webdriver.Chrome(options=options, service=Service(str(shutil.which("chromedriver"))))
    driver.set_script_timeout(600)
    where = {"behavior": "allow", "downloadPath": str(folder)}
    driver.execute_cdp_cmd("Browser.setDownloadBehavior", where)
    return driver


def waited(question: Callable[[], Any], most: float = 900) -> float:
    """Return the seconds until the answer is true."""
    start = time.perf_counter()
    while not question():
        if time.perf_counter() - start > most:
            raise TimeoutError
        time.sleep(0.05)
    return time.perf_counter() - start


def visit(driver: Any, command: list[str], out: Report, n: int) -> None:
    """Open the table, and time what a person waits for; then open it once more."""
    start = time.perf_counter()

    def asks(script: str) -> Any:
        return lambda: driver.execute_script(f"return {script}")

    def said(what: str) -> None:
        clock, busy = time.perf_counter() - start, processor_seconds(server.pid)
        out.line(f"- {what}: {clock:.1f} s; {busy:.1f} s of a processor in the studio's processes")

    with served(command) as (server, url):
        said("the command prints its address")
        driver.get(url)
        said("the page is there")
        waited(asks("studio.state.table !== null"))
        said("rows in the table, charts beside the map")
        waited(asks("studio.shown.length > 0"))
        said("first picture")
        busy = processor_seconds(server.pid)
        bar = 5 if n < 500_000 else 20
        out.at_most("seconds of a processor from the command to the first picture", busy, bar)
        waited(asks("studio.state.job !== null"))
        said("all rows learned from and on the map")
        drawn = driver.execute_script("return studio.maps[0].xs.length")
        out.line(f"- marks on the map: {drawn:,}")
        waited(asks("document.querySelectorAll('#grid .line[data-row]').length > 3"))
        busy = processor_seconds(server.pid)
        times = driver.execute_async_script(TIMES)
        busy = processor_seconds(server.pid) - busy
        out.line(f"- nine keys, ten brushes, six pages: {busy:.1f} s of a processor in the studio")
        for name, key, bar in (
            ("milliseconds a key of find, fastest of nine", "keys", 50),
            ("milliseconds from a brush to the map drawn anew, fastest of ten", "brushes", 200),
        ):
            out.at_most(name, min(times[key]), bar)
            out.line(f"- median of these: {np.median(times[key]):.0f}")
        page = float(np.median(times["pages"]))
        out.line(f"- milliseconds of a page of 100 sorted rows, median of six: {page:.0f}")
        waited(asks("studio.layoutChooser.querySelectorAll('option').length > 1"))
    start = time.perf_counter()
    with served(command) as (server, url):
        driver.get(url)
        waited(asks("studio.state.job !== null"))
        said("the second time, from the command to all of it")


def processor_seconds(pid: int) -> float:
    """What a process and those that it started have used of processors so far."""
    parents, used = {}, {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            fields = path.read_text().rpartition(")")[2].split()
            parents[int(path.parent.name)] = int(fields[1])
            # with children that have ended
            used[int(path.parent.name)] = sum(map(int, fields[11:15]))
    tree, before = {pid}, 0
    while len(tree) > before:
        before = len(tree)
        tree |= {child for child, parent in parents.items() if parent in tree}
    return sum(used.get(each, 0) for each in tree) / os.sysconf("SC_CLK_TCK")


@contextmanager
def served(command: list[str]) -> Iterator[tuple[Any, str]]:
    """A studio as the command line starts it, and its address."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            yield server, server.stdout.readline().split()[-1]
        finally:
            server.terminate()


def marks(n: int = 1_000_000) -> None:
    """Measure how a map of very many marks follows the mouse."""
    from tabweave.apps.report import report

    out = Report("A map of a million marks", f"{COMMAND} --marks")
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "marks.html"
        report({"a": list("xyz") * 20}, path)
        driver = browser(Path(name))
        try:
            driver.get(path.as_uri())
            times = driver.execute_async_script(MARKS, n)
        finally:
            driver.quit()
    out.section(
        f"{n:,} marks in eight groups, 1280 × 720, without a graphics card and without WebGL"
    )
    out.line(f"- built and drawn for the first time: {times['built']:.1f} s")
    out.line(f"- milliseconds to draw all marks anew: {times['anew']:.0f}")
    for name in ("dragged", "zoomed"):
        out.line(f"- frames a second while it is {name}: {times[name]:.0f}")
        out.at_most(f"milliseconds a frame while it is {name}", 1000 / times[name], 1000 / 30)
    out.line(f"\n{_other_work()}")
    out.finish("studio-marks.md")


def main(n: int) -> None:
    out = Report("A visit to the studio", COMMAND + (f" --rows {n}" if n != ROWS else ""))
    out.section(f"{n:,} flights × 19 columns, a Parquet file given on the command line")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        flights(n).to_parquet(folder / "flights.parquet", index=False)
        os.environ["TABWEAVE_CACHE"] = str(folder / "cache")
        size = (folder / "flights.parquet").stat().st_size / 1e6
        out.line(f"- the file: {size:.0f} MB")
        command = [sys.executable, "-m", "tabweave.apps.cli", "studio"]
        driver = browser(folder)
        try:
            visit(driver, [*command, str(folder / "flights.parquet"), "--no-browser"], out, n)
        finally:
            driver.quit()
    out.line(f"\n{_other_work()}")
    if n == ROWS:
        out.line("\n" + (Path(__file__).parent / "studio_peers.md").read_text("utf-8").rstrip())
    out.finish("studio.md" if n == ROWS else "studio-million.md")


def _other_work() -> str:
    load = os.getloadavg()[0]
    return f"On a machine of {os.cpu_count()} cores with a load average of {load:.0f} at the end."


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--marks", action="store_true", help="only a map of a million marks")
    parser.add_argument("--rows", type=int, default=ROWS, help="rows of the table")
    options = parser.parse_args()
    marks() if options.marks else main(options.rows)
