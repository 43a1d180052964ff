"""SetTfidf: Table II exactly, counts that add up, round trips, and bad input."""

import pickle
from itertools import chain, combinations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from tabweave import Column
from tabweave.columns.table import Table
from tabweave.embed import sets
from tabweave.embed.sets import SetTfidf, TermCounts

TABLE_I = {
    "Reactome": [["REACT_1497"], ["REACT_1698", "REACT_1791"]],
    "Interpro": [["IPR000276", "IPR017452"], ["IPR000276", "IPR016695"]],
}
TABLE_II = {
    ("REACT_1497",): (0.3010, 0),
    ("IPR000276",): (0, 0),
    ("IPR017452",): (0.3010, 0),
    ("IPR000276", "IPR017452"): (0.3010, 0),
    ("REACT_1698",): (0, 0.3010),
    ("REACT_1791",): (0, 0.3010),
    ("REACT_1698", "REACT_1791"): (0, 0.3010),
    ("IPR016695",): (0, 0.3010),
    ("IPR000276", "IPR016695"): (0, 0.3010),
}
CELLS = st.lists(st.sampled_from("abcde"), max_size=4)
ROWS = st.lists(st.tuples(CELLS, st.sampled_from(["x", "y", None])), min_size=1, max_size=12)


def as_columns(rows):
    return {"tags": [cell for cell, _ in rows], "kind": [value for _, value in rows]}


@parametrize_with_checks([SetTfidf(None, schema="nominal")])
def test_sklearn(estimator, check):
    check(estimator)


@pytest.mark.parametrize("max_subset", [2, None])
def test_table_2(max_subset):
    tfidf = SetTfidf(max_subset).fit(TABLE_I)
    weights = tfidf.transform(TABLE_I).toarray().T
    found = {term: tuple(w.round(4)) for (_, term), w in zip(tfidf.terms_, weights, strict=True)}
    assert found == TABLE_II
    assert "Interpro_IPR000276,IPR017452" in tfidf.get_feature_names_out()


def delimited(rows):
    return {name: [", ".join(cell) for cell in cells] for name, cells in rows.items()}


@pytest.mark.parametrize("read", [dict, pd.DataFrame, pl.DataFrame, pa.table])
def test_sets_from_any_library(read):
    expected = SetTfidf().fit_transform(TABLE_I).toarray()
    np.testing.assert_array_equal(SetTfidf().fit_transform(read(TABLE_I)).toarray(), expected)
    schema = {name: Column(name, "set", delimiter=",") for name in TABLE_I}
    text = read(delimited(TABLE_I))
    found = SetTfidf(schema=schema).fit_transform(text).toarray()
    np.testing.assert_array_equal(found, expected)


def brute_force(rows, max_subset):
    """Return {(column, term): set of rows} by going through everything."""
    held = {}
    for name, cells in rows.items():
        for i, cell in enumerate(cells):
            elements = sorted(set(cell)) if isinstance(cell, list) else [cell]
            sizes = range(1, min(max_subset or len(elements), len(elements)) + 1)
            for term in chain.from_iterable(combinations(elements, s) for s in sizes):
                held.setdefault((name, term), set()).add(i)
    return held


@settings(max_examples=30)
@given(ROWS, st.sampled_from([1, 2, 3, None]))
def test_equals_brute_force(rows, max_subset):
    rows = as_columns(rows)
    tfidf = SetTfidf(max_subset).fit(rows)
    held, n = brute_force(rows, max_subset), len(rows["tags"])
    assert set(tfidf.terms_) == set(held)
    dense = tfidf.transform(rows).toarray()
    for j, term in enumerate(tfidf.terms_):
        expected = np.zeros(n)
        expected[list(held[term])] = np.log10(n / len(held[term]))
        np.testing.assert_allclose(dense[:, j], expected)


def count(rows):
    return TermCounts.of(Table.of(as_columns(rows), {"tags": "set", "kind": "nominal"}), 3)


@settings(max_examples=20)
@given(ROWS, ROWS, ROWS)
def test_counts_are_a_monoid(a, b, c):
    A, B, C, whole = (count(rows) for rows in (a, b, c, a + b))
    assert A + B == B + A == whole
    assert (A + B) + C == A + (B + C)
    assert TermCounts() + A == A + TermCounts() == A


@settings(max_examples=20)
@given(ROWS, ROWS)
def test_chunks_and_sums_equal_the_whole(a, b):
    schema = {"tags": "set", "kind": "nominal"}
    whole = SetTfidf(schema=schema).fit(as_columns(a + b))
    parts = SetTfidf(schema=schema).fit(as_columns(a))
    total = parts + SetTfidf(schema=schema).fit(as_columns(b))
    parts.partial_fit(as_columns(b))
    assert not hasattr(parts, "terms_")  # asking does not learn
    parts.learn()
    for other in (parts, total):
        assert other.terms_ == whole.terms_
        np.testing.assert_array_equal(other.document_frequency_, whole.document_frequency_)
        assert abs(other.transform(as_columns(a)) - whole.transform(as_columns(a))).nnz == 0


