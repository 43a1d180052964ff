"""ONNX, run: the runtime gives the vectors of ``transform``."""

import importlib
import json

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import tabweave
from tabweave import (
    OneHot,
    Schema,
    Table,
    Weave,
)
from tabweave.columns.numeric import Numbers

pytest.importorskip("onnx", reason="the export extra is not installed")
onnxruntime = pytest.importorskip("onnxruntime", reason="the export extra is not installed")
KINDS = {"tensor(string)": object, "tensor(int64)": np.int64, "tensor(bool)": bool}


def run(model, rows, missing=""):
    session = onnxruntime.InferenceSession(model.SerializeToString())
    feeds = {}
    for entry in session.get_inputs():
        cells, kind = rows[entry.name], KINDS.get(entry.type, np.float64)
        if kind is object:
            cells = [
                missing if v is None else v if isinstance(v, str) else v.isoformat() for v in cells
            ]
        elif kind is np.float64:
            cells = [np.nan if v is None else v for v in cells]
        feeds[entry.name] = np.array(cells, dtype=kind)
    (out,) = session.run(["vectors"], feeds)
    return out


def agrees(embedder, rows, **options):
    found, expected = (
        run(tabweave.export.onnx(embedder, **options), rows, **options),
        embedder.transform(rows),
    )
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.filterwarnings("ignore:.*were not seen in fit")  # which is what is tested
class TestRoundTrip:
    def test_every_type(self, seen, asked, schema):
        for n_clusters in (None, 3):
            for name in seen:
                if name == "Größe %s":  # bytes: see below
                    continue
                model = weave_of(seen, [name, "select"], n_clusters)
                rows = {n: asked[n] for n in {name, "select"}}
                agrees(model, rows, missing="\0")

    def test_columns_without_missing_values(self):
        rows = {
            "t": ["a", "b", ""],
            "i": [3, -4, 3],
            "b": [True, False, True],
            "f": [0.5, 1.5, 2.0],
        }
        model = OneHot(schema=dict.fromkeys(rows, "nominal")).fit(rows)
        exported = tabweave.export.onnx(model, missing="<none>")
        types = [i.type.tensor_type.elem_type for i in exported.graph.input]
        assert types == [8, 7, 9, 11]  # string, int64, bool, double
        rows = {
            "t": ["b", "new", ""],
            "i": [3, 9, -4],
            "b": [True, False, True],
            "f": [2.0, 9.5, 0.5],
        }
        agrees(model, rows, missing="<none>")

    def test_every_kind(self, kinds):
        """Datetimes are given as seconds, and numbers in text as numbers: ONNX reads no text."""
        model, rows = kinds
        table = Table.of(rows, model.schema_)
        given = {
            column.name: data.values if isinstance(data, Numbers) else rows[column.name]
            for column, data in table
        }
        found = run(tabweave.export.onnx(model), given)
        np.testing.assert_allclose(found, model.transform(rows), rtol=1e-9, atol=1e-9)

    def test_every_embedder(self, fitted):
        agrees(*fitted, missing="\0")

    def test_tables_and_curves(self, woven):
        model, rows = woven
        found = run(tabweave.export.onnx(model), rows)
        np.testing.assert_allclose(found, model.transform(rows), rtol=1e-9, atol=1e-9)

    def test_mixed_tables(self, mixed):
        agrees(*mixed("float32"))

    def test_hierarchies(self, hierarchy):
        agrees(*hierarchy)

    def test_whole_tables(self, whole_tables):
        for X in whole_tables:
            model = Weave() if "n0" in X else Weave(4)
            model.fit({c: cells[::2] for c, cells in X.items()})
            agrees(model, {c: cells[:500] for c, cells in X.items()})


def weave_of(seen, names, n_clusters):
    part = {name: seen[name] for name in names}
    return Weave(n_clusters, schema=dict.fromkeys(part, "nominal")).fit(part)


TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1)
FRACTIONS = st.floats(allow_nan=False).filter(lambda v: not v.is_integer())
COLUMNS = st.one_of(
    st.lists(TEXT | st.none(), min_size=2, max_size=6),
    st.lists(st.integers(-(2**53), 2**53) | st.none(), min_size=2, max_size=6),
    st.lists(FRACTIONS | st.none(), min_size=2, max_size=6),
    st.lists(st.booleans() | st.none(), min_size=2, max_size=4),
)


@settings(max_examples=25)
@given(data=st.data(), names=st.lists(TEXT, min_size=1, max_size=3, unique=True))
def test_any_table(data, names):
    pools = {name: data.draw(COLUMNS) for name in names}
    seen, asked = (
        {
            n: data.draw(st.lists(st.sampled_from(pool), min_size=4, max_size=4))
            for n, pool in pools.items()
        }
        for _ in range(2)
    )
    for name, cells in asked.items():  # a missing cell of an input that has no way to say so
        if None not in seen[name] and not any(isinstance(v, str) for v in seen[name]):
            asked[name] = [seen[name][0] if v is None else v for v in cells]
    assume(all(any(v is not None for v in cells) for cells in seen.values()))
    assume(all({type(v) for v in asked[n]} <= {type(v) for v in seen[n]} for n in names))
    model = OneHot(schema=dict.fromkeys(names, "nominal")).fit(seen)
    agrees(model, asked)


# -- what stands for missing and unknown --------------------------------------------------------


def test_missing_text_is_said_by_a_text():
    model = Weave().fit({"a": ["x", "y", "", None]})
    with pytest.raises(ValueError, match=r"column 'a' has the value '', which stands for missing"):
        tabweave.export.onnx(model)
    agrees(model, {"a": ["x", "", None, "new"]}, missing="<none>")
    exported = tabweave.export.onnx(Weave().fit({"a": ["x", "y", None]}))
    props = {p.key: p.value for p in exported.metadata_props}
    assert props["missing"] == "" and json.loads(props["names"]) == ["a_0"]


@pytest.mark.parametrize("cells", [["x", "y"], ["x", "y", ""], ["x", "y", None], ["x", "", None]])
@pytest.mark.parametrize("unknown", ["centroid", "error"])
@pytest.mark.parametrize("missing", ["expected", "value", "error"])
@pytest.mark.parametrize(
    "reading", [{}, {"empty_is_missing": True}, {"missing_words": ("NA", "-")}]
)
def test_empty_text_and_words_are_as_transform_reads_them(cells, unknown, missing, reading):
    """Cell by cell, NaN where ``transform`` raises; a value that says missing is refused."""
    schema = Schema({"a": "nominal"}, missing=missing, **reading)
    if missing == "error" and (None in cells or ("" in cells and "empty_is_missing" in reading)):
        with pytest.raises(ValueError, match="is missing; fill it"):
            OneHot(schema=schema).fit({"a": cells})
        return
    model = OneHot(schema=schema, unknown=unknown).fit({"a": cells})
    if "" in cells and "empty_is_missing" not in reading:
        with pytest.raises(ValueError, match=r"column 'a' has the value '', .*missing="):
            tabweave.export.onnx(model)
    asked = ["x", "", None, "new", "NA", "-"]
    found = run(tabweave.export.onnx(model, missing="<none>"), {"a": asked}, missing="<none>")
    for cell, vector in zip(asked, found, strict=True):
        try:
            (expected,) = model.transform({"a": np.array([cell], object)})
        except ValueError:
            expected = np.full(len(vector), np.nan)
        np.testing.assert_allclose(vector, expected, rtol=1e-6, err_msg=repr(cell))


def test_values_that_are_refused_are_nan():
    schema = Schema({"a": "nominal"}, missing="error")
    rows = {"a": ["x", "new", None]}
    model = OneHot(schema=schema, unknown="error").fit({"a": ["x", "y"]})
    np.testing.assert_array_equal(
        run(tabweave.export.onnx(model), rows), [[1, 0], [np.nan] * 2, [np.nan] * 2]
    )
    model = OneHot(schema=schema).fit({"a": ["x", "y"]})
    np.testing.assert_array_equal(
        run(tabweave.export.onnx(model), rows), [[1, 0], [0.5, 0.5], [np.nan] * 2]
    )


