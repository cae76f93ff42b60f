"""The command, the terminal and an editor with a real model: `make real`."""

from __future__ import annotations

import asyncio
import json
import signal
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Crow, Ended
from tests.cli.test_ask import PROMPT, Screen
from tests.real.conftest import LONG, Model, use

from crow.testing import FakeEditor

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

ENDS = ("end_turn", "max_tokens")
STORY = "Tell me a long story about a crow that learns to fly, in many sentences."


def texts(events: list[dict[str, Any]]) -> list[str]:
    return [event["text"] for event in events if event["type"] == "text"]


def finished(ended: Ended) -> dict[str, Any]:
    """The last line of a run that ended by itself: with a sentence, or at the limit of an answer."""
    assert ended.out, ended.err
    result = ended.events[-1]
    assert result["stop_reason"] in ENDS, result
    return result


async def read(process: asyncio.subprocess.Process, kind: str) -> dict[str, Any]:
    """The next line of ``--json`` of a kind."""
    assert process.stdout is not None
    async for line in process.stdout:
        event = json.loads(line)
        if event["type"] == kind:
            return event
    raise AssertionError(f"no {kind} came")


async def test_an_answer_is_streamed(crow: Crow, model: Model, home: Path):
    use(crow, model, home, **LONG)
    ended = await crow("run", "--json", STORY)
    result = finished(ended)
    assert len(texts(ended.events)) > 3
    assert result["text"] == "".join(texts(ended.events))
    assert result["usage"]["input_tokens"] > 1000


async def test_a_tool_is_called_and_its_result_goes_back(crow: Crow, model: Model):
    ended = await crow("run", "--json", "Call LS to see the files here.")
    kinds = [event["type"] for event in ended.events]
    assert "tool_ended" in kinds
    assert "text" in kinds[kinds.index("tool_ended") :]
    finished(ended)


async def test_a_session_goes_on_from_the_tokens_that_the_server_has_kept(crow: Crow, model: Model):
    await crow("run", "Say hello.")
    ended = await crow("run", "--json", "--continue", "And now goodbye.")
    usage = finished(ended)["usage"]
    assert usage["cached_tokens"] > 0.9 * usage["input_tokens"]


async def test_an_interrupted_run_ends_at_once_and_its_session_goes_on(
    crow: Crow, model: Model, home: Path
):
    use(crow, model, home, **LONG)
    process = await crow.start("run", "--json", STORY)
    await read(process, "text")
    process.send_signal(signal.SIGINT)
    async with asyncio.timeout(5):
        assert await process.wait() == 130
    use(crow, model, home)
    ended = await crow("run", "--json", "--continue", "Go on.")
    finished(ended)


async def test_what_does_not_fit_is_said_with_the_servers_numbers(
    crow: Crow, model: Model, project: Path
):
    long = " ".join(f"word{number}" for number in range(1500))
    ended = await crow("run", long)
    assert ended.status == 1
    assert "2,048" in ended.err or "2048" in ended.err


async def test_an_answer_goes_on_where_a_killed_server_comes_back(
    crow: Crow, own: Model, home: Path
):
    own.start()
    use(crow, own, home, **LONG)
    process = await crow.start("run", "--json", STORY)
    first = await read(process, "text")
    own.kill()
    await read(process, "retrying")
    await asyncio.to_thread(own.start)
    result = await read(process, "result")
    assert result["stop_reason"] in ENDS, result
    assert result["text"].startswith(first["text"])
    await process.wait()


async def test_a_server_that_is_not_there_yet_is_waited_for(crow: Crow, own: Model, home: Path):
    own.start()
    own.kill()  # the port is known now, and nobody listens there
    use(crow, own, home)
    process = await crow.start("run", "--json", "Say hello.")
    await read(process, "retrying")
    await asyncio.to_thread(own.start)
    result = await read(process, "result")
    assert result["stop_reason"] in ENDS, result
    await process.wait()


async def test_the_terminal_shows_an_answer_a_call_and_the_next_prompt(crow: Crow, model: Model):
    await crow("run", "Call LS to see the files here.")  # the server knows the prompt then
    screen = Screen()
    chat = await screen.start(crow, "--plain")
    await screen.until(PROMPT)
    screen.type("Call LS to see the files here.\r")
    await screen.until("lines")
    await screen.until(PROMPT)
    screen.type("Say hello.\r")
    await screen.until(PROMPT)
    screen.type("/exit\r")
    assert await screen.close(chat) == 0


async def test_an_editor_has_two_sessions_at_once_and_cancels_one(
    crow: Crow, model: Model, home: Path, project: Path
):
    use(crow, model, home, **LONG)
    editor = FakeEditor()
    async with editor.spawned(*crow.command("acp"), env=crow.env, cwd=project):
        first, second = [await editor.new_session(project) for _ in range(2)]
        long = asyncio.create_task(editor.prompt(first, STORY))
        short = asyncio.create_task(editor.prompt(second, "Call LS to see the files here."))
        await editor.wire.until(lambda: bool(editor.text(first)))
        await editor.cancel(first)
        async with asyncio.timeout(5):
            assert (await long).stop_reason == "cancelled"
        assert (await short).stop_reason in ENDS
        assert editor.cards(second)
        assert editor.text(first)


GUARD = """from crow import Deny


class NoPushing:
    def before_tool(self, ctx):
        return Deny("nobody lists here") if ctx.name == "LS" else None
"""


async def test_an_extension_that_the_model_proposes_is_in_use_at_once(
    crow: Crow, model: Model, project: Path
):
    (project / "guard.py").write_text(GUARD)
    editor = FakeEditor(permissions=["until_end"])
    async with editor.spawned(*crow.command("acp"), env=crow.env, cwd=project):
        session = await editor.new_session(project)
        await editor.prompt(session, "Call LoadExtension with the extension guard.py")
        await editor.prompt(session, "Call LS to see the files here.")
        loaded, *_, listed = editor.cards(session)
    (request,) = editor.asked
    assert GUARD in [each.get("newText") for each in request["toolCall"]["content"]]
    assert "guard is in use, until Crow ends. hooks: before_tool" in str(loaded)
    assert "nobody lists here" in str(listed)
