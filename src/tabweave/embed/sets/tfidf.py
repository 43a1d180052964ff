"""SetTfidf: set-valued cells as weighted terms [Menon et al. 2013, Phase 1].

Tags, diagnoses, genres, permissions: a cell is a set, and its terms are the subsets of its
elements. Rows are seen once; what is kept are document frequencies, which add up exactly. From
them the terms are chosen (:func:`choose`), found in cells (:func:`find_terms`), and turned back
into cells (:func:`cells_from`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse
from sklearn.base import TransformerMixin, clone
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted

from tabweave._compat import Interval, StrOptions
from tabweave.base import (
    Estimator,
    TabularInput,
    check_categorical,
    check_input_features,
    read_with_fitted_schema,
    remember_names,
    require_rows,
)
from tabweave.embed.register import embedder
from tabweave.embed.sets.terms import (
    ColumnTerms,
    Found,
    Level,
    TermCounts,
    cells_of,
    row_blocks,
    walk,
)
from tabweave.io.register import storable
from tabweave.rows.table import Codes, Schema, Sets, Table
from tabweave.rows.vocabulary import Label, positions


@embedder(
    "tfidf",
    "the subsets of set-valued cells as weighted terms",
    "Menon, Nair, Srindhya & Kaimal 2013",
    reads="sets",
    offered="python",
    page="sparse",
)
class SetTfidf(TabularInput, TransformerMixin, Estimator):
    """Weigh the elements of set-valued cells, and their combinations, by rarity.

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
            The rows.
        y : ignored
        """
        self.__dict__.pop("counts_", None)
        return self.partial_fit(X).learn()

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Add rows to those counted so far; same result as one ``fit`` on all of them.

        The terms are chosen by :meth:`learn`, or by the first method that needs them.
        """
        self._validate_params()
        if "counts_" in vars(self):
            return self._hold(self.counts_ + TermCounts.of(self._read(X), self.max_subset))
        table = Table.of(X, Schema.of(self.schema), numbers="nominal")
        check_categorical(self, table.schema)
        require_rows(table)
        remember_names(self, table.schema)
        return self._hold(TermCounts.of(table, self.max_subset))

    def fit_counts(self, counts: TermCounts) -> Self:
        """Choose terms from counts, however and wherever they were counted."""
        self._validate_params()
        return self._hold(counts).learn()

    def learn(self) -> Self:
        """Choose the terms of the rows seen so far, unless that was done already."""
        check_is_fitted(self, "counts_")
        if "_chosen" not in vars(self):
            self._chosen = choose(self.counts_, self.min_df, self.max_terms)
        return self

    def _hold(self, counts: TermCounts) -> Self:
        """Keep counts and drop what was chosen from older ones."""
        if counts.schema is None:
            raise ValueError("expected counts of at least one row, got none")
        self.__dict__.pop("_chosen", None)
        self.counts_, self.schema_ = counts, counts.schema
        self.n_features_in_ = len(counts.schema)
        return self

    def __add__(self, other: SetTfidf) -> SetTfidf:
        if not isinstance(other, SetTfidf):
            return NotImplemented
        check_is_fitted(self, "counts_")
        check_is_fitted(other, "counts_")
        both = clone(self).fit_counts(self.counts_ + other.counts_)
        if "feature_names_in_" in vars(self):
            both.feature_names_in_ = self.feature_names_in_
        return both

    def _read(self, X: Any) -> Table:
        check_is_fitted(self, "counts_")
        return read_with_fitted_schema(self, X)

    @property
    def _terms(self) -> Vocabulary:
        check_is_fitted(self, "counts_")
        if "_chosen" not in vars(self):
            raise AttributeError("rows were added since the terms were chosen: call learn() first")
        return self._chosen

    def transform(self, X: Any) -> sparse.csr_array:
        """Return the weights of each row's terms as a sparse array; learns nothing."""
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
        return self._assemble(np.concatenate(rows), np.concatenate(columns), table.n_rows)

    def _assemble(self, row: np.ndarray, term: np.ndarray, n_rows: int) -> sparse.csr_array:
        weights = self._weights()
        # scikit-learn's estimators want 32-bit indices wherever they suffice.
        fits = max(len(term), len(weights), n_rows) <= np.iinfo(np.int32).max
        index = (row.astype(np.int32), term.astype(np.int32)) if fits else (row, term)
        entries = sparse.coo_array((weights[term], index), shape=(n_rows, len(weights)))
        return sparse.csr_array(entries)

    def _weights(self) -> np.ndarray:
        return self.idf_ if self.weighting == "tfidf" else np.ones(len(self._terms.df))

    def inverse_transform(self, X: Any, threshold: float | None = None) -> dict[str, list[Any]]:
        """Return the cells that rows of weights stand for, as a mapping of columns.

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
            raise ValueError(f"X: expected {len(full)} columns, one a term, got {X.shape[1]}")
        entries = sparse.coo_array(X)
        row, term, weight = entries.row, entries.col, entries.data
        if threshold is not None:
            held = weight >= threshold * full[term]
            row, term, weight = row[held], term[held], weight[held]
        out = {}
        for column, terms, a, b in zip(
            self.schema_.columns, chosen.columns, chosen.starts[:-1], chosen.starts[1:], strict=True
        ):
            own = (term >= a) & (term < b)
            part = row[own], term[own] - a, weight[own]
            is_set = column.kind == "set"
            read: Any = cells_from if is_set else values_from
            out[column.name] = read(terms, *part, X.shape[0])
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
        """Return ``column_element,element`` for each dimension."""
        check_is_fitted(self, "counts_")
        check_input_features(self, input_features)
        names = [f"{column}_{','.join(map(shown, term))}" for column, term in self.learn().terms_]
        return np.asarray(names, dtype=object)


@storable
@dataclass(frozen=True, eq=False)
class Vocabulary:
    """Terms after pruning: per column, where each column's terms start, and rows of each."""

    columns: tuple[ColumnTerms, ...]
    starts: np.ndarray
    df: np.ndarray


