"""Which files may be opened: inside the start folder or dropped here, tables only, of sane size.

What readers do not take as it is becomes a copy that they do: unpacked, UTF-8, a sheet as CSV. A
file has a stamp that changes when it is written, so that nothing is answered from an older one.
"""

from __future__ import annotations

import codecs
import csv
import glob
import gzip
import re
import secrets
import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from tabweave._compat import require
from tabweave.io.files import csv_header

fcntl: Any
try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

KINDS = (".csv", ".tsv", ".parquet", ".json", ".jsonl", ".ndjson", ".xlsx")
ENCODINGS = ("utf-8", "cp1252", "utf-16", "cp1250", "cp1251", "mac-roman", "shift_jis", "gb18030",
             "big5", "euc-kr")  # fmt: skip
MOST_COLUMNS = 1_000  # what a report shows
MOST_BYTES = 500 * 2**20  # of an upload, and of what a compressed file unpacks to
MOST_CELLS = 200_000_000  # of a Parquet file, which may hold far more than its size tells
MOST_IN_ROW = 100_000  # values of a row on average: a cell may be a list
_PREFIX, _ALIVE = "tabweave-studio-", "alive"
_LONGEST = 16 * 2**20  # characters of a first line


class Refused(ValueError):
    """A file or a path that is not to be opened, with the reason."""


class TooLarge(Refused):
    """An upload above the limit."""

    def __init__(self, limit: int) -> None:
        super().__init__(
            f"uploads end at {size_of(limit)} here; put the file into the folder the studio was "
            "started in and open it by its path"
        )


class Changed(Refused):
    """A file that was written again since it was looked at."""

    def __init__(self, name: str) -> None:
        super().__init__(f"{name!r} was written again since; look at it anew")


@dataclass(frozen=True)
class Source:
    """A file that was let in, and what it is called on the page."""

    path: Path  # what is read: the file itself, or a copy that readers take
    name: str
    origin: Path  # the file as the user has it
    stamp: tuple[int, ...]  # of the origin, before it was read
    encoding: str | None = None  # of its text, as the user says; else as it looks

    @property
    def is_current(self) -> bool:
        """Whether the file is still the one that was let in."""
        return stamp_of(self.origin) == self.stamp

    def check_current(self) -> None:
        """Raise Changed if the file was written again."""
        if not self.is_current:
            raise Changed(self.name)


def stamp_of(path: Path) -> tuple[int, ...]:
    """Return what changes whenever a file is written or replaced; empty if it is gone."""
    try:
        found = path.stat()
    except OSError:
        return ()
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def size_of(n_bytes: int) -> str:
    """Return a number of bytes as people read it."""
    return f"{n_bytes / 2**20:,.0f} MB" if n_bytes >= 2**20 else f"{n_bytes:,} bytes"


def suffix_of(name: str) -> str:
    """Return the kind of a file, ``.gz`` set aside; refuse all but tables."""
    suffix = _suffix(name)
    if suffix not in KINDS:
        raise Refused(
            f"expected a table that ends in {', '.join(KINDS)}, or one of these followed by .gz, "
            f"got {name!r}"
        )
    return suffix


def _suffix(name: str) -> str:
    return Path(name.lower().removesuffix(".gz")).suffix


def inside(root: Path, path: str) -> Path:
    """Return a file of the start folder; links that lead out of it are followed and refused."""
    if "\x00" in path:
        raise Refused("expected a path without NUL characters")
    try:
        found = (root / path).resolve()
        there = found.is_file()
    except (OSError, RuntimeError):  # a name too long, a circle of links
        found, there = root, False
    if not found.is_relative_to(root):
        raise Refused(f"{path!r} lies outside the folder the studio was started in")
    if not there:
        raise Refused(f"file not found in the folder the studio was started in: {path!r}")
    suffix_of(found.name)
    return found


def listed(root: Path, most: int = 500) -> list[dict[str, Any]]:
    """Return the tables of the start folder and of the folders in it, with their sizes."""
    found: list[dict[str, Any]] = []
    for pattern in ("*", "*/*"):
        for path in sorted(root.glob(pattern)):
            own = path.relative_to(root)
            if _suffix(path.name) not in KINDS or any(p.startswith(".") for p in own.parts):
                continue
            if path.is_file() and path.resolve().is_relative_to(root):
                found.append({"path": str(own), "size": path.stat().st_size})
            if len(found) >= most:
                return found
    return found


