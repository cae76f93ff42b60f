"""A whole life of a session as a client saw it, and as the next one does that loads it."""

from __future__ import annotations

import asyncio
import base64
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.acp.test_attachments import BLOCKS
from tests.acp.test_transcripts import PNG
from tests.acp.v2.conftest import Draft

from crow import Agent, Answer, Deny
from crow.app import build
from crow.errors import ModelError
from crow.testing import FakeEditor, ScriptedModel, call, delay, text

BEGUN = ("```\\nbegun", "begun\\n", base64.b64encode(b"begun\n").decode())
ASIDE = re.compile(r"\.((?:aside|said)\.\d+)(\.prompt)?$")
"""What marks the ids of what enters no history; the log counts that in another way."""
ORDERED = ("agent_message", "agent_thought", "plan", "plan_update")
"""What comes in the same order; calls that run at once are told as they were settled."""
START: Any = {"type": "start"}
V1 = {
    ("config_option_update", "not again"),  # the answer has the choices, and the mode
    ("current_mode_update", "not again"),
    ("user_message", "again only"),  # a client shows its prompts itself
}
V1_PLAIN = {("agent_message", "not again")}  # a notice of the moment, which is text here
V1_RICH = {
    ("notice", "not again"),  # of the moment: only why a run has ended is kept
}
V2 = {
    ("config_option_update", "not again"),
    ("notice", "not again"),
    ("notice", "again only"),  # why a run failed, which a state said
    *(("state_update", name) for name in ("stopReason", "error", "usage")),  # how it is now
    ("sub-agent's state_update", "not again"),  # its caller is told how it ended
}
Seen = dict[tuple[str, str], dict[str, Any]]
RICH: dict[str, Any] = {
    "notices": True,
    "meta": {"terminal_output": True},
    "drafts": {"plan": {}, "subagents": {}, "session": {"notices": {}, "compaction": {}}},
}


def before_tool(ctx: Any) -> Any:
    if ctx.call.args.get("pattern") == "secret":
        return Deny("not that")
    return Answer("It is noon.") if ctx.call.args.get("pattern") == "time" else None


def agent(cwd: Path, *script: Any) -> Agent:
    made = build(cwd=cwd, hooks=[before_tool], allow=["Bash", "Edit", "Write"])
    made.llm = ScriptedModel(*script, context_window=100_000)
    return made


async def lived(first: Any, cwd: Path) -> str:
    """A session in which everything happens that can; its id."""
    (cwd / "a.txt").write_text("one\ntwo\n")
    (cwd / "a.png").write_bytes(PNG)
    edit = call("Edit", file_path=str(cwd / "a.txt"), old_string="two", new_string="three")
    todos = [{"content": "Write", "status": "completed"}, {"content": "Test", "status": "pending"}]
    usage: Any = {"input_tokens": 90, "output_tokens": 10, "total_tokens": 100}
    script = [
        text("That one.", reasoning="A picture."),
        [call("Read", file_path=str(cwd / "a.txt")), call("Glob", pattern="*.txt")],
        [edit, call("Write", file_path=str(cwd / "b.txt"), content="new\n")],
        [call("Bash", command="echo out; exit 3"), call("Bash", command="echo hi")],
        [call("Read", file_path="gone.txt"), call("Nope"), call("Read", file_path="a.png")],
        [call("Glob", pattern="secret"), call("Glob", pattern="time")],
        call("TodoWrite", todos=todos),
        call("Agent", description="Count files", prompt="How many are there?"),
        *(call("Glob", pattern="*"), "Two.", "There are two."),
        ModelError("the quota is used up", kind="rate_limit"),
        call("Bash", command="echo begun; sleep 60"),
        ["half a ", delay(3600), "sentence"],
        text("Bye.", reasoning="So be it.", usage=usage),
    ]
    async with first.connected(agent(cwd, *script)):
        session = await first.new_session(cwd)
        for said in (BLOCKS, ["Do it"], ["/mode plan"], ["/mode default"], ["Once more"]):
            await turn(first, session, *said)
        await cancelled(first, session, lambda: is_begun(first))
        await cancelled(first, session, lambda: "half a " in text_of(first))
        await first.wire.request("session/set_title", {"sessionId": session, "title": "A life"})
        await turn(first, session, "Bye")
    return session


def is_begun(editor: Any) -> bool:
    return any(sign in text_of(editor) for sign in BEGUN)


def text_of(editor: Any) -> str:
    return json.dumps(editor.updates())


