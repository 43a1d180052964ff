import json
import sys

import numpy as np
import pytest

from tabweave import Counts, DistanceHierarchy, Table, ValueMetric, Weave
from tabweave.apps.report import describe
from tabweave.datasets import led24, titanic


@pytest.fixture(scope="module")
def found(mixed):
    return describe(mixed(), target="group")


def test_is_plain_json_and_repeats(found, mixed):
    text = json.dumps(found, allow_nan=False)
    assert json.loads(text) == found
    assert describe(mixed(), target="group") == found


def test_says_what_columns_hold():
    rows = {
        "a": ["x", "y", None, "x"],
        "n": [1.0, np.nan, 3.0, 5.0],
        "s": [["u", "v"], ["u"], [], ["w"]],
    }
    a, n, s = describe(rows)["columns"]
    assert (a["missing"], a["distinct"], a["top"]) == (1, 2, [["x", 2], ["y", 1]])
    assert (n["missing"], n["distinct"]) == (1, 3)
    assert (n["summary"]["min"], n["summary"]["median"], n["summary"]["mean"]) == (1, 3, 3)
    assert sum(n["bars"]) == 3
    assert (s["kind"], s["top"][0]) == ("set", ["u", 2])


def test_facts(found):
    assert (found["rows"], found["cells"], found["missing"], found["target"]) == (
        300,
        1500,
        0,
        "group",
    )
    roles = {column["name"]: column["role"] for column in found["columns"]}
    assert roles["group"] == "target" and roles["colour"] == "column"
    assert list(roles)[-1] == "group"


def test_the_embedding_does_not_see_the_target(found):
    assert found["neighbors"]["columns"] == ["colour", "shape", "size", "noise"]
    assert "group" not in found["weights"]
    assert all(column["column"] != "group" for column in found["values"]["columns"])
    assert found["map"]["columns"][0]["name"] == "group"


def test_target_by_name_or_by_values_is_the_same(found, mixed):
    rows = mixed()
    group = rows.pop("group")
    given = describe(rows, target=group)
    assert given["target"] == "target"
    assert given["clusters"] == json.loads(
        json.dumps(found["clusters"]).replace('"group"', '"target"')
    )


def test_a_target_of_few_whole_numbers_is_classes_and_of_many_is_numbers():
    rows = {"a": list("xyz") * 20}
    kinds = [
        describe(rows, target=target)["columns"][-1]["kind"]
        for target in (np.tile([0, 1, 1], 20), np.arange(60) * 1.5)
    ]
    assert kinds == ["nominal", "numeric"]


def test_progress_rises_from_0_to_1(mixed):
    steps = []
    describe(mixed(50), progress=steps.append)
    shares = [step.done for step in steps]
    assert shares == sorted(shares) and shares[0] == 0 and shares[-1] == 1
    assert steps[0].step == "reading" and {step.total for step in steps} == {1.0}


@pytest.mark.parametrize(
    "method", ["auto", "onehot", "hamming", "CDE", Weave(), Weave(n_clusters=3)]
)
def test_methods(method):
    out = describe(titanic().columns, method=method)
    assert out["map"]["rows"] and out["neighbors"]["rows"][0]["near"]


def test_a_hierarchy_measures_as_its_trees_do(mixed):
    rows = mixed(120)
    rows.pop("group")
    out = describe(rows, method=DistanceHierarchy(), rows=[3])
    model = DistanceHierarchy().fit(rows)
    D = model.pairwise_distances(rows)
    near = [entry["distance"] for entry in out["neighbors"]["rows"][0]["near"]]
    np.testing.assert_allclose(near, np.sort(np.delete(D[3], 3))[:5], rtol=1e-3)
    for column in out["values"]["columns"]:
        frame = model.value_distances(column["column"])
        ours = frame.loc[column["labels"], column["labels"]].to_numpy()
        np.testing.assert_allclose(column["distances"], ours, rtol=5e-3)


def test_methods_that_learn_from_classes_get_the_target(mixed):
    rows = mixed(120)
    assert describe(rows, target="group", method="vdm")["method"] == "ValueMetric('vdm')"
    with pytest.raises(ValueError, match="is supervised and needs a target"):
        describe(rows, method="helic")


def test_tables_too_small_to_show_much():
    for rows in (
        {"a": ["x"]},
        {"a": ["x"] * 4, "b": [2.0] * 4},
        {"a": [None, None], "b": [np.nan, np.nan]},
        {"a": [1.5, 2.5, 3.5]},
    ):
        out = describe(rows)
        json.dumps(out, allow_nan=False)
        assert sum(group["size"] for group in out["clusters"]["groups"]) == out["rows"]


def test_nothing_but_identifiers():
    out = describe({"id": [f"row {i}" for i in range(50)]})
    assert out["map"] is None and out["columns"][0]["role"] == "left out"


def test_numbers_at_the_end_of_float64():
    out = describe({"big": [1e308, -1e308, 0.0, 5e307] * 5, "b": list("xyzw") * 5})
    assert out["columns"][0]["summary"]["max"] == 1e308


