"""Goldens: numbers that pin every system down.

A golden takes the package as a module and returns a float or an array that does not depend on how
a space is turned or mirrored: distances, kernels, labels, probabilities, sums.
"""

from __future__ import annotations

import csv
import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.metrics import mean_absolute_error, root_mean_squared_error

from _golden_data import (
    N,
    Rows,
    asked,
    atoms,
    between,
    checksum,
    classes,
    counted,
    data,
    flat,
    found,
    geometry,
    mixed,
    mixed_asked,
    mixed_schema,
    number_classes,
    numbers,
    part,
    plain_schema,
    published,
    signals,
    some_classes,
    some_numbers,
    sources,
    streamed,
    table,
    windows,
    without_sets,
)

Golden = Callable[[Any], Any]
GOLDENS: dict[str, Golden] = {}
# All measures: written out, so that one that gets lost is missed.
MEASURES = (
    *("hamming", "eskin", "iof", "of", "goodall1", "goodall2", "goodall3", "goodall4", "rough"),
    *("smirnov", "gambaryan", "burnaby", "lin", "lin1", "anderberg", "le_ho", "ahmad", "dilca"),
    *("jia", "cos", "cos_intra", "cos_inter", "ckml", "ckml_intra", "ckml_inter", "vdm", "mtdle"),
)


def golden(name: str) -> Callable[[Golden], Golden]:
    """Register a function of the package under a name."""

    def register(function: Golden) -> Golden:
        if name in GOLDENS:
            raise ValueError(f"expected golden names that differ, got {name!r} twice")
        GOLDENS[name] = function
        return function

    return register


# -- data sets, tables, counts ------------------------------------------------------------------


@golden("datasets: rules")
def _(tw: Any) -> Any:
    room = tw.datasets
    sets = [room.balance(), room.car(), room.nursery(), room.three_of_9(), room.tictactoe()]
    sets += [room.titanic(), *map(room.monks, (1, 2, 3)), room.krkopt()]
    return [*map(of_dataset, sets)]


def of_dataset(dataset: Any) -> float:
    """Return a checksum over all cells; lists print in full, arrays do not."""
    cells = [(name, own.tolist()) for name, own in dataset.columns.items()]
    return checksum([*cells, dataset.y.tolist(), dataset.kinds])


@golden("datasets: drawn")
def _(tw: Any) -> Any:
    room = tw.datasets
    drawn = [room.led24(200, random_state=1), room.mofn_3_7_10(200, random_state=1), data(tw)]
    drifting = room.make_coupled(200, 4, drift=0.8, random_state=2)
    sums = [*map(of_dataset, [*drawn, drifting])]
    return flat(sums, room.make_codes(50, 3, 300, random_state=1), numbers(tw)[:20])


@golden("table")
def _(tw: Any) -> Any:
    read = tw.Table.of(mixed(tw), mixed_schema(tw))
    kinds = [checksum([c.name, c.kind, c.levels]) for c in read.schema.columns]
    job, tags, age = read["job"], read["tags"], read["age"].values
    cells = [job.labels[code] for code in job.codes], [tags.labels[code] for code in tags.codes]
    return flat(len(read), kinds, *map(checksum, cells), tags.starts, np.nan_to_num(age))


@golden("counts: values")
def _(tw: Any) -> Any:
    counts = tw.Counts.of(table(tw), classes(tw))
    return flat(counts.n, counts.value_counts, counts.sizes, counts.offsets, counts.class_n)


@golden("counts: pairs")
def _(tw: Any) -> Any:
    return counted(tw.Counts.of(table(tw), classes(tw)))


@golden("counts: block and select")
def _(tw: Any) -> Any:
    counts = tw.Counts.of(table(tw), classes(tw))
    span = counts.span("c3")
    return flat(
        counts.block("c0", "c3"), span.start, span.stop, counted(counts.select(["c3", "c1"]))
    )


@golden("counts: moments")
def _(tw: Any) -> Any:
    counts = tw.Counts.of(tw.Table.of(mixed(tw), mixed_schema(tw)))
    return flat(counts.moments("age"), counts.moments("size"))


@golden("counts: add and subtract")
def _(tw: Any) -> Any:
    kinds = mixed_schema(tw)
    halves = [part(mixed(tw), 0, 70), part(mixed(tw), 70, N)]
    a, b = (tw.Counts.of(tw.Table.of(half, kinds)) for half in halves)
    whole, back = a + b, (a + b) - b
    return flat(
        counted(whole), whole.moments("size"), counted(back), back.moments("age"), back == a
    )


@golden("counts: weighted and fading")
def _(tw: Any) -> Any:
    weight = np.arange(N) % 5 / 4
    weighted = tw.Counts.of(table(tw), classes(tw), sample_weight=weight)
    return flat(counted(weighted), counted(tw.Counts.of(table(tw)).scaled(0.3)))


@golden("value tables")
def _(tw: Any) -> Any:
    read = tw.Table.of(table(tw))
    counts = tw.Counts.of(read)
    rng = np.random.default_rng(0)
    tables = tw.ValueTables.from_features([rng.normal(size=(s, 6)) for s in counts.sizes], counts)
    few = tw.Table.of(asked(tw))
    shares = tables.contributions(few, few)
    return flat(tables.widths, between(tables.gather(few)), tables.kernel(few, None), shares)


# -- embedders ----------------------------------------------------------------------------------

