"""What settings hooks remember of a session while it is open."""

from __future__ import annotations

import re
import uuid
from dataclasses import dataclass, field
from pathlib import Path

from crow.core.context import Context
from crow.core.session import Session
from crow.extensions.shell_hooks.http import Web
from crow.extensions.shell_hooks.transcript import Transcript

NAME = "shell_hooks"


def root_of(session: Session) -> Session:
    """The session that a person talks to."""
    while session.parent is not None:
        session = session.parent
    return session


def plain(name: str) -> str:
    """An id as a name for a file."""
    return re.sub(r"[^\w.-]", "_", name).lstrip(".")[:100] or "session"


@dataclass(slots=True)
class Memory:
    """One session's transcript, connections, and what its hooks were told last."""

    transcript: Transcript
    folder: Path
    web: Web = field(default_factory=Web)
    model: str | None = None
    run: object = None
    prompt_id: str = ""

    @classmethod
    def of(cls, session: Session, directory: Path) -> Memory:
        """The session's own, made when it is first wanted."""
        memory: Memory | None = session.cache.get(NAME)
        if memory is None:
            root = plain(root_of(session).id)
            path = directory / f"{root}.jsonl"
            if session.parent is not None:
                path = directory / root / "subagents" / f"agent-{plain(session.id)}.jsonl"
            memory = cls(Transcript(path, session), directory / root / "tool-results")
            session.cache[NAME] = memory
        return memory

    def prompt(self, ctx: Context) -> str:
        """The id of the prompt that is being answered, or was last."""
        if ctx.run is not None and ctx.run is not self.run:
            self.run, self.prompt_id = ctx.run, str(uuid.uuid4())
        return self.prompt_id

    async def aclose(self) -> None:
        """Close the connections."""
        await self.web.aclose()
