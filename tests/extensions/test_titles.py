"""Titles: who is asked for one, when, and what becomes of it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from crow import Agent
from crow.core.events import Event, TitleChanged
from crow.core.ports.client import NullClient
from crow.errors import ModelError
from crow.extensions import PersistenceHook, TitlesHook
from crow.testing import ScriptedModel


class Purposeful(ScriptedModel):
    """A scripted model that has models by purpose."""

    def __init__(self, *script: Any, **purposes: str) -> None:
        super().__init__(*script)
        self.purposes = purposes


class Watching(NullClient):
    """Waits for titles."""

    def __init__(self) -> None:
        self.titles: asyncio.Queue[str] = asyncio.Queue()

    async def update(self, session_id: str, event: Event) -> None:
        if isinstance(event, TitleChanged):
            self.titles.put_nowait(event.title)


async def test_a_session_is_named_once_by_the_model_for_it(tmp_path: Any):
    client = Watching()
    model = Purposeful("It lists files.", ' "Listing files in Python."\n', "Yes.", title="small")
    hook = PersistenceHook(db_path=str(tmp_path / "crow.db"))
    async with Agent(model, hooks=[TitlesHook(), hook], tools=[]) as agent:
        session = await agent.new_session(client=client)
        await agent.run("What does this do?", session=session)
        assert await client.titles.get() == "What does this do?"
        assert await client.titles.get() == "Listing files in Python"
        wish = model.asked[1]
        assert wish["model"] == "small"
        assert "What does this do?" in str(wish["messages"][0]["content"])
        assert "It lists files." in str(wish["messages"][0]["content"])
        await agent.run("Sure?", session=session)
        assert len(model.asked) == 3
        assert [message["role"] for message in session.messages] == ["user", "assistant"] * 2
        assert [each.title for each in (await hook.store.sessions())[0]] == [
            "Listing files in Python"
        ]


async def test_nobody_is_asked_where_no_model_is_named_for_it():
    for model in (ScriptedModel("One.", "Two."), Purposeful("One.", "Two.", summary="small")):
        agent = Agent(model, hooks=[TitlesHook()], tools=[])
        session = (await agent.run("Go")).session
        await agent.run("On", session=session)
        assert len(model.asked) == 2


async def test_a_name_that_somebody_gave_stays():
    client = Watching()
    model = Purposeful("One.", title="small")
    agent = Agent(model, hooks=[TitlesHook()], tools=[])
    session = await agent.new_session(client=client)
    session.title = "My work"
    await agent.run("Go", session=session)
    await asyncio.gather(*session.tasks)
    assert (session.title, len(model.asked)) == ("My work", 1)


@pytest.mark.parametrize("said", [ModelError("no", kind="server"), "  \n"])
async def test_where_there_is_no_title_the_first_words_stay(said: str | ModelError):
    model = Purposeful("One.", said, title="small")
    agent = Agent(model, hooks=[TitlesHook()], tools=[])
    session = (await agent.run("Go on")).session
    await asyncio.gather(*session.tasks)
    assert (session.title, len(model.asked)) == ("", 2)
