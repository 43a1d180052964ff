"""MixedEmbedder: one vector per row of a table of categories, numbers, grades and sets.

A row of blocks: categories go through a categorical embedder, numbers through a numeric block;
numbers are also binned, so that what a category says about them counts in its couplings. The two
are balanced by inertia: a column counts as a column, whichever kind it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import clone

from tabweave._compat import HasMethods, Interval, StrOptions
from tabweave.base import BinnedEmbedder, Embedder, ValueEmbedder
from tabweave.columns.column import Schema
from tabweave.columns.table import Table, require_rows
from tabweave.counts.counts import Counts, counted_schema
from tabweave.counts.spectra import centred_product
from tabweave.embed.coupled_numeric import CoupledNumeric
from tabweave.embed.register import embedder
from tabweave.embed.row_embedder import learns_from_rows
from tabweave.embed.supervised import class_ties
from tabweave.embed.weave import (
    N_BINS,
    Curve,
    Weave,
    checked_weights,
    countable,
    curve_of,
    join_curves,
    principal_directions,
    project,
    sum_blocks,
)
from tabweave.space.block import Block, Blocks
from tabweave.space.numbers import (
    Absolute,
    Curves,
    Numbering,
    Standard,
    Transformed,
    moments_of,
)
from tabweave.space.value_tables import ValueTables

_BLOCKS = {"categorical", "numeric"}
_NUMERIC: dict[str, type[Standard]] = {"standard": Standard, "absolute": Absolute}


@embedder(
    "auto",
    "the default: Weave",
    "tabweave",
    reads="mixed",
    page="mixed",
)
class MixedEmbedder(BinnedEmbedder):
    """Embed categories with any embedder and numbers with another, in one Euclidean space.

    Parameters
    ----------
    categorical : "auto" or ValueEmbedder, default="auto"
        The embedder of nominal and set columns; "auto" is :class:`~tabweave.Weave`. It also sees
        the bins of numeric and ordinal columns. A Weave also embeds the numbers if ``numeric`` and
        ``weights`` have their defaults: ``MixedEmbedder()`` and ``Weave()`` give the same vectors.
    numeric : {"auto", "standard", "absolute", "coupled"} or transformer, default="auto"
        The embedder of numbers, and of ordinal columns as ranks. "auto": by differences and ranks,
        as :class:`~tabweave.Weave` does. "standard": mean 0 and variance 1, one dimension each.
        "absolute": three dimensions each, in which squared distances follow the absolute difference
        in standard deviations. "coupled": :class:`~tabweave.CoupledNumeric`. Or any scikit-learn
        transformer.
    weights : "inertia" or mapping, default="inertia"
        How the two blocks are balanced: each is scaled so that its total variance equals its
        number of columns, times ``weights["categorical"]`` or ``weights["numeric"]`` (default 1).
        Or factors of the squared distances of single columns, by their names.
    n_components : int, optional
        Project on this many principal components of the rows, as :class:`~tabweave.Weave` does.
    n_bins : int, default=16
        Number of quantile bins of a numeric column; 1 leaves numbers out of the couplings.
    schema : Schema or mapping of column to kind, optional
        The kinds of the columns that it names; the others are inferred from type, name and values.
    unknown : {"centroid", "error"}, default="centroid"
        What to do with values not seen in fit: use the column's centroid, or raise an error.
    dtype : {"float64", "float32"}, default="float64"
        Type of the vectors.

    Attributes
    ----------
    categorical_ : ValueEmbedder or None
        The fitted categorical embedder; None if there is no categorical column.
    tables_ : ValueTables or None
        The balanced tables of the nominal and set columns.
    numeric_, numeric_scale_
        The numeric block and the factor it is balanced by.
    blocks_ : Blocks
        Both side by side, from which vectors, distances and explanations are computed.
    counts_ : Counts
        What was seen: values, bins, exact moments of numbers.
    schema_, n_features_in_, feature_names_in_
        The columns.

    Notes
    -----
    A missing cell is at its expected distance from every cell, as in :class:`~tabweave.Weave`;
    a transformer of numbers reads it as the mean.
    ``partial_fit`` of batches gives what ``fit`` gives, and ``fit_counts`` takes any counts. If
    the categorical embedder learns from classes (:class:`~tabweave.HELIC`), numbers do, too: half
    of a numeric column's weight is the same for all, half depends on its bins and the classes.

    Examples
    --------
    >>> from tabweave.embed.mixed import MixedEmbedder
    >>> rows = {"job": ["cook", "cook", "clerk", "judge"], "age": [25.0, 31.0, 44.0, None]}
    >>> model = MixedEmbedder().fit(rows)
    >>> model.transform(rows).shape
    (4, 6)
    >>> list(model.explain({"job": "cook", "age": 25.0}, {"job": "cook", "age": 44.0}))
    ['job', 'age']
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **Embedder._parameter_constraints,
        "categorical": [StrOptions({"auto"}), ValueEmbedder],
        "numeric": [
            StrOptions({"auto", "standard", "absolute", "coupled"}),
            HasMethods(["fit", "transform"]),
        ],
        "weights": [StrOptions({"inertia"}), Mapping],
        "n_components": [Interval(Integral, 1, None, closed="left"), None],
        "n_bins": [Interval(Integral, 1, 1000, closed="both")],
    }

    def __init__(
        self,
        categorical: Any = "auto",
        numeric: Any = "auto",
        *,
        weights: Any = "inertia",
        n_components: int | None = None,
        n_bins: int = N_BINS,
        schema: Any = None,
        unknown: str = "centroid",
        dtype: str = "float64",
    ) -> None:
        self.categorical = categorical
        self.numeric = numeric
        self.weights = weights
        self.n_components = n_components
        self.n_bins = n_bins
        self.schema = schema
        self.unknown = unknown
        self.dtype = dtype

    # -- learning --------------------------------------------------------------------------

    _rules = True
    categorical_: ValueEmbedder | None
    tables_: ValueTables | None
    numeric_: Standard | Curves | Transformed | None
    numeric_scale_: float
    _whole: bool

    @property
    def _uses_classes(self) -> bool:  # type: ignore[override]
        return getattr(self.categorical, "_uses_classes", False)

    @property
    def _has_vectors(self) -> bool:  # type: ignore[override]
        return getattr(self.categorical, "_has_vectors", True)

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn from rows.

        Parameters
        ----------
        X : frame, array, mapping of columns, list of dicts, or any source of :func:`tabweave.count`
            The rows; a source is read into memory.
        y : array-like, optional
            Classes, for the categorical embedders that use them.
        """
        return self._add(X, y, whole=True).learn()

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Add rows to what was seen so far; same result as one ``fit`` on all of them.

        Nothing is learned yet: :meth:`learn` does, or the first method that needs it.
        """
        return self._add(X, y)

    def _add(self, X: Any, y: Any, *, whole: bool = False) -> Self:
        """Add rows, or start anew with the whole table."""
        self._check()
        self._require_classes(y)
        first = whole or "counts_" not in vars(self)
        schema = Schema.of(self.schema)
        table = self._read(X, schema, whole=whole) if first else self._read_fitted(X)
        require_rows(table)
        if self._is_whole():
            table = countable(table)
        counts = Counts.of(table, y if self._uses_classes else None)
        if first:
            self._begin(counts, table.schema)
            self._fit_transformer(table)
        else:
            self._check_adds_up(self.schema_, "partial_fit")
            self._hold(self.counts_ + counts)
        if self.categorical_ is not None and learns_from_rows(self.categorical_):
            if first:
                self._row_bins = Numbering.of(counts, int(self.n_bins))
            expanded = self._row_bins.expand(table)
            self.categorical_.partial_fit(expanded.select(self._coupled_names()), y)
        return self

    def fit_counts(self, counts: Counts) -> Self:
        """Learn from counts, however and wherever they were counted."""
        self._check()
        schema = counted_schema(counts)
        self._check_adds_up(schema, "fit_counts")
        if learns_from_rows(self.categorical):
            raise ValueError(
                f"{type(self.categorical).__name__} learns from whole rows, so there is no "
                "fit_counts; use fit, or another categorical embedder"
            )
        self._begin(counts, schema)
        return self.learn()

    def _begin(self, counts: Counts, schema: Schema) -> None:
        self._start(counts, schema)
        self.__dict__.pop("numeric_", None)
        self.categorical_ = None
        self._whole = self._is_whole()
        if self._valued() or self._whole:
            auto = isinstance(self.categorical, str)
            self.categorical_ = Weave() if auto else clone(self.categorical)
            if self._whole:
                given = {"weights": self._column_factors(), "n_components": self.n_components}
                given["n_bins"] = int(self.n_bins)
                self.categorical_.set_params(**{k: v for k, v in given.items() if v})

    def _learn_all(self) -> None:
        self.tables_ = None
        if self._whole:
            self._learn_whole()
        else:
            self._learn_balanced()

    def _learn_whole(self) -> None:
        """Let a Weave learn all columns."""
        weave = self.categorical_
        assert isinstance(weave, Weave)
        weave.fit_counts(self.counts_)
        self._numbering = weave._numbering
        self.tables_ = weave.tables_ if self._valued() else None
        self.numeric_, self.numeric_scale_ = weave.numbers_, 1.0

    def _learn_balanced(self) -> None:
        """Learn both blocks, and scale each to as much inertia as it has columns."""
        self._binned = self._in_bins()
        valued, numbered = self._valued(), self._numbered()
        if self.categorical_ is not None:
            if not learns_from_rows(self.categorical_):
                self.categorical_.fit_counts(self._binned.select(self._coupled_names()))
            tables = self.categorical_.learn().tables_.select(valued)
            inertia = table_inertia(tables, self.counts_.select(valued))
            factor = self._balance("categorical", len(valued), inertia)
            own = np.sqrt([self._column_factors().get(name, 1.0) for name in valued])
            self.tables_ = tables.scaled(factor * own)
        if "numeric_" not in vars(self):  # else a transformer, which was fitted on rows
            self.numeric_ = self._numeric_block(numbered) if numbered else None
        inertia = 0.0 if self.numeric_ is None else self.numeric_.inertia
        self.numeric_scale_ = self._balance("numeric", len(numbered), inertia)
        if self.n_components is not None:
            self._project(int(self.n_components))
        del self._binned  # counts_ say all of it

    def _project(self, n_components: int) -> None:
        """Turn both blocks into one, along the principal components of the rows."""
        valued, numbered = self._valued(), self._numbered()
        if numbered and not isinstance(self.numeric_, Curves):
            raise ValueError(
                f"expected numeric='auto' with n_components, got {self.numeric!r}; or apply PCA "
                f"after this embedder"
            )
        if self.tables_ is not None and self.tables_.combine == "sum":
            raise ValueError(
                f"expected a categorical embedder without n_components, got {self.categorical!r}; "
                "leave n_components out"
            )
        rows = [] if self.tables_ is None else [table[:-1] for table in self.tables_.tables]
        curves = [curve.scaled(self.numeric_scale_**2) for curve in self._curves(numbered)]
        coupled = self._binned.select(self._coupled_names())
        spelling = {} if self.tables_ is None else self.tables_.spelling
        self.tables_, self.numeric_ = project(
            coupled,
            dict(zip(valued, rows, strict=True)),
            curves,
            self._numbering.levels,
            lambda counts, tables: principal_directions(counts, tables, n_components),
        )
        flat = replace(self.tables_, spelling=spelling)
        self.tables_ = flat.with_unknown_elements(self.counts_.select(valued))
        self.numeric_scale_ = 1.0

    def _numeric_block(self, numbered: list[str]) -> Standard | Curves:
        """Return the block of numbers that counts and moments give."""
        weights = self._number_weights(numbered)
        kind = self._numeric_method()
        if kind != "auto":
            moments = [moments_of(self.counts_, n, self._numbering.levels) for n in numbered]
            return _NUMERIC[kind].of(moments, numbered, weights)
        found = join_curves(self._curves(numbered), self._numbering.levels)
        assert found is not None
        return replace(found, inertia=float(class_weights(self._binned, numbered).sum()))

    def _number_weights(self, numbered: list[str]) -> np.ndarray:
        """Return how much each column of numbers counts: by the classes, and as was asked for."""
        given = [self._column_factors().get(name, 1.0) for name in numbered]
        return class_weights(self._binned, numbered) * given

    def _curves(self, numbered: list[str]) -> list[Curve]:
        """Return the curves of the columns of numbers."""
        curves = []
        for name, weight in zip(numbered, self._number_weights(numbered), strict=True):
            parts = [part for part, column in self._parts().items() if column == name]
            for part in parts:
                curve = curve_of(self._binned, part, self._numbering, self.counts_)
                if part not in self._gap_columns():
                    curve = curve.with_missing()
                curves.append(curve.scaled(2 * weight / len(parts)))  # a curve has an inertia of ½
        return curves

    @property
    def blocks_(self) -> Block:
        """The balanced blocks, side by side."""
        tables, numeric = self.tables_, self.numeric_
        if self._whole:
            return self.categorical_.blocks_  # type: ignore[union-attr]
        if self.n_components is not None:
            return sum_blocks(tables, numeric)  # type: ignore[arg-type]
        if isinstance(numeric, Curves):
            numeric = numeric.scaled(self.numeric_scale_)
        elif numeric is not None:
            levels = self._numbering.levels
            numeric = replace(numeric, scale=self.numeric_scale_, levels=levels)
        return Blocks([block for block in (tables, numeric) if block is not None])

    def _balance(self, block: str, n_columns: int, inertia: float) -> float:
        weight = 1.0 if isinstance(self.weights, str) else float(self.weights.get(block, 1))
        return float(np.sqrt(weight * n_columns / inertia)) if inertia > 0 else 1.0

    def _numbered(self) -> list[str]:
        kinds = ("numeric", "ordinal", "datetime")
        return [c.name for c in self._own_columns() if c.kind in kinds]

    def _coupled_names(self) -> list[str]:
        """Return the columns, or parts of them, that the categorical embedder sees."""
        parts = {*self._valued(), *self._parts()}
        own = [name for name in self.counts_.names if name in parts]
        return own if self.n_bins > 1 else self._valued()

    # -- numbers ---------------------------------------------------------------------------

    def _is_whole(self) -> bool:
        """Tell whether a Weave is to embed all columns; what ``fit`` found stays in ``_whole``."""
        woven = isinstance(self.categorical, Weave) or isinstance(self.categorical, str)
        plain = isinstance(self.numeric, str) and self.numeric == "auto"
        balanced = not isinstance(self.weights, str) and _BLOCKS & self.weights.keys()
        return woven and plain and not balanced and self.n_bins > 1

    def _numeric_method(self) -> Any:
        """Return "auto", "standard", "absolute", or a transformer."""
        if self.numeric == "auto":
            return "auto" if self.n_bins > 1 else "standard"
        if self.numeric == "coupled":
            return CoupledNumeric(standardize=True)
        return self.numeric if isinstance(self.numeric, str) else clone(self.numeric)

    def _fit_transformer(self, table: Table) -> None:
        """Fit a transformer now, while its rows are here."""
        names, numeric = self._numbered(), self._numeric_method()
        if names and not isinstance(numeric, str):
            levels = Numbering.of(self.counts_, int(self.n_bins)).levels
            moments = [moments_of(self.counts_, name, levels) for name in names]
            self.numeric_ = Transformed.of(numeric, moments, names, table, levels)

    def _check_adds_up(self, schema: Schema, method: str) -> None:
        """Raise where numbers go through a transformer, which wants all rows at once."""
        numbers = any(column.kind not in ("nominal", "set") for column in schema.columns)
        if numbers and not (isinstance(self.numeric, str) and self.numeric != "coupled"):
            raise ValueError(
                f"numeric={self.numeric!r} learns from all rows at once, so there is no {method}; "
                "use numeric='standard' or 'absolute', or fit"
            )

    # -- the rest --------------------------------------------------------------------------

    def _check(self) -> None:
        self._validate_params()
        if not self._has_vectors:
            raise ValueError(
                f"{self.categorical!r} gives no vectors for rows; use another embedder"
            )
        if isinstance(self.weights, Mapping):
            checked_weights(self.weights, list(self.weights))

    def _column_factors(self) -> dict[str, float]:
        """Return the weights that were given to single columns."""
        given = {} if isinstance(self.weights, str) else self.weights
        own = {name: weight for name, weight in given.items() if name not in _BLOCKS}
        return checked_weights(own, self.schema_.names)

    def _title(self) -> str:
        inner = "Weave" if isinstance(self.categorical, str) else self.categorical._title()
        return f"{type(self).__name__}, with {inner} for the categories"

    def _column_weights(self) -> dict[str, float]:
        return {} if self.categorical_ is None else self.categorical_._column_weights()


