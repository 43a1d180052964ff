"""SimilarityIndex: find the rows most like a row, or like a part of one.

Rows come in with ids and stay as codes; distances are those of an embedder, looked up column by
column. The answer is exact by default; for large tables a neighbour graph finds nearly all of it
in a fraction of the time. Rows can be added, removed, filtered and explained.
"""

from __future__ import annotations

import datetime as dt
import re
from calendar import monthrange
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, replace
from difflib import get_close_matches
from importlib.util import find_spec
from numbers import Integral, Real
from os import PathLike
from threading import Lock
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from tabweave._compat import HasMethods, Interval, StrOptions, html_table, require, warn_caller
from tabweave.base import (
    Embedder,
    Estimator,
    TabularInput,
    exclusive,
    remember_names,
    require_rows,
    spelled_columns,
    tell_unknown,
)
from tabweave.embed.weave import Weave
from tabweave.io.register import storable
from tabweave.io.store import load as store_load
from tabweave.rows.formats import DIGIT_FORMATS, PERIODS
from tabweave.rows.frames import columns_of, is_missing
from tabweave.rows.table import (
    Codes,
    Column,
    Numbers,
    Schema,
    Table,
    append_rows,
    as_rows,
    take_rows,
)
from tabweave.rows.vocabulary import Label, canonical, positions, types_of
from tabweave.search.graph import WIDEST, Flat, Graph, View, Walker
from tabweave.search.scan import (
    Copies,
    Derived,
    Found,
    Queries,
    nearest_nodes,
    nearest_rows,
    within,
)
from tabweave.search.space import HIDDEN, Space, space_of

_AUTO = 100_000  # distinct rows from which "auto" takes a graph
_DEAD = 1 / 3  # tombstones, of all rows, that make it worth rebuilding
_LATE = 1 / 4  # nodes that are not in the graph, of those that are, likewise
_FEW = 10_000  # as many of either are no burden
_NARROW = 0.1  # rows a filter leaves, below which a walk meets too few of them
_VIEWS = 8  # sets of columns whose views are kept
_BY_HAND = 20  # rows asked about, below which a value that was not seen may be misspelt
_PAIRED = 500  # rows whose pairs say what a distance means


class Matches(NamedTuple):
    """Result of a query: one line per query row, nearest first.

    Examples
    --------
    >>> from tabweave import OneHot, SimilarityIndex
    >>> rows = {"color": ["red", "red", "blue"], "size": ["S", "L", "L"]}
    >>> found = SimilarityIndex(OneHot()).fit(rows).query({"color": "red", "size": "S"}, k=2)
    >>> found.ids.tolist(), found.distances.round(2).tolist()
    ([[0, 1]], [[0.0, 1.41]])
    """

    ids: np.ndarray
    distances: np.ndarray

    def _repr_html_(self) -> str:
        far = max(float(np.max(self.distances, initial=0.0)), 1e-300)
        lines = [
            (f"{asked:,}", near + 1, str(i), float(d))
            for asked, (ids, found) in enumerate(zip(self.ids[:5], self.distances[:5], strict=True))
            for near, (i, d) in enumerate(zip(ids[:10], found[:10], strict=True))
        ]
        return html_table(
            f"Nearest rows of {len(self.ids):,} asked about",
            ["asked", "rank", "id", "distance"],
            lines,
            lambda i, j: lines[i][3] / far if j == 3 else None,
        )


class Pairs(NamedTuple):
    """Pairs of similar rows, the closest first.

    Examples
    --------
    >>> from tabweave import OneHot, SimilarityIndex
    >>> rows = {"color": ["red", "red", "blue"], "size": ["S", "L", "L"]}
    >>> pairs = SimilarityIndex(OneHot()).fit(rows).duplicates(1.5)
    >>> pairs.first.tolist(), pairs.second.tolist(), pairs.distances.round(2).tolist()
    ([0, 1], [1, 2], [1.41, 1.41])
    """

    first: np.ndarray
    second: np.ndarray
    distances: np.ndarray


@dataclass(frozen=True)
class Between:
    """A condition on a column: from ``low`` to ``high``, both included; see :func:`between`."""

    low: Any = None
    high: Any = None

    def __call__(self, values: Any) -> Any:
        """Return whether a value, or each of an array, lies between; missing ones never do."""
        above = values == values if self.low is None else values >= self.low
        return above if self.high is None else above & (values <= self.high)


def between(low: Any = None, high: Any = None) -> Between:
    """Return a condition for ``where``: values from ``low`` to ``high``, both included.

    Parameters
    ----------
    low, high : number, date or text, optional
        The ends, written as the column is; without one the range is open on that side. A day as
        the upper end lasts until its evening, a month (2024-02) or a year until its last day.
        Levels of an ordinal column go by their order.

    Examples
    --------
    >>> from tabweave import SimilarityIndex, between
    >>> rows = {"carrier": ["UA", "UA", "AA", "DL"], "delay": [5.5, 120.0, 150.0, 300.0]}
    >>> index = SimilarityIndex().fit(rows)
    >>> late = index.query({"carrier": "UA"}, k=2, where={"delay": between(100, 200)})
    >>> late.ids
    array([[1, 2]])
    """
    if low is None and high is None:
        raise ValueError("between() needs a lower or an upper bound, got neither")
    if not isinstance(low, str) and not isinstance(high, str):  # what text means, its column says
        with suppress(TypeError):  # so it does of a day and a time
            _check_ends(low, high, low, high)
    return Between(low, high)


def _check_ends(low: Any, high: Any, first: Any, last: Any) -> None:
    """Raise for a range from low to high that ends before it begins, as first and last say."""
    if first is not None and last is not None and first > last:
        raise ValueError(f"expected low <= high, got between({low!r}, {high!r})")


