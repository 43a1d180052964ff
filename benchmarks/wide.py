"""Wide tables: what they cost, and whether neighbours are as good as by plain standardisation.

    TABWEAVE_DATA=... python benchmarks/wide.py > benchmarks/reports/wide.md

Neighbours: the share of a row's ten nearest rows that are of its class (classes are not shown to
the embedder), for standardised numbers (or 0 and 1 as they are), for ``Weave`` as it is, with
numbers coupled in two bins each, and not coupled at all, as in tables of more columns.
Cost: drawn tables of eight factors and noise; processor seconds and the peak of memory, each in a
process of its own.
"""

from __future__ import annotations

import argparse
import os

for _threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(_threads, "1")

import resource  # noqa: E402
import subprocess  # noqa: E402
import sys  # noqa: E402
import tempfile  # noqa: E402
import time  # noqa: E402
from pathlib import Path  # noqa: E402
from unittest import mock  # noqa: E402

import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402

SIZES = {
    "spectra": (500, 1000),
    "sensors": (5000, 561),
    "189 × 501": (189, 501),
    "gene expression": (100, 2000),
    "genes, all": (60, 20000),
    "word counts": (1000, 1500),
}
ROWS = 800


def drawn(name: str) -> pd.DataFrame:
    """Return a table of the size that a name stands for."""
    rng, (n, d) = np.random.default_rng(0), SIZES[name]
    if name == "word counts":
        values = rng.poisson(rng.gamma(0.3, 0.5, (n, d)))
    else:
        values = rng.normal(size=(n, 8)) @ rng.normal(size=(8, d)) + rng.normal(size=(n, d))
    return pd.DataFrame(values, columns=[f"c{i}" for i in range(d)])


def cost(name: str) -> str:
    """Return a line of the report: what the table of a name costs."""
    from tabweave import Weave

    Weave().fit(np.random.default_rng(0).normal(size=(5000, 4))).transform(np.zeros((5000, 4)))
    frame, clock = drawn(name), [time.process_time()]
    with tempfile.TemporaryDirectory() as folder:
        model = Weave().fit(frame)
        clock.append(time.process_time())
        vectors = model.transform(frame)
        clock.append(time.process_time())
        shares = model.explain(frame.iloc[0], frame.iloc[1])
        clock.append(time.process_time())
        model.save(Path(folder) / "model")
        clock.append(time.process_time())
        size = (Path(folder) / "model").stat().st_size / 1e6
    assert np.isfinite(vectors).all()
    np.testing.assert_allclose(sum(shares.values()), ((vectors[0] - vectors[1]) ** 2).sum())
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    seconds = " | ".join(f"{s:.1f}" for s in np.diff(clock))
    n, d = frame.shape
    return f"| {name} | {n} × {d} | {vectors.shape[1]} | {seconds} | {size:.0f} | {peak:.2f} |"


def real() -> dict[str, tuple[pd.DataFrame, np.ndarray]]:
    """Return real wide tables, and their classes."""
    from sklearn.datasets import load_breast_cancer, load_digits

    if "TABWEAVE_DATA" not in os.environ:
        sys.exit("expected TABWEAVE_DATA to name the folder of the data sets, got nothing; set it")
    folder = Path(os.environ["TABWEAVE_DATA"])
    parts = [pd.read_csv(folder / f"mfeat_{m}.csv.gz") for m in "fac fou kar mor pix zer".split()]
    digits = pd.concat([part.drop(columns="class") for part in parts], axis=1)
    out = {"mfeat, all six": (digits, parts[0]["class"].to_numpy())}
    for part, name in ((parts[0], "mfeat_fac"), (parts[4], "mfeat_pix")):
        out[name] = (part.drop(columns="class"), part["class"].to_numpy())
    for name in ("cora_content", "citeseer_content"):
        papers = pd.read_csv(folder / f"{name}.csv.gz").sample(ROWS, random_state=0)
        words = papers["words"].astype(str).str.get_dummies(" ")
        out[name] = (words.loc[:, words.any()], papers["class"].to_numpy())
    for name, load in (("digits", load_digits), ("breast_cancer", load_breast_cancer)):
        bunch = load(as_frame=True)
        out[name] = (bunch.data, bunch.target.to_numpy())
    return out


def precision(vectors: np.ndarray, y: np.ndarray) -> float:
    """Return the share of the ten nearest rows that are of the row's class, in percent."""
    squares = (vectors**2).sum(axis=1)
    distances = squares[:, None] + squares - 2 * vectors @ vectors.T
    np.fill_diagonal(distances, np.inf)
    return float((y[np.argsort(distances, axis=1)[:, :10]] == y[:, None]).mean() * 100)


def neighbours(frame: pd.DataFrame, y: np.ndarray) -> list[float]:
    """Return the precision of each way to make vectors."""
    from sklearn.preprocessing import StandardScaler

    from tabweave import Weave
    from tabweave.embed import weave

    rows = np.random.default_rng(0).permutation(len(y))[:ROWS]
    frame, y = frame.iloc[rows].reset_index(drop=True), y[rows]
    binary = frame.isin([0, 1]).all(axis=None)
    plain = frame.to_numpy(float) if binary else StandardScaler().fit_transform(frame)
    out = [precision(plain, y), precision(Weave().fit_transform(frame), y)]
    out.append(precision(Weave(n_bins=2).fit_transform(frame), y))
    with mock.patch.object(weave, "MOST_COUPLED", 1):
        return [*out, precision(Weave().fit_transform(frame), y)]


def main() -> None:
    """Print the report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cost", choices=SIZES, help="only what the table of this name costs")
    if name := parser.parse_args().cost:
        print(cost(name))
        return
    print("# Wide tables\n")
    print("How it is measured says `benchmarks/wide.py`; the machine (2 cores) was used by others,")
    print("too, so seconds are those of the processor, on one thread.\n")
    print("    TABWEAVE_DATA=... python benchmarks/wide.py\n")
    print("## Neighbours of the same class among ten, in percent\n")
    print(f"At most {ROWS} rows, drawn.\n")
    print("| table | columns | standardised | Weave | in two bins | not coupled |")
    print("|---|---:|---:|---:|---:|---:|", flush=True)
    found = []
    for name, (frame, y) in real().items():
        found.append(neighbours(frame, y))
        cells = " | ".join(f"{p:.1f}" for p in found[-1])
        print(f"| {name} | {frame.shape[1]} | {cells} |", flush=True)
    cells = " | ".join(f"{p:.1f}" for p in np.mean(found, axis=0))
    print(f"| **mean** | | {cells} |\n\n## Cost of drawn tables\n")
    print(
        "| table | rows × columns | dimensions | fit s | transform s | explain s | save s |", end=""
    )
    print(" file MB | peak GB |\n|---|---:|---:|---:|---:|---:|---:|---:|---:|", flush=True)
    for name in SIZES:
        subprocess.run([sys.executable, __file__, "--cost", name], check=True)


if __name__ == "__main__":
    main()
