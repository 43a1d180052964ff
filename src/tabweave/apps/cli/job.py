"""An open job: a source with what is asked of it; reads its rows and learns from them."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import Any

import tabweave
from tabweave.apps.cli.files import STDIN, located
from tabweave.apps.cli.models import load_model
from tabweave.apps.cli.options import Job, Misuse, listed
from tabweave.apps.cli.show import note, plural, working
from tabweave.apps.methods import (
    FIRST,
    build,
    embedder_title,
    find,
    learns_from_counts,
    naming_target,
)
from tabweave.columns.cells import kind_of
from tabweave.columns.column import Column
from tabweave.columns.decision import Finding
from tabweave.columns.frames import categories, infer_kind, named_columns, object_array
from tabweave.columns.identifiers import warn_of_predictive
from tabweave.columns.kinds import dropped_line
from tabweave.columns.numeric import number_of, numbers_written
from tabweave.columns.texts import PANDAS_MISSING_WORDS, looks_missing
from tabweave.counts.unknown import spelled_columns
from tabweave.engines import estimate
from tabweave.engines.opening import fitted_columns, open_source, read
from tabweave.engines.source import as_list
from tabweave.io.register import KINDS

# -- Rows in memory: a table by its columns, what people call these, and what is told of them -----


@dataclass(frozen=True)
class Rows:
    """A table in memory: its columns by name, whatever library holds them."""

    columns: dict[str, Any]
    n_rows: int

    @classmethod
    def read(cls, source: Any, counts: Any = None) -> Rows:
        """The rows of an opened source.

        Parameters
        ----------
        source : Source
            Where the rows are.
        counts : Counts, optional
            What a model has seen, so that its columns are read as they were then.
        """
        if counts is not None:
            source = open_source(source, fitted_columns(source, counts))
        columns, n_rows = named_columns(read(source))
        if not n_rows:
            raise ValueError(f"{source.name!r} has columns but no rows")
        return cls(columns, n_rows)

    def row(self, number: int) -> dict[str, Any]:
        """One row, its cells as Python has them."""
        if number >= self.n_rows:
            raise ValueError(f"expected a row number from 0 to {self.n_rows - 1}, got {number}")
        return {name: cell_of(cells, number) for name, cells in self.columns.items()}

    def column(self, name: str) -> list[Any]:
        """The cells of a column as a list."""
        check_columns([name], self.columns)
        return as_list(self.columns[name])

    def targets(self, name: str) -> Any:
        """The cells of the target: text that is numbers, such as money, as these."""
        check_columns([name], self.columns)
        cells = self.columns[name]
        if infer_kind(cells) == "nominal":
            ((_, data),) = tabweave.Table.of({name: cells}, rules="all")
            if data.is_continuous:
                return data.values
        return self.column(name)

    def without(
        self, words: Sequence[str], as_text: Container[str], delimiters: Mapping[str, str]
    ) -> tuple[Rows, list[str]]:
        """The rows with nothing in cells that are one of some words, and the words that none is.

        What is left of a column may be numbers, as it would be had these cells been empty, unless
        it is to stay text. Sets whose elements a delimiter parts lose such elements. Each distinct
        value is looked at once.
        """
        columns, unseen = dict(self.columns), set(words) - {"pandas"}
        gap_words = {*unseen, *(PANDAS_MISSING_WORDS if "pandas" in words else ())}
        for name, cells in self.columns.items():
            codes, labels = categories(cells) if infer_kind(cells) == "nominal" else ([], [])
            gaps = {v for v in labels if isinstance(v, str) and v.strip() in gap_words}
            if gaps:
                values = [None if label in gaps else label for label in labels]
                values = values if name in as_text else _as_numbers(values)
                columns[name] = object_array(values)[codes]
            unseen -= {text.strip() for text in gaps}
            if mark := delimiters.get(name):
                codes, labels = categories(columns[name])
                sets = [_elements_left(label, mark, gap_words) for label in labels]
                columns[name] = object_array([left for left, _ in sets])[codes]
                unseen -= {element for _, gone in sets for element in gone}
        return Rows(columns, self.n_rows), sorted(unseen)

    def frame(self) -> Any:
        """The columns as what the engines take: an Arrow table, or a mapping without it."""
        if not tabweave.engines.has_arrow():
            return self.columns
        import pyarrow as pa

        typed = (pa.Array, pa.ChunkedArray)
        try:
            return pa.table(
                {n: c if isinstance(c, typed) else pa.array(c) for n, c in self.columns.items()}
            )
        except (TypeError, ValueError):  # cells of several types
            return self.columns


def _as_numbers(labels: list[Any]) -> list[Any]:
    """Texts that are all plain numbers as these; others as they are."""
    texts = [label for label in labels if label is not None]
    if not texts or numbers_written(texts) != ("numbers", ".") or any("," in t for t in texts):
        return labels
    integers = all(text.strip().lstrip("+-").isdecimal() for text in texts)
    return [None if v is None else int(v) if integers else number_of(v) for v in labels]


@dataclass(frozen=True)
class Ids:
    """What rows are called: by the cells of a column, or by their numbers."""

    cells: list[str] | None

    @classmethod
    def of(cls, rows: Rows, name: str | None) -> Ids:
        """The ids of rows, in a column if one is named."""
        if name is None:
            return cls(None)
        return cls(list(map(str, rows.column(full_name(name, rows.columns)))))

    def name(self, number: int) -> str:
        """What a row is called."""
        return str(number) if self.cells is None else self.cells[number]

    def number(self, text: str, option: str) -> int:
        """The number of the row that is called so."""
        if self.cells is None:
            return row_number(text, option)
        numbers = [i for i, cell in enumerate(self.cells) if cell == text]
        if len(numbers) != 1:
            close = get_close_matches(text, self.cells, 1)
            hint = f"; did you mean {close[0]!r}?" if close and not numbers else ""
            raise ValueError(
                f"{option}: expected the id of one row, got {text!r}, which "
                f"{plural(len(numbers), 'row')} has{hint}"
            )
        return numbers[0]


def row_number(text: str, option: str) -> int:
    """The number of a row, of text."""
    if not text.strip().isdecimal():
        raise Misuse(
            f"{option}: expected a row number, counting from 0, got {text!r}; name the column of "
            "ids with --id"
        )
    return int(text)


def cell_of(cells: Any, number: int) -> Any:
    """One cell of a column as Python has it."""
    value = cells.iloc[number] if hasattr(cells, "iloc") else cells[number]
    value = value.as_py() if hasattr(value, "as_py") else value
    return value.item() if hasattr(value, "item") and getattr(value, "ndim", 0) == 0 else value


def full_name(name: str, columns: Iterable[str]) -> str:
    """A column's name with the blanks around it, if only they were left out."""
    matches = [column for column in columns if column.strip() == name.strip()]
    return matches[0] if len(matches) == 1 else name


