"""SimilarityIndex: find the rows most like a row, or like a part of one.

Rows come in with ids and stay as codes; distances are those of an embedder, looked up column by
column. The answer is exact by default; for large tables a neighbour graph finds nearly all of it
in a fraction of the time. Rows can be added, removed, filtered and explained.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from numbers import Integral, Real
from os import PathLike
from threading import Lock
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from tabweave._compat import HasMethods, Interval, StrOptions, html_table
from tabweave.base import Estimator, TabularInput
from tabweave.columns.table import Table, remember_names, shown_cell, take_rows
from tabweave.columns.vocabulary import Unknown
from tabweave.counts.counting import group_columns
from tabweave.embed.base import Embedder
from tabweave.io.register import storable
from tabweave.io.store import CacheNotSaved
from tabweave.io.store import load as store_load
from tabweave.neighbors.stored import (
    Segments,
    Stored,
    asked_rows,
    check_names,
    check_whole_number,
    compared_names,
    first_rows,
    more_rows,
    row_ids,
    space_of,
    unknown_rule,
)
from tabweave.space.graph import BREADTHS, Graph, Walker
from tabweave.space.kernels import all_distances
from tabweave.space.near_pairs import row_pairs
from tabweave.space.scan import (
    MAX_JOINT,
    Copies,
    Hits,
    Queries,
    Ranking,
    View,
    check_comparable,
    merge,
    nearest_nodes,
    nearest_rows,
    within,
)
from tabweave.space.space import Joined, Space, given_names
from tabweave.updates import exclusive

# Distinct rows from which "auto" takes a graph.
GRAPH_NODES = 100_000
# Tombstones, or nodes that are not in the graph, that are no burden.
FEW_CHANGES = 10_000


class MatchArrays(NamedTuple):
    """What a query gives: ids of rows, how far they are, and where they are in the index."""

    ids: np.ndarray
    distances: np.ndarray
    positions: np.ndarray


class Matches(MatchArrays):
    """Result of a query: one line per query row, nearest first.

    Attributes
    ----------
    ids : ndarray
        What the rows are called: ``frame.loc[found.ids[0]]`` are those of the first query.
    distances : ndarray
        How far they are.
    positions : ndarray
        Where they are among ``ids_``, the rows of the index: ``index.ids_[positions] == ids``.

    Examples
    --------
    >>> from tabweave import OneHot, SimilarityIndex
    >>> rows = {"color": ["red", "red", "blue"], "size": ["S", "L", "L"]}
    >>> found = SimilarityIndex(OneHot()).fit(rows).query({"color": "red", "size": "S"}, k=2)
    >>> found.ids.tolist(), found.distances.round(2).tolist()
    ([[0, 1]], [[0.0, 1.41]])
    """

    stored: Segments | None = None  # The rows of the index, of which notebooks show the cells.
    rows: np.ndarray | None = None

    @classmethod
    def of(cls, stored: Segments, rows: np.ndarray, distances: np.ndarray) -> Matches:
        """Rows of an index, and how far they are."""
        matches = cls(stored.ids_of(rows), distances, stored.positions_of(rows))
        matches.stored, matches.rows = stored, rows
        return matches

    def __reduce__(self) -> tuple[Any, ...]:
        return Matches, tuple(self)  # a table of any size is not sent along

    def _repr_html_(self) -> str:
        farthest = max(float(np.max(self.distances, initial=0.0)), 1e-300)
        ids, distances = (np.atleast_2d(found)[:5, :10] for found in (self.ids, self.distances))
        names, cells = self._cells()
        lines = [
            (f"{query:,}", rank + 1, str(ids[query, rank]), float(distances[query, rank]))
            for query, rank in np.ndindex(ids.shape)
        ]
        n_queries = 1 if self.ids.ndim == 1 else len(self.ids)
        return html_table(
            f"Nearest rows of {n_queries:,} asked about",
            ["asked", "rank", "id", "distance", *names],
            [(*line, *row) for line, row in zip(lines, cells, strict=True)],
            lambda i, j: lines[i][3] / farthest if j == 3 else None,
        )

    def _cells(self) -> tuple[list[str], list[list[Any]]]:
        """Names of at most a dozen columns, and their cells in the rows that are shown."""
        shown = np.atleast_2d(self.ids)[:5, :10]
        if self.stored is None or self.rows is None:
            return [], [[]] * shown.size
        names = given_names(self.stored.schema)[:12]
        table = self.stored.take(np.atleast_2d(self.rows)[:5, :10].ravel()).select(names)
        rows = range(table.n_rows)
        return names, [[shown_cell(table[name], row) for name in names] for row in rows]


class Pairs(NamedTuple):
    """Pairs of similar rows, the closest first.

    Attributes
    ----------
    first, second : ndarray
        The ids of both rows of each pair, the earlier row first.
    distances : ndarray
        How far apart they are.
    positions : ndarray of shape (pairs, 2)
        Where both are among ``ids_``, the rows of the index.

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
    positions: np.ndarray