def test_rows_are_called_by_the_index_of_their_frame_beside_their_position(mixed):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(mixed())
    shuffled = frame.sample(frac=0.9, random_state=0)
    found = describe(shuffled, target="group")
    assert found["id"] == "index"
    for row in found["neighbors"]["rows"]:
        for each in (row, *row["near"]):
            assert each["id"] == str(shuffled.index[each["row"]])
            colour = found["neighbors"]["columns"].index("colour")
            assert each["cells"][colour] == frame["colour"][int(each["id"])]
    for part in (found["map"], found["some"]):
        assert part["ids"] == [str(shuffled.index[row]) for row in part["rows"]]
    plain = describe(frame, target="group")
    assert plain["id"] is None and "ids" not in plain["map"]
    assert "id" not in plain["neighbors"]["rows"][0]


def test_rows_are_called_by_the_column_that_identifies_them(mixed):
    rows = mixed() | {"key": [f"k{7 * i % 300}" for i in range(300)]}
    rows["size"][7] = 9_000.0  # an odd cell
    found = describe(rows, target="group")
    assert found["id"] == "key"
    for row in found["neighbors"]["rows"]:
        assert [each["id"] for each in row["near"]] == [rows["key"][n["row"]] for n in row["near"]]
    assert found["outliers"]["cells"]
    for cell in found["outliers"]["cells"]:
        assert cell["id"] == rows["key"][cell["row"]]
    rows["key"][1] = rows["key"][0]  # then it is no id
    assert describe(rows, target="group")["id"] is None


def test_bad_input():
    rows = {"a": list("xyxy"), "b": list("uvvv")}
    with pytest.raises(KeyError, match=r"expected target to be a column, .* got 'c'"):
        describe(rows, target="c")
    with pytest.raises(ValueError, match="expected 4 values of the target, got 3"):
        describe(rows, target=["p", "q", "p"])
    with pytest.raises(ValueError, match="columns besides the target"):
        describe({"a": ["x"]}, target="a")
    for silent in ("jia", ValueMetric("jia")):  # it would be no part of the map
        with pytest.raises(ValueError, match=r"gives (vectors, got 'jia'|no vectors)"):
            describe(rows, method=silent)
    with pytest.raises(ValueError, match="expected a method, got 'best'"):
        describe(rows, method="best")
    with pytest.raises(TypeError, match="expected method to be a name or an embedder"):
        describe(rows, method=3)
    with pytest.raises(ValueError, match="expected n_neighbors to be a whole number >= 1, got 0"):
        describe(rows, n_neighbors=0)
    with pytest.raises(IndexError, match="expected a row from 0 to 3, got 4"):
        describe(rows, rows=[4])
    with pytest.raises(TypeError, match="expected rows to be row numbers"):
        describe(rows, rows=["a"])
    with pytest.raises(ValueError, match="at most 1000 columns in a report, got 1001"):
        describe({f"c{i}": ["x"] for i in range(1001)})
    with pytest.raises(ValueError, match="0 sample"):
        describe({"a": []})


def test_reads_any_frame():
    pandas = pytest.importorskip("pandas", reason="frames are optional")
    polars = pytest.importorskip("polars", reason="frames are optional")
    rows = {"a": list("xyxz"), "b": [1.0, 2.0, 3.0, 4.0]}
    plain = describe(rows)
    assert describe(pandas.DataFrame(rows)) == plain
    assert describe(polars.DataFrame(rows)) == plain
    assert describe(Table.of(rows)) == plain


def test_large_tables_are_drawn_in_part():
    rows = led24(20_000, random_state=0).X
    out = describe(rows)
    assert len(out["map"]["rows"]) <= 3000 < out["map"]["of"]
    assert sum(group["size"] for group in out["clusters"]["groups"]) == 20_000
    assert Counts.of(rows).n == out["rows"]


def test_associations_say_how_many_rows_they_are_of(mixed, monkeypatch):
    from tabweave import associations
    from tabweave.columns.table import sampled_rows, take_rows

    rows = mixed(300)
    whole = describe(rows)["associations"]
    assert whole["of"] == 300
    strongest = associations(rows).frame().iloc[0]
    assert whole["pairs"][0]["strength"] == pytest.approx(strongest["strength"], rel=1e-3)
    monkeypatch.setattr(sys.modules[describe.__module__], "MAX_TESTED_ROWS", 100)
    some = describe(rows)["associations"]
    part = take_rows(Table.of(rows), sampled_rows(300, 100))
    assert some["of"] == 100
    strongest = associations(part).frame().iloc[0]
    assert some["pairs"][0]["strength"] == pytest.approx(strongest["strength"], rel=1e-3)


def test_a_target_with_gaps_is_named():
    rows = {"a": ["x", "y"] * 20, "b": ["u", "v", "w", "z"] * 10, "kind": ["p", None] * 20}
    with pytest.raises(ValueError, match="target column 'kind' is missing in row 1; drop"):
        describe(rows, target="kind", method="helic")
