"""What a turn and a delta cost in Crow's model client, beside a bare loop over httpx2.

Both talk to the same kind of server in a process of its own, in the same run and by turns. A turn
is the time between the last byte of a response and the first byte of the next request, as the
server sees it (median of the last 50 turns, best of three runs); a delta is the time of a long
response divided by its deltas, the server's own share included.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import socket
import statistics
import time
from multiprocessing.connection import Connection
from typing import Any, Protocol, Self

TURNS = (10, 50, 400)
DELTAS = 20_000
RUNS = 3
TEXT = "A result of a tool, such as a file has it: def main() -> None: ...\n" * 20
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


class Asker(Protocol):
    """One of the two clients."""

    def __init__(self, url: str) -> None: ...
    async def ask(self, messages: list[Any], tools: list[Any], model: str) -> dict[str, Any]: ...
    async def __aenter__(self) -> Self: ...
    async def __aexit__(self, *_: object) -> None: ...


class Bare:
    """What one would write without a library: httpx2 and json, nothing caught, nothing checked."""

    def __init__(self, url: str) -> None:
        import httpx2

        self.url = f"{url}/chat/completions"
        self.client = httpx2.AsyncClient(timeout=60)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.client.aclose()

    async def ask(self, messages: list[Any], tools: list[Any], model: str) -> dict[str, Any]:
        body = {
            "model": model,
            "messages": messages,
            "tools": tools,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        text, calls = "", {}
        async with self.client.stream("POST", self.url, json=body) as response:
            async for line in response.aiter_lines():
                if not line.startswith("data: ") or line == "data: [DONE]":
                    continue
                choices = json.loads(line[6:])["choices"]
                if not choices:
                    continue
                delta = choices[0]["delta"]
                text += delta.get("content") or ""
                for piece in delta.get("tool_calls") or ():
                    new = {"id": piece.get("id"), "name": "", "arguments": ""}
                    call = calls.setdefault(piece["index"], new)
                    call["name"] += piece["function"].get("name") or ""
                    call["arguments"] += piece["function"].get("arguments") or ""
        message: dict[str, Any] = {"role": "assistant", "content": text or None}
        if calls:
            message["tool_calls"] = [
                {"id": call.pop("id"), "type": "function", "function": call}
                for call in calls.values()
            ]
        return message


class Crow:
    """Crow's client, through its port."""

    def __init__(self, url: str) -> None:
        from crow.llm import ChatCompletions

        self.model = ChatCompletions("tools", url)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.model.aclose()

    async def ask(self, messages: list[Any], tools: list[Any], model: str) -> Any:
        from crow.core.ports.llm import Completion, Request

        message = None
        async for item in self.model.stream(Request(messages, tools, model=model)):
            if type(item) is Completion:
                message = item.message()
        return message


def delta(**fields: Any) -> bytes:
    choice = {"index": 0, "delta": fields, "finish_reason": None}
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return b"data: " + json.dumps({**head, "choices": [choice]}).encode() + b"\n\n"


def body(deltas: list[bytes], finish: str) -> bytes:
    last = {"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]}
    usage = {"choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 1}}
    ends = [b"data: " + json.dumps(each).encode() + b"\n\n" for each in (last, usage)]
    return b"".join([*deltas, *ends, b"data: [DONE]\n\n"])


def tool_turn(number: int) -> bytes:
    function = {"name": "Read", "arguments": ""}
    first = {"index": 0, "id": f"call_{number}", "type": "function", "function": function}
    pieces = ['{"file', '_path"', ': "src/', 'main.py"}']
    rest = [{"index": 0, "function": {"arguments": piece}} for piece in pieces]
    return body([delta(tool_calls=[each]) for each in (first, *rest)], "tool_calls")


def serve(listener: socket.socket, pipe: Connection) -> None:
    """Answer the requests of one connection, then send the gaps between them."""
    gaps: list[float] = []
    last = 0.0
    connection, _ = listener.accept()
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    data = b""
    long = body([delta(content="word ")] * DELTAS, "stop")
    while chunk := connection.recv(1 << 20):
        if not data and last:
            gaps.append(time.perf_counter() - last)
        data += chunk
        head, _, rest = data.partition(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0] or 0)
        if len(rest) < length:
            continue
        data = b""
        payload = long if b'"long"' in rest[:200] else tool_turn(len(gaps))
        connection.sendall(HEAD + b"%x\r\n%b\r\n0\r\n\r\n" % (len(payload), payload))
        last = time.perf_counter()
    pipe.send(gaps)


async def converse(kind: type[Asker], url: str, turns: int, model: str) -> float:
    """Play a conversation of so many turns; the seconds that it took."""
    messages: list[Any] = [
        {"role": "system", "content": TEXT},
        {"role": "user", "content": "Do it."},
    ]
    schema = {"type": "object", "properties": {"file_path": {"type": "string"}}}
    tools = [
        {
            "type": "function",
            "function": {"name": name, "description": TEXT, "parameters": schema},
        }
        for name in ("Read", "Write", "Edit", "Bash", "Glob", "Grep")
    ]
    async with kind(url) as asker:
        began = time.perf_counter()
        for _ in range(turns):
            reply = await asker.ask(messages, tools, model)
            messages.append(reply)
            messages.extend(
                {"role": "tool", "tool_call_id": call["id"], "content": TEXT}
                for call in reply.get("tool_calls") or ()
            )
        return time.perf_counter() - began


def measure(kind: type[Asker], turns: int, model: str) -> tuple[float, float]:
    """Run turns against a fresh server: the median gap, and the whole time, in seconds."""
    listener = socket.create_server(("127.0.0.1", 0))
    mine, theirs = multiprocessing.Pipe()
    server = multiprocessing.get_context("fork").Process(target=serve, args=(listener, theirs))
    server.start()
    url = f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
    listener.close()
    taken = asyncio.run(converse(kind, url, turns, model))
    gaps = mine.recv()
    server.join()
    return statistics.median(gaps[-50:] or [0.0]), taken


def compare(turns: int, model: str, which: int) -> tuple[float, float]:
    """The best of some runs of both, one after the other."""
    runs = [[measure(kind, turns, model)[which] for kind in (Bare, Crow)] for _ in range(RUNS)]
    bare, crow = zip(*runs, strict=True)
    return min(bare), min(crow)


def main() -> None:
    for kind in (Bare, Crow):  # imports, caches of the interpreter
        measure(kind, 5, "tools")
    print("model client            bare       crow   ratio")
    for turns in TURNS:
        bare, crow = (each * 1e3 for each in compare(turns, "tools", 0))
        print(f"turn of {turns:3}       {bare:6.2f} ms  {crow:6.2f} ms   {crow / bare:5.2f}")
    bare, crow = (each * 1e6 / DELTAS for each in compare(1, "long", 1))
    print(f"delta             {bare:6.1f} us  {crow:6.1f} us   {crow / bare:5.2f}")


if __name__ == "__main__":
    main()
