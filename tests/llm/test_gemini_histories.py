"""Whatever has become of a history, the strict endpoint of Gemini takes what Crow makes of it."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.properties import examples

from crow.core.history import repaired
from crow.core.messages import Message, tool_answer, user
from crow.core.ports.llm import Completion, Request
from crow.llm import Gemini
from crow.llm.gemini.tools import name_for
from crow.llm.http import NO_RETRIES
from crow.testing import StrictGemini
from crow.testing.gemini import wanted

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
NAME = st.sampled_from(["ls", "mcp__a__b", "9 to 5", "_x.y:z", "ü" * 70])
ARGS = st.dictionaries(st.sampled_from(["a", "b"]), st.one_of(TEXT, st.integers(), st.none()))
IMAGE = st.sampled_from(
    ["data:image/png;base64,YQ==", "data:image/gif;base64,Yg==", "https://x.org/c.png"]
)
PARTS = st.lists(
    st.one_of(
        st.builds(lambda text: {"type": "text", "text": text}, TEXT),
        st.builds(lambda url: {"type": "image_url", "image_url": {"url": url}}, IMAGE),
    ),
    min_size=1,
    max_size=3,
)
CONTENT = st.one_of(TEXT, PARTS)
CALLS = st.lists(st.tuples(NAME, ARGS), max_size=3)
STEPS = st.one_of(
    st.tuples(st.just("ask"), st.tuples(TEXT, TEXT, CALLS, st.booleans())),
    st.tuples(st.just("foreign"), st.tuples(TEXT, CALLS)),
    st.tuples(st.just("say"), CONTENT),
    st.tuples(st.just("inform"), TEXT),
    st.tuples(st.just("rewrite"), TEXT),
    st.tuples(st.just("drop call"), st.none()),
    st.tuples(st.just("rename"), st.integers(0, 99)),
    st.tuples(st.just("compact"), st.integers(0, 6)),
    st.tuples(st.just("switch"), st.sampled_from(["gemini-3-pro", "gemini-2.5-pro", "gemini-4-argon"])),
)  # fmt: skip


class Play:
    """A history to which everything happens that can."""

    def __init__(self, google: StrictGemini, results: list[Any]) -> None:
        self.google = google
        self.messages: list[Any] = [user("begin")]
        self.model = "gemini-3-pro"
        self.results = results

    async def step(self, kind: str, value: Any) -> None:
        match kind:
            case "ask":
                thought, text, calls, is_signed = value
                self.add(await self.answer(thought, text, calls, is_signed=is_signed))
            case "foreign":
                self.foreign(*value)
            case "say":
                self.messages.append(user(value))
            case "inform":
                self.messages.append({"role": "system", "content": value})
            case "compact":
                self.messages = [
                    user("what happened"),
                    *self.messages[-value or len(self.messages) :],
                ]
            case "switch":
                self.model = value
            case _:
                self.change(kind, value)
        self.messages = repaired(self.messages)

    async def answer(
        self, thought: str, text: str, calls: Any, *, is_signed: bool
    ) -> Message | None:
        """What the model answers to the history."""
        parts = [wanted(name_for(name), **args) for name, args in calls]
        self.google.say(text, *parts, thought=thought, signed=is_signed)
        llm = Gemini(self.model, self.google.url, "k", retries=NO_RETRIES)
        request = Request(list(self.messages), session_id="s")
        items = [item async for item in llm.stream(request)]
        await llm.aclose()
        assert isinstance(items[-1], Completion)
        return items[-1].message()

    def foreign(self, text: str, calls: Any) -> None:
        """What a model of another maker said."""
        number = len(self.messages)
        asked = [
            {"id": f"toolu_{number}_{n}", "type": "function", "function": {"name": name, "arguments": json.dumps(args)}}
            for n, (name, args) in enumerate(calls)
        ]  # fmt: skip
        message: Any = {"role": "assistant", "content": text or None, "origin": "https://a b"}
        message["output_items"] = [{"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}]
        self.add({**message, "tool_calls": asked} if asked else message)

    def add(self, message: Any) -> None:
        if message is not None:
            self.messages.append(message)
            answers = zip(message.get("tool_calls", ()), self.results, strict=False)
            self.messages += [tool_answer(call["id"], content) for call, content in answers]

    def change(self, kind: str, value: Any) -> None:
        """Change the last reply, as a hook does."""
        places = [n for n, each in enumerate(self.messages) if each["role"] == "assistant"]
        if not places:
            return
        message = dict(self.messages[places[-1]])
        calls = message.get("tool_calls") or []
        match kind:
            case "rewrite":
                message["content"] = value
            case "drop call" if calls:
                message["tool_calls"] = calls[1:]
            case "rename" if calls:
                new = f"{calls[-1]['id']}_{value}"
                self.messages = [
                    {**each, "tool_call_id": new}
                    if each.get("tool_call_id") == calls[-1]["id"]
                    else each
                    for each in self.messages
                ]
                message["tool_calls"] = [*calls[:-1], {**calls[-1], "id": new}]
            case _:
                pass
        self.messages[places[-1]] = message


async def play(steps: list[tuple[str, Any]], results: list[Any]) -> None:
    async with StrictGemini() as google:
        history = Play(google, results)
        for kind, value in steps:
            await history.step(kind, value)
            await history.answer("", "Yes.", [], is_signed=False)
            assert google.refused == []


@settings(max_examples=examples(60))
@given(st.lists(STEPS, min_size=2, max_size=9), st.lists(CONTENT, min_size=3, max_size=3))
def test_no_history_breaks_a_rule(steps: list[tuple[str, Any]], results: list[Any]):
    asyncio.run(play(steps, results))
