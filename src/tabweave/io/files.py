"""Files: written whole or not at all, unpacked, in UTF-8; the names of columns in CSV.

Sizes of compressed files are counted while reading: what an archive says of its members is not
believed. All that unpacks works on paths, so that a process with limits can do it, too.
"""

from __future__ import annotations

import bz2
import codecs
import csv
import errno
import glob
import gzip
import lzma
import os
import pickle
import re
import shutil
import subprocess
import sys
import time
import uuid
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from os import PathLike
from pathlib import Path
from typing import IO, Any, NamedTuple

from tabweave._compat import require

fcntl: Any
try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

_DELIMITERS = (",", ";", "\t", "|")
_SEPARATOR = re.compile(r"(?i:sep)=(.)\s*").fullmatch  # the first line of some files of Excel
_SIGNATURES = {
    b"PAR1": "a Parquet file; let its name end in .parquet",
    b"ARROW1": "an Arrow file; let its name end in .arrow",
    b"\x1f\x8b": "a gzip file; let its name end in .gz",
    b"PK\x03\x04": "a zip file, as workbooks are; unpack it, or save the sheet as CSV",
    b"\x28\xb5\x2f\xfd": "a Zstandard file; unpack it",
    b"BZh": "a bzip2 file; unpack it",
    b"\xfd7zXZ": "an xz file; unpack it",
    b"SQLite format": "a SQLite database; write the table as CSV",
}
PACKED = (".gz", ".bz2", ".xz", ".zip", ".zst")
BLOCK_BYTES = 1 << 20  # What is read of a file at a time.
MAX_UNPACKED_BYTES = 1 << 36  # A packed file that the user has chosen may hold so much.
MAX_BOOK_BYTES = 1 << 29  # A workbook may unpack to so much.
_DAMAGE = (
    *(gzip.BadGzipFile, zipfile.BadZipFile, lzma.LZMAError, EOFError, zlib.error),
    RuntimeError,  # of zip files with a password, or of a method or version that Python lacks
)
_BYTE_ORDER_MARKS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}


@contextmanager
def replacing(path: str | PathLike[str]) -> Iterator[Path]:
    """Give a temporary file beside a file, which takes the file's name when the block ends well.

    Readers see the old file or the new one, never a part of it. What was written is on the disk
    before it is renamed; if the block fails, it is removed and the old file stays. A file that was
    there keeps its permissions; a link stays one, and what it leads to is replaced. What a killed
    process left is removed when the file is written again, a minute later or more.
    """
    path = Path(os.path.realpath(path))
    remove_leftovers(path, older_than=60)
    temporary = path.with_name(f"{path.name}.{uuid.uuid4().hex}.part")
    try:
        with open(temporary, "xb") as lock:
            if path.exists():
                shutil.copymode(path, temporary)
            hold(lock)
            yield temporary
            _flush(temporary)
        if path.exists():
            shutil.copymode(path, temporary)
        os.replace(temporary, path)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError) and _is_of(error, temporary):  # by the name the user knows
            raise OSError(error.errno, f"cannot write: {error.strerror}", str(path)) from None
        raise


def _flush(path: Path) -> None:
    """Have what was written to a file on the disk."""
    try:
        with open(path, "rb+") as file:
            os.fsync(file.fileno())
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None


