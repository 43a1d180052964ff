import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.decomposition import PCA

from tabweave import (
    Table,
    Weave,
)
from tabweave.apps.report import describe
from tabweave.apps.report.clusters import find_centers
from tabweave.apps.report.reading import read
from tabweave.apps.report.rows import Axes, DistinctRows, Nearest, map_cells


def test_axes_are_principal_components_of_the_rows_with_their_copies():
    rng = np.random.default_rng(0)
    for shape in ((40, 5), (6, 20)):
        vectors, copies = rng.normal(size=shape), rng.integers(1, 5, shape[0])
        axes = Axes.of(vectors, copies, 3)
        peer = PCA(3).fit(np.repeat(vectors, copies, axis=0))
        np.testing.assert_allclose(np.abs(axes.axes.T @ peer.components_.T), np.eye(3), atol=1e-8)
        np.testing.assert_allclose(axes.explained, peer.explained_variance_ratio_)
        np.testing.assert_allclose(np.abs(axes.project(vectors)), np.abs(peer.transform(vectors)))


def test_distinct_rows_and_their_copies():
    rows = {"a": list("xyxx"), "n": [1.0, np.nan, 1.0, 2.0]}
    seen = DistinctRows.of(read(rows, None), 0)
    assert seen.copies.sum() == 4 and len(seen.first) == 3
    np.testing.assert_array_equal(seen.of_row[[0, 2]], seen.of_row[[2, 0]])
    gaps = DistinctRows.of(read({"n": [np.nan, 1.5, np.nan]}, None), 0)
    assert sorted(gaps.copies) == [1, 2]


def test_nearest_finds_what_a_full_search_finds_whatever_the_blocks():
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(90, 3))
    queries = np.array([3, 50, 89])
    apart = cdist(vectors[queries], vectors)
    apart[np.arange(3), queries] = np.inf
    for step in (7, 90):
        near = Nearest(vectors[queries], queries, 4)
        for start in range(0, 90, step):
            block = np.arange(start, min(start + step, 90))
            near.see(block, vectors[block])
        np.testing.assert_array_equal(near.rows, np.argsort(apart, axis=1)[:, :4])


def test_neighbours_are_the_nearest_rows_and_shares_explain_them(mixed):
    rows = mixed(80)
    out = describe(rows, target="group", rows=[5, 17], n_neighbors=3)
    rows.pop("group")
    model = Weave().fit(rows)
    table = Table.of(rows)
    distances = model.pairwise_distances(table)
    for entry in out["neighbors"]["rows"]:
        others = np.sort(np.delete(distances[entry["row"]], entry["row"]))
        found = [near["distance"] for near in entry["near"]]
        np.testing.assert_allclose(found, others[:3], rtol=1e-3)
        for near in entry["near"]:
            a, b = (
                {name: cells[i] for name, cells in rows.items()}
                for i in (entry["row"], near["row"])
            )
            parts = model.explain(a, b)
            ours = dict(zip(out["neighbors"]["columns"], near["shares"], strict=True))
            assert sum(ours.values()) == pytest.approx(1, abs=0.01)
            for name, part in parts.items():
                assert ours[name] == pytest.approx(part / sum(parts.values()), abs=2e-3)


def test_equal_rows_are_shown_once_with_their_number():
    out = describe({"a": list("xxxyyz"), "b": list("uuuvvw")}, rows=0)
    (entry,) = out["neighbors"]["rows"]
    assert entry["copies"] == 3
    assert sorted(near["copies"] for near in entry["near"]) == [1, 2]


def test_clusters_are_found_and_described_by_what_they_have_more_of(mixed):
    rows = mixed()
    out = describe(rows, target="group")
    groups, labels = out["clusters"]["groups"], np.array(out["map"]["clusters"])
    assert len(groups) == 3 and out["clusters"]["silhouette"] > 0.5
    sizes = [group["size"] for group in groups]
    assert sizes == sorted(sizes, reverse=True) and sum(sizes) == 300
    where = np.array(out["map"]["rows"])  # 300 rows: all are drawn
    for k, group in enumerate(groups):
        own = where[labels == k]
        assert group["target"][0]["share"] > 0.9
        for value in group["values"]:
            if value["column"] == "size":
                continue
            column = rows[value["column"]]
            here, overall = (
                (column[own] == value["value"]).mean(),
                (column == value["value"]).mean(),
            )
            assert value["count"] == (column[own] == value["value"]).sum()
            assert (value["share"], value["overall"]) == pytest.approx((here, overall), rel=1e-3)
            assert value["lift"] == pytest.approx(here / overall, rel=1e-3)
        assert {"colour", "size"} <= {value["column"] for value in group["values"]}
        assert "noise" not in {value["column"] for value in group["values"]}


