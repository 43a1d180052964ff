"""A job: which rows, which columns, which method. Opens the source once, reads, learns, warns.

``takes_job`` gives a command the options that say all this.
"""

from __future__ import annotations

import csv
import shlex
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, get_type_hints

from tabweave.apps.cli.app import (
    Columns,
    Drop,
    Encoding,
    From,
    Kind,
    Method,
    Missing,
    Misuse,
    Model,
    Seed,
    Source,
    Target,
    note,
)
from tabweave.apps.cli.files import STDIN, located
from tabweave.apps.cli.show import plural, progress, working
from tabweave.apps.methods import FIRST, build, check, find, naming_target

if TYPE_CHECKING:
    from tabweave.columns.decision import Finding

_LARGE = 1 << 28  # bytes of files that are worth an estimate


class Learned(NamedTuple):
    """A fitted embedder, the rows as they were read, and those columns that it embeds."""

    embedder: Any
    rows: Rows
    table: Any

    def column(self, name: str) -> Any:
        """Return a table of one column, as the embedder reads it or as its values look."""
        from tabweave import Table

        schema = self.embedder.schema_
        kinds = {name: schema[name]} if name in schema.names else None
        return Table.of({name: self.rows.columns[name]}, kinds, rules="all")


@dataclass(frozen=True)
class Job:
    """What a command is asked to compare, and how; checked before anything is opened.

    ``source`` is there while the job is ``opened``.
    """

    name: str
    form: str | None = None
    method: str = "auto"
    target: str | None = None
    columns: Sequence[str] = ()
    drop: Sequence[str] = ()
    keep: Sequence[str] = ()
    kinds: Sequence[str] = ()
    missing: Sequence[str] = ()
    model: Path | None = None
    seed: int = 0
    n_clusters: int | None = None
    n_components: int | None = None
    encoding: str | None = None
    source: Any = None

    def __post_init__(self) -> None:
        try:
            check(self.method, self.target)
        except ValueError as error:
            raise Misuse(str(error)) from None
        if self.model is not None and self.method != "auto":
            raise Misuse("a saved model already has a method; use --model without --method")
        if self.model is not None and (self.columns or self.drop or self.kinds):
            raise Misuse(
                "a saved model already has its columns; use --model without --columns, --drop "
                "and --kind"
            )
        if self.model is not None and self.n_components is not None:
            raise Misuse("a saved model already has its dimensions; use --dims when you fit it")

    @contextmanager
    def opened(self, *outputs: Path | None) -> Iterator[Job]:
        """Open the source, once: all that follows is asked of it; it must hold no output."""
        from tabweave.engines import open_source

        with located(self.name, self.form) as path:
            source = open_source(path, encoding=self.encoding)
            for output in filter(None, outputs):
                if output.resolve() in [read.resolve() for read in source.paths]:
                    raise Misuse(f"{str(output)!r} is one of the input files; write to another one")
            if self.name == "-":
                source.name = STDIN
            job = self._meant(source)
            yield replace(job, source=job._without_words()) if self.missing else job

    def _meant(self, source: Any) -> Job:
        """Return the job on a source, its columns by the names that they have there."""
        known = list(source.types)
        columns, drop, keep = (
            tuple(meant(name, known) for name in names)
            for names in (self.columns, self.drop, self.keep)
        )
        kinds = [text.rpartition("=") for text in self.kinds]
        return replace(
            self,
            source=source,
            target=self.target and meant(self.target, known),
            columns=columns,
            drop=drop,
            keep=keep,
            kinds=tuple(f"{meant(name, known)}{equals}{kind}" for name, equals, kind in kinds),
        )

    def _without_words(self) -> Any:
        """Return the rows as a source in memory, nothing in the cells that mean missing."""
        from tabweave.engines import open_source

        bound = self._bound(list(self.source.types))
        if bound is not None and not self._fits(bound):
            raise MemoryError(
                f"{self.source.name}: --missing reads all rows into memory, about "
                f"{(bound.rows_bytes or 0) / 1e9:,.1f} GB; replace the words in a query instead, "
                "as in \"SELECT NULLIF(a, 'NA') AS a, ... FROM 'x.parquet'\""
            )
        rows = Rows.read(self.as_written(self.source.types))
        declared = {text.rpartition("=")[0] for text in self.kinds}
        as_text = set() if self.source.guessed and "*" not in declared else set(rows.columns)
        return open_source(rows.without(self.missing, as_text | declared).frame())

    @property
    def title(self) -> str:
        """What pages and pictures call the table."""
        path = Path(self.name)
        return STDIN if self.name == "-" else path.name if path.exists() else self.name

    def title_of(self, embedder: Any) -> str:
        """Return what rows were compared by: the method that auto stands for, or the model."""
        if self.model is not None:
            return str(self.model)
        return str(embedder._title()) if self.method == FIRST else self.method

    @property
    def names(self) -> list[str]:
        """The columns to embed."""
        known = list(self.source.types)
        beside = [*self.keep, *filter(None, [self.target])]
        check_columns([*self.columns, *self.drop, *beside], known)
        left_out = {*self.drop, *filter(None, [self.target])}
        if not self.columns:
            left_out |= set(self.keep)
        names = [n for n in (self.columns or known) if n not in left_out]
        if not names:
            raise ValueError(
                "expected at least one column to embed, got none after --columns, --drop, --keep "
                "and --target"
            )
        return names

    def as_written(self, names: Iterable[str]) -> Any:
        """Return the source, columns declared to hold values as they are written: 007 is not 7.

        Only a file of text, whose types are guessed, has such columns.
        """
        declared = dict(text.rpartition("=")[::2] for text in self.kinds)
        valued = {n for n, kind in declared.items() if not kind.startswith("numeric")}
        types = {n: "VARCHAR" for n in names if n in valued or "*" in valued}
        return self.source.retyped(types) if types and self.source.guessed else self.source

    def to_write(self) -> Any:
        """Return the source as the embedder has read it; columns beside it keep their types."""
        return self.source if self.model is not None else self.as_written(self.names)

    # -- learning --------------------------------------------------------------------------

    def learned(self, *, keep_map: bool = False, cross_fit: bool = False) -> Learned:
        """Read the rows and learn from them, or take a saved model.

        With ``keep_map``, rows that were laid out on a map stay where they are. With ``cross_fit``,
        a method that can gives the rows of fit vectors that have not seen their classes.
        """
        if self.model is not None:
            return self._loaded(self.model)
        from tabweave.columns.identifiers import warn_of_predictive

        rows = self.rows()
        if self.n_clusters is not None and self.n_clusters > rows.n_rows:
            n_rows = plural(rows.n_rows, "row")
            raise ValueError(
                f"--clusters: expected at most one cluster per row, got {self.n_clusters} clusters "
                f"for {n_rows}"
            )
        table = self.table(rows, rules="whole")
        embedder = build(
            self.method,
            mixed=any(c.kind not in ("nominal", "set") for c in table.schema.columns),
            kinds=self.declared(rows) or None,
            n_clusters=self.n_clusters,
            n_components=self.n_components,
            seed=self.seed,
        )
        values = getattr(embedder, "categorical", embedder)
        _warn(table, spells=getattr(values, "_rules", False))
        with working("learning"), naming_target(self.target):
            y = None if self.target is None else rows.targets(self.target)
            if y is not None:
                warn_of_predictive({n: rows.columns[n] for n in self.names}, table.schema, y)
            if cross_fit and find(self.method).flags.get("cross_fits", False):
                vectors = embedder.fit_transform(table, y)
                note("vectors are cross-fitted: none has seen its own row's target")
            else:
                embedder.fit(table, y)
                vectors = getattr(embedder, "map_", None) if keep_map else None
        if line := getattr(embedder, "_coupling_line", str)():
            note(line)
        kept = embedder if vectors is None else FittedRows(embedder, vectors)
        return Learned(kept, rows, table)

    def _loaded(self, model: Path) -> Learned:
        from tabweave import Table

        embedder = load_model(model)
        names = embedder.schema_.names
        self._check_model(embedder)
        rows = Rows.read(self.source, vars(embedder).get("counts_"))
        table = Table.of({n: rows.columns[n] for n in names}, embedder.schema_)
        return Learned(embedder, rows, table)

    def _check_model(self, embedder: Any) -> None:
        """Refuse rows without the columns that a model has learned from."""
        known = list(self.source.types)
        if lacking := [name for name in embedder.schema_.names if name not in known]:
            needed, there = (", ".join(map(repr, names[:20])) for names in (lacking, known))
            raise ValueError(
                f"{self.source.name}: expected the columns that {str(self.model)!r} was fitted "
                f"on, got none named {needed}; the columns are {there}"
            )
        check_columns([*self.keep, *filter(None, [self.target])], known)

    def learned_from_counts(self) -> Any:
        """Return a fitted embedder without reading all rows at a time; None if rows are needed."""
        if self.model is not None:
            embedder = load_model(self.model)
            self._check_model(embedder)
            return embedder
        names = self.names
        bound = self._bound(names)
        if bound is not None and not self._fits(bound):
            return self._streamed(names, bound)
        if self.kinds or not self._all_values(names):
            return None
        embedder = build(
            self.method, mixed=False, kinds=None, n_components=self.n_components, seed=self.seed
        )
        if getattr(embedder, "_rules", False):  # text may hold dates: rows will show
            return None
        return self._fitted_to_counts(embedder, names) if _counted(embedder) else None

    def _bound(self, names: list[str]) -> Any:
        """Say what a large source will take, before work starts; None for a small one."""
        from tabweave.engines import estimate

        if sum(path.stat().st_size for path in self.source.paths) < _LARGE:
            return None
        found = estimate(self.source, columns=names)
        note(f"{self.source.name}: {found}")
        return found

    @staticmethod
    def _fits(bound: Any) -> bool:
        """Say whether all rows can be held at a time."""
        return bound.available is None or 2 * (bound.rows_bytes or 0) <= bound.available

    def _streamed(self, names: list[str], bound: Any) -> Any:
        """Return an embedder that was fitted in batches: the rows do not fit into memory."""
        embedder = build(
            self.method, mixed=not self._all_values(names), kinds=None, seed=self.seed,
            n_components=self.n_components,
        )  # fmt: skip
        if not _counted(embedder) or self.kinds or names != list(self.source.types):
            raise MemoryError(
                f"{self.source.name}: all rows take about {(bound.rows_bytes or 0) / 1e9:,.1f} GB, "
                f"but only {(bound.available or 0) / 1e9:,.1f} GB are free; fit on a sample with "
                "--save (IN may be a query: SELECT ... USING SAMPLE 1000000 ROWS), then embed "
                "all rows with --model, which reads them in batches"
            )
        return embedder.fit(self.source)

    def _all_values(self, names: list[str]) -> bool:
        """Say whether columns hold single values, and no numbers, as far as their types tell."""
        from tabweave.engines import family

        return all(family(self.source.types[name]) in ("text", "bool") for name in names)

    def _fitted_to_counts(self, embedder: Any, names: list[str]) -> Any:
        from tabweave import count

        classes = self.target if embedder._uses_classes else None
        with progress() as show, naming_target(self.target):
            counts = count(self.source, columns=names, y=classes, progress=show)
        if not counts.n:
            raise ValueError(f"{self.source.name!r} has columns but no rows")
        for name, size in zip(counts.names, counts.sizes, strict=True):
            if size > 20 and size >= 0.9 * counts.n:
                _warn_of(name, "has a different value in almost every row")
        return embedder.fit_counts(counts)

    # -- reading ---------------------------------------------------------------------------

    def rows(self) -> Rows:
        """Read the rows."""
        with working("reading"):
            return Rows.read(self.as_written(self.source.types))

    def table(self, rows: Rows, *, with_target: bool = False, rules: Any = None) -> Any:
        """Return the columns to embed as a Table, the target last if it is wanted."""
        from tabweave import Table

        names = [*self.names, *([self.target] if with_target and self.target else [])]
        cells = {name: rows.columns[name] for name in names}
        return Table.of(cells, self.declared(rows), rules=rules)

    def declared(self, rows: Rows) -> dict[str, Any]:
        """Return the kinds that were declared, for the columns that are embedded."""
        names, out = self.names, {}
        for text in self.kinds:
            name, equals, kind = text.rpartition("=")
            if not equals:
                raise Misuse(f"--kind: expected COLUMN=KIND, such as size=nominal, got {text!r}")
            if name != "*":
                rows.check([name])
            for each in names if name == "*" else [name]:
                out[each] = _kind(each, kind, rows.columns[each])
        return {name: kind for name, kind in out.items() if name in names}


