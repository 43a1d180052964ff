"""The studio in a real browser, as a person uses it: by mouse, by keyboard, on a phone.

``TABWEAVE_SCREENSHOTS=1 pytest tests/apps/studio/test_browser.py`` also keeps the pictures of the
docs.
"""

import csv
import json
import os
import re
import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("selenium", reason="browser tests need selenium")
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select, WebDriverWait

PICTURES = Path(__file__).parents[3] / "docs" / "img"
NASTY = "<img src=x onerror=\"document.title='run'\"><script>document.title='run'</script>"


@pytest.fixture
def browser(driver, served):
    driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    seen_as(driver, "light")
    driver.get_log("browser"), driver.get_log("performance")
    driver.get(served)
    wait_for(lambda: driver.find_elements(By.CSS_SELECTOR, "#files button"))
    yield driver
    bad = [entry for entry in driver.get_log("browser") if "status of 4" not in entry["message"]]
    assert bad == []  # no error of the page; a file that was refused is the server's answer
    origin = served.split("?")[0]
    sent = [url for url in requests(driver) if not url.startswith(("data:", "blob:"))]
    assert sent and all(url.startswith(origin) for url in sent)  # nothing leaves the machine


def seen_as(driver, scheme):
    """Set the colours that the system prefers, and that nothing moves: clicks need that."""
    features = {"prefers-color-scheme": scheme, "prefers-reduced-motion": "reduce"}
    wanted = [{"name": name, "value": value} for name, value in features.items()]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": wanted})


def requests(driver):
    for entry in driver.get_log("performance"):
        message = json.loads(entry["message"])["message"]
        if message["method"] == "Network.requestWillBeSent":
            yield message["params"]["request"]["url"]


def wait_for(question, seconds=90):
    """Ask until the answer is true; elements that the page has just replaced are asked again."""
    replaced = (StaleElementReferenceException,)
    return WebDriverWait(None, seconds, 0.1, replaced).until(lambda _: question())


def one(browser, selector):
    return browser.find_element(By.CSS_SELECTOR, selector)


def text(browser, selector):
    return one(browser, selector).text


def tab(browser, name):
    """Open a part of the right side."""
    one(browser, f"#tab-{name}").click()
    return one(browser, f"#{name}")


def shoot(browser, name, at=None):
    if not os.environ.get("TABWEAVE_SCREENSHOTS"):
        return
    if at:
        browser.execute_script(
            "document.activeElement.blur();"
            "document.querySelector(arguments[0]).scrollIntoView({behavior: 'instant'})", at
        )  # fmt: skip
    time.sleep(1)  # a frame within the page is painted later than the page
    PICTURES.mkdir(exist_ok=True)
    browser.save_screenshot(str(PICTURES / f"studio-{name}.png"))


def opened(browser, name="customers.csv"):
    buttons = browser.find_elements(By.CSS_SELECTOR, "#files button")
    next(b for b in buttons if b.text.startswith(name)).click()
    wait_for(lambda: text(browser, "#title") == name)


def run(browser, a="onehot", b="", target="outcome"):
    if not one(browser, "#methods").is_displayed():
        one(browser, "#question-title").click()
    Select(one(browser, "#target")).select_by_value(target)
    Select(one(browser, "#method-a")).select_by_value(a)
    Select(one(browser, "#method-b")).select_by_value(b)
    one(browser, "#run").click()
    wait_until_ready(browser)


def wait_until_ready(browser):
    wait_for(lambda: text(browser, "#status").startswith("Ready") or text(browser, "#problem"))
    assert text(browser, "#problem") == ""


def upload(browser, path):
    one(browser, "#file").send_keys(str(path))


def pick(browser, *rows):
    for i, row in enumerate(rows, 1):
        field = one(browser, f"#row-{i}")
        field.clear()
        field.send_keys(str(row), Keys.ENTER)
    wait_for(lambda: browser.find_elements(By.CSS_SELECTOR, "#why-body table"))


