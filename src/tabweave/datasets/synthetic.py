"""Tables drawn at random: a new sample at every call, for tests, examples and measurements.

`make_coupled` draws rows from hidden clusters; its knobs say how strongly the columns follow them,
how unlike the columns are, and how the table changes from its first row to its last.
`make_codes` draws bare integer codes for benchmarks. `mofn_3_7_10`, `led24` and `waveform` are
classic sets: they share the rule, the column names and the labels with the published files, not
the rows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tabweave.datasets.classic import BITS, nominal, pick
from tabweave.datasets.dataset import Dataset, RandomState, as_generator, check_count, check_share


class _Source(NamedTuple):
    """Where a column's values come from: one favourite value per cluster, else the background."""

    favourite: np.ndarray
    background: np.ndarray


def make_coupled(
    n_samples: int = 1000,
    n_columns: int = 10,
    n_values: int = 5,
    n_clusters: int = 3,
    *,
    coupling: float = 0.8,
    heterogeneity: float = 0.0,
    drift: float = 0.0,
    missing: float = 0.0,
    random_state: RandomState = None,
) -> Dataset:
    """Draw a categorical table from hidden clusters, with couplings of known strength.

    A cell holds its cluster's favourite value of that column with probability `coupling`, and
    otherwise a value drawn from the column's background, whatever the cluster.

    Parameters
    ----------
    n_samples, n_columns : int, default=1000 and 10
        Size of the table.
    n_values : int, default=5
        Values per column; with heterogeneity, between half and twice as many, at least two.
    n_clusters : int, default=3
        Equally likely hidden clusters; their numbers are the labels.
    coupling : float in [0, 1], default=0.8
        0: the columns are independent of the clusters and of each other. 1: a column is a
        function of its cluster (several clusters share a value if there are too few).
    heterogeneity : float in [0, 1], default=0.0
        0: all columns are alike. Towards 1, columns differ in strength, number of values and
        skewness, and up to half of them follow a second or third partition instead of the labels.
    drift : float in [0, 1], default=0.0
        The share of cells that, by the last row, follow another set of favourites and another
        background; it grows linearly from none in the first row.
    missing : float in [0, 1], default=0.0
        Probability that a cell is None, independent of all else.
    random_state : int, Generator, RandomState or None, default=None
        Source of randomness; an int gives the same table each time.

    Returns
    -------
    Dataset
        Nominal columns `c0`, `c1`, ... with values `v0`, `v1`, ... and the clusters as `y`.

    Examples
    --------
    >>> from tabweave.datasets import make_coupled
    >>> table = make_coupled(60, 3, coupling=1.0, random_state=0)
    >>> table
    Dataset('coupled': 60 rows x 3 columns (3 nominal), 3 classes)
    >>> len({(label, *row) for label, row in zip(table.y, table.X.tolist())})
    3
    """
    n, columns = check_count("n_samples", n_samples), check_count("n_columns", n_columns)
    values, clusters = check_count("n_values", n_values, 2), check_count("n_clusters", n_clusters)
    coupling = check_share("coupling", coupling)
    heterogeneity = check_share("heterogeneity", heterogeneity)
    drift, missing = check_share("drift", drift), check_share("missing", missing)
    rng = as_generator(random_state)

    sizes, strengths, follows = _column_traits(rng, columns, values, coupling, heterogeneity)
    sources = [_sources(rng, size, clusters, heterogeneity) for size in sizes]
    partitions = [rng.integers(0, clusters, size=n, dtype=np.uint16) for _ in range(3)]
    age = np.linspace(0.0, drift, n)

    names = np.array([f"v{i}" for i in range(max(sizes))], dtype=object)
    table = {}
    for j in range(columns):
        codes = _draw(rng, sources[j], partitions[follows[j]], strengths[j], age, drift > 0)
        cells = names[codes]
        if missing:
            cells[rng.random(n) < missing] = None
        table[f"c{j}"] = cells
    labels = np.array([str(k) for k in range(clusters)], dtype=object)
    text = f"drawn: coupling {coupling:g}, heterogeneity {heterogeneity:g}, drift {drift:g}"
    return Dataset("coupled", table, labels[partitions[0]], dict.fromkeys(table, "nominal"), text)


