"""A bound before work starts: said for large files, streamed or refused where rows do not fit."""

import numpy as np
import pytest

from tabweave import Weave
from tabweave.apps.cli import job as jobs
from tabweave.apps.cli.job import open_job
from tabweave.apps.cli.options import Job
from tabweave.engines import estimate, progress


@pytest.fixture
def path(tmp_path):
    rng = np.random.default_rng(0)
    words = np.array(["red", "blue", "green"])[rng.integers(0, 3, (4000, 2))]
    lines = [f"{a},{b},{x:.3f}" for (a, b), x in zip(words, rng.normal(size=4000), strict=True)]
    path = tmp_path / "rows.csv"
    path.write_text("\n".join(["color,trim,price", *lines]) + "\n")
    return path


def test_an_estimate_says_time_and_memory_of_a_csv_file(path):
    found = estimate(path)
    assert 3900 <= found.rows <= 4100
    assert found.seconds > 0 and found.rows_bytes > 4000 * 8
    assert str(found).startswith("about 4,0")


def test_rows_that_do_not_fit_are_read_in_batches(path, monkeypatch, capsys):
    monkeypatch.setattr(jobs, "LARGE_BYTES", 1)
    monkeypatch.setattr(progress, "available_memory", lambda: 100_000)
    monkeypatch.setattr(jobs.Rows, "read", None)  # no rows may be held
    with open_job(Job(str(path))) as job:
        embedder = job.learned_from_counts()
    assert "rows.csv: about 4,0" in capsys.readouterr().err
    assert embedder.counts_ == Weave().fit(path).counts_
    with (
        open_job(Job(str(path), drop=["trim"])) as job,
        pytest.raises(MemoryError, match=r"--save .*--model"),
    ):
        job.learned_from_counts()


def test_small_files_are_not_talked_about(path, capsys):
    with open_job(Job(str(path))) as job:
        job.learned_from_counts()
    assert capsys.readouterr().err == ""
