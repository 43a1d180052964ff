"""Numbers as blocks: standardised, by their absolute difference, or through a transformer.

|z - y| is a squared Euclidean distance: that of a ladder with one coordinate per rung, 1 below the
number and 0 above. With a rung per standard deviation and normal weights, three directions of the
ladder hold nine tenths of its inertia; they are curves of z, straight between whole deviations and
beyond the third. Near numbers differ as their squares do, far ones as their absolute values, and
outliers do not rule.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import ndtr, ndtri

from tabweave.blocks.block import Block, Line, Lookup, Step, Writer, label_column
from tabweave.counts.counts import Counts
from tabweave.io.register import storable
from tabweave.rows.table import Codes, Numbers, Sets, Table
from tabweave.rows.vocabulary import Label, Unknown, positions

KNOTS = np.arange(-3.0, 4.0)  # in standard deviations
BENDS = KNOTS[1:-1]
WIDTH = 3
_NORMAL = 10_000  # quantiles that stand for a normal column
Levels = Mapping[str, tuple[Label, ...]]
Moments = Sequence[tuple[float, float, float]]  # of each column: how many, mean, variance


@storable
@dataclass(frozen=True, eq=False, kw_only=True)
class Standard(Block):
    """Numbers with mean 0 and variance 1, times a weight; a missing one lies at the mean.

    Attributes
    ----------
    names : list of str
        The columns: of numbers, or of grades that are read as their ranks.
    mean, factor : ndarray
        What is taken from each column's numbers, and what the rest is multiplied by.
    inertia : float
        The variance of the coordinates of all columns together, before ``scale``.
    scale : float
        What all coordinates are multiplied by.
    levels : mapping of str to tuple
        The levels of the columns that hold grades.
    """

    names: list[str]
    mean: np.ndarray
    factor: np.ndarray
    inertia: float
    scale: float = 1.0
    levels: Levels = field(default_factory=dict)

    each: ClassVar[int] = 1  # coordinates of a column

    @classmethod
    def of(cls, moments: Moments, names: Sequence[str], weights: np.ndarray) -> Self:
        """Standardise columns by their moments; a column that does not vary says nothing."""
        mean, factor = standardised(moments)
        inertia = float(weights[factor > 0].sum())
        return cls(names=list(names), mean=mean, factor=factor * np.sqrt(weights), inertia=inertia)

    @property
    def width(self) -> int:
        """Number of coordinates."""
        return self.each * len(self.names)

    def feature_names(self) -> list[str]:
        """Return the columns: each has one coordinate."""
        return list(self.names)

    def parts(self) -> list[Block]:
        """Return a block for each column."""
        if len(self.names) == 1:
            return [self]
        return [self._of([j]) for j in range(len(self.names))]

    def only(self, names: Iterable[str]) -> Block | None:
        """Return the block of some columns."""
        kept = set(names)
        chosen = [j for j, name in enumerate(self.names) if name in kept]
        return self._of(chosen) if chosen else None

    @property
    def by_value(self) -> bool:
        """Whether there is one column, of grades."""
        return len(self.names) == 1 and self.names[0] in self.levels

    def points(self, column: Codes | Sets, unknown: Unknown = "centroid") -> np.ndarray:
        """Return the points of the grades of the one column there is, and the mean last."""
        (name,) = self.names
        ranks = ranks_of(column, name, self.levels[name], unknown)
        out = np.empty((len(ranks) + 1, self.each))
        self._put(0, np.append(ranks, np.nan), out)
        return out

    def _of(self, chosen: list[int]) -> Self:
        names = [self.names[j] for j in chosen]
        return replace(self, names=names, mean=self.mean[chosen], factor=self.factor[chosen])

    def writer(self, table: Table, dtype: np.dtype, unknown: Unknown) -> Writer:
        """Read the numbers of a table."""
        numbers = [numbers_of(table, name, self.levels, unknown) for name in self.names]

        def write(rows: slice, out: np.ndarray) -> None:
            for j, values in enumerate(numbers):
                self._put(j, values[rows], out[:, j * self.each : (j + 1) * self.each])

        return write

    def _put(self, j: int, values: np.ndarray, out: np.ndarray) -> None:
        scaled = (values - self.mean[j]) * self.factor[j] * self.scale
        out[:, 0] = np.where(np.isnan(scaled), 0, scaled)

    def export(self, unknown: Unknown = "centroid") -> list[Step]:
        """Return a line for each column of numbers, and a lookup for each column of grades."""
        return [
            self._graded(j, unknown) if name in self.levels else self._line(j)
            for j, name in enumerate(self.names)
        ]

    def _graded(self, j: int, unknown: Unknown) -> Lookup:
        levels = self.levels[self.names[j]]
        points = self._of([j]).points(label_column(levels))
        odd = None if unknown == "error" else points[-1]
        return Lookup(self.names[j], tuple(levels), points[:-1], points[-1], odd)

    def _line(self, j: int) -> Line:
        factor = float(self.factor[j]) * self.scale
        return Line(self.names[j], float(self.mean[j]), factor, np.zeros(1))


@storable
@dataclass(frozen=True, eq=False, kw_only=True)
class Absolute(Standard):
    """Numbers on curves of their standardised value; a missing one lies at the mean.

    Attributes
    ----------
    rows : ndarray
        The coordinates at the knots of the curves.
    height : ndarray
        What the curves of each column are multiplied by.
    """

    rows: np.ndarray
    height: np.ndarray

    each: ClassVar[int] = WIDTH

    @classmethod
    def of(cls, moments: Moments, names: Sequence[str], weights: np.ndarray) -> Self:
        """Take curves as high as the columns weigh; of normal numbers, their inertia."""
        mean, factor = standardised(moments)
        height = np.where(factor > 0, np.sqrt(weights), 0)
        return cls(
            names=list(names),
            mean=mean,
            factor=factor,
            inertia=float((height**2).sum()),
            rows=curves(),
            height=height,
        )

    def feature_names(self) -> list[str]:
        """Return three names for each column."""
        return [f"{name}_{i}" for name in self.names for i in range(WIDTH)]

    def _of(self, chosen: list[int]) -> Self:
        return replace(super()._of(chosen), height=self.height[chosen])

    def _put(self, j: int, values: np.ndarray, out: np.ndarray) -> None:
        from tabweave.blocks.kernels import put_curves

        put_curves(values, self.mean[j], self.factor[j], KNOTS[0], self._curves(j), out)

    def _curves(self, j: int) -> np.ndarray:
        return self.rows * (self.height[j] * self.scale)

    def _line(self, j: int) -> Line:
        sums = bent(self._curves(j))
        middle = (terms(np.zeros(1)) @ sums)[0]
        mean, factor = float(self.mean[j]), float(self.factor[j])
        return Line(self.names[j], mean, factor, middle, sums, BENDS)


@storable
@dataclass(frozen=True, eq=False, kw_only=True)
class Transformed(Block):
    """Numbers through a transformer that was fitted on them; all of its columns count, or none.

    Gaps are filled with the mean, unless the transformer says what each column brings (it has
    ``parts``, as :class:`~tabweave.CoupledNumeric` does): then it reads gaps itself.

    Attributes
    ----------
    names : list of str
        The columns: of numbers, or of grades that are read as their ranks.
    mean : ndarray
        The mean of each column.
    transformer : estimator
        The fitted transformer.
    width : int
        Number of coordinates.
    inertia : float
        The variance of the coordinates, before ``scale``.
    scale, levels
        As in :class:`Standard`.
    """

    names: list[str]
    mean: np.ndarray
    transformer: Any
    width: int
    inertia: float
    scale: float = 1.0
    levels: Levels = field(default_factory=dict)

    @classmethod
    def of(cls, transformer: Any, moments: Moments, names: Sequence[str], table: Table) -> Self:
        """Fit a transformer to the numbers of a table."""
        mean = np.array([mean if n else 0.0 for n, mean, _ in moments])
        empty = cls(names=list(names), mean=mean, transformer=transformer, width=0, inertia=0.0)
        rows = empty._numbers(table, "centroid")
        transformer.fit(rows)
        vectors = np.asarray(transformer.transform(rows), dtype=float)
        inertia = float(vectors.var(axis=0).sum())
        return replace(empty, width=vectors.shape[1], inertia=inertia)

    def _numbers(self, table: Table, unknown: Unknown) -> np.ndarray:
        columns = [numbers_of(table, name, self.levels, unknown) for name in self.names]
        rows = np.stack(columns, axis=1)
        reads_gaps = hasattr(self.transformer, "parts")
        return rows if reads_gaps else np.where(np.isnan(rows), self.mean, rows)

    def feature_names(self) -> list[str]:
        """Return the names that the transformer gives, or numbers."""
        try:
            names = self.transformer.get_feature_names_out(self.names)
        except (AttributeError, ValueError):
            return [f"numeric{i}" for i in range(self.width)]
        return [str(name) for name in names]

    def writer(self, table: Table, dtype: np.dtype, unknown: Unknown) -> Writer:
        """Transform the numbers of a table, all at once."""
        vectors = np.asarray(self.transformer.transform(self._numbers(table, unknown)))

        def write(rows: slice, out: np.ndarray) -> None:
            out[:] = vectors[rows] * self.scale

        return write

    def split(self, table: Table, unknown: Unknown = "centroid") -> dict[str, np.ndarray]:
        """Return what each column brings, where the transformer says so; else all in one."""
        if not hasattr(self.transformer, "parts"):
            return {"(numeric)": self.coordinates(table, unknown=unknown)}
        parts = self.transformer.parts(self._numbers(table, unknown)) * self.scale
        return dict(zip(self.names, parts, strict=True))

    def export(self, unknown: Unknown = "centroid") -> list[Step]:
        """Raise: what a transformer does with several columns is no step."""
        raise ValueError(
            f"numbers go through {type(self.transformer).__name__}, which mixes their columns, so "
            "they cannot be exported; use numeric='standard' or 'absolute', or keep the model "
            "with tabweave.export.save"
        )


def numbers_of(table: Table, name: str, levels: Levels, unknown: Unknown) -> np.ndarray:
    """Return a column's numbers, or the ranks of its grades; NaN where missing or unknown."""
    data = table[name]
    if isinstance(data, Numbers):
        return data.values
    return ranks_of(data, name, levels[name], unknown)[data.codes]


