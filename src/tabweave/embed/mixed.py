"""MixedEmbedder: one vector per row of a table of categories, numbers, grades and sets.

Categories go through a categorical embedder, numbers through a numeric one; numbers are also
binned, so that what a category says about them counts in its couplings. The two blocks are
balanced by inertia: a column counts as a column, whichever kind it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from scipy.special import entr
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils.validation import _check_feature_names, check_is_fitted

from tabweave.base import (
    TabularInput,
    ValueEmbedder,
    _one_row,
    check_input_features,
    remember_names,
    require_rows,
)
from tabweave.blocks.numbers import Absolute, Standard
from tabweave.blocks.value_tables import ValueTables
from tabweave.counts.counts import Counts
from tabweave.counts.spectra import centred_product
from tabweave.embed.numeric import CoupledNumeric
from tabweave.embed.weave import Weave
from tabweave.io.store import Storable
from tabweave.rows.table import Codes, Column, Numbers, Schema, Table
from tabweave.rows.vocabulary import Label, positions

_BLOCKS = ("categorical", "numeric")
_NUMERIC = ("auto", "standard", "absolute", "coupled")


class MixedEmbedder(Storable, TabularInput, TransformerMixin, BaseEstimator):
    """Embed rows of mixed columns, in one Euclidean space that ``explain`` can take apart.

    Parameters
    ----------
    categorical : "auto" or ValueEmbedder, default="auto"
        What embeds nominal and set columns; "auto" is :class:`~tabweave.Weave`. It also sees the bins
        of numeric and ordinal columns.
    numeric : {"auto", "standard", "absolute", "coupled"} or transformer, default="auto"
        What embeds numbers, and ordinal columns as ranks. "standard": mean 0 and variance 1, one
        dimension each. "absolute": three dimensions each, in which squared distances follow the
        absolute difference in standard deviations, so that neighbours agree in most columns and
        outliers do not rule. "auto": "absolute" in a table of numbers and grades alone, "standard"
        beside categories and sets. "coupled": :class:`~tabweave.CoupledNumeric`. Or any scikit-learn
        transformer.
    weights : "inertia" or mapping, default="inertia"
        How blocks are balanced: each is scaled to as much inertia as it has columns, times
        ``weights["categorical"]`` or ``weights["numeric"]``, 1 if not given.
    n_bins : int, default=5
        Number of quantile bins of a numeric column; 1 leaves numbers out of the couplings.
    schema : Schema or mapping of column to kind, optional
        What the columns are; numbers are numeric unless declared otherwise.
    unknown : {"centroid", "error"}, default="centroid"
        What becomes of values not seen in fit.
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
    counts_ : Counts
        What was seen: values, bins, exact moments of numbers.
    schema_, n_features_in_, feature_names_in_
        The columns.

    Notes
    -----
    A missing number lies at the mean, and is a bin of its own in the couplings; a missing category
    is a value of its own. ``partial_fit`` keeps the bins of the first batch. Where the categorical
    embedder learns from classes (:class:`~tabweave.HELIC`), numbers do: "standard" and "absolute"
    columns count half alike, half as their bins are tied to the classes.

    Examples
    --------
    >>> from tabweave.embed.mixed import MixedEmbedder
    >>> rows = {"job": ["cook", "cook", "clerk", "judge"], "age": [25.0, 31.0, 44.0, None]}
    >>> model = MixedEmbedder().fit(rows)
    >>> model.transform(rows).shape
    (4, 3)
    >>> list(model.explain({"job": "cook", "age": 25.0}, {"job": "cook", "age": 44.0}))
    ['job', 'age']
    """

    def __init__(
        self,
        categorical: Any = "auto",
        numeric: Any = "auto",
        *,
        weights: Any = "inertia",
        n_bins: int = 5,
        schema: Any = None,
        unknown: str = "centroid",
        dtype: str = "float64",
    ) -> None:
        self.categorical = categorical
        self.numeric = numeric
        self.weights = weights
        self.n_bins = n_bins
        self.schema = schema
        self.unknown = unknown
        self.dtype = dtype

    # -- learning --------------------------------------------------------------------------

    counts_: Counts
    _numbering: Numbering

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn from rows.

        Parameters
        ----------
        X : frame, array, mapping of columns or list of dicts
            The rows.
        y : array-like, optional
            Classes, for the categorical embedders that use them.
        """
        self.__dict__.pop("counts_", None)
        return self.partial_fit(X, y)

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Add rows to what was seen so far; bins stay those of the first batch."""
        self._check_parameters()
        first = "counts_" not in vars(self)
        table = Table.of(X, Schema.of(self.schema), numbers="numeric") if first else self._known(X)
        require_rows(table)
        numbering = Numbering.of(table, int(self.n_bins)) if first else self._numbering
        spread = numbering.spread(table)
        embedder = self._embedder()
        if not embedder._has_vectors:
            raise ValueError(f"{embedder!r} gives rows no vectors; use another embedder")
        uses_classes = embedder._uses_classes
        if uses_classes and y is None:
            raise ValueError(f"{type(embedder).__name__} requires y to be passed")
        counts = Counts.of(spread, y if uses_classes else None)
        counts = counts if first else self.counts_ + counts
        if not first and isinstance(self.numeric_, Transformed):
            raise ValueError("partial_fit knows numeric='standard' and 'absolute' only; use fit")
        if first:
            self.schema_ = table.schema
            remember_names(self, table.schema)
        self._numbering, self.counts_ = numbering, counts
        self._learn(embedder if first else self.categorical_ or embedder, spread, y)
        return self

    def _learn(self, embedder: ValueEmbedder, spread: Table, y: Any) -> None:
        """Fit both blocks and scale each to as much inertia as it has columns."""
        valued = [c.name for c in self.schema_.columns if c.kind in ("nominal", "set")]
        numbered = [c.name for c in spread.schema.numeric]
        self.categorical_, self.tables_ = None, None
        if valued:
            names = [c.name for c in spread.schema.categorical if self.n_bins > 1]
            if embedder._needs_rows:  # a mixture, or pairs of rows
                self.categorical_ = embedder.partial_fit(spread.select(names or valued), y)
            else:
                self.categorical_ = embedder.fit_counts(self.counts_.select(names or valued))
            tables = own_tables(self.categorical_.learn().tables_, valued)
            inertia = table_inertia(tables, self.counts_.select(valued))
            factor = self._factor("categorical", len(valued), inertia)
            self.tables_ = replace(tables, tables=[factor * rows for rows in tables.tables])
        self.numeric_: Any = None
        self.numeric_scale_ = 1.0
        if numbered:
            numeric = self._numeric(bool(valued))
            if isinstance(numeric, str):
                kind = Absolute if numeric == "absolute" else Standard
                weights = class_weights(self.counts_, numbered)
                self.numeric_ = kind(self.counts_, numbered, weights)
            else:
                self.numeric_ = Transformed(numeric, self.counts_, spread)
            self.numeric_scale_ = self._factor("numeric", len(numbered), self.numeric_.inertia)

    def _factor(self, block: str, n_columns: int, inertia: float) -> float:
        weight = 1.0 if isinstance(self.weights, str) else float(self.weights.get(block, 1))
        return float(np.sqrt(weight * n_columns / inertia)) if inertia > 0 else 1.0

    def _embedder(self) -> ValueEmbedder:
        return Weave() if isinstance(self.categorical, str) else clone(self.categorical)

    def _numeric(self, beside_values: bool) -> Any:
        """Return "standard", "absolute", or a transformer."""
        if not isinstance(self.numeric, str):
            return clone(self.numeric)
        if self.numeric == "auto":
            return "standard" if beside_values else "absolute"
        return CoupledNumeric(standardize=True) if self.numeric == "coupled" else self.numeric

    def _check_parameters(self) -> None:
        if self.categorical != "auto" and not isinstance(self.categorical, ValueEmbedder):
            raise TypeError(
                f"categorical={self.categorical!r}: use 'auto' or an embedder of tabweave"
            )
        named = self.numeric in _NUMERIC if _text(self.numeric) else True
        if not named or (not _text(self.numeric) and not hasattr(self.numeric, "transform")):
            names = ", ".join(map(repr, _NUMERIC))
            raise ValueError(f"numeric={self.numeric!r}: use {names} or a transformer")
        if not isinstance(self.n_bins, Integral) or not 1 <= self.n_bins <= 1000:
            raise ValueError(f"n_bins={self.n_bins!r}: use a whole number from 1 to 1000")
        if self.unknown not in ("centroid", "error"):
            raise ValueError(f"unknown={self.unknown!r}: use 'centroid' or 'error'")
        if isinstance(self.weights, Mapping):
            for block, weight in self.weights.items():
                if block not in _BLOCKS or not isinstance(weight, Real) or not weight >= 0:
                    raise ValueError(
                        f"weights has {block!r}: {weight!r}; give numbers >= 0 for 'categorical' "
                        "and 'numeric'"
                    )
        elif self.weights != "inertia":
            raise ValueError(f"weights={self.weights!r}: use 'inertia' or a mapping")

    def _known(self, X: Any) -> Table:
        check_is_fitted(self, "counts_")
        if not isinstance(X, Mapping | list | tuple | Table):
            _check_feature_names(self, X, reset=False)
        return Table.of(X, self.schema_, numbers="numeric")

    # -- using -----------------------------------------------------------------------------

    def transform(self, X: Any) -> np.ndarray:
        """Return the vector of each row; learns nothing."""
        table = self._known(X)
        return self._vectors(table, np.dtype(self.dtype))

    def _vectors(self, table: Table, dtype: np.dtype) -> np.ndarray:
        width = 0 if self.tables_ is None else self.tables_.n_features
        names = [] if self.numeric_ is None else self.numeric_.feature_names()
        out = np.empty((table.n_rows, width + len(names)), dtype)
        if self.tables_ is not None:
            policy: Any = self.unknown
            self.tables_.gather(table, out=out[:, :width], unknown=policy)
        if self.numeric_ is not None:
            self.numeric_.put(self._numbers(table), out[:, width:])
            out[:, width:] *= self.numeric_scale_
        return out

    def _numbers(self, table: Table) -> Table:
        return self._numbering.numbers(table, self.unknown)

    def pairwise_distances(self, X: Any, Y: Any = None) -> np.ndarray:
        """Return the distances between the rows of X and of Y (or X)."""
        from scipy.spatial.distance import cdist

        left = self._vectors(self._known(X), np.dtype("f8"))
        return cdist(left, left if Y is None else self._vectors(self._known(Y), np.dtype("f8")))

    def explain(self, a: Any, b: Any) -> dict[str, float]:
        """Say why two rows are apart: each column's share in their squared distance.

        Where columns are mixed (a projection, coupled numbers) a share may be negative: that
        column's difference points against the total one.

        Parameters
        ----------
        a, b : dict, sequence or one-row frame
            The two rows.
        """
        left, right = self._known(_one_row(a)), self._known(_one_row(b))
        shares: dict[str, float] = {}
        if self.tables_ is not None:
            own = self.tables_.contributions(left, right)[0]
            shares |= dict(zip(self.tables_.names, own.tolist(), strict=True))
        if self.numeric_ is not None:
            names, ours = self.numeric_.parts(self._numbers(left))
            _, theirs = self.numeric_.parts(self._numbers(right))
            apart = (ours - theirs)[:, 0] * self.numeric_scale_
            signed = apart @ apart.sum(axis=0)
            shares |= dict(zip(names, signed.tolist(), strict=True))
        order = [name for name in self.schema_.names if name in shares]
        return {name: shares[name] for name in [*order, *(n for n in shares if n not in order)]}

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return a name for each dimension of :meth:`transform`."""
        check_is_fitted(self, "counts_")
        check_input_features(self, input_features)
        names = [] if self.tables_ is None else self.tables_.feature_names()
        names = names + ([] if self.numeric_ is None else self.numeric_.feature_names())
        return np.asarray(names, dtype=object)


