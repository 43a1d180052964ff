"""Every label of docs/papers.md, against the reports that it names.

For each figure and table ``PRINT`` says what print claims, as a list of truths computed from the
figures of our reports. A row of the page is *reproduced* if all of them hold, *differs in part* if
some do, and *differs* if none does. So a label that contradicts its report fails here, and so does
one whose report was measured again with another outcome.
"""

import re
from collections.abc import Callable, Iterable
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
REPORTS = ROOT / "benchmarks" / "reports"
MAX_MAD = 3  # points: a method's column of a printed table is reproduced below it
STATES = ("reproduced", "differs in part", "differs", "not possible", "as ")


# -- reading reports ----------------------------------------------------------------------------


@cache
def text(report: str) -> str:
    return (REPORTS / f"{report}.md").read_text(encoding="utf-8")


def number(cell: str) -> float:
    """The first number of a cell; what stands behind the arrow, where print stands before it."""
    found = re.search(r"[-+]?\d[\d,]*\.?\d*(e[-+]?\d+)?", cell.split("→")[-1].replace("*", ""))
    assert found, f"no number in {cell!r}"
    return float(found[0].replace(",", ""))


def tables_of_lines(report: str, heading: str = "") -> list[list[dict[str, str]]]:
    """The tables below the first heading that contains a text, line by line."""
    lines = text(report).splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("#") and heading in line)
    out: list[list[dict[str, str]]] = []
    header: list[str] | None = None
    for line in lines[start + 1 :]:
        if line.startswith("#") and heading:
            break
        if not line.startswith("|"):
            header = None
            continue
        row = [cell.strip() for cell in line.strip("|").split("|")]
        if header is None:
            header = row
            out.append([])
        elif not set(line) <= set("|-: "):
            out[-1].append(dict(zip(header, row, strict=False)))
    return out


def tables(report: str, heading: str = "") -> list[dict[str, dict[str, str]]]:
    """The same by the first cell of each line; of lines that share it, by the first two."""
    out = []
    for lines in tables_of_lines(report, heading):
        out.append({})
        for row in lines:
            first, second, *_ = row.values()
            out[-1][first if first not in out[-1] else f"{first} {second}"] = row
    return out


def table(report: str, heading: str = "", nth: int = 0) -> dict[str, dict[str, str]]:
    return tables(report, heading)[nth]


def numbers(row: dict[str, str], columns: Iterable[str] | None = None) -> list[float]:
    return [number(row[c]) for c in (list(row)[1:] if columns is None else columns)]


# -- forms of claims ----------------------------------------------------------------------------


def cells(report: str, *methods: str, rows: Callable[[str], bool] | None = None) -> list[bool]:
    """Each method's column is within MAX_MAD of print, in the mean over the sets."""
    published = tables(report, "ublished → measured" if "8." not in report else "")[0]
    out = []
    for method in methods:
        gaps = []
        for name, row in published.items():
            parts = row.get(method, "").replace("*", "").split("→")
            if "mean" not in name and len(parts) == 2 and (rows is None or rows(name)):
                gaps.append(abs(number(parts[0]) - number(parts[1])))
        assert len(gaps) >= 2, f"{report} has no column {method!r} beside print"
        out.append(sum(gaps) / len(gaps) <= MAX_MAD)
    return out


def leads(
    report: str, heading: str, first: str, *, nth: int | None = None, lowest: bool = False
) -> list[bool]:
    """A method is ahead of all others in the mean over a table's columns; of each table."""
    found = tables(report, heading)
    out = []
    for rows in found if nth is None else [found[nth]]:
        means = {name: sum(numbers(row)) / len(numbers(row)) for name, row in rows.items()}
        others = [mean for name, mean in means.items() if name != first]
        out.append(means[first] < min(others) if lowest else means[first] > max(others))
    return out


def curves(heading: str, first: str) -> list[bool]:
    """Precision@k, the mean over k: whether a method is ahead on each of the sets."""
    out = []
    for rows in tables("figures", heading):
        means = {
            name: sum(numbers(row, [c for c in row if c.startswith("P@")]))
            for name, row in rows.items()
        }
        out.append(means[first] == max(means.values()))
    return out


