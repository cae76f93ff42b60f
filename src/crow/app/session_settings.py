"""A session's settings, as their files were when they were read last."""

from __future__ import annotations

import asyncio
from dataclasses import field
from pathlib import Path
from typing import Any

from crow.core.session import Session
from crow.core.support.frozen import mutable
from crow.settings import Memory, Settings

NAME = "settings"


@mutable
class SessionSettings:
    """The settings of one session, how their files looked, and what was said of them.

    ``cwd`` is the directory that they were read for. ``would_run`` is how the project's files
    looked that are trusted or not as a whole, ``asking`` that the user is being asked about them.
    ``begins`` says that hooks that hang now will hear of the session's beginning. ``unjudged`` says
    why no call may run: nobody judges as the settings want.
    """

    settings: Settings
    memory: Memory
    cwd: str
    would_run: tuple[Any, ...] = ()
    told: set[str] = field(default_factory=set[str])
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    asking: bool = False
    begins: bool = False
    unjudged: str = ""

    @property
    def project(self) -> Path:
        """The project's directory."""
        return Path(self.settings.project)


def ground_of(session: Session) -> SessionSettings | None:
    """What holds in a session."""
    return session.root.cache.get(NAME)
