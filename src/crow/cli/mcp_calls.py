"""Calls of an MCP client, each with whoever can answer what it asks.

A client of the older protocol is sent a request meanwhile. One of the newer is answered with the
question, and calls again with what its user said: the work waits for that.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mcp import MCPError
from mcp.types import (
    CallToolRequestParams,
    CallToolResult,
    ClientCapabilities,
    ElicitationCapability,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    FormElicitationCapability,
    InputRequest,
    InputRequiredResult,
    TextContent,
)
from pydantic import ValidationError

from crow.core.events import Event, ToolStarted
from crow.core.ports.client import Files, Filled, Form, PermissionRequest, Question, Terminals

if TYPE_CHECKING:
    from mcp.server import ServerRequestContext

Answer = CallToolResult | InputRequiredResult
Work = Callable[["Caller"], Awaitable[CallToolResult]]
FORM = ClientCapabilities(elicitation=ElicitationCapability(form=FormElicitationCapability()))
ANY = ClientCapabilities(elicitation=ElicitationCapability())
ANSWER = "answer"
MODERN = "2026-07-28"
MOST_WAITING, LONGEST_WAIT = 100, 3600.0
"""Calls that may wait for an answer of the user's at the same time, and seconds that each may."""


@dataclass(eq=False)
class Asked:
    """A question that waits for what the user says to it."""

    params: ElicitRequestFormParams
    said: asyncio.Future[ElicitResult] = field(default_factory=asyncio.Future[ElicitResult])


class Caller:
    """The client of one call: hears what is done, and asks the user at the other end."""

    files: Files | None = None
    terminals: Terminals | None = None
    waits_for_servers = True

    def __init__(self, context: ServerRequestContext) -> None:
        self.context = context
        self.questions: asyncio.Queue[Asked] = asyncio.Queue()
        self._steps = 0

    @property
    def answers(self) -> bool:
        """True where the client can put a question to somebody."""
        session = self.context.session
        return any(map(session.check_client_capability, (FORM, ANY)))

    async def update(self, session_id: str, event: Event) -> None:
        """Tell of a tool that begins, as progress."""
        if isinstance(event, ToolStarted):
            self._steps += 1
            await self.context.session.report_progress(self._steps, None, event.title)

    async def permission(self, session_id: str, request: PermissionRequest) -> str | None:
        """Ask for permission; None where nobody can be asked, or wants to answer."""
        names = {option.name: option.id for option in request.options}
        parts = (request.title, request.description, request.details)
        return names.get(await self._choice("\n\n".join(filter(None, parts)), tuple(names)))

    async def ask(self, session_id: str, question: Question) -> Any:
        """Ask something else; the default where nobody can be asked, or wants to answer."""
        text = "\n\n".join(filter(None, (question.text, question.detail, question.url)))
        match question.kind:
            case "select":
                said: Any = await self._choice(text, question.choices)
            case "confirm":
                said = await self._asked(text, {"type": "boolean"})
            case "text":
                said = await self._asked(text, {"type": "string"})
        return question.default if said in (None, "") else said

    async def fill_in(self, session_id: str, form: Form) -> Filled | None:
        """Pass a form on as it is; None where nobody can be asked, and for a page."""
        if form.url or not self.answers:
            return None
        said = await self._put(form.text, dict(form.schema))
        return Filled(said.action, dict(said.content or {}))

    async def _choice(self, text: str, choices: tuple[str, ...]) -> str:
        said = await self._asked(text, {"type": "string", "enum": list(choices)})
        return said if said in choices else ""

    async def _asked(self, text: str, schema: dict[str, Any]) -> Any:
        if not self.answers:
            return None
        wanted = {"type": "object", "properties": {ANSWER: schema}, "required": [ANSWER]}
        said = await self._put(text, wanted)
        return (said.content or {}).get(ANSWER) if said.action == "accept" else None

    async def _put(self, text: str, schema: dict[str, Any]) -> ElicitResult:
        asked = Asked(ElicitRequestFormParams(message=text, requested_schema=schema))
        self.questions.put_nowait(asked)
        return await asked.said


