"""Scores and tests to evaluate representations: pure functions on arrays.

Nothing here knows how a representation was made. Each function's docstring names the equation it
computes. NMI, the Rand index and the index of Davies and Bouldin are scikit-learn's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

__all__ = [
    "ClassRates",
    "FriedmanTest",
    "RankComparison",
    "average_ranks",
    "bonferroni_dunn",
    "class_rates",
    "clustering_accuracy",
    "clustering_f",
    "critical_difference",
    "friedman",
    "level_with_best",
    "macro_f",
    "matched_labels",
    "neighbor_precision_at_k",
    "neighbor_recall_at_k",
    "nemenyi",
    "precision_at_k",
    "recall_at_k",
]

# -- Many methods on many data sets: average ranks, and which differences are real ----------------
#
# Comes in: a table of scores, one row per data set and one column per method. Goes out: average
# ranks, the Friedman test and critical differences. [Demšar 2006; Zhu 2019, section 3.5.2]

Missing = Literal["raise", "drop"]


@dataclass(frozen=True)
class FriedmanTest:
    """Result of `friedman`: both statistics, their p-values and the ranks they are computed from.

    Attributes
    ----------
    chi2, p_value : float
        Friedman's statistic, and its p-value.
    f, f_p_value : float
        The statistic of Iman and Davenport, and its p-value.
    average_ranks : ndarray of shape (methods,)
        The mean rank of each method.
    n_datasets : int
        How many data sets there are.

    Examples
    --------
    >>> from tabweave.evaluate import friedman
    >>> friedman([[3, 2, 1], [3, 1, 2], [3, 2, 1]]).average_ranks.round(2).tolist()
    [1.0, 2.33, 2.67]
    """

    chi2: float
    p_value: float
    f: float
    f_p_value: float
    average_ranks: np.ndarray
    n_datasets: int


@dataclass(frozen=True)
class RankComparison:
    """Result of a post-hoc test on average ranks.

    ``difference`` and ``significant`` hold one entry per method (against the control,
    `bonferroni_dunn`) or one per pair of methods (`nemenyi`). A positive difference means a worse
    rank than the control's, or entry (i, j): method i ranks worse than method j.

    Examples
    --------
    >>> from tabweave.evaluate import nemenyi
    >>> found = nemenyi([[3, 2, 1]] * 10)
    >>> found.difference.tolist()
    [[0.0, -1.0, -2.0], [1.0, 0.0, -1.0], [2.0, 1.0, 0.0]]
    >>> found.significant.tolist()
    [[False, False, True], [False, False, False], [True, False, False]]
    """

    average_ranks: np.ndarray
    critical_difference: float
    difference: np.ndarray
    significant: np.ndarray


def average_ranks(
    scores: Any, higher_is_better: bool = True, *, missing: Missing | Literal["gaps"] = "raise"
) -> np.ndarray:
    """Rank the methods on every data set (1 is best) and average; ties share their ranks.

    Parameters
    ----------
    scores : array-like of shape (n_datasets, n_methods)
        One score per data set and method.
    higher_is_better : bool, default=True
        Whether the highest score gets rank 1.
    missing : {"raise", "drop", "gaps"}, default="raise"
        What to do with a data set that lacks a score (NaN): refuse, leave it out, or rank the
        methods that have one among themselves. A method is then averaged over the data sets where
        it has a rank, as the thesis does for one that ran out of memory: with fewer rivals ranks
        are lower, so methods with gaps are favoured.

    Returns
    -------
    ndarray of shape (n_methods,)
        Average ranks; NaN for a method without any score.

    References
    ----------
    Demšar (2006), section 3.2.2.

    Examples
    --------
    >>> from tabweave.evaluate import average_ranks
    >>> average_ranks([[0.9, 0.8, 0.8], [0.7, 0.6, 0.5]])
    array([1. , 2.25, 2.75])
    >>> average_ranks([[0.9, 0.8, 0.7], [0.6, float("nan"), 0.7]], missing="gaps")
    array([1.5, 2. , 2. ])
    """
    if missing != "gaps":
        return _ranks(scores, higher_is_better, missing).mean(axis=0)
    ranks = _ranked(_score_table(scores), higher_is_better)
    has_rank = ~np.isnan(ranks)
    total = np.where(has_rank, ranks, 0.0).sum(axis=0)
    n_ranks = has_rank.sum(axis=0)
    return np.divide(total, n_ranks, out=np.full(len(total), np.nan), where=n_ranks > 0)


def friedman(
    scores: Any, higher_is_better: bool = True, *, missing: Missing = "raise"
) -> FriedmanTest:
    """Test whether any methods differ: Friedman's chi² and Iman and Davenport's F.

    The chi² is corrected for ties, as the published values of the thesis are.

    Parameters
    ----------
    scores, higher_is_better, missing
        As in `average_ranks`.

    Returns
    -------
    FriedmanTest
        With ``chi2, p_value, f, f_p_value, average_ranks, n_datasets``.

    References
    ----------
    Demšar (2006), section 3.2.2; Friedman (1937); Iman and Davenport (1980).

    Examples
    --------
    >>> from tabweave.evaluate import friedman
    >>> result = friedman([[3, 2, 1], [3, 2, 1], [3, 1, 2], [3, 2, 1]])
    >>> result.chi2, round(result.p_value, 4), round(result.f, 4)
    (6.5, 0.0388, 13.0)
    """
    from scipy import stats

    ranks = _ranks(scores, higher_is_better, missing)
    n, k = ranks.shape
    if n < 2:
        raise ValueError(f"expected at least 2 data sets for the Friedman test, got {n}")
    centred = ranks - (k + 1) / 2
    variance = np.sum(centred**2) / (k - 1)  # n k (k + 1) / 12 without ties
    if variance == 0:  # every data set ties every method: no sign of a difference
        return FriedmanTest(0.0, 1.0, 0.0, 1.0, ranks.mean(axis=0), n)
    chi2 = float(np.sum(centred.sum(axis=0) ** 2) / variance)
    room = n * (k - 1) - chi2  # 0 when all data sets agree on one order
    f = (n - 1) * chi2 / room if room > 1e-9 else np.inf
    return FriedmanTest(
        chi2=chi2,
        p_value=float(stats.chi2.sf(chi2, k - 1)),
        f=float(f),
        f_p_value=float(stats.f.sf(f, k - 1, (k - 1) * (n - 1))),
        average_ranks=ranks.mean(axis=0),
        n_datasets=n,
    )


def critical_difference(
    n_methods: int,
    n_datasets: int,
    *,
    test: Literal["nemenyi", "bonferroni-dunn"] = "nemenyi",
    alpha: float = 0.05,
) -> float:
    """Smallest difference of average ranks that is significant.

    ``q sqrt(k (k + 1) / (6 N))`` for k methods and N data sets. For Nemenyi's test, which
    compares all pairs, q is a quantile of the studentized range over ``sqrt(2)``; for Bonferroni
    and Dunn's, which compares with one control, the normal quantile of level ``alpha / (k - 1)``.

    Parameters
    ----------
    n_methods, n_datasets : int
        Size of the comparison.
    test : {"nemenyi", "bonferroni-dunn"}, default="nemenyi"
        Which comparisons are made.
    alpha : float, default=0.05
        Level of the test.

    Returns
    -------
    float
        The critical difference.

    References
    ----------
    Demšar (2006), section 3.2.2.

    Examples
    --------
    >>> from tabweave.evaluate import critical_difference
    >>> round(critical_difference(8, 25, test="bonferroni-dunn", alpha=0.1), 2)
    1.7
    """
    from scipy import stats

    if n_methods < 2 or n_datasets < 1:
        raise ValueError(
            f"expected at least 2 methods and 1 data set, got {n_methods} and {n_datasets}"
        )
    if not 0 < alpha < 1:
        raise ValueError(f"expected alpha between 0 and 1, got {alpha}")
    if test == "nemenyi":
        q = stats.studentized_range.ppf(1 - alpha, n_methods, np.inf) / np.sqrt(2)
    elif test == "bonferroni-dunn":
        q = stats.norm.isf(alpha / (n_methods - 1) / 2)
    else:
        raise ValueError(f'expected test="nemenyi" or "bonferroni-dunn", got {test!r}')
    return float(q * np.sqrt(n_methods * (n_methods + 1) / (6 * n_datasets)))


def bonferroni_dunn(
    scores: Any,
    control: int,
    alpha: float = 0.05,
    higher_is_better: bool = True,
    *,
    missing: Missing = "raise",
) -> RankComparison:
    """Compare every method with one control.

    Parameters
    ----------
    control : int
        Column of the method that the others are compared with.
    alpha : float, default=0.05
        Level of the test over all comparisons together.
    scores, higher_is_better, missing
        As in `average_ranks`.

    Returns
    -------
    RankComparison
        One difference and one flag per method; the control's own are 0 and False.

    References
    ----------
    Dunn (1961); Demšar (2006), section 3.2.2.

    Examples
    --------
    >>> import numpy as np
    >>> from tabweave.evaluate import bonferroni_dunn
    >>> result = bonferroni_dunn(np.tile([0.9, 0.8, 0.7], (10, 1)), control=0)
    >>> round(result.critical_difference, 3), result.significant.tolist()
    (1.002, [False, False, True])
    """
    ranks = _ranks(scores, higher_is_better, missing)
    n, k = ranks.shape
    if not isinstance(control, int | np.integer) or not 0 <= control < k:
        raise ValueError(f"expected control to be a column from 0 to {k - 1}, got {control!r}")
    cd = critical_difference(k, n, test="bonferroni-dunn", alpha=alpha)
    means = ranks.mean(axis=0)
    difference = means - means[control]
    return RankComparison(means, cd, difference, np.abs(difference) >= cd)


def nemenyi(
    scores: Any, alpha: float = 0.05, higher_is_better: bool = True, *, missing: Missing = "raise"
) -> RankComparison:
    """Compare every method with every other.

    Parameters
    ----------
    scores, alpha, higher_is_better, missing
        As in `average_ranks` and `bonferroni_dunn`.

    Returns
    -------
    RankComparison
        Square ``difference`` and ``significant``.

    References
    ----------
    Nemenyi (1963); Demšar (2006), section 3.2.2.

    Examples
    --------
    >>> import numpy as np
    >>> from tabweave.evaluate import nemenyi
    >>> result = nemenyi(np.tile([0.9, 0.8, 0.7], (10, 1)))
    >>> result.significant[0].tolist()
    [False, False, True]
    """
    ranks = _ranks(scores, higher_is_better, missing)
    n, k = ranks.shape
    cd = critical_difference(k, n, test="nemenyi", alpha=alpha)
    means = ranks.mean(axis=0)
    pairs = means[:, None] - means
    return RankComparison(means, cd, pairs, np.abs(pairs) >= cd)


def level_with_best(scores: Any, alpha: float = 0.05, higher_is_better: bool = True) -> np.ndarray:
    """Which methods do not differ from the best one on a data set: those that get a star.

    Student's t-test of two samples of equal variance, the best mean's scores and a method's.

    Parameters
    ----------
    scores : array-like of shape (n_splits, n_methods)
        One score per split of the data set and method.
    alpha : float, default=0.05
        Level of the test.
    higher_is_better : bool, default=True
        Whether the highest mean is the best.

    Returns
    -------
    ndarray of bool of shape (n_methods,)
        The best method is level with itself.

    References
    ----------
    Zhu (2019), Table 6.1.

    Examples
    --------
    >>> from tabweave.evaluate import level_with_best
    >>> level_with_best([[0.90, 0.89, 0.5], [0.92, 0.93, 0.6], [0.91, 0.90, 0.4]]).tolist()
    [True, True, False]
    """
    from scipy.stats import ttest_ind_from_stats

    table = np.asarray(scores, dtype=float)
    if table.ndim != 2 or len(table) < 2 or np.isnan(table).any():
        raise ValueError(
            "scores: expected a row for each of at least 2 splits and no gaps, got an array of "
            f"shape {table.shape} with {int(np.isnan(table).sum())} gaps"
        )
    mean, std, n = table.mean(axis=0), table.std(axis=0, ddof=1), len(table)
    best = int(mean.argmax() if higher_is_better else mean.argmin())
    with np.errstate(divide="ignore", invalid="ignore"):  # scores that never vary
        p = ttest_ind_from_stats(mean[best], std[best], n, mean, std, n).pvalue
    return np.where(mean == mean[best], True, p > alpha)


def _ranks(scores: Any, higher_is_better: bool, missing: Missing) -> np.ndarray:
    table = _score_table(scores)
    incomplete = np.isnan(table).any(axis=1)
    if missing not in ("raise", "drop"):
        raise ValueError(f'expected missing="raise" or "drop", got {missing!r}')
    if missing == "raise" and incomplete.any():
        raise ValueError(
            f"row {np.flatnonzero(incomplete)[0]} of scores lacks a value; fill it, or pass "
            'missing="drop" to leave such data sets out'
        )
    table = table[~incomplete]
    if not len(table):
        raise ValueError("no data set has a score for every method")
    return _ranked(table, higher_is_better)


def _score_table(scores: Any) -> np.ndarray:
    table = np.asarray(scores, dtype=float)
    if table.ndim != 2 or table.shape[1] < 2:
        raise ValueError(
            f"scores: expected a row per data set and at least 2 columns, got {table.shape}"
        )
    return table


def _ranked(table: np.ndarray, higher_is_better: bool) -> np.ndarray:
    """Ranks in each row, NaN where there is no score."""
    from scipy.stats import rankdata

    return rankdata(-table if higher_is_better else table, axis=1, nan_policy="omit")


# -- How well classes are found again: by labels, by clusters, by the nearest objects -------------
#
# Comes in: the true classes, and the found labels or distances. Goes out: F and accuracy of
# labels, precision@k and recall@k of distances (or lists of neighbours), which no renaming of
# labels and no reordering of objects can change. Every score starts with `encode`, which makes
# small integers of labels. [Zhu 2019, section 3.5.2]

_NAMES = ("y_true", "labels")
Sizes = int | Sequence[int]  # one k, or several


def matched_labels(y_true: Any, labels: Any) -> np.ndarray:
    """Name every cluster after a class: the one-to-one matching with the largest overlap.

    Clusters and classes are matched by the Hungarian method on their contingency table. Among
    matchings of equal overlap the one with the largest macro F is taken.

    Parameters
    ----------
    y_true, labels : array-like of shape (n_objects,)
        True class and cluster of each object, of any type.

    Returns
    -------
    ndarray of shape (n_objects,)
        The class matched to each object's cluster. When there are more clusters than classes,
        the objects of an unmatched cluster hold ``None``.

    References
    ----------
    Kuhn (1955), The Hungarian method for the assignment problem.

    Examples
    --------
    >>> from tabweave.evaluate import matched_labels
    >>> matched_labels(["a", "a", "b", "b", "b"], [1, 1, 0, 0, 7]).tolist()
    ['a', 'a', 'b', 'b', None]
    """
    classes, true_codes, clusters, found_codes = encode_pair(y_true, labels, _NAMES)
    class_of = np.full(len(clusters), -1)
    rows, columns = _matching(contingency(true_codes, found_codes))
    class_of[columns] = rows
    names = np.empty(len(classes) + 1, dtype=object)
    names[: len(classes)] = classes
    names[-1] = None  # code -1: no class left for this cluster
    matched = names[class_of[found_codes]]
    dtype = getattr(y_true, "dtype", None)
    if isinstance(dtype, np.dtype) and (class_of >= 0).all():
        return matched.astype(dtype)
    return matched


def clustering_f(y_true: Any, labels: Any) -> float:
    """Eq. (3.5) for clusters: macro F after matching clusters to classes.

    The mean over the true classes of ``2 n_ij / (n_i + n_j)``, where cluster j is matched to
    class i as in `matched_labels`, ``n_ij`` is their overlap and ``n_i``, ``n_j`` their sizes. A
    class without a cluster scores 0; objects of a cluster without a class count as not found.

    Parameters
    ----------
    y_true, labels : array-like of shape (n_objects,)
        Classes and clusters of the same objects.

    Returns
    -------
    float
        1 if the clusters are the classes.

    References
    ----------
    Zhu (2019), Eq. (3.5).

    Examples
    --------
    >>> from tabweave.evaluate import clustering_f
    >>> clustering_f(["a", "a", "b", "b"], [1, 1, 0, 0])
    1.0
    >>> round(clustering_f(["a", "a", "b", "b"], [0, 0, 0, 1]), 4)
    0.7333
    """
    _, true_codes, _, found_codes = encode_pair(y_true, labels, _NAMES)
    table = contingency(true_codes, found_codes)
    rows, columns = _matching(table)
    return float(_f_of_pairs(table)[rows, columns].sum() / table.shape[0])


def clustering_accuracy(y_true: Any, labels: Any) -> float:
    """Share of objects whose cluster is matched to their class.

    Parameters
    ----------
    y_true, labels : array-like of shape (n_objects,)
        The classes, and clusters that are matched to them.

    Returns
    -------
    float
        Between 0 and 1; larger is better.

    References
    ----------
    Wang, She, Cao (2013), section 5 (accuracy of a clustering); matching as in `matched_labels`.

    Examples
    --------
    >>> from tabweave.evaluate import clustering_accuracy
    >>> clustering_accuracy(["a", "a", "b", "b"], [0, 0, 0, 1])
    0.75
    """
    _, true_codes, _, found_codes = encode_pair(y_true, labels, _NAMES)
    table = contingency(true_codes, found_codes)
    return float(table[_matching(table)].sum() / table.sum())


def macro_f(y_true: Any, y_pred: Any, *, classes: Literal["true", "either"] = "true") -> float:
    """Eq. (3.5) for classes: F of each class, averaged over classes.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_objects,)
        True and predicted classes.
    classes : {"true", "either"}, default="true"
        Average over the classes of ``y_true``: one that occurs only in ``y_pred`` lowers the recall
        of others and no more. ``"either"`` counts it in with an F of 0, as scikit-learn does.

    Returns
    -------
    float
        1 if every class is predicted right, 0 if no object is.

    References
    ----------
    Zhu (2019), Eq. (3.5).

    Examples
    --------
    >>> from tabweave.evaluate import macro_f
    >>> round(macro_f(["a", "a", "b", "b"], ["a", "a", "a", "b"]), 4)
    0.7333
    """
    if classes not in ("true", "either"):
        raise ValueError(f"expected classes 'true' or 'either', got {classes!r}")
    names = ("y_true", "y_pred")
    true, true_codes, predicted, predicted_codes = encode_pair(y_true, y_pred, names)
    true_code_of = recode(predicted, true, names[::-1])
    codes = true_code_of[predicted_codes]
    codes[codes < 0] = len(true)  # one extra code for every label that is no true class
    hits = np.bincount(true_codes[true_codes == codes], minlength=len(true))
    sizes = np.bincount(true_codes, minlength=len(true))
    named = np.bincount(codes, minlength=len(true))[: len(true)]
    n_classes = len(true) + (int((true_code_of < 0).sum()) if classes == "either" else 0)
    return float((2 * hits / (sizes + named)).sum() / n_classes)


class ClassRates(NamedTuple):
    """Rates of `class_rates`, each a mean over classes.

    Attributes
    ----------
    precision : float
        Of the objects that are said to be of a class, the share that is.
    recall : float
        Of the objects of a class, the share that is said to be.
    specificity : float
        Of the objects of other classes, the share that is not said to be of this one.
    """

    precision: float
    recall: float
    specificity: float


def class_rates(y_true: Any, y_pred: Any) -> ClassRates:
    """Precision, recall and specificity of each class, averaged over the classes of ``y_true``.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_objects,)
        True and predicted classes. A class that is never said has a precision of 0; where all
        objects are of one class, its specificity is 1.

    Returns
    -------
    ClassRates
        ``precision``, ``recall`` and ``specificity``.

    References
    ----------
    Wang, She, Cao (2013), section 5.4, Figure 4.

    Examples
    --------
    >>> from tabweave.evaluate import class_rates
    >>> class_rates(["a", "a", "b", "b"], ["a", "a", "a", "b"])
    ClassRates(precision=0.8333333333333333, recall=0.75, specificity=0.75)
    """
    true, true_codes, predicted, predicted_codes = encode_pair(y_true, y_pred, ("y_true", "y_pred"))
    codes = recode(predicted, true, ("y_pred", "y_true"))[predicted_codes]
    n, k = len(true_codes), len(true)
    hits = np.bincount(true_codes[true_codes == codes], minlength=k)
    sizes = np.bincount(true_codes, minlength=k)
    named = np.bincount(codes[codes >= 0], minlength=k)
    precision = hits / np.maximum(named, 1)
    recall = hits / sizes
    specificity = 1 - (named - hits) / np.maximum(n - sizes, 1)
    return ClassRates(*(float(rate.mean()) for rate in (precision, recall, specificity)))


def _matching(table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns of the one-to-one matching: most overlap first, most F among equals."""
    from scipy.optimize import linear_sum_assignment

    # Overlaps are whole numbers and at most min(shape) pairs add less than 1/2 in all, so F
    # decides ties only. Without it the matching would depend on the order of the labels.
    bonus = _f_of_pairs(table) / (2 * min(table.shape) + 1)
    return linear_sum_assignment(table + bonus, maximize=True)