def where(browser, row):
    """The pixel of a row's mark."""
    return browser.execute_script(
        "const { map } = document.querySelector('.map');"
        "return map.pixel(map.indexOf(arguments[0]))",
        row,
    )


def heads(browser):
    """The columns of the table under the map, in their order."""
    found = browser.find_elements(By.CSS_SELECTOR, "#grid [role=columnheader]")
    return [head.get_attribute("textContent") for head in found]


def ink(browser, side="A"):
    """How many colours a map holds."""
    return browser.execute_script(
        "const from = document.querySelector(`[data-side=${arguments[0]}] .map canvas`);"
        "const copy = document.createElement('canvas');"
        "[copy.width, copy.height] = [from.width, from.height];"
        "const context = copy.getContext('2d', { willReadFrequently: true });"
        "context.drawImage(from, 0, 0);"
        "const d = context.getImageData(0, 0, copy.width, copy.height).data;"
        "const seen = new Set(); for (let i = 0; i < d.length; i += 4) if (d[i + 3] > 150)"
        " seen.add((d[i] >> 4) * 256 + (d[i + 1] >> 4) * 16 + (d[i + 2] >> 4)); return seen.size",
        side,
    )


def test_a_file_that_is_none_is_said_so(browser, tmp_path):
    """The quick test of all: page, script, server and message work together."""
    (tmp_path / "noise.csv").write_bytes(bytes(range(256)) * 40)
    upload(browser, tmp_path / "noise.csv")
    problem = wait_for(lambda: text(browser, "#problem"))
    assert problem.startswith("That did not work. 'noise.csv' cannot be opened")
    assert not one(browser, "#choose").is_displayed()
    shoot(browser, "bad-file")


@pytest.mark.slow
def test_upload_choose_and_look(browser, tmp_path, write_customers):
    write_customers(tmp_path / "dropped.csv", n=300)
    upload(browser, tmp_path / "dropped.csv")
    wait_for(lambda: text(browser, "#title") == "dropped.csv")
    columns = ["plan", "device", "paid by", "region", "age", "spend", "outcome"]
    wait_for(lambda: heads(browser) == ["row", *columns])  # before anything was learned
    one(browser, "#question-title").click()
    shoot(browser, "open")
    helic = one(browser, "#method-a option[value=helic]")
    assert helic.get_attribute("disabled")  # until there are classes to learn from
    Select(one(browser, "#target")).select_by_value("outcome")
    assert not one(browser, "#method-a option[value=helic]").get_attribute("disabled")
    run(browser, "auto")
    wait_for(lambda: ink(browser) >= 2)
    assert len(browser.find_elements(By.CSS_SELECTOR, "#clusters .card")) >= 2
    shoot(browser, "map")


@pytest.mark.slow
def test_two_rows_are_explained_by_mouse(browser):
    opened(browser)
    run(browser)
    canvas = one(browser, ".map canvas")
    from selenium.webdriver import ActionChains

    for row in (40, 400):  # marks that lie apart
        x, y = where(browser, row)
        middle = canvas.size["width"] / 2, canvas.size["height"] / 2
        away = round(x - middle[0]), round(y - middle[1])
        ActionChains(browser).move_to_element_with_offset(canvas, *away).click().perform()
    wait_for(lambda: browser.find_elements(By.CSS_SELECTOR, "#why-body table"))
    rows = [one(browser, f"#row-{i}").get_attribute("value") for i in (1, 2)]
    assert all(rows) and rows[0] != rows[1]
    names = [h.text for h in browser.find_elements(By.CSS_SELECTOR, "#why-body thead th")]
    assert names == ["column", f"row {rows[0]}", f"row {rows[1]}", "share"]
    shares = browser.find_elements(By.CSS_SELECTOR, "#why-body tbody td:last-child")
    assert abs(sum(float(s.text.split()[0]) for s in shares) - 100) < 4  # rounded
    wait_for(lambda: len(browser.find_elements(By.CSS_SELECTOR, "#near-body tbody tr")) == 8)
    shoot(browser, "explain")
    browser.find_element(By.CSS_SELECTOR, "#near-body .link").click()
    wait_for(lambda: one(browser, "#row-1").get_attribute("value") == rows[1])


