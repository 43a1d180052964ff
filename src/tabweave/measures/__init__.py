"""Value measures: functions from counts to dissimilarities, one file per family.

``ValueMetric(name)`` puts one to work, ``list_measures()`` says which there are, and ``@measure``
registers another. What a file in this folder declares is found; there is no list of them here.
"""

from typing import Any

from tabweave.io.register import attribute
from tabweave.measures.register import MEASURES, list_measures, measure

__all__ = ["MEASURES", "list_measures", "measure"]


def __getattr__(name: str) -> Any:
    return attribute(__name__, name)
