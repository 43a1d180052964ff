"""The page in a real browser: draws itself, runs nothing it should not, works by keyboard."""

import json
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest

from tabweave.apps.report import report

pytest.importorskip("selenium", reason="browser tests need selenium")
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select, WebDriverWait

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
DRIVER = shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(
    not (CHROMIUM and DRIVER), reason="browser tests need chromium and chromedriver"
)
NASTY = [
    "<script>document.title='run'</script>",
    "</script><img src=x onerror=\"document.title='run'\">",
]
SECTIONS = [
    "warnings", "rows", "columns", "couplings", "values", "map", "clusters", "neighbours",
    "associations", "outliers",
]  # fmt: skip


def rows():
    rng = np.random.default_rng(0)
    group = rng.integers(0, 3, 400)
    return {
        "colour": np.array(["red", "green", None], object)[group],
        NASTY[0]: np.array([*NASTY, "x"], object)[rng.permutation(group)],
        NASTY[1]: np.where(rng.random(400) < 0.9, np.array(list("osx"), object)[group], "o"),
        "size": np.where(rng.random(400) < 0.1, np.nan, 10.0 * group + rng.normal(size=400)),
        "id": np.array([f"i{i}" for i in range(400)], object),
        "group": np.array([*NASTY, "three"], object)[group],
    }


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    report(rows(), path, target="group", title=NASTY[1])
    return path.as_uri()


@pytest.fixture(scope="module")
def driver():
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for switch in (
        "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
        "--disable-dev-shm-usage", "--window-size=1280,900",
    ):  # fmt: skip
        options.add_argument(switch)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    yield driver
    driver.quit()


@pytest.fixture
def browser(driver, address):
    driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    driver.get(address)
    WebDriverWait(driver, 20).until(lambda d: d.find_elements(By.CSS_SELECTOR, ".legend button"))
    yield driver
    assert driver.get_log("browser") == []  # no error, no warning, nothing refused


def test_draws_every_section_and_runs_nothing_it_was_given(browser):
    assert [
        s.get_attribute("id") for s in browser.find_elements(By.TAG_NAME, "section")
    ] == SECTIONS
    assert browser.title == NASTY[1]
    assert len(browser.find_elements(By.TAG_NAME, "img")) == 0
    text = browser.find_element(By.TAG_NAME, "main").text
    assert NASTY[0] in text and NASTY[1] in text
    assert "undefined" not in text and "NaN" not in text and "null" not in text


def test_nothing_leaves_the_machine(browser, address):
    sent = []
    for entry in browser.get_log("performance"):
        message = json.loads(entry["message"])["message"]
        if message["method"] == "Network.requestWillBeSent":
            sent.append(message["params"]["request"]["url"])
    assert set(sent) <= {address}


def test_map_is_drawn_and_choosers_change_it(browser):
    def ink():
        return browser.execute_script(
            "const from = document.querySelector('.map canvas');"
            "const copy = document.createElement('canvas');"
            "[copy.width, copy.height] = [from.width, from.height];"
            "const context = copy.getContext('2d', { willReadFrequently: true });"
            "context.drawImage(from, 0, 0);"
            "const d = context.getImageData(0, 0, copy.width, copy.height).data;"
            "const seen = new Set(); for (let i = 0; i < d.length; i += 4) if (d[i + 3] > 150)"
            " seen.add((d[i] >> 4) * 256 + (d[i + 1] >> 4) * 16 + (d[i + 2] >> 4));"
            "return seen.size + ':' + d.reduce((a, b) => (a * 31 + b) % 1000003, 7);"
        )

    first = ink()
    assert int(first.split(":")[0]) >= 3  # a colour for each class
    colour = Select(browser.find_element(By.CSS_SELECTOR, "#map select"))
    assert [o.text for o in colour.options][:2] == ["group", "cluster"]
    assert colour.options[-1].text == "density"
    colour.select_by_visible_text("size")
    legend = [b.text for b in browser.find_elements(By.CSS_SELECTOR, ".legend button")]
    assert legend[0].startswith("<") and legend[-1].startswith("missing")
    assert ink() != first


