"""The algorithms exactly as published, for comparison."""

from importlib import import_module
from typing import Any

_HOMES = {"CoCA": "coca", "GBCClassifier": "gbc", "GBCRegressor": "gbc", "HeMap": "hemap"}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"tabweave.published.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'tabweave.published' has no attribute {name!r}")
