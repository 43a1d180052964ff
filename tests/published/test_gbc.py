"""GBC as published: weights from the training loss, sums from the first round, older files."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import tabweave
from tabweave import Sources, published
from tabweave.published.gbc import SignedLogistic, SummedTeam
from tabweave.sources.gbc.team import Logistic, Team

pytest.importorskip("lightgbm", reason="the extra boost is not installed")
FILES = Path(__file__).parents[1] / "fixtures" / "house" / "files"
ONE_THREAD = {"num_threads": 1}


def drawn(seed=0, n=240):
    """Draw two tables that know the classes and one of noise."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    tables = {
        name: (np.arange(n), shift * y[:, None] + rng.normal(size=(n, 5)))
        for name, shift in (("good", 1.0), ("weak", 0.5), ("noise", 0.0))
    }
    return Sources(tables), y


def test_sources_weigh_by_training_loss():
    sources, y = drawn()
    model = published.GBCClassifier(20, consensus=0.1, connectivity=0, params=ONE_THREAD)
    model.fit(sources, dict(enumerate(y[:150].tolist())))
    losses = np.array(list(model.history_[-1]["training_loss"].values()))
    expected = np.exp(-losses) / np.exp(-losses).sum()
    assert list(model.source_weights_.values()) == pytest.approx(expected)
    # The erratum: by training loss the noise is taken for knowledge.
    assert model.source_weights_["noise"] > 0.1


def test_an_expected_score_is_a_label_of_its_sign():
    scores = np.linspace(-3, 3, 7)[:, None]
    for label in (0.0, 1.0):
        sign = np.full((7, 1), 2 * label - 1)
        found = SignedLogistic().agreement(scores, sign)
        assert found == pytest.approx(Logistic().rows(scores, np.full((7, 1), label)))


def test_terms_are_sums_from_the_first_round():
    ids = np.arange(6)
    first, later = (
        kind(SimpleNamespace(sources=ids), Logistic(), ids[:2], np.eye(2)[:, :1], ids[:0]).couple(
            ids[2:], (0.5, 0.25), np.ones(1)
        )
        for kind in (SummedTeam, Team)
    )
    assert first.coupled and not later.coupled
    assert first._factors(ids < 2) == (0.5, 0.25)
    assert later._factors(ids < 2) == (0.25, 0.125)  # means, on the scale of two labels


def test_graph_weights_are_noted():
    sources, y = drawn()
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 240, (2, 900))
    same = y[a] == y[b]
    graphs = {
        "near": {"a": a[same], "b": b[same]},
        "random": {"a": a[:300], "b": rng.permutation(b[:300])},
    }
    tables = {name: (sources.ids, sources.matrix(name)) for name in sources.names}
    model = published.GBCClassifier(8, consensus=0, connectivity=0.1, params=ONE_THREAD)
    model.fit(Sources(tables, graphs), dict(enumerate(y[:100].tolist())))
    assert model.graph_weights_ == {"near": 0.5, "random": 0.5}
    last = model.history_[-1]["graph_weights"]
    assert last["near"] > last["random"] and sum(last.values()) == pytest.approx(1)


@pytest.mark.parametrize("kind", ["GBCClassifier", "GBCRegressor"])
def test_files_of_the_former_switch_are_of_this_class(kind):
    model = tabweave.load(FILES / f"{kind}-published.weft")
    assert type(model) is getattr(published, kind)
    assert model.get_params() | {"random_state": 0} == {
        "n_rounds": 5,
        "consensus": 1.0,
        "connectivity": 1.0,
        "params": None,
        "random_state": 0,
    }
    assert not model.self_trained_ and not hasattr(model, "form")


def test_there_is_no_auto():
    with pytest.raises(ValueError, match=r"'consensus' .* Got 'auto'"):
        published.GBCClassifier(consensus="auto").fit([[0.0], [1.0]], [0, 1])
