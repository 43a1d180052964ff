"""``python -m tabweave.apps.cli``: the same as ``tabweave``."""

from tabweave.apps.cli import main

if __name__ == "__main__":
    main()