EMBEDDERS: dict[str, Callable[[Any], Any]] = {
    "onehot": lambda tw: tw.OneHot().fit(table(tw)),
    "weave": lambda tw: tw.Weave().fit(table(tw)),
    "weave: projected": lambda tw: tw.Weave(3).fit(table(tw)),
    "weave: landmarks": lambda tw: tw.Weave(max_landmarks=3).fit(table(tw)),
    "weave: in windows": lambda tw: streamed(tw, tw.Weave()),
    "weave: weighted": lambda tw: tw.Weave().fit(table(tw), sample_weight=np.arange(N) % 4),
    "ckml": lambda tw: tw.CKML().fit(table(tw)),
    "ckml: intra": lambda tw: tw.CKML("intra").fit(table(tw)),
    "ckml: inter": lambda tw: tw.CKML("inter").fit(table(tw)),
    "cde": lambda tw: tw.CDE(random_state=0).fit(table(tw)),
    "untie": lambda tw: tw.UNTIE(3).fit(table(tw)),
    "helic": lambda tw: helic(tw),
    "helic: linear": lambda tw: helic(tw, "linear"),
    "helic: hc": lambda tw: helic(tw, "hc"),
    "helic: balanced start": lambda tw: helic(tw, **balanced(tw), pull=0.1),
    "unicorn": lambda tw: streamed(tw, tw.UNICORN(3)),
    "unicorn: decay": lambda tw: streamed(tw, tw.UNICORN(decay=0.6)),
    "nonbend: vi": lambda tw: nonbend(tw).fit(table(tw)),
    "nonbend: gibbs": lambda tw: nonbend(tw, "gibbs").fit(table(tw)),
    "nonbend: batches": lambda tw: nonbend(tw).fit_batches(windows(tw)),
}


def helic(tw: Any, *args: Any, **parameters: Any) -> Any:
    model = tw.HELIC(*args, n_pairs=800, max_iter=30, random_state=0, **parameters)
    return model.fit(table(tw), classes(tw))


def balanced(tw: Any) -> dict[str, str]:
    """Return what lets HELIC's spaces start alike."""
    return {"variant": "balanced"}


def nonbend(tw: Any, method: str = "vi", **parameters: Any) -> Any:
    parameters |= short(tw, method)
    return tw.NonBEND(n_fits=2, random_state=0, **parameters)


def short(tw: Any, method: str) -> dict[str, Any]:
    """Return a method of Non-BEND that ends soon."""
    name = {"vi": "VI", "gibbs": "Gibbs"}[method]
    return {"method": found(tw, name)(truncation=8, max_iter=20)}


for _name, _make in EMBEDDERS.items():

    @golden(_name)
    def _(tw: Any, make: Golden = _make) -> Any:
        return geometry(make(tw), asked(tw))


@golden("weave: all rows")
def _(tw: Any) -> Any:
    model = tw.Weave(3).fit(table(tw))
    return flat(model.weights_, model.pairwise_distances(table(tw)))


@golden("weave: values")
def _(tw: Any) -> Any:
    model = tw.Weave().fit(table(tw))
    return flat(*(model.value_distances(name).to_numpy() for name in table(tw)))


@golden("weave: titanic")
def _(tw: Any) -> Any:
    people = tw.datasets.titanic()
    some = people.take(range(0, people.n_rows, 200))
    return geometry(tw.Weave().fit(people.frame()), dict(some.columns))


@golden("untie: what was learned")
def _(tw: Any) -> Any:
    model = tw.UNTIE(3, temperature=0.2).fit(table(tw))
    return flat(model.n_iter_, model.objective_, model.weights_)


@golden("ckml: what was learned")
def _(tw: Any) -> Any:
    model = tw.CKML().fit(table(tw))
    clip = model.psd_clip_ if hasattr(model, "psd_clip_") else model.repair_
    return flat(model.alpha_, model.beta_, clip, *model.squares_)


@golden("cde: what was learned")
def _(tw: Any) -> Any:
    model = tw.CDE(random_state=0).fit(table(tw))
    return flat(model.n_value_clusters_, between(model.value_vectors_))


@golden("helic: what was learned")
def _(tw: Any) -> Any:
    model = helic(tw)
    return flat(model.threshold_, model.objective_, model.weights_)


@golden("helic: in windows")
def _(tw: Any) -> Any:
    model = tw.HELIC(n_pairs=300, max_iter=20, random_state=0)
    for i, window in enumerate(windows(tw)):
        model.partial_fit(window, classes(tw)[40 * i : 40 * i + 40])
    return model.pairwise_distances(asked(tw))


@golden("unicorn: drift")
def _(tw: Any) -> Any:
    model = streamed(tw, tw.UNICORN(decay=0.6))
    seen = [[h["window"], h["rows"], h["values"]] for h in model.history_]
    return flat(model.drift_.overall, model.drift_.columns, seen, model.counts_.n, model.n_rows_)


@golden("nonbend: model of the table")
def _(tw: Any) -> Any:
    model = nonbend(tw).fit(table(tw))
    scores = model.predict_subspace(asked(tw)), model.score_samples(asked(tw))
    joint = model.reconstruct(["c0", "c1"])
    return flat(
        model.weights_, *model.theta_, model.trace_, *scores, joint, model.divergence(table(tw))
    )


@golden("nonbend: drawn rows")
def _(tw: Any) -> Any:
    rows = nonbend(tw, "gibbs").fit(table(tw)).sample(30, random_state=5)
    return [checksum(cells.tolist()) for cells in rows.values()]


@golden("autoencoder")
def _(tw: Any) -> Any:
    make = found(tw, "OneHotAutoencoder")
    model = make(4, max_iter=8, random_state=0).fit(table(tw))
    return flat(model.loss_, model.n_iter_, between(model.transform(asked(tw))))


for _name in MEASURES:

    @golden(f"measure: {_name}")
    def _(tw: Any, name: str = _name) -> Any:
        model = tw.ValueMetric(name).fit(table(tw), classes(tw))
        distances = model.pairwise_distances(table(tw), asked(tw))
        return distances if name == "jia" else flat(distances, model.total_distortion_)


