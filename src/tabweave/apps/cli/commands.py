"""Every command and its options, with their help; what a command does is in a module beside this.

That module is imported when the command runs, so that help and tab completion are immediate.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from functools import wraps
from importlib import import_module
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from tabweave.apps.cli.app import Command, app, examples
from tabweave.apps.cli.options import (
    JOB_OPTIONS,
    Force,
    Format,
    Id,
    Job,
    Json,
    Names,
    Seed,
    column,
    columns,
    input_option,
    output_option,
    settings,
)


class Layout(StrEnum):
    """How vectors are brought down to two dimensions."""

    pca = "pca"
    tsne = "tsne"


def command(
    panel: str,
    module: str,
    *lines: str,
    name: str | None = None,
    without: tuple[str, ...] = (),
    source: Any = None,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a command of a function that declares its options and has the help as its docstring.

    Parameters
    ----------
    panel : str
        Under which heading the command is listed.
    module : str
        Where the function of the same name is that does the work.
    *lines : str
        Examples.
    name : str, optional
        What the command is called, if not as the function.
    without : tuple of str
        Of a function with the parameter ``job``, which options that say what to compare, and how,
        the command does not take.
    source : type, optional
        What the help says of the source, if it is not IN.
    """

    def register(declared: Callable[..., None]) -> Callable[..., None]:
        types = get_type_hints(declared, include_extras=True)
        own = list(signature(declared).parameters.values())
        shared = [] if own[0].name != "job" else [o for o in JOB_OPTIONS if o.name not in without]
        if source is not None:
            shared[0] = shared[0].replace(annotation=source)

        @wraps(declared)
        def run(**options: Any) -> None:
            if shared:
                options["job"] = Job(**{option.name: options.pop(option.name) for option in shared})
            work = import_module(f"tabweave.apps.cli.{module}")
            getattr(work, declared.__name__)(**options)

        own = [
            p.replace(annotation=types[p.name], kind=Parameter.KEYWORD_ONLY)
            for p in own
            if p.name != "job"
        ]
        parameters = [*shared[:1], *own, *shared[1:]]
        run.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {p.name: p.annotation for p in parameters}
        texts = examples(*(f"tabweave {line}" for line in lines))
        app.command(name, cls=Command, rich_help_panel=panel, epilog=texts)(run)
        return declared

    return register


# -- Rows


@command(
    "Rows",
    "embed",
    "embed people.csv -o vectors.parquet",
    "embed people.csv --target job --save people.tabweave -o vectors.csv",
    "embed \"SELECT * FROM 'people.csv' WHERE age > 30\" --components 5 -o -",
)
def embed(
    job: Job,
    output: Annotated[Path | None, output_option("File to write the vectors to")] = None,
    keep: Annotated[
        Names,
        input_option(
            "--keep", "A,B,...", "Copy these columns to the output without embedding them.", columns
        ),
    ] = None,
    save: Annotated[
        Path | None, typer.Option(help="Save the fitted model, for --model and 'tabweave export'.")
    ] = None,
    components: Annotated[
        int | None,
        typer.Option(min=1, help="Reduce the vectors to this many principal components."),
    ] = None,
    vector: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Write each vector as a list, in a column of this name."),
    ] = None,
    form: Format = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Embed rows: write one vector per row."""


@command("Rows", "map", "map people.csv", "map people.csv --color job -o map.png", name="map")
def map_(
    job: Job,
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            help="File to write: a page (.html), an image (.png, .svg, .pdf), or a table of "
            "coordinates (.csv, .parquet, ...).",
        ),
    ] = Path("map.html"),
    color: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Colour by this column; by default the target, or the first.",
            autocompletion=column,
        ),
    ] = None,
    layout: Annotated[
        Layout,
        typer.Option(help="Projection: principal components, or t-SNE (needs tabweave\\[map])."),
    ] = Layout.pca,
    force: Force = False,
    json: Json = False,
) -> None:
    """Draw a two-dimensional map, in which similar rows lie close together."""


@command(
    "Rows",
    "neighbors",
    "neighbors people.csv --row 17",
    "neighbors people.csv --like job=cook,age=30 -k 3",
    "neighbors people.csv --row 17 --where age=30..40",
)
def neighbors(
    job: Job,
    row: Annotated[
        str | None,
        typer.Option(help="Query row: its number, counting from 0, or with --id its id."),
    ] = None,
    like: Annotated[
        Names,
        typer.Option(
            metavar="COLUMN=VALUE,...",
            help="Query described by values; other columns are not compared. Write a set as its "
            "elements: tags=a|b.",
            autocompletion=settings,
        ),
    ] = None,
    k: Annotated[int, typer.Option("-k", "--count", min=1, help="Number of neighbours.")] = 10,
    where: Annotated[
        Names,
        typer.Option(
            metavar="COLUMN=VALUE,...",
            help="Search only rows with these values, or in a range: age=30..40, age=65..",
            autocompletion=settings,
        ),
    ] = None,
    radius: Annotated[
        float | None, typer.Option(min=0, help="Return only rows within this distance.")
    ] = None,
    id: Id = None,
    json: Json = False,
) -> None:
    """Find the rows most similar to a row of the table, or to one that you describe."""


@command("Rows", "cluster", "cluster people.csv", "cluster people.csv -k 4 -o clusters.csv")
def cluster(
    job: Job,
    clusters: Annotated[
        str,
        typer.Option(
            "--clusters", "-k", help="Number of clusters; auto estimates it, as in reports."
        ),
    ] = "auto",
    output: Annotated[
        Path | None, output_option("File to write every row and its cluster to")
    ] = None,
    form: Format = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Cluster the rows (k-means on their vectors) and describe each cluster."""


