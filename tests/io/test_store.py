"""Every estimator comes back from a file as it was; files that are none of ours are refused."""

import inspect
import json
import os
import re
import subprocess
import sys
import warnings
from functools import partial

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator
from sklearn.decomposition import PCA

import tabweave
from tabweave import (
    CKML,
    HELIC,
    KSVD,
    UNICORN,
    UNTIE,
    Column,
    Counts,
    CoupledNumeric,
    DistanceHierarchy,
    KModes,
    NonBEND,
    OneHot,
    Schema,
    SetTfidf,
    SimilarityIndex,
    Table,
    ValueMetric,
    Weave,
    WeightedKNN,
    Windowed,
    papers,
)
from tabweave.cluster import StreamClusterer
from tabweave.counts import counting
from tabweave.counts.couplings import gaussian
from tabweave.embed import EMBEDDERS
from tabweave.embed.base import ValueEmbedder
from tabweave.embed.onehot import OneHotAutoencoder
from tabweave.io import store
from tabweave.io import store as _store
from tabweave.io.store import Decoder, Encoder, state_of
from tabweave.papers import CCDSDC, CCTED, DCD
from tabweave.papers.recommend import MatrixFactorization
from tabweave.sources.gbc import GBC

RNG = np.random.default_rng(0)
N = 40
ROWS = {
    "color": RNG.choice(["red", "blue", "green", None], N).tolist(),
    "size": RNG.choice([1, 2, 3], N).tolist(),
    "it's": RNG.choice([True, False], N).tolist(),
    "odd": RNG.choice([0.5, "é", b"\x00", 10**30], N).tolist(),
}
MORE = {name: [*cells[:5], "never seen", None] for name, cells in ROWS.items()}
Y = RNG.choice(["u", "v"], N).tolist()
NOMINAL = dict.fromkeys(ROWS, "nominal")
MIXED_SCHEMA = {
    "job": "nominal",
    "grade": Column("grade", "ordinal", levels=("low", "mid", "high")),
    "tags": Column("tags", "set", delimiter=";"),
}
MIXED = {
    "job": RNG.choice(["cook", "clerk", None], N).tolist(),
    "grade": RNG.choice(["low", "mid", "high", None], N).tolist(),
    "tags": RNG.choice(["p;q", "q", "r;p"], N).tolist(),
    "age": np.where(np.arange(N) % 7, RNG.normal(40, 9, N), np.nan),
}
NUMBERS = RNG.normal(size=(N, 3))
SETS = {"tags": [["p", "q"], ["q"], ["r", "p"], ["p", "q", "r"]] * 10}


def streamed(model):
    for start in (0, 15, 25):
        model.partial_fit({name: cells[start : start + 15] for name, cells in ROWS.items()})
    return model


def sources():
    ids = [f"i{i}" for i in range(N)]
    tables = {
        "a": (ids, NUMBERS),
        "b": {"id": ids[5:], "x": NUMBERS[5:, 0], "c": ROWS["color"][5:]},
    }
    graphs = {"g": {"from": ids[:-1], "to": ids[1:]}}
    return tabweave.Sources(tables, graphs)


