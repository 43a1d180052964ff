"""Ids are those of the frame: index labels where it has an index, positions otherwise.

The code of the README, the tour and the how-tos runs on shuffled, filtered frames, and what it
looks up is compared with brute force.
"""

import doctest
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone

import tabweave
from tabweave import OneHot, OutlierCells, SimilarityIndex, Weave, WeaveClassifier, WeaveRegressor
from tabweave.datasets import titanic

HOUSE = Path(__file__).parents[2]
PAGES = ["README.md", "docs/tour.md", "docs/howto/similar-records.md"]


def reordered(frame):
    """A frame as it is after a shuffle and a filter: labels are neither positions nor sorted."""
    return frame.sample(frac=0.7 if len(frame) > 200 else 1.0, random_state=0)[:-3]


def squared_distances(weave, query, frame):
    """What separates a query from each row, in its columns: those that it lacks are the row's."""
    rows = frame.to_dict("records")
    return np.array([sum(weave.explain({**row, **query}, row).values()) for row in rows])


class Spy(dict):
    """The names of a page; a frame that it makes comes out shuffled and filtered."""

    def __setitem__(self, name, value):
        if isinstance(value, pd.DataFrame) and name in ("flights", "people", "rows"):
            value = reordered(value)
        super().__setitem__(name, value)


@pytest.mark.parametrize("page", PAGES)
def test_pages_run_on_a_shuffled_filtered_frame(page, monkeypatch):
    """What ``.loc`` looks up with the ids of an answer are the nearest rows."""
    seen = []
    query = SimilarityIndex.query

    def watched(self, rows, k=10, where=None, **options):
        out = query(self, rows, k, where, **options)
        seen.append((self, rows, k, where, out))
        return out

    monkeypatch.setattr(SimilarityIndex, "query", watched)
    names, n_answers = Spy(), 0
    for example in doctest.DocTestParser().get_examples((HOUSE / page).read_text("utf8")):
        try:
            names = run(example.source, names)
        except (KeyError, NameError, ValueError):  # of what says "row 0", which the filter dropped
            assert "found" not in example.source and "SimilarityIndex" not in example.source
        if ".loc[found.ids" not in example.source:
            continue
        n_answers += 1
        index, asked, k, where, _ = seen[-1]
        frame = names[example.source.partition(".loc")[0].strip()]
        found = eval(example.source.partition("]")[0] + "]]", dict(names))  # the rows, all columns
        squared = squared_distances(index.embedder_, asked, frame)
        if where is not None:
            ((column, values),) = where.items()
            squared[~frame[column].isin(values)] = np.inf
            assert found[column].isin(values).all()
        there = squared[frame.index.get_indexer(found.index)]
        np.testing.assert_allclose(np.sort(there), np.sort(squared)[:k], atol=1e-9)
    assert n_answers


def run(source, names):
    """Run one example; what it assigns passes the spy."""
    namespace = dict(names)
    exec(compile(source, "<page>", "exec"), namespace)
    out = Spy(names)
    for name, value in namespace.items():
        if name not in names or names[name] is not value:
            out[name] = value
    return out


def frames():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"job": rng.choice(list("abcd"), 400), "age": rng.normal(40, 10, 400)})
    return frame.assign(site=rng.choice(list("xyz"), 400))


INDEXES = {
    "shuffled": lambda n: np.random.default_rng(1).permutation(n),
    "numbers": lambda n: np.arange(n) * 7 + 3,
    "text": lambda n: [f"r{i:03}" for i in range(n)],
    "floats": lambda n: np.arange(n) / 4,
    "days": lambda n: pd.date_range("2024-01-01", periods=n, freq="h"),
    "zoned": lambda n: pd.date_range("2024-01-01", periods=n, freq="h", tz="UTC"),
    "two levels": lambda n: pd.MultiIndex.from_arrays([np.arange(n) % 7, np.arange(n)]),
    "mixed": lambda n: pd.Index([*range(n - 1), "last"], dtype=object),
    "categories": lambda n: pd.CategoricalIndex([f"r{i}" for i in range(n)]),
    "large": lambda n: np.arange(n, dtype=np.uint64) + np.uint64(2**63),
}


