"""Reports: one HTML page that describes a table.

rows → :func:`describe` (a dictionary of plain numbers and text) → :func:`page` (one HTML file that
needs no network). :func:`report` does both; :func:`map_widget` is the map
alone, for notebooks.
"""

from tabweave.apps.report.describe import describe, map_widget, page, report
from tabweave.apps.report.reading import read as read  # "as": for other rooms, not for users

__all__ = ["describe", "map_widget", "page", "report"]
