"""Sources: several tables and graphs about the same things, aligned once by id.

Comes in: named frames with an id column, and named graphs between ids; any row may be missing
anywhere. Goes out: one order of all ids, and per source its matrix and the index of its rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import eigsh

from tabweave._compat import fix_signs, warn_caller
from tabweave.columns.frames import columns_of
from tabweave.columns.numeric import numbers
from tabweave.columns.vocabulary import Label
from tabweave.io.register import storable
from tabweave.sources.tables import (
    IdIndex,
    Matrix,
    SourceTable,
    check_one_kind,
    check_unique,
    conformed,
    look_up,
    naming,
    plain,
    position_of_each,
    read_ids,
    read_table,
    union,
)

# -- Graphs of a `Sources`: edge frames, networkx graphs and sparse matrices as weights between ids.
#
# Below: means over neighbours, and features made from edges.


@storable
class Edges(NamedTuple):
    """A graph as it was given: its nodes' ids, its edges between them, whether directed."""

    nodes: np.ndarray  # ids, in order of first appearance
    source: np.ndarray  # ids
    target: np.ndarray
    weight: np.ndarray
    directed: bool


def read_graph(graph: Any, where: str, directed: bool) -> Edges:
    """Read a graph of any of the accepted forms."""
    if hasattr(graph, "edges") and hasattr(graph, "is_directed"):
        edges = _from_networkx(graph, where)
    elif isinstance(graph, tuple):
        edges = _from_matrix(graph, where, directed)
    elif sp.issparse(graph):
        raise TypeError(f"{where}: expected (ids, matrix), got a matrix without ids")
    else:
        edges = _from_frame(graph, where, directed)
    wrong = np.flatnonzero(~(np.isfinite(edges.weight) & (edges.weight >= 0)))
    if len(wrong):
        i = int(wrong[0])
        raise ValueError(
            f"{where}: expected weights of at least 0, got {edges.weight[i]} for the edge "
            f"{plain(edges.source, i)!r} - {plain(edges.target, i)!r}"
        )
    return edges


def _from_frame(frame: Any, where: str, directed: bool) -> Edges:
    with naming(f"{where}: "):
        names, cells, _ = columns_of(frame)
    if len(cells) < 2:
        raise ValueError(f"{where}: expected two columns, source and target, got one")
    weights = None
    if names is not None and "weight" in names[2:]:
        weights = cells[names.index("weight", 2)]
    elif len(cells) == 3 and names is None:
        weights = cells[2]
    elif len(cells) > 2:
        others = ", ".join(map(repr, (names or ["x0", "x1", "x2"])[2:]))
        raise ValueError(
            f"{where}: expected source, target and perhaps 'weight', got also {others}; drop them, "
            "or name the one with the weights 'weight'"
        )
    source, target = read_ids(cells[0], where), read_ids(cells[1], where)
    with naming(f"{where}, weight: "):
        weight = np.ones(len(source)) if weights is None else numbers(weights)
    both = np.empty(2 * len(source), dtype=source.dtype if source.dtype == target.dtype else object)
    both[0::2], both[1::2] = source, target
    return Edges(both, source, target, weight, directed)


def _from_networkx(graph: Any, where: str) -> Edges:
    triples = list(graph.edges(data="weight", default=1.0))
    nodes = read_ids(list(graph.nodes), where)
    source = read_ids([a for a, _, _ in triples], where) if triples else nodes[:0]
    target = read_ids([b for _, b, _ in triples], where) if triples else nodes[:0]
    weight = np.array([1.0 if w is None else float(w) for _, _, w in triples])
    return Edges(nodes, source, target, weight, graph.is_directed())


def _from_matrix(pair: tuple[Any, ...], where: str, directed: bool) -> Edges:
    if len(pair) != 2:
        raise ValueError(f"{where}: expected (ids, matrix), got a tuple of {len(pair)}")
    nodes = read_ids(pair[0], where)
    check_unique(nodes, where)
    matrix = sp.coo_array(pair[1])
    if matrix.shape != (len(nodes), len(nodes)):
        shape = (len(nodes), len(nodes))
        raise ValueError(f"{where}: expected a matrix of shape {shape}, got {matrix.shape}")
    source, target = nodes[matrix.coords[0]], nodes[matrix.coords[1]]
    return Edges(nodes, source, target, matrix.data.astype(float), directed)


