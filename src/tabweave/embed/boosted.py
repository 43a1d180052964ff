"""BoostedWeave: what each column, and each joint column, adds to a boosted score; rows in.

Values, bins of numbers and joint values of a few columns get tables by gradient boosting, in cycles
over the columns and then over the joint columns that explain most of what is left. The sum of a
row's entries is its score; the entries side by side are its vector, so that the squared distance of
two rows is a sum over columns and joint columns.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from tabweave._compat import Interval, in_threads
from tabweave.columns.cells import Part, column_of
from tabweave.columns.column import Column, Schema
from tabweave.columns.frames import categories
from tabweave.columns.inputs import check_target, target_array, target_numbers
from tabweave.columns.nominal import Codes, label_ranks
from tabweave.columns.sets import words_of
from tabweave.columns.spelling import spelling_of
from tabweave.columns.table import Table, distinct_rows, require_rows, take_rows
from tabweave.columns.vocabulary import Label, Unknown, check_seen, code_type, positions
from tabweave.counts.counting import compiled
from tabweave.counts.counts import Counts, checked_weight
from tabweave.embed.base import N_BINS, Embedder
from tabweave.embed.register import embedder
from tabweave.embed.supervised import Target
from tabweave.engines import read_with_classes
from tabweave.engines.reading import (
    read_fitted,
    read_queries,
    read_rows,
    read_whole,
    require_classes,
    start_counts,
)
from tabweave.io.register import storable
from tabweave.io.store import CacheNotSaved
from tabweave.space.numbers import binned, varying_columns
from tabweave.space.points import Writer, add_rows, put_rows
from tabweave.space.space import Joined, Space, Step

SQUARES, LOGISTIC, SOFTMAX = 0, 1, 2  # losses: of numbers, of two classes, of more
N_BAGS = 5
MAX_BINS = 254  # Bins of a number, so that they and missing fit into a byte.
MAX_VALUES = 4096  # Values of a column that have an entry; rarer ones share that of unknown values.
MAX_ELEMENTS = 64  # Elements of sets, or words, that are columns of their own: the most frequent.
GRID = {2: 32, 3: 12, 4: 8}  # Bins of each of so many columns that are joined.
RANKED_GRID = {2: 16, 3: 8, 4: 6}  # The same while joint columns are compared.
MIN_CURVATURE = 2.0  # Least H of a leaf: of two classes, 8 rows at a share of one half.
PATIENCE = 3  # Cycles without such a gain on the rows held out, after which boosting stops:
MIN_GAIN = 1e-3  # Part of the loss on the rows held out by which it falls.
MAX_CANDIDATES = 5000  # Joint columns that are compared in a stage.
MAX_RANKED_ROWS = 200_000  # Rows by which joint columns are compared.
BLOCK = 1024  # Rows whose joint codes are held at a time.


# -- the embedder ---------------------------------------------------------------------------------


@embedder(
    "boosted",
    "what columns and joint columns add to a boosted score",
    "tabweave",
    reads="mixed",
    needs_y=True,
    cross_fits=True,
)
class BoostedWeave(CacheNotSaved, Embedder):
    """Embed rows by what each column, and each joint column, adds to a boosted score of a target.

    An additive model is learned by gradient boosting: a table for each column, then tables for
    pairs and triples of columns that explain what is left. The score of a row is the sum of its
    entries; its vector has them side by side. So two rows are near if each column says the same
    about the target, and squared distances are sums over columns and joint columns.

    Parameters
    ----------
    max_joined : int, default=3
        Most columns that share a table, up to 4; 1 for columns alone.
    n_joint : int, default=60
        Most tables of pairs, and of triples, ... each.
    learning_rate : float, default=0.2
        What a step is multiplied by.
    n_leaves : int, default=8
        Leaves of the tree that is a step: how many cells of a table may change apart.
    max_cycles : int, default=300
        Most steps of each table in each stage.
    schema, unknown, dtype
        As in :class:`~tabweave.Weave`. Unknown and missing values have an entry, too: that of rare
        values, or 0, which is the mean.

    Attributes
    ----------
    terms_ : list of Term
        The tables, each with its ``axes`` (how the cells of a column become codes) and ``rows``
        (what a joint code adds to the score, or to that of each class). Columns come first.
    intercept_ : ndarray of shape (outputs,)
        The score of a row to which all terms add 0. ``intercept_ + Σ rows[codes]`` is the score of
        a row: a predicted number; the logarithm of the odds of the second of two classes; of more
        classes, logarithms of shares but for a common summand.
    classes_ : tuple or None
        The classes, in the order of the scores; None for a numeric target.
    target_ : Target
        Whether the target is of classes or numbers.
    counts_, space_, schema_
        As in :class:`~tabweave.OneHot`.

    Notes
    -----
    Numbers are cut into at most 254 bins, dates and grades alike; a set has a yes or no for each of
    its 64 most frequent elements, and a column of more than 129 strings, beside its values, for
    each of its 64 most frequent words. Missing is a bin of its own. In turn each table gets a step:
    the slopes G and curvatures H of the loss are summed over the rows of each cell, a small tree of
    best gain ``Σ G² / (H + λ)`` cuts the cells (along the order of bins; values are sorted by
    ``G / (H + 10)``), and each leaf adds ``-η G / (H + λ)`` [Friedman 2001; Lou et al. 2013]. Joint
    columns are chosen by what one step of each cell, from half of the rows, gains on the others.

    Five models are learned, each without a fifth of the rows, and stop when these are foretold no
    better. The tables are the means of the five. ``fit_transform`` gives a row the vector of the
    model that has not seen it, so that its target does not leak into another model.

    All rows are read into memory, as codes; neither counts nor more rows can be added.

    Examples
    --------
    >>> from tabweave import BoostedWeave
    >>> rows = {"job": ["cook", "clerk"] * 50, "age": [20.0, 30.0, 40.0, 50.0] * 25}
    >>> y = ["no", "yes", "no", "no"] * 25
    >>> model = BoostedWeave().fit(rows, y)
    >>> [term.title for term in model.terms_][:2]
    ['job', 'age']
    >>> (model.additive_score(rows)[:4] > 0).ravel().tolist()
    [False, True, False, False]
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **Embedder._parameter_constraints,
        "max_joined": [Interval(Integral, 1, 4, closed="both")],
        "n_joint": [Interval(Integral, 0, None, closed="left")],
        "learning_rate": [Interval(Real, 0, 1, closed="right")],
        "n_leaves": [Interval(Integral, 2, None, closed="left")],
        "max_cycles": [Interval(Integral, 1, None, closed="left")],
    }

    terms_: list[Term]
    intercept_: np.ndarray
    classes_: tuple[Label, ...] | None
    target_: Target
    _cache: Learned

    def __init__(
        self,
        max_joined: int = 3,
        *,
        n_joint: int = 60,
        learning_rate: float = 0.2,
        n_leaves: int = 8,
        max_cycles: int = 300,
        schema: Any = None,
        unknown: str = "centroid",
        dtype: str = "float64",
    ) -> None:
        super().__init__(schema=schema, unknown=unknown, dtype=dtype)
        self.max_joined = max_joined
        self.n_joint = n_joint
        self.learning_rate = learning_rate
        self.n_leaves = n_leaves
        self.max_cycles = max_cycles

    # -- learning --------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from rows and their target; see :class:`~tabweave.Weave` for the rows.

        Parameters
        ----------
        X : frame, array, mapping of columns, list of dicts, or any source of :func:`tabweave.count`
            The rows; files and results of queries are read into memory.
        y : array-like, or the name of a column of a source
            Classes, or numbers for a numeric target: floats, not all whole or more than 20 of them.
        sample_weight : array-like, optional
            A weight for each row: 2 is the same as having it twice.
        """
        self._validate_params()
        X, y = read_with_classes(X, y)
        require_classes(self, y)
        return self._fit_target(X, y, None, sample_weight).release()

    def fit_target(self, X: Any, y: Any, target: Target, sample_weight: Any = None) -> Self:
        """Fit to rows with a target that was read already; for use in ensembles and folds.

        What each bag learned is kept until :meth:`release`.
        """
        self._validate_params()
        return self._fit_target(X, y, target, sample_weight)

    def _fit_target(self, X: Any, y: Any, target: Target | None, sample_weight: Any) -> Self:
        table = read_rows(self, X, whole=True)
        require_rows(table)
        labels = target_array(y)
        check_target(labels)
        check_length(labels, table.n_rows)
        weight = checked_weight(sample_weight, table.n_rows)
        if weight is not None and not weight.all():
            counted = np.flatnonzero(weight)
            if not len(counted):
                raise ValueError("sample_weight: expected a weight above 0, got zero for all rows")
            table, labels, weight = take_rows(table, counted), labels[counted], weight[counted]
        self.target_ = Target.of(labels, N_BINS, weight) if target is None else target
        values, self.classes_ = self._encoded(labels)
        alone = replace(table.schema, coupled=False)
        table = Table(alone, table.columns, table.n_rows)
        start_counts(self, Counts.of(table, sample_weight=weight))
        axes, is_ordered = self._axes(table, weight)
        codes = in_threads(lambda axis: axis.codes(table), axes)
        self._cache = self._boosted(axes, is_ordered, Rows.of(codes, values, weight))
        self.terms_, self.intercept_ = self._cache.terms, self._cache.intercept
        self._learned = ("terms_", "intercept_")
        return self

    def _encoded(self, labels: np.ndarray) -> tuple[np.ndarray, tuple[Label, ...] | None]:
        """Numbers as they are, classes by their numbers, and the classes."""
        if self.target_.numeric:
            return target_numbers(labels, "BoostedWeave"), None
        codes, classes = categories(labels)
        place = label_ranks(classes)
        if len(classes) < 2:
            raise ValueError(
                f"BoostedWeave expected two classes or more in y, got {len(classes)} class: "
                f"{tuple(classes)}"
            )
        ordered = sorted(zip(place.tolist(), classes, strict=True))
        return place[codes], tuple(label for _, label in ordered)

    def _axes(self, table: Table, weight: np.ndarray | None) -> tuple[list[Axis], list[bool]]:
        """How the cells of the columns become codes, and which of the codes are in order."""
        axes: list[Axis] = []
        is_ordered: list[bool] = []
        for column in varying_columns(self.counts_, self.schema_):
            for part in column.cells_type.shown_parts(column, self.counts_):
                added = self._part_axes(column, part, table, weight)
                axes += added
                is_ordered += [column.is_ordered or added[0].edges is not None] * len(added)
        return axes, is_ordered

    def _part_axes(
        self, column: Column, part: str, table: Table, weight: np.ndarray | None
    ) -> list[Axis]:
        bins = column.parts[part]
        if bins is not None:
            edges = bins.edges
            if edges is None:
                edges = bin_edges(table[column.name].numbers(part), weight)
            return [Axis(part, edges=edges)]
        span = self.counts_.span(part)
        labels = self.counts_.labels[self.counts_.vocabulary.index(part)]
        times = self.counts_.value_counts[span]
        frequent = np.argsort(-times, kind="stable")
        if not column.is_set:
            is_spelled = spelling_of(labels, column.spelling) is not None
            kept = np.sort(frequent[:MAX_VALUES])
            if is_spelled:  # a string of one row says nothing of others, but its words do
                kept = kept[times[kept] > 1]
            values = Axis(part, None, tuple(labels[i] for i in kept), np.arange(len(kept)))
            return [values, *(word_axes(part, labels, times) if is_spelled else ())]
        elements = [labels[i] for i in frequent[:MAX_ELEMENTS] if labels[i] is not None]
        ones = np.ones(1, np.int64)
        return [Axis(Part(part, f"has {e!r}"), None, (e,), ones) for e in elements]

    def _boosted(self, axes: list[Axis], is_ordered: list[bool], rows: Rows) -> Learned:
        n_classes = 0 if self.classes_ is None else len(self.classes_)
        loss = SOFTMAX if n_classes > 2 else LOGISTIC if n_classes else SQUARES
        scale = 1.0
        if loss == SQUARES:
            mean = np.average(rows.target, weights=rows.weight)
            scale = float(np.sqrt(np.average((rows.target - mean) ** 2, weights=rows.weight))) or 1
            rows = rows._replace(target=((rows.target - mean) / scale).astype(np.float32))
        boosting = Boosting(axes, is_ordered, rows, loss, n_classes if n_classes > 2 else 1)
        alone, joint = self._settings()
        boosting.run([(a,) for a in range(len(axes))], alone)
        chosen: list[tuple[int, ...]] = [(a,) for a in range(len(axes))]
        for _ in range(1, min(int(self.max_joined), len(axes))):
            chosen = boosting.ranked(boosting.candidates(chosen))[: int(self.n_joint)]
            if not chosen:
                break
            boosting.run(chosen, joint)
        out = boosting.learned(scale)
        if loss != SQUARES:
            return out
        return out._replace(intercept=out.intercept + mean, held_out=out.held_out + mean)

    def _settings(self) -> tuple[Settings, Settings]:
        """How columns, and joint ones, are boosted."""
        rate, leaves, cycles = float(self.learning_rate), int(self.n_leaves), int(self.max_cycles)
        alone = Settings(leaves, 1.0, MIN_CURVATURE, rate, cycles, PATIENCE)
        return alone, Settings(leaves, 2.0, MIN_CURVATURE, rate, cycles, PATIENCE)

    def release(self) -> Self:
        """Drop what each bag learned."""
        self.__dict__.pop("_cache", None)
        return self

    # -- using -----------------------------------------------------------------------------

    @property
    def space_(self) -> Space:
        """The terms, side by side."""
        return Joined(self.terms_)

    def additive_score(self, X: Any) -> np.ndarray:
        """The score of each row: the intercept and what all terms add, one column for each output.

        Parameters
        ----------
        X : what :meth:`transform` takes
            The rows.
        """
        check_is_fitted(self, "counts_")
        return self.score_of(read_queries(self, X))

    def score_of(self, table: Table, terms: Sequence[Term] | None = None) -> np.ndarray:
        """The score of the rows of a table, by these terms or those of a bag."""
        out = np.repeat(self.intercept_[None], table.n_rows, axis=0)
        for term in self.terms_ if terms is None else terms:
            codes = term.codes(table, self.unknown)
            add_rows(codes, np.ascontiguousarray(term.rows, np.float64), out)
        return out

    def fit_transform(  # type: ignore[override]  # and no other parameters
        self, X: Any, y: Any = None, sample_weight: Any = None
    ) -> np.ndarray:
        """Return cross-fitted vectors: each by a model that was learned without its row."""
        self._validate_params()
        X, y = read_with_classes(X, y)
        require_classes(self, y)
        rows_to_fit = read_whole(self, X)
        self._fit_target(rows_to_fit, y, None, sample_weight)
        table = read_fitted(self, rows_to_fit)
        out = np.empty((table.n_rows, self.space_.width), np.dtype(self.dtype))
        out[:] = self.space_.coordinates(table, dtype=out.dtype)
        weight = checked_weight(sample_weight, table.n_rows)
        counted = np.arange(table.n_rows) if weight is None else np.flatnonzero(weight)
        for part, space in self.left_out(np.arange(len(counted))):
            rows = counted[part]
            out[rows] = space.coordinates(take_rows(table, rows), dtype=out.dtype)
        self.release()
        return out

    def held_out_scores(self) -> np.ndarray:
        """The score of each row of fit that counts, by the model that has not seen it."""
        return self._cache.held_out[self._cache.rows.node_of]

    def probabilities(self, scores: np.ndarray) -> np.ndarray:
        """The probability of each class that scores stand for."""
        if scores.shape[1] == 1:
            p = 1 / (1 + np.exp(-np.clip(scores, -700, 700)))
            return np.hstack([1 - p, p])
        out = np.exp(scores - scores.max(axis=1, keepdims=True))
        return np.asarray(out / out.sum(axis=1, keepdims=True))

    def left_out(self, rows: np.ndarray) -> list[tuple[np.ndarray, Joined]]:
        """For each bag which of some rows of fit it has not seen, and its space.

        Parameters
        ----------
        rows : ndarray
            Numbers of rows, among those that count.
        """
        learned = self._cache
        fold = learned.rows.fold[learned.rows.node_of[rows]]
        return [(np.flatnonzero(fold == b), Joined(terms)) for b, terms in enumerate(learned.bags)]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


# -- axes: how a cell becomes a code --------------------------------------------------------------


@storable
@dataclass(frozen=True, eq=False)
class Axis:
    """How the cells of a column, or of a part of one, become the codes of a table.

    Attributes
    ----------
    part : str
        The column; a :class:`~tabweave.columns.cells.Part` of it for cycles of datetimes and for
        elements of sets.
    edges : ndarray or None
        Of numbers: the code is how many edges are at most the number, and that of a missing number
        comes last.
    labels : tuple or None
        Of values: those that have a code; any other value has the last code.
    groups : ndarray or None
        The code of each label; several labels may share one.
    """

    part: str
    edges: np.ndarray | None = None
    labels: tuple[Label, ...] | None = None
    groups: np.ndarray | None = None

    @property
    def size(self) -> int:
        """Number of codes."""
        if self.edges is not None:
            return len(self.edges) + 2
        assert self.groups is not None
        return int(self.groups.max(initial=-1)) + 2

    @property
    def is_element(self) -> bool:
        """Whether it asks for an element of a set, or a word: 0 without, 1 with it, 2 missing."""
        return self.edges is None and isinstance(self.part, Part)

    def codes(self, table: Table, unknown: Unknown = "centroid") -> np.ndarray:
        """The code of each row of a table."""
        column = table[column_of(self.part)]
        if self.edges is not None:
            bins = binned(column.numbers(self.part), self.edges).codes
            return np.asarray(bins)
        assert self.labels is not None and self.groups is not None
        if self.is_element:
            sets = words_of(column) if isinstance(column, Codes) else column
            has = sets.any_element(sets.codes == positions(sets.labels, self.labels)[0])
            has = has[column.codes] if isinstance(column, Codes) else has
            return np.where(column.missing, 2, has).astype(np.uint8)
        index = positions(self.labels, column.labels)
        if unknown == "error":
            check_seen(self.part, index == len(self.labels), column)
        of_label = np.append(self.groups, self.size - 1)[index]
        return np.asarray(of_label.astype(code_type(self.size))[column.codes])

    def grouped(self, groups: np.ndarray) -> Axis:
        """The axis with codes joined: ``groups`` has the new code of each, the last one's last."""
        if self.edges is not None:
            return replace(self, edges=self.edges[np.flatnonzero(np.diff(groups[:-1]))])
        assert self.groups is not None
        return replace(self, groups=groups[self.groups])


