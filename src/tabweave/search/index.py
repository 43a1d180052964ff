"""SimilarityIndex: find the rows most like a row, or like a part of one.

Rows come in with ids and stay as codes; distances are those of an embedder, looked up column by
column. The answer is exact by default; for large tables a neighbour graph finds nearly all of it
in a fraction of the time. Rows can be added, removed, filtered and explained.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from numbers import Integral
from os import PathLike
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from tabweave.base import Embedder, TabularInput, remember_names, require_rows
from tabweave.embed.mixed import MixedEmbedder
from tabweave.embed.weave import Weave
from tabweave.io.register import storable
from tabweave.io.store import Storable
from tabweave.io.store import load as store_load
from tabweave.rows.frames import columns_of
from tabweave.rows.table import Column, Numbers, Schema, Table, take_rows
from tabweave.search.graph import BACKENDS, Cache
from tabweave.search.space import HIDDEN, Space, space_of
from tabweave.search.stored import Stored, matching

_METRICS = ("auto", "l2", "l1")


class Matches(NamedTuple):
    """What a query found: a line for each row asked about, nearest first."""

    ids: np.ndarray
    distances: np.ndarray


@storable
class SimilarityIndex(Storable, TabularInput, BaseEstimator):
    """Keep rows and find those nearest to others, by the distance of an embedder.

    Parameters
    ----------
    embedder : embedder or None, default=None
        What says how far apart rows are: any embedder of tabweave, or anything with ``transform``. A
        fitted one is used as it is, another is cloned and fitted on the first rows. None stands
        for :class:`~tabweave.Weave`, or :class:`~tabweave.MixedEmbedder` if a column holds numbers.
    backend : {"exact", "faiss-hnsw", "faiss-flat", "auto"}, default="exact"
        How to search. ``"exact"`` compares with every distinct row. ``"faiss-hnsw"`` walks a
        neighbour graph that faiss builds: much faster on large tables, nearly always right, and
        the distances it gives are exact. ``"faiss-flat"`` compares vectors in float32.
        ``"auto"`` takes the graph from 100,000 distinct rows on if faiss is installed.
    metric : {"auto", "l2", "l1"}, default="auto"
        The distance: the embedder's own (tree distance of a
        :class:`~tabweave.DistanceHierarchy`, the dissimilarity of a :class:`~tabweave.ValueMetric`,
        else Euclidean), or one of its vectors.
    links : int, default=16
        Links of a node of the graph; more make it better, larger and slower to build.
    breadth : int, default=144
        Nodes a walk keeps in sight; more find more and take longer. Can be changed at any time.

    Attributes
    ----------
    embedder_ : estimator
        The fitted embedder.
    backend_ : str
        The backend in use.
    n_features_in_, feature_names_in_ : int, ndarray
        Number and names of the embedder's columns.

    Notes
    -----
    Equal distances are ordered by the arrival of their rows. Distances agree in all backends to
    the last bit, so they differ in which rows they miss only; ``"faiss-flat"`` may choose others
    among rows at nearly the same distance. Filters that leave less than a tenth of the rows, and
    rows of which some columns are given, are searched exactly whatever the backend.

    After rows were added the next query takes them in. Removed rows stay as tombstones until
    they are a third of all; new ones are compared one by one until they are a quarter of the
    graph; then it is built anew. The graph is built by one thread, since its links would
    otherwise depend on timing.

    Examples
    --------
    >>> from tabweave import SimilarityIndex
    >>> rows = {"color": ["red", "red", "blue", "blue"], "size": ["S", "M", "M", "L"]}
    >>> index = SimilarityIndex().fit(rows, ids=["a", "b", "c", "d"])
    >>> index.query({"color": "red", "size": "S"}, k=2).ids
    array([['a', 'b']], dtype='<U1')
    >>> ids, distances = index.query({"size": "M"}, k=2)     # some columns only
    >>> ids, distances
    (array([['b', 'c']], dtype='<U1'), array([[0., 0.]]))
    >>> index.query({"color": "red", "size": "S"}, k=2, where={"size": ["M", "L"]}).ids
    array([['b', 'd']], dtype='<U1')
    >>> list(index.explain({"color": "red", "size": "S"}, "b"))
    ['color', 'size']
    """

    def __init__(
        self,
        embedder: Any = None,
        *,
        backend: str = "exact",
        metric: str = "auto",
        links: int = 16,
        breadth: int = 144,
    ) -> None:
        self.embedder = embedder
        self.backend = backend
        self.metric = metric
        self.links = links
        self.breadth = breadth

    # -- rows ------------------------------------------------------------------------------

    _stored: Stored

    def fit(self, X: Any, y: Any = None, *, ids: Any = None) -> Self:
        """Keep rows, and fit the embedder if it is not fitted.

        Parameters
        ----------
        X : frame, array, mapping of columns or list of dicts
            The rows. Columns that a fitted embedder does not know are kept for filters.
        y : array-like, optional
            Classes, for embedders that use them.
        ids : array-like of whole numbers or text, optional
            A name for each row; running numbers if not given.
        """
        self._check_parameters()
        embedder, table = first_rows(self.embedder, X, y)
        space = space_of(embedder, table.schema, self.metric)
        space.check(table)
        stored = Stored.of(table, ids)
        self.embedder_, self._stored, self._graph = embedder, stored, None
        self._cache = Cache(self, space, stored)
        if isinstance(embedder, Embedder):
            remember_names(self, embedder.schema_)
        else:
            remember_names(self, table.schema.select(_shown(table)))
        self._cache.prepare()
        return self

    def add(self, X: Any, *, ids: Any = None) -> Self:
        """Keep more rows; the embedder stays as it is. On a new index, the same as ``fit``.

        Parameters
        ----------
        X : dict, frame, array, mapping of columns or list of dicts
            One row or many, with the columns of the first ones.
        ids : array-like of whole numbers or text, optional
            A name for each row; the next running numbers if not given.
        """
        if "_stored" not in vars(self):
            return self.fit(X, ids=ids)
        table = more_rows(self.embedder_, X, self._stored.table.schema)
        cache = self._ready()
        cache.space.check(table)
        self._stored = self._stored.append(table, ids)
        cache.replace(self._stored)
        return self

    def remove(self, ids: Any) -> Self:
        """Drop rows by their ids; if one is not there, none is dropped.

        Parameters
        ----------
        ids : id or array-like of ids
            The rows to drop.
        """
        check_is_fitted(self, "_stored")
        self._stored = self._stored.without(ids)
        self._ready().replace(self._stored)
        return self

    def __len__(self) -> int:
        return int(np.count_nonzero(self._stored.alive)) if "_stored" in vars(self) else 0

    @property
    def ids_(self) -> np.ndarray:
        """The ids of the rows that are there, in order of arrival."""
        check_is_fitted(self, "_stored")
        return self._stored.ids[self._stored.alive]

    @property
    def backend_(self) -> str:
        """The backend in use."""
        check_is_fitted(self, "_stored")
        return self._ready().backend

    # -- questions -------------------------------------------------------------------------

    def query(self, rows: Any, k: int = 10, where: Mapping[str, Any] | None = None) -> Matches:
        """Find the k nearest rows of each row.

        Parameters
        ----------
        rows : dict, frame, array, mapping of columns or list of dicts
            One row or many. Where columns are left out, distances are over the others: the rest
            of the rows does not count.
        k : int, default=10
            How many.
        where : mapping of column to value, list of values, or function, optional
            What rows must satisfy to be found: have this value, or one of these, or one for which
            the function is true. A function gets a value (missing ones never pass), or for a
            numeric column the array of all numbers. A set passes if one of its elements does.

        Returns
        -------
        Matches
            ``ids`` and ``distances``, each of shape (rows, k), nearest first and equally near
            ones as they arrived; fewer than k columns if fewer rows satisfy ``where``.
        """
        check_is_fitted(self, "_stored")
        if not isinstance(k, Integral) or isinstance(k, bool) or k < 1:
            raise ValueError(f"k={k!r}: use a whole number >= 1")
        if not len(self):
            raise ValueError("the index is empty: every row was removed; add some")
        if where is None and k > len(self):
            raise ValueError(f"k={k}, but the index has {len(self)} rows; ask for fewer")
        asked, names = asked_rows(self.embedder_, rows, self._stored.table.schema)
        cache = self._ready()
        stored = cache.prepare()
        allowed = None if stored.alive.all() else stored.alive
        if where is not None:
            allowed = stored.alive & matching(stored.table, where)
        if allowed is not None:
            k = min(int(k), int(np.count_nonzero(allowed)))
        distances, found = cache.nearest(asked, names, int(k), allowed)
        return Matches(stored.ids[found], distances)

    def explain(self, row: Any, id: Any) -> dict[str, float]:
        """Say why a row is as far from a stored one as it is.

        Parameters
        ----------
        row : dict, sequence or one-row frame
            The row asked about, or some columns of it.
        id : int or str
            The stored row.

        Returns
        -------
        dict
            Each column's share in the distance, squared where it is Euclidean. Where columns are
            mixed a share may be negative: it points against the total difference.
        """
        check_is_fitted(self, "_stored")
        asked, names = asked_rows(self.embedder_, row, self._stored.table.schema)
        if asked.n_rows != 1:
            raise ValueError(f"expected one row, got {asked.n_rows}")
        other = take_rows(self._stored.table, self._stored.rows_of([id]))
        space: Space = self._ready().space
        shares = (space if names is None else space.only(names)).explain(asked, other)
        order = [name for name in self._stored.table.schema.names if name in shares]
        return {name: shares[name] for name in [*order, *(n for n in shares if n not in order)]}

    # -- files and parameters --------------------------------------------------------------

    @classmethod
    def load(cls, path: str | PathLike[str]) -> SimilarityIndex:
        """Read what :meth:`save` wrote; a damaged or foreign file is refused by name."""
        index = store_load(path)
        if not isinstance(index, cls):
            raise ValueError(f"{path} holds a {type(index).__name__}, not a {cls.__name__}")
        try:
            if "_stored" in vars(index):
                index._ready()
        except (ValueError, TypeError, LookupError, AttributeError) as error:
            raise ValueError(f"{path} is damaged: {error}") from error
        return index

    def _ready(self) -> Cache:
        """Return what is derived from the rows; of a file, after checking them."""
        if "_cache" not in vars(self):
            self._stored.check()
            if self._graph is not None:
                self._graph.check()
            space = space_of(self.embedder_, self._stored.table.schema, self.metric)
            self._cache = Cache(self, space, self._stored)
        return self._cache

    def _tabweave_state(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_cache"}

    def __getstate__(self) -> dict[str, Any]:
        return {name: v for name, v in super().__getstate__().items() if name != "_cache"}

    def _check_parameters(self) -> None:
        if self.backend not in (*BACKENDS, "auto"):
            raise ValueError(f"backend={self.backend!r}: use one of {', '.join(BACKENDS)}, auto")
        if self.metric not in _METRICS:
            raise ValueError(f"metric={self.metric!r}: use one of {', '.join(_METRICS)}")
        for name, low in (("links", 2), ("breadth", 1)):
            value = getattr(self, name)
            if not isinstance(value, Integral) or isinstance(value, bool) or value < low:
                raise ValueError(f"{name}={value!r}: use a whole number >= {low}")


def _shown(table: Table) -> list[str]:
    return [name for name in table.schema.names if not name.startswith(HIDDEN)]


# -- What users give an index: rows to keep, rows to look for, and an embedder


def first_rows(embedder: Any, X: Any, y: Any) -> tuple[Any, Table]:
    """Return a fitted embedder and the first rows of an index.

    An unfitted embedder is cloned and fitted on the rows; without any, categories are woven and
    mixed tables embedded as such.
    """
    if embedder is not None and not hasattr(embedder, "transform"):
        raise TypeError(f"embedder={embedder!r} has no transform; give an embedder of tabweave")
    if embedder is None:
        X = Table.of(X)
        embedder = MixedEmbedder() if X.schema.numeric else Weave()
    if _is_fitted(embedder):
        return embedder, _table(embedder, X)
    embedder = clone(embedder)
    if isinstance(embedder, Embedder):
        X = Table.of(X, Schema.of(embedder.schema), numbers=embedder._numbers)
        require_rows(X)
    embedder.fit(X, y)
    return embedder, _table(embedder, X)


def _is_fitted(embedder: Any) -> bool:
    try:
        check_is_fitted(embedder)
    except NotFittedError:
        return False
    return True


def _table(embedder: Any, X: Any) -> Table:
    """Read the first rows: the embedder's columns as it reads them, others as they look."""
    if not isinstance(embedder, Embedder):
        return with_vectors(embedder, X, Table.of(X))
    known = embedder.schema_
    if isinstance(X, Table) or names_of(X) is None or not known.named:
        return _checked(Table.of(X, known), known)
    table = Table.of(X, replace(known, complete=False))
    require_rows(table)
    return table


