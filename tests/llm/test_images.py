"""Images reach models that see, where their endpoint takes them, and are a line of text elsewhere."""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.watching import Watching

from crow import Agent
from crow.core.errors import ModelError
from crow.core.events import Retrying
from crow.core.messages import user
from crow.core.ports.llm import LLM
from crow.testing import Endpoint
from crow.testing.endpoint import answer, delta, respond, stream
from crow.tools.declarations import read

Make = Callable[..., LLM]
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
URL = f"data:image/png;base64,{base64.b64encode(PNG).decode()}"
PART: Any = {"type": "image_url", "image_url": {"url": URL}}
SHOWN = {"type": "text", "text": "What the tools above returned as images:"}


def reads(*paths: Path) -> list[Any]:
    calls = [
        {
            "index": index,
            "id": f"c{index}",
            "type": "function",
            "function": {"name": "Read", "arguments": f'{{"file_path": "{path}"}}'},
        }
        for index, path in enumerate(paths)
    ]
    return stream(delta(tool_calls=calls), delta(finish="tool_calls"))


@pytest.fixture
def pictures(tmp_path: Path) -> tuple[Path, Path]:
    one, two = tmp_path / "one.png", tmp_path / "two.png"
    one.write_bytes(PNG)
    two.write_bytes(PNG + b"\0")
    return one, two


def contents(endpoint: Endpoint, request: int = -1) -> list[Any]:
    return [(m["role"], m["content"]) for m in endpoint.requests[request].body["messages"]]


@pytest.mark.variants(1)
async def test_the_image_of_a_tool_follows_the_results_in_a_message_of_the_user_s(
    endpoint: Endpoint, make: Make, pictures: tuple[Path, Path]
):
    one, two = pictures
    endpoint.play(reads(one, two), answer("Red."), answer("Yes."))
    async with Agent(llm=make(), tools=[read]) as agent:
        session = (await agent.run("look", cwd=one.parent)).session
        await agent.run("sure?", session=session)
    other: Any = {"type": "image_url", "image_url": {"url": f"{URL[:22]}{base64.b64encode(two.read_bytes()).decode()}"}}  # fmt: skip
    expected = [
        ("user", "look"),
        ("assistant", None),
        ("tool", f"{one} (image/png, {len(PNG)} bytes)\n[an image: it is in the next message]"),
        ("tool", f"{two} (image/png, {len(PNG) + 1} bytes)\n[an image: it is in the next message]"),
        ("user", [SHOWN, PART, other]),
    ]
    assert contents(endpoint, 1) == expected
    assert contents(endpoint, 2) == [*expected, ("assistant", "Red."), ("user", "sure?")]


async def test_an_endpoint_that_takes_images_in_results_gets_them_there(
    endpoint: Endpoint, pictures: tuple[Path, Path]
):
    """As Mistral does, which takes no message of the user's right behind a result."""
    from crow.llm.model_names import resolve

    settings: Any = {"providers": {"mistral": {"base_url": endpoint.url}}}
    endpoint.play(reads(pictures[0]), answer("Red."))
    async with Agent(llm=resolve("mistral/pixtral-x", settings, {}), tools=[read]) as agent:
        await agent.run("look", cwd=pictures[0].parent)
    assert [role for role, _ in contents(endpoint)] == ["user", "assistant", "tool"]
    assert contents(endpoint)[-1][1][-1] == PART


async def test_a_model_that_sees_nothing_is_told_of_the_image_in_a_line(
    endpoint: Endpoint, pictures: tuple[Path, Path]
):
    from crow.llm import ChatCompletions

    endpoint.play(reads(pictures[0]), answer("I cannot see it."))
    llm = ChatCompletions("m-1", endpoint.url, inputs=())
    async with Agent(llm=llm, tools=[read]) as agent:
        await agent.run([{"type": "text", "text": "look"}, PART], cwd=pictures[0].parent)
    line = f"[an image, image/png, {len(PNG)} bytes: left out, because this model takes no images]"
    first, _, result = contents(endpoint)
    assert first == ("user", f"look\n{line}")
    assert result == ("tool", f"{pictures[0]} (image/png, {len(PNG)} bytes)\n{line}")
    await llm.aclose()


