"""Data sets made without any file: classic ones that are a rule, and tables drawn at random."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from tabweave.datasets.dataset import Dataset, RandomState, as_generator, check_count, check_share

# -- Classic data sets that are a rule, written out in full: every case, without any file ---------
#
# They equal the published files up to the order of the rows. All columns are nominal, as in the
# files, even where the values are grades or small numbers. Each function enumerates codes (`grid`),
# finds the class by its rule and spells both out (`pick`, `nominal`).

BITS = ("0", "1")


def balance() -> Dataset:
    """Balance scale: which side goes down, by weight times distance (625 rows).

    The class is L, R or B (balanced), comparing left-weight * left-distance with the right side.

    Examples
    --------
    >>> from tabweave.datasets import balance
    >>> labels = balance().y.tolist()
    >>> {label: labels.count(label) for label in "LBR"}
    {'L': 288, 'B': 49, 'R': 288}
    """
    names = ("left-weight", "left-distance", "right-weight", "right-distance")
    values = dict.fromkeys(names, "12345")
    codes = grid(values)
    left, right = (codes[0] + 1) * (codes[1] + 1), (codes[2] + 1) * (codes[3] + 1)
    return nominal("balance", values, codes, pick("RBL", np.sign(left - right) + 1), "UCI")


def tictactoe() -> Dataset:
    """Tic-tac-toe: all final boards of games that x starts; positive if x has won (958 rows).

    A game ends with the first row of three or with a full board, so the winner moved last.

    Examples
    --------
    >>> from tabweave.datasets import tictactoe
    >>> int((tictactoe().y == "positive").sum())
    626
    """
    rows, columns = ("top", "middle", "bottom"), ("left", "middle", "right")
    values = {f"{row}-{column}-square": "xob" for row in rows for column in columns}
    boards = grid(values)
    lines = np.array([[0, 1, 2], [3, 4, 5], [6, 7, 8], [0, 3, 6], [1, 4, 7], [2, 5, 8]])
    lines = np.vstack([lines, [[0, 4, 8], [2, 4, 6]]])
    x_won, o_won = ((boards[lines] == player).all(axis=1).any(axis=0) for player in (0, 1))
    lead = (boards == 0).sum(axis=0) - (boards == 1).sum(axis=0)
    full = (boards != 2).all(axis=0)
    over = (x_won & ~o_won & (lead == 1)) | (o_won & ~x_won & (lead == 0))
    over |= full & (lead == 1) & ~x_won & ~o_won
    y = pick(("negative", "positive"), x_won[over])
    return nominal("tictactoe", values, boards[:, over], y, "UCI tic-tac-toe endgame")


def monks(problem: int = 1) -> Dataset:
    """One of the three MONK's problems on all 432 robots, labelled without noise.

    Problem 1: a1 = a2 or a5 = 1. Problem 2: exactly two attributes have their first value.
    Problem 3: a5 = 3 and a4 = 1, or a5 is not 4 and a2 is not 3.

    Parameters
    ----------
    problem : {1, 2, 3}, default=1
        Which of the three rules labels the rows.

    Examples
    --------
    >>> from tabweave.datasets import monks
    >>> [int((monks(problem).y == "1").sum()) for problem in (1, 2, 3)]
    [216, 142, 228]
    """
    values = dict(zip(("a1", "a2", "a3", "a4", "a5", "a6"), (3, 3, 2, 3, 4, 2), strict=True))
    spelled = {name: "1234"[:size] for name, size in values.items()}
    codes = grid(spelled)
    _, a2, _, a4, a5, _ = a = codes + 1
    if problem == 1:
        positive = (a[0] == a2) | (a5 == 1)
    elif problem == 2:
        positive = (a == 1).sum(axis=0) == 2
    elif problem == 3:
        positive = ((a5 == 3) & (a4 == 1)) | ((a5 != 4) & (a2 != 3))
    else:
        raise ValueError(f"expected problem 1, 2 or 3, got {problem!r}")
    return nominal(f"monks{problem}", spelled, codes, pick(BITS, positive), "UCI, noise-free")


# Each table lists levels from worst to best, by the values of its arguments in their order below.
_PRICE = np.array([[0, 0, 1, 1], [0, 1, 1, 1], [1, 1, 2, 3], [1, 2, 3, 3]])  # buying, maint
_ROOMY = [[1, 1, 2], [1, 1, 2], [1, 2, 2], [1, 2, 2]]  # four persons: doors, lug_boot
_CROWDED = [[0, 1, 2], [1, 2, 2], [1, 2, 2], [1, 2, 2]]  # more persons: doors, lug_boot
_COMFORT = np.array([np.zeros((4, 3), dtype=int), _ROOMY, _CROWDED])  # persons, doors, lug_boot
_TECH = np.array([[0, 0, 0], [0, 1, 2], [0, 2, 3]])  # comfort, safety
_CAR = np.array([[0, 0, 0, 0], [0, 0, 1, 1], [0, 1, 1, 3], [0, 1, 2, 3]])  # price, tech


def car() -> Dataset:
    """Car evaluation: a small decision model over six attributes (1728 rows).

    CAR(PRICE(buying, maint), TECH(COMFORT(doors, persons, lug_boot), safety)), where each concept
    in capitals is a table of levels; the model is hierarchical, so its attributes interact.

    Examples
    --------
    >>> from tabweave.datasets import car
    >>> labels = car().y.tolist()
    >>> [labels.count(label) for label in ("unacc", "acc", "good", "vgood")]
    [1210, 384, 69, 65]
    """
    values = {
        "buying": ("vhigh", "high", "med", "low"),
        "maint": ("vhigh", "high", "med", "low"),
        "doors": ("2", "3", "4", "5more"),
        "persons": ("2", "4", "more"),
        "lug_boot": ("small", "med", "big"),
        "safety": ("low", "med", "high"),
    }
    codes = grid(values)
    buying, maint, doors, persons, lug_boot, safety = codes
    tech = _TECH[_COMFORT[persons, doors, lug_boot], safety]
    y = pick(("unacc", "acc", "good", "vgood"), _CAR[_PRICE[buying, maint], tech])
    return nominal("car", values, codes, y, "UCI car evaluation, from its decision model")


# Levels from best to worst.
_EMPLOY = np.array([[0, 1, 1, 2, 3], [1, 1, 2, 3, 3], [2, 2, 3, 3, 3]])  # parents, has_nurs
_STRUCTURE = np.array([[0, 1, 2, 2], [1, 1, 2, 2], [1, 2, 2, 2], [2, 2, 2, 2]])  # form, children
_STRUCT_FINAN = np.array(  # structure, housing, finance
    [[[0, 1], [1, 1], [1, 1]], [[1, 1], [1, 1], [2, 2]], [[1, 2], [2, 2], [2, 2]]]
)
_SOC_HEALTH = np.array([[0, 1, 2], [0, 1, 2], [1, 1, 2]])  # social, health
_NURSERY = np.array(  # soc_health, struct_finan, employ
    [
        [[0, 1, 2, 2], [1, 1, 2, 2], [2, 2, 2, 3]],
        [[2, 2, 2, 2], [2, 2, 2, 3], [2, 2, 3, 3]],
        [[4, 4, 4, 4]] * 3,
    ]
)


def nursery() -> Dataset:
    """Nursery admission: a decision model over eight attributes (12,960 rows).

    NURSERY(EMPLOY(parents, has_nurs), STRUCT_FINAN(STRUCTURE(form, children), housing, finance),
    SOC_HEALTH(social, health)), where each concept in capitals is a table of levels.

    Examples
    --------
    >>> from tabweave.datasets import nursery
    >>> labels = nursery().y.tolist()
    >>> [labels.count(label) for label in ("recommend", "very_recom", "not_recom")]
    [2, 328, 4320]
    """
    values = {
        "parents": ("usual", "pretentious", "great_pret"),
        "has_nurs": ("proper", "less_proper", "improper", "critical", "very_crit"),
        "form": ("complete", "completed", "incomplete", "foster"),
        "children": ("1", "2", "3", "more"),
        "housing": ("convenient", "less_conv", "critical"),
        "finance": ("convenient", "inconv"),
        "social": ("nonprob", "slightly_prob", "problematic"),
        "health": ("recommended", "priority", "not_recom"),
    }
    codes = grid(values)
    parents, has_nurs, form, children, housing, finance, social, health = codes
    standing = _STRUCT_FINAN[_STRUCTURE[form, children], housing, finance]
    rank = _NURSERY[_SOC_HEALTH[social, health], standing, _EMPLOY[parents, has_nurs]]
    labels = ("recommend", "very_recom", "priority", "spec_prior", "not_recom")
    return nominal("nursery", values, codes, pick(labels, rank), "UCI, from its decision model")


def three_of_9() -> Dataset:
    """All strings of nine bits; positive if three neighbouring bits are set (512 rows).

    The name suggests "at least three of nine"; the published labels want them in a row.

    Examples
    --------
    >>> from tabweave.datasets import three_of_9
    >>> int((three_of_9().y == "1").sum())
    238
    """
    values = {f"F{i}": BITS for i in range(1, 10)}
    codes = grid(values)
    in_a_row = ((codes[:-2] + codes[1:-1] + codes[2:]) == 3).any(axis=0)
    return nominal("three_of_9", values, codes, pick(BITS, in_a_row), "PMLB threeOf9")


# Drowned and survived; by status, then adult male, adult female, child male, child female.
_TITANIC = [
    [(118, 57), (4, 140), (0, 5), (0, 1)],
    [(154, 14), (13, 80), (0, 11), (0, 13)],
    [(387, 75), (89, 76), (35, 13), (17, 14)],
    [(670, 192), (3, 20), (0, 0), (0, 0)],
]


def titanic() -> Dataset:
    """Titanic: status, age and sex of the 2201 people on board; the class says who survived.

    Written out from the four-way table of counts of the official inquiry.

    Examples
    --------
    >>> from tabweave.datasets import titanic
    >>> titanic().columns["status"][-1], int((titanic().y == "yes").sum())
    ('crew', 711)
    """
    values = {
        "status": ("first", "second", "third", "crew"),
        "age": ("adult", "child"),
        "sex": ("male", "female"),
    }
    cells = grid({**values, "class": ("no", "yes")})
    rows = np.repeat(cells, np.ravel(_TITANIC), axis=1)
    return nominal("titanic", values, rows[:3], pick(("no", "yes"), rows[3]), "four-way counts")


_BOARD = {"file": "abcdefgh", "rank": "12345678"}
_DEPTHS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
    "fifteen sixteen draw"
).split()
NOT_WON = np.int8(100)  # larger than any depth of win
_ILLEGAL = np.int8(-1)
_STEPS = [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j]


def krkopt() -> Dataset:
    """King and rook against king: moves white needs to mate, black to move (28,056 rows).

    Every position up to symmetry, solved by retrograde analysis (well under a second). The class
    is "zero" (mated already) to "sixteen", or "draw".

    Examples
    --------
    >>> from tabweave.datasets import krkopt
    >>> krkopt()
    Dataset('krkopt': 28056 rows x 6 columns (6 nominal), 18 classes)
    """
    pieces = ("white_king", "white_rook", "black_king")
    values = {f"{p}_{axis}": on for p in pieces for axis, on in _BOARD.items()}
    squares = canonical()
    y = pick(_DEPTHS, np.minimum(depth_of_win()[tuple(squares)], len(_DEPTHS) - 1))
    return nominal("krkopt", values, squares, y, "UCI king-rook-king, from the rules of chess")


def depth_of_win() -> np.ndarray:
    """White moves to mate with black to move, all 8^6 positions; NOT_WON where there is none.

    Black maximises over its king moves, white minimises over its own; the fixed point is reached
    from the mates outward, one white move per round.
    """
    wf, wr, rf, rr, bf, br = np.indices((8,) * 6, dtype=np.int8, sparse=True)
    touching = (abs(wf - bf) <= 1) & (abs(wr - br) <= 1)
    blocked = (wf == rf) & (wr == rr)
    capture = (rf == bf) & (rr == br)
    check = _on_line(rf, rr, bf, br, wf, wr) | _on_line(rr, rf, br, bf, wr, wf)
    check &= ~capture
    legal = ~(touching | blocked | capture)
    stuck = np.where(check, np.int8(0), NOT_WON)  # no move left: mate in check, else stalemate

    depth = np.full((8,) * 6, NOT_WON)
    while True:
        won = np.minimum(_king_step(depth, (0, 1), np.minimum, NOT_WON), _slides(depth, blocked))
        reply = np.where(capture, NOT_WON, np.minimum(won + np.int8(1), NOT_WON))
        # A guarded rook touches its king, so taking it is ruled out by the same mask.
        worst = _king_step(np.where(touching | check, _ILLEGAL, reply), (4, 5), np.maximum)
        new = np.where(legal, np.where(worst == _ILLEGAL, stuck, worst), NOT_WON)
        if np.array_equal(new, depth):
            return depth
        depth = new


def canonical() -> np.ndarray:
    """One of each set of mirror images, six coordinates by position, black to move.

    The white king stands in the triangle a1-d1-d4; while all pieces so far stand on the long
    diagonal, the next one stands on it or below. 28,056 positions remain.
    """
    squares = np.indices((4, 4, 8, 8, 8, 8), dtype=np.int8).reshape(6, -1)
    wf, wr, rf, rr, bf, br = squares
    touching = (abs(wf - bf) <= 1) & (abs(wr - br) <= 1)
    rook_alone = ((wf != rf) | (wr != rr)) & ((bf != rf) | (br != rr))
    chosen = (wf > wr) | ((wf == wr) & ((bf > br) | ((bf == br) & (rf >= rr))))
    return squares[:, ~touching & rook_alone & chosen]


def _on_line(
    rook: np.ndarray,
    rook_other: np.ndarray,
    target: np.ndarray,
    target_other: np.ndarray,
    king: np.ndarray,
    king_other: np.ndarray,
) -> np.ndarray:
    """Whether rook and target share a file (or rank) with no white king in between."""
    between = (king_other - rook_other) * (target_other - king_other) > 0
    return (rook == target) & ~((king == rook) & between)


def _king_step(
    value: np.ndarray, axes: tuple[int, int], best: np.ufunc, off_board: np.int8 = _ILLEGAL
) -> np.ndarray:
    """Find the best value among the eight squares around the king on these two axes."""
    grid = np.moveaxis(value, axes, (0, 1))
    padded = np.full((10, 10, *grid.shape[2:]), off_board)
    padded[1:9, 1:9] = grid
    around = [padded[1 + i : 9 + i, 1 + j : 9 + j] for i, j in _STEPS]
    return np.moveaxis(best.reduce(around), (0, 1), axes)


def _slides(value: np.ndarray, blocked: np.ndarray) -> np.ndarray:
    """Find the smallest value the rook can reach; it does not pass its own king.

    It never passes the black king either: that would be a check with white to move.
    """
    result = np.full(value.shape, NOT_WON)
    wall = np.broadcast_to(blocked, value.shape)
    for axis in (2, 3):
        for direction in (1, -1):
            source, stop, out = (
                np.moveaxis(a, axis, 0)[::direction] for a in (value, wall, result)
            )
            reach = np.full(source.shape[1:], NOT_WON)
            for i in range(6, -1, -1):
                reach = np.where(stop[i + 1], NOT_WON, np.minimum(reach, source[i + 1]))
                np.minimum(out[i], reach, out=out[i])
    return result


def grid(values: Mapping[str, Sequence[str]]) -> np.ndarray:
    """Codes of all combinations of values, one row per column name, first name slowest."""
    return np.indices([len(v) for v in values.values()]).reshape(len(values), -1)


def pick(values: Sequence[str], codes: np.ndarray) -> np.ndarray:
    """Spell codes out as values."""
    return np.array(list(values), dtype=object)[codes.astype(np.intp)]


def nominal(
    name: str,
    values: Mapping[str, Sequence[str]],
    codes: np.ndarray,
    y: np.ndarray,
    description: str,
) -> Dataset:
    """Put a data set together from the values of its columns and their codes."""
    columns = {
        column: pick(spelling, row)
        for (column, spelling), row in zip(values.items(), codes, strict=True)
    }
    return Dataset(name, columns, y, dict.fromkeys(columns, "nominal"), description)


# -- Tables drawn at random: a new sample at every call, for tests, examples and measurements -----
#
# `make_coupled` draws rows from hidden clusters; its knobs say how strongly the columns follow
# them, how unlike the columns are, and how the table changes from its first row to its last.
# `make_codes` draws bare integer codes for benchmarks. `mofn_3_7_10`, `led24` and `waveform`
# are classic sets: they share the rule, the column names and the labels with the published
# files, not the rows.


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
