"""CoCA against its published matrices written out, PCA, brute force, and rows taken away."""

import itertools
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.metrics import normalized_mutual_info_score

from tabweave import CoCA, Sources
from tabweave.sources import coca as spectrum
from tabweave.sources.coca import (
    factors,
    graph_terms,
    learned_view,
    on_simplex,
    read_links,
    shares,
    vector_terms,
)

N = 60
IDS = np.arange(N)


def tables(seed=0, incomplete=False):
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=(N, 3))
    out = {}
    for name, d, as_sparse in (("a", 5, False), ("b", 30, True), ("c", 7, False)):
        X = hidden @ rng.normal(size=(3, d)) + rng.normal(size=(N, d)) + 4.0
        X = np.where(rng.random(X.shape) < 0.7, 0.0, X) if as_sparse else X
        rows = np.sort(rng.permutation(N)[: N - 15]) if incomplete else IDS
        out[name] = (rows, sp.csr_array(X[rows]) if as_sparse else X[rows])
    return out


def graph(seed=0, density=0.1):
    rng = np.random.default_rng(seed)
    upper = np.triu(rng.random((N, N)) * (rng.random((N, N)) < density), 1)
    return IDS, sp.csr_array(upper + upper.T)


def unit_trace(rows, X):
    """X⁽ʲ⁾ᵀ written out: centred over its rows, mean square 1, zero rows where absent."""
    X = X.toarray() if sp.issparse(X) else X
    X = X - X.mean(axis=0)
    out = np.zeros((N, X.shape[1]))
    out[rows] = X / np.sqrt((X**2).sum() / len(rows))
    return out


def laplace(pair, alone=False):
    M = pair[1].toarray()
    degree = M.sum(axis=0) + (M.sum() / N if alone else 0)
    degree = np.maximum(degree, 1e-300)
    return M / np.sqrt(np.outer(degree, degree))


def published_matrix(Xs, omega, alpha, M):
    """Eqs. (4.8) and (4.14), block by block."""
    blocks = [
        [omega[j] * X.T @ X + X.T @ M @ X if j == h else alpha * X.T @ Z for h, Z in enumerate(Xs)]
        for j, X in enumerate(Xs)
    ]
    return np.block(blocks) / N


# -- the eigenproblem ------------------------------------------------------------------------


@pytest.mark.parametrize("incomplete", [False, True])
@pytest.mark.parametrize("solver", ["lanczos", "dense", "auto"])
def test_operator_form_equals_the_dense_eigenproblem(solver, incomplete):
    raw = tables(incomplete=incomplete)
    graphs = {"g": graph(1), "h": graph(2)}
    model = CoCA(6, alpha=0.4, solver=solver, graph_share=1).fit(Sources(raw, graphs))
    Xs = [unit_trace(*raw[name]) for name in "abc"]
    M = (laplace(graphs["g"]) + laplace(graphs["h"])) / 2
    values, vectors = np.linalg.eigh(published_matrix(Xs, [1 / 3] * 3, 0.4, M))
    values, vectors = values[::-1][:6], vectors[:, ::-1][:, :6]
    assert_allclose(model.eigenvalues_, values, atol=1e-10)
    u = np.hstack([model.components_[name] for name in "abc"])
    assert_allclose(np.abs(np.sum(u.T * vectors, axis=0)), 1.0, atol=1e-10)
    signs = np.sign(np.sum(u.T * vectors, axis=0))
    assert_allclose(u.T, vectors * signs, atol=1e-8)
    if not incomplete:
        base = np.hstack(Xs) @ vectors * signs / 3  # Eq. (4.2)
        assert_allclose(model.transform(Sources(raw, graphs)), base + M @ base, atol=1e-8)


def test_operator_is_the_objective_of_eq_4_12():
    raw, links = tables(), graph()
    Xs = [unit_trace(*raw[name]) for name in "abc"]
    M, omega, alpha = laplace(links), np.array([0.5, 0.3, 0.2]), 0.7
    rng = np.random.default_rng(3)
    us = [rng.normal(size=X.shape[1]) for X in Xs]
    T = [X @ u for X, u in zip(Xs, us, strict=True)]
    objective = sum(w * (t**2).sum() for w, t in zip(omega, T, strict=True))
    # The published double sum has j = h too; (4.8) has ω alone on the diagonal.
    objective += alpha * sum((T[j] * T[h]).sum() for j in range(3) for h in range(3) if j != h)
    objective += sum(M[a, b] * t[a] * t[b] for t in T for a in range(N) for b in range(N))
    sources = Sources(raw, {"g": links})
    operator = spectrum.collective(
        [learned_view(sources, name) for name in "abc"],
        omega,
        alpha,
        spectrum.blended([sources.graph("g")], [1.0]),
    )
    u = np.concatenate(us)
    assert_allclose(u @ operator.matvec(u) * N, objective, rtol=1e-10)