def _f_of_pairs(table: np.ndarray) -> np.ndarray:
    """F of every class with every cluster: 2 n_ij / (n_i + n_j)."""
    return 2 * table / (table.sum(axis=1, keepdims=True) + table.sum(axis=0, keepdims=True))


# -- by the nearest objects ----------------------------------------------------------------------
# Ties count by expectation: on categorical data most neighbours are tied.


def precision_at_k(
    distances: Any,
    y_query: Any,
    y_reference: Any = None,
    *,
    k: Sizes = 10,
    own: Any = None,
    tolerance: float = 1e-9,
) -> float | np.ndarray:
    """Precision@k: the share of the k nearest objects that are of the query's class.

    All objects tied at the k-th distance share the remaining ranks equally.

    Parameters
    ----------
    distances : array-like of shape (n_queries, n_references)
        Distance of every query to every reference; small is near. Without ``y_reference`` it is
        square and each object is left out of its own neighbours.
    y_query : array-like of shape (n_queries,)
        Class of each query.
    y_reference : array-like of shape (n_references,), optional
        Class of each reference; by default the queries are the references.
    k : int or sequence of int, default=10
        How many objects are retrieved.
    own : array-like of int of shape (n_queries,), optional
        Column to leave out for each query, when ``distances`` is a block of rows of a square
        matrix. By default nothing is left out if ``y_reference`` is given.
    tolerance : float, default=1e-09
        Distances closer than this share of the query's largest finite distance are tied, so
        that rounding does not break ties.

    Returns
    -------
    float or ndarray
        The mean over queries: a float for a single k, an array for several.

    See Also
    --------
    neighbor_precision_at_k : The same from lists of neighbours.

    References
    ----------
    Zhu (2019), section 3.5.2.

    Examples
    --------
    >>> import numpy as np
    >>> from tabweave.evaluate import precision_at_k
    >>> x = np.array([0.0, 1.0, 2.0, 10.0])
    >>> distances = abs(x[:, None] - x)
    >>> precision_at_k(distances, ["a", "a", "b", "b"], k=[1, 3])
    array([0.625     , 0.33333333])
    """
    hits, _ = _distance_hits(distances, y_query, y_reference, k, own, tolerance)
    return _answer(np.mean(hits / _as_sizes(k), axis=0), k)


