import numpy as np
import pytest
from scipy import stats

from tabweave.evaluate import (
    average_ranks,
    bonferroni_dunn,
    critical_difference,
    friedman,
    level_with_best,
    nemenyi,
)

# Zhu (2019), Table 7.1: clustering F of 8 representations on 25 data sets.
METHODS = ["UNTIE", "Couplings", "CDE", "COS", "Ahmad", "DILCA", "Rough", "Hamming"]
TABLE_7_1 = np.array(
    """
    76.12 74.85 75.04 72.1  71.34 71.34 62.79 73.27
    95.28 92.45 61.61 49.24 49.92 85.85 63.2  52.68
    54.17 54.17 52.85 38.98 33.76 32.87 38.92 33.06
    70.40 73.64 69.82 46.29 66.72 65.13 59.21 59.21
    34.99 34.48 32.18 27.71 35.38 31.77 22.36 29.05
    90.51 88.36 89.65 88.36 88.36 88.79 87.04 86.64
    55.04 55.04 52.55 36.26 34.93 34.76 57.63 35.94
    56.65 44.69 56.65 50.18 50.22 48.68 50.62 50.98
    69.29 64.88 62.19 60.1  56.84 59.42 46.41 55.31
    24.62 24.87 23.43 19.81 23.65 21.76 22.38 26.19
    97.51 72.78 73.1  74.58 72.87 72.61 57.99 66.6
    34.86 34.86 54.63 35.32 35.32 35.32 65.19 54.22
    93.91 95.58 96.2  94.28 95.12 95.49 94.44 89.98
    85.49 52.65 52.65 36.99 52.65 79.29 63.47 79.29
    93.27 94.75 95.2  93.56 94.89 95.25 94.37 93.27
    82.77 82.89 81.66 80.06 81.66 82.65 80.67 81.5
    54.8  62.61 54.8  51.88 50.87 52.97 50.19 53.59
    37.08 31.2  32.44 35.79 34.2  35.59 38.85 39.22
    33.72 29.77 33.72 29.77 33.72 33.72 36.27 33.72
    89.79 67.7  51.14 41.91 46.68 59.18 43.28 41.44
    79.73 42.29 87.12 31.31 47.34 45.87 42.79 42.48
    51.09 51.09 51.03 46.72 55.17 55.17 53.73 53.86
    69.5  45.82 48.03 53.91 51.83 61.08 32.65 28.82
    82.69 82.76 82.83 82.91 82.86 82.39 78.18 82.29
    33.20 31.14 31.91 27.23 32.88 33.14 30.34 31.43
    """.split(),
    dtype=float,
).reshape(25, 8)


def test_average_ranks_of_table_7_1_are_the_published_ones():
    published = [2.7, 4.1, 3.54, 5.9, 4.54, 4.42, 5.42, 5.38]
    np.testing.assert_allclose(average_ranks(TABLE_7_1), published, atol=1e-9)


def test_friedman_of_table_7_1_is_the_published_one():
    result = friedman(TABLE_7_1)
    assert result.chi2 == pytest.approx(33.68, abs=0.005)
    assert result.p_value == pytest.approx(1.98e-5, rel=0.005)


def test_bonferroni_dunn_of_table_7_1_marks_the_published_methods():
    result = bonferroni_dunn(TABLE_7_1, control=0, alpha=0.1)
    assert int(result.critical_difference * 100) == 169  # the thesis cuts 1.697 to 1.69
    alike = [m for m, s in zip(METHODS, result.significant, strict=True) if not s]
    assert alike == ["UNTIE", "Couplings", "CDE"]
    assert result.difference[7] == pytest.approx(2.68)


@pytest.mark.parametrize("tied", [False, True])
def test_friedman_agrees_with_scipy(tied):
    rng = np.random.default_rng(0)
    scores = rng.integers(4, size=(12, 5)) if tied else rng.normal(size=(12, 5))
    result = friedman(scores)
    expected = stats.friedmanchisquare(*scores.T)
    assert result.chi2 == pytest.approx(expected.statistic)
    assert result.p_value == pytest.approx(expected.pvalue)


def test_demsar_worked_example():
    # Demšar (2006), section 3.2.2: four methods on 14 data sets.
    assert critical_difference(4, 14, alpha=0.05) == pytest.approx(1.25, abs=0.005)
    assert critical_difference(4, 14, alpha=0.10) == pytest.approx(1.12, abs=0.005)
    cd = critical_difference(4, 14, test="bonferroni-dunn")
    assert cd == pytest.approx(1.16, abs=0.01)  # cut, not rounded: 2.394 * 0.488 = 1.168


def test_iman_davenport_is_the_f_of_the_ranks():
    # An independent route: two-way analysis of variance on the ranks themselves.
    scores = np.random.default_rng(1).normal(size=(9, 4))
    ranks = stats.rankdata(-scores, axis=1)
    methods = 9 * np.sum((ranks.mean(axis=0) - 2.5) ** 2)
    rest = np.sum((ranks - 2.5) ** 2) - methods
    f = (methods / 3) / (rest / (3 * 8))
    result = friedman(scores)
    assert result.f == pytest.approx(f)
    assert result.f_p_value == pytest.approx(stats.f.sf(f, 3, 24))


