"""Rows of every type, and how other systems get to see them."""

import datetime as dt
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import numpy as np
import pytest

from tabweave import Weave, datasets

# The server that the engines are tested with; a fixture is found by its name in this module.
_spec = spec_from_file_location(
    "engines_conftest", Path(__file__).parents[2] / "engines" / "conftest.py"
)
if Path(_spec.origin).exists():
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