def recall_at_k(
    distances: Any, y_query: Any, y_reference: Any = None, *, k: Sizes = 10, own: Any = None,
    tolerance: float = 1e-9,
) -> float | np.ndarray:  # fmt: skip
    """Recall@k: the share of the objects of the query's class that are among its k nearest.

    Queries with no other object of their class have nothing to find and are left out of the mean.

    Parameters
    ----------
    distances, y_query, y_reference, k, own, tolerance
        As in `precision_at_k`, and so is what is returned.

    References
    ----------
    Zhu (2019), section 3.5.2: recall@k.

    Examples
    --------
    >>> import numpy as np
    >>> from tabweave.evaluate import recall_at_k
    >>> x = np.array([0.0, 1.0, 2.0, 10.0])
    >>> recall_at_k(abs(x[:, None] - x), ["a", "a", "b", "b"], k=[1, 3])
    array([0.625, 1. ])
    """
    hits, relevant = _distance_hits(distances, y_query, y_reference, k, own, tolerance)
    return _answer(_mean_recall(hits, relevant), k)


def neighbor_precision_at_k(
    neighbors: Any, y_query: Any, y_reference: Any = None, *, k: Sizes = 10
) -> float | np.ndarray:
    """Precision@k from ranked lists of neighbours.

    Parameters
    ----------
    neighbors : array-like of int of shape (n_queries, n_listed)
        Row numbers of the references, nearest first; -1 where an index found nothing (a miss).
    y_query, y_reference, k
        As in `precision_at_k`. Without ``y_reference`` a query found in its own list is skipped.

    References
    ----------
    Zhu (2019), section 3.5.2.

    Examples
    --------
    >>> from tabweave.evaluate import neighbor_precision_at_k
    >>> neighbor_precision_at_k([[0, 1], [1, 0], [2, 0]], ["a", "a", "b"], k=1)
    0.666...
    """
    hits, _ = _listed_hits(neighbors, y_query, y_reference, k)
    return _answer(np.mean(hits / _as_sizes(k), axis=0), k)