@storable
@dataclass(frozen=True, eq=False)
class Term(Space):
    """What one column, or a few joined ones, add to the score: a row for each joint code.

    Attributes
    ----------
    axes : tuple of Axis
        How the cells of each column become codes ``c_1, c_2, ...``, of ``s_1, s_2, ...`` each.
    rows : ndarray of shape (s_1 · s_2 · ..., outputs)
        What is added to the score, at ``(c_1 · s_2 + c_2) · s_3 + ...``: to that of each class, or
        to the one score of two classes and of numbers. Its mean over training rows is 0.
    """

    axes: tuple[Axis, ...]
    rows: np.ndarray

    def _check_loaded(self) -> None:
        if self.rows.ndim != 2 or len(self.rows) != np.prod([axis.size for axis in self.axes]):
            raise ValueError(f"term {self.title!r}: expected a row for each joint code")

    @property
    def title(self) -> str:
        """The column, or the columns that are joined."""
        return " × ".join(str(axis.part) for axis in self.axes)

    @property
    def names(self) -> list[str]:
        """The columns."""
        return list(dict.fromkeys(column_of(axis.part) for axis in self.axes))

    @property
    def width(self) -> int:
        """Number of coordinates."""
        return int(self.rows.shape[1])

    def feature_names(self) -> list[str]:
        """The term, and a number for each score."""
        return [f"{self.title}_{i}" for i in range(self.width)]

    def codes(self, table: Table, unknown: Unknown = "centroid") -> np.ndarray:
        """The joint code of each row of a table."""
        out = self.axes[0].codes(table, unknown).astype(np.uint32)
        for axis in self.axes[1:]:
            out *= np.uint32(axis.size)
            out += axis.codes(table, unknown)
        return out

    def writer(self, table: Table, dtype: np.dtype, unknown: Unknown) -> Writer:
        """Look up the rows of joint codes."""
        codes, rows = self.codes(table, unknown), np.ascontiguousarray(self.rows, dtype)

        def write(block: slice, out: np.ndarray) -> None:
            put_rows(codes[block], rows, out)

        return write

    def split(self, table: Table, unknown: Unknown = "centroid") -> dict[str, np.ndarray]:
        """What the column, or the joint column, brings."""
        return {self.title: self.coordinates(table, unknown=unknown)}

    def only(self, names: Iterable[str]) -> Space | None:
        """The term, if all of its columns count."""
        return self if set(self.names) <= set(names) else None

    @property
    def by_value(self) -> bool:
        """Whether it is of the values of one column, which have points of their own."""
        (first, *others) = self.axes
        return not others and first.edges is None and not first.is_element

    def points(self, column: Any, unknown: Unknown = "centroid") -> np.ndarray:
        """The rows of a column's labels, and that of an unknown value last."""
        labels = Codes(np.arange(len(column.labels) + 1), [*column.labels, None])
        rows = self.rows[self._label_codes(labels, unknown)]
        rows[-1] = self.rows[-1]
        return rows

    def _label_codes(self, labels: Codes, unknown: Unknown) -> np.ndarray:
        return self.codes(Table(Schema((Column(self.names[0]),)), (labels,), len(labels)), unknown)

    def export(self, unknown: Unknown = "centroid") -> list[Step]:
        """Raise: steps know lookups of single columns and lines."""
        raise ValueError(
            f"term {self.title!r}: tables of joint columns are exported as scores, not as vectors"
        )