def ranks_of(
    column: Codes | Sets, name: str, levels: Sequence[Label], unknown: Unknown
) -> np.ndarray:
    """Return the rank of each label of a column among its levels; NaN for one that is none."""
    rank = positions(levels, column.labels).astype(float)
    odd = rank == len(levels)
    for i in np.flatnonzero(odd) if unknown == "error" else ():
        if column.labels[i] is not None and (column.codes == i).any():
            raise ValueError(
                f"column {name!r}: expected one of its levels {list(levels)}, got "
                f"{column.labels[i]!r}; add it to the levels, or use unknown='centroid'"
            )
    rank[odd] = np.nan
    return rank


def moments_of(counts: Counts, name: str, levels: Levels) -> tuple[float, float, float]:
    """Return how many numbers a column has, their mean and variance; of grades, of their ranks."""
    if name not in counts.names:
        return counts.moments(name)
    labels = counts.labels[counts.names.index(name)]
    rank = positions(levels[name], labels).astype(float)
    weight = counts.value_counts[counts.span(name)]
    ranked = rank < len(levels[name])
    if not ranked.any():
        return 0, 0.0, 0.0
    ranks = Table.of({name: rank[ranked]}, {name: "numeric"})
    return Counts.of(ranks, sample_weight=weight[ranked]).moments(name)


