"""Every answer of every estimator belongs to one state, whatever is updated while it is read."""

import copy
import inspect
import pickle
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone

import tabweave
from tabweave import OneHot, Sources, updates
from tabweave.updates import lock_of

SOURCE = str(Path(tabweave.__file__).parent)
N_READS = 20  # of each method of each estimator; the slow test has a hundred times as many


def public_estimators():
    rooms = [getattr(tabweave, name) for name in tabweave.__all__]
    for module in (tabweave, *filter(inspect.ismodule, rooms)):
        for name in getattr(module, "__all__", ()):
            if inspect.isclass(cls := getattr(module, name)) and issubclass(cls, BaseEstimator):
                yield cls


CLASSES = list(dict.fromkeys(public_estimators()))
CLASSES.remove(tabweave.papers.MatrixFactorization)  # is fitted, and never updated
FEW = {"n_clusters": 2, "random_state": 0, "perplexity": 4, "n_rounds": 3, "n_init": 1}
FEW |= {"max_iter": 5, "n_validation": 20, "n_neighbors": 3, "n_atoms": 4}
MANY_SOURCES = ("GBCClassifier", "GBCRegressor", "CoCA", "HeMap")


def rows_of(seed, kind, n=24):
    """Return a table and its target; a third of the values are those of its seed only."""
    rng = np.random.default_rng(seed)
    first, second = rng.integers(0, 3, n), rng.integers(0, 2, n)
    y = np.array(["u", "v"])[(first + second + seed) % 2]
    if kind == "numbers":
        return rng.poisson(3.0 + seed, (n, 3)) + 1.0, y
    if kind == "sets":
        return {"s": [[f"s{i}", f"t{j}"] for i, j in zip(first, second, strict=True)]}, y
    table = {"a": [f"a{i}" for i in first], "b": [f"b{j}" for j in second]}
    table["c"] = [f"c{(i + seed * j) % (2 + seed)}" for i, j in zip(first, second, strict=True)]
    if kind == "mixed":
        table["n"] = (first * (1 + seed) + rng.normal(size=n)).tolist()
    if kind == "sources":
        frame = {"id": list(range(n)), **table}
        return Sources({"one": frame, "two": frame}, key="id"), dict(enumerate(y))
    return table, y


def small(cls):
    model = cls()
    few = FEW | {"align": False}  # or vectors are turned to those that were asked for before
    model.set_params(**{k: v for k, v in few.items() if k in model.get_params(deep=False)})
    if cls is tabweave.Windowed:
        model.set_params(embedder=OneHot())
    return model


def kind_of(cls):
    """Return the first kind of table that an estimator reads, and whether its target is numbers."""
    for kind in ("mixed", "categories", "numbers", "sets"):
        for numeric in (False, True):
            X, y = rows_of(0, kind)
            try:
                warnings.simplefilter("error", UserWarning)
                small(cls).fit(X, (y == "u") * 1.5 if numeric else y)
            except (ValueError, TypeError, UserWarning):  # of numbers that are read as categories
                continue
            finally:
                warnings.simplefilter("ignore")
            return kind, numeric
    raise AssertionError(f"no table fits {cls.__name__}")


class History:
    """An estimator, the updates that it goes through, and what may be read of it."""

    def __init__(self, cls):
        self.cls = cls
        self.kind, self.numeric = kind_of(cls)
        self.batches = [rows_of(seed, self.kind) for seed in (0, 1, 2)]

    def update(self, model, number):
        """Bring a model from one state to the next; the fourth is followed by the first."""
        X, y = self.batches[number % 3]
        y = (y == "u") * 1.5 if self.numeric else y
        add = next((n for n in ("partial_fit", "add") if hasattr(model, n)), "fit")
        if number % 4 == 0:
            model.fit(X, y)
        elif number % 4 == 3 and hasattr(model, "forget"):
            if hasattr(model, "ids_") or hasattr(model, "kneighbors"):
                model.forget([0, 1])
            else:
                model.forget(X)
        elif number % 4 == 3 and hasattr(model, "remove"):
            model.remove([0, 1])
        elif add == "add":
            model.add(X)
        else:
            getattr(model, add)(X, y)

    def readers(self):
        X = self.batches[0][0]
        asked = X[:5] if isinstance(X, np.ndarray) else {name: X[name][:5] for name in X}
        calls = {
            "query": lambda model: tuple(model.query(asked, 2))[:2],
            "kneighbors": lambda model: model.kneighbors(asked, 2),
            "get_feature_names_out": lambda model: model.get_feature_names_out(),
            "pairwise_distances": lambda model: model.pairwise_distances(asked),
        }
        for name in ("transform", "predict", "predict_proba", "score_samples"):
            calls[name] = lambda model, name=name: getattr(model, name)(asked)
        return {name: call for name, call in calls.items() if hasattr(self.cls, name)}

    def states(self):
        """Return the answers after each of four updates."""
        model, readers = small(self.cls), self.readers()
        out = []
        for number in range(4):
            self.update(model, number)
            out.append({name: answer(model, call) for name, call in readers.items()})
        return out


def answer(model, call):
    """Return what a model says, an error among it."""
    try:
        found = call(model)
    except (ValueError, TypeError, AttributeError) as error:
        return type(error)
    found = found.toarray() if hasattr(found, "toarray") else found
    parts = found.values() if isinstance(found, dict) else found
    return [np.asarray(part) for part in (parts if isinstance(found, tuple | dict) else (found,))]


def equal(one, other):
    if one.shape != other.shape:
        return False
    if one.dtype.kind in "fc":
        return np.allclose(one, other, atol=1e-9, equal_nan=True)
    return (one == other).all()


