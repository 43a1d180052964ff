"""The methods by the names that people type: one list for reports, the command line, the studio.

Plain text only: completion in a shell must not wait for NumPy to load.
"""

from __future__ import annotations

from difflib import get_close_matches
from importlib import import_module
from typing import Any

# name: (class in tabweave, what it does)
EMBEDDERS = {
    "auto": ("MixedEmbedder", "Weave for categories, numbers scaled, balanced"),
    "weave": ("Weave", "couplings of the columns at all scales"),
    "onehot": ("OneHot", "every value its own axis; the baseline"),
    "untie": ("UNTIE", "couplings, weights learned without labels"),
    "helic": ("HELIC", "couplings weighted by the classes; needs a target"),
    "ckml": ("CKML", "coupled kernel metric"),
    "cde": ("CDE", "value clusters at many resolutions"),
    "nonbend": ("NonBEND", "a table untangled into independent parts"),
    "unicorn": ("UNICORN", "couplings of a stream"),
}
SHELL_EMBEDDERS = EMBEDDERS | {
    "hierarchy": ("DistanceHierarchy", "values on trees, from classes if --target is given"),
    "drdh": ("DRDH", "values on trees, laid out in two dimensions"),
    "coupled": ("CoupledNumeric", "auto, with numbers through their couplings"),
}
SUPERVISED = ("helic", "vdm", "mtdle")  # learn from classes
NO_VECTORS = ("jia",)  # looks at two columns at a time
MEASURES = (
    "hamming", "eskin", "iof", "of", "goodall1", "goodall2", "goodall3", "goodall4", "rough",
    "smirnov", "gambaryan", "burnaby", "lin", "lin1", "anderberg", "le_ho", "ahmad", "dilca",
    "cos", "cos_intra", "cos_inter", "ckml_intra", "ckml_inter", "vdm", "mtdle",
)  # fmt: skip


def described() -> dict[str, str]:
    """Return every method that a page offers, with what it does: embedders, then measures."""
    from tabweave.measures import list_measures

    offered = {name: about for name, (_, about) in EMBEDDERS.items()}
    measures = {n: about for n, about in list_measures().items() if n not in NO_VECTORS}
    return offered | {n: about for n, about in measures.items() if n not in offered}


def check(method: str, target: str | None) -> None:
    """Raise ValueError for a name that is none, and for a method that lacks its classes."""
    if method in NO_VECTORS:
        raise ValueError(
            f"method {method!r} looks at two columns at a time, so rows have no vectors; in Python "
            f"ValueMetric({method!r}).pairwise_distances compares them"
        )
    if method not in SHELL_EMBEDDERS and method not in MEASURES:
        close = get_close_matches(method, [*SHELL_EMBEDDERS, *MEASURES], 1)
        hint = (
            f"did you mean {close[0]!r}?" if close else f"use one of {', '.join(SHELL_EMBEDDERS)}"
        )
        raise ValueError(f"there is no method {method!r}; {hint} ('tabweave methods' lists all)")
    if method in SUPERVISED and not target:
        raise ValueError(f"method {method!r} learns from classes; name their column as the target")


def build(
    method: str, *, mixed: bool, kinds: Any, n_clusters: int | None = None, seed: int = 0
) -> Any:
    """Return the embedder of a name, not fitted.

    Parameters
    ----------
    method : str
        Its name.
    mixed : bool
        Whether the table has numbers: embedders of categories then serve inside
        :class:`~tabweave.MixedEmbedder`.
    kinds : mapping or None
        Kinds of columns, as declared.
    n_clusters, seed : int
        Passed to the embedders that have such a parameter.
    """
    tabweave = import_module("tabweave")
    if method in ("auto", "coupled"):
        inner: Any = tabweave.Weave(n_clusters) if n_clusters else "auto"
        numeric = "coupled" if method == "coupled" else "auto"
        return tabweave.MixedEmbedder(inner, numeric, schema=kinds)
    if method in MEASURES:
        chosen = tabweave.ValueMetric(method, schema=kinds)
    else:
        maker = getattr(tabweave, SHELL_EMBEDDERS[method][0])
        offered = {"schema": kinds, "n_clusters": n_clusters, "random_state": seed}
        known = maker().get_params(deep=False)
        chosen = maker(**{k: v for k, v in offered.items() if k in known and v is not None})
    if mixed and getattr(chosen, "_numbers", None) == "nominal":
        return tabweave.MixedEmbedder(chosen.set_params(schema=None), schema=kinds)
    return chosen
