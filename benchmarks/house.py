"""The house rebuilt, and nothing changed: numbers, files and names before and after.

    PYTHONPATH=before/src python benchmarks/house.py record DIR    # the package as it was
    python benchmarks/house.py check DIR --report FILE.md          # the package as it is

``record`` keeps what the goldens of ``_goldens`` give (numbers.json), a file of each estimator with
what it said when it came back from there (saved.json), and every public name with its parameters
and members (names.json). ``check`` fails if a number is off by more than 1e-12, a file does not
load or says something else, or a name is gone for which LOST gives no reason. Record and check on
one machine, with the same versions of other packages: the last digits hang on both.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import json
import math
import os
import platform
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatch
from importlib.metadata import version
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType
from typing import Any

# Sums over several threads differ in their last digits; to be said before NumPy is loaded.
os.environ["OMP_NUM_THREADS"] = "1"
os.environ["OPENBLAS_NUM_THREADS"] = "1"
os.environ["MKL_NUM_THREADS"] = "1"
os.environ["NUMBA_NUM_THREADS"] = "1"

import numpy as np
from sklearn.base import BaseEstimator, clone

from _golden_data import as_numbers, definitions, found, modules
from _golden_models import MODELS, RESUMED, Model
from _goldens import GOLDENS, MEASURES

BEFORE, AFTER = "weft", "tabweave"
TOLERANCE = 1e-12
SMALL = 64  # numbers of an array that are kept one by one
ENTRIES = 48  # of a larger one
SUFFIX = ".weft"  # of files, as they were written before
VERSIONS = ("numpy", "scipy", "scikit-learn", "numba", "lightgbm", "faiss-cpu", "openTSNE")
# Rooms whose names stay where they are, or become names of the package. What other modules
# defined may be anywhere: import paths were free to change.
ROOMS = ("cluster", "datasets", "engines", "evaluate", "export", "measures", "plots", "report")
# Public, though no room lists them.
DEEP = ("Gibbs", "OneHotAutoencoder", "VI")
# What is gone, and why: a name ("room.name"), a parameter ("Name(parameter)"), a member
# ("Name.member"), or a golden ("golden: name").
_PUBLISHED = "the published algorithm is a class of tabweave.published"
_UNUSED = "nobody needs it: no constructor has more than eight parameters"
_METHOD = "a setting of the method: VI(...), Gibbs(...)"
LOST: dict[str, str] = {
    "measures.matching": "a module of one function; hamming is in measures.frequency",
    "table.Kind": "a type of strings, in rows.table as before; types are not found by name",
    "Counts(labels)": "vocabulary, which holds the labels; Counts.labels stays",
    "Counts(digits)": "exact_moments, what they are",
    "Counts.digits": "exact_moments, what they are",
    "ValueTables(names)": "vocabulary, which holds the names; ValueTables.names stays",
    "ValueTables(labels)": "vocabulary, which holds the labels; ValueTables.labels stays",
    "ValueTables.n_features": "width, what all blocks have",
    "spaces.conditional": "shares(counts.block(given, column)).T, which it was",
    "spaces.marginal_counts": "value_sums(counts, np.asarray)[0], which it was",
    "export.sql(prefix)": "its default follows the name of the package",
    "spaces.shares(block)": "in counts.couplings as before; another shares() is found first",
    "spectra.projected(tables)": "in counts.spectra as before; another projected() is found first",
    "spectra.projected(axes)": "in counts.spectra as before; another projected() is found first",
    "CKML(repair)": _PUBLISHED,
    "CKML.repair_": "psd_clip_, what it is",
    "HELIC(solver)": _PUBLISHED,
    "HELIC(kernels)": f"{_UNUSED}; variant='linear' is the other family there is",
    "HELIC(max_iter)": "200 by default, which None stood for",
    "HELIC(start)": "variant='balanced'",
    "NonBEND.alpha0": "an annotation; the parameter is there",
    "NonBEND(column_weights)": _PUBLISHED,
    "NonBEND(truncation)": _METHOD,
    "NonBEND(max_iter)": _METHOD,
    "NonBEND(verbose)": "progress of the method, a function of a Progress, as in count",
    "UNICORN(objective)": _PUBLISHED,
    "UNICORN(delta)": _PUBLISHED,
    "UNICORN(sigma)": _PUBLISHED,
    "UNTIE(objective)": _PUBLISHED,
    "golden: measure: cos": "(1/s_Ia − 1)(1 − s_Ie), as Wang et al. join the two",
    "golden: measure: dilca": "p(value given context value): (2.22) has it reversed",
    "golden: measures: register": "cos claims no triangle inequality any more",
    "golden: knn: weights": "its metric is cos",
    "golden: knn: first come": "its metric is cos",
    "golden: published: untie": "bounded polynomials, batches of 20",
    "golden: published: nonbend, vi": "rows are in one subspace each (Algorithm 2)",
    "file: NonBEND-published": "rows that are added count in one subspace each (Algorithm 2)",
    "golden: nonbend: shrunk": "weights halfway to the published ones did not help (Table 5.4); "
    "the tables that have them make them in benchmarks/_methods_nonbend.py",
    "GBCClassifier(form)": _PUBLISHED,
    "GBCClassifier.taught_": "self_trained_, what it is",
    "GBCRegressor(form)": _PUBLISHED,
    "GBCRegressor.taught_": "self_trained_, what it is",
    "HeMap(selection)": "source rows are always selected: no constructor has nine parameters",
    "Sources.places": "Sources.index, what it gives",
    "SimilarityIndex(breadth)": '"auto": the index measures which breadth it needs',
    "engines.is_spread": "is_distributed: spread meant five things",
    "engines.known_columns": "fitted_columns: the columns of fit, with the types they had then",
    "engines.in_memory": "read_with_classes: it reads; rows.frames.in_memory tells",
    "engines.count_for(known)": "fitted: the counts of fit",
    "count(progress)": "None, or a function of a Progress; True drew, as progress_bar() does now",
    "engines.transform(progress)": "None, or a function of a Progress, as in count",
    "KSVD(progress)": "None, or a function of a Progress, as in count",
    "recommend.MatrixFactorization(verbose)": "progress, a function of a Progress, as in count",
    "engines.Estimate.refuse": "check: it raises if the estimate does not fit",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=_AsWritten)
    parser.add_argument("what", choices=("record", "check"))
    parser.add_argument("folder", type=Path, help="where the records are")
    parser.add_argument("--package", help=f"by default {BEFORE} to record, {AFTER} to check")
    parser.add_argument(
        "--report", type=Path, metavar="FILE.md", help="write the tables there, too"
    )
    parser.add_argument("--only", metavar="PATTERN", help="check these goldens and files, no names")
    options = parser.parse_args()
    package = options.package or (BEFORE if options.what == "record" else AFTER)
    tw = opened(package)
    print(f"{package} in {Path(tw.__path__[0]).parent}", file=sys.stderr)
    if options.what == "record":
        record(tw, options.folder)
        return
    found_out = check(tw, options.folder, options.only)
    for line in found_out.lines:
        print(line)
    if options.report is not None:
        options.report.write_text("\n".join(found_out.lines) + "\n", encoding="utf-8")
    sys.exit(1 if found_out.off else 0)


def opened(package: str) -> ModuleType:
    """Return a package with its rooms at hand, which some packages load when imported only."""
    tw = importlib.import_module(package)
    for room in ROOMS:
        if not hasattr(tw, room):
            importlib.import_module(f"{package}.{room}")
    return tw


class _AsWritten(argparse.RawDescriptionHelpFormatter):
    """Leaves the description as it is."""


# -- before -------------------------------------------------------------------------------------


def record(tw: ModuleType, folder: Path) -> None:
    """Write down numbers, files and names; a measure or class that no golden covers is an error."""
    refuse_gaps(tw)
    files = folder / "files"
    shutil.rmtree(files, ignore_errors=True)
    files.mkdir(parents=True)
    goldens = {name: packed(golden(tw)) for name, golden in with_progress(GOLDENS)}
    said = {name: saved(tw, files, name, model) for name, model in with_progress(MODELS)}
    about = {"package": tw.__name__, "version": tw.__version__, "with": versions()}
    write(folder / "numbers.json", {"about": about, "goldens": goldens})
    write(folder / "saved.json", said)
    write(folder / "names.json", public(tw))
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    print(f"{len(goldens)} goldens, {len(said)} files, {size / 1e6:.2f} MB")


def refuse_gaps(tw: ModuleType) -> None:
    """Refuse to record while something has no golden or no file."""
    unknown = set(tw.measures.MEASURES) ^ set(MEASURES)
    kept = {name.partition("-")[0] for name in MODELS}
    unsaved = {cls.__name__ for cls in storable(tw)} - kept
    for what, names in (("golden for measure", unknown), ("file for class", unsaved)):
        if names:
            raise ValueError(f"expected a {what} {', '.join(sorted(names))}, got none")


def storable(tw: ModuleType) -> Iterator[type]:
    """Return the classes with ``save`` that no other class is made from."""
    own = [
        value
        for _, module, value in definitions(tw)
        if inspect.isclass(value) and value.__module__ == module.__name__ and hasattr(value, "save")
    ]
    return (cls for cls in own if not any(cls in other.__bases__ for other in own))


def saved(tw: ModuleType, files: Path, name: str, model: Model) -> dict[str, Any]:
    """Write a fitted model to a file; return what it says when it comes back from there."""
    made, path = model.make(tw), files / f"{name}{SUFFIX}"
    (made.save if hasattr(made, "save") else lambda to: tw.export.save(made, to))(path)
    learned = sorted(k for k in vars(made) if k.endswith("_") and not k.startswith("_"))
    back, never_left = (said_by(tw, model, m) for m in (tw.load(path), made))
    if not back or back != never_left:
        raise ValueError(f"expected {name} to say the same after loading, got something else")
    estimator = isinstance(made, BaseEstimator)
    return {
        "class": type(made).__name__,
        "learned": learned if estimator else [],
        "answers": back,
    }


def said_by(tw: ModuleType, model: Model, fitted: Any) -> dict[str, Any]:
    return {name: packed(answer) for name, answer in model.answers(tw, fitted).items()}


def versions() -> dict[str, str]:
    return {"python": platform.python_version()} | {name: version(name) for name in VERSIONS}


def write(path: Path, value: dict[str, dict[str, Any]]) -> None:
    """Write JSON with a line for each entry, so that two records can be compared by eye."""
    parts = []
    for name, entries in value.items():
        lines = (f"  {spelled_out(k)}: {spelled_out(v)}" for k, v in entries.items())
        parts.append(f"{spelled_out(name)}: {{\n" + ",\n".join(lines) + "\n}")
    path.write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8")


def spelled_out(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def with_progress(tasks: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Go through tasks and say on a terminal which one it is."""
    for name, task in tasks.items():
        if sys.stderr.isatty():
            print(f"\r{name:<60}", end="", file=sys.stderr, flush=True)
        yield name, task
    if sys.stderr.isatty():
        print(f"\r{'':<60}\r", end="", file=sys.stderr)


