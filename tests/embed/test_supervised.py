"""SupervisedWeave against its docstring, written out; and what a target must not give away."""

import warnings

import numpy as np
import pytest
from scipy.linalg import helmert
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import mutual_info_score
from sklearn.metrics.cluster import contingency_matrix, expected_mutual_information
from sklearn.model_selection import cross_val_score

import tabweave
from tabweave import Column, Counts, SupervisedWeave, Table, Weave, _compat
from tabweave.columns.table import take_rows
from tabweave.counts.couplings import class_ties
from tabweave.embed import supervised
from tabweave.embed.supervised import _PENALTIES, aligned, most_coefficients
from tabweave.embed.value_metric import value_lookups
from tabweave.engines.reading import read_fitted


def categories(n=150, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.choice(["no", "maybe", "yes"], n, p=[0.5, 0.3, 0.2])
    near = np.where(rng.random(n) < 0.7, y, rng.choice(["no", "maybe", "yes"], n))
    other = np.where(rng.random(n) < 0.5, near, rng.choice(["p", "q"], n))
    return {"near": near, "other": other, "noise": rng.choice(list("uvw"), n)}, y


def mixed(n=200, seed=0):
    rows, y = categories(n, seed)
    rng = np.random.default_rng(seed + 1)
    age = np.where(y == "yes", 60, 40) + rng.normal(0, 8, n)
    age[rng.random(n) < 0.1] = np.nan
    return {**rows, "age": age, "grade": rng.choice(["low", "mid", "high"], n)}, y


GRADES = {"grade": Column("grade", "ordinal", levels=("low", "mid", "high"))}


def squared(x):
    return ((x[:, None] - x) ** 2).sum(axis=2)


def uncertainty(a, b):
    """Symmetric uncertainty less what chance brings, from scikit-learn's information."""
    mutual = mutual_info_score(a, b)
    mutual -= expected_mutual_information(contingency_matrix(a, b, sparse=True), len(a))
    return 2 * max(mutual, 0) / (mutual_info_score(a, a) + mutual_info_score(b, b))


def one_hot(rows):
    return np.hstack(
        [(np.asarray(c)[:, None] == np.unique(c)).astype(float) for c in rows.values()]
    )


# -- the formulas -------------------------------------------------------------------------------


@pytest.mark.parametrize("power", [0, 0.5, 1])
def test_columns_weigh_as_they_are_tied_to_the_classes(power):
    rows, y = categories()
    ties = np.array([uncertainty(column, y) for column in rows.values()])
    expected = np.maximum(ties, 0.01 * ties.max()) ** power
    model = SupervisedWeave(weight_power=power).fit(rows, y)
    np.testing.assert_allclose(list(model.weights_.values()), expected / expected.mean())


@pytest.mark.parametrize("n_tags", [0, 9])  # of one class, which is no more likely for that
def test_values_differ_by_couplings_and_by_classes(n_tags):
    rows, y = categories()
    rows["tags"], kinds = [list("abcdefghi")[: n_tags * (c == y[0])] for c in y], {"tags": "set"}
    model = SupervisedWeave(discriminant=0, schema=kinds).fit(rows, y)
    plain = Weave(schema=kinds).fit(rows)
    del rows["tags"]
    for name, column in rows.items():
        labels = plain.counts_.labels[plain.counts_.vocabulary.index(name)]
        f = np.array([(column == v).mean() for v in labels])
        prior = np.array([(y == c).mean() for c in np.unique(y)])
        counts = np.array(
            [[((column == v) & (y == c)).sum() for c in np.unique(y)] for v in labels]
        )
        p = (counts + 5 * prior) / (counts.sum(axis=1, keepdims=True) + 5)
        by_class = squared(p)
        by_class *= (1 - f @ f) / (f @ by_class @ f)
        # Of Weave, whose own test writes it out: half mismatch, half couplings.
        halves = plain.value_distances(name).to_numpy() ** 2 / plain.weights_[name]
        mismatch = 1 - np.eye(len(f))
        couplings = 0.99 * (2 * halves - mismatch) + 0.01 * mismatch
        expected = model.weights_[name] * (couplings + by_class) / 2
        np.testing.assert_allclose(model.value_distances(name) ** 2, expected, atol=1e-8)


def test_the_discriminant_is_ridge_regression_on_one_hot_columns():
    rows, y = categories()
    model = SupervisedWeave().fit(rows, y)
    Y = helmert(3).T[np.unique(y, return_inverse=True)[1]]
    P = Ridge(model.penalty_).fit(one_hot(rows), Y).predict(one_hot(rows)).reshape(len(y), -1)
    found = squared(model.discriminant_.coordinates(Table.of(rows)))
    expected = squared(P)
    np.testing.assert_allclose(found / found.mean(), expected / expected.mean(), atol=1e-7)
    columns = squared(SupervisedWeave(discriminant=0).fit_counts(model.counts_).transform(rows))
    assert found.mean() == pytest.approx(0.3 * columns.mean())
    np.testing.assert_allclose(squared(model.transform(rows)), found + columns, atol=1e-8)


def test_the_discriminant_of_numbers_is_ridge_regression_on_steps():
    """Each from a number to the next, where each is alone in its bin; none lead to a gap."""
    rng = np.random.default_rng(0)
    age, town = rng.choice([10.5, 20.5, 40.5, 50.5, np.nan], 200), rng.choice(["a", "b"], 200)
    y = np.where(np.nan_to_num(age) + rng.normal(0, 15, 200) > 30, "yes", "no")
    rows = {"age": age, "town": town}
    model = SupervisedWeave().fit(rows, y)
    steps = age[:, None] > [10.5, 20.5, 40.5]
    X = np.column_stack([steps, np.isnan(age), one_hot({"town": town})])
    P = Ridge(model.penalty_).fit(X, y == "yes").predict(X)
    found = squared(model.discriminant_.coordinates(Table.of(rows)))
    expected = squared(P[:, None])
    np.testing.assert_allclose(found / found.mean(), expected / expected.mean(), atol=1e-7)


def test_the_discriminant_of_sets_is_ridge_regression_on_the_means_of_their_elements():
    rows, y = categories()
    rng = np.random.default_rng(0)
    tags = [sorted(rng.choice(list("pqrst"), 3, replace=False)) for _ in y]
    rows, kinds = {**rows, "tags": tags}, {"tags": "set"}
    model = SupervisedWeave(schema=kinds).fit(rows, y)
    Y = helmert(3).T[np.unique(y, return_inverse=True)[1]]
    single = one_hot({name: column for name, column in rows.items() if name != "tags"})
    X = np.hstack([single, [[(e in cell) / 3 for e in "pqrst"] for cell in tags]])
    P = Ridge(model.penalty_).fit(X, Y).predict(X).reshape(len(y), -1)
    found = squared(model.discriminant_.coordinates(Table.of(rows, kinds)))
    expected = squared(P)
    np.testing.assert_allclose(found / found.mean(), expected / expected.mean(), atol=1e-7)
    regression = model.regression(model.counts_.class_pairs.astype(float), helmert(3).T)
    mean = regression.coordinates(Table.of(rows, kinds)).mean(axis=0)
    np.testing.assert_allclose(mean, 0, atol=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_the_penalty_has_the_least_generalised_cross_validation(seed):
    rows, y = categories(60 + 40 * seed, seed)
    X, Y = one_hot(rows), helmert(3).T[np.unique(y, return_inverse=True)[1]]
    X, Y, n = X - X.mean(axis=0), Y - Y.mean(axis=0), len(y)
    scores = {}
    for penalty in _PENALTIES:
        hat = X @ np.linalg.solve(X.T @ X + penalty * np.eye(X.shape[1]), X.T)
        scores[penalty] = ((Y - hat @ Y) ** 2).sum() / (1 - (np.trace(hat) + 1) / n) ** 2
    assert SupervisedWeave().fit(rows, y).penalty_ == min(scores, key=scores.get)


def test_a_missing_number_speaks_for_its_own_classes():
    rows, y = mixed(400)
    y = np.where(np.isnan(rows["age"]), "yes", y)
    model = SupervisedWeave(schema=GRADES).fit(rows, y)
    row = {name: column[0] for name, column in rows.items()}
    gaps = [model.explain({**row, "age": None}, {**row, "age": age})["age"] for age in (65.0, 35.0)]
    assert 0 < gaps[0] < gaps[1]


@pytest.mark.parametrize("discriminant", [0, 0.3])
def test_explain_adds_up_to_the_squared_distance(discriminant):
    rows, y = mixed()
    model = SupervisedWeave(discriminant, schema=GRADES).fit(rows, y)
    a, b = ({name: column[i] for name, column in rows.items()} for i in (3, 71))
    shares = model.explain(a, b)
    assert list(shares) == list(rows)
    assert sum(shares.values()) == pytest.approx(model.pairwise_distances([a], [b])[0, 0] ** 2)
    E = model.transform(rows)
    gaps = np.zeros(len(E)) + sum(model.space_.gaps(read_fitted(model, rows)).values())
    expected = squared(E) + gaps[:, None] + gaps
    np.fill_diagonal(expected, 0)
    np.testing.assert_allclose(expected, model.pairwise_distances(rows) ** 2, atol=1e-8)
    assert E.shape[1] == len(model.get_feature_names_out())


# -- cross-fitting ------------------------------------------------------------------------------


def test_a_model_on_top_gains_nothing_from_a_random_target():
    rng = np.random.default_rng(0)
    rows = {f"c{i}": np.char.add("v", rng.integers(0, 60, 300).astype(str)) for i in range(4)}
    y = rng.choice(["u", "v"], 300)
    model = SupervisedWeave()
    ahead = LogisticRegression(max_iter=1000)
    honest = cross_val_score(ahead, model.fit_transform(rows, y), y).mean()
    leaking = cross_val_score(ahead, model.transform(rows), y).mean()
    assert honest < 0.58 < 0.7 < leaking


def test_a_target_has_no_part_in_what_teaches_its_own_row():
    """Change the class of one row: what teaches its part stays, what teaches others does not."""
    rows, y = mixed()
    changed = y.copy()
    changed[17] = "maybe" if y[17] != "maybe" else "no"
    model = SupervisedWeave(schema=GRADES).fit(rows, y)
    other = SupervisedWeave(schema=GRADES).fit(rows, changed)
    table = Table.of(rows, model.schema_)
    folds = zip(model.left_out(table, y), other.left_out(table, changed), strict=True)
    for (part, pairs), (same_part, same_pairs) in folds:
        np.testing.assert_array_equal(part, same_part)
        own = take_rows(table, part)
        found, expected = (model.taught_by(p).coordinates(own) for p in (pairs, same_pairs))
        assert np.array_equal(pairs, same_pairs) == (17 in part)
        assert np.array_equal(found, expected) == (17 in part)


def test_rows_of_a_file_do_not_learn_from_their_own_target(tmp_path):
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    pytest.importorskip("duckdb", reason="duckdb is not installed")
    rng = np.random.default_rng(0)
    rows = pandas.DataFrame({f"x{i}": rng.integers(0, 60, 400).astype(str) for i in range(4)})
    rows["y"] = rng.choice(["p", "q"], 400)  # which depends on nothing
    rows.to_csv(tmp_path / "rows.csv", index=False)
    schema = dict.fromkeys(["x0", "x1", "x2", "x3"], "nominal")
    from_file = SupervisedWeave(schema=schema).fit_transform(tmp_path / "rows.csv", "y")
    for name in schema:
        rows[name] = rows[name].astype(int)  # as a file's cells are read
    in_memory = SupervisedWeave(schema=schema).fit_transform(rows[[*schema]], rows["y"])
    np.testing.assert_array_equal(from_file, in_memory)


def test_rows_on_a_cluster_are_not_cross_fitted():
    frames = pytest.importorskip("dask.dataframe", reason="dask is not installed")
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    rows = pandas.DataFrame({"a": ["x", "y"] * 30, "y": ["p", "q"] * 30})
    with pytest.raises(TypeError, match="got a frame on a cluster; collect it"):
        SupervisedWeave().fit_transform(frames.from_pandas(rows, npartitions=2), "y")


def test_rows_of_fit_transform_are_those_of_the_other_parts():
    rows, y = mixed()
    model = SupervisedWeave(schema=GRADES)
    E = model.fit_transform(rows, y)
    assert E.shape == model.transform(rows).shape
    assert not np.allclose(E, model.transform(rows))
    np.testing.assert_array_equal(E, SupervisedWeave(schema=GRADES).fit_transform(rows, y))
    couplings = model.target_free().factors["near"].common.shape[1]  # those do not ask the target
    np.testing.assert_allclose(E[:, :couplings], model.transform(rows)[:, :couplings])


# -- numeric targets ----------------------------------------------------------------------------


def prices(n=300):
    rng = np.random.default_rng(0)
    town, size = rng.choice(["a", "b", "c", "d"], n), rng.normal(100, 20, n)
    worth = {"a": 0.0, "b": 1.0, "c": 5.0, "d": 6.0}
    price = np.array([worth[t] for t in town]) + size / 20 + rng.normal(0, 0.3, n)
    return {"town": town, "size": size, "noise": rng.choice(["x", "y"], n)}, price


def test_numbers_as_a_target():
    rows, price = prices()
    model = SupervisedWeave().fit(rows, price)
    assert model.target_.numeric and len(model.counts_.classes) == 16
    assert model.weights_["noise"] == min(model.weights_.values())
    # Towns of like prices are near each other.
    apart = SupervisedWeave(discriminant=0).fit(rows, price).value_distances("town")
    assert max(apart.loc["a", "b"], apart.loc["c", "d"]) < min(
        apart.loc["a", "c"], apart.loc["b", "d"]
    )
    E = model.transform(rows)
    assert Ridge().fit(E[::2], price[::2]).score(E[1::2], price[1::2]) > 0.9


def test_whole_numbers_are_classes():
    rows, price = prices()
    model = SupervisedWeave().fit(rows, price.round().astype(int))
    assert not model.target_.numeric
    assert set(model.counts_.classes) == set(price.round().astype(int).tolist())


@pytest.mark.parametrize("target", ["price", "class"])
def test_rows_and_target_in_files(tmp_path, target):
    pandas = pytest.importorskip("pandas")
    rows, price = prices()
    y = price if target == "price" else np.where(price > 8, "dear", "cheap")
    frame = pandas.DataFrame(rows)
    frame.assign(**{target: y}).to_parquet(tmp_path / "rows.parquet")
    source = SupervisedWeave().fit(tmp_path / "rows.parquet", target)
    memory = SupervisedWeave().fit(frame, y)
    assert source.counts_ == memory.counts_ and source.target_.numeric == (target == "price")
    np.testing.assert_allclose(source.transform(frame), memory.transform(frame), atol=1e-9)
    more = memory.partial_fit(tmp_path / "rows.parquet", target)
    assert more.counts_.n == 600


# -- counts, files, edges -----------------------------------------------------------------------


def part(rows, start, stop):
    return {name: column[start:stop] for name, column in rows.items()}


@pytest.mark.parametrize("numeric", [False, True])
def test_counts_add_up_and_subtract(numeric):
    rows, y = mixed(300) if not numeric else prices()
    # Of few different numbers, each has a bucket, which nothing that is added makes wider.
    rows = {n: c.round() if c.dtype.kind == "f" else c for n, c in rows.items()}
    first = SupervisedWeave(schema=GRADES if not numeric else None)
    first.partial_fit(part(rows, 0, 150), y[:150])
    alone = first.counts_
    before = first.transform(rows)
    first.partial_fit(part(rows, 150, 220), y[150:220]).partial_fit(part(rows, 220, 300), y[220:])
    at_once = SupervisedWeave(schema=first.schema).partial_fit(part(rows, 0, 150), y[:150])
    at_once.partial_fit(part(rows, 150, 300), y[150:])
    assert first.counts_ == at_once.counts_
    np.testing.assert_array_equal(first.transform(rows), at_once.transform(rows))
    late = first.counts_ - alone
    np.testing.assert_allclose(first.fit_counts(first.counts_ - late).transform(rows), before)


def test_counts_of_plain_rows():
    rows, y = categories()
    counted = SupervisedWeave().fit_counts(Counts.of(Table.of(rows), y))
    expected = SupervisedWeave().fit(rows, y).transform(rows)
    np.testing.assert_allclose(counted.transform(rows), expected, atol=1e-9)
    with pytest.raises(ValueError, match="expected counts of rows with y"):
        SupervisedWeave().fit_counts(Counts.of(Table.of(rows)))


@pytest.mark.parametrize("numeric", [False, True])
def test_a_saved_model_is_the_same(tmp_path, numeric):
    rows, y = mixed() if not numeric else prices(200)
    model = SupervisedWeave(schema=GRADES if not numeric else None).fit(rows, y)
    model.save(tmp_path / "m")
    again = tabweave.load(tmp_path / "m")
    np.testing.assert_array_equal(again.transform(rows), model.transform(rows))
    assert again.get_params() == model.get_params() and again.weights_ == model.weights_
    both = (each.partial_fit(rows, y).transform(rows) for each in (again, model))
    np.testing.assert_array_equal(*both)


def test_weights_of_rows_are_repetitions():
    rows, y = mixed()
    weight = np.random.default_rng(0).integers(0, 3, len(y))
    weighted = SupervisedWeave(schema=GRADES).fit(rows, y, sample_weight=weight)
    repeated = {name: np.repeat(column, weight) for name, column in rows.items()}
    again = SupervisedWeave(schema=GRADES).fit(repeated, np.repeat(y, weight))
    assert weighted.counts_ == again.counts_
    np.testing.assert_allclose(weighted.transform(rows), again.transform(rows), atol=1e-9)


def test_sets():
    rng = np.random.default_rng(0)
    y = rng.choice(["u", "v"], 120)
    tags = [["a", "b"] if c == "u" else ["b", "c"] if rng.random() < 0.8 else [] for c in y]
    rows = {"tags": tags, "x": rng.choice(["p", "q"], 120)}
    model = SupervisedWeave(schema={"tags": "set"}).fit(rows, y)
    assert model.weights_["tags"] > model.weights_["x"]
    D = model.pairwise_distances([{"tags": t, "x": "p"} for t in (["a"], ["b"], ["c"])])
    assert D[0, 2] > max(D[0, 1], D[1, 2])
    assert np.isfinite(model.fit_transform(rows, y)).all()


@pytest.mark.parametrize("more", [{}, {"job": ["cook", "clerk"] * 10}])
def test_sets_that_are_all_empty_say_nothing(more):
    rows, y = {"tags": [[]] * 20, **more}, ["no", "yes"] * 10
    model = SupervisedWeave(schema={"tags": "set"}).fit(rows, y)
    assert np.isfinite(model.transform(rows)).all()
    assert np.isfinite(model.fit_transform(rows, y)).all()


def test_classes_of_several_types_are_told_apart_in_every_part():
    rows, model = {"job": ["cook", "clerk", "judge", "clerk"] * 15}, SupervisedWeave()
    expected = model.fit_transform(rows, ["p", "p", "q", "q"] * 15)
    np.testing.assert_allclose(model.fit_transform(rows, [1, 1, "1", "1"] * 15), expected)


def test_weights_are_left_out_with_their_rows():
    rows, y = mixed(80)
    weight = np.random.default_rng(0).integers(0, 3, 80)
    model = SupervisedWeave().fit(rows, y, weight)
    table, coupled = read_fitted(model, rows), model.target_free().coupled
    expanded = model._counted.numbering.expand(table).select(coupled.schema.names)
    for part, pairs in model.left_out(table, y, weight):
        others = np.setdiff1d(np.arange(80), part)
        kept = Counts.of(take_rows(expanded, others), y[others], sample_weight=weight[others])
        np.testing.assert_array_equal(pairs, aligned(kept, coupled))
    vectors = model.fit_transform(rows, y, weight)
    assert np.abs(vectors - model.transform(rows)).max() > 0.01
    ones = np.ones(80, int)
    np.testing.assert_allclose(model.fit_transform(rows, y, ones), model.fit_transform(rows, y))


def test_unknown_values():
    rows, y = mixed()
    odd = [{name: column[0] for name, column in rows.items()} | {"near": "never"}]
    assert np.isfinite(SupervisedWeave(schema=GRADES).fit(rows, y).transform(odd)).all()
    strict = SupervisedWeave(schema=GRADES, unknown="error").fit(rows, y)
    for method in (strict.transform, strict.pairwise_distances):
        with pytest.raises(ValueError, match="column 'near': value 'never' was not seen in fit"):
            method(odd)
    assert np.isfinite(SupervisedWeave(schema=GRADES, unknown="error").fit_transform(rows, y)).all()


def test_what_is_refused():
    rows, y = categories()
    with pytest.raises(ValueError, match="requires y to be passed"):
        SupervisedWeave().fit(rows)
    with pytest.raises(ValueError, match="expected two classes or more in y, got 1 class"):
        SupervisedWeave().fit(rows, ["same"] * len(y))
    for parameters in ({"discriminant": -1}, {"weight_power": -1}, {"n_bins": 1}):
        (name,) = parameters
        with pytest.raises(ValueError, match=f"'{name}' parameter of SupervisedWeave"):
            SupervisedWeave(**parameters).fit(rows, y)
    with pytest.raises(ValueError, match="distances of SupervisedWeave do not add up"):
        value_lookups(SupervisedWeave().fit(rows, y))


def test_tables_of_one_kind():
    rows, y = mixed()
    for names in (["near"], ["age"], ["grade"], ["age", "grade"]):
        few = {name: rows[name] for name in names}
        kinds = GRADES if "grade" in names else None
        E = SupervisedWeave(schema=kinds).fit_transform(few, y)
        assert len(E) == len(y) and np.isfinite(E).all()


def test_weights_of_columns_multiply_what_is_learned():
    rng = np.random.default_rng(0)
    y = rng.choice(["yes", "no"], 60)
    X = {
        "a": np.where(rng.random(60) < 0.3, "u", y),
        "b": rng.choice(list("xyz"), 60),
        "n": rng.normal(size=60) + (y == "yes"),
    }
    one, two = ({name: X[name][i] for name in X} for i in (0, 7))
    asked = {"a": 4.0, "n": 0}
    plain, weighed = (
        SupervisedWeave(discriminant=0, weights=w).fit(X, y).explain(one, two)
        for w in (None, asked)
    )
    assert weighed["a"] == pytest.approx(4 * plain["a"])
    assert weighed["b"] == pytest.approx(plain["b"]) and weighed["n"] == 0
    model = SupervisedWeave(weights=asked).fit(X, y)
    np.testing.assert_allclose(model.transform({**X, "n": X["n"][::-1]}), model.transform(X))
    left = {name: X[name] for name in "ab"}
    apart = model.pairwise_distances(X) > 1e-9
    assert (apart == (SupervisedWeave().fit(left, y).pairwise_distances(left) > 1e-9)).all()
    with pytest.raises(ValueError, match="got one of 'q'"):
        SupervisedWeave(weights={"q": 1}).fit(X, y)


def test_a_row_without_a_target_is_named():
    import pandas as pd

    rows = {"a": ["x", "y"] * 10, "b": list(range(20))}
    for gap in (None, float("nan")):
        words = np.array(["p", "q"] * 10, dtype=object)
        words[2] = gap
        numbers = np.arange(20) + 0.5
        numbers[2] = np.nan
        for y in (words, words.tolist(), pd.Series(words, dtype="category"), pd.Series(numbers)):
            said = r"row 2 .*drop the row or give it a (target|class)"
            with pytest.raises(ValueError, match=said):
                SupervisedWeave().fit(rows, y)


@pytest.mark.parametrize(
    ("y", "numeric", "warned"),
    [
        (np.arange(120) % 21, False, True),
        (np.arange(120) % 20, False, False),
        (np.arange(120.0) % 21, True, False),
        (np.arange(120.0) % 20, False, False),
        ([0.5, 1.0] * 60, True, False),
        ([f"{i % 21}" for i in range(120)], False, False),
    ],
)
def test_many_whole_numbers_are_classes_with_a_word_and_floats_are_amounts(y, numeric, warned):
    rows = {"a": ["u", "v", "w"] * 40, "x": np.arange(120.0)}
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model = SupervisedWeave().fit(rows, y)
    assert model.target_.numeric == numeric
    wanted = ["y has 21 different whole numbers, which are read as classes; "]
    assert [str(w.message).split("for regression")[0] for w in said] == (wanted if warned else [])


@pytest.mark.parametrize(
    ("sizes", "most"),
    [([300] * 32, 256), ([300] * 33, 128), ([5] * 1000 + [300] * 12, 256), ([40] * 3000, 16)],
)
def test_values_of_many_columns_have_fewer_coefficients(sizes, most):
    """8,192 in all, if 16 of each column are not more."""
    assert most_coefficients(np.array(sizes)) == most


def test_what_folds_share_is_dropped_when_all_is_learned():
    rng = np.random.default_rng(0)
    rows = {"a": rng.choice(list("pqr"), 60), "x": rng.normal(size=60)}
    y = rng.choice(["no", "yes"], 60)
    model = SupervisedWeave()
    for learn in (model.fit, model.fit_transform):
        learn(rows, y)
        assert "_cache" not in vars(model)
    assert "_cache" not in vars(model.fit_counts(model.counts_))


def test_true_and_1_are_two_classes():
    rows = {"a": list("xyxyxyxyxyzz"), "b": list("ppqqpprrqqpr")}
    odd, plain = [True, 0, 1] * 4, ["a", "b", "c"] * 4  # in the same order
    found = SupervisedWeave().fit_transform(rows, odd)
    np.testing.assert_allclose(found, SupervisedWeave().fit_transform(rows, plain))


def test_a_column_without_a_name_is_one_like_others():
    rows, y = mixed()
    bare = {"" if name == "near" else name: cells for name, cells in rows.items()}
    expected = SupervisedWeave().fit_transform(rows, y)
    np.testing.assert_array_equal(SupervisedWeave().fit_transform(bare, y), expected)


def test_a_system_of_some_thousand_coefficients_is_factored_in_one_thread(monkeypatch):
    inside, factor = [], supervised.cho_factor

    def noted(*args, **named):
        inside.append(len(_compat._limited))
        return factor(*args, **named)

    monkeypatch.setattr(supervised, "cho_factor", noted)
    monkeypatch.setattr(supervised, "_WIDEST", 5)
    solved, _ = supervised.Ridge(np.eye(9)).solve(np.ones((9, 1)), 9.0, 100.0, 1.0)
    np.testing.assert_allclose(solved, 0.5)
    assert inside == [1]


# -- what chance explains --------------------------------------------------------------------------


@pytest.mark.parametrize("with_sets", [False, True])
def test_ties_to_classes_are_those_of_scikit_learn(with_sets):
    """Mutual information, its mean over shuffled classes and entropies by others."""
    from scipy.stats import entropy

    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, 500)
    rows = {
        "tied": np.where(rng.random(500) < 0.4, y, rng.integers(0, 4, 500)).astype(str),
        "many": rng.integers(0, 300, 500).astype(str),
        "key": np.arange(500).astype(str),
        "same": ["x"] * 500,
    }
    if with_sets:
        rows["tags"] = [["p"] if i % 3 else ["q"] for i in range(500)]
    kinds = dict.fromkeys(rows, "nominal") | ({"tags": "set"} if with_sets else {})
    counts = Counts.of(Table.of(rows, kinds), y)
    found = dict(
        zip(counts.names, class_ties(counts, counts.class_pairs.astype(float)), strict=True)
    )
    for name, cells in rows.items():
        x = [cell[0] if isinstance(cell, list) else cell for cell in cells]
        table = contingency_matrix(x, y, sparse=True)
        chance = expected_mutual_information(table, 500) if table.shape[0] > 1 else 0.0
        h = sum(entropy(np.unique(z, return_counts=True)[1]) for z in (x, y))
        wanted = 2 * max(mutual_info_score(x, y) - chance, 0) / h
        assert found[name] == pytest.approx(wanted, abs=1e-9)
    assert found["key"] < 1e-12 and found["tied"] > 0.05


@pytest.mark.parametrize("n_values", [50, 300, 1000, 2000])
def test_noise_of_any_number_of_values_weighs_little_against_classes(n_values):
    """In the mean of some tables: in each, chance makes it a little more or less than none."""
    found = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        y = rng.choice(["no", "yes"], 2000)
        rows = {
            "tied": np.where(rng.random(2000) < 0.3, y, rng.choice(["no", "yes"], 2000)),
            "noise": rng.integers(0, n_values, 2000).astype(str),
        }
        counts = Counts.of(Table.of(rows, dict.fromkeys(rows, "nominal")), y)
        tied, noise = class_ties(counts, counts.class_pairs.astype(float))
        found.append(noise / tied)
    assert np.mean(found) < 0.08


def test_without_a_discriminant_no_part_of_the_vectors_is_one():
    rng = np.random.default_rng(0)
    rows = {"a": rng.choice(list("pqr"), 60).tolist(), "b": rng.choice(list("uv"), 60).tolist()}
    y = np.where((np.array(rows["a"]) == "p") ^ (rng.random(60) < 0.2), "yes", "no")
    without, with_it = (SupervisedWeave(discriminant=share).fit(rows, y) for share in (0, 0.5))
    assert without.part_names() == ["a", "b"] and with_it.part_names() == ["a", "b", None]
    assert without.transform(rows).shape[1] < with_it.transform(rows).shape[1]
    assert without.transform(rows).any(axis=0).all()


def test_means_of_a_value_that_no_row_has_are_zero_without_pseudo_counts():
    pairs, points = np.array([[3.0, 1.0], [0.0, 0.0]]), np.eye(2)
    means = supervised.conditional_means(pairs, points, 0.0, np.array([0.75, 0.25]))
    np.testing.assert_array_equal(means, [[0.75, 0.25], [0.0, 0.0]])
