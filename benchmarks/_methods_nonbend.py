"""Methods of thesis chapter 5: Non-BEND, alone, in ensembles, and together with Weave."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tabweave import NonBEND, ValueTables, Weave, papers
from tabweave.counts.counts import Counts
from tabweave.embed.nonbend import Fit, Prior, mean_grams
from tabweave.embed.onehot import OneHotAutoencoder
from tabweave.papers.categories import weighted_grams

SEEDS = 3  # of single fits: their F is the mean over so many, each with all starts


class Halfway(NonBEND):
    """Non-BEND with and without the column weights of (5.31), at the same inertia, averaged."""

    def _grams(self, fit: Fit, prior: Prior) -> list[np.ndarray]:
        weighted = weighted_grams(fit, prior)
        return mean_grams([weighted, super()._grams(fit, prior)], self.counts_)


class WithWeave(Halfway):
    """Non-BEND's Gram and Weave's, each at the same inertia, averaged."""

    def _learn(self, counts: Counts) -> ValueTables:
        own, woven = super()._learn(counts), Weave().fit_counts(counts).tables_
        grams = [[t[:-1] @ t[:-1].T for t in tables.tables] for tables in (own, woven)]
        return ValueTables.from_grams(mean_grams(grams, counts), counts)


def fits(method: str, cls: type[NonBEND] = NonBEND) -> Callable[[int], Any]:
    """Return Non-BEND as it comes: the mean of eight fits."""
    return lambda k: cls(method, random_state=0)


def single(method: str, cls: type[NonBEND] = NonBEND) -> Callable[[int], Any]:
    """Return single fits, one per seed."""
    return lambda k: [cls(method, n_fits=1, random_state=seed) for seed in range(SEEDS)]


def as_published(method: str, **options: Any) -> Callable[[int], Any]:
    """Return single fits as published, one per seed."""
    return lambda k: [papers.NonBEND(method, random_state=seed, **options) for seed in range(SEEDS)]


def autoencoder(k: int) -> OneHotAutoencoder:
    return OneHotAutoencoder(random_state=0, schema="nominal")


NOTES = (
    "Vectors go to k-means, measures to k-modes; best objective of 100 starts (20 on sets above "
    "10,000 rows). NB-G and NB-V are tabweave's defaults: the mean of the Grams of 8 fits, without "
    "the column weights of (5.31), which do not help (Table 5.4). 'single' is one such fit, F as "
    f"mean over {SEEDS} seeds; 'printed' a single fit with the printed weights, the thesis' own "
    "reading; 'shrunk' 8 fits with weights halfway; '+ Weave' the mean of the latter's and Weave's "
    "Grams.",
)
KNN_NOTES = (
    "The thesis's protocol: 20 splits 90/10; k from {1, 3, 5, 7} by three inner splits 75/25; "
    "first neighbours first; macro F over the classes that occur in truth or prediction, as the "
    "printed 88.0 of CDE on zoo asks for. Vectors are learned from all rows, once, as measures "
    "are; sets above 10,000 rows are cut to 10,000 random rows. Non-BEND is the mean of 8 fits, "
    "weights halfway. COS, Ahmad, DILCA and Rough are 1-NN, as in Table 4.5: 85 of their 88 "
    "printed cells are those of Table 4.5 to the digit. Hamming is 5-NN in scikit-learn's k-d tree "
    "on one-hot vectors, a column of two values on one axis, votes 1/d, with the splits of Table "
    "4.5 (100 on sets of up to 1,500 rows): the nearest to print of all readings in "
    "`table-5.2-readings.md`; 'two axes' gives these columns two. 'k chosen' has the measures with "
    "k chosen as for the others, learned from the training rows of splits drawn whatever the "
    "class. 'Same rule' has them by the rule of NB-G, NB-V, AE and CDE in all: learned from all "
    "rows, the same splits, k chosen, the same F. Measured ranks are among these nine, like with "
    "like; print ranks 1-NN, 5-NN and chosen k together.",
)
