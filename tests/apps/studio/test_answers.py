"""Answers about a finished job: marks, colours, rows like a row, groups, values, against pandas."""

import base64
import time

import numpy as np
import pytest

pd = pytest.importorskip("pandas", reason="compares with pandas")


@pytest.fixture(scope="module")
def frame(tmp_path_factory, write_customers):
    """Customers, many of whom are equal, with names and a free column."""
    path = tmp_path_factory.mktemp("answers") / "customers.csv"
    write_customers(path, n=400)
    frame = pd.read_csv(path).drop(columns="spend")
    frame["age"] = frame["age"] // 10 * 10
    frame.insert(0, "name", [f"C{i:03}" for i in range(len(frame))])
    frame.to_csv(path, index=False)
    frame.attrs["path"] = path
    return frame


@pytest.fixture(scope="module")
def client(client_of, frame):
    return client_of(frame.attrs["path"].parent)


@pytest.fixture(scope="module")
def job(client):
    source = client.post("/api/open", json={"path": "customers.csv"}).json()["source"]
    name = client.post("/api/jobs", json={"source": source}).json()["job"]
    while (state := client.get(f"/api/jobs/{name}").json()["state"]) == "running":
        time.sleep(0.1)
    assert state == "done"

    def ask(path, **body):
        answer = client.post(f"/api/jobs/{name}/{path}", json=body)
        assert answer.status_code == 200, answer.text
        return answer.json() if "json" in answer.headers["content-type"] else answer.content

    def refusal(path, **body):
        answer = client.post(f"/api/jobs/{name}/{path}", json=body)
        assert answer.status_code in (400, 404), answer.text
        return answer.json()["error"]

    ask.name, ask.source, ask.refusal = name, source, refusal
    ask.folder = client.app.state.studio.jobs[name].folder
    return ask


COMPARED = ["plan", "device", "paid by", "region", "age", "outcome"]


def decoded(text, kind):
    return np.frombuffer(base64.b64decode(text), kind)


def test_marks_count_the_rows_that_pass(client, job, frame):
    counts = np.frombuffer(job("marks", filters=[{"column": "plan", "in": ["pro"]}]), "<u4")
    marks = np.load(job.folder / "row_marks.npy")
    assert counts.sum() == (frame.plan == "pro").sum()
    np.testing.assert_array_equal(
        counts, np.bincount(marks[frame.plan == "pro"], minlength=len(counts))
    )
    assert client.get(f"/api/jobs/{job.name}/mark?row=7").json() == {"mark": int(marks[7])}
    named = job("names", marks=[int(marks[7])])
    assert named["names"] == [f"C{named['rows'][0]:03}"]
    assert "expected a mark" in job.refusal("names", marks=[10_000])


def test_a_mark_of_several_rows_has_the_colour_of_most_and_says_how_many(job, frame):
    marks = np.load(job.folder / "row_marks.npy")
    found = job("colours", column="name")  # which is not compared: marks hold many names
    share = decoded(found["mixed"], "u1")
    copies = np.bincount(marks)
    np.testing.assert_array_equal(share, np.floor(100 / copies))
    plan = job("colours", column="plan")
    labels = np.array(plan["labels"])[decoded(plan["codes"], "<i4")]
    assert (labels[marks] == frame.plan).all() and (decoded(plan["mixed"], "u1") == 100).all()
    age = decoded(job("colours", column="age")["numbers"], "<f8")
    np.testing.assert_array_equal(age[marks], frame.age)
    assert "expected a column" in job.refusal("colours", column="nowhere")


def test_the_majority_of_a_mark_is_what_most_of_its_rows_have():
    from tabweave.apps.studio.answers import _by_majority

    rng = np.random.default_rng(0)
    cells, marks = rng.integers(0, 4, 500), rng.integers(-1, 30, 500)
    values, majority, share = _by_majority(cells, marks, 30)
    for mark in range(30):
        counts = np.bincount(cells[marks == mark], minlength=4)
        assert values[majority[mark]] == counts.argmax()
        assert share[mark] == 100 * counts.max() // counts.sum()


