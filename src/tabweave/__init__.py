"""tabweave: representation and similarity learning on complex tables.

One-hot throws away what your columns know about each other; tabweave keeps it, in one pass over the
data, with a metric you can trust and a table you can look into.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # for readers and type checkers; at run time names load when they are asked for
    from tabweave import (
        apps,
        blocks,
        cluster,
        counts,
        datasets,
        embed,
        engines,
        evaluate,
        io,
        measures,
        plots,
        published,
        rows,
        search,
        sources,
        tasks,
    )
    from tabweave.apps import report, studio
    from tabweave.blocks.value_tables import ValueTables
    from tabweave.cluster import KModes
    from tabweave.counts.counts import Counts
    from tabweave.embed.cde import CDE
    from tabweave.embed.ckml import CKML
    from tabweave.embed.helic import HELIC
    from tabweave.embed.hierarchy import DRDH, DistanceHierarchy
    from tabweave.embed.mixed import MixedEmbedder
    from tabweave.embed.nonbend import NonBEND
    from tabweave.embed.numeric import CoupledNumeric
    from tabweave.embed.onehot import OneHot
    from tabweave.embed.sets import KSVD, SetTfidf, batch_omp, omp
    from tabweave.embed.unicorn import UNICORN
    from tabweave.embed.untie import UNTIE
    from tabweave.embed.value_metric import ValueMetric
    from tabweave.embed.weave import Weave
    from tabweave.embed.windowed import Windowed
    from tabweave.engines import count
    from tabweave.io import export
    from tabweave.io.store import load
    from tabweave.rows.table import Column, Schema, Table
    from tabweave.search.index import SimilarityIndex
    from tabweave.search.knn import WeightedKNN
    from tabweave.sources import CoCA, GBCClassifier, GBCRegressor, HeMap, Sources

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
    "apps",
    "batch_omp",
    "blocks",
    "cluster",
    "count",
    "counts",
    "datasets",
    "embed",
    "engines",
    "evaluate",
    "export",
    "io",
    "load",
    "measures",
    "omp",
    "plots",
    "published",
    "report",
    "rows",
    "search",
    "sources",
    "studio",
    "tasks",
]
_HOMES = {
    "CDE": "tabweave.embed.cde",
    "CKML": "tabweave.embed.ckml",
    "CoCA": "tabweave.sources",
    "Column": "tabweave.rows.table",
    "Counts": "tabweave.counts.counts",
    "CoupledNumeric": "tabweave.embed.numeric",
    "DRDH": "tabweave.embed.hierarchy",
    "DistanceHierarchy": "tabweave.embed.hierarchy",
    "HELIC": "tabweave.embed.helic",
    "GBCClassifier": "tabweave.sources",
    "GBCRegressor": "tabweave.sources",
    "HeMap": "tabweave.sources",
    "KModes": "tabweave.cluster",
    "KSVD": "tabweave.embed.sets",
    "MixedEmbedder": "tabweave.embed.mixed",
    "NonBEND": "tabweave.embed.nonbend",
    "OneHot": "tabweave.embed.onehot",
    "Schema": "tabweave.rows.table",
    "SetTfidf": "tabweave.embed.sets",
    "SimilarityIndex": "tabweave.search.index",
    "Sources": "tabweave.sources",
    "Table": "tabweave.rows.table",
    "UNICORN": "tabweave.embed.unicorn",
    "UNTIE": "tabweave.embed.untie",
    "ValueMetric": "tabweave.embed.value_metric",
    "ValueTables": "tabweave.blocks.value_tables",
    "Weave": "tabweave.embed.weave",
    "WeightedKNN": "tabweave.search.knn",
    "Windowed": "tabweave.embed.windowed",
    "batch_omp": "tabweave.embed.sets",
    "count": "tabweave.engines",
    "load": "tabweave.io.store",
    "omp": "tabweave.embed.sets",
}


# Rooms that are reached by a shorter way than they lie.
_SHORT = {"export": "io.export", "report": "apps.report", "studio": "apps.studio"}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    if name in __all__:
        return import_module(f"tabweave.{_SHORT.get(name, name)}")
    raise AttributeError(f"module 'tabweave' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
