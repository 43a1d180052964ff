import numpy as np
import pytest
from sklearn.metrics import f1_score

from tabweave.papers import PROTOCOLS, monte_carlo_splits, stream_windows

Y = np.array(["a"] * 60 + ["b"] * 37 + ["c"] * 6 + ["d"])  # 104 objects, d is alone


def shares(y, windows):
    values = np.unique(y)
    return np.array([[np.mean(y[w] == v) for v in values] for w in windows])


class TestMonteCarlo:
    @pytest.mark.parametrize("stratify", [True, False])
    def test_every_split_holds_every_row_once(self, stratify):
        splits = list(monte_carlo_splits(Y, random_state=0, stratify=stratify))
        assert len(splits) == 20
        for train, test in splits:
            assert test.size == 10
            np.testing.assert_array_equal(np.sort(np.append(train, test)), np.arange(Y.size))
        assert len({tuple(test) for _, test in splits}) == 20

    def test_classes_get_their_share_rounded_up_or_down(self):
        pool = Y.size - 1
        for _, test in monte_carlo_splits(Y, 200, random_state=0):
            for value, size in (("a", 60), ("b", 37), ("c", 6)):
                assert abs((Y[test] == value).sum() - 10 * size / pool) < 1
            assert "d" not in Y[test]

    def test_rounding_is_fair_to_small_classes(self):
        tested = [np.sum(Y[test] == "c") for _, test in monte_carlo_splits(Y, 2000, random_state=1)]
        assert np.mean(tested) == pytest.approx(10 * 6 / 103, abs=0.05)

    def test_every_row_is_tested_as_often(self):
        times = np.zeros(Y.size)
        for _, test in monte_carlo_splits(Y, 2000, random_state=2):
            times[test] += 1
        assert times[-1] == 0
        np.testing.assert_allclose(times[:-1] / 2000, 10 / 103, atol=0.035)

    def test_unstratified_splits_can_test_a_class_of_one(self):
        splits = monte_carlo_splits(Y, 200, random_state=0, stratify=False)
        assert 0 < sum("d" in Y[test] for _, test in splits) < 60

    def test_plain_where_classes_are_too_small(self):
        splits = list(monte_carlo_splits(np.arange(10), 5, 0.3, random_state=0))
        assert [test.size for _, test in splits] == [3] * 5

    def test_seed_decides(self):
        first, again, other = (
            [test.tolist() for _, test in monte_carlo_splits(Y, 3, random_state=seed)]
            for seed in (7, 7, 8)
        )
        assert first == again != other

    @pytest.mark.parametrize("source", [np.random.RandomState, np.random.default_rng])
    def test_a_source_of_randomness_is_used_up(self, source):
        first, again = source(7), source(7)
        one, two = (next(monte_carlo_splits(Y, 1, random_state=r))[1] for r in (first, again))
        np.testing.assert_array_equal(one, two)
        assert not np.array_equal(next(monte_carlo_splits(Y, 1, random_state=first))[1], one)

    def test_both_sides_hold_at_least_one(self):
        assert next(monte_carlo_splits([0, 0, 1], 1, 0.01))[1].size == 1
        assert next(monte_carlo_splits([0, 0, 1], 1, 0.99))[0].size == 1

    def test_bad_input_is_refused_at_the_call(self):
        with pytest.raises(ValueError, match="test_size"):
            monte_carlo_splits(Y, test_size=10)
        with pytest.raises(ValueError, match="n_repeats"):
            monte_carlo_splits(Y, n_repeats=0)
        with pytest.raises(ValueError, match="at least 2 objects"):
            monte_carlo_splits(["a"])
        with pytest.raises(ValueError, match="expected a label for every object, got None"):
            monte_carlo_splits(["a", None])


