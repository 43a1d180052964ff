"""Drift reports: exact tests, false alarms at their level, changed columns first."""

import tracemalloc
import types
from itertools import product

import numpy as np
import pytest
from scipy import stats

from tabweave import Counts, Table
from tabweave.plots import drift as draw
from tabweave.tasks.associations import bergsma
from tabweave.tasks.drift import (
    chi_square,
    drift_report,
    homogeneity,
    kolmogorov_smirnov,
    mean_of_largest,
)


def sample(rng, n=400, columns=12, changed=()):
    """Columns in pairs that depend on each other; a changed one gets other shares."""
    out = {}
    for j in range(columns):
        values = 3 + j % 5
        p = np.arange(1, values + 1) / np.arange(1, values + 1).sum()
        x = rng.choice(values, n, p=p[::-1] if j in changed else p)
        if j % 2 and j not in changed:
            x = np.where(rng.random(n) < 0.5, out[f"c{j - 1}"] % values, x)
        out[f"c{j}"] = x
    return out


def counts(columns):
    return Counts.of(Table.of(columns, numbers="nominal"))


# -- the test -----------------------------------------------------------------------------------


def test_moments_are_those_of_all_tables():
    pooled, n_after = np.array([3, 2, 1]), 3
    tables, weights = [], []
    for drawn in product(*(range(c + 1) for c in pooled)):
        if sum(drawn) == n_after:
            tables.append([pooled - drawn, drawn])
            law = stats.multivariate_hypergeom(pooled, n_after)
            weights.append(law.pmf(drawn))
    owner = np.repeat(np.arange(len(tables)), len(pooled))
    statistic, mean, variance = homogeneity(np.hstack(tables), owner, len(tables))
    weights = np.array(weights)
    assert mean[0] == pytest.approx(weights @ statistic)
    assert variance[0] == pytest.approx(weights @ statistic**2 - mean[0] ** 2)


def test_statistic_is_pearsons():
    table = np.array([[10, 20, 5], [15, 10, 9]])
    expected = stats.chi2_contingency(table, correction=False)
    found, p, _ = chi_square(table, 20_000, np.random.default_rng(0))
    assert found == pytest.approx(expected.statistic)
    assert p == pytest.approx(expected.pvalue, abs=0.01)


def test_p_values_are_exact_where_chi_square_is_not():
    """Half the values occur once: the asymptotic test would cry wolf, this one may not."""
    rng = np.random.default_rng(0)
    alarms = 0
    for _ in range(200):
        x = rng.integers(120, size=100)
        table = np.array([np.bincount(part, minlength=120) for part in (x[:50], x[50:])])
        alarms += chi_square(table, 99, rng)[1] <= 0.05
    assert alarms <= stats.binom.ppf(0.999, 200, 0.05)


def test_what_shows_no_change_takes_few_samples():
    """P-values stay exact [Besag and Clifford 1991], and memory does not grow with the samples."""
    rng, calls = np.random.default_rng(0), []

    class Spy:
        def multivariate_hypergeometric(self, pooled, n, size, method):
            calls.append(size)
            return rng.multivariate_hypergeometric(pooled, n, size=size, method=method)

    ps = []
    for _ in range(300):
        table = rng.multinomial(100, np.full(5, 0.2), size=2)
        ps.append(chi_square(table, 100_000, Spy())[1])
    assert max(calls) <= 1000 and np.mean(calls) * len(calls) / 300 < 5000
    for level in (0.01, 0.05, 0.2, 0.5):
        assert np.mean(np.array(ps) <= level) <= stats.binom.ppf(0.999, 300, level) / 300
    assert stats.kstest(ps, "uniform").pvalue > 0.001


def test_a_set_of_many_elements_can_change():
    rng = np.random.default_rng(0)
    names = np.array([f"e{i}" for i in range(400)])
    before, after = ([set(rng.choice(names, 5)) for _ in range(300)] for _ in range(2))
    assert not drift_report({"s": before}, {"s": after}).changed
    for cell in after[:60]:
        cell.add("e7")
    found = drift_report({"s": before}, {"s": after})
    assert found.changed == ["s"] and found.columns[0].values[0] == "e7"