def test_equal_weights_without_graph_are_pca_on_the_scaled_joined_tables():
    raw = tables()
    phi = CoCA(4, weights="equal").fit_transform(Sources(raw))
    scores = PCA(4).fit_transform(np.hstack([unit_trace(*raw[name]) for name in "abc"]))
    assert_allclose(np.abs(3 * phi), np.abs(scores), atol=1e-8)


def test_one_plain_table_is_pca():
    X = np.random.default_rng(0).normal(size=(50, 8)) * np.arange(1, 9)
    phi = CoCA(3).fit_transform(X)
    scores = PCA(3).fit_transform(X) / np.sqrt(X.var(axis=0).sum())
    assert_allclose(np.abs(phi), np.abs(scores), atol=1e-9)


def test_sparse_cells_are_centred_without_being_filled():
    raw = tables(incomplete=True)
    dense = {name: (rows, X.toarray() if sp.issparse(X) else X) for name, (rows, X) in raw.items()}
    one, other = (CoCA(5).fit_transform(Sources(t)) for t in (raw, dense))
    assert_allclose(one, other, atol=1e-9)


def test_a_smaller_fit_is_the_beginning_of_a_larger_one():
    sources, labels = Sources(tables(), {"g": graph()}), IDS[:20] % 3
    y = dict(zip(IDS[:20].tolist(), labels.tolist(), strict=True))
    small, large = (CoCA(k).fit(sources, y).transform(sources) for k in (2, 9))
    assert_allclose(small, large[:, :2], atol=1e-8)


def test_the_order_of_rows_does_not_matter():
    raw, rng = tables(incomplete=True), np.random.default_rng(5)
    mixed = {}
    for name, (rows, X) in raw.items():
        order = rng.permutation(len(rows))
        mixed[name] = (rows[order], X[order])
    plain, other = Sources(raw, {"g": graph()}), Sources(mixed, {"g": graph()})
    left, right = CoCA(4).fit_transform(plain), CoCA(4).fit_transform(other)
    assert_allclose(left, right[other.index(plain.ids)], atol=1e-9)


def test_wide_sparse_tables_stay_sparse():
    rng = np.random.default_rng(0)
    wide = {}
    for name in "ab":
        X = sp.random_array((400, 20_000), density=5e-4, rng=rng, format="lil")
        X[:200, :50] = 1.0  # something to find
        wide[name] = (np.arange(400), sp.csr_array(X))
    sources = Sources(wide)
    tracemalloc.start()
    CoCA(1).fit(sources)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # One table written out is 64 MB, the matrix of the paper 13 GB; Lanczos keeps 40 vectors.
    assert peak < 40e6


# -- graphs alone ----------------------------------------------------------------------------


def test_graphs_alone_give_eigenvectors_of_the_centred_graph():
    links = graph(3, 0.3)
    sources = Sources(graphs={"g": links})
    model = CoCA(4, solver="lanczos").fit(sources)
    at = sources.ids
    M, H = laplace(links, alone=True)[np.ix_(at, at)], np.eye(N) - 1 / N
    values, vectors = np.linalg.eigh(H @ M @ H)
    values, vectors = values[::-1][:4], vectors[:, ::-1][:, :4]
    assert_allclose(model.eigenvalues_, values, atol=1e-9)
    phi = model.transform(sources)
    assert_allclose(np.abs(phi), np.abs(vectors * values * np.sqrt(N)), atol=1e-7)
    assert_allclose(phi.mean(axis=0), 0, atol=1e-9)


