"""SetTfidf: set-valued cells as weighted terms [Menon et al. 2013, Phase 1].

Tags, diagnoses, genres, permissions: a cell is a set, and its terms are the subsets of its
elements. Rows are seen once; what is kept are document frequencies (:class:`TermCounts`), which add
up exactly. From them the terms are chosen (:func:`choose`), found in cells (:func:`find_terms`),
and turned back into cells (:func:`cells_from`).

A subset is a path: its elements in canonical order, each a child of the ones before. Level s holds
the subsets of s elements as (parent on level s - 1, last element), sorted, so that subsets of any
size are numbered, merged and found by sorting and searching integers, all rows at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, zip_longest
from math import ceil, comb
from numbers import Integral, Real
from typing import Any, ClassVar, Self, cast

import numpy as np
from scipy import sparse
from sklearn.base import TransformerMixin, clone
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted

from tabweave._compat import Interval, StrOptions
from tabweave.base import Estimator, TabularInput
from tabweave.columns.column import Schema
from tabweave.columns.frames import object_array
from tabweave.columns.inputs import check_categorical, check_input_features, read_with_fitted_schema
from tabweave.columns.nominal import Codes
from tabweave.columns.sets import Sets
from tabweave.columns.table import Table, remember_names, require_rows
from tabweave.columns.vocabulary import Label, identity, order, positions
from tabweave.columns.vocabulary import union as label_union
from tabweave.embed.register import embedder
from tabweave.io.register import storable
from tabweave.updates import completing

MAX_CELL_TERMS = 1 << 20  # No cell may make more terms.
BLOCK_TERMS = 1 << 22  # Terms that are made at a time.
TermHits = tuple[np.ndarray, np.ndarray]  # numbers of terms, and which candidates they are


@embedder(
    "tfidf",
    "the subsets of set-valued cells as weighted terms",
    "Menon, Nair, Srindhya & Kaimal 2013",
    reads="sets",
    offered="python",
    page="sparse",
)
class SetTfidf(TabularInput, TransformerMixin, Estimator):
    """Weight the elements of set-valued cells, and their combinations, by TF-IDF.

    Eq. (5): ``w = tf · log10(D / df)`` for each term, D the number of rows and df how many of them
    hold the term. Terms are the non-empty subsets of a cell's elements, per column; a set holds a
    term once, so tf is 1. Single-valued columns are sets of one.

    Parameters
    ----------
    max_subset : int or None, default=2
        Largest subsets that are terms: 1 for elements, 2 for pairs, too, None for all 2ⁿ − 1 as
        published. A cell that would make more than 2²⁰ terms is refused.
    min_df : int or float, default=1
        Terms of fewer rows (or of a smaller share of rows, if a float) are dropped.
    max_terms : int, optional
        Most terms, over all columns; those of most rows are kept.
    weighting : {"tfidf", "binary"}, default="tfidf"
        Eq. (5), or 1 for every term a cell holds (with ``max_subset=1``: multi-hot).
    schema : Schema or mapping of column to kind, optional
        What the columns are; lists are sets by themselves, delimited text is declared as
        ``Column(name, "set", delimiter=",")``.
    unknown : {"ignore", "error"}, default="ignore"
        Whether a value not seen in fit is skipped or refused.

    Attributes
    ----------
    counts_ : TermCounts
        Document frequencies of all terms, pruned or not; they add up.
    terms_ : list of (column, elements)
        The terms, in the order of the dimensions.
    document_frequency_, idf_ : ndarray of shape (n_terms,)
        Of each term, df and ``log10(D / df)``.
    schema_, n_features_in_, feature_names_in_
        The columns.

    Notes
    -----
    A term that every row holds weighs 0, but is stored, so that :meth:`inverse_transform` finds
    it; ``eliminate_zeros()`` drops it. An empty set holds no term; a missing cell holds the term
    "missing". Elements that a cell repeats count once.

    Examples
    --------
    The paper's Tables I and II:

    >>> from tabweave.embed.sets import SetTfidf
    >>> rows = {
    ...     "Reactome": [["REACT_1497"], ["REACT_1698", "REACT_1791"]],
    ...     "Interpro": [["IPR000276", "IPR017452"], ["IPR000276", "IPR016695"]],
    ... }
    >>> tfidf = SetTfidf().fit(rows)
    >>> for name, weights in zip(tfidf.get_feature_names_out()[-3:], tfidf.transform(rows).T[-3:]):
    ...     print(name, weights.toarray().round(4))
    Interpro_IPR017452 [0.301 0.   ]
    Interpro_IPR000276,IPR016695 [0.    0.301]
    Interpro_IPR000276,IPR017452 [0.301 0.   ]
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "max_subset": [Interval(Integral, 1, None, closed="left"), None],
        "min_df": [
            Interval(Integral, 1, None, closed="left"),
            Interval(Real, 0, 1, closed="right"),
        ],
        "max_terms": [Interval(Integral, 1, None, closed="left"), None],
        "weighting": [StrOptions({"tfidf", "binary"})],
        "schema": [Schema, dict, None],
        "unknown": [StrOptions({"ignore", "error"})],
    }

    def __init__(
        self,
        max_subset: int | None = 2,
        *,
        min_df: int | float = 1,
        max_terms: int | None = None,
        weighting: str = "tfidf",
        schema: Any = None,
        unknown: str = "ignore",
    ) -> None:
        self.max_subset = max_subset
        self.min_df = min_df
        self.max_terms = max_terms
        self.weighting = weighting
        self.schema = schema
        self.unknown = unknown

    def fit(self, X: Any, y: Any = None) -> Self:
        """Count the terms of rows.

        Parameters
        ----------
        X : frame, array, mapping of columns or list of dicts
            The rows. One list of sets is a column: ``{"tags": [["new", "sale"], ["new"]]}``.
        y : ignored
        """
        return self._start(X).learn()

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Add rows to those counted so far; same result as one ``fit`` on all of them.

        The terms are chosen by :meth:`learn`, or by the first method that needs them.
        """
        if not hasattr(self, "counts_"):
            return self._start(X)
        self._validate_params()
        return self._hold(self.counts_ + TermCounts.of(self._read(X), self.max_subset))

    def _start(self, X: Any) -> Self:
        self._validate_params()
        table = Table.of(X, Schema.of(self.schema), numbers="nominal")
        check_categorical(self, table.schema)
        require_rows(table)
        remember_names(self, table.schema)
        return self._hold(TermCounts.of(table, self.max_subset))

    def fit_counts(self, counts: TermCounts) -> Self:
        """Choose terms from counts, however and wherever they were counted."""
        self._validate_params()
        return self._hold(counts).learn()

    _chosen: TermVocabulary | None = None

    @completing
    def learn(self) -> Self:
        """Choose the terms of the rows seen so far, if there are new ones."""
        check_is_fitted(self, "counts_")
        if self._chosen is None:
            self._chosen = choose(self.counts_, self.min_df, self.max_terms)
        return self

    def _hold(self, counts: TermCounts) -> Self:
        """Keep counts and drop what was chosen from older ones."""
        if counts.schema is None:
            raise ValueError("expected counts of at least one row, got none")
        self._chosen, self.counts_, self.schema_ = None, counts, counts.schema
        self.n_features_in_ = len(counts.schema)
        return self

    def __add__(self, other: SetTfidf) -> SetTfidf:
        if not isinstance(other, SetTfidf):
            return NotImplemented
        check_is_fitted(self, "counts_")
        check_is_fitted(other, "counts_")
        merged = clone(self).fit_counts(self.counts_ + other.counts_)
        remember_names(merged, self.schema_)
        return merged

    def _read(self, X: Any) -> Table:
        check_is_fitted(self, "counts_")
        return read_with_fitted_schema(self, X)

    @property
    def _terms(self) -> TermVocabulary:
        check_is_fitted(self, "counts_")
        if self._chosen is None:
            raise AttributeError("rows were added after the last fit: call learn() first")
        return self._chosen

    def transform(self, X: Any) -> sparse.csr_array:
        """Weights of each row's terms as a sparse array."""
        table, chosen = self._read(X), self.learn()._terms
        rows, columns = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        for name, terms, first in zip(
            self.schema_.names, chosen.columns, chosen.starts[:-1], strict=True
        ):
            if self.unknown == "error":
                check_seen(name, table[name], terms.labels)
            for row, number in find_terms(table[name], terms, table.n_rows):
                rows.append(row)
                columns.append(number + first)
        row, term = np.concatenate(rows), np.concatenate(columns)
        shape = table.n_rows, len(chosen.df)
        # scikit-learn's estimators want 32-bit indices wherever they suffice.
        index = np.int32 if max(len(row), *shape) <= np.iinfo(np.int32).max else np.int64
        index_pairs = row.astype(index), term.astype(index)
        return sparse.csr_array(sparse.coo_array((self._weights()[term], index_pairs), shape))

    def _weights(self) -> np.ndarray:
        return self.idf_ if self.weighting == "tfidf" else np.ones(len(self._terms.df))

    def inverse_transform(self, X: Any, threshold: float | None = None) -> dict[str, list[Any]]:
        """Cells that rows of weights represent, as a mapping of columns.

        Elements are those of the terms a row holds; pruned ones cannot come back. A single-valued
        cell is its heaviest value, None if there is none.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_rows, n_terms)
            Weights, exact or approximate (say, from ``KSVD.inverse_transform``).
        threshold : float, optional
            Share of its full weight from which a term counts as held; None takes every entry that
            is stored (in a dense array: is not 0). Approximate weights want about 0.5.
        """
        chosen, full = self.learn()._terms, self._weights()
        X = check_array(X, accept_sparse="csr", dtype=np.float64)
        if X.shape[1] != len(full):
            raise ValueError(f"X: expected {len(full)} columns, one per term, got {X.shape[1]}")
        entries = sparse.coo_array(X)
        row, term, weight = entries.row, entries.col, entries.data
        if threshold is not None:
            held = weight >= threshold * full[term]
            row, term, weight = row[held], term[held], weight[held]
        out = {}
        for column, terms, a, b in zip(
            self.schema_.columns, chosen.columns, chosen.starts[:-1], chosen.starts[1:], strict=True
        ):
            is_of_column = (term >= a) & (term < b)
            part = row[is_of_column], term[is_of_column] - a, weight[is_of_column]
            entries_of_elements = element_entries(terms, *part)
            read: Any = cells_from if column.kind == "set" else values_from
            out[column.name] = read(terms.labels, *entries_of_elements, X.shape[0])
        return out

    @property
    def document_frequency_(self) -> np.ndarray:
        """Number of rows that hold each term."""
        return self._terms.df

    @property
    def idf_(self) -> np.ndarray:
        """Eq. (5): ``log10(D / df)`` of each term."""
        return np.log10(self.counts_.n / self._terms.df)

    @property
    def terms_(self) -> list[tuple[str, tuple[Label, ...]]]:
        """Column and elements of each term."""
        return [
            (name, tuple(terms.labels[e] for e in elements))
            for name, terms in zip(self.schema_.names, self._terms.columns, strict=True)
            for level in terms.elements()
            for elements in level.tolist()
        ]

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """``column_element,element`` for each dimension."""
        check_is_fitted(self, "counts_")
        check_input_features(self, input_features)
        names = [
            f"{column}_{','.join(map(term_text, term))}" for column, term in self.learn().terms_
        ]
        return np.asarray(names, dtype=object)


