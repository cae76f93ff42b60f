"""Agents that others wrote behind ``crow acp --proxy``, in a client that others wrote."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.clients.agents import AGENTS, PI, Foreign
from tests.clients.conftest import CROW, Client, driven, typescript
from tests.clients.double import Double, double

pytestmark = [pytest.mark.clients, pytest.mark.timeout(400)]
HOOKS = {
    "UserPromptSubmit": 'case "$(cat)" in *nuclear*) echo "no such words" >&2; exit 2;; esac; '
    "echo The password is swordfish.",
    "PreToolUse": 'case "$(cat)" in *curl*) echo "nothing is fetched" >&2; exit 2;; esac',
    "PostToolUse": "cat >> {log}; echo >> {log}",
}
RULES = {"deny": ["Bash(rm:*)"], "allow": ["Bash(touch made.txt)"]}


class Guarded:
    """An agent behind Crow, a client, and a project in which hooks and rules hold."""

    def __init__(self, agent: Foreign, model: Double, client: Client, project: Path) -> None:
        self.agent, self.model, self.client, self.project = agent, model, client, project

    async def wants(self, call: dict[str, dict[str, Any]]) -> str:
        """Prompt, of which the model wants one call; what the user read."""
        before = len(self.client.text)
        self.model.wants = call
        await self.client.prompt("Do it")
        return self.client.text[before:]

    async def runs(self, command: str) -> str:
        """The same, with a command."""
        return await self.wants(self.agent.run(command))


@pytest.fixture(params=list(AGENTS))
async def guarded(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Guarded]:
    async with behind_crow(AGENTS[request.param], tmp_path) as found:
        yield found


@asynccontextmanager
async def behind_crow(agent: Foreign, project: Path) -> AsyncGenerator[Guarded]:
    """The agent with a session in the project, hooks and rules in front of it."""
    folder = Path.home() / ".crow"
    folder.mkdir(exist_ok=True)
    log = str(folder / "log")
    hooks = {
        event: [{"hooks": [{"type": "command", "command": script.replace("{log}", log)}]}]
        for event, script in HOOKS.items()
    }
    settings = json.dumps({"hooks": hooks, "permissions": RULES})
    (folder / "settings.json").write_text(settings, "utf-8")
    async with double() as model:
        command = [CROW, "acp", "--proxy", "--", *agent.command(model.url)]
        env = agent.environment(model.url)
        async with driven(typescript(), command, project, env) as start:
            client = await start()
            await client.open(project)
            yield Guarded(agent, model, client, project)


async def test_hooks_and_rules_decide_on_the_calls_of_another_agent(guarded: Guarded) -> None:
    (guarded.project / "build").mkdir()
    client = guarded.client
    assert "Crow denied" in await guarded.runs("rm -rf build")
    assert "nothing is fetched" in await guarded.runs("curl http://127.0.0.1:9 > got.txt")
    assert client.asked == 0
    assert (guarded.project / "build").is_dir()
    assert not (guarded.project / "got.txt").exists()
    await guarded.runs("touch made.txt")
    assert (guarded.project / "made.txt").exists()
    assert client.asked == (not guarded.agent.names_its_command)
    await client.do("answer", kind="reject_once")
    await guarded.runs("touch other.txt")
    assert not (guarded.project / "other.txt").exists()
    assert client.asked == 1 + (not guarded.agent.names_its_command)


async def test_a_file_is_written_and_the_user_is_asked_once(guarded: Guarded) -> None:
    file = guarded.project / "new.txt"
    await guarded.wants(guarded.agent.write(file, "hello\n"))
    assert file.read_text("utf-8") == "hello\n"
    assert guarded.client.asked == 1
    assert "new.txt" in (Path.home() / ".crow/log").read_text("utf-8")


async def test_hooks_judge_prompts_and_a_turn_is_cancelled(guarded: Guarded) -> None:
    await prompts_are_judged(guarded)


async def test_an_agent_that_never_asks_is_seen_too_late(tmp_path: Path) -> None:
    async with behind_crow(PI, tmp_path) as guarded:
        (tmp_path / "build").mkdir()
        said = await guarded.runs("rm -rf build")
        assert "ran rm -rf build without asking" in said
        assert "Bash(rm:*) denies it" in said
        assert not (tmp_path / "build").exists()
        await guarded.wants(PI.write(tmp_path / "new.txt", "hello\n"))
        assert "new.txt" in (Path.home() / ".crow/log").read_text("utf-8")
        assert guarded.client.asked == 0
        await prompts_are_judged(guarded)


async def prompts_are_judged(guarded: Guarded) -> None:
    """One is refused, one gets context, one is cancelled, and the session lives on."""
    client, model = guarded.client, guarded.model
    before = len(model.asked)
    assert await client.prompt("Build a nuclear bomb") == "refusal"
    assert len(model.asked) == before
    assert await client.prompt("Hi") == "end_turn"
    assert "swordfish" in json.dumps(model.asked[-1])
    model.news.clear()
    model.hangs = True
    prompt = client.ask("Think")
    await model.news.wait()
    await client.do("cancel")
    assert (await client.done(prompt))["stopReason"] == "cancelled"
    model.hangs = False
    assert await client.prompt("Are you there?") == "end_turn"
