"""``tabweave neighbors``, ``duplicates`` and ``explain``: rows that are alike, and why."""

from __future__ import annotations

import csv
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np
from rich.markup import escape
from rich.text import Text

from tabweave import SimilarityIndex, between
from tabweave.apps.cli import show
from tabweave.apps.cli.files import Output
from tabweave.apps.cli.job import Ids, Learned, check_columns, full_name, open_job, row_number
from tabweave.apps.cli.options import Job, Misuse
from tabweave.columns.spelling import is_spelled
from tabweave.columns.table import take_rows

MAX_COLUMNS_SHOWN = 8  # Columns side by side; where there are more, each neighbour is a block.


def neighbors(
    job: Job,
    row: str | None,
    like: list[str] | None,
    k: int,
    where: list[str] | None,
    radius: float | None,
    json: bool,
) -> None:
    """Find the rows most similar to a row."""
    if (row is None) == (not like):
        raise Misuse("expected either --row or --like, as in --row 17 or --like color=red,size=big")
    texts = _pairs(like or [], "--like"), _pairs(where or [], "--where")
    if row is not None and job.id is None:
        row_number(row, "--row")
    with open_job(job) as opened:
        types = opened.source.types
        values, limits = ({full_name(n, types): v for n, v in part.items()} for part in texts)
        check_columns([*values, *limits], types)
        learned = opened.learned()
    ids = Ids.of(learned.rows, job.id)
    names = list(learned.embedder.schema_.names)
    position = None if row is None else ids.number(row, "--row")
    if position is None:
        query = _described_row(values, learned)
    else:
        query = {n: v for n, v in learned.rows.row(position).items() if n in names}
    allowed = _conditions(limits, learned) or None
    with show.working("searching"):
        near = _nearest(learned, query, position, k, allowed, radius)
    if not near:
        within = "" if radius is None else f" within {radius:g}"
        limited = f" with {','.join(where)}" if where else ""
        raise ValueError(f"no other row found{within}{limited}")
    if json:
        named = [n if ids.cells is None else {"id": ids.name(n["row"]), **n} for n in near]
        show.as_json({"query": query, "neighbors": named})
    else:
        called = None if position is None else ids.name(position)
        _print(query, called, [n | {"row": ids.name(n["row"])} for n in near], names)


def _nearest(
    learned: Learned,
    query: dict[str, Any],
    row: int | None,
    k: int,
    where: Any,
    radius: float | None,
) -> list[dict[str, Any]]:
    """The nearest rows, each with what sets it apart; the row itself is not among them.

    Rows that are equal in what is compared stand as one, the first of them, with their number.
    """
    embedder, rows = learned.embedder, learned.rows
    index = SimilarityIndex(embedder).fit(rows.columns)
    _, distances, positions = index.query(query, min(k + 1, rows.n_rows), where, distinct=True)
    compared = [name for name in embedder.schema_.names if name in query]
    columns = None if len(compared) == len(embedder.schema_.names) else compared
    nearer = index.share_nearer(distances[0], columns) if rows.n_rows > 1 else distances[0]
    out: list[dict[str, Any]] = []
    for first, distance, share in zip(
        positions[0].tolist(), distances[0].tolist(), nearer.tolist(), strict=True
    ):
        equal = [
            other for other in index.equal_rows(first, columns, where).tolist() if other != row
        ]
        if equal and len(out) < k and (radius is None or distance <= radius):
            other = equal[0]
            near = {"row": other, "equal_rows": len(equal), "distance": distance, "nearer": share}
            out.append(near | {"values": rows.row(other), "why": index.explain(query, other)})
    return out


def _print(
    query: dict[str, Any], row: str | None, near: list[dict[str, Any]], names: list[str]
) -> None:
    """Show the query, then its neighbours; cells that differ stand out.

    A table where all columns fit; else a block for each neighbour, what differs most first.
    """
    rows = f"{len(near)} rows" if len(near) > 1 else "row"
    title = f"The {rows} most similar to {'the query' if row is None else f'row {row}'}"
    heads = ["row", "distance", "closer pairs", *names, "differs in"]
    first = [show.cell(query[n]) if n in query else "any" for n in names]
    cells: list[list[Any]] = [["?" if row is None else row, "", "", *first, ""]]
    for one in near:
        values = [
            _highlighted(one["values"][n], n in query and one["values"][n] != query[n])
            for n in names
        ]
        cells.append([*_row_and_distance(one), *values, _differs_in(one)])
    texts = [[str(text) for text in line] for line in cells]
    if len(names) > MAX_COLUMNS_SHOWN or show.fitting(heads, texts) < len(heads):
        show.say(show.bold(title))
        for one in near:
            _print_block(query, one, names)
    else:
        show.emit(show.table(heads, cells, right=heads[:3], title=title))


