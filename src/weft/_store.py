"""Saving and loading: any estimator of weft as one file, and the classes that files may hold.

``Storable`` gives estimators :meth:`~Storable.save`; :func:`load` reads what it wrote. A file names
classes by the register below and nothing else: reading one imports and runs no other code.
"""

from __future__ import annotations

import warnings
from functools import cache
from importlib import import_module
from os import PathLike
from typing import Any

from weft import _persist
from weft._codec import Decoder, Encoder
from weft.counts import Counts
from weft.table import Schema
from weft.tables import ValueTables

KIND = "estimator"
# Module → classes. A class that moves keeps its old place here as an alias, so that files last.
_WEFT = {
    "_absolute": "Absolute",
    "_index_graph": "Graph",
    "_index_rows": "Stored",
    "_memory": "Memory",
    "_mixed": "Numbering Standard Transformed",
    "_schema": "Column Schema",
    "cluster": "CCDSDC CCTED DCD KModes StreamClusterer",
    "cluster._centers": "Layout",
    "cluster._profiles": "Vocabulary",
    "counts": "Counts",
    "couplings": "gaussian polynomial",
    "hierarchy": "DRDH DistanceHierarchy Tree",
    "hierarchy._blocks": "LevelBlock LineBlock TreeBlock",
    "hierarchy._search": "Rows TreeIndex",
    "index": "SimilarityIndex",
    "learn._helic_pairs": "PairSample Pairs",
    "learn._nonbend_model": "Fit Prior",
    "learn._nonbend_rows": "Rows",
    "learn._unicorn_printed": "Prior",
    "learn.autoencoder": "OneHotAutoencoder",
    "learn.cde": "CDE",
    "learn.helic": "HELIC",
    "learn.nonbend": "NonBEND",
    "learn.unicorn": "UNICORN Change",
    "learn.untie": "UNTIE",
    "learn.weave": "Weave",
    "measures": "CKML ValueMetric",
    "measures.registry": "Measure",
    "mixed": "MixedEmbedder",
    "neighbors": "WeightedKNN",
    "numeric": "CoupledNumeric",
    "numeric._couplings": "CoupledModel",
    "numeric._powers": "PowerMoments",
    "onehot": "OneHot",
    "recommend": "MatrixFactorization Side",
    "sources": "CoCA GBCClassifier GBCRegressor HeMap Sources",
    "sources._blocks": "Block",
    "sources._coca_views": "View",
    "sources._gbc_fusion": "Fusion",
    "sources._graphs": "Edges",
    "sources._hemap_projection": "Frame",
    "sources._hemap_transfer": "Side Transfer",
    "sources._ids": "Places",
    "sparse": "KSVD SetTfidf",
    "sparse._terms": "ColumnTerms Level TermCounts",
    "sparse._vocabulary": "Vocabulary",
    "table": "Codes Numbers Sets Table",
    "tables": "ValueTables",
    "windows": "Windowed",
}
# Of scikit-learn, what is made of plain values and arrays.
_SKLEARN = {
    "cluster": "KMeans MiniBatchKMeans",
    "decomposition": "PCA TruncatedSVD",
    "dummy": "DummyClassifier DummyRegressor",
    "linear_model": "LinearRegression LogisticRegression Ridge RidgeClassifier",
    "naive_bayes": "GaussianNB",
    "neighbors": "KNeighborsClassifier KNeighborsRegressor",
    "neural_network": "MLPClassifier MLPRegressor",
    "neural_network._stochastic_optimizers": "AdamOptimizer SGDOptimizer",
    "pipeline": "Pipeline",
    "preprocessing": "LabelBinarizer LabelEncoder MaxAbsScaler MinMaxScaler Normalizer "
    "PowerTransformer QuantileTransformer RobustScaler StandardScaler",
}


class Storable:
    """Gives an estimator ``save``; :func:`weft.load` reads the file."""

    def save(self, path: str | PathLike[str]) -> None:
        """Write to one file, whole or not at all; :func:`weft.load` gives it back.

        Parameters
        ----------
        path : str or path
            The file; one that is there is replaced.
        """
        save(self, path)


def save(value: Any, path: str | PathLike[str]) -> None:
    """Write an estimator, or any other object of weft, to one file.

    The file holds parameters and what was learned as JSON and plain arrays, with a hash over all
    of it; no pickle. It appears whole or not at all, and equal models give equal files.

    Parameters
    ----------
    value : estimator, Counts, Schema, Table or ValueTables
        What to write; an estimator may be fitted or not.
    path : str or path
        The file; one that is there is replaced.

    Examples
    --------
    >>> import os, tempfile, weft
    >>> rows = [["a", "x"], ["b", "y"], ["a", "y"]]
    >>> path = os.path.join(tempfile.mkdtemp(), "model.weft")
    >>> weft.export.save(weft.Weave().fit(rows), path)
    >>> weft.load(path).transform(rows).shape
    (3, 2)
    """
    encoder = Encoder(_name_of)
    tree = encoder.encode(value, "")
    if not isinstance(tree, dict) or "object" not in tree:
        raise TypeError(f"cannot save {value!r}: give an estimator or another object of weft")
    header = {"class": tree["object"][0], "sklearn": _sklearn_version(), "value": tree}
    _persist.write(path, KIND, header, encoder.arrays)


