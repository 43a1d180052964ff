"""Sparse codes for categories and sets: TF-IDF terms, pursuits, K-SVD [Menon et al. 2013]."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, zip_longest
from math import ceil, comb
from numbers import Integral, Real
from typing import Any, ClassVar, Self, cast

import numpy as np
from scipy import sparse
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted, validate_data

from tabweave._compat import Interval, StrOptions, eigh, in_threads, njit, one_blas_thread
from tabweave.base import Estimator, TabularInput
from tabweave.columns.column import Schema
from tabweave.columns.frames import object_array
from tabweave.columns.inputs import (
    check_categorical,
    check_input_features,
    numbers_only,
    read_with_fitted_schema,
)
from tabweave.columns.nominal import Codes
from tabweave.columns.sets import Sets
from tabweave.columns.table import Table, remember_names, require_rows
from tabweave.columns.vocabulary import Label, identity, order, positions, slices
from tabweave.columns.vocabulary import union as label_union
from tabweave.embed.register import embedder
from tabweave.engines.progress import ProgressCallback, progress_reporter
from tabweave.engines.reading import by_parts
from tabweave.io.register import storable
from tabweave.updates import completing

# -- SetTfidf: set-valued cells as weighted terms [Menon et al. 2013, Phase 1] --------------------
#
# Tags, diagnoses, genres, permissions: a cell is a set, and its terms are the subsets of its
# elements. Rows are seen once; what is kept are document frequencies (:class:`TermCounts`),
# which add up exactly. From them the terms are chosen (:func:`choose`), found in cells
# (:func:`find_terms`), and turned back into cells (:func:`cells_from`).
#
# A subset is a path: its elements in canonical order, each a child of the ones before. Level s
# holds the subsets of s elements as (parent on level s - 1, last element), sorted, so that
# subsets of any size are numbered, merged and found by sorting and searching integers, all rows
# at once.

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
        "schema": [Schema, dict, str, None],
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
        table = Table.of(X, self.schema)
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

    @by_parts(None)
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
            read: Any = cells_from if column.is_set else values_from
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
            [(c.name, c.is_set) for c in counts.schema.columns]  # type: ignore[union-attr]
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
    rows, width = data.by_code(np.arange(n_rows)), len(labels) + 1
    elements = index[data.codes]
    seen = elements < len(labels)
    rows, elements = rows[seen], elements[seen]
    if data.is_set:
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


# -- OMP and Batch-OMP: write signals as sums of few atoms [Menon et al. 2013, Algorithms 2 and 3].
#
# Signals and a dictionary of unit atoms in, sparse codes out. Signals are coded independently, in
# compiled code on all cores; a sparse matrix is read in blocks of rows and never made dense whole.

CHUNK_ENTRIES = 1 << 22  # atoms and coefficients held before they are packed: 48 MB
# A share of the signal's or atom's length: what is below is rounding, and products this close tie.
ROUNDING = 1e-10
FAST_SUMS = {"nnan", "ninf", "nsz", "reassoc", "contract"}  # lets sums use vector registers


def omp(
    X: Any,
    atoms: Any,
    *,
    n_nonzero: int | None = None,
    error: float | None = None,
    relative: bool = True,
) -> sparse.csr_array:
    """Code signals by orthogonal matching pursuit.

    Eq. (4) by Algorithm 2: at each step the atom with the largest ``|d·r|`` joins, the signal is
    projected on the chosen atoms through a Cholesky factor that grows by one row, and the residual
    r is what is left. Prefer :func:`batch_omp`, which gives the same codes, unless signals are few.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_signals, n_features)
        The signals.
    atoms : array of shape (n_atoms, n_features)
        The dictionary, one atom of length 1 in each row.
    n_nonzero : int, optional
        Most atoms of a signal.
    error : float, optional
        A signal is done when its squared error is at most this share of its energy ``‖x‖²``.
        Without ``n_nonzero`` and ``error``, both are as in Algorithm 3: half the energy,
        and at most half of the atoms.
    relative : bool, default=True
        With False, ``error`` is the squared error itself, not a share.

    Returns
    -------
    codes : scipy.sparse.csr_array of shape (n_signals, n_atoms)
        ``codes @ atoms`` approximates X.

    Notes
    -----
    A zero signal has no atoms. A signal stops early when what is left is orthogonal to all atoms,
    or when the next atom depends linearly on those it has. Of atoms that fit equally well the
    first is taken.

    Examples
    --------
    >>> import numpy as np
    >>> from tabweave.embed.sets import omp
    >>> omp([[3.0, 0.1], [0.0, 2.0]], np.eye(2), n_nonzero=1).toarray()
    array([[3., 0.],
           [0., 2.]])
    """
    X, atoms = _signals(X, atoms)
    limit, share = stopping(n_nonzero, error, len(atoms))
    return pursue(X, atoms, limit, share, relative, "omp")[0]


def batch_omp(
    X: Any,
    atoms: Any,
    *,
    gram: Any = None,
    n_nonzero: int | None = None,
    error: float | None = None,
    relative: bool = True,
) -> sparse.csr_array:
    """Code many signals by orthogonal matching pursuit on the Gram matrix.

    Algorithm 3: with ``G = DDᵀ`` and ``α⁰ = Dx`` at hand, a step needs neither signal nor residual:
    ``α = α⁰ − G_I γ_I``, and the squared error falls by ``δ_m − δ_{m−1}``. Same codes as
    :func:`omp`.

    Parameters
    ----------
    X, atoms, n_nonzero, error, relative
        As in :func:`omp`, and so is what is returned. Errors below about 1e-14 of the energy
        cannot be distinguished from rounding here.
    gram : array of shape (n_atoms, n_atoms), optional
        ``atoms @ atoms.T``, if it was computed already.

    Examples
    --------
    >>> import numpy as np
    >>> from tabweave.embed.sets import batch_omp
    >>> atoms = np.array([[1.0, 0.0], [0.6, 0.8]])
    >>> batch_omp([[1.6, 0.8], [0.0, 0.0]], atoms, n_nonzero=2).toarray().round(6)
    array([[1., 1.],
           [0., 0.]])
    """
    X, atoms = _signals(X, atoms)
    limit, share = stopping(n_nonzero, error, len(atoms))
    if gram is not None:
        gram = np.ascontiguousarray(check_array(gram, dtype=np.float64, input_name="gram"))
        if gram.shape != (len(atoms), len(atoms)):
            raise ValueError(
                f"gram: expected {len(atoms)} × {len(atoms)}, one row per atom, got {gram.shape}"
            )
        _check_lengths(gram.diagonal(), "the gram matrix says")
    return pursue(X, atoms, limit, share, relative, "batch", gram)[0]


def stopping(n_nonzero: Any, error: Any, n_atoms: int) -> tuple[int, float]:
    """(most atoms of a signal, error at which it is done), as published if neither is given.

    Algorithm 3, steps 2 and 5.
    """
    if n_nonzero is None and error is None:
        return max(1, n_atoms // 2), 0.5
    if n_nonzero is not None and (
        not isinstance(n_nonzero, Integral) or isinstance(n_nonzero, bool) or n_nonzero < 1
    ):
        raise ValueError(f"expected n_nonzero to be a whole number >= 1, got {n_nonzero!r}")
    if error is not None and (
        not isinstance(error, int | float | np.number) or not 0 <= error < np.inf
    ):
        raise ValueError(f"expected error to be a number >= 0, got {error!r}")
    limit = n_atoms if n_nonzero is None else min(int(n_nonzero), n_atoms)
    return limit, 0.0 if error is None else float(error)


def pursue(
    X: Any,
    atoms: np.ndarray,
    limit: int,
    error: float,
    relative: bool,
    pursuit: str,
    gram: np.ndarray | None = None,
) -> tuple[sparse.csr_array, np.ndarray]:
    """Codes of checked signals and the squared error of each."""
    if gram is None and pursuit == "batch":
        gram = _gram(atoms)
    with np.errstate(over="ignore"):
        energy = energies(X)
    if not np.isfinite(energy).all():
        row = int(np.argmin(np.isfinite(energy)))
        raise ValueError(f"expected signals of finite length, got row {row} beyond 1e154; scale X")
    target = error * energy if relative else np.full(len(energy), error)
    errors, parts = np.empty(len(energy)), [sparse.csr_array((0, len(atoms)))]
    # No signal needs more atoms than there are dimensions: the others would be dependent.
    limit = min(limit, atoms.shape[1])
    for chunk in slices(X.shape[0], limit, CHUNK_ENTRIES):
        shape = (chunk.stop - chunk.start, limit)
        support, coefficients = np.empty(shape, np.int32), np.empty(shape)
        size = np.empty(len(support), np.int64)

        def work(rows: slice, chunk=chunk, outputs=(support, coefficients, size)) -> None:
            signal_rows = slice(chunk.start + rows.start, chunk.start + rows.stop)
            outputs_here = (*(a[rows] for a in outputs), errors[signal_rows])
            signals = X[signal_rows]
            if pursuit == "batch":
                inputs = products(signals, atoms), energy[signal_rows], gram, target[signal_rows]
                batch_omp_rows(*inputs, *outputs_here)
            else:
                dense = signals.toarray() if sparse.issparse(signals) else signals
                omp_rows(dense, atoms, target[signal_rows], *outputs_here)

        share_rows(work, len(support))
        parts.append(_packed(support, coefficients, size, len(atoms)))
    return sparse.csr_array(sparse.vstack(parts, format="csr")), errors


def code_errors(X: Any, atoms: np.ndarray, codes: sparse.csr_array) -> np.ndarray:
    """Squared error ``‖x − γD‖²`` of each signal under given codes."""
    gram, energy = _gram(atoms), energies(X)
    out = np.empty(len(energy))

    def work(rows: slice) -> None:
        starts = codes.indptr[rows.start : rows.stop + 1]
        inputs = products(X[rows], atoms), energy[rows], gram
        errors_of(*inputs, starts, codes.indices, codes.data, out[rows])

    share_rows(work, len(out))
    return out


def _gram(atoms: np.ndarray) -> np.ndarray:
    """``DDᵀ``."""
    with one_blas_thread():
        return atoms @ atoms.T


def products(X: Any, atoms: np.ndarray) -> np.ndarray:
    """``XDᵀ``, dense."""
    return np.ascontiguousarray(X @ atoms.T)


def energies(X: Any) -> np.ndarray:
    """``‖x‖²`` of each row."""
    if sparse.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1), dtype=np.float64).ravel()
    return np.einsum("ij,ij->i", X, X)


def _packed(
    support: np.ndarray, coefficients: np.ndarray, size: np.ndarray, n_atoms: int
) -> sparse.csr_array:
    starts = np.concatenate([[0], np.cumsum(size)])
    indices, data = np.empty(starts[-1], np.int32), np.empty(starts[-1])
    pack(support, coefficients, starts, indices, data)
    if starts[-1] <= np.iinfo(np.int32).max:
        starts = starts.astype(np.int32)
    return sparse.csr_array((data, indices, starts), shape=(len(size), n_atoms))


def _signals(X: Any, atoms: Any) -> tuple[Any, np.ndarray]:
    """Check signals and atoms; bring both into the form the loops read."""
    X = check_array(X, accept_sparse="csr", dtype=np.float64, ensure_min_samples=0, order="C")
    atoms = np.ascontiguousarray(check_array(atoms, dtype=np.float64, input_name="atoms"))
    if X.shape[1] != atoms.shape[1]:
        raise ValueError(f"expected atoms of {X.shape[1]} features, as X has, got {atoms.shape[1]}")
    _check_lengths(energies(atoms), "its squared length is")
    return X, atoms


def _check_lengths(squared: np.ndarray, says: str, *, tolerance: float = 1e-6) -> None:
    wrong = np.flatnonzero(np.abs(squared - 1) > tolerance)
    if len(wrong):
        raise ValueError(
            f"expected atoms of length 1, got atom {wrong[0]}: {says} {squared[wrong[0]]:.6g}; "
            "divide each row of atoms by its length, and drop those that are zero"
        )


def share_rows(work: Callable[[slice], None], n_rows: int, *, block_rows: int = 512) -> None:
    """Call ``work(rows)`` for blocks of rows, on all cores."""
    with one_blas_thread():
        in_threads(work, slices(n_rows, 1, block_rows))


# -- compiled loops -------------------------------------------------------------------------------
# Both pursuits pick atoms in the same order and stop by the same rules; they differ in what they
# keep. OMP keeps the residual and compares it with every atom at each step (K·d products);
# Batch-OMP keeps the products of the residual with the atoms and never sees the signal again.


@njit(nogil=True, cache=True, fastmath=FAST_SUMS)
def _first_of(products, largest):
    """First atom whose product is as large as the largest."""
    k = 0
    while abs(products[k]) < largest * (1.0 - ROUNDING):
        k += 1
    return k


@njit(nogil=True, cache=True)
def _solve_upper(L, b, m, x):
    """Solve Lᵀ x = b for the first m unknowns; b and x may be the same array."""
    for i in range(m - 1, -1, -1):
        total = b[i]
        for j in range(i + 1, m):
            total -= L[j, i] * x[j]
        x[i] = total / L[i, i]


@njit(nogil=True, cache=True, fastmath=FAST_SUMS)
def batch_omp_rows(products, energy, gram, target, support, coefficients, size, error):
    """Algorithm 3: code signals from their products with the atoms.

    ``q[j]`` holds the products of all atoms with the j-th chosen atom made orthogonal to those
    before it. Row m of the Cholesky factor then needs no solving: it is ``q[:m, k]``.
    """
    limit, n_atoms = support.shape[1], gram.shape[0]
    alpha, row = np.empty(n_atoms), np.empty(n_atoms)
    q, L, steps = np.empty((limit, n_atoms)), np.empty((limit, limit)), np.empty(limit)
    for i in range(products.shape[0]):
        left, negligible, largest, m = energy[i], ROUNDING * np.sqrt(energy[i]), 0.0, 0
        for t in range(n_atoms):
            alpha[t] = products[i, t]
            largest = max(largest, abs(alpha[t]))
        while m < limit and left > target[i] and largest > negligible:
            k = _first_of(alpha, largest)
            distance = 1.0
            for j in range(m):
                L[m, j] = q[j, k]
                distance -= L[m, j] * L[m, j]
            if distance <= ROUNDING:
                break
            L[m, m] = np.sqrt(distance)
            for t in range(n_atoms):
                row[t] = gram[k, t]
            for j in range(m):
                for t in range(n_atoms):
                    row[t] -= L[m, j] * q[j, t]
            steps[m] = alpha[k] / L[m, m]
            largest = 0.0
            for t in range(n_atoms):
                q[m, t] = row[t] / L[m, m]
                alpha[t] -= steps[m] * q[m, t]
                largest = max(largest, abs(alpha[t]))
            left -= steps[m] * steps[m]
            support[i, m] = k
            m += 1
        _solve_upper(L, steps, m, coefficients[i])
        size[i], error[i] = m, max(left, 0.0)


@njit(nogil=True, cache=True, fastmath=FAST_SUMS)
def _compare(atoms, residual, products):
    """Set the product of each atom with the residual; return the largest in size."""
    largest = 0.0
    for k in range(atoms.shape[0]):
        total = 0.0
        for t in range(atoms.shape[1]):
            total += atoms[k, t] * residual[t]
        products[k] = total
        largest = max(largest, abs(total))
    return largest


@njit(nogil=True, cache=True, fastmath=FAST_SUMS)
def _append_row(L, atoms, chosen, m, k):
    """Grow the Cholesky factor of the chosen atoms' Gram by atom k; tell whether it could."""
    distance = 1.0
    for j in range(m):
        total = 0.0
        for t in range(atoms.shape[1]):
            total += atoms[chosen[j], t] * atoms[k, t]
        for s in range(j):
            total -= L[m, s] * L[j, s]
        L[m, j] = total / L[j, j]
        distance -= L[m, j] * L[m, j]
    L[m, m] = np.sqrt(max(distance, 0.0))
    return distance > ROUNDING


