"""MCA, CA, FAMD, MFA: the factorial maps of categories, of mixed tables and of groups of columns.

The pair counts of a table are its Burt matrix, so what other packages find by decomposing the n × V
indicator matrix follows from V × V counts: exactly, at a cost that does not depend on the number of
rows, in chunks, and with rows taken away again. A row is the sum of its values' coordinates.

[Benzécri 1973, 1979; Greenacre 1984, 1993; Pagès 2004 (FAMD); Escofier and Pagès 1994 (MFA)]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, eigsh
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, check_non_negative, validate_data

from tabweave._compat import Interval, StrOptions, eigh, fix_signs, require
from tabweave.base import Estimator
from tabweave.columns.column import Schema
from tabweave.columns.frames import in_memory
from tabweave.columns.inputs import numbers_only
from tabweave.columns.numeric import step_from
from tabweave.columns.table import Table, require_rows
from tabweave.columns.vocabulary import Label
from tabweave.counts.counts import Counts
from tabweave.counts.couplings import check_no_sets
from tabweave.counts.spectra import CrossMoments
from tabweave.embed.base import Embedder, ValueEmbedder
from tabweave.embed.register import embedder
from tabweave.embed.weave import summed_space
from tabweave.engines import count_with, is_source
from tabweave.engines.reading import hold_counts, read_fitted, read_queries, read_rows, start_counts
from tabweave.io.register import storable
from tabweave.space.numbers import Curves
from tabweave.space.space import Space
from tabweave.space.value_tables import ValueTables

MAX_DENSE_FEATURES = 2048  # With more features, only the leading eigenvalues are found.


class Factorial(Embedder):
    """What MCA, FAMD and MFA have in common: axes, and what columns and rows are on them."""

    axes_: FactorAxes
    _principal: ClassVar[bool] = False  # whether values are scaled as rows are, or lie among them

    @property
    def eigenvalues_(self) -> np.ndarray:
        """The variance of the rows along each axis."""
        return self.axes_.eigenvalues

    @property
    def total_inertia_(self) -> float:
        """The variance of the rows in all directions together."""
        return self.axes_.total

    @property
    def explained_inertia_ratio_(self) -> np.ndarray:
        """The share of each axis in the inertia, by the correction that was asked for."""
        return self.axes_.ratio

    def column_coordinates(self) -> Any:
        """Where values and numeric columns lie on the axes, as a pandas frame.

        A number's coordinate is its correlation with the axis. A value's is the mean of the rows
        that have it; in MCA divided by the root of the eigenvalue (principal coordinates).
        """
        axes = self.learn().axes_
        return self._framed(axes.labels, axes.coordinates(self._principal))

    def column_contributions(self) -> Any:
        """Share of each value and numeric column in the variance of each axis."""
        axes = self.learn().axes_
        return self._framed(axes.labels, axes.vectors**2)

    def column_cosines(self) -> Any:
        """Cos²: how much of what is known of a value or number the axis shows."""
        axes = self.learn().axes_
        return self._framed(axes.labels, axes.cosines(self._principal))

    def row_contributions(self, X: Any) -> np.ndarray:
        """Share of each row of X in the variance of each axis, one of n of fit."""
        f = self.transform(X)
        return f**2 / (self.eigenvalues_ * float(self.counts_.n))

    def row_cosines(self, X: Any) -> np.ndarray:
        """Cos²: how much of a row's distance from the centre each axis shows."""
        f = self.transform(X)
        length = self._lengths(read_fitted(self, X))
        return f**2 / np.where(length > 0, length, 1)[:, None]

    def supplementary(self, X: Any, columns: Any) -> Any:
        """Where columns that took no part lie on the axes, as a pandas frame.

        Parameters
        ----------
        X : what ``transform`` takes
            The rows.
        columns : frame, array or mapping of columns
            Other columns of the same rows; numbers by correlation, values as in
            :meth:`column_coordinates`.

        Examples
        --------
        >>> from tabweave import MCA
        >>> rows = {"sky": ["sun", "sun", "rain", "rain"], "hat": ["yes", "no", "no", "no"]}
        >>> more = {"mood": ["good", "good", "bad", "bad"]}
        >>> MCA(1).fit(rows).supplementary(rows, more)["dim0"].round(2).to_dict()
        {('mood', 'bad'): -0.89, ('mood', 'good'): 0.89}
        """
        f = self.transform(X)
        table = Table.of(columns)
        if table.n_rows != len(f):
            raise ValueError(f"expected columns of {len(f)} rows as in X, got {table.n_rows}")
        labels, coordinates = [], [np.zeros((0, f.shape[1]))]
        scale = np.sqrt(self.eigenvalues_) if self._principal else 1.0
        for column, data in table:
            if column.is_continuous:
                labels.append((column.name, None))
                coordinates.append(_correlations(data.values, f)[None, :])
            elif not column.is_set:
                data = data.as_values()
                present, codes, sizes = np.unique(
                    data.codes, return_inverse=True, return_counts=True
                )
                sums = np.zeros((len(present), f.shape[1]))
                np.add.at(sums, codes, f)
                labels += [(column.name, data.labels[i]) for i in present]
                coordinates.append(sums / sizes[:, None] / scale)
            else:
                raise ValueError(f"column {column.name!r} holds sets; give single values")
        return self._framed(labels, np.vstack(coordinates)).sort_index(level=0, sort_remaining=True)

    def _lengths(self, table: Table) -> np.ndarray:
        """Squared distance of each row from the centre, in all directions."""
        axes = self.axes_
        counts = self.counts_.select([column.name for column in self.schema_.categorical])
        valued = ~np.isnan(axes.share)
        square = axes.scale[valued] ** 2 * (1 / axes.share[valued] - 1)
        out = np.zeros(table.n_rows)
        for a, codes in enumerate(counts.vocabulary.codes(table)):
            out += np.append(square[counts.span(a)], 0.0)[codes]
        moments = getattr(self, "moments_", None)
        if moments is not None:
            mean, deviation = standard(moments, counts.n)
            for j, name in enumerate(moments.names):
                if deviation[j] > 0:
                    z = axes.scale[~valued][j] * (table[name].values - mean[j]) / deviation[j]
                    out += np.where(np.isnan(z), 0, z) ** 2
        return out

    def _framed(self, labels: Sequence[tuple[str, Label]], values: np.ndarray) -> Any:
        pandas = require("pandas", "frames")
        index = pandas.MultiIndex.from_tuples(labels, names=["column", "value"])
        names = [f"dim{k}" for k in range(values.shape[1])]
        return pandas.DataFrame(values, index=index, columns=names)