@golden("measures: register")
def _(tw: Any) -> Any:
    own = tw.measures.MEASURES
    claims = [[own[n].metric, own[n].needs_y, checksum(own[n].form)] for n in MEASURES]
    return flat(claims, [name in tw.measures.list_measures() for name in MEASURES])


@golden("measure: a function of one's own")
def _(tw: Any) -> Any:
    def mismatch(counts: Any) -> list[np.ndarray]:
        return [1.0 - np.eye(size) / size for size in counts.sizes]

    def zeroed(counts: Any) -> list[np.ndarray]:
        return [m - np.diag(m.diagonal()) for m in mismatch(counts)]

    return tw.ValueMetric(zeroed).fit(table(tw)).pairwise_distances(asked(tw))


# -- numbers, hierarchies, sets -----------------------------------------------------------------


@golden("coupled numeric")
def _(tw: Any) -> Any:
    model = tw.CoupledNumeric(3).fit(numbers(tw)[:, :5])
    return flat(model.transform(numbers(tw)[:6, :5]), model.correlations_, model.p_values_)


@golden("coupled numeric: unscaled, with gaps")
def _(tw: Any) -> Any:
    rows = {"age": mixed(tw)["age"], "size": numbers(tw)[:, 10]}
    model = tw.CoupledNumeric(2, scale=None, standardize=True).fit(rows)
    return flat(model.transform(part(rows, 0, 20)), model.intra("age"), model.inter("age"))


@golden("hierarchy: grown with classes")
def _(tw: Any) -> Any:
    model = tw.DistanceHierarchy(schema=mixed_schema(tw)).fit(mixed(tw), classes(tw))
    return geometry(model, mixed_asked(tw))


@golden("hierarchy: grown without classes")
def _(tw: Any) -> Any:
    model = tw.DistanceHierarchy(linkage="complete").fit(table(tw))
    return flat(geometry(model, asked(tw)), model.value_distances("c1").to_numpy())


@golden("hierarchy: made by hand")
def _(tw: Any) -> Any:
    drinks = {"coffee": ["latte", "mocha"], "tea": {"oolong": 0.5, "assam": 2.0}}
    rows = {
        "drink": ["latte", "mocha", "oolong", "assam", None],
        "price": [3.0, 3.5, 2.0, 4.0, 1.0],
    }
    model = tw.DistanceHierarchy({"drink": drinks}).fit(rows)
    tree = model.trees_["drink"]
    return flat(model.pairwise_distances(rows), tree.distance("latte", "assam"), tree.depths)


@golden("drdh")
def _(tw: Any) -> Any:
    return between(drdh(tw).map_[:12])


@golden("drdh: new rows")
def _(tw: Any) -> Any:
    new = drdh(tw).transform(part(mixed(tw), 100, 106))
    return cdist(new, drdh(tw).map_[:6])


@cache
def drdh(tw: Any) -> Any:
    model = tw.DRDH(perplexity=8, n_iter=20, schema=mixed_schema(tw), random_state=0)
    return model.fit(part(mixed(tw), 0, 80), classes(tw)[:80])


@golden("set tfidf")
def _(tw: Any) -> Any:
    rows = {"tags": mixed(tw)["tags"]}
    model = tw.SetTfidf().fit(rows)
    terms = [checksum([term]) for term in model.terms_]
    return flat(terms, model.idf_, model.document_frequency_, model.transform(part(rows, 0, 5)))


@golden("set tfidf: all subsets, and binary")
def _(tw: Any) -> Any:
    rows = {"tags": mixed(tw)["tags"], "job": mixed(tw)["job"]}
    whole = tw.SetTfidf(None, min_df=3).fit(rows).transform(rows)
    return flat(whole, tw.SetTfidf(1, weighting="binary", max_terms=5).fit(rows).transform(rows))


@golden("ksvd")
def _(tw: Any) -> Any:
    return ksvd(tw)


@golden("ksvd: exact update")
def _(tw: Any) -> Any:
    return ksvd(tw, update="exact", pursuit="omp")


def ksvd(tw: Any, **parameters: Any) -> np.ndarray:
    model = tw.KSVD(8, n_nonzero=2, max_iter=6, random_state=0, **parameters).fit(signals(tw))
    back = model.inverse_transform(model.transform(signals(tw)[:10]))
    return flat(model.error_trace_, model.size_trace_, back, model.compression(signals(tw)))


@golden("omp")
def _(tw: Any) -> Any:
    return tw.omp(signals(tw)[:12], atoms(tw), n_nonzero=3)


@golden("batch omp")
def _(tw: Any) -> Any:
    by_error = tw.batch_omp(signals(tw)[:12], atoms(tw), error=0.2)
    return flat(by_error, tw.batch_omp(signals(tw)[:12], atoms(tw)))


# -- mixed tables, streams ----------------------------------------------------------------------

MIXED: dict[str, Callable[[Any], Any]] = {
    "auto": lambda tw: tw.Weave(schema=mixed_schema(tw)),
    "projected": lambda tw: tw.Weave(3, schema=mixed_schema(tw)),
}
PLAIN: dict[str, Callable[[Any], Any]] = {
    "helic": lambda tw: tw.HELIC(n_pairs=300, max_iter=20, random_state=0),
    "ckml": lambda tw: tw.CKML(),
    "untie": lambda tw: tw.UNTIE(3),
    "nonbend": lambda tw: nonbend(tw),
    "goodall3": lambda tw: tw.ValueMetric("goodall3"),
}
for _name, _make in MIXED.items():

    @golden(f"mixed: {_name}")
    def _(tw: Any, make: Golden = _make) -> Any:
        return geometry(make(tw).fit(mixed(tw)), mixed_asked(tw), has_kernel=False)


