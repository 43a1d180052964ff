"""Tasks: associations, missing and odd cells, drift, sampled rows, river's streams.

Each is imported when it is asked for.
"""

from tabweave.io.register import lazy

_HOMES = {  # associations is a module here, and a function in tabweave
    "DriftReport": "drift",
    "Imputer": "impute",
    "OutlierCells": "outliers",
    "PairMixture": "sampling",
    "RiverEmbedder": "river",
    "drift_report": "drift",
}
__all__ = sorted(_HOMES)
__getattr__ = lazy(__name__, _HOMES)
