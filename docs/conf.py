"""The site: Sphinx reads these pages, and those that docs/_pages.py makes before each build."""

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import _pages
from docutils.nodes import SkipNode

from tabweave import __version__

project = "tabweave"
author = copyright = "the tabweave authors"
version = release = __version__
language = "en"

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx_copybutton",
]
exclude_patterns = ["_*"]
myst_enable_extensions = ["dollarmath", "attrs_inline", "attrs_block", "colon_fence"]
myst_heading_anchors = 3
suppress_warnings = ["myst.header"]  # reports begin their parts as they like

# The reference: one page for each public name, written by _pages.py.
autodoc_default_options = {"members": True, "member-order": "bysource"}
autodoc_typehints = "none"
autodoc_inherit_docstrings = True
numpydoc_show_class_members = False
numpydoc_xref_param_type = False
add_module_names = False
python_use_unqualified_type_names = True

# Formulas are typeset by KaTeX from files beside the pages: the site works from disk.
html_math_renderer = "katex"
html_js_files = [
    ("katex/katex.min.js", {"defer": "defer"}),
    ("katex/typeset.js", {"defer": "defer"}),
]

# Code is copied without prompts and without what it prints.
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_only_copy_prompt_lines = True

html_theme = "furo"
html_title = "tabweave"
html_static_path = ["_static"]
html_css_files = ["katex/katex.min.css", "site.css"]
html_show_sourcelink = False
# The colours of reports and the studio (style.css).
html_theme_options = {
    "navigation_with_keys": True,
    "light_css_variables": {
        "color-brand-primary": "#2d5f8f",
        "color-brand-content": "#2d5f8f",
        "color-brand-visited": "#751a65",
        "color-background-primary": "#faf9f6",
        "color-background-secondary": "#f3f1ec",
        "color-background-border": "#e4e1da",
        "color-foreground-primary": "#23262b",
        "color-foreground-secondary": "#5f6570",
        "color-foreground-muted": "#5f6570",
    },
    "dark_css_variables": {
        "color-brand-primary": "#86b5e6",
        "color-brand-content": "#86b5e6",
        "color-brand-visited": "#c9a3d0",
        "color-background-primary": "#14161a",
        "color-background-secondary": "#1b1e23",
        "color-background-border": "#31353c",
        "color-foreground-primary": "#e7e5e0",
        "color-foreground-secondary": "#a3a8b1",
        "color-foreground-muted": "#a3a8b1",
    },
}
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "a11y-high-contrast-dark"


def inline(self, node):
    """Write a formula inside a line, for KaTeX to typeset."""
    self.body.append(self.starttag(node, "span", "", CLASS="math"))
    self.body.append(self.encode(node.astext()) + "</span>")
    raise SkipNode


def display(self, node):
    """Write a formula on lines of its own."""
    self.body.append(self.starttag(node, "div", "", CLASS="math"))
    self.body.append(self.encode(node.astext()) + "</div>\n")
    raise SkipNode


def escape(app, what, name, thing, options, lines):
    """Keep the underscore of a fitted attribute inside a type from being read as a link."""
    for i, line in enumerate(lines):
        if re.match(r"\s*[\w, ]+ : ", line):
            head, colon, kind = line.partition(" : ")
            lines[i] = head + colon + re.sub(r"(\w)_(?=[,)\s]|$)", r"\1\\_", kind)


def setup(app):
    """Tell Sphinx what is ours."""
    app.connect("autodoc-process-docstring", escape, priority=400)  # before numpydoc
    app.add_html_math_renderer("katex", (inline, None), (display, None))
    app.connect("builder-inited", lambda app: _pages.make())
    app.connect("source-read", _pages.fill_in)
    app.connect("build-finished", _pages.finish)
