"""Other packages: optional ones and numba when used, scikit-learn's private parts, notebooks.

And the user's code and machine: warnings name its line, work is shared among the cores it may use.
"""

from __future__ import annotations

import html
import os
import sys
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import copy_context
from functools import cache, update_wrapper
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from threading import RLock
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from sklearn.utils._param_validation import (
        HasMethods,
        Interval,
        Options,
        StrOptions,
        validate_parameter_constraints,
    )

__all__ = [
    "HasMethods",
    "Interval",
    "Options",
    "StrOptions",
    "blas_threads",
    "eigh",
    "html_table",
    "njit",
    "one_blas_thread",
    "one_thread",
    "page_of_class",
    "require",
    "validate_parameter_constraints",
    "warn_caller",
]

F = TypeVar("F", bound=Callable[..., Any])
R = TypeVar("R")
_LOADING = RLock()
_warned = False
_LIMITING = RLock()
_limited: list[Any] = []  # one for each that is inside; the first has the threads of BLAS before


_NAMES_IN_INDEX = {
    "cupy": "cupy-cuda13x",
    "python_calamine": "python-calamine",
    "dask": "dask[dataframe]",
}


def require(module: str, extra: str) -> ModuleType:
    """Import an optional package, or say how to install it."""
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        name = _NAMES_IN_INDEX.get(package, package)
        raise ImportError(
            f"this needs {package}: pip install {name}, or in a checkout of tabweave all that the "
            f"extra brings: pip install -e '.[{extra}]'"
        ) from error


