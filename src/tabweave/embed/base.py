"""Embedder, ValueEmbedder, RowEmbedder: the templates of every embedder, from the general down.

rows → Table → Counts → learning → Space → vectors, distances, kernels, explanations. An
:class:`Embedder` is all that follows from its space; a :class:`ValueEmbedder` learns value tables
from counts: a method is a subclass with a constructor and ``_learn``.
"""

from __future__ import annotations

from inspect import unwrap
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted

from tabweave._compat import StrOptions
from tabweave.base import Estimator, TabularInput
from tabweave.columns.column import Schema
from tabweave.columns.frames import in_memory
from tabweave.columns.inputs import check_discrete, check_input_features
from tabweave.columns.kinds import Kinds, dropped_line
from tabweave.columns.table import Table, require_rows
from tabweave.columns.vocabulary import Label
from tabweave.counts.counts import Counts, checked_weight, counted_schema
from tabweave.counts.unknown import value_vocabulary
from tabweave.engines import is_distributed, read_with_classes, vector_types
from tabweave.engines.reading import (
    by_parts,
    coordinates_of,
    count_first,
    count_more,
    count_table,
    fitted_kinds,
    hold_counts,
    needs_classes,
    read_fitted,
    read_pair,
    read_row,
    read_rows,
    read_whole,
    require_classes,
    start_counts,
)
from tabweave.space.curves import turned_towards, with_numbers
from tabweave.space.numbers import CountedColumns, Curves
from tabweave.space.space import Explanation, Joined, Space, label_column, labelled
from tabweave.space.value_tables import ValueTables
from tabweave.updates import complete

N_BINS = 16  # Quantile bins of a number, by which it is coupled to other columns.


