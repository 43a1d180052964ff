"""The methods that can be chosen, each with what it does in a few words."""

from __future__ import annotations

from weft import _catalogue

SUPERVISED = _catalogue.SUPERVISED
EMBEDDERS = {name: about for name, (_, about) in _catalogue.EMBEDDERS.items()}


def known() -> dict[str, str]:
    """Return every method by name: embedders first, then measures of values."""
    from weft.measures import list_measures

    measures = {n: about for n, about in list_measures().items() if n not in _catalogue.NO_VECTORS}
    return EMBEDDERS | {n: about for n, about in measures.items() if n not in EMBEDDERS}


def check(method: str, target: str | None) -> None:
    """Refuse a name that is none, and a method that needs classes without them."""
    if method not in known():
        raise ValueError(f"there is no method {method!r}")
    if method in SUPERVISED and not target:
        raise ValueError(f"{method} learns from classes: choose a target")
