"""The editor's face: the methods of the protocol on an agent.

Imports the protocol's library, so it is imported itself only when that is there.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Awaitable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from acp.exceptions import RequestError
from acp.schema import PromptRequest

from crow.acp import options
from crow.acp.abilities import Abilities
from crow.acp.content import from_blocks
from crow.acp.editor import Editor
from crow.acp.handshake import AUTH_METHOD
from crow.acp.jsonrpc import INTERNAL_ERROR, NOT_FOUND, Message, as_object
from crow.acp.link import Link
from crow.acp.peer import Peer
from crow.acp.transport import Result
from crow.acp.turn import answer, title_of
from crow.acp.updates import commands
from crow.core.agent import Agent
from crow.core.errors import ModelError, SessionError
from crow.core.events import TitleChanged
from crow.core.messages import Content
from crow.core.session import Session, Store

if TYPE_CHECKING:
    from pydantic import BaseModel

T = TypeVar("T")
SETTLE = 0.02
CLOSING = 1.0
STEERING = "session/steering"


class Face:
    """Serves one client. ``turns`` are the prompts that are being answered, by session."""

    def __init__(self, agent: Agent, link: Link, peer: Peer) -> None:
        self.turns: dict[str, set[asyncio.Task[Any]]] = {}
        self._agent = agent
        self._link = link
        self._peer = peer
        self._editors: dict[str, Editor] = {}

    # sessions

    async def new_session(
        self,
        cwd: str,
        mcp_servers: list[BaseModel] | None = None,
        additional_directories: list[str] | None = None,
        **_: Any,
    ) -> Message:
        """Open a session; what it has to say beside follows the answer."""
        editor = self._editor(mcp_servers)
        session = await self._agent.new_session(
            absolute(cwd), client=editor, directories=directories(additional_directories)
        )
        return self._opened(session, editor, {"sessionId": session.id})

    async def load_session(
        self,
        cwd: str,
        session_id: str,
        mcp_servers: list[BaseModel] | None = None,
        additional_directories: list[str] | None = None,
        **_: Any,
    ) -> Message:
        """Open a stored session and show all of it."""
        where = absolute(cwd), directories(additional_directories)
        session, editor = await self._stored(session_id, where, mcp_servers, "load")
        await editor.tell_again()
        return self._opened(session, editor, {})

    async def resume_session(
        self,
        session_id: str,
        cwd: str,
        mcp_servers: list[BaseModel] | None = None,
        additional_directories: list[str] | None = None,
        **_: Any,
    ) -> Message:
        """Open a stored session for a client that has it on show already."""
        where = absolute(cwd), directories(additional_directories)
        session, editor = await self._stored(session_id, where, mcp_servers, "resume")
        return self._opened(session, editor, {})

    async def fork_session(
        self,
        session_id: str,
        cwd: str,
        mcp_servers: list[BaseModel] | None = None,
        additional_directories: list[str] | None = None,
        **_: Any,
    ) -> Message:
        """Open a session that begins with another one's history."""
        where = absolute(cwd), directories(additional_directories)
        copying: Any = getattr(self._agent.store, "fork", None)
        if copying is not None:
            copied = await found(copying(session_id))
            session, editor = await self._stored(copied, where, mcp_servers, "fork")
        else:
            origin, _editor = self._open_session(session_id)
            editor = self._editor(mcp_servers)
            session = await self._agent.new_session(
                where[0], client=editor, directories=where[1], source="fork", **inherited(origin)
            )
        return self._opened(session, editor, {"sessionId": session.id})

    async def list_sessions(
        self, cwd: str | None = None, cursor: str | None = None, **_: Any
    ) -> Message:
        """Stored sessions, a page at a time."""
        try:
            found, after = await self._store.sessions(cwd=cwd, cursor=cursor)
        except (SessionError, ValueError) as error:
            raise RequestError.invalid_params({"details": str(error)}) from error
        listed = [
            {
                "sessionId": info.id,
                "cwd": info.cwd,
                "title": info.title or None,
                "updatedAt": info.updated,
            }
            for info in found
        ]
        return {"sessions": listed, "nextCursor": after} if after else {"sessions": listed}

    async def close_session(self, session_id: str, **_: Any) -> Message:
        """Cancel what runs, and let the session go."""
        session, _editor = self._open_session(session_id)
        await self._close(session)
        return {}

    async def delete_session(self, session_id: str, **_: Any) -> Message:
        """Remove a session for good; no matter if there was one."""
        store = self._store
        session = self._agent.sessions.get(session_id)
        if session is not None:
            await self._close(session)
        await store.delete(session_id)
        return {}

    # prompts

    async def prompt(self, session_id: str, prompt: list[BaseModel], **_: Any) -> Message:
        """Answer a prompt; the answer follows all updates of its turn.

        Nothing is awaited before the agent knows of the prompt, so that a cancellation that comes
        right behind it finds it.
        """
        session, editor = self._open_session(session_id)
        content = self._content(prompt)
        turn = asyncio.current_task()
        assert turn is not None
        running = self.turns.setdefault(session_id, set())
        running.add(turn)
        editor.begin_turn()
        try:
            reply = await self._agent.prompt(session, content)
            result = answer(reply, editor)
            if not session.title:
                session.title = title_of(content)
                await editor.update(session_id, TitleChanged(session.title))
        finally:
            running.discard(turn)
            editor.end_turn()
        if result is None:
            editor.release()
            raise RequestError.auth_required({"details": reply.detail})
        return Result(result, editor.release)

    async def cancel(self, session_id: str, **_: Any) -> None:
        """End what runs and what waits in a session; nothing where there is none."""
        session = self._agent.sessions.get(session_id)
        if session is not None:
            self._agent.cancel(session)

    async def ext_method(self, method: str, params: Message) -> Message:
        """What the protocol does not know: ``_session/steering``, said to a run that is on."""
        if method != STEERING:
            raise RequestError.method_not_found(f"_{method}")
        request = PromptRequest.model_validate(params)
        session, _editor = self._open_session(request.session_id)
        if session.busy:
            self._agent.steer(session, self._content(request.prompt))
            return {"outcome": "injected"}
        wish = as_object(as_object(params.get("_meta")).get("steering")).get("idleBehavior")
        if wish == "promptRequired":
            return {"outcome": "promptRequired", "reason": "noRunningTurn"}
        self._agent.queue(session, self._content(request.prompt))
        return {"outcome": "startedNewTurn"}

    # choices

    async def set_session_mode(self, mode_id: str, session_id: str, **_: Any) -> Message:
        """Choose a mode."""
        await self._choose(session_id, options.MODE, mode_id)
        return {}

    async def set_config_option(
        self, config_id: str, session_id: str, value: str | bool, **_: Any
    ) -> Message:
        """Choose a mode or a model; the complete list of options, as it is then."""
        session = await self._choose(session_id, config_id, value)
        return {"configOptions": options.config_options(self._agent, session)}

    async def authenticate(self, method_id: str, **_: Any) -> Message:
        """See whether there are credentials now."""
        if method_id != AUTH_METHOD["id"]:
            raise RequestError.invalid_params({"details": f"there is no method {method_id!r}"})
        try:
            _llm = self._agent.llm
        except ModelError as error:
            raise RequestError.auth_required({"details": str(error)}) from error
        return {}

    # helpers

    def _content(self, prompt: Sequence[BaseModel]) -> Content:
        """A prompt's blocks as the content of a message."""
        blocks = [block.model_dump(by_alias=True, exclude_none=True) for block in prompt]
        if not blocks:
            raise RequestError.invalid_params({"details": "the prompt is empty"})
        return from_blocks(blocks, self._link.offer)

    @property
    def _store(self) -> Store:
        if self._agent.store is None:
            raise RequestError.method_not_found("session/*: this agent stores no sessions")
        return self._agent.store

    def _editor(self, mcp_servers: list[BaseModel] | None) -> Editor:
        self._peer.abilities = Abilities.of(self._link.hello)
        named = [
            server.model_dump(by_alias=True, exclude_none=True) for server in mcp_servers or ()
        ]
        return Editor(self._agent, self._peer, named)

    def _open_session(self, session_id: str) -> tuple[Session, Editor]:
        """An open session; a client that names it knows of it."""
        session = self._agent.sessions.get(session_id)
        editor = self._editors.get(session_id)
        if session is None or editor is None:
            raise not_found(f"there is no open session {session_id!r}")
        editor.introduce()
        return session, editor

    async def _stored(
        self,
        session_id: str,
        where: tuple[str, tuple[str, ...]],
        mcp_servers: list[BaseModel] | None,
        source: str,
    ) -> tuple[Session, Editor]:
        """A session from the store, or an open one, with the client at its other end."""
        _store = self._store
        editor = self._editor(mcp_servers)
        loading = self._agent.load_session(
            session_id, client=editor, source=source, cwd=where[0], directories=where[1]
        )
        session = await found(loading)
        editor.attach(session)
        return session, editor

    def _opened(self, session: Session, editor: Editor, fields: Message) -> Result:
        """The answer that makes a session known; commands and held events follow it."""
        editor.attach(session)
        self._editors[session.id] = editor
        loop = asyncio.get_running_loop()

        def follow() -> None:
            editor.introduce()
            if self._agent.commands:
                editor.post(commands(self._agent))

        answered = {**fields, **options.choices(self._agent, session)}
        return Result(answered, lambda: loop.call_later(SETTLE, follow))

    async def _close(self, session: Session) -> None:
        self._agent.cancel(session)
        turns = self.turns.pop(session.id, None)
        if turns:
            await asyncio.wait(set(turns), timeout=CLOSING)
        await self._agent.close_session(session)
        self._editors.pop(session.id, None)

    async def _choose(self, session_id: str, name: str, value: str | bool) -> Session:
        session, _editor = self._open_session(session_id)
        offered = options.values(self._agent, session, name)
        if value not in offered:
            details = f"{name} {value!r} is not on offer; there are: {', '.join(offered) or 'none'}"
            raise RequestError.invalid_params({"details": details})
        refused = await self._agent.configure(session, **{name: value})
        if refused:
            raise RequestError(INTERNAL_ERROR, refused)
        return session


def absolute(cwd: str) -> str:
    """A directory as the protocol wants it, or the error that says so."""
    if not Path(cwd).is_absolute():
        raise RequestError.invalid_params({"details": f"not an absolute path: {cwd!r}"})
    return cwd


def directories(given: list[str] | None) -> tuple[str, ...]:
    """The additional directories of a session."""
    return tuple(map(absolute, given or ()))


def inherited(origin: Session) -> dict[str, Any]:
    """What a fork takes over; its own copy of all that can change."""
    copied = Session(messages=list(origin.messages))
    copied.mend("not known here: the conversation was forked meanwhile")
    return {
        "messages": copied.messages,
        "state": copy.deepcopy(origin.state),
        "options": copy.deepcopy(origin.options),
        "title": origin.title,
        "model": origin.model,
        "mode": origin.mode,
    }


async def found(looking: Awaitable[T]) -> T:
    """What is looked for, or the error that it cannot be had."""
    try:
        return await looking
    except SessionError as error:
        raise not_found(str(error)) from error


def not_found(details: str) -> RequestError:
    """The error for a session that cannot be had."""
    return RequestError(NOT_FOUND, "Resource not found", {"details": details})
