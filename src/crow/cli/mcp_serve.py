"""Crow as an MCP server on standard input and output: its tools, and "run a prompt".

Everything is judged by Crow's own permissions; what needs a question is put to the client's user,
and denied where that client can ask nobody.
"""

from __future__ import annotations

import argparse
import asyncio
from typing import TYPE_CHECKING, Any, cast

from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.types import (
    CallToolRequestParams,
    CallToolResult,
    ContentBlock,
    ImageContent,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
)

from crow._version import __version__
from crow.cli.mcp_calls import Answer, Caller, Callers, Calls, failure
from crow.cli.options import agent_of, directory, settings_of, tell_problems
from crow.core.errors import CrowError, message_of
from crow.core.hooks.run_context import RunContext
from crow.core.tools import Call as ToolCall

if TYPE_CHECKING:
    from mcp.server import ServerRequestContext

    from crow.cli.output import Output
    from crow.core.agent import Agent
    from crow.core.messages import Content
    from crow.core.session import Session

RUN = Tool(
    name="run",
    title="Run a prompt",
    description=(
        "Let Crow, a coding agent, do a task in its directory: it reads, edits and runs what it "
        "needs, and answers when it is done. The answer names the session, which goes on with "
        "what is known there."
    ),
    input_schema={
        "type": "object",
        "properties": {
            "prompt": {"type": "string", "description": "What to do"},
            "session": {"type": "string", "description": "A session to go on with, by its id"},
        },
        "required": ["prompt"],
        "additionalProperties": False,
    },
)


class Service:
    """One client's access to an agent. Its calls of tools share a session, and so what was read."""

    def __init__(self, agent: Agent, session: Session, callers: Callers) -> None:
        self.agent = agent
        self.session = session
        self.callers = callers
        self.calls = Calls()

    async def list_tools(
        self, context: ServerRequestContext, params: PaginatedRequestParams | None
    ) -> ListToolsResult:
        """Every tool of Crow's own, and `RUN`; other servers' the client can have from them."""
        told = [spec["function"] for spec in self.agent.tool_specs(self.session)]
        specs = [spec for spec in told if not spec["name"].startswith("mcp__")]
        tools = [
            Tool(name=it["name"], description=it["description"], input_schema=it["parameters"])
            for it in cast("list[dict[str, Any]]", specs)
        ]
        return ListToolsResult(tools=[RUN, *tools], ttl_ms=0, cache_scope="private")

    async def call_tool(
        self, context: ServerRequestContext, params: CallToolRequestParams
    ) -> Answer:
        """Run a tool or a prompt."""
        args = dict(params.arguments or {})

        async def work(caller: Caller) -> CallToolResult:
            try:
                if params.name == RUN.name:
                    return await self._run(caller, args)
                return await self._call(caller, params.name, args)
            except CrowError as error:
                return failure(message_of(error))

        return await self.calls.answer(context, params, work)

    async def _run(self, caller: Caller, args: dict[str, Any]) -> CallToolResult:
        """Answer a prompt, in a session of its own or one that is gone on with."""
        prompt, name, cwd = args.get("prompt"), args.get("session"), self.session.cwd
        if not isinstance(prompt, str) or not prompt.strip():
            return failure("the prompt is empty")
        if name is None:
            session = await self.agent.new_session(cwd, client=caller, mode=self.session.mode)
        elif (open_one := self.agent.sessions.get(str(name))) is not None and open_one.busy:
            return failure(f"the session {name} is busy")
        elif open_one is None and not await self._is_here(str(name)):
            return failure(f"there is no session {name!r} in {cwd}")
        else:
            mode = self.session.mode  # not the one that its user had chosen for himself
            session = await self.agent.load_session(str(name), client=caller, mode=mode)
        try:
            reply = await self.agent.prompt(session, prompt)
        except asyncio.CancelledError:
            self.agent.cancel(session)
            raise
        told = {"session": session.id, "stop_reason": reply.stop_reason, "text": reply.text}
        text = reply.text or reply.detail or reply.stop_reason
        failed = reply.stop_reason not in ("end_turn", "hook_stopped")
        if failed and reply.detail and reply.detail != text:
            text = f"{text}\n\n{reply.detail}"
        content: list[ContentBlock] = [
            TextContent(text=text),
            TextContent(text=f"session: {session.id}"),
        ]
        return CallToolResult(content=content, structured_content=told, is_error=failed)

    async def _is_here(self, session_id: str) -> bool:
        """Whether there is a stored session of this directory by that id."""
        store, cursor = self.agent.store, None
        while store is not None:
            found, cursor = await store.sessions(cwd=self.session.cwd, cursor=cursor, limit=500)
            if any(info.id == session_id for info in found):
                return True
            if cursor is None:
                break
        return False

    async def _call(self, caller: Caller, name: str, args: dict[str, Any]) -> CallToolResult:
        """Run one tool as the loop would."""
        session, run = self.session, RunContext(self.agent, self.session, name)
        run.task = asyncio.current_task()
        session.enter(run)
        try:
            with self.callers.calling(caller) as call_id:
                [ended] = await self.agent.call_tools(run, [ToolCall(call_id, name, args)])
        finally:
            session.leave(run)
        if ended.result is None:
            return failure("the call came to no end")
        return CallToolResult(content=blocks(ended.result.content), is_error=ended.result.error)


def blocks(content: Content) -> list[ContentBlock]:
    """What a tool says, in the protocol's shape."""
    if isinstance(content, str):
        return [TextContent(text=content)]
    return [_block(cast("dict[str, Any]", part)) for part in content]


def _block(part: dict[str, Any]) -> ContentBlock:
    url = part["image_url"]["url"] if part["type"] == "image_url" else ""
    if url.startswith("data:"):
        kind, _, data = url.removeprefix("data:").partition(";base64,")
        return ImageContent(data=data, mime_type=kind)
    return TextContent(text=str(part.get("text", url)))


async def serve(options: argparse.Namespace, out: Output) -> int:
    """Serve until standard input ends."""
    settings = settings_of(options)
    agent = agent_of(options, settings)
    tell_problems(settings, agent, out)
    async with agent:
        callers = Callers()
        named = {"mode": options.mode} if options.mode else {}
        session = await agent.new_session(directory(options), client=callers, **named)
        service = Service(agent, session, callers)
        server: Server[Any] = Server(
            "crow",
            version=__version__,
            title="Crow",
            on_list_tools=service.list_tools,
            on_call_tool=service.call_tool,
        )
        async with stdio_server() as (reading, writing):
            await server.run(reading, writing, server.create_initialization_options())
        await service.calls.aclose()
    return 0
