"""What the site is made of beside these pages: the gallery, the reports, the guide to contribute.

Runs before each build: every example is executed and becomes a page with its picture and what it
prints.
"""

import ast
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"


def on_pre_build(config):
    shutil.copytree(
        ROOT / "benchmarks" / "reports",
        DOCS / "reports",
        dirs_exist_ok=True,
        ignore=shutil.ignore_patterns(".*"),
    )
    guide = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    (DOCS / "contributing.md").write_text(guide, encoding="utf-8")
    gallery(DOCS / "gallery")


def gallery(folder):
    folder.mkdir(exist_ok=True)
    lines = ["# Gallery", "", "Scripts of the folder `examples`, run as they stand.", ""]
    for script in sorted((ROOT / "examples").glob("[0-9]*.py")):
        text = script.read_text(encoding="utf-8")
        title, *about = ast.get_docstring(ast.parse(text)).splitlines()
        picture = re.search(r'savefig\("(.+?)"', text).group(1)
        printed = run(script, folder)
        code = text.split('"""', 2)[2].lstrip("\n")
        page = [f"# {title.rstrip('.')}", *about, "", f"![{title}]({picture})", ""]
        page += ["```python", code.rstrip(), "```", ""]
        page += ["It prints", "", "```text", printed.rstrip(), "```", ""] if printed else []
        (folder / f"{script.stem}.md").write_text("\n".join(page), encoding="utf-8")
        lines += [f"## [{title.rstrip('.')}]({script.stem}.md)", "", *about, ""]
        lines += [f"[![{title}]({picture}){{ width=420 }}]({script.stem}.md)", ""]
    (folder / "index.md").write_text("\n".join(lines), encoding="utf-8")


def run(script, folder):
    done = subprocess.run(
        [sys.executable, str(script)],
        cwd=folder,
        capture_output=True,
        text=True,
        env=os.environ | {"MPLBACKEND": "Agg"},
    )
    if done.returncode:
        raise RuntimeError(f"{script.name} failed:\n{done.stderr}")
    return done.stdout


def on_page_markdown(markdown, page, config, files):
    """Point links at the reports to their copy inside the site."""
    up = "../" * page.file.src_uri.count("/")
    return re.sub(r"\((?:\.\./)*benchmarks/reports(/[^)]*)?\)", lambda m: link(m, up), markdown)


def link(match, up):
    return f"({up}reports{match.group(1) or '/speed.md'})"
