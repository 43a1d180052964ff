"""Spelling against n-grams counted one by one."""

import math
import platform
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tabweave import Column, Schema, SimilarityIndex, SupervisedWeave, Table, Weave, _compat, load
from tabweave.columns import spelling
from tabweave.columns.spelling import (
    N_BUCKETS,
    Spelling,
    is_spelled,
    is_text,
    ngrams,
    scrambled,
    spelling_of,
)

WORDS = "alpha bravo charlie delta echo foxtrot golf hotel india juliet kilo lima mike".split()
NAMES = [f"{a} {b} {i}" for i, a in enumerate(WORDS) for b in WORDS]
PLANES = ["Boeing 737-8", "Boeing 777", "Airbus A320", "Airbus A320 neo", "Embraer 190"]


def by_hand(labels, asked):
    """Return the cosines of idf-weighted pairs and triples of characters, from Python sets."""

    def grams(text):
        letters = (c if c.isalnum() else " " for c in text.lower())
        padded = f"\n{' '.join(''.join(letters).split())}\n"
        found = {padded[i : i + n] for n in (2, 3) for i in range(len(padded) - n + 1)}
        return {g for g in found if g.strip("\n") and "\n" not in g[1:-1]}

    known = [grams(v) for v in labels]
    met = Counter(g for own in known for g in own)
    idf = {g: math.log((1 + len(known)) / (1 + n)) + 1 for g, n in met.items()}
    new = math.log(1 + len(known)) + 1

    def squared(own):
        return sum(idf.get(g, new) for g in own)

    return [
        [
            sum(idf[g] for g in own & other) / math.sqrt(squared(own) * squared(other))
            for other in known
        ]
        for own in map(grams, asked)
    ]


def test_similarities_are_cosines_of_weighted_ngrams():
    asked = ["boeing 737 800", "AIRBUS a-320", "Fokker"]
    known = Spelling(tuple(PLANES))
    found = (known.points(asked) @ known.matrix.T).toarray()
    np.testing.assert_allclose(found, by_hand(PLANES, asked), atol=1e-6)
    index, cosines = known.similar(asked, 2)
    assert [PLANES[i] for i in index[:2, 0]] == ["Boeing 737-8", "Airbus A320"]
    assert (np.diff(cosines, axis=1) <= 0).all() and cosines[2, 0] < 0.2


def test_case_accents_and_punctuation_do_not_count():
    known = Spelling(("Société Générale S.A.", "São Paulo", "東京"))
    index, cosines = known.similar(["SOCIETE  GENERALE, s a", "sao-paulo", "東京"], 1)
    assert index.ravel().tolist() == [0, 1, 2]
    np.testing.assert_allclose(cosines, 1, atol=1e-6)


@given(st.lists(st.text(max_size=12), max_size=8), st.lists(st.text(max_size=12), max_size=8))
def test_a_string_has_the_same_ngrams_in_any_company(some, others):
    alone = [ngrams([text]).indices.tolist() for text in some]
    together = ngrams([*some, None, 7, *others])
    assert [together[[i]].indices.tolist() for i in range(len(some))] == alone
    assert together[[len(some)]].nnz == 0
    number = together[[len(some) + 1]].indices.tolist()
    assert number == ngrams(["7"]).indices.tolist()


def test_the_order_of_values_does_not_count():
    there, back = Spelling(tuple(NAMES)), Spelling(tuple(NAMES[::-1]))
    np.testing.assert_allclose(there.sketch(), back.sketch()[::-1], atol=1e-6)
    exact = (there.matrix @ there.matrix.T).toarray()
    near = there.sketch() @ there.sketch().T
    assert np.sqrt(((near - exact) ** 2).mean()) < 1 / 16  # 1/√256


def test_which_columns_are_spelled_and_which_are_sentences():
    assert is_spelled(NAMES) and not is_spelled(NAMES[:129])
    assert is_spelled([str(i) for i in range(500)]) and not is_spelled(list(range(500)))
    sentences = [f"the {name} came in at seven and left again" for name in NAMES]
    assert is_text(sentences) and not is_text(NAMES) and not is_text(sentences[:50])
    assert spelling_of(tuple(NAMES), False) is None
    assert spelling_of(tuple(PLANES)) is None and spelling_of(tuple(PLANES), True) is not None


def test_kinds_say_so():
    sentences = [f"the {name} came in at seven and left again" for name in NAMES]
    rows = {"name": NAMES, "note": sentences, "few": WORDS * 13}
    said = {found.column: found.why for found in Table.of(rows).kinds()}
    assert said["name"].startswith("many strings") and said["note"].startswith("sentences")
    assert said["few"] == "values"
    plain = Schema([Column("name", spelling=False)])
    assert "strings" not in Table.of({"name": NAMES}, plain).kinds()[0].why


