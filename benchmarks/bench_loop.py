"""What the loop itself costs, beside a bare loop over the same HTTP client in the same run.

A turn is the time between the last byte of a model's answer and the first byte of the next
request, as a server in a process of its own sees it: decoding, the tool, the history, encoding.
Median over the tool turns, no hooks registered. Also what `import crow` adds to a bare
interpreter. What hooks cost is measured in `bench_hooks.py`.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

ROUNDS = 5
TURNS = (50, 400)
BARE = """
import asyncio, json, sys
import httpx2

TOOLS = [{"type": "function", "function": {"name": "echo", "description": "Say it.",
          "parameters": {"type": "object", "properties": {"text": {"type": "string"}},
                         "required": ["text"]}}}]


async def echo(text):
    return "echo " + text


async def ask(client, url, messages):
    body = {"model": "m", "messages": messages, "tools": TOOLS, "stream": True,
            "stream_options": {"include_usage": True}}
    text, calls, usage = [], {}, None
    async with client.stream("POST", url, json=body) as response:
        response.raise_for_status()
        async for line in response.aiter_lines():
            if not line.startswith("data: "):
                continue
            if line == "data: [DONE]":
                continue
            chunk = json.loads(line[6:])
            usage = chunk.get("usage") or usage
            for choice in chunk["choices"]:
                delta = choice["delta"]
                if delta.get("content"):
                    text.append(delta["content"])
                for part in delta.get("tool_calls") or ():
                    call = calls.setdefault(part["index"], {"id": "", "name": "", "args": ""})
                    call["id"] = part.get("id") or call["id"]
                    function = part.get("function") or {}
                    call["name"] += function.get("name") or ""
                    call["args"] += function.get("arguments") or ""
    return "".join(text), list(calls.values()), usage


async def main(url, prompt):
    messages = [{"role": "user", "content": prompt}]
    async with httpx2.AsyncClient(timeout=60) as client:
        while True:
            text, calls, _ = await ask(client, url, messages)
            message = {"role": "assistant", "content": text or None}
            if calls:
                message["tool_calls"] = [
                    {"id": call["id"], "type": "function",
                     "function": {"name": call["name"], "arguments": call["args"]}}
                    for call in calls]
            messages.append(message)
            if not calls:
                return text
            for call in calls:
                result = await echo(**json.loads(call["args"]))
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] + "/chat/completions", "go"))
"""


def event(delta: dict[str, Any], finish: str | None = None) -> bytes:
    chunk = {"id": "c", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}
    return b"data: " + json.dumps(chunk).encode() + b"\n\n"


def answer(number: int, turns: int) -> bytes:
    """A tool call, or the end."""
    if number == turns:
        said = event({"content": "done"}) + event({}, "stop")
    else:
        function = {"name": "echo", "arguments": json.dumps({"text": f"number {number}" * 20})}
        call = {"index": 0, "id": f"call_{number}", "type": "function", "function": function}
        said = event({"tool_calls": [call]}) + event({}, "tool_calls")
    usage = {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 9}}
    said += b"data: " + json.dumps(usage).encode() + b"\n\ndata: [DONE]\n\n"
    head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
    return f"{head}Content-Length: {len(said)}\r\n\r\n".encode() + said


def serve(listener: socket.socket, turns: int, pipe: Any) -> None:
    """Answer one conversation on one connection; tell the gaps."""
    connection, _ = listener.accept()
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    gaps: list[float] = []
    last = 0.0
    for number in range(turns + 1):
        data = connection.recv(1 << 20)
        now = time.time()
        if last:
            gaps.append(now - last)
        while b"\r\n\r\n" not in data:
            data += connection.recv(1 << 20)
        head, _, body = data.partition(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
        while len(body) < length:
            body += connection.recv(1 << 20)
        connection.sendall(answer(number, turns))
        last = time.time()
    pipe.send(gaps)
    connection.close()


def with_server(turns: int, drive: Callable[[str], None]) -> list[float]:
    """The gaps of a conversation of so many tool turns."""
    ours, theirs = multiprocessing.Pipe()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
        server = multiprocessing.Process(target=serve, args=(listener, turns, theirs), daemon=True)
        server.start()
        drive(url)
        result = ours.recv()
        server.join()
    return result


def bare(url: str) -> None:
    scope: dict[str, Any] = {"__name__": "bare"}
    exec(BARE, scope)
    main: Callable[..., Awaitable[str]] = scope["main"]
    assert asyncio.run(main(f"{url}/chat/completions", "go")) == "done"  # type: ignore[arg-type]


def crow(url: str) -> None:
    from crow import Agent, tool
    from crow.llm import ChatCompletions

    @tool
    async def echo(text: str) -> str:
        """Say it."""
        return "echo " + text

    async def drive() -> None:
        async with Agent(ChatCompletions("m", url), tools=[echo]) as agent:
            assert (await agent.run("go")).text == "done"

    asyncio.run(drive())


def turns() -> None:
    for count in TURNS:
        medians: dict[str, list[float]] = {"bare": [], "crow": []}
        for _ in range(ROUNDS):
            for name, drive in (("bare", bare), ("crow", crow)):
                gaps = with_server(count, drive)
                medians[name].append(statistics.median(gaps))
        ours, theirs = min(medians["crow"]), min(medians["bare"])
        print(
            f"turn, {count:3} turns: crow {ours * 1e3:.2f} ms, bare loop {theirs * 1e3:.2f} ms, "
            f"ratio {ours / theirs:.2f} (at most 1.5)"
        )


def importing() -> None:
    def best(statement: str) -> float:
        times: list[float] = []
        for _ in range(4 * ROUNDS):
            began = time.perf_counter()
            subprocess.run([sys.executable, "-c", statement], check=True)
            times.append(time.perf_counter() - began)
        return min(times)

    floor = best("pass")
    for statement in ("import crow", "from crow import Agent", "import asyncio"):
        print(f"{statement}: {(best(statement) - floor) * 1e3:.0f} ms more than pass")


if __name__ == "__main__":
    turns()
    importing()
