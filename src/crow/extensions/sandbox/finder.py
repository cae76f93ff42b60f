"""Looking for a back end: once for all sessions, when a command first needs one."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from crow.extensions.sandbox.backend import Backend

NOTHING = "none"
"""The name of the back end that holds nothing."""


class Finder:
    """Finds the back end that works here, or the one of the name that is ``wanted``."""

    def __init__(self, wanted: str | None = None) -> None:
        self.wanted = wanted
        self.why = "no back end works here"
        self._lock = Lock()
        self._found: Backend | None = None

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
            return find_backend(self.wanted)
        except OSError as error:
            self.why = str(error)
            return Unconfined()

    def forget(self) -> None:
        """Look again at the next command: what was found does not work any more."""
        with self._lock:
            self._found = None

    @property
    def known(self) -> str:
        """The back end's name as far as it is known; empty before it was looked for."""
        return "" if self._found is None else self._found.name

    @property
    def found_nothing(self) -> bool:
        """True where it is known that nothing works."""
        return self.known == NOTHING

    @property
    def line(self) -> str:
        """What is known of it, in a few words."""
        return {"": "looked for with the first command", NOTHING: "nothing"}.get(
            self.known, self.known
        )