def with_vectors(embedder: Any, X: Any, table: Table) -> Table:
    """Return a table with the vectors of its rows as hidden columns."""
    vectors = np.asarray(embedder.transform(X), dtype=np.float64)
    if vectors.ndim != 2 or len(vectors) != table.n_rows or not np.isfinite(vectors).all():
        raise ValueError(
            f"{type(embedder).__name__}.transform must give {table.n_rows} rows of finite "
            f"numbers, not shape {vectors.shape}"
        )
    require_rows(table)
    names = [f"{HIDDEN}{i}" for i in range(vectors.shape[1])]
    columns = tuple(Column(name, "numeric") for name in names)
    schema = replace(table.schema, columns=table.schema.columns + columns)
    parts = tuple(Numbers(np.ascontiguousarray(column)) for column in vectors.T)
    return Table(schema, table.columns + parts, table.n_rows)


def more_rows(embedder: Any, X: Any, schema: Schema) -> Table:
    """Read rows to be added: all columns of the first ones must be there."""
    if isinstance(embedder, Embedder):
        return _checked(Table.of(_as_rows(X), schema), schema)
    shown = [name for name in schema.names if not name.startswith(HIDDEN)]
    return with_vectors(embedder, X, Table.of(X, schema.select(shown)))


def _checked(table: Table, schema: Schema) -> Table:
    if table.schema.names != schema.names:
        raise ValueError(f"the table has columns {table.schema.names}, not {schema.names}")
    require_rows(table)
    return table


