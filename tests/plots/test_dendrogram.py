import io

import numpy as np
import pytest
from matplotlib.figure import Figure

from tabweave.embed.hierarchy import DistanceHierarchy, Tree
from tabweave.plots import dendrogram


def test_draws_every_leaf_once_and_can_be_saved():
    rows = {"x": list("abcabcab"), "y": list("ppqqpqpq")}
    tree = DistanceHierarchy().fit(rows, list("uuvvuvuv")).trees_["x"]
    ax = dendrogram(tree)
    assert sorted(text.get_text() for text in ax.texts) == ["a", "b", "c"]
    ax.figure.savefig(buffer := io.BytesIO(), format="png", dpi=40)
    assert buffer.getvalue().startswith(b"\x89PNG")


def test_lengths_are_weights():
    ax = dendrogram(Tree.of({"a": 1.5, "b": (2.0, {"c": 0.5, "d": 0.25})}))
    ends = {text.get_text(): text.xy[0] for text in ax.texts}
    assert ends == {"a": 1.5, "c": 2.5, "d": 2.25}


def test_draws_on_the_axes_it_is_given():
    ax = Figure().subplots()
    assert dendrogram(Tree.of(["a", "b"]), ax=ax) is ax


def test_refuses_what_nobody_can_read():
    with pytest.raises(ValueError, match="expected a tree of at most 100 leaves, got 200"):
        dendrogram(Tree.of([str(i) for i in np.arange(200)]))
