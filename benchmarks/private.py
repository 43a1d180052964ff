"""Private counts: what noise leaves of distances and of sampled rows, beside mbi, and an audit.

    python benchmarks/private.py --data FOLDER     # writes benchmarks/reports/private.md

Tables: adult (categories), nursery, and diamonds with its numbers in public bins, named before
anything was measured; connect4 (distances alone) and krkopt were added, since nursery is
balanced by design: its columns are independent to the digit. mbi (McKenna et al.) is asked in two
ways: MST (margins, then the pairs of a tree, chosen privately), and its mixture of products, fitted
to tables of all pairs with the noise that ours have. Needs ``pip install mbi opendp lightgbm``.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats
from sklearn.metrics import accuracy_score

from tabweave import Counts, OneHot, Table, Weave
from tabweave.counts.private import rho_of
from tabweave.tasks import PairMixture

HERE = Path(__file__).parent
DELTA = 1e-6
EPSILONS = (0.25, 1.0, 4.0)
DIAMOND_BINS = {
    "carat": [0.3, 0.4, 0.5, 0.7, 0.9, 1.0, 1.2, 1.5, 2.0],
    "depth": [58, 60, 61, 62, 63, 64, 66],
    "table": [54, 56, 57, 58, 59, 61],
    "price": [600, 1000, 1500, 2500, 4000, 6000, 10000],
}
CLASSES = {"adult_categorical": "class", "nursery": "class", "diamonds": "cut", "krkopt": "class"}
DISTANCES_ALONE = ("connect4",)


def load(folder: Path, name: str) -> pd.DataFrame:
    """Read a table as text; numbers of diamonds in public bins."""
    frame = pd.read_csv(folder / f"{name}.csv.gz")
    if name == "diamonds":
        frame = frame.rename(columns={"class": "cut"}) if "cut" not in frame else frame
        frame = frame[[c for c in frame if c not in ("x", "y", "z")]]
        for column, edges in DIAMOND_BINS.items():
            frame[column] = np.searchsorted(edges, frame[column], "right")
    return frame.astype(str)


def correlations(frame: pd.DataFrame, public: dict, epsilon: float, runs: int) -> list[float]:
    """Correlation of Weave's distances by private counts with the exact ones, per run."""
    counts = Counts.of(Table.of(frame, "nominal"))
    asked = frame.iloc[np.random.default_rng(0).choice(len(frame), 500, replace=False)]
    upper = np.triu_indices(len(asked), 1)
    exact = Weave().fit_counts(counts).pairwise_distances(asked)[upper]
    out = []
    for _ in range(runs):
        shared = counts.private(epsilon, DELTA, values=public, again=True)
        noisy = Weave().fit_counts(shared).pairwise_distances(asked)[upper]
        out.append(float(np.corrcoef(exact, noisy)[0, 1]))
    onehot = OneHot(schema="nominal").fit(frame).pairwise_distances(asked)[upper]
    return [*out, float(np.corrcoef(exact, onehot)[0, 1])]


def codes_of(frame: pd.DataFrame, public: dict) -> dict[str, np.ndarray]:
    """Codes of each column, by the public values."""
    return {n: pd.Categorical(frame[n], categories=v).codes.astype(int) for n, v in public.items()}


def total_variation(real: dict, made: dict, public: dict) -> float:
    """Mean over pairs of columns of half the L1 distance of their tables."""
    out = []
    for a, b in combinations(public, 2):
        tables = []
        for codes in (real, made):
            table = np.zeros((len(public[a]), len(public[b])))
            known = (codes[a] >= 0) & (codes[b] >= 0)
            np.add.at(table, (codes[a][known], codes[b][known]), 1 / len(codes[a]))
            tables.append(table)
        out.append(abs(tables[0] - tables[1]).sum() / 2)
    return float(np.mean(out))