def same(one, other):
    if isinstance(one, type) or isinstance(other, type):
        return one is other
    return len(one) == len(other) and all(map(equal, one, other))


def torn_answers(cls, n_reads):
    """Read an estimator, and copies of it, while it is updated; return what fits no state."""
    history = History(cls)
    states, readers = history.states(), history.readers()
    model, done, torn = small(cls), threading.Event(), []
    history.update(model, 0)

    def write():
        number = 0
        while not done.is_set():
            number += 1
            history.update(model, number % 4)

    def read(seed):
        for turn in range(n_reads // 2):
            for name, call in readers.items():
                got = answer(model, call)
                if not any(same(got, state[name]) for state in states):
                    torn.append((name, got))
            if turn % 5 == seed:
                made = (copy.deepcopy, copy.copy, lambda m: pickle.loads(pickle.dumps(m)))[turn % 3]
                whole = made(model)
                got = {name: answer(whole, call) for name, call in readers.items()}
                if not any(all(same(got[n], s[n]) for n in readers) for s in states):
                    torn.append(("copy", got))
                clone(model)
        return True

    with ThreadPoolExecutor(3) as pool:
        writing = pool.submit(write)
        try:
            assert all(pool.map(read, range(2)))
        finally:
            done.set()
        writing.result()
    return torn


@pytest.fixture(autouse=True)
def few_words():
    """Ignore warnings in all threads: half of the values asked about are unknown to some states."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


UPDATED = [cls for cls in CLASSES if cls.__name__ not in MANY_SOURCES]


@pytest.fixture
def impatient():
    """Let threads take turns as often as they can."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(usual)


@pytest.mark.parametrize("cls", UPDATED, ids=lambda cls: f"{cls.__module__}.{cls.__name__}")
def test_every_answer_belongs_to_a_state(cls, impatient):
    assert not torn_answers(cls, N_READS)


def lines_read(model, call):
    """Return the lines of the package that a reader runs, each once, in order."""
    lines = {}

    def trace(frame, event, _):
        if not frame.f_code.co_filename.startswith(SOURCE):
            return None
        lines.setdefault((frame.f_code, frame.f_lineno))
        return trace

    sys.settrace(trace)
    try:
        answer(model, call)
    finally:
        sys.settrace(None)
    return list(lines)


def read_with_update_at(model, call, line, update, free):
    """Return what a reader says if an update is published the first time that it runs a line.

    Where no lock is free, as when a state is completed, it is published as soon as one is.
    """
    waiting = [line]

    def trace(frame, event, _):
        if not frame.f_code.co_filename.startswith(SOURCE):
            return None
        if waiting and waiting[0] == (frame.f_code, frame.f_lineno):
            waiting.clear()
            thread.start()
            thread.join(timeout=5 if free() else 0.01)
        return trace if waiting else None

    thread = threading.Thread(target=update)
    sys.settrace(trace)
    try:
        return answer(model, call)
    finally:
        sys.settrace(None)
        if not waiting:
            thread.join()


def answers_torn_at_a_line(cls, n_lines=None, numbers=(0, 1, 2)):
    """Publish an update at each line of each reader; return the number of reads, and the torn."""
    history, n_reads, torn = History(cls), 0, []
    states = history.states()
    readers = history.readers() | COPIES
    model = small(cls)

    def free():
        with ThreadPoolExecutor(1) as other:
            return other.submit(can_update).result()

    def can_update():
        if not (may := updates._locking.acquire(blocking=False)):
            return False
        updates._locking.release()
        if may := (lock := lock_of(model)).acquire(blocking=False):
            lock.release()
        return may

    for name, call in readers.items():
        answers = [state[name] for state in states] if name not in COPIES else None
        for number in numbers:
            bring_to(history, model, number)
            lines = lines_read(model, call)
            step = max(1, -(-len(lines) // (n_lines or len(lines) or 1)))
            for line in lines[step // 2 :: step]:
                bring_to(history, model, number)
                update = partial(history.update, model, number + 1)
                got, n_reads = read_with_update_at(model, call, line, update, free), n_reads + 1
                if answers is not None:
                    whole = any(same(got, state) for state in answers)
                else:
                    found = {n: answer(got[0].item(), c) for n, c in history.readers().items()}
                    whole = any(all(same(found[n], s[n]) for n in found) for s in states)
                if not whole:
                    torn.append((name, line[0].co_qualname, line[1]))
    return n_reads, torn


def bring_to(history, model, number):
    """Bring a model to the state of a number, from wherever it is."""
    for step in range(number + 1):
        history.update(model, step)


COPIES = {
    "deepcopy": lambda model: boxed(copy.deepcopy(model)),
    "pickle": lambda model: boxed(pickle.loads(pickle.dumps(model))),
}


def boxed(model):
    box = np.empty((), object)
    box[()] = model
    return box


@pytest.mark.parametrize("cls", UPDATED, ids=lambda cls: f"{cls.__module__}.{cls.__name__}")
def test_an_update_at_a_line_of_a_reader_tears_no_answer(cls):
    n_reads, torn = answers_torn_at_a_line(cls, n_lines=1, numbers=(1,))
    assert n_reads and not torn


@pytest.mark.slow
@pytest.mark.parametrize("cls", UPDATED, ids=lambda cls: f"{cls.__module__}.{cls.__name__}")
def test_an_update_at_any_line_of_a_reader_tears_no_answer(cls):
    n_reads, torn = answers_torn_at_a_line(cls)
    assert n_reads and not torn


@pytest.mark.slow
@pytest.mark.parametrize("cls", UPDATED, ids=lambda cls: f"{cls.__module__}.{cls.__name__}")
def test_every_answer_of_many_belongs_to_a_state(cls, impatient):
    assert not torn_answers(cls, 100 * N_READS)