def neighbor_recall_at_k(
    neighbors: Any, y_query: Any, y_reference: Any = None, *, k: Sizes = 10
) -> float | np.ndarray:
    """Recall@k from ranked lists of neighbours.

    Parameters
    ----------
    neighbors, y_query, y_reference, k
        As in `neighbor_precision_at_k`; the mean is over queries that have something to find.

    References
    ----------
    Zhu (2019), section 3.5.2.

    Examples
    --------
    >>> from tabweave.evaluate import neighbor_recall_at_k
    >>> neighbor_recall_at_k([[0, 1], [1, 2], [2, 0]], ["a", "a", "a"], k=1)
    0.5
    """
    hits, relevant = _listed_hits(neighbors, y_query, y_reference, k)
    return _answer(_mean_recall(hits, relevant), k)


def _distance_hits(
    distances: Any, y_query: Any, y_reference: Any, k: Any, own: Any, tolerance: float
) -> tuple[np.ndarray, np.ndarray]:
    """The expected hits of every query at every k and its number of relevant objects."""
    distances = np.asarray(distances)
    query, reference = _codes(y_query, y_reference)
    if distances.shape != (query.size, reference.size):
        raise ValueError(
            f"distances: expected shape {(query.size, reference.size)}, got {distances.shape}; "
            "pass y_reference if the columns are other objects"
        )
    if np.isnan(distances).any():
        raise ValueError("distances hold NaN; fill or drop the objects they belong to")
    if own is None and y_reference is None:
        own = np.arange(query.size)
    left_out = None if own is None else _check_own(own, query.size, reference.size)
    sizes = _as_sizes(k)
    _check_reach(sizes, reference.size - (left_out is not None), "other objects")
    hits = np.empty((query.size, sizes.size))
    relevant = np.empty(query.size)
    for i in range(query.size):  # a row at a time: memory O(n), whatever the number of queries
        row, same = distances[i], reference == query[i]
        if left_out is not None:
            row, same = np.delete(row, left_out[i]), np.delete(same, left_out[i])
        hits[i], relevant[i] = _expected_hits(row, same, sizes, tolerance), same.sum()
    return hits, relevant


