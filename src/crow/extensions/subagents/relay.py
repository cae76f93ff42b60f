"""A sub-agent's client: shows its work as output of the call that began it, asks its caller's user.

What it says is not shown: that is the call's result.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from crow.events import Notice, Retrying, ToolEnded, ToolPending, ToolProgress, ToolStarted
from crow.ports import FormClient, PageClient, SubagentClient, implements, is_attended

if TYPE_CHECKING:
    from crow import ToolContext
    from crow.events import Event, Filled, Form, PermissionRequest, Question
    from crow.tools import Diff

WIDTH = 160


class Relay:
    """Stands between a sub-agent and the client of ``call``, the call that began it.

    A client whose ``shows_subagents`` is true gets all of it, too, under the sub-agent's own id.

    Once it ``is_left``, nobody is shown a line or asked: the call has ended before its work.
    ``turn`` is a lock: users are asked one question at a time, however many agents have one.
    ``tools`` counts the calls that ran, ``changed`` holds what they made of files,
    by path; where only parts of a file are known, each by a number of its own.
    """

    def __init__(self, call: ToolContext, turn: asyncio.Lock) -> None:
        self.files = call.client.files
        self.terminals = call.client.terminals
        self.call = call
        self.client = call.client
        self.turn = turn
        self.tools = 0
        self.is_left = False
        self.changed: dict[tuple[str, int | None], Diff] = {}
        self._asked: set[str] = set()
        self._nested: set[str] = set()

    async def update(self, session_id: str, event: Event) -> None:
        """Show a line of what the sub-agent does; nothing once its caller was cancelled."""
        if isinstance(event, ToolStarted):
            self.tools += 1
        elif isinstance(event, ToolEnded):
            self._keep(event.result.diffs)
        if self._passes_on(event):
            await self.client.update(session_id, event)
        if self.call.run.cancelled or self.is_left:
            return
        if line := self._line(event):
            await self.call.progress(line)

    def _passes_on(self, event: Event) -> bool:
        """True for what is shown as it is, beside the line that tells of it."""
        if self.shows_subagents:
            if isinstance(event, ToolPending):
                self._asked.add(event.call.id)
            return True
        if isinstance(event, Notice):
            return not self.call.run.cancelled
        return isinstance(event, ToolStarted | ToolEnded) and event.call.id in self._asked

    def _keep(self, diffs: Iterable[Diff]) -> None:
        """Join what several calls changed in one file."""
        for diff in diffs:
            key = diff.path, diff.line and len(self.changed)
            first = self.changed.pop(key, diff)
            if first.old != diff.new:
                self.changed[key] = replace(diff, old=first.old)

    def _line(self, event: Event) -> str:
        match event:
            case ToolStarted(call, _, title):
                if call.name == self.call.name:
                    self._nested.add(call.id)
                told = title if title.startswith(call.name) else f"{call.name} {title}"
                return f"{in_a_line(told)}\n"
            case ToolEnded(call, outcome, result) if outcome not in ("ok", "answered"):
                return f"  {outcome}: {in_a_line(f'{call.name}: {result.text}')}\n"
            case ToolProgress(call_id, text) if call_id in self._nested:
                return "".join(f"  {line}" for line in text.splitlines(keepends=True))
            case Retrying(_, delay, reason):
                return f"{in_a_line(reason)}; trying again in {max(delay, 1):.0f} s\n"
            case _:
                return ""

    @property
    def shows_subagents(self) -> bool:
        """Whether the client shows a sub-agent's whole work, in a place of its own."""
        return implements(self.client, SubagentClient) and self.client.shows_subagents

    @property
    def answers(self) -> bool:
        """Whether somebody is there to answer."""
        return not self.is_left and is_attended(self.client)

    async def permission(self, session_id: str, request: PermissionRequest) -> str | None:
        """Ask the user; a call that is asked about is shown by itself, to its end."""
        if self.is_left:
            return None
        async with self.turn:
            if request.call.id not in self._asked:
                self._asked.add(request.call.id)
                shown = ToolPending(request.call, request.title, request.kind, request.locations)
                await self.client.update(session_id, shown)
            return await self.client.permission(session_id, request)

    async def ask(self, session_id: str, question: Question) -> Any:
        """Ask the user something else."""
        if self.is_left:
            return question.default
        async with self.turn:
            return await self.client.ask(session_id, question)

    async def fill_in(self, session_id: str, form: Form) -> Filled | None:
        """Show the user a form; None where their client shows none."""
        client = self.client
        if self.is_left or not implements(client, FormClient):
            return None
        async with self.turn:
            return await client.fill_in(session_id, form)

    async def complete(self, session_id: str, page_id: str) -> None:
        """The user is done with a page."""
        if implements(self.client, PageClient):
            await self.client.complete(session_id, page_id)


def in_a_line(text: str) -> str:
    """A text as one short line."""
    line = " ".join(text.split())
    return line if len(line) <= WIDTH else f"{line[: WIDTH - 1].rstrip()}…"
