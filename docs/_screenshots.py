"""Pictures of a report and of the studio, as a browser shows them, into docs/img.

``make screenshots`` runs this; it needs Chromium and chromedriver. The studio's
pictures are made by its tests (``TABWEAVE_SCREENSHOTS=1``). All are brought to 256 colours: a
picture of a page then takes some tens of kilobytes.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from PIL import Image
from selenium import webdriver
from selenium.webdriver.chrome.service import Service

ROOT = Path(__file__).resolve().parents[1]
PICTURES = ROOT / "docs" / "img"
PHONE = (390, 844)
LARGEST = 200_000  # bytes


def main():
    """Make every picture, and say how large they are."""
    browser = start()
    try:
        with tempfile.TemporaryDirectory() as folder:
            page = write_report(Path(folder) / "report.html")
            shoot(browser, page + "#couplings", "report", (1280, 1500))
            shoot(browser, page + "#map", "report-phone", PHONE, dark=True)
    finally:
        browser.quit()
    if "--studio" in sys.argv:
        tests = ["-m", "pytest", "-q", "tests/apps/studio/test_browser.py"]
        shown = os.environ | {"TABWEAVE_SCREENSHOTS": "1"}
        subprocess.run([sys.executable, *tests], cwd=ROOT, env=shown, check=True)
    for path in sorted(PICTURES.glob("*.png")):
        shrink(path)
        print(f"{path.relative_to(ROOT)}  {path.stat().st_size / 1000:.0f} kB")
        if path.stat().st_size > LARGEST:
            raise SystemExit(f"{path.name} is larger than {LARGEST / 1000:.0f} kB")


def start():
    """Return a browser without a window."""
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or shutil.which("chromium-browser")
    for switch in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"):
        options.add_argument(switch)
    return webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))


def shoot(browser, address, name, size, dark=False):
    """Take the picture of a page in a window of some size."""
    width, height = size
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": scheme})
    browser.get("about:blank")  # or another anchor of the same page would not load it again
    browser.get(address)
    time.sleep(2)  # formulas are typeset, and maps drawn, after the page is there
    browser.save_screenshot(str(PICTURES / f"{name}.png"))


def write_report(path):
    """Write the report of the Titanic; return its address."""
    from tabweave import report
    from tabweave.datasets import titanic

    data = titanic()
    report.report(data.frame(), path, target=data.y, title="The Titanic")
    return path.as_uri()


def shrink(path):
    """Bring a picture to 256 colours, if that makes it smaller."""
    with Image.open(path) as picture:
        if picture.mode == "P":
            return
        few = picture.convert("RGB").quantize(256, dither=Image.Dither.NONE)
    part = path.with_suffix(".part")
    few.save(part, format="PNG", optimize=True)
    part.replace(path) if part.stat().st_size < path.stat().st_size else part.unlink()


if __name__ == "__main__":
    main()
