"""``weft explain``: why two rows are apart."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from weft.cli import _options, _show
from weft.cli._files import opened
from weft.cli._job import Job, listed


def explain(
    source: _options.Source,
    a: Annotated[int, typer.Option("--a", "-a", help="Number of a row, counted from 0.")],
    b: Annotated[int, typer.Option("--b", "-b", help="Number of the other row.")],
    method: _options.Method = "auto",
    target: _options.Target = None,
    columns: _options.Columns = None,
    drop: _options.Drop = None,
    kind: _options.Kind = None,
    from_: _options.From = None,
    model: _options.Model = None,
    seed: _options.Seed = 0,
    json: _options.Json = False,
) -> None:
    """Say why two rows are apart: each column's share in their distance."""
    with opened(source, from_) as name:
        job = Job(
            name, method, target, listed(columns), listed(drop), kinds=kind or (), model=model,
            seed=seed,
        )  # fmt: skip
        embedder, rows, table = job.learned()
    left, right = rows.row(a), rows.row(b)
    shares = shares_of(embedder, table, a % rows.n_rows, b % rows.n_rows)
    distance = distance_of(embedder, table, a % rows.n_rows, b % rows.n_rows)
    if json:
        told = {n: {"a": left.get(n), "b": right.get(n), "share": s} for n, s in shares.items()}
        _show.as_json({"a": a, "b": b, "distance": distance, "columns": told})
        return
    total = sum(abs(s) for s in shares.values()) or 1.0
    cells = [
        [n, left.get(n), right.get(n), _show.number(s), f"{s / total:.0%}", _show.bar(s / total)]
        for n, s in sorted(shares.items(), key=lambda item: -item[1])
    ]
    heads = ["column", f"row {a}", f"row {b}", "adds", "share", ""]
    title = f"Rows {a} and {b} are {_show.number(distance)} apart"
    _show.emit(_show.table(heads, cells, right=heads[3:5], title=title))
    together = sum(shares.values())
    root = abs(together - distance) > 1e-6 * abs(together) + 1e-9  # Euclidean: squares add up
    _show.say(
        "What the columns add makes {sum}{what}.",
        sum=_show.number(together),
        what=", the square of the distance" if root else ", the distance",
    )


def shares_of(embedder: Any, table: Any, a: int, b: int) -> dict[str, float]:
    """Return each column's share in what separates two rows."""
    if not hasattr(embedder, "explain"):
        raise ValueError(
            f"{type(embedder).__name__} cannot take its distances apart; use another --method"
        )
    return embedder.explain(*_two(table, a, b))


def distance_of(embedder: Any, table: Any, a: int, b: int) -> float:
    """Return the distance of two rows."""
    return float(embedder.pairwise_distances(*_two(table, a, b))[0, 0])


def _two(table: Any, a: int, b: int) -> list[Any]:
    import numpy as np

    from weft._distinct import take_rows

    return [take_rows(table, np.array([place])) for place in (a, b)]
