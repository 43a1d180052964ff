"""BoostedWeave: against brute force, by lookups that are done by hand, and by laws."""

import numpy as np
import pytest

import tabweave
from tabweave import BoostedWeave, Column, Table
from tabweave.embed import boosted
from tabweave.embed.boosted import LOGISTIC, SOFTMAX, SQUARES, Grid, Layout, bin_edges

RANDOM = np.random.default_rng(0)
N = 600
ROWS = {
    "job": RANDOM.choice(["cook", "clerk", "judge", None], N).tolist(),
    "age": np.where(RANDOM.random(N) < 0.1, np.nan, RANDOM.integers(18, 70, N) + 0.5).tolist(),
    "town": RANDOM.choice(["a", "b", "c", "d", "e"], N).tolist(),
}
LOGIT = (
    2.0 * (np.array(ROWS["job"]) == "cook")
    - 1.0
    + 3.0 * ((np.nan_to_num(ROWS["age"]) > 40) == np.isin(ROWS["town"], ["a", "b"]))
)
TWO = np.where(RANDOM.random(N) < 1 / (1 + np.exp(2 - LOGIT)), "yes", "no")
THREE = np.array(["low", "mid", "high"])[
    np.clip(np.round(LOGIT + 0.3 * RANDOM.normal(size=N)), 0, 2).astype(int)
]
NUMBERS = 100 + 10 * LOGIT + RANDOM.normal(size=N)
TARGETS = {"two": TWO, "three": THREE, "numbers": NUMBERS}


@pytest.fixture(scope="module")
def models():
    return {name: BoostedWeave().fit(ROWS, y) for name, y in TARGETS.items()}


# -- the step ------------------------------------------------------------------------------------


def slow_loss(scores, target, loss):
    if loss == SQUARES:
        return (scores[:, 0] - target) ** 2 / 2
    if loss == LOGISTIC:
        return np.log1p(np.exp(scores[:, 0])) - target * scores[:, 0]
    return np.log(np.exp(scores).sum(axis=1)) - scores[np.arange(len(target)), target.astype(int)]


@pytest.mark.parametrize("loss", [SQUARES, LOGISTIC, SOFTMAX])
def test_gradients_are_finite_differences(loss):
    n_outputs = 3 if loss == SOFTMAX else 1
    scores = RANDOM.normal(size=(20, n_outputs)).astype(np.float32)
    target = RANDOM.integers(0, max(n_outputs, 2), 20).astype(np.float32)
    weight, out = np.full(20, 2, np.float32), np.empty((20, n_outputs, 2))
    boosted.gradients(scores, target, weight, loss, 0, 20, out)
    factor = n_outputs / max(n_outputs - 1, 1)
    for k in range(n_outputs):
        step = np.zeros(n_outputs)
        step[k] = 1e-3
        low, mid, high = (
            2 * slow_loss(scores.astype(float) + s * step, target, loss) for s in (-1, 0, 1)
        )
        np.testing.assert_allclose(out[:, k, 0], (high - low) / 2e-3, atol=1e-5)
        np.testing.assert_allclose(out[:, k, 1], factor * (high - 2 * mid + low) / 1e-6, atol=1e-4)
    loss_of_all = boosted.mean_loss(scores, target, weight, loss)
    assert loss_of_all == pytest.approx(slow_loss(scores.astype(float), target, loss).mean())


def slow_step(cell, g, h, places, leaves, penalty, rate):
    """A tree that cuts where the gain is largest, by trying every cut of every leaf."""
    leaf = np.zeros(len(places[0]), int)

    def worth(mask):
        rows = mask[cell]
        return g[rows].sum() ** 2 / (h[rows].sum() + penalty)

    for new in range(1, leaves):
        cuts = []
        for old in range(new):
            for j, place in enumerate(places):
                for at in range(place.max()):
                    left, right = (leaf == old) & (place <= at), (leaf == old) & (place > at)
                    if min(h[left[cell]].sum(), h[right[cell]].sum()) >= 1:
                        cuts.append((worth(left) + worth(right) - worth(leaf == old), old, j, at))
        gain, old, j, at = max(cuts, key=lambda cut: cut[0])
        if gain <= 0:
            break
        leaf[(leaf == old) & (places[j] > at)] = new
    out = np.zeros(len(leaf))
    for each in range(leaves):
        rows = (leaf == each)[cell]
        out[leaf == each] = -rate * g[rows].sum() / (h[rows].sum() + penalty)
    return out


