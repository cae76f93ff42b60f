"""Tools that work through the editor: its files where it lends both ways, its terminals."""

from __future__ import annotations

import asyncio
import gc
from pathlib import Path
from typing import Any

import pytest

from crow import Agent, tool
from crow.core.ports.tool import ToolEnvironment
from crow.testing import FakeEditor, ScriptedModel, call


@tool
async def peek(ctx: ToolEnvironment, path: str) -> str:
    """Read a file as the client has it."""
    if ctx.client.files is None:
        return "no files"
    try:
        return await ctx.client.files.read(path)
    except OSError as error:
        return f"{type(error).__name__}: {error}"


@tool
async def poke(ctx: ToolEnvironment, path: str, text: str) -> str:
    """Write a file through the client."""
    assert ctx.client.files is not None
    await ctx.client.files.write(path, text)
    return "ok"


@pytest.mark.rule("no stale buffer")
async def test_tools_read_unsaved_buffers_and_write_through_the_editor(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text("saved\n")
    files = {str(file): "unsaved\n"}
    script = call("peek", path=str(file)), call("poke", path=str(file), text="new\n"), "done"
    editor = FakeEditor(files=files)
    async with editor.connected(Agent(llm=ScriptedModel(*script), tools=[peek, poke])):
        await editor.prompt(await editor.new_session(tmp_path), "Go")
        read, _written = editor.cards()
    assert read["rawOutput"] == {"output": "unsaved\n"}
    assert files == {str(file): "new\n"}
    assert file.read_text() == "new\n"


async def test_the_built_in_tools_work_on_unsaved_buffers(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text("saved\n")
    files = {str(file): "unsaved\n"}
    edit = call("Edit", file_path=str(file), old_string="unsaved", new_string="changed")
    editor = FakeEditor(files=files)
    async with editor.connected(
        Agent(llm=ScriptedModel(call("Read", file_path=str(file)), edit, "done"))
    ):
        await editor.prompt(await editor.new_session(tmp_path), "Go")
        assert [card["status"] for card in editor.cards()] == ["completed", "completed"]
    assert files == {str(file): "changed\n"}


async def test_a_file_that_the_editor_does_not_have_is_not_found(tmp_path: Path) -> None:
    editor = FakeEditor(files={})
    script = call("peek", path=str(tmp_path / "gone")), "done"
    async with editor.connected(Agent(llm=ScriptedModel(*script), tools=[peek])):
        await editor.prompt(await editor.new_session(tmp_path), "Go")
        (card,) = editor.cards()
    assert card["rawOutput"]["output"].startswith("FileNotFoundError: ")


@pytest.mark.parametrize("fs", [{"readTextFile": True}, {"writeTextFile": True}, {}, "nonsense"])
@pytest.mark.rule("no stale buffer")
async def test_files_are_asked_for_only_where_both_ways_are_announced(
    tmp_path: Path, fs: Any
) -> None:
    editor = FakeEditor()
    hello = {"protocolVersion": 1, "clientCapabilities": {"fs": fs}}
    script = call("peek", path="/x"), "done"
    async with editor.connected(Agent(llm=ScriptedModel(*script), tools=[peek]), initialize=False):
        await editor.wire.request("initialize", hello)
        await editor.prompt(await editor.new_session(tmp_path), "Go")
        (card,) = editor.cards()
    assert card["rawOutput"] == {"output": "no files"}
    assert editor.asked == []


async def test_a_command_runs_in_the_editors_terminal(tmp_path: Path) -> None:
    editor = FakeEditor(terminals=True)
    script = call("Bash", command="echo out; exit 3"), "done"
    async with editor.connected(Agent(llm=ScriptedModel(*script))):
        await editor.prompt(await editor.new_session(tmp_path), "Run")
        (card,) = editor.cards()
        assert editor.shell is not None
        ((terminal_id, terminal),) = editor.shell.terminals.items()
    assert card["content"] == [{"type": "terminal", "terminalId": terminal_id}]
    assert card["status"] == "failed"
    assert card["rawOutput"]["stdout"].strip() == "out"
    assert terminal.is_released


async def test_cancelling_kills_the_command_in_the_editors_terminal(tmp_path: Path) -> None:
    editor = FakeEditor(terminals=True)
    script = call("Bash", command="sleep 60"), "again"
    async with editor.connected(Agent(llm=ScriptedModel(*script))):
        session = await editor.new_session(tmp_path)
        turn = asyncio.create_task(editor.prompt(session, "Run"))
        terminal = [{"type": "terminal", "terminalId": "terminal-1"}]
        await editor.saw("tool_call_update", content=terminal)
        await editor.cancel(session)
        assert (await turn).stop_reason == "cancelled"
        assert editor.shell is not None
        assert await editor.shell.terminals["terminal-1"].wait() != 0
        assert editor.cards()[0]["content"][:1] == terminal


@pytest.mark.rule("no terminal of another connection")
async def test_no_terminal_of_another_day_is_ever_shown(tmp_path: Path) -> None:
    from crow.extensions.persistence import PersistenceHook

    first, later = FakeEditor(terminals=True), FakeEditor(terminals=True)
    script = call("Bash", command="echo hello"), "done"
    store = tmp_path / "crow.db"
    async with first.connected(Agent(llm=ScriptedModel(*script), hooks=[PersistenceHook(store)])):
        session = await first.new_session(tmp_path)
        await first.prompt(session, "Run")
    async with later.connected(Agent(llm=ScriptedModel(), hooks=[PersistenceHook(store)])):
        await later.connection.load_session(str(tmp_path), session)
        (card,) = later.cards()
    assert "hello" in card["content"][0]["content"]["text"]


@pytest.mark.rule("no terminal of another connection")
async def test_a_command_of_the_editors_terminal_is_shown_again_in_one_of_the_agents(
    tmp_path: Path,
) -> None:
    from crow.extensions.persistence import PersistenceHook

    able: dict[str, Any] = {"terminals": True, "meta": {"terminal_output": True}}
    first, later = FakeEditor(**able), FakeEditor(**able)
    script = call("Bash", command="echo hello; exit 3"), "done"
    store = tmp_path / "crow.db"
    async with first.connected(Agent(llm=ScriptedModel(*script), hooks=[PersistenceHook(store)])):
        session = await first.new_session(tmp_path)
        await first.prompt(session, "Run")
        assert first.shell is not None
        assert len(first.shell.terminals) == 1
    async with later.connected(Agent(llm=ScriptedModel(), hooks=[PersistenceHook(store)])):
        await later.connection.load_session(str(tmp_path), session)
        first_told, then = [u for u in later.updates() if "toolCallId" in u]
    shown = first_told["toolCallId"]
    assert first_told["sessionUpdate"] == "tool_call"
    assert first_told["content"] == [{"type": "terminal", "terminalId": shown}]
    assert first_told["_meta"] == {"terminal_info": {"terminal_id": shown, "cwd": str(tmp_path)}}
    assert then == {  # where Zed looks for it: behind the call that makes its terminal known
        "sessionUpdate": "tool_call_update",
        "toolCallId": shown,
        "_meta": {
            "terminal_output": {"terminal_id": shown, "data": "hello\n"},
            "terminal_exit": {"terminal_id": shown, "exit_code": 3, "signal": None},
        },
    }


HASTY = {"crow": {"requestTimeoutMs": 200}}


async def test_a_file_that_the_editor_never_gives_is_an_error_in_time(tmp_path: Path) -> None:
    script = call("peek", path="/x"), "done"
    editor = FakeEditor(files={}, meta=HASTY, silent=["fs/read_text_file"])
    async with editor.connected(Agent(llm=ScriptedModel(*script), tools=[peek])):
        await editor.prompt(await editor.new_session(tmp_path), "Go")
        (card,) = editor.cards()
    assert card["rawOutput"]["output"] == (
        "TimeoutError: the client did not answer fs/read_text_file in 0.2 s"
    )


LENT = {
    "fs/read_text_file": call("Read", file_path="a.txt"),
    "fs/write_text_file": call("Write", file_path="new.txt", content="x"),
    "terminal/create": call("Bash", command="echo here"),
}


@pytest.mark.parametrize("method", LENT)
async def test_who_falls_silent_is_waited_for_once_and_the_user_is_told(
    tmp_path: Path, method: str
) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    files = {str(tmp_path / "a.txt"): "one\n"}
    editor = FakeEditor(files=files, terminals=True, silent=[method], meta=HASTY)
    again = call("Write", file_path="newer.txt", content="x") if "write" in method else LENT[method]
    async with editor.connected(Agent(llm=ScriptedModel(LENT[method], again, "done"))):
        await editor.prompt(await editor.new_session(tmp_path), "Go")
        assert [card["status"] for card in editor.cards()] == ["completed", "completed"]
        assert editor.text().count(f"the client did not answer {method} in 0.2 s") == 1


@pytest.mark.parametrize("method", [*LENT, "terminal/wait_for_exit", "terminal/release"])
async def test_a_cancel_does_not_wait_for_a_client_that_is_silent(
    tmp_path: Path, method: str, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    files = {str(tmp_path / "a.txt"): "one\n"}
    editor = FakeEditor(files=files, terminals=True, silent=[method])
    work = LENT.get(method, LENT["terminal/create"])
    async with editor.connected(Agent(llm=ScriptedModel(work, "done"))):
        session = await editor.new_session(tmp_path)
        turn = asyncio.create_task(editor.prompt(session, "Go"))
        await editor.wire.until(
            lambda: any(m.get("method") == method for m in editor.wire.received)
        )
        await editor.cancel(session)
        async with asyncio.timeout(0.9):
            assert (await turn).stop_reason == "cancelled"
    gc.collect()
    assert "never retrieved" not in capfd.readouterr().err


async def test_a_file_that_the_editor_never_writes_is_written_to_the_disk(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    writing = call("Write", file_path=str(file), content="x")
    editor = FakeEditor(files={}, meta=HASTY, silent=["fs/read_text_file", "fs/write_text_file"])
    async with editor.connected(Agent(llm=ScriptedModel(writing, "done"))):
        reply = await editor.prompt(await editor.new_session(tmp_path), "Go")
        (card,) = editor.cards()
    assert reply.stop_reason == "end_turn"
    assert card["status"] == "completed"
    assert file.read_text() == "x"


@pytest.mark.parametrize("refused", ["fs/read_text_file", "fs/write_text_file"])
async def test_a_file_that_the_editor_refuses_is_not_touched_behind_its_back(
    tmp_path: Path, refused: str
) -> None:
    file = tmp_path / "a.txt"
    before = "there" if refused == "fs/read_text_file" else None
    if before:
        file.write_text(before)
    writing = call("Write", file_path=str(file), content="x")
    editor = FakeEditor(files={}, refused={refused: f"Permission denied for {refused}"})
    async with editor.connected(Agent(llm=ScriptedModel(writing, "done"))):
        await editor.prompt(await editor.new_session(tmp_path), "Go")
        (card,) = editor.cards()
    assert card["status"] == "failed"
    assert f"Permission denied for {refused}" in card["content"][0]["content"]["text"]
    assert (file.read_text() if file.exists() else None) == before


async def test_a_terminal_that_the_editor_never_opens_does_not_hold_the_command_up(
    tmp_path: Path,
) -> None:
    running = call("Bash", command="echo here")
    editor = FakeEditor(terminals=True, meta=HASTY, silent=["terminal/create"])
    async with editor.connected(Agent(llm=ScriptedModel(running, "done"))):
        reply = await editor.prompt(await editor.new_session(tmp_path), "Go")
        (card,) = editor.cards()
    assert reply.stop_reason == "end_turn"
    assert card["status"] in ("completed", "failed")


async def test_a_terminal_that_is_never_released_does_not_hold_the_run_up(tmp_path: Path) -> None:
    running = call("Bash", command="echo here")
    editor = FakeEditor(terminals=True, meta=HASTY, silent=["terminal/release", "terminal/output"])
    async with editor.connected(Agent(llm=ScriptedModel(running, "done"))):
        reply = await editor.prompt(await editor.new_session(tmp_path), "Go")
    assert reply.stop_reason == "end_turn"
