"""``tabweave neighbors``, ``duplicates`` and ``explain``: rows that are alike, and why."""

from __future__ import annotations

import csv
import shlex
from collections.abc import Iterable
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from tabweave.apps.cli.app import Force, Format, Json, Misuse, column, note, settings
from tabweave.apps.cli.files import check_output, is_stdout, output_format, write_columns
from tabweave.apps.cli.job import Job, Learned, check_columns, meant, takes_job
from tabweave.apps.cli.show import (
    accent,
    as_json,
    bar,
    emit,
    fitting,
    number,
    plural,
    say,
    width,
    working,
)
from tabweave.apps.cli.show import cell as show_cell
from tabweave.apps.cli.show import table as show_table

_WHY = 3  # columns named as the reason of a distance
_COLUMNS = 8  # columns side by side, or lines of a block
_NARROW = 60  # characters of a line that are too few for bars

Id = Annotated[
    str | None,
    typer.Option(
        "--id",
        metavar="COLUMN",
        help="Column with the ids of the rows: rows are called by them, and it is not compared.",
        autocompletion=column,
    ),
]


class Ids(NamedTuple):
    """What rows are called: by the cells of a column, or by their numbers."""

    cells: list[str] | None
    n_rows: int

    @classmethod
    def of(cls, rows: Any, name: str | None) -> Ids:
        """Read the column of the ids, if one is named."""
        return cls(None if name is None else list(map(str, rows.column(name))), rows.n_rows)

    def name(self, number: int) -> str:
        """Return what a row is called."""
        return str(number) if self.cells is None else self.cells[number]

    def naming(self, near: dict[str, Any]) -> dict[str, Any]:
        """Return what is known of a row, its id beside its number."""
        return near if self.cells is None else {"id": self.cells[near["row"]], **near}

    def number(self, text: str, option: str) -> int:
        """Return the number of the row that is called so."""
        if self.cells is None:
            return _row_number(text, option)
        rows = [i for i, cell in enumerate(self.cells) if cell == text]
        if len(rows) != 1:
            close = get_close_matches(text, self.cells, 1)
            hint = f"; did you mean {close[0]!r}?" if close and not rows else ""
            raise ValueError(
                f"{option}: expected the id of one row, got {text!r}, which "
                f"{plural(len(rows), 'row')} has{hint}"
            )
        return rows[0]


def _row_number(text: str, option: str) -> int:
    if not text.strip().isdecimal():
        raise Misuse(
            f"{option}: expected a row number, counting from 0, got {text!r}; name the column of "
            "ids with --id"
        )
    return int(text)


def with_ids(job: Job, id: str | None) -> Job:
    """Return a job that does not compare the column of the ids."""
    return job if id is None else replace(job, keep=(*job.keep, id))


