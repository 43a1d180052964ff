import numpy as np
import pytest
from sklearn.metrics import mutual_info_score

from tabweave.apps.report import describe
from tabweave.plots.structure import circle_order

RNG = np.random.default_rng(0)
A = RNG.integers(0, 3, 400)
ROWS = {
    "a": A.astype(str),
    "b": np.where(RNG.random(400) < 0.8, A, RNG.integers(0, 3, 400)).astype(str),
    "c": RNG.integers(0, 5, 400).astype(str),
    "n": A + RNG.normal(size=400) / 4,
}


def entropy(x):
    share = np.unique(x, return_counts=True)[1] / len(x)
    return -(share * np.log(share)).sum()


def strength(x, y):
    """Symmetric uncertainty less what chance would show, from the definition."""
    chance = (len(set(x)) - 1) * (len(set(y)) - 1) / (2 * len(x))
    return 2 * max(mutual_info_score(x, y) - chance, 0) / (entropy(x) + entropy(y))


def test_strengths_are_the_definition():
    bins = np.digitize(ROWS["n"], np.quantile(ROWS["n"], [0.2, 0.4, 0.6, 0.8])).astype(str)
    own = ROWS | {"n": bins}
    pairs = describe(ROWS)["couplings"]["pairs"]
    assert {(p["a"], p["b"]) for p in pairs[:3]} == {("a", "b"), ("a", "n"), ("b", "n")}
    for pair in pairs:
        assert pair["strength"] == pytest.approx(strength(own[pair["a"]], own[pair["b"]]), rel=1e-3)
    assert [p["strength"] for p in pairs] == sorted([p["strength"] for p in pairs], reverse=True)


def test_independent_columns_have_no_line():
    rows = {"a": list("xy") * 50, "b": list("uuvv") * 25}
    assert describe(rows)["couplings"]["pairs"] == []
    assert describe({"a": list("xyz")})["couplings"] is None


def test_tied_columns_stand_side_by_side():
    tied = np.zeros((6, 6))
    for i, j in ((0, 3), (1, 4), (2, 5)):
        tied[i, j] = tied[j, i] = 0.9
    order = circle_order(tied).tolist()
    assert {frozenset(order[i : i + 2]) for i in (0, 2, 4)} == {
        frozenset(p) for p in ((0, 3), (1, 4), (2, 5))
    }


def test_the_target_is_always_drawn():
    rng = np.random.default_rng(1)
    common = rng.integers(0, 2, 200)
    rows = {
        f"c{i}": np.where(rng.random(200) < 0.9, common, 1 - common).astype(str) for i in range(45)
    }
    found = describe(rows | {"y": rng.integers(0, 2, 200).astype(str)}, target="y")["couplings"]
    assert len(found["nodes"]) == 40 and found["of"] == 46
    assert "y" in {node["name"] for node in found["nodes"]}
