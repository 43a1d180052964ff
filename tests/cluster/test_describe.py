"""What clusters are, against brute force."""

import numpy as np
import pandas as pd
import pytest

from tabweave.cluster import describe_clusters


def rows(n=200):
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, n)
    return labels, pd.DataFrame(
        {
            "job": np.where(rng.random(n) < 0.8, labels, rng.integers(0, 3, n)).astype(str),
            "coin": rng.choice(["heads", "tails"], n),
            "age": np.where(rng.random(n) < 0.1, np.nan, 10 * labels + rng.normal(size=n)),
            "tags": [["a", str(k)] for k in labels],
        }
    )


def test_shares_and_means_are_those_of_the_rows():
    labels, frame = rows()
    found = describe_clusters(frame, labels, n_values=100, min_z=0)
    for line in found.itertuples():
        part = frame[labels == line.cluster]
        assert line.size == len(part)
        if line.column == "age":
            assert (line.here, line.overall) == pytest.approx((part.age.mean(), frame.age.mean()))
        elif line.column == "tags":
            assert line.here == np.mean([line.value in cell for cell in part.tags])
        else:
            assert line.here == pytest.approx((part[line.column] == line.value).mean())
            assert line.overall == pytest.approx((frame[line.column] == line.value).mean())


def test_z_is_that_of_random_parts():
    labels, frame = rows()
    found = describe_clusters(frame[["coin", "age"]], labels, n_values=100, min_z=0)
    rng = np.random.default_rng(1)
    drawn = [(labels, labels[rng.permutation(len(labels))])[1] for _ in range(400)]
    for line in found[found.cluster == 0].itertuples():
        cells = frame.age if line.column == "age" else (frame.coin == line.value).astype(float)
        means = [cells[other == 0].mean() for other in drawn]
        z = (line.here - np.mean(means)) / np.std(means)
        assert z == pytest.approx(line.z, rel=0.2, abs=0.3)


def test_only_what_tells_is_listed_most_telling_first():
    labels, frame = rows()
    found = describe_clusters(frame, labels)
    assert "coin" not in set(found.column)
    for _, own in found.groupby("cluster"):
        assert (own.z.abs().diff().dropna() <= 0).all() and len(own) <= 8


def test_labels_of_other_lengths_are_refused():
    _, frame = rows()
    with pytest.raises(ValueError, match=r"expected 200 labels, one per row, got shape \(3,\)"):
        describe_clusters(frame, [0, 1, 2])


@pytest.mark.parametrize("labels", [["one", None], [1.0, np.nan]])
def test_a_row_without_a_cluster_is_named(labels):
    with pytest.raises(ValueError, match=r"expected a cluster for each row, got .* in row 1"):
        describe_clusters({"a": ["x", "y"]}, labels)


@pytest.mark.parametrize("unit", [1.0, 1e-300, 1e300])
def test_numbers_of_any_size_are_compared(unit):
    x, labels = np.repeat([1.0, 2.0, 5.0], 20), [0] * 40 + [1] * 20
    found = describe_clusters({"x": x * unit}, labels)
    np.testing.assert_allclose(found["here"], np.array([1.5, 5.0]) * unit)
    np.testing.assert_allclose(
        found["z"], np.array([-1, 1]) * (5 - x.mean()) / np.sqrt(x.var() * 40 / 20 / 59)
    )


def test_numbers_are_described_as_numbers_however_they_are_written():
    """Whole numbers of an array, and text that holds numbers, have means; a text is no category."""
    labels = np.repeat([0, 1], 20)
    ages = np.repeat([[30], [50]], 20, axis=0) + np.arange(40)[:, None] % 4
    texts = {"age": [f"{age},5" for (age,) in ages.tolist()]}
    for given, more in ((ages, 0.0), (texts, 0.5)):
        found = describe_clusters(given, labels, min_z=0)
        assert found["value"].tolist() == ["mean", "mean"]
        np.testing.assert_allclose(found["here"], [31.5 + more, 51.5 + more])