def _is_of(error: OSError, temporary: Path) -> bool:
    """Whether an error is of a file being written; that no space is left names no file."""
    no_space = error.errno in (errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", None))
    return error.filename == str(temporary) or (no_space and error.filename is None)


def remove_leftovers(path: str | PathLike[str], older_than: float = 0.0) -> None:
    """Remove the temporary files of a target whose writer was killed.

    No other may be writing to it, or ``older_than`` says for how many seconds a file must have been
    left alone; it then goes if no process holds it.
    """
    path = Path(path)
    for part in path.parent.glob(f"{glob.escape(path.name)}.*.part"):
        with suppress(OSError):  # another may have removed it
            if not older_than or (
                time.time() - part.stat().st_mtime > older_than and is_abandoned(part)
            ):
                part.unlink()


def hold(file: IO[bytes]) -> None:
    """Hold a file as long as it is open: until it is closed, or its process ends in any way."""
    if fcntl is not None:
        with suppress(OSError):  # a file system without locks: what is left is not known to be
            fcntl.flock(file, fcntl.LOCK_EX)


def is_abandoned(path: Path) -> bool:
    """Whether no process holds a file; on Windows, which removes none that is open, it is gone."""
    try:
        if fcntl is None:
            path.unlink()
            return True
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    except OSError:  # it is held, or not ours
        return False


class CsvHeader(NamedTuple):
    """The names of the columns of a CSV file, what separates them, how many lines come before."""

    names: list[str]
    delimiter: str
    lines_before: int


def csv_header(
    path: Path, delimiter: str | None = None, *, longest: int | None = None
) -> CsvHeader:
    """The names of the columns of a CSV file, and how they stand in it.

    Parameters
    ----------
    path : Path
        The file, in UTF-8; compressed if its name ends in ``.gz``.
    delimiter : str, optional
        What separates the names; by default the one of ``, ; | TAB`` that is there most often, or
        that a line before them says, as Excel has it: ``sep=;``.
    longest : int, optional
        Refuse a first line of more characters.
    """
    with _opened_text(path) as file:
        line = _record(file, path, longest)
        separator = _SEPARATOR(line)
        if separator:
            line, delimiter = _record(file, path, longest), delimiter or separator[1]
    if not line.strip():
        raise ValueError(
            f"{path}: expected the names of columns in the first line, got an empty line"
        )
    if line.startswith(('{"', '[{"')):
        raise ValueError(f"{path}: expected the names of columns, got JSON; name the file .jsonl")
    if delimiter is None:
        bare = "".join(line.split('"')[::2])  # what stands in quotes separates nothing
        delimiter = max(_DELIMITERS, key=bare.count)
    try:
        names = next(csv.reader(line.splitlines(keepends=True), delimiter=delimiter))
    except csv.Error as error:
        raise ValueError(f"{path}: the first line cannot be read: {error}") from None
    return CsvHeader(names, delimiter, int(separator is not None))


def other_format(path: Path) -> str | None:
    """Which format, that is no text, a file begins as, and the remedy; None for no other."""
    with path.open("rb") as file:
        start = file.read(16)
    return next((form for begins, form in _SIGNATURES.items() if start.startswith(begins)), None)


@contextmanager
def _opened_text(path: Path) -> Iterator[Any]:
    """Open a file of text, packed or not; raise, by its name, for what is no UTF-8 or no gzip."""
    opened: Any = gzip.open if path.suffix == ".gz" else open
    try:
        with opened(path, "rt", encoding="utf-8-sig", newline="") as file:
            yield file
    except UnicodeDecodeError as error:
        if form := other_format(path):
            raise ValueError(f"{path}: expected text in UTF-8, got {form}") from None
        with path.open("rb") as file:
            start = file.read(16)
        raise ValueError(
            f"{path}: expected UTF-8, got byte {error.object[error.start]:#04x}; {in_utf8(start)}"
        ) from None
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ValueError(f"{path}: expected a complete gzip file: {error}") from None


def in_utf8(start: bytes = b"") -> str:
    """How a file becomes UTF-8, by its first bytes; most that are not are from Windows."""
    written = "cp1252"
    if start[:2] in (b"\xff\xfe", b"\xfe\xff"):
        written = "utf-16"
    elif b"\0" in start[:2]:
        written = "utf-16be" if start[:1] == b"\0" else "utf-16le"
    return f"write the file as UTF-8, e.g. by iconv -f {written} -t utf-8"


def _record(file: Any, path: Path, longest: int | None) -> str:
    """The next line of a CSV file, with those that a name in quotes goes on in."""
    limit = -1 if longest is None else longest + 1
    line = file.readline(limit)
    while line.count('"') % 2 and (next_line := file.readline(limit)):
        line += next_line
        if longest is not None and len(line) > longest:
            break
    if longest is not None and len(line) > longest:
        raise ValueError(f"{path}: the first line is longer than {longest:,} characters")
    if "\0" in line:
        start = line[:2].encode()
        raise ValueError(f"{path}: expected text in UTF-8, got NUL characters; {in_utf8(start)}")
    return line.rstrip("\r\n")


# -- compressed files -----------------------------------------------------------------------------


def unpack(path: Path, target: Path, max_bytes: int = MAX_UNPACKED_BYTES) -> None:
    """Write what a compressed file holds to another; raise if that is more than ``max_bytes``."""
    with _errors_naming(path), _opened(path) as packed, target.open("wb") as out:
        for block in _blocks(packed, path, max_bytes):
            out.write(block)


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    """Open a compressed file; a zip must hold one file."""
    suffix = path.suffix.lower()
    if suffix == ".zip":
        with zipfile.ZipFile(path) as archive:
            names = [n for n in archive.namelist() if not n.endswith("/") and "__MACOSX" not in n]
            if len(names) != 1:
                listed = ", ".join(map(repr, sorted(names)[:3])) + ", ..." * (len(names) > 3)
                raise ValueError(
                    f"{path}: expected a zip file of one file, got {len(names)} ({listed}); unpack "
                    "it, and give the files"
                )
            with archive.open(names[0]) as file:
                yield file
        return
    if suffix == ".zst":
        with require("pyarrow", "frames").input_stream(str(path), compression="zstd") as file:
            yield file
        return
    opener: Any = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}[suffix]
    with opener(path, "rb") as file:
        yield file


