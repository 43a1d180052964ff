"""What each system reaches exactly as its paper prints it: the table of docs/published.md.

``python benchmarks/as_printed.py`` reads the reports under benchmarks/reports, measures nothing,
and rewrites the section of docs/published.md between its marks. Figures are means over the sets
where print and we have one; MAD is the mean absolute difference of those cells.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from _report import FOLDER

PAGE = Path(__file__).resolve().parents[1] / "docs" / "published.md"
MARKS = ("<!-- figures: python benchmarks/as_printed.py -->", "<!-- end of figures -->")
Pairs = list[tuple[float, float]]  # printed, measured


class System(NamedTuple):
    """One system as printed: where its figures are, and how they were measured."""

    name: str
    figures: Sequence[tuple[str, Callable[[], Pairs]]]  # what, and its cells
    notes: str


def tables(report: str) -> list[list[list[str]]]:
    """The tables of a report, as rows of cells; the head comes first."""
    text = (FOLDER / f"{report}.md").read_text(encoding="utf-8")
    found = re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE)
    return [
        [[c.strip() for c in line.strip("|").split("|")] for line in t.splitlines()] for t in found
    ]


def column(report: str, method: str, title: str = "") -> Pairs:
    """Cells ``printed → measured`` of one column, of the table under a title or the first one."""
    text = (FOLDER / f"{report}.md").read_text(encoding="utf-8")
    start = text.index(title) if title else 0
    head, *rows = re.search(r"(?:^\|.*\n)+", text[start:], re.MULTILINE).group(0).splitlines()
    at = [cell.strip() for cell in head.strip("|").split("|")].index(method)
    out = []
    for row in rows:
        cell = row.strip("|").split("|")[at] if row.count("|") == head.count("|") else ""
        pair = re.match(r"\s*([\d.]+) → ([\d.]+)", cell)
        if pair is not None:
            out.append((float(pair[1]), float(pair[2])))
    return out


def streams(method: str) -> Pairs:
    """Plain windows, macro F: a method of ours beside the printed UNICORN."""
    title = "Plain random windows, macro F"
    text = (FOLDER / "table-8.2.md").read_text(encoding="utf-8")
    lines = text[text.index(title) :].splitlines()
    head, *rows = [line for line in lines if line.startswith("|")][:13]
    names = [cell.strip() for cell in head.strip("|").split("|")]
    out = []
    for row in rows:
        cells = dict(zip(names, (c.strip() for c in row.strip("|").split("|")), strict=True))
        printed = re.match(r"([\d.]+) → ", cells["UNICORN"])
        measured = re.match(r"[\d.]+", cells[method])
        if printed is not None and measured is not None and cells["data set"] != "**mean**":
            out.append((float(printed[1]), float(measured[0])))
    return out


def coupled_numbers(title: str) -> Pairs:
    """Table 5 of the numeric paper: the better L of the printed transform, set by set."""
    text = (FOLDER / "numeric-accuracy.md").read_text(encoding="utf-8")
    block = text[text.index(f"### {title}\n") :].split("\n### ")[0]
    rows = {
        cells[0].strip(): [float(c) for c in cells[1:-1]]
        for line in block.splitlines()
        if (cells := line.strip("|").split("|")) and re.match(r"\| (coupled|published)", line)
    }
    ours = np.max([v for name, v in rows.items() if "scale=None" in name], axis=0)
    return list(zip(rows["published coupled"], ours.tolist(), strict=True))


def hierarchies(where: str) -> Pairs:
    """Table 4 of the hierarchy paper, sizes as printed."""
    head, _, *rows = tables("hierarchy-accuracy")[0]
    at, out = head.index(where), []
    for row in rows:
        if (row[0], row[1]) not in (("nursery", "all"), ("adult_mixed", "all")):
            measured, printed = re.match(r"([\d.]+) \(([\d.]+)\)", row[at]).groups()
            out.append((float(printed), float(measured)))
    return out


def thesis(table: str, method: str) -> Callable[[], Pairs]:
    return lambda: column(f"table-{table}", method)


SYSTEMS = [
    System(
        "cKML (`papers.CKML`)",
        [
            ("Table 4.1, k-modes, F", thesis("4.1", "cKML")),
            (
                "the same, redundant columns leave in column order",
                thesis("4.1", "cKML, column order"),
            ),
            ("Table 4.5, 1-NN, F", thesis("4.5", "cKML")),
            ("the same, column order", thesis("4.5", "cKML, column order")),
        ],
        "k-modes sums per-column roots √d², where (4.5) has the root of the sum: the reading "
        "nearest to print; best objective of 100 starts",
    ),
    System(
        "Non-BEND (`papers.NonBEND`)",
        [
            ("Table 5.4, NB-G, k-means, F", thesis("5.4", "NB-G")),
            ("NB-GU, without column weights", thesis("5.4", "NB-GU")),
            ("NB-GU, θ on each value's axis", thesis("5.4", "NB-G θ")),
            ("NB-V", thesis("5.4", "NB-V")),
            ("NB-VU", thesis("5.4", "NB-VU")),
        ],
        "mean over single fits of three seeds (five where a cell was not measured again), each "
        "with 100 starts of k-means (20 there)",
    ),
    System(
        "HELIC (`papers.HELIC`)",
        [("Table 6.1, kNN, F", thesis("6.1", "HELIC as printed"))],
        "k of {{1, 3, 5, 7}} by inner splits; three splits of each set, print has 20",
    ),
    System(
        "UNTIE (`papers.UNTIE`)",
        [("Table 7.1, k-means, F", thesis("7.1", "UNTIE as printed"))],
        "mean over ten seeds, each with 100 starts of k-means",
    ),
    System(
        "UNICORN (`papers.UNICORN`)",
        [("Table 8.2, plain windows, k-means, F", lambda: streams("UNICORN as printed"))],
        "errata corrected; one partition of twelve windows of most sets, print has ten; census is "
        "not available",
    ),
    System(
        "Coupled numbers (`CoupledNumeric(scale=None)`)",
        [
            (
                "Table 5, single linkage, accuracy",
                lambda: coupled_numbers("single linkage, accuracy"),
            ),
            ("Table 5, spectral, accuracy", lambda: coupled_numbers("spectral, accuracy")),
        ],
        "of L = 2, 3, 4 the best one for each set, as print says; the spectral kernel's width is "
        "not printed",
    ),
    System(
        "Distance hierarchy, DRDH (`DistanceHierarchy`, `DRDH`)",
        [
            ("Table 4, data space, 1-NN accuracy", lambda: hierarchies("data DH")),
            ("Table 4, map space", lambda: hierarchies("map DH")),
        ],
        "trees from training rows only; the mean over draws where print holds out a fifth once; "
        "adult does not reproduce",
    ),
    System(
        "Sparse categories (`SetTfidf`, `omp`, `batch_omp`, `KSVD`)",
        [],
        "Tables I and II are met to the digit; Table III has seconds of another machine and "
        "Figure 6 a set that is not available",
    ),
    System(
        "GBC (`papers.GBCClassifier`, `papers.GBCRegressor`)",
        [],
        "print has curves only. Terrorist attacks, 10 % labels, as published with rounds (30 at "
        "most) and both λ by three folds: {gbc}",
    ),
    System(
        "CoCA (`papers.CoCA`)",
        [],
        "print has curves only. Mean NMI over 2 to 30 dimensions: {coca}",
    ),
    System(
        "HeMap (`papers.HeMap`)",
        [],
        "print has bars of sets that are not available. Digits in their place, error: {hemap}",
    ),
]


def gbc() -> str:
    """Errors of GBC as published and of GBC, of the report."""
    rows = [row for t in tables("sources-gbc-published") for row in t if len(row) == 2]
    figures = {row[0]: row[1] for row in rows}
    ours = {name: figures[name] for name in ("as published", "GBC", "joined") if name in figures}
    return ", ".join(f"{name} {value} %" for name, value in ours.items())


def coca() -> str:
    """Mean NMI of CoCA as published, by set."""
    text = (FOLDER / "sources-coca.md").read_text(encoding="utf-8")
    sets = re.findall(r"## Figure \d+: (.*)", text)
    means = re.findall(r"\| CoCA, published \|.*?\*\*([\d.]+)\*\*", text)
    return ", ".join(f"{name} {mean}" for name, mean in zip(sets, means, strict=False))


def hemap() -> str:
    """Errors of HeMap as published beside the target alone, of Table IX on digits."""
    head, _, *rows = next(t for t in tables("figures-more") if t[0][0] == "source")
    names = [name.split(":")[0] for name in head[1:]]
    errors = [[cell.split(": ")[-1].split(" ±")[0] for cell in row[1:]] for row in rows]
    said = (", ".join(map(" ".join, zip(names, e, strict=True))) for e in errors)
    return "; ".join(f"{row[0]}: {text} %" for row, text in zip(rows, said, strict=True))


def lines() -> list[str]:
    """The section: one line a figure, how it was measured beside the first of a system."""
    said = {"gbc": gbc(), "coca": coca(), "hemap": hemap()}
    out = [
        "| system | what | sets | print | ours | MAD | how |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for system in SYSTEMS:
        how = system.notes.format(**said)
        for i, (what, cells) in enumerate(system.figures or [("", list)]):
            pairs = np.array(cells())
            name, notes = (system.name, how) if i == 0 else ("", "")
            shown = "– | – | – | –"
            if len(pairs):
                printed, measured = pairs.mean(axis=0)
                mad = np.abs(pairs[:, 1] - pairs[:, 0]).mean()
                shown = f"{len(pairs)} | {printed:.1f} | {measured:.1f} | {mad:.1f}"
            out.append(f"| {name} | {what or '–'} | {shown} | {notes} |")
    return out


def main() -> None:
    text = PAGE.read_text(encoding="utf-8")
    before, after = text.split(MARKS[0])[0], text.split(MARKS[1])[1]
    section = "\n".join([MARKS[0], "", *lines(), "", MARKS[1]])
    PAGE.write_text(before + section + after, encoding="utf-8")


if __name__ == "__main__":
    main()
