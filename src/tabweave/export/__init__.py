"""export: models as SQL, ONNX or Parquet, which run without tabweave, and saved files.

A representation is a lookup, so it fits into SQL (:func:`sql`), a graph for any runtime
(:func:`onnx`) or one table (:func:`parquet`). :func:`save` and :func:`load` keep whole estimators.
"""

from tabweave.export.onnx import onnx
from tabweave.export.parquet import parquet
from tabweave.export.sql import Script, sql
from tabweave.io.store import load, save

__all__ = ["Script", "load", "onnx", "parquet", "save", "sql"]
