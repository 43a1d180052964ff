"""A command opens and sniffs its source once; what follows is asked of the opened source."""

from collections import Counter

import pytest

from tabweave.engines import duck, files

from .conftest import called

COMMANDS = {
    "embed": "embed {} -o v.csv",
    "embed by counts": "embed {} -m weave -o v.csv",
    "embed beside others": "embed {} --keep sku --kind drink=nominal -t made_of -o v.tsv",
    "embed to a few axes": "embed {} --components 2 -o v.parquet",
    "embed with a model": "embed {} --model m.tabweave -o v.csv",
    "cluster": "cluster {} -k 2",
    "cluster to a file": "cluster {} -k 2 -t served -o c.csv",
    "neighbors": "neighbors {} --row 3 -k 2",
    "neighbors with a model": "neighbors {} --row 3 -k 2 --model m.tabweave",
    "explain": "explain {} -a 1 -b 2",
    "report": "report {} -t drink -o r.html",
    "map": "map {} -o m.html",
    "map as a table": "map {} -o m.csv",
}


@pytest.fixture
def openings(monkeypatch):
    """Count how often a file is opened, and how often DuckDB looks at all of its cells."""
    seen = Counter()
    open_file, describe = files.open_file, duck.describe

    def opened(path, *options):
        seen[f"opened {path.name}"] += 1
        return open_file(path, *options)

    def sniffed(connection, query):
        seen["sniffed"] += "read_csv" in query
        return describe(connection, query)

    monkeypatch.setattr(files, "open_file", opened)
    monkeypatch.setattr(duck, "describe", sniffed)
    return seen


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_opens_its_source_once(name, folder, openings):
    if "model" in name:
        words = "embed shop.csv --drop sku -o w.csv --save m.tabweave"
        assert called(*words.split(), cwd=folder).code == 0
        openings.clear()
    done = called(*COMMANDS[name].format("shop.csv").split(), cwd=folder)
    assert done.code == 0, done.err
    assert openings == {"opened shop.csv": 1, "sniffed": 1}


def test_drift_opens_each_of_its_two(folder, openings):
    assert called("drift", "even.csv", "odd.csv", cwd=folder).code == 0
    assert openings == {"opened even.csv": 1, "opened odd.csv": 1, "sniffed": 2}


def test_a_wrong_method_is_said_before_anything_is_opened(folder, openings):
    assert called("embed", "shop.csv", "-m", "weeve", cwd=folder).code == 2
    assert not openings