def warn_caller(message: str) -> None:
    """Warn, naming the line that called this package, directly or through scikit-learn."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and _is_between(frame.f_globals.get("__name__", "")):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, UserWarning, stacklevel=level)


def _is_between(module: str) -> bool:
    """Whether a module stands between the user's code and a warning."""
    return module.partition(".")[0] in ("tabweave", "sklearn")


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Let BLAS use one thread until the last that asked for it leaves.

    Its threads wait for each other at every step of a decomposition: for matrices of some hundred
    rows they save nothing, and where other work shares the cores they take a hundred times as long.
    """
    libraries = _blas().lib_controllers
    with _LIMITING:
        _limited.append([] if _limited else [library.num_threads for library in libraries])
        for library in libraries if len(_limited) == 1 else ():
            library.set_num_threads(1)
    try:
        yield
    finally:
        with _LIMITING:
            for library, n in zip(libraries, _limited[0], strict=True):
                if len(_limited) == 1:
                    library.set_num_threads(n)
            _limited.pop()


def blas_threads(n_products: float) -> AbstractContextManager[None]:
    """Let BLAS use one thread, unless so many multiplications are worth waiting for others.

    For less than a tenth of a second it is not: on a busy machine threads that wait for each other
    take several times as long as one that works.
    """
    return one_blas_thread() if n_products < 1 << 30 else nullcontext()


@contextmanager
def one_thread() -> Iterator[None]:
    """Let BLAS and OpenMP use one thread: sums repeat to the last bit, whatever the machine.

    Use it around scikit-learn's k-means and openTSNE. OpenMP keeps its number of threads for each
    thread that asks, so it is limited for the caller alone.
    """
    limits = import_module("threadpoolctl").threadpool_limits
    with one_blas_thread(), limits(1, user_api="openmp"):
        yield


# -- threads ------------------------------------------------------------------------------------

MIN_ROWS_FOR_THREADS = 1 << 16  # From so many rows on threads share the work.


def n_threads() -> int:
    """How many threads may work: of this process's cores, as many as its limits allow.

    Limits are those of the container, of ``NUMBA_NUM_THREADS``, and of BLAS, which
    ``OMP_NUM_THREADS`` and ``threadpoolctl.threadpool_limits`` set.
    """
    has_affinity = hasattr(os, "sched_getaffinity")
    cores = len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count() or 1
    limits = [cores, _container_cores()]
    asked = os.environ.get("NUMBA_NUM_THREADS", "")
    limits += [int(asked)] if asked.isdecimal() else []
    with _LIMITING:
        if not _limited:  # while we limit BLAS ourselves, its limit says nothing
            limits += [library.num_threads for library in _blas().lib_controllers]
    return max(1, min(limits))


@cache
def _container_cores() -> int:
    """How many cores the quota of a container comes to; very many without one."""
    folder = Path("/sys/fs/cgroup")
    try:
        if (folder / "cpu.max").exists():
            quota, period = (folder / "cpu.max").read_text(encoding="ascii").split()
        else:
            names = "cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us"
            quota, period = ((folder / name).read_text(encoding="ascii") for name in names)
        return -(-int(quota) // int(period)) if int(quota) > 0 else sys.maxsize
    except (OSError, ValueError):  # no container, or "max"
        return sys.maxsize


def in_threads(work: Callable[[Any], R], items: Sequence[Any]) -> list[R]:
    """The results of independent pieces of work, in order, on all cores if there are several.

    The caller works, too, and threads that have nothing else to do help it: so work may be shared
    out within work, in the one pool, and settings of a context hold in all of them. BLAS uses one
    thread: results are the same for any number.
    """
    threads = min(n_threads(), len(items)) if len(items) > 1 else 1
    results: list[Any] = [None] * len(items)
    errors: dict[int, BaseException] = {}
    waiting, seats, helpers = deque(range(len(items))), iter(range(threads - 1)), []

    def call_helpers() -> None:
        """Wake two threads, each of which wakes two: of short work the first do all of it."""
        for _ in range(2 if waiting else 0):
            if next(seats, None) is not None:
                helpers.append(_pool().submit(copy_context().run, help_out))

    def help_out() -> None:
        call_helpers()
        go_on()

    def go_on() -> None:
        while waiting:
            try:
                i = waiting.popleft()
            except IndexError:  # another thread took the last
                return
            try:
                results[i] = work(items[i])
            except BaseException as error:
                errors[i] = error
                waiting.clear()

    with one_blas_thread() if len(items) > 1 else nullcontext():
        call_helpers()
        try:
            go_on()
            for helper in helpers:  # those that a helper woke stand behind it
                if not helper.cancel():
                    helper.result()
        finally:  # interrupted, too
            waiting.clear()
    if errors:
        raise errors[min(errors)]  # the one that comes first, as without threads
    return results


@cache
def _pool() -> Any:
    """The one pool of threads: as many as cores, of which fewer may be asked for."""
    pool = import_module("concurrent.futures").ThreadPoolExecutor
    return pool(max(os.cpu_count() or 1, 2) - 1, "tabweave")


def prefetched(items: Iterable[Any]) -> Iterator[Any]:
    """Items that a second thread fetches, one ahead; its errors are raised here."""
    iterator, end = iter(items), object()
    try:
        executor = import_module("concurrent.futures").ThreadPoolExecutor
        with executor(1) as thread:  # which ends with what it is fetching
            context = copy_context()
            ahead = thread.submit(context.run, next, iterator, end)
            while (item := ahead.result()) is not end:
                ahead = thread.submit(context.run, next, iterator, end)
                yield item
    finally:
        if hasattr(iterator, "close"):
            iterator.close()


def row_slabs(n_rows: int) -> list[slice]:
    """The rows cut into as many runs as there are threads, if rows are many."""
    n_slabs = n_threads() if n_rows >= MIN_ROWS_FOR_THREADS else 1
    edges = [n_rows * i // n_slabs for i in range(n_slabs + 1)]
    return [slice(first, last) for first, last in pairwise(edges)]


if hasattr(os, "register_at_fork"):  # pragma: no branch (Windows never forks)
    os.register_at_fork(after_in_child=_pool.cache_clear)


# -- matrices -----------------------------------------------------------------------------------


def eigh(matrix: Any, n_largest: int | None = None) -> tuple[Any, Any]:
    """Eigenvalues of a symmetric matrix, ascending, and their vectors: all, or the last."""
    symmetric = (matrix + matrix.T) / 2  # but for rounding it is so already
    with one_blas_thread():
        if n_largest is not None:
            indices = len(matrix) - n_largest, len(matrix) - 1
            largest = import_module("scipy.linalg").eigh(symmetric, subset_by_index=indices)
            if len(largest[0]) == n_largest:  # LAPACK misses some where very many are equal
                return largest
        values, vectors = import_module("numpy.linalg").eigh(symmetric)
    first = 0 if n_largest is None else len(matrix) - n_largest
    return values[first:], vectors[:, first:]


def fix_signs(axes: Any) -> Any:
    """Axes, one a column, turned so that the largest entry of each is positive.

    An eigenvector may point either way; so results repeat. Of entries equally large, but for
    rounding, the first decides. A column of zeros stays.
    """
    np = import_module("numpy")
    if not axes.size:
        return axes
    size = np.abs(axes)
    largest = size >= (1 - 1e-6) * size.max(axis=0)
    deciding = axes[largest.argmax(axis=0), np.arange(axes.shape[1])]
    return axes * np.copysign(1.0, deciding)


@cache
def _blas() -> Any:
    """What sets the threads of BLAS: NumPy's and SciPy's, each has its own."""
    import_module("scipy.linalg")
    return import_module("threadpoolctl").ThreadpoolController().select(user_api="blas")


def page_of_class(cls: type) -> str:
    """The address of a class's page, or an empty text for what is not ours or nowhere.

    The site is where ``TABWEAVE_DOCS`` says, else where the package says its documentation is, else
    the folder that ``make docs`` built in this checkout.
    """
    parts = cls.__module__.split(".")
    if parts[0] != "tabweave":
        return ""
    site = os.environ.get("TABWEAVE_DOCS") or _published_site() or _built_site()
    if not site:
        return ""
    for depth in range(1, len(parts) + 1):  # a class is known by the shortest name it has
        room = ".".join(parts[:depth])
        if getattr(import_module(room), cls.__name__, None) is cls:
            return f"{site.rstrip('/')}/api/{room}.{cls.__name__}.html"
    return ""


def _published_site() -> str:
    from importlib.metadata import PackageNotFoundError, metadata

    try:
        urls = metadata("tabweave").get_all("Project-URL") or []
    except PackageNotFoundError:  # the sources, not installed
        return ""
    entries = (line.partition(",") for line in urls)
    return next((url.strip() for name, _, url in entries if name == "Documentation"), "")


def _built_site() -> str:
    folder = Path(__file__).parents[2] / "site"
    return folder.as_uri() if (folder / "api" / "index.html").exists() else ""


def html_table(
    caption: str, heads: Sequence[Any], rows: Sequence[Sequence[Any]], shade: Any = None
) -> str:
    """A table as notebooks show it: what an object's ``_repr_html_`` returns.

    Parameters
    ----------
    caption : str
        A line above.
    heads, rows : sequence, sequence of sequences
        Names of the columns, and cells; shown as text, whatever they hold, up to 60 characters.
    shade : callable, optional
        From the numbers of a row and a column to how dark the cell is, from 0 to 1, or None.
    """

    def plain(value: Any) -> str:
        text = str(value)
        return html.escape(text if len(text) <= 60 else f"{text[:59]}…")

    def figure(value: float) -> str:
        return f"{value:.0f}" if 1e4 <= abs(value) < 1e15 else f"{value:.4g}"

    def cell(value: Any, i: int, j: int) -> str:
        number = isinstance(value, float)
        text = figure(value) if number else "–" if value is None else plain(value)
        style = "text-align:right;" if number or isinstance(value, int) else "text-align:left;"
        dark = shade(i, j) if shade is not None else None
        if dark is not None:
            ink = "#fff" if dark > 0.6 else "#111"
            style += f"color:{ink};background:color-mix(in oklab,#2d5f8f {dark:.0%},#f6f9fc)"
        return f'<td style="{style}">{text}</td>'

    head = "".join(f'<th style="text-align:left">{plain(h)}</th>' for h in heads)
    body = "".join(
        f"<tr>{''.join(cell(value, i, j) for j, value in enumerate(row))}</tr>"
        for i, row in enumerate(rows)
    )
    return (
        f'<table><caption style="text-align:left">{html.escape(caption)}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    )


def njit(
    *,
    plain: Callable[..., None] | None = None,
    work: Callable[..., int] | None = None,
    **options: Any,
) -> Callable[[F], F]:
    """Numba's decorator, which loads numba and compiles when there is work for it.

    Parameters
    ----------
    plain : callable, optional
        The same function in NumPy, with the same results to the last bit. It does the work while
        there is little of it: loading numba takes longer than counting some thousand rows.
    work : callable, optional
        How much there is to do for given arguments; by default the size of the largest array.
    **options
        As in ``numba.njit``. With ``cache=True`` a function works, and is compiled anew in every
        process, where no cache can be written or read.
    """

    def decorate(function: F) -> F:
        return _Compiled(function, plain, work or _largest_size, options)  # type: ignore[return-value]

    return decorate


class _Compiled:
    """A function that is compiled when it is worth it."""

    def __init__(
        self,
        function: Callable[..., Any],
        plain: Callable[..., None] | None,
        work_of: Callable[..., int],
        options: Any,
    ) -> None:
        update_wrapper(self, function)
        self.function, self.plain, self.options = function, plain, options
        self.work, self.work_of = 0, work_of
        self.compiled: Any = None

    def __call__(self, *args: Any) -> Any:
        if self.compiled is None:
            max_plain_work = 1 << 21  # elements that are worth less than to load numba
            if self.plain is not None and self.work < max_plain_work:
                self.work += self.work_of(*args) + 1024  # a call costs as much as so many
                if self.work < max_plain_work:
                    return self.plain(*args)
            self._load()
        return self.compiled(*args)

    def _load(self) -> None:
        """Hand all functions of the module to numba, which wants to see those that are called.

        Those of other modules, too, with what they call. Other threads see none of them as compiled
        before all names stand for compiled functions.
        """
        with _LOADING:
            scopes, waiting = [], [self.function.__globals__]
            functions = {id(self): self}
            while waiting:
                names = waiting.pop()
                called = {name: f for name, f in names.items() if isinstance(f, _Compiled)}
                scopes.append((names, called))
                new = [f for f in called.values() if id(f) not in functions]
                waiting += [f.function.__globals__ for f in new]
                functions |= {id(f): f for f in new}
            made = {i: f.compiled or _compiled(f.function, f.options) for i, f in functions.items()}
            for names, called in scopes:
                names |= {name: made[id(f)] for name, f in called.items()}
            self.function.__globals__[self.function.__name__] = made[id(self)]
            for i, function in functions.items():
                function.compiled = made[i]


def _largest_size(*args: Any) -> int:
    return max((arg.size for arg in args if hasattr(arg, "size")), default=0)


def _compiled(function: Callable[..., Any], options: dict[str, Any]) -> Any:
    import numba

    try:
        made = numba.njit(**options)(function)
    except RuntimeError:  # nowhere to write a cache: neither beside the package nor at home
        return numba.njit(**(options | {"cache": False}))(function)
    if options.get("cache") and hasattr(made, "_cache"):
        made._cache = _Cache(made._cache)
    return made


class _Cache:
    """A cache of numba's that is dropped where it is damaged, and not needed where it fails."""

    def __init__(self, cache: Any) -> None:
        self.cache = cache

    def load_overload(self, *args: Any) -> Any:
        """What was compiled before, if it can be read."""
        try:
            return self.cache.load_overload(*args)
        except Exception as error:
            self._drop(error)
            return None

    def save_overload(self, *args: Any) -> None:
        """Keep what was compiled, if it can be written."""
        try:
            self.cache.save_overload(*args)
        except Exception as error:
            self._drop(error)

    def _drop(self, error: Exception) -> None:
        global _warned
        try:
            self.cache.flush()
        except Exception:
            self.cache.disable()
        if not _warned:
            _warned = True
            warnings.warn(
                f"numba's cache in {self.cache.cache_path} is damaged or not writable "
                f"({type(error).__name__}: {error}); the function is compiled again",
                RuntimeWarning,
                stacklevel=2,
            )

    def __getattr__(self, name: str) -> Any:
        return getattr(self.cache, name)


def __getattr__(name: str) -> Any:
    # What parameters may be, in scikit-learn's words; it has no public door to them.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("sklearn.utils._param_validation"), name)


def seed_of(random_state: Any) -> int:
    """A seed from None, an integer, a ``RandomState`` or a ``Generator``."""
    import numpy as np
    from sklearn.utils import check_random_state

    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31 - 1))
    return int(check_random_state(random_state).randint(2**31 - 1))
