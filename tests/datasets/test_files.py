"""The loader: where it looks, what it reads, and what it says when there is nothing."""

import gzip
import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from urllib.error import URLError

import duckdb
import numpy as np
import pytest
import sklearn.datasets

from tabweave import datasets
from tabweave.datasets import available, files, load
from tabweave.datasets.files import OPENML

PETS = "animal,legs,weight,class\ncat,4,3.5,pet\n,4,,pet\nNA,0,10,wild\n"


def write(directory, name, text):
    path = Path(directory) / f"{name}.csv.gz"
    with gzip.open(path, "wt", encoding="utf-8", newline="") as lines:
        lines.write(text)
    return path


@pytest.fixture(autouse=True)
def nowhere(monkeypatch):
    """No test finds data, or the network, unless it says so."""
    monkeypatch.delenv("TABWEAVE_DATA", raising=False)
    monkeypatch.setattr(files, "_checkout_dir", lambda: None)

    def offline(**kwargs):
        raise URLError("no route to host")

    monkeypatch.setattr(sklearn.datasets, "fetch_openml", offline)


def test_kinds_are_guessed_without_columns_csv(tmp_path):
    write(tmp_path, "pets", PETS)
    data = load("pets", tmp_path)
    assert data.name == "pets"
    assert data.kinds == {"animal": "nominal", "legs": "nominal", "weight": "numeric"}
    assert data.columns["animal"].tolist() == ["cat", None, "NA"]
    assert data.columns["legs"].tolist() == ["4", "4", "0"]
    np.testing.assert_array_equal(data.columns["weight"], [3.5, np.nan, 10.0])
    assert data.y.tolist() == ["pet", "pet", "wild"]


def test_kinds_come_from_columns_csv(tmp_path):
    write(tmp_path, "pets", PETS)
    kinds = "animal,id\npets,legs,numeric\npets,weight,categorical\npets,class,class"
    (tmp_path / "COLUMNS.csv").write_text(f"name,column,kind\nzoo,legs,id\npets,{kinds}\n")
    data = load("pets", tmp_path)
    assert data.kinds == {"animal": "nominal", "legs": "numeric", "weight": "nominal"}
    assert data.columns["weight"].tolist() == ["3.5", None, "10"]
    assert data.columns["legs"].dtype == np.float64


def test_datetimes_are_declared(tmp_path):
    write(tmp_path, "stays", "came,class\n2024-01-31 23:50,a\n,b\n2024-02-29,a\n")
    (tmp_path / "COLUMNS.csv").write_text("name,column,kind\nstays,came,datetime\n")
    came = load("stays", tmp_path).columns["came"]
    np.testing.assert_array_equal(
        came, np.array(["2024-01-31T23:50", "NaT", "2024-02-29"], "M8[us]")
    )
    write(tmp_path, "stays", "came,class\nsoon,a\n")
    with pytest.raises(ValueError, match="'came': expected a date or time, got 'soon'"):
        load("stays", tmp_path)


def test_columns_csv_may_leave_out_the_label_and_other_sets(tmp_path):
    write(tmp_path, "pets", PETS)
    write(tmp_path, "more", PETS)
    kinds = "pets,animal,categorical\npets,legs,ordinal\npets,weight,numeric\n"
    (tmp_path / "COLUMNS.csv").write_text("name,column,kind\n" + kinds)
    assert load("pets", tmp_path).kinds["legs"] == "ordinal"
    assert load("more", tmp_path).kinds["legs"] == "nominal"


@pytest.mark.parametrize(
    ("kinds", "match"),
    [
        ("pets,animal,categorical\n", "disagree about columns .*'legs', 'weight'"),
        (
            "pets,animal,numeric\npets,legs,id\npets,weight,id\n",
            "'animal': expected a number, got 'cat'",
        ),
        ("pets,animal,colour\npets,legs,id\npets,weight,id\n", "'animal'.*'colour'"),
    ],
)
def test_columns_csv_that_does_not_fit(tmp_path, kinds, match):
    write(tmp_path, "pets", PETS)
    (tmp_path / "COLUMNS.csv").write_text("name,column,kind\n" + kinds)
    with pytest.raises(ValueError, match=match):
        load("pets", tmp_path)


def test_target_is_a_number_and_no_label_is_none(tmp_path):
    write(tmp_path, "prices", "size,target\nbig,10\nsmall,2.5\n")
    write(tmp_path, "links", "cited,citing\n1,2\n")
    assert load("prices", tmp_path).y.tolist() == [10.0, 2.5]
    assert load("links", tmp_path).y is None
    write(tmp_path, "odd", "size,target\nbig,cheap\n")
    with pytest.raises(ValueError, match="'target': expected a number, got 'cheap'"):
        load("odd", tmp_path)