@pytest.mark.parametrize(
    ("test", "k", "q"),
    [
        ("nemenyi", 2, 1.960),
        ("nemenyi", 5, 2.728),
        ("nemenyi", 10, 3.164),
        ("bonferroni-dunn", 2, 1.960),
        ("bonferroni-dunn", 5, 2.498),
        ("bonferroni-dunn", 10, 2.773),
    ],
)
def test_critical_values_of_demsar(test, k, q):
    cd = critical_difference(k, 20, test=test, alpha=0.05)
    assert cd / np.sqrt(k * (k + 1) / (6 * 20)) == pytest.approx(q, abs=0.0006)


def test_nemenyi_compares_all_pairs():
    result = nemenyi(TABLE_7_1)
    assert result.critical_difference == pytest.approx(critical_difference(8, 25))
    np.testing.assert_array_equal(result.significant, result.significant.T)
    means = average_ranks(TABLE_7_1)
    for i in range(8):
        for j in range(8):
            differs = abs(means[i] - means[j]) >= result.critical_difference
            assert result.significant[i, j] == differs
    assert result.significant[0, 3]  # UNTIE and COS
    assert result.difference[3, 0] == pytest.approx(3.2)
    assert not np.diagonal(result.significant).any()


def test_ties_share_ranks_and_direction_can_turn():
    scores = [[3.0, 1.0, 3.0], [1.0, 1.0, 1.0]]
    assert average_ranks(scores).tolist() == [1.75, 2.5, 1.75]
    assert average_ranks(scores, higher_is_better=False).tolist() == [2.25, 1.5, 2.25]
    assert friedman(scores, False).average_ranks.tolist() == [2.25, 1.5, 2.25]


def test_missing_scores():
    scores = [[1.0, 2.0], [3.0, np.nan], [2.0, 1.0], [2.0, 1.0]]
    with pytest.raises(ValueError, match=r'row 1 of scores lacks a value.*missing="drop"'):
        average_ranks(scores)
    assert average_ranks(scores, missing="drop").tolist() == pytest.approx([4 / 3, 5 / 3])
    assert friedman(scores, missing="drop").n_datasets == 3
    full = [scores[0], scores[2], scores[3]]
    assert nemenyi(scores, missing="drop").critical_difference == nemenyi(full).critical_difference
    with pytest.raises(ValueError, match="no data set"):
        average_ranks([[np.nan, 1.0]], missing="drop")


def test_ranks_with_gaps_are_among_those_that_have_a_score():
    rng = np.random.default_rng(1)
    scores = rng.integers(5, size=(12, 4)).astype(float)
    scores[rng.random(scores.shape) < 0.3] = np.nan
    ranks = []
    for row in scores:
        rivals = row[~np.isnan(row)]
        higher, equal = (rivals[:, None] > row).sum(axis=0), (rivals[:, None] == row).sum(axis=0)
        ranks.append(np.where(np.isnan(row), np.nan, higher + (equal + 1) / 2))
    found = average_ranks(scores, missing="gaps")
    np.testing.assert_allclose(found, np.nanmean(ranks, axis=0))
    assert np.isnan(average_ranks([[1.0, np.nan], [2.0, np.nan]], missing="gaps")[1])
    with pytest.raises(ValueError, match="expected missing="):
        friedman(scores, missing="gaps")


def test_level_with_the_best_is_student_s_t_test():
    rng = np.random.default_rng(3)
    scores = rng.normal([0.8, 0.79, 0.7, 0.8], 0.03, size=(20, 4))
    best = scores.mean(axis=0).argmax()
    p = stats.ttest_ind(scores[:, [best]], scores, axis=0).pvalue
    assert level_with_best(scores).tolist() == (p > 0.05).tolist()
    assert level_with_best(-scores, higher_is_better=False).tolist() == (p > 0.05).tolist()
    assert level_with_best([[1.0, 1.0, 0.5], [1.0, 1.0, 0.5]]).tolist() == [True, True, False]
    with pytest.raises(ValueError, match="at least 2 splits and no gaps"):
        level_with_best([[1.0, np.nan], [1.0, 0.0]])


def test_perfect_agreement_and_no_difference():
    agreed = friedman(np.tile([3.0, 2.0, 1.0], (5, 1)))
    assert (agreed.chi2, agreed.f, agreed.f_p_value) == (pytest.approx(10), np.inf, 0)
    even = friedman(np.ones((5, 3)))
    assert (even.chi2, even.p_value, even.f_p_value) == (0, 1, 1)


def test_order_of_data_sets_changes_nothing_and_methods_move_along():
    rng = np.random.default_rng(2)
    rows, columns = rng.permutation(25), rng.permutation(8)
    moved = TABLE_7_1[rows][:, columns]
    np.testing.assert_allclose(average_ranks(moved), average_ranks(TABLE_7_1)[columns])
    assert friedman(moved).chi2 == pytest.approx(friedman(TABLE_7_1).chi2)


def test_bad_input():
    with pytest.raises(ValueError, match="at least 2 columns"):
        average_ranks([1.0, 2.0])
    with pytest.raises(ValueError, match="at least 2 data sets"):
        friedman([[1.0, 2.0]])
    with pytest.raises(ValueError, match="expected control to be a column from 0 to 7"):
        bonferroni_dunn(TABLE_7_1, control=8)
    with pytest.raises(ValueError, match="expected control to be a column"):
        bonferroni_dunn(TABLE_7_1, control="UNTIE")
    with pytest.raises(ValueError, match="alpha"):
        nemenyi(TABLE_7_1, alpha=5)
    with pytest.raises(ValueError, match="expected test="):
        critical_difference(3, 3, test="holm")
    with pytest.raises(ValueError, match="expected missing="):
        average_ranks(TABLE_7_1, missing="ignore")