# What each public estimator is fitted with; other models are here because they hold other things.
MODELS = {
    "BoostedWeave": lambda: tabweave.BoostedWeave(schema=NOMINAL, max_cycles=5).fit(ROWS, Y),
    "CDE": lambda: tabweave.CDE(schema=NOMINAL, random_state=0).fit(ROWS),
    "CKML": lambda: CKML(schema=NOMINAL).fit(ROWS),
    "CA": lambda: tabweave.CA(1).fit(np.arange(12.0).reshape(4, 3) + 1),
    "MCA": lambda: tabweave.MCA(2, schema=NOMINAL).fit(ROWS),
    "FAMD": lambda: tabweave.FAMD(2, schema=NOMINAL).fit(ROWS),
    "MFA": lambda: tabweave.MFA(
        {"one": ["color", "odd"], "two": ["size", "it's"]}, schema=NOMINAL
    ).fit(ROWS),
    "Imputer": lambda: tabweave.Imputer("counts", schema=NOMINAL).fit(ROWS),
    "OutlierCells": lambda: tabweave.OutlierCells(engine="counts", schema=NOMINAL).fit(ROWS),
    "CoupledNumeric": lambda: CoupledNumeric(standardize=True).fit(NUMBERS),
    "DistanceHierarchy": lambda: DistanceHierarchy(schema=MIXED_SCHEMA).fit(MIXED, Y),
    "CoCA": lambda: tabweave.CoCA(2).fit(NUMBERS),
    "DRDH": lambda: tabweave.DRDH(n_iter=30, schema=MIXED_SCHEMA, random_state=0).fit(MIXED),
    "GBCClassifier": lambda: tabweave.GBCClassifier(5, random_state=0).fit(NUMBERS, Y),
    "GBCRegressor": lambda: tabweave.GBCRegressor(5, random_state=0).fit(NUMBERS, NUMBERS[:, 0]),
    "HELIC": lambda: HELIC(schema=NOMINAL, random_state=0, n_pairs=50).fit(ROWS, Y),
    "HeMap": lambda: tabweave.HeMap(guard=None, random_state=0).fit(
        NUMBERS, Y, source=(NUMBERS[:, ::-1] ** 3, Y), pairs=np.arange(N)
    ),
    "KModes": lambda: KModes(3, metric=OneHot(schema=NOMINAL), random_state=0).fit(ROWS),
    "KSVD": lambda: KSVD(5, random_state=0).fit(NUMBERS),
    "mixed": lambda: Weave(schema=MIXED_SCHEMA).fit(MIXED),
    "NonBEND": lambda: NonBEND(schema=NOMINAL, random_state=0).fit(ROWS),
    "OneHot": lambda: OneHot(schema=NOMINAL, unknown="centroid", dtype="float32").fit(ROWS),
    "SetTfidf": lambda: SetTfidf(schema={"tags": "set"}).fit(SETS),
    "SimilarityIndex": lambda: tabweave.SimilarityIndex(Weave(schema=NOMINAL)).fit(ROWS),
    "UNICORN": lambda: streamed(UNICORN(2, schema=NOMINAL, decay=0.5)),
    "UNTIE": lambda: UNTIE(2, schema=NOMINAL).fit(ROWS),
    "ValueMetric": lambda: ValueMetric("lin", schema=NOMINAL).fit(ROWS),
    "Weave": lambda: Weave(2, schema=Schema(NOMINAL)).fit(ROWS),
    "WeaveClassifier": lambda: tabweave.WeaveClassifier(schema=NOMINAL).fit(ROWS, Y),
    "WeaveRegressor": lambda: tabweave.WeaveRegressor(schema=NOMINAL).fit(ROWS, NUMBERS[:, 0]),
    "WeightedKNN": lambda: WeightedKNN(3, metric=Weave(schema=NOMINAL)).fit(ROWS, Y),
    "Windowed": lambda: streamed(Windowed(Weave(schema=NOMINAL), window=2, refresh=2)),
    # beside the public names
    "CCDSDC": lambda: streamed(CCDSDC(2, schema=NOMINAL, random_state=0)),
    "CCTED": lambda: streamed(CCTED(2, schema=NOMINAL, random_state=0)),
    "DCD": lambda: streamed(DCD(2, schema=NOMINAL, random_state=0)),
    "StreamClusterer": lambda: streamed(
        StreamClusterer(2, embedder=Windowed(OneHot(schema=NOMINAL)), random_state=0)
    ),
    "OneHotAutoencoder": lambda: OneHotAutoencoder(
        4, schema=NOMINAL, max_iter=5, random_state=0
    ).fit(ROWS),
    # other insides
    "UNICORN as published": lambda: streamed(
        papers.UNICORN(schema=NOMINAL, kernels={"wide": partial(gaussian, width=2.0)})
    ),
    "jia": lambda: ValueMetric("jia", schema=NOMINAL).fit(ROWS),
    "not learned yet": lambda: Weave(schema=NOMINAL).fit(ROWS).partial_fit(ROWS),
    "a generator": lambda: KModes(
        2, metric=OneHot(schema=NOMINAL), random_state=np.random.RandomState(3)
    ).fit(ROWS),
    "HeMap alone": lambda: tabweave.HeMap(random_state=0).fit(NUMBERS.repeat(3, axis=0), Y * 3),
    "CoCA of sources": lambda: tabweave.CoCA(2).fit(sources()),
    "GBC of sources": lambda: tabweave.GBCClassifier(5, random_state=0).fit(
        sources(), {f"i{i}": y for i, y in enumerate(Y[:30])}
    ),
    "DRDH of categories": lambda: tabweave.DRDH(n_iter=30, schema=NOMINAL, random_state=0).fit(
        ROWS
    ),
    "sparse": lambda: KSVD(4, random_state=0).fit(
        SetTfidf(schema={"tags": "set"}).fit_transform(SETS)
    ),
}
for _entry in EMBEDDERS.values():  # one that was added since is fitted as it comes
    if issubclass(_entry.cls, ValueEmbedder):
        MODELS.setdefault(
            _entry.cls.__name__, lambda cls=_entry.cls: cls(schema=NOMINAL).fit(ROWS, Y)
        )