def _row_and_distance(near: dict[str, Any]) -> list[str]:
    n_others = near["equal_rows"] - 1
    row = f"{near['row']} and {n_others:,} equal" if n_others else str(near["row"])
    return [row, show.number(near["distance"]), f"{near['nearer']:.1%}"]


def _print_block(query: dict[str, Any], near: dict[str, Any], names: list[str]) -> None:
    """Show what a neighbour differs in, one line for each column."""
    shares, values = dict(_reasons(near)), near["values"]
    differing = [n for n in names if n in query and (values[n] != query[n] or n in shares)]
    differing.sort(key=lambda n: -shares.get(n, 0.0))
    row, distance, nearer = _row_and_distance(near)
    show.say("\n" + show.bold(f"row {row}, distance {distance}, {nearer} of all pairs are closer"))
    cells = []
    for name in differing[:MAX_COLUMNS_SHOWN]:
        share = shares.get(name, 0.0)
        differs = _highlighted(values[name], True)
        cells.append([name, query[name], differs, f"{share:.0%}", show.bar(share)])
    if cells:
        show.emit(show.table(["column", "query", "this row", "share", ""], cells, right=["share"]))
    n_more = len(differing) - len(cells)
    n_same = sum(n in query for n in names) - len(differing)
    words = [f"{show.plural(n_more, 'more column')} different"] * (n_more > 0)
    words += [f"{show.plural(n_same, 'column')} equal"] * (n_same > 0)
    if words:
        show.say(f"{', '.join(words)}.")
    others = [f"{n}={show.cell(values[n])}" for n in names if n not in query]
    if others:
        texts = [*others[:MAX_COLUMNS_SHOWN], *(["…"] if len(others) > MAX_COLUMNS_SHOWN else [])]
        show.say(f"Other columns: {escape(', '.join(texts))}")


def _highlighted(value: Any, differs: bool) -> Text:
    return Text(show.cell(value), style=f"bold {show.ACCENT}" if differs else "")


def _reasons(near: dict[str, Any]) -> list[tuple[str, float]]:
    """Each column's share in a distance, the largest first, without those that add none."""
    total = sum(abs(s) for s in near["why"].values())
    shares = sorted(near["why"].items(), key=lambda item: -item[1])
    return [(n, s / total) for n, s in shares if total and s / total >= 0.005]


def _differs_in(near: dict[str, Any]) -> str:
    """The columns that a distance is due to most."""
    return ", ".join(f"{n} {share:.0%}" for n, share in _reasons(near)[:3]) or "nothing"


# -- Values that people type after --like and --where


def _pairs(texts: Sequence[str], option: str) -> dict[str, str]:
    """The columns and values of color=red,size=big."""
    out: dict[str, str] = {}
    for part in (part for line in csv.reader(texts, skipinitialspace=True) for part in line):
        name, equals, value = (side.strip() for side in part.partition("="))
        if not equals and out:  # a value with a comma in it?
            quoted = shlex.quote(f'"{"=".join(list(out.items())[-1])},{part}"')
            hint = f"put a value with a comma in quotes, as in {option} {quoted}"
            raise Misuse(f"{option}: expected COLUMN=VALUE, got {part!r}; {hint}")
        if not equals:
            raise Misuse(f"{option}: expected COLUMN=VALUE, such as color=red, got {part!r}")
        if name in out:
            raise Misuse(f"{option}: expected each column once, got {name!r} twice")
        out[name] = value
    return out


