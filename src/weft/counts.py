"""Counts: everything weft learns from, in a form that adds up.

Rows are seen once. ``Counts.of`` numbers how often each value, each pair of values of two columns
and each value with each class occur, and keeps exact moments of numeric columns. The result is an
Abelian group under ``+`` and ``-``: chunks, partitions and windows are combined or forgotten
exactly, in any order, and ``Counts()`` is zero.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from os import PathLike
from typing import Any, cast

import numpy as np
from scipy import sparse

from weft import _labels, _moments, _persist
from weft._counting import DENSE_VALUES, count_pairs, tidy
from weft._labels import Label
from weft.table import Codes, Column, Numbers, Schema, Sets, Table

Matrix = Any  # np.ndarray or scipy.sparse.csr_array


@dataclass(frozen=True, eq=False, repr=False)
class Counts:
    """How often values, pairs of values, and values with classes occur.

    Build one with :meth:`Counts.of`; add, subtract and compare them freely. Values are those that
    occur, in canonical order; V is their total number over all categorical columns.

    Attributes
    ----------
    schema : Schema or None
        The columns; None for zero.
    n : int or float
        Number of rows, or their total weight.
    labels : tuple of tuples
        The values of each categorical column.
    pairs : ndarray or scipy.sparse.csr_array of shape (V, V)
        In how many rows two values meet; value counts on the diagonal. Sparse when V > 2048.
    classes : tuple or None
        The class labels, if rows were counted with ``y``.
    class_pairs : ndarray of shape (V, number of classes)
        In how many rows a value meets a class.
    class_n : ndarray
        Number of rows of each class.
    digits : ndarray
        Exact moments of the numeric columns; read them through :meth:`moments`.

    Examples
    --------
    >>> from weft import Counts, Table
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
    labels: tuple[tuple[Label, ...], ...] = ()
    pairs: Matrix = None
    classes: tuple[Label, ...] | None = None
    class_pairs: np.ndarray | None = None
    class_n: np.ndarray | None = None
    digits: np.ndarray | None = None

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
        weight = _checked_weight(sample_weight, table.n_rows)
        n = table.n_rows if weight is None else weight.sum().item()
        if not n:
            return cls()
        valued = [c for c, _ in table if c.kind != "numeric"]
        columns = [cast(Codes | Sets, data) for c, data in table if c.kind != "numeric"]
        if y is not None:
            columns.append(_class_column(y, table.n_rows))
        pairs = count_pairs(columns, weight) if columns else np.zeros((0, 0), np.int64)
        numeric = [data.values for _, data in table if isinstance(data, Numbers)]
        counts = cls(
            schema=table.schema,
            n=n,
            labels=tuple(tuple(data.labels) for data in columns),
            pairs=pairs,
            digits=_add_up(numeric, weight),
        )
        levels = [c.levels for c in valued] + [None] * (y is not None)
        return _split_class(_canonical(counts, levels), y is not None)

    # -- the group -------------------------------------------------------------------------

    def __add__(self, other: Counts) -> Counts:
        if not isinstance(other, Counts):
            return NotImplemented
        return self._combine(other, 1)

    def __sub__(self, other: Counts) -> Counts:
        if not isinstance(other, Counts):
            return NotImplemented
        return self._combine(other, -1)

    def _combine(self, other: Counts, sign: int) -> Counts:
        if other.schema is None:
            return self
        if self.schema is None:
            if sign < 0:
                raise ValueError(f"cannot take {other.n} rows from none")
            return other
        _same_columns(self, other)
        other = other.select(self.schema.names)
        n = self.n + sign * other.n
        if sign < 0 and abs(n) <= _noise(self):
            n = 0
        labels = tuple(
            tuple(_labels.union(a, b)) for a, b in zip(self.labels, other.labels, strict=True)
        )
        classes = None
        if self.classes is not None and other.classes is not None:
            classes = tuple(_labels.union(self.classes, other.classes))
        mine, theirs = _spread(self, labels, classes), _spread(other, labels, classes)
        merged = replace(
            self,
            n=n,
            labels=labels if classes is None else (*labels, classes),
            pairs=mine + sign * theirs,
            classes=None,
            class_pairs=None,
            class_n=None,
            digits=_moments.carry(
                cast(np.ndarray, self.digits) + sign * cast(np.ndarray, other.digits)
            ),
        )
        if sign < 0:
            _refuse_negative(merged)
        if n == 0:
            return Counts()
        levels = [c.levels for c in self.schema.categorical] + [None] * (classes is not None)
        return _split_class(_canonical(merged, levels), classes is not None)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Counts):
            return NotImplemented
        if self.schema is None or other.schema is None:
            return self.schema is other.schema
        if {c.name: c for c in self.schema.columns} != {c.name: c for c in other.schema.columns}:
            return False
        other = other.select(self.schema.names)
        same = (self.n, self.labels, self.classes) == (other.n, other.labels, other.classes)
        same = same and _labels_identical(self, other) and _equal(self.pairs, other.pairs)
        return bool(
            same
            and np.array_equal(cast(np.ndarray, self.digits), cast(np.ndarray, other.digits))
            and (self.classes is None or _equal(self.class_pairs, other.class_pairs))
            and (self.classes is None or _equal(self.class_n, other.class_n))
        )

    __hash__ = None  # type: ignore[assignment]

    # -- reading ---------------------------------------------------------------------------

    @property
    def names(self) -> list[str]:
        """Names of the categorical columns."""
        return [] if self.schema is None else [c.name for c in self.schema.categorical]

    @property
    def sizes(self) -> np.ndarray:
        """Number of values of each categorical column."""
        return np.array([len(labels) for labels in self.labels], dtype=np.intp)

    @property
    def offsets(self) -> np.ndarray:
        """Where each categorical column starts among the V values; V comes last."""
        return np.concatenate([[0], np.cumsum(self.sizes)])

    @property
    def value_counts(self) -> np.ndarray:
        """Number of rows that have each of the V values."""
        return np.asarray(self.pairs.diagonal())

    def span(self, column: str | int) -> slice:
        """Return the places of a categorical column (name or number) among the V values."""
        i = column if isinstance(column, int | np.integer) else self._index(column)
        offsets = self.offsets
        return slice(int(offsets[i]), int(offsets[i + 1]))

    def block(self, a: str | int, b: str | int) -> np.ndarray:
        """Return the table of values of column a against values of column b."""
        part = self.pairs[self.span(a), self.span(b)]
        return part.toarray() if sparse.issparse(part) else part

    def moments(self, column: str) -> tuple[int | float, float, float]:
        """Return (how many numbers, mean, population variance) of a numeric column."""
        names = [c.name for c in self.schema.numeric] if self.schema else []
        if column not in names:
            raise KeyError(f"{column!r} is no numeric column; there are {names}")
        digits = cast(np.ndarray, self.digits)[names.index(column)]
        count = _moments.exact(digits[0])
        whole = int(count) if digits.dtype.kind == "i" else float(count)
        return whole, *_moments.mean_and_variance(digits)

    def _index(self, name: str) -> int:
        try:
            return self.names.index(name)
        except ValueError:
            raise KeyError(f"{name!r} is no categorical column; there are {self.names}") from None

    def select(self, columns: Iterable[str]) -> Counts:
        """Return the counts of some columns, in the order given."""
        columns = [columns] if isinstance(columns, str) else list(columns)
        if self.schema is None or columns == self.schema.names:
            return self
        schema = self.schema.select(columns)
        chosen = [self._index(c.name) for c in schema.categorical]
        old = [c.name for c in self.schema.numeric]
        numeric = [old.index(c.name) for c in schema.numeric]
        values = np.concatenate(
            [np.zeros(0, np.intp), *(np.arange(s.start, s.stop) for s in map(self.span, chosen))]
        )
        return replace(
            self,
            schema=schema,
            labels=tuple(self.labels[i] for i in chosen),
            pairs=tidy(self.pairs[values][:, values]),
            class_pairs=None if self.class_pairs is None else self.class_pairs[values],
            digits=cast(np.ndarray, self.digits)[numeric],
        )

    def __repr__(self) -> str:
        if self.schema is None:
            return "Counts()"
        classes = "" if self.classes is None else f", {len(self.classes)} classes"
        return (
            f"Counts({self.n} rows, {len(self.schema)} columns, {self.offsets[-1]} values{classes})"
        )

    # -- files -----------------------------------------------------------------------------

    def save(self, path: str | PathLike[str]) -> None:
        """Write to one file, without pickle; the file appears whole or not at all."""
        header = {
            "schema": None if self.schema is None else _schema_to_json(self.schema),
            "n": self.n,
            "labels": [[_labels.to_json(v) for v in labels] for labels in self.labels],
            "classes": self.classes and [_labels.to_json(v) for v in self.classes],
        }
        arrays: dict[str, np.ndarray] = {}
        if sparse.issparse(self.pairs):
            arrays |= {k: getattr(self.pairs, k) for k in ("data", "indices", "indptr")}
        elif self.pairs is not None:
            arrays["pairs"] = self.pairs
        for name in ("class_pairs", "class_n", "digits"):
            if getattr(self, name) is not None:
                arrays[name] = getattr(self, name)
        _persist.write(path, "counts", header, arrays)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Counts:
        """Read what :meth:`save` wrote."""
        header, arrays = _persist.read(path, "counts")
        if header["schema"] is None:
            return cls()
        labels = tuple(tuple(map(_labels.from_json, column)) for column in header["labels"])
        n_values = sum(map(len, labels))
        pairs = arrays.get("pairs")
        if "indptr" in arrays:
            parts = (arrays["data"], arrays["indices"], arrays["indptr"])
            pairs = sparse.csr_array(parts, shape=(n_values, n_values))
        if pairs is None or pairs.shape != (n_values, n_values):
            raise ValueError(f"{path}: the pair counts do not fit {n_values} values")
        return cls(
            schema=_schema_from_json(header["schema"]),
            n=header["n"],
            labels=labels,
            pairs=pairs,
            classes=header["classes"] and tuple(map(_labels.from_json, header["classes"])),
            class_pairs=arrays.get("class_pairs"),
            class_n=arrays.get("class_n"),
            digits=arrays.get("digits"),
        )