@settings(max_examples=20)
@given(ROWS, ROWS, st.sampled_from([1, 2, None]))
def test_inverse_is_exact_even_for_new_rows(a, b, max_subset):
    """Terms of every row weigh 0 and are found again all the same."""
    schema = {"tags": "set", "kind": "nominal"}
    tfidf = SetTfidf(max_subset, schema=schema).fit(as_columns(a + b))
    back = tfidf.inverse_transform(tfidf.transform(as_columns(b)))
    assert back == {
        "tags": [sorted(set(cell)) for cell, _ in b],
        "kind": [value for _, value in b],
    }


def test_blocks_do_not_change_anything(monkeypatch):
    rng = np.random.RandomState(0)
    rows = {"t": [list(map(int, rng.choice(20, rng.randint(6)))) for _ in range(200)]}
    whole = SetTfidf(3).fit(rows)
    expected = whole.transform(rows)
    monkeypatch.setattr(sets, "BLOCK_TERMS", 50)
    parts = SetTfidf(3).fit(rows)
    assert parts.counts_ == whole.counts_
    assert abs(parts.transform(rows) - expected).nnz == 0


def test_min_df_and_max_terms():
    rows = {"t": [["a", "b"], ["a", "b"], ["a", "c"], ["a"]]}
    assert SetTfidf(min_df=2).fit(rows).terms_ == [("t", ("a",)), ("t", ("b",)), ("t", ("a", "b"))]
    assert SetTfidf(min_df=0.75).fit(rows).terms_ == [("t", ("a",))]
    assert SetTfidf(min_df=1.0).fit(rows).terms_ == [("t", ("a",))]
    assert SetTfidf(max_terms=2).fit(rows).terms_ == [("t", ("a",)), ("t", ("b",))]
    pruned = SetTfidf(min_df=2).fit(rows)
    assert pruned.transform(rows).shape == (4, 3)
    assert pruned.inverse_transform(pruned.transform(rows))["t"][2] == ["a"]
    # Pruning forgets nothing: rows that come later may still make a term frequent.
    pruned.partial_fit({"t": [["c"]]})
    assert ("t", ("c",)) in pruned.learn().terms_
    with pytest.raises(ValueError, match=r"expected min_df to keep a term, got 9: .* 4 of 4 rows"):
        SetTfidf(min_df=9).fit(rows)


@settings(max_examples=30)
@given(ROWS, st.integers(1, 12))
def test_max_terms_keeps_the_most_frequent(rows, max_terms):
    full = SetTfidf(3, schema={"tags": "set"}).fit(as_columns(rows))
    few = SetTfidf(3, schema={"tags": "set"}, max_terms=max_terms).fit(as_columns(rows))
    kept = sorted(few.document_frequency_)[::-1]
    assert kept == sorted(full.document_frequency_)[::-1][:max_terms]
    whole = dict(zip(full.terms_, full.transform(as_columns(rows)).toarray().T, strict=True))
    for term, weights in zip(few.terms_, few.transform(as_columns(rows)).toarray().T, strict=True):
        np.testing.assert_array_equal(weights, whole[term])


def test_empty_sets_duplicates_and_missing():
    rows = {"t": [[], ["a", "a", "b"], None, ["b"]]}
    tfidf = SetTfidf().fit(rows)
    assert tfidf.terms_ == [("t", ("a",)), ("t", ("b",)), ("t", (None,)), ("t", ("a", "b"))]
    np.testing.assert_array_equal(tfidf.document_frequency_, [1, 2, 1, 1])
    assert np.diff(tfidf.transform(rows).indptr).tolist() == [0, 3, 1, 1]
    assert tfidf.get_feature_names_out()[2] == "t_<missing>"
    nothing = SetTfidf(schema={"t": "set"}).fit({"t": [[], []]})
    assert nothing.transform({"t": [[]]}).shape == (1, 0)


def test_the_remedy_of_an_exploding_cell_is_not_what_was_refused():
    with pytest.raises(ValueError, match=r"2,001,000 terms .*max_subset=1 \(2,000 terms"):
        SetTfidf(2).fit({"t": [list(range(2000))]})