ESTIMATORS = [
    name
    for name in tabweave.__all__
    if inspect.isclass(cls := getattr(tabweave, name)) and issubclass(cls, BaseEstimator)
]


def inputs(model):
    if (
        isinstance(model, Weave | DistanceHierarchy | tabweave.DRDH)
        and "job" in model.schema_.names
    ):
        return MIXED
    if isinstance(model, tabweave.CA):
        return np.arange(12.0).reshape(4, 3) + 1
    several = vars(model).get("boosters_") or vars(model).get("columns_") or ()
    if "b" in several:
        return tabweave.Sources({"a": (["i1", "new"], NUMBERS[:2])})
    if isinstance(model, CoupledNumeric | KSVD | tabweave.HeMap | tabweave.CoCA | GBC):
        width = model.n_features_in_
        return NUMBERS if width == 3 else np.abs(np.random.default_rng(1).normal(size=(6, width)))
    return SETS if isinstance(model, SetTfidf) else MORE


def results(model):
    """Everything that a fitted model says of rows."""
    if isinstance(model, tabweave.SimilarityIndex):
        return dict(model.query(MORE, 5)._asdict(), ids=model.ids_)
    rows, out = inputs(model), {}
    for method in ("transform", "predict", "predict_proba", "pairwise_distances"):
        if hasattr(model, method) and (method != "transform" or not refuses(model)):
            column = ["color"] if method == "predict_proba" and hasattr(model, "sample") else []
            found = getattr(model, method)(rows, *column)
            if not isinstance(found, dict):
                found = found.toarray() if hasattr(found, "toarray") else np.asarray(found)
            out[method] = found
    return out


def refuses(model):
    return isinstance(model, ValueMetric) and model.measure == "jia"


def same(a, b):
    assert type(a) is type(b)
    if isinstance(a, np.ndarray):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b, strict=True)
    elif isinstance(a, dict):
        assert list(a) == list(b)
        for key in a:
            same(a[key], b[key])
    elif isinstance(a, list | tuple):
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            same(x, y)
    elif isinstance(a, set | frozenset):
        same(sorted(a, key=repr), sorted(b, key=repr))
    elif isinstance(a, np.random.RandomState):
        same(a.get_state(legacy=False), b.get_state(legacy=False))
    elif hasattr(a, "__dict__") and not callable(a):
        if isinstance(a, Counts):
            assert a == b
        same(*(dict(sorted(state_of(part).items())) for part in (a, b)))
    else:
        assert repr(a) == repr(b)


@pytest.fixture(scope="module")
def fitted():
    return {}


def model_of(fitted, name):
    if name not in fitted:
        try:
            fitted[name] = MODELS[name]()
        except ImportError as error:  # an optional package
            pytest.skip(str(error))
    return fitted[name]


