"""Saving and loading: any estimator of tabweave as one file.

``Storable`` gives estimators :meth:`~Storable.save`; :func:`load` reads what it wrote. A file names
classes that stand under ``@embedder`` or ``@storable`` in their own files, measures, and the few of
scikit-learn below. Which these are is read as text: a file that names anything else is refused
before anything is imported.
"""

from __future__ import annotations

import copy
import dataclasses
import datetime as dt
import decimal
import functools
import hashlib
import json
import os
import struct
import tokenize
import uuid
import zipfile
import zlib
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import IO, Any

import numpy as np
from scipy import sparse

from tabweave._compat import require, warn_caller
from tabweave.io import register
from tabweave.io.files import BLOCK_BYTES, replacing

# -- Files: a JSON header and plain arrays in one sealed archive. No pickle, no half-written file.
#
# A file is a zip archive of ``.npy`` members. Its comment, the last bytes of the file, is the seal:
# the SHA-256 of everything before. What a file would unpack to is read from its directory and
# compared with the size of the file before anything is unpacked.

VERSION = 1
_SEAL = b"tabweave sha256 "
_HEX = 2 * hashlib.sha256().digest_size
MAX_RATIO = 100  # An archive unpacks to at most so many times its size.
FREE_BYTES = 1 << 26  # An archive of any size may unpack to so much.
FREE_HEADER_BYTES = 1 << 23  # So may the header, whose text becomes many objects.
MIN_MAPPED_BYTES = 1 << 20  # Smaller arrays are read even where larger ones stay in their file.
_PADDING = 0xD935  # The name that zip archives give to bytes which only move what follows.
DAMAGE = (
    *(zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError, RuntimeError),
    *(ValueError, TypeError, LookupError, AttributeError, ArithmeticError, AssertionError),
    *(SyntaxError, tokenize.TokenError, MemoryError),  # what NumPy makes of a bad array header
)


def write(
    path: str | PathLike[str],
    header: dict[str, Any],
    arrays: dict[str, np.ndarray],
    *,
    compress: bool = True,
) -> None:
    """Write to a temporary name beside the target, then rename: readers see all or nothing."""
    text = json.dumps({"tabweave": VERSION, **header})
    members = {"header": np.frombuffer(text.encode(), np.uint8), **arrays}
    with replacing(path) as temporary, open(temporary, "w+b") as file:
        (_pack if compress else _lay_out)(file, members)
        if _is_bomb(file):  # or it could never be read again
            file.seek(0)
            file.truncate()
            np.savez(file, **members)
        _seal(file)


def _pack(file: IO[bytes], members: dict[str, np.ndarray]) -> None:
    """Write what ``numpy.savez_compressed`` writes, in a third of its time, by level 3 of 9."""
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=3) as archive:
        for name, array in members.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asanyarray(array), allow_pickle=False)