def _expected_hits(
    row: np.ndarray, same: np.ndarray, sizes: np.ndarray, tolerance: float
) -> np.ndarray:
    """Hits among the ``sizes`` nearest when tied objects share the last ranks equally."""
    row = row.astype(float)
    finite = row[np.isfinite(row)]
    slack = tolerance * np.abs(finite).max() if finite.size else 0.0
    farthest = np.partition(row, sizes.max() - 1)[sizes.max() - 1]
    nearest = np.flatnonzero(row <= farthest + slack)
    nearest = nearest[np.argsort(row[nearest], kind="stable")]
    ordered, hits_below = row[nearest], np.append(0, np.cumsum(same[nearest]))
    edge = ordered[sizes - 1]
    below = np.searchsorted(ordered, edge - slack, side="left")
    upto = np.searchsorted(ordered, edge + slack, side="right")
    return hits_below[below] + (sizes - below) * (hits_below[upto] - hits_below[below]) / (
        upto - below
    )


def _listed_hits(
    neighbors: Any, y_query: Any, y_reference: Any, k: Any
) -> tuple[np.ndarray, np.ndarray]:
    """The hits of every query at every k and its number of relevant objects."""
    lists = np.asarray(neighbors)
    query, reference = _codes(y_query, y_reference)
    _check_lists(lists, query.size, reference.size)
    hit = (reference[lists] == query[:, None]) & (lists >= 0)
    counted = np.ones(lists.shape, dtype=bool)
    if y_reference is None:
        counted = lists != np.arange(query.size)[:, None]
    sizes = _as_sizes(k)
    _check_reach(sizes, counted.sum(axis=1).min(), "neighbours listed for every query")
    rank = np.cumsum(counted, axis=1)
    hits = np.stack([(hit & counted & (rank <= size)).sum(axis=1) for size in sizes], axis=1)
    members = np.bincount(reference, minlength=int(query.max()) + 1)
    return hits.astype(float), members[query] - float(y_reference is None)


