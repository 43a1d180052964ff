"""WeaveClassifier and WeaveRegressor: answers that are nearest rows, in a space of counts.

A row gets the weighted votes of its nearest training rows in the space of
:class:`~tabweave.SupervisedWeave`. Which member of that family, and how many neighbours, is decided
on training rows that took no part in teaching it. Every answer is a list of rows with their
weights, and every distance a sum over columns. Rows can be added and forgotten exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin, clone
from sklearn.metrics import f1_score
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d

from tabweave._compat import Interval, StrOptions
from tabweave.base import (
    Estimator,
    TabularInput,
    exclusive,
    remember_names,
    require_rows,
    seed_of,
)
from tabweave.blocks.block import Block
from tabweave.counts.counts import Counts
from tabweave.embed.supervised import SupervisedWeave, Target
from tabweave.io.register import storable
from tabweave.rows.table import Schema, Table, take_rows
from tabweave.search.index import SimilarityIndex, Stored
from tabweave.search.knn import check_classes, check_length, checked_target
from tabweave.search.scan import Derived

NEIGHBORS = (3, 5, 9, 15, 25, 40, 80)
POWERS = (0.5, 1.0)  # of the weights of columns
DISCRIMINANTS = (0.0, 0.3, 1.0)
LINEAR = (0.0, 0.5, 1.0)  # share of the linear prediction, for numbers
_AVERAGED = 3  # numbers of neighbours that vote together
_REFERENCE = 10_000  # rows at most among which neighbours are looked for when members are compared
_FEW = 10  # rows below which nothing is compared
_FLOORS = (0.001, 0.003, 0.01, 0.03, 0.1)
_EXPONENTS = (0.5, 0.6, 0.7, 0.85, 1.0, 1.2, 1.5, 2.0)


class Near(NamedTuple):
    """Rows that were asked about, and of each the squared distances and numbers of the nearest."""

    asked: np.ndarray
    squared: np.ndarray
    rows: np.ndarray


class _Neighbors(Derived, TabularInput, Estimator):
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
    _stored: Stored
    _targets: np.ndarray  # of all rows that were ever stored

    # -- learning --------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, *, ids: Any = None) -> Self:
        """Keep the rows, choose a member of the family, and learn its space.

        Parameters
        ----------
        X : frame, array, mapping of columns or list of dicts
            The rows.
        y : array-like
            The target of each row.
        ids : array-like of whole numbers or text, optional
            A name for each row; running numbers if not given.
        """
        self._validate_params()
        given = self.schema if isinstance(self.embedder, str) else self.embedder.schema
        table = Table.of(X, Schema.of(given), numbers="numeric", rules="whole")
        require_rows(table)
        targets = self._checked_targets(y, table.n_rows)
        self._stored, self._targets = Stored.of(table, ids), targets
        self.__dict__.pop("_cache", None)
        self._choose(table, targets)
        remember_names(self, table.schema)
        self._searched()
        return self

    def partial_fit(self, X: Any, y: Any, *, ids: Any = None) -> Self:
        """Add rows: counts and rows grow, the member of the family stays as it was chosen."""
        if "_stored" not in vars(self):
            return self.fit(X, y, ids=ids)
        table = self._read(X)
        targets = self._checked_targets(y, table.n_rows, first=False)
        stored = self._stored.append(table, ids)
        self.embedder_.partial_fit(table, targets)
        self._stored = stored
        self._targets = np.concatenate([self._targets, targets])
        self.__dict__.pop("_cache", None)
        return self

    def forget(self, ids: Any) -> Self:
        """Take rows away by their ids, as if they had never been counted."""
        check_is_fitted(self, "_stored")
        rows = self._stored.rows_of(ids)
        left = self._stored.without(ids)
        gone, model = take_rows(self._stored.table, rows), self.embedder_
        expanded = model._numbering.expand(gone)
        classes = model.target_.classes(self._targets[rows])
        model._hold(model.counts_ - Counts.of(expanded, classes))
        self._stored = left
        self.__dict__.pop("_cache", None)
        return self

    def _choose(self, table: Table, targets: np.ndarray) -> None:
        """Choose the member of the family and the numbers of neighbours."""
        model = SupervisedWeave() if isinstance(self.embedder, str) else clone(self.embedder)
        members = list(product(POWERS, DISCRIMINANTS))
        if not isinstance(self.embedder, str):
            members = [(float(model.weight_power), float(model.discriminant))]
        model.set_params(schema=table.schema)
        self.embedder_ = model.fit_target(table, targets, self._target(targets, model.n_bins))
        member, self.n_neighbors_ = self._compared(table, targets, members)
        self.embedder_ = self._member(*member)

    def _compared(
        self, table: Table, targets: np.ndarray, members: list[tuple[float, float]]
    ) -> tuple[tuple[float, float], tuple[int, ...]]:
        """Return the best member and its numbers of neighbours, by rows that did not teach it."""
        n = table.n_rows
        ks = NEIGHBORS if isinstance(self.n_neighbors, str) else (int(self.n_neighbors),)
        self.validation_: list[dict[str, Any]] = []
        if n < _FEW or (len(members) == 1 and len(ks) == 1):
            self._without_validation()
            default = members[0] if len(members) == 1 else (1.0, 0.3)
            return default, tuple(sorted({min(k, n) for k in ks if k <= 5} or {min(*ks, n)}))
        random = np.random.default_rng(seed_of(self.random_state))
        rows = random.permutation(n)[:_REFERENCE]
        found = self._out_of_fold(take_rows(table, rows), targets[rows], members, ks)
        return self._best(found, targets[rows])

    def _out_of_fold(
        self,
        table: Table,
        targets: np.ndarray,
        members: list[tuple[float, float]],
        ks: Sequence[int],
    ) -> dict[tuple[Any, ...], tuple[np.ndarray, np.ndarray]]:
        """Return, for each member and number of neighbours, the rows asked and what they got."""
        out: dict[tuple[Any, ...], list[tuple[np.ndarray, np.ndarray]]] = {}
        most = -(-int(self.n_validation) // 5)
        for power in dict.fromkeys(power for power, _ in members):
            model = self._member(power, 1.0)  # whose discriminant counts as its columns do
            for part, pairs in model.left_out(table, targets):
                asked, others = part[:most], np.setdiff1d(np.arange(table.n_rows), part)
                block = model.taught_by(pairs)
                apart = _split_distances(block, model, table, asked, others)
                extra = self._extra(model, pairs, table)
                for share in (d for p, d in members if p == power):
                    squared, rows = nearest(apart[0] + share * apart[1], max(ks))
                    near = Near(asked, squared, others[rows])
                    for key, votes in self._votes(near, targets, ks, extra).items():
                        out.setdefault((power, share, *key), []).append((asked, votes))
        pairs = {key: zip(*parts, strict=True) for key, parts in out.items()}
        return {
            key: (np.concatenate(asked), np.concatenate(votes))
            for key, (asked, votes) in pairs.items()
        }

    def _member(self, power: float, discriminant: float) -> SupervisedWeave:
        """Return another member of the family, of the same counts."""
        model = clone(self.embedder_).set_params(weight_power=power, discriminant=discriminant)
        for name in ("_numbering", "target_", "_cache"):
            setattr(model, name, getattr(self.embedder_, name))
        return model.fit_counts(self.embedder_.counts_)

    # -- rows ------------------------------------------------------------------------------

    def _read(self, X: Any) -> Table:
        check_is_fitted(self, "_stored")
        return self.embedder_._read_asked(X)

    @exclusive
    def _searched(self) -> tuple[np.ndarray, SimilarityIndex]:
        """Return the numbers of the rows that are there, and an index of them."""
        if "_cache" not in vars(self):
            rows = np.flatnonzero(self._stored.alive)
            index = SimilarityIndex(self.embedder_.learn(), backend="exact")
            self._cache = rows, index.fit(take_rows(self._stored.table, rows))
        return self._cache

    def _neighbors(self, table: Table) -> tuple[np.ndarray, np.ndarray]:
        """Return squared distances and numbers of the nearest stored rows."""
        rows, index = self._searched()
        found = index.query(table, min(max(self.n_neighbors_), len(rows)))
        return found.distances**2, rows[found.ids]

    def kneighbors(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return distances and ids of the training rows that vote for each row, nearest first."""
        squared, rows = self._neighbors(self._read(X))
        return np.sqrt(squared), self._stored.ids[rows]

    def explain(self, row: Any, n_neighbors: int = 5) -> list[dict[str, Any]]:
        """Say which rows an answer comes from, and which columns made them near.

        Parameters
        ----------
        row : dict or one-row frame
            The row asked about.
        n_neighbors : int, default=5
            How many of the rows are shown, those of most weight first.

        Returns
        -------
        list of dict
            ``id``, ``target``, ``weight`` (its share in the votes), ``distance``, and ``shares``:
            what each column adds to the squared distance.
        """
        table = self._read([row] if isinstance(row, dict) else row)
        if table.n_rows != 1:
            raise ValueError(f"expected one row, got {table.n_rows}")
        squared, rows = self._neighbors(table)
        weights = vote_weights(squared, self.n_neighbors_, self.sharpness)[0]
        block = self.embedder_.blocks_
        out = []
        for i in np.argsort(-weights, kind="stable")[:n_neighbors]:
            other = take_rows(self._stored.table, rows[0, i : i + 1])
            shares = block.shares(table, other)
            out.append(
                {
                    "id": self._stored.ids[rows[0, i]].item(),
                    "target": self._shown(self._targets[rows[0, i]]),
                    "weight": float(weights[i]),
                    "distance": float(np.sqrt(squared[0, i])),
                    "shares": {name: float(share[0]) for name, share in shares.items()},
                }
            )
        return out


