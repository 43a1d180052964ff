"""Files appear whole or not at all; what a killed writer left can be told and removed."""

import os

import pytest

from tabweave.io.atomic import remove_leftovers, replacing


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
