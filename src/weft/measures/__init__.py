"""Value measures: functions from counts to dissimilarities, one file per family.

``ValueMetric(name)`` puts one to work, ``list_measures()`` says which there are, and ``@measure``
registers another.
"""

from weft.measures import matching, frequency, information  # isort: skip
from weft.measures import context, coupled, supervised  # isort: skip
from weft.measures.ckml import CKML
from weft.measures.metric import ValueMetric
from weft.measures.registry import MEASURES, list_measures, measure

__all__ = [
    "CKML",
    "MEASURES",
    "ValueMetric",
    "context",
    "coupled",
    "frequency",
    "information",
    "list_measures",
    "matching",
    "measure",
    "supervised",
]
