"""What the site is made of beside these pages: the gallery, the reports, the guide to contribute.

Runs before each build: every example is executed and becomes a page with its picture and what it
prints. What lists methods comes from the register: the navigation of the systems, and what stands
for ``<!-- methods -->`` and ``<!-- embedders -->`` on a page.
"""

import ast
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from tabweave.embed import EMBEDDERS
from tabweave.measures import MEASURES

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"


def on_config(config):
    for item in config.nav:
        if "Systems" in item:
            item["Systems"] = systems()
    return config


def systems():
    """Return the pages of the systems: those of embedders by title, then the others."""
    embedders = {page_of(entry) for entry in EMBEDDERS.values()}
    pages = sorted((DOCS / "systems").glob("*.md"), key=lambda page: title(page).casefold())
    names = [page.relative_to(DOCS).as_posix() for page in pages]
    return sorted(names, key=lambda name: name not in embedders)


def page_of(entry):
    return f"systems/{entry.page}.md"


def title(page):
    return page.read_text(encoding="utf-8").partition("\n")[0].lstrip("# ")


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
    """Fill in the lists of methods; point links at the reports to their copy inside the site."""
    up = "../" * page.file.src_uri.count("/")
    markdown = markdown.replace("<!-- methods -->", methods(up))
    markdown = markdown.replace("<!-- embedders -->", embedders())
    return re.sub(r"\((?:\.\./)*benchmarks/reports(/[^)]*)?\)", lambda m: link(m, up), markdown)


def methods(up):
    """Return a table of every method."""
    lines = ["| method | what it does | from |", "|---|---|---|"]
    for name, entry in EMBEDDERS.items():
        typed = "" if entry.offered == "python" else f", `{name}`"
        link = f"[`{entry.cls.__name__}`]({up}{page_of(entry)}){typed}"
        lines.append(f"| {link} | {entry.summary} | {entry.reference} |")
    for name, entry in MEASURES.items():
        lines.append(f'| `ValueMetric("{name}")` | {entry.summary} | {entry.reference} |')
    return "\n".join(lines)


def embedders():
    """Return the reference of every embedder."""
    names = sorted(f"{e.cls.__module__}.{e.cls.__qualname__}" for e in EMBEDDERS.values())
    return "\n".join(f"::: {name}" for name in names)


def link(match, up):
    return f"({up}reports{match.group(1) or '/speed.md'})"
