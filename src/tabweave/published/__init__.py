"""The algorithms exactly as published, for comparison with tabweave's versions.

Every class is a full estimator. Its notes name the equations and what is wrong with them;
``docs/errata.md`` has all of that in one table, each line with a test.
"""

from tabweave.io.register import lazy

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

__getattr__ = lazy(
    __name__,
    {
        "CKML": "ckml",
        "UNICORN": "unicorn",
        "UNTIE": "untie",
        "CoCA": "projections",
        "GBCClassifier": "gbc",
        "GBCRegressor": "gbc",
        "HELIC": "helic",
        "HeMap": "projections",
        "NonBEND": "nonbend",
        "ValueMetric": "value_metric",
    },
)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
