"""The run of one job of a fleet, until it stops: done, failed, waiting or called off."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from crow.core.errors import CrowError, ModelError, SessionError, SessionInUse
from crow.core.events import Event, Retrying, UsageReported
from crow.core.hooks.context import Context
from crow.core.hooks.contexts import RequestContext
from crow.core.hooks.discovery import hook
from crow.core.ports.client import NullClient, PermissionRequest, Question
from crow.extensions.container import ContainerError
from crow.fleet.board import Board, Claimed, Left
from crow.fleet.containers import Kinds
from crow.fleet.database import retried
from crow.fleet.queue import Offer
from crow.fleet.rate_limits import rate_limit_of
from crow.fleet.task import FleetError
from crow.fleet.workspace import NONE, JobFolder

if TYPE_CHECKING:
    from crow.core.agent import Agent
    from crow.core.hooks.run_context import Reply
    from crow.core.session import Session

logger = logging.getLogger("crow.fleet")

OFTEN = 2.0
"""Seconds between two reports of how far a session is, where nothing in its folder changed."""
PATIENCE = 120.0
"""Seconds for which the database is waited for when a session has ended."""
PACED = ("rate_limit", "overloaded")
"""Kinds of errors of a provider that all sessions wait for, not the one that met them."""
PAUSE = 30.0
"""Seconds to leave a provider alone that refused to the last, and did not say for how long."""
A_DAY = 86400.0
IN_USE = 30.0
"""Seconds for which a session is waited for that is open elsewhere."""
GO_ON = (
    "Go on with your task. The machine that you worked on has gone away in the middle of it: what "
    "ran then has an unknown outcome, and your folder is as it was after the last turn that was "
    "kept."
)
ANEW = " The container that commands run in is a new one, too: only your folder is as before."
ANSWERED = "You were waiting for a person. {said}\n\nGo on with your task."

Why = Literal["", "lost", "cancelled", "drained", "question", "budget", "turns"]


class FleetClient(NullClient):
    """The client of a session that no person watches: its questions go to the inbox.

    ``answers`` are those that a person has given; ``wait`` is called with a question that has none.
    """

    answers = True

    def __init__(
        self,
        answers: tuple[Mapping[str, Any], ...],
        wait: Callable[[dict[str, Any]], None],
        told: Callable[[Event], None],
    ) -> None:
        self._answers = [dict(each) for each in answers]
        self._wait = wait
        self._told = told

    async def update(self, session_id: str, event: Event) -> None:
        """Take note of usage, and of requests that are sent again."""
        self._told(event)

    async def permission(self, session_id: str, request: PermissionRequest) -> str | None:
        """The answer that a person gave to this very call; else it waits for one."""
        question = {
            "kind": "permission",
            "text": f"{request.title}: {request.reason}" if request.reason else request.title,
            "tool": request.call.name,
            "args": dict(request.args),
            "choices": [option.id for option in request.options],
        }
        return await self._answer(question)

    async def ask(self, session_id: str, question: Question) -> Any:
        """The answer that a person gave to this question; else it waits for one."""
        choices = ["yes", "no"] if question.kind == "confirm" else list(question.choices)
        asked = {"kind": question.kind, "text": question.text, "choices": choices}
        answer = await self._answer(asked)
        return answer.lower() in ("yes", "y", "true") if question.kind == "confirm" else answer

    async def _answer(self, question: dict[str, Any]) -> str:
        for given in self._answers:
            if {**given, "answer": None} == {**question, "answer": None}:
                return str(given["answer"])
        self._wait(question)
        await asyncio.Event().wait()  # until the run is cancelled, which comes now
        raise AssertionError


class JobRun:
    """A job that this worker has by an ``offer``.

    ``why`` is why it was called off; empty where it was not.
    """

    order = 1000

    def __init__(
        self,
        board: Board,
        claimed: Claimed,
        root: Path,
        build: Build,
        offer: Offer,
        kinds: Kinds = NONE,
    ) -> None:
        self.board = board
        self.claimed = claimed
        self.offer = offer
        self.place = JobFolder(claimed.task.workspace, root, claimed.job, kinds)
        self.why: Why = ""
        self.is_handed_back = False
        self.question: dict[str, Any] | None = None
        self._build = build
        self._agent: Agent | None = None
        self._session: Session | None = None
        self._cost = claimed.cost
        self._turns = claimed.turns
        self._reported = 0.0
        self._detail = ""

    @property
    def turns(self) -> int:
        """How many requests there were, here and before."""
        return self._turns

    @property
    def cost(self) -> float:
        """Dollars, as far as prices are known."""
        return self._cost

    @property
    def seq(self) -> int:
        """Up to which record its session is stored, exclusively; zero before it has one."""
        store: Any = self._agent.store if self._agent is not None else None
        return store.seq(self._session) if store is not None else 0

    @property
    def key(self) -> tuple[str, int]:
        """What its lease is known by."""
        return self.claimed.job, self.claimed.epoch

    def call_off(self, why: Why) -> None:
        """End it soon."""
        if not self.why:
            self.why = why
        if self._agent is not None and self._session is not None:
            self._agent.cancel(self._session)

    def hand_back(self) -> None:
        """End it with its turn, so that another goes on."""
        self.is_handed_back = True

    def wait_for(self, question: dict[str, Any]) -> None:
        """Let it wait for a person, away from here."""
        self.question = question
        self.call_off("question")

    async def run(self) -> Left | None:
        """Go on until it stops; how it is to be left, None where another has it."""
        try:
            await self.place.prepare(self.claimed.patch)
            reply = await self._work()
            left = await self._left(reply)
        except Exception as error:  # noqa: BLE001 - what fails here is this job's, and no other's
            left = self._after(error)
        if left is not None:
            left = await self._leave(left)
        if left is not None and left.state != "queued":
            await self.place.remove()
        return left

    async def _leave(self, left: Left) -> Left | None:
        """Say how it is left; None where another has it by now."""
        if await retried(lambda: self.board.leave(self.claimed, left), patience=PATIENCE):
            return left
        logger.warning("%s was taken over by another worker", self.claimed.job)
        return None

    async def _work(self) -> Reply | None:
        agent = await self._build(self.claimed.task, self.place.folder, self)
        client = FleetClient(self.claimed.answers, self.wait_for, self._told)
        async with agent:
            session = await self._open(agent, client)
            self._agent, self._session = agent, session
            if self.why:
                return None
            prompt = self._prompt(session)
            if prompt is None:
                return None
            return await agent.prompt(session, prompt)

    async def _open(self, agent: Agent, client: FleetClient) -> Session:
        """The session as it was left, or a new one."""
        task, folder = self.claimed.task, str(self.place.folder)
        store: Any = agent.store
        if await store.knows(self.claimed.job):
            return await self._load(agent, client, folder)
        fields: dict[str, Any] = {"id": self.claimed.job}
        if task.mode:
            fields["mode"] = task.mode
        return await agent.new_session(folder, client=client, **fields)

    async def _load(self, agent: Agent, client: FleetClient, folder: str) -> Session:
        """The session as it was left; for a while it may be open where a person has looked at it.

        Raises `SessionInUse`.
        """
        until = time.monotonic() + IN_USE
        while True:
            try:
                return await agent.load_session(self.claimed.job, client=client, cwd=folder)
            except SessionInUse:
                if self.why or self.is_handed_back or time.monotonic() > until:
                    raise
            await asyncio.sleep(1)

    def _prompt(self, session: Session) -> str | None:
        """What to say to go on; None where all had been said when its machine died."""
        if not session.messages:
            return self.claimed.task.prompt
        if self.claimed.answers:
            last = self.claimed.answers[-1]
            said = f"To “{last['text']}” the answer was: {last['answer']}."
            return ANSWERED.format(said=said)
        if self._has_said_all():
            return None
        container = self.place.container
        return GO_ON + ANEW if container is not None and container.is_new else GO_ON

    def _has_said_all(self) -> bool:
        """True where the last thing that was said is an answer, and wants no tool."""
        messages = self._session.messages if self._session is not None else []
        last = messages[-1] if messages else None
        return last is not None and last["role"] == "assistant" and not last.get("tool_calls")

    def _told(self, event: Event) -> None:
        match event:
            case UsageReported(_, total):
                self._cost = self.claimed.cost + float(total.get("cost") or 0)
            case Retrying(_, delay, _, kind) if kind in PACED:
                self._slow(delay)
            case _:
                pass

    def _slow(self, seconds: float) -> None:
        """Have the whole fleet wait for a provider that refuses for now."""
        if self._agent is not None and self._session is not None:
            slow = self.board.pace.slow(
                rate_limit_of(self._agent.llm, self._session.model), seconds
            )
            asyncio.ensure_future(_quietly(slow))  # noqa: RUF006 - it is done when it is done

    # hooks of the session's agent

    @hook("on_llm_request", timeout=A_DAY)
    async def on_llm_request(self, ctx: RequestContext) -> None:
        """Wait while the provider refuses others of the fleet."""
        model = ctx.model or ctx.session.model
        await self.board.pace.wait(rate_limit_of(ctx.agent.llm, model))

    @hook("after_turn")
    async def after_turn(self, ctx: Context) -> None:
        """Say how far it is, keep what it changed, and stop where it may go no further."""
        if ctx.session.parent is not None:
            return
        self._turns += 1
        task = self.claimed.task
        patch = await self.place.changes()
        now = time.monotonic()
        if patch is not None or now - self._reported > OFTEN or task.max_cost is not None:
            self._reported = now
            report = self.board.report(
                self.claimed, turns=self._turns, cost=self._cost, patch=patch
            )
            if await _quietly(report) is False:
                self._stop(ctx, "budget", "the budget of the batch is spent")
        if self.is_handed_back:
            self._stop(ctx, "drained", "it goes on elsewhere")
        if task.max_cost is not None and self._cost >= task.max_cost:
            self._stop(ctx, "budget", f"it has cost {self._cost:.2f} dollars: its limit")
        if task.max_turns is not None and self._turns >= task.max_turns:
            self._stop(ctx, "turns", f"it has had {self._turns} turns: its limit")

    def _stop(self, ctx: Context, why: Why, text: str) -> None:
        self.why, self._detail = self.why or why, text
        ctx.stop(text)

    # how it ends

    async def _left(self, reply: Reply | None) -> Left | None:
        patch = await self.place.changes()
        state, counts, detail = self._state(reply)
        if state is None:
            return None
        outcome: dict[str, Any] = {"detail": detail}
        if reply is not None:
            outcome |= {"text": reply.text, "stop_reason": reply.stop_reason}
        elif self._session is not None:
            outcome |= {"text": _last(self._session), "stop_reason": "end_turn"}
        if state == "done":
            outcome["branch"] = await self.place.push(self.claimed.task.prompt.splitlines()[0][:72])
        return Left(
            state,
            outcome if state not in ("queued", "waiting") else None,
            self.question if state == "waiting" else None,
            self._cost,
            self._turns,
            patch,
            counts,
        )

    def _state(self, reply: Reply | None) -> tuple[Any, bool, str]:
        """How it stands now, whether that was a try, and what there is to be said of it."""
        match self.why:
            case "budget" | "turns" | "drained" if self._has_said_all():
                return "done", True, ""
            case "lost":
                return None, True, ""
            case "cancelled":
                return "cancelled", True, "cancelled"
            case "drained":
                return "queued", False, ""
            case "question":
                return "waiting", False, ""
            case "budget" | "turns":
                return "stopped", True, self._detail
            case _ if reply is None or reply.stop_reason == "end_turn":
                return "done", True, ""
            case _:
                return self._failed(reply)

    def _failed(self, reply: Reply) -> tuple[Any, bool, str]:
        """How a session is left that failed; it goes on where only the store did."""
        match reply.error:
            case SessionInUse():
                return None, True, ""
            case SessionError():
                return "queued", False, ""
            case ModelError(kind=kind, retry_after=wanted) if kind in PACED and not self._is_last:
                self._slow(wanted or PAUSE)
                return "queued", True, ""
            case _:
                return "failed", True, reply.detail or str(reply.error or reply.stop_reason)

    @property
    def _is_last(self) -> bool:
        """True where it may not begin again."""
        return self.claimed.tries >= self.claimed.task.tries

    def _after(self, error: Exception) -> Left | None:
        """How a job is left that could not go on: queued again where the machine may be why."""
        unforeseen = not isinstance(error, CrowError)
        logger.warning("%s: %r", self.claimed.job, error, exc_info=unforeseen)
        if self.why == "lost":
            return None
        is_used = isinstance(error, SessionInUse)
        is_fatal = isinstance(error, FleetError) or (self._is_last and not is_used)
        is_fatal |= isinstance(error, ContainerError) and self.claimed.tries > 1
        if isinstance(error, CrowError) and not is_fatal:
            return Left("queued", None, None, self._cost, self._turns, counts=not is_used)
        said = str(error) if isinstance(error, CrowError) else repr(error)
        return Left("failed", {"detail": said}, None, self._cost, self._turns)


def _last(session: Session) -> str:
    content = session.messages[-1].get("content") if session.messages else ""
    return content if isinstance(content, str) else ""


async def _quietly(work: Any) -> Any:
    """What the database says; None where it cannot be asked."""
    from psycopg import Error
    from psycopg_pool import PoolTimeout

    try:
        return await work
    except (Error, PoolTimeout) as error:
        logger.info("the fleet's table was not reached: %s", error)
        return None


Build = Callable[[Any, Path, JobRun], Any]
"""Makes the agent of a task in a folder, with the job as one of its hooks."""
