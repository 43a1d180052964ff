import numpy as np
import pandas as pd
import pytest

from tabweave.apps.report import describe
from tabweave.apps.report.columns import near_and_far
from tabweave.apps.report.describe import describe_outliers, learn_outliers, odd_columns
from tabweave.apps.report.reading import read

N = 200
RNG = np.random.default_rng(0)
PLAIN = {"a": RNG.choice(list("pqr"), N).astype(object), "x": RNG.normal(size=N)}


def notes(rows, **options):
    return {(note["code"], note["column"]) for note in describe(rows, **options)["warnings"]}


def test_an_ordinary_table_has_none():
    assert notes(PLAIN) == set()
    assert notes(PLAIN, target=RNG.choice(["yes", "no"], N)) == set()


@pytest.mark.filterwarnings("default:column 'z' holds:UserWarning")
@pytest.mark.parametrize(
    ("code", "cells"),
    [
        ("identifier", [f"id-{i}" for i in range(N)]),
        ("identifier", RNG.permutation(N).astype(float)),
        ("constant", ["same"] * N),
        ("constant", [3.0] * N),
        ("empty", [None] * N),
        ("missing", [None, "u", "v", "u"] * (N // 4)),
        ("missing", [np.nan, 1.5, 2.5, 0.25] * (N // 4)),
        ("codes", RNG.integers(0, 3, N)),
        ("far", np.append(RNG.normal(size=N - 1), 1e6)),
        ("far", np.append(RNG.normal(size=N - 1), -999)),
        ("rare", [f"w{i}" for i in RNG.integers(0, 80, N)]),
        ("disguised", RNG.choice(["u", "v", "?"], N)),
        ("doubt", ["none yet", *(str(i % 30) for i in range(N - 1))]),
        ("doubt", [f"{'$€'[i % 2]}{i % 30}.50" for i in range(N)]),
        ("doubt", [f"{1 + i % 9}/{1 + i % 7}/2024" for i in range(N)]),
        ("spelling", RNG.choice(["Red", "red ", "blue"], N)),
        ("twins", np.char.add("is ", PLAIN["a"].astype(str))),
    ],
)
def test_each_kind_is_noticed(code, cells):
    found = notes(PLAIN | {"z": cells})
    wanted = {("twins", "a")} if code == "twins" else {(code, "z")}
    assert wanted <= found
    assert all(column == "z" for _, column in found - wanted)


def test_what_is_far_out_is_named_and_long_tails_are_not():
    rows = PLAIN | {"z": np.append(np.linspace(1, 9, N - 1), 999_999)}
    text = next(n["text"] for n in describe(rows)["warnings"] if n["code"] == "far")
    assert text == "holds 999999, far above all others, which are at most 9; a typo?"
    rows["z"] = np.append(np.linspace(1, 9, 5000), [888, 999, 999, 999, 1111])
    rows = {name: np.resize(cells, 5005) for name, cells in rows.items()}
    text = next(n["text"] for n in describe(rows)["warnings"] if n["code"] == "far")
    assert text.startswith("holds 888, 999, 1111, far above all others")  # each once
    for tail in (RNG.lognormal(0, 2, N), RNG.exponential(size=N), RNG.pareto(1.5, N)):
        near, under, over = near_and_far(tail)
        assert len(near) + len(over) == N and not len(under)
        assert not len(over) or over.min() > 3 * near.max()


def test_identifiers_are_left_out_and_said_so():
    out = describe(PLAIN | {"z": [f"id-{i}" for i in range(N)]})
    assert "z" not in out["neighbors"]["columns"]
    assert out["columns"][2]["role"] == "left out"


def test_numbers_that_are_all_different_are_no_identifiers():
    wide = RNG.permutation(N) * 1000.0
    assert notes({"a": PLAIN["a"], "z": wide}) == set()


def test_copies():
    doubled = {name: np.concatenate([cells, cells]) for name, cells in PLAIN.items()}
    (note,) = describe(doubled)["warnings"]
    assert (note["code"], note["level"]) == ("duplicates", "warning")
    assert note["text"].startswith("200 rows (50.0 %) are copies")
    once = {name: np.append(cells, cells[:1]) for name, cells in PLAIN.items()}
    assert describe(once)["warnings"][0]["text"].startswith("1 row (0.5 %) is a copy of another")
    few = describe({"a": list("xy") * 10, "b": list("uuvv") * 5})["warnings"]
    assert [note["level"] for note in few] == ["note"]  # 4 combinations: copies are no surprise


def leaks(rows, target):
    return {column for code, column in notes(rows, target=target) if code == "leakage"}


def test_columns_that_give_the_target_away():
    y = RNG.choice(["yes", "no"], N)
    closed = np.where(y == "yes", "shut", "open")
    late = np.where(y == "yes", 50 + RNG.normal(size=N), RNG.normal(size=N))
    weak = np.where(RNG.random(N) < 0.8, closed, RNG.permutation(closed))
    rows = PLAIN | {"closed": closed, "late": late, "weak": weak}
    assert leaks(rows, y) == {"closed", "late"}
    amount = RNG.normal(size=N)
    assert leaks(PLAIN | {"cents": 100 * amount}, amount) == {"cents"}


def test_many_values_alone_give_nothing_away():
    names = np.array([f"w{i}" for i in RNG.integers(0, 60, N)])
    assert leaks(PLAIN | {"name": names}, RNG.choice(["yes", "no"], N)) == set()


def test_rows_that_contradict_each_other():
    rows = {"a": list("xxyy") * 25, "y": list("pqpp") * 25}
    (note,) = [n for n in describe(rows, target="y")["warnings"] if n["code"] == "conflicts"]
    assert "75.0 %" in note["text"]


def test_rare_classes():
    y = ["yes"] * (N - 1) + ["no"]
    assert ("imbalance", "target") in notes(PLAIN, target=y)


def test_warnings_come_before_notes():
    rows = PLAIN | {"b": [None, "u", "v", "u"] * (N // 4), "c": ["same"] * N}
    levels = [note["level"] for note in describe(rows)["warnings"]]
    assert levels == sorted(levels, reverse=True) and set(levels) == {"warning", "note"}


def test_dates_written_in_several_ways_are_not_called_an_identifier():
    days = [np.datetime64("2024-01-01") + i for i in range(700)]
    cells = [str(d) if i % 2 else "/".join(reversed(str(d).split("-"))) for i, d in enumerate(days)]
    rows = {"day": cells, "a": np.resize(PLAIN["a"], 700)}
    found = describe(rows)
    (note,) = [n for n in found["warnings"] if n["column"] == "day" and n["level"] == "warning"]
    assert note["code"] == "doubt" and note["text"] == (
        "holds dates written in several ways: write all as 2024-01-31 to have them read as dates; "
        "it is not used below"
    )
    assert found["dropped"].startswith("dropped: day (dates written in several ways")


def test_values_that_differ_in_case_are_noted_once():
    found = describe(PLAIN | {"z": RNG.choice(["Red", "red", "blue"], N)})["warnings"]
    assert [note["code"] for note in found if note["column"] == "z"] == ["spelling"]
    found = describe(PLAIN | {"z": np.array([2, "2", "u"], object)[RNG.integers(0, 3, N)]})
    assert [n["code"] for n in found["warnings"] if n["column"] == "z"] == ["doubt"]  # in type


def test_odd_cells_of_a_sorted_table_are_judged_by_all_of_it():
    """Flights come by date: what is usual in December is unknown to rows of January."""
    n = 26_000
    month, rng = np.arange(n) // (n // 12 + 1) + 1, np.random.default_rng(0)
    rows = pd.DataFrame({"month": [f"m{m}" for m in month]})
    rows["heat"] = 30.0 - 4 * np.abs(month - 7) + rng.normal(size=n)
    rows["carrier"] = np.where(month < 10, "UA", "AA")
    rows["luck"] = rng.choice(["h", "t"], n)
    rows.loc[[900, 23_000, 24_000, 25_000], "heat"] *= 100
    reading = read(rows, None)
    model = learn_outliers(reading, 0)
    late = odd_columns(reading, model, np.arange(21_000, 22_000))["odd"]["codes"]
    assert np.mean(np.array(late) >= 0) < 0.06
    found = describe_outliers(reading, model)
    assert found["of"] == 20_000
    at = [int(cell["row"]) for cell in found["cells"] if cell["column"] == "heat"]
    assert len(set(at[:4]) & {900, 23_000, 24_000, 25_000}) >= 2
    assert any(cell["row"] >= 20_000 for cell in found["cells"])
