"""Cells: every measured figure goes to disk as it is known, so that a long run can go on.

What a run adds is in a cache of this machine; :meth:`Cells.publish` writes all that is known beside
the reports, where every checkout finds it again.
"""

from __future__ import annotations

import gzip
import json
import subprocess
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

CACHE = Path(__file__).parent / ".cache"
PUBLISHED = Path(__file__).parent / "reports"
_DIGITS = 4  # of published scores


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


def _rounded(scores: dict[str, Any]) -> dict[str, Any]:
    return {k: round(v, _DIGITS) if isinstance(v, float) else v for k, v in scores.items()}