@pytest.mark.parametrize("loss", [SQUARES, LOGISTIC])
def test_a_cycle_is_newton_steps_of_the_best_trees(loss):
    codes = np.stack([RANDOM.integers(0, 5, 200), RANDOM.integers(0, 4, 200)]).astype(np.uint8)
    target = ((codes[0] > 2) ^ (codes[1] == 1)).astype(np.float32)
    weight, scores = np.ones(200, np.float32), np.zeros((200, 1), np.float32)
    grids = [Grid(np.arange(5, dtype=np.int32), True), Grid(np.arange(4, dtype=np.int32), False)]
    layout = Layout.of([(0, 1), (0,), (1,)], grids)
    tables = np.zeros((20 + 5 + 4, 1), np.float32)
    boosted.run_cycle(codes, target, weight, scores, loss, layout, (3, 1.0, 1.0, 0.5), tables)
    slow = np.zeros(200)
    for cell, shape, edges in (
        (codes[0] * 4 + codes[1], (5, 4), (0, 20)),
        (codes[0], (5,), (20, 25)),
        (codes[1], (4,), (25, 29)),
    ):
        p = 1 / (1 + np.exp(-slow))
        g, h = (slow - target, np.ones(200)) if loss == SQUARES else (p - target, p * (1 - p))
        places = [axis.ravel() for axis in np.indices(shape)]
        if shape[-1] == 4:  # values are sorted by slope
            sums = [np.bincount(codes[1], x, 4) for x in (g, h)]
            order = np.argsort(sums[0] / (sums[1] + 10), kind="stable")
            places[-1] = np.argsort(order)[places[-1]]
        step = slow_step(cell, g, h, places, 3, 1.0, 0.5)
        np.testing.assert_allclose(tables[slice(*edges), 0], step, atol=1e-6)
        slow += step[cell]
    np.testing.assert_allclose(scores[:, 0], slow, atol=1e-5)


def test_numbers_get_bins_of_their_own_while_they_are_few():
    assert bin_edges(np.array([1.0, 1, 2, 4, np.nan]), None).tolist() == [1.5, 3.0]
    assert bin_edges(np.full(9, np.nan), None).tolist() == []
    heavy = np.concatenate([np.zeros(900), np.arange(1, 1001) / 7])
    edges = bin_edges(heavy, None, 20)
    assert edges[0] < heavy[900] and len(edges) < 20
    weighted = bin_edges(np.unique(heavy), np.unique(heavy, return_counts=True)[1], 20)
    np.testing.assert_array_equal(edges, weighted)


# -- the model -----------------------------------------------------------------------------------


def code_by_hand(axis, cell):
    if axis.edges is not None:
        return len(axis.edges) + 1 if cell is None or cell != cell else sum(axis.edges <= cell)
    return axis.groups[axis.labels.index(cell)] if cell in axis.labels else axis.size - 1


@pytest.mark.parametrize("target", TARGETS)
def test_scores_are_sums_of_entries_looked_up_by_hand(models, target):
    model = models[target]
    rows = [{name: ROWS[name][i] for name in ROWS} for i in range(30)]
    rows.append({"job": "pilot", "age": float("nan"), "town": "a"})
    frame = {name: [row[name] for row in rows] for name in ROWS}
    expected = []
    for row in rows:
        score = model.intercept_.copy()
        for term in model.terms_:
            code = 0
            for axis in term.axes:
                code = code * axis.size + code_by_hand(axis, row[axis.part])
            score = score + term.rows[code]
        expected.append(score)
    np.testing.assert_allclose(model.additive_score(frame), expected, atol=1e-9)
    summed = model.transform(frame).reshape(len(rows), len(model.terms_), -1).sum(axis=1)
    np.testing.assert_allclose(model.intercept_ + summed, expected, atol=1e-9)


def test_interplay_is_found_and_foretold(models):
    titles = [term.title for term in models["two"].terms_]
    assert titles[:3] == ["job", "age", "town"] and "age × town" in titles
    cut = 400
    train, test = ({k: v[part] for k, v in ROWS.items()} for part in (slice(cut), slice(cut, N)))
    model = BoostedWeave().fit(train, NUMBERS[:cut])
    errors = model.additive_score(test)[:, 0] - NUMBERS[cut:]
    assert (errors**2).mean() < 0.2 * NUMBERS[cut:].var()
    alone = BoostedWeave(1).fit(train, NUMBERS[:cut]).additive_score(test)[:, 0] - NUMBERS[cut:]
    assert (alone**2).mean() > 2 * (errors**2).mean()


@pytest.mark.parametrize("target", TARGETS)
def test_shares_of_columns_and_joint_columns_add_up(models, target):
    model = models[target]
    a, b = ({name: ROWS[name][i] for name in ROWS} for i in (0, 1))
    shares = model.explain(a, b)
    assert "age × town" in shares and min(shares.values()) >= 0
    distance = model.pairwise_distances([a], [b])[0, 0]
    assert sum(shares.values()) == pytest.approx(distance**2, rel=1e-9)


