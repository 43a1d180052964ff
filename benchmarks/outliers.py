"""Planted errors in tables of numbers and categories, and who finds their cells and rows.

    TABWEAVE_DATA=... python benchmarks/outliers.py rows [--sets choosing|reporting] [--rows 500]
    TABWEAVE_DATA=... python benchmarks/outliers.py swaps [--sets choosing|reporting] [--rows 300]
    TABWEAVE_DATA=... python benchmarks/outliers.py first [--sets choosing|reporting] [--rows 1000]
    python benchmarks/outliers.py speed

*rows*: tables of at least three numbers, one kind of error planted at a time, in 1 % of the rows
(in 5 % for "ten, many"): a number times ten; a cell swapped for another of its column; two numbers
of a row exchanged; a number shifted by four robust deviations. The score of a method is the area
under the ROC curve of its row scores. *swaps*: 1 % of the cells of nominal and mixed tables are
swapped with cells of the same column. *first*: one to ten numbers times ten; a planting is found if
these cells are the first of the list. Real columns take part if a factor of ten takes 99 % of their
numbers beyond their largest. Peers see one-hot codes beside standardised numbers: scikit-learn's
IsolationForest and LocalOutlierFactor with their defaults. False alarms: the share of fresh, clean
rows whose p-value is at most 0.05 (rows are cut in halves, one is fitted).
"""

from __future__ import annotations

import argparse
import resource
import time
import warnings

import numpy as np
import pandas as pd
from sklearn.ensemble import IsolationForest
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import LocalOutlierFactor

from impute import Coded, markdown, table

NUMERIC = (
    "adult_mixed australian blood german_credit heart_disease ilpd ionosphere iris magic_telescope "
    "mfeat_mor parkinsons planning_relax robot_navigation seeds segment_full vowel waveform "
    "wine_quality_red"
).split()
# what the list of the shared data calls general tables: never looked at while choosing
GENERAL = "aids2 computers diamonds doctor_aus fair_affairs kakadu participation".split()
NOMINAL = (
    "adult_mixed australian crx dermatology german_credit heart_disease house_votes_full krvskp "
    "letters lymphography mammographic mushroom nursery soybean_large zoo"
).split()
SETS = {
    "choosing": {"rows": NUMERIC[::2], "swaps": NOMINAL[::2]},
    "reporting": {"rows": NUMERIC[1::2] + GENERAL, "swaps": NOMINAL[1::2]},
}
KINDS = ("ten", "ten, many", "swapped", "exchanged", "shifted")


# -- errors ---------------------------------------------------------------------------------------


