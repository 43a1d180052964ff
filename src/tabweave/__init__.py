"""tabweave: representation and similarity learning on complex tables.

One-hot throws away what your columns know about each other; tabweave keeps it, in one pass over the
data, with a metric you can trust and a table you can look into. Where to start:

- ``Weave().fit_transform(rows)``: any table in, vectors out; ``explain`` splits distances by column
- ``SupervisedWeave``: vectors for another model, from rows and a target
- ``WeaveClassifier``, ``WeaveRegressor``: predictions, explained by similar rows
- ``SimilarityIndex``, ``KModes``, ``cluster``: similar rows, duplicates, clusters
- ``Imputer``, ``OutlierCells``, ``associations``: missing cells, odd cells, dependences
- ``count``: the counts of a file, a query or a database of any size, from which they all learn
- ``report``, ``studio``: a page about a table, and one to explore it
"""

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # what editors and type checkers know; every other name is found as well, untyped
    from tabweave import apps as apps
    from tabweave import cluster as cluster
    from tabweave import columns as columns
    from tabweave import counts as counts
    from tabweave import datasets as datasets
    from tabweave import embed as embed
    from tabweave import engines as engines
    from tabweave import evaluate as evaluate
    from tabweave import export as export
    from tabweave import io as io
    from tabweave import measures as measures
    from tabweave import neighbors as neighbors
    from tabweave import papers as papers
    from tabweave import plots as plots
    from tabweave import sources as sources
    from tabweave import space as space
    from tabweave import tasks as tasks
    from tabweave.apps import report as report
    from tabweave.apps import studio as studio
    from tabweave.cluster import KModes as KModes
    from tabweave.columns.column import Column as Column
    from tabweave.columns.column import Schema as Schema
    from tabweave.columns.table import Table as Table
    from tabweave.counts.counts import Counts as Counts
    from tabweave.counts.private import public_bins as public_bins
    from tabweave.embed.cde import CDE as CDE
    from tabweave.embed.ckml import CKML as CKML
    from tabweave.embed.coupled_numeric import CoupledNumeric as CoupledNumeric
    from tabweave.embed.factors import CA as CA
    from tabweave.embed.factors import FAMD as FAMD
    from tabweave.embed.factors import MCA as MCA
    from tabweave.embed.factors import MFA as MFA
    from tabweave.embed.helic import HELIC as HELIC
    from tabweave.embed.hierarchy import DRDH as DRDH
    from tabweave.embed.hierarchy import DistanceHierarchy as DistanceHierarchy
    from tabweave.embed.nonbend import NonBEND as NonBEND
    from tabweave.embed.onehot import OneHot as OneHot
    from tabweave.embed.onehot import OneHotAutoencoder as OneHotAutoencoder
    from tabweave.embed.sets import KSVD as KSVD
    from tabweave.embed.sets import SetTfidf as SetTfidf
    from tabweave.embed.sets import batch_omp as batch_omp
    from tabweave.embed.sets import omp as omp
    from tabweave.embed.supervised import SupervisedWeave as SupervisedWeave
    from tabweave.embed.unicorn import UNICORN as UNICORN
    from tabweave.embed.untie import UNTIE as UNTIE
    from tabweave.embed.value_metric import ValueMetric as ValueMetric
    from tabweave.embed.weave import Weave as Weave
    from tabweave.embed.windowed import Windowed as Windowed
    from tabweave.engines import count as count
    from tabweave.gpu.arrays import config_context as config_context
    from tabweave.gpu.arrays import get_config as get_config
    from tabweave.gpu.arrays import set_config as set_config
    from tabweave.io.store import load as load
    from tabweave.neighbors.filters import between as between
    from tabweave.neighbors.index import SimilarityIndex as SimilarityIndex
    from tabweave.neighbors.knn import WeightedKNN as WeightedKNN
    from tabweave.neighbors.predictors import WeaveClassifier as WeaveClassifier
    from tabweave.neighbors.predictors import WeaveRegressor as WeaveRegressor
    from tabweave.sources import CoCA as CoCA
    from tabweave.sources import GBCClassifier as GBCClassifier
    from tabweave.sources import GBCRegressor as GBCRegressor
    from tabweave.sources import HeMap as HeMap
    from tabweave.sources import Sources as Sources
    from tabweave.space.value_tables import ValueTables as ValueTables
    from tabweave.tasks.associations import associations as associations
    from tabweave.tasks.impute import Imputer as Imputer
    from tabweave.tasks.outliers import OutlierCells as OutlierCells

# Names of the package beside the embedders, which the register finds.
_NAMES = {
    "space.value_tables": "ValueTables",
    "cluster": "KModes",
    "counts.counts": "Counts",
    "counts.private": "public_bins",
    "embed.sets": "batch_omp omp",
    "engines": "count",
    "gpu.arrays": "config_context get_config set_config",
    "io.store": "load",
    "neighbors.filters": "between",
    "neighbors.index": "SimilarityIndex",
    "neighbors.knn": "WeightedKNN",
    "neighbors.predictors": "WeaveClassifier WeaveRegressor",
    "columns.table": "Column Schema Table",
    "sources": "CoCA GBCClassifier GBCRegressor HeMap Sources",
    "tasks.associations": "associations",
    "tasks.impute": "Imputer",
    "tasks.outliers": "OutlierCells",
}
# Rooms that are no folder here: one file, or reached by a shorter way than they lie.
_SHORT = {
    **{"evaluate": "evaluate", "plots": "plots"},
    **{"report": "apps.report", "studio": "apps.studio"},
}


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return sorted(_homes())
    if name == "__version__":
        return _version()
    home = None if name.startswith("_") else _homes().get(name)
    if home is None:
        raise AttributeError(f"module 'tabweave' has no attribute {name!r}")
    module, _, attribute = home.partition(":")
    found = import_module(f"tabweave.{module}")
    return getattr(found, attribute) if attribute else found


def __dir__() -> list[str]:
    private = {name for name in globals() if name.startswith("_")}  # no Any, no cache for Tab
    return sorted({*private, *_homes(), "__all__", "__version__"})


@cache
def _homes() -> dict[str, str]:
    """Return where each public name is: ``module:attribute``, or a module alone."""
    from pkgutil import iter_modules

    from tabweave.io import register

    rooms = {info.name: info.name for info in iter_modules(__path__) if info.ispkg}
    names = {name: f"{home}:{name}" for home, text in _NAMES.items() for name in text.split()}
    embedders = {
        entry.attribute: f"{entry.module.partition('.')[2]}:{entry.attribute}"
        for entry in register.room("tabweave.embed")
        if entry.decorator == "embedder"
    }
    return rooms | _SHORT | names | embedders


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("tabweave")
    except PackageNotFoundError:  # a folder of sources that was never installed
        return "0+unknown"
