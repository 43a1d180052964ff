"""Private counts: their promise, audited; accounting against OpenDP; tables that agree."""

import numpy as np
import pytest
from scipy import optimize, stats

import tabweave
from tabweave import UNTIE, Counts, OneHot, Table, Weave
from tabweave.counts import private
from tabweave.counts.counts import PrivateCounts

dp = pytest.importorskip("opendp.prelude", reason="the extra private is not installed")

PUBLIC = {"a": ["a0", "a1", "a2"], "b": ["b0", "b1"], "c": ["c0", "c1", "c2", "c3"]}


def rows(n=4000, seed=0):
    rng = np.random.default_rng(seed)
    a, b = rng.integers(0, 3, n), rng.integers(0, 2, n)
    c = np.where(rng.random(n) < 0.7, a, rng.integers(0, 4, n))
    return {k: [f"{k}{v}" for v in x] for k, x in {"a": a, "b": b, "c": c}.items()}


@pytest.fixture(scope="module")
def counts():
    return Counts.of(rows())


def test_noisy_tables_are_consistent(counts):
    shared = Counts.of(rows()).private(1.0, values=PUBLIC)
    assert isinstance(shared, PrivateCounts) and shared.names == ["a", "b", "c"]
    assert np.asarray(shared.pairs).min() >= 0
    for a, b in (("a", "b"), ("a", "c"), ("b", "c")):
        for table, margin in ((shared.block(a, b), a), (shared.block(b, a), b)):
            np.testing.assert_allclose(table.sum(1), shared.value_counts[shared.span(margin)])
        np.testing.assert_allclose(shared.block(a, b).sum(), shared.n)
        assert (
            abs(shared.block(a, b) - counts.block(a, b)).max()
            < 12 * shared.ledger.releases[0].scale
        )
    assert not shared.columns_with_gaps


def test_zcdp_is_accounted_for_as_opendp_does():
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T="f64")
    for epsilon, delta in ((1.0, 1e-6), (0.25, 1e-9), (4.0, 1e-5)):
        rho = private.rho_of(epsilon, delta)
        scale = private.noise_scale(28, rho, 1)
        measure = dp.c.make_zCDP_to_approxDP(dp.m.make_gaussian(*space, scale=scale))
        theirs = measure.map(28**0.5).epsilon(delta)
        assert epsilon == pytest.approx(theirs, rel=1e-3)
        assert private.epsilon_of(rho, delta) == pytest.approx(epsilon, rel=1e-6)


def test_a_zcdp_promise_is_above_that_of_its_gaussian():
    """Balle, Wang (2018), Theorem 8: delta of the continuous Gaussian, exactly."""
    for rho in (0.01, 0.1, 1.0):
        mu = np.sqrt(2 * rho)
        for epsilon in (0.3, 1.0, 2.0):
            exact = stats.norm.cdf(mu / 2 - epsilon / mu) - np.exp(epsilon) * stats.norm.cdf(
                -mu / 2 - epsilon / mu
            )
            assert exact <= private.delta_of(rho, epsilon) <= 1


def test_a_row_changes_the_tables_by_what_the_noise_is_made_for():
    """The sensitivity, by brute force: a row moves all tables by the root of their number."""
    table = rows(200)
    labels = [[*PUBLIC[name], None, private.OTHER] for name in "abc"]

    def released(n):
        counts = Counts.of({k: v[:n] for k, v in table.items()})
        pairs = private.folded(counts.pairs, counts.labels, labels)
        spans = private.spans_of(labels)
        alone = [pairs.diagonal()[span] for span in spans]
        both = [pairs[spans[a], spans[b]].ravel() for a, b in ((0, 1), (0, 2), (1, 2))]
        return np.concatenate(alone + both)

    for n in (100, 150, 199):
        assert np.linalg.norm(released(n + 1) - released(n)) == pytest.approx(6**0.5)


def test_the_promise_holds_against_a_membership_attack():
    assert audited(epsilon=1.0) <= 1.0


def test_an_attack_finds_too_little_noise(monkeypatch):
    scale = private.noise_scale
    monkeypatch.setattr("tabweave.counts.counts.noise_scale", lambda *a: scale(*a) / 20)
    assert audited(epsilon=1.0) > 1.0


