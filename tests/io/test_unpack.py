"""Compressed files, text in other encodings, workbooks: against what wrote them."""

import bz2
import gzip
import lzma
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest

from tabweave import Weave
from tabweave.engines import open_source, read
from tabweave.io.files import encoding_of, in_child, read_book, unpack

ROWS = pd.DataFrame({"city": ["Zürich", "Genève", "Łódź"] * 10, "n": range(30)})
WESTERN = ROWS[ROWS["city"] != "Łódź"].reset_index(drop=True)


def packed(path, text, suffix, name="rows.csv"):
    target = path / f"{name}{suffix}"
    content = text.encode()
    if suffix == ".zip":
        with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(f"folder/{name}", content)
            archive.writestr("__MACOSX/._rows.csv", b"x")
    elif suffix == ".zst":
        with pa.output_stream(str(target), compression="zstd") as out:
            out.write(content)
    else:
        pack = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}[suffix]
        target.write_bytes(pack(content))
    return target


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".xz", ".zip", ".zst"])
@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_packed_files_are_read(tmp_path, suffix, form):
    text = ROWS.to_csv(index=False) if form == "csv" else ROWS.to_json(orient="records", lines=True)
    path = packed(tmp_path, text, suffix, f"rows.{form}")
    (tmp_path / f"rows.{form}").write_text(text)
    source = open_source(path)
    assert source.name == str(path) and path in source.paths
    assert read(source) == read(tmp_path / f"rows.{form}")
    assert source.retyped({"n": "VARCHAR"}).name == str(path)
    assert Weave().fit(path).counts_ == Weave().fit(tmp_path / f"rows.{form}").counts_


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".xz", ".zip"])
def test_damaged_and_too_large_ones_are_refused_by_name(tmp_path, suffix):
    path = packed(tmp_path, "a,b\n" + "1,2\n" * 9999, suffix)
    with pytest.raises(ValueError, match=rf"rows\.csv\{suffix}: expected at most .* MB when unp"):
        unpack(path, tmp_path / "out", 1000)
    path.write_bytes(path.read_bytes()[:-15])
    with pytest.raises(ValueError, match=rf"rows\.csv\{suffix}: "):
        open_source(path)


def test_a_zip_of_many_files_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "x.csv.zip", "w") as archive:
        archive.writestr("a.csv", "a\n1\n")
        archive.writestr("b.csv", "a\n1\n")
    with pytest.raises(ValueError, match=r"expected a zip file of one file, got 2 \('a.csv', 'b"):
        open_source(tmp_path / "x.csv.zip")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252", "latin-1"])
@pytest.mark.parametrize("suffix", ["", ".gz", ".zip"])
def test_encodings_are_found_by_trial(tmp_path, encoding, suffix, recwarn):
    content = WESTERN.to_csv(index=False).encode(encoding)
    path = tmp_path / f"rows.csv{suffix}"
    if suffix == ".zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("rows.csv", content)
    else:
        path.write_bytes(gzip.compress(content) if suffix else content)
    found = read(path).to_pandas()
    assert found["city"].tolist() == WESTERN["city"].tolist()
    said = [str(w.message) for w in recwarn]
    guessed = encoding in ("cp1252", "latin-1")
    assert len(said) == guessed and all("was read as cp1252" in text for text in said)


