"""CoCA: one space for things that several tables and graphs describe [Shi 2013, ch. 4].

Collective component analysis finds directions in every source at once: of large variance, agreeing
between sources, similar for things that a graph connects. Comes in: `Sources`, or a plain table.
Goes out: a few coordinates per id. The (Σd)² matrix of the paper is only ever an operator.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator, eigsh
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from tabweave._compat import Interval, StrOptions, eigh, fix_signs, warn_caller
from tabweave.base import Estimator
from tabweave.columns.inputs import numbers_only
from tabweave.io.register import storable
from tabweave.sources.container import Sources, check_form, positions_in
from tabweave.sources.tables import IdIndex, labels_of_rows, read_labels, without_attributes

MIN_EDGES_TO_JUDGE = 10  # between labels, from which on these judge a graph


@storable
class CoCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Estimator):
    """Embed the entities that several tables and graphs describe, in one common space.

    The coordinates are projections on the top eigenvectors of ``X + X̃``, Eqs. (4.8) and (4.14):
    variance within each table, agreement between tables, similarity along graphs. Each table is
    centred and scaled to unit trace, each graph to ``D^{-½} M D^{-½}``. Any row may be missing in
    any table, and any table or graph may be absent in :meth:`transform`. A graph that does not
    connect similar rows is not used.

    Parameters
    ----------
    n_components : int, default=10
        Number of coordinates; fewer if the sources have fewer columns (``n_components_``). Those
        of a smaller fit are the first ones of a larger fit.
    weights : {"learned", "equal"}, default="learned"
        ``"learned"``: weights ω by Eq. (4.19) from labels or links, equal ones without any; √ω is
        applied to the data.
    alpha : float or "auto", default="auto"
        How much the tables should agree. ``"auto"`` is 1/p for p tables: with equal weights and no
        graph CoCA is then PCA on the joined, scaled tables.
    solver : {"auto", "dense", "lanczos"}, default="auto"
        Form the matrix, or only multiply by it; "auto" forms it up to 512 columns.
    graph_share : float or "auto", default="auto"
        How much neighbours count relative to the row itself; 0 is CoCA without graphs. ``"auto"``
        is 1 for graphs that help and leaves out the others (``refused_``). With labels, edges must
        connect equal labels more often than by chance, and nearest neighbours must not get worse
        with the graph. Without labels, edges must connect similar rows. A number is used for all
        graphs.

    Attributes
    ----------
    n_components_, alpha_ : int, float
        What was used.
    weights_, graph_weights_ : dict of str to float
        The weight of each table and of each graph; each kind sums up to 1, graphs to 0 if all are
        refused. A table that does not vary (empty, one row) has weight 0.
    refused_ : dict of str to str
        The tables and graphs of weight 0, and why.
    eigenvalues_ : ndarray of shape (n_components_,)
        Of ``X + X̃`` over the number of ids.
    components_ : dict of str to ndarray of shape (n_components_, n_columns)
        The directions in each table.
    columns_ : dict of str to list of str
        Their columns; a category has one for each label.
    ids_ : ndarray
        The ids of fit.
    n_features_in_, feature_names_in_ : int, ndarray
        Number and names of the columns, after fit on a plain table.

    Notes
    -----
    A row's coordinates are the mean of its projections over the tables, Eq. (4.2), plus that of
    its neighbours in the graphs. What tables without the row would add is predicted from the
    others, each coordinate by itself. A row without any table has the coordinates of its
    neighbours, and those of the centre if there are none. Without tables the coordinates are the
    eigenvectors of the graphs, Eq. (4.11), times their eigenvalues; new ids are projected by those
    of their neighbours that were in fit. There the mean degree is added to each of D, or every
    small piece of a graph would come first.

    A single multiplier in (4.9) normalises the directions jointly, not in each source. The
    published α = 60 is for unscaled data, and drowns weights that touch the diagonal blocks only:
    hence √ω. :class:`tabweave.papers.CoCA` has them there.

    Examples
    --------
    >>> import numpy as np
    >>> from tabweave import CoCA, Sources
    >>> rng = np.random.default_rng(0)
    >>> kind = np.repeat([0, 1], 20)
    >>> good = kind[:, None] + 0.3 * rng.normal(size=(40, 5))
    >>> noise = rng.normal(size=(40, 5))
    >>> sources = Sources({"good": (range(40), good), "noise": (range(40), noise)})
    >>> model = CoCA(2).fit(sources, {0: "a", 1: "a", 2: "a", 20: "b", 21: "b", 22: "b"})
    >>> {name: round(w, 2) for name, w in model.weights_.items()}
    {'good': 1.0, 'noise': 0.0}
    >>> model.transform(sources).shape
    (40, 2)
    >>> new = Sources({"good": (["x", "y"], [[0.0] * 5, [1.0] * 5])})
    >>> first = model.transform(new)[:, 0]
    >>> bool(first[0] * first[1] < 0)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "weights": [StrOptions({"learned", "equal"})],
        "alpha": [StrOptions({"auto"}), Interval(Real, 0, None, closed="left")],
        "solver": [StrOptions({"auto", "dense", "lanczos"})],
        "graph_share": [StrOptions({"auto"}), Interval(Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        n_components: int = 10,
        *,
        weights: str = "learned",
        alpha: float | str = "auto",
        solver: str = "auto",
        graph_share: float | str = "auto",
    ) -> None:
        self.n_components = n_components
        self.weights = weights
        self.alpha = alpha
        self.solver = solver
        self.graph_share = graph_share

    _weighs_data: ClassVar[bool] = True  # √ω on the data, not ω on the blocks of (4.8)

    # -- learning --------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, *, must_link: Any = None, cannot_link: Any = None) -> Self:
        """Find the directions, and the weights if there are labels or links of some ids.

        Parameters
        ----------
        X : Sources, or array, sparse matrix or numeric frame
            The sources; a plain table is one source whose ids are the row numbers.
        y : mapping or series of id to label, or array-like in the order of ``X.ids``, optional
            Labels: equal ones are must-links, different ones cannot-links. None or NaN where
            there is none. If weights are equal, labels judge graphs only.
        must_link, cannot_link : sequences of pairs of ids, optional
            Things that belong together, and things that do not.
        """
        self._validate_params()
        sources = self._read(X, reset=True)
        if y is not None:
            y = _labels_in(X, y)
        views = {name: self._view(sources, name) for name in sources.names}
        views = {name: view for name, view in views.items() if view.scale > 0}
        for name, view in views.items():
            warn_of_units(name, view, column_names(sources, name))
        self._learn_weights(sources, views, (y, must_link, cannot_link))
        graph = self._blend(sources, alone=not views)
        self.alpha_ = 1 / max(len(views), 1) if self.alpha == "auto" else float(self.alpha)
        self.components_: dict[str, np.ndarray] = {}
        self.columns_ = {name: column_names(sources, name) for name in views}
        self._means = {name: view.mean for name, view in views.items()}
        roots = {name: np.sqrt(len(views) * w) for name, w in self.weights_.items()}
        self._scales = {
            name: view.scale * (float(roots[name]) if self._weighs_data else 1.0)
            for name, view in views.items()
        }
        self._format = sources.select(sources.ids[:0])  # columns and codes, no rows
        self.ids_ = sources.ids
        self._coordinates: np.ndarray | None = None
        if views:
            scaled = [replace(view, scale=self._scales[name]) for name, view in views.items()]
            self._fit_tables(sources, scaled, graph)
        else:
            self._fit_graphs(sources, graph)
        self._n_features_out = self.n_components_
        return self

    def _view(self, sources: Sources, name: str) -> CenteredTable:
        """A table as vectors, scale 0 if it does not vary."""
        return learned_view(sources, name)

    def _learn_weights(
        self, sources: Sources, views: dict[str, CenteredTable], supervision: tuple[Any, ...]
    ) -> None:
        """Algorithm 2, lines 13-25, after graphs that do not join like with like are refused."""
        learned = self.weights == "learned"
        if not learned and any(links is not None for links in supervision[1:]):
            raise ValueError("expected weights='learned' with links, got 'equal'")
        graphs = {name: g for name in sources.graph_names if (g := sources.graph(name)).nnz}
        links = read_links(sources, *supervision)
        phis = [self._principal(view) for view in views.values()] if links or graphs else []
        omega = np.full(len(views), 1 / max(len(views), 1))
        if learned and links and len(views) > 1:
            omega = on_simplex(*vector_terms(phis, links))
        weighted = [np.sqrt(w) * phi for w, phi in zip(omega, phis, strict=bool(phis))]
        refused = self._refused_graphs(graphs, weighted, links)
        graphs = {name: graph for name, graph in graphs.items() if name not in refused}
        tilde = np.full(len(graphs), 1 / max(len(graphs), 1))
        if learned and links and len(graphs) > 1:
            tilde = on_simplex(*graph_terms([*graphs.values()], links))
        self.weights_ = dict.fromkeys(sources.names, 0.0)
        self.weights_ |= zip(views, omega.tolist(), strict=True)
        self.graph_weights_ = dict.fromkeys(sources.graph_names, 0.0)
        self.graph_weights_ |= zip(graphs, tilde.tolist(), strict=True)
        weights = {**self.weights_, **self.graph_weights_}
        refused |= dict.fromkeys(set(sources.names) - {*views}, "no column varies")
        refused |= {n: "no edges" for n in sources.graph_names if not sources.graph(n).nnz}
        self.refused_ = {
            name: refused.get(name, "weight 0 by Eq. (4.19)")
            for name, weight in weights.items()
            if weight < 1e-12
        }

    def _refused_graphs(
        self, graphs: dict[str, sp.csr_array], phis: Sequence[np.ndarray], links: Links
    ) -> dict[str, str]:
        """The graphs that do not join like with like, and why."""
        if self.graph_share != "auto":
            return dict.fromkeys(graphs, "graph_share is 0") if self.graph_share == 0 else {}
        reasons = {name: mismatch(graph, phis, links) for name, graph in graphs.items()}
        return {name: reason for name, reason in reasons.items() if reason}

    def _principal(self, view: CenteredTable, *, n_components: int = 10) -> np.ndarray:
        operator = collective([view], np.ones(1), 1.0, None)
        k = min(n_components, view.width)
        return view.forward(leading(operator, k, view.n, self.solver)[1])

    def _fit_tables(
        self, sources: Sources, views: Sequence[CenteredTable], graph: sp.csr_array | None
    ) -> None:
        names, p = list(self._means), len(views)
        omega = np.full(p, 1 / p) if self._weighs_data else [self.weights_[name] for name in names]
        operator = collective(views, omega, self.alpha_, graph)
        self.n_components_ = min(self.n_components, operator.shape[0])
        self.eigenvalues_, u = leading(operator, self.n_components_, p * len(sources), self.solver)
        blocks = np.split(u, np.cumsum([view.width for view in views])[:-1])
        self.components_ = {name: block.T for name, block in zip(names, blocks, strict=True)}
        parts = [view.forward(block) for view, block in zip(views, blocks, strict=True)]
        present = sources.present[:, [sources.names.index(name) for name in names]]
        self._shares = shares(parts, present)
        if graph is not None:  # someone's neighbours may be asked for without their tables
            self._coordinates = np.sum(parts, axis=0) * factors(self._shares, present) / p

    def _fit_graphs(self, sources: Sources, graph: sp.csr_array | None) -> None:
        if graph is None:
            raise ValueError(
                "expected a table that varies or a graph with an edge, got neither: no table "
                "varies (each is empty, constant or has one row)"
            )
        n = len(sources)
        self.n_components_ = min(self.n_components, n)
        self.eigenvalues_, phi = leading(within(graph), self.n_components_, n, self.solver)
        self._coordinates = np.sqrt(n) * phi
        self._center = (graph @ self._coordinates).mean(axis=0)

    # -- using -----------------------------------------------------------------------------

    def transform(self, X: Any) -> np.ndarray:
        """The coordinates of ids, in the order of ``X.ids``.

        Parameters
        ----------
        X : Sources, or a plain table if fit was given one
            Some or all of the tables and graphs of fit, of the same or of other ids.
        """
        check_is_fitted(self)
        sources = self._read(X, reset=False)
        fitted = [*self._format.names, *self._format.graph_names]
        names = [*sources.names, *sources.graph_names]
        if not {*names} & {*fitted}:
            raise ValueError(f"expected some of the sources of fit, {fitted}, got {names}")
        sources = sources.like(self._format)
        return self._coordinates_of(sources)[positions_in(sources, X)]

    def _coordinates_of(self, sources: Sources) -> np.ndarray:
        """Mean projections and those of neighbours; of graphs alone, those of neighbours."""
        base = self._projected(sources)
        graph = self._blend(sources, alone=not self.components_)
        around = np.zeros_like(base) if graph is None else graph @ base
        return base + around if self.components_ else around - self._center

    def _blend(self, sources: Sources, alone: bool) -> sp.csr_array | None:
        graphs = [sources.graph(name) for name in sources.graph_names]
        share = 1.0 if self.graph_share == "auto" else float(self.graph_share)
        weights = [share * self.graph_weights_[name] for name in sources.graph_names]
        return blended(graphs, weights, alone)

    def _projected(self, sources: Sources) -> np.ndarray:
        """Eq. (4.2): mean projection of each id; as in fit for an id that has no table here."""
        total = np.zeros((len(sources), self.n_components_))
        present = np.zeros((len(sources), len(self.components_)), dtype=bool)
        for j, (name, basis) in enumerate(self.components_.items()):
            if name in sources.names:
                view = fitted_view(sources, name, self._means[name], self._scales[name])
                total += view.forward(basis.T)
                present[view.rows, j] = True
        if self.components_:
            total *= factors(self._shares, present) / len(self.components_)
        if self._coordinates is not None:
            index = IdIndex(self.ids_)(sources.ids)
            recall = (index >= 0) & ~present.any(axis=1)
            total[recall] = self._coordinates[index[recall]]
        return total

    # -- reading ---------------------------------------------------------------------------

    def _read(self, X: Any, *, reset: bool) -> Sources:
        if not reset:
            check_form(X, not hasattr(self, "n_features_in_"))
        if not isinstance(X, Sources):
            return plain_source(self, X, reset)
        if reset:
            without_attributes(self, "n_features_in_", "feature_names_in_")
        if not len(X):
            raise ValueError("expected at least one id, got empty sources")
        return X.surroundings

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = []
        return tags


# -- views: tables as centred, scaled vectors; sparse ones are never centred ----------------------


@storable
@dataclass(frozen=True, eq=False)
class CenteredTable:
    """X⁽ʲ⁾ᵀ of one source over all n ids: ``scale · (matrix − mean)``, zero where a row is absent.

    Dense cells are centred once. Sparse ones keep their zeros; the mean is taken off the products.
    """

    n: int
    rows: np.ndarray
    matrix: Any
    mean: np.ndarray
    scale: float

    @property
    def width(self) -> int:
        """Number of columns."""
        return int(self.matrix.shape[1])

    def forward(self, basis: np.ndarray) -> np.ndarray:
        """The projections of every id on some directions, ``n × k``."""
        out = np.zeros((self.n, basis.shape[1]))
        shift = self.mean @ basis if sp.issparse(self.matrix) else 0.0
        out[self.rows] = self.scale * (self.matrix @ basis - shift)
        return out

    def backward(self, values: np.ndarray) -> np.ndarray:
        """The transposed product, ``columns × k``."""
        values = values[self.rows]
        out = self.matrix.T @ values
        if sp.issparse(self.matrix):
            out = out - np.outer(self.mean, values.sum(axis=0))
        return self.scale * out


def plain_source(estimator: Any, X: Any, reset: bool) -> Sources:
    """A table of numbers as the only source; its ids are the row numbers."""
    if isinstance(X, Mapping) and not sp.issparse(X):
        raise TypeError("expected tabweave.Sources(...), got a mapping of tables")
    remedy = "a table of categories goes into tabweave.Sources({'name': table}, key=...)"
    with numbers_only(X, remedy):
        X = validate_data(
            estimator,
            X,
            reset=reset,
            accept_sparse="csr",
            dtype=np.float64,
            ensure_all_finite="allow-nan",
            ensure_min_samples=2 if reset else 1,
        )
    return Sources({"X": (np.arange(X.shape[0]), X)})


def learned_view(sources: Sources, name: str, *, constant_ratio: float = 1e-24) -> CenteredTable:
    """A source with its own mean, scaled to unit trace; scale 0 if it never varies."""
    matrix = cells(sources, name)
    mean = column_means(matrix)
    matrix = centred(matrix, mean)
    n_rows = max(matrix.shape[0], 1)
    if sp.issparse(matrix):
        at_zero = matrix.shape[0] - np.bincount(matrix.indices, minlength=matrix.shape[1])
        total = ((matrix.data - mean[matrix.indices]) ** 2).sum() + at_zero @ mean**2
    else:
        total = (matrix**2).sum()
    variance = total / n_rows
    varies = variance > constant_ratio * (mean @ mean) and n_rows > 1
    scale = float(1 / np.sqrt(variance)) if varies else 0.0
    return CenteredTable(len(sources), sources.rows(name), matrix, mean, scale)


def warn_of_units(
    name: str, view: CenteredTable, columns: Sequence[str], *, min_variance_ratio: float = 1e-3
) -> None:
    """Warn of a column beside which the others of its table do not count."""
    if sp.issparse(view.matrix):
        return
    squares = np.einsum("ij,ij->j", view.matrix, view.matrix)
    largest = int(np.argmax(squares))
    others = np.delete(squares, largest)
    if others.any() and others.sum() < min_variance_ratio * squares[largest]:
        warn_caller(
            f"table {name!r}: expected columns of similar units, got {columns[largest]!r} beside "
            f"which the others hardly vary, so that they do not count; scale the columns first, "
            f"e.g. with sklearn.preprocessing.StandardScaler"
        )


def fitted_view(sources: Sources, name: str, mean: np.ndarray, scale: float) -> CenteredTable:
    """A source as seen by a fitted model."""
    matrix = centred(cells(sources, name), mean)
    return CenteredTable(len(sources), sources.rows(name), matrix, mean, scale)


def cells(sources: Sources, name: str) -> Any:
    """A table as numbers: a category becomes one column for each of its labels."""
    matrix: Any = sources.matrix(name)
    if sp.issparse(matrix):
        if np.isnan(matrix.data).any():
            raise ValueError(
                f"table {name!r}: expected a sparse matrix of numbers, got NaN; drop these entries "
                "(they count as 0) or pass it dense"
            )
        return sp.csr_array(matrix)
    parts = []
    for i, labels in enumerate(sources.labels(name)):
        column = matrix[:, i : i + 1]
        if labels is not None:  # missing: none of the labels
            column = (column == np.arange(len(labels))).astype(float)
        parts.append(column)
    return matrix if not sources.categorical(name).any() else np.hstack(parts)


def column_names(sources: Sources, name: str) -> list[str]:
    """The names of the columns of :func:`cells`."""
    out: list[str] = []
    for column, labels in zip(sources.columns(name), sources.labels(name), strict=True):
        out += [column] if labels is None else [f"{column}={label!s}" for label in labels]
    return out


def column_means(matrix: Any) -> np.ndarray:
    """The mean of each column's cells that are not missing, 0 if all are."""
    if sp.issparse(matrix):
        return np.asarray(matrix.sum(axis=0)).ravel() / max(matrix.shape[0], 1)
    present = ~np.isnan(matrix)
    return np.where(present, matrix, 0.0).sum(axis=0) / np.maximum(present.sum(axis=0), 1)


def centred(matrix: Any, mean: np.ndarray) -> Any:
    """Dense cells around their means, a missing one at its mean; sparse ones as they are."""
    if sp.issparse(matrix):
        return matrix
    out = matrix - mean
    out[np.isnan(out)] = 0.0
    return out


# -- the collective matrix and its eigenvectors -------------------------------------------------


def collective(
    views: Sequence[CenteredTable], weights: np.ndarray, alpha: float, graph: sp.csr_array | None
) -> LinearOperator:
    """Eqs. (4.8), (4.14): X + X̃ over n, as the map u ↦ (X + X̃)u / n; never a (Σd)² matrix.

    With T = [X⁽¹⁾ᵀu⁽¹⁾ … X⁽ᵖ⁾ᵀu⁽ᵖ⁾], block j of the result is
    ``X⁽ʲ⁾ ((ω_j − α) T_j + α Σ_h T_h + M T_j) / n``.
    """
    ends = np.cumsum([view.width for view in views])
    starts, size, n = ends - [view.width for view in views], int(ends[-1]), views[0].n

    def apply(u: np.ndarray) -> np.ndarray:
        u = u.reshape(size, -1)
        parts = [v.forward(u[a:b]) for v, a, b in zip(views, starts, ends, strict=True)]
        pull = alpha * np.sum(parts, axis=0)
        if graph is None:
            neighbor_parts = [0.0] * len(parts)
        else:  # all parts in one pass over the edges
            neighbor_parts = np.hsplit(graph @ np.hstack(parts), len(parts))
        out = np.empty_like(u)
        for j, view in enumerate(views):
            values = (weights[j] - alpha) * parts[j] + pull + neighbor_parts[j]
            out[starts[j] : ends[j]] = view.backward(values) / n
        return out

    return LinearOperator(
        (size, size), matvec=lambda u: apply(u).ravel(), matmat=apply, dtype=np.float64
    )


def within(graph: sp.csr_array) -> LinearOperator:
    """Eq. (4.11) for zero-mean Φ: HMH with H the centring matrix."""

    def apply(phi: np.ndarray) -> np.ndarray:
        out = graph @ (phi - phi.mean(axis=0))
        return out - out.mean(axis=0)

    return LinearOperator(graph.shape, matvec=apply, matmat=apply, dtype=np.float64)


def leading(
    operator: LinearOperator,
    k: int,
    rows: int,
    solver: str,
    *,
    dense_size: int = 512,
    block_entries: int = 1 << 24,
) -> tuple[np.ndarray, ...]:
    """The k largest eigenvalues and their eigenvectors; ``rows`` sizes the batches."""
    size = operator.shape[0]
    if solver == "dense" or k >= size - 1 or (solver == "auto" and size <= dense_size):
        step = max(1, block_entries // max(rows, 1))
        unit = np.eye(size)
        matrix = np.hstack([operator.matmat(unit[:, i : i + step]) for i in range(0, size, step)])
        values, vectors = eigh(matrix, k)
    else:
        values, vectors = _lanczos(operator, k)
    order = np.argsort(-values, kind="stable")
    return values[order], fix_signs(vectors[:, order])


def _lanczos(operator: LinearOperator, k: int) -> tuple[np.ndarray, np.ndarray]:
    """The k leading eigenpairs, also where eigenvalues coincide: in graphs of many pieces, say.

    Lanczos from one start can miss copies of an eigenvalue. So the largest one without the vectors
    found is looked at, and as long as it belongs among them, what is left is searched as well.
    """
    # Fixed starts: the same sources give the same coordinates. New ones, for a start has but one
    # vector in common with the space of an eigenvalue, and that is found first.
    starts = np.random.default_rng(0)
    values, vectors = _search(operator, k, starts, 0.0)
    while True:
        remainder = _without(operator, vectors)
        if _search(remainder, 1, starts, 1e-6)[0][0] <= values.min() + 1e-9 * np.abs(values).max():
            return values, vectors
        other_values, other_vectors = _search(remainder, k, starts, 0.0)
        best = np.argsort(-np.append(values, other_values), kind="stable")[:k]
        values = np.append(values, other_values)[best]
        vectors = np.hstack([vectors, other_vectors])[:, best]


def _search(
    operator: LinearOperator, k: int, starts: np.random.Generator, tol: float
) -> tuple[np.ndarray, np.ndarray]:
    size = operator.shape[0]
    start = starts.standard_normal(size)
    basis = min(size, max(2 * k + 20, 40))
    return eigsh(operator, k=k, which="LA", v0=start, ncv=basis, tol=tol)


def _without(operator: LinearOperator, vectors: np.ndarray) -> LinearOperator:
    """The operator on what is orthogonal to some eigenvectors, far below zero on them."""

    def apply(u: np.ndarray) -> np.ndarray:
        shares = vectors.T @ u
        u = u - vectors @ shares
        out = operator.matvec(u)
        return out - vectors @ (vectors.T @ out) - vectors @ shares

    return LinearOperator(operator.shape, matvec=apply, dtype=np.float64)


def normalised(graph: sp.csr_array, alone: bool) -> sp.csr_array:
    """D^{-½} M D^{-½}: spectrum within [−1, 1], whatever the weights and density.

    In a graph alone every piece would have eigenvalue 1, and the many small ones come first: there
    the mean degree is added to each, so that pieces count by their size.
    """
    degree = np.asarray(graph.sum(axis=1)).ravel()
    degree = degree + degree.mean() if alone else degree
    root = sp.diags_array(1 / np.sqrt(np.where(degree > 0, degree, 1.0)))
    return sp.csr_array(root @ graph @ root)


def blended(
    graphs: Sequence[sp.csr_array], weights: Sequence[float], alone: bool = False
) -> sp.csr_array | None:
    """Σ ω̃_t M⁽ᵗ⁾ of Eq. (4.14) over normalised graphs, None if there is none."""
    parts = [w * normalised(g, alone) for g, w in zip(graphs, weights, strict=True) if w > 0]
    return sp.csr_array(sum(parts[1:], start=parts[0])) if parts else None


# -- graphs that do not join like with like ------------------------------------------------------


def mismatch(graph: sp.csr_array, phis: Sequence[np.ndarray], links: Links) -> str:
    """Why a graph is refused, nothing if it is used.

    Its edges have to join ids of one class more often than ids drawn by their degree (or must-links
    more often than all links), by two standard errors; and where twenty rows have labels, these
    must not have worse neighbours after the share of the graph is added. Without labels the rows
    at the ends of edges have to be alike. Without tables, too, every graph is as good as any.
    """
    edges = sp.triu(graph, format="coo")
    for judged in (_by_classes(edges, links), _by_links(graph, links)):
        if judged is not None:
            values, chance, what = judged
            reason = _reason_to_refuse(values, chance, 0.0, what)
            return reason or (_by_neighbors(graph, np.hstack(phis), links) if len(phis) else "")
    return _reason_to_refuse(*_by_rows(edges, np.hstack(phis))) if len(phis) else ""


def _reason_to_refuse(values: np.ndarray, chance: float, least: float, what: str) -> str:
    gain, error = values.mean() - chance, values.std() / np.sqrt(max(len(values), 1))
    enough = gain > 2 * error and gain >= least * (1 - chance)
    return "" if enough else f"{what}, by chance {chance:.2f}"


def _by_classes(edges: sp.coo_array, links: Links) -> tuple[np.ndarray, float, str] | None:
    """Which edges between labels join one class, None if there are too few."""
    codes = np.full(edges.shape[0], -1)
    codes[links.labelled] = links.classes
    a, b = (codes[ends] for ends in edges.coords)
    seen = (a >= 0) & (b >= 0)
    if seen.sum() < MIN_EDGES_TO_JUDGE:
        return None
    share = np.bincount(np.append(a[seen], b[seen])) / (2 * seen.sum())
    same = (a[seen] == b[seen]).astype(float)
    what = f"the share of edges that join one class is {same.mean():.2f}"
    return same, float((share**2).sum()), what


def _by_links(graph: sp.csr_array, links: Links) -> tuple[np.ndarray, float, str] | None:
    """Which links that are edges are must-links, None if there are too few."""
    linked, must = _connected(graph, links), (links.sign > 0).astype(float)
    if linked.sum() < MIN_EDGES_TO_JUDGE:
        return None
    what = f"the share of must-links among linked edges is {must[linked].mean():.2f}"
    return must[linked], float(must.mean()), what


def _by_rows(
    edges: sp.coo_array, phi: np.ndarray, *, min_likeness: float = 0.1
) -> tuple[np.ndarray, float, float, str]:
    """The cosines of the rows at the ends of edges."""
    size = np.linalg.norm(phi, axis=1)
    has_both_ends = (size[edges.coords[0]] > 0) & (size[edges.coords[1]] > 0)
    unit = phi / np.where(size > 0, size, 1.0)[:, None]
    a, b = (unit[ends[has_both_ends]] for ends in edges.coords)
    likeness = (a * b).sum(axis=1) if has_both_ends.any() else np.zeros(1)
    chance = float(a.mean(axis=0) @ b.mean(axis=0)) if has_both_ends.any() else 0.0
    reason = f"rows joined by edges have correlation {likeness.mean():.2f}"
    return likeness, chance, min_likeness, reason


def _by_neighbors(
    graph: sp.csr_array,
    phi: np.ndarray,
    links: Links,
    *,
    min_labels: int = 20,
    max_rows: int = 1_000,
) -> str:
    """Why labelled rows do better without the graph, nothing if they do not."""
    n_labelled = len(links.labelled)
    sampled = np.linspace(0, n_labelled - 1, min(n_labelled, max_rows)).astype(int)
    rows, classes = links.labelled[sampled], links.classes[sampled]
    if len(rows) < min_labels:
        return ""
    around = normalised(graph, alone=False)[rows] @ phi
    without, with_it = (_neighbor_errors(z, classes) for z in (phi[rows], phi[rows] + around))
    if with_it <= without:
        return ""
    return f"five neighbours of labelled rows err in {with_it:.0%} with it, {without:.0%} without"


def _neighbor_errors(rows: np.ndarray, classes: np.ndarray, k: int = 5) -> float:
    """The error of the k nearest neighbours' votes, each row left out of its own."""
    squares = (rows**2).sum(axis=1)
    distances = squares[:, None] + squares - 2 * rows @ rows.T
    np.fill_diagonal(distances, np.inf)
    nearest = np.argsort(distances, axis=1, kind="stable")[:, :k]
    votes = np.eye(classes.max() + 1)[classes[nearest]].sum(axis=1)
    return float((votes.argmax(axis=1) != classes).mean())


# -- weights from links -------------------------------------------------------------------------


class Links(NamedTuple):
    """C of Eq. (4.15): labelled ids (by index) with their classes, single pairs with signs."""

    labelled: np.ndarray
    classes: np.ndarray
    left: np.ndarray
    right: np.ndarray
    sign: np.ndarray

    def __bool__(self) -> bool:
        return bool(len(self.labelled) > 1 or len(self.left))


def read_links(sources: Sources, y: Any, must_link: Any, cannot_link: Any) -> Links:
    """What labels and pairs of ids say."""
    labelled, labels = read_labels(sources.ids, {} if y is None else y)
    classes = np.unique(labels, return_inverse=True)[1]
    pairs = [
        _read_pairs(sources, linked, name)
        for linked, name in ((must_link, "must_link"), (cannot_link, "cannot_link"))
    ]
    sign = np.repeat([1.0, -1.0], [len(p) for p in pairs])
    left, right = np.concatenate(pairs).T
    return Links(labelled, classes, left, right, sign)


def _labels_in(X: Any, y: Any) -> Any:
    """Labels by id, or in the order of plain rows."""
    if not isinstance(X, Sources):
        return labels_of_rows(X, y)
    index, labels = read_labels(X.ids, y)
    return dict(zip(X.ids[index].tolist(), labels.tolist(), strict=True))


def _read_pairs(sources: Sources, pairs: Any, name: str) -> np.ndarray:
    pairs = [] if pairs is None else [tuple(pair) for pair in pairs]
    for pair in pairs:
        if len(pair) != 2:
            raise ValueError(f"{name}: expected pairs of ids, got {pair}")
    if not pairs:
        return np.zeros((0, 2), np.intp)
    return sources._index_of_all([v for pair in pairs for v in pair], name).reshape(-1, 2)


def vector_terms(phis: Sequence[np.ndarray], links: Links) -> tuple[np.ndarray, np.ndarray]:
    """Eq. (4.19): K and v of projections Φ⁽ᵏ⁾ (n × r each), E⁽ᵏ⁾(i, j) = Φ(i)·Φ(j) where linked.

    Each Φ is brought to mean square 1 over its rows first: E is compared with ±1.
    """
    phis = [phi / _root_mean_square(phi) for phi in phis]
    labelled_phis = [phi[links.labelled] for phi in phis]
    K = np.array([[((a.T @ b) ** 2).sum() for b in labelled_phis] for a in labelled_phis])
    v = np.array([2 * _same(a, links.classes) - (a.sum(axis=0) ** 2).sum() for a in labelled_phis])
    E = np.column_stack([(phi[links.left] * phi[links.right]).sum(axis=1) for phi in phis])
    return K + 2 * E.T @ E, v + 2 * E.T @ links.sign  # C is symmetric: a pair stands twice


def _root_mean_square(phi: np.ndarray) -> float:
    squares = (phi**2).sum(axis=1)
    return float(np.sqrt(squares.sum() / max(np.count_nonzero(squares), 1)))  # absent rows are 0


def _same(rows: np.ndarray, classes: np.ndarray) -> float:
    """The sum of the inner products of all pairs of a class."""
    member = sp.csr_array(
        (np.ones(len(classes)), (classes, np.arange(len(classes)))),
        shape=(int(classes.max(initial=-1)) + 1, len(classes)),
    )
    return float(((member @ rows) ** 2).sum())


def graph_terms(graphs: Sequence[sp.csr_array], links: Links) -> tuple[np.ndarray, np.ndarray]:
    """Eq. (4.19) for graphs: E⁽ᵏ⁾ is 1 where linked ids are connected, −1 where they are not."""
    labelled, classes = links.labelled, links.classes
    labelled_graphs = [sp.csr_array(g[labelled][:, labelled] > 0, dtype=float) for g in graphs]
    m2 = float(len(labelled)) ** 2
    edges = np.array([g.nnz for g in labelled_graphs], dtype=float)
    both = np.array(
        [[a.multiply(b).sum() for b in labelled_graphs] for a in labelled_graphs]
    ).reshape(len(labelled_graphs), -1)
    K = 4 * both - 2 * edges - 2 * edges[:, None] + m2
    total = 2.0 * (np.bincount(classes).astype(float) ** 2).sum() - m2 if len(labelled) else 0.0
    signed = [2.0 * _agreeing(g, classes) - g.nnz for g in labelled_graphs]
    v = 2 * np.array(signed) - total
    E = np.column_stack([np.where(_connected(g, links), 1.0, -1.0) for g in graphs])
    return K + 2 * E.T @ E, v + 2 * E.T @ links.sign  # C is symmetric: a pair stands twice


def _connected(graph: sp.csr_array, links: Links) -> np.ndarray:
    n, edges = graph.shape[0], graph.tocoo()
    return np.isin(
        links.left * n + links.right, edges.coords[0].astype(np.int64) * n + edges.coords[1]
    )


def _agreeing(graph: sp.csr_array, classes: np.ndarray) -> int:
    edges = graph.tocoo()
    return int((classes[edges.coords[0]] == classes[edges.coords[1]]).sum())


def on_simplex(K: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Eq. (4.19): minimise ωᵀKω − 2vᵀω over ω ≥ 0, Σω = 1, by an active set.

    A hair of ridge makes the answer unique: two copies of a source share its weight.
    """
    size = np.trace(K) / len(v)
    if not size > 0:
        return np.full(len(v), 1 / len(v))
    K, v = K / size + 1e-10 * np.eye(len(v)), v / size
    first = np.argmin(np.diag(K) - 2 * v)
    omega = np.eye(len(v))[first]
    free = omega > 0
    for _ in range(10 * len(v)):  # a set never comes back, and few are ever seen
        slope = K @ omega - v
        outside = np.where(free, np.inf, slope)
        best = int(np.argmin(outside))
        if outside[best] >= omega @ slope - 1e-12:
            break
        free[best] = True
        omega, free = _descend(K, v, omega, free)
    return omega


def _descend(
    K: np.ndarray, v: np.ndarray, omega: np.ndarray, free: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Go to the minimum over the free weights, fixing those that would turn negative on the way."""
    omega, free = omega.copy(), free.copy()
    while True:
        m = int(free.sum())
        kkt = np.ones((m + 1, m + 1))
        kkt[:m, :m], kkt[m, m] = K[np.ix_(free, free)], 0.0
        goal = np.zeros(len(v))
        goal[free] = np.linalg.solve(kkt, np.append(v[free], 1.0))[:m]
        low = free & (goal <= 0)
        if not low.any():
            return goal, free
        step = (omega[low] / (omega[low] - goal[low])).min()
        omega += step * (goal - omega)
        free &= omega > 1e-15
        omega = np.where(free, omega, 0.0)


# -- rows that some sources miss: what those would add to a coordinate --------------------------


def shares(parts: Sequence[np.ndarray], present: np.ndarray) -> np.ndarray:
    """The mean products of two sources' projections, d × p × p, over the rows of both."""
    p, d = len(parts), parts[0].shape[1]
    rows = present.astype(float)
    together = np.maximum(rows.T @ rows, 1.0)
    out = np.empty((d, p, p))
    for j in range(p):
        for h in range(j, p):
            out[:, j, h] = (parts[j] * parts[h]).sum(axis=0) / together[j, h]
            out[:, h, j] = out[:, j, h]
    return out


def factors(products: np.ndarray, present: np.ndarray) -> np.ndarray:
    """By how much the sum over present sources is multiplied to estimate that over all.

    The regression of the full sum on the sum at hand, through zero, each coordinate by itself: 1
    for a complete row, 1 where sources have nothing in common, more where they agree.
    """
    patterns, which = np.unique(present, axis=0, return_inverse=True)
    mask = patterns.astype(float)
    with_all = mask @ products.sum(axis=2).T  # patterns × d
    among = np.einsum("mj,djh,mh->md", mask, products, mask)
    total = np.maximum(products.sum(axis=(1, 2)), 0.0)
    usable = among > 1e-20 * total
    out = np.where(usable, with_all / np.where(usable, among, 1.0), 1.0)
    out[patterns.all(axis=1)] = 1.0
    return out[which.ravel()]
