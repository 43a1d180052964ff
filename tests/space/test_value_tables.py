"""Value tables against features, Grams and rows written out by hand."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

from tabweave import Counts, Table, ValueMetric, ValueTables
from tabweave.columns.spelling import Spelling
from tabweave.columns.table import take_rows
from tabweave.counts.couplings import Factors
from tabweave.space.space import VectorSpace
from tabweave.space.value_tables import along_values, code_words, compacted, gram_factor

seeds = st.integers(0, 2**32 - 1)


def world(seed, n=12, columns=3, sizes=(1, 6), wide=9):
    """Return (rows as codes, table, counts, wide features of the values that occur)."""
    rng = np.random.default_rng(seed)
    codes = np.stack([rng.integers(0, rng.integers(*sizes), n) for _ in range(columns)], axis=1)
    table = Table.of(codes, numbers="nominal")
    counts = Counts.of(table)
    features = [rng.normal(size=(len(labels), wide)) for labels in counts.labels]
    return codes, table, counts, features


def vectors(codes, counts, features):
    """Look rows up by hand: for each column, the feature row of each label."""
    return [
        np.array([feature[labels.index(int(code))] for code in codes[:, a]])
        for a, (labels, feature) in enumerate(zip(counts.labels, features, strict=True))
    ]


class TestCompaction:
    @settings(max_examples=40)
    @given(seeds)
    def test_keeps_every_distance(self, seed):
        codes, table, counts, features = world(seed)
        compact = ValueTables.from_features(features, counts)
        expected = cdist(*[np.hstack(vectors(codes, counts, features))] * 2)
        scale = max(expected.max(), 1e-300)
        assert np.abs(compact.distances(table) - expected).max() <= 1e-9 * scale
        gathered = compact.gather(table)
        assert np.abs(cdist(gathered, gathered) - expected).max() <= 1e-9 * scale
        assert compact.width <= (counts.sizes - 1).sum()

    @given(seeds, st.floats(1e-100, 1e100))
    @settings(max_examples=30)
    def test_at_any_scale(self, seed, scale):
        rng = np.random.default_rng(seed)
        features = rng.normal(size=(5, 40)) * scale + 3 * scale
        out = compacted(features)
        assert out.shape[1] <= 4
        np.testing.assert_allclose(cdist(out, out), cdist(features, features), rtol=1e-9)

    def test_drops_dimensions_that_carry_nothing(self):
        features = np.outer([0.0, 1.0, 5.0, 2.0], [1.0, 2.0, 3.0])
        assert compacted(features).shape == (4, 1)
        assert compacted(np.ones((4, 3))).shape == (4, 0)
        assert compacted(np.zeros((1, 3))).shape == (1, 0)
        assert compacted(np.zeros((3, 0))).shape == (3, 0)
        assert compacted(np.zeros((0, 2))).shape == (0, 0)


class TestAlongValues:
    def test_distances_stay(self):
        features = np.random.default_rng(0).random((6, 40))
        rows = along_values(features)
        assert rows.shape == (6, 6)
        np.testing.assert_allclose(cdist(rows, rows), cdist(features, features))

    def test_values_equally_far_from_each_other_are_one_hot(self):
        turned = np.linalg.qr(np.random.default_rng(1).random((5, 5)))[0]
        np.testing.assert_array_equal(along_values(0.7 * turned) != 0, np.eye(5, dtype=bool))
        np.testing.assert_allclose(along_values(0.7 * turned), 0.7 * np.eye(5))

    def test_no_turn_of_the_axes_is_nearer_to_one_hot(self):
        features = np.random.default_rng(2).random((5, 9))
        rows = along_values(features)
        best = np.linalg.norm(rows - np.eye(5) * np.trace(rows) / 5)
        for seed in range(20):
            turn = np.linalg.qr(np.random.default_rng(seed).standard_normal((5, 5)))[0]
            other = rows @ turn
            assert best <= np.linalg.norm(other - np.eye(5) * np.trace(rows) / 5) + 1e-12

    def test_vectors_move_as_little_as_distances_do(self):
        """Equal singular values, where singular vectors turn at a touch."""
        touched = np.eye(6) + 1e-6 * np.random.default_rng(3).random((6, 6))
        assert np.abs(along_values(touched) - along_values(np.eye(6))).max() < 1e-5

    def test_few_many_and_flat_values_keep_principal_axes(self):
        assert along_values(np.eye(2)).shape == (2, 1)
        assert along_values(np.eye(129)).shape == (129, 128)
        assert along_values(np.arange(4.0)[:, None]).shape == (4, 1)
        assert along_values(np.zeros((3, 0))).shape == (3, 0)

    def test_code_words_stay(self):
        factors = Factors(np.ones((3, 1)), np.ones(3))
        assert along_values(factors) is factors
        alone = Factors(np.eye(3), np.zeros(3))
        np.testing.assert_allclose(along_values(alone), np.eye(3))


class TestGrams:
    @settings(max_examples=40)
    @given(seeds)
    def test_a_gram_keeps_its_distances(self, seed):
        codes, table, counts, features = world(seed)
        out = ValueTables.from_grams([f @ f.T for f in features], counts)
        expected = cdist(*[np.hstack(vectors(codes, counts, features))] * 2)
        np.testing.assert_allclose(out.distances(table), expected, atol=1e-7 * (expected.max() + 1))
        assert out.repair.tolist() == [0.0] * 3
        assert out.width <= (counts.sizes - 1).sum()

    def test_an_indefinite_one_is_repaired_and_said_so(self):
        # Distances 1, 1, 3 break the triangle inequality: no points in any space have them.
        squared = np.array([[0.0, 1.0, 9.0], [1.0, 0.0, 1.0], [9.0, 1.0, 0.0]])
        centring = np.eye(3) - 1 / 3
        gram = -0.5 * centring @ squared @ centring
        counts = Counts.of({"a": ["u", "v", "w"], "b": ["p", "p", "q"]})
        out = ValueTables.from_grams([gram, np.eye(2)], counts)
        lowest = np.linalg.eigvalsh(gram)[0]
        assert lowest < -0.1
        np.testing.assert_allclose(out.repair, [-lowest, 0.0])
        rows = out.tables[0][:-1]
        positive = np.linalg.eigh(gram)
        clipped = (positive[1] * np.clip(positive[0], 0, None)) @ positive[1].T
        np.testing.assert_allclose(rows @ rows.T, clipped, atol=1e-12)

    def test_the_constant_direction_does_not_hide_a_repair(self):
        gram = np.array([[0.0, 2.0], [2.0, 0.0]]) + 100.0  # positive, but squared distance -4
        _, excess = gram_factor(gram)
        assert excess == pytest.approx(2.0)

    def test_no_values(self):
        rows, excess = gram_factor(np.zeros((0, 0)))
        assert rows.shape == (0, 0)
        assert excess == 0.0


ROWS = {"a": ["u", "v", "u"], "b": ["p", "p", "q"]}
COUNTS = Counts.of(ROWS)
FEATURES = [np.array([[1.0, 0.0], [0.0, 2.0]]), np.array([[3.0, 1.0], [5.0, -1.0]])]


def small(combine="concat"):
    return ValueTables.from_features(FEATURES, COUNTS, combine=combine, compact=False)


class TestGather:
    @pytest.mark.parametrize("dtype", ["float32", "float64"])
    def test_concat(self, dtype):
        out = small().gather(Table.of(ROWS), dtype=dtype)
        assert out.dtype == dtype
        assert out.tolist() == [[1, 0, 3, 1], [0, 2, 3, 1], [1, 0, 5, -1]]
        assert small().feature_names() == ["a_0", "a_1", "b_0", "b_1"]

    @pytest.mark.parametrize("dtype", ["float32", "float64"])
    def test_sum(self, dtype):
        out = small("sum").gather(Table.of(ROWS), dtype=dtype)
        assert out.tolist() == [[4, 1], [3, 3], [6, -1]]
        assert small("sum").feature_names() == ["dim0", "dim1"]

    @pytest.mark.parametrize("combine", ["concat", "sum"])
    def test_into_an_array(self, combine):
        wanted = small(combine).gather(Table.of(ROWS))
        out = np.full((wanted.shape[1], 3), np.nan).T  # neither empty nor contiguous
        assert small(combine).gather(Table.of(ROWS), out=out) is out
        np.testing.assert_array_equal(out, wanted)
        single = np.full(wanted.shape, np.nan, np.float32)
        np.testing.assert_array_equal(small(combine).gather(Table.of(ROWS), out=single), wanted)

    def test_array_of_the_wrong_shape_or_type(self):
        with pytest.raises(ValueError, match=r"expected out to have shape \(3, 4\), got \(2, 4\)"):
            small().gather(Table.of(ROWS), out=np.empty((2, 4)))
        for dtype in ("int64", "float16", "U5"):
            with pytest.raises(ValueError, match="float32 or float64"):
                small().gather(Table.of(ROWS), out=np.empty((3, 4), dtype))
            with pytest.raises(ValueError, match="float32 or float64"):
                small().gather(Table.of(ROWS), dtype=dtype)

    def test_unknown_is_the_centroid(self):
        out = small().gather(Table.of({"a": ["?", None], "b": ["p", 1]}))
        a, b = np.array([2 / 3, 2 / 3]), np.array([11 / 3, 1 / 3])  # means over rows, not values
        np.testing.assert_allclose(out, [[*a, 3, 1], [*a, *b]])

    def test_unknown_may_be_refused(self):
        with pytest.raises(ValueError, match="column 'a': value '\\?' was not seen in fit"):
            small().gather(Table.of({"a": ["u", "?"], "b": ["p", "p"]}), unknown="error")
        with pytest.raises(ValueError, match="got 'drop'"):
            small().gather(Table.of(ROWS), unknown="drop")

    def test_labels_that_no_row_has_are_not_refused(self):
        import pandas as pd

        frame = pd.DataFrame({"a": pd.Categorical(["u"], ["u", "zebra"]), "b": ["q"]})
        assert small().gather(Table.of(frame), unknown="error").tolist() == [[1, 0, 5, -1]]

    def test_many_rows(self):
        rng = np.random.default_rng(0)
        codes = rng.integers(0, 50, (70_000, 2))
        table = Table.of(codes, numbers="nominal")
        features = [rng.normal(size=(50, 7)) for _ in range(2)]
        built = ValueTables.from_features(features, Counts.of(table), compact=False)
        expected = np.hstack([features[0][codes[:, 0]], features[1][codes[:, 1]]])
        np.testing.assert_array_equal(built.gather(table), expected)

    def test_no_rows(self):
        empty = Table.of({"a": [], "b": []}, Table.of(ROWS).schema)
        assert small().gather(empty).shape == (0, 4)
        assert small().distances(empty).shape == (0, 0)
        assert small().distances(Table.of(ROWS), empty).shape == (3, 0)
        assert small("sum").kernel(empty, Table.of(ROWS)).shape == (0, 3)


SETS = {"s": [["p", "q"], ["q"], [], ["p", "q", "p"], ["?", "p"]], "a": list("uvuvu")}
SET_FEATURES = [np.array([[2.0, 0.0], [0.0, 4.0]]), np.array([[1.0, 1.0], [0.0, 3.0]])]


class TestSets:
    def build(self, combine):
        seen = Counts.of({"s": [["p", "q"], ["q"]], "a": ["u", "v"]})
        made = ValueTables.from_features(SET_FEATURES, seen, combine=combine, compact=False)
        return made.with_unknown_elements(seen) if combine == "concat" else made

    def expected(self):
        centre = np.array([2 / 3, 8 / 3])  # of p once and q twice
        p, q = SET_FEATURES[0]
        return np.array([(p + q) / 2, q, centre, (p + q) / 2, (centre + p) / 2])

    def unknown(self):
        """How far an unknown element is from the centre: as p once and q twice on average."""
        return np.sqrt([0, 0, 0, 0, ((16 + 64) / 9 + 2 * (4 + 16) / 9) / 3])[:, None] / 2

    def test_a_set_is_the_mean_of_its_elements(self):
        out = self.build("concat").gather(Table.of(SETS))
        np.testing.assert_allclose(out[:, :1], self.unknown())
        np.testing.assert_allclose(out[:, 1:3], self.expected())
        np.testing.assert_array_equal(out[:, 3:], SET_FEATURES[1][[0, 1, 0, 1, 0]])

    def test_summed(self):
        out = self.build("sum").gather(Table.of(SETS))
        np.testing.assert_allclose(out, self.expected() + SET_FEATURES[1][[0, 1, 0, 1, 0]])

    def test_distances(self):
        table = Table.of(SETS)
        rows = np.hstack([self.unknown(), self.expected(), SET_FEATURES[1][[0, 1, 0, 1, 0]]])
        np.testing.assert_allclose(self.build("concat").distances(table), cdist(rows, rows))

    def test_unknown_elements_may_be_refused(self):
        with pytest.raises(ValueError, match=r"column 's': value '\?'"):
            self.build("concat").gather(Table.of(SETS), unknown="error")

    def test_single_values_against_sets(self):
        """A table whose column was read as single values meets one read as sets."""
        single = Table.of({"s": ["p", "q"], "a": ["u", "u"]})
        sets = Table.of({"s": [["p"], ["p", "q"]], "a": ["u", "u"]})
        built = self.build("concat")
        expected = cdist(built.gather(single), built.gather(sets))
        np.testing.assert_allclose(built.distances(single, sets), expected)
        np.testing.assert_allclose(built.distances(sets, single), expected.T)


class TestPairwise:
    @pytest.mark.parametrize("lookup", [True, False], ids=["lookup", "vectors"])
    @pytest.mark.parametrize("combine", ["concat", "sum"])
    def test_equals_brute_force(self, lookup, combine, monkeypatch):
        if not lookup:
            monkeypatch.setattr(ValueTables, "_is_small", lambda *_: False)
        codes, table, counts, features = world(1, n=700, columns=5, sizes=(2, 9))
        built = ValueTables.from_features(features, counts, combine=combine, compact=False)
        parts = vectors(codes, counts, features)
        rows = np.hstack(parts) if combine == "concat" else np.sum(parts, axis=0)
        distances = built.distances(table)
        np.testing.assert_allclose(distances, cdist(rows, rows), atol=1e-12)
        np.testing.assert_allclose(built.kernel(table), rows @ rows.T, atol=1e-10)
        np.testing.assert_allclose(
            built.distances(table, squared=True), cdist(rows, rows, "sqeuclidean"), atol=1e-12
        )
        assert (distances == distances.T).all()
        same = (codes[:, None] == codes[None]).all(axis=2)
        assert (distances[same] == 0).all()

    def test_column_with_many_values(self):
        rng = np.random.default_rng(2)
        codes = np.stack([rng.permutation(1500), rng.integers(0, 3, 1500)], axis=1)
        table = Table.of(codes, numbers="nominal")
        features = [rng.normal(size=(1500, 4)), rng.normal(size=(3, 4))]
        built = ValueTables.from_features(features, Counts.of(table), compact=False)
        assert max(map(len, built.tables)) > 1024
        rows = np.hstack([features[0][codes[:, 0]], features[1][codes[:, 1]]])
        distances = built.distances(table)
        np.testing.assert_allclose(distances, cdist(rows, rows), atol=1e-12)
        assert (distances == distances.T).all()
        assert (np.diag(distances) == 0).all()
        np.testing.assert_allclose(built.kernel(table), rows @ rows.T, atol=1e-12)

    def test_other_vocabulary_on_either_side(self):
        left = Table.of({"b": ["q", "p", "new"], "a": ["v", "?", "u"], "extra": [1, 2, 3]})
        right = Table.of({"a": ["u", "v"], "b": ["old", "q"]})
        rows, columns = small().gather(left), small().gather(right)
        np.testing.assert_allclose(small().distances(left, right), cdist(rows, columns))
        np.testing.assert_allclose(small().kernel(left, right), rows @ columns.T)
        np.testing.assert_array_equal(
            small().distances(right, left), small().distances(left, right).T
        )

    @pytest.mark.parametrize("combine", ["concat", "sum"])
    @settings(max_examples=25)
    @given(seed=seeds)
    def test_contributions_add_up(self, combine, seed):
        codes, table, counts, features = world(seed)
        built = ValueTables.from_features(features, counts, combine=combine)
        order = np.random.default_rng(seed).permutation(len(codes))
        other = Table.of(codes[order], numbers="nominal")
        shares = built.contributions(table, other)
        parts = vectors(codes, counts, features)
        if combine == "concat":
            by_hand = np.stack([((p - p[order]) ** 2).sum(axis=1) for p in parts], axis=1)
            np.testing.assert_allclose(shares, by_hand, atol=1e-9)
            total = by_hand.sum(axis=1)
        else:
            whole = np.sum(parts, axis=0)
            total = ((whole - whole[order]) ** 2).sum(axis=1)
        np.testing.assert_allclose(shares.sum(axis=1), total, atol=1e-9)


class TestRefusal:
    def test_tables_that_do_not_fit(self):
        with pytest.raises(ValueError, match="expected 2 tables, got 1"):
            ValueTables.from_features(FEATURES[:1], COUNTS)
        with pytest.raises(ValueError, match="column 'b': expected 2 rows, got 3"):
            ValueTables.from_features([FEATURES[0], np.eye(3)], COUNTS, compact=False)

    def test_rows_of_different_length_cannot_be_summed(self):
        with pytest.raises(ValueError, match="expected rows of one width to be summed"):
            ValueTables.from_features([np.eye(2), np.ones((2, 3))], COUNTS, combine="sum")
        with pytest.raises(ValueError, match=r"expected combine to be .*, got 'mean'"):
            ValueTables.from_features(FEATURES, COUNTS, combine="mean")

    def test_table_without_the_column(self):
        with pytest.raises(KeyError, match="no column 'b'"):
            small().gather(Table.of({"a": ["u"]}))


# -- what values have of their own --------------------------------------------------------------


def factored(n=200, seed=0):
    """Return factors of many values, their table in one column, and rows of them."""
    rng = np.random.default_rng(seed)
    labels = [f"v{i:03}" for i in range(n)]
    table = Table.of({"a": [*labels, *rng.choice(labels, 2 * n)], "b": [*"xyz" * n]})
    counts = Counts.of(table)
    factors = Factors(rng.normal(size=(n, 64)), rng.random(n) + 0.1)
    few = rng.normal(size=(3, 2))
    return factors, few, table, ValueTables.from_features([factors, few], counts)


def squared_by_hand(factors, few, rows):
    values, letters = (np.array([str(v) for v in column]) for column in rows)
    codes = np.array([int(v[1:]) for v in values]), np.searchsorted([*"xyz"], letters)
    common = ((factors.common[codes[0]][:, None] - factors.common[codes[0]]) ** 2).sum(axis=2)
    own = factors.own[codes[0]]
    common += np.where(codes[0][:, None] == codes[0], 0, own[:, None] + own)
    return common + ((few[codes[1]][:, None] - few[codes[1]]) ** 2).sum(axis=2)


class TestOwn:
    def test_words_are_different_and_within_the_bound(self):
        for width in (64, 128):
            words = code_words(20 * width, width)
            products = np.abs(words @ words.T)
            np.testing.assert_allclose(np.diagonal(products), 1)
            np.fill_diagonal(products, 0)
            assert products[:width, :width].max() < 1e-12
            assert products.max() <= 2 / np.sqrt(width) + 1e-12

    def test_a_product_of_words_is_a_word_so_the_bound_holds_for_all_pairs(self):
        words = code_words(64**3, 64)
        i, j = np.random.default_rng(0).integers(64**3, size=(2, 500))
        np.testing.assert_allclose(words[i] * words[j] * 8, words[i ^ j])
        assert np.abs(words[1:].sum(axis=1)).max() / 8 <= 0.5
        with pytest.raises(ValueError, match="at most 16777216 values"):
            code_words(64**4 + 1, 64)

    def test_distances_and_products_are_exact(self):
        factors, few, table, made = factored()
        some = take_rows(table, np.arange(150, 330))
        rows = [[c.labels[i] for i in c.codes] for c in some.columns]
        expected = squared_by_hand(factors, few, rows)
        np.testing.assert_allclose(made.summands(some), expected, atol=1e-9)
        left, right = take_rows(some, np.arange(90)), take_rows(some, np.arange(90, 180))
        np.testing.assert_allclose(made.summands(left, right), expected[:90, 90:], atol=1e-9)
        shares = made.shares(left, right)
        np.testing.assert_allclose(sum(shares.values()), np.diagonal(expected, 90), atol=1e-9)
        kernel = made.kernel(some)
        own = np.diagonal(kernel)
        np.testing.assert_allclose(own[:, None] + own - 2 * kernel, expected, atol=1e-9)
        pairs = made.only(["a"]).pairs(some["a"])
        np.testing.assert_allclose(made.squares()[0][:-1, :-1], pairs, atol=1e-9)
        twice = made.scaled(np.full(2, 2.0)).select(["b", "a"])
        np.testing.assert_allclose(twice.summands(some), 4 * expected, atol=1e-8)

    def test_vectors_are_near_and_never_the_same(self):
        factors, _, table, made = factored(600)
        vectors = made.coordinates(take_rows(table, np.arange(600)))
        exact = made.summands(take_rows(table, np.arange(600)))
        near = cdist(vectors, vectors, "sqeuclidean")
        assert vectors.shape[1] == 128 + 2
        off = ~np.eye(600, dtype=bool)
        alone = (factors.own[:, None] + factors.own)[off]
        assert (np.abs(near - exact)[off] <= alone / 4 + 1e-9).all()
        assert near[off].min() > 0.05

    @pytest.mark.parametrize("has_own", [True, False])
    def test_unknown_strings_lie_between_those_spelled_like_them(self, has_own):
        """In common coordinates by weight; of the most alike they have the own part, too."""
        *_, made = factored()
        made = made.only(["a"])
        labels, rows, width = made.labels[0], made.tables[0], made.own["a"].width
        spelling = Spelling(labels)
        made = replace(made, spelling={"a": spelling}, own=made.own if has_own else {})
        asked = Table.of({"a": ["v0122", "v19", "v007", "???"]})
        near, weights = spelling.between(["v0122", "v19", "???"])
        trust = weights.sum(axis=1)
        mixed = (1 - trust)[:, None] * rows[-1] + np.einsum("ij,ijk->ik", weights, rows[near])
        if has_own:
            mixed[:, -width:] = trust[:, None] * rows[near[:, 0], -width:]
        wanted = np.vstack([mixed[:2], rows[labels.index("v007")], mixed[2]])
        found = made.points(asked["a"])
        np.testing.assert_allclose(found[:-1], wanted)
        np.testing.assert_allclose(made.coordinates(asked), wanted)
        assert 0 < trust[0] < 1 and trust[2] == 0
        if not has_own:
            return
        own = np.append(trust[:2], 1) * np.sqrt(made.own["a"].squares[[*near[:2, 0], 7]])
        at = np.array([*near[:2, 0], labels.index("v007")])
        common = cdist(wanted[:3, :-width], wanted[:3, :-width], "sqeuclidean")
        apart = np.where(at[:, None] == at, (own[:, None] - own) ** 2, own[:, None] ** 2 + own**2)
        np.testing.assert_allclose(made.pairs(asked["a"])[:3, :3], common + apart, atol=1e-9)

    def test_a_row_of_the_wrong_length_is_refused(self):
        *_, made = factored()
        wrong = replace(made, own={"a": replace(made.own["a"], squares=np.ones(3))})
        with pytest.raises(ValueError, match="column 'a': expected"):
            wrong._check_loaded()


# -- what columns say of labels, and of unknown ones ---------------------------------------------


def test_unknown_labels_are_refused_if_asked():
    table = Table.of({"a": list("uvwu")})
    column, block = table["a"], ValueMetric("hamming").fit(table).space_
    assert block.locate(column, "error").index.tolist() == [0, 1, 2]
    odd = Table.of({"a": ["u", "z"]})["a"]
    assert block.locate(odd).index.tolist() == [0, 3]
    with pytest.raises(ValueError, match="'z'"):
        block.locate(odd, "error")


def test_shares_under_a_power_of_your_own_are_those_of_the_vectors():
    metric = ValueMetric("of").fit({"a": list("uvwu"), "b": list("xyxx")})
    rows = Table.of({"a": list("uv"), "b": list("xy")})
    others = take_rows(rows, np.array([1, 0]))
    found = VectorSpace(metric.space_, 2).shares(rows, others)
    vectors = metric.space_.vectors()
    wanted = vectors.shares(rows, others)
    assert found.keys() == wanted.keys() == {"a", "b"}
    for name in found:
        np.testing.assert_array_equal(found[name], wanted[name])
    total = sum(found.values())
    np.testing.assert_allclose(total, np.diag(vectors.distances(rows, others)) ** 2)


def test_values_of_a_column_that_was_not_there_before_are_turned_to_nothing():
    now = Counts.of(Table.of({"a": list("uvw"), "b": list("xyz")}))
    before = Counts.of(Table.of({"a": list("uvx")}))
    new, old = (ValueTables.from_grams([np.eye(3)] * len(c.names), c) for c in (now, before))
    pieces = new.shared_points(old, now)
    assert [then.shape[1] for _, then, _ in pieces] == [old.tables[0].shape[1], 0]
    assert [weight.tolist() for *_, weight in pieces] == [[1, 1, 0], [1, 1, 1]]


def test_code_words_are_turned_apart_from_what_values_share():
    """What a value has of its own is turned by itself, and only to words of the same width."""
    counts = Counts.of(Table.of({"a": [f"v{i:02}" for i in range(6)]}))
    rng = np.random.default_rng(0)
    features = [Factors(rng.normal(size=(6, 2)), np.full(6, 2.0))]
    now, then = (ValueTables.from_features(features, counts) for _ in range(2))
    width = now.own["a"].width
    shared, words = now.shared_points(then, counts)
    assert shared[0].shape[1] + words[0].shape[1] == now.tables[0].shape[1]
    assert words[0].shape[1] == words[1].shape[1] == width
    np.testing.assert_array_equal(np.hstack([shared[0], words[0]]), now.tables[0][:-1])
    back = now.turned([lambda rows: -rows, lambda rows: 2 * rows])
    cut = now.tables[0].shape[1] - width
    np.testing.assert_array_equal(back.tables[0][:, :cut], -now.tables[0][:, :cut])
    np.testing.assert_array_equal(back.tables[0][:, cut:], 2 * now.tables[0][:, cut:])
    plain = ValueTables.from_features([features[0].common], counts)
    assert now.shared_points(plain, counts)[1][1].shape[1] == 0