def _checked_weight(sample_weight: Any, n_rows: int) -> np.ndarray | None:
    if sample_weight is None:
        return None
    weight = np.asarray(sample_weight)
    if weight.ndim == 0:
        weight = np.full(n_rows, weight)
    if weight.shape != (n_rows,):
        raise ValueError(f"sample_weight.shape == {weight.shape}, expected {(n_rows,)}!")
    weight = weight.astype(np.int64 if weight.dtype.kind in "biu" else np.float64)
    bad = np.flatnonzero(~np.isfinite(weight) | (weight < 0))
    if len(bad):
        raise ValueError(f"sample_weight of row {bad[0]} is {weight[bad[0]]}; use a number >= 0")
    return weight


def _class_column(y: Any, n_rows: int) -> Codes:
    named = Table.of({"y": y}, numbers="nominal")["y"]
    if len(named.codes) != n_rows:
        raise ValueError(f"y has {len(named.codes)} labels for {n_rows} rows")
    if None in named.labels and (named.codes == named.labels.index(None)).any():
        row = np.flatnonzero(named.codes == named.labels.index(None))[0]
        raise ValueError(f"y of row {row} is missing; drop the row or give it a class")
    return named


def _add_up(numeric: Sequence[np.ndarray], weight: np.ndarray | None) -> np.ndarray:
    dtype = np.int64 if weight is None else weight.dtype
    out = np.zeros((len(numeric), 3, _moments.DIGITS), dtype)
    for i, values in enumerate(numeric):
        out[i] = _moments.add_up(values, weight)
    return out