def _lay_out(file: IO[bytes], members: dict[str, np.ndarray]) -> None:
    """Write arrays as they lie in memory, each from a multiple of 64 bytes on, to be mapped."""
    head, zip64 = 30, 20  # Bytes of the header of a member, and of what says that it may be large.
    with zipfile.ZipFile(file, "w") as archive:
        for name, array in members.items():
            info = zipfile.ZipInfo(f"{name}.npy")
            padding = -(file.tell() + head + len(info.filename) + 4 + zip64) % 64
            info.extra = struct.pack("<HH", _PADDING, padding) + bytes(padding)
            with archive.open(info, "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asanyarray(array), allow_pickle=False)


def _mapped(file: IO[bytes]) -> dict[str, np.ndarray]:
    """The large arrays of an archive that lie there as in memory: they stay in the file."""
    with zipfile.ZipFile(file) as archive:
        large = [entry for entry in archive.infolist() if entry.file_size >= MIN_MAPPED_BYTES]
    if any(entry.compress_type != zipfile.ZIP_STORED for entry in large):
        raise ValueError("its arrays are compressed; save it with compress=False, or leave mmap")
    arrays = {}
    for entry in large:
        file.seek(entry.header_offset + 26)
        file.seek(sum(struct.unpack("<HH", file.read(4))), os.SEEK_CUR)
        version = np.lib.format.read_magic(file)
        read_header = getattr(np.lib.format, f"read_array_header_{version[0]}_0")
        shape, is_fortran, dtype = read_header(file)
        order: Any = "F" if is_fortran else "C"
        name, begin = entry.filename.removesuffix(".npy"), file.tell()
        arrays[name] = np.memmap(file, _simple(dtype.str), "r", begin, shape, order)
    return arrays


def _is_bomb(file: IO[bytes]) -> bool:
    """Whether an archive says that it unpacks to far more than the file can hold.

    A member is never read farther than the directory says, but what the directory says of packed
    sizes is not believed beyond the size of the file.
    """
    with zipfile.ZipFile(file) as archive:
        entries = archive.infolist()
    header = [entry for entry in entries if entry.filename.startswith("header")]
    n_bytes = file.seek(0, os.SEEK_END)
    return _is_over(entries, n_bytes, FREE_BYTES) or _is_over(header, n_bytes, FREE_HEADER_BYTES)


def _is_over(entries: list[zipfile.ZipInfo], n_bytes: int, free_bytes: int) -> bool:
    packed, unpacked = (sum(getattr(e, s) for e in entries) for s in ("compress_size", "file_size"))
    return unpacked > max(free_bytes, MAX_RATIO * min(packed, n_bytes))


def _seal(file: IO[bytes]) -> None:
    """End an archive with the hash of everything before it."""
    with zipfile.ZipFile(file, "a") as archive:
        archive.comment = _SEAL + b"0" * _HEX
    file.seek(-_HEX, os.SEEK_END)
    end = file.tell()
    digest = _digest(file, end)
    file.seek(end)
    file.write(digest)


def _digest(file: IO[bytes], length: int) -> bytes:
    file.seek(0)
    seal = hashlib.sha256()
    while length:
        block = file.read(min(length, BLOCK_BYTES))
        if not block:
            raise EOFError("the file ends early")
        seal.update(block)
        length -= len(block)
    return seal.hexdigest().encode()


def _check_seal(file: IO[bytes]) -> None:
    """Raise for a file without a seal, or with that of other content."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - _HEX - len(_SEAL)))
    end = file.read()
    if not end[:-_HEX].endswith(_SEAL):
        raise ValueError("it has no seal")
    if _digest(file, size - _HEX) != end[-_HEX:]:
        raise ValueError("its content is not what was written")


def read(
    path: str | PathLike[str], *, mmap: bool = False
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Header and arrays of a file that :func:`write` wrote; any other is refused by its name."""
    try:
        with open(path, "rb") as file:
            if file.read(4) != b"PK\x03\x04":
                raise ValueError("expected an archive")
            _check_seal(file)
            if _is_bomb(file):
                raise ValueError("it decompresses to far more than a file of tabweave holds")
            arrays = _mapped(file) if mmap else {}
            file.seek(0)
            with np.load(file, allow_pickle=False) as archive:
                arrays |= {name: archive[name] for name in archive.files if name not in arrays}
        header = json.loads(arrays.pop("header").tobytes())
        version = int(header.pop("tabweave"))
    except DAMAGE as error:
        if isinstance(error, OSError) and not Path(path).is_file():
            raise
        raise ValueError(f"{path} is damaged or was not written by tabweave ({error})") from error
    if version != VERSION:
        raise ValueError(
            f"{path}: expected format {VERSION} of tabweave's files, got {version}; upgrade "
            "tabweave"
        )
    return header, arrays


# -- Objects as JSON values and arrays, and back: what files are made of --------------------------
#
# Plain values, containers, arrays and the classes of a register go in; nothing else does, and no
# code is ever read. An object met twice is written once, so that what was shared is shared again,
# and equal objects give equal bytes.

_JSON_TYPES = (type(None), bool, int, float, str)
_AS_TEXT: dict[str, tuple[type, Callable[[Any], str], Callable[[str], Any]]] = {
    "bytes": (bytes, bytes.hex, bytes.fromhex),
    "date": (dt.date, dt.date.isoformat, dt.date.fromisoformat),
    "datetime": (dt.datetime, dt.datetime.isoformat, dt.datetime.fromisoformat),
    "time": (dt.time, dt.time.isoformat, dt.time.fromisoformat),
    "decimal": (decimal.Decimal, str, decimal.Decimal),
    "uuid": (uuid.UUID, str, uuid.UUID),
    "dtype": (np.dtype, lambda d: d.str, np.dtype),
}
_TAG_OF_TYPE = {entry[0]: tag for tag, entry in _AS_TEXT.items()}
_SPARSE = {
    name: getattr(sparse, name) for name in ("csr_array", "csc_array", "csr_matrix", "csc_matrix")
}
# Objects may be shared, so a short file may stand for something that takes for ever to walk over: a
# key, or a member of a set, has at most so many parts, shared ones counted each time.
MAX_KEY_PARTS = 1_000_000
_BITS = {"MT19937": np.random.MT19937, "PCG64": np.random.PCG64, "Philox": np.random.Philox}


class Encoder:
    """Turns objects into JSON values; arrays are gathered in ``arrays``.

    Parameters
    ----------
    name_of : callable
        The registered name of a class or function, or None.
    """

    def __init__(self, name_of: Callable[[Any], str | None]) -> None:
        self.arrays: dict[str, np.ndarray] = {}
        self._name_of = name_of
        self._seen: dict[int, tuple[int, Any]] = {}  # number and object, kept so that ids last
        self._open: set[int] = set()

    def encode(self, value: Any, path: str) -> Any:
        """A value as JSON; ``path`` says where it stands, for errors."""
        if type(value) in _JSON_TYPES:
            return value
        if type(value) in _TAG_OF_TYPE or isinstance(value, np.dtype):
            tag = _TAG_OF_TYPE.get(type(value), "dtype")
            if type(getattr(value, "tzinfo", None)) not in (type(None), dt.timezone):
                raise TypeError(f"cannot save {path}: {value!r} has a zone; convert it to UTC")
            return {tag: _AS_TEXT[tag][1](value)}
        if isinstance(value, np.generic):
            return {"scalar": [value.dtype.str, value.tobytes().hex()]}
        if isinstance(value, type) and issubclass(value, np.generic):
            return {"scalar type": np.dtype(value).str}
        if id(value) in self._seen:
            if id(value) in self._open:
                raise TypeError(f"cannot save {path}: it holds itself")
            return {"same": self._seen[id(value)][0]}
        self._seen[id(value)] = len(self._seen), value
        self._open.add(id(value))
        out = self._compound(value, path)
        self._open.discard(id(value))
        return out

    def _compound(self, value: Any, path: str) -> Any:
        kind = type(value)
        if kind in (list, tuple):
            parts = [self.encode(v, f"{path}[{i}]") for i, v in enumerate(value)]
            return parts if kind is list else {"tuple": parts}
        if kind is dict:
            items = [
                [self.encode(k, f"a key of {path}"), self.encode(v, f"{path}[{k!r}]")]
                for k, v in value.items()
            ]
            return {"dict": items}
        if kind in (set, frozenset):
            ordered = sorted(value, key=lambda v: (type(v).__name__, repr(v)))
            return {kind.__name__: [self.encode(v, f"a member of {path}") for v in ordered]}
        if kind is np.ndarray or kind is np.memmap:
            return self._array(value, path)
        if kind.__name__ in _SPARSE and kind is _SPARSE[kind.__name__]:
            parts = [self._array(getattr(value, k), path) for k in ("data", "indices", "indptr")]
            return {"sparse": [kind.__name__, list(map(int, value.shape)), parts]}
        return self._object(value, path)

    def _array(self, value: np.ndarray, path: str) -> Any:
        if value.dtype.kind in "OT":
            cells = value.astype(object).ravel().tolist()
            shape = list(value.shape)
            return {"objects": [shape, [self.encode(v, f"a cell of {path}") for v in cells]]}
        if value.dtype.hasobject or value.dtype.kind == "V":
            raise TypeError(f"cannot save {path}: an array of {value.dtype}")
        name = f"a{len(self.arrays)}"
        self.arrays[name] = np.asarray(value)
        return {"array": name}

    def _object(self, value: Any, path: str) -> Any:
        if isinstance(value, np.random.RandomState):
            return {"RandomState": self.encode(value.get_state(legacy=False), path)}
        if isinstance(value, np.random.Generator):
            return {"Generator": self.encode(value.bit_generator.state, path)}
        if type(value) is functools.partial:
            parts = [value.func, value.args, value.keywords]
            return {"partial": [self.encode(part, path) for part in parts]}
        if type(value).__module__.startswith("lightgbm") and hasattr(value, "model_to_string"):
            text = value.model_to_string(num_iteration=-1)
            return {"Booster": self.encode([text, value.best_iteration], path)}
        name = self._name_of(value if callable(value) and not _is_instance(value) else type(value))
        if name is None:
            raise TypeError(f"cannot save {path or 'this'}: {_refusal(value)}")
        if not _is_instance(value):
            return {"function": name}
        state = {
            attribute: self.encode(part, f"{path}.{attribute}" if path else attribute)
            for attribute, part in sorted(state_of(value).items())
        }
        return {"object": [name, state]}


class Decoder:
    """Undoes :class:`Encoder`; ``found`` returns a registered class or function, or raises."""

    def __init__(self, arrays: Mapping[str, np.ndarray], found: Callable[[str], Any]) -> None:
        self.unused = set(arrays)
        self._arrays = arrays
        self._found = found
        self._seen: list[Any] = []
        self._sizes: list[int] = []  # parts of each
        self._parts = 0  # so far, shared ones counted each time
        self._own = 0  # those that the file writes out

    def _key(self, value: Any) -> Any:
        """An object that will be hashed."""
        n_parts = self._parts
        out = self.decode(value)
        if self._parts - n_parts > MAX_KEY_PARTS:
            raise ValueError("a key holds the same parts again and again")
        return out

    def _count(self, parts: int) -> None:
        self._parts += parts
        self._own += 1
        if self._parts > max(100 * MAX_KEY_PARTS, 1000 * self._own):
            raise ValueError("it holds the same parts again and again")

    def decode(self, value: Any) -> Any:
        """The object that a JSON value stands for."""
        if type(value) in _JSON_TYPES:
            self._count(1)
            return value
        pair: Any = ("list", value) if type(value) is list else None
        if pair is None:
            (pair,) = value.items()
        tag, body = pair
        if tag in _AS_TEXT:
            return _AS_TEXT[tag][2](body)
        if tag == "scalar":
            kind, text = _simple(body[0]), bytes.fromhex(body[1])
            return np.frombuffer(text, kind)[0] if kind.itemsize else kind.type()
        if tag == "scalar type":
            return _simple(body).type
        if tag == "same":
            self._count(self._sizes[_index(body)])
            return self._seen[body]
        number, n_parts = len(self._seen), self._parts
        self._seen.append(None)
        self._sizes.append(1)
        self._count(1)
        self._seen[number] = out = self._compound(tag, body)
        self._sizes[number] = self._parts - n_parts
        return out

    def _compound(self, tag: str, body: Any) -> Any:
        if tag in ("list", "tuple", "set", "frozenset"):
            kinds = {"list": list, "tuple": tuple, "set": set, "frozenset": frozenset}
            return kinds[tag](map(self._key if "set" in tag else self.decode, body))
        if tag == "dict":
            return {self._key(k): self.decode(v) for k, v in body}
        if tag in ("array", "objects"):
            return self._array({tag: body})
        if tag == "sparse":
            name, shape, parts = body
            out = _SPARSE[name](tuple(map(self._array, parts)), shape=tuple(shape))
            out.check_format(full_check=True)
            return out
        return self._object(tag, body)

    def _array(self, value: dict[str, Any]) -> np.ndarray:
        if "array" in value:
            self.unused.discard(value["array"])
            return self._arrays[value["array"]]
        shape, cells = value["objects"]
        out = np.empty(len(cells), dtype=object)
        for i, cell in enumerate(cells):
            out[i] = self.decode(cell)
        return out.reshape([_index(n) for n in shape])

    def _object(self, tag: str, body: Any) -> Any:
        if tag == "RandomState":
            state = self.decode(body)
            out = np.random.RandomState(_BITS[state["bit_generator"]]())
            out.set_state(state)
            return out
        if tag == "Generator":
            state = self.decode(body)
            bits = _BITS[state["bit_generator"]]()
            bits.state = state
            return np.random.Generator(bits)
        if tag == "partial":
            function, args, keywords = map(self.decode, body)
            return functools.partial(function, *args, **keywords)
        if tag == "Booster":
            text, best = self.decode(body)
            booster = require("lightgbm", "boost").Booster(model_str=text)
            booster.best_iteration = best
            return booster
        if tag == "function":
            return self._found(body)
        if tag != "object":
            raise ValueError(f"expected a kind of object, got {tag!r}")
        name, state = body
        out = restored(self._found(name), {k: self.decode(v) for k, v in state.items()})
        check = getattr(type(out), "_check_loaded", None)
        if check is not None:  # of classes whose arrays must fit together
            check(out)
        return out


def _is_instance(value: Any) -> bool:
    """Tell an object from a class or a function."""
    return not isinstance(value, type) and not hasattr(value, "__qualname__")


def _refusal(value: Any) -> str:
    if not _is_instance(value):
        name = getattr(value, "__qualname__", value)
        return f"{name} is code of your own, and files hold none; use one of tabweave's by name"
    kind = type(value)
    return (
        f"expected a class that files hold, got {kind.__module__}.{kind.__qualname__}; "
        "remove it, or save the parts"
    )


def _simple(text: str) -> np.dtype:
    dtype = np.dtype(text)
    if dtype.hasobject or dtype.kind == "V":
        raise ValueError(f"expected the type of a number or text, got {dtype}")
    return dtype


def _index(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(f"expected an index, got {value!r}")
    return value


# -- Objects as a state of named parts, and back

# Attributes that are made from the others: search trees, compiled and closed.
_REBUILT = {("sklearn.neighbors._kd_tree", "_tree"), ("sklearn.neighbors._ball_tree", "_tree")}


def state_of(value: Any) -> dict[str, Any]:
    """What makes up an object: the fields of a record, else its attributes."""
    if dataclasses.is_dataclass(value):
        return {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    if hasattr(value, "_asdict"):
        return value._asdict()
    state = getattr(type(value), "_tabweave_state", None)
    if state is not None:  # of classes that leave out what they derive
        return state(value)
    return {k: v for k, v in dict(vars(value)).items() if (type(v).__module__, k) not in _REBUILT}


def restored(cls: Any, state: dict[str, Any]) -> Any:
    """An object of a class with this state; a state it cannot have is an error."""
    for name in state:
        if not name.isidentifier() or name.startswith("__") or callable(getattr(cls, name, None)):
            raise ValueError(f"{cls.__name__} has no attribute {name!r} to be set")
    if dataclasses.is_dataclass(cls):
        return _restored_data(cls, state)
    if issubclass(cls, tuple | str):
        return cls(**state)
    from sklearn.base import BaseEstimator  # counts need no scikit-learn

    if issubclass(cls, BaseEstimator):
        state = _without_cache(cls, state)
        parameters = set(cls._get_param_names())
        _check_parameters(cls, state, parameters)
        out = cls(**{name: value for name, value in state.items() if name in parameters})
        vars(out).update((k, v) for k, v in state.items() if k not in parameters)
        if "_fit_method" in state:
            _rebuild_tree(out)
        return out
    out = cls.__new__(cls)
    vars(out).update(state)
    return out


def _without_cache(cls: Any, state: dict[str, Any]) -> dict[str, Any]:
    """A state without the folder of a cache: fitting would read pickles from there."""
    if state.get("memory") is None:
        return state
    warn_caller(
        f"{cls.__name__} was saved with memory={state['memory']!r}, which is dropped: what a cache "
        "holds is run when it is read; set it again if the folder is yours"
    )
    return state | {"memory": None}


def _check_parameters(cls: Any, state: dict[str, Any], parameters: set[str]) -> None:
    """Raise for a parameter that an estimator of ours does not have."""
    for name, value in state.items() if cls.__module__.startswith("tabweave.") else ():
        if name not in parameters and not name.startswith("_") and not name.endswith("_"):
            raise ValueError(f"{cls.__name__} has no parameter {name!r}, got {name}={value!r}")


def _rebuild_tree(model: Any) -> None:
    """Give a nearest-neighbour model of scikit-learn its search tree again."""
    from sklearn.neighbors import BallTree, KDTree

    tree = {"kd_tree": KDTree, "ball_tree": BallTree}.get(model._fit_method)
    if tree is not None:
        options = model.effective_metric_params_
        rows, size = model._fit_X, model.leaf_size
        model._tree = tree(rows, size, metric=model.effective_metric_, **options)


def _restored_data(cls: Any, state: dict[str, Any]) -> Any:
    out = cls.__new__(cls)
    for field in dataclasses.fields(cls):
        if field.name in state:
            value = state.pop(field.name)
        elif field.default is not dataclasses.MISSING:
            value = field.default
        elif field.default_factory is not dataclasses.MISSING:
            value = field.default_factory()
        else:
            raise ValueError(f"{cls.__name__} lacks {field.name!r}")
        object.__setattr__(out, field.name, value)
    if state:
        raise ValueError(f"{cls.__name__} has no field {next(iter(state))!r}")
    if hasattr(out, "__post_init__"):
        copy.copy(out).__post_init__()  # what it refuses is refused here; what is shared stays so
    return out


# -- the estimator --------------------------------------------------------------------------------

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

    def save(self, path: str | PathLike[str], *, compress: bool = True) -> None:
        """Write to one file, whole or not at all; :func:`tabweave.load` gives it back.

        Parameters
        ----------
        path : str or path
            The file; one that is there is replaced.
        compress : bool, default=True
            Whether arrays are packed. If not, the file is larger, written and read sooner, and a
            :class:`~tabweave.SimilarityIndex` can leave its rows there.
        """
        save(self, path, compress=compress)


class CacheNotSaved:
    """Mixin: ``_cache`` can be computed again, so neither files nor pickles hold it."""

    def _tabweave_state(self) -> dict[str, Any]:
        return {name: value for name, value in dict(vars(self)).items() if name != "_cache"}

    def __getstate__(self) -> Any:
        state: Any = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_cache"}


def save(value: Any, path: str | PathLike[str], *, compress: bool = True) -> None:
    """Write an estimator, or any other object of tabweave, to one file.

    The file holds parameters and what was learned as JSON and plain arrays, with a hash over all
    of it; no pickle. It appears whole or not at all, and equal models give equal files.

    Parameters
    ----------
    value : estimator, Counts, Schema, Table or ValueTables
        What to write; an estimator may be fitted or not.
    path : str or path
        The file; one that is there is replaced.
    compress : bool, default=True
        Whether arrays are packed; if not, large ones can be mapped.

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
    write(path, header, encoder.arrays, compress=compress)


def load(path: str | PathLike[str], *, mmap: bool = False) -> Any:
    """Read what ``save`` wrote: an estimator, or :class:`~tabweave.Counts`.

    The hash of the content, the class, its parameters and the shapes of what was learned are
    checked; a file that is damaged, truncated or not from tabweave raises an error that names it.

    Parameters
    ----------
    path : str or path
        The file.
    mmap : bool, default=False
        Whether arrays of a megabyte and more stay in the file, which must have been written with
        ``compress=False``: they are read where they are needed. The hash is checked as ever.

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
    header, arrays = read(path, mmap=mmap)
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
