"""Tasks: associations, missing and odd cells, drift, river's streams.

Each is imported when it is asked for.
"""

from typing import TYPE_CHECKING

from tabweave.io.register import lazy

if TYPE_CHECKING:
    from tabweave.tasks.drift import DriftReport, drift_report
    from tabweave.tasks.impute import Imputer
    from tabweave.tasks.outliers import OutlierCells
    from tabweave.tasks.river import RiverEmbedder

# associations is a module here, and a function in tabweave
__all__ = [
    "DriftReport",
    "Imputer",
    "OutlierCells",
    "RiverEmbedder",
    "drift_report",
]
__getattr__ = lazy(
    __name__,
    {
        "DriftReport": "drift",
        "Imputer": "impute",
        "OutlierCells": "outliers",
        "RiverEmbedder": "river",
        "drift_report": "drift",
    },
)