@njit(nogil=True, cache=True, fastmath=FAST_SUMS)
def _leave(signal, atoms, chosen, x, m, residual):
    """Set the residual of a signal; return its squared length."""
    for t in range(atoms.shape[1]):
        residual[t] = signal[t]
    for j in range(m):
        for t in range(atoms.shape[1]):
            residual[t] -= x[j] * atoms[chosen[j], t]
    left = 0.0
    for t in range(atoms.shape[1]):
        left += residual[t] * residual[t]
    return left


@njit(nogil=True, cache=True)
def omp_rows(signals, atoms, target, support, coefficients, size, error):
    """Algorithm 2: code signals by comparing each residual with every atom."""
    limit, n_atoms = support.shape[1], atoms.shape[0]
    products, residual = np.empty(n_atoms), np.empty(atoms.shape[1])
    L, half, x = np.empty((limit, limit)), np.empty(limit), np.empty(limit)
    for i in range(signals.shape[0]):
        signal, chosen, m = signals[i], support[i], 0
        left = _leave(signal, atoms, chosen, x, 0, residual)
        negligible = ROUNDING * np.sqrt(left)
        while m < limit and left > target[i]:
            largest = _compare(atoms, residual, products)
            if largest <= negligible:
                break
            k = _first_of(products, largest)
            if not _append_row(L, atoms, chosen, m, k):
                break
            # The forward substitution of L Lᵀ x = D_I y grows by one entry, too: the product of
            # the residual with the new atom, over the diagonal.
            half[m] = products[k] / L[m, m]
            chosen[m] = k
            m += 1
            _solve_upper(L, half, m, x)
            left = _leave(signal, atoms, chosen, x, m, residual)
        coefficients[i, :m] = x[:m]
        size[i], error[i] = m, left