def audited(epsilon, n_releases=120, delta=1e-3):
    """A lower bound of epsilon, 95 % sure, by guessing whether a row is among those counted."""
    table = {k: v[:50] for k, v in rows().items() if k != "c"}
    present = {k: [*v, "rare"] for k, v in table.items()}
    public = {k: [*PUBLIC[k], "rare"] for k in table}

    def evidence(cells, n):
        counts, out = Counts.of(cells), []
        for _ in range(n):
            shared = counts.private(epsilon, delta, values=public, again=True)
            at = [
                shared.span(i).start + labels.index("rare")
                for i, labels in enumerate(shared.labels)
                if "rare" in labels
            ]
            out.append(np.asarray(shared.pairs)[np.ix_(at, at)].sum())
        return np.array(out)

    inside, outside = evidence(present, n_releases), evidence(table, n_releases)
    half = n_releases // 2
    cut = max(
        np.unique(np.concatenate([inside[:half], outside[:half]])),
        key=lambda c: (inside[:half] >= c).mean() - (outside[:half] >= c).mean(),
    )
    true = stats.binomtest(int((inside[half:] >= cut).sum()), half).proportion_ci(0.95).low
    false = stats.binomtest(int((outside[half:] >= cut).sum()), half).proportion_ci(0.95).high
    return np.log(max(true - delta, 1e-9) / false)


def test_values_without_a_list_are_told_above_a_threshold():
    cells = rows()
    cells["b"] = ["secret", *cells["b"][1:]]
    shared = Counts.of(cells).private(1.0)
    release = shared.ledger.releases[0]
    assert release.threshold > 1 and shared.labels[1] == ("b0", "b1")
    assert not any("secret" in map(str, labels) for labels in shared.labels)
    tail = 3 * stats.norm.sf(release.threshold - 2, scale=release.scale)
    assert tail <= 1e-6 / 2 * 1.0001


def test_what_is_on_no_list_is_other():
    cells = rows()
    shared = Counts.of(cells).private(3.0, values=PUBLIC | {"c": ["c0", "c1"]})
    others = sum(v in ("c2", "c3") for v in cells["c"])
    assert shared.labels[2] == ("(other)", "c0", "c1")
    assert shared.value_counts[shared.span("c")][0] == pytest.approx(others, abs=100)


def test_the_schema_tells_nothing_of_the_rows():
    cells = {"age": ["18-24", "25-64", "65+", "25-64"] * 500, "b": ["x", "y"] * 1000}
    cells["age"][0] = "unheard of"
    levels = ("18-24", "25-64", "65+", "unheard of")
    age = tabweave.Column("age", "ordinal", levels=levels)
    raw = Counts.of(Table.of(cells, {"age": age}))
    shared = raw.private(1.0, values={"age": ["18-24", "25-64", "65+"]})
    assert shared.schema["age"].levels == ("18-24", "25-64", "65+", "(other)")
    assert shared.schema["b"].origin == tabweave.Column("b").origin and not shared.schema.dropped


def test_the_ledger_stays_with_counts_and_models(counts, tmp_path):
    shared = Counts.of(rows()).private(0.5, values=PUBLIC)
    shared.save(tmp_path / "counts")
    loaded = Counts.load(tmp_path / "counts")
    assert loaded.ledger == shared.ledger and loaded == shared
    model = Weave().fit_counts(shared)
    model.save(tmp_path / "model")
    assert tabweave.load(tmp_path / "model").counts_.ledger == shared.ledger
    assert shared.select(["c", "a"]).ledger == shared.ledger
    both = shared + Counts.of(rows(seed=1)).private(0.5, values=PUBLIC)
    assert len(both.ledger.releases) == 2 and 0.5 < both.ledger.epsilon < 1.0
    assert (shared + Counts()).ledger == (Counts() + shared).ledger == shared.ledger


def test_private_counts_are_not_spent_twice_unnoticed(counts):
    raw = Counts.of(rows())
    first = raw.private(1.0, values=PUBLIC)
    with pytest.raises(ValueError, match="again=True"):
        raw.private(1.0, values=PUBLIC)
    second = raw.private(1.0, values=PUBLIC, again=True)
    assert first.ledger.epsilon == 1.0 and 1.3 < second.ledger.epsilon < 2.0
    with pytest.raises(ValueError, match="private already"):
        first.private(1.0)
    for wrong in (lambda: first - first, lambda: raw - first, lambda: first - raw):
        with pytest.raises(ValueError, match="cannot be subtracted"):
            wrong()
    for wrong in (lambda: first + raw, lambda: raw + first):
        with pytest.raises(ValueError, match="counts of rows"):
            wrong()