def test_a_dragged_map_moves_the_marks_it_has_drawn(browser):
    same, stamped, far = browser.execute_script(
        "const { map } = document.querySelector('.map');"
        "const seen = () => { const copy = tabweave.canvas(map.canvas.width, map.canvas.height, 1);"
        " const c = copy.getContext('2d', { willReadFrequently: true });"
        " c.drawImage(map.canvas, 0, 0);"
        " return String(c.getImageData(0, 0, copy.width, copy.height).data); };"
        "let stamped = 0; const real = map.stampAll.bind(map);"
        "map.stampAll = (...given) => { stamped++; return real(...given); };"
        "const drag = (dx, dy) => { map.pan(dx, dy); map.paintMarks(); };"
        "for (let k = 0; k < 5; k++) drag(7, -4);"
        "const [moved, once] = [seen(), stamped];"
        "map.layer = null; map.paintMarks(); const same = seen() === moved;"
        "stamped = 0; drag(map.width, 0); return [same, once, stamped];"
    )
    assert same  # as if they had been drawn where they are now
    assert (stamped, far) == (0, 1)  # and again only where the view leaves what was drawn


def test_rows_are_coloured_by_their_odd_cells(driver, tmp_path):
    rows = {"city": ["Paris", "Santiago"] * 100, "country": ["France", "Chile"] * 100}
    rows["month"] = [f"m{i % 7}" for i in range(200)]
    rows["country"][4] = "Chile"
    report(rows, tmp_path / "odd.html")
    opened(driver, tmp_path / "odd.html")
    Select(driver.find_element(By.CSS_SELECTOR, "#map select")).select_by_visible_text("odd cells")
    legend = [b.text.split() for b in driver.find_elements(By.CSS_SELECTOR, ".legend button")]
    assert legend[0][0] in ("city", "country") and legend[0][1] == "1"
    assert legend[1][:3] == ["no", "odd", "cell"]


def test_legend_brings_one_value_out(browser):
    button = browser.find_element(By.CSS_SELECTOR, ".legend button")
    button.send_keys(Keys.ENTER)
    assert button.get_attribute("aria-pressed") == "true"
    button.send_keys(Keys.SPACE)
    assert button.get_attribute("aria-pressed") == "false"


def test_by_keyboard_alone(browser):
    body = browser.find_element(By.TAG_NAME, "body")
    body.send_keys(Keys.TAB)
    assert browser.switch_to.active_element.text == "Skip to the report"
    reached = set()
    for _ in range(60):
        active = browser.switch_to.active_element
        section = browser.execute_script(
            "const s = arguments[0].closest('section'); return s && s.id", active
        )
        reached.add((section, active.tag_name))
        active.send_keys(Keys.TAB)
    wanted = {"couplings": "g", "values": "summary", "neighbours": "select"}
    wanted = {*wanted.items(), ("map", "select"), ("map", "canvas"), ("map", "button")}
    assert wanted <= reached


def test_arrow_keys_go_round_the_couplings(browser):
    nodes = browser.find_elements(By.CSS_SELECTOR, "#couplings .node")
    browser.execute_script("arguments[0].focus()", nodes[0])
    names = [browser.switch_to.active_element.get_attribute("aria-label")]
    lit = 0
    for _ in nodes:
        lit = max(lit, len(browser.find_elements(By.CSS_SELECTOR, "#couplings .tie.lit")))
        browser.switch_to.active_element.send_keys(Keys.ARROW_RIGHT)
        names.append(browser.switch_to.active_element.get_attribute("aria-label"))
    assert len(set(names)) == len(nodes) and names[0] == names[-1]
    assert lit > 0  # the couplings of the column in focus stand out


