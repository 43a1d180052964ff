"""K-SVD: the error never rises, planted atoms come back, and bad input."""

import pickle
from functools import partial

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from tabweave.embed import sets
from tabweave.embed.sets import KSVD, SetTfidf, code_errors


def planted(n, d, n_atoms, nonzero, decibel, seed=0):
    rng = np.random.RandomState(seed)
    atoms = rng.standard_normal((n_atoms, d))
    atoms /= np.linalg.norm(atoms, axis=1, keepdims=True)
    codes = np.zeros((n, n_atoms))
    chosen = rng.random((n, n_atoms)).argsort(axis=1)[:, :nonzero]
    np.put_along_axis(codes, chosen, rng.standard_normal((n, nonzero)), axis=1)
    X = codes @ atoms
    noise = rng.standard_normal(X.shape)
    return atoms, X + noise * np.linalg.norm(X) / np.linalg.norm(noise) * 10 ** (-decibel / 20)


@parametrize_with_checks([KSVD(3, n_nonzero=2, update="exact", pursuit="omp", max_iter=5)])
def test_sklearn(estimator, check):
    check(estimator)


@pytest.mark.parametrize("update", ["approx", "exact"])
@pytest.mark.parametrize(
    "stop", [{"n_nonzero": 3}, {"error": 0.1}, {}, {"n_nonzero": 4, "error": 0.3}]
)
def test_error_never_increases(update, stop):
    _, X = planted(300, 15, 30, 4, 15)
    model = KSVD(25, **stop, update=update, max_iter=25, random_state=1).fit(X)
    assert len(model.error_trace_) == len(model.size_trace_) == model.n_iter_ + 1
    assert np.diff(model.error_trace_).max() <= 1e-12 * model.error_trace_[0]
    assert model.error_trace_[-1] < model.error_trace_[0]
    np.testing.assert_allclose(np.linalg.norm(model.components_, axis=1), 1)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_planted_dictionary_is_recovered(seed):
    atoms, X = planted(2000, 30, 50, 3, 30, seed)
    model = KSVD(50, n_nonzero=3, max_iter=100, random_state=seed).fit(X)
    found = np.abs(atoms @ model.components_.T).max(axis=1)
    assert (found > 0.99).mean() >= 0.95


@pytest.mark.parametrize("exact", [False, True])
def test_update_equals_algorithm_4(exact):
    """The error matrix written out, one SVD (or one step towards it) per atom."""
    _, X = planted(80, 10, 12, 3, 10)
    atoms = sets.first_atoms(X, 12, np.random.RandomState(0))
    codes = KSVD(12, n_nonzero=3)._pursue(X, atoms)[0]
    D, A = atoms.copy(), codes.toarray()
    for k in range(12):
        users = np.flatnonzero(A[:, k])
        if not len(users):
            continue
        others = A[users].copy()
        others[:, k] = 0
        E = X[users] - others @ D
        if exact:
            d = np.linalg.svd(E)[2][0]
            d = d if d @ D[k] >= 0 else -d
        else:
            d = E.T @ A[users, k]
            d /= np.linalg.norm(d)
        D[k], A[users, k] = d, E @ d
    for given in (X, sparse.csr_array(X)):
        new_atoms, new_codes = sets.update_atoms(given, atoms, codes, exact)
        np.testing.assert_allclose(new_atoms, D, atol=1e-8)
        np.testing.assert_allclose(new_codes.toarray(), A, atol=1e-7)


def test_large_error_matrices_stay_operators(monkeypatch):
    _, X = planted(80, 10, 12, 3, 10)
    atoms = sets.first_atoms(X, 12, np.random.RandomState(0))
    codes = KSVD(12, n_nonzero=3)._pursue(X, atoms)[0]
    expected, _ = sets.update_atoms(X, atoms, codes, True)
    monkeypatch.setattr(sets, "_leading", partial(sets._leading, max_dense_entries=0))
    found, _ = sets.update_atoms(X, atoms, codes, True)
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_code_errors_are_those_of_the_residual():
    _, X = planted(50, 10, 12, 3, 10)
    atoms = sets.first_atoms(X, 12, np.random.RandomState(0))
    codes, errors = KSVD(12, n_nonzero=3)._pursue(X, atoms)
    direct = ((X - codes @ atoms) ** 2).sum(axis=1)
    np.testing.assert_allclose(errors, direct, atol=1e-12)
    np.testing.assert_allclose(code_errors(X, atoms, codes), direct, atol=1e-12)


