"""What people do in a client, done in clients that others wrote (``make clients``)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.clients.conftest import Client, Refused, client_of

from crow.testing.chat import StrictChat, use
from crow.testing.endpoint import HANG, begin

pytestmark = [pytest.mark.clients, pytest.mark.timeout(240)]

Connect = Callable[[], Awaitable[Client]]
LOADING = ("python 0.7.1", "toad", "jupyter", "neovim avante", "neovim codecompanion")
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def results(endpoint: StrictChat) -> list[Any]:
    """What the model was told of its calls in the last request."""
    messages = endpoint.requests[-1].body["messages"]
    return [each["content"] for each in messages if each["role"] == "tool"]


async def test_a_new_file_is_written_when_it_is_allowed(
    connect: Connect, endpoint: StrictChat, tmp_path: Path
) -> None:
    endpoint.say("", use("Write", "c1", file_path=str(tmp_path / "new.txt"), content="hello\n"))
    endpoint.say("Written.")
    client = await connect()
    await client.open(tmp_path)
    assert await client.prompt("Write it") == "end_turn"
    assert (tmp_path / "new.txt").read_text() == "hello\n"
    assert client.asked == 1
    await client.says("Written.")
    assert [each["status"] for each in client.updates("tool_call_update") if "status" in each][
        -1
    ] == ("completed")


async def test_a_file_is_edited(connect: Connect, endpoint: StrictChat, tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text("one two three\n")
    endpoint.say("", use("Read", "c1", file_path=str(file)))
    endpoint.say("", use("Edit", "c2", file_path=str(file), old_string="two", new_string="2"))
    endpoint.say("Edited.")
    client = await connect()
    await client.open(tmp_path)
    assert await client.prompt("Edit it") == "end_turn"
    assert file.read_text() == "one 2 three\n"
    told = [
        part for each in client.updates("tool_call_update") for part in each.get("content") or ()
    ]
    assert any(part["type"] == "diff" and part["newText"] for part in told)


async def test_what_is_rejected_is_not_done_and_the_next_prompt_works(
    connect: Connect, endpoint: StrictChat, tmp_path: Path
) -> None:
    endpoint.say("", use("Write", "c1", file_path=str(tmp_path / "new.txt"), content="hello\n"))
    endpoint.say("Then not.")
    endpoint.say("Here.")
    client = await connect()
    await client.open(tmp_path)
    await client.do("answer", kind="reject_once")
    await client.prompt("Write it")
    assert not (tmp_path / "new.txt").exists()
    assert await client.prompt("Are you there?") == "end_turn"
    await client.says("Here.")


async def test_a_turn_is_cancelled_and_the_next_one_works(
    connect: Connect, endpoint: StrictChat, tmp_path: Path
) -> None:
    endpoint.play([begin(), HANG])
    client = await connect()
    await client.open(tmp_path)
    prompt = client.ask("Think")
    await endpoint.asked.wait()
    await client.do("cancel")
    assert (await client.done(prompt))["stopReason"] == "cancelled"
    endpoint.say("Here.")
    assert await client.prompt("Are you there?") == "end_turn"


async def test_a_session_is_loaded_by_another_process(
    connect: Connect, endpoint: StrictChat, tmp_path: Path
) -> None:
    endpoint.say("The answer is 42.")
    endpoint.say("I said 42.")
    first = await connect()
    await first.open(tmp_path)
    await first.prompt("What is the answer?")
    await first.aclose()
    second = await connect()
    await second.do("initialize")
    second.session = first.session
    await second.do("load", cwd=str(tmp_path))
    await second.until(lambda each: "42" in str(each.get("update")))
    assert second.text == "The answer is 42."
    asked = "".join(each["content"]["text"] for each in second.updates("user_message_chunk"))
    assert asked == "What is the answer?"
    assert await second.prompt("What did you say?") == "end_turn"
    assert "The answer is 42." in str(endpoint.requests[-1].body["messages"])


async def test_a_session_is_resumed_by_another_process_without_being_told_again(
    connect: Connect, endpoint: StrictChat, tmp_path: Path, resumes: None
) -> None:
    endpoint.say("The answer is 42.")
    endpoint.say("I said 42.")
    first = await connect()
    await first.open(tmp_path)
    await first.prompt("What is the answer?")
    await first.aclose()
    second = await connect()
    await second.do("initialize")
    second.session = first.session
    await second.do("resume", cwd=str(tmp_path))
    assert await second.prompt("What did you say?") == "end_turn"
    assert second.text == "I said 42."
    assert "The answer is 42." in str(endpoint.requests[-1].body["messages"])


async def test_a_mode_decides_what_is_asked(
    connect: Connect, endpoint: StrictChat, tmp_path: Path
) -> None:
    endpoint.say("", use("Write", "c1", file_path=str(tmp_path / "new.txt"), content="hello\n"))
    endpoint.say("Written.")
    client = await connect()
    await client.open(tmp_path)
    await client.do("mode", mode="acceptEdits")
    await client.prompt("Write it")
    assert client.asked == 0
    assert (tmp_path / "new.txt").exists()
    with pytest.raises(Refused):
        await client.do("mode", mode="nap")


async def test_slash_commands_are_listed_and_run_without_a_model(
    connect: Connect, endpoint: StrictChat, tmp_path: Path
) -> None:
    client = await connect()
    await client.open(tmp_path)
    assert await client.prompt("/help") == "end_turn"
    listed = [
        each
        for told in client.updates("available_commands_update")
        for each in told["availableCommands"]
    ]
    assert {"help", "compact"} <= {each["name"] for each in listed}
    await client.says("/compact")
    assert not endpoint.requests


async def test_a_plan_is_shown(connect: Connect, endpoint: StrictChat, tmp_path: Path) -> None:
    todos = [
        {"content": "Look", "status": "completed", "activeForm": "Looking"},
        {"content": "Do", "status": "in_progress", "activeForm": "Doing"},
    ]
    endpoint.say("", use("TodoWrite", "c1", todos=todos))
    endpoint.say("Planned.")
    client = await connect()
    await client.open(tmp_path)
    await client.prompt("Plan")
    entries = client.updates("plan")[-1]["entries"]
    assert [(each["content"], each["status"]) for each in entries] == [
        ("Look", "completed"),
        ("Do", "in_progress"),
    ]


async def test_a_sub_agent_works_and_answers(
    connect: Connect, endpoint: StrictChat, tmp_path: Path
) -> None:
    asked = {"description": "Look", "prompt": "Look around", "subagent_type": "general-purpose"}
    endpoint.say("", use("Agent", "c1", **asked))
    endpoint.say("Nothing there.")
    endpoint.say("It found nothing.")
    client = await connect()
    await client.open(tmp_path)
    assert await client.prompt("Send somebody") == "end_turn"
    assert "Nothing there." in results(endpoint)[0]
    await client.says("It found nothing.")


async def test_a_command_runs_and_its_output_is_shown(
    connect: Connect, endpoint: StrictChat, tmp_path: Path
) -> None:
    endpoint.say("", use("Bash", "c1", command="printf 'o%.0s' 1 2 3 > out.txt; cat out.txt"))
    endpoint.say("Ran.")
    client = await connect()
    await client.open(tmp_path)
    assert await client.prompt("Run it") == "end_turn"
    assert client.asked == 1
    assert "ooo" in results(endpoint)[0]
    assert "ooo" in str(client.updates("tool_call_update"))


async def test_an_image_reaches_the_model(
    connect: Connect, endpoint: StrictChat, tmp_path: Path, sends_images: None
) -> None:
    endpoint.say("A pixel.")
    client = await connect()
    await client.open(tmp_path)
    image = {"type": "image", "data": PIXEL, "mimeType": "image/png"}
    assert await client.prompt("What is this?", image) == "end_turn"
    assert PIXEL in str(endpoint.requests[-1].body["messages"])


async def test_a_big_file_is_edited_and_its_session_loaded_again(
    connect: Connect, endpoint: StrictChat, tmp_path: Path
) -> None:
    file = tmp_path / "big.txt"
    file.write_text("".join(f"line {number} of a long file\n" for number in range(100_000)))
    endpoint.say("", use("Read", "c1", file_path=str(file), limit=10))
    endpoint.say(
        "", use("Edit", "c2", file_path=str(file), old_string="line 5 of", new_string="5:")
    )
    endpoint.say("Edited.")
    client = await connect()
    await client.open(tmp_path)
    assert await client.prompt("Edit it") == "end_turn"
    assert "5: a long file" in file.read_text()
    await client.aclose()
    again = await connect()
    await again.do("initialize")
    again.session = client.session
    await again.do("load", cwd=str(tmp_path))
    await again.until(lambda each: "Edited." in str(each.get("update")))
    assert again.text == "Edited."


async def test_of_two_prompts_at_once_both_are_answered(
    connect: Connect, endpoint: StrictChat, tmp_path: Path
) -> None:
    endpoint.say("First.")
    endpoint.say("Second.")
    client = await connect()
    await client.open(tmp_path)
    prompts = [client.ask("One"), client.ask("Two")]
    ended: list[str] = []
    for prompt in prompts:
        try:
            ended.append((await client.done(prompt))["stopReason"])
        except Refused as error:
            ended.append(str(error))
    assert ended[0] == "end_turn"
    assert ended[1] == "end_turn" or "prompt" in ended[1]


async def test_what_is_said_to_a_running_turn_reaches_the_model(
    connect: Connect, endpoint: StrictChat, tmp_path: Path, steers: None
) -> None:
    endpoint.say("", use("Bash", "c1", command="until test -e go; do sleep 0.05; done"))
    endpoint.say("In a hurry, then.")
    client = await connect()
    await client.open(tmp_path)
    prompt = client.ask("Think")
    await client.until(lambda each: "in_progress" in str(each.get("update")))
    said = await client.do("steer", text="Be quick")
    (tmp_path / "go").touch()
    assert said["outcome"] == "injected"
    assert (await client.done(prompt))["stopReason"] == "end_turn"
    assert endpoint.requests[-1].body["messages"][-1] == {"role": "user", "content": "Be quick"}
    shown = (await client.do("shown"))["text"]
    assert "Be quick" in shown
    assert "In a hurry, then." in shown


@pytest.fixture
def steers(request: pytest.FixtureRequest) -> None:
    """Skip clients that cannot say anything while a turn runs."""
    if client_of(request) != "emacs agent-shell":
        pytest.skip("this client says nothing to a running turn")


@pytest.fixture
def resumes(request: pytest.FixtureRequest) -> None:
    """Skip clients that have no word for it."""
    if client_of(request) in LOADING:
        pytest.skip("this client loads sessions, and resumes none")


@pytest.fixture
def sends_images(request: pytest.FixtureRequest) -> None:
    """Skip clients that send none."""
    if client_of(request) == "jupyter":
        pytest.skip("this client names files, and sends none")
