"""``crow sessions``: what was stored is listed, shown, found, renamed and deleted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.conftest import Crow, Here

from crow.core.agent import Agent
from crow.extensions import PersistenceHook, RewindHook
from crow.testing.endpoint import Endpoint, answer
from crow.testing.model import ScriptedModel, call, text
from crow.tools import builtin


@pytest.fixture
async def stored(crow: Crow) -> list[str]:
    """Three sessions, the last used first."""
    ids: list[str] = []
    read = call("Read", file_path="README.md")
    for number, prompt in enumerate(("first thing", "second thing", "third thing")):
        model = ScriptedModel([text("I look."), read], f"Answer {number}.")
        async with Agent(model, tools=builtin(), hooks=[PersistenceHook()]) as agent:
            reply = await agent.run(prompt, cwd=crow.cwd)
        ids.insert(0, reply.session.id)
    return ids


@pytest.mark.slow
async def test_a_session_that_no_model_was_asked_in_is_counted_and_not_listed(
    crow: Crow, endpoint: Endpoint
) -> None:
    endpoint.play(answer("Hello."))
    await crow("run", "/mode")
    await crow("run", "Say hello")
    lines = (await crow("sessions")).out.splitlines()
    assert ["Say hello" in line for line in lines] == [True, False]
    assert lines[1] == "1 more without a message: crow sessions --json"
    assert len((await crow("sessions", "--json")).events) == 2


async def test_sessions_are_listed_the_last_used_first(
    crow: Crow, here: Here, stored: list[str]
) -> None:
    ended = await here("sessions")
    lines = ended.out.splitlines()
    assert [line.split()[0] for line in lines] == [each[:8] for each in stored]
    assert lines[0].endswith("4 messages  third thing")
    as_json = [json.loads(line) for line in (await here("sessions", "--json")).out.splitlines()]
    assert [each["id"] for each in as_json] == stored
    assert as_json[0]["cwd"] == str(crow.cwd)


async def test_a_long_list_comes_in_pages(here: Here, stored: list[str]) -> None:
    *lines, more = (await here("sessions", "--limit", "2")).out.splitlines()
    assert [line.split()[0] for line in lines] == [each[:8] for each in stored[:2]]
    cursor = more.split("--cursor ")[1]
    rest = await here("sessions", "--limit", "2", "--cursor", cursor)
    assert rest.out.split()[0] == stored[2][:8]
    assert "--cursor" not in rest.out


async def test_only_the_sessions_of_this_directory_are_listed_unless_all_are_wanted(
    here: Here, stored: list[str], tmp_path: Path
) -> None:
    other = await here("sessions", "--cwd", str(tmp_path))
    assert other.out.startswith(f"there are no sessions in {tmp_path}")
    every = await here("sessions", "--all", "--cwd", str(tmp_path))
    assert len(every.out.splitlines()) == 3


async def test_a_session_is_shown_as_it_was_seen(crow: Crow, here: Here, stored: list[str]) -> None:
    shown = await here("sessions", "show", stored[0][:6])
    assert shown.out == (
        f"session {stored[0]}\n{crow.cwd}  4 messages\n\n> third thing\n\nI look.\n\n"
        "● Read README.md\n  └ 3 lines\n\nAnswer 2.\n\n"
        f'crow run --resume {stored[0][:8]} "..." goes on\n'
    )


async def test_the_messages_are_shown_as_json(here: Here, stored: list[str]) -> None:
    shown = await here("sessions", "show", stored[0], "--json")
    messages = [json.loads(line) for line in shown.out.splitlines()]
    assert [each["role"] for each in messages] == ["user", "assistant", "tool", "assistant"]


async def test_a_text_is_found_in_what_was_said(here: Here, stored: list[str]) -> None:
    found = await here("sessions", "search", "ANSWER", "1")
    assert [line.split()[0] for line in found.out.splitlines()] == [stored[1][:8]]
    key = await here("sessions", "search", "role")
    assert key.out == "no session holds 'role'; --all looks everywhere\n"
    none = await here("sessions", "search", "nowhere")
    assert none.out == "no session holds 'nowhere'; --all looks everywhere\n"


async def test_a_session_can_be_renamed_and_deleted(
    crow: Crow, here: Here, stored: list[str]
) -> None:
    assert (await here("sessions", "rename", stored[0][:8], "A better", "title")).status == 0
    assert "A better title" in (await here("sessions")).out
    assert (await here("sessions", "delete", stored[0][:8])).status == 0
    listed = await here("sessions")
    assert [line.split()[0] for line in listed.out.splitlines()] == [s[:8] for s in stored[1:]]
    gone = await crow("run", "--resume", stored[0], "x")
    assert gone.complaint.startswith(f"there is no session {stored[0]!r}")


async def test_a_session_is_put_away_and_taken_back(here: Here, stored: list[str]) -> None:
    for action, told, marks in (("archive", "is archived", 1), ("unarchive", "no longer", 0)):
        done = await here("sessions", action, stored[0][:8])
        assert (done.status, told in done.out) == (0, True)
        assert (await here("sessions")).out.count("(archived)") == marks
        listed = (await here("sessions", "--json")).out.splitlines()
        assert sum(json.loads(line)["archived"] for line in listed) == marks
    gone = await here("sessions", "archive", "f" * 32)
    assert gone.complaint.startswith("there is no session")


async def test_a_session_can_be_copied_and_exported(here: Here, stored: list[str]) -> None:
    forked = await here("sessions", "fork", stored[1][:8])
    listed = (await here("sessions", "--json")).out.splitlines()
    ids = {json.loads(line)["id"] for line in listed}
    [copy] = ids - set(stored)
    assert forked.out == f"session {copy[:8]} is a copy of {stored[1][:8]}\n"
    exported = await here("sessions", "export", copy)
    head, *records = map(json.loads, exported.out.splitlines())
    assert head["id"] == copy
    assert "Answer 1." in json.dumps(records)


async def test_the_beginning_of_an_id_must_mean_one_session(here: Here, stored: list[str]) -> None:
    ended = await here("sessions", "show", "")
    assert (ended.status, ended.complaint) == (1, "3 sessions begin with '': give more of the id")


async def test_files_and_conversation_go_back_to_before_a_prompt_and_files_return(
    crow: Crow, here: Here
) -> None:
    file = crow.cwd / "kept.txt"
    file.write_text("old", "utf-8")
    write = call("Bash", command="echo new > kept.txt; echo > made")
    model = ScriptedModel("Hello.", write, "Done.")
    async with Agent(model, tools=builtin(), hooks=[PersistenceHook(), RewindHook()]) as agent:
        session = await agent.new_session(cwd=str(crow.cwd))
        await agent.run("Hi", session=session)
        await agent.run("Change it", session=session)
    start = session.id[:8]
    listed = (await here("sessions", "rewind", start)).out.splitlines()
    assert listed[:2] == ["  1  Hi  2 to change", "  2  Change it  2 to change"]
    asked = await here("sessions", "rewind", start, "2")
    assert (asked.status, asked.out.splitlines()[:2]) == (
        1,
        ["  restore  kept.txt", "  delete   made"],
    )
    assert file.read_text("utf-8") == "new\n"
    done = await here("sessions", "rewind", start, "2", "--yes")
    assert "2 files were brought back" in done.out
    assert "ends before that prompt: crow --resume" in done.out
    assert file.read_text("utf-8") == "old"
    assert not (crow.cwd / "made").exists()
    await here("sessions", "rewind", start, "back", "--yes")
    assert file.read_text("utf-8") == "new\n"
    wrong = await here("sessions", "rewind", start, "7")
    assert "there is no prompt '7'" in wrong.err