@storable
class SimilarityIndex(Derived, TabularInput, Estimator):
    """Store rows and find the ones nearest to a query, by the distance of an embedder.

    Parameters
    ----------
    embedder : embedder or None, default=None
        Defines the distance of two rows: any embedder of tabweave, or any object with
        ``transform``. A fitted one is used as it is; otherwise a clone is fitted on the first rows.
        None means :class:`~tabweave.Weave`.
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
        Links per node of the graph; more make it better, larger and slower to build.
    breadth : int or "auto", default="auto"
        Candidates that a walk through the graph keeps; more find more neighbours and take longer.
        Can be changed at any time. ``"auto"`` takes the smallest number with which walks find 95 %
        of the true neighbours, measured on the index's own rows whenever the graph is built.

    Attributes
    ----------
    embedder_ : estimator
        The fitted embedder.
    backend_ : str
        The backend in use.
    breadth_ : int
        The breadth in use, if there is a graph or ``breadth`` is a number.
    recall_ : float
        With ``breadth="auto"`` and a graph: the share of the 10 nearest rows that walks of that
        breadth found, of at most 4,096 rows that were looked for as if they were not there.
    ids_ : ndarray
        The ids of the stored rows, in order of arrival.
    n_features_in_, feature_names_in_ : int, ndarray
        Number and names of the embedder's columns.

    Notes
    -----
    Rows at equal distances are ordered by arrival. All backends return exactly the same distances
    and differ only in which rows they miss; ``"faiss-flat"`` may choose differently among rows at
    nearly the same distance. Queries with a filter that keeps less than a tenth of the rows, and
    queries by some of the columns, are searched exactly whatever the backend.

    Added rows are found from the next query on. Removed rows stay in the graph until they are a
    third of all, and new ones are compared one by one until they are a quarter of the graph; then
    it is built again. The graph is built by one thread, since its links would otherwise depend on
    timing.

    The breadth is chosen from 32 to 1,024 with the same rows each time, so that equal tables get
    the same breadth: the smallest whose recall is above 0.95 by two standard errors. That costs at
    most 4,096 exact searches and six times as many walks, little compared with building the graph.
    If all rows are about equally far apart, even the largest breadth may find less; ``recall_``
    says how much.

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
    >>> index.query({"color": "red", "size": "S"}, k=1, where={"size": ["M", "L"]}).ids
    array([['b']], dtype='<U1')
    >>> list(index.explain({"color": "red", "size": "S"}, "b"))
    ['color', 'size']
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "embedder": [HasMethods("transform"), None],
        "backend": [StrOptions({"exact", "faiss-hnsw", "faiss-flat", "auto"})],
        "metric": [StrOptions({"auto", "l2", "l1"})],
        "links": [Interval(Integral, 2, None, closed="left")],
        "breadth": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
    }

    def __init__(
        self,
        embedder: Any = None,
        *,
        backend: str = "exact",
        metric: str = "auto",
        links: int = 16,
        breadth: int | Literal["auto"] = "auto",
    ) -> None:
        self.embedder = embedder
        self.backend = backend
        self.metric = metric
        self.links = links
        self.breadth = breadth

    # -- rows ------------------------------------------------------------------------------

    _stored: Stored
    _graph: Graph | None
    _measured: tuple[int, float] | None = None  # the breadth that suits the graph, and its recall

    def fit(self, X: Any, y: Any = None, *, ids: Any = None) -> Self:
        """Store rows, and fit the embedder if it is not fitted.

        Parameters
        ----------
        X : frame, array, mapping of columns or list of dicts
            The rows. Columns that a fitted embedder does not know are kept for filters.
        y : array-like, optional
            Classes, for embedders that use them.
        ids : array-like of whole numbers or text, optional
            A name for each row; running numbers if not given.
        """
        self._validate_params()
        embedder, table = first_rows(self.embedder, X, y)
        space = space_of(embedder, table.schema, self.metric)
        space.check(table)
        stored = Stored.of(table, ids)
        self.embedder_, self._stored, self._graph = embedder, stored, None
        self._measured = None
        self._cache = Cache(self, space, stored)
        if isinstance(embedder, Embedder):
            remember_names(self, embedder.schema_)
        else:
            remember_names(self, table.schema.select(_given_names(table.schema)))
        self._prepared()
        return self

    def add(self, X: Any, *, ids: Any = None) -> Self:
        """Store more rows; the embedder does not change. On a new index, the same as ``fit``.

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
        self._ready().space.check(table)
        self._keep(self._stored.append(table, ids))
        return self

    def remove(self, ids: Any) -> Self:
        """Remove rows by their ids; if an id is not found, nothing is removed.

        Parameters
        ----------
        ids : id or array-like of ids
            The rows to drop.
        """
        check_is_fitted(self, "_stored")
        self._keep(self._stored.without(ids))
        return self

    def _keep(self, stored: Stored) -> None:
        """Take rows for the old ones; those who search among the old ones keep them."""
        self._cache = self._ready().after(stored)
        self._stored = stored

    def __len__(self) -> int:
        return int(np.count_nonzero(self._stored.alive)) if "_stored" in vars(self) else 0

    @property
    def ids_(self) -> np.ndarray:
        """The ids of the stored rows, in order of arrival."""
        check_is_fitted(self, "_stored")
        return self._stored.ids[self._stored.alive]

    @property
    def backend_(self) -> str:
        """The backend in use."""
        check_is_fitted(self, "_stored")
        return self._ready().backend

    @property
    def breadth_(self) -> int:
        """The breadth in use."""
        check_is_fitted(self, "_stored")
        return int(self.breadth) if self.breadth != "auto" else self._found_breadth("breadth_")[0]

    @property
    def recall_(self) -> float:
        """The recall that was measured for ``breadth_``."""
        check_is_fitted(self, "_stored")
        if self.breadth != "auto":
            raise AttributeError(
                f'recall_ is only measured with breadth="auto", got {self.breadth!r}'
            )
        return self._found_breadth("recall_")[1]

    def _found_breadth(self, name: str) -> tuple[int, float]:
        if self._measured is None:
            raise AttributeError(f"{name} exists only with a graph; backend is {self.backend!r}")
        return self._measured

    # -- questions -------------------------------------------------------------------------

    def query(
        self, rows: Any, k: int = 10, where: Any = None, *, together: str | None = None
    ) -> Matches:
        """Find the k nearest rows of each row, or of several rows taken together.

        Parameters
        ----------
        rows : dict, frame, array, mapping of columns or list of dicts
            One row or many. Where columns are left out, distances are over the others: the rest
            of the rows does not count. A set is a list: ``{"tags": ["new", "sale"]}`` is one row.
        k : int, default=10
            How many.
        where : mapping of column to value, list of values, range or function; or mask; optional
            What rows must satisfy to be found: have this value, or one of these, or one in a range
            (:func:`~tabweave.between`), or one for which the function is true. A function gets a
            value (missing ones never pass), or for a numeric column the array of all numbers. Of
            days, ``"2024-02"`` means those of a month, ``"2024"`` those of a year. A set passes if
            one of its elements does. A mask is an array of booleans, one for each of ``ids_``; a
            missing one does not pass.
        together : {None, "mean", "all"}, default=None
            Whether the rows are one question. ``"mean"``: what is nearest to their mean (to them on
            average, where distances are not Euclidean). ``"all"``: what is near to every one of
            them; the distance is the largest of theirs. Searched exactly, whatever the backend.

        Returns
        -------
        Matches
            ``ids`` and ``distances``, each of shape (rows, k), or (1, k) of rows taken together,
            nearest first and equally near ones as they arrived; fewer than k columns if fewer rows
            satisfy ``where``.
        """
        check_is_fitted(self, "_stored")
        if together not in (None, "mean", "all"):
            raise ValueError(f"expected together to be None, 'mean' or 'all', got {together!r}")
        if not isinstance(k, Integral) or isinstance(k, bool) or k < 1:
            raise ValueError(f"expected k to be a whole number >= 1, got {k!r}")
        if not len(self):
            raise ValueError("the index is empty: every row was removed; add some")
        if where is None and k > len(self):
            raise ValueError(f"expected k of at most {len(self)}, the rows of the index, got {k}")
        asked, names = asked_rows(self.embedder_, rows, self._stored.table.schema)
        cache = self._prepared()
        stored = cache.stored
        allowed = _allowed(stored, where)
        k = min(int(k), int(np.count_nonzero(stored.alive if allowed is None else allowed)))
        if together is None:
            distances, found = cache.nearest(asked, names, int(k), allowed)
        else:
            distances, found = cache.nearest_to_all(asked, names, int(k), allowed, together)
        return Matches(stored.ids[found], distances)

    def query_radius(self, rows: Any, radius: float, where: Any = None) -> list[Matches]:
        """Find all rows within a distance of each row; exact for every backend.

        Parameters
        ----------
        rows, where
            As in :meth:`query`.
        radius : float
            The largest distance. :meth:`share_nearer` says what a distance means.

        Returns
        -------
        list of Matches
            One for each row: ``ids`` and ``distances``, nearest first.
        """
        check_is_fitted(self, "_stored")
        _check_distance("radius", radius)
        asked, names = asked_rows(self.embedder_, rows, self._stored.table.schema)
        cache = self._prepared()
        stored = cache.stored
        found = cache.within(asked, names, radius, _allowed(stored, where))
        return [Matches(stored.ids[numbers], distances) for distances, numbers in found]

    def duplicates(
        self, threshold: float, where: Any = None, *, max_pairs: int = 1_000_000
    ) -> Pairs:
        """Find all pairs of stored rows within a distance of each other.

        Parameters
        ----------
        threshold : float
            The largest distance; 0 finds rows that are equal to the embedder.
        where
            As in :meth:`query`: which rows to compare.
        max_pairs : int, default=1_000_000
            How many pairs may come back; more are an error that says how many there are.

        Returns
        -------
        Pairs
            ``first`` and ``second``, ids in the order of arrival, and ``distances``, nearest first.

        Notes
        -----
        Exact, in blocks, without a matrix of all pairs. Two rows are compared only if their values
        are near enough in each column alone, and they are near along the coordinate that varies
        most; a threshold at which no column rules a pair out costs a comparison of all distinct
        rows.

        Examples
        --------
        >>> from tabweave import SimilarityIndex
        >>> rows = {"name": ["ann", "bob", "ann", "cy"], "city": ["Rome", "Rome", "Rome", "Oslo"]}
        >>> index = SimilarityIndex().fit(rows)
        >>> first, second, distances = index.duplicates(0)
        >>> first, second
        (array([0]), array([2]))
        """
        check_is_fitted(self, "_stored")
        _check_distance("threshold", threshold)
        if not isinstance(max_pairs, Integral) or isinstance(max_pairs, bool) or max_pairs < 1:
            raise ValueError(f"expected max_pairs to be a whole number >= 1, got {max_pairs!r}")
        cache = self._prepared()
        stored = cache.stored
        first, second, distances = cache.pairs(threshold, _allowed(stored, where), max_pairs)
        return Pairs(stored.ids[first], stored.ids[second], distances)

    def share_nearer(self, distances: Any, columns: Sequence[str] | None = None) -> np.ndarray:
        """Return the share of pairs of rows that are closer than each distance.

        Parameters
        ----------
        distances : array-like
            Distances, as queries give them.
        columns : sequence of str, optional
            Those that queries had, if not all.

        Returns
        -------
        ndarray
            For each distance a share from 0 to 1, of the pairs of at most 500 rows of the index,
            drawn with a fixed seed.

        Examples
        --------
        >>> from tabweave import OneHot, SimilarityIndex
        >>> index = SimilarityIndex(OneHot()).fit({"color": ["red", "red", "blue", "green"]})
        >>> ids, distances = index.query({"color": "red"}, k=3)
        >>> index.share_nearer(distances).round(2)
        array([[0.  , 0.  , 0.17]])
        """
        check_is_fitted(self, "_stored")
        cache = self._prepared()
        if len(self) < 2:
            raise ValueError(f"expected at least two rows in the index, got {len(self)}")
        asked = np.asarray(distances, np.float64)
        if np.isnan(asked).any():
            raise ValueError(f"expected distances, got {distances!r}")
        names = None if columns is None else self._compared(columns)
        pairs = cache.sample_distances(names)
        return np.searchsorted(pairs, asked * (1 - 1e-9)) / len(pairs)  # equal but for rounding

    def _compared(self, columns: Sequence[str]) -> list[str] | None:
        """Return the columns of the embedder among these, None if they are all; check them."""
        listed = [columns] if isinstance(columns, str) else list(columns)
        schema = self._stored.table.schema
        _check_names(listed, schema)
        own = self.embedder_.schema_ if isinstance(self.embedder_, Embedder) else schema
        names = _compared_names(listed, own)
        return None if names == own.names else names

    def explain(self, row: Any, id: Any) -> dict[str, float]:
        """Explain the distance between a row and a stored row: each column's share.

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
        space, stored = self._ready().space, self._stored
        asked, names = asked_rows(self.embedder_, row, stored.table.schema)
        if asked.n_rows != 1:
            raise ValueError(f"expected one row, got {asked.n_rows}")
        if np.ndim(id):
            raise ValueError(f"expected one id, got {id!r}; explain each of them")
        other = take_rows(stored.table, stored.rows_of([id]))
        shares = (space if names is None else space.only(names)).explain(asked, other)
        order = [name for name in stored.table.schema.names if name in shares]
        return {name: shares[name] for name in dict.fromkeys([*order, *shares])}

    # -- files and parameters --------------------------------------------------------------

    @classmethod
    def load(cls, path: str | PathLike[str]) -> SimilarityIndex:
        """Read what :meth:`save` wrote; a damaged or foreign file is refused by name."""
        index = store_load(path)
        if not isinstance(index, cls):
            raise ValueError(f"expected a {cls.__name__} in {path}, got a {type(index).__name__}")
        try:
            if "_stored" in vars(index):
                index._ready()
        except (ValueError, TypeError, LookupError, AttributeError) as error:
            raise ValueError(f"{path} is damaged: {error}") from error
        return index

    def _check_loaded(self) -> None:
        measured = self._measured
        if measured is not None:
            breadth, recall = measured
            if type(breadth) is not int or not 1 <= breadth <= WIDEST or not 0 <= recall <= 1:
                raise ValueError(f"expected a breadth and its recall, got {measured!r}")

    @exclusive
    def _prepared(self) -> Cache:
        """Return what is derived from the rows, up to date and without too many tombstones."""
        cache = self._ready()
        if cache.is_worn():
            self._graph = self._measured = None
            self._keep(self._stored.compacted())
            cache = self._ready()
        cache.prepare()
        return cache

    @exclusive
    def _ready(self) -> Cache:
        """Return what is derived from the rows."""
        if "_cache" not in vars(self):
            space = space_of(self.embedder_, self._stored.table.schema, self.metric)
            self._cache = Cache(self, space, self._stored)
        return self._cache


_Names = tuple[str, ...] | None  # of the columns that are compared, None if these are all


class Cache:
    """What an index derives from its rows: views of them, and what its backend needs.

    When rows come or go the index takes another one, so that a search that is under way ends
    among the rows it began with.

    Parameters
    ----------
    index : SimilarityIndex
        Whose rows; compacted rows and new graphs are left there.
    space : Space
        What rows are compared by.
    stored : Stored
        The rows.
    """

    def __init__(self, index: SimilarityIndex, space: Space, stored: Stored) -> None:
        self.index = index
        self.space = space
        self.stored = stored
        self._lock = Lock()
        self._views: dict[_Names, View] = {}
        self._sampled: dict[_Names, np.ndarray] = {}
        self._walker: Walker | None = None
        self._flat: Flat | None = None
        self._breadth = 0

    def after(self, stored: Stored) -> Cache:
        """Return what is derived from rows of which some were added or removed."""
        out = Cache(self.index, self.space, stored)
        if stored.table is self.stored.table:
            out._views, out._walker, out._flat = dict(self._views), self._walker, self._flat
        return out

    def is_worn(self) -> bool:
        """Tell whether there are so many tombstones that it is worth to begin anew."""
        dead = len(self.stored.alive) - np.count_nonzero(self.stored.alive)
        return bool(dead > max(_FEW, _DEAD * len(self.stored.alive)))

    def prepare(self) -> None:
        """Make what the backend needs."""
        backend = self.backend
        if backend != "exact":
            require("faiss", "search")
        if backend == "faiss-flat" and self._flat is None:
            self._flat = Flat(self._view().vectors, self._view().nodes)
        if backend == "faiss-hnsw":
            if self._walker is None:
                self._walker = Walker(self._current_graph(), self._view().nodes)
            if self.index.breadth == "auto":
                self._choose_breadth(self._walker)
            self._breadth = self.index.breadth_

    def _choose_breadth(self, walker: Walker) -> None:
        if self.index._measured is None:
            view, own = self._view(), walker.sample()
            queries = view.queries(take_rows(view.table, view.copies.heads[own]))
            self.index._measured = walker.choose_breadth(queries, own)

    def _current_graph(self) -> Graph:
        graph, view = self.index._graph, self._view()
        late = 0 if graph is None else len(view.nodes) - graph.n_nodes
        if graph is None or late > max(_FEW, _LATE * graph.n_nodes):
            links = int(self.index.links)
            graph = Graph.of(view.vectors, len(view.nodes), view.space.power, links)
            self.index._graph, self.index._measured = graph, None
        return graph

    @property
    def backend(self) -> str:
        """The backend in use, "auto" resolved."""
        if self.index.backend != "auto":
            return self.index.backend
        large = len(self.stored.alive) >= _AUTO and len(self._view().nodes) >= _AUTO
        return "faiss-hnsw" if large and find_spec("faiss") else "exact"

    def _view(self, names: list[str] | None = None) -> View:
        """Return the rows as a search over some columns sees them."""
        key = None if names is None else tuple(names)
        with self._lock:
            if key not in self._views:
                if len(self._views) >= _VIEWS:
                    del self._views[next(k for k in self._views if k is not None)]
                space = self.space if names is None else self.space.only(names)
                self._views[key] = View(self.stored.table, space)
            return self._views[key]

    def nearest(
        self, asked: Table, names: list[str] | None, k: int, allowed: np.ndarray | None
    ) -> Found:
        """Return (distances, rows) of the k nearest allowed rows of each query."""
        view = self._view(names)
        if k == 0:
            return np.zeros((asked.n_rows, 0)), np.zeros((asked.n_rows, 0), np.int64)
        exact = names is not None or self.backend == "exact"
        search = None if exact else self._search(asked, allowed is None)
        queries = view.queries(asked)
        summed, rows = nearest_rows(view.nodes, view.copies, queries, k, allowed, search)
        return view.space.distances(summed), rows

    def nearest_to_all(
        self,
        asked: Table,
        names: list[str] | None,
        k: int,
        allowed: np.ndarray | None,
        together: str,
    ) -> Found:
        """Return (distances, rows) of the rows nearest to the mean of queries, or to all of them.

        The mean of squared distances is the squared distance to the mean and the inertia of the
        queries.
        """
        view, total = self._view(names), 0.0
        queries = view.queries(asked)
        for i in range(len(queries)):
            one = _to_every_node(view, queries.take(np.array([i])))
            total = np.maximum(total, one) if together == "all" else total + one / len(queries)
        space = view.space
        if together == "mean" and space.root and space.power == 2:
            total = np.maximum(total - space.inertia(asked), 0)
        first = view.copies.first(allowed)
        order = np.lexsort((first, np.where(first < 0, np.inf, total)))[:k]
        found = np.asarray(total)[None, order], first[None, order]
        summed, rows = view.copies.expand(found, k, allowed)
        return space.distances(summed), rows

    def within(
        self, asked: Table, names: list[str] | None, radius: float, allowed: np.ndarray | None
    ) -> list[Found]:
        """Return (distances, rows) of the allowed rows within a radius of each query."""
        view = self._view(names)
        who, nodes, summed = within(view.nodes, view.queries(asked), _limit(view.space, radius))
        members, sizes = view.copies.rows_of(nodes, allowed)
        who, summed = np.repeat(who, sizes), np.repeat(summed, sizes)
        order = np.lexsort((members, summed, who))
        cuts = np.searchsorted(who[order], np.arange(1, asked.n_rows))
        parts = (np.split(part[order], cuts) for part in (view.space.distances(summed), members))
        return list(zip(*parts, strict=True))

    def pairs(
        self, threshold: float, allowed: np.ndarray | None, most: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return pairs of rows and their distances: copies of one node, and of near ones."""
        view = self._view()
        kept = np.flatnonzero(view.copies.first(allowed) >= 0)
        low, high, summed = view.near_pairs(_limit(view.space, threshold), kept)
        low, high = np.concatenate([kept, low]), np.concatenate([kept, high])
        summed = np.concatenate([np.zeros(len(kept)), np.maximum(summed, 0)])
        a, b, which = _expanded_pairs(view.copies, low, high, allowed, most, threshold)
        distances = view.space.distances(summed[which])
        order = np.lexsort((b, a, distances))
        return a[order], b[order], distances[order]

    def sample_distances(self, names: list[str] | None) -> np.ndarray:
        """Return the distances of all pairs of some rows, in order."""
        view, key = self._view(names), None if names is None else tuple(names)
        if key not in self._sampled:
            there = np.flatnonzero(self.stored.alive)
            n = min(len(there), _PAIRED)
            rows = np.sort(np.random.default_rng(0).choice(there, n, replace=False))
            nodes = view.nodes.take(view.copies.node_of[rows])
            found, others = nearest_nodes(nodes, view.queries(take_rows(view.table, rows)), n)
            summed = np.sort(found[others != np.arange(n)[:, None]])
            self._sampled[key] = view.space.distances(summed)
        return self._sampled[key]

    def _search(self, asked: Table, all_allowed: bool) -> Callable[..., Found]:
        """Return how the backend finds nodes."""

        def search(queries: Queries, k: int, first: np.ndarray) -> Found:
            share = 1.0 if all_allowed else np.count_nonzero(first >= 0) / len(first)
            if share < _NARROW:
                return nearest_nodes(self._view().nodes, queries, k, first)
            if self._walker is not None:
                breadth = int(max(self._breadth, k) / share)
                return self._walker.nearest(queries, k, first, breadth)
            assert self._flat is not None
            return self._flat.nearest(queries, k, first, self.space.vectors(asked))

        return search