@command("Rows", "neighbors", "explain people.csv --a 3 --b 9")
def explain(
    job: Job,
    a: Annotated[
        str,
        typer.Option(
            "--a", "-a", help="First row: its number, counting from 0, or with --id its id."
        ),
    ],
    b: Annotated[str, typer.Option("--b", "-b", help="Second row, likewise.")],
    id: Id = None,
    json: Json = False,
) -> None:
    """Explain the distance between two rows: how much each column contributes."""


@command(
    "Rows",
    "neighbors",
    "duplicates people.csv",
    "duplicates people.csv --radius 0.5 -o pairs.csv",
    without=("target",),
)
def duplicates(
    job: Job,
    radius: Annotated[
        float | None,
        typer.Option(
            min=0,
            help="List all pairs of rows at most this far apart; by default each row with its "
            "nearest.",
        ),
    ] = None,
    output: Annotated[Path | None, output_option("File to write all pairs to")] = None,
    form: Format = None,
    force: Force = False,
    most: Annotated[int, typer.Option(min=1, help="Maximum number of pairs to show.")] = 20,
    id: Id = None,
    json: Json = False,
) -> None:
    """Find rows that may be the same twice: near duplicates, nearest first, and how they differ."""


# -- Tables


@command(
    "Tables",
    "tables",
    "report people.csv",
    "report people.csv --target job -o people.html",
    without=("model",),
)
def report(
    job: Job,
    output: Annotated[Path, output_option("HTML file to write")] = Path("report.html"),
    force: Force = False,
    json: Annotated[
        bool, typer.Option("--json", help="Print the content of the page as JSON.")
    ] = False,
) -> None:
    """Write a page about a table: columns, dependences, map, clusters, neighbours, warnings."""


@command(
    "Tables",
    "tables",
    "kinds people.csv",
    "kinds people.csv --kind age=nominal",
    without=("model", "method", "target", "seed"),
)
def kinds(job: Job, json: Json = False) -> None:
    """Show how each column is read, and why."""


@command(
    "Tables",
    "tables",
    "associate people.csv --most 10",
    without=("model", "method", "target", "seed"),
)
def associate(
    job: Job,
    level: Annotated[
        float, typer.Option(help="Show pairs whose adjusted p-value is at most this.")
    ] = 1.0,
    most: Annotated[int, typer.Option(min=1, help="Maximum number of pairs to show.")] = 30,
    json: Json = False,
) -> None:
    """Measure how strongly each pair of columns is associated, strongest first."""


@command(
    "Tables",
    "cells",
    "fill people.csv",
    "fill people.csv -o filled.csv",
    without=("model", "method", "target"),
)
def fill(
    job: Job,
    output: Annotated[Path | None, output_option("File to write the filled table to")] = None,
    form: Format = None,
    force: Force = False,
    most: Annotated[
        int, typer.Option(min=0, help="Maximum number of filled cells to explain.")
    ] = 20,
    json: Json = False,
) -> None:
    """Fill in missing cells from the other cells of their rows, and explain each guess."""


