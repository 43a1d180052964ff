import numpy as np
import pytest

from tabweave.evaluate import (
    neighbor_precision_at_k,
    neighbor_recall_at_k,
    precision_at_k,
    recall_at_k,
)


def tied_distances(seed, n=14, m=None):
    """Hamming distances of short codes: nearly every neighbour is tied."""
    rng = np.random.default_rng(seed)
    a = rng.integers(2, size=(n, 3))
    b = a if m is None else rng.integers(2, size=(m, 3))
    return (
        (a[:, None] != b[None]).sum(axis=2),
        rng.integers(3, size=n),
        rng.integers(3, size=m or n),
    )


def by_permutations(distances, y_query, y_reference, k, *, skip_self, repeats=3000):
    """Hits per query of plain k nearest, averaged over random orders of the references."""
    rng = np.random.default_rng(0)
    hits = np.zeros(len(y_query))
    for _ in range(repeats):
        order = rng.permutation(len(y_reference))
        for i in range(len(y_query)):
            others = order[order != i] if skip_self else order
            nearest = others[np.argsort(distances[i, others], kind="stable")[:k]]
            hits[i] += (y_reference[nearest] == y_query[i]).sum()
    return hits / repeats


@pytest.mark.parametrize("k", [1, 4])
def test_ties_are_the_mean_over_orders_of_the_rows(k):
    distances, y, _ = tied_distances(0)
    hits = by_permutations(distances, y, y, k, skip_self=True)
    others = np.array([(y == c).sum() - 1 for c in y])
    assert precision_at_k(distances, y, k=k) == pytest.approx(np.mean(hits / k), abs=0.01)
    asked = others > 0
    expected = np.mean(hits[asked] / others[asked])
    assert recall_at_k(distances, y, k=k) == pytest.approx(expected, abs=0.01)
    strangers_first = distances + 0.1 * (y[:, None] == y)  # one way to settle the ties
    assert precision_at_k(strangers_first, y, k=k) < precision_at_k(distances, y, k=k) - 0.05


def test_other_objects_as_references():
    distances, y, z = tied_distances(1, n=6, m=9)
    hits = by_permutations(distances, y, z, 3, skip_self=False)
    assert precision_at_k(distances, y, z, k=3) == pytest.approx(np.mean(hits / 3), abs=0.01)


def test_without_ties_it_is_the_plain_count():
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(20, 2)), rng.integers(3, size=20)
    distances = np.linalg.norm(x[:, None] - x, axis=2)
    ks = [1, 5, 19]
    order = np.array([[j for j in np.argsort(row) if j != i] for i, row in enumerate(distances)])
    same = y[order] == y[:, None]
    precision = [same[:, :k].mean() for k in ks]
    recall = [(same[:, :k].sum(axis=1) / same.sum(axis=1)).mean() for k in ks]
    np.testing.assert_allclose(precision_at_k(distances, y, k=ks), precision)
    np.testing.assert_allclose(recall_at_k(distances, y, k=ks), recall)
    assert recall[-1] == 1
    np.testing.assert_allclose(neighbor_precision_at_k(order, y, k=ks), precision)
    np.testing.assert_allclose(neighbor_recall_at_k(order, y, k=ks), recall)


@pytest.mark.parametrize("score", [precision_at_k, recall_at_k])
def test_row_order_and_names_change_nothing(score):
    distances, y, _ = tied_distances(2)
    order = np.random.default_rng(5).permutation(len(y))
    names = np.array(["x", "y", "z"], dtype=object)
    shuffled = score(distances[np.ix_(order, order)], names[y][order], k=[1, 2, 7])
    np.testing.assert_allclose(shuffled, score(distances, y, k=[1, 2, 7]))


@pytest.mark.parametrize("score", [precision_at_k, recall_at_k])
def test_blocks_of_rows_add_up(score):
    distances, y, _ = tied_distances(4)
    y[:2] = y[2:4] = [0, 1]  # every class has company, so each query counts in the mean
    rows = np.array_split(np.arange(len(y)), 3)
    parts = [len(r) * score(distances[r], y[r], y, k=3, own=r) for r in rows]
    assert sum(parts) / len(y) == pytest.approx(score(distances, y, k=3))


