"""Build the wheel twice, from two copies in two folders, and say whether they are the same bytes.

Usage: python tools/same_wheel.py    (needs the package ``build``)
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]


def built(folder: Path) -> tuple[str, str]:
    """Return the name and the hash of the wheel of a copy of the sources."""
    copy = folder / "sources"
    subprocess.run(["git", "clone", "-q", str(ROOT), str(copy)], check=True)
    command = [sys.executable, "-m", "build", "-q", "--wheel", "--outdir", str(folder / "dist")]
    subprocess.run([*command, str(copy)], check=True)
    (wheel,) = (folder / "dist").glob("*.whl")
    return wheel.name, hashlib.sha256(wheel.read_bytes()).hexdigest()


def main() -> int:
    """Build twice and compare."""
    found = []
    for name in ("one", "another"):
        folder = Path(tempfile.mkdtemp(prefix=f"wheel-{name}-"))
        try:
            found.append(built(folder))
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        print(*found[-1])
    print("the same bytes" if found[0] == found[1] else "DIFFERENT")
    return int(found[0] != found[1])


if __name__ == "__main__":
    sys.exit(main())
