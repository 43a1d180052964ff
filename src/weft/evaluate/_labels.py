"""Labels of any type in, small integers out; every score starts here.

Comes in: one label per object (strings, numbers, mixed objects; lists, arrays or columns of a
frame). Goes out: integer codes and the label each code stands for.
"""

from typing import Any

import numpy as np


def encode(labels: Any, name: str) -> tuple[list, np.ndarray]:
    """Give each label a code; return the label of each code and the code of each object."""
    # A list is read as objects: NumPy would turn [1, "1"] into the same string twice.
    array = np.asarray(labels) if hasattr(labels, "__array__") else _as_objects(labels)
    if array.ndim != 1:
        raise ValueError(
            f"{name} must hold one label per object (1 dimension), it has {array.ndim}; "
            "pass a single column, e.g. with .ravel()"
        )
    if array.size == 0:
        raise ValueError(f"{name} is empty; pass at least one label")
    if array.dtype.kind in "OT":
        return _encode_objects(array, name)
    missing = np.flatnonzero(array != array)  # NaN and NaT differ from themselves
    if missing.size:
        raise ValueError(_missing_message(name, missing[0], array[missing[0]]))
    uniques, codes = np.unique(array, return_inverse=True)
    return uniques.tolist(), codes


def encode_pair(first: Any, second: Any, names: tuple[str, str]) -> tuple:
    """Encode two labelings of the same objects: (values, codes, values, codes)."""
    first_values, first_codes = encode(first, names[0])
    second_values, second_codes = encode(second, names[1])
    if first_codes.size != second_codes.size:
        raise ValueError(
            f"{names[0]} has {first_codes.size} labels and {names[1]} has {second_codes.size}; "
            "both must label the same objects in the same order"
        )
    return first_values, first_codes, second_values, second_codes


def recode(values: list, known: list, names: tuple[str, str]) -> np.ndarray:
    """Code of each of ``values`` in the vocabulary ``known``, -1 for a label not in it."""
    text, known_text = _count_text(values), _count_text(known)
    if (text == 0 and known_text == len(known)) or (text == len(values) and known_text == 0):
        raise ValueError(
            f"{names[0]} holds labels such as {values[0]!r} and {names[1]} such as {known[0]!r}; "
            "text never equals a number: convert one of them, e.g. with .astype(str)"
        )
    position = {value: code for code, value in enumerate(known)}
    return np.array([position.get(value, -1) for value in values], dtype=np.intp)


def contingency(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Count the objects of every pair of codes: entry (i, j) has code i first and j second."""
    shape = (int(first.max()) + 1, int(second.max()) + 1)
    return np.bincount(first * shape[1] + second, minlength=shape[0] * shape[1]).reshape(shape)


def _as_objects(labels: Any) -> np.ndarray:
    # Filled by hand, because np.array would unpack tuples into a second dimension.
    items = list(labels)
    if items and all(isinstance(item, list) for item in items):
        raise ValueError("labels are nested lists; pass one label per object")
    array = np.empty(len(items), dtype=object)
    for i, item in enumerate(items):
        array[i] = item
    return array


def _encode_objects(array: np.ndarray, name: str) -> tuple[list, np.ndarray]:
    # A dictionary instead of sorting: objects of mixed types have no order.
    position: dict[Any, int] = {}
    codes = np.empty(array.size, dtype=np.intp)
    for i, value in enumerate(array.tolist()):
        if _is_missing(value):
            raise ValueError(_missing_message(name, i, value))
        codes[i] = position.setdefault(value, len(position))
    return list(position), codes


def _is_missing(value: Any) -> bool:
    if value is None:
        return True
    try:
        return bool(value != value)
    except TypeError:  # pandas.NA refuses to be true or false
        return True


def _missing_message(name: str, row: int, value: Any) -> str:
    return (
        f"{name} has a missing label ({value!r}) at position {row}; drop such objects or give "
        "them a label of their own"
    )


def _count_text(values: list) -> int:
    return sum(isinstance(value, str) for value in values)