def edge_matrix(n: int, source: np.ndarray, target: np.ndarray, weight: np.ndarray) -> sp.csr_array:
    """The n × n weights as given: repeated edges add up, self loops are dropped."""
    keep = (source != target) & (weight > 0)
    out = sp.csr_array((weight[keep], (source[keep], target[keep])), shape=(n, n))
    out.sum_duplicates()
    return out


def symmetric(matrix: sp.csr_array) -> sp.csr_array:
    """The larger of both directions: an edge that is listed twice counts once."""
    out = sp.csr_array(matrix.maximum(matrix.T))
    out.sort_indices()
    return out


def averaging(matrix: sp.csr_array) -> sp.csr_array:
    """The matrix that replaces each id's values by the mean of its neighbours'."""
    total = matrix.sum(axis=1)
    return sp.csr_array(sp.diags_array(1 / np.where(total > 0, total, 1)) @ matrix)


def blend(graphs: Sequence[sp.csr_array], weights: Sequence[float]) -> sp.csr_array:
    """Eq. (3.3): weighted mean of the neighbours' means, over the graphs that link an id."""
    total = sum(w * averaging(g) for g, w in zip(graphs, weights, strict=True))
    return averaging(sp.csr_array(total))


def adjacency(links: sp.csr_array, index: np.ndarray) -> sp.csr_array:
    """Some columns of the weights, an empty one for the index -1."""
    present = np.flatnonzero(index >= 0)
    part = sp.csr_array(links[:, index[present]])
    shape = (links.shape[0], len(index))
    return sp.csr_array((part.data, present[part.indices], part.indptr), shape=shape)


def spectral(matrix: sp.csr_array, n_components: int) -> np.ndarray:
    """Leading eigenvectors of the normalised graph, one row for each id."""
    n = matrix.shape[0]
    if not n:
        return np.zeros((0, n_components))
    root = np.sqrt(matrix.sum(axis=1))
    scale = sp.diags_array(1 / np.where(root > 0, root, 1))
    normal = scale @ matrix @ scale
    k = min(n_components, n)
    if n <= max(3 * k, 64):
        values, vectors = np.linalg.eigh(normal.toarray())
    else:
        # A fixed start, so that the same graph gives the same coordinates.
        start = np.random.default_rng(0).random(n)
        values, vectors = eigsh(normal, k=k, which="LA", v0=start)
    vectors = fix_signs(vectors[:, np.argsort(-values)[:k]])
    return np.asarray(scale @ vectors) * np.sqrt(n)


# -- the sources ----------------------------------------------------------------------------------


