"""MCA, CA, FAMD and MFA against singular values of the whole table, and published figures."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import tabweave
from tabweave import CA, FAMD, MCA, MFA, Counts
from tabweave.embed import factors

SMOKERS = np.array([[4, 2, 3, 2], [4, 3, 7, 4], [25, 10, 12, 4], [18, 24, 33, 13], [10, 6, 7, 2]])


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({f"c{i}": rng.choice(list("abcd")[: 2 + i % 3], 200) for i in range(4)})
    frame["c4"] = np.where(rng.random(200) < 0.7, frame["c0"], "z")
    frame.loc[::17, "c1"] = None
    return frame


@pytest.fixture(scope="module")
def mixed(rows):
    rng = np.random.default_rng(1)
    frame = rows[["c0", "c1", "c4"]].copy()
    frame["x"] = 1e6 + 1e3 * (rng.normal(size=200) + 2 * (frame["c0"] == "a"))
    frame["y"] = frame["x"] * 2 + rng.normal(0, 500, 200)
    frame.loc[::13, "y"] = np.nan
    frame["flat"] = 3.0
    return frame


def indicators(frame):
    return pd.get_dummies(frame.fillna("~"), dtype=float).to_numpy()


def features(frame):
    """Standardised numbers, gaps at the mean, and indicators over the root of their share."""
    parts = []
    for name in frame:
        if frame[name].dtype.kind == "f":
            x = frame[name].fillna(frame[name].mean()).to_numpy()
            parts.append(((x - x.mean()) / (x.std() or 1))[:, None])
        else:
            z = indicators(frame[[name]])
            parts.append((z - z.mean(axis=0)) / np.sqrt(z.mean(axis=0)))
    return np.hstack(parts)


def correspondence(table):
    """Return row and column coordinates and singular values of a whole table of counts."""
    p = table / table.sum()
    r, c = p.sum(axis=1), p.sum(axis=0)
    u, s, v = np.linalg.svd((p - np.outer(r, c)) / np.sqrt(np.outer(r, c)), full_matrices=False)
    kept = s > 1e-9
    u, s, v = u[:, kept], s[kept], v[kept]
    return u * s / np.sqrt(r)[:, None], v.T * s / np.sqrt(c)[:, None], s


def same(a, b):
    """FactorAxes point either way."""
    np.testing.assert_allclose(np.abs(a), np.abs(b), atol=1e-9)


def test_mca_is_the_correspondence_analysis_of_indicators(rows):
    f, g, s = correspondence(indicators(rows))
    model = MCA(4).fit(rows)
    np.testing.assert_allclose(model.eigenvalues_, s[:4] ** 2)
    np.testing.assert_allclose(model.total_inertia_, (s**2).sum())
    np.testing.assert_allclose(model.explained_inertia_ratio_, s[:4] ** 2 / (s**2).sum())
    same(model.transform(rows), f[:, :4])
    same(model.column_coordinates(), g[:, :4])
    cosines = f**2 / (f**2).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.row_cosines(rows), cosines[:, :4], atol=1e-9)
    np.testing.assert_allclose(
        model.column_cosines(), (g**2 / (g**2).sum(axis=1, keepdims=True))[:, :4], atol=1e-9
    )
    np.testing.assert_allclose(model.row_contributions(rows), f[:, :4] ** 2 / 200 / s[:4] ** 2)
    mass = indicators(rows).mean(axis=0) / 5
    np.testing.assert_allclose(
        model.column_contributions(), mass[:, None] * g[:, :4] ** 2 / s[:4] ** 2, atol=1e-9
    )


def test_many_values_are_found_by_iteration(rows, monkeypatch):
    dense = MCA(3, correction="greenacre").fit(rows)
    with monkeypatch.context() as patch:
        patch.setattr("tabweave.counts.counting.DENSE_VALUES", 4)
        patch.setattr(factors, "MAX_DENSE_FEATURES", 4)
        sparse = MCA(3, correction="greenacre").fit(rows)
        with pytest.raises(ValueError, match="use correction='greenacre'"):
            MCA(3, correction="benzecri").fit(rows)
    np.testing.assert_allclose(sparse.transform(rows), dense.transform(rows), atol=1e-8)
    np.testing.assert_allclose(sparse.explained_inertia_ratio_, dense.explained_inertia_ratio_)


def test_corrections(rows):
    s = correspondence(indicators(rows))[2] ** 2
    burt = indicators(rows).T @ indicators(rows)
    k, spans = 5, np.cumsum([0, *(rows[name].fillna("~").nunique() for name in rows)])
    adjusted = np.where(s > 1 / k, (k / (k - 1) * (s - 1 / k)) ** 2, 0)
    benzecri = MCA(2, correction="benzecri").fit(rows)
    np.testing.assert_allclose(benzecri.corrected_eigenvalues_, adjusted[:2])
    np.testing.assert_allclose(benzecri.explained_inertia_ratio_, adjusted[:2] / adjusted.sum())
    # Greenacre's total is the mean inertia of the blocks of the Burt matrix off its diagonal.
    inertias = []
    for a in range(k):
        for b in range(k):
            if a != b:
                block = burt[spans[a] : spans[a + 1], spans[b] : spans[b + 1]] / 200
                expected = np.outer(block.sum(axis=1), block.sum(axis=0))
                inertias.append(((block - expected) ** 2 / expected).sum())
    greenacre = MCA(2, correction="greenacre").fit(rows)
    np.testing.assert_allclose(greenacre.explained_inertia_ratio_, adjusted[:2] / np.mean(inertias))


def test_famd_is_the_pca_of_features(mixed):
    y = features(mixed)
    _, s, v = np.linalg.svd(y / np.sqrt(200), full_matrices=False)
    model = FAMD(3).fit(mixed)
    np.testing.assert_allclose(model.eigenvalues_, s[:3] ** 2, rtol=1e-9)
    np.testing.assert_allclose(model.total_inertia_, (s**2).sum())
    f = y @ v[:3].T
    same(model.transform(mixed), f)
    np.testing.assert_allclose(
        model.row_cosines(mixed), f**2 / (y**2).sum(axis=1, keepdims=True), atol=1e-9
    )
    found = model.column_coordinates()
    axes = model.transform(mixed)
    means = [axes[(mixed["c0"] == value).to_numpy()].mean(axis=0) for value in "ab"]
    np.testing.assert_allclose(found.loc["c0"], means, atol=1e-9)
    with_x = [np.corrcoef(mixed["x"], axis)[0, 1] for axis in axes.T]
    np.testing.assert_allclose(found.loc["x"], [with_x], atol=1e-9)
    np.testing.assert_allclose(model.column_cosines().loc["x"], np.square([with_x]), atol=1e-9)
    mean_rows = np.stack([y[(mixed["c0"] == value).to_numpy()].mean(axis=0) for value in "ab"])
    expected = np.square(means) / (mean_rows**2).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.column_cosines().loc["c0"], expected, atol=1e-9)
    np.testing.assert_allclose(model.column_contributions().sum(), 1)


def test_mfa_divides_groups_by_their_first_eigenvalue(mixed):
    groups = {"one": ["c0", "x", "flat"], "two": ["c1", "c4"], "three": ["y"]}
    scaled = []
    for group in groups.values():
        y = features(mixed[group]) / np.sqrt(200)
        scaled.append(y / np.linalg.norm(y, 2))
    _, s, v = np.linalg.svd(np.hstack(scaled), full_matrices=False)
    model = MFA(groups, 3).fit(mixed)
    np.testing.assert_allclose(model.eigenvalues_, s[:3] ** 2)
    rows = np.sqrt(200) * np.hstack(scaled) @ v[:3].T
    same(model.transform(mixed), rows)
    parts = model.group_coordinates(mixed)
    np.testing.assert_allclose(sum(parts.values()) / 3, model.transform(mixed), atol=1e-9)
    with pytest.raises(ValueError, match="each of the columns"):
        MFA({"one": ["c0"]}).fit(mixed)


def test_ca_gives_the_published_figures():
    """The smokers of Greenacre (1984)."""
    model = CA(3).fit(SMOKERS)
    np.testing.assert_allclose(model.eigenvalues_, [0.074759, 0.010017, 0.000414], atol=5e-7)
    f, g, _ = correspondence(SMOKERS)
    same(model.transform(SMOKERS), f)
    same(model.column_coordinates(), g)
    np.testing.assert_allclose(model.row_cosines(SMOKERS).sum(axis=1), 1)
    np.testing.assert_allclose(model.column_cosines().sum(axis=1), 1)
    np.testing.assert_allclose(model.row_contributions(SMOKERS).sum(axis=0), 1)
    np.testing.assert_allclose(model.column_contributions().sum(axis=0), 1)
    same(model.supplementary(SMOKERS, SMOKERS[:, :1])[0], g[0])


def test_mca_gives_the_figures_that_factominer_prints():
    """Six questions of FactoMineR's tea [Lê, Josse and Husson 2008], as its summary shows them."""
    tea = pd.read_csv(Path(__file__).parents[1] / "fixtures" / "tea.csv")
    times, tea = tea["n"], tea.drop(columns="n")
    model = MCA(11).fit(tea, sample_weight=times)
    variance = "0.279 0.261 0.219 0.189 0.177 0.156 0.144 0.141 0.117 0.087 0.062"
    assert [f"{v:.3f}" for v in model.eigenvalues_] == variance.split()
    share = "15.238 14.232 11.964 10.333 9.667 8.519 7.841 7.705 6.392 4.724 3.385"
    assert [f"{100 * v:.3f}" for v in model.explained_inertia_ratio_] == share.split()
    first = [
        ["black", "alone", "tea bag", "sugar", "chain store", "Not.lunch"],
        ["black", "milk", "tea bag", "No.sugar", "chain store", "Not.lunch"],
        ["Earl Grey", "alone", "tea bag", "No.sugar", "chain store", "Not.lunch"],
        ["Earl Grey", "alone", "tea bag", "sugar", "chain store", "Not.lunch"],
    ]
    rows = pd.DataFrame(first, columns=tea.columns)
    printed = [[0.298, 0.328, 0.327], [0.237, 0.136, 0.695]]  # axes point either way
    printed += [[0.369, 0.300, 0.202], [0.530, 0.318, 0.211]]
    np.testing.assert_allclose(np.abs(model.transform(rows))[:, :3], printed, atol=5.1e-4)
    contributions = [[0.106, 0.137], [0.067, 0.024], [0.162, 0.115], [0.335, 0.129]]
    np.testing.assert_allclose(
        100 * model.row_contributions(rows)[:, :2], contributions, atol=5.1e-4
    )
    cosines = [[0.086, 0.105], [0.036, 0.012], [0.231, 0.153], [0.460, 0.166]]
    np.testing.assert_allclose(model.row_cosines(rows)[:, :2], cosines, atol=5.1e-4)