@pytest.mark.slow
def test_rows_to_begin_with_are_offered(browser):
    opened(browser)
    run(browser)
    starts = wait_for(lambda: browser.find_elements(By.CSS_SELECTOR, ".starts tbody tr"))
    said = [row.text for row in starts]
    assert sum("typical of cluster" in line for line in said) >= 2
    first = one(browser, ".starts .link")
    number = first.text.replace(",", "")
    first.send_keys(Keys.ENTER)
    wait_for(lambda: one(browser, "#row-1").get_attribute("value") == number)
    wait_for(lambda: len(browser.find_elements(By.CSS_SELECTOR, "#near-body tbody tr")) == 8)
    assert browser.execute_script("return document.activeElement.id") == "rows"


@pytest.mark.slow
def test_two_methods_side_by_side(browser):
    opened(browser)
    run(browser, "auto", "onehot")
    assert ink(browser, "A") >= 2 and ink(browser, "B") >= 2
    pick(browser, 3, 9)
    for part in ("map", "clusters", "near-body", "why-body", "take"):
        sides = browser.find_elements(By.CSS_SELECTOR, f"#{part} [data-side]")
        assert [s.get_attribute("data-side") for s in sides] == ["A", "B"]
    assert "are near by both methods" in text(browser, "#near-body")
    shoot(browser, "compare")
    assert "adjusted Rand index" in tab(browser, "clusters").text
    tab(browser, "take")
    program = text(browser, "#program")
    assert "model_a = Weave()" in program and "OneHot" in program
    compile(program, "program.py", "exec")
    tab(browser, "whole")
    browser.find_element(By.CSS_SELECTOR, "#whole button").click()
    frame = wait_for(lambda: browser.find_elements(By.TAG_NAME, "iframe"))[0]
    browser.switch_to.frame(frame)
    wait_for(lambda: len(browser.find_elements(By.TAG_NAME, "section")) == 10)
    browser.switch_to.default_content()
    shoot(browser, "report")


@pytest.mark.slow
def test_downloads(browser):
    opened(browser)
    run(browser)
    tab(browser, "take")
    shoot(browser, "download")
    kinds = {}
    for button in browser.find_elements(By.CSS_SELECTOR, ".downloads button"):
        kind = button.get_attribute("data-kind")
        name = driver_file = browser.downloads / f"customers-onehot-{kind}"
        button.click()
        wait_for(lambda path=driver_file: path.exists() and path.stat().st_size)
        wait_for(lambda file=name.name: text(browser, "#take .says").startswith(f"{file} is ready"))
        kinds[kind] = name
    assert set(kinds) == {
        "vectors.csv", "vectors.parquet", "model.tabweave", "model.sql", "model.onnx",
        "report.html",
    }  # fmt: skip
    with kinds["vectors.csv"].open() as file:
        assert sum(1 for _ in csv.reader(file)) == 501
    assert "<!doctype html>" in kinds["report.html"].read_text()


@pytest.mark.slow
def test_work_can_be_cancelled(browser, tmp_path):
    rng = np.random.default_rng(0)
    lines = (",".join(map(str, row)) for row in rng.integers(0, 60, (40_000, 30)))
    names = ",".join(f"c{i}" for i in range(30))
    (tmp_path / "long.csv").write_text(names + "\n" + "\n".join(lines))
    upload(browser, tmp_path / "long.csv")
    wait_for(lambda: text(browser, "#title") == "long.csv")
    one(browser, "#question-title").click()
    Select(one(browser, "#method-a")).select_by_value("nonbend")
    one(browser, "#run").click()
    wait_for(lambda: any("%" in t.text for t in browser.find_elements(By.CSS_SELECTOR, ".task")))
    wait_for(lambda: float(one(browser, ".task progress").get_attribute("value")) > 0)
    assert re.search(r"nonbend: .+, \d+ %, \d+ s", text(browser, ".task"))
    shoot(browser, "cancel")
    one(browser, ".task button").click()
    wait_for(lambda: text(browser, "#status") == "Cancelled.", 20)
    assert browser.find_elements(By.CSS_SELECTOR, ".task") == []
    assert not one(browser, "#problem").is_displayed()
    assert one(browser, "#run").is_enabled()


