"""A model that plays a script: texts, tool calls, delays and errors, one step a request."""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Any, Literal, Self, TypeAlias, cast

from crow.core.calls import Call
from crow.core.events import CallDelta, TextDelta, ThoughtDelta
from crow.core.messages import Usage
from crow.core.ports import Completion, Delta, FinishReason, Request


@dataclass(frozen=True, slots=True)
class Say:
    """One answer of the model's: text, reasoning, calls, and how it ends."""

    text: str = ""
    calls: tuple[Call, ...] = ()
    reasoning: str = ""
    usage: Usage | None = None
    finish: FinishReason | None = None
    delay: float = 0.0


def call(tool: str, /, *, usage: Mapping[str, int] | None = None, **args: Any) -> Say:
    """A tool call. ``usage`` is reported with the answer that holds it.

    ``call("Read", file_path="a.txt")``; several at once are a list of these.
    """
    raw = json.dumps(args, ensure_ascii=False)
    return Say(calls=(Call("", tool, args, raw),), usage=cast("Usage | None", usage))


def faulty_call(tool: str, raw: str, fault: str) -> Say:
    """A tool call whose arguments cannot be used, as a model adapter reports one."""
    return Say(calls=(Call("", tool, {}, raw, fault),))


def text(
    said: str,
    *,
    usage: Mapping[str, int] | None = None,
    reasoning: str = "",
    finish: FinishReason | None = None,
) -> Say:
    """A text with more to it: a usage, reasoning before it, another reason to end."""
    return Say(said, (), reasoning, cast("Usage | None", usage), finish)


def delay(seconds: float, then: Step = "") -> Say:
    """An answer that begins after a while."""
    return replace(said(then), delay=seconds)


Step: TypeAlias = "str | Say | BaseException | type[BaseException] | list[str | Say]"


def said(step: Step) -> Say:
    """A step that is no error, as one answer; the parts of a list are said together."""
    match step:
        case str():
            return Say(step)
        case Say():
            return step
        case list():
            parts = [said(part) for part in step]
            return Say(
                "".join(part.text for part in parts),
                tuple(made for part in parts for made in part.calls),
                "".join(part.reasoning for part in parts),
                next((part.usage for part in parts if part.usage), None),
                next((part.finish for part in parts if part.finish), None),
                sum(part.delay for part in parts),
            )
        case _:
            raise TypeError(f"{step!r} is no step of a script")


@dataclass(slots=True)
class ScriptedModel:
    """Plays a script, one step a request; asked past its end it fails.

    A step is a text, a `call`, a list of them (said at once), a `delay`, or an exception (raised).
    ``asked[i]`` is the request number i as it came in: ``messages``, ``tools``, ``model``,
    ``params``. Lines that are left over fail `verify`, which the end of ``with`` and the pytest
    fixture call, unless ``leftover="allow"``.
    """

    script: list[Step]
    leftover: Literal["fail", "allow"] = "fail"
    model: str = "scripted"
    context_window: int | None = 128_000
    asked: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    _calls: int = 0
    _overrun: bool = False

    def __init__(
        self,
        *script: Step,
        leftover: Literal["fail", "allow"] = "fail",
        model: str = "scripted",
        context_window: int | None = 128_000,
    ) -> None:
        self.script = list(script)
        self.leftover = leftover
        self.model = model
        self.context_window = context_window
        self.asked = []
        self._calls = 0
        self._overrun = False

    async def stream(self, request: Request) -> AsyncGenerator[Delta | Completion, None]:
        """Play the next step."""
        self.asked.append(
            copy.deepcopy(
                {
                    "messages": request.messages,
                    "tools": request.tools,
                    "model": request.model,
                    "params": request.params,
                }
            )
        )
        if len(self.asked) > len(self.script):
            self._overrun = True
            raise AssertionError(f"asked {len(self.asked)} times: {self._had()}")
        step = self.script[len(self.asked) - 1]
        if isinstance(step, BaseException) or (isinstance(step, type)):
            raise step
        answer = said(step)
        await asyncio.sleep(answer.delay)
        for delta in _deltas(request, answer := self._numbered(answer)):
            yield delta
        finish = answer.finish or ("tool_calls" if answer.calls else "stop")
        yield Completion(
            answer.text, answer.calls, answer.reasoning, finish, answer.usage, self.model
        )

    def verify(self) -> None:
        """Raise ``AssertionError`` where the script was not played as it is written."""
        if self._overrun:
            raise AssertionError(f"asked {len(self.asked)} times: {self._had()}")
        left = self.script[len(self.asked) :]
        if left and self.leftover == "fail":
            raise AssertionError(f"{len(left)} steps were not asked for, the first: {left[0]!r}")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is None:
            self.verify()

    def _had(self) -> str:
        return f"the script has {len(self.script)} steps"

    def _numbered(self, answer: Say) -> Say:
        """The answer with ids for its calls: ``call_1``, ``call_2`` over the whole script."""
        numbered: list[Call] = []
        for made in answer.calls:
            self._calls += 1
            numbered.append(replace(made, id=made.id or f"call_{self._calls}"))
        return replace(answer, calls=tuple(numbered))


def _deltas(request: Request, answer: Say) -> list[Delta]:
    """What is streamed: reasoning, the text word by word, each call."""
    deltas: list[Delta] = []
    if answer.reasoning:
        deltas.append(ThoughtDelta(answer.reasoning, request.message_id))
    words = answer.text.split(" ") if answer.text else []
    for index, word in enumerate(words):
        last = index == len(words) - 1
        deltas.append(TextDelta(word if last else f"{word} ", request.message_id))
    deltas += [CallDelta(made.id, made.name, made.raw) for made in answer.calls]
    return deltas
