"""The transcript file: compact JSON Lines in the shape that public hooks read."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from tests.extensions.shell_hooks.conftest import Stage, given

from crow.core.catalog import Command
from crow.extensions import PersistenceHook
from crow.testing import call, text


def lines(path: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(path).read_text().splitlines()]


async def test_every_message_is_a_line_with_what_hooks_read(stage: Stage):
    seen = stage.on("Stop")
    usage: Any = {"input_tokens": 100, "cached_tokens": 60, "output_tokens": 7, "total_tokens": 107}
    await stage.run(
        ["Let me see.", call("Bash", command="exit 3")],
        text("Done – ünïcödé.", usage=usage),
        prompt="Please",
    )
    path = given(seen)[0]["transcript_path"]
    user, asked, result, done = lines(path)
    assert (user["type"], user["message"]) == ("user", {"role": "user", "content": "Please"})
    assert asked["message"]["content"] == [
        {"type": "text", "text": "Let me see."},
        {"type": "tool_use", "id": "call_1", "name": "Bash", "input": {"command": "exit 3"}},
    ]
    [block] = result["message"]["content"]
    assert (block["type"], block["tool_use_id"], block["is_error"]) == (
        "tool_result",
        "call_1",
        True,
    )
    assert done["message"]["usage"] == {
        "input_tokens": 40,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 60,
        "output_tokens": 7,
    }
    assert done["message"]["model"] == "scripted"
    assert done["parentUuid"] == result["uuid"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", done["timestamp"])
    raw = Path(path).read_text()
    assert '"role":"assistant"' in raw
    assert "ünïcödé" in raw
    assert Path(path).stat().st_mode & 0o077 == 0


async def test_injected_context_is_marked_as_no_prompt(stage: Stage):
    seen = stage.on("Stop")
    stage.on("UserPromptSubmit", says="a hint")
    await stage.run("Ok.")
    prompt, hint, _ = lines(given(seen)[0]["transcript_path"])
    assert ("isMeta" in prompt, hint["isMeta"]) == (False, True)


async def test_after_a_compaction_the_summary_and_what_is_new_follow(stage: Stage):
    seen = stage.on("Stop")

    async def shorten(ctx: Any) -> None:
        await ctx.compact(ctx.session.messages[-1:], "What was said.")

    async with stage.agent("One.", "Two.") as agent:
        agent.add_command(Command("shorten", "", shorten))
        reply = await agent.run("First", cwd=stage.cwd)
        await agent.run("/shorten", session=reply.session)
        await agent.run("Second", session=reply.session)
    told = [str(line["message"]["content"]) for line in lines(given(seen)[-1]["transcript_path"])]
    assert ["First" in told[0], "One." in told[1], "What was said." in told[2]] == [True] * 3
    assert ["Second" in told[3], "Two." in told[4], len(told)] == [True, True, 5]


async def test_a_resumed_session_goes_on_with_its_file(stage: Stage, tmp_path: Path):
    seen = stage.on("Stop")
    resumed = stage.on("SessionStart", matcher="resume")
    store = str(tmp_path / "crow.db")
    async with stage.agent("One.", hooks=[PersistenceHook(db_path=store)]) as agent:
        reply = await agent.run("First", cwd=stage.cwd)
    async with stage.agent("Two.", hooks=[PersistenceHook(db_path=store)]) as agent:
        session = await agent.load_session(reply.session.id, source="resume")
        await agent.run("Second", session=session)
    first, second = given(seen)
    assert first["transcript_path"] == second["transcript_path"]
    written = lines(second["transcript_path"])
    assert [line["message"]["content"] for line in written][::2] == ["First", "Second"]
    assert len({line["uuid"] for line in written}) == len(written) == 4
    assert given(resumed)[0]["context_tokens"] > 0


async def test_a_transcript_that_cannot_be_written_stops_nobody(stage: Stage):
    stage.state.write_text("a file where a folder should be")
    seen = stage.on("PreToolUse")
    await stage.run(call("Bash", command="true"), "Ok.")
    assert len(given(seen)) == 1
