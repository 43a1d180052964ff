"""The command line: a thin layer without arithmetic.

``tabweave COMMAND --help`` lists the options of a command.
"""

import sys

from tabweave.apps.cli.app import app, stop_on_terminate
from tabweave.apps.cli.options import ExitCode


def main() -> None:
    """Run the command line."""
    stop_on_terminate()
    try:
        app(prog_name="tabweave")
    except KeyboardInterrupt:  # before a command begins, or after it has ended
        sys.exit(ExitCode.STOPPED)
