"""One session of the agent's, as Crow sees it: what hooks and rules say to what happens there."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, cast

from crow.acp.content import from_blocks, to_blocks
from crow.acp.jsonrpc import Message, as_object
from crow.acp.proxy.tool_names import SHOWN, ForeignCall, calls_of, shown_input
from crow.core.agent import Agent
from crow.core.events import Event, Notice, TextDelta
from crow.core.hooks.contexts import ToolContext
from crow.core.hooks.run_context import RunContext
from crow.core.messages import text_of, user
from crow.core.ports.client import Files, Option, PermissionRequest, Question, Terminals
from crow.core.session import Session
from crow.core.support.frozen import frozen
from crow.core.tool_call import conclude, judge, settle
from crow.core.tools import Call, Outcome, ToolResult
from crow.core.verdicts import Ruling, Stop

TAKEN = frozenset({"image", "audio"})
MOST_CALLS = 1000
"""Calls whose beginnings are remembered."""
CHANGED = "a hook changed its arguments, which cannot be done to a call of another agent's"
UNASKED = "The agent ran {} without asking, and {}. Crow saw it too late to stop it."
OUTCOMES: Mapping[str, Outcome] = {"completed": "ok", "failed": "error"}
Ask = Callable[[Message], Awaitable[str | None]]
"""Asks the client; the kind of the option that was chosen."""
Say = Callable[[str], Awaitable[None]]
NUMBERS = itertools.count(1)


@frozen
class ForeignTool:
    """A tool of another agent's, as hooks see it."""

    name: str
    kind: Any
    said: str
    description: str = ""
    parameters: Any = None

    def title(self, args: Message) -> str:
        """The line by which the agent shows the call."""
        del args
        return self.said or self.name


@frozen
class Verdict:
    """The verdict on calls. ``is_sure``: they may pass without anybody being asked."""

    reason: str = ""
    is_refused: bool = False
    is_sure: bool = False


class ProxyClient:
    """Whoever is at the other end of a session; a `crow.core.ports.client.Client`."""

    files: Files | None = None
    terminals: Terminals | None = None

    def __init__(self, ask: Ask, say: Say) -> None:
        self._ask = ask
        self._say = say
        self._unsaid: list[str] = []
        self.is_listening = False
        self.forwarded: dict[str, Callable[[], Awaitable[str | None]]] = {}
        self.granted: set[str] = set()

    async def update(self, session_id: str, event: Event) -> None:
        """Tell what a person should know; text beside a turn is told in the next one."""
        del session_id
        if isinstance(event, Notice | TextDelta):
            await self.tell(event.text)

    async def tell(self, text: str) -> None:
        """Say something in Crow's own words."""
        self._unsaid.append(text)
        if self.is_listening:
            await self.listen()

    async def listen(self) -> None:
        """A turn has begun: say what was kept for it."""
        self.is_listening = True
        unsaid, self._unsaid = self._unsaid, []
        for text in unsaid:
            await self._say(f"\n\n{text.strip()}\n\n")

    async def permission(self, session_id: str, request: PermissionRequest) -> str | None:
        """Pass the agent's own question on, or put one; not twice about the same in a turn."""
        forward = self.forwarded.get(request.call.id)
        if forward is not None:
            kind = await forward()
        elif subject(request.args) in self.granted:
            kind = "allow_once"
        else:
            return await self._put(session_id, request)
        return next((each.id for each in request.options if each.kind == kind), None) or next(
            (each.id for each in request.options if alike(each, kind)), None
        )

    async def _put(self, session_id: str, request: PermissionRequest) -> str | None:
        text = {"type": "text", "text": request.description}
        question = {
            "sessionId": session_id,
            "toolCall": {
                "toolCallId": request.call.id,
                "title": request.title,
                "kind": request.kind,
                "status": "pending",
                "rawInput": dict(request.args),
                "content": [{"type": "content", "content": text}] if request.description else [],
            },
            "options": [
                {"optionId": each.id, "name": each.name, "kind": each.kind}
                for each in request.options
            ],
        }
        kind = await self._ask(question)
        return next((each.id for each in request.options if each.kind == kind), None)

    async def ask(self, session_id: str, question: Question) -> Any:
        """Whether to go on; for every other question its default."""
        if question.kind != "confirm" or question.word:
            return question.default
        name = f"crow-question-{next(NUMBERS)}"
        told = "\n\n".join(filter(None, (question.text, question.detail)))
        text = {"type": "content", "content": {"type": "text", "text": told}}
        call = {"toolCallId": name, "title": question.text, "kind": "other", "content": [text]}
        options = [
            {"optionId": "allow_once", "name": "Yes", "kind": "allow_once"},
            {"optionId": "reject_once", "name": "No", "kind": "reject_once"},
        ]
        kind = await self._ask({"sessionId": session_id, "toolCall": call, "options": options})
        return kind == "allow_once"