class Callers:
    """The client of the session that calls of tools share: each call has its own `Caller`."""

    files: Files | None = None
    terminals: Terminals | None = None

    def __init__(self) -> None:
        self._open: dict[str, Caller] = {}

    @property
    def answers(self) -> bool:
        """True where somebody who calls can be asked."""
        return any(caller.answers for caller in self._open.values())

    @contextmanager
    def calling(self, caller: Caller) -> Generator[str]:
        """The id of a call of this client, while it is worked on."""
        call_id = uuid.uuid4().hex
        self._open[call_id] = caller
        try:
            yield call_id
        finally:
            del self._open[call_id]

    async def update(self, session_id: str, event: Event) -> None:
        """Tell whoever made the call that an event is about."""
        if isinstance(event, ToolStarted) and event.call.id in self._open:
            await self._open[event.call.id].update(session_id, event)

    async def permission(self, session_id: str, request: PermissionRequest) -> str | None:
        """Ask whoever made the call."""
        caller = self._open.get(request.call.id)
        return None if caller is None else await caller.permission(session_id, request)

    async def ask(self, session_id: str, question: Question) -> Any:
        """Ask whoever made the call that the question is about, or is the only one to call."""
        caller = self._of(question.call_id)
        return question.default if caller is None else await caller.ask(session_id, question)

    async def fill_in(self, session_id: str, form: Form) -> Filled | None:
        """Pass a form on to them; None where there is nobody."""
        caller = self._of(form.call_id)
        return None if caller is None else await caller.fill_in(session_id, form)

    def _of(self, call_id: str) -> Caller | None:
        callers = list(self._open.values())
        return self._open.get(call_id, callers[0] if len(callers) == 1 else None)


@dataclass(eq=False)
class Call:
    """A call that is worked on, and its question that is not answered yet."""

    caller: Caller
    work: asyncio.Task[CallToolResult]
    asked: Asked | None = None


class Calls:
    """The calls of one client: those that wait for an answer are found again by their state."""

    def __init__(self) -> None:
        self._waiting: dict[str, Call] = {}

    async def answer(
        self, context: ServerRequestContext, params: CallToolRequestParams, work: Work
    ) -> Answer:
        """Do the work, or go on with it; what the client is told."""
        if params.request_state is None:
            caller = Caller(context)
            call = Call(caller, asyncio.ensure_future(work(caller)))
        elif (found := self._waiting.pop(params.request_state, None)) is not None:
            call = found
            call.caller.context = context
            hear(call, (params.input_responses or {}).get(ANSWER))
        else:
            return failure("no call waits for this answer")
        try:
            return await self._followed(call)
        except asyncio.CancelledError:
            call.work.cancel()
            await asyncio.wait({call.work})
            raise

    async def _followed(self, call: Call) -> Answer:
        """Wait for the end of the work, or for a question that only the answer can carry."""
        while True:
            asking = asyncio.ensure_future(call.caller.questions.get())
            try:
                await asyncio.wait({asking, call.work}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                if not asking.done():
                    asking.cancel()
            if call.work.done():
                return call.work.result()
            call.asked = asking.result()
            context = call.caller.context
            if context.protocol_version >= MODERN:
                state = self._put_off(call)
                wanted: dict[str, InputRequest] = {ANSWER: ElicitRequest(params=call.asked.params)}
                return InputRequiredResult(input_requests=wanted, request_state=state)
            hear(call, await elicited(context, call.asked.params))

    def _put_off(self, call: Call) -> str:
        """Keep a call until its answer comes; the state that finds it. The oldest of many ends."""
        state = uuid.uuid4().hex
        self._waiting[state] = call
        asyncio.get_running_loop().call_later(LONGEST_WAIT, self._give_up, state)
        if len(self._waiting) > MOST_WAITING:
            self._give_up(next(iter(self._waiting)))
        return state

    def _give_up(self, state: str) -> None:
        """Nobody has answered for too long."""
        if (call := self._waiting.pop(state, None)) is not None:
            call.work.cancel()

    async def aclose(self) -> None:
        """End the calls whose answers never came."""
        left = {call.work for call in self._waiting.values()}
        for work in left:
            work.cancel()
        if left:
            await asyncio.wait(left)


async def elicited(
    context: ServerRequestContext, wanted: ElicitRequestFormParams
) -> ElicitResult | None:
    """What the client's user says; None where the client fails at asking."""
    try:
        return await context.session.elicit_form(
            wanted.message, wanted.requested_schema, context.request_id
        )
    except (MCPError, ValidationError):
        return None


def hear(call: Call, said: object) -> None:
    """Hand on what the user said; anything that is no answer is a refusal."""
    asked, call.asked = call.asked, None
    if asked is not None and not asked.said.done():
        given = said if isinstance(said, ElicitResult) else ElicitResult(action="decline")
        asked.said.set_result(given)


def failure(text: str) -> CallToolResult:
    """A result that says what went wrong."""
    return CallToolResult(content=[TextContent(text=text)], is_error=True)