# -- numbers ------------------------------------------------------------------------------------


def packed(value: Any) -> Any:
    """Return a number, or an array as a record: all of it if small, else means and some entries.

    The third mean weighs entries by where they stand, so that exchanged ones are seen.
    """
    array = np.asarray(as_numbers(value))
    if not array.shape:
        return float(array)
    numbers = array.ravel()
    out: dict[str, Any] = {"shape": list(array.shape)}
    if numbers.size <= SMALL:
        return out | {"values": numbers.tolist()}
    weighted = numbers * np.cos(np.arange(numbers.size))
    chosen = np.linspace(0, numbers.size - 1, ENTRIES).astype(int)
    return out | {
        "mean": math.fsum(numbers) / numbers.size,
        "root mean square": math.sqrt(math.fsum(numbers**2) / numbers.size),
        "mean by position": math.fsum(weighted) / numbers.size,
        "entries": numbers[chosen].tolist(),
    }


def difference(before: Any, after: Any) -> float:
    """Return the largest ``|a - b| / max(1, |a|)``; infinite if the two are not of one form."""
    before, after = (
        r if isinstance(r, dict) else {"shape": [], "value": r} for r in (before, after)
    )
    if before.keys() != after.keys() or before["shape"] != after["shape"]:
        return math.inf
    pairs = zip(numbers_in(before), numbers_in(after), strict=True)
    return max((gap(a, b) for a, b in pairs), default=0.0)


