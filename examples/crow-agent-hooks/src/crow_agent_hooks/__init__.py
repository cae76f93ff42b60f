"""Lets policies that are written for Agent Hooks decide what Crow may do.

Agent Hooks is a contract between agents and those who watch over them: an agent tells of eight
moments, interceptors allow, deny or change what is about to happen. Here Crow's own hooks are what
tells; nothing in this file knows more of Crow than ``from crow import ...`` does.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable
from copy import deepcopy
from dataclasses import dataclass, field, replace
from pkgutil import resolve_name
from typing import Annotated, Any

from agent_hooks import (
    AgentContextBuilder,
    EnforcementMode,
    HostError,
    InterceptionEmitter,
    InterceptionPoint,
    InterceptionRecord,
    Verdict,
)

from crow import (
    Arg,
    Call,
    Completion,
    Context,
    Deny,
    RunContext,
    Session,
    SessionContext,
    Stop,
    ToolContext,
    ToolResult,
    TurnContext,
    hook,
)
from crow.errors import ModelError
from crow.events import Delta, Retrying, TextDelta
from crow.hooks import FIRST, LAST, NextCall, NextRequest
from crow.keys import Key

WHOLE = sys.maxsize
ENDS = {"end_turn": "completed", "cancelled": "cancelled"}


@dataclass
class Watched:
    """What is known of a session: who numbers its moments, and why it may not even begin."""

    builder: AgentContextBuilder
    refused: str | None = None
    end: str = "completed"


WATCHED: Key[Watched] = Key("agent_hooks.session")


@dataclass
class AgentHooks:
    """Tells interceptors of what happens, and does what they say."""

    policies: list[str] = field(default_factory=list)
    """Interceptors, each as ``module:name`` of a class or of an object."""
    evaluate_only: bool = False
    """Keep records of what would be denied, and let it happen."""
    terminate: bool = False
    """End the run where no interceptor could decide about a tool; else the model is told."""
    segment: Annotated[int, Arg(minimum=1)] = 80
    """How many characters of an answer are judged at once, before they are shown."""
    emitter: InterceptionEmitter | None = None
    """An emitter that was made elsewhere; what a host declaration says counts more than options."""
    sink: Callable[[InterceptionRecord], None] | None = None
    """What is called with each record."""

    def __post_init__(self) -> None:
        if self.emitter is None:
            mode = EnforcementMode.EVALUATE_ONLY if self.evaluate_only else EnforcementMode.ENFORCE
            self.emitter = InterceptionEmitter(mode=mode)
            for name in self.policies:
                policy = resolve_name(name)
                self.emitter.register(policy() if isinstance(policy, type) else policy)
        self._emitter = self.emitter
        if (declared := self.emitter.declaration) is not None:
            posture = declared.configuration["posture"]
            self.terminate = posture["tool_seam_host_error"] == "terminate"
            self.segment = WHOLE if declared.surface["buffered_output"] else self.segment
        if self.sink is not None:
            self._emitter.set_record_sink(self.sink)

    # the session

    async def on_session_start(self, ctx: SessionContext) -> None:
        await self._watched(ctx)

    @hook("SubagentStart")
    def watch_subagent(self, ctx: SessionContext) -> None:
        """What a sub-agent asks and does is a part of the session that it works for."""
        ctx.session.hooks.register("around_llm_request", self.around_llm_request)
        ctx.session.hooks.register("around_tool", self.around_tool, order=FIRST)

    async def on_session_end(self, ctx: SessionContext) -> None:
        watched = WATCHED.get(ctx)
        if watched is not None:
            await self._denied(watched.builder.agent_shutdown(reason=watched.end))

    async def _watched(self, ctx: Context) -> Watched:
        session = main(ctx.session)
        watched = WATCHED.get(session)
        if watched is None:
            builder = AgentContextBuilder(
                agent_id="crow", framework="crow", session_id=session.id or "crow"
            )
            watched = WATCHED.set(session, Watched(builder))
            tools = sorted(ctx.agent.tools_of(session))
            watched.refused = await self._denied(builder.agent_startup(tools_registered=tools))
        return watched

    async def _denied(self, moment: dict[str, Any]) -> str | None:
        """Why what is told of must not happen; None where it may. What it may change is changed."""
        record = await self._emitter.emit_unchecked(moment)
        return None if record.proceeds else reason_of(record.verdict)

    # a prompt

    @hook("before_run", order=LAST)
    async def before_run(self, ctx: RunContext) -> Deny | None:
        watched = await self._watched(ctx)
        if watched.refused is not None:
            return Deny(watched.refused)
        moment = watched.builder.input(content=deepcopy(ctx.prompt))
        if (denied := await self._denied(moment)) is not None:
            return Deny(denied)
        if moment["input"]["content"] != ctx.prompt:
            ctx.prompt = moment["input"]["content"]
        return None

    def after_run(self, ctx: RunContext) -> None:
        if (watched := WATCHED.get(ctx)) is not None:
            watched.end = ENDS.get(ctx.stop_reason, "error")

    # a request

    async def around_llm_request(
        self, ctx: TurnContext, call_next: NextRequest
    ) -> AsyncIterator[Delta | Completion]:
        """Release an answer piece by piece, each behind a verdict that covers it."""
        builder = (await self._watched(ctx)).builder
        messages: Any = deepcopy(ctx.messages)
        model = {"model_id": ctx.model or ctx.agent.llm.model}
        moment = builder.pre_model_call(
            **model, messages=messages, tools=[dict(deepcopy(each)) for each in ctx.tools]
        )
        if (denied := await self._denied(moment)) is not None:
            ctx.stop(denied)
            yield Completion()
            return
        answer = Answer(self, builder, model)
        try:
            async for piece in call_next(messages=moment["messages"]):
                for released in await answer.heard(piece):
                    yield released
                if answer.denied is not None:
                    ctx.stop(answer.denied)
                    yield Completion()
                    return
        except ModelError:
            if answer.residue:
                self._record(moment=answer.whole("incremental"))
            raise

    def _record(self, moment: dict[str, Any]) -> None:
        """Keep a record of what no interceptor has judged, since it never became whole."""
        record = InterceptionRecord(
            InterceptionPoint.POST_MODEL_CALL,
            self._emitter.mode,
            Verdict.host_error(HostError.STREAMING_UNSUPPORTED, "the answer broke off"),
            None,
            None,
            session_id=moment["session"]["id"],
            sequence=moment["sequence"],
            timestamp=moment["timestamp"],
            composition=self._emitter.composition,
        )
        if self.sink is not None:
            self.sink(record)

    # a tool

    @hook("before_tool", order=LAST)
    async def before_tool(self, ctx: ToolContext) -> Deny | Stop | None:
        builder = (await self._watched(ctx)).builder
        about = {"call_id": ctx.call.id, "name": ctx.name}
        moment = builder.pre_tool_call(**about, args=deepcopy(ctx.args))
        denied = await self._denied(moment)
        if denied is not None:
            return self._refused(denied)
        if moment["tool_call"]["args"] != ctx.args:
            ctx.args = moment["tool_call"]["args"]
        return None

    def _refused(self, denied: str) -> Deny | Stop:
        return Stop(denied) if self.terminate and denied.startswith("host_error:") else Deny(denied)

    @hook("around_tool", order=FIRST)
    async def around_tool(self, ctx: ToolContext, call_next: NextCall) -> ToolResult:
        """Let the model hear of a result once it is permitted, and of nothing else of it."""
        result = await call_next()
        builder = (await self._watched(ctx)).builder
        about = {"call_id": ctx.call.id, "name": ctx.name, "args": deepcopy(ctx.args)}
        value = result.text if result.data is None else result.data
        moment = builder.post_tool_call(**about, value=deepcopy(value), is_error=result.error)
        if (denied := await self._denied(moment)) is not None:
            if isinstance(self._refused(denied), Stop):
                ctx.stop(denied)
            return ToolResult.failure(denied)
        now = moment["tool_result"]["value"]
        return result if now == value else replace(ToolResult.of(now), error=result.error)

    # what an answer is judged by

    async def judge_answer(
        self, builder: AgentContextBuilder, moment: dict[str, Any], reply: Completion | None
    ) -> tuple[str | None, dict[str, Any]]:
        """Why an answer must not be given, and what it says now; the last is the output, too."""
        denied = await self._denied(moment)
        response = moment["response"]
        if denied is None and reply is not None and not response["tool_calls"]:
            output = builder.output(content=response["content"])
            denied = await self._denied(output)
            response["content"] = output["output"]["content"]
        return denied, response


class Answer:
    """An answer while it comes: what was released of it, and what waits for a verdict."""

    def __init__(
        self, hooks: AgentHooks, builder: AgentContextBuilder, model: dict[str, Any]
    ) -> None:
        self._hooks = hooks
        self._builder = builder
        self._model = model
        self._judged = ""
        self._waiting: list[Delta] = []
        self.residue = ""
        """The text that no verdict covers."""
        self.denied: str | None = None

    def whole(self, finish: str, calls: tuple[Call, ...] = ()) -> dict[str, Any]:
        """The moment at which all that was said so far is to be judged."""
        made = [{"id": call.id, "name": call.name, "args": deepcopy(call.args)} for call in calls]
        said = (self._judged + self.residue) or None
        return self._builder.post_model_call(
            **self._model, content=said, tool_calls=made, finish_reason=finish
        )

    async def heard(self, piece: Delta | Completion) -> list[Delta | Completion]:
        """What may go on: nothing before a verdict covers it. The last piece waits for the end."""
        if isinstance(piece, Completion):
            return await self._ended(piece)
        released: list[Delta | Completion] = []
        if isinstance(piece, Retrying):
            return [piece]
        if isinstance(piece, TextDelta):
            if len(self.residue) >= self._hooks.segment:
                released += await self._judge(self.whole("incremental"), None)
            self.residue += piece.text
        self._waiting.append(piece)
        return released

    async def _ended(self, reply: Completion) -> list[Delta | Completion]:
        moment = self.whole(reply.finish, reply.calls)
        released = await self._judge(moment, reply)
        if self.denied is not None:
            return []
        calls = tuple(map(changed_call, reply.calls, moment["response"]["tool_calls"]))
        return [*released, replace(reply, text=self._judged, calls=calls)]

    async def _judge(self, moment: dict[str, Any], reply: Completion | None) -> list[Delta]:
        """Release what waits, as the verdict wants it; what was released before stays as it is."""
        self.denied, response = await self._hooks.judge_answer(self._builder, moment, reply)
        said = response["content"] or ""
        if self.denied is None and not said.startswith(self._judged):
            self.denied = "host_error:streaming_unsupported"
        if self.denied is not None:
            return []
        released, self._waiting = self._waiting, []
        if said != self._judged + self.residue:
            others = [piece for piece in released if not isinstance(piece, TextDelta)]
            released = [*others, TextDelta(said[len(self._judged) :])]
        self._judged, self.residue = said, ""
        return released


def changed_call(call: Call, told: dict[str, Any]) -> Call:
    """A call as an interceptor wants it."""
    if (told["name"], told["args"]) == (call.name, call.args):
        return call
    return Call(call.id, told["name"], told["args"])


def main(session: Session) -> Session:
    """The session that a person talks to."""
    while session.parent is not None:
        session = session.parent
    return session


def reason_of(verdict: Verdict) -> str:
    """Why something was denied, in a line."""
    told = filter(None, (verdict.reason, verdict.message))
    return ": ".join(told) or "denied by a policy"