def test_rows_like_one_are_the_nearest_and_equal_ones_are_folded(client, job, frame):
    from tabweave.apps.studio.answers import opened

    near = job("like", row=5, k=8)["near"]
    reading, model = opened(client.app.state.studio.jobs[job.name])
    distances = model.pairwise_distances(reading.features())[5]
    equal = (frame[COMPARED] == frame.loc[5, COMPARED]).all(axis=1)
    assert near[0]["is_anchor"] and near[0]["copies"] == equal.sum()
    assert near[0]["copy_rows"] == np.flatnonzero(equal).tolist()[:20]
    first = (
        frame.assign(d=distances.round(9)).drop_duplicates(COMPARED).sort_values("d", kind="stable")
    )
    np.testing.assert_allclose([one["distance"] for one in near], first.d[:8], atol=1e-8)
    for one in near:
        row = frame.loc[one["row"]]
        assert one["cells"] == row.to_dict() and one["name"] == row["name"]
        assert one["copies"] == (frame[COMPARED] == row[COMPARED]).all(axis=1).sum()
        assert sum(one["shares"].values()) == pytest.approx(1 if one["distance"] else 0)


def test_a_cell_that_must_be_equal_an_edited_one_and_one_that_is_ignored(job, frame):
    plan = next(p for p in ("basic", "pro") if p != frame.plan[5])
    cells = {"plan": {"value": plan, "rule": "equal"}, "age": {"rule": "ignore"}}
    answer = job("like", row=5, k=10, cells=cells)
    assert answer["passing"] == (frame.plan == plan).sum()
    assert "age" not in answer["compared"] and "plan" in answer["compared"]
    assert {one["cells"]["plan"] for one in answer["near"]} == {plan}
    assert all(one["shares"]["plan"] == 0 for one in answer["near"])
    others = [c for c in COMPARED if c != "age"]
    best = answer["near"][0]
    assert best["copies"] == (frame[others] == frame.loc[best["row"], others]).all(axis=1).sum()
    by_name = job("like", row=5, cells={"name": {"value": "C009", "rule": "equal"}})
    assert [one["row"] for one in by_name["near"]] == [9]
    nobody = job("like", row=5, cells={"name": {"value": "nobody", "rule": "equal"}})
    assert nobody["near"] == [] and nobody["passing"] == 0
    described = job("like", cells={"age": {"value": 30}, "plan": {"value": "pro"}}, k=3)
    assert sorted(described["compared"]) == ["age", "plan"]


def test_a_weight_multiplies_what_a_column_adds(client, job, frame):
    from tabweave.apps.studio.answers import opened

    reading, model = opened(client.app.state.studio.jobs[job.name])
    parts = model.learn().space_.parts()
    features = reading.features()
    summed = sum(
        (9 if part.names == ["region"] else 1) * part.summands(features)[5] for part in parts
    )
    near = job("like", row=5, k=12, cells={"region": {"weight": 9}})["near"]
    wanted = np.sort(np.sqrt(np.maximum(frame.assign(d=summed).drop_duplicates(COMPARED).d, 0)))[
        :12
    ]
    np.testing.assert_allclose([one["distance"] for one in near], wanted, atol=1e-7)
    one = near[-1]
    assert sum(one["shares"].values()) == pytest.approx(1)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({"row": 4000}, "expected a row number from 0 to 399"),
        ({"row": 1, "k": 0}, "expected 1 to 200 neighbours"),
        ({"row": 1, "cells": {"nowhere": {"rule": "ignore"}}}, "expected a column"),
        ({"row": 1, "cells": {"plan": {"rule": "often"}}}, "expected like, equal or ignore"),
        ({"row": 1, "cells": {"age": {"value": "old"}}}, "column 'age': expected a number"),
        ({"row": 1, "cells": {"plan": {"weight": -1}}}, "expected a weight from 0"),
        ({"row": 1, "cells": {"name": {"value": "C002"}}}, "is not compared"),
        ({"row": 1, "cells": {n: {"rule": "ignore"} for n in COMPARED}}, "no column is left"),
    ],
)  # fmt: skip
def test_what_cannot_be_looked_for_is_refused_by_name(job, body, reason):
    assert reason in job.refusal("like", **body)