def choose(counts: TermCounts, min_df: int | float, max_terms: int | None) -> Vocabulary:
    """Keep frequent terms.

    No term is held by more rows than its subsets, so whatever stays, its beginnings stay, too.
    """
    levels = [level for column in counts.columns for level in column.levels]
    df = np.concatenate([np.zeros(0, np.int64), *(level.df for level in levels)])
    size = [np.full(len(a.df), s) for c in counts.columns for s, a in enumerate(c.levels)]
    least = min_df if isinstance(min_df, Integral) else ceil(min_df * counts.n)
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
    return Vocabulary(columns, np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64), df[keep])


def _pruned(column: ColumnTerms, masks: list[np.ndarray]) -> ColumnTerms:
    number, levels, width = np.zeros(1, np.int64), [], max(len(column.labels), 1)
    for level, mask in zip(column.levels, masks, strict=True):
        up, element = np.divmod(level.keys[mask], width)
        if not len(up):
            break
        levels.append(Level(number[up] * width + element, level.df[mask]))
        number = np.cumsum(mask) - 1
    return ColumnTerms(column.labels, tuple(levels))


def find_terms(data: Codes | Sets, terms: ColumnTerms, n_rows: int) -> Iterator[Found]:
    """Yield (rows, numbers of the terms they hold), in pieces."""
    starts, elements = cells_of(data, terms.labels, n_rows)
    width, depth = max(len(terms.labels), 1), len(terms.levels)
    above = np.concatenate([[0], np.cumsum([len(level.keys) for level in terms.levels])])

    def find(s: int, parent: np.ndarray, element: np.ndarray) -> Found:
        keys, kept = parent * width + element, terms.levels[s].keys
        index = np.minimum(np.searchsorted(kept, keys), len(kept) - 1)
        hit = np.flatnonzero(kept[index] == keys)
        return index[hit], hit

    for block in row_blocks(starts, depth):
        edges = starts[block.start : block.stop + 1]
        part = elements[edges[0] : edges[-1]]
        for s, (rows, number) in enumerate(walk(edges, part, depth, find)):
            yield rows + block.start, number + above[s]


def cells_from(
    terms: ColumnTerms, row: np.ndarray, term: np.ndarray, weight: np.ndarray, n_rows: int
) -> list[list[Label]]:
    """Return the elements of the terms that each row holds, in canonical order."""
    row, element, _ = _elements(terms, row, term, weight)
    width = max(len(terms.labels), 1)
    row, element = np.divmod(np.unique(row * width + element), width)
    labels = np.empty(len(terms.labels), dtype=object)
    labels[:] = terms.labels
    edges = np.searchsorted(row, np.arange(1, n_rows))
    return [part.tolist() for part in np.split(labels[element], edges)]


def values_from(
    terms: ColumnTerms, row: np.ndarray, term: np.ndarray, weight: np.ndarray, n_rows: int
) -> list[Label]:
    """Return the heaviest value of each row; None where there is none."""
    row, element, weight = _elements(terms, row, term, weight)
    out: list[Label] = [None] * n_rows
    for i in np.lexsort((-element, weight)):  # the heaviest comes last and stays
        out[row[i]] = terms.labels[element[i]]
    return out


def _elements(
    terms: ColumnTerms, row: np.ndarray, term: np.ndarray, weight: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Expand entries of terms to entries of their elements."""
    rows, elements, weights = [row[:0].astype(np.int64)], [row[:0].astype(np.int64)], [weight[:0]]
    first = 0
    for level in terms.elements():
        own = (term >= first) & (term < first + len(level))
        found = level[term[own] - first]
        rows.append(np.repeat(row[own].astype(np.int64), level.shape[1]))
        elements.append(found.ravel())
        weights.append(np.repeat(weight[own], level.shape[1]))
        first += len(level)
    return np.concatenate(rows), np.concatenate(elements), np.concatenate(weights)


def check_seen(name: str, data: Codes | Sets, labels: tuple[Label, ...]) -> None:
    """Raise for a value that fit has not seen."""
    odd = positions(labels, data.labels) == len(labels)
    met = np.bincount(data.codes, minlength=len(odd)) > 0
    for i in np.flatnonzero(odd & met):
        raise ValueError(
            f"column {name!r}: value {data.labels[i]!r} was not seen in fit; fit it too, or use "
            "unknown='ignore'"
        )


def shown(label: Any) -> str:
    """Write an element so that a comma always separates two of them."""
    if label is None:
        return "<missing>"
    return repr(label) if "," in str(label) else str(label)