@storable
class Sources:
    """Tables and graphs about the same things, each of them possibly incomplete.

    An id that occurs anywhere, in a table or as a node of a graph, is an id of the whole: of a node
    without a row in any table there are the neighbours only. Ids are compared by value and must
    be of one kind (all text, or all numbers); ``1`` and ``1.0`` are the same id, ``"1"`` is not.
    A table has at most one row for each id. It may be empty.

    Parameters
    ----------
    tables : mapping of name to frame or (ids, matrix), optional
        A pandas, polars or pyarrow frame (or a mapping of columns) whose column ``key`` holds the
        ids; or a pair of ids and a NumPy or SciPy sparse matrix.
    graphs : mapping of name to graph, optional
        An edge frame (source, target and perhaps ``weight``), a networkx graph, or a pair of ids
        and a square sparse matrix. Repeated edges add up; self loops are dropped.
    key : str, None, or mapping of table name to these, default="id"
        The id column of the frames, or the name of a pandas frame's index; None for its index,
        whatever its name. A frame without a column "id" whose index has a name, as after
        ``set_index("customer")``, has its ids there.
    keys : mapping of table name to mapping of column to table name, optional
        Columns that name rows of other tables. ``keys={"flights": {"tailnum": "planes"}}``: the
        ids are those of flights, and each has the row of "planes" that its "tailnum" names, if
        there is one; rows of "planes" are found by their column "tailnum", or else ``key``. Keys
        may lead further. A key is an id, and so no column of its table any more. A table that
        two columns point to becomes two, "airports by origin" and "airports by dest".
    directed : bool or mapping of graph name to bool, default=False
        Whether edges have a direction. :meth:`links` keeps it, :meth:`graph` does not.
        Of a networkx graph its own kind is taken.

    Attributes
    ----------
    ids : ndarray of shape (n,)
        Every id once, in order of first appearance.
    names, graph_names : tuple of str
        The tables and the graphs.
    present : ndarray of bool, shape (n, number of tables)
        Which table has a row for which id.
    shape : tuple of two ints
        Number of ids, and of columns in all tables.
    around : Sources or None
        What these ids were taken from, if by position.

    Notes
    -----
    ``sources[rows]`` takes ids by position, as folds of scikit-learn do: ``cross_val_score`` and
    ``GridSearchCV`` take `Sources`, with y in the order of ``ids``. Where graphs link ids, those
    left out stay around: models see them as unlabeled neighbours, in training and in prediction.

    Examples
    --------
    >>> from tabweave import Sources
    >>> people = {"id": ["ann", "bob"], "age": [41, 27]}
    >>> orders = {"id": ["bob", "eve"], "what": ["tea", "jam"], "paid": [3.5, None]}
    >>> sources = Sources({"people": people, "orders": orders},
    ...                   {"friends": {"a": ["ann", "eve"], "b": ["eve", "joe"]}})
    >>> sources
    Sources: 4 ids, 2 tables, 1 graph
      people   2 rows (50 %) x 1 column
      orders   2 rows (50 %) x 2 columns
      friends  2 edges, 3 ids linked (75 %)
      ids in 2 tables: 1, in 1 table: 2, in no table: 1
    >>> sources.rows("orders")
    array([1, 2])
    >>> sources.matrix("orders")
    array([[0. , 3.5],
           [1. , nan]])

    Rows of a table that another one points to are looked up:

    >>> flights = {"id": [1, 2, 3], "delay": [5, 0, 90], "tailnum": ["N1", "N7", "N1"]}
    >>> planes = {"tailnum": ["N7", "N1"], "seats": [180, 90]}
    >>> sources = Sources(
    ...     {"flights": flights, "planes": planes}, keys={"flights": {"tailnum": "planes"}}
    ... )
    >>> sources.matrix("planes")[:, 0]
    array([ 90., 180.,  90.])
    """

    around: Sources | None = None

    def __init__(
        self,
        tables: Mapping[str, Any] | None = None,
        graphs: Mapping[str, Any] | None = None,
        *,
        key: str | Mapping[str, str | None] | None = "id",
        keys: Mapping[str, Mapping[str, str]] | None = None,
        directed: bool | Mapping[str, bool] = False,
    ) -> None:
        tables, graphs = _by_name(tables, "tables"), _by_name(graphs, "graphs")
        for name in tables.keys() & graphs.keys():
            raise ValueError(f"expected names that differ, got a table and a graph {name!r}")
        if not tables and not graphs:
            raise ValueError("expected at least one table or one graph, got none")
        keys = keys or {}
        _check_keys(keys, tables)
        _check_names("key", key, tables)
        _check_names("directed", directed, graphs)
        parsed = {
            name: read_table(
                t, f"table {name!r}", _key_of(name, t, key, keys), [*keys.get(name, {})]
            )
            for name, t in tables.items()
        }
        read = look_up(parsed, keys) if keys else {name: t[:2] for name, t in parsed.items()}
        edges = {
            name: read_graph(g, f"graph {name!r}", _is_directed(directed, name))
            for name, g in graphs.items()
        }
        pointed = {target for columns in keys.values() for target in columns.values()}
        ids_by_table = {name: t.ids for name, t in parsed.items() if name not in pointed}
        # What keys reach has the ids of where they stand.
        named = [(f"table {name!r}", ids) for name, ids in ids_by_table.items()]
        named += [(f"graph {name!r}", e.nodes) for name, e in edges.items()]
        check_one_kind(named)
        ids = union([values for _, values in named])
        index = IdIndex(ids)
        links = {
            name: edge_matrix(len(ids), index(e.source), index(e.target), e.weight)
            for name, e in edges.items()
        }
        self._set(
            ids,
            {name: replace(table, rows=index(row_ids)) for name, (row_ids, table) in read.items()},
            links,
            {name: bool(e.directed) for name, e in edges.items()},
        )

    def _set(
        self,
        ids: np.ndarray,
        tables: Mapping[str, SourceTable],
        links: Mapping[str, sp.csr_array],
        directed: Mapping[str, bool],
    ) -> None:
        self.ids = ids
        self.ids.setflags(write=False)
        self.names, self.graph_names = tuple(tables), tuple(links)
        self._tables, self._directed = dict(tables), dict(directed)
        self._index = IdIndex(ids)
        self._graphs = {name: symmetric(w) for name, w in links.items()}
        # An undirected graph has no other side to keep.
        self._links = {n: w if directed[n] else self._graphs[n] for n, w in links.items()}
        self.present = np.zeros((len(ids), len(tables)), dtype=bool)
        for i, table in enumerate(tables.values()):
            self.present[table.rows, i] = True
        self.present.setflags(write=False)

    @classmethod
    def _of(cls, ids: Any, tables: Any, links: Any, directed: Any) -> Sources:
        out = cls.__new__(cls)
        out._set(ids, tables, links, directed)
        return out

    # -- looking -----------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def shape(self) -> tuple[int, int]:
        """Number of ids, and of columns in all tables."""
        return len(self.ids), sum(len(table.columns) for table in self._tables.values())

    def __getitem__(self, rows: Any) -> Sources:
        """The sources of some ids, by position: a slice, a mask or an array of numbers."""
        if isinstance(rows, tuple) and len(rows) == 2 and rows[1] is Ellipsis:
            rows = rows[0]  # as scikit-learn asks for rows
        selected = rows if isinstance(rows, slice) else np.asarray(rows)
        if not isinstance(selected, slice) and not selected.size:
            selected = selected.astype(np.intp)  # an empty list is of floats to NumPy
        index = np.arange(len(self))[selected]
        if index.ndim != 1:
            raise TypeError(
                f"expected rows of the sources (a slice, a mask or numbers), got {rows!r}; "
                "select(ids) takes ids"
            )
        out = self.select(self.ids[index])
        out.around = self if self.around is None else self.around
        return out

    @property
    def surroundings(self) -> Sources:
        """Everything that graphs link these ids with: ``around``, or themselves."""
        return self.around if self.around is not None and self.graph_names else self

    def rows(self, name: str) -> np.ndarray:
        """The index in ``ids`` of each row of a table."""
        return self._table(name).rows

    def matrix(self, name: str) -> Matrix:
        """A table as floats, dense or CSR: numbers as they are, NaN where missing.

        A category is the code of its label in :meth:`labels`, NaN where missing;
        :meth:`categorical` says which columns hold such codes.
        """
        return self._table(name).matrix

    def columns(self, name: str) -> tuple[str, ...]:
        """The names of a table's columns, without the id."""
        return self._table(name).columns

    def labels(self, name: str) -> tuple[list[Label] | None, ...]:
        """For each column of a table what its codes stand for, or None for numbers."""
        return self._table(name).labels

    def categorical(self, name: str) -> np.ndarray:
        """Which columns of a table hold codes of categories."""
        return np.array([labels is not None for labels in self._table(name).labels], dtype=bool)

    def graph(self, name: str) -> sp.csr_array:
        """A graph as symmetric n × n weights without self loops."""
        return self._graphs[self._graph_name(name)]

    def links(self, name: str) -> sp.csr_array:
        """A graph as n × n weights with the direction it was given."""
        return self._links[self._graph_name(name)]

    def index(self, ids: Any) -> np.ndarray:
        """The index of some ids in ``ids``, -1 for an id that no source has."""
        return self._index(read_ids(ids, "ids"))

    def _index_of_all(self, ids: Any, where: str = "ids") -> np.ndarray:
        """The index of some ids; one that no source has is an error."""
        values = read_ids(ids, where)
        index = self._index(values)
        if (index < 0).any():
            unknown = plain(values, int(np.argmax(index < 0)))
            raise KeyError(f"{where}: expected ids of the sources, got {unknown!r}")
        return index

    def _table(self, name: str) -> SourceTable:
        if name not in self._tables:
            raise KeyError(f"expected one of the tables {list(self.names)}, got {name!r}")
        return self._tables[name]

    def _graph_name(self, name: str) -> str:
        if name not in self._graphs:
            raise KeyError(f"expected one of the graphs {list(self.graph_names)}, got {name!r}")
        return name

    # -- deriving ----------------------------------------------------------------------------

    def select(self, ids: Any) -> Sources:
        """The sources of some ids, in the order given; other rows and edges are left out."""
        check_unique(read_ids(ids, "ids"), "ids")
        index = self._index_of_all(ids)
        new = position_of_each(index, len(self))
        tables = {}
        for name, table in self._tables.items():
            present = np.flatnonzero(new[table.rows] >= 0)
            present = present[np.argsort(new[table.rows[present]], kind="stable")]
            tables[name] = replace(
                table, rows=new[table.rows[present]], matrix=table.matrix[present]
            )
        links = {name: sp.csr_array(w[index][:, index]) for name, w in self._links.items()}
        return Sources._of(self.ids[index], tables, links, self._directed)

    def like(self, other: Sources) -> Sources:
        """These sources as ``other`` reads them: its tables and graphs, columns and codes.

        A table or graph that is not here stays out; a category that ``other`` does not have is
        missing. A column that ``other`` does not have is ignored, and so is a table or graph, with
        a warning; one of its columns that is not here is an error.
        """
        fitted_names = [*other.names, *other.graph_names]
        if new := [name for name in (*self.names, *self.graph_names) if name not in fitted_names]:
            warn_caller(
                f"expected some of the sources of fit, {', '.join(map(repr, fitted_names))}, got "
                f"{', '.join(map(repr, new))}: left out; rename what is misspelt"
            )
        tables = {
            name: conformed(self._tables[name], other._table(name), f"table {name!r}")
            for name in other.names
            if name in self._tables
        }
        links = {name: self._links[name] for name in other.graph_names if name in self._links}
        directed = {name: self._directed[name] for name in links}
        return Sources._of(self.ids, tables, links, directed)

    def with_features_of(
        self,
        graph: str,
        kind: Literal["adjacency", "spectral"] = "adjacency",
        *,
        n_components: int = 16,
        among: Any = None,
    ) -> Sources:
        """These sources with one more table, ``"<graph> <kind>"``, made from a graph.

        Parameters
        ----------
        graph : str
            Its name. Only ids that it links get a row.
        kind : {"adjacency", "spectral"}, default="adjacency"
            The weights of the edges to every id, sparse and with their direction; or coordinates
            from the leading eigenvectors of the normalised graph. These belong to this very
            graph: compute them with the ids to be predicted in it, then :meth:`select`.
        n_components : int, default=16
            Number of spectral coordinates.
        among : ids, optional
            The ids that serve as columns of the adjacency; all by default. For new data pass the
            ids of the sources that a model was trained on.
        """
        rows = np.flatnonzero(np.diff(self.graph(graph).indptr))
        if kind == "adjacency":
            ids = self.ids if among is None else read_ids(among, "among")
            matrix = adjacency(self.links(graph)[rows], self._index(ids))
            columns = tuple(map(str, ids.tolist()))
        elif kind == "spectral":
            matrix = spectral(self.graph(graph)[rows][:, rows], n_components)
            columns = tuple(f"axis {i}" for i in range(matrix.shape[1]))
        else:
            raise ValueError(f"kind: expected 'adjacency' or 'spectral', got {kind!r}")
        table = SourceTable(rows, matrix, columns, (None,) * len(columns))
        tables = {**self._tables, f"{graph} {kind}": table}
        return Sources._of(self.ids, tables, self._links, self._directed)

    def __repr__(self) -> str:
        return _summary(self)


