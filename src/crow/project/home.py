"""The user's folders: an empty or relative ``HOME`` names none, and the user's own is used.

The same is true of the variables by which the XDG specification names others.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

XDG = ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME")


def settle_home() -> None:
    """Let every look-up of ``~``, in this process and those it starts, find the user's own home.

    An empty ``HOME`` would be ``/`` there, and a relative one another folder in each directory,
    which may be anybody's. Relative XDG variables are taken away.
    """
    for name in XDG:
        if not os.path.isabs(os.environ.get(name, "/")):  # noqa: PTH117
            del os.environ[name]
    told = os.environ.get("HOME")
    if told is None or os.path.isabs(told):  # noqa: PTH117 - "" is no path
        return
    del os.environ["HOME"]
    own = os.path.expanduser("~")  # which says "~" where nobody knows
    if os.path.isabs(own):  # noqa: PTH117
        os.environ["HOME"] = own


def state_directory() -> Path:
    """Where Crow keeps what outlives a process, such as trust; the user's own."""
    if os.name == "nt" or sys.platform == "darwin":
        import platformdirs

        return Path(platformdirs.user_state_dir("crow", appauthor=False))
    told = os.environ.get("XDG_STATE_HOME", "")
    return Path(told if os.path.isabs(told) else Path.home() / ".local/state", "crow")  # noqa: PTH117


def config_directory() -> Path:
    """Where Crow keeps what a user has told it, such as keys; the user's own."""
    if os.name == "nt" or sys.platform == "darwin":
        import platformdirs

        return Path(platformdirs.user_config_dir("crow", appauthor=False))
    told = os.environ.get("XDG_CONFIG_HOME", "")
    return Path(told if os.path.isabs(told) else Path.home() / ".config", "crow")  # noqa: PTH117


def from_home(path: str | Path) -> str:
    """A path as people read it: what is in the user's home begins with ``~``."""
    place, home = Path(path), Path.home()
    return str(Path("~", place.relative_to(home))) if place.is_relative_to(home) else str(path)
