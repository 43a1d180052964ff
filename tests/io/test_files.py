"""Files appear whole or not at all; the first line of a CSV file; names and text in SQL."""

import gzip
import os
import subprocess
import sys

import pytest

from tabweave.io.files import csv_header, remove_leftovers, replacing


@pytest.mark.parametrize(
    ("text", "names", "delimiter"),
    [
        ("a,b\n1,2\n", ["a", "b"], ","),
        ("\ufeffa;b,c;d\r\n", ["a", "b,c", "d"], ";"),
        ("a\tb\tc", ["a", "b", "c"], "\t"),
        ('"a,x,y"|b|c\n', ["a,x,y", "b", "c"], "|"),
        ('"a ""b""\n\nc",d\nx,1\n', ['a "b"\n\nc', "d"], ","),
        (",a\n", ["", "a"], ","),
        ("one", ["one"], ","),
        ("sep=;\na;b,c\n", ["a", "b,c"], ";"),
    ],
)
def test_names_and_what_separates_them(tmp_path, text, names, delimiter):
    plain, packed = tmp_path / "t.csv", tmp_path / "t.csv.gz"
    plain.write_text(text, encoding="utf-8", newline="")
    packed.write_bytes(gzip.compress(text.encode()))
    before = int(text.startswith("sep"))
    assert csv_header(plain) == csv_header(packed) == (names, delimiter, before)


def test_a_delimiter_may_be_given(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a;b;c,d\n")
    assert csv_header(path, ",") == (["a;b;c", "d"], ",", 0)


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("t.csv", b"\n1\n", "got an empty line"),
        ("t.csv", b"sep=;\n", "got an empty line"),
        ("t.csv", b"caf\xe9\n", "expected UTF-8, got byte 0xe9"),
        ("t.csv", b"PAR1\x15\x04\xe0", "got a Parquet file; let its name end in .parquet"),
        ("t.csv", b"PK\x03\x04\x14\x9d", "got a zip file, as workbooks are; unpack it"),
        ("t.csv", b"\x1f\x8b\x08\x08", "got a gzip file; let its name end in .gz"),
        ("t.csv", b"a\0b\n", "got NUL characters"),
        ("t.csv", b"a" * 200, "longer than 100 characters"),
        ("t.csv", b'"' + b"a\n" * 100, "longer than 100 characters"),
        ("t.csv.gz", b"a,b\n", "expected a complete gzip file"),
        ("t.csv.gz", gzip.compress(b"a,b\n" * 999, mtime=0)[:-20], "expected a complete gzip file"),
    ],
)
def test_what_is_no_first_line_is_refused_by_name(tmp_path, name, content, why):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(ValueError, match=rf"t\.csv.*{why}"):
        csv_header(path, longest=100)


# -- whole or not at all --------------------------------------------------------------------