@pytest.mark.parametrize("labels", INDEXES.values(), ids=INDEXES)
def test_ids_are_the_labels_of_the_frame(labels, tmp_path):
    frame = frames()
    frame.index = labels(len(frame))
    half = frame.iloc[::2]
    index = SimilarityIndex(Weave()).fit(half)
    distances = index.embedder_.pairwise_distances(frame, half)
    found = index.query(frame, 5)
    np.testing.assert_allclose(np.take_along_axis(distances, found.positions, 1), found.distances)
    for ids, positions in zip(found.ids, found.positions, strict=True):
        assert half.loc[ids].equals(half.iloc[positions])
    first, gone = half.index[7], half.index[8]
    share = index.explain(half.iloc[7], first)
    assert max(share.values()) < 1e-9 and sum(index.explain(half.iloc[7], gone).values()) > 1e-3
    index.remove(gone).add(frame.iloc[1])
    left = pd.concat([half.drop([gone]), frame.iloc[[1]]])
    again = index.query(frame, 5)
    for ids, positions in zip(again.ids, again.positions, strict=True):
        assert left.loc[ids].equals(left.iloc[positions])
    assert (index.ids_[again.positions] == again.ids).all()
    with pytest.raises(ValueError, match=r"is in the index already.*reset_index"):
        index.add(frame.iloc[[2, 3]])
    with pytest.raises(KeyError, match="was removed"):
        index.remove(gone)
    (near,) = index.query_radius(half.iloc[[3]], 0.5)
    assert left.loc[near.ids].equals(left.iloc[near.positions])
    pairs = index.duplicates(0.1)
    for i, side in enumerate((pairs.first, pairs.second)):
        assert left.loc[side].equals(left.iloc[pairs.positions[:, i]])
    if labels is not INDEXES["zoned"]:
        index.save(tmp_path / "rows.index")
        back = SimilarityIndex.load(tmp_path / "rows.index").query(frame, 5)
        np.testing.assert_array_equal(back.ids, again.ids)
        np.testing.assert_array_equal(back.positions, again.positions)


def test_rows_without_labels_have_their_positions():
    frame = frames()
    columns = {name: frame[name].to_numpy() for name in frame}
    for rows in (frame, columns, pl.from_pandas(frame), pl.from_pandas(frame).to_arrow()):
        found = SimilarityIndex().fit(rows).query(frame.iloc[[9]], 3)
        np.testing.assert_array_equal(found.ids, found.positions)
        assert found.ids[0, 0] == 9
    # A default index says nothing: ids go on where batches begin anew, and labels that go on stay.
    index = SimilarityIndex(OneHot()).fit(frame[:10]).add(frame[:10].reset_index(drop=True))
    assert index.ids_.tolist() == list(range(20))
    assert index.add(frame[20:25]).ids_.tolist() == list(range(25))
    later = SimilarityIndex(OneHot()).fit(frame[10:20]).add(frame[:10])
    assert later.ids_.tolist() == [*range(10, 20), *range(10)]


def test_a_column_that_is_named_has_the_ids():
    frame = reordered(frames()).assign(key=lambda f: [f"K{i}" for i in f.index])
    index = SimilarityIndex().fit(frame, ids="key")
    alone = SimilarityIndex(index.embedder_).fit(frame.drop(columns="key"))
    assert index.embedder_.schema_.names == ["job", "age", "site"]
    found, expected = (i.query(frame[["job", "age", "site"]], 4) for i in (index, alone))
    np.testing.assert_array_equal(found.ids, "K" + expected.ids.astype(str).astype(object))
    np.testing.assert_array_equal(index.query(frame, 4).ids, found.ids)  # with the column, too
    index.remove("K" + str(frame.index[0])).add(frame.iloc[[0]], ids="key")
    assert index.ids_[-1] == frame["key"].iloc[0]
    rows = frame.to_dict("list")
    assert SimilarityIndex().fit(rows, ids="key").ids_.tolist() == frame["key"].tolist()
    with pytest.raises(ValueError, match=r"name of a column, got 'kee'; the columns are 'job'"):
        SimilarityIndex().fit(frame, ids="kee")
    with pytest.raises(ValueError, match="expected ids that differ"):
        SimilarityIndex().fit(frame, ids="job")
    with pytest.raises(TypeError, match="column 'key': expected ids to be whole numbers or text"):
        SimilarityIndex().fit(frame.assign(key=[None, *frame["key"][1:]]), ids="key")


def test_labels_that_repeat_stand_for_all_their_rows():
    frame = frames().iloc[:6].set_axis(["a", "b", "a", "c", "d", "a"])
    index = SimilarityIndex(OneHot()).fit(frame)
    assert index.ids_.tolist() == list("abacda")
    with pytest.raises(ValueError, match=r"id 'a' is that of 3 rows.*reset_index"):
        index.explain(frame.iloc[0], "a")
    assert index.remove("a").ids_.tolist() == list("bcd")
    with pytest.raises(ValueError, match="expected ids that differ, got 'a' twice"):
        SimilarityIndex(OneHot()).fit(frame, ids=list("abacde"))


def test_a_mask_of_a_frame_belongs_to_rows_by_its_labels():
    frame = frames()
    rows = reordered(frame)
    index = SimilarityIndex().fit(rows)
    for mask in (rows["age"] > 40, (rows["age"] > 40).sort_index(), (rows["age"] > 40).to_numpy()):
        found = index.query(frame, 5, where=mask)
        assert (frame["age"][found.ids.ravel()] > 40).all()
    with pytest.raises(ValueError, match="index labels of the rows"):
        index.query(
            frame, 5, where=(rows["age"] > 40).set_axis([f"r{i}" for i in range(len(rows))])
        )


