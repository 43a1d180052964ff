"""The registry of measures: what each is called, what it claims, and the function behind it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from tabweave.counts.counts import Counts

Form = Literal["table", "ratio", "pairwise"]


@dataclass(frozen=True)
class Measure:
    """One value measure.

    Attributes
    ----------
    name : str
        What users write.
    function : callable
        ``table``: Counts to one V_a × V_a dissimilarity per column, summed over columns.
        ``ratio``: Counts to (numerators, denominators), two lists of V_a × V_a arrays; the
        similarity of two rows is the ratio of their sums, its dissimilarity one minus that.
        ``pairwise``: (Counts, left codes, right codes) to a matrix; for measures that look at
        several columns at a time and so have no value table.
    summary : str
        One line for a list of measures.
    reference : str
        Where it was published, with the equation.
    metric : bool
        Whether its value dissimilarities claim the triangle inequality.
    needs_y : bool
        Whether it needs classes.
    form : {"table", "ratio", "pairwise"}
        What the function returns.
    """

    name: str
    function: Callable[..., Any]
    summary: str
    reference: str
    metric: bool = False
    needs_y: bool = False
    form: Form = "table"


MEASURES: dict[str, Measure] = {}


def measure(
    name: str,
    summary: str,
    reference: str,
    *,
    metric: bool = False,
    needs_y: bool = False,
    form: Form = "table",
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a function from counts to value dissimilarities under a name."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        if name in MEASURES:
            raise ValueError(f"measure {name!r} is registered twice")
        MEASURES[name] = Measure(name, function, summary, reference, metric, needs_y, form)
        return function

    return register


def find(name: str) -> Measure:
    """Return the measure of a name, or say which names there are."""
    try:
        return MEASURES[name]
    except (KeyError, TypeError):
        raise ValueError(f"no measure {name!r}; there are {', '.join(MEASURES)}") from None


def list_measures() -> dict[str, str]:
    """Return the name of each measure with what it does, in one line."""
    return {name: entry.summary for name, entry in MEASURES.items()}


__all__ = ["MEASURES", "Measure", "find", "list_measures", "measure"]


# -- From published similarities to dissimilarities: what the families of measures share


def occurrences(counts: Counts) -> list[np.ndarray]:
    """Return, per column, in how many rows each value occurs."""
    count = counts.value_counts.astype(np.float64)
    return [count[counts.span(a)] for a in range(len(counts.names))]


def on_match(match: np.ndarray | float, mismatch: np.ndarray) -> np.ndarray:
    """Return the mismatch table with what a match is worth on its diagonal."""
    out = np.array(mismatch, dtype=np.float64)
    np.fill_diagonal(out, match)
    return out


def complements(similarities: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Return 1 − S, for similarities that are at most 1 and 1 on every match."""
    return [1 - s for s in similarities]


def induced(similarities: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Return d(v, w) = (S(v, v) + S(w, w)) / 2 − S(v, w), for matches of unequal worth.

    1 − S would set a row apart from itself. Here what a match is worth becomes what losing it
    costs, half for each of the two values; as with the distance that a kernel induces, d is 0 on
    the diagonal, and it is not negative whenever no mismatch is worth more than the mean of the
    two matches. Where every mismatch is worth 0 (or a sum of one term per value), d is a star:
    each value has an arm, and the distance of two values is the sum of their arms. Stars satisfy
    the triangle inequality and are squared Euclidean distances.
    """
    out = []
    for s in similarities:
        worth = np.diagonal(s)
        out.append(on_match(0.0, (worth[:, None] + worth) / 2 - s))
    return out
