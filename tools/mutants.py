"""Plant errors, one at a time, and see whether a test notices.

Usage: python tools/mutants.py [--files F ...] [--sample N] [--seed S] [--timeout SECONDS]

Each mutant is one small change of one function: a comparison turned, an operator exchanged, a
number moved by one, a condition negated. First the tests of a room run once without an error, to
learn which of them enter which function and how long they take (kept in build/mutants.json). Then
each mutant is planted in the memory of a process that is forked from this one, where NumPy, pandas
and pytest are loaded already; of the tests that enter its function those that killed before run
first, then the quickest. If all pass, the others of the file's own tests follow. No file is
written, so loops that were compiled stay so.

A mutant that no test kills is printed with its line: write a test, or list it in
``tools/survivors.txt`` with the reason why it changes nothing.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import importlib.abc
import importlib.util
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
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType, ModuleType
from typing import Any

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "tabweave"
ROOMS = ("rows", "counts", "blocks", "measures", "io")
FILES = (*(f"{room}/{path.name}" for room in ROOMS for path in sorted((SOURCE / room).glob("*.py"))
           if path.name != "__init__.py"), "embed/weave.py", "base.py")  # fmt: skip
# Where the tests of a room are, beside its mirror: what its files are used for.
TESTS = {
    "rows": ["tests/rows", "tests/test_bad_input.py"],
    "counts": ["tests/counts", "tests/test_laws.py"],
    "blocks": ["tests/blocks", "tests/embed/test_mixed.py"],
    "measures": ["tests/measures"],
    "embed": ["tests/embed/test_weave.py"],
    "io": ["tests/io/test_archive.py", "tests/io/test_codec.py", "tests/io/test_files.py",
           "tests/io/test_register.py", "tests/io/test_store.py"],
    "base.py": ["tests/test_base.py", "tests/test_threads.py"],
}  # fmt: skip
LOADED = ("numpy", "scipy.sparse", "scipy.spatial", "sklearn.utils.estimator_checks", "pandas",
          "pyarrow", "polars", "duckdb", "narwhals", "numba", "hypothesis", "pytest")  # fmt: skip
NOT_RUN = 4  # how pytest ends when it does not understand what it is told
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
    return None


def _nodes(tree: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """Yield the nodes of functions' bodies with the name of the function, in the order of lines.

    Annotations and defaults at the top change little; a node of a function within a function
    belongs to the inner one.
    """

    def walk(node: ast.AST, name: str, inside: bool) -> Iterator[tuple[str, ast.AST]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef) and not _is_compiled(child):
                own = f"{name}.<locals>.{child.name}" if inside else f"{name}.{child.name}"
                for statement in child.body:
                    yield own, statement
                    yield from walk(statement, own, True)
            elif isinstance(child, ast.ClassDef):
                yield from walk(child, f"{name}.{child.name}", False)
            elif not isinstance(child, ast.FunctionDef):
                if inside:
                    yield name, child
                yield from walk(child, name, inside)

    return ((name[1:], node) for name, node in walk(tree, "", False))


def _is_compiled(function: ast.FunctionDef) -> bool:
    return any("jit" in ast.dump(d) or "compiled" in ast.dump(d) for d in function.decorator_list)


def mutants(file: str) -> list[Mutant]:
    """Return every error that can be planted in a file."""
    source = (ROOT / "src" / "tabweave" / file).read_text(encoding="utf-8")
    out = []
    for index, (function, node) in enumerate(list(_nodes(ast.parse(source)))):
        line = getattr(node, "lineno", 0)
        what = changed(node)
        if what is not None:
            out.append(Mutant(file, index, line, what, function))
    return out


def tree_of(mutant: Mutant) -> ast.AST:
    """Return the tree of a file with one error in it."""
    tree = ast.parse((SOURCE / mutant.file).read_text(encoding="utf-8"))
    for index, (_, node) in enumerate(list(_nodes(tree))):
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


# -- running tests in a forked process ------------------------------------------------------------


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

    def chosen(self, mutant: Mutant) -> list[str]:
        """Return the tests that enter a function: those that killed before, then the quickest."""
        function = f"{mutant.file}:{mutant.function}"
        killed = Counter(self.killers.get(mutant.file, {}))
        found = [test for test, functions in self.entered.items() if function in functions]
        return sorted(found, key=lambda t: (-killed[t], self.seconds[t]))


class Observer:
    """A plugin of pytest that notes which functions of the package each test enters."""

    def __init__(self) -> None:
        self.now: set[CodeType] = set()
        self.started = 0.0
        self.seconds: dict[str, float] = {}
        self.entered: dict[str, list[str]] = {}

    def _note(self, frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            self.now.add(frame.f_code)

    def pytest_runtest_setup(self, item: Any) -> None:
        """Begin to listen."""
        self.now, self.started = set(), time.process_time()
        threading.setprofile(self._note)
        sys.setprofile(self._note)

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Note seconds, and functions when the test has ended."""
        if report.when == "teardown":
            self.seconds.setdefault(report.nodeid, time.process_time() - self.started)
            sys.setprofile(None)
            threading.setprofile(None)
            at = f"{SOURCE}{os.sep}"
            names = (f"{c.co_filename[len(at) :]}:{c.co_qualname}" for c in self.now
                     if c.co_filename.startswith(at))  # fmt: skip
            self.entered[report.nodeid] = sorted(names)
        elif report.failed:
            self.seconds[report.nodeid] = float("inf")  # says nothing about errors planted