def _blocks(packed: IO[bytes], path: Path, max_bytes: int) -> Iterator[bytes]:
    n_bytes = 0
    while block := packed.read(BLOCK_BYTES):
        n_bytes += len(block)
        if n_bytes > max_bytes:
            raise ValueError(
                f"{path}: expected at most {max_bytes / 2**20:,.0f} MB when unpacked, got more"
            )
        yield block


@contextmanager
def _errors_naming(path: Path) -> Iterator[None]:
    """Say which file is damaged."""
    try:
        yield
    except _DAMAGE as error:
        raise ValueError(f"{path}: expected a complete {path.suffix} file: {error}") from None
    except OSError as error:
        if error.filename is not None:
            raise
        raise ValueError(f"{path}: expected a complete {path.suffix} file: {error}") from None


def packed_name(path: Path) -> str:
    """The name of the file in a compressed one, as its own name or the archive says."""
    if path.suffix.lower() == ".zip" and not Path(path.stem).suffix:
        with _errors_naming(path), zipfile.ZipFile(path) as archive:
            names = [n for n in archive.namelist() if not n.endswith("/") and "__MACOSX" not in n]
        return Path(names[0]).name if len(names) == 1 else path.stem
    return path.stem


# -- text in other encodings ----------------------------------------------------------------------


def encoding_of(path: Path) -> str:
    """The encoding of a text: UTF-8 or UTF-16 if it is, else as Windows or Unix wrote it."""
    with path.open("rb") as file:
        head = file.read(4096)
    for mark, name in _BYTE_ORDER_MARKS.items():
        if head.startswith(mark):
            return name
    if min(head, default=9) < 9:  # signs that no text has: the reader says what it is
        return "utf-8"
    return next((name for name in ("utf-8", "cp1252") if _decodes(path, name)), "latin-1")


def _decodes(path: Path, encoding: str) -> bool:
    try:
        with path.open(encoding=encoding, newline="") as text:
            while text.read(BLOCK_BYTES):
                pass
    except UnicodeDecodeError:
        return False
    return True


def as_utf8(path: Path, target: Path, encoding: str) -> None:
    """Write a text in an encoding as UTF-8."""
    try:
        with path.open(encoding=encoding, newline="") as text:
            with target.open("w", encoding="utf-8", newline="") as out:
                shutil.copyfileobj(text, out, BLOCK_BYTES)
    except LookupError:
        raise ValueError(f"expected an encoding, such as cp1252, got {encoding!r}") from None
    except UnicodeError as error:
        raise ValueError(f"{path}: expected text in {encoding}, got {error}") from None


# -- in a child process ---------------------------------------------------------------------------

# What a child runs: it finds modules where its parent does, then does what it is asked.
_CHILD = (
    "import pickle, sys; sys.path[:] = pickle.load(sys.stdin.buffer); "
    "from tabweave.io.files import _answer_parent; _answer_parent()"
)


