"""The register of embedders: what each is called, what it reads, where its name can be typed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from tabweave.io.register import Register

Reads = Literal["categories", "numbers", "sets", "mixed"]
Offered = Literal["everywhere", "shell", "python"]
Class = TypeVar("Class", bound=type)


@dataclass(frozen=True)
class RegisteredEmbedder:
    """What is known of one embedder.

    Attributes
    ----------
    name : str
        What users type.
    cls : type
        The class; its default constructor makes what the name stands for.
    summary : str
        What it does, in one line.
    reference : str
        Where it was published.
    reads : {"categories", "numbers", "sets", "mixed"}
        The columns its method is for; an embedder of categories reads all others as well, as
        :class:`~tabweave.embed.base.ValueEmbedder` does.
    needs_y : bool
        Whether it needs classes.
    cross_fits : bool
        Whether ``fit_transform`` gives each row a vector that was learned without its own class.
    offered : {"everywhere", "shell", "python"}
        Where its name can be typed: on the command line, in reports and in the studio; on the
        command line alone; or nowhere, for what takes another embedder or no table.
    page : str
        Its page of the documentation, below ``docs/systems``.
    """

    name: str
    cls: Any
    summary: str
    reference: str
    reads: Reads = "categories"
    needs_y: bool = False
    cross_fits: bool = False
    offered: Offered = "everywhere"
    page: str = ""


EMBEDDERS: Register[RegisteredEmbedder] = Register("embedder", "tabweave.embed")


def embedder(
    name: str,
    summary: str,
    reference: str,
    /,
    *,
    reads: Reads = "categories",
    needs_y: bool = False,
    cross_fits: bool = False,
    offered: Offered = "everywhere",
    page: str | None = None,
) -> Callable[[Class], Class]:
    """Register an embedder: a public class of tabweave, which files may hold.

    Name, summary and flags are written out where the decorator stands: they are also read as text.

    Parameters
    ----------
    name : str
        What users type.
    summary : str
        What it does, in one line.
    reference : str
        Where it was published.
    reads, needs_y, cross_fits, offered
        As in :class:`RegisteredEmbedder`.
    page : str, optional
        Its page below ``docs/systems``, if it shares one; else the page has its name.
    """

    def register(cls: Class) -> Class:
        flags: dict[str, Any] = {
            "reads": reads,
            "needs_y": needs_y,
            "cross_fits": cross_fits,
            "offered": offered,
            "page": page or name,
        }
        entry = RegisteredEmbedder(name, cls, summary, reference, **flags)
        return EMBEDDERS.add(cls, entry, name, summary, **flags)

    return register


def list_embedders() -> dict[str, str]:
    """Return the name of each embedder with what it does, in one line.

    Examples
    --------
    >>> from tabweave.embed import list_embedders
    >>> list_embedders()["onehot"]
    'one dimension per value; the baseline'
    """
    return EMBEDDERS.summaries()
