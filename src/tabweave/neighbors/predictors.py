"""WeaveClassifier and WeaveRegressor: predictions from the nearest rows.

A row gets the weighted votes of its nearest training rows in the space of
:class:`~tabweave.SupervisedWeave`. Which member of that family, how many neighbours, and whether
columns are weighted anew around each query is decided on held-out training rows. Every prediction
is a mean over rows by their weights, and every squared distance a sum over columns. Rows can be
added, and forgotten as if they had never been there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from scipy import sparse
from scipy.optimize import minimize
from sklearn.base import ClassifierMixin, RegressorMixin, clone
from sklearn.utils.validation import check_is_fitted, column_or_1d

from tabweave._compat import Interval, StrOptions, blas_threads, one_blas_thread, seed_of
from tabweave.base import Estimator, TabularInput
from tabweave.columns.column import Schema
from tabweave.columns.identifiers import warn_of_predictive
from tabweave.columns.table import (
    Table,
    canonical_codes,
    distinct_rows,
    remember_names,
    require_rows,
    take_rows,
)
from tabweave.columns.targets import check_class_labels, target_numbers
from tabweave.columns.vocabulary import slices
from tabweave.counts.counting import available_memory
from tabweave.counts.counts import checked_weight
from tabweave.embed.supervised import FOLDS, SupervisedWeave, Target
from tabweave.io.register import storable
from tabweave.io.store import CacheNotSaved
from tabweave.neighbors.knn import check_classes, check_length, checked_target
from tabweave.neighbors.stored import Stored, row_ids, space_of, without_column
from tabweave.space.block import Block, Blocks, Summed, added, in_threads, total_gaps
from tabweave.space.scan import Found, Nodes, Queries, nearest_nodes
from tabweave.space.space import View, gap_axes
from tabweave.updates import exclusive

NEIGHBORS = (3, 5, 9, 15, 25, 40, 80, 160, 320)
POWERS = (0.5, 1.0)  # of the weights of columns
DISCRIMINANTS = (0.0, 0.3, 1.0)
LINEAR = (0.0, 0.5, 1.0)  # share of the linear prediction, for numbers
LOCAL = (0.0, 10.0)  # how far columns are weighed anew around a row
_LARGEST = 1e150  # target: its squares, and those of its reciprocal, are floats
_AVERAGED = 3  # numbers of neighbours that vote together
_AROUND = 50  # rows by which columns are weighed around a row
_CANDIDATES = 100  # nodes at least that are ranked anew, and at most so many more than vote
_TAUGHT_BY = 160  # nodes near a row that teach the weights of columns,
_FEWEST = 20  # and how many they are at least where there are many columns,
_ENTRIES = 4_000_000  # so that no more distances by column than these are looked at
_DEVIATION = 0.35  # of the logarithms of what weights of columns are multiplied by
_ROUNDS = 30  # in which they are learned
_FEWEST_VOTERS = 15  # number of neighbours by whose distance votes fall then, at least
_REFERENCE = 10_000  # rows at most among which neighbours are looked for when members are compared
_FEW = 10  # rows below which nothing is compared
_TIED = 1e-9  # by how much squared distances differ that are equal but for rounding
_MORE = 4  # times as many nodes are asked for where those at the last distance were not all found
_MOST = 1024  # nodes that are asked for at most, unless more vote: the first ones at that distance
_HALF = np.uint64(32)  # bits of a key that hold a number
_BLOCK = 2048  # rows that are answered at a time
_RUN = 32  # rows whose columns are weighed at a time
_FLOORS = (0.001, 0.003, 0.01, 0.03, 0.1)
_EXPONENTS = (0.5, 0.6, 0.7, 0.85, 1.0, 1.2, 1.5, 2.0)


class Near(NamedTuple):
    """Rows that were asked about, the squared distances and numbers of the nodes near each."""

    asked: np.ndarray
    squared: np.ndarray
    nodes: np.ndarray


class Targets(NamedTuple):
    """The targets of rows, and how many rows each of them counts for; None: one each."""

    values: np.ndarray
    weight: np.ndarray | None = None

    def take(self, rows: np.ndarray) -> Targets:
        """Return those of some rows."""
        return Targets(self.values[rows], None if self.weight is None else self.weight[rows])

    def mean(self, numbers: np.ndarray | None = None) -> float:
        """Return the mean of the targets, or of other numbers of the rows."""
        numbers = self.values if numbers is None else numbers
        return float(
            np.mean(numbers) if self.weight is None else np.average(numbers, weights=self.weight)
        )

    @property
    def n(self) -> int:
        """How many rows they count for, of fractions the whole ones."""
        return len(self.values) if self.weight is None else int(self.weight.sum() + _TIED)


@dataclass(frozen=True, eq=False)
class Voters:
    """Rows that vote, gathered in nodes: rows that are equal have the same say.

    Attributes
    ----------
    node_of : ndarray
        The node of each row.
    targets : ndarray
        The target of each row: the number of its class, or a number.
    sizes : ndarray
        How many rows each node has, or counts for.
    weight : ndarray or None
        How many rows each row counts for.
    """

    node_of: np.ndarray
    targets: np.ndarray
    sizes: np.ndarray
    weight: np.ndarray | None = None

    @classmethod
    def of(
        cls,
        node_of: np.ndarray,
        targets: np.ndarray,
        n_nodes: int,
        weight: np.ndarray | None = None,
    ) -> Voters:
        """Count the rows of each node."""
        return cls(node_of, targets, np.bincount(node_of, weight, n_nodes), weight)

    @property
    def mean(self) -> float:
        """The mean target of all rows."""
        return Targets(self.targets, self.weight).mean()

    def voting(self, near: Near, ks: Sequence[int]) -> Iterator[Near]:
        """Yield the nodes that vote for each k: those that hold k rows, or are as far as the last.

        Lines end where no node of any line votes.
        """
        held = self.sizes[near.nodes].cumsum(axis=1)
        for k in ks:
            last = kth(near.squared, held, k)
            width = int((near.squared <= last[:, None] * (1 + _TIED)).sum(axis=1).max(initial=1))
            yield Near(near.asked, near.squared[:, :width], near.nodes[:, :width])

    def weights(self, near: Near, ks: Sequence[int], sharpness: float) -> np.ndarray:
        """Return the weight of each node near the rows asked about."""
        return vote_weights(near.squared, ks, sharpness, self.sizes[near.nodes])

    def means(self, targets: np.ndarray) -> np.ndarray:
        """Return the mean of numbers, one for each row, in each node."""
        counted = targets if self.weight is None else targets * self.weight
        return np.bincount(self.node_of, counted, len(self.sizes)) / self.sizes

    @cached_property
    def classes(self) -> Any:
        """The share of each class in each node."""
        each = (1 if self.weight is None else self.weight) / self.sizes[self.node_of]
        shape = len(self.sizes), int(self.targets.max()) + 1
        return sparse.csr_array((each, (self.node_of, self.targets)), shape)

    def shares(self, ballots: Sequence[Found], n_classes: int) -> list[Any]:
        """Return each class's share in votes, which are weights and the nodes they are of.

        Sparse: of thousands of classes few have votes.
        """
        widths = [np.full(len(nodes), nodes.shape[1]) for _, nodes in ballots]
        starts = np.concatenate([[0], np.cumsum(np.concatenate(widths))])
        weights, nodes = (
            np.concatenate([part.ravel() for part in parts]) for parts in zip(*ballots, strict=True)
        )
        shape = len(starts) - 1, len(self.sizes)
        votes = sparse.csr_array((weights, nodes, starts), shape) @ self.classes
        votes.resize((shape[0], n_classes))
        votes.sort_indices()
        ends = np.cumsum([len(nodes) for _, nodes in ballots])
        return [votes[begin:end] for begin, end in zip([0, *ends[:-1]], ends, strict=True)]


class Columns(NamedTuple):
    """Nodes as their columns see them, by which columns are weighed around a row.

    Attributes
    ----------
    codes : ndarray of shape (nodes, columns)
        The values of nodes in the columns that are looked up.
    offsets, points, starts : ndarray
        Where the values of each column begin, and the coordinates of all values, one after the
        other, and where those of each column begin.
    line : ndarray of shape (nodes, coordinates)
        What is not looked up.
    edges : ndarray
        Where the coordinates of each such column begin, and where the last ones end.
    widths : ndarray
        How many of these tell where a node is: those of missing cells come after them.
    """

    codes: np.ndarray
    offsets: np.ndarray
    points: np.ndarray
    starts: np.ndarray
    line: np.ndarray
    edges: np.ndarray
    widths: np.ndarray

    @classmethod
    def of_vectors(
        cls, vectors: np.ndarray, widths: Sequence[int], inner_widths: Sequence[int] | None = None
    ) -> Columns:
        """Look nothing up."""
        none = np.zeros(1, np.int64)
        codes = np.zeros((len(vectors), 0), np.uint16)
        inner = np.array(widths if inner_widths is None else inner_widths, np.int64)
        return cls(codes, none, np.zeros(0), none, vectors, _edges(widths), inner)

    @classmethod
    def of_view(cls, view: View) -> Columns:
        """Look up what a search looks up."""
        space = view.space
        columns = [view.table[block.names[0]] for block in space.values]
        sizes = [len(column.labels) for column in columns]
        narrow = np.uint16 if max(sizes, default=0) <= 1 << 16 else np.uint32
        codes = np.empty((len(view.nodes), len(columns)), narrow)
        for a, own in enumerate(view.codes()):
            codes[:, a] = own
        points = [
            block.points(column, space.unknown)[:-1].ravel()
            for block, column in zip(space.values, columns, strict=True)
        ]
        offsets, starts = _edges(sizes), _edges([len(part) for part in points])
        line = np.ascontiguousarray(view.nodes.line.T)
        edges = _edges(view.line_widths)
        inner = np.array([block.width for block in space.lines], np.int64)
        points = np.concatenate([np.zeros(0), *points])
        return cls(codes, offsets, points, starts, line, edges, inner)

    def ranked(
        self, near: Near, voters: Voters, asked: Found, strength: float, scales: Any = 1.0
    ) -> tuple[Near, np.ndarray]:
        """Return nodes by the distances around each row, and the weights of its columns.

        Squared distances of columns are multiplied by their ``scales`` first.
        """
        from tabweave.space.kernels import explained, local_distances

        _, squared, nodes = near
        weights = np.empty((len(nodes), self.codes.shape[1] + len(self.edges) - 1))
        classes = voters.classes.indptr, voters.classes.indices, voters.classes.data
        explained(squared, nodes, voters.sizes, classes, tuple(self), _AROUND, weights)
        weights = 1 + strength * weights
        weights /= weights.mean(axis=1, keepdims=True)
        out = np.empty(nodes.shape)
        local_distances(asked, tuple(self), squared, nodes, weights * scales, out)
        order = np.argsort(out, axis=1, kind="stable")
        out, nodes = (np.take_along_axis(part, order, axis=1) for part in (out, nodes))
        return Near(near.asked, out, nodes), weights


class Searched(NamedTuple):
    """The rows that are there: their numbers, a search, votes, and columns to be weighed anew.

    Of numbers also the linear prediction, if it counts.
    """

    rows: np.ndarray
    view: View
    voters: Voters
    columns: Columns | None
    line: Callable[[Table], np.ndarray] | None = None


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


class Fold(NamedTuple):
    """Rows by which members are compared: who votes for them, and who is near by each member."""

    voters: Voters
    extra: Any
    near: dict[tuple[float, float], tuple[Apart, Near]]

    def tuned(self, member: tuple[float, float], factors: np.ndarray) -> Fold:
        """Return who is near by one member whose columns count by factors."""
        apart, near = self.near[member]
        apart, share = apart.tuned(factors), member[1]
        near = apart.near([share], near.nodes.shape[1])[share]
        return self._replace(near={member: (apart, near)})


def _edges(widths: Sequence[int]) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(widths, dtype=np.int64)]).astype(np.int64)


class _Neighbors(CacheNotSaved, TabularInput, Estimator):
    """What both have in common: rows, the space, the choice of its member, neighbours."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_neighbors": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "embedder": [StrOptions({"validated"}), SupervisedWeave],
        "sharpness": [Interval(Real, 0, None, closed="left")],
        "n_validation": [Interval(Integral, _FEW, None, closed="left")],
        "schema": [Schema, dict, None],
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

    embedder_: SupervisedWeave
    local_: float = 0.0  # models that were saved before there was another have none
    _locals: ClassVar[tuple[float, ...]] = (0.0,)
    _calibrates: ClassVar[bool] = False  # on rows that did not teach, whatever else is given
    _stored: Stored
    _targets: np.ndarray  # of all rows that were ever stored
    _weight: np.ndarray | None = None  # of these, None where each counts once

    # -- learning --------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, ids: Any = None) -> Self:
        """Keep the rows, choose a member of the family, and learn its space.

        Parameters
        ----------
        X : frame, array, mapping of columns or list of dicts
            The rows.
        y : array-like
            The target of each row.
        sample_weight : array-like, optional
            How many rows each row counts for, in learning, choosing and votes: 2 is that of
            a row that is there twice, a row of weight 0 is not there.
        ids : array-like of whole numbers or text, or name of a column, optional
            What each row is called: these, or the cells of a column, from which nothing is learned.
            If not given, the index labels of a pandas frame, and running numbers for rows that
            have none.
        """
        self._validate_params()
        given = self.schema if isinstance(self.embedder, str) else self.embedder.schema
        features = without_column(X, ids)
        table = Table.of(features, Schema.of(given), numbers="numeric", rules="whole")
        require_rows(table)
        stored = Stored.of(table, row_ids(X, ids))
        weight = checked_weight(sample_weight, table.n_rows)
        targets = self._targets_of(y, weight, table.n_rows)
        warn_of_predictive(features, table.schema, targets)
        stored = stored.counting(weight)
        rows = np.flatnonzero(stored.alive)
        self._stored, self._targets, self._weight = stored, targets, weight
        self.__dict__.pop("_cache", None)
        self._choose(
            take_rows(table, rows) if len(rows) < len(targets) else table, self._counting()
        )
        remember_names(self, table.schema)
        self._searched()
        self.embedder_.release()
        return self

    def _targets_of(
        self, y: Any, weight: np.ndarray | None, n_rows: int, first: bool = True
    ) -> np.ndarray:
        """Return the target of each row; those of rows that do not count are not looked at."""
        if weight is None or weight.all():
            return self._checked_targets(y, n_rows, first)
        labels = checked_target(y, type(self).__name__)
        check_length(labels, n_rows)
        rows = np.flatnonzero(weight)
        if not len(rows):
            raise ValueError("sample_weight: expected some weight above 0, got zero for every row")
        found = self._checked_targets(labels[rows], len(rows), first)
        out = np.zeros(n_rows, found.dtype)
        out[rows] = found
        return out

    def _counting(self) -> Targets:
        """Return the targets of the rows that are there."""
        return Targets(self._targets, self._weight).take(np.flatnonzero(self._stored.alive))

    def partial_fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, ids: Any = None
    ) -> Self:
        """Add rows; what was chosen in ``fit``, calibration and how numbers are cut are kept.

        With fewer than ten rows nothing could be chosen yet; it is chosen once there are ten.
        ``forget([])`` learns the calibration and the rest anew.
        """
        if "_stored" not in vars(self):
            return self.fit(X, y, sample_weight, ids=ids)
        table = self._read(X)
        weight = checked_weight(sample_weight, table.n_rows)
        targets = self._targets_of(y, weight, table.n_rows, first=False)
        stored = self._stored.append(table, row_ids(X, ids, self._stored.table.schema))
        enough = self._counting().n >= _FEW
        if weight is not None or self._weight is not None:
            before = np.ones(len(self._targets)) if self._weight is None else self._weight
            more = np.ones(len(targets)) if weight is None else weight
            self._weight = np.concatenate([before, more])
        self._targets = np.concatenate([self._targets, targets])
        self._stored = stored.counting(self._weight)
        if enough:
            self.embedder_.partial_fit(table, targets, weight)
        else:
            rows = np.flatnonzero(self._stored.alive)
            self._choose(take_rows(stored.table, rows), self._counting())
        self.__dict__.pop("_cache", None)
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
        left = self._stored.without(ids)
        rows = np.flatnonzero(left.alive)
        self._check_left(self._targets[rows])
        self._stored = left
        self.__dict__.pop("_cache", None)
        self._learn_again(take_rows(left.table, rows), self._counting())
        self._searched()
        self.embedder_.release()
        return self

    def _check_left(self, targets: np.ndarray) -> None:
        """Refuse to forget rows without which there is nothing to learn."""
        distinct = np.unique(targets)
        if len(distinct) < 2:
            stay = list(map(self._shown, distinct))
            raise ValueError(
                f"expected rows of two classes or more to remain (for a numeric target, of two "
                f"numbers), got rows of {stay}; fit a new model to the remaining rows"
            )

    def _learn_again(self, table: Table, targets: Targets) -> None:
        """Learn from rows what is not chosen."""
        member = float(self.embedder_.weight_power), float(self.embedder_.discriminant)
        self._learn_space(table, targets)
        if targets.n < _FEW or (self._given and not self._calibrates):
            self._without_validation()
        else:
            folds, targets = self._compared(table, targets, [member])
            self._calibrate(self._tuned_folds(folds, member), targets, member)
        self.embedder_ = self._member(*member)

    def _choose(self, table: Table, targets: Targets) -> None:
        """Choose the member of the family and the numbers of neighbours."""
        self._check_memory(table)
        self._learn_space(table, targets)
        members = list(product(POWERS, DISCRIMINANTS))
        if not isinstance(self.embedder, str):
            members = [(float(self.embedder.weight_power), float(self.embedder.discriminant))]
        member, self.n_neighbors_ = self._choose_member(table, targets, members)
        self.embedder_ = self._member(*member)

    def _learn_space(self, table: Table, targets: Targets) -> None:
        """Learn the space that all variants share."""
        model = SupervisedWeave() if isinstance(self.embedder, str) else clone(self.embedder)
        model.set_params(schema=table.schema)
        target = self._target(targets, model.n_bins)
        self.embedder_ = model.fit_target(table, targets.values, target, targets.weight)

    def _choose_member(
        self, table: Table, targets: Targets, members: list[tuple[float, float]]
    ) -> tuple[tuple[float, float], tuple[int, ...]]:
        """Return the best member and its numbers of neighbours, by rows that did not teach it."""
        n, ks = targets.n, self._tries(targets.n)
        self.validation_: list[dict[str, Any]] = []
        if n < _FEW or (self._given and not self._calibrates):
            self._without_validation()
            default = members[0] if len(members) == 1 else (1.0, 0.3)
            return default, tuple(sorted({min(k, n) for k in ks if k <= 5} or {min(*ks, n)}))
        folds, targets = self._compared(table, targets, members)
        member, best, self.validation_ = chosen(self._scores(folds, targets, ks))
        return self._settle(folds, targets, member, best)

    def _compared(
        self, table: Table, targets: Targets, members: list[tuple[float, float]]
    ) -> tuple[list[Fold], Targets]:
        """Return the folds of the rows by which members are compared, and the rows' targets."""
        n = table.n_rows
        random = np.random.default_rng(seed_of(self.random_state))
        rows = random.permutation(n)[:_REFERENCE]
        if n <= _REFERENCE:  # in whichever order they came
            keys = targets.values, distinct_rows(canonical_codes(table))[1]
            rows = np.lexsort(keys if targets.weight is None else (targets.weight, *keys))[rows]
        ks, targets = self._tries(targets.n), targets.take(rows)
        return list(self._folds(take_rows(table, rows), targets, members, ks)), targets

    def _tuned_folds(self, folds: list[Fold], member: tuple[float, float]) -> list[Fold]:
        """Return folds as factors of columns that were learned before make them."""
        return folds

    @property
    def _given(self) -> bool:
        """Whether both the space and the number of neighbours are given, and nothing is chosen."""
        return not isinstance(self.embedder, str) and not isinstance(self.n_neighbors, str)

    def _tries(self, n: int) -> tuple[int, ...]:
        """Return the numbers of neighbours that are tried."""
        return tries(n) if isinstance(self.n_neighbors, str) else (int(self.n_neighbors),)

    def _folds(
        self,
        table: Table,
        targets: Targets,
        members: list[tuple[float, float]],
        ks: Sequence[int],
    ) -> Iterator[Fold]:
        """Yield rows that are asked, and what is near to them as others teach each member."""
        most = -(-int(self.n_validation) // 5)
        most_near = candidates(ks) if len(self._locals) > 1 else max(ks) + 1
        heads, node_of = distinct_rows(canonical_codes(table))
        powers = dict.fromkeys(power for power, _ in members)
        models = {power: self._member(power, 1.0) for power in powers}
        for part, pairs in self.embedder_.left_out(table, *targets):
            asked, others = part[:most], np.setdiff1d(np.arange(table.n_rows), part)
            there, own = np.unique(node_of[others], return_inverse=True)
            near: dict[tuple[float, float], tuple[Apart, Near]] = {}
            for power, model in models.items():  # whose discriminant counts as its columns do
                apart = Apart(model.taught_by(pairs), table, asked, heads[there])
                shares = [share for p, share in members if p == power]
                found = apart.near(shares, most_near)
                near |= {(power, share): (apart, found[share]) for share in shares}
            seen = targets.take(others)
            voters = Voters.of(own, seen.values, len(there), seen.weight)
            yield Fold(voters, self._extra(pairs, table, others, asked), near)

    def _answers(
        self, folds: Sequence[Fold], member: tuple[float, float], ks: Sequence[int], local: float
    ) -> dict[Any, tuple[np.ndarray, Any]]:
        """Return the rows asked and what they get from a member, by number of neighbours."""
        out: dict[Any, list[tuple[np.ndarray, Any]]] = {}
        for fold in folds:
            apart, near = fold.near[member]
            if local:
                near = Near(near.asked, *(part[:, : candidates(ks)] for part in near[1:]))
                near = apart.ranked(near, fold.voters, member[1], local)
            for key, votes in self._votes(near, fold.voters, ks, fold.extra).items():
                out.setdefault(key, []).append((near.asked, votes))
        pairs = {key: zip(*parts, strict=True) for key, parts in out.items()}
        return {
            key: (np.concatenate(asked), joined(votes)) for key, (asked, votes) in pairs.items()
        }

    def _member(self, power: float, discriminant: float) -> SupervisedWeave:
        """Return another member of the family, of the same counts."""
        model = clone(self.embedder_).set_params(weight_power=power, discriminant=discriminant)
        for name in ("_numbering", "target_", "_cache"):
            setattr(model, name, getattr(self.embedder_, name))
        return model._start(self.embedder_.counts_).learn()

    # -- rows ------------------------------------------------------------------------------

    def _read(self, X: Any) -> Table:
        check_is_fitted(self, "_stored")
        return self.embedder_._read_asked(X)

    @exclusive
    def _searched(self) -> Searched:
        """Return the rows that are there, as they are looked for and vote."""
        if "_cache" not in vars(self):
            rows = np.flatnonzero(self._stored.alive)
            table = take_rows(self._stored.table, rows)
            view = View(table, space_of(self.embedder_.learn(), table.schema, "auto"))
            node_of, counting = view.copies.node_of, self._counting()
            voters = Voters.of(node_of, counting.values, len(view.nodes), counting.weight)
            columns = Columns.of_view(view) if self.local_ else None
            self._cache = Searched(rows, view, voters, columns, self._own_line())
        return self._cache

    def _own_line(self) -> Callable[[Table], np.ndarray] | None:
        """Return the linear prediction that answers hold besides votes; None of classes."""
        return None

    def _near(self, table: Table) -> Iterator[tuple[Near, np.ndarray]]:
        """Yield the nodes near some of the rows asked about, and the weights of columns."""
        _, view, voters, columns, _ = self._searched()
        queries, ks = view.queries(table), self.n_neighbors_
        for some in slices(table.n_rows, 1, _BLOCK):
            asked = np.arange(table.n_rows)[some]
            own = queries.take(asked)
            if columns is None:
                near = Near(asked, *nearest_and_ties(view.nodes, voters.sizes, own, max(ks)))
                yield near, np.ones((len(asked), len(view.space.values) + len(view.space.lines)))
            else:
                each = np.ones(len(view.nodes), np.int64)
                near = Near(asked, *nearest_and_ties(view.nodes, each, own, candidates(ks)))
                yield self._ranked(near, voters, columns, own)

    def _ranked(
        self, near: Near, voters: Voters, columns: Columns, queries: Queries
    ) -> tuple[Near, np.ndarray]:
        """Rank nodes by columns that are weighed anew, some queries at a time."""
        runs = slices(len(near.nodes), 1, _RUN)
        found: list[Any] = [None] * len(runs)

        def work(run: int) -> None:
            some = runs[run]
            own = Near(*(part[some] for part in near))
            found[run] = columns.ranked(own, voters, queries.asked(some), self.local_)

        in_threads(work, range(len(runs)))
        parts, weights = zip(*found, strict=True)
        return Near(*map(np.concatenate, zip(*parts, strict=True))), np.concatenate(weights)

    def _voting(self, table: Table) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Yield some of the rows asked about, the nodes that vote for each, and their weights."""
        voters = self._searched().voters
        for near, _ in self._near(table):
            weights = voters.weights(near, self.n_neighbors_, self.sharpness)
            yield near.asked, near.nodes, weights

    def kneighbors(self, X: Any) -> KNeighbors:
        """Return distances, ids and positions of the training rows nearest to each, nearest first.

        They are as many as the largest number of neighbours; where the last distance is that of
        more rows, these vote, too. Distances are local where ``local_`` is not 0.
        """
        table = self._read(X)
        rows, view, *_ = self._searched()
        k = min(max(self.n_neighbors_), len(rows))
        squared, found = np.empty((table.n_rows, k)), np.empty((table.n_rows, k), np.int64)
        for near, _ in self._near(table):
            nodes = near.squared, view.copies.heads[near.nodes]
            squared[near.asked], found[near.asked] = view.copies.expand(nodes, k, None)
        return KNeighbors(np.sqrt(squared), self._stored.ids[rows[found]], found)

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
        if (
            not isinstance(n_neighbors, Integral)
            or isinstance(n_neighbors, bool)
            or n_neighbors < 1
        ):
            shown = repr(n_neighbors) if np.isscalar(n_neighbors) else type(n_neighbors).__name__
            raise TypeError(
                f"expected n_neighbors to be a whole number >= 1, got {shown}; the distance of two "
                "rows is explained by embedder_.explain(a, b)"
            )
        table = self.embedder_._read_one(row)
        known, view, voters, *_ = self._searched()
        ((near, (columns,)),) = self._near(table)
        (weights,) = voters.weights(near, self.n_neighbors_, self.sharpness)
        each = weights / voters.sizes[near.nodes[0]]
        best = np.argsort(-each, kind="stable")[: np.count_nonzero(each)]
        if voters.weight is None:
            best = best[:n_neighbors]
        found, sizes = view.copies.rows_of(near.nodes[0][best], None)
        shown = np.repeat(each[best], sizes)
        if voters.weight is not None:
            shown = shown * voters.weight[found]
        first = np.argsort(-shown, kind="stable")[:n_neighbors]
        positions, shown = found[first], shown[first]
        found = known[positions]
        others = take_rows(self._stored.table, found)
        again = take_rows(table, np.zeros(len(found), np.int64))
        parts = zip((*view.space.values, *view.space.lines), columns, strict=True)
        shares = added(
            {name: weight * share for name, share in part.shares(again, others).items()}
            for part, weight in parts
        )
        return [
            {
                "id": self._stored.id_of(row),
                "position": int(positions[i]),
                "target": self._shown(self._targets[row]),
                "weight": float(shown[i]),
                "distance": float(np.sqrt(max(sum(share[i] for share in shares.values()), 0.0))),
                "shares": {name: float(share[i]) for name, share in shares.items()},
            }
            for i, row in enumerate(found)
        ]


@storable
class WeaveClassifier(ClassifierMixin, _Neighbors):
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
        powers of the column weights, three shares of the discriminant.
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
    embedder_ : SupervisedWeave
        The space that was chosen.
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
        **_Neighbors._parameter_constraints,
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
        self._announced = None if classes is None else np.unique(column_or_1d(classes))
        try:
            return super().partial_fit(X, y, sample_weight, ids=ids)
        finally:
            del self._announced

    def _checked_targets(self, y: Any, n_rows: int, first: bool = True) -> np.ndarray:
        labels = checked_target(y, type(self).__name__)
        check_length(labels, n_rows)
        check_class_labels(labels)
        classes = self.classes_ if not first else vars(self).get("_announced")
        classes = np.unique(labels) if classes is None else classes
        check_classes(classes)
        unknown = np.setdiff1d(labels, classes)
        if len(unknown):
            known, found = classes.tolist(), unknown.tolist()[0]
            raise ValueError(f"expected classes of fit, {known}, got {found!r}")
        self.classes_ = classes  # not before: what cannot be learned leaves a model as it was
        return np.searchsorted(classes, labels)

    _locals: ClassVar[tuple[float, ...]] = LOCAL
    _calibrates: ClassVar[bool] = True

    def _target(self, targets: Targets, n_bins: int) -> Target:
        return Target()

    def _shown(self, target: Any) -> Any:
        return self.classes_[[target]].tolist()[0]

    def _check_memory(self, table: Table) -> None:
        """Raise MemoryError, before anything is learned, for classes that would not fit."""
        bins = SupervisedWeave().n_bins if isinstance(self.embedder, str) else self.embedder.n_bins
        values = np.array([len(data.labels) if hasattr(data, "labels") else bins + 1
                           for data in table.columns])  # fmt: skip
        needed, free = learning_bytes(values, len(self.classes_), table.n_rows), available_memory()
        if free is None or needed <= free:
            return
        name, size = table.schema.names[int(values.argmax())], int(values.max())
        raise MemoryError(
            f"learning {len(self.classes_):,} classes from {values.sum():,} values would take "
            f"about {needed / 1e9:,.1f} GB, more than the {free / 1e9:,.1f} GB that are free; "
            f"join rare classes, or leave out columns of many values (column {name!r} has {size:,})"
        )

    def _extra(self, *_: Any) -> None:
        return None

    def _votes(self, near: Near, voters: Voters, ks: Sequence[int], extra: None) -> dict[int, Any]:
        ballots = [
            (voters.weights(own, (k,), self.sharpness), own.nodes)
            for k, own in zip(ks, voters.voting(near, ks), strict=True)
        ]
        return dict(zip(ks, voters.shares(ballots, len(self.classes_)), strict=True))

    def _scores(
        self, folds: list[Fold], targets: Targets, ks: Sequence[int]
    ) -> dict[tuple[float, ...], dict[int, float]]:
        """Return what each member reaches of the objective, by number of neighbours."""
        scores: dict[tuple[float, ...], dict[int, float]] = {}
        for member in folds[0].near:
            answers = self._answers(folds, member, ks, 0.0)
            scores[member] = {k: self._score(targets, *answers[k]) for k in ks}
        return scores

    def _score(self, targets: Targets, rows: np.ndarray, votes: Any) -> float:
        labels, weight = asked = targets.take(rows)
        if self.objective == "log_loss":
            pair = calibrated(votes, labels, weight)
            return -asked.mean(log_losses(votes, labels, *pair))
        guessed = winners(votes)
        if self.objective == "accuracy":
            return asked.mean(guessed == labels)
        return macro_f(labels, guessed, len(self.classes_), weight)

    def _settle(
        self, folds: list[Fold], targets: Targets, member: tuple[float, ...], ks: tuple[int, ...]
    ) -> tuple[tuple[float, float], tuple[int, ...]]:
        """Choose whether columns are weighed around rows, and what makes votes probabilities."""
        own = member[0], member[1]
        tried = (0.0,) if self._given else self._locals
        local = {strength: self._answers(folds, own, ks, strength) for strength in tried}
        means = {
            strength: float(np.mean([self._score(targets, *found[k]) for k in ks]))
            for strength, found in local.items()
        }
        self.local_ = max(means, key=lambda strength: (means[strength], -strength))
        self.validation_[0]["local"] = means
        self._calibrate_by(local[self.local_], targets, ks)
        return own, ks

    def _calibrate(self, folds: list[Fold], targets: Targets, own: tuple[float, float]) -> None:
        """Learn what makes votes probabilities."""
        answers = self._answers(folds, own, self.n_neighbors_, self.local_)
        self._calibrate_by(answers, targets, self.n_neighbors_)

    def _calibrate_by(
        self, answers: dict[Any, tuple[np.ndarray, Any]], targets: Targets, ks: Sequence[int]
    ) -> None:
        votes = sum(answers[k][1] for k in ks) / len(ks)
        self.calibration_ = calibrated(votes, *targets.take(answers[ks[0]][0]))

    def _without_validation(self) -> None:
        self.calibration_, self.local_ = (_FLOORS[0], 1.0), 0.0

    def predict(self, X: Any) -> np.ndarray:
        """Return the class of each row: the most probable one, the first of equally probable."""
        table, n = self._read(X), len(self.classes_)
        voters = self._searched().voters
        out = np.zeros(table.n_rows, np.int64)
        for some, nodes, weights in self._voting(table):
            out[some] = winners(voters.shares([(weights, nodes)], n)[0])
        return self.classes_[out]

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each class, calibrated on training rows."""
        table, n = self._read(X), len(self.classes_)
        voters = self._searched().voters
        out = np.empty((table.n_rows, n))
        for some, nodes, weights in self._voting(table):
            (votes,) = voters.shares([(weights, nodes)], n)
            out[some] = probabilities(votes.toarray(), *self.calibration_)
        return out


@storable
class WeaveRegressor(RegressorMixin, _Neighbors):
    """Predict a number for rows of any table from their nearest rows, and explain it by them.

    Parameters
    ----------
    n_neighbors, embedder, sharpness, n_validation, schema, random_state
        As in :class:`WeaveClassifier`.

    Attributes
    ----------
    embedder_ : SupervisedWeave
        The space that was chosen.
    n_neighbors_ : tuple of int
        The numbers of neighbours whose means are averaged.
    linear_ : float
        The share ρ of the linear prediction.
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
    nearest neighbours (Goldberger et al. 2004; see :func:`learned_factors`). The factors are shrunk
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

    def _checked_targets(self, y: Any, n_rows: int, first: bool = True) -> np.ndarray:
        values = checked_target(y, type(self).__name__)
        check_length(values, n_rows)
        numbers = target_numbers(values, "WeaveClassifier")
        if first and len(numbers) and (numbers == numbers[0]).all():
            raise ValueError(
                f"expected y to hold different numbers, got only {numbers[0]:g} "
                f"(n_samples = {len(numbers)})"
            )
        self._check_squares(numbers, first)
        return numbers

    @staticmethod
    def _check_squares(numbers: np.ndarray, first: bool) -> None:
        """Refuse targets whose squared errors would be infinite or zero."""
        size = np.abs(numbers).max(initial=0.0)
        if size > _LARGEST or (first and len(numbers) and np.ptp(numbers) < 1 / _LARGEST):
            raise ValueError(
                f"expected y between {-_LARGEST:g} and {_LARGEST:g}, of which some differ by more "
                f"than {1 / _LARGEST:g}, got {size:g}; give it in another unit"
            )

    def _check_memory(self, table: Table) -> None:
        """Raise nothing: the bins of a target are few."""

    def _target(self, targets: Targets, n_bins: int) -> Target:
        return Target.of_numbers(targets.values, int(n_bins), targets.weight)

    def _shown(self, target: Any) -> float:
        return float(target)

    linear_: float
    factors_: dict[str | None, float]
    reliability_: float = 1.0  # as of models that were saved before there was another

    def _points(self, model: SupervisedWeave) -> np.ndarray:
        """Return the mean of each bin of the target."""
        assert model.counts_.classes is not None
        return model.target_.centres(model.counts_.classes)[:, None]

    def _line(self, model: SupervisedWeave, pairs: np.ndarray) -> Callable[[Table], np.ndarray]:
        """Return the linear prediction that counts with classes teach."""
        block = model.regression(pairs, self._points(model))
        if block is None:
            return lambda table: np.zeros(table.n_rows)
        return lambda table: block.coordinates(table)[:, 0]

    def _own_line(self) -> Callable[[Table], np.ndarray] | None:
        if not self.linear_:
            return None
        pairs = self.embedder_._coupled().class_pairs
        assert pairs is not None
        return self._line(self.embedder_, pairs.astype(float))

    def _extra(
        self, pairs: np.ndarray, table: Table, others: np.ndarray, asked: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        line = self._line(self.embedder_, pairs)(table)
        return line[others], line[asked]

    def _votes(
        self,
        near: Near,
        voters: Voters,
        ks: Sequence[int],
        extra: tuple[np.ndarray, np.ndarray],
    ) -> dict[tuple[int, float], np.ndarray]:
        theirs, ours = extra
        means = {share: voters.means(voters.targets - share * theirs) for share in LINEAR}
        out = {}
        for k, own in zip(ks, voters.voting(near, ks), strict=True):
            weights = voters.weights(own, (k,), self.sharpness)
            for share, left in means.items():
                out[k, share] = (weights * left[own.nodes]).sum(axis=1) + share * ours
        return out

    def _scores(
        self, folds: list[Fold], targets: Targets, ks: Sequence[int]
    ) -> dict[tuple[float, ...], dict[int, float]]:
        """Return R² of each member and share of the linear prediction, by number of neighbours."""
        variance = max(targets.mean((targets.values - targets.mean()) ** 2), 1e-300)
        scores: dict[tuple[float, ...], dict[int, float]] = {}
        for member in folds[0].near:
            for (k, share), (rows, guess) in self._answers(folds, member, ks, 0.0).items():
                asked = targets.take(rows)
                error = asked.mean((asked.values - guess) ** 2)
                scores.setdefault((*member, share), {})[k] = 1 - error / variance
        return scores

    def _choose(self, table: Table, targets: Targets) -> None:
        self.factors_ = {}
        super()._choose(table, targets)
        self._tune_space()

    def _learn_again(self, table: Table, targets: Targets) -> None:
        super()._learn_again(table, targets)
        self._tune_space()

    def _tune_space(self) -> None:
        """Multiply weights of columns by what was learned for them."""
        if self.factors_:
            self.embedder_.tuned_by(self.factors_).learn()

    def _settle(
        self, folds: list[Fold], targets: Targets, member: tuple[float, ...], ks: tuple[int, ...]
    ) -> tuple[tuple[float, float], tuple[int, ...]]:
        """Learn what columns count, and choose k and both shares of the prediction for that."""
        own = member[0], member[1]
        if isinstance(self.embedder, str):
            factors = self._learned_factors(folds, member, ks, targets)
            names = self.embedder_.part_names()
            self.factors_ = dict(zip(names, factors.tolist(), strict=False))
            folds = [fold.tuned(own, factors) for fold in folds]
            scores = self._scores(folds, targets, self._tries(targets.n))
            member, ks, (tuned, *_) = chosen(scores)
            self.validation_[0]["tuned"] = tuned["score"]
        self.linear_ = float(member[2])
        self.n_neighbors_ = ks
        self._calibrate(folds, targets, own)
        return own, ks

    def _tuned_folds(self, folds: list[Fold], member: tuple[float, float]) -> list[Fold]:
        factors = np.array(list(self.factors_.values()))
        return [fold.tuned(member, factors) for fold in folds] if self.factors_ else folds

    def _calibrate(self, folds: list[Fold], targets: Targets, own: tuple[float, float]) -> None:
        """Learn how much neighbours are trusted."""
        ks, share = self.n_neighbors_, self.linear_
        answers = self._answers(folds, own, ks, 0.0)
        rows = answers[ks[0], share][0]
        line = share * np.concatenate([fold.extra[1] for fold in folds])
        guess = np.mean([answers[k, share][1] for k in ks], axis=0) - line
        centre, (values, weight) = targets.mean(), targets.take(rows)
        self.reliability_ = reliability(guess - centre, values - line - centre, weight)

    def _learned_factors(
        self, folds: list[Fold], member: tuple[float, ...], ks: tuple[int, ...], targets: Targets
    ) -> np.ndarray:
        """Return by what the columns of a member, and its discriminant, should be multiplied."""
        power, share, linear = member
        pairs = [fold.near[power, share] for fold in folds]
        n_parts, n_rows = len(pairs[0][0].widths), sum(len(near.asked) for _, near in pairs)
        most = min(_TAUGHT_BY, max(_ENTRIES // (n_rows * n_parts), _FEWEST))
        most = min(most, *(near.nodes.shape[1] for _, near in pairs))
        rows = _ENTRIES // (most * n_parts * len(folds)) + 1  # of each fold, if columns are many
        k = max(_FEWEST_VOTERS, ks[len(ks) // 2])
        found, asked = [], []
        for fold, (apart, all_near) in zip(folds, pairs, strict=True):
            near = Near(*(part[:rows] for part in all_near))
            last = kth(near.squared, fold.voters.sizes[near.nodes].cumsum(axis=1), k)
            near = Near(near.asked, near.squared[:, :most], near.nodes[:, :most])
            theirs, ours = fold.extra
            left = fold.voters.means(fold.voters.targets - linear * theirs)
            own = targets.values[near.asked] - linear * ours[:rows]
            sizes = fold.voters.sizes[near.nodes]
            found.append((apart.parts(near, share), sizes, left[near.nodes], last, own))
            asked.append(near.asked)
        parts, sizes, values, last, own = map(np.concatenate, zip(*found, strict=True))
        weight = targets.take(np.concatenate(asked)).weight
        usual = float(np.median(last)) or float(last.max()) or 1.0  # most rows may have k twins
        sharpness = self.sharpness / np.where(last > 0, last, usual)
        return learned_factors(parts, sizes, values, sharpness, own, weight)

    def _without_validation(self) -> None:
        self.linear_, self.reliability_ = 0.0, 1.0

    def explain(self, row: Any, n_neighbors: int = 5) -> list[dict[str, Any]]:
        """Say which rows an answer comes from, and which columns made them near.

        As in :meth:`WeaveClassifier.explain`, and of each row also ``prediction``, what the answer
        would be by this row alone: the answer is the mean of these over all rows that vote, by
        weight.
        """
        said = super().explain(row, n_neighbors)
        there, _, voters, _, line = self._searched()
        rows = there[[one["position"] for one in said]]
        start, left = (1 - self.reliability_) * voters.mean, self._targets[rows]
        if line is not None:
            start = start + self.linear_ * line(self.embedder_._read_one(row))[0]
            left = left - self.linear_ * line(take_rows(self._stored.table, rows))
        found = start + self.reliability_ * left
        return [{**one, "prediction": float(p)} for one, p in zip(said, found, strict=True)]

    def predict(self, X: Any) -> np.ndarray:
        """Return the predicted number of each row."""
        table = self._read(X)
        _, view, voters, _, line = self._searched()
        means, centre = voters.means(voters.targets), voters.mean
        out = np.full(table.n_rows, (1 - self.reliability_) * centre)
        if line is not None:
            out += self.linear_ * line(table)
        for some, nodes, weights in self._voting(table):
            known, inverse = np.unique(nodes, return_inverse=True)
            left = means[known]
            if line is not None:
                left = left - self.linear_ * line(take_rows(view.table, view.copies.heads[known]))
            found = (weights * left[inverse.reshape(nodes.shape)]).sum(axis=1)
            out[some] += self.reliability_ * found
        return out


# -- votes --------------------------------------------------------------------------------------


def vote_weights(
    squared: np.ndarray, ks: Sequence[int], sharpness: float, sizes: np.ndarray | None = None
) -> np.ndarray:
    """Return the weights of neighbours, nearest first: ``exp(-s d / d_k)``, mean over the ks.

    A neighbour may stand for several rows. Rows at the distance d_k of the k-th share the places
    that are left, so that no order of rows decides; of rows that are all at distance 0, each has
    the same weight. Weights of a line add up to 1.
    """
    count = np.ones(squared.shape, np.int64) if sizes is None else sizes
    held, out = count.cumsum(axis=1), np.zeros(squared.shape)
    for k in ks:
        last = kth(squared, held, k)[:, None]
        nearer, tied = squared < last * (1 - _TIED), squared <= last * (1 + _TIED)
        places = count * nearer
        left = np.minimum(k, held[:, -1]) - places.sum(axis=1)
        tied &= ~nearer
        places = places + count * tied * (left / (count * tied).sum(axis=1))[:, None]
        own = np.exp(-sharpness * squared / np.where(last > 0, last, 1)) * places
        out += own / own.sum(axis=1, keepdims=True) / len(ks)
    return out


def kth(squared: np.ndarray, held: np.ndarray, k: int) -> np.ndarray:
    """Return the distance of the k-th row, or of the last: nodes so far hold so many rows."""
    reached = np.minimum((held < k * (1 - _TIED)).sum(axis=1), squared.shape[1] - 1)
    return np.asarray(squared[np.arange(len(squared)), reached])


def nearest_and_ties(nodes: Nodes, sizes: np.ndarray, queries: Queries, k: int) -> Found:
    """Return the nodes nearest to each query that hold k rows, and those as far as the last.

    They come nearest first; lines are filled up with infinity, and node 0. Where a column tells
    every row from every other, all may be equally far: of 1,024 nodes the rest is left out.
    """
    k = min(k, max(int(sizes.sum()), 1))
    most, limit = (min(n, len(nodes)) for n in (k + 1, max(k + 1, _MOST)))
    squared, found = nearest_nodes(nodes, queries, most)
    while most < limit:
        last = kth(squared, sizes[found].cumsum(axis=1), k)
        cut = np.flatnonzero(squared[:, -1] <= last * (1 + _TIED))
        if not len(cut):
            break
        more = min(_MORE * most, limit)
        squared = np.pad(squared, ((0, 0), (0, more - most)), constant_values=np.inf)
        found = np.pad(found, ((0, 0), (0, more - most)))
        squared[cut], found[cut] = nearest_nodes(nodes, queries.take(cut), more)
        most = more
    return np.maximum(squared, 0, out=squared), found


def nearest(apart: np.ndarray, k: int) -> Found:
    """Return the k smallest entries of each line in order, the first first, and where they are.

    Entries are float32 and not negative, so that their bits are in their order: with the number of
    the entry behind them they are whole numbers, none equal to another, which NumPy sorts fast.
    """
    k = min(k, apart.shape[1])
    keys = np.abs(apart).view(np.uint32).astype(np.uint64) << _HALF
    keys |= np.arange(apart.shape[1], dtype=np.uint64)
    if k < apart.shape[1]:
        keys.partition(k - 1, axis=1)
    keys = np.sort(keys[:, :k], axis=1)
    where = keys & ((np.uint64(1) << _HALF) - np.uint64(1))
    return (keys >> _HALF).astype(np.uint32).view(np.float32), where.astype(np.int64)


class Apart:
    """Distances of rows that are asked to others, by the columns and by the discriminant.

    Parameters
    ----------
    block : Blocks
        What was taught without the rows that are asked; its discriminant, which is last, counts as
        its columns do.
    table, asked, others
        All rows, and the numbers of these and those.
    """

    def __init__(
        self,
        block: Blocks,
        table: Table,
        asked: np.ndarray,
        others: np.ndarray,
    ) -> None:
        self.asked = asked
        last, parts = block.blocks[-1], block.parts()
        gapped = [part for part in parts if total_gaps(part, table) is not None]
        self.inner_widths = [part.width for part in parts]
        self.widths = [part.width + 2 * (part in gapped) for part in parts]
        self.vectors = [
            self._vectors(block, parts, gapped, take_rows(table, rows), asks=asks)
            for rows, asks in ((asked, True), (others, False))
        ]
        self.edge = sum(self.widths) - (last.width if isinstance(last, Summed) else 0)

    @staticmethod
    def _vectors(
        block: Block, parts: Sequence[Block], gapped: Sequence[Block], table: Table, *, asks: bool
    ) -> np.ndarray:
        """Return the coordinates of rows, and behind those of a part those of missing cells."""
        vectors = block.coordinates(table, dtype=np.float32)
        ends = np.cumsum([part.width for part in parts])
        at = [int(end) for part, end in zip(parts, ends, strict=True) if part in gapped]
        if not at:
            return vectors
        found = (total_gaps(part, table) for part in gapped)
        axes = [gap_axes(np.zeros(len(vectors)) if g is None else g, asks=asks) for g in found]
        return np.insert(vectors, np.repeat(at, 2), np.hstack(axes), axis=1)

    def near(self, shares: Sequence[float], k: int) -> dict[float, Near]:
        """Return the k nearest, where the discriminant counts so much, for each share."""
        left, right = self.vectors
        columns = squares(left[:, : self.edge], right[:, : self.edge])
        discriminant = squares(left[:, self.edge :], right[:, self.edge :])
        found = {
            share: nearest(columns + share * discriminant if share else columns, k)
            for share in shares
        }
        return {share: Near(self.asked, *own) for share, own in found.items()}

    def tuned(self, factors: np.ndarray) -> Apart:
        """Return distances to which columns, and the discriminant, count by factors."""
        out, widths = copy(self), self.widths
        roots = np.ones(len(widths))
        roots[: len(factors)] = np.sqrt(factors)
        scale = np.repeat(roots, widths).astype(np.float32)
        out.vectors = [vectors * scale for vectors in self.vectors]
        return out

    def parts(self, near: Near, share: float) -> np.ndarray:
        """Return the squared distances of each column, and of a discriminant that counts so."""
        from tabweave.space.kernels import part_distances

        left, right = self.vectors
        edges = _edges(self.widths)
        kept = len(edges) - (1 if share or self.edge == edges[-1] else 2)
        out = np.empty((*near.nodes.shape, kept), np.float32)
        part_distances(left, right, near.nodes, edges[: kept + 1], out)
        if share and self.edge < edges[-1]:
            out[..., -1] *= share
        return out

    def ranked(self, near: Near, voters: Voters, share: float, strength: float) -> Near:
        """Return them by columns that are weighed anew around each row."""
        # As a search has them: for others numba would compile the same loops again.
        left, right = (vectors.astype(np.float64) for vectors in self.vectors)
        squared, nodes = near.squared.astype(np.float64), np.ascontiguousarray(near.nodes)
        near = near._replace(squared=squared, nodes=nodes)
        widths, scales, inner = self.widths, np.ones(len(self.widths)), self.inner_widths
        if self.edge < sum(widths):
            scales[-1] = share
            kept = slice(None, None if share else -1)  # what counts nothing has no weight
            widths, scales, inner = widths[kept], scales[kept], inner[kept]
        asked = np.zeros((len(left), 0)), left
        columns = Columns.of_vectors(right, widths, inner)
        return columns.ranked(near, voters, asked, strength, scales)[0]


def squares(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return squared distances by products; small ones may be rounded."""
    with blas_threads(x.size * len(y)):
        out = (-2 * x) @ y.T
    out += (x**2).sum(axis=1)[:, None]
    out += (y**2).sum(axis=1)
    return np.maximum(out, 0, out=out)


def tries(n: int) -> tuple[int, ...]:
    """Return the numbers of neighbours that are tried: of those that all rows are, the first."""
    return tuple(k for k, before in zip(NEIGHBORS, (0, *NEIGHBORS), strict=False) if before < n)


def candidates(ks: Sequence[int]) -> int:
    """Return how many nodes are ranked anew."""
    return max(_CANDIDATES, max(ks) + min(max(ks), _CANDIDATES))


# -- weights of columns -------------------------------------------------------------------------


def learned_factors(
    parts: np.ndarray,
    sizes: np.ndarray,
    values: np.ndarray,
    sharpness: np.ndarray,
    own: np.ndarray,
    weight: np.ndarray | None = None,
) -> np.ndarray:
    """Return ``exp(θ)``, by which columns should count for rows to be foretold by those near them.

    The answer to row i is ``Σ_j q_ij v_ij``, ``q_ij ∝ n_j exp(-s_i Σ_a exp(θ_a + θ₀) d_ija)``:
    votes as they are, but without an end. What is minimised is ``½ log`` of the mean squared error
    of n answers, plus ``Σ θ_a² / 2τ²n``: a likelihood, and weights drawn around those of today
    (θ = 0) with a deviation τ = 0.35. θ₀ only makes votes sharper, and is free. Found by L-BFGS and
    rounded, so that the last digits of sums do not matter.

    Parameters
    ----------
    parts : ndarray of shape (rows, near, columns)
        Squared distances d of rows that are asked to those near them, by column.
    sizes, values : ndarray of shape (rows, near)
        How many rows n_j a node stands for, and the number v that they have.
    sharpness : ndarray of shape (rows,)
        How fast votes fall with the distance from each row, s.
    own : ndarray of shape (rows,)
        The numbers of the rows that are asked.
    weight : ndarray of shape (rows,), optional
        How many rows each of them counts for.
    """
    near, columns = parts.shape[1:]
    flat = parts.reshape(len(parts) * near, columns)
    counts = Targets(own, weight)
    each, n = (1.0, len(own)) if weight is None else (weight, float(weight.sum()))
    prior = 1 / (_DEVIATION**2 * n)

    def objective(at: np.ndarray) -> tuple[float, np.ndarray]:
        factors = np.exp(at[:-1] + at[-1])
        apart = (flat @ factors.astype(np.float32)).reshape(-1, near) * sharpness[:, None]
        votes = sizes * np.exp(apart.min(axis=1, keepdims=True) - apart)
        votes /= votes.sum(axis=1, keepdims=True)
        answers = (votes * values).sum(axis=1)
        error = answers - own
        mean = max(counts.mean(error**2), 1e-300)
        votes *= (values - answers[:, None]) * (each * error * sharpness / (mean * n))[:, None]
        slopes = -(votes.ravel().astype(np.float32) @ flat) * factors
        slopes = np.append(slopes + prior * at[:-1], slopes.sum())
        return np.log(mean) / 2 + prior / 2 * float(at[:-1] @ at[:-1]), slopes

    bounds = [(-6.0, 6.0)] * columns + [(-3.0, 3.0)]
    with one_blas_thread():
        best = minimize(
            objective,
            np.zeros(columns + 1),
            jac=True,
            method="L-BFGS-B",
            bounds=bounds,
            options={"maxiter": _ROUNDS},
        )
    return np.asarray(np.exp(np.round(best.x[:-1], 2)))


def reliability(guess: np.ndarray, truth: np.ndarray, weight: np.ndarray | None = None) -> float:
    """Return the b of 0 to 1 for which ``(truth - b guess)²`` is least on average."""
    if weight is not None:
        guess, truth = np.sqrt(weight) * guess, np.sqrt(weight) * truth
    return float(np.clip(truth @ guess / max(float(guess @ guess), 1e-300), 0, 1))


# -- choosing -----------------------------------------------------------------------------------


def macro_f(
    y_true: np.ndarray, y_pred: np.ndarray, n_classes: int, weight: np.ndarray | None = None
) -> float:
    """Return the mean of the classes' F, of those that are there or guessed."""
    hit = y_true == y_pred
    hits = np.bincount(y_true[hit], None if weight is None else weight[hit], n_classes)
    ours, theirs = (np.bincount(labels, weight, n_classes) for labels in (y_true, y_pred))
    there = ours + theirs > 0
    return float(np.mean(2 * hits[there] / (ours + theirs)[there]))


def chosen(
    scores: dict[Any, dict[int, float]],
) -> tuple[Any, tuple[int, ...], list[dict[str, Any]]]:
    """Return the member whose three best numbers of neighbours score highest, these, and all."""
    rows = []
    for member, by_k in scores.items():
        best = sorted(by_k, key=lambda k: (-by_k[k], k))[:_AVERAGED]
        score = float(np.mean([by_k[k] for k in best]))
        rows.append((score, member, tuple(sorted(best))))
    rows.sort(key=lambda row: -row[0])
    names = ("weight_power", "discriminant", "linear")
    table = [
        {**dict(zip(names, member, strict=False)), "n_neighbors": ks, "score": score}
        for score, member, ks in rows
    ]
    return rows[0][1], rows[0][2], table


def learning_bytes(values: np.ndarray, n_classes: int, n_rows: int) -> int:
    """Return about what it takes to learn classes from columns of so many values.

    Counts of values with classes and what is made of them, 16 arrays of floats at most; the
    coordinates of classes; those of the rows of five folds, for two powers of the weights and when
    they are compared; and those of all rows.
    """
    total = int(values.sum())
    width = int(np.minimum(values, n_classes).sum()) + min(total, n_classes)
    counted = 16 * 8 * total * n_classes + 3 * 8 * n_classes * min(total, n_classes)
    return counted + 3 * FOLDS * 4 * min(n_rows, _REFERENCE) * width + 3 * 8 * n_rows * width


def winners(votes: Any) -> np.ndarray:
    """Return the class with most votes in each row of sparse votes, the first of equal ones."""
    if not votes.shape[0]:
        return np.zeros(0, np.int64)
    sizes = np.diff(votes.indptr)
    best = np.flatnonzero(votes.data == np.repeat(row_maxima(votes), sizes))
    rows = np.repeat(np.arange(len(sizes)), sizes)[best]
    return np.asarray(votes.indices[best[np.searchsorted(rows, np.arange(len(sizes)))]], np.int64)


def row_maxima(votes: Any) -> np.ndarray:
    """Return the largest entry of each row; every row has votes."""
    return np.asarray(np.maximum.reduceat(votes.data, votes.indptr[:-1]))


def joined(parts: Sequence[Any]) -> Any:
    """Return votes one below the other, sparse ones sparse."""
    return (
        sparse.vstack(parts, format="csr") if sparse.issparse(parts[0]) else np.concatenate(parts)
    )


def calibrated(
    votes: Any, labels: np.ndarray, weight: np.ndarray | None = None
) -> tuple[float, float]:
    """Return the floor and the exponent that make votes the most likely probabilities."""
    votes = sparse.csr_array(votes)
    return min(
        product(_FLOORS, _EXPONENTS),
        key=lambda pair: float(log_losses(votes, labels, *pair).mean()),
    )


def log_losses(votes: Any, labels: np.ndarray, floor: float, exponent: float) -> np.ndarray:
    """Return the log-loss of each row for the probabilities that sparse votes become."""
    sizes = np.diff(votes.indptr)
    raised = np.add.reduceat((votes.data + floor) ** exponent, votes.indptr[:-1])
    total = raised + (votes.shape[1] - sizes) * floor**exponent
    own = np.asarray(votes[np.arange(len(labels)), labels]).ravel()
    return np.asarray(np.log(total) - exponent * np.log(own + floor))


def probabilities(votes: np.ndarray, floor: float, exponent: float) -> np.ndarray:
    """Return ``(v + floor)^exponent``, scaled to 1."""
    out = (votes + floor) ** exponent
    return np.asarray(out / out.sum(axis=1, keepdims=True))