def test_parameters_are_checked():
    rows = {"a": ["x", "y"] * 20}
    for wrong in (0, -3, 1.5):
        with pytest.raises(ValueError, match="expected n_draws of at least 1"):
            drift_report(rows, rows, n_draws=wrong)
    with pytest.raises(ValueError, match="expected level between 0 and 1, got 'high'"):
        drift_report(rows, rows, level="high")


def test_pairs_are_counted_for_couplings_only(monkeypatch):
    rows, met = {"a": ["x", "y"] * 20, "b": ["u", "v"] * 20}, []
    of = Counts.of.__func__
    monkeypatch.setattr(Counts, "of", classmethod(lambda cls, t: met.append(t) or of(cls, t)))
    alone = drift_report(rows, {**rows, "a": ["x"] * 40}, couplings=False)
    assert not any(table.schema.coupled for table in met)
    assert alone.columns == drift_report(rows, {**rows, "a": ["x"] * 40}).columns


# -- the report ---------------------------------------------------------------------------------


def test_changed_columns_come_first():
    hits = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        changed = set(rng.choice(12, 2, replace=False).tolist())
        before, after = counts(sample(rng)), counts(sample(rng, changed=changed))
        report = drift_report(before, after, couplings=False, n_draws=999)
        hits += {f.name for f in report.columns[:2]} == {f"c{j}" for j in changed}
    assert hits >= 95


def test_false_alarms_stay_at_the_level():
    columns = couplings = 0
    for seed in range(100):
        rng = np.random.default_rng(1000 + seed)
        report = drift_report(
            counts(sample(rng, columns=6)), counts(sample(rng, columns=6)), n_draws=1999
        )
        columns += bool(report.changed)
        couplings += bool(report.changed_couplings)
    most = stats.binom.ppf(0.999, 100, 0.05)
    assert columns <= most and couplings <= most


def test_a_coupling_that_breaks_is_found():
    rng = np.random.default_rng(0)
    before, after = sample(rng, columns=6), sample(rng, columns=6)
    rng.shuffle(after["c3"])  # the same shares, no longer tied to c2
    report = drift_report(counts(before), counts(after))
    assert report.couplings[0].name == "c2 × c3"
    assert report.changed_couplings == ["c2 × c3"] and not report.changed


def test_new_and_vanished_values_and_column_order():
    before = counts({"a": ["x"] * 50 + ["y"] * 50, "b": ["u"] * 100})
    after = counts({"b": ["u"] * 60, "a": ["x"] * 30 + ["z"] * 30})
    report = drift_report(before, after)
    assert report.changed == ["a"]
    assert set(report.columns[0].values) <= {"x", "y", "z"}
    assert report.columns[1].p_value == 1.0


def test_numbers_and_sets():
    rng = np.random.default_rng(0)
    kinds = {"x": "numeric", "s": "set"}

    def table(shift, p):
        sets = [[v for v in "pqr" if rng.random() < p] or ["none"] for _ in range(200)]
        return Counts.of(Table.of({"x": rng.normal(shift, 1, 200), "s": sets}, kinds))

    same = drift_report(table(0, 0.5), table(0, 0.5))
    assert not same.changed
    assert set(drift_report(table(0, 0.5), table(1, 0.9)).changed) == {"x", "s"}


def numbers(rng, n=300, scale=1.0, gaps=0.0):
    x = rng.normal(0, scale, n)
    x[rng.random(n) < gaps] = np.nan
    return {"x": x, "y": rng.normal(size=n)}


def test_a_spread_that_grows_is_found_at_the_same_mean():
    rng = np.random.default_rng(0)
    report = drift_report(numbers(rng), numbers(rng, scale=3))
    assert report.changed == ["x"]
    found = report.columns[0]
    assert found.sizes["KS"] == pytest.approx(found.statistic)
    shown = {what: (before, after) for what, before, after in found.comparison}
    assert shown["standard deviation"] == pytest.approx((1, 3), rel=0.15)


