"""The table of verbs in docs/scale.md, tried: the rest is as in memory."""

import re
from pathlib import Path

import numpy as np
import pytest

import tabweave

pandas = pytest.importorskip("pandas", reason="the tests make frames of pandas")
frames = pytest.importorskip("dask.dataframe", reason="dask is not installed")
pytest.importorskip("pyarrow", reason="the tests write Parquet files")

DOCS = Path(__file__).parents[2] / "docs" / "scale.md"
ROW = re.compile(r"^\| (\w+) \| (\w+) \| (\w+) \| (\w+) \| (\w+) \|$", re.MULTILINE)
VERBS = {name: verbs for name, *verbs in ROW.findall(DOCS.read_text(encoding="utf-8"))}
OPTIONS = {
    "UNTIE": {"n_clusters": 3},
    "KModes": {"n_clusters": 3, "random_state": 0},
    "ValueMetric": {"measure": "dilca"},
    "NonBEND": {"random_state": 0},
    "CDE": {"random_state": 0},
}
MIXED = {"Weave", "SupervisedWeave", "FAMD", "Imputer", "OutlierCells", "WeaveClassifier"}
NEED_Y = {"SupervisedWeave", "HELIC", "WeaveClassifier", "WeightedKNN"}


def same(found, wanted):
    """Vectors may differ by the rounding of products of other shapes, all else not at all."""
    if np.asarray(wanted).dtype.kind == "f":
        np.testing.assert_allclose(found, wanted, rtol=1e-7, atol=1e-9)
    else:
        assert (np.asarray(found) == wanted).all()


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    group = rng.integers(0, 3, 120)
    return pandas.DataFrame(
        {
            "color": np.array(list("abc"))[(group + rng.integers(0, 2, 120)) % 3],
            "size": np.array(list("xyz"))[(group + (rng.random(120) < 0.2)) % 3],
            "x": rng.normal(size=120).round(2) + group,
            "k": np.array(["u", "v", "w"])[group],
        }
    )


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", VERBS)
def test_the_table_of_verbs_is_true(name, table, tmp_path):
    model = getattr(tabweave, name)(**OPTIONS.get(name, {}))
    y = "x" if name == "WeaveRegressor" else "k" if name in NEED_Y else None
    features = ["color", "size", "x"] if name in MIXED else ["color", "size"]
    features = ["x"] if name == "CoupledNumeric" else features
    rows, asked = table[features + ([y] if y else [])], table[features]
    rows.to_parquet(tmp_path / "rows.parquet")
    asked.to_parquet(tmp_path / "asked.parquet")
    in_memory = model.fit(asked, *([rows[y]] if y else []))
    method = "predict" if hasattr(in_memory, "predict") else "transform"
    wanted = np.asarray(getattr(in_memory, method)(asked))
    fit_file, fit_there, of_file, of_there = VERBS[name]
    for verb, source in (
        (fit_file, tmp_path / "rows.parquet"),
        (fit_there, frames.from_pandas(rows, npartitions=3)),
    ):
        again = getattr(tabweave, name)(**OPTIONS.get(name, {}))
        if verb == "refused":
            with pytest.raises((TypeError, ValueError, AttributeError)):
                again.fit(source, *([y] if y else []))
        else:
            again.fit(source, *([y] if y else []))
            same(getattr(again, method)(asked), wanted)
    assert (of_file, of_there) == ("batches", "workers")
    found = getattr(in_memory, method)(tmp_path / "asked.parquet")
    same(found, wanted)
    there = getattr(in_memory, method)(frames.from_pandas(asked, npartitions=3)).compute()
    same(there.to_numpy().reshape(wanted.shape), wanted)