for _name, _make in PLAIN.items():

    @golden(f"mixed: {_name}")
    def _(tw: Any, make: Any = _make) -> Any:
        rows = tw.Table.of(without_sets(mixed(tw)), plain_schema(tw), rules="whole")
        model = make(tw).fit(rows, classes(tw))
        return geometry(model, without_sets(mixed_asked(tw)), has_kernel=False)


@golden("mixed: numbers alone")
def _(tw: Any) -> Any:
    rows = {f"x{i}": numbers(tw)[:, i] for i in range(4)}
    return geometry(tw.Weave().fit(rows), part(rows, 0, 12), has_kernel=False)


@golden("mixed: in batches")
def _(tw: Any) -> Any:
    model = tw.Weave(schema=mixed_schema(tw))
    for start in (0, 80):
        model.partial_fit(part(mixed(tw), start, start + 80))
    return geometry(model, mixed_asked(tw), has_kernel=False)


@golden("windowed: the last two windows")
def _(tw: Any) -> Any:
    model = streamed(tw, tw.Windowed(tw.Weave(), window=2))
    return flat(counted(model.counts_), between(model.transform(asked(tw))), model.n_rows_)


@golden("windowed: decay and refresh")
def _(tw: Any) -> Any:
    model = streamed(tw, tw.Windowed(tw.Weave(3), decay=0.5, refresh=2))
    return flat(model.counts_.n, between(model.transform(asked(tw))))


@golden("river")
def _(tw: Any) -> Any:
    stream = found(tw, "RiverEmbedder")(tw.Weave(), window_size=20)
    rows = [{name: cells[i] for name, cells in table(tw).items()} for i in range(50)]
    for row in rows:
        stream.learn_one(row)
    return between([list(stream.transform_one(row).values()) for row in rows[:8]])


# -- many sources -------------------------------------------------------------------------------


@golden("sources")
def _(tw: Any) -> Any:
    own = sources(tw)
    some = own.select([3, 50, 20, 159]).like(own)
    spectral = own.with_features_of("near", "spectral", n_components=4).matrix("near spectral")
    tables = [np.nan_to_num(own.matrix(name)).sum(axis=0) for name in own.names]
    return flat(
        own.present, own.graph("near").sum(axis=0), *tables, some.rows("right"), abs(spectral)
    )


@golden("gbc classifier: sources")
def _(tw: Any) -> Any:
    return gbc_classes(tw.GBCClassifier(12, random_state=0), tw)


@golden("gbc classifier: terms on")
def _(tw: Any) -> Any:
    terms = {"consensus": 0.5, "connectivity": 0.3, "graph_smoothing": 0.4, "weights": "equal"}
    return gbc_classes(tw.GBCClassifier(20, **terms, random_state=0), tw)


def gbc_classes(model: Any, tw: Any) -> np.ndarray:
    model.fit(sources(tw), some_classes(tw))
    learned = model.source_weights_, model.graph_weights_, model.lambdas_, model.n_rounds_
    return flat(*learned, model.predict_proba(sources(tw)))


@golden("gbc classifier: a plain table")
def _(tw: Any) -> Any:
    model = tw.GBCClassifier(8, random_state=0).fit(numbers(tw), number_classes(tw))
    return flat(model.feature_importances_, model.predict_proba(numbers(tw)[:12]))


@golden("gbc regressor")
def _(tw: Any) -> Any:
    return gbc_numbers(tw.GBCRegressor(12, random_state=0), tw)


def gbc_numbers(model: Any, tw: Any) -> np.ndarray:
    model.fit(sources(tw), some_numbers(tw))
    return flat(model.source_weights_, model.graph_weights_, model.predict(sources(tw)))


@golden("coca: labels")
def _(tw: Any) -> Any:
    return coca(tw.CoCA(4), tw, some_classes(tw))


@golden("coca: equal weights")
def _(tw: Any) -> Any:
    return coca(tw.CoCA(4, weights="equal", alpha=0.5), tw, None)


@golden("coca: links")
def _(tw: Any) -> Any:
    model = tw.CoCA(3, solver="lanczos")
    model.fit(sources(tw), must_link=[(0, 1), (2, 9)], cannot_link=[(0, 5), (3, 8)])
    return flat(model.weights_, model.eigenvalues_)


def coca(model: Any, tw: Any, labels: Any) -> np.ndarray:
    vectors = model.fit(sources(tw), labels).transform(sources(tw))
    return flat(model.weights_, model.graph_weights_, model.eigenvalues_, vectors @ vectors.T)


@golden("hemap: pairs")
def _(tw: Any) -> Any:
    return hemap(tw, tw.HeMap(n_components=4, guard=3, random_state=0), pairs=np.arange(N))


@golden("hemap: nonlinear")
def _(tw: Any) -> Any:
    return hemap(tw, tw.HeMap(n_components=3, linearity=0.5, guard=None, random_state=0))


@golden("hemap: by score")
def _(tw: Any) -> Any:
    model = tw.HeMap(alignment="score", n_components=3, guard=None, random_state=0)
    return hemap(tw, model)


@golden("hemap: by cluster")
def _(tw: Any) -> Any:
    model = tw.HeMap(alignment="cluster", n_components=3, guard=None, random_state=0)
    return hemap(tw, model)


@golden("hemap: refused")
def _(tw: Any) -> Any:
    return hemap(tw, tw.HeMap(guard=3, random_state=0))


def hemap(tw: Any, model: Any, **given: Any) -> np.ndarray:
    """Fit with 40 labeled rows of a target and a source of other columns."""
    x, y = numbers(tw), number_classes(tw)
    labels = y.astype(object)
    labels[40:] = None
    model.fit(x[:, :9], labels, source=(x[:, 9:], y), **given)
    near = model.project(x[:10, :9])
    losses = [value for _, value in sorted(model.losses_.items())]
    return flat(model.refused_, losses, near @ near.T, model.predict_proba(x[:20, :9]))


