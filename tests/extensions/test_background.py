"""Background work: whoever waits for its end hears of it, once."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from crow import Agent
from crow.core.events import Notice
from crow.core.messages import text_of
from crow.core.ports.client import NullClient
from crow.extensions import BackgroundHook
from crow.testing import ScriptedModel, call
from crow.testing.plugin import AgentOf

ENDED = "in the background has ended"


class Watcher(NullClient):
    """A client that keeps notices, and an extension that keeps notifications."""

    def __init__(self) -> None:
        self.notices: list[str] = []
        self.heard: list[tuple[str, str]] = []
        self.done = asyncio.Event()

    async def update(self, session_id: str, event: object) -> None:
        if isinstance(event, Notice):
            self.notices.append(event.text)

    def on_notification(self, kind: str, message: str) -> None:
        self.heard.append((kind, message))
        self.done.set()


@pytest.fixture
def watcher() -> Watcher:
    return Watcher()


def told(agent: Agent, request: int) -> list[str]:
    """What a request says of ends."""
    assert isinstance(agent.llm, ScriptedModel)
    texts = [text_of(message.get("content")) for message in agent.llm.asked[request]["messages"]]
    return [text for text in texts if ENDED in text]


def background(command: str) -> Any:
    return call("Bash", command=command, run_in_background=True)


async def test_the_end_of_a_command_is_notified_once_and_stands_behind_the_next_prompt(
    agent_of: AgentOf, watcher: Watcher, tmp_path: Path
):
    hooks = [BackgroundHook(), watcher]
    async with agent_of(
        background("sleep 0.1; echo done"), "Started.", "I see.", "Yes.", hooks=hooks
    ) as agent:
        reply = await agent.run("Start it", cwd=tmp_path, client=watcher)
        await watcher.done.wait()
        await agent.run("And?", session=reply.session)
        await agent.run("Sure?", session=reply.session)
    [(kind, message)] = watcher.heard
    assert kind == "background_done"
    assert message == (
        "bash_1 in the background has ended: completed, exit code 0 (BashOutput reads its output). "
        "It was: sleep 0.1; echo done"
    )
    assert watcher.notices == [message]
    assert [len(told(agent, n)) for n in range(4)] == [0, 0, 1, 1]
    [*_, prompt, context] = agent.llm.asked[2]["messages"]  # pyright: ignore[reportAttributeAccessIssue]
    assert prompt["content"] == "And?"
    assert context["content"].startswith('<crow-context source="background">\nbash_1 in the')


async def test_a_command_that_ends_while_the_model_works_is_told_at_the_next_request(
    agent_of: AgentOf, watcher: Watcher, tmp_path: Path
):
    class Wait:
        async def after_turn(self) -> None:
            await watcher.done.wait()

    async with agent_of(
        background("exit 3"),
        call("LS", path="."),
        "I see.",
        hooks=[BackgroundHook(), watcher, Wait()],
    ) as agent:
        await agent.run("Start it", cwd=tmp_path)
    [line] = told(agent, 1)
    assert "failed, exit code 3" in line
    assert told(agent, 2) == [line]


async def test_what_the_model_has_read_itself_is_not_told_again(
    agent_of: AgentOf, watcher: Watcher, tmp_path: Path
):
    async with agent_of(
        background("echo done"),
        call("BashOutput", bash_id="bash_1", wait=10_000),
        "It is done.",
        "Still.",
        hooks=[BackgroundHook(), watcher],
    ) as agent:
        reply = await agent.run("Start it and wait", cwd=tmp_path)
        await agent.run("And?", session=reply.session)
    assert told(agent, 3) == []
    assert "completed" in str(reply.session.messages)


async def test_a_command_that_the_model_ended_is_not_told_of(
    agent_of: AgentOf, watcher: Watcher, tmp_path: Path
):
    async with agent_of(
        background("sleep 60"),
        call("KillShell", shell_id="bash_1"),
        background("true"),
        "Ended.",
        hooks=[BackgroundHook(), watcher],
    ) as agent:
        await agent.run("Start and end it", cwd=tmp_path)
        await watcher.done.wait()
    assert [message.split()[0] for _, message in watcher.heard] == ["bash_2"]


async def test_a_session_that_is_closed_ends_its_commands_without_a_word(
    agent_of: AgentOf, watcher: Watcher, tmp_path: Path
):
    async with agent_of(
        background("sleep 60"), "Started.", hooks=[BackgroundHook(), watcher]
    ) as agent:
        await agent.run("Start it", cwd=tmp_path, client=watcher)
    assert watcher.heard == []
    assert watcher.notices == []
