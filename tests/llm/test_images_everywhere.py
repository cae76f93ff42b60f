"""A tool's image on every wire: where it wants it, a line where it is not seen, never a poison."""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from crow import Agent
from crow.core.support.frozen import frozen
from crow.llm import AnthropicMessages, ChatCompletions, Gemini, HttpModel, Responses
from crow.testing import Endpoint, StrictGemini, StrictMessages, StrictResponses
from crow.testing import messages as of_messages
from crow.testing import responses as of_responses
from crow.testing.endpoint import answer, delta, respond, stream
from crow.testing.gemini import wanted
from crow.tools.declarations import read

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
DATA = base64.b64encode(PNG).decode()
BLIND = "left out, because this model takes no images"
REFUSED = "left out, because the endpoint refused it"


@frozen
class Wire:
    """A wire: its endpoint, a model there, what reads a file, what says a text, and where the image is.

    ``place`` gives what holds a tool's image in a request.
    """

    endpoint: Callable[[], Any]
    model: Callable[..., HttpModel]
    reads: Callable[[Any, str], None]
    says: Callable[[Any, str], None]
    place: Callable[[Any], Any]


def chat_reads(endpoint: Endpoint, path: str) -> None:
    function = {"name": "Read", "arguments": f'{{"file_path": "{path}"}}'}
    call = {"index": 0, "id": "c1", "type": "function", "function": function}
    endpoint.play(stream(delta(tool_calls=[call]), delta(finish="tool_calls")))


WIRES = {
    "chat": Wire(
        Endpoint,
        lambda url, **known: ChatCompletions("m-1", url, **known),
        chat_reads,
        lambda endpoint, text: endpoint.play(answer(text)),
        lambda body: body["messages"][-1]["content"],
    ),
    "responses": Wire(
        StrictResponses,
        lambda url, **known: Responses("gpt-5.6", url, **known),
        lambda double, path: double.reply(of_responses.called("Read", file_path=path)),
        lambda double, text: double.reply(of_responses.text_item(text)),
        lambda body: body["input"][-1]["output"],
    ),
    "messages": Wire(
        StrictMessages,
        lambda url, **known: AnthropicMessages("claude-opus-5-5", url, "k", **known),
        lambda double, path: double.say(of_messages.use("Read", file_path=path)),
        lambda double, text: double.say(text),
        lambda body: body["messages"][-1]["content"][0]["content"],
    ),
    "gemini": Wire(
        StrictGemini,
        lambda url, **known: Gemini("gemini-3-pro", url, **known),
        lambda double, path: double.say(wanted("Read", file_path=path)),
        lambda double, text: double.say(text),
        lambda body: body["contents"][-1]["parts"][0]["functionResponse"]["parts"],
    ),
    "gemini before 3": Wire(
        StrictGemini,
        lambda url, **known: Gemini("gemini-2.5-pro", url, **known),
        lambda double, path: double.say(wanted("Read", file_path=path)),
        lambda double, text: double.say(text),
        lambda body: body["contents"][-1]["parts"],
    ),
}


@pytest.fixture(params=WIRES)
def wire(request: pytest.FixtureRequest) -> Wire:
    return WIRES[request.param]


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    path = tmp_path / "red.png"
    path.write_bytes(PNG)
    return path


async def test_it_is_shown_where_the_wire_wants_it(wire: Wire, picture: Path):
    async with wire.endpoint() as endpoint:
        wire.reads(endpoint, str(picture))
        wire.says(endpoint, "Red.")
        async with Agent(wire.model(endpoint.url), tools=[read]) as agent:
            assert (await agent.run("look", cwd=picture.parent)).text == "Red."
        body = endpoint.requests[-1].body
    assert str(body).count(DATA) == 1
    assert DATA in str(wire.place(body))


async def test_for_a_model_that_sees_nothing_it_is_a_line(wire: Wire, picture: Path):
    async with wire.endpoint() as endpoint:
        wire.reads(endpoint, str(picture))
        wire.says(endpoint, "I cannot see it.")
        async with Agent(wire.model(endpoint.url, inputs=()), tools=[read]) as agent:
            await agent.run("look", cwd=picture.parent)
        body = str(endpoint.requests[-1].body)
    assert DATA not in body
    assert body.count(BLIND) == 1


async def test_one_that_is_refused_does_not_end_the_session(wire: Wire, picture: Path):
    async with wire.endpoint() as endpoint:
        wire.reads(endpoint, str(picture))
        async with Agent(wire.model(endpoint.url), tools=[read]) as agent:
            endpoint.play(respond(400, {"error": {"message": "Could not process image"}}))
            wire.says(endpoint, "I cannot see it.")
            wire.says(endpoint, "Still not.")
            session = (await agent.run("look", cwd=picture.parent)).session
            assert (await agent.run("and now?", session=session)).text == "Still not."
        shown = [DATA in str(request.body) for request in endpoint.requests]
        assert shown == [False, True, False, False]
        assert REFUSED in str(endpoint.requests[-1].body)
    assert DATA in str(session.messages)  # another model may see it
