"""The system prompt: one message, in front, the same bytes from turn to turn."""

from __future__ import annotations

import time
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from tests.watching import Watching

from crow import Agent, Command, tool
from crow.core.catalog import PromptSection
from crow.core.events import Notice
from crow.core.ports.client import NullClient
from crow.core.session import Session
from crow.core.tools import ToolKind
from crow.errors import ExtensionError
from crow.extensions import SystemPromptHook
from crow.extensions.system_prompt import DEFAULT, git_branch
from crow.testing import ScriptedModel, call
from crow.testing.plugin import AgentOf


def system_of(agent: Agent, request: int = 0) -> str:
    messages = prompts(agent)[request]
    assert messages[0]["role"] == "system"
    return str(messages[0]["content"])


def prompts(agent: Agent) -> list[list[Any]]:
    llm = agent.llm
    assert isinstance(llm, ScriptedModel)
    return [asked["messages"] for asked in llm.asked]


def today() -> str:
    return datetime.now().astimezone().date().isoformat()


@tool
def noise() -> str:
    """Say something."""
    return "noise"


async def test_the_text_comes_first_and_says_where_the_agent_works(
    agent_of: AgentOf, tmp_path: Path
):
    agent = agent_of("Hello.", hooks=[SystemPromptHook("You are Crow.")])
    await agent.run("Hi", cwd=tmp_path)
    [messages] = prompts(agent)
    assert [message["role"] for message in messages] == ["system", "user"]
    assert system_of(agent).startswith("You are Crow.\n\n# Environment\n")
    assert f"Working directory: {tmp_path}\nGit repository: no\nPlatform: " in system_of(agent)
    assert system_of(agent).endswith(f"\nDate: {today()}")


async def test_without_a_text_it_says_how_a_coding_agent_behaves(agent_of: AgentOf):
    agent = agent_of("Hello.", hooks=[SystemPromptHook(environment=False)])
    await agent.run("Hi")
    assert system_of(agent) == DEFAULT


async def test_the_prefix_is_the_same_in_every_turn_and_run(agent_of: AgentOf, tmp_path: Path):
    asked: list[str] = []

    def section(session: Session) -> str:
        asked.append(session.id)
        return f"Asked {len(asked)} times."

    agent = agent_of(call("noise"), "One.", "Two.", hooks=[SystemPromptHook()], tools=[noise])
    agent.add_section(PromptSection("counter", section))
    reply = await agent.run("Hi", cwd=tmp_path)
    (tmp_path / ".git").mkdir()
    await agent.run("Again", session=reply.session)
    assert len({system_of(agent, request) for request in range(3)}) == 1
    for earlier, later in zip(prompts(agent), prompts(agent)[1:], strict=False):
        assert later[: len(earlier)] == earlier
    assert asked == [reply.session.id]


async def test_it_never_enters_the_history(agent_of: AgentOf):
    agent = agent_of("Hello.", hooks=[SystemPromptHook("You are Crow.")])
    reply = await agent.run("Hi")
    assert [message["role"] for message in reply.session.messages] == ["user", "assistant"]


async def test_a_system_message_that_is_there_already_stays_alone(agent_of: AgentOf):
    def before_llm_request(messages: list[Any]) -> list[Any]:
        return [{"role": "system", "content": "Mine."}, *messages]

    class Person(NullClient):
        async def update(self, session_id: str, event: Any) -> None:
            told.extend([event.text] if isinstance(event, Notice) else [])

    told: list[str] = []
    agent = agent_of(
        call("noise"),
        "Hello.",
        hooks=[before_llm_request, SystemPromptHook("Yours.")],
        tools=[noise],
    )
    await agent.run("Hi", client=Person())
    assert system_of(agent) == "Mine."
    assert len(prompts(agent)[0]) == 2
    [text] = told
    assert text.startswith("another hook has put a system message in front: that of Crow, with")


def test_a_second_one_is_refused(agent_of: AgentOf):
    with pytest.raises(ExtensionError, match="is the system prompt already"):
        agent_of(hooks=[SystemPromptHook("One."), SystemPromptHook("Two.")])


