"""The methods of version 2 that differ from those of version 1."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from crow.acp.agent import AcpAgent
from crow.acp.client import AcpClient
from crow.acp.content import written
from crow.acp.errors import invalid, not_found
from crow.acp.jsonrpc import Message, Sent
from crow.acp.prompts import Prompt, is_command
from crow.acp.session_access import PEN
from crow.acp.trace_context import note_trace
from crow.acp.turn import explain
from crow.acp.v2.version import Version2
from crow.core.hooks.run_context import Reply
from crow.core.messages import Content
from crow.core.session import Session

if TYPE_CHECKING:
    import crow.acp.outgoing as v1
    import crow.acp.v2.outgoing as v2


class Methods:
    """Serves one client of version 2, method by method. Raises `Refusal`."""

    def __init__(self, acp_agent: AcpAgent) -> None:
        version: Any = acp_agent.version
        assert isinstance(version, Version2)
        self.acp_agent = acp_agent
        self._version = version

    # sessions

    async def list_sessions(self, params: Message) -> v2.ListSessionsResponse:
        """Stored sessions; none where none are stored."""
        if self.acp_agent.agent.store is None:
            return {"sessions": []}
        return await self.acp_agent.shelf.page(params)

    async def resume_session(self, params: Message) -> Sent:
        """Open a stored session, and show all of it where the client wants that."""
        replay = params.get("replayFrom")
        if replay is not None and replay["type"] != "start":
            raise invalid(f"replayFrom: there is no {replay['type']!r}, only 'start'")
        session_id = params["sessionId"]
        if self.acp_agent.agent.store is None:
            raise not_found(f"there is no session {session_id!r}: this agent stores none")
        session, editor = await self.acp_agent.stored(
            session_id, params, "resume" if replay is None else "load"
        )
        if replay is not None:
            await editor.tell_again()
        editor.post(editor.projection.state.snapshot())
        return self.acp_agent.opened(session, editor, {})

    async def close_session(self, params: Message) -> v2.CloseSessionResponse:
        """Cancel what runs, and let the session go, if it is open at all."""
        session = self.acp_agent.agent.sessions.get(params["sessionId"])
        if session is not None:
            self._version.prompts.call_off(session)
            await self.acp_agent.close(session)
        return {}

    async def logout(self, params: Message) -> v2.LogoutAuthResponse:
        """Remove the stored keys, where this agent stores any."""
        auth = self.acp_agent.auth
        return await auth.logout(params) if auth.stores_keys else {}

    # prompts

    async def prompt(self, params: Message) -> v2.PromptResponse:
        """Take a prompt; answered as soon as it stands in the conversation.

        A prompt that another one is worked on before waits for its turn. Cancelling the request
        takes it back as long as it waits.
        """
        session, editor = self.acp_agent.open_session(params, wants_pen=is_command(params, PEN))
        content = self.acp_agent.content(params, session)
        note_trace(params, session)
        prompt = Prompt(session, params["prompt"])
        editor.begin_turn()
        editor.tell(editor.projection.running())
        task = asyncio.create_task(self._work(session, editor, content, prompt))
        self._version.prompts.expect(task, prompt)
        turns = self.acp_agent.turns.setdefault(session.id, set())
        for known in (turns, self.acp_agent.connection.tasks):
            known.add(task)
            task.add_done_callback(known.discard)
        try:
            message_id = await asyncio.shield(prompt.inserted)
        except asyncio.CancelledError:
            if not prompt.inserted.done():
                task.cancel()
                await asyncio.wait([task])
            raise
        return {"messageId": message_id}

    async def cancel(self, params: Message) -> None:
        """End what is worked on in a session, and take back what waits."""
        session = self.acp_agent.agent.sessions.get(params["sessionId"])
        if session is not None:
            self._version.prompts.call_off(session)
        await self.acp_agent.cancel(params)

    async def _work(
        self, session: Session, editor: AcpClient, content: Content, prompt: Prompt
    ) -> None:
        """See a prompt through to its end."""
        reply: Reply | None = None
        try:
            if prompt.is_off:
                return
            sent = written(prompt.blocks, content)
            reply = await self.acp_agent.agent.prompt(session, content, shown=False, written=sent)
            if reply.stop_reason != "error":  # its failure is told with the end of the work
                await explain(reply)
            if prompt.inserted.done():
                await self.acp_agent.entitle(session, content)
        finally:
            prompt.withdraw(reply)
            editor.end_turn()
            editor.release()
            if session.busy:
                editor.projection.state.ended(reply)
            else:
                editor.tell(editor.projection.idle(reply))

    # single calls

    async def cancel_tool_call(self, params: Message) -> v2.CancelToolCallResponse:
        """End one call; it is told of as cancelled when it has ended."""
        key = params["sessionId"], params["toolCallId"]
        self._end(key, f"no call {params['toolCallId']!r} runs that can be cancelled")
        self._version.running.ended.add(key)
        return {}

    async def cancel_terminal(self, params: Message) -> v2.CancelTerminalResponse:
        """End the command of a terminal."""
        key = params["sessionId"], params["terminalId"]
        self._end(key, f"no terminal {params['terminalId']!r} runs that can be cancelled")
        return {}

    def _end(self, key: tuple[str, str], otherwise: str) -> None:
        known = self._version.running.keys.get(key)
        if known is None:
            raise invalid(otherwise)
        root, call = known
        self.acp_agent.open_session({"sessionId": root})  # it has the pen, or is refused
        self._version.cancelling.cancel(*call)

    # choices

    async def set_config_option(
        self, params: Message
    ) -> v1.SetSessionConfigOptionResponse | v2.SetSessionConfigOptionResponse:
        """Choose a value; the complete list of options, as it is then."""
        if params["type"] not in ("id", "boolean"):
            raise invalid(f"there are no values of the type {params['type']!r}")
        return await self.acp_agent.set_config_option(params)
