"""Threads: blocks of rows on all cores, each with a BLAS that stays on its own.

BLAS threads that wait for tiny products, or for each other on a busy machine, cost more than they
bring: rows are shared out here instead.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

_ROWS = 512  # rows a thread takes at once: their products with the atoms stay in its cache


def share_rows(work: Callable[[slice], None], n_rows: int) -> None:
    """Call ``work(rows)`` for blocks of rows, on all cores."""
    from weft._gather_kernels import in_threads

    blocks = [slice(start, min(start + _ROWS, n_rows)) for start in range(0, n_rows, _ROWS)]
    with one_blas_thread():
        in_threads(work, blocks)


def one_blas_thread() -> Any:
    """Return a context in which BLAS uses one thread."""
    return _controller().limit(limits=1, user_api="blas")


@cache
def _controller() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