@pytest.mark.parametrize("read", [Table.of, lambda rows: Counts.of(Table.of(rows))])
def test_gaps_that_appear_are_found(read):
    rng = np.random.default_rng(0)
    report = drift_report(*(read(numbers(rng, gaps=gaps)) for gaps in (0, 0.4)))
    assert report.changed == ["x"]
    assert next(iter(report.columns[0].sizes)) == "gaps"
    assert report.columns[0].size == pytest.approx(0.4, abs=0.08)


def test_numbers_that_stay_are_not_named():
    alarms = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        pair = (numbers(rng, n=80, gaps=0.2) for _ in range(2))
        alarms += bool(drift_report(*pair).changed)
    assert alarms <= stats.binom.ppf(0.999, 100, 0.05)


def test_the_distance_of_distributions_is_kolmogorovs():
    rng = np.random.default_rng(0)
    x, y = rng.integers(9, size=50), rng.integers(1, 11, size=70)
    times = np.array([np.bincount(z, minlength=11) for z in (x, y)])
    p_value, _, statistic = kolmogorov_smirnov(np.arange(11), times)
    expected = stats.ks_2samp(x, y)
    assert (p_value, statistic) == pytest.approx((expected.pvalue, expected.statistic))
    assert kolmogorov_smirnov(np.arange(11), times * [[1], [0]]) == (1, 0, 0)


def test_large_samples_of_numbers_and_a_column_that_vanishes():
    rng = np.random.default_rng(0)
    before = numbers(rng, n=3000)
    after = numbers(rng, n=2500, scale=1.3)
    after["y"][:] = np.nan
    assert set(drift_report(before, after).changed) == {"x", "y"}


def test_effect_sizes_are_those_of_the_field():
    before, after = {"a": ["p"] * 60 + ["q"] * 40}, {"a": ["p"] * 30 + ["q"] * 70}
    sizes = drift_report(before, after).columns[0].sizes
    table = np.array([[60, 40], [30, 70]])
    chi2 = stats.chi2_contingency(table, correction=False).statistic
    assert sizes["Cramér's V"] == pytest.approx(bergsma(chi2, 200, 2, 2))
    p, q = (table + 0.5) / 101
    assert sizes["PSI"] == pytest.approx(((q - p) * np.log(q / p)).sum())


@pytest.mark.parametrize("n_values", [12, 300, 900, 5000])
def test_random_halves_of_any_number_of_values_hardly_differ(n_values):
    """Without the correction, V is .1 to .9: the more values there are, the more."""
    rng = np.random.default_rng(n_values)
    sizes, raw = [], []
    for _ in range(60):
        before, after = rng.integers(0, n_values, (2, 500))
        found = drift_report(
            counts({"a": before}), counts({"a": after}), n_draws=99, couplings=False
        ).columns[0]
        table = np.stack([np.bincount(x, minlength=n_values) for x in (before, after)])
        table = table[:, table.any(axis=0)]
        chi2 = stats.chi2_contingency(table, correction=False).statistic
        assert found.size == pytest.approx(bergsma(chi2, 1000, *table.shape), abs=1e-7)
        sizes.append(found.size)
        raw.append(np.sqrt(chi2 / 1000))
    assert np.mean(sizes) < 0.1 and np.mean(raw) > min(0.09, n_values / 1000)
    assert n_values < 900 or np.mean(raw) > 0.6


def test_random_halves_of_sets_and_couplings_hardly_differ():
    rng = np.random.default_rng(0)
    sets, pairs = [], []
    for _ in range(20):
        both = []
        for _ in range(2):
            tags = [sorted(set(rng.integers(0, 60, 3).tolist())) for _ in range(200)]
            a, b = rng.integers(0, 30, (2, 200))
            kinds = {"s": "set", "a": "nominal", "b": "nominal"}
            both.append(Counts.of(Table.of({"s": tags, "a": a, "b": b}, kinds)))
        report = drift_report(*both, n_draws=99)
        sets += [f.size for f in report.columns if f.name == "s"]
        pairs += [f.size for f in report.couplings]
    assert np.mean(sets) < 0.06 and np.mean(pairs) < 0.1


def test_the_mean_of_the_largest_chi_square():
    drawn = np.random.default_rng(0).chisquare(1, (20_000, 30))
    for n in (1, 2, 30):
        assert mean_of_largest(n) == pytest.approx(drawn[:, :n].max(axis=1).mean(), rel=0.03)