def test_a_new_node_is_projected_by_its_neighbours_of_fit():
    sides = {"u": [0, 0, 1, 3, 3, 4], "v": [1, 2, 2, 4, 5, 5]}  # two triangles
    model = CoCA(1).fit(Sources(graphs={"g": sides}))
    inside = model.transform(Sources(graphs={"g": sides}))[:, 0]
    assert inside[0] * inside[3] < 0
    assert_allclose(inside[:3], inside[0])
    new = Sources(graphs={"g": {"u": [9, 9, 8], "v": [0, 1, 4]}})
    outside = dict(zip(new.ids.tolist(), model.transform(new)[:, 0], strict=True))
    assert outside[9] * inside[0] > 0 and outside[8] * inside[3] > 0


def test_a_graph_in_pieces_is_solved_alike_by_both_solvers():
    rng = np.random.default_rng(0)
    sizes = [2] * 60 + [3] * 40 + [4] * 20 + [80]
    pieces = [np.triu(rng.random((m, m)) < max(0.1, 2 / m), 1) for m in sizes]
    for piece in pieces:
        piece[np.arange(len(piece) - 1), np.arange(1, len(piece))] = True  # connected
    M = sp.block_diag(list(map(sp.csr_array, pieces)), format="csr").astype(float)
    sources = Sources(graphs={"g": (range(M.shape[0]), M)})
    one, other = (CoCA(12, solver=solver).fit(sources) for solver in ("lanczos", "dense"))
    assert_allclose(one.eigenvalues_, other.eigenvalues_, atol=1e-9)
    first = one.transform(sources)[:, 0]
    assert first[-80:].min() > first[:-80].max()  # the largest piece, not one of the many pairs


# -- weights ---------------------------------------------------------------------------------


def written_out(phis, graphs, C):
    """E⁽ᵏ⁾ of Eqs. (4.16), (4.17) as matrices, and K, v of (4.19) by their traces."""
    Es = [np.abs(C) * (phi @ phi.T) / (phi**2).sum(axis=1).mean() for phi in phis]
    Es += [np.abs(C) * np.where(g.toarray() > 0, 1, -1) for g in graphs]
    K = np.array([[np.trace(a.T @ b) for b in Es] for a in Es])
    return K, np.array([np.trace(C @ E) for E in Es])


def test_terms_of_the_programme_equal_their_traces():
    rng = np.random.default_rng(0)
    phis = [rng.normal(size=(N, r)) for r in (1, 3, 10)]
    graphs = [graph(1, 0.2)[1], graph(2, 0.4)[1]]
    known = {i: "xyz"[i % 3] for i in range(0, 40, 2)}
    pairs = [(1, 3), (5, 41)]
    sources = Sources(tables())
    C = np.zeros((N, N))
    for (i, a), (j, b) in itertools.product(known.items(), repeat=2):
        C[i, j] = 1 if a == b else -1
    for terms, parts in ((vector_terms, (phis, [])), (graph_terms, ([], graphs))):
        K, v = terms([*parts[0], *parts[1]], read_links(sources, known, None, None))
        for got, expected in zip((K, v), written_out(*parts, C), strict=True):
            assert_allclose(got, expected)
        C2 = np.zeros((N, N))
        C2[1, 3] = C2[3, 1] = 1
        C2[5, 41] = C2[41, 5] = -1
        K, v = terms([*parts[0], *parts[1]], read_links(sources, None, pairs[:1], pairs[1:]))
        for got, expected in zip((K, v), written_out(*parts, C2), strict=True):
            assert_allclose(got, expected, atol=1e-12)


def all_supports(K, v):
    """The best of the minima over every subset of the weights: exact, exponential."""
    best, answer = np.inf, None
    for size in range(1, len(v) + 1):
        for at in itertools.combinations(range(len(v)), size):
            kkt = np.ones((size + 1, size + 1))
            kkt[:size, :size], kkt[-1, -1] = K[np.ix_(at, at)], 0
            omega = np.zeros(len(v))
            omega[list(at)] = np.linalg.solve(kkt, np.append(v[list(at)], 1))[:-1]
            value = omega @ K @ omega - 2 * v @ omega
            if omega.min() >= 0 and value < best:
                best, answer = value, omega
    return answer


@pytest.mark.parametrize("seed", range(30))
def test_simplex_programme_against_every_support(seed):
    rng = np.random.default_rng(seed)
    p = int(rng.integers(1, 8))
    A = rng.normal(size=(12, p))
    K, v = A.T @ A, A.T @ rng.normal(size=12) * 10 ** rng.uniform(-1, 1.5)
    assert_allclose(on_simplex(K, v), all_supports(K, v), atol=1e-7)


