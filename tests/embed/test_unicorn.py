"""UNICORN: counts added over time, drift, checkpoints."""

import numpy as np
import pandas as pd
import pytest

from tabweave import UNICORN, Counts, Table
from tabweave.counts import couplings
from tabweave.counts.couplings import corrected_uncertainty, information
from tabweave.datasets import led24, make_coupled
from tabweave.embed.unicorn import change
from tabweave.engines.reading import hold_counts


def windows(n=4, size=150, seed=0):
    X = led24(n * size, random_state=seed).X
    return [X[i * size : (i + 1) * size] for i in range(n)]


def streamed(parts, **options):
    model = UNICORN(**options)
    for part in parts:
        model.partial_fit(part)
    return model


# -- dynamic couplings --------------------------------------------------------------------------


def test_windows_give_the_couplings_of_all_rows():
    parts = windows()
    stream = streamed(parts, n_clusters=10)
    whole = UNICORN(10).fit(np.vstack(parts))
    assert stream.counts_ == whole.counts_
    np.testing.assert_array_equal(stream.transform(parts[0]), whole.transform(parts[0]))


def test_equations_8_1_to_8_5_are_merged_counts():
    first, second = windows(2)
    stream = streamed([first, second])
    a, b = (Counts.of(Table.of(x, numbers="nominal")) for x in (first, second))
    f = (a.value_counts / a.n * a.n + b.value_counts) / (a.n + b.n)  # (8.1)
    np.testing.assert_allclose(stream.counts_.value_counts / stream.counts_.n, f)
    merged = (a.block(0, 1) + b.block(0, 1)) / (a.value_counts + b.value_counts)[b.span(1)]
    table = stream.counts_.block(0, 1) / stream.counts_.value_counts[stream.counts_.span(1)]
    np.testing.assert_allclose(table, merged)
    assert stream.counts_ - b == a


def mean_of_kernels(counts, column, s=5.0):
    """Centre every kernel of every space, scale it to unit inertia, and average."""
    span, n = counts.span(column), counts.n
    C, c = counts.pairs.astype(float), counts.value_counts.astype(float)
    others = np.r_[: span.start, span.stop : len(c)]
    block, own, theirs = C[span][:, others], c[span], c[others]
    f = own / n
    spaces = [
        f[:, None],
        (block + s * f[:, None]) / (theirs + s),
        (block + s * theirs / n) / (own[:, None] + s),
    ]
    grams = [np.eye(len(f))]
    for x in spaces:
        squared = ((x[:, None] - x) ** 2).sum(axis=2)
        grams += [np.exp(-squared / (2 * w * w)) for w in couplings.WIDTHS]
        grams += [(x @ x.T) ** d for d in couplings.DEGREES]
    centre = np.eye(len(f)) - f
    centred = [centre @ gram @ centre.T for gram in grams]
    inertia = [np.diag(gram) @ f for gram in centred]
    return np.mean([g / t for g, t in zip(centred, inertia, strict=True) if t > 1e-8], axis=0)


def test_default_has_the_mean_couplings_of_accumulated_counts_under_its_own_weights():
    parts = windows()
    stream = streamed(parts).learn()
    whole = Table.of(np.vstack(parts), numbers="nominal")
    for a, name in enumerate(stream.weights_):
        gram = mean_of_kernels(Counts.of(whole), a)
        expected = np.diag(gram)[:, None] + np.diag(gram) - 2 * gram
        found = stream.value_distances(name) ** 2 / stream.weights_[name]
        np.testing.assert_allclose(found, expected, atol=1e-8)
    mutual, marginal, _ = information(Counts.of(whole))
    tied = corrected_uncertainty(Counts.of(whole), mutual, marginal).sum(axis=1)
    tied = np.maximum(tied, 1e-8 * tied.max()) ** (1 / 3)
    np.testing.assert_allclose(list(stream.weights_.values()), tied / tied.mean())


def test_static_variant_learns_from_the_last_window_only():
    parts = windows()
    static = streamed(parts, n_clusters=10, decay=0)
    last = UNICORN(10).fit(parts[-1])
    np.testing.assert_array_equal(static.transform(parts[0]), last.transform(parts[0]))


def test_learning_waits():
    stream = streamed(windows())
    assert not hasattr(stream, "tables_")
    assert stream.transform(windows()[0]).shape[0] == 150


def test_sample_weights_are_repetitions():
    part, other = windows(2, 40)
    twice = UNICORN().fit(part).partial_fit(other, sample_weight=np.full(40, 2))
    again = UNICORN().fit(part).partial_fit(np.vstack([other, other]))
    assert twice.counts_ == again.counts_


# -- drift --------------------------------------------------------------------------------------


def reference_change(before, after, window):
    """Eq. (8.19), value by value."""
    by_column = {}
    for a, name in enumerate(after.names):
        terms = []
        for label in after.labels[a]:
            if label not in window.labels[a]:
                continue
            vectors = []
            for counts in (before, after):
                if label not in counts.labels[a]:
                    vectors.append(None)
                    continue
                own = counts.span(a).start + counts.labels[a].index(label)
                vector = {("f",): counts.value_counts[own] / counts.n}
                for b, other in enumerate(counts.names):
                    for w, value in enumerate(counts.labels[b]):
                        if b != a:
                            place = counts.span(b).start + w
                            share = counts.pairs[own, place] / counts.value_counts[place]
                            vector[other, value] = share
                vectors.append(vector)
            x, y = vectors
            if x is None:
                terms.append(0.0)
                continue
            keys = x.keys() | y.keys()
            u, w_ = (np.array([z.get(k, 0.0) for k in keys]) for z in (x, y))
            terms.append(u @ w_ / np.linalg.norm(u) / np.linalg.norm(w_))
        by_column[name] = terms
    return by_column