def test_couplings_of_many_strings_take_little_memory():
    """A table of all pairs of 12,000 values would take 1.2 GB."""
    rng = np.random.default_rng(0)
    whole = {name: [f"{name}{x}" for x in rng.permutation(15_000) % 12_000] for name in "ab"}
    kinds = {"a": "nominal", "b": "nominal"}
    before, after = (
        Counts.of(Table.of({name: x[own] for name, x in whole.items()}, kinds))
        for own in (slice(7000), slice(7000, None))
    )
    tracemalloc.start()
    report = drift_report(before, after, n_draws=1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100e6 and len(report.couplings) == 1 and report.couplings[0].size < 0.1


@pytest.mark.parametrize("dense", [0, 1 << 22])
def test_couplings_are_stratified_chi_squares(dense, monkeypatch):
    """Against a sum of scipy's chi-squares, stratum by stratum."""
    monkeypatch.setattr("tabweave.tasks.associations.MAX_DENSE_CELLS", dense)
    rng = np.random.default_rng(0)
    n_values = {"a": 20, "b": 2100}  # pair counts of so many are sparse
    before, after = (
        {name: rng.integers(0, n, 900) for name, n in n_values.items()} for _ in range(2)
    )
    after["a"][:200] = 3
    found = drift_report(counts(before), counts(after), n_draws=9).couplings[0]
    sums = []
    for strata, values in (("a", "b"), ("b", "a")):
        total = 0.0
        for v in np.union1d(before[strata], after[strata]):
            sides = [x[values][x[strata] == v] for x in (before, after)]
            table = np.stack([np.bincount(s, minlength=n_values[values]) for s in sides])
            table = table[:, table.any(axis=0)]
            if table.sum() > 3 and table.shape[1] > 1 and table.any(axis=1).all():
                total += stats.chi2_contingency(table, correction=False).statistic
        sums.append(total)
    assert min(abs(found.statistic / total - 1) for total in sums) < 1e-9
    moved = found.comparison[0]
    a, b = (int(x) for x in moved[0].split(" & "))
    for rows, share in zip((before, after), moved[1:], strict=True):
        assert share == pytest.approx(np.mean((rows["a"] == a) & (rows["b"] == b)))


def test_gaps_are_a_bin_of_the_stability_index():
    rng = np.random.default_rng(0)
    before, after = rng.normal(size=200), rng.normal(1, 1, 300)
    before[:20] = after[:90] = np.nan
    sizes = drift_report({"x": before}, {"x": after}).columns[0].sizes
    edges = np.r_[-np.inf, np.quantile(before[20:], np.arange(1, 10) / 10), np.inf]
    table = [[*np.histogram(x, edges)[0], np.isnan(x).sum()] for x in (before, after)]
    p, q = (np.array(own) + 0.5 for own in table)
    p, q = p / p.sum(), q / q.sum()
    assert sizes["PSI"] == pytest.approx(((q - p) * np.log(q / p)).sum())
    assert sizes["gaps"] == pytest.approx(0.2)


def test_the_effect_is_counted_in_deviations_also_where_they_are_small():
    """Of one rare row among ten, three of them before: it is there, or it is not."""
    before, after = {"a": ["p"] * 2 + ["q"]}, {"a": ["p"] * 7}
    found = drift_report(before, after).columns[0]
    sizes = np.array(
        [stats.chi2_contingency([[3 - k, k], [6 + k, 1 - k]], False)[0] for k in (0, 1)]
    )
    mean = np.array([0.7, 0.3]) @ sizes
    deviation = np.sqrt(np.array([0.7, 0.3]) @ (sizes - mean) ** 2)
    assert found.effect == pytest.approx((sizes[1] - mean) / deviation)


def test_a_certain_but_small_change_can_be_left_out():
    before, after = ({"a": ["p"] * k + ["q"] * (20_000 - k)} for k in (10_000, 10_400))
    assert drift_report(before, after).changed == ["a"]
    assert drift_report(before, after, min_size=0.1).changed == []
    with pytest.raises(ValueError, match="min_size"):
        drift_report(before, after, min_size=-1)


def test_every_kind_shows_before_and_after():
    rng = np.random.default_rng(0)
    kinds = {"x": "numeric", "s": "set", "a": "nominal", "b": "nominal"}

    def rows(p):
        a = rng.choice(["u", "v"], 200, p=[p, 1 - p])
        sets = [["k"] if rng.random() < p else ["l"] for _ in range(200)]
        return Table.of({"x": rng.normal(p, 1, 200), "s": sets, "a": a, "b": a}, kinds)

    report = drift_report(rows(0.2), rows(0.7))
    assert all(f.comparison and f.sizes for f in (*report.columns, *report.couplings))
    shown = {f.name: f.comparison[0] for f in (*report.columns, *report.couplings)}
    assert shown["a"][1:] == pytest.approx((0.2, 0.7), abs=0.1)
    assert shown["a × b"][0] in {"u & u", "v & v"}


def test_decayed_counts_are_compared_too():
    rng = np.random.default_rng(0)
    before = counts(sample(rng)).scaled(0.5)
    report = drift_report(before, counts(sample(rng, changed={4})), couplings=False)
    assert report.changed == ["c4"]


def test_same_seed_same_report_and_it_prints():
    rng = np.random.default_rng(0)
    pair = counts(sample(rng)), counts(sample(rng, changed={1}))
    assert drift_report(*pair) == drift_report(*pair)
    assert "c1" in str(drift_report(*pair)).splitlines()[1]


def test_adjusted_values_are_holms():
    rng = np.random.default_rng(0)
    report = drift_report(counts(sample(rng)), counts(sample(rng)), couplings=False)
    p = [f.p_value for f in report.columns]
    expected = np.minimum(np.maximum.accumulate([q * (12 - i) for i, q in enumerate(p)]), 1)
    np.testing.assert_allclose([f.adjusted for f in report.columns], expected)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: Counts(), "empty"),
        (lambda c: counts({"other": [1, 2]}), r"share columns, got \['c0', .*\['other'\]"),
        (lambda c: Counts.of({"c0": [1.5, 2]}), "column 'c0' is nominal in one and numeric in"),
    ],
)
def test_bad_input(change, message):
    before = counts(sample(np.random.default_rng(0)))
    with pytest.raises(ValueError, match=message):
        drift_report(before, change(before))
    with pytest.raises(ValueError, match="level"):
        drift_report(before, before, level=2)