def test_pursuits_learn_the_same():
    _, X = planted(200, 12, 20, 3, 20)
    batch, plain = (
        KSVD(20, n_nonzero=3, pursuit=p, max_iter=8, random_state=0).fit(X)
        for p in ("batch", "omp")
    )
    np.testing.assert_allclose(batch.error_trace_, plain.error_trace_, rtol=1e-6)


def test_sparse_and_dense_signals_learn_the_same():
    _, X = planted(150, 12, 20, 3, 20)
    X[np.abs(X) < 0.2] = 0
    dense = KSVD(20, n_nonzero=3, max_iter=5, random_state=0).fit(X)
    thin = KSVD(20, n_nonzero=3, max_iter=5, random_state=0).fit(sparse.csr_array(X))
    np.testing.assert_allclose(dense.components_, thin.components_, atol=1e-8)
    assert abs(dense.transform(X) - thin.transform(sparse.csr_array(X))).max() < 1e-8


def test_worse_codes_are_taken_back_only_as_far_as_needed():
    old = sparse.csr_array(np.diag([1.0, 1.0, 1.0])), np.array([1.0, 1.0, 1.0])
    new = sparse.csr_array(np.diag([2.0, 2.0, 2.0])), np.array([0.5, 1.4, 2.0])
    codes, errors = sets.fresh_codes(old, new, 4.0)
    assert codes is new[0]
    codes, errors = sets.fresh_codes(old, new, 3.0)
    np.testing.assert_array_equal(errors, [0.5, 1.4, 1.0])
    np.testing.assert_array_equal(codes.toarray().diagonal(), [2, 2, 1])


def test_unused_atoms_are_replaced_by_badly_coded_signals():
    X = np.repeat(np.eye(3), 4, axis=0)
    atoms = np.array([[1.0, 0, 0], [1.0, 0, 0], [0, 1.0, 0]])
    errors = np.array([0.0] * 8 + [1.0] * 4)
    found = sets.replaced(X, atoms, np.array([1]), errors, np.ones(12))
    np.testing.assert_array_equal(found[1], [0, 0, 1])
    np.testing.assert_array_equal(found[[0, 2]], atoms[[0, 2]])


def test_fewer_distinct_signals_than_atoms():
    X = np.repeat([[1.0, 0.0, 0.0], [0.0, 2.0, 0.0]], 5, axis=0)
    model = KSVD(6, n_nonzero=1, random_state=0).fit(X)
    assert model.components_.shape == (6, 3)
    assert model.error_trace_[-1] < 1e-12


def test_zero_signals():
    model = KSVD(3, n_nonzero=1, random_state=0).fit(np.zeros((4, 5)))
    assert model.transform(np.zeros((2, 5))).nnz == 0
    assert model.error_trace_[-1] == 0


def test_same_seed_same_atoms_and_round_trips():
    _, X = planted(100, 8, 10, 2, 20)
    model = KSVD(10, n_nonzero=2, max_iter=4, random_state=3).fit(X)
    again = clone(model).fit(X)
    np.testing.assert_array_equal(model.components_, again.components_)
    copy = pickle.loads(pickle.dumps(model))
    codes = copy.transform(X)
    assert isinstance(codes, sparse.csr_array)
    assert codes.shape == (100, 10)
    np.testing.assert_allclose(copy.inverse_transform(codes), codes @ model.components_)
    assert model.get_feature_names_out()[0] == "ksvd0"