class Embedder(TabularInput, TransformerMixin, Estimator):  # type: ignore[misc]
    """Base of all embedders: a space gives vectors, distances and explanations.

    A subclass counts rows (:func:`~tabweave.engines.reading.start_counts` holds the first,
    :func:`~tabweave.engines.reading.hold_counts` all so far), learns from the counts in ``_learn``,
    and says in :attr:`space_` what it learned. ``partial_fit`` only counts: learning waits for
    :meth:`learn`, or for the first method that needs what is learned.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "schema": [Schema, dict, str, None],
        "unknown": [StrOptions({"centroid", "error"})],
        "dtype": [StrOptions({"float32", "float64"}), type, np.dtype],
    }

    counts_: Counts
    schema_: Schema

    def __init__(
        self, *, schema: Any = None, unknown: str = "centroid", dtype: str = "float64"
    ) -> None:
        self.schema = schema
        self.unknown: Any = unknown
        self.dtype = dtype

    def _learn(self, counts: Counts) -> Any:
        raise NotImplementedError(f"{type(self).__name__} must implement _learn(counts)")

    @property
    def space_(self) -> Space:
        """What the columns contribute to a row."""
        raise NotImplementedError(f"{type(self).__name__} must say what its space is")

    # -- learning --------------------------------------------------------------------------

    def learn(self) -> Self:
        """Fit to the rows seen so far, if there are new ones.

        ``transform`` and the other methods call it; call it yourself before you look at learned
        attributes after ``partial_fit``.
        """
        check_is_fitted(self, "counts_")
        complete(self, lambda embedder: embedder._learn(embedder.counts_))
        return self

    def __getattr__(self, name: str) -> Any:
        # Only reached when the attribute is absent; says what to do, learns nothing.
        state = self.__dict__
        waits = "counts_" in state and not state.get("_learned")
        hint = "; rows were added since it last learned: call learn() first" if waits else ""
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{hint}")

    def kinds(self) -> Kinds:
        """Return what each column was read as, why, and which were dropped.

        Examples
        --------
        >>> from tabweave import Weave
        >>> rows = {"id": range(40), "day": ["2024-03-01", "2024-03-02"] * 20}
        >>> rows["size"] = [1.5, 2] * 20
        >>> model = Weave().fit(rows)
        >>> model.kinds()
        column  kind      kept  why
        id      numeric   no    counts the rows
        day     datetime  yes   ISO text
        size    numeric   yes   numbers
        >>> model
        Weave()
        dropped: id (counts the rows)
        """
        check_is_fitted(self, "counts_")
        return fitted_kinds(self)

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        text = str(super().__repr__(N_CHAR_MAX))
        dropped = dropped_line(fitted_kinds(self).dropped) if hasattr(self, "counts_") else ""
        return "\n".join(filter(None, [text, dropped]))

    # -- using -----------------------------------------------------------------------------

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> np.ndarray:
        """Learn from rows and return their vectors; rows in memory are read once."""
        rows = read_whole(self, X)
        transform = unwrap(type(self).transform)  # set_output makes its frame of X, with its index
        vectors: np.ndarray = transform(self.fit(rows, y, **fit_params), rows)
        return vectors

    @by_parts(vector_types)
    def transform(self, X: Any) -> np.ndarray:
        """Return the vector of each row; learns nothing.

        A Dask or Spark frame gives another, of vectors; for files larger than memory see
        :func:`tabweave.engines.transform`. Rows that lie on a CUDA device, as an array or a mapping
        of columns, give an array of the same library there.

        A value that fit has not seen is the column's centroid, or, of many strings, between those
        spelled like it (see :class:`~tabweave.Weave`). A column of another type than in fit, or of
        which at least 20 rows hold unknown values and nothing else, is an error; many more
        unknown values than fit leads to expect are a warning, once. :meth:`unknown_counts`
        counts them.
        """
        check_is_fitted(self, "counts_")
        self.learn()
        return coordinates_of(self, X)

    def unknown_counts(self, X: Any) -> dict[str, dict[Label, int]]:
        """Count the values of rows that fit has not seen: column by column, value by value.

        Parameters
        ----------
        X : what :meth:`transform` takes
            The rows.

        Returns
        -------
        dict
            For each column that has some: in how many rows each unknown value is.

        Examples
        --------
        >>> from tabweave import OneHot
        >>> model = OneHot().fit({"color": ["red", "blue"], "size": ["S", "L"]})
        >>> model.unknown_counts({"color": ["red", "green", "green"], "size": ["S", "S", "L"]})
        {'color': {'green': 2}}
        """
        return value_vocabulary(self).unknown(read_fitted(self, X))

    def pairwise_distances(self, X: Any, Y: Any = None) -> np.ndarray:
        """Return the distances between the rows of X and of Y (or X).

        A missing cell is at its expected distance from every cell of its column, another missing
        one included; a row of X is at distance 0 from itself.
        """
        left, right = read_pair(self, X, Y)
        return self.learn().space_.distances(left, right, unknown=self.unknown)

    def pairwise_kernel(self, X: Any, Y: Any = None) -> np.ndarray:
        """Return the inner products between the rows of X and of Y (or X)."""
        left, right = read_pair(self, X, Y)
        return self.learn().space_.kernel(left, right, self.unknown)

    def explain(self, a: Any, b: Any) -> dict[str, float]:
        """Explain the distance of two rows: each column's share in it.

        The shares add up to the distance, squared where it is Euclidean. Where columns are mixed
        (a projection, coupled numbers) a share may be negative: that column's difference points
        against the total one.

        Parameters
        ----------
        a, b : dict, sequence or one-row frame
            The two rows.
        """
        left, right = (read_row(self, row) for row in (a, b))
        shares = self.learn().space_.shares(left, right, unknown=self.unknown)
        order = [name for name in self.schema_.names if name in shares]
        return Explanation({n: shares[n].item() for n in dict.fromkeys([*order, *shares])})

    def value_distances(self, column: str) -> Any:
        """Return the distances between the values of a column, as a labelled pandas frame."""
        space = self.learn().space_.only([column])
        parts = [] if space is None else space.parts()
        if not parts or not all(part.by_value for part in parts):
            names = [column.name for column in self.schema_.categorical]
            raise KeyError(f"expected a categorical column, one of {names}, got {column!r}")
        labels = value_labels(self, column)
        squares = np.sum([part.pairs(label_column(labels)) for part in parts], axis=0)
        return labelled(np.sqrt(squares) if parts[0].root else squares, column, labels)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return a name for each dimension of :meth:`transform`."""
        space = self.learn().space_
        check_input_features(self, input_features)
        return np.asarray(space.feature_names(), dtype=object)