def _check_lists(lists: np.ndarray, n_queries: int, n_references: int) -> None:
    if lists.ndim != 2 or lists.shape[0] != n_queries or lists.dtype.kind not in "iu":
        raise ValueError(
            f"neighbors: expected whole numbers of shape ({n_queries}, n_listed), got "
            f"{lists.dtype} of shape {lists.shape}"
        )
    if lists.size and (lists.min() < -1 or lists.max() >= n_references):
        raise ValueError(f"neighbors: expected row numbers below {n_references}, or -1 for none")
    ordered = np.sort(lists, axis=1)
    if ((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)).any():
        raise ValueError("neighbors list the same object twice for a query; remove duplicates")


def _codes(y_query: Any, y_reference: Any) -> tuple[np.ndarray, np.ndarray]:
    values, query = encode(y_query, "y_query")
    if y_reference is None:
        return query, query
    labels, reference = encode(y_reference, "y_reference")
    codes = recode(values, labels, ("y_query", "y_reference"))
    strangers = np.flatnonzero(codes < 0)  # classes that no reference has: a code of their own
    codes[strangers] = len(labels) + np.arange(strangers.size)
    return codes[query], reference


def _check_own(own: Any, n_queries: int, n_references: int) -> np.ndarray:
    own = np.asarray(own)
    is_column = own.shape == (n_queries,) and own.dtype.kind in "iu"
    if not is_column or own.min() < 0 or own.max() >= n_references:
        raise ValueError(
            f"own: expected a column number below {n_references} for each of {n_queries} queries"
        )
    return own


