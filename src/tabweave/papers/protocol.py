"""How experiments are cut: repeated random splits, streams of windows, best of many starts.

Comes in: the classes of the objects. Goes out: arrays of row numbers, reproducible from
``random_state``. [Zhu 2019, sections 3.4 and 8.4.1]
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import numpy as np

from tabweave.evaluate import encode, macro_f

Fit = TypeVar("Fit")


@dataclass(frozen=True)
class Protocol:
    """How a study evaluates classifiers: its splits, rule for ties, and score.

    ``PROTOCOLS["tabweave"]`` is what tabweave's own studies do, ``PROTOCOLS["thesis"]`` what the
    text of Zhu (2019) says, with first neighbours first and scikit-learn's F. (The splits of its
    figures were found later: ``benchmarks/reports/table-5.2-readings.md``.)

    Parameters
    ----------
    stratify : bool, default=True
        Whether test sets hold every class in its share, as in :func:`monte_carlo_splits`.
    ties : {"all", "first"}, default="all"
        Which neighbours at the same distance vote, as in :class:`~tabweave.WeightedKNN`.
    classes : {"true", "either"}, default="true"
        What F is averaged over, as in :func:`macro_f`.

    Examples
    --------
    >>> from tabweave.papers import PROTOCOLS
    >>> thesis = PROTOCOLS["thesis"]
    >>> [(len(a), len(b)) for a, b in thesis.splits(list("aabb") * 5, 2, random_state=0)]
    [(18, 2), (18, 2)]
    >>> thesis.score(["a", "a"], ["a", "b"])  # b is averaged in
    0.3333...
    """

    stratify: bool = True
    ties: Literal["all", "first"] = "all"
    classes: Literal["true", "either"] = "true"

    def splits(
        self, y: Any, n_repeats: int = 20, test_size: float = 0.1, random_state: Any = None
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Training and test rows, again and again."""
        return monte_carlo_splits(y, n_repeats, test_size, random_state, stratify=self.stratify)

    def score(self, y_true: Any, y_pred: Any) -> float:
        """Macro F."""
        return macro_f(y_true, y_pred, classes=self.classes)


PROTOCOLS = {
    "tabweave": Protocol(),
    "thesis": Protocol(stratify=False, ties="first", classes="either"),
}