@takes_job()
def neighbors(
    job: Job,
    row: Annotated[
        str | None,
        typer.Option(help="Query row: its number, counting from 0, or with --id its id."),
    ] = None,
    like: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN=VALUE,...",
            help="Query described by values; other columns are not compared. Write a set as its "
            "elements: tags=a|b.",
            autocompletion=settings,
        ),
    ] = None,
    k: Annotated[int, typer.Option("-k", "--count", min=1, help="Number of neighbours.")] = 10,
    where: Annotated[
        list[str] | None,
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
    if (row is None) == (not like):
        raise Misuse("expected either --row or --like, as in --row 17 or --like color=red,size=big")
    described, conditions = _pairs(like or [], "--like"), _pairs(where or [], "--where")
    if row is not None and id is None:
        _row_number(row, "--row")
    with with_ids(job, id).opened() as job:
        known = list(job.source.types)
        described, conditions = (
            {meant(name, known): value for name, value in pairs.items()}
            for pairs in (described, conditions)
        )
        check_columns([*described, *conditions], known)
        learned = job.learned()
    embedder, rows, _ = learned
    own = list(embedder.schema_.names)
    ids = Ids.of(rows, id and meant(id, known))
    at = None if row is None else ids.number(row, "--row")
    if at is not None:
        query = {name: cell for name, cell in rows.row(at).items() if name in own}
    else:
        query = _values(described, "--like", learned, own)
    allowed = _values(conditions, "--where", learned, list(rows.columns), True) or None
    with working("searching"):
        found = _found(learned, query, at, k, allowed, radius)
    if not found:
        near = "" if radius is None else f" within {radius:g}"
        asked = f" with {','.join(where)}" if where else ""
        raise ValueError(f"no other row found{near}{asked}")
    if json:
        as_json({"query": query, "neighbors": [ids.naming(near) for near in found]})
    else:
        title = "the query" if at is None else f"row {ids.name(at)}"
        _print(query, title, [near | {"row": ids.name(near["row"])} for near in found], own)


def _found(
    learned: Learned,
    query: dict[str, Any],
    row: int | None,
    k: int,
    where: Any,
    radius: float | None,
) -> list[dict[str, Any]]:
    """Return the nearest rows, each with what sets it apart; the row itself is not among them."""
    from tabweave import SimilarityIndex

    embedder, rows, _ = learned
    index = SimilarityIndex(embedder).fit(rows.columns)
    _, distances, positions = index.query(query, min(k + 1, rows.n_rows), where)
    own = [name for name in embedder.schema_.names if name in query]
    asked = None if len(own) == len(embedder.schema_.names) else own
    nearer = index.share_nearer(distances[0], asked) if rows.n_rows > 1 else distances[0]
    out: list[dict[str, Any]] = []
    for other, distance, share in zip(
        positions[0].tolist(), distances[0].tolist(), nearer.tolist(), strict=True
    ):
        if other != row and len(out) < k and (radius is None or distance <= radius):
            found = {"row": other, "distance": distance, "nearer": share}
            out.append(found | {"values": rows.row(other), "why": index.explain(query, other)})
    return out


def _pairs(texts: list[str], option: str) -> dict[str, str]:
    """Take color=red,size=big apart, before anything is opened."""
    out: dict[str, str] = {}
    for part in (part for line in csv.reader(texts, skipinitialspace=True) for part in line):
        name, equals, value = (side.strip() for side in part.partition("="))
        if not equals and out:  # a value with a comma in it?
            whole = shlex.quote(f'"{"=".join(list(out.items())[-1])},{part}"')
            hint = f"put a value with a comma in quotes, as in {option} {whole}"
            raise Misuse(f"{option}: expected COLUMN=VALUE, got {part!r}; {hint}")
        if not equals:
            raise Misuse(f"{option}: expected COLUMN=VALUE, such as color=red, got {part!r}")
        if name in out:
            raise Misuse(f"{option}: expected each column once, got {name!r} twice")
        out[name] = value
    return out


def _values(
    asked: dict[str, str], option: str, learned: Learned, names: list[str], ranges: bool = False
) -> dict[str, Any]:
    """Return each value as its column has it, or age=30..40 as a range."""
    out: dict[str, Any] = {}
    for name, value in asked.items():
        learned.rows.check([name])
        if name not in names:
            raise ValueError(
                f"{option}: expected a column that the method compares, got {name!r}; "
                f"it compares {names}"
            )
        read = _read_range if ranges and ".." in value else _read
        out[name] = read(value, name, learned)
        mark = None if ranges else learned.embedder.schema_[name].delimiter
        if mark is not None:  # a cell like the others
            out[name] = mark.join(out[name])
    return out


def _read_range(text: str, name: str, learned: Learned) -> Any:
    """Return the condition that 30..40, 30.. or ..40 means in a column."""
    from tabweave import between
    from tabweave.columns.numeric import Numbers

    ((column, cells),) = learned.column(name)
    labels = () if isinstance(cells, Numbers) else cells.labels
    if text in labels:
        return text
    ends: list[Any] = [end.strip() or None for end in text.split("..", 1)]
    if ends == [None, None]:
        raise Misuse(f"--where {name}={text}: expected a lower or an upper bound, got neither")
    written = column.kind == "datetime" or column.decimal is not None
    if written or any(isinstance(label, str) for label in labels):
        return between(*ends)
    ends = [None if end is None else _number(end, name) for end in ends]
    if None not in ends and ends[0] > ends[1]:
        raise Misuse(f"--where {name}={text}: expected the lower bound first")
    return between(*ends)


def _number(text: str, name: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"column {name!r}: expected a number, got {text!r}") from None


def _read(text: str, name: str, learned: Learned) -> Any:
    """Return the value that a text means in a column."""
    from tabweave.columns.numeric import Numbers
    from tabweave.columns.spelling import is_spelled

    ((column, cells),) = learned.column(name)
    if column.kind == "datetime" or column.decimal is not None:
        return text  # the embedder reads it as it read the others
    if isinstance(cells, Numbers):
        return _number(text, name)
    if column.kind == "set":
        return _elements(text, column)
    known = {str(label).lower() if isinstance(label, bool) else str(label): label
             for label in cells.labels if label is not None}  # fmt: skip
    bare = {written.strip(): label for written, label in known.items()}
    value = known.get(text, known.get(text.lower(), bare.get(text)))
    if value is None and is_spelled(cells.labels) and (near := _nearest_spelled(text, known)):
        note(f"no row has {name}={text!r}; taken for the nearest spelled, {near!r}")
        return known[near]
    if value is None:
        shown = ", ".join(map(repr, list(known)[:12]))
        close = get_close_matches(text, known, 1)
        hint = f"did you mean {close[0]!r}?" if close else f"its values are {shown}"
        raise ValueError(f"column {name!r} has no value {text!r}; {hint}")
    return value


def _nearest_spelled(text: str, known: Iterable[str]) -> str | None:
    """Return the value that holds a text, the shortest of them, or is spelled most like it."""
    folded = {value.casefold(): value for value in known}
    wanted = text.casefold()
    if holding := [value for value in folded if wanted in value]:
        return folded[min(holding, key=lambda value: (len(value), value))]
    close = get_close_matches(wanted, folded, 1)
    return folded[close[0]] if close else None


def _elements(text: str, column: Any) -> list[str]:
    """Return the elements of a|b, or of a set as the cells of its column are written."""
    parts = (part.strip() for part in text.replace(column.delimiter or "|", "|").split("|"))
    return list(dict.fromkeys(part for part in parts if part))


def _print(query: dict[str, Any], about: str, found: list[dict[str, Any]], own: list[str]) -> None:
    """Show the row asked about, then its neighbours; cells that differ stand out.

    A table where all columns fit; else a block for each neighbour, what differs most first.
    """
    some = f"{len(found)} rows" if len(found) > 1 else "row"
    title = f"The {some} most similar to {about}"
    heads = ["row", "distance", "closer pairs", *own, "differs in"]
    first = [show_cell(query[n]) if n in query else "any" for n in own]
    cells: list[list[Any]] = [
        ["?" if about == "the query" else about.removeprefix("row "), "", "", *first, ""]
    ]
    for near in found:
        values = [_differing(near["values"][n], n in query and near["values"][n] != query[n])
                  for n in own]  # fmt: skip
        far = number(near["distance"]), f"{near['nearer']:.1%}"
        why = ", ".join(f"{n} {share:.0%}" for n, share in _reasons(near)[:_WHY])
        cells.append([str(near["row"]), *far, *values, why or "nothing"])
    texts = [[str(cell) for cell in line] for line in cells]
    if len(own) > _COLUMNS or fitting(heads, texts) < len(heads):
        _print_blocks(query, title, found, own)
        return
    emit(show_table(heads, cells, right=heads[:3], title=title))


def _differing(value: Any, differs: bool) -> Any:
    from rich.text import Text

    return Text(show_cell(value), style=f"bold {accent()}" if differs else "")


def _reasons(near: dict[str, Any]) -> list[tuple[str, float]]:
    """Return each column's share in a distance, the largest first, without those that add none."""
    total = sum(abs(s) for s in near["why"].values())
    shares = sorted(near["why"].items(), key=lambda item: -item[1])
    return [(n, s / total) for n, s in shares if total and s / total >= 0.005]


def _print_blocks(
    query: dict[str, Any], title: str, found: list[dict[str, Any]], own: list[str]
) -> None:
    say("[bold]{title}[/]", title=title)
    for near in found:
        share = dict(_reasons(near))
        values = near["values"]
        apart = [n for n in own if n in query and (values[n] != query[n] or n in share)]
        apart.sort(key=lambda n: -share.get(n, 0.0))
        head = f"row {near['row']}, distance {number(near['distance'])}, "
        head += f"{near['nearer']:.1%} of all pairs are closer"
        cells = [[n, query[n], _differing(values[n], True), f"{share.get(n, 0.0):.0%}",
                  bar(share.get(n, 0.0))] for n in apart[:_COLUMNS]]  # fmt: skip
        say("\n[bold]{head}[/]", head=head)
        if cells:
            emit(show_table(["column", "query", "this row", "share", ""], cells, right=["share"]))
        rest = len(apart) - len(cells)
        same = sum(n in query for n in own) - len(apart)
        words = [f"{plural(rest, 'more column')} differ{'s' if rest == 1 else ''}"] * (rest > 0)
        words += [f"{plural(same, 'column')} {'is' if same == 1 else 'are'} the same"] * (same > 0)
        if words:
            say("{words}.", words=", ".join(words))
        beside = [f"{n}={show_cell(values[n])}" for n in own if n not in query]
        if beside:
            more = ", …" if len(beside) > _COLUMNS else ""
            say("Other columns: {cells}{more}", cells=", ".join(beside[:_COLUMNS]), more=more)


@takes_job()
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
    if id is None:
        _row_number(a, "--a"), _row_number(b, "--b")
    with with_ids(job, id).opened() as job:
        known = list(job.source.types)
        embedder, rows, table = job.learned()
    ids = Ids.of(rows, id and meant(id, known))
    _explain(embedder, rows, table, ids, ids.number(a, "--a"), ids.number(b, "--b"), json)


def _explain(embedder: Any, rows: Any, table: Any, ids: Ids, a: int, b: int, json: bool) -> None:
    """Print what keeps two rows apart."""
    left, right = rows.row(a), rows.row(b)
    shares = shares_of(embedder, table, a, b)
    distance = distance_of(embedder, table, a, b)
    if json:
        columns = {n: {"a": left.get(n), "b": right.get(n), "share": s} for n, s in shares.items()}
        named = {} if ids.cells is None else {"ids": [ids.name(a), ids.name(b)]}
        as_json({"a": a, "b": b, **named, "distance": distance, "columns": columns})
        return
    total = sum(abs(s) for s in shares.values()) or 1.0
    cells = [
        [n, left.get(n), right.get(n), number(s), f"{s / total:.0%}", bar(s / total)]
        for n, s in sorted(shares.items(), key=lambda item: -item[1])
    ]
    first, other = ids.name(a), ids.name(b)
    heads = ["column", f"row {first}", f"row {other}", "contribution", "share", ""]
    if width() < _NARROW:
        heads, cells = [*heads[:3], "share"], [[*line[:3], line[4]] for line in cells]
    title = f"Distance between rows {first} and {other}: {number(distance)}"
    emit(show_table(heads, cells, right=["contribution", "share"], title=title))
    together = sum(shares.values())
    root = abs(together - distance) > 1e-6 * abs(together) + 1e-9  # Euclidean: squares add up
    say(
        "The contributions add up to {sum}{what}.",
        sum=number(together),
        what=", the square of the distance" if root else ", the distance",
    )


def shares_of(embedder: Any, table: Any, a: int, b: int) -> dict[str, float]:
    """Return each column's share in what separates two rows."""
    if not hasattr(embedder, "explain"):
        raise ValueError(
            f"{type(embedder).__name__} cannot explain distances by column; use another --method"
        )
    return embedder.explain(*_two(table, a, b))


def distance_of(embedder: Any, table: Any, a: int, b: int) -> float:
    """Return the distance of two rows."""
    return float(embedder.pairwise_distances(*_two(table, a, b))[0, 0])


def _two(table: Any, a: int, b: int) -> list[Any]:
    import numpy as np

    from tabweave.columns.table import take_rows

    return [take_rows(table, np.array([row])) for row in (a, b)]


@takes_job("target")
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
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="File to write all pairs to; - is standard output."),
    ] = None,
    form: Format = None,
    force: Force = False,
    most: Annotated[int, typer.Option(min=1, help="Maximum number of pairs to show.")] = 20,
    id: Id = None,
    json: Json = False,
) -> None:
    """Find rows that may be the same twice: near duplicates, nearest first, and how they differ."""
    kind = output_format(output, form)
    check_output(output, force)
    with with_ids(job, id).opened(output) as job:
        learned = job.learned()
        ids = Ids.of(learned.rows, id and meant(id, list(job.source.types)))
    with working("comparing rows"):
        index, pairs = _near_pairs(learned, radius)
        found = [
            {"first": ids.name(a), "second": ids.name(b), "distance": d, "nearer": share}
            for (a, b, d), share in zip(
                pairs, index.share_nearer([d for *_, d in pairs]) if pairs else [], strict=True
            )
        ]
        told = range(len(found) if output is not None or json else min(most, len(found)))
        for i in told:
            first, second, _ = pairs[i]
            row = learned.rows.row(first)
            why = index.explain({n: row[n] for n in learned.embedder.schema_.names}, second)
            found[i]["why"] = why
    if output is not None:
        columns = {key: [one[key] for one in found] for key in ("first", "second", "distance")}
        columns["differs in"] = [_differs_in(one) for one in found]
        write_columns(columns, output, kind, {})
    if json:
        as_json({"rows": learned.rows.n_rows, "pairs": found})
    elif not is_stdout(output) or output is None:
        _print_pairs(found[:most], len(found), output)


