"""``python -m tabweave``: the same as ``tabweave``."""

from tabweave.apps.cli import main

if __name__ == "__main__":
    main()
