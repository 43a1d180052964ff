"""What goldens are made from: small tables, and ways to name and compare what comes out.

Tables come from the package's own generators, with fixed seeds. Only public names are used; what
is no name of the package or of a room is found by its own name, wherever it is kept.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from pkgutil import walk_packages
from types import ModuleType
from typing import Any

import numpy as np
from scipy import sparse
from scipy.spatial.distance import cdist

Rows = dict[str, Any]
N = 160  # rows of the tables


# -- as published -------------------------------------------------------------------------------


def published(tw: Any, name: str, *args: Any, **parameters: Any) -> Any:
    """Return an estimator as published."""
    return getattr(tw.papers, name)(*args, **parameters)


# -- finding by name ----------------------------------------------------------------------------


@cache
def modules(tw: ModuleType) -> dict[str, ModuleType | Exception]:
    """Return the package and all modules in it by name, or why one does not import."""
    out: dict[str, ModuleType | Exception] = {tw.__name__: tw}
    for info in walk_packages(tw.__path__, f"{tw.__name__}.", onerror=lambda name: None):
        if not info.name.endswith("__main__"):
            try:
                out[info.name] = import_module(info.name)
            except Exception as error:  # said by whoever asks for all modules
                out[info.name] = error
    return out


def definitions(tw: ModuleType) -> Iterator[tuple[str, ModuleType, Any]]:
    """Go through everything that the modules hold: its name, where it is, and what it is."""
    for module in modules(tw).values():
        if isinstance(module, ModuleType):
            yield from ((name, module, value) for name, value in [*vars(module).items()])


def found(tw: Any, name: str) -> Any:
    """Return a class or function by its name, from the module that defines it."""
    if name in tw.__all__:
        return getattr(tw, name)
    for own, module, value in definitions(tw):
        if own == name and getattr(value, "__module__", None) == module.__name__:
            return value
    raise LookupError(f"expected {name} somewhere in {tw.__name__}, got no such class or function")


# -- data ---------------------------------------------------------------------------------------


@cache
def data(tw: Any) -> Any:
    """Draw five coupled columns of unlike sizes, with gaps, and classes."""
    return tw.datasets.make_coupled(
        N, 5, 4, 3, coupling=0.7, heterogeneity=0.6, missing=0.02, random_state=7
    )


def table(tw: Any) -> Rows:
    return dict(data(tw).columns)


def classes(tw: Any) -> np.ndarray:
    return data(tw).y


def part(rows: Rows, start: int, stop: int) -> Rows:
    return {name: cells[start:stop] for name, cells in rows.items()}


def asked(tw: Any) -> Rows:
    """Return rows to ask about: some of the table, one without values, one of values never seen."""
    return {name: [*cells[:9], None, "never seen"] for name, cells in table(tw).items()}


def windows(tw: Any) -> list[Rows]:
    return [part(table(tw), start, start + 40) for start in range(0, N, 40)]


def streamed(tw: Any, model: Any) -> Any:
    """Let a model see the first three windows, one by one."""
    for window in windows(tw)[:3]:
        model.partial_fit(window)
    return model


@cache
def numbers(tw: Any) -> np.ndarray:
    """Draw rows of 21 numbers, in three classes."""
    return tw.datasets.waveform(N, random_state=3).X


def number_classes(tw: Any) -> np.ndarray:
    return tw.datasets.waveform(N, random_state=3).y


def mixed(tw: Any) -> Rows:
    """Return a table of categories, sets, grades and numbers, with gaps."""
    rows = table(tw)
    pairs = zip(rows["c2"], rows["c3"], strict=True)
    tags = np.empty(N, dtype=object)
    tags[:] = [[f"a{a}", f"b{b}"] if a != b else [f"a{a}"] for a, b in pairs]
    age = np.where(np.arange(N) % 13, numbers(tw)[:, 6], np.nan)
    size = np.exp(numbers(tw)[:, 10])
    return {"job": rows["c0"], "tags": tags, "grade": rows["c1"], "age": age, "size": size}


def mixed_schema(tw: Any) -> dict[str, Any]:
    levels = tuple(f"v{i}" for i in range(10))
    grade = tw.Column("grade", "ordinal", levels=levels)
    return {"job": "nominal", "tags": "set", "grade": grade}


def mixed_asked(tw: Any) -> Rows:
    return part(mixed(tw), 0, 14)


def plain_schema(tw: Any) -> dict[str, Any]:
    return {name: kind for name, kind in mixed_schema(tw).items() if name != "tags"}


def without_sets(rows: Rows) -> Rows:
    return {name: cells for name, cells in rows.items() if name != "tags"}


@cache
def sources(tw: Any) -> Any:
    """Return three incomplete tables and a graph about the same ids."""
    ids, x, y = np.arange(N), numbers(tw), number_classes(tw)
    tables = {
        "left": (ids[:140], x[:140, :7]),
        "right": (ids[30:], x[30:, 7:14]),
        "words": {"id": ids[10:], "c0": table(tw)["c0"][10:], "x": x[10:, 20]},
    }
    steps = [(i, j) for i in range(N) for j in (i + 1, i + 7, i + 13) if j < N and y[i] == y[j]]
    graph = {"from": [i for i, _ in steps], "to": [j for _, j in steps]}
    return tw.Sources(tables, {"near": graph})


def some_classes(tw: Any) -> dict[int, str]:
    return dict(enumerate(number_classes(tw)[:60].tolist()))


def some_numbers(tw: Any) -> dict[int, float]:
    return dict(enumerate(numbers(tw)[:60, 10].tolist()))


def signals(tw: Any) -> np.ndarray:
    return numbers(tw)[:100] - numbers(tw)[:100].mean(axis=0)


def atoms(tw: Any) -> np.ndarray:
    chosen = signals(tw)[::9]
    return chosen / np.linalg.norm(chosen, axis=1, keepdims=True)


# -- forms --------------------------------------------------------------------------------------


def flat(*parts: Any) -> np.ndarray:
    """Return numbers, arrays, mappings and sequences of them as one row of floats."""
    return np.concatenate([np.ravel(as_numbers(p)) for p in parts] or [np.zeros(0)])


def as_numbers(value: Any) -> np.ndarray:
    """Return anything as floats: text and other objects by a checksum of each."""
    if isinstance(value, Mapping):
        return flat(*value.values())
    if sparse.issparse(value):
        value = value.toarray()
    if isinstance(value, list | tuple) and not all(isinstance(v, int | float | str) for v in value):
        return flat(*value)
    array = np.asarray(value)
    if array.dtype.kind in "biuf":
        return array.astype(np.float64)
    return np.array([checksum([cell]) for cell in array.ravel().tolist()]).reshape(array.shape)


def checksum(values: Any) -> float:
    """Return a number from 0 to 1 that changes with any of the values."""
    return zlib.crc32("\n".join(map(repr, values)).encode()) / 2**32


WITHOUT_KERNEL = ("DistanceHierarchy",)  # had none when goldens were recorded


def geometry(model: Any, rows: Rows, *, has_kernel: bool = True) -> np.ndarray:
    """Return distances and inner products of rows, and each column's share in one distance."""
    first, other = ({name: cells[i] for name, cells in rows.items()} for i in (0, 5))
    has_kernel = has_kernel and type(model).__name__ not in WITHOUT_KERNEL
    kernel = model.pairwise_kernel(rows) if has_kernel else []
    return flat(model.pairwise_distances(rows), kernel, model.explain(first, other))


def between(vectors: Any) -> np.ndarray:
    """Return the distances of vectors, which no rotation changes."""
    vectors = np.asarray(vectors, dtype=np.float64)
    return cdist(vectors, vectors)


def counted(counts: Any) -> np.ndarray:
    """Return everything that counts hold, but for moments."""
    pairs = as_numbers(counts.pairs)
    by_class = [] if counts.class_pairs is None else [counts.class_pairs, counts.class_n]
    return flat(counts.n, counts.sizes, [checksum(own) for own in counts.labels], pairs, *by_class)
