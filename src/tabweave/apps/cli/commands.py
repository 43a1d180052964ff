"""Every command and its options, with their help; what it does is in a module beside this."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from tabweave.apps.cli.app import command
from tabweave.apps.cli.files import Output
from tabweave.apps.cli.options import (
    ColumnName,
    Columns,
    Conditions,
    Force,
    Job,
    Limit,
    OutputPath,
)


class Layout(StrEnum):
    """How vectors are brought down to two dimensions."""

    pca = "pca"
    tsne = "tsne"


# -- Rows


@command("Rows", "embed")
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


@command("Rows", "map")
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


@command("Rows", "cluster")
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


@command("More", "demo")
def demo(
    output: OutputPath = Path("tabweave-demo.png"),
    rows: Annotated[int, typer.Option(min=200)] = 2000,
    seed: int = 0,
    force: Force = False,
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

    Examples
    --------
    tabweave demo
    """
