"""Progress: what would not fit is refused; one callback, a bar for those who ask, else silence."""

import numpy as np
import pytest

from tabweave import Counts, count
from tabweave.engines import Progress, estimate, progress_bar, progress_reporter
from tabweave.engines import progress as _progress


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


def test_what_would_not_fit_is_refused_before_it_starts(monkeypatch):
    numbers = np.arange(40_000)
    rows = {"id": numbers, "code": numbers % 5000, "size": numbers % 3}
    free = count(rows, numbers="nominal")
    monkeypatch.setattr(_progress, "available_memory", lambda: 5_000_000)
    monkeypatch.setattr(Counts, "of", None)  # nothing may be counted
    with pytest.raises(MemoryError, match=r"'id' has about 40,000 values.*max_values"):
        count(rows, numbers="nominal")
    found = estimate(rows, numbers="nominal")
    assert not found.fits and found.values == {"id": 40_000, "code": 5000, "size": 3}
    assert found.pairs >= free.pairs.nnz
    assert estimate(rows, numbers="nominal", max_values=50).fits


def test_the_estimate_grows_with_the_rows_that_are_not_read(tmp_path, monkeypatch):
    pytest.importorskip("pyarrow", reason="writes a file with it")
    from pyarrow import parquet, table

    from tabweave.engines import source as _source

    monkeypatch.setattr(_source, "BATCH_ROWS", 1000)
    n = 20_000
    rows = table({"id": [f"i{i}" for i in range(n)], "digit": [str(i % 10) for i in range(n)]})
    parquet.write_table(rows, tmp_path / "r.parquet", row_group_size=1000)
    found = estimate(tmp_path / "r.parquet")
    assert found.rows == n and found.values == {"id": n, "digit": 10}


def test_counts_that_grow_beyond_memory_stop_the_run(tmp_path, monkeypatch):
    """SQL does not say how many rows come, so only the growing counts can tell."""
    from tabweave.engines import source as _source

    monkeypatch.setattr(_source, "BATCH_ROWS", 20_000)
    free = iter([10**12] * 3 + [0] * 100)
    monkeypatch.setattr(_progress, "available_memory", lambda: next(free))
    with pytest.raises(MemoryError, match="'a' has about"):
        count("SELECT 'x' || range AS a, 'y' || range AS b FROM range(200000)")
