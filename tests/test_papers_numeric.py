"""Every worked example of papers 001 (coupled numeric analysis) and 004 (distance hierarchy)."""

import numpy as np
import pytest

from tabweave.embed.hierarchy import Tree
from tabweave.embed.numeric import CoupledNumeric
from tabweave.embed.numeric.coupled import powers

# 001, Table 1
IRIS = {
    "Sepal.L": [5.5, 5.0, 6.1, 6.2, 6.3, 6.0],
    "Sepal.W": [4.2, 3.4, 2.9, 2.2, 2.7, 2.2],
    "Petal.L": [1.4, 1.5, 4.7, 4.5, 4.9, 5.0],
    "Petal.W": [0.2, 0.2, 1.4, 1.5, 1.8, 1.5],
}
X = np.array(list(IRIS.values())).T
TABLE_2 = [
    [5.50, 30.25, 4.20, 17.64, 1.40, 1.96, 0.20, 0.04],
    [5.00, 25.00, 3.40, 11.56, 1.50, 2.25, 0.20, 0.04],
    [6.10, 37.21, 2.90, 8.41, 4.70, 22.09, 1.40, 1.96],
    [6.20, 38.44, 2.20, 4.84, 4.50, 20.25, 1.50, 2.25],
    [6.30, 39.69, 2.70, 7.29, 4.90, 24.01, 1.80, 3.24],
    [6.00, 36.00, 2.20, 4.84, 5.00, 25.00, 1.50, 2.25],
]
TABLE_3 = [
    [22.99, 23.00, 10.74, 10.74, 10.05, 10.04, 10.92, 14.50],
    [20.09, 20.10, 6.70, 6.69, 10.80, 10.77, 11.48, 14.30],
    [41.20, 41.27, -7.76, -8.58, 34.40, 34.32, 35.10, 36.92],
    [41.13, 41.20, -9.35, -10.30, 36.35, 36.24, 37.03, 38.22],
    [44.66, 44.74, -9.87, -11.21, 38.55, 38.45, 39.28, 40.86],
    [42.32, 42.39, -11.84, -12.79, 37.92, 37.82, 38.52, 39.63],
]


@pytest.fixture(scope="module")
def model():
    return CoupledNumeric(2, scale=None).fit(IRIS)


def normalized(Z, i, j):
    """The distance of two objects, every column at mean 0 and standard deviation 1 (n - 1)."""
    Z = (Z - Z.mean(axis=0)) / Z.std(axis=0, ddof=1)
    return round(float(np.linalg.norm(Z[i - 1] - Z[j - 1])), 3)


def test_extended_table_2():
    assert np.array_equal(powers(X, 2).reshape(6, 8).round(2), TABLE_2)


def test_intra_coupled_interaction_definition_3_1(model):
    assert np.array_equal(model.intra("Petal.W").round(3), [[1, 0.989], [0.989, 1]])


def test_inter_coupled_interaction_definition_3_2(model):
    assert np.array_equal(
        model.inter("Petal.W").round(3),
        [[0.939, 0.945, -0.850, -0.854, 0.984, 0.982], [0.925, 0.933, 0, -0.813, 0.951, 0.952]],
    )


def test_coupled_representation_definition_4_1(model):
    assert np.array_equal(model.transform(IRIS)[0, 6:].round(2), [10.92, 14.50])


def test_coupled_table_3(model):
    assert np.array_equal(model.transform(IRIS).round(2), TABLE_3)


def test_distances_of_the_original_section_1():
    assert [normalized(X, *pair) for pair in ((4, 6), (4, 3), (6, 5))] == [0.493, 0.950, 0.982]


def test_distances_of_the_coupled_section_4(model):
    Z = model.transform(IRIS)
    pairs = ((4, 6), (4, 3), (6, 5), (3, 5))
    assert [normalized(Z, *pair) for pair in pairs] == [0.448, 0.354, 0.419, 0.830]
    own = CoupledNumeric(2, scale=None, standardize=True).fit_transform(IRIS)
    assert round(float(np.linalg.norm(own[3] - own[5])), 3) == 0.448


def test_distances_in_a_hierarchy_section_2_2():
    """Figure 1a. Erratum: the third example prints Black Tea for Y1, which is at Latte."""
    drinks = Tree.of({"Coffee": ["Latte", "Black coffee"], "Tea": ["Black tea", "Oolong tea"]})
    x, y1 = ("Black coffee", 1.8), ("Latte", 1.7)
    y2, y3 = ("Black tea", 1.7), ("Latte", 1.2)
    assert drinks.lca("Black coffee", "Latte") == "Coffee"
    assert drinks.lca("Latte", "Black tea") == "Any"
    assert drinks.lcp(x, y1) == ("Coffee", 1.0)
    assert drinks.lcp(y1, y2) == ("Any", 0.0)
    assert drinks.lcp(y1, y3) == y3
    assert drinks.distance(x, y1) == pytest.approx(1.5, abs=1e-15)
    assert drinks.distance(x, y2) == pytest.approx(3.5, abs=1e-15)
    assert drinks.distance(y1, y3) == pytest.approx(0.5, abs=1e-15)