def numbers_in(record_: dict[str, Any]) -> Iterator[float]:
    for key, value in record_.items():
        if key != "shape":
            yield from value if isinstance(value, list) else [value]


def gap(a: float, b: float) -> float:
    if a == b or (math.isnan(a) and math.isnan(b)):
        return 0.0
    size = abs(a - b) / max(1.0, abs(a))
    return math.inf if math.isnan(size) else size


def shown(value: Any) -> str:
    """Return a record in a few characters."""
    if isinstance(value, str):
        return value
    if not isinstance(value, dict):
        return f"{value:.12g}"
    shape = "×".join(map(str, value["shape"]))
    own = value.get("values", [value.get("mean")])
    mean = math.fsum(own) / max(len(own), 1)
    return f"{mean:.12g} (mean of {shape})"


# -- names --------------------------------------------------------------------------------------


def public(tw: ModuleType) -> dict[str, dict[str, str]]:
    """Return every public name with its kind, every parameter with its default, every member."""
    names: dict[str, str] = {}
    parameters: dict[str, str] = {}
    members: dict[str, str] = {}
    seen: set[int] = set()
    for name, value in named(tw):
        names[name] = kind_of(value)
        if id(value) not in seen and names[name] in ("class", "function"):
            seen.add(id(value))
            parameters |= {f"{name}({p})": default for p, default in parameters_of(value)}
            members |= {f"{name}.{m}": "" for m in members_of(value, tw.__name__)}
    return {"names": names, "parameters": parameters, "members": members}