@pytest.mark.slow
def test_by_keyboard_alone(browser):
    def active():
        return browser.switch_to.active_element

    def tab_to(wanted, most=80):
        for _ in range(most):
            if active().get_attribute("id") == wanted or active().tag_name == wanted:
                return active()
            active().send_keys(Keys.TAB)
        raise AssertionError(f"no way to {wanted}")

    one(browser, "body").send_keys(Keys.TAB)
    assert active().text == "Skip to the table"
    tab_to("pick")
    tab_to("path").send_keys("customers.csv", Keys.ENTER)
    wait_for(lambda: active().get_attribute("id") == "question-title")
    wait_until_ready(browser)
    assert active().get_attribute("id") == "question-title"  # results came, the focus stayed
    active().send_keys(Keys.ENTER)
    tab_to("target").send_keys("outcome")
    tab_to("method-a").send_keys("onehot")
    tab_to("run").send_keys(Keys.ENTER)
    wait_until_ready(browser)
    canvas = tab_to("canvas")
    for keys in ((Keys.ARROW_RIGHT,), (Keys.ARROW_DOWN, Keys.PAGE_DOWN, Keys.PAGE_DOWN)):
        for key in keys:
            canvas.send_keys(key)
        canvas.send_keys(Keys.ENTER)
    wait_for(lambda: browser.find_elements(By.CSS_SELECTOR, "#why-body table"))
    assert "are chosen" in text(browser, "#said")
    shoot(browser, "keyboard")
    tab_to("tab-rows").send_keys(Keys.ARROW_LEFT * 2)
    assert active().get_attribute("id") == "tab-take"
    tab_to("copy")


@pytest.mark.slow
def test_cells_are_shown_and_never_run(browser, tmp_path):
    with (tmp_path / "nasty.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([NASTY, "size", "class"])
        for i in range(60):
            writer.writerow([NASTY if i % 2 else "plain", "SML"[i % 3], [NASTY, "b"][i % 2]])
    upload(browser, tmp_path / "nasty.csv")
    wait_for(lambda: text(browser, "#title") == "nasty.csv")
    wait_for(lambda: NASTY in one(browser, "#grid").get_attribute("textContent"))
    run(browser, target="class")
    pick(browser, 0, 1)
    shown = "".join(text(browser, "#map") + tab(browser, t).text for t in ("rows", "columns"))
    assert shown.count("<img src=x onerror=") > 5
    assert "undefined" not in shown and "NaN" not in shown
    tab(browser, "whole")
    one(browser, "#whole button").click()
    wait_for(lambda: browser.find_elements(By.TAG_NAME, "iframe"))
    assert browser.find_elements(By.CSS_SELECTOR, "#main img") == []
    assert browser.title == "nasty.csv – tabweave studio"


@pytest.mark.slow
def test_fits_a_phone_in_the_dark(browser):
    def back():
        return browser.execute_script("return getComputedStyle(document.body).backgroundColor")

    light = back()
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": True},
    )
    seen_as(browser, "dark")
    assert back() != light
    opened(browser)
    run(browser, "auto", "onehot")
    pick(browser, 3, 9)
    wide = browser.execute_script(
        "return [...document.querySelectorAll('body *')].filter((e) =>"
        " !e.closest('.scroll, .tabs, pre, .hidden, .skip, #charts, .frame-of-rows')"
        " && e.getBoundingClientRect().right > 391)"
        ".map((e) => e.outerHTML.slice(0, 80))"
    )
    assert wide == []
    assert browser.execute_script("return document.documentElement.scrollWidth") == 390
    shoot(browser, "phone", "#map")


