"""Reports: a table in, one page that shows how it hangs together out.

rows → :func:`describe` (a dictionary of plain numbers and text) → :func:`page` (one HTML file that
needs no network). :func:`report` does both.
"""

from tabweave.apps.report.describe import describe, page, report

__all__ = ["describe", "page", "report"]
