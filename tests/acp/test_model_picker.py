"""The models that a client can choose from: one name each, before and after the list is there."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from crow import Agent
from crow.acp.agent import SETTLE
from crow.testing import FakeEditor, ScriptedModel
from crow.testing.endpoint import Endpoint

CROW = str(Path(sys.executable).with_name("crow"))
LISTED = ["qwen3:8b", "org/model-x"]


def picker(options: list[Any]) -> tuple[str, list[str]]:
    """The current value and all values of the option that chooses the model."""
    (found,) = (each for each in options if each["id"] == "model")
    groups = [each.get("options", [each]) for each in found["options"]]
    return found["currentValue"], [value["value"] for group in groups for value in group]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "variable", "called", "prefix"),
    [
        ("ollama/qwen3:8b", "OLLAMA_HOST", "ollama/qwen3:8b", "ollama/"),
        ("gpt-5", "OPENAI_BASE_URL", "openai/gpt-5", "openai/"),
        ("openai/gpt-5", "OPENAI_BASE_URL", "openai/gpt-5", "openai/"),
        ("qwen3:8b", "CROW_BASE_URL", "qwen3:8b", ""),
        ("org/model-x", "CROW_BASE_URL", "org/model-x", ""),
        ("ollama/qwen3:8b", "CROW_BASE_URL", "ollama/qwen3:8b", ""),
    ],
)
async def test_every_listed_name_can_be_chosen_and_is_what_the_chosen_model_is_called(
    tmp_path: Path, model: str, variable: str, called: str, prefix: str
) -> None:
    editor = FakeEditor()
    async with Endpoint() as endpoint:
        names = ["gpt-5"] if prefix == "openai/" else LISTED
        endpoint.models = [*names]
        url = endpoint.url if variable != "OLLAMA_HOST" else urlsplit(endpoint.url).netloc
        env = {"OLLAMA_HOST": "127.0.0.1:9", "CROW_MODEL": model, variable: url}
        env |= {"OPENAI_API_KEY": "k"} if variable == "OPENAI_BASE_URL" else {}
        async with editor.spawned(CROW, "acp", env=env, cwd=tmp_path):
            place = {"cwd": str(tmp_path), "mcpServers": []}
            opened = (await editor.wire.request("session/new", place))["result"]
            session = opened["sessionId"]
            assert picker(opened["configOptions"])[0] == called
            update = await editor.saw("config_option_update")
            first = picker(update["configOptions"])
            assert first[0] == called
            assert set(first[1]) == {called, *(prefix + name for name in names)}
            for name in (*first[1], model):
                choice = {"sessionId": session, "configId": "model", "value": name}
                set_to = await editor.wire.request("session/set_config_option", choice)
                now = picker(set_to["result"]["configOptions"])
                assert now == (called if name == model else name, first[1])


@pytest.mark.slow
async def test_the_next_process_has_the_whole_list_in_its_first_answer(tmp_path: Path) -> None:
    lists: list[list[str]] = []
    async with Endpoint() as endpoint:
        endpoint.models = [*LISTED]
        env = {"OLLAMA_HOST": urlsplit(endpoint.url).netloc, "CROW_MODEL": "ollama/qwen3:8b"}
        for more in ([], ["new"], []):
            endpoint.models += more
            editor = FakeEditor()
            async with editor.spawned(CROW, "acp", env=env, cwd=tmp_path):
                place = {"cwd": str(tmp_path), "mcpServers": []}
                opened = (await editor.wire.request("session/new", place))["result"]
                lists.append(picker(opened["configOptions"])[1])
                if more or len(lists) == 1:
                    update = await editor.saw("config_option_update")
                    lists.append(picker(update["configOptions"])[1])
    whole = ["ollama/qwen3:8b", "ollama/org/model-x"]
    newer = [whole[0], "ollama/new", whole[1]]
    assert lists == [whole[:1], whole, whole, newer, newer]


async def test_nothing_is_looked_for_on_behalf_of_a_session_that_is_closed(tmp_path: Path) -> None:
    class Listing(ScriptedModel):
        looked = 0

        async def find_models(self) -> bool:
            self.looked += 1
            return False

    model = Listing()
    editor = FakeEditor()
    agent = Agent(llm=model)
    async with editor.connected(agent):
        await editor.new_session(tmp_path)
        (session,) = agent.sessions.values()
        await agent.close_session(session)
        waited = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_later(2 * SETTLE, waited.set_result, None)
        await waited
    assert model.looked == 0