def alike(option: Option, kind: str | None) -> bool:
    """True where an option says yes, or no, as another kind does; yes only for this once."""
    if kind is None:
        return False
    return option.kind == ("allow_once" if kind.startswith("allow") else "reject_once")


def subject(args: Any) -> str:
    """What a call is about: its command line, or its file."""
    return str(args.get("command") or args.get("file_path") or "")


class GuardedSession:
    """Hooks and rules on one session. ``calls`` is what the agent has told of its open calls.

    ``texts`` is what it has said in this turn, ``endings`` tell hooks of calls that have ended.
    """

    def __init__(self, agent: Agent, session: Session, client: ProxyClient) -> None:
        self.agent = agent
        self.session = session
        self.client = client
        self.calls: dict[str, Message] = {}
        self.texts: list[str] = []
        self.endings: list[asyncio.Task[None]] = []
        self._judging = asyncio.Lock()
        self._telling = asyncio.Lock()
        self._judged: dict[str, list[ToolContext]] = {}

    @property
    def run(self) -> RunContext:
        """The prompt that is being answered; beside one, a run of its own."""
        runs = cast("Sequence[RunContext]", self.session.runs)
        return runs[-1] if runs else RunContext(self.agent, self.session, "")

    # prompts

    async def accept(self, ctx: RunContext, blocks: list[Message]) -> tuple[Ruling, list[Message]]:
        """Let hooks judge a prompt: their ruling, and the blocks that the agent is to have."""
        before = ctx.prompt
        await self.client.listen()
        ruling = await ctx.ui.agreed(await self.agent.hooks.before_run.fire(ctx))
        pending = self.session.pending
        added, rest = [text_of(each.get("content")) for each in pending], list[Any]()
        pending.put(rest)
        if ctx.stopping is not None and not ruling.refused:
            ruling = Ruling(Stop(ctx.stopping.reason))
        if ruling.refused or ruling.answer is not None:
            return ruling, blocks
        await ctx.append(user(ctx.prompt))
        ctx.mark("stored")
        changed: list[Any] = blocks if ctx.prompt == before else to_blocks(ctx.prompt)
        return ruling, [*changed, *({"type": "text", "text": text} for text in added)]

    def begin(self, blocks: list[Message]) -> RunContext:
        """A prompt has come."""
        self.texts.clear()
        self.endings = [each for each in self.endings if not each.done()]
        self.client.granted.clear()
        ctx = RunContext(self.agent, self.session, from_blocks(blocks, TAKEN))
        self.session.enter(ctx)
        return ctx

    async def more(self, ctx: RunContext) -> str:
        """What hooks want of an agent that is about to end; empty where it may."""
        ctx.reply.text = "".join(self.texts)
        if ctx.reply.text:
            await ctx.append({"role": "assistant", "content": ctx.reply.text})
        self.texts.clear()
        more = await self.agent.hooks.on_stop.fire(ctx)
        return "" if more is None else more.message

    async def end(self, ctx: RunContext) -> None:
        """A prompt is answered."""
        self.session.leave(ctx)
        self.calls.clear()
        self._judged.clear()
        if not self.session.runs:
            self.client.is_listening = False
        await self.agent.hooks.after_run.fire(ctx)

    # calls

    def note(self, told: Message) -> Message:
        """Remember what the agent says of a call; all that is known of it by now."""
        name = str(told.get("toolCallId"))
        if name not in self.calls and len(self.calls) >= MOST_CALLS:
            del self.calls[next(iter(self.calls))]
        known = self.calls.get(name, {})
        given = {key: value for key, value in told.items() if value is not None}
        if shown := shown_input(given):
            given[SHOWN] = shown
        self.calls[name] = {**known, **given}
        return self.calls[name]

    async def permit(
        self, call_id: str, wanted: Iterable[ForeignCall], forward: Callable[[], Any] | None = None
    ) -> Verdict:
        """Judge calls, one after another; ``forward`` puts the agent's own question."""
        is_sure, asked = True, False
        judged: list[ToolContext] = []

        async def put() -> Any:
            nonlocal asked
            asked = True
            assert forward is not None
            return await forward()

        async with self._judging:
            for number, each in enumerate(wanted):
                call = self._call(f"{call_id}.{number}" if number else call_id, each)
                if forward is not None:
                    self.client.forwarded[call.call.id] = put
                judged.append(call)
                try:
                    await judge(call)
                finally:
                    self.client.forwarded.pop(call.call.id, None)
                if call.result is None and call.args != each.args:
                    conclude(call, "denied", ToolResult.failure(CHANGED))
                if call.result is not None:
                    await settle(call)
                    self._judged[call_id] = []
                    return Verdict(call.output, is_refused=True)
                is_sure = is_sure and each.is_sure
        self._judged[call_id] = judged
        if is_sure or asked:
            self.grant(judged)
        return Verdict(is_sure=is_sure)

    def grant(self, calls: Iterable[ToolContext]) -> None:
        """In this turn nobody is asked about the same again."""
        self.client.granted.update(filter(None, (subject(call.args) for call in calls)))

    def _call(self, call_id: str, wanted: ForeignCall) -> ToolContext:
        tool: Any = ForeignTool(wanted.name, wanted.kind, wanted.title, parameters={})
        return ToolContext(self.run, Call(call_id, wanted.name, wanted.args), tool)

    async def ended(self, told: Message) -> None:
        """A call has come to its end: hooks hear of it, and the user where it was never asked."""
        call_id, status = str(told.get("toolCallId")), str(told.get("status"))
        known = self.calls.pop(call_id, told)
        judged = self._judged.pop(call_id, None)
        is_unasked = judged is None
        if judged is None:
            judged = [self._call(call_id, each) for each in calls_of(known)]
        async with self._telling:
            if is_unasked and status == "completed":
                await self._complain(judged)
            for call in judged:
                call.begun = call.finished = True
                result = result_of(known, is_error=status == "failed")
                conclude(call, OUTCOMES[status], result)
                await settle(call)

    async def settled(self) -> None:
        """Wait until hooks have heard of every call that has come to its end."""
        endings, self.endings = self.endings, []
        if endings:
            await asyncio.wait(endings)

    async def _complain(self, calls: Iterable[ToolContext]) -> None:
        """Say of calls that ran without a question which of them rules deny."""
        for call in calls:
            ruling = await self.agent.hooks.before_tool.judge(call)
            if ruling.refused:
                await self.client.tell(UNASKED.format(call.title, ruling.reason))


def result_of(told: Message, *, is_error: bool) -> ToolResult:
    """What came of a call, as far as the agent tells it."""
    parts: list[object] = told.get("content") or []
    texts = [
        str(block["text"])
        for part in parts
        if (block := as_object(as_object(part).get("content"))).get("type") == "text"
    ]
    output = told.get("rawOutput")
    match output:
        case {"output": value, **others} if not others:  # as Crow and others say what is no object
            output = value
        case _:
            pass
    if not texts and output is not None:
        texts = [ToolResult.of(output).text]
    return ToolResult("\n".join(texts), error=is_error, data=output)