def test_names_that_differ_in_case_and_awkward_cells(tmp_path):
    write(tmp_path, "odd", 'a,A,"b ""c"", d",class\n 1 ,#x,"1,2",y\n007,nan,é,n\n')
    data = load("odd", tmp_path)
    assert data.feature_names == ["a", "A", 'b "c", d']
    assert data.X.tolist() == [[" 1 ", "#x", "1,2"], ["007", "nan", "é"]]


def test_directory_with_wildcards_and_quotes(tmp_path):
    directory = tmp_path / "it's [a]*?"
    directory.mkdir()
    write(directory, "pets", PETS)
    assert load("pets", str(directory)).n_rows == 3


def test_file_without_rows(tmp_path):
    write(tmp_path, "empty", "a,b,class\n")
    data = load("empty", tmp_path)
    assert data.n_rows == 0 and data.X.shape == (0, 2)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "got an empty line"),
        ("a,a,class\n1,2,x\n", "name every column once"),
        ("a,,class\n1,2,x\n", "name every column once"),
    ],
)
def test_header_must_name_every_column_once(tmp_path, text, why):
    write(tmp_path, "odd", text)
    with pytest.raises(ValueError, match=why):
        load("odd", tmp_path)


def test_ragged_file_and_plain_text_are_refused(tmp_path):
    write(tmp_path, "ragged", "a,b,class\n1,2,x\n1,x\n")
    with pytest.raises(ValueError, match="ragged"):
        load("ragged", tmp_path)
    (tmp_path / "plain.csv.gz").write_text("a,class\n1,x\n")
    with pytest.raises(ValueError, match="expected a complete gzip file"):
        load("plain", tmp_path)


def test_environment_variable_and_argument(tmp_path, monkeypatch):
    here, there = tmp_path / "here", tmp_path / "there"
    for directory, text in ((here, PETS), (there, "a,class\n1,x\n")):
        directory.mkdir()
        write(directory, "pets", text)
    monkeypatch.setenv("TABWEAVE_DATA", str(here))
    assert load("pets").n_rows == 3
    assert load("pets", there).n_rows == 1
    assert "pets" in available()


def test_checkout_directory_is_the_last_resort(tmp_path, monkeypatch):
    write(tmp_path, "pets", PETS)
    monkeypatch.setattr(files, "_checkout_dir", lambda: tmp_path)
    assert load("pets").n_rows == 3
    monkeypatch.setattr(files, "_checkout_dir", lambda: tmp_path / "absent")
    with pytest.raises(FileNotFoundError, match=r"absent.*TABWEAVE_DATA"):
        load("pets")


def test_a_directory_that_is_not_there(tmp_path, monkeypatch):
    with pytest.raises(NotADirectoryError, match="data_dir"):
        load("car", tmp_path / "absent")
    monkeypatch.setenv("TABWEAVE_DATA", str(tmp_path / "absent"))
    with pytest.raises(NotADirectoryError, match="TABWEAVE_DATA"):
        available()


@pytest.mark.parametrize("name", ["", "../car", "car.csv", "a b", "a/b", "café", "car\n", None])
def test_malformed_names(name, tmp_path):
    with pytest.raises(ValueError, match="letters, digits and underscores"):
        load(name, tmp_path)


def test_file_before_rule(tmp_path):
    assert load("car").n_rows == 1728
    write(tmp_path, "car", "buying,class\nlow,acc\n")
    assert load("car", tmp_path).n_rows == 1


def test_available(tmp_path):
    write(tmp_path, "pets", PETS)
    assert set(available(tmp_path)) - set(available()) == {"pets"}
    assert available() == sorted(files.EXACT)


