"""A program's conversation with a session, from its first line to the end of its input."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterable, Awaitable, Callable
from functools import partial
from time import perf_counter
from typing import Any, cast

from crow.core.agent import Agent
from crow.core.hooks.contexts import SessionContext
from crow.core.hooks.run_context import Reply
from crow.core.messages import Content
from crow.core.session import Session
from crow.project.front_matter_event import use_front_matter
from crow.stream_json.client import StreamClient
from crow.stream_json.control import Control, deciding, hooks_table
from crow.stream_json.init import init, settle
from crow.stream_json.lines import ControlError, Lines, Message, as_object
from crow.stream_json.prompts import Prompt, prompt_of
from crow.stream_json.result import result, size_in
from crow.stream_json.stopwatch import Stopwatch

SOURCE = "stream-json"
"""Where the hooks of a program are from, for people."""
DECIDING = f"{SOURCE} (can_use_tool)"
NOTHING: tuple[str, ...] = ("keep_alive", "control_cancel_request", "update_environment_variables")
"""Kinds of lines that need no answer and mean nothing here."""

Answer = Callable[[Session, Content], Awaitable[Reply]]


class Conversation:
    """Takes the lines of a program one by one; prompts are answered in their order.

    ``opens`` gives the session when there is a first word, ``answer`` a prompt's reply. With
    ``replays`` each prompt is told back with its id. ``status`` is 1 where the last turn failed.
    """

    def __init__(
        self,
        agent: Agent,
        lines: Lines,
        client: StreamClient,
        opens: Callable[[], Awaitable[Session]],
        answer: Answer,
        *,
        replays: bool = False,
    ) -> None:
        self.agent = agent
        self.lines = lines
        self.client = client
        self.status = 0
        self._opens = opens
        self._answer = answer
        self._replays = replays
        self._session: Session | None = None
        self._watch = Stopwatch()
        self._opening = asyncio.Lock()
        self._prompts: asyncio.Queue[Prompt | None] = asyncio.Queue()
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self, given: AsyncIterable[str]) -> None:
        """Take lines until there are no more, and answer all prompts and requests."""
        answering = asyncio.create_task(self._answer_all())
        try:
            async for line in given:
                if line.strip():
                    self._take(line)
            self._prompts.put_nowait(None)
            self.lines.end()
            await answering
            await asyncio.gather(*self._tasks)
        finally:
            answering.cancel()
            for task in self._tasks:
                task.cancel()

    def _take(self, line: str) -> None:
        """Take a line. Raises `ControlError` for one that nobody can read."""
        try:
            message: Any = json.loads(line)
        except ValueError as error:
            raise ControlError(f"a line of standard input is no JSON ({error})") from None
        if not isinstance(message, dict):
            raise ControlError("a line of standard input is no JSON object")
        message = cast(Message, message)
        match message.get("type"):
            case "user":
                self._prompts.put_nowait(prompt_of(message))
            case "control_request":
                self._begin(self._control(message))
            case "control_response":
                self.lines.answered(as_object(message.get("response")))
            case kind if kind in NOTHING:
                pass
            case kind:
                raise ControlError(f"a line of standard input has the type {kind!r}")

    def _begin(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def session(self) -> Session:
        """The session, opened by who needs it first."""
        async with self._opening:
            if self._session is None:
                self._session = session = await self._opens()
                self.client.attach(self.agent, session)
                session.use(self._watch, name="stopwatch of the stream")
                if self.client.answers:
                    await self._hang(session, DECIDING, deciding(self.client.decide))
            return self._session

    async def _hang(self, session: Session, source: str, table: dict[str, Any]) -> bool:
        """Hang a table of hooks; False where hooks are switched off, or nobody runs such."""
        await use_front_matter(SessionContext(self.agent, session), source, {"hooks": table})
        return any(name.endswith(source) for name in session.extensions)

    async def _initialize(self, session: Session, request: Message) -> None:
        """Take what a program has to say first. Raises `ControlError` where its hooks cannot run.

        They may be what guards it: without them nothing begins.
        """
        self.client.tells_all |= request.get("forwardSubagentText") is True
        table = hooks_table(self.lines, request.get("hooks"))
        if table and not await self._hang(session, SOURCE, table):
            raise ControlError(
                "hooks are switched off here (disableAllHooks, or without shell_hooks)"
            )

    async def _control(self, message: Message) -> None:
        """Answer a request."""
        request_id = message.get("request_id")
        request = as_object(message.get("request"))
        try:
            session = await self.session()
            if request.get("subtype") == "initialize":
                await self._initialize(session, request)
            control = Control(self.agent, session)
            said: Message = {"subtype": "success", "response": await control.answer(request)}
        except Exception as error:  # noqa: BLE001 - whoever asked is told
            said = {"subtype": "error", "error": str(error) or type(error).__name__}
        self.lines.put({"type": "control_response", "response": {**said, "request_id": request_id}})

    async def _answer_all(self) -> None:
        while (prompt := await self._prompts.get()) is not None:
            await self.turn(prompt.content, prompt)

    async def turn(self, content: Content, prompt: Prompt | None = None) -> None:
        """Answer a prompt, between its first and its last message."""
        session = await self.session()
        began, watch = perf_counter(), self._watch
        self.client.hold()
        await settle(self.agent, session)
        watch.usage.clear()
        turns, asked, denied = watch.turns, watch.seconds, len(self.client.denied)
        self.lines.put(init(self.agent, session, self.client.model()))
        self.client.begin()
        if prompt is not None:
            prompt.note(session)
            if self._replays:
                self.lines.put(prompt.replayed(session))
        self.client.has_interrupted = False
        reply = await self._answer(session, content)
        told = result(
            reply,
            model=self.client.model(),
            others=watch.usage,
            size=partial(size_in, self.agent),
            turns=max(1, watch.turns - turns),
            seconds=perf_counter() - began,
            asked=watch.seconds - asked,
        )
        if self.client.has_interrupted:
            told |= {"subtype": "error_during_execution", "is_error": True}
        self.status = int(told["is_error"])
        self.lines.put({**told, "permission_denials": self.client.denied[denied:]})