def margins(heading: str, first: str, others: Callable[[str], bool] = bool) -> list[bool]:
    """The mean margin γ over ε: whether a method is ahead on each set."""
    by_set: dict[str, dict[str, float]] = {}
    for row in table("goodness", heading).values():
        name, method, *values = row.values()
        by_set.setdefault(name, {})[method] = sum(map(float, values))
    return [
        found[first] == max(v for m, v in found.items() if m == first or others(m))
        for found in by_set.values()
    ]


def clearest(figure: str, first: str) -> list[bool]:
    """A map's silhouette above those of all other methods."""
    rows = table("maps", f"Figure {figure}")
    found = {name: number(row["silhouette"]) for name, row in rows.items()}
    return [found[first] > max(v for name, v in found.items() if not name.startswith(first))]


def growth(rows: dict[str, dict[str, str]], column: str) -> float:
    """How many times the seconds grow, for each time that the size does, from first to last."""
    sizes = [number(name) for name in rows]
    seconds = [number(row[column]) for row in rows.values()]
    return (seconds[-1] / seconds[0]) / (sizes[-1] / sizes[0])


def study(name: str) -> dict[str, float]:
    """A line of parameters of studies.md: value to F."""
    line = next(ln for ln in text("studies").splitlines() if ln.startswith(f"- {name}"))
    return {
        key.strip(): float(value)
        for key, value in re.findall(r"([\w. ]+): ([\d.]+)(?:,|$)", line.split("):")[-1])
    }


def loss(report: str, figure: str, most: float) -> list[bool]:
    """The share of the way that a loss has left to go; of each set."""
    return [
        number(list(row.values())[-1]) <= most for row in table(report, f"Figure {figure}").values()
    ]


def below_joined(rows_are: str) -> list[bool]:
    """GBC's error below that of all columns joined, in each setting of the thesis's tasks."""
    lines = tables_of_lines("sources-gbc", "Errors")[0] + tables_of_lines("sources-gbc", "Films")[0]
    return [
        number(line["GBC"]) < number(line["joined"])
        for line in lines
        if line["rows"] == rows_are and line["task"] in ("mfeat", "terrorist", "movies")
    ]


def ablation(variant: str, task: str) -> float:
    rows = table("sources-gbc", "Ablations")
    return number(rows[variant][task])


# -- what print claims --------------------------------------------------------------------------

SIX = ("COS", "Ahmad", "DILCA", "Rough", "Hamming", "OF")
LOW = ("cKML-intra", "COS-intra", "cKML-inter", "COS-inter", "cKML", "COS")
FIVE = SIX[:5]


def table_4_6() -> list[bool]:
    """Means over 26 sets within a point and a half, and the inter-coupling measures in order."""
    printed = dict(zip(LOW, (75.46, 30.78, 76.49, 76.17, 76.75, 75.17), strict=True))
    rows = table("table-4.6", "Means")
    measured = {name: number(rows[name]["measured mean"]) for name in LOW}
    close = [abs(measured[name] - printed[name]) <= 1.5 for name in LOW]
    return [*close, measured["cKML-inter"] > measured["COS-inter"]]


def figure_4_4() -> list[bool]:
    """cKML is slowest, COS next, Rough does not grow; values cost more than columns."""
    by_columns, by_values = tables("costs", "Figure 4.4")
    out, seconds = [], []
    for rows in (by_columns, by_values):
        last = {k: number(v) for k, v in list(rows[list(rows)[-1]].items())[1:]}
        order = sorted(last, key=lambda method: -last[method])
        seconds.append(last["cKML"])
        out += [order[:2] == ["cKML", "COS"], growth(rows, "cKML") > 0.05]
    return [*out, growth(by_columns, "Rough") < 0.05, seconds[1] > seconds[0]]


def figure_5_6() -> list[bool]:
    """Non-BEND's time is linear in rows, columns and values, that of CDE more than linear."""
    rows, columns, values = tables("studies", "Scale")
    linear = [growth(part, "Non-BEND") <= 1.1 for part in (rows, columns, values)]
    return [*linear, *(growth(part, "CDE") > 1.5 for part in (columns, values))]


def figure_6_8() -> list[bool]:
    """HELIC's time hardly grows with the rows, and by the square of columns and of values."""
    rows, columns, values = tables("costs", "Figure 6.8")
    name = "HELIC as published"
    span = number(list(rows.values())[-1][name]) / number(next(iter(rows.values()))[name])
    return [span <= 3.47 / 0.84, growth(columns, name) > 1.5, growth(values, name) > 1.5]


