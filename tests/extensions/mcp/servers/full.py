"""A server with everything, on the transport that its first argument names; ``each`` is several.

``ERA`` in the environment makes it one that knows only the ``old`` or only the ``new`` handshake.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import signal
import socket
import sys
from pathlib import Path
from typing import Annotated, Any, Literal

import anyio
from mcp.server.elicitation import AcceptedElicitation, ElicitationResult
from mcp.server.mcpserver import Context, Image, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.resolve import Elicit, ListRoots, Resolve
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp.types import (
    AudioContent,
    CallToolResult,
    ErrorData,
    JSONRPCError,
    JSONRPCRequest,
    ListRootsResult,
    ToolAnnotations,
)
from pydantic import BaseModel, Field

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
ERA = os.environ.get("ERA", "")
UNKNOWN = {"old": "server/discover", "new": "initialize"}
"""The handshake that is not known, by era."""
REFUSAL = {
    "old": ErrorData(code=-32601, message="Method not found"),
    "new": ErrorData(code=-32022, message="No", data={"supported": ["2026-07-28"]}),
}
mcp = MCPServer("full", log_level="ERROR")


def note(text: str) -> None:
    """Leave a trace for the test."""
    path = os.environ.get("TRACE")
    if path:
        with Path(path).open("a") as file:
            file.write(f"{text}\n")


@mcp.tool(annotations=ToolAnnotations(read_only_hint=True, title="Add numbers"))
def add(a: int, b: int) -> str:
    """Add two numbers."""
    return str(a + b)


@mcp.tool()
def env(name: str) -> str:
    """A variable of the environment."""
    return os.environ.get(name, "(not there)")


@mcp.tool()
def where() -> str:
    """The working directory."""
    return str(Path.cwd())


def ask_for_roots() -> ListRoots:
    """What the tool below needs."""
    return ListRoots()


@mcp.tool()
async def roots(listed: Annotated[ListRootsResult, Resolve(ask_for_roots)]) -> str:
    """The folders that the client works in."""
    return " ".join(str(root.uri) for root in listed.roots)


@mcp.tool()
def fail() -> str:
    """Fail."""
    raise ToolError("it went wrong")


@mcp.tool()
def picture() -> list[str | Image]:
    """A picture with a word."""
    return ["look", Image(data=PIXEL, format="png")]


@mcp.tool()
def sound() -> CallToolResult:
    """Something that is no text."""
    data = base64.b64encode(b"x" * 300).decode()
    return CallToolResult(content=[AudioContent(data=data, mime_type="audio/wav")])


@mcp.tool()
def structured() -> CallToolResult:
    """Nothing but structure."""
    return CallToolResult(content=[], structured_content={"answer": 42})


@mcp.tool()
def say(text: str, times: int = 1) -> str:
    """Say something."""
    return text * times


@mcp.tool()
async def slow(ctx: Context) -> str:
    """Take very long."""
    note("started")
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        note("cancelled")
        raise
    return "done"


@mcp.tool()
async def steps(ctx: Context) -> str:
    """Tell of progress, for longer than a silent call may take."""
    for step in range(1, 5):
        await ctx.report_progress(step, 4, f"step {step}")
        await asyncio.sleep(0.1)
    return "all steps"


@mcp.tool()
def die() -> str:
    """End the server in the middle of the call."""
    note("dying")
    sys.stderr.write("I was told to die\n")
    sys.stderr.flush()
    os._exit(3)


@mcp.tool()
def pid() -> str:
    """The number of the process."""
    return str(os.getpid())


class Order(BaseModel):
    """What the user wants to eat."""

    dish: Literal["soup", "bread"] = Field(title="Dish")
    plates: int = Field(title="Plates", ge=1)
    name: str = Field(default="nobody", title="Name")


def ask_for_order() -> Elicit[Order]:
    """What the tool below needs."""
    return Elicit("What shall it be?", Order)


@mcp.tool()
async def order(answer: Annotated[ElicitationResult[Order], Resolve(ask_for_order)]) -> str:
    """Ask the user."""
    data = answer.data.model_dump() if isinstance(answer, AcceptedElicitation) else None
    return f"{answer.action}: {data}"


@mcp.tool()
async def visit(ctx: Context) -> str:
    """Send the user to a page."""
    answer = await ctx.elicit_url("Please log in", "https://example.org/login", "one")
    if ERA == "old":
        await ctx.session.send_elicit_complete("one")
    return answer.action


@mcp.tool()
async def change(ctx: Context, back: bool = False) -> str:
    """Change the tools, or change them back, and tell of it in the middle of the call."""
    if back:
        mcp.remove_tool("fresh")
        mcp.add_tool(say)
    else:
        mcp.remove_tool("say")
        mcp.add_tool(lambda: "new", name="fresh", description="A tool that came later.")
        mcp.prompt(name="later")(lambda: "Later.")
    if ERA == "old":
        await ctx.session.send_tool_list_changed()
        await ctx.session.send_prompt_list_changed()
    else:
        await ctx.notify_tools_changed()
        await ctx.notify_prompts_changed()
    return "changed"


@mcp.resource("notes://today", name="today", description="Notes of today", mime_type="text/plain")
def today() -> str:
    """A text."""
    return "Buy bread."


@mcp.resource("notes://raw", name="raw", mime_type="application/zip")
def raw() -> bytes:
    """Bytes."""
    return b"PK" * 50


@mcp.resource("notes://day/{day}", name="day")
def day(day: str) -> str:
    """A text of one day."""
    return f"Notes of {day}."


@mcp.prompt(description="Review something")
def review(path: str, focus: str = "everything") -> str:
    """A prompt."""
    return f"Review {path} with an eye on {focus}."


async def serve_process() -> None:
    """Answer on standard output; the handshake that is not known is refused."""
    server = mcp._lowlevel_server
    to_server, passed = anyio.create_memory_object_stream[Any](0)

    async def pass_on(reading: Any, writing: Any) -> None:
        async with to_server:
            async for item in reading:
                message = item.message
                if isinstance(message, JSONRPCRequest) and message.method == UNKNOWN.get(ERA):
                    error = JSONRPCError(jsonrpc="2.0", id=message.id, error=REFUSAL[ERA])
                    await writing.send(SessionMessage(error))
                else:
                    await to_server.send(item)

    async with stdio_server() as (reading, writing), anyio.create_task_group() as group:
        group.start_soon(pass_on, reading, writing.clone())
        await server.run(passed, writing, server.create_initialization_options())
        group.cancel_scope.cancel()


def refusing(app: Any) -> Any:
    """The application without the handshake that it does not know."""

    async def serve(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http" or scope["method"] != "POST":
            return await app(scope, receive, send)
        body, more = b"", True
        while more:
            part = await receive()
            body += part.get("body", b"")
            more = part.get("more_body", False)
        told = json.loads(body)
        if told.get("method") == UNKNOWN[ERA] or (
            ERA == "old" and dict(scope["headers"]).get(b"mcp-protocol-version") == b"2026-07-28"
        ):
            error = REFUSAL[ERA].model_dump(exclude_none=True)
            answer = {"jsonrpc": "2.0", "id": told.get("id"), "error": error}
            text = json.dumps(answer).encode() if ERA == "new" else b"Bad Request: no session"
            kind = b"application/json" if ERA == "new" else b"text/plain"
            start = {"status": 400, "headers": [(b"content-type", kind)]}
            await send({"type": "http.response.start", **start})
            return await send({"type": "http.response.body", "body": text})
        parts = [{"type": "http.request", "body": body}]

        async def again() -> Any:
            return parts.pop() if parts else await receive()

        return await app(scope, again, send)

    return serve if ERA else app


def bound(port: int = 0) -> socket.socket:
    """A socket that listens; its port is printed."""
    listening = socket.socket()
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listening.bind(("127.0.0.1", port))
    listening.listen()
    print(listening.getsockname()[1], flush=True)
    return listening


async def serve_web(kind: str, listening: socket.socket) -> None:
    """Answer on a port, for ever."""
    import uvicorn

    app = mcp.sse_app() if kind == "sse" else mcp.streamable_http_app()
    config = uvicorn.Config(refusing(app), log_level="error")
    await uvicorn.Server(config).serve(sockets=[listening])


def serve_each(kinds: list[str]) -> None:
    """Serve each kind (``http new``: transport and era) in a fork: the library is imported once."""
    global ERA
    for kind in kinds:
        listening = bound()
        if os.fork() == 0:
            transport, _, era = kind.partition(" ")
            ERA = era or "old"
            asyncio.run(serve_web(transport, listening))
            os._exit(0)
    signal.pause()


if __name__ == "__main__":
    if sys.argv[1] == "stdio":
        asyncio.run(serve_process())
    elif sys.argv[1] == "each":
        serve_each(sys.argv[2:])
    else:
        port = int(sys.argv[2]) if len(sys.argv) > 2 else 0
        asyncio.run(serve_web(sys.argv[1], bound(port)))