def takes_job(*without: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the options that say what to compare, and how; it gets them as a Job.

    ``without`` names the options that would change nothing.
    """
    asked = [p for p in signature(_job).parameters.values() if p.name not in without]

    def with_options(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def run(**given: Any) -> None:
            job = _job(**{p.name: given.pop(p.name) for p in asked})
            command(job, **given)

        own = list(signature(command).parameters.values())[1:]
        hints = get_type_hints(_job, include_extras=True)
        hints |= get_type_hints(command, include_extras=True)
        run.__signature__ = Signature(  # type: ignore[attr-defined]
            [
                p.replace(annotation=hints[p.name], kind=Parameter.KEYWORD_ONLY)
                for p in (asked[0], *own, *asked[1:])
            ]
        )
        run.__annotations__ = hints
        return run

    return with_options


def _job(
    source: Source,
    method: Method = "auto",
    target: Target = None,
    columns: Columns = None,
    drop: Drop = None,
    kind: Kind = None,
    missing: Missing = None,
    from_: From = None,
    encoding: Encoding = None,
    model: Model = None,
    seed: Seed = 0,
) -> Job:
    return Job(
        source,
        from_,
        method,
        target,
        columns=listed(columns),
        drop=listed(drop),
        kinds=kind or (),
        missing=listed(missing),
        model=model,
        seed=seed,
        encoding=encoding,
    )


@dataclass(frozen=True)
class Rows:
    """A table in memory: its columns by name, whatever library holds them."""

    columns: dict[str, Any]
    n_rows: int

    @classmethod
    def read(cls, source: Any, counts: Any = None) -> Rows:
        """Read an opened source.

        Parameters
        ----------
        source : Source
            Where the rows are.
        counts : Counts, optional
            What a model has seen, so that its columns are read as they were then.
        """
        from tabweave.columns.frames import named_columns
        from tabweave.engines import fitted_columns, open_source, read

        if counts is not None:
            source = open_source(source, fitted_columns(source, counts))
        columns, n_rows = named_columns(read(source))
        if not n_rows:
            raise ValueError(f"{source.name!r} has columns but no rows")
        return cls(columns, n_rows)

    def row(self, number: int) -> dict[str, Any]:
        """Return one row, its cells as Python has them."""
        if number >= self.n_rows:
            raise ValueError(f"expected a row number from 0 to {self.n_rows - 1}, got {number}")
        return {name: cell_of(cells, number) for name, cells in self.columns.items()}

    def column(self, name: str) -> list[Any]:
        """Return the cells of a column as a list."""
        self.check([name])
        cells = self.columns[name]
        listed = getattr(cells, "to_pylist", None) or getattr(cells, "tolist", None)
        return listed() if listed else list(cells)

    def targets(self, name: str) -> Any:
        """Return the cells of the target: text that is numbers, such as money, as these."""
        from tabweave.columns.frames import infer_kind
        from tabweave.columns.numeric import Numbers
        from tabweave.columns.table import Table

        self.check([name])
        cells = self.columns[name]
        if infer_kind(cells) == "nominal":
            ((_, data),) = Table.of({name: cells}, rules="all")
            if isinstance(data, Numbers):
                return data.values
        return self.column(name)

    def without(self, words: Sequence[str], as_text: Container[str] = ()) -> Rows:
        """Return the rows with nothing in cells that are one of some words.

        What is left of a column may be numbers, as it would be had these cells been empty, unless
        it is to stay text. Each distinct value is looked at once.
        """
        from tabweave.columns.frames import categories, infer_kind, object_array
        from tabweave.columns.texts import PANDAS_MISSING_WORDS

        wanted = [word for word in words if word != "pandas"]
        words = PANDAS_MISSING_WORDS + tuple(wanted) if "pandas" in words else words
        columns, found = dict(self.columns), set()
        for name, cells in self.columns.items():
            codes, labels = categories(cells) if infer_kind(cells) == "nominal" else ([], [])
            met = {v for v in labels if isinstance(v, str) and v.strip() in words}
            if met:
                kept = [None if label in met else label for label in labels]
                columns[name] = object_array(kept if name in as_text else _as_numbers(kept))[codes]
            found |= {text.strip() for text in met}
        for word in wanted:
            if word not in found:
                raise ValueError(f"--missing: no cell of a categorical column holds {word!r}")
        return Rows(columns, self.n_rows)

    def frame(self) -> Any:
        """Return the columns as what the engines take: an Arrow table, or a mapping without it."""
        from tabweave.engines import has_arrow

        if not has_arrow():
            return self.columns
        import pyarrow as pa

        typed = (pa.Array, pa.ChunkedArray)
        try:
            return pa.table(
                {n: c if isinstance(c, typed) else pa.array(c) for n, c in self.columns.items()}
            )
        except (TypeError, ValueError):  # cells of several types
            return self.columns

    def check(self, names: Sequence[str]) -> None:
        """Refuse a name that is not one of the columns."""
        check_columns(names, self.columns)


def _as_numbers(labels: list[Any]) -> list[Any]:
    """Return texts that are all plain numbers as these; others as they are."""
    from tabweave.columns.numeric import number_of, numbers_written

    texts = [label for label in labels if label is not None]
    if not texts or numbers_written(texts) != ("numbers", ".") or any("," in t for t in texts):
        return labels
    whole = all(text.strip().lstrip("+-").isdecimal() for text in texts)
    return [None if v is None else int(v) if whole else number_of(v) for v in labels]


def cell_of(cells: Any, number: int) -> Any:
    """Return one cell of a column as Python has it."""
    value = cells.iloc[number] if hasattr(cells, "iloc") else cells[number]
    value = value.as_py() if hasattr(value, "as_py") else value
    return value.item() if hasattr(value, "item") and getattr(value, "ndim", 0) == 0 else value


def meant(name: str, known: Iterable[str]) -> str:
    """Return the column of a name; if there is none, the one that has blanks around it."""
    alike = [k for k in known if k.strip() == name.strip()]
    return alike[0] if len(alike) == 1 else name


def check_columns(names: Iterable[str], known: Iterable[str]) -> None:
    """Refuse a name that is not one of the columns, and say which may be meant."""
    known = list(known)
    for name in names:
        if name not in known:
            close = get_close_matches(name, known, 1) or [k for k in known if k.startswith(name)]
            hint = f"did you mean {close[0]!r}?" if close else "the columns are "
            if close and "," in close[0]:
                hint += " Put a name with a comma in double quotes inside single ones"
            shown = "" if close else ", ".join(map(repr, known[:20]))
            raise ValueError(f"column not found: {name!r}; {hint}{shown}")


def listed(texts: Sequence[str] | None) -> tuple[str, ...]:
    """Take lists with commas apart; an option may be given more than once.

    What has a comma in it goes in double quotes, as in CSV.
    """
    lines = csv.reader(texts or (), skipinitialspace=True)
    return tuple(part.strip() for line in lines for part in line if part.strip())


def _kind(name: str, text: str, cells: Any) -> Any:
    """Read KIND, ordinal:LOW<...<HIGH, set:DELIMITER or datetime:ORDER."""
    from tabweave import Column
    from tabweave.columns.column import KINDS
    from tabweave.columns.datetime import DATE_ORDERS, PERIODS
    from tabweave.columns.frames import infer_kind

    kind, _, detail = text.partition(":")
    if kind not in KINDS:
        raise Misuse(
            f"--kind {name}={text}: expected nominal, numeric, ordinal, datetime or set, "
            f"got {kind!r}"
        )
    if kind == "ordinal" and detail:
        levels: list[Any] = [level.strip() for level in detail.split("<")]
        if infer_kind(cells) == "numeric":
            if odd := [level for level in levels if not _is_number(level)]:
                raise Misuse(
                    f"--kind {name}={text}: expected numbers as levels of a numeric column, "
                    f"got {odd[0]!r}"
                )
            levels = [float(level) for level in levels]
        return Column(name, "ordinal", levels=tuple(levels))
    if kind == "set" and detail:
        return Column(name, "set", delimiter=detail)
    if kind == "datetime" and detail:
        if detail not in (*DATE_ORDERS, PERIODS):
            raise Misuse(
                f"--kind {name}={text}: expected datetime:dmy (day first) or datetime:mdy (month "
                f"first), got {text!r}"
            )
        return Column(name, "datetime", format=detail)
    return Column(name, kind)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _counted(embedder: Any) -> bool:
    """Say whether counts of the values are all that an embedder needs."""
    from tabweave.base import ValueEmbedder
    from tabweave.embed.row_embedder import learns_from_rows

    return isinstance(embedder, ValueEmbedder) and not learns_from_rows(embedder)


def _warn(table: Any, *, spells: bool) -> None:
    """Say which columns are set aside, or tell rows apart without telling what they are.

    Strings that an embedder compares by how they are spelled tell more than that.
    """
    from tabweave.apps.report.reading import read

    tell_kinds(table)
    told = {c.column for c in table.kinds() if c.asks or (spells and "spelling" in c.why)}
    for name, why in read(table, None).left_out.items():
        if name not in told:
            _warn_of(name, why)


def tell_kinds(table: Any) -> None:
    """Say what was guessed when rows were read, and what to do if it was not meant."""
    found, here = table.kinds(), table.schema.names
    kinds = {f.kind for f in found if not f.kept and f.column not in here}
    aside = {name: why for name, why in found.aside.items() if name not in here}
    tell_aside(aside, kind="numeric" if kinds == {"numeric"} else "nominal")
    tell_doubts(found)
    tell_words(labels_of(table))


def labels_of(table: Any) -> dict[str, Any]:
    """Return the values of the columns that have some."""
    return {column.name: data.labels for column, data in table if hasattr(data, "labels")}


def tell_aside(aside: dict[str, str], *more: str, kind: str = "nominal") -> None:
    """Say which columns take no part, and how to have them."""
    from tabweave.columns.kinds import aside_line

    if aside:
        note("; ".join([aside_line(aside), *more, f"to keep one, add --kind COLUMN={kind}"]))


def tell_doubts(found: Iterable[Finding]) -> None:
    """Say which columns may be meant as something else, and how to have them so."""
    for name, kind, why, kept, asks, delimiter, _ in found:
        if not kept or not asks or asks == "exceptions":  # of which reading warns
            continue
        said = f"column {name!r} holds {why}"
        if asks == "order":
            said += f", as in --kind {shlex.quote(f'{name}=datetime:dmy')}"
        elif asks == "lists":
            parted = f"set:{delimiter}" if delimiter else "set"
            said += f", as in --kind {shlex.quote(f'{name}={parted}')}"
        elif kind == "nominal":
            said += "; it is read as categories"
        note(said)


def tell_words(labels: Mapping[str, Sequence[Any]]) -> None:
    """Say which categories look like words for missing, and how to have them missing."""
    from tabweave.columns.texts import looks_missing

    for name, own in labels.items():
        for word in filter(str.strip, filter(looks_missing, own)):
            note(
                f"column {name!r} holds {word!r}, which is read as a category; if it means "
                f"missing, add --missing {shlex.quote(word.strip())}"
            )


def _warn_of(name: str, why: str) -> None:
    note(f"warning: column {name!r} {why}, so it only adds noise; consider --drop {name}")


def load_model(path: Path) -> Any:
    """Return the embedder that a file holds."""
    from tabweave import load

    if not path.is_file():
        raise ValueError(f"file not found: {str(path)!r}; 'tabweave embed --save' writes one")
    embedder: Any = load(path)
    if not hasattr(embedder, "transform") or not hasattr(embedder, "schema_"):
        raise ValueError(f"{str(path)!r}: expected an embedder, got {type(embedder).__name__}")
    return embedder


# -- What follows an embedder on the way to a file


class Then:
    """An embedder, then a step: what the engines need of an embedder, and no more."""

    def __init__(self, embedder: Any, step: Callable[[Any], Any], names: Sequence[str]) -> None:
        self.embedder = embedder
        self.step = step
        self.names = names
        if "counts_" in vars(embedder):  # by which the engines read text as it was in fit
            self.counts_, self.schema_ = embedder.counts_, embedder.schema_

    def transform(self, X: Any) -> Any:
        """Return the step's result for each row."""
        return self.step(self.embedder.transform(X))

    def get_feature_names_out(self, _: Any = None) -> list[str]:
        """Return the names of the step's dimensions."""
        return list(self.names)

    @property
    def feature_names_in_(self) -> Any:
        """The columns that the embedder wants."""
        return self.embedder.feature_names_in_


class FittedRows:
    """An embedder whose rows of fit keep the vectors that they got there.

    They come all at once, or in parts from the first on.
    """

    def __init__(self, embedder: Any, vectors: Any) -> None:
        self.embedder = embedder
        self.vectors = vectors
        self.done = 0

    def transform(self, X: Any) -> Any:
        """Return the vectors of the next rows."""
        n_rows = X.n_rows if hasattr(X, "n_rows") else len(next(iter(X.values())))
        if n_rows == len(self.vectors):
            return self.vectors
        self.done += n_rows
        return self.vectors[self.done - n_rows : self.done]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.embedder, name)


def projected(embedder: Any, table: Any, dims: int, name: str) -> Then:
    """Return the embedder, then the first principal axes of the rows; fewer if fewer vary."""
    import numpy as np

    from tabweave.apps.report.rows import Axes

    vectors = embedder.transform(table)
    axes = Axes.of(vectors, np.ones(len(vectors)), dims)
    return Then(embedder, axes.project, [f"{name}{i}" for i in range(axes.axes.shape[1])])
