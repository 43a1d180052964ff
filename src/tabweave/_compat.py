"""Other packages: optional ones imported where they are used, and scikit-learn's private parts."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sklearn.utils._param_validation import (
        HasMethods,
        Interval,
        Options,
        StrOptions,
        validate_parameter_constraints,
    )

__all__ = [
    "HasMethods",
    "Interval",
    "Options",
    "StrOptions",
    "require",
    "validate_parameter_constraints",
]


def require(module: str, extra: str) -> ModuleType:
    """Import an optional package, or say which extra brings it."""
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise ImportError(f"this needs {package}: pip install 'tabweave[{extra}]'") from error


def __getattr__(name: str) -> Any:
    # What parameters may be, in scikit-learn's words; it has no public door to them.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module("sklearn.utils._param_validation"), name)
    globals()[name] = _without_bool(found) if name == "Interval" else found
    return globals()[name]


def _without_bool(interval: type) -> type:
    """Return intervals that hold no bool: True where a number is meant is a mistake."""

    class Interval(interval):
        def is_satisfied_by(self, value: Any) -> bool:
            return not isinstance(value, bool) and super().is_satisfied_by(value)

    return Interval
