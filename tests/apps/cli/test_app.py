"""How commands end: exit codes, one line on stderr, nothing left behind."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from .conftest import PLAIN, called


def test_a_traceback_is_shown_when_asked_for(folder):
    quiet = called("embed", "titanic.csv", "-t", "fat", cwd=folder)
    assert quiet.code == 1
    assert quiet.err == "tabweave: column not found: 'fat'; did you mean 'fate'?\n"
    assert quiet.out == ""
    loud = called("embed", "titanic.csv", "-t", "fat", "--debug", cwd=folder)
    assert loud.code == 1
    assert "Traceback" in loud.err


def test_bad_files_are_named_in_one_line(folder):
    bad = {
        "empty.csv": b"",
        "names.csv": b"a,b\n",
        "ragged.csv": b'a,b\n1,2\n3,4,5,6\n"7,8\n',
        "not.parquet": b"PAR1 but not really",
        "not.json": b"{{{",
        "noise.arrow": bytes(range(256)),
        "what.xyz": b"a,b\n1,2\n",
    }
    for name, content in bad.items():
        (folder / name).write_bytes(content)
        done = called("embed", name, cwd=folder)
        assert done.code == 1, name
        assert name.partition(".")[0] in done.err, name
        assert done.err.count("\n") == 1, done.err
        assert "Traceback" not in done.err


def test_cells_are_shown_and_never_obeyed(folder):
    (folder / "nasty.csv").write_text(
        "name,kind\n[red]x[/],a\n\x1b[31mred,b\n<script>alert(1)</script>,a\n\x07bell,b\n",
        encoding="utf-8",
    )
    done = called("neighbors", "nasty.csv", "--row", "0", "-k", "3", cwd=folder)
    assert done.code == 0, done.err
    assert "[red]x[/]" in done.out
    assert "\x1b" not in done.out
    assert "\x07" not in done.out
    assert called("map", "nasty.csv", "-o", "map.html", cwd=folder).code == 0
    assert "<script>alert" not in (folder / "map.html").read_text()


def test_help_offers_no_value_to_an_option_that_takes_none(folder):
    helped = called("report", "--help", cwd=folder).out
    assert "bool" not in helped + called("--help", cwd=folder).out
    assert "studio [OPTIONS] [PATH]" in called("studio", "--help", cwd=folder).out


def test_help_and_version(folder):
    assert called("--version", cwd=folder).out.strip() == __import__("tabweave").__version__
    helped = called("--help", cwd=folder)
    assert helped.code == 0
    commands = "embed map neighbors cluster explain drift report export demo studio".split()
    assert [c for c in commands if c not in helped.out] == []
    bare = called(cwd=folder)
    assert bare.code == 2
    assert "embed" in bare.out


@pytest.mark.slow
def test_a_reader_that_leaves_early_is_no_error(folder):
    rows = "SELECT a.* FROM 'titanic.csv' a, range(40)"  # more than a pipe holds
    command = f'{sys.executable} -m tabweave.apps.cli embed "{rows}" -m onehot | head -n 1'
    done = subprocess.run(
        ["bash", "-c", command], cwd=folder, capture_output=True, text=True,
        env=os.environ | PLAIN, timeout=600,
    )  # fmt: skip
    assert "Traceback" not in done.stderr
    assert "tabweave:" not in done.stderr
    assert done.stdout.startswith('"status_crew"')


def test_drift_can_decide_a_build(folder):
    words = ("even.csv", "odd.csv", "--check")
    assert called("drift", *words, cwd=folder).code == 3
    assert called("drift", "even.csv", "even.csv", "--check", cwd=folder).code == 0
    assert called("drift", *words, "--columns", "age,status", cwd=folder).code == 0


def test_drift_of_dates_before_1970_shows_dates(folder):
    for name, year in (("old", 1951), ("new", 1962)):
        days = [f"{year}-{1 + i % 12:02}-{1 + i % 28:02}" for i in range(200)]
        (folder / f"{name}.csv").write_text("\n".join(["born", *days]))
    shown = called("drift", "old.csv", "new.csv", cwd=folder).out
    assert "1951-06" in shown and "1962-06" in shown


def test_drift_of_a_column_that_holds_something_else_now_is_said(folder):
    files = {"old": "1.5,200\n2.5,301\n3.25,404\n", "new": "low,ok\nhigh,gone\nhigh,gone\n"}
    for name, rows in files.items():
        (folder / f"{name}.csv").write_text("x,code\n" + rows * 40, encoding="utf-8")
    done = called("drift", "old.csv", "new.csv", "--check", cwd=folder)
    assert done.code == 3 and "2 of 2 columns changed" in done.out
    assert "'x' changed in kind: numeric before, nominal after (values such as 'low')" in done.err
    found = json.loads(called("drift", "old.csv", "new.csv", "--json", cwd=folder).out)
    assert found["changed"] == ["x", "code"]
    assert found["kinds"] == {"x": "numeric before, nominal after (values such as 'low')"}


def test_drift_of_numbers_looks_at_spread_and_gaps(folder):
    rng = np.random.default_rng(0)
    for name, scale, gaps in (("old", 1, 0), ("new", 3, 0.4)):
        x, y = rng.normal(0, scale, 200).round(4), rng.normal(size=200).round(4)
        lines = [f"{a},{'' if rng.random() < gaps else b}" for a, b in zip(x, y, strict=True)]
        (folder / f"{name}.csv").write_text("\n".join(["x,y", *lines]), encoding="utf-8")
    done = called("drift", "old.csv", "new.csv", cwd=folder)
    assert "2 of 2 columns changed" in done.out
    assert "missing 0.0% → 4" in done.out and "KS 0." in done.out and "gaps 0.4" in done.out
    assert (
        called("drift", "old.csv", "new.csv", "--min-size", "0.9", "--check", cwd=folder).code == 0
    )
    assert called("drift", "old.csv", "new.csv", "--min-size", "-1", cwd=folder).code == 2


def test_studio_looks_before_it_serves(folder):
    done = called("studio", "nowhere", cwd=folder)
    assert (done.code, done.err) == (1, "tabweave: file or folder not found: 'nowhere'\n")


@pytest.mark.parametrize(
    ("sign", "code"),
    [(signal.SIGINT, 130), pytest.param(signal.SIGTERM, 143, marks=pytest.mark.slow)],
)
def test_a_stopped_embed_leaves_nothing(sign, code, folder):
    """Stop it while rows are being written: the temporary folder beside the target is there."""
    out = folder / "out"
    out.mkdir()
    (out / "v.csv").write_text("mine")
    many = "SELECT a.*, b.range FROM 'titanic.parquet' a, range(2000) b"
    words = [
        "embed",
        many,
        "--model",
        "m.tabweave",
        "--keep",
        "range",
        "-o",
        "out/v.csv",
        "--force",
    ]
    trained = called("embed", "titanic.csv", "-o", "v.csv", "--save", "m.tabweave", cwd=folder)
    assert trained.code == 0, trained.err
    running = subprocess.Popen(
        [sys.executable, "-m", "tabweave.apps.cli", *words], cwd=folder, env=os.environ | PLAIN,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        while not [p for p in out.rglob("*") if p.name.endswith(".part")]:
            assert running.poll() is None, running.communicate()
            time.sleep(0.02)
        running.send_signal(sign)
        _, err = running.communicate(timeout=600)
    finally:
        running.kill()
    assert running.returncode == code
    assert [p.name for p in out.iterdir()] == ["v.csv"]
    assert (out / "v.csv").read_text() == "mine"
    assert "Traceback" not in err


def test_a_pattern_that_the_shell_has_expanded_is_told_of(folder):
    done = called("embed", "shop.csv", "people.csv", cwd=folder)
    assert done.code == 2
    assert "extra argument" in done.err and "quote a glob pattern" in done.err


def test_ctrl_c_before_a_command_begins_is_no_traceback(monkeypatch):
    from tabweave.apps import cli

    def stopped(**_):
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "app", stopped)
    monkeypatch.setattr(cli, "stop_on_terminate", lambda: None)
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 130


def test_ctrl_c_within_a_query_is_called_so(folder, monkeypatch):
    from tabweave.apps.cli import job

    def interrupted(*_):
        raise RuntimeError("Query interrupted")  # as DuckDB has it

    monkeypatch.setattr(job.Rows, "read", interrupted)
    done = called("explain", "titanic.csv", "-a", "0", "-b", "1", cwd=folder)
    assert (done.code, done.err) == (130, "tabweave: stopped; nothing was written\n")


def test_options_that_would_change_nothing_are_not_taken(folder):
    for command in ("associate", "fill", "odd", "kinds"):
        for words in (("--method", "onehot"), ("--target", "fate")):
            done = called(command, "titanic.csv", *words, cwd=folder)
            assert done.code == 2 and f"no such option: {words[0]}" in done.err


def test_what_cannot_be_is_said_before_work_begins(folder, monkeypatch):
    from tabweave.apps.cli.job import OpenJob

    monkeypatch.setattr(OpenJob, "rows", lambda self: 1 / 0)
    for words, code, said in (
        (("map", "--color", "fat", "-o", "m.html"), 1, "did you mean 'fate'?"),
        (("map", "--layout", "tsne", "-o", "m.csv"), 2, "not tables; use --layout pca"),
        (("neighbors", "--row", "1", "--where", "fat=lost"), 1, "did you mean 'fate'?"),
        (("report", "-o", "r.pdf"), 2, "a file that ends in .html, got 'r.pdf'"),
        (("fill", "-o", "r.xls"), 2, ".arrow, got 'r.xls'; rename the file"),
        (("fill", "-o", "-", "--json"), 2, "add --output FILE"),
        (("neighbors", "--row", "-1"), 2, "expected a row number, counting from 0, got '-1'"),
        (("explain", "-a", "-1", "-b", "0"), 2, "expected a row number, counting from 0, got '-1'"),
        (("embed", "-o", "v.csv", "--save", "v.csv"), 2, "expected two files, got 'v.csv'"),
        (("embed", "-o", "titanic.csv", "--force"), 2, "is one of the input files"),
    ):
        command, *options = words
        done = called(command, "titanic.csv", *options, cwd=folder)
        assert (done.code, said in done.err) == (code, True), done


def test_an_address_is_no_file_and_can_be_piped_in(tmp_path):
    done = called("kinds", "https://example.org/people.csv", cwd=tmp_path)
    assert done.code == 1
    assert "curl -s https://example.org/people.csv | tabweave ... -" in done.err


def test_a_folder_that_cannot_be_written_to_is_said_before_work_begins(folder, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    done = called("embed", "titanic.csv", "-o", "v.csv", cwd=folder)
    assert done.code == 2 and "the folder '.' is not writable" in done.err


def test_drift_of_years_and_of_empty_text_is_readable(tmp_path):
    for name, year in (("old", 1983), ("new", 2003)):
        lines = [f'{{"year": {year + i % 9}, "note": "{"" if i % 2 else "x"}"}}' for i in range(90)]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(lines))
    new = (tmp_path / "new.jsonl").read_text().replace('"note": "x"', '"note": ""')
    (tmp_path / "new.jsonl").write_text(new)
    shown = called("drift", "old.jsonl", "new.jsonl", cwd=tmp_path).out
    assert "mean 1987 → 2007" in shown and "'' 50.0% → 100.0%" in shown