class ValueEmbedder(Embedder):
    """Base of the embedders: rows are counted once, learning sees counts only.

    A subclass implements ``_learn(counts) -> ValueTables``, from the counts of values and of the
    bins of numbers, grades and dates, and assigns what else it learned to attributes ending in
    ``_``. The tables of nominal columns and sets are its vectors; numbers, grades and dates come
    with the columns (:func:`~tabweave.space.curves.with_numbers`), unless it returns their curves,
    too. ``partial_fit`` only counts: learning waits for :meth:`learn`, or for the first method that
    needs what is learned.
    """

    tables_: ValueTables
    numbers_: Curves | None
    _counted: CountedColumns

    def _learn(self, counts: Counts) -> ValueTables | tuple[ValueTables, Curves | None] | None:
        raise NotImplementedError(f"{type(self).__name__} must implement _learn(counts)")

    def _countable(self, table: Table, y: Any, sample_weight: Any = None) -> tuple[Table, Any]:
        """Return rows and classes as they are counted; raise for those that cannot be."""
        if not needs_classes(self):
            return table, None
        require_classes(self, y)
        check_discrete(type(self).__name__, y)
        return table, y

    # -- learning --------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from rows.

        Parameters
        ----------
        X : frame, array, mapping of columns, list of dicts, or any source of :func:`tabweave.count`
            The rows. Files, queries and frames on a cluster are counted where they are. Columns
            that ``schema`` does not name are read by their type, name and values, identifiers and
            constants are dropped: :meth:`kinds` says why. Under ``schema="nominal"`` all are
            categories.
        y : array-like, or the name of a column of a source, optional
            Classes, for the methods that use them.
        sample_weight : array-like, optional
            A weight for each row.
        """
        self._validate_params()
        return self.fit_counts(count_first(self, X, y, sample_weight, whole=True))

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Add rows to what was seen so far; same result as one ``fit`` on all of them.

        What columns without a ``schema`` are, the first rows decide: let them be many, and typical.

        Nothing is learned yet: :meth:`learn` does, or the first method that needs it.
        """
        self._validate_params()
        if not hasattr(self, "counts_"):
            return start_counts(self, count_first(self, X, y, sample_weight))
        return hold_counts(self, self.counts_ + count_more(self, X, y, sample_weight))

    def fit_counts(self, counts: Counts) -> Self:
        """Learn from counts, however and wherever they were counted."""
        self._validate_params()
        return start_counts(self, counts).learn()

    def learn(self) -> Self:
        """Fit to the rows seen so far, if there are new ones.

        ``transform`` and the other methods call it; call it yourself before you look at learned
        attributes after ``partial_fit``.
        """
        check_is_fitted(self, "counts_")
        complete(self, learn_columns)
        return self

    @property
    def space_(self) -> Space:
        """The value tables, beside them the curves of numbers."""
        if self.numbers_ is None:
            return self.tables_
        return Joined([self.tables_, self.numbers_] if self.tables_.tables else [self.numbers_])


def learn_columns(embedder: ValueEmbedder) -> None:
    """Let a method learn from counts, and add what comes with the columns."""
    counts, state = embedder.counts_, embedder.__dict__
    counted = state.get("_row_columns")  # Rows that were kept are in the bins of the first.
    if counted is None:
        counted = CountedColumns.of(
            counts,
            embedder.schema_,
            int(state.get("n_bins", N_BINS)),
        )
    embedder._counted = counted
    coupled = counted.coupled(counts)
    learned = embedder._learn(coupled)
    if learned is None:
        return
    if isinstance(learned, ValueTables):
        learned = with_numbers(learned, coupled, counts, embedder._counted)
    if state.get("_earlier") is not None:
        learned = turned_towards(learned, state["_earlier"], counts)
    embedder.tables_, embedder.numbers_ = learned


