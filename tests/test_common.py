"""scikit-learn's own checks on every public estimator; each expected failure is explained."""

import inspect
import re
import warnings
from contextlib import suppress

import numpy as np
import pytest
from sklearn.base import BaseEstimator, is_regressor
from sklearn.utils.estimator_checks import parametrize_with_checks

import tabweave
from tabweave.embed import EMBEDDERS
from tabweave.engines.reading import needs_classes


def public(module):
    """Return the estimators among the public names of a module."""
    found = (getattr(module, name) for name in getattr(module, "__all__", ()))
    return [cls for cls in found if inspect.isclass(cls) and issubclass(cls, BaseEstimator)]


def rooms():
    return [m for m in (getattr(tabweave, n) for n in tabweave.__all__) if inspect.ismodule(m)]


# Of the package, of its rooms (the algorithms as published among them), and of the register.
CLASSES = list(dict.fromkeys(cls for module in (tabweave, *rooms()) for cls in public(module)))
CLASSES.remove(tabweave.papers.MatrixFactorization)  # learns from ratings, not rows
# What reads categories only: the numbers of the checks are declared to be such.
NOMINAL = {
    "KModes": {"metric": tabweave.ValueMetric(schema="nominal")},
    "NonBEND": {"schema": "nominal"},
    "SetTfidf": {"schema": "nominal"},
    "StreamClusterer": {"embedder": tabweave.UNICORN(schema="nominal")},
}
ESTIMATORS = [cls(**NOMINAL.get(cls.__name__, {})) for cls in CLASSES]

ONE_CLUSTER = "sets n_clusters to 1, which is no clustering and refused with a clear error"
FEW_ROWS = "asks for 8 clusters of fewer distinct rows, which is refused with a clear error"
BLOBS = "clusters blobs of floats, where no two values are equal"
CROSS_FITTED = (
    "fit_transform leaves a row's own target out, as TargetEncoder's does; transform cannot"
)
FOLDS_AND_LEAVES = (
    "LightGBM counts the rows of a leaf, not their weights, and folds are dealt by rows: two "
    "copies of a row are not one of weight 2"
)
EXPECTED = {
    **{
        name: {
            "check_transformer_data_not_an_array": CROSS_FITTED,
            "check_transformer_general": CROSS_FITTED,
            "check_transformer_general(readonly_memmap=True)": CROSS_FITTED,
        }
        for name in ("SupervisedWeave", "BoostedWeave")
    },
    "UNTIE": {
        "check_dont_overwrite_parameters": ONE_CLUSTER,
        "check_methods_subset_invariance": ONE_CLUSTER,
        "check_fit2d_1feature": ONE_CLUSTER,
        "check_fit2d_1sample": ONE_CLUSTER,
        "check_fit2d_predict1d": ONE_CLUSTER,
    },
    "KModes": {
        "check_clustering": BLOBS,
        "check_sample_weights_shape": FEW_ROWS,
        "check_sample_weights_not_overwritten": FEW_ROWS,
        "check_pipeline_consistency": FEW_ROWS,
        "check_estimators_pickle": FEW_ROWS,
        "check_transformer_n_iter": FEW_ROWS,
    },
}
OWN_ROWS = "predict is calibrated for new rows; fit_predict calls rows of fit odd"
EXPECTED["OutlierCells"] = {
    "check_outliers_fit_predict": OWN_ROWS,
}
for _name in ("GBCClassifier", "GBCRegressor"):
    EXPECTED[_name] = {
        f"check_sample_weight_equivalence_on_{kind}_data": FOLDS_AND_LEAVES
        for kind in ("dense", "sparse")
    }
FOLDS = (
    "folds are dealt by rows, so that a copy of a row may be in another fold than the row: only "
    "what is not chosen is the same, as tests/neighbors/test_sample_weight.py checks"
)
for _name in ("WeaveClassifier", "WeaveRegressor"):
    EXPECTED[_name] = {"check_sample_weight_equivalence_on_dense_data": FOLDS}
EXPECTED["Weave"] = EXPECTED["UNICORN"] = EXPECTED["UNTIE"]
for _name in ("CCDSDC", "CCTED", "DCD", "StreamClusterer"):
    EXPECTED[_name] = {"check_clustering": BLOBS}


def expected_failures(estimator):
    expected = EXPECTED.get(type(estimator).__name__, {})
    clusters = "n_clusters" in estimator.get_params(deep=False)
    return {check: why for check, why in expected.items() if clusters or why != ONE_CLUSTER}


@parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected_failures)
def test_sklearn(estimator, check):
    check(estimator)


def test_every_embedder_is_found():
    assert {entry.cls for entry in EMBEDDERS.values()} <= set(CLASSES)
    assert all(getattr(tabweave, e.cls.__name__) is e.cls for e in EMBEDDERS.values())


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: f"{cls.__module__}.{cls.__name__}")
def test_has_a_runnable_example(cls):
    assert ">>>" in inspect.getdoc(cls)


def documented(cls, section):
    """Return the names that a section of a docstring describes, each with its type."""
    found = re.search(
        rf"^{section}\n-+\n(.*?)(?=^\S[^\n]*\n-{{3,}}\n|\Z)", inspect.getdoc(cls), re.M | re.S
    )
    heads = [head.partition(" : ") for head in re.findall(r"^\S.*", found[1], re.M) if found]
    return {name.strip(): kind for names, _, kind in heads for name in names.split(",")}


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: f"{cls.__module__}.{cls.__name__}")
def test_parameters_are_documented(cls):
    own = inspect.signature(cls).parameters
    told = documented(cls, "Parameters")
    assert sorted(told) == sorted(own)
    for name, kind in told.items():  # without a type: as in another class
        required = own[name].default is inspect.Parameter.empty
        assert not kind or required or "default=" in kind or "optional" in kind, name


