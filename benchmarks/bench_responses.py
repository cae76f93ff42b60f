"""What a turn and a delta cost on the Responses wire, beside plain json on the same data.

A turn writes the request of a conversation that grew by a thought, a call and its result; plain
json encodes the whole body each time. A delta is read from the bytes of a long answer; plain json
decodes each event and keeps its text. CPU time, the best of five runs, by turns.
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
from crow.llm.responses.items import WIRE
from crow.llm.responses.model import ResponsesWire
from crow.testing.responses import called, events, text_item, thought

TURNS = (5, 25, 200)
WORDS = 20_000
RUNS = 5
FORM = RequestFormat(origin="here", images_in_results=True)
TEXT = "A result of a tool, such as a file has it: def main() -> None: ...\n" * 20
NAMES = ("Read", "Write", "Edit", "Bash", "Glob", "Grep")
TOOLS: Any = [
    {"type": "function", "function": {"name": name, "description": TEXT, "parameters": {}}}
    for name in NAMES
]


def turn(number: int) -> list[Message]:
    """A call behind an encrypted thought of two kilobytes, and its result."""
    item = called("Read", f"call_{number}", path="src")
    function: Any = {"name": "Read", "arguments": item["arguments"]}
    message: Message = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": item["call_id"], "type": "function", "function": function}],
        "output_items": [{**thought(), "encrypted_content": "x" * 2000}, item],
        "origin": "here" + WIRE,
    }
    result: Message = {"role": "tool", "tool_call_id": item["call_id"], "content": TEXT}
    return [kept(message), kept(result)]


def written(turns: int) -> tuple[float, float]:
    """Seconds to write the last request of a conversation: plain json, Crow."""
    before = [user("Go."), *(each for number in range(turns) for each in turn(number))]
    now = [*before, *turn(turns)]
    wire = ResponsesWire()
    wire.body(Request(before, TOOLS, session_id="s"), "m", {}, FORM)
    plain = {"model": "m", "input": now, "tools": TOOLS}
    crow = taken(lambda: wire.body(Request(now, TOOLS, session_id="s"), "m", {}, FORM))
    return taken(lambda: json.dumps(plain).encode()), crow


def read() -> tuple[float, float]:
    """Seconds to read a long answer: plain json, Crow."""
    chunks = [
        f"event: {each['type']}\ndata: {json.dumps(each)}\n\n".encode()
        for each in events([text_item("twelve chars" * WORDS)])
    ]

    def plain() -> None:
        told = (json.loads(chunk.split(b"data: ", 1)[1]) for chunk in chunks)
        "".join(each["delta"] for each in told if each["type"] == "response.output_text.delta")

    def crow() -> None:
        reply = ResponsesWire().reply(Assembly(set, "m", 1 << 30, Shown()), FORM)
        stream = EventStream()
        deltas: list[Delta] = []
        for chunk in chunks:
            for each in stream.feed(chunk):
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
    print("responses wire          json       crow   ratio")
    for turns in TURNS:
        plain, crow = (each * 1e3 for each in best(lambda turns=turns: written(turns)))
        print(f"turn of {2 * turns:3}       {plain:6.2f} ms  {crow:6.2f} ms   {crow / plain:5.2f}")
    plain, crow = (each * 1e6 / WORDS for each in best(read))
    print(f"delta             {plain:6.1f} us  {crow:6.1f} us   {crow / plain:5.2f}")


if __name__ == "__main__":
    main()