def word_axes(part: str, labels: Sequence[Label], times: np.ndarray) -> list[Axis]:
    """Whether strings have each of the words that are most frequent among those of two or more."""
    words = words_of(Codes(np.arange(len(labels)), list(labels)))
    size = len(words.labels)
    n_values = np.bincount(words.codes, minlength=size)
    rows = np.bincount(words.codes, words.by_code(times), size)
    shared = np.flatnonzero(n_values > 1)
    frequent = shared[np.argsort(-rows[shared], kind="stable")[:MAX_ELEMENTS]]
    ones = np.ones(1, np.int64)
    chosen = (words.labels[i] for i in frequent.tolist())
    return [Axis(Part(part, f"word {word!r}"), None, (word,), ones) for word in chosen]


def bin_edges(values: np.ndarray, weight: np.ndarray | None, n_bins: int = MAX_BINS) -> np.ndarray:
    """Edges of bins between numbers: of few different ones each has a bin of its own.

    Of many, those that hold more rows than a bin would have one; the others share quantile bins.
    """
    present = ~np.isnan(values)
    x, index = np.unique(values[present], return_inverse=True)
    times = np.bincount(index, None if weight is None else weight[present], len(x))
    if len(x) <= 1:
        return np.zeros(0)
    if len(x) > n_bins:
        is_heavy = times > times.sum() / n_bins
        n_shared = max(n_bins - 2 * int(is_heavy.sum()), 2)
        shared = np.cumsum(np.where(is_heavy, 0, times))
        bins = np.floor(n_shared * (shared - 0.5 * ~is_heavy * times) / max(shared[-1], 1e-300))
        cuts = (np.diff(bins) > 0) | is_heavy[1:] | is_heavy[:-1]
    else:
        cuts = np.ones(len(x) - 1, bool)
    low, high = x[:-1][cuts], x[1:][cuts]
    middle = low / 2 + high / 2
    return np.asarray(np.where(middle > low, middle, high))