@pytest.mark.parametrize("model", [WeaveClassifier(), WeaveRegressor()], ids=str)
def test_neighbors_of_predictions_are_called_as_in_the_frame(model, tmp_path):
    frame = frames()
    target = (frame["age"] + 5 * (frame["job"] == "a")).round(1)
    target = (
        target if isinstance(model, WeaveRegressor) else (target > 42).map({True: "y", False: "n"})
    )
    rows = reordered(frame)
    asked = frame.drop(index=rows.index)
    model.fit(rows, target[rows.index])
    twin = clone(model).fit(rows.to_dict("list"), target[rows.index].to_numpy())
    near, expected = model.kneighbors(asked), twin.kneighbors(asked)
    np.testing.assert_array_equal(near.positions, expected.ids)
    np.testing.assert_array_equal(near.ids, rows.index.to_numpy()[near.positions])
    for said in model.explain(asked.iloc[0]):
        assert said["target"] == target[said["id"]] == target[rows.index].iloc[said["position"]]
    gone = rows.index[:40]
    model.forget(gone)
    again = model.kneighbors(asked)
    assert not np.isin(again.ids, gone).any()
    np.testing.assert_array_equal(
        again.ids, rows.drop(index=gone).index.to_numpy()[again.positions]
    )
    model.save(tmp_path / "model")
    back = tabweave.load(tmp_path / "model")
    np.testing.assert_array_equal(back.kneighbors(asked).ids, again.ids)
    model.partial_fit(frame.loc[gone], target[gone])
    for said in model.explain(asked.iloc[0]):
        assert said["target"] == target[said["id"]]


def test_explain_of_two_rows_says_how_many_are_asked_for():
    frame = frames()
    model = WeaveClassifier().fit(frame, frame["site"])
    with pytest.raises(TypeError, match=r"n_neighbors to be a whole number.*embedder_\.explain"):
        model.explain(frame.iloc[0], frame.iloc[1])
    with pytest.raises(TypeError, match="got 0"):
        model.explain(frame.iloc[0], 0)


def test_pairs_of_the_how_to_are_the_nearest_of_a_reordered_frame():
    """The loop of docs/howto/find-duplicates.md, by brute force."""
    examples = doctest.DocTestParser().get_examples(
        (HOUSE / "docs/howto/find-duplicates.md").read_text("utf8")
    )
    names = Spy()
    for example in examples[:10]:
        if not example.source.startswith("for"):
            names = run(example.source, names)
    people, pairs = names["people"], names["pairs"]
    distances = names["index"].embedder_.pairwise_distances(people)
    a, b = np.nonzero(np.triu(distances <= 0.8, 1))
    assert len(a)
    expected = {frozenset(people.index[[i, j]]) for i, j in zip(a, b, strict=True)}
    assert {frozenset(pair) for pair in zip(pairs.first, pairs.second, strict=True)} == expected
    loop = next(e.source for e in examples if e.source.startswith("for a, b, d"))
    exec(loop, dict(names))


def test_the_crew_of_the_titanic_after_a_filter():
    people = titanic().frame()
    crew = people[people["status"] == "crew"].sample(frac=1, random_state=0)
    found = SimilarityIndex().fit(crew).query({"sex": "female"}, k=23)
    assert (people.loc[found.ids[0], "sex"] == "female").all()
    assert (people.loc[found.ids[0], "status"] == "crew").all()


def test_odd_cells_are_called_by_the_labels_of_their_rows():
    rng = np.random.default_rng(0)
    group = rng.integers(0, 2, 400)
    frame = pd.DataFrame(
        {
            "city": np.array(["Paris", "Santiago"])[group],
            "country": np.array(["France", "Chile"])[group],
            "age": rng.integers(20, 60, 400),
        }
    )
    frame.loc[7, "country"] = {"France": "Chile", "Chile": "France"}[frame.loc[7, "country"]]
    rows = shuffled = frame.sample(frac=1, random_state=1)
    for rows in (shuffled, shuffled.set_axis([f"r{i}" for i in shuffled.index])):
        odd = OutlierCells().fit_cells(rows, 3)[0]
        assert odd.row in (7, "r7") and rows.index[odd.position] == odd.row
        assert rows.loc[odd.row, odd.column] == odd.value and f"row {odd.row}:" in str(odd)
        model = OutlierCells().fit(rows[rows.index != odd.row])
        (again,) = model.cells(rows.loc[[odd.row]], 1)
        assert again.row == odd.row and again.position == 0
    plain = OutlierCells().fit_cells(shuffled.to_dict("list"), 3)[0]
    assert plain.row == plain.position == list(shuffled.index).index(7)