def test_arrow_keys_go_from_row_to_row(browser):
    canvas = browser.find_element(By.CSS_SELECTOR, ".map canvas")
    inspector = browser.find_element(By.CSS_SELECTOR, ".inspector")
    seen = set()
    for key in (
        Keys.ARROW_RIGHT,
        Keys.ARROW_RIGHT,
        Keys.ARROW_UP,
        Keys.ARROW_LEFT,
        Keys.ARROW_DOWN,
    ):
        canvas.send_keys(key)
        seen.add(inspector.find_element(By.TAG_NAME, "h3").text)
    assert len(seen) >= 3 and all(name.startswith("Row ") for name in seen)
    terms = [dt.text for dt in inspector.find_elements(By.TAG_NAME, "dt")]
    assert terms == ["group", "colour", *NASTY, "size"]


def test_everything_drawn_is_also_a_table(browser):
    for section in ("values", "map"):
        details = browser.find_element(By.CSS_SELECTOR, f"#{section} details")
        details.find_element(By.TAG_NAME, "summary").send_keys(Keys.ENTER)
        WebDriverWait(browser, 5).until(lambda _, d=details: d.find_elements(By.TAG_NAME, "tr"))
    assert len(browser.find_elements(By.CSS_SELECTOR, "#couplings tbody tr")) >= 3
    for picture in browser.find_elements(By.CSS_SELECTOR, "svg[role], canvas[role]"):
        assert picture.get_attribute("aria-label")


def test_columns_and_rows_can_be_chosen(browser):
    for section in ("values", "neighbours"):
        select = Select(browser.find_element(By.CSS_SELECTOR, f"#{section} select"))
        before = browser.find_element(By.ID, section).text
        select.select_by_index(1)
        assert browser.find_element(By.ID, section).text != before


@pytest.mark.parametrize("width", [320, 390])
def test_fits_a_phone(browser, width):
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": 844, "deviceScaleFactor": 2, "mobile": True},
    )
    WebDriverWait(browser, 600).until(lambda b: b.execute_script("return innerWidth") == width)
    wide = browser.execute_script(
        "return [...document.querySelectorAll('main *')].filter((e) => !e.closest('.scroll') &&"
        " e.getBoundingClientRect().right > innerWidth + 1).map((e) => e.outerHTML.slice(0, 80))"
    )
    assert wide == []
    assert browser.execute_script("return document.documentElement.scrollWidth") == width


def test_names_of_clusters_lie_on_the_map_and_not_on_each_other(driver, tmp_path):
    rng = np.random.default_rng(0)
    names = [f"group_{i}" for i in range(8)]
    group = rng.integers(0, 8, 600)
    data = {f"column_{c}": np.array(names, object)[(group + c * (group > 3)) % 8] for c in range(6)}
    report(data, tmp_path / "groups.html")
    for width in (320, 390, 1280):
        size = {"width": width, "height": 844, "deviceScaleFactor": 1, "mobile": width < 400}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        opened(driver, tmp_path / "groups.html")
        written, height = driver.execute_script(
            "const { map } = document.querySelector('.map'); map.zoom(0.25);"
            "map.view.cy += 0.4 * map.height / map.view.unit;"  # all of them near the lower edge
            "map.paintMarks(); return [map.written, map.height]"
        )
        assert len(written) > 2
        assert all(8 <= y <= height - 8 for _, y, _ in written), (width, written)
        for i, (x, y, half) in enumerate(written):
            for other_x, other_y, other_half in written[:i]:
                assert abs(y - other_y) >= 16 or abs(x - other_x) >= half + other_half
    driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_contents_follow_what_is_read(browser):
    def current():
        return [a.text for a in browser.find_elements(By.CSS_SELECTOR, "nav a[aria-current]")]

    assert current() == ["Look at first"]
    for section, name in (("map", "Map of rows"), ("columns", "Columns")):
        browser.execute_script(f"document.getElementById({section!r}).scrollIntoView()")
        WebDriverWait(browser, 20).until(lambda _, name=name: current() == [name])
    browser.execute_script("scrollTo(0, document.documentElement.scrollHeight)")
    WebDriverWait(browser, 20).until(lambda _: current() == ["Cells that do not fit"])