def planted(frame: pd.DataFrame, kind: str, seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Return a table with one kind of error, and which cells are wrong."""
    rng = np.random.default_rng(seed)
    numbers = [c for c in frame if frame[c].dtype == float]
    n = max(3, round((0.05 if kind == "ten, many" else 0.01) * len(frame)))
    out, odd = frame.copy(), np.zeros(frame.shape, bool)
    for row in rng.permutation(len(frame)).tolist():
        cells = wrong(frame, row, kind, numbers, rng)
        for column, value in cells.items():
            at = frame.columns.get_loc(column)
            out.iloc[row, at], odd[row, at] = value, True
        n -= bool(cells)
        if not n:
            break
    return out, odd


def wrong(
    frame: pd.DataFrame, row: int, kind: str, numbers: list[str], rng: np.random.Generator
) -> dict[str, object]:
    """Return wrong cells of a row; none if the row has nothing to make wrong."""
    if kind == "swapped":
        column = list(frame)[rng.integers(frame.shape[1])]
        value, other = frame[column].iloc[row], frame[column].iloc[rng.integers(len(frame))]
        return {} if value == other or pd.isna(value) or pd.isna(other) else {column: other}
    if kind == "exchanged":
        a, b = rng.choice(numbers, 2, replace=False)
        x, y = frame[a].iloc[row], frame[b].iloc[row]
        return {} if x == y or np.isnan(x + y) else {a: y, b: x}
    column = numbers[rng.integers(len(numbers))]
    value = frame[column].iloc[row]
    if np.isnan(value):
        return {}
    if kind == "shifted":
        low, high = frame[column].quantile([0.25, 0.75])
        deviation = (high - low) / 1.35 or frame[column].std()
        return {column: value + rng.choice([-4, 4]) * deviation}
    return {column: value * 10} if value else {}


def swapped(frame: pd.DataFrame, seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Return a table with 1 % of its cells swapped, and which rows have one."""
    rng = np.random.default_rng(seed)
    out, odd = frame.copy(), np.zeros(len(frame), bool)
    columns = [c for c in frame if frame[c].nunique() > 1]
    cells = {c: frame[c].to_numpy(dtype=object).copy() for c in columns}
    for _ in range(max(1, round(0.005 * frame.size))):  # a swap touches two cells
        c = columns[rng.integers(len(columns))]
        a = rng.integers(len(frame))
        others = np.flatnonzero((cells[c] != cells[c][a]) & ~odd)
        if odd[a] or not len(others):
            continue
        b = rng.choice(others)
        cells[c][a], cells[c][b] = cells[c][b], cells[c][a]
        odd[[a, b]] = True
    for c in columns:
        out[c] = pd.Series(cells[c], index=frame.index).astype(frame[c].dtype)
    return out, odd


# -- methods --------------------------------------------------------------------------------------


def ours(frame: pd.DataFrame) -> np.ndarray:
    from tabweave import OutlierCells
    from tabweave.tasks.outliers import row_scores

    model = OutlierCells().fit(frame)
    return row_scores(model._fit_scores)  # as fit_predict has them: each row by models of others


def isolation_forest(frame: pd.DataFrame) -> np.ndarray:
    x = np.nan_to_num(Coded(frame).one_hot()[0])
    return -IsolationForest(random_state=0).fit(x).score_samples(x)


def local_outlier_factor(frame: pd.DataFrame) -> np.ndarray:
    x = np.nan_to_num(Coded(frame).one_hot()[0])
    return -LocalOutlierFactor().fit(x).negative_outlier_factor_


METHODS = {
    "OutlierCells": ours,
    "IsolationForest": isolation_forest,
    "LOF": local_outlier_factor,
}


def alarms(frame: pd.DataFrame) -> float:
    from tabweave import OutlierCells

    order = np.random.default_rng(0).permutation(len(frame))
    half = len(frame) // 2
    fitted, fresh = frame.iloc[order[:half]], frame.iloc[order[half:]]
    return float(np.mean(OutlierCells().fit(fitted).row_p_values(fresh) <= 0.05))


# -- what is measured -----------------------------------------------------------------------------


def measure_rows(half: str, n_rows: int) -> None:
    """Print the areas of each set and kind of error, their means, and who is ahead where."""
    lines = []
    for name in SETS[half]["rows"]:
        frame = table(name, n_rows)
        for kind in KINDS:
            broken, odd = planted(frame, kind, 0)
            line: dict[str, object] = {"set": name, "kind": kind}
            for method, score in METHODS.items():
                start = time.process_time()
                line[method] = roc_auc_score(odd.any(axis=1), score(broken))
                line[f"{method}, s"] = time.process_time() - start
            lines.append(line)
        print("#", name, "false alarms", alarms(frame), flush=True)
    found = pd.DataFrame(lines)
    print(markdown(found.groupby("kind", sort=False)[list(METHODS)].mean()))
    by_set = found.groupby("set", sort=False)[list(METHODS)].mean()
    by_set.loc["mean"] = by_set.mean()
    print(markdown(by_set))
    for kind in KINDS:
        own = found[found["kind"] == kind]
        for peer in list(METHODS)[1:]:
            ahead = int((own["OutlierCells"] >= own[peer]).sum())
            print(f"{kind}: at least {peer} on {ahead} of {len(own)}")
    print(found[[c for c in found if c.endswith(", s")]].mean().round(2).to_dict())


def measure_swaps(half: str, n_rows: int) -> None:
    lines = []
    for name in SETS[half]["swaps"]:
        frame = table(name, n_rows)
        broken, odd = swapped(frame, 0)
        line = {"set": name}
        for method, score in METHODS.items():
            line[method] = roc_auc_score(odd, score(broken))
        lines.append(line | {"false alarms at 0.05": alarms(frame)})
    found = pd.DataFrame(lines).set_index("set")
    found.loc["mean"] = found.mean()
    print(markdown(found))


def people(n_rows: int, seed: int) -> pd.DataFrame:
    """Return a table of people."""
    rng = np.random.default_rng(seed)
    sex = rng.choice(["f", "m"], n_rows)
    height = np.where(sex == "m", 178, 165) + rng.normal(0, 7, n_rows)
    return pd.DataFrame(
        {
            "sex": sex,
            "city": rng.choice(["Paris", "Lyon", "Lille"], n_rows, p=[0.5, 0.3, 0.2]),
            "height": height.round(),
            "weight": (0.9 * (height - 100) + rng.normal(0, 9, n_rows)).round(),
            "age": rng.integers(18, 80, n_rows).astype(float),
            "income": rng.lognormal(7.5, 0.5, n_rows).round(),
        }
    )


def beyond_its_column(values: pd.Series) -> bool:
    """Tell whether ten times a number would be beyond all others, for 99 % of them."""
    values = values.dropna()
    return bool(values.min() > 0 and 10 * values.quantile(0.01) > values.max())


def measure_first(half: str, n_rows: int) -> None:
    """Print in how many plantings the cells that are wrong are the first of the list."""
    frames = {f"people {i}": people(n_rows, i + 100 * (half == "reporting")) for i in range(5)}
    frames |= {name: table(name, n_rows) for name in SETS[half]["rows"]}
    lines = []
    for name, frame in frames.items():
        numbers = [c for c in frame if frame[c].dtype == float and beyond_its_column(frame[c])]
        if not numbers:
            continue
        cells, rows, forest = [], [], []
        for n in range(1, 11):
            found = planting(frame, numbers, n)
            cells.append(found[0])
            rows.append(found[1])
            forest.append(found[2])
        line = {"set": name, "rows": len(frame), "columns": len(numbers)}
        line |= {"cells first": np.sum(cells), "rows first": np.sum(rows)}
        lines.append(line | {"IsolationForest, rows first": np.sum(forest)})
        print("#", lines[-1], flush=True)
    found = pd.DataFrame(lines).set_index("set")
    print(markdown(found))
    print(f"of {10 * len(found)} plantings:", found.iloc[:, 2:].sum().to_dict())


def planting(frame: pd.DataFrame, numbers: list[str], n: int) -> tuple[bool, bool, bool]:
    """Plant n cells; tell whether they, or their rows by ours or by the forest, are the first."""
    from tabweave import OutlierCells

    rng, broken = np.random.default_rng(n), frame.copy()
    rows = rng.choice(len(frame), n, replace=False)
    wrong_cells = set()
    for row in rows.tolist():
        present = [c for c in numbers if not np.isnan(frame[c].iloc[row])]
        column = str(rng.choice(present))
        broken.iloc[row, broken.columns.get_loc(column)] *= 10
        wrong_cells.add((row, column))
    listed = {(cell.row, cell.column) for cell in OutlierCells().fit_cells(broken, n)}
    forest = np.argsort(-isolation_forest(broken))[:n]
    by_row = {row for row, _ in listed} == set(rows.tolist())
    return listed == wrong_cells, by_row, set(forest.tolist()) == set(rows.tolist())


def measure_speed() -> None:
    """Print seconds of processor time and peak memory, small and wide, and of a million rows."""
    from tabweave import OutlierCells

    rng = np.random.default_rng(0)
    for n_rows, n_columns in ((120, 300), (1000, 10), (20_000, 10), (1_000_000, 10)):
        group = rng.integers(0, 4, n_rows)
        columns = {}
        for j in range(n_columns):
            letter = np.where(rng.random(n_rows) < 0.6, group, rng.integers(0, 4, n_rows))
            number = group + rng.normal(size=n_rows)
            columns[f"c{j}"] = np.array(list("abcd"))[letter] if j % 2 else number
        start = time.process_time()
        OutlierCells().fit_predict(pd.DataFrame(columns))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
        print(n_rows, n_columns, round(time.process_time() - start, 1), "s", peak, "MB", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=["rows", "swaps", "first", "speed"])
    parser.add_argument("--rows", type=int)
    parser.add_argument("--sets", default="reporting", choices=["choosing", "reporting"])
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    if asked.part == "rows":
        measure_rows(asked.sets, asked.rows or 500)
    elif asked.part == "swaps":
        measure_swaps(asked.sets, asked.rows or 300)
    elif asked.part == "first":
        measure_first(asked.sets, asked.rows or 1000)
    else:
        measure_speed()


if __name__ == "__main__":
    main()