def named(tw: ModuleType) -> Iterator[tuple[str, Any]]:
    """Go through the public names: of the package, of its rooms, and of the command line."""
    yield from ((name, getattr(tw, name)) for name in tw.__all__)
    for info in iter_modules(tw.__path__):
        if not info.name.startswith("_") and info.name != "cli":  # whose commands are public
            room = importlib.import_module(f"{tw.__name__}.{info.name}")
            yield from ((f"{info.name}.{name}", getattr(room, name)) for name in names_of(room))
    yield from ((name, found(tw, name)) for name in DEEP)
    yield from commands(tw).items()


def names_of(room: ModuleType) -> list[str]:
    """Return ``__all__`` of a module, or else the public names that it defines."""
    own = (n for n, v in vars(room).items() if getattr(v, "__module__", None) == room.__name__)
    return list(getattr(room, "__all__", None) or (name for name in own if name[0] != "_"))


def commands(tw: ModuleType) -> dict[str, Any]:
    """Return the commands of the package's command line, as ``command name``."""
    out = {}
    for _, _, value in definitions(tw):
        for own in getattr(value, "registered_commands", ()) if kind_of(value) == "value" else ():
            out[f"command {own.name or own.callback.__name__}"] = own.callback
    return out


def kind_of(value: Any) -> str:
    if inspect.ismodule(value):
        return "module"
    if inspect.isclass(value):
        return "class"
    return "function" if inspect.isroutine(value) else "value"


def parameters_of(value: Any) -> Iterator[tuple[str, str]]:
    """Go through the parameters of a class or function, each with its default if that is plain."""
    for name, parameter in inspect.signature(value).parameters.items():
        default = parameter.default
        plain = default is None or isinstance(default, bool | int | float | str | tuple)
        yield name, repr(default) if plain else "" if default is parameter.empty else "..."


def members_of(value: Any, package: str) -> list[str]:
    """Return methods, properties and fields that a class has from the package."""
    if not inspect.isclass(value):
        return []
    own = [c for c in value.__mro__ if c.__module__.partition(".")[0] == package]
    names = {n for c in own for n in (*vars(c), *vars(c).get("__annotations__", ()))}
    requests = {n for n in names if n.startswith("set_") and n.endswith("_request")}
    return sorted(n for n in names - requests if not n.startswith("_"))


def located(tw: ModuleType, name: str, kind: str) -> tuple[str, Any] | None:
    """Return where a name is now, and what it names; None if it is nowhere it may be."""
    if name.startswith("command "):
        return (name, commands(tw)[name]) if name in commands(tw) else None
    room, _, own = name.rpartition(".")
    for home in dict.fromkeys([room, ""]):
        value = attribute(tw, home, own)
        if value is not None and kind_of(value) == kind:
            return f"{home}.{own}".lstrip("."), value
    if room in ROOMS or (not room and name not in DEEP):
        return None
    for defined, module, value in definitions(tw):
        if defined == own and kind_of(value) == kind and belongs(value, module):
            return f"{module.__name__}.{own}", value
    return None


