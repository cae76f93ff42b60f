"""What a user can choose in a session: mode, model, thought level; and what each choice does."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from acp import RequestError

from crow import Agent, Continue
from crow.core.catalog import Mode
from crow.core.ports.llm import LLM
from crow.extensions import CompactionHook
from crow.llm import Routed
from crow.testing import FakeEditor, ScriptedModel, text
from crow.testing.endpoint import Endpoint, answer

CROW = str(Path(sys.executable).with_name("crow"))
LEVELS = ("low", "medium", "high")


class Thinker(ScriptedModel):
    """A model that can be made to think harder."""

    thought_levels = LEVELS
    inputs = frozenset({"image"})


class Plain(ScriptedModel):
    """A model that takes text alone."""

    inputs: frozenset[str] = frozenset()


def several(models: dict[str | None, LLM], names: list[str]) -> Routed:
    return Routed(lambda name: models[name], names)


def current(options: list[Any]) -> dict[str, Any]:
    """Option ids with their values."""
    return {each["id"]: each["currentValue"] for each in options}


@pytest.mark.rule("a model picker", "options: mode, model, thought level")
async def test_a_thought_level_goes_into_every_request(tmp_path: Path) -> None:
    model = Thinker("Hm.", "Quick.")
    editor = FakeEditor()
    async with editor.connected(Agent(llm=model)):
        opened = await editor.wire.request("session/new", {"cwd": str(tmp_path)})
        session, options = opened["result"]["sessionId"], opened["result"]["configOptions"]
        assert [option["category"] for option in options] == ["model", "thought_level"]
        assert [value["value"] for value in options[1]["options"]] == ["default", *LEVELS]
        chosen = {"sessionId": session, "configId": "thought_level"}
        for level in ("high", "default"):
            answered = await editor.wire.request(
                "session/set_config_option", {**chosen, "value": level}
            )
            assert current(answered["result"]["configOptions"])["thought_level"] == level
            await editor.prompt(session, "Think")
    assert [asked["params"] for asked in model.asked] == [{"reasoning_effort": "high"}, {}]


async def test_a_level_that_another_model_lacks_is_not_taken_along(tmp_path: Path) -> None:
    thinker, plain = Thinker(), Plain("ok")
    llm = several({None: thinker, "plain": plain}, ["plain"])
    editor = FakeEditor()
    async with editor.connected(Agent(llm=llm)):
        session = await editor.new_session(tmp_path)
        await editor.connection.set_config_option("thought_level", session, "low")
        request = {"sessionId": session, "configId": "model", "value": "plain"}
        answered = await editor.wire.request("session/set_config_option", request)
        assert current(answered["result"]["configOptions"]) == {"model": "plain"}
        await editor.prompt(session, "Hi")
    assert plain.asked[0]["params"] == {}


@pytest.mark.rule("a model picker")
async def test_every_change_shows_the_complete_list_whoever_made_it(tmp_path: Path) -> None:
    def init_agent(agent: Agent) -> None:
        agent.add_mode(Mode("plan", "Plan"))

    async def after_turn(ctx: Any) -> None:
        await ctx.agent.configure(ctx.session, model="second", mode="plan")

    llm = several({None: Thinker("ok"), "second": ScriptedModel()}, ["second", "third"])
    editor = FakeEditor()
    async with editor.connected(Agent(llm=llm, hooks=[init_agent, after_turn])):
        session = await editor.new_session(tmp_path)
        await editor.prompt(session, "Hi")
        (told,) = editor.updates("config_option_update")
        (mode,) = editor.updates("current_mode_update")
    assert current(told["configOptions"]) == {"mode": "plan", "model": "second"}
    offered = [value["value"] for value in told["configOptions"][1]["options"]]
    assert offered == ["scripted", "second", "third"]
    assert mode["currentModeId"] == "plan"


async def test_models_are_looked_for_behind_the_answer_and_shown_when_found(tmp_path: Path) -> None:
    answering = asyncio.Event()

    async def look() -> list[str]:
        await answering.wait()
        return ["ollama/qwen3"]

    model = ScriptedModel()
    editor = FakeEditor()
    async with editor.connected(Agent(llm=Routed(lambda _: model, look=look))):
        opened = await editor.connection.new_session(str(tmp_path))
        before = opened.model_dump(by_alias=True, exclude_none=True)["configOptions"]
        other = await editor.new_session(tmp_path)
        answering.set()
        await editor.saw("config_option_update")
        told = editor.updates("config_option_update", opened.session_id)
        await editor.wire.until(lambda: bool(editor.updates("config_option_update", other)))
    assert [value["value"] for value in before[0]["options"]] == ["scripted"]
    offered = [value["value"] for value in told[0]["configOptions"][0]["options"]]
    assert offered == ["scripted", "ollama/qwen3"]


async def test_a_missing_key_of_the_first_model_hides_no_other(tmp_path: Path, home: Path) -> None:
    settings = {"models": ["rehearsal", "mistral/large"]}
    (home / ".crow").mkdir()
    (home / ".crow/settings.json").write_text(json.dumps(settings), "utf-8")
    editor = FakeEditor()
    async with editor.spawned(CROW, "acp", "--model", "openai/gpt-5", cwd=tmp_path):
        session = await editor.new_session(tmp_path)
        with pytest.raises(RequestError) as missing:
            await editor.prompt(session, "hello")
        assert missing.value.code == -32000
        await editor.connection.set_config_option("model", session, "rehearsal")
        assert (await editor.prompt(session, "hello")).stop_reason == "end_turn"
        with pytest.raises(RequestError, match="mistral needs a key"):
            await editor.connection.set_config_option("model", session, "mistral/large")


FULL: Any = {"total_tokens": 900}


@pytest.mark.parametrize("switches", [False, True])
async def test_what_is_on_or_off_is_offered_to_clients_that_show_it(
    tmp_path: Path, switches: bool
) -> None:
    model = ScriptedModel(text("One.", usage=FULL), "Two.", context_window=1000)
    editor = FakeEditor(switches=switches)
    async with editor.connected(Agent(llm=model, hooks=[CompactionHook(keep_turns=1)])):
        opened = await editor.wire.request("session/new", {"cwd": str(tmp_path)})
        session, options = opened["result"]["sessionId"], opened["result"]["configOptions"]
        offered = {option["id"]: option["currentValue"] for option in options}
        assert offered.get("auto_compact") is (True if switches else None)
        change = {"sessionId": session, "configId": "auto_compact", "type": "boolean"}
        answered = await editor.wire.request(
            "session/set_config_option", {**change, "value": False}
        )
        if switches:
            assert current(answered["result"]["configOptions"])["auto_compact"] is False
        refused = {"sessionId": session, "configId": "auto_compact", "value": "false"}
        answered = await editor.wire.request("session/set_config_option", refused)
        assert answered["error"]["code"] == -32602
        await editor.prompt(session, "Hi")
        await editor.prompt(session, "And?")
    assert len(model.asked) == 2


@pytest.mark.rule("a model picker")
async def test_models_of_several_providers_come_in_groups(tmp_path: Path) -> None:
    names = ["gpt-5", "ollama/qwen3", "ollama/llama3", "openrouter/x/y"]
    editor = FakeEditor()
    async with editor.connected(Agent(llm=several({None: ScriptedModel()}, names))):
        opened = await editor.wire.request("session/new", {"cwd": str(tmp_path)})
    (picker,) = opened["result"]["configOptions"]
    assert picker["currentValue"] == "scripted"
    assert [
        (group["group"], [(value["value"], value["name"]) for value in group["options"]])
        for group in picker["options"]
    ] == [
        ("others", [("scripted", "scripted")]),
        ("openai", [("gpt-5", "gpt-5")]),
        ("ollama", [("ollama/qwen3", "qwen3"), ("ollama/llama3", "llama3")]),
        ("openrouter", [("openrouter/x/y", "x/y")]),
    ]


@pytest.mark.rule("a model picker")
async def test_a_local_server_is_asked_for_its_models_and_answers_as_the_chosen_one(
    tmp_path: Path,
) -> None:
    async with Endpoint() as endpoint:
        endpoint.models = ["qwen3:8b", "llama3"]
        endpoint.others["/api/ps"] = {"models": []}
        endpoint.play(answer("Moo."))
        host = endpoint.url.removeprefix("http://").removesuffix("/v1")
        editor = FakeEditor()
        async with editor.spawned(CROW, "acp", cwd=tmp_path, env={"OLLAMA_HOST": host}):
            session = await editor.new_session(tmp_path)
            told = await editor.saw("config_option_update")
            (picker,) = [o for o in told["configOptions"] if o["id"] == "model"]
            offered = [value["value"] for value in picker["options"]]
            await editor.connection.set_config_option("model", session, "ollama/llama3")
            await editor.prompt(session, "hello")
            assert editor.text() == "Moo."
    assert offered == ["rehearsal", "ollama/llama3", "ollama/qwen3:8b"]
    assert endpoint.requests[0].body["model"] == "llama3"


@pytest.mark.slow
async def test_the_command_offers_the_modes_of_permissions_and_they_hold(tmp_path: Path) -> None:
    editor = FakeEditor(permissions=["reject_once"])
    async with editor.spawned(CROW, "acp", cwd=tmp_path):
        opened = await editor.connection.new_session(str(tmp_path))
        assert opened.modes is not None
        modes = [mode.id for mode in opened.modes.available_modes]
        await editor.connection.set_session_mode(opened.session_id, "acceptEdits")
        await editor.prompt(opened.session_id, "Create a file called test.txt")
    assert modes == ["default", "acceptEdits", "plan", "dontAsk"]
    assert editor.asked == []
    assert (tmp_path / "test.txt").exists()


@pytest.mark.parametrize(
    "model, image, audio",
    [("gemini-2.5-pro", True, True), ("deepseek-chat", False, False)],
)
async def test_prompts_may_hold_what_the_model_takes(
    tmp_path: Path, model: str, image: bool, audio: bool
) -> None:
    editor = FakeEditor()
    async with editor.spawned(CROW, "acp", "--model", model, cwd=tmp_path):
        assert editor.greeting is not None
        capabilities = editor.greeting.agent_capabilities
        assert capabilities is not None
        prompts = capabilities.prompt_capabilities
        assert prompts is not None
        assert (prompts.image, prompts.audio) == (image, audio)
        assert prompts.embedded_context


async def test_a_picture_for_a_model_that_sees_none_is_left_out_with_a_line(tmp_path: Path) -> None:
    picture = {"type": "image", "mimeType": "image/png", "data": "aGk="}
    thinker, plain = Thinker("A dog."), Plain("Which?")
    editor = FakeEditor()
    async with editor.connected(Agent(llm=several({None: thinker, "plain": plain}, ["plain"]))):
        session = await editor.new_session(tmp_path)
        await editor.prompt(session, "What is this?", picture)
        await editor.connection.set_config_option("model", session, "plain")
        await editor.prompt(session, "And this?", picture)
    assert thinker.asked[0]["messages"][-1]["content"][-1]["type"] == "image_url"  # type: ignore[index]
    assert "this model takes none" in str(plain.asked[0]["messages"][-1]["content"])


async def test_boolean_options_are_for_clients_that_announced_them(tmp_path: Path) -> None:
    """CONFIG-003: there are none at all, so none reaches a client that cannot show it."""
    editor = FakeEditor()
    async with editor.connected(Agent(llm=Thinker())):
        opened = await editor.wire.request("session/new", {"cwd": str(tmp_path)})
    assert {option["type"] for option in opened["result"]["configOptions"]} == {"select"}


async def test_a_choice_during_a_run_counts_from_the_next_request(tmp_path: Path) -> None:
    model = Thinker("One.", "Two.")
    editor = FakeEditor()

    async def on_stop(ctx: Any) -> Continue | None:
        if len(model.asked) == 1:
            await editor.connection.set_config_option("thought_level", ctx.session.id, "high")
            return Continue("go on")
        return None

    async with editor.connected(Agent(llm=model, hooks=[on_stop])):
        await editor.prompt(await editor.new_session(tmp_path), "Go")
    assert [asked["params"] for asked in model.asked] == [{}, {"reasoning_effort": "high"}]
