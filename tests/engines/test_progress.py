"""Progress: one callback, a bar for those who ask, and silence for all others."""

from tabweave import count
from tabweave.engines import Progress, progress_bar, progress_reporter


def test_a_reporter_fills_in_what_is_the_same_for_a_run():
    seen = []
    report = progress_reporter(seen.append, "turns", 3)
    report("learning", 1, "error 0.5")
    assert seen == [Progress("learning", 1, 3, "turns", seen[0].seconds, "error 0.5")]
    assert progress_reporter(None)("learning", 1) is None


def test_progress_is_reported_and_drawn_when_asked_for(files, capsys):
    seen = []
    count(f"{files}/part-*.parquet", progress=seen.append)
    assert (seen[-1].step, seen[-1].done, seen[-1].total) == ("counting", 3000, 3000)
    assert 0 < seen[0].seconds <= seen[-1].seconds
    count(files / "all.csv")
    assert capsys.readouterr() == ("", "")
    with progress_bar() as progress:
        count(files / "all.csv", progress=progress)


def test_a_bar_takes_rows_and_shares(capsys):
    with progress_bar() as progress:
        progress(Progress("counting", 10, None, "rows"))
        progress(Progress("describing", 0.5, 1.0, ""))
    assert capsys.readouterr().out == ""