@embedder(
    "mca",
    "multiple correspondence analysis: PCA for categories",
    "Benzécri 1973; Greenacre 1984",
    page="factors",
)
class MCA(Factorial, ValueEmbedder):
    """Multiple correspondence analysis, from pair counts: exact at any number of rows.

    Parameters
    ----------
    n_components : int, default=2
        Number of axes; fewer if the table has fewer.
    correction : {"benzecri", "greenacre"}, optional
        How eigenvalues and their shares are corrected for the trivial part of the Burt matrix;
        coordinates are as without it.
    schema, unknown, dtype
        As in :class:`~tabweave.OneHot`.

    Attributes
    ----------
    eigenvalues_ : ndarray
        The variance of the rows along each axis.
    corrected_eigenvalues_ : ndarray
        The same, corrected; 0 for axes at or below 1/K, K the number of columns.
    total_inertia_, explained_inertia_ratio_ : float, ndarray
        The inertia of all axes, and the share of each kept one in it (corrected, if asked for).
    tables_ : ValueTables
        The coordinates of the values; a row is their sum.
    numbers_ : Curves or None
        The coordinates of numbers, grades and dates; None without any.
    counts_ : Counts
        The Burt matrix, which is all that was kept.
    axes_ : FactorAxes
        Eigenvectors and what the other attributes and methods are made from.
    space_, schema_
        As in :class:`~tabweave.OneHot`.

    Notes
    -----
    With pair counts C, value counts c and K columns, axes are eigenvectors u of
    ``(C_vw - c_v c_w / n) / (K √(c_v c_w))``. The coordinate of a row is the sum of
    ``u_v √(n / (K c_v))`` over its values, that of a value is ``u_v √(λ K n / c_v)``. Benzécri:
    ``(K/(K-1))² (λ - 1/K)²`` for λ > 1/K, as shares of their sum; Greenacre: as shares of
    ``K/(K-1) (Σλ² - (V - K)/K²)``. Missing is a separate category; an unknown value gets the
    coordinates of the centre. With more than 2,048 values the leading axes are found by Lanczos
    iteration on the sparse counts.

    Examples
    --------
    >>> from tabweave import MCA
    >>> rows = {"sky": ["sun", "sun", "rain", "rain"], "hat": ["yes", "no", "no", "no"]}
    >>> model = MCA(1).fit(rows)
    >>> model.eigenvalues_.round(3).tolist(), model.transform(rows).round(2).ravel().tolist()
    ([0.789], [1.37, 0.21, -0.79, -0.79])
    >>> model.column_coordinates().round(2)["dim0"].to_dict()[("hat", "yes")]
    1.54
    """

    _principal: ClassVar[bool] = True
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **ValueEmbedder._parameter_constraints,
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "correction": [StrOptions({"benzecri", "greenacre"}), None],
    }

    def __init__(
        self,
        n_components: int = 2,
        *,
        correction: str | None = None,
        schema: Any = None,
        unknown: str = "centroid",
        dtype: str = "float64",
    ) -> None:
        super().__init__(schema=schema, unknown=unknown, dtype=dtype)
        self.correction = correction
        self.n_components = n_components

    def forget(self, X: Any) -> Self:
        """Remove rows that were added before, exactly as if they had never been counted."""
        table = read_fitted(self, X)
        return hold_counts(self, self.counts_ - Counts.of(table))

    def _learn(self, counts: Counts) -> ValueTables:
        check_no_sets(counts, "MCA")
        self._counted = self._counted.where_missing_is_a_value()  # as in the indicator matrix
        k = max(len(counts.names), 1)
        features = FactorFeatures.of(counts, None).scaled(
            np.full(len(counts.value_counts), k**-0.5)
        )
        axes = features.axes(int(self.n_components))
        self.corrected_eigenvalues_ = benzecri(axes.eigenvalues, k)
        if self.correction == "benzecri":
            total = benzecri(features.eigenvalues(), k).sum()
        elif self.correction == "greenacre":
            total = greenacre_total(float(features.squares().sum()), k, counts.vocabulary.n_values)
        if self.correction is not None:
            axes = replace(axes, ratio=_share(self.corrected_eigenvalues_, total))
        self.axes_ = axes
        return ValueTables.from_features(axes.tables(counts), counts, combine="sum")


