"""scikit-learn's own checks on every public estimator; each expected failure is explained."""

import inspect

import pytest
from sklearn.base import BaseEstimator
from sklearn.utils.estimator_checks import parametrize_with_checks

import tabweave

ESTIMATORS = [
    cls()
    for name in tabweave.__all__
    if inspect.isclass(cls := getattr(tabweave, name)) and issubclass(cls, BaseEstimator)
]


ONE_CLUSTER = "sets n_clusters to 1, which is no clustering and refused with a clear error"
FEW_ROWS = "asks for 8 clusters of fewer distinct rows, which is refused with a clear error"
EXPECTED = {
    "UNTIE": {
        "check_dont_overwrite_parameters": ONE_CLUSTER,
        "check_methods_subset_invariance": ONE_CLUSTER,
        "check_fit2d_1feature": ONE_CLUSTER,
        "check_fit2d_1sample": ONE_CLUSTER,
        "check_fit2d_predict1d": ONE_CLUSTER,
    },
    "KModes": {
        "check_clustering": "clusters blobs of floats, where no two values are equal",
        "check_sample_weights_shape": FEW_ROWS,
        "check_sample_weights_not_overwritten": FEW_ROWS,
        "check_pipeline_consistency": FEW_ROWS,
        "check_estimators_pickle": FEW_ROWS,
        "check_transformer_n_iter": FEW_ROWS,
    },
}
EXPECTED["Weave"] = EXPECTED["UNICORN"] = EXPECTED["UNTIE"]


def expected_failures(estimator):
    return EXPECTED.get(type(estimator).__name__, {})


@parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected_failures)
def test_sklearn(estimator, check):
    check(estimator)


def test_every_estimator_is_found():
    assert "OneHot" in {type(e).__name__ for e in ESTIMATORS}


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
def test_has_a_runnable_example(estimator):
    assert ">>>" in inspect.getdoc(type(estimator))