async def test_sections_stand_in_their_order_and_may_be_computed(agent_of: AgentOf):
    async def computed(session: Session) -> str:
        return f"In {session.cwd}."

    agent = agent_of("Hello.", hooks=[SystemPromptHook("Crow.", environment=False)])
    agent.add_section(PromptSection("late", computed, order=10))
    agent.add_section(PromptSection("early", "First.", order=-10))
    agent.add_section(PromptSection("empty", "  "))
    agent.add_section(PromptSection("middle", "Second."))
    await agent.run("Hi", cwd="/")
    assert system_of(agent) == "Crow.\n\nFirst.\n\nSecond.\n\nIn /."


async def test_a_section_that_fails_is_named_and_costs_the_others_nothing(
    agent_of: AgentOf, caplog: pytest.LogCaptureFixture
):
    def broken(session: Session) -> str:
        raise RuntimeError("no such skill")

    def odd(session: Session) -> Any:
        return 5

    client = Watching()
    agent = agent_of("Hello.", hooks=[SystemPromptHook("Crow.", environment=False)])
    agent.add_section(PromptSection("skills", broken))
    agent.add_section(PromptSection("odd", odd))
    agent.add_section(PromptSection("sound", "Sound."))
    await agent.run("Hi", client=client)
    assert system_of(agent) == "Crow.\n\nSound."
    place = f"{__file__}:{broken.__code__.co_firstlineno + 1}"
    other = f"{__file__}:{odd.__code__.co_firstlineno}"
    told = [
        f"the prompt section skills failed: RuntimeError('no such skill') ({place}); it is left out",
        f"the prompt section odd failed: TypeError('it must be text, not 5') ({other}); it is left out",
    ]
    assert client.notices == told
    assert caplog.messages == told  # for programs, whose client sees nothing


async def test_a_tool_may_give_a_hint(agent_of: AgentOf):
    class Weather:
        name, description = "Weather", "Say how the weather is."
        kind: ToolKind = "fetch"
        parameters: dict[str, Any] = {"type": "object", "properties": {}}  # noqa: RUF012
        hint = "ask before you plan a picnic"

        async def run(self, args: dict[str, Any], ctx: Any) -> str:
            return "fine"

    agent = agent_of(
        "Hello.", hooks=[SystemPromptHook("Crow.", environment=False)], tools=[Weather(), noise]
    )
    await agent.run("Hi")
    assert system_of(agent) == "Crow.\n\n# Tools\n\n- Weather: ask before you plan a picnic"


async def test_a_session_resumed_on_a_later_day_keeps_its_prefix_and_learns_the_date(
    scripted: Any, tmp_path: Path
):
    """The stored state alone makes the same bytes, in another agent of another process."""
    first = Agent(llm=scripted("One."), hooks=[SystemPromptHook("Crow.")], tools=[])
    session = await first.new_session(tmp_path)
    session.state["system_prompt"]["date"] = "2020-02-02"
    await first.run("Hi", session=session)
    del session.state["system_prompt"]["told"]  # as it was on that day
    stored = Session(cwd=session.cwd, messages=session.messages, state=session.state)

    class Shelf:
        def save(self, session: Session) -> None: ...
        async def load(self, session_id: str) -> Session:
            return stored

    second = Agent(llm=scripted("Two."), hooks=[SystemPromptHook("Crow.")], tools=[])
    second.store = Shelf()  # type: ignore[assignment]
    again = await second.load_session(stored.id)
    await second.run("And now?", session=again)
    assert system_of(second) == system_of(first)
    assert system_of(second).endswith("\nDate: 2020-02-02")
    [*_, told] = prompts(second)[0]
    assert f"today is {today()}" in told["content"]

    third = Agent(llm=scripted("Three."), hooks=[SystemPromptHook("Crow.")], tools=[])
    third.store = Shelf()  # type: ignore[assignment]
    again = await third.load_session(stored.id)
    await third.run("Still there?", session=again)
    assert [str(message.get("content")) for message in prompts(third)[0]][-1] == "Still there?"


def checkout(folder: Path, branch: str) -> None:
    """What git does to HEAD when a branch is checked out."""
    (folder / ".git").mkdir(exist_ok=True)
    (folder / ".git" / "HEAD").write_text(f"ref: refs/heads/{branch}\n")


def contexts(messages: list[Any]) -> list[str]:
    """What was injected, without the marks."""
    texts = [str(message["content"]) for message in messages[1:] if message["role"] == "user"]
    return [text.splitlines()[1] for text in texts if text.startswith("<crow-context")]