def test_offline_says_where_it_looked_and_what_to_do(tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        load("iris", tmp_path)
    message = str(caught.value)
    assert str(tmp_path) in message and "no route to host" in message
    assert "TABWEAVE_DATA" in message and "data_dir" in message and "Did you mean" not in message
    assert isinstance(caught.value.__cause__, URLError)


def test_no_download_and_unknown_names():
    with pytest.raises(FileNotFoundError, match="download=False"):
        load("iris", download=False)
    with pytest.raises(FileNotFoundError, match="Did you mean tictactoe"):
        load("tic_tac_toe")
    with pytest.raises(FileNotFoundError, match=r"tabweave\.datasets\.led24\(\)"):
        load("led24")


def fake_openml(n_rows):
    def fetch(*, data_id, as_frame, parser):
        assert (as_frame, parser) == (False, "liac-arff")
        data = np.array([[0.0, 1.5], [np.nan, 2.5], [1.0, np.nan]] * n_rows)[:n_rows]
        target = np.array(["p", "e", "p"] * n_rows, dtype=object)[:n_rows]
        names, categories = ["cap", "size"], {"cap": ["bell", "flat"]}
        return SimpleNamespace(data=data, target=target, feature_names=names, categories=categories)

    return fetch


def test_download(monkeypatch):
    monkeypatch.setattr(sklearn.datasets, "fetch_openml", fake_openml(OPENML["iris"].n_rows))
    data = load("iris")
    assert data.kinds == {"cap": "nominal", "size": "numeric"}
    assert data.columns["cap"][:3].tolist() == ["bell", None, "flat"]
    np.testing.assert_array_equal(data.columns["size"][:3], [1.5, 2.5, np.nan])
    assert data.y[:2].tolist() == ["p", "e"]


def test_download_of_another_size_is_refused(monkeypatch):
    monkeypatch.setattr(sklearn.datasets, "fetch_openml", fake_openml(3))
    with pytest.raises(ValueError, match="3 rows where 150"):
        load("iris")


def test_reading_needs_no_frame_library(tmp_path):
    write(tmp_path, "pets", PETS)
    code = (
        "import sys; sys.modules.update(pandas=None, polars=None, pyarrow=None)\n"
        f"from tabweave.datasets import load; print(load('pets', {str(tmp_path)!r}).X.shape)"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "(3, 3)"


def store(directory, data):
    """Write a data set as a data directory keeps it, with the kinds of its columns."""
    cells = zip(*data.columns.values(), data.y, strict=True)
    rows = (["" if cell is None else cell for cell in row] for row in cells)
    lines = [[*data.feature_names, "class"], *rows]
    write(directory, data.name, "".join(",".join(map(str, line)) + "\n" for line in lines))
    with open(Path(directory) / "COLUMNS.csv", "a") as kinds:
        if not kinds.tell():
            kinds.write("name,column,kind\n")
        for column, kind in data.kinds.items():
            kinds.write(f"{data.name},{column},{kind}\n")


def test_a_directory_of_sets_comes_back_as_it_was(tmp_path):
    drawn = [datasets.led24(200), datasets.mofn_3_7_10(50), datasets.waveform(100)]
    drawn.append(datasets.make_coupled(100, missing=0.2))
    stored = [*drawn, *(make() for make in files.EXACT.values())]
    for data in stored:
        store(tmp_path, data)
    for data in stored:
        found = load(data.name, tmp_path)
        assert found.kinds == data.kinds
        np.testing.assert_array_equal(found.X, data.X)
        np.testing.assert_array_equal(found.y, data.y)


def test_openml_sizes_agree_with_the_published_files():
    published = json.loads((Path(__file__).parent / "published.json").read_text())
    assert {name: remote.n_rows for name, remote in OPENML.items()} == published["rows"]


@pytest.fixture
def statements(monkeypatch):
    """The SQL that reading a file takes."""
    seen, connect = [], duckdb.connect

    class Watched:
        def __init__(self):
            self.connection = connect()

        def __enter__(self):
            return self

        def __exit__(self, *_):
            self.connection.close()

        def execute(self, text):
            seen.append(text)
            return self.connection.execute(text)

    monkeypatch.setattr(duckdb, "connect", Watched)
    return seen


def test_a_long_file_takes_no_more_statements_and_one_string_a_value(tmp_path, statements):
    """Work in Python must not grow with the rows: 494,021 rows of 42 columns are read like 50."""
    rng = np.random.default_rng(0)
    found = {}
    for n_rows in (50, 5000):
        numbers = {f"n{i}": rng.integers(0, 100, n_rows) / 4 for i in range(6)}
        nominal = {f"c{i}": rng.choice(["tcp", "udp", "icmp"], n_rows) for i in range(3)}
        table = numbers | nominal | {"class": rng.choice(["normal", "smurf"], n_rows)}
        lines = [table, *zip(*table.values(), strict=True)]
        write(tmp_path, f"of_{n_rows}", "".join(",".join(map(str, line)) + "\n" for line in lines))
        before = len(statements)
        data = load(f"of_{n_rows}", tmp_path)
        found[n_rows] = len(statements) - before
        assert list(data.kinds.values()).count("numeric") == 6 and data.n_rows == n_rows
        for name in nominal:
            assert len({id(cell) for cell in data.columns[name]}) == 3
    assert found[5000] == found[50]
