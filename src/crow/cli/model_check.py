"""A trial of a model: a few short requests, and a line on each thing that it can do."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from typing import Any

from crow.cli.interrupt import run_async
from crow.cli.output import Output
from crow.core.cache import Closable
from crow.core.errors import ModelError
from crow.core.events import ThoughtDelta
from crow.core.messages import Message, user
from crow.core.ports.llm import LLM, Completion, Request
from crow.core.support.frozen import frozen
from crow.core.support.validation import implements
from crow.ports.models import inputs_of, thought_levels_of, url_of
from crow.text import one_line, shorten

RED = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAABAAAAAQCAIAAACQkWg2AAAAFklEQVR42mP4z8BAEmIY1TCq"
    "YfhqAACQ+f8B8u7oVwAAAABJRU5ErkJggg=="
)
"""A red square."""
TOOL: Any = {
    "type": "function",
    "function": {
        "name": "add",
        "description": "Add two numbers.",
        "parameters": {
            "type": "object",
            "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
            "required": ["a", "b"],
        },
    },
}
LIMIT = 120.0
WIDTH = 100


@frozen
class Heard:
    """The answer to a request; ``thought`` whether thoughts were shown."""

    completion: Completion
    thought: bool = False


@frozen
class Trial:
    """One request, and what judges its answer: whether it works, and what to say of it."""

    name: str
    request: Request
    judge: Callable[[Heard], tuple[bool, str]]


def check(llm: LLM, out: Output, as_json: bool) -> int:
    """Try a model; 1 where it gives no answer or calls no tool."""
    return run_async(tried(llm, out, as_json=as_json))


async def tried(llm: LLM, out: Output, *, as_json: bool) -> int:
    """Say what works, line for line as it is known."""
    failed: set[str] = set()
    if not as_json:
        where = url_of(llm)
        out.line(one_line(f"{llm.model} at {where}" if where else llm.model))
    for trial in trials(llm):
        works, said = await one(llm, trial)
        if not works:
            failed.add(trial.name)
        if as_json:
            out.verbatim(json.dumps({"what": trial.name, "works": works, "said": said}))
        else:
            mark = out.styled("yes", "green") if works else out.styled("no ", "red")
            told = out.styled(shorten(one_line(said), WIDTH), "dim")
            out.raw(f"  {trial.name:9} {mark}  {told}".rstrip())
        if trial.name == "answer" and not works:
            break
    window = llm.context_window
    if window and not as_json:
        out.line(f"  {'window':9} {window:,} tokens")
    if implements(llm, Closable):
        await llm.aclose()
    return 1 if failed & {"answer", "tools"} else 0


async def one(llm: LLM, trial: Trial) -> tuple[bool, str]:
    """Whether something works, and what the model or the endpoint said."""
    try:
        async with asyncio.timeout(LIMIT):
            return trial.judge(await heard(llm, trial.request))
    except TimeoutError:
        return False, f"no answer in {LIMIT:g} s"
    except ModelError as error:
        return False, str(error)


async def heard(llm: LLM, request: Request) -> Heard:
    """The answer to one request. Raises `ModelError`."""
    thought = False
    completion = Completion()
    async for delta in llm.stream(request):
        if isinstance(delta, Completion):
            completion = delta
        elif isinstance(delta, ThoughtDelta):
            thought = True
    return Heard(completion, thought or bool(completion.reasoning))


def trials(llm: LLM) -> Iterator[Trial]:
    """The requests, cheapest first; what a model is not known to have is not tried."""
    yield Trial("answer", Request([user("Say hello in one word.")]), judge_answer)
    sums: list[Message] = [user("What is 19 + 23? Use the tool add.")]
    yield Trial("tools", Request(sums, [TOOL]), called)
    if "image" in (inputs_of(llm) or ()):
        looks: Any = [
            {"type": "text", "text": "Which colour is this? One word."},
            {"type": "image_url", "image_url": {"url": RED}},
        ]
        yield Trial("images", Request([user(looks)]), judge_answer)
    levels = thought_levels_of(llm)
    if hardest := next((level for level in ("low", "high", *levels) if level in levels), ""):
        riddle = [user("How many r are in strawberry? Answer with the number.")]
        params = {"reasoning_effort": hardest}
        yield Trial("thinking", Request(riddle, params=params), thought)


def judge_answer(heard: Heard) -> tuple[bool, str]:
    """Words came."""
    text = heard.completion.text.strip()
    return bool(text), text or "the answer is empty"


def called(heard: Heard) -> tuple[bool, str]:
    """The tool was called with what it takes."""
    for call in heard.completion.calls:
        if call.name == "add" and call.fault is None:
            return True, f"add({json.dumps(call.input)})"
    return False, f"no call came, but: {heard.completion.text.strip()}"


def thought(heard: Heard) -> tuple[bool, str]:
    """An answer came at the level that was asked for, with thoughts or tokens for them."""
    spent = (heard.completion.usage or {}).get("reasoning_tokens")
    shown = "shown" if heard.thought else "not shown"
    return bool(heard.completion.text), f"{shown}{f', {spent} tokens' if spent else ''}"
