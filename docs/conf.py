"""The site: `make docs` builds it from the Markdown files, strictly; the sources lie in the root.

`_toc.yml` is the order of the pages, so that no page needs a word for Sphinx. What is on the site
alone is in `api`: the docstrings of the names in reference.md, under the headings that they have there.
"""

from __future__ import annotations

import inspect
import re
from importlib import import_module
from importlib.metadata import version as version_of
from pathlib import Path
from typing import Any

from pygments.lexers.data import JsonLexer

project = "Crow"
author = copyright = "The Crow authors"  # noqa: A001 - Sphinx's word
release = version = version_of("crow-acp")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx_external_toc"]
external_toc_path = "docs/_toc.yml"
include_patterns = ["docs/**.md", "docs/api/*.rst", "*.md"]
exclude_patterns = ["AGENTS.md", "CLAUDE.md"]
myst_heading_anchors = 4

nitpicky = True
nitpick_ignore_regex = [
    (r"py:.*", r"(_?asyncio|argparse|collections|os|pathlib|signal|types|typing)\..*"),
    (r"py:class", r"(crow\.)?([\w.]+\[)?[\w.]+"),  # types of signatures that nobody imports
    (r"py:obj", r".*"),  # a word between backticks in a docstring that is no public name
]
default_role = "py:obj"
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
maximum_signature_line_length = 110

html_theme = "shibuya"
html_extra_path = ["_root"]
templates_path = ["_templates"]
html_title = "Crow"
html_theme_options = {"accent_color": "violet"}
html_copy_source = html_show_sourcelink = False


def write_api(app: Any) -> None:
    """Write a page for each public module."""
    docs = Path(app.confdir)
    (docs / "api").mkdir(exist_ok=True)
    text = (docs / "reference.md").read_text("utf-8")
    for part in re.split(r"^## (?=`crow)", text, flags=re.MULTILINE)[1:]:
        name = part.split("`")[1]
        lines = [f"``{name}``", "=" * 40, "", f".. automodule:: {name}", ""]
        for line in part.splitlines():
            if line.startswith("### "):
                lines += [line[4:], "-" * 40, ""]
            elif row := re.match(r"\| `(\w+)` \|", line):
                lines += directive(name, row[1])
        page = docs / "api" / f"{name}.rst"
        if not page.exists() or page.read_text("utf-8") != "\n".join(lines):
            page.write_text("\n".join(lines), "utf-8")


def directive(module: str, name: str) -> list[str]:
    """What documents a name: once, in the module that comes first."""
    thing = getattr(import_module(module), name)
    kind = "class" if inspect.isclass(thing) else "function" if callable(thing) else "data"
    lines = [f".. auto{kind}:: {module}.{name}", *["   :members:"] * (kind == "class")]
    is_again = module != "crow" and hasattr(import_module("crow"), name)
    return [*lines, *["   :no-index:"] * is_again, ""]


def without_bounds(app: Any, what: Any, name: Any, thing: Any, options: Any, *signature: Any) -> Any:
    """A signature whose ``Annotated`` types are the types alone."""
    bounds = r"~?(?:typing|types)\.Annotated\[(.+?), ~?[\w.]*Arg\(.*?\)\]"
    return tuple(each and re.sub(bounds, r"\1", each) for each in signature)


def setup(app: Any) -> None:
    """Teach Sphinx what the pages need."""
    app.add_lexer("jsonc", JsonLexer)
    app.add_lexer("jsonl", JsonLexer)
    app.connect("builder-inited", write_api)
    app.connect("autodoc-process-signature", without_bounds)