BLIND = [
    (500, {"error": {"code": 500, "message": "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj"}}),
    (400, {"error": {"message": "Failed to deserialize: messages[2]: unknown variant `image_url`, expected `text`"}}),
    (404, {"error": {"message": "No endpoints found that support image input", "code": 404}}),
    (400, {"error": {"message": "This model does not support image inputs."}}),
    (422, {"detail": [{"msg": "messages.2.content should be a valid string"}]}),
]  # fmt: skip


@pytest.mark.parametrize("status, said", BLIND)
@pytest.mark.variants(1)
async def test_a_model_that_turns_out_to_see_nothing_is_asked_once_without_and_then_always(
    endpoint: Endpoint, make: Make, pictures: tuple[Path, Path], status: int, said: Any
):
    one, two = pictures
    endpoint.play(reads(one), respond(status, said), reads(two), answer("Nothing to see."))
    watching = Watching()
    llm = make()
    async with Agent(llm=llm, tools=[read]) as agent:
        session = await agent.new_session(one.parent, client=watching)
        reply = await agent.run("look", session=session)
    assert reply.text == "Nothing to see."
    assert len(endpoint.requests) == 4
    assert "image_url" in str(contents(endpoint, 1))
    assert "image_url" not in str(contents(endpoint, 2) + contents(endpoint, 3))
    assert "this model takes no images" in str(contents(endpoint, 3))
    (told,) = watching.of(Retrying)
    assert "an image was refused" in told.reason
    assert "image_url" in str(session.messages)  # another model may see it
    assert "image" not in getattr(llm, "inputs", ())


REFUSED = [
    (400, {"error": {"message": "Could not process image"}}),
    (400, {"error": {"message": "messages.4.content.1: image exceeds 5 MB maximum: 6 bytes > 5"}}),
    (400, {"error": {"message": "You uploaded an unsupported image. Please make sure it is valid"}}),
]  # fmt: skip


@pytest.mark.parametrize("status, said", REFUSED)
async def test_one_image_that_is_refused_stays_out_and_others_are_shown(
    endpoint: Endpoint, make: Make, pictures: tuple[Path, Path], status: int, said: Any
):
    one, two = pictures
    endpoint.play(reads(one), reads(two), respond(status, said), answer("One."), answer("Again."))
    async with Agent(llm=make(), tools=[read]) as agent:
        session = (await agent.run("look", cwd=one.parent)).session
        await agent.run("again", session=session)
    for request in (3, 4):
        sent = str(contents(endpoint, request))
        assert sent.count("'image_url': {") == 1
        assert "the endpoint refused it" in sent
    assert len(endpoint.requests) == 5


async def test_an_image_refused_inside_the_stream_is_left_out_as_well(
    endpoint: Endpoint, make: Make, pictures: tuple[Path, Path]
):
    late = stream({"error": {"code": 400, "message": "Could not process image"}}, done=False)
    endpoint.play(late, answer("Never mind."))
    async with Agent(llm=make()) as agent:
        reply = await agent.run([{"type": "text", "text": "look"}, PART])
    assert reply.text == "Never mind."


async def test_an_error_that_only_names_an_image_is_the_error(endpoint: Endpoint, make: Make):
    said = {"error": {"message": "The model gpt-image-1 does not exist"}}
    endpoint.play(*[respond(404, said)] * 2, answer("Red."))
    llm = make()
    async with Agent(llm=llm) as agent:
        session = await agent.new_session()
        with pytest.raises(ModelError, match="does not exist"):
            await agent.run([{"type": "text", "text": "look"}, PART], session=session)
        await agent.run("again", session=session)
    assert contents(endpoint)[0] == ("user", [{"type": "text", "text": "look"}, PART])


async def test_a_history_without_images_is_sent_as_it_is(endpoint: Endpoint, make: Make):
    parts: Any = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    endpoint.play(answer("Hi."))
    async with Agent(llm=make()) as agent:
        await agent.run(parts)
    assert endpoint.requests[0].body["messages"] == [user(parts)]