def _canonical(counts: Counts, levels: Sequence[tuple[Label, ...] | None]) -> Counts:
    """Drop values that do not occur and put the others in order, whatever order they came in."""
    present = counts.value_counts > _noise(counts)
    kept = [np.zeros(0, np.intp)]
    labels: list[tuple[Label, ...]] = []
    for start, column, order in zip(counts.offsets, counts.labels, levels, strict=False):
        places = np.array([i for i in range(len(column)) if present[start + i]], dtype=np.intp)
        own = [column[i] for i in places]
        _refuse_unlevelled(counts, len(labels), own, order)
        permutation = _labels.order(own, order)
        kept.append(start + places[permutation])
        labels.append(tuple(own[i] for i in permutation))
    values = np.concatenate(kept)
    pairs = counts.pairs
    if not np.array_equal(values, np.arange(pairs.shape[0])):
        pairs = pairs[values][:, values]
    return replace(counts, labels=tuple(labels), pairs=tidy(pairs))


def _refuse_unlevelled(
    counts: Counts, column: int, labels: Sequence[Label], levels: tuple[Label, ...] | None
) -> None:
    if levels is None:
        return
    known = {_labels.identity(level) for level in levels} | {_labels.identity(None)}
    odd = [label for label in labels if _labels.identity(label) not in known]
    if odd:
        name = cast(Schema, counts.schema).categorical[column].name
        raise ValueError(f"column {name!r}: {odd[0]!r} is none of its levels {list(levels)}")