def test_a_row_is_given_its_vector_by_a_model_that_has_not_seen_it():
    noise = {"code": [f"c{i}" for i in RANDOM.integers(0, 150, N)], "x": RANDOM.normal(size=N)}
    y = RANDOM.integers(0, 2, N)
    model = BoostedWeave(1, learning_rate=0.5)
    crossed, straight = model.fit_transform(noise, y), model.transform(noise)
    assert crossed.shape == straight.shape

    def link(vectors):
        return abs(np.corrcoef(vectors.sum(axis=1), y)[0, 1]) if vectors.std() else 0.0

    assert link(crossed) < 0.15


@pytest.mark.parametrize("target", TARGETS)
def test_weights_are_copies_in_any_order(target):
    y = TARGETS[target]
    times = RANDOM.integers(0, 3, N)
    rows = np.repeat(np.arange(N), times)[RANDOM.permutation(times.sum())]
    copies = {name: [ROWS[name][i] for i in rows] for name in ROWS}
    weighted = BoostedWeave(2).fit(ROWS, y, sample_weight=times).transform(ROWS)
    repeated = BoostedWeave(2).fit(copies, y[rows]).transform(ROWS)
    np.testing.assert_allclose(weighted, repeated, atol=1e-6)


def test_any_number_of_threads_gives_the_same_bits(monkeypatch, models):
    expected = models["three"].transform(ROWS)
    monkeypatch.setattr("tabweave._compat.n_threads", lambda: 1)
    np.testing.assert_array_equal(BoostedWeave().fit(ROWS, THREE).transform(ROWS), expected)


def test_a_saved_model_says_the_same(models, tmp_path):
    for name, model in models.items():
        tabweave.export.save(model, tmp_path / name)
        loaded = tabweave.load(tmp_path / name)
        np.testing.assert_array_equal(loaded.additive_score(ROWS), model.additive_score(ROWS))
        assert loaded.classes_ == model.classes_


def test_unknown_values_are_rare_ones_or_refused(models):
    model = models["two"]
    row = {"job": ["pilot"], "age": [30.5], "town": ["a"]}
    with_missing = model.transform({**row, "job": [None]})
    assert model.transform(row)[0, 0] == model.terms_[0].rows[-1, 0] != with_missing[0, 0]
    strict = BoostedWeave(1, unknown="error", max_cycles=2).fit(ROWS, TWO)
    with pytest.raises(ValueError, match="column 'job': value 'pilot' was not seen in fit"):
        strict.transform(row)


def test_one_class_is_refused_and_a_constant_number_is_its_own_score():
    with pytest.raises(ValueError, match="expected two classes or more in y, got 1 class"):
        BoostedWeave().fit(ROWS, ["yes"] * N)
    model = BoostedWeave().fit(ROWS, np.full(N, 2.5))
    np.testing.assert_allclose(model.additive_score(ROWS), 2.5)
    with pytest.raises(ValueError, match="weight above 0"):
        BoostedWeave().fit(ROWS, TWO, sample_weight=np.zeros(N))


def test_sets_and_dates_have_entries():
    tags = [["new", "red"] if i % 3 == 0 else ["old"] if i % 2 else [] for i in range(N)]
    days = [f"2024-0{1 + i % 9}-1{i % 7}" for i in range(N)]
    y = np.array(["u" if "new" in tag else "v" for tag in tags])
    model = BoostedWeave(1).fit(Table.of({"tags": tags, "day": days}), y)
    titles = [term.title for term in model.terms_]
    assert "tags (has 'new')" in titles and any(title.startswith("day") for title in titles)
    scores = model.additive_score({"tags": tags, "day": days})[:, 0]
    assert ((scores > 0) == (y == "v")).all()


@pytest.mark.filterwarnings("ignore:.*were not seen in fit")  # no sentence comes twice
def test_words_of_sentences_have_entries():
    rng = np.random.default_rng(0)
    streets = rng.choice(["Main St", "I-95 N", "Elm Rd", "Route 1"], 600)
    closed = rng.random(600) < 0.5
    notes = [
        f"Accident {i} at {street}, {'road CLOSED.' if c else 'one lane open'}"
        for i, (street, c) in enumerate(zip(streets, closed, strict=True))
    ]
    rows = {"note": notes[:400], "x": rng.normal(size=400).tolist()}
    model = BoostedWeave(max_cycles=5, max_joined=1).fit(rows, closed[:400])
    assert "note (word 'closed')" in [term.title for term in model.terms_]
    new = {"note": [*notes[400:], "It is closed", None], "x": [0.0] * 202}
    score = model.additive_score(new)[:, 0]
    assert ((score[:200] > 0) == closed[400:]).all() and score[200] > 0
    assert list(model.explain({"note": notes[0], "x": 0.0}, {"note": notes[1], "x": 0.0}))
    whole = BoostedWeave(2, max_cycles=2, schema={"note": Column("note", spelling=False)})
    assert not any("word" in term.title for term in whole.fit(rows, closed[:400]).terms_)