@pytest.mark.filterwarnings("ignore:column .* 'never seen' was not seen in fit")
class TestRoundTrip:
    def test_every_public_estimator_is_here(self):
        assert set(ESTIMATORS) <= set(MODELS)

    @pytest.mark.parametrize("name", MODELS)
    def test_fitted(self, fitted, name, tmp_path):
        model = model_of(fitted, name)
        model.save(tmp_path / "m")
        again = tabweave.load(tmp_path / "m")
        same(again.get_params(), model.get_params())
        same(results(again), results(model))
        again.save(tmp_path / "again")
        model.save(tmp_path / "m")
        assert (tmp_path / "again").read_bytes() == (tmp_path / "m").read_bytes()

    @pytest.mark.parametrize("name", ESTIMATORS)
    def test_unfitted(self, name, tmp_path):
        model = getattr(tabweave, name)()
        model.save(tmp_path / "m")
        again = tabweave.load(tmp_path / "m")
        same(vars(again), vars(model))

    def test_other_objects(self, tmp_path):
        table = Table.of(MIXED, MIXED_SCHEMA)
        for value in (table, table.schema, Counts.of(table, Y), Weave().fit(ROWS).tables_):
            tabweave.export.save(value, tmp_path / "v")
            same(tabweave.load(tmp_path / "v"), value)

    def test_counts_by_their_own_save(self, tmp_path):
        counts = Counts.of(Table.of(MIXED, MIXED_SCHEMA), Y)
        counts.save(tmp_path / "c")
        assert tabweave.load(tmp_path / "c") == counts

    def test_goes_on_learning(self, fitted, tmp_path):
        for name in ("Weave", "HELIC", "UNICORN", "Windowed", "StreamClusterer", "mixed"):
            model = MODELS[name]()
            model.save(tmp_path / "m")
            again = tabweave.load(tmp_path / "m")
            rows = MIXED if name == "mixed" else ROWS
            with_y = (Y,) if name == "HELIC" else ()
            for each in (again, model):
                each.partial_fit(rows, *with_y)
            same(results(again), results(model))

    def test_what_was_shared_is_shared(self, tmp_path):
        stream = streamed(Windowed(OneHot(schema=NOMINAL)))
        stream.save(tmp_path / "s")
        again = tabweave.load(tmp_path / "s")
        assert again._memory.total is again.embedder_.counts_

    def test_ratings(self, tmp_path):
        users, items = ["ann", "bob", "ann", "eve"], ["x", "x", "y", "y"]
        model = MatrixFactorization(n_factors=2, n_iter=4, burn_in=2, random_state=0)
        model.fit(users, items, [1.0, 2.0, 3.0, 4.0])
        model.save(tmp_path / "m")
        again = tabweave.load(tmp_path / "m")
        same(again.predict(["bob", "joe"], ["y", "x"]), model.predict(["bob", "joe"], ["y", "x"]))

    def test_boosters(self, tmp_path):
        lightgbm = pytest.importorskip("lightgbm", reason="boosters are optional")
        data = lightgbm.Dataset(NUMBERS, np.array(Y) == "u", params={"verbose": -1})
        booster = lightgbm.train({"verbose": -1, "min_data_in_leaf": 2}, data, 5)
        model = OneHot()
        model.booster_ = booster
        model.save(tmp_path / "m")
        again = tabweave.load(tmp_path / "m")
        same(again.booster_.predict(NUMBERS), booster.predict(NUMBERS))

    @pytest.mark.slow
    def test_same_bytes_in_every_process(self, tmp_path):
        for package in ("lightgbm", "openTSNE"):
            pytest.importorskip(package, reason="some models need it")
        code = (
            "import sys, importlib.util as u;"
            f"s = u.spec_from_file_location('t', {str(__file__)!r});"
            "t = u.module_from_spec(s); s.loader.exec_module(t);"
            "[t.MODELS[name]().save(sys.argv[1] + name) for name in t.MODELS]"
        )
        for seed in ("1", "2"):
            environment = os.environ | {"PYTHONHASHSEED": seed}
            path = str(tmp_path / seed)
            subprocess.run([sys.executable, "-c", code, path], env=environment, check=True)
        for name in MODELS:
            one, two = ((tmp_path / f"{seed}{name}").read_bytes() for seed in "12")
            assert one == two, name