def test_ca_of_counts_is_that_of_their_table(rows):
    counts = Counts.of(rows[["c0", "c4"]])
    found = CA(2).fit_counts(counts)
    np.testing.assert_allclose(found.eigenvalues_, CA(2).fit(counts.block(0, 1)).eigenvalues_)
    with pytest.raises(ValueError, match="two columns"):
        CA().fit_counts(Counts.of(rows))


@pytest.mark.parametrize("model", [MCA(3), FAMD(3), MFA(n_components=3)])
def test_rows_are_added_and_forgotten(model, rows, mixed):
    frame = rows if isinstance(model, MCA) else mixed
    whole = model.fit(frame).transform(frame)
    other = type(model)(**model.get_params()).partial_fit(frame[:50]).partial_fit(frame[50:])
    other = other.partial_fit(frame[:30]).forget(frame[:30])
    np.testing.assert_allclose(other.transform(frame), whole, atol=1e-9)


def test_ca_adds_and_forgets_rows():
    other = CA().partial_fit(SMOKERS[:2]).partial_fit(SMOKERS[1:]).forget(SMOKERS[1:2])
    np.testing.assert_allclose(other.transform(SMOKERS), CA().fit(SMOKERS).transform(SMOKERS))


@pytest.mark.parametrize("model", [MCA(2), FAMD(2)])
def test_supplementary_columns_lie_where_active_ones_would(model, rows, mixed):
    frame = rows if isinstance(model, MCA) else mixed
    again = model.fit(frame).supplementary(frame, frame[["c0"]])
    expected = model.column_coordinates().loc[["c0"]]
    np.testing.assert_allclose(again, expected, atol=1e-9)
    with pytest.raises(ValueError, match="expected columns of"):
        model.supplementary(frame, frame[["c0"]][:3])