# -- one pass over the rows -----------------------------------------------------------------------


@compiled
def joint_codes(
    codes: np.ndarray, axes: np.ndarray, maps: np.ndarray, start: int, stop: int, out: np.ndarray
) -> None:
    """Set ``out[i] = Σ_j maps[j, codes[axes[j], start + i]]``."""
    for i in range(stop - start):
        out[i] = maps[0, codes[axes[0], start + i]]
    for j in range(1, len(axes)):
        for i in range(stop - start):
            out[i] += maps[j, codes[axes[j], start + i]]


@compiled
def add_term(
    codes: np.ndarray, axes: np.ndarray, maps: np.ndarray, rows: np.ndarray, score: np.ndarray
) -> None:
    """Add the row of each joint code to a score."""
    joint = np.empty(BLOCK, np.int32)
    for start in range(0, len(score), BLOCK):
        stop = min(start + BLOCK, len(score))
        joint_codes(codes, axes, maps, start, stop, joint)
        for i in range(start, stop):
            for k in range(score.shape[1]):
                score[i, k] += rows[joint[i - start], k]


@compiled
def gradients(
    score: np.ndarray,
    target: np.ndarray,
    weight: np.ndarray,
    loss: int,
    start: int,
    stop: int,
    out: np.ndarray,
) -> None:
    """First and second derivatives of the loss of some rows by each of their scores.

    Squares ``½ (f - y)²``; two classes ``log(1 + e^f) - y f``; more of them ``log Σ e^f_k - f_y``,
    with the diagonal of the second derivatives times ``K / (K - 1)``.
    """
    n_outputs = score.shape[1]
    factor = n_outputs / max(n_outputs - 1.0, 1.0)
    for i in range(start, stop):
        w = weight[i]
        if loss == SQUARES:
            out[i - start, 0, 0] = w * (score[i, 0] - target[i])
            out[i - start, 0, 1] = w
        elif loss == LOGISTIC:
            p = 1 / (1 + math.exp(-score[i, 0]))
            out[i - start, 0, 0] = w * (p - target[i])
            out[i - start, 0, 1] = w * p * (1 - p)
        else:
            largest = score[i, 0]
            for k in range(1, n_outputs):
                largest = max(largest, score[i, k])
            total = 0.0
            for k in range(n_outputs):
                out[i - start, k, 0] = math.exp(score[i, k] - largest)
                total += out[i - start, k, 0]
            for k in range(n_outputs):
                p = out[i - start, k, 0] / total
                out[i - start, k, 0] = w * (p - (target[i] == k))
                out[i - start, k, 1] = factor * w * p * (1 - p)


