"""Measure the house: what a reader of src/tabweave has to keep in mind, in numbers.

``python tools/house.py`` prints a table; ``--root src/other`` measures another package by the same
rules, ``--list NAME`` shows what a line counts. Tests and docs are not counted.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import sys
import tokenize
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parents[1]
# Assigned names that say where a value came from, not what it is.
DIALECT = frozenset(
    "own owns found given known asked met here theirs ours mine kept plain some whole odd once "
    "said meant wanted gone taught told apart aside beside alike".split()
)
MAX_LINES = 40  # body lines of a function that still fits on a screen


@dataclass(frozen=True)
class Module:
    """A file of the package, parsed."""

    path: Path
    name: str  # dotted, without the package
    text: str
    tree: ast.Module


def modules(root: Path) -> list[Module]:
    """Return the files of a package."""
    out = []
    for path in sorted(root.rglob("*.py")):
        if "tests" in path.relative_to(root).parts:
            continue
        text = path.read_text(encoding="utf-8")
        parts = path.relative_to(root).with_suffix("").parts
        name = ".".join(part for part in parts if part != "__init__")
        out.append(Module(path, name, text, ast.parse(text)))
    return out


# -- what is counted ---------------------------------------------------------------------------


def code_lines(module: Module) -> int:
    """Return the number of lines that hold code: no blank line, comment or docstring."""
    lines: set[int] = set()
    skipped = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
    for token in tokenize.generate_tokens(io.StringIO(module.text).readline):
        if token.type not in skipped and token.string.strip():
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if ast.get_docstring(node, clean=False) is not None and first is not None:
                lines -= set(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    return len(lines)


def is_number(node: ast.expr | None) -> bool:
    """Tell whether an expression is made of numbers alone."""
    match node:
        case ast.Constant(value=value):
            return isinstance(value, int | float) and not isinstance(value, bool)
        case ast.UnaryOp(operand=operand):
            return is_number(operand)
        case ast.BinOp(left=left, right=right):
            return is_number(left) and is_number(right)
    return False


def constants(package: list[Module]) -> Iterator[tuple[str, str, str]]:
    """Yield module, name and value of each number that a module names."""
    for module in package:
        for node in module.tree.body:
            if isinstance(node, ast.Assign):
                targets, value = node.targets, node.value
            elif isinstance(node, ast.AnnAssign):
                targets, value = [node.target], node.value
            else:
                continue
            pairs: list[tuple[ast.expr, ast.expr | None]] = [(t, value) for t in targets]
            if isinstance(targets[0], ast.Tuple) and isinstance(value, ast.Tuple):
                pairs = list(zip(targets[0].elts, value.elts, strict=False))
            for target, number in pairs:
                if isinstance(target, ast.Name) and is_number(number):
                    yield module.name, target.id, ast.unparse(number)  # type: ignore[arg-type]


def several_values(package: list[Module]) -> list[str]:
    """Return the names that stand for several numbers in the package."""
    values: dict[str, set[str]] = defaultdict(set)
    for _, name, value in constants(package):
        values[name].add(value)
    return sorted(name for name, found in values.items() if len(found) > 1)


def repeated_classes(package: list[Module]) -> list[str]:
    """Return the names of classes that are defined more than once."""
    names = Counter(
        node.name for m in package for node in ast.walk(m.tree) if isinstance(node, ast.ClassDef)
    )
    return sorted(name for name, times in names.items() if times > 1)


def assigned_names(package: list[Module]) -> Iterator[str]:
    """Yield each name that is assigned in a function, once for each function."""
    for module in package:
        for function in ast.walk(module.tree):
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                yield from {
                    node.id
                    for node in ast.walk(function)
                    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
                }


def calls_of(package: list[Module], name: str) -> int:
    """Return how often a function is called by its name."""
    return sum(
        isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name
        for module in package
        for node in ast.walk(module.tree)
    )


def tests_of_kinds(package: list[Module]) -> list[str]:
    """Return the lines outside ``columns`` that ask of which kind a column is."""
    classes, names = kinds_of_columns(package)
    return [
        f"{module.name}:{number} {module.text.splitlines()[number - 1].strip()}"
        for module in package
        if module.name.split(".")[0] != "columns"
        for number in sorted(
            {
                node.lineno  # type: ignore[attr-defined]
                for node in ast.walk(module.tree)
                if asks_of_kind(node, classes, names)
            }
        )
    ]


def kinds_of_columns(package: list[Module]) -> tuple[set[str], set[str]]:
    """Return the classes under ``@kind``, and the names that they register."""
    classes, names = set(), set()
    for module in package:
        for node in ast.walk(module.tree):
            for decorator in node.decorator_list if isinstance(node, ast.ClassDef) else ():
                match decorator:
                    case ast.Call(ast.Name("kind"), [ast.Constant(str(name)), *_]):
                        classes.add(node.name)  # type: ignore[attr-defined]
                        names.add(name)
    return classes, names


def asks_of_kind(node: ast.AST, classes: set[str], names: set[str]) -> bool:
    """Tell whether code tests a class of cells, compares the name of a kind, or lists kinds."""

    def names_kinds(side: ast.AST | None) -> bool:
        words = words_in(side)
        return bool(words) and words <= names

    match node:
        case ast.Call(ast.Name("isinstance" | "issubclass"), [_, tested]):
            return any(isinstance(n, ast.Name) and n.id in classes for n in ast.walk(tested))
        case ast.MatchClass(ast.Name(name)):
            return name in classes
        case ast.Call(ast.Attribute(asked, "startswith" | "endswith"), [tested, *_]):
            return "kind" in ast.unparse(asked) and names_kinds(tested)
        case ast.Compare(left, _, others):
            sides = [left, *others]
            if any(isinstance(side, ast.Name) and side.id in classes for side in sides):
                return True
            of_kinds = any("kind" in ast.unparse(side).lower() for side in sides)
            return of_kinds and any(map(names_kinds, sides))
        case ast.Dict(keys, values):
            both = (keys, values)
            return any(len(set().union(*map(words_in, side)) & names) > 1 for side in both)
        case ast.Assign(value=ast.Tuple() | ast.List() | ast.Set() as listed):
            return len(words_in(listed)) > 1 and names_kinds(listed)
    return False


def words_in(node: ast.AST | None) -> set[str]:
    """Return the texts of which a literal consists; none of anything else."""
    match node:
        case ast.Constant(str(text)):
            return {text}
        case ast.Tuple(elements) | ast.List(elements) | ast.Set(elements):
            return set().union(*map(words_in, elements))
    return set()


def long_functions(package: list[Module]) -> list[str]:
    """Return the functions whose bodies, without docstrings, are longer than a screen."""
    out = []
    for module in package:
        for node in ast.walk(module.tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                body = node.body[ast.get_docstring(node) is not None :]
                lines = (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0
                if lines > MAX_LINES:
                    out.append(f"{module.name}.{node.name} ({lines})")
    return out


def imports(module: Module, package: str, *, deferred: bool) -> Iterator[str]:
    """Yield the modules of the package that a file imports: at its top, or inside functions."""
    top = {id(node) for node in module.tree.body}
    for node in module.tree.body:
        if isinstance(node, ast.If):  # TYPE_CHECKING
            top |= {id(inner) for inner in ast.walk(node)}
    for node in ast.walk(module.tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == package:
            if deferred == (id(node) not in top):
                yield (node.module or "").removeprefix(package).lstrip(".")


def room_cycles(package: list[Module], name: str) -> list[str]:
    """Return the pairs of rooms that import each other, deferred imports included."""
    edges: set[tuple[str, str]] = set()
    for module in package:
        room = module.name.split(".")[0]
        for deferred in (False, True):
            for target in imports(module, name, deferred=deferred):
                other = target.split(".")[0]
                if other and room and other != room:
                    edges.add((room, other))
    return sorted(f"{a} <> {b}" for a, b in edges if a < b and (b, a) in edges)


def imported_rooms(module: Module, package: str) -> set[str]:
    """Rooms of the package that a file imports, anywhere in it and in any form."""
    targets: set[str] = set()
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            targets |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module == package:
            targets |= {f"{package}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            targets.add(node.module)
    parts = [target.split(".") for target in targets]
    return {part[1] for part in parts if part[0] == package and len(part) > 1}


def cycles_of_rooms(package: list[Module], name: str) -> list[str]:
    """Strongly connected components of rooms: whoever is in one reaches all others of it."""
    rooms = {module.name.split(".")[0] for module in package} - {""}
    reached: dict[str, set[str]] = {room: set() for room in rooms}
    for module in package:
        room = module.name.split(".")[0]
        if room:  # the package itself names what every room gives
            reached[room] |= imported_rooms(module, name) & rooms - {room}
    for middle in rooms:
        for room in rooms:
            if middle in reached[room]:
                reached[room] |= reached[middle]
    components = {
        frozenset({room} | {other for other in reached[room] if room in reached[other]})
        for room in rooms
    }
    return sorted(" <> ".join(sorted(c)) for c in components if len(c) > 1)


# -- what runs ---------------------------------------------------------------------------------


def traced(work: Callable[[], object], root: str) -> tuple[int, int]:
    """Return how many distinct functions of the package a call enters, and switches of file."""
    entered: set[tuple[str, str, int]] = set()
    switches, last = 0, ""

    def profile(frame: object, event: str, _: object) -> None:
        nonlocal switches, last
        code = frame.f_code  # type: ignore[attr-defined]
        if event != "call" or not code.co_filename.startswith(root):
            return
        if not code.co_name.startswith("<"):  # comprehensions are parts of their function
            entered.add((code.co_filename, code.co_name, code.co_firstlineno))
        switches += code.co_filename != last
        last = code.co_filename

    sys.setprofile(profile)
    try:
        work()
    finally:
        sys.setprofile(None)
    return len(entered), switches


def running() -> dict[str, object]:
    """Return what a fit of 200 rows × 6 columns passes through, and what a subclass meets."""
    import numpy as np

    import tabweave
    from tabweave import base

    rng = np.random.default_rng(0)
    rows = {f"c{i}": rng.choice(list("abcd"), 200).tolist() for i in range(4)}
    rows |= {f"x{i}": rng.normal(size=200).tolist() for i in range(2)}
    y = rng.choice(["u", "v"], 200).tolist()
    root = str(Path(tabweave.__file__).parent)
    for model in (tabweave.Weave(), tabweave.WeaveClassifier()):
        model.fit(rows, y)  # what is compiled or loaded at first use is not counted
    weave, classifier = (
        traced(lambda m=m: m().fit(rows, y), root)  # type: ignore[misc]
        for m in (tabweave.Weave, tabweave.WeaveClassifier)
    )
    bases = [c for c in tabweave.Weave.__mro__[1:] if c.__module__.startswith("tabweave.")]
    members = {n for c in bases for n in vars(c) if not n.startswith("__")}
    overridden = members & {n for n in vars(tabweave.Weave) if not n.startswith("__")}
    return {
        "functions in Weave().fit, 200 × 6": weave[0],
        "switches of file there": weave[1],
        "functions in WeaveClassifier().fit": classifier[0],
        "members of the bases of Weave": len(members),
        "members that Weave overrides": len(overridden - {"_parameter_constraints"}),
        "public bases": ", ".join(c.__name__ for c in bases if c.__module__ == base.__name__),
    }


def measured(root: Path) -> dict[str, object]:
    """Return what is read off the sources: a number, or a list of what is counted."""
    package = modules(root)
    names = list(assigned_names(package))
    rooms = {m.name.split(".")[0] for m in package if m.name}
    deferred = [
        f"{m.name} → {target}" for m in package for target in imports(m, root.name, deferred=True)
    ]
    dialect = [name for name in names if name in DIALECT]
    return {
        "code-only lines": sum(map(code_lines, package)),
        "files": len(package),
        "numeric constants of modules": [f"{m}.{n} = {v}" for m, n, v in constants(package)],
        "names of constants with several values": several_values(package),
        "names of classes defined twice": repeated_classes(package),
        "assigned names of the dialect, %": round(100 * len(dialect) / max(len(names), 1), 2),
        "calls of vars()": calls_of(package, "vars"),
        "tests of a kind outside columns": tests_of_kinds(package),
        "functions above 40 lines": long_functions(package),
        "deferred imports of our own": deferred,
        "rooms": sorted(rooms),
        "rooms that import each other": room_cycles(package, root.name),
        "cycles of rooms, of any length": cycles_of_rooms(package, root.name),
    }


def contract_levels(pyproject: Path) -> int:
    """Return the number of levels in the contract of rooms."""
    text = pyproject.read_text(encoding="utf-8")
    layers = re.search(r"containers = \[\"tabweave\"\]\nlayers = \[(.*?)\n\]", text, re.S)
    return len(re.findall(r"^  \"", layers[1], re.M)) if layers else 0


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=Path, default=HERE / "src" / "tabweave")
    parser.add_argument("--list", metavar="NAME", help="show what this line counts")
    options = parser.parse_args()
    found = measured(options.root)
    if options.list:
        for name, value in found.items():
            if options.list in name:
                print(name, *(value if isinstance(value, list) else [value]), sep="\n  ")
        return
    if options.root == HERE / "src" / "tabweave":
        levels, rooms = contract_levels(HERE / "pyproject.toml"), found["rooms"]
        found["levels of the import contract"] = levels
        found["rooms = levels"] = "yes" if levels == len(rooms) else "no"  # type: ignore[arg-type]
        found |= running()
    print("| measure | |", "| --- | --- |", sep="\n")
    for name, value in found.items():
        print(f"| {name} | {len(value) if isinstance(value, list) else value} |")


if __name__ == "__main__":
    main()
