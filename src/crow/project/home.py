"""The user's folders: an empty or relative ``HOME`` names none, and the user's own is used."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def settle_home() -> None:
    """Let every look-up of ``~``, in this process and those it starts, find the user's own home.

    An empty ``HOME`` would be ``/`` there, and a relative one another folder in each directory.
    """
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
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state", "crow")


def config_directory() -> Path:
    """Where Crow keeps what a user has told it, such as keys; the user's own."""
    if os.name == "nt" or sys.platform == "darwin":
        import platformdirs

        return Path(platformdirs.user_config_dir("crow", appauthor=False))
    told = os.environ.get("XDG_CONFIG_HOME", "")
    return Path(told if os.path.isabs(told) else Path.home() / ".config", "crow")  # noqa: PTH117