@golden("hemap: numbers")
def _(tw: Any) -> Any:
    from sklearn.linear_model import Ridge

    x = numbers(tw)
    target = np.where(np.arange(N) < 50, x[:, 10], np.nan)
    model = tw.HeMap(Ridge(), n_components=4, guard=None, random_state=0)
    model.fit(x[:, :9], target, source=(x[:, 11:], 2 * x[:, 10]), pairs=np.arange(N))
    return model.predict(x[:20, :9])


# -- clusters, neighbours, search ---------------------------------------------------------------

KMODES: dict[str, Callable[[Any], dict[str, Any]]] = {
    "hamming": lambda tw: {},
    "of": lambda tw: {"metric": "of"},
    "ckml": lambda tw: {"metric": "ckml"},
    "weave": lambda tw: {"metric": tw.Weave()},
    "ahmad, medoids": lambda tw: {"metric": "ahmad", "centers": "medoid"},
    "goodall3, distributions": lambda tw: {"metric": "goodall3", "centers": "distribution"},
    "huang": lambda tw: {"init": "huang"},
    "cao": lambda tw: {"init": "cao"},
    "weighted columns": lambda tw: {"feature_weights": {"c0": 3.0, "c1": 0.5}},
}
for _name, _make in KMODES.items():

    @golden(f"kmodes: {_name}")
    def _(tw: Any, make: Any = _make) -> Any:
        model = tw.KModes(3, n_init=3, random_state=0, **make(tw)).fit(table(tw), classes(tw))
        return flat(model.cost_, model.labels_, model.transform(asked(tw)))


STREAMS: dict[str, Callable[[Any], Any]] = {
    "unicorn": lambda tw: stream_clusterer(tw),
    "windowed onehot": lambda tw: stream_clusterer(tw, embedder=tw.Windowed(tw.OneHot())),
    "kmodes": lambda tw: stream_clusterer(tw, method="kmodes", recent=30),
    "ccds": lambda tw: tw.papers.CCDSDC(3, n_init=3, random_state=0),
    "ccted": lambda tw: tw.papers.CCTED(3, n_init=3, random_state=0),
    "dcd": lambda tw: tw.papers.DCD(3, n_init=3, random_state=0),
}


def stream_clusterer(tw: Any, **parameters: Any) -> Any:
    return tw.cluster.StreamClusterer(3, n_init=3, random_state=0, **parameters)


for _name, _make in STREAMS.items():

    @golden(f"stream: {_name}")
    def _(tw: Any, make: Any = _make) -> Any:
        model, labels = make(tw), []
        for window in windows(tw):
            labels.append(model.partial_fit(window).labels_)
        learned = [getattr(model, name, 0.0) for name in ("inertia_", "index_", "difference_")]
        return flat(*labels, *learned, model.predict(asked(tw)))


@golden("knn: weights")
def _(tw: Any) -> Any:
    out = []
    for weights in ("none", "exp", "log", "org", "pow", "sqrt"):
        model = tw.WeightedKNN(5, metric="cos", weights=weights).fit(table(tw), classes(tw))
        out.append(model.predict_proba(asked(tw)))
    return flat(*out)


@golden("knn: first come")
def _(tw: Any) -> Any:
    model = tw.WeightedKNN(3, metric=tw.Weave(), ties="first").fit(table(tw), classes(tw))
    return flat(model.predict_proba(asked(tw)), model.predict(asked(tw)))


@golden("knn: neighbours")
def _(tw: Any) -> Any:
    model = tw.WeightedKNN(4, metric="vdm", ties="first").fit(table(tw), classes(tw))
    return flat(*model.kneighbors(asked(tw)))


@golden("index: ids and distances")
def _(tw: Any) -> Any:
    return flat(*index(tw).query(asked(tw), 6)[:2])


@golden("index: filters")
def _(tw: Any) -> Any:
    wanted = {"c0": ["v0", "v1"], "c1": lambda value: value != "v0"}
    return flat(*index(tw).query(asked(tw), 5, where=wanted)[:2])


@golden("index: like a part of a row")
def _(tw: Any) -> Any:
    like = {"c1": table(tw)["c1"][0], "c4": table(tw)["c4"][3]}
    return flat(*index(tw).query(like, 8)[:2], index(tw).explain(like, 17))


@golden("index: rows added and removed")
def _(tw: Any) -> Any:
    model = tw.SimilarityIndex(tw.Weave(3)).fit(part(table(tw), 0, 120))
    model.add(part(table(tw), 120, N)).remove([0, 3, 130])
    return flat(len(model), model.ids_, *model.query(asked(tw), 5)[:2])


@golden("index: mixed rows")
def _(tw: Any) -> Any:
    model = tw.SimilarityIndex(tw.Weave(schema=mixed_schema(tw))).fit(mixed(tw))
    row = {name: cells[3] for name, cells in mixed(tw).items()}
    near = model.query(mixed_asked(tw), 5, where={"age": lambda ages: ages > 2})[:2]
    return flat(*near, model.explain(row, 9))


@golden("index: trees")
def _(tw: Any) -> Any:
    model = tw.SimilarityIndex(tw.DistanceHierarchy(schema=mixed_schema(tw))).fit(mixed(tw))
    return flat(*model.query(mixed_asked(tw), 5)[:2])


@golden("index: a measure, and L1")
def _(tw: Any) -> Any:
    own = tw.SimilarityIndex(tw.ValueMetric("goodall3")).fit(table(tw)).query(asked(tw), 5)[:2]
    city = tw.SimilarityIndex(tw.OneHot(), metric="l1").fit(table(tw)).query(asked(tw), 5)[:2]
    return flat(*own, *city)