def _as_sizes(k: Any) -> np.ndarray:
    sizes = np.atleast_1d(np.asarray(k))
    if sizes.ndim != 1 or sizes.size == 0 or sizes.dtype.kind not in "iu" or sizes.min() < 1:
        raise ValueError(
            f"expected k to be a whole number of at least 1, or a list of them, got {k!r}"
        )
    return sizes


def _check_reach(sizes: np.ndarray, available: int, what: str) -> None:
    if sizes.max() > available:
        raise ValueError(f"expected k of at most {available}, the {what}, got {sizes.max()}")


def _mean_recall(hits: np.ndarray, relevant: np.ndarray) -> np.ndarray:
    if not relevant.any():
        raise ValueError("no query has another object of its class; recall is undefined")
    has_relevant = relevant > 0
    return np.mean(hits[has_relevant] / relevant[has_relevant, None], axis=0)


def _answer(values: np.ndarray, k: Any) -> float | np.ndarray:
    return float(values[0]) if np.ndim(k) == 0 else values


# -- labels as small integers ---------------------------------------------------------------------


def encode(labels: Any, name: str) -> tuple[list, np.ndarray]:
    """Give each label a code; return the label of each code and the code of each object."""
    # A list is read as objects: NumPy would turn [1, "1"] into the same string twice.
    array = np.asarray(labels) if hasattr(labels, "__array__") else _as_objects(labels)
    if array.ndim != 1:
        raise ValueError(
            f"{name}: expected one label per object (1 dimension), got {array.ndim} dimensions; "
            "pass a single column, e.g. with .ravel()"
        )
    if array.size == 0:
        raise ValueError(f"{name}: expected at least one label, got none")
    if array.dtype.kind in "OT":
        return _encode_objects(array, name)
    missing = np.flatnonzero(array != array)  # NaN and NaT differ from themselves
    if missing.size:
        raise ValueError(_missing_message(name, missing[0], array[missing[0]]))
    uniques, codes = np.unique(array, return_inverse=True)
    return uniques.tolist(), codes


