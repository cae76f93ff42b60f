"""The memory of settings hooks, a session's while it is open."""

from __future__ import annotations

import asyncio
import re
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

from crow.extensions.shell_hooks.http import Web
from crow.extensions.shell_hooks.transcript import Transcript
from crow.keys import Key
from crow.process import ProcessReaper

if TYPE_CHECKING:
    from crow import Context, Session

NAME = "shell_hooks"
SILENT: Key[bool] = Key("shell_hooks_silent")
"""The key of a session's ``cache`` that is true where a hook works itself: no hook fires there."""
SECONDS, MOST = 10.0, 30.0
"""How long the end of a run waits for a hook in the background: without ``timeout``, at most."""
EFFORTS = frozenset({"low", "medium", "high", "xhigh", "max"})


def effort_of(session: Session) -> str:
    """How hard the session's model is made to think, in the protocol's words; empty if unsaid."""
    level: object = session.options.get("params", {}).get("reasoning_effort")
    return level if isinstance(level, str) and level in EFFORTS else ""


def plain(name: str) -> str:
    """An id as a name for a file."""
    return re.sub(r"[^\w.-]", "_", name).lstrip(".")[:100] or "session"


@dataclass(slots=True)
class Display:
    """The part of a message being written that is held back: ``text``; ``index`` counts pieces."""

    text: str = ""
    index: int = 0
    shown: float = float("-inf")
    is_open: bool = True


@dataclass(slots=True)
class Memory:
    """One session's transcript, connections, and what its hooks were told last.

    ``later`` is context for the next prompt that the model answers, ``watched`` the files that
    hooks want to hear of. ``is_set_up`` says that Setup has run for this session, ``variables``
    are what hooks exported when it began, ``asked`` is when the model was asked last. ``displays``
    are what each extension holds back of a message.
    """

    transcript: Transcript
    folder: Path
    web: Web = field(default_factory=Web)
    model: str | None = None
    run: object = None
    prompt_id: str = ""
    later: list[str] = field(default_factory=list[str])
    watched: set[str] = field(default_factory=set[str])
    is_set_up: bool = False
    variables: bytes = b""
    displays: dict[object, Display] = field(default_factory=dict[object, Display])
    asked: float | None = None
    tasks: dict[asyncio.Task[Any], float] = field(default_factory=dict["asyncio.Task[Any]", float])
    reaper: ProcessReaper = field(default_factory=ProcessReaper)

    @classmethod
    def of(cls, session: Session, directory: Path) -> Memory:
        """The session's own, made when it is first wanted."""
        memory = MEMORY.get(session)
        if memory is None:
            root = plain(session.root.id)
            path = directory / f"{root}.jsonl"
            if session.parent is not None:
                path = directory / root / "subagents" / f"agent-{plain(session.id)}.jsonl"
            memory = cls(Transcript(path, session), directory / root / "tool-results")
            MEMORY.set(session, memory)
        return memory

    def prompt(self, ctx: Context) -> str:
        """The id of the prompt that is being answered, or was last."""
        if ctx.run is not None and ctx.run is not self.run:
            self.run, self.prompt_id = ctx.run, str(uuid.uuid4())
        return self.prompt_id

    def watch(self, task: asyncio.Task[Any], seconds: float = SECONDS) -> None:
        """Remember a hook in the background, and how long the end of a run waits for it."""
        self.tasks[task] = monotonic() + min(seconds, MOST) if seconds else 0.0
        task.add_done_callback(lambda done: self.tasks.pop(done, None))

    def working(self) -> list[str]:
        """The hooks in the background that the end of a run waits for, by name."""
        return [task.get_name() for task, until in self.tasks.items() if until]

    async def settle(self) -> list[str]:
        """Wait for the hooks in the background; which of them took too long, by name."""
        while self.working() and (left := max(self.tasks.values()) - monotonic()) > 0:
            await asyncio.wait(set(self.tasks), timeout=left, return_when="FIRST_COMPLETED")
            await asyncio.sleep(0)  # what ends may begin something
        return self.working()

    async def aclose(self) -> None:
        """Let the hooks in the background end, within a second; close the connections."""
        if self.tasks:
            _, late = await asyncio.wait(set(self.tasks), timeout=1)
            for task in late:
                task.cancel()
            if late:  # each ends its program, which takes half a second at most
                await asyncio.wait(late)
        await self.web.aclose()
        self.reaper.close()


MEMORY: Key[Memory] = Key(NAME)