def in_child(
    path: Path, work: Callable[..., Any], *args: Any, max_bytes: int, max_seconds: float
) -> Any:
    """What ``work(path, *args)`` returns, from a process with limits of memory and time.

    A file that makes compiled code abort, or that needs too much, ends that process and is a
    ValueError here. Memory is limited on Linux only. A program that is no Python interpreter, such
    as a frozen one, does the work itself.
    """
    if not sys.executable or getattr(sys, "frozen", False):
        return work(path, *args)
    question = pickle.dumps(sys.path) + pickle.dumps((work, path, args, max_bytes))
    try:
        child = subprocess.run(  # noqa: S603  (Python itself)
            [sys.executable, "-P", "-c", _CHILD],
            input=question, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            timeout=max_seconds, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise ValueError(
            f"{path}: expected a file that is read within {max_seconds:.0f} seconds, got one that "
            "takes longer; save it as CSV or Parquet"
        ) from None
    if child.returncode:
        raise ValueError(
            f"{path}: expected a file that is read in {max_bytes / 2**20:,.0f} MB of memory, got "
            "one that ended the process that read it: it is damaged, or too large; save it as CSV "
            "or Parquet"
        )
    answer = pickle.loads(child.stdout)  # noqa: S301  (of a child of this process)
    if isinstance(answer, Exception):
        raise answer
    return answer


def _answer_parent() -> None:
    """Do in a child what its parent has asked for, and write what comes of it to the parent."""
    work, path, args, max_bytes = pickle.load(sys.stdin.buffer)  # noqa: S301  (of the parent)
    _limit_memory(max_bytes)
    try:
        answer = work(path, *args)
    except (ValueError, OSError) as error:
        answer = error
    except MemoryError:
        sys.exit(1)
    except BaseException as error:  # a panic of compiled code is no Exception
        answer = ValueError(f"{path}: expected a complete file: {error}")
    pickle.dump(answer, sys.stdout.buffer, pickle.HIGHEST_PROTOCOL)


def _limit_memory(max_bytes: int) -> None:
    """Let this process have so much memory, and write no image of it if it is ended for that."""
    try:
        import resource
    except ImportError:  # Windows has none
        return
    for kind, most in ((resource.RLIMIT_DATA, max_bytes), (resource.RLIMIT_CORE, 0)):
        hard = resource.getrlimit(kind)[1]
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(kind, (most, hard))


# -- workbooks ------------------------------------------------------------------------------------


def read_book(path: Path) -> dict[str, list[Any]]:
    """The columns of the first sheet of a workbook, named by its first row.

    Empty cells, and errors such as #N/A, are None; whole numbers are ints. The file is read in a
    child process: it may be packed a thousandfold, and a cell far down makes all above it.
    """
    require("python_calamine", "files")
    n_bytes = path.stat().st_size
    max_cells = 5_000_000 + n_bytes
    return in_child(
        path, _read_book, min(MAX_BOOK_BYTES, (1 << 27) + 32 * n_bytes), max_cells,
        max_bytes=(1 << 28) + 100 * max_cells, max_seconds=60 + n_bytes / 2**20,
    )  # fmt: skip


def _read_book(path: Path, max_bytes: int, max_cells: int) -> dict[str, list[Any]]:
    """The columns of a workbook that unpacks to so many bytes and cells."""
    calamine = require("python_calamine", "files")
    with _errors_naming(path):
        if zipfile.is_zipfile(path):
            _check_members(path, max_bytes, max_cells)
        try:
            book = calamine.load_workbook(str(path))
            sheet = book.get_sheet_by_index(0) if book.sheet_names else None
        except calamine.CalamineError as error:
            raise ValueError(f"{path}: expected a workbook, got another file: {error}") from error
    if sheet is None:
        raise ValueError(f"{path}: expected a workbook with a sheet, got none")
    rows = (row for row in sheet.iter_rows() if any(cell not in ("", None) for cell in row))
    header = next(rows, None)
    if header is None:
        raise ValueError(f"{path}: expected names of columns in the first row, got an empty sheet")
    names = [str(name).strip() or f"column{i}" for i, name in enumerate(header)]
    columns: list[list[Any]] = [[] for _ in _distinct(path, names)]
    for row in rows:
        for column, cell in zip(columns, row, strict=True):
            column.append(_cell(cell))
    return dict(zip(names, columns, strict=True))


def _check_members(path: Path, max_bytes: int, max_cells: int) -> None:
    """Raise for a workbook that unpacks to more: each member is read, as its directory may lie."""
    bytes_left, n_cells = max_bytes, 0
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            with archive.open(member) as file:
                for block in _blocks(file, path, bytes_left):
                    bytes_left -= len(block)
                    n_cells += block.count(b"<c") + block.count(b":c")
                    if n_cells > max_cells:
                        raise ValueError(
                            f"{path}: expected at most {max_cells:,} cells in a workbook of its "
                            "size, got more; save it as CSV or Parquet"
                        )


def _distinct(path: Path, names: list[str]) -> list[str]:
    for i, name in enumerate(names):
        if name in names[:i]:
            raise ValueError(
                f"{path}: columns {names.index(name)} and {i} are both named {name!r}; rename one"
            )
    return names


def _cell(cell: Any) -> Any:
    if isinstance(cell, float):
        return int(cell) if cell.is_integer() else cell
    if isinstance(cell, str):
        return None if cell == "" or cell.startswith("#") else sys.intern(cell)
    return cell
