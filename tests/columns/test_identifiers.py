"""Identifiers that predict: planted, and of chance; strengths against scipy's."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chi2_contingency
from scipy.stats.contingency import association

from tabweave import SupervisedWeave, Table, WeaveClassifier, WeaveRegressor
from tabweave.columns.identifiers import (
    _strength,
    corrected_cramers_v,
    predictive_identifiers,
)

N = 400
RNG = np.random.default_rng(0)
COLOR = RNG.choice(["red", "blue", "green"], N)
IDS = RNG.permutation(90_000)[:N]
CLASSES = np.where(IDS < 30_000, "old", np.where(IDS < 60_000, "new", "newest"))


def found(rows, y):
    return predictive_identifiers(rows, Table.of(rows, rules="whole").schema, y)


@pytest.mark.parametrize("form", [dict, pd.DataFrame])
@pytest.mark.parametrize(
    ("cells", "name"),
    [(IDS, "id"), ([f"K{i:05}" for i in IDS], "key"), (np.arange(N), "no")],
)
def test_planted_order_is_found(form, cells, name):
    y = CLASSES[np.argsort(IDS)] if name == "no" else CLASSES
    assert found(form({"color": COLOR, name: cells}), y)[name] > 0.9


def test_what_predicts_nothing_is_not_found():
    for seed in range(50):
        random = np.random.default_rng(seed)
        rows = {"id": random.permutation(90_000)[:N], "key": [f"k{i}" for i in range(N)]}
        rows["color"] = random.choice(["red", "blue"], N)
        for y in (random.choice(["u", "v"], N), random.normal(size=N), random.permutation(N)):
            assert found(rows, y) == {}
    sorted_by_id_with_ties = np.where(np.arange(N) % 2, 0.0, RNG.normal(size=N))
    assert found({"color": COLOR, "row": np.arange(N)}, sorted_by_id_with_ties) == {}


def test_strength_is_cramers_v_less_chance():
    bins, classes = RNG.integers(0, 5, 20_000), RNG.integers(0, 3, 20_000)
    classes = np.where(RNG.random(20_000) < 0.4, bins % 3, classes)
    table = pd.crosstab(bins, classes).to_numpy()
    assert abs(_strength(bins, classes) - association(table, correction=False)) < 1e-3


def test_strength_of_a_small_table_is_corrected_by_its_freedom():
    """The statistic and its largest value, each less the mean of chance, which is the freedom."""
    table = np.array([[30, 2, 4], [3, 25, 6], [4, 5, 31]])
    statistic = chi2_contingency(table, correction=False).statistic
    wanted = np.sqrt((statistic - 4) / (2 * table.sum() - 4))
    assert corrected_cramers_v(table) == pytest.approx(wanted)


@pytest.mark.parametrize("model", [SupervisedWeave(), WeaveClassifier()])
def test_a_classifier_says_so_and_the_remedy_works(model):
    rows = {"id": IDS, "color": COLOR}
    said = r"'id' was dropped .*, but its order predicts the target .* schema=\{'id': 'numeric'\}"
    with pytest.warns(UserWarning, match=said):
        model.fit(rows, CLASSES)
    kept = WeaveClassifier(schema={"id": "numeric"}, random_state=0).fit(rows, CLASSES)
    assert kept.score(rows, CLASSES) > 0.9


def test_a_file_says_so_as_a_frame_does(tmp_path):
    path = tmp_path / "rows.csv"
    pd.DataFrame({"id": IDS, "color": COLOR, "class": CLASSES}).to_csv(path, index=False)
    with pytest.warns(UserWarning, match=r"'id' was dropped .*, but its order predicts the target"):
        SupervisedWeave().fit(path, "class")
    pd.DataFrame({"id": IDS, "color": COLOR, "class": COLOR}).to_csv(path, index=False)
    SupervisedWeave(schema={"color": "nominal"}).fit(path, "class")  # a warning is an error here


def test_a_regression_on_a_row_count_says_so_and_the_remedy_works():
    x, noise = np.arange(100), RNG.normal(size=100)
    with pytest.raises(ValueError, match=r"as in schema=\{'x': 'numeric'\}"):
        WeaveRegressor().fit({"x": x}, 3.0 * x)
    with pytest.warns(UserWarning, match=r"'x' was dropped .* schema=\{'x': 'numeric'\}"):
        WeaveRegressor(random_state=0).fit({"x": x, "noise": noise}, 3.0 * x)
    rows = {"x": x, "noise": noise}
    model = WeaveRegressor(schema={"x": "numeric"}, random_state=0).fit(rows, 3.0 * x)
    assert model.score(rows, 3.0 * x) > 0.9
