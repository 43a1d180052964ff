"""OMP and Batch-OMP: the same codes, those of scikit-learn, and bad input."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import orthogonal_mp_gram

from tabweave.embed import sets
from tabweave.embed.sets import batch_omp, omp

PURSUITS = pytest.mark.parametrize("pursue", [omp, batch_omp])


@pytest.fixture(scope="module")
def problem():
    rng = np.random.RandomState(0)
    atoms = rng.standard_normal((40, 20))
    atoms /= np.linalg.norm(atoms, axis=1, keepdims=True)
    return atoms, rng.standard_normal((700, 20))


@pytest.mark.parametrize("n_nonzero", [1, 4, 12])
def test_pursuits_agree_and_equal_sklearn(problem, n_nonzero):
    atoms, X = problem
    slow, fast = omp(X, atoms, n_nonzero=n_nonzero), batch_omp(X, atoms, n_nonzero=n_nonzero)
    np.testing.assert_array_equal(slow.indices, fast.indices)
    np.testing.assert_allclose(slow.data, fast.data, atol=1e-8)
    peer = orthogonal_mp_gram(atoms @ atoms.T, atoms @ X.T, n_nonzero_coefs=n_nonzero).T
    np.testing.assert_array_equal(peer != 0, fast.toarray() != 0)
    np.testing.assert_allclose(peer, fast.toarray(), atol=1e-8)


def test_by_error_equals_sklearn(problem):
    atoms, X = problem
    peer = orthogonal_mp_gram(
        atoms @ atoms.T, atoms @ X.T, tol=3.0, norms_squared=(X**2).sum(axis=1)
    ).T
    for pursue in (omp, batch_omp):
        codes = pursue(X, atoms, error=3.0, relative=False)
        np.testing.assert_allclose(peer, codes.toarray(), atol=1e-8)


@PURSUITS
def test_relative_error_is_met_with_no_atom_to_spare(problem, pursue):
    atoms, X = problem
    codes = pursue(X, atoms, error=0.2)
    left = ((X - codes @ atoms) ** 2).sum(axis=1) / (X**2).sum(axis=1)
    assert left.max() <= 0.2 + 1e-12
    sizes = np.diff(codes.indptr)
    fewer = pursue(X, atoms, n_nonzero=int(sizes.max()) - 1, error=0.2)
    still = np.diff(fewer.indptr) < sizes
    assert still.any()
    assert (((X - fewer @ atoms) ** 2).sum(axis=1) / (X**2).sum(axis=1))[still].min() > 0.2


@PURSUITS
def test_defaults_are_those_printed(problem, pursue):
    atoms, X = problem
    printed = pursue(X, atoms, error=0.5, n_nonzero=20)
    assert (pursue(X, atoms) != printed).nnz == 0


@PURSUITS
def test_residual_is_orthogonal_to_the_chosen_atoms(problem, pursue):
    atoms, X = problem
    codes = pursue(X, atoms, n_nonzero=5)
    products = (X - codes @ atoms) @ atoms.T
    assert np.abs(products[codes.toarray() != 0]).max() < 1e-12


@PURSUITS
def test_zero_signals_have_no_atoms(pursue):
    codes = pursue(np.array([[0.0, 0.0], [0.0, 3.0]]), np.eye(2), n_nonzero=2)
    np.testing.assert_array_equal(codes.toarray(), [[0, 0], [0, 3]])
    assert codes.nnz == 1


@PURSUITS
def test_dependent_atoms_stop_early(pursue):
    half = np.sqrt(0.5)
    atoms = np.array([[1.0, 0, 0], [1.0, 0, 0], [0, 1.0, 0], [half, half, 0]])
    codes = pursue([[2.0, 1.0, 5.0]], atoms, n_nonzero=4)
    assert codes.nnz == 2
    np.testing.assert_allclose(codes @ atoms, [[2.0, 1.0, 0.0]], atol=1e-12)


@PURSUITS
def test_of_equal_atoms_the_first_is_taken(pursue):
    codes = pursue([[1.0, 1.0 + 1e-14]], np.eye(2), n_nonzero=1)
    assert codes.indices.tolist() == [0]


@PURSUITS
def test_complete_when_nothing_is_left(pursue, problem):
    atoms, X = problem
    codes = pursue(X[:5], atoms, error=0.0)
    np.testing.assert_allclose(codes @ atoms, X[:5], atol=1e-6)


@PURSUITS
def test_sparse_signals_are_never_densified_whole(problem, pursue, monkeypatch):
    atoms, X = problem
    X = np.where(np.abs(X) > 1, X, 0)
    expected = pursue(X, atoms, n_nonzero=3)
    rows = []
    honest = sparse.csr_array.toarray

    def watched(self, *args, **kwargs):
        rows.append(self.shape[0])
        return honest(self, *args, **kwargs)

    monkeypatch.setattr(sparse.csr_array, "toarray", watched)
    for container in (sparse.csr_array, sparse.csc_array):
        codes = pursue(container(X), atoms, n_nonzero=3)
        assert abs(codes - expected).max() < 1e-12
    assert max(rows, default=0) <= 512


@PURSUITS
def test_chunks_do_not_change_codes(problem, pursue, monkeypatch):
    atoms, X = problem
    expected = pursue(X, atoms, n_nonzero=3)
    monkeypatch.setattr(sets, "CHUNK_ENTRIES", 300)
    codes = pursue(X, atoms, n_nonzero=3)
    np.testing.assert_array_equal(expected.indices, codes.indices)
    np.testing.assert_allclose(expected.data, codes.data, rtol=1e-12)
    assert codes.indices.dtype == codes.indptr.dtype == np.int32


def test_no_signals(problem):
    assert batch_omp(np.zeros((0, 20)), problem[0]).shape == (0, 40)


def test_a_known_gram_changes_nothing(problem):
    atoms, X = problem
    given = batch_omp(X, atoms, n_nonzero=3, gram=atoms @ atoms.T)
    assert abs(given - batch_omp(X, atoms, n_nonzero=3)).max() < 1e-12


@PURSUITS
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"atoms": np.ones((3, 20))}, "expected atoms of length 1, got atom 0.* divide each row"),
        ({"atoms": np.eye(20)[:, :5]}, "expected atoms of 20 features, as X has, got 5"),
        ({"n_nonzero": 0}, "expected n_nonzero to be a whole number >= 1, got 0"),
        ({"n_nonzero": True}, "n_nonzero .* got True"),
        ({"error": -1.0}, "expected error to be a number >= 0, got -1.0"),
        ({"error": "half"}, "error .* got 'half'"),
        ({"X": np.full((2, 20), np.nan)}, "NaN"),
    ],
)
def test_bad_input(problem, pursue, change, message):
    inputs = {"X": problem[1], "atoms": problem[0]} | change
    with pytest.raises(ValueError, match=message):
        pursue(inputs.pop("X"), inputs.pop("atoms"), **inputs)


def test_bad_gram(problem):
    atoms, X = problem
    with pytest.raises(ValueError, match=r"gram: expected 40 × 40, one row per atom, got \(2, 2\)"):
        batch_omp(X, atoms, gram=np.eye(2))
    with pytest.raises(ValueError, match="the gram matrix says 2"):
        batch_omp(X, atoms, gram=2 * np.eye(40))


@pytest.mark.parametrize("code", [omp, batch_omp])
def test_signals_whose_length_overflows_are_refused(code):
    """They had no atoms at all."""
    with pytest.raises(ValueError, match="signals of finite length, got row 1 beyond"):
        code([[1.0, 2.0], [1e200, 0.0]], np.eye(2), n_nonzero=1)
