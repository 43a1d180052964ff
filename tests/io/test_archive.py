"""Files come back as they were, or are refused; a failure leaves nothing behind."""

import hashlib
import json
import os
import zipfile

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse

import tabweave
from tabweave import Column, Counts, Schema, Table
from tabweave.counts import counting as _counting
from tabweave.io import store

LABELS = [None, True, 0, 1.5, float("inf"), "a", "", "é\n", "\ud800", b"\x00x", 10**30]


def mixed(labels=LABELS, y=True):
    schema = Schema(
        {
            "any": "nominal",
            "size": Column("size", "ordinal", levels=("S", b"M", 3)),
            "tags": Column("tags", "set", delimiter=";"),
            "x": "numeric",
        },
        empty_is_missing=True,
    )
    n = len(labels)
    rows = {"any": labels, "size": [b"M"] * n, "tags": ["p;q"] * n, "x": np.linspace(0, 1, n)}
    return Counts.of(
        Table.of(rows, schema), [b"c" if v is None else v for v in labels] if y else None
    )


class TestRoundTrip:
    @settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(st.lists(st.sampled_from(LABELS), min_size=1), st.booleans())
    def test_everything(self, tmp_path, labels, y):
        counts = mixed(labels, y)
        counts.save(tmp_path / "c.tabweave")
        back = Counts.load(tmp_path / "c.tabweave")
        assert back == counts
        assert back.schema == counts.schema
        assert [*map(repr, back.labels)] == [*map(repr, counts.labels)]
        assert type(back.n) is type(counts.n)
        assert back.pairs.dtype == counts.pairs.dtype

    def test_sparse(self, tmp_path, monkeypatch):
        monkeypatch.setattr(_counting, "DENSE_VALUES", 3)
        counts = mixed()
        assert sparse.issparse(counts.pairs)
        counts.save(tmp_path / "c.tabweave")
        back = Counts.load(tmp_path / "c.tabweave")
        assert sparse.issparse(back.pairs)
        assert back == counts
        assert back + counts == counts + counts

    def test_weights_and_zero(self, tmp_path):
        for counts in (
            Counts(),
            Counts.of({"a": ["u", "v"], "x": [1.0, 2.0]}, sample_weight=[0.1, 2.5]),
        ):
            counts.save(str(tmp_path / "c"))
            assert Counts.load(str(tmp_path / "c")) == counts

    def test_why_columns_are_what_they_are(self, tmp_path):
        rows = {"key": [f"k{i}" for i in range(60)], "a": ["Yes", "yes ", "no"] * 20}
        counts = Counts.of(Table.of(rows, rules="whole"))
        counts.save(tmp_path / "counts.tabweave")
        schema = Counts.load(tmp_path / "counts.tabweave").schema
        assert (
            schema["a"].origin == counts.schema["a"].origin and schema["a"].question == "spelling"
        )
        assert (
            schema.dropped[0].why == counts.schema.dropped[0].why
            and schema.dropped[0].position == 0
        )

    def test_stays_usable(self, tmp_path):
        counts = Counts.of({"a": ["u", "v"]})
        counts.save(tmp_path / "c")
        more = Counts.of({"a": ["w"]})
        assert (Counts.load(tmp_path / "c") + more) - counts == more


