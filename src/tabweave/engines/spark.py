"""Spark's own forms: an estimator and a transformer for the pipelines of ``pyspark.ml``.

``TabweaveEstimator`` fits an embedder where the rows are; ``TabweaveTransformer`` adds a column of
vectors that Spark's own algorithms read. Only this file needs pyspark to be imported.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from pyspark import keyword_only
from pyspark.ml import Estimator, Transformer
from pyspark.ml.functions import array_to_vector
from pyspark.ml.param import Param, Params, TypeConverters
from pyspark.ml.util import (
    DefaultParamsReader,
    DefaultParamsWriter,
    MLReadable,
    MLReader,
    MLWritable,
    MLWriter,
)
from sklearn.base import clone

from tabweave.engines.transform import vectors_of
from tabweave.io.store import load


class _Columns(Params):
    """What both have in common: the columns that are read, those kept, and the one written."""

    outputCol: Any = Param(
        Params._dummy(), "outputCol", "the column of vectors", TypeConverters.toString
    )
    inputCols: Any = Param(
        Params._dummy(), "inputCols", "the columns to read", TypeConverters.toListString
    )
    labelCol: Any = Param(
        Params._dummy(), "labelCol", "the column of classes, if the embedder needs them",
        TypeConverters.toString,
    )  # fmt: skip

    def _rows(self, dataset: Any) -> Any:
        """The columns that are read, all of them if none are named."""
        names = self.getOrDefault(self.inputCols) if self.isDefined(self.inputCols) else []
        label = self._label()
        chosen = [*names, *([label] if label and label not in names else [])]
        return dataset.select(*(f"`{name}`" for name in chosen)) if names else dataset

    def _label(self) -> str | None:
        return self.getOrDefault(self.labelCol) if self.isDefined(self.labelCol) else None


class TabweaveEstimator(Estimator, _Columns):
    """Fit an embedder to a Spark frame, as a stage of a ``pyspark.ml.Pipeline``.

    Parameters
    ----------
    embedder : embedder
        What learns, such as ``Weave()``.
    outputCol : str, default="features"
        The column of vectors, as Spark's own algorithms read them.
    inputCols : list of str, optional
        The columns to read; all by default.
    labelCol : str, optional
        The column of classes, for embedders that need them.
    """

    @keyword_only
    def __init__(
        self,
        *,
        embedder: Any = None,
        outputCol: str = "features",
        inputCols: Any = None,
        labelCol: str | None = None,
    ) -> None:
        super().__init__()
        self.embedder = embedder
        self._setDefault(outputCol="features")
        given = {"outputCol": outputCol, "inputCols": inputCols, "labelCol": labelCol}
        self._set(**{name: value for name, value in given.items() if value is not None})

    def _fit(self, dataset: Any) -> TabweaveTransformer:
        """The transformer of an embedder that learned from all rows, where they are."""
        label = self._label()
        fitted = clone(self.embedder).fit(self._rows(dataset), *([] if label is None else [label]))
        made = TabweaveTransformer(embedder=fitted, outputCol=self.getOrDefault(self.outputCol))
        return made._resetUid(self.uid)


class TabweaveTransformer(Transformer, _Columns, MLReadable, MLWritable):
    """Add the vectors of a fitted embedder to a Spark frame.

    Parameters
    ----------
    embedder : fitted embedder
        What turns rows into vectors.
    outputCol : str, default="features"
        The column of vectors, as Spark's own algorithms read them.
    """

    @keyword_only
    def __init__(self, *, embedder: Any = None, outputCol: str = "features") -> None:
        super().__init__()
        self.embedder = embedder
        self._setDefault(outputCol="features")
        self._set(outputCol=outputCol)

    def _transform(self, dataset: Any) -> Any:
        """The frame with a column of vectors; nothing is computed yet."""
        name = self.getOrDefault(self.outputCol)
        frame = vectors_of(self.embedder, dataset, dataset.columns, name)
        return frame.withColumn(name, array_to_vector(frame[name]))

    def write(self) -> Any:
        """What saves it, also as a stage of a pipeline."""
        return _Writer(self)

    @classmethod
    def read(cls) -> Any:
        """What loads one that was saved."""
        return _Reader()


class _Writer(MLWriter):
    """Save a transformer as a row of bytes, wherever Spark writes."""

    def __init__(self, stage: TabweaveTransformer) -> None:
        super().__init__()
        self.stage = stage

    def saveImpl(self, path: str) -> None:
        """Write the parameters as Spark does, and the model as a row of bytes."""
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "model")
            self.stage.embedder.save(file)
            saved = bytearray(file.read_bytes())
        DefaultParamsWriter.saveMetadata(self.stage, path, self.sparkSession)
        frame = self.sparkSession.createDataFrame([(saved,)], "model binary")
        frame.coalesce(1).write.parquet(f"{path}/model")


class _Reader(MLReader):
    """Load a transformer."""

    def load(self, path: str) -> TabweaveTransformer:
        """The transformer that was saved."""
        metadata = DefaultParamsReader.loadMetadata(path, self.sparkSession)
        row = self.sparkSession.read.parquet(f"{path}/model").head()
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "model")
            file.write_bytes(bytes(row.model))
            made = TabweaveTransformer(embedder=load(file))
        made._resetUid(metadata["uid"])
        DefaultParamsReader.getAndSetParams(made, metadata)
        return made