def test_partial_fit_learns_over_batches():
    _, X = planted(4000, 16, 20, 2, 30)
    seen, held_out = X[:3600], X[3600:]
    model = KSVD(20, n_nonzero=2, random_state=0)
    for epoch in range(6):
        for start in range(0, len(seen), 200):
            model.partial_fit(seen[start : start + 200])
        if not epoch:
            early = np.linalg.norm(held_out - model.inverse_transform(model.transform(held_out)))
    late = np.linalg.norm(held_out - model.inverse_transform(model.transform(held_out)))
    assert model.n_iter_ == 6 * 18 == len(model.error_trace_)
    assert late <= early
    assert late < 0.3 * np.linalg.norm(held_out)


def test_partial_fit_after_fit_goes_on():
    _, X = planted(400, 10, 12, 2, 30)
    model = KSVD(12, n_nonzero=2, max_iter=10, random_state=0).fit(X[:200])
    before = model.n_iter_
    model.partial_fit(sparse.csr_array(X[200:]))
    assert model.n_iter_ == before + 1
    np.testing.assert_allclose(np.linalg.norm(model.components_, axis=1), 1)


def test_progress(capsys):
    _, X = planted(60, 6, 8, 2, 20)
    seen = []
    model = KSVD(6, n_nonzero=2, max_iter=3, random_state=0, progress=seen.append).fit(X)
    assert [(p.done, p.total, p.unit) for p in seen] == [(i, 3, "turns") for i in (1, 2, 3)]
    assert [p.note for p in seen] == [f"error {error:.6g}" for error in model.error_trace_[1:]]
    model.partial_fit(X)
    assert (seen[-1].done, seen[-1].unit) == (model.n_iter_, "batches")
    assert capsys.readouterr().err == ""


def test_atoms_and_rows_are_explained_in_values():
    rows = {"tags": [["a", "b"]] * 20 + [["c", "d"]] * 20}
    tfidf = SetTfidf(1).fit(rows)
    X = tfidf.transform(rows)
    model = KSVD(2, n_nonzero=1, random_state=0).fit(X)
    names = tfidf.get_feature_names_out()
    assert sorted(model.describe_atoms(names)) == [
        "0.71 tags_a + 0.71 tags_b",
        "0.71 tags_c + 0.71 tags_d",
    ]
    [(atom, weight, text)] = model.explain(X[[0]], names)
    assert text == "0.71 tags_a + 0.71 tags_b"
    assert model.explain(X[0], names) == model.explain(X[[0]], names)
    assert weight == pytest.approx(np.log10(2) * np.sqrt(2))
    assert model.describe_atoms(top=1)[atom].split()[1] in ("x0", "x1")
    with pytest.raises(ValueError, match="expected one signal, got 2"):
        model.explain(X[:2])


def test_compression():
    rows = {"tags": [["a", "b", "c", "d"]] * 20 + [["e", "f", "g", "h"]] * 20}
    X = SetTfidf(1).fit_transform(rows)
    found = KSVD(2, n_nonzero=1, random_state=0).fit(X).compression(X)
    assert (found["nonzeros"], found["code_nonzeros"], found["atom_nonzeros"]) == (160, 40, 8)
    assert found["ratio"] == 4
    assert found["relative_error"] == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_atoms": 0}, "n_atoms.* must be an int in the range .1, inf.* Got 0"),
        ({"max_iter": 0}, "max_iter.* must be an int"),
        ({"pursuit": "lasso"}, "pursuit.* must be a str among .* Got 'lasso'"),
        ({"update": "svd"}, "update.* must be a str among .* Got 'svd'"),
        ({"n_nonzero": 1.5}, "n_nonzero.* must be an int .*or None"),
        ({"error": -0.1}, "error.* must be a float in the range .0.0, inf.* Got -0.1"),
    ],
)
def test_bad_parameters(parameters, message):
    with pytest.raises(ValueError, match=message):
        KSVD(**parameters).fit(np.eye(3))


def test_bad_codes():
    model = KSVD(2, random_state=0).fit(np.eye(3))
    with pytest.raises(ValueError, match="expected codes of 2 atoms, got 3"):
        model.inverse_transform(np.eye(3))
