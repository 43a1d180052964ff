"""The registry of measures: what each is called, what it claims, and the function behind it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

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