def test_no_word_is_cut_on_a_phone(driver, tmp_path):
    """Names break where their parts meet, and nowhere else, unless no line would hold a part."""
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 3, 200)
    names = ["customer_segment", "delivery_country", "returned", "quantity_ordered"]
    data = {n: np.array(["household", "business", "public_sector"])[kind] for n in names}
    report(data | {"noise": rng.choice(list("ab"), 200)}, tmp_path / "names.html")
    phone = {"width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": True}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", phone)
    opened(driver, tmp_path / "names.html")
    cut = driver.execute_script(
        "const lines = (b) => new Set([...b.getClientRects()].map((r) => Math.round(r.top))).size;"
        "const parts = (b) => b.textContent.split(/\\s|(?<=_)/).length;"
        "return [...document.querySelectorAll('bdi:not(.long)')].filter((b) => lines(b) > parts(b))"
        ".map((b) => b.textContent)"
    )
    driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert cut == []


def test_what_is_not_shown_yet_is_drawn_when_it_is(browser):
    """Not when the colours change: it has no width before, and a drawing of none is an error."""
    browser.execute_script(
        "window.drawn = []; window.hidden = document.createElement('div');"
        "hidden.style.display = 'none'; document.body.append(hidden);"
        "tabweave.onLook(hidden, (width) => drawn.push(width));"
        "window.changed = 0; matchMedia('(prefers-color-scheme: dark)')"
        ".addEventListener('change', () => { changed += 1; });"
    )
    dark = [{"name": "prefers-color-scheme", "value": "dark"}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": dark})
    WebDriverWait(browser, 20).until(lambda d: d.execute_script("return changed"))
    assert browser.execute_script("return drawn") == []
    browser.execute_script("hidden.style.display = ''")
    (width,) = WebDriverWait(browser, 20).until(lambda d: d.execute_script("return drawn"))
    assert width > 0


def test_follows_the_dark_mode(browser):
    def seen():
        return browser.execute_script(
            "return [getComputedStyle(document.body).backgroundColor,"
            " document.querySelector('.legend .glyph').toDataURL()]"
        )

    light = seen()
    browser.execute_cdp_cmd(
        "Emulation.setEmulatedMedia",
        {"features": [{"name": "prefers-color-scheme", "value": "dark"}]},
    )
    WebDriverWait(browser, 20).until(lambda _: not set(seen()) & set(light))


# -- the map -------------------------------------------------------------------------------------


def opened(driver, path):
    driver.get(path.as_uri())
    WebDriverWait(driver, 60).until(lambda d: d.find_elements(By.CSS_SELECTOR, ".legend button"))


def titanic_page(path, **options):
    from tabweave.datasets import titanic

    report(titanic().frame(), path, target=titanic().y, **options)


def test_one_unit_is_as_long_across_as_it_is_up(browser, unit_lengths):
    for width in (1280, 500):
        browser.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": 700, "deviceScaleFactor": 1, "mobile": False},
        )
        WebDriverWait(browser, 20).until(
            lambda b, w=width: b.execute_script("return innerWidth") == w
        )
        across, up = unit_lengths(browser)
        assert across == pytest.approx(up, rel=0.01)


def test_one_unit_is_one_unit_on_the_page_of_the_command_line(driver, tmp_path, unit_lengths):
    pytest.importorskip("typer", reason="the command line is the extra tabweave[cli]")
    from tabweave.datasets import titanic

    titanic().frame().to_csv(tmp_path / "titanic.csv", index=False)
    asked = ["map", str(tmp_path / "titanic.csv"), "-o", str(tmp_path / "map.html")]
    subprocess.run([sys.executable, "-m", "tabweave.apps.cli", *asked], check=True)
    opened(driver, tmp_path / "map.html")
    across, up = unit_lengths(driver)
    assert across == pytest.approx(up, rel=0.01)


def test_marks_are_where_the_units_say(browser):
    """The ink itself, not what the script says of it: a row far from all others."""
    x, y, inked = browser.execute_script(
        "const { map } = document.querySelector('.map'); map.named = false; map.paintMarks();"
        "const [x, y] = map.pixel(map.order[0]); const ratio = map.canvas.width / map.width;"
        "const data = map.canvas.getContext('2d').getImageData(Math.round(x * ratio),"
        " Math.round(y * ratio), 1, 1).data; return [x, y, [...data]]"
    )
    back = browser.execute_script("return tabweave.rgb('--surface')")
    assert inked[:3] != back and x > 0 and y > 0


