"""Associations against scipy, scikit-learn and plain formulas."""

import tracemalloc

import numpy as np
import pandas as pd
import pytest
from scipy import sparse, stats
from scipy.stats.contingency import association
from sklearn.metrics import mutual_info_score

from tabweave import Counts, Table, associations
from tabweave.tasks import associations as module
from tabweave.tasks.associations import (
    MEASURES,
    bergsma,
    false_discovery,
    normal_chi2,
    of_block,
    phi_k,
)

KINDS = {"a": "nominal", "b": "nominal"}


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.choice(list("abc"), 400), "b": rng.choice(list("pqrst"), 400)})
    frame["c"] = np.where(rng.random(400) < 0.6, frame["a"], frame["b"])
    frame["x"] = rng.normal(size=400) + (frame["a"] == "a")
    frame["y"] = frame["x"] + rng.normal(size=400)
    frame.loc[::9, "y"] = np.nan
    frame["z"] = rng.exponential(size=400)
    return frame


@pytest.fixture(scope="module")
def found(rows):
    return associations(rows)


def entry(found, left, right):
    at = found.pairs.index((left, right))
    return {measure: values[at] for measure, values in found.values.items()}


@pytest.mark.parametrize("pair", [("a", "b"), ("a", "c"), ("b", "c")])
def test_two_categories(rows, found, pair):
    table = pd.crosstab(rows[pair[0]], rows[pair[1]]).to_numpy()
    ours = entry(found, *pair)
    np.testing.assert_allclose(ours["cramers_v"], association(table, method="cramer"))
    chi2 = stats.chi2_contingency(table, correction=False)
    np.testing.assert_allclose([ours["statistic"], ours["p_value"]], [chi2.statistic, chi2.pvalue])
    mutual = mutual_info_score(rows[pair[0]], rows[pair[1]])
    entropy = [stats.entropy(rows[name].value_counts()) for name in pair]
    np.testing.assert_allclose(ours["mutual_information"], mutual, atol=1e-12)
    np.testing.assert_allclose(ours["theils_u"], mutual / entropy[0], atol=1e-12)
    np.testing.assert_allclose(ours["theils_u_reversed"], mutual / entropy[1], atol=1e-12)
    np.testing.assert_allclose(ours["symmetric_uncertainty"], 2 * mutual / sum(entropy), atol=1e-12)
    assert np.isnan(ours["pearson"]) and np.isnan(ours["correlation_ratio"])


def test_a_number_and_a_category(rows, found):
    groups = [own["x"].to_numpy() for _, own in rows.groupby("a")]
    f = stats.f_oneway(*groups)
    ours = entry(found, "a", "x")
    np.testing.assert_allclose([ours["statistic"], ours["p_value"]], [f.statistic, f.pvalue])
    between = sum(len(g) * (g.mean() - rows["x"].mean()) ** 2 for g in groups)
    share = between / ((rows["x"] - rows["x"].mean()) ** 2).sum()
    np.testing.assert_allclose(ours["correlation_ratio"], np.sqrt(share))
    bins = pd.qcut(rows["x"], 10, labels=False)
    table = pd.crosstab(rows["a"], bins).to_numpy()
    np.testing.assert_allclose(ours["cramers_v"], association(table, method="cramer"))


@pytest.mark.parametrize("pair", [("x", "y"), ("x", "z"), ("y", "z")])
def test_two_numbers(rows, found, pair):
    both = rows[list(pair)].dropna()
    ours = entry(found, *pair)
    np.testing.assert_allclose(ours["pearson"], stats.pearsonr(*both.to_numpy().T).statistic)
    spearman = stats.spearmanr(*both.to_numpy().T)
    np.testing.assert_allclose(ours["spearman"], spearman.statistic)
    np.testing.assert_allclose(ours["p_value"], spearman.pvalue)


TITANIC = {  # R's table of that name: men and women, by class or crew, age and survival
    ("Child", "No"): [(0, 0), (0, 0), (35, 17), (0, 0)],
    ("Adult", "No"): [(118, 4), (154, 13), (387, 89), (670, 3)],
    ("Child", "Yes"): [(5, 1), (11, 13), (13, 14), (0, 0)],
    ("Adult", "Yes"): [(57, 140), (14, 80), (75, 76), (192, 20)],
}
R_PEARSON_AND_V = {  # chi-square and Cramér's V as printed by R's vcd::assocstats
    ("Class", "Survived"): (190.4, 0.294),
    ("Sex", "Survived"): (456.87, 0.456),
    ("Age", "Survived"): (20.96, 0.098),
    ("Class", "Sex"): (349.91, 0.399),
}