def _column_traits(
    rng: np.random.Generator, columns: int, values: int, coupling: float, heterogeneity: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Choose number of values, strength and partition to follow, per column."""
    unlike, stronger, other_partition = rng.uniform(-1, 1, size=(3, columns))
    sizes = np.maximum(2, np.rint(values * 2.0 ** (heterogeneity * unlike))).astype(int)
    # The room to move shrinks at both ends, so that coupling 0 and 1 keep their meaning.
    strengths = coupling + heterogeneity * min(coupling, 1 - coupling) * stronger
    follows = np.where(abs(other_partition) < heterogeneity / 2, 1 + (other_partition > 0), 0)
    return sizes, strengths, follows


def _sources(
    rng: np.random.Generator, size: int, clusters: int, heterogeneity: float
) -> tuple[_Source, _Source]:
    """Make a column's source at the first row and, for drift, the one it moves to."""
    favourite = rng.permutation(size)[rng.permutation(clusters) % size]
    skewed, later = rng.dirichlet(np.ones(size), size=2)
    background = (1 - heterogeneity) / size + heterogeneity * skewed
    return _Source(favourite, background), _Source((favourite + 1) % size, later)


def _draw(
    rng: np.random.Generator,
    sources: tuple[_Source, _Source],
    partition: np.ndarray,
    strength: float,
    age: np.ndarray,
    drifting: bool,
) -> np.ndarray:
    """Codes of one column, all rows at once."""
    # One uniform number decides between favourite and background, and then, rescaled, which value.
    uniform = rng.random(len(partition))
    follow = uniform < strength
    background_share = (uniform - strength) / max(1 - strength, 1e-12)
    codes = _from_source(sources[0], partition, follow, background_share)
    if not drifting:
        return codes
    moved = rng.random(len(partition)) < age
    return np.where(moved, _from_source(sources[1], partition, follow, background_share), codes)


def _from_source(
    source: _Source, partition: np.ndarray, follow: np.ndarray, background_share: np.ndarray
) -> np.ndarray:
    inner_edges = np.cumsum(source.background)[:-1]
    drawn = np.searchsorted(inner_edges, background_share, side="right")
    return np.where(follow, source.favourite[partition], drawn)


def make_codes(
    n_samples: int, n_columns: int, n_values: int, random_state: RandomState = None
) -> np.ndarray:
    """Random codes for benchmarks of speed, each column mildly dependent on the one before it.

    Three cells in ten repeat the code of their left neighbour; the others are uniform.

    Parameters
    ----------
    n_samples, n_columns : int
        Size of the array.
    n_values : int
        Codes are 0 to n_values - 1.
    random_state : int, Generator, RandomState or None, default=None
        Source of randomness; an int gives the same codes each time.

    Returns
    -------
    array of shape (n_samples, n_columns)
        Column-major, of the smallest of uint8, uint16 and uint32 that holds all codes.

    Examples
    --------
    >>> from tabweave.datasets import make_codes
    >>> codes = make_codes(100, 3, 300, random_state=0)
    >>> codes.dtype.name, codes.flags.f_contiguous
    ('uint16', True)
    """
    n, columns = check_count("n_samples", n_samples), check_count("n_columns", n_columns)
    values = check_count("n_values", n_values)
    if values > 2**32:
        raise ValueError(f"expected n_values of at most 2**32, got {values}")
    rng = as_generator(random_state)
    dtype = np.min_scalar_type(values - 1)
    codes = np.empty((n, columns), dtype=dtype, order="F")
    for j in range(columns):
        codes[:, j] = rng.integers(0, values, size=n, dtype=dtype)
        if j:
            repeat = rng.integers(0, 10, size=n, dtype=np.uint8) < 3
            np.copyto(codes[:, j], codes[:, j - 1], where=repeat)
    return codes


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
    >>> from tabweave.datasets import mofn_3_7_10
    >>> mofn_3_7_10(50, random_state=0)
    Dataset('mofn_3_7_10': 50 rows x 10 columns (10 nominal), 2 classes)
    """
    bits = as_generator(random_state).integers(0, 2, size=(10, check_count("n", n)))
    values = {f"Bit-{i}": BITS for i in range(10)}
    return nominal("mofn_3_7_10", values, bits, pick(BITS, bits[2:9].sum(axis=0) >= 3), "drawn")


# Which of the segments top, upper left, upper right, middle, lower left, lower right, bottom glow.
_DIGITS = "1110111 0010010 1011101 1011011 0111010 1101011 1101111 1010010 1111111 1111011".split()


def led24(n: int = 3200, noise: float = 0.1, random_state: RandomState = None) -> Dataset:
    """Digits on a faulty seven-segment display, with 17 random bits as noise.

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
    >>> from tabweave.datasets import led24
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
    >>> from tabweave.datasets import waveform
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
