"""Context measures against their published definitions, with loops over rows."""

import math
from itertools import chain, combinations, product

import numpy as np
import pytest
from scipy import stats

from tabweave import Counts, Table, ValueMetric
from tabweave.measures import coupled
from tabweave.measures.coupled import (
    ahmad,
    cbdl_chi2,
    cbdl_prediction,
    chi_square,
    dilca,
    jia,
    jia_weights,
    le_ho,
    mutual_prediction,
)
from tabweave.measures.frequency import occurrences
from tabweave.measures.register import MEASURES
from tabweave.space.value_tables import ValueTables

TABLES = (ahmad, cbdl_chi2, cbdl_prediction, dilca, le_ho)


def random_rows(seed, n=30, n_columns=4, n_values=3):
    rng = np.random.default_rng(seed)
    hidden = rng.integers(0, n_values, n)
    rows = [
        [f"v{h if rng.random() < 0.5 else rng.integers(n_values)}" for _ in range(n_columns)]
        for h in hidden
    ]
    for row in rows:
        if rng.random() < 0.3:
            row[rng.integers(n_columns)] = None
    return rows


def counted(rows):
    return Counts.of(table(rows))


def table(rows):
    return Table.of({f"c{a}": list(col) for a, col in enumerate(zip(*rows, strict=True))})


def codes(counts, rows):
    """Codes in the vocabulary of the counts; unknown values get the next one."""
    return [
        np.array([labels.index(r[a]) if r[a] in labels else len(labels) for r in rows])
        for a, labels in enumerate(counts.labels)
    ]


def p(rows, b, q, a, v):
    """p(q|v): the share of rows with q in column b among those with v in column a."""
    having = [r for r in rows if r[a] == v]
    return sum(r[b] == q for r in having) / len(having)


def entropy(items):
    shares = [items.count(v) / len(items) for v in set(items)]
    return -sum(p * math.log(p) for p in shares)


def mutual(x, y):
    return entropy(x) + entropy(y) - entropy(list(zip(x, y, strict=True)))


def values(rows, a):
    return {r[a] for r in rows}


def published_ahmad(rows, a, v, w):
    """Eq. (2.10), the best of all subsets."""
    others = [b for b in range(len(rows[0])) if b != a]
    total = 0
    for b in others:
        domain = list(values(rows, b))
        subsets = chain.from_iterable(combinations(domain, k) for k in range(len(domain) + 1))
        total += max(
            sum(p(rows, b, q, a, v) for q in inside)
            + sum(p(rows, b, q, a, w) for q in set(domain) - set(inside))
            - 1
            for inside in subsets
        )
    return total / len(others)


def published_le_ho(rows, a, v, w, chosen=None):
    """Eq. (2.8), with one extra row spread like the other column."""
    total = 0
    for b in range(len(rows[0])) if chosen is None else chosen:
        for q in values(rows, b) if b != a else ():
            f = sum(r[b] == q for r in rows) / len(rows)
            x, y = (
                (sum(r[a] == u and r[b] == q for r in rows) + f)
                / (sum(r[a] == u for r in rows) + 1)
                for u in (v, w)
            )
            total += x * math.log(x / y) + y * math.log(y / x)
    return total


def published_context(rows, a):
    """Eqs. (2.19)-(2.21), removing redundant columns one by one as they stand."""
    columns = [list(c) for c in zip(*rows, strict=True)]

    def su(x, y):
        total = entropy(columns[x]) + entropy(columns[y])
        return round(2 * mutual(columns[x], columns[y]) / total, 10) if total else 0

    kept = [b for b in range(len(columns)) if b != a and su(a, b) > 0]
    for k in list(kept):
        if any(su(a, k) <= su(a, m) and su(m, k) >= su(a, k) for m in kept if m != k):
            kept.remove(k)
    return kept


