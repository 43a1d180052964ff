"""The guard of HeMap: a source is used only if it helps rows whose labels were held back.

The thesis calls a transfer "too risky" when few source rows are selected; that says nothing about
the labels. Here the labeled target rows are dealt into folds; each fold is predicted by a transfer
that was aligned, projected and learned without it, and by three rivals without the source.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from sklearn.dummy import DummyClassifier, DummyRegressor

from tabweave.sources.hemap.transfer import Options, Source, Target, Transfer, fold_numbers

_FEWEST = 10
# Without the source: the learner, the learner in the common space, the commonest class or mean. A
# bridge that says the same of every source class falls back to the last: nothing is transferred.
_RIVALS = ("target", "projected", "prior")
_LEAST_SHARE = 0.05


class Verdict(NamedTuple):
    """Whether the source is refused, why, and the mean held-out losses it rests on."""

    refused: bool
    reason: str
    losses: dict[str, float]


def too_risky(n_selected: int, n_rows: int) -> Verdict | None:
    """Section 5.5.2: refuse a source of which hardly a row lies among the target's rows."""
    if n_selected >= _LEAST_SHARE * n_rows:
        return None
    text = f"{n_selected} of {n_rows} source rows lie among the target rows: too risky"
    return Verdict(True, text, {})


def judge(options: Options, target: Target, source: Source, n_folds: int) -> Verdict:
    """Refuse unless the transfer beats every rival by more than a standard error."""
    n = len(target.y)
    if n < max(_FEWEST, n_folds):
        return Verdict(True, f"{n} labeled rows are too few to judge the source", {})
    rng = np.random.RandomState(options.seed)
    folds = fold_numbers(target.y, n_folds, rng)
    losses = np.empty((1 + len(_RIVALS), n))
    for fold in range(n_folds):
        held = folds == fold
        losses[:, held] = _fold_losses(options, target, source, held)
    gains = losses[1:] - losses[0]
    errors = standard_errors(gains, n_folds)
    found = dict(zip(("transfer", *_RIVALS), losses.mean(axis=1).tolist(), strict=True))
    found |= {f"{rival}_error": float(e) for rival, e in zip(_RIVALS, errors, strict=True)}
    helped = bool(np.all(gains.mean(axis=1) > errors))
    return Verdict(not helped, _reason(found, helped, options.numeric), found)


def standard_errors(gains: np.ndarray, n_folds: int) -> np.ndarray:
    """Return the standard error of each mean gain over rows that were cross-validated.

    Folds share most of their training rows, so plain standard errors are too small: the variance
    grows by held-out over training rows for each fold (Nadeau & Bengio 2003).
    """
    n = gains.shape[1]
    return gains.std(axis=1, ddof=1) * np.sqrt((1 + n_folds / (n_folds - 1)) / n)


def _fold_losses(options: Options, target: Target, source: Source, held: np.ndarray) -> np.ndarray:
    """Return the losses of held-out rows: by the transfer and by its rivals.

    Held-out rows leave the target altogether, and their partners the source: a row's own label
    must not come back to it through a pair.
    """
    rows = np.flatnonzero(target.labeled)[held]
    asked, right = target.X[rows], target.y[held]
    stays = np.ones(len(target.X), bool)
    stays[rows] = False
    rest, others = _without(target, stays, ~held, source)
    transfer = Transfer(options, rest, others)
    plain = options.make(len(rest.y)).fit(rest.X[rest.labeled], rest.y)
    prior = DummyRegressor() if options.numeric else DummyClassifier(strategy="most_frequent")
    guesses = (
        transfer.predict(asked),
        plain.predict(asked),
        transfer.target_learner.predict(transfer.side.project(asked)),
        prior.fit(rest.X[rest.labeled], rest.y).predict(asked),
    )
    if options.numeric:
        return np.array([(guess - right) ** 2 for guess in guesses])
    return np.array([guess != right for guess in guesses], float)


def _without(
    target: Target, stays: np.ndarray, labels: np.ndarray, source: Source
) -> tuple[Target, Source]:
    pairs = target.pairs
    if pairs is not None:
        partners = np.setdiff1d(pairs[~stays], [-1])
        kept = np.setdiff1d(np.arange(len(source.X)), partners)
        new = np.full(len(source.X) + 1, -1)  # the last one answers -1, no partner
        new[kept] = np.arange(len(kept))
        pairs = new[pairs[stays]]
        source = Source(source.X[kept], source.v[kept], source.numeric)
    return Target(target.X[stays], target.y[labels], target.labeled[stays], pairs), source


def _reason(found: dict[str, float], helped: bool, numeric: bool) -> str:
    what = "squared error" if numeric else "error"
    text = (
        f"held-out {what} {found['transfer']:.3g} with the source; without it "
        f"{found['target']:.3g} (standard error of the difference {found['target_error']:.2g}), "
        f"in the common space {found['projected']:.3g} ({found['projected_error']:.2g}), "
        f"by the {'mean' if numeric else 'commonest class'} {found['prior']:.3g} "
        f"({found['prior_error']:.2g})"
    )
    return f"the source helps: {text}" if helped else f"no clear gain: {text}"
