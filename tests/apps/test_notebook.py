"""What notebooks show: tables, pictures, pages and a map whose selection Python can read."""

import re

import numpy as np
import pytest

from tabweave import Counts, SimilarityIndex, Table, Weave
from tabweave.apps.report import report

NASTY = "<script>alert(1)</script>"
ROWS = {"colour": ["red", "red", NASTY, "blue"] * 5, "size": [1.0, 2.5, None, 4.0] * 5}


def model():
    return Weave().fit(ROWS)


SHOWN = {
    "table": lambda: Table.of(ROWS),
    "schema": lambda: Table.of(ROWS).schema,
    "counts": lambda: Counts.of(ROWS),
    "explanation": lambda: model().explain(["red", 1.0], [NASTY, 4.0]),
    "distances": lambda: model().value_distances("colour"),
    "neighbours": lambda: SimilarityIndex(Weave()).fit(ROWS).query({"colour": "red", "size": 1}, 3),
}


@pytest.mark.parametrize("name", SHOWN)
def test_objects_show_themselves(name):
    shown = SHOWN[name]()._repr_html_()
    assert shown.startswith("<table>") and shown.endswith("</table>")
    assert "<script" not in shown
    assert ("colour" in shown) == (name != "neighbours")


def test_distances_are_a_frame_as_before():
    import pandas

    found = model().value_distances("colour")
    assert type(found) is pandas.DataFrame and found.loc["red", "red"] == 0
    assert "color-mix" in found._repr_html_()
    assert "color-mix" not in (found * 2)._repr_html_()  # what is made of it is a plain frame


def test_a_report_is_text_in_a_frame_of_its_own():
    page = report(ROWS)
    assert isinstance(page, str) and page.startswith("<!doctype html>")
    frame = page._repr_html_()
    assert re.match(r'<iframe [^>]*sandbox="allow-scripts', frame)
    assert "allow-same-origin" not in frame and "<script" not in frame


def test_the_selection_of_a_map_can_be_read():
    pytest.importorskip("anywidget", reason="the map in notebooks is the extra tabweave[notebook]")
    from tabweave.apps.report import map_widget

    rng = np.random.default_rng(0)
    rows = {"a": rng.choice(list("xyz"), 60), "b": rng.normal(size=60)}
    widget = map_widget(rows)
    assert widget.selection == [] and len(widget.description["map"]["rows"]) == 60
    widget.selection = [3, 5]
    assert widget.selection == [3, 5]
    assert "export default" in widget._esm and "tabweave.Map" in widget._esm


@pytest.mark.slow
def test_a_notebook_holds_the_pictures():
    nbformat = pytest.importorskip("nbformat", reason="notebooks are run by nbclient")
    nbclient = pytest.importorskip("nbclient", reason="notebooks are run by nbclient")
    pytest.importorskip("ipykernel", reason="notebooks are run by nbclient")
    cells = [
        "from tabweave import Table, Weave, plots\nfrom tabweave.apps.report import report\n"
        "rows = {'a': list('xyz') * 20, 'b': [i % 7 / 2 for i in range(60)]}\nTable.of(rows)",
        "plots.column_weights({'a': 1.0, 'b': 2.0})",
        "report(rows)",
        "Weave().fit(rows).explain(['x', 0.5], ['y', 2.0])",
    ]
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in cells])
    nbclient.NotebookClient(book, timeout=600, kernel_name="python3").execute()
    kinds = [set(cell.outputs[-1].data) for cell in book.cells]
    assert "image/png" in kinds[1]
    assert all("text/html" in kinds[i] for i in (0, 2, 3))
    assert book.cells[2].outputs[-1].data["text/html"].startswith("<iframe")