def test_simplex_programme_against_clarabel():
    clarabel = pytest.importorskip("clarabel", reason="the peer of this test")
    rng = np.random.default_rng(1)
    p = 60
    A = rng.normal(size=(200, p))
    K, v = A.T @ A, A.T @ rng.normal(size=200)
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    rows = sp.csc_array(np.vstack([np.ones((1, p)), -np.eye(p)]))
    cones = [clarabel.ZeroConeT(1), clarabel.NonnegativeConeT(p)]
    solver = clarabel.DefaultSolver(
        sp.csc_matrix(np.triu(2 * K)),
        -2 * v,
        sp.csc_matrix(rows),
        np.eye(p + 1)[0],
        cones,
        settings,
    )
    assert_allclose(on_simplex(K, v), solver.solve().x, atol=1e-6)


def test_two_copies_of_a_source_share_its_weight():
    K = np.array([[2.0, 2.0, 0.1], [2.0, 2.0, 0.1], [0.1, 0.1, 1.0]])
    omega = on_simplex(K, np.array([3.0, 3.0, 0.2]))
    assert_allclose(omega[0], omega[1], atol=1e-6)
    assert_allclose(omega.sum(), 1)


def noisy(seed=0, n=150):
    """Three kinds of things, one table that knows them, two of louder noise, and two graphs."""
    rng = np.random.default_rng(seed)
    kind = np.arange(n) % 3
    good = rng.normal(size=(3, 6))[kind] * 2 + rng.normal(size=(n, 6))
    loud = {f"noise{i}": (range(n), rng.normal(size=(n, 3)) * 50) for i in range(2)}
    same = (kind[:, None] == kind) & (rng.random((n, n)) < 0.1)
    chance = rng.random((n, n)) < 0.5
    graphs = {
        name: (range(n), sp.csr_array(np.triu(m, 1).astype(float)))
        for name, m in (("same", same), ("chance", chance))
    }
    return Sources({"good": (range(n), good), **loud}, graphs), kind


@pytest.mark.parametrize("given", ["labels", "links"])
def test_links_find_the_source_that_knows(given):
    sources, kind = noisy()
    known = list(range(40))
    if given == "labels":
        model = CoCA(2).fit(sources, {i: int(kind[i]) for i in known})
    else:
        pairs = list(itertools.combinations(known, 2))
        same = [kind[a] == kind[b] for a, b in pairs]
        must, cannot = (
            [p for p, s in zip(pairs, same, strict=True) if s is w] for w in (True, False)
        )
        must = [p for p in pairs if kind[p[0]] == kind[p[1]]]
        cannot = [p for p in pairs if kind[p[0]] != kind[p[1]]]
        model = CoCA(2).fit(sources, must_link=must, cannot_link=cannot)
    assert model.weights_["good"] > 0.8
    assert model.graph_weights_["same"] > model.graph_weights_["chance"]
    assert_allclose([sum(model.weights_.values()), sum(model.graph_weights_.values())], 1)

    def nmi(phi):
        found = KMeans(3, n_init=10, random_state=0).fit_predict(phi)
        return normalized_mutual_info_score(kind, found)

    equal = CoCA(2, weights="equal", graph_share=1).fit_transform(sources)
    assert nmi(model.transform(sources)) > nmi(equal) + 0.1


def test_links_without_anything_known_are_equal_weights():
    sources, kind = noisy()
    assert CoCA(2).fit(sources).weights_ == CoCA(2, weights="equal").fit(sources).weights_
    nothing = np.full(len(kind), None)
    assert CoCA(2).fit(sources, nothing).weights_["good"] == pytest.approx(1 / 3)


# -- rows and sources that are missing -------------------------------------------------------


def test_copies_of_a_source_stand_in_for_each_other():
    X = tables()["a"][1]
    model = CoCA(3).fit(Sources({"one": (IDS, X), "two": (IDS, 5 * X)}))
    full = model.transform(Sources({"one": (IDS, X), "two": (IDS, 5 * X)}))
    assert_allclose(model.transform(Sources({"one": (IDS, X)})), full, atol=1e-9)
    assert_allclose(model.transform(Sources({"two": (IDS, 5 * X)})), full, atol=1e-9)


