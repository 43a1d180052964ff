"""weft: representation and similarity learning on complex tables.

One-hot throws away what your columns know about each other; weft keeps it, in one pass over the
data, with a metric you can trust and a table you can look into.
"""

from weft import datasets, evaluate, plots
from weft.cluster import KModes
from weft.counts import Counts
from weft.hierarchy import DRDH, DistanceHierarchy
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
    "Column",
    "Counts",
    "CoupledNumeric",
    "DistanceHierarchy",
    "KModes",
    "MixedEmbedder",
    "NonBEND",
    "OneHot",
    "Schema",
    "SetTfidf",
    "Table",
    "ValueMetric",
    "ValueTables",
    "Weave",
    "WeightedKNN",
    "Windowed",
    "batch_omp",
    "datasets",
    "evaluate",
    "omp",
    "plots",
]