LABELS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False)
LABELS = LABELS | st.text() | st.binary()
MOMENTS = st.dates() | st.datetimes().map(lambda moment: moment.replace(fold=0))
VALUES = st.recursive(
    LABELS
    | st.floats()
    | st.dates()
    | st.datetimes().map(lambda d: d.replace(fold=0))
    | st.decimals(allow_nan=False)
    | st.uuids(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(LABELS, inner, max_size=4)
        | st.frozensets(LABELS, max_size=4)
        | st.sets(LABELS, max_size=4)
    ),
    max_leaves=12,
)


def through_json(value):
    encoder = Encoder(_store._name_of)
    text = json.dumps(encoder.encode(value, "value"))
    decoder = Decoder(encoder.arrays, _store._named)
    out = decoder.decode(json.loads(text))
    assert not decoder.unused
    return out


@given(value=VALUES)
def test_any_plain_value_comes_back(value):
    same(through_json(value), value)


@pytest.mark.parametrize(
    "array",
    [
        np.zeros((2, 0, 3)),
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.array(["a", "é\n"]),
        np.array([b"x"]),
        np.array(["2024-01-01", "NaT"], "M8[ns]"),
        np.array([None, "a", 3, (1, 2)], dtype=object),
        np.array(True),
        np.arange(10)[::2],
    ],
    ids=lambda a: str(a.dtype),
)
def test_arrays_come_back(tmp_path, array):
    OneHot(schema=array).save(tmp_path / "m")
    back = tabweave.load(tmp_path / "m").schema
    same(back, array)
    assert back.flags.f_contiguous or not array.flags.f_contiguous


def test_scalars_and_generators_come_back():
    values = [np.float32(0.1), np.int8(-3), np.bool_(True), np.str_("é"), np.str_(""), np.float64]
    values += [np.dtype("f4"), np.datetime64("2024-01-01")]
    same(through_json(values), values)
    rng = np.random.default_rng(5)
    assert through_json(rng).integers(2**60) == rng.integers(2**60)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    path = tmp_path_factory.mktemp("whole") / "m"
    streamed(UNICORN(2, schema=NOMINAL)).save(path)
    return path.read_bytes()


