"""weft: representation and similarity learning on complex tables.

One-hot throws away what your columns know about each other; weft keeps it, in one pass over the
data, with a metric you can trust and a table you can look into.
"""

from weft.counts import Counts
from weft.onehot import OneHot
from weft.table import Column, Schema, Table
from weft.tables import ValueTables

__version__ = "0.1.0"
__all__ = ["Column", "Counts", "OneHot", "Schema", "Table", "ValueTables"]
