"""HELIC: metric learning on hierarchical, heterogeneous couplings [Zhu 2019, ch. 6].

Learns from classes how much each coupling of each column should count, so that rows of one class
come close and others move apart. Rows are seen once: counts give the couplings, a bounded sample of
pairs of rows gives what to learn from, and the cost of learning does not depend on their number.
The equations are in ``_helic_blocks`` (6.2–6.18) and ``_helic_solver`` (6.19).
"""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, Literal, Self

import numpy as np
from sklearn.utils import check_random_state

from tabweave.base import ValueEmbedder, require_rows
from tabweave.blocks.value_tables import ValueTables
from tabweave.counts import couplings
from tabweave.counts.counts import Counts, _checked_weight
from tabweave.counts.couplings import refuse_sets
from tabweave.embed.helic.solver import (
    LINEAR,
    Block,
    Distances,
    Objective,
    PairSample,
    ValuePairs,
    adam,
    column_blocks,
    coupling_spaces,
    distance_table,
    kernel_columns,
    minimise,
    weighted_table,
)
from tabweave.embed.register import embedder
from tabweave.engines import read_with_classes
from tabweave.rows.table import Schema, Table

_LARGEST_KEPT = 1 << 20  # blocks of a column larger than this are built twice, not kept


@embedder("helic", "couplings weighted by the classes", "Zhu 2019, ch. 6", needs_y=True)
class HELIC(ValueEmbedder):
    """Embed categorical rows by couplings whose weights are learned from classes.

    Parameters
    ----------
    variant : {"helic", "linear", "hc"}, default="helic"
        ``"linear"`` sees couplings through linear kernels only; ``"hc"`` learns no weights and
        puts the coupling spaces side by side (Section 6.4.4).
    solver : {"full", "paper"}, default="full"
        ``"full"`` minimises a smooth, convex form of Eq. (6.19) to the end; ``"paper"`` is Adam
        on Eq. (6.19) as printed, for the record.
    pull : float, default=0.01
        How strongly weights are pulled to where they start; ``inf`` leaves them there. Choose it
        with ``start`` by cross-validation, see ``docs/systems/helic.md``.
    start : {"identity", "balanced"}, default="identity"
        Where weights start: with values merely equal or not, as in one-hot; or with all spaces
        of a column alike.
    n_pairs : int, default=20000
        Number of pairs of rows to learn from; all pairs of distinct rows if they are no more.
    kernels : mapping of name to kernel, optional
        By default 11 Gaussians and 3 polynomials.
    max_iter : int, optional
        Most steps of the solver; by default 200, and 1000 for ``"paper"``.
    random_state : int, RandomState or None
        Seed of the sample of pairs.
    schema, unknown, dtype
        As in :class:`~tabweave.OneHot`.

    Attributes
    ----------
    weights_ : dict of str to dict
        For each column, the weight of each ``space/kernel``, and of each value as itself
        (``identity/value``); at the start those of a column's spaces add up to 1.
    threshold_ : float
        The squared distance b that divides pairs of one class from others.
    objective_ : list of float
        The objective at the start and after each step (``"paper"``: every 50 steps).
    n_iter_ : int
        Number of steps noted in ``objective_``, at least 1.
    pairs_ : Pairs
        The pairs learned from: values of both rows, relation and weight.
    landmarks_ : dict of str to int
        The columns with many values, seen through so many of them; they have one weight.

    Notes
    -----
    ``d_ij = Σ ω_l (φ_il - φ_jl)²`` (6.17). Each kernel of each space is scaled so that rows are on
    average as far apart as in the column's Gini index ``1 - Σf²``, and ω ≥ 0, b minimise
    ``½ Σ p_ij [1 + r_ij (d_ij - b)]₊² + (μ/2) Σ s_l (ω_l - ω⁰_l)²``.
    *Errata.* The penalty λ‖ω‖₁ of Eq. (6.19) shrinks ω to 0 and the printed 1000 steps of 10⁻³
    move a weight by 1 at most; a kernel matrix has one weight here, not one per column.
    With one class alone there is nothing to learn and weights stay where they start.
    Where there are more pairs than ``n_pairs``, they are drawn by the rows' positions: another
    order of the rows is another sample, as another seed is.

    Examples
    --------
    >>> from tabweave import HELIC
    >>> from tabweave.datasets import led24
    >>> digits = led24(500, random_state=0)
    >>> helic = HELIC(random_state=0).fit(digits.X, digits.y)
    >>> total = {name: sum(w.values()) for name, w in helic.weights_.items()}
    >>> min(total[f"x{i}"] for i in range(7)) > max(total[f"x{i}"] for i in range(7, 24))
    True
    """

    _uses_classes = True

    def __init__(
        self,
        variant: Literal["helic", "linear", "hc"] = "helic",
        *,
        solver: Literal["full", "paper"] = "full",
        pull: float = 0.01,
        start: Literal["identity", "balanced"] = "identity",
        n_pairs: int = 20_000,
        kernels: Any = None,
        max_iter: int | None = None,
        random_state: Any = None,
        schema: Any = None,
        unknown: str = "centroid",
        dtype: str = "float64",
    ) -> None:
        super().__init__(schema=schema, unknown=unknown, dtype=dtype)
        self.variant = variant
        self.solver = solver
        self.pull = pull
        self.start = start
        self.n_pairs = n_pairs
        self.kernels = kernels
        self.max_iter = max_iter
        self.random_state = random_state

    @property
    def _needs_rows(self) -> bool:  # type: ignore[override]
        return self.variant != "hc"

    # -- rows in ---------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from rows and their classes; a weight of 2 is the same as having a row twice."""
        self._check()
        X, y = read_with_classes(X, y)
        table = self._read(X, Schema.of(self.schema))
        require_rows(table)
        y = _as_cells(y)
        counts = self._count(table, y, sample_weight)
        seed = check_random_state(self.random_state).randint(2**31 - 1)
        self._sample = PairSample.empty(len(table.schema), int(self.n_pairs), int(seed))
        self._keep_pairs(table, y, sample_weight, counts)
        return super().fit_counts(counts)

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Add rows to what was seen so far; same result as one ``fit`` on all of them in order.

        The sample of pairs is renewed as rows come in; new values and classes are welcome.
        """
        if "counts_" not in vars(self):
            return self.fit(X, y, sample_weight)
        X, y = read_with_classes(X, y)
        table, y = self._read_fitted(X), _as_cells(y)
        more = self._count(table, y, sample_weight)
        counts = self.counts_ + more
        self._keep_pairs(table, y, sample_weight, more)
        return self._hold(counts)

    def fit_counts(self, counts: Counts) -> Self:
        """Learn from counts alone, which ``variant="hc"`` can and the others cannot."""
        if self._needs_rows:
            raise TypeError(
                f"HELIC(variant={self.variant!r}) learns from pairs of rows and their classes, and "
                "counts hold no rows: use fit or partial_fit, or variant='hc', which learns none"
            )
        self.__dict__.pop("_sample", None)
        return super().fit_counts(counts)

    def _keep_pairs(self, table: Table, y: Any, sample_weight: Any, counts: Counts) -> None:
        if counts.schema is None or "_sample" not in vars(self):
            return
        refuse_sets(counts, "HELIC")
        weight = _checked_weight(sample_weight, table.n_rows)
        self._sample = self._sample.add(table, y, weight)

    # -- learning --------------------------------------------------------------------------

    def _learn(self, counts: Counts) -> ValueTables:
        self._check()
        if counts.class_pairs is None:
            raise ValueError("HELIC needs classes; count the rows with y")
        refuse_sets(counts, "HELIC")
        self.landmarks_ = {
            name: couplings.MAX_LANDMARKS
            for name, size in zip(counts.names, counts.sizes, strict=True)
            if size > couplings.MAX_LANDMARKS
        }
        self.n_iter_ = 1
        if self.variant == "hc":
            return self._side_by_side(counts)
        if "_sample" not in vars(self):
            raise TypeError(f"HELIC was given counts; variant={self.variant!r} needs rows: use fit")
        self.pairs_ = self._sample.pairs(counts)
        tables = self._as_printed(counts) if self.solver == "paper" else self._minimised(counts)
        self.n_iter_ = max(len(self.objective_) - 1, 1)
        return tables

    def _minimised(self, counts: Counts) -> ValueTables:
        columns = range(len(counts.names))
        kept: dict[int, list[Block]] = {}
        met, tables, names, starts, stiffness = [], [], [], [], []
        for a in columns:
            blocks = column_blocks(counts, a, self._kernels(), self.start)
            if len(blocks) == 1 or sum(b.rows.size for b in blocks) <= _LARGEST_KEPT:
                kept[a] = blocks
            pairs = ValuePairs.of(self.pairs_, a, int(counts.sizes[a]))
            met.append(pairs)
            tables.append(distance_table(blocks, pairs.first, pairs.second))
            names.append([b.name for b in blocks])
            starts.append(np.array([b.start for b in blocks]))
            stiffness.append(np.array([b.stiffness for b in blocks]))
        objective = Objective(
            Distances.of(met, tables),
            self.pairs_,
            np.concatenate(starts),
            np.concatenate(stiffness),
            float(self.pull),
        )
        omega, self.threshold_, self.objective_ = minimise(objective, int(self.max_iter or 200))
        weights = np.split(omega, np.cumsum(list(map(len, names)))[:-1])
        self.weights_ = _named(counts, names, weights)
        rows = []
        for a in columns:
            blocks = kept.get(a) or column_blocks(counts, a, self._kernels(), self.start)
            rows.append(weighted_table(blocks, weights[a], int(counts.sizes[a])))
        return ValueTables.from_features(rows, counts)

    def _as_printed(self, counts: Counts) -> ValueTables:
        for name in self.landmarks_:
            raise ValueError(
                f"column {name!r} has too many values for solver='paper', which weighs each of "
                "their kernel columns; use solver='full'"
            )
        columns = [kernel_columns(counts, a, self._kernels()) for a in range(len(counts.names))]
        names, features = [names for names, _ in columns], [rows for _, rows in columns]
        weights, self.threshold_, self.objective_ = adam(
            features,
            self.pairs_,
            sparsity=1 / sum(map(len, names)),
            max_iter=int(self.max_iter or 1000),
            seed=self._sample.seed,
        )
        means = [w.reshape(len(n), -1).mean(axis=1) for w, n in zip(weights, names, strict=True)]
        self.weights_ = _named(counts, names, means)
        rows = [np.sqrt(w) * f for f, w in zip(features, weights, strict=True)]  # Eq. (6.18)
        return ValueTables.from_features(rows, counts)

    def _side_by_side(self, counts: Counts) -> ValueTables:
        tables, names = [], []
        for a in range(len(counts.names)):
            marks = couplings.landmarks(counts, a, couplings.MAX_LANDMARKS)
            blocks = list(couplings.kernel_blocks(coupling_spaces(counts, a), LINEAR, marks))
            tables.append(couplings.factor(np.sum([b.gram for b in blocks], axis=0), marks))
            names.append([f"{b.space}/{b.kernel}" for b in blocks])
        self.weights_ = _named(counts, names, [np.ones(len(n)) for n in names])
        return ValueTables.from_features(tables, counts)

    def _kernels(self) -> dict[str, couplings.Kernel]:
        if self.variant == "linear":
            return LINEAR
        return couplings.kernel_family() if self.kernels is None else dict(self.kernels)

    def _check(self) -> None:
        allowed = {
            "variant": ("helic", "linear", "hc"),
            "solver": ("full", "paper"),
            "start": ("balanced", "identity"),
        }
        for name, choices in allowed.items():
            if getattr(self, name) not in choices:
                raise ValueError(f"{name}={getattr(self, name)!r}: use one of {choices}")
        if not isinstance(self.pull, Real) or not float(self.pull) >= 0:
            raise ValueError(f"pull={self.pull!r}: use a number >= 0, or inf")
        for name, value in (("n_pairs", self.n_pairs), ("max_iter", self.max_iter or 1)):
            if not isinstance(value, Integral) or int(value) < 1:
                raise ValueError(f"{name}={value!r}: use a whole number >= 1")


def _as_cells(y: Any) -> Any:
    """Read what only NumPy can read."""
    return np.asarray(y) if hasattr(y, "__array__") and not hasattr(y, "__len__") else y


def _named(counts: Counts, names: Sequence[list[str]], weights: Sequence[np.ndarray]) -> dict:
    return {
        column: dict(zip(own, w.tolist(), strict=True))
        for column, own, w in zip(counts.names, names, weights, strict=True)
    }