# -- in Weave -----------------------------------------------------------------------------------


def table(n=1600, seed=0):
    """Rows of names, of which the first word goes with a colour."""
    codes = np.random.default_rng(seed).permutation(np.arange(n) % len(NAMES))
    names = np.array(NAMES, dtype=object)[codes]
    return {"name": names, "color": np.array([v.split()[0][0] for v in names], dtype=object)}


def test_a_mistyped_code_of_digits_is_nearer_than_others():
    """Codes differed by mismatch alone, and a wrong digit was as far as another code."""
    rng = np.random.default_rng(0)
    codes = np.array([f"0{code}" for code in rng.choice(90_000, 400, replace=False) + 10_000])
    mistyped = [code[:-1] + str((int(code[-1]) + 1) % 10) for code in codes[:20]]
    zips = [*codes, *codes, *mistyped]
    model = Weave().fit({"zip": zips, "color": rng.choice(list("abc"), len(zips))})
    assert model.kinds()[0].why.endswith("; spelling counts")
    apart = model.value_distances("zip").loc[mistyped, codes].to_numpy()
    assert (apart.argmin(axis=1) == np.arange(20)).mean() > 0.9


def test_an_unknown_value_lies_beside_those_spelled_like_it():
    X = table()
    for model in (Weave(), Weave(3), SupervisedWeave()):
        model.fit(X, X["color"])
        asked = {"name": ["Delta-Golf, 3", "qqqq"], "color": ["d", "d"]}
        known = {"name": NAMES, "color": ["d"] * len(NAMES)}
        near = model.pairwise_distances(asked, known)
        assert NAMES[near[0].argmin()] == "delta golf 3", model
        assert near[0].min() < 0.5 * np.median(near[0])
        vectors = model.transform(asked), model.transform(known)
        apart = ((vectors[0][0] - vectors[1]) ** 2).sum(axis=1)
        assert NAMES[apart.argmin()] == "delta golf 3"
        assert model.unknown_counts(asked) == {"name": {"Delta-Golf, 3": 1, "qqqq": 1}}
        a, b = ({name: rows[name][0] for name in rows} for rows in (asked, known))
        assert sum(model.explain(a, b).values()) == pytest.approx(near[0, 0] ** 2)
        assert model.pairwise_distances(asked)[0, 0] == 0


def test_values_spelled_alike_are_nearer_than_others():
    names = [*NAMES, "Delta Golf 3.", "DELTA GOLF 3"]
    model = Weave(schema={"name": "nominal"}).fit({"name": names * 2})
    apart = model.value_distances("name")
    others = apart.loc["delta golf 3"].drop("delta golf 3").sort_values()
    assert set(others.index[:2]) == {"Delta Golf 3.", "DELTA GOLF 3"}
    assert 0 < others.iloc[1] < 0.9 * others.iloc[2]


def test_an_index_finds_what_was_meant_and_a_file_keeps_it(tmp_path):
    X = table()
    model = Weave().fit(X)
    index = SimilarityIndex(model).fit(X)
    found = index.query({"name": ["KILO  LIMA 10"]}, k=1)
    assert X["name"][found.ids[0, 0]] == "kilo lima 10"
    model.save(tmp_path / "names.tabweave")
    again = load(tmp_path / "names.tabweave")
    asked = {"name": ["kilo lmia 10"], "color": ["k"]}
    np.testing.assert_array_equal(again.transform(asked), model.transform(asked))


def test_a_column_of_unknown_strings_is_told_not_refused():
    X = table()
    model = Weave().fit(X)
    asked = {"name": [name.upper() for name in NAMES], "color": ["d"] * len(NAMES)}
    with pytest.warns(UserWarning, match="lie between values spelled like them"):
        model.transform(asked)
    with pytest.raises(ValueError, match="'ALPHA ALPHA 0' was not seen in fit"):
        Weave(unknown="error").fit(X).transform(asked)


def test_spelling_can_be_left_out_or_asked_for():
    X = table()
    plain = Weave(schema=Schema([Column("name", spelling=False)])).fit(X)
    assert plain.tables_.spelling == {} and set(Weave().fit(X).tables_.spelling) == {"name"}
    few = {"plane": [*PLANES, *PLANES], "x": list("abcde" * 2)}
    model = Weave(schema=Schema([Column("plane", spelling=True)])).fit(few)
    apart = model.pairwise_distances({"plane": ["BOEING 737 800"], "x": ["a"]}, few)[0]
    assert apart.argmin() == 0