def test_an_exploding_cell_is_refused_with_its_number_of_terms():
    large = [str(v) for v in range(40)]
    message = r"'t': row 1 has 40 .*1,099,511,627,775 terms .*max_subset=2 \(820 terms"
    with pytest.raises(ValueError, match=message):
        SetTfidf(None).fit({"t": [["0"], large]})
    with pytest.raises(ValueError, match="max_subset=7 makes 23,242,038 terms"):
        SetTfidf(7).fit({"t": [large]})
    assert len(SetTfidf(2).fit({"t": [large]}).terms_) == 820
    small = SetTfidf(None).fit({"t": [["0", "1"], ["2"]]})
    assert small.transform({"t": [large]}).nnz == 4


def test_unknown_values():
    tfidf = SetTfidf().fit({"t": [["a", "b"], ["a"]]})
    assert tfidf.transform({"t": [["z"], ["b", "z"]]}).toarray().round(2).tolist() == [
        [0, 0, 0],
        [0, 0.3, 0],
    ]
    strict = clone(tfidf).set_params(unknown="error").fit({"t": [["a", "b"], ["a"]]})
    with pytest.raises(ValueError, match="column 't': value 'z' was not seen in fit"):
        strict.transform({"t": [["z"]]})


def test_single_values_and_binary_weights():
    rows = {"color": ["red", "blue", "red"], "size": [1, 2, 1]}
    hot = SetTfidf(weighting="binary", schema="nominal").fit(rows)
    assert hot.transform(rows).toarray().tolist() == [[0, 1, 1, 0], [1, 0, 0, 1], [0, 1, 1, 0]]
    assert hot.inverse_transform(hot.transform(rows)) == rows


def test_approximate_weights_have_a_threshold():
    rows = {"t": [["a"], ["b"], ["b", "c"]], "v": ["x", "y", "y"]}
    tfidf = SetTfidf(1).fit(rows)
    rough = tfidf.transform(rows).toarray() * 0.8 + 0.01
    assert tfidf.inverse_transform(rough, threshold=0.5) == rows
    assert tfidf.inverse_transform(np.zeros((1, 5)))["v"] == [None]
    with pytest.raises(ValueError, match="X: expected 5 columns, one per term, got 2"):
        tfidf.inverse_transform(np.zeros((1, 2)))


def test_names_tell_a_comma_from_a_pair():
    names = SetTfidf().fit({"t": [["a", "b"], ["a,b"]]}).get_feature_names_out().tolist()
    assert names == ["t_a", "t_'a,b'", "t_b", "t_a,b"]


def test_pickle_and_index_type():
    tfidf = pickle.loads(pickle.dumps(SetTfidf().fit(TABLE_I)))
    out = tfidf.transform(TABLE_I)
    assert out.indices.dtype == out.indptr.dtype == np.int32
    assert out.has_sorted_indices


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"max_subset": 0}, "max_subset.* must be an int .*or None. Got 0"),
        ({"max_terms": 0}, "max_terms.* must be an int .*or None. Got 0"),
        ({"min_df": 0}, "min_df.* must be an int .*or a float .* Got 0"),
        ({"min_df": 1.5}, "min_df.* Got 1.5"),
        ({"weighting": "bm25"}, "weighting.* must be a str among .* Got 'bm25'"),
        ({"unknown": "centroid"}, "unknown.* must be a str among .* Got 'centroid'"),
        ({"schema": {"Reactome": "numeric"}}, "Reactome"),
    ],
)
def test_bad_parameters(parameters, message):
    with pytest.raises((ValueError, TypeError), match=message):
        SetTfidf(**parameters).fit(TABLE_I)


def test_sums_that_do_not_fit():
    fitted = SetTfidf(1).fit(TABLE_I)
    with pytest.raises(ValueError, match="the same max_subset, got 1 and 2"):
        fitted + SetTfidf(2).fit(TABLE_I)
    with pytest.raises(ValueError, match=r"expected columns .* got "):
        fitted + SetTfidf(1).fit({"t": [["a"]]})
    with pytest.raises(ValueError, match="numeric"):
        SetTfidf(schema={"x": "numeric"}).fit({"x": [1.5, 2.0]})


@pytest.mark.parametrize("n", [7, 14, 28, 50, 55])
def test_a_share_of_just_so_many_rows_is_enough(n):
    rows = {"s": [["a"]] * n + [["b"]] * (100 - n)}
    terms = [term for _, (term,) in SetTfidf(1, min_df=n / 100).fit(rows).terms_]
    assert "a" in terms and ("b" in terms) == (n <= 50)


@pytest.mark.parametrize("sets", [[{"a", "b"}, {"b"}], [["a", "b"], ["b"]]])
def test_a_list_of_sets_alone_is_told_how_it_becomes_a_column(sets):
    with pytest.raises(ValueError, match="a list of sets is one column of a table"):
        SetTfidf().fit(sets)