@njit(nogil=True, cache=True)
def pack(support, coefficients, starts, indices, data):
    """Write each row's atoms, in ascending order, where CSR wants them."""
    for i in range(len(support)):
        first = starts[i]
        for t in range(starts[i + 1] - first):
            atom, value = support[i, t], coefficients[i, t]
            position = first + t
            while position > first and indices[position - 1] > atom:
                indices[position], data[position] = indices[position - 1], data[position - 1]
                position -= 1
            indices[position], data[position] = atom, value


@njit(nogil=True, cache=True)
def errors_of(products, energy, gram, starts, indices, data, error):
    """Set ``‖x − γD‖²`` of each row from products only: ``xxᵀ − 2γ(Dx) + γGγᵀ``."""
    for i in range(len(products)):
        total = energy[i]
        for s in range(starts[i], starts[i + 1]):
            inner = 0.0
            for t in range(starts[i], starts[i + 1]):
                inner += data[t] * gram[indices[s], indices[t]]
            total += data[s] * (inner - 2.0 * products[i, indices[s]])
        error[i] = max(total, 0.0)


# -- K-SVD: learn the atoms that rows of a table are made of [Menon et al. 2013, Algorithms 1, 4].
#
# Numbers per row in (TF-IDF weights of sets, or any others), a dictionary and sparse codes out:
# each row becomes a sum of few atoms, which compress it, describe it, and feed classifiers and
# clusters. :class:`Learner` takes the turns of learning; the functions below it are the steps
# of a turn.