async def test_another_branch_is_told_behind_the_next_prompt_and_the_prefix_stays(
    agent_of: AgentOf, tmp_path: Path
):
    checkout(tmp_path, "main")
    agent = agent_of("One.", "Two.", "Three.", hooks=[SystemPromptHook("Crow.")], tools=[])
    reply = await agent.run("Hi", cwd=tmp_path)
    for text in ("Where are we?", "And now?"):
        checkout(tmp_path, "feature")
        await agent.run(text, session=reply.session)
    assert len({system_of(agent, request) for request in range(3)}) == 1
    assert "Git branch: main" in system_of(agent)
    assert contexts(prompts(agent)[2]) == ["The git branch is feature now."]
    assert "The git branch is feature now." in str(prompts(agent)[1][-1])


@pytest.mark.skipif(not hasattr(time, "tzset"), reason="the day is another one by the time zone")
async def test_another_day_is_told_in_a_session_that_is_open(
    agent_of: AgentOf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("TZ", "Etc/GMT+12")
    time.tzset()
    try:
        agent = agent_of("One.", "Two.", "Three.", hooks=[SystemPromptHook("Crow.")], tools=[])
        reply = await agent.run("Hi", cwd=tmp_path)
        before = today()
        monkeypatch.setenv("TZ", "Pacific/Kiritimati")
        time.tzset()
        await agent.run("Still there?", session=reply.session)
        await agent.run("And now?", session=reply.session)
        assert before != today()
        assert len({system_of(agent, request) for request in range(3)}) == 1
        told = f"The session goes on on another day: today is {today()}."
        assert contexts(prompts(agent)[2]) == [told]
    finally:
        monkeypatch.undo()
        time.tzset()


async def test_a_compaction_says_the_branch_of_the_moment(agent_of: AgentOf, tmp_path: Path):
    async def compact(ctx: Any) -> None:
        await ctx.compact([], "what was said")

    checkout(tmp_path, "main")
    agent = agent_of("One.", "Two.", "Three.", hooks=[SystemPromptHook("Crow.")], tools=[])
    reply = await agent.run("Hi", cwd=tmp_path)
    checkout(tmp_path, "feature")
    await agent.run("Go on", session=reply.session)
    agent.add_command(Command("shorten", "Compact", compact))
    await agent.run("/shorten", session=reply.session)
    await agent.run("And now?", session=reply.session)
    assert "Git branch: feature" in system_of(agent, 2)
    assert contexts(prompts(agent)[2]) == ["what was said"]


async def test_a_compaction_composes_it_anew(agent_of: AgentOf):
    texts = iter(["old", "new"])

    async def compact(ctx: Any) -> None:
        await ctx.compact([], "what was said")

    agent = agent_of("One.", "Two.", hooks=[SystemPromptHook("Crow.", environment=False)])
    agent.add_section(PromptSection("changing", lambda session: next(texts)))
    reply = await agent.run("Hi")
    agent.hooks.register("before_run", compact)
    await agent.run("Again", session=reply.session)
    assert [system_of(agent, 0), system_of(agent, 1)] == ["Crow.\n\nold", "Crow.\n\nnew"]


async def test_removed_it_leaves_no_trace_in_the_next_request(agent_of: AgentOf):
    agent = agent_of("One.", "Two.", hooks=[SystemPromptHook("Crow.")])
    reply = await agent.run("Hi")
    agent.remove("system_prompt")
    await agent.run("Again", session=reply.session)
    assert prompts(agent)[1][0]["role"] == "user"


@pytest.mark.parametrize(
    ("head", "branch"),
    [
        ("ref: refs/heads/main\n", "main"),
        ("ref: refs/heads/feature/a-b\n", "feature/a-b"),
        ("0123456789abcdef0123456789abcdef01234567\n", "0123456789ab"),
        ("ref: refs/heads/\x1b[31mred\n", "[31mred"),
        ("", None),
    ],
)
def test_the_branch_is_read_from_the_repository(tmp_path: Path, head: str, branch: str | None):
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").write_text(head)
    (tmp_path / "src").mkdir()
    assert git_branch(str(tmp_path / "src")) == branch


def test_a_worktree_has_a_branch_of_its_own(tmp_path: Path):
    kept = tmp_path / "main" / ".git" / "worktrees" / "fix"
    kept.mkdir(parents=True)
    (kept / "HEAD").write_text("ref: refs/heads/fix")
    (tmp_path / "fix").mkdir()
    (tmp_path / "fix" / ".git").write_text(f"gitdir: {kept}\n")
    assert git_branch(str(tmp_path / "fix")) == "fix"