def _text(value: Any) -> bool:
    return isinstance(value, str)


# -- Parts of a mixed table: bins, ranks and numbers side by side, and the numeric block

BINNED = " (binned)"


@dataclass(frozen=True, eq=False)
class Numbering:
    """How each numeric and ordinal column becomes numbers and bins: learned from the first rows."""

    edges: dict[str, np.ndarray]
    levels: dict[str, tuple[Label, ...]]

    @classmethod
    def of(cls, table: Table, n_bins: int) -> Numbering:
        """Take quantiles of numbers as the edges of bins, and the levels of grades."""
        edges, levels = {}, {}
        for column, data in table:
            if isinstance(data, Numbers):
                edges[column.name] = quantile_edges(data.values, n_bins)
            elif column.kind == "ordinal" and isinstance(data, Codes):
                own = sorted((v for v in data.labels if v is not None), key=_sortable)
                levels[column.name] = column.levels or tuple(own)
        return cls(edges, levels)

    def spread(self, table: Table, unknown: str = "centroid") -> Table:
        """Return a table with values as they are, bins beside numbers, and ranks for grades."""
        columns: list[Column] = []
        parts: list[Any] = []
        for column, data in table:
            if isinstance(data, Numbers):
                columns += [column, Column(column.name + BINNED)]
                parts += [data, binned(data.values, self.edges[column.name])]
            elif column.kind == "ordinal":
                ranks = self._ranks(column.name, data, unknown)
                columns += [Column(column.name, "numeric"), Column(column.name + BINNED)]
                parts += [Numbers(ranks), data]
            else:
                columns.append(column)
                parts.append(data)
        schema = Schema(tuple(columns), complete=True, named=table.schema.named)
        return Table(schema, tuple(parts), table.n_rows)

    def numbers(self, table: Table, unknown: str) -> Table:
        """Return the numbers of a table, and the ranks of its grades."""
        columns: list[Column] = []
        parts: list[Any] = []
        for column, data in table:
            if isinstance(data, Numbers):
                columns.append(column)
                parts.append(data)
            elif column.kind == "ordinal":
                columns.append(Column(column.name, "numeric"))
                parts.append(Numbers(self._ranks(column.name, data, unknown)))
        schema = Schema(tuple(columns), complete=True, named=table.schema.named)
        return Table(schema, tuple(parts), table.n_rows)

    def _ranks(self, name: str, data: Any, unknown: str) -> np.ndarray:
        place = positions(self.levels[name], data.labels).astype(float)
        odd = place == len(self.levels[name])
        if unknown == "error":
            for i in np.flatnonzero(odd):
                if data.labels[i] is not None and (data.codes == i).any():
                    raise ValueError(
                        f"column {name!r}: value {data.labels[i]!r} is no level; add it to the "
                        "levels, or use unknown='centroid'"
                    )
        place[odd] = np.nan
        return place[data.codes]


