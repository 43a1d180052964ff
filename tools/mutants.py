"""Plant errors, one at a time, and see whether a test notices.

Usage: python tools/mutants.py [--files F ...] [--sample N] [--seed S] [--quick]

Each mutant is one small change of one function: a comparison turned, an operator exchanged, a
number moved by one, a condition negated, two arguments swapped, a keyword dropped, a statement
deleted. The tests of a room are collected once; they run once
without an error, to learn which of them enter which function and how long they take (kept in
build/mutants.json). Then a process is forked for each mutant, which exchanges the code of one
function in its own memory and runs the tests that enter it: those that killed before first, then
the quickest, and if all pass the others of the file's own tests. No file is written, nothing is
imported or compiled anew.

A mutant that no test kills is printed with its line: write a test, or list it in
``tools/survivors.txt`` with the reason why it changes nothing. Those of the list are planted, too,
and count as survivors in the first of the two figures. A test that kills must pass without an
error. For an error in a loop that numba compiles, all run as Python, with and without it.
"""

from __future__ import annotations

import argparse
import ast
import gc
import importlib
import json
import os
import random
import resource
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "tabweave"
ROOMS = ("columns", "counts", "measures", "io", "embed", "space", "neighbors", "cluster",
         "engines", "tasks", "sources", "papers", "datasets", "export",
         "apps/report")  # fmt: skip
FILES = (*(f"{room}/{path.relative_to(SOURCE / room).as_posix()}" for room in ROOMS
           for path in sorted((SOURCE / room).rglob("*.py")) if path.name != "__init__.py"),
         "base.py", "evaluate.py", "updates.py", "plots.py")  # fmt: skip
# Where the tests of a room are: its mirror, and what is made of it with numbers of somebody else.
TESTS = {
    "columns": ["tests/columns", "tests/test_bad_input.py", "tests/test_laws.py",
                "tests/counts/test_counts.py", "tests/engines/test_frames.py"],
    "counts": ["tests/counts", "tests/test_laws.py", "tests/test_compat.py", "tests/measures",
               "tests/io/test_archive.py", "tests/embed/test_weave.py", "tests/embed/test_untie.py",
               "tests/embed/test_factors.py", "tests/tasks/test_associations.py"],
    "space": ["tests/space", "tests/test_compat.py", "tests/neighbors",
              "tests/embed/test_onehot.py", "tests/embed/test_weave.py",
              "tests/embed/test_hierarchy.py"],
    "measures": ["tests/measures", "tests/embed/test_ckml.py", "tests/embed/test_value_metric.py",
                 "tests/papers/test_value_metric.py", "tests/test_papers.py"],
    "embed": ["tests/embed", "tests/columns/test_datetime.py"],
    "neighbors": ["tests/neighbors"],
    "cluster": ["tests/cluster"],
    "engines": ["tests/engines"],
    "tasks": ["tests/tasks"],
    "sources": ["tests/sources"],
    "papers": ["tests/papers", "tests/test_papers.py", "tests/test_errata.py"],
    "evaluate.py": ["tests/evaluate"],
    "datasets": ["tests/datasets"],
    "export": ["tests/export"],
    "apps": ["tests/apps/report"],  # those of the command line and the studio start processes
    "plots.py": ["tests/plots"],
    "updates.py": ["tests/test_updates.py", "tests/test_threads.py"],
    "io": ["tests/io/test_archive.py", "tests/io/test_codec.py", "tests/io/test_files.py",
           "tests/io/test_register.py", "tests/io/test_store.py"],
    "base.py": ["tests/embed/test_base.py"],
    "embed/base.py": ["tests/embed/test_base.py", "tests/test_threads.py",
                          "tests/embed/test_onehot.py"],
}  # fmt: skip
_FAILED = 3  # how a forked process ends that did not do its work
_HANGS = 60.0  # seconds without work after which a process waits for ever
NOTES = ROOT / "build" / "mutants.json"
_COMPARED = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
             ast.NotEq: ast.Eq, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot,
             ast.IsNot: ast.Is}  # fmt: skip
_COMPUTED = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.Mult,
             ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult, ast.BitAnd: ast.BitOr,
             ast.BitOr: ast.BitAnd}  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    """One planted error: which node of the tree of a file, and what becomes of it."""

    file: str
    index: int
    line: int
    what: str
    function: str
    first: int  # line of the outermost function around it
    compiled: bool  # by numba