def test_an_encoder_of_ones_own_takes_the_place_of_ngrams(tmp_path):
    def first_letter(texts):
        return [np.eye(26)[ord(text[0]) - 97] for text in texts]

    X = {"text": [f"{name} flew away" for name in NAMES] * 2, "x": ["a", "b"] * len(NAMES)}
    model = Weave(schema=Schema([Column("text", spelling=first_letter)])).fit(X)
    asked = {"text": ["dull skies"], "x": ["a"]}
    found = X["text"][model.pairwise_distances(asked, X)[0].argmin()]
    assert found.startswith("delta")
    with pytest.raises(TypeError, match="code of your own"):
        model.save(tmp_path / "own.tabweave")
    wrong = Schema([Column("text", spelling=lambda texts: [[1.0]])])
    with pytest.raises(ValueError, match="to return 169 rows, got an array of shape"):
        Weave(schema=wrong).fit(X)


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ({"spelling": "words"}, "column 'a': expected spelling to be True, False or an encoder"),
        ({"kind": "numeric", "spelling": True}, "spelling is for columns of kind"),
    ],
)
def test_a_wrong_spelling_is_named(column, message):
    with pytest.raises((TypeError, ValueError), match=message):
        Column("a", **column)


def test_unknown_elements_of_sets_lie_beside_those_spelled_like_them():
    rng = np.random.default_rng(0)
    X = {"tags": [set(rng.choice(NAMES, 3)) for _ in range(900)], "x": list("abc" * 300)}
    model = Weave(schema={"tags": "set"}).fit(X)
    asked = {"tags": [{"DELTA GOLF 3"}, {"delta golf 3"}, {"kilo lima 10"}, set()], "x": ["a"] * 4}
    apart = model.pairwise_distances(asked)[0]
    assert apart[1] < 0.1 * apart[2] and apart[1] < 0.5 * apart[3]
    assert Table.of(asked, {"tags": "set"})["tags"].starts[-1] == 3


# -- against hashes of somebody else ---------------------------------------------------------------


def test_bits_are_mixed_as_murmurhash3_ends():
    """scikit-learn has the whole of MurmurHash3; of one number it is two steps and the end."""
    from sklearn.utils import murmurhash3_32

    def rotated(x, bits):
        return (x << bits | x >> (32 - bits)) & 0xFFFFFFFF

    for key in (0, 1, 7, 12345, 2**31 - 1):
        mixed = rotated(key * 0xCC9E2D51 & 0xFFFFFFFF, 15) * 0x1B873593 & 0xFFFFFFFF
        state = (rotated(mixed, 13) * 5 + 0xE6546B64 & 0xFFFFFFFF) ^ 4
        found = scrambled(np.array([state], np.uint32))[0]
        assert found == murmurhash3_32(np.int32(key), positive=True)


def buckets_by_hand(text):
    """Return the buckets of the pairs and triples of a word, from Python's integers."""
    points = [10, *map(ord, text), 10]
    out = set()
    for n in (2, 3):
        for i in range(len(points) - n + 1):
            key = points[i]
            for point in points[i + 1 : i + n]:
                key = (key * 0x9E3779B1 + point) % 2**32
            out.add(int(scrambled(np.array([key], np.uint32))[0]) >> 16)
    return sorted(out)


def test_buckets_are_those_of_saved_models():
    """Files hold what was learned of buckets: how n-grams are hashed must not change."""
    words = ["boeing", "a", "airbus 320", "tokyo"]
    found = ngrams(words)
    assert [found[[i]].indices.tolist() for i in range(4)] == list(map(buckets_by_hand, words))
    assert found.shape == (4, N_BUCKETS) and (found.data == 1).all()
    assert ngrams([]).shape == (0, N_BUCKETS) and ngrams(["", None]).nnz == 0


def test_more_strings_than_sixteen_bits_number():
    many = [f"{i:x}" for i in range((1 << 16) + 3)]
    found = ngrams(many)
    for i in (0, 65_535, 65_536, 65_538):
        assert found[[i]].indices.tolist() == buckets_by_hand(many[i])


def test_half_of_the_values_are_text():
    numbers = list(range(100))
    assert is_spelled([f"w{i}" for i in range(100)] + numbers)
    assert not is_spelled([f"w{i}" for i in range(99)] + numbers)


def test_lines_within_a_string_are_blanks():
    known = Spelling(("two\nlines", "two lines", "other"))
    np.testing.assert_allclose((known.matrix @ known.matrix.T).toarray()[0, 1], 1, atol=1e-6)