@compiled
def mean_loss(score: np.ndarray, target: np.ndarray, weight: np.ndarray, loss: int) -> float:
    """The mean loss of rows by their weights."""
    total = 0.0
    for i in range(len(score)):
        if weight[i] == 0:
            continue
        if loss == SQUARES:
            total += weight[i] * (score[i, 0] - target[i]) ** 2 / 2
        elif loss == LOGISTIC:
            f = score[i, 0]
            total += weight[i] * (max(f, 0.0) + math.log1p(math.exp(-abs(f))) - target[i] * f)
        else:
            largest = score[i, 0]
            for k in range(1, score.shape[1]):
                largest = max(largest, score[i, k])
            of_all = 0.0
            for k in range(score.shape[1]):
                of_all += math.exp(score[i, k] - largest)
            total += weight[i] * (math.log(of_all) + largest - score[i, int(target[i])])
    return total / weight.sum()


@compiled
def add_histogram(
    codes: np.ndarray,
    axes: np.ndarray,
    maps: np.ndarray,
    slopes: np.ndarray,
    start: int,
    stop: int,
    histogram: np.ndarray,
) -> None:
    """Add the derivatives of some rows to the cells of their joint codes."""
    joint = np.empty(BLOCK, np.int32)
    joint_codes(codes, axes, maps, start, stop, joint)
    for i in range(stop - start):
        for k in range(histogram.shape[1]):
            histogram[joint[i], k, 0] += slopes[i, k, 0]
            histogram[joint[i], k, 1] += slopes[i, k, 1]


# -- one step: a small tree over the cells of a table ---------------------------------------------


