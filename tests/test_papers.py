"""Every worked example of the papers: of the thesis [Zhu 2019] on its table of watermelons."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from tabweave import Counts, Table
from tabweave.counts.couplings import shares
from tabweave.embed.ckml import CKML
from tabweave.embed.coupled_numeric import CoupledNumeric, powers
from tabweave.embed.hierarchy import Tree
from tabweave.measures.coupled import inter_kernel, intra_kernel

SWEETNESS = ["low", "low", "low", "low", "high", "high"]


@pytest.fixture
def counts(watermelons):
    return Counts.of(Table.of(watermelons), SWEETNESS)


def at(counts, column, value):
    """Return the index of a value in its column."""
    return counts.labels[counts.names.index(column)].index(value)


def test_values_3_2(counts, watermelons):
    values = {v for labels in counts.labels for v in labels}
    assert values == {
        "clear", "blurry", "white", "yellow", "green", "black", "straight", "curled",
        "slightly curled",
    }  # fmt: skip
    assert set(counts.labels[0]) == {"clear", "blurry"}
    assert watermelons["root shape"][1] == "straight"


def test_objects_of_values_and_classes_definitions_3_1_and_3_2(counts):
    """How many objects the mapped sets hold: {A4, A6}, {A1, A6}; {A1..A4}, {A5, A6}."""
    c = counts.value_counts
    assert c[counts.span("root shape")][at(counts, "root shape", "slightly curled")] == 2
    assert sum(c[counts.span("color")][at(counts, "color", v)] for v in ("white", "black")) == 2
    assert dict(zip(counts.classes, counts.class_n, strict=True)) == {"low": 4, "high": 2}


def test_frequencies_definition_3_3(counts):
    assert counts.frequencies[1][at(counts, "color", "white")] == 1 / 6
    assert counts.frequencies[2][at(counts, "root shape", "curled")] == 1 / 3


def test_conditional_probabilities_definition_3_4(counts):
    p = shares(counts.block("color", "root shape")).T
    assert p[at(counts, "root shape", "curled"), at(counts, "color", "yellow")] == 1 / 2
    i = counts.span("root shape").start + at(counts, "root shape", "curled")
    low = counts.classes.index("low")
    assert Fraction(int(counts.class_pairs[i, low]), int(counts.class_n[low])) == Fraction(1, 4)


def test_curled_and_slightly_curled_2_4_3(counts):
    """Equally frequent, but one goes with yellow and green, the other with green and black."""
    f = counts.frequencies[2]
    curled, slightly = (at(counts, "root shape", v) for v in ("curled", "slightly curled"))
    assert f[curled] - f[slightly] == 0
    met = counts.block("root shape", "color") > 0
    color = counts.labels[1]
    assert {v for v, m in zip(color, met[curled], strict=True) if m} == {"yellow", "green"}
    assert {v for v, m in zip(color, met[slightly], strict=True) if m} == {"green", "black"}


def test_intra_kernel_4_2_2(counts):
    k = intra_kernel(counts.frequencies[1])
    white, yellow, green = (at(counts, "color", v) for v in ("white", "yellow", "green"))
    assert k[white, yellow] == pytest.approx(math.exp(-1 / 36), rel=1e-15)
    assert k[yellow, green] == 1


def test_inter_kernel_4_2_3(counts):
    k = inter_kernel(counts.block("color", "root shape"))
    white, black = at(counts, "color", "white"), at(counts, "color", "black")
    assert k[white, black] == math.exp(-1)
    k = inter_kernel(counts.block("root shape", "color"))
    straight, curled = at(counts, "root shape", "straight"), at(counts, "root shape", "curled")
    assert k[straight, curled] == pytest.approx(math.exp(-1 / 16), rel=1e-15)


def test_ranges_4_2(counts):
    """k_Ia and k_Ie lie between 1/e and 1; the distance (4.5) of k_O reaches beyond its range.

    Erratum: √(2 - 2/e) bounds the distances of k_Ia and k_Ie; that of their product is bounded by
    √(2 - 2/e²) only.
    """
    for f in counts.frequencies:
        assert (intra_kernel(f) >= math.exp(-1)).all() and (intra_kernel(f) <= 1).all()
    rare = {"x": ["a"] * 99 + ["b"], "y": ["p"] * 99 + ["q"]}
    d = CKML().fit(rare).pairwise_distances(rare)[0, -1]
    assert d == pytest.approx(math.sqrt(2 - 2 * math.exp(-1 - 0.98**2)))
    assert math.sqrt(2 - 2 / math.e) < d < math.sqrt(2 - 2 / math.e**2)


def test_inter_coupling_space_7_2_2(counts):
    """m_Ie(yellow) = [p(yellow|clear), p(yellow|blurry), straight, curled, slightly curled]."""
    yellow = at(counts, "color", "yellow")
    by_texture = shares(counts.block("texture", "color")).T[yellow]
    by_root = shares(counts.block("root shape", "color")).T[yellow]
    m = [
        by_texture[at(counts, "texture", "clear")],
        by_texture[at(counts, "texture", "blurry")],
        *(by_root[at(counts, "root shape", v)] for v in ("straight", "curled", "slightly curled")),
    ]
    assert np.allclose(m, [0, 2 / 3, 1 / 2, 1 / 2, 0], rtol=1e-15)
    assert np.dot(m, m) == pytest.approx(17 / 18, rel=1e-15)  # the linear kernel below (7.9)


# -- coupled numeric analysis [Wang, She and Cao 2013] ---------------------------

# Table 1
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


def test_distances_by_correlations_alone_section_1():
    """Each column by its significant correlations with all: the coupled representation of L = 1."""
    Z = CoupledNumeric(1, scale=None).fit_transform(IRIS)
    assert [normalized(Z, *pair) for pair in ((4, 6), (4, 3), (6, 5))] == [0.223, 0.329, 0.218]
    R = np.corrcoef(X.T)
    strong = [
        [i == j or stats.pearsonr(X[:, i], X[:, j])[1] < 0.05 for i in range(4)] for j in range(4)
    ]
    np.testing.assert_allclose(Z, X @ np.where(strong, R, 0))


def test_distances_of_the_coupled_section_4(model):
    Z = model.transform(IRIS)
    pairs = ((4, 6), (4, 3), (6, 5), (3, 5))
    assert [normalized(Z, *pair) for pair in pairs] == [0.448, 0.354, 0.419, 0.830]
    own = CoupledNumeric(2, scale=None, standardize=True).fit_transform(IRIS)
    assert round(float(np.linalg.norm(own[3] - own[5])), 3) == 0.448


# -- distance hierarchies [Huang and Hsu]


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