def figure_6_9() -> list[bool]:
    seconds = [number(row["seconds"]) for row in table("figures-more", "Figure 6.9").values()]
    return [seconds[-1] <= 2 * seconds[0]]


def figure_6_10() -> list[bool]:
    """F is level below λ = 1 and falls above 10."""
    found = {number(k): number(row["F"]) for k, row in table("costs", "Figure 6.10").items()}
    low = [f for value, f in found.items() if value <= 1]
    return [max(low) - min(low) <= 2, found[1000.0] < min(low) - 5]


def figures_7_4_and_7_5() -> list[bool]:
    line = next(ln for ln in text("goodness").splitlines() if ln.startswith("Mean I_inter"))
    untie, cde, cos, dilca = map(float, re.findall(r"\d\.\d\d", line)[:4])
    return [min(untie, cde) > max(cos, dilca)]


def levels(figure: str, at: range) -> list[bool]:
    """UNTIE has the best rank alone at levels of heterogeneity."""
    rows = table("goodness", f"Figure {figure}")
    out = []
    for level in at:
        found = {m: number(v) for m, v in list(rows[str(level)].items())[2:]}
        out.append(found["UNTIE"] < min(v for m, v in found.items() if m != "UNTIE"))
    return out


def figure_7_11() -> list[bool]:
    """UNTIE's time is almost stable in rows, linear in columns and values, flat in kernels."""
    rows, columns, values = tables("studies", "Scale")
    line = next(ln for ln in text("studies").splitlines() if "UNTIE by number of kernels" in ln)
    kernels = [float(s) for s in re.findall(r"([\d.]+) s", line)]
    return [
        growth(rows, "UNTIE") <= 0.5,
        growth(columns, "UNTIE") <= 1.5,
        growth(values, "UNTIE") <= 1.5,
        kernels[-1] <= 3 * kernels[0],
    ]


def figure_7_12() -> list[bool]:
    """Sets of kernels of one group give the same, of different groups not; the mixed are best."""
    rows = table("table-7.3", "Means")
    mean = {name: number(row["measured mean"]) for name, row in rows.items()}
    same = [abs(mean[a] - mean[b]) <= 0.1 for a, b in (("F1", "F2"), ("F3", "F4"), ("F5", "F6"))]
    return [*same, abs(mean["F1"] - mean["F3"]) > 1, mean["F6"] == max(mean.values())]


def figure_8_4() -> list[bool]:
    by_set: dict[str, dict[str, list[float]]] = {}
    for row in table("figures-more", "Figure 8.4").values():
        name, method, *values = row.values()
        by_set.setdefault(name, {})[method] = [float(v) for v in values]
    return [
        found["UNICORN"][k] > max(v[k] for m, v in found.items() if m != "UNICORN")
        for found in by_set.values()
        for k in range(5)
    ]


def figure_8_6() -> list[bool]:
    rows = table("figures-more", "Figure 8.6")
    ranks = [numbers(row) for row in rows.values()]
    never_rises = all(b[0] <= a[0] for a, b in pairwise(ranks))
    return [*(row[0] < min(row[1:]) for row in ranks), never_rises]


def figure_8_7() -> list[bool]:
    """F rises with δ, but by little: 0.626 to 0.635."""
    found = list(study("UNICORN, δ").values())
    return [found[-1] > found[0], max(found) - min(found) <= 1]


def table_5_3() -> list[bool]:
    rows = table("figures-more", "Table 5.3")
    rmse = [number(rows[name]["RMSE"]) for name in ("N-BMF", "D-BMF", "BMF")]
    groups = [number(rows[name]["groups of users"]) for name in ("N-BMF", "D-BMF")]
    return [rmse[0] < rmse[1], rmse[0] < rmse[2], rmse[1] < rmse[2], groups[0] != groups[1]]


def caa_figure_2() -> list[bool]:
    """Raw powers: above the original with L of 2 and more, and rising with L, on each set."""
    rows = [row for row in table("numeric-figures", "Figure 2").values() if row["scale"] == "None"]
    above = [min(numbers(row, map(str, range(2, 11)))) > number(row["original"]) for row in rows]
    return [*above, *(number(row["ρ"]) > 0.5 for row in rows)]


