"""Shared by the tests of pages: axe-core, which finds what a person without a mouse would miss."""

import os
from pathlib import Path

import pytest

os.environ["TABWEAVE_CACHE"] = ""  # what a test has found is no answer for another one
SERIOUS = ("serious", "critical")
UNITS = """
const { map } = document.querySelector('.map');
const far = (list) => { let b = 1; for (let i = 1; i < list.length; i++)
  if (Math.abs(list[i] - list[0]) > Math.abs(list[b] - list[0])) b = i; return b; };
return [map.xs, map.ys].map((list, a) => { const i = far(list);
  return Math.abs(map.pixel(i)[a] - map.pixel(0)[a]) / Math.abs(list[i] - list[0]); });
"""


@pytest.fixture(scope="session")
def axe():
    """Return what axe-core finds grave on a page: WCAG 2.2 A and AA, contrasts among it.

    ``TABWEAVE_AXE`` names ``axe.min.js``; else the package axe-core-python brings one along.
    """
    path = os.environ.get("TABWEAVE_AXE")
    if not path:
        package = pytest.importorskip("axe_core_python", reason="needs axe-core-python")
        path = next(Path(package.__file__).parent.rglob("axe.min.js"))
    script = Path(path).read_text(encoding="utf-8")

    def find(driver):
        driver.execute_script(script)
        found = driver.execute_async_script(
            "const levels = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'];"
            "axe.run(document, { runOnly: levels })"
            ".then((r) => arguments[arguments.length - 1](r.violations))"
        )
        return [
            (each["id"], [node["html"][:120] for node in each["nodes"]])
            for each in found
            if each["impact"] in SERIOUS
        ]

    return find


@pytest.fixture(scope="session")
def unit_lengths():
    """Return how many pixels of a map one unit is, across and up."""
    return lambda driver: driver.execute_script(UNITS)
