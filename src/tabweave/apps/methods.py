"""The methods by the names that people type, for reports, the command line and the studio.

They come from the register, as text: completion in a shell must not wait for NumPy to load.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from importlib import import_module
from typing import Any, Literal

from tabweave.embed.register import EMBEDDERS
from tabweave.io.register import Declared
from tabweave.measures.register import MEASURES

Where = Literal["pages", "shell"]
FIRST = "auto"  # what is taken where no method is named


def offered(where: Where) -> dict[str, Declared]:
    """The methods that can be typed somewhere: embedders, then measures with vectors.

    An embedder stands for the measure of its name.
    """
    allowed = ("everywhere", where)
    embedders = {
        name: method
        for name, method in EMBEDDERS.declared().items()
        if method.flags.get("offered", "everywhere") in allowed
    }
    weave = embedders["weave"]
    first = {FIRST: weave._replace(given=(FIRST, "the default: Weave", *weave.given[2:]))}
    measures = {n: m for n, m in MEASURES.declared().items() if not _pairwise(m)}
    return first | embedders | {n: m for n, m in measures.items() if n not in embedders}


def learns_from_classes(method: str) -> bool:
    """Whether a method needs a column of classes."""
    declared = offered("shell").get(method)
    return declared is not None and bool(declared.flags.get("needs_y", False))


def learns_from_counts(embedder: Any) -> bool:
    """Whether counts of the values are all that an embedder needs."""
    base = import_module("tabweave.embed.base")
    return isinstance(embedder, base.ValueEmbedder) and not base.learns_from_rows(embedder)


def described(where: Where) -> dict[str, str]:
    """The methods that can be typed somewhere, each with what it does."""
    return {name: method.summary for name, method in offered(where).items()}


def embedders(where: Where) -> list[str]:
    """Those of the methods that are embedders."""
    return [name for name, m in offered(where).items() if m.decorator == "embedder"]


def find(method: str, where: Where = "shell") -> Declared:
    """What is declared of a method, or raise ValueError if it is not offered there."""
    methods = offered(where)
    if method in methods:
        return methods[method]
    if method in MEASURES:
        raise ValueError(
            f"expected a method that gives vectors, got {method!r}, which gives distances only; in "
            f"Python, use ValueMetric({method!r}).pairwise_distances"
        )
    close = get_close_matches(method, methods, 1)
    hint = f"did you mean {close[0]!r}?" if close else f"use one of {', '.join(embedders(where))}"
    raise ValueError(f"expected a method, got {method!r}; {hint} ('tabweave methods' lists all)")


def check(method: str, target: str | None, where: Where = "shell") -> None:
    """Raise ValueError for a name that is not offered, and for a method that lacks its classes."""
    find(method, where)
    if learns_from_classes(method) and not target:
        how = "add --target COLUMN" if where == "shell" else "choose a target column"
        raise ValueError(f"method {method!r} is supervised and needs classes; {how}")


def build(
    method: str,
    *,
    kinds: Any,
    n_clusters: int | None = None,
    n_components: int | None = None,
    seed: int = 0,
) -> Any:
    """The embedder of a name, not fitted.

    Parameters
    ----------
    method : str
        Its name.
    kinds : mapping or None
        Kinds of columns, as declared.
    n_clusters, seed : int
        Passed to the embedders that have such a parameter.
    n_components : int, optional
        Number of dimensions, of embedders that have such a parameter.
    """
    tabweave = import_module("tabweave")
    declared = find(method)
    if method == FIRST:
        return tabweave.Weave(n_clusters, n_components=n_components, schema=kinds)
    if declared.decorator == "measure":
        chosen = tabweave.ValueMetric(method, schema=kinds)
    else:
        maker = declared.load()
        options = {"schema": kinds, "n_clusters": n_clusters, "random_state": seed}
        options["n_components"] = n_components
        known = maker().get_params(deep=False)
        chosen = maker(**{k: v for k, v in options.items() if k in known and v is not None})
    if n_components is not None and "n_components" not in chosen.get_params(deep=False):
        raise ValueError(
            f"expected a method with principal components, got {method!r}; leave the number of "
            "dimensions out (--components in the shell)"
        )
    return chosen


def _pairwise(measure: Declared) -> bool:
    return measure.flags.get("form") == "pairwise"


@contextmanager
def naming_target(target: str | None) -> Iterator[None]:
    """Let errors about missing targets name the column that holds them."""
    try:
        yield
    except ValueError as error:
        match = re.search(r"\by\b.* (row \d+) is (?:missing|nan)", str(error))
        if target is None or match is None:
            raise
        raise ValueError(
            f"target column {target!r} is missing in {match[1]}; drop such rows (in SQL: WHERE "
            "... IS NOT NULL), or use an unsupervised method"
        ) from None


def embedder_title(model: Any) -> str:
    """Return how pages name an embedder: its class, and the measure of a metric."""
    room = "papers." if type(model).__module__.startswith("tabweave.papers") else ""
    measure = getattr(model, "measure", None)
    return room + type(model).__name__ + (f"({measure!r})" if isinstance(measure, str) else "")
