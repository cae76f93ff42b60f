"""Ids of messages: what enters no history, and what therefore is no one's message but its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from crow import Agent, Deny
from crow.core.catalog import Command
from crow.core.verdicts import Answer
from crow.testing import FakeEditor, ScriptedModel


class Commands:
    """A command that needs no model, and a word that is not wanted."""

    def init_agent(self, agent: Agent) -> None:
        async def run(ctx: Any) -> Answer:
            return Answer("It is noon.")

        agent.add_command(Command("time", "Tell the time", run))

    def before_run(self, ctx: Any) -> Deny | None:
        return Deny("not that word") if ctx.prompt == "bad" else None


async def test_answers_of_commands_are_messages_of_their_own(tmp_path: Path) -> None:
    editor = FakeEditor()
    async with editor.connected(Agent(llm=ScriptedModel("Hello."), hooks=[Commands()])):
        session = await editor.new_session(tmp_path)
        for prompt in ("/time", "/time", "bad", "Hi"):
            await editor.prompt(session, prompt)
        said = [
            (u["messageId"], u["content"]["text"]) for u in editor.updates("agent_message_chunk")
        ]
        assert len(said) == 4
        assert len({message_id for message_id, _ in said}) == 4
        assert said[-1] == (f"{session}.0.1", "Hello.")


async def test_a_session_has_the_title_of_the_first_prompt_that_a_model_was_asked(
    tmp_path: Path,
) -> None:
    editor = FakeEditor()
    async with editor.connected(Agent(llm=ScriptedModel("Hello."), hooks=[Commands()])):
        session = await editor.new_session(tmp_path)
        for prompt in ("/time", "bad", "Say hello"):
            await editor.prompt(session, prompt)
        assert [u["title"] for u in editor.updates("session_info_update")] == ["Say hello"]