# -- terms and their counts ---------------------------------------------------------------------


@storable
@dataclass(frozen=True, eq=False)
class Level:
    """The subsets of one size: ``keys = parent · V + element``, sorted, and rows that hold them."""

    keys: np.ndarray
    df: np.ndarray


@storable
@dataclass(frozen=True, eq=False)
class ColumnTerms:
    """The subsets that occur in one column, over its V elements in canonical order."""

    labels: tuple[Label, ...]
    levels: tuple[Level, ...]

    def __add__(self, other: ColumnTerms) -> ColumnTerms:
        union = label_union(self.labels, other.labels)
        labels = [union[i] for i in order(union)]
        indices = [positions(labels, part.labels) for part in (self, other)]
        numbers = [np.zeros(1, np.int64), np.zeros(1, np.int64)]
        levels = []
        for pair in zip_longest(self.levels, other.levels, fillvalue=_NO_LEVEL):
            keys = []
            for terms, level, index, parent in zip(
                (self, other), pair, indices, numbers, strict=True
            ):
                up, element = np.divmod(level.keys, max(len(terms.labels), 1))
                keys.append(parent[up] * len(labels) + index[element])
            merged, number = np.unique(np.concatenate(keys), return_inverse=True)
            df = np.zeros(len(merged), np.int64)
            np.add.at(df, number, np.concatenate([level.df for level in pair]))
            levels.append(Level(merged, df))
            numbers = np.split(number, [len(keys[0])])
        return ColumnTerms(tuple(labels), tuple(levels))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ColumnTerms):
            return NotImplemented
        left, right = (
            ([*map(identity, c.labels)], [(a.keys.tolist(), a.df.tolist()) for a in c.levels])
            for c in (self, other)
        )
        return left == right

    __hash__ = None  # type: ignore[assignment]

    def elements(self) -> Iterator[np.ndarray]:
        """Yield, level by level, the elements of each term (terms × size)."""
        above = np.zeros((1, 0), np.int64)
        for level in self.levels:
            up, element = np.divmod(level.keys, max(len(self.labels), 1))
            above = np.column_stack([above[up], element])
            yield above


