"""A bare agent for editors over a socket: it answers, streams, tells of its calls, and no more."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from sockets import Model  # type: ignore[import-not-found]


def send(**message: Any) -> None:
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def tell(**update: Any) -> None:
    send(method="session/update", params={"sessionId": "s", "update": update})


def tell_text(text: str) -> None:
    tell(sessionUpdate="agent_message_chunk", content={"type": "text", "text": text})


async def prompt(params: Any) -> dict[str, Any]:
    model = Model(params["prompt"][0]["text"])
    while calls := await model.ask(tell_text):
        for call in calls:
            tell(sessionUpdate="tool_call", toolCallId=call["id"], title="Bash", kind="execute")
            text = {"type": "text", "text": await model.run(call)}
            content = [{"type": "content", "content": text}]
            tell(
                sessionUpdate="tool_call_update",
                toolCallId=call["id"],
                status="completed",
                content=content,
            )
    return {"stopReason": "end_turn"}


async def main() -> None:
    reader = asyncio.StreamReader(limit=2**26)
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        request = json.loads(line)
        match request["method"]:
            case "initialize":
                result: Any = {"protocolVersion": 1, "agentCapabilities": {}}
            case "session/prompt":
                result = await prompt(request["params"])
            case _:
                result = {"sessionId": "s"}
        send(id=request["id"], result=result)


asyncio.run(main())
