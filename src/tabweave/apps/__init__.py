"""Applications: report, studio and command line; thin layers without arithmetic."""

from tabweave._compat import require


def main() -> None:
    """Run the command line, or say which extra brings it."""
    try:
        require("typer", "cli"), require("rich", "cli")
    except ImportError as error:
        raise SystemExit(f"tabweave: {error}") from None
    from tabweave.apps.cli import main as command_line

    command_line()
