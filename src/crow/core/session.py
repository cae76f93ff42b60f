"""A session: one conversation, in memory."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Coroutine, Generator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import field
from functools import partial
from operator import attrgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

from crow.core.errors import HookError, SessionError, last_line
from crow.core.history import NO_ANSWERS, UNBEGUN, History, Inbox, begins, open_end, unanswered
from crow.core.host import Host
from crow.core.messages import (
    INTERRUPTED,
    Message,
    TokenCount,
    Usage,
    add_usage,
    is_prompt,
    text_of,
)
from crow.core.ports.client import Client, NullClient
from crow.core.ports.tool import SlashCommand, Tool
from crow.core.support.frozen import Shelf, kept, mutable
from crow.core.support.tasks import DOING, Errands, Spawned, nobodys
from crow.core.support.validation import Checked, check, json_object, json_value
from crow.core.trace import Trace

if TYPE_CHECKING:
    from crow.core.host import Agent, HookRegistry, RunContext, Scope, Store

logger = logging.getLogger("crow.hooks")


def is_session(value: object) -> bool:
    """a session or None"""  # noqa: D400, D403 - a noun for sentences
    return value is None or isinstance(value, Session)


def is_store(value: object) -> bool:
    """a store or None"""  # noqa: D400, D403 - a noun for sentences
    return value is None or hasattr(value, "save")


def is_name(value: object) -> bool:
    """a text that is not empty"""  # noqa: D400, D403 - a noun for sentences
    return isinstance(value, str) and value != ""


FIXED = (
    "id", "parent", "trace", "lock", "tasks", "runs", "asking", "cache", "pending", "agent", "hung",
)  # fmt: skip
"""Fields of a session that keep what they begin with."""


KEPT: Mapping[str, Any] = {"cache": Shelf[Any], "pending": Inbox, "tasks": Errands}
"""What its containers are that others must not empty."""


VALUES: Mapping[str, tuple[Any, ...]] = {
    "state": (dict[str, Any],),
    "options": (json_value, {"params": json_object}),
}
"""What the values of its fields that are objects are."""


def _checked(name: str, value: Mapping[str, Any] = MappingProxyType({})) -> Checked[Any]:
    """What a field that is an object holds, whose values are looked at."""
    return Checked(f"session.{name}", value, *VALUES[name])


new_state, new_options = partial(_checked, "state"), partial(_checked, "options")
no_usage = partial(kept, Usage())


@mutable
class Session(Host):
    """One conversation: its history, its directory, and who is at the other end.

    ``messages`` is the history of the current ``segment``: append only, and no message is changed
    in place. ``state`` is JSON, one dict an extension, stored with the session; ``cache`` is not
    stored; a `Key` knows the type of what is there. ``options`` are settings of this session beside
    ``model`` and ``mode``. ``parent`` is set for a sub-agent's, ``agent`` once the session is open.
    ``asking`` is what the user is being asked, by this session and its sub-agents.
    ``hung`` is what hangs here beside what hangs on the agent, None as long as nothing does.
    """

    id: str = field(default_factory=lambda: os.urandom(16).hex())
    cwd: str = "."
    directories: tuple[str, ...] = ()
    messages: list[Message] = field(default_factory=History)
    state: dict[str, dict[str, Any]] = field(default_factory=new_state)
    cache: dict[str, Any] = field(default_factory=Shelf[Any])
    client: Client = field(default_factory=NullClient)
    parent: Session | None = None
    agent_type: str = ""
    title: str = ""
    model: str | None = None
    mode: str = "default"
    options: dict[str, Any] = field(default_factory=new_options)
    segment: int = 0
    usage: Usage = field(default_factory=no_usage)
    store: Store | None = None
    trace: Trace = field(default_factory=Trace)
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    runs: tuple[RunContext, ...] = ()
    pending: Inbox = field(default_factory=Inbox)
    asking: tuple[str, ...] = ()
    tasks: Errands = field(default_factory=Errands)
    closed: bool = False
    agent: Agent | None = None
    hung: Scope | None = None

    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def __setattr__(self, name: str, value: Any) -> None:
        """Set a field; a list of messages becomes a history, which remembers the one before.

        Raises ``TypeError`` for what the field cannot hold, ``AttributeError`` where it is set once
        and for all.
        """
        if name in SHAPES:
            check(f"session.{name}", value, SHAPES[name])
            if name in FIXED and getattr(self, name, value) is not value:
                raise AttributeError(f"session.{name} cannot be replaced")
        if name == "messages":
            value = self._history(value)
        elif name in KEPT:
            value = KEPT[name](value)
        elif name == "usage":
            value = kept(value)
        elif name in VALUES:
            value = _checked(name, value)
        object.__setattr__(self, name, value)

    def _history(self, messages: list[Message]) -> History:
        old: History | None = getattr(self, "messages", None)
        if old is None:
            return History(messages)
        if messages is not old:
            new = History(messages)
            new.follow(old, 4)
            return new
        return old

    if TYPE_CHECKING:

        @property
        def history(self) -> History:
            """The messages, for who keeps them whole."""
            ...

    else:
        history = property(attrgetter("messages"))  # runs no Python: it is asked all the time

    # what hangs here and counts in this session alone, as on an agent

    def belong(self, agent: Agent) -> None:
        """Be open: one of an agent's."""
        object.__setattr__(self, "agent", agent)

    @property
    def scope(self) -> Scope:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Where things hang that count here alone. Raises `SessionError` before it is open."""
        if self.hung is None:
            if self.agent is None:
                raise SessionError("nothing hangs on a session that is not open: new_session()")
            object.__setattr__(self, "hung", self.agent.scope.of(self))
        return cast("Scope", self.hung)

    def refuse_closed(self) -> None:
        """Raise `SessionError` where it is closed: nobody would hear of what is put to it."""
        if self.closed:
            told = "load_session() opens it again, new_session() another one"
            raise SessionError(f"the session {self.id} is closed: {told}")

    @property
    def hooks(self) -> HookRegistry:
        """The hooks of this session: ``@session.hooks.before_tool``."""
        return self.scope.hooks

    @property
    def extensions(self) -> Mapping[str, Any]:
        """The extensions in use here, by name."""
        return self.scope.extensions

    @property
    def tools(self) -> Mapping[str, Tool]:
        """The tools of this session."""
        return self.scope.tools

    @property
    def commands(self) -> Mapping[str, SlashCommand]:
        """The slash commands of this session."""
        return self.scope.commands

    # the history

    def enter(self, run: RunContext) -> None:
        """Let a prompt be worked on."""
        object.__setattr__(self, "runs", (*self.runs, run))

    def leave(self, run: RunContext) -> None:
        """Let a prompt be done with."""
        object.__setattr__(self, "runs", tuple(each for each in self.runs if each is not run))

    @contextmanager
    def asked(self, text: str) -> Generator[None]:
        """Say that the user is asked this."""
        object.__setattr__(self, "asking", (*self.asking, text))
        try:
            yield
        finally:
            at = self.asking.index(text)
            object.__setattr__(self, "asking", self.asking[:at] + self.asking[at + 1 :])

    @property
    def busy(self) -> bool:
        """True while a prompt is being worked on or waits."""
        return bool(self.runs)

    @property
    def next_message_id(self) -> str:
        """The id of the message that is appended next; the same again after a reload."""
        return f"{self.id}.{self.segment}.{len(self.messages)}"

    @property
    def root(self) -> Session:
        """The session that a person talks to: this one, or whichever it works for in the end."""
        return self.line[-1]

    @property
    def line(self) -> list[Session]:
        """This one, and those that it works for, outwards."""
        line: list[Session] = [self]
        while line[-1].parent is not None:
            line.append(line[-1].parent)
        return line

    @property
    def roots(self) -> tuple[str, ...]:
        """The directory and the additional ones."""
        return (self.cwd, *self.directories)

    def latest_prompt(self) -> str:
        """Text of the last message that a person sent; empty where there is none."""
        for message in reversed(self.messages):
            if is_prompt(message):
                return text_of(message.get("content"))
        return ""

    def repair(
        self,
        why: str = INTERRUPTED,
        answers: Mapping[str, Message] = NO_ANSWERS,
        *,
        ongoing: bool | None = None,
    ) -> list[Message]:
        """Answer every tool call that has no answer, with that of ``answers`` or with ``why``.

        Answers are put where they belong, behind their call; answers to no call are dropped.
        Calls at the end stay open where they are ``ongoing``: while a run is on, unless it is that
        which closes them. Returns the messages that were added.
        """
        self._judge()
        return self.history.mend(why, answers, ongoing=self.busy if ongoing is None else ongoing)

    def unanswered(self) -> list[str]:
        """Ids of the tool calls at the end of the history that have no answer yet."""
        return unanswered(self.messages)

    def restart(self, messages: Sequence[Message] | None = None) -> None:
        """Begin a new segment of history under the same id.

        Without ``messages`` it begins with the prompt that is being answered. Calls that wait for
        their results stay at the end, and calls keep the results that they have. Raises `HookError`
        where nobody would speak before those that wait.
        """
        self._judge()
        if messages is None:
            messages = [m for m in reversed(self.messages) if is_prompt(m)][:1]
        check("messages", messages, Sequence[Message])
        waiting = open_end(self.messages) if self.busy else []
        messages = [*(message for message in messages if message not in waiting), *waiting]
        if waiting and not begins(messages):
            raise HookError(f"calls wait for their results, and the history goes on: {UNBEGUN}")
        answers = {m.get("tool_call_id", ""): m for m in self.messages if m["role"] == "tool"}
        self.segment += 1
        object.__setattr__(self, "messages", History(messages, self.history.call_ids))
        self.history.mend(INTERRUPTED, answers, ongoing=bool(waiting))

    def _judge(self) -> None:
        """Take back what somebody did to the history, where it is not whole since."""
        history = self.history
        if history.before is not None and (wrong := history.judged()) is not None:
            raise HookError(f"session.messages was changed, that was undone: {wrong}")

    def report(self, usage: Usage | None, *, ahead: bool = False) -> None:
        """Count what a provider reported for the history as it is now.

        ``ahead`` says that the reply, which the usage includes, is not appended yet.
        """
        if usage:
            self.usage = add_usage(self.usage, usage)
            self.history.report(usage, ahead=ahead)

    def tokens(self, context_window: int | None = None) -> TokenCount:
        """How many tokens the next request will have, about."""
        return self.history.tokens(context_window)

    def save(self) -> bool:
        """Hand what is new to the store; False where no store is in use."""
        if self.store is None:
            return False
        self.store.save(self)
        return True

    def take_back(self, message: Message | None) -> None:
        """Let a message not be said that waits to be."""
        self.pending.put(each for each in self.pending if each is not message)

    def spawn(self, work: Coroutine[Any, Any, object]) -> asyncio.Task[Any]:
        """Run something beside the conversation; it ends with the session.

        A failure is logged, and told at ``on_error`` where a hook, a tool or a command spawned it.
        """
        doing = DOING.get()
        if isinstance(doing, Spawned):
            doing = doing.whose
        whose = None if doing is None else copy(doing)
        task = Spawned(work, whose)
        self.tasks.hold(task)
        task.add_done_callback(lambda _: self._ended(task, whose))
        return task

    def _ended(self, task: Spawned, whose: Any) -> None:
        self.tasks.release(task)
        if task.cancelled() or (error := task.exception()) is None:
            return
        work: Any = task.work
        place = last_line(error, getattr(getattr(work, "cr_code", None), "co_filename", ""))
        name = getattr(work, "__qualname__", task.get_name())
        by = "" if whose is None else f" by {whose.owner}"
        logger.warning("%s, which was spawned%s, failed: %r (%s)", name, by, error, place)
        if whose is not None and not self.closed:
            telling = nobodys(whose.fail(error, f"hook:{whose.owner}", place))
            self.tasks.hold(telling)
            telling.add_done_callback(self.tasks.release)


SHAPES: Mapping[str, Any] = {
    "id": is_name,
    "cwd": str,
    "directories": tuple[str, ...],
    "messages": Sequence[Any],
    "state": dict[str, Any],
    "cache": dict[str, Any],
    "client": Client,
    "parent": is_session,
    "agent_type": str,
    "title": str,
    "model": str | None,
    "mode": is_name,
    "options": dict[str, Any],
    "segment": int,
    "usage": Usage,
    "store": is_store,
    "trace": Trace,
    "lock": asyncio.Lock,
    "runs": tuple[Any, ...],
    "asking": tuple[str, ...],
    "pending": list[Any],
    "tasks": set[Any],
    "closed": bool,
    "agent": Any,
    "hung": Any,
}
"""What the fields of a session hold."""