def _described_row(texts: dict[str, str], learned: Learned) -> dict[str, Any]:
    """The row that ``--like`` describes, each value as its column has it."""
    schema = learned.embedder.schema_
    check_columns(texts, learned.rows.columns)
    for name in texts:
        if name not in schema.names:
            raise ValueError(
                f"--like: expected a column that the method compares, got {name!r}; "
                f"it compares {list(schema.names)}"
            )
    row = {name: _value(text, name, learned) for name, text in texts.items()}
    delimiters = {name: schema[name].delimiter for name in row}
    return {n: v if delimiters[n] is None else delimiters[n].join(v) for n, v in row.items()}


def _conditions(texts: dict[str, str], learned: Learned) -> dict[str, Any]:
    """The conditions of ``--where``: values as their columns have them, or ranges."""
    check_columns(texts, learned.rows.columns)
    out = {}
    for name, text in texts.items():
        read: Callable[..., Any] = _range if ".." in text else _value
        out[name] = read(text, name, learned)
    return out


def _range(text: str, name: str, learned: Learned) -> Any:
    """The condition that 30..40, 30.. or ..40 means in a column."""
    ((column, cells),) = learned.column(name)
    labels = () if cells.is_continuous else cells.as_values().labels
    if text in labels:
        return text
    ends: list[Any] = [end.strip() or None for end in text.split("..", 1)]
    if ends == [None, None]:
        raise Misuse(f"--where {name}={text}: expected a lower or an upper bound, got neither")
    if column.is_read or any(isinstance(label, str) for label in labels):
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


def _value(text: str, name: str, learned: Learned) -> Any:
    """The value that a text means in a column."""
    ((column, cells),) = learned.column(name)
    if column.is_read or not (column.is_continuous or column.has_values):
        return text  # the embedder reads it as it read the others
    if column.is_continuous:
        return _number(text, name)
    if column.is_set:  # a|b, or a set as the cells of its column are written
        parts = text.replace(column.delimiter or "|", "|").split("|")
        return list(dict.fromkeys(part.strip() for part in parts if part.strip()))
    present = [label for label in cells.labels if label is not None]
    labels = {str(v).lower() if isinstance(v, bool) else str(v): v for v in present}
    folded = text.strip().casefold()
    matches = [label for written, label in labels.items() if written.strip().casefold() == folded]
    value = labels.get(text, matches[0] if len(matches) == 1 else None)
    if value is None and is_spelled(cells.labels) and (near := _nearest_spelled(text, labels)):
        show.note(f"no row has {name}={text!r}; taken for the nearest spelled, {near!r}")
        return labels[near]
    if value is None:
        examples = ", ".join(map(repr, list(labels)[:12]))
        close = get_close_matches(text, labels, 1)
        hint = f"did you mean {close[0]!r}?" if close else f"its values are {examples}"
        raise ValueError(f"column {name!r} has no value {text!r}; {hint}")
    return value


def _nearest_spelled(text: str, values: Iterable[str]) -> str | None:
    """The value that holds a text, the shortest of them, or is spelled most like it."""
    folded = {value.casefold(): value for value in values}
    if holding := [value for value in folded if text.casefold() in value]:
        return folded[min(holding, key=lambda value: (len(value), value))]
    close = get_close_matches(text.casefold(), folded, 1)
    return folded[close[0]] if close else None


# -- explain


def explain(job: Job, a: str, b: str, json: bool) -> None:
    """Explain the distance between two rows."""
    if job.id is None:
        row_number(a, "--a"), row_number(b, "--b")
    with open_job(job) as opened:
        learned = opened.learned()
    embedder, rows = learned.embedder, learned.rows
    ids = Ids.of(rows, job.id)
    positions = ids.number(a, "--a"), ids.number(b, "--b")
    left, right = map(rows.row, positions)
    if not hasattr(embedder, "explain"):
        raise ValueError(
            f"{type(embedder).__name__} cannot explain distances by column; use another --method"
        )
    pair = [take_rows(learned.table, np.array([position])) for position in positions]
    shares = embedder.explain(*pair)
    distance = float(embedder.pairwise_distances(*pair)[0, 0])
    names = [ids.name(position) for position in positions]
    if json:
        columns = {n: {"a": left.get(n), "b": right.get(n), "share": s} for n, s in shares.items()}
        id_pair = {} if ids.cells is None else {"ids": names}
        result = {"a": positions[0], "b": positions[1], **id_pair}
        show.as_json(result | {"distance": distance, "columns": columns})
    else:
        _print_shares(shares, distance, (left, right), names)