def test_the_file_takes_its_name_when_the_block_ends_well(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")
    with replacing(path) as part:
        part.write_text("new")
        assert path.read_text() == "old"
        assert part.parent == tmp_path and part.name.endswith(".part")
    assert path.read_text() == "new" and os.listdir(tmp_path) == ["a.txt"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_a_failure_keeps_the_old_file_and_no_other(tmp_path, error):
    path = tmp_path / "a.txt"
    path.write_text("old")
    with pytest.raises(error), replacing(path) as part:
        part.write_text("half")
        raise error
    assert path.read_text() == "old" and os.listdir(tmp_path) == ["a.txt"]


def test_what_was_written_is_on_the_disk_before_it_is_renamed(tmp_path, monkeypatch):
    done = []
    fsync, rename = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda file: done.append("fsync") or fsync(file))
    monkeypatch.setattr(os, "replace", lambda a, b: done.append("replace") or rename(a, b))
    with replacing(tmp_path / "a") as part:
        part.write_bytes(b"x")
    assert done == ["fsync", "replace"]


def test_leftovers_are_those_of_one_file(tmp_path):
    for name in ("a[1].csv.0f.part", "a1.csv.0f.part", "a[1].csv"):
        (tmp_path / name).touch()
    remove_leftovers(tmp_path / "a[1].csv")
    assert sorted(os.listdir(tmp_path)) == ["a1.csv.0f.part", "a[1].csv"]


def test_what_a_killed_writer_left_goes_when_the_file_is_written_again(tmp_path):
    path = tmp_path / "a.txt"
    old, young = (tmp_path / f"a.txt.{name}.part" for name in ("old", "young"))
    for part in (old, young):
        part.write_text("half")
    os.utime(old, (0, 0))  # long ago; the other may be written to at this moment
    with replacing(path) as part:
        part.write_text("new")
    assert sorted(os.listdir(tmp_path)) == ["a.txt", "a.txt.young.part"]


def test_what_a_process_still_writes_to_stays_however_slowly_it_writes(tmp_path):
    """And goes once the process is ended by a signal that runs no handler of Python."""
    code = (
        "import sys, time; from tabweave.io.files import replacing\n"
        "with replacing(sys.argv[1]) as part:\n"
        "    part.write_text('half'); print('written', flush=True); time.sleep(60)"
    )
    env = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    words = [sys.executable, "-c", code, str(tmp_path / "a.txt")]
    with subprocess.Popen(words, stdout=subprocess.PIPE, env=env) as writer:
        assert writer.stdout.readline() == b"written\n"
        (part,) = tmp_path.iterdir()
        os.utime(part, (0, 0))
        with replacing(tmp_path / "a.txt") as other:
            other.write_text("new")
        assert part.exists() and (tmp_path / "a.txt").read_text() == "new"
        writer.terminate()
    with replacing(tmp_path / "a.txt") as other:
        other.write_text("newer")
    assert os.listdir(tmp_path) == ["a.txt"]


@pytest.mark.skipif(os.name == "nt", reason="no modes of files")
def test_what_is_being_written_is_no_more_readable_than_the_file_was(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")
    path.chmod(0o600)
    with replacing(path) as part:
        assert part.stat().st_mode & 0o777 == 0o600
        part.write_text("new")
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_first_line_that_csv_cannot_read_is_named(tmp_path):
    path = tmp_path / "wide.csv"
    path.write_text('"' + "a" * 200_000 + '",b\n')  # a name above what csv takes
    with pytest.raises(ValueError, match="the first line cannot be read: field larger than"):
        csv_header(path)


def test_a_block_that_fails_before_it_writes_says_so_itself(tmp_path):
    with pytest.raises(KeyError, match="mine"), replacing(tmp_path / "f"):
        raise KeyError("mine")
    assert not list(tmp_path.iterdir())


def test_leftovers_are_kept_until_they_are_older(tmp_path, monkeypatch):
    part = tmp_path / "f.0.part"
    part.write_text("")
    written = part.stat().st_mtime
    monkeypatch.setattr("tabweave.io.files.time.time", lambda: written + 60)
    remove_leftovers(tmp_path / "f", older_than=60)
    assert part.exists()
    remove_leftovers(tmp_path / "f", older_than=59)
    assert not part.exists()
    part.write_text("")
    remove_leftovers(tmp_path / "f")
    assert not part.exists()


def test_a_name_of_several_lines_is_read_to_its_end_or_refused(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text('"a\nb\nc",d\n1,2\n')
    assert csv_header(path, longest=100) == (["a\nb\nc", "d"], ",", 0)
    for longest in (4, 5, 6, 9):
        with pytest.raises(ValueError, match=f"the first line is longer than {longest} characters"):
            csv_header(path, longest=longest)


def test_quotes_within_a_name_do_not_end_it(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text('a,"b""\nc",d\n1,2,3\n')
    assert csv_header(path) == (["a", 'b"\nc', "d"], ",", 0)


def test_only_the_first_record_tells_what_separates_names(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text('"a","b;c"\n1;2;3;4;5,6\n"1;2;3;4;5",6\n')
    assert csv_header(path) == csv_header(path, longest=10) == (["a", "b;c"], ",", 0)


@pytest.mark.parametrize("text", ["a,b", '"a\nb"', '"a","b"'])
def test_a_first_line_may_be_as_long_as_the_limit(text, tmp_path):
    path = tmp_path / "x.csv"
    path.write_text(text)
    assert csv_header(path, longest=len(text)) == csv_header(path)
    with pytest.raises(ValueError, match=f"longer than {len(text) - 1} characters"):
        csv_header(path, longest=len(text) - 1)


@pytest.mark.skipif(os.name == "nt", reason="permissions are those of POSIX")
def test_permissions_and_links_stay(tmp_path):
    private, link = tmp_path / "private.csv", tmp_path / "link.csv"
    private.write_text("old")
    private.chmod(0o600)
    link.symlink_to("private.csv")
    for path in (private, link):
        with replacing(path) as part:
            part.write_text(path.name)
        assert private.read_text() == path.name and private.stat().st_mode & 0o777 == 0o600
    assert link.is_symlink() and sorted(p.name for p in tmp_path.iterdir()) == [
        "link.csv",
        "private.csv",
    ]
    with replacing(tmp_path / "new.csv") as part:
        part.write_text("x")
    (tmp_path / "plain.csv").write_text("x")
    modes = {(tmp_path / name).stat().st_mode for name in ("new.csv", "plain.csv")}
    assert len(modes) == 1
