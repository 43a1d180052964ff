"""Columns of a report: distances and trees of their values, couplings."""

import numpy as np
import pytest

from tabweave import Counts, DistanceHierarchy, Weave, associations
from tabweave.apps.report import describe
from tabweave.apps.report.columns import describe_gaps, trimmed
from tabweave.apps.report.reading import read
from tabweave.datasets import titanic
from tabweave.plots import circle_order

pytest.importorskip("pandas", reason="value_distances gives a pandas frame")


def test_distances_are_those_of_the_embedder():
    rows = titanic().columns
    weave = Weave().fit(rows)
    for column in describe(rows, method="weave")["values"]["columns"]:
        frame = weave.value_distances(column["column"])
        ours = frame.loc[column["labels"], column["labels"]].to_numpy()
        np.testing.assert_allclose(column["distances"], ours, rtol=5e-3)
        counts = weave.counts_.value_counts[weave.counts_.span(column["column"])]
        assert dict(zip(frame.index, counts, strict=True)) == dict(
            zip(column["labels"], column["counts"], strict=True)
        )


def test_trees_are_those_of_the_distance_hierarchy():
    rows = titanic().columns
    trees = DistanceHierarchy().fit(rows).trees_
    for column in describe(rows)["values"]["columns"]:
        members = [[label] for label in column["labels"]]
        for a, b, height in column["merges"]:
            apart = trees[column["column"]].distance(members[a][0], members[b][0])
            assert apart / 2 == pytest.approx(height, rel=1e-3)
            members.append(members[a] + members[b])
        assert sorted(members[-1]) == sorted(column["labels"])


def test_joined_values_stand_together():
    rows = titanic().columns
    for column in describe(rows)["values"]["columns"]:
        places = [{i} for i in range(len(column["labels"]))]
        for a, b, _ in column["merges"]:
            places.append(places[a] | places[b])
            assert max(places[-1]) - min(places[-1]) == len(places[-1]) - 1


def test_long_columns_show_their_most_frequent_values():
    rng = np.random.default_rng(0)
    rows = {"a": [f"v{i}" for i in rng.zipf(1.3, 2000) % 300], "b": rng.choice(list("xyz"), 2000)}
    (a,) = [c for c in describe(rows)["values"]["columns"] if c["column"] == "a"]
    values, counts = np.unique(rows["a"], return_counts=True)
    assert len(a["labels"]) == 30 and a["of"] == len(values)
    assert sorted(a["counts"]) == sorted(np.sort(counts)[-30:].tolist())
    counted = dict(zip(values, counts, strict=True))
    assert a["counts"] == [counted[label] for label in a["labels"]]


def test_trimming_keeps_what_the_other_columns_count():
    rows = {"a": list("aaabbc"), "b": list("xyxyxy")}
    few = trimmed(Counts.of(rows), "a", 2)
    assert few.labels == (("a", "b"), ("x", "y"))
    np.testing.assert_array_equal(few.block("a", "b"), [[2, 1], [1, 1]])
    np.testing.assert_array_equal(few.block("b", "b"), [[3, 0], [0, 3]])


def test_values_that_python_takes_for_equal_stay_apart():
    column = describe({"a": [True, 1, True, "1"] * 5, "b": list("xyxz") * 5})["values"]["columns"]
    (a,) = [c for c in column if c["column"] == "a"]
    assert sorted(a["labels"]) == ["1", "1", "True"]
    assert sorted(a["counts"]) == [5, 5, 10]


# -- couplings -----------------------------------------------------------------------------------

RNG = np.random.default_rng(0)
A = RNG.integers(0, 3, 400)
ROWS = {
    "a": A.astype(str),
    "b": np.where(RNG.random(400) < 0.8, A, RNG.integers(0, 3, 400)).astype(str),
    "c": RNG.integers(0, 5, 400).astype(str),
    "n": A + RNG.normal(size=400) / 4,
}


