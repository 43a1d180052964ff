"""Many methods on many data sets: average ranks, and which differences are real.

Comes in: a table of scores, one row per data set and one column per method. Goes out: average
ranks, the Friedman test and critical differences. [Demšar 2006; Zhu 2019, section 3.5.2]
"""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

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
    scores: Any, higher_is_better: bool = True, *, missing: Missing = "raise"
) -> np.ndarray:
    """Rank the methods on every data set (1 is best) and average; ties share their ranks.

    Parameters
    ----------
    scores : array-like of shape (n_datasets, n_methods)
        One score per data set and method.
    higher_is_better : bool, default=True
        Whether the highest score gets rank 1.
    missing : {"raise", "drop"}, default="raise"
        What to do with a data set that lacks a score (NaN): refuse, or leave it out.

    Returns
    -------
    ndarray of shape (n_methods,)
        Average ranks.

    References
    ----------
    Demšar (2006), section 3.2.2.

    Examples
    --------
    >>> from tabweave.evaluate import average_ranks
    >>> average_ranks([[0.9, 0.8, 0.8], [0.7, 0.6, 0.5]])
    array([1. , 2.25, 2.75])
    """
    return _ranks(scores, higher_is_better, missing).mean(axis=0)


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


def _ranks(scores: Any, higher_is_better: bool, missing: Missing) -> np.ndarray:
    from scipy.stats import rankdata

    table = np.asarray(scores, dtype=float)
    if table.ndim != 2 or table.shape[1] < 2:
        raise ValueError(
            f"scores: expected a row per data set and at least 2 columns, got {table.shape}"
        )
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
    return rankdata(-table if higher_is_better else table, axis=1)