@pytest.fixture(scope="module")
def titanic():
    rows = [
        (cabin, sex, age, survived)
        for (age, survived), counts in TITANIC.items()
        for cabin, pair in zip(["1st", "2nd", "3rd", "Crew"], counts, strict=True)
        for sex, count in zip(["Male", "Female"], pair, strict=True)
        for _ in range(count)
    ]
    return pd.DataFrame(rows, columns=["Class", "Sex", "Age", "Survived"])


@pytest.mark.parametrize("pair", R_PEARSON_AND_V)
def test_strengths_of_titanic_are_those_of_r_less_chance(titanic, pair):
    """Bergsma (2013), Eqs. (1) and (2), from R's statistic, beside the uncorrected ones."""
    ours = entry(associations(titanic), *sorted(pair, key=list(titanic).index))
    pearson, v = R_PEARSON_AND_V[pair]
    assert ours["statistic"] == pytest.approx(pearson, rel=1e-3)
    assert ours["cramers_v"] == pytest.approx(v, abs=6e-4)
    n, (r, k) = 2201, (titanic[name].nunique() for name in pair)
    square = max(0, ours["statistic"] / n - (r - 1) * (k - 1) / (n - 1))
    least = min(size - (size - 1) ** 2 / (n - 1) for size in (r, k))
    assert ours["strength"] == pytest.approx(np.sqrt(square / (least - 1)))
    assert ours["strength"] == ours["cramers_v_corrected"] < ours["cramers_v"]


@pytest.mark.parametrize("n_values", [2, 40, 800])
def test_strength_of_shuffled_columns_is_near_none(n_values):
    """The square of the corrected V is 0 in expectation, before it is cut at 0."""
    rng = np.random.default_rng(n_values)
    a, b = rng.integers(0, n_values, (2, 1000)).astype(str)
    squares, raw = [], []
    for _ in range(60):
        ours = entry(associations({"a": a, "b": rng.permutation(b)}, schema=KINDS), "a", "b")
        table = len(set(a)), len(set(b))
        chance = np.prod([size - 1 for size in table]) / 999
        squares.append(ours["statistic"] / 1000 - chance)
        raw.append(ours["cramers_v"])
        assert ours["strength"] <= 0.25
    assert abs(np.mean(squares)) < 4 * np.std(squares) / np.sqrt(60)
    assert n_values == 2 or np.mean(raw) > 0.19


def test_columns_of_many_strings_take_little_memory():
    """A table of all pairs of 20,000 values would take 3.2 GB."""
    rng = np.random.default_rng(0)
    codes = rng.permutation(np.arange(24_000) % 20_000)
    a, b = ([f"{letter}{code}" for code in codes] for letter in "ab")
    counts = Counts.of(
        Table.of({"a": a, "b": b, "c": rng.permutation(b)}, KINDS | {"c": "nominal"})
    )
    tracemalloc.start()
    found = associations(counts)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 50e6
    assert found.matrix("cramers_v").loc["a", "b"] == pytest.approx(1)
    assert found.matrix("theils_u").loc["a", "b"] == pytest.approx(1)
    assert found.matrix().loc["a", "c"] < 0.1


@pytest.mark.parametrize("gaps", [False, True])
def test_sparse_tables_give_what_dense_ones_do(gaps, monkeypatch):
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 1500, (2, 3000)).astype(str).astype(object)
    b[::3] = a[::3]
    a[5:50], b[40:90] = None, None
    how = "drop" if gaps else "value"
    found = associations({"a": a, "b": b}, schema=KINDS, missing=how)
    monkeypatch.setattr(module, "MAX_DENSE_CELLS", 0)
    thin = associations({"a": a, "b": b}, schema=KINDS, missing=how)
    for measure in MEASURES:
        np.testing.assert_allclose(thin.values[measure], found.values[measure])


def test_bergsma_by_hand():
    n, r, k, chi2 = 50, 3, 4, 20.0
    square = chi2 / n - 6 / 49
    assert bergsma(chi2, n, r, k) == pytest.approx(np.sqrt(square / (3 - 4 / 49 - 1)))
    assert bergsma(1.0, n, r, k) == 0