@embedder(
    "ksvd",
    "rows as sums of a few learned atoms",
    "Aharon, Elad & Bruckstein 2006; Menon, Nair, Srindhya & Kaimal 2013",
    reads="numbers",
    offered="python",
    page="sparse",
)
class KSVD(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Estimator):
    """Learn a dictionary by K-SVD and code rows with few of its atoms.

    ``min ‖Y − ΓD‖²`` under Eq. (4), by turns: code every signal (:func:`~tabweave.batch_omp`), then
    refit each atom to the signals that use it (Algorithm 4). Cost of a turn: ``n·K·d`` for the
    products of signals and atoms (non-zeros times K if X is sparse), ``n·K·s²/2`` for the codes of
    s atoms.

    Parameters
    ----------
    n_atoms : int, default=64
        Size of the dictionary.
    n_nonzero : int, optional
        Most atoms of a signal.
    error : float, optional
        Share of a signal's energy that may stay uncoded. Without ``n_nonzero`` and ``error``, as
        in the paper: 0.5 and at most half of the atoms.
    pursuit : {"batch", "omp"}, default="batch"
        How signals are coded; the codes are the same.
    update : {"approx", "exact"}, default="approx"
        One step towards the leading singular pair of an atom's error matrix, or the pair itself.
    max_iter : int, default=30
        Most turns, trials included; fit stops before when nothing lowers the error any more.
    random_state : int, RandomState or None, default=None
        Seed of the first atoms, which are signals.
    progress : callable, optional
        Called with a :class:`~tabweave.engines.Progress` after each turn; its note is the error.

    Attributes
    ----------
    components_ : ndarray of shape (n_atoms, n_features_in_)
        The atoms, of length 1.
    error_trace_ : ndarray of shape (n_iter_ + 1,)
        Frobenius error ``‖Y − ΓD‖`` with the first atoms and after each turn; never increases.
    size_trace_ : ndarray of shape (n_iter_ + 1,)
        Mean number of atoms of a signal at the same times.
    n_iter_ : int
        Turns taken, or batches seen by :meth:`partial_fit`.
    n_features_in_, feature_names_in_ : int, ndarray
        Number and names of the columns.

    Notes
    -----
    A pursuit can code a signal worse than it was coded before, so plain K-SVD may lose ground.
    Where the total error would rise, the signals that lost most keep their codes. Unused atoms
    are replaced by badly coded signals. When the error falls by less than 1 %, a turn is spent on
    a trial: the least useful atoms are swapped for badly coded signals, and swapped back unless
    that lowers the error. ``transform`` codes from scratch.

    Examples
    --------
    >>> import numpy as np
    >>> from tabweave.embed.sets import KSVD
    >>> X = np.repeat([[2.0, 0.0, 0.0], [0.0, 3.0, 3.0]], 10, axis=0)
    >>> model = KSVD(2, n_nonzero=1, random_state=0).fit(X)
    >>> float(model.error_trace_[-1].round(6))
    0.0
    >>> sorted(model.describe_atoms(["red", "blue", "green"]))
    ['0.71 blue + 0.71 green', '1 red']
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_atoms": [Interval(Integral, 1, None, closed="left")],
        "n_nonzero": [Interval(Integral, 1, None, closed="left"), None],
        "error": [Interval(Real, 0, None, closed="left"), None],
        "pursuit": [StrOptions({"batch", "omp"})],
        "update": [StrOptions({"approx", "exact"})],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
        "progress": [callable, None],
    }

    def __init__(
        self,
        n_atoms: int = 64,
        *,
        n_nonzero: int | None = None,
        error: float | None = None,
        pursuit: str = "batch",
        update: str = "approx",
        max_iter: int = 30,
        random_state: Any = None,
        progress: ProgressCallback | None = None,
    ) -> None:
        self.n_atoms = n_atoms
        self.n_nonzero = n_nonzero
        self.error = error
        self.pursuit = pursuit
        self.update = update
        self.max_iter = max_iter
        self.random_state = random_state
        self.progress = progress

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the atoms of signals.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_signals, n_features)
            The signals.
        y : ignored
        """
        self._validate_params()
        X = self._read(X, reset=True)
        by_error = stopping(self.n_nonzero, self.error, self.n_atoms)[1] > 0
        learner = Learner(X, self._pursue, by_error, self.update == "exact")
        atoms = first_atoms(X, self.n_atoms, check_random_state(self.random_state))
        report = progress_reporter(self.progress, "turns", self.max_iter)
        trace = []
        for turn, state in enumerate(learner.run(atoms, self.max_iter)):
            trace.append((state.error, state.codes.nnz))
            if turn:
                report("K-SVD", turn, f"error {state.error**0.5:.6g}")
        self.n_iter_ = turn
        self.error_trace_ = np.sqrt([error for error, _ in trace])
        self.size_trace_ = np.array([size for _, size in trace]) / X.shape[0]
        self._keep(state.atoms)
        self._remember(X, state.codes, 0.0)
        return self

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Update the dictionary with a batch of signals; memory does not grow with their number.

        The batch is coded, ``ΓᵀΓ`` and ``ΓᵀX`` are added to those of earlier batches (which fade
        as ``(1 − 1/t)²``, for they belong to older atoms), and each atom is refitted to the sums.
        The first batch chooses the atoms as :meth:`fit` does. The traces get one entry a batch.
        """
        self._validate_params()
        first = not hasattr(self, "components_")
        X = self._read(X, reset=first)
        if first:
            rng = check_random_state(self.random_state)
            self._keep(first_atoms(X, self.n_atoms, rng))
            self.n_iter_, self.error_trace_, self.size_trace_ = 0, np.zeros(0), np.zeros(0)
        self.n_iter_ += 1
        codes, errors = self._pursue(X, self.components_)
        self.error_trace_ = np.append(self.error_trace_, np.sqrt(errors.sum()))
        self.size_trace_ = np.append(self.size_trace_, codes.nnz / X.shape[0])
        self._remember(X, codes, (1 - 1 / self.n_iter_) ** 2)
        unused = np.flatnonzero(self._overlaps.diagonal() == 0)
        atoms = refit(self.components_, self._overlaps, self._sums)
        self._keep(replaced(X, atoms, unused, errors, energies(X)))
        report = progress_reporter(self.progress, "batches")
        report("K-SVD", self.n_iter_, f"error {self.error_trace_[-1]:.6g}")
        return self

    def _read(self, X: Any, *, reset: bool) -> Any:
        with numbers_only(X, "KSVD reads numbers: make them of sets by tabweave.SetTfidf"):
            return validate_data(
                self, X, accept_sparse="csr", dtype=np.float64, order="C", reset=reset
            )

    def _pursue(self, X: Any, atoms: np.ndarray) -> tuple[sparse.csr_array, np.ndarray]:
        limit, share = stopping(self.n_nonzero, self.error, len(atoms))
        return pursue(X, atoms, limit, share, True, self.pursuit)

    def _keep(self, atoms: np.ndarray) -> None:
        self.components_ = atoms
        self._n_features_out = len(atoms)

    def _remember(self, X: Any, codes: sparse.csr_array, keep: float) -> None:
        """Add a batch to the sums that atoms can be refitted to without its signals."""
        overlaps, sums = (codes.T @ codes).toarray(), codes.T @ X
        sums = sums.toarray() if sparse.issparse(sums) else sums
        if keep:
            overlaps, sums = overlaps + keep * self._overlaps, sums + keep * self._sums
        self._overlaps: np.ndarray = overlaps
        self._sums: np.ndarray = sums

    def transform(self, X: Any) -> sparse.csr_array:
        """Codes of signals, one row each, as a sparse array."""
        check_is_fitted(self, "components_")
        self._validate_params()
        return self._pursue(self._read(X, reset=False), self.components_)[0]

    def inverse_transform(self, codes: Any) -> np.ndarray:
        """Signals that codes stand for: ``ΓD``."""
        check_is_fitted(self, "components_")
        codes = check_array(codes, accept_sparse="csr", dtype=np.float64, input_name="codes")
        if codes.shape[1] != len(self.components_):
            raise ValueError(
                f"expected codes of {len(self.components_)} atoms, got {codes.shape[1]}"
            )
        return codes @ self.components_

    def compression(self, X: Any) -> dict[str, float]:
        """How much coding compresses: stored numbers before and after, and the error.

        ``ratio`` compares the codes with X alone; ``ratio_with_atoms`` counts the dictionary, too.
        """
        check_is_fitted(self, "components_")
        X = self._read(X, reset=False)
        codes, errors = self._pursue(X, self.components_)
        stored = X.count_nonzero() if sparse.issparse(X) else np.count_nonzero(X)
        atoms = np.count_nonzero(self.components_)
        return {
            "nonzeros": int(stored),
            "code_nonzeros": int(codes.nnz),
            "atom_nonzeros": int(atoms),
            "ratio": stored / max(codes.nnz, 1),
            "ratio_with_atoms": stored / max(codes.nnz + atoms, 1),
            "relative_error": float(errors.sum() / max(energies(X).sum(), np.finfo(float).tiny)),
        }

    def describe_atoms(self, feature_names: Any = None, *, top: int = 3) -> list[str]:
        """Describe each atom by the features with the largest weights.

        Parameters
        ----------
        feature_names : sequence of str, optional
            Names of the features, such as ``SetTfidf.get_feature_names_out()``.
        top : int, default=3
            Most features named.
        """
        check_is_fitted(self, "components_")
        names = _check_feature_names_in(self, feature_names)
        return [describe(atom, names, top) for atom in self.components_]

    def explain(
        self, row: Any, feature_names: Any = None, *, top: int = 3
    ) -> list[tuple[int, float, str]]:
        """Atoms of one signal, heaviest first: (atom, coefficient, what it is)."""
        check_is_fitted(self, "components_")
        if sparse.issparse(row):  # of a sparse array, codes[0] has one dimension
            row = row.reshape(1, -1) if row.ndim == 1 else row
        else:
            row = np.atleast_2d(row)
        if row.shape[0] != 1:
            raise ValueError(f"expected one signal, got {row.shape[0]}")
        code = self.transform(row)
        names = _check_feature_names_in(self, feature_names)
        heaviest = np.argsort(-np.abs(code.data), kind="stable")
        return [
            (int(k), float(weight), describe(self.components_[k], names, top))
            for k, weight in zip(code.indices[heaviest], code.data[heaviest], strict=True)
        ]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def describe(atom: np.ndarray, names: Any, top: int) -> str:
    """Write an atom as a sum of its heaviest features."""
    order = np.argsort(-np.abs(atom), kind="stable")[:top]
    text = " + ".join(f"{atom[t]:.2g} {names[t]}" for t in order if abs(atom[t]) >= 0.005)
    return text.replace("+ -", "- ")


@dataclass(frozen=True, eq=False)
class State:
    """Where learning stands: atoms, codes, and the squared error of each signal."""

    atoms: np.ndarray
    codes: sparse.csr_array
    errors: np.ndarray

    @property
    def error(self) -> float:
        """The squared error of all signals."""
        return float(self.errors.sum())


@dataclass(frozen=True, eq=False)
class Learner:
    """Signals, how they are coded, whether up to an error, and how atoms are updated."""

    X: Any
    pursue: Callable[[Any, np.ndarray], tuple[sparse.csr_array, np.ndarray]]
    by_error: bool
    exact: bool

    def run(
        self, atoms: np.ndarray, max_iter: int, *, min_fall: float = 1e-6, slow_fall: float = 1e-2
    ) -> Iterator[State]:
        """Yield the state with the first atoms and after each turn; the error never rises."""
        state = State(atoms, *self.pursue(self.X, atoms))
        yield state
        trials, slow = _trials(len(atoms)), False
        for _ in range(max_iter):
            last_error = state.error
            if slow and trials:
                better = self.swap(state, trials[0])
                state, trials = (better, trials) if better else (state, trials[1:])
                slow = False
                yield state
                continue
            state = self.turn(state)
            yield state
            fall = 1 - (state.error / last_error) ** 0.5 if last_error else 0.0
            slow = fall < slow_fall
            if fall < min_fall and not trials:
                return

    def turn(self, state: State) -> State:
        """Algorithm 1, step 7: update every atom, replace the unused, code again."""
        X = self.X
        atoms, codes = update_atoms(X, state.atoms, state.codes, self.exact)
        old = codes, code_errors(X, atoms, codes)
        unused = np.flatnonzero(np.bincount(codes.indices, minlength=len(atoms)) == 0)
        atoms = replaced(X, atoms, unused, old[1], energies(X))
        new = self.pursue(X, atoms)
        return State(atoms, *fresh_codes(old, new, state.error))

    def swap(self, state: State, ranks: slice) -> State | None:
        """Try signals instead of the atoms that would be missed least.

        K-SVD gets stuck where two atoms share the work of one. Removing atom k costs ``‖g‖²``, g
        its coefficients. The trial counts only if a turn later the error is lower than before
        and, where signals stop at an error, codes have not grown.
        """
        missed = np.bincount(state.codes.indices, state.codes.data**2, len(state.atoms))
        weak = np.argsort(missed, kind="stable")[ranks]
        atoms = replaced(self.X, state.atoms, weak, state.errors, energies(self.X))
        trial = self.turn(State(atoms, *self.pursue(self.X, atoms)))
        denser = self.by_error and trial.codes.nnz > state.codes.nnz
        return None if denser or trial.error >= state.error else trial


def _trials(n_atoms: int, *, max_single_atoms: int = 3) -> list[slice]:
    """Which of the least missed atoms to swap, refusal after refusal: fewer, then others."""
    many = max(1, n_atoms // 16)
    sizes = [many >> i for i in range(many.bit_length())]
    single_atoms = [slice(i, i + 1) for i in range(1, min(max_single_atoms, n_atoms - 1) + 1)]
    return [slice(0, size) for size in sizes] + single_atoms


def first_atoms(X: Any, n_atoms: int, rng: np.random.RandomState) -> np.ndarray:
    """Algorithm 1, step 6: random signals of length 1, no two of the same direction.

    Where there are fewer distinct signals than atoms, random directions fill the rest.
    """
    chosen = distinct_signals(X, rng.permutation(X.shape[0]), n_atoms)
    random_atoms = rng.standard_normal((n_atoms - len(chosen), X.shape[1]))
    return np.vstack([chosen, random_atoms / np.linalg.norm(random_atoms, axis=1, keepdims=True)])


def distinct_signals(
    X: Any,
    order: np.ndarray,
    max_signals: int,
    *,
    max_cosine: float = 0.99,
    signals_per_atom: int = 20,
) -> np.ndarray:
    """Signals, scaled to length 1, that point in different directions."""
    out = np.empty((max_signals, X.shape[1]))
    n_found = 0
    for i in order[: signals_per_atom * max_signals + 100]:
        if n_found == max_signals:
            break
        signal = X[[i]].toarray()[0] if sparse.issparse(X) else X[i]
        length = np.linalg.norm(signal)
        if length > 0:
            signal = signal / length
            if not n_found or np.abs(out[:n_found] @ signal).max() < max_cosine:
                out[n_found] = signal
                n_found += 1
    return out[:n_found]


def replaced(
    X: Any, atoms: np.ndarray, which: np.ndarray, errors: np.ndarray, energy: np.ndarray
) -> np.ndarray:
    """Atoms of which some are now badly coded signals.

    If nobody uses those, no code changes and neither does the error.
    """
    worst = np.argsort(-errors, kind="stable")
    worst = worst[errors[worst] > 1e-12 * energy[worst]]
    if not len(which) or not len(worst):
        return atoms
    signals = distinct_signals(X, worst, len(which))
    atoms = atoms.copy()
    atoms[which[: len(signals)]] = signals
    return atoms


def update_atoms(
    X: Any, atoms: np.ndarray, codes: sparse.csr_array, exact: bool
) -> tuple[np.ndarray, sparse.csr_array]:
    """Algorithm 4: give each atom, and its users' coefficients, the best rank-1 fit of E.

    Exact: the leading singular pair. Approximate: one step towards it from the coefficients g,
    ``d = Eᵀg / ‖Eᵀg‖``, then ``g = E d`` [Rubinstein et al. 2008]. Neither can raise the error.
    """
    atoms, codes = atoms.copy(), codes.copy()
    signal_of = np.repeat(np.arange(codes.shape[0]), np.diff(codes.indptr))
    by_atom = np.argsort(codes.indices, kind="stable")
    edges = np.concatenate([[0], np.cumsum(np.bincount(codes.indices, minlength=len(atoms)))])
    with one_blas_thread():
        for k in np.flatnonzero(np.diff(edges)):
            entries = by_atom[edges[k] : edges[k + 1]]
            error = _Error(X, atoms, codes, k, signal_of[entries])
            g = codes.data[entries]
            atom = _leading(error, atoms[k]) if exact else error.transposed(g)
            length = np.linalg.norm(atom)
            if length > 0:
                atoms[k] = atom / length
                codes.data[entries] = error.times(atoms[k])
    return atoms, codes


class _Error:
    """The error matrix E of an atom's users without the atom, as an operator."""

    def __init__(
        self, X: Any, atoms: np.ndarray, codes: sparse.csr_array, k: int, rows: np.ndarray
    ) -> None:
        self.X, self.atoms, self.k, self.rows = X, atoms, k, rows
        self.codes = (codes.indptr, codes.indices, codes.data)
        self.shape = (len(rows), X.shape[1])

    def transposed(self, g: np.ndarray) -> np.ndarray:
        """``Eᵀg = X_Iᵀg − Σ_{l≠k} (γ_l·g) d_l``."""
        shared = np.zeros(len(self.atoms))
        weigh_sparse(*self.codes, self.rows, g, shared)
        shared[self.k] = 0
        out = -(shared @ self.atoms)
        if sparse.issparse(self.X):
            weigh_sparse(*_parts(self.X), self.rows, g, out)
        else:
            weigh_dense(self.X, self.rows, g, out)
        return out

    def times(self, d: np.ndarray) -> np.ndarray:
        """``E d = X_I d − Σ_{l≠k} γ_l (d_l·d)``."""
        along = self.atoms @ d
        along[self.k] = 0
        coded, out = np.empty(len(self.rows)), np.empty(len(self.rows))
        project_sparse(*self.codes, self.rows, along, coded)
        if sparse.issparse(self.X):
            project_sparse(*_parts(self.X), self.rows, d, out)
        else:
            project_dense(self.X, self.rows, d, out)
        return out - coded

    def dense(self) -> np.ndarray:
        """E itself."""
        starts, indices, data = self.codes
        codes = sparse.csr_array((data, indices, starts), (len(starts) - 1, len(self.atoms)))
        other_codes = codes[self.rows].toarray()
        other_codes[:, self.k] = 0
        signals = self.X[self.rows]
        return (
            signals.toarray() if sparse.issparse(signals) else signals
        ) - other_codes @ self.atoms


