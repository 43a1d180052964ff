"""Classic data sets drawn at random by a published rule: a new sample at every call.

They share the rule, the column names and the labels with the published files, not the rows.
"""

from __future__ import annotations

import numpy as np

from tabweave.datasets.classic import BITS, nominal, pick
from tabweave.datasets.dataset import Dataset, RandomState, as_generator, check_count, check_share


def mofn_3_7_10(n: int = 300, random_state: RandomState = None) -> Dataset:
    """Ten random bits; positive if at least three of the seven from Bit-2 to Bit-8 are set.

    Parameters
    ----------
    n : int, default=300
        Number of rows.
    random_state : int, Generator, RandomState or None, default=None
        Source of randomness; an int gives the same rows each time.

    Examples
    --------
    >>> mofn_3_7_10(50, random_state=0)
    Dataset('mofn_3_7_10': 50 rows x 10 columns (10 nominal), 2 classes)
    """
    bits = as_generator(random_state).integers(0, 2, size=(10, check_count("n", n)))
    values = {f"Bit-{i}": BITS for i in range(10)}
    return nominal("mofn_3_7_10", values, bits, pick(BITS, bits[2:9].sum(axis=0) >= 3), "drawn")


# Which of the segments top, upper left, upper right, middle, lower left, lower right, bottom glow.
_DIGITS = "1110111 0010010 1011101 1011011 0111010 1101011 1101111 1010010 1111111 1111011".split()


def led24(n: int = 3200, noise: float = 0.1, random_state: RandomState = None) -> Dataset:
    """Digits on a faulty seven-segment display, with 17 random bits beside them.

    Parameters
    ----------
    n : int, default=3200
        Number of rows.
    noise : float, default=0.1
        Probability that a segment shows the opposite of what it should.
    random_state : int, Generator, RandomState or None, default=None
        Source of randomness; an int gives the same rows each time.

    Examples
    --------
    >>> led24(50, noise=0.0, random_state=0).feature_names[6:8]
    ['attribute_7', 'irrelevant1']
    """
    rng = as_generator(random_state)
    digit = rng.integers(0, 10, size=check_count("n", n))
    lit = np.array([[int(bit) for bit in shape] for shape in _DIGITS])[digit].T
    faulty = rng.random(lit.shape) < check_share("noise", noise)
    bits = np.vstack([lit ^ faulty, rng.integers(0, 2, size=(17, n))])
    names = [f"attribute_{i}" for i in range(1, 8)] + [f"irrelevant{i}" for i in range(1, 18)]
    y = pick("0123456789", digit)
    return nominal("led24", dict.fromkeys(names, BITS), bits, y, f"drawn, noise {noise:g}")


def waveform(n: int = 5000, random_state: RandomState = None) -> Dataset:
    """Breiman's waves: 21 noisy points of a random mixture of two of three triangles.

    The triangles have height 6 and peak at points 7, 15 and 11; class 0 mixes the first two,
    class 1 the first and third, class 2 the last two. The noise is standard normal.

    Parameters
    ----------
    n : int, default=5000
        Number of rows.
    random_state : int, Generator, RandomState or None, default=None
        Source of randomness; an int gives the same rows each time.

    Examples
    --------
    >>> waveform(10, random_state=0).X.shape
    (10, 21)
    """
    rng = as_generator(random_state)
    label = rng.integers(0, 3, size=check_count("n", n))
    share = rng.random((n, 1))
    waves = np.maximum(6 - abs(np.arange(1, 22) - np.array([[7], [15], [11]])), 0)
    first, second = waves[np.array([0, 0, 2])[label]], waves[np.array([1, 2, 1])[label]]
    X = share * first + (1 - share) * second + rng.standard_normal((n, 21))
    columns = {f"x{i + 1}": np.ascontiguousarray(X[:, i]) for i in range(21)}
    kinds = dict.fromkeys(columns, "numeric")
    return Dataset("waveform", columns, pick("012", label), kinds, "drawn, Breiman et al. 1984")