def test_every_row_can_be_reached_by_keyboard(driver, tmp_path):
    """24 distinct rows, 10 of which once hid each other."""
    titanic_page(tmp_path / "titanic.html")
    opened(driver, tmp_path / "titanic.html")
    canvas = driver.find_element(By.CSS_SELECTOR, ".map canvas")
    rows, piles = driver.execute_script(
        "const { map } = document.querySelector('.map');"
        "return [map.m.rows, [...map.piles.values()].map((all) => all.length)]"
    )
    assert len(rows) == 24 and piles
    seen = []
    for _ in rows:
        canvas.send_keys(Keys.PAGE_DOWN)
        seen.append(driver.find_element(By.CSS_SELECTOR, ".inspector h3").text)
    assert len(set(seen)) == len(rows)
    canvas.send_keys(Keys.HOME)
    assert driver.find_element(By.CSS_SELECTOR, ".inspector h3").text == seen[0]


def test_search_filters_and_goes_to_what_it_finds(driver, tmp_path):
    titanic_page(tmp_path / "titanic.html")
    opened(driver, tmp_path / "titanic.html")
    field = driver.find_element(By.CSS_SELECTOR, "#map .find")
    field.send_keys("status=crew")
    says = driver.find_element(By.CSS_SELECTOR, "#map .says")
    assert re.match(r"\d+ rows found", says.text)
    field.send_keys(Keys.ENTER)
    cells = driver.find_elements(By.CSS_SELECTOR, ".inspector dd")
    assert "crew" in [cell.text for cell in cells]


def test_missing_numbers_are_found_as_other_missing_cells_are(driver, tmp_path):
    n = np.where(np.arange(40) % 4, 1_000_000.0 + np.arange(40), np.nan)
    report({"n": n, "k": list("ab") * 20}, tmp_path / "gaps.html")
    opened(driver, tmp_path / "gaps.html")
    field = driver.find_element(By.CSS_SELECTOR, "#map .find")
    for asked, found in (("n=missing", "10 rows"), ("n=1,000,003", "1 row"), ("n=", "0 rows")):
        field.clear()
        field.send_keys(asked)
        says = driver.find_element(By.CSS_SELECTOR, "#map .says").text
        assert says.startswith(f"{found} found")


def test_the_view_zooms_and_fits_again(browser, unit_lengths):
    canvas = browser.find_element(By.CSS_SELECTOR, ".map canvas")
    unit = "return document.querySelector('.map').map.view.unit"
    before = browser.execute_script(unit)
    canvas.send_keys("+")
    assert browser.execute_script(unit) > 1.3 * before
    across, up = unit_lengths(browser)
    assert across == pytest.approx(up, rel=0.01)
    canvas.send_keys("0")
    assert browser.execute_script(unit) == before


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_serious_for_axe(browser, scheme, axe):
    wanted = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": wanted})
    for details in browser.find_elements(By.TAG_NAME, "summary"):
        details.send_keys(Keys.ENTER)
    assert axe(browser) == []


def test_a_hundred_thousand_marks_are_drawn(driver, tmp_path):
    """How fast they move is measured by a benchmark; here, that all of them are there."""
    from tabweave.apps.report import page

    rng = np.random.default_rng(0)
    n = 100_000
    points = rng.normal(size=(n, 2)).round(3).tolist()
    found = {
        "layouts": [{"name": "drawn", "points": points}], "rows": list(range(n)),
        "copies": [1] * n, "of": n, "without": "",
        "columns": [{"name": "kind", "labels": ["a", "b"], "codes": (np.arange(n) % 2).tolist()}],
    }  # fmt: skip
    content = {"only": ["map"], "tabweave": "", "method": "", "rows": n, "target": None}
    (tmp_path / "many.html").write_text(page(content | {"clusters": None, "map": found}))
    opened(driver, tmp_path / "many.html")
    counts = driver.find_elements(By.CSS_SELECTOR, ".legend button .quiet")
    assert [c.text for c in counts] == ["50,000", "50,000"]
    assert driver.get_log("browser") == []


