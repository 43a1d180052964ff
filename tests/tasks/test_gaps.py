"""BlockFiller: tables of many columns are filled block by block, as well as whole ones."""

import tracemalloc

import numpy as np
import pandas as pd
import pytest

import tabweave
from tabweave import Imputer, Table
from tabweave.tasks import impute
from tabweave.tasks.impute import blocks_of_columns, pairwise_evidence
from tabweave.tasks.row_model import RowModel


def grouped(n, p, group, seed=0):
    """Return columns of which every ``group`` follow one hidden number, and the same with gaps."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, p // group))[:, np.arange(p) % (p // group)]
    rows = pd.DataFrame((x + 0.5 * rng.normal(size=(n, p))).round(2))
    rows.columns = [f"c{j}" for j in range(p)]
    return rows, rows.mask(rng.random((n, p)) < 0.1)


def error(rows, gaps, filled):
    apart = (filled - rows).to_numpy()[gaps.isna().to_numpy()]
    return np.sqrt(np.mean(apart**2) / rows.to_numpy().var())


def test_blocks_hold_the_columns_that_tell_of_each_other():
    rows, gaps = grouped(200, 120, 6)
    blocks = blocks_of_columns(Table.of(gaps), 12)
    targets = [name for names, n in blocks for name in names[:n]]
    assert sorted(targets) == sorted(rows)
    assert max(len(names) for names, _ in blocks) <= 64
    for names, n in blocks:
        for name in names[:n]:
            same = {c for c in rows if int(c[1:]) % 20 == int(name[1:]) % 20}
            assert same <= set(names)


def test_evidence_of_pairs_is_that_of_the_model(holes):
    table = Table.of(holes)
    coarse = RowModel.of(table, 6, 0, ("counts",))
    np.testing.assert_allclose(pairwise_evidence(table), coarse.evidence, atol=1e-12)


def test_a_table_in_blocks_is_filled_as_well_as_a_whole_one(monkeypatch):
    rows, gaps = grouped(200, 90, 6)
    wide = Imputer().fit(gaps)
    assert len(wide._filler.blocks) > 1
    by_blocks = error(rows, gaps, wide.transform(gaps))
    monkeypatch.setattr(impute, "MAX_BLOCK_COLUMNS", 90)
    whole = Imputer().fit(gaps)
    assert len(whole._filler.blocks) == 1
    assert by_blocks < 1.03 * error(rows, gaps, whole.transform(gaps))
    assert by_blocks < 0.65  # the deviation of what no other column tells is 0.45


def test_columns_of_every_kind_stand_in_blocks(monkeypatch, tmp_path, holes):
    monkeypatch.setattr(impute, "MAX_BLOCK_COLUMNS", 4)
    days = pd.Timestamp("2026-03-01") + pd.to_timedelta(np.arange(len(holes)) % 9, unit="D")
    rows = holes.assign(day=days, tags=[["a", "b"] if s == "warm" else ["c"] for s in holes["sea"]])
    rows.loc[::7, "day"] = pd.NaT
    rows.loc[::5, "tags"] = None
    model = Imputer("all").fit(rows)
    assert len(model._filler.blocks) > 2
    filled = model.transform(rows)
    assert filled.notna().all().all() and filled.dtypes.equals(rows.dtypes)
    assert len(model.explain(rows)) == rows.isna().sum().sum()
    model.save(tmp_path / "model")
    pd.testing.assert_frame_equal(tabweave.load(tmp_path / "model").transform(rows), filled)
    proba = model.predict_proba(rows, "country")
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    assert len(model.sample(rows, 2)) == 2
    with pytest.raises(ValueError, match="column 'city': expected"):
        Imputer().fit(rows).transform(rows.assign(city=1.5))


def test_missing_cells_are_those_of_every_kind():
    rows = {"a": ["x", None, "y"], "n": [1.5, None, 2.5], "s": [["u"], None, []]}
    table = Table.of(rows)
    found = {column.name: data.missing.tolist() for column, data in table}
    assert found["a"] == found["n"] == [False, True, False]
    assert found["s"][:2] == [False, True]


def test_what_does_not_fit_is_said_before_anything_is_learned(monkeypatch):
    _, gaps = grouped(60, 80, 4)
    monkeypatch.setattr(impute, "available_memory", lambda: 1000)
    with pytest.raises(MemoryError, match=r"80 columns .* GB that are free; choose the columns"):
        Imputer().fit(gaps)


def test_memory_grows_with_the_number_of_columns():
    taken = []
    for p in (100, 200):
        _, gaps = grouped(100, p, 5)
        Imputer().fit(gaps)
        tracemalloc.start()
        Imputer().fit(gaps)
        taken.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert taken[1] < 3 * taken[0]  # four times if every pair of values were held