def check_form(X: Any, fitted_on_sources: bool) -> None:
    """Check that a model is asked about sources or plain rows, whichever it was fitted on."""
    if isinstance(X, Sources) and not fitted_on_sources:
        raise TypeError("expected plain rows as in fit, got Sources")
    if fitted_on_sources and not isinstance(X, Sources):
        raise TypeError(
            f"expected Sources with some of the tables and graphs of fit, got {type(X).__name__}"
        )


def positions_in(sources: Sources, X: Any) -> np.ndarray:
    """The index of the ids (or rows) of X; sources may have others around them."""
    return sources.index(X.ids) if isinstance(X, Sources) else np.arange(len(sources))


def _by_name(by_name: Any, what: str) -> dict[str, Any]:
    """Tables or graphs by name; without names nobody could tell them apart."""
    if by_name is not None and not isinstance(by_name, Mapping):
        example = "{'people': people, 'orders': orders}" if what == "tables" else "{'calls': calls}"
        raise TypeError(
            f"{what}: expected a mapping of names, such as {example}, got {type(by_name).__name__}"
        )
    return dict(by_name or {})


def _check_names(what: str, by_name: Any, named: Mapping[str, Any]) -> None:
    """Raise for what is given by the name of a table or graph, but is of none."""
    for name in by_name if isinstance(by_name, Mapping) else ():
        if name not in named:
            raise ValueError(f"{what}: expected names among {[*named]}, got {name!r}")