class TestRefusal:
    def test_code_of_your_own(self, tmp_path):
        def mine(counts):
            return [1 - np.eye(size) for size in counts.sizes]

        model = ValueMetric(mine).fit(ROWS, Y)
        with pytest.raises(TypeError, match=r"cannot save measure: .*mine is code of your own"):
            model.save(tmp_path / "m")
        with pytest.raises(TypeError, match=r"cannot save kernels\['k'\]: .*lambda"):
            UNTIE(2, kernels={"k": lambda *_: 1}).save(tmp_path / "m")
        assert not list(tmp_path.iterdir())

    def test_classes_of_others(self, tmp_path):
        from sklearn.ensemble import RandomForestClassifier

        class Mine(OneHot):
            pass

        with pytest.raises(TypeError, match=r"expected a class that files hold, got .*Mine"):
            Mine().save(tmp_path / "m")
        with pytest.raises(
            TypeError, match=r"cannot save embedder: expected .*RandomForestClassifier"
        ):
            SimilarityIndex(RandomForestClassifier()).save(tmp_path / "m")
        with pytest.raises(TypeError, match="give an estimator"):
            tabweave.export.save([1, 2], tmp_path / "m")

    def test_what_holds_itself(self, tmp_path):
        ring = []
        ring.append(ring)
        with pytest.raises(TypeError, match="holds itself"):
            OneHot(schema=ring).save(tmp_path / "m")

    def test_failure_keeps_the_old_file(self, tmp_path):
        path = tmp_path / "m"
        OneHot().save(path)
        before = path.read_bytes()
        with pytest.raises(TypeError):
            OneHot(schema=print).save(path)
        assert path.read_bytes() == before

    def test_absent_and_foreign_files(self, tmp_path):
        with pytest.raises(FileNotFoundError):
            tabweave.load(tmp_path / "none")
        with pytest.raises(IsADirectoryError):
            tabweave.load(tmp_path)
        for content in (
            b"",
            b"hello",
            b"PK\x03\x04 broken",
            b"\x80\x04\x95",
            b"tabweave sha256 " * 9,
        ):
            (tmp_path / "f").write_bytes(content)
            with pytest.raises(ValueError, match=r"f is damaged or was not written by tabweave"):
                tabweave.load(tmp_path / "f")

    def test_pickles_are_not_opened(self, tmp_path):
        import pickle

        class Trap:
            def __reduce__(self):
                return exec, ("raise SystemExit",)

        (tmp_path / "f").write_bytes(pickle.dumps(Trap()))
        with pytest.raises(ValueError, match="not written by tabweave"):
            tabweave.load(tmp_path / "f")

    def test_cut_short_anywhere(self, whole, tmp_path):
        for i in range(50):
            (tmp_path / "cut.tabweave").write_bytes(whole[: len(whole) * i // 50])
            with pytest.raises(ValueError, match=r"cut\.tabweave"):
                tabweave.load(tmp_path / "cut.tabweave")
        (tmp_path / "cut.tabweave").write_bytes(whole[:-1])
        with pytest.raises(ValueError, match=r"cut\.tabweave"):
            tabweave.load(tmp_path / "cut.tabweave")

    @settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(data=st.data())
    def test_any_changed_byte_is_noticed(self, whole, tmp_path, data):
        content = bytearray(whole)
        for _ in range(data.draw(st.integers(1, 3))):
            place = data.draw(st.integers(0, len(whole) - 1))
            content[place] ^= data.draw(st.integers(1, 255))
        if content == whole:
            return
        (tmp_path / "odd.tabweave").write_bytes(content)
        with pytest.raises(ValueError, match=r"odd\.tabweave"):
            tabweave.load(tmp_path / "odd.tabweave")

    def test_every_byte_of_the_seal_counts(self, whole, tmp_path):
        for place in range(len(whole) - 100, len(whole)):
            odd = whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :]
            (tmp_path / "odd.tabweave").write_bytes(odd)
            with pytest.raises(ValueError, match=r"odd\.tabweave"):
                tabweave.load(tmp_path / "odd.tabweave")

    def test_bytes_before_or_behind(self, whole, tmp_path):
        for odd in (b"x" + whole, whole + b"x", whole + whole):
            (tmp_path / "odd.tabweave").write_bytes(odd)
            with pytest.raises(ValueError, match=r"odd\.tabweave"):
                tabweave.load(tmp_path / "odd.tabweave")


def forged(path, change):
    """Write a file with a good seal and a bad content."""
    Weave(schema=NOMINAL).fit(ROWS).save(path)
    header, arrays = store.read(path)
    change(header, header["value"]["object"][1], arrays)
    store.write(path, header, arrays)


def put(name, value):
    return lambda header, state, arrays: state.__setitem__(name, value)


FORGERIES = {
    "class": lambda h, s, a: h["value"]["object"].__setitem__(0, "os.system"),
    "module": lambda h, s, a: h["value"]["object"].__setitem__(0, "tabweave.apps.cli.main"),
    "program": lambda h, s, a: h["value"]["object"].__setitem__(
        0, "tabweave.apps.cli.__main__.app"
    ),
    "undeclared class": put("schema", {"object": ["tabweave.embed.base.ValueEmbedder", {}]}),
    "undeclared function": put("schema", {"function": "tabweave.io.store.replacing"}),
    "imported name": put("schema", {"function": "tabweave.embed.weave.Counts"}),
    "measure": put("schema", {"function": "measure none"}),
    "function": put("schema", {"function": "builtins.eval"}),
    "other sklearn": put("schema", {"object": ["sklearn.ensemble.RandomForestClassifier", {}]}),
    "tag": put("schema", {"code": "1"}),
    "two tags": put("schema", {"tuple": [], "list": []}),
    "number": put("schema", {"same": 10**9}),
    "negative": put("schema", {"same": -1}),
    "method": put("transform", 3),
    "dunder": put("__class__", "x"),
    "name": put("a b", 1),
    "array": put("schema", {"array": "none"}),
    "object scalar": put("schema", {"scalar": ["|O", "00" * 8]}),
    "sparse": put("schema", {"sparse": ["csr_array", [2, 2], []]}),
    "counts": put("counts_", 3),
    "tables": put("tables_", [1]),
    "schema": put("schema_", None),
    "width": put("n_features_in_", 99),
    "field": lambda h, s, a: s["tables_"]["object"][1].pop("tables"),
    "unknown field": lambda h, s, a: s["tables_"]["object"][1].__setitem__("more", 1),
    "combine": lambda h, s, a: s["tables_"]["object"][1].__setitem__("combine", "maybe"),
    "short table": lambda h, s, a: a.update({k: v[:1] for k, v in a.items()}),
    "no array": lambda h, s, a: a.popitem(),
    "one array more": lambda h, s, a: a.update(more=np.zeros(1)),
    "no value": lambda h, s, a: h.pop("value"),
    "deep": put("schema", eval("[" * 90 + "]" * 90)),
}
HARMLESS = {"deep", "schema"}
TABLES = {
    "code": ("color", lambda c: c["codes"].__setitem__(3, 200)),
    "element": ("tags", lambda c: c["codes"].__setitem__(0, 9)),
    "negative start": ("tags", lambda c: c["starts"].__setitem__(0, -5)),
    "falling starts": ("tags", lambda c: c["starts"].__setitem__(1, 4)),
    "last start": ("tags", lambda c: c["starts"].__setitem__(-1, 99)),
}
REFUSED = ("os", "sklearn.ensemble", "tabweave.apps")


@pytest.mark.parametrize("name", FORGERIES)
def test_forged_content_is_refused(tmp_path, name):
    path = tmp_path / "forged.tabweave"
    forged(path, FORGERIES[name])
    before = set(sys.modules)
    if name in HARMLESS:
        tabweave.load(path)
        return
    with pytest.raises(ValueError, match=r"forged\.tabweave is damaged"):
        tabweave.load(path)
    assert not {m for m in set(sys.modules) - before if m.startswith(REFUSED)}


@pytest.mark.parametrize("name", TABLES)
def test_codes_of_a_forged_table_are_refused(tmp_path, name):
    """Compiled loops trust codes: one beyond the labels would read foreign memory."""
    column, change = TABLES[name]
    table = Table.of(
        {"color": ["red", "blue", "red", "red"], "tags": [["a"], ["a", "b"], [], ["b"]]},
        {"tags": "set"},
    )
    data = table[column]
    change(vars(data))
    tabweave.export.save(table, tmp_path / "t")
    with pytest.raises(ValueError, match=r"t is damaged: expected (codes of|offsets that rise)"):
        tabweave.load(tmp_path / "t")


def test_columns_of_a_forged_table_have_its_length_and_kind(tmp_path):
    table = Table.of({"a": ["x", "y"], "b": [1.5, 2.5]})
    a, b = table.columns
    for columns, n_rows in (((a, b), 3), ((b, a), 2)):
        tabweave.export.save(Table(table.schema, columns, n_rows), tmp_path / "t")
        with pytest.raises(ValueError, match=rf"column 'a': expected {n_rows} nominal cells, got"):
            tabweave.load(tmp_path / "t")


def test_forged_parts_deep_inside_are_refused(tmp_path):
    """Tables are checked wherever they lie, not only where an estimator usually has them."""
    model = Windowed(Weave(schema=NOMINAL)).fit(ROWS)
    tables = model.embedder_.tables_.tables
    tables[0] = tables[0][:1]
    model.save(tmp_path / "m")
    with pytest.raises(ValueError, match=r"m is damaged: column 'color': expected rows for"):
        tabweave.load(tmp_path / "m")
    model = NonBEND(n_fits=1, schema=NOMINAL).fit(ROWS)
    model._digest.cells[0, 0] = 10_000
    model.save(tmp_path / "m")
    with pytest.raises(ValueError, match="m is damaged: expected cells of"):
        tabweave.load(tmp_path / "m")
    model = KModes(2).fit(tabweave.Table.of(ROWS, NOMINAL))
    layout = next(v for v in vars(model).values() if type(v).__name__ == "ValueLayout")
    layout.offsets[1] += 1000
    model.save(tmp_path / "m")
    with pytest.raises(ValueError, match="m is damaged: expected tables of"):
        tabweave.load(tmp_path / "m")


def test_a_pipeline_comes_back_without_its_cache(tmp_path):
    from sklearn.pipeline import make_pipeline

    cached = make_pipeline(PCA(1), memory=str(tmp_path / "cache"))
    SimilarityIndex(cached).save(tmp_path / "m")
    with pytest.warns(UserWarning, match=r"Pipeline was saved with memory='.*', which is dropped"):
        model = tabweave.load(tmp_path / "m")
    assert model.embedder.memory is None


def test_parts_of_another_scikit_learn_are_reported(tmp_path, monkeypatch):
    path = tmp_path / "m"
    with monkeypatch.context() as patch:
        patch.setattr(_store, "_sklearn_version", lambda: "0.1")
        MODELS["OneHotAutoencoder"]().save(path)
        OneHot().save(tmp_path / "plain")
    with pytest.warns(UserWarning, match=r"parts of scikit-learn 0\.1") as told:
        tabweave.load(path)
    assert told[0].filename == __file__  # the line that loads, not one of ours
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tabweave.load(tmp_path / "plain")


@pytest.mark.parametrize("part", ["columns", "starts"])
def test_a_forged_sparse_matrix_is_refused(tmp_path, monkeypatch, part):
    """Compiled loops trust its indices: one beyond the columns would read foreign memory."""
    monkeypatch.setattr(counting, "DENSE_VALUES", 0)
    path = tmp_path / "sparse.tabweave"
    Weave(schema=NOMINAL).fit(ROWS).save(path)
    header, arrays = store.read(path)
    found = re.search(r"\"sparse\": (\[\"csr_array.*?\}\]\])", json.dumps(header))
    names = [entry["array"] for entry in json.loads(found.group(1))[2]]
    name = names[1 if part == "columns" else 2]
    indices = arrays[name].copy()
    indices[1] = 10**6 if part == "columns" else indices[2] + 1
    store.write(path, header, arrays | {name: indices})
    with pytest.raises(ValueError, match=r"sparse\.tabweave is damaged"):
        tabweave.load(path)


# -- what no fitted estimator looks like ----------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("tables_", 5, "tables_ is a int"),
        ("schema_", "a", "schema_ is a str"),
        ("counts_", 5, "counts_ is a int"),
        ("n_features_in_", 7, "1 columns where 7 were fitted"),
    ],
)
def test_parts_of_another_type_are_refused(tmp_path, name, value, why):
    model = tabweave.OneHot().fit({"a": ["u", "v"]})
    setattr(model, name, value)
    model.save(tmp_path / "m")
    with pytest.raises(ValueError, match=f"m is damaged: {why}"):
        tabweave.load(tmp_path / "m")


