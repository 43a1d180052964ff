"""Segments of an index: what is added lies in the last; rows may stay in a file."""

import numpy as np
import pytest

import tabweave.io.store as store_module
import tabweave.neighbors.stored as stored_module
from tabweave import OneHot, Schema, SimilarityIndex, Weave

SCHEMA = Schema({"color": "nominal", "tags": "set", "price": "numeric", "day": "datetime"})


def rows_of(n, seed=0, colors=5):
    rng = np.random.default_rng(seed)
    return {
        "color": [None if c == 0 else f"c{c}" for c in rng.integers(0, colors, n)],
        "tags": [[f"t{t}" for t in set(rng.integers(0, 6, 2).tolist())] for _ in range(n)],
        "price": [None if p > 9.5 else round(p, 1) for p in rng.uniform(0, 10, n)],
        "day": [f"2024-01-{d:02d}" for d in rng.integers(1, 29, n)],
    }


def part(rows, numbers):
    return {name: [cells[i] for i in numbers] for name, cells in rows.items()}


@pytest.fixture
def small_segments(monkeypatch):
    monkeypatch.setattr(stored_module, "SEGMENT_ROWS", 40)
    monkeypatch.setattr(stored_module, "BLOCK_ROWS", 64)
    monkeypatch.setattr(store_module, "MIN_MAPPED_BYTES", 400)


def same_answers(a, b, asked):
    for question in (
        {},
        {"where": {"color": ["c1", "c9"], "price": lambda p: p > 3}},
        {"together": "mean"},
        {"together": "all"},
    ):
        x, y = (index.query(asked, 7, **question) for index in (a, b))
        np.testing.assert_array_equal(x.positions, y.positions)
        np.testing.assert_array_equal(x.ids, y.ids)
        np.testing.assert_allclose(x.distances, y.distances, rtol=1e-12, atol=1e-12)
    some = {"color": asked["color"][:3], "price": asked["price"][:3]}
    np.testing.assert_array_equal(a.query(some, 9).ids, b.query(some, 9).ids)
    for x, y in zip(a.query_radius(asked, 0.5), b.query_radius(asked, 0.5), strict=True):
        np.testing.assert_array_equal(x.ids, y.ids)
    np.testing.assert_allclose(a.share_nearer([0.4, 0.8]), b.share_nearer([0.4, 0.8]))
    np.testing.assert_array_equal(a.ids_, b.ids_)


@pytest.mark.filterwarnings("ignore:column 'color'. 30 of 55 values were not seen")
def test_rows_that_were_added_are_found_as_if_they_had_been_there(small_segments):
    rows, late = rows_of(300), rows_of(60, 1, colors=11)  # some colors are new
    embedder = Weave(schema=SCHEMA).fit(rows)
    added = SimilarityIndex(embedder).fit(part(rows, range(100)))
    added.query(part(rows, [0]))  # views of the first rows are there
    for begin in range(100, 300, 25):
        added.add(part(rows, range(begin, begin + 25)))
    added.add(late)
    assert len(added._stored.parts) > 4
    whole = SimilarityIndex(embedder).fit(rows).add(late)
    for index in (added, whole):
        index.remove([3, 150, 299, 301])
    asked = part(rows, range(0, 300, 17))
    same_answers(added, whole, asked)
    assert added.explain(part(rows, [5]), 290) == whole.explain(part(rows, [5]), 290)
    with pytest.raises(KeyError, match="id 150 was removed; there are 356 rows"):
        added.remove(150)
    pairs = added.duplicates(0.2), whole.duplicates(0.2)
    np.testing.assert_array_equal(pairs[0].positions, pairs[1].positions)
    assert len(added._stored.parts) == 1  # pairs are looked for in one segment


@pytest.mark.parametrize("ids", ["rising", "mixed", "text"])
def test_ids_of_all_segments_are_taken(ids, small_segments):
    numbers = np.arange(200) if ids == "rising" else np.random.default_rng(0).permutation(200)
    names = numbers if ids != "text" else np.array([f"row {i}" for i in numbers])
    rows = {"a": [f"v{i % 7}" for i in range(200)]}
    index = SimilarityIndex(OneHot()).fit(part(rows, range(50)), ids=names[:50])
    for begin in (50, 100, 150):
        index.add(part(rows, range(begin, begin + 50)), ids=names[begin : begin + 50])
    assert len(index._stored.parts) == 4
    for used in (names[3], names[120]):
        with pytest.raises(ValueError, match="is in the index already"):
            index.add({"a": ["v1"]}, ids=[used])
    index.remove(names[120]).add({"a": ["v1"]}, ids=[names[120]])
    expected = [*np.delete(names, 120).tolist(), names[120]]
    assert index.ids_.tolist() == expected
    index.remove(names)
    assert index.add({"a": ["v2"]}, ids=[7]).ids_.tolist() == [7]


def test_what_is_added_leaves_other_segments_as_they_are(small_segments):
    rows = {"a": [f"v{i % 7}" for i in range(200)]}
    index = SimilarityIndex(OneHot()).fit(rows)
    index.query({"a": "v1"})
    first, view = index._stored.parts[0], index._ready().view()
    index.add({"a": ["v1", "new"]})
    assert index._stored.parts[0].table.columns[0].codes is first.table.columns[0].codes
    assert index._stored.parts[0].ids is first.ids
    assert index._ready().view() is view


def test_rows_that_stay_in_a_file_are_found_as_those_in_memory(small_segments, tmp_path):
    rows = rows_of(300)
    whole = SimilarityIndex(Weave(schema=SCHEMA)).fit(rows)
    path = tmp_path / "index"
    whole.save(path, compress=False)
    mapped = SimilarityIndex.load(path, mmap=True)
    stored = mapped._stored.parts[0]
    assert stored.is_mapped and len(stored.blocks()) == 5
    assert stored.ids.ctypes.data % 64 == 0 and not stored.ids.flags.writeable
    asked = part(rows, range(0, 300, 17))
    same_answers(mapped, whole, asked)
    for index in (mapped, whole):
        index.add(part(rows, range(50))).remove([7, 310])
    same_answers(mapped, whole, asked)
    for refused in (lambda: mapped.duplicates(0.1), lambda: mapped.query(asked, distinct=True)):
        with pytest.raises(ValueError, match="load it without mmap"):
            refused()
    mapped.save(path, compress=False)  # in the place of the file that it reads
    same_answers(SimilarityIndex.load(path, mmap=True), whole, asked)
    same_answers(SimilarityIndex.load(path), whole, asked)


def test_files_that_cannot_be_mapped_are_refused(small_segments, tmp_path):
    index, path = SimilarityIndex(OneHot()).fit(part(rows_of(300), range(300))), tmp_path / "index"
    index.save(path)
    with pytest.raises(ValueError, match="compressed; save it with compress=False"):
        SimilarityIndex.load(path, mmap=True)
    index.save(path, compress=False)
    content = path.read_bytes()
    for position in range(100, len(content), len(content) // 40):
        path.write_bytes(
            content[:position] + bytes([content[position] ^ 1]) + content[position + 1 :]
        )
        with pytest.raises(ValueError, match="index is damaged"):
            SimilarityIndex.load(path, mmap=True)
    path.write_bytes(content[:-1000])
    with pytest.raises(ValueError, match="index is damaged"):
        SimilarityIndex.load(path, mmap=True)