def published_dilca(rows, a, v, w):
    """Eq. (2.22), with the conditioning of Ienco et al.: p(value given context value)."""
    kept = published_context(rows, a)
    met = [(b, q) for b in kept for q in values(rows, b)]
    square = sum((p(rows, a, v, b, q) - p(rows, a, w, b, q)) ** 2 for b, q in met)
    size = sum(len(values(rows, b)) for b in kept)
    return math.sqrt(square / size) if size else 0


def errors(x, y):
    """Wrong guesses of y by its most frequent value: blindly, and among the rows that share x."""
    blind = len(y) - max(y.count(v) for v in set(y))
    known = 0
    for q in set(x):
        own = [v for v, met in zip(y, x, strict=True) if met == q]
        known += len(own) - max(own.count(v) for v in set(own))
    return blind, known


def predicts(x, y):
    """Goodman and Kruskal's λ, both directions together."""
    pairs = [errors(x, y), errors(y, x)]
    blind, known = (sum(part) for part in zip(*pairs, strict=True))
    return (blind - known) / blind if blind else 0.0


def published_cbdl_prediction(rows, a, v, w):
    columns = [list(c) for c in zip(*rows, strict=True)]
    score = {b: predicts(c, columns[a]) for b, c in enumerate(columns) if b != a}
    mean = sum(score.values()) / len(score)
    chosen = [b for b, s in score.items() if s > 0 and s >= mean - 1e-12]
    return published_le_ho(rows, a, v, w, chosen)


def p_value(rows, a, b):
    x, y = ([str(r[c]) for r in rows] for c in (a, b))
    joint = np.array([[sum(i == v and j == w for i, j in zip(x, y, strict=True))
                       for w in sorted(set(y))] for v in sorted(set(x))])  # fmt: skip
    return stats.chi2_contingency(joint, correction=False).pvalue


def published_cbdl_chi2(rows, a, v, w):
    others = [b for b in range(len(rows[0])) if b != a]
    return published_le_ho(rows, a, v, w, [b for b in others if p_value(rows, a, b) < 0.05])


PUBLISHED = {
    "ahmad": published_ahmad,
    "cbdl_chi2": published_cbdl_chi2,
    "cbdl_prediction": published_cbdl_prediction,
    "dilca": published_dilca,
    "le_ho": published_le_ho,
}


@pytest.mark.parametrize("name", PUBLISHED)
@pytest.mark.parametrize("seed", range(3))
def test_equals_the_published_definition(name, seed):
    rows = random_rows(seed)
    counts = counted(rows)
    for a, found in enumerate(MEASURES[name].function(counts)):
        for i, v in enumerate(counts.labels[a]):
            for j, w in enumerate(counts.labels[a]):
                assert found[i, j] == pytest.approx(PUBLISHED[name](rows, a, v, w), abs=1e-12)


def test_chi_square_is_that_of_scipy():
    rows = random_rows(2, n=60)
    found = chi_square(counted(rows))
    for a, b in combinations(range(4), 2):
        assert found[a, b] == found[b, a] == pytest.approx(p_value(rows, a, b), rel=1e-9)
    assert (found.diagonal() == 1).all()


def test_mutual_prediction_worked_by_hand():
    # blind guesses: 3 of 6 wrong in x, 2 of 6 in y; knowing y 1 wrong in x, knowing x 0 in y
    rows = [*[["a", "p"]] * 3, ["b", "p"], ["c", "q"], ["c", "q"]]
    found = mutual_prediction(counted(rows))
    assert found[0, 1] == found[1, 0] == pytest.approx((3 + 2 - 1 - 0) / (3 + 2))


def test_contexts_leave_out_what_is_independent():
    rows = [[a, a.upper(), c] for a in "xyz" for c in "pq"] * 5
    counts = counted(rows)
    for measure in (cbdl_chi2, cbdl_prediction):
        first, _, third = measure(counts)
        two = le_ho(counted([r[:2] for r in rows]))[0]
        np.testing.assert_allclose(first, two)
        assert (third == 0).all()


