"""How many clusters: planted numbers are found again, criteria against their formulas."""

import functools

import numpy as np
import pandas as pd
import pytest

from tabweave import KModes, Table
from tabweave.cluster import number_of_clusters
from tabweave.cluster.kmodes import chosen, some_rows
from tabweave.cluster.number import best_k, within_entropy

from .conftest import planted


@pytest.mark.parametrize("k", [2, 4, 7])
def test_planted_numbers_are_found(k):
    assert number_of_clusters(planted(k, seed=k), max_clusters=10).best == k


def test_independent_columns_are_one_cluster():
    rng = np.random.default_rng(0)
    rows = {f"c{j}": rng.choice(list("abc"), 300) for j in range(5)}
    assert number_of_clusters(rows, max_clusters=5).best == 1


def test_numbers_count_in_bins():
    rng = np.random.default_rng(0)
    group = rng.integers(3, size=400)
    rows = {f"x{j}": 6.0 * group * (-1) ** j + rng.normal(size=400) for j in range(4)}
    assert number_of_clusters(rows, max_clusters=6).best == 3


def test_entropy_of_partitions():
    labels = np.array([0, 0, 0, 1, 1, 1])
    column = np.array([0, 0, 1, 1, 1, 1])
    third = -(2 / 3 * np.log(2 / 3) + 1 / 3 * np.log(1 / 3))
    assert within_entropy([column, labels], labels) == (pytest.approx(3 * third), 2)
    bk = best_k({1: 5.0, 2: 3.0, 3: 2.5, 4: 2.4})
    assert bk == {2: pytest.approx(1.5), 3: pytest.approx(0.4)} and chosen("bk", bk) == 2


@pytest.mark.parametrize("clusterer", ["kmeans", "kmodes"])
@pytest.mark.parametrize("criterion", ["silhouette", "entropy_bic", "bk", "gap", "stability"])
def test_partitions(clusterer, criterion):
    rows = planted(3, 150, 8, seed=1)
    found = number_of_clusters(rows, clusterer=clusterer, criterion=criterion, max_clusters=5)
    assert found.best == found.choices[criterion] == 3
    assert found.criterion == criterion


def test_kmodes_finds_its_number():
    rows = planted(3, 200, 8, seed=1)
    model = KModes("auto", random_state=0).fit(rows)
    assert model.n_clusters_ == len(model.cluster_centers_) == 3
    assert KModes(2, random_state=0).fit(rows).n_clusters_ == 2


@pytest.mark.parametrize("clusterer", ["kmeans", "kmodes"])
@pytest.mark.parametrize("criterion", ["gap", "stability"])
def test_halves_and_shuffled_columns_may_have_fewer_rows_that_differ(clusterer, criterion):
    """Than the table: as many clusters as it has rows that differ are then not to be had."""
    rows = {"a": list("uuuuuuvw"), "b": list("xyzxyzxy")}
    found = number_of_clusters(rows, clusterer=clusterer, criterion=criterion, max_clusters=6)
    assert max(found.scores[criterion]) == 4  # of five rows that differ


def test_the_same_rows_give_the_same_number(monkeypatch):
    rows = planted(4, 300)
    one, two = (number_of_clusters(rows, max_clusters=6) for _ in range(2))
    assert one == two
    draw = functools.partial(some_rows, max_rows=200)
    monkeypatch.setattr("tabweave.cluster.number.some_rows", draw)
    assert number_of_clusters(rows, max_clusters=6).best in (3, 4, 5)


def test_what_cannot_be():
    with pytest.raises(ValueError, match="expected clusterer"):
        number_of_clusters([["a"]], clusterer="guess")
    with pytest.raises(ValueError, match="expected criterion"):
        number_of_clusters([["a"]], criterion="silhouette")
    with pytest.raises(ValueError, match="max_clusters to be at least 2"):
        number_of_clusters([["a"]], max_clusters=1)


def test_columns_whose_values_hardly_repeat_are_dropped():
    """An identifier or a text costs a parameter a value, and hides any clusters."""
    rows = planted(3, n=300).assign(id=[f"A-{i}" for i in range(300)])
    found = number_of_clusters(rows, max_clusters=6)
    assert found.best == 3 and list(found.dropped) == ["id"]
    assert str(found).startswith("3 by aic3\n  1: ")
    assert str(found).endswith("dropped: id (an identifier: its values hardly repeat)")
    assert number_of_clusters(rows, max_clusters=6, schema={"id": "nominal"}).dropped == {}
    assert "dropped" not in str(number_of_clusters(rows.drop(columns="id"), max_clusters=6))
    with pytest.raises(ValueError, match=r"every column would be dropped: 'id' .* declare"):
        number_of_clusters(rows[["id"]], max_clusters=3)


@pytest.mark.parametrize("days", [1, 365])
def test_dates_do_not_multiply_clusters(days):
    """The cycles of a date depend on each other; that says nothing of the rows."""
    rng, group = np.random.default_rng(1), np.arange(600) % 3
    rows = {f"c{j}": (group + rng.choice(3, 600, p=[0.8, 0.1, 0.1])) % 3 for j in range(6)}
    rows = pd.DataFrame(rows).astype(str).map("v{}".format)
    when = pd.Timestamp("2023-01-01") + pd.to_timedelta(rng.integers(0, days * 86_400, 600), "s")
    noise = pd.DataFrame({c: rng.choice(["x", "y", "z"], 600) for c in "ab"})
    for read in (lambda frame: frame, lambda frame: Table.of(frame, rules="whole")):
        assert number_of_clusters(read(rows.assign(t=when)), max_clusters=6).best == 3
        assert number_of_clusters(read(noise.assign(t=when)), max_clusters=6).best == 1
    written = number_of_clusters(rows.assign(t=when.strftime("%Y-%m-%d %H:%M:%S")), max_clusters=6)
    assert written.best == 3 and not written.dropped


@pytest.mark.parametrize(("clusterer", "dropped"), [("mixture", ["tags"]), ("kmeans", [])])
def test_sets_that_take_no_part_are_said(clusterer, dropped):
    rows = planted(3, n=200)
    rows["tags"] = [["new"], ["new", "red"]] * 100
    found = number_of_clusters(rows, clusterer=clusterer, max_clusters=4)
    assert list(found.dropped) == dropped


def test_the_largest_number_looked_at_is_said_to_be_so():
    rows = planted(5, n=400)
    assert "5 is the largest number looked at" in str(number_of_clusters(rows, max_clusters=5))
    assert "largest" not in str(number_of_clusters(rows, max_clusters=7))
