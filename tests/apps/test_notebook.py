"""What notebooks show: tables, pictures, pages and a map whose selection Python can read."""

import base64
import pickle
import re
import shutil

import numpy as np
import pytest

from tabweave import Counts, SimilarityIndex, Table, Weave, associations
from tabweave.apps.report import report

NASTY = "<script>alert(1)</script>"
ROWS = {"colour": ["red", "red", NASTY, "blue"] * 5, "size": [1.0, 2.5, None, 4.0] * 5}


def model():
    return Weave().fit(ROWS)


SHOWN = {
    "associations": lambda: associations(ROWS),
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
    assert "colour" in shown


def test_long_cells_are_cut_and_large_numbers_are_not():
    rows = {"x" * 200: ["y" * 200, "z"], "n": [12_345_678.0, 0.123456]}
    shown = Table.of(rows)._repr_html_()
    assert "x" * 59 + "…" in shown and "y" * 59 + "…" in shown and "y" * 60 not in shown
    assert ">12345678<" in shown and ">0.1235<" in shown


def test_distances_are_a_frame_as_before():
    import pandas

    found = model().value_distances("colour")
    assert type(found) is pandas.DataFrame and found.loc["red", "red"] == 0
    assert "color-mix" in found._repr_html_()
    gaps = Weave().fit({"k": ["a", None, "b"] * 5, "l": list("xyz") * 5}).value_distances("k")
    assert ">missing<" in gaps._repr_html_() and "None" not in gaps._repr_html_()
    assert "color-mix" not in (found * 2)._repr_html_()  # what is made of it is a plain frame


def test_a_report_is_text_in_a_frame_of_its_own():
    page = report(ROWS)
    assert isinstance(page, str) and page.startswith("<!doctype html>")
    frame = page._repr_html_()
    assert re.match(r'<iframe [^>]*sandbox="allow-scripts', frame)
    assert "allow-same-origin" not in frame and "<script" not in frame


def test_neighbours_show_their_cells_and_are_sent_without_them():
    index = SimilarityIndex(Weave()).fit({**ROWS, "day": ["2024-02-03", None] * 10})
    found = index.query({"colour": "blue"}, 2)
    assert ">blue<" in found._repr_html_() and ">2024-02-03<" not in found._repr_html_()
    assert ">red<" in index.query_radius({"colour": "red", "size": 1.0}, 1e9)[0]._repr_html_()
    sent = pickle.loads(pickle.dumps(found))
    assert sent.stored is None and (sent.ids == found.ids).all()
    assert ">blue<" not in sent._repr_html_()


def test_a_picture_of_a_map_for_what_runs_no_widgets():
    pytest.importorskip("anywidget", reason="the map in notebooks is the extra tabweave[notebook]")
    from tabweave.apps.report import map_widget

    for target in (None, "colour", "size"):
        data, _ = map_widget(ROWS, target=target)._repr_mimebundle_()
        assert base64.b64decode(data["image/png"]).startswith(b"\x89PNG")
        assert "application/vnd.jupyter.widget-view+json" in data


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


def test_the_map_of_a_notebook_in_a_browser(tmp_path):
    """In a tree of its own; a unit is a unit; what is drawn around goes back to Python."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="browser tests need selenium")
    from selenium.webdriver.chrome.service import Service

    from tabweave.apps.report import describe
    from tabweave.apps.report.html import embedded, widget_script

    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not (chromium and driver):
        pytest.skip("browser tests need chromium and chromedriver")
    rng = np.random.default_rng(0)
    found = describe({"a": rng.choice(list("xyz"), 200), "b": rng.normal(size=200)})
    script = widget_script().replace("export default { render };", "")
    (tmp_path / "cell.html").write_text(
        f"<!doctype html><div id=cell></div><script type=application/json id=d>{embedded(found)}"
        f"</script><script>{script}\nconst kept = {{ description: JSON.parse(document."
        "getElementById('d').textContent), selection: [] };\n"
        "const model = { get: (n) => kept[n], set: (n, v) => { kept[n] = v; }, save_changes() {},"
        " on() {} };\nrender({ model, el: document.getElementById('cell') });</script>"
    )
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for switch in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(switch)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    browser = webdriver.Chrome(options=options, service=Service(driver))
    try:
        browser.get((tmp_path / "cell.html").as_uri())
        browser.set_script_timeout(60)
        units, kept = browser.execute_async_script(
            "const done = arguments[0]; const wait = () => {"
            " const stage = document.getElementById('cell').shadowRoot.querySelector('.map');"
            " const ready = stage && stage.map.groups && stage.map.width;"
            " if (!ready) return void setTimeout(wait, 50);"
            " const { map } = stage; const far = (list) => list.reduce((b, v, i) =>"
            " (Math.abs(v - list[0]) > Math.abs(list[b] - list[0]) ? i : b), 0);"
            " const units = [map.xs, map.ys].map((list, a) => { const i = far(list); return"
            " Math.abs(map.pixel(i)[a] - map.pixel(0)[a]) / Math.abs(list[i] - list[0]); });"
            " map.select([0, 2]); done([units, kept.selection]); }; wait();"
        )
        assert units[0] == pytest.approx(units[1], rel=0.01)
        rows = found["map"]["rows"]
        assert kept == [rows[0], rows[2]]
        assert [e for e in browser.get_log("browser") if "favicon" not in e["message"]] == []
    finally:
        browser.quit()