def test_plot_marks_what_changed():
    rng = np.random.default_rng(0)
    report = drift_report(counts(sample(rng)), counts(sample(rng, changed={4})))
    ax = draw(report, n_couplings=3)
    assert ax.get_yticklabels()[0].get_text() == "c4"
    assert len(ax.patches) == 15
    assert ax.patches[0].get_facecolor()[0] < 0.5 < ax.patches[11].get_facecolor()[0]


def test_columns_are_compared_for_what_they_are():
    """Money, dates and times in text were values that never come again: nothing was found."""
    rng = np.random.default_rng(0)

    def window(spread, hours, start):
        days = np.datetime64("2024-03-01") + rng.integers(0, 60, 300)
        return {
            "price": [f"${x:,.2f}" for x in 500 + rng.normal(0, spread, 300)],
            "day": days.astype(str).tolist(),
            "at": [f"{h:02}:{m:02}" for h, m in rng.integers((0, 0), (hours, 60), (300, 2))],
            "ticket": [f"T{i:05}" for i in range(start, start + 300)],
            "kind": ["x"] * 300,
        }

    before, same, other = window(9, 24, 0), window(9, 24, 300), window(30, 12, 600)
    other["kind"] = ["x"] * 200 + ["y"] * 100
    assert drift_report(before, same).changed == []
    found = drift_report(before, other)
    assert set(found.changed) == {"price", "at", "kind"}
    assert {f.name: next(iter(f.sizes)) for f in found.columns} == {
        "price": "KS", "at": "KS", "day": "KS", "kind": "Cramér's V"
    }  # fmt: skip
    assert list(found.dropped) == ["ticket"] and "dropped: ticket" in str(found)


