"""What every hook can reach: agent, session, its own state, the conversation, the user.

A context never goes stale: it resolves through the session whenever it is used.
"""

from __future__ import annotations

import asyncio
import copy
import logging
from collections.abc import Generator, Mapping, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar

from crow.core.errand import was_abandoned
from crow.core.errors import HookError, ModelError
from crow.core.events import Event, Notice, Severity, StopReason
from crow.core.history import flaw
from crow.core.kept import fixed
from crow.core.messages import Message, add_usage, context_block, text_of
from crow.core.ports import Client, Completion, OptionKind, Question, Request
from crow.core.session import Session, TokenCount
from crow.core.shapes import fits, is_event
from crow.core.trace import Trace

if TYPE_CHECKING:
    from crow.core.agent import Agent
    from crow.core.context import RunContext

logger = logging.getLogger("crow.hooks")

Choice = TypeVar("Choice", bound=str)


class Clock(Protocol):
    """A running hook's time, which stands still while it waits for the user."""

    def pause(self) -> None: ...
    def resume(self) -> None: ...


@fixed
@dataclass(frozen=True, slots=True)
class Stopping:
    """Why a run is to end, and who wanted it."""

    reason: str
    by: str
    stop_reason: StopReason


class Context:
    """What every hook can reach: agent, session, its own state, the user.

    ``shapes`` says what the fields hold that a hook may assign; ``kept`` names the fields of which
    a hook gets a copy, because they can be changed in place.
    """

    __slots__ = ("agent", "clock", "owner", "run", "session")

    shapes: ClassVar[Mapping[str, Any]] = {}
    kept: ClassVar[tuple[str, ...]] = ()

    def __init__(self, agent: Agent, session: Session, run: RunContext | None = None) -> None:
        self.agent = agent
        self.session = session
        self.run = run
        self.owner = ""
        self.clock: Clock | None = None

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
        """What a program finds that is started here: no keys of models."""
        return self.agent.environment()

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
        if point.entries:
            update = UpdateContext(self.agent, self.session, self.run, event)
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
        if point.entries:
            await point.fire(MessageContext(self.agent, self.session, self.run, message))

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

    async def deliver(self) -> None:
        """Put injected context at the end of the history; only where that is whole."""
        await self.heal()
        pending = self.session.pending
        while pending:
            message = pending.pop(0)
            if fits(Message)(message) and flaw([message]) is None:
                await self.append(message)
            else:
                logger.warning("left out what is no message for the model: %.60r", message)

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

    async def complete(self, request: Request) -> Completion:
        """Ask the model beside the conversation: nothing is shown, stored or hooked.

        The tokens count for the session and the run. Raises `ModelError`.
        """
        async with aclosing(self.agent.llm.stream(request)) as deltas:
            async for delta in deltas:
                if isinstance(delta, Completion):
                    self.session.usage = add_usage(self.session.usage, delta.usage)
                    if self.run is not None:
                        self.run.reply.usage = add_usage(self.run.reply.usage, delta.usage)
                    return delta
        raise ModelError("the model ended without an answer", kind="protocol")

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
        ctx = CompactContext(self.agent, self.session, self.run, list(messages), summary, trigger)
        if await self.agent.hooks.before_compact.fire(ctx):
            return False
        head = [context_block(ctx.summary, "summary")] if ctx.summary else []
        self.session.restart([*head, *ctx.messages])
        await self._replaced(ctx.summary, trigger)
        return True

    async def _replaced(self, summary: str, trigger: str) -> None:
        ctx = CompactContext(
            self.agent, self.session, self.run, self.session.messages, summary, trigger
        )
        await self.agent.hooks.after_compact.fire(ctx)

    async def fail(self, error: BaseException, where: str, place: str = "") -> None:
        """Fire ``on_error``; ``where`` is ``model``, ``loop``, ``tool`` or ``hook:NAME``."""
        point = self.agent.hooks.on_error
        if point.entries:
            about = self.agent, self.session, self.run
            await point.fire(ErrorContext(*about, error, where, place))


class UI:
    """The user, as a hook can ask. The hook's clock stands still meanwhile."""

    __slots__ = ("_ctx",)

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx

    async def confirm(self, text: str, *, default: bool = False) -> bool:
        """A yes or no."""
        return bool(await self._ask(Question(text, "confirm", default=default)))

    async def select(
        self,
        text: str,
        choices: Sequence[Choice],
        *,
        default: Choice | None = None,
        kinds: Sequence[OptionKind] = (),
        detail: str = "",
        word: str = "",
    ) -> Choice | None:
        """One of several; the default where nobody can answer.

        ``kinds`` says what each choice permits, ``detail`` what to know before answering, ``word``
        what must be typed for the last choice, so that it is not made by chance.
        """
        question = Question(text, "select", tuple(choices), default, tuple(kinds), detail, word)
        return await self._ask(question)

    async def ask(self, text: str, *, default: str = "") -> str:
        """A line of text."""
        return str(await self._ask(Question(text, "text", default=default)))

    async def notify(self, text: str, *, severity: Severity = "info") -> None:
        """Tell the user something; never part of the conversation."""
        await self._ctx.emit(Notice(text, severity, self._ctx.owner))

    async def _ask(self, question: Question) -> Any:
        with waiting(self._ctx):
            return await self._ctx.client.ask(self._ctx.session.id, question)


@contextmanager
def waiting(ctx: Context) -> Generator[None]:
    """Stop the running hook's clock."""
    clock = ctx.clock
    if clock is not None:
        clock.pause()
    try:
        yield
    finally:
        if clock is not None:
            clock.resume()


class UpdateContext(Context):
    """An event on its way to the client."""

    __slots__ = ("update",)

    shapes = {"update": is_event}  # noqa: RUF012 - a table

    def __init__(
        self, agent: Agent, session: Session, run: RunContext | None, update: Event
    ) -> None:
        super().__init__(agent, session, run)
        self.update = update


class MessageContext(Context):
    """A message was appended to the history."""

    __slots__ = ("message",)

    kept = ("message",)

    def __init__(
        self, agent: Agent, session: Session, run: RunContext | None, message: Message
    ) -> None:
        super().__init__(agent, session, run)
        self.message = message


class CompactContext(Context):
    """The history is replaced by ``summary`` and ``messages``, the ones that are kept whole.

    ``trigger`` is ``auto``, ``manual``, ``overflow`` or ``restart``.
    """

    __slots__ = ("messages", "summary", "trigger")

    shapes = {"messages": list[Message], "summary": str}  # noqa: RUF012 - a table
    kept = ("messages",)

    def __init__(
        self,
        agent: Agent,
        session: Session,
        run: RunContext | None,
        messages: list[Message],
        summary: str,
        trigger: str,
    ) -> None:
        super().__init__(agent, session, run)
        self.messages = messages
        self.summary = summary
        self.trigger = trigger


class ErrorContext(Context):
    """Something failed; ``where`` is ``model``, ``loop``, ``tool`` or ``hook:NAME``.

    ``place`` is the file and line of a hook that failed, empty for anything else.
    """

    __slots__ = ("error", "place", "where")

    def __init__(
        self,
        agent: Agent,
        session: Session,
        run: RunContext | None,
        error: BaseException,
        where: str,
        place: str = "",
    ) -> None:
        super().__init__(agent, session, run)
        self.error = error
        self.where = where
        self.place = place
