"""Which representation a report looks through, from what users write."""

from __future__ import annotations

from typing import Any

from sklearn.base import clone

import weft
from weft._base import ValueEmbedder
from weft._catalogue import EMBEDDERS
from weft.measures import MEASURES, ValueMetric
from weft.mixed import MixedEmbedder
from weft.report._reading import Reading
from weft.table import Codes, Table


def fitted(reading: Reading, method: Any, random_state: Any) -> Any:
    """Return the embedder of a report, fitted on the columns it keeps."""
    features = reading.features()
    model = chosen(method, features, random_state)
    inner = model.categorical if isinstance(model, MixedEmbedder) else model
    uses_classes = isinstance(inner, ValueEmbedder) and inner._uses_classes
    return model.fit(features, _classes(reading, inner) if uses_classes else None)


def chosen(method: Any, table: Table, random_state: Any) -> Any:
    """Return the embedder of a name, or a clone of the one given, wrapped where numbers ask."""
    model = _named(method, random_state) if isinstance(method, str) else method
    if not isinstance(model, ValueEmbedder | MixedEmbedder):
        raise TypeError(f"method={method!r}: use a name, or a MixedEmbedder or embedder of values")
    if isinstance(model, MixedEmbedder):
        return clone(model)
    if not model._has_vectors:
        raise ValueError(f"{model!r} gives rows no vectors; use another embedder")
    numbered = any(column.kind in ("numeric", "ordinal") for column in table.schema.columns)
    return MixedEmbedder(clone(model)) if numbered else clone(model)


def _named(name: str, random_state: Any) -> Any:
    if name in MEASURES and name not in EMBEDDERS:
        return ValueMetric(name)
    if name.lower() not in EMBEDDERS:
        raise ValueError(
            f"method={name!r}: use one of {', '.join(EMBEDDERS)}, or a measure of "
            "weft.measures.list_measures()"
        )
    model = getattr(weft, EMBEDDERS[name.lower()][0])()
    chance = "random_state" in model.get_params(deep=False)
    return model.set_params(random_state=random_state) if chance else model


def _classes(reading: Reading, model: Any) -> list[Any]:
    if reading.target is None:
        raise ValueError(f"{type(model).__name__} learns from classes: give a target")
    data = reading.values()[reading.target]
    assert isinstance(data, Codes)
    return [data.labels[code] for code in data.codes.tolist()]


def name_of(model: Any) -> str:
    """Return what an embedder is called on the page."""
    if isinstance(model, MixedEmbedder):
        inner = "Weave" if isinstance(model.categorical, str) else name_of(model.categorical)
        return f"MixedEmbedder, with {inner} for the categories"
    if isinstance(model, ValueMetric):
        return (
            f"ValueMetric({model.measure!r})" if isinstance(model.measure, str) else "ValueMetric"
        )
    return type(model).__name__


def column_weights(model: Any) -> dict[str, float]:
    """Return how much each column counts, where the embedder says so."""
    inner = getattr(model, "categorical_", model)
    weights = getattr(inner, "weights_", None) if inner is not None else None
    plain = isinstance(weights, dict) and all(isinstance(w, float) for w in weights.values())
    return dict(weights) if plain and weights else {}