def test_rounding_does_not_break_ties():
    distances, y, _ = tied_distances(6)
    noise = np.random.default_rng(0).uniform(-1e-12, 1e-12, distances.shape)
    exact = precision_at_k(distances, y, k=3)
    assert precision_at_k(distances + noise, y, k=3) == pytest.approx(exact, abs=1e-12)
    assert precision_at_k(distances + noise, y, k=3, tolerance=0) != pytest.approx(exact, abs=1e-6)


def test_own_row_is_left_out_even_among_duplicates_and_infinities():
    same = np.zeros((3, 3))
    assert precision_at_k(same, ["a", "a", "b"], k=1) == pytest.approx((0.5 + 0.5 + 0) / 3)
    far = np.full((3, 3), np.inf)
    assert precision_at_k(far, ["a", "a", "b"], k=2) == pytest.approx((0.5 + 0.5 + 0) / 3)


def test_recall_leaves_out_queries_with_nothing_to_find():
    assert recall_at_k(np.zeros((3, 3)), ["a", "a", "b"], k=2) == 1
    with pytest.raises(ValueError, match="no query has another object"):
        recall_at_k(np.zeros((2, 2)), ["a", "b"], k=1)


def test_a_class_unknown_to_the_references_is_never_hit():
    # Both unknown classes must stay apart from the reference classes and from padding.
    distances = np.zeros((3, 2))
    assert precision_at_k(distances, ["q", "a", "r"], ["a", "a"], k=2) == pytest.approx(1 / 3)
    assert recall_at_k(distances, ["q", "a", "r"], ["a", "a"], k=1) == 0.5
    assert neighbor_recall_at_k([[0], [1], [1]], ["q", "a", "r"], ["a", "a"], k=1) == 0.5


def test_lists_skip_the_query_and_count_missing_as_misses():
    lists = [[1, 0, 2], [1, 0, -1], [2, 0, 1]]
    # after leaving out the query: [1, 2], [0, nothing], [0, 1]
    assert neighbor_precision_at_k(lists, ["a", "a", "b"], k=[1, 2]) == pytest.approx(
        [2 / 3, (0.5 + 0.5 + 0) / 3]
    )
    # -1 must not be read as the last reference, which is of query 1's class here
    assert neighbor_precision_at_k(lists, ["a", "b", "b"], k=2) == pytest.approx(0.5 / 3)


def test_result_type_follows_k():
    distances, y, _ = tied_distances(0)
    assert isinstance(precision_at_k(distances, y, k=2), float)
    assert precision_at_k(distances, y, k=[2]).shape == (1,)


@pytest.mark.parametrize("k", [0, -1, 1.5, [], [1, 0]])
def test_bad_k(k):
    with pytest.raises(ValueError, match="whole number"):
        precision_at_k(np.zeros((3, 3)), [0, 0, 1], k=k)


def test_bad_input():
    square, y = np.zeros((3, 3)), [0, 0, 1]
    with pytest.raises(ValueError, match="at most 2, the other objects, got 3"):
        precision_at_k(square, y, k=3)
    with pytest.raises(ValueError, match="pass y_reference"):
        precision_at_k(np.zeros((3, 4)), y, k=1)
    with pytest.raises(ValueError, match="NaN"):
        precision_at_k(np.full((3, 3), np.nan), y, k=1)
    with pytest.raises(ValueError, match="own: expected a column number"):
        precision_at_k(square, y, y, k=1, own=[0, 1, 3])
    with pytest.raises(ValueError, match="y_query: expected a label for every object, got None"):
        precision_at_k(square, [0, None, 1], k=1)
    with pytest.raises(ValueError, match="twice"):
        neighbor_precision_at_k([[1, 1], [0, 2], [0, 1]], y, k=1)
    with pytest.raises(ValueError, match="below 3"):
        neighbor_precision_at_k([[1, 3], [0, 2], [0, 1]], y, k=1)
    with pytest.raises(ValueError, match="whole numbers"):
        neighbor_precision_at_k([[1.0], [0.0], [0.0]], y, k=1)
    with pytest.raises(ValueError, match="at most 1, the neighbours listed for every query, got 2"):
        neighbor_precision_at_k([[0, 1], [0, 2], [0, 1]], y, k=2)
