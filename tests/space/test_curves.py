import numpy as np
import pytest
from scipy.spatial.distance import cdist

from tabweave import (
    CDE,
    CKML,
    HELIC,
    MCA,
    UNTIE,
    Counts,
    NonBEND,
    OneHot,
    Table,
    ValueMetric,
    Weave,
    load,
)
from tabweave.columns.column import Column
from tabweave.embed.value_metric import value_lookups
from tabweave.space.numbers import Numbering

LEVELS = ("low", "mid", "high")
SCHEMA = {
    "grade": Column("grade", "ordinal", levels=LEVELS),
    **dict.fromkeys(("pay", "age"), "numeric"),
    "day": "datetime",
}
METHODS = [OneHot(), CKML(), CDE(random_state=0), UNTIE(3), MCA(2), ValueMetric("goodall3")]
WITH_ROWS = [HELIC(n_pairs=300, random_state=0), NonBEND(n_fits=1, random_state=0)]


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    n = 200
    job = rng.choice(["cook", "clerk", "judge"], n)
    pay = np.where(job == "judge", 90.0, 30.0) + rng.normal(size=n)
    pay[:5] = np.nan
    return {
        "job": job,
        "pay": pay,
        "age": rng.normal(40, 10, n),
        "grade": rng.choice(LEVELS, n),
        "day": np.datetime64("2024-01-01") + rng.integers(0, 300, n),
    }


def one(rows, i, **changes):
    return {**{name: column[i] for name, column in rows.items()}, **changes}


def fitted(model, rows):
    return model.set_params(schema=SCHEMA).fit(rows, np.arange(len(rows["job"])) % 3)


@pytest.mark.parametrize("model", [*METHODS, *WITH_ROWS], ids=str)
def test_every_embedder_reads_every_kind(model, rows):
    """A column counts as a column, whichever kind it is: vectors, shares and distances agree."""
    model = fitted(model, rows)
    vectors = model.transform(rows)
    assert model.numbers_ is not None and len(model.get_feature_names_out()) == vectors.shape[1]
    a, b = one(rows, 10), one(rows, 33)
    shares = model.explain(a, b)
    assert set(shares) == set(rows)
    distance = model.pairwise_distances(rows)
    np.testing.assert_allclose(sum(shares.values()), distance[10, 33] ** 2)
    whole = [i for i in range(200) if i >= 5]  # a missing number is at its expected distance
    np.testing.assert_allclose(
        distance[np.ix_(whole, whole)], cdist(vectors[whole], vectors[whole]), atol=1e-6
    )
    inertia = vectors[whole].var(axis=0).sum()
    assert inertia == pytest.approx(len(rows), rel=0.15)


@pytest.mark.parametrize("model", METHODS, ids=str)
def test_batches_and_counts_give_what_rows_give(model, rows):
    whole = model.set_params(schema=SCHEMA).fit(rows)
    parts = type(model)(**model.get_params())
    for cut in (slice(0, 90), slice(90, 200)):
        parts.partial_fit({name: cells[cut] for name, cells in rows.items()})
    np.testing.assert_array_equal(parts.transform(rows), whole.transform(rows))
    counts = Counts.of(Table.of(rows, SCHEMA))
    again = type(model)(**model.get_params()).fit_counts(counts)
    np.testing.assert_array_equal(again.transform(rows), whole.transform(rows))


@pytest.mark.parametrize("model", [*METHODS, *WITH_ROWS], ids=str)
def test_mixed_models_survive_a_file(model, rows, tmp_path):
    model = fitted(model, rows)
    model.save(tmp_path / "m")
    np.testing.assert_array_equal(load(tmp_path / "m").transform(rows), model.transform(rows))


@pytest.mark.parametrize("model", WITH_ROWS, ids=str)
def test_rows_that_are_kept_stay_in_the_bins_of_the_first(model, rows):
    model = model.set_params(schema=SCHEMA)
    y = np.arange(200) % 3
    for cut in (slice(0, 120), slice(120, 200)):
        model.partial_fit({name: cells[cut] for name, cells in rows.items()}, y[cut])
    assert np.isfinite(model.transform(rows)).all()


def test_bins_let_categories_know_about_numbers():
    rng = np.random.default_rng(0)
    pay = np.concatenate([rng.normal(20, 1, 60), rng.normal(21, 1, 60), rng.normal(80, 1, 60)])
    job = ["cook"] * 60 + ["waiter"] * 60 + ["judge"] * 60
    values = CKML(schema={"pay": "numeric"}).fit({"job": job, "pay": pay}).value_distances("job")
    assert values.loc["cook", "waiter"] < values.loc["cook", "judge"]


def test_grades_are_ordered(rows):
    model = OneHot(schema=SCHEMA).fit(rows)
    levels = [one(rows, 10, grade=level) for level in LEVELS]
    near, far = (model.explain(levels[0], other)["grade"] for other in levels[1:])
    assert near < far


def test_tables_of_one_kind(rows):
    for names in (["job"], ["pay", "age"]):
        chosen = {name: rows[name] for name in names}
        schema = {name: SCHEMA[name] for name in names if name in SCHEMA}
        assert (
            list(CKML(schema=schema).fit(chosen).explain(one(chosen, 10), one(chosen, 33))) == names
        )


def test_distances_of_numbers_are_not_in_a_table(rows):
    for model in (OneHot(), Weave(), ValueMetric("of")):
        with pytest.raises(ValueError, match="has no table of values"):
            value_lookups(model.set_params(schema=SCHEMA).fit(rows))


def test_the_density_of_rows_is_that_of_categories(rows):
    with pytest.raises(ValueError, match="column 'pay' is numeric; NonBEND reads categories"):
        NonBEND(n_fits=1, schema=SCHEMA, random_state=0).fit(rows).score_samples(rows)


def test_levels_are_found_if_not_given():
    counts = Counts.of(Table.of({"grade": ["b", "a"]}, {"grade": "ordinal"}))
    assert Numbering.of(counts, 4).levels == {"grade": ("a", "b")}