def test_a_package_that_a_model_needs_is_named(tmp_path, monkeypatch):
    from tabweave.io import store

    tabweave.OneHot().fit({"a": ["u", "v"]}).save(tmp_path / "m")

    def absent(name):
        raise ImportError("install tabweave[boost]")

    monkeypatch.setattr(store, "_named", absent)
    with pytest.raises(ImportError, match=r"install tabweave\[boost\]"):
        tabweave.load(tmp_path / "m")


def test_a_class_of_your_own_is_not_saved(tmp_path):
    from tabweave.embed.register import embedder
    from tabweave.io import register

    before = dict(register._DECLARED)
    try:

        @embedder("mine", "a first try", "me")
        class Mine(tabweave.OneHot):
            """Nothing new."""

        with pytest.raises(TypeError, match="cannot save"):
            Mine().fit({"a": ["u", "v"]}).save(tmp_path / "m")
    finally:
        register._DECLARED.clear()
        register._DECLARED.update(before)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("value", [5, {"a": 1}, ["object"], "object"])
def test_what_is_no_object_of_ours_is_not_saved(tmp_path, value):
    with pytest.raises(TypeError, match=r"cannot save .*: give an estimator or another object of"):
        tabweave.export.save(value, tmp_path / "m")


def test_a_file_says_of_which_class_it_is(tmp_path):
    from tabweave.io import store

    tabweave.OneHot().fit({"a": ["u", "v"]}).save(tmp_path / "m")
    header, _ = store.read(tmp_path / "m")
    assert header["class"].endswith(".OneHot")