def caa_figure_3() -> list[bool]:
    """36 comparisons: RD and Dunn rise, DBI and SD fall."""
    out = []
    for row in table("numeric-accuracy", "Structure of the classes").values():
        for index, sign in (("RD ↑", 1), ("Dunn ↑", 1), ("DBI ↓", -1), ("SD ↓", -1)):
            before, after = (number(part) for part in row[index].split("→"))
            out.append(sign * (after - before) > 0)
    return out


def caa_table_5() -> list[bool]:
    """Single linkage, which has no chance in it: the original's cells and the coupled ones."""
    rows = table("numeric-accuracy", "single linkage, accuracy")
    out = []
    for ours, printed in (
        ("original", "published original"),
        ("coupled, scale=None, L=3", "published coupled"),
    ):
        sets = list(rows[ours])[1:-1]
        out += [abs(number(rows[ours][s]) - number(rows[printed][s])) <= 0.1 for s in sets]
    return out


def caa_figure_4() -> list[bool]:
    rows = table("numeric-figures", "Figure 4").values()
    return [
        all(
            float(a) > float(b)
            for a, b in zip(
                row["coupled as printed"].split("/"), row["original"].split("/"), strict=True
            )
        )
        for row in rows
    ]


def coca(figure: str) -> list[bool]:
    """Learned weights above equal ones, these above PCA on joined columns."""
    rows = table("sources-coca", f"Figure {figure}:")
    mean = {name: number(row["mean 2-30 ± starts and draws"]) for name, row in rows.items()}
    return [
        mean["CoCA, learned"] > mean["CoCA, equal"],
        mean["CoCA, equal"] > mean["PCA, joined"],
    ]


def figure_14() -> list[bool]:
    found = re.findall(r"F of two clusters ([\d.]+)", text("figures-more"))
    return [float(found[1]) > float(found[0])]


def figure_15() -> list[bool]:
    """CoCA above PCA under six classifiers; α of 60 above 0, and no better when printed."""
    rows = table("sources-coca", "Figure 15(a)")
    pca, ours = (numbers(rows[name]) for name in ("8, PCA, joined", "8, CoCA, equal"))
    by_alpha = table("sources-coca", "Figure 15(b)")
    larger = [number(row["60"]) > number(row["0"]) for row in by_alpha.values()]
    return [*(a > b for a, b in zip(ours, pca, strict=True)), *larger]


def figure_19() -> list[bool]:
    """With few labels HeMap as published is below the target alone, on four pairs of sets."""
    out = []
    for rows in tables("sources-hemap", "Figure 19"):
        alone = number(rows["target only"]["5 %"])
        out += [
            number(rows[f"{kind}, as published"]["5 %"]) < alone for kind in ("linear", "nonlinear")
        ]
    return out


def table_9() -> list[bool]:
    """Errors below the target alone; fewer rows are selected of sources that are less alike."""
    rows = list(table("figures-more", "Table IX").values())
    out = []
    for kind in ("linear", "nonlinear"):
        cells_of = [re.findall(r"[\d.]+", row[f"{kind}: selected, error"]) for row in rows]
        shares = [float(cell[0]) for cell in cells_of]
        out.append(shares == sorted(shares, reverse=True))
        out += [
            float(cell[1]) < number(row["target only"])
            for cell, row in zip(cells_of, rows, strict=True)
        ]
    return out


def table_10_and_figure_25() -> list[bool]:
    """Learners gain, the nonlinear variant more; larger β helps; θ and k hardly matter."""
    by_beta, by_theta, by_k, learners = tables("sources-hemap", "Figure 25 and Table X")
    gain = [number(row["pairs"]) < number(row["target only"]) for row in learners.values()]
    more = [number(row["nonlinear, pairs"]) < number(row["pairs"]) for row in learners.values()]
    beta, theta, k = (numbers(part["pairs"]) for part in (by_beta, by_theta, by_k))
    level = [max(values) - min(values) <= 5 for values in (theta, k)]
    return [*gain, *more, beta[-1] < beta[0], *level]


def table_iv() -> list[bool]:
    rows = [numbers(row) for row in table("sources-gbc", "Films by the number").values()]
    return [b < a for above, below in pairwise(rows) for a, b in zip(above, below, strict=True)]


