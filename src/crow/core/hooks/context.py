"""The context of every hook: agent, session, its own state, the conversation, the user.

A context is data and never goes stale: it resolves through the session whenever it is used.
"""

from __future__ import annotations

import asyncio
import copy
import logging
import os
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from crow.core.cache import CARRIER, TRACE_CONTEXT
from crow.core.errors import HookError, ModelError
from crow.core.events import Event, StopReason
from crow.core.messages import Message, TokenCount, add_usage, context_block, text_of
from crow.core.ports.client import Client
from crow.core.ports.llm import Completion, PurposeModels, Request, deltas_of
from crow.core.session import Session
from crow.core.support.clock import Clock
from crow.core.support.frozen import frozen
from crow.core.support.tasks import was_abandoned
from crow.core.support.validation import implements
from crow.core.trace import Trace
from crow.core.ui import UI

if TYPE_CHECKING:
    from crow.core.host import Agent, RunContext

logger = logging.getLogger("crow.hooks")


@frozen
class Stopping:
    """Why a run is to end, and who wanted it."""

    reason: str
    by: str
    stop_reason: StopReason


@dataclass(slots=True, eq=False, repr=False, init=False)
class Context:
    """The context of every hook: agent, session, its own state, the user.

    ``shapes`` says what the fields hold that a hook may assign; ``kept`` names the fields of which
    a hook gets a copy, because they can be changed in place.
    """

    shapes: ClassVar[Mapping[str, Any]] = {}
    kept: ClassVar[tuple[str, ...]] = ()

    agent: Agent
    session: Session
    run: RunContext | None = field(default=None, kw_only=True)
    owner: str = field(default="", init=False)
    clock: Clock | None = field(default=None, init=False)

    def __init__(self, agent: Agent, session: Session, run: RunContext | None = None) -> None:
        self.agent = agent
        self.session = session
        self.run = run
        self.owner = ""
        self.clock = None

    @property
    def session_id(self) -> str:
        """The session's id."""
        return self.session.id

    @property
    def cwd(self) -> str:
        """The session's directory, absolute."""
        return self.session.cwd

    @property
    def roots(self) -> tuple[str, ...]:
        """The session's directory and its additional ones, absolute."""
        return self.session.roots

    @property
    def client(self) -> Client:
        """Whoever is at the other end."""
        return self.session.client

    @property
    def state(self) -> dict[str, Any]:
        """The running extension's own JSON in this session, stored with it.

        Raises `HookError` in a context that belongs to nobody.
        """
        if not self.owner:
            raise HookError("this context is no extension's, so it has no state: use the hook's")
        return self.session.state.setdefault(self.owner, {})

    @property
    def cache(self) -> dict[str, Any]:
        """The session's memory that is not stored."""
        return self.session.cache

    @property
    def environment(self) -> dict[str, str]:
        """What a program finds that is started here: no keys of models, and the trace context."""
        traced = {name.upper(): text for name, text in self.trace_context.items()}
        return {**self.agent.environment(), **traced}

    @property
    def trace_context(self) -> Mapping[str, str]:
        """The W3C trace context of what is done here; empty where there is none.

        That of whoever makes spans, else the one that the client gave with its prompt.
        """
        carrier = CARRIER.get(self)
        return carrier(self) if carrier else TRACE_CONTEXT.get(self.session.root) or {}

    @property
    def secrets(self) -> list[str]:
        """What no output may show, such as keys of models."""
        return self.agent.secrets

    @property
    def trace(self) -> Trace:
        """What the hooks of this session did."""
        return self.session.trace

    @property
    def ui(self) -> UI:
        """Questions and notices to the user."""
        return UI(self)

    async def emit(self, event: Event) -> None:
        """Tell the client, unless an ``on_update`` hook objects."""
        self.hold_back()
        point = self.agent.hooks.on_update
        if point.line(self.session):
            update = point.context(self.agent, self.session, event, run=self.run)
            if await point.fire(update):
                return
            event = update.update
        await self.session.client.update(self.session.id, event)

    async def append(self, message: Message) -> None:
        """Put a message at the end of the history."""
        self.hold_back()
        await self.heal()
        self.session.history.add(message)
        await self.tell_of(message)

    async def tell_of(self, message: Message) -> None:
        """Fire ``on_message``."""
        point = self.agent.hooks.on_message
        if point.line(self.session):
            await point.fire(point.context(self.agent, self.session, message, run=self.run))

    async def heal(self, by: str = "somebody") -> HookError | None:
        """Take back what others did to the history, if it is not whole since; say who it was."""
        history = self.session.history
        if history.before is None:
            return None
        wrong = history.judged(too_late=was_abandoned(history.task))
        if wrong is None:
            return None
        told = f"{by} changed session.messages and that was undone: {wrong} ({history.place})"
        error = HookError(f"{told}; use ctx.inject_context(text)")
        if by == "somebody":
            logger.warning("%s", error)
            await self.fail(error, "hook")
        return error

    def hold_back(self) -> None:
        """Let code that ignored its cancellation do nothing more to the conversation."""
        run = self.run
        if run is not None and run.abandoned and asyncio.current_task() is not run.supervisor:
            raise asyncio.CancelledError

    async def get_latest_user_message(self) -> str:
        """Text of the last prompt; in ``before_run`` the one that is not stored yet."""
        if self.run is not None and not self.run.stored:
            return text_of(self.run.prompt)
        return self.session.latest_prompt()

    async def get_messages(self) -> list[Message]:
        """A copy of the history."""
        return copy.deepcopy(self.session.messages)

    async def inject_context(self, text: str) -> None:
        """Put a marked block at the tail of the conversation, at its next whole seam.

        In ``before_run`` that is right behind the prompt, and nowhere if the prompt is refused.
        """
        self.hold_back()
        self.session.pending.append(context_block(text, self.owner or "crow"))

    async def get_token_count(self) -> TokenCount:
        """How full the window is, anchored on what the provider reported."""
        return self.session.tokens(self.agent.context_window(self.session))

    def model_for(self, purpose: str) -> str | None:
        """The model for what is asked beside the conversation, such as ``summary`` or ``judge``.

        It is the name for `Request.model`: the one that the settings' ``purposes`` have for this
        word, which may be an extension's own, else that of the conversation.
        """
        llm = self.agent.llm
        chosen = llm.purposes.get(purpose) if implements(llm, PurposeModels) else None
        return chosen or self._own_model

    @property
    def _own_model(self) -> str | None:
        return self.session.model

    async def complete(self, request: Request) -> Completion:
        """Ask the model beside the conversation: nothing is shown, stored or hooked.

        The tokens count for the session and the run. Raises `ModelError`.
        """
        async with aclosing(deltas_of(self.agent.llm, request)) as deltas:
            async for delta in deltas:
                if isinstance(delta, Completion):
                    self.session.usage = add_usage(self.session.usage, delta.usage)
                    if self.run is not None:
                        self.run.reply.usage = add_usage(self.run.reply.usage, delta.usage)
                    return delta
        raise ModelError(
            "the model ended without an answer: the last that it yields is a Completion",
            kind="protocol",
        )

    def stop(self, reason: str = "", *, stop_reason: StopReason = "hook_stopped") -> None:
        """End the run gracefully: calls that did not run are answered "not run"."""
        self.hold_back()
        if self.run is not None:
            self.run.stopping = Stopping(reason, self.owner, stop_reason)

    async def stop_current_turn(self) -> None:
        """Let nothing more happen in this run after the current event."""
        self.stop()

    async def continue_with_current_session(self) -> None:
        """Take a stop back."""
        self.hold_back()
        if self.run is not None:
            self.run.stopping = None

    async def restart_with_new_session(self, messages: Sequence[Message] | None = None) -> str:
        """Begin a new segment of history under the same session id, which is returned.

        Without ``messages`` it begins with the prompt that is being answered. The old segment
        stays in the store.
        """
        self.hold_back()
        self.session.restart(messages)
        await self._replaced("", "restart")
        return self.session.id

    async def compact(
        self, messages: Sequence[Message], summary: str, trigger: str = "manual"
    ) -> bool:
        """Replace the history by a summary and the messages that are kept.

        Fires ``before_compact`` and ``after_compact``; False where a hook objected.
        """
        self.hold_back()
        point = self.agent.hooks.before_compact
        ctx = point.context(
            self.agent, self.session, list(messages), summary, trigger, run=self.run
        )
        if await point.fire(ctx):
            return False
        head = [context_block(ctx.summary, "summary")] if ctx.summary else []
        self.session.restart([*head, *ctx.messages])
        await self._replaced(ctx.summary, trigger)
        return True

    async def _replaced(self, summary: str, trigger: str) -> None:
        point = self.agent.hooks.after_compact
        messages = self.session.messages
        ctx = point.context(self.agent, self.session, messages, summary, trigger, run=self.run)
        await point.fire(ctx)

    async def change_directory(self, cwd: str) -> None:
        """Let the session work in another directory; fires ``on_cwd_changed``.

        ``cwd`` is absolute. Raises `HookError` where it is no directory, and while calls wait for
        their results: they were judged where the session works.
        """
        self.hold_back()
        if not os.path.isabs(cwd) or not os.path.isdir(cwd):  # noqa: PTH112, PTH117 - any text
            raise HookError(f"there is no directory {cwd!r}: its whole path is wanted")
        if any(run.open for run in self.session.runs):
            raise HookError("calls wait for their results, and were judged in another directory")
        session, old = self.session, self.session.cwd
        session.cwd = cwd
        session.directories = tuple(path for path in session.directories if path != cwd)
        point = self.agent.hooks.on_cwd_changed
        await point.fire(point.context(self.agent, session, old, cwd, run=self.run))

    async def fail(self, error: BaseException, where: str, place: str = "") -> None:
        """Fire ``on_error``; ``where`` is ``model``, ``loop``, ``tool`` or ``hook:NAME``."""
        point = self.agent.hooks.on_error
        if point.chain(self.session):
            ctx = point.context(self.agent, self.session, error, where, place, run=self.run)
            await point.fire(ctx)