def check_columns(names: Iterable[str], columns: Iterable[str]) -> None:
    """Refuse a name that is not one of the columns, and say which may be meant."""
    columns = list(columns)
    for name in names:
        if name not in columns:
            close = get_close_matches(name, columns, 1)
            close = close or [column for column in columns if column.startswith(name)]
            hint = f"did you mean {close[0]!r}?" if close else "the columns are "
            if close and "," in close[0]:
                hint += " Put a name with a comma in double quotes inside single ones"
            columns_shown = "" if close else ", ".join(map(repr, columns[:20]))
            raise ValueError(f"column not found: {name!r}; {hint}{columns_shown}")


# -- What is told of rows


def tell_noisy_columns(table: Any, spelled: Collection[str]) -> None:
    """Tell which columns tell rows apart without telling what they are.

    Strings that an embedder compares by how they are ``spelled`` tell more than that.
    """
    explained = {*spelled, *(c.column for c in table.kinds() if c.question)}
    for name, why in tabweave.report.read(table, None).left_out.items():
        if name not in explained:
            tell_noise(name, why)


def tell_kinds(table: Any) -> None:
    """Tell what was guessed when rows were read, and what to do if it was not meant."""
    findings, names = table.kinds(), table.schema.names
    dropped = [f for f in findings if not f.kept and f.column not in names]
    tell_dropped({f.column: f.why for f in dropped}, kind=dropped[0].kind if dropped else "")
    tell_doubts(findings)
    tell_words(labels_of(table))


def labels_of(table: Any) -> dict[str, Any]:
    """The values of the columns that have some."""
    return {column.name: data.labels for column, data in table if column.has_values}


