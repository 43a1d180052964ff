"""An open job: a source with what is asked of it; reads its rows and learns from them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import tabweave
from tabweave.apps.cli.files import STDIN, located
from tabweave.apps.cli.models import load_model
from tabweave.apps.cli.options import Job, Misuse, listed
from tabweave.apps.cli.rows import Rows, check_columns, full_name, tell_columns, tell_noise
from tabweave.apps.cli.show import note, plural, progress, working
from tabweave.apps.methods import (
    FIRST,
    build,
    embedder_title,
    find,
    learns_from_counts,
    naming_target,
)
from tabweave.columns.cells import KINDS
from tabweave.columns.column import Column
from tabweave.columns.datetime import DATE_ORDERS, PERIODS
from tabweave.columns.frames import infer_kind
from tabweave.columns.identifiers import warn_of_predictive
from tabweave.engines import estimate, family, open_source

LARGE_BYTES = 1 << 28  # Size of files from which on an estimate is made and told.


@dataclass(frozen=True)
class Learned:
    """A fitted embedder, the rows as they were read, and those columns that it embeds."""

    embedder: Any
    rows: Rows
    table: Any
    fitted_vectors: Any = None  # which the rows of fit got there, if they are others than later

    @cached_property
    def vectors(self) -> Any:
        """The vectors of the rows."""
        if self.fitted_vectors is not None:
            return self.fitted_vectors
        return self.embedder.transform(self.table)

    def column(self, name: str) -> Any:
        """A table of one column, as the embedder reads it or as its values look."""
        schema = self.embedder.schema_
        kinds = {name: schema[name]} if name in schema.names else None
        return tabweave.Table.of({name: self.rows.columns[name]}, kinds, rules="all")


@contextmanager
def open_job(
    options: Job,
    *outputs: Path | None,
    keep: Sequence[str] = (),
    n_components: int | None = None,
    text_columns: Iterable[str] = (),
) -> Iterator[OpenJob]:
    """Open the source, once: all that follows is asked of it.

    Parameters
    ----------
    options : Job
        What the command was asked for.
    *outputs : path or None
        Files that are to be written: the source must not hold them.
    keep : sequence of str
        Columns that are not embedded.
    n_components : int, optional
        Number of principal components.
    text_columns : iterable of str
        Columns that are read as text, as in another table.
    """
    if options.model is not None and n_components is not None:
        raise Misuse("a saved model already has its dimensions; use --components when you fit it")
    with located(options.source, options.from_) as path:
        source = open_source(path, encoding=options.encoding)
        for output in filter(None, outputs):
            if output.resolve() in [path.resolve() for path in source.paths]:
                raise Misuse(f"{str(output)!r} is one of the input files; write to another one")
        if options.source == "-":
            source.name = STDIN
        types = source.types
        ids = [options.id] if options.id else []

        def full_names(names: Sequence[str]) -> tuple[str, ...]:
            return tuple(full_name(name, types) for name in names)

        job = OpenJob(
            options,
            source,
            target=options.target and full_name(options.target, types),
            columns=full_names(listed(options.columns)),
            drop=full_names(listed(options.drop)),
            keep=full_names([*keep, *ids]),
            kinds={full_name(name, types): kind for name, kind in _kinds(options.kind or ())},
            n_components=n_components,
            text_columns=set(text_columns),
        )
        yield job.without_words() if options.missing else job


def _kinds(texts: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield names and kinds of COLUMN=KIND."""
    for text in texts:
        name, equals, kind = text.rpartition("=")
        if not equals:
            raise Misuse(f"--kind: expected COLUMN=KIND, such as size=nominal, got {text!r}")
        yield name, kind


