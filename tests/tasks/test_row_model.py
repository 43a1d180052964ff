"""RowModel: its engines against slow references."""

import numpy as np
import pandas as pd
import pytest

from tabweave import Counts, Imputer, Oddities, Table
from tabweave.counts.couplings import corrected_uncertainty, information
from tabweave.io.codec import restored, state_of
from tabweave.tasks.row_model import Round, RowModel, _uncertainty


def test_the_regression_is_ridge_on_whole_rows(whole):
    """Against a ridge regression on indicators over the root of their share, all rows whole."""
    columns, n = ["city", "sea", "luck"], len(whole)
    table = Table.of(whole[columns])
    model = RowModel.of(table, 12, 0, ("counts",), 5)
    z = np.hstack(
        [(i - i.mean(axis=0)) / np.sqrt(i.mean(axis=0))
         for i in (pd.get_dummies(whole[[c]], dtype=float).to_numpy() for c in columns)]
    )  # fmt: skip
    ridge = 0.02 + 0.3 * z.shape[1] / n
    own, rest = np.arange(3), np.arange(3, z.shape[1])
    gram = z[:, rest].T @ z[:, rest] / n + ridge * np.eye(len(rest))
    beta = np.linalg.solve(gram, z[:, rest].T @ z[:, own] / n)
    np.testing.assert_allclose(model.coefficients["city"][rest], beta, atol=1e-9)
    share = pd.get_dummies(whole["city"]).mean().to_numpy()
    expected = np.maximum(share + z[:, rest] @ beta * np.sqrt(share), 1e-3)
    expected /= expected.sum(axis=1, keepdims=True)
    cells = model.cells(table)
    found = model._regressed("city", np.arange(n), Round(cells, {}, cells.codes, cells.z))[0]
    np.testing.assert_allclose(found, expected, atol=1e-9)


def test_neighbours_are_those_of_the_tables(holes):
    model = Imputer("neighbors", n_neighbors=7).fit(holes)._model
    others = [b for b, n in enumerate(model.names) if n != "city"]
    tables = model._metric(0, others)
    stored = np.flatnonzero(model.observed[0])
    codes = model.reference
    slow = np.zeros((5, len(stored)))
    for i in range(5):
        for table, b in zip(tables, others, strict=True):
            slow[i] += table[codes[b, i], codes[b, stored]]
    share = model.share[model.spans[0]]
    expected = []
    for line in slow:
        near = np.lexsort((np.arange(len(line)), line))[:7]
        votes = np.exp(-4 * line[near] / max(line[near[-1]], 1e-12))
        own = 0.5 * share + np.bincount(codes[0, stored[near]], votes, len(share))
        expected.append(own / own.sum())
    nearest = {}
    found = model._voted("city", np.arange(5), codes, nearest)[0]
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    np.testing.assert_array_equal(model._voted("city", np.arange(5), codes, nearest)[0], found)
    moved = codes.copy()
    moved[1, 2] = (moved[1, 2] + 1) % model.sizes[1]  # one row is looked for anew, the others kept
    again = model._voted("city", np.arange(5), moved, nearest)[0]
    alone = model._voted("city", np.arange(5), moved, {})[0]
    np.testing.assert_array_equal(again, alone)
    assert not np.array_equal(again[2], found[2])


def test_uncertainty_is_that_of_counts(whole):
    counts = Counts.of(whole[["sea", "luck"]])
    mutual, marginal, _ = information(counts)
    expected = corrected_uncertainty(counts, mutual, marginal)[0, 1]
    assert _uncertainty(counts.block(0, 1)) == pytest.approx(expected)


def test_blocks_of_rows_change_nothing(holes, monkeypatch):
    whole = Imputer().fit(holes).transform(holes)
    monkeypatch.setattr("tabweave.tasks.row_model._QUERIES", 37)
    pd.testing.assert_frame_equal(Imputer().fit(holes).transform(holes), whole)


def test_the_regression_is_solved_once(holes, monkeypatch):
    """Its inverse is that of a fit, whatever engines and rows are added to it."""
    solved = []
    covariance = RowModel._covariance
    monkeypatch.setattr(RowModel, "_covariance", lambda m: solved.append(1) or covariance(m))
    Imputer().fit(holes).transform(holes)
    assert len(solved) == 1


@pytest.mark.parametrize("largest", [np.finfo(float).max, 5e-324])
@pytest.mark.parametrize("tags", [False, True])
def test_the_largest_and_the_smallest_numbers_are_numbers(largest, tags):
    """Warnings are errors here: nothing overflows, in fit or after it."""
    rng = np.random.default_rng(0)
    signs = rng.choice([-1.0, 1.0], 80)
    rows = {
        "all": largest * signs * rng.uniform(0.5, 1, 80),
        "few": np.where(np.arange(80) < 2, largest * signs, rng.normal(size=80)),
        "sign": np.where(signs > 0, "up", "down"),
        "same": largest * (1 - 1e-3 * rng.uniform(size=80)),
    }
    if tags:
        rows["tags"] = [["a", "b"][: 1 + i % 2] for i in range(80)]
    rows["all"][7] = rows["few"][9] = np.nan
    model = Imputer().fit(rows)
    found = model.transform(rows)
    assert all(np.isfinite(found[name]).all() for name in ("all", "few", "same"))
    assert np.isfinite(model.sample(rows, 1)[0]["few"]).all()
    if largest > 1:
        assert np.sign(found["all"][7]) == signs[7]
    odd = Oddities().fit(rows)
    far = dict(rows, few=np.full(80, np.finfo(float).max))
    assert np.isfinite(odd.score_samples(rows)).all() and len(odd.cells(far))


def test_sums_of_older_files_were_not_standardised(whole):
    model = RowModel.of(Table.of(whole[["city", "x", "luck"]]), 12, 0, ("counts",), 5)
    state = state_of(model)
    state["value_z"] = state.pop("z_sums") * model.scale[1]
    np.testing.assert_allclose(restored(RowModel, state).z_sums, model.z_sums, rtol=1e-12)