def attribute(tw: ModuleType, room: str, name: str) -> Any:
    """Return ``tw.room.name``, or None."""
    home = getattr(tw, room, None) if room else tw
    if home is None:
        home = modules(tw).get(f"{tw.__name__}.{room}")
    return getattr(home, name, None)


def belongs(value: Any, module: ModuleType) -> bool:
    """Tell whether a module defines a value, as far as the value says where it is from."""
    home = getattr(value, "__module__", None)
    return home == module.__name__ or not isinstance(home, str)


# -- after --------------------------------------------------------------------------------------


@dataclass
class Findings:
    """What a check found: lines of Markdown, and what is off."""

    lines: list[str] = field(default_factory=list)
    off: list[str] = field(default_factory=list)
    listed: set[str] = field(default_factory=set)

    def judge(self, key: str, wrong: bool) -> str:
        """Return a verdict for a table, and remember it if something is off."""
        if not wrong:
            return "same"
        if key in LOST:
            self.listed.add(key)
            return f"listed: {LOST[key]}"
        self.off.append(key)
        return "**OFF**"

    def section(self, title: str, *rows: tuple[str, ...]) -> None:
        """Add a heading and a table; its first row is the head."""
        self.lines += ["", f"## {title}", ""]
        for i, row in enumerate(rows):
            self.lines.append("| " + " | ".join(cell.replace("|", "/") for cell in row) + " |")
            if i == 0:
                self.lines.append("|" + " --- |" * len(row))


def check(tw: ModuleType, folder: Path, only: str | None = None) -> Findings:
    """Compare a package with the records; ``only`` leaves out names and other goldens and files."""
    numbers, said, names = (
        json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
        for name in ("numbers", "saved", "names")
    )
    out = Findings()
    check_numbers(tw, chosen(numbers["goldens"], only), out)
    check_files(tw, folder / "files", chosen(said, only), out)
    if only is None:
        check_names(tw, names, said, out)
    out.lines[:0] = summary(tw, numbers["about"], out)
    return out


def chosen(records: dict[str, Any], only: str | None) -> dict[str, Any]:
    return {name: r for name, r in records.items() if only is None or fnmatch(name, only)}


def summary(tw: ModuleType, about: dict[str, Any], out: Findings) -> list[str]:
    lines = ["# The house rebuilt, and nothing changed", ""]
    lines.append(
        f"Recorded: {about['package']} {about['version']}; checked: {tw.__name__} {tw.__version__}."
    )
    moved = [f"{n} {v} → {versions()[n]}" for n, v in about["with"].items() if versions()[n] != v]
    if moved:
        lines.append(
            f"Other packages changed as well, and digits may with them: {', '.join(moved)}."
        )
    lines += ["", f"**{len(out.off)} off**, {len(out.listed)} listed as lost."]
    return lines + [f"- {key}" for key in out.off]


def check_numbers(tw: ModuleType, before: dict[str, Any], out: Findings) -> None:
    rows = [("golden", "old", "new", "difference", "")]
    for name, old in with_progress(before):
        new, size = golden_now(tw, name, old)
        verdict = out.judge(f"golden: {name}", size > TOLERANCE)
        rows.append((name, shown(old), shown(new), f"{size:.1e}", verdict))
    out.section(f"Numbers: {len(before)} goldens", *rows)


def golden_now(tw: ModuleType, name: str, old: Any) -> tuple[Any, float]:
    """Return a golden of the package as it is, and its difference; an error is a difference."""
    try:
        new = packed(GOLDENS[name](tw))
    except Exception as error:
        return described(error), math.inf
    return new, difference(old, new)


