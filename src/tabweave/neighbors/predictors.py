"""WeaveClassifier and WeaveRegressor: predictions from the nearest rows.

A row gets the weighted votes of its nearest training rows in the space of
:class:`~tabweave.SupervisedWeave`. Which member of that family, how many neighbours, and whether
columns are weighted anew around each query is decided on held-out training rows. Every prediction
is a mean over rows by their weights, and every squared distance a sum over columns. Rows can be
added, and forgotten as if they had never been there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin, clone
from sklearn.utils.validation import check_is_fitted, column_or_1d

from tabweave._compat import Interval, StrOptions, in_threads, prefetched, seed_of
from tabweave.base import Estimator, TabularInput
from tabweave.columns.column import Schema
from tabweave.columns.identifiers import warn_of_predictive
from tabweave.columns.inputs import check_class_labels, target_numbers
from tabweave.columns.table import (
    Table,
    canonical_codes,
    distinct_rows,
    remember_names,
    require_rows,
    take_rows,
)
from tabweave.columns.vocabulary import slices
from tabweave.counts.counting import available_memory
from tabweave.counts.counts import checked_weight
from tabweave.embed.boosted import BoostedWeave
from tabweave.embed.supervised import SupervisedWeave, Target
from tabweave.engines import (
    class_types,
    kind_of_result,
    probability_types,
    read_with_classes,
)
from tabweave.engines.reading import by_parts, read_queries, read_row
from tabweave.gpu import arrays as gpu
from tabweave.io.register import storable
from tabweave.io.store import CacheNotSaved
from tabweave.neighbors import members
from tabweave.neighbors.local_weights import ColumnCoordinates
from tabweave.neighbors.members import CVFold, Member
from tabweave.neighbors.stored import (
    LARGEST_COORDINATE,
    Stored,
    row_ids,
    without_column,
)
from tabweave.neighbors.votes import (
    FLOORS,
    Neighbors,
    Targets,
    TrainingTargets,
    additive_weight,
    calibrated,
    check_classes,
    check_length,
    checked_target,
    log_losses,
    macro_f,
    nearest_and_ties,
    probabilities,
    winners,
)
from tabweave.space.scan import Queries, View
from tabweave.space.space import added
from tabweave.updates import exclusive

LOCAL_STRENGTHS = (0.0, 10.0)  # how far columns may be weighted anew around a row
MIN_ADDITIVE_ROWS = 5_000  # Rows from which an additive model is learned beside the votes.
MIN_ROWS_TO_CHOOSE = 10  # Of fewer rows nothing is held out.
QUERY_BLOCK_ROWS = 2048  # Rows that are answered at a time.
DEVICE_BLOCK_ROWS = 8192  # The same on a device, which many queries keep busy.


class SearchState(NamedTuple):
    """The rows that are there: their numbers, a view of them, their targets, and what else counts.

    That is the coordinates by which columns are weighted anew, and the linear prediction.
    """

    rows: np.ndarray
    view: View
    targets: TrainingTargets
    columns: ColumnCoordinates | None
    line: Callable[[Table], np.ndarray] | None


class KNeighbors(NamedTuple):
    """Nearest training rows: one line per row asked about, nearest first.

    Attributes
    ----------
    distances : ndarray
        How far they are.
    ids : ndarray
        What they are called, in frames by their index labels.
    positions : ndarray
        Where they are among the training rows: of rows that were never forgotten,
        ``frame.iloc[positions[0]]`` are the neighbours of the first row.
    """

    distances: np.ndarray
    ids: np.ndarray
    positions: np.ndarray


def neighbor_types(predictor: Any, source: Any) -> dict[str, str]:
    """What neighbours are as columns."""
    ids = kind_of_result(predictor._stored.ids)
    return {"distances": "float64[]", "ids": f"{ids}[]", "positions": "int64[]"}


class _NeighborPredictor(CacheNotSaved, TabularInput, Estimator):
    """What both have in common: rows, the space, the choice of its member, neighbours."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_neighbors": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "embedder": [StrOptions({"validated"}), SupervisedWeave],
        "sharpness": [Interval(Real, 0, None, closed="left")],
        "n_validation": [Interval(Integral, MIN_ROWS_TO_CHOOSE, None, closed="left")],
        "schema": [Schema, dict, str, None],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_neighbors: Any = "auto",
        *,
        embedder: Any = "validated",
        sharpness: float = 4.0,
        n_validation: int = 1000,
        schema: Any = None,
        random_state: Any = 0,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.embedder = embedder
        self.sharpness = sharpness
        self.n_validation = n_validation
        self.schema = schema
        self.random_state = random_state

    embedder_: SupervisedWeave | BoostedWeave
    additive_: BoostedWeave | None = None
    additive_weight_: float = 0.0
    local_: float = 0.0
    _local_strengths: ClassVar[tuple[float, ...]] = (0.0,)
    _stored: Stored
    _targets: np.ndarray  # of all rows that were ever stored
    _weight: np.ndarray | None = None  # of these, None where each counts once
    _cache: SearchState | None = None

    # -- learning --------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, ids: Any = None) -> Self:
        """Keep the rows, choose a member of the family, and learn its space.

        Parameters
        ----------
        X : frame, array, mapping of columns, list of dicts, or source
            The rows; those of a file or a query are read into memory, where all are kept.
        y : array-like, or the name of a column of a source
            The target of each row.
        sample_weight : array-like, optional
            How many rows each row counts for, in learning, choosing and votes: 2 is that of
            a row that is there twice, a row of weight 0 is not there.
        ids : array-like of whole numbers or text, or name of a column, optional
            What each row is called: these, or the cells of a column, from which nothing is learned.
            If not given, the index labels of a pandas frame, and running numbers for rows that
            have none.
        """
        return self._fit(X, y, sample_weight, ids)

    def _fit(self, X: Any, y: Any, sample_weight: Any, ids: Any, classes: Any = None) -> Self:
        self._validate_params()
        X, y = read_with_classes(X, y)
        schema = self.schema if isinstance(self.embedder, str) else self.embedder.schema
        features = without_column(X, ids)
        table = Table.of(features, Schema.of(schema), numbers="numeric", rules="whole")
        require_rows(table)
        stored = Stored.of(table, row_ids(X, ids))
        weight = checked_weight(sample_weight, table.n_rows)
        targets = self._read_targets(y, weight, table.n_rows, True, classes)
        warn_of_predictive(features, table.schema, targets)
        self._stored, self._targets, self._weight = stored.counting(weight), targets, weight
        self._choose(*self._learning_rows())
        remember_names(self, table.schema)
        return self._finish()

    def _finish(self) -> Self:
        """Make what searches need, and drop what only learning did."""
        self._cache = None
        self._search_state()
        self.embedder_.release()
        if self.additive_ is not None:
            self.additive_.release()
        return self

    def _read_targets(
        self, y: Any, weight: np.ndarray | None, n_rows: int, first: bool, classes: Any = None
    ) -> np.ndarray:
        """Target of each row; those of rows that do not count are not looked at."""
        labels = checked_target(y, type(self).__name__)
        check_length(labels, n_rows)
        if weight is None or weight.all():
            return self._encode_targets(labels, first, classes)
        rows = np.flatnonzero(weight)
        if not len(rows):
            raise ValueError("sample_weight: expected some weight above 0, got zero for every row")
        labels = checked_target(labels[rows], type(self).__name__)
        targets = self._encode_targets(labels, first, classes)
        out = np.zeros(n_rows, targets.dtype)
        out[rows] = targets
        return out

    def _learning_rows(self) -> tuple[Table, Targets]:
        """Rows that are there, and their targets."""
        stored, rows = self._stored, np.flatnonzero(self._stored.alive)
        table = stored.table if stored.alive.all() else take_rows(stored.table, rows)
        return table, Targets(self._targets, self._weight).take(rows)

    def partial_fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, ids: Any = None
    ) -> Self:
        """Add rows; what was chosen in ``fit``, calibration and how numbers are cut are kept.

        With fewer than ten rows nothing could be chosen yet; it is chosen once there are ten.
        ``forget([])`` learns the calibration and the rest anew.
        """
        if not hasattr(self, "_stored"):
            return self._fit(X, y, sample_weight, ids)
        table = self._read(X)
        weight = checked_weight(sample_weight, table.n_rows)
        targets = self._read_targets(y, weight, table.n_rows, False)
        stored = self._stored.append(table, row_ids(X, ids, self._stored.table.schema))
        was_chosen = self._learning_rows()[1].n >= MIN_ROWS_TO_CHOOSE
        if weight is not None or self._weight is not None:
            pairs = (self._weight, self._targets), (weight, targets)
            self._weight = np.concatenate([np.ones(len(t)) if w is None else w for w, t in pairs])
        self._targets = np.concatenate([self._targets, targets])
        self._stored = stored.counting(self._weight)
        if was_chosen:
            if not isinstance(self.embedder_, BoostedWeave):  # its tables stay as they are
                self.embedder_.partial_fit(table, targets, weight)
        else:
            self._choose(*self._learning_rows())
        self._cache = None
        return self

    def forget(self, ids: Any) -> Self:
        """Take rows away by their ids, as if they had never been there.

        What is learned from rows is learned anew from those that are left: counts, couplings,
        weights, how numbers are cut, calibration. What was chosen in ``fit`` stays: the kinds and
        names of the columns, the classes, ``n_neighbors_``, the variant of the space, ``local_``,
        and of numbers ``linear_`` and ``factors_``. So the model is the one that ``fit`` makes of
        the rows that are left, if it makes the same choices. ``forget([])`` does this for rows
        that ``partial_fit`` added.
        """
        check_is_fitted(self, "_stored")
        self._stored = self._stored.without(ids)
        table, targets = self._learning_rows()
        distinct = np.unique(targets.values)
        if len(distinct) < 2:
            raise ValueError(
                f"expected rows of two classes or more to remain (for a numeric target, of two "
                f"numbers), got rows of {list(map(self._as_python, distinct))}; fit a new model to "
                "the remaining rows"
            )
        member = self._member()
        self._learn_space(table, targets)
        targets = self._learn_additive(table, targets, self.additive_ is not None)
        if self._is_validated(targets.n):
            folds, targets = self._cv_folds(table, targets, [member])
            self._calibrate(folds, targets, member)
        else:
            self._skip_validation()
        self._take_member(member)
        return self._finish()

    # -- choosing --------------------------------------------------------------------------

    def _choose(self, table: Table, targets: Targets) -> None:
        """Choose the member of the family and the numbers of neighbours."""
        self._learn_space(table, targets)
        many = isinstance(self.embedder, str) and targets.n >= MIN_ADDITIVE_ROWS
        targets = self._learn_additive(table, targets, many)
        family = list(product(members.POWERS, members.DISCRIMINANTS))
        if not isinstance(self.embedder, str):
            family = [(float(self.embedder.weight_power), float(self.embedder.discriminant))]
        n, ks = targets.n, self._candidate_ks(targets.n)
        self.validation_: list[dict[str, Any]] = []
        if self._is_validated(n):
            by_counts = self._cv_folds(table, targets, family)
            scores = self._scores(*by_counts, ks)
            if self.additive_ is not None:
                boosted = self._cv_folds(table, targets, [members.BOOSTED])
                scores |= self._scores(*boosted, ks)
            best, ks, self.validation_ = members.best_member(scores)
            member = best[0], best[1]
            folds = boosted if member == members.BOOSTED else by_counts
            self._finish_selection(*folds, best, ks)
        else:
            self._skip_validation()
            member = family[0] if len(family) == 1 else (1.0, 0.3)
            few = {min(k, n) for k in ks if k <= 5} or {min(*ks, n)}
            self.n_neighbors_ = tuple(sorted(few))
        self._take_member(member)

    def _learn_space(self, table: Table, targets: Targets) -> None:
        """Learn the space that all variants share."""
        model = SupervisedWeave() if isinstance(self.embedder, str) else clone(self.embedder)
        model.set_params(schema=table.schema)
        target = self._target(targets, model.n_bins)
        self.embedder_ = model.fit_target(table, targets.values, target, targets.weight)

    def _learn_additive(self, table: Table, targets: Targets, many: bool) -> Targets:
        """Learn the additive model if rows are many, and add to targets what it says of rows."""
        self.additive_, self.additive_weight_ = None, 0.0
        if not many:
            return targets
        model = BoostedWeave(schema=table.schema)
        model.fit_target(table, targets.values, self.embedder_.target_, targets.weight)
        scores = model.held_out_scores()
        self.additive_ = model
        return targets._replace(scores=scores)

    def _member(self) -> Member:
        """Which member was chosen."""
        model = self.embedder_
        if isinstance(model, BoostedWeave):
            return members.BOOSTED
        return float(model.weight_power), float(model.discriminant)

    def _take_member(self, member: Member) -> None:
        if member == members.BOOSTED and self.additive_ is not None:
            self.embedder_ = self.additive_
        else:
            self.embedder_ = members.member_of(self.embedder_, *member)

    def _cv_folds(
        self, table: Table, targets: Targets, family: list[Member]
    ) -> tuple[list[CVFold], Targets]:
        """Folds of the rows by which members are compared, and the rows' targets."""
        n = table.n_rows
        random = np.random.default_rng(seed_of(self.random_state))
        rows = random.permutation(n)[: members.REFERENCE_ROWS]
        if n <= members.REFERENCE_ROWS:  # in whichever order they came
            keys = targets.values, distinct_rows(canonical_codes(table))[1]
            rows = np.lexsort(keys if targets.weight is None else (targets.weight, *keys))[rows]
        ks, targets = self._candidate_ks(targets.n), targets.take(rows)
        n_near = members.n_reranked(ks) if len(self._local_strengths) > 1 else max(ks) + 1
        sample, n_held_out = take_rows(table, rows), int(self.n_validation)
        if family == [members.BOOSTED] and self.additive_ is not None:
            spaces = self.additive_.left_out(rows)
            return members.boosted_folds(spaces, sample, targets, n_held_out, n_near), targets
        folds = members.cv_folds(
            self.embedder_, sample, targets, family, n_held_out, n_near, self._line
        )
        return folds, targets

    def _line(self, pairs: np.ndarray | None = None) -> Callable[[Table], np.ndarray] | None:
        """Linear prediction that counts with classes teach; None of classes.

        Without counts, the one that answers hold besides votes.
        """
        return None

    @property
    def _is_chosen(self) -> bool:
        """Whether the space or the number of neighbours is to be chosen, and not given."""
        return isinstance(self.embedder, str) or isinstance(self.n_neighbors, str)

    def _is_validated(self, n: int) -> bool:
        """Whether rows are held out to choose or calibrate something."""
        return n >= MIN_ROWS_TO_CHOOSE and self._is_chosen

    def _candidate_ks(self, n: int) -> tuple[int, ...]:
        """Numbers of neighbours that are tried."""
        return (
            members.candidate_ks(n)
            if isinstance(self.n_neighbors, str)
            else (int(self.n_neighbors),)
        )

    # -- searching -------------------------------------------------------------------------

    def _read(self, X: Any) -> Table:
        check_is_fitted(self, "_stored")
        return read_queries(self.embedder_, X)

    @exclusive
    def _search_state(self) -> SearchState:
        """Rows that are there, as they are looked for and vote."""
        if self._cache is None:
            table, targets = self._learning_rows()
            embedder = self.embedder_.learn()
            view = View(table, embedder.space_, embedder.unknown)
            self._cache = SearchState(
                np.flatnonzero(self._stored.alive),
                view,
                TrainingTargets(targets, view.copies.node_of, len(view.nodes)),
                ColumnCoordinates.of_view(view) if self.local_ else None,
                self._line(),
            )
        return self._cache

    def _neighbors(self, table: Table) -> Iterator[tuple[Neighbors, np.ndarray]]:
        """Yield the nodes near some of the rows asked about, and the weights of columns."""
        _, view, targets, columns, _ = self._search_state()
        queries, ks = view.queries(table), self.n_neighbors_
        sizes = targets.sizes if columns is None else np.ones(len(view.nodes), np.int64)
        k = max(ks) if columns is None else members.n_reranked(ks)
        on_device = gpu.device() is not None
        n_rows = DEVICE_BLOCK_ROWS if on_device else QUERY_BLOCK_ROWS

        def searched() -> Iterator[tuple[Neighbors, Queries]]:
            for block in slices(table.n_rows, 1, n_rows):
                rows = np.arange(table.n_rows)[block]
                part = queries.take(rows)
                yield Neighbors(rows, *nearest_and_ties(view.nodes, sizes, part, k)), part

        # While a device looks for the neighbours of a block, the cores weigh those before.
        for neighbors, part in prefetched(searched()) if on_device else searched():
            if columns is None:
                yield neighbors, np.ones((len(part), len(view.values) + len(view.lines)))
            else:
                yield columns.reranked(neighbors, targets, part, self.local_)

    def _votes(self, table: Table) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Yield some of the rows asked about, the weights of the nodes that vote, and the nodes."""
        targets = self._search_state().targets
        for neighbors, _ in self._neighbors(table):
            weights = targets.weights(neighbors, self.n_neighbors_, self.sharpness)
            yield neighbors.query_rows, weights, neighbors.nodes

    @by_parts(neighbor_types)
    def kneighbors(self, X: Any) -> KNeighbors:
        """Distances, ids and positions of the training rows nearest to each, nearest first.

        They are as many as the largest number of neighbours; where the last distance is that of
        more rows, these vote, too. Distances are local where ``local_`` is not 0.
        """
        table = self._read(X)
        rows, view, *_ = self._search_state()
        k = min(max(self.n_neighbors_), len(rows))
        squared, positions = np.empty((table.n_rows, k)), np.empty((table.n_rows, k), np.int64)
        for neighbors, _ in self._neighbors(table):
            heads = neighbors.squared, view.copies.heads[neighbors.nodes]
            block = neighbors.query_rows
            squared[block], positions[block] = view.copies.expand(heads, k, None)
        return KNeighbors(np.sqrt(squared), self._stored.ids[rows[positions]], positions)

    def explain(self, row: Any, n_neighbors: int = 5) -> list[dict[str, Any]]:
        """Say which rows an answer comes from, and which columns made them near.

        Parameters
        ----------
        row : dict, sequence or one-row frame
            The row asked about.
        n_neighbors : int, default=5
            How many of the rows are shown, those of most weight first.

        Returns
        -------
        list of dict
            ``id`` and ``position`` of the training row, ``target``, ``weight`` (its share in the
            votes), ``distance``, and ``shares``: what each column adds to the squared distance,
            its weight around the row included.
        """
        check_is_fitted(self, "_stored")
        is_whole = isinstance(n_neighbors, Integral) and not isinstance(n_neighbors, bool)
        if not is_whole or n_neighbors < 1:
            value = repr(n_neighbors) if np.isscalar(n_neighbors) else type(n_neighbors).__name__
            raise TypeError(
                f"expected n_neighbors to be a whole number >= 1, got {value}; the distance of two "
                "rows is explained by embedder_.explain(a, b)"
            )
        table = read_row(self.embedder_, row)
        rows, view, *_ = self._search_state()
        ((neighbors, (column_weights,)),) = self._neighbors(table)
        positions, weights = self._heaviest_rows(neighbors, n_neighbors)
        others = take_rows(self._stored.table, rows[positions])
        repeated = take_rows(table, np.zeros(len(positions), np.int64))
        shares = added(
            {name: weight * share for name, share in part.shares(repeated, others).items()}
            for part, weight in zip((*view.values, *view.lines), column_weights, strict=True)
        )
        return [
            {
                "id": self._stored.id_of(other),
                "position": int(positions[i]),
                "target": self._as_python(self._targets[other]),
                "weight": float(weights[i]),
                "distance": float(np.sqrt(max(sum(share[i] for share in shares.values()), 0.0))),
                "shares": {name: float(share[i]) for name, share in shares.items()},
            }
            for i, other in enumerate(rows[positions])
        ]

    def _heaviest_rows(self, neighbors: Neighbors, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
        """Training rows of most weight for one row, and their shares in the votes."""
        _, view, targets, *_ = self._search_state()
        (weights,) = targets.weights(neighbors, self.n_neighbors_, self.sharpness)
        nodes, row_weight = neighbors.nodes[0], targets.targets.weight
        weights = weights / targets.sizes[nodes]
        order = np.argsort(-weights, kind="stable")[: np.count_nonzero(weights)]
        if row_weight is None:  # each node has rows
            order = order[:n_rows]
        rows, sizes = view.copies.rows_of(nodes[order], None)
        weights = np.repeat(weights[order], sizes)
        if row_weight is not None:
            weights = weights * row_weight[rows]
        heaviest = np.argsort(-weights, kind="stable")[:n_rows]
        return rows[heaviest], weights[heaviest]


@storable
class WeaveClassifier(ClassifierMixin, _NeighborPredictor):
    """Classify rows of any table by their nearest rows, and explain each answer by them.

    Numbers need no scaling and missing values no filling. :meth:`explain` returns the neighbours
    behind a prediction, with what each column adds to their distances.

    Parameters
    ----------
    n_neighbors : "auto" or int, default="auto"
        Number of neighbours; "auto" tries 3 to 320 on training rows and averages the votes of the
        three best.
    embedder : "validated" or SupervisedWeave, default="validated"
        The space. "validated" chooses among six variants of :class:`~tabweave.SupervisedWeave`: two
        powers of the column weights, three shares of the discriminant; and from 5,000 rows on
        :class:`~tabweave.BoostedWeave`.
    sharpness : float, default=4.0
        A neighbour at squared distance d votes with ``exp(-sharpness · d / d_k)``, where d_k is
        that of the k-th neighbour; 0 gives all the same vote. Rows that tie at d_k share the
        remaining votes, so the order of rows does not matter.
    objective : {"f1", "accuracy", "log_loss"}, default="f1"
        What variants and numbers of neighbours are chosen by, on held-out rows: the mean F of the
        classes, in which rare ones count as much as frequent ones; the share of rows whose class is
        guessed; or the log-loss of the calibrated probabilities.
    n_validation : int, default=1000
        Largest number of held-out rows by which variants are compared, each with at most 10,000
        other rows: for larger tables the cost of choosing does not grow.
    schema : Schema or mapping of column to kind, optional
        The kinds of the columns that it names; the others are inferred from type, name and values.
    random_state : int, RandomState, Generator or None, default=0
        Seed of the choice of held-out rows.

    Attributes
    ----------
    classes_ : ndarray
        The classes, sorted.
    embedder_ : SupervisedWeave or BoostedWeave
        The space that was chosen; that of ``additive_`` is among the variants.
    additive_ : BoostedWeave or None
        From 5,000 rows on, an additive model of columns and joint columns, unless an embedder is
        given.
    additive_weight_ : float
        How much its probabilities count beside those of the votes: of 0, 0.05, ..., 1 the one with
        the least log-loss on held-out rows.
    n_neighbors_ : tuple of int
        The numbers of neighbours that vote.
    local_ : float
        How strongly columns are weighted anew around each query, λ below: 0 or 10.
    validation_ : list of dict
        The score of each variant on held-out rows, best first: macro F, accuracy or minus the
        log-loss, as ``objective`` says; "local" of the best one has that of both λ.
    calibration_ : tuple of float
        Floor and exponent by which votes become probabilities.

    Notes
    -----
    When variants are compared, the classes of held-out rows are first taken out of the counts:
    what a value says about the class is learned from the other rows. A class with the share v of
    the votes has a probability proportional to ``(v + floor)^exponent``, where floor and exponent
    minimise the log-loss of the held-out rows; the class with most votes stays the most probable.
    Where there is an additive model, probabilities are ``(1 - w) votes + w additive``, with w in
    ``additive_weight_``, each row held out having been scored by a model that has not seen it, and
    the most probable class is predicted. In ``validation_`` a ``weight_power`` of 0 is its space.
    Rows that are added later do not change the additive model; ``forget([])`` learns it anew.

    A column may matter in one part of a table and not in another. If it improves the held-out rows,
    distances are made *local*, as by Hastie and Tibshirani (1996): around a query x the squared
    distance of column a is multiplied by ``1 + λ η²_a(x)``, divided by its mean over the columns.
    η²_a is the share of the column's variance among the 50 nearest rows (with all that tie with the
    last, weights ``exp(-2 d / d_50)``) that lies between classes, minus what chance gives. The
    nearest distinct rows, at least 100 and up to 100 more than vote, are ranked again by these
    distances, which also weight their votes. Distances that are shown are then those seen from the
    query; the contributions of the columns still sum to their squares. The weights come from the
    rows stored at the time of the query. The discriminant is treated as one more column.

    Examples
    --------
    >>> from tabweave import WeaveClassifier
    >>> jobs, ages = ["cook", "clerk", "judge", "cook"], [20.0, 30.0, 40.0, 50.0]
    >>> model = WeaveClassifier().fit({"job": jobs * 10, "age": ages * 10},
    ...                               ["no", "yes", "yes", "no"] * 10)
    >>> model.predict({"job": ["cook", "judge"], "age": [21.0, 35.0]})
    array(['no', 'yes'], dtype='<U3')
    >>> model.explain({"job": "cook", "age": 21.0}, n_neighbors=1)[0]["target"]
    'no'
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **_NeighborPredictor._parameter_constraints,
        "objective": [StrOptions({"f1", "accuracy", "log_loss"})],
    }

    def __init__(
        self,
        n_neighbors: Any = "auto",
        *,
        embedder: Any = "validated",
        sharpness: float = 4.0,
        objective: str = "f1",
        n_validation: int = 1000,
        schema: Any = None,
        random_state: Any = 0,
    ) -> None:
        super().__init__(
            n_neighbors,
            embedder=embedder,
            sharpness=sharpness,
            n_validation=n_validation,
            schema=schema,
            random_state=random_state,
        )
        self.objective = objective

    classes_: np.ndarray
    _local_strengths: ClassVar[tuple[float, ...]] = LOCAL_STRENGTHS

    def partial_fit(  # type: ignore[override]  # classes stand where scikit-learn has them
        self,
        X: Any,
        y: Any = None,
        classes: Any = None,
        sample_weight: Any = None,
        *,
        ids: Any = None,
    ) -> Self:
        """Add rows; what was chosen in ``fit``, calibration and how numbers are cut are kept.

        With fewer than ten rows nothing could be chosen yet; it is chosen once there are ten.
        ``forget([])`` learns the calibration and the rest anew.

        Parameters
        ----------
        X, y, sample_weight, ids
            As in :meth:`fit`.
        classes : array-like, optional
            All classes, if the first rows do not have them all; for the first call.
        """
        announced = None if classes is None else np.unique(column_or_1d(classes))
        if not hasattr(self, "_stored"):
            return self._fit(X, y, sample_weight, ids, announced)
        return super().partial_fit(X, y, sample_weight, ids=ids)

    def _encode_targets(self, labels: np.ndarray, first: bool, classes: Any) -> np.ndarray:
        """Number of each label's class."""
        check_class_labels(labels)
        if classes is None:
            classes = np.unique(labels) if first else self.classes_
        check_classes(classes)
        unknown = np.setdiff1d(labels, classes)
        if len(unknown):
            raise ValueError(
                f"expected classes of fit, {classes.tolist()}, got {unknown.tolist()[0]!r}"
            )
        self.classes_ = classes
        return np.searchsorted(classes, labels)

    def _target(self, targets: Targets, n_bins: int) -> Target:
        return Target()

    def _as_python(self, target: Any) -> Any:
        return self.classes_[[target]].tolist()[0]

    def _is_validated(self, n: int) -> bool:
        return n >= MIN_ROWS_TO_CHOOSE  # calibration is always learned

    def _choose(self, table: Table, targets: Targets) -> None:
        self._check_memory(table)
        super()._choose(table, targets)

    def _check_memory(self, table: Table) -> None:
        """Raise MemoryError, before anything is learned, for classes that would not fit."""
        bins = SupervisedWeave().n_bins if isinstance(self.embedder, str) else self.embedder.n_bins
        values = np.array([len(data.labels) if hasattr(data, "labels") else bins + 1
                           for data in table.columns])  # fmt: skip
        needed, free = (
            members.learning_bytes(values, len(self.classes_), table.n_rows),
            available_memory(),
        )
        if free is None or needed <= free:
            return
        name, size = table.schema.names[int(values.argmax())], int(values.max())
        raise MemoryError(
            f"learning {len(self.classes_):,} classes from {values.sum():,} values would take "
            f"about {needed / 1e9:,.1f} GB, more than the {free / 1e9:,.1f} GB that are free; "
            f"join rare classes, or leave out columns of many values (column {name!r} has {size:,})"
        )

    def _fold_votes(self, neighbors: Neighbors, fold: CVFold, ks: Sequence[int]) -> dict[int, Any]:
        ballots = list(fold.targets.ballots(neighbors, ks, self.sharpness))
        return dict(zip(ks, fold.targets.class_votes(ballots, len(self.classes_)), strict=True))

    def _scores(
        self, folds: list[CVFold], targets: Targets, ks: Sequence[int]
    ) -> dict[tuple[float, ...], dict[int, float]]:
        """What each member reaches of the objective, by number of neighbours."""

        def of_member(member: Member) -> dict[int, float]:
            answers = members.fold_answers(folds, member, ks, 0.0, self._fold_votes)
            return {k: self._score(targets.take(rows), votes)
                    for k, (rows, votes) in answers.items()}  # fmt: skip

        family = list(folds[0].neighbors)
        return dict(zip(family, in_threads(of_member, family), strict=True))

    def _score(self, targets: Targets, votes: Any) -> float:
        labels, weight = targets.values, targets.weight
        if self.objective == "log_loss":
            return -targets.mean(log_losses(votes, labels, *calibrated(votes, targets)))
        guessed = winners(votes)
        if self.objective == "accuracy":
            return targets.mean(guessed == labels)
        return macro_f(labels, guessed, len(self.classes_), weight)

    def _finish_selection(
        self, folds: list[CVFold], targets: Targets, member: Member, ks: tuple[int, ...]
    ) -> None:
        """Choose whether columns are weighted around rows, and what makes votes probabilities."""
        self.n_neighbors_ = ks

        def of_strength(strength: float) -> tuple[dict[int, Any], float]:
            answers = members.fold_answers(folds, member, ks, strength, self._fold_votes)
            scores = [self._score(targets.take(rows), votes) for rows, votes in answers.values()]
            return answers, float(np.mean(scores))

        strengths = self._local_strengths if self._is_chosen else (0.0,)
        found = dict(zip(strengths, in_threads(of_strength, strengths), strict=True))
        scores = {strength: score for strength, (_, score) in found.items()}
        self.local_ = max(scores, key=lambda strength: (scores[strength], -strength))
        self.validation_[0]["local"] = scores
        self._calibrate_by(found[self.local_][0], targets)

    def _calibrate(self, folds: list[CVFold], targets: Targets, member: Member) -> None:
        """Learn what makes votes probabilities."""
        ks, strength = self.n_neighbors_, self.local_
        self._calibrate_by(
            members.fold_answers(folds, member, ks, strength, self._fold_votes), targets
        )

    def _calibrate_by(self, answers: dict[int, tuple[np.ndarray, Any]], targets: Targets) -> None:
        all_rows, votes = zip(*answers.values(), strict=True)
        mean, held_out = sum(votes) / len(votes), targets.take(all_rows[0])
        self.calibration_ = calibrated(mean, held_out)
        if self.additive_ is not None and held_out.scores is not None:
            voted = probabilities(mean.toarray(), *self.calibration_)
            scored = self.additive_.probabilities(held_out.scores)
            self.additive_weight_ = additive_weight(voted, scored, held_out.values, held_out.weight)

    def _skip_validation(self) -> None:
        self.calibration_, self.local_ = (FLOORS[0], 1.0), 0.0

    @by_parts(class_types)
    def predict(self, X: Any) -> np.ndarray:
        """Class of each row: the most probable one, the first of equally probable."""
        table = self._read(X)
        if self.additive_weight_:
            return self.classes_[self._probabilities(table).argmax(axis=1)]
        out = np.zeros(table.n_rows, np.int64)
        for rows, votes in self._class_votes(table):
            out[rows] = winners(votes)
        return self.classes_[out]

    @by_parts(probability_types)
    def predict_proba(self, X: Any) -> np.ndarray:
        """Probability of each class, calibrated on training rows."""
        return self._probabilities(self._read(X))

    def _probabilities(self, table: Table) -> np.ndarray:
        out, share = np.zeros((table.n_rows, len(self.classes_))), 1 - self.additive_weight_
        if self.additive_ is not None and share < 1:
            scores = self.additive_.score_of(table)
            out += self.additive_weight_ * self.additive_.probabilities(scores)
        if share > 0:
            for rows, votes in self._class_votes(table):
                out[rows] += share * probabilities(votes.toarray(), *self.calibration_)
        return out

    def _class_votes(self, table: Table) -> Iterator[tuple[np.ndarray, Any]]:
        """Yield some of the rows asked about, and each class's share of their votes, sparse."""
        targets, n_classes = self._search_state().targets, len(self.classes_)
        for rows, weights, nodes in self._votes(table):
            width = int(np.count_nonzero(weights, axis=1).max(initial=1))  # farther ones have none
            weights, nodes = weights[:, :width], nodes[:, :width]
            parts = slices(len(rows), 1, 512)
            ballots = [[(weights[part], nodes[part])] for part in parts]
            votes = in_threads(lambda ballot: targets.class_votes(ballot, n_classes)[0], ballots)
            yield from zip((rows[part] for part in parts), votes, strict=True)


