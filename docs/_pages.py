"""What the site is made of beside these pages: reference, gallery, reports, the guide.

``make`` runs before each build: every example is executed and becomes a page with its picture and
what it prints; every public name gets a page. What lists methods comes from the register: it stands
for ``<!-- methods -->`` on a page. ``finish`` writes what assistants read: the pages as one text.
"""

import ast
import contextlib
import inspect
import io
import os
import re
import runpy
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import tabweave
from tabweave.apps.report import report
from tabweave.datasets import titanic
from tabweave.embed import EMBEDDERS
from tabweave.measures import MEASURES

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
MADE = ("api", "gallery", "reports", "contributing.md", "changelog.md")

# The rooms whose names have pages, in the order of the reference; what is reached by
# ``tabweave.name`` stands there, and in its room by title only.
ROOMS = {
    "Tables and counts": ("columns", "counts", "space", "base"),
    "Embedders": ("embed", "measures"),
    "Neighbors": ("neighbors",),
    "Clusters": ("cluster",),
    "Many sources": ("sources",),
    "Tasks": ("tasks",),
    "Engines": ("engines",),
    "Files and export": ("io", "export"),
    "Evaluation": ("evaluate",),
    "Data sets": ("datasets",),
    "Plots": ("plots",),
    "Pages": ("report", "studio", "apps"),
    "As published": ("papers",),
}
# What classes have from elsewhere is described there.
NOT_OURS = (
    *("BaseEstimator", "TransformerMixin", "ClassifierMixin", "RegressorMixin", "ClusterMixin"),
    *("_SetOutputMixin", "_MetadataRequester", "ClassNamePrefixFeaturesOutMixin"),
    *("str", "tuple", "object"),
)
METHODS = (
    *("fit", "partial_fit", "predict", "predict_proba", "score", "transform"),
    *("inverse_transform", "decision_function", "predict_log_proba"),
)
ROUTING = (
    *(f"set_{what}_request" for what in METHODS),
    "get_metadata_routing",
)
# Hundreds of pages that their index lists; in the navigation they would be most of every page.
ALONE = "---\norphan: true\n---\n\n"
# Public, though in no list of its room.
MORE = (
    "embed.base.Embedder",
    "embed.base.ValueEmbedder",
    "space.space.Space",
    "embed.hierarchy.Tree",
    "embed.nonbend.Gibbs",
    "embed.nonbend.VI",
)


def make():
    """Write all pages that are made."""
    for path in (ROOT / "benchmarks" / "reports").glob("[!.]*"):
        copy = DOCS / "reports" / path.name
        if path.suffix == ".md":
            text = path.read_text(encoding="utf-8")
            head = path.stem.replace("-", " ").capitalize()
            write(copy, ALONE + (text if text.startswith("# ") else f"# {head}\n\n{text}"))
        elif not copy.exists() or path.read_bytes() != copy.read_bytes():
            copy.parent.mkdir(exist_ok=True)
            shutil.copyfile(path, copy)
    measured = sorted(p.stem for p in (DOCS / "reports").glob("*.md") if p.stem != "index")
    lines = ["# Reports", "", "What the scripts of `benchmarks` printed, with their commands.", ""]
    lines += [*(f"- [{name}]({name}.md)" for name in measured), ""]
    write(DOCS / "reports" / "index.md", "\n".join(lines))
    for name in ("contributing", "changelog"):
        write(DOCS / f"{name}.md", (ROOT / f"{name.upper()}.md").read_text(encoding="utf-8"))
    gallery(DOCS / "gallery")
    reference(DOCS / "api")


def write(path, text):
    """Write a page, unless it says that already: what has not changed is not built again."""
    path.parent.mkdir(exist_ok=True)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


# -- the reference --------------------------------------------------------------------------------


def public():
    """Return every public name: as it is imported, with what it stands for and its room."""
    found = {}
    for name in tabweave.__all__:
        thing = getattr(tabweave, name)
        if not inspect.ismodule(thing):
            found[f"tabweave.{name}"] = thing
    known = {id(thing) for thing in found.values()}
    for room in (room for rooms in ROOMS.values() for room in rooms):
        module = getattr(tabweave, room, None) or import_module(f"tabweave.{room}")
        for name in getattr(module, "__all__", ()):
            thing = getattr(module, name)
            if not inspect.ismodule(thing) and id(thing) not in known:
                found[f"tabweave.{room}.{name}"] = thing
    for name in MORE:
        module, _, attribute = name.rpartition(".")
        found[f"tabweave.{name}"] = getattr(import_module(f"tabweave.{module}"), attribute)
    return {name: thing for name, thing in found.items() if is_described(thing)}