def _to_every_node(view: View, query: Queries) -> np.ndarray:
    """Return what adds up between one query and every node."""
    summed, nodes = nearest_nodes(view.nodes, query, len(view.nodes))
    out = np.empty(len(view.nodes))
    out[nodes[0]] = np.maximum(summed[0], 0)
    return out


def _limit(space: Space, distance: float) -> float:
    """Return what may add up within a distance, with room for rounding."""
    return float(distance**2 if space.root else distance) * (1 + 1e-9) + 1e-18


def _expanded_pairs(
    copies: Copies,
    low: np.ndarray,
    high: np.ndarray,
    allowed: np.ndarray | None,
    most: int,
    threshold: float,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the pairs of rows of pairs of nodes, the earlier row first, and whose pair each is."""
    copied = copies.sizes(allowed)
    number = np.where(low == high, copied[low] * (copied[low] - 1) // 2, copied[low] * copied[high])
    if number.sum() > most:
        raise ValueError(
            f"{number.sum():,} pairs of rows are within {threshold:g}, more than "
            f"max_pairs={most:,}; lower the threshold, filter the rows with where, or raise "
            "max_pairs"
        )
    members, starts = copies.rows_of(np.arange(len(copied)), allowed)[0], np.cumsum(copied) - copied
    grid = copied[low] * copied[high]
    which = np.repeat(np.arange(len(low)), grid)
    inside = np.arange(len(which)) - np.repeat(np.cumsum(grid) - grid, grid)
    i, j = np.divmod(inside, copied[high][which])
    kept = (low != high)[which] | (i < j)
    which, i, j = which[kept], i[kept], j[kept]
    one, other = members[starts[low[which]] + i], members[starts[high[which]] + j]
    return np.minimum(one, other), np.maximum(one, other), which


# -- rows that are kept --------------------------------------------------------------------------


@storable
@dataclass(frozen=True, eq=False)
class Stored:
    """Rows with their ids, and which of them are still there.

    Rows are only ever appended; a removed one stays as a tombstone until the index is rebuilt.
    """

    table: Table
    ids: np.ndarray
    alive: np.ndarray
    next_id: int

    @classmethod
    def of(cls, table: Table, ids: Any) -> Stored:
        """Store the first rows."""
        none = np.zeros(0, np.int64)
        named, next_id = _new_ids(ids, table.n_rows, none, 0)
        return cls(table, named, np.ones(table.n_rows, bool), next_id)

    def _check_loaded(self) -> None:
        n = self.table.n_rows
        if self.ids.shape != (n,) or self.alive.shape != (n,) or self.alive.dtype != bool:
            raise ValueError(f"ids and tombstones do not fit {n} rows")

    def append(self, table: Table, ids: Any) -> Stored:
        """Return these rows and more; raise for ids that are in use already."""
        held = self.ids[self.alive]
        named, next_id = _new_ids(ids, table.n_rows, held, self.next_id)
        return Stored(
            append_rows(self.table, table),
            np.concatenate([self.ids, named]) if len(self.ids) else named,
            np.concatenate([self.alive, np.ones(table.n_rows, bool)]),
            next_id,
        )

    def rows_of(self, ids: Any) -> np.ndarray:
        """Return the row of each id; raise for those that are not there."""
        asked = np.atleast_1d(_as_ids(ids))
        same = asked.dtype.kind == self.ids.dtype.kind
        met = np.flatnonzero(np.isin(self.ids, asked)) if same else np.zeros(0, np.intp)
        rows = met[self.alive[met]]
        rows = rows[np.argsort(self.ids[rows])]
        absent = np.flatnonzero(~np.isin(asked, self.ids[rows])) if same else np.arange(len(asked))
        if len(absent):
            first = asked[absent[0]].item()
            why = "was removed" if (self.ids[met] == first).any() else "is not in the index"
            n = np.count_nonzero(self.alive)
            raise KeyError(f"id {first!r} {why}; there are {n} rows")
        return rows[np.searchsorted(self.ids[rows], asked)]

    def without(self, ids: Any) -> Stored:
        """Return the rows without some of them."""
        rows = self.rows_of(ids)
        if len(np.unique(rows)) < len(rows):
            raise ValueError("an id is given twice; give each id to remove once")
        alive = self.alive.copy()
        alive[rows] = False
        return Stored(self.table, self.ids, alive, self.next_id)

    def compacted(self) -> Stored:
        """Return the rows that are still there."""
        rows = np.flatnonzero(self.alive)
        table = take_rows(self.table, rows)
        return Stored(table, self.ids[rows], np.ones(len(rows), bool), self.next_id)


def _as_ids(ids: Any) -> np.ndarray:
    """Return ids as whole numbers or as text."""
    if isinstance(ids, Set):
        ids = sorted(ids)
    out = np.asarray(ids)
    if out.dtype.kind == "O" or (out.dtype.kind == "U" and not isinstance(ids, np.ndarray)):
        kinds = {type(i) for i in np.atleast_1d(np.asarray(ids, object)).tolist()}
        text = all(issubclass(kind, str) for kind in kinds)
        if not text and not all(issubclass(kind, Integral) for kind in kinds):
            names = ", ".join(sorted(kind.__name__ for kind in kinds))
            raise TypeError(
                f"expected ids to be whole numbers or text, all of one kind, got {names}"
            )
        out = out.astype(str if text else np.int64)
    if not out.size:
        return out.astype(np.int64)
    if out.dtype.kind not in "iuUT":
        raise TypeError(f"expected ids to be whole numbers or text, got {out.dtype}")
    if out.dtype == np.uint64 and (large := out[out > np.iinfo(np.int64).max]).size:
        raise ValueError(
            f"expected ids below 2**63, got {large.flat[0]}; give hashes as text, or as int64"
        )
    return out.astype(np.int64) if out.dtype.kind in "iu" else out.astype(str)


def _new_ids(ids: Any, n_rows: int, held: np.ndarray, next_id: int) -> tuple[np.ndarray, int]:
    """Return the ids of new rows, running numbers if none are given, and the next free number."""
    if ids is None:
        if held.dtype.kind == "U" and len(held):
            raise ValueError("the rows of this index have text as ids; give ids for new rows, too")
        return np.arange(next_id, next_id + n_rows), next_id + n_rows
    out = np.atleast_1d(_as_ids(ids))
    if out.shape != (n_rows,):
        raise ValueError(f"expected {n_rows} ids, one per row, got {out.size}")
    if len(held) and n_rows and held.dtype.kind != out.dtype.kind:
        kinds = {"i": "whole numbers", "U": "text"}
        raise TypeError(
            f"expected ids to be {kinds[held.dtype.kind]}, as those in the index are, got "
            f"{kinds[out.dtype.kind]}"
        )
    sort = np.sort(out)
    twice = sort[1:][sort[1:] == sort[:-1]]
    if len(twice):
        raise ValueError(f"expected ids that differ, got {twice[0].item()!r} twice")
    used = held[np.isin(held, out)]
    if len(used):
        raise ValueError(
            f"id {used[0].item()!r} is in the index already; remove it first, or use another"
        )
    if out.dtype.kind == "i" and n_rows:
        next_id = max(next_id, int(sort[-1]) + 1)
    return out, next_id


# -- filters ------------------------------------------------------------------------------------


def _allowed(stored: Stored, where: Any) -> np.ndarray | None:
    """Return which rows may be found; None if all may."""
    if where is None:
        return None if stored.alive.all() else stored.alive
    if isinstance(where, Mapping):
        return stored.alive & matching(stored.table, where)
    mask, n = np.asarray(where), int(np.count_nonzero(stored.alive))
    if mask.dtype == object and all(is_missing(cell) or type(cell) is bool for cell in mask.flat):
        mask = np.array([cell is True for cell in mask.flat])  # a comparison with gaps has gaps
    if mask.dtype != bool or mask.shape != (n,):
        raise TypeError(
            "expected where to be a mapping of column to value, values, range or function, or "
            f"{n} booleans, one for each of ids_, got {_described(where, mask)}"
        )
    out = stored.alive.copy()
    out[stored.alive] = mask
    return out


def _described(where: Any, mask: np.ndarray) -> str:
    return repr(where) if mask.ndim == 0 else f"{mask.dtype} of shape {mask.shape}"


def _check_distance(name: str, given: Any) -> None:
    if not isinstance(given, Real) or isinstance(given, bool) or not 0 <= float(given) < np.inf:
        raise ValueError(f"expected {name} to be a distance >= 0, got {given!r}")


def matching(table: Table, where: Mapping[str, Any]) -> np.ndarray:
    """Return which rows pass every condition: a value, several values, or a function."""
    out = np.ones(table.n_rows, bool)
    names = _given_names(table.schema)
    for name, wanted in where.items():
        if name not in names:
            raise ValueError(
                f"where: column not found: {name!r}; the columns are {', '.join(map(repr, names))}"
            )
        out &= _passes(name, table[name], _as_stored(table.schema[name], wanted))
    return out


def _as_stored(column: Column, wanted: Any) -> Any:
    """Return a condition in what a column holds: text as its numbers, a range as its levels."""
    if isinstance(wanted, Between):
        return _range_as_stored(column, wanted)
    written = column.kind == "datetime" or (column.kind == "numeric" and column.decimal is not None)
    if not written or callable(wanted):
        return wanted
    listed = _listed(wanted)
    days = [_range_as_stored(column, Between(v, v)) for v in listed if _lasts(column, v)]
    others = [_cell_number(column, value) for value in listed if not _lasts(column, value)]
    if not days:
        return others
    return lambda cells: np.any(
        [_passes(column.name, Numbers(cells), passing) for passing in (*days, others)], axis=0
    )


def _range_as_stored(column: Column, wanted: Between) -> Any:
    """Return a range of levels as the levels in it, another with both ends in numbers."""
    low, high = _days_of(column, wanted.low)[0], _days_of(column, wanted.high)[1]
    lasting = _is_day(column, high)
    if column.kind == "ordinal" and column.levels is not None:
        return _levels_within(column.name, list(column.levels), low, high)
    if column.kind in ("datetime", "numeric"):
        low, high = (_cell_number(column, end) for end in (low, high))
    _check_ends(wanted.low, wanted.high, low, high)
    return Between(low, high + 86_399.999999 if lasting else high)


def _levels_within(name: str, levels: list[Label], low: Any, high: Any) -> list[Label]:
    for end in (low, high):
        if end is not None and end not in levels:
            raise ValueError(
                f"where: expected a range of levels of column {name!r} "
                f"({', '.join(map(repr, levels))}), got {end!r}"
            )
    first = 0 if low is None else levels.index(low)
    last = len(levels) - 1 if high is None else levels.index(high)
    _check_ends(low, high, first, last)
    return levels[first : last + 1]


def _lasts(column: Column, value: Any) -> bool:
    """Tell whether a value for a column of datetimes is a year, a month or a day."""
    return _is_day(column, value) or _days_of(column, value)[0] is not value


def _days_of(column: Column, value: Any) -> tuple[Any, Any]:
    """Return the first and last day of a year (2024) or month (2024-02); else the value twice.

    A column of months, quarters or weeks has months of its own.
    """
    if column.kind != "datetime" or column.is_clock or not isinstance(value, str | np.datetime64):
        return value, value
    found = _YEAR_OR_MONTH.fullmatch(str(value).strip())
    if found is None or (found[2] and column.date_order == PERIODS):
        return value, value
    first, last = (int(found[2]), int(found[2])) if found[2] else (1, 12)
    year = int(found[1])
    return dt.date(year, first, 1), dt.date(year, last, monthrange(year, last)[1])


_YEAR_OR_MONTH = re.compile(r"([1-9]\d{3})(?:-(0[1-9]|1[0-2]))?")


def _is_day(column: Column, value: Any) -> bool:
    """Tell whether a value for a column of datetimes is a day, without a time."""
    if column.kind != "datetime" or not isinstance(value, str | dt.date | np.datetime64):
        return False
    text = value.isoformat() if isinstance(value, dt.date) else str(value)
    return bool(re.search(r"\d", text)) and not re.search(r":|\dT\d", text)


def _cell_number(column: Column, value: Any) -> float | None:
    """Return the number of a cell of a column; None and numbers stay what they are."""
    if value is None:
        return None
    if isinstance(value, Real) and column.date_order not in DIGIT_FORMATS:
        return float(value)
    schema = Schema((column,), complete=True)
    return float(Table.of({column.name: [value]}, schema)[column.name].values[0])


def _passes(name: str, column: Any, wanted: Any) -> np.ndarray:
    if isinstance(column, Numbers):
        if callable(wanted):
            return _answered(name, wanted, column.values)
        listed = np.array([_number(name, v) for v in _listed(wanted)], float)
        return np.isin(column.values, listed) | (np.isnan(column.values) & np.isnan(listed).any())
    if callable(wanted):
        passing = np.array([v is not None and _said(name, wanted, v) for v in column.labels], bool)
    else:
        listed = [canonical(value) for value in _listed(wanted)]
        passing = np.zeros(len(column.labels) + 1, bool)
        passing[positions(column.labels, listed)] = True
        passing = passing[:-1]
        if listed and not passing.any():
            _tell_absent(name, listed, column.labels)
    hits = passing[column.codes] if len(passing) else np.zeros(len(column.codes), bool)
    if isinstance(column, Codes):
        return hits
    return column.any_element(hits)


def _tell_absent(name: str, listed: Sequence[Label], labels: Sequence[Label]) -> None:
    """Refuse values of another type than a column has, warn of others that no row has."""
    if listed == [None]:
        return
    asked, held = types_of(listed), types_of(labels)
    if asked and held and not asked & held:
        raise ValueError(
            f"where: column {name!r} has {' and '.join(sorted(held))}, e.g. {_some(labels)}; got "
            f"{' and '.join(sorted(asked))}, {_some(listed)}"
        )
    warn_caller(f"where: no row has {_some(listed)} in column {name!r}{_hint(listed[0], labels)}")


def _some(labels: Sequence[Label]) -> str:
    return ", ".join(repr(label) for label in labels[:4] if label is not None)


def _hint(value: Label, labels: Sequence[Label]) -> str:
    """Return the label that a misspelt value may stand for, as a question, or some of them."""
    texts = [label for label in labels if isinstance(label, str)]
    close = get_close_matches(value, texts, 1) if isinstance(value, str) else []
    return f"; did you mean {close[0]!r}?" if close else f"; there are, e.g., {_some(labels)}"


def _listed(wanted: Any) -> list[Any]:
    if isinstance(wanted, Iterable) and not isinstance(wanted, str | bytes):
        return list(wanted)  # a series, a range, keys of a mapping
    return [wanted]


def _number(name: str, value: Any) -> float:
    if value is None:
        return float("nan")
    try:
        return float(value)
    except (TypeError, ValueError):
        raise TypeError(f"where: expected a number for column {name!r}, got {value!r}") from None


def _said(name: str, test: Callable[[Any], Any], value: Label) -> bool:
    try:
        return bool(test(value))
    except Exception as error:
        raise ValueError(
            f"the condition on column {name!r} failed at {value!r}: {error}"
        ) from error


def _answered(name: str, test: Callable[[Any], Any], values: np.ndarray) -> np.ndarray:
    try:
        out = np.asarray(test(values))
    except Exception as error:
        raise ValueError(f"the condition on column {name!r} failed: {error}") from error
    if out.shape != values.shape or out.dtype != bool:
        raise ValueError(
            f"the condition on column {name!r}: expected {len(values)} booleans for as many "
            f"numbers, got {out.dtype} of shape {out.shape}"
        )
    return out


# -- rows that users give ------------------------------------------------------------------------


def _given_names(schema: Schema) -> list[str]:
    """Return the columns as they were given, without those that hold vectors."""
    return [name for name in schema.names if not name.startswith(HIDDEN)]


def first_rows(embedder: Any, X: Any, y: Any) -> tuple[Any, Table]:
    """Return a fitted embedder and the first rows of an index.

    An unfitted embedder is cloned and fitted on the rows; without any, it is a Weave.
    """
    if embedder is None:
        embedder = Weave()
    if _is_fitted(embedder):
        return embedder, _as_read(embedder, _table(embedder, X))
    embedder, rows = clone(embedder), X
    if isinstance(embedder, Embedder):
        rules: Any = "whole" if embedder._rules else None
        rows = Table.of(X, Schema.of(embedder.schema), numbers=embedder._numbers, rules=rules)
        require_rows(rows)
        X = X if rows.schema.aside else rows
    embedder.fit(rows, y)
    return embedder, _table(embedder, X)


def _is_fitted(embedder: Any) -> bool:
    try:
        check_is_fitted(embedder)
    except NotFittedError:
        return False
    return True


def _table(embedder: Any, X: Any) -> Table:
    """Read the first rows: the embedder's columns as it reads them, others as their values look."""
    if not isinstance(embedder, Embedder):
        return with_vectors(embedder, X, Table.of(X, rules="all"))
    known = embedder.schema_
    if isinstance(X, Table) or names_of(X) is None or not known.named:
        return _checked(Table.of(X, known), known)
    table = Table.of(X, replace(known, complete=False, aside=()), rules="all")
    require_rows(table)
    return table


def with_vectors(embedder: Any, X: Any, table: Table) -> Table:
    """Return a table with the vectors of its rows as hidden columns."""
    vectors = embedder.transform(X)
    if issparse(vectors):
        raise TypeError(
            f"{type(embedder).__name__}.transform: expected dense vectors, got a sparse matrix of "
            f"shape {vectors.shape}; make them dense, or reduce them (TruncatedSVD, KSVD) in a "
            "pipeline"
        )
    vectors = np.asarray(vectors, dtype=np.float64)
    if vectors.ndim != 2 or len(vectors) != table.n_rows or not np.isfinite(vectors).all():
        raise ValueError(
            f"{type(embedder).__name__}.transform: expected {table.n_rows} rows of finite numbers, "
            f"got shape {vectors.shape}"
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
        return _as_read(embedder, _checked(Table.of(as_rows(X, schema), schema), schema))
    X = _as_fitted(embedder, as_rows(X, schema))
    return with_vectors(embedder, X, Table.of(X, schema.select(_given_names(schema))))


def _as_read(embedder: Any, table: Table) -> Table:
    """Return rows to be stored as the embedder reads them; what it does not know is reported."""
    if not isinstance(embedder, Embedder):
        return table
    table = embedder._vocabulary().in_words(table)
    if embedder._policy() != "error":
        tell_unknown(embedder, table)
    return table


def _checked(table: Table, schema: Schema) -> Table:
    if table.schema.names != schema.names:
        raise ValueError(f"expected columns {schema.names}, got {table.schema.names}")
    require_rows(table)
    return table


def asked_rows(embedder: Any, X: Any, schema: Schema) -> tuple[Table, list[str] | None]:
    """Read rows to look for, and say which columns they have if those are not all.

    Columns that the index does not know are refused: they may be misspelt.
    """
    X = as_rows(X, schema)
    if not isinstance(embedder, Embedder):
        X = _as_fitted(embedder, X)
        return with_vectors(embedder, X, Table.of(X)), None
    own, given = embedder.schema_, names_of(X)
    if given is None or (not own.named and not {*given} <= {*own.names}):
        table = embedder._vocabulary().in_words(Table.of(X, own))
        require_rows(table)
        _tell_unknown(embedder, table)
        return table, None
    given = [field for name in given for field in schema.fields(name)]
    _check_names(given, schema)
    names = _compared_names(given, own)
    if isinstance(X, list):
        _check_same_keys(X, names)
    if isinstance(X, Table):
        X = X.select(names)
    table = Table.of(X, replace(own.select(names), named=True))
    table = embedder._vocabulary().in_words(table)
    require_rows(table)
    _tell_unknown(embedder, table)
    return table, None if names == own.names else names


def _check_names(given: Iterable[str], schema: Schema) -> None:
    """Refuse columns that an index does not have: they may be misspelt."""
    names = _given_names(schema)
    for name in given:
        if name not in names:
            raise ValueError(
                f"column {name!r} is not in the index; the columns are "
                f"{', '.join(map(repr, names))}"
            )


def _compared_names(given: Sequence[str], own: Schema) -> list[str]:
    """Return the columns of an embedder that are given, in its order; refuse to have none."""
    names = [name for name in own.names if name in given]
    if not names:
        raise ValueError(
            f"expected columns that are compared, got none of the columns "
            f"{', '.join(map(repr, own.names))}"
        )
    return names


def _tell_unknown(embedder: Embedder, table: Table) -> None:
    """Tell or refuse what the embedder has not seen; a set of nothing known is no empty set."""
    if embedder._policy() == "error":
        return
    tell_unknown(embedder, table)
    vocabulary, few = embedder._vocabulary(), table.n_rows < _BY_HAND
    if few:
        _warn_of_levels(table)
    for name, values in vocabulary.unknown(table).items():
        column = table[name]
        if name in spelled_columns(embedder):
            continue
        if isinstance(column, Codes):
            value = next(iter(values))
            if few and value is not None:
                known = vocabulary.labels[vocabulary.index(name)]
                _warn_asked(name, value, "average", _hint(value, known))
            continue
        new = np.isin(column.codes, positions(column.labels, values))
        lengths, unknown = np.diff(column.starts), np.append(0, np.cumsum(new))[column.starts]
        odd = np.flatnonzero((lengths > 0) & (np.diff(unknown) == lengths))
        if len(odd):
            own = column.codes[column.starts[odd[0]] : column.starts[odd[0] + 1]]
            raise ValueError(
                f"column {name!r}: no element of {[column.labels[c] for c in own]} (row {odd[0]}) "
                "was seen in fit, so no row can be similar to it; leave the column out of the "
                "query, or use elements that were seen"
            )


def _warn_of_levels(table: Table) -> None:
    """Warn of levels that a column has not."""
    for column in table.schema.columns:
        levels = column.levels or ()
        for value in table[column.name].labels if column.kind == "ordinal" and levels else ():
            if value is not None and value not in levels:
                _warn_asked(column.name, value, "missing", _hint(value, levels))


def _warn_asked(name: str, value: Label, fate: str, hint: str) -> None:
    warn_caller(f"column {name!r}: {value!r} was not seen in fit and counts as {fate}{hint}")


def _check_same_keys(rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> None:
    """Refuse rows of which some lack a column: it may be missing, or not asked about."""
    for i, row in enumerate(rows):
        for name in names:
            if name not in row and name not in (names_of([row]) or ()):  # a field of a record
                raise ValueError(
                    f"row {i} has no {name!r}, which other rows have; query rows with different "
                    f"columns separately, or write None for a missing value"
                )


def names_of(X: Any) -> list[str] | None:
    """Return the names of the columns of rows, None if they have none."""
    return X.schema.names if isinstance(X, Table) else columns_of(X)[0]


def _as_fitted(embedder: Any, X: Any) -> Any:
    """Return rows of cells as a transformer of another package reads them: a frame, or an array."""
    names = getattr(embedder, "feature_names_in_", None)
    if names is None or not isinstance(X, Mapping | list | tuple):
        return X
    given, parts, _ = columns_of(X)
    if given is None and len(parts) != len(names):
        raise ValueError(f"expected {len(names)} cells per row, got {len(parts)}")
    columns = dict(zip(given or names, parts, strict=True))
    for name in names:
        if name not in columns:
            raise ValueError(
                f"column {name!r} is not given; {type(embedder).__name__} does not say which "
                "column its coordinates come from, so a row needs all of them"
            )
    library = "pandas" if find_spec("pandas") else "polars"
    return require(library, "frames").DataFrame({name: columns[name] for name in names})
