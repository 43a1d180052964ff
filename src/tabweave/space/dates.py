"""Datetimes as numbers that go round: the time of day, the weekday and the time of year.

A column of datetimes is a number, its trend, and as many cycles as its rows last: each cycle is a
ring of bins, on which 23:50 lies beside 00:10, Sunday beside Monday, and December beside January.
Times of day, which have no date, are the first ring alone.
Rings are curves with knots, closed; all else of numbers holds for them.
"""

from __future__ import annotations

import numpy as np

from tabweave.columns.cells import Part
from tabweave.columns.datetime import CYCLES, Cycle
from tabweave.columns.vocabulary import positions
from tabweave.counts.counts import Counts
from tabweave.space.numbers import Knots

_ENOUGH = 0.9  # of a cycle that rows must last to show it


def lasting_cycles(counts: Counts, column: str) -> list[Cycle]:
    """Return the cycles that a column of datetimes shows, from its counts.

    Rows last ``√12`` standard deviations, as long as datetimes that come evenly: that must be 0.9
    of a cycle, so that three weeks have no time of year. Dates without times have no time of day,
    as they all lie in one bin of it.
    """
    n, _, variance = counts.moments(column)
    lasting = np.sqrt(12 * variance) if n else 0.0
    return [
        cycle
        for cycle in CYCLES
        if lasting >= _ENOUGH * cycle.seconds and _n_bins_met(counts, Part(column, cycle.title)) > 1
    ]


def cycle_of_clock(counts: Counts, column: str) -> list[Cycle]:
    """Return the cycle of times of day, if they lie in more than one of its bins."""
    return [CYCLES[0]] if _n_bins_met(counts, Part(column, CYCLES[0].title)) > 1 else []


def _n_bins_met(counts: Counts, name: str) -> int:
    if name not in counts.names:
        return 0
    labels = counts.labels[counts.vocabulary.index(name)]
    return sum(label is not None for label in labels)


def ring_knots(counts: Counts, name: str, at: np.ndarray, cycle: Cycle) -> Knots:
    """Return the bins of a cycle as points of a closed line; bins not met stand for the nearest.

    Parameters
    ----------
    counts : Counts
        What was counted.
    name : str
        The counted column of the bins.
    at : ndarray
        The mean phase of each bin.
    cycle : Cycle
        The cycle.
    """
    column = counts.vocabulary.index(name)
    labels, mass = counts.labels[column], counts.value_counts[counts.span(column)].astype(float)
    missing = labels.index(None) if None in labels else None
    found = positions(labels, range(cycle.n_bins))
    met = np.flatnonzero(found < len(labels))
    if not len(met):
        return Knots(np.zeros(0), np.zeros(0, np.intp), np.zeros(0), missing)
    gap = np.abs(np.arange(cycle.n_bins)[:, None] - met)
    nearest = met[np.minimum(gap, cycle.n_bins - gap).argmin(axis=1)]
    share = np.zeros(cycle.n_bins)
    share[met] = mass[found[met]] / mass[found[met]].sum()
    x = np.concatenate([at[-1:] - cycle.seconds, at, at[:1] + cycle.seconds])
    around = np.r_[cycle.n_bins - 1, : cycle.n_bins, 0]
    value, share = found[nearest][around], share[around]
    share[[0, -1]] = 0
    return Knots(x, value, share, missing)


def ring(knots: Knots, cycle: Cycle) -> np.ndarray:
    """Return cosine and sine at the knots; the mean squared distance of two rows is 1."""
    angle = 2 * np.pi * knots.x / cycle.seconds
    rows = np.column_stack([np.cos(angle), np.sin(angle)])
    rows = rows - knots.share @ rows
    inertia = float(knots.share @ (rows**2).sum(axis=1)) if len(rows) else 0.0
    return rows / np.sqrt(2 * inertia) if inertia > 0 else np.zeros((len(rows), 2))
