"""Atomic files: written under a temporary name beside the target, renamed when they are whole."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from glob import escape
from os import PathLike
from pathlib import Path


@contextmanager
def replacing(path: str | PathLike[str]) -> Iterator[Path]:
    """Give a temporary name beside a file, which takes the file's name when the block ends well.

    Readers see the old file or the new one, never a part of it. What was written is on the disk
    before it is renamed; if the block fails, it is removed and the old file stays.
    """
    path = Path(path)
    temporary = path.with_name(f"{path.name}.{uuid.uuid4().hex}.part")
    try:
        yield temporary
        _flush(temporary)
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def remove_leftovers(path: str | PathLike[str]) -> None:
    """Remove the temporary files of a target whose writer was killed; no other may be writing."""
    path = Path(path)
    for part in path.parent.glob(f"{escape(path.name)}.*.part"):
        part.unlink(missing_ok=True)


def _flush(path: Path) -> None:
    file = os.open(path, os.O_RDWR)
    try:
        os.fsync(file)
    finally:
        os.close(file)
