"""The drawn sets: the rule holds in every row, the noise has its rate, the seed decides."""

import json
from pathlib import Path

import numpy as np
import pytest

from tabweave.datasets import led24, mofn_3_7_10, waveform

SEGMENTS = {"1": "0010010", "7": "1010010", "8": "1111111"}
GENERATORS = [mofn_3_7_10, led24, waveform]
# Of the published files: names and kind of the columns; rows, means and variances of each class.
PUBLISHED = json.loads((Path(__file__).parent / "published.json").read_text())


def test_mofn_rule():
    data = mofn_3_7_10(2000, random_state=1)
    bits = data.X == "1"
    assert np.array_equal(data.y == "1", bits[:, 2:9].sum(axis=1) >= 3)
    assert abs(bits.mean() - 0.5) < 0.02
    assert abs(np.mean(data.y == "1") - 99 / 128) < 0.04


def test_led_without_noise_shows_digits():
    data = led24(500, noise=0.0, random_state=2)
    for label, shape in SEGMENTS.items():
        shown = data.select(data.y == label).X[:, :7]
        assert {"".join(row) for row in shown} == {shape}
    shapes = {(label, *row[:7]) for label, row in zip(data.y, data.X, strict=True)}
    assert len(shapes) == len({shape[1:] for shape in shapes}) == 10


def test_led_noise_rate_and_irrelevant_bits():
    data = led24(8000, noise=0.1, random_state=3)
    eights = data.select(data.y == "8").X == "1"
    assert abs(eights[:, :7].mean() - 0.9) < 0.02
    assert abs((data.X[:, 7:] == "1").mean() - 0.5) < 0.01


def test_waveform_means():
    data = waveform(9000, random_state=4)
    assert data.X.dtype == np.float64
    points = np.arange(1, 22)
    peaks = {"0": (7, 15), "1": (7, 11), "2": (11, 15)}
    for label, (first, second) in peaks.items():
        waves = [np.maximum(6 - abs(points - peak), 0) for peak in (first, second)]
        found = data.select(data.y == label).X.mean(axis=0)
        np.testing.assert_allclose(found, np.mean(waves, axis=0), atol=0.2)
    assert abs(data.columns["x1"].std() - 1) < 0.05  # no wave reaches the first point


@pytest.mark.parametrize("generator", GENERATORS)
def test_same_names_and_like_frequencies_as_the_published_file(generator):
    drawn, published = generator(5000, random_state=0), PUBLISHED[generator.__name__]
    assert drawn.feature_names == published["columns"]
    assert set(drawn.kinds.values()) == {published["kind"]}
    assert set(drawn.y) == published["classes"].keys()
    for label, theirs in published["classes"].items():
        ours = drawn.select(drawn.y == label).X.astype(float)
        noise = np.sqrt(ours.var(0) / len(ours) + np.array(theirs["var"]) / theirs["n"])
        assert np.all(abs(ours.mean(0) - theirs["mean"]) < 5 * noise + 1e-6)


@pytest.mark.parametrize("generator", GENERATORS)
def test_seed_decides(generator):
    one, same, other = (generator(50, random_state=seed) for seed in (5, 5, 6))
    assert np.array_equal(one.X, same.X) and np.array_equal(one.y, same.y)
    assert not np.array_equal(one.X, other.X)


@pytest.mark.parametrize("generator", GENERATORS)
def test_bad_sizes(generator):
    with pytest.raises(ValueError, match="expected n of at least 1, got 0"):
        generator(0)
    with pytest.raises(TypeError, match=r"expected n to be an integer .* got 2\.5"):
        generator(2.5)


def test_bad_noise():
    with pytest.raises(ValueError, match=r"expected noise between 0 and 1, got 1\.5"):
        led24(10, noise=1.5)
