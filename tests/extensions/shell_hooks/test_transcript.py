"""The transcript file: compact JSON Lines in the shape that public hooks read."""

from __future__ import annotations

import json
import re
import sys
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


LOOP = """#!/bin/sh
# Keeps a run going until the answer has the promise that the prompt asks for.
input=$(cat)
transcript=$(printf '%s' "$input" | sed 's/.*"transcript_path":"\\([^"]*\\)".*/\\1/')
[ -f "$transcript" ] || { echo "no transcript" >&2; exit 0; }
grep -q '"role":"assistant"' "$transcript" || exit 0
last=$(grep '"role":"assistant"' "$transcript" | tail -1)
text=$(printf '%s' "$last" | @python -c '
import json, sys
blocks = json.load(sys.stdin)["message"]["content"]
print("\\n".join(block["text"] for block in blocks if block["type"] == "text"))')
case "$text" in *"<promise>DONE</promise>"*) exit 0 ;; esac
printf '{"decision": "block", "reason": "Not done yet: %s"}' "$text"
"""
COUNTER = """#!@python
# Counts the tokens of a session: a message may have several lines, and counts once.
import json, sys
given = json.load(sys.stdin)
seen = {}
for line in open(given["transcript_path"]):
    entry = json.loads(line)
    message = entry.get("message", {})
    if entry.get("type") == "assistant" and message.get("usage"):
        seen[message["id"]] = message["usage"]
total = {}
for usage in seen.values():
    for name, number in usage.items():
        total[name] = total.get(name, 0) + number
print(json.dumps({"systemMessage": json.dumps([len(seen), total], sort_keys=True)}))
"""
LOGGER = """#!@python
# Logs what was asked and answered in a run, from the transcript alone.
import json, pathlib, sys
given = json.load(sys.stdin)
asked, answered, used = "", "", []
for line in pathlib.Path(given["transcript_path"]).read_text().splitlines():
    entry = json.loads(line)
    content = entry["message"]["content"]
    if entry["type"] == "user" and not entry.get("isMeta") and isinstance(content, str):
        asked, answered, used = content, "", []
    elif entry["type"] == "assistant":
        answered = " ".join(b["text"] for b in content if b["type"] == "text")
        used += [b["name"] for b in content if b["type"] == "tool_use"]
log = pathlib.Path(given["cwd"]) / "prompts.log"
with log.open("a") as file:
    file.write(f"{entry['timestamp'][:4]} {asked} | {','.join(used)} | {answered}\\n")
"""


def script(stage: Stage, event: str, source: str) -> None:
    """Hang a script as it was published."""
    path = stage.scripts / f"published-{stage.count}"
    stage.count += 1
    path.write_text(source.replace("@python", sys.executable))
    path.chmod(0o755)
    stage.handle(event, {"type": "command", "command": str(path)})


async def test_a_published_loop_goes_on_until_the_transcript_has_the_promise(stage: Stage):
    script(stage, "Stop", LOOP)
    lines = ("I have begun.", [call("Bash", command="true")], "All <promise>DONE</promise>.")
    await stage.run(*lines)
    assert "Not done yet: I have begun." in stage.told(1)


async def test_a_published_counter_counts_each_message_once(stage: Stage):
    script(stage, "Stop", COUNTER)
    usage: Any = {"input_tokens": 100, "cached_tokens": 60, "output_tokens": 7, "total_tokens": 107}
    await stage.run(
        ["Let me see.", call("Bash", command="true", usage=usage)],
        text("Done.", usage=usage),
    )
    shown = stage.person.notices.partition("Stop hook: ")[2]
    assert json.loads(shown) == [
        2,
        {
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 120,
            "input_tokens": 80,
            "output_tokens": 14,
        },
    ]


async def test_a_published_logger_finds_prompts_calls_and_answers(stage: Stage):
    script(stage, "Stop", LOGGER)
    stage.on("UserPromptSubmit", says="a hint")
    async with stage.agent("Hello.", call("Bash", command="true"), "Two.") as agent:
        reply = await agent.run("First", cwd=stage.cwd)
        await agent.run("Second", session=reply.session)
    logged = (stage.cwd / "prompts.log").read_text().splitlines()
    assert [line[4:] for line in logged] == [" First |  | Hello.", " Second | Bash | Two."]
