"""A scripted model for agents that others wrote: it calls their own shell tool, as often as told.

The prompt names the scene: ``PLAY turns=50 pieces=0 end=text run=NAME``. It speaks chat
completions, responses, messages and Gemini's protocol. A request without tools (for a title) is
answered with a word and does not count. ``python -m benchmarks.peers.server`` prints its port;
``GET /report/NAME`` gives what was asked in a run, with `time.monotonic` of arrivals and answers.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import re
import time
from dataclasses import dataclass, field
from typing import Any

from benchmarks.peers.tools import Call, offered, shell_call

from crow.testing import endpoint, gemini
from crow.testing.messages import replies, request
from crow.testing.responses import endpoint as responses
from crow.testing.responses.events import called, events, response
from crow.testing.responses.events import text_item as message_of

SCENE = re.compile(rb"PLAY turns=(\d+) pieces=(\d+) end=(\w+) run=([\w.-]+)")
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b"
SUBMIT = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT && echo Done."


@dataclass
class Run:
    """What one agent was to do, and when it asked: (arrived, answered, bytes, with tools)."""

    turns: int
    pieces: int
    end: str
    done: int = 0
    finished: bool = False
    asked: list[tuple[float, float, int, bool]] = field(default_factory=list)
    first: Any = None

    def next_call(self, tools: list[dict[str, Any]], number: int) -> Call | None:
        """The call of the next turn, None when the run is to end."""
        if self.done < self.turns:
            self.done += 1
            return shell_call(tools, f"echo turn {self.done}", number)
        last = self.finished
        self.finished = True
        if self.end == "submit" and not last:
            return shell_call(tools, SUBMIT, number)
        if self.end == "answer" and not last:
            return Call(f"call_{number:06}", "final_answer", {"answer": "Done."})
        return None


class Server:
    """All runs, by name."""

    def __init__(self) -> None:
        self.runs: dict[str, Run] = {}
        self.calls = 0

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection."""
        try:
            while (head := await reader.readuntil(b"\r\n\r\n")) and await self.serve(
                head, reader, writer
            ):
                pass
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def serve(
        self, head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        """Answer one request."""
        arrived = time.monotonic()
        first, *lines = head.decode("latin-1").strip().split("\r\n")
        fields = dict(line.lower().split(": ", 1) for line in lines if ": " in line)
        raw = await body_of(fields, reader)
        method, path, _ = first.split(" ")
        if method == "GET" or not raw:
            writer.write(as_json(self.look_up(path)))
            await writer.drain()
            return True
        run, with_tools, answer = self.answer(path.partition("?")[0], fields, raw)
        writer.write(answer)
        await writer.drain()
        if run is not None:
            run.asked.append((arrived, time.monotonic(), len(raw), with_tools))
        return True

    def look_up(self, path: str) -> Any:
        """A run's report, or the models that there are."""
        name = path.rpartition("/")[2]
        if path.startswith("/report/"):
            run = self.runs.get(name)
            return run and {
                "asked": run.asked,
                "done": run.done,
                "finished": run.finished,
                "first": run.first,
            }
        return {"object": "list", "data": [{"id": "double", "object": "model"}]}

    def answer(
        self, path: str, fields: dict[str, str], raw: bytes
    ) -> tuple[Run | None, bool, bytes]:
        """What a request is answered, and whose it is."""
        if "count" in path.rpartition("/")[2]:
            return (
                None,
                False,
                as_json({"input_tokens": len(raw) // 4, "totalTokens": len(raw) // 4}),
            )
        body: Any = json.loads(raw)
        tools = offered(body)
        run = self.run_of(raw)
        if run is None or not tools:
            return None, False, said(path, fields, body, "Fine.", 0, None)
        self.calls += 1
        run.first = run.first or body
        call = run.next_call(tools, self.calls)
        return run, True, said(path, fields, body, "" if call else "Done.", run.pieces, call)

    def run_of(self, raw: bytes) -> Run | None:
        """The run that a request belongs to, by what its prompt says."""
        found = SCENE.findall(raw)
        if not found:
            return None
        turns, pieces, end, name = (each.decode() for each in found[-1])
        if name not in self.runs:
            self.runs[name] = Run(int(turns), int(pieces), end)
        return self.runs[name]


async def body_of(fields: dict[str, str], reader: asyncio.StreamReader) -> bytes:
    """The body of a request, whole or in chunks, unpacked."""
    if fields.get("transfer-encoding") == "chunked":
        parts: list[bytes] = []
        while size := int(await reader.readline(), 16):
            parts.append(await reader.readexactly(size))
            await reader.readline()
        await reader.readline()
        raw = b"".join(parts)
    else:
        raw = await reader.readexactly(int(fields.get("content-length", 0)))
    return gzip.decompress(raw) if fields.get("content-encoding") == "gzip" else raw


def as_json(value: object) -> bytes:
    """A whole response."""
    raw = json.dumps(value).encode()
    return HEAD % (len(raw), raw)


def said(
    path: str, fields: dict[str, str], body: Any, text: str, pieces: int, call: Call | None
) -> bytes:
    """A reply in the protocol of the path: ``text``, before it so many ``pieces``, or a call."""
    words = [f"w{number % 97} " for number in range(pieces)]
    if path.endswith("/messages"):
        return b"".join(as_messages(path, fields, body, text, words, call))
    if path.endswith("/responses"):
        return as_responses(body, text, words, call)
    if "enerateContent" in path:
        return b"".join(
            bytes(step) for step in as_gemini(text, words, call) if isinstance(step, bytes)
        )
    return as_chat(body, text, words, call)


def as_chat(body: Any, text: str, words: list[str], call: Call | None) -> bytes:
    """A chat completion, streamed where that was asked for."""
    finish = "tool_calls" if call else "stop"
    wanted = call and {
        "id": call.id,
        "type": "function",
        "function": {"name": call.name, "arguments": json.dumps(call.args)},
    }
    if not body.get("stream"):
        message: dict[str, Any] = {"role": "assistant", "content": "".join(words) + text or None}
        if wanted:
            message["tool_calls"] = [wanted]
        choice = {"index": 0, "message": message, "finish_reason": finish}
        base = {"id": "chat-1", "object": "chat.completion", "created": 1764000000}
        return as_json({**base, "model": "double", "choices": [choice], **USAGE})
    told: list[Any] = [*words, *([text] if text else [])]
    if wanted:
        told.append(endpoint.delta(role="assistant", tool_calls=[{"index": 0, **wanted}]))
    stamp = {"id": "chat-1", "object": "chat.completion.chunk", "created": 1764000000}
    pieces = [endpoint.delta(content=each) if isinstance(each, str) else each for each in told]
    pieces += [endpoint.delta(finish=finish), {"model": "scripted", "choices": [], **USAGE}]
    return joined(endpoint.stream(*({**stamp, **event} for event in pieces)))


USAGE = {"usage": {"prompt_tokens": 70, "completion_tokens": 3, "total_tokens": 73}}


def as_responses(body: Any, text: str, words: list[str], call: Call | None) -> bytes:
    """OpenAI's Responses."""
    told = [called(call.name, call.id, **call.args)] if call else []
    if words or text:
        told.insert(0, message_of("".join(words) + text))
    if not body.get("stream"):
        return as_json(response(told))
    return joined(responses.stream(*events(told)))


def as_messages(
    path: str, fields: dict[str, str], body: Any, text: str, words: list[str], call: Call | None
) -> list[bytes]:
    """Anthropic's Messages; text is cut into pieces by the double's own rule."""
    blocks: list[dict[str, Any]] = []
    if words or text:
        blocks.append({"type": "text", "text": "".join(words) + text})
    if call:
        blocks.append(replies.use(call.name, f"toolu_{call.id}", **call.args))
    usage = {"input_tokens": 70, "output_tokens": 1}
    stop = {"stop_reason": replies.reason_of(blocks)}
    if not body.get("stream"):
        base = {"id": "msg_1", "type": "message", "role": "assistant", "model": "double"}
        return [as_json({**base, "content": blocks, **stop, "stop_sequence": None, "usage": usage})]
    question = request.MessagesRequest.at(path, body, fields)
    told = replies.events_of(question, blocks, stop, usage, {})
    return [joined(replies.streamed(told))]


def as_gemini(text: str, words: list[str], call: Call | None) -> endpoint.Response:
    """Gemini's stream."""
    parts = [gemini.chunk({"text": each}) for each in [*words, *([text] if text else [])]]
    if call:
        parts.append(gemini.chunk(gemini.wanted(call.name, **call.args)))
    return gemini.streamed(*parts, gemini.chunk(finish="STOP"))


def joined(steps: endpoint.Response) -> bytes:
    """A response in one piece: pauses of a network are not measured here."""
    return b"".join(step for step in steps if isinstance(step, bytes))


async def main() -> None:
    server = await asyncio.start_server(Server().accept, "127.0.0.1", 0, limit=2**26)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