@dataclass(frozen=True)
class OpenJob:
    """A source with what is asked of it; columns have the names that they have there."""

    options: Job
    source: Any
    target: str | None
    columns: tuple[str, ...]
    drop: tuple[str, ...]
    keep: tuple[str, ...]
    kinds: Mapping[str, str]
    n_components: int | None
    text_columns: set[str]

    def without_words(self) -> OpenJob:
        """The job on rows in memory, nothing in the cells that mean missing."""
        if large := self._too_large(list(self.source.types)):
            raise MemoryError(
                f"{self.source.name}: --missing reads all rows into memory, about "
                f"{_gigabytes(large.rows_bytes)}; replace the words in a query instead, "
                "as in \"SELECT NULLIF(a, 'NA') AS a, ... FROM 'x.parquet'\""
            )
        rows = Rows.read(self.as_written(self.source.types))
        as_text = {*self.kinds, *self.text_columns}
        if not self.source.guessed or "*" in self.kinds:
            as_text |= set(rows.columns)
        rows, unseen = rows.without(listed(self.options.missing), as_text)
        for word in unseen:
            name = self.source.name
            note(f"warning: {name}: no cell of a categorical column holds {word!r} (--missing)")
        return replace(self, source=open_source(rows.frame()))

    @property
    def title(self) -> str:
        """What pages and pictures call the table."""
        name = self.options.source
        path = Path(name)
        return STDIN if name == "-" else path.name if path.exists() else name

    def title_of(self, embedder: Any) -> str:
        """What rows were compared by: the method that auto stands for, or the model."""
        if self.options.model is not None:
            return str(self.options.model)
        method = self.options.method
        return str(embedder_title(embedder)) if method == FIRST else method

    @property
    def names(self) -> list[str]:
        """The columns to embed."""
        types = self.source.types
        targets = [self.target] if self.target else []
        check_columns([*self.columns, *self.drop, *self.keep, *targets], types)
        left_out = {*self.drop, *targets}
        if not self.columns:
            left_out |= set(self.keep)
        names = [n for n in (self.columns or types) if n not in left_out]
        if not names:
            raise ValueError(
                "expected at least one column to embed, got none after --columns, --drop, --keep "
                "and --target"
            )
        return names

    def as_written(self, names: Iterable[str]) -> Any:
        """The source, columns declared to hold values as they are written: 007 is not 7.

        Only a file of text, whose types are guessed, has such columns.
        """
        if not self.source.guessed:
            return self.source
        valued = {n for n, kind in self.kinds.items() if not kind.startswith("numeric")}
        valued |= self.text_columns
        types = {n: "VARCHAR" for n in names if n in valued or "*" in valued}
        return self.source.retyped(types) if types else self.source

    def to_write(self) -> Any:
        """The source as the embedder has read it; columns beside it keep their types."""
        return self.source if self.options.model is not None else self.as_written(self.names)

    # -- learning --------------------------------------------------------------------------

    def learned(self, *, cross_fit: bool = False, n_clusters: int | None = None) -> Learned:
        """Read the rows and learn from them, or take a saved model.

        Rows that were laid out on a map stay where they are. With ``cross_fit``, a method that can
        gives the rows of fit vectors that have not seen their classes.
        """
        if self.options.model is not None:
            return self._loaded(self.options.model)
        rows = self.rows()
        if n_clusters is not None and n_clusters > rows.n_rows:
            n_rows = plural(rows.n_rows, "row")
            raise ValueError(
                f"--clusters: expected at most one cluster per row, got {n_clusters} clusters "
                f"for {n_rows}"
            )
        table = self.table(rows, rules="whole")
        embedder = self._built(
            kinds=self.declared(rows) or None,
            n_clusters=n_clusters,
        )
        tell_columns(table, spells=getattr(embedder, "_undeclared", "") == "rules")
        with working("learning"), naming_target(self.target):
            y = None if self.target is None else rows.targets(self.target)
            if y is not None:
                warn_of_predictive({n: rows.columns[n] for n in self.names}, table.schema, y)
            if cross_fit and find(self.options.method).flags.get("cross_fits", False):
                vectors = embedder.fit_transform(table, y)
                note("vectors are cross-fitted: none has seen its own row's target")
            else:
                embedder.fit(table, y)
                vectors = getattr(embedder, "map_", None)
        if line := getattr(embedder, "_coupling_line", str)():
            note(line)
        return Learned(embedder, rows, table, vectors)

    def _built(self, *, kinds: Any = None, n_clusters: int | None = None) -> Any:
        """The embedder that is asked for, not fitted."""
        return build(
            self.options.method,
            kinds=kinds,
            n_clusters=n_clusters,
            n_components=self.n_components,
            seed=self.options.seed,
        )

    def _loaded(self, model: Path) -> Learned:
        embedder = self._load(model)
        rows = Rows.read(self.source, getattr(embedder, "counts_", None))
        cells = {name: rows.columns[name] for name in embedder.schema_.names}
        return Learned(embedder, rows, tabweave.Table.of(cells, embedder.schema_))

    def _load(self, model: Path) -> Any:
        """A saved embedder; refuses rows without the columns that it has learned from."""
        embedder = load_model(model)
        types = self.source.types
        if lacking := [name for name in embedder.schema_.names if name not in types]:
            needed, columns = (", ".join(map(repr, names[:20])) for names in (lacking, list(types)))
            raise ValueError(
                f"{self.source.name}: expected the columns that {str(model)!r} was fitted "
                f"on, got none named {needed}; the columns are {columns}"
            )
        check_columns([*self.keep, *filter(None, [self.target])], types)
        return embedder

    def learned_from_counts(self) -> Any:
        """A fitted embedder without reading all rows at a time; None if rows are needed."""
        if self.options.model is not None:
            return self._load(self.options.model)
        names = self.names
        large = self._too_large(names)
        by_value = all(family(self.source.types[n]) in ("text", "bool") for n in names)
        if large is None and (self.kinds or not by_value):
            return None
        embedder = self._built()
        by_rules = getattr(embedder, "_undeclared", "") == "rules"
        is_counted = learns_from_counts(embedder)
        if large is None:  # text may hold dates: rows will show
            return self._counted(embedder, names) if is_counted and not by_rules else None
        is_counted = is_counted and (by_value or by_rules)
        if not is_counted or self.kinds or names != list(self.source.types):
            raise MemoryError(
                f"{self.source.name}: all rows take about {_gigabytes(large.rows_bytes)}, "
                f"but only {_gigabytes(large.available)} are free; fit on a sample with "
                "--save (IN may be a query: SELECT ... USING SAMPLE 1000000 ROWS), then embed "
                "all rows with --model, which reads them in batches"
            )
        return embedder.fit(self.source)

    def _too_large(self, names: list[str]) -> Any:
        """What rows take that cannot be held at a time; None if they can.

        What a large source takes is told before work starts.
        """
        if sum(path.stat().st_size for path in self.source.paths) < LARGE_BYTES:
            return None
        bound = estimate(self.source, columns=names)
        note(f"{self.source.name}: {bound}")
        fits = bound.available is None or 2 * (bound.rows_bytes or 0) <= bound.available
        return None if fits else bound

    def _counted(self, embedder: Any, names: list[str]) -> Any:
        """The embedder, fitted to counts of the values."""
        classes = self.target if embedder.__sklearn_tags__().target_tags.required else None
        with progress() as show, naming_target(self.target):
            counts = tabweave.count(self.source, columns=names, y=classes, progress=show)
        if not counts.n:
            raise ValueError(f"{self.source.name!r} has columns but no rows")
        for name, size in zip(counts.names, counts.sizes, strict=True):
            if size > 20 and size >= 0.9 * counts.n:
                tell_noise(name, "has a different value in almost every row")
        return embedder.fit_counts(counts)

    # -- reading ---------------------------------------------------------------------------

    def rows(self) -> Rows:
        """The rows, read into memory."""
        with working("reading"):
            return Rows.read(self.as_written(self.source.types))

    def table(self, rows: Rows, *, with_target: bool = False, rules: Any = None) -> Any:
        """The columns to embed as a Table, the target last if it is to be there."""
        names = [*self.names, *([self.target] if with_target and self.target else [])]
        cells = {name: rows.columns[name] for name in names}
        return tabweave.Table.of(cells, self.declared(rows), rules=rules)

    def declared(self, rows: Rows) -> dict[str, Any]:
        """The kinds that were declared, for the columns that are embedded."""
        names, out = self.names, {}
        check_columns([name for name in self.kinds if name != "*"], rows.columns)
        for name, kind in self.kinds.items():
            for each in names if name == "*" else [name]:
                out[each] = declared_column(each, kind, rows.columns[each])
        return {name: kind for name, kind in out.items() if name in names}