# -- balance -----------------------------------------------------------------------------------


def class_weights(counts: Counts, names: Sequence[str]) -> np.ndarray:
    """Return how much each column counts, mean 1: half alike, half as it is tied to the classes.

    The tie is ``SU⁺``, see :func:`~tabweave.embed.supervised.class_ties`. All weights are 1 where
    no classes were counted, or they depend on no column.
    """
    if counts.class_pairs is None:
        return np.ones(len(names))
    own = counts.select(names)
    ties = class_ties(own, own.class_pairs)
    return (1 + ties / ties.mean()) / 2 if ties.sum() > 0 else np.ones(len(names))


def table_inertia(tables: ValueTables, counts: Counts) -> float:
    """Return the variance of the objects that tables make, from counts."""
    rows = [table[:-1] for table in tables.tables]
    if tables.combine == "sum":
        stacked = np.vstack(rows)
        return float((stacked * centred_product(counts, stacked)).sum() / counts.n)
    total = 0.0
    for a, table in enumerate(rows):
        share = counts.value_counts[counts.span(a)]
        share = share / share.sum()
        if (own := tables.own.get(tables.names[a])) is not None:
            table = table[:, : -own.width]
            total += float(share @ own.squares[:-1] - own.squares[-1])
        total += float(share @ (table - share @ table) ** 2 @ np.ones(table.shape[1]))
    return total
