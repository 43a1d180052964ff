"""Cells: every measured figure goes to disk as it is known, so that a long run can go on."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

CACHE = Path(__file__).parent / ".cache"


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
        self.known: dict[tuple[str, ...], dict[str, Any]] = {}
        if self.path.exists():
            for line in self.path.read_text(encoding="utf-8").splitlines():
                if line.endswith("}"):  # a line cut off by a kill is measured again
                    cell = json.loads(line)
                    self.known[tuple(cell["key"])] = cell["scores"]

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
            self.known[key] = scores
        return self.known[key]