def table_iii_and_figure_6() -> list[bool]:
    """Batch-OMP is at most as slow at every size; and its curve of errors lies lower."""
    rows = table("sparse", "Table III").values()
    faster = [number(row["learning T1"]) <= number(row["learning T2"]) for row in rows]
    errors = table("sparse", "Fig. 6")
    lower = numbers(errors["batch, exact"])[-1] < numbers(errors["omp, exact"])[-1]
    return [*faster, lower]


def drdh_table_4() -> list[bool]:
    """Each cell within MAX_MAD; the first row of a set has as many rows as print."""
    out = []
    for row in list(table("hierarchy-accuracy", "1-NN accuracy").values())[:4]:
        for cell in list(row.values())[2:]:
            ours, printed = map(float, re.findall(r"[\d.]+", cell))
            out.append(abs(ours - printed) <= MAX_MAD)
    return out


def drdh_neighbors() -> list[bool]:
    """Hierarchies are above 1-of-k in mean accuracy, by set and space; then the weightings."""
    out = []
    for name in ("car", "australian", "adult_mixed", "nursery"):
        mean: dict[tuple[str, str], float] = {}
        for row in table("hierarchy-neighbors", name).values():
            values = [float(v) for v in row["mean (Figure 4)"].split()]
            mean[row["coding"], row["space"]] = sum(values) / len(values)
        for space in ("data", "map"):
            out += [
                mean[coding, space] > mean["1-of-k", space]
                for coding in ("average", "complete", "single")
            ]
    order = next(ln for ln in text("hierarchy-neighbors").splitlines() if "exp > pow" in ln)
    found = re.findall(r"(\w+) \d", order.split(":")[1])
    return [*out, found[:5] == ["exp", "pow", "org", "sqrt", "log"]]


def collapses(figure: str, *methods: str) -> list[bool]:
    """Maps whose rows are all at one point."""
    rows = table("maps", f"Figure {figure}")
    return [rows[method]["points apart"].startswith("1 of") for method in methods]


