"""A model that plays a script and remembers what it was asked."""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import AsyncGenerator, Iterable, Sequence
from dataclasses import field
from types import TracebackType
from typing import Any, Literal, Self, TypeAlias, TypedDict

from crow.core.events import CallDelta, TextDelta, ThoughtDelta
from crow.core.messages import Message, ToolSpec, Usage
from crow.core.ports.llm import Completion, Delta, FinishReason, Request
from crow.core.support.frozen import KeptDict, frozen
from crow.core.tools import Call


@frozen
class ScriptedText:
    """A text to say, and what to report with it."""

    text: str
    usage: Usage | None = None
    reasoning: str = ""
    finish: FinishReason = "stop"


@frozen
class ScriptedCall:
    """A tool call to make, and what to report with it."""

    name: str
    args: dict[str, Any] = field(default_factory=dict[str, Any])
    usage: Usage | None = None
    id: str | None = None
    fault: str | None = None


@frozen
class Delay:
    """Seconds to wait before what follows."""

    seconds: float


Piece: TypeAlias = str | ScriptedText | ScriptedCall | Delay
Line: TypeAlias = Piece | BaseException | type[BaseException] | Completion | Sequence[Piece]
"""What a model says to one request: a text, a `call`, a list of these, a completion, an error."""


LINE = (str, ScriptedText, ScriptedCall, Delay, BaseException, type, Completion, list, tuple)


class Asked(TypedDict):
    """A request, copied as it was when the model was asked."""

    messages: list[Message]
    tools: list[ToolSpec]
    model: str | None
    params: dict[str, Any]
    session_id: str


def text(
    said: str,
    *,
    usage: Usage | None = None,
    reasoning: str = "",
    finish: FinishReason = "stop",
) -> ScriptedText:
    """A line of a script: a text with a usage, reasoning, or a reason to end."""
    return ScriptedText(said, usage, reasoning, finish)


def call(
    name: str, /, *, usage: Usage | None = None, call_id: str | None = None,
    fault: str | None = None, **args: Any,
) -> ScriptedCall:  # fmt: skip
    """A line of a script: one tool call; the arguments by name.

    ``usage`` is what the reply reports. ``fault`` makes it a call that cannot run.
    """
    return ScriptedCall(name, args, usage, call_id, fault)


def delay(seconds: float) -> Delay:
    """A line of a script: wait before the line that follows, or before what follows in a list."""
    return Delay(seconds)


class ScriptedModel:
    """An LLM that answers each request with the next line of its script.

    A line is a text, a `call`, a `text`, a list of these (text first, then the calls made at
    once; a `delay` waits there), an exception to raise, or a whole `Completion`. A `delay` that
    stands as a line waits before the next one. ``asked[i]["messages"]`` is what it was asked,
    with ``tools``, ``model`` and ``params``.

    Asked past its script it raises AssertionError, and `verify` raises it once more for whoever
    swallowed it. `verify` raises as well when lines were left over, unless ``leftover`` is
    ``"allow"``. ``with ScriptedModel(...) as model:`` verifies at the end. `verify_prefix` raises
    it where a request lost what a provider would have had in its cache.
    """

    def __init__(
        self,
        *script: Line,
        model: str = "scripted",
        context_window: int | None = None,
        leftover: Literal["fail", "allow"] = "fail",
    ) -> None:
        self.model = model
        self.context_window = context_window
        self.asked: list[Asked] = []
        self._script = _lines(script)
        self._leftover = leftover
        self._next = 0
        self._calls = 0
        self._overrun: str | None = None

    def __repr__(self) -> str:
        return f"ScriptedModel({len(self._script)} lines, at {self._next})"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        if error is None:
            self.verify()

    @property
    def left(self) -> list[Line]:
        """The lines that were not played yet."""
        return self._script[self._next :]

    def extend(self, *script: Line) -> None:
        """Add lines to the script."""
        self._script.extend(_lines(script))

    def verify(self) -> None:
        """Raise AssertionError if the script was overrun, or lines of it were not played."""
        if self._overrun:
            raise AssertionError(self._overrun)
        if self.left and self._leftover != "allow":
            lines = "".join(f"\n  {line!r}" for line in self.left)
            raise AssertionError(
                f"the scripted model was asked {len(self.asked)} times and "
                f'{len(self.left)} of its lines were left over (leftover="allow" lets them):{lines}'
            )

    def verify_prefix(self) -> None:
        """Raise AssertionError where a request began otherwise than the one before in its session.

        What a request begins with, the tools and all messages of the one before, is what providers
        keep in their caches. A sub-agent's session is one of its own.
        """
        last: dict[str, Asked] = {}
        for number, asked in enumerate(self.asked, 1):
            before = last.get(asked["session_id"])
            if before is not None and (wrong := _parting(before, asked)):
                told = f"request {number} began otherwise than the one before"
                raise AssertionError(f"{told}: {wrong}")
            if asked["session_id"]:
                last[asked["session_id"]] = asked

    async def stream(self, request: Request) -> AsyncGenerator[Delta | Completion, None]:
        """Play the next line; see `crow.LLM`."""
        self._remember(request)
        line = await self._advance()
        if isinstance(line, Completion):
            yield line
            return
        reply = _Reply(self.model, request.message_id)
        for piece in _pieces(line):
            if isinstance(piece, Delay):
                await asyncio.sleep(piece.seconds)
                continue
            for shown in self._play(piece, reply):
                yield shown
        yield reply.completion()

    def _remember(self, request: Request) -> None:
        self.asked.append(
            {
                "messages": [_as_sent(message) for message in request.messages],
                "tools": [_as_sent(tool) for tool in request.tools],
                "model": request.model,
                "params": copy.deepcopy(request.params),
                "session_id": request.session_id,
            }
        )

    async def _advance(self) -> Line:
        """The next line, after the delays before it."""
        while self.left:
            line = self._script[self._next]
            self._next += 1
            if not isinstance(line, Delay):
                return line
            await asyncio.sleep(line.seconds)
        last = json.dumps(self.asked[-1]["messages"][-1:], ensure_ascii=False)[:500]
        self._overrun = (
            f"the scripted model has {len(self._script)} lines and was asked "
            f"{len(self.asked)} times; the last message was {last}"
        )
        raise AssertionError(self._overrun)

    def _play(self, piece: str | ScriptedText | ScriptedCall, reply: _Reply) -> list[Delta]:
        if isinstance(piece, ScriptedCall):
            self._calls += 1
            return reply.request(piece, f"call_{self._calls}")
        return reply.say(ScriptedText(piece) if isinstance(piece, str) else piece)