@storable
class SimilarityIndex(CacheNotSaved, TabularInput, Estimator):
    """Store rows and find the ones nearest to a query, by the distance of an embedder.

    Parameters
    ----------
    embedder : embedder or None, default=None
        Defines the distance of two rows: any embedder of tabweave, or any object with
        ``transform``. A fitted one is used as it is; otherwise a clone is fitted on the first rows.
        None means :class:`~tabweave.Weave`.
    backend : {"exact", "graph", "auto"}, default="exact"
        How to search. ``"exact"`` compares with every distinct row. ``"graph"`` walks a
        graph of near rows: faster on large tables, nearly always right, and the distances it
        gives are exact. ``"auto"`` takes the graph from 100,000 distinct rows on.
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
    Rows at equal distances are ordered by arrival. Both backends return exactly the same distances
    and differ only in which rows they miss. Queries with a filter that keeps less than a tenth of
    the rows, and queries by some of the columns, are searched exactly whatever the backend.

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
    >>> found = index.query({"size": "M"}, k=2)              # some columns only
    >>> found.ids, found.distances, found.positions
    (array([['b', 'c']], dtype='<U1'), array([[0., 0.]]), array([[1, 2]]))
    >>> index.query({"color": "red", "size": "S"}, k=1, where={"size": ["M", "L"]}).ids
    array([['b']], dtype='<U1')
    >>> list(index.explain({"color": "red", "size": "S"}, "b"))
    ['color', 'size']
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "embedder": [HasMethods("transform"), None],
        "backend": [StrOptions({"exact", "graph", "auto"})],
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

    _stored: Segments
    _graph: Graph | None
    _measured: tuple[int, float] | None = None  # the breadth that suits the graph, and its recall
    _cache: IndexState | None = None

    def fit(self, X: Any, y: Any = None, *, ids: Any = None) -> Self:
        """Store rows, and fit the embedder if it is not fitted.

        Parameters
        ----------
        X : frame, array, mapping of columns or list of dicts
            The rows. Columns that a fitted embedder does not know are kept for filters.
        y : array-like, optional
            Classes, for embedders that use them.
        ids : array-like of whole numbers or text, or name of a column, optional
            What each row is called: these, or the cells of a column, which does not count in
            distances unless a fitted embedder knows it. If not given, the index labels of a pandas
            frame, and running numbers for rows that have none.
        """
        self._validate_params()
        new_ids = row_ids(X, ids)
        embedder, table = first_rows(self.embedder, X, y, ids)
        space = space_of(embedder, table.schema, self.metric)
        unknown = unknown_rule(embedder)
        check_comparable(table, space, unknown)
        stored = Segments.of(table, new_ids)
        self.embedder_, self._stored, self._graph = embedder, stored, None
        self._measured = None
        self._cache = IndexState(space, unknown, stored, self.backend)
        if isinstance(embedder, Embedder):
            remember_names(self, embedder.schema_)
        else:
            remember_names(self, table.schema.select(given_names(table.schema)))
        self._prepared()
        return self

    def add(self, X: Any, *, ids: Any = None) -> Self:
        """Store more rows; the embedder does not change. On a new index, the same as ``fit``.

        Parameters
        ----------
        X : dict, frame, array, mapping of columns or list of dicts
            One row or many, with the columns of the first ones.
        ids : array-like of whole numbers or text, or name of a column, optional
            As in :meth:`fit`. Ids that other rows have are refused; a frame whose index is only
            0, 1, 2, ... then gets the next running numbers.
        """
        if not hasattr(self, "_stored"):
            return self.fit(X, ids=ids)
        schema = self._stored.schema
        table = more_rows(self.embedder_, X, schema)
        state = self._ready()
        check_comparable(table, state.space, state.unknown)
        self._replace_rows(self._stored.append(table, row_ids(X, ids, schema)))
        return self

    def remove(self, ids: Any) -> Self:
        """Remove rows by their ids; if an id is not found, nothing is removed.

        Parameters
        ----------
        ids : id or array-like of ids
            The rows to drop; all of them where a label of the frame repeats.
        """
        check_is_fitted(self, "_stored")
        self._replace_rows(self._stored.without(ids))
        return self

    def _replace_rows(self, stored: Segments) -> None:
        """Take rows for the old ones; those who search among the old ones keep them."""
        self._cache = self._ready().after(stored, self.backend)
        self._stored = stored

    def __len__(self) -> int:
        return self._stored.n_alive if hasattr(self, "_stored") else 0

    @property
    def ids_(self) -> np.ndarray:
        """The ids of the stored rows, in order of arrival."""
        check_is_fitted(self, "_stored")
        return self._stored.ids

    @property
    def backend_(self) -> str:
        """The backend in use."""
        check_is_fitted(self, "_stored")
        return self._ready().backend

    @property
    def breadth_(self) -> int:
        """The breadth in use."""
        check_is_fitted(self, "_stored")
        return int(self.breadth) if self.breadth != "auto" else self._measurement("breadth_")[0]

    @property
    def recall_(self) -> float:
        """The recall that was measured for ``breadth_``."""
        check_is_fitted(self, "_stored")
        if self.breadth != "auto":
            raise AttributeError(
                f'recall_ is only measured with breadth="auto", got {self.breadth!r}'
            )
        return self._measurement("recall_")[1]

    def _measurement(self, name: str) -> tuple[int, float]:
        if self._measured is None:
            raise AttributeError(f"{name} exists only with a graph; backend is {self.backend!r}")
        return self._measured

    # -- questions -------------------------------------------------------------------------

    def query(
        self,
        rows: Any,
        k: int = 10,
        where: Any = None,
        *,
        together: str | None = None,
        distinct: bool = False,
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
            missing one does not pass. A pandas mask belongs to rows by its labels.
        together : {None, "mean", "all"}, default=None
            Whether the rows are one question. ``"mean"``: what is nearest to their mean (to them on
            average, where distances are not Euclidean). ``"all"``: what is near to every one of
            them; the distance is the largest of theirs. Searched exactly, whatever the backend.
        distinct : bool, default=False
            Whether rows that are equal in all that is compared are found once, the first of them:
            duplicates then fill no list. :meth:`equal_rows` finds the others.

        Returns
        -------
        Matches
            ``ids``, ``distances`` and ``positions``, each of shape (rows, k), or (1, k) of rows
            taken together, nearest first and equally near ones as they arrived; fewer than k
            columns if fewer rows satisfy ``where``.
        """
        check_is_fitted(self, "_stored")
        if together not in (None, "mean", "all"):
            raise ValueError(f"expected together to be None, 'mean' or 'all', got {together!r}")
        check_whole_number("k", k)
        if not len(self):
            raise ValueError("the index is empty: every row was removed; add some")
        if where is None and k > len(self):
            raise ValueError(f"expected k of at most {len(self)}, the rows of the index, got {k}")
        if distinct and together is not None:
            raise ValueError("expected together or distinct, got both; leave one out")
        queries, names = asked_rows(self.embedder_, rows, self._stored.schema)
        cache = self._prepared(in_one="distinct=True" if distinct else "")
        stored = cache.stored
        allowed = stored.allowed(where)
        k = min(int(k), stored.n_alive if allowed is None else int(np.count_nonzero(allowed)))
        if distinct:
            distances, nearest = cache.nearest_distinct(queries, names, k, allowed)
        elif together is None:
            distances, nearest = cache.nearest(queries, names, k, allowed)
        else:
            distances, nearest = cache.nearest_to_all(queries, names, k, allowed, together)
        return Matches.of(stored, nearest, distances)

    def equal_rows(
        self, position: int, columns: Sequence[str] | None = None, where: Any = None
    ) -> np.ndarray:
        """The rows that a query cannot tell from one, itself among them.

        Parameters
        ----------
        position : int
            Where the row is among ``ids_``, as :class:`Matches` has it.
        columns : sequence of str, optional
            The columns that are compared, if not all.
        where
            As in :meth:`query`.

        Returns
        -------
        ndarray
            Positions, in order.

        Examples
        --------
        >>> from tabweave import SimilarityIndex
        >>> rows = {"color": ["red", "red", "blue"], "size": ["S", "S", "L"]}
        >>> index = SimilarityIndex().fit(rows)
        >>> index.query({"color": "red", "size": "S"}, k=2, distinct=True).positions
        array([[0, 2]])
        >>> index.equal_rows(0)
        array([0, 1])
        """
        check_is_fitted(self, "_stored")
        cache = self._prepared(in_one="equal_rows")
        stored = cache.stored
        view = cache.view(None if columns is None else self._compared(columns))
        node = view.copies.node_of[np.flatnonzero(stored.alive)[[position]]]
        rows, _ = view.copies.rows_of(node, stored.allowed(where))
        return np.sort(stored.positions_of(rows))

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
            One for each row: ``ids``, ``distances`` and ``positions``, nearest first.
        """
        check_is_fitted(self, "_stored")
        _check_distance("radius", radius)
        queries, names = asked_rows(self.embedder_, rows, self._stored.schema)
        cache = self._prepared()
        stored = cache.stored
        allowed = stored.allowed(where)
        return [
            Matches.of(stored, near, distances)
            for distances, near in cache.within(queries, names, radius, allowed)
        ]

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
            ``first`` and ``second``, ids in the order of arrival, ``distances`` and ``positions``,
            nearest first.

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
        >>> pairs = index.duplicates(0)
        >>> pairs.first, pairs.second
        (array([0]), array([2]))
        """
        check_is_fitted(self, "_stored")
        _check_distance("threshold", threshold)
        check_whole_number("max_pairs", max_pairs)
        cache = self._prepared(in_one="duplicates")
        stored = cache.stored
        allowed = stored.allowed(where)
        first, second, distances = row_pairs(cache.view(), threshold, allowed, int(max_pairs))
        positions = stored.positions_of(np.stack([first, second], axis=1))
        ids = stored.ids_of(first), stored.ids_of(second)
        return Pairs(*ids, distances, positions)

    def share_nearer(self, distances: Any, columns: Sequence[str] | None = None) -> np.ndarray:
        """Share of pairs of rows that are closer than each distance.

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
        >>> found = index.query({"color": "red"}, k=3)
        >>> index.share_nearer(found.distances).round(2)
        array([[0.  , 0.  , 0.17]])
        """
        check_is_fitted(self, "_stored")
        cache = self._prepared()
        if len(self) < 2:
            raise ValueError(f"expected at least two rows in the index, got {len(self)}")
        limits = np.asarray(distances, np.float64)
        if np.isnan(limits).any():
            raise ValueError(f"expected distances, got {distances!r}")
        names = None if columns is None else self._compared(columns)
        pairs = cache.sample_distances(names)
        return np.searchsorted(pairs, limits * (1 - 1e-9)) / len(pairs)  # equal but for rounding

    def _compared(self, columns: Sequence[str]) -> list[str] | None:
        """Columns of the embedder among these, None if they are all; check them."""
        listed = [columns] if isinstance(columns, str) else list(columns)
        schema = self._stored.schema
        check_names(listed, schema)
        compared = self.embedder_.schema_ if isinstance(self.embedder_, Embedder) else schema
        names = compared_names(listed, compared)
        return None if names == compared.names else names

    def explain(self, row: Any, id: Any) -> dict[str, float]:
        """Explain the distance between a row and a stored row: each column's share.

        Parameters
        ----------
        row : dict, sequence or one-row frame
            The row asked about, or some columns of it.
        id : id
            The stored row.

        Returns
        -------
        dict
            Each column's share in the distance, squared where it is Euclidean. Where columns are
            mixed a share may be negative: it points against the total difference.
        """
        check_is_fitted(self, "_stored")
        state, stored = self._ready(), self._stored
        query, names = asked_rows(self.embedder_, row, stored.schema)
        if query.n_rows != 1:
            raise ValueError(f"expected one row, got {query.n_rows}")
        other = stored.take(np.array([stored.row_of(id)]))
        shares = state.compared(names).shares(query, other, state.unknown)
        order = [name for name in stored.schema.names if name in shares]
        return {name: float(shares[name][0]) for name in dict.fromkeys([*order, *shares])}

    # -- files and parameters --------------------------------------------------------------

    @classmethod
    def load(cls, path: str | PathLike[str], *, mmap: bool = False) -> SimilarityIndex:
        """Read what :meth:`save` wrote; a damaged or foreign file is refused by name.

        Parameters
        ----------
        path : str or path
            The file.
        mmap : bool, default=False
            Whether the rows stay in the file, which must have been saved with ``compress=False``.
            Queries then read them in blocks and compare with every row, so that an index may be
            larger than memory; rows can be added and removed, in memory, until it is saved again.
        """
        index = store_load(path, mmap=mmap)
        if not isinstance(index, cls):
            raise ValueError(f"expected a {cls.__name__} in {path}, got a {type(index).__name__}")
        try:
            if hasattr(index, "_stored"):
                index._ready()
        except (ValueError, TypeError, LookupError, AttributeError) as error:
            raise ValueError(f"{path} is damaged: {error}") from error
        return index

    def _check_loaded(self) -> None:
        measured = self._measured
        if measured is not None:
            breadth, recall = measured
            if type(breadth) is not int or not 1 <= breadth <= BREADTHS[-1] or not 0 <= recall <= 1:
                raise ValueError(f"expected a breadth and its recall, got {measured!r}")

    @exclusive
    def _prepared(self, in_one: str = "") -> IndexState:
        """What is derived from the rows, up to date and without too many tombstones or segments.

        All rows are in one segment for what ``in_one`` names.
        """
        cache = self._ready()
        if in_one and cache.stored.parts[0].is_mapped:
            raise ValueError(
                f"{in_one}: expected the rows in memory, got an index that stays in its file; "
                "load it without mmap"
            )
        if cache.is_worn() or (in_one and len(cache.stored.parts) > 1):
            stored = cache.stored.compacted()
            cache = self._cache = IndexState(cache.space, cache.unknown, stored, self.backend)
            self._stored = cache.stored
        cache.prepare(self.links, self.breadth)
        self._graph, self._measured = cache.graph, cache.measured
        return cache

    @exclusive
    def _ready(self) -> IndexState:
        """What is derived from the rows."""
        if self._cache is None:
            space = space_of(self.embedder_, self._stored.schema, self.metric)
            saved = self.backend, self._graph, self._measured
            self._cache = IndexState(space, unknown_rule(self.embedder_), self._stored, *saved)
        elif self._cache.backend_parameter != self.backend:
            self._cache = self._cache.after(self._stored, self.backend)
        return self._cache