def test_factors_are_a_regression_on_what_is_there():
    rng = np.random.default_rng(0)
    parts = [rng.normal(size=(N, 2)) + np.arange(N)[:, None] / 20 for _ in range(3)]
    products = shares(parts, np.ones((N, 3), bool))
    mask = np.array([[True, False, True], [True, True, True], [False, False, False]])
    got = factors(products, mask)
    here, total = parts[0] + parts[2], sum(parts)
    slope = [np.linalg.lstsq(here[:, [l]], total[:, l])[0][0] for l in range(2)]
    assert_allclose(got[0], slope)
    assert_allclose(got[1:], 1)


def test_a_row_missing_somewhere_comes_close_to_where_it_was():
    rng = np.random.default_rng(1)
    n, hidden = 300, rng.normal(size=(300, 2))
    raw = {m: hidden @ rng.normal(size=(2, 8)) + 0.3 * rng.normal(size=(n, 8)) for m in "abc"}
    whole = Sources({m: (range(n), X) for m, X in raw.items()})
    model = CoCA(2).fit(whole)
    phi = model.transform(whole)
    for kept in ("a", "ab", "bc"):
        part = model.transform(Sources({m: (range(n), raw[m]) for m in kept}))
        for k in range(2):
            assert np.corrcoef(part[:, k], phi[:, k])[0, 1] > 0.9
        plain = (
            sum(model.transform(Sources({m: (range(n), raw[m])})) for m in kept) / 3
        )  # without completion distances shrink
        assert ((part - phi) ** 2).sum() < ((plain - phi) ** 2).sum()


def test_any_subset_of_sources_can_be_transformed():
    sources = Sources(tables(incomplete=True), {"g": graph()})
    model = CoCA(3, graph_share=1).fit(sources, IDS % 3)
    both = model.transform(sources)
    raw = tables(incomplete=True)
    for names in itertools.chain.from_iterable(itertools.combinations("abc", r) for r in (1, 2, 3)):
        phi = model.transform(Sources({name: raw[name] for name in names}))
        assert phi.shape[1] == 3 and np.isfinite(phi).all()
    again = model.transform(Sources(graphs={"g": graph()}))  # ids of fit are remembered
    at = sources.index(Sources(graphs={"g": graph()}).ids)
    assert_allclose(again, both[at], atol=1e-9)


def test_a_row_without_tables_is_projected_by_its_neighbours():
    raw = tables()
    model = CoCA(2, graph_share=1).fit(Sources(raw, {"g": graph()}))
    new = Sources(
        {"a": (np.array([100, 101]), raw["a"][1][:2])}, {"g": {"u": [100, 102], "v": [101, 100]}}
    )
    phi = model.transform(new)
    assert new.ids.tolist() == [100, 101, 102]
    alone = model.transform(Sources({"a": (np.array([100, 101]), raw["a"][1][:2])}))
    assert_allclose(phi[2], alone[0] / np.sqrt(2), atol=1e-12)  # degrees 1 and 2


def test_categories_and_gaps_are_read():
    frame = {"id": [1, 2, 3, 4], "job": ["a", "b", "a", None], "age": [30.0, np.nan, 40.0, 50.0]}
    model = CoCA(2).fit(Sources({"people": frame}))
    assert model.columns_["people"] == ["job=a", "job=b", "age"]
    cells = np.array([[1, 0, 30], [0, 1, 40], [1, 0, 40], [0, 0, 50.0]])
    assert_allclose(model.transform(Sources({"people": frame})), CoCA(2).fit_transform(cells))
    new = {"id": [7], "job": ["unheard of"], "age": [40.0]}
    assert_allclose(
        model.transform(Sources({"people": new})), CoCA(2).fit(cells).transform([[0, 0, 40.0]])
    )


def test_a_column_beside_which_the_others_do_not_count_is_warned_of():
    rng = np.random.default_rng(0)
    rows = {"id": range(50), "age": rng.normal(size=50), "since": 1e9 + 1e6 * rng.random(50)}
    with pytest.warns(UserWarning, match=r"table 'people': expected .* units, got 'since' beside"):
        CoCA(2).fit(Sources({"people": rows}))
    CoCA(2).fit(Sources({"people": rows | {"age": np.zeros(50)}}))
    CoCA(2).fit(Sources({"people": rows | {"since": 9 * rng.random(50)}}))