def test_a_string_whose_place_depends_on_its_spelling_is_nan():
    names = [f"name {i}" for i in range(200)]
    model = Weave(schema={"name": "nominal"}).fit({"name": names * 2})
    with pytest.warns(UserWarning, match=r"'name' are compared by spelling.*spelling=False"):
        agrees(model, {"name": names[::20]})
        found = run(tabweave.export.onnx(model), {"name": ["Name 7", "name 7"]})
    assert np.isnan(found).all(axis=1).tolist() == [True, False]


def test_numbers_of_any_size_keep_their_digits():
    x = 2.0 ** np.random.default_rng(0).uniform(-40, 40, 500)
    model = Weave().fit({"x": x})
    found = run(tabweave.export.onnx(model), {"x": x})
    np.testing.assert_allclose(found, model.transform({"x": x}), atol=1e-13, rtol=1e-13)


def test_columns_may_be_called_anything():
    for name in ("vectors", ""):
        with pytest.raises(ValueError, match=f"column '{name}' cannot be an input of that name"):
            tabweave.export.onnx(OneHot().fit({name: ["x", "y"]}))
    agrees(OneHot().fit({"tabweave/c0_place": ["u", "v"]}), {"tabweave/c0_place": ["u", "w"]})


def test_constant_columns_keep_their_input():
    rows = {"a": ["x", "x"], "b": ["u", "v"]}
    model = Weave().fit(rows)
    assert [i.name for i in tabweave.export.onnx(model).graph.input] == ["a", "b"]
    agrees(model, rows)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ({"a": [b"x", b"y"]}, "has bytes"),
        ({"a": ["x", 1]}, r"several types \(int, str\)"),
        ({"a": [True, 5]}, r"several types \(bool, int\)"),
        ({"a": [2**60 + 1, 3, None]}, "no way to say missing"),
        (
            {"a": [2**70 + 1, 3]},
            "expected numbers of float64, got .*; int64 does not hold the others",
        ),
        ({"a": ["x", "x"]}, "no dimension"),
    ],
    ids=str,
)
def test_what_has_no_input_is_refused(rows, message):
    with pytest.raises(ValueError, match=message):
        tabweave.export.onnx(Weave(schema={"a": "nominal"}).fit(rows))


def test_sets_are_refused():
    with pytest.raises(ValueError, match="column 't' holds sets"):
        tabweave.export.onnx(OneHot(schema={"t": "set"}).fit({"t": [["a"], ["b"]]}))


def test_file(tmp_path):
    model = OneHot().fit({"a": ["x", "y"]})
    exported = tabweave.export.onnx(model, tmp_path / "m.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx")
    (out,) = session.run(None, {"a": np.array(["y"])})
    assert out.tolist() == [[0.0, 1.0]]
    before = (tmp_path / "m.onnx").read_bytes()
    tabweave.export.onnx(model, tmp_path / "m.onnx")
    assert (tmp_path / "m.onnx").read_bytes() == before
    assert exported.producer_name == "tabweave"
    assert [p.name for p in tmp_path.iterdir()] == ["m.onnx"]


def test_tables_larger_than_a_file_may_be_are_refused(monkeypatch):
    module = importlib.import_module("tabweave.export.onnx")
    monkeypatch.setattr(module, "MAX_ONNX_BYTES", 31)
    model = OneHot().fit({"a": ["u", "v"]})
    with pytest.raises(ValueError, match=r"the tables take .* bytes, an ONNX file at most 31"):
        tabweave.export.onnx(model)


def test_numbers_without_a_bend_and_numbers_that_must_be_there():
    two = {"pay": [1.5, 2.5] * 20}
    agrees(Weave().fit(two), {"pay": [1.5, 2.5, 2.0, 9.0]})
    many = {"pay": [i / 3 for i in range(40)]}
    strict = Weave(schema=Schema({}, missing="error")).fit(many)
    agrees(strict, {"pay": [0.0, 1.7, 50.0]})
    found = run(tabweave.export.onnx(strict), {"pay": [np.nan]})
    assert np.isnan(found).all()