_NO_LEVEL = Level(np.zeros(0, np.int64), np.zeros(0, np.int64))


@storable
@dataclass(frozen=True, eq=False)
class TermCounts:
    """Document frequencies of the terms of all columns; an Abelian monoid, ``TermCounts()`` zero.

    Attributes
    ----------
    schema : Schema or None
        The columns; None for zero.
    n : int
        Number of rows.
    max_subset : int or None
        The largest subsets counted.
    columns : tuple of ColumnTerms
        The terms of each column.
    """

    schema: Schema | None = None
    n: int = 0
    max_subset: int | None = None
    columns: tuple[ColumnTerms, ...] = ()

    @classmethod
    def of(cls, table: Table, max_subset: int | None) -> TermCounts:
        """Count the rows of a table."""
        if not table.n_rows:
            return cls()
        columns = tuple(
            _count(c.name, cast(Codes | Sets, data), table.n_rows, max_subset) for c, data in table
        )
        return cls(table.schema, table.n_rows, max_subset, columns)

    def __add__(self, other: TermCounts) -> TermCounts:
        if not isinstance(other, TermCounts):
            return NotImplemented
        if self.schema is None or other.schema is None:
            return other if self.schema is None else self
        if self.max_subset != other.max_subset:
            raise ValueError(
                f"expected counts of the same max_subset, got {self.max_subset} and "
                f"{other.max_subset}"
            )
        left_columns, right_columns = (
            [(c.name, c.kind == "set") for c in counts.schema.columns]  # type: ignore[union-attr]
            for counts in (self, other)
        )
        if left_columns != right_columns:
            raise ValueError(
                f"expected columns {left_columns} (name, holds sets), got {right_columns}"
            )
        pairs = zip(self.columns, other.columns, strict=True)
        return TermCounts(
            self.schema, self.n + other.n, self.max_subset, tuple(a + b for a, b in pairs)
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TermCounts):
            return NotImplemented
        if self.schema is None or other.schema is None:
            return self.schema is other.schema
        left, right = ((c.schema.names, c.n, c.max_subset, c.columns) for c in (self, other))  # type: ignore[union-attr]
        return left == right

    __hash__ = None  # type: ignore[assignment]


