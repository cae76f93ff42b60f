"""The command line that starts Crow from a program that knows no PATH."""

from __future__ import annotations

import os
import sys
from pathlib import Path

PACKAGE = "crow-acp"


def installed_command() -> list[str]:
    """The command as it was started, unless that will not last: `uvx` runs from its cache."""
    if "archive-v0" in Path(sys.prefix).parts:
        return [which("uvx") or "uvx", "--from", PACKAGE, "crow"]
    started = which(sys.argv[0]) if Path(sys.argv[0]).stem == "crow" else None
    found = started or which(str(Path(sys.executable).with_name("crow")))
    if found is None:
        return [sys.executable, "-P", "-m", "crow"]
    return [os.path.abspath(found)]  # noqa: PTH100 - a link stays: it survives an upgrade


def which(program: str) -> str | None:
    """Where a program is; a path is looked at without `shutil`, which takes 4 ms to import."""
    if os.path.isfile(program) and os.access(program, os.X_OK) and os.path.dirname(program):  # noqa: PTH113, PTH120
        return program
    import shutil

    return shutil.which(program)