def _check_keys(keys: Mapping[str, Mapping[str, str]], tables: Mapping[str, Any]) -> None:
    if not isinstance(keys, Mapping) or not all(isinstance(v, Mapping) for v in keys.values()):
        raise TypeError(
            "keys: expected a mapping of table to mapping of column to table, such as "
            f"{{'flights': {{'tailnum': 'planes'}}}}, got {keys!r}"
        )
    for name, columns in keys.items():
        for end in (name, *columns.values()):
            if end not in tables:
                raise ValueError(f"keys: expected names of tables, {list(tables)}, got {end!r}")
        if name in columns.values():
            raise ValueError(f"keys: expected no cycle, got {name} -> {name}")


def _key_of(
    name: str,
    table: Any,
    key: str | Mapping[str, str | None] | None,
    keys: Mapping[str, Mapping[str, str]],
) -> str | None:
    """The id column of a table; if keys point to it, theirs if it has one of that name."""
    if isinstance(key, Mapping):
        if name in key:
            return key[name]
        key = "id"
    columns = getattr(table, "columns", None)
    has = list(columns if columns is not None else table) if not isinstance(table, tuple) else []
    pointing = [c for columns in keys.values() for c, target in columns.items() if target == name]
    return next((column for column in pointing if column in has), key)


def _is_directed(directed: bool | Mapping[str, bool], name: str) -> bool:
    return bool(directed.get(name, False) if isinstance(directed, Mapping) else directed)