# -- counting -----------------------------------------------------------------------------------


def elements_by_row(data: Codes | Sets, labels: Sequence[Label], n_rows: int) -> TermHits:
    """A column as (row starts, elements in ascending order within each row).

    Elements are numbered as in ``labels``; values that are not there are left out.
    """
    index = positions(labels, data.labels)
    rows, width = np.arange(n_rows), len(labels) + 1
    if isinstance(data, Sets):
        rows = np.repeat(rows, np.diff(data.starts))
    elements = index[data.codes]
    seen = elements < len(labels)
    rows, elements = rows[seen], elements[seen]
    if isinstance(data, Sets):
        rows, elements = np.divmod(np.sort(rows * width + elements), width)
    return np.searchsorted(rows, np.arange(n_rows + 1)), elements


def walk(
    starts: np.ndarray,
    elements: np.ndarray,
    depth: int,
    find: Callable[[int, np.ndarray, np.ndarray], TermHits],
) -> Iterator[TermHits]:
    """Yield, level by level, (row, number) of the terms that rows hold.

    A term of s elements grows by every later element of its cell. ``find(level, parent, element)``
    numbers the candidates and says which of them are terms; only those grow on.
    """
    rows = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    last = np.arange(len(elements)) + starts[0]
    number = np.zeros(len(rows), np.int64)
    for level in range(depth):
        number, is_present = find(level, number, elements[last - starts[0]])
        rows, last = rows[is_present], last[is_present]
        yield rows, number
        room = starts[rows + 1] - last - 1
        if level + 1 == depth or not room.any():
            return
        first = np.repeat(np.cumsum(room) - room, room)
        step = np.arange(room.sum()) - first
        last = np.repeat(last, room) + 1 + step
        rows, number = np.repeat(rows, room), np.repeat(number, room)


