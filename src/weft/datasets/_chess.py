"""King and rook against king, solved by retrograde analysis.

Positions are arrays with six axes of eight: file and rank of the white king, of the white rook
and of the black king. Every rule of the game is one operation on such an array.
"""

from __future__ import annotations

import numpy as np

NOT_WON = np.int8(100)  # larger than any depth of win
_ILLEGAL = np.int8(-1)
_STEPS = [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j]


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
    rook_apart = ((wf != rf) | (wr != rr)) & ((bf != rf) | (br != rr))
    chosen = (wf > wr) | ((wf == wr) & ((bf > br) | ((bf == br) & (rf >= rr))))
    return squares[:, ~touching & rook_apart & chosen]


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