def accuracy(made: dict, test: dict, target: str) -> float:
    """Accuracy on real rows of LightGBM trained on made ones."""
    from lightgbm import LGBMClassifier

    names = [n for n in made if n != target]
    model = LGBMClassifier(n_estimators=100, verbose=-1, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(np.column_stack([made[n] for n in names]), made[target])
        guess = model.predict(np.column_stack([test[n] for n in names]))
    return float(accuracy_score(test[target], guess))


# -- what makes rows -------------------------------------------------------------------------------


def ours(train: pd.DataFrame, public: dict, epsilon: float, seed: int) -> dict:
    """Rows of the mixture of private pair counts."""
    counts = Counts.of(Table.of(train, "nominal"))
    shared = counts.private(epsilon, DELTA, values=public)
    frame = PairMixture.of(shared, random_state=seed).sample(len(train), random_state=seed)
    return codes_of(frame, public)


def _domain(public: dict):
    import mbi

    return mbi.Domain(list(public), [len(v) for v in public.values()])


def _as_codes(data, public: dict) -> dict:
    return {name: np.asarray(data.to_dict()[name]) if hasattr(data, "to_dict")
            else np.asarray(data.data[name]) for name in public}  # fmt: skip


def noisy_pairs(train: dict, public: dict, scale: float, cliques, rng) -> list:
    """Measurements for mbi, of some tables with Gaussian noise."""
    import mbi

    out = []
    for clique in cliques:
        table = np.zeros([len(public[n]) for n in clique])
        np.add.at(table, tuple(train[n] for n in clique), 1.0)
        noisy = table.ravel() + rng.normal(0, scale, table.size)
        out.append(mbi.LinearMeasurement(noisy, tuple(clique), scale))
    return out


def mst(train: pd.DataFrame, public: dict, epsilon: float, seed: int) -> dict:
    """McKenna, Miklau, Sheldon (2021): a third of rho each for margins, the tree, its pairs."""
    from mbi import estimation
    from scipy.special import softmax

    rng, codes, names = np.random.default_rng(seed), codes_of(train, public), list(public)
    rho = rho_of(epsilon, DELTA)
    scale = np.sqrt(len(names) / (2 * rho / 3))
    measured = noisy_pairs(codes, public, scale, [(n,) for n in names], rng)
    model = estimation.MirrorDescent().estimate(_domain(public), measured, iters=500)
    weights = {}
    for a, b in combinations(names, 2):
        table = np.zeros((len(public[a]), len(public[b])))
        np.add.at(table, (codes[a], codes[b]), 1.0)
        guess = np.asarray(model.project((a, b)).values).reshape(table.shape)
        weights[a, b] = abs(table - guess).sum()
    group = {n: {n} for n in names}
    step = np.sqrt(8 * (rho / 3) / (len(names) - 1))  # of the exponential mechanism
    tree = []
    for _ in range(len(names) - 1):
        open_pairs = [p for p in weights if group[p[0]] is not group[p[1]]]
        scores = np.array([weights[p] for p in open_pairs])
        chosen = open_pairs[rng.choice(len(open_pairs), p=softmax(0.5 * step * scores))]
        tree.append(chosen)
        joined = group[chosen[0]] | group[chosen[1]]
        for name in joined:
            group[name] = joined
    scale = np.sqrt(len(tree) / (2 * rho / 3))
    measured += noisy_pairs(codes, public, scale, tree, rng)
    model = estimation.MirrorDescent().estimate(_domain(public), measured, iters=2000)
    return _as_codes(model.synthetic_data(rows=len(train)), public)


def mixture_of_mbi(train: pd.DataFrame, public: dict, epsilon: float, seed: int) -> dict:
    """A mixture of products by mbi, fitted to the same tables with the same noise."""
    import optax
    from mbi.extensions import MixtureOfProductsEstimator

    rng, codes, names = np.random.default_rng(seed), codes_of(train, public), list(public)
    cliques = [(n,) for n in names] + list(combinations(names, 2))
    scale = np.sqrt(len(cliques) / (2 * rho_of(epsilon, DELTA)))
    measured = noisy_pairs(codes, public, scale, cliques, rng)
    estimator = MixtureOfProductsEstimator(optimizer=optax.adam(0.1), seed=seed)
    model = estimator.estimate(_domain(public), measured, iters=1000)
    return _as_codes(model.synthetic_data(rows=len(train)), public)


WAYS = {"tabweave": ours, "mbi, MST": mst, "mbi, mixture of all pairs": mixture_of_mbi}


def audit(epsilon: float, releases: int) -> tuple[float, float]:
    """Lower bound of epsilon (95 %) by a cut chosen on half of the releases, and delta."""
    rng = np.random.default_rng(0)
    table = {"a": [f"a{v}" for v in rng.integers(0, 3, 60)]}
    table["b"] = [f"b{v}" for v in rng.integers(0, 2, 60)]
    public = {"a": ["a0", "a1", "a2", "rare"], "b": ["b0", "b1", "rare"]}
    present = {k: [*v, "rare"] for k, v in table.items()}
    delta = 1e-3

    def evidence(cells):
        counts, out = Counts.of(cells), []
        for _ in range(releases):
            shared = counts.private(epsilon, delta, values=public, again=True)
            at = [shared.span(i).start + labels.index("rare")
                  for i, labels in enumerate(shared.labels) if "rare" in labels]  # fmt: skip
            out.append(np.asarray(shared.pairs)[np.ix_(at, at)].sum())
        return np.array(out)

    inside, outside, half = evidence(present), evidence(table), releases // 2
    best = 0.0
    cuts = np.quantile(np.concatenate([inside[:half], outside[:half]]), np.linspace(0.02, 0.98, 49))
    gain = [np.log(max((inside[:half] >= c).mean() - delta, 1e-9)
                   / max((outside[:half] >= c).mean(), 0.02)) for c in cuts]  # fmt: skip
    cut = cuts[int(np.argmax(gain))]
    true = stats.binomtest(int((inside[half:] >= cut).sum()), half).proportion_ci(0.95).low
    false = stats.binomtest(int((outside[half:] >= cut).sum()), half).proportion_ci(0.95).high
    return max(best, float(np.log(max(true - delta, 1e-9) / false))), delta


def main() -> int:
    """Measure, and write the report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of the three tables")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--releases", type=int, default=2000, help="of the audit, with and without")
    options = parser.parse_args()
    lines = ["# Private counts", "", f"    python benchmarks/private.py --data FOLDER --runs "
             f"{options.runs} --releases {options.releases}", "",
             "Distances of 500 rows by Weave, from private counts (public values, delta 1e-6) and "
             "exact ones: correlation, lowest and mean of the runs.", "",
             "| table | rows × columns | epsilon | lowest | mean | one-hot beside exact |",
             "|---|---|---|---|---|---|"]  # fmt: skip
    rows = ["", "Rows sampled from the mixture, as many as were learned from (four fifths); total "
            "variation over all pairs of columns, and accuracy on the real fifth of LightGBM "
            "trained on sampled rows; means of the runs, epsilon 1.", "",
            "| table | made by | total variation | accuracy | seconds |",
            "|---|---|---|---|---|"]  # fmt: skip
    for name in (*CLASSES, *DISTANCES_ALONE):
        frame = load(options.data, name)
        public = {n: sorted(frame[n].unique()) for n in frame}
        for epsilon in EPSILONS:
            *found, onehot = correlations(frame, public, epsilon, options.runs)
            lines.append(f"| {name} | {len(frame):,} × {frame.shape[1]} | {epsilon} | "
                         f"{min(found):.4f} | {np.mean(found):.4f} | {onehot:.4f} |")  # fmt: skip
            print(lines[-1], flush=True)
        if (target := CLASSES.get(name)) is None:
            continue
        order = np.random.default_rng(0).permutation(len(frame))
        cut = len(frame) * 4 // 5
        train, test = frame.iloc[order[:cut]], frame.iloc[order[cut:]]
        real, held_out = codes_of(train, public), codes_of(test, public)
        rows.append(f"| {name} | real rows | 0 | {accuracy(real, held_out, target):.3f} | |")
        for way, make in WAYS.items():
            scores = []
            for seed in range(options.runs):
                start = time.process_time()
                made = make(train, public, 1.0, seed)
                seconds = time.process_time() - start
                scores.append((total_variation(real, made, public),
                               accuracy(made, held_out, target), seconds))  # fmt: skip
            variation, score, seconds = np.mean(scores, axis=0)
            rows.append(f"| {name} | {way} | {variation:.4f} | {score:.3f} | {seconds:.0f} |")
            print(rows[-1], flush=True)
    audits = ["", "Membership attack: whether a row with values of its own is among 60; lower "
              "bound of epsilon, 95 % sure, on releases that took no part in choosing the cut.", "",
              "| epsilon stated | lower bound |", "|---|---|"]  # fmt: skip
    for epsilon in (0.5, 1.0, 2.0, 4.0):
        bound, delta = audit(epsilon, options.releases)
        audits.append(f"| {epsilon} (delta {delta:g}) | {bound:.2f} |")
        print(audits[-1], flush=True)
    text = "\n".join([*lines, *rows, *audits, ""])
    (HERE / "reports" / "private.md").write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
