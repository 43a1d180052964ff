"""Rows of every type, and how other systems get to see them."""

import datetime as dt
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone

from tabweave import (
    CDE,
    CKML,
    HELIC,
    UNICORN,
    UNTIE,
    Column,
    DistanceHierarchy,
    NonBEND,
    OneHot,
    SupervisedWeave,
    ValueMetric,
    Weave,
    Windowed,
    datasets,
)
from tabweave.embed.hierarchy import Tree

# The server that the engines are tested with; a fixture is found by its name in this module.
_spec = spec_from_file_location(
    "engines_conftest", Path(__file__).parents[1] / "engines" / "conftest.py"
)
_engines = module_from_spec(_spec)
_spec.loader.exec_module(_engines)
postgres = _engines.postgres

MOMENT = dt.datetime(2024, 2, 29, 13, 5, 0, 250_000)
VALUES = {
    "plain": ["red", "blue", "it's", 'say "hi"', "", "ünïcödé 🎈", "null", "a\nb\\c", None],
    "select": [1, 2, -3, 2**40, None],
    'two "words"': [0.1, 1 / 3, -2.5, 1e300, 5e-324, 7.0, None],
    "it's": [True, False, None],
    "Größe %s": [b"\x00\xff", b"'", b""],
    "day": [dt.date(2024, 1, 1), dt.date(1999, 12, 31), None],
    "moment": [MOMENT, MOMENT.replace(microsecond=0), dt.datetime(1970, 1, 1), None],
    "constant": ["same"],
}
NEW = {
    "plain": ["never", "Red", "red ", "''"],
    "select": [77, 0],
    'two "words"': [0.3, 2.0, float("inf")],
    "it's": [],
    "Größe %s": [b"new"],
    "day": [dt.date(2030, 5, 5)],
    "moment": [dt.datetime(2030, 5, 5, 1)],
    "constant": ["other", None],
}


def drawn(pools, n, seed):
    rng = np.random.default_rng(seed)
    return {name: [pool[i] for i in rng.integers(0, len(pool), n)] for name, pool in pools.items()}


@pytest.fixture(scope="session")
def seen():
    """Rows to learn from: every value at least once."""
    rows = drawn(VALUES, 60, seed=0)
    return {name: [*VALUES[name], *cells[len(VALUES[name]) :]] for name, cells in rows.items()}


@pytest.fixture(scope="session")
def asked():
    """Rows to embed: known, unknown and missing values."""
    pools = {name: [*pool, *NEW[name], None] for name, pool in VALUES.items()}
    return drawn(pools, 200, seed=1)


@pytest.fixture(scope="session")
def schema():
    return dict.fromkeys(VALUES, "nominal")


@pytest.fixture(scope="session", params=[None, 3], ids=["concat", "sum"])
def weave(request, seen, schema):
    """An embedder of either way to combine values."""
    return Weave(request.param, schema=schema).fit(seen)


@pytest.fixture(scope="session")
def hierarchy():
    """Trees grown and made by hand, levels and numbers; and rows to embed."""
    rng = np.random.default_rng(0)
    levels = ("low", "mid", "high")
    rows = {
        "job": rng.choice(["cook", "clerk", "judge", None], 50).tolist(),
        "code": rng.choice([1, 2, 7], 50).tolist(),
        "drink": rng.choice(["latte", "mocha", "oolong"], 50).tolist(),
        "grade": rng.choice([*levels, None], 50).tolist(),
        "age": [*rng.normal(40, 10, 49).tolist(), float("nan")],
    }
    drinks = Tree.of({"coffee": ["latte", "mocha"], "tea": ["oolong"]}, separator="")
    kinds = {"grade": Column("grade", "ordinal", levels=levels), "code": "nominal"}
    model = DistanceHierarchy({"drink": drinks}, schema=kinds).fit(rows)
    new = {"job": "pilot", "code": 3, "drink": "tea", "grade": "top", "age": 99.0}
    return model, {name: [new[name], *cells[1:]] for name, cells in rows.items()}


@pytest.fixture(scope="session")
def whole_tables():
    """Tables of the size and shape of mushroom, house votes and credit approval."""
    mushroom = datasets.make_coupled(
        1200, 22, 6, 2, heterogeneity=1.0, missing=0.02, random_state=0
    )
    votes = datasets.make_coupled(435, 16, 2, 2, missing=0.06, random_state=1)
    credit = datasets.make_coupled(690, 9, 5, 2, heterogeneity=0.5, missing=0.01, random_state=2)
    rng = np.random.default_rng(3)
    numbers = {f"n{i}": rng.lognormal(i, 1, 690).round(2).tolist() for i in range(6)}
    numbers["n0"][7] = None
    return [
        *({c: list(cells) for c, cells in data.columns.items()} for data in (mushroom, votes)),
        {**{c: list(cells) for c, cells in credit.columns.items()}, **numbers},
    ]


EMBEDDERS = [
    OneHot(dtype="float32"),
    ValueMetric("goodall3"),
    ValueMetric("lin"),
    CKML(),
    Weave(3, dtype="float32"),
    SupervisedWeave(),
    UNTIE(2),
    HELIC(random_state=0, n_pairs=100),
    UNICORN(2),
    NonBEND(random_state=0),
    CDE(random_state=0),
    Windowed(OneHot(), window=2),
]