def test_drift_is_equation_8_19():
    rng = np.random.default_rng(0)
    first = pd.DataFrame({c: rng.choice(list("xyz"), 30) for c in "abc"})
    second = pd.DataFrame({c: rng.choice(list("yzw"), 20) for c in "abc"})
    before, window = Counts.of(first), Counts.of(second)
    found = change(before, before + window)
    expected = reference_change(before, before + window, window)
    for name, terms in expected.items():
        assert found.columns[name] == pytest.approx(1 - np.mean(terms))
    everything = [t for terms in expected.values() for t in terms]
    assert found.overall == pytest.approx(1 - np.mean(everything))
    assert UNICORN().fit(first).partial_fit(second).drift_ == found


def test_drift_of_sparse_counts_is_the_same(monkeypatch):
    rng = np.random.default_rng(0)
    frames = [pd.DataFrame({c: rng.integers(30, size=50) for c in "abc"}) for _ in range(2)]
    counts = [Counts.of(Table.of(f, numbers="nominal")) for f in frames]
    dense = change(counts[0], counts[0] + counts[1])
    monkeypatch.setattr("tabweave.counts.counting.DENSE_VALUES", 10)
    counts = [Counts.of(Table.of(f, numbers="nominal")) for f in frames]
    found = change(counts[0], counts[0] + counts[1])
    assert found.overall == pytest.approx(dense.overall)


def test_drift_lies_between_nothing_and_everything():
    part = windows(1)[0]
    stream = UNICORN().fit(part)
    assert np.isnan(stream.drift_.overall)
    assert stream.partial_fit(part).drift_.overall == pytest.approx(0, abs=1e-12)
    other = np.full_like(part, "new")
    stream.partial_fit(other)
    assert stream.drift_.overall == 1.0 and set(stream.drift_.columns.values()) == {1.0}


def test_changed_columns_drift_most():
    data = make_coupled(2000, 6, random_state=0)
    changed = data.X[1000:].copy()
    np.random.default_rng(0).shuffle(changed[:, 2])
    stream = UNICORN().fit(data.X[:1000]).partial_fit(changed)
    assert max(stream.drift_.columns, key=stream.drift_.columns.get) == "x2"


def test_history_is_bounded():
    stream = UNICORN()
    for i in range(120):
        stream.partial_fit([["a", "x"], ["b", "y"]][: 1 + i % 2])
    assert len(stream.history_) == 100
    assert stream.history_[-1]["window"] == stream.n_windows_ == 120
    assert set(stream.history_[0]) == {"window", "rows", "values", "drift"}


def test_resume_keeps_history_and_drift(tmp_path):
    stream = streamed(windows(3), n_clusters=10, decay=0.8)
    stream.save(tmp_path / "u")
    again = UNICORN(10, decay=0.8).resume(tmp_path / "u")
    assert again.drift_ == stream.drift_ and again.n_rows_ == stream.n_rows_ == 450
    assert again.history_[1:] == stream.history_[1:]
    for model in (stream, again):
        model.partial_fit(windows(1, seed=5)[0])
    assert again.counts_ == stream.counts_ and again.drift_ == stream.drift_


@pytest.mark.parametrize(
    ("options", "message"),
    [({"kernels": 3}, "kernels"), ({"decay": 2}, "decay"), ({"n_clusters": 1}, "n_clusters")],
)
def test_bad_parameters(options, message):
    with pytest.raises(ValueError, match=message):
        UNICORN(**options).fit(windows(1)[0])


def test_the_first_window_may_have_fewer_rows_than_clusters():
    rows = windows(1)[0]
    stream = UNICORN(n_clusters=10).partial_fit(rows[:2])
    assert stream.transform(rows[:2]).shape == (2, 1)
    assert stream.partial_fit(rows[2:]).transform(rows).shape == (len(rows), 20)


def test_fit_starts_a_new_stream():
    first, second, other = windows(3)
    stream = UNICORN(3).fit(first).partial_fit(second).learn()
    again = stream.fit(other[:, ::-1]).transform(other[:, ::-1])
    np.testing.assert_array_equal(again, UNICORN(3).fit(other[:, ::-1]).transform(other[:, ::-1]))


def test_resume_leaves_the_stream_before(tmp_path):
    first, second, other = windows(3)
    UNICORN(3).fit(other).save(tmp_path / "u")
    stream = UNICORN(3).fit(first).partial_fit(second).learn().resume(tmp_path / "u")
    fresh = UNICORN(3).resume(tmp_path / "u")
    assert vars(stream).keys() == vars(fresh).keys()
    one, two = (hold_counts(model, model.counts_).transform(other) for model in (stream, fresh))
    np.testing.assert_array_equal(one, two)


def test_a_window_that_weighs_nothing_only_moves_the_position():
    first, second = windows(2)
    stream = UNICORN(decay=0).fit(first).partial_fit(second, sample_weight=np.zeros(len(second)))
    assert stream.counts_ == UNICORN().fit(first).counts_
    assert (stream.n_windows_, stream.n_rows_) == (2, 300)