def _near_pairs(learned: Learned, radius: float | None) -> tuple[Any, list[tuple[int, int, float]]]:
    """Return an index and near pairs, nearest first: within a distance, or each row's nearest."""
    from tabweave import SimilarityIndex

    if learned.rows.n_rows < 2:
        raise ValueError(f"expected at least 2 rows to compare, got {learned.rows.n_rows}")
    index = SimilarityIndex(learned.embedder).fit(learned.rows.columns)
    if radius is not None:
        near = index.duplicates(radius)
        first, second = near.positions.T.tolist()
        return index, list(zip(first, second, near.distances.tolist(), strict=True))
    _, distances, positions = index.query(learned.rows.columns, 2)
    best: dict[tuple[int, int], float] = {}
    for row, (others, apart) in enumerate(zip(positions.tolist(), distances.tolist(), strict=True)):
        other, distance = next((o, d) for o, d in zip(others, apart, strict=True) if o != row)
        best[min(row, other), max(row, other)] = distance
    return index, sorted(((a, b, d) for (a, b), d in best.items()), key=lambda p: (p[2], p[:2]))


def _differs_in(pair: dict[str, Any]) -> str:
    return ", ".join(f"{n} {share:.0%}" for n, share in _reasons(pair)[:_WHY]) or "nothing"


def _print_pairs(found: list[dict[str, Any]], total: int, output: Path | None) -> None:
    heads = ["row", "row ", "distance", "closer pairs", "differs in"]
    cells = [
        [
            str(one["first"]),
            str(one["second"]),
            number(one["distance"]),
            f"{one['nearer']:.1%}",
            _differs_in(one),
        ]
        for one in found
    ]
    title = f"{len(found)} of {plural(total, 'pair')} of similar rows"
    emit(show_table(heads, cells, right=heads[:4], title=title))
    if output is not None:
        say("All of them are in [bold]{output}[/]", output=str(output))