class TestRefusal:
    @pytest.fixture
    def path(self, tmp_path):
        path = tmp_path / "c.tabweave"
        mixed().save(path)
        return path

    def test_absent_file(self, tmp_path):
        with pytest.raises(FileNotFoundError):
            Counts.load(tmp_path / "none")

    @pytest.mark.parametrize("content", [b"", b"hello", b"PK\x03\x04 broken", b"\x93NUMPY\x01\x00"])
    def test_foreign_bytes(self, path, content):
        path.write_bytes(content)
        with pytest.raises(
            ValueError, match=r"c\.tabweave is damaged or was not written by tabweave"
        ):
            Counts.load(path)

    def test_foreign_arrays(self, path):
        with path.open("wb") as file:
            np.save(file, np.arange(3))
        with pytest.raises(ValueError, match="not written by tabweave"):
            Counts.load(path)
        with path.open("wb") as file:
            np.savez(file, a=np.arange(3))
        with pytest.raises(ValueError, match="not written by tabweave"):
            Counts.load(path)

    def test_no_code_in_a_file_is_run(self, path, monkeypatch):
        """A sealed archive, whole but for an array of objects."""
        met = []
        monkeypatch.setattr(np, "trap", met.append, raising=False)

        class Trap:
            def __reduce__(self):
                return eval, ("__import__('numpy').trap('run')",)

        Counts().save(path)
        with np.load(path) as archive:
            members = {name: archive[name] for name in archive.files}
        for arrays in ({}, {"evil": np.array([Trap()], dtype=object)}):
            with path.open("w+b") as file:
                np.savez(file, **members, **arrays)
                store._seal(file)
            if arrays:
                with pytest.raises(ValueError, match="damaged"):
                    Counts.load(path)
            else:
                assert Counts.load(path) == Counts()
        assert met == []

    def test_pickles_are_not_opened(self, path):
        with path.open("wb") as file:
            np.savez(file, header=np.array([print], dtype=object))
        with pytest.raises(ValueError, match="not written by tabweave"):
            Counts.load(path)

    @pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.99])
    def test_truncated(self, path, share):
        whole = path.read_bytes()
        path.write_bytes(whole[: int(len(whole) * share)])
        with pytest.raises(ValueError, match="damaged"):
            Counts.load(path)

    def test_any_flipped_byte_is_noticed(self, path):
        whole = path.read_bytes()
        for place in range(0, len(whole), 37):
            path.write_bytes(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
            with pytest.raises(ValueError, match=r"c\.tabweave is damaged"):
                Counts.load(path)

    def test_without_its_seal(self, path):
        with np.load(path) as archive:
            arrays = {k: archive[k] for k in archive.files}
        with path.open("wb") as file:
            np.savez(file, **arrays)
        with pytest.raises(ValueError, match="no seal"):
            Counts.load(path)

    def test_other_kind(self, path):
        tabweave.OneHot().save(path)
        with pytest.raises(ValueError, match=r"c\.tabweave: expected counts, got a OneHot"):
            Counts.load(path)

    def test_newer_version(self, path):
        self.rewrite(path, tabweave=store.VERSION + 1)
        with pytest.raises(ValueError, match="upgrade"):
            Counts.load(path)

    @pytest.mark.parametrize(
        "change",
        [
            {"tabweave": "x"},
            {"tabweave": None},
            {"value": None},
            {"value": {"object": ["tabweave.counts.counts.Counts", 3]}},
            {"sklearn": 5, "value": 4},
        ],
        ids=str,
    )
    def test_tampered_header(self, path, change):
        self.rewrite(path, **change)
        with pytest.raises(ValueError, match="damaged"):
            Counts.load(path)

    @pytest.mark.parametrize(
        ("name", "value"),
        [("pairs", None), ("vocabulary", None), ("schema", {}), ("schema", 3), ("numbers", 4)],
        ids=str,
    )
    def test_tampered_counts(self, path, name, value):
        with np.load(path) as archive:
            header = json.loads(archive["header"].tobytes())
        header["value"]["object"][1][name] = value
        self.rewrite(path, value=header["value"])
        with pytest.raises(ValueError, match="damaged"):
            Counts.load(path)

    def test_missing_array(self, path):
        with np.load(path) as archive:
            arrays = {k: archive[k] for k in archive.files if k != "a1"}
        with path.open("w+b") as file:
            np.savez(file, **arrays)
            store._seal(file)
        with pytest.raises(ValueError, match=r"damaged: 'a1'"):
            Counts.load(path)

    @staticmethod
    def rewrite(path, **change):
        with np.load(path) as archive:
            arrays = {k: archive[k] for k in archive.files}
        header = json.loads(arrays.pop("header").tobytes()) | change
        with path.open("w+b") as file:
            text = np.frombuffer(json.dumps(header).encode(), np.uint8)
            np.savez(file, header=text, **arrays)
            store._seal(file)


class TestAtomic:
    def test_failure_keeps_the_old_file_and_no_other(self, tmp_path, monkeypatch):
        path = tmp_path / "c.tabweave"
        old, new = mixed(["a"]), mixed(["b"])
        old.save(path)

        def full(file, arrays):
            file.write(b"half")
            raise OSError("No space left on device")

        monkeypatch.setattr(store, "_pack", full)
        with pytest.raises(OSError, match="No space"):
            new.save(path)
        monkeypatch.undo()
        assert os.listdir(tmp_path) == ["c.tabweave"]
        assert Counts.load(path) == old

    def test_interrupt_leaves_nothing(self, tmp_path, monkeypatch):
        def interrupt(*_):
            raise KeyboardInterrupt

        monkeypatch.setattr(os, "replace", interrupt)
        with pytest.raises(KeyboardInterrupt):
            mixed().save(tmp_path / "c.tabweave")
        assert os.listdir(tmp_path) == []

    def test_overwrites(self, tmp_path):
        path = tmp_path / "c.tabweave"
        mixed(["a"]).save(path)
        mixed(["b"]).save(path)
        assert Counts.load(path) == mixed(["b"])
        assert os.listdir(tmp_path) == ["c.tabweave"]

    def test_others_may_read_it_as_any_new_file(self, tmp_path):
        mixed().save(tmp_path / "c.tabweave")
        (tmp_path / "plain").write_text("")
        assert (tmp_path / "c.tabweave").stat().st_mode == (tmp_path / "plain").stat().st_mode

    def test_absent_folder(self, tmp_path):
        with pytest.raises(FileNotFoundError):
            mixed().save(tmp_path / "none" / "c.tabweave")

    def test_is_a_plain_archive(self, tmp_path):
        mixed().save(tmp_path / "c.tabweave")
        with zipfile.ZipFile(tmp_path / "c.tabweave") as archive:
            assert "header.npy" in archive.namelist()


# -- files that unpack to too much ---------------------------------------------------------------


def sealed_bomb(path, **members):
    """Write an archive with a right seal, whatever it holds."""
    with open(path, "w+b") as file:
        np.savez_compressed(file, **members)
        store._seal(file)


@pytest.mark.parametrize("member", ["header", "a0"])
def test_a_bomb_is_refused_before_it_is_unpacked(tmp_path, monkeypatch, member):
    monkeypatch.setattr(store, "FREE_BYTES", 1 << 20)
    monkeypatch.setattr(store, "FREE_HEADER_BYTES", 1 << 18)
    unpacked = []
    opened = zipfile.ZipFile.open
    monkeypatch.setattr(
        zipfile.ZipFile, "open", lambda *a, **b: unpacked.append(a) or opened(*a, **b)
    )
    text = np.frombuffer(b'{"tabweave": 1}', np.uint8)
    sealed_bomb(tmp_path / "bomb", **({"header": text} | {member: np.zeros(1 << 22, np.uint8)}))
    assert (tmp_path / "bomb").stat().st_size < 10_000
    unpacked.clear()
    with pytest.raises(ValueError, match="decompresses to far more than a file of tabweave holds"):
        store.read(tmp_path / "bomb")
    assert not unpacked


def test_the_directory_cannot_lie_about_sizes(tmp_path):
    """A member that says less than it holds is read no farther than it says."""
    path = tmp_path / "lie"
    sealed_bomb(path, header=np.zeros(1 << 16, np.uint8))
    data = path.read_bytes()
    at = data.rindex(b"PK\x01\x02") + 24
    size = int.from_bytes(data[at : at + 4], "little")
    assert size > 1 << 16
    path.write_bytes(data[:at] + (100).to_bytes(4, "little") + data[at + 4 :])
    with pytest.raises(ValueError, match="damaged"):
        store.read(path)


def test_the_directory_cannot_lie_about_packed_sizes(tmp_path):
    """One edited field made 2 MB of file 2 GB of memory."""
    path = tmp_path / "lie"
    text = np.frombuffer(b'{"tabweave": 1}', np.uint8)
    sealed_bomb(path, header=text, a0=np.zeros(store.FREE_BYTES + 1, np.uint8))
    data = path.read_bytes()[: -store._HEX]
    at = data.rindex(b"PK\x01\x02") + 20
    data = data[:at] + (1 << 30).to_bytes(4, "little") + data[at + 4 :]
    path.write_bytes(data + hashlib.sha256(data).hexdigest().encode())
    with pytest.raises(ValueError, match="decompresses to far more than a file of tabweave holds"):
        store.read(path)


def test_what_is_nearly_all_zeros_is_written_so_that_it_can_be_read(tmp_path, monkeypatch):
    monkeypatch.setattr(store, "FREE_BYTES", 1 << 20)
    monkeypatch.setattr(store, "MAX_RATIO", 100)
    zeros = np.zeros(1 << 21, np.uint8)
    for _ in range(2):
        store.write(tmp_path / "zeros", {}, {"a0": zeros})
    assert (tmp_path / "zeros").stat().st_size > zeros.nbytes  # not packed
    _, arrays = store.read(tmp_path / "zeros")
    np.testing.assert_array_equal(arrays["a0"], zeros)


def test_a_file_without_a_seal_and_one_that_is_cut_while_it_is_read(tmp_path):
    header = np.frombuffer(b'{"tabweave": 1}', np.uint8)
    np.savez_compressed(tmp_path / "plain.npz", header=header)
    with pytest.raises(ValueError, match="it has no seal"):
        store.read(tmp_path / "plain.npz")
    with open(tmp_path / "plain.npz", "rb") as file, pytest.raises(EOFError, match="ends early"):
        store._digest(file, 10**6)


def test_an_error_of_the_disk_names_the_file_if_it_is_there(tmp_path, monkeypatch):
    store.write(tmp_path / "model", {}, {})

    def failing(file):
        raise OSError("the disk is broken")

    monkeypatch.setattr(store, "_check_seal", failing)
    with pytest.raises(ValueError, match=r"model is damaged .*the disk is broken"):
        store.read(tmp_path / "model")
    with pytest.raises(FileNotFoundError):
        store.read(tmp_path / "absent")


def test_a_file_ends_with_the_seal_of_today(tmp_path):
    import hashlib

    store.write(tmp_path / "f", {}, {"a": np.arange(3)})
    content = (tmp_path / "f").read_bytes()
    assert content[-80:-64] == b"tabweave sha256 "
    assert content[-64:].decode() == hashlib.sha256(content[:-64]).hexdigest()


def test_as_much_as_is_free_may_be_unpacked():
    def entry(packed, unpacked):
        info = zipfile.ZipInfo("a")
        info.compress_size, info.file_size = packed, unpacked
        return info

    over = store._is_over
    assert not over([entry(0, 60), entry(0, 40)], 9, 100)
    assert over([entry(0, 60), entry(0, 41)], 9, 100)
    most = store.MAX_RATIO * 7
    assert not over([entry(7, most)], 9, 100) and over([entry(7, most + 1)], 9, 100)
    assert over([entry(9, most + 1)], 7, 100)  # the file is smaller than it says


def test_an_encoder_of_strings_is_refused_by_its_column(tmp_path):
    counts = Counts.of(Table.of({"a": ["x"]}, {"a": Column("a", spelling=len)}))
    with pytest.raises(TypeError, match=r"cannot save .*spelling: len is code of your own"):
        counts.save(tmp_path / "c")
    assert not list(tmp_path.iterdir())
