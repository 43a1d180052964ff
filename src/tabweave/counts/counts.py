"""Counts: everything tabweave learns from, in a form that adds up.

Rows are seen once. ``Counts.of`` counts how often each value, each pair of values of two columns
and each value with each class occur, and keeps exact moments and histograms of numeric columns. The
values of a numeric column are buckets of its numbers (:mod:`tabweave.counts.counting`). The
result is an Abelian group under ``+`` and ``-``: chunks, partitions and windows are combined or
forgotten exactly, in any order, and ``Counts()`` is zero.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from os import PathLike
from typing import Any, cast

import numpy as np
from scipy import sparse

from tabweave._compat import html_table, in_threads
from tabweave.columns.cells import Bins
from tabweave.columns.column import Column, Schema
from tabweave.columns.nominal import Codes
from tabweave.columns.numeric import numbers
from tabweave.columns.sets import Sets
from tabweave.columns.table import Table
from tabweave.columns.vocabulary import (
    Label,
    OfVocabulary,
    Vocabulary,
    order,
    positions,
)
from tabweave.counts.counting import (
    Grid,
    Histogram,
    add_pairs,
    add_up_columns,
    among,
    canonical,
    coded_bins,
    count_alone,
    count_pairs,
    in_order,
    moments_in,
    tidy,
)
from tabweave.counts.merging import (
    combine,
    drop_negligible,
    equal,
    equal_histograms,
    expand,
    in_same_buckets,
    with_classes,
)
from tabweave.counts.private import (
    Ledger,
    Release,
    consistent,
    folded,
    noise_scale,
    noisy_tables,
    release_threshold,
    released_labels,
    rho_of,
    spans_of,
)
from tabweave.io.register import storable
from tabweave.io.store import load, save

Matrix = Any  # np.ndarray or scipy.sparse.csr_array


@storable
@dataclass(frozen=True, eq=False)
class NumberCounts:
    """What counts hold of columns of numbers, beside how often buckets of them occur.

    Attributes
    ----------
    moments : ndarray
        Exact sums over each column.
    histograms : dict of str to Histogram
        The histogram of each column, and of the phases of datetimes.
    grids : dict of str to Grid
        How wide the buckets of each column are that are counted in pairs.
    """

    moments: np.ndarray | None = None
    histograms: dict[str, Histogram] = field(default_factory=dict)
    grids: dict[str, Grid] = field(default_factory=dict)

    def scaled(self, factor: float) -> NumberCounts:
        """What is counted of numbers, multiplied by a factor."""
        histograms = {name: histogram.scaled(factor) for name, histogram in self.histograms.items()}
        moments = None if self.moments is None else self.moments * factor
        return NumberCounts(moments, histograms, self.grids)


@storable
@dataclass(frozen=True, eq=False, repr=False)
class Counts(OfVocabulary):
    """How often values, pairs of values, and values with classes occur.

    Build one with :meth:`Counts.of`; add, subtract and compare them freely. Values are those that
    occur, in canonical order; V is their total number over all columns. Of numbers and datetimes
    values are buckets, each named by its end nearest to 0; while a column has few different numbers
    (126 at most, fewer with more than 16 columns of numbers), each has its own. Of datetimes the
    time of day, the weekday and the time of year are counted, too, as columns of bins.

    Attributes
    ----------
    schema : Schema or None
        The columns; None for zero.
    n : int or float
        Number of rows, or their total weight.
    vocabulary : Vocabulary
        The columns and their values.
    pairs : ndarray or scipy.sparse.csr_array of shape (V, V)
        The number of rows in which two values occur together; value counts on the diagonal. Sparse
        if V > 2048. Of schemas that are not ``coupled``, the diagonal only.
    classes : tuple or None
        The class labels, if rows were counted with ``y``.
    class_pairs : ndarray of shape (V, number of classes)
        The number of rows in which a value occurs with a class.
    class_n : ndarray
        Number of rows of each class.
    numbers : NumberCounts
        Exact sums over the numeric columns, which :meth:`moments` reads, and their histograms.

    Notes
    -----
    Counts of the same rows are the same however these were cut, in any order. Buckets become wider
    as numbers are added, and do not become narrower again when some are taken away: counts are
    equal if they are equal in the wider buckets of the two.

    Examples
    --------
    >>> from tabweave import Counts, Table
    >>> a = Counts.of(Table.of({"color": ["red", "blue"], "size": ["L", "L"]}))
    >>> b = Counts.of(Table.of({"color": ["red"], "size": ["S"]}))
    >>> (a + b).block("color", "size")
    array([[1, 0],
           [1, 1]])
    >>> (a + b) - b == a
    True
    """

    schema: Schema | None = None
    n: int | float = 0
    vocabulary: Vocabulary = field(default_factory=Vocabulary)
    pairs: Matrix = None
    classes: tuple[Label, ...] | None = None
    class_pairs: np.ndarray | None = None
    class_n: np.ndarray | None = None
    numbers: NumberCounts = field(default_factory=NumberCounts)

    # -- building --------------------------------------------------------------------------

    @classmethod
    def of(cls, table: Any, y: Any = None, *, sample_weight: Any = None) -> Counts:
        """Count rows.

        Parameters
        ----------
        table : Table, or anything :meth:`Table.of` reads
            The rows.
        y : array-like, optional
            A class for each row.
        sample_weight : array-like, optional
            A weight for each row. Integers are counted exactly.
        """
        table = Table.of(table)
        weight = checked_weight(sample_weight, table.n_rows)
        n = table.n_rows if weight is None else weight.sum().item()
        if not n:
            return cls()
        columns, numbers = _counted_columns(table, weight)
        parts = table.schema.parts
        names = list(parts)
        levels = [c.levels if c.name == name else None for name, c in parts.items()]
        if y is not None:
            columns.append(_class_column(y, table.n_rows))
            names.append("y")
            levels.append(None)
        columns = list(in_order(columns, levels))
        pairs: Any = np.zeros((0, 0), np.int64)
        if columns and table.schema.coupled:
            pairs = count_pairs(columns, weight)
        elif columns:
            pairs = count_alone(columns, weight, with_last=y is not None)
        counted = Vocabulary(tuple(names), tuple(tuple(data.labels) for data in columns))
        vocabulary, pairs = canonical(counted, pairs, levels)
        return cls.from_pairs(table.schema, n, vocabulary, pairs, numbers, y is not None)

    @classmethod
    def from_pairs(
        cls,
        schema: Schema,
        n: int | float,
        vocabulary: Vocabulary,
        pairs: Matrix,
        numbers: NumberCounts,
        has_classes: bool,
    ) -> Counts:
        """Build counts from pair counts that were computed elsewhere; :meth:`of` counts rows.

        Parameters
        ----------
        schema : Schema
            The columns.
        n : int or float
            Number of rows, or their total weight.
        vocabulary : Vocabulary
            The columns and their values, in canonical order; classes come last.
        pairs : ndarray or scipy.sparse.csr_array
            In how many rows two of these values meet.
        numbers : NumberCounts
            Sums and histograms of the numeric columns.
        has_classes : bool
            Whether the last column of the vocabulary is that of the classes.
        """
        if not has_classes:
            return cls(schema, n, vocabulary, pairs, numbers=numbers)
        v = int(vocabulary.offsets[-2])
        side = pairs[:v, v:]
        return cls(
            schema=schema,
            n=n,
            vocabulary=Vocabulary(vocabulary.names[:-1], vocabulary.labels[:-1]),
            pairs=tidy(pairs[:v, :v]),
            classes=vocabulary.labels[-1],
            class_pairs=side.toarray() if sparse.issparse(side) else np.ascontiguousarray(side),
            class_n=np.asarray(pairs.diagonal())[v:],
            numbers=numbers,
        )

    # -- the group -------------------------------------------------------------------------

    def __add__(self, other: Counts) -> Counts:
        if not isinstance(other, Counts):
            return NotImplemented
        if self.schema is None or other.schema is None:
            return self if other.schema is None else other
        return combine(self, other)

    def __sub__(self, other: Counts) -> Counts:
        if not isinstance(other, Counts):
            return NotImplemented
        if other.schema is None:
            return self
        if self.schema is None:
            raise ValueError(f"cannot subtract {other.n} rows from empty counts")
        return combine(self, other, minus=True)

    def scaled(self, factor: float) -> Counts:
        """The counts multiplied by a factor, as decay in a stream does.

        Counts are floats from there on, unless the factor is 1; a value that has faded to a
        billionth of the rows is dropped.
        """
        if not (np.isfinite(factor) and factor >= 0):
            raise ValueError(f"expected factor to be a number >= 0, got {factor}")
        if self.schema is None or factor == 1:
            return self
        if factor == 0:
            return Counts()
        moved: dict[str, Any] = {
            name: None if (part := getattr(self, name)) is None else part * float(factor)
            for name in ("n", "pairs", "class_pairs", "class_n")
        }
        moved["numbers"] = self.numbers.scaled(float(factor))
        return drop_negligible(replace(self, **moved))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Counts):
            return NotImplemented
        if self.schema is None or other.schema is None:
            return self.schema is other.schema
        if {c.name: c for c in self.schema.columns} != {c.name: c for c in other.schema.columns}:
            return False
        other = other.select(self.schema.names)
        if self.n != other.n:
            return False
        left, other = in_same_buckets(self, other)
        return bool(
            left._equal(other)
            and equal_histograms(left.numbers.histograms, other.numbers.histograms)
        )

    def _equal(self, other: Counts) -> bool:
        """Tell whether counts of the same columns, in the same buckets, are equal."""
        return bool(
            (self.classes is None) == (other.classes is None)
            and with_classes(self) == with_classes(other)
            and equal(self.pairs, other.pairs)
            and equal(self.numbers.moments, other.numbers.moments)
            and (self.classes is None or equal(self.class_pairs, other.class_pairs))
            and (self.classes is None or equal(self.class_n, other.class_n))
        )

    __hash__ = None  # type: ignore[assignment]

    # -- reading ---------------------------------------------------------------------------

    @cached_property
    def value_counts(self) -> np.ndarray:
        """Number of rows that have each of the V values."""
        return np.asarray(self.pairs.diagonal())

    @cached_property
    def frequencies(self) -> list[np.ndarray]:
        """Definition 3.3: ``f(v) = |g(v)| / n``, the share of rows with each value, per column.

        Without missing cells (:meth:`present`) they are shares of the rows that have a value.
        """
        parts = np.split(self.value_counts / self.n, self.offsets[1:-1])
        incomplete = set(self.columns_with_gaps)
        return [
            f / f.sum() if n in incomplete else f for n, f in zip(self.names, parts, strict=True)
        ]

    @cached_property
    def columns_with_gaps(self) -> list[str]:
        """The columns of single values that not all rows have."""
        sets = {c.name for c in self.schema.columns if c.is_set} if self.schema else set()
        single = [name for name in self.names if name not in sets]
        rows = {name: float(self.value_counts[self.span(name)].sum()) for name in single}
        return [name for name, n in rows.items() if 0 < n < float(self.n) * (1 - 1e-9)]

    def block(self, a: str | int, b: str | int) -> np.ndarray:
        """The table of values of column a against values of column b."""
        part = self.pairs[self.span(a), self.span(b)]
        return part.toarray() if sparse.issparse(part) else part

    @property
    def is_widened(self) -> bool:
        """Whether buckets are wider than counts of the same rows alone would have them.

        So they may be when rows with other numbers were added and taken away again.
        """
        n_columns = len(self.numbers.grids) if self.schema and self.schema.coupled else 1
        grids = {
            name: self.numbers.histograms[name].paired(n_columns).grid
            for name in self.numbers.grids
        }
        return grids != self.numbers.grids

    def moments(self, column: str) -> tuple[int | float, float, float]:
        """(how many numbers, mean, population variance) of a numeric column."""
        numeric = self._moments
        if column not in numeric:
            raise KeyError(f"expected a numeric column, one of {list(numeric)}, got {column!r}")
        return numeric[column]

    @cached_property
    def _moments(self) -> dict[str, tuple[int | float, float, float]]:
        """The moments of all numeric columns; exact, they take a while."""
        names = self.schema.bucketed if self.schema else []
        return {
            name: moments_in(cast(np.ndarray, self.numbers.moments)[i])
            for i, name in enumerate(names)
        }

    def select(self, columns: Iterable[str]) -> Counts:
        """The counts of some columns, in the order given."""
        columns = [columns] if isinstance(columns, str) else list(columns)
        if self.schema is None or columns == self.schema.names:
            return self
        schema = self.schema.select(columns)
        chosen = list(schema.parts)
        numeric = [self.schema.bucketed.index(part) for part in schema.bucketed]
        values = np.concatenate(
            [np.zeros(0, np.intp), *(np.arange(s.start, s.stop) for s in map(self.span, chosen))]
        )
        return replace(
            self,
            schema=schema,
            vocabulary=self.vocabulary.select(chosen),
            pairs=tidy(among(self.pairs, values)),
            class_pairs=None if self.class_pairs is None else self.class_pairs[values],
            numbers=NumberCounts(
                cast(np.ndarray, self.numbers.moments)[numeric],
                {part: self.numbers.histograms[part] for part in schema.bins},
                {part: self.numbers.grids[part] for part in schema.bucketed},
            ),
        )

    def present(self, columns: Iterable[str]) -> Counts:
        """The counts without the missing cells of some columns: rows have values, or none.

        What counts say of two columns is then said by the rows that have values in both.
        """
        chosen = set(columns)
        pairs = zip(self.names, self.labels, strict=True)
        labels = [
            tuple(v for v in column if v is not None) or column if name in chosen else column
            for name, column in pairs
        ]
        if labels == list(self.labels):
            return self
        values = np.concatenate(
            [
                self.span(a).start + positions(column_labels, now)
                for a, (column_labels, now) in enumerate(zip(self.labels, labels, strict=True))
            ]
        ).astype(np.intp)
        return replace(
            self,
            vocabulary=replace(self.vocabulary, labels=tuple(labels)),
            pairs=tidy(among(self.pairs, values)),
            class_pairs=None if self.class_pairs is None else self.class_pairs[values],
        )

    def __repr__(self) -> str:
        if self.schema is None:
            return "Counts()"
        classes = "" if self.classes is None else f", {len(self.classes)} classes"
        return (
            f"Counts({self.n} rows, {len(self.schema)} columns, {self.offsets[-1]} values{classes})"
        )

    def _repr_html_(self) -> str:
        rows = []
        for name, labels in zip(self.names, self.labels, strict=True):
            times = self.value_counts[self.span(name)]
            top = np.argsort(-times, kind="stable")[:5]
            words = [
                f"{'missing' if labels[i] is None else labels[i]} {times[i]:,.0f}" for i in top
            ]
            rows.append([name, len(labels), ", ".join(words) + (", …" if len(labels) > 5 else "")])
        caption = f"Counts of {self.n:,.0f} rows"
        return html_table(caption, ["column", "values", "most frequent"], rows)

    # -- privacy ---------------------------------------------------------------------------

    def private(
        self,
        epsilon: float,
        delta: float = 1e-6,
        *,
        values: Mapping[str, Sequence[Label]] | None = None,
        classes: Sequence[Label] | None = None,
        max_weight: int = 1,
        again: bool = False,
    ) -> PrivateCounts:
        """Counts with noise, which may be shared: no single row can be told from them.

        All margins and pair tables are released under one budget. Their noise is discrete and
        Gaussian, drawn by OpenDP; they are then made consistent: no cell is negative, and margins
        agree. What the result promises is in its ``ledger``.

        Parameters
        ----------
        epsilon : float
            Adding or removing one row changes the probability of any outcome by a factor of at
            most exp(epsilon).
        delta : float, default=1e-6
            But for this probability, which should be well below one in the number of rows.
        values : mapping of column to values, optional
            The values that a column may have, as everybody knows without the rows. Of other
            columns those values are released whose noisy count is above a threshold, for half of
            ``delta``. Cells with other values are counted as "(other)".
        classes : sequence, optional
            The classes, as everybody knows.
        max_weight : int, default=1
            The largest weight of a row, if rows were counted with whole weights.
        again : bool, default=False
            Whether to release the same counts once more: what the releases promise adds up.

        Notes
        -----
        Names, kinds and the order of columns are taken as public. Numbers and dates have to be cut
        into public bins before they are counted: see :func:`tabweave.public_bins`. Sets are
        refused: a row may be in any number of their cells.

        Examples
        --------
        >>> from tabweave import Counts
        >>> rows = {"color": ["red", "blue"] * 500, "size": ["S", "S", "L", "L"] * 250}
        >>> public = {"color": ["blue", "red"], "size": ["S", "L"]}
        >>> shared = Counts.of(rows).private(epsilon=1, values=public)  # doctest: +SKIP
        >>> shared.ledger.epsilon  # doctest: +SKIP
        1
        """
        check_releasable(self, epsilon, delta, max_weight)
        earlier: tuple[Release, ...] = vars(self).get("_releases", ())
        if earlier and not again:
            raise ValueError(
                f"these counts were released with epsilon={Ledger(earlier).epsilon:g}; another "
                "release adds to that: say so with again=True, or share the first one"
            )
        released = _release(self, (epsilon, delta), values or {}, classes, max_weight)
        releases = (*earlier, *released.ledger.releases)
        vars(self)["_releases"] = releases
        return replace(released, ledger=Ledger(releases))

    # -- files -----------------------------------------------------------------------------

    def save(self, path: str | PathLike[str]) -> None:
        """Write to one file, without pickle; the file appears complete or not at all."""
        save(self, path)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Counts:
        """Read what :meth:`save` wrote."""
        counts = load(path)
        if not isinstance(counts, cls):
            raise ValueError(f"{path}: expected counts, got a {type(counts).__name__}")
        return counts

    def _check_loaded(self) -> None:
        if self.schema is None:
            return
        size = self.vocabulary.n_values
        if self.names != list(self.schema.parts):
            raise ValueError(f"the counted columns {self.names} are not those of the schema")
        if len(self.labels) != len(self.names) or np.shape(self.pairs) != (size, size):
            raise ValueError(f"the pair counts do not fit {size} values")
        if self.class_pairs is not None and len(self.class_pairs) != size:
            raise ValueError(f"the class counts do not fit {size} values")
        parts = list(self.schema.bins)
        names = self.schema.bucketed
        if list(self.numbers.histograms) != parts or list(self.numbers.grids) != names:
            raise ValueError(f"the histograms do not fit {len(names)} columns of numbers")


@storable
@dataclass(frozen=True, eq=False, repr=False)
class PrivateCounts(Counts):
    """Counts with noise, of which no single row can be told; made by :meth:`Counts.private`.

    All that learns from counts learns from them. They add to other private counts, whose ledger is
    then theirs, too; they cannot be subtracted, added to counts of rows, or released again.

    Attributes
    ----------
    ledger : Ledger
        What was promised, and what it took.
    """

    ledger: Ledger = field(default_factory=Ledger)

    def __add__(self, other: Counts) -> Counts:
        if not isinstance(other, Counts):
            return NotImplemented
        if other.schema is None:
            return self
        if not isinstance(other, PrivateCounts):
            raise ValueError("expected private counts to add, got counts of rows; release them")
        both = super().__add__(other)
        fields = {name: getattr(both, name) for name in Counts.__dataclass_fields__}
        return PrivateCounts(**fields, ledger=Ledger(self.ledger.releases + other.ledger.releases))

    def __radd__(self, other: Counts) -> Counts:
        return self + other

    def __sub__(self, other: Counts) -> Counts:
        raise ValueError("private counts cannot be subtracted: their noise would add up; release")

    __rsub__ = __sub__

    def private(self, *_: Any, **__: Any) -> PrivateCounts:
        """Refuse to release again what is private already."""
        raise ValueError("these counts are private already: share them as they are")

    def __repr__(self) -> str:
        promise = f"epsilon={self.ledger.epsilon:.3g}, delta={self.ledger.delta:.3g}"
        return f"{super().__repr__()[:-1]}; private, {promise})".replace(
            "Counts(", "PrivateCounts("
        )


def check_releasable(counts: Counts, epsilon: float, delta: float, max_weight: int) -> None:
    """Raise for counts that cannot be made private, with what to do."""
    schema = counted_schema(counts)
    if not (epsilon > 0 and 0 < delta < 1 and np.isfinite(epsilon)):
        raise ValueError(
            f"expected epsilon > 0 and 0 < delta < 1, got epsilon={epsilon}, delta={delta}"
        )
    if not isinstance(counts.n, int) or max_weight != int(max_weight) or max_weight < 1:
        raise ValueError(
            f"expected counts of rows with whole weights of at most max_weight, a whole number, "
            f"got {counts.n!r} rows and max_weight={max_weight!r}"
        )
    if not schema.coupled:
        raise ValueError(f"expected counts of pairs, got {len(schema)} columns counted alone")
    for column in schema.columns:
        if column.is_set or list(column.parts.values()) != [None]:
            remedy = f"cut it first: tabweave.public_bins(rows, {{{column.name!r}: [...]}})"
            if column.is_set:
                remedy = "count its elements as columns of yes and no"
            raise ValueError(
                f"column {column.name!r}: expected categories, got kind {column.kind!r}; {remedy}"
            )


def _release(
    counts: Counts,
    budget: tuple[float, float],
    public: Mapping[str, Sequence[Label]],
    classes: Sequence[Label] | None,
    max_weight: int,
) -> PrivateCounts:
    """Counts with noise, made consistent."""
    schema, vocabulary = counted_schema(counts), with_classes(counts)
    pairs = expand(counts, vocabulary)
    lists: list[Sequence[Label] | None] = [public.get(name) for name in schema.names]
    if unknown := [name for name in public if name not in schema.names]:
        raise ValueError(f"values: expected columns of {schema.names}, got {unknown}")
    lists += [classes] if counts.classes is not None else []
    n_open, k = sum(values is None for values in lists), len(lists)
    epsilon, delta = budget
    n_tables = n_open + k * (k + 1) // 2
    rho = rho_of(epsilon, delta / 2 if n_open else delta)
    scale = noise_scale(n_tables, rho, max_weight)
    threshold = release_threshold(scale, delta / 2, n_open, max_weight) if n_open else None
    margins = [pairs.diagonal()[span] for span in spans_of(vocabulary.labels)]
    labels = released_labels(vocabulary.labels, margins, lists, (scale, threshold, max_weight))
    noisy = noisy_tables(folded(pairs, vocabulary.labels, labels), labels, scale, max_weight)
    matrix = consistent(noisy, [len(values) for values in labels], 2 * scale)
    columns = [
        Column(c.name, c.kind, levels=c.levels and tuple(v for v in values if v is not None))
        for c, values in zip(schema.columns, labels, strict=False)
    ]
    shared = Schema(tuple(columns), schema.missing, schema.empty_is_missing, undeclared="ignored")
    names = Vocabulary(vocabulary.names, tuple(map(tuple, labels)))
    levels = [c.levels for c in columns] + [None] * (counts.classes is not None)
    made = PrivateCounts.from_pairs(
        replace(shared, named=schema.named),
        float(matrix.diagonal()[: len(labels[0])].sum()),
        *canonical(names, matrix, levels),
        counts.numbers,
        counts.classes is not None,
    )
    release = Release(epsilon, delta, rho, scale, n_tables, max_weight, threshold)
    return replace(cast(PrivateCounts, made), ledger=Ledger((release,)))


def _counted_columns(
    table: Table, weight: np.ndarray | None
) -> tuple[list[Codes | Sets], NumberCounts]:
    """The columns that are counted, those of numbers in bins, and sums of numbers."""
    n_columns = len(table.schema.bucketed) if table.schema.coupled else 1
    jobs = [(data, part, bins) for c, data in table for part, bins in c.parts.items()]

    def binned(job: tuple[Any, str, Bins | None]) -> tuple[Codes | Sets, Any]:
        data, part, bins = job
        if bins is None:
            return data, None
        x, edges = data.numbers(part), bins.edges
        histogram = Histogram.of(x, weight)
        if edges is not None:
            return coded_bins(x, edges, range(len(edges) + 1)), (histogram, None, None)
        paired = histogram.paired(n_columns)
        codes = coded_bins(x, paired.edges, paired.starts.tolist())
        return codes, (histogram, paired.grid, x)

    columns, found = zip(*in_threads(binned, jobs), strict=True) if jobs else ((), ())
    counted = {job[1]: numbers for job, numbers in zip(jobs, found, strict=True) if numbers}
    buckets = {part: numbers for part, numbers in counted.items() if numbers[1] is not None}
    return list(columns), NumberCounts(
        add_up_columns([x for _, _, x in buckets.values()], weight),
        {part: histogram for part, (histogram, _, _) in counted.items()},
        {part: grid for part, (_, grid, _) in buckets.items()},
    )


def checked_weight(sample_weight: Any, n_rows: int) -> np.ndarray | None:
    """A weight for each row, integers where they are; raise for what are no weights."""
    if sample_weight is None:
        return None
    weight = np.asarray(sample_weight)
    if weight.ndim == 0:
        weight = np.full(n_rows, weight)
    if weight.shape != (n_rows,):
        raise ValueError(f"sample_weight.shape == {weight.shape}, expected {(n_rows,)}!")
    if weight.dtype.kind not in "biufO" or np.ma.is_masked(sample_weight):
        raise TypeError(
            f"sample_weight: expected a number for each row, got {weight.dtype} or masked"
        )
    weights = weight if weight.dtype.kind in "biuf" else numbers(weight)
    bad = np.flatnonzero(~np.isfinite(weights) | (weights < 0))
    if len(bad):
        raise ValueError(
            f"sample_weight of row {bad[0]}: expected a number >= 0, got {weight[bad[0]]}"
        )
    is_integer = weights.dtype.kind in "biu"
    with np.errstate(over="ignore"):
        total = weights.sum(dtype=np.float64)
    if total > (2.0**62 if is_integer else 1e250):  # counts must not wrap around, nor turn infinite
        raise ValueError(f"sample_weight adds up to {total:.3g}; scale it down")
    return weights.astype(np.int64 if is_integer else np.float64)


def _class_column(y: Any, n_rows: int) -> Codes:
    if isinstance(y, str):
        raise TypeError(
            f"expected y to be an array of targets, one per row, got the string {y!r}; pass the "
            f"column"
        )
    named: Codes = Table.of({"y": y}, {"y": "nominal"})["y"]
    if len(named.codes) != n_rows:
        raise ValueError(f"expected {n_rows} labels in y, one a row, got {len(named.codes)}")
    if None in named.labels and (named.codes == named.labels.index(None)).any():
        row = np.flatnonzero(named.codes == named.labels.index(None))[0]
        raise ValueError(f"y of row {row} is missing; drop the row or give it a class")
    return named


def append(counts: Counts, table: Table, y: Any = None, *, sample_weight: Any = None) -> Counts:
    """``counts + Counts.of(table, y, sample_weight=sample_weight)``.

    Plain rows of categories are counted straight into a copy of the matrix: windows of a stream
    are small, and building a matrix for each and merging two vocabularies costs more.
    """
    is_plain = y is None and sample_weight is None and table.n_rows > 0
    vocabulary = _grown(counts, table) if is_plain else None
    if vocabulary is None:
        return counts + Counts.of(table, y, sample_weight=sample_weight)
    same = vocabulary is counts.vocabulary
    pairs = counts.pairs.copy() if same else expand(counts, vocabulary)
    if not isinstance(pairs, np.ndarray):  # grown too large for a dense matrix
        return counts + Counts.of(table)
    index = np.empty((len(vocabulary), table.n_rows), np.int32)
    codes = vocabulary.codes(table)
    for a, start in enumerate(vocabulary.offsets[:-1]):
        np.add(codes[a], start, out=index[a], casting="unsafe")
    add_pairs(index, pairs)
    return replace(counts, n=counts.n + table.n_rows, vocabulary=vocabulary, pairs=pairs)


def _grown(counts: Counts, table: Table) -> Vocabulary | None:
    """The values of both, in order; None where only the general way will do."""
    simple = counts.classes is None and isinstance(counts.pairs, np.ndarray)
    if not simple or counts.schema is None or counts.schema != table.schema:
        return None  # what is not coupled has no dense matrix either
    if counts.schema.bins:
        return None
    if len(table.columns) > len(counts.vocabulary):
        return None
    labels = []
    for values, column, spec in zip(
        counts.labels, table.columns, table.schema.categorical, strict=True
    ):
        if column.is_set:
            return None
        absent = positions(values, column.labels) == len(values)
        if absent.any():
            absent &= np.bincount(column.codes, minlength=len(absent)) > 0
        if absent.any():
            if spec.levels is not None:  # maybe none of its levels: let the general way say so
                return None
            both = [*values, *(column.labels[i] for i in np.flatnonzero(absent))]
            values = tuple(both[i] for i in order(both))
        labels.append(values)
    same = all(new is old for new, old in zip(labels, counts.labels, strict=True))
    return counts.vocabulary if same else Vocabulary(counts.vocabulary.names, tuple(labels))


def counted_schema(counts: Counts) -> Schema:
    """The columns of counts; raise if nothing was counted."""
    if counts.schema is None:
        raise ValueError(
            "expected counts of at least one row, got none, or only rows of weight zero"
        )
    return counts.schema
