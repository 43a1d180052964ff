"""What people come to the studio for, done in a browser by mouse and keyboard, on two tables.

Compare two groups; label rows and export them; find rows like one, but of another carrier.
"""

import subprocess
import sys
import time

import numpy as np
import pytest

pytest.importorskip("selenium", reason="browser tests need selenium")
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select, WebDriverWait

from tabweave import datasets

pd = pytest.importorskip("pandas", reason="compares with pandas")


def write_flights(path, n=2_000, seed=0):
    """Flights as people have them: carriers, routes, dates, gaps, and delays that grow by hour."""
    rng = np.random.default_rng(seed)
    carrier = rng.choice(["UA", "AA", "DL", "B6", "EV"], n, p=[0.3, 0.2, 0.2, 0.2, 0.1])
    routes = {"UA": ["SFO", "ORD", "SEA"], "AA": ["DFW", "MIA", "SEA"], "DL": ["ATL", "SLC"],
              "B6": ["BOS", "MCO"], "EV": ["CLT", "ORD"]}  # fmt: skip
    miles = {"SFO": 2565, "ORD": 719, "SEA": 2402, "DFW": 1372, "MIA": 1085, "ATL": 746,
             "SLC": 1969, "BOS": 187, "MCO": 937, "CLT": 529}  # fmt: skip
    dest = np.array([rng.choice(routes[c]) for c in carrier])
    hour = rng.integers(5, 23, n)
    delay = np.round(rng.exponential(4.0 * (hour - 4), n) - 10)
    frame = pd.DataFrame({
        "carrier": carrier,
        "dest": dest,
        "tailnum": [f"N{i % 90:03}{c}" for i, c in enumerate(carrier)],
        "hour": hour,
        "dep_delay": np.where(rng.random(n) < 0.03, np.nan, delay),
        "distance": [miles[d] for d in dest],
        "day": pd.Timestamp("2013-01-01") + pd.to_timedelta(np.sort(rng.integers(0, 365, n)), "D"),
    })  # fmt: skip
    frame.to_csv(path, index=False)
    return frame


@pytest.fixture(scope="module")
def flights(tmp_path_factory):
    path = tmp_path_factory.mktemp("tasks") / "flights.csv"
    frame = write_flights(path)
    frame.attrs["path"] = path
    return frame


@pytest.fixture(scope="module")
def titanic():
    data = datasets.titanic()
    return pd.DataFrame(data.columns).assign(survived=data.y)


