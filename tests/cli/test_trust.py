"""``crow trust``, and who is asked about a project in a terminal and in an editor's process."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.conftest import Crow, Here
from tests.cli.test_ask import PROMPT, Screen
from tests.files import write

from crow.project.trust import is_trusted, trust
from crow.testing import FakeEditor
from crow.testing.endpoint import Endpoint, answer


def wanting(crow: Crow, out: str = "seen") -> Path:
    """Let the project want a hook."""
    handler = {"type": "command", "command": f"cat > {crow.cwd.parent}/{out}"}
    table = {"hooks": {"UserPromptSubmit": [{"hooks": [handler]}]}}
    return write(crow.cwd / ".claude/settings.json", table)


async def test_without_a_person_and_without_yes_nothing_is_trusted(crow: Crow, here: Here) -> None:
    wanting(crow)
    ended = await here("trust")
    assert ended.status == 2
    assert "hook at UserPromptSubmit: cat > " in ended.out
    assert "  .claude/settings.json\n" in ended.out
    assert ended.complaint.startswith("not trusted: there is nobody to ask")
    assert not is_trusted(crow.cwd)
    ended = await here("trust", "-y")
    assert (ended.status, "trusted, until one of these files changes" in ended.out) == (0, True)
    assert is_trusted(crow.cwd)


async def test_what_was_decided_is_listed_and_can_be_taken_back(
    crow: Crow, here: Here, tmp_path: Path
) -> None:
    wanting(crow)
    trust(crow.cwd)
    other = tmp_path / "other"
    write(other / ".crow/settings.json", {"env": {"A": "b"}})
    trust(other)
    write(other / ".crow/settings.json", {})
    listed = await here("trust", "--list", "--json")
    assert sorted((each["project"], each["state"]) for each in listed.events) == [
        (str(other), "changed"),
        (str(crow.cwd), "trusted"),
    ]
    assert f"trusted   {crow.cwd}\n" in (await here("trust", "--list")).out
    assert "is not trusted" in (await here("trust", "--revoke")).out
    assert "was not trusted" in (await here("trust", "--revoke")).out


async def test_a_person_at_a_terminal_is_asked_and_enter_means_no(crow: Crow) -> None:
    wanting(crow)
    for typed, status in (("\r", 1), ("y\r", 0)):
        screen = Screen()
        process = await screen.start(crow, "trust")
        await screen.until("Trust them? y/N: ")
        screen.type(typed)
        assert await screen.close(process) == status
    assert is_trusted(crow.cwd)


async def test_crow_asks_before_the_first_prompt_and_the_hooks_run_then(
    crow: Crow, endpoint: Endpoint
) -> None:
    wanting(crow)
    endpoint.play(answer("Hello."))
    screen = Screen()
    process = await screen.start(crow, "--plain")
    await screen.until("Trust ")
    await screen.until("hook at UserPromptSubmit")
    await screen.until("Not now")
    await screen.until("or write trust:")
    screen.type("trust\r")
    await screen.until(PROMPT)
    screen.type("hi\r")
    await screen.until("Hello.")
    assert (crow.cwd.parent / "seen").exists()
    await screen.until(PROMPT)
    screen.type("\x04")
    assert await screen.close(process) == 0


async def test_what_was_typed_for_something_else_trusts_nothing(
    crow: Crow, endpoint: Endpoint
) -> None:
    wanting(crow)
    endpoint.play(answer("Hello."))
    screen = Screen()
    process = await screen.start(crow, "--plain")
    screen.type("fix the tests\r3\ry\ryes\r0\r\r")
    await screen.until("or write trust:")
    await screen.until(PROMPT)
    assert not is_trusted(crow.cwd)
    screen.type("\x04")
    assert await screen.close(process) == 0
    assert not (crow.cwd.parent / "seen").exists()


@pytest.mark.slow
async def test_an_editors_process_asks_about_the_project_of_its_session(
    crow: Crow, endpoint: Endpoint, tmp_path: Path
) -> None:
    wanting(crow)
    endpoint.play(answer("Hello."))
    editor = FakeEditor(answers=["Trust this project"])
    command = crow.command("acp")
    async with editor.spawned(*command, env=crow.env, cwd=tmp_path):
        session = await editor.new_session(crow.cwd)
        await editor.saw("config_option_update")
        await editor.prompt(session, "hi")
    assert is_trusted(crow.cwd)
    assert (crow.cwd.parent / "seen").exists()
    assert str(crow.cwd) in editor.asked[0]["message"]


async def test_the_schema_is_printed(here: Here) -> None:
    printed = await here("config", "--schema")
    assert json.loads(printed.out)["title"] == "Crow settings"