def load(path: str | PathLike[str]) -> Any:
    """Read what ``save`` wrote: an estimator, or :class:`~weft.Counts`.

    The seal over the content, the class, its parameters and the shapes of what was learned are
    checked; a file that is damaged, cut short or not of weft is refused by name.

    Parameters
    ----------
    path : str or path
        The file.
    """
    header, arrays = _persist.read(path, KIND, "counts", "stream")
    if header["weft"] == "stream":
        name = header.get("estimator")
        raise ValueError(
            f"{path} is a checkpoint of format 1, which does not hold all parameters; make a "
            f"{name} with those it had and call its resume({str(path)!r})"
        )
    return opened(path, header, arrays)


def opened(path: str | PathLike[str], header: dict[str, Any], arrays: dict[str, Any]) -> Any:
    """Return the object of a file that was read."""
    used: set[str] = set()

    def found(name: str) -> Any:
        used.add(name)
        return _found(name)

    decoder = Decoder(arrays, found)
    try:
        if header["weft"] == "counts":
            return Counts._restored(header, arrays)
        value = decoder.decode(header["value"])
        if decoder.unused:
            raise ValueError(f"it has {len(decoder.unused)} arrays too many")
        _check(value)
    except ImportError:
        raise  # an optional package that the model needs: it says which
    except _persist.DAMAGE as error:
        raise ValueError(f"{path} is damaged: {error}") from error
    written, here = header["sklearn"], _sklearn_version()
    if written != here and any(name.startswith("sklearn.") for name in used):
        warnings.warn(
            f"{path} holds parts of scikit-learn {written}, read by {here}: check its results",
            stacklevel=3,
        )
    return value


# -- the register -------------------------------------------------------------------------------


@cache
def _register() -> dict[str, tuple[str, str]]:
    """Return name in files → (module, name there)."""
    out = {}
    for package, table in (("weft", _WEFT), ("sklearn", _SKLEARN)):
        for module, names in table.items():
            for name in names.split():
                out[f"{package}.{module}.{name}"] = (f"{package}.{module}", name)
    return out


def _found(name: str) -> Any:
    """Return the class or function of a name in a file; import nothing that is not registered."""
    if name.startswith("measure "):
        return import_module("weft.measures").MEASURES[name.removeprefix("measure ")].function
    if name not in _register():
        raise ValueError(f"it holds a {name}, which this weft does not know; upgrade it")
    module, attribute = _register()[name]
    return getattr(import_module(module), attribute)


def _name_of(value: Any) -> str | None:
    """Return the name of a class or function in files, or None if it has none."""
    wanted = getattr(value, "__qualname__", None)
    for name, (module, attribute) in _register().items():
        if attribute == wanted and value.__module__.startswith(module.partition(".")[0]):
            if getattr(import_module(module), attribute) is value:
                return name
    measures = import_module("weft.measures").MEASURES if callable(value) else {}
    names = [name for name, entry in measures.items() if entry.function is value]
    own = names and value.__module__.startswith("weft.")
    return f"measure {names[0]}" if own else None


# -- checks -------------------------------------------------------------------------------------


def _check(value: Any) -> None:
    """Refuse what no fitted estimator looks like."""
    own = vars(value)
    for name, kind in (("tables_", ValueTables), ("schema_", Schema)):
        if not isinstance(own.get(name), kind | None):
            raise ValueError(f"{name} is a {type(own[name]).__name__}")
    if not hasattr(own.get("counts_", Counts()), "schema"):
        raise ValueError(f"counts_ is a {type(own['counts_']).__name__}")
    for part in (value, *own.values()):
        if isinstance(part, ValueTables):
            _check_tables(part)
        elif isinstance(part, Counts):
            _check_counts(part)
    schema, width = own.get("schema_"), own.get("n_features_in_")
    if schema is not None and width is not None and len(schema) != width:
        raise ValueError(f"{len(schema)} columns where {width} were fitted")


def _check_tables(tables: ValueTables) -> None:
    shapes = zip(tables.names, tables.labels, tables.tables, strict=True)
    for name, labels, rows in shapes:
        if rows.ndim != 2 or len(rows) != len(labels) + 1:
            raise ValueError(f"column {name!r} has {len(labels)} values, its table {rows.shape}")


def _check_counts(counts: Counts) -> None:
    if counts.schema is None:
        return
    size = int(counts.offsets[-1])
    if len(counts.labels) != len(counts.names) or counts.pairs.shape != (size, size):
        raise ValueError(f"the pair counts do not fit {size} values")
    if counts.class_pairs is not None and len(counts.class_pairs) != size:
        raise ValueError(f"the class counts do not fit {size} values")


def _sklearn_version() -> str:
    import sklearn

    return sklearn.__version__