def changed(node: ast.AST) -> str | None:
    """Change a node in place; return what was done, or None if it has nothing to change."""
    if isinstance(node, ast.Compare) and type(node.ops[0]) in _COMPARED:
        old = type(node.ops[0])
        node.ops[0] = _COMPARED[old]()
        return f"{old.__name__} -> {_COMPARED[old].__name__}"
    if isinstance(node, ast.BinOp) and type(node.op) in _COMPUTED:
        if isinstance(node.left, ast.Constant) and isinstance(node.left.value, str):
            return None
        old_op = type(node.op)
        node.op = _COMPUTED[old_op]()
        return f"{old_op.__name__} -> {_COMPUTED[old_op].__name__}"
    if isinstance(node, ast.BoolOp):
        node.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        return "and <-> or"
    if isinstance(node, ast.Constant) and type(node.value) is int:
        node.value += 1
        return f"{node.value - 1} -> {node.value}"
    if isinstance(node, ast.Constant) and type(node.value) is bool:
        node.value = not node.value
        return f"{not node.value} -> {node.value}"
    if isinstance(node, ast.If | ast.IfExp):
        node.test = ast.UnaryOp(ast.Not(), node.test)
        return "if -> if not"
    if isinstance(node, ast.Call):
        return _with_other_arguments(node)
    return _deleted(node)


def _with_other_arguments(call: ast.Call) -> str | None:
    """Swap the first two arguments of a call, or drop its last keyword."""
    several = len(call.args) > 1 and not any(isinstance(a, ast.Starred) for a in call.args[:2])
    if several and ast.dump(call.args[0]) != ast.dump(call.args[1]):
        call.args[:2] = call.args[1::-1]
        return "arguments swapped"
    if call.keywords and call.keywords[-1].arg not in (None, "strict"):
        return f"without {call.keywords.pop().arg}="
    return None


