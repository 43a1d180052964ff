"""The page one works in: charts that filter, a table, find, steps back; on flights and Titanic.

Also the tasks which airports are alike, which rows are odd, and which columns belong together.
"""

import subprocess
import sys
import time

import numpy as np
import pytest

pytest.importorskip("selenium", reason="browser tests need selenium")
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select, WebDriverWait

from tabweave import datasets

pd = pytest.importorskip("pandas", reason="compares with pandas")

SIZES = {"phone": (390, 844), "small": (1024, 768), "large": (1440, 900)}
MILES = {"SFO": 2565, "LAX": 2475, "ORD": 719, "ATL": 746, "BOS": 187, "DCA": 214, "MIA": 1085,
         "TPA": 1010, "DTW": 500, "CLT": 529}  # fmt: skip


# What lies beyond the window, and controls whose words are wider than they are.
CUT = """
return [...document.querySelectorAll('body *')].filter((e) => e.checkVisibility()
  && !e.closest('.scroll, pre, .hidden, .skip, .frame-of-rows, #charts, .found')
  && (e.getBoundingClientRect().right > innerWidth + 1
    || (e.matches('button') && !e.closest('.line, .chart') && e.scrollWidth > e.clientWidth + 2)))
  .map((e) => e.outerHTML.slice(0, 90))
"""


def write_flights(path, n=2_000, seed=0):
    """Flights to ten airports; SFO and LAX are alike, and one row flies far in no time."""
    rng = np.random.default_rng(seed)
    dest = rng.choice([*MILES], n)
    west = np.isin(dest, ["SFO", "LAX"])
    miles = np.array([MILES[d] for d in dest])
    hour = rng.integers(5, 23, n)
    frame = pd.DataFrame({
        "carrier": np.where(west, rng.choice(["UA", "VX"], n), rng.choice(["AA", "B6", "DL"], n)),
        "dest": dest,
        "tailnum": [f"N{i:04}" for i in range(n)],
        "hour": hour,
        "dep_delay": np.where(rng.random(n) < 0.03, np.nan, np.round(rng.exponential(30, n) - 10)),
        "air_time": np.round(miles / 8 + rng.normal(20, 3, n)),
        "distance": miles,
        "day": pd.Timestamp("2013-01-01") + pd.to_timedelta(np.sort(rng.integers(0, 365, n)), "D"),
    })  # fmt: skip
    frame.loc[1_777, ["dest", "distance", "air_time"]] = "BOS", 187, 340
    frame.to_csv(path, index=False)
    return frame


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("page")


@pytest.fixture(scope="module")
def flights(folder):
    frame = write_flights(folder / "flights.csv")
    frame[["carrier", "dest", "hour", "dep_delay"]].to_csv(folder / "routes.csv", index=False)
    return frame


@pytest.fixture(scope="module")
def titanic(folder):
    data = datasets.titanic()
    frame = pd.DataFrame(data.columns).assign(survived=data.y)
    frame.to_csv(folder / "titanic.csv", index=False)
    return frame


