"""The register of measures: what each is called, what it claims, and the function behind it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module
from typing import Any, Literal, TypeVar

from tabweave.io.register import Register, storable

Form = Literal["table", "ratio", "pairwise"]
Function = TypeVar("Function", bound=Callable[..., Any])


@storable
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

    @property
    def similarity(self) -> Callable[..., Any] | None:
        """The similarity that was published, ``<name>_similarity`` beside the function, if any."""
        home = getattr(self.function, "__module__", None)
        return getattr(import_module(home), f"{self.name}_similarity", None) if home else None


MEASURES: Register[Measure] = Register("measure", "tabweave.measures")


def measure(
    name: str,
    summary: str,
    reference: str,
    /,
    *,
    metric: bool = False,
    needs_y: bool = False,
    form: Form = "table",
) -> Callable[[Function], Function]:
    """Register a function from counts to value dissimilarities under a name.

    Name, summary and flags are written out where the decorator stands: they are also read as text.

    Parameters
    ----------
    name : str
        What users write.
    summary : str
        What it does, in one line.
    reference : str
        Where it was published, with the equation.
    metric, needs_y, form
        As in :class:`Measure`.
    """

    def register(function: Function) -> Function:
        entry = Measure(name, function, summary, reference, metric, needs_y, form)
        return MEASURES.add(function, entry, name, summary, needs_y=needs_y, form=form)

    return register


def find(name: str) -> Measure:
    """Measure of a name; the error for another says which names there are."""
    if isinstance(name, str) and name in MEASURES:
        return MEASURES[name]
    close = get_close_matches(str(name), MEASURES, 1)
    hint = f" (did you mean {close[0]!r}?)" if close else ""
    raise ValueError(f"expected a measure, one of {', '.join(MEASURES)}, got {name!r}{hint}")


def list_measures() -> dict[str, str]:
    """Name of each measure with what it does, in one line.

    Examples
    --------
    >>> from tabweave.measures import list_measures
    >>> list_measures()["hamming"]
    '1 for every column in which two rows differ'
    """
    return MEASURES.summaries()