def test_phi_k_is_built_on_the_normal_distribution():
    """The χ² of normal numbers in bins, against scipy's distribution function."""
    rhos, per_row = normal_chi2(3, 4)
    for at in (10, 24, 40):
        x, y = np.linspace(-5, 5, 4), np.linspace(-5, 5, 5)
        normal = stats.multivariate_normal([0, 0], [[1, rhos[at]], [rhos[at], 1]])
        below = np.array([[normal.cdf([a, b]) for b in y] for a in x])
        joint = np.diff(np.diff(below, axis=0), axis=1)
        expected = np.outer(np.diff(stats.norm.cdf(x)), np.diff(stats.norm.cdf(y)))
        chi2 = ((joint - expected) ** 2 / expected).sum()
        assert per_row[at] == pytest.approx(chi2, rel=1e-4)
        noise = 6
        seen = noise + (2e4 - noise) * chi2 / per_row[-1]
        assert phi_k(seen, 1e4, 3, 4) == pytest.approx(rhos[at], abs=1e-4)


def test_three_rows_are_enough_for_a_correlation_to_be_tested():
    ours = entry(associations({"x": [1.5, 2.5, 3.5], "y": [1.5, 3.5, 2.5]}), "x", "y")
    spearman = stats.spearmanr([1, 2, 3], [1, 3, 2])
    np.testing.assert_allclose(ours["spearman"], spearman.statistic)
    np.testing.assert_allclose(ours["p_value"], spearman.pvalue)


@pytest.mark.parametrize("bins", [7, 9])
def test_phi_k_of_bins_that_hardly_tell_high_correlations_apart(bins):
    rhos, per_row = normal_chi2(2, bins)
    assert (np.diff(per_row) > 0).all() and rhos[-1] == 1
    assert phi_k(1e4, 1e4, 2, bins) == pytest.approx(1)


def test_phi_k_has_its_ends():
    perfect = of_block(np.diag([30, 40, 50]))
    assert perfect["phi_k"] == pytest.approx(1)
    assert of_block(np.full((3, 4), 20))["phi_k"] == 0
    assert phi_k(40.0, 100, 3, 5) == phi_k(40.0, 100, 5, 3)


def test_false_discoveries_are_those_of_scipy():
    p = np.random.default_rng(0).random(30) ** 3
    np.testing.assert_allclose(false_discovery(p), stats.false_discovery_control(p))
    with_gap = np.insert(p, 4, np.nan)
    assert np.isnan(false_discovery(with_gap)[4])
    np.testing.assert_allclose(np.delete(false_discovery(with_gap), 4), false_discovery(p))


def test_matrix_and_frame(found):
    assert [*found.matrix().index] == found.names
    u = found.matrix("theils_u")
    assert u.loc["a", "b"] == entry(found, "a", "b")["theils_u"]
    assert u.loc["b", "a"] == entry(found, "a", "b")["theils_u_reversed"]
    assert found.frame()["strength"].is_monotonic_decreasing
    assert len(found.frame(level=1e-9)) < len(found.frame()) == len(found) == 15
    assert set(MEASURES) <= set(found.frame())
    with pytest.raises(ValueError, match="expected one of strength"):
        found.matrix("guess")


def test_missing_is_a_value_or_left_out():
    rows = {"a": ["x", "y", None, "x"] * 5, "b": ["p", "q", "q", None] * 5}
    as_value = entry(associations(rows, missing="value"), "a", "b")
    dropped = entry(associations(rows), "a", "b")
    frame = pd.DataFrame(rows)
    table = pd.crosstab(frame["a"].fillna("?"), frame["b"].fillna("?")).to_numpy()
    np.testing.assert_allclose(as_value["cramers_v"], association(table, method="cramer"))
    np.testing.assert_allclose(dropped["cramers_v"], 1)


def test_gaps_in_the_same_rows_are_no_strength_and_are_told():
    rng = np.random.default_rng(0)
    cells = rng.choice(list("uvw"), (2, 600)).astype(object)
    numbers = rng.normal(size=600)
    gone = rng.random(600) < 0.3
    cells[:, gone], numbers[gone] = None, np.nan
    rows = {"a": cells[0], "b": cells[1], "n": numbers, "c": rng.choice(list("pq"), 600)}
    rows["b"][:3] = None
    found = associations(rows)
    missing = pd.DataFrame(rows).isna()
    for pair in [("a", "b"), ("a", "n"), ("b", "n")]:
        one = entry(found, *pair)
        assert one["strength"] < 0.2 and one["p_value"] > 0.001
        np.testing.assert_allclose(one["shared_gaps"], missing[pair[0]].corr(missing[pair[1]]))
    assert np.isnan(entry(found, "a", "c")["shared_gaps"])
    assert entry(associations(rows, missing="value"), "a", "b")["strength"] > 0.5