def test_many_columns_fold_search_and_sort(driver, tmp_path):
    rng = np.random.default_rng(0)
    rows = {f"c{i}": rng.integers(0, 2 + i % 5, 80).astype(float) for i in range(200)}
    report(rows, tmp_path / "wide.html")
    opened(driver, tmp_path / "wide.html")
    shown = (
        "return [...document.querySelectorAll('#columns .columns tbody tr')]"
        ".filter((row) => !row.hidden).length"
    )
    assert driver.execute_script(shown) == 25
    assert len(driver.find_elements(By.CSS_SELECTOR, "#couplings .heat tbody tr")) == 80
    field = driver.find_element(By.CSS_SELECTOR, "#columns .find")
    field.send_keys("c159")
    assert driver.execute_script(shown) == 1
    field.send_keys(Keys.BACKSPACE * 4)
    head = driver.find_elements(By.CSS_SELECTOR, "#columns .sort")[3]
    head.send_keys(Keys.ENTER)
    first = driver.find_element(By.CSS_SELECTOR, "#columns tbody tr td:nth-child(4)")
    assert first.text == "6"


QUESTION = "Was your problem solved quickly and in a friendly way, without sending you elsewhere?"


@pytest.mark.parametrize("width", [390, 1280])
def test_cells_beside_long_names_are_words_and_not_letters(driver, tmp_path, width):
    answers = ["Strongly disagree", "Neither agree nor disagree", "Strongly agree"]
    data = rows() | {QUESTION: np.array(answers, object)[np.arange(400) % 3]}
    report(data, tmp_path / "survey.html")
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    driver.get((tmp_path / "survey.html").as_uri())
    card = driver.find_element(By.CSS_SELECTOR, ".near .chosen dl")
    cells = card.find_elements(By.TAG_NAME, "dd")
    assert min(cell.size["width"] for cell in cells) > 0.35 * card.size["width"]
    assert "i0" not in card.text and driver.find_elements(By.CSS_SELECTOR, "#columns .small")
    driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_a_phone_shows_no_more_columns_than_it_says_and_whole_names(driver, tmp_path):
    rng = np.random.default_rng(0)
    rows = {f"q{i}": rng.choice(["yes", "no"], 60) for i in range(30)}
    report(rows, tmp_path / "many.html")
    phone = {"width": 390, "height": 800, "deviceScaleFactor": 1, "mobile": True}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", phone)
    opened(driver, tmp_path / "many.html")
    lines = driver.find_elements(By.CSS_SELECTOR, "#columns .columns tbody tr")
    assert sum(line.is_displayed() for line in lines) == 25
    rows = {f"column{i}": rng.choice(["yes", "no"], 60) for i in range(11)}
    rows["departments"] = rows["column0"]
    report(rows, tmp_path / "graph.html", target="departments")
    opened(driver, tmp_path / "graph.html")
    outside = driver.execute_script(
        "const svg = document.querySelector('#couplings svg').getBoundingClientRect();"
        "return [...document.querySelectorAll('#couplings svg text')].filter((text) => {"
        " const box = text.getBoundingClientRect();"
        " return box.left < svg.left - 1 || box.right > svg.right + 1;"
        "}).map((text) => text.textContent);"
    )
    driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert outside == []