def asked_rows(embedder: Any, X: Any, schema: Schema) -> tuple[Table, list[str] | None]:
    """Read rows to look for, and say which columns they have if those are not all.

    Columns that the index does not know are refused: they may be misspelt.
    """
    X = _as_rows(X)
    if not isinstance(embedder, Embedder):
        return with_vectors(embedder, X, Table.of(X)), None
    own, given = embedder.schema_, names_of(X)
    if given is None or not own.named:
        table = Table.of(X, own)
        require_rows(table)
        return table, None
    for name in given:
        if name not in schema.names:
            raise ValueError(
                f"column {name!r} is not in the index; there are "
                f"{', '.join(map(repr, schema.names))}"
            )
    names = [name for name in own.names if name in given]
    if not names:
        raise ValueError(f"the rows have none of the columns {', '.join(map(repr, own.names))}")
    if isinstance(X, list):
        _refuse_ragged(X, names)
    if isinstance(X, Table):
        chosen = tuple(X[name] for name in names)
        X = Table(X.schema.select(names), chosen, X.n_rows)
    table = Table.of(X, own.select(names))
    require_rows(table)
    return table, None if names == own.names else names


def _refuse_ragged(rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> None:
    """Refuse rows of which some lack a column: it may be missing, or not asked about."""
    for i, row in enumerate(rows):
        for name in names:
            if name not in row:
                raise ValueError(
                    f"row {i} has no {name!r}, which other rows have; query rows with different "
                    "columns apart, or write None for a missing value"
                )


def names_of(X: Any) -> list[str] | None:
    """Return the names of the columns of rows, None if they have none."""
    return X.schema.names if isinstance(X, Table) else columns_of(X)[0]


def _as_rows(X: Any) -> Any:
    """Return one row (a dict of cells, a sequence of cells, a pandas row) as a list of rows."""
    if isinstance(X, Mapping):
        columns = all(_is_column(v) for v in X.values())
        return X if columns and X else [dict(X)]
    if hasattr(X, "iloc") and X.ndim == 1:
        return [X.to_dict()]
    if isinstance(X, np.ndarray) and X.ndim == 1 and X.dtype.names is None:
        return X.reshape(1, -1)
    if isinstance(X, list | tuple) and len(X):
        cells = not isinstance(X[0], list | tuple | Mapping | np.ndarray)
        return [list(X)] if cells and not isinstance(X[0], Set) else X
    return X


def _is_column(cells: Any) -> bool:
    listed = hasattr(cells, "__array__") and not isinstance(cells, np.generic)
    return listed or isinstance(cells, list | tuple)