def declared_column(name: str, text: str, cells: Any) -> Any:
    """The column of KIND, ordinal:LOW<...<HIGH, set:DELIMITER or datetime:ORDER."""
    kind, _, detail = text.partition(":")
    if kind not in KINDS:
        raise Misuse(
            f"--kind {name}={text}: expected nominal, numeric, ordinal, datetime or set, "
            f"got {kind!r}"
        )
    if kind == "ordinal" and detail:
        levels: list[Any] = [level.strip() for level in detail.split("<")]
        if infer_kind(cells) == "numeric":
            levels = [_level(level, f"--kind {name}={text}") for level in levels]
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


def _level(text: str, option: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise Misuse(
            f"{option}: expected numbers as levels of a numeric column, got {text!r}"
        ) from None


def _gigabytes(n_bytes: int | None) -> str:
    return f"{(n_bytes or 0) / 1e9:,.1f} GB"


class KnownVectors:
    """Vectors of rows in memory, with what the engines need of an embedder to write them.

    The engines read the rows once more, in order and in parts, for the columns that are copied.
    """

    def __init__(self, vectors: Any, names: Sequence[str], column: str) -> None:
        self.vectors = vectors
        self.names = names
        self.feature_names_in_ = [column]  # any one: it says how many rows there are
        self.n_read = 0

    def transform(self, X: Mapping[str, Any]) -> Any:
        """The vectors of the next rows."""
        start, self.n_read = self.n_read, self.n_read + len(X[self.feature_names_in_[0]])
        return self.vectors[start : self.n_read]

    def get_feature_names_out(self) -> list[str]:
        """The names of the dimensions."""
        return list(self.names)