class Chooser:
    """A plugin of pytest that runs chosen tests in their order and notes the one that failed."""

    def __init__(self, tests: list[str], told: Path) -> None:
        self.order = {test: i for i, test in enumerate(tests)}
        self.told = told

    def pytest_configure(self) -> None:
        """Few examples, none of them made small."""
        from hypothesis import Phase, settings

        phases = (Phase.explicit, Phase.generate)
        settings.register_profile("mutants", settings(), max_examples=20, database=None,
                                  phases=phases)  # fmt: skip
        settings.load_profile("mutants")

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Leave the chosen tests."""
        items[:] = [item for item in items if item.nodeid in self.order]
        items.sort(key=lambda item: self.order[item.nodeid])

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Tell which test failed."""
        if report.failed:
            self.told.write_text(report.nodeid, encoding="utf-8")


class Planter(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """An importer that gives one module with an error in it, as if its file said so."""

    def __init__(self, mutant: Mutant) -> None:
        self.mutant = mutant
        self.name = "tabweave." + mutant.file.removesuffix(".py").replace("/", ".")

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        """Stand in for the file of one module."""
        if name != self.name:
            return None
        where = str(SOURCE / self.mutant.file)
        return importlib.util.spec_from_file_location(name, where, loader=self)

    def exec_module(self, module: ModuleType) -> None:
        """Run the module with its error."""
        code = compile(tree_of(self.mutant), str(SOURCE / self.mutant.file), "exec")
        exec(code, module.__dict__)  # noqa: S102


def run(arguments: list[str], plugin: Any, timeout: float, mutant: Mutant | None = None) -> int:
    """Run pytest in a forked process, with one error in the package; return how it ended."""
    child = os.fork()
    if child == 0:
        os.setsid()
        resource.setrlimit(resource.RLIMIT_CPU, (int(timeout), int(timeout)))
        quiet = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(quiet, stream)
        if mutant is not None:
            sys.meta_path.insert(0, Planter(mutant))
        import pytest

        code = NOT_RUN
        try:
            options = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-m", "not slow",
                       "-W", "ignore::pytest.PytestAssertRewriteWarning"]  # fmt: skip
            code = int(pytest.main([*options, *arguments], plugins=[plugin]))
            if mutant is None:
                Notes(plugin.seconds, plugin.entered).write()
        finally:
            os._exit(code)
    end = time.monotonic() + 10 * timeout  # of a process that waits for ever
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            code = os.waitstatus_to_exitcode(status)
            if code == NOT_RUN:
                raise RuntimeError(f"pytest could not run {arguments}")
            return code
        if time.monotonic() > end:
            os.killpg(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return -1
        time.sleep(0.02)


def observe(notes: Notes, files: list[str]) -> Notes:
    """Run the tests that were not seen yet, without an error."""
    wanted = dict.fromkeys(path for file in files for path in tests_of(file))
    for path in wanted:
        if not any(test.startswith(path) for test in notes.seconds):
            started, before = time.monotonic(), notes
            if run([path], Observer(), 3600.0) < 0:
                raise TimeoutError(f"the tests of {path} take too long")
            notes = Notes.read()
            notes = Notes(before.seconds | notes.seconds, before.entered | notes.entered,
                          before.killers)  # fmt: skip
            notes.write()
            print(f"{path} seen in {time.monotonic() - started:.0f} s", flush=True)
    return notes


def is_killed(mutant: Mutant, notes: Notes, timeout: float) -> bool:
    """Tell whether a test fails with one error in a file, or never ends."""
    chosen = [test for test in notes.chosen(mutant) if notes.seconds[test] < timeout / 3]
    mirror = f"tests/{Path(mutant.file).parent}/test_{Path(mutant.file).name}".replace("/./", "/")
    others = [test for test in notes.seconds
              if test.startswith(mirror) and test not in chosen
              and notes.seconds[test] < timeout / 3]  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        told = Path(folder, "killer")
        for tests in (chosen, others):
            if not tests:
                continue
            paths = list(dict.fromkeys(test.partition("::")[0] for test in tests))
            if run(["-x", *paths], Chooser(tests, told), timeout, mutant) not in (0, 5):
                if told.exists():
                    mine = notes.killers.setdefault(mutant.file, {})
                    killer = told.read_text(encoding="utf-8")
                    mine[killer] = mine.get(killer, 0) + 1
                return True
    return False


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


def main() -> int:
    """Plant errors and count those that are noticed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", nargs="+", default=list(FILES))
    parser.add_argument("--sample", type=int, default=0, help="of each file; 0 takes all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--timeout", type=float, default=60.0, help="of the processor")
    options = parser.parse_args()
    sys.path.insert(0, str(ROOT / "src"))
    os.chdir(ROOT)
    for name in LOADED:
        importlib.import_module(name)
    notes = observe(Notes.read(), options.files)
    known, total, killed = explained(), 0, 0
    for file in options.files:
        of_file = [m for m in sample(file, options.sample, options.seed) if name_of(m) not in known]
        dead = 0
        for mutant in of_file:
            if is_killed(mutant, notes, options.timeout):
                dead += 1
            else:
                print(f"survived: {name_of(mutant)}  (line {mutant.line})", flush=True)
        notes.write()
        total, killed = total + len(of_file), killed + dead
        print(f"{file}: {dead} of {len(of_file)} killed", flush=True)
    print(f"{killed} of {total} killed ({killed / max(total, 1):.1%}), seed {options.seed}")
    return int(killed < 0.92 * total)


if __name__ == "__main__":
    sys.exit(main())
