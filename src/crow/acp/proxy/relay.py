"""Between a client and an agent: every message passes as it came, but for those that hooks judge.

Ids pass unchanged, too, so that an answer finds its way by itself; what is asked here has ids that
nobody else makes up.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
from collections.abc import AsyncGenerator, Coroutine
from typing import Any

from crow.acp.jsonrpc import (
    INTERNAL_ERROR,
    REQUEST_CANCELLED,
    Message,
    Oversized,
    as_object,
    failure,
    notification,
    success,
)
from crow.acp.proxy.endpoint import CANCEL_REQUEST, Endpoint, Judgement
from crow.acp.proxy.line import Line, is_answer, parse, understood, unjudgeable, unread
from crow.acp.proxy.options import CANCELLED as NOBODY
from crow.acp.proxy.options import allowed, kind_chosen, refused
from crow.acp.proxy.peers import Peer
from crow.acp.proxy.session import GuardedSession, ProxyClient, Verdict
from crow.acp.proxy.tool_names import ForeignCall, calls_of, requested
from crow.core.agent import Agent

PERMISSION = "session/request_permission"
PROMPT = "session/prompt"
UPDATE = "session/update"
CANCEL = "session/cancel"
OPENING = {"session/new": "new", "session/load": "load", "session/resume": "resume",
           "session/fork": "fork"}  # fmt: skip
"""The requests that open a session, and what hooks are told of it."""
CLOSING = frozenset({"session/close", "session/delete"})
DENIED = "Crow denied {}: {}"
logger = logging.getLogger(__name__)


class Relay:
    """Passes messages between ``client`` and ``agent``, and lets the hooks of ``crow`` judge.

    ``names`` begins the ids of what is asked here.
    """

    def __init__(self, crow: Agent, client: Peer, agent: Peer) -> None:
        self.client, self.agent = Endpoint(client), Endpoint(agent)
        self._crow = crow
        self._names = f"crow-{secrets.token_hex(4)}"
        self._count = 0
        self._sessions: dict[str, asyncio.Task[GuardedSession]] = {}
        self._held: dict[str, list[Line]] = {}
        self._prompting: dict[str, asyncio.Task[None]] = {}
        self._accepting: dict[Any, asyncio.Task[None]] = {}
        self._judging: dict[Any, Judgement] = {}
        self._tasks: set[asyncio.Task[Any]] = set()

    # from the client

    async def read_client(self, lines: AsyncGenerator[bytes | Oversized]) -> None:
        """Pass on what a client says, until it says nothing more."""
        async for raw in lines:
            line = parse(raw)
            if isinstance(line, Line):
                await self.from_client(line)
            elif is_answer(raw):
                await self.from_client(unread(raw, line))
            else:
                await self.client.send(unread(raw, line))

    async def from_client(self, line: Line) -> None:
        """Pass on a message of the client's, or let hooks see it first."""
        method, session_id = line.method, line.session_id
        if not method:
            if not self.client.takes(line):
                await self.agent.send(line)
        elif method == CANCEL and session_id is not None:
            await self._cancel(line, session_id)
        elif method == CANCEL_REQUEST and line.params.get("requestId") in self._accepting:
            self._accepting[line.params["requestId"]].cancel()
        elif session_id in self._held:
            self._held[session_id].append(line)
        elif method == PROMPT and line.is_request and session_id is not None:
            self._held[session_id] = []
            work = self._begin(self._prompt(line, session_id))
            self._prompting[session_id] = self._accepting[line.id] = work
        else:
            await self._pass(line)

    async def _pass(self, line: Line) -> None:
        """Pass on what no hook judges, and look at how it is answered where that matters."""
        method, session_id = line.method, line.session_id
        if not line.is_request:
            await self.agent.send(line)
        elif method == "initialize":
            await self.agent.send(understood(line))
        elif method in OPENING:
            await self.agent.send(line, lambda answer: self._opened(line, answer))
        elif method in CLOSING and session_id is not None:
            await self.agent.send(line, lambda _answer: self._closed(session_id))
        else:
            await self.agent.send(line)

    async def _cancel(self, line: Line, session_id: str) -> None:
        """End what hooks still judge in a session, and tell the agent."""
        if session_id in self._prompting:
            self._prompting[session_id].cancel()
        for judgement in list(self._judging.values()):
            if judgement.session_id == session_id:
                judgement.cancel()
        await self.agent.send(line)

    # sessions

    def _opened(self, request: Line, answer: Line) -> bool:
        """A session is open: hooks hear of it beside the answer, and before its first prompt."""
        session_id = answer.result.get("sessionId") or request.session_id
        if "result" in answer.message and isinstance(session_id, str):
            place = str(request.params.get("cwd") or os.getcwd())  # noqa: PTH109
            self._open(session_id, place, OPENING[request.method])
        return False

    def _open(self, session_id: str, cwd: str, source: str) -> asyncio.Task[GuardedSession]:
        known = self._sessions.get(session_id)
        if known is None or (known.done() and (known.cancelled() or known.exception())):
            known = self._begin(self._guarded(session_id, cwd, source))
            self._sessions[session_id] = known
        return known

    async def _guarded(self, session_id: str, cwd: str, source: str) -> GuardedSession:
        async def ask(question: Message) -> str | None:
            answer = await self.client.ask(self._request(PERMISSION, question))
            return kind_chosen(question, answer.result)

        async def say(text: str) -> None:
            content = {"type": "text", "text": text}
            update = {"sessionUpdate": "agent_message_chunk", "content": content}
            told = notification(UPDATE, {"sessionId": session_id, "update": update})
            await self.client.send(Line.of(told))

        client = ProxyClient(ask, say)
        session = await self._crow.new_session(cwd, client=client, id=session_id, source=source)
        return GuardedSession(self._crow, session, client)

    async def _session(self, session_id: str) -> GuardedSession:
        """A session; one that nobody has opened here begins now."""
        return await asyncio.shield(self._open(session_id, os.getcwd(), "resume"))  # noqa: PTH109

    def _closed(self, session_id: str) -> bool:
        task = self._sessions.pop(session_id, None)
        if task is not None:
            self._begin(self._close(task))
        return False

    async def _close(self, opening: asyncio.Task[GuardedSession]) -> None:
        await self._crow.close_session((await opening).session)

    def _request(self, method: str, params: Message) -> Line:
        """A request of Crow's own."""
        self._count += 1
        request_id = f"{self._names}-{self._count}"
        return Line.of({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params})

    # prompts

    async def _prompt(self, line: Line, session_id: str) -> None:
        """Let hooks judge a prompt, and what the agent ends with."""
        try:
            answer = await self._answer(line, session_id)
        except asyncio.CancelledError:
            answer = Line.of(success(line.id, {"stopReason": "cancelled"}))
        except Exception as error:
            logger.exception("a prompt could not be judged")
            told = failure(line.id, INTERNAL_ERROR, f"Crow could not judge this prompt: {error}")
            answer = Line.of(told)
        await self.client.send(answer)
        await self._release(line, session_id)

    async def _answer(self, line: Line, session_id: str) -> Line:
        guarded = await self._session(session_id)
        blocks: list[Message] = line.params["prompt"]
        ctx = guarded.begin(blocks)
        try:
            ruling, sent = await guarded.accept(ctx, blocks)
            if ruling.refused:
                await guarded.client.tell(ruling.reason or "A hook refused this prompt.")
                return Line.of(success(line.id, {"stopReason": "refusal"}))
            if ruling.answer is not None:
                await guarded.client.tell(str(ruling.answer.value))
                return Line.of(success(line.id, {"stopReason": "end_turn"}))
            passed = line if sent == blocks else line.with_params(prompt=sent)
            answer = await self.agent.put(passed)
            await self._release(line, session_id)
            return await self._followed(guarded, ctx, session_id, line, await answer)
        finally:
            self._begin(guarded.end(ctx))

    async def _followed(
        self, guarded: GuardedSession, ctx: Any, session_id: str, line: Line, answer: Line
    ) -> Line:
        """The agent's answer, once no hook wants more of it."""
        while answer.result.get("stopReason") == "end_turn":
            await guarded.settled()
            more = await guarded.more(ctx)
            if not more:
                break
            prompt = {"sessionId": session_id, "prompt": [{"type": "text", "text": more}]}
            answer = await self.agent.ask(self._request(PROMPT, prompt))
        if answer.id == line.id:
            return answer
        return Line.of({**answer.message, "id": line.id})

    async def _release(self, prompt: Line, session_id: str) -> None:
        """Pass on what has waited behind a prompt; once it is judged it waits no more."""
        self._accepting.pop(prompt.id, None)
        if self._prompting.get(session_id) is not asyncio.current_task():
            return
        del self._prompting[session_id]
        held = self._held.pop(session_id, [])
        while held:
            await self.from_client(held.pop(0))
            if session_id in self._held:  # the next one is a prompt
                self._held[session_id] += held
                return

    # from the agent

    async def read_agent(self, lines: AsyncGenerator[bytes | Oversized]) -> None:
        """Pass on what an agent says, until it says nothing more."""
        async for raw in lines:
            line = parse(raw)
            if isinstance(line, Line):
                await self.from_agent(line)
                continue
            logger.warning("a line of the agent's is not passed on: %s", line)
            if is_answer(raw):
                await self.from_agent(unread(raw, line))
            elif isinstance(raw, Oversized):
                await self.agent.send(unread(raw, line))

    async def from_agent(self, line: Line) -> None:
        """Pass on a message of the agent's, or let hooks judge it first."""
        method, session_id = line.method, line.session_id
        if not method:
            if not self.agent.takes(line):
                await self.client.send(line)
        elif method == CANCEL_REQUEST and self._is_judging(line.params.get("requestId")):
            self._judging[line.params["requestId"]].cancel()
        elif self._is_judged(line) and (wrong := unjudgeable(line)):
            logger.warning("%s of the agent's is not passed on: %s", method, wrong)
            if line.is_request:
                await self.agent.send(self._refusal(line, wrong))
        elif session_id is not None and self._is_judged(line):
            work = self._begin(self._judge(line, session_id))
            self._judging[line.id] = Judgement(session_id, work)
            work.add_done_callback(lambda _done: self._judging.pop(line.id, None))
        else:
            if method == UPDATE and session_id in self._sessions:
                self._see(session_id, as_object(line.params.get("update")))
            await self.client.send(line)

    def has_of_agent(self, request_id: Any) -> bool:
        """True for a request of the agent's that is not answered yet."""
        return request_id in self._judging or request_id in self.client.asked

    def _is_judging(self, request_id: Any) -> bool:
        """True where a request has not been passed on yet."""
        judgement = self._judging.get(request_id)
        return judgement is not None and not judgement.forwarded

    def _is_judged(self, line: Line) -> bool:
        return line.method == PERMISSION or requested(line.method, line.params) is not None

    def _see(self, session_id: str, update: Message) -> None:
        """Look at an update of the agent's."""
        opening = self._sessions[session_id]
        kind = update.get("sessionUpdate")
        if not opening.done() or opening.cancelled() or opening.exception():
            return
        guarded = opening.result()
        if kind == "agent_message_chunk":
            guarded.texts.append(str(as_object(update.get("content")).get("text") or ""))
        elif kind in ("tool_call", "tool_call_update") and guarded.session.runs:
            told = guarded.note(update)
            if told.get("status") in ("completed", "failed"):
                guarded.endings.append(self._begin(guarded.ended(told)))

    async def _judge(self, line: Line, session_id: str) -> None:
        """Let hooks judge what the agent asks the client; it hears no where that fails."""
        try:
            answer = await self._judged(line, session_id)
        except asyncio.CancelledError:
            gone = line.method == PERMISSION
            told = failure(line.id, REQUEST_CANCELLED, "Request cancelled")
            answer = Line.of(success(line.id, NOBODY) if gone else told)
        except Exception as error:
            logger.exception("a call could not be judged")
            answer = self._refusal(line, f"Crow could not judge this call: {error}")
        if answer is not None:
            await self.agent.send(answer)

    async def _judged(self, line: Line, session_id: str) -> Line | None:
        guarded = await self._session(session_id)
        wanted = requested(line.method, line.params)
        if wanted is None:
            return await self._permission(line, guarded)
        call_id = f"{self._names}-call-{line.id}"
        verdict = await guarded.permit(call_id, [wanted])
        if verdict.is_refused:
            await self._explain(guarded, [wanted], verdict)
            return self._refusal(line, verdict.reason)
        await self.client.send(line)
        return None

    async def _permission(self, line: Line, guarded: GuardedSession) -> Line | None:
        """The answer to a permission question: the rules', else the client's own."""
        told = guarded.note(as_object(line.params.get("toolCall")))
        wanted = calls_of(told)
        answers: list[asyncio.Task[Line]] = []

        async def forward() -> str | None:
            if not answers:
                self._judging[line.id].forwarded = True
                answers.append(asyncio.create_task(self.client.ask(line)))
            return kind_chosen(line.params, (await answers[0]).result)

        verdict = await guarded.permit(str(told.get("toolCallId")), wanted, forward)
        if verdict.is_refused and not answers:
            await self._explain(guarded, wanted, verdict)
            return self._refusal(line, verdict.reason)
        if answers:
            answer = answers[0].result()
            said_yes = (kind_chosen(line.params, answer.result) or "").startswith("allow")
            if verdict.is_refused and said_yes:
                await self._explain(guarded, wanted, verdict)
                return self._refusal(line, verdict.reason)
            return answer
        chosen = allowed(line.params) if verdict.is_sure else None
        if chosen is None:
            await self.client.send(line)
            return None
        return Line.of(success(line.id, chosen))

    async def _explain(
        self, guarded: GuardedSession, wanted: list[ForeignCall], verdict: Verdict
    ) -> None:
        """Tell the user why something does not happen; end the turn where a hook wants that."""
        title = wanted[0].title or wanted[0].name
        await guarded.client.tell(DENIED.format(title, verdict.reason))
        if guarded.run.stopping is not None:
            told = notification(CANCEL, {"sessionId": guarded.session.id})
            await self.agent.send(Line.of(told))

    def _refusal(self, line: Line, reason: str) -> Line:
        """No, in the words of what was asked."""
        if line.method == PERMISSION:
            return Line.of(success(line.id, refused(line.params)))
        return Line.of(failure(line.id, INTERNAL_ERROR, f"Crow denied this: {reason}"))

    # the end

    async def lose_agent(self, why: str) -> None:
        """The agent is gone: whoever waits for it is told."""
        for request_id in list(self.agent.asked):
            line = Line.of(failure(request_id, INTERNAL_ERROR, why))
            if not self.agent.takes(line):
                await self.client.send(line)
        await asyncio.sleep(0)
        if self._prompting or self._tasks:
            await asyncio.wait({*self._tasks}, timeout=1)

    async def close(self) -> None:
        """End what is still judged, and the sessions."""
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait({*self._tasks}, timeout=1)
        await self._crow.close()

    def _begin(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(report)
        return task


def report(task: asyncio.Task[Any]) -> None:
    """Log what went wrong beside the messages."""
    if not task.cancelled() and (error := task.exception()) is not None:
        logger.error("a hook's point failed", exc_info=error)
