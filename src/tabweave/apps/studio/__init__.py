"""Studio: a local web page to explore a table, compare methods and download results.

A browser on this machine talks to a small server on this machine; nothing leaves it. Files come
from the folder it was started in or are dropped on the page; all work is done by the library, in a
process of its own that can be cancelled.
"""

from tabweave.apps.studio.app import create_app, serve

__all__ = ["create_app", "serve"]
