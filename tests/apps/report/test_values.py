import numpy as np
import pytest

from tabweave import Counts, DistanceHierarchy, Weave
from tabweave.apps.report import describe
from tabweave.apps.report.columns import trimmed
from tabweave.datasets import titanic

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
    rows = {"a": (rng.zipf(1.3, 2000) % 300).astype(str), "b": rng.choice(list("xyz"), 2000)}
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