@pytest.mark.slow
def test_all_is_in_sight_on_a_laptop(browser):
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": 1280, "height": 720, "deviceScaleFactor": 1, "mobile": False},
    )
    opened(browser)
    run(browser, "auto")
    pick(browser, 3, 9)
    assert browser.execute_script("return document.documentElement.scrollHeight") <= 720
    for part in (".map canvas", ".legend", "#row-1", "#near-body", "#grid .line", "#charts .chart"):
        box = one(browser, part).rect
        assert box["y"] + box["height"] <= 720, part
    shoot(browser, "laptop")


@pytest.mark.slow
def test_a_unit_is_a_unit_and_rows_that_coincide_can_be_reached(browser, unit_lengths):
    offered = browser.find_elements(By.CSS_SELECTOR, "#tables *")
    next(b for b in offered if b.text == "titanic").click()
    wait_until_ready(browser)
    across, up = unit_lengths(browser)
    assert across == pytest.approx(up, rel=0.01)
    rows = browser.execute_script("return [...document.querySelector('.map').map.m.rows]")
    seen = set()
    for _ in rows:
        one(browser, ".map canvas").send_keys(Keys.PAGE_DOWN)
        seen.add(browser.execute_script(
            "const { map } = document.querySelector('.map'); return map.m.rows[map.cursor]"
        ))  # fmt: skip
    assert len(rows) == 24 and seen == set(rows)