def test_two_points_twice_are_two_places_at_most():
    places = np.array([[0.0, 0], [0, 1e-17], [1, 0], [1, 1e-17]])
    centers, silhouette = find_centers(places, np.ones(4), 3, 0)
    assert len(centers) <= 2 and np.isfinite(silhouette)


def test_map_keeps_cells_and_clusters_of_the_rows_drawn(mixed):
    rows = mixed(60)
    m = describe(rows, target="group")["map"]
    where = m["rows"]
    for column in m["columns"]:
        cells = rows[column["name"]]
        if "numbers" in column:
            np.testing.assert_allclose(column["numbers"], cells[where], rtol=1e-4)
        else:
            assert [column["labels"][code] for code in column["codes"]] == list(cells[where])
    assert all(len(layout["points"]) == len(where) for layout in m["layouts"])


def test_map_marks_missing_and_gathers_rare_labels():
    rng = np.random.default_rng(0)
    tags = np.array([f"t{i % 240}" for i in range(360)] + [None] * 40, object)
    m = describe({"tag": tags, "x": rng.normal(size=400)})["map"]
    (tag,) = [c for c in m["columns"] if c["name"] == "tag"]
    assert len(tag["labels"]) == 240 and "others" not in tag and tag["codes"].count(-1) == 40
    many = Table.of({"tag": [f"t{i % 5000}" for i in range(30_000)]})
    assert len(map_cells(many, "tag")["labels"]) == 5000  # each can be read and searched for
    endless = Table.of({"tag": [f"t{i % 20_500}" for i in range(30_000)]})
    tag = map_cells(endless, "tag")
    assert len(tag["labels"]) == 20_001 and tag["labels"][-1] == "other values" and tag["others"]


def test_numbers_on_the_map_can_be_saved():
    """They were rounded to six digits, and so were the rows that one saved."""
    n, place = [12_345_678 + i for i in range(30)], [52.520008 + i / 1e6 for i in range(30)]
    for name, values in {"n": n, "place": place}.items():
        rows = Table.of({"n": n, "place": place})
        np.testing.assert_array_equal(map_cells(rows, name)["numbers"], np.round(values, 6))


def test_dates_on_the_map_are_ranges_to_colour_by_and_dates_to_read():
    days = np.datetime64("2024-01-01") + np.arange(60).astype("timedelta64[D]")
    m = describe({"day": days, "x": np.random.default_rng(0).normal(size=60)})["map"]
    (day,) = [c for c in m["columns"] if c["name"] == "day"]
    assert day["texts"] == [str(days[row]) for row in m["rows"]]
    assert " to " in day["labels"][1]


def test_tsne_is_offered_where_it_is_installed_and_rows_are_few(mixed):
    pytest.importorskip("openTSNE", reason="the second layout needs openTSNE")
    names = [layout["name"] for layout in describe(mixed(60))["map"]["layouts"]]
    assert names == ["principal axes", "neighbourhoods (t-SNE)"]


def test_map_says_in_which_column_a_row_is_odd():
    rows = {
        "city": ["Paris", "Santiago"] * 100, "country": ["France", "Chile"] * 100,
        "month": [f"m{i % 7}" for i in range(200)],
    }  # fmt: skip
    rows["country"][4] = "Chile"  # in Paris
    found = describe(rows)["map"]
    at = found["rows"].index(4)
    odd = found["odd"]
    assert odd["labels"][odd["codes"][at]] in ("city", "country")
    assert [row for row, code in zip(found["rows"], odd["codes"], strict=True) if code >= 0] == [4]
    columns = {f"c{j}": [f"{'ab'[i % 2]}{j}" for i in range(400)] for j in range(12)}
    for j in range(12):
        columns[f"c{j}"][30 * j] = f"b{j}"
    labels = describe(columns | {"n": [float(i) ** 2 for i in range(400)]})["map"]["odd"]["labels"]
    assert len(labels) == 8 and labels[-1] == "another column"
