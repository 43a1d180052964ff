"""RowModel: its engines against slow references."""

import numpy as np
import pandas as pd
import pytest

from tabweave import Counts, Imputer, OutlierCells, Table
from tabweave.counts.couplings import corrected_uncertainty, information
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
    known = Round(cells.codes, cells.z, {}, model.indicators(cells, {}))
    found = model._regressed("city", np.arange(n), known)[0]
    np.testing.assert_allclose(found, expected, atol=1e-9)


@pytest.mark.parametrize("gaps", ["none", "some", "all"])
@pytest.mark.parametrize("n_rows", [30, 400])
def test_the_inverse_is_that_of_all_eigenvalues(gaps, n_rows, monkeypatch):
    """Of singular covariances, too; all eigenvalues are looked for only where some are negative."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n_rows, 9))
    rows = pd.DataFrame(x + x[:, :1], columns=list("abcdefghi"))
    rows["twin"], rows["same"], rows["kind"] = rows["a"], 1.0, np.where(x[:, 1] > 0, "u", "v")
    holed = {"none": [], "some": ["b", "kind"], "all": list(rows)}[gaps]
    rows[holed] = rows[holed].mask(rng.random((n_rows, len(holed))) < 0.2)
    model = RowModel.of(Table.of(rows), 12, 0, ("counts",), 5)
    covariance = model._covariance()
    values, vectors = np.linalg.eigh(covariance)
    ridge = 0.02 + 0.3 * len(values) / model.both.max()
    expected = (vectors / (np.maximum(values, 0) + ridge)) @ vectors.T
    sizes = []
    monkeypatch.setattr(
        "tabweave.tasks.row_model.eigh", lambda m: sizes.append(len(m)) or np.linalg.eigh(m)
    )
    np.testing.assert_allclose(model.precision(), expected, atol=1e-9)
    if gaps == "some" and n_rows == 30:  # few rows span the columns that are whole
        assert len(sizes) == 1
        assert sizes[0] < len(covariance) / 2
    else:
        assert sizes == ([] if gaps == "none" else [len(covariance)])


@pytest.mark.parametrize("dense", [0.0, 1.0])
def test_the_regression_is_a_sum_over_the_other_cells(dense, holes, monkeypatch):
    """Column by column: a cell adds what its value does, a gap what it is guessed to be."""
    monkeypatch.setattr("tabweave.tasks.row_model._DENSE", dense)
    imputer = Imputer("counts").fit(holes)
    model = imputer._model
    cells = model.cells(imputer._read(holes))
    guesses = model._first(cells)
    codes, z = model._with_guesses(cells.codes, np.nan_to_num(cells.z), guesses)
    known = Round(codes, z, cells.elements, model.indicators(cells, guesses))
    rows = np.arange(len(holes))
    for name, beta in model.coefficients.items():
        expected = z.T @ beta[len(model.share) :]
        for b, other in enumerate(model.names):
            span = model.spans[b]
            if other in model.sets:
                has = cells.elements[other]
                has = np.where(np.isnan(has), model.share[span], has)
            else:
                has = np.eye(model.sizes[b])[codes[b]]
                if other in guesses:
                    has[guesses[other].rows] = guesses[other].proba
            expected += (has - model.share[span]) * model.unit[span] @ beta[span]
        np.testing.assert_allclose(model.expected(name, rows, known), expected, atol=1e-9)


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
    assert _uncertainty(counts.block(0, 1), np.array([0])) == pytest.approx([expected])


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
    odd = OutlierCells().fit(rows)
    far = dict(rows, few=np.full(80, np.finfo(float).max))
    assert np.isfinite(odd.score_samples(rows)).all() and len(odd.cells(far))