# Attributes that only some fits have, and which.
SOMETIMES = {
    "feature_names_in_": "rows whose columns have names",
    "breadth_": "an index with a graph",
    "recall_": "an index with a graph",
    "numerators_": "measures that are ratios",
    "denominators_": "measures that are ratios",
    "index_": "a second window",
    "difference_": "a second window",
}


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: f"{cls.__module__}.{cls.__name__}")
def test_attributes_are_documented(cls):
    model = fitted(cls)
    found = {name for name in vars(model) if name.endswith("_") and not name.startswith("_")}
    found |= {
        name
        for parent in cls.__mro__
        for name, value in vars(parent).items()
        if isinstance(value, property) and name.endswith("_") and not name.startswith("_")
    }
    told = set(documented(cls, "Attributes"))
    assert found - told <= {"n_features_in_", "feature_names_in_"}
    assert not [name for name in told - set(SOMETIMES) if not hasattr(model, name)]


def fitted(cls):
    """Fit an estimator to the first table that it reads: mixed, of categories, numbers or sets."""
    rng = np.random.default_rng(0)
    categories = {"a": list("xyxzyx") * 10, "b": list("ppqqrp") * 10, "c": list("uvuuvw") * 10}
    numbers = rng.poisson(3.0, (60, 3)) + 1.0
    sets = {"s": [["a", "b"], ["b"], ["a", "c"], ["c"], ["a"], ["b", "c"]] * 10}
    for rows in (categories | {"n": rng.normal(size=60)}, categories, numbers, sets):
        for y in (["u", "v"] * 30, rng.normal(size=60)):
            model = cls()
            few = {"n_clusters": 2, "random_state": 0, "perplexity": 5, "n_rounds": 5}
            known = model.get_params(deep=False)
            model.set_params(**{name: value for name, value in few.items() if name in known})
            with suppress(ValueError, TypeError), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return model.fit(rows, y)
    raise AssertionError(f"no table fits {cls.__name__}")


@pytest.mark.parametrize("name", EMBEDDERS)
def test_what_an_embedder_declares_is_so(name):
    entry = EMBEDDERS[name]
    assert entry.summary and entry.reference
    assert entry.needs_y == (needs_classes(entry.cls()))


@pytest.mark.parametrize("name", [name for name, entry in EMBEDDERS.items() if entry.needs_y])
def test_rows_of_fit_are_cross_fitted_where_it_is_declared(name):
    rows = {"a": list("xyxzyxz") * 10, "b": list("ppqqr") * 14}
    y = [{"x": "u", "y": "v"}.get(v, "w") if i % 9 else "u" for i, v in enumerate(rows["a"])]
    model = EMBEDDERS[name].cls()
    same = np.allclose(model.fit_transform(rows, y), model.transform(rows))
    assert EMBEDDERS[name].cross_fits == (not same)


@pytest.mark.parametrize("name", EMBEDDERS)
def test_a_fit_that_raises_leaves_the_model_as_it_was(name):
    entry = EMBEDDERS[name]
    rows = {"a": list("xyxzyx") * 5, "b": list("ppqqrp") * 5}
    if entry.reads == "numbers":
        rows = np.random.default_rng(0).poisson(3.0, (30, 3)) + 1.0
    y = ["u", "v"] * 15 if entry.needs_y else None
    params = {"n_clusters": 2, "random_state": 0}
    model = entry.cls()
    model.set_params(**{k: v for k, v in params.items() if k in model.get_params(deep=False)})
    before = model.fit(rows, y).transform(rows)
    none = {"a": [], "b": []} if isinstance(rows, dict) else rows[:0]
    with pytest.raises(ValueError, match="0 sample"):
        model.fit(none, y and [])
    after = model.transform(rows)
    if hasattr(before, "toarray"):
        before, after = before.toarray(), after.toarray()
    np.testing.assert_array_equal(after, before)


# -- any number of threads -----------------------------------------------------------------------


def mixed_rows(n=300):
    """Columns of categories and of numbers that follow a hidden group; a class and a target."""
    rng = np.random.default_rng(0)
    group = rng.integers(0, 3, n)
    rows = {f"c{i}": (group * (i + 1) + rng.integers(0, 2, n)).astype(str) for i in range(4)}
    rows["x"] = np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n) + group)
    return rows, np.array(["u", "v", "w"])[group], group + rng.normal(size=n)


@pytest.mark.slow
@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_what_is_learned_does_not_depend_on_the_number_of_threads(cls, monkeypatch, tmp_path):
    """Slabs of rows are as many as threads here, however few rows there are."""
    rows, labels, numbers = mixed_rows()
    categories = {name: cells for name, cells in rows.items() if name != "x"}
    columns = np.abs(numbers)[:, None] ** np.array([0.5, 1.0, 2.0])
    monkeypatch.setattr("tabweave._compat.MIN_ROWS_FOR_THREADS", 40)
    monkeypatch.setattr("tabweave.counts.counting.MIN_ROWS_FOR_THREADS", 40)
    files = []
    for n in (1, 2, 5):
        monkeypatch.setattr("tabweave._compat.n_threads", lambda n=n: n)
        model = cls()
        if "random_state" in model.get_params():
            model.set_params(random_state=0)
        y = numbers if is_regressor(model) else labels
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for X in (rows, categories, columns):  # some read categories alone, or numbers alone
                with suppress(TypeError, ValueError):
                    model.fit(X, y)
                    break
        if not vars(model).keys() - model.get_params().keys():
            pytest.skip("reads other tables")
        model.save(tmp_path / "model")
        files.append((tmp_path / "model").read_bytes())
    assert files[0] == files[1] == files[2]