@pytest.mark.parametrize("model", [MCA(2), FAMD(2), MFA(), CA()])
def test_files_and_sql(model, rows, mixed, tmp_path):
    frame = {MCA: rows, CA: SMOKERS}.get(type(model), mixed)
    model.fit(frame).save(tmp_path / "model")
    loaded = tabweave.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.transform(frame), model.transform(frame))
    if not isinstance(model, CA):
        with pytest.importorskip("duckdb").connect() as base:
            base.register("rows", frame.reset_index())
            script = tabweave.export.sql(model, "duckdb", keep=["index"])
            base.execute(script.tables)
            found = base.execute(f"SELECT * FROM ({script.select}) ORDER BY index").fetchall()
        np.testing.assert_allclose(np.array(found)[:, 1:], model.transform(frame), atol=1e-9)


@pytest.mark.parametrize("where", ["parquet", "csv", "stream", "dask"])
@pytest.mark.parametrize("model", [MCA(2), FAMD(2), MFA()])
def test_a_source_is_read_in_batches(model, where, rows, mixed, tmp_path, monkeypatch):
    arrow = pytest.importorskip("pyarrow")
    frame = rows if isinstance(model, MCA) else mixed
    expected = clone(model).fit(frame)
    batches = arrow.Table.from_pandas(frame, preserve_index=False).to_batches(max_chunksize=60)
    if where == "parquet":
        for i, batch in enumerate(batches):
            pytest.importorskip("pyarrow.parquet").write_table(
                arrow.Table.from_batches([batch]), tmp_path / f"{i}.parquet"
            )
        source = str(tmp_path / "*.parquet")
    elif where == "csv":
        source = tmp_path / "rows.csv"
        frame.to_csv(source, index=False)
    elif where == "stream":
        source = arrow.RecordBatchReader.from_batches(batches[0].schema, batches)
    else:
        source = pytest.importorskip("dask.dataframe").from_pandas(frame, npartitions=3)
    monkeypatch.setattr("tabweave.engines.reading.read", None)  # nothing reads all rows into memory
    model = clone(model).fit(source)
    np.testing.assert_allclose(model.eigenvalues_, expected.eigenvalues_, rtol=1e-9)
    np.testing.assert_allclose(model.transform(frame), expected.transform(frame), atol=1e-9)
    assert model.schema_ == expected.schema_
    if where == "parquet":  # and once more: all rows twice
        np.testing.assert_allclose(
            model.partial_fit(source).learn().eigenvalues_, expected.eigenvalues_, rtol=1e-9
        )


