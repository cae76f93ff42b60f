"""Sessions as a person meets them while they talk: chosen, named, forked, taken back, exported."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from tests.cli.conftest import Crow, Here, calls
from tests.cli.screens import Tmux, needs_tmux
from tests.cli.test_ask import Screen

from crow.testing.endpoint import Endpoint, answer

pytestmark = needs_tmux
READY = "scripted · default"


async def say(tmux: Tmux, text: str, *answers: str) -> str:
    """Type something, and wait for what comes."""
    await tmux.type(text)
    await tmux.keys("Enter")
    return await tmux.until(*answers)


def sent(endpoint: Endpoint) -> list[str]:
    """What people and models said, as the last request has it."""
    messages = endpoint.requests[-1].body["messages"]
    texts = [each["content"] for each in messages if each["role"] in ("user", "assistant")]
    return [text for text in texts if "<crow-context" not in text[:20]]


@pytest.mark.slow
async def test_a_session_is_chosen_from_a_list_that_is_searched(
    crow: Crow, endpoint: Endpoint, tmux: Tmux, narrow: Tmux, tmp_path: Path
) -> None:
    (crow.cwd / ".git/HEAD").write_text("ref: refs/heads/topic\n", "utf-8")
    endpoint.play(answer("The pipe is mended."), answer("The lamp is lit."), answer("Afar."))
    await crow("run", "Mend the pipe")
    await crow("run", "Light the lamp")
    await crow("run", "Elsewhere", "--cwd", str(tmp_path))
    await tmux.start(crow, "--resume")
    screen = await tmux.until("Sessions of this directory", "1 of 2")
    assert "❯ Light the lamp" in screen
    assert "just now · topic · 1 turn" in screen
    assert "Elsewhere" not in screen
    await tmux.keys("Tab")
    screen = await tmux.until("Elsewhere", "1 of 3")
    assert screen.index("Mend the pipe") < screen.index("Elsewhere")
    await tmux.type("mended")
    screen = await tmux.until("The pipe is mended.", gone="Light")
    await tmux.keys("Enter")
    screen = await tmux.until(READY, "> Mend the pipe", "The pipe is mended.")

    await narrow.start(crow, "--resume")
    screen = await narrow.until("❯ Light the lamp", "Mend the pipe", "in use elsewhere")
    assert all(len(line) <= 40 for line in screen.splitlines())
    await narrow.keys("Down", "Enter")
    await narrow.until("in use by")
    await narrow.keys("Escape")
    await narrow.until(READY[:8], gone="Light the lamp")

    await say(tmux, "/resume", "you are in it", "❯ Light the lamp")
    await tmux.keys("Enter")
    await tmux.until("> Light the lamp", "The lamp is lit.")
    endpoint.play(answer("And the door."))
    await say(tmux, "Again", "And the door.")
    assert sent(endpoint) == ["Light the lamp", "The lamp is lit.", "Again"]


@pytest.mark.slow
async def test_escape_twice_goes_back_to_an_earlier_prompt(
    crow: Crow, endpoint: Endpoint, tmux: Tmux
) -> None:
    endpoint.play(answer("First."), answer("Second."), answer("Third."), answer("Fourth."))
    await tmux.start(crow)
    await tmux.until(READY)
    for prompt, told in (("One", "First."), ("Two", "Second."), ("Three", "Third.")):
        await say(tmux, prompt, told)
    await tmux.keys("Escape")
    await tmux.keys("Escape")
    await tmux.until("Back to before which prompt?", "❯ > Three")
    await tmux.keys("Up", "Enter")
    await tmux.until("this is a fork from before that prompt; files are not touched")
    await tmux.type(" b")
    await tmux.until("> Two b")
    await say(tmux, "is", "Fourth.")
    assert sent(endpoint) == ["One", "First.", "Two bis"]
    listed = (await crow("sessions", "list")).out.splitlines()
    assert [" ".join(line.split()[-3:]) for line in listed] == ["4 messages One"] * 1 + [
        "6 messages One"
    ]

    await say(tmux, "/tree", "Go on from", "❯ │   Fourth.")
    screen = await tmux.screen()
    rows = [line[2:].rstrip() for line in screen.splitlines() if "│" in line or "Three" in line]
    assert rows[-3:] == ["│ > Two bis", "│   Fourth.", "> Three"]
    await tmux.type("second")
    await tmux.until("1 of 1", "❯   Second.")
    await tmux.keys("Enter")
    await tmux.until("this is a fork from behind that answer")
    endpoint.play(answer("Fifth."))
    await say(tmux, "Five", "Fifth.")
    assert sent(endpoint) == ["One", "First.", "Two", "Second.", "Five"]


@pytest.mark.slow
async def test_a_session_is_named_and_exported_without_secrets(
    crow: Crow, endpoint: Endpoint, tmux: Tmux
) -> None:
    key = "sk-a-long-secret-key"
    crow.env["CROW_API_KEY"] = key
    endpoint.play(answer(f"The key is {key}, `so` it is."))
    await tmux.start(crow)
    await tmux.until(READY)
    await say(tmux, "Tell me", "so it is.")
    await say(tmux, "/rename The Long Walk", "this session is called 'The Long Walk'")
    assert "The Long Walk" in (await crow("sessions", "list")).out
    await say(tmux, "/export", "the conversation is in")
    (file,) = crow.cwd.glob("crow-the-long-walk-*.md")
    text = file.read_text("utf-8")
    assert text.startswith("# The Long Walk\n")
    assert "## You\n\nTell me\n\n## Crow\n\nThe key is (hidden), `so` it is.\n" in text
    assert file.stat().st_mode & 0o777 == 0o600
    file.write_text("mine", "utf-8")
    await say(tmux, f"/export {file.name}", "Overwrite", "there already?")
    await asyncio.sleep(0.5)  # a question takes no key at first
    await tmux.keys("n")
    await tmux.until("stays as it was")
    assert file.read_text("utf-8") == "mine"
    await say(tmux, "/export talk.json", "talk.json,")
    said = json.loads((crow.cwd / "talk.json").read_text("utf-8"))
    assert said["title"] == "The Long Walk"
    assert key not in json.dumps(said)
    assert [each["role"] for each in said["messages"]][-1] == "assistant"


async def test_lines_name_and_export_a_session_as_well(crow: Crow, endpoint: Endpoint) -> None:
    endpoint.play(answer("So it is."))
    screen = Screen()
    process = await screen.start(crow, "--plain")
    await screen.until("\n> ")
    screen.type("Tell me\n")
    await screen.until("So it is.")
    screen.type("/rename Walk\n")
    await screen.until("this session is called 'Walk'")
    screen.type("/export walk.md\n")
    await screen.until("without the secrets")
    screen.type("/export walk.md\n")
    await screen.until("Overwrite")
    screen.type("\n")
    await screen.until("nothing was written")
    screen.type("/exit\n")
    assert await screen.close(process) == 0
    assert (crow.cwd / "walk.md").read_text("utf-8").startswith("# Walk\n")


async def test_a_run_must_name_the_session_that_goes_on(here: Here) -> None:
    ended = await here("run", "Go on", "--resume")
    assert (ended.status, ended.complaint) == (
        2,
        "--resume takes the ID of a session: crow sessions lists them",
    )


@pytest.mark.slow
async def test_going_back_shows_what_becomes_of_files_and_brings_them_back(
    crow: Crow, endpoint: Endpoint, tmux: Tmux
) -> None:
    (crow.cwd / "kept.txt").write_text("old", "utf-8")
    script = "echo new > kept.txt; mkdir made; echo made > made/one.txt"
    endpoint.play(answer("First."), calls(("Bash", {"command": script})), answer("Second."))
    await tmux.start(crow, "--allow", "Bash")
    await tmux.until(READY)
    await say(tmux, "One", "First.")
    await say(tmux, "Two", "Second.")
    await say(tmux, "/rewind", "Back to before which prompt?", "❯ > Two")
    await tmux.keys("Enter")
    await tmux.until("restore  kept.txt", "delete   made/one.txt", "files and conversation")
    await asyncio.sleep(0.5)  # a question takes no key at first
    await tmux.keys("1")
    await tmux.until("this is a fork from before that prompt; 2 files were brought back", "> Two")
    assert (crow.cwd / "kept.txt").read_text("utf-8") == "old"
    assert not (crow.cwd / "made").exists()
    await tmux.keys("C-u")
    await say(tmux, "/rewind 9", "there is no prompt '9': a number up to 1, or back")
    await say(tmux, "/rewind back", "before the last rewind?", "restore  made/one.txt")
    await asyncio.sleep(0.5)
    await tmux.keys("1")
    await tmux.until("· 2 files were brought back (/rewind back undoes that)")
    assert (crow.cwd / "kept.txt").read_text("utf-8") == "new\n"
    assert (crow.cwd / "made/one.txt").exists()
    first = next(
        line.split()[0]
        for line in (await crow("sessions", "list")).out.splitlines()
        if " 6 messages" in line
    )
    listed = await crow("sessions", "rewind", first)
    assert [row.split("  ")[-1] for row in listed.out.splitlines()[:2]] == ["2 to change"] * 2