@pytest.mark.slow
def test_what_is_drawn_around_is_told_apart(browser):
    from selenium.webdriver import ActionChains

    opened(browser)
    run(browser, "auto", "onehot")
    canvas = one(browser, "[data-side=A] .map canvas")
    width, height = canvas.size["width"], canvas.size["height"]
    one(browser, "[data-side=A] .tool[title^=Draw]").click()
    drawing = ActionChains(browser).move_to_element_with_offset(canvas, 5 - width // 2, 0)
    drawing = drawing.click_and_hold()
    half = height // 2 - 4
    for x, y in ((0, -half), (width // 2 - 8, 0), (0, half), (0, half - width // 2)):
        drawing = drawing.move_by_offset(x, y) if (x, y) != (0, half - width // 2) else drawing
    drawing.release().perform()
    wait_for(lambda: "selected" in text(browser, "#chosen"))
    marks = browser.execute_script(
        "return [...document.querySelectorAll('.map')].map((s) =>"
        " [...s.map.m.rows].filter((_, i) => s.map.visible && s.map.visible[i])"
        ".sort((a, b) => a - b))"
    )
    assert marks[0] == marks[1] != []  # the other map brings out the same rows
    shoot(browser, "lasso")
    assert "drawn on the map" in text(browser, "#chips")
    canvas.send_keys(Keys.ESCAPE)
    wait_for(lambda: "Draw around" in text(browser, "#chosen"))


@pytest.mark.slow
def test_a_column_left_out_changes_the_map_and_a_reload_keeps_it(browser):
    opened(browser)
    run(browser, "auto")
    pick(browser, 3, 9)
    before = where(browser, 3)
    tab(browser, "columns")
    shoot(browser, "columns")
    one(browser, "[aria-label='Keep plan']").click()
    weight = one(browser, "[aria-label='Weight of age']")
    weight.clear()
    weight.send_keys("4", Keys.TAB)
    one(browser, "#apply").click()
    wait_until_ready(browser)
    assert where(browser, 3) != before
    assert "left out" in one(browser, "#columns").text
    browser.refresh()
    wait_for(lambda: text(browser, "#status").startswith("Ready"))
    assert text(browser, "#title") == "customers.csv"
    assert one(browser, "#target").get_attribute("value") == "outcome"
    assert not one(browser, "[aria-label='Keep plan']").is_selected()
    assert one(browser, "[aria-label='Weight of age']").get_attribute("value") == "4"
    tab(browser, "rows")
    wait_for(lambda: browser.find_elements(By.CSS_SELECTOR, "#why-body table"))
    assert [one(browser, f"#row-{i}").get_attribute("value") for i in (1, 2)] == ["3", "9"]


@pytest.mark.slow
def test_a_file_that_is_written_again_is_looked_at_again(browser, folder, write_customers):
    path = folder / "changing.csv"
    write_customers(path, n=120)
    browser.refresh()
    wait_for(lambda: "changing.csv" in text(browser, "#files"))
    opened(browser, "changing.csv")
    wait_until_ready(browser)
    write_customers(path, n=90, seed=5)
    one(browser, "#row-1").send_keys("7", Keys.ENTER)
    wait_for(lambda: "90 rows" in text(browser, "#lead"))
    wait_until_ready(browser)
    path.unlink()
    one(browser, "#row-1").send_keys(Keys.BACKSPACE, "8", Keys.ENTER)
    problem = wait_for(lambda: text(browser, "#problem"))
    assert "'changing.csv' cannot be opened: it is no longer there" in problem
    assert text(browser, "#status") == ""


@pytest.mark.slow
def test_what_takes_long_says_so(browser):
    """Two rows were chosen, and the page asked to choose two rows."""
    opened(browser)
    run(browser)
    browser.execute_script(
        "const ask = studio.json; studio.json = (path) => path.includes('explain?')"
        " ? new Promise((go) => setTimeout(go, 3000)).then(() => ask(path)) : ask(path)"
    )
    one(browser, "#row-1").send_keys("3", Keys.ENTER)
    one(browser, "#row-2").send_keys("9", Keys.ENTER)
    wait_for(lambda: text(browser, "#why-body") == "Comparing …", 3)
    wait_for(lambda: browser.find_elements(By.CSS_SELECTOR, "#why-body table"))


@pytest.mark.slow
def test_a_reload_lays_both_maps_out_as_they_were(browser):
    layouts = "return [...document.querySelectorAll('.map')].map((stage) => stage.map.layout)"
    opened(browser)
    run(browser, "auto", "onehot")
    chooser = browser.find_elements(By.CSS_SELECTOR, "#mapbar select")[1]
    wait_for(lambda: "neighbourhoods" in chooser.text)
    Select(chooser).select_by_index(1)
    wait_for(lambda: browser.execute_script(layouts) == [1, 1])
    browser.refresh()
    wait_for(lambda: browser.execute_script(layouts) == [1, 1])


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_serious_for_axe(browser, scheme, axe):
    seen_as(browser, scheme)
    opened(browser)
    run(browser, "auto", "onehot")
    pick(browser, 3, 9)
    tabs = browser.find_elements(By.CSS_SELECTOR, "[role=tab]")
    for name in [each.get_attribute("id").removeprefix("tab-") for each in tabs]:
        tab(browser, name)
        assert axe(browser) == [], name
    one(browser, "#again").click()
    assert axe(browser) == []


def test_the_columns_say_how_they_were_read(browser, tmp_path):
    rng = np.random.default_rng(0)
    with (tmp_path / "orders.csv").open("w", newline="", encoding="utf-8") as file:
        out = csv.writer(file)
        out.writerow(["sent", "paid", "what"])
        for i in range(90):
            paid = f"{'$€'[i % 2]}{rng.lognormal(3, 1):.2f}"
            out.writerow([f"{1 + i % 28:02}.03.2024", paid, rng.choice(["mug", "hat"])])
    upload(browser, tmp_path / "orders.csv")
    wait_for(lambda: text(browser, "#title") == "orders.csv")
    wait_until_ready(browser)
    lines = tab(browser, "columns").find_elements(By.CSS_SELECTOR, "tbody th")
    assert [line.text.split("\n") for line in lines] == [
        ["sent", "dates as text, day first"],
        ["paid", "money written as text, $, € taken as one currency"],
        ["what"],
    ]
