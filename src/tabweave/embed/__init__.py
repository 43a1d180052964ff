"""Embedders: one file or one folder per method.

``list_embedders()`` says which there are, and ``@embedder`` registers another. What a file in this
folder declares is found; there is no list of them here.
"""

from typing import Any

from tabweave.embed.register import EMBEDDERS, embedder, list_embedders
from tabweave.io.register import attribute

__all__ = ["EMBEDDERS", "embedder", "list_embedders"]


def __getattr__(name: str) -> Any:
    return attribute(__name__, name)