def _split_class(counts: Counts, has_class: bool) -> Counts:
    """Take the last column of the pairs out as the class."""
    if not has_class:
        return counts
    *labels, classes = counts.labels
    v = sum(map(len, labels))
    rest = counts.pairs[:v][:, v:]
    return replace(
        counts,
        labels=tuple(labels),
        pairs=tidy(counts.pairs[:v][:, :v]),
        classes=classes,
        class_pairs=rest.toarray() if sparse.issparse(rest) else np.ascontiguousarray(rest),
        class_n=np.asarray(counts.pairs.diagonal())[v:],
    )


def _spread(
    counts: Counts, labels: Sequence[Sequence[Label]], classes: Sequence[Label] | None
) -> Matrix:
    """Return the pairs (classes last) over a larger vocabulary."""
    pairs, own = counts.pairs, list(counts.labels)
    wanted = list(labels)
    if classes is not None:
        corner = sparse.csr_array(np.diag(cast(np.ndarray, counts.class_n)))
        side = sparse.csr_array(counts.class_pairs)
        pairs = sparse.block_array(
            [[sparse.csr_array(pairs), side], [side.T, corner]], format="csr"
        )
        own, wanted = [*own, cast(tuple, counts.classes)], [*wanted, classes]
    starts = np.concatenate([[0], np.cumsum([len(w) for w in wanted])])
    places = np.concatenate(
        [np.zeros(0, np.intp)]
        + [s + _labels.positions(w, o) for s, w, o in zip(starts, wanted, own, strict=False)]
    )
    size = int(starts[-1])
    if size > DENSE_VALUES and not sparse.issparse(pairs):
        pairs = sparse.csr_array(pairs)
    if sparse.issparse(pairs):
        coo = pairs.tocoo()
        where = (places[coo.coords[0]], places[coo.coords[1]])
        return tidy(sparse.coo_array((coo.data, where), shape=(size, size)).tocsr())
    out = np.zeros((size, size), pairs.dtype)
    out[np.ix_(places, places)] = pairs
    return tidy(out)


def _noise(counts: Counts) -> float:
    """Return what counts as zero: nothing for integers, rounding for weighted rows."""
    exact = counts.pairs.dtype.kind == "i" and isinstance(counts.n, int)
    return 0 if exact else 1e-9 * max(abs(counts.n), 1e-300)


def _refuse_negative(counts: Counts) -> None:
    values = counts.value_counts
    bad = np.flatnonzero(values < -_noise(counts))
    if counts.n < 0 or len(bad):
        where = ""
        if len(bad):
            i = int(np.searchsorted(counts.offsets, bad[0], side="right")) - 1
            name = [*counts.names, "y"][i]
            where = f" column {name!r}, value {counts.labels[i][bad[0] - counts.offsets[i]]!r}:"
        raise ValueError(f"{where} more rows would be taken away than were counted".strip())


def _same_columns(a: Counts, b: Counts) -> None:
    mine = {c.name: c for c in cast(Schema, a.schema).columns}
    theirs = {c.name: c for c in cast(Schema, b.schema).columns}
    for name in [*mine, *theirs]:
        if name not in mine or name not in theirs:
            raise ValueError(
                f"column {name!r} is in one of the counts only; select() the common ones"
            )
        if mine[name] != theirs[name]:
            raise ValueError(
                f"column {name!r} is {mine[name].kind} in one and {theirs[name].kind} in the other "
                "(or has other levels); declare it in the schema of both"
            )
    if (a.classes is None) != (b.classes is None):
        raise ValueError("one of the counts has classes, the other has not; count both with y")


def _labels_identical(a: Counts, b: Counts) -> bool:
    """Tell ``True`` from ``1``, which Python holds equal."""
    flat = [[_labels.identity(v) for column in c.labels for v in column] for c in (a, b)]
    return flat[0] == flat[1]


def _equal(a: Matrix, b: Matrix) -> bool:
    if sparse.issparse(a) != sparse.issparse(b) or a.shape != b.shape:
        return False
    return not (a != b).nnz if sparse.issparse(a) else np.array_equal(a, b)


def _schema_to_json(schema: Schema) -> dict[str, Any]:
    out = asdict(schema)
    for column in out["columns"]:
        if column["levels"] is not None:
            column["levels"] = [_labels.to_json(v) for v in column["levels"]]
    return out


def _schema_from_json(data: dict[str, Any]) -> Schema:
    columns = []
    for column in data.pop("columns"):
        levels = column.pop("levels")
        decoded = None if levels is None else tuple(map(_labels.from_json, levels))
        columns.append(Column(**column, levels=decoded))
    return Schema(tuple(columns), **data)