@pytest.fixture(params=EMBEDDERS, ids=lambda e: getattr(e, "measure", type(e).__name__))
def fitted(request, seen, asked):
    """Every embedder, fitted, and rows to embed."""
    names = ["plain", "select", "it's"]
    part, rows = ({name: table[name] for name in names} for table in (seen, asked))
    model = clone(request.param)
    if not isinstance(model, Windowed):
        model.set_params(schema={"select": "nominal"})
    return model.fit(part, [str(v) for v in seen["it's"]]), rows


@pytest.fixture(
    params=[Weave(), Weave(3), SupervisedWeave(), SupervisedWeave(discriminant=0)], ids=str
)
def woven(request):
    """Embedders whose tables and curves are summed or side by side; and rows with new values."""
    rng = np.random.default_rng(0)
    levels = ("low", "mid", "high")
    job = rng.choice(["cook", "clerk", "judge", None], 80)
    rows = {
        "job": job.tolist(),
        "age": np.where(rng.random(80) < 0.1, None, rng.normal(40, 10, 80).round(2)).tolist(),
        "grade": rng.choice([*levels, None], 80).tolist(),
        "pay": (np.where(job == "judge", 90, 30) + rng.lognormal(0, 2, 80)).tolist(),
        "rank": rng.choice([1, 2, 3], 80).tolist(),
        "rooms": rng.integers(0, 4, 80).tolist(),
        "flat": [1.5] * 80,
    }
    kinds = {"grade": Column("grade", "ordinal", levels=levels), "rank": "ordinal"}
    model = clone(request.param).set_params(schema=kinds)
    model.fit(rows, np.where(job == "cook", "yes", rng.choice(["yes", "no", "maybe"], 80)))
    new = {"job": "pilot", "age": -7.5, "grade": "worse", "pay": None, "rank": 9, "rooms": 11}
    odd = {name: [new.get(name, 2.5), *cells[1:]] for name, cells in rows.items()}
    return model, odd


@pytest.fixture(params=[OneHot(), Weave(), Weave(2)], ids=["one-hot", "concat", "sum"])
def mixed(request):
    """A function of a dtype: an embedder of a mixed table, and rows with new values."""
    rng = np.random.default_rng(0)
    levels = ("low", "mid", "high")
    rows = {
        "job": rng.choice(["cook", "clerk", "judge", None], 50).tolist(),
        "grade": rng.choice([*levels, None], 50).tolist(),
        "age": [400.0, *rng.normal(40, 10, 47).tolist(), None, float("nan")],
        "flat": [1.5] * 50,
    }
    kinds = {
        "grade": Column("grade", "ordinal", levels=levels),
        "age": "numeric",
        "flat": "numeric",
    }
    new = {**rows, "job": ["new", *rows["job"][1:]], "grade": ["worse", *rows["grade"][1:]]}

    def of(dtype):
        return clone(request.param).set_params(schema=kinds, dtype=dtype).fit(rows), new

    return of


def every_kind(n=120):
    """Rows of every kind that a lookup can hold, as databases and files write them."""
    rng = np.random.default_rng(5)
    spans = (dt.timedelta(microseconds=int(us)) for us in rng.integers(-(10**14), 10**14, n))
    when = [None if i % 13 == 0 else dt.datetime(1971, 1, 1) + s for i, s in enumerate(spans)]
    whole = [None if w is None else w.replace(microsecond=0) for w in when]
    offsets = rng.choice(["+01:00", "-05:30"], n)
    return {
        "when": when,
        "day": [None if w is None else w.date() for w in when],
        "iso": [None if w is None else w.isoformat(" ") for w in when],
        "hours": [None if w is None else w.strftime("%Y-%m-%dT%H") for w in when],
        "date text": ["NA" if w is None else w.date().isoformat() for w in when],
        "own clock": [
            None if w is None else f"{w}{o}" for w, o in zip(whole, offsets, strict=True)
        ],
        "clock": [None if w is None else w.time() for w in when],
        "clock text": ["" if w is None else w.strftime("%H:%M") for w in when],
        "utc": [None if w is None else w.isoformat() + "Z" for w in whole],
        "price": rng.choice(["$1,200.50", "$80", "-$3.25", "n/a"], n).tolist(),
        "share": rng.choice(["12%", "7.5 %", "100%"], n).tolist(),
        "euro": rng.choice(["1.200,50 €", "3.000 €", "(7,5 €)", "€(8)"], n).tolist(),
        "flag": rng.choice([0, 1], n).tolist(),
        "open": rng.choice([True, False, None], n).tolist(),
        "status": rng.choice([200, 301, 404], n).tolist(),
        "zip": rng.choice(["01234", "94110"], n).tolist(),
        "carrier": rng.choice(["UA", "AA", None], n).tolist(),
        "delay": [None if i % 9 == 0 else float(x) for i, x in enumerate(rng.normal(size=n))],
        "row": list(range(n)),
        "country": ["US"] * n,
    }


@pytest.fixture(params=[Weave(), Weave(3), SupervisedWeave()], ids=str)
def kinds(request):
    """An embedder of columns of every kind, and its rows."""
    rows = every_kind()
    y = np.random.default_rng(0).choice(["u", "v"], len(rows["row"]))
    model = clone(request.param).fit(rows, y)
    assert list(model.kinds().dropped) == ["row", "country"]
    return model, rows