@embedder(
    "famd",
    "factor analysis of mixed data: PCA for categories and numbers, all columns weighted equally",
    "Pagès 2004",
    reads="mixed",
    page="factors",
)
class FAMD(Factorial):
    """Factor analysis of mixed data, from counts and moments.

    Parameters
    ----------
    n_components : int, default=2
        Number of axes; fewer if the table has fewer.
    schema, unknown, dtype
        As in :class:`~tabweave.Weave`.

    Attributes
    ----------
    eigenvalues_, total_inertia_, explained_inertia_ratio_
        The variance of the rows along each axis and in all, and the share of each axis.
    counts_, moments_ : Counts, CrossMoments
        What was seen: pair counts, and sums of numbers and of their products.
    axes_ : FactorAxes
        Eigenvectors and what the other attributes and methods are made from.
    tables_, numbers_ : ValueTables, Curves or None
        The coordinates of the values, and of the numeric columns; a row is their sum.
    space_, schema_
        As in :class:`~tabweave.OneHot`.

    Notes
    -----
    The principal components of standardised numbers and of indicators divided by the root of their
    share. A missing number counts as the mean of its column, a missing category is a separate
    category. Ordinal columns are read as categories.

    Examples
    --------
    >>> from tabweave import FAMD
    >>> rows = {"job": ["cook", "clerk", "clerk", "judge"], "age": [25.0, 61.0, 44.0, 60.0]}
    >>> model = FAMD(2).fit(rows)
    >>> model.transform(rows).shape, model.explained_inertia_ratio_.round(2).tolist()
    ((4, 2), [0.64, 0.33])
    >>> model.column_coordinates().loc["age"].abs().round(2).values.tolist()
    [[0.98, 0.0]]
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **Embedder._parameter_constraints,
        "n_components": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        n_components: int = 2,
        *,
        schema: Any = None,
        unknown: str = "centroid",
        dtype: str = "float64",
    ) -> None:
        super().__init__(schema=schema, unknown=unknown, dtype=dtype)
        self.n_components = n_components

    moments_: CrossMoments
    tables_: ValueTables
    numbers_: Curves | None

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn from rows, or from any source of :func:`tabweave.count`; ``y`` is ignored.

        A source is read once, in batches, and never kept.
        """
        return self._add(X, first=True, whole=True).learn()

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Add rows, or those of a source, to what was seen so far; nothing is learned yet."""
        return self._add(X, first=not hasattr(self, "counts_"))

    def _add(self, X: Any, *, first: bool, whole: bool = False) -> Self:
        self._validate_params()
        schema, older = (Schema.of(self.schema), None) if first else (self.schema_, self.moments_)
        read_schema: Schema | None = None
        if not in_memory(X) and is_source(X):
            counted = Counts() if first else self.counts_.select(schema.names)
            counts, moments = count_with(X, schema, counted, CrossMoments.of)
        else:
            table = read_rows(self, X, whole=whole) if first else read_fitted(self, X)
            if first:
                require_rows(table)
            counts, moments = Counts.of(table), CrossMoments.of(table, older)
            read_schema = table.schema
        if older is None:
            start_counts(self, counts, read_schema)
            self.moments_ = moments
        else:
            hold_counts(self, self.counts_ + counts)
            self.moments_ = older + moments
        return self

    def forget(self, X: Any) -> Self:
        """Remove rows that were added before, exactly as if they had never been counted."""
        table = read_fitted(self, X)
        hold_counts(self, self.counts_ - Counts.of(table))  # raises for rows that were not counted
        self.moments_ = self.moments_ - CrossMoments.of(table, self.moments_)
        return self

    def _learn(self, counts: Counts) -> None:
        check_no_sets(counts, type(self).__name__)
        valued = counts.select([c.name for c in self.schema_.categorical])
        features = self._weighted(FactorFeatures.of(valued, self.moments_))
        self.axes_ = features.axes(int(self.n_components))
        tables = self.axes_.tables(valued)
        self.tables_ = ValueTables.from_features(tables, valued, combine="sum")
        self.numbers_ = self.axes_.curves(self.moments_, counts.n)

    def _weighted(self, features: FactorFeatures) -> FactorFeatures:
        """Features with the weights of their columns."""
        return features

    @property
    def space_(self) -> Space:
        """Tables and numbers, summed."""
        return summed_space(self.tables_, self.numbers_)


@embedder(
    "mfa",
    "multiple factor analysis: groups of columns, all groups weighted equally",
    "Escofier and Pagès 1994",
    reads="mixed",
    offered="python",
    page="factors",
)
class MFA(FAMD):
    """Multiple factor analysis: groups of columns, each divided by its own first eigenvalue.

    Parameters
    ----------
    groups : mapping of name to list of columns, optional
        The groups, of categories, numbers or both; each column in one of them. By default the
        numbers are one and the categories another.
    n_components : int, default=2
        Number of axes; fewer if the table has fewer.
    schema, unknown, dtype
        As in :class:`~tabweave.Weave`.

    Attributes
    ----------
    group_eigenvalues_ : dict of str to float
        The first eigenvalue of each group on its own.
    eigenvalues_, total_inertia_, explained_inertia_ratio_, axes_, tables_, numbers_
        As in :class:`FAMD`.
    counts_, moments_
        As in :class:`FAMD`.
    space_, schema_
        As in :class:`~tabweave.OneHot`.

    Examples
    --------
    >>> from tabweave import MFA
    >>> rows = {"job": ["cook", "cook", "clerk", "judge"], "age": [25.0, 31.0, 44.0, 60.0],
    ...         "pay": [20.0, 24.0, 30.0, 80.0]}
    >>> model = MFA({"who": ["job", "age"], "pay": ["pay"]}).fit(rows)
    >>> {name: round(value, 2) for name, value in model.group_eigenvalues_.items()}
    {'who': 1.99, 'pay': 1.0}
    >>> model.group_coordinates(rows)["pay"].shape
    (4, 2)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **FAMD._parameter_constraints,
        "groups": [Mapping, None],
    }

    def __init__(
        self,
        groups: Any = None,
        n_components: int = 2,
        *,
        schema: Any = None,
        unknown: str = "centroid",
        dtype: str = "float64",
    ) -> None:
        super().__init__(n_components, schema=schema, unknown=unknown, dtype=dtype)
        self.groups = groups

    def group_coordinates(self, X: Any) -> dict[str, np.ndarray]:
        """Coordinates of the rows from each group alone; their mean is ``transform``."""
        self.learn()
        by_column, groups = self._split(X), self._groups()
        return {
            name: len(groups) * sum(by_column[c] for c in group) for name, group in groups.items()
        }

    def _split(self, X: Any) -> dict[str, np.ndarray]:
        """Return what each column adds to the rows."""
        table = read_queries(self, X)
        parts = self.tables_.split(table) if self.tables_.tables else {}
        return parts | ({} if self.numbers_ is None else self.numbers_.split(table))

    def _groups(self) -> dict[str, list[str]]:
        names = self.schema_.names
        if self.groups is None:
            numbers = [c.name for c in self.schema_.numeric]
            categories = [name for name in names if name not in numbers]
            by_kind = {"categories": categories, "numbers": numbers}
            return {name: group for name, group in by_kind.items() if group}
        dropped = set(self.schema_.given).difference(names)
        groups = {
            str(name): [column for column in group if column not in dropped]
            for name, group in self.groups.items()
        }
        listed = [column for group in groups.values() for column in group]
        if sorted(listed) != sorted(names) or not all(groups.values()):
            raise ValueError(
                f"expected groups that have each of the columns {names} once, got {groups}"
            )
        return groups

    def _weighted(self, features: FactorFeatures) -> FactorFeatures:
        scale = np.ones(len(features.columns))
        self.group_eigenvalues_: dict[str, float] = {}
        for name, group in self._groups().items():
            in_group = np.isin(features.columns, group)
            first = features.largest_eigenvalue(np.flatnonzero(in_group))
            self.group_eigenvalues_[name] = first
            scale[in_group] = 1 / np.sqrt(first) if first > 0 else 0.0
        return features.scaled(scale)


