"""Where the project is published from is what its links lead to.

A package index resolves no relative link. With ``CROW_REPOSITORY`` (``https://github.com/NAME/NAME``)
and ``CROW_TAG`` in the environment, as the release workflow sets them, the README's are made whole,
and the project has its addresses; without them both stay as they are.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

LINK = re.compile(r"(!?\[[^\]]*\])\((?!https?:|#)([^)]+)\)")


class Links(MetadataHookInterface):
    """Fills in the description and the addresses."""

    PLUGIN_NAME = "custom"

    def update(self, metadata: dict[str, Any]) -> None:
        """Called with what pyproject.toml says."""
        text = (Path(self.root) / "README.md").read_text("utf-8")
        home = os.environ.get("CROW_REPOSITORY", "").rstrip("/")
        if home:
            tag = os.environ.get("CROW_TAG") or "main"
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
