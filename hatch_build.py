"""Where the project is published from is what its links lead to.

A package index resolves no relative link. With ``CROW_REPOSITORY`` (``https://github.com/NAME/NAME``)
and ``CROW_TAG`` in the environment, as the release workflow sets them, the README's are made whole,
and the project has its addresses; without them both stay as they are.

The documentation that the wheel holds, as files of a skill, links to files that the wheel does not
hold: there a link is its text alone, or the whole address where that is known.
"""

from __future__ import annotations

import os
import re
from pathlib import Path, PurePosixPath
from posixpath import normpath, relpath
from tempfile import TemporaryDirectory
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

LINK = re.compile(r"(!?\[[^\]]*\])\((?!https?:|#)([^)]+)\)")


class Links(MetadataHookInterface):
    """Fills in the description and the addresses."""

    PLUGIN_NAME = "custom"

    def update(self, metadata: dict[str, Any]) -> None:
        """Called with what pyproject.toml says."""
        text = (Path(self.root) / "README.md").read_text("utf-8")
        home, tag = published()
        if home:
            text = LINK.sub(lambda found: whole(found, home, tag), text)
            metadata["urls"] = {
                "Homepage": home,
                "Documentation": f"{home}/blob/{tag}/docs/index.md",
                "Source": home,
                "Issues": f"{home}/issues",
                "Changelog": f"{home}/blob/{tag}/CHANGELOG.md",
            }
        metadata["readme"] = {"content-type": "text/markdown", "text": text}


def whole(found: re.Match[str], home: str, tag: str) -> str:
    """A link with its whole address; a picture's is the file itself."""
    kind = "raw" if found[1].startswith("!") else "blob"
    return f"{found[1]}({home}/{kind}/{tag}/{found[2]})"


def published() -> tuple[str, str]:
    """The address of the repository, empty where that is not known, and the tag there."""
    home = os.environ.get("CROW_REPOSITORY", "").rstrip("/")
    return home, os.environ.get("CROW_TAG") or "main"


class Pages(BuildHookInterface[Any]):
    """Puts pages into the wheel whose links lead to what is in it."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called before the files are gathered."""
        if version == "editable":
            return
        files = {
            each.distribution_path: each.path
            for each in self.build_config.builder.recurse_included_files()
        }
        self.folder = TemporaryDirectory()
        for number, (name, path) in enumerate(files.items()):
            if "/guide/" in name and name.endswith(".md"):
                text = Path(path).read_text("utf-8")
                mended = LINK.sub(lambda found, name=name: packaged(found, name, files), text)
                if mended != text:
                    copy = Path(self.folder.name, f"{number}.md")
                    copy.write_text(mended, "utf-8")
                    build_data["force_include"][str(copy)] = name

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Called when the wheel is there."""
        if version != "editable":
            self.folder.cleanup()


def packaged(found: re.Match[str], page: str, files: dict[str, str]) -> str:
    """A link of a page as it is where it leads to a file of the wheel, else what is left of it."""
    start, target = found[1], found[2]
    path, sharp, place = target.partition("#")
    here = PurePosixPath(page).parent
    wanted = normpath(here / path)
    if wanted in files:
        return found[0]
    root = next(each for each in (here, *here.parents) if each.parent.name == "guide")
    inside = normpath(PurePosixPath(relpath(here, root)) / path)  # as in the repository
    own = inside.partition("/")[2] if inside.startswith("src/") else ""
    if own in files:
        return f"{start}({relpath(own, here)}{sharp}{place})"
    home, tag = published()
    if home and "/docs" in page:
        kind = "raw" if start.startswith("!") else "blob"
        return f"{start}({home}/{kind}/{tag}/{inside}{sharp}{place})"
    text = start[start.index("[") + 1 : -1]
    return f"(A picture: {text}.)" if start.startswith("!") else text