@embedder(
    "ca",
    "correspondence analysis of a table of counts",
    "Benzécri 1973; Greenacre 1984",
    reads="numbers",
    offered="python",
    page="factors",
)
class CA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Estimator):
    """Correspondence analysis of a two-way table of counts.

    Rows of the table are seen once and add up, so a table may be longer than memory.

    Parameters
    ----------
    n_components : int, default=2
        Number of axes; fewer if the table has fewer.

    Attributes
    ----------
    eigenvalues_, total_inertia_, explained_inertia_ratio_
        The principal inertias, their sum over all axes, and the share of each. The sum times the
        total of the table is its chi-square.
    column_masses_ : ndarray
        The share of each column in the total.

    Examples
    --------
    >>> from tabweave import CA
    >>> smokers = [[4, 2, 3, 2], [4, 3, 7, 4], [25, 10, 12, 4], [18, 24, 33, 13], [10, 6, 7, 2]]
    >>> model = CA(2).fit(smokers)
    >>> model.eigenvalues_.round(4).tolist()
    [0.0748, 0.01]
    >>> model.transform(smokers).round(3).tolist()[2]
    [0.381, 0.011]
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(self, n_components: int = 2) -> None:
        self.n_components = n_components

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit to a table of counts (or other non-negative numbers)."""
        self._validate_params()
        return self._learn(profile_sums(self._checked(X, reset=True)))

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Add rows to the table."""
        if not hasattr(self, "_sums"):
            return self.fit(X)
        self._validate_params()
        return self._learn(self._sums + profile_sums(self._checked(X, reset=False)))

    def forget(self, X: Any) -> Self:
        """Remove rows that were added before, exactly as if they had never been there."""
        check_is_fitted(self, "_sums")
        return self._learn(self._sums - profile_sums(self._checked(X, reset=False)))

    def fit_counts(self, counts: Counts) -> Self:
        """Fit to the contingency table of two columns, given as counts."""
        if len(counts.names) != 2:
            raise ValueError(f"expected counts of two columns, got {counts.names}")
        pandas = require("pandas", "frames")
        first, second = (list(map(str, labels)) for labels in counts.labels)
        return self.fit(pandas.DataFrame(counts.block(0, 1), index=first, columns=second))

    def _checked(self, X: Any, *, reset: bool) -> np.ndarray:
        remedy = "CA reads a table of counts, such as pandas.crosstab makes; MCA reads categories"
        with numbers_only(X, remedy):
            X = validate_data(self, X, dtype=np.float64, reset=reset)
        check_non_negative(X, "CA")
        return X

    def _learn(self, sums: np.ndarray) -> Self:
        product, columns = sums[:-1], sums[-1]
        n = columns.sum()
        if not n > 0:
            raise ValueError(f"expected a table with counts above 0, got a total of {n}")
        self._sums = sums
        share = columns / n
        root = np.sqrt(np.where(share > 0, share, 1))
        scatter = (product / n - np.outer(share, share)) / np.outer(root, root)
        values, vectors = leading(scatter, int(self.n_components))
        self.column_masses_ = share
        self.eigenvalues_, self._vectors = values, vectors
        self.total_inertia_ = float(np.trace(scatter))
        self.explained_inertia_ratio_ = _share(values, self.total_inertia_)
        self._standard = np.where(share > 0, 1 / root, 0)[:, None] * vectors
        self._column_inertias = np.diagonal(scatter)
        self._n_features_out = len(values)
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Principal coordinates of the rows of a table; an empty row is the centre."""
        check_is_fitted(self, "_sums")
        return self._centred(X) @ self._standard

    def _centred(self, X: Any) -> np.ndarray:
        """Each row as shares, less those of all rows; an empty row is the centre."""
        X = self._checked(X, reset=False)
        total = X.sum(axis=1, keepdims=True)
        return X / np.where(total > 0, total, 1) - self.column_masses_ * (total > 0)

    def column_coordinates(self) -> np.ndarray:
        """Principal coordinates of the columns."""
        check_is_fitted(self, "_sums")
        return self._standard * np.sqrt(self.eigenvalues_)

    def column_contributions(self) -> np.ndarray:
        """Share of each column in the inertia of each axis."""
        check_is_fitted(self, "_sums")
        return self._vectors**2

    def column_cosines(self) -> np.ndarray:
        """Cos²: how much of a column's distance from the centre each axis shows."""
        check_is_fitted(self, "_sums")
        total = self._column_inertias
        return self._vectors**2 * self.eigenvalues_ / np.where(total > 0, total, 1)[:, None]

    def row_contributions(self, X: Any) -> np.ndarray:
        """Share of each row in the inertia of each axis."""
        check_is_fitted(self, "_sums")
        mass = self._checked(X, reset=False).sum(axis=1) / self._sums[-1].sum()
        return mass[:, None] * self.transform(X) ** 2 / self.eigenvalues_

    def row_cosines(self, X: Any) -> np.ndarray:
        """Cos²: how much of a row's distance from the centre each axis shows."""
        f = self.transform(X)
        share = np.where(self.column_masses_ > 0, self.column_masses_, 1)
        length = (self._centred(X) ** 2 / share).sum(axis=1)
        return f**2 / np.where(length > 0, length, 1)[:, None]

    def supplementary(self, X: Any, columns: Any) -> np.ndarray:
        """Principal coordinates of other columns of counts of the same rows."""
        f, counts = self.transform(X), np.asarray(columns, dtype=np.float64)
        check_non_negative(counts, "CA")
        total = counts.sum(axis=0)
        return (counts / np.where(total > 0, total, 1)).T @ f / np.sqrt(self.eigenvalues_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        tags.transformer_tags.preserves_dtype = []
        return tags


# -- what is decomposed ---------------------------------------------------------------------------


def profile_sums(X: np.ndarray) -> np.ndarray:
    """``Σ x xᵀ / |x|`` over the rows x of a table, and their sum below it; they add up."""
    total = X.sum(axis=1)
    profile = X / np.where(total > 0, total, 1)[:, None]
    return np.vstack([X.T @ profile, X.sum(axis=0)])


@dataclass(frozen=True, eq=False)
class FactorFeatures:
    """One feature for each value and each number, and their covariances ``Q - wwᵀ``.

    A value's feature is its indicator divided by the root of its share, a number's is standardised.
    """

    labels: list[tuple[str, Label]]
    columns: np.ndarray  # the column of each feature
    share: np.ndarray  # of the rows that have a value; NaN for a number
    scale: np.ndarray  # what each feature is multiplied by
    matrix: Any  # Q
    root: np.ndarray  # w

    @classmethod
    def of(cls, counts: Counts, moments: CrossMoments | None) -> FactorFeatures:
        """Features of counts and moments."""
        share = counts.value_counts / counts.n
        inverse = 1 / np.sqrt(share * counts.n)
        if sparse.issparse(counts.pairs):
            diagonal = sparse.diags_array(inverse)
            matrix = sparse.csr_array(diagonal @ counts.pairs @ diagonal)
        else:
            matrix = counts.pairs * np.outer(inverse, inverse)
        labels = [
            (name, label)
            for name, column_labels in zip(counts.names, counts.labels, strict=True)
            for label in column_labels
        ]
        columns = [name for name, _ in labels]
        root = np.sqrt(share)
        if moments is not None and moments.names:
            matrix = _beside(matrix, counts, moments)
            labels += [(name, None) for name in moments.names]
            columns += moments.names
            share = np.append(share, np.full(len(moments.names), np.nan))
            root = np.append(root, np.zeros(len(moments.names)))
        return cls(labels, np.array(columns, object), share, np.ones(len(root)), matrix, root)

    def scaled(self, by: np.ndarray) -> FactorFeatures:
        """Features, each multiplied by a number."""
        if sparse.issparse(self.matrix):
            matrix = sparse.diags_array(by) @ self.matrix @ sparse.diags_array(by)
        else:
            matrix = self.matrix * np.outer(by, by)
        return replace(self, scale=self.scale * by, matrix=matrix, root=self.root * by)

    def largest_eigenvalue(self, ids: np.ndarray) -> float:
        """Largest eigenvalue of some of the features alone; 0 if they do not vary."""
        part = replace(self, matrix=self.matrix[ids][:, ids], root=self.root[ids])
        return float(leading(part.covariance(), 1)[0].max(initial=0.0))

    def eigenvalues(self) -> np.ndarray:
        """All eigenvalues."""
        if len(self.root) > MAX_DENSE_FEATURES:
            raise ValueError(
                f"Benzécri's shares need all eigenvalues of {len(self.root)} values, more than "
                f"{MAX_DENSE_FEATURES}; use correction='greenacre', which needs their sum alone"
            )
        return leading(self.covariance(), len(self.root))[0]

    def covariance(self) -> Any:
        """Covariances, as an array or, of many values, as an operator."""
        if not sparse.issparse(self.matrix):
            return self.matrix - np.outer(self.root, self.root)

        def product(x: np.ndarray) -> np.ndarray:
            return self.matrix @ x - self.root * (self.root @ x)

        return LinearOperator(self.matrix.shape, matvec=product, dtype=np.float64)

    def squares(self) -> np.ndarray:
        """Sum of squares of each feature's covariances with all."""
        q, w = self.matrix, self.root
        lengths = np.asarray((q * q).sum(axis=1)).ravel()
        return lengths - 2 * w * np.asarray(q @ w).ravel() + w**2 * (w @ w)

    def axes(self, n_axes: int) -> FactorAxes:
        """Leading axes."""
        values, vectors = leading(self.covariance(), n_axes)
        variances = np.maximum(np.asarray(self.matrix.diagonal()) - self.root**2, 0)
        total = float(variances.sum())
        return FactorAxes(
            *(self.labels, self.share, self.scale),
            eigenvalues=values,
            vectors=vectors,
            total=total,
            ratio=_share(values, total),
            squares=np.maximum(self.squares(), 0),
            variances=variances,
        )


@storable
@dataclass(frozen=True, eq=False)
class FactorAxes:
    """The axes of a factorial map, and what they are made of."""

    labels: list[tuple[str, Label]]
    share: np.ndarray
    scale: np.ndarray
    eigenvalues: np.ndarray
    vectors: np.ndarray
    total: float
    ratio: np.ndarray
    squares: np.ndarray
    variances: np.ndarray

    def coordinates(self, principal: bool) -> np.ndarray:
        """Values at the mean of their rows (principal: over √λ), numbers as correlations."""
        number = np.isnan(self.share)
        scale = self.scale * np.where(number, 1.0, np.sqrt(np.where(number, 1.0, self.share)))
        out = self.vectors * np.sqrt(self.eigenvalues) / np.where(scale > 0, scale, 1)[:, None]
        return out if principal else out * np.where(number[:, None], 1, np.sqrt(self.eigenvalues))

    def cosines(self, principal: bool) -> np.ndarray:
        """Share of each axis in a feature's variance, or in the mean of its rows."""
        is_principal = np.isnan(self.share) | principal
        explained = self.vectors**2 * np.where(
            is_principal[:, None], self.eigenvalues, self.eigenvalues**2
        )
        total = np.where(is_principal, self.variances, self.squares)
        return explained / np.where(total > 0, total, 1)[:, None]

    def tables(self, counts: Counts) -> list[np.ndarray]:
        """What each value adds to the coordinates of a row, per column."""
        valued = ~np.isnan(self.share)
        factor = self.scale[valued] / np.sqrt(self.share[valued])
        rows = self.vectors[valued] * factor[:, None]
        return np.split(rows, counts.offsets[1:-1]) if len(counts.names) else []

    def curves(self, moments: CrossMoments, n: float) -> Curves | None:
        """What numbers add to the coordinates of a row: straight lines through the mean."""
        if not moments.names:
            return None
        number = np.isnan(self.share)
        slope = self.vectors[number] * self.scale[number][:, None]
        mean, deviation = standard(moments, n)
        width = np.where(deviation > 0, deviation, 1.0)
        knots = np.stack([mean, mean + step_from(mean, width)], axis=1)
        steps = (knots[:, 1] - mean) / width
        centre = np.zeros(slope.shape[1])
        return Curves(
            curved=list(moments.names),
            knots=list(knots),
            rows=[np.stack([centre, coordinates]) for coordinates in slope * steps[:, None]],
            missing=[centre for _ in slope],
        )


def leading(matrix: Any, n_axes: int) -> tuple[np.ndarray, np.ndarray]:
    """Largest eigenvalues and their eigenvectors, without those that are rounding."""
    size = matrix.shape[0]
    n_axes = min(n_axes, size)
    if not n_axes:
        return np.zeros(0), np.zeros((size, 0))
    if isinstance(matrix, LinearOperator):
        start = np.cos(np.arange(size))  # any fixed vector, so that results repeat
        values, vectors = eigsh(matrix, min(n_axes, size - 1), which="LA", v0=start, tol=1e-12)
    else:
        values, vectors = eigh(matrix, n_axes)
    order = np.argsort(-values, kind="stable")
    values, vectors = values[order], vectors[:, order]
    is_leading = values > 1e-12 * max(values.max(), 1.0)
    return values[is_leading], fix_signs(vectors[:, is_leading])


def benzecri(eigenvalues: np.ndarray, n_columns: int) -> np.ndarray:
    """Benzécri 1979: ``(K/(K-1))² (λ - 1/K)²`` for λ > 1/K, else 0."""
    k = n_columns
    if k < 2:
        return np.zeros(len(eigenvalues))
    above = np.maximum(eigenvalues - 1 / k, 0)
    return (k / (k - 1) * np.where(above > 1e-12, above, 0)) ** 2


def greenacre_total(squares: float, n_columns: int, n_values: int) -> float:
    """Greenacre 1993: ``K/(K-1) (Σλ² - (V - K)/K²)``, the mean inertia off the Burt diagonal."""
    k = n_columns
    return k / (k - 1) * (squares - (n_values - k) / k**2) if k > 1 else 0.0


def standard(moments: CrossMoments, n: float) -> tuple[np.ndarray, np.ndarray]:
    """Mean and deviation of numbers over n rows, missing ones taken as the mean."""
    return moments.means()[0], moments.deviations(n)


def _beside(matrix: Any, counts: Counts, moments: CrossMoments) -> Any:
    """Products of values, and beside them those with and of standardised numbers."""
    deviation = standard(moments, counts.n)[1]
    per = np.where(deviation > 0, 1 / np.where(deviation > 0, deviation, 1), 0)
    sums = moments.value_sums(per)[counts.vocabulary.reindex(moments.vocabulary)]
    across = sums / (counts.n * np.sqrt(counts.value_counts / counts.n))[:, None]
    scatter = moments.centred(per) / counts.n
    if sparse.issparse(matrix):
        return sparse.csr_array(sparse.block_array([[matrix, across], [across.T, scatter]]))
    return np.block([[matrix, across], [across.T, scatter]])


def _share(values: np.ndarray, total: float) -> np.ndarray:
    return values / total if total > 0 else np.zeros(len(values))


def _correlations(values: np.ndarray, f: np.ndarray) -> np.ndarray:
    """Correlation of numbers with each axis, over the rows that have one."""
    is_present = ~np.isnan(values)
    if not is_present.any():
        return np.zeros(f.shape[1])
    x, f = values[is_present], f[is_present]
    x, f = x - x.mean(), f - f.mean(axis=0)
    length = np.sqrt((x @ x) * (f**2).sum(axis=0))
    return (x @ f) / np.where(length > 0, length, 1)