def is_described(thing):
    """Tell whether this is a class or a function, not an alias of a type or data."""
    return inspect.isclass(thing) or inspect.isroutine(thing)


def room_of(name, thing):
    """Return under which title of the reference a name stands."""
    parts = name.split(".")
    room = parts[1] if len(parts) > 2 else (getattr(thing, "__module__", "") or "").split(".")[1]
    return next((title for title, rooms in ROOMS.items() if room in rooms), "Tables and counts")


def summary(thing):
    """Return the first line of a docstring, roles as plain code."""
    first = (inspect.getdoc(thing) or "").partition("\n")[0]
    return re.sub(r":\w+:`~?(?:[\w.]*\.)?(\w+)`", r"`\1`", first).replace("``", "`")


def reference(folder):
    """Write a page for each public name, and one that lists them."""
    things = public()
    texts = {path: path.read_text(encoding="utf-8") for path in shown_pages()}
    lists = {title: [] for title in ROOMS}
    for name, thing in sorted(things.items(), key=lambda item: item[0].casefold()):
        write(folder / f"{name}.md", page_of_name(name, thing, texts))
        lists[room_of(name, thing)].append(f"| [`{name}`]({name}.md) | {summary(thing)} |")
    lines = ["# Reference", "", "Every public name, by the room it lives in. All estimators follow"]
    lines += [
        "scikit-learn: `fit`, `transform` or `predict`, `clone`, `set_output`, pipelines; `save`"
    ]
    lines += ["and `tabweave.load` keep any of them in one file.", ""]
    for title, rows in lists.items():
        lines += [f"## {title}", "", "| name | |", "|---|---|", *rows, ""] if rows else []
    write(folder / "index.md", "\n".join(lines))
    for old in set(folder.glob("tabweave.*.md")) - {folder / f"{name}.md" for name in things}:
        old.unlink()


def page_of_name(name, thing, texts):
    """Return the page of a class or function, and where it is shown."""
    lines = [f"{ALONE}# {name}", "", f"[Reference](index.md), {room_of(name, thing)}"]
    about = next((entry for entry in EMBEDDERS.values() if entry.cls is thing), None)
    if about is not None:
        lines[-1] += f". What it is for, with formulas: [the method](../{page_of(about)})"
    lines += ["", "```{eval-rst}"]
    if inspect.isclass(thing):
        lines += [f".. autoclass:: {name}", f"   :inherited-members: {', '.join(NOT_OURS)}"]
        lines += [f"   :exclude-members: {', '.join(ROUTING)}"]
    else:
        lines += [f".. autofunction:: {name}"]
    lines += ["```", ""]
    short = name.rpartition(".")[2]
    uses = [path for path, text in texts.items() if re.search(rf"\b{short}\b(?!\.)", text)]
    if uses:
        lines += ["## Shown in", "", *(f"- [{title(p)}]({target(p)})" for p in uses), ""]
    return "\n".join(lines)


def shown_pages():
    """Return the pages and examples that may show a name."""
    pages = [DOCS / "tour.md", *sorted((DOCS / "howto").glob("*.md"))]
    return [*pages, *sorted((DOCS / "systems").glob("*.md")), *scripts()]