def _parting(before: Asked, now: Asked) -> str:
    """What a request has changed of the one before; empty where that is how it begins."""
    tools = [json.dumps(each["tools"], ensure_ascii=False) for each in (before, now)]
    if tools[0] != tools[1]:
        names = [[spec["function"]["name"] for spec in each["tools"]] for each in (before, now)]
        return f"the tools {names[1]} were {names[0]}"
    was, said = before["messages"], now["messages"]
    for index, message in enumerate(was, 1):
        written = json.dumps(message, ensure_ascii=False)
        found = json.dumps(said[index - 1], ensure_ascii=False) if index <= len(said) else "gone"
        if written != found:
            return f"message {index} is {found[:300]}, it was {written[:300]}"
    return ""


class _Reply:
    """The completion of one line while it is played."""

    def __init__(self, model: str, message_id: str) -> None:
        self._model = model
        self._id = message_id
        self._said: list[ScriptedText] = []
        self._calls: list[Call] = []
        self._usage: Usage | None = None

    def say(self, piece: ScriptedText) -> list[Delta]:
        self._said.append(piece)
        self._usage = piece.usage or self._usage
        thought = [ThoughtDelta(piece.reasoning, self._id)] if piece.reasoning else []
        return [*thought, TextDelta(piece.text, self._id)] if piece.text else [*thought]

    def request(self, piece: ScriptedCall, call_id: str) -> list[Delta]:
        raw = json.dumps(piece.args, ensure_ascii=False)
        made = Call(piece.id or call_id, piece.name, piece.args, raw, piece.fault)
        self._calls.append(made)
        self._usage = piece.usage or self._usage
        return [CallDelta(made.id, made.name, raw)]

    def completion(self) -> Completion:
        finish = self._said[-1].finish if self._said else "stop"
        return Completion(
            text="".join(piece.text for piece in self._said),
            calls=tuple(self._calls),
            reasoning="".join(piece.reasoning for piece in self._said),
            finish="tool_calls" if self._calls and finish == "stop" else finish,
            usage=self._usage,
            model=self._model,
        )


def _lines(script: Iterable[Any]) -> list[Line]:
    """The lines of a script. Raises ``TypeError`` for what a model cannot say."""
    lines = list(script)
    for line in lines:
        if not isinstance(line, LINE):
            told = "a text, a call(...), a list of these, a Completion or an error"
            raise TypeError(f"{line!r} is no line of a script, which is {told}")
    return lines


def _pieces(line: Line) -> Sequence[Piece]:
    """What to do for a line. Raises the line where it is an error."""
    if isinstance(line, BaseException | type):
        raise line
    if isinstance(line, str | ScriptedText | ScriptedCall | Delay):
        return (line,)
    if isinstance(line, Completion):
        return ()
    return line


def _as_sent(value: Any) -> Any:
    """A part of a request as it is now; one that stays so needs no copy."""
    return value if isinstance(value, KeptDict) else copy.deepcopy(value)
