"""All extensions that come with Crow, side by side: each can be had alone and taken away."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from crow import Agent, extensions
from crow.project import HookFile
from crow.testing import ScriptedModel, call

MAKE: dict[str, Callable[[Path], Any]] = {
    "BackgroundHook": lambda folder: extensions.BackgroundHook(),
    "CommandsHook": lambda folder: extensions.CommandsHook(),
    "CompactionHook": lambda folder: extensions.CompactionHook(directory=folder),
    "CostHook": lambda folder: extensions.CostHook(),
    "DeferredToolsHook": lambda folder: extensions.DeferredToolsHook(),
    "HookLog": lambda folder: extensions.HookLog(lambda line: None),
    "InstructionsHook": lambda folder: extensions.InstructionsHook(),
    "LimitsHook": lambda folder: extensions.LimitsHook(),
    "McpHook": lambda folder: extensions.McpHook(),
    "PermissionsHook": lambda folder: extensions.PermissionsHook(allow=["Read", "Edit"]),
    "PersistenceHook": lambda folder: extensions.PersistenceHook(db_path=str(folder / "crow.db")),
    "PlanHook": lambda folder: extensions.PlanHook(),
    "PromptCacheHook": lambda folder: extensions.PromptCacheHook(),
    "ShellHooks": lambda folder: extensions.ShellHooks(
        [
            HookFile(
                "settings.json", {"Stop": [{"hooks": [{"type": "command", "command": "true"}]}]}
            )
        ],
        directory=folder,
    ),
    "SkillsHook": lambda folder: extensions.SkillsHook(),
    "StuckHook": lambda folder: extensions.StuckHook(),
    "SubagentsHook": lambda folder: extensions.SubagentsHook(),
    "SystemPromptHook": lambda folder: extensions.SystemPromptHook("You are Crow."),
    "TruncationHook": lambda folder: extensions.TruncationHook(directory=folder),
    "WebHook": lambda folder: extensions.WebHook(),
}


def registries(agent: Agent) -> list[Any]:
    """Everything that an extension can add to."""
    catalogs = [list(catalog) for catalog in agent.catalogs]
    return [[str(hook) for hook in agent.hooks], *catalogs, list(agent.extensions), agent.store]


@pytest.mark.parametrize("name", MAKE)
async def test_each_can_be_used_and_removed_without_a_trace(name: str, tmp_path: Path):
    agent = Agent(llm=ScriptedModel("One.", "Two."), tools=[])
    before = registries(agent)
    for _ in range(2):
        extension = agent.use(MAKE[name](tmp_path))
        assert list(agent.extensions.values()) == [extension]
        [known_as] = agent.extensions
        await agent.run("Hi", cwd=tmp_path)
        await agent.stop(known_as)
        agent.remove(known_as)
        assert registries(agent) == before
    await agent.close()


@pytest.mark.parametrize("left_out", [None, *MAKE])
@pytest.mark.variants(10)
async def test_all_of_them_leave_the_prefix_alone_and_none_needs_another(
    left_out: str | None, tmp_path: Path
):
    model = ScriptedModel(
        call("Read", file_path="a.txt"), call("Write", file_path="b.txt", content="b"), "1", "2"
    )
    (tmp_path / "a.txt").write_text("a\n")
    (tmp_path / "AGENTS.md").write_text("A rule.")
    hooks = [make(tmp_path) for name, make in MAKE.items() if name != left_out]
    async with Agent(llm=model, hooks=hooks) as agent:
        reply = await agent.run("Read and write", cwd=tmp_path)
        reply = await agent.run("And now?", session=reply.session)
    assert reply.text == "2"
    assert [record.error for record in reply.session.trace if record.error] == []
    assert (tmp_path / "b.txt").read_text() == "b"
    for earlier, later in zip(model.asked, model.asked[1:], strict=False):
        assert later["messages"][: len(earlier["messages"])] == earlier["messages"]
        assert later["tools"] == earlier["tools"]


def test_a_name_is_imported_when_it_is_used_and_no_sooner(tmp_path: Path):
    program = (
        "import sys, crow.extensions as e; e.LimitsHook;"
        "print(*sorted(m for m in sys.modules if m.startswith('crow.extensions.')))"
    )
    loaded = subprocess.check_output([sys.executable, "-c", program], text=True, cwd=tmp_path)
    assert loaded.split() == ["crow.extensions.limits"]


def test_every_name_that_is_offered_is_there():
    assert set(MAKE) <= set(dir(extensions))
    for name in dir(extensions):
        assert getattr(extensions, name).__name__ == name
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        extensions.Nothing  # noqa: B018  # pyright: ignore[reportAttributeAccessIssue]