THESIS, NUMERIC, MANY, SPARSE, HIERARCHY = "Zhu 2019", "Wang", "Shi 2013", "Menon", "Huang"
PRINT: dict[tuple[str, str], Callable[[], list[bool]]] = {
    (THESIS, "Table 3.2"): lambda: ["31 of 31 tables agree" in text("figures")],
    (THESIS, "Table 4.1"): lambda: cells("table-4.1", "cKML", *SIX),
    (THESIS, "Table 4.2"): lambda: cells("table-4.2", "cKML", *SIX),
    (THESIS, "Table 4.3"): lambda: cells("table-4.3", *LOW),
    (THESIS, "Table 4.4"): lambda: cells("table-4.4", *LOW),
    (THESIS, "Table 4.5"): lambda: cells("table-4.5", "cKML", *SIX),
    (THESIS, "Table 4.6"): table_4_6,
    (THESIS, "Figure 4.2"): lambda: curves("Figure 4.2", "cKML"),
    (THESIS, "Figure 4.3"): lambda: clearest("4.3", "cKML"),
    (THESIS, "Figure 4.4"): figure_4_4,
    (THESIS, "Table 5.1"): lambda: cells("table-5.1", "NB-G", "NB-V", "AE", "CDE", *FIVE),
    (THESIS, "Table 5.2"): lambda: cells("table-5.2", "NB-G", "NB-V", "AE", "CDE", *FIVE),
    (THESIS, "Table 5.3"): table_5_3,
    (THESIS, "Figure 5.5"): lambda: [
        *clearest("5.5", "Non-BEND"),
        *collapses("5.5", "Ahmad", "DILCA"),
    ],
    (THESIS, "Figure 5.6"): figure_5_6,
    (THESIS, "Table 5.4"): lambda: cells("table-5.4", "NB-G", "NB-GU", "NB-V", "NB-VU", "OZ"),
    (THESIS, "Tables 6.1, 6.2"): lambda: [
        *cells("table-6.1", "HELIC", "MTDLE", *FIVE),
        *cells("table-6.2", "HC", "HELIC-linear"),
    ],
    (THESIS, "Figure 6.3"): lambda: curves("Figure 6.3", "HELIC"),
    (THESIS, "Figure 6.4"): lambda: margins(
        "Figure 6.4", "HELIC as printed", lambda m: m != "HELIC"
    ),
    (THESIS, "Figure 6.7"): lambda: loss("costs", "6.7", 0.1),
    (THESIS, "Figure 6.8"): figure_6_8,
    (THESIS, "Figure 6.9"): figure_6_9,
    (THESIS, "Figure 6.10"): figure_6_10,
    (THESIS, "Table 7.1"): lambda: cells(
        "table-7.1", "UNTIE as printed", "Couplings", "CDE", *FIVE
    ),
    (THESIS, "Figure 7.3"): lambda: curves("Figure 7.3", "UNTIE"),
    (THESIS, "Figures 7.4, 7.5"): figures_7_4_and_7_5,
    (THESIS, "Figures 7.6, 7.7"): lambda: [
        *levels("7.6", range(2, 6)),
        *levels("7.7", range(1, 6)),
    ],
    (THESIS, "Figure 7.8"): lambda: margins(
        "Figure 7.8", "UNTIE as printed", lambda m: m != "UNTIE"
    ),
    (THESIS, "Figure 7.9"): lambda: clearest("7.9", "UNTIE"),
    (THESIS, "Figure 7.10"): lambda: loss("costs", "7.10", 0.1),
    (THESIS, "Figure 7.11"): figure_7_11,
    (THESIS, "Table 7.2"): lambda: cells(
        "table-7.2", *(f"{m}-{c}" for m in ("UNTIE", "CDE") for c in ("SVM", "KNN", "RF", "LR"))
    ),
    (THESIS, "Figure 7.12"): figure_7_12,
    (THESIS, "Tables 8.1, 8.2"): lambda: [
        *cells("table-8.1", "UNICORN", "CCDS-DC", "CCTED", "DCD"),
        *cells("table-8.2", "UNICORN-S", "CDE", "COS", "DILCA", "AE", "one-hot"),
    ],
    (THESIS, "Figure 8.4"): figure_8_4,
    (THESIS, "Figure 8.5"): lambda: clearest("8.5", "UNICORN"),
    (THESIS, "Figure 8.6"): figure_8_6,
    (THESIS, "Figure 8.7"): figure_8_7,
    (NUMERIC, "Figure 2"): caa_figure_2,
    (NUMERIC, "Figure 3"): caa_figure_3,
    (NUMERIC, "Table 5"): caa_table_5,
    (NUMERIC, "Figure 4"): caa_figure_4,
    (MANY, "Figure 4"): lambda: below_joined("complete"),
    (MANY, "Figure 5"): lambda: below_joined("30 % incomplete"),
    (MANY, "Figure 8"): lambda: [
        ablation(f"{term} = 1", "mfeat") < ablation("λ0 = λ1 = 0", "mfeat") for term in ("λ0", "λ1")
    ],
    (MANY, "Figure 9"): lambda: [
        ablation("GBC", "terrorist") < ablation("without weights", "terrorist")
    ],
    (MANY, "Table IV"): table_iv,
    (MANY, "Figures 11, 13"): lambda: [*coca("11"), *coca("13")],
    (MANY, "Figure 12"): lambda: coca("12"),
    (MANY, "Figure 14"): figure_14,
    (MANY, "Figure 15"): figure_15,
    (MANY, "Figure 19"): figure_19,
    (MANY, "Table IX, Figure 24"): table_9,
    (MANY, "Table X, Figure 25"): table_10_and_figure_25,
    (SPARSE, "Table III, Figure 6"): table_iii_and_figure_6,
    (HIERARCHY, "Table 4"): drdh_table_4,
    (HIERARCHY, "Table 5, Figures 3, 4"): drdh_neighbors,
}
# Worked examples and settings, which tests hold to the letter (tests/test_papers.py and others).
EXACT = {
    (THESIS, "Table 2.1"),
    (THESIS, "Table 7.3"),
    (NUMERIC, "Tables 1, 2, 3"),
    (NUMERIC, "Table 4"),
    (MANY, "Table III, VIII"),
    (SPARSE, "Tables I, II"),
    (HIERARCHY, "Figures 1, 2; Tables 1, 2, 3"),
}


# -- the page -----------------------------------------------------------------------------------