def _parts(X: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return X.indptr, X.indices, X.data


def _leading(error: _Error, atom: np.ndarray, *, max_dense_entries: int = 1 << 24) -> np.ndarray:
    """First right singular vector of E, pointing the same way as the atom did."""
    n, d = error.shape
    if n * d > max_dense_entries:
        from scipy.sparse.linalg import LinearOperator, svds

        operator = LinearOperator(
            (n, d),
            lambda v: error.times(v.ravel()),
            lambda v: error.transposed(v.ravel()),
            dtype=np.float64,
        )
        start = atom if n >= d else error.times(atom)
        vector = svds(operator, k=1, v0=start if start.any() else None, rng=0)[2][0]
    else:
        E = error.dense()
        gram = E.T @ E if d <= n else E @ E.T
        vector = eigh(gram, 1)[1][:, 0]
        vector = vector if d <= n else vector @ E
    return -vector if vector @ atom < 0 else vector


def fresh_codes(
    old: tuple[sparse.csr_array, np.ndarray],
    new: tuple[sparse.csr_array, np.ndarray],
    allowed: float,
) -> tuple[sparse.csr_array, np.ndarray]:
    """New (codes, errors) for all signals, or for as many as keep the total error allowed.

    A pursuit from scratch may code a signal worse than it was. Where that makes the total rise
    above ``allowed`` (the old one does not), signals with the largest rise keep their old code.
    """
    (codes, errors), (fresh, fresh_errors) = old, new
    excess = fresh_errors.sum() - allowed
    if excess <= 0:
        return new
    rise = np.maximum(fresh_errors - errors, 0)
    worst = np.argsort(-rise, kind="stable")
    n_back = np.searchsorted(np.cumsum(rise[worst]), excess * (1 + 1e-9)) + 1
    back = np.zeros(len(rise), dtype=bool)
    back[worst[:n_back]] = rise[worst[:n_back]] > 0
    chosen = np.where(back, errors, fresh_errors)
    if chosen.sum() > allowed:  # by rounding, when all went back
        back[:], chosen = rise > 0, np.minimum(errors, fresh_errors)
    stacked = sparse.vstack([codes, fresh], format="csr")
    return sparse.csr_array(stacked[np.arange(len(rise)) + len(rise) * ~back]), chosen


def refit(atoms: np.ndarray, overlaps: np.ndarray, sums: np.ndarray) -> np.ndarray:
    """Refit each atom to ``A = ΓᵀΓ`` and ``B = ΓᵀX``: the approximate update, coefficients fixed.

    ``Eᵀg = B_k − Σ_{l≠k} A_kl d_l`` [Mairal et al. 2009 for the sums over batches].
    """
    atoms = atoms.copy()
    for k in np.flatnonzero(overlaps.diagonal() > 0):
        along = overlaps[k].copy()
        along[k] = 0
        atom = sums[k] - along @ atoms
        length = np.linalg.norm(atom)
        if length > 0:
            atoms[k] = atom / length
    return atoms


# -- compiled loops: an atom's error matrix, times a vector ---------------------------------------


@njit(nogil=True, cache=True, fastmath=FAST_SUMS)
def weigh_dense(X, rows, weights, out):
    """Add ``weights @ X[rows]`` to out."""
    for u in range(len(rows)):
        i, w = rows[u], weights[u]
        for t in range(X.shape[1]):
            out[t] += w * X[i, t]


@njit(nogil=True, cache=True, fastmath=FAST_SUMS)
def project_dense(X, rows, vector, out):
    """Set ``out = X[rows] @ vector``."""
    for u in range(len(rows)):
        i, total = rows[u], 0.0
        for t in range(X.shape[1]):
            total += X[i, t] * vector[t]
        out[u] = total


@njit(nogil=True, cache=True)
def weigh_sparse(starts, indices, data, rows, weights, out):
    """Add ``weights @ X[rows]`` to out."""
    for u in range(len(rows)):
        for t in range(starts[rows[u]], starts[rows[u] + 1]):
            out[indices[t]] += weights[u] * data[t]


@njit(nogil=True, cache=True)
def project_sparse(starts, indices, data, rows, vector, out):
    """Set ``out = X[rows] @ vector``."""
    for u in range(len(rows)):
        total = 0.0
        for t in range(starts[rows[u]], starts[rows[u] + 1]):
            total += data[t] * vector[indices[t]]
        out[u] = total
