"""RowModel: what the cells of a row say of each other, learned once, asked about any cell.

Three engines look at a cell: a regression on the other cells, which needs counts and moments only;
a mixture of independent parts (:class:`~tabweave.NonBEND`), which needs nothing of the gaps of the
row; and the nearest rows under a metric learned for the column of the cell. The mean of what they
say is the guess. :class:`~tabweave.Imputer` asks about gaps, :class:`~tabweave.OutlierCells` about
cells that are there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, pairwise
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.linalg.lapack import dpotrf
from scipy.sparse import coo_array, csr_array

from tabweave._compat import eigh, one_blas_thread, seed_of
from tabweave.columns.column import Column, Schema
from tabweave.columns.datetime import Datetimes
from tabweave.columns.frames import object_array
from tabweave.columns.nominal import Codes
from tabweave.columns.numeric import Numbers
from tabweave.columns.sets import Sets
from tabweave.columns.table import (
    Table,
    ordinal_as_nominal,
    remember_names,
    require_rows,
    take_rows,
)
from tabweave.columns.vocabulary import Label, Vocabulary, positions, slices
from tabweave.counts.counting import available_memory
from tabweave.counts.counts import Counts
from tabweave.counts.spectra import CrossMoments
from tabweave.counts.unknown import check_types
from tabweave.embed.nonbend import VI
from tabweave.embed.nonbend.nonbend import NonBEND, subspace_weights, value_probabilities
from tabweave.io.register import storable
from tabweave.space.numbers import BINNED, quantile_bins, with_bins
from tabweave.space.scan import Nodes, Queries, nearest_nodes

ENGINES = ("counts", "mixture", "neighbors")
MAX_VALUES = 200  # Rarer values of a column are neither guessed nor looked at.
_RIDGE = 0.02  # of standardised features
_NOISE = 0.3  # what is added to it for as many features as rows
_BINS = 0.15  # weight of a number's bins in the regression, beside the number itself
_SMOOTHING = 5.0  # pseudo-counts of the marginal in p(value | other value)
MIN_EVIDENCE = 0.01  # A column that tells nothing still weighs so much among neighbours.
ONE_IN_TWENTY = 1.64  # So many deviations above its mean a normal number lies once in twenty times.
MAX_PREDICTORS = 40  # So many columns at most predict another in the regression.
MAX_FEATURES = 1500  # They have so many values at most, if there is more than one.
RANGE_TAIL = 0.2  # A number lies between this quantile of its neighbours' and the opposite one.
_SHARPNESS = 4.0  # votes fall as exp(-4 d / d_k)
_REFERENCE = 4096  # rows at most among which neighbours are looked for
MIN_ROWS_OF_EVIDENCE = 5  # A value that fewer rows have is no reason for another.
MAX_DECIMAL_PLACES = 12  # Numbers with more of them are measurements that nobody rounded.
MAX_COLUMNS = 64  # Tables with more columns are learned block by block, and so large are blocks.
MAX_BLOCK_VALUES = 4000  # A block of several columns has so many values at most.
MAX_TARGETS = 32  # So many columns at most are guessed in one block; the others tell of them.
COARSE_BINS = 6  # Bins of a number where all pairs of columns are compared.
SAMPLE_ROWS = 1000  # Rows at most by which all pairs of columns are compared.
FLOOR = 1e-3  # probability of what an engine rules out
_FITS = 4  # of the mixture
_FAR = 1e100  # deviations from the mean at most
_QUERIES = 1 << 14  # rows that are filled at a time
_CELLS = 1 << 22  # of a dense matrix that are held at a time
_DENSE = 0.2  # share of a sparse matrix from which on a dense one is faster
MIN_RELATIVE_RIDGE = 1e-10  # It is larger than rounding errors of the largest covariances.
_ROUNDING = 1e-11  # eigenvalues that may be negative by so much are 0


@storable
@dataclass(frozen=True, eq=False)
class RowModel:
    """What the cells of a row say of each other, from counts, moments, a mixture and rows.

    Attributes
    ----------
    names, numbers, sets : list of str
        The columns, those of numbers, those of sets.
    edges : dict of str to ndarray
        The bins of numbers.
    labels : dict of str to tuple
        The values of each column, of a number its bins, missing left out.
    pairs : ndarray of shape (V, V)
        In how many rows two values meet.
    both : ndarray of shape (columns, columns)
        In how many rows two columns have a cell each.
    moments : CrossMoments
        The moments of numbers.
    z_sums : ndarray of shape (V, numbers)
        The sums of standardised numbers over the rows that have a value.
    seen : dict of str to list of ndarray
        The numbers of each bin that fit has seen, at most a thousand of each.
    subspaces : list of (ndarray, ndarray)
        The mixture, fit by fit: log weights of its parts, and log probabilities of values in them.
    n_neighbors : int
        How many of the nearest rows say something.
    wanted : tuple of str
        The engines that were asked for.
    reference, reference_z, observed : ndarray
        The rows among which neighbours are looked for: codes, standardised numbers, and which
        cells are there.
    engines : dict of str to tuple of str
        The engines that guess each column.
    """

    names: list[str]
    numbers: list[str]
    sets: list[str]
    edges: dict[str, np.ndarray]
    labels: dict[str, tuple[Label, ...]]
    pairs: np.ndarray
    both: np.ndarray
    moments: CrossMoments
    z_sums: np.ndarray
    seen: dict[str, list[np.ndarray]]
    subspaces: list[tuple[np.ndarray, np.ndarray]]
    n_neighbors: int
    wanted: tuple[str, ...]
    reference: np.ndarray
    reference_z: np.ndarray
    observed: np.ndarray
    engines: dict[str, tuple[str, ...]]
    needs_evidence: bool = False  # whether columns that tell nothing stay out of the regression
    dated: tuple[str, ...] = ()  # the columns of numbers that are seconds since 1970

    @classmethod
    def of(
        cls, table: Table, n_bins: int, seed: int, wanted: Sequence[str], n_neighbors: int
    ) -> RowModel:
        """Learn from rows."""
        plain = ordinal_as_nominal(table)
        edges = quantile_bins(plain, n_bins)
        expanded = with_bins(plain, edges)
        counts = Counts.of(expanded.select([c.name for c in expanded.schema.categorical]))
        moments = CrossMoments.of(expanded)
        names = table.schema.names
        numbers = [c.name for c in table.schema.numeric]
        sets = [c.name for c in table.schema.columns if c.kind == "set"]
        where = {n: n + BINNED if n in numbers else n for n in names}
        labels, kept = {}, []
        for name in names:
            own, at = _frequent(counts, where[name])
            labels[name] = own
            kept.append(at)
        values = np.concatenate([np.zeros(0, np.intp), *kept])
        block = counts.pairs[values][:, values]
        pairs = (block.toarray() if hasattr(block, "toarray") else block).astype(float)
        both = _both(counts, [where[n] for n in names], table.n_rows)
        order = counts.vocabulary.reindex(moments.vocabulary) if moments.names else values
        if moments.names and not sets:
            z_sums = moments.value_sums(1 / _scale(moments)[1])[order][values]
        else:
            z_sums = _z_sums(expanded, labels, where, moments)
        empty = np.zeros((0, 0))
        model = cls(
            names, numbers, sets, edges, labels, pairs, both, moments, z_sums,
            _numbers_by_bin(table, edges, labels), [], n_neighbors, tuple(wanted),
            empty.astype(np.int32), empty, empty.astype(bool), {}, False,
            tuple(column.name for column, data in table if isinstance(data, Datetimes)),
        )  # fmt: skip
        if "mixture" in wanted:
            model = replace(model, subspaces=model._mixture(table, seed))
        return model

    # -- layout ----------------------------------------------------------------------------

    @cached_property
    def sizes(self) -> np.ndarray:
        """Number of values of each column."""
        return np.array([len(self.labels[name]) for name in self.names])

    @cached_property
    def spans(self) -> list[slice]:
        """Where the values of each column lie among all."""
        edges = np.concatenate([[0], np.cumsum(self.sizes)])
        return [slice(a, b) for a, b in pairwise(edges.tolist())]

    @cached_property
    def share(self) -> np.ndarray:
        """Of the rows that have the column, the share that has each value."""
        own = np.maximum(np.repeat(np.diagonal(self.both), self.sizes), 1)
        return np.diagonal(self.pairs) / own

    @cached_property
    def evidence(self) -> np.ndarray:
        """What each column tells of each other: the share of its variance that it explains.

        ``evidence[a, b]`` is what column b tells of column a, less what chance would.
        """
        filled = np.flatnonzero(self.sizes)
        out = np.zeros((len(self.names), len(self.names)))
        starts = np.array([self.spans[b].start for b in filled], np.intp)
        for a, name in enumerate(self.names):
            if self.sizes[a]:
                met = self.pairs[:, self.spans[a]]
                out[a, filled] = explained_variance(met, starts, ranked=name in self.numbers)
        np.fill_diagonal(out, 0)
        return out

    @cached_property
    def scale(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean and deviation of each number."""
        return _scale(self.moments)

    @cached_property
    def bin_means(self) -> dict[str, np.ndarray]:
        """The mean standardised number of each bin."""
        return {
            name: np.array([self.standardised(name, own).mean() for own in self.seen[name]])
            for name in self.numbers
        }

    def standardised(self, name: str, numbers: np.ndarray) -> np.ndarray:
        """Return numbers of a column in deviations from its mean."""
        mean, deviation = self.scale
        j = self.numbers.index(name)
        return _standardised(numbers, mean[j], deviation[j])

    def usable(self, name: str, engines: Sequence[str]) -> tuple[str, ...]:
        """Return the engines that can guess a column."""
        if name in self.sets:
            return ("counts",)
        single = [n for n in self.names if n not in self.sets]
        own = tuple(e for e in engines if e != "mixture" or self.subspaces)
        own = tuple(e for e in own if e != "mixture" or name not in self.numbers or len(own) == 1)
        return own if len(single) > 1 else ("counts",)

    # -- rows ------------------------------------------------------------------------------

    def cells(self, table: Table) -> Cells:
        """Return rows as this model sees them."""
        expanded = with_bins(ordinal_as_nominal(table), self.edges)
        codes = np.full((len(self.names), table.n_rows), -1, np.int32)
        z = np.full((len(self.numbers), table.n_rows), np.nan)
        unseen = np.zeros(codes.shape, bool)
        elements: dict[str, np.ndarray] = {}
        for a, name in enumerate(self.names):
            data = table[name]
            if name in self.sets:
                elements[name] = _indicators(data, self.labels[name])
                continue
            if isinstance(data, Numbers):
                z[self.numbers.index(name)] = self.standardised(name, data.values)
                data = expanded[name + BINNED]
            elif name in self.numbers:  # a column that was emptied
                data = Codes(data.codes, [None])
            found = positions(self.labels[name], data.labels)
            code = np.where(found < self.sizes[a], found, -1).astype(np.int32)
            gap = [i for i, label in enumerate(data.labels) if label is None]
            code[gap] = -1
            new = code < 0
            new[gap] = False
            codes[a], unseen[a] = code[data.codes], new[data.codes]
        return Cells(codes, z, elements, unseen)

    def check_types(self, table: Table) -> None:
        """Raise for a column of rows that are asked about whose type is another than in fit."""
        for name, known in self.labels.items():
            if name not in self.numbers:
                check_types(name, table[name], known)

    def with_reference(self, table: Table, n_rounds: int) -> RowModel:
        """Return the model with rows to look for neighbours in, their gaps filled."""
        if "neighbors" not in self.wanted:
            return self
        some = take_rows(table, np.arange(min(table.n_rows, _REFERENCE)))
        cells = self.cells(some)
        first = tuple(e for e in self.wanted if e != "neighbors") or ("counts",)
        simple = self.changed(engines={n: self.usable(n, first) for n in self.names})
        codes, z = simple.completed(cells, n_rounds)
        return simple.changed(
            engines=self.engines, reference=codes, reference_z=z, observed=cells.codes >= 0
        )

    def changed(self, **fields: Any) -> RowModel:
        """Return the model with other rows or engines; the regression follows from neither."""
        out = replace(self, **fields)
        for name in ("coefficients", "evidence", "lines"):
            if name in vars(self):
                vars(out)[name] = vars(self)[name]
        return out

    def filled(self, table: Table, n_rounds: int) -> dict[str, Guess]:
        """Return a guess for every gap of a table, block by block of its rows."""
        parts: list[dict[str, Guess]] = []
        for start in range(0, table.n_rows, _QUERIES):
            rows = np.arange(start, min(start + _QUERIES, table.n_rows))
            cells = self.cells(take_rows(table, rows))
            found = self._gone_through(cells, n_rounds)
            parts.append({n: self._of_gaps(n, g, cells, start) for n, g in found.items()})
        out = {}
        for name in self.names:
            own = [part[name] for part in parts if name in part]
            if own:
                proba = np.concatenate([g.proba for g in own])
                number = None if own[0].number is None else np.concatenate([g.number for g in own])
                if number is not None:
                    j = self.numbers.index(name)
                    with np.errstate(over="ignore"):
                        number = number * self.scale[1][j] + self.scale[0][j]
                    number = self.as_written(name, number)
                out[name] = Guess(np.concatenate([g.rows for g in own]), proba, number)
        return out

    def as_written(self, name: str, numbers: np.ndarray) -> np.ndarray:
        """Return numbers within the range of a column, with as many decimals as it has.

        Dates are at its resolution: days, hours, minutes or seconds.
        """
        seen = np.concatenate(self.seen[name])
        if name in self.dated:
            numbers = Datetimes(seen).nearest(numbers)
        elif (places := decimal_places(seen)) is not None:
            numbers = np.round(numbers, places) + 0.0  # no negative zero
        return np.clip(numbers, seen.min(), seen.max())  # no people of a negative age

    def _of_gaps(self, name: str, guess: Guess, cells: Cells, start: int) -> Guess:
        """Return what is guessed of gaps: a value that fit has not seen is a cell all the same."""
        kept = ~cells.unseen[self.names.index(name), guess.rows]
        number = None if guess.number is None else guess.number[kept]
        return Guess(guess.rows[kept] + start, guess.proba[kept], number)

    def completed(self, cells: Cells, n_rounds: int) -> tuple[np.ndarray, np.ndarray]:
        """Return codes and numbers without gaps."""
        return self._with_guesses(cells.codes, cells.z, self._gone_through(cells, n_rounds))

    def _with_guesses(
        self, codes: np.ndarray, z: np.ndarray, guesses: Mapping[str, Guess]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return codes and numbers with guesses in their gaps."""
        codes, z = codes.copy(), z.copy()
        for name, guess in guesses.items():
            if name not in self.sets:
                codes[self.names.index(name), guess.rows] = guess.proba.argmax(axis=1)
            if name in self.numbers:
                z[self.numbers.index(name), guess.rows] = guess.number
        return codes, z

    def _gone_through(self, cells: Cells, n_rounds: int) -> dict[str, Guess]:
        """Guess all gaps, and again with the guesses; numbers are standardised."""
        guesses = self._first(cells)
        base = dict(guesses)
        nearest: dict[str, Neighbors] = {}
        for _ in range(n_rounds):
            codes, z = self._with_guesses(cells.codes, np.nan_to_num(cells.z), guesses)
            before = Round(codes, z, cells.elements, self.indicators(cells, guesses))
            guesses = {name: self._guess(name, base[name], before, nearest) for name in guesses}
        return guesses

    def _first(self, cells: Cells) -> dict[str, Guess]:
        """Return what the mixture says of all gaps, or the marginal."""
        out = {}
        mixed = self._mixed(cells) if self.subspaces else {}
        for a, name in enumerate(self.names):
            if name in self.sets:
                rows = np.flatnonzero(np.isnan(cells.elements[name][:, :1]).any(axis=1))
            else:
                rows = np.flatnonzero(cells.codes[a] < 0)
            if not len(rows) or not self.sizes[a]:  # nothing can be said of an empty column
                continue
            share = np.tile(self.share[self.spans[a]], (len(rows), 1))
            proba = mixed.get(name, share)
            number = proba @ self.bin_means[name] if name in self.numbers else None
            out[name] = Guess(rows, proba, number)
        return out

    def _guess(
        self, name: str, first: Guess, before: Round, nearest: dict[str, Neighbors]
    ) -> Guess:
        """Return the mean of what the engines of a column say, after the first guess and others."""
        found: list[tuple[np.ndarray, np.ndarray | None]] = []
        for engine in self.engines[name]:
            if engine == "mixture":
                found.append((first.proba, first.number))
            elif engine == "counts":
                found.append(self._regressed(name, first.rows, before))
            else:
                found.append(self._voted(name, first.rows, before.codes, nearest))
        proba = np.mean([p for p, _ in found], axis=0)
        if name not in self.numbers:
            return Guess(first.rows, proba, None)
        number = np.mean([x for _, x in found], axis=0)
        if name in nearest:  # nothing is invented between or beyond the rows that speak for it
            number = np.clip(number, *self._voted_range(name, nearest[name]))
        return Guess(first.rows, proba, number)

    # -- the regression --------------------------------------------------------------------

    @cached_property
    def unit(self) -> np.ndarray:
        """What an indicator is multiplied by: one over the root of its share; bins count less."""
        bins = np.repeat([name in self.numbers for name in self.names], self.sizes)
        root = np.sqrt(np.maximum(self.share, 1e-300))
        return np.where(self.share > 0, np.where(bins, _BINS, 1.0) / root, 0.0)

    def _covariance(self) -> np.ndarray:
        """Return the covariance of features, each pair over the rows that have both."""
        n_values, p = len(self.share), len(self.numbers)
        out = np.zeros((n_values + p, n_values + p))
        both = np.maximum(np.repeat(np.repeat(self.both, self.sizes, 0), self.sizes, 1), 1)
        out[:n_values, :n_values] = self.pairs / both - np.outer(self.share, self.share)
        out[:n_values, :n_values] *= np.outer(self.unit, self.unit)
        if p:
            at = [self.names.index(name) for name in self.numbers]
            rows = np.maximum(np.repeat(self.both[:, at], self.sizes, 0), 1)
            out[:n_values, n_values:] = self.z_sums / rows * self.unit[:, None]
            out[n_values:, :n_values] = out[:n_values, n_values:].T
            n = np.maximum(self.moments.products[2], 1)
            out[n_values:, n_values:] = self.moments.centred(1 / self.scale[1]) / n
        return out

    @cached_property
    def coefficients(self) -> dict[str, np.ndarray]:
        """What each feature adds to the features of a column, per column.

        It is 0 for those of columns that do not predict it, and for its own.
        """
        n_rows = max(np.diagonal(self.both).max(initial=0), 1)
        covariance = positive(self._covariance(), _ROUNDING)
        features = [self._features(name) for name in self.names]
        out = {}
        for a, name in enumerate(self.names):
            out[name] = np.zeros((len(covariance), len(features[a])))
            at = np.concatenate([np.zeros(0, np.intp), *(features[b] for b in self.predictors(a))])
            if len(at) and len(features[a]):
                ridge = _RIDGE + _NOISE * (len(at) + len(features[a])) / n_rows
                system = covariance[np.ix_(at, at)]
                ridge = max(ridge, MIN_RELATIVE_RIDGE * system.diagonal().max())
                system[np.diag_indices_from(system)] += ridge
                target = covariance[np.ix_(at, features[a])]
                with one_blas_thread():
                    out[name][at] = cho_solve(cho_factor(system, lower=True), target)
        return out

    def predictors(self, a: int) -> np.ndarray:
        """Return the columns that predict a column: sets and those that tell most of it."""
        told = self.evidence[a] + [2.0 * (name in self.sets) for name in self.names]
        order = np.argsort(-told, kind="stable")
        order = order[order != a]
        order = (order[told[order] > 0] if self.needs_evidence else order)[:MAX_PREDICTORS]
        n_features = np.cumsum(self.sizes[order])
        return order[n_features <= max(MAX_FEATURES, n_features[:1].sum())]

    def _features(self, name: str) -> np.ndarray:
        """Return where the features of a column lie: its values, and behind all values itself."""
        span = self.spans[self.names.index(name)]
        itself = [len(self.share) + self.numbers.index(name)] if name in self.numbers else []
        return np.array([*range(span.start, span.stop), *itself], np.intp)

    @cached_property
    def lines(self) -> dict[str, np.ndarray]:
        """What each value adds to the features of a column, per column.

        The values of a column add nothing in the mean, those of a set as they are.
        """
        weights = np.repeat([name not in self.sets for name in self.names], self.sizes) * self.share
        filled = np.flatnonzero(self.sizes)  # a column that is empty says nothing
        starts = np.array([self.spans[b].start for b in filled], np.intp)
        out = {}
        for name, beta in self.coefficients.items():
            own = self.unit[:, None] * beta[: len(weights)]
            if len(filled):
                means = np.add.reduceat(weights[:, None] * own, starts, axis=0)
                own -= np.repeat(means, self.sizes[filled], axis=0)
            out[name] = own
        return out

    def indicators(self, cells: Cells, guesses: Mapping[str, Guess]) -> csr_array:
        """Return which value each cell of rows has; of a gap how likely each is. Sets have none."""
        rows, columns, values = [np.zeros(0, np.intp)], [np.zeros(0, np.intp)], [np.zeros(0)]
        for b, name in enumerate(self.names):
            if name in self.sets:
                continue
            start, codes = self.spans[b].start, cells.codes[b]
            there = np.flatnonzero(codes >= 0)
            rows.append(there)
            columns.append(start + codes[there])
            values.append(np.ones(len(there)))
            if name in guesses:
                proba = guesses[name].proba
                rows.append(np.repeat(guesses[name].rows, proba.shape[1]))
                columns.append(np.tile(np.arange(start, start + proba.shape[1]), len(proba)))
                values.append(proba.ravel())
        where = np.concatenate(rows), np.concatenate(columns)
        shape = cells.codes.shape[1], len(self.share)
        return coo_array((np.concatenate(values), where), shape).tocsr()

    def expected(self, name: str, rows: np.ndarray, before: Round) -> np.ndarray:
        """Return what the other cells of rows add to the features of a column."""
        n_values, lines = len(self.share), self.lines[name]
        total = before.z[:, rows].T @ self.coefficients[name][n_values:]  # its own adds 0
        for part in slices(len(rows), n_values, _CELLS):
            own = before.indicators[rows[part]]
            full = own.nnz > _DENSE * own.shape[0] * n_values
            total[part] += (own.toarray() if full else own) @ lines
        for other in self.sets:
            if other != name:
                span = self.spans[self.names.index(other)]
                elements = np.nan_to_num(before.elements[other][rows] - self.share[span])
                total += elements @ lines[span]
        return total

    def _regressed(
        self, name: str, rows: np.ndarray, before: Round
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Return probabilities and number by regression on the other cells, gaps as guessed."""
        a = self.names.index(name)
        total = self.expected(name, rows, before)
        share, unit = self.share[self.spans[a]], self.unit[self.spans[a]]
        size = len(share)
        proba = share + total[:, :size] / np.where(unit > 0, unit, 1)
        if name in self.sets:
            return np.clip(proba, 0, 1), None
        proba = np.maximum(proba, FLOOR)
        proba = proba / proba.sum(axis=1, keepdims=True)
        return proba, total[:, size] if name in self.numbers else None

    # -- the mixture -----------------------------------------------------------------------

    def _mixture(self, table: Table, seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return log weights of subspaces and log probabilities of values in them, fit by fit."""
        single = [n for n in self.names if n not in self.sets]
        if len(single) < 2:
            return []
        words = Vocabulary(tuple(single), tuple((*self.labels[n], None) for n in single))
        codes = self.cells(table).codes[[self.names.index(n) for n in single]]
        named = {
            n: Codes(np.where(own < 0, len(words.labels[a]) - 1, own), list(words.labels[a]))
            for a, (n, own) in enumerate(zip(single, codes, strict=True))
        }
        schema = Schema(tuple(Column(n) for n in single), complete=True)
        model = NonBEND(VI(), n_fits=_FITS, random_state=seed)
        model.fit(Table(schema, tuple(named.values()), table.n_rows))
        prior = model._prior(model.counts_)
        out = []
        for fit in model.fits_:
            theta = value_probabilities(fit, prior)
            out.append((np.log(subspace_weights(fit)), self._log_theta(model.counts_, theta)))
        return out

    def _log_theta(self, counts: Counts, theta: np.ndarray) -> np.ndarray:
        """Return log probabilities of all values of this model, those of gaps left out."""
        out = np.zeros((len(self.share), theta.shape[1]))
        for a, name in enumerate(self.names):
            if name in self.sets:
                continue
            own = theta[counts.span(name)]
            found = positions(counts.labels[counts.vocabulary.index(name)], self.labels[name])
            own = np.vstack([own, np.full(own.shape[1], 1e-9)])[found]
            out[self.spans[a]] = np.log(own / np.maximum(own.sum(axis=0), 1e-300))
        return out

    def _mixed(self, cells: Cells) -> dict[str, np.ndarray]:
        """Return what the mixture says of the gaps of each column."""
        gaps = {
            name: np.flatnonzero(cells.codes[a] < 0)
            for a, name in enumerate(self.names)
            if name not in self.sets
        }
        some = np.unique(np.concatenate([np.zeros(0, np.intp), *gaps.values()]))
        out: dict[str, np.ndarray] = {}
        for weights, logs in self.subspaces:
            posterior = np.exp(_normal(self._log_joint(cells, some, weights, logs)))
            for name, rows in gaps.items():
                if len(rows):
                    own = np.exp(logs[self.spans[self.names.index(name)]])
                    added = posterior[np.searchsorted(some, rows)] @ own.T / len(self.subspaces)
                    out[name] = out[name] + added if name in out else added
        return out

    def _log_joint(
        self, cells: Cells, rows: np.ndarray, weights: np.ndarray, logs: np.ndarray
    ) -> np.ndarray:
        """Return the log probability of the cells of rows with each subspace."""
        total = np.tile(weights, (len(rows), 1))
        for a, name in enumerate(self.names):
            if name not in self.sets and self.sizes[a]:
                codes = cells.codes[a, rows]
                known = np.vstack([logs[self.spans[a]], np.zeros(logs.shape[1])])
                total += known[codes]  # -1 is the last line: a gap says nothing
        return total

    # -- the neighbours --------------------------------------------------------------------

    def _voted(
        self, name: str, rows: np.ndarray, codes: np.ndarray, nearest: dict[str, Neighbors]
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Return the votes of the nearest rows that have the column."""
        a = self.names.index(name)
        stored = np.flatnonzero(self.observed[a])
        valued = [b for b, n in enumerate(self.names) if n not in self.sets and self.sizes[b]]
        others = [b for b in valued if b != a]
        share = self.share[self.spans[a]]
        if not len(stored) or not others:
            mean = np.zeros(len(rows)) if name in self.numbers else None
            return np.tile(share, (len(rows), 1)), mean
        asked = np.maximum(codes[others][:, rows], 0)
        found = nearest[name] = self._nearest(name, asked, others, stored, nearest.get(name))
        votes = found.votes
        owner = self.reference[a, stored][found.rows]
        proba = np.tile(0.5 * share, (len(rows), 1))
        np.add.at(proba, (np.arange(len(rows))[:, None], owner), votes)
        proba /= proba.sum(axis=1, keepdims=True)
        if name not in self.numbers:
            return proba, None
        z = self.reference_z[self.numbers.index(name), stored][found.rows]
        return proba, (votes * z).sum(axis=1) / votes.sum(axis=1)

    def _voted_range(self, name: str, near: Neighbors) -> tuple[np.ndarray, np.ndarray]:
        """Return the quantiles of the numbers of the nearest rows that a guess lies between."""
        stored = np.flatnonzero(self.observed[self.names.index(name)])
        z = self.reference_z[self.numbers.index(name), stored][near.rows]
        low, high = weighted_quantiles(z, near.votes, (RANGE_TAIL, 1 - RANGE_TAIL))
        return low, high

    def _nearest(
        self,
        name: str,
        asked: np.ndarray,
        others: Sequence[int],
        stored: np.ndarray,
        before: Neighbors | None,
    ) -> Neighbors:
        """Return the nearest rows by the metric of a column; those of rows that changed anew."""
        if name not in self._metrics:
            nodes = Nodes.of(
                self.reference[others][:, stored], self.sizes[others], np.zeros((0, len(stored)))
            )
            self._metrics[name] = nodes, self._metric(self.names.index(name), others)
        nodes, tables = self._metrics[name]
        k = min(self.n_neighbors, len(stored))
        if before is None:
            return Neighbors(asked, *nearest_nodes(nodes, _queries(asked, tables), k))
        squared, rows = before.squared.copy(), before.rows.copy()
        changed = np.flatnonzero((asked != before.asked).any(axis=0))
        squared[changed], rows[changed] = nearest_nodes(
            nodes, _queries(asked[:, changed], tables), k
        )
        return Neighbors(asked, squared, rows)

    @cached_property
    def _metrics(self) -> dict[str, tuple[Nodes, list[np.ndarray]]]:
        return {}

    def _metric(self, a: int, others: Sequence[int]) -> list[np.ndarray]:
        """Return the tables of distances of values, as a column teaches them.

        Half of a distance is a mismatch, or the difference of two numbers; half is how differently
        two values speak of the column, scaled to the same mean. Columns weigh by the root of what
        they tell of it.
        """
        tables = []
        share, met = self.share[self.spans[a]], self.pairs[:, self.spans[a]]
        says = (met + _SMOOTHING * share) / (met.sum(axis=1, keepdims=True) + _SMOOTHING)
        weights = np.sqrt(np.maximum(self.evidence[a], MIN_EVIDENCE))
        for b in others:
            speaks, own = says[self.spans[b]], self.share[self.spans[b]]
            apart = ((speaks[:, None] - speaks[None]) ** 2).sum(axis=2)
            mean, g = own @ apart @ own, 1 - own @ own
            apart = apart * (g / mean) if mean > 1e-15 else np.zeros_like(apart)
            if self.names[b] in self.numbers:
                x = np.clip(self.bin_means[self.names[b]], -3, 3)
                plain = (x[:, None] - x) ** 2 / 2
            else:
                plain = 1 - np.eye(len(own))
            tables.append(weights[b] * (apart + plain) / 2)
        return tables

    # -- which engines ---------------------------------------------------------------------

    def hidden_losses(self, table: Table, seed: int) -> dict[str, dict[str, np.ndarray]]:
        """Return, per column, the loss of each engine and mean of engines on each hidden cell.

        A fifth of the cells is hidden, of rows that should have had no part in teaching: a row that
        was learned is its own nearest one.
        """
        rng = np.random.default_rng(seed)
        cells = self.cells(table)
        hidden = (rng.random(cells.codes.shape) < 0.2) & (cells.codes >= 0)
        z = cells.z.copy()
        for j, name in enumerate(self.numbers):
            z[j, hidden[self.names.index(name)]] = np.nan
        masked = cells._replace(codes=np.where(hidden, -1, cells.codes), z=z)
        out: dict[str, dict[str, np.ndarray]] = {name: {} for name in self.names}
        alone = {}
        for engine in self.wanted:
            own = {n: self.usable(n, (engine,)) for n in self.names}
            alone[engine] = self.changed(engines=own)._gone_through(masked, 1)
        for key in _subsets(self.wanted):
            for name in (n for n in self.names if n not in self.sets):
                rows = np.flatnonzero(hidden[self.names.index(name)])
                if len(rows):
                    guesses = [alone[engine][name] for engine in key]
                    out[name]["+".join(key)] = self._losses(name, guesses, rows, cells)
        return out

    def _losses(
        self, name: str, guesses: Sequence[Guess], rows: np.ndarray, cells: Cells
    ) -> np.ndarray:
        at = np.searchsorted(guesses[0].rows, rows)
        if name in self.numbers:
            number = np.mean([g.number for g in guesses], axis=0)[at]
            return np.asarray((number - cells.z[self.numbers.index(name), rows]) ** 2)
        proba = np.mean([g.proba for g in guesses], axis=0)[at]
        truth = cells.codes[self.names.index(name), rows]
        return np.asarray(-np.log(np.maximum(proba[np.arange(len(rows)), truth], 1e-12)))

    # -- reasons ---------------------------------------------------------------------------

    def notes(self, table: Table, name: str, guess: Guess) -> Iterator[Note]:
        """Yield a note on each gap of a column."""
        _, values = guess.best(self, name)
        cells = self.cells(take_rows(table, guess.rows))
        a = self.names.index(name)
        best = guess.proba.argmax(axis=1)
        seen = Datetimes(np.concatenate(self.seen[name])) if name in self.dated else None
        for i, row in enumerate(guess.rows.tolist()):
            reasons = self.reasons(cells, i, a, int(best[i]))
            value = values[i].item() if isinstance(values[i], np.generic) else values[i]
            if seen is not None:
                value = seen.text(float(value))
            yield Note(row, name, value, float(guess.proba[i, best[i]]), tuple(reasons))

    def reasons(self, cells: Cells, row: int, a: int, value: int, most: int = 2) -> list[Reason]:
        """Return the cells of a row that raise the odds of a value most, each in several rows."""
        share = self.share[self.spans[a]][value]
        found = []
        for reason in self.beside(cells, row, a, value):
            # Smoothed: one row of one must not look like a rule.
            smoothed = (reason.both + _SMOOTHING * share) / (reason.n + _SMOOTHING)
            found.append((np.log(smoothed / max(share, 1e-12)), reason))
        found.sort(key=lambda entry: -entry[0])
        found = [(gain, reason) for gain, reason in found if reason.n >= MIN_ROWS_OF_EVIDENCE]
        return [reason for gain, reason in found[:most] if gain > 0.05]

    def beside(self, cells: Cells, row: int, a: int, value: int) -> Iterator[Reason]:
        """Yield the other cells of a row, and how many rows have each of them with a value."""
        span = self.spans[a]
        for b, other in enumerate(self.names):
            code = cells.codes[b, row]
            if b == a or other in self.sets or code < 0:
                continue
            line = self.pairs[self.spans[b].start + code]
            both, n = int(line[span.start + value]), int(line[span].sum())
            yield Reason(other, self._said(other, int(code)), both, n)

    def _said(self, name: str, code: int) -> Any:
        """Return a value as people read it; of a number its bin."""
        if name not in self.numbers:
            return self.labels[name][code]
        own = self.seen[name][code]
        show = Datetimes(own).text if name in self.dated else shown
        low, high = show(float(own.min())), show(float(own.max()))
        return low if low == high else f"{low}…{high}"


class Labelled(Protocol):
    """What knows the values of columns: a model of rows."""

    @property
    def sets(self) -> list[str]:
        """The columns of sets."""

    @property
    def labels(self) -> dict[str, tuple[Label, ...]]:
        """The values of each column."""

    @property
    def seen(self) -> dict[str, list[np.ndarray]]:
        """The numbers of each bin."""


class Guess(NamedTuple):
    """What is thought of the gaps of a column: which rows, probabilities, and of numbers a mean."""

    rows: np.ndarray
    proba: np.ndarray
    number: np.ndarray | None

    def best(self, model: Labelled, name: str) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows and what fills them."""
        if self.number is not None:
            return self.rows, self.number
        labels = object_array(model.labels[name])
        if name in model.sets:
            chosen = self.proba > np.minimum(0.5, self.proba.max(axis=1, keepdims=True) - 1e-12)
            return self.rows, object_array([labels[own].tolist() for own in chosen])
        return self.rows, labels[self.proba.argmax(axis=1)]

    def drawn(
        self, model: Labelled, name: str, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows and a draw of what may fill them."""
        if name in model.sets:
            chosen = rng.random(self.proba.shape) < self.proba
            labels = object_array(model.labels[name])
            return self.rows, object_array([labels[own].tolist() for own in chosen])
        upto = np.cumsum(self.proba, axis=1)
        code = (rng.random((len(upto), 1)) * upto[:, -1:] > upto).sum(axis=1)
        code = np.minimum(code, upto.shape[1] - 1)
        if self.number is None:
            return self.rows, object_array(model.labels[name])[code]
        values = np.empty(len(code))
        for b in np.unique(code):
            own = code == b
            values[own] = rng.choice(model.seen[name][b], own.sum())
        return self.rows, values


class Neighbors(NamedTuple):
    """The rows nearest to some that were asked about by their codes, and how far they are."""

    asked: np.ndarray  # (columns, rows)
    squared: np.ndarray  # (rows, neighbours)
    rows: np.ndarray

    @property
    def votes(self) -> np.ndarray:
        """How much each neighbour says: the less, the farther it is."""
        return np.exp(-_SHARPNESS * self.squared / np.maximum(self.squared[:, -1:], 1e-12))


class Cells(NamedTuple):
    """Rows as a model sees them: codes (-1 is a gap), standardised numbers, elements of sets."""

    codes: np.ndarray  # (columns, rows)
    z: np.ndarray  # (numbers, rows)
    elements: dict[str, np.ndarray]  # (rows, elements), 0 or 1; NaN in a gap
    unseen: np.ndarray  # (columns, rows): there is a value, but fit has not seen it


class Round(NamedTuple):
    """What is known of rows after a round of guesses."""

    codes: np.ndarray  # as those of the cells, gaps as guessed
    z: np.ndarray
    elements: dict[str, np.ndarray]
    indicators: csr_array  # (rows, values)


class Reason(NamedTuple):
    """A cell beside another: how many rows have both, of those that have it."""

    column: str
    value: Any
    both: int
    n: int


class Note(NamedTuple):
    """Why a cell was filled as it was.

    Attributes
    ----------
    row, column : int, str
        The cell.
    value : label or float
        What it was filled with.
    probability : float
        How likely that is; of a number, that it lies in the same bin.
    reasons : tuple of (column, value, both, n)
        The cells of the row that speak for it most: of n rows with this value of the column, so
        many have both.
    """

    row: int
    column: str
    value: Any
    probability: float
    reasons: tuple[Reason, ...]

    def __str__(self) -> str:
        because = "; ".join(f"{c}={shown(v)}: {m} of {n} rows" for c, v, m, n in self.reasons)
        text = f"row {self.row}: {self.column}={shown(self.value)} ({self.probability:.0%}"
        text = text.replace("%", " %") + ")"
        return f"{text}, because {because}" if because else f"{text}, as in most rows"


def shown(value: Any) -> str:
    """Return a cell as people read it."""
    if isinstance(value, float):
        return f"{value:,.0f}" if 1e4 <= abs(value) < 1e15 else f"{value:.6g}"
    return str(value)


# -- parts ----------------------------------------------------------------------------------------


def decimal_places(numbers: np.ndarray) -> int | None:
    """Return how many decimals numbers are written with at most; None for unrounded ones.

    >>> decimal_places(np.array([40.3, 39.0])), decimal_places(np.array([np.pi]))
    (1, None)
    """
    with np.errstate(over="ignore", invalid="ignore"):
        is_single = (numbers.astype(np.float32) == numbers).all()
        precision = np.finfo(np.float32 if is_single else float).eps
        for places in range(MAX_DECIMAL_PLACES + 1):
            if (np.abs(np.round(numbers, places) - numbers) <= precision * np.abs(numbers)).all():
                return places
    return None


def rows_to_learn(estimator: Any, X: Any) -> tuple[Table, np.ndarray]:
    """Return the rows that an estimator learns from and their numbers; tell it their columns.

    All rows, or ``max_rows`` of them, drawn at random.
    """
    estimator._validate_params()
    table = Table.of(X, Schema.of(estimator.schema), numbers="numeric", rules="texts")
    require_rows(table)
    remember_names(estimator, table.schema)
    estimator.schema_ = table.schema
    if table.n_rows <= estimator.max_rows:
        return table, np.arange(table.n_rows)
    random = np.random.default_rng(seed_of(estimator.random_state))
    drawn = np.sort(random.permutation(table.n_rows)[: int(estimator.max_rows)])
    return take_rows(table, drawn), drawn


def _frequent(counts: Counts, name: str) -> tuple[tuple[Label, ...], np.ndarray]:
    """Return the labels of a column that are looked at, and where they lie among all values."""
    span, labels = counts.span(name), counts.labels[counts.vocabulary.index(name)]
    kept = np.array([i for i, label in enumerate(labels) if label is not None], np.intp)
    times = counts.value_counts[span][kept]
    if len(kept) > MAX_VALUES:
        kept = np.sort(kept[np.argsort(-times, kind="stable")[:MAX_VALUES]])
    return tuple(labels[i] for i in kept), span.start + kept


def _both(counts: Counts, names: Sequence[str], n_rows: int) -> np.ndarray:
    """Return in how many rows two columns have a cell each."""
    gap = np.array([_gap(counts, name) for name in names], np.intp)
    at = np.flatnonzero(gap >= 0)
    missing, together = np.zeros(len(names)), np.zeros((len(names), len(names)))
    missing[at] = counts.value_counts[gap[at]]
    block = counts.pairs[gap[at]][:, gap[at]]
    together[np.ix_(at, at)] = block.toarray() if hasattr(block, "toarray") else block
    np.fill_diagonal(together, missing)
    return np.asarray(n_rows - missing[:, None] - missing + together)


def _gap(counts: Counts, name: str) -> int:
    """Return where missing lies among the values of a column, -1 if none is."""
    labels = counts.labels[counts.vocabulary.index(name)]
    return counts.span(name).start + labels.index(None) if None in labels else -1


def _scale(moments: CrossMoments) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and deviation of each number; one whose inverse is infinite counts as none."""
    mean, n = moments.means()
    deviation = moments.deviations(np.maximum(n, 1))
    return mean, np.where(deviation >= np.finfo(float).tiny, deviation, 1.0)


def _standardised(numbers: np.ndarray, mean: Any, deviation: Any) -> np.ndarray:
    """Return numbers in deviations from a mean; none is so far out that squares are infinite."""
    with np.errstate(over="ignore"):
        return np.clip((numbers - mean) / deviation, -_FAR, _FAR)


def _z_sums(
    expanded: Table, labels: Mapping[str, tuple[Label, ...]], where: Mapping[str, str], moments: Any
) -> np.ndarray:
    """Return the sums of standardised numbers over the rows of each value or element."""
    parts = [np.zeros((0, len(moments.names)))]
    mean, deviation = _scale(moments)
    x = np.array([expanded[name].values for name in moments.names]).reshape(-1, expanded.n_rows)
    x = np.nan_to_num(_standardised(x, mean[:, None], deviation[:, None]))
    for name, own in labels.items():
        data = expanded[where[name]]
        if isinstance(data, Sets):
            parts.append(np.nan_to_num(_indicators(data, own)).T @ x.T)
        else:
            code = positions(own, data.labels)[data.codes]
            sums = [np.bincount(code, line, len(own) + 1)[: len(own)] for line in x]
            parts.append(np.stack(sums, axis=1) if sums else np.zeros((len(own), 0)))
    return np.vstack(parts)


def _numbers_by_bin(
    table: Table, edges_of: Mapping[str, np.ndarray], labels: Mapping[str, tuple[Label, ...]]
) -> dict[str, list[np.ndarray]]:
    """Return the numbers of each bin that fit has seen, at most a thousand of each."""
    out = {}
    for name, edges in edges_of.items():
        values = table[name].values
        values = np.sort(values[~np.isnan(values)])
        bins = np.searchsorted(edges, values, side="right")
        own = [values[bins == b] for b in labels[name]]
        out[name] = [v[np.linspace(0, len(v) - 1, min(len(v), 1000)).astype(int)] for v in own]
    return out


def _indicators(data: Any, labels: Sequence[Label]) -> np.ndarray:
    """Return which elements the set of each row has; NaN where the set is missing."""
    if isinstance(data, Codes):  # emptied
        return np.full((len(data.codes), len(labels)), np.nan)
    n = len(data.starts) - 1
    found = positions(labels, data.labels)
    rows = np.repeat(np.arange(n), np.diff(data.starts))
    out = np.zeros((n, len(labels) + 1))
    out[rows, found[data.codes]] = 1
    if None in data.labels:
        out[rows[data.codes == data.labels.index(None)]] = np.nan
    return out[:, :-1]


def _queries(asked: np.ndarray, tables: Sequence[np.ndarray]) -> Queries:
    return Queries.of(asked, tables, np.zeros((asked.shape[1], 0)))


def positive(symmetric: np.ndarray, rounding: float) -> np.ndarray:
    """Return a symmetric matrix whose negative eigenvalues, if it has some, are set to 0."""
    with one_blas_thread():
        if not dpotrf(symmetric + rounding * np.eye(len(symmetric)), lower=1)[1]:
            return symmetric
        values, vectors = eigh((symmetric + symmetric.T) / 2)  # but for rounding it is so already
        return np.asarray((vectors * np.maximum(values, 0)) @ vectors.T)


def explained_variance(met: np.ndarray, starts: np.ndarray, *, ranked: bool) -> np.ndarray:
    """Return the share of the variance of a column that others explain, less what chance would.

    ``met`` has the counts of the values of others, which begin at ``starts``, with its values. Of
    categories it is Goodman and Kruskal's tau, of ``ranked`` bins the correlation ratio of their
    ranks, adjusted as R squared is: what is expected of a column of as many values that says
    nothing is 0, and a column all of whose values differ explains nothing. So does one that chance
    explains as well once in twenty times.
    """
    each, totals = met.sum(axis=1), np.add.reduceat(met, starts, axis=0)
    n, safe_each = totals.sum(axis=1), np.maximum(each, 1)
    shares = totals / np.maximum(n, 1)[:, None]
    n_values = np.add.reduceat((each > 0).astype(float), starts)
    if ranked:
        ranks = np.cumsum(shares, axis=1) - shares / 2
        ranks -= (shares * ranks).sum(axis=1, keepdims=True)
        owner = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(met))))
        total, degrees = n * (shares * ranks**2).sum(axis=1), np.ones(len(starts))
        between = np.add.reduceat((met * ranks[owner]).sum(axis=1) ** 2 / safe_each, starts)
    else:
        agreement = n * (shares**2).sum(axis=1)
        total, degrees = n - agreement, np.maximum((totals > 0).sum(axis=1) - 1.0, 1)
        between = np.add.reduceat((met**2).sum(axis=1) / safe_each, starts) - agreement
    ratio = np.where(total > 1e-9, between / np.maximum(total, 1e-9), 0)
    left = np.maximum(n - n_values, 0)
    expected = (n_values - 1) / np.maximum(n - 1, 1)
    deviation = np.sqrt(2 * expected * left / (np.maximum(n - 1, 1) * (n + 1) * degrees))
    sure = (ratio - expected > ONE_IN_TWENTY * deviation) & (left > 0)
    return np.where(sure, (ratio - expected) / np.maximum(1 - expected, 1e-9), 0.0)


def weighted_quantiles(
    values: np.ndarray, weights: np.ndarray, levels: Sequence[float]
) -> list[np.ndarray]:
    """Return, for each level, the value of each row below which so much of the weight lies.

    >>> weighted_quantiles(np.array([[3.0, 1.0, 2.0]]), np.array([[1.0, 1.0, 8.0]]), [0.05, 0.5])
    [array([1.]), array([2.])]
    """
    order = np.argsort(values, axis=1)
    ordered = np.take_along_axis(values, order, axis=1)
    upto = np.cumsum(np.take_along_axis(weights, order, axis=1), axis=1)
    rows, last = np.arange(len(values)), values.shape[1] - 1
    at = [np.minimum((upto < level * upto[:, -1:]).sum(axis=1), last) for level in levels]
    return [ordered[rows, which] for which in at]


def _normal(logs: np.ndarray) -> np.ndarray:
    """Return log probabilities that add up to 1 in each row."""
    logs = logs - logs.max(axis=1, keepdims=True)
    return logs - np.log(np.exp(logs).sum(axis=1, keepdims=True))


def _subsets(engines: Sequence[str]) -> list[tuple[str, ...]]:
    return [c for size in range(1, len(engines) + 1) for c in combinations(engines, size)]


# -- many columns ---------------------------------------------------------------------------------


@storable
@dataclass(frozen=True, eq=False)
class WideRowModel:
    """Blocks of columns, and a model of the rows of each; it is asked as a RowModel is.

    Every column is guessed in one block, beside the columns that tell most of it. Blocks are found
    from counts of all pairs of columns, coarsely binned; memory grows with the number of columns,
    not with its square.

    Attributes
    ----------
    targets : list of list of str
        The columns that each block guesses.
    blocks : list of RowModel
        The models.
    wanted : tuple of str
        The engines that were asked for.
    """

    targets: list[list[str]]
    blocks: list[RowModel]
    wanted: tuple[str, ...]

    @classmethod
    def of(
        cls,
        table: Table,
        n_bins: int,
        seed: int,
        wanted: Sequence[str],
        n_neighbors: int,
        n_rounds: int,
    ) -> WideRowModel:
        """Learn from rows, block by block."""
        parts = blocks_of_columns(table, n_bins)
        check_memory(table, parts, n_bins)
        targets, blocks = [], []
        for names, n_targets in parts:
            part = select(table, names)
            numbers = {column.name for column in part.schema.numeric}
            engines = tuple(e for e in wanted if e != "mixture" or not numbers.issuperset(names))
            model = RowModel.of(part, n_bins, seed, engines or wanted, n_neighbors)
            model = model.changed(needs_evidence=True).with_reference(part, n_rounds)
            targets.append(names[:n_targets])
            blocks.append(model)
        return cls(targets, blocks, tuple(wanted))

    @cached_property
    def names(self) -> list[str]:
        """The columns."""
        return [name for targets in self.targets for name in targets]

    @cached_property
    def numbers(self) -> list[str]:
        """The columns of numbers."""
        return [name for name in self.names if name in self.block(name).numbers]

    @cached_property
    def sets(self) -> list[str]:
        """The columns of sets."""
        return [name for name in self.names if name in self.block(name).sets]

    @cached_property
    def labels(self) -> dict[str, tuple[Label, ...]]:
        """The values of each column."""
        return {name: self.block(name).labels[name] for name in self.names}

    @cached_property
    def seen(self) -> dict[str, list[np.ndarray]]:
        """The numbers of each bin."""
        return {name: self.block(name).seen[name] for name in self.numbers}

    def block(self, name: str) -> RowModel:
        """Return the model that guesses a column."""
        return self.blocks[self._places[name]]

    @cached_property
    def _places(self) -> dict[str, int]:
        return {name: i for i, targets in enumerate(self.targets) for name in targets}

    def usable(self, name: str, engines: Sequence[str]) -> tuple[str, ...]:
        """Return the engines that can guess a column."""
        model = self.block(name)
        return model.usable(name, [e for e in engines if e in model.wanted] or engines)

    def changed(self, *, engines: Mapping[str, tuple[str, ...]]) -> WideRowModel:
        """Return the model with other engines; what only tells of others needs no neighbours."""
        blocks = []
        for targets, model in zip(self.targets, self.blocks, strict=True):
            fast = [e for e in model.wanted if e != "neighbors"] or list(model.wanted)
            chosen = {name: model.usable(name, fast) for name in model.names}
            blocks.append(model.changed(engines=chosen | {name: engines[name] for name in targets}))
        return replace(self, blocks=blocks)

    def check_types(self, table: Table) -> None:
        """Raise for a column of rows that are asked about whose type is another than in fit."""
        for targets, model in zip(self.targets, self.blocks, strict=True):
            replace(model, labels={n: model.labels[n] for n in targets}).check_types(table)

    def filled(self, table: Table, n_rounds: int) -> dict[str, Guess]:
        """Return a guess for every gap of a table, from the rows with gaps of each block."""
        out: dict[str, Guess] = {}
        gaps = {column.name: missing(data) for column, data in table}
        for targets, model in zip(self.targets, self.blocks, strict=True):
            rows = np.flatnonzero(np.any([gaps[name] for name in targets], axis=0))
            if len(rows):
                guesses = model.filled(take_rows(select(table, model.names), rows), n_rounds)
                for name in targets:
                    if name in guesses:
                        out[name] = guesses[name]._replace(rows=rows[guesses[name].rows])
        return {name: out[name] for name in table.schema.names if name in out}

    def hidden_losses(self, table: Table, seed: int) -> dict[str, dict[str, np.ndarray]]:
        """Return, per column, the loss of each choice of engines on each hidden cell."""
        out = {}
        for targets, model in zip(self.targets, self.blocks, strict=True):
            losses = model.hidden_losses(select(table, model.names), seed)
            out.update({name: losses[name] for name in targets})
        return out

    def notes(self, table: Table, name: str, guess: Guess) -> Iterator[Note]:
        """Yield a note on each gap of a column."""
        model = self.block(name)
        return model.notes(select(table, model.names), name, guess)


def is_wide(table: Table, n_bins: int) -> bool:
    """Tell whether a table has too many columns, or values, to be learned as one block."""
    return len(table.columns) > MAX_COLUMNS or n_values(table, n_bins).sum() > MAX_BLOCK_VALUES


def n_values(table: Table, n_bins: int) -> np.ndarray:
    """Return how many values of each column are learned."""
    return np.array(
        [n_bins + 1 if isinstance(data, Numbers) else min(len(data.labels), MAX_VALUES)
         for data in table.columns]
    )  # fmt: skip


def blocks_of_columns(table: Table, n_bins: int) -> list[tuple[list[str], int]]:
    """Return blocks of columns, and how many of the first ones each of them guesses.

    A block grows by the column that is closest to one in it; what tells most of its columns joins.
    """
    told, sizes, names = pairwise_evidence(table), n_values(table, n_bins), table.schema.names
    left, blocks = np.ones(len(names), bool), []
    for first in np.argsort(-told.sum(axis=1), kind="stable"):
        if left[first]:
            targets = _grown(int(first), told + told.T, left, sizes)
            left[targets] = False
            telling = told[targets].sum(axis=0)
            telling[targets] = 0
            order = np.argsort(-telling, kind="stable")
            others = order[telling[order] > 0][: MAX_COLUMNS - len(targets)]
            n_both = sizes[targets].sum() + np.cumsum(sizes[others])
            members = [*targets, *others[n_both <= MAX_BLOCK_VALUES]]
            blocks.append(([names[a] for a in members], len(targets)))
    return blocks


def _grown(first: int, near: np.ndarray, left: np.ndarray, sizes: np.ndarray) -> list[int]:
    """Return a column and those that are left and closest to it, or to one that was taken."""
    block, closest = [first], np.where(left, near[first], -1)
    closest[first] = -1
    while len(block) < MAX_TARGETS:
        best = int(closest.argmax())
        if closest[best] < 0 or sizes[[*block, best]].sum() > MAX_BLOCK_VALUES // 2:
            break
        block.append(best)
        closest = np.where(closest >= 0, np.maximum(closest, near[best]), -1)
        closest[best] = -1
    return block


def pairwise_evidence(table: Table) -> np.ndarray:
    """Return what each column tells of each other (see :func:`explained_variance`), by coarse bins.

    A set stands for its first element. Of very many rows some are drawn, evenly.
    """
    n = min(table.n_rows, SAMPLE_ROWS)
    table = take_rows(table, np.linspace(0, table.n_rows - 1, n).astype(int))
    plain = ordinal_as_nominal(table)
    expanded = with_bins(plain, quantile_bins(plain, COARSE_BINS))
    numbers = {column.name for column in table.schema.numeric}
    codes = [_few_codes(expanded[n + BINNED if n in numbers else n]) for n in table.schema.names]
    sizes = np.array([cells.max(initial=-1) + 1 for cells in codes])
    starts = np.concatenate([[0], np.cumsum(sizes)])
    rows = np.concatenate([np.flatnonzero(cells >= 0) for cells in codes])
    columns = np.concatenate(
        [a + cells[cells >= 0] for a, cells in zip(starts, codes, strict=False)]
    )
    has = csr_array((np.ones(len(rows)), (rows, columns)), (n, starts[-1]))
    turned, filled = has.T.tocsr(), np.flatnonzero(sizes)
    out = np.zeros((len(codes), len(codes)))
    for a in filled:
        met = turned @ has[:, starts[a] : starts[a + 1]].toarray()
        ranked = table.schema.names[a] in numbers
        out[a, filled] = explained_variance(met, starts[filled], ranked=ranked)
    np.fill_diagonal(out, 0)
    return out


def _few_codes(data: Any) -> np.ndarray:
    """Return the code of each cell, in the order of values; -1 of gaps and rare values."""
    codes = np.asarray(data.codes, np.intp)
    if isinstance(data, Sets):  # an empty one has the code behind all
        codes = np.append(codes, len(data.labels))
        codes = np.where(np.diff(data.starts) > 0, codes[data.starts[:-1]], len(data.labels))
    times = np.bincount(codes, minlength=len(data.labels) + 1)[:-1]
    times[[i for i, label in enumerate(data.labels) if label is None]] = 0
    order = np.sort(np.argsort(-times, kind="stable")[: min(MAX_VALUES, int((times > 0).sum()))])
    place = np.full(len(data.labels) + 1, -1)
    place[order] = np.arange(len(order))
    return place[codes]


def check_memory(table: Table, blocks: Sequence[tuple[list[str], int]], n_bins: int) -> None:
    """Raise MemoryError, before anything is learned, for blocks that would not fit."""
    sizes = dict(zip(table.schema.names, n_values(table, n_bins), strict=True))
    values = [sum(int(sizes[name]) for name in names) for names, _ in blocks]
    needed, free = sum(8 * len(ENGINES) * v**2 for v in values), available_memory()
    if free is not None and needed > free:
        raise MemoryError(
            f"learning {len(table.columns):,} columns with {sum(sizes.values()):,} values would "
            f"take about {needed / 1e9:,.1f} GB, more than the {free / 1e9:,.1f} GB that are free; "
            "choose the columns that matter, or pass fewer bins (n_bins=4)"
        )


def select(table: Table, names: Sequence[str]) -> Table:
    """Return some columns of a table."""
    at = [table.schema.names.index(name) for name in names]
    columns = tuple(table.schema.columns[i] for i in at)
    schema = replace(table.schema, columns=columns, aside=(), coupled=True)
    return Table(schema, tuple(table.columns[i] for i in at), table.n_rows)


def missing(data: Any) -> np.ndarray:
    """Return which cells of a column are missing."""
    if isinstance(data, Numbers):
        return np.isnan(data.values)
    gaps = np.array([label is None for label in data.labels], bool)
    if isinstance(data, Sets):
        first = np.append(gaps[data.codes], False)[data.starts[:-1]]
        return (np.diff(data.starts) > 0) & first
    return gaps[data.codes]