def described(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".replace("\n", " ")


def check_files(tw: ModuleType, files: Path, before: dict[str, Any], out: Findings) -> None:
    rows = [("file", "class", "loads", "difference of what it says", "")]
    for name, old in with_progress(before):
        path = files / f"{name}{SUFFIX}"
        for key, resume in ((f"file: {name}", False), (f"file: {name}, resumed", True)):
            if not resume or name in RESUMED:
                loads, size = file_now(tw, path, old["answers"], resume)
                verdict = out.judge(key, size > TOLERANCE)
                rows.append(
                    (key.removeprefix("file: "), old["class"], loads, f"{size:.1e}", verdict)
                )
    out.section(f"Files: {len(before)}", *rows)


def file_now(tw: ModuleType, path: Path, old: dict[str, Any], resume: bool) -> tuple[str, float]:
    """Load a file, or let a new stream go on from it, and ask what was asked before."""
    loads = "no"
    try:
        model = tw.load(path)
        if resume:
            model = clone(model).resume(path)
        loads = "yes"
        new = said_by(tw, MODELS[path.stem], model)
    except Exception as error:
        return f"{loads}; {described(error).replace(str(path), path.name)}", math.inf
    if old.keys() != new.keys():
        return f"{loads}; says {', '.join(new)}, not {', '.join(old)}", math.inf
    return loads, max(difference(old[k], new[k]) for k in old)


def check_names(
    tw: ModuleType, before: dict[str, dict[str, str]], said: dict[str, Any], out: Findings
) -> None:
    """Look up every name, parameter, member and learned attribute."""
    homes = {name: located(tw, name, kind) for name, kind in before["names"].items()}
    learned = {f"{own['class']}.{a}" for own in said.values() for a in own["learned"]}
    groups = {
        "names": (before["names"], [name for name, home in homes.items() if home is None]),
        "parameters": (before["parameters"], [*lost_parameters(before["parameters"], homes)]),
        "members": (before["members"], [*lost_members(before["members"], homes)]),
        "learned attributes": (learned, sorted({*lost_attributes(tw, said)})),
    }
    rows = [
        (group, str(len(known)), str(len(known) - len(gone)), str(len(gone)))
        for group, (known, gone) in groups.items()
    ]
    lost = [(name, out.judge(name, True)) for _, gone in groups.values() for name in gone]
    moved = sorted((n, home[0]) for n, home in homes.items() if home and home[0] != n)
    out.section("Names", ("", "before", "kept", "lost"), *rows)
    out.section(f"Lost: {len(lost)}", ("name", "why"), *lost)
    out.section(f"Kept, but elsewhere: {len(moved)}", ("before", "now"), *moved)
    new = [(n, kind_of(v)) for n, v in named_now(tw) if n not in before["names"]]
    out.section(f"New: {len(new)}", ("name", "kind"), *new)
    for name, error in modules(tw).items():
        if isinstance(error, Exception):
            out.lines += ["", f"{name} does not import: {out.judge(described(error), True)}"]
    for name in sorted(LOST.keys() - out.listed):
        out.lines += ["", f"LOST lists {name}, which is not lost."]


def named_now(tw: ModuleType) -> Iterator[tuple[str, Any]]:
    """Go through the names of the package and of the rooms that stay."""
    yield from ((name, getattr(tw, name, None)) for name in tw.__all__)
    for room in ROOMS:
        home = attribute(tw, "", room)
        yield from ((f"{room}.{name}", getattr(home, name)) for name in names_of(home))


def lost_parameters(before: dict[str, str], homes: dict[str, Any]) -> Iterator[str]:
    """Return the parameters that are gone, or have another default, of what is still there."""
    for key, default in before.items():
        name, _, parameter = key.removesuffix(")").partition("(")
        if homes[name] is not None:
            now = dict(parameters_of(homes[name][1]))
            if now.get(parameter) != default:
                yield key


def lost_members(before: dict[str, str], homes: dict[str, Any]) -> Iterator[str]:
    """Return the members that are gone of classes that are still there."""
    for key in before:
        name, _, member = key.rpartition(".")
        if homes[name] is not None:
            cls = homes[name][1]
            fields = {n for c in cls.__mro__ for n in vars(c).get("__annotations__", ())}
            if not hasattr(cls, member) and member not in fields:
                yield key


def lost_attributes(tw: ModuleType, said: dict[str, Any]) -> Iterator[str]:
    """Return what models no longer have once they are fitted, or why they cannot be fitted."""
    for name, old in said.items():
        if old["learned"]:
            try:
                model = MODELS[name].make(tw)
            except Exception as error:
                yield f"{name}: {described(error)}"
                continue
            yield from (f"{old['class']}.{a}" for a in old["learned"] if not hasattr(model, a))


if __name__ == "__main__":
    main()
