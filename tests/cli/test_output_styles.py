"""Output styles: how the agent talks, by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.cli.conftest import Crow

from crow import Agent
from crow.extensions import OutputStylesHook, SubagentsHook, SystemPromptHook
from crow.testing import FakeEditor, ScriptedModel, call
from crow.testing.endpoint import Endpoint, answer

PIRATE = "---\nname: Pirate\ndescription: Talks like one.\n---\nTalk like a pirate.\n"
KEPT = PIRATE.replace("---\nTalk", "keep-coding-instructions: true\n---\nTalk")


def write(folder: Path, text: str, name: str = "pirate") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.md").write_text(text)
    return folder


def told(endpoint: Endpoint, number: int = -1) -> str:
    return endpoint.requests[number].body["messages"][0]["content"]


async def test_a_style_is_chosen_by_a_setting_and_an_option(crow: Crow, endpoint: Endpoint) -> None:
    settings = write(Path.home() / ".claude/output-styles", PIRATE).parent / "settings.json"
    settings.write_text('{"outputStyle": "pirate"}')
    endpoint.play(*[answer("Arr.")] * 5)
    ended = await crow("-p", "hi", "--output-format", "stream-json")
    assert ended.events[0]["output_style"] == "Pirate"
    assert told(endpoint).startswith("Talk like a pirate.\n\n# ")
    await crow("-p", "hi", "--output-style", "explanatory")
    assert told(endpoint).startswith("You are Crow")
    assert "\n\n# How to talk: explain" in told(endpoint)
    await crow("-p", "hi", "--output-style", "default")
    assert "How to talk" not in told(endpoint)
    await crow("-p", "hi", "--system-prompt", "You are a parrot.")
    assert told(endpoint).startswith("You are a parrot.\n\n# ")
    wrong = await crow("-p", "hi", "--output-style", "pirat")
    assert (
        wrong.status,
        "there is no output style 'pirat'; there are: default, " in wrong.err,
    ) == (
        0,
        True,
    )


async def test_the_project_s_style_counts_before_the_user_s(crow: Crow, endpoint: Endpoint) -> None:
    write(Path.home() / ".claude/output-styles", PIRATE)
    write(crow.cwd / ".claude/output-styles", KEPT)
    endpoint.play(answer("Arr."))
    await crow("trust", "--yes")
    await crow("-p", "hi", "--output-style", "Pirate")
    assert told(endpoint).startswith("You are Crow")
    assert "Talk like a pirate." in told(endpoint)


async def test_a_style_changes_in_a_session_and_stays_with_it(tmp_path: Path) -> None:
    folder = write(tmp_path / "styles", PIRATE)
    task = call("Agent", description="Look", prompt="Look.")
    model = ScriptedModel("One.", task, "Sub.", "Two.", "Three.")
    styles = OutputStylesHook(folders=[folder])
    async with Agent(model, hooks=[SystemPromptHook(), SubagentsHook([]), styles]) as agent:
        session = await agent.new_session(tmp_path)
        await agent.prompt(session, "hi")
        answered = await agent.prompt(session, "/output-style")
        assert "The style is default" in answered.text
        assert "- Pirate: Talks like one." in answered.text
        unknown = await agent.prompt(session, "/output-style pirat")
        assert "there is no output style 'pirat'" in unknown.text
        await agent.prompt(session, "/output-style pirate")
        await agent.prompt(session, "hi")
        assert session.options["output_style"] == "Pirate"
    starts = [str(each["messages"][0].get("content"))[:6] for each in model.asked]
    assert starts == ["You ar", "Talk l", "You wo", "Talk l"]


async def test_a_plugin_brings_styles_and_may_insist_on_one(
    crow: Crow, endpoint: Endpoint, tmp_path: Path
) -> None:
    plugin = tmp_path / "ship"
    forced = PIRATE.replace("---\nTalk", "force-for-plugin: true\n---\nTalk")
    write(plugin / "output-styles", forced)
    (plugin / ".claude-plugin").mkdir()
    (plugin / ".claude-plugin/plugin.json").write_text('{"name": "ship"}')
    endpoint.play(answer("Arr."), answer("Arr."))
    ended = await crow("-p", "hi", "--plugin-dir", str(plugin), "--output-format", "stream-json")
    assert ended.events[0]["output_style"] == "ship:Pirate"
    assert told(endpoint).startswith("Talk like a pirate.")


async def test_an_editor_offers_the_styles_there_are(tmp_path: Path) -> None:
    folder = write(tmp_path / "styles", PIRATE)
    model = ScriptedModel("Arr.")
    hooks = [SystemPromptHook(), OutputStylesHook(folders=[folder])]
    editor = FakeEditor()
    async with editor.connected(Agent(model, hooks=hooks)):
        opened = await editor.connection.new_session(cwd=str(tmp_path), mcp_servers=[])
        options = {each.id: each for each in opened.config_options or ()}
        option: Any = options["output_style"]
        assert (option.current_value, len(option.options)) == ("default", 6)
        session = opened.session_id
        await editor.connection.set_config_option("output_style", session, "Pirate")
        await editor.prompt(session, "hi")
    first = str(model.asked[0]["messages"][0].get("content"))
    assert first.startswith("Talk like a pirate.")


async def test_a_project_replaces_a_users_style_only_once_it_is_trusted(
    crow: Crow, endpoint: Endpoint
) -> None:
    own = write(Path.home() / ".claude/output-styles", PIRATE)
    own.with_name("settings.json").write_text('{"outputStyle": "pirate"}')
    write(crow.cwd / ".claude/output-styles", PIRATE.replace("a pirate.", "a thief."))
    endpoint.play(answer("Arr."), answer("Arr."))
    await crow("-p", "hi")
    assert told(endpoint).startswith("Talk like a pirate.")
    await crow("trust", "--yes")
    await crow("-p", "hi")
    assert told(endpoint).startswith("Talk like a thief.")