def test_scipy_is_not_heard_where_its_exact_test_overflows():
    """99 rows of 0 and 1 on each side; warnings are errors here."""
    times = np.array([[99 - ones, ones] for ones in (56, 54)])
    p_value, _, statistic = kolmogorov_smirnov(np.array([0.0, 1.0]), times)
    assert 0.99 < p_value <= 1 and statistic == pytest.approx(2 / 99)


@pytest.mark.parametrize(
    "read", [lambda rows: rows, Table.of, lambda rows: Counts.of(Table.of(rows))]
)
def test_columns_that_both_have_are_compared_and_the_others_are_named(read):
    rng = np.random.default_rng(0)
    before = {"a": rng.choice(["x", "y"], 300), "b": rng.normal(size=300), "old": ["k", "l"] * 150}
    after = {"new": ["m"] * 300, "b": rng.normal(size=300), "a": ["x"] * 300}
    found = drift_report(read(before), read(after))
    assert found.changed == ["a"] and {f.name for f in found.columns} == {"a", "b"}
    assert (found.gone, found.new) == (("old",), ("new",))
    assert str(found).endswith("gone: old\nnew: new")
    alone = [drift_report(read({k: t[k] for k in "ab"}), read(after)) for t in (before,)]
    assert alone[0].columns == found.columns
    with pytest.raises(ValueError, match=r"share columns, got \['old'\] and \['new', 'b', 'a'\]"):
        drift_report(read({"old": before["old"]}), read(after))


def test_arrays_are_compared_by_position():
    rows = np.random.default_rng(0).normal(size=(200, 2))
    found = drift_report(rows, rows + np.array([0, 9]))
    assert found.changed == ["x1"] and found.gone == found.new == ()


def test_a_column_that_is_an_identifier_on_one_side_only_is_neither_new_nor_gone():
    keys = {"a": ["x", "y"] * 50, "key": [f"k{i}" for i in range(100)]}
    after = Table.of({**keys, "key": ["k1", "k2"] * 50}, rules="whole")
    found = drift_report(Table.of(keys, rules="whole"), after)
    assert [f.name for f in found.columns] == ["a"] and found.gone == found.new == ()


