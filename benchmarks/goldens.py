"""Numbers of all methods, before a change of the code and after it.

    PYTHONPATH=before/src python benchmarks/goldens.py record numbers.json
    python benchmarks/goldens.py check numbers.json

``record`` keeps what the goldens of ``_goldens`` give; ``check`` prints those that are off by more
than 1e-12 and fails if there are any. Record and check on one machine, with the same versions of
other packages: the last digits depend on both.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

# Sums over several threads differ in their last digits; to be said before NumPy is loaded.
os.environ["OMP_NUM_THREADS"] = "1"
os.environ["OPENBLAS_NUM_THREADS"] = "1"
os.environ["MKL_NUM_THREADS"] = "1"
os.environ["NUMBA_NUM_THREADS"] = "1"

import numpy as np

import tabweave
from _golden_data import as_numbers
from _goldens import GOLDENS

TOLERANCE = 1e-12
SMALL_SIZE = 64  # Numbers of an array that are kept one by one.
N_ENTRIES = 48  # Entries that are kept of a larger array.


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("action", choices=("record", "check"))
    parser.add_argument("path", type=Path, help="the file of numbers")
    parser.add_argument("--only", metavar="PATTERN", default="*", help="these goldens only")
    options = parser.parse_args()
    print(f"tabweave in {Path(tabweave.__file__).parent}", file=sys.stderr)
    goldens = {name: golden for name, golden in GOLDENS.items() if fnmatch(name, options.only)}
    numbers = {name: computed(golden) for name, golden in goldens.items()}
    if options.action == "record":
        lines = (f"{json.dumps(name)}: {json.dumps(value)}" for name, value in numbers.items())
        options.path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
        return
    before = json.loads(options.path.read_text(encoding="utf-8"))
    changed = {name: difference(before.get(name), value) for name, value in numbers.items()}
    off = {name: size for name, size in changed.items() if not size <= TOLERANCE}
    for name, size in off.items():
        note = numbers[name] if isinstance(numbers[name], str) else ""
        print(f"{name}: {size:.1e} {note}")
    print(f"{len(off)} of {len(numbers)} goldens are off")
    sys.exit(1 if off else 0)


def computed(golden: Any) -> Any:
    """Return the numbers of a golden, or the error it raises."""
    try:
        return packed(golden(tabweave))
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def packed(value: Any) -> Any:
    """Return a number, or an array as a record: all of it if small, else means and some entries.

    The third mean weighs entries by where they stand, so that exchanged ones are seen.
    """
    array = np.asarray(as_numbers(value))
    if not array.shape:
        return {"shape": [], "values": [float(array)]}
    numbers = array.ravel()
    out: dict[str, Any] = {"shape": list(array.shape)}
    if numbers.size <= SMALL_SIZE:
        return out | {"values": numbers.tolist()}
    weighted = numbers * np.cos(np.arange(numbers.size))
    chosen = np.linspace(0, numbers.size - 1, N_ENTRIES).astype(int)
    means = [math.fsum(x) / numbers.size for x in (numbers, numbers**2, weighted)]
    return out | {"means": means, "entries": numbers[chosen].tolist()}


def difference(before: Any, after: Any) -> float:
    """Return the largest ``|a - b| / max(1, |a|)``; infinite if the two are not of one form."""
    if not isinstance(before, dict) or not isinstance(after, dict):
        return 0.0 if before == after else math.inf
    if before.keys() != after.keys() or before["shape"] != after["shape"]:
        return math.inf
    return max(map(gap, numbers_of(before), numbers_of(after)), default=0.0)


def numbers_of(record: dict[str, Any]) -> Iterator[float]:
    """Yield the numbers of a record."""
    for name, values in record.items():
        if name != "shape":
            yield from values


def gap(a: float, b: float) -> float:
    """Return the relative difference of two numbers; of two that are no numbers, 0."""
    if a == b or (math.isnan(a) and math.isnan(b)):
        return 0.0
    size = abs(a - b) / max(1.0, abs(a))
    return math.inf if math.isnan(size) else size


if __name__ == "__main__":
    main()
