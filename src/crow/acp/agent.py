"""The methods of the protocol on an agent, with plain data on both sides."""

from __future__ import annotations

import asyncio
import copy
import errno
import os
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from crow.acp.auth import Authentication
from crow.acp.capabilities import name_of
from crow.acp.client import AcpClient
from crow.acp.config_options import (
    MODE,
    MODEL,
    accepted_inputs,
    listed_name,
    option_changes,
    option_values,
    serves_mcp,
)
from crow.acp.connection import Connection, Result, Transport
from crow.acp.content import from_blocks, written
from crow.acp.errors import (
    Refusal,
    found,
    in_use,
    invalid,
    not_found,
    unauthenticated,
    unknown_method,
)
from crow.acp.jsonrpc import INTERNAL_ERROR, Message, Sent, as_object
from crow.acp.mcp_servers import McpServers
from crow.acp.prompts import is_command
from crow.acp.providers import Providers
from crow.acp.session_access import PEN, SessionAccess, SoleClient, is_taken_over
from crow.acp.stored_sessions import StoredSessions
from crow.acp.trace_context import note_trace
from crow.acp.turn import answer, explain, is_unconfigured, title_of
from crow.acp.versions import Version, version_spoken
from crow.core.agent import Agent
from crow.core.errors import ModelError
from crow.core.events import ConfigChanged, Notice, TitleChanged
from crow.core.messages import Content
from crow.core.session import Session
from crow.core.support.validation import implements
from crow.keys import CLIENT_PROMPT, CLIENT_SERVERS
from crow.ports.models import ModelFinder
from crow.ports.stores import ForkStore

if TYPE_CHECKING:
    import crow.acp.outgoing as v1
    import crow.acp.v2.outgoing as v2

T = TypeVar("T")
SETTLE = 0.02
QUIET = 0.5
"""How long a new session has for its first request before models are looked for, in seconds."""
CLOSING = 1.0
NO_MCP = "the MCP servers of this editor are not used: the agent has no extension for them"