@pytest.mark.parametrize(
    ("cells", "options", "message"),
    [
        ({"n": [1.5, 2.5, 3.25] * 9}, {}, r"column 'n'.*public_bins"),
        ({"s": [["x", "y"], ["x"]] * 9}, {}, "column 's'.*yes and no"),
        ({"a": ["x", "y"] * 9}, {"values": {"z": ["x"]}}, r"expected columns of \['a'\]"),
        ({"a": ["x", "y"] * 9}, {"epsilon": 0}, "epsilon > 0"),
        ({"a": ["x", "y"] * 9}, {"delta": 1}, "delta < 1"),
        ({"a": ["x", "y"] * 9}, {"max_weight": 0.5}, "whole weights"),
    ],
)
def test_what_cannot_be_private_is_refused(cells, options, message):
    with pytest.raises(ValueError, match=message):
        Counts.of(cells).private(**{"epsilon": 1.0} | options)


def test_numbers_in_public_bins():
    cells = {"age": [*range(100), None], "sex": ["m", "f"] * 50 + ["f"]}
    table = tabweave.public_bins(cells, {"age": [18, 65]})
    assert table.schema["age"].levels == ("< 18", "18 to 65", ">= 65")
    assert Counts.of(table).value_counts.tolist() == [18, 47, 35, 1, 51, 50]
    shared = Counts.of(table).private(5.0, 1e-3)
    assert shared.names == ["age", "sex"]
    with pytest.raises(ValueError, match=r"numeric columns \['age'\]"):
        tabweave.public_bins(cells, {"sex": [1]})
    with pytest.raises(ValueError, match="rising"):
        tabweave.public_bins(cells, {"age": [3, 1]})


def test_classes_and_weights():
    cells = rows()
    y = [("u", "v")[len(a) % 2 ^ (b == "b1")] for a, b in zip(cells["a"], cells["b"], strict=True)]
    counts = Counts.of(cells, y, sample_weight=np.full(len(y), 2))
    shared = counts.private(1.0, values=PUBLIC, classes=["u", "v"], max_weight=2)
    assert shared.classes == ("u", "v")
    np.testing.assert_allclose(shared.class_pairs, counts.class_pairs, atol=600)
    np.testing.assert_allclose(shared.class_n.sum(), shared.n)
    once = Counts.of(cells).private(1.0, values=PUBLIC)
    assert shared.ledger.releases[0].scale > 2 * once.ledger.releases[0].scale


@pytest.mark.parametrize("make", [Weave, OneHot, UNTIE])
def test_what_learns_from_counts_learns_from_private_ones(make, counts):
    shared = Counts.of(rows()).private(2.0, values=PUBLIC)
    cells = {k: v[:60] for k, v in rows(seed=3).items()}
    exact, noisy = (make().fit_counts(c).pairwise_distances(cells) for c in (counts, shared))
    assert np.corrcoef(exact.ravel(), noisy.ravel())[0, 1] > 0.98


def test_the_nearest_rows_without_negative_entries():
    rng = np.random.default_rng(0)
    for _ in range(20):
        row, total = rng.normal(size=5), rng.random() * 3
        ours = private.on_simplex(row[None], np.array([total]))[0]
        theirs = optimize.minimize(
            lambda x, row=row: ((x - row) ** 2).sum(),
            np.full(5, total / 5),
            bounds=[(0, None)] * 5,
            constraints={"type": "eq", "fun": lambda x, total=total: x.sum() - total},
        ).x
        np.testing.assert_allclose(ours, theirs, atol=2e-3)
        assert ours.sum() == pytest.approx(total)


def test_large_tables_are_refused(monkeypatch):
    monkeypatch.setattr(private, "MAX_CELLS", 10)
    with pytest.raises(ValueError, match="at most 10 cells"):
        Counts.of(Table.of(rows())).private(1.0, values=PUBLIC)
