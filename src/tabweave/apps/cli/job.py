"""A job: which rows, which columns, which method. Reads them, learns, warns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NamedTuple

from tabweave.apps.cli.app import Misuse, note
from tabweave.apps.cli.show import progress
from tabweave.apps.methods import build, check


@dataclass(frozen=True)
class Rows:
    """A table in memory: its columns by name, whatever library holds them."""

    columns: dict[str, Any]
    n_rows: int

    @classmethod
    def read(cls, source: str, *, text: Sequence[str] = (), counts: Any = None) -> Rows:
        """Read a source through the engines.

        Parameters
        ----------
        source : str
            A path or a query.
        text : sequence of str
            Columns to take as they are written, if it is a file of text: 007 is not 7.
        counts : Counts, optional
            What a model has seen, so that its columns are read as they were then.
        """
        from tabweave import engines
        from tabweave.engines import known_columns, open_source
        from tabweave.rows.frames import columns_of

        types = dict.fromkeys(open_source(source).types)
        if counts is not None:
            known = known_columns(source, counts)
            types |= known if isinstance(known, dict) else {}
        elif Path(source).suffix.lower() in (".csv", ".tsv", ".txt"):
            types |= {name: "VARCHAR" for name in types if name in text or "*" in text}
        typed = any(types.values())
        names, columns, n_rows = columns_of(engines.read(source, columns=types if typed else None))
        if not n_rows:
            raise ValueError(f"{source!r} has columns but no rows")
        names = names or [f"x{i}" for i in range(len(columns))]
        return cls(dict(zip(names, columns, strict=True)), n_rows)

    def row(self, place: int) -> dict[str, Any]:
        """Return one row, its cells as Python has them."""
        if not -self.n_rows <= place < self.n_rows:
            raise ValueError(f"there is no row {place}; rows count from 0 to {self.n_rows - 1}")
        return {name: _cell(cells, place % self.n_rows) for name, cells in self.columns.items()}

    def column(self, name: str) -> list[Any]:
        """Return the cells of a column as a list."""
        self.check([name])
        cells = self.columns[name]
        listed = getattr(cells, "to_pylist", None) or getattr(cells, "tolist", None)
        return listed() if listed else list(cells)

    def check(self, names: Sequence[str]) -> None:
        """Refuse a name that is no column."""
        check_columns(names, self.columns)


def check_columns(names: Iterable[str], known: Iterable[str]) -> None:
    """Refuse a name that is no column, and say which may be meant."""
    known = list(known)
    for name in names:
        if name not in known:
            close = get_close_matches(name, known, 1)
            hint = f"did you mean {close[0]!r}?" if close else "there are "
            shown = "" if close else ", ".join(map(repr, known[:20]))
            raise ValueError(f"there is no column {name!r}; {hint}{shown}")


class Learned(NamedTuple):
    """A fitted embedder, the rows as they were read, and those columns that it embeds."""

    embedder: Any
    rows: Rows
    table: Any


@dataclass(frozen=True)
class Job:
    """What a command is asked to compare, and how."""

    source: str
    method: str = "auto"
    target: str | None = None
    columns: Sequence[str] = ()
    drop: Sequence[str] = ()
    keep: Sequence[str] = ()
    kinds: Sequence[str] = ()
    model: Path | None = None
    seed: int = 0
    n_clusters: int | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        try:
            check(self.method, self.target)
        except ValueError as error:
            raise Misuse(str(error)) from None
        if self.model is not None and self.method != "auto":
            raise Misuse("--model brings its own method; leave --method out")
        if self.model is not None and (self.columns or self.drop or self.kinds):
            raise Misuse("--model knows its columns; leave --columns, --drop and --kind out")

    def learned(self) -> Learned:
        """Read the rows and learn from them, or take a saved model."""
        if self.model is not None:
            return self._loaded(self.model)
        rows = self.rows()
        if self.n_clusters is not None and self.n_clusters > rows.n_rows:
            raise ValueError(f"{self.n_clusters} clusters of {rows.n_rows} rows; ask for fewer")
        table = self.table(rows)
        _warn(table)
        classes = None if self.target is None else rows.column(self.target)
        embedder = build(
            self.method,
            mixed=any(c.kind in ("numeric", "ordinal") for c in table.schema.columns),
            kinds=self.declared(rows) or None,
            n_clusters=self.n_clusters,
            seed=self.seed,
        )
        return Learned(embedder.fit(table, classes), rows, table)

    def placed(self) -> Learned:
        """Learn; rows that were laid out on a map keep their places."""
        pass

        learned = self.learned()
        if self.model is None and hasattr(learned.embedder, "map_"):
            from tabweave.apps.cli.steps import Laid  # loads NumPy

            return learned._replace(embedder=Laid(learned.embedder))
        return learned

    def _loaded(self, model: Path) -> Learned:
        from tabweave import Table

        embedder = load_model(model)
        rows = Rows.read(self.source, counts=embedder.counts_)
        names = embedder.schema_.names
        rows.check([*names, *self.keep, *filter(None, [self.target])])
        table = Table.of({n: rows.columns[n] for n in names}, embedder.schema_)
        return Learned(embedder, rows, table)

    def rows(self) -> Rows:
        """Read the rows; columns declared to hold values are taken as they are written."""
        declared = dict(text.rpartition("=")[::2] for text in self.kinds)
        valued = [n for n, kind in declared.items() if not kind.startswith("numeric")]
        return Rows.read(self.source, text=valued)

    def table(self, rows: Rows, *, with_target: bool = False) -> Any:
        """Return the columns to embed as a Table, the target last if it is wanted."""
        from tabweave import Table

        names = [
            *self.chosen(rows.columns),
            *([self.target] if with_target and self.target else []),
        ]
        return Table.of({name: rows.columns[name] for name in names}, self.declared(rows))

    def chosen(self, known: Iterable[str]) -> list[str]:
        """Return the names of the columns to embed, of those that there are."""
        check_columns([*self.columns, *self.drop, *self.keep, *filter(None, [self.target])], known)
        left_out = {*self.drop, *((self.target,) if self.target else ())}
        if not self.columns:
            left_out |= set(self.keep)
        names = [n for n in (self.columns or known) if n not in left_out]
        if not names:
            raise ValueError("no column is left to embed; see --columns, --drop, --keep, --target")
        return names

    def declared(self, rows: Rows) -> dict[str, Any]:
        """Return the kinds that were declared, for the columns that are embedded."""
        names, out = self.chosen(rows.columns), {}
        for text in self.kinds:
            name, equals, kind = text.rpartition("=")
            if not equals:
                raise Misuse(f"--kind {text!r}: write COLUMN=KIND, e.g. size=nominal")
            if name != "*":
                rows.check([name])
            for each in names if name == "*" else [name]:
                out[each] = _kind(each, kind, rows.columns[each])
        return {name: kind for name, kind in out.items() if name in names}


def load_model(path: Path) -> Any:
    """Return the embedder that a file holds."""
    from tabweave import load

    if not path.is_file():
        raise ValueError(f"there is no file {str(path)!r}; 'tabweave embed --save' makes one")
    embedder: Any = load(path)
    if not hasattr(embedder, "transform") or not hasattr(embedder, "schema_"):
        raise ValueError(f"{str(path)!r} holds a {type(embedder).__name__}, no embedder")
    return embedder


def _kind(name: str, text: str, cells: Any) -> Any:
    """Read KIND, ordinal:LOW<...<HIGH or set:DELIMITER."""
    from tabweave import Column
    from tabweave.rows.frames import infer_kind

    kind, _, detail = text.partition(":")
    if kind not in ("nominal", "numeric", "ordinal", "set"):
        raise Misuse(f"--kind {name}={text}: use nominal, numeric, ordinal or set")
    if kind == "ordinal" and detail:
        levels: list[Any] = [level.strip() for level in detail.split("<")]
        if infer_kind(cells) == "numeric":
            levels = [float(level) for level in levels]
        return Column(name, "ordinal", levels=tuple(levels))
    if kind == "set" and detail:
        return Column(name, "set", delimiter=detail)
    return Column(name, kind)  # type: ignore[arg-type]


def listed(text: str | None) -> tuple[str, ...]:
    """Take a list with commas apart."""
    return tuple(part.strip() for part in text.split(",") if part.strip()) if text else ()


def _warn(table: Any) -> None:
    """Say which columns tell rows apart without telling what they are."""
    from tabweave.apps.report.parts import read

    for name, why in read(table, None).left_out.items():
        _warn_of(name, why)


def warn_of_keys(counts: Any) -> None:
    """Say the same from counts alone."""
    for name, size in zip(counts.names, counts.sizes, strict=True):
        if size > 20 and size >= 0.9 * counts.n:
            _warn_of(name, "has a value of its own in almost every row")


def _warn_of(name: str, why: str) -> None:
    note(f"warning: column {name!r} {why}, so it only adds noise; consider --drop {name}")


def _cell(cells: Any, place: int) -> Any:
    value = cells.iloc[place] if hasattr(cells, "iloc") else cells[place]
    value = value.as_py() if hasattr(value, "as_py") else value
    return value.item() if hasattr(value, "item") and getattr(value, "ndim", 0) == 0 else value


# -- Learning without reading a table into memory, where the method and the table allow it

def learned(job: Job) -> Any:
    """Return a fitted embedder without reading all rows at a time, or None if rows are needed."""
    from tabweave.engines import open_source

    types = open_source(job.source).types
    if job.model is not None:
        embedder = load_model(job.model)
        beside = [*job.keep, *filter(None, [job.target])]
        check_columns([*embedder.schema_.names, *beside], types)
        return embedder
    names = job.chosen(types)
    if job.kinds or not _all_values([types[n] for n in names]):
        return None
    embedder = build(job.method, mixed=False, kinds=None, seed=job.seed)
    return _from_counts(embedder, job, names) if _counted(embedder) else None


def _all_values(types: list[str]) -> bool:
    """Say whether columns of these types hold single values, and no numbers."""
    from tabweave.engines import family

    return all(family(kind) in ("text", "truth") for kind in types)


def _counted(embedder: Any) -> bool:
    """Say whether counts of the values are all that an embedder needs."""
    from tabweave.base import ValueEmbedder

    return isinstance(embedder, ValueEmbedder) and not embedder._needs_rows


def _from_counts(embedder: Any, job: Job, names: list[str]) -> Any:
    import tabweave

    with progress("counting") as advance:
        classes = job.target if embedder._uses_classes else None
        counts = tabweave.count(job.source, columns=names, y=classes, progress=advance)
    warn_of_keys(counts)
    return embedder.fit_counts(counts)


# -- From a fitted embedder to a file: one more step if need be, then batch by batch, all or nothing
