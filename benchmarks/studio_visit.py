"""A visit to the studio with a year of flights, in a real browser, and how long each step takes.

Run ``python benchmarks/studio_visit.py``; it needs Chromium and chromedriver. The table has the
shape of the flights of 2013 that people try: 336,776 rows, 19 columns, dates, tail numbers, numbers
with gaps. It is dropped on the page; then map, lasso, why, a column less, and the vectors. With
``--marks``, a page with 100,000 marks alone: how many frames a second while they are dragged,
beside drawing all marks anew for each frame, as was done before.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from _report import Report

COMMAND = "python benchmarks/studio_visit.py"
CARRIERS = "UA B6 EV DL AA MQ US 9E WN VX FL AS F9 YV HA OO".split()
SHARES = [58.7, 54.6, 54.2, 48.1, 32.7, 26.4, 20.5, 18.5, 12.3, 5.2, 3.3, 0.7, 0.7, 0.6, 0.3, 0.03]
FRAMES = """
const done = arguments[arguments.length - 1];
const { map } = document.querySelector('.map');
const start = performance.now();
let [frames, painted] = [0, 0];
const real = map.paintMarks.bind(map);
map.paintMarks = () => { painted++; real(); };
const step = () => {
  frames++;
  map.pan(Math.sin(frames / 9) * 6, Math.cos(frames / 7) * 4);
  if (performance.now() - start < 4000) requestAnimationFrame(step);
  else done([map.m.rows.length, painted / ((performance.now() - start) / 1000)]);
};
requestAnimationFrame(step);
"""


def flights(n: int = 336_776, seed: int = 0) -> Any:
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


def visit(driver: Any, url: str, table: Path, out: Report) -> None:
    driver.get(url)
    waited(lambda: driver.execute_script("return !!document.querySelector('#files li')"))
    time.sleep(15)  # as long as a person looks for a file: the next process loads meanwhile

    def said(what: str) -> Any:
        return driver.execute_script(f"return document.querySelector('{what}').textContent")

    def steps() -> float:
        """Seconds from the end of reading to the first picture, by the page's own clock."""
        return driver.execute_script("return (window.pictured - window.read) / 1000")

    driver.execute_script(
        "const ask = studio.json; studio.json = async (path, ...more) => {"
        " const found = await ask(path, ...more);"
        " if (found.step && !['reading', 'starting'].includes(found.step))"
        " window.read ??= performance.now(); return found; };"
        "const show = studio.show; studio.show = (...given) => { show(...given);"
        " requestAnimationFrame(() => { window.pictured ??= performance.now(); }); };"
    )
    start = time.perf_counter()
    driver.find_element("id", "file").send_keys(str(table))
    waited(lambda: "columns" in said("#lead"))
    out.line(f"- uploaded, checked, first rows shown: {time.perf_counter() - start:.1f} s")
    waited(lambda: driver.execute_script("return window.pictured"))
    out.line(f"- first picture on the page: {time.perf_counter() - start:.1f} s after the drop")
    out.at_most("seconds from the file being read to the first picture", steps(), 2)
    waited(lambda: said("#status").startswith("Ready"))
    out.line(f"- all rows learned from and on the map: {time.perf_counter() - start:.1f} s")
    marks, rate = driver.execute_async_script(FRAMES)
    out.line(f"- marks on the map: {marks:,}")
    out.line(f"- frames a second while these are dragged: {rate:.0f}")
    out.at_most("milliseconds a frame", 1000 / rate, 1000 / 30)
    start = time.perf_counter()
    driver.execute_script(
        "const { map } = document.querySelector('.map'); map.fit(false);"
        "map.select(map.inside([[60, 20], [map.width / 2, 20], [map.width / 2, map.height - 20],"
        " [60, map.height - 20]]))"
    )
    waited(lambda: "selected" in said("#chosen"))
    out.line(f"- lasso, and what the rows in it share: {time.perf_counter() - start:.1f} s")
    start = time.perf_counter()
    driver.execute_script("studio.picked = [12345, 234567]; studio.tab('rows'); studio.picks()")
    waited(lambda: driver.execute_script("return !!document.querySelector('#why-body table')"))
    out.line(f"- neighbours of a row, and why two are apart: {time.perf_counter() - start:.1f} s")
    start = time.perf_counter()
    driver.execute_script("studio.columns = { tailnum: { keep: false } }; studio.run()")
    waited(lambda: "First picture" in said("#lead") or said("#status").startswith("Ready"))
    first = time.perf_counter() - start
    waited(lambda: said("#status").startswith("Ready"))
    everything = time.perf_counter() - start
    out.line(f"- without one column: first picture {first:.1f} s, all {everything:.1f} s")
    start = time.perf_counter()
    driver.execute_script("studio.tab('take')")
    driver.find_element("css selector", "[data-kind='model.tabweave']").click()
    waited(lambda: "is ready" in said("#take .says"))
    out.line(f"- the model, downloaded: {time.perf_counter() - start:.1f} s")


