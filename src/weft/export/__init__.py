"""export: representations that work without weft, and files that bring models back.

A representation is a lookup, so it fits into SQL (:func:`sql`), a graph for any runtime
(:func:`onnx`) or one table (:func:`parquet`). :func:`save` and :func:`load` keep whole estimators.
"""

from weft._store import load, save
from weft.export._onnx import onnx
from weft.export._parquet import parquet
from weft.export._sql import Script, sql

__all__ = ["Script", "load", "onnx", "parquet", "save", "sql"]
