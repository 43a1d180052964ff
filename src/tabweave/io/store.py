"""Saving and loading: any estimator of tabweave as one file.

``Storable`` gives estimators :meth:`~Storable.save`; :func:`load` reads what it wrote. A file names
classes that stand under ``@embedder`` or ``@storable`` in their own files, measures, and the few of
scikit-learn below. Which these are is read as text: a file that names anything else is refused
before anything is imported.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from os import PathLike
from typing import Any

from tabweave._compat import warn_caller
from tabweave.io import register
from tabweave.io.archive import DAMAGE, read, write
from tabweave.io.codec import Decoder, Encoder

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
    """Gives an estimator ``save``; :func:`tabweave.load` reads the file."""

    def save(self, path: str | PathLike[str]) -> None:
        """Write to one file, whole or not at all; :func:`tabweave.load` gives it back.

        Parameters
        ----------
        path : str or path
            The file; one that is there is replaced.
        """
        save(self, path)


class CacheNotSaved:
    """Mixin: ``_cache`` can be computed again, so neither files nor pickles hold it."""

    def _tabweave_state(self) -> dict[str, Any]:
        return {name: value for name, value in dict(vars(self)).items() if name != "_cache"}

    def __getstate__(self) -> Any:
        state: Any = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_cache"}


def save(value: Any, path: str | PathLike[str]) -> None:
    """Write an estimator, or any other object of tabweave, to one file.

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
    >>> import os, tempfile, tabweave
    >>> rows = [["a", "x"], ["b", "y"], ["a", "y"]]
    >>> path = os.path.join(tempfile.mkdtemp(), "model.tabweave")
    >>> tabweave.export.save(tabweave.Weave().fit(rows), path)
    >>> tabweave.load(path).transform(rows).shape
    (3, 2)
    """
    encoder = Encoder(_name_of)
    tree = encoder.encode(value, "")
    if not isinstance(tree, dict) or "object" not in tree:
        raise TypeError(f"cannot save {value!r}: give an estimator or another object of tabweave")
    header = {"class": tree["object"][0], "sklearn": _sklearn_version(), "value": tree}
    write(path, header, encoder.arrays)


def load(path: str | PathLike[str]) -> Any:
    """Read what ``save`` wrote: an estimator, or :class:`~tabweave.Counts`.

    The hash of the content, the class, its parameters and the shapes of what was learned are
    checked; a file that is damaged, truncated or not from tabweave raises an error that names it.

    Parameters
    ----------
    path : str or path
        The file.

    Examples
    --------
    >>> import os, tempfile
    >>> from tabweave import OneHot, load
    >>> model = OneHot().fit({"color": ["red", "blue"]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "colors.tabweave")
    ...     model.save(path)
    ...     load(path)
    OneHot()
    """
    header, arrays = read(path)
    used: set[str] = set()

    def found(name: str) -> Any:
        used.add(name)
        return _named(name)

    decoder = Decoder(arrays, found)
    try:
        value = decoder.decode(header["value"])
        if decoder.unused:
            raise ValueError(f"it has {len(decoder.unused)} arrays too many")
        _check(value)
        written, installed = header["sklearn"], _sklearn_version()
    except ImportError:
        raise  # an optional package that the model needs: it says which
    except DAMAGE as error:
        raise ValueError(f"{path} is damaged: {error}") from error
    if written != installed and any(name.startswith("sklearn.") for name in used):
        warn_caller(
            f"{path} holds parts of scikit-learn {written}, read by {installed}: check its results"
        )
    return value


# -- names in files -----------------------------------------------------------------------------


def _named(name: str) -> Any:
    """The class or function of a name in a file; import nothing that is not declared."""
    if name.startswith("measure "):
        return import_module("tabweave.measures.register").find(name[len("measure ") :]).function
    if name in _of_sklearn():
        module, _, attribute = name.rpartition(".")
        return getattr(import_module(module), attribute)
    module, _, attribute = name.rpartition(".")
    for entry in register.module(module):
        if entry.attribute == attribute and entry.decorator in register.STORED:
            return entry.load()
    raise ValueError(f"it holds a {name}, which this version of tabweave does not know; upgrade it")


def _name_of(value: Any) -> str | None:
    """The name of a class or function in files, or None if it has none."""
    declared = register.declaration(value)
    if declared is None:
        ending = f".{getattr(value, '__qualname__', '')}"
        names = (name for name in _of_sklearn() if name.endswith(ending))
        return next((name for name in names if _named(name) is value), None)
    if declared.module.partition(".")[0] != register.PACKAGE:
        return None  # declared in code of a user's own, which a file cannot bring back
    measure = declared.decorator == "measure"
    return f"measure {declared.name}" if measure else ".".join(declared.home)


@cache
def _of_sklearn() -> frozenset[str]:
    names = ((m, name) for m, names in _SKLEARN.items() for name in names.split())
    return frozenset(f"sklearn.{module}.{name}" for module, name in names)


# -- checks -------------------------------------------------------------------------------------


def _check(value: Any) -> None:
    """Raise for what no fitted estimator looks like: by what each part must be able to say."""
    state = getattr(value, "__dict__", {})
    for name, member in (("tables_", "gather"), ("schema_", "given"), ("counts_", "schema")):
        part = state.get(name)
        if part is not None and not hasattr(part, member):
            raise ValueError(f"{name} is a {type(part).__name__}")
    schema, width = state.get("schema_"), state.get("n_features_in_")
    if schema is not None and width is not None and len(schema.given) != width:
        raise ValueError(f"{len(schema.given)} columns where {width} were fitted")


def _sklearn_version() -> str:
    import sklearn

    return sklearn.__version__
