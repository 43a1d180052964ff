"""Cells swapped between rows of 15 tables, and who finds the rows.

    TABWEAVE_DATA=... python benchmarks/outliers.py [--rows 1000] [--sets choosing|reporting|all]

1 % of the cells of a table are swapped with cells of the same column in other rows that hold
something else; the score of a method is the area under the ROC curve of its row scores, rows with a
swapped cell against the others, one draw. Peers see one-hot codes beside standardised
numbers: isolation forest, ECOD and LOF of pyod with their defaults. False alarms: the share of
fresh, clean rows whose p-value is at most 0.05 (rows are cut in halves, one is fitted).
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score

from impute import Coded, markdown, table

SETS = (
    "adult_mixed australian crx dermatology german_credit heart_disease house_votes_full krvskp "
    "letters lymphography mammographic mushroom nursery soybean_large zoo"
).split()
CHOOSING, REPORTING = SETS[::2], SETS[1::2]
DRAWS = 1


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


def peer(name: str):
    def score(frame: pd.DataFrame) -> np.ndarray:
        from pyod.models.ecod import ECOD
        from pyod.models.iforest import IForest
        from pyod.models.lof import LOF

        x = np.nan_to_num(Coded(frame).one_hot()[0])
        made = {"isolation forest": IForest(random_state=0), "ECOD": ECOD(), "LOF": LOF()}[name]
        return made.fit(x).decision_scores_

    return score


def ours(**parameters: object):
    def score(frame: pd.DataFrame) -> np.ndarray:
        from tabweave import OutlierCells

        return -OutlierCells(**parameters).fit(frame).score_samples(frame)

    return score


METHODS = {
    "OutlierCells": ours(),
    "OutlierCells, counts": ours(engine="counts"),
    "OutlierCells, mixture": ours(engine="mixture"),
    "isolation forest": peer("isolation forest"),
    "ECOD": peer("ECOD"),
    "LOF": peer("LOF"),
}


def alarms(frame: pd.DataFrame) -> float:
    from tabweave import OutlierCells

    order = np.random.default_rng(0).permutation(len(frame))
    half = len(frame) // 2
    fitted, fresh = frame.iloc[order[:half]], frame.iloc[order[half:]]
    return float(np.mean(OutlierCells().fit(fitted).row_p_values(fresh) <= 0.05))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--sets", default="all", choices=["choosing", "reporting", "all"])
    parser.add_argument("--methods", nargs="*", default=list(METHODS))
    given = parser.parse_args()
    chosen = {"choosing": CHOOSING, "reporting": REPORTING, "all": SETS}[given.sets]
    rows = []
    for name in chosen:
        frame = table(name, given.rows)
        line = {"set": name}
        for method in given.methods:
            start, found = time.perf_counter(), []
            for seed in range(DRAWS):
                broken, odd = swapped(frame, seed)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    found.append(roc_auc_score(odd, METHODS[method](broken)))
            line[method] = float(np.mean(found))
            line[f"{method}, s"] = (time.perf_counter() - start) / DRAWS
        line["false alarms at 0.05"] = alarms(frame)
        rows.append(line)
        print("#", line, flush=True)
    found = pd.DataFrame(rows).set_index("set")
    found.loc["mean, choosing half"] = found[found.index.isin(CHOOSING)].mean()
    found.loc["mean, reporting half"] = found[found.index.isin(REPORTING)].mean()
    print(markdown(found))


if __name__ == "__main__":
    main()
