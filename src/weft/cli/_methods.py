"""The names of ``--method``: every embedder in lower case, and every value measure."""

from __future__ import annotations

from difflib import get_close_matches
from importlib import import_module
from typing import Any

from weft import _catalogue
from weft.cli._app import Misuse

EMBEDDERS = _catalogue.EMBEDDERS | {
    "hierarchy": ("DistanceHierarchy", "values on trees, from classes if --target is given"),
    "drdh": ("DRDH", "values on trees, laid out in two dimensions"),
    "coupled": ("CoupledNumeric", "auto, with numbers through their couplings"),
}
MEASURES = (
    "hamming", "eskin", "iof", "of", "goodall1", "goodall2", "goodall3", "goodall4", "rough",
    "smirnov", "gambaryan", "burnaby", "lin", "lin1", "anderberg", "le_ho", "ahmad", "dilca",
    "cos", "cos_intra", "cos_inter", "ckml_intra", "ckml_inter", "vdm", "mtdle",
)  # fmt: skip


def check(method: str, target: str | None) -> None:
    """Refuse a name that is none, and a method that needs classes without them."""
    if method in _catalogue.NO_VECTORS:
        raise Misuse(
            f"method {method!r} looks at two columns at a time, so rows have no vectors; in Python "
            f"ValueMetric({method!r}).pairwise_distances compares them"
        )
    if method not in EMBEDDERS and method not in MEASURES:
        close = get_close_matches(method, [*EMBEDDERS, *MEASURES], 1)
        hint = f"did you mean {close[0]!r}?" if close else f"use one of {', '.join(EMBEDDERS)}"
        raise Misuse(f"there is no method {method!r}; {hint} ('weft methods' lists all)")
    if method in _catalogue.SUPERVISED and target is None:
        raise Misuse(f"method {method!r} learns from classes; name their column with --target")


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
        :class:`~weft.MixedEmbedder`.
    kinds : mapping or None
        Kinds of columns, as declared.
    n_clusters, seed : int
        Passed to the embedders that have such a parameter.
    """
    weft = import_module("weft")
    if method in ("auto", "coupled"):
        inner: Any = weft.Weave(n_clusters) if n_clusters else "auto"
        numeric = "coupled" if method == "coupled" else "auto"
        return weft.MixedEmbedder(inner, numeric, schema=kinds)
    if method in MEASURES:
        chosen = weft.ValueMetric(method, schema=kinds)
    else:
        maker = getattr(weft, EMBEDDERS[method][0])
        offered = {"schema": kinds, "n_clusters": n_clusters, "random_state": seed}
        known = maker().get_params(deep=False)
        chosen = maker(**{k: v for k, v in offered.items() if k in known and v is not None})
    if mixed and hasattr(chosen, "fit_counts"):
        return weft.MixedEmbedder(chosen.set_params(schema=None), schema=kinds)
    return chosen
