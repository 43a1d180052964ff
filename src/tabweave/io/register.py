"""The register: what the files of this package declare, read from their text.

``@measure`` and ``@embedder`` declare a method, ``@kind`` a kind of column, ``@storable`` a part of
saved files. A decorator stands on top of what it declares and there is no other list. Names,
completion and loading read it as text, so that nothing is imported before it is asked for; where
there is no text (byte code alone), the modules are imported instead. Imports nothing of the
package, and nothing slow.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder
from typing import Any, NamedTuple, TypeVar

PACKAGE = __name__.partition(".")[0]
STORED = ("storable", "embedder", "kind")  # whose objects files may hold
DECORATORS = ("measure", "embedder", "kind", "storable")
_DECLARATION = re.compile(rf"^@(?:{'|'.join(DECORATORS)})\b.*?^(?:class|def) \w+", re.M | re.S)

Entry = TypeVar("Entry")
Thing = TypeVar("Thing")


class Declared(NamedTuple):
    """What a decorator says: its name, on top of what it stands, and what it was given."""

    decorator: str
    module: str
    attribute: str
    given: tuple[Any, ...] = ()  # None for what is no literal
    flags: Mapping[str, Any] = {}

    @property
    def name(self) -> str:
        """What users type."""
        return self.given[0]

    @property
    def summary(self) -> str:
        """What it does, in one line."""
        return self.given[1]

    @property
    def home(self) -> tuple[str, str]:
        """Module and attribute."""
        return self.module, self.attribute

    def load(self) -> Any:
        """The class or function itself."""
        return getattr(import_module(self.module), self.attribute)


class Register(Mapping[str, Entry]):
    """Methods by name; the file of a method is imported when the method is looked up.

    Parameters
    ----------
    decorator : str
        The decorator that adds to it.
    room : str
        The package whose files are read.
    """

    def __init__(self, decorator: str, room: str) -> None:
        self._decorator, self._room = decorator, room
        self._entries: dict[str, Entry] = {}

    def add(self, thing: Thing, entry: Entry, *given: Any, **flags: Any) -> Thing:
        """Enter a class or function under a name, the first of what was given."""
        declared = Declared(self._decorator, *_home(thing), given, flags)
        # A module of ours is being imported now: no look at the others, which may be, too.
        is_of_package = declared.module.partition(".")[0] == PACKAGE
        others = _declared_by(self._decorator) if is_of_package else self.declared()
        other = others.get(declared.name, declared)
        if other.home != declared.home:
            raise ValueError(_twice(other, declared))
        _DECLARED[declared.home] = thing, declared
        self._entries[declared.name] = entry
        return thing

    def declared(self) -> dict[str, Declared]:
        """What decorators say, by name: of the room, and of code that was run."""
        out = _declared_by(self._decorator)
        for entry in room(self._room):
            if entry.decorator == self._decorator:
                if out.setdefault(entry.name, entry).home != entry.home:
                    raise ValueError(_twice(out[entry.name], entry))
        return dict(sorted(out.items()))

    def summaries(self) -> dict[str, str]:
        """The name of each with what it does, in one line."""
        return {name: entry.summary for name, entry in self.declared().items()}

    def __getitem__(self, name: str) -> Entry:
        if name not in self._entries:
            import_module(self.declared()[name].module)
        return self._entries[name]

    def __contains__(self, name: object) -> bool:
        return name in self.declared()  # a look, not an import

    def __iter__(self) -> Iterator[str]:
        return iter(self.declared())

    def __len__(self) -> int:
        return len(self.declared())


KINDS: Register[Any] = Register("kind", f"{PACKAGE}.columns")


def storable(thing: Thing) -> Thing:
    """Declare a class or function as a part that saved files may hold."""
    _DECLARED[_home(thing)] = thing, Declared("storable", *_home(thing))
    if (
        isinstance(thing, type)
        and thing.__getstate__ is object.__getstate__
        and thing.__dictoffset__
    ):
        thing.__getstate__ = _state  # type: ignore[assignment]
    return thing


def _state(self: Any) -> dict[str, Any]:
    """The attributes as they are now: other threads may add what they derive."""
    return dict(vars(self))


def declaration(thing: Any) -> Declared | None:
    """What the decorator of a class or function says, or None if there is none."""
    declared_thing, declared = _DECLARED.get(_home(thing), (None, None))
    return declared if declared_thing is thing else None


def attribute(package: str, name: str) -> Any:
    """A module of a room, or a class or function that one of its files declares."""
    spec = _spec(f"{package}.{name}") if not name.startswith("_") else None
    if spec is not None:
        return import_module(spec.name)
    for entry in room(package) if not name.startswith("_") else ():
        if entry.attribute == name and entry.decorator != "storable":
            return entry.load()
    raise AttributeError(f"module {package!r} has no attribute {name!r}")


def lazy(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """A ``__getattr__`` that imports a name's module, its home, when it is asked for."""

    def find(name: str) -> Any:
        if name in homes:
            return getattr(import_module(f"{package}.{homes[name]}"), name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return find


@cache
def room(name: str) -> tuple[Declared, ...]:
    """What the files of a package and of its folders declare, sorted by file."""
    from pkgutil import iter_modules

    spec = _spec(name)
    where = spec.submodule_search_locations if spec is not None else None
    out = list(module(name))
    for info in iter_modules(where, f"{name}."):
        out += room(info.name) if info.ispkg else module(info.name)
    return tuple(out)


@cache
def module(name: str) -> tuple[Declared, ...]:
    """What a module of this package declares; nothing if there is no such module."""
    spec = _spec(name)
    if spec is None or spec.loader is None:
        return ()
    text = spec.loader.get_source(name)  # type: ignore[attr-defined]
    if text is not None:
        return tuple(entry for part in _DECLARATION.findall(text) for entry in _read(name, part))
    if name.startswith(f"{PACKAGE}.apps."):  # declares nothing, and may run something
        return ()
    import_module(name)
    return tuple(entry for _, entry in _DECLARED.values() if entry.module == name)


# What decorators declared that were run: by module and attribute, with what they stand on.
_DECLARED: dict[tuple[str, str], tuple[Any, Declared]] = {}


def _declared_by(decorator: str) -> dict[str, Declared]:
    return {entry.name: entry for _, entry in _DECLARED.values() if entry.decorator == decorator}


def _home(thing: Any) -> tuple[str, str]:
    return getattr(thing, "__module__", ""), getattr(thing, "__qualname__", "")


def _spec(name: str) -> ModuleSpec | None:
    """Find a module of this package; importlib's own way would import what is above it."""
    top, *parts = name.split(".")
    if top != PACKAGE or not all(part.isidentifier() for part in parts):
        return None
    path: Sequence[str] | None = import_module(PACKAGE).__path__
    spec, module_name = None, PACKAGE
    for part in parts:
        module_name = f"{module_name}.{part}"
        spec = PathFinder.find_spec(module_name, path) if path is not None else None
        path = spec.submodule_search_locations if spec is not None else None
    return spec


def _read(name: str, text: str) -> Iterator[Declared]:
    """Read the decorators on top of one class or function."""
    import ast

    (node,) = ast.parse(f"{text}(): pass").body
    assert isinstance(node, ast.ClassDef | ast.FunctionDef)
    for decorator in node.decorator_list:
        call = decorator if isinstance(decorator, ast.Call) else None
        called = getattr(call.func if call else decorator, "id", "")
        if called in DECORATORS:
            arguments = tuple(_literal(value) for value in (call.args if call else ()))
            flags = {k.arg: _literal(k.value) for k in (call.keywords if call else ()) if k.arg}
            if call and list(map(type, arguments[:2])) != [str, str]:
                raise TypeError(
                    f"expected @{called} of {name}.{node.name} to begin with a name and a summary "
                    f"written out, got {arguments[:2]}"
                )
            yield Declared(called, name, node.name, arguments, flags)


def _literal(node: Any) -> Any:
    import ast

    try:
        return ast.literal_eval(node)
    except ValueError:  # a name, a formatted string
        return None


def _twice(one: Declared, other: Declared) -> str:
    homes = " and ".join(".".join(entry.home) for entry in (one, other))
    return f"expected one {one.decorator} named {one.name!r}, got two: {homes}"