def test_counts_say_the_same(rows):
    columns = ["a", "b", "c"]
    whole = associations(rows[columns])
    counted = associations(Counts.of(rows[columns][:100]) + Counts.of(rows[columns][100:]))
    for measure in MEASURES:
        np.testing.assert_array_equal(whole.values[measure], counted.values[measure])


def test_odd_tables():
    one = associations({"a": ["x"] * 4, "b": list("pqpq"), "n": [1.0] * 4})
    assert (one.values["strength"] == 0).all() and np.isnan(one.values["p_value"]).all()
    sets = associations({"s": [["a"], ["a", "b"], ["b"]] * 4, "t": list("xyy") * 4})
    assert sets.kinds["s"] == "set" and sets.values["strength"][0] > 0
    assert np.isnan(sets.values["p_value"][0])
    with pytest.raises(ValueError, match="'value' or 'drop'"):
        associations({"a": ["x"]}, missing="guess")
    with pytest.raises(ValueError, match="n_bins of at least 2"):
        associations({"a": ["x"]}, n_bins=1)


def test_text_that_holds_numbers_and_identifiers():
    rng = np.random.default_rng(0)
    team = rng.choice(["red", "blue"], 200)
    pay = np.where(team == "red", 1500.0, 900.0) + rng.normal(0, 100, 200)
    rows = {"id": [f"E{i}" for i in range(200)], "team": team, "pay": [f"${x:,.2f}" for x in pay]}
    found = associations(rows)
    assert found.kinds == {"team": "category", "pay": "number"}
    assert list(found.dropped) == ["id"] and "id" in repr(found)
    assert found.frame().loc[0, "correlation_ratio"] > 0.8
    kept = associations(rows, schema={"id": "nominal"})
    assert kept.names == ["id", "team", "pay"]


def test_the_strongest_pairs_are_printed():
    rows = {"crop": list("aabb") * 9, "soil": list("xxyy") * 9, "luck": list("pqpq") * 9}
    found = associations(rows)
    lines = str(found).splitlines()
    assert lines[0] == repr(found) == "Associations(3 columns, 3 pairs)"
    assert lines[1].startswith("crop × soil  1.00  p = ") and len(lines) == 4
    assert repr(associations({"a": list("xy"), "b": list("xy")})).endswith("1 pair)")


def test_dropped_rows_take_no_part_in_the_correlation_ratio(rows):
    frame = rows[["a", "x"]].copy()
    frame.loc[frame.index % 3 == 0, "x"] += 5
    frame.loc[frame.index % 3 == 0, "a"] = None
    dropped = entry(associations(frame, missing="drop"), "a", "x")
    plain = entry(associations(frame.dropna()), "a", "x")
    for measure in ("correlation_ratio", "statistic", "p_value"):
        np.testing.assert_allclose(dropped[measure], plain[measure])


def test_a_level_in_percent_is_refused():
    found = associations({"a": ["x", "y"] * 9, "b": ["u", "v"] * 9})
    with pytest.raises(ValueError, match="expected level from 0 to 1, got 5"):
        found.frame(level=5)


def test_tables_of_many_columns_are_cut_from_strips(monkeypatch):
    rng = np.random.default_rng(0)
    rows = {f"c{i}": rng.choice(list("abcd"), 50).tolist() for i in range(520)}
    counts = Counts.of(Table.of(rows))
    assert sparse.issparse(counts.pairs)
    pairs = [("c0", "c1"), ("c0", "c519"), ("c7", "c8")]
    for dense in (0, 1 << 30):
        monkeypatch.setattr(module, "MAX_DENSE_CELLS", dense)
        for pair, block in zip(pairs, module.pair_tables(counts, pairs), strict=True):
            assert sparse.issparse(block) == (not dense)
            block = block.toarray() if sparse.issparse(block) else block
            np.testing.assert_array_equal(block, counts.block(*pair))


def test_no_table_is_cut_from_all_pair_counts(monkeypatch):
    rng = np.random.default_rng(0)
    rows = {f"c{i}": rng.choice(list("abc"), 60).tolist() for i in range(6)}
    monkeypatch.setattr(Counts, "block", lambda *a: pytest.fail("a cut costs all values"))
    assert len(associations(rows).frame()) == 15