_Names = tuple[str, ...] | None  # of the columns that are compared, None if these are all


@dataclass(eq=False)
class IndexState:
    """What an index derives from its rows: views of them, and what its backend needs.

    When rows come or go the index takes another one, so that a search that is under way ends
    among the rows it began with.

    Parameters
    ----------
    space : Space
        What rows are compared by.
    unknown : {"centroid", "error"}
        What becomes of values that the embedder has not seen.
    stored : Segments
        The rows.
    backend_parameter : str
        How to search, as the index has it.
    graph : Graph, optional
        Links between the rows, if they were made before.
    measured : tuple of int and float, optional
        The breadth that suits the graph, and its recall.
    """

    space: Space
    unknown: Unknown
    stored: Segments
    backend_parameter: str
    graph: Graph | None = None
    measured: tuple[int, float] | None = None
    _lock: Any = field(default_factory=Lock)
    _views: dict[_Names, dict[int, View]] = field(default_factory=dict)  # by where ids lie
    _sampled: dict[_Names, np.ndarray] = field(default_factory=dict)
    _walker: Walker | None = None
    _breadth: int = 0

    def after(self, stored: Segments, backend_parameter: str) -> IndexState:
        """What is derived from rows of which some were added or removed."""
        saved = backend_parameter, self.graph, self.measured
        out = IndexState(self.space, self.unknown, stored, *saved)
        ids = {id(part.ids): part.table for part in stored.parts}
        for names, views in self._views.items():
            remaining = {i: view for i, view in views.items() if i in ids and _fits(view, ids[i])}
            out._views[names] = remaining
        if self._walker is not None and out._first_view() is self._first_view():
            out._walker = self._walker
        return out

    def _first_view(self) -> View | None:
        """All columns of the first segment, if they were looked at."""
        return self._views.get(None, {}).get(id(self.stored.parts[0].ids))

    def is_worn(self) -> bool:
        """Tell whether a third of the rows are tombstones, or a fifth are in later segments.

        Then it is worth to begin anew; rows that stay in a file are left there.
        """
        first, *others = self.stored.parts
        n, n_later = len(self.stored), sum(map(len, others))
        if first.is_mapped:
            return False
        n_removed = n - self.stored.n_alive
        return n_removed > max(FEW_CHANGES, n / 3) or n_later > max(FEW_CHANGES, len(first) / 4)

    def prepare(self, links: int, breadth: int | Literal["auto"]) -> None:
        """Make what the backend needs."""
        if self.backend == "exact":
            return
        if self._walker is None:
            self._walker = Walker(self._current_graph(int(links)), self.view().nodes)
        self._breadth = self._best_breadth(self._walker) if breadth == "auto" else int(breadth)

    def _best_breadth(self, walker: Walker) -> int:
        if self.measured is None:
            view, nodes = self.view(), walker.sample()
            queries = view.queries(take_rows(view.table, view.copies.heads[nodes]))
            self.measured = walker.choose_breadth(queries, nodes)
        return self.measured[0]

    def _current_graph(self, links: int) -> Graph:
        view = self.view()
        n_new = 0 if self.graph is None else len(view.nodes) - self.graph.n_nodes
        if self.graph is None or n_new > max(FEW_CHANGES, self.graph.n_nodes / 4):
            queries = view.queries(take_rows(view.table, view.copies.heads))
            self.graph = Graph.of(view.nodes, queries, view.vectors, links)
            self.measured = None
        return self.graph

    @property
    def backend(self) -> str:
        """The backend in use, "auto" resolved."""
        first = self.stored.parts[0]
        if first.is_mapped:
            return "exact"
        if self.backend_parameter != "auto":
            return self.backend_parameter
        large = len(first) >= GRAPH_NODES and len(self.view().nodes) >= GRAPH_NODES
        return "graph" if large else "exact"

    def compared(self, names: list[str] | None) -> Space:
        """The space of some columns."""
        if names is None:
            return self.space
        return self.space.only(names) or Joined([])

    def view(self, names: list[str] | None = None) -> View:
        """Rows of the first segment as a search over some columns sees them."""
        return next(self.views(names))[1]

    def views(self, names: list[str] | None = None) -> Iterator[tuple[slice, View]]:
        """Rows as a search over some columns sees them, and their numbers, segment by segment.

        Those that stay in a file come in blocks, which are read and left again.
        """
        for begin, part in zip(self.stored.starts.tolist(), self.stored.parts, strict=True):
            for block in part.blocks():
                rows = slice(begin + block.start, begin + block.stop)
                yield rows, self._block_view(part, block, names)

    def _block_view(self, part: Stored, block: slice, names: list[str] | None) -> View:
        if part.is_mapped:
            rows = np.arange(block.start, block.stop)
            copies = Copies.of(np.arange(len(rows)), np.arange(len(rows)))
            table = take_rows(part.table, rows)
            return View(table, self.compared(names), self.unknown, copies=copies)
        key = None if names is None else tuple(names)
        with self._lock:
            if key not in self._views and len(self._views) >= 8:  # sets of columns
                del self._views[next(k for k in self._views if k is not None)]
            views = self._views.setdefault(key, {})
            if id(part.ids) not in views:
                views[id(part.ids)] = View(part.table, self.compared(names), self.unknown)
            return views[id(part.ids)]

    def sample_distances(self, names: list[str] | None) -> np.ndarray:
        """Distances of all pairs of at most 500 rows, in order."""
        key = None if names is None else tuple(names)
        if key not in self._sampled:
            alive = np.flatnonzero(self.stored.alive)
            n = min(len(alive), 500)
            rows = np.sort(np.random.default_rng(0).choice(alive, n, replace=False))
            view = View(self.stored.take(rows), self.compared(names), self.unknown)
            nodes = view.nodes.take(view.copies.node_of)
            nearest, others = nearest_nodes(nodes, view.queries(view.table), n)
            summed = np.sort(nearest[others != np.arange(n)[:, None]])
            self._sampled[key] = view.space.rooted(summed)
        return self._sampled[key]

    def nearest(
        self, queries: Table, names: list[str] | None, k: int, allowed: np.ndarray | None
    ) -> Ranking:
        """Distances and rows of the k nearest allowed rows of each query."""
        search = self._search(allowed is None) if names is None else None

        def nearest(view: View, k: int, allowed: np.ndarray | None) -> Ranking:
            walk = search if view is self._first_view() else None
            return nearest_rows(view.nodes, view.copies, view.queries(queries), k, allowed, walk)

        return self._merged(nearest, queries.n_rows, names, k, allowed)

    def _merged(
        self,
        nearest: Callable[[View, int, np.ndarray | None], Ranking],
        n_queries: int,
        names: list[str] | None,
        k: int,
        allowed: np.ndarray | None,
    ) -> Ranking:
        """Distances and rows of the k nearest of all segments, in each of which some are sought."""
        ranking = np.zeros((n_queries, 0)), np.zeros((n_queries, 0), np.int64)
        for rows, view in self.views(names) if k else ():
            mask = None if allowed is None else allowed[rows]
            n = view.table.n_rows if mask is None else int(np.count_nonzero(mask))
            if n:
                summed, near = nearest(view, min(k, n), mask)
                ranking = merge(ranking, (summed, near + rows.start), k)
        return self.compared(names).rooted(ranking[0]), ranking[1]

    def nearest_distinct(
        self, queries: Table, names: list[str] | None, k: int, allowed: np.ndarray | None
    ) -> Ranking:
        """The same of rows that differ in what is compared, each by its first allowed row.

        All rows are to be in one segment.
        """
        view = self.view(names)
        first = view.copies.first(allowed)
        k = min(k, int(np.count_nonzero(first >= 0)))
        if k == 0:
            return np.zeros((queries.n_rows, 0)), np.zeros((queries.n_rows, 0), np.int64)
        summed, rows = nearest_nodes(view.nodes, view.queries(queries), k, first)
        return view.space.rooted(summed), rows

    def nearest_to_all(
        self,
        queries: Table,
        names: list[str] | None,
        k: int,
        allowed: np.ndarray | None,
        together: str,
    ) -> Ranking:
        """Distances and rows of the k allowed rows nearest to the mean of queries, or to all."""

        def nearest(view: View, k: int, allowed: np.ndarray | None) -> Ranking:
            return nearest_to_all(view, queries, k, allowed, together)

        return self._merged(nearest, 1, names, k, allowed)

    def within(
        self, queries: Table, names: list[str] | None, radius: float, allowed: np.ndarray | None
    ) -> list[Ranking]:
        """Distances and rows of the allowed rows within a radius of each query."""
        hits = []
        for block, view in self.views(names):
            mask = None if allowed is None else allowed[block]
            query, rows, summed = rows_within(view, queries, radius, mask)
            hits.append((query, rows + block.start, summed))
        query, rows, summed = (np.concatenate(part) for part in zip(*hits, strict=True))
        order = np.lexsort((rows, summed, query))
        cuts = np.searchsorted(query[order], np.arange(1, queries.n_rows))
        ranking = self.compared(names).rooted(summed), rows
        parts = (np.split(part[order], cuts) for part in ranking)
        return list(zip(*parts, strict=True))

    def _search(self, all_allowed: bool) -> Callable[..., Ranking] | None:
        """How the graph finds nodes; None if all nodes are to be compared."""
        walker = self._walker
        if self.backend == "exact" or walker is None:
            return None

        def search(queries: Queries, k: int, first: np.ndarray) -> Ranking:
            share = 1.0 if all_allowed else np.count_nonzero(first >= 0) / len(first)
            if share < 0.1:  # a walk would meet too few of them
                return nearest_nodes(self.view().nodes, queries, k, first)
            return walker.nearest(queries, k, first, int(max(self._breadth, k) / share))

        return search


