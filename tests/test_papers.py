"""Every worked example of the thesis's chapters 2 to 4, on its table of watermelons."""

import math
from fractions import Fraction

import numpy as np
import pytest

from tabweave import Counts, Table
from tabweave.counts.couplings import conditional, frequencies
from tabweave.measures.ckml import inter_kernel, intra_kernel
from tabweave.published import CKML

# Table 2.1
WATERMELONS = {
    "texture": ["clear", "blurry", "blurry", "clear", "blurry", "clear"],
    "color": ["white", "yellow", "yellow", "green", "green", "black"],
    "root shape": [
        "straight", "straight", "curled", "slightly curled", "curled", "slightly curled",
    ],
}  # fmt: skip
SWEETNESS = ["low", "low", "low", "low", "high", "high"]


@pytest.fixture
def counts():
    return Counts.of(Table.of(WATERMELONS), SWEETNESS)


def at(counts, column, value):
    """Return the place of a value in its column."""
    return counts.labels[counts.names.index(column)].index(value)


def test_values_3_2(counts):
    values = {v for labels in counts.labels for v in labels}
    assert values == {
        "clear", "blurry", "white", "yellow", "green", "black", "straight", "curled",
        "slightly curled",
    }  # fmt: skip
    assert set(counts.labels[0]) == {"clear", "blurry"}
    assert WATERMELONS["root shape"][1] == "straight"


def test_objects_of_values_and_classes_definitions_3_1_and_3_2(counts):
    """How many objects the mapped sets hold: {A4, A6}, {A1, A6}; {A1..A4}, {A5, A6}."""
    c = counts.value_counts
    assert c[counts.span("root shape")][at(counts, "root shape", "slightly curled")] == 2
    assert sum(c[counts.span("color")][at(counts, "color", v)] for v in ("white", "black")) == 2
    assert dict(zip(counts.classes, counts.class_n, strict=True)) == {"low": 4, "high": 2}


def test_frequencies_definition_3_3(counts):
    assert frequencies(counts)[1][at(counts, "color", "white")] == 1 / 6
    assert frequencies(counts)[2][at(counts, "root shape", "curled")] == 1 / 3


def test_conditional_probabilities_definition_3_4(counts):
    p = conditional(counts, "root shape", "color")
    assert p[at(counts, "root shape", "curled"), at(counts, "color", "yellow")] == 1 / 2
    i = counts.span("root shape").start + at(counts, "root shape", "curled")
    low = counts.classes.index("low")
    assert Fraction(int(counts.class_pairs[i, low]), int(counts.class_n[low])) == Fraction(1, 4)


def test_curled_and_slightly_curled_2_4_3(counts):
    """Equally frequent, but one goes with yellow and green, the other with green and black."""
    f = frequencies(counts)[2]
    curled, slightly = (at(counts, "root shape", v) for v in ("curled", "slightly curled"))
    assert f[curled] - f[slightly] == 0
    met = counts.block("root shape", "color") > 0
    color = counts.labels[1]
    assert {v for v, m in zip(color, met[curled], strict=True) if m} == {"yellow", "green"}
    assert {v for v, m in zip(color, met[slightly], strict=True) if m} == {"green", "black"}


def test_intra_kernel_4_2_2(counts):
    k = intra_kernel(frequencies(counts)[1])
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
    for f in frequencies(counts):
        assert (intra_kernel(f) >= math.exp(-1)).all() and (intra_kernel(f) <= 1).all()
    rare = {"x": ["a"] * 99 + ["b"], "y": ["p"] * 99 + ["q"]}
    d = CKML().fit(rare).pairwise_distances(rare)[0, -1]
    assert d == pytest.approx(math.sqrt(2 - 2 * math.exp(-1 - 0.98**2)))
    assert math.sqrt(2 - 2 / math.e) < d < math.sqrt(2 - 2 / math.e**2)


def test_inter_coupling_space_7_2_2(counts):
    """m_Ie(yellow) = [p(yellow|clear), p(yellow|blurry), straight, curled, slightly curled]."""
    yellow = at(counts, "color", "yellow")
    by_texture = conditional(counts, "color", "texture")[yellow]
    by_root = conditional(counts, "color", "root shape")[yellow]
    m = [
        by_texture[at(counts, "texture", "clear")],
        by_texture[at(counts, "texture", "blurry")],
        *(by_root[at(counts, "root shape", v)] for v in ("straight", "curled", "slightly curled")),
    ]
    assert np.allclose(m, [0, 2 / 3, 1 / 2, 1 / 2, 0], rtol=1e-15)
    assert np.dot(m, m) == pytest.approx(17 / 18, rel=1e-15)  # the linear kernel below (7.9)
