"""scikit-learn's own checks on every public estimator; each expected failure is explained."""

import inspect

import pytest
from sklearn.base import BaseEstimator
from sklearn.utils.estimator_checks import parametrize_with_checks

import weft

ESTIMATORS = [
    cls()
    for name in weft.__all__
    if inspect.isclass(cls := getattr(weft, name)) and issubclass(cls, BaseEstimator)
]


def expected_failures(estimator):
    return {}


@parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected_failures)
def test_sklearn(estimator, check):
    check(estimator)


def test_every_estimator_is_found():
    assert "OneHot" in {type(e).__name__ for e in ESTIMATORS}


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
def test_has_a_runnable_example(estimator):
    assert ">>>" in inspect.getdoc(type(estimator))