def encode_pair(first: Any, second: Any, names: tuple[str, str]) -> tuple:
    """Encode two labelings of the same objects: (values, codes, values, codes)."""
    first_values, first_codes = encode(first, names[0])
    second_values, second_codes = encode(second, names[1])
    if first_codes.size != second_codes.size:
        raise ValueError(
            f"expected labels of the same objects in the same order, got {first_codes.size} in "
            f"{names[0]} and {second_codes.size} in {names[1]}"
        )
    return first_values, first_codes, second_values, second_codes


def recode(values: list, labels: list, names: tuple[str, str]) -> np.ndarray:
    """Code of each of ``values`` among ``labels``, -1 for a value that is not one of them."""
    text, label_text = _count_text(values), _count_text(labels)
    if (text == 0 and label_text == len(labels)) or (text == len(values) and label_text == 0):
        raise ValueError(
            f"expected labels of one type, got {values[0]!r} in {names[0]} and {labels[0]!r} in "
            f"{names[1]}; text never equals a number: convert one of them, e.g. with .astype(str)"
        )
    code_of = {label: code for code, label in enumerate(labels)}
    return np.array([code_of.get(value, -1) for value in values], dtype=np.intp)


def contingency(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Count the objects of every pair of codes: entry (i, j) has code i first and j second."""
    shape = (int(first.max()) + 1, int(second.max()) + 1)
    return np.bincount(first * shape[1] + second, minlength=shape[0] * shape[1]).reshape(shape)


def _as_objects(labels: Any) -> np.ndarray:
    # Filled by hand, because np.array would unpack tuples into a second dimension.
    items = list(labels)
    if items and all(isinstance(item, list) for item in items):
        raise ValueError("expected one label per object, got nested lists")
    array = np.empty(len(items), dtype=object)
    for i, item in enumerate(items):
        array[i] = item
    return array


def _encode_objects(array: np.ndarray, name: str) -> tuple[list, np.ndarray]:
    # A dictionary instead of sorting: objects of mixed types have no order.
    code_of: dict[Any, int] = {}
    codes = np.empty(array.size, dtype=np.intp)
    for i, value in enumerate(array.tolist()):
        if is_missing(value):
            raise ValueError(_missing_message(name, i, value))
        codes[i] = code_of.setdefault(value, len(code_of))
    return list(code_of), codes


def is_missing(value: Any) -> bool:
    """Tell whether a label is none: None, NaN, NaT or pandas.NA."""
    if value is None:
        return True
    try:
        return bool(value != value)
    except TypeError:  # pandas.NA refuses to be true or false
        return True


def _missing_message(name: str, row: int, value: Any) -> str:
    return (
        f"{name}: expected a label for every object, got {value!r} for object {row}; drop such "
        "objects or give them a label of their own"
    )


def _count_text(values: list) -> int:
    return sum(isinstance(value, str) for value in values)
