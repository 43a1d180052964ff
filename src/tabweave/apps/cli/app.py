"""The group of all commands: how functions become commands, and how they end.

The module that does the work of a command is imported when the command runs, so that help and tab
completion are immediate.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import sys
import traceback
import warnings
from ast import literal_eval
from collections.abc import Callable, Sequence
from copy import copy
from enum import StrEnum
from functools import wraps
from importlib import import_module
from inspect import Parameter, Signature, getdoc, signature
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import typer
from rich.markup import escape
from typer.core import TyperCommand, TyperGroup

import tabweave
from tabweave.apps.cli.files import Output
from tabweave.apps.cli.options import (
    ColumnName,
    Columns,
    Conditions,
    ExitCode,
    Force,
    Job,
    Limit,
    Misuse,
    OutputPath,
)
from tabweave.apps.cli.show import note

INPUT = ("source", "columns", "drop", "kind", "missing", "from_", "encoding")


class FlagsWithoutValue:
    """What options that take no value share: their help shows none."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The options and arguments, also those that Typer and Click add."""
        params: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for param in params:
            if getattr(param, "is_flag", False):
                param.metavar = ""
        return params


class Command(FlagsWithoutValue, TyperCommand):
    """A command of the group."""


class Group(FlagsWithoutValue, TyperGroup):
    """The group of all commands: turns whatever happens into one line and an exit code."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        """Run a command and leave with its exit code."""
        words = list(sys.argv[1:] if args is None else args)
        debug = "--debug" in words
        words = [word for word in words if word != "--debug"]
        try:
            with warnings.catch_warnings():
                warnings.showwarning = _show_warning
                code = super().main(
                    words, "tabweave", complete_var, False, windows_expand_args, **extra
                )
            sys.stdout.flush()
            if code == ExitCode.STOPPED:
                code = _exit_code(KeyboardInterrupt(), False)
        except BaseException as error:
            code = _exit_code(error, debug)
        if not standalone_mode:
            return code
        sys.exit(code if isinstance(code, int) else 0)


def _exit_code(error: BaseException, debug: bool) -> int:
    """The exit code of an error; says what went wrong, if anything did."""
    if isinstance(error, SystemExit):
        if isinstance(error.code, str):
            note(error.code)
            return ExitCode.FAILED
        return int(error.code or 0)
    if debug:
        traceback.print_exception(error)
    interrupted = str(error) == "Query interrupted"  # what DuckDB calls Ctrl-C
    if interrupted or isinstance(error, KeyboardInterrupt | typer.Abort):
        note("stopped; nothing was written")
        return ExitCode.STOPPED
    if isinstance(error, BrokenPipeError):  # `tabweave ... | head`: the reader has had enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.FAILED
    if hasattr(error, "format_message"):  # Click's own: a wrong option, a missing argument
        context = getattr(error, "ctx", None)
        command = context.command_path if context is not None else "tabweave"
        text = error.format_message()
        takes_two = command in ("tabweave drift", "tabweave predict")
        if text.startswith("Got unexpected extra argument") and not takes_two:
            text += "; to read several files, quote a glob pattern such as '2026-*.csv'"
        text = text[:1].lower() + text[1:] if text[1:2].islower() else text
        note(f"{text.rstrip('.')} (see {command} --help)")
        return int(getattr(error, "exit_code", ExitCode.MISUSED))
    note(in_shell(_message(error)))
    return ExitCode.MISUSED if isinstance(error, Misuse) else ExitCode.FAILED


def _message(error: BaseException) -> str:
    """One line about an error, with its type where the text alone says little."""
    text = str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)
    if isinstance(error, FileNotFoundError) and error.filename is not None:
        text = f"file not found: {error.filename!r}"
    if isinstance(error, MemoryError):
        text = f"not enough memory {text}".rstrip()
    expected = ValueError | TypeError | KeyError | OSError | ImportError | MemoryError
    engine = type(error).__module__.partition(".")[0] in ("duckdb", "_duckdb", "pyarrow", "polars")
    if not text or not (isinstance(error, expected) or engine):
        text = f"{type(error).__name__}: {text} (--debug shows the traceback)"
    return text


def _show_warning(message: Any, *_: Any, **__: Any) -> None:
    note(f"warning: {in_shell(str(message))}")


def in_shell(text: str) -> str:
    """A message with what can be declared in Python as it is declared in a shell.

    >>> in_shell("keep it by schema={'no': 'numeric'}, or drop it")
    'keep it by --kind no=numeric, or drop it'
    """

    def option(declared: re.Match[str]) -> str:
        return shlex.join(["--kind", f"{literal_eval(declared[1])}={declared[2]}"])

    return _DECLARED.sub(option, text)


_DECLARED = re.compile(r"""schema=\{('[^']*'|"[^"]*"): '(\w+)'\}""")


def stop_on_terminate() -> None:
    """Let SIGTERM unwind the stack as Ctrl-C does, so that temporary files go away."""

    def unwind(number: int, _: Any) -> None:
        raise SystemExit(128 + number)

    signal.signal(signal.SIGTERM, unwind)


# -- How functions become commands


def command(
    panel: str, module: str, *, takes: str = "target method model seed", source: str = "IN"
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a command of a function that declares its options; its docstring is the help.

    A parameter of type Job or Output stands for all options of that class.

    Parameters
    ----------
    panel : str
        Under which heading the command is listed.
    module : str
        Where the function of the same name is that does the work.
    takes : str
        Which options of a Job the command takes, beside those that say what is read.
    source : str
        What the help calls the source.
    """

    def register(declared: Callable[..., None]) -> Callable[..., None]:
        text, texts, lines = _help_of(declared)
        texts = _help_of(Output)[1] | texts
        options = _options_of(declared, texts)
        groups = {o.name: o.annotation for o in options if o.annotation in (Job, Output)}
        job = [o for o in _job_options(source, texts) if o.name in (*INPUT, *takes.split())]
        expanded = {Job: job[:1], Output: _options_of(Output, texts)}
        parameters = [o for each in options for o in expanded.get(each.annotation, [each])]
        parameters += job[1:] if "job" in groups else []

        @wraps(declared)
        def run(**values: Any) -> None:
            for name, group in groups.items():
                fields = [field for field in signature(group).parameters if field in values]
                values[name] = group(**{field: values.pop(field) for field in fields})
            work = import_module(f"tabweave.apps.cli.{module}")
            getattr(work, declared.__name__)(**values)

        run.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {option.name: option.annotation for option in parameters}
        name = declared.__name__.rstrip("_")
        epilog = _examples(*lines)
        app.command(name, cls=Command, help=text, epilog=epilog, rich_help_panel=panel)(run)
        return declared

    return register


def _help_of(declared: Any) -> tuple[str, dict[str, str], list[str]]:
    """The text of a docstring, that of each parameter, and the examples."""
    text, *parts = re.split(r"\n\n(\w+)\n-+\n", str(getdoc(declared)))
    sections = dict(zip(parts[::2], parts[1::2], strict=True))
    entries = re.findall(r"(?m)^(\w+)\n((?:    .*\n?)+)", sections.get("Parameters", ""))
    texts = {name: " ".join(words.split()) for name, words in entries}
    return text, texts, sections.get("Examples", "").splitlines()


def _options_of(declared: Any, texts: dict[str, str]) -> list[Parameter]:
    """The parameters of a function or a class, with their help, as Typer takes them."""
    types = get_type_hints(declared, include_extras=True)
    options = []
    for parameter in signature(declared).parameters.values():
        kind = types[parameter.name]
        base, *infos = get_args(kind) if get_origin(kind) is Annotated else (kind,)
        if base not in (Job, Output):
            is_flag = parameter.default is False
            info = copy(infos[0]) if infos else typer.Option(*[f"--{parameter.name}"] * is_flag)
            info.help = texts.get(parameter.name)
            base = Annotated[base, info]
        options.append(parameter.replace(annotation=base, kind=Parameter.KEYWORD_ONLY))
    return options


def _job_options(metavar: str, texts: dict[str, str]) -> list[Parameter]:
    """The options of a Job, under the headings that they have in every help."""
    options = _options_of(Job, _help_of(Job)[1] | texts)
    for option in options:
        info = option.annotation.__metadata__[0]
        if option.name == "source":
            info.metavar = metavar
        elif option.name != "id":
            is_input = option.name in (*INPUT, "target")
            info.rich_help_panel = "Input options" if is_input else "Method options"
    return options


def _examples(*lines: str) -> str:
    """What stands below a help: example lines."""
    return "\n".join(["[bold]Examples[/]", *(f"  {escape(line)}" for line in lines)])


app = typer.Typer(
    cls=Group,
    epilog=_examples(
        "tabweave report people.csv",
        "tabweave neighbors people.csv --row 17",
        "tabweave embed people.csv -o vectors.parquet",
    ),
    invoke_without_command=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(is_asked: bool) -> None:
    if is_asked:
        typer.echo(tabweave.__version__)
        raise typer.Exit


@app.callback(help="Representation and similarity learning on complex tables.")
def _without_command(
    ctx: typer.Context,
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Show the version and exit.", callback=_show_version, is_eager=True
        ),
    ] = False,
    debug: Annotated[
        bool,
        typer.Option("--debug", help="Show the traceback of an error; accepted by every command."),
    ] = False,
) -> None:
    if ctx.invoked_subcommand is None:
        typer.echo(ctx.get_help())
        raise typer.Exit(ExitCode.MISUSED)


# -- Every command and its options, with their help; what it does is in a module beside this ------


class Layout(StrEnum):
    """How vectors are brought down to two dimensions."""

    pca = "pca"
    tsne = "tsne"


# -- Rows


@command("Rows", "vectors")
def embed(
    job: Job,
    out: Output,
    keep: Columns = None,
    save: Path | None = None,
    components: Annotated[int | None, typer.Option(min=1)] = None,
    vector: Annotated[str | None, typer.Option(metavar="NAME")] = None,
) -> None:
    """Embed rows: write one vector per row.

    Parameters
    ----------
    keep
        Copy these columns to the output without embedding them.
    save
        Save the fitted model, for --model and 'tabweave export'.
    components
        Reduce the vectors to this many principal components.
    vector
        Write each vector as a list, in a column of this name.

    Examples
    --------
    tabweave embed people.csv -o vectors.parquet
    tabweave embed people.csv --target job --save people.tabweave -o vectors.csv
    tabweave embed "SELECT * FROM 'people.csv' WHERE age > 30" --components 5 -o -
    """


@command("Rows", "vectors")
def map_(
    job: Job,
    output: OutputPath = Path("map.html"),
    color: ColumnName = None,
    layout: Layout = Layout.pca,
    force: Force = False,
    json: bool = False,
) -> None:
    """Draw a two-dimensional map, in which similar rows lie close together.

    Parameters
    ----------
    output
        File to write: a page (.html), an image (.png, .svg, .pdf), or a table of coordinates
        (.csv, .parquet, ...).
    color
        Colour by this column; by default the target, or the first.
    layout
        Projection: principal components, or t-SNE (needs the extra map).

    Examples
    --------
    tabweave map people.csv
    tabweave map people.csv --color job -o map.png
    """


@command("Rows", "neighbors", takes="target method model seed id")
def neighbors(
    job: Job,
    row: str | None = None,
    like: Conditions = None,
    k: Annotated[int, typer.Option("-k", "--count", min=1)] = 10,
    where: Conditions = None,
    radius: Annotated[float | None, typer.Option(min=0)] = None,
    json: bool = False,
) -> None:
    """Find the rows most similar to a row of the table, or to one that you describe.

    Parameters
    ----------
    row
        Query row: its number, counting from 0, or with --id its id.
    like
        Query described by values; other columns are not compared. Write a set as its elements:
        tags=a|b.
    k
        Number of neighbours.
    where
        Search only rows with these values, or in a range: age=30..40, age=65..
    radius
        Return only rows within this distance.

    Examples
    --------
    tabweave neighbors people.csv --row 17
    tabweave neighbors people.csv --like job=cook,age=30 -k 3
    tabweave neighbors people.csv --row 17 --where age=30..40
    """


@command("Rows", "vectors")
def cluster(
    job: Job,
    out: Output,
    clusters: Annotated[str, typer.Option("--clusters", "-k")] = "auto",
) -> None:
    """Cluster the rows (k-means on their vectors) and describe each cluster.

    The file to write holds every row and its cluster.

    Parameters
    ----------
    clusters
        Number of clusters; auto estimates it, as in reports.

    Examples
    --------
    tabweave cluster people.csv
    tabweave cluster people.csv -k 4 -o clusters.csv
    """


@command("Rows", "neighbors", takes="target method model seed id")
def explain(
    job: Job,
    a: Annotated[str, typer.Option("--a", "-a")],
    b: Annotated[str, typer.Option("--b", "-b")],
    json: bool = False,
) -> None:
    """Explain the distance between two rows: how much each column contributes.

    Parameters
    ----------
    a
        First row: its number, counting from 0, or with --id its id.
    b
        Second row, likewise.

    Examples
    --------
    tabweave explain people.csv --a 3 --b 9
    """


@command("Rows", "neighbors", takes="method model seed id")
def duplicates(
    job: Job,
    out: Output,
    radius: Annotated[float | None, typer.Option(min=0)] = None,
    limit: Limit = 20,
) -> None:
    """Find rows that may be the same twice: near duplicates, nearest first, and how they differ.

    The file to write holds all pairs.

    Parameters
    ----------
    radius
        List all pairs of rows at most this far apart; by default each row with its nearest.
    limit
        Maximum number of pairs to show.

    Examples
    --------
    tabweave duplicates people.csv
    tabweave duplicates people.csv --radius 0.5 -o pairs.csv
    """


# -- Tables


@command("Tables", "tables", takes="target method seed")
def report(
    job: Job,
    output: OutputPath = Path("report.html"),
    force: Force = False,
    json: bool = False,
) -> None:
    """Write a page about a table: columns, dependences, map, clusters, neighbours, warnings.

    Parameters
    ----------
    output
        HTML file to write; - is standard output.
    json
        Print the content of the page as JSON.

    Examples
    --------
    tabweave report people.csv
    tabweave report people.csv --target job -o people.html
    """


@command("Tables", "tables", takes="")
def kinds(job: Job, json: bool = False) -> None:
    """Show how each column is read, and why.

    Examples
    --------
    tabweave kinds people.csv
    tabweave kinds people.csv --kind age=nominal
    """


@command("Tables", "tables", takes="")
def associate(job: Job, level: float = 1.0, limit: Limit = 30, json: bool = False) -> None:
    """Measure how strongly each pair of columns is associated, strongest first.

    Parameters
    ----------
    level
        Show pairs whose adjusted p-value is at most this.
    limit
        Maximum number of pairs to show.

    Examples
    --------
    tabweave associate people.csv --limit 10
    """


@command("Tables", "tables", takes="seed")
def fill(
    job: Job,
    out: Output,
    limit: Annotated[int, typer.Option(min=0)] = 20,
) -> None:
    """Fill in missing cells from the other cells of their rows, and explain each guess.

    The file to write holds the filled table.

    Parameters
    ----------
    limit
        Maximum number of filled cells to explain.

    Examples
    --------
    tabweave fill people.csv
    tabweave fill people.csv -o filled.csv
    """


@command("Tables", "tables", takes="seed id")
def odd(job: Job, level: float = 0.01, limit: Limit = 20, json: bool = False) -> None:
    """Find cells that do not fit the rest of their row, most unusual first.

    Parameters
    ----------
    level
        Significance level: expected share of rows, and of cells in a column, that are flagged by
        chance.
    limit
        Maximum number of cells to show.

    Examples
    --------
    tabweave odd people.csv --limit 5
    """


@command("Tables", "two_tables", takes="target seed", source="TRAIN")
def predict(job: Job, test: Annotated[str, typer.Argument(metavar="TEST")], out: Output) -> None:
    """Predict a column of one table from another that has it, with probabilities of classes.

    The file to write holds TEST with predictions, as standard output does without one.

    Parameters
    ----------
    source
        Rows with the target; takes what IN of other commands takes.
    test
        Rows to predict the target of.

    Examples
    --------
    tabweave predict train.csv test.csv --target y -o predicted.csv
    """


@command("Tables", "two_tables", takes="seed", source="OLD")
def drift(
    job: Job,
    new: Annotated[str, typer.Argument(metavar="NEW")],
    level: float = 0.05,
    min_size: float = 0.0,
    check: bool = False,
    json: bool = False,
) -> None:
    """Compare two tables: which columns, and which dependences between columns, changed.

    Parameters
    ----------
    source
        Reference table; takes what IN of other commands takes.
    new
        Table to compare with it.
    level
        Significance level: chance of a false alarm over all tests.
    min_size
        Smallest effect size (KS, Cramér's V) that counts as a change.
    check
        Exit with code 3 if anything changed.

    Examples
    --------
    tabweave drift monday.csv tuesday.csv
    tabweave drift monday.csv tuesday.csv --check
    """


@command("Tables", "models")
def studio(
    path: Annotated[Path, typer.Argument(metavar="PATH")] = Path(),
    host: str = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535)] = 0,
    browser: bool = True,
) -> None:
    """Open a local web page to explore a table, compare methods and download results.

    Parameters
    ----------
    path
        File to open, or folder whose files to list.
    host
        Address to listen on.
    port
        Port to listen on; 0 chooses a free one.
    browser
        Open the page in a browser.

    Examples
    --------
    tabweave studio
    tabweave studio people.csv
    """


# -- Models, and more


@command("Models", "models")
def export(
    model: Annotated[Path, typer.Argument(metavar="MODEL")],
    sql: bool = False,
    onnx: bool = False,
    parquet: bool = False,
    output: Annotated[Path | None, typer.Option("--output", "-o")] = None,
    dialect: str = "duckdb",
    table: str = "rows",
    keep: Annotated[list[str] | None, typer.Option(metavar="A,B,...")] = None,
    types: Annotated[list[str] | None, typer.Option("--type", metavar="COLUMN=TYPE")] = None,
    force: Force = False,
) -> None:
    """Export a saved model to SQL, ONNX or Parquet, to run it without tabweave.

    Parameters
    ----------
    model
        Model file written by 'tabweave embed --save'.
    sql
        Write a SQL query.
    onnx
        Write an ONNX graph (needs the extra export).
    parquet
        Write the value tables as Parquet.
    output
        File to write; SQL goes to standard output by default.
    dialect
        SQL dialect: duckdb, postgres, sqlite or bigquery.
    table
        SQL: name of the table that holds the rows.
    keep
        SQL: columns to copy to the result.
    types
        SQL: type of a column in the database, such as day=date.

    Examples
    --------
    tabweave export people.tabweave --sql --dialect postgres
    tabweave export people.tabweave -o people.onnx
    """


@command("Models", "models")
def methods(json: bool = False) -> None:
    """List the methods that --method accepts.

    Examples
    --------
    tabweave methods
    """


@command("More", "vectors")
def demo(
    output: OutputPath = Path("tabweave-demo.png"),
    rows: Annotated[int, typer.Option(min=200)] = 2000,
    seed: int = 0,
    force: Force = False,
    studio: bool = False,
) -> None:
    """Embed generated data with Weave and one-hot, and compare the results in an image.

    Parameters
    ----------
    output
        Image file to write (.png).
    rows
        Number of rows to generate.
    seed
        Random seed.
    studio
        Afterwards serve the studio with the passengers of the Titanic.

    Examples
    --------
    tabweave demo
    tabweave demo --studio
    """