def quantile_edges(values: np.ndarray, n_bins: int) -> np.ndarray:
    """Return the inner edges of bins with about as many numbers each."""
    present = values[~np.isnan(values)]
    if not len(present):
        return np.zeros(0)
    edges = np.unique(np.quantile(present, np.arange(1, n_bins) / n_bins))
    low = present.min()
    edges = edges[edges > low]  # a bin below the lowest number would be empty
    above = present[present > low]
    if n_bins > 1 and not len(edges) and len(above):
        return above[above.argmin()][
            None
        ]  # most numbers are the lowest one: tell those from others
    return edges


def binned(values: np.ndarray, edges: np.ndarray) -> Codes:
    """Return the bin of each number; missing is a value of its own."""
    codes = np.searchsorted(edges, values, side="right")
    gaps = np.isnan(values)
    labels: list[Label] = list(range(len(edges) + 1))
    if gaps.any():
        codes[gaps] = len(labels)
        labels.append(None)
    return Codes(codes.astype(np.uint16), labels)


def _sortable(label: Label) -> tuple[str, Any]:
    return (type(label).__name__ if not isinstance(label, int | float) else "", label)


# -- numbers ------------------------------------------------------------------------------------


def class_weights(counts: Counts, names: Sequence[str]) -> np.ndarray:
    """Return how much each column counts, mean 1: half alike, half as it is tied to the classes.

    The tie is ``SU⁺ = 2 max(0, MI - (bins - 1)(classes - 1) / 2n) / (H(bins) + H(classes))``. All
    weights are 1 where classes are not known, or depend on no column.
    """
    ties = np.zeros(len(names))
    for j, name in enumerate(names if counts.class_pairs is not None else ()):
        joint = counts.class_pairs[counts.span(name + BINNED)]  # type: ignore[index]
        joint = joint[joint.sum(axis=1) > 0][:, joint.sum(axis=0) > 0]
        total = joint.sum()
        bins, classes, both = (
            entr(share / total).sum() for share in (joint.sum(axis=1), joint.sum(axis=0), joint)
        )
        chance = (joint.shape[0] - 1) * (joint.shape[1] - 1) / (2 * total)
        ties[j] = 2 * max(bins + classes - both - chance, 0) / max(bins + classes, 1e-300)
    return (1 + ties / ties.mean()) / 2 if ties.sum() > 0 else np.ones(len(names))