def test_sets_are_refused():
    with pytest.raises(ValueError, match="column 's' is set-valued"):
        MCA().fit({"s": [["a"], ["b", "c"]], "t": ["x", "y"]})


def test_a_table_of_one_row_has_no_axis():
    assert MCA().fit([["a", "b"]]).transform([["a", "b"]]).shape == (1, 0)


def test_large_numbers_do_not_overflow():
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"job": rng.choice(["cook", "judge"], 50), "pay": rng.normal(size=50)})
    huge = rows.assign(pay=rows["pay"] * 2.0**700)
    np.testing.assert_allclose(
        np.abs(FAMD().fit_transform(huge)), np.abs(FAMD().fit_transform(rows)), atol=1e-9
    )


def test_a_table_is_there_before_it_is_asked():
    for ask in ("column_coordinates", "column_contributions", "column_cosines"):
        with pytest.raises(NotFittedError):
            getattr(CA(), ask)()
    with pytest.raises(NotFittedError):
        CA().row_contributions([[1, 2], [3, 4]])


def test_what_cannot_be_forgotten_stays():
    model = CA(1).fit([[1, 2], [3, 4]])
    before = model.transform([[5, 1]])
    with pytest.raises(ValueError, match="counts above 0"):
        model.forget([[1, 2], [3, 4]])
    np.testing.assert_array_equal(model.transform([[5, 1]]), before)
    np.testing.assert_allclose(model.partial_fit([[2, 1]]).column_masses_, [6 / 13, 7 / 13])


