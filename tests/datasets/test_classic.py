"""The exact sets: counts everyone knows, and equality with the published files."""

import hashlib
from collections import Counter

import numpy as np
import pytest

from tabweave import datasets
from tabweave.datasets.files import EXACT

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
# SHA-256 of the published files: the header, then the lines in ascending order. The first two
# MONK's problems are published with noise only.
PUBLISHED = {
    "balance": "13f26b3954c20255",
    "car": "dedef9d503a71276",
    "krkopt": "6fff8ba13a897449",
    "monks3": "58dedb171175f539",
    "nursery": "73da96ab5daf2775",
    "three_of_9": "b4db357d06bf0b6c",
    "tictactoe": "644e3f9422f783bc",
    "titanic": "0448a04ab77a8e88",
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


@pytest.mark.parametrize("name", PUBLISHED)
def test_equals_the_published_file_up_to_row_order(name):
    data = EXACT[name]()
    lines = sorted(map(",".join, zip(*data.columns.values(), data.y, strict=True)))
    text = "\n".join([",".join([*data.feature_names, "class"]), *lines])
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == PUBLISHED[name]


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
    with pytest.raises(ValueError, match="expected problem 1, 2 or 3, got 4"):
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
