"""Files: a JSON header and plain arrays in one archive. No pickle, no half-written file."""

from __future__ import annotations

import json
import os
import tempfile
import zipfile
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

VERSION = 1


def write(
    path: str | PathLike[str], kind: str, header: dict[str, Any], arrays: dict[str, np.ndarray]
) -> None:
    """Write to a temporary name beside the target, then rename: readers see all or nothing."""
    path = Path(path)
    text = json.dumps({"weft": kind, "version": VERSION, **header})
    handle, temporary = tempfile.mkstemp(dir=path.parent or ".", prefix=path.name, suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            np.savez_compressed(file, header=np.frombuffer(text.encode(), np.uint8), **arrays)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def read(path: str | PathLike[str], kind: str) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Read what :func:`write` wrote; refuse anything else by name."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        header = json.loads(arrays.pop("header").tobytes())
        found, version = header.pop("weft"), header.pop("version")
    except (zipfile.BadZipFile, ValueError, KeyError, EOFError, AttributeError, OSError) as error:
        if isinstance(error, OSError) and not Path(path).is_file():
            raise
        raise ValueError(f"{path} is damaged or was not written by weft ({error})") from error
    if found != kind:
        raise ValueError(f"{path} holds {found}, not {kind}")
    if version > VERSION:
        raise ValueError(
            f"{path} has format {version}; this weft reads up to {VERSION}: upgrade it"
        )
    return header, arrays