def published_jia(rows, first, second):
    """Eqs. (2.12)-(2.17) for two rows."""
    n, n_columns = len(rows), len(rows[0])
    columns = [list(c) for c in zip(*rows, strict=True)]

    def r(m, l):
        joint = entropy(list(zip(columns[m], columns[l], strict=True)))
        return mutual(columns[m], columns[l]) / joint if joint else 0

    beta = sum(r(m, l) for m in range(n_columns) for l in range(n_columns)) / n_columns**2
    total = 0
    for m in range(n_columns):
        for l in range(n_columns):
            if not (r(m, l) > beta + 1e-12 or m == l):
                continue
            met = [sum((o[m], o[l]) == (x[m], x[l]) for o in rows) for x in (first, second)]
            chance = sum(c / n * max(c - 1, 0) / (n - 1) for c in met)
            if first[m] != second[m]:
                total += r(m, l) * chance
            else:
                total += r(m, l) * (first[l] != second[l]) * chance
    return total


@pytest.mark.parametrize("seed", range(3))
def test_jia_equals_the_published_definition(seed):
    rows = random_rows(seed, n=14)
    counts = counted(rows)
    new = [["never", *rows[0][1:]], rows[1], ["never"] * 4]
    found = jia(counts, codes(counts, rows), codes(counts, new))
    for i, first in enumerate(rows):
        for j, second in enumerate(new):
            assert found[i, j] == pytest.approx(published_jia(rows, first, second), abs=1e-12)


def test_jia_is_symmetric_and_zero_for_equal_rows():
    rows = random_rows(9, n=60)
    counts = counted(rows)
    d = jia(counts, codes(counts, rows), codes(counts, rows))
    assert np.allclose(d, d.T) and (d.diagonal() == 0).all() and (d >= 0).all()
    assert (d > 0).sum() > 3000


def test_missing_cells_of_jia_are_drawn_at_random():
    """The mean over all ways to fill the gaps of two rows, by the shares of values."""
    rows = np.array(random_rows(4, n=20), object)[:, :3]
    rows[np.random.default_rng(0).random(rows.shape) < 0.2] = None
    metric = ValueMetric("jia").fit(rows)
    found = metric.pairwise_distances(rows)
    present = metric.counts_.present(metric.counts_.names)
    f = [count / count.sum() for count in occurrences(present)]

    def filled(row):
        """Each way to fill a row, as codes, and its probability."""
        values = [
            list(enumerate(share)) if v is None else [(labels.index(v), 1.0)]
            for v, share, labels in zip(row, f, present.labels, strict=True)
        ]
        return [
            ([np.array([code]) for code, _ in chosen], math.prod(p for _, p in chosen))
            for chosen in product(*values)
        ]

    for i, j in combinations(range(8), 2):
        expected = sum(
            p * q * jia(present, one, other)[0, 0]
            for one, p in filled(rows[i])
            for other, q in filled(rows[j])
        )
        assert found[i, j] == pytest.approx(expected, abs=1e-12)
    assert (found.diagonal() == 0).all()


def test_jia_in_blocks(monkeypatch):
    rows = random_rows(3, n=50)
    counts = counted(rows)
    c = codes(counts, rows)
    whole = jia(counts, c, c)
    monkeypatch.setattr(coupled, "BLOCK_ENTRIES", 7 * 4**2)
    assert np.array_equal(jia(counts, c, c), whole)


def test_jia_weights_keep_the_column_itself():
    copies = counted([["a", "x"], ["b", "y"], ["a", "x"]])
    assert np.array_equal(jia_weights(copies), np.eye(2))
    assert np.array_equal(jia_weights(counted([["a"], ["b"]])), [[1]])


def test_jia_refuses_sets():
    counts = Counts.of(Table.of({"tags": [{"a"}, {"a", "b"}]}, {"tags": "set"}))
    with pytest.raises(ValueError, match="'tags' is set-valued"):
        jia(counts, [np.array([0])], [np.array([0])])


@pytest.mark.parametrize("function", TABLES)
@pytest.mark.parametrize("seed", range(3))
def test_is_a_dissimilarity(function, seed):
    for d in function(counted(random_rows(seed, n=50, n_values=5))):
        assert np.array_equal(d, d.T) or np.allclose(d, d.T, rtol=0, atol=1e-15)
        assert (d.diagonal() == 0).all() and (d >= 0).all() and np.isfinite(d).all()