def marks(n: int = 100_000) -> None:
    """Measure how a map of many marks follows the mouse."""
    from tabweave.apps.report import page

    rng = np.random.default_rng(0)
    points = rng.normal(size=(n, 2)).round(3).tolist()
    groups = rng.integers(0, 8, n)
    found = {
        "layouts": [{"name": "drawn", "points": points}], "rows": list(range(n)), "of": n,
        "copies": rng.geometric(0.6, n).tolist(), "without": "",
        "columns": [{"name": "kind", "labels": list("abcdefgh"), "codes": groups.tolist()}],
    }  # fmt: skip
    content = {"only": ["map"], "tabweave": "", "method": "", "rows": n, "target": None}
    out = Report("A map of 100,000 marks", f"{COMMAND} --marks")
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "marks.html"
        path.write_text(page(content | {"clusters": None, "map": found}), encoding="utf-8")
        driver = browser(Path(name))
        try:
            driver.get(path.as_uri())
            waited(lambda: driver.execute_script("return !!document.querySelector('.map').map"))
            time.sleep(2)
            seen, rate = driver.execute_async_script(FRAMES)
            redrawn = driver.execute_script(
                "const { map } = document.querySelector('.map'); const start = performance.now();"
                "for (let i = 0; i < 10; i++) { map.layer = null; map.paintMarks(); }"
                "return (performance.now() - start) / 10"
            )
        finally:
            driver.quit()
    out.section("Dragged for four seconds, in a window of 1280 × 720 without a graphics card")
    out.line(f"- marks on the map: {seen:,}, in eight groups, of up to ten sizes")
    out.line(f"- frames a second, by requestAnimationFrame: {rate:.0f}")
    out.at_most("milliseconds a frame", 1000 / rate, 1000 / 30)
    out.line(f"- milliseconds a frame if all marks are drawn anew for it: {redrawn:.0f}")
    out.line(f"\n{_other_work()}")
    out.finish("studio-marks.md")


def main() -> None:
    out = Report("A visit to the studio", COMMAND)
    out.section("336,776 flights × 19 columns, from a CSV file dropped on the page")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "start").mkdir()
        flights().to_csv(folder / "flights.csv", index=False)
        size = (folder / "flights.csv").stat().st_size / 1e6
        out.line(f"- the file: {size:.0f} MB")
        command = [sys.executable, "-m", "tabweave.apps.cli", "studio", str(folder / "start")]
        with subprocess.Popen(
            [*command, "--no-browser"], stdout=subprocess.PIPE, text=True
        ) as server:
            driver = browser(folder)
            try:
                visit(driver, server.stdout.readline().split()[-1], folder / "flights.csv", out)
            finally:
                driver.quit()
                server.terminate()
    out.line(f"\n{_other_work()}")
    out.finish("studio.md")


def _other_work() -> str:
    load = os.getloadavg()[0]
    return f"On a machine of {os.cpu_count()} cores with a load average of {load:.0f} at the end."


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--marks", action="store_true", help="only a page with 100,000 marks")
    marks() if parser.parse_args().marks else main()
