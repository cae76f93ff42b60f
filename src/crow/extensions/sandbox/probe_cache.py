"""A cache of the back end that works here, for as long as the machine stays the same."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from crow.dataclasses import frozen
from crow.project import write_atomically

_TRUSTED = ("/usr/bin", "/bin", "/usr/local/bin", "/run/current-system/sw/bin")
_SWITCHES = (
    "kernel/apparmor_restrict_unprivileged_userns",
    "kernel/unprivileged_userns_clone",
    "user/max_user_namespaces",
)
"""The kernel's own for namespaces, Ubuntu's and Debian's among them."""


@frozen
class Known:
    """The best back end, as it is remembered."""

    name: str
    about: str = ""


def remembered() -> Known | None:
    """What was found before on the same machine; None where it is not known any more."""
    try:
        about: dict[str, Any] = json.loads(_file().read_text())
        return Known(about["name"], about["about"]) if about["for"] == _machine() else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def remember(name: str, about: str) -> None:
    """Keep what was found; a machine without a sandbox is asked anew each time."""
    told = json.dumps({"for": _machine(), "name": name, "about": about})
    with suppress(OSError):  # it is found again
        write_atomically(_file(), told, private=True)


def bwrap() -> str | None:
    """Where bubblewrap's program is, in a folder of the system's; None where it is not."""
    return system_program("bwrap")


def system_program(name: str) -> str | None:
    """A program in a folder of the system's; None where there is none."""
    places = (f"{folder}/{name}" for folder in _TRUSTED)
    return next((path for path in places if os.access(path, os.X_OK)), None)


def _machine() -> list[str | int]:
    """What an answer depends on: kernel, programs, user, and whether users may make namespaces."""
    kernel, program = os.uname(), bwrap()
    time = [os.stat(program).st_mtime_ns] if program else []  # noqa: PTH116
    perl = system_program("perl") or ""
    return [kernel.release, kernel.version, os.geteuid(), *time, perl, *map(_switch, _SWITCHES)]


def _switch(name: str) -> str:
    try:
        with open(f"/proc/sys/{name}") as file:  # noqa: PTH123
            return file.read().strip()
    except OSError:
        return ""


def _file() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base, "crow", "sandbox.json")