@pytest.mark.parametrize("function", [ahmad, dilca])
def test_triangle_inequality(function):
    for d in function(counted(random_rows(0, n=80, n_values=8))):
        assert (d[:, None] <= d[:, :, None] + d[None] + 1e-12).all()


@pytest.mark.parametrize("function", TABLES)
def test_row_order_and_names_do_not_matter(function):
    rows = random_rows(4)
    renamed = [[None if v is None else f"{9 - int(v[1])}" for v in r] for r in rows[::-1]]
    for d, e, labels in zip(function(counted(rows)), function(counted(renamed)),
                            counted(rows).labels, strict=True):  # fmt: skip
        reverse = [*range(len(d) - 1 - (None in labels), -1, -1)]
        order = reverse + [len(d) - 1] * (None in labels)
        if None in labels:
            assert labels[-1] is None
        assert np.allclose(d, e[np.ix_(order, order)])


@pytest.mark.parametrize("function", TABLES)
@pytest.mark.parametrize("rows", [[["a"], ["b"]], [["a", "x"]], [["a", "x"], ["a", "y"]]])
def test_degenerate_tables(function, rows):
    assert all(np.isfinite(d).all() for d in function(counted(rows)))
    one = counted(rows)
    assert np.isfinite(jia(one, codes(one, rows), codes(one, rows))).all()


def test_ahmad_of_values_that_never_meet_the_same():
    assert ahmad(counted([["a", "x"], ["b", "y"]]))[0][0, 1] == 1


def test_codes_of_value_tables_fit_jia():
    rows = random_rows(1)
    counts = counted(rows)
    tables = ValueTables.from_features([np.eye(n) for n in counts.sizes], counts)
    c = tables.codes(table(rows))
    assert np.allclose(jia(counts, c, c), jia(counts, codes(counts, rows), codes(counts, rows)))


def test_the_weight_of_rows_does_not_change_how_columns_predict_each_other():
    rng = np.random.default_rng(0)
    a = rng.integers(0, 3, 40)
    columns = {"a": a.astype(str), "b": ((a + rng.integers(0, 2, 40)) % 3).astype(str)}
    counts = Counts.of(Table.of(columns))
    found = mutual_prediction(counts)
    assert 0 < found[0, 1] == found[1, 0] < 1 and found[0, 0] == found[1, 1] == 0
    np.testing.assert_allclose(mutual_prediction(counts.scaled(1e-4)), found)


def test_chi_square_of_columns_of_many_sizes():
    rng = np.random.default_rng(0)
    columns = [rng.integers(0, size, 80) for size in (2, 2, 3, 5)]
    columns.append((columns[0] + rng.integers(0, 2, 80)) % 3)
    rows = {f"c{i}": [f"v{v}" for v in column] for i, column in enumerate(columns)}
    found = chi_square(Counts.of(Table.of({**rows, "flat": ["x"] * 80})))
    for a, b in np.ndindex(5, 5):
        if a != b:
            table = stats.contingency.crosstab(columns[a], columns[b]).count
            wanted = stats.chi2_contingency(table, correction=False).pvalue
            assert found[a, b] == pytest.approx(wanted)
    assert (found[5] == 1).all() and (np.diag(found) == 1).all() and found[0, 4] < 0.01


def test_chi_square_of_values_that_never_meet_the_other_column():
    """A row without elements meets none of them: it says nothing."""
    sets = {"s": [["p"], ["q"], ["p"], [], []], "a": ["u", "v", "u", "w", "w"]}
    wanted = stats.chi2_contingency([[2, 0], [0, 1]], correction=False).pvalue
    for names in (["s", "a"], ["a", "s"]):
        table = Table.of({name: sets[name] for name in names}, {"s": "set"})
        assert chi_square(Counts.of(table))[0, 1] == pytest.approx(wanted)