def title(path):
    """Return the title of a page or an example."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        return ast.get_docstring(ast.parse(text)).partition("\n")[0].rstrip(".")
    return text.partition("\n")[0].lstrip("# ")


def target(path):
    """Return the address of a page, from the reference."""
    if path.suffix == ".py":
        return f"../gallery/{path.stem}.md"
    return f"../{path.relative_to(DOCS).as_posix()}"


# -- the gallery ----------------------------------------------------------------------------------


def scripts():
    """Return the examples, in order."""
    return sorted((ROOT / "examples").glob("[0-9]*.py"))


def gallery(folder):
    """Run every example, write a page for each, and a grid of their pictures."""
    cards = []
    texts = {script: script.read_text(encoding="utf-8") for script in scripts()}
    find = re.compile(r'savefig\("(.+?)"')
    pictures = {script: find.search(text).group(1) for script, text in texts.items()}
    run_all(folder, pictures)
    for script, text in texts.items():
        _, *about = ast.get_docstring(ast.parse(text)).splitlines()
        picture = pictures[script]
        printed = (folder / f"{script.stem}.out").read_text(encoding="utf-8")
        code = text.split('"""', 2)[2].lstrip("\n")
        page = [f"# {title(script)}", *about, "", f"![{title(script)}]({picture})", ""]
        page += ["```python", code.rstrip(), "```", ""]
        page += ["It prints", "", "```text", printed.rstrip(), "```", ""] if printed else []
        used = [n for n in public() if re.search(rf"\b{n.rpartition('.')[2]}\b", code)]
        page += ["Uses " + ", ".join(f"[`{n}`](../api/{n}.md)" for n in used) + ".", ""]
        write(folder / f"{script.stem}.md", "\n".join(page))
        image = f'<img src="../_images/{picture}" alt="" loading="lazy">'
        cards.append(f'<a href="{script.stem}.html">{image}<span>{title(script)}</span></a>')
    lines = ["# Gallery", "", "Scripts of the folder `examples`, run as they stand.", ""]
    lines += ['<div class="gallery">', *cards, "</div>", "", "```{toctree}", ":hidden:", ""]
    lines += [*(script.stem for script in scripts()), "```", ""]
    write(folder / "index.md", "\n".join(lines))


def run_all(folder, pictures):
    """Run the examples that have changed, or whose library has, side by side in few processes."""
    folder.mkdir(exist_ok=True)
    library = max(p.stat().st_mtime for p in (ROOT / "src").rglob("*.py"))
    old = [
        str(script)
        for script, picture in pictures.items()
        if not all(
            p.exists() and p.stat().st_mtime > max(library, script.stat().st_mtime)
            for p in (folder / f"{script.stem}.out", folder / picture)
        )
    ]
    n = min(len(old), os.cpu_count() or 1)
    started = [
        subprocess.Popen(
            [sys.executable, __file__, *old[i::n]],
            cwd=folder,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"MPLBACKEND": "Agg"},
        )
        for i in range(n)
    ]
    said = [process.communicate()[1] for process in started]
    if any(process.returncode for process in started):
        raise RuntimeError("an example failed:\n" + "\n".join(said))


def run(script):
    """Run an example here, and keep what it prints beside its picture."""
    import matplotlib.pyplot as plt

    with contextlib.redirect_stdout(io.StringIO()) as printed:
        runpy.run_path(script, run_name="__main__")
    plt.close("all")
    Path(f"{Path(script).stem}.out").write_text(printed.getvalue(), encoding="utf-8")


# -- what is filled in ----------------------------------------------------------------------------


def fill_in(app, name, source):
    """Fill in the lists of methods; point links at the reports to their copy inside the site."""
    source[0] = filled(source[0], name)


def filled(text, name):
    """Return the text of a page with its lists, and links that hold inside the site."""
    up = "../" * name.count("/")
    text = text.replace("<!-- methods -->", methods(up))
    text = text.replace("<!-- house -->", house())
    text = re.sub(r"\((?:\.\./)*benchmarks/reports(/[^)]*)?\)", lambda m: link(m, up), text)
    text = re.sub(r"\n\n```$", "\n```", text, flags=re.M)  # the blank line that ends a doctest
    if name == "contributing":
        text = re.sub(r"\]\(docs/", "](", text)
    return text


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


def house():
    """Return the rooms from the top down, with the rooms that each imports, as they are now."""
    rooms = [p.name for p in (ROOT / "src" / "tabweave").iterdir() if (p / "__init__.py").exists()]
    uses = {room: imports(room) & set(rooms) - {room} for room in rooms}
    floors: dict = {}
    while len(floors) < len(rooms):
        free = [r for r in rooms if r not in floors and uses[r] <= floors.keys()]
        free = free or [min((r for r in rooms if r not in floors), key=lambda r: len(uses[r]))]
        floors |= dict.fromkeys(free, max(floors.values(), default=-1) + 1)
    lines = ["| room | what it is | stands on |", "|---|---|---|"]
    for room in sorted(rooms, key=lambda r: (-floors[r], r)):
        about = summary(import_module(f"tabweave.{room}")).rstrip(".")
        below = ", ".join(f"`{r}`" for r in sorted(uses[room], key=lambda r: (-floors[r], r)))
        lines.append(f"| `{room}` | {about} | {below} |")
    return "\n".join(lines)