@golden("index: graph")
def _(tw: Any) -> Any:
    model = tw.SimilarityIndex(tw.Weave(), backend="graph").fit(table(tw))
    return flat(*model.query(asked(tw), 5)[:2])


def index(tw: Any) -> Any:
    return tw.SimilarityIndex(tw.Weave()).fit(table(tw))


# -- tasks --------------------------------------------------------------------------------------


@golden("drift report")
def _(tw: Any) -> Any:
    rows = dict(tw.datasets.make_coupled(300, 4, drift=0.9, random_state=5).columns)
    rows["x"] = np.linspace(0, 1, 300) ** 2
    before, after = (tw.Counts.of(tw.Table.of(part(rows, i, i + 150))) for i in (0, 150))
    report = found(tw, "drift_report")(before, after, n_draws=400)
    findings = [
        [checksum([f.name, f.values]), f.statistic, f.p_value, f.adjusted, f.effect]
        for f in (*report.columns, *report.couplings)
    ]
    return flat(findings, checksum([report.changed, report.changed_couplings]))


@golden("recommend")
def _(tw: Any) -> Any:
    given = ratings(tw)
    model = factorized(tw)
    again = model.predict(given.users, given.items)
    rmse = root_mean_squared_error(given.ratings, again)
    mae = mean_absolute_error(given.ratings, again)
    return flat(model.rmse_, rmse, mae, model.predict([0, 1, 999], [5, 6, 7]))


@golden("recommend: groups")
def _(tw: Any) -> Any:
    given = ratings(tw)
    groups = found(tw, "find_groups")(
        given.user_ids, given.user_attributes, tw.OneHot(), max_groups=4, random_state=0
    )
    return flat(groups)


def ratings(tw: Any) -> Any:
    return found(tw, "make_ratings")(40, 30, 500, random_state=0)


def factorized(tw: Any) -> Any:
    given = ratings(tw)
    model = found(tw, "MatrixFactorization")(3, n_iter=12, burn_in=4, random_state=0)
    return model.fit(given.users, given.items, given.ratings, user_groups=given.user_groups)


# -- evaluate -----------------------------------------------------------------------------------


