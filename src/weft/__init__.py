"""weft: representation and similarity learning on complex tables.

One-hot throws away what your columns know about each other; weft keeps it, in one pass over the
data, with a metric you can trust and a table you can look into.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # for readers and type checkers; at run time names load when they are asked for
    from weft import datasets, engines, evaluate, export, plots, report
    from weft.cluster import KModes
    from weft.counts import Counts
    from weft.engines import count
    from weft.export import load
    from weft.hierarchy import DRDH, DistanceHierarchy
    from weft.index import SimilarityIndex
    from weft.learn.cde import CDE
    from weft.learn.helic import HELIC
    from weft.learn.nonbend import NonBEND
    from weft.learn.unicorn import UNICORN
    from weft.learn.untie import UNTIE
    from weft.learn.weave import Weave
    from weft.measures import CKML, ValueMetric
    from weft.mixed import MixedEmbedder
    from weft.neighbors import WeightedKNN
    from weft.numeric import CoupledNumeric
    from weft.onehot import OneHot
    from weft.sources import CoCA, GBCClassifier, GBCRegressor, HeMap, Sources
    from weft.sparse import KSVD, SetTfidf, batch_omp, omp
    from weft.table import Column, Schema, Table
    from weft.tables import ValueTables
    from weft.windows import Windowed

__version__ = "0.1.0"
__all__ = [
    "CDE",
    "CKML",
    "DRDH",
    "HELIC",
    "KSVD",
    "UNICORN",
    "UNTIE",
    "CoCA",
    "Column",
    "Counts",
    "CoupledNumeric",
    "DistanceHierarchy",
    "GBCClassifier",
    "GBCRegressor",
    "HeMap",
    "KModes",
    "MixedEmbedder",
    "NonBEND",
    "OneHot",
    "Schema",
    "SetTfidf",
    "SimilarityIndex",
    "Sources",
    "Table",
    "ValueMetric",
    "ValueTables",
    "Weave",
    "WeightedKNN",
    "Windowed",
    "batch_omp",
    "count",
    "datasets",
    "engines",
    "evaluate",
    "export",
    "load",
    "omp",
    "plots",
    "report",
]
_HOMES = {
    "CDE": "weft.learn.cde",
    "CKML": "weft.measures",
    "CoCA": "weft.sources",
    "Column": "weft.table",
    "Counts": "weft.counts",
    "CoupledNumeric": "weft.numeric",
    "DRDH": "weft.hierarchy",
    "DistanceHierarchy": "weft.hierarchy",
    "HELIC": "weft.learn.helic",
    "GBCClassifier": "weft.sources",
    "GBCRegressor": "weft.sources",
    "HeMap": "weft.sources",
    "KModes": "weft.cluster",
    "KSVD": "weft.sparse",
    "MixedEmbedder": "weft.mixed",
    "NonBEND": "weft.learn.nonbend",
    "OneHot": "weft.onehot",
    "Schema": "weft.table",
    "SetTfidf": "weft.sparse",
    "SimilarityIndex": "weft.index",
    "Sources": "weft.sources",
    "Table": "weft.table",
    "UNICORN": "weft.learn.unicorn",
    "UNTIE": "weft.learn.untie",
    "ValueMetric": "weft.measures",
    "ValueTables": "weft.tables",
    "Weave": "weft.learn.weave",
    "WeightedKNN": "weft.neighbors",
    "Windowed": "weft.windows",
    "batch_omp": "weft.sparse",
    "count": "weft.engines",
    "load": "weft.export",
    "omp": "weft.sparse",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    if name in __all__:
        return import_module(f"weft.{name}")
    raise AttributeError(f"module 'weft' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
