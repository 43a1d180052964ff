"""The bill of materials of a wheel: what it ships, with hashes, and what it needs, with licences.

CycloneDX 1.6 as JSON, put into the wheel under ``.dist-info/sboms`` (PEP 770) by the build itself,
so it is never out of date. It holds no date and no random number: equal sources give equal bytes.
`python tools/sbom.py` prints it.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ImportError:  # printed, not built

    class BuildHookInterface:  # type: ignore[no-redef]
        """Stands for hatchling's."""


ROOT = Path(__file__).parents[1]
NAME = "tabweave.cdx.json"
ASSETS = (".js", ".css", ".html")
LICENCES = {
    "numpy": "BSD-3-Clause",
    "scipy": "BSD-3-Clause",
    "scikit-learn": "BSD-3-Clause",
    "threadpoolctl": "BSD-3-Clause",
    "numba": "BSD-2-Clause",
    "narwhals": "MIT",
    "duckdb": "MIT",
    "python-calamine": "MIT",
    "typer": "MIT",
    "rich": "MIT",
    "matplotlib": "PSF-2.0",
    "pandas": "BSD-3-Clause",
    "polars": "MIT",
    "pyarrow": "Apache-2.0",
    "openTSNE": "BSD-3-Clause",
    "cupy-cuda12x": "MIT",
    "cupy-cuda13x": "MIT",
    "lightgbm": "MIT",
    "dask": "BSD-3-Clause",
    "pyspark": "Apache-2.0",
    "fastapi": "MIT",
    "uvicorn": "BSD-3-Clause",
    "onnx": "Apache-2.0",
    "onnxruntime": "MIT",
    "adbc-driver-manager": "Apache-2.0",
    "adbc-driver-sqlite": "Apache-2.0",
    "adbc-driver-postgresql": "Apache-2.0",
    "river": "BSD-3-Clause",
    "opendp": "MIT",
    "anywidget": "MIT",
}


class Sbom(BuildHookInterface):
    """Writes the bill when a wheel is built."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the bill and hand it to the wheel."""
        path = Path(self.root, "build", NAME)
        path.parent.mkdir(exist_ok=True)
        text = json.dumps(bill(Path(self.root), self.metadata.version), indent=1, sort_keys=True)
        path.write_text(text + "\n", encoding="utf-8")
        build_data["sbom_files"].append(str(path.relative_to(self.root)))


def bill(root: Path = ROOT, version: str | None = None) -> dict[str, Any]:
    """Return the bill: the package, its files that browsers run, what it needs and may need."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    own = {"type": "library", "name": project["name"], "licenses": [_licence(project["license"])]}
    if version:
        own |= {"version": version, "purl": f"pkg:pypi/{project['name']}@{version}"}
    required = [_package(line, "required") for line in project["dependencies"]]
    extras = [line for lines in project["optional-dependencies"].values() for line in lines]
    extras = [line for line in extras if not line.startswith(project["name"])]  # extras of extras
    optional = [_package(line, "optional") for line in dict.fromkeys(extras)]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": own},
        "components": [*required, *optional, *_assets(root, project["license"])],
    }


def _package(requirement: str, scope: str) -> dict[str, Any]:
    found = re.match(r"([A-Za-z0-9_.-]+)(?:\[[^]]*\])?(.*)", requirement)
    assert found is not None
    name, versions = found[1], found[2].strip()
    known = name in LICENCES  # where not, a test says so; a build goes on
    return {
        "type": "library",
        "name": name,
        "purl": f"pkg:pypi/{name.lower()}",
        "scope": scope,
        "licenses": [_licence(LICENCES[name])] if known else [],
        "properties": [{"name": "tabweave:versions", "value": versions}],
    }


def _assets(root: Path, licence: str) -> list[dict[str, Any]]:
    package = root / "src" / "tabweave"
    files = sorted(p for p in package.rglob("*") if p.suffix in ASSETS)
    return [
        {
            "type": "file",
            "name": file.relative_to(package.parent).as_posix(),
            "hashes": [
                {"alg": "SHA-256", "content": hashlib.sha256(file.read_bytes()).hexdigest()}
            ],
            "licenses": [_licence(licence)],
        }
        for file in files
    ]


def _licence(name: str) -> dict[str, Any]:
    return {"license": {"id": name}}


if __name__ == "__main__":
    json.dump(bill(), sys.stdout, indent=1, sort_keys=True)
    print()
