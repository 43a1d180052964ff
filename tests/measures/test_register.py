"""What every registered measure promises, whatever family it comes from."""

import warnings

import numpy as np
import pytest

from tabweave import Schema
from tabweave.embed.value_metric import ValueMetric
from tabweave.measures import MEASURES, list_measures, measure
from tabweave.measures.register import find

NAMES = list(MEASURES)
VALUED = [name for name in NAMES if MEASURES[name].form != "pairwise"]
SEEDS = range(6)


def random_rows(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 25))
    sizes = rng.integers(1, 6, 3)
    values = ["p", "q", None, 7, "r", "s"]
    rows = [[values[int(k * rng.random() ** 2)] for k in sizes] for _ in range(n)]
    y = rng.integers(0, 3, n)
    y[:2] = 0, 1
    return rows, y


def fitted(name, rows, y):
    return ValueMetric(name, schema="nominal").fit(rows, y if MEASURES[name].needs_y else None)


def test_the_names_of_the_design_are_there():
    promised = (
        "hamming of iof eskin goodall1 goodall2 goodall3 goodall4 lin lin1 smirnov anderberg "
        "gambaryan burnaby rough ahmad dilca le_ho jia cos cos_intra cos_inter ckml ckml_intra "
        "ckml_inter vdm mtdle"
    )
    assert set(promised.split()) <= set(MEASURES)


def test_every_measure_says_what_it_is():
    assert list(list_measures()) == NAMES
    for name, entry in MEASURES.items():
        assert entry.name == name
        assert entry.summary
        assert entry.reference
        assert entry.function.__doc__
        assert entry.form in ("table", "ratio", "pairwise")


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", NAMES)
def test_row_distances_are_dissimilarities(name, seed):
    rows, y = random_rows(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        d = fitted(name, rows, y).pairwise_distances(rows)
    assert np.isfinite(d).all()
    assert (d >= 0).all()
    assert (np.diagonal(d) == 0).all()
    np.testing.assert_allclose(d, d.T, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", VALUED)
def test_value_tables_are_dissimilarities(name, seed):
    rows, y = random_rows(seed)
    counts = fitted(name, rows, y).counts_.present(["x0", "x1", "x2"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = MEASURES[name].function(counts)
    if MEASURES[name].form == "ratio":
        metric = ValueMetric(name, schema=Schema(missing="value"))
        counts = metric.fit(rows, y).counts_
        result = metric.dissimilarities_
    assert len(result) == len(counts.names)
    for d, size in zip(result, counts.sizes, strict=True):
        assert d.shape == (size, size)
        assert np.isfinite(d).all()
        assert (d >= -1e-12).all()
        np.testing.assert_allclose(np.diagonal(d), 0, atol=1e-12)
        np.testing.assert_allclose(d, d.T, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", NAMES)
def test_order_of_rows_does_not_matter(name):
    rows, y = random_rows(11)
    shuffled = np.random.default_rng(0).permutation(len(rows))
    other = fitted(name, [rows[i] for i in shuffled], y[shuffled])
    np.testing.assert_array_equal(
        fitted(name, rows, y).pairwise_distances(rows), other.pairwise_distances(rows)
    )


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", NAMES)
def test_names_of_values_do_not_matter(name, seed):
    rows, y = random_rows(seed)
    renamed = {"p": "z", "q": 3, None: None, 7: "m", "r": "b", "s": "a"}
    others = [[renamed[v] for v in row] for row in rows]
    np.testing.assert_allclose(
        fitted(name, rows, y).pairwise_distances(rows),
        fitted(name, others, y).pairwise_distances(others),
        rtol=1e-9,
        atol=1e-9,
    )


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("name", [name for name in VALUED if MEASURES[name].metric])
def test_metrics_satisfy_the_triangle_inequality(name, seed):
    rows, y = random_rows(seed)
    for d in fitted(name, rows, y).dissimilarities_:
        detour = (d[:, :, None] + d[None, :, :]).min(axis=1)
        assert (d <= detour + 1e-9 * (1 + d.max())).all()


@pytest.mark.parametrize("name", [name for name in NAMES if not MEASURES[name].needs_y])
@pytest.mark.parametrize("rows", [[["a", None]], [["a", "x"]] * 3], ids=["one row", "one value"])
def test_nothing_to_compare_is_no_error(name, rows):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        d = ValueMetric(name, schema="nominal").fit(rows).pairwise_distances(rows)
    np.testing.assert_array_equal(d, np.zeros((len(rows), len(rows))))


def test_a_name_is_registered_once():
    with pytest.raises(
        ValueError, match=r"expected one measure named 'hamming', got two: .*frequency\.hamming"
    ):
        measure("hamming", "", "")(lambda counts: [])


@pytest.mark.parametrize("name", ["hamingg", ["of"], None])
def test_an_unknown_name_lists_the_known(name):
    with pytest.raises(ValueError, match=r"expected a measure, one of ahmad, .*, got ") as refusal:
        find(name)
    assert ("did you mean 'hamming'?" in str(refusal.value)) == (name == "hamingg")


def test_a_name_nobody_knows_is_answered_with_the_nearest():
    with pytest.raises(ValueError, match=r"\(did you mean 'hamming'\?\)"):
        find("haming")
    with pytest.raises(ValueError) as error:
        find("zzzzzz")
    assert "did you mean" not in str(error.value)
