"""ValueTables: a representation as a lookup.

What every method of tabweave ends in: per column a table with one row per value. An object is the
concatenation of its values' rows (squared distances then add up over columns) or their sum. Grams
and wide features are compacted without changing a distance: a column of V values needs at most
V - 1 dimensions. Where that is too many, what each value has of its own is kept as a number, by
which distances are exact, and written as a code word (see :func:`code_words`) into vectors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import product
from typing import Any, Literal

import numpy as np

from tabweave._compat import eigh, fix_signs, in_threads, one_blas_thread
from tabweave.columns.nominal import Codes
from tabweave.columns.sets import Sets
from tabweave.columns.spelling import Spelling
from tabweave.columns.table import Table
from tabweave.columns.vocabulary import (
    Bucket,
    Label,
    OfVocabulary,
    Unknown,
    Vocabulary,
    check_seen,
    positions,
    slices,
)
from tabweave.counts.counting import compiled, group_columns
from tabweave.counts.counts import Counts
from tabweave.counts.couplings import MAX_COORDINATES, N_COMMON, Factors
from tabweave.counts.spectra import centred_product
from tabweave.io.register import storable
from tabweave.space.points import (
    Piece,
    Turn,
    Writer,
    row_writer,
    sum_writer,
    value_writer,
)
from tabweave.space.space import Joined, LabelPoints, Labels, Lookup, Space, Step, Sum

Comparison = Callable[[LabelPoints, LabelPoints], np.ndarray]  # of each point with each other


@storable
@dataclass(frozen=True, eq=False)
class ValueTables(OfVocabulary, Space):
    """The lookup tables that an embedder learned: per categorical column, a row for each value.

    Attributes
    ----------
    vocabulary : Vocabulary
        The columns and their values.
    tables : list of ndarray of shape (values + 1, dimensions)
        The row of each value; the last row is that of an unknown value, the column's centroid.
    combine : {"concat", "sum"}
        Whether an object is the concatenation or the sum of its rows.
    repair : ndarray
        How far each column's Gram was from a Gram: minus its lowest eigenvalue, centred, or 0.
    own : dict of str to Own
        For columns of many values, what each has in common with no other.
    spelling : dict of str to Spelling
        For columns of many strings, how they are spelled: an unknown value then lies between those
        that are spelled like it, instead of in the centroid.
    empty : dict of str to ndarray
        For columns of sets, the row of an empty set: the centroid, of which the row of an unknown
        element lies apart.
    spread : dict of str to float
        For columns in which a missing cell is no value: how far values lie from their centroid,
        squared and on average. A missing cell is in the centroid, and so far from it on an axis of
        its own: see :meth:`with_gaps`.

    Examples
    --------
    >>> from tabweave import OneHot
    >>> tables = OneHot().fit({"color": ["red", "blue", "red", "red"]}).tables_
    >>> tables.vocabulary.labels
    (('blue', 'red'),)
    >>> tables.tables[0].tolist()
    [[1.0, 0.0], [0.0, 1.0], [0.25, 0.75]]
    """

    vocabulary: Vocabulary
    tables: list[np.ndarray]
    combine: Literal["concat", "sum"] = "concat"
    repair: np.ndarray = field(default_factory=lambda: np.zeros(0))
    own: dict[str, Own] = field(default_factory=dict)
    spelling: dict[str, Spelling] = field(default_factory=dict)
    empty: dict[str, np.ndarray] = field(default_factory=dict)
    spread: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.combine not in ("concat", "sum"):
            raise ValueError(f"expected combine to be 'concat' or 'sum', got {self.combine!r}")
        if self.combine == "sum" and len(set(self.widths)) > 1:
            raise ValueError(f"expected rows of one width to be summed, got {self.widths}")

    # -- building --------------------------------------------------------------------------

    @classmethod
    def from_features(
        cls,
        features: Sequence[np.ndarray | Factors],
        counts: Counts,
        *,
        combine: Literal["concat", "sum"] = "concat",
        compact: bool = True,
        spelling: Mapping[str, Spelling] | None = None,
    ) -> ValueTables:
        """Build from one row of features per value, or from factors; distances stay the same."""
        if len(features) != len(counts.names):
            raise ValueError(f"expected {len(counts.names)} tables, got {len(features)}")
        tables, unique = [], {}
        for name, feature in zip(counts.names, features, strict=True):
            count = counts.value_counts[counts.span(name)]
            share = count / max(count.sum(), 1e-300)
            rows = coded(feature, share)
            if len(rows) != len(count):
                raise ValueError(f"column {name!r}: expected {len(count)} rows, got {len(rows)}")
            if isinstance(feature, Factors) and feature.own.any():
                width = rows.shape[1] - feature.common.shape[1]
                unique[name] = Own(np.append(feature.own, share**2 @ feature.own), width)
            elif compact and combine == "concat":
                rows = compacted(rows)
            tables.append(np.vstack([rows, share @ rows]))
        spelled = dict(spelling or {})
        out = cls(counts.vocabulary, tables, combine, np.zeros(len(tables)), unique, spelled)
        return out.with_unknown_elements(counts) if compact and combine == "concat" else out

    def with_unknown_elements(self, counts: Counts) -> ValueTables:
        """Tables in which unknown elements of sets lie apart from the centroid.

        As far as the elements of sets do on average: on a separate axis, or, of rows that are
        summed, along the last one. Else a set of them would be like an empty set.
        """
        sets = {c.name for c in counts.schema.columns if c.is_set} if counts.schema else set()
        tables, empty = list(self.tables), dict(self.empty)
        for a, name in enumerate(self.names):
            if name not in sets or name in self.empty:
                continue
            rows, share = tables[a], counts.value_counts[counts.span(name)]
            away = ((rows[:-1] - rows[-1]) ** 2).sum(axis=1) @ share / max(share.sum(), 1e-300)
            if self.combine == "concat":
                rows = np.hstack([np.zeros((len(rows), 1)), rows])
            empty[name] = rows[-1].copy()
            tables[a] = rows = rows.copy()
            axis = 0 if self.combine == "concat" else rows.shape[1] - 1
            rows[-1, axis : axis + 1] += np.sqrt(away)
        return replace(self, tables=tables, empty=empty)

    def with_gaps(self, counts: Counts, names: Iterable[str]) -> ValueTables:
        """Tables in which a missing cell of some columns is no value.

        It is at its expected distance from every cell, as if its value had been drawn at random.
        The mean squared distance of a value v to such a draw is that to the centroid plus the mean
        squared distance of all values to it, and of two draws twice the latter. So a missing cell
        is in the centroid of the values, and as far from it on an axis that no other cell has.
        """
        tables, empty, unique, spread = list(self.tables), dict(self.empty), dict(self.own), {}
        for name in names:
            if name not in self.names:
                continue
            a = self.vocabulary.index(name)
            labels, rows = self.labels[a], tables[a].copy()
            share = counts.value_counts[counts.span(name)].astype(np.float64)
            missing = [i for i, label in enumerate(labels) if label is None]
            share[missing] = 0
            if not share.any():  # nothing is known of the column
                continue
            share /= share.sum()
            centroid, cut = share @ rows[:-1], rows.shape[1] - self._own_width(name)
            spread[name] = float(share @ ((rows[:-1] - centroid)[:, :cut] ** 2).sum(axis=1))
            rows[missing] = centroid
            if name in empty:
                empty[name] = centroid
            else:
                rows[-1] = centroid
            if name in unique:
                squares = unique[name].squares.copy()
                squares[[*missing, -1]] = share**2 @ squares[:-1]
                spread[name] += float(share @ squares[:-1] - squares[-1])
                unique[name] = replace(unique[name], squares=squares)
            tables[a] = rows
        return replace(self, tables=tables, empty=empty, own=unique, spread=spread)

    @classmethod
    def from_grams(cls, grams: Sequence[np.ndarray], counts: Counts) -> ValueTables:
        """Build from one Gram matrix per column; negative eigenvalues are clipped and reported."""
        factored = [gram_factor(gram) for gram in grams]
        out = cls.from_features([rows for rows, _ in factored], counts, compact=False)
        out.repair[:] = [excess for _, excess in factored]
        return out

    def _check_loaded(self) -> None:
        for name, labels, rows in zip(self.names, self.labels, self.tables, strict=True):
            if rows.ndim != 2 or len(rows) != len(labels) + 1:
                raise ValueError(
                    f"column {name!r}: expected rows for {len(labels)} values and an unknown one, "
                    f"got a table of shape {rows.shape}"
                )
        for name, part in self.own.items():
            rows = self.tables[self.vocabulary.index(name)]
            if part.squares.shape != rows.shape[:1] or not 0 < part.width <= rows.shape[1]:
                raise ValueError(f"column {name!r}: expected what each value has of its own")

    # -- at other times --------------------------------------------------------------------

    def shared_points(self, before: ValueTables, counts: Counts) -> list[Piece]:
        """The values that both have, now and then, by how often they were counted.

        One piece a column; two where a code word stands for what a value has of its own.
        """
        pieces = []
        for a, (name, rows) in enumerate(zip(self.names, self.tables, strict=True)):
            weight = counts.value_counts[counts.span(name)].astype(float)
            then = np.zeros((len(weight), 0))
            if name in before.names:
                b = before.names.index(name)
                index = positions(before.labels[b], self.labels[a])
                weight = np.where(index < len(before.labels[b]), weight, 0.0)
                then = before.tables[b][index]
            cut = rows.shape[1] - self._own_width(name)
            cut_then = then.shape[1] - before._own_width(name)
            pieces.append((rows[:-1, :cut], then[:, :cut_then], weight))
            if self._own_width(name):
                words = (
                    then[:, cut_then:]
                    if self._own_width(name) == before._own_width(name)
                    else then[:, :0]
                )
                pieces.append((rows[:-1, cut:], words, weight))
        return pieces

    def turned(self, turns: Sequence[Turn]) -> ValueTables:
        """Tables whose pieces are turned, in the order of :meth:`shared_points`."""
        order, tables = iter(turns), []
        for name, rows in zip(self.names, self.tables, strict=True):
            cut = rows.shape[1] - self._own_width(name)
            parts = [next(order)(rows[:, :cut])]
            if self._own_width(name):
                parts.append(next(order)(rows[:, cut:])[:, : rows.shape[1] - cut])
            tables.append(np.hstack(parts))
        return replace(self, tables=tables)

    def _own_width(self, name: str) -> int:
        return self.own[name].width if name in self.own else 0

    # -- shape -----------------------------------------------------------------------------

    @property
    def widths(self) -> list[int]:
        """Number of dimensions of each column."""
        return [table.shape[1] for table in self.tables]

    @property
    def width(self) -> int:
        """Number of dimensions of an object."""
        return max(self.widths, default=0) if self.combine == "sum" else sum(self.widths)

    def feature_names(self) -> list[str]:
        """A name for each dimension of an object."""
        if self.combine == "sum":
            return [f"dim{i}" for i in range(self.width)]
        return [
            f"{name}_{i}"
            for name, width in zip(self.names, self.widths, strict=True)
            for i in range(width)
        ]

    # -- rows ------------------------------------------------------------------------------

    def gather(
        self,
        table: Table,
        *,
        dtype: Any = np.float64,
        out: np.ndarray | None = None,
        unknown: Unknown = "centroid",
    ) -> np.ndarray:
        """The vector of each row of a table, optionally into a given array."""
        return self.coordinates(table, out=out, dtype=dtype, unknown=unknown)

    def writer(self, table: Table, dtype: np.dtype, unknown: Unknown) -> Writer:
        """Look up the rows of a table's labels; concatenate or add up those of its cells."""
        columns = self.vocabulary.find(table)
        rows = self._rows(table, unknown)
        if self.combine == "sum":
            return sum_writer(columns, rows, dtype)
        writers = [
            value_writer(c, column_rows, dtype)
            for c, column_rows in zip(columns, rows, strict=True)
        ]
        return row_writer(writers, self.widths)

    def summands(
        self, A: Table, B: Table | None = None, unknown: Unknown = "centroid"
    ) -> np.ndarray:
        """The squared distances between rows, by lookup where columns allow it."""
        return self._distances_with_gaps(self._pairwise(A, B, unknown, LabelPoints.squared), A, B)

    def kernel(self, A: Table, B: Table | None = None, unknown: Unknown = "centroid") -> np.ndarray:
        """The inner products between rows, by lookup where columns allow it."""
        return self._products_with_gaps(self._pairwise(A, B, unknown, LabelPoints.products), A, B)

    def _pairwise(
        self, A: Table, B: Table | None, unknown: Unknown, compare: Comparison
    ) -> np.ndarray:
        """What ``compare`` gives of points, for each row of A and of B: sums over columns."""
        B = A if B is None else B
        if self.combine == "sum":
            left = LabelPoints.of(self.coordinates(A, unknown=unknown))
            right = left if B is A else LabelPoints.of(self.coordinates(B, unknown=unknown))
            return compare(left, right)
        pairs = list(zip(self.vocabulary.find(A), self.vocabulary.find(B), strict=True))
        chosen = [a for a, pair in enumerate(pairs) if self._is_small(a, pair)]
        out: np.ndarray = np.zeros((A.n_rows, B.n_rows))
        if chosen:
            part = self.select([self.names[a] for a in chosen])
            left_codes = part.codes(A, unknown=unknown)
            right_codes = left_codes if B is A else part.codes(B, unknown=unknown)
            points = map(LabelPoints.of, part.tables)
            out = lookup_sum(left_codes, right_codes, [compare(rows, rows) for rows in points])
        for a in sorted(set(range(len(pairs))) - set(chosen)):  # too many for a table of pairs
            one = self._single(self.names[a])
            left = one._row_points(A, unknown)
            right = left if B is A else one._row_points(B, unknown)
            for block in slices(len(out), 1, 512):
                out[block] += compare(left.take(block), right)
        return out

    def _is_small(self, a: int, pair: Sequence[Codes | Sets]) -> bool:
        """Tell whether a column is compared through a table of all pairs of its values."""
        single = not any(column.is_set for column in pair)
        is_plain = self.names[a] not in self.own and self.names[a] not in self.spelling
        return single and is_plain and len(self.tables[a]) <= 1024

    def _row_points(self, table: Table, unknown: Unknown) -> LabelPoints:
        """Rows as points of the one column there is."""
        column = table[self.names[0]]
        if column.is_set:
            return LabelPoints.of(self.coordinates(table, unknown=unknown))
        return self.locate(column, unknown).take(column.codes)

    def contributions(self, A: Table, B: Table) -> np.ndarray:
        """Each column's share in the squared distance of row i of A and row i of B.

        The shares of a row add up to the squared distance. Under ``sum`` a share may be negative:
        the column's difference points against the total one.
        """
        return np.stack(list(self.shares(A, B).values()), axis=1)

    def split(self, table: Table, unknown: Unknown = "centroid") -> dict[str, np.ndarray]:
        """What each column adds to the sum, or brings on its own."""
        alone = {name: self._single(name) for name in self.names}
        return {name: one.coordinates(table, unknown=unknown) for name, one in alone.items()}

    def gaps(self, table: Table) -> dict[str, np.ndarray]:
        """By column what missing cells add to squared distances."""
        out = {}
        for name, spread in self.spread.items():
            column = table[name]
            if None not in column.labels:
                continue
            missing = column.codes == column.labels.index(None)
            if column.is_set:
                rows = np.searchsorted(column.starts, np.flatnonzero(missing), "right") - 1
                missing = np.bincount(rows, minlength=table.n_rows)
            if missing.any():
                out[name] = spread * missing
        return out

    def label_gaps(self, column: Codes | Sets) -> np.ndarray:
        """What a missing label adds to squared distances, for each label."""
        spread = self.spread.get(self.names[0], 0.0)
        return np.array([spread if label is None else 0.0 for label in column.labels])

    # -- values ----------------------------------------------------------------------------

    def codes(self, table: Table, *, unknown: Unknown = "centroid") -> list[np.ndarray]:
        """The codes of a table's single-valued columns in this vocabulary."""
        return self.vocabulary.codes(table, unknown)

    def points(self, column: Codes | Sets, unknown: Unknown = "centroid") -> np.ndarray:
        """The rows of the labels of the one column there is, and the unknown row last."""
        index = value_index(self.vocabulary, column, unknown)
        return self._label_rows(0, column.labels, index)

    def locate(self, column: Codes | Sets, unknown: Unknown = "centroid") -> LabelPoints:
        """The points of a column's labels, of many values without code words."""
        index = value_index(self.vocabulary, column, unknown)
        rows, gaps = self._label_rows(0, column.labels, index)[:-1], self.label_gaps(column)
        unique = self.own.get(self.names[0])
        if unique is None:
            return LabelPoints(rows, gaps)
        lengths, values = np.sqrt(unique.squares[index]), index.copy()
        new, near, weights = self._spelled(0, column.labels, index)
        lengths[new] = weights.sum(axis=1) * np.sqrt(unique.squares[near[:, 0]])
        values[new] = near[:, 0]
        return LabelPoints(rows[:, : -unique.width], gaps, 2, lengths, values)

    def squares(self) -> list[np.ndarray]:
        """The squared distances of the values of each column, an unknown one last."""
        out = []
        for name, labels, rows in zip(self.names, self.labels, self.tables, strict=True):
            gaps = np.array([label is None for label in (*labels, "unknown")], float)
            points = LabelPoints(rows, self.spread.get(name, 0.0) * gaps)
            if (unique := self.own.get(name)) is not None:
                lengths, values = np.sqrt(unique.squares), np.arange(len(rows))
                points = replace(
                    points, points=rows[:, : -unique.width], lengths=lengths, values=values
                )
            out.append(points.squared(points) + points.gaps[:, None] + points.gaps)
        return out

    def inertia(self, counts: Counts) -> float:
        """The variance of the rows that were counted."""
        rows = [table[:-1] for table in self.tables]
        if self.combine == "sum":
            stacked = np.vstack(rows)
            return float((stacked * centred_product(counts, stacked)).sum() / counts.n)
        total = 0.0
        for a, table in enumerate(rows):
            share = counts.value_counts[counts.span(a)]
            share = share / share.sum()
            if (unique := self.own.get(self.names[a])) is not None:
                table = table[:, : -unique.width]
                total += float(share @ unique.squares[:-1] - unique.squares[-1])
            total += float(share @ (table - share @ table) ** 2 @ np.ones(table.shape[1]))
        return total

    def scaled(self, factors: np.ndarray) -> ValueTables:
        """Tables whose distances are multiplied, by a factor for each column."""
        by_name = dict(zip(self.names, factors, strict=True))
        unique = {n: replace(o, squares=by_name[n] ** 2 * o.squares) for n, o in self.own.items()}
        tables = [factor * rows for factor, rows in zip(factors, self.tables, strict=True)]
        empty = {name: by_name[name] * row for name, row in self.empty.items()}
        spread = {name: float(by_name[name] ** 2 * x) for name, x in self.spread.items()}
        return replace(self, tables=tables, own=unique, empty=empty, spread=spread)

    def _rows(self, table: Table, unknown: Unknown) -> list[np.ndarray]:
        """Return, per column, the rows of the table's own labels, and the unknown row last."""
        columns = zip(
            self.vocabulary.find(table), self.vocabulary.positions(table, unknown), strict=True
        )
        return [self._label_rows(a, column.labels, i) for a, (column, i) in enumerate(columns)]

    def _label_rows(self, a: int, labels: Sequence[Label], index: np.ndarray) -> np.ndarray:
        """The rows of labels that are found at an index, and that of an empty set last.

        An unknown string of a column with spelling lies between those that are spelled like it; of
        the one most alike it also has the code word, in part.
        """
        rows = self.tables[a]
        out = rows[np.append(index, len(rows) - 1)]
        out[-1] = self.empty.get(self.names[a], out[-1])
        new, near, weights = self._spelled(a, labels, index)
        if not len(new):
            return out
        trust = weights.sum(axis=1, keepdims=True)
        out[new] *= 1 - trust
        for nearest, weight in zip(near.T, weights.T, strict=True):
            out[new] += weight[:, None] * rows[nearest]
        if self.names[a] in self.own:
            width = self.own[self.names[a]].width
            out[new, -width:] = trust * rows[near[:, 0], -width:]
        return out

    def _spelled(
        self, a: int, labels: Sequence[Label], index: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Which labels are unknown strings, and between which values these lie, and how."""
        new: list[int] = []
        if self.names[a] in self.spelling:
            unknown = np.flatnonzero(index == len(self.tables[a]) - 1).tolist()
            new = [i for i in unknown if labels[i] is not None and type(labels[i]) is not Bucket]
        if not new:
            return np.zeros(0, np.intp), np.zeros((0, 1), np.intp), np.zeros((0, 1))
        return np.array(new), *self.spelling[self.names[a]].between([labels[i] for i in new])

    # -- columns ---------------------------------------------------------------------------

    def select(self, names: Sequence[str]) -> ValueTables:
        """The tables of some columns, in the order given."""
        chosen = [self.vocabulary.index(name) for name in names]
        repair = self.repair[chosen] if len(self.repair) else self.repair
        tables = [self.tables[a] for a in chosen]
        unique = {name: self.own[name] for name in names if name in self.own}
        spelling = {name: self.spelling[name] for name in names if name in self.spelling}
        empty = {name: self.empty[name] for name in names if name in self.empty}
        spread = {name: self.spread[name] for name in names if name in self.spread}
        columns = self.vocabulary.select(names)
        return ValueTables(columns, tables, self.combine, repair, unique, spelling, empty, spread)

    def only(self, names: Iterable[str]) -> ValueTables | None:
        """What is left if some columns count only."""
        chosen = set(names) & set(self.names)
        return self.select([name for name in self.names if name in chosen]) if chosen else None

    @property
    def by_value(self) -> bool:
        """Whether there is one column, whose values have points of their own."""
        return len(self.tables) == 1

    def parts(self) -> list[Space]:
        """The tables of each column, unless they are summed."""
        if self.combine == "sum" or len(self.tables) == 1:
            return [self]
        return [self._single(name) for name in self.names]

    def _single(self, name: str) -> ValueTables:
        return replace(self.select([name]), combine="concat")

    def export(self, unknown: Unknown = "centroid") -> list[Step]:
        """A lookup for each column, or their sum."""
        steps = [self._lookup(a, unknown) for a in range(len(self.tables))]
        return [Sum(tuple(steps))] if self.combine == "sum" else list(steps)

    def _lookup(self, a: int, unknown: Unknown) -> Lookup:
        name, labels, rows = self.names[a], self.labels[a], self.tables[a]
        rule = self.vocabulary.buckets.get(name)
        if isinstance(rule, int):
            raise ValueError(
                f"column {name!r} was counted in hashed buckets, which a lookup table cannot "
                f"name; count "
                "it with other='frequency', or keep the embedder with tabweave.export.save"
            )
        unknown_row = None if unknown == "error" else rows[-1]
        missing = rows[labels.index(None)] if None in labels else self.empty.get(name, unknown_row)
        if name in self.spelling:  # where an unknown string lies, no lookup can say
            unknown_row = None
        if rule is not None:  # as in transform: what is not named is in the bucket
            unknown_row = rows[labels.index(Bucket())]
        named = [i for i, v in enumerate(labels) if v is not None and not isinstance(v, Bucket)]
        return Lookup(name, tuple(labels[i] for i in named), rows[named], missing, unknown_row)


@storable
@dataclass(frozen=True, eq=False)
class Own:
    """What each value of a column has in common with no other.

    Attributes
    ----------
    squares : ndarray of shape (values + 1,)
        Its squared length; that of an unknown value is last.
    width : int
        How many of the last coordinates of a row stand for it, by a code word.
    """

    squares: np.ndarray
    width: int


class Dissimilarities(Space):
    """Columns compared by tables over their values, where vectors say it nearly at best.

    Distances are sums of table entries, or their roots. Coordinates are those of ``vectors``.

    Parameters
    ----------
    vocabulary : Vocabulary
        The columns and their values.
    tables : callable
        Returns, per column, the dissimilarities of its values, an unknown one last; called when
        first needed, and may raise.
    vectors : callable
        Returns the value tables of the vectors.
    root : bool
        Whether distances are roots of sums.
    """

    names: list[str]

    def __init__(
        self,
        vocabulary: Vocabulary,
        tables: Callable[[], list[np.ndarray]],
        vectors: Callable[[], ValueTables],
        *,
        root: bool = False,
    ) -> None:
        self.vocabulary, self.root = vocabulary, root
        self.names = list(vocabulary.names)
        self.tables, self.vectors = cache(tables), cache(vectors)

    @property
    def width(self) -> int:
        """Number of coordinates."""
        return self.vectors().width

    @property
    def by_value(self) -> bool:
        """Whether there is one column."""
        return len(self.names) == 1

    def feature_names(self) -> list[str]:
        """A name for each dimension of the vectors."""
        return self.vectors().feature_names()

    def export(self, unknown: Unknown = "centroid") -> list[Step]:
        """The lookups of the vectors."""
        return self.vectors().export(unknown)

    def writer(self, table: Table, dtype: np.dtype, unknown: Unknown) -> Writer:
        """Look up the vectors."""
        return self.vectors().writer(table, dtype, unknown)

    def parts(self) -> list[Space]:
        """Each column on its own."""
        return [self] if self.by_value else [self._single(a) for a in range(len(self.names))]

    def _single(self, a: int) -> Dissimilarities:
        alone = self.vocabulary.select([self.names[a]])
        return Dissimilarities(
            alone,
            lambda: [self.tables()[a]],
            lambda: self.vectors().select(alone.names),
            root=self.root,
        )

    def only(self, names: Iterable[str]) -> Space | None:
        """What is left if some columns count only."""
        allowed = set(names)
        chosen = [part for part in self.parts() if part.names[0] in allowed]
        return Joined(chosen) if chosen else None

    def summands(
        self, A: Table, B: Table | None = None, unknown: Unknown = "centroid"
    ) -> np.ndarray:
        """The sums of dissimilarities between rows."""
        left_codes = self.vocabulary.codes(A, unknown)
        if B is not None and B is not A:
            return lookup_sum(left_codes, self.vocabulary.codes(B, unknown), self.tables())
        out = lookup_sum(left_codes, left_codes, self.tables())
        np.fill_diagonal(out, 0)  # two missing cells are apart, a row and itself are not
        return out

    def kernel(self, A: Table, B: Table | None = None, unknown: Unknown = "centroid") -> np.ndarray:
        """The inner products between the vectors."""
        return self.vectors().kernel(A, B, unknown)

    # -- values ----------------------------------------------------------------------------

    def points(self, column: Codes | Sets, unknown: Unknown = "centroid") -> np.ndarray:
        """The vectors of the labels of the one column there is, the unknown one last."""
        return self.vectors().points(column, unknown)

    def locate(self, column: Codes | Sets, unknown: Unknown = "centroid") -> TabledLabels:
        """Where a column's labels stand in the one table there is."""
        index = value_index(self.vocabulary, column, unknown)
        return TabledLabels(index, self.tables()[0], np.zeros(len(index)))


@dataclass(frozen=True, eq=False)
class TabledLabels(Labels):
    """Labels that a table of all pairs of values compares."""

    index: np.ndarray
    table: np.ndarray
    gaps: np.ndarray

    def take(self, labels: Any) -> TabledLabels:
        """Some of the labels."""
        return TabledLabels(self.index[labels], self.table, self.gaps[labels])

    def between(self, other: TabledLabels) -> np.ndarray:
        """The dissimilarities of labels."""
        return self.table[np.ix_(self.index, other.index)]

    def opposite(self, other: TabledLabels) -> np.ndarray:
        """The dissimilarities of those that are opposite."""
        return self.table[self.index, other.index]


def value_index(vocabulary: Vocabulary, column: Codes | Sets, unknown: Unknown) -> np.ndarray:
    """Where the labels of a column stand among the values of the one column there is."""
    ((name, labels),) = zip(vocabulary.names, vocabulary.labels, strict=True)
    index = positions(labels, column.labels)
    if unknown == "error":
        check_seen(name, index == len(labels), column)
    return index


def lookup_sum(
    left: Sequence[np.ndarray], right: Sequence[np.ndarray], tables: Sequence[np.ndarray]
) -> np.ndarray:
    """The matrix with entries ``sum_a tables[a][left[a][i], right[a][j]]``."""
    out = np.empty((len(left[0]), len(right[0])))
    return sum_of_lookups(left, right, [np.asarray(t, np.float64) for t in tables], out)


@compiled
def _sum_lookups(
    left: np.ndarray,
    right: np.ndarray,
    starts: np.ndarray,
    widths: np.ndarray,
    tables: np.ndarray,
    joint: np.ndarray,
    out: np.ndarray,
) -> None:
    """Add up, for each pair of rows, one table entry per group of columns."""
    n_groups = len(widths)
    lookup = np.empty(joint.max(), tables.dtype)
    for i in range(left.shape[1]):
        row = out[i]
        row[:] = 0
        for g in range(n_groups):
            # The entries that this left row can meet, over all joint codes of the group.
            width = widths[g]
            size = 1
            lookup[0] = 0
            for c in range(len(width)):
                if width[c] == 0:
                    break
                base = starts[g, c] + left[g * width.shape[0] + c, i] * width[c]
                for a in range(size - 1, -1, -1):
                    start = lookup[a]
                    for b in range(width[c]):
                        lookup[a * width[c] + b] = start + tables[base + b]
                size *= width[c]
            codes = right[g]
            for k in range(len(codes)):
                row[k] += lookup[codes[k]]


def sum_of_lookups(
    left: Sequence[np.ndarray],
    right: Sequence[np.ndarray],
    tables: Sequence[np.ndarray],
    out: np.ndarray,
) -> np.ndarray:
    """Set ``out[i, j]`` to the sum over columns a of ``tables[a][left[a][i], right[a][j]]``.

    Columns with few values are joined on the right side, so that one load serves several of them.
    The order of adding depends on the tables only, never on rows, blocks or threads.
    """
    sizes = [table.shape[1] for table in tables]
    groups = group_columns(sizes)
    longest = max(map(len, groups))
    widths = np.zeros((len(groups), longest), np.int64)
    starts = np.zeros((len(groups), longest), np.int64)
    flat = np.concatenate([np.ascontiguousarray(t).ravel() for t in tables])
    begin = np.concatenate([[0], np.cumsum([t.size for t in tables])])
    n_left, n_right = out.shape
    index = np.zeros((len(groups) * longest, n_left), np.uint32)
    joined = np.zeros((len(groups), n_right), np.uint32)
    for g, group in enumerate(groups):
        for c, column in enumerate(group):
            widths[g, c], starts[g, c] = sizes[column], begin[column]
            index[g * longest + c] = left[column]
            joined[g] = joined[g] * np.uint32(sizes[column]) + right[column]
    joint = np.where(widths > 0, widths, 1).prod(axis=1)

    def work(block: tuple[slice, slice]) -> None:
        rows, columns = block
        part = np.ascontiguousarray(joined[:, columns])
        _sum_lookups(index[:, rows], part, starts, widths, flat, joint, out[rows, columns])

    # Enough right rows at a time to repay building the joint tables, few enough for the cache.
    in_threads(work, list(product(slices(n_left, 1, 256), slices(n_right, 1, 1 << 12))))
    return out


def coded(features: np.ndarray | Factors, f: np.ndarray) -> np.ndarray:
    """A row for each value: what it has in common, and a code word for its own.

    Frequent values get the first words, which are orthogonal.
    """
    if not isinstance(features, Factors):
        return features
    if not features.own.any():
        return features.common
    width = MAX_COORDINATES if features.common.shape[1] < N_COMMON else MAX_COORDINATES - N_COMMON
    words = np.empty((len(f), width))
    words[np.argsort(-f, kind="stable")] = code_words(len(f), width)
    return np.hstack([features.common, np.sqrt(features.own)[:, None] * words])


def code_words(n: int, width: int) -> np.ndarray:
    """``n`` different words of length 1, nearly orthogonal: the dual of a BCH code.

    Word i has entries ``±1/√q``, q the width and a power of 2: ``(-1)^Tr(a x + b x³ + c x⁵ + ...)``
    at the elements x of GF(q), where a, b, c, ... are the digits of i to the base q. By Weil's
    bound the inner products of two words are at most ``(d - 1)/√q`` in size, d = 1, 3, 5, 7 the
    highest power with a digit: with 64 entries 0 for the first 64 words, ¼ for 4,096, ½ for
    262,144 and ¾ for 16,777,216.
    """
    if n > width**4:
        raise ValueError(f"expected at most {width**4} values in a column, got {n}")
    x = np.arange(width)
    trace = field_traces(width)
    bits = trace[np.arange(n) % width]
    power, digits = x, np.arange(n) // width
    while digits.any():
        power = field_product(field_product(power, x, width), x, width)
        bits = bits ^ trace[digits % width][:, power]
        digits //= width
    return (1 - 2.0 * bits) / np.sqrt(width)


_MODULI = {64: 0b1000011, 128: 0b10000011}  # irreducible: x⁶ + x + 1, x⁷ + x + 1


def field_product(a: np.ndarray, b: np.ndarray, size: int) -> np.ndarray:
    """The products of elements of GF(2^m), polynomials over bits by a modulus."""
    a, b = (part.copy() for part in np.broadcast_arrays(a, b))
    out = np.zeros_like(a)
    while b.any():
        out ^= np.where(b & 1, a, 0)
        a, b = a << 1, b >> 1
        a = np.where(a & size, a ^ _MODULI[size], a)
    return out


@cache
def field_traces(size: int) -> np.ndarray:
    """The trace ``y + y² + y⁴ + ...``, which is a bit, of any product y of two elements."""
    x = np.arange(size)
    power = field_product(x[:, None], x[None], size)
    total = power.copy()
    for _ in range(size.bit_length() - 2):
        power = field_product(power, power, size)
        total ^= power
    return total


def compacted(features: np.ndarray) -> np.ndarray:
    """Rows with the same pairwise distances in at most V - 1 dimensions.

    The singular vectors of the centred features: rotating and shifting changes no distance, and
    centred rows of V values span at most V - 1 dimensions.
    """
    if not features.size:
        return np.zeros((len(features), 0))
    centred = features - features.mean(axis=0)
    with one_blas_thread():
        u, s, _ = np.linalg.svd(centred, full_matrices=False)
    keep = s > max(centred.shape) * np.finfo(float).eps * s[0]
    keep[len(features) - 1 :] = False
    return fix_signs(u[:, keep]) * s[keep]


def along_values(features: np.ndarray | Factors) -> np.ndarray | Factors:
    """Rows with the same pairwise distances along one axis for each value.

    Of all such rows those that are nearest to one-hot: the symmetric square root of the centred
    Gram, plus a constant that no distance sees. They are one-hot where all values are equally far
    from each other, and do not turn when distances change a little, as singular vectors do. Rows
    that span fewer than V - 1 dimensions, or belong to more than 128 values, get the axes of
    :func:`compacted`; code words keep theirs.
    """
    if isinstance(features, Factors):
        if features.own.any():
            return features
        features = features.common
    rows = compacted(features)
    n = len(rows)
    if not 3 <= n <= MAX_COORDINATES or rows.shape[1] < n - 1:
        return rows
    lengths = np.linalg.norm(rows, axis=0)
    root = (rows / lengths) @ rows.T
    root = (root + root.T) / 2 + lengths.mean() / n
    root[np.abs(root) < 1e-12 * np.abs(root).max()] = 0  # what a tree would split on
    return root


def gram_factor(gram: np.ndarray) -> tuple[np.ndarray, float]:
    """Rows whose inner products are the centred Gram, and how much had to be repaired.

    Negative eigenvalues, which no set of vectors can have, are set to 0; the second result is the
    size of the lowest one. It is taken on the centred Gram because the constant direction, which
    no distance sees, would hide it.
    """
    gram = np.asarray(gram, dtype=np.float64)
    if not len(gram):
        return np.zeros((0, 0)), 0.0
    centred = gram - gram.mean(axis=0)
    centred = centred - centred.mean(axis=1, keepdims=True)
    values, vectors = eigh(centred)
    noise = len(values) * np.finfo(float).eps * np.abs(values).max()
    keep = values > noise
    keep[0] = False  # the constant direction, or below 0
    excess = float(max(0.0, -values[0])) if values[0] < -10 * noise else 0.0
    return vectors[:, keep] * np.sqrt(values[keep]), excess