def test_sources_that_do_not_vary_tell_nothing():
    raw = tables()
    more = {
        "empty": (np.zeros(0, int), np.zeros((0, 4))),
        "one row": ([3], [[1.0, 2.0]]),
        "constant": (IDS, np.full((N, 2), 0.1)),
        "sparse": (IDS, sp.csr_array(np.full((N, 2), 0.1))),
    }
    plain, padded = CoCA(3).fit(Sources(raw)), CoCA(3).fit(Sources({**raw, **more}), IDS % 2)
    assert all(padded.weights_[name] == 0 for name in more)
    padded = CoCA(3).fit(Sources({**raw, **more}))
    assert_allclose(padded.transform(Sources({**raw, **more})), plain.transform(Sources(raw)))
    with pytest.raises(ValueError, match="no table varies"):
        CoCA().fit(Sources(more))


def test_an_edgeless_graph_changes_nothing():
    raw = tables()
    none = (IDS, sp.csr_array((N, N)))
    model = CoCA(3).fit(Sources(raw, {"none": none}))
    assert model.graph_weights_ == {"none": 0.0}
    assert_allclose(model.transform(Sources(raw)), CoCA(3).fit_transform(Sources(raw)))


# -- bad input -------------------------------------------------------------------------------


def test_what_cannot_be_is_refused_by_name():
    sources = Sources(tables())
    with pytest.raises(ValueError, match=r"y: expected labels of ids of the sources, .* 999"):
        CoCA().fit(sources, {999: "a", 1: "b"})
    with pytest.raises(KeyError, match="must_link: expected ids of the sources, got 'z'"):
        CoCA().fit(sources, must_link=[(1, "z")])
    with pytest.raises(ValueError, match="cannot_link: expected pairs of ids"):
        CoCA().fit(sources, cannot_link=[(1, 2, 3)])
    with pytest.raises(ValueError, match=r"expected 60 labels, .* got 3"):
        CoCA().fit(sources, ["a", "b", "c"])
    with pytest.raises(ValueError, match="expected weights='learned' with links"):
        CoCA(weights="equal").fit(sources, must_link=[(1, 2)])
    with pytest.raises(TypeError, match=r"expected tabweave.Sources"):
        CoCA().fit(tables())
    broken = tables()["b"][1].copy()
    broken.data[0] = np.nan
    with pytest.raises(ValueError, match=r"table 'b': expected .* got NaN"):
        CoCA().fit(Sources({"b": (IDS, broken)}))
    with pytest.raises(ValueError, match="expected at least one id"):
        CoCA().fit(Sources({"a": (np.zeros(0, int), np.zeros((0, 3)))}))


def test_transform_wants_what_fit_had():
    raw = tables()
    model = CoCA(2).fit(Sources(raw))
    with pytest.raises(ValueError, match=r"the sources of fit, \['a', 'b', 'c'\], got \['other'\]"):
        model.transform(Sources({"other": raw["a"]}))
    with pytest.raises(TypeError, match="expected Sources"):
        model.transform(raw["a"][1])
    plain = CoCA(2).fit(raw["a"][1])
    with pytest.raises(TypeError, match="expected plain rows as in fit"):
        plain.transform(Sources(raw))
    with pytest.raises(ValueError, match="table 'a': expected column 'x3'"):
        model.transform(Sources({"a": (IDS, raw["a"][1][:, :3])}))


@pytest.mark.parametrize(
    ("name", "value"),
    [("n_components", 0), ("weights", "best"), ("alpha", -1.0), ("alpha", "60"), ("solver", "qr")],
)
def test_parameters_are_checked(name, value):
    with pytest.raises(ValueError, match=f"{name!r} parameter .* Got {value!r}"):
        CoCA(**{name: value}).fit(np.eye(3))


def test_a_second_fit_forgets_the_first():
    model = CoCA(2).fit(Sources(tables(), {"g": graph()}))
    model.fit(Sources(tables(4)))
    assert_allclose(model.transform(Sources(tables(4))), CoCA(2).fit_transform(Sources(tables(4))))
    model.fit(tables()["a"][1])
    assert model.n_features_in_ == 5
    model.fit(Sources(tables()))
    assert not hasattr(model, "n_features_in_")