@storable
class WeaveClassifier(ClassifierMixin, _Neighbors):
    """Classify rows of any table by their nearest rows; every answer is rows and columns.

    Parameters
    ----------
    n_neighbors : "auto" or int, default="auto"
        Number of neighbours; "auto" tries 3 to 80 on training rows, and lets the three best vote
        together.
    embedder : "validated" or SupervisedWeave, default="validated"
        The space. "validated" chooses among six members of the family: two powers of the weights
        of columns, three shares of the discriminant.
    sharpness : float, default=4.0
        A neighbour at squared distance d votes with ``exp(-sharpness · d / d_k)``, d_k that of the
        last one; 0 gives all the same vote.
    n_validation : int, default=1000
        How many rows at most are asked when members are compared, among at most 10,000 others: the
        cost of choosing does not grow with the rows beyond that.
    schema : Schema or mapping of column to kind, optional
        What the columns are; numbers are numeric unless declared otherwise.
    random_state : int, RandomState, Generator or None, default=0
        Which rows are asked.

    Attributes
    ----------
    classes_ : ndarray
        The classes, sorted.
    embedder_ : SupervisedWeave
        The space that was chosen.
    n_neighbors_ : tuple of int
        The numbers of neighbours that vote.
    validation_ : list of dict
        Macro F of each member on rows that did not teach it, best first.
    calibration_ : tuple of float
        Floor and exponent by which votes become probabilities.

    Notes
    -----
    When members are compared, a row's classes are taken out of the counts before it is asked: what
    a value says of the class is learned from the other rows. Probabilities are the votes v as
    ``(v + floor)^exponent``, scaled to 1, where both minimise the log-loss of the same rows; the
    class of most votes stays the most probable.

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

    def partial_fit(self, X: Any, y: Any, classes: Any = None, *, ids: Any = None) -> Self:
        """Add rows: counts and rows grow, the member of the family stays as it was chosen.

        Parameters
        ----------
        X, y, ids
            As in :meth:`fit`.
        classes : array-like, optional
            All classes there will be, if the first rows do not have them; for the first call.
        """
        self._announced = None if classes is None else np.unique(column_or_1d(classes))
        try:
            return super().partial_fit(X, y, ids=ids)
        finally:
            del self._announced

    def _checked_targets(self, y: Any, n_rows: int, first: bool = True) -> np.ndarray:
        labels = checked_target(y, type(self).__name__)
        check_length(labels, n_rows)
        check_classification_targets(labels)
        if first:
            announced = vars(self).get("_announced")
            self.classes_ = np.unique(labels) if announced is None else announced
            check_classes(self.classes_)
        unknown = np.setdiff1d(labels, self.classes_)
        if len(unknown):
            known, found = self.classes_.tolist(), unknown.tolist()[0]
            raise ValueError(f"expected classes of fit, {known}, got {found!r}")
        return np.searchsorted(self.classes_, labels)

    def _target(self, targets: np.ndarray, n_bins: int) -> Target:
        return Target()

    def _shown(self, target: Any) -> Any:
        return self.classes_[target].item() if hasattr(target, "item") else self.classes_[target]

    def _extra(self, model: SupervisedWeave, pairs: np.ndarray, table: Table) -> None:
        return None

    def _votes(
        self, near: Near, targets: np.ndarray, ks: Sequence[int], extra: None
    ) -> dict[tuple[Any, ...], np.ndarray]:
        labels = targets[near.rows]
        return {(k,): self._shares(near.squared, labels, (k,)) for k in ks}

    def _shares(self, squared: np.ndarray, labels: np.ndarray, ks: Sequence[int]) -> np.ndarray:
        """Return each class's share in the votes."""
        weights = vote_weights(squared, ks, self.sharpness)
        n = len(self.classes_)
        where = labels + n * np.arange(len(labels))[:, None]
        return np.bincount(where.ravel(), weights.ravel(), n * len(labels)).reshape(-1, n)

    def _best(
        self, found: dict[tuple[Any, ...], tuple[np.ndarray, np.ndarray]], targets: np.ndarray
    ) -> tuple[tuple[float, float], tuple[int, ...]]:
        scores: dict[tuple[float, float], dict[int, float]] = {}
        for (power, share, k), (rows, votes) in found.items():
            score = f1_score(targets[rows], votes.argmax(axis=1), average="macro")
            scores.setdefault((power, share), {})[k] = float(score)
        member, ks, self.validation_ = chosen(scores)
        rows = found[(*member, ks[0])][0]
        votes = np.mean([found[(*member, k)][1] for k in ks], axis=0)
        self.calibration_ = calibrated(votes, targets[rows])
        return member, ks

    def _without_validation(self) -> None:
        self.calibration_ = (_FLOORS[0], 1.0)

    def predict(self, X: Any) -> np.ndarray:
        """Return the class of each row."""
        winners = self.predict_proba(X).argmax(axis=1)
        return self.classes_[winners]

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each class, calibrated on training rows."""
        squared, rows = self._neighbors(self._read(X))
        votes = self._shares(squared, self._targets[rows], self.n_neighbors_)
        return probabilities(votes, *self.calibration_)


@storable
class WeaveRegressor(RegressorMixin, _Neighbors):
    """Predict a number for rows of any table by their nearest rows.

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
    validation_ : list of dict
        R² of each member on rows that did not teach it, best first.

    Notes
    -----
    The answer is ``ρ l(x) + Σ w_i (y_i - ρ l(x_i))``: the weighted mean of the neighbours' targets,
    corrected by how far the row lies from them along a ridge regression l of the target on the
    values of all columns. ρ is 0, ½ or 1, as is best on training rows.

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
        try:
            return values.astype(np.float64)
        except (TypeError, ValueError):
            raise ValueError(
                f"expected y to be numbers, got {values.dtype}; use WeaveClassifier for classes"
            ) from None

    def _target(self, targets: np.ndarray, n_bins: int) -> Target:
        return Target.of_numbers(targets, int(n_bins))

    def _shown(self, target: Any) -> float:
        return float(target)

    linear_: float

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

    def _extra(self, model: SupervisedWeave, pairs: np.ndarray, table: Table) -> np.ndarray:
        return self._line(model, pairs)(table)

    def _votes(
        self, near: Near, targets: np.ndarray, ks: Sequence[int], extra: np.ndarray
    ) -> dict[tuple[Any, ...], np.ndarray]:
        out = {}
        for k in ks:
            weights = vote_weights(near.squared, (k,), self.sharpness)
            for share in LINEAR:
                left = targets - share * extra
                means = (weights * left[near.rows]).sum(axis=1)
                out[k, share] = means + share * extra[near.asked]
        return out

    def _best(
        self, found: dict[tuple[Any, ...], tuple[np.ndarray, np.ndarray]], targets: np.ndarray
    ) -> tuple[tuple[float, float], tuple[int, ...]]:
        spread = max(float(targets.var()), 1e-300)
        scores: dict[tuple[float, ...], dict[int, float]] = {}
        for (power, discriminant, k, share), (rows, guess) in found.items():
            error = float(np.mean((targets[rows] - guess) ** 2))
            scores.setdefault((power, discriminant, share), {})[k] = 1 - error / spread
        member, ks, self.validation_ = chosen(scores)
        self.linear_ = float(member[2])
        return (member[0], member[1]), ks

    def _without_validation(self) -> None:
        self.linear_ = 0.0

    def predict(self, X: Any) -> np.ndarray:
        """Return the number of each row."""
        table = self._read(X)
        squared, rows = self._neighbors(table)
        weights = vote_weights(squared, self.n_neighbors_, self.sharpness)
        if not self.linear_:
            return np.asarray((weights * self._targets[rows]).sum(axis=1))
        pairs = self.embedder_._coupled().class_pairs
        assert pairs is not None
        line = self._line(self.embedder_, pairs.astype(float))
        known, inverse = np.unique(rows, return_inverse=True)
        left = self._targets[known] - self.linear_ * line(take_rows(self._stored.table, known))
        near = left[inverse.reshape(rows.shape)]
        return np.asarray((weights * near).sum(axis=1) + self.linear_ * line(table))