@compiled
def place_codes(
    histogram: np.ndarray,
    sizes: np.ndarray,
    is_ordered: np.ndarray,
    smoothing: float,
    places: np.ndarray,
) -> None:
    """Set the place of each cell along each axis: codes in order, values by their mean slope.

    Values are sorted by ``G / (H + smoothing)``, for the class whose slopes differ most.
    """
    n_cells, n_outputs = histogram.shape[:2]
    stride = n_cells
    for j in range(len(sizes)):
        size = sizes[j]
        stride //= size
        if is_ordered[j]:
            for c in range(n_cells):
                places[j, c] = c // stride % size
            continue
        sums = np.zeros((size, n_outputs, 2))
        for c in range(n_cells):
            sums[c // stride % size] += histogram[c]
        best, largest = 0, -1.0
        for k in range(n_outputs):
            gain = (sums[:, k, 0] ** 2 / (sums[:, k, 1] + smoothing)).sum()
            if gain > largest:
                best, largest = k, gain
        order = np.argsort(sums[:, best, 0] / (sums[:, best, 1] + smoothing), kind="mergesort")
        place = np.empty(size, np.int32)
        for i in range(size):
            place[order[i]] = i
        for c in range(n_cells):
            places[j, c] = place[c // stride % size]


@compiled
def best_cut(
    histogram: np.ndarray,
    places: np.ndarray,
    sizes: np.ndarray,
    leaf_of: np.ndarray,
    leaf: int,
    penalty: float,
    min_curvature: float,
    cut: np.ndarray,
) -> None:
    """Set what the best cut of a leaf gains, along which axis it is, and behind which place.

    The gain is ``Σ_k G_k² / (H_k + λ)`` of both sides less that of the leaf. Each side has a
    curvature H of some rows at least.
    """
    n_outputs = histogram.shape[1]
    cut[:] = 0
    whole = np.zeros((n_outputs, 2))
    for c in range(len(leaf_of)):
        if leaf_of[c] == leaf:
            whole += histogram[c]
    before = (whole[:, 0] ** 2 / (whole[:, 1] + penalty)).sum()
    left = np.empty((n_outputs, 2))
    for j in range(len(sizes)):
        sums = np.zeros((sizes[j], n_outputs, 2))
        for c in range(len(leaf_of)):
            if leaf_of[c] == leaf:
                for k in range(n_outputs):
                    sums[places[j, c], k, 0] += histogram[c, k, 0]
                    sums[places[j, c], k, 1] += histogram[c, k, 1]
        left[:] = 0
        for place in range(sizes[j] - 1):
            gain, low, high = -before, 0.0, 0.0
            for k in range(n_outputs):
                left[k, 0] += sums[place, k, 0]
                left[k, 1] += sums[place, k, 1]
                rest, curvature = whole[k, 0] - left[k, 0], whole[k, 1] - left[k, 1]
                low += left[k, 1]
                high += curvature
                gain += left[k, 0] ** 2 / (left[k, 1] + penalty) + rest**2 / (curvature + penalty)
            if gain > cut[0] and low >= min_curvature and high >= min_curvature:
                cut[0], cut[1], cut[2] = gain, j, place


@compiled
def grow(
    histogram: np.ndarray,
    sizes: np.ndarray,
    is_ordered: np.ndarray,
    n_leaves: int,
    penalty: float,
    min_curvature: float,
    rate: float,
    out: np.ndarray,
) -> None:
    """Set what each cell adds: Newton steps ``-η G / (H + λ)`` of the leaves of a small tree.

    The leaf whose best cut gains most is cut, until there are enough leaves.
    """
    n_cells, n_outputs = histogram.shape[:2]
    places = np.empty((len(sizes), n_cells), np.int32)
    place_codes(histogram, sizes, is_ordered, 10.0, places)
    leaf_of = np.zeros(n_cells, np.int32)
    cuts = np.zeros((n_leaves, 3))
    best_cut(histogram, places, sizes, leaf_of, 0, penalty, min_curvature, cuts[0])
    for leaf in range(1, n_leaves):
        parent = 0
        for other in range(leaf):
            if cuts[other, 0] > cuts[parent, 0]:
                parent = other
        if cuts[parent, 0] <= 0:
            break
        axis, place = int(cuts[parent, 1]), int(cuts[parent, 2])
        for c in range(n_cells):
            if leaf_of[c] == parent and places[axis, c] > place:
                leaf_of[c] = leaf
        if leaf < n_leaves - 1:
            for new in (parent, leaf):
                best_cut(histogram, places, sizes, leaf_of, new, penalty, min_curvature, cuts[new])
    sums = np.zeros((n_leaves, n_outputs, 2))
    for c in range(n_cells):
        sums[leaf_of[c]] += histogram[c]
    for c in range(n_cells):
        for k in range(n_outputs):
            out[c, k] = -rate * sums[leaf_of[c], k, 0] / (sums[leaf_of[c], k, 1] + penalty)


# -- cycles ---------------------------------------------------------------------------------------


@compiled
def run_cycle(
    codes: np.ndarray,
    target: np.ndarray,
    weight: np.ndarray,
    score: np.ndarray,
    loss: int,
    layout: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray],
    step: tuple[int, float, float, float],
    tables: np.ndarray,
) -> None:
    """One boosting step for each table, one after the other, each with fresh derivatives.

    The pass over rows that adds one step to the scores also gathers the histogram of the next.
    """
    axes, n_axes, maps, sizes, is_ordered, starts = layout
    n_leaves, penalty, min_curvature, rate = step
    n_terms, n_outputs = len(n_axes), score.shape[1]
    widest = np.diff(starts).max()
    histogram = np.empty((widest, n_outputs, 2))
    added = np.zeros((widest, n_outputs), np.float32)
    joint, slopes = np.empty(BLOCK, np.int32), np.empty((BLOCK, n_outputs, 2))
    for t in range(n_terms + 1):
        histogram[:] = 0
        last, term = t - 1, min(t, n_terms - 1)
        for start in range(0, len(score), BLOCK):
            stop = min(start + BLOCK, len(score))
            if t > 0:
                joint_codes(codes, axes[last, : n_axes[last]], maps[last], start, stop, joint)
                for i in range(start, stop):
                    for k in range(n_outputs):
                        score[i, k] += added[joint[i - start], k]
            if t < n_terms:
                gradients(score, target, weight, loss, start, stop, slopes)
                add_histogram(
                    codes, axes[term, : n_axes[term]], maps[term], slopes, start, stop, histogram
                )
        if t < n_terms:
            n_cells, d = starts[t + 1] - starts[t], n_axes[t]
            grow(
                histogram[:n_cells],
                sizes[t, :d],
                is_ordered[t, :d],
                n_leaves,
                penalty,
                min_curvature,
                rate,
                added[:n_cells],
            )
            tables[starts[t] : starts[t + 1]] += added[:n_cells]


class Rows(NamedTuple):
    """Distinct coded rows with their targets, in the order of their codes.

    Attributes
    ----------
    codes : ndarray of shape (axes, nodes)
        The code of each distinct row on each axis.
    target : ndarray of shape (nodes,)
        The number of its class, or a number.
    weight : ndarray of shape (nodes,)
        How many rows it counts for.
    fold : ndarray of shape (nodes,)
        The bag that its first row is held out of; its other rows are held out of the next ones.
    node_of : ndarray of shape (rows,)
        Which of them each row is.
    """

    codes: np.ndarray
    target: np.ndarray
    weight: np.ndarray
    fold: np.ndarray
    node_of: np.ndarray

    @classmethod
    def of(cls, codes: Sequence[np.ndarray], target: np.ndarray, weight: Any) -> Rows:
        """Gather rows that are equal; so copies of a row are the same as its weight."""
        ranks = np.unique(target, return_inverse=True)[1]
        heads, node_of = distinct_rows([*codes, ranks])
        total = np.bincount(node_of, weight, len(heads)).astype(np.float32)
        fold = np.random.default_rng(0).permutation(len(heads)) % N_BAGS
        wide = max((code.itemsize for code in codes), default=1)
        out = np.empty((len(codes), len(heads)), np.dtype(f"u{wide}"))
        for a, code in enumerate(codes):
            out[a] = code[heads]
        return cls(out, target[heads].astype(np.float32), total, fold.astype(np.uint8), node_of)

    def held_out(self, bag: int) -> np.ndarray:
        """How many of the rows of each node are held out of a bag."""
        rounds = np.floor(self.weight / N_BAGS)
        rest, turn = self.weight - rounds * N_BAGS, (bag - self.fold.astype(np.int8)) % N_BAGS
        return np.asarray(rounds + np.clip(rest - turn, 0, 1), np.float32)

    def masses(self, axis: int, size: int) -> np.ndarray:
        """How many rows have each code of an axis."""
        return np.bincount(self.codes[axis], self.weight, size)


class Layout(NamedTuple):
    """Tables that are boosted in one cycle, as the kernels read them.

    Attributes
    ----------
    axes, n_axes : ndarray of shape (terms, joined) and (terms,)
        The axes of each term, and how many it has.
    maps : ndarray of shape (terms, joined, codes)
        What each code of an axis adds to the joint code.
    sizes, is_ordered : ndarray of shape (terms, joined)
        How many codes each axis has in the term, and whether they are in order.
    starts : ndarray of shape (terms + 1,)
        Where the cells of each term begin.
    """

    axes: np.ndarray
    n_axes: np.ndarray
    maps: np.ndarray
    sizes: np.ndarray
    is_ordered: np.ndarray
    starts: np.ndarray

    @classmethod
    def of(cls, joined: Sequence[tuple[int, ...]], grids: Sequence[Grid]) -> Layout:
        """Lay out the terms of some axes, whose codes are those of grids."""
        width, shape = max(map(len, joined)), (len(joined), max(map(len, joined)))
        longest = max(len(grid.groups) for grid in grids)
        axes, sizes = np.zeros(shape, np.int64), np.ones(shape, np.int64)
        maps, ordered = np.zeros((*shape, longest), np.int32), np.zeros(shape, bool)
        for t, term in enumerate(joined):
            for j, axis in enumerate(term):
                axes[t, j], sizes[t, j] = axis, grids[axis].size
                ordered[t, j] = grids[axis].is_ordered
            strides = np.append(np.cumprod(sizes[t, ::-1])[::-1][1:], 1)
            for j, axis in enumerate(term):
                groups = grids[axis].groups
                maps[t, j, : len(groups)] = groups * strides[j]
        starts = np.append(0, np.cumsum(sizes.prod(axis=1)))
        n_axes = np.array([len(term) for term in joined])
        assert width == axes.shape[1]
        return cls(axes, n_axes, maps, sizes, ordered, starts)

    def cells(self, term: int) -> slice:
        """Where the cells of a term are."""
        return slice(int(self.starts[term]), int(self.starts[term + 1]))

    def term(self, term: int) -> tuple[np.ndarray, np.ndarray]:
        """The axes of a term, and their maps."""
        return self.axes[term, : self.n_axes[term]], self.maps[term]

    def masses(self, rows: Rows) -> np.ndarray:
        """How many rows each cell has."""
        out = np.zeros(int(self.starts[-1]))
        for t in range(len(self.n_axes)):
            axes, maps = self.term(t)
            joint = sum(maps[j][rows.codes[a]] for j, a in enumerate(axes))
            out[self.cells(t)] = np.bincount(
                joint, rows.weight, int(self.starts[t + 1] - self.starts[t])
            )
        return out


class Grid(NamedTuple):
    """The codes of an axis as a term has them: ``groups[code]``, the last one's last."""

    groups: np.ndarray
    is_ordered: bool

    @property
    def size(self) -> int:
        """Number of groups."""
        return int(self.groups[-1]) + 1

    @classmethod
    def of(cls, masses: np.ndarray, n_groups: int, is_ordered: bool, effect: np.ndarray) -> Grid:
        """Join codes to groups of about the same mass, in order, or of values with like effects."""
        size = len(masses)
        if size <= n_groups:
            return cls(np.arange(size, dtype=np.int32), is_ordered)
        order = np.arange(size - 1) if is_ordered else np.argsort(effect[:-1], kind="stable")
        mass = masses[order]
        middle = (np.cumsum(mass) - mass / 2) / max(mass.sum(), 1e-300)
        groups = np.empty(size, np.int32)
        groups[order] = np.minimum(middle * (n_groups - 1), n_groups - 2)
        groups[:-1] = np.unique(groups[:-1], return_inverse=True)[1]
        groups[-1] = groups[:-1].max() + 1
        return cls(groups, is_ordered)


class Settings(NamedTuple):
    """How tables are boosted: leaves of a step, penalty, least curvature, rate; cycles."""

    n_leaves: int
    penalty: float
    min_curvature: float
    rate: float
    max_cycles: int
    patience: int

    @property
    def step(self) -> tuple[int, float, float, float]:
        """What a step needs."""
        return self.n_leaves, self.penalty, self.min_curvature, self.rate


class Bag(NamedTuple):
    """One of the models whose mean is learned: its number, and the scores of all rows so far."""

    number: int
    score: np.ndarray


def boost(rows: Rows, bag: Bag, layout: Layout, loss: int, settings: Settings) -> np.ndarray:
    """The tables of a bag after the cycle that is best for the rows held out; its scores grow."""
    tables = np.zeros((int(layout.starts[-1]), bag.score.shape[1]), np.float32)
    best, held = tables.copy(), rows.held_out(bag.number)
    learned = rows.weight - held
    if not (learned.any() and held.any()):
        return best
    best_loss = mark = mean_loss(bag.score, rows.target, held, loss)
    mark_cycle = -1
    for cycle in range(settings.max_cycles):
        run_cycle(rows.codes, rows.target, learned, bag.score, loss, layout, settings.step, tables)
        held_loss = mean_loss(bag.score, rows.target, held, loss)
        if held_loss < best_loss:
            best[:], best_loss = tables, held_loss
        if held_loss < mark * (1 - MIN_GAIN):
            mark, mark_cycle = held_loss, cycle
        elif cycle - mark_cycle >= settings.patience:
            break
    for t in range(len(layout.n_axes)):
        cells = layout.cells(t)
        add_term(rows.codes, *layout.term(t), best[cells] - tables[cells], bag.score)
    return best


# -- which columns to join ------------------------------------------------------------------------


@compiled
def shared_gain(
    codes: np.ndarray,
    axes: np.ndarray,
    maps: np.ndarray,
    slopes: np.ndarray,
    half: np.ndarray,
    n_cells: int,
    penalty: float,
) -> float:
    """How much one Newton step of each cell, taken on one half of the rows, gains on the other.

    ``Σ_c -(G_c v_c + ½ H_c v_c²)`` for the steps ``v_c = -G'_c / (H'_c + λ)`` of the other half.
    """
    n_outputs = slopes.shape[1]
    sums = np.zeros((2, n_cells, n_outputs, 2))
    joint = np.empty(BLOCK, np.int32)
    for start in range(0, len(slopes), BLOCK):
        stop = min(start + BLOCK, len(slopes))
        joint_codes(codes, axes, maps, start, stop, joint)
        for i in range(start, stop):
            for k in range(n_outputs):
                sums[half[i], joint[i - start], k, 0] += slopes[i, k, 0]
                sums[half[i], joint[i - start], k, 1] += slopes[i, k, 1]
    gain = 0.0
    for side in range(2):
        for c in range(n_cells):
            for k in range(n_outputs):
                step = -sums[1 - side, c, k, 0] / (sums[1 - side, c, k, 1] + penalty)
                gain -= sums[side, c, k, 0] * step + sums[side, c, k, 1] * step**2 / 2
    return gain


class Learned(NamedTuple):
    """What boosting made of rows: the start, terms, and terms and scores by bag.

    Attributes
    ----------
    intercept : ndarray of shape (outputs,)
        The score of a row whose terms are all 0.
    terms : list of Term
        The means of those of the bags.
    bags : list of list of Term
        The terms of each bag, for rows that are held out of it.
    rows : Rows
        The rows.
    held_out : ndarray of shape (nodes, outputs)
        The scores of the rows by the bag that they are held out of.
    """

    intercept: np.ndarray
    terms: list[Term]
    bags: list[list[Term]]
    rows: Rows
    held_out: np.ndarray


class Boosting:
    """Boosting of tables, stage by stage: single columns, pairs, and more that are joined.

    Parameters
    ----------
    axes : list of Axis
        The columns, and parts of them.
    is_ordered : list of bool
        Whether the codes of each are in order.
    rows : Rows
        The coded rows.
    loss : int
        Of squares, two classes or more.
    n_outputs : int
        How many scores a row has.
    """

    def __init__(
        self, axes: list[Axis], is_ordered: list[bool], rows: Rows, loss: int, n_outputs: int
    ) -> None:
        self.axes, self.is_ordered, self.rows, self.loss = axes, is_ordered, rows, loss
        self.start = start_score(rows, loss, n_outputs)
        score = np.repeat(self.start[None].astype(np.float32), len(rows.target), axis=0)
        self.bags = [Bag(number, score.copy()) for number in range(N_BAGS)]
        self.layouts: list[Layout] = []
        self.joined: list[list[tuple[int, ...]]] = []
        self.grids: list[list[Grid]] = []
        self.tables: list[list[np.ndarray]] = []
        self.effects = [np.zeros(axis.size) for axis in axes]

    def run(self, joined: list[tuple[int, ...]], settings: Settings) -> None:
        """Boost a table for each of some tuples of axes, in every bag."""
        width = len(joined[0])
        grids = self._grids(GRID[width] if width > 1 else 1 << 16)
        layout = Layout.of(joined, grids)
        tables = in_threads(
            lambda bag: boost(self.rows, bag, layout, self.loss, settings), self.bags
        )
        self.layouts.append(layout)
        self.joined.append(joined)
        self.grids.append(grids)
        self.tables.append(tables)
        if width == 1:
            mean = np.mean(tables, axis=0)
            for t, (axis,) in enumerate(joined):
                self.effects[axis] = along_main_axis(mean[layout.cells(t)])

    def _grids(self, n_groups: int) -> list[Grid]:
        return [
            Grid.of(self.rows.masses(a, axis.size), n_groups, self.is_ordered[a], self.effects[a])
            for a, axis in enumerate(self.axes)
        ]

    def ranked(self, candidates: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
        """Joint columns that explain something of what is left, those that explain most first."""
        if not candidates:
            return []
        layout = Layout.of(candidates, self._grids(RANKED_GRID[len(candidates[0])]))
        chosen, slopes = self._slopes()
        codes = np.ascontiguousarray(self.rows.codes[:, chosen])
        half = np.random.default_rng(1).integers(0, 2, len(chosen)).astype(np.uint8)

        def gain(t: int) -> float:
            n_cells = int(layout.starts[t + 1] - layout.starts[t])
            return float(shared_gain(codes, *layout.term(t), slopes, half, n_cells, 10.0))

        gains = in_threads(gain, range(len(candidates)))
        order = np.argsort([-g for g in gains], kind="stable")
        return [candidates[t] for t in order if gains[t] > 0]

    def _slopes(self) -> tuple[np.ndarray, np.ndarray]:
        """Derivatives of the loss for rows by the bags that they are held out of."""
        rows, n = self.rows, len(self.rows.target)
        chosen = np.arange(n)
        if n > MAX_RANKED_ROWS:
            chosen = np.sort(np.random.default_rng(0).permutation(n)[:MAX_RANKED_ROWS])
        out = np.zeros((len(chosen), len(self.start), 2))
        for bag in self.bags:
            part = np.empty_like(out)
            score, held = bag.score[chosen], rows.held_out(bag.number)[chosen]
            gradients(score, rows.target[chosen], held, self.loss, 0, len(chosen), part)
            out += part
        return chosen, out

    def candidates(self, chosen: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
        """Tuples of one more axis than those that were chosen, the first of which come first."""
        n_axes = len(self.axes)
        if len(chosen[0]) == 1:  # those that say most come first
            spread = [self.rows.masses(a, len(e)) @ e**2 for a, e in enumerate(self.effects)]
            order = np.argsort(-np.array(spread), kind="stable").tolist()
            out = (tuple(sorted((a, b))) for j, b in enumerate(order) for a in order[:j])
        else:
            more = [tuple(sorted((*t, a))) for t in chosen for a in range(n_axes) if a not in t]
            out = (t for t in dict.fromkeys(more))
        return list(islice(out, MAX_CANDIDATES))

    def learned(self, scale: float = 1.0) -> Learned:
        """The mean of the bags, and each of them, with terms of mean 0, times a scale."""
        intercept = scale * self.start
        terms: list[Term] = []
        bags: list[list[Term]] = [[] for _ in self.bags]
        for joined, grids, layout, tables in zip(
            self.joined, self.grids, self.layouts, self.tables, strict=True
        ):
            masses, mean = layout.masses(self.rows), np.mean(tables, axis=0, dtype=np.float64)
            for t, axes in enumerate(joined):
                cells = layout.cells(t)
                if len(axes) > 1 and not mean[cells].any():
                    continue
                of_axes = tuple(self.axes[a].grouped(grids[a].groups) for a in axes)
                share = masses[cells] / masses[cells].sum()
                for out, rows in zip((terms, *bags), (mean, *tables), strict=True):
                    added = scale * rows[cells].astype(np.float64)
                    centre = share @ added
                    out.append(Term(of_axes, added - centre))
                    if out is terms:
                        intercept = intercept + centre
        held_out = np.empty_like(self.bags[0].score)
        for number, score in self.bags:
            held_out[self.rows.fold == number] = score[self.rows.fold == number]
        return Learned(intercept, terms, bags, self.rows, scale * held_out)


def check_length(labels: np.ndarray, n_rows: int) -> None:
    """Raise unless there is a target for each row."""
    if len(labels) != n_rows:
        raise ValueError(f"expected {n_rows} labels in y, one per row of X, got {len(labels)}")


def start_score(rows: Rows, loss: int, n_outputs: int) -> np.ndarray:
    """The score before any step: the mean, or what gives each class its share."""
    if loss == SQUARES:
        return np.array([np.average(rows.target, weights=rows.weight)])
    share = np.bincount(rows.target.astype(np.intp), rows.weight, max(n_outputs, 2))
    share = np.log(share / share.sum())
    return share[1:] - share[:1] if loss == LOGISTIC else share - share.mean()


def along_main_axis(rows: np.ndarray) -> np.ndarray:
    """One number for each row: where it lies along the line in which rows differ most."""
    if rows.shape[1] == 1:
        return np.asarray(rows[:, 0])
    axis = np.linalg.svd(rows - rows.mean(axis=0), full_matrices=False)[2][0]
    return np.asarray(rows @ axis)