def test_figures_are_written_as_people_read_them(driver, tmp_path):
    rng = np.random.default_rng(0)
    days = np.datetime64("2024-01-01") + rng.integers(0, 90, 80).astype("timedelta64[D]")
    tags = np.array([f"t{i}" for i in range(1100)])[rng.integers(0, 1100, 80)]
    rows = {"year": rng.integers(1983, 2022, 80), "day": days, "tag": tags, "k": tags > "t5"}
    report(rows, tmp_path / "years.html")
    opened(driver, tmp_path / "years.html")
    assert "min 1983" in driver.find_element(By.ID, "columns").text.replace("\n", " ")
    Select(driver.find_element(By.CSS_SELECTOR, "#map select")).select_by_visible_text("year")
    legend = [b.text.split() for b in driver.find_elements(By.CSS_SELECTOR, ".legend button")]
    ends = [(int(name[0]), int(name[2])) for name in legend if "to" in name]
    starts = [low for low, _ in ends[1:]] + [int(legend[-1][1])]
    assert [high + 1 for _, high in ends] == starts  # no year stands in two ranges
    canvas = driver.find_element(By.CSS_SELECTOR, ".map canvas")
    canvas.send_keys(Keys.ARROW_RIGHT)
    cells = driver.find_element(By.CSS_SELECTOR, ".inspector").text
    assert re.search(r"2024-\d\d-\d\d", cells) and " to " not in cells
    near = driver.find_elements(By.CSS_SELECTOR, "#neighbours h3 .quiet")
    assert near and all(re.match(r"distance \d\.\d{3}", line.text) for line in near)


def test_a_map_with_one_layout_offers_no_choice_of_it(driver, tmp_path):
    lines = [f"{'ab'[i % 2]},{i % 3}" for i in range(30)]
    (tmp_path / "rows.csv").write_text("\n".join(["kind,n", *lines]))
    words = [sys.executable, "-m", "tabweave.apps.cli", "map", "rows.csv"]
    subprocess.run(words, cwd=tmp_path, check=True, capture_output=True)
    opened(driver, tmp_path / "map.html")
    shown = [label.text for label in driver.find_elements(By.CSS_SELECTOR, "#map label")]
    assert "Colour by" in shown and "Layout" not in shown


def test_a_table_of_identifiers_says_that_nothing_is_left(driver, tmp_path):
    """It said that there was one column, and that 300 rows were too few to map."""
    report({"id": range(300), "code": [f"x{i}" for i in range(300)]}, tmp_path / "ids.html")
    driver.get((tmp_path / "ids.html").as_uri())
    for section in SECTIONS[SECTIONS.index("couplings") :]:
        words = driver.find_element(By.CSS_SELECTOR, f"#{section} .empty").text
        assert words == "All columns are dropped, so there is nothing to compare rows by."


def test_what_is_listed_and_counted_is_what_is_there(driver, tmp_path):
    rng = np.random.default_rng(0)
    base = rng.integers(0, 4, 90)
    rows = {
        f"q{i}": np.where(rng.random(90) < 0.8, base, 3 - base).astype(float) for i in range(20)
    }
    rows = {name: np.repeat(cells, 2) for name, cells in rows.items()}
    wide = np.array([*("W" * 70, "m" * 70), "a"])[np.repeat(base, 2) % 3]
    base = np.repeat(1.7e9 + 40 * base + rng.random(90), 2)
    report(rows | {"wide": wide, "when": base}, tmp_path / "many.html")
    opened(driver, tmp_path / "many.html")
    notes = driver.find_elements(By.CSS_SELECTOR, "#warnings li")
    (note,) = [line.text for line in notes if "only 4 values" in line.text]
    assert "q0, q1, q2, q3, q4 and 15 other columns: each is read as numbers" in note
    for section, words in (
        ("couplings", "The 100 strongest"),
        ("associations", "The 30 strongest"),
    ):
        summary = driver.find_elements(By.CSS_SELECTOR, f"#{section} summary")[-1]
        assert summary.text == f"{words} listed"  # of 231
    # Labels end where the picture does, the legend counts rows, and its ranges differ.
    assert driver.execute_script(
        "return [...document.querySelectorAll('#values .stage text')].every((text) =>"
        " text.getBoundingClientRect().right <= text.closest('svg').getBoundingClientRect().right)"
    )
    counts = driver.find_elements(By.CSS_SELECTOR, ".legend button .quiet")
    assert sum(int(count.text) for count in counts) == 180
    Select(driver.find_element(By.CSS_SELECTOR, "#map select")).select_by_visible_text("when")
    names = [name.text for name in driver.find_elements(By.CSS_SELECTOR, ".legend bdi")]
    assert len(set(names)) == len(names) == 5 and "1,700,000,0" in names[0]
