"""Looking for a back end: once for all sessions, before a first command needs one.

What was found is remembered for as long as the machine stays the same.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from crow.dataclasses import frozen

if TYPE_CHECKING:
    from crow.extensions.sandbox.backend import Backend

NOTHING = "none"
"""The name of the back end that holds nothing."""
_TRUSTED = ("/usr/bin", "/bin", "/usr/local/bin", "/run/current-system/sw/bin")
_SWITCHES = (
    "kernel/apparmor_restrict_unprivileged_userns",
    "kernel/unprivileged_userns_clone",
    "user/max_user_namespaces",
)
"""The kernel's own for namespaces, Ubuntu's and Debian's among them."""


class Finder:
    """Finds the back end that works here, or the one of the name that is ``wanted``.

    What an earlier process has found counts, unless it is to be looked for ``anew``.
    """

    def __init__(self, wanted: str | None = None, *, anew: bool = False) -> None:
        self.wanted = wanted
        self._anew = anew
        self._lock = Lock()
        self._found: Backend | None = None
        self._before: str | None = None  # what an earlier process has found
        self._why = ""

    def find(self) -> Backend:
        """The back end; looked for at the first call, which blocks meanwhile."""
        with self._lock:
            if self._found is None:
                self._found = self._look()
            return self._found

    def _look(self) -> Backend:
        from crow.extensions.sandbox.backend import Unconfined
        from crow.extensions.sandbox.probe import find_backend

        try:
            return find_backend(self.wanted, anew=self._anew)
        except OSError as error:
            self._why = str(error)
            return Unconfined()

    @property
    def why(self) -> str:
        """Why there is none. May block."""
        if self.wanted == NOTHING:
            return "CROW_SANDBOX=none is set"
        if not self._why:
            from crow.extensions.sandbox.probe import everyone

            reasons = [f"{each.name}: {each.why_not}" for each in everyone() if each.why_not]
            self._why = f"no back end works here ({'; '.join(reasons)})"
        return self._why

    def forget(self) -> None:
        """Look again at the next command: what was found does not work any more."""
        with self._lock:
            self._found, self._before, self._anew = None, "", True

    @property
    def is_done(self) -> bool:
        """True where `find` need not look any more."""
        return self._found is not None

    @property
    def known(self) -> str:
        """The back end's name as far as it is known; empty before it was looked for."""
        if self._found is not None:
            return self._found.name
        if self._before is None:
            found = None if self.wanted else remembered()
            self._before = found.name if found else ""
        return self._before

    @property
    def is_bare(self) -> bool:
        """True where nothing is known to hold commands: it is looked for at once, then."""
        return self.known in ("", NOTHING)

    @property
    def line(self) -> str:
        """What is known of it, in a few words."""
        return {
            "": "looked for with the first command",
            NOTHING: "nothing, with all that you may do",
        }.get(self.known, self.known)


class SwitchedOff:
    """The sandbox that the settings have switched off; a `crow.keys.Sandbox`."""

    name = ""
    unasked = over_ask = reads = escapes = False
    excluded = ()

    def __init__(self, off: str) -> None:
        self._off = off

    def has_refused(self, command: str) -> bool:
        """Nothing refuses anything."""
        del command
        return False

    @property
    def line(self) -> str:
        """Who has switched it off."""
        by = f" ({self._off})" if self._off else ""
        return f"nothing, with all that you may do: the sandbox is switched off{by}"


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
    path = _file()
    told = json.dumps({"for": _machine(), "name": name, "about": about})
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        draft = path.with_name(f"{path.name}.{os.getpid()}")
        draft.write_text(told)
        draft.replace(path)
    except OSError:
        return  # it is found again


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