def row_blocks(starts: np.ndarray, depth: int | None) -> Iterator[slice]:
    """Cut rows so that a block makes a bounded number of terms."""
    sizes, inverse = np.unique(np.diff(starts), return_inverse=True)
    made_by_size = [min(n_subsets(int(size), depth), MAX_CELL_TERMS) for size in sizes]
    made = np.array(made_by_size, np.int64)[inverse]
    block = (np.cumsum(made) - made) // BLOCK_TERMS
    edges = np.concatenate([[0], np.flatnonzero(np.diff(block)) + 1, [len(made)]])
    for a, b in pairwise(edges):
        yield slice(int(a), int(b))


def n_subsets(size: int, depth: int | None) -> int:
    """``Σ_s C(size, s)`` for s = 1 … depth; 2ⁿ − 1 without a bound."""
    if depth is None or depth >= size:
        return 2**size - 1
    return sum(comb(size, s) for s in range(1, depth + 1))


def _count(name: str, data: Codes | Sets, n_rows: int, depth: int | None) -> ColumnTerms:
    present = np.flatnonzero(np.bincount(data.codes, minlength=len(data.labels)))
    present_labels = [data.labels[i] for i in present]
    labels = tuple(present_labels[i] for i in order(present_labels))
    starts, elements = elements_by_row(data, labels, n_rows)
    sizes = np.diff(starts)
    _check_explosion(name, sizes, depth)
    total = ColumnTerms(labels, ())
    for rows in row_blocks(starts, depth):
        edges = starts[rows.start : rows.stop + 1]
        part = elements[edges[0] : edges[-1]]
        total = total + _count_block(labels, edges, part, depth)
    return total


def _count_block(
    labels: tuple[Label, ...], starts: np.ndarray, elements: np.ndarray, depth: int | None
) -> ColumnTerms:
    levels = []

    def number(_: int, parent: np.ndarray, element: np.ndarray) -> tuple[np.ndarray, Any]:
        keys, inverse, df = np.unique(
            parent * len(labels) + element, return_inverse=True, return_counts=True
        )
        levels.append(Level(keys, df.astype(np.int64)))
        return inverse, slice(None)

    largest = int(np.diff(starts).max(initial=0))
    for _ in walk(starts, elements, largest if depth is None else min(depth, largest), number):
        pass
    return ColumnTerms(labels, tuple(level for level in levels if len(level.keys)))


def _check_explosion(name: str, sizes: np.ndarray, depth: int | None) -> None:
    worst = int(np.argmax(sizes))
    size = int(sizes[worst])
    made = n_subsets(size, depth)
    if made > MAX_CELL_TERMS:
        allowed = 2 if n_subsets(size, 2) <= MAX_CELL_TERMS else 1
        raise ValueError(
            f"column {name!r}: row {worst} has {size} elements, and max_subset={depth} makes "
            f"{made:,} terms of it; use max_subset={allowed} ({n_subsets(size, allowed):,} terms)"
        )


# -- choosing terms, finding them, and turning them back ----------------------------------------


@storable
@dataclass(frozen=True, eq=False)
class TermVocabulary:
    """Terms after pruning: per column, where each column's terms start, and rows of each."""

    columns: tuple[ColumnTerms, ...]
    starts: np.ndarray
    df: np.ndarray


def choose(counts: TermCounts, min_df: int | float, max_terms: int | None) -> TermVocabulary:
    """Keep frequent terms.

    No term is held by more rows than its subsets, so whatever stays, its beginnings stay, too.
    """
    levels = [level for column in counts.columns for level in column.levels]
    df = np.concatenate([np.zeros(0, np.int64), *(level.df for level in levels)])
    size = [np.full(len(a.df), s) for c in counts.columns for s, a in enumerate(c.levels)]
    # A share of just so many rows is not to be lost by rounding: 0.07 · 100 is 7.000000000000001.
    least = min_df if isinstance(min_df, Integral) else ceil(min_df * counts.n * (1 - 1e-12))
    keep = df >= least
    if len(df) and not keep.any():
        raise ValueError(
            f"expected min_df to keep a term, got {min_df!r}: the most frequent is held by "
            f"{df.max()} of {counts.n} rows"
        )
    if max_terms is not None and keep.sum() > max_terms:
        order = np.lexsort((np.concatenate(size), -df))
        keep[order[max_terms:]] = False
    masks = iter(np.split(keep, np.cumsum([len(level.df) for level in levels])))
    columns = tuple(
        _pruned(column, [next(masks) for _ in column.levels]) for column in counts.columns
    )
    sizes = [sum(len(level.df) for level in column.levels) for column in columns]
    return TermVocabulary(
        columns, np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64), df[keep]
    )


