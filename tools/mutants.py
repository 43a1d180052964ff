"""Plant errors, one at a time, and see whether a test notices.

Usage: python tools/mutants.py [--files F ...] [--sample N] [--seed S] [--timeout SECONDS]

Each mutant is one small change of one file: a comparison turned, an operator exchanged, a number
moved by one, a condition negated, a result dropped. The tests of the file (the mirror of its path
under tests) run against a copy of the package. A mutant that no test kills is printed with its
line: write a test, or list it in ``tools/survivors.txt`` with the reason why it changes nothing.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
FILES = ("rows/vocabulary.py", "rows/table.py", "counts/counts.py", "blocks/value_tables.py",
         "measures/frequency.py", "embed/weave.py", "io/archive.py", "io/codec.py",
         "io/files.py", "base.py")  # fmt: skip
# Where the tests of a file are, if not in its mirror alone.
TESTS = {"base.py": ["tests/test_base.py", "tests/test_threads.py"]}
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


def _nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of functions' bodies; annotations and defaults at the top change little."""
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef) and not _is_compiled(function):
            for statement in function.body:
                yield from ast.walk(statement)


def _is_compiled(function: ast.FunctionDef) -> bool:
    return any("jit" in ast.dump(d) or "compiled" in ast.dump(d) for d in function.decorator_list)


def mutants(file: str) -> list[Mutant]:
    """Return every error that can be planted in a file."""
    source = (ROOT / "src" / "tabweave" / file).read_text(encoding="utf-8")
    out = []
    for index, node in enumerate(_nodes(ast.parse(source))):
        line = getattr(node, "lineno", 0)
        what = changed(node)
        if what is not None:
            out.append(Mutant(file, index, line, what))
    return out


def planted(mutant: Mutant) -> str:
    """Return the source of a file with one error in it."""
    path = ROOT / "src" / "tabweave" / mutant.file
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for index, node in enumerate(_nodes(tree)):
        if index == mutant.index:
            changed(node)
            break
    return ast.unparse(ast.fix_missing_locations(tree))


def tests_of(file: str) -> list[str]:
    """Return the tests of a file: those of its name, or of its room."""
    if file in TESTS:
        return TESTS[file]
    own = ROOT / "tests" / Path(file).parent / f"test_{Path(file).name}"
    return [str((own if own.exists() else own.parent).relative_to(ROOT))]


def is_killed(mutant: Mutant, package: Path, timeout: float) -> bool:
    """Tell whether the tests of a file fail with one error in it, or never end."""
    target = package / "tabweave" / mutant.file
    before = target.read_bytes()
    target.write_text(planted(mutant), encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-m",
               "not slow", *tests_of(mutant.file)]  # fmt: skip
    told = {**os.environ, "PYTHONPATH": str(package), "HYPOTHESIS_MAX_EXAMPLES": "20"}
    try:
        run = subprocess.run(command, cwd=ROOT, env=told, capture_output=True, timeout=timeout)
        return run.returncode != 0
    except subprocess.TimeoutExpired:
        return True
    finally:
        target.write_bytes(before)


def explained() -> set[str]:
    """Return the mutants that are known to change nothing: ``file | what | code | reason``."""
    path = ROOT / "tools" / "survivors.txt"
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return {line.rpartition(" | ")[0] for line in lines if line and line[0] != "#"}


def name_of(mutant: Mutant) -> str:
    """Return the name of a mutant: its line by what it says, since numbers of lines move."""
    text = (ROOT / "src" / "tabweave" / mutant.file).read_text(encoding="utf-8").splitlines()
    return f"{mutant.file} | {mutant.what} | {text[mutant.line - 1].strip()}"


def main() -> int:
    """Plant errors and count those that are noticed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", nargs="+", default=list(FILES))
    parser.add_argument("--sample", type=int, default=0, help="of each file; 0 takes all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--timeout", type=float, default=300.0)
    options = parser.parse_args()
    known, total, killed = explained(), 0, 0
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        package = Path(folder, "src")
        shutil.copytree(ROOT / "src", package)
        for file in options.files:
            found = mutants(file)
            if options.sample:
                chosen = random.Random(options.seed).sample(found, min(options.sample, len(found)))
                found = sorted(chosen, key=lambda m: m.index)
            for mutant in found:
                name = name_of(mutant)
                if name in known:
                    continue
                total += 1
                dead = is_killed(mutant, package, options.timeout)
                killed += dead
                if not dead:
                    print(f"survived: {name}", flush=True)
    print(f"{killed} of {total} killed ({killed / max(total, 1):.1%})")
    return int(killed < 0.92 * total)


if __name__ == "__main__":
    sys.exit(main())