def _deleted(node: ast.AST) -> str | None:
    """Delete a call whose result nobody takes, or a way out of a loop."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        node.value = ast.Constant(None)
        return "statement deleted"
    if isinstance(node, ast.Break | ast.Continue):
        what = f"{type(node).__name__.lower()} deleted"
        node.__class__ = ast.Pass
        return what
    return None


def _nodes(tree: ast.AST) -> Iterator[tuple[str, int, bool, ast.AST]]:
    """Yield the nodes of functions' bodies with the name of the function, in the order of lines.

    Annotations and defaults at the top change little; a node of a function within a function
    belongs to the inner one. The number is the first line of the outermost function.
    """

    def walk(node: ast.AST, name: str, first: int, jit: bool) -> Iterator[Any]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef):
                own = f"{name}.<locals>.{child.name}" if first else f"{name}.{child.name}"
                line = first or min(d.lineno for d in [child, *child.decorator_list])
                for statement in child.body:
                    yield own, line, jit or _is_compiled(child), statement
                    yield from walk(statement, own, line, jit or _is_compiled(child))
            elif isinstance(child, ast.ClassDef):
                yield from walk(child, f"{name}.{child.name}", 0, jit)
            elif isinstance(child, ast.keyword) and child.arg == "strict":
                continue  # of zip: a guard that only an error trips
            elif isinstance(node, ast.AnnAssign) and child is node.annotation:
                continue  # of a local name: never run
            else:
                if first:
                    yield name, first, jit, child
                yield from walk(child, name, first, jit)

    return ((name[1:], *others) for name, *others in walk(tree, "", 0, False))


def _is_compiled(function: ast.FunctionDef) -> bool:
    return any("jit" in ast.dump(d) or "compiled" in ast.dump(d) for d in function.decorator_list)


def mutants(file: str) -> list[Mutant]:
    """Return every error that can be planted in a file."""
    source = (ROOT / "src" / "tabweave" / file).read_text(encoding="utf-8")
    out = []
    for index, (function, first, compiled, node) in enumerate(list(_nodes(ast.parse(source)))):
        line = getattr(node, "lineno", 0)
        what = changed(node)
        if what is not None:
            out.append(Mutant(file, index, line, what, function, first, compiled))
    return out


def tree_of(mutant: Mutant) -> ast.AST:
    """Return the tree of a file with one error in it."""
    tree = ast.parse((SOURCE / mutant.file).read_text(encoding="utf-8"))
    for index, (*_, node) in enumerate(list(_nodes(tree))):
        if index == mutant.index:
            changed(node)
            break
    return ast.fix_missing_locations(tree)


def planted(mutant: Mutant) -> str:
    """Return the source of a file with one error in it."""
    return ast.unparse(tree_of(mutant))


def tests_of(file: str) -> list[str]:
    """Return where the tests are that may notice an error in a file."""
    return TESTS[file.partition("/")[0]]


# -- what is known of tests -----------------------------------------------------------------------


@dataclass
class Notes:
    """What was seen: of each test its seconds and the functions that it entered; who killed."""

    seconds: dict[str, float] = field(default_factory=dict)
    entered: dict[str, list[str]] = field(default_factory=dict)
    killers: dict[str, dict[str, int]] = field(default_factory=dict)

    @classmethod
    def read(cls) -> Notes:
        """Return what an earlier run saw."""
        return cls(**json.loads(NOTES.read_text(encoding="utf-8"))) if NOTES.exists() else cls()

    def write(self) -> None:
        """Keep it for the next run."""
        NOTES.parent.mkdir(exist_ok=True)
        NOTES.write_text(json.dumps(vars(self)), encoding="utf-8")

    def order(self, mutant: Mutant, tests: list[str], longest: float) -> list[str]:
        """Return tests in their order: those that enter the function, then those of the file.

        Those that killed before come first, then the quickest, as many as run in so many seconds.
        """
        function = f"{mutant.file}:{mutant.function}"
        mirror = str(Path("tests", mutant.file).with_name(f"test_{Path(mutant.file).name}"))
        killed = Counter(self.killers.get(mutant.file, {}))
        sound = [test for test in tests if self.seconds.get(test, 0.1) < float("inf")]
        enter = {test for test in sound if function in self.entered.get(test, ())}
        own = {test for test in sound if test.startswith(mirror)}
        if mutant.compiled:  # who enters it was not seen
            enter, own = own, set(sound)
        found = sorted(
            enter | own, key=lambda t: (t not in enter, -killed[t], self.seconds.get(t, 0.1))
        )
        upto = accumulate(self.seconds.get(test, 0.1) for test in found)
        return [test for test, taken in zip(found, upto, strict=True) if taken < longest]


# -- in a forked process --------------------------------------------------------------------------


def forked(work: Callable[[], int], timeout: float) -> int:
    """Do something in a forked process that has so many seconds of the processor."""
    child = os.fork()
    if child == 0:
        code = _FAILED
        try:
            os.setpgrp()
            resource.setrlimit(resource.RLIMIT_CPU, (int(timeout), int(timeout)))
            quiet = os.open(os.devnull, os.O_RDWR)
            for stream in (0, 1, 2):
                os.dup2(quiet, stream)
            code = work()
        finally:
            os._exit(code)
    moved, seen = time.monotonic(), 0
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        if (ticks := _ticks(child)) != seen:
            moved, seen = time.monotonic(), ticks
        elif time.monotonic() > moved + _HANGS:
            os.killpg(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return -1
        time.sleep(0.01)


def _ticks(process: int) -> int:
    """Return how long a process and those that it waited for have run."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15]))


def _threads() -> list[str]:
    """Return the names of the threads of this process."""
    return [path.read_text().strip() for path in Path("/proc/self/task").glob("*/comm")]


def plant(mutant: Mutant) -> int:
    """Exchange the code of a function wherever it is held; return in how many places."""
    path = str(SOURCE / mutant.file)
    name = mutant.function.partition(".<locals>.")[0]

    def codes(code: CodeType) -> Iterator[CodeType]:
        for constant in code.co_consts:
            if isinstance(constant, CodeType):
                yield constant
                yield from codes(constant)

    (new,) = (
        code
        for code in codes(compile(tree_of(mutant), path, "exec"))
        if (code.co_qualname, code.co_firstlineno) == (name, mutant.first)
    )
    found = [
        thing
        for thing in gc.get_objects()
        if type(thing) is FunctionType
        and thing.__code__.co_filename == path
        and (thing.__code__.co_qualname, thing.__code__.co_firstlineno) == (name, mutant.first)
    ]
    for function in found:
        function.__code__ = new
    return len(found)


