"""The agent: a model, tools, hooks, sessions, and the extensions that brought them."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Coroutine, Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar, cast

from crow.core.catalog import AnyCatalog, Mode, PromptSection
from crow.core.defaults import ChatClient, Defaults
from crow.core.extensions import Found, refuse_unbrought, warn_of_broken
from crow.core.hooks.call_stack import is_own, refuse_own
from crow.core.hooks.contexts import NotificationContext, SessionContext, ToolContext
from crow.core.hooks.registry import HookRegistry
from crow.core.hooks.run_context import Reply, RunContext
from crow.core.host import Host
from crow.core.messages import Content, ToolSpec, prompt_of
from crow.core.ports.client import Client, NullClient
from crow.core.ports.llm import LLM, KeyUser, Request, model_named
from crow.core.ports.tool import SlashCommand, Tool
from crow.core.prompt import answered, queued, run_prompt
from crow.core.scope import Scope
from crow.core.session import Session
from crow.core.support.tasks import nobodys
from crow.core.support.validation import implements, refuse_no_lists
from crow.core.tool_call import call_tools
from crow.core.tools import Call, ToolResult
from crow.core.turn import next_request
from crow.core.ui import withdraw

if TYPE_CHECKING:
    from crow.core.store import Store

logger = logging.getLogger("crow.extensions")

Said = TypeVar("Said", str, ToolResult)


class Agent(Host):
    """A model and tools in a loop, and whatever hangs on it.

    ``llm`` is a model, the name of one, or a client such as ``openai.AsyncOpenAI``, which
    ``model`` tells what to ask for; ``hooks`` are extensions of any sort (objects, classes,
    modules, functions); ``tools`` replace the built-in ones. With ``entry_points`` installed
    packages are used before ``hooks``, see `discover`; it may hold their options by name. Use it
    as an async context manager, or call `close`, to end its sessions and release what its
    extensions hold.
    """

    defaults: ClassVar[Defaults] = Defaults()

    def __init__(
        self,
        llm: LLM | ChatClient | str | None = None,
        *,
        model: str | None = None,
        hooks: Iterable[Any] = (),
        tools: Iterable[Tool] | None = None,
        entry_points: bool | Mapping[str, Mapping[str, Any]] = False,
        parent: Agent | None = None,
    ) -> None:
        if parent is None:
            refuse_no_lists(hooks=hooks, tools=() if tools is None else tools)
        if isinstance(llm, type):
            raise TypeError(
                f"{llm.__name__} is a class: give one that is made, {llm.__name__}(...)"
            )
        self._llm = llm
        self._key_user: tuple[Any, KeyUser | None] = None, None
        self._model = model
        self.parent = parent
        self.scope = scope = Scope(self)
        self.hooks: HookRegistry = scope.hooks
        self.extensions = scope.extensions
        self.tools, self.commands = scope.tools, scope.commands
        self.modes, self.sections = scope.modes, scope.sections
        self.found: list[Found] = []
        self.store: Store | None = None
        self.stop_cap = 8
        self.withheld = parent.withheld if parent else frozenset(self.defaults.keys())
        self.known_secrets: frozenset[str] = frozenset()
        self._sessions: dict[str, Session] = {}
        self._closing: dict[str, asyncio.Task[None]] = {}
        for tool in self.defaults.tools() if tools is None else tools:
            self.add_tool(tool)
        if entry_points is not False:
            given: Mapping[str, Any] = {} if entry_points is True else entry_points
            refuse_unbrought(given, self.discover(given))
        warn_of_broken(self.found)
        for thing in hooks:
            self.use(thing)

    def environment(self) -> dict[str, str]:
        """What programs find that are started for a session.

        No variable that is ``withheld``, and none by which a shell would understand a command
        otherwise than whoever judged it.
        """
        from crow.core.secrets import for_programs

        return for_programs(self.withheld)

    @property
    def secrets(self) -> list[str]:
        """What no output may show, the longest first.

        These are the values of what is ``withheld``, the ``known_secrets``, and the keys that
        models have come by in another way.
        """
        from crow.core.secrets import longest_first, values_of

        values = {*values_of(self.withheld), *self.known_secrets}
        if self._key_user[0] is not self._llm:  # what it is takes its time to find out
            self._key_user = self._llm, self._llm if implements(self._llm, KeyUser) else None
        if (user := self._key_user[1]) is not None:
            values |= {*user.secrets}
        return longest_first(values | {*self.parent.secrets} if self.parent else values)

    def scrubbed(self, said: Said) -> Said:
        """What a tool says, without the `secrets`."""
        secrets = self.secrets
        if not secrets:
            return said
        from crow.core.secrets import scrubbed

        return scrubbed(said, secrets)

    # what it is made of

    @property
    def llm(self) -> LLM:
        """The model. Raises `ModelError` where none is configured."""
        if not hasattr(self._llm, "stream"):
            given = cast("ChatClient | str | None", self._llm)
            self._llm = self.defaults.llm(given, self._model)
        return cast(LLM, self._llm)

    @llm.setter
    def llm(self, llm: LLM | ChatClient | str | None) -> None:
        self._llm = llm

    @property
    def sessions(self) -> Mapping[str, Session]:
        """The open sessions by id."""
        return MappingProxyType(self._sessions)

    @property
    def catalogs(self) -> tuple[AnyCatalog, ...]:
        """Everything that extensions add to, beside hooks."""
        return self.scope.catalogs

    # what counts in a session: what hangs there, and on the agent

    def scope_of(self, session: Session | None) -> Scope:
        """Where what counts in a session hangs, next to it: there, or on the agent."""
        while session is not None:
            if session.hung is not None and session.agent is self:
                return session.hung
            session = session.parent
        return self.scope

    def tools_of(self, session: Session) -> Mapping[str, Tool]:
        """The tools that the model of a session can call."""
        return self.scope_of(session).whole("tools")

    def commands_of(self, session: Session) -> Mapping[str, SlashCommand]:
        """The slash commands of a session."""
        return self.scope_of(session).whole("commands")

    def modes_of(self, session: Session) -> Mapping[str, Mode]:
        """The modes that the user of a session can choose."""
        return self.scope_of(session).whole("modes")

    def sections_of(self, session: Session) -> Mapping[str, PromptSection]:
        """The parts of a session's system prompt."""
        return self.scope_of(session).whole("sections")

    def extensions_of(self, session: Session) -> Mapping[str, Any]:
        """The extensions of a session by name."""
        return self.scope_of(session).all_extensions()

    def tool(self, name: str, session: Session) -> Tool | None:
        """A tool by name."""
        return self.tools_of(session).get(name)

    def tool_specs(self, session: Session) -> list[ToolSpec]:
        """What the model of a session is told of the tools; the same list while nothing changes."""
        return self.scope_of(session).tool_specs()

    def request_of(self, session: Session) -> Request:
        """The next request of a session, as it is before any hook has seen it."""
        return next_request(self, session)

    # extensions

    def discover(
        self,
        options: Mapping[str, Mapping[str, Any]] | None = None,
        *,
        disabled: Iterable[str] = (),
        trusted: Iterable[str] = (),
    ) -> list[Found]:
        """Use every installed package that has an entry point in the group ``crow.extensions``.

        By name, each by itself: a broken one is named in the result and stops nobody. Crow's own
        are left to `crow.build`, and those of the group ``crow.extensions.on_request`` out where
        there are no ``options`` for them.
        """
        off, listed = frozenset(disabled), frozenset(trusted)
        self.found += self.defaults.discover(self, options or {}, off, listed)
        return self.found

    def child(
        self,
        llm: LLM | str | None = None,
        *,
        hooks: Iterable[Any] = (),
        tools: Iterable[Tool] | None = None,
    ) -> Agent:
        """An agent for a sub-task: its own history and tools, the gates of this one."""
        own = self.tools.values() if tools is None else tools
        asked = None if llm else self._model
        return Agent(llm or self._llm, model=asked, hooks=hooks, tools=own, parent=self)

    # sessions

    async def start(self) -> None:
        """Enter the lifespans of the extensions; done by the first prompt if not before."""
        await self.scope.start()

    async def stop(self, name: str) -> None:
        """Leave the lifespan of one extension, also of one that was removed."""
        await self.scope.stop(name)

    async def new_session(
        self,
        cwd: str | os.PathLike[str] = ".",
        *,
        client: Client | None = None,
        parent: Session | None = None,
        source: str = "",
        **fields: Any,
    ) -> Session:
        """Open a conversation in a directory; ``fields`` are `Session`'s."""
        session = Session(
            cwd=os.path.abspath(os.path.expanduser(cwd)),  # noqa: PTH100 - no resolving
            client=client or NullClient(),
            parent=parent,
            store=self.store,
            **fields,
        )
        return await self._open(session, source or ("subagent" if parent else "new"))

    async def load_session(
        self,
        session_id: str,
        *,
        client: Client | None = None,
        source: str = "load",
        **fields: Any,
    ) -> Session:
        """Open a stored conversation; ``fields`` replace those of the stored `Session`.

        Raises `SessionError` where that cannot be had.
        """
        if session_id in self._sessions:
            session = self._sessions[session_id]
            session.client = client or session.client
            return session
        from crow.core.sessions import stored

        session = await stored(self, session_id, client, fields)
        return await self._open(session, source)

    async def delete_session(self, session_id: str) -> bool:
        """Remove a stored session for good; False where there is none.

        What extensions keep of it goes as well: they have an async ``forget_session(session_id)``.
        Raises `SessionError` where it is in use, and where nothing is stored at all.
        """
        from crow.core.sessions import delete

        return await delete(self, session_id)

    async def _open(self, session: Session, source: str) -> Session:
        await self.start()
        self._sessions[session.id] = session
        session.belong(self)
        await self.hooks.on_session_start.fire(SessionContext(self, session, source=source))
        return session

    async def close_session(self, session: Session, reason: str = "closed") -> None:
        """Cancel what runs, end what runs beside it, and let the session go.

        It does so to the end, even where whoever wants it is part of what is cancelled.
        """
        if not session.closed:
            await asyncio.shield(self._end(session, reason))

    def _end(self, session: Session, reason: str) -> asyncio.Task[None]:
        """Begin to let a session go, for whoever asks."""
        from crow.core.sessions import end, who_waits

        session.closed = True
        closing = nobodys(end(self, session, reason, who_waits(session)))
        closing.add_done_callback(lambda _: self._sessions.pop(session.id, None))
        self._closing[session.id] = closing
        closing.add_done_callback(lambda _: self._closing.pop(session.id))
        self.cancel(session)
        return closing

    async def close(self) -> None:
        """Close all sessions, side by side, and leave the lifespans, last entered first."""
        ending = [
            self._closing.get(each.id) for each in self._sessions.values() if not is_own(each)
        ]
        ending += [self._end(each, "exit") for each in self._sessions.values() if not each.closed]
        for closing in filter(None, ending):
            await asyncio.shield(closing)
        await self.scope.close()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    # prompts

    def run(
        self,
        prompt: Content,
        *,
        cwd: str | os.PathLike[str] = ".",
        session: Session | None = None,
        client: Client | None = None,
    ) -> Coroutine[Any, Any, Reply]:
        """Answer a prompt, in a new session unless one is given; ``reply.session`` goes on.

        Raises what the model or the loop failed with, and `SessionError` at once where the session
        waits for whoever calls this.
        """
        if session is not None:
            refuse_own(session)
        return run_prompt(self, prompt, session, cwd, client)

    def prompt(
        self,
        session: Session,
        prompt: Content,
        *,
        shown: bool = True,
        written: list[dict[str, Any]] | None = None,
    ) -> Coroutine[Any, Any, Reply]:
        """Answer a prompt; prompts of one session follow one another.

        Never raises for a failed run: ``reply.stop_reason`` is ``error`` then. ``after_run`` fires
        as soon as the caller waits for something else. ``shown`` is False for a prompt that the
        client does not know of; ``written`` is what it sent, where ``prompt`` says less. Raises
        `SessionError` at once where the session waits for whoever calls this: its hooks and tools,
        and those of its sub-agents.
        """
        refuse_own(session)
        return answered(self, session, prompt, shown=shown, written=written)

    def queue(
        self, session: Session, prompt: Content, *, written: list[dict[str, Any]] | None = None
    ) -> None:
        """Prompt again as soon as the session is free, without waiting for the answer."""
        session.spawn(queued(self, session, prompt, written))

    def steer(
        self, session: Session, prompt: Content, *, written: list[dict[str, Any]] | None = None
    ) -> None:
        """Say something to a run that is on: the model reads it with its next request."""
        if session.busy:
            session.pending.append(prompt_of(prompt, written))
        else:
            self.queue(session, prompt, written=written)

    async def call_tools(self, run: RunContext, calls: Iterable[Call]) -> list[ToolContext]:
        """Run tool calls that no model asked for as the loop runs the model's: judged, and shown.

        Raises `CrowError` where one of them is not permitted, before any has run.
        """
        return await call_tools(run, calls)

    def cancel(self, session: Session) -> None:
        """End what is running and what waits in a session; nothing where it is idle.

        A question that a hook asks beside a run, such as at ``after_run``, has its default then.
        """
        for run in session.runs:
            run.cancel()
        withdraw(session)

    async def configure(self, session: Session, **changes: Any) -> str | None:
        """Change ``model``, ``mode`` or an option; the reason where a hook objects."""
        from crow.core.sessions import configure

        return await configure(self, session, changes)

    def context_window(self, session: Session) -> int | None:
        """How many tokens a request of this session may have, where that is known."""
        return model_named(self.llm, session.model).context_window

    async def notify(
        self, session: Session, kind: str, message: str, run: RunContext | None = None
    ) -> None:
        """Fire ``on_notification``: somebody should look."""
        if self.hooks.on_notification.chain(session):
            ctx = NotificationContext(self, session, kind, message, run=run)
            await self.hooks.on_notification.fire(ctx)