def rows_of_page() -> dict[tuple[str, str], tuple[str, str]]:
    """Paper and what it prints, to state and explanation."""
    out, paper = {}, ""
    for line in (ROOT / "docs" / "papers.md").read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            known = (THESIS, NUMERIC, MANY, SPARSE, HIERARCHY)
            paper = next((name for name in known if name in line), "")
        elif line.startswith("|") and paper and not line.startswith(("|---", "| what")):
            what, state, *why = (cell.strip() for cell in line.strip("|").split("|"))
            out[paper, what] = state, "|".join(why)
    return out


PAGE = rows_of_page()


def verdict(claims: list[bool]) -> str:
    if all(claims):
        return "reproduced"
    return "differs in part" if any(claims) else "differs"


def test_every_row_is_checked_or_says_why_not():
    unchecked = {
        row
        for row, (state, _) in PAGE.items()
        if not state.startswith(("not possible", "as ")) and row not in EXACT
    }
    assert unchecked == set(PRINT)
    assert all(state.startswith(STATES) for state, _ in PAGE.values())
    assert EXACT <= set(PAGE)


@pytest.mark.parametrize("row", PRINT, ids=lambda row: f"{row[0]}: {row[1]}")
def test_a_label_says_what_its_report_does(row):
    state = PAGE[row][0]
    claims = PRINT[row]()
    expected = verdict(claims)
    assert state == expected or state.startswith(f"{expected} on "), (
        f"docs/papers.md, {row[1]}: labelled {state!r}, but {sum(claims)} of {len(claims)} claims "
        f"of print hold in the reports: {expected!r}"
    )


@pytest.mark.parametrize(
    "row", [r for r, (_, why) in PAGE.items() if re.search(r"`[\w.-]+\.md`", why)],
    ids=lambda row: f"{row[0]}: {row[1]}",
)  # fmt: skip
def test_reports_that_a_row_names_exist(row):
    names = re.findall(r"`([\w.-]+\.(?:md|png))`", PAGE[row][1])
    assert all((REPORTS / name).exists() for name in names)


NOT_MEASURED = (  # print's own figures, and numbers of equations, tables and figures
    r"\([^()]*\b(?:published|print|paper)\b[^()]*\)",
    r"\b(?:published|in print|in the paper|in the published figures)\b[^;|]*?(?=[;|]|\.\s|$)",
    r"[\d.]+ (?:\([^()]*\) )?→",
    r"\((?:\d\.\d+|[^()]*Eq[^()]*)\)",
    r"(?:Tables?|Figures?|s of) [\d., and]+",
    r"`[^`]*`",
)


@pytest.mark.parametrize("row", PRINT, ids=lambda row: f"{row[0]}: {row[1]}")
def test_figures_of_a_row_stand_in_its_reports(row):
    why = PAGE[row][1]
    names = [
        name for name in re.findall(r"`([\w.-]+)\.md`", why) if (REPORTS / f"{name}.md").exists()
    ]
    reported = {
        float(n.replace(",", ""))
        for name in names
        for n in re.findall(r"\d[\d,]*\.?\d*", text(name))
    }
    for pattern in NOT_MEASURED:
        why = re.sub(pattern, " ", why)
    for quoted in re.findall(r"(?<![\w.])\d+\.\d+", why):
        half = 0.5 * 10.0 ** -len(quoted.partition(".")[2]) + 1e-9
        assert any(abs(float(quoted) - value) <= half for value in reported), (
            f"docs/papers.md, {row[1]}: {quoted} stands in none of {names}"
        )


@pytest.mark.parametrize("row", PRINT, ids=lambda row: f"{row[0]}: {row[1]}")
def test_mads_of_a_row_are_those_of_its_table(row):
    why = PAGE[row][1]
    means: dict[str, dict[str, str]] = {}
    for name in re.findall(r"`(table-\d\.\d)\.md`", why):
        means |= table(name, "Means") if "## Means" in text(name) else {}
    for listed in re.findall(r"MAD:? ([^;()]*)", why):
        for method, quoted in re.findall(r"([A-Z][\w-]*|cKML(?:-\w+)?) (\d+\.\d)", listed):
            if method in means:
                measured = float(means[method]["MAD"])
                assert abs(float(quoted) - measured) <= 0.051, (
                    f"docs/papers.md, {row[1]}: MAD of {method} is {measured}, not {quoted}"
                )