@pytest.fixture(scope="module")
def studio_of_flights(flights):
    pytest.importorskip("uvicorn", reason="the studio needs tabweave[studio]")
    pytest.importorskip("fastapi", reason="the studio needs tabweave[studio]")
    folder = str(flights.attrs["path"].parent)
    command = [sys.executable, "-m", "tabweave.apps.cli", "studio", folder, "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        yield server.stdout.readline().split()[-1]
        server.terminate()


def wait_for(question, seconds=40):
    """Ask until the answer is true; elements that the page has just replaced are asked again."""
    replaced = (StaleElementReferenceException,)
    return WebDriverWait(None, seconds, 0.1, replaced).until(lambda _: question())


class Page:
    """A page as the hand and the keyboard reach it."""

    def __init__(self, driver, address, name):
        self.driver = driver
        driver.get("about:blank")
        driver.get_log("browser")
        driver.get(address)
        kind = "#files button" if name.endswith(".csv") else "#tables button"
        wait_for(lambda: self.all(kind))
        next(button for button in self.all(kind) if name in button.text).click()
        wait_for(lambda: self.text("#status").startswith("Ready") or self.text("#problem"))
        assert self.text("#problem") == ""

    def all(self, selector):
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def one(self, selector):
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def text(self, selector):
        return self.one(selector).text

    def labelled(self, label):
        """What a screen reader calls so."""
        return self.one(f'[aria-label="{label}"]')

    def tab(self, name):
        """Go to a panel by the arrow keys of the tabs."""
        self.one('[role=tab][aria-selected="true"]').send_keys(Keys.ARROW_RIGHT)
        while self.driver.switch_to.active_element.get_attribute("id") != f"tab-{name}":
            self.driver.switch_to.active_element.send_keys(Keys.ARROW_RIGHT)
        assert self.one(f"#{name}").is_displayed()

    def click(self, selector, begins=""):
        """Click what a selector leads to, as soon as it is there, again if it was just replaced."""

        def clicked():
            for node in self.all(selector):
                if node.text.startswith(begins):
                    node.click()
                    return True
            return False

        wait_for(clicked)

    def press_value(self, column, value):
        """Press the bar of a value in the chart of a column."""
        self.click(f'.chart[data-column="{column}"] .value', value)

    def name_rows(self, name, n_rows):
        """Name what is filtered, when the page says that it is."""
        before = len(self.all(".groups-table tbody tr"))
        wait_for(lambda: self.one("#groups-add").is_enabled())
        self.one("#groups-name").send_keys(name, Keys.ENTER)
        wait_for(lambda: len(self.all(".groups-table tbody tr")) == before + 1)
        assert f"{n_rows:,}" in self.all(".groups-table tbody tr")[-1].text

    def shares(self, caption):
        """The lines of a table under its caption: the first cell and the others."""
        for table in self.all("table"):
            if table.find_elements(By.TAG_NAME, "caption") and (
                table.find_element(By.TAG_NAME, "caption").get_attribute("textContent") == caption
            ):
                lines = table.find_elements(By.CSS_SELECTOR, "tbody tr")
                cells = (line.find_elements(By.CSS_SELECTOR, "th, td") for line in lines)
                return {first.text: [cell.text for cell in rest] for first, *rest in cells}
        return {}

    def downloaded(self, name):
        path = self.driver.downloads / name
        wait_for(lambda: path.exists() and path.stat().st_size)
        time.sleep(0.2)  # until the last block is there
        return path

    def forget_groups(self):
        while buttons := self.all('.groups-table [aria-label^="Remove"]'):
            before = len(buttons)
            buttons[0].click()
            wait_for(lambda n=before: len(self.all(".groups-table tbody tr")) < n)

    def close(self):
        errors = [entry["message"] for entry in self.driver.get_log("browser")]
        assert [text for text in errors if "status of 4" not in text] == []


@pytest.fixture
def page_of(driver, studio_of_flights):
    pages = []

    def open_page(name):
        pages.append(Page(driver, studio_of_flights, name))
        return pages[-1]

    yield open_page
    for page in pages:
        page.close()


def percent(text):
    return float(text.replace("%", "").replace("<", "").strip()) / 100


def test_two_groups_of_titanic_are_compared(page_of, titanic):
    page = page_of("titanic")
    page.tab("groups")
    women, children = titanic["sex"] == "female", titanic["age"] == "child"
    page.press_value("sex", "female")
    page.name_rows("women", women.sum())
    page.press_value("sex", "female")
    page.press_value("age", "child")
    page.name_rows("children", children.sum())
    page.press_value("age", "child")
    Select(page.one("#groups-a")).select_by_visible_text("women")
    Select(page.one("#groups-b")).select_by_visible_text("children")
    survived = wait_for(lambda: page.shares("survived: shares of values in both groups"))
    for value, (ours, theirs) in survived.items():
        for shown, rows in ((ours, women), (theirs, children)):
            share = (titanic["survived"][rows] == value).mean()
            assert percent(shown) == pytest.approx(share, abs=0.006)
    shares = page.shares("Shares of the distance between the groups")
    assert next(iter(shares)) == "age"
    assert sum(percent(cells[0]) for cells in shares.values()) == pytest.approx(1, abs=0.03)
    page.forget_groups()


def test_two_groups_of_flights_are_compared(page_of, flights):
    page = page_of("flights.csv")
    page.tab("groups")
    for carrier in ("UA", "DL"):
        page.press_value("carrier", carrier)
        page.name_rows(carrier, (flights["carrier"] == carrier).sum())
        page.press_value("carrier", carrier)
    Select(page.one("#groups-a")).select_by_visible_text("UA")
    Select(page.one("#groups-b")).select_by_visible_text("DL")
    dest = wait_for(lambda: page.shares("dest: shares of values in both groups"))
    assert percent(dest["SFO"][0]) > 0.2 and percent(dest["SFO"][1]) == 0
    assert percent(dest["ATL"][0]) == 0 and percent(dest["ATL"][1]) > 0.3
    columns = page.shares("Shares of the distance between the groups")
    assert {"carrier", "dest", "tailnum"} & set(list(columns)[:2])
    page.forget_groups()


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_flights_are_labelled_and_exported_every_row(page_of, flights, form):
    page = page_of("flights.csv")
    page.tab("groups")
    find = page.one(".mapbar .find")
    find.send_keys("dep_delay > 60")
    wait_for(lambda: "only rows with" in page.text("#found"))
    find.send_keys(Keys.ARROW_DOWN, Keys.ENTER)
    late = flights["dep_delay"] > 60
    wait_for(lambda: page.all("#chips .chip"))
    page.name_rows("late", late.sum())
    label = page.one("#groups-label")
    label.clear()
    label.send_keys("verdict")
    page.one(f"#groups-{form}").click()
    wait_for(lambda: "2,000 rows" in page.text("#groups-says"))
    read = pd.read_csv if form == "csv" else pd.read_parquet
    exported = read(page.downloaded(f"flights-labelled.{form}"))
    assert list(exported.columns) == [*flights.columns, "verdict"]
    assert (exported["verdict"].fillna("") == np.where(late, "late", "")).all()
    assert exported["tailnum"].tolist() == flights["tailnum"].tolist()
    np.testing.assert_array_equal(exported["dep_delay"], flights["dep_delay"])
    page.forget_groups()


def test_passengers_are_labelled_and_exported_all_and_not_the_distinct_ones(page_of, titanic):
    page = page_of("titanic")
    page.tab("groups")
    page.press_value("status", "first")
    page.press_value("sex", "female")
    ladies = (titanic["status"] == "first") & (titanic["sex"] == "female")
    wait_for(lambda: len(page.all("#chips .chip")) >= 2)
    page.name_rows("ladies", ladies.sum())
    page.one("#groups-csv").click()
    exported = pd.read_csv(page.downloaded("titanic-labelled.csv"))
    assert len(exported) == len(titanic) == 2201
    assert ((exported["label"] == "ladies") == ladies).all()
    page.forget_groups()


def chosen_row(page, row):
    """Choose a row by a click on its line of the table."""
    page.click(f'.frame-of-rows [data-row="{row}"] .cell.first')


def test_flights_like_this_one_but_of_another_carrier(page_of, flights):
    page = page_of("flights.csv")
    row = int((flights["carrier"] != "UA").idxmax())
    chosen_row(page, row)
    page.tab("like")
    wait_for(lambda: page.all("#like-near tbody tr"))
    page.click(".like-card summary")
    cell = wait_for(lambda: page.labelled("carrier, cell"))
    cell.send_keys(Keys.CONTROL, "a", Keys.NULL, "UA", Keys.TAB)
    Select(wait_for(lambda: page.labelled("carrier counts"))).select_by_visible_text(
        "must be equal"
    )
    Select(page.labelled("tailnum counts")).select_by_visible_text("not at all")
    n_united = f"{(flights['carrier'] == 'UA').sum():,}"
    wait_for(lambda: n_united in page.text("#like-says"))

    def rows():
        links = page.all("#like-near tbody .link")
        return [int(link.get_attribute("data-row")) for link in links]

    united = wait_for(lambda: rows())
    assert len(united) == 20 and set(flights["carrier"][united]) == {"UA"}
    near = np.abs(flights["hour"][united] - flights["hour"][row]).mean()
    assert near < np.abs(flights["hour"] - flights["hour"][row]).mean()
    # A neighbour is looked at: the list stays, and it is marked on the map.
    page.click("#like-near tbody .link")
    wait_for(lambda: page.text("#like-other"))
    assert rows() == united
    marks = page.driver.execute_script("return studio.state.nearMarks.length")
    assert marks == 20
    # Back: the row itself; back again: the card before the last change.
    page.driver.back()
    wait_for(lambda: page.text("#like-other") == "")
    assert rows() == united
    page.driver.back()
    wait_for(
        lambda: Select(page.labelled("tailnum counts")).first_selected_option.text == "as it is"
    )
    wait_for(lambda: rows() != united)
    assert set(flights["carrier"][rows()]) == {"UA"}
    # A reload computes nothing again, and brings the list back.
    before = rows()
    page.driver.refresh()
    wait_for(lambda: page.all("#like-near tbody tr"))
    assert wait_for(rows) == before


def test_passengers_like_this_one_but_in_second_class(page_of, titanic):
    page = page_of("titanic")
    chosen_row(page, 0)
    page.tab("like")
    wait_for(lambda: page.all("#like-near tbody tr"))
    equal = (titanic.drop(columns="survived") == titanic.drop(columns="survived").loc[0]).all(
        axis=1
    )
    assert f"{equal.sum() - 1} rows are equal to it" in page.text("#like-says")
    page.click(".like-card summary")
    cell = wait_for(lambda: page.labelled("status, cell"))
    cell.send_keys(Keys.CONTROL, "a", Keys.NULL, "second", Keys.TAB)
    Select(wait_for(lambda: page.labelled("status counts"))).select_by_visible_text("must be equal")
    first = wait_for(
        lambda: "285 rows" in page.text("#like-says") and page.all("#like-near tbody tr")[0]
    )
    same = (titanic["status"] == "second") & (
        titanic[["age", "sex"]] == titanic.loc[0, ["age", "sex"]]
    ).all(axis=1)
    assert f"{same.sum()} equal rows" in first.text and "nothing" in first.text
