"""The exact sets: counts everyone knows, and equality with the files where there are any."""

from collections import Counter

import numpy as np
import pytest

from tabweave import datasets
from tabweave.datasets.files import EXACT, _data_dir, load

CLASSES = {
    "balance": {"L": 288, "R": 288, "B": 49},
    "tictactoe": {"positive": 626, "negative": 332},
    "monks1": {"0": 216, "1": 216},
    "monks2": {"0": 290, "1": 142},
    "monks3": {"0": 204, "1": 228},
    "car": {"unacc": 1210, "acc": 384, "good": 69, "vgood": 65},
    "nursery": {
        "not_recom": 4320,
        "priority": 4266,
        "spec_prior": 4044,
        "very_recom": 328,
        "recommend": 2,
    },
    "three_of_9": {"0": 274, "1": 238},
    "titanic": {"no": 1490, "yes": 711},
}
KRKOPT = [27, 78, 246, 81, 198, 471, 592, 683, 1433, 1712, 1985, 2854, 3597, 4194, 4553, 2166, 390]


def rows(data):
    return Counter(zip(*data.columns.values(), data.y, strict=True))


@pytest.mark.parametrize("name", CLASSES)
def test_class_counts(name):
    assert Counter(EXACT[name]().y.tolist()) == CLASSES[name]


@pytest.mark.parametrize("name", EXACT)
def test_nominal_strings_and_no_repeats(name):
    data = EXACT[name]()
    assert data.name == name
    assert set(data.kinds.values()) == {"nominal"}
    assert all(type(cell) is str for cell in data.X[0]) and type(data.y[0]) is str
    if name != "titanic":
        assert max(rows(data).values()) == 1


@pytest.mark.parametrize("name", EXACT)
def test_equals_the_file_up_to_row_order(name):
    directory = _data_dir(None)
    if directory is None or not (directory / f"{name}.csv.gz").is_file():
        pytest.skip(f"no {name}.csv.gz in a data directory (set TABWEAVE_DATA)")
    generated, published = EXACT[name](), load(name)
    assert generated.feature_names == published.feature_names
    assert generated.kinds == published.kinds
    assert rows(generated) == rows(published)


def test_krkopt_depths():
    labels = Counter(datasets.krkopt().y.tolist())
    assert labels.pop("draw") == 2796
    assert sorted(labels.values()) == sorted(KRKOPT)
    assert (labels["zero"], labels["sixteen"]) == (27, 390)


def test_krkopt_knows_a_mate_and_a_capture():
    found = {position[:-1]: position[-1] for position in rows(datasets.krkopt())}
    # Kings face to face, the rook gives check on the black king's edge.
    assert found["c", "1", "a", "3", "a", "1"] == "zero"
    assert found["a", "1", "c", "1", "d", "2"] == "draw"


def test_monks_refuses_a_fourth_problem():
    with pytest.raises(ValueError, match="problem=4"):
        datasets.monks(4)


def test_generators_return_fresh_arrays():
    first = datasets.car()
    first.columns["doors"][:] = "none"
    assert "none" not in datasets.car().columns["doors"]


def test_titanic_margins():
    data = datasets.titanic()
    status = Counter(data.columns["status"].tolist())
    assert status == {"first": 325, "second": 285, "third": 706, "crew": 885}
    assert np.sum(data.columns["age"] == "child") == 109
    assert np.sum(data.columns["sex"] == "female") == 470