class Transformed:
    """Numbers through a transformer that was fitted on them; gaps are filled with the mean."""

    def __init__(self, transformer: Any, counts: Counts, table: Table) -> None:
        self.names = [c.name for c in table.schema.numeric]
        moments = (counts.moments(name) for name in self.names)
        self.mean = np.array([mean if n else 0.0 for n, mean, _ in moments])
        self.transformer = transformer
        rows = self._rows(table)
        transformer.fit(rows)
        vectors = np.asarray(transformer.transform(rows), dtype=float)
        self.width = vectors.shape[1]
        self.inertia = float(vectors.var(axis=0).sum())

    def _rows(self, table: Table) -> np.ndarray:
        rows = np.stack([table[name].values for name in self.names], axis=1)
        if isinstance(self.transformer, CoupledNumeric):
            return rows  # it knows what to do with gaps
        return np.where(np.isnan(rows), self.mean, rows)

    def feature_names(self) -> list[str]:
        try:
            names = self.transformer.get_feature_names_out(self.names)
        except (AttributeError, ValueError):
            return [f"numeric{i}" for i in range(self.width)]
        return [str(name) for name in names]

    def put(self, table: Table, out: np.ndarray) -> None:
        out[:] = self.transformer.transform(self._rows(table))

    def parts(self, table: Table) -> tuple[list[str], np.ndarray]:
        """Return what each column brings, where the transformer can tell; else all in one."""
        if isinstance(self.transformer, CoupledNumeric):
            return self.names, self.transformer.parts(self._rows(table))
        return ["(numeric)"], np.asarray(self.transformer.transform(self._rows(table)))[None]


# -- values -------------------------------------------------------------------------------------


def own_tables(tables: ValueTables, names: list[str]) -> ValueTables:
    """Return the tables of some columns: bins shape couplings, the numbers themselves stand in."""
    return tables.select(names)


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
        total += float(share @ (table - share @ table) ** 2 @ np.ones(table.shape[1]))
    return total
