"""Files: a JSON header and plain arrays in one archive. No pickle, no half-written file."""

from __future__ import annotations

import json
import os
import struct
import uuid
import zipfile
import zlib
from dataclasses import asdict
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from weft import _labels
from weft.table import Column, Schema

VERSION = 1
_DAMAGE = (
    *(zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError, NotImplementedError),
    *(ValueError, TypeError, LookupError, AttributeError),
)


def write(
    path: str | PathLike[str], kind: str, header: dict[str, Any], arrays: dict[str, np.ndarray]
) -> None:
    """Write to a temporary name beside the target, then rename: readers see all or nothing."""
    path = Path(path)
    text = json.dumps({"weft": kind, "version": VERSION, **header})
    temporary = path.with_name(f"{path.name}.{uuid.uuid4().hex}.part")
    try:
        with open(temporary, "xb") as file:  # with the permissions of any new file
            np.savez_compressed(file, header=np.frombuffer(text.encode(), np.uint8), **arrays)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def read(path: str | PathLike[str], kind: str) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Read what :func:`write` wrote; refuse anything else by name."""
    try:
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        header = json.loads(arrays.pop("header").tobytes())
        found, version = header.pop("weft"), int(header.pop("version"))
    except _DAMAGE as error:
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


def schema_to_json(schema: Schema) -> dict[str, Any]:
    """Return a schema as JSON values."""
    out = asdict(schema)
    for column in out["columns"]:
        if column["levels"] is not None:
            column["levels"] = [_labels.to_json(v) for v in column["levels"]]
    return out


def schema_from_json(data: dict[str, Any]) -> Schema:
    """Undo :func:`schema_to_json`."""
    columns = []
    for column in data.pop("columns"):
        levels = column.pop("levels")
        decoded = None if levels is None else tuple(map(_labels.from_json, levels))
        columns.append(Column(**column, levels=decoded))
    return Schema(tuple(columns), **data)
