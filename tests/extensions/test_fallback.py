"""Other models answer where the first cannot, and only then."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

import pytest

from crow import Agent, Completion, ModelError
from crow.core.events import TextDelta
from crow.core.ports import NullClient
from crow.extensions.fallback import FallbackHook


class Models:
    """Models by name; each says its lines in pieces, or raises one. ``asked`` are their names."""

    context_window = None
    model = "first"

    def __init__(self, **lines: list[Any]) -> None:
        self.asked: list[str] = []
        self._lines = lines

    async def stream(self, request: Any) -> AsyncGenerator[Any, None]:
        name = request.model or self.model
        self.asked.append(name)
        line, said = self._lines[name].pop(0), ""
        for piece in line if isinstance(line, list) else [line]:
            if isinstance(piece, ModelError):
                raise piece
            said += piece
            yield TextDelta(piece, request.message_id)
        yield Completion(said)


def broken(kind: str) -> ModelError:
    return ModelError(f"it is {kind}", kind=kind)


@pytest.mark.parametrize("kind", ["overloaded", "server", "network", "timeout", "rate_limit"])
async def test_the_next_model_answers_and_the_first_is_let_alone_for_a_while(kind: str) -> None:
    models = Models(first=[broken(kind), "never"], second=["two", "again"])
    async with Agent(models, hooks=[FallbackHook(["first", "second"])], tools=[]) as agent:
        session = await agent.new_session()
        assert (await agent.prompt(session, "hi")).text == "two"
        assert (await agent.prompt(session, "hi")).text == "again"
    assert models.asked == ["first", "second", "second"]


@pytest.mark.parametrize("kind", ["authentication", "billing", "invalid_request", "context_length"])
async def test_what_another_model_could_not_mend_is_an_error(kind: str) -> None:
    models = Models(first=[broken(kind)], second=["never"])
    async with Agent(models, hooks=[FallbackHook(["second"])], tools=[]) as agent:
        reply = await agent.prompt(await agent.new_session(), "hi")
    assert (reply.stop_reason, models.asked) == ("error", ["first"])


async def test_one_after_the_other_is_asked_and_the_last_ones_error_told() -> None:
    models = Models(first=[broken("server")], second=[broken("timeout")], third=["three"])
    async with Agent(models, hooks=[FallbackHook(["second", "third"])], tools=[]) as agent:
        assert (await agent.run("hi")).text == "three"
    models = Models(first=[broken("server")], second=[broken("timeout")])
    async with Agent(models, hooks=[FallbackHook(["second"])], tools=[]) as agent:
        reply = await agent.prompt(await agent.new_session(), "hi")
        assert "it is timeout" in reply.detail


async def test_what_was_shown_of_a_broken_answer_is_not_doubled() -> None:
    class Shown(NullClient):
        text = ""

        async def update(self, session_id: str, event: Any) -> None:
            self.text += event.text if isinstance(event, TextDelta) else ""

    client = Shown()
    models = Models(first=[["Hel", broken("server")]], second=["Hello"])
    async with Agent(models, hooks=[FallbackHook(["second"])], tools=[]) as agent:
        session = await agent.new_session(client=client)
        assert (await agent.prompt(session, "hi")).text == "Hello"
        assert [m.get("content") for m in session.messages] == ["hi", "Hello"]
    assert client.text == "Hello"
