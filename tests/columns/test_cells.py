"""What every kind of column can do, against lists of Python; and parts, which equal no text."""

import pickle

import numpy as np
import pandas as pd
import pytest

from tabweave import Column, Counts, SupervisedWeave, Table, Weave, WeaveClassifier
from tabweave.columns.cells import KINDS, Part, kind_of

CELLS = {
    "nominal": ["b", None, "a", "b", "c", "a"],
    "ordinal": ["L", "S", None, "S", "M", "L"],
    "numeric": [2.0, None, -1.5, 2.0, 7.0, 0.0],
    "datetime": ["2024-03-01", None, "2020-01-31", "2024-03-01", "1999-12-31", "2020-02-01"],
    "set": [["x", "y"], [], ["y"], ["x", "y"], ["z"], ["y"]],
}


def column(kind, cells):
    return Table.of({"a": np.array([*cells, 0], object)[:-1]}, {"a": kind})["a"]


def python(cells):
    return [cells.cell(row) for row in range(len(cells))]


def key(cell):
    return tuple(sorted(cell)) if isinstance(cell, list) else cell


def test_there_is_a_class_for_each_kind():
    assert set(KINDS) == set(CELLS)
    for kind, cells in CELLS.items():
        assert type(column(kind, cells)) is kind_of(kind)


@pytest.mark.parametrize("kind", CELLS)
def test_cells_are_those_that_were_read(kind):
    cells = column(kind, CELLS[kind])
    assert len(cells) == 6
    assert [*map(key, python(cells))] == [*map(key, CELLS[kind])]
    assert cells.missing.tolist() == [cell is None for cell in CELLS[kind]]


@pytest.mark.parametrize("kind", CELLS)
def test_rows_are_taken_and_joined(kind):
    cells, rows = column(kind, CELLS[kind]), np.array([4, 0, 0])
    assert python(cells.take(rows)) == [cells.cell(row) for row in rows]
    more = column(kind, CELLS[kind][::-1][:4])
    assert python(cells.joined(more)) == python(cells) + python(more)
    assert cells.take(np.array([3, 3])).is_constant()
    assert not cells.is_constant()


@pytest.mark.parametrize("kind", CELLS)
def test_ranks_are_equal_where_cells_are(kind):
    cells = column(kind, CELLS[kind])
    ranks, values = cells.ranks(), [*map(key, python(cells))]
    for i, one in enumerate(values):
        assert [rank == ranks[i] for rank in ranks] == [other == one for other in values]
    order = np.random.default_rng(0).permutation(6)
    assert cells.take(order).ranks().tolist() == ranks[order].tolist()


@pytest.mark.parametrize(
    ("kind", "options"),
    [("numeric", {"levels": ("a",)}), ("set", {"levels": ("a",)}), ("nominal", {"delimiter": ";"})],
)
def test_an_option_of_another_kind_is_refused(kind, options):
    with pytest.raises(ValueError, match=r"for columns of kind '(ordinal|set)'"):
        Column("a", kind, **options)


def test_a_part_is_no_column_of_its_name():
    part = Part("born", "weekday")
    assert part == Part("born", "weekday")
    assert part != "born (weekday)"
    assert "born (weekday)" != part
    assert len({part, "born (weekday)", Part("born", "weekday")}) == 2
    assert pickle.loads(pickle.dumps(part)) == part
    assert pickle.loads(pickle.dumps(part)).column == "born"


def test_columns_may_have_the_names_of_parts_of_others(tmp_path):
    rng = np.random.default_rng(0)
    born = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 10**8, 300), unit="s")
    frame = pd.DataFrame(
        {
            "age": rng.normal(40, 9, 300),
            "age (binned)": rng.choice(list("abc"), 300),
            "born": born,
            "born (weekday)": rng.choice(["mon", "tue"], 300),
        }
    )
    renamed = frame.set_axis(["age", "b", "born", "d"], axis=1)
    for model in (Weave(), SupervisedWeave()):
        y = np.where(frame["age"] > 40, "old", "young")
        vectors = model.fit_transform(frame, y)
        assert np.array_equal(vectors, model.fit_transform(renamed, y))
    model = WeaveClassifier().fit(frame, y)
    assert (
        model.predict(frame).tolist() == WeaveClassifier().fit(renamed, y).predict(renamed).tolist()
    )
    counts = Counts.of(Table.of(frame, rules="whole"))
    counts.save(tmp_path / "counts.tw")
    assert Counts.load(tmp_path / "counts.tw") == counts