def monte_carlo_splits(
    y: Any,
    n_repeats: int = 20,
    test_size: float = 0.1,
    random_state: Any = None,
    *,
    stratify: bool = True,
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Split the objects at random into training and test sets, repeatedly.

    Parameters
    ----------
    y : array-like of shape (n_objects,)
        Classes.
    n_repeats : int, default=20
        Number of splits.
    test_size : float, default=0.1
        Share of objects in each test set, rounded to at least one object on either side.
    random_state : int, RandomState, Generator or None, default=None
        Seed.
    stratify : bool, default=True
        Draw from each class its share of the test set, rounded at random so that small classes
        are tested as often as their size asks. A class with a single object stays in training.
        Where the other classes are too small to fill the test set, or with ``False`` (what the
        thesis says), the split is plainly random.

    Yields
    ------
    train, test : ndarray of int
        Row numbers in increasing order; together all rows, each once.

    References
    ----------
    Zhu (2019), section 3.4.

    Examples
    --------
    >>> from tabweave.papers import monte_carlo_splits
    >>> for train, test in monte_carlo_splits(["a"] * 10 + ["b"] * 10, 2, random_state=0):
    ...     print(len(train), [int(row >= 10) for row in test])
    18 [0, 1]
    18 [0, 1]
    """
    _, codes = encode(y, "y")
    n = codes.size
    if n < 2:
        raise ValueError(f"expected at least 2 objects to split, got {n}")
    if not 0 < test_size < 1:
        raise ValueError(f"expected test_size between 0 and 1, got {test_size}")
    if n_repeats < 1:
        raise ValueError(f"expected n_repeats of at least 1, got {n_repeats}")
    n_test = min(max(round(test_size * n), 1), n - 1)
    rng = _generator(random_state)
    # The checks above run at the call; only the drawing is left to the iteration.
    return (_split(codes, n_test, stratify, rng) for _ in range(n_repeats))


def stream_windows(
    y: Any,
    n_windows: int = 12,
    *,
    window_size: int | None = None,
    mix: Literal["random", "drift", "plain"] = "random",
    random_state: Any = None,
) -> list[np.ndarray]:
    """Cut the objects into the windows of a stream.

    Parameters
    ----------
    y : array-like of shape (n_objects,)
        Classes (ground-truth clusters).
    n_windows : int, default=12
        Number of windows, 12 in the thesis.
    window_size : int, optional
        Objects per window; by default all objects are used and sizes differ by at most one.
    mix : {"random", "drift", "plain"}, default="random"
        ``"random"``: every window has its own random mix of clusters (uniform over all mixes, as
        far as objects are left). ``"drift"``: every cluster is most frequent around a time of
        its own, so mixes change gradually. ``"plain"``: random parts with the mix of the whole.
    random_state : int, RandomState, Generator or None, default=None
        Seed. Call again with another for another partition (the thesis takes 10).

    Returns
    -------
    list of ndarray of int
        Row numbers of each window, in random order; no object is in two windows.

    References
    ----------
    Zhu (2019), section 8.4.1, after Bai, Cheng, Liang and Shen (2016).

    Examples
    --------
    >>> from tabweave.papers import stream_windows
    >>> windows = stream_windows(["a"] * 30 + ["b"] * 30, 4, random_state=0)
    >>> [len(window) for window in windows]
    [15, 15, 15, 15]
    """
    _, codes = encode(y, "y")
    sizes = _window_sizes(codes.size, n_windows, window_size)
    rng = _generator(random_state)
    if mix == "random":
        return _mixed_windows(codes, sizes, rng)
    if mix == "drift":
        order = _drifting_order(codes, rng)
    elif mix == "plain":
        order = rng.permutation(codes.size)
    else:
        raise ValueError(f'expected mix="random", "drift" or "plain", got {mix!r}')
    # Where windows need fewer objects, thin out the whole stream instead of cutting its end.
    streamed = order[np.sort(rng.permutation(codes.size)[: sizes.sum()])]
    return [rng.permutation(window) for window in np.split(streamed, sizes.cumsum()[:-1])]


def _generator(random_state: Any) -> np.random.Generator:
    """A source of randomness from whatever the caller has."""
    if isinstance(random_state, np.random.RandomState):
        random_state = random_state.randint(2**31 - 1)
    return np.random.default_rng(random_state)


def _split(
    codes: np.ndarray, n_test: int, stratify: bool, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    test = _stratified_test(codes, n_test, rng) if stratify else None
    if test is None:
        test = rng.permutation(codes.size)[:n_test]
    held_out = np.zeros(codes.size, dtype=bool)
    held_out[test] = True
    return np.flatnonzero(~held_out), np.flatnonzero(held_out)


def _stratified_test(codes: np.ndarray, n_test: int, rng: np.random.Generator) -> np.ndarray | None:
    """Draw from every class its share of the test set; None where that cannot fill it."""
    sizes = np.bincount(codes)
    pool = np.flatnonzero(sizes > 1)
    if sizes[pool].sum() - pool.size < n_test:  # would empty a class of its training objects
        return None
    # Systematic sampling: laid end to end in random order, class shares are hit by a comb of
    # teeth at distance one; a class gets the floor or ceiling of its share, its share on average.
    pool = rng.permutation(pool)
    ends = np.cumsum(sizes[pool]) * (n_test / sizes[pool].sum())
    ends[-1] = n_test  # not a rounding error below it, which would lose a tooth
    hits = np.floor(ends + rng.random()).astype(int)
    n_test_of_class = np.diff(hits, prepend=0)
    parts = [
        rng.permutation(np.flatnonzero(codes == c))[:count]
        for c, count in zip(pool, n_test_of_class, strict=True)
    ]
    return np.concatenate(parts)


def _window_sizes(n: int, n_windows: int, window_size: int | None) -> np.ndarray:
    if n_windows < 1 or (window_size is not None and window_size < 1):
        raise ValueError(
            f"expected n_windows and window_size of at least 1, got {n_windows} and {window_size}"
        )
    if window_size is None:
        if n < n_windows:
            raise ValueError(f"{n} objects cannot fill {n_windows} windows; ask for fewer")
        return np.diff(np.arange(n_windows + 1) * n // n_windows)
    if n_windows * window_size > n:
        raise ValueError(
            f"{n_windows} windows of {window_size} need {n_windows * window_size} objects, "
            f"there are {n}; lower one of them"
        )
    return np.full(n_windows, window_size)


def _mixed_windows(
    codes: np.ndarray, sizes: np.ndarray, rng: np.random.Generator
) -> list[np.ndarray]:
    """Fill windows one after another, each with random shares of the clusters that are left."""
    left = rng.permutation(codes.size)
    windows: list[np.ndarray] = []
    for size in sizes:
        present, cluster, available = np.unique(
            codes[left], return_inverse=True, return_counts=True
        )
        shares = rng.dirichlet(np.ones(present.size))
        # Exponential race: the first arrival is of a cluster with its share as probability, and
        # so are the next, until a cluster runs out.
        rates = np.maximum(shares / available, np.finfo(float).tiny)
        arrival = np.argsort(rng.exponential(size=left.size) / rates[cluster])
        windows.append(left[arrival[:size]])
        left = left[arrival[size:]]
    # Windows filled late hold what others left; shuffled, time has no part in the mix.
    return [windows[i] for i in rng.permutation(len(windows))]


def _drifting_order(codes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Give every object a time near that of its cluster; return the objects in that order."""
    peak = rng.random(codes.max() + 1)[codes]
    return np.argsort(rng.beta(1 + 8 * peak, 1 + 8 * (1 - peak)))
