"""Value measures: functions from counts to dissimilarities, one file per family.

``ValueMetric(name)`` puts one to work, ``list_measures()`` says which there are, and ``@measure``
registers another.
"""

from tabweave.measures import frequency, information  # isort: skip
from tabweave.measures import context, coupled, supervised  # isort: skip
from tabweave.measures.register import MEASURES, list_measures, measure

__all__ = [
    "MEASURES",
    "context",
    "coupled",
    "frequency",
    "information",
    "list_measures",
    "measure",
    "supervised",
]
