"""Updates: a new state is made on a draft and published at once; who reads keeps the state met.

The state of an estimator is its ``__dict__``. An *update* (``fit``, ``partial_fit``, ``add``, ...)
works on a draft, which has a copy of that dictionary, and then puts it in the place of the old one:
it is made whole or not at all. Any other public method *reads*: it works on a view, which has the
dictionary that was there when it was called, so all it reads is of one state, however many updates
are published meanwhile. What follows from a state and is kept (*completing* it) is put into its
dictionary at once.

A draft has copies of the estimators and random generators that an object made for itself. All else
in a state, arrays first of all, an update replaces and never changes.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from copy import deepcopy
from functools import wraps
from threading import Lock, RLock
from types import FunctionType
from typing import Any, NamedTuple, TypeVar
from weakref import WeakKeyDictionary

import numpy as np

UPDATES = frozenset(
    "fit partial_fit fit_counts fit_transform fit_predict fit_batches fit_target tuned_by release "
    "add remove forget resume set_params".split()
)
_Method = TypeVar("_Method", bound=Callable[..., Any])
# Locks of estimators, beside them: neither files nor copies hold one.
_locks: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
_locking = Lock()


class _Draft(NamedTuple):
    """Says that a new state of an object is being made."""

    of: Any


class Stateful:
    """An object whose public methods are updates or readers, whatever subclass they stand in."""

    __slots__ = ("__weakref__", "_origin")  # whose view or draft this is

    def __init_subclass__(cls, **named: Any) -> None:
        super().__init_subclass__(**named)
        for name, member in list(vars(cls).items()):
            if name in UPDATES:
                decorate: Callable[[Any], Any] = updating
            elif name.startswith("_"):
                continue
            else:
                decorate = reading
            if isinstance(member, FunctionType):
                setattr(cls, name, decorate(member))
            elif isinstance(member, property) and member.fget is not None:
                setattr(cls, name, property(reading(member.fget), member.fset, member.fdel))
            elif hasattr(member, "fn"):  # available_if of scikit-learn
                member.fn = decorate(member.fn)

    def __getstate__(self) -> Any:
        """Return the state as it is now, for copies and pickles."""
        return dict(vars(self))


def origin_of(reader: Any) -> Any:
    """Return the object that a view or a draft is of; another object itself."""
    origin = getattr(reader, "_origin", reader)
    return origin.of if isinstance(origin, _Draft) else origin


def lock_of(owner: Any) -> Any:
    """Return the lock under which an object changes."""
    with _locking:
        return _locks.setdefault(origin_of(owner), RLock())


def updating(method: _Method) -> _Method:
    """Let a method make a new state on a draft, and publish it when it is done; one at a time."""

    @wraps(method)
    def published(self: Any, *args: Any, **named: Any) -> Any:
        if isinstance(getattr(self, "_origin", None), _Draft):
            return method(self, *args, **named)
        origin = origin_of(self)
        with lock_of(origin):
            draft = _twin(origin, _copied_state(origin))
            draft._origin = _Draft(origin)
            result = method(draft, *args, **named)
            draft._origin = origin  # from here on it is a view
            origin.__dict__ = self.__dict__ = draft.__dict__
        return self if result is draft else result

    return published  # type: ignore[return-value]


def reading(method: _Method) -> _Method:
    """Let a method work on the state that is there when it is called."""

    @wraps(method)
    def on_state(self: Any, *args: Any, **named: Any) -> Any:
        if hasattr(self, "_origin"):
            return method(self, *args, **named)
        view = _twin(self, self.__dict__)
        result = method(view, *args, **named)
        return self if result is view else result

    return on_state  # type: ignore[return-value]


def completing(method: _Method) -> _Method:
    """Let a method put into a state what follows from it, all at once; one thread at a time."""

    @wraps(method)
    def completed(self: Any, *args: Any, **named: Any) -> Any:
        with lock_of(self):
            state: dict[str, Any] = self.__dict__
            whole = _twin(origin_of(self), dict(state))
            result = method(whole, *args, **named)
            state.update(vars(whole))
        return self if result is whole else result

    return completed  # type: ignore[return-value]


@completing
def complete(owner: Any, find: Callable[[Any], object]) -> None:
    """Put what follows from a state into it, unless it is there; ``_learned`` names what it is."""
    state = vars(owner)
    if not state.get("_learned"):
        before = set(state)
        find(owner)
        owner._learned = tuple(sorted(set(state) - before))


def exclusive(method: _Method) -> _Method:
    """Let one thread at a time run the methods of an object that are so decorated."""

    @wraps(method)
    def alone(self: Any, *args: Any, **named: Any) -> Any:
        with lock_of(self):
            return method(self, *args, **named)

    return alone  # type: ignore[return-value]


def _copied_state(origin: Any) -> dict[str, Any]:
    """Return a state whose changes leave that of an object as it is."""
    state = dict(vars(origin))
    parameters = {id(state.get(name)) for name in origin._get_param_names()}
    for name, value in state.items():
        if id(value) in parameters:
            continue
        if isinstance(value, Stateful):
            copied: Any = object.__new__(type(value))
            copied.__dict__ = dict(vars(value))
            state[name] = copied
        elif isinstance(value, np.random.RandomState):
            state[name] = deepcopy(value)
    return state


def _twin(origin: Any, state: dict[str, Any]) -> Any:
    twin = object.__new__(type(origin))
    twin.__dict__ = state
    twin._origin = origin
    return twin


def _after_fork() -> None:
    """Forget the locks: a thread that held one does not live on in a child process."""
    global _locking
    _locking = Lock()
    _locks.clear()


if hasattr(os, "register_at_fork"):  # pragma: no branch (Windows never forks)
    os.register_at_fork(after_in_child=_after_fork)
