"""Methods: which estimator, under which protocol, stands for which column of which table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import _protocols as protocols
from weft import CKML, OneHot, ValueMetric
from weft.measures.ckml import printed_roots


@dataclass(frozen=True)
class Plan:
    """How one method is measured: a protocol, and what it is given."""

    protocol: str
    method: str
    make: Callable[[], Any]
    options: dict[str, Any] = field(default_factory=dict)

    def key(self, dataset: str) -> tuple[str, ...]:
        extras = [f"{k}={v}" for k, v in self.options.items()]
        return (self.protocol, dataset, self.method, *extras)

    def run(self, data: Any, quick: bool) -> dict[str, float]:
        large = data.n_rows > protocols.LARGE
        if self.protocol == "k-nearest":
            repeats = (3 if large else 10) if quick else (5 if large else 20)
            return protocols.k_nearest(data, self.make, n_repeats=repeats, **self.options)
        starts = (5 if large else 20) if quick else (20 if large else 100)
        run = protocols.k_modes if self.protocol == "k-modes" else protocols.k_means
        return run(data, self.make(), n_starts=starts, **self.options)


@dataclass(frozen=True)
class TableSpec:
    """One published table: its metric, its methods, and the names it has for them."""

    title: str
    metric: str
    plans: dict[str, Plan]
    published: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def _measure(name: str) -> Callable[[], Any]:
    return lambda: ValueMetric(name)


def _modes(name: str, make: Callable[[], Any] | None = None, **options: Any) -> Plan:
    return Plan("k-modes", name, make or _measure(name), options)


def _nearest(name: str, make: Callable[[], Any] | None = None, **options: Any) -> Plan:
    return Plan("k-nearest", name, make or _measure(name), options)


def _means(name: str, make: Callable[[], Any]) -> Plan:
    return Plan("k-means", name, make)


BASELINES = {
    "COS": "cos",
    "Ahmad": "ahmad",
    "DILCA": "dilca",
    "Rough": "rough",
    "Hamming": "hamming",
    "OF": "of",
}
READINGS = {
    "cKML": _modes("ckml"),
    "cKML √d²": _modes("ckml-roots", lambda: ValueMetric(printed_roots)),
    "cKML distribution": _modes("ckml", centers="distribution"),
    "cKML kernel k-means": _means("ckml-repaired", CKML),
}
READ_AS = dict.fromkeys(READINGS, "cKML")
KMODES_NOTES = (
    "k-modes from random rows, best objective of 100 starts (20 on sets above 10,000 rows). cKML "
    "in four readings: modes with summed d², modes with per-column √d², distribution centres with "
    "summed d², and k-means on the repaired kernel's vectors (= kernel k-means).",
)
KNN_NOTES = (
    "1-NN, 20 random splits 90/10 (5 on sets above 10,000 rows), macro F; every neighbour at the "
    "smallest distance votes.",
)

TABLES: dict[str, TableSpec] = {
    "4.1": TableSpec(
        "k-modes clustering, F",
        "F",
        READINGS | {m: _modes(n) for m, n in BASELINES.items()},
        READ_AS,
        KMODES_NOTES,
    ),
    "4.2": TableSpec(
        "k-modes clustering, NMI",
        "NMI",
        READINGS | {m: _modes(n) for m, n in BASELINES.items()},
        READ_AS,
        KMODES_NOTES,
    ),
    "4.3": TableSpec(
        "k-modes clustering with low-level couplings, F",
        "F",
        {
            "cKML-intra": _modes("ckml_intra"),
            "COS-intra": _modes("cos_intra"),
            "cKML-inter": _modes("ckml_inter"),
            "COS-inter": _modes("cos_inter"),
            "cKML": _modes("ckml"),
            "COS": _modes("cos"),
        },
        notes=KMODES_NOTES,
    ),
    "4.5": TableSpec(
        "kNN classification, F",
        "F",
        {
            "cKML": _nearest("ckml"),
            "cKML repaired": _nearest("ckml-repaired", CKML),
            **{m: _nearest(n) for m, n in BASELINES.items()},
            "one-hot": _nearest("one-hot", OneHot),
        },
        {"cKML repaired": "cKML"},
        KNN_NOTES,
    ),
}
TABLES["4.4"] = TableSpec(
    "k-modes clustering with low-level couplings, NMI",
    "NMI",
    TABLES["4.3"].plans,
    notes=KMODES_NOTES,
)