def test_encoders_of_strings():
    def lengths(texts):
        return [[len(text), 1] for text in texts]

    known = Spelling(("ab", None, 7, "abcd"), lengths)
    wanted = np.array([[2, 1], [0, 0], [1, 1], [4, 1]]) / np.sqrt([[5], [1], [2], [17]])
    np.testing.assert_allclose(known.matrix, wanted)
    np.testing.assert_allclose(known.sketch(), wanted)
    index, cosines = known.similar(["xyz"], 9)
    assert index[0, :2].tolist() == [3, 0] and cosines.shape == (1, 4)
    np.testing.assert_allclose(cosines[0, 0], 13 / np.sqrt(170))
    for odd in (lambda texts: [[1.0]], lambda texts: np.zeros(len(texts))):
        with pytest.raises(ValueError, match="to return 4 rows, got an array of shape"):
            Spelling(("ab", None, 7, "abcd"), odd).points(["a", "b", "c", "d"])


def test_strings_lie_between_those_most_like_them():
    known = Spelling(tuple(NAMES))
    index, weights = known.between([NAMES[5], "delta golf", "%%%"])
    np.testing.assert_allclose(weights[0].sum(), 1, atol=1e-6)
    assert index[0, 0] == 5 and weights[0, 0] > 0.5
    cosine = known.similar(["delta golf"], 8)[1][0]
    np.testing.assert_allclose(weights[1], cosine**8 / (cosine**8).sum() * cosine[0] ** 2)
    assert not weights[2].any()


def test_strings_are_compared_some_at_a_time(monkeypatch):
    known, asked = Spelling(tuple(NAMES)), NAMES[::7]
    whole = known.similar(asked, 3)
    exact = (known.points(asked) @ known.matrix.T).toarray()
    np.testing.assert_allclose(whole[1], -np.sort(-exact, axis=1)[:, :3])
    np.testing.assert_array_equal(np.take_along_axis(exact, whole[0], 1), whole[1])
    monkeypatch.setattr("tabweave.columns.spelling.BLOCK_SIMILARITIES", 2 * len(NAMES))
    for part, all_ in zip(known.similar(asked, 3), whole, strict=True):
        np.testing.assert_array_equal(part, all_)


def test_a_search_finds_the_same_compiled_or_not():
    rng = np.random.default_rng(0)
    words = ["".join(rng.choice(list("abcd"), rng.integers(0, 7))) for _ in range(700)]
    known = Spelling((*dict.fromkeys(words[:400]), None))
    asked = known.points([*words[300:], None, "zzzz"])
    lists = known._transposed
    found = []
    compiled = spelling._nearest
    if isinstance(compiled, _compat._Compiled):
        compiled._load()
        compiled = compiled.compiled
    for search in (spelling._nearest_plain, compiled):
        index, cosines = np.zeros((asked.shape[0], 8), np.intp), np.zeros((asked.shape[0], 8))
        cells = np.zeros(len(known.labels), np.float32)
        parts = [part for m in (asked, lists) for part in (m.indptr, m.indices, m.data)]
        search(*parts, cells, index, cosines)
        found.append((index, cosines))
    (index, cosines), (again, others) = found
    # One rounding or two, where a processor multiplies and adds at once.
    np.testing.assert_allclose(others, cosines, rtol=1e-6)
    if platform.machine() in ("x86_64", "AMD64"):
        np.testing.assert_array_equal(others, cosines)
        np.testing.assert_array_equal(again, index)


def test_the_work_of_a_search_is_what_the_lists_hold():
    known = Spelling(tuple(f"name {i}" for i in range(50)))
    lists = known._transposed
    asked = known.points(["name 7"])
    parts = [part for m in (asked, lists) for part in (m.indptr, m.indices, m.data)]
    met = sum(int(lists.indptr[b + 1] - lists.indptr[b]) for b in asked.indices)
    assert spelling._work(*parts) == met // 32


@pytest.mark.parametrize(("text", "spelled"), [("Αθήνα{:c}", True), ("№{:c}", False), ("{}", True)])
def test_letters_of_every_script_are_letters(text, spelled):
    labels = [text.format(i) for i in range(spelling.MAX_UNSPELLED_VALUES + 1)]
    assert spelling.is_spelled(labels) is spelled


def test_neighbors_by_spelling_leave_the_string_itself_out():
    spelled = Spelling(tuple(f"{stem}{i}" for stem in ("karlo", "mundi") for i in range(12)))
    asked = np.array([3, 15])
    near = spelled.neighbors(asked).toarray()
    cosines = (spelled.matrix[asked] @ spelled.matrix.T).toarray()
    assert near.shape == (2, 24) and not near[[0, 1], asked].any()
    np.testing.assert_array_equal((near > 0).sum(axis=1), 8)
    np.testing.assert_allclose(near[near > 0], cosines[near > 0], rtol=1e-6)
    assert not near[0, 12:].any() and not near[1, :12].any()