@command("Tables", "cells", "odd people.csv --most 5", without=("model", "method", "target"))
def odd(
    job: Job,
    level: Annotated[
        float,
        typer.Option(
            help="Significance level: expected share of rows, and of cells in a column, that are "
            "flagged by chance."
        ),
    ] = 0.01,
    most: Annotated[int, typer.Option(min=1, help="Maximum number of cells to show.")] = 20,
    id: Id = None,
    json: Json = False,
) -> None:
    """Find cells that do not fit the rest of their row, most unusual first."""


@command(
    "Tables",
    "two_tables",
    "predict train.csv test.csv --target y -o predicted.csv",
    without=("model", "method"),
    source=Annotated[
        str,
        typer.Argument(
            metavar="TRAIN", help="Rows with the target; takes what IN of other commands takes."
        ),
    ],
)
def predict(
    job: Job,
    test: Annotated[str, typer.Argument(metavar="TEST", help="Rows to predict the target of.")],
    output: Annotated[Path | None, output_option("File to write TEST with predictions to")] = None,
    form: Format = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Predict a column of one table from another that has it, with probabilities of classes."""


@command(
    "Tables",
    "two_tables",
    "drift monday.csv tuesday.csv",
    "drift monday.csv tuesday.csv --check",
    without=("model", "method", "target"),
    source=Annotated[
        str,
        typer.Argument(
            metavar="OLD", help="Reference table; takes what IN of other commands takes."
        ),
    ],
)
def drift(
    job: Job,
    new: Annotated[str, typer.Argument(metavar="NEW", help="Table to compare with it.")],
    level: Annotated[
        float, typer.Option(help="Significance level: chance of a false alarm over all tests.")
    ] = 0.05,
    min_size: Annotated[
        float, typer.Option(help="Smallest effect size (KS, Cramér's V) that counts as a change.")
    ] = 0.0,
    check: Annotated[
        bool, typer.Option("--check", help="Exit with code 3 if anything changed.")
    ] = False,
    json: Json = False,
) -> None:
    """Compare two tables: which columns, and which dependences between columns, changed."""


@command("Tables", "studio", "studio", "studio people.csv")
def studio(
    path: Annotated[
        Path, typer.Argument(metavar="PATH", help="File to open, or folder whose files to list.")
    ] = Path(),
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port to listen on; 0 chooses a free one.")
    ] = 0,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open the page in a browser.")
    ] = True,
) -> None:
    """Open a local web page to explore a table, compare methods and download results."""


# -- Models, and more


@command(
    "Models",
    "models",
    "export people.tabweave --sql --dialect postgres",
    "export people.tabweave -o people.onnx",
)
def export(
    model: Annotated[
        Path, typer.Argument(metavar="MODEL", help="Model file written by 'tabweave embed --save'.")
    ],
    sql: Annotated[bool, typer.Option("--sql", help="Write a SQL query.")] = False,
    onnx: Annotated[
        bool, typer.Option("--onnx", help="Write an ONNX graph (needs tabweave\\[export]).")
    ] = False,
    parquet: Annotated[
        bool, typer.Option("--parquet", help="Write the value tables as Parquet.")
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="File to write; SQL goes to standard output by default."
        ),
    ] = None,
    dialect: Annotated[
        str, typer.Option(help="SQL dialect: duckdb, postgres, sqlite or bigquery.")
    ] = "duckdb",
    table: Annotated[
        str, typer.Option(help="SQL: name of the table that holds the rows.")
    ] = "rows",
    keep: Annotated[
        Names, typer.Option(metavar="A,B,...", help="SQL: columns to copy to the result.")
    ] = None,
    types: Annotated[
        Names,
        typer.Option(
            "--type",
            metavar="COLUMN=TYPE",
            help="SQL: type of a column in the database, such as day=date.",
        ),
    ] = None,
    force: Force = False,
) -> None:
    """Export a saved model to SQL, ONNX or Parquet, to run it without tabweave."""


@command("Models", "models", "methods")
def methods(json: Json = False) -> None:
    """List the methods that --method accepts."""


@command("More", "demo", "demo")
def demo(
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Image file to write (.png).")
    ] = Path("tabweave-demo.png"),
    rows: Annotated[int, typer.Option(min=200, help="Number of rows to generate.")] = 2000,
    seed: Seed = 0,
    force: Force = False,
) -> None:
    """Embed generated data with Weave and one-hot, and compare the results in an image."""


@command("More", "demo", "bench")
def bench(
    rows: Annotated[int, typer.Option(min=1000, help="Number of rows to generate.")] = 200_000,
    json: Json = False,
) -> None:
    """Measure the speed of counting, fitting and transforming on this machine."""