def interpret() -> None:
    """Run all loops that numba compiles as Python, wherever they are held."""
    at = f"{SOURCE}{os.sep}"
    for module in list(sys.modules.values()):
        for name, held in list(getattr(module, "__dict__", {}).items()):
            function = vars(type(held)).get("__call__") and (
                getattr(held, "py_func", None) or getattr(held, "function", None)
            )
            if type(function) is FunctionType and function.__code__.co_filename.startswith(at):
                setattr(module, name, function)


class Planter:
    """A plugin of pytest that plants errors instead of running the tests it has collected."""

    def __init__(self, files: list[str], options: argparse.Namespace, notes: Notes) -> None:
        self.files, self.options, self.notes = files, options, notes
        self.total = self.killed = self.explained = 0
        self.sound: dict[tuple[str, bool], bool] = {}
        self.failed: list[str] = []
        self.entered: set[CodeType] = set()

    def pytest_configure(self) -> None:
        """Take few examples, and make none of them small."""
        from hypothesis import Phase, settings

        phases = (Phase.explicit, Phase.generate)
        settings.register_profile("mutants", settings(), max_examples=20, database=None,
                                  phases=phases)  # fmt: skip
        settings.load_profile("mutants")

    def pytest_runtestloop(self, session: Any) -> bool:
        """Run tests without an error, and then with one."""
        self.items = {item.nodeid: item for item in session.items}
        if threads := [name for name in _threads() if name.startswith("polars-0")]:
            raise RuntimeError(f"a test file runs polars when imported: {threads} do not fork")
        for file in self.files:
            importlib.import_module(f"tabweave.{file.removesuffix('.py').replace('/', '.')}")
        if not self.options.quick:
            self.observe()
        for file in self.files:
            self.plant_all(file, sample(file, self.options.sample, self.options.seed))
            self.notes.write()
        return True

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Note a test that failed."""
        if report.failed:
            self.failed.append(report.nodeid)

    def run(self, test: str) -> bool:
        """Run a test; tell whether it passed."""
        item = self.items[test]
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
        return not self.failed

    def observe(self) -> None:
        """Run the tests that were not seen yet, and note which functions they enter."""
        new = [test for test in self.items if test not in self.notes.seconds]
        if not new:
            return

        def note(frame: FrameType, event: str, _: Any) -> None:
            if event == "call":
                self.entered.add(frame.f_code)

        def work() -> int:
            at = f"{SOURCE}{os.sep}"
            for test in new:
                told.write(json.dumps([test, float("inf"), []]) + "\n")
                told.flush()
                self.entered, self.failed, started = set(), [], time.process_time()
                threading.setprofile(note)
                sys.setprofile(note)
                passed = self.run(test)
                sys.setprofile(None)
                threading.setprofile(None)
                # What fails without an error says nothing of one.
                taken = time.process_time() - started if passed else float("inf")
                names = {f"{c.co_filename[len(at) :]}:{c.co_qualname}" for c in self.entered
                         if c.co_filename.startswith(at)}  # fmt: skip
                told.write(json.dumps([test, taken, sorted(names)]) + "\n")
            told.flush()
            return 0

        while new:
            with tempfile.NamedTemporaryFile("w+", encoding="utf-8") as told:
                ended = forked(work, 3600.0) == 0
                for test, taken, names in map(json.loads, Path(told.name).read_text().splitlines()):
                    self.notes.seconds[test], self.notes.entered[test] = taken, names
            new = [test for test in new if test not in self.notes.seconds]
            if new and ended:
                raise RuntimeError(f"{new[0]} does not run")
        self.notes.write()
        print(f"{len(self.items)} tests seen", flush=True)

    def plant_all(self, file: str, of_file: list[Mutant]) -> None:
        """Plant the errors of a file and tell which survived."""
        known, dead = explained(), 0
        for mutant in of_file:
            if self.is_killed(mutant):
                dead += 1
            elif name_of(mutant) in known:
                self.explained += 1
            else:
                print(f"survived: {name_of(mutant)}  (line {mutant.line})", flush=True)
        self.total, self.killed = self.total + len(of_file), self.killed + dead
        print(f"{file}: {dead} of {len(of_file)} killed", flush=True)

    def is_killed(self, mutant: Mutant) -> bool:
        """Tell whether a test fails with one error in a file, or never ends."""
        while True:
            sound = [t for t in self.items if self.sound.get((t, mutant.compiled), True)]
            tests = self.notes.order(mutant, sound, self.options.timeout / 4)
            code, killer = self.killer(mutant, tests, mutant.compiled)
            if not killer and mutant.compiled and code:  # it never ends, or is slow as Python
                return self.killer(None, tests, mutant.compiled)[0] == 0
            if not killer:
                return code != 0
            case = killer, mutant.compiled
            if case not in self.sound:  # what fails without an error says nothing of one
                self.sound[case] = not self.killer(None, [killer], mutant.compiled)[0]
            if self.sound[case]:
                mine = self.notes.killers.setdefault(mutant.file, {})
                mine[killer] = mine.get(killer, 0) + 1
                return True

    def killer(
        self, mutant: Mutant | None, tests: list[str], compiled: bool = False
    ) -> tuple[int, str]:
        """Run tests in a forked process with an error; return how it ended, and which failed."""
        with tempfile.NamedTemporaryFile("r", encoding="utf-8") as told:

            def work() -> int:
                if mutant is not None:
                    assert plant(mutant)
                if compiled:
                    interpret()
                killer = next((test for test in tests if not self.run(test)), None)
                if killer is not None:
                    Path(told.name).write_text(killer, encoding="utf-8")
                return int(killer is not None)

            code = forked(work, self.options.timeout)
            if code == _FAILED:
                raise RuntimeError(f"the error was not planted: {mutant}")
            return code, told.read()


def explained() -> set[str]:
    """Return the mutants that are known to change nothing: ``file | what | code | reason``."""
    path = ROOT / "tools" / "survivors.txt"
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return {line.rpartition(" | ")[0] for line in lines if line and line[0] != "#"}


def name_of(mutant: Mutant) -> str:
    """Return the name of a mutant: its line by what it says, since numbers of lines move."""
    text = (ROOT / "src" / "tabweave" / mutant.file).read_text(encoding="utf-8").splitlines()
    return f"{mutant.file} | {mutant.what} | {text[mutant.line - 1].strip()}"


def sample(file: str, n: int, seed: int) -> list[Mutant]:
    """Return so many mutants of a file (0: all of them), in the order of lines."""
    found = mutants(file)
    chosen = random.Random(f"{seed} {file}").sample(found, min(n, len(found))) if n else found
    return sorted(chosen, key=lambda mutant: mutant.index)


def in_room(files: list[str], options: argparse.Namespace) -> list[int]:
    """Plant errors in files of one room; return how many, how many were noticed or explained.

    In a process of its own: collecting tests changes much in a process, warnings for one.
    """
    read, write = os.pipe()
    if os.fork() == 0:
        code = 1
        try:
            import pytest

            planter = Planter(files, options, Notes.read())
            told = [
                "-q",
                "-s",
                "-p",
                "no:cacheprovider",
                "-p",
                "no:xdist",
                "-p",
                "no:faulthandler",
                "-m",
                "not slow",
            ]
            code = pytest.main([*told, *tests_of(files[0])], [planter])
            os.write(write, json.dumps([planter.total, planter.killed, planter.explained]).encode())
        finally:
            sys.stdout.flush()
            os._exit(code)
    _, status = os.wait()
    if status:
        raise RuntimeError(f"pytest ended with {os.waitstatus_to_exitcode(status)}")
    found: list[int] = json.loads(os.read(read, 1000))
    return found


def main() -> int:
    """Plant errors and count those that are noticed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", nargs="+", default=list(FILES))
    parser.add_argument("--sample", type=int, default=0, help="of each file; 0 takes all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="the file's own tests, unseen")
    parser.add_argument("--timeout", type=float, default=60.0, help="of the processor")
    options = parser.parse_args()
    sys.path.insert(0, str(ROOT / "src"))
    os.chdir(ROOT)
    rooms: dict[str, list[str]] = {}
    for file in options.files:
        rooms.setdefault(file.partition("/")[0], []).append(file)
    found = [in_room(files, options) for files in rooms.values()]
    total, killed, without = (sum(column) for column in zip(*found, strict=True))
    print(
        f"{killed} of {total} killed ({killed / max(total, 1):.1%}), seed {options.seed}; "
        f"{without} of the others are explained: {killed / max(total - without, 1):.1%} without"
    )
    return int(killed < 0.92 * (total - without))


if __name__ == "__main__":
    sys.exit(main())
