"""Non-BEND as published [Zhu 2019, ch. 5]: a single fit, columns weighted by Eq. (5.31)."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Real
from typing import Any, ClassVar

import numpy as np

from tabweave.columns.vocabulary import canonical, positions
from tabweave.counts.counts import Counts
from tabweave.embed import nonbend
from tabweave.embed.nonbend import (
    VI,
    Fit,
    Gibbs,
    Passes,
    Prior,
    WeightedRows,
    add_assigned,
    assign,
    embedding_grams,
    stick_expectations,
    value_expectations,
    value_probabilities,
)
from tabweave.io.register import storable


@storable
class NonBEND(nonbend.NonBEND):
    """Embed rows by the independent subspaces of one fit, columns weighted by how these differ.

    The representation is that of a single fit, and depends on its seed. Each row counts in its
    likeliest subspace alone (Algorithm 2), where :class:`tabweave.NonBEND` shares it out.

    Parameters
    ----------
    method, alpha, random_state
        As in :class:`tabweave.NonBEND`.
    alpha0 : float or dict, default=0.1
        The concentration of each column's distribution, Eq. (5.26): a number, or a dict of column
        to a number or to a dict of value to number (columns and values left out have 0.1).
    schema, unknown, dtype
        As in :class:`~tabweave.OneHot`.

    Attributes
    ----------
    n_subspaces_, weights_, theta_, trace_, n_iter_, fits_, alpha_, tables_
        As in :class:`tabweave.NonBEND`.
    counts_, blocks_, schema_
        As in :class:`~tabweave.OneHot`.

    Notes
    -----
    *Errata.* In (5.22) the sum of E[log(1−V_l)] stops at l = t−1; in (5.25) the digamma of the sum
    runs over the values of the column; (5.31) averages over all k subspaces with k−1 in the
    denominator. With one subspace alone every column weighs 1.

    Examples
    --------
    >>> from tabweave import papers
    >>> rows = {"color": ["red", "blue"] * 20, "size": ["S", "L"] * 20, "shape": ["o"] * 40}
    >>> model = papers.NonBEND(random_state=0).fit(rows)
    >>> len(model.fits_), model.n_subspaces_
    (1, 2)
    """

    _missing_is_value: ClassVar[bool] = True
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        name: [*allowed, dict] if name == "alpha0" else allowed
        for name, allowed in nonbend.NonBEND._parameter_constraints.items()
        if name != "n_fits"
    }

    def __init__(
        self,
        method: str | VI | Gibbs = "vi",
        *,
        alpha: float | str = "auto",
        alpha0: float | dict[str, Any] = 0.1,
        random_state: Any = None,
        schema: Any = None,
        unknown: str = "centroid",
        dtype: str = "float64",
    ) -> None:
        super().__init__(
            method,
            alpha=alpha,
            alpha0=alpha0,  # type: ignore[arg-type]
            n_fits=1,
            random_state=random_state,
            schema=schema,
            unknown=unknown,
            dtype=dtype,
        )

    def _pseudo_counts(self, counts: Counts) -> float | np.ndarray:
        if isinstance(self.alpha0, dict):
            return pseudo_counts(self.alpha0, counts)
        return super()._pseudo_counts(counts)

    def _finished(self, fit: Fit, passes: Passes, prior: Prior) -> Fit:
        if isinstance(self._engine(), Gibbs):  # whose rows are in one subspace each
            return fit
        return assigned(passes(), fit, prior)

    def _grams(self, fit: Fit, prior: Prior) -> list[np.ndarray]:
        edges = prior.offsets[1:-1]
        theta = np.split(value_probabilities(fit, prior), edges)
        columns = zip(
            embedding_grams(fit, prior), theta, np.split(prior.pseudo_counts, edges), strict=True
        )
        return [gram * column_weight(rows[pseudo > 0]) ** 2 for gram, rows, pseudo in columns]


def pseudo_counts(
    given: dict[str, Any], counts: Counts, *, pseudo_count: float = 0.1
) -> np.ndarray:
    """Eq. (5.26): ``α₀ᵢ^(j)`` of each value of each column."""
    out = np.full(int(counts.offsets[-1]), pseudo_count)
    for name, declared in given.items():
        if name not in counts.names:
            raise ValueError(f"alpha0: expected columns {', '.join(counts.names)}, got {name!r}")
        a = counts.names.index(name)
        values = (
            declared if isinstance(declared, dict) else dict.fromkeys(counts.labels[a], declared)
        )
        for value, number in values.items():
            position = int(positions(counts.labels[a], [canonical(value)])[0])  # True is not 1
            if position == len(counts.labels[a]):
                raise ValueError(f"alpha0 of column {name!r}: expected its values, got {value!r}")
            if not isinstance(number, Real) or not 0 < float(number) < np.inf:
                raise ValueError(
                    f"alpha0 of {value!r} in column {name!r}: expected a number above 0, got "
                    f"{number!r}"
                )
            out[counts.offsets[a] + position] = number
    return out


def assigned(batches: Iterable[WeightedRows], fit: Fit, prior: Prior) -> Fit:
    """Algorithm 2: counts of rows that are each in their likeliest subspace alone."""
    log_stick, _ = stick_expectations(fit.sizes, prior.alpha)
    log_value, _ = value_expectations(fit.counts, fit.sizes, prior)
    counts, sizes = np.zeros_like(fit.counts), np.zeros_like(fit.sizes)
    for rows in batches:
        chosen, _ = assign(rows.cells, log_stick, log_value)
        add_assigned(rows.cells, rows.weight, chosen, counts, sizes)
    hard = Fit(counts, sizes, fit.trace).chosen(np.flatnonzero(sizes))
    return hard.chosen(np.argsort(-hard.sizes, kind="stable"))


def column_weight(theta: np.ndarray) -> float:
    """Eq. (5.31): mean over a column's values of the deviation of θ (values × subspaces).

    Erratum: the sum runs over all k subspaces, with k−1 in the denominator.
    """
    return float(theta.std(axis=1, ddof=1).mean()) if theta.shape[1] > 1 and len(theta) else 1.0