@storable
class WeaveRegressor(RegressorMixin, _NeighborPredictor):
    """Predict a number for rows of any table from their nearest rows, and explain it by them.

    Parameters
    ----------
    n_neighbors, embedder, sharpness, n_validation, schema, random_state
        As in :class:`WeaveClassifier`.

    Attributes
    ----------
    embedder_, additive_
        As in :class:`WeaveClassifier`.
    n_neighbors_ : tuple of int
        The numbers of neighbours whose means are averaged.
    linear_ : float
        The share ρ of the linear prediction, or of that of ``additive_`` in its place.
    additive_weight_ : float
        The same where there is an additive model; else 0.
    reliability_ : float
        How much neighbours are trusted, b below: 1 fully, 0 not at all.
    factors_ : dict of str or None to float
        Factors of the column weights and, under None, of the discriminant; empty if an
        embedder was given. ``embedder_.weights_`` already contains them.
    validation_ : list of dict
        R² of each variant on held-out rows, best first; "tuned" of the best one is that with the
        factors.

    Notes
    -----
    The prediction is ``ρ l(x) + ȳ + b Σ w_i (y_i - ρ l(x_i) - ȳ)``: the weighted mean of the
    neighbours' targets, corrected by how far the row lies from them along a ridge regression l of
    the target on the values of all columns (centred), and shrunk towards the mean ȳ of all rows. ρ
    is 0, ½ or 1, whichever is best on held-out rows, and b, between 0 and 1, the regression of
    their targets on what their neighbours predict.

    Column weights are computed one column at a time: five columns with the same information all
    count fully, and two that matter only together do not count. So the weights of the best variant
    are multiplied by factors that minimise the error of the held-out rows when predicted by soft
    nearest neighbours (Goldberger et al. 2004; see ``members.py``). The factors are shrunk
    towards 1, so that a few rows change little. Then the numbers of neighbours, ρ and b are chosen
    again. At most 1,000 rows and the 160 nearest of each (fewer if there are more than 25 columns)
    are used for this. The factors stay as rows are added, and distances remain sums over columns.

    Examples
    --------
    >>> from tabweave import WeaveRegressor
    >>> rows = {"job": ["cook", "clerk", "judge"] * 20, "age": [20.5 + i for i in range(60)]}
    >>> pay = [10.5 + (i % 3) * 7 + i / 4 for i in range(60)]
    >>> model = WeaveRegressor().fit(rows, pay)
    >>> round(model.score(rows, pay), 1)
    1.0
    """

    linear_: float
    factors_: dict[str | None, float]
    reliability_: float

    def _encode_targets(self, labels: np.ndarray, first: bool, classes: None) -> np.ndarray:
        """Labels as numbers whose squared errors are neither infinite nor zero."""
        numbers = target_numbers(labels, "WeaveClassifier")
        if first and len(numbers) and (numbers == numbers[0]).all():
            raise ValueError(
                f"expected y to hold different numbers, got only {numbers[0]:g} "
                f"(n_samples = {len(numbers)})"
            )
        size, largest = np.abs(numbers).max(initial=0.0), LARGEST_COORDINATE
        if size > largest or (first and len(numbers) and np.ptp(numbers) < 1 / largest):
            raise ValueError(
                f"expected y between {-largest:g} and {largest:g}, of which some differ by more "
                f"than {1 / largest:g}, got {size:g}; give it in another unit"
            )
        return numbers

    def _target(self, targets: Targets, n_bins: int) -> Target:
        return Target.of_numbers(targets.values, int(n_bins), targets.weight)

    def _as_python(self, target: Any) -> float:
        return float(target)

    # -- the linear prediction -------------------------------------------------------------

    def _line(self, pairs: np.ndarray | None = None) -> Callable[[Table], np.ndarray] | None:
        model = self.embedder_
        if pairs is None:
            if not self.linear_:
                return None
            if (additive := self.additive_) is not None:
                return lambda table: additive.score_of(table)[:, 0] - additive.intercept_[0]
            pairs = model.target_free().pairs
        assert model.counts_.classes is not None
        bin_means = model.target_.centres(model.counts_.classes)[:, None]
        block = model.regression(pairs, bin_means)
        if block is None:
            return lambda table: np.zeros(table.n_rows)
        return lambda table: block.coordinates(table)[:, 0]

    def _learn_additive(self, table: Table, targets: Targets, many: bool) -> Targets:
        targets = super()._learn_additive(table, targets, many)
        if self.additive_ is None or targets.scores is None:
            return targets
        return targets._replace(scores=targets.scores[:, 0] - self.additive_.intercept_[0])

    # -- choosing --------------------------------------------------------------------------

    def _choose(self, table: Table, targets: Targets) -> None:
        self.factors_ = {}
        super()._choose(table, targets)

    def _take_member(self, member: Member) -> None:
        super()._take_member(member)
        if self.factors_:
            self.embedder_.tuned_by(self.factors_).learn()

    def _cv_folds(
        self, table: Table, targets: Targets, family: list[Member]
    ) -> tuple[list[CVFold], Targets]:
        folds, targets = super()._cv_folds(table, targets, family)
        if self.factors_:  # learned before, for the one member there is
            factors = np.array(list(self.factors_.values()))
            folds = [fold.tuned(family[0], factors) for fold in folds]
        return folds, targets

    def _fold_votes(
        self, neighbors: Neighbors, fold: CVFold, ks: Sequence[int]
    ) -> dict[tuple[int, float], np.ndarray]:
        assert fold.lines is not None
        others_line, rows_line = fold.lines
        numbers = fold.targets.targets.values
        means = {
            share: fold.targets.means(numbers - share * others_line) for share in members.LINEAR
        }
        ballots = fold.targets.ballots(neighbors, ks, self.sharpness)
        return {
            (k, share): (weights * residuals[nodes]).sum(axis=1) + share * rows_line
            for k, (weights, nodes) in zip(ks, ballots, strict=True)
            for share, residuals in means.items()
        }

    def _scores(
        self, folds: list[CVFold], targets: Targets, ks: Sequence[int]
    ) -> dict[tuple[float, ...], dict[int, float]]:
        """R² of each member and share of the linear prediction, by number of neighbours."""
        variance = max(targets.mean((targets.values - targets.mean()) ** 2), 1e-300)
        scores: dict[tuple[float, ...], dict[int, float]] = {}
        family = list(folds[0].neighbors)
        all_answers = in_threads(
            lambda member: members.fold_answers(folds, member, ks, 0.0, self._fold_votes), family
        )
        for member, answers in zip(family, all_answers, strict=True):
            for (k, share), (rows, guess) in answers.items():
                held_out = targets.take(rows)
                error = held_out.mean((held_out.values - guess) ** 2)
                scores.setdefault((*member, share), {})[k] = 1 - error / variance
        return scores

    def _finish_selection(
        self,
        folds: list[CVFold],
        targets: Targets,
        best: tuple[float, float, float],
        ks: tuple[int, ...],
    ) -> None:
        """Learn what columns count, and choose k and both shares of the prediction for that."""
        member = best[0], best[1]
        if isinstance(self.embedder, str) and member != members.BOOSTED:
            factors = members.column_factors(folds, best, ks, targets, self.sharpness)
            names = self.embedder_.part_names()
            self.factors_ = dict(zip(names, factors.tolist(), strict=False))
            folds = [fold.tuned(member, factors) for fold in folds]
            scores = self._scores(folds, targets, self._candidate_ks(targets.n))
            best, ks, (tuned, *_) = members.best_member(scores)
            self.validation_[0]["tuned"] = tuned["score"]
        self.linear_, self.n_neighbors_ = float(best[2]), ks
        self.additive_weight_ = self.linear_ if self.additive_ is not None else 0.0
        self._calibrate(folds, targets, member)

    def _calibrate(self, folds: list[CVFold], targets: Targets, member: Member) -> None:
        """Learn how much neighbours are trusted."""
        ks, share = self.n_neighbors_, self.linear_
        answers = members.fold_answers(folds, member, ks, 0.0, self._fold_votes)
        rows = answers[ks[0], share][0]
        line = share * np.concatenate([fold.lines[1] for fold in folds if fold.lines is not None])
        guess = np.mean([answers[k, share][1] for k in ks], axis=0) - line
        centre, (values, weight, _) = targets.mean(), targets.take(rows)
        self.reliability_ = members.reliability(guess - centre, values - line - centre, weight)

    def _skip_validation(self) -> None:
        self.linear_, self.reliability_ = 0.0, 1.0

    # -- answers ---------------------------------------------------------------------------

    def explain(self, row: Any, n_neighbors: int = 5) -> list[dict[str, Any]]:
        """Say which rows an answer comes from, and which columns made them near.

        As in :meth:`WeaveClassifier.explain`, and of each row also ``prediction``, what the answer
        would be by this row alone: the answer is the mean of these over all rows that vote, by
        weight.
        """
        entries = super().explain(row, n_neighbors)
        all_rows, _, targets, _, line = self._search_state()
        rows = all_rows[[entry["position"] for entry in entries]]
        start, residuals = (1 - self.reliability_) * targets.targets.mean(), self._targets[rows]
        if line is not None:
            start = start + self.linear_ * line(read_row(self.embedder_, row))[0]
            residuals = residuals - self.linear_ * line(take_rows(self._stored.table, rows))
        predictions = start + self.reliability_ * residuals
        return [
            {**entry, "prediction": float(prediction)}
            for entry, prediction in zip(entries, predictions, strict=True)
        ]

    @by_parts({"prediction": "float64"})
    def predict(self, X: Any) -> np.ndarray:
        """Predicted number of each row."""
        table = self._read(X)
        _, view, targets, _, line = self._search_state()
        means = targets.means(targets.targets.values)
        out = np.full(table.n_rows, (1 - self.reliability_) * targets.targets.mean())
        if line is not None:
            out += self.linear_ * line(table)
        for rows, weights, nodes in self._votes(table):
            used, index = np.unique(nodes, return_inverse=True)
            residuals = means[used]
            if line is not None:
                heads = take_rows(view.table, view.copies.heads[used])
                residuals = residuals - self.linear_ * line(heads)
            votes = (weights * residuals[index.reshape(nodes.shape)]).sum(axis=1)
            out[rows] += self.reliability_ * votes
        return out
