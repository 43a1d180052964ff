"""Missing is not a value that agrees: it is at its expected distance from every cell."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import mutual_info_score

from tabweave import (
    CDE,
    CKML,
    Column,
    Counts,
    OneHot,
    Schema,
    SimilarityIndex,
    SupervisedWeave,
    Table,
    ValueMetric,
    Weave,
    WeaveClassifier,
    WeaveRegressor,
)
from tabweave.counts.couplings import class_gap_uncertainty, gap_uncertainty
from tabweave.embed.hierarchy import DistanceHierarchy

VALUED = ["color", "shape", "code"]
MODELS = {
    "weave": (Weave(), [*VALUED, "size"]),
    "projected": (Weave(n_components=3), [*VALUED, "size"]),
    "supervised": (SupervisedWeave(), [*VALUED, "size"]),
    "mixed": (OneHot(schema={"size": "numeric"}), [*VALUED, "size"]),
    "onehot": (OneHot(), VALUED),
    "ckml": (CKML(), VALUED),
    "cde": (CDE(), VALUED),
    "hamming": (ValueMetric("hamming"), VALUED),
    "dilca": (ValueMetric("dilca"), VALUED),
}


def rows(n=250, seed=0, missing=0.2):
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, 3, n)
    frame = pd.DataFrame(
        {
            "color": np.array(["red", "green", "blue"])[kind],
            "shape": np.array(list("pqrs"))[(kind + (rng.random(n) < 0.3)) % 4],
            "code": np.array([f"c{i}" for i in rng.integers(0, 180, n)]),
            "size": kind + rng.normal(size=n),
        }
    )
    return frame.mask(rng.random(frame.shape) < missing), kind


@pytest.fixture(params=MODELS)
def fitted(request):
    model, names = MODELS[request.param]
    frame, y = rows()
    return model.fit(frame[names], y), frame[names]


@pytest.mark.parametrize("name", ["onehot", "ckml", "hamming", "dilca", "weave"])
@pytest.mark.parametrize("column", ["color", "shape"])
def test_it_is_as_far_as_values_are_on_average(name, column):
    model, names = MODELS[name]
    frame, y = rows()
    model.fit(frame[names], y)
    d = model.value_distances(column)
    squared = d.to_numpy() ** (2 if model.space_.root else 1)
    labels = [None if label is None or label != label else label for label in d.index]
    gap, values = labels.index(None), [i for i, label in enumerate(labels) if label is not None]
    f = frame[column].value_counts(normalize=True)[[labels[i] for i in values]].to_numpy()
    among = squared[np.ix_(values, values)]
    np.testing.assert_allclose(squared[gap, values], among @ f, atol=1e-9)
    np.testing.assert_allclose(squared[gap, gap], f @ among @ f, atol=1e-9)


@pytest.mark.parametrize("labelled", [True, False])
def test_in_a_tree_it_is_as_far_from_values_as_they_are_on_average(labelled):
    frame, y = rows()
    model = DistanceHierarchy().fit(frame[["color", "shape"]], y if labelled else None)
    assert None not in model.trees_["shape"].names
    d = model.value_distances("shape")
    gap = [label is None or label != label for label in d.index]
    present = [not is_gap for is_gap in gap]
    among = d.to_numpy()[present][:, present]
    f = frame["shape"].value_counts(normalize=True)[d.index[present]].to_numpy()
    np.testing.assert_allclose(d.to_numpy()[gap][0, present], among @ f, atol=1e-9)
    leaf = DistanceHierarchy(schema=Schema(missing="value")).fit(frame[["color", "shape"]])
    assert None in leaf.trees_["shape"].names


def test_a_row_is_at_no_distance_from_itself_and_others_are_a_metric(fitted):
    model, frame = fitted
    d = model.pairwise_distances(frame)
    assert (d.diagonal() == 0).all()
    np.testing.assert_array_equal(model.pairwise_distances(frame, frame), d)
    other = model.pairwise_distances(frame, frame.copy())  # rows that are equal, but others
    apart = ~np.eye(len(d), dtype=bool)
    np.testing.assert_allclose(other[apart], d[apart], atol=1e-9)
    gaps = frame.isna().to_numpy().any(axis=1)
    assert (other.diagonal()[gaps] > 0).all()
    np.testing.assert_allclose(other.diagonal()[~gaps], 0, atol=1e-6)
    if model.space_.root:
        assert (d[:40, None, :40] <= d[:40, :, None] + d[None, :, :40] + 1e-9).all()
        kernel = model.pairwise_kernel(frame)
        square = kernel.diagonal()[:, None] + kernel.diagonal() - 2 * kernel
        if not (isinstance(model, OneHot | Weave) and "code" in frame):
            np.testing.assert_allclose(square, d**2, atol=1e-7)


def test_search_duplicates_and_explanations_agree(fitted):
    model, frame = fitted
    d, n = model.pairwise_distances(frame, frame.copy()), len(frame)
    index = SimilarityIndex(model).fit(frame)
    found = index.query(frame[:20], k=n)
    for i in range(20):
        np.testing.assert_allclose(found.distances[i], d[i, found.ids[i]], atol=1e-9)
    threshold = np.quantile(d, 0.02)
    pairs = index.duplicates(threshold)
    near = d <= threshold * (1 + 1e-9)
    assert set(zip(pairs.first.tolist(), pairs.second.tolist(), strict=True)) == set(
        zip(*(part.tolist() for part in np.nonzero(np.triu(near, 1))), strict=True)
    )
    power = 2 if model.space_.root else 1
    for i in range(5):
        shares = model.explain(frame[i : i + 1], frame[i + 7 : i + 8])
        assert sum(shares.values()) == pytest.approx(d[i, i + 7] ** power)


def test_copies_with_gaps_are_not_at_no_distance():
    frame = pd.DataFrame({"a": list("xxyyz"), "b": ["u", "u", None, None, "v"]})
    pairs = SimilarityIndex(OneHot()).fit(frame).duplicates(0)
    assert (pairs.first.tolist(), pairs.second.tolist()) == ([0], [1])


def test_missing_may_be_a_value():
    frame, _ = rows()
    for schema in (Schema(missing="value"), {"color": Column("color", missing="value")}):
        model = OneHot(schema=schema).fit(frame[VALUED])
        assert model.value_distances("color").to_numpy().diagonal().tolist() == [0] * 4
        assert "color_<missing>" in model.get_feature_names_out()
    assert "shape_<missing>" not in model.get_feature_names_out()
    model = Weave(schema={"size": Column("size", "numeric", missing="value")}).fit(frame)
    gaps = frame["size"].isna().to_numpy().nonzero()[0]
    one, other = (frame.iloc[[i]] for i in gaps[:2])
    assert model.explain(one, other)["size"] == 0
    assert Weave().fit(frame).explain(one, other)["size"] > 0
    with pytest.raises(
        ValueError, match="column 'a': expected missing to be 'expected' or 'value'"
    ):
        Column("a", missing="same")


def test_vectors_are_at_the_mean():
    frame, _ = rows()
    model = OneHot().fit(frame[["color"]])
    vectors = model.transform(frame[["color"]])
    gaps = frame["color"].isna().to_numpy()
    mean = vectors[~gaps].mean(axis=0)
    np.testing.assert_allclose(vectors[gaps], np.tile(mean, (gaps.sum(), 1)))


class TestStrings:
    """A missing title was nearer than a similar one, and numbers were near to everything."""

    @staticmethod
    def distances():
        rng = np.random.default_rng(0)
        words = "alien return king ring lord matrix hulk panic room night day dead love".split()
        titles = ["Shrek", "Shrek 2", "Star Wars", "Star Wars: Episode IV"]
        titles += [" ".join(rng.choice(words, 3)) for _ in range(200)]
        title = np.array([*titles, *titles], object)
        title[[30, 60, 250, 290]] = None
        title[[31, 61]] = [1984, 300]
        frame = pd.DataFrame({"title": title, "kind": rng.choice(list("abc"), len(title))})
        return Weave().fit(frame).value_distances("title")

    @pytest.mark.parametrize(
        ("title", "similar"), [("Shrek", "Shrek 2"), ("Star Wars", "Star Wars: Episode IV")]
    )
    def test_a_similar_title_is_nearer_than_none(self, title, similar):
        row = self.distances().loc[title]
        gap = row[[label is None or label != label for label in row.index]].iloc[0]
        assert row[similar] < 0.95 * gap
        assert gap == pytest.approx(row.median(), rel=0.05)
        assert row[1984] == pytest.approx(row.median(), rel=0.05)


@pytest.mark.parametrize(("missing", "least"), [(0.0, 0.99), (0.15, 0.97), (0.35, 0.85)])
def test_planted_duplicates_are_found(missing, least):
    """With gaps as values the best F was 1.00, .62 and .014 of another such table."""
    rng = np.random.default_rng(1)

    def name(size):
        return "".join(rng.choice(list("abcdefghijklmnopqrstuvwxyz"), size))

    pools = [[name(7) for _ in range(size)] for size in (200, 200, 300, 250, 400, 300, 350, 400)]
    people = np.array([[rng.choice(pool) for pool in pools] for _ in range(500)], object)
    copies = people[:60].copy()
    for row in copies:
        for j in rng.choice(8, 2, replace=False):
            at = rng.integers(6)
            row[j] = row[j][:at] + name(1) + row[j][at + 1 :]
    cells = np.vstack([people, copies])
    cells[rng.random(cells.shape) < missing] = None
    frame = pd.DataFrame(cells, columns=[f"c{j}" for j in range(8)])
    d = Weave().fit(frame).pairwise_distances(frame)
    one, other = np.triu_indices(len(frame), 1)
    same = other == one + 500
    order = np.argsort(d[one, other])
    hits = np.cumsum(same[order])
    f = 2 * hits / (np.arange(1, len(order) + 1) + same.sum())
    assert f.max() >= least


class TestInformativeGaps:
    """Gaps that depend on another column count as a value; others never do."""

    @staticmethod
    def rows(seed, n=400):
        rng = np.random.default_rng(seed)
        garage, size = rng.choice(["yes", "no"], n), rng.choice(list("sml"), n).astype(object)
        kind = rng.choice(list("abc"), n).astype(object)
        size[garage == "no"] = None
        kind[rng.random(n) < 0.3] = None
        area = np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n))
        return pd.DataFrame({"garage": garage, "size": size, "kind": kind, "area": area})

    @pytest.mark.parametrize("seed", range(10))
    def test_only_those_are_found(self, seed):
        model = Weave().fit(self.rows(seed))
        assert model.gaps_ == {"size": "garage"}
        assert "size" not in model.tables_.spread and model.tables_.spread["kind"] > 0
        (why,) = (found.why for found in model.kinds() if found.column == "size")
        assert why == "values; missing is a value: it depends on 'garage'"

    def test_the_uncertainty_is_that_of_two_columns(self):
        frame = self.rows(0)
        counts = Counts.of(Table.of(frame.drop(columns="area")))
        found = gap_uncertainty(counts)
        names = list(counts.names)
        for name, other in (("size", "garage"), ("kind", "garage"), ("kind", "size")):
            rows = frame[frame[other].notna()]
            gap, values = rows[name].isna().to_numpy(), rows[other].to_numpy(str)
            mutual, h = mutual_info_score(gap, values), mutual_info_score(values, values)
            h += mutual_info_score(gap, gap)
            chance = (len(set(values)) - 1) / (2 * len(rows))
            expected = 2 * max(mutual - chance, 0) / h
            assert found[names.index(name), names.index(other)] == pytest.approx(expected, abs=1e-9)
        assert not found[names.index("garage")].any()

    @pytest.mark.parametrize("model", [SupervisedWeave(), WeaveClassifier(), WeaveRegressor()])
    def test_with_a_target_it_is_the_target_that_tells(self, model):
        frame = self.rows(0)
        garage = frame.pop("garage") == "yes"
        y = garage + 0.1 * np.random.default_rng(1).normal(size=len(frame))
        model.fit(frame, y if isinstance(model, WeaveRegressor) else garage)
        fitted = model if isinstance(model, SupervisedWeave) else model.embedder_
        why = {found.column: found.why for found in fitted.kinds()}
        assert why["size"] == "values; missing is a value: it depends on the target"
        assert not any("missing" in why[name] for name in ("kind", "area"))
        assert fitted.gaps_ == ["size"]
        gaps = frame["size"].isna().to_numpy().nonzero()[0]
        one, other = (frame.iloc[[i]] for i in gaps[:2])
        assert fitted.explain(one, other)["size"] == 0

    def test_gaps_with_classes_are_those_of_scikit_learn(self):
        frame = self.rows(1)
        y = frame["garage"].to_numpy(str)
        counts = Counts.of(Table.of(frame[["size", "kind"]]), y)
        prior = np.unique(y, return_counts=True)[1] / len(y)
        found = class_gap_uncertainty(counts, counts.class_pairs, prior)
        for name, value in zip(("size", "kind"), found, strict=True):
            gap = frame[name].isna().to_numpy()
            mutual, h = mutual_info_score(gap, y), mutual_info_score(y, y)
            expected = 2 * max(mutual - 1 / (2 * len(y)), 0) / (h + mutual_info_score(gap, gap))
            assert value == pytest.approx(expected, abs=1e-9)

    def test_a_column_may_say_what_missing_is(self):
        schema = {"size": Column("size", missing="expected")}
        model = Weave(schema=schema).fit(self.rows(0))
        assert model.gaps_ == {} and model.tables_.spread["size"] > 0
        frame = self.rows(0)
        model = SupervisedWeave(schema=schema).fit(frame.drop(columns="garage"), frame["garage"])
        assert model.gaps_ == [] and model.tables_.spread["size"] > 0