def test_a_supplementary_column_without_numbers_lies_in_the_centre():
    rows = {"sky": ["sun", "sun", "rain", "rain"], "hat": ["yes", "no", "no", "no"]}
    assert (MCA(1).fit(rows).supplementary(rows, {"z": [np.nan] * 4}).to_numpy() == 0).all()


@pytest.mark.parametrize("model", [MCA(), FAMD(), MFA()])
def test_rows_that_cannot_be_forgotten_leave_the_model_as_it_was(model, mixed):
    frame = mixed[["c0", "c1", "c4"]] if isinstance(model, MCA) else mixed
    before = clone(model).fit(frame).transform(frame)
    model = clone(model).fit(frame)
    with pytest.raises(ValueError, match="cannot subtract more rows than were counted"):
        model.forget(pd.concat([frame, frame]))
    with pytest.raises(ValueError, match="counts of at least one row"):
        model.forget(frame)
    np.testing.assert_array_equal(model.transform(frame), before)
    model.forget(frame[:50]).partial_fit(frame[:50])
    np.testing.assert_allclose(model.transform(frame), before, atol=1e-9)


@pytest.mark.parametrize("size", [50, 256])
def test_columns_that_say_nothing_of_each_other_have_axes_too(size):
    rows = {"a": [f"v{i:03d}" for i in range(size)] * 3, "b": list("xyz") * size}
    model = MCA(2).fit(rows)
    np.testing.assert_allclose(model.eigenvalues_, 0.5)
    assert model.transform(rows).shape == (3 * size, 2)


def test_a_model_needs_rows_first_and_no_rows_later(rows):
    with pytest.raises(ValueError, match="Found array with 0 sample"):
        MCA().fit(rows[:0])
    model = MCA().fit(rows)
    assert model.partial_fit(rows[:0]).counts_ == MCA().fit(rows).counts_


def test_features_are_scaled_alike_in_sparse_and_dense_matrices(rows):
    features = factors.FactorFeatures.of(Counts.of(tabweave.Table.of(rows)), None)
    by = np.linspace(1, 2, len(features.root))
    whole = factors.FactorFeatures(
        **{
            **vars(features),
            "matrix": np.asarray(
                features.matrix.todense()
                if hasattr(features.matrix, "todense")
                else features.matrix
            ),
        }
    )
    few = factors.FactorFeatures(**{**vars(features), "matrix": sparse.csr_array(whole.matrix)})
    expected = whole.matrix * by * by[:, None]
    np.testing.assert_allclose(whole.scaled(by).matrix, expected)
    np.testing.assert_allclose(few.scaled(by).matrix.todense(), expected)
    np.testing.assert_allclose(few.scaled(by).root, features.root * by)
