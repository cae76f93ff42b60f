"""What a turn, a delta and an import cost on every wire, beside json alone.

A turn is the writing of a request at 400 messages of which two are new, and the reading of a short
answer, without any socket; its floor is ``json.dumps`` of such a body. A delta is one of 20,000
events of a long answer from bytes to what is shown; its floor is ``json.loads`` of each. Both are
CPU time, the best of several runs. An import is counted in modules in a process of its
own, beside those of the seam that all wires share.
"""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

from crow.core.ports.llm import Request
from crow.llm.http import HttpModel
from crow.llm.http.assembly import Assembly, Shown
from crow.llm.http.request_format import RequestFormat
from crow.llm.http.stream import EventStream

MESSAGES = 400
DELTAS = 20_000
RUNS = 5
TURN_MS, DELTA_US = 2.0, 20.0
TEXT = "A result of a tool, such as a file has it: def main() -> None: ...\n" * 20
SCHEMA = {"type": "object", "properties": {"file_path": {"type": "string"}}}
TOOLS: list[Any] = [
    {"type": "function", "function": {"name": name, "description": TEXT, "parameters": SCHEMA}}
    for name in ("Read", "Write", "Edit", "Bash", "Glob", "Grep")
]
WIRES = {
    "chat": ("crow.llm.chat", "ChatCompletions", "m-1"),
    "responses": ("crow.llm.responses", "Responses", "gpt-5.6"),
    "messages": ("crow.llm.messages", "AnthropicMessages", "claude-opus-5-5"),
    "gemini": ("crow.llm.gemini", "Gemini", "gemini-3-pro"),
}
COUNT = """
import sys
import crow.llm.http
before = {name for name in sys.modules if name.startswith("crow.llm")}
import crow.llm
shared = len([name for name in sys.modules if name in before])
assert not [name for name in sys.modules if name.startswith(sys.argv[1])]
__import__(sys.argv[1])
new = [name for name in sys.modules if name.startswith("crow.llm") and name not in before]
foreign = [name for name in new if not name.startswith(sys.argv[1])]
print(len(new), len(foreign))
"""
"""Fails where a wire was imported before it was used."""


def delta_of(wire: str) -> dict[str, Any]:
    """One event of a long answer."""
    match wire:
        case "chat":
            choice = {"index": 0, "delta": {"content": "word "}, "finish_reason": None}
            return {"id": "c", "object": "chat.completion.chunk", "choices": [choice]}
        case "responses":
            place = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
            return {"type": "response.output_text.delta", **place, "delta": "word "}
        case "messages":
            text = {"type": "text_delta", "text": "word "}
            return {"type": "content_block_delta", "index": 0, "delta": text}
        case _:
            content = {"parts": [{"text": "word "}], "role": "model"}
            usage = {"promptTokenCount": 29, "candidatesTokenCount": 10, "totalTokenCount": 39}
            candidates = [{"content": content, "index": 0}]
            return {"candidates": candidates, "usageMetadata": usage, "modelVersion": "m"}


def begin_of(wire: str) -> list[dict[str, Any]]:
    """What comes before the first delta."""
    message = {"type": "message", "id": "msg_1", "role": "assistant", "content": []}
    match wire:
        case "responses":
            return [{"type": "response.output_item.added", "output_index": 0, "item": message}]
        case "messages":
            block = {"type": "text", "text": ""}
            start = {"type": "message_start", "message": {**message, "model": "m", "usage": {}}}
            return [start, {"type": "content_block_start", "index": 0, "content_block": block}]
        case _:
            return []


def event_of(value: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(value).encode() + b"\n\n"


def make(wire: str) -> HttpModel:
    module, factory, model = WIRES[wire]
    made: Callable[..., HttpModel] = getattr(import_module(module), factory)
    return made(model, "http://localhost:1", "k")


def history(length: int) -> list[Any]:
    messages: list[Any] = [
        {"role": "system", "content": TEXT},
        {"role": "user", "content": "Do it."},
    ]
    while len(messages) < length:
        call_id = f"call{len(messages):05d}"
        function = {"name": "Read", "arguments": '{"file_path":"src/main.py"}'}
        call = {"id": call_id, "type": "function", "function": function}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": call_id, "content": TEXT})
    return messages


def turns(wire: str) -> float:
    """Milliseconds for a request at 400 messages whose beginning was sent before."""
    model = make(wire)
    form = RequestFormat(origin=f"http://localhost:1 {model.model}")
    messages = history(MESSAGES + 40)
    best = float("inf")
    for length in range(MESSAGES - 40, MESSAGES + 40, 2):
        request = Request(messages[:length], TOOLS, session_id="s")
        began = time.process_time()
        own: Any = model._wire  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        own.headers(request, form)
        own.body(request, model.model, {}, form)
        own.encoder.ids(request.session_id, request.messages)
        best = min(best, time.process_time() - began) if length >= MESSAGES else best
    return best * 1e3


def deltas(wire: str) -> float:
    """Microseconds for an event, from bytes to what is shown."""
    model = make(wire)
    own: Any = model._wire  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    form = RequestFormat(origin=f"http://localhost:1 {model.model}")
    reply = own.reply(Assembly(set, "", 1 << 30, Shown()), form)
    events = EventStream("text/event-stream")
    for each in events.feed(b"".join(map(event_of, begin_of(wire)))):
        reply.take(each, [])
    chunk = event_of(delta_of(wire)) * 10
    shown = 0
    began = time.process_time()
    for _ in range(DELTAS // 10):
        found: list[Any] = []
        for each in events.feed(chunk):
            reply.take(each, found)
        shown += len(found)
    taken = time.process_time() - began
    assert shown == DELTAS, (wire, shown)
    return taken * 1e6 / DELTAS


def floor_of_turn() -> float:
    body = {"messages": history(MESSAGES), "tools": TOOLS}
    began = time.process_time()
    json.dumps(body).encode()
    return (time.process_time() - began) * 1e3


def floor_of_delta(wire: str) -> float:
    line = json.dumps(delta_of(wire))
    began = time.process_time()
    for _ in range(DELTAS):
        json.loads(line)
    return (time.process_time() - began) * 1e6 / DELTAS


def modules(wire: str) -> tuple[int, int]:
    """How many modules a wire brings, and how many of them are no room of its own."""
    command = [sys.executable, "-c", COUNT, WIRES[wire][0]]
    own, others = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    return int(own), int(others)


def measure(wire: str) -> tuple[float, float, float]:
    """A turn in milliseconds, a delta and its floor in microseconds."""
    return turns(wire), deltas(wire), floor_of_delta(wire)


def main() -> None:
    gc.disable()
    found = {wire: [measure(wire) for _ in range(RUNS)] for wire in WIRES}
    dumped = min(floor_of_turn() for _ in range(RUNS))
    print(f"a turn of {MESSAGES} messages, at most {TURN_MS:g} ms; json.dumps {dumped:.2f} ms")
    print(f"a delta, at most {DELTA_US:g} us, beside json.loads of it")
    print("wire         turn    ratio      delta     loads    ratio   modules  not its own")
    for wire, runs in found.items():
        turn, delta, loads = map(min, zip(*runs, strict=True))
        own, others = modules(wire)
        print(
            f"{wire:10} {turn:5.2f} ms  {turn / dumped:4.2f}   {delta:6.2f} us {loads:6.2f} us"
            f"   {delta / loads:4.1f}   {own:7}  {others:11}"
        )


if __name__ == "__main__":
    main()