class TestKinds:
    before = types.MappingProxyType({"x": [1.5, 2.5, 4.0, 3.5] * 10, "g": ["u", "v"] * 20})

    def test_words_in_place_of_numbers_are_a_change(self):
        found = drift_report(self.before, {**self.before, "x": ["low", "high"] * 20})
        assert found.changed == ["x"] and [f.name for f in found.columns] == ["g"]
        assert found.kinds == {"x": "numeric before, nominal after (values such as 'low')"}
        assert "x: numeric before, nominal after (values such as 'low') *" in str(found)

    def test_a_cell_is_named_whole_whatever_it_holds(self):
        found = drift_report(self.before, {**self.before, "x": ["low; got it", "high"] * 20})
        assert found.kinds["x"].endswith("nominal after (values such as 'low; got it')")

    def test_one_word_among_numbers_is_missing_and_named(self):
        after = {**self.before, "x": [*map(str, range(39)), "call us"]}
        with pytest.warns(UserWarning, match="column 'x': expected numbers, got 'call us'"):
            found = drift_report(self.before, after)
        assert found.kinds == {}

    def test_what_keeps_numbers_from_being_read_is_named(self):
        after = {**self.before, "x": [*map(str, range(39)), "3 or 4"]}
        found = drift_report(self.before, after)
        assert found.kinds["x"].endswith("nominal after (numbers, except '3 or 4')")

    def test_dates_in_another_order_are_a_change_and_no_error(self):
        before = {**self.before, "t": [f"2024-{1 + i % 12:02}-{1 + i % 28:02}" for i in range(40)]}
        after = {**self.before, "t": [f"{1 + i % 28:02}.{1 + i % 12:02}.2024" for i in range(40)]}
        found = drift_report(before, after)
        assert found.changed == ["t"]
        assert found.kinds["t"].startswith("datetime before, datetime after, but written in anoth")

    def test_columns_all_of_which_are_of_another_kind(self):
        found = drift_report({"x": self.before["x"]}, {"x": ["low", "high"] * 20})
        assert found.changed == ["x"] and found.columns == found.couplings == ()

    @pytest.mark.parametrize("read", [Table.of, lambda rows: Counts.of(Table.of(rows))])
    def test_tables(self, read):
        after = Table.of({**self.before, "x": ["low", "high"] * 20})
        found = drift_report(read(self.before), after)
        assert found.kinds == {"x": "numeric before, nominal after"}

    def test_decimal_commas_in_place_of_points(self):
        after = {**self.before, "x": ["1,5", "2,5", "3,25", "7,5"] * 10}
        found = drift_report(self.before, after)
        assert found.kinds == {"x": "numeric before, numeric after, but with decimal commas now"}

    @pytest.mark.parametrize(
        ("before", "after", "why"),
        [("{} km", "{} mi", "numbers in mi"), ("{}", "{} km", "numbers in km"),
         ("${}.50", "{} km", "numbers in km"), ("{}", "${}.50", "money"),
         ("{}", "{}h 5m", "durations")],
    )  # fmt: skip
    def test_another_unit_is_a_change_and_no_error(self, before, after, why):
        numbers = [i * i for i in range(1, 41)]
        rows = [{"x": list(map(way.format, numbers))} for way in (before, after)]
        found = drift_report({"x": numbers} if before == "{}" else rows[0], rows[1])
        assert found.changed == ["x"] and found.kinds == {
            "x": f"numeric before, numeric after, but written in another way ({why} written as "
            "text)"
        }

    def test_what_cannot_be_read_at_all_is_an_error(self):
        with pytest.raises(ValueError, match="column 'x': row 0 holds inf"):
            drift_report(self.before, {**self.before, "x": [np.inf] * 40})
        dated = {"t": np.array(["2024-01-01", "2024-01-02"] * 20, "M8[D]")}
        zoned = {"t": ["2024-01-01T00:00Z", "2024-01-02T00:00Z"] * 20}
        with pytest.raises(ValueError, match="expected datetimes without a time zone"):
            drift_report(dated, zoned)

    def test_arrays_of_other_widths(self):
        with pytest.raises(ValueError, match="expected 2 columns, as before, got 3"):
            drift_report(np.zeros((30, 2)), np.zeros((30, 3)))


def test_no_rows_are_an_error():
    rows = {"color": ["red", "blue"] * 20}
    for before, after, when in (({"color": []}, rows, "before"), (rows, {"color": []}, "after")):
        with pytest.raises(ValueError, match=f"expected rows to compare, got none {when}"):
            drift_report(before, after)


def test_sets_that_are_all_empty_have_not_changed():
    day = {"tags": [[], [], []], "a": ["x", "y", "x"]}
    report = drift_report(day, day)
    assert report.changed == []
    assert {f.name: f.p_value for f in report.columns}["tags"] == 1.0


def test_as_many_rows_as_the_simulation_takes_not():
    table = np.array([[5 * 10**8, 10], [5 * 10**8 - 20, 10]])
    assert table.sum() == 10**9
    assert 0.5 < chi_square(table, 9, np.random.default_rng(0))[1] <= 1


@pytest.mark.parametrize("size", [300, 5000])
def test_counts_show_the_drift_of_numbers_that_tables_show(size):
    """A spread three times as large has the same mean, which was all that counts were asked."""
    rng = np.random.default_rng(0)
    same, wide, again = ({"x": rng.normal(0, scale, size)} for scale in (1, 3, 1))
    wide["x"][::10] = np.nan
    for after in (wide, again):
        table = drift_report(same, after)
        for sides in ((Counts.of(same), Counts.of(after)), (same, Counts.of(after))):
            found = drift_report(*sides)
            assert found.changed == table.changed == (["x"] if after is wide else [])
            one, other = found.columns[0], table.columns[0]
            assert list(one.sizes) == list(other.sizes)
            for name, value in other.sizes.items():
                assert one.sizes[name] == pytest.approx(value, abs=0.005)
            assert one.p_value == pytest.approx(other.p_value, rel=0.1)
            assert one.comparison == other.comparison