def standardised(moments: Moments) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and one over the deviation, 0 for a column that does not vary."""
    mean = np.array([mean if n else 0.0 for n, mean, _ in moments])
    variance = np.array([v if n else 0.0 for n, _, v in moments])
    return mean, np.where(variance > 0, 1 / np.sqrt(np.where(variance > 0, variance, 1)), 0)


# -- the curves ---------------------------------------------------------------------------------


def curves() -> np.ndarray:
    """Return the coordinates at the knots; in them normal numbers have mean 0 and inertia 1."""
    edges = np.concatenate([[-np.inf], (KNOTS[1:] + KNOTS[:-1]) / 2, [np.inf]])
    share = np.diff(ndtr(edges))
    centre = np.eye(len(KNOTS)) - share
    gram = centre @ (-np.abs(KNOTS[:, None] - KNOTS) / 2) @ centre.T
    root = np.sqrt(share)
    values, vectors = np.linalg.eigh(root[:, None] * gram * root)
    values, vectors = values[: -WIDTH - 1 : -1], vectors[:, : -WIDTH - 1 : -1]
    vectors = vectors * np.sign(vectors[-1])  # an eigenvector has no sign of its own
    rows = vectors * np.sqrt(values) / root[:, None]
    seen = along(rows, ndtri((np.arange(_NORMAL) + 0.5) / _NORMAL))
    return (rows - seen.mean(axis=0)) / np.sqrt(seen.var(axis=0).sum())


def along(rows: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Return the points of curves, straight between the knots and beyond the outer ones."""
    from tabweave.blocks.kernels import put_curves

    out = np.empty((len(z), rows.shape[1]))
    put_curves(z, 0.0, 1.0, KNOTS[0], rows, out)
    return out


def bent(rows: np.ndarray) -> np.ndarray:
    """Return the same curves as sums, for systems that have no cells: see :func:`terms`."""
    return np.linalg.solve(terms(KNOTS), rows)


def terms(z: np.ndarray) -> np.ndarray:
    """Return ``|z - bend|`` for each inner knot, ``z`` and 1: any curve is a sum of them."""
    return np.column_stack([np.abs(z[:, None] - BENDS), z, np.ones(len(z))])
