"""OneHot against scikit-learn's encoder and by hand."""

import numpy as np
import pandas as pd
import pytest
from sklearn.preprocessing import OneHotEncoder
from sklearn.utils.estimator_checks import parametrize_with_checks

from tabweave import OneHot
from tabweave.datasets import led24, make_coupled
from tabweave.embed import onehot
from tabweave.embed.onehot import OneHotAutoencoder

ROWS = pd.DataFrame({"color": ["red", "blue", "red", "green"], "size": ["S", "S", "L", "M"]})


def test_equals_scikit_learn():
    expected = OneHotEncoder(sparse_output=False).fit(ROWS)
    ours = OneHot().fit(ROWS)
    np.testing.assert_array_equal(ours.transform(ROWS), expected.transform(ROWS))
    assert [*ours.get_feature_names_out()] == [*expected.get_feature_names_out()]


def test_unknown_gets_the_frequencies():
    assert OneHot().fit(ROWS).transform(pd.DataFrame({"color": ["?"], "size": ["S"]})).tolist() == [
        [0.25, 0.25, 0.5, 0, 0, 1]
    ]


def test_sets_get_the_mean():
    embedder = OneHot().fit({"s": [["a", "b"], ["b"], ["c"]]})
    assert embedder.transform({"s": [["a", "b"], ["c", "c"]]}).tolist() == [
        [0.5, 0.5, 0],
        [0, 0, 1],
    ]


def test_distances_count_mismatches():
    distances = OneHot().fit(ROWS).pairwise_distances(ROWS)
    cells = ROWS.to_numpy()
    mismatches = (cells[:, None] != cells[None]).sum(axis=2)
    np.testing.assert_allclose(distances, np.sqrt(2 * mismatches))


@pytest.mark.parametrize(
    ("rows", "names"),
    [
        ({"a": [1, "1", None]}, ["a_1", "a_'1'"]),
        ({"a": [None, "<missing>"]}, ["a_<missing>"]),
        ({"a": ["b_c"], "a_b": ["c"]}, ["a_b_c", "a_b_'c'"]),
        ({"a": ["b_c"] * 2, "a_b": ["c", "'c'"]}, ["a_b_c", "a_b_'c'", "a_b_'c'_2"]),
    ],
)
def test_names_are_unique(rows, names):
    embedder = OneHot(schema="nominal").fit(rows)
    assert [*embedder.get_feature_names_out()] == names
    assert embedder.set_output(transform="polars").transform(rows).columns == names


def test_too_many_values_for_one_dimension_each():
    ids = {"id": [f"u{i}" for i in range(25_000)], "k": ["a"] * 25_000}
    with pytest.raises(ValueError, match="column 'id' has 25000 values, and OneHot"):
        OneHot(schema="nominal").fit(ids)


# -- the autoencoder -------------------------------------------------------------------------------

FRAME = pd.DataFrame({"color": list("rgbrgb") * 5, "size": list("SMLSML") * 5})


@parametrize_with_checks([OneHotAutoencoder(max_iter=20)])
def test_scikit_learn_accepts_the_autoencoder(estimator, check):
    check(estimator)


def test_the_output_is_the_middle_of_three_layers():
    encoder = OneHotAutoencoder(max_iter=5, random_state=0).fit(FRAME)
    assert [w.shape for w in encoder.network_.coefs_] == [(6, 10), (10, 10), (10, 10), (10, 6)]
    out = encoder.transform(FRAME)
    assert out.shape == (30, 10) and out.dtype == np.float64
    # The rest of the network, from the middle on, gives what the whole network gives.
    (w, b), (u, c) = list(zip(encoder.network_.coefs_, encoder.network_.intercepts_, strict=True))[
        2:
    ]
    rows = encoder.onehot_.transform(FRAME)
    assert np.allclose(np.tanh(out @ w + b) @ u + c, encoder.network_.predict(rows), atol=1e-5)


def test_it_learns_to_give_rows_back():
    X = make_coupled(200, 5, coupling=0.8, random_state=0).X
    short = OneHotAutoencoder(max_iter=2, random_state=0).fit(X)
    long = OneHotAutoencoder(max_iter=150, random_state=0).fit(X)
    assert long.loss_ < 0.7 * short.loss_
    assert short.n_iter_ == 2 and not short.converged_


def test_it_repeats_and_knows_frames():
    first, second = (OneHotAutoencoder(max_iter=5, random_state=1).fit(FRAME) for _ in range(2))
    assert np.array_equal(first.transform(FRAME), second.transform(FRAME))
    assert list(first.feature_names_in_) == ["color", "size"]
    out = first.set_output(transform="pandas").transform(FRAME)
    assert list(out.columns)[:2] == ["onehotautoencoder0", "onehotautoencoder1"]
    assert OneHotAutoencoder(max_iter=2, dtype="float32").fit_transform(FRAME).dtype == np.float32


def test_unknown_values_sit_in_the_middle_or_are_refused():
    odd = pd.DataFrame({"color": ["mauve"], "size": ["S"]})
    assert np.isfinite(OneHotAutoencoder(max_iter=2).fit(FRAME).transform(odd)).all()
    with pytest.raises(ValueError, match="'mauve' was not seen"):
        OneHotAutoencoder(max_iter=2, unknown="error").fit(FRAME).transform(odd)


def test_one_column_of_one_value():
    assert OneHotAutoencoder(max_iter=2).fit_transform({"a": ["x"] * 4}).shape == (4, 10)


def test_bad_activation():
    with pytest.raises(ValueError, match=r"'activation' parameter .* Got 'step'"):
        OneHotAutoencoder(activation="step").fit(led24(20, random_state=0).X)


def test_vectors_are_floats():
    for dtype in ("int8", np.int8):
        with pytest.raises(ValueError, match="'dtype' parameter of OneHotAutoencoder"):
            OneHotAutoencoder(dtype=dtype).fit([["a"], ["b"]])


def test_by_default_it_learns_until_it_rests(monkeypatch):
    X = make_coupled(60, 3, coupling=0.8, random_state=0).X
    rested = OneHotAutoencoder(random_state=0).fit(X)
    assert rested.converged_
    monkeypatch.setattr(onehot, "TOLERANCE", 1e-4)  # scikit-learn's, where it has just begun
    begun = OneHotAutoencoder(random_state=0).fit(X)
    assert begun.n_iter_ < rested.n_iter_ and rested.loss_ < 0.8 * begun.loss_