def value_labels(embedder: Embedder, column: str) -> tuple[Label, ...]:
    """Return the values of a column as fit saw them, those of grades in their order."""
    counts, counted = embedder.counts_, embedder.__dict__.get("_counted")
    levels = {} if counted is None else counted.numbering.levels
    return levels[column] if column in levels else counts.labels[counts.vocabulary.index(column)]


# -- RowEmbedder: the second base, of methods that counts alone do not serve ----------------------
#
# Rows are counted as by any other method, and a digest of them is kept beside the counts: HELIC
# keeps a sample of pairs of rows, Non-BEND the distinct rows and how often each occurs.


class RowEmbedder(ValueEmbedder):
    """Base of the embedders that learn from counts and from a digest of the rows.

    A subclass says in ``_rows_needed_for`` what it needs rows for, adds rows to the digest in
    ``_digested``, and reads it as ``_row_digest`` in ``_learn(counts)``. Sources are read into
    memory.
    """

    _digest: Any = None

    def _rows_needed_for(self) -> str:
        """Say, as a predicate, what counts do not tell; empty if these parameters need no rows."""
        return "looks at whole rows"

    def _digested(self, digest: Any, table: Table, y: Any, weight: Any, counts: Counts) -> Any:
        """Add rows to the digest, which is None at first; ``counts`` are those of all rows."""
        raise NotImplementedError(f"{type(self).__name__} must say what it keeps of rows")

    @property
    def _row_digest(self) -> Any:
        if self._digest is None:
            raise ValueError(
                f"{type(self).__name__} {self._rows_needed_for()}, and rows so far were only "
                "counted (fit_counts, fit_batches); fit again with all of them"
            )
        return self._digest

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from rows; a weight of 2 is the same as having a row twice."""
        self._digest = None
        self.__dict__.pop("_row_columns", None)
        if not self._rows_needed_for():
            return super().fit(X, readable(y), sample_weight)
        self._validate_params()
        return self._add_rows(X, y, sample_weight, first=True, whole=True).learn()

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Add rows to what was seen so far; same result as one ``fit`` on all of them in order."""
        if not self._rows_needed_for():
            return super().partial_fit(X, readable(y), sample_weight)
        self._validate_params()
        return self._add_rows(X, y, sample_weight, first=not hasattr(self, "counts_"))

    def fit_counts(self, counts: Counts) -> Self:
        """Learn from counts alone, where the parameters ask for no more; else raise."""
        if need := self._rows_needed_for():
            raise TypeError(f"expected rows, got counts: {type(self).__name__} {need}; use fit")
        self._digest = None
        self.__dict__.pop("_row_columns", None)
        return super().fit_counts(counts)

    def _add_rows(
        self, X: Any, y: Any, sample_weight: Any, *, first: bool, whole: bool = False
    ) -> Self:
        if not in_memory(X) and is_distributed(X):
            raise TypeError(
                f"{type(self).__name__} {self._rows_needed_for()}, and those of a frame on a "
                "cluster stay there; fit it on some of them, as in frame.sample(0.1).toPandas()"
            )
        X, y = read_with_classes(X, y)
        table = read_rows(self, X, whole=whole) if first else read_fitted(self, X)
        if first:
            require_rows(table)
        y = readable(y)
        batch = count_table(self, table, y, sample_weight)
        counts, digest = (batch, None) if first else (self.counts_ + batch, self._row_digest)
        if batch.schema is not None:
            weight = checked_weight(sample_weight, table.n_rows)
            if first:
                self._row_columns = CountedColumns.of(
                    counts,
                    counted_schema(counts),
                    N_BINS,
                    constants=True,
                )
            columns = self._row_columns
            rows, coupled = columns.expanded(table), columns.coupled(counts)
            self._digest = self._digested(digest, rows, y, weight, coupled)
        return start_counts(self, counts) if first else hold_counts(self, counts)


def readable(y: Any) -> Any:
    """Targets that only NumPy can read as an array, and any others as they are."""
    return np.asarray(y) if hasattr(y, "__array__") and not hasattr(y, "__len__") else y


def learns_from_rows(embedder: Any) -> bool:
    """Whether an embedder needs rows; counts suffice for others."""
    return isinstance(embedder, RowEmbedder) and bool(embedder._rows_needed_for())
