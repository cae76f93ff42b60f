"""An LLM that matches a few plain sentences and answers with real tool calls."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator
from typing import Any

from crow.core.errors import nearest
from crow.core.events import CallDelta, TextDelta
from crow.core.messages import Message, Usage, is_prompt, text_of
from crow.core.ports.llm import Completion, Delta, Request
from crow.core.tools import Call
from crow.llm.rehearsal.phrases import PHRASES, Misunderstanding, Step, steps_of

NAME = "rehearsal"
INTRODUCTION = (
    "This is a rehearsal: no real model answers, only a few plain sentences are matched. "
    "To talk to a real one, name it: `--model openai/gpt-5`, `--model ollama/qwen3`, "
    "or CROW_MODEL in the environment."
)
LINES = 12
WIDTH = 400
ALTERNATIVES = {"LS": ("Glob", {"pattern": "*"})}


class Rehearsal:
    """An LLM for trying things out: one tool call a turn, and a report of what the tools said.

    `crow.llm.rehearsal.phrases` has what it understands; sentences may be joined by "then". The
    first answer of a session begins with a line that says that it is a rehearsal. Usage is
    reported as characters / 4.
    """

    model = NAME
    context_window: int | None = 100_000
    inputs: frozenset[str] = frozenset()

    def __repr__(self) -> str:
        return "Rehearsal()"

    async def stream(self, request: Request) -> AsyncGenerator[Delta | Completion, None]:
        """Answer; see `crow.core.ports.llm.LLM`."""
        text, call = answer(request)
        for word in re.findall(r"\s*\S+\s*$|\s*\S+", text):
            yield TextDelta(word, request.message_id)
        if call is not None:
            yield CallDelta(call.id, call.name, call.raw)
        yield Completion(
            text=text,
            calls=(call,) if call else (),
            finish="tool_calls" if call else "stop",
            usage=_usage(request.messages, text, call),
            model=NAME,
        )


def answer(request: Request) -> tuple[str, Call | None]:
    """What to say, and what to call."""
    messages = request.messages
    start = _last_prompt(messages)
    said = [INTRODUCTION] if not any(each["role"] == "assistant" for each in messages) else []
    if start is None:
        return "\n\n".join([*said, _abilities("There is no prompt.")]), None
    try:
        steps = _offered(steps_of(text_of(messages[start].get("content"))), request)
    except Misunderstanding as error:
        return "\n\n".join([*said, _abilities(f"I do not understand “{error}”.")]), None
    call, report = _next(steps, messages, start)
    return "\n\n".join([*said, *report]), call


def _next(steps: list[Step], messages: list[Message], start: int) -> tuple[Call | None, list[str]]:
    """The next call, and what to say of the last one."""
    since = messages[start + 1 :]
    results = [message for message in since if message["role"] == "tool"]
    report = (
        [_heard(steps[len(results) - 1], results[-1])] if 0 < len(results) <= len(steps) else []
    )
    if len(results) >= len(steps):
        return None, report or ["There was nothing to do."]
    step = steps[len(results)]
    raw = json.dumps(step.args, ensure_ascii=False)
    call = Call(f"call{_calls_in(messages) + 1:05d}", step.tool, step.args, raw)
    return call, [*report, f"I call {_shown(step)}."]


def _offered(steps: list[Step], request: Request) -> list[Step]:
    """The steps with the tools that are on offer. Raises `Misunderstanding` where one is not."""
    names = {tool["function"]["name"] for tool in request.tools}
    return [_with_tool(step, names) for step in steps]


def _with_tool(step: Step, names: set[str]) -> Step:
    if step.tool in names:
        return step
    name, args = ALTERNATIVES.get(step.tool, ("", {}))
    if name in names:
        return Step(name, {**step.args, **args})
    near = nearest(step.tool, names)
    hint = f"; did you mean {near}?" if near else ""
    raise Misunderstanding(f"{_shown(step)}: no tool {step.tool} is on offer here{hint}")


def _last_prompt(messages: list[Message]) -> int | None:
    places = range(len(messages) - 1, -1, -1)
    return next((index for index in places if is_prompt(messages[index])), None)


def _calls_in(messages: list[Message]) -> int:
    return sum(len(message.get("tool_calls") or ()) for message in messages)


def _shown(step: Step) -> str:
    args = ", ".join(
        f"{name}={json.dumps(arg, ensure_ascii=False)}" for name, arg in step.args.items()
    )
    return f"{step.tool}({args})"


def _heard(step: Step, result: Message) -> str:
    """What a tool answered, word for word, the middle of it at most."""
    lines = text_of(result.get("content")).rstrip().splitlines() or ["(nothing)"]
    shown = [line if len(line) <= WIDTH else f"{line[:WIDTH]} …" for line in lines[:LINES]]
    more = [f"… and {len(lines) - LINES} more lines"] if len(lines) > LINES else []
    return "\n".join([f"{step.tool} answered:", "", *(f"    {line}" for line in [*shown, *more])])


def _abilities(why: str) -> str:
    examples = [f"- {phrase.example}" for phrase in PHRASES]
    return "\n".join([f"{why} What I understand, also joined by “then”:", "", *examples])


def _usage(messages: list[Message], text: str, call: Call | None) -> Usage:
    given = sum(_size(message) for message in messages) // 4
    written = (len(text) + len(call.raw if call else "")) // 4
    return {"input_tokens": given, "output_tokens": written, "total_tokens": given + written}


def _size(message: Message) -> int:
    calls: list[Any] = [*(message.get("tool_calls") or ())]
    return len(text_of(message.get("content"))) + sum(
        len(call["function"]["arguments"]) for call in calls
    )
