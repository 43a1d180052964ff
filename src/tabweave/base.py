"""Estimator, Embedder, ValueEmbedder: the templates of every method, from the general down.

rows → Table → Counts → learning → blocks → vectors, distances, kernels, explanations. An
:class:`Embedder` is all that follows from its blocks; a :class:`ValueEmbedder` learns value tables
from counts: a method is a subclass with a constructor and ``_learn``.
"""

from __future__ import annotations

from dataclasses import replace
from inspect import unwrap
from typing import Any, ClassVar, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import _check_feature_names, check_is_fitted

from tabweave._compat import (
    StrOptions,
    page_of_class,
    validate_parameter_constraints,
)
from tabweave.columns.column import Column, Schema
from tabweave.columns.decision import FEW_ROWS, Finding
from tabweave.columns.frames import in_memory
from tabweave.columns.inputs import check_categorical, check_input_features, warn_of_numbers
from tabweave.columns.kinds import Kinds, aside_line
from tabweave.columns.nominal import said_of_strings
from tabweave.columns.table import (
    Table,
    as_rows,
    check_feature_names,
    check_keys,
    remember_names,
    require_rows,
)
from tabweave.columns.targets import check_discrete
from tabweave.columns.vocabulary import Label, Vocabulary
from tabweave.counts.counts import Counts, counted_schema
from tabweave.counts.unknown import report_unknown, spelled_columns
from tabweave.engines import count_for, is_countable, is_distributed, is_source, read, vectors_of
from tabweave.io.store import Storable
from tabweave.space.block import Block, label_column, turns
from tabweave.space.explanation import Explanation, labelled
from tabweave.space.numbers import Numbering
from tabweave.space.value_tables import ValueTables
from tabweave.updates import Stateful, completing


class Estimator(Storable, Stateful, BaseEstimator):  # type: ignore[misc]
    """Base of every estimator: declared parameters, states that are published whole, one file.

    A subclass lists what each parameter may be in ``_parameter_constraints``, in scikit-learn's
    form; ``_validate_params`` checks them at the start of ``fit``. Methods that change what was
    learned (``fit``, ``partial_fit``, ``add``, ...) wait for each other, so no thread's rows are
    lost, and one that raises leaves the estimator as it was; all others see one state, see
    :mod:`tabweave.updates`.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {}
    save = Storable.save

    def set_params(self, **params: Any) -> Self:
        """Set parameters, as those of every estimator of scikit-learn are set."""
        return super().set_params(**params)  # type: ignore[no-any-return]

    def _validate_params(self) -> None:
        """Check the parameters as they are declared."""
        given = self.get_params(deep=False)
        for name, value in given.items():
            allowed = self._parameter_constraints.get(name, [bool])
            if isinstance(value, bool) and not any(c in ("boolean", bool) for c in allowed):
                given[name] = str(value)  # for scikit-learn it is a number, and it is none
        validate_parameter_constraints(self._parameter_constraints, given, type(self).__name__)

    def _get_doc_link(self) -> str:
        """Return where scikit-learn's diagram of this estimator leads: its page on our site."""
        return page_of_class(type(self))