def test_bars_show_the_numbers_that_are_not_far_out():
    rng = np.random.default_rng(0)
    numbers = rng.normal(50, 10, 400)
    numbers[7] = 999_999
    z = describe({"z": numbers, "a": rng.choice(list("xy"), 400)})["columns"][0]
    others = np.delete(numbers, 7)
    assert z["beyond"] == 1 and sum(z["bars"]) == 399
    assert z["drawn"] == pytest.approx([others.min(), others.max()], rel=1e-5)
    assert z["bars"] == np.histogram(others, len(z["bars"]))[0].tolist()
    assert z["summary"]["max"] == 999_999


def test_both_sections_show_one_strength_of_a_pair():
    found, matrix = describe(ROWS), associations(ROWS).matrix()
    pairs, tested = found["couplings"]["pairs"], found["associations"]["pairs"]
    assert {(p["a"], p["b"]) for p in pairs[:3]} == {("a", "b"), ("a", "n"), ("b", "n")}
    for pair in [*pairs, *tested]:
        assert pair["strength"] == pytest.approx(matrix.loc[pair["a"], pair["b"]], rel=1e-3)
    assert [p["strength"] for p in pairs] == sorted([p["strength"] for p in pairs], reverse=True)


def test_independent_columns_have_no_line():
    rows = {"a": list("xy") * 50, "b": list("uuvv") * 25}
    assert describe(rows)["couplings"]["pairs"] == []
    assert describe({"a": list("xyz")})["couplings"] is None


def test_tied_columns_stand_side_by_side():
    tied = np.zeros((6, 6))
    for i, j in ((0, 3), (1, 4), (2, 5)):
        tied[i, j] = tied[j, i] = 0.9
    order = circle_order(tied).tolist()
    assert {frozenset(order[i : i + 2]) for i in (0, 2, 4)} == {
        frozenset(p) for p in ((0, 3), (1, 4), (2, 5))
    }


def test_the_target_is_always_drawn():
    rng = np.random.default_rng(1)
    common = rng.integers(0, 2, 200)
    rows = {
        f"c{i}": np.where(rng.random(200) < 0.9, common, 1 - common).astype(str) for i in range(95)
    }
    found = describe(rows | {"y": rng.integers(0, 2, 200).astype(str)}, target="y")["couplings"]
    assert len(found["nodes"]) == 80 and found["of"] == 96
    assert "y" in {node["name"] for node in found["nodes"]}


@pytest.mark.parametrize("end", [[None, []], [[], None, ["a"]]])
def test_empty_sets_are_no_gaps(end):
    found = describe_gaps(read({"tags": [["a"], ["a", "b"]] * 10 + end}, None))
    assert [p["rows"] for p in found["patterns"] if p["missing"] == ["tags"]] == [1]


def test_columns_say_how_they_were_read_where_that_is_not_plain():
    rows = {
        "day": [f"{1 + i % 28:02}.03.2024" for i in range(60)],
        "paid": [f"{10 + i % 7},50 €" for i in range(60)],
        "kind": list("abc") * 20,
        "size": [0.5 + i % 11 for i in range(60)],
    }
    found = {column["name"]: column.get("read") for column in describe(rows)["columns"]}
    assert found == {
        "day": "dates as text, day first",
        "paid": "money written as text",
        "kind": None,
        "size": None,
    }


def test_free_text_is_left_out_with_what_is_true_of_it():
    rng = np.random.default_rng(0)
    words = "the plane was late rain staff rude food good seat legroom pilot kind".split()
    rows = {
        "review": [" ".join(rng.choice(words, 9)) for _ in range(300)],
        "stars": rng.choice(["1", "3", "5"], 300),
        "city": rng.choice(["Rome", "Oslo", "Bern"], 300),
    }
    found = describe(rows)
    column = found["columns"][0]
    assert column["role"] == "left out" and column["read"] == "is free text that hardly repeats"
    (note,) = [note for note in found["warnings"] if note["column"] == "review"]
    assert note["code"] == "text" and "compare it by spelling; for a page, make" in note["text"]