def labels_and_distances(tw: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    points = numbers(tw)[:80]
    found_labels = (points[:, 6] > 3).astype(int) + 2 * (points[:, 14] > 3)
    return number_classes(tw)[:80], found_labels, cdist(points, points)


@golden("evaluate: labels")
def _(tw: Any) -> Any:
    truth, labels, _ = labels_and_distances(tw)
    scores = ("clustering_f", "clustering_accuracy")
    out = [getattr(tw.evaluate, name)(truth, labels) for name in scores]
    matched = tw.evaluate.matched_labels(truth, labels)
    return flat(
        *out, tw.evaluate.macro_f(truth, np.roll(truth, 3)), [checksum([m]) for m in matched]
    )


@golden("evaluate: distances")
def _(tw: Any) -> Any:
    truth, labels, distances = labels_and_distances(tw)
    room, similar = tw.papers, np.exp(-distances / 5)
    out = [f(distances, labels) for f in (room.relative_distance, room.dunn, room.sd_index)]
    curve = room.epsilon_gamma(similar, truth)
    return flat(
        *out,
        *curve,
        room.class_margins(similar, truth),
    )


@golden("evaluate: retrieval")
def _(tw: Any) -> Any:
    truth, _, distances = labels_and_distances(tw)
    room, near = tw.evaluate, np.argsort(distances, axis=1)[:, :12]
    scores = room.precision_at_k, room.recall_at_k
    by_distance = [score(distances, truth, k=[1, 5, 10]) for score in scores]
    by_list = [
        f(near, truth, k=5) for f in (room.neighbor_precision_at_k, room.neighbor_recall_at_k)
    ]
    return flat(*by_distance, *by_list)


@golden("evaluate: ranks")
def _(tw: Any) -> Any:
    room, scores = tw.evaluate, numbers(tw)[:12, :5]
    test = room.friedman(scores)
    cd = [room.critical_difference(5, 12, test=t) for t in ("nemenyi", "bonferroni-dunn")]
    tests = [room.nemenyi(scores), room.bonferroni_dunn(scores, 0)]
    found_cd = [t.critical_difference for t in tests]
    significant = [t.significant for t in tests]
    return flat(
        room.average_ranks(scores), test.chi2, test.p_value, test.f, cd, found_cd, *significant
    )


@golden("evaluate: couplings")
def _(tw: Any) -> Any:
    counts = tw.Counts.of(table(tw), classes(tw))
    tables = [counts.class_pairs[counts.span(name)] for name in counts.names]
    models = [tw.ValueMetric(name).fit(table(tw)) for name in ("ahmad", "goodall3", "of")]
    couplings = [[m.value_distances(name).to_numpy() for m in models] for name in counts.names]
    room = tw.papers
    intra = room.intra_coupling_heterogeneity(tables)
    return flat(intra, room.inter_coupling_heterogeneity(couplings))


@golden("evaluate: protocols")
def _(tw: Any) -> Any:
    room, y = tw.papers, number_classes(tw)
    splits = [room.monte_carlo_splits(y, 3, random_state=0, stratify=s) for s in (True, False)]
    tests = [test for several in splits for _, test in several]
    mixes = [room.stream_windows(y, 4, mix=m, random_state=0) for m in ("random", "drift", "plain")]
    best = min([{"cost": 3.0}, {"cost": 2.0}], key=lambda fit: fit["cost"])
    return flat(*tests, *(window for windows_ in mixes for window in windows_), best)


# -- export -------------------------------------------------------------------------------------


@golden("export: sql in duckdb")
def _(tw: Any) -> Any:
    return between(in_duckdb(tw, tw.Weave().fit(table(tw)), table(tw)))


@golden("export: sql of mixed rows in duckdb")
def _(tw: Any) -> Any:
    rows = without_sets(mixed(tw))
    model = tw.Weave(schema=plain_schema(tw)).fit(rows)
    return between(in_duckdb(tw, model, rows))


@golden("export: sql in sqlite")
def _(tw: Any) -> Any:
    rows, model = table(tw), tw.Weave(3).fit(table(tw))
    script = tw.export.sql(model, "sqlite", keep=["id"], prefix="values")
    lines = [(i, *line) for i, line in enumerate(zip(*rows.values(), strict=True))]
    with sqlite3.connect(":memory:") as connection:
        connection.execute(f"CREATE TABLE rows (id, {', '.join(rows)})")
        connection.executemany(
            f"INSERT INTO rows VALUES ({', '.join('?' * (len(rows) + 1))})", lines
        )
        connection.executescript(script.tables)
        out = sorted(connection.execute(script.select).fetchall())
    connection.close()
    return between([line[1:] for line in out][:30])


def in_duckdb(tw: Any, model: Any, rows: Rows) -> np.ndarray:
    import duckdb
    import pyarrow

    script = tw.export.sql(model, "duckdb", keep=["id"], prefix="values")
    arrow = pyarrow.table({"id": range(N), **{name: listed_cells(c) for name, c in rows.items()}})
    with duckdb.connect() as connection:
        connection.register("rows", arrow)
        out = sorted(connection.execute(script).fetchall())
    return np.array([line[1:] for line in out], dtype=float)[:30]


def listed_cells(cells: Any) -> list[Any]:
    return [None if isinstance(c, float) and np.isnan(c) else c for c in cells.tolist()]


@golden("export: onnx")
def _(tw: Any) -> Any:
    rows = table(tw)
    model = tw.export.onnx(tw.Weave(3).fit(rows))
    cells = {name: np.array(["" if c is None else c for c in own]) for name, own in rows.items()}
    return between(in_onnx(model, cells))


@golden("export: onnx of mixed rows")
def _(tw: Any) -> Any:
    rows = without_sets(mixed(tw))
    model = tw.export.onnx(tw.Weave(schema=plain_schema(tw)).fit(rows))
    text = {n: np.array(["" if c is None else c for c in rows[n]]) for n in ("job", "grade")}
    return between(in_onnx(model, text | {"age": rows["age"], "size": rows["size"]}))


def in_onnx(model: Any, cells: Rows) -> np.ndarray:
    import onnxruntime

    session = onnxruntime.InferenceSession(model.SerializeToString())
    return session.run(None, cells)[0][:30]


@golden("export: parquet")
def _(tw: Any) -> Any:
    import duckdb

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tables.parquet"
        tw.export.parquet(tw.OneHot().fit(table(tw)), path)
        with duckdb.connect() as connection:
            lines = connection.execute("SELECT * FROM read_parquet(?)", [str(path)]).fetchall()
    return flat(
        len(lines),
        [checksum(line[:4]) for line in lines],
        [sum(v or 0 for v in line[4:]) for line in lines],
    )


# -- engines ------------------------------------------------------------------------------------


@contextmanager
def files(tw: Any) -> Iterator[tuple[Path, Path]]:
    """Write the table, with its classes, as CSV and as Parquet into a folder that goes again."""
    import pyarrow
    import pyarrow.parquet

    rows = {"y": classes(tw).tolist()} | {n: c.tolist() for n, c in table(tw).items()}
    rows |= {"x": numbers(tw)[:, 6].tolist()}
    with tempfile.TemporaryDirectory() as folder:
        text, columns = Path(folder) / "rows.csv", Path(folder) / "rows.parquet"
        with open(text, "w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(rows)
            writer.writerows(zip(*rows.values(), strict=True))
        pyarrow.parquet.write_table(pyarrow.table(rows), columns)
        yield text, columns


@golden("engines: csv")
def _(tw: Any) -> Any:
    with files(tw) as (text, _):
        counts = tw.engines.count(str(text), y="y")
    return flat(counted(counts), counts.moments("x"))


@golden("engines: parquet")
def _(tw: Any) -> Any:
    with files(tw) as (_, columns):
        counts = tw.count(str(columns), columns=["c0", "c3", "x"], numbers="nominal", max_values=6)
    return counted(counts)


@golden("engines: hashed values")
def _(tw: Any) -> Any:
    with files(tw) as (_, columns):
        counts = tw.count(
            str(columns), columns=["c0", "x"], numbers="nominal", max_values={"x": 7}, other="hash"
        )
    return counted(counts)


@golden("engines: sql")
def _(tw: Any) -> Any:
    counts = tw.count(
        "SELECT range % 2 AS a, 'x' || (range % 3) AS b, range / 7 AS c FROM range(600)"
    )
    return flat(counted(counts), counts.moments("c"))


@golden("engines: frames")
def _(tw: Any) -> Any:
    frames = [data(tw).frame(backend) for backend in ("pandas", "polars", "pyarrow")]
    return flat(*(counted(tw.count(frame)) for frame in frames))


@golden("engines: fit and transform a file")
def _(tw: Any) -> Any:
    with files(tw) as (text, columns):
        model = tw.Weave().fit(f"SELECT * EXCLUDE (x, y) FROM '{text}'")
        target = columns.with_name("vectors.csv")
        done = tw.engines.transform(model, str(columns), target, keep=["y"])
        with open(target, newline="", encoding="utf-8") as file:
            lines = list(csv.reader(file))[1:]
    return flat(done, between([list(map(float, line[1:])) for line in lines[:30]]))


@golden("engines: estimate")
def _(tw: Any) -> Any:
    with files(tw) as (_, columns):
        sizes = tw.engines.estimate(str(columns))
    return flat(sizes.rows, dict(sizes.values), sizes.pairs, sizes.bytes)


# -- report, plots ------------------------------------------------------------------------------


@golden("report: categories")
def _(tw: Any) -> Any:
    return described(tw.report.describe(data(tw).frame(), target=classes(tw)))


@golden("report: mixed rows")
def _(tw: Any) -> Any:
    return described(tw.report.describe(mixed(tw), n_neighbors=3))


def described(description: dict[str, Any]) -> np.ndarray:
    """Return all numbers of a description but the coordinates on maps, which may be mirrored."""
    for layout in description["map"]["layouts"]:
        layout["points"] = len(layout["points"])
    return np.array(list(leaves(description)), dtype=float)


def leaves(value: Any) -> Iterator[float]:
    if isinstance(value, Mapping):
        for key in sorted(value):
            yield from leaves(value[key])
    elif isinstance(value, list | tuple):
        for part_ in value:
            yield from leaves(part_)
    elif isinstance(value, int | float | np.number):
        yield float(value)


@golden("plots")
def _(tw: Any) -> Any:
    import matplotlib

    matplotlib.use("Agg")
    room, weave = tw.plots, tw.Weave().fit(table(tw))
    between_values = weave.value_distances("c1")
    axes = [
        room.scatter_map(numbers(tw)[:20, :2], classes(tw)[:20]),
        room.value_heatmap(between_values.to_numpy(), between_values.index),
        room.cd_diagram([1.5, 2.0, 3.2, 3.3], ["a", "b", "c", "d"], 1.1),
        room.convergence(tw.UNTIE(3).fit(table(tw)).objective_),
        room.column_weights(weave.weights_),
        room.weights_heatmap(tw.UNTIE(3).fit(table(tw)).weights_),
        room.dendrogram(tw.DistanceHierarchy().fit(table(tw), classes(tw)).trees_["c1"]),
        room.precision_curve([1, 5], {"a": [0.9, 0.8], "b": [0.7, 0.6]}),
    ]
    return flat(*map(drawn, axes))


def drawn(ax: Any) -> np.ndarray:
    """Return what was put on an Axes: lines, points, images, bars."""
    lines = [line.get_xydata() for line in ax.lines]
    points = [np.ma.getdata(c.get_offsets()) for c in ax.collections]
    images = [np.ma.filled(image.get_array(), np.nan) for image in ax.images]
    return flat(*lines, *points, *images, *(bar.get_bbox().get_points() for bar in ax.patches))


# -- as published -------------------------------------------------------------------------------


@golden("published: untie")
def _(tw: Any) -> Any:
    model = published(tw, "UNTIE", 3, max_iter=3, random_state=0).fit(table(tw))
    return flat(model.objective_, model.weights_, geometry(model, asked(tw)))


@golden("published: unicorn")
def _(tw: Any) -> Any:
    model = streamed(tw, published(tw, "UNICORN"))
    return flat(
        geometry(model, asked(tw)), model.objective_[-1], model.weights_, model.drift_.overall
    )


@golden("published: unicorn, delta, sigma and decay")
def _(tw: Any) -> Any:
    model = streamed(tw, published(tw, "UNICORN", delta=0.5, sigma=0.01, decay=0.6))
    return geometry(model, asked(tw))


@golden("published: helic")
def _(tw: Any) -> Any:
    model = published(tw, "HELIC", n_pairs=300, max_iter=60, random_state=0)
    model.fit(table(tw), classes(tw))
    return flat(model.threshold_, model.objective_, model.weights_, geometry(model, asked(tw)))


@golden("published: helic, linear")
def _(tw: Any) -> Any:
    model = published(tw, "HELIC", "linear", n_pairs=300, max_iter=60, random_state=0)
    return geometry(model.fit(table(tw), classes(tw)), asked(tw))


@golden("published: ckml")
def _(tw: Any) -> Any:
    model = published(tw, "CKML").fit(table(tw))
    values = [model.value_distances(name).to_numpy() for name in table(tw)]
    return flat(geometry(model, asked(tw)), *values, model.distortion_)


@golden("published: ckml, inter")
def _(tw: Any) -> Any:
    return geometry(published(tw, "CKML", "inter").fit(table(tw)), asked(tw))


@golden("published: nonbend, vi")
def _(tw: Any) -> Any:
    return geometry(published_nonbend(tw).fit(table(tw)), asked(tw))


@golden("published: nonbend, gibbs")
def _(tw: Any) -> Any:
    return geometry(published_nonbend(tw, "gibbs").fit(table(tw)), asked(tw))


def published_nonbend(tw: Any, method: str = "vi") -> Any:
    return published(tw, "NonBEND", random_state=0, **short(tw, method))


@golden("published: gbc classifier")
def _(tw: Any) -> Any:
    return gbc_classes(published(tw, "GBCClassifier", 12, random_state=0), tw)


@golden("published: gbc regressor")
def _(tw: Any) -> Any:
    return gbc_numbers(published(tw, "GBCRegressor", 12, random_state=0), tw)


@golden("published: coca")
def _(tw: Any) -> Any:
    return coca(published(tw, "CoCA", 4), tw, some_classes(tw))


@golden("published: hemap")
def _(tw: Any) -> Any:
    return hemap(tw, published(tw, "HeMap", random_state=0))


@golden("published: hemap, nonlinear")
def _(tw: Any) -> Any:
    return hemap(tw, published(tw, "HeMap", linearity=0.5, random_state=0))