class TabularInput:
    """Tags of an estimator that takes categories, text and missing values; put it first."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.input_tags.allow_nan = True
        if tags.transformer_tags is not None:
            tags.transformer_tags.preserves_dtype = []
        return tags


class Embedder(TabularInput, TransformerMixin, Estimator):  # type: ignore[misc]
    """Base of all embedders: blocks of columns give vectors, distances and explanations.

    A subclass counts rows (``_start`` the first, ``_hold`` all so far), learns from the counts in
    ``_learn_all``, and says in :attr:`blocks_` what it learned. ``partial_fit`` only counts:
    learning waits for :meth:`learn`, or for the first method that needs what is learned.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "schema": [Schema, dict, None],
        "unknown": [StrOptions({"centroid", "error"})],
        "dtype": [StrOptions({"float32", "float64"}), type, np.dtype],
    }

    _numbers: ClassVar[Literal["numeric", "nominal"]] = "numeric"  # what undeclared ones are
    _rules: ClassVar[bool] = False  # whether undeclared columns are read by rules
    _uses_classes: ClassVar[bool] = False  # whether y is counted
    _takes_numbers: ClassVar[bool] = False  # whether y may be numbers that are no classes
    _missing_agrees: ClassVar[bool] = False  # whether missing is a value in every column
    _has_vectors: ClassVar[bool] = True  # whether distances are those of vectors, at least nearly

    counts_: Counts
    schema_: Schema

    def __init__(
        self, *, schema: Any = None, unknown: str = "centroid", dtype: str = "float64"
    ) -> None:
        self.schema = schema
        self.unknown = unknown
        self.dtype = dtype

    @property
    def blocks_(self) -> Block:
        """What the columns contribute to a row."""
        raise NotImplementedError(f"{type(self).__name__} must say what its blocks are")

    def _learn_all(self) -> None:
        raise NotImplementedError(f"{type(self).__name__} must learn from its counts")

    # -- learning --------------------------------------------------------------------------

    def learn(self) -> Self:
        """Fit to the rows seen so far, if there are new ones.

        ``transform`` and the other methods call it; call it yourself before you look at learned
        attributes after ``partial_fit``.
        """
        check_is_fitted(self, "counts_")
        if not vars(self).get("_learned"):
            self._complete()
        return self

    @completing
    def _complete(self) -> None:
        """Learn from the counts, if no other thread has meanwhile."""
        if vars(self).get("_learned"):
            return
        before = set(vars(self))
        self._learn_all()
        if vars(self).get("_earlier") is not None:
            self._align(self._earlier)
        self._learned: tuple[str, ...] = tuple(sorted(set(vars(self)) - before))

    def _align(self, earlier: Any) -> None:
        """Turn what was learned towards what was learned before, where that can be done."""

    def _learned_blocks(self) -> Block:
        """Return the blocks that were learned from all rows so far."""
        return self.learn().blocks_

    def _start(self, counts: Counts, schema: Schema | None = None) -> Self:
        """Keep the first counts, and what they say of the columns."""
        self._hold(counts)
        self.__dict__.pop("_earlier", None)  # of another stream
        self.schema_ = counted_schema(counts) if schema is None else schema
        remember_names(self, self.schema_)
        return self

    def _hold(self, counts: Counts) -> Self:
        """Keep counts and drop what was learned from older ones."""
        counted_schema(counts)
        for name in vars(self).get("_learned", ()):
            self.__dict__.pop(name, None)
        self._learned = ()
        self.counts_ = counts
        return self

    def _hold_next(self, counts: Counts) -> Self:
        """Keep the counts after one more window; what is learned will be turned to what was."""
        if vars(self).get("_learned"):
            self._earlier = self._learned_parts()
        return self._hold(counts)

    def _learned_parts(self) -> Any:
        """Return what :meth:`_align` needs of what was learned; None if nothing can be aligned."""
        return None

    def _require_classes(self, y: Any) -> None:
        if self._uses_classes and y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None"
            )
        if self._uses_classes and not self._takes_numbers:
            check_discrete(type(self).__name__, y)

    def __getattr__(self, name: str) -> Any:
        # Only reached when the attribute is absent; says what to do, learns nothing.
        waits = "counts_" in vars(self) and not vars(self).get("_learned")
        hint = "; rows were added since it last learned: call learn() first" if waits else ""
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{hint}")

    # -- reading ---------------------------------------------------------------------------

    def _read(self, X: Any, schema: Schema, *, whole: bool = False) -> Table:
        """Read rows; ``whole`` says that no others will follow."""
        known = schema is vars(self).get("schema_")
        if not in_memory(X) and is_source(X):
            X = read(X, fitted=self.counts_.select(schema.names) if known else None)
        rules: Any = ("whole" if whole else "first") if self._rules else None
        table = Table.of(X, schema, numbers=self._numbers, rules=rules)
        self._check_kinds(table.schema)
        if not (known or self._rules or isinstance(X, Table)):
            warn_of_numbers(type(self).__name__, table, schema)
        if known:
            table = self.counts_.vocabulary.fold(self.counts_.vocabulary.in_words(table))
        return table

    def _check_kinds(self, schema: Schema) -> None:
        """Raise for columns that the embedder cannot read."""

    def _read_fitted(self, X: Any) -> Table:
        """Read rows under the schema of fit, columns checked as scikit-learn does."""
        check_is_fitted(self, "counts_")
        is_frame = in_memory(X) or not is_source(X)  # what lies elsewhere is read by name
        if is_frame and hasattr(X, "columns") and not isinstance(X, Table):
            check_feature_names(self, X, self.schema_)
        table = self._read(X, self.schema_)
        # A warning, and only for what can be read at all; a structured array has names.
        if isinstance(X, np.ndarray) and X.dtype.names is None:
            _check_feature_names(self, X, reset=False)
        if isinstance(X, Table) and X.schema.names != self.schema_.names:
            raise ValueError(f"expected columns {self.schema_.names}, got {X.schema.names}")
        return table

    def _read_asked(self, X: Any) -> Table:
        """Read rows that are asked about: what fit has not seen is reported, or refused."""
        table = self.learn()._read_fitted(X)
        if self._policy() == "centroid":
            report_unknown(self, table)
        return table

    def _read_one(self, row: Any) -> Table:
        """Read the one row that is asked about, in any form a row has."""
        if not hasattr(row, "__len__"):
            raise TypeError(
                f"expected a row (a dict, a sequence of cells or a one-row frame), got {row!r}"
            )
        table = self._read_asked(as_rows(row, self.learn().schema_))
        if table.n_rows != 1:
            raise ValueError(f"expected one row, got {table.n_rows}")
        return table

    def _read_pair(self, X: Any, Y: Any) -> tuple[Table, Table | None]:
        left = self._read_asked(X)
        return left, None if Y is None or Y is X else self._read_asked(Y)

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
        own = {column.name for column in self._own_columns()}
        found = [
            self._finding(c) if c.name in own else Finding(c.name, c.kind, "constant", False)
            for c in self.schema_.columns
        ]
        for column in self.schema_.aside:
            at = column.position or 0
            found.insert(at, column.finding(kept=False))
        return Kinds(found)

    def _finding(self, column: Column) -> Finding:
        """Return what a column that counts was read as."""
        if column.name in spelled_columns(self):
            vocabulary = self._vocabulary()
            labels = vocabulary.labels[vocabulary.index(column.name)]
            if spelled := said_of_strings(column, labels):
                return Finding(column.name, column.kind, spelled)
        return column.finding()

    def _own_columns(self) -> list[Column]:
        """Return the columns that count: not those that were constant so far, unless declared."""
        columns = list(self.schema_.columns)
        if not self._rules or self.counts_.n < FEW_ROWS:
            return columns
        vary = [c for c in columns if c.why == "declared" or not self._is_constant(c.name)]
        return vary or columns

    def _gap_columns(self) -> list[str]:
        """Return the columns in which a missing cell is no value."""
        schema = self.schema_
        kept = [c.name for c in schema.columns if (c.missing or schema.missing) != "value"]
        return [] if self._missing_agrees else kept

    def _is_constant(self, name: str) -> bool:
        counts = self.counts_
        if name in counts.vocabulary:
            return bool((counts.value_counts[counts.span(name)] == counts.n).all())
        n, _, variance = counts.moments(name)
        return n == 0 or (n == counts.n and variance == 0)

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        text = str(super().__repr__(N_CHAR_MAX))
        fitted = self._rules and "counts_" in vars(self)
        lines = [aside_line(self.kinds().aside), self._coupling_line()] if fitted else []
        return "\n".join([text, *filter(None, lines)])

    def _coupling_line(self) -> str:
        """Return what is to be said of a table too wide for all couplings; nothing of others."""
        return ""

    def _policy(self) -> Any:
        if self.unknown not in ("centroid", "error"):
            raise ValueError(f"expected unknown to be 'centroid' or 'error', got {self.unknown!r}")
        return self.unknown

    # -- using -----------------------------------------------------------------------------

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> np.ndarray:
        """Learn from rows and return their vectors; rows in memory are read once."""
        rows = self._read_whole(X)
        transform = unwrap(type(self).transform)  # set_output makes its frame of X, with its index
        vectors: np.ndarray = transform(self.fit(rows, y, **fit_params), rows)
        return vectors

    def _read_whole(self, X: Any) -> Any:
        """Read rows to fit and to transform if they are in memory; leave what is elsewhere."""
        if not in_memory(X) or isinstance(X, Table):
            return X
        self._validate_params()
        return self._read(X, Schema.of(self.schema), whole=True)

    def transform(self, X: Any) -> np.ndarray:
        """Return the vector of each row; learns nothing.

        A Dask or Spark frame gives another, of vectors; for files larger than memory see
        :func:`tabweave.engines.transform`.

        A value that fit has not seen is the column's centroid, or, of many strings, between those
        spelled like it (see :class:`~tabweave.Weave`). A column of another type than in fit, or of
        which at least 20 rows hold unknown values and nothing else, is an error; many more
        unknown values than fit leads to expect are a warning, once. :meth:`unknown_counts`
        counts them.
        """
        check_is_fitted(self, "counts_")
        blocks = self._learned_blocks()
        if not in_memory(X) and is_distributed(X):
            return vectors_of(self, X)
        table = self._read_asked(X)
        dtype = np.dtype(self.dtype)
        return blocks.coordinates(table, dtype=dtype, unknown=self._policy())

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
        return self._vocabulary().unknown(self._read_fitted(X))

    def _vocabulary(self) -> Vocabulary:
        """Return the values of the columns that are read as values, as fit saw them."""
        own = {column.name for column in self.schema_.categorical}
        known = self.counts_.vocabulary
        return known.select([name for name in known.names if name in own])

    def pairwise_distances(self, X: Any, Y: Any = None) -> np.ndarray:
        """Return the distances between the rows of X and of Y (or X).

        A missing cell is at its expected distance from every cell of its column, another missing
        one included; a row of X is at distance 0 from itself.
        """
        left, right = self._read_pair(X, Y)
        return self._learned_blocks().distances(left, right, unknown=self._policy())

    def pairwise_kernel(self, X: Any, Y: Any = None) -> np.ndarray:
        """Return the inner products between the rows of X and of Y (or X)."""
        left, right = self._read_pair(X, Y)
        return self._learned_blocks().kernel(left, right, self._policy())

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
        left, right = (self._read_one(row) for row in (a, b))
        shares = self._shares(left, right)
        order = [name for name in self.schema_.names if name in shares]
        return Explanation({n: shares[n].item() for n in dict.fromkeys([*order, *shares])})

    def _shares(self, left: Table, right: Table) -> dict[str, np.ndarray]:
        """Return each column's share in the distance of row i to row i of another table."""
        return self._learned_blocks().shares(left, right, unknown=self._policy())

    def value_distances(self, column: str) -> Any:
        """Return the distances between the values of a column, as a labelled pandas frame."""
        block = self._learned_blocks().only([column])
        parts = [] if block is None else block.parts()
        if not parts or not all(part.by_value for part in parts):
            names = [column.name for column in self.schema_.categorical]
            raise KeyError(f"expected a categorical column, one of {names}, got {column!r}")
        labels = self._labels(column)
        found = np.sum([part.pairs(label_column(labels)) for part in parts], axis=0)
        return labelled(np.sqrt(found) if parts[0].root else found, column, labels)

    def _labels(self, column: str) -> tuple[Label, ...]:
        return self.counts_.labels[self.counts_.vocabulary.index(column)]

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return a name for each dimension of :meth:`transform`."""
        blocks = self._learned_blocks()
        check_input_features(self, input_features)
        return np.asarray(blocks.feature_names(), dtype=object)

    # -- what a page says of it ------------------------------------------------------------

    def _title(self) -> str:
        return type(self).__name__

    def _column_weights(self) -> dict[str, float]:
        """Return how much each column counts, where the embedder has learned that."""
        weights = vars(self).get("weights_")
        plain = isinstance(weights, dict) and all(isinstance(w, float) for w in weights.values())
        return dict(weights) if plain and weights else {}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = self._uses_classes
        return tags


class ValueEmbedder(Embedder):
    """Base of the embedders: rows are counted once, learning sees counts only.

    A subclass implements ``_learn(counts) -> ValueTables`` and assigns what else it learned to
    attributes ending in ``_``. ``partial_fit`` only counts: learning waits for :meth:`learn`, or
    for the first method that needs what is learned.
    """

    _numbers: ClassVar[Literal["numeric", "nominal"]] = "nominal"

    def _learn(self, counts: Counts) -> ValueTables:
        raise NotImplementedError(f"{type(self).__name__} must implement _learn(counts)")

    # -- learning --------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from rows.

        Parameters
        ----------
        X : frame, array, mapping of columns, list of dicts, or any source of :func:`tabweave.count`
            The rows. Files, queries and frames on a cluster are counted where they are. How columns
            that ``schema`` does not name are read depends on the class: :class:`~tabweave.Weave`
            goes by their type, name and values, embedders for categories take all as categories;
            :meth:`kinds` tells.
        y : array-like, or the name of a column of a source, optional
            Classes, for the methods that use them.
        sample_weight : array-like, optional
            A weight for each row.
        """
        self._validate_params()
        return self.fit_counts(self._count_rows(X, y, sample_weight, whole=True))

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Add rows to what was seen so far; same result as one ``fit`` on all of them.

        What columns without a ``schema`` are, the first rows decide: let them be many, and typical.

        Nothing is learned yet: :meth:`learn` does, or the first method that needs it.
        """
        self._validate_params()
        if "counts_" not in vars(self):
            return self._start(self._count_rows(X, y, sample_weight))
        if in_memory(X) or not is_countable(X):
            check_keys(X, self.schema_)
            more = self._count(self._read_fitted(X), y, sample_weight)
        else:
            more = self._count_source(X, y, sample_weight, self.counts_)
        return self._hold(self.counts_ + more)

    def fit_counts(self, counts: Counts) -> Self:
        """Learn from counts, however and wherever they were counted."""
        self._validate_params()
        self._start(counts)
        return self.learn()

    def _learn_all(self) -> None:
        self.tables_ = self._learn(self.counts_).with_gaps(self.counts_, self._gap_columns())

    def _learned_parts(self) -> Any:
        tables = vars(self).get("tables_")
        return (tables, vars(self).get("numbers_")) if isinstance(tables, ValueTables) else None

    def _align(self, earlier: tuple[ValueTables, Any]) -> None:
        tables, numbers = earlier
        if tables.combine != self.tables_.combine:
            return
        pieces, own = self.tables_.shared_points(tables, self.counts_), vars(self).get("numbers_")
        n_tables = len(pieces)
        if own is not None and numbers is not None:
            pieces += own.shared_points(numbers)
        found = turns(pieces, together=tables.combine == "sum")
        self.tables_ = self.tables_.turned(found[:n_tables])
        if own is not None and numbers is not None:
            self.numbers_ = own.turned(found[n_tables:])

    @property
    def blocks_(self) -> Block:
        """The value tables."""
        return self.tables_

    def _check_kinds(self, schema: Schema) -> None:
        check_categorical(self, schema)

    def _count_rows(self, X: Any, y: Any, sample_weight: Any, *, whole: bool = False) -> Counts:
        """Count the first rows, wherever they are."""
        if not in_memory(X) and is_countable(X):
            return self._count_source(X, y, sample_weight, Counts())
        table = self._read(X, Schema.of(self.schema), whole=whole)
        require_rows(table)
        self._check_table(table)
        return self._count(table, y, sample_weight)

    def _check_table(self, table: Table) -> None:
        """Refuse rows that the method cannot learn from, before they are counted."""

    def _count(self, table: Table, y: Any, sample_weight: Any) -> Counts:
        self._require_classes(y)
        y = y if self._uses_classes else None
        return Counts.of(table, y, sample_weight=sample_weight)

    def _expand_rows(self, table: Table, y: Any) -> tuple[Table, Any]:
        """Return the rows and classes that are counted, which may be more than was given."""
        return table, y

    def _count_source(self, X: Any, y: Any, sample_weight: Any, known: Counts) -> Counts:
        if sample_weight is not None:
            raise ValueError("sample_weight needs rows in memory; read the source first")
        self._require_classes(y)
        schema = Schema.of(self.schema)
        if known.schema is not None:
            schema, known = self.schema_, known.select(self.schema_.names)
        name = y if isinstance(y, str) else None
        counts = count_for(X, name, schema, known, **self._reading_of_sources())
        self._check_kinds(counted_schema(counts))
        if self._uses_classes:
            return counts
        return replace(counts, classes=None, class_pairs=None, class_n=None)

    def _reading_of_sources(self) -> dict[str, Any]:
        """Return how sources are read, as options of :func:`tabweave.engines.count_for`."""
        return {}

    # -- values ----------------------------------------------------------------------------

    def _labelled(self, column: int, distances: np.ndarray) -> Any:
        return labelled(distances, self.counts_.names[column], self.counts_.labels[column])

    def lookups(self) -> tuple[list[np.ndarray], bool]:
        """Return what distances are made of: per column a table over its values, unknown last.

        The distance of two rows is the sum over columns of the entries of their values, or its
        root if the second result is True. Tasks that compare many rows work on these tables.
        """
        self.learn()
        if self.tables_.combine == "sum":
            raise ValueError(
                f"distances of {type(self).__name__} do not add up over columns; use transform"
            )
        return self.tables_.squares(), True

    def _read_pair(self, X: Any, Y: Any) -> tuple[Table, Table | None]:
        pair = super()._read_pair(X, Y)
        for table in pair if self._policy() == "error" else ():
            if table is not None:
                self._codes(table)  # of those that compare codes without asking their blocks
        return pair

    def _codes(self, table: Table) -> list[np.ndarray]:
        """Return the codes of rows in the vocabulary of fit, unknown last; needs no vector."""
        return self.counts_.vocabulary.codes(table, self._policy())


class BinnedEmbedder(Embedder):
    """Base of embedders that count numbers and grades in bins, beside categories."""

    n_bins: int
    _numbering: Numbering

    def _in_bins(self) -> Counts:
        """Return what was counted, numbers in bins that follow from all that was counted."""
        self._numbering = Numbering.of(self.counts_, int(self.n_bins))
        return self._numbering.binned(self.counts_)

    def _gap_columns(self) -> list[str]:
        """Return the columns and parts of columns in which missing is no value, as counted."""
        columns, parts = set(super()._gap_columns()), self._parts()
        return [name for name, column in parts.items() if column in columns]

    def _parts(self) -> dict[str, str]:
        """Return what is counted of each column, and whose it is."""
        return {
            part: column.name
            for column in self._own_columns()
            for part in column.cells_type.shown_parts(column, self.counts_)
        }

    def _valued(self) -> list[str]:
        """Return the columns whose values have tables."""
        return [c.name for c in self._own_columns() if c.kind in ("nominal", "set")]

    def _labels(self, column: str) -> tuple[Label, ...]:
        levels = self._numbering.levels
        return levels[column] if column in levels else super()._labels(column)
