"""The methods that can be chosen, each with what it does in a few words."""

from __future__ import annotations

EMBEDDERS = {
    "auto": "Weave for categories, numbers standardised, balanced",
    "weave": "couplings of the columns at all scales",
    "onehot": "every value its own axis; the baseline",
    "untie": "couplings, weights learned without labels",
    "helic": "couplings weighted by the classes",
    "ckml": "coupled kernel metric",
    "cde": "value clusters at many resolutions",
    "nonbend": "a table untangled into independent parts",
    "unicorn": "couplings of a stream",
}
SUPERVISED = ("helic", "vdm", "mtdle")
_ROWS_NEEDED = ("jia",)  # compares pairs of columns, so it gives rows no vectors


def known() -> dict[str, str]:
    """Return every method by name: embedders first, then measures of values."""
    from weft.measures import list_measures

    measures = {n: about for n, about in list_measures().items() if n not in _ROWS_NEEDED}
    return EMBEDDERS | {n: about for n, about in measures.items() if n not in EMBEDDERS}


def check(method: str, target: str | None) -> None:
    """Refuse a name that is none, and a method that needs classes without them."""
    if method not in known():
        raise ValueError(f"there is no method {method!r}")
    if method in SUPERVISED and not target:
        raise ValueError(f"{method} learns from classes: choose a target")