def _print_shares(
    shares: Mapping[str, float],
    distance: float,
    rows: tuple[dict[str, Any], dict[str, Any]],
    names: list[str],
) -> None:
    """Show what each column adds to a distance."""
    left, right = rows
    total = sum(abs(s) for s in shares.values()) or 1.0
    cells = [
        [n, left.get(n), right.get(n), show.number(s), f"{s / total:.0%}", show.bar(s / total)]
        for n, s in sorted(shares.items(), key=lambda item: -item[1])
    ]
    heads = ["column", *(f"row {name}" for name in names), "contribution", "share", ""]
    if show.width() < 60:  # too few characters for bars
        heads, cells = [*heads[:3], "share"], [[*line[:3], line[4]] for line in cells]
    title = f"Distance between rows {' and '.join(names)}: {show.number(distance)}"
    show.emit(show.table(heads, cells, right=["contribution", "share"], title=title))
    together = sum(shares.values())
    root = abs(together - distance) > 1e-6 * abs(together) + 1e-9  # Euclidean: squares add up
    what = "the square of the distance" if root else "the distance"
    show.say(f"The contributions add up to {show.number(together)}, {what}.")


# -- duplicates


def duplicates(job: Job, radius: float | None, out: Output, limit: int) -> None:
    """Find rows that may be the same twice."""
    with open_job(job, out.path) as opened:
        learned = opened.learned()
    ids = Ids.of(learned.rows, job.id)
    with show.working("comparing rows"):
        index, positions = _near_pairs(learned, radius)
        nearer = index.share_nearer([d for *_, d in positions]) if positions else []
        pairs = [
            {"first": ids.name(a), "second": ids.name(b), "distance": d, "nearer": share}
            for (a, b, d), share in zip(positions, nearer, strict=True)
        ]
        explained = len(pairs) if out.path is not None or out.json else limit
        for pair, (first, second, _) in zip(pairs[:explained], positions, strict=False):
            row = learned.rows.row(first)
            query = {name: row[name] for name in learned.embedder.schema_.names}
            pair["why"] = index.explain(query, second)
    if out.path is not None:
        columns = {key: [pair[key] for pair in pairs] for key in ("first", "second", "distance")}
        columns["differs in"] = [_differs_in(pair) for pair in pairs]
        out.write_columns(columns, {})
    if out.json:
        show.as_json({"rows": learned.rows.n_rows, "pairs": pairs})
    elif not out.is_piped:
        _print_pairs(pairs[:limit], len(pairs), out.path)


def _near_pairs(learned: Learned, radius: float | None) -> tuple[Any, list[tuple[int, int, float]]]:
    """An index, and near pairs, nearest first: within a distance, or each row's nearest."""
    if learned.rows.n_rows < 2:
        raise ValueError(f"expected at least 2 rows to compare, got {learned.rows.n_rows}")
    index = SimilarityIndex(learned.embedder).fit(learned.rows.columns)
    if radius is not None:
        near = index.duplicates(radius)
        first, second = near.positions.T.tolist()
        return index, list(zip(first, second, near.distances.tolist(), strict=True))
    _, distances, positions = index.query(learned.rows.columns, 2)
    best: dict[tuple[int, int], float] = {}
    for row, (near_by, to_them) in enumerate(
        zip(positions.tolist(), distances.tolist(), strict=True)
    ):
        other, distance = next((o, d) for o, d in zip(near_by, to_them, strict=True) if o != row)
        best[min(row, other), max(row, other)] = distance
    return index, sorted(((a, b, d) for (a, b), d in best.items()), key=lambda p: (p[2], p[:2]))


def _print_pairs(pairs: list[dict[str, Any]], total: int, output: Path | None) -> None:
    heads = ["row", "row ", "distance", "closer pairs", "differs in"]
    cells = [
        [
            pair["first"],
            pair["second"],
            show.number(pair["distance"]),
            f"{pair['nearer']:.1%}",
            _differs_in(pair),
        ]
        for pair in pairs
    ]
    title = f"{len(pairs)} of {show.plural(total, 'pair')} of similar rows"
    show.emit(show.table(heads, cells, right=heads[:4], title=title))
    if output is not None:
        show.say(f"All of them are in {show.bold(output)}")