class TestStream:
    y = np.repeat([0, 1, 2], [1000, 600, 800])

    @pytest.mark.parametrize("mix", ["random", "drift", "plain"])
    def test_windows_share_no_row_and_use_all(self, mix):
        windows = stream_windows(Y, mix=mix, random_state=0)
        assert len(windows) == 12
        assert {len(w) for w in windows} == {8, 9}
        np.testing.assert_array_equal(np.sort(np.concatenate(windows)), np.arange(Y.size))

    @pytest.mark.parametrize("mix", ["random", "drift", "plain"])
    def test_windows_of_a_given_size(self, mix):
        windows = stream_windows(self.y, window_size=50, mix=mix, random_state=0)
        assert [len(w) for w in windows] == [50] * 12
        assert np.unique(np.concatenate(windows)).size == 600
        assert max(w.max() for w in windows) > 2000  # drawn from all rows, not the first ones

    def test_random_mixes_differ_and_plain_ones_do_not(self):
        def spread(mix):
            windows = stream_windows(self.y, window_size=100, mix=mix, random_state=0)
            return shares(self.y, windows).std(axis=0).max()

        assert spread("random") > 0.15
        assert spread("plain") < 0.08

    def test_random_mixes_are_uniform(self):
        # The share of one of three clusters, uniform over all mixes: mean 1/3, variance 1/18.
        first = [
            shares(self.y, stream_windows(self.y, 2, window_size=200, random_state=s))[0, 0]
            for s in range(300)
        ]
        assert np.mean(first) == pytest.approx(1 / 3, abs=0.05)
        assert np.var(first) == pytest.approx(1 / 18, abs=0.015)

    def test_time_has_no_part_in_random_mixes(self):
        # A rare cluster runs out early while windows are filled; it must not be seen early only.
        y = np.repeat([0, 1], [90, 910])
        mean = np.mean(
            [shares(y, stream_windows(y, 4, random_state=s))[:, 0] for s in range(300)], axis=0
        )
        np.testing.assert_allclose(mean, 0.09, atol=0.025)

    def test_drift_is_gradual(self):
        def step(mix, seed):
            s = shares(self.y, stream_windows(self.y, mix=mix, random_state=seed))
            return np.abs(np.diff(s, axis=0)).mean(), np.ptp(s, axis=0).max()

        drift = np.array([step("drift", seed) for seed in range(10)])
        random = np.array([step("random", seed) for seed in range(10)])
        assert drift[:, 0].mean() < 0.5 * random[:, 0].mean()
        assert drift[:, 1].min() > 0.2  # and yet the mix changes

    @pytest.mark.parametrize("seed", range(5))
    def test_small_windows_still_span_the_whole_drift(self, seed):
        sample = stream_windows(self.y, window_size=50, mix="drift", random_state=seed)
        whole = shares(self.y, [np.concatenate(sample)])[0]
        np.testing.assert_allclose(whole, np.array([10, 6, 8]) / 24, atol=0.07)

    def test_seed_decides(self):
        first, again, other = (
            np.concatenate(stream_windows(Y, random_state=seed)).tolist() for seed in (3, 3, 4)
        )
        assert first == again != other

    def test_bad_input(self):
        with pytest.raises(ValueError, match="cannot fill 12 windows"):
            stream_windows([0, 1])
        with pytest.raises(ValueError, match="12 windows of 10 need 120 objects, there are 104"):
            stream_windows(Y, window_size=10)
        with pytest.raises(ValueError, match="at least 1"):
            stream_windows(Y, 0)
        with pytest.raises(ValueError, match="expected mix="):
            stream_windows(Y, mix="sorted")


def test_the_protocols_differ_in_splits_ties_and_classes():
    ours, thesis = PROTOCOLS["tabweave"], PROTOCOLS["thesis"]
    assert (thesis.stratify, thesis.ties, thesis.classes) == (False, "first", "either")
    assert (ours.stratify, ours.ties, ours.classes) == (True, "all", "true")
    y = ["a"] * 90 + ["b"] * 10
    held = {
        name: [sum(y[i] == "b" for i in test) for _, test in p.splits(y, 30, random_state=0)]
        for name, p in PROTOCOLS.items()
    }
    assert set(held["tabweave"]) == {1}
    assert len(set(held["thesis"])) > 1
    plain = monte_carlo_splits(y, 30, 0.1, 0, stratify=False)
    for (a, b), (c, d) in zip(thesis.splits(y, 30, random_state=0), plain, strict=True):
        assert np.array_equal(a, c) and np.array_equal(b, d)


def test_the_thesis_scores_as_scikit_learn_does():
    rng = np.random.default_rng(0)
    for _ in range(20):
        true, found = rng.choice(list("abcde"), (2, 8))
        expected = f1_score(true, found, average="macro")
        assert PROTOCOLS["thesis"].score(true, found) == pytest.approx(expected)
        assert PROTOCOLS["tabweave"].score(true, found) >= expected - 1e-12