def _summary(sources: Sources) -> str:
    n, n_tables, n_graphs = len(sources), len(sources.names), len(sources.graph_names)
    lines = [
        f"Sources: {_count(n, 'id')}, {_count(n_tables, 'table')}, {_count(n_graphs, 'graph')}"
    ]
    width = max(map(len, sources.names + sources.graph_names))
    for name in sources.names:
        rows, columns = sources.matrix(name).shape
        share = f"{100 * rows / max(n, 1):.0f} %"
        size = f"{_count(rows, 'row')} ({share}) x {_count(columns, 'column')}"
        lines.append(f"  {name:{width}}  {size}")
    for name in sources.graph_names:
        graph, is_directed = sources.graph(name), sources._directed[name]
        linked = int((np.diff(graph.indptr) > 0).sum())
        n_edges = sources.links(name).nnz if is_directed else graph.nnz // 2
        edges = _count(n_edges, "directed edge" if is_directed else "edge")
        share = f"{100 * linked / max(n, 1):.0f} %"
        lines.append(f"  {name:{width}}  {edges}, {_count(linked, 'id')} linked ({share})")
    n_by_presence = np.bincount(sources.present.sum(axis=1), minlength=n_tables + 1)
    parts = [
        f"in {_count(k, 'table') if k else 'no table'}: {n_by_presence[k]}"
        for k in range(n_tables, -1, -1)
        if n_by_presence[k]
    ]
    return "\n".join([*lines, "  ids " + ", ".join(parts)])


def _count(n: int, what: str) -> str:
    return f"{n:,} {what}{'' if n == 1 else 's'}"
