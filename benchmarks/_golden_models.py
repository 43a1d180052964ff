"""A fitted model of every estimator, to be written to a file, read again and asked the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from _golden_data import (
    Rows,
    asked,
    between,
    checksum,
    classes,
    counted,
    flat,
    found,
    mixed,
    mixed_asked,
    mixed_schema,
    number_classes,
    numbers,
    part,
    published,
    signals,
    some_classes,
    some_numbers,
    sources,
    streamed,
    table,
    windows,
)
from _goldens import (
    STREAMS,
    drdh,
    factorized,
    index,
    nonbend,
    published_nonbend,
    stream_clusterer,
)

ASKED = ("transform", "predict", "predict_proba", "pairwise_distances", "kneighbors")


@dataclass(frozen=True)
class Model:
    """How to fit an estimator, and what to ask it, then and when it comes back from a file.

    Attributes
    ----------
    make : callable
        From the package to a fitted model.
    rows : callable
        From the package to the rows it is asked about.
    methods : tuple of str
        What it is asked.
    more : callable, optional
        From the package to what `partial_fit` goes on with.
    """

    make: Callable[[Any], Any]
    rows: Callable[[Any], Any] = asked
    methods: tuple[str, ...] = ASKED
    more: Callable[[Any], tuple[Any, ...]] | None = None

    def answers(self, tw: Any, model: Any) -> dict[str, np.ndarray]:
        """Return what a model says; it has learned more rows afterwards, if there are any."""
        rows, out = self.rows(tw), {}
        for name in self.methods:
            if hasattr(model, name):
                out[name] = flat(getattr(model, name)(rows))
        if self.more is not None:
            model.partial_fit(*self.more(tw))
            ask = getattr(model, "pairwise_distances", None) or getattr(model, "predict", None)
            out["after more rows"] = flat(ask(rows) if ask else between(model.transform(rows)))
        return out


@dataclass(frozen=True)
class Held(Model):
    """An object that is saved, but is no estimator: what it holds is what it says."""

    content: Callable[[Any], np.ndarray] = flat

    def answers(self, tw: Any, model: Any) -> dict[str, np.ndarray]:
        """Return what an object holds."""
        return {"content": self.content(model)}


class Indexed(Model):
    """An index, which is asked for neighbours and given more rows."""

    def answers(self, tw: Any, model: Any) -> dict[str, np.ndarray]:
        """Return neighbours, before and after rows were added and removed."""
        rows = self.rows(tw)
        before = flat(model.ids_, *model.query(rows, 5))
        model.add(part(table(tw), 0, 10)).remove([1, 2])
        return {"query": before, "after more rows": flat(*model.query(rows, 5))}


class Rated(Model):
    """A recommender, which is asked for ratings."""

    def answers(self, tw: Any, model: Any) -> dict[str, np.ndarray]:
        """Return expected ratings."""
        return {"predict": flat(model.predict(*self.rows(tw)))}


def next_window(tw: Any) -> tuple[Any, ...]:
    return (windows(tw)[3],)


def next_classes(tw: Any) -> tuple[Any, ...]:
    return windows(tw)[3], classes(tw)[120:]


def start(tw: Any) -> Rows:
    return part(table(tw), 0, 120)


def of_counts(counts: Any) -> np.ndarray:
    return flat(counted(counts), counts.moments("age"), counts.moments("size"))


def of_table(read: Any) -> np.ndarray:
    return flat(len(read), read["job"].codes, read["tags"].codes, np.nan_to_num(read["age"].values))


def of_schema(schema: Any) -> np.ndarray:
    return flat([checksum([c.name, c.kind, c.levels]) for c in schema.columns])


def of_tables(tables: Any) -> np.ndarray:
    return flat(*tables.tables, checksum(tables.feature_names()))


MODELS: dict[str, Model] = {
    "CCDSDC": Model(lambda tw: streamed(tw, STREAMS["ccds"](tw)), more=next_window),
    "CCTED": Model(lambda tw: streamed(tw, STREAMS["ccted"](tw)), more=next_window),
    "CDE": Model(lambda tw: tw.CDE(random_state=0).fit(start(tw))),
    "CKML": Model(lambda tw: tw.CKML().fit(start(tw)), more=next_window),
    "CoCA": Model(
        lambda tw: tw.CoCA(2).fit(numbers(tw)[:60, :6]), lambda tw: numbers(tw)[60:70, :6]
    ),
    "CoCA-sources": Model(lambda tw: tw.CoCA(3).fit(sources(tw), some_classes(tw)), sources),
    "CoupledNumeric": Model(
        lambda tw: tw.CoupledNumeric(standardize=True).fit(numbers(tw)[:, :3]),
        lambda tw: numbers(tw)[:9, :3],
        more=lambda tw: (numbers(tw)[:50, :3] ** 2,),
    ),
    "Counts": Held(
        lambda tw: tw.Counts.of(tw.Table.of(mixed(tw), mixed_schema(tw)), classes(tw)),
        content=of_counts,
    ),
    "DCD": Model(lambda tw: streamed(tw, STREAMS["dcd"](tw)), more=next_window),
    "DRDH": Model(lambda tw: drdh(tw), lambda tw: part(mixed(tw), 100, 106)),
    "DistanceHierarchy": Model(
        lambda tw: tw.DistanceHierarchy(schema=mixed_schema(tw)).fit(mixed(tw), classes(tw)),
        mixed_asked,
    ),
    "GBCClassifier": Model(
        lambda tw: tw.GBCClassifier(5, random_state=0).fit(sources(tw), some_classes(tw)), sources
    ),
    "GBCRegressor": Model(
        lambda tw: tw.GBCRegressor(5, random_state=0).fit(numbers(tw)[:, :4], numbers(tw)[:, 10]),
        lambda tw: numbers(tw)[:9, :4],
    ),
    "HELIC": Model(
        lambda tw: tw.HELIC(n_pairs=100, max_iter=20, random_state=0).fit(
            start(tw), classes(tw)[:120]
        ),
        more=next_classes,
    ),
    "HeMap": Model(
        lambda tw: tw.HeMap(n_components=4, guard=None, random_state=0).fit(
            numbers(tw)[:60, :9],
            number_classes(tw)[:60],
            source=(numbers(tw)[:60, 9:], number_classes(tw)[:60]),
            pairs=np.arange(60),
        ),
        lambda tw: numbers(tw)[60:70, :9],
        methods=(*ASKED, "project"),
    ),
    "KModes": Model(
        lambda tw: tw.KModes(3, metric=tw.OneHot(), n_init=2, random_state=0).fit(start(tw)),
        more=next_window,
    ),
    "KSVD": Model(
        lambda tw: tw.KSVD(6, max_iter=4, random_state=0).fit(signals(tw)),
        lambda tw: signals(tw)[:9],
    ),
    "MatrixFactorization": Rated(factorized, lambda tw: ([0, 1, 999], [5, 6, 7])),
    "MixedEmbedder": Model(
        lambda tw: tw.MixedEmbedder(schema=mixed_schema(tw)).fit(mixed(tw)),
        mixed_asked,
        more=lambda tw: (part(mixed(tw), 0, 50),),
    ),
    "MixedEmbedder-absolute": Model(
        lambda tw: tw.MixedEmbedder(numeric="absolute", schema=mixed_schema(tw)).fit(mixed(tw)),
        mixed_asked,
        more=lambda tw: (part(mixed(tw), 0, 50),),
    ),
    "MixedEmbedder-coupled": Model(
        lambda tw: tw.MixedEmbedder(numeric="coupled", schema=mixed_schema(tw)).fit(mixed(tw)),
        mixed_asked,
    ),
    "NonBEND": Model(lambda tw: nonbend(tw).fit(start(tw)), more=next_window),
    "OneHot": Model(lambda tw: tw.OneHot(dtype="float32").fit(start(tw)), more=next_window),
    "OneHotAutoencoder": Model(
        lambda tw: found(tw, "OneHotAutoencoder")(4, max_iter=5, random_state=0).fit(start(tw))
    ),
    "Schema": Held(lambda tw: tw.Table.of(mixed(tw), mixed_schema(tw)).schema, content=of_schema),
    "SetTfidf": Model(
        lambda tw: tw.SetTfidf().fit({"tags": mixed(tw)["tags"]}),
        lambda tw: {"tags": mixed(tw)["tags"][:9]},
    ),
    "SimilarityIndex": Indexed(lambda tw: index(tw)),
    "StreamClusterer": Model(lambda tw: streamed(tw, stream_clusterer(tw)), more=next_window),
    "Table": Held(lambda tw: tw.Table.of(mixed(tw), mixed_schema(tw)), content=of_table),
    "UNICORN": Model(lambda tw: streamed(tw, tw.UNICORN(3, decay=0.5)), more=next_window),
    "UNTIE": Model(lambda tw: tw.UNTIE(3).fit(start(tw)), more=next_window),
    "ValueMetric": Model(lambda tw: tw.ValueMetric("lin").fit(start(tw)), more=next_window),
    "ValueMetric-jia": Model(
        lambda tw: tw.ValueMetric("jia").fit(start(tw)),
        methods=("pairwise_distances",),
        more=next_window,
    ),
    "ValueMetric-vdm": Model(
        lambda tw: tw.ValueMetric("vdm").fit(start(tw), classes(tw)[:120]), more=next_classes
    ),
    "ValueTables": Held(lambda tw: tw.Weave(3).fit(start(tw)).tables_, content=of_tables),
    "Weave": Model(lambda tw: tw.Weave(3).fit(start(tw)), more=next_window),
    "Weave-waiting": Model(
        lambda tw: tw.Weave().fit(windows(tw)[0]).partial_fit(windows(tw)[1]),
        methods=("pairwise_distances",),  # it learns after it is read, so vectors may be mirrored
        more=next_window,
    ),
    "WeightedKNN": Model(
        lambda tw: tw.WeightedKNN(3, metric=tw.Weave(), weights="exp").fit(
            start(tw), classes(tw)[:120]
        )
    ),
    "Windowed": Model(
        lambda tw: streamed(tw, tw.Windowed(tw.Weave(), window=2, refresh=2)), more=next_window
    ),
    # as published
    "CKML-published": Model(lambda tw: published(tw, "CKML").fit(start(tw)), more=next_window),
    "CoCA-published": Model(
        lambda tw: published(tw, "CoCA", 3).fit(sources(tw), some_classes(tw)), sources
    ),
    "GBCClassifier-published": Model(
        lambda tw: published(tw, "GBCClassifier", 5, random_state=0).fit(
            sources(tw), some_classes(tw)
        ),
        sources,
    ),
    "GBCRegressor-published": Model(
        lambda tw: published(tw, "GBCRegressor", 5, random_state=0).fit(
            sources(tw), some_numbers(tw)
        ),
        sources,
    ),
    "HELIC-published": Model(
        lambda tw: published(tw, "HELIC", n_pairs=100, max_iter=20, random_state=0).fit(
            start(tw), classes(tw)[:120]
        ),
        more=next_classes,
    ),
    "HeMap-published": Model(
        lambda tw: published(tw, "HeMap", random_state=0).fit(
            numbers(tw)[:60, :9],
            number_classes(tw)[:60],
            source=(numbers(tw)[:60, 9:], number_classes(tw)[:60]),
        ),
        lambda tw: numbers(tw)[60:70, :9],
        methods=(*ASKED, "project"),
    ),
    "NonBEND-published": Model(lambda tw: published_nonbend(tw).fit(start(tw)), more=next_window),
    "UNICORN-published": Model(lambda tw: streamed(tw, published(tw, "UNICORN")), more=next_window),
    "UNTIE-published": Model(
        lambda tw: published(tw, "UNTIE", 3, max_iter=3).fit(start(tw)), more=next_window
    ),
}
RESUMED = ("StreamClusterer", "UNICORN", "UNICORN-published", "Windowed")  # checkpoints of streams
