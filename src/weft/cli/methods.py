"""``weft methods``: what ``--method`` knows."""

from __future__ import annotations

from weft.cli import _options, _show
from weft.cli._methods import EMBEDDERS, MEASURES


def methods(json: _options.Json = False) -> None:
    """List the names that --method knows."""
    from weft.measures import MEASURES as known_measures

    known = {name: text for name, (_, text) in EMBEDDERS.items()}
    measures = {name: m for name, m in known_measures.items() if name in MEASURES}
    if json:
        _show.as_json(
            [{"name": n, "kind": "embedder", "summary": text} for n, text in known.items()]
            + [{"name": n, "kind": "measure", "summary": m.summary} for n, m in measures.items()]
        )
        return
    _show.emit(_show.table(["embedder", ""], list(known.items()), long=True))
    told = [
        [name, m.summary + ("; needs --target" if m.needs_y else "")]
        for name, m in measures.items()
    ]
    _show.emit(_show.table(["value measure", ""], told, long=True))
