"""The algorithms exactly as published, one file each, for comparison with tabweave's versions.

Every class is a full estimator. Its notes name the equations and what is wrong with them;
``docs/errata.md`` has all of that in one table, each line with a test.
"""

from importlib import import_module
from typing import Any

_HOMES = {
    "CKML": "ckml",
    "UNICORN": "unicorn",
    "UNTIE": "untie",
    "CoCA": "coca",
    "GBCClassifier": "gbc",
    "GBCRegressor": "gbc",
    "HELIC": "helic",
    "HeMap": "hemap",
    "NonBEND": "nonbend",
    "ValueMetric": "value_metric",
}
__all__ = [
    "CKML",
    "HELIC",
    "UNICORN",
    "UNTIE",
    "CoCA",
    "GBCClassifier",
    "GBCRegressor",
    "HeMap",
    "NonBEND",
    "ValueMetric",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"tabweave.published.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
