import numpy as np
import pytest

from tabweave.evaluate import class_margins, epsilon_gamma


def example(seed=0, n=17):
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=n)
    similarity = rng.normal(size=(n, n)) + (y[:, None] == y)
    return similarity, y


def loop_margins(similarity, y, include_self):
    margins = []
    for i in range(len(y)):
        same = [
            similarity[i, j] for j in range(len(y)) if y[j] == y[i] and (include_self or j != i)
        ]
        other = [similarity[i, j] for j in range(len(y)) if y[j] != y[i]]
        margins.append(np.mean(same) - np.mean(other))
    return np.array(margins)


@pytest.mark.parametrize("include_self", [False, True])
def test_margins_are_the_definition(include_self):
    similarity, y = example()
    margins = class_margins(similarity, y, include_self=include_self)
    np.testing.assert_allclose(margins, loop_margins(similarity, y, include_self))


def test_gamma_is_the_largest_margin_that_enough_objects_reach():
    similarity, y = example()
    margins = loop_margins(similarity, y, False)
    epsilon, gamma = epsilon_gamma(similarity, y)
    np.testing.assert_allclose(epsilon, np.arange(17) / 17)
    for e, g in zip(epsilon, gamma, strict=True):
        assert (margins >= g - 1e-12).mean() >= 1 - e - 1e-12
        assert (margins >= g + 1e-9).mean() < 1 - e - 1e-12  # and no larger margin does
    assert (np.diff(gamma) >= 0).all()


def test_chosen_shares_lie_on_the_curve():
    similarity, y = example(n=100)
    _, gamma = epsilon_gamma(similarity, y)
    shares, chosen = epsilon_gamma(similarity, y, epsilon=[0, 0.29, 0.295, 0.99])
    np.testing.assert_array_equal(chosen, gamma[[0, 29, 29, 99]])
    np.testing.assert_array_equal(shares, [0, 0.29, 0.295, 0.99])


def test_only_the_nonnegative_part():
    similarity, y = example()
    similarity = similarity - 0.8 * (y[:, None] == y)
    epsilon, gamma = epsilon_gamma(similarity, y)
    kept, positive = epsilon_gamma(similarity, y, nonnegative=True)
    assert 0 < positive.size < gamma.size
    np.testing.assert_array_equal(positive, gamma[gamma >= 0])
    np.testing.assert_array_equal(kept, epsilon[gamma >= 0])


def test_row_order_and_names_change_nothing():
    similarity, y = example()
    order = np.random.default_rng(1).permutation(len(y))
    names = np.array(["u", "v", "w"])
    _, gamma = epsilon_gamma(similarity, y)
    _, again = epsilon_gamma(similarity[np.ix_(order, order)], names[y][order])
    np.testing.assert_allclose(again, gamma)


def test_a_better_similarity_has_the_higher_curve():
    similarity, y = example()
    better = similarity + (y[:, None] == y)
    np.testing.assert_allclose(epsilon_gamma(better, y)[1], epsilon_gamma(similarity, y)[1] + 1)


def test_objects_alone_in_their_class_have_no_margin():
    similarity = np.eye(3)
    assert np.isnan(class_margins(similarity, ["a", "a", "b"])).tolist() == [False, False, True]
    epsilon, _ = epsilon_gamma(similarity, ["a", "a", "b"])
    assert epsilon.tolist() == [0, 0.5]
    assert class_margins(similarity, ["a", "a", "b"], include_self=True)[2] == 1
    with pytest.raises(ValueError, match="alone in its class"):
        epsilon_gamma(np.eye(2), ["a", "b"])


def test_bad_input():
    with pytest.raises(ValueError, match="expected at least two classes in y, got the single 'a'"):
        epsilon_gamma(np.eye(2), ["a", "a"])
    with pytest.raises(ValueError, match=r"expected shape \(3, 3\), got \(2, 2\)"):
        epsilon_gamma(np.eye(2), ["a", "a", "b"])
    with pytest.raises(ValueError, match="NaN"):
        epsilon_gamma(np.full((3, 3), np.nan), ["a", "a", "b"])
    with pytest.raises(ValueError, match=r"shares in \[0, 1\)"):
        epsilon_gamma(np.eye(3), ["a", "a", "b"], epsilon=[1.0])
