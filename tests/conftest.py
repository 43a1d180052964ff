"""Shared by all tests: Hypothesis without deadlines, repeatable everywhere, and counted work.

No test asserts how long something took: a busy machine would fail it. What would make it slow is
counted instead, see :func:`calls`.
"""

import io
import os
import sys
import threading
import zipfile
from collections import Counter

import pytest
from hypothesis import HealthCheck, settings

if "PYTEST_XDIST_WORKER" in os.environ:  # as many processes as cores: threads wait for each other
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

settings.register_profile(
    "tabweave", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("tabweave")


class Calls(Counter):
    """Python functions entered within a ``with`` block, by module and name."""

    def __enter__(self):
        threading.setprofile(self._note)
        sys.setprofile(self._note)
        return self

    def __exit__(self, *_):
        sys.setprofile(None)
        threading.setprofile(None)

    def _note(self, frame, event, _):
        if event == "call":
            self[frame.f_globals.get("__name__", ""), frame.f_code.co_name] += 1

    def of(self, function):
        """How often functions of that name were entered, wherever they are."""
        return sum(n for (_, name), n in self.items() if name == function)

    def modules(self, package):
        """The modules of a package of which any function was entered."""
        return {module for module, _ in self if f"{module}.".startswith(f"{package}.")}


@pytest.fixture
def calls():
    """Count calls: ``with calls() as work: ...``, then ``work.of("eigh")``."""
    return Calls


@pytest.fixture
def watermelons():
    """Table 2.1 of the thesis [Zhu 2019]."""
    root = ["straight", "straight", "curled", "slightly curled", "curled", "slightly curled"]
    return {
        "texture": ["clear", "blurry", "blurry", "clear", "blurry", "clear"],
        "color": ["white", "yellow", "yellow", "green", "green", "black"],
        "root shape": root,
    }


def _workbook(sheet, texts="", dates_since="0"):
    """The bytes of a workbook of one sheet; the style 1 is that of a date, 2 of a date and time."""
    space = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    parts = {
        "xl/workbook.xml": f'<workbook {space} xmlns:r="{office}"><workbookPr '
        f'date1904="{dates_since}"/><sheets><sheet name="a" sheetId="1" r:id="r1"/></sheets>'
        "</workbook>",
        "_rels/.rels": '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/'
        f'relationships"><Relationship Id="r1" Type="{office}/officeDocument" '
        'Target="xl/workbook.xml"/></Relationships>',
        "xl/_rels/workbook.xml.rels": '<Relationships xmlns="http://schemas.openxmlformats.org/'
        f'package/2006/relationships"><Relationship Id="r1" Type="{office}/worksheet" '
        'Target="worksheets/sheet1.xml"/></Relationships>',
        "xl/styles.xml": f'<styleSheet {space}><cellXfs><xf numFmtId="0"/><xf numFmtId="14"/>'
        '<xf numFmtId="22"/><xf numFmtId="21"/></cellXfs></styleSheet>',
        "xl/sharedStrings.xml": f"<sst {space}>{texts}</sst>",
        "xl/worksheets/sheet1.xml": f"<worksheet {space}><sheetData>{sheet}</sheetData>"
        "</worksheet>",
    }
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as book:
        for name, text in parts.items():
            book.writestr(name, text)
    return out.getvalue()


@pytest.fixture(scope="session")
def workbook():
    pytest.importorskip("python_calamine", reason="workbooks need tabweave[files]")
    return _workbook