def tell_dropped(dropped: dict[str, str], *details: str, kind: str = "nominal") -> None:
    """Tell which columns take no part, and how to have them."""
    if dropped:
        option = f"--kind {shlex.quote(f'{next(iter(dropped))}={kind}')}"
        it = "it" if len(dropped) == 1 else "the first"
        note("; ".join([dropped_line(dropped), *details, f"to keep {it}, add {option}"]))


def tell_doubts(findings: Iterable[Finding]) -> None:
    """Tell which columns may be meant as something else, and how to have them so."""
    for name, kind, why, is_used, asks, delimiter, _ in findings:
        if not is_used or not asks or asks == "exceptions":  # of which reading warns
            continue
        text = f"column {name!r} holds {why}"
        if asks == "order":
            text += f", as in --kind {shlex.quote(f'{name}=datetime:dmy')}"
        elif asks == "lists":
            other = (
                "nominal" if kind_of(kind).is_set else f"set:{delimiter}" if delimiter else "set"
            )
            text += f", as in --kind {shlex.quote(f'{name}={other}')}"
        elif not kind_of(kind).is_continuous:
            text += "; it is read as categories"
        note(text)


def tell_words(labels: Mapping[str, Sequence[Any]]) -> None:
    """Tell which categories look like words for missing, and how to have them missing."""
    for name, values in labels.items():
        for word in filter(str.strip, filter(looks_missing, values)):
            note(
                f"column {name!r} holds {word!r}, which is read as a category; if it means "
                f"missing, add --missing {shlex.quote(word.strip())}"
            )


def tell_noise(name: str, why: str) -> None:
    """Warn of a column that tells rows apart without telling what they are."""
    note(f"warning: column {name!r} {why}, so it only adds noise; consider --drop {name}")


# -- the work of a command ------------------------------------------------------------------------

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
    """Yield names and kinds of COLUMN=KIND; first those of a kind alone, which is for "*"."""
    pairs = [f"*={text}" if text in KINDS else text for text in texts]
    for text in sorted(pairs, key=lambda text: not text.startswith("*=")):
        name, equals, kind = text.rpartition("=")
        if not equals:
            raise Misuse(
                "--kind: expected COLUMN=KIND, such as size=nominal, or a kind for all other "
                f"columns, such as nominal, got {text!r}"
            )
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
        declared = {name: kind.partition(":") for name, kind in self.kinds.items()}
        delimiters = {name: mark for name, (kind, _, mark) in declared.items() if kind == "set"}
        rows, unseen = rows.without(listed(self.options.missing), as_text, delimiters)
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
        kinds = {name: kind_of(parsed_kind(name, text)[0]) for name, text in self.kinds.items()}
        valued = {n for n, kind in kinds.items() if kind.is_dated or not kind.is_continuous}
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
        tell_kinds(table)
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
        tell_noisy_columns(table, spelled_columns(embedder))
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
        if large is None:
            return None
        embedder = self._built()
        is_counted = learns_from_counts(embedder)
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


def _elements_left(cell: Any, delimiter: str, words: Container[str]) -> tuple[Any, list[str]]:
    """A set as text without some elements, None if it had no others, and which these are."""
    parts = [part.strip() for part in cell.split(delimiter)] if isinstance(cell, str) else []
    gone = [part for part in parts if part and part in words]
    if not gone:
        return cell, gone
    return delimiter.join(part for part in parts if part not in gone) or None, gone


def declared_column(name: str, text: str, cells: Any) -> Any:
    """The column of KIND, ordinal:LOW<...<HIGH, set:DELIMITER or datetime:ORDER."""
    kind, detail = parsed_kind(name, text)
    column = Column(name, kind)
    try:
        return column.cells_type.detailed(column, detail, cells) if detail else column
    except ValueError as error:
        raise Misuse(f"--kind {name}={text}: {error}") from None


def parsed_kind(name: str, text: str) -> tuple[str, str]:
    """The kind of a column, and what is said of it behind a colon."""
    kind, _, detail = text.partition(":")
    if kind not in KINDS:
        raise Misuse(f"--kind {name}={text}: expected one of {', '.join(KINDS)}, got {kind!r}")
    return kind, detail


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
