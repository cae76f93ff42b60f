"""The site: `make docs` builds it from the Markdown files, strictly; the sources lie in the root."""

from __future__ import annotations

from importlib.metadata import version as version_of

project = "Crow"
author = "The Crow authors"
copyright = author  # noqa: A001 - Sphinx's word
release = version = version_of("crow-acp")

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.intersphinx",
    "sphinx_external_toc",
]
external_toc_path = "docs/_toc.yml"
include_patterns = ["docs/**.md", "README.md", "CONTRIBUTING.md", "CHANGELOG.md"]
nitpicky = True
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]
html_theme = "shibuya"
html_title = "Crow"
html_theme_options = {"accent_color": "violet"}
