"""What a turn and a delta cost on the Messages wire, beside plain json on the same data.

A turn writes the request of a conversation that grew by a call and its result; plain json encodes
the whole body each time. A delta is read from the bytes of a long answer; plain json decodes each
event and keeps its text. CPU time, the best of five runs, by turns.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

from crow.core.messages import Message, user
from crow.core.ports.llm import Delta, Request
from crow.core.support.frozen import kept
from crow.llm.http.assembly import Assembly, Shown
from crow.llm.http.request_format import RequestFormat
from crow.llm.http.stream import EventStream
from crow.llm.messages.wire import MessagesWire
from crow.llm.models import model_info

TURNS = (10, 50, 200)
DELTAS = 20_000
RUNS = 5
MODEL = "claude-opus-5"
FORM = RequestFormat(origin="here", images_in_results=True)
TEXT = "A result of a tool, such as a file has it: def main() -> None: ...\n" * 20
NAMES = ("Read", "Write", "Edit", "Bash", "Glob", "Grep")
TOOLS: Any = [
    {"type": "function", "function": {"name": name, "description": TEXT, "parameters": {}}}
    for name in NAMES
]


def turn(number: int) -> list[Message]:
    """A call behind a thought, and its result."""
    thought = {"type": "thinking", "thinking": "Hm.", "signature": "x" * 300}
    call = {"type": "tool_use", "id": f"t{number}", "name": "Read", "input": {"path": "src"}}
    function: Any = {"name": "Read", "arguments": '{"path": "src"}'}
    said: Message = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": f"t{number}", "type": "function", "function": function}],
        "output_items": [thought, call],
        "origin": "here",
    }
    return [kept(said), kept({"role": "tool", "tool_call_id": f"t{number}", "content": TEXT})]


def grown(turns: int) -> tuple[list[Message], list[Message]]:
    """A conversation of so many turns, and one more."""
    system: Message = {"role": "system", "content": TEXT}
    messages = [system, user("Go.")]
    for number in range(turns):
        messages += turn(number)
    return messages, [*messages, *turn(turns)]


def written(turns: int) -> tuple[float, float]:
    """Seconds to write the last request of a conversation: plain json, Crow."""
    before, now = grown(turns)
    wire = MessagesWire(model_info("anthropic", MODEL))
    wire.body(Request(before, TOOLS, session_id="s"), MODEL, {}, FORM)
    plain = {"model": MODEL, "messages": now, "tools": TOOLS}
    crow = taken(lambda: wire.body(Request(now, TOOLS, session_id="s"), MODEL, {}, FORM))
    return taken(lambda: json.dumps(plain).encode()), crow


def event(value: Any) -> bytes:
    return f"event: {value['type']}\ndata: {json.dumps(value)}\n\n".encode()


START = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
WORD = {"type": "text_delta", "text": "word "}
LONG = [event({"type": "content_block_delta", "index": 0, "delta": WORD})] * DELTAS


def read() -> tuple[float, float]:
    """Seconds to read a long answer: plain json, Crow."""

    def plain() -> None:
        texts = [json.loads(each.split(b"data: ", 1)[1])["delta"]["text"] for each in LONG]
        "".join(texts)

    def crow() -> None:
        wire = MessagesWire(model_info("anthropic", MODEL))
        reply, events = wire.reply(Assembly(set, "m", 1 << 30, Shown()), FORM), EventStream()
        deltas: list[Delta] = []
        for chunk in (event(START), *LONG):
            for each in events.feed(chunk):
                reply.take(each, deltas)

    return taken(plain), taken(crow)


def taken(what: Callable[[], object]) -> float:
    began = time.process_time()
    what()
    return time.process_time() - began


def best(measure: Callable[[], tuple[float, float]]) -> tuple[float, float]:
    plain, crow = zip(*(measure() for _ in range(RUNS)), strict=True)
    return min(plain), min(crow)


def main() -> None:
    print("messages wire           json       crow   ratio")
    for turns in TURNS:
        plain, crow = (each * 1e3 for each in best(lambda turns=turns: written(turns)))
        print(f"turn of {2 * turns:3}       {plain:6.2f} ms  {crow:6.2f} ms   {crow / plain:5.2f}")
    plain, crow = (each * 1e6 / DELTAS for each in best(read))
    print(f"delta             {plain:6.1f} us  {crow:6.1f} us   {crow / plain:5.2f}")


if __name__ == "__main__":
    main()
