"""The studio in a real browser, as a person uses it: by mouse, by keyboard, on a phone.

``TABWEAVE_SCREENSHOTS=1 pytest tests/studio/test_browser.py`` also keeps the pictures of the docs.
"""

import csv
import json
import os
import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("selenium", reason="browser tests need selenium")
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


def wait_for(question, seconds=600):
    """Ask until the answer is true."""
    return WebDriverWait(None, seconds, 0.1).until(lambda _: question())


def one(browser, selector):
    return browser.find_element(By.CSS_SELECTOR, selector)


def text(browser, selector):
    return one(browser, selector).text


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
    heads = [h.text for h in browser.find_elements(By.CSS_SELECTOR, "#preview thead th")]
    assert heads == ["plan", "device", "paid by", "region", "age", "spend", "outcome"]
    shoot(browser, "open")
    helic = one(browser, "#method-a option[value=helic]")
    assert helic.get_attribute("disabled")  # until there are classes to learn from
    Select(one(browser, "#target")).select_by_value("outcome")
    assert not one(browser, "#method-a option[value=helic]").get_attribute("disabled")
    run(browser, "auto")
    wait_for(lambda: ink(browser) >= 2)
    assert len(browser.find_elements(By.CSS_SELECTOR, "#groups .card")) >= 2
    shoot(browser, "map", "#results")


@pytest.mark.slow
def test_two_rows_are_explained_by_mouse(browser):
    opened(browser)
    run(browser)
    canvas = one(browser, ".map canvas")
    from selenium.webdriver import ActionChains

    for x, y in ((-150, -60), (150, 60)):
        ActionChains(browser).move_to_element_with_offset(canvas, x, y).click().perform()
    wait_for(lambda: browser.find_elements(By.CSS_SELECTOR, "#why-body table"))
    rows = [one(browser, f"#row-{i}").get_attribute("value") for i in (1, 2)]
    assert all(rows) and rows[0] != rows[1]
    heads = [h.text for h in browser.find_elements(By.CSS_SELECTOR, "#why-body thead th")]
    assert heads == ["column", f"row {rows[0]}", f"row {rows[1]}", "share"]
    shares = browser.find_elements(By.CSS_SELECTOR, "#why-body tbody td:last-child")
    assert abs(sum(float(s.text.split()[0]) for s in shares) - 100) < 4  # rounded
    assert len(browser.find_elements(By.CSS_SELECTOR, "#near-body tbody tr")) == 8
    shoot(browser, "explain", "#near-body table")
    browser.find_element(By.CSS_SELECTOR, "#near-body .link").click()
    wait_for(lambda: one(browser, "#row-1").get_attribute("value") == rows[1])


@pytest.mark.slow
def test_two_methods_side_by_side(browser):
    opened(browser)
    run(browser, "auto", "onehot")
    assert ink(browser, "A") >= 2 and ink(browser, "B") >= 2
    pick(browser, 3, 9)
    for part in ("map", "groups", "near-body", "why-body", "take"):
        sides = browser.find_elements(By.CSS_SELECTOR, f"#{part} [data-side]")
        assert [s.get_attribute("data-side") for s in sides] == ["A", "B"]
    assert "adjusted Rand index" in text(browser, "#groups")
    assert "are near by both methods" in text(browser, "#near-body")
    program = text(browser, "#program")
    assert "model_a = MixedEmbedder()" in program and "OneHot" in program
    compile(program, "program.py", "exec")
    shoot(browser, "compare", "#map")
    browser.find_element(By.CSS_SELECTOR, "#whole button").click()
    frame = wait_for(lambda: browser.find_elements(By.TAG_NAME, "iframe"))[0]
    browser.switch_to.frame(frame)
    wait_for(lambda: len(browser.find_elements(By.TAG_NAME, "section")) == 7)
    browser.switch_to.default_content()
    shoot(browser, "report", "#whole")


@pytest.mark.slow
def test_downloads(browser):
    opened(browser)
    run(browser)
    shoot(browser, "download", "#take")
    kinds = {}
    for button in browser.find_elements(By.CSS_SELECTOR, ".downloads button"):
        kind = button.get_attribute("data-kind")
        name = driver_file = browser.downloads / f"customers-onehot-{kind}"
        button.click()
        wait_for(lambda path=driver_file: path.exists() and path.stat().st_size)
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
    Select(one(browser, "#method-a")).select_by_value("nonbend")
    one(browser, "#run").click()
    wait_for(lambda: "%" in (browser.find_elements(By.CSS_SELECTOR, ".task") or [None])[0].text)
    wait_for(lambda: float(one(browser, ".task progress").get_attribute("value")) > 0)
    shoot(browser, "cancel", "#choose")
    one(browser, ".task button").click()
    wait_for(lambda: text(browser, "#status") == "Cancelled.", 20)
    assert not one(browser, "#results").is_displayed()
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
    wait_for(lambda: active().get_attribute("id") == "target")
    active().send_keys("outcome")
    tab_to("method-a").send_keys("onehot")
    tab_to("run").send_keys(Keys.ENTER)
    wait_until_ready(browser)
    canvas = tab_to("canvas")
    for keys in ((Keys.ARROW_RIGHT,), (Keys.ARROW_DOWN, Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)):
        for key in keys:
            canvas.send_keys(key)
        canvas.send_keys(Keys.ENTER)
    wait_for(lambda: browser.find_elements(By.CSS_SELECTOR, "#why-body table"))
    assert "are chosen" in text(browser, "#said")
    shoot(browser, "keyboard")
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
    assert NASTY in text(browser, "#preview")
    run(browser, target="class")
    pick(browser, 0, 1)
    shown = text(browser, "#main")
    assert shown.count("<img src=x onerror=") > 5
    assert "undefined" not in shown and "NaN" not in shown
    one(browser, "#whole button").click()
    wait_for(lambda: browser.find_elements(By.TAG_NAME, "iframe"))
    assert browser.find_elements(By.CSS_SELECTOR, "#main img") == []
    assert browser.title == "tabweave studio"


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
        " !e.closest('.scroll, nav, pre, .hidden, .skip') && e.getBoundingClientRect().right > 391)"
        ".map((e) => e.outerHTML.slice(0, 80))"
    )
    assert wide == []
    assert browser.execute_script("return document.documentElement.scrollWidth") == 390
    shoot(browser, "phone", "#map")