def _pruned(column: ColumnTerms, masks: list[np.ndarray]) -> ColumnTerms:
    number, levels, width = np.zeros(1, np.int64), [], max(len(column.labels), 1)
    for level, mask in zip(column.levels, masks, strict=True):
        up, element = np.divmod(level.keys[mask], width)
        if not len(up):
            break
        levels.append(Level(number[up] * width + element, level.df[mask]))
        number = np.cumsum(mask) - 1
    return ColumnTerms(column.labels, tuple(levels))


def find_terms(data: Codes | Sets, terms: ColumnTerms, n_rows: int) -> Iterator[TermHits]:
    """Yield (rows, numbers of the terms they hold), in pieces."""
    starts, elements = elements_by_row(data, terms.labels, n_rows)
    width, depth = max(len(terms.labels), 1), len(terms.levels)
    above = np.concatenate([[0], np.cumsum([len(level.keys) for level in terms.levels])])

    def find(s: int, parent: np.ndarray, element: np.ndarray) -> TermHits:
        keys, term_keys = parent * width + element, terms.levels[s].keys
        index = np.minimum(np.searchsorted(term_keys, keys), len(term_keys) - 1)
        hit = np.flatnonzero(term_keys[index] == keys)
        return index[hit], hit

    for block in row_blocks(starts, depth):
        edges = starts[block.start : block.stop + 1]
        part = elements[edges[0] : edges[-1]]
        for s, (rows, number) in enumerate(walk(edges, part, depth, find)):
            yield rows + block.start, number + above[s]


def cells_from(
    labels: Sequence[Label], row: np.ndarray, element: np.ndarray, _: np.ndarray, n_rows: int
) -> list[list[Label]]:
    """Elements that each row holds, in canonical order."""
    width = max(len(labels), 1)
    row, element = np.divmod(np.unique(row * width + element), width)
    edges = np.searchsorted(row, np.arange(1, n_rows))
    return [part.tolist() for part in np.split(object_array(labels)[element], edges)]


def values_from(
    labels: Sequence[Label], row: np.ndarray, element: np.ndarray, weight: np.ndarray, n_rows: int
) -> list[Label]:
    """Heaviest value of each row; None where there is none."""
    out: list[Label] = [None] * n_rows
    for i in np.lexsort((-element, weight)):  # the heaviest comes last and stays
        out[row[i]] = labels[element[i]]
    return out


def element_entries(
    terms: ColumnTerms, row: np.ndarray, term: np.ndarray, weight: np.ndarray
) -> list[np.ndarray]:
    """Expand entries (row, term, weight) to entries (row, element, weight)."""
    parts = [(row[:0].astype(np.int64), row[:0].astype(np.int64), weight[:0])]
    first = 0
    for level in terms.elements():
        is_of_level = (term >= first) & (term < first + len(level))
        elements, size = level[term[is_of_level] - first].ravel(), level.shape[1]
        rows = np.repeat(row[is_of_level].astype(np.int64), size)
        parts.append((rows, elements, np.repeat(weight[is_of_level], size)))
        first += len(level)
    return [np.concatenate(column) for column in zip(*parts, strict=True)]


def check_seen(name: str, data: Codes | Sets, labels: tuple[Label, ...]) -> None:
    """Raise for a value that fit has not seen."""
    is_unknown = positions(labels, data.labels) == len(labels)
    is_used = np.bincount(data.codes, minlength=len(is_unknown)) > 0
    for i in np.flatnonzero(is_unknown & is_used):
        raise ValueError(
            f"column {name!r}: value {data.labels[i]!r} was not seen in fit; fit again with it, "
            "or use unknown='ignore'"
        )


def term_text(label: Any) -> str:
    """Write an element so that a comma always separates two of them."""
    if label is None:
        return "<missing>"
    return repr(label) if "," in str(label) else str(label)
