"""What is the same to the last bit, and what to a tolerance: the table of docs/guarantees.md.

A program runs under several numbers of threads, of ours and of BLAS; its answers are compared.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

PAGE = Path(__file__).parents[1] / "docs" / "guarantees.md"
PROGRAM = """
import hashlib, json, os, sys, tempfile
if sys.argv[3] == "1" and hasattr(os, "sched_setaffinity"):  # our own threads: as many as cores
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
import numpy as np
import tabweave
from tabweave import Counts, KModes, OneHot, SimilarityIndex, Weave, WeightedKNN
from tabweave.datasets import make_coupled
data = make_coupled(4000, 6, 7, 5, coupling=0.6, heterogeneity=0.5, random_state=0)
rows = {name: cells.tolist() for name, cells in data.columns.items()}
mixed = rows | {"n": np.random.default_rng(0).normal(size=4000)}
few = {name: cells[:200] for name, cells in rows.items()}
path = os.path.join(tempfile.mkdtemp(), "file")
def digest(*arrays):
    return hashlib.sha256(b"".join(np.ascontiguousarray(a).tobytes() for a in arrays)).hexdigest()
def saved(value):
    tabweave.export.save(value, path)
    return hashlib.sha256(open(path, "rb").read()).hexdigest()
model = tabweave.load(sys.argv[1])
exact, graph = (SimilarityIndex(model, backend=b).fit(rows) for b in sys.argv[2].split())
exactly = {
    "counts": saved(Counts.of(rows)),
    "files": saved(OneHot().fit(rows)),
    "vectors of one model": digest(model.transform(rows)),
    "neighbours, exact": digest(*exact.query(few, 7)),
    "neighbours, by a graph": digest(*graph.query(few, 7)),
    "k-modes": digest(KModes(4, n_init=3, random_state=0).fit(rows).labels_),
    "votes": digest(WeightedKNN(5, metric=OneHot()).fit(rows, data.y).predict_proba(few)),
}
woven, whole = Weave().fit(rows), Weave().fit(mixed)
nearly = {
    "value tables": woven.pairwise_distances(few).ravel().tolist(),
    "mixed tables": whole.pairwise_distances(
        {name: cells[:200] for name, cells in mixed.items()}
    ).ravel().tolist(),
}
print(json.dumps([exactly, nearly]))
"""
BACKENDS = "exact graph"


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """What the program says with one thread and with several."""

    from tabweave import Weave
    from tabweave.datasets import make_coupled

    data = make_coupled(4000, 6, 7, 5, coupling=0.6, heterogeneity=0.5, random_state=0)
    path = tmp_path_factory.mktemp("model") / "weave"
    Weave().fit({name: cells.tolist() for name, cells in data.columns.items()}).save(path)
    out = []
    for threads in ("1", "3"):
        names = ("OMP", "OPENBLAS", "MKL", "NUMBA", "VECLIB_MAXIMUM")
        given = {f"{name}_NUM_THREADS": threads for name in names}
        command = [sys.executable, "-c", PROGRAM, str(path), BACKENDS, threads]
        run = subprocess.run(command, env={**os.environ, **given}, capture_output=True, text=True)
        assert run.returncode == 0, run.stderr
        out.append(json.loads(run.stdout))
    return out


def test_bits_do_not_depend_on_the_number_of_threads(answers):
    (one, _), (three, _) = answers
    assert one == three


def test_what_blas_computes_differs_by_rounding_only(answers):
    (_, one), (_, three) = answers
    for name in one:
        np.testing.assert_allclose(one[name], three[name], rtol=1e-7, atol=1e-8, err_msg=name)


def test_the_page_lists_what_is_compared_here(answers):
    page = PAGE.read_text(encoding="utf-8")
    for name in (*answers[0][0], *answers[0][1]):
        assert f"| {name} |" in page


def test_counts_are_the_same_on_every_machine():
    """Whole numbers, in an order that does not depend on arrival."""
    from tabweave import Counts

    counts = Counts.of({"a": ["x", "y", "x", None], "b": [1, 2.5, 1.0, True]})
    shuffled = Counts.of({"a": ["y", None, "x", "x"], "b": [2.5, True, 1, 1]})
    assert counts == shuffled
    assert counts.labels == (("x", "y", None), (True, 1, 2.5))
    assert counts.n == 4 and counts.value_counts.tolist() == [2, 1, 1, 1, 2, 1]
