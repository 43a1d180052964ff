"""Dataset: what it refuses, what it shows, and its way into arrays and frames."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tabweave
import tabweave.datasets
from tabweave.datasets import Dataset, balance


def mixed():
    columns = {
        "colour": np.array(["red", None, "blue", "red"], dtype=object),
        "weight": np.array([1.5, 2.0, np.nan, 0.0]),
    }
    y = np.array(["a", "b", "a", "b"], dtype=object)
    return Dataset("mixed", columns, y, {"colour": "nominal", "weight": "numeric"})


def test_import_is_light():
    # A bare parent package, so that only what tabweave.datasets itself imports is seen.
    root = Path(tabweave.datasets.__file__).parents[1]
    code = f"""
import sys, types
sys.modules["tabweave"] = parent = types.ModuleType("tabweave")
parent.__path__ = [{str(root)!r}]
import tabweave.datasets
heavy = "duckdb sklearn pandas polars pyarrow narwhals scipy numba".split()
print([module for module in heavy if module in sys.modules])
"""
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"


def test_size_names_and_repr():
    data = mixed()
    assert data.n_rows == 4
    assert data.feature_names == ["colour", "weight"]
    assert repr(data) == "Dataset('mixed': 4 rows x 2 columns (1 nominal, 1 numeric), 2 classes)"


def test_repr_of_other_labels():
    data = mixed()
    plain = Dataset("d", data.columns, None, data.kinds)
    assert repr(plain).endswith("no label)")
    assert repr(Dataset("d", data.columns, np.zeros(4), data.kinds)).endswith("numeric target)")
    assert repr(Dataset("d", {}, None, {})) == "Dataset('d': 0 rows x 0 columns, no label)"


def test_X_is_object_for_mixed_and_float_for_numeric():
    data = mixed()
    assert data.X.dtype == object
    assert data.X[0].tolist() == ["red", 1.5]
    assert data.X[1, 0] is None
    numeric = Dataset("n", {"weight": data.columns["weight"]}, None, {"weight": "numeric"})
    assert numeric.X.dtype == np.float64
    assert numeric.X.shape == (4, 1)


@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
def test_frame(backend):
    pytest.importorskip(backend)
    frame = mixed().frame(backend)
    assert type(frame).__module__.startswith(backend)
    assert frame.shape == (4, 2)
    colours = frame["colour"]
    values = colours.to_pylist() if backend == "pyarrow" else colours.to_list()
    assert values[0] == "red"
    assert values[1] is None or np.isnan(values[1])  # pandas spells a missing string NaN


def test_frame_of_a_column_without_any_value_is_still_text():
    pytest.importorskip("polars")
    data = Dataset("d", {"a": np.array([None, None], dtype=object)}, None, {"a": "nominal"})
    assert str(data.frame("polars")["a"].dtype) == "String"


@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
def test_frame_with_sets(backend):
    pytest.importorskip(backend)
    cells = np.empty(2, dtype=object)
    cells[:] = [["a", "b"], ["c"]]
    data = Dataset("d", {"words": cells}, None, {"words": "set"})
    assert data.frame(backend).shape == (2, 1)


@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
def test_frame_with_datetimes(backend):
    pytest.importorskip(backend)
    when = np.array(["2024-01-31T23:50", "NaT", "2024-02-29"], "datetime64[us]")
    data = Dataset("d", {"when": when}, None, {"when": "datetime"})
    ((column, cells),) = tabweave.Table.of(data.frame(backend), data.kinds)
    assert column.kind == "datetime"
    assert [cells.cell(i) for i in range(3)] == ["2024-01-31 23:50:00", None, "2024-02-29 00:00:00"]
    assert data.X.tolist()[1] == [None] and data.take([0]).X[0, 0].minute == 50


def test_frame_names_the_missing_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(ImportError, match=r"needs polars: pip install polars; or"):
        mixed().frame("polars")
    with pytest.raises(ValueError, match="pandas, polars, pyarrow"):
        mixed().frame("dask")


def test_select_and_take():
    data = mixed()
    assert data.select(data.y == "a").columns["colour"].tolist() == ["red", "blue"]
    assert data.select(slice(1, 3)).y.tolist() == ["b", "a"]
    twice = data.take([3, 0, 3])
    assert twice.columns["weight"].tolist() == [0.0, 1.5, 0.0]
    assert twice.name == "mixed" and twice.kinds == data.kinds
    assert data.take([]).n_rows == 0
    assert data.n_rows == 4


def test_select_and_take_refuse_each_others_arguments():
    with pytest.raises(ValueError, match="use take"):
        mixed().select([0, 1])
    with pytest.raises(ValueError, match="4 rows"):
        mixed().select([True, False])
    with pytest.raises(ValueError, match="use select"):
        mixed().take([True, False, True, False])
    with pytest.raises(IndexError):
        mixed().take([4])


@pytest.mark.parametrize(
    ("columns", "y", "kinds", "error", "match"),
    [
        (
            {"a": np.zeros(2)},
            None,
            {"b": "numeric"},
            ValueError,
            "expected one kind for each column",
        ),
        (
            {"a": np.zeros(2)},
            None,
            {"a": "real"},
            ValueError,
            "'a': expected a kind of .*got 'real'",
        ),
        ({"a": np.zeros(2)}, None, {"a": "nominal"}, TypeError, "'a'.*object"),
        ({"a": np.zeros(2, dtype=int)}, None, {"a": "numeric"}, TypeError, "'a'.*float64"),
        ({"a": np.zeros(2)}, np.zeros(3), {"a": "numeric"}, ValueError, "expected y of shape"),
        (
            {"a": np.zeros(2), "b": np.zeros(3)},
            None,
            {"a": "numeric", "b": "numeric"},
            ValueError,
            "'b': expected shape",
        ),
    ],
)
def test_refuses_what_does_not_fit(columns, y, kinds, error, match):
    with pytest.raises(error, match=match):
        Dataset("odd", columns, y, kinds)


def test_is_frozen():
    with pytest.raises(AttributeError):
        balance().name = "other"
