"""Looking for a back end: once for all sessions, before a first command needs one."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING

from crow.extensions.sandbox.probe_cache import remembered

if TYPE_CHECKING:
    from crow.extensions.sandbox.backend import Backend

NOTHING = "none"
"""The name of the back end that holds nothing."""


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