def test_a_card_has_every_cell_those_that_are_compared_first(job, frame):
    card = job("card", row=3)
    assert card["name"] == "C003"
    cells = {cell["column"]: cell for cell in card["cells"]}
    assert {name: cell["value"] for name, cell in cells.items()} == frame.loc[3].to_dict()
    assert card["cells"][-1] == {
        "column": "name",
        "value": "C003",
        "type": "text",
        "compared": False,
    }


def test_the_distance_of_two_groups_is_of_the_columns_they_differ_in(job):
    pro, basic = ([{"column": "plan", "in": [plan]}] for plan in ("pro", "basic"))
    found = job("between", a=pro, b=basic)
    shares = {column["column"]: column["share"] for column in found["columns"]}
    assert sum(shares.values()) == pytest.approx(1) and set(shares) == set(COMPARED)
    assert found["columns"][0]["column"] in ("plan", "device", "paid by", "age")
    assert shares["region"] < 0.03 and 0 < found["distance"] < found["between_rows"]
    same = job("between", a=[{"column": "region", "in": ["north"]}], b=None)
    assert same["distance"] < found["distance"]
    assert "with rows in each" in job.refusal("between", a=pro, b=[{"rows": []}])


def test_a_cross_table_counts_as_pandas_does(job, frame):
    filters = [{"column": "age", "min": 30}]
    found = job("cross", a="plan", b="device", filters=filters)
    old = frame[frame.age >= 30]
    wanted = pd.crosstab(old["plan"], old["device"])
    wanted = wanted.loc[found["a"]["labels"], found["b"]["labels"]]
    assert found["counts"] == wanted.to_numpy().tolist() and found["of"] == len(old)
    total = np.outer(wanted.sum(axis=1), wanted.sum(axis=0)) / len(old)
    np.testing.assert_allclose(found["expected"], total, atol=1e-3)
    assert "expected a column" in job.refusal("cross", a="plan", b="nowhere")
    ages = job("cross", a="age", b="plan")
    for line, filter_ in zip(ages["counts"], ages["a"]["filters"], strict=True):
        passing = job("marks", filters=[filter_])
        assert np.frombuffer(passing, "<u4").sum() == sum(line)


def test_two_values_are_alike_where_they_go_with_the_same_values(job, frame):
    found = job("alike", column="device", a="phone", b="laptop")
    columns = {column["column"]: column for column in found["columns"]}
    share = pd.crosstab(frame["device"], frame["region"], normalize="index")
    overlap = np.minimum(share.loc["phone"], share.loc["laptop"]).sum()
    assert columns["region"]["overlap"] == pytest.approx(overlap)
    assert columns["region"]["overlap"] > columns["plan"]["overlap"]
    assert "expected one of its values" in job.refusal("alike", column="device", a="phone", b="tv")


def test_marks_of_groups_are_those_of_their_rows(client, job, frame):
    path = f"/api/tables/{job.source}/groups"
    group = client.post(
        path, json={"name": "pros", "filters": [{"column": "plan", "in": ["pro"]}]}
    ).json()
    marks = np.frombuffer(
        client.get(f"/api/tables/{job.source}/groups/marks?job={job.name}").content, "<i2"
    )
    of_row = marks[np.load(job.folder / "row_marks.npy")]
    np.testing.assert_array_equal(of_row, np.where(frame.plan == "pro", 0, -1))
    chosen = client.post(
        f"/api/tables/{job.source}/sets", json={"job": job.name, "marks": [0, 1]}
    ).json()
    assert chosen["rows"] == np.isin(np.load(job.folder / "row_marks.npy"), [0, 1]).sum()
    cluster = [{"cluster": 0, "job": job.name}]
    size = client.post(f"/api/tables/{job.source}/counts", json={"filters": cluster}).json()[
        "passing"
    ]
    assert size == (np.load(job.folder / "row_clusters.npy") == 0).sum()
    client.delete(f"{path}/{group['group']}")
