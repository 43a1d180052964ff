"""RowModel: its engines against slow references."""

import numpy as np
import pandas as pd
import pytest

from tabweave import Imputer, OutlierCells, Table
from tabweave.tasks.row_model import RowModel, explained_variance, positive


def test_the_regression_is_ridge_on_whole_rows(whole):
    """Against a ridge regression on indicators over the root of their share, all rows whole.

    Luck says nothing of the city, and takes no part.
    """
    columns, n = ["city", "sea", "country"], len(whole)
    table = Table.of(whole[[*columns, "luck"]])
    model = RowModel.of(table, 12, 0, ("counts",), needs_evidence=True)
    z = np.hstack(
        [(i - i.mean(axis=0)) / np.sqrt(i.mean(axis=0))
         for i in (pd.get_dummies(whole[[c]], dtype=float).to_numpy() for c in columns)]
    )  # fmt: skip
    own, rest = np.arange(3), np.arange(3, z.shape[1])
    ridge = 0.02 + 0.3 * z.shape[1] / n
    gram = z[:, rest].T @ z[:, rest] / n + ridge * np.eye(len(rest))
    beta = np.linalg.solve(gram, z[:, rest].T @ z[:, own] / n)
    np.testing.assert_allclose(model.coefficients[0][rest], beta, atol=1e-9)
    assert not model.coefficients[0][model.spans[3]].any()
    share = pd.get_dummies(whole["city"]).mean().to_numpy()
    expected = np.maximum(share + z[:, rest] @ beta * np.sqrt(share), 1e-3)
    expected /= expected.sum(axis=1, keepdims=True)
    complete = model.completed(model.cells(table), {})
    found = model.regressed(0, np.arange(n), complete)[0]
    np.testing.assert_allclose(found, expected, atol=1e-9)


@pytest.mark.parametrize("gaps", ["none", "some", "all"])
@pytest.mark.parametrize("n_rows", [30, 400])
def test_a_covariance_over_gaps_has_no_negative_eigenvalues(gaps, n_rows, monkeypatch):
    """Of singular ones, too; eigenvalues are looked for only where some are negative."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n_rows, 9))
    rows = pd.DataFrame(x + x[:, :1], columns=list("abcdefghi"))
    rows["twin"], rows["same"], rows["kind"] = rows["a"], 1.0, np.where(x[:, 1] > 0, "u", "v")
    holed = {"none": [], "some": ["b", "kind"], "all": list(rows)}[gaps]
    rows[holed] = rows[holed].mask(rng.random((n_rows, len(holed))) < 0.2)
    covariance = RowModel.of(Table.of(rows), 12, 0, ("counts",))._covariance()
    values, vectors = np.linalg.eigh(covariance)
    sizes = []
    monkeypatch.setattr(
        "tabweave.tasks.row_model.eigh", lambda m: sizes.append(len(m)) or np.linalg.eigh(m)
    )
    expected = (vectors * np.maximum(values, 0)) @ vectors.T
    np.testing.assert_allclose(positive(covariance), expected, atol=1e-9)
    assert sizes == ([] if gaps == "none" else [len(covariance)])


def test_the_regression_is_a_sum_over_the_other_cells(holes):
    """Column by column: a cell adds what its value does, a gap what it is guessed to be."""
    holes = holes.assign(tags=[[["a"], ["a", "b"], None][i % 3] for i in range(len(holes))])
    table = Table.of(holes)
    model = RowModel.of(table, 12, 0, ("counts",), needs_evidence=True)
    cells = model.cells(table)
    guesses = model.first_guesses(cells)
    complete = model.completed(cells, guesses)
    rows = np.arange(len(holes))
    for a, beta in enumerate(model.coefficients):
        expected = complete.z[model.number_columns].T @ beta[len(model.share) :]
        for b, other in enumerate(model.columns):
            span = model.spans[b]
            if other.is_set:
                has = cells.elements[b]
                has = np.where(np.isnan(has), model.share[span], has)
            else:
                has = np.eye(model.sizes[b])[complete.codes[b]]
                if b in guesses:
                    has[guesses[b].rows] = guesses[b].proba
            expected += (has - model.share[span]) * model.unit[span] @ beta[span]
        np.testing.assert_allclose(model.expected(a, rows, complete), expected, atol=1e-9)


def test_neighbours_are_those_of_the_tables(holes):
    filler = Imputer("neighbors", n_neighbors=7).fit(holes)._filler.blocks[0]
    model, tables = filler.model, filler._metric(0)
    others = [b for b, name in enumerate(model.index) if name != "city"]
    stored = np.flatnonzero(filler.observed[0])
    codes = filler.reference_codes
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
    found = filler._voted(0, np.arange(5), codes, nearest)[0]
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    np.testing.assert_array_equal(filler._voted(0, np.arange(5), codes, nearest)[0], found)
    moved = codes.copy()
    moved[1, 2] = (moved[1, 2] + 1) % model.sizes[1]  # one row is looked for anew, the others kept
    again = filler._voted(0, np.arange(5), moved, nearest)[0]
    alone = filler._voted(0, np.arange(5), moved, {})[0]
    np.testing.assert_array_equal(again, alone)
    assert not np.array_equal(again[2], found[2])


@pytest.mark.parametrize("n_values", [2, 7, 60, 150, 200])
@pytest.mark.parametrize("ranked", [True, False])
def test_what_chance_explains_is_no_evidence(n_values, ranked):
    """The adjusted share is 0 in the mean of all orders of a column, however many values it has."""
    rng = np.random.default_rng(n_values)
    column, other = rng.integers(0, 5, 200), rng.permutation(np.arange(200) % n_values)
    found = []
    for _ in range(400):
        met = np.zeros((n_values, 5))
        np.add.at(met, (other, rng.permutation(column)), 1)
        found.append(explained_variance(met, np.array([0]), ranked=ranked)[0])
    assert 0 <= np.mean(np.array(found) > 0) < 0.09
    assert max(found) == 0 if n_values == 200 else True  # as many values as rows


def test_evidence_is_the_adjusted_r_squared_of_a_regression_on_indicators(whole):
    rng = np.random.default_rng(0)
    city = whole["city"].to_numpy()
    y = np.where(rng.random(len(city)) < 0.7, city, "Rome")
    z = pd.get_dummies(pd.Series(y), dtype=float).to_numpy()
    x = pd.get_dummies(whole["city"], dtype=float).to_numpy()
    left = z - x @ np.linalg.lstsq(x, z, rcond=None)[0]
    r2 = 1 - (left**2).sum() / ((z - z.mean(axis=0)) ** 2).sum()
    adjusted = 1 - (1 - r2) * (len(y) - 1) / (len(y) - x.shape[1])
    assert explained_variance(x.T @ z, np.array([0]), ranked=False) == pytest.approx([adjusted])


def test_blocks_of_rows_change_nothing(holes, monkeypatch):
    whole = Imputer().fit(holes).transform(holes)
    monkeypatch.setattr("tabweave.tasks.impute.BLOCK_ROWS", 37)
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
