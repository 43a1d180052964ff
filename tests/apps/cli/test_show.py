"""What a person sees on a terminal, also on a narrow one."""

import os
import re
import struct
import subprocess
import sys

import pytest

fcntl = pytest.importorskip("fcntl", reason="pseudo-terminals are of Unix")


def on_terminal(*words, cwd, columns):
    """Run ``tabweave`` on a terminal so wide, and return the lines it shows."""
    import pty
    import termios

    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    env = {k: v for k, v in os.environ.items() if k != "COLUMNS"}
    run = subprocess.Popen(
        [sys.executable, "-m", "tabweave.apps.cli", *words], cwd=cwd, stdin=theirs, stdout=theirs,
        stderr=theirs, env=env | {"TERM": "xterm", "NO_COLOR": "1"},
    )  # fmt: skip
    os.close(theirs)
    shown = b"".join(_blocks(ours))
    os.close(ours)
    assert run.wait() == 0, shown.decode()
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown.decode())
    return [line.rstrip() for line in text.splitlines()]


def _blocks(terminal):
    try:
        while block := os.read(terminal, 65536):
            yield block
    except OSError:  # the way a terminal ends on Linux
        return


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_names_of_pairs_are_there_however_narrow_the_terminal(folder, columns):
    lines = on_terminal("associate", "titanic.csv", "--limit", "2", cwd=folder, columns=columns)
    assert any({"sex", "fate"} <= set(line.split()) for line in lines), lines
    assert any("Cramér's V" in line for line in lines) == (columns > 60)
    assert max(map(len, lines)) <= columns


@pytest.mark.parametrize("columns", [40, 60, 80])
def test_a_preview_shows_whole_numbers_or_none(folder, columns):
    words = ["embed", "titanic.csv", "--method", "onehot"]
    lines = on_terminal(*words, cwd=folder, columns=columns)
    assert "…" not in "".join(lines), lines
    first = next(line.split() for line in lines if line.split()[:1] == ["0"])
    assert len(first) - 1 == int(re.search(r"rows, (\d+) of", " ".join(lines))[1])
    assert len(first) > 2


def test_bars_are_shorter_where_lines_are(folder):
    words = ["explain", "titanic.csv", "--a", "0", "--b", "2000"]
    narrow, wide = (on_terminal(*words, cwd=folder, columns=c) for c in (60, 120))
    assert 0 < max(line.count("━") for line in narrow) <= 8
    assert max(line.count("━") for line in wide) > 8
    assert "…" not in "".join(narrow)


def test_neighbours_are_not_cut_however_narrow_the_terminal(folder):
    for columns in (60, 80):
        words = ["neighbors", "titanic.csv", "--row", "0", "-k", "1"]
        lines = on_terminal(*words, cwd=folder, columns=columns)
        assert "…" not in "".join(lines), lines


def test_a_terminal_shows_what_is_being_done(folder):
    lines = on_terminal("explain", "titanic.csv", "-a", "0", "-b", "1", cwd=folder, columns=80)
    assert any("reading" in line for line in lines) and any("learning" in line for line in lines)


@pytest.mark.parametrize("columns", [40, 60])
def test_names_are_whole_however_narrow_the_terminal(tmp_path, columns):
    lines = [f"{'xyz'[i % 3]},{'' if i in (3, 8) else 'uvw'[i % 3]}" for i in range(40)]
    (tmp_path / "rows.csv").write_text("\n".join(["department,kind", *lines]))
    words = ["fill", "rows.csv", "--limit", "0"]
    filled = on_terminal(*words, cwd=tmp_path, columns=columns)
    assert any(line.split()[:2] == ["kind", "2"] for line in filled), filled
    words = ["explain", "rows.csv", "-a", "0", "-b", "1"]
    shown = on_terminal(*words, cwd=tmp_path, columns=columns)
    assert any(line.split()[:3] == ["department", "x", "y"] for line in shown), shown
    assert max(map(len, shown)) <= columns