@dataclass
class Holding:
    """A folder of temporary files that lasts as long as the process that holds it.

    Folders whose holder was killed are removed when the next one is made.
    """

    folder: Path
    _alive: Any

    @classmethod
    def begin(cls) -> Holding:
        """Make a folder, after those that nobody holds any more were swept away."""
        for old in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
            if _is_abandoned(old):
                shutil.rmtree(old, ignore_errors=True)
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
        alive = (folder / _ALIVE).open("wb")
        if fcntl is not None:
            fcntl.flock(alive, fcntl.LOCK_EX)
        return cls(folder, alive)

    def end(self) -> None:
        """Remove the folder."""
        self._alive.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def _is_abandoned(folder: Path) -> bool:
    """Tell whether the process that made a folder is gone: the system drops its hold on a file."""
    try:
        if fcntl is None:  # Windows does not remove a file that is open
            (folder / _ALIVE).unlink()
            return True
        with (folder / _ALIVE).open("rb") as alive:
            fcntl.flock(alive, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    except OSError:  # it is held, or not ours
        return False


def own_copy(path: Path, folder: Path, most: int, encoding: str | None = None) -> tuple[Path, str]:
    """Return a file that readers take for one table, and the encoding of its text.

    Compressed files are unpacked, sheets become CSV, text becomes UTF-8, and a name that looks like
    a pattern is replaced; any other file is returned as it is.
    """
    packed, suffix = path.name.lower().endswith(".gz"), suffix_of(path.name)
    own = folder / secrets.token_hex(8)
    own.mkdir()
    try:
        found = path
        if packed:
            found = own / f"table{suffix}"
            _unpack(path, found, most)
        if suffix == ".xlsx":
            found, seen = _sheet_as_csv(found, own / "sheet.csv", most), "utf-8"
        elif suffix == ".parquet":
            seen = ""
        else:
            found, seen = _as_utf8(found, own / f"text{suffix}", encoding)
        if found == path and glob.has_magic(str(path)):
            found = Path(shutil.copy(path, own / f"table{suffix}"))
    except BaseException:
        shutil.rmtree(own, ignore_errors=True)
        raise
    if found == path:
        own.rmdir()
    return found, seen


def _unpack(path: Path, target: Path, most: int) -> None:
    size = 0
    try:
        with gzip.open(path, "rb") as packed, target.open("wb") as out:
            while block := packed.read(2**20):
                size += len(block)
                if size > most:
                    raise Refused(f"it decompresses to more than {size_of(most)}")
                out.write(block)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise Refused(f"expected a complete gzip file: {error}") from None


# -- text in other encodings --------------------------------------------------------------------

_MARKS = {codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}


def _as_utf8(path: Path, target: Path, encoding: str | None) -> tuple[Path, str]:
    """Return the text as UTF-8, and what it was: UTF-8, UTF-16, or as Windows writes it."""
    if encoding is not None and encoding not in ENCODINGS:
        raise Refused(f"expected an encoding, one of {', '.join(ENCODINGS)}, got {encoding!r}")
    seen = encoding or _encoding_of(path)
    if seen == "utf-8":
        return path, seen
    try:
        with path.open(encoding=seen, newline="") as text:
            with target.open("w", encoding="utf-8", newline="") as out:
                shutil.copyfileobj(text, out, 2**20)
    except UnicodeError as error:
        raise Refused(f"expected text in {seen}, got {error}; choose another encoding") from None
    return target, seen


def _encoding_of(path: Path) -> str:
    with path.open("rb") as file:
        head = file.read(4096)
        for mark, name in _MARKS.items():
            if head.startswith(mark):
                return name
        file.seek(0)
        decoder = codecs.getincrementaldecoder("utf-8")()
        try:
            while block := file.read(2**20):
                decoder.decode(block)
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            # Bytes that no text of Windows has: another kind of file, left to the reader's message.
            return "utf-8" if b"\x00" in head else "cp1252"
    return "utf-8"


# -- sheets -------------------------------------------------------------------------------------

_SHEET = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
_DATES = {*range(14, 23), 45, 46, 47}  # formats of dates that every workbook has


def _sheet_as_csv(path: Path, target: Path, most: int) -> Path:
    """Write the first sheet of a workbook as CSV; dates as ISO text."""
    try:
        with zipfile.ZipFile(path) as book:
            if sum(item.file_size for item in book.infolist()) > 8 * most:
                raise Refused(f"it decompresses to more than {size_of(8 * most)}")
            names = [n for n in book.namelist() if re.fullmatch(r"xl/worksheets/[^/]+\.xml", n)]
            if not names:
                raise Refused("expected a workbook with a sheet, got none")
            texts, dates, epoch = _shared_texts(book), _date_styles(book), _epoch(book)
            first = min(names, key=lambda n: (len(n), n))
            with book.open(first) as sheet, target.open("w", newline="", encoding="utf-8") as out:
                csv.writer(out).writerows(_full(_sheet_rows(sheet, texts, dates, epoch)))
    except (zipfile.BadZipFile, ElementTree.ParseError, zlib.error, KeyError, IndexError) as error:
        raise Refused(f"expected an Excel workbook (.xlsx), got another file: {error}") from None
    return target


def _full(rows: Iterator[list[Any]]) -> Iterator[list[Any]]:
    """Yield rows as wide as the first, without those that are empty."""
    width = 0
    for row in rows:
        if any(cell != "" for cell in row):
            width = width or len(row)
            yield (row + [""] * width)[:width]


def _sheet_rows(
    sheet: Any, texts: list[str], dates: set[int], epoch: datetime
) -> Iterator[list[Any]]:
    for _, element in ElementTree.iterparse(sheet):  # noqa: S314
        if element.tag != f"{_SHEET}row":
            continue
        row: list[Any] = []
        for cell in element.iter(f"{_SHEET}c"):
            row += [""] * (_column_of(cell.get("r"), len(row)) - len(row))
            row.append(_cell_text(cell, texts, dates, epoch))
        yield row
        element.clear()


def _column_of(reference: str | None, following: int) -> int:
    """Return the number of the column of a cell such as ``AB12``, counted from 0."""
    letters = re.match("[A-Z]{1,3}", reference or "")
    if letters is None:
        return following
    number = 0
    for letter in letters.group():
        number = 26 * number + ord(letter) - 64
    return min(number - 1, 16_384)


def _cell_text(cell: Any, texts: list[str], dates: set[int], epoch: datetime) -> str:
    kind, value = cell.get("t"), cell.findtext(f"{_SHEET}v") or ""
    if kind == "inlineStr":
        return "".join(t.text or "" for t in cell.iter(f"{_SHEET}t"))
    if kind == "s":
        return texts[int(value)]
    if kind == "b":
        return "true" if value == "1" else "false"
    if kind == "e":  # an error such as #N/A is no value
        return ""
    if value and kind in (None, "n") and int(cell.get("s") or 0) in dates:
        found = epoch + timedelta(seconds=round(float(value) * 86_400))
        if found.date() == epoch.date():  # a time of day, of no day
            return str(found.time())
        return str(found.date() if found == datetime(*found.timetuple()[:3]) else found)
    return value


def _epoch(book: zipfile.ZipFile) -> datetime:
    """Return the day from which a workbook counts: those of the first Macs begin in 1904."""
    if "xl/workbook.xml" in book.namelist():
        with book.open("xl/workbook.xml") as file:
            about = ElementTree.parse(file).getroot().find(f"{_SHEET}workbookPr")  # noqa: S314
        if about is not None and about.get("date1904") in ("1", "true"):
            return datetime(1904, 1, 1)
    return datetime(1899, 12, 30)


def _shared_texts(book: zipfile.ZipFile) -> list[str]:
    if "xl/sharedStrings.xml" not in book.namelist():
        return []
    with book.open("xl/sharedStrings.xml") as file:
        items = ElementTree.parse(file).getroot().iter(f"{_SHEET}si")  # noqa: S314
        # What is said in small letters above a text (rPh) is no part of it.
        return ["".join(t.text or "" for r in (item, *item.iter(f"{_SHEET}r"))
                        for t in r.findall(f"{_SHEET}t")) for item in items]  # fmt: skip


def _date_styles(book: zipfile.ZipFile) -> set[int]:
    """Return the styles that show a number as a date."""
    if "xl/styles.xml" not in book.namelist():
        return set()
    with book.open("xl/styles.xml") as file:
        root = ElementTree.parse(file).getroot()  # noqa: S314
    known = set(_DATES)
    for form in root.iter(f"{_SHEET}numFmt"):
        code = re.sub(r'"[^"]*"|\[[^\]]*\]|\\.', "", form.get("formatCode", ""))
        if re.search("[ymdhs]", code, re.I) and "0" not in code.replace("ss.0", ""):
            known.add(int(form.get("numFmtId", 0)))
    styles = root.find(f"{_SHEET}cellXfs")
    forms = [] if styles is None else [int(x.get("numFmtId", 0)) for x in styles]
    return {i for i, form in enumerate(forms) if form in known}


def check(path: Path) -> None:
    """Refuse a table that is empty, too wide, or unpacks to too much, before it is read."""
    suffix = suffix_of(path.name)
    if not path.stat().st_size:
        raise Refused("it is empty")
    if suffix == ".parquet":
        check_width(_parquet_width(path))
    elif suffix in (".csv", ".tsv"):
        check_width(len(csv_header(path, longest=_LONGEST).names))


def check_width(width: int) -> None:
    """Refuse more columns than can be shown."""
    if width > MOST_COLUMNS:
        raise Refused(
            f"it has {width:,} columns; the studio shows up to {MOST_COLUMNS:,}: choose some, or "
            "use the library"
        )


def _parquet_width(path: Path) -> int:
    duckdb = require("duckdb", "files")
    query = (
        "SELECT num_columns, num_rows, total, cells FROM (SELECT count(DISTINCT path_in_schema) AS "
        "num_columns, coalesce(sum(total_uncompressed_size), 0) AS total, "
        "coalesce(sum(num_values), 0) AS cells FROM parquet_metadata($p))"
        ", (SELECT num_rows FROM parquet_file_metadata($p))"
    )
    with duckdb.connect() as connection:
        try:
            found: Any = connection.execute(query, {"p": str(path)}).fetchone()
        except duckdb.Error as error:
            raise Refused(f"expected a Parquet file: {str(error).splitlines()[0]}") from None
    width, rows, total, cells = found
    cells = max(cells, rows * max(width, 1))
    if total > 8 * MOST_BYTES or cells > min(MOST_CELLS, MOST_IN_ROW * max(rows, 1)):
        raise Refused(
            f"it decompresses to {rows:,} rows of {cells:,} values, {size_of(total)}: too much "
            f"for a "
            "page; use the library"
        )
    return int(width)
