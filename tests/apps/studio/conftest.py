"""Shared by the tests of the studio: a table with groups in it, a client, a server, a browser."""

import csv
import shutil
import subprocess
import sys
import warnings

import numpy as np
import pytest

TOKEN = "the-token"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
DRIVER = shutil.which("chromedriver")


def _write_customers(path, n=500, seed=0):
    """Three kinds of customers, told apart by most columns; one column is noise."""
    rng = np.random.default_rng(seed)
    kind = rng.choice(3, n, p=[0.45, 0.35, 0.2])
    columns = {
        "plan": [["basic", "plus", "pro"][k] for k in _mostly(rng, kind)],
        "device": [["phone", "laptop", "desktop"][k] for k in _mostly(rng, kind)],
        "paid by": [["voucher", "card", "invoice"][k] for k in _mostly(rng, kind)],
        "region": rng.choice(["north", "south", "east", "west"], n),
        "age": (22 + 12 * kind + rng.normal(0, 4, n)).round().astype(int),
        "spend": (10 * 3.0**kind * rng.lognormal(0, 0.3, n)).round(2),
        "outcome": np.where(rng.random(n) < np.array([0.5, 0.2, 0.05])[kind], "left", "stayed"),
    }
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))


def _mostly(rng, kind):
    return np.where(rng.random(len(kind)) < 0.85, kind, rng.integers(0, 3, len(kind)))


@pytest.fixture(scope="session")
def write_customers():
    return _write_customers


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """A start folder with a table in it, and one in a folder below."""
    path = tmp_path_factory.mktemp("studio") / "tables"
    (path / "below").mkdir(parents=True)
    _write_customers(path / "customers.csv")
    _write_customers(path / "below" / "few.csv", n=80)
    return path


@pytest.fixture(scope="module")
def client_of():
    """Start clients of studios, and end them."""
    pytest.importorskip("fastapi", reason="the studio needs tabweave[studio]")
    pytest.importorskip("httpx", reason="the tests of the studio ask through httpx")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # starlette's client prefers another name of httpx
        from fastapi.testclient import TestClient
    from tabweave.apps.studio import create_app

    started = []

    def start(path, token=TOKEN, **options):
        app = create_app(path, token=TOKEN, **options)
        headers = {"X-Tabweave-Token": token} if token else {}
        client = TestClient(app, base_url="http://127.0.0.1", headers=headers)
        client.__enter__()
        started.append(client)
        return client

    yield start
    for client in started:
        client.__exit__(None, None, None)


@pytest.fixture(scope="session")
def served(folder):
    """A studio as the command line starts it; gives its address."""
    pytest.importorskip("uvicorn", reason="the studio needs tabweave[studio]")
    pytest.importorskip("fastapi", reason="the studio needs tabweave[studio]")
    command = [sys.executable, "-m", "tabweave.apps.cli", "studio", str(folder), "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        yield server.stdout.readline().split()[-1]
        server.terminate()


@pytest.fixture(scope="session")
def driver(tmp_path_factory):
    """A headless Chromium."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="browser tests need selenium")
    from selenium.webdriver.chrome.service import Service

    if not (CHROMIUM and DRIVER):
        pytest.skip("browser tests need chromium and chromedriver")
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for switch in (
        "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
        "--disable-dev-shm-usage", "--window-size=1280,1000", "--hide-scrollbars",
    ):  # fmt: skip
        options.add_argument(switch)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    driver.downloads = tmp_path_factory.mktemp("downloads")
    driver.execute_cdp_cmd(
        "Browser.setDownloadBehavior",
        {"behavior": "allow", "downloadPath": str(driver.downloads)},
    )
    yield driver
    driver.quit()
