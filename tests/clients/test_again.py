"""What others' clients are shown of a conversation again, and what they hear of a session's end."""

from __future__ import annotations

import os
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.clients.conftest import Client, Refused, client_of

from crow.testing.chat import StrictChat, use
from crow.testing.endpoint import HANG, begin, delta, event, piece

pytestmark = [pytest.mark.clients, pytest.mark.timeout(240)]

Connect = Callable[[], Awaitable[Client]]
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
BLOCKS: list[dict[str, Any]] = [
    {"type": "text", "text": "Compare "},
    {"type": "resource_link", "uri": "file:///nowhere/a.txt", "name": "a.txt"},
    {"type": "text", "text": " with "},
    {
        "type": "resource",
        "resource": {"uri": "file:///nowhere/b.txt", "mimeType": "text/plain", "text": "b\n" * 90},
    },
    {"type": "image", "mimeType": "image/png", "data": PIXEL},
    {"type": "text", "text": " and say which."},
]
CALLS = ("tool_call", "tool_call_update")


def calls(client: Client) -> list[dict[str, Any]]:
    """The updates of calls, in order."""
    told = [each["update"] for each in client.events if each["event"] == "update"]
    return [each for each in told if each["sessionUpdate"] in CALLS]


def parent_of(update: dict[str, Any]) -> str | None:
    """The call whose sub-agent has made this one."""
    return ((update.get("_meta") or {}).get("claudeCode") or {}).get("parentToolUseId")


async def loaded(connect: Connect, session: str, cwd: Path, last: str) -> Client:
    """Another client, which has loaded a session and was shown the last of it.

    Some libraries give an answer to their program before they give it what came ahead of it.
    """
    client = await connect()
    await client.do("initialize")
    client.session = session
    await client.do("load", cwd=str(cwd))
    await client.until(lambda each: last in str(each.get("update")))
    return client


def agent_in(cwd: Path) -> int:
    """The process of ``crow acp`` that works in a directory."""
    for place in Path("/proc").glob("[0-9]*"):
        try:
            words = (place / "cmdline").read_bytes().split(b"\0")
            is_there = (place / "cwd").readlink() == cwd
        except OSError:
            continue
        if is_there and any(word.endswith(b"bin/crow") for word in words[:2]):
            return int(place.name)
    raise LookupError(cwd)


async def test_attachments_are_shown_again_as_they_were_sent(
    connect: Connect, endpoint: StrictChat, tmp_path: Path, attaches: None
) -> None:
    endpoint.say("That one.")
    first = await connect()
    await first.open(tmp_path)
    assert await first.prompt(*BLOCKS) == "end_turn"
    await first.aclose()
    again = await loaded(connect, first.session, tmp_path, "and say which.")
    shown = [each["content"] for each in again.updates("user_message_chunk")]
    assert shown == BLOCKS


async def test_each_call_is_shown_again_once_and_a_sub_agents_with_its_parent(
    connect: Connect, endpoint: StrictChat, tmp_path: Path
) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    task = {"description": "Look", "prompt": "Look around", "subagent_type": "general-purpose"}
    endpoint.say("", use("Agent", "c1", **task))
    endpoint.say("", use("Read", "c2", file_path=str(tmp_path / "a.txt")))
    endpoint.say("", use("Bash", "c3", command="printf 1 > b.txt"))
    endpoint.say("Seen.")
    endpoint.say("Done.")
    first = await connect()
    await first.open(tmp_path)
    assert await first.prompt("Send somebody") == "end_turn"
    await first.until(lambda each: "Done." in str(each.get("update")))
    live = {each["toolCallId"]: parent_of(each) for each in calls(first)}
    parent = next(call for call, above in live.items() if above is None)
    assert set(live.values()) == {None, parent}
    await first.aclose()
    again = await loaded(connect, first.session, tmp_path, "Done.")
    shown = [(each["toolCallId"], each["status"], parent_of(each)) for each in calls(again)]
    assert shown == [(call, "completed", above) for call, above in live.items()]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
async def test_a_signal_during_a_prompt_is_answered_and_nothing_is_lost(
    connect: Connect, endpoint: StrictChat, tmp_path: Path, number: signal.Signals
) -> None:
    endpoint.say("", use("Bash", "c1", command="echo before"))
    endpoint.play([begin(), piece(event(delta(content="Half of"))), HANG])
    first = await connect()
    await first.open(tmp_path)
    prompt = first.ask("Think")
    await first.until(lambda each: "Half of" in str(each.get("update")))
    os.kill(agent_in(tmp_path), number)
    try:
        ended = (await first.done(prompt))["stopReason"]
    except Refused as error:  # acp.el may tell of the agent's end before it takes its last words
        ended = str(error)
    assert ended == "cancelled" or "Agent process ended" in ended
    await first.aclose()
    again = await loaded(connect, first.session, tmp_path, "Half of")
    assert again.updates("user_message_chunk")[0]["content"]["text"] == "Think"
    assert [each["status"] for each in calls(again)] == ["completed"]
    assert again.text == "Half of"


async def test_a_session_that_another_process_has_open_is_said_to_be_in_use(
    connect: Connect, endpoint: StrictChat, tmp_path: Path
) -> None:
    endpoint.say("Hello.")
    endpoint.say("Still here.")
    first, second = await connect(), await connect()
    await first.open(tmp_path)
    await first.prompt("Hi")
    await second.do("initialize")
    with pytest.raises(Refused, match=r"in use|Couldn.t resume"):
        await second.do("load", cwd=str(tmp_path), session=first.session)
    assert await first.prompt("Are you there?") == "end_turn"
    await first.aclose()
    await second.do("load", cwd=str(tmp_path), session=first.session)
    await second.until(lambda each: "Still here." in str(each.get("update")))


@pytest.fixture
def attaches(request: pytest.FixtureRequest) -> None:
    """Skip clients that know no attachments, one way or the other."""
    match client_of(request):
        case "neovim codecompanion" | "emacs agent-shell" | "jupyter":
            pytest.skip("this client names files in its text")
        case "toad":
            pytest.skip("this client shows the texts of a conversation alone")
