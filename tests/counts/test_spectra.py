"""Count-space spectra against the n × n kernel of all objects."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from tabweave import Counts, OneHot, Table
from tabweave.counts import spectra
from tabweave.counts.spectra import (
    CrossMoments,
    centred_product,
    leading_axes,
    principal_axes,
    projected,
    responses,
    scatter,
)

TOLERANCE = 1e-8


def sample(seed, n=60, widths=(3, 2, 4)):
    """Rows, their one-hot matrix, counts and one random table per column."""
    rng = np.random.default_rng(seed)
    hidden = rng.integers(0, 3, n)
    columns = [rng.integers(0, 4, n) for _ in widths]
    columns = [np.where(rng.random(n) < 0.5, hidden, c) for c in columns]
    X = {f"c{i}": [f"v{v}" for v in c] for i, c in enumerate(columns)}
    counts = Counts.of(Table.of(X))
    tables = [rng.normal(size=(s, w)) for s, w in zip(counts.sizes, widths, strict=True)]
    return X, OneHot().fit_transform(X), counts, tables


def stacked(counts, tables):
    """The tables as one block-diagonal V × D matrix."""
    T = np.zeros((counts.offsets[-1], sum(t.shape[1] for t in tables)))
    start = 0
    for a, table in enumerate(tables):
        T[counts.span(a), start : start + table.shape[1]] = table
        start += table.shape[1]
    return T


def centring(n):
    return np.eye(n) - np.ones((n, n)) / n


@pytest.mark.parametrize("seed", range(3))
def test_counts_are_the_centred_gram_of_indicators(seed):
    _, Z, counts, tables = sample(seed)
    H, T = centring(len(Z)), stacked(counts, tables)
    assert np.allclose(centred_product(counts, T), Z.T @ H @ Z @ T, atol=TOLERANCE)
    assert np.allclose(scatter(counts, tables), T.T @ Z.T @ H @ Z @ T, atol=TOLERANCE)
    assert np.allclose(scatter(counts, tables, centred=False), T.T @ Z.T @ Z @ T, atol=TOLERANCE)


@pytest.mark.parametrize("seed", range(3))
def test_traces_and_norms_are_those_of_the_object_kernel(seed):
    _, Z, counts, tables = sample(seed)
    others = [np.random.default_rng(seed + 9).normal(size=t.shape) for t in tables]
    H, T, U = centring(len(Z)), stacked(counts, tables), stacked(counts, others)
    HSH, HRH = (H @ Z @ t @ t.T @ Z.T @ H for t in (T, U))
    assert np.trace(HSH) == pytest.approx((T * centred_product(counts, T)).sum(), abs=TOLERANCE)
    inner = scatter(counts, tables)
    assert (HSH**2).sum() == pytest.approx((inner**2).sum(), rel=1e-10)
    crossed = T.T @ centred_product(counts, U)
    assert np.trace(HSH @ HRH) == pytest.approx((crossed**2).sum(), rel=1e-10)


@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_axes_project_objects_on_the_top_eigenvectors(seed, centred):
    _, Z, counts, tables = sample(seed)
    T = stacked(counts, tables)
    S = Z @ T @ T.T @ Z.T
    S = centring(len(Z)) @ S @ centring(len(Z)) if centred else S
    expected, vectors = np.linalg.eigh(S)
    values, axes = principal_axes(counts, tables, 3, centred=centred)
    assert np.allclose(values, expected[::-1][:3], atol=TOLERANCE)
    coordinates = Z @ T @ axes
    if centred:
        coordinates -= coordinates.mean(axis=0)
    assert np.allclose((coordinates**2).sum(axis=0), values, atol=TOLERANCE)
    top = vectors[:, ::-1][:, :3] * np.sqrt(values)
    assert np.allclose(np.abs(coordinates), np.abs(top), atol=TOLERANCE)
    assert np.allclose(Z @ np.vstack(projected(tables, axes)), Z @ T @ axes)


@pytest.mark.parametrize("centred", [True, False])
def test_responses_are_values_on_the_top_eigenvectors(centred):
    _, Z, counts, tables = sample(4)
    T = stacked(counts, tables)
    S = Z @ T @ T.T @ Z.T
    S = centring(len(Z)) @ S @ centring(len(Z)) if centred else S
    H = np.linalg.eigh(S)[1][:, ::-1][:, :3]
    response = responses(counts, tables, 3, centred=centred)
    assert np.allclose(np.abs(response), np.abs(Z.T @ H), atol=TOLERANCE)
    assert np.allclose(response @ response.T, Z.T @ H @ H.T @ Z, atol=TOLERANCE)


def test_more_axes_than_rank_are_zero_not_noise():
    X = {"a": list("uvuv"), "b": list("xxyy")}
    counts = Counts.of(Table.of(X))
    tables = [np.array([[1.0, 1.0], [-1.0, -1.0]]), np.array([[1.0], [2.0]])]
    for centred in (True, False):
        response = responses(counts, tables, 8, centred=centred)
        assert np.isfinite(response).all() and np.abs(response).max() < 10
        assert np.allclose(response[:, 2:], 0)


def test_axes_repeat_and_point_one_way():
    _, _, counts, tables = sample(1)
    axes = principal_axes(counts, tables, 4)[1]
    assert np.array_equal(axes, principal_axes(counts, tables, 4)[1])
    assert (axes[np.abs(axes).argmax(axis=0), np.arange(4)] > 0).all()


def test_axes_of_equal_weight_stay_together():
    square = {"a": list("uuvv"), "b": list("xyxy")}  # independent and alike
    counts = Counts.of(Table.of(square))
    tables = [np.eye(2), np.eye(2)]
    assert leading_axes(counts, tables, 1).shape == (4, 2)
    tables[1] = 0.5 * np.eye(2)
    assert leading_axes(counts, tables, 1).shape == (4, 1)
    assert leading_axes(counts, tables, 9).shape == (4, 2)  # directions without inertia go


def test_columns_without_dimensions():
    X = {"a": ["x"] * 3, "b": list("uvu")}
    counts = Counts.of(Table.of(X))
    values, axes = principal_axes(counts, [np.zeros((1, 0)), np.eye(2)], 2)
    assert axes.shape == (2, 2) and values[0] > 0
    flat = counts.select(["a"])
    values, axes = principal_axes(flat, [np.zeros((1, 0))], 2)
    assert values.shape == (0,) and axes.shape == (0, 0)
    assert leading_axes(flat, [np.zeros((1, 0))], 2).shape == (0, 0)
    assert responses(flat, [np.zeros((1, 0))], 2).shape == (1, 0)


def test_sparse_counts_give_the_same():
    _, _, counts, tables = sample(2)
    thin = replace(counts, pairs=sparse.csr_array(counts.pairs))
    assert np.allclose(scatter(thin, tables), scatter(counts, tables))
    assert np.allclose(responses(thin, tables, 2), responses(counts, tables, 2))
    assert np.allclose(
        responses(thin, tables, 2, centred=False), responses(counts, tables, 2, centred=False)
    )


def test_narrow_tables_of_many_values_give_the_same():
    _, _, counts, tables = sample(2, widths=(1, 1, 1))
    thin = replace(counts, pairs=sparse.csr_array(counts.pairs))
    choosing = [sparse.csr_array(np.eye(size)[:, :1]) for size in counts.sizes]
    for given in (tables, choosing):
        dense = [table if isinstance(table, np.ndarray) else table.toarray() for table in given]
        assert np.allclose(scatter(thin, given), scatter(counts, dense))
        assert np.allclose(
            scatter(thin, given, centred=False), scatter(counts, dense, centred=False)
        )


def test_weighted_rows_are_rows_repeated():
    X, _, _, tables = sample(3)
    weight = np.random.default_rng(0).integers(1, 4, len(X["c0"]))
    repeated = {name: np.repeat(column, weight) for name, column in X.items()}
    weighted = Counts.of(Table.of(X), sample_weight=weight)
    assert np.allclose(scatter(weighted, tables), scatter(Counts.of(Table.of(repeated)), tables))


class TestCrossMoments:
    """Sums over pairs of columns, against pandas."""

    def frame(self, n=200, seed=0):
        pd = pytest.importorskip("pandas")
        rng = np.random.default_rng(seed)
        frame = pd.DataFrame(
            rng.normal(size=(n, 3)) * [1, 1e6, 1e-6] + [0, 1e7, 5], columns=list("xyz")
        )
        frame["x"] += frame["z"] * 1e6
        frame[rng.random((n, 3)) < 0.1] = np.nan
        frame["g"] = rng.choice(list("uvw"), n)
        return frame

    def test_correlations_and_means(self):
        frame = self.frame()
        moments = CrossMoments.of(Table.of(frame))
        wanted = frame[list("xyz")].corr()
        np.testing.assert_allclose(moments.correlations(), wanted, atol=1e-9)
        values = list(moments.vocabulary.labels[0])  # as they come
        means = frame.groupby("g")[list("xyz")].mean().loc[values]
        np.testing.assert_allclose(moments.value_means(), means, rtol=1e-12)
        centred = frame[list("xyz")] - frame[list("xyz")].mean()
        sums = centred.groupby(frame["g"]).sum().loc[values]
        scale = frame[list("xyz")].std().to_numpy()
        np.testing.assert_allclose(moments.value_sums() / scale, sums / scale, atol=1e-8)

    def test_parts_add_up_and_come_off(self):
        frame = self.frame()
        whole = CrossMoments.of(Table.of(frame))
        parts = [
            CrossMoments.of(Table.of(part, Table.of(frame).schema), like=whole)
            for part in (frame[:70], frame[70:])
        ]
        both = parts[0] + parts[1]
        np.testing.assert_allclose(both.products, whole.products)
        index = whole.vocabulary.reindex(both.vocabulary)
        np.testing.assert_allclose(both.by_value[:, index], whole.by_value)
        left = both - parts[1]
        np.testing.assert_allclose(left.products, parts[0].products, atol=1e-9)
        index = parts[0].vocabulary.reindex(left.vocabulary)
        np.testing.assert_allclose(left.by_value[:, index], parts[0].by_value, atol=1e-9)

    def test_numbers_that_do_not_vary_have_no_correlation(self):
        moments = CrossMoments.of(Table.of({"x": [1.0, 1.0, 1.0], "y": [1.0, 2.0, 3.0]}))
        found = moments.correlations()
        assert found[1, 1] == 1 and np.isnan(found[[0, 0, 1], [0, 1, 0]]).all()
        gone = CrossMoments.of(Table.of({"x": [np.nan] * 2, "y": [1.0, 2.0]}, {"x": "numeric"}))
        assert np.isnan(gone.correlations()[0]).all()

    def test_numbers_at_the_ends_of_float(self):
        rows = {"x": [-1.7e308, 1.7e308, 0.0], "y": [-1.0, 1.0, 0.0]}
        found = CrossMoments.of(Table.of(rows)).correlations()
        np.testing.assert_allclose(found, 1, atol=1e-12)
        alike = CrossMoments.of(Table.of({"x": [1.7e308, 1.6e308, 1.7e308, 1.6e308]}))
        assert alike.means()[0][0] == pytest.approx(1.65e308)

    def test_no_numbers(self):
        moments = CrossMoments.of(Table.of({"g": ["u", "v"]}))
        assert moments.correlations().shape == (0, 0) and moments.value_means().shape == (2, 0)


@pytest.mark.parametrize("n_empty", [0, 20])
@pytest.mark.parametrize("many", [np.asarray, sparse.csr_array])
def test_cells_of_sets_are_the_means_of_their_elements(n_empty, many):
    rng = np.random.default_rng(0)
    sets = [sorted(rng.choice(list("abcde"), 3, replace=False)) for _ in range(40)]
    sets += [[]] * n_empty
    other = rng.choice(list("uv"), len(sets))
    counts = Counts.of(Table.of({"s": sets, "x": other}, {"s": "set"}))
    tables = [rng.normal(size=(size, 2)) for size in counts.sizes]
    share = counts.value_counts[counts.span("s")] / (3 * 40)
    cells = [tables[0][["abcde".index(e) for e in cell]] for cell in sets if cell]
    of_sets = [own.mean(axis=0) for own in cells] + [share @ tables[0]] * n_empty
    objects = np.hstack([of_sets, tables[1][["uv".index(x) for x in other]]])
    objects -= objects.mean(axis=0)
    found = spectra.scatter(counts, [many(table) for table in tables])
    np.testing.assert_allclose(found, objects.T @ objects)
    summed = objects[:, :2] + objects[:, 2:]
    rows = np.vstack(tables)
    product = spectra.centred_product(counts, rows)
    np.testing.assert_allclose(rows.T @ product, summed.T @ summed)
    axes = np.linalg.svd(objects, full_matrices=False)[0][:, :3]
    response = rows.T @ spectra.responses(counts, tables, 3)
    np.testing.assert_allclose(response @ response.T, summed.T @ axes @ axes.T @ summed)


@pytest.mark.parametrize("gaps", [(), (1,), (0, 2), (0, 1, 2)])
def test_cross_moments_are_sums_over_the_rows_that_have_both(gaps, monkeypatch):
    monkeypatch.setattr(spectra, "SUMMED_ROWS", 64)  # several blocks, some of them without a gap
    rng = np.random.default_rng(len(gaps))
    x = rng.normal(size=(200, 3)) * [1, 1e3, 1e-3] + [0, 5, -2]
    for j in gaps:
        x[70:190, j] = np.where(rng.random(120) < 0.3, np.nan, x[70:190, j])
    job = rng.choice(["cook", "clerk", "judge"], 200)
    found = CrossMoments.of(Table.of({"job": job, "a": x[:, 0], "b": x[:, 1], "c": x[:, 2]}))
    here = ~np.isnan(x)
    z = np.where(here, (x - found.origin) / found.unit, 0)
    for i in range(3):
        for j in range(3):
            both = here[:, i] & here[:, j]
            a, b = z[both, i], z[both, j]
            slow = [a @ b, a.sum(), both.sum(), a @ a]
            np.testing.assert_allclose(found.products[:, i, j], slow, rtol=1e-12, atol=1e-12)
    values = found.vocabulary.labels[0]
    slow = [
        [np.where(job[:, None] == v, part, 0).sum(axis=0) for v in values] for part in (z, here)
    ]
    np.testing.assert_allclose(found.by_value, slow, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("n_numbers", [1, 5, 40])
@pytest.mark.parametrize("n", [1, 4096, 70_001])
def test_cross_moments_of_many_rows_and_columns(n, n_numbers):
    rng = np.random.default_rng(n)
    sizes = (3, 8, 8, 300, 2)  # some share a pass, one is too large to
    codes = [rng.integers(size, size=n) for size in sizes]
    x = np.where(rng.random((n, n_numbers)) < 0.1, np.nan, rng.integers(-9, 9, (n, n_numbers)))
    x[:, 0] = rng.integers(-9, 9, n)  # one without gaps
    rows = {f"c{a}": [f"v{v}" for v in own] for a, own in enumerate(codes)}
    kinds = {f"x{j}": "numeric" for j in range(n_numbers)}
    table = Table.of(rows | {name: x[:, j] for j, name in enumerate(kinds)}, kinds)
    found = CrossMoments.of(table)
    z, here = np.nan_to_num((x - found.origin) / found.unit), ~np.isnan(x)
    slow = [z.T @ z, z.T @ here, here.T.astype(float) @ here, (z**2).T @ here]
    np.testing.assert_allclose(found.products, slow, rtol=1e-11, atol=1e-11)
    for a, labels in enumerate(found.vocabulary.labels):
        start = found.vocabulary.offsets[a]
        for k, label in enumerate(labels[:9]):
            own = codes[a] == int(label[1:])
            wanted = [z[own].sum(axis=0), here[own].sum(axis=0)]
            np.testing.assert_allclose(found.by_value[:, start + k], wanted, atol=1e-9)


def test_cross_moments_add_up_however_their_numbers_are_measured():
    rng = np.random.default_rng(5)
    x = np.where(rng.random((60, 2)) < 0.2, np.nan, rng.normal(size=(60, 2)) * [1, 1e4] + [7, -3e4])
    x[30:] *= 40  # the second part has another middle and another scale
    rows = [
        {"job": list("abc" * 10), "a": part[:, 0], "b": part[:, 1]} for part in (x[:30], x[30:])
    ]
    first, second = (CrossMoments.of(Table.of(part)) for part in rows)
    assert not np.array_equal(first.unit, second.unit)
    whole = CrossMoments.of(Table.of({"job": list("abc" * 20), "a": x[:, 0], "b": x[:, 1]}), first)
    total = first + second
    np.testing.assert_allclose(total.products, whole.products, rtol=1e-10)
    np.testing.assert_allclose(total.by_value, whole.by_value, rtol=1e-10)
    back = total - first
    np.testing.assert_allclose(back.centred(), second.centred(), rtol=1e-8)


# -- at the edges ----------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [1e-9, 1e9])
def test_responses_do_not_depend_on_the_unit_of_the_tables(scale):
    _, _, counts, tables = sample(5)
    scaled = [scale * table for table in tables]
    np.testing.assert_allclose(responses(counts, scaled, 4), responses(counts, tables, 4))
    assert leading_axes(counts, scaled, 4).shape == leading_axes(counts, tables, 4).shape


def test_the_axes_kept_are_those_asked_for_and_their_equals():
    _, _, counts, tables = sample(6)
    for n_axes in range(1, 9):
        assert leading_axes(counts, tables, n_axes).shape == (9, n_axes)
    wide = [np.hstack([table, table]) for table in tables]  # twice as wide, no more directions
    assert leading_axes(counts, wide, 18).shape == (18, 8)


@pytest.mark.parametrize("n", [2, 3, 5, 40])
def test_few_numbers_correlate_as_numpy_says(n):
    """Also of large and of small numbers, each measured from its middle in a unit of its own."""
    x = np.random.default_rng(n).normal(size=(n, 3)) * [1, 1e-7, 1e5] + [3, 0.5, -1e7]
    moments = CrossMoments.of(Table.of(dict(zip("abc", x.T, strict=True))))
    np.testing.assert_allclose(moments.correlations(), np.corrcoef(x.T), rtol=1e-9)
    centred = (x - x.mean(axis=0)).T @ (x - x.mean(axis=0))
    np.testing.assert_allclose(moments.centred(), centred, rtol=1e-8)
    np.testing.assert_allclose(
        moments.centred(1 / moments.unit), centred / np.outer(*[moments.unit] * 2), rtol=1e-8
    )
    np.testing.assert_allclose(moments.deviations(n), x.std(axis=0), rtol=1e-9)
    means, times = moments.means()
    np.testing.assert_allclose(means, x.mean(axis=0), rtol=1e-12)
    assert times.tolist() == [n] * 3
    z = np.abs((x - moments.origin) / moments.unit).max(axis=0)
    assert ((z > 0.5) & (z <= 1)).all()  # no digit is lost
    np.testing.assert_array_equal(moments.origin, np.median(x, axis=0))
    assert (np.frexp(moments.unit)[0] == 0.5).all()  # whole powers of two


def test_a_column_without_numbers_has_no_means():
    rows = {"g": list("uvw"), "x": [np.nan] * 3, "y": [1.0, np.nan, 3.0]}
    moments = CrossMoments.of(Table.of(rows, {"x": "numeric"}))
    means, times = moments.means()
    assert means.tolist() == [0, 2] and times.tolist() == [0, 2]
    assert moments.value_means().tolist() == [[0, 1], [0, 2], [0, 3]]
    assert moments.value_sums().tolist() == [[0, -1], [0, 0], [0, 1]]
    assert moments.centred().tolist() == [[0, 0], [0, 2]]
    assert moments.deviations(2).tolist() == [0, 1]
    assert moments.unit[0] == 1 and moments.origin[0] == 0


def test_numbers_too_far_apart_are_measured_from_zero():
    """Their differences are no floats."""
    far = 0.55 * 2.0**1023
    moments = CrossMoments.of(Table.of({"x": [-far, far, far]}))
    assert moments.origin[0] == 0 and moments.unit[0] == 2.0**1023
    assert moments.means()[0] == far / 3 and moments.value_means().shape == (0, 1)
    near = CrossMoments.of(Table.of({"x": [-far / 1.2, far / 1.2, far / 1.2]}))
    assert near.origin[0] == far / 1.2


def test_sums_of_large_numbers_are_floats_in_deviations():
    far = 2.0**1023
    moments = CrossMoments.of(Table.of({"g": list("uuuvvv"), "x": [far] * 3 + [-far] * 3}))
    deviation = moments.deviations(6)
    assert deviation.tolist() == [far]
    assert moments.value_sums(1 / deviation).tolist() == [[3], [-3]]
    tiny = CrossMoments.of(Table.of({"x": [0.0, 5e-324]}))
    assert tiny.unit.tolist() == [5e-324] and tiny.deviations(2).tolist() == [0]


def test_gaps_of_the_first_rows_do_not_hide_the_numbers_after(monkeypatch):
    monkeypatch.setattr(spectra, "SUMMED_ROWS", 4)
    x = np.array([np.nan] * 6 + [8.0, 2.0, 5.0])
    moments = CrossMoments.of(Table.of({"x": x, "y": np.arange(9.0)}))
    assert moments.origin.tolist() == [5, 1.5] and moments.unit.tolist() == [4, 2]


@pytest.mark.parametrize("joint", [256, 1])
def test_sums_by_value_are_those_of_pandas(joint, monkeypatch):
    pd = pytest.importorskip("pandas")
    monkeypatch.setattr(spectra.pack_columns, "__defaults__", (joint,))  # together or not
    rng = np.random.default_rng(joint)
    frame = pd.DataFrame(
        {f"c{i}": rng.integers(0, s, 500).astype(str) for i, s in enumerate((3, 300, 17, 5, 2))}
    )
    frame["x"] = rng.normal(size=500)
    moments = CrossMoments.of(Table.of(frame))
    sums, times = moments.by_value
    found = moments.origin * times[:, 0] + moments.unit * sums[:, 0]
    for a in range(5):
        words, span = moments.vocabulary.labels[a], moments.vocabulary.span(a)
        wanted = frame.groupby(f"c{a}")["x"].agg(["sum", "count"]).loc[list(words)]
        np.testing.assert_allclose(found[span], wanted["sum"], atol=1e-9)
        np.testing.assert_array_equal(times[span, 0], wanted["count"])
