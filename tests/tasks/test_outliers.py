"""OutlierCells: contradictions are found and explained, alarms are as rare as stated."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.metrics import roc_auc_score

import tabweave
from tabweave import OutlierCells, Table
from tabweave.tasks import outliers
from tabweave.tasks.outliers import (
    Tails,
    conditionals,
    evidence,
    oddest,
    row_scores,
)

CITIES = {"Paris": "France", "Lyon": "France", "Santiago": "Chile", "Lima": "Peru"}


def drawn(n, seed):
    rng = np.random.default_rng(seed)
    city = rng.choice(list(CITIES), n, p=[0.4, 0.3, 0.2, 0.1])
    country = pd.Series(city).map(CITIES)
    income = pd.Series(country).map({"France": 40.0, "Chile": 15.0, "Peru": 7.0})
    frame = pd.DataFrame({"city": city, "country": country, "luck": rng.choice(["h", "t"], n)})
    frame["income"] = income + rng.normal(0, 3, n)
    return frame


@pytest.fixture(scope="module")
def model():
    return OutlierCells(level=0.05).fit(drawn(400, 0))


def test_contradictions_are_found_and_explained(model):
    rows = drawn(60, 1)
    rows.loc[7, "city"] = "Paris"
    rows.loc[7, "country"] = "Chile"
    rows.loc[7, "income"] = 15.0
    first = model.cells(rows)[0]
    assert first.row == 7 and {first.column, first.against[0]} <= {"city", "country", "income"}
    assert first.p_value == pytest.approx(1 / 401)
    assert model.predict(rows)[7] == -1
    assert model.row_p_values(rows)[7] == model.row_p_values(rows).min()
    column, value, both, n = first.against
    if first.column == "city":
        seen = drawn(400, 0)
        own = seen[seen[column] == value] if column != "income" else None
        assert own is None or (n == len(own) and both == (own["city"] == "Paris").sum())
    assert f"row 7: {first.column}=" in str(first)


def test_alarms_are_as_rare_as_stated(model):
    fresh = drawn(1500, 2)
    assert np.mean(model.predict(fresh) == -1) < 0.08
    p = model.row_p_values(fresh)
    for level in (0.05, 0.2):
        assert np.mean(p <= level) < 1.5 * level
    cells = model.cell_p_values(fresh)
    assert cells.shape == (1500, 4) and (cells > 0).all() and (cells <= 1).all()
    assert np.mean(cells <= 0.1) < 0.15


@pytest.mark.parametrize("engine", ["all", "counts", "mixture"])
def test_swapped_cells_stand_out(engine):
    rows = drawn(500, 3)
    odd = np.zeros(500, bool)
    odd[::50] = True
    other = rows["country"].map({"France": "Chile", "Chile": "Peru", "Peru": "France"})
    rows["country"] = rows["country"].where(~odd, other)
    found = OutlierCells(engine=engine).fit(rows)
    assert roc_auc_score(odd, -found.score_samples(rows)) > 0.95
    named = {cell.row for cell in OutlierCells(engine=engine).fit_cells(rows, 10)}
    assert len(named & set(np.flatnonzero(odd))) >= 8
    answer = OutlierCells(level=0.03, engine=engine).fit_predict(rows)
    assert np.mean(odd[answer == -1]) > 0.5


def test_rows_of_fit_are_judged_by_what_others_teach():
    """The model has learned a value that occurs once; the other rows have not."""
    rows = drawn(150, 8)
    rows.loc[7, ["city", "luck"]] = "Atlantis", "edge"
    model = OutlierCells()
    first = model.fit_cells(rows)[0]
    assert first.row == 7 and first.value in ("Atlantis", "edge")
    assert first.p_value == pytest.approx(1 / 150)
    assert next(cell.row for cell in model.fit_cells(rows, None)) == 7
    assert model.cells(rows)[0].row != 7


def test_rows_of_fit_that_did_not_teach_are_judged_too():
    rows = drawn(300, 9)
    rows.loc[::50, "country"] = "Atlantis"
    model = OutlierCells(max_rows=200, level=0.03, engine="counts")
    answer = model.fit_predict(rows)
    surprises, score, _ = model._judged_of_fit(Table.of(rows, model.schema_))
    taught = np.isin(np.arange(len(rows)), model._drawn)
    assert taught.sum() == 200 and (np.flatnonzero(taught) == model._drawn).all()
    np.testing.assert_array_equal(score[taught], model._fit_scores)
    np.testing.assert_allclose(row_scores(score[~taught]), -model.score_samples(rows)[~taught])
    np.testing.assert_allclose(surprises[~taught], model.surprise(rows)[~taught])
    assert (answer == np.where(-row_scores(score) < model.offset_, -1, 1)).all()


def test_probabilities_are_those_of_the_rest_of_the_row():
    """Without its own cell: what a cell is does not change what is expected of it."""
    rows = drawn(200, 4)
    model = OutlierCells().fit(rows)._model
    other = rows.copy()
    other["city"] = "Lima"
    for a, name in enumerate(rows):
        one, two = (
            list(conditionals(model, model.cells(Table.of(t))))[a][0] for t in (rows, other)
        )
        np.testing.assert_allclose(one.sum(axis=1), 1)
        assert np.allclose(one, two) == (name == "city")


def test_a_cell_is_as_likely_as_both_engines_say_on_average():
    rows = drawn(200, 0)
    by = {
        name: OutlierCells(engine=name).fit(rows).surprise(rows) for name in ("counts", "mixture")
    }
    found = OutlierCells().fit(rows).surprise(rows)
    expected = (np.exp(-by["counts"]) + np.exp(-by["mixture"])) / 2
    categories = [rows.columns.get_loc(c) for c in ("city", "country", "luck")]
    np.testing.assert_allclose(np.exp(-found)[:, categories], expected[:, categories], atol=1e-6)


def test_a_gap_says_of_others_what_its_likely_values_say():
    """The regression is a sum over cells: that of a gap is the mean over what may stand there."""
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 3, 400)
    rows = {c: np.where(rng.random(400) < 0.6, kind, rng.integers(0, 3, 400)) for c in "abc"}
    rows = {c: np.array(["u", "v", "w"])[column].astype(object) for c, column in rows.items()}
    model = OutlierCells().fit(rows)._model
    gap = {"a": ["u"] * 4, "b": [None, "u", "v", "w"], "c": ["v"] * 4}
    cells = model.cells(Table.of(gap, dict.fromkeys("abc", "nominal")))
    guesses = model.first_guesses(cells)
    found, _ = model.regressed(0, np.arange(4), model.completed(cells, guesses))
    likely = guesses[1].proba[0]
    order = [model.columns[1].labels.index(value) for value in "uvw"]
    np.testing.assert_allclose(found[0], likely[order] @ found[1:], atol=1e-9)
    assert np.abs(found[1:] - found[0]).max() > 0.1


def test_gaps_are_no_surprise_and_new_values_are():
    model = OutlierCells(level=0.05).fit(drawn(200, 5))
    rows = pd.DataFrame(
        {"city": ["Paris", None, "Atlantis"], "country": ["France"] * 3, "luck": ["h"] * 3}
    ).assign(income=[40.0, np.nan, 40.0])
    surprise = model.surprise(rows)
    assert surprise[1, 0] == 0 and surprise[1, 3] == 0
    assert surprise[2, 0] == surprise.max() and model.predict(rows)[2] == -1
    assert "not seen before" in str(model.cells(rows)[0])


def test_streams(model):
    rows = drawn(400, 0)
    parts = OutlierCells(level=0.05).partial_fit(rows[:150]).partial_fit(rows[150:])
    new = drawn(50, 6)
    np.testing.assert_allclose(parts.score_samples(new), model.score_samples(new), rtol=1e-6)
    latest = OutlierCells(max_rows=100).partial_fit(rows[:300]).partial_fit(rows[300:])
    assert latest._rows.n_rows == 100


def test_blocks_of_rows_and_files_change_nothing(model, monkeypatch, tmp_path):
    new = drawn(50, 7)
    scored = model._as_scores(Table.of(new))
    whole = evidence(model._model, scored)
    monkeypatch.setattr("tabweave.tasks.outliers.BLOCK_NUMBERS", 7 * len(model._model.share))
    for one, other in zip(whole, evidence(model._model, scored), strict=True):
        np.testing.assert_allclose(one, other)
    model.save(tmp_path / "model")
    loaded = tabweave.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.score_samples(new), model.score_samples(new))
    assert loaded.cells(new) == model.cells(new)


def test_dates_and_money_are_shown_as_they_are_read():
    rng = np.random.default_rng(0)
    month = rng.integers(1, 13, 400)
    pay = 1000.0 * month + rng.normal(0, 50, 400) + 12_000
    rows = {"id": [f"E{i}" for i in range(400)], "pay": [f"${x:,.0f}" for x in pay]}
    rows["since"] = [f"2020-{m:02d}-{d:02d}" for m, d in zip(month, month, strict=True)]
    rows["since"][7] = "2020-12-12" if month[7] < 6 else "2020-01-01"
    model = OutlierCells().fit(rows)
    first = model.cells(rows, 1)[0]
    assert first.row == 7 and "id" not in model.schema_.names
    shown = str(first)
    assert "e+" not in shown and "2020-" in shown


def test_sets_alone_are_not_judged():
    rows = {"tags": [["a"], [], ["a", "b"]] * 10}
    assert (OutlierCells().fit(rows).predict(rows) == 1).all()


def test_a_number_far_out_is_odd_whatever_its_bin_holds():
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(
        {
            "age": rng.integers(18, 80, 400),
            "pay": rng.lognormal(3, 1, 400),
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, 400), "D"),
            "job": rng.choice(["cook", "clerk"], 400),
        }
    )
    odd = rows.copy()
    odd.loc[3, "age"], odd.loc[70, "pay"] = 999, -1e6
    odd.loc[200, "day"] = pd.Timestamp("1924-05-01")
    found = OutlierCells().fit_cells(odd, 3)
    assert {(o.row, o.column) for o in found} == {(3, "age"), (70, "pay"), (200, "day")}
    assert [str(o) for o in found if o.row == 3] == [
        "row 3: age=999: far from all seen before (p = 0.0025)"
    ]
    model = OutlierCells().fit(rows)
    new = model.cells(odd.iloc[[3, 70, 200]])
    assert [o.column for o in sorted(new, key=lambda o: o.row)] == ["age", "pay", "day"]
    assert all(o.p_value == 1 / 401 and o.against is None for o in new)
    plain, wild = (model.surprise(frame.iloc[[3]])[0] for frame in (rows, odd))
    gap = model.surprise(rows.iloc[[3]].astype({"age": float}).assign(age=np.nan))[0]
    np.testing.assert_allclose(wild[1:], gap[1:])  # the others are judged without it
    assert plain[0] < wild[0]


def test_what_was_seen_is_not_called_new_where_nothing_speaks_against_it():
    colours = {"color": ["red", "green", "blue"] * 10}
    said = [str(cell) for cell in OutlierCells().fit_cells(colours)]
    assert said and not any("seen before" in line for line in said)
    assert "no other cell speaks against it" in said[0]
    numbers = {"n": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], "tags": [["a"], ["b"], ["a"], [], ["b"], ["a"]]}
    assert not any(cell.is_new for cell in OutlierCells().fit_cells(numbers))
    (far,) = OutlierCells(level=0.4).fit(numbers).cells({"n": [99.0], "tags": [["a"]]})
    assert far.is_new and "far from all seen before" in str(far)


def test_of_level_cells_the_first_column_stands_for_a_row():
    scores = np.full((2, 3), 2.5)
    scores[:, 2] += 1e-13  # rounding, which differs between machines
    assert oddest(scores).tolist() == [0, 0]


# -- what is odd does not teach ------------------------------------------------------------------


def people(n, seed):
    rng = np.random.default_rng(seed)
    sex = rng.choice(["f", "m"], n)
    height = np.where(sex == "m", 178, 165) + rng.normal(0, 7, n)
    return pd.DataFrame(
        {
            "sex": sex,
            "city": rng.choice(["Paris", "Lyon", "Lille"], n, p=[0.5, 0.3, 0.2]),
            "height": height.round(),
            "weight": (0.9 * (height - 100) + rng.normal(0, 9, n)).round(),
            "age": rng.integers(18, 80, n).astype(float),
            "income": rng.lognormal(7.5, 0.5, n).round(),
        }
    )


def test_numbers_ten_times_too_large_come_first_be_they_one_or_ten():
    """In 20 tables of 1,000 people: the oddest rows are the planted ones, by cell and by row."""
    first = []
    for seed in range(20):
        rows, rng = people(1000, seed), np.random.default_rng([1, seed])
        n = 1 + seed // 2
        planted = {
            (int(row), str(rng.choice(["height", "weight"])))
            for row in rng.choice(1000, n, replace=False)
        }
        for row, column in planted:
            rows.loc[row, column] *= 10
        model = OutlierCells(engine="counts")
        cells = model.fit_cells(rows, n)
        scores = row_scores(model._judged_of_fit(Table.of(rows, model.schema_))[1])
        by_row = set(np.argsort(-scores)[:n].tolist())
        found = {(cell.row, cell.column) for cell in cells}
        first.append(found == planted and by_row == {row for row, _ in planted})
    assert np.mean(first) >= 0.95


def test_errors_that_agree_with_each_other_do_not_hide():
    """One in thirty of a column: the others are judged as if it were clean."""
    clean = people(400, 0)
    spoiled = clean.copy()
    spoiled.loc[:12, "height"] *= 10
    model, reference = OutlierCells().fit(spoiled), OutlierCells().fit(clean)
    fresh = people(300, 1)
    wild = fresh.assign(height=10 * fresh["height"])
    assert model.score_samples(wild).max() < model.score_samples(fresh).min()
    apart = np.corrcoef(model.score_samples(fresh), reference.score_samples(fresh))[0, 1]
    assert apart > 0.9


def test_a_row_is_as_odd_as_its_oddest_cell_and_ranked_by_it():
    rows = people(300, 2)
    rows.loc[11, "weight"] = 700.0
    model = OutlierCells(engine="counts").fit(rows)
    _, scores, _ = model._judged_of_fit(Table.of(rows, model.schema_))
    np.testing.assert_array_equal(row_scores(scores), scores.max(axis=1))
    assert scores.max(axis=1).argmax() == 11
    assert model._cells_of_fit(Table.of(rows, model.schema_), None)[0][0].row == 11


def test_many_rows_are_judged_slab_by_slab_as_at_once_and_say_how_far_they_are(monkeypatch):
    rows = people(900, 2)
    rows.loc[811, "weight"] = 700.0
    whole = OutlierCells(max_rows=200).fit_cells(rows, None)
    monkeypatch.setattr(outliers, "SLAB_ROWS", 64)
    monkeypatch.setattr(outliers, "BLOCK_NUMBERS", 512)
    told = []
    assert OutlierCells(max_rows=200).fit_cells(rows, None, progress=told.append) == whole
    assert whole[0].row == 811
    shares = {step: [p.done for p in told if p.step == step] for step in {p.step for p in told}}
    learning, judging = shares["learning which cells go together"], shares["judging rows"]
    assert len(learning) >= 4 and len(judging) == -(-700 // 64)
    assert 0 < min(learning) and max(learning) <= judging[0] == 0.5 and judging == sorted(judging)
    assert judging[-1] < 1 and {p.total for p in told} == {1.0}


def test_a_mixture_without_a_cell_is_as_if_the_row_had_a_gap_there():
    rows = people(300, 2)
    model = OutlierCells(engine="mixture").fit(rows)
    scored = model._as_scores(model._read(rows[:40]))
    cells = model._model.cells(scored.table)
    joints = model._model.joints(cells, np.arange(40))
    for a in range(len(model._model.columns)):
        gap = cells.codes.copy()
        gap[a] = -1
        without = model._model.joints(cells._replace(codes=gap), np.arange(40))
        expected = model._model.from_mixture(a, gap[a], without)
        proba = model._model.from_mixture(a, cells.codes[a], joints)
        np.testing.assert_allclose(proba, expected, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(proba.sum(axis=1), 1, atol=1e-6)


# -- level and threshold, counted by hand --------------------------------------------------------


@pytest.mark.parametrize("level", [0.01, 0.05, 0.2])
def test_odd_are_the_rows_whose_p_value_is_at_most_the_level(level):
    model, fresh = OutlierCells(level, engine="counts").fit(drawn(250, 0)), drawn(200, 1)
    fit_scores = model._fit_scores.max(axis=1)
    scores = -model.score_samples(fresh)
    p = np.array([(1 + sum(other >= score for other in fit_scores)) / 251 for score in scores])
    np.testing.assert_allclose(model.row_p_values(fresh), p)
    assert ((model.predict(fresh) == -1) == (p <= level)).all()
    np.testing.assert_allclose(model.decision_function(fresh), -scores - model.offset_)


@pytest.mark.parametrize("level", [0.01, 0.1])
def test_cells_are_listed_whose_p_value_is_at_most_the_level(level):
    rows = drawn(250, 0)
    rows.loc[3, "income"] = 400.0
    model = OutlierCells(level, engine="counts")
    listed = {cell.row: cell for cell in model.fit_cells(rows, None)}
    scores = model._fit_scores
    for row, own in enumerate(scores):
        column = own.argmax()
        p = sum(other >= own[column] for other in scores[:, column]) / 250
        assert (row in listed) == (p <= level and own[column] > 0)
        if row in listed:
            assert listed[row].p_value == pytest.approx(p)
            assert listed[row].column == rows.columns[column]
    assert len(listed) >= 2 and next(iter(listed)) == 3


def test_a_category_is_as_surprising_as_its_neighbours_count():
    """Two columns: the regression of one category on another is what frequencies say."""
    rng = np.random.default_rng(0)
    a = rng.choice(["x", "y"], 4000)
    b = np.where(rng.random(4000) < 0.9, np.where(a == "x", "u", "v"), rng.choice(["u", "v"], 4000))
    frame = pd.DataFrame({"a": a, "b": b})
    model = OutlierCells(engine="counts").fit(frame)
    asked = pd.DataFrame({"a": ["x", "x", "y", "y"], "b": ["u", "v", "u", "v"]})
    surprise = model.surprise(asked)
    for row in range(4):
        alike = frame[frame["a"] == asked["a"][row]]
        share = (alike["b"] == asked["b"][row]).mean()
        assert np.exp(-surprise[row, 1]) == pytest.approx(share, abs=0.02)


def test_a_value_that_none_has_seen_is_usual_in_a_column_of_names():
    rng = np.random.default_rng(0)
    names = [f"n{i}" for i in rng.integers(0, 150, 300)]
    rows = people(300, 3).assign(name=names)
    rows.loc[5, "height"] *= 10
    cells = OutlierCells(schema={"name": "nominal"}).fit_cells(rows, 1)
    assert (cells[0].row, cells[0].column) == (5, "height")


# -- tails, against distributions that are known ---------------------------------------------------


@pytest.mark.parametrize("weight", [0.0, 0.3, 0.8])
def test_the_scale_and_weight_of_a_pareto_tail_are_found(weight):
    """What lies beyond the largest fifth of a generalised Pareto column is one, too."""
    law = stats.genpareto(weight)
    numbers = law.ppf((np.arange(50_000) + 0.5) / 50_000)
    tails = Tails.of(numbers)
    x = law.isf([0.1, 0.01, 1e-3, 1e-4])
    np.testing.assert_allclose(tails.surprise(x), -law.logsf(x) - np.log(2), rtol=0.05, atol=0.02)


def test_tails_are_those_of_either_side():
    numbers = stats.expon.ppf((np.arange(9_999) + 0.5) / 9_999) - 0.1
    one, other = Tails.of(numbers), Tails.of(-numbers)
    x = np.array([0.0, 0.5, 3.0, 20.0])
    np.testing.assert_allclose(one.surprise(x), other.surprise(-x))
    np.testing.assert_array_equal(one.upper, other.lower)
    assert one.surprise(np.array([np.median(numbers)]))[0] == 0


@pytest.mark.parametrize(("n_wild", "change"), [(10, 0.5), (30, 1.5)])
def test_wild_numbers_change_little(n_wild, change):
    rng = np.random.default_rng(0)
    numbers = rng.normal(170, 8, 1000)
    spoiled = numbers.copy()
    spoiled[:n_wild] *= 10
    clean, robust = Tails.of(numbers), Tails.of(spoiled)
    x = np.array([150.0, 165, 180, 195])
    np.testing.assert_allclose(robust.surprise(x), clean.surprise(x), atol=change)
    assert robust.surprise(spoiled[:n_wild]).min() > robust.surprise(numbers[n_wild:]).max() + 5


def test_a_tenth_of_a_positive_number_is_far_out_too():
    numbers = stats.lognorm(0.3).ppf((np.arange(2_000) + 0.5) / 2_000)
    down, up = Tails.of(numbers).surprise(np.array([0.1, 10.0]))
    assert min(down, up) > 8
    np.testing.assert_allclose(Tails.of(numbers).lower, Tails.of(-np.log(numbers)).upper)
    assert Tails.of(np.append(numbers, -1.0)).surprise(np.array([0.1]))[0] < down
    below = Tails.of(numbers).surprise(np.array([numbers.min(), 0.01, 0.0, -1.0, -50.0]))
    assert (np.diff(below) > 0).all() and below[2] < 50


@pytest.mark.parametrize(
    "numbers",
    [[5.0] * 50, [0.0] * 45 + [1.0] * 5, [0.0] * 48 + [1.0, 90.0], [1.0, 2.0, 3.0], [7.0], []],
)
def test_ties_and_few_numbers(numbers):
    tails = Tails.of(np.array(numbers))
    x = np.array([-1e300, -50.0, 0.0, 1.0, 6.0, 50.0, 1e300, np.nan, 1e308, -1e308])
    surprise = tails.surprise(x)
    assert np.isfinite(surprise).all() and surprise[7] == 0
    scores = tails.normal_scores(x, np.sort(numbers))
    assert np.isnan(scores[7]) and np.nanmax(np.abs(scores)) <= 5
    order = np.argsort(x[np.isfinite(x)])
    assert (np.diff(scores[np.isfinite(x)][order]) >= 0).all()


def test_normal_scores_are_those_of_a_normal_column():
    ordered = stats.norm.ppf((np.arange(20_000) + 0.5) / 20_000)
    tails = Tails.of(np.exp(ordered))
    x = np.array([-2.0, -1.0, 0.0, 0.5, 2.0])
    np.testing.assert_allclose(tails.normal_scores(np.exp(x), np.exp(ordered)), x, atol=0.2)