# -- votes --------------------------------------------------------------------------------------


def vote_weights(squared: np.ndarray, ks: Sequence[int], sharpness: float) -> np.ndarray:
    """Return the weights of neighbours, nearest first: ``exp(-s d / d_k)``, mean over the ks.

    Of rows that are all at distance 0, each has the same weight. Weights of a row add up to 1.
    """
    out = np.zeros(squared.shape)
    for k in ks:
        k = min(k, squared.shape[1])
        last = squared[:, k - 1 : k]
        own = np.exp(-sharpness * squared[:, :k] / np.where(last > 0, last, 1))
        out[:, :k] += own / own.sum(axis=1, keepdims=True) / len(ks)
    return out


def nearest(apart: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the k smallest entries of each row in order, and where they stand."""
    k = min(k, apart.shape[1])
    where = np.argpartition(apart, k - 1, axis=1)[:, :k]
    found = np.take_along_axis(apart, where, axis=1)
    order = np.lexsort((where, found), axis=1)
    return np.take_along_axis(found, order, axis=1), np.take_along_axis(where, order, axis=1)


def _split_distances(
    block: Block, model: SupervisedWeave, table: Table, asked: np.ndarray, others: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return squared distances by the columns, and by the discriminant."""
    left, right = (
        block.coordinates(take_rows(table, rows), dtype=np.float32) for rows in (asked, others)
    )
    linear = model.discriminant_
    edge = block.width - (0 if linear is None else linear.width)
    columns = squares(left[:, :edge], right[:, :edge])
    return columns, squares(left[:, edge:], right[:, edge:])


def squares(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return squared distances by products; small ones may be rounded."""
    out = x @ y.T
    out *= -2
    out += (x**2).sum(axis=1)[:, None]
    out += (y**2).sum(axis=1)
    return np.maximum(out, 0, out=out)


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


def calibrated(votes: np.ndarray, labels: np.ndarray) -> tuple[float, float]:
    """Return the floor and the exponent that make votes the most likely probabilities."""
    rows = np.arange(len(labels))

    def loss(pair: tuple[float, float]) -> float:
        return float(-np.log(probabilities(votes, *pair)[rows, labels]).mean())

    return min(product(_FLOORS, _EXPONENTS), key=loss)


def probabilities(votes: np.ndarray, floor: float, exponent: float) -> np.ndarray:
    """Return ``(v + floor)^exponent``, scaled to 1."""
    out = (votes + floor) ** exponent
    return np.asarray(out / out.sum(axis=1, keepdims=True))