def test_an_encoding_may_be_given(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_bytes(ROWS.to_csv(index=False).encode("cp1250", "replace"))
    wanted = ROWS["city"].str.encode("cp1250", "replace").str.decode("cp1250").tolist()
    assert read(open_source(path, encoding="cp1250")).to_pandas()["city"].tolist() == wanted
    with pytest.raises(ValueError, match="expected an encoding, such as cp1252, got 'klingon'"):
        open_source(path, encoding="klingon")
    with pytest.raises(ValueError, match=r"rows.csv: expected UTF-8, got byte"):
        open_source(path, encoding="utf-8")
    (tmp_path / "odd.csv").write_bytes(b"a\n\x81\n")
    assert encoding_of(tmp_path / "odd.csv") == "latin-1"


class TestBooks:
    @pytest.fixture
    def forged(self, workbook, tmp_path):
        """Write a workbook of one sheet, whose rows of XML are given."""

        def forge(*rows):
            (tmp_path / "book.xlsx").write_bytes(workbook("".join(rows)))
            return tmp_path / "book.xlsx"

        return forge

    @pytest.fixture
    def book(self, forged):
        rows = zip(ROWS["city"], ROWS["n"], range(30), strict=True)
        cells = (
            f'<row><c t="str"><v>{city}</v></c><c><v>{n}</v></c>'
            f'<c s="1"><v>{45000 + day}</v></c><c><v>{day / 4}</v></c></row>'
            for city, n, day in rows
        )
        names = ("city", "n", "day", "share")
        header = "".join(f'<c t="str"><v>{name}</v></c>' for name in names)
        return forged(f"<row>{header}</row>", *cells)

    def test_the_first_sheet_is_read(self, book):
        columns = read_book(book)
        assert columns["city"] == ROWS["city"].tolist() and columns["n"] == list(range(30))
        model = Weave().fit(book)
        kinds = {c.name: c.kind for c in model.schema_.columns}
        assert kinds == {"city": "nominal", "day": "datetime", "share": "numeric"}

    def test_a_bomb_is_refused(self, book):
        with zipfile.ZipFile(book, "a", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("xl/bomb.xml", bytes(140 << 20))
        with pytest.raises(ValueError, match=r"book.xlsx: expected at most .* when unpacked, got"):
            read_book(book)

    def test_a_directory_that_lies_is_refused(self, book):
        with zipfile.ZipFile(book, "a", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("xl/bomb.xml", bytes(1 << 20))
        content = book.read_bytes()
        size = (1 << 20).to_bytes(4, "little")
        assert content.count(size) >= 1
        book.write_bytes(content.replace(size, (10).to_bytes(4, "little")))
        with pytest.raises(ValueError, match=r"book.xlsx: expected a complete .xlsx file"):
            read_book(book)

    HEAD = '<row r="1"><c r="A1" t="str"><v>a</v></c></row>'

    @pytest.mark.parametrize("cell", ["XFD1048576", "ZZZZZZ4294967295"])
    def test_a_cell_far_away_ends_no_process(self, forged, cell):
        """Compiled code makes every cell above it, and aborts the process where it cannot."""
        book = forged(self.HEAD, f'<row><c r="{cell}"><v>1</v></c></row>')
        for read_it in (read_book, read, lambda path: Weave().fit(path)):
            with pytest.raises(ValueError, match=r"book.xlsx: expected a (file that|complete)"):
                read_it(book)

    @pytest.mark.skipif(sys.platform != "linux", reason="memory is limited on Linux only")
    @pytest.mark.parametrize("rows, cells", [(6000, 1000), (10, 600_000)])
    def test_no_small_workbook_takes_much_memory(self, forged, rows, cells):
        """Bytes of memory for each byte of a file: 6 million cells pack into 400 kB."""
        block = "<row>" + "<c><v>1</v></c>" * cells + "</row>"
        book = forged(self.HEAD, *[block] * rows)
        assert book.stat().st_size < 1 << 19
        message, megabytes = peak_of_reading(book)
        assert "cells in a workbook of its size, got more" in message
        assert megabytes < 100

    @pytest.mark.skipif(sys.platform != "linux", reason="memory is limited on Linux only")
    def test_one_long_text_in_many_cells_takes_less_than_a_gigabyte(self, workbook, tmp_path):
        cells = "<row>" + '<c t="s"><v>0</v></c>' * 1000 + "</row>"
        text = f"<si><t>{'x' * 3000}</t></si>"
        (tmp_path / "book.xlsx").write_bytes(workbook(self.HEAD + cells * 4000, text))
        message, megabytes = peak_of_reading(tmp_path / "book.xlsx")
        assert "ended the process that read it" in message
        assert megabytes < 1000

    @pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs a file that never ends")
    def test_what_takes_too_long_is_refused(self, tmp_path):
        os.mkfifo(tmp_path / "endless")
        with pytest.raises(ValueError, match=r"endless: expected a file that is read within 0 sec"):
            in_child(tmp_path / "endless", Path.read_bytes, max_bytes=1 << 30, max_seconds=0.3)


def peak_of_reading(book):
    """What reading a workbook says, and the memory of both processes at most, in megabytes."""
    code = (
        "import resource, sys; from pathlib import Path; from tabweave.io.files import read_book\n"
        "try: print(len(read_book(Path(sys.argv[1]))['a']), 'rows')\n"
        "except ValueError as error: print(error)\n"
        "own = Path('/proc/self/status').read_text().partition('VmHWM:')[2].split()[0]\n"
        "print((int(own) + resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss) / 1024)"
    )
    words = [sys.executable, "-c", code, str(book)]
    env = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(words, capture_output=True, text=True, check=True, env=env)
    message, megabytes = done.stdout.splitlines()
    return message, float(megabytes)


def test_a_zip_of_an_unknown_version_or_with_a_password_is_refused_by_name(tmp_path):
    path = packed(tmp_path, "a,b\n1,2\n", ".zip")
    content = path.read_bytes()
    start = content.rindex(b"PK\1\2", 0, content.rindex(b"PK\1\2"))  # of the file in the directory
    for at, value in ((6, 226), (8, content[start + 8] | 1)):  # version needed, flags
        path.write_bytes(content[: start + at] + bytes([value]) + content[start + at + 1 :])
        with pytest.raises(ValueError, match=r"rows\.csv\.zip: expected a complete \.zip file: "):
            read(path)