async def cancelled(editor: Any, session: str, is_on: Any) -> None:
    running = asyncio.create_task(turn(editor, session, "Go on"))
    await editor.wire.until(is_on)
    cancel = {"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session}}
    await editor.wire.send(cancel)
    await running


async def turn(editor: Any, session: str, *said: Any) -> None:
    """Send a prompt, and wait for its end."""
    await getattr(editor, "turn", editor.prompt)(session, *said)


def seen(editor: Any, session: str) -> Seen:
    """What stands on the screen in the end: each message, card and fact with all of its fields."""
    found: Seen = {}
    marks: dict[str, str] = {}
    for message in editor.wire.received:
        if message.get("method") == "session/update":
            params = message["params"]
            where = "" if params["sessionId"] == session else "sub-agent's "
            update = dict(params["update"])
            if "messageId" in update:
                update["messageId"] = numbered(update["messageId"], marks)
            lay(found, where, update)
    return found


def numbered(message_id: str, marks: dict[str, str]) -> str:
    """An id with the mark of what enters no history counted from one."""
    if (mark := ASIDE.search(message_id)) is None:
        return message_id
    return ASIDE.sub(f".{marks.setdefault(mark[1], str(len(marks) + 1))}", message_id)


def lay(found: Seen, where: str, update: dict[str, Any]) -> None:
    """Lay an update over what is there of the same thing."""
    kind = update.pop("sessionUpdate")
    thing = where + kind.removesuffix("_chunk")
    if "messageId" in update:
        known = found.setdefault((thing, update["messageId"]), {"content": []})
        if kind.endswith("_chunk"):
            add(known["content"], update.pop("content"))
        known.update(update)
    elif "toolCallId" in update:
        card = found.setdefault((f"{where}card", update["toolCallId"]), {})
        if kind == "tool_call_content_chunk":
            update["content"] = [*card.get("content", []), update["content"]]
        card.update({**update, "_meta": joined(card.get("_meta", {}), update.get("_meta", {}))})
    elif kind == "terminal_output_chunk":
        known = found[f"{where}terminal_update", update["terminalId"]]
        before = base64.b64decode(known.get("output", {}).get("data", ""))
        data = base64.b64encode(before + base64.b64decode(update["data"]))
        known["output"] = {"data": data.decode()}
    else:
        name = update.get("terminalId") or update.get("sessionId", "")
        name = update["title"] if kind == "notice" else name
        found.setdefault((thing, name), {}).update(update)


def joined(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """All that was said beside a card; output goes behind what there is of it."""
    if "terminal_output" in before and "terminal_output" in after:
        said = [meta["terminal_output"]["data"] for meta in (before, after)]
        whole = {**after["terminal_output"], "data": "".join(said)}
        after = {**after, "terminal_output": whole}
    return {**before, **after}


def add(content: list[Any], block: Any) -> None:
    """A block behind others; text grows together."""
    if content and block["type"] == content[-1]["type"] == "text":
        content[-1] = {"type": "text", "text": content[-1]["text"] + block["text"]}
    else:
        content.append(block)


def differences(before: Seen, after: Seen) -> set[tuple[str, str]]:
    """The kinds of things that are not the same, and the field; none where one is missing."""
    found: set[tuple[str, str]] = set()
    for key in {**before, **after}:
        if key not in before or key not in after:
            found.add((key[0], "not again" if key in before else "again only"))
            continue
        one, other = before[key], after[key]
        found |= {(key[0], name) for name in {**one, **other} if one.get(name) != other.get(name)}
    return found


@pytest.mark.slow
@pytest.mark.rule("the whole history after a reload")
@pytest.mark.parametrize("able", [{}, RICH], ids=["plain", "rich"])
async def test_a_session_is_told_again_field_by_field(
    tmp_path: Path, able: Mapping[str, Any]
) -> None:
    first, later = FakeEditor(**able), FakeEditor(**able)
    session = await lived(first, tmp_path)
    async with later.connected(agent(tmp_path)):
        await later.connection.load_session(str(tmp_path), session)
        await later.saw("available_commands_update")
    before, again = seen(first, session), seen(later, session)
    assert differences(before, again) == {*V1, *(V1_RICH if able else V1_PLAIN)}
    prompts = [told["content"] for (kind, _), told in again.items() if kind == "user_message"]
    assert prompts[0] == BLOCKS
    assert [block["text"] for (block,) in prompts[1:]] == [
        *("Do it", "/mode plan", "/mode default", "Once more", "Go on", "Go on", "Bye")
    ]
    both = [[key for key in one if key in before and key in again] for one in (before, again)]
    in_order = [[key for key in one if key[0] in ORDERED] for one in both]
    assert in_order[0] == in_order[1]


@pytest.mark.slow
async def test_a_session_is_told_again_field_by_field_in_version_2(tmp_path: Path) -> None:
    first, later = Draft(), Draft()
    session = await lived(first, tmp_path)
    async with later.connected(agent(tmp_path)):
        await later.connection.resume_session(session, str(tmp_path), replay_from=START)
        await later.saw("available_commands_update")
    assert differences(seen(first, session), seen(later, session)) == V2
