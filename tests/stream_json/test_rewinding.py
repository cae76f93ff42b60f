"""``rewind_files`` of the library that drives ``claude -p``: files as before a prompt."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, TypeGuard

import pytest
from claude_agent_sdk import ClaudeSDKClient, Message, ResultMessage, TextBlock, UserMessage
from tests.cli.conftest import calls, project
from tests.stream_json.test_sdk import Options, endpoint, last, options, said

from crow.testing.endpoint import HANG, Endpoint, answer, begin

__all__ = ["endpoint", "options", "project"]

REPLAY: dict[str, Any] = {
    "enable_file_checkpointing": True,
    "extra_args": {"replay-user-messages": None},
    "permission_mode": "bypassPermissions",
}
EDIT = ("Edit", {"file_path": "README.md", "old_string": "things", "new_string": "nothing"})
READ = ("Read", {"file_path": "README.md"})
SHELL = ("Bash", {"command": "echo two > two; mv kept moved; rm -r gone; printf '\\0' > blob"})


def prompts(messages: list[Message]) -> list[UserMessage]:
    """The prompts that were told back."""
    return [m for m in messages if isinstance(m, UserMessage) and isinstance(m.content, str)]


def files(folder: Path) -> dict[str, bytes]:
    """All that is there."""
    found = (each for each in folder.rglob("*") if each.is_file() and ".git" not in each.parts)
    return {str(each.relative_to(folder)): each.read_bytes() for each in found}


def fill(folder: Path) -> None:
    """Put files there."""
    (folder / "gone").mkdir()
    for name in ("kept", "gone/inside", "blob", "mine"):
        (folder / name).write_bytes(b"\xff\0" + name.encode())


async def worked(client: ClaudeSDKClient, endpoint: Endpoint) -> list[str]:
    """Two prompts, of which the second changes files by an edit and by a command; their ids."""
    endpoint.play(answer("Hello."), calls(READ), calls(EDIT, SHELL), answer("Done."))
    told = [*prompts(await said(client, "Hi")), *prompts(await said(client, "Change it"))]
    assert [each.content for each in told] == ["Hi", "Change it"]
    return [str(each.uuid) for each in told]


async def test_files_are_as_before_a_prompt_and_what_others_changed_is_left_alone(
    endpoint: Endpoint, options: Options, project: Path
) -> None:
    fill(project)
    before = files(project)
    async with ClaudeSDKClient(options(**REPLAY)) as client:
        _, second = await worked(client, endpoint)
        after = files(project)
        assert {"two", "moved"} <= after.keys() - before.keys()
        assert {"kept", "gone/inside"} <= before.keys() - after.keys()
        (project / "mine").write_text("by hand", "utf-8")
        (project / "two").write_text("by hand", "utf-8")
        await client.rewind_files(second)
        assert files(project) == {**before, "mine": b"by hand", "two": b"by hand"}
        endpoint.play(answer("Yes."))
        assert last(await said(client, "Go on")).result == "Yes."
    assert "Done." in str(endpoint.requests[-1].body["messages"])


@pytest.mark.slow
async def test_a_resumed_session_and_its_fork_go_back_to_before_earlier_prompts(
    endpoint: Endpoint, options: Options, project: Path
) -> None:
    fill(project)
    before = files(project)
    ids: list[str] = []
    session = ""
    async with ClaudeSDKClient(options(**REPLAY)) as client:
        ids += await worked(client, endpoint)
        endpoint.play(answer("Well."))
        session = last(await said(client, "And?")).session_id
    after = files(project)
    async with ClaudeSDKClient(options(resume=session, **REPLAY)) as client:
        await client.rewind_files(ids[1])
        assert files(project) == before
        endpoint.play(calls(SHELL), answer("Again."))
        ids += [str(each.uuid) for each in prompts(await said(client, "Do it again"))]
        assert files(project).keys() == after.keys()
    forked = options(resume=session, fork_session=True, **REPLAY)
    async with ClaudeSDKClient(forked) as client:
        await client.rewind_files(ids[2])
        assert files(project) == before
        await client.rewind_files(ids[0])
        assert files(project) == before


@pytest.mark.slow
async def test_a_prompt_keeps_the_id_that_the_program_gives_it(
    endpoint: Endpoint, options: Options, project: Path
) -> None:
    async def stream(message: dict[str, Any]) -> AsyncIterator[dict[str, Any]]:
        yield message

    endpoint.play(calls(SHELL, EDIT), answer("Done."))
    content = [{"type": "text", "text": "Change it"}]
    message = {"type": "user", "message": {"role": "user", "content": content}, "uuid": "mine-1"}
    fill(project)
    before = files(project)
    async with ClaudeSDKClient(options(**REPLAY)) as client:
        told = [m for m in await said(client, stream(message)) if isinstance(m, UserMessage)]
        assert [m.uuid for m in told if m.content == [TextBlock("Change it")]] == ["mine-1"]
        assert files(project) != before
        await client.rewind_files("mine-1")
    assert files(project) == before


@pytest.mark.slow
async def test_an_id_that_is_no_prompts_is_refused_by_name(
    endpoint: Endpoint, options: Options, project: Path
) -> None:
    async with ClaudeSDKClient(options(**REPLAY)) as client:
        endpoint.play(calls(READ), answer("Read."))
        (result,) = [m for m in await said(client, "Read it") if is_result(m)]
        for each in ("nonsense", str(result.uuid)):
            with pytest.raises(Exception, match=f"no prompt of this session has the id '{each}'"):
                await client.rewind_files(each)


@pytest.mark.slow
async def test_without_the_extension_it_is_refused(
    endpoint: Endpoint, options: Options, project: Path
) -> None:
    off = '{"extensions": {"disable": ["rewind"]}}'
    async with ClaudeSDKClient(options(settings=off, **REPLAY)) as client:
        endpoint.play(answer("Hello."))
        (prompt,) = prompts(await said(client, "Hi"))
        with pytest.raises(Exception, match="the extension rewind is switched off"):
            await client.rewind_files(str(prompt.uuid))


def is_result(message: Message) -> TypeGuard[UserMessage]:
    """True for what came of a call."""
    return isinstance(message, UserMessage) and bool(message.tool_use_result)


@pytest.mark.slow
async def test_files_come_back_while_a_turn_runs(
    endpoint: Endpoint, options: Options, project: Path
) -> None:
    fill(project)
    before = files(project)
    endpoint.play(calls(SHELL), [begin(), HANG])
    async with ClaudeSDKClient(options(**REPLAY)) as client:
        await client.query("Change it")
        told: list[Message] = []
        async for message in client.receive_response():
            told.append(message)
            if is_result(message):
                assert files(project) != before
                (prompt,) = prompts(told)
                await client.rewind_files(str(prompt.uuid))
                assert files(project) == before
                await client.interrupt()
        assert isinstance(told[-1], ResultMessage)
    assert files(project) == before
