"""Cells: every measured figure goes to disk as it is known, so that a long run can go on.

What a run adds is in a cache of this machine; :meth:`Cells.publish` writes all that is known beside
the reports, where every checkout finds it again.
"""

from __future__ import annotations

import gzip
import json
import signal
import subprocess
import time
import warnings
from collections.abc import Callable, Sequence
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any

CACHE = Path(__file__).parent / ".cache"
PUBLISHED = Path(__file__).parent / "reports"
# An arena's processes have one thread each.
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
Key = tuple[str, ...]


@cache
def _version() -> str:
    """Return the commit that is checked out, or nothing outside a checkout."""
    command = ["git", "describe", "--always", "--dirty"]
    done = subprocess.run(command, cwd=CACHE.parent, capture_output=True, text=True)
    return done.stdout.strip()


class Cells:
    """A dictionary of (protocol, data set, method) to scores, kept in one JSON-lines file.

    Each line says which version of the code it was measured with.
    """

    def __init__(self, name: str) -> None:
        CACHE.mkdir(exist_ok=True)
        self.path = CACHE / f"{name}.jsonl"
        self.published = PUBLISHED / f"{name}-cells.jsonl.gz"
        self.known: dict[tuple[str, ...], dict[str, Any]] = {}
        self._versions: dict[tuple[str, ...], str] = {}
        if self.published.exists():
            self._read(gzip.decompress(self.published.read_bytes()).decode("utf-8"))
        if self.path.exists():
            self._read(self.path.read_text(encoding="utf-8"))

    def _read(self, text: str) -> None:
        for line in text.splitlines():
            if line.endswith("}"):  # a line cut off by a kill is measured again
                cell = json.loads(line)
                key = tuple(cell["key"])
                self.known[key], self._versions[key] = cell["scores"], cell.get("version", "")

    def publish(self) -> None:
        """Write all that is known beside the reports; the same cells give the same bytes."""
        lines = [
            json.dumps({"key": key, "scores": _rounded(scores), "version": self._versions[key]})
            for key, scores in sorted(self.known.items())
        ]
        text = "\n".join(lines) + "\n"
        self.published.write_bytes(gzip.compress(text.encode("utf-8"), mtime=0))

    def get(self, key: tuple[str, ...], measure: Callable[[], dict[str, float]]) -> dict[str, Any]:
        """Return a cell, measuring it if it is not known."""
        if key not in self.known:
            start = time.perf_counter()
            try:
                scores: dict[str, Any] = dict(measure())
            except Exception as error:  # a method that fails is a result, too
                scores = {"error": f"{type(error).__name__}: {error}"[:200]}
            scores["seconds"] = round(time.perf_counter() - start, 3)
            with self.path.open("a", encoding="utf-8") as file:
                cell = {"key": key, "scores": scores, "version": _version()}
                file.write(json.dumps(cell) + "\n")
            self.known[key], self._versions[key] = scores, _version()
        return self.known[key]


def _rounded(scores: dict[str, Any], digits: int = 4) -> dict[str, Any]:
    return {k: round(v, digits) if isinstance(v, float) else v for k, v in scores.items()}


# -- many cells by several processes ---------------------------------------------------------------


def measure_cells(
    name: str,
    planned: Sequence[Key],
    run: Callable[[Key], dict[str, float]],
    options: Any,
    limit: int,
) -> None:
    """Measure the cells that are not known; ``run`` gives the scores of a key, within the limit.

    ``options`` has the number of ``workers`` and whether to measure what is known ``again``.
    """
    known = Cells(name).known
    todo = [key for key in planned if options.again or key not in known]
    start, arguments = time.perf_counter(), (name, todo, run, limit)
    with get_context("fork").Pool(options.workers, _open_cells, arguments) as pool:
        for i, (key, scores) in enumerate(pool.imap_unordered(_cell, todo), 1):
            left = (time.perf_counter() - start) / i * (len(todo) - i) / 60
            text = f"{' '.join(key)}: {_rounded(scores, 3)}"
            print(f"[{i}/{len(todo)}, {left:.0f} min left] {text}", flush=True)


_WORK: dict[str, Any] = {}  # of one process: its cells, how a key is measured, seconds it may take


def _open_cells(
    name: str, todo: Sequence[Key], run: Callable[[Key], dict[str, float]], limit: int
) -> None:
    cells = Cells(name)
    for key in todo:
        cells.known.pop(key, None)
    _WORK.update(cells=cells, run=run, limit=limit)
    warnings.simplefilter("ignore")  # peers warn a lot; errors are recorded
    signal.signal(signal.SIGALRM, _stop)


def _stop(*_: Any) -> Any:
    raise TimeoutError(f"took longer than {_WORK['limit']} s")


def _cell(key: Key) -> tuple[Key, dict[str, Any]]:
    signal.alarm(_WORK["limit"])
    try:
        return key, _WORK["cells"].get(key, lambda: _WORK["run"](key))
    except KeyboardInterrupt:  # CatBoost turns any signal into this one
        return key, _WORK["cells"].get(key, _stop)
    finally:
        signal.alarm(0)
