"""A session changes its model in the middle, from every wire to every other and back.

Each side is a strict double: nothing may be refused, and what only its maker understands goes
back to that one as it came, and to nobody else.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import AsyncExitStack
from itertools import permutations
from typing import Any

import pytest
from tests.llm.conftest import KEY, QUICK, SOON

from crow import Agent, tool
from crow.core.support.frozen import frozen
from crow.core.tools import ToolResult
from crow.extensions import SystemPromptHook
from crow.llm import AnthropicMessages, ChatCompletions, Gemini, HttpModel, Responses
from crow.testing import StrictChat, StrictGemini, StrictMessages, StrictResponses
from crow.testing import chat as of_chat
from crow.testing import gemini as of_gemini
from crow.testing import messages as of_messages
from crow.testing import responses as of_responses

PNG = "data:image/png;base64,iVBORw0KGgo="
PICTURE: Any = {"type": "image_url", "image_url": {"url": PNG}}


@tool
async def look(path: str) -> ToolResult:
    """Look at a picture."""
    return ToolResult([{"type": "text", "text": f"seen {path}"}, PICTURE])


@tool
async def ls(path: str) -> str:
    """List."""
    return f"{path}: a b"


@frozen
class Wire:
    """A side: its double, a model at it, and how a turn with two calls, and its end, are played.

    ``secrets`` are the names under which stands what is for its maker alone.
    """

    double: Callable[[], Any]
    model: Callable[[str], HttpModel]
    calls: Callable[[Any, str], None]
    ends: Callable[[Any, str], None]
    secrets: tuple[str, ...]


def chat(url: str) -> HttpModel:
    return ChatCompletions("thinker", url, KEY, timeouts=QUICK, retries=SOON)


def chat_calls(double: Any, about: str) -> None:
    first = of_chat.use("look", f"c-{about}-1", path=about)
    second = of_chat.use("ls", f"c-{about}-2", path=about)
    double.say(f"I look at {about}.", first, second, thought=f"A thought on {about}.")


def chat_ends(double: Any, about: str) -> None:
    double.say(f"That was {about}.", thought=f"Enough of {about}.")


def responses(url: str) -> HttpModel:
    return Responses("gpt-5.6", url, KEY, timeouts=QUICK, retries=SOON)


def responses_calls(double: Any, about: str) -> None:
    double.reply(
        of_responses.thought(f"A thought on {about}."),
        of_responses.text_item(f"I look at {about}.", phase="commentary"),
        of_responses.called("look", path=about),
        of_responses.thought(),
        of_responses.called("ls", path=about),
    )


def responses_ends(double: Any, about: str) -> None:
    end = of_responses.text_item(f"That was {about}.", phase="final_answer")
    double.reply(of_responses.thought(f"Enough of {about}."), end)


def messages(url: str) -> HttpModel:
    return AnthropicMessages("claude-fable-5-2", url, KEY, timeouts=QUICK, retries=SOON)


def messages_calls(double: Any, about: str) -> None:
    double.say(
        of_messages.thought(f"A thought on {about}."),
        of_messages.redacted(),
        f"I look at {about}.",
        of_messages.use("look", path=about),
        of_messages.use("ls", path=about),
    )


def messages_ends(double: Any, about: str) -> None:
    double.say(of_messages.thought(f"Enough of {about}."), f"That was {about}.")


def gemini(url: str) -> HttpModel:
    return Gemini("gemini-3-pro", url, KEY, timeouts=QUICK, retries=SOON)


def gemini_calls(double: Any, about: str) -> None:
    calls = [of_gemini.wanted(name, path=about) for name in ("look", "ls")]
    double.say(f"I look at {about}.", *calls, thought=f"A thought on {about}.")


def gemini_ends(double: Any, about: str) -> None:
    double.say(f"That was {about}.", thought=f"Enough of {about}.")


WIRES = {
    "chat": Wire(StrictChat, chat, chat_calls, chat_ends, ("reasoning_content",)),
    "responses": Wire(
        StrictResponses, responses, responses_calls, responses_ends, ("encrypted_content", "id")
    ),
    "messages": Wire(
        StrictMessages, messages, messages_calls, messages_ends, ("signature", "data")
    ),
    "gemini": Wire(StrictGemini, gemini, gemini_calls, gemini_ends, ("thoughtSignature",)),
}

Pair = tuple[str, str]


@pytest.fixture(params=[*permutations(WIRES, 2)], ids=" to ".join)
def pair(request: pytest.FixtureRequest) -> Pair:
    return request.param


class Stage:
    """A session between two sides."""

    def __init__(self, stack: AsyncExitStack) -> None:
        self.stack = stack
        self.doubles: dict[str, Any] = {}
        self.session: Any = None

    async def go(self, name: str, about: str) -> None:
        """Let the session go on with a side: a turn with two calls, and its end."""
        wire = WIRES[name]
        double = self.doubles.get(name)
        if double is None:
            double = self.doubles[name] = await self.stack.enter_async_context(wire.double())
        wire.calls(double, about)
        wire.ends(double, about)
        model = wire.model(double.url)
        self.stack.push_async_callback(model.aclose)
        async with Agent(model, tools=[look, ls], hooks=[HOOK]) as agent:
            session = await agent.new_session()
            if self.session is not None:
                session.messages[:] = self.session.messages
            reply = await agent.run(f"what about {about}?", session=session)
        self.session = session
        assert reply.text.endswith(f"That was {about}.")
        assert double.refused == []

    def secrets(self, name: str) -> list[list[str]]:
        """What a side has said that is for it alone, message by message, as the session has it."""
        at = self.doubles[name].url
        mine = [each for each in self.session.messages if at in each.get("origin", "")]
        return [[*found(message, WIRES[name].secrets)] for message in mine]


HOOK = SystemPromptHook("Be careful. " * 40)


def found(value: Any, names: tuple[str, ...]) -> Iterator[str]:
    """The texts that stand under some names, in order."""
    match value:
        case {"output_items": items}:
            yield from found(items, names)
        case Mapping():
            for key, each in value.items():
                if key in names and isinstance(each, str) and each:
                    yield each
                else:
                    yield from found(each, names)
        case [*items]:
            for each in items:
                yield from found(each, names)
        case _:
            pass


@pytest.fixture
async def stage() -> AsyncGenerator[Stage, None]:
    async with AsyncExitStack() as stack:
        yield Stage(stack)


async def test_a_session_goes_on_with_another_model_and_back(stage: Stage, pair: Pair) -> None:
    one, other = pair
    await stage.go(one, "cats")
    first = stage.secrets(one)
    await stage.go(other, "dogs")
    await stage.go(one, "cows")
    await stage.go(other, "pigs")
    assert stage.secrets(one)[:2] == first
    for name, foreign in (pair, pair[::-1]):
        raw = stage.doubles[name].requests[-1].raw.decode()
        own = [secret for said in stage.secrets(name)[:-1] for secret in said]
        places = [raw.find(f'"{secret}"') for secret in own]
        assert len(own) >= 3
        assert -1 not in places
        assert places == sorted(places)
        assert not any(secret in raw for said in stage.secrets(foreign) for secret in said)
