"""How fast is the spine? Counting, looking up, memory and import, side by side with the peers.

python benchmarks/speed.py            # 1,000,000 rows, writes benchmarks/reports/speed.md
python benchmarks/speed.py --quick    # 100,000 rows, prints only
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Callable
from itertools import combinations

import numpy as np
import pandas as pd
import pyarrow as pa
from scipy import sparse

from _report import Report, best_of
from tabweave import Counts, OneHot, Table
from tabweave.datasets import make_codes

N_COLUMNS, N_VALUES = 20, 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rows, no report file")
    quick = parser.parse_args().quick
    n = 100_000 if quick else 1_000_000
    report = Report("Speed of the spine", "python benchmarks/speed.py")
    codes = make_codes(n, N_COLUMNS, N_VALUES, random_state=0)
    counting(report, codes)
    transforming(report, codes)
    memory(report, n)
    importing(report)
    report.finish(None if quick else "speed.md")


def categorical_frame(codes: np.ndarray) -> pd.DataFrame:
    names = [f"value {v}" for v in range(N_VALUES)]
    return pd.DataFrame(
        {f"c{i}": pd.Categorical.from_codes(codes[:, i], names) for i in range(codes.shape[1])}
    )


def counting(report: Report, codes: np.ndarray) -> None:
    n, d = codes.shape
    table = Table.of(codes, numbers="nominal")
    frame = categorical_frame(codes)
    arrow = pa.Table.from_pandas(frame)
    pairs = list(combinations(range(d), 2))
    ours = best_of(lambda: Counts.of(table))
    from_pandas = best_of(lambda: Counts.of(frame))
    from_arrow = best_of(lambda: Counts.of(arrow))

    wide = [codes[:, i].astype(np.int64) for i in range(d)]

    def bincounts() -> None:
        for a, b in pairs:
            np.bincount(wide[a] * N_VALUES + wide[b], minlength=N_VALUES**2)

    one_hot = sparse.csr_array(
        (
            np.ones(n * d, np.int64),
            (codes + np.arange(d) * N_VALUES).astype(np.int32).ravel(),
            np.arange(n + 1) * d,
        ),
        shape=(n, d * N_VALUES),
    )

    def product() -> None:
        one_hot.T @ one_hot

    def crosstabs() -> None:
        for a, b in pairs:
            pd.crosstab(frame.iloc[:, a], frame.iloc[:, b])

    expected = (one_hot.T @ one_hot).toarray()
    assert (Counts.of(table).pairs == expected).all(), "the counts differ from the sparse product"
    peers: dict[str, Callable[[], None]] = {
        "scipy sparse ZᵀZ": product,
        "numpy.bincount, all pairs": bincounts,
        "pandas.crosstab, all pairs": crosstabs,
    }
    seconds = {
        name: best_of(call, repeats=1 if "crosstab" in name else 2) for name, call in peers.items()
    }
    bars = {
        "scipy sparse ZᵀZ": 25,
        "numpy.bincount, all pairs": 4,
        "pandas.crosstab, all pairs": 80,
    }
    report.section(f"Counting {n:,} × {d} columns × {N_VALUES} values, all {len(pairs)} pairs")
    report.line(f"Counts.of on codes: {ours * 1e3:.1f} ms")
    for name, peer in seconds.items():
        report.ratio(f"Counts.of on codes against {name}", peer, ours, bars[name])
    reference = seconds["scipy sparse ZᵀZ"]
    report.ratio("from a pandas categorical frame against ZᵀZ", reference, from_pandas, 15)
    report.ratio("from an Arrow dictionary table against ZᵀZ", reference, from_arrow, 15)


def transforming(report: Report, codes: np.ndarray) -> None:
    frame = categorical_frame(codes)
    report.section(f"Transform of {len(codes):,} rows against copying its output twice")
    for dtype in ("float32", "float64"):
        embedder = OneHot(dtype=dtype, schema="nominal").fit(frame)
        out = embedder.transform(frame)
        ours = best_of(lambda e=embedder: e.transform(frame))
        twice = best_of(lambda o=out: (o.copy(), None)[1] or o.copy())
        report.ratio(f"{dtype}, {out.shape[1]} dimensions, from a pandas frame", twice, ours, 1)


_MEMORY = """
import sys, numpy as np
from tabweave import OneHot
from tabweave.datasets import make_codes
codes = make_codes({n}, 20, 10, random_state=0)
if {frame}:
    import pandas as pd
    names = [str(v) for v in range(10)]
    columns = [pd.Categorical.from_codes(codes[:, i], names) for i in range(20)]
    X = pd.DataFrame({{f"c{{i}}": column for i, column in enumerate(columns)}})
    del columns
    size = codes.nbytes
    del codes
else:
    X, size = codes, codes.nbytes
OneHot().fit(X[:500_000])  # compiled first: of fewer rows plain loops take care
def kilobytes(key):
    return int(next(l for l in open("/proc/self/status") if l.startswith(key)).split()[1])
before = kilobytes("VmRSS")
open("/proc/self/clear_refs", "w").write("5")
OneHot().fit(X)
print((size + 1024 * (kilobytes("VmHWM") - before)) / size)
"""


def memory(report: Report, n: int) -> None:
    report.section("Peak memory of fit, codes included, as a multiple of the codes")
    for name, frame in (("NumPy codes", 0), ("pandas categorical frame", 1)):
        code = _MEMORY.format(n=n, frame=frame)
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        if done.returncode:
            report.line(f"{name}: not measured here ({done.stderr.strip().splitlines()[-1]})")
        else:
            report.at_most(f"{name}", float(done.stdout), 1.6)


def importing(report: Report) -> None:
    report.section("Import, in alternating fresh processes (median of 15)")
    times: dict[str, list[float]] = {"sklearn.base": [], "tabweave": []}
    for _ in range(15):
        for module, seen in times.items():
            code = (
                "import time; t = time.perf_counter(); "
                f"import {module}; print(time.perf_counter() - t)"
            )
            done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
            seen.append(float(done.stdout))
    ours, base = (float(np.median(times[m])) for m in ("tabweave", "sklearn.base"))
    report.line(f"import sklearn.base {base:.3f} s, import tabweave {ours:.3f} s")
    report.at_most("import tabweave / import sklearn.base", ours / base, 1.35)


if __name__ == "__main__":
    main()