def imports(room):
    """Return the rooms that the files of a room import at their top."""
    found = set()
    for path in (ROOT / "src" / "tabweave" / room).rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        found |= set(re.findall(r"^from tabweave\.(\w+)", text, flags=re.M))
    return found


def page_of(entry):
    """Return the page of an embedder."""
    return f"systems/{entry.page}.md"


def link(match, up):
    """Return the address of a report inside the site."""
    return f"({up}reports{match.group(1) or '/speed.md'})"


# -- for all readers ------------------------------------------------------------------------------

# What the theme leaves out for those who use a keyboard or have a page read to them.
DRESS = {
    '<p class="caption" role="heading">': '<p class="caption" role="heading" aria-level="2">',
    '<aside class="sidebar-drawer">': '<aside class="sidebar-drawer" aria-label="Site">',
    '<aside class="toc-drawer': '<aside aria-label="Page" class="toc-drawer',
    "<pre>": '<pre tabindex="0">',
    '<div class="table-wrapper': '<div tabindex="0" class="table-wrapper',
    '<noscript>\n<div class="admonition error">': "<h1>Search</h1>\n"
    '<noscript>\n<div class="admonition error">',
}


def dress(out):
    """Give the pages levels of headings, names of landmarks, and focus to what scrolls."""
    for path in out.rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        dressed = text
        for before, after in DRESS.items():
            dressed = dressed if after in dressed else dressed.replace(before, after)
        if dressed != text and path.name != "live-report.html":
            path.write_text(dressed, encoding="utf-8")


# -- checking ------------------------------------------------------------------------------------


def check(out):
    """Raise for links of the site that lead nowhere, and for roles that were not rendered."""
    texts = {p: p.read_text(encoding="utf-8") for p in out.rglob("*.html")}
    ids = {p: set(re.findall(r'\bid="([^"]+)"', text)) for p, text in texts.items()}
    bad = []
    for page, text in texts.items():
        where = page.relative_to(out)
        prose = re.sub(r"<pre[^>]*>.*?</pre>", "", text, flags=re.S)
        raw = re.findall(r":(?:meth|class|func|mod):`[^<]*", prose)
        bad += [f"{where}: {role}" for role in raw]
        for address in re.findall(r'<a [^>]*href="([^"]+)"', text):
            path, _, anchor = address.partition("#")
            found = (page.parent / path).resolve() if path else page
            if re.match(r"[a-z]+:", address) or found.is_dir():
                continue
            if not found.exists() or (anchor and anchor not in ids.get(found, {anchor})):
                bad.append(f"{where}: {address}")
    if bad:
        raise RuntimeError("links lead nowhere, or roles are raw:\n" + "\n".join(sorted(set(bad))))


# -- for assistants -------------------------------------------------------------------------------


def finish(app, error):
    """Write ``llms.txt``, a list of the pages, and ``tabweave.md``, all of them as one text."""
    if error is None and app.builder.format == "html":
        out = Path(app.outdir)
        people = titanic()
        rows = people.frame().assign(fate=people.y)
        report(rows, out / "live-report.html", title="The Titanic", target="fate")
        dress(out)
        check(out)
        pages = [p for p in readable() if p.exists()]
        about = (
            "> Representation and similarity learning on complex tables, in one pass of counting."
        )
        lines = ["# tabweave", "", about, "", "- [All pages as one text](tabweave.md)"]
        lines += [f"- [{title(p)}]({p.relative_to(DOCS).with_suffix('.html')})" for p in pages]
        out.joinpath("llms.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
        whole = [filled(p.read_text(encoding="utf-8"), "whole") for p in pages]
        out.joinpath("tabweave.md").write_text("\n\n".join(whole), encoding="utf-8")


def readable():
    """Return the pages that are written by hand, in the order of the site."""
    first = [DOCS / f"{n}.md" for n in ("index", "install", "tour", "choose")]
    rest = [*sorted((DOCS / "howto").glob("*.md")), *sorted((DOCS / "concepts").glob("*.md"))]
    rest += [*sorted((DOCS / "systems").glob("*.md")), *sorted(DOCS.glob("*.md"))]
    return list(dict.fromkeys(p for p in [*first, *rest] if p.name not in MADE))


if __name__ == "__main__":  # examples one after the other: the library is loaded once
    for each in sys.argv[1:]:
        run(each)