def nearest_to_all(
    view: View, queries: Table, k: int, allowed: np.ndarray | None, together: str
) -> Ranking:
    """What adds up to the rows nearest to the mean of queries, or to all of them, and the rows.

    The mean of squared distances is the squared distance to the mean and the inertia of the
    queries.
    """
    space, located, arrays = view.space, view.queries(queries), view.nodes.arrays()
    total, summed = np.zeros(len(view.nodes)), np.empty((1, len(view.nodes)))
    for i in range(len(located)):
        all_distances(located.arrays(slice(i, i + 1)), arrays, summed)
        one = np.maximum(summed[0], 0)
        total = np.maximum(total, one) if together == "all" else total + one / len(located)
    if together == "mean" and space.root and space.power == 2:
        total = np.maximum(total - inertia(view, queries), 0)
    first = view.copies.first(allowed)
    nodes = np.flatnonzero(first >= 0)
    nodes = nodes[np.lexsort((first[nodes], total[nodes]))[:k]]
    return view.copies.expand((total[None, nodes], first[None, nodes]), k, allowed)


def inertia(view: View, queries: Table) -> float:
    """Mean of what adds up between rows and their mean, of Euclidean spaces."""
    total = 0.0
    for part in view.lines:
        total += float(part.coordinates(queries, unknown=view.unknown).var(axis=0).sum())
    for part in view.values:
        column = queries[part.names[0]]
        located = part.locate(column, view.unknown).take(column.codes)
        total += float(located.between(located).mean()) / 2
    return total


def rows_within(view: View, queries: Table, radius: float, allowed: np.ndarray | None) -> Hits:
    """Every allowed row within a radius of a query."""
    query, nodes, summed = within(view.nodes, view.queries(queries), view.space.limit(radius))
    members, sizes = view.copies.rows_of(nodes, allowed)
    return np.repeat(query, sizes), members, np.repeat(summed, sizes)


def _fits(view: View, table: Table) -> bool:
    """Whether sums over columns are added up as in another view of the same labels as a table."""
    widths = [len(table[part.names[0]].labels) for part in view.values]
    groups = [group[group >= 0].tolist() for group in view.nodes.groups]
    return group_columns(widths, MAX_JOINT) == groups


def _check_distance(name: str, value: Any) -> None:
    if not isinstance(value, Real) or isinstance(value, bool) or not 0 <= float(value) < np.inf:
        raise ValueError(f"expected {name} to be a distance >= 0, got {value!r}")