class AcpAgent:
    """Serves one client; each method takes the parameters of a request and gives its result.

    Parameters have the shape that the protocol's schema says. ``turns`` are the prompts that are
    being answered, by session. ``auth`` answers what is about credentials, ``providers`` where
    models are asked, ``shelf`` what is about stored sessions. Methods raise `Refusal`.
    """

    def __init__(
        self,
        agent: Agent,
        transport: Transport,
        connection: Connection,
        access: SessionAccess | None = None,
    ) -> None:
        self.turns: dict[str, set[asyncio.Task[Any]]] = {}
        self.agent = agent
        self.connection = connection
        self._transport = transport
        self.access = access or SoleClient()
        self.auth = Authentication(agent, transport.offer, connection)
        self.providers = Providers(agent)
        self.mcp = McpServers(connection)
        self.shelf = StoredSessions(agent, self.close)
        self._editors: dict[str, AcpClient] = {}

    # sessions

    async def new_session(self, params: Message) -> Result:
        """Open a session; what it has to say beside follows the answer."""
        editor, where = self._editor(params), place(params)
        for path in (where["cwd"], *where["directories"]):
            if not os.path.isdir(path):  # noqa: PTH112 - pathlib raises for what cannot be looked at
                raise invalid(f"there is no directory {path!r}")
        session = await self.agent.new_session(client=editor, **where)
        return self.opened(session, editor, {"sessionId": session.id})

    async def load_session(self, params: Message) -> Result:
        """Open a stored session and show all of it."""
        session, editor = await self.stored(params["sessionId"], params, "load")
        await editor.tell_again()
        return self.opened(session, editor, {})

    async def resume_session(self, params: Message) -> Result:
        """Open a stored session for a client that has it on show already."""
        session, editor = await self.stored(params["sessionId"], params, "resume")
        return self.opened(session, editor, {})

    async def fork_session(self, params: Message) -> Result:
        """Open a session that begins with another one's history."""
        self._prompt_of(params)
        if implements(self.agent.store, ForkStore):
            copied = await found(self.agent.store.fork(params["sessionId"]))
            session, editor = await self.stored(copied, params, "fork")
        else:
            origin, _editor = self.open_session(params)
            editor = self._editor(params)
            session = await self.agent.new_session(
                client=editor, source="fork", **place(params), **inherited(origin)
            )
        return self.opened(session, editor, {"sessionId": session.id})

    async def close_session(self, params: Message) -> v1.CloseSessionResponse:
        """Cancel what runs, and let the session go."""
        session, _editor = self.open_session(params)
        await self.close(session)
        return {}

    # prompts

    async def prompt(self, params: Message) -> Result:
        """Answer a prompt; the answer follows all updates of its turn.

        Nothing is awaited before the agent knows of the prompt, so that a cancellation that comes
        right behind it finds it.
        """
        session, editor = self.open_session(params, wants_pen=is_command(params, PEN))
        content = self.content(params, session)
        note_trace(params, session)
        turn = asyncio.current_task()
        assert turn is not None
        running = self.turns.setdefault(session.id, set())
        running.add(turn)
        editor.begin_turn()
        try:
            sent = written(params["prompt"], content)
            reply = await self.agent.prompt(session, content, written=sent)
            await explain(reply)
            await self.entitle(session, content)
        finally:
            running.discard(turn)
            editor.end_turn()
        if is_unconfigured(reply):
            editor.release()
            raise unauthenticated(reply.detail)
        return Result(answer(reply), editor.release)

    async def entitle(self, session: Session, prompt: Content) -> None:
        """Give a session a title that has none: the beginning of its first prompt."""
        if not session.title and session.messages:
            session.title = title_of(prompt)
            await session.client.update(session.id, TitleChanged(session.title))

    async def cancel(self, params: Message) -> None:
        """End what runs and what waits in a session, or what one sub-agent does; else nothing."""
        session = work = self.agent.sessions.get(params["sessionId"])
        if session is None:
            session, work = self._hired(params["sessionId"])
        editor = None if session is None else self._editors.get(session.id)
        if editor is not None:
            editor.introduce()
        if session is not None and work is not None and self.access.has(session, editor):
            self.agent.cancel(work)

    def _hired(self, subagent: str) -> tuple[Session | None, Session | None]:
        """The session of a person for whom a sub-agent works, and that of the sub-agent."""
        from crow.acp.subagents import hired

        for session in self.agent.sessions.values():
            if (known := hired(session, subagent)) is not None:
                return session, known[0]
        return None, None

    async def steer(self, params: Message) -> Message:
        """Say something to a run that is on; the model reads it with its next request."""
        session, _editor = self.open_session(params)
        content = self.content(params, session)
        if session.busy:
            self.agent.steer(session, content, written=written(params["prompt"], content))
            return {"outcome": "injected"}
        wish = as_object(as_object(params.get("_meta")).get("steering")).get("idleBehavior")
        if wish == "promptRequired":
            return {"outcome": "promptRequired", "reason": "noRunningTurn"}
        self.agent.queue(session, content, written=written(params["prompt"], content))
        return {"outcome": "startedNewTurn"}

    async def take_pen(self, params: Message) -> Message:
        """Let the client have the pen of a session that it watches."""
        self.open_session(params, wants_pen=True)
        return {}

    # choices

    async def set_mode(self, params: Message) -> v1.SetSessionModeResponse:
        """Choose a mode."""
        await self._choose(params, MODE, params["modeId"])
        return {}

    async def set_model(self, params: Message) -> Message:
        """Choose a model, as clients did before there were options."""
        await self._choose(params, MODEL, params["modelId"])
        return {}

    async def set_config_option(
        self, params: Message
    ) -> v1.SetSessionConfigOptionResponse | v2.SetSessionConfigOptionResponse:
        """Choose a mode or a model; the complete list of options, as it is then."""
        editor = await self._choose(params, params["configId"], params["value"])
        return {"configOptions": editor.projection.options()}

    # helpers

    @cached_property
    def version(self) -> Version:
        """The version that the client speaks; settled when it is first asked for."""
        return version_spoken(self.agent, self._transport.hello, self._transport.offer)

    def _editor(self, params: Message) -> AcpClient:
        version = self.version
        able = version.capabilities(self._transport.hello)
        patience = able.question_patience or self._transport.offer.ask_timeout
        self.connection.capabilities = replace(able, question_patience=patience)
        servers = self.mcp.reached(params.get("mcpServers", []))
        editor = AcpClient(self.agent, self.connection, version, servers)
        editor.system_prompt = self._prompt_of(params)
        editor.name = name_of(self._transport.hello)
        wishes = as_object(as_object(params.get("_meta")).get("crow"))
        editor.wants_pen, editor.goes_on = (wishes.get(name) is True for name in ("pen", "goOn"))
        return editor

    def _prompt_of(self, params: Message) -> tuple[str, str] | None:
        """How and what the client adds to the system message; None without. Raises `Refusal`."""
        if params.get("systemPrompt") is None:
            return None
        from crow.acp.client_prompt import client_prompt

        return client_prompt(self.agent, params)

    def content(self, params: Message, session: Session) -> Content:
        """A prompt's blocks as the content of a message, as far as the model takes them."""
        if not params["prompt"]:
            raise invalid("the prompt is empty")
        offer = self._transport.offer
        announced = frozenset(name for name in ("image", "audio") if getattr(offer, name))
        taken = accepted_inputs(self.agent, session)
        return from_blocks(params["prompt"], announced if taken is None else taken)

    def open_session(
        self, params: Message, *, wants_pen: bool = False
    ) -> tuple[Session, AcpClient]:
        """An open session in which the client may speak; one that names it knows of it."""
        session = self.agent.sessions.get(params["sessionId"])
        editor = self._editors.get(params["sessionId"])
        if session is None or editor is None:
            raise not_found(f"there is no open session {params['sessionId']!r}")
        editor.introduce()
        if wants_pen:
            self.access.take(session, editor)
        if not self.access.has(session, editor):
            raise in_use(self.access.refusal(session, editor))
        return session, editor

    async def stored(
        self, session_id: str, params: Message, source: str
    ) -> tuple[Session, AcpClient]:
        """A session from the store, or an open one, with the client at its other end."""
        if self.agent.store is None:
            raise unknown_method(details="this agent stores no sessions")
        editor = self._editor(params)
        known = self.agent.sessions.get(session_id)
        if known is not None and is_taken_over(known):
            await self.agent.close_session(known)
        was_open = session_id in self.agent.sessions
        async with self.access.opening(session_id) as found_open:
            session = found_open
            if session is None:
                load = self.agent.load_session
                loading = load(session_id, client=editor, source=source, **place(params))
                session = await found(loading)
            self.access.attach(session, editor, again=source == "load")
        if was_open and not self.access.is_taken(session, editor):
            self._move(session, editor, params)
        return session, editor

    def _move(self, session: Session, editor: AcpClient, params: Message) -> None:
        """Let what the client names now hold in a session that is open."""
        session.directories = place(params)["directories"]
        CLIENT_SERVERS.set(session, editor.mcp_servers)

    def opened(self, session: Session, editor: AcpClient, fields: Message) -> Result:
        """The answer that makes a session known; commands and held events follow it."""
        self.access.attach(session, editor)
        self._editors[session.id] = editor
        if editor.system_prompt is None:
            CLIENT_PROMPT.pop(session)
        else:
            CLIENT_PROMPT.set(session, editor.system_prompt)
        if editor.mcp_servers and not serves_mcp(self.agent):
            editor.keep(Notice(NO_MCP, "warning"))
        loop = asyncio.get_running_loop()

        def follow() -> None:
            if session.closed:
                return
            if self.agent.commands_of(session):
                editor.post(editor.projection.commands())
            session.spawn(self._look_for_models())
            if editor.goes_on and self.access.has(session, editor):
                from crow.acp.resume_turn import resume_turn

                going = asyncio.create_task(resume_turn(self.agent, session, editor))
                self.connection.tasks.add(going)
                going.add_done_callback(self.connection.tasks.discard)

        editor.follow = follow
        answered: Sent = {**fields, **editor.projection.choices()}
        return Result(answered, lambda: loop.call_later(SETTLE, editor.introduce))

    async def _look_for_models(self) -> None:
        """Ask once which models there are, and tell every session what can be chosen then.

        A prompt that follows at once goes first: its request is on its way by then.
        """
        await asyncio.sleep(QUIET)
        with suppress(ModelError):
            llm = self.agent.llm
            if implements(llm, ModelFinder) and await llm.find_models():
                for editor in self._editors.values():
                    editor.show(ConfigChanged())

    async def close(self, session: Session) -> None:
        """Cancel what runs in a session, and let go of it; not of one that another client uses."""
        editor = self._editors.get(session.id)
        if self.access.is_taken(session, editor):
            raise in_use(self.access.refusal(session, editor))
        self.agent.cancel(session)
        turns = self.turns.pop(session.id, None)
        if turns:
            await asyncio.wait(set(turns), timeout=CLOSING)
        await self.agent.close_session(session)
        self._editors.pop(session.id, None)

    async def _choose(self, params: Message, name: str, value: str | bool) -> AcpClient:
        session, editor = self.open_session(params)
        if name == MODEL and isinstance(value, str):
            value = listed_name(self.agent, value)
        offered = option_values(self.agent, session, name)
        if value not in offered:
            there = ", ".join(map(str, offered)) or "none"
            raise invalid(f"{name} {value!r} is not on offer; there are: {there}")
        changes = option_changes(self.agent, session, name, value)
        refused = await self.agent.configure(session, **changes)
        if refused:
            raise Refusal(INTERNAL_ERROR, refused)
        return editor


def place(params: Message) -> Message:
    """Where a session works: the directory and the additional ones, as fields of `Session`."""
    directories = tuple(params.get("additionalDirectories", ()))
    for path in (params["cwd"], *directories):
        if not Path(path).is_absolute():
            raise invalid(f"not an absolute path: {path!r}")
        if not can_be(path):
            raise invalid("a path is too long, or has letters that no path can have")
    return {"cwd": params["cwd"], "directories": directories}


def can_be(path: str) -> bool:
    """True for a path that could lead somewhere, whether or not it does."""
    try:
        os.lstat(path)
    except ValueError:
        return False
    except OSError as error:
        return error.errno != errno.ENAMETOOLONG
    return True


def inherited(origin: Session) -> dict[str, Any]:
    """What a fork takes over; its own copy of all that can change."""
    copied = Session(messages=list(origin.messages))
    copied.repair("not known here: the conversation was forked meanwhile")
    return {
        "messages": copied.messages,
        "state": copy.deepcopy(origin.state),
        "options": copy.deepcopy(origin.options),
        "title": origin.title,
        "model": origin.model,
        "mode": origin.mode,
    }
