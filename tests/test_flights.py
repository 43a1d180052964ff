"""A notebook on raw flights, cell by cell: dates, gaps, identifiers, thousands of tail numbers."""

import subprocess
import sys

import numpy as np
import pytest

from tabweave import SimilarityIndex, Weave, between
from tabweave.engines import transform

pd = pytest.importorskip("pandas", reason="frames are pandas'")

FULL = 336_776
MOST_BYTES = 1.5e9


def drawn_flights(n):
    """Tail numbers belong to carriers, delays to hours; a cancelled flight has no delay."""
    rng = np.random.default_rng(0)
    carrier = rng.choice(16, n, p=rng.dirichlet(np.full(16, 2.0)))
    tail = (carrier + 16 * rng.integers(0, 250, n)) % 4000
    hour = np.clip(rng.normal(13, 4.5, n), 0, 23).astype(int)
    leaves = pd.Timestamp("2013-01-01") + pd.to_timedelta(np.sort(rng.integers(0, 365, n)), "D")
    late = np.round(rng.exponential(6 + hour, n) - 10)
    return pd.DataFrame(
        {
            "id": [f"F{i:07}" for i in range(n)],
            "year": 2013,
            "leaves": leaves + pd.to_timedelta(hour, "h"),
            "delay": np.where(rng.random(n) < 0.03, np.nan, late),
            "carrier": np.array([f"C{i:02}" for i in range(16)])[carrier],
            "tail": np.array([f"N{i:04}X" for i in range(4000)])[tail],
            "miles": 100.0 + 25 * (tail % 97),
        }
    )


@pytest.fixture(scope="module")
def flights():
    return drawn_flights(20_000)


@pytest.fixture(scope="module")
def weave(flights):
    return Weave().fit(flights)


def test_what_is_dropped_is_said(weave):
    assert {found.column for found in weave.kinds() if not found.kept} == {"id", "year"}
    assert "id (an identifier" in repr(weave) and "year (constant)" in repr(weave)


def test_files_give_what_the_frame_gives(flights, weave, tmp_path):
    flights.to_csv(tmp_path / "flights.csv", index=False)
    flights.to_parquet(tmp_path / "flights.parquet", index=False)
    for name in ("flights.csv", "flights.parquet"):
        model = Weave().fit(tmp_path / name)
        difference = model.transform(flights[:500]) - weave.transform(flights[:500])
        assert np.abs(difference).max() < 1e-9


def test_no_two_tail_numbers_collapse(flights, weave):
    first = flights.iloc[[0] * 2000].assign(tail=flights["tail"].drop_duplicates()[:2000].array)
    assert len(np.unique(weave.transform(first).round(9), axis=0)) == 2000


def test_the_clock_goes_round(flights, weave):
    hours = pd.Timestamp("2013-06-01") + pd.to_timedelta([23, 24, 35], "h")
    evening, midnight, noon = flights.iloc[[0] * 3].assign(leaves=hours).to_dict("records")
    assert 10 * weave.explain(evening, midnight)["leaves"] < weave.explain(evening, noon)["leaves"]


def test_a_cancelled_flight_is_as_far_from_others_as_they_are_from_each_other(flights, weave):
    rows = flights[flights["delay"].notna()].sample(400, random_state=0).to_dict("records")
    cancelled = {**rows[0], "delay": np.nan}
    to_others = np.mean([weave.explain(cancelled, row)["delay"] for row in rows])
    apart = np.mean(
        [weave.explain(*pair)["delay"] for pair in zip(rows[::2], rows[1::2], strict=True)]
    )
    assert 0.8 < to_others / apart < 1.25


def test_similar_flights_within_a_range(flights, weave):
    index = SimilarityIndex(weave).fit(flights)
    found = index.query(flights.iloc[[7]], k=5, where={"delay": between(100, 200)})
    assert flights.loc[found.ids[0], "delay"].between(100, 200).all()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss is in kilobytes on Linux only")
@pytest.mark.parametrize("name", ["flights.csv", "flights.parquet", "frame"])
def test_a_year_fits_into_memory(name, tmp_path):
    frame = drawn_flights(FULL)
    if name == "frame":
        frame.to_parquet(tmp_path / "flights.parquet", index=False)
        command = [sys.executable, __file__, str(tmp_path / "flights.parquet"), "frame"]
    else:
        write = frame.to_csv if name.endswith("csv") else frame.to_parquet
        write(tmp_path / name, index=False)
        command = [sys.executable, __file__, str(tmp_path / name), "file"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert int(done.stdout) < MOST_BYTES


if __name__ == "__main__":  # the peak of a process of its own
    import resource

    path, kind = sys.argv[1:]
    if kind == "frame":
        Weave().fit_transform(pd.read_parquet(path))
    else:
        transform(Weave().fit(path), path, f"{path}.vectors.parquet")
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