@pytest.fixture(scope="module")
def address(folder, flights, titanic):
    pytest.importorskip("uvicorn", reason="the studio needs tabweave[studio]")
    pytest.importorskip("fastapi", reason="the studio needs tabweave[studio]")
    command = [sys.executable, "-m", "tabweave.apps.cli", "studio", str(folder), "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        yield server.stdout.readline().split()[-1]
        server.terminate()


def wait_for(question, seconds=120):
    """Ask until the answer is true; elements that the page has just replaced are asked again."""
    replaced = (StaleElementReferenceException,)
    return WebDriverWait(None, seconds, 0.1, replaced).until(lambda _: question())


class Page:
    """A table in the studio, as hand and keyboard reach it."""

    def __init__(self, driver, address, name):
        self.driver = driver
        self.resize("large")
        driver.get("about:blank")
        driver.get_log("browser")
        driver.get(address)
        wait_for(lambda: self.all("#files button"))
        next(button for button in self.all("#files button") if name in button.text).click()
        self.ready()

    def ready(self):
        wait_for(lambda: self.text("#status").startswith("Ready") or self.text("#problem"))
        wait_for(lambda: self.js("return studio.state.table !== null"))
        self.is_sound()

    def is_sound(self):
        assert self.text("#problem") == ""
        assert self.driver.get_log("browser") == []

    def resize(self, name):
        width, height = SIZES[name]
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)

    def all(self, selector):
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def one(self, selector):
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def text(self, selector):
        return self.one(selector).text

    def js(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def tab(self, name):
        self.one(f"#tab-{name}").click()
        return self.one(f"#{name}")

    def rows(self):
        """The rows in sight of the table, as text by column."""
        heads = [head.get_attribute("textContent") for head in self.all("#grid .heads .cell")]
        lines = [
            [
                cell.get_attribute("textContent")
                for cell in line.find_elements(By.CSS_SELECTOR, ".cell")
            ]
            for line in self.all("#grid .line[data-row]")
        ]
        return pd.DataFrame(lines, columns=heads)

    def passing(self):
        return int(self.text("#passing").split(" of ")[0].replace(",", "") or -1)

    def total(self):
        return int(self.one("#grid [role=grid]").get_attribute("aria-rowcount")) - 1

    def marks(self):
        """Rows of the marks that the map brings out."""
        return self.js(
            "const [map] = studio.maps;return [...map.m.rows].filter((_, i) => map.shows(i))"
        )


@pytest.fixture
def open_page(driver, address):
    yield lambda name: Page(driver, address, name)
    driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


@pytest.mark.slow
def test_a_chart_that_is_brushed_filters_map_table_and_clusters(open_page, flights):
    page = open_page("flights.csv")
    plot = page.one("[data-column=dep_delay] .plot")
    width = plot.size["width"]
    ActionChains(page.driver).move_to_element_with_offset(
        plot, 2 - width // 4, 0
    ).click_and_hold().move_by_offset(width // 2, 0).release().perform()
    chip = wait_for(lambda: page.text("#chips"))
    low, high = (
        float(part.replace(",", "")) for part in chip.split("×")[0].split(" ≤ dep_delay < ")
    )
    expected = flights[(flights.dep_delay >= low) & (flights.dep_delay < high)]
    assert 0 < len(expected) < len(flights)
    wait_for(lambda: page.passing() == page.total() == len(expected))
    wait_for(lambda: sorted(page.marks()) == expected.index.tolist())  # all rows are distinct
    shown = page.rows()
    assert shown.dep_delay.astype(float).between(low, high).all()
    cards = page.tab("clusters").text
    assert "of them pass the filters" in cards
    carrier = next(b for b in page.all("[data-column=carrier] .value") if "UA" in b.text)
    carrier.send_keys(Keys.ENTER)  # by keyboard
    both = expected[expected.carrier == "UA"]
    wait_for(lambda: page.passing() == len(both))
    assert "carrier = UA" in page.text("#chips")
    page.all("#chips .chip")[0].click()  # the first filter goes, the other stays
    wait_for(lambda: page.passing() == (flights.carrier == "UA").sum())
    page.driver.back()
    wait_for(lambda: page.passing() == len(both))
    page.is_sound()


@pytest.mark.slow
def test_thumbs_of_a_chart_move_by_arrow_keys(open_page, flights):
    page = open_page("flights.csv")
    thumb = page.all("[data-column=hour] [role=slider]")[0]
    thumb.send_keys(Keys.ARROW_RIGHT * 5)
    wait_for(lambda: "hour ≥" in page.text("#chips"))
    low = float(page.text("#chips").split("≥ ")[1].split()[0])
    wait_for(lambda: page.passing() == (flights.hour >= low).sum())
    assert float(thumb.get_attribute("aria-valuenow")) == 5
    thumb.send_keys(Keys.ESCAPE)
    wait_for(lambda: page.marks() == [*range(len(flights))] or len(page.marks()) == len(flights))
    page.is_sound()


@pytest.mark.slow
def test_the_table_has_all_rows_sorted_and_leads_to_rows_and_columns(open_page, flights):
    page = open_page("flights.csv")
    assert page.total() == len(flights)
    sort = next(b for b in page.all("#grid .sort") if b.text == "dep_delay")
    sort.click()
    smallest = flights.dep_delay.dropna().sort_values()
    wait_for(lambda: [*page.rows().dep_delay][:1] == [f"{smallest.iloc[0]:.0f}"])
    next(b for b in page.all("#grid .sort") if b.text == "dep_delay").click()
    wait_for(lambda: [*page.rows().dep_delay][:1] == [f"{smallest.iloc[-1]:.0f}"])
    frame = page.one("#grid [role=grid]")
    page.js("arguments[0].scrollTop = arguments[0].scrollHeight", frame)
    wait_for(lambda: [*page.rows().dep_delay][-1:] == ["missing"])  # gaps come last
    frame.send_keys(Keys.CONTROL, Keys.HOME)
    frame.send_keys(Keys.ARROW_DOWN, Keys.ARROW_RIGHT, Keys.ENTER)
    wait_for(lambda: page.text("#column-body"))
    row = int(page.one("#grid .line.picked").get_attribute("data-row"))
    assert flights.dep_delay[row] == smallest.iloc[-2]
    assert page.js("return studio.state.picked") == [row]  # and the map has a ring around it
    assert "distinct values" in page.text("#column-body")
    page.is_sound()


@pytest.mark.slow
def test_a_selection_comes_first_in_the_columns_that_distinguish_it(open_page, titanic):
    page = open_page("titanic.csv")
    next(b for b in page.all("[data-column=sex] .value") if "female" in b.text).click()
    wait_for(lambda: page.total() == (titanic.sex == "female").sum())
    heads = list(page.rows().columns)
    assert heads[:3] == ["row", "sex", "survived"]
    words = page.tab("chosen").text
    assert "470 rows selected" in words and "survived yes" in words.replace("\n", " ")


@pytest.mark.slow
def test_find_looks_at_text_for_text_and_takes_conditions(open_page, flights):
    page = open_page("flights.csv")
    find = page.one("#find")
    find.send_keys("sfo")
    wait_for(lambda: "SFO" in page.text("#found"))
    find.send_keys(Keys.CONTROL, "a")
    find.send_keys("nothing like it")
    wait_for(lambda: "0 values found" in page.text("#found"))
    find.send_keys(Keys.ENTER)  # chooses nothing
    assert page.js("return [studio.state.row, studio.state.filters.length]") == [None, 0]
    find.send_keys(Keys.CONTROL, "a")
    find.send_keys("dep_delay > 60")
    wait_for(lambda: "dep_delay > 60" in page.text("#found"))
    find.send_keys(Keys.ENTER)
    wait_for(lambda: page.passing() == (flights.dep_delay > 60).sum())
    find.send_keys("N0123")
    wait_for(lambda: "N0123" in page.text("#found"))
    find.send_keys(Keys.ARROW_DOWN, Keys.ENTER)
    wait_for(lambda: page.js("return studio.state.row") == 123)
    page.is_sound()


@pytest.mark.slow
def test_marks_of_several_rows_are_drawn_as_most_of_them_are(open_page, titanic):
    """First-class women, 140 survivors of 144, were drawn as those who did not survive."""
    page = open_page("titanic.csv")
    Select(page.one("#target")) if page.one("#methods").is_displayed() else page.one(
        "#question-title"
    ).click()
    Select(page.one("#target")).select_by_value("survived")
    page.one("#run").click()
    wait_for(
        lambda: page.js("return studio.shown.length && studio.shown[0].data.target") == "survived"
    )
    wait_for(lambda: page.js("return studio.maps[0].groups && studio.state.job !== null"))
    women = titanic.index[
        (titanic.status == "first") & (titanic.sex == "female") & (titanic.age == "adult")
    ]
    name, mixed = page.js(
        "const [map] = studio.maps; const i = map.head[map.indexOf(arguments[0])];"
        "return [map.groups.names[map.colouring[i]], map.mixed[i]]",
        int(women[0]),
    )
    assert (name, mixed) == ("yes", 0)
    men = titanic.index[
        (titanic.status == "first") & (titanic.sex == "male") & (titanic.age == "adult")
    ]
    assert titanic.survived[men].value_counts(normalize=True).max() < 0.9
    name, mixed = page.js(
        "const [map] = studio.maps; const i = map.head[map.indexOf(arguments[0])];"
        "return [map.groups.names[map.colouring[i]], map.mixed[i]]",
        int(men[0]),
    )
    assert (name, mixed) == ("no", 1)
    assert "mixed" in page.text(".legend")


@pytest.mark.slow
def test_a_reload_shows_the_same_and_computes_nothing(open_page, flights):
    page = open_page("flights.csv")
    job = page.js("return studio.state.job")
    page.one("#find").send_keys("hour < 9")
    wait_for(lambda: "hour < 9" in page.text("#found"))
    page.one("#find").send_keys(Keys.ENTER)
    wait_for(lambda: page.passing() == (flights.hour < 9).sum())
    page.tab("column")
    page.driver.refresh()
    page.ready()
    assert page.js("return studio.state.job") == job
    wait_for(lambda: page.passing() == (flights.hour < 9).sum())
    assert page.one("#column").is_displayed()


@pytest.mark.slow
def test_which_airports_are_alike_and_why(open_page):
    page = open_page("routes.csv")
    part = page.tab("values")
    Select(wait_for(lambda: part.find_elements(By.TAG_NAME, "select"))[0]).select_by_visible_text(
        "dest"
    )
    labels = [option.text for option in Select(page.one("#values-a")).options]
    distances = page.js(
        "return studio.shown[0].data.values.columns.find((c) => c.column === 'dest').distances"
    )
    nearest = np.argmin(np.array(distances) + np.diag([np.inf] * len(labels)), axis=1)
    assert labels[nearest[labels.index("SFO")]] == "LAX"
    for side, name in (("a", "SFO"), ("b", "LAX")):
        Select(page.one(f"#values-{side}")).select_by_visible_text(name)
    words = wait_for(
        lambda: "SFO and LAX" in page.text("#values-alike") and page.text("#values-alike")
    )
    assert words.index("carrier") < words.index("hour")  # what makes them alike comes first
    page.is_sound()


@pytest.mark.slow
def test_which_rows_are_odd(open_page):
    page = open_page("flights.csv")
    found = wait_for(lambda: page.tab("odd").find_elements(By.CSS_SELECTOR, "[data-row]"))
    rows = [int(link.get_attribute("data-row")) for link in found]
    assert 1_777 in rows
    found[rows.index(1_777)].click()
    wait_for(lambda: page.js("return studio.state.row") == 1_777)
    wait_for(lambda: page.one("#row-1").get_attribute("value") == "1777")
    page.is_sound()


@pytest.mark.slow
def test_which_columns_belong_together(open_page, flights):
    page = open_page("flights.csv")
    links = page.tab("together").find_elements(By.CSS_SELECTOR, "#together-pairs .link")
    pair = next(link for link in links if set(link.text.split(" – ")) == {"dest", "distance"})
    assert links.index(pair) < 3
    pair.click()
    table = wait_for(lambda: page.all("#together-cross table"))[0]
    counts = table.text
    assert f"{(flights.dest == 'SFO').sum():,}" in counts
    page.is_sound()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["flights.csv", "titanic.csv"])
def test_nothing_is_cut_at_any_width_and_axe_finds_nothing(open_page, axe, name):
    page = open_page(name)
    page.js("studio.look(3)")
    tabs = [tab.get_attribute("id").removeprefix("tab-") for tab in page.all("[role=tab]")]
    for size, (width, _) in SIZES.items():
        page.resize(size)
        time.sleep(0.5)
        cut = page.js(CUT)
        assert cut == [], size
        assert page.js("return document.documentElement.scrollWidth") == width
    share = page.js("return byId('map').offsetWidth / byId('results').offsetWidth")
    assert share == pytest.approx(0.65, abs=0.01)
    splitter = page.one("#split-side")
    splitter.send_keys(Keys.ARROW_LEFT * 3)
    assert splitter.get_attribute("aria-valuenow") == "56"
    for tab in tabs:
        page.tab(tab)
        time.sleep(0.3)
        assert axe(page.driver) == [], tab
