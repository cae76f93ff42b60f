"""How to start Crow from a program that knows no PATH."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

PACKAGE = "crow-acp"


def installed_command() -> list[str]:
    """The command as it was started, unless that will not last: `uvx` runs from its cache."""
    if "archive-v0" in Path(sys.prefix).parts:
        return [shutil.which("uvx") or "uvx", "--from", PACKAGE, "crow"]
    started = shutil.which(sys.argv[0]) if Path(sys.argv[0]).stem == "crow" else None
    beside = shutil.which("crow", path=str(Path(sys.executable).parent))
    found = started or beside
    if found is None:
        return [sys.executable, "-m", "crow.cli"]
    return [os.path.abspath(found)]  # noqa: PTH100 - a link stays: it survives an upgrade
