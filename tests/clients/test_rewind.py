"""``/rewind`` in clients that others wrote: what a person is asked there, and what comes of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.clients.conftest import Client, client_of

from crow.testing.chat import StrictChat, use

pytestmark = [pytest.mark.clients, pytest.mark.timeout(240)]

Connect = Callable[[], Awaitable[Client]]
BEFORE = {"__old__.txt": b"\xffold", "gone.txt": b"\xffold"}
AFTER = {"__old__.txt": b"new\n", "made.txt": b"made\n"}
PLAN = "- restore `__old__.txt`\n- restore `gone.txt`\n- delete `made.txt`"
PROMPTS = ["2. Change *it*", "1. Hi", "Nothing"]
WAYS = ["Files and conversation", "Files alone", "Conversation alone", "Nothing"]


async def worked(connect: Connect, endpoint: StrictChat, folder: Path, **how: Any) -> Client:
    """Two prompts, the second of which changes a file, makes one, and deletes one."""
    client = await connect()
    for name, content in BEFORE.items():
        (folder / name).write_bytes(content)
    await client.open(folder, **how)
    command = "echo new > __old__.txt; echo made > made.txt; rm gone.txt"
    endpoint.say("Hello.")
    endpoint.say("", use("Bash", "c1", command=command))
    endpoint.say("Done.")
    await client.prompt("Hi")
    await client.prompt("Change *it*")
    assert files(folder) == AFTER
    return client


async def rewound(client: Client, prompt: str, *names: str) -> list[dict[str, Any]]:
    """What a person was asked who goes back, and answers with these names."""
    before = len(client.events)
    await client.do("answer", names=names)
    await client.prompt(prompt)
    return [each for each in client.events[before:] if each["event"] in ("asked", "form")]


def files(folder: Path) -> dict[str, bytes]:
    """What is there."""
    return {each.name: each.read_bytes() for each in folder.glob("*.txt")}


def said(endpoint: StrictChat) -> list[Any]:
    """The conversation that the model was last sent."""
    messages = endpoint.requests[-1].body["messages"]
    return [each["content"] for each in messages if each["role"] != "system"]


async def test_files_and_conversation_come_back_and_who_allows_nothing_gets_nothing(
    connect: Connect, endpoint: StrictChat, tmp_path: Path
) -> None:
    client = await worked(connect, endpoint, tmp_path)
    await client.do("answer", kind="reject_once")
    await client.prompt("/rewind 2")
    assert files(tmp_path) == AFTER
    await client.do("answer", kind="allow_once")
    await client.prompt("/rewind 2")
    assert files(tmp_path) == BEFORE
    endpoint.say("I am.")
    await client.prompt("Are you there?")
    assert said(endpoint) == ["Hi", "Hello.", "Are you there?"]
    await client.prompt("/rewind back")
    assert files(tmp_path) == AFTER
    await client.aclose()
    again = await connect()
    await again.do("initialize")
    again.session = client.session
    await again.do("load", cwd=str(tmp_path))
    endpoint.say("Yes.")
    await again.prompt("Still?")
    assert said(endpoint) == ["Hi", "Hello.", "Are you there?", "I am.", "Still?"]


async def test_a_person_sees_what_would_change_and_chooses(
    connect: Connect, endpoint: StrictChat, tmp_path: Path, chooses: None
) -> None:
    client = await worked(connect, endpoint, tmp_path)
    first, second = await rewound(client, "/rewind", PROMPTS[0], "Files alone")
    assert (first["names"], second["names"]) == (PROMPTS, WAYS)
    assert second["kinds"] == [*["allow_once"] * 3, "reject_once"]
    assert second["shown"]["content"][0]["content"]["text"] == PLAN
    assert files(tmp_path) == BEFORE
    (asked,) = await rewound(client, "/rewind back", "Files alone")
    assert asked["names"] == ["Files alone", "Nothing"]
    (tmp_path / "made.txt").write_text("by hand", "utf-8")
    _, asked = await rewound(client, "/rewind", PROMPTS[0], "Files alone")
    assert "- leave `made.txt` (somebody else changed it since)" in str(asked["shown"])
    assert files(tmp_path) == {**BEFORE, "made.txt": b"by hand"}
    endpoint.say("Yes.")
    await client.prompt("Still there?")
    assert said(endpoint)[-2:] == ["Done.", "Still there?"]


async def test_a_form_asks_the_same(
    connect: Connect, endpoint: StrictChat, tmp_path: Path, fills_in: None
) -> None:
    client = await worked(connect, endpoint, tmp_path, forms=True)
    (asked,) = await rewound(client, "/rewind")
    assert (asked["event"], asked["names"]) == ("form", PROMPTS)
    await client.says("/rewind NUMBER goes back to before that prompt.")
    first, second = await rewound(client, "/rewind", PROMPTS[0], "Conversation alone")
    assert (first["names"], second["names"]) == (PROMPTS, WAYS)
    assert second["text"] == f"Bring back what?\n\n{PLAN}"
    assert files(tmp_path) == AFTER
    endpoint.say("Yes.")
    await client.prompt("Still there?")
    assert said(endpoint) == ["Hi", "Hello.", "Still there?"]


@pytest.fixture
def chooses(request: pytest.FixtureRequest) -> None:
    """Skip clients whose driver knows options by their kinds alone."""
    if not client_of(request).startswith(("python", "typescript")):
        pytest.skip("this driver knows options by their kinds alone")


@pytest.fixture
def fills_in(request: pytest.FixtureRequest) -> None:
    """Skip clients that know no forms."""
    if client_of(request) not in ("python 0.12.1", "python 1.0.0rc3", "typescript", "acpx"):
        pytest.skip("this client knows no forms")
