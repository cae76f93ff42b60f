"""The hook log: a line for every point, one for every decision, and no say in anything."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from inline_snapshot import snapshot

from crow import Agent, Allow, Deny, Stop, tool
from crow.core.errors import HookError
from crow.core.hooks.points import Point
from crow.extensions import HookLog
from crow.testing import call
from crow.testing.plugin import AgentOf


@tool(name="Read", title=lambda args: f"Read {args['file_path']}")
def read(file_path: str) -> str:
    """Read a file."""
    return "text"


class Lines(list[str]):
    """What was written; ``of`` gives the part behind the event's name."""

    def of(self, event: str) -> list[str]:
        return [line[27:] for line in self if line[7:27].strip() == event]


@pytest.fixture
def lines() -> Lines:
    return Lines()


async def test_one_line_for_every_point_that_fires(agent_of: AgentOf, lines: Lines):
    async with agent_of(
        call("Read", file_path="README.md"), "Done.", hooks=[HookLog(lines.append)], tools=[read]
    ) as agent:
        await agent.run("Read it", cwd="/")
    assert "\n".join(lines) == snapshot("""\
[HOOK] on_session_start    new in /
[HOOK] before_run          "Read it"
[HOOK] on_message          user: "Read it"
[HOOK] around_run          "Read it"
[HOOK] before_llm_request  1 message, 1 tool
[HOOK] around_llm_request  1 message, 1 tool
[HOOK] on_llm_request      1 message, 1 tool
[HOOK] on_update           CallDelta
[HOOK] after_llm_response  calls Read
[HOOK] on_message          assistant: Read
[HOOK] on_update           ToolPending
[HOOK] before_tool         Read README.md
[HOOK] on_update           ToolStarted
[HOOK] around_tool         Read README.md
[HOOK] after_tool          Read README.md: ok
[HOOK] on_update           ToolEnded
[HOOK] on_message          tool: "text"
[HOOK] after_turn          1 tool result
[HOOK] before_llm_request  3 messages, 1 tool
[HOOK] around_llm_request  3 messages, 1 tool
[HOOK] on_llm_request      3 messages, 1 tool
[HOOK] on_update           TextDelta
[HOOK] after_llm_response  "Done."
[HOOK] on_message          assistant: "Done."
[HOOK] after_turn          0 tool results
[HOOK] on_stop
[HOOK] after_loop          end_turn
[HOOK] on_update           RunEnded
[HOOK] after_run           end_turn
[HOOK] on_session_end      exit\
""")


async def test_it_says_who_decided_what(agent_of: AgentOf, lines: Lines):
    class Guard:
        def before_tool(self, args: Any) -> Any:
            args["file_path"] = "/etc/passwd"

        def on_stop(self, count: int) -> str | None:
            return "check it" if not count else None

    def judge(call: Any) -> Any:
        return Deny("not that file")

    def broken(results: Any) -> None:
        raise ValueError("no")

    agent = agent_of(
        call("Read", file_path="a"), "1", "2", hooks=[Guard(), HookLog(lines.append)], tools=[read]
    )
    agent.hooks.register("PreToolUse", judge)
    agent.hooks.register("after_turn", broken)
    await agent.run("Read it")
    assert lines.of("before_tool") == [
        "Read a",
        "-> guard: changed args",
        "-> judge: deny: not that file",
    ]
    assert lines.of("on_stop") == ["", "-> guard: check it", "kept going so far: 1"]
    assert lines.of("after_turn")[1].startswith("-> broken: failed: ValueError: no (")
    assert lines.of("after_tool") == ["Read /etc/passwd: denied"]


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (Allow(), "allow"),
        ("plain words", "deny: plain words"),
        ({}, None),
        (None, None),
    ],
)
async def test_every_answer_has_its_words(
    agent_of: AgentOf, lines: Lines, answer: Any, words: str | None
):
    agent = agent_of(
        call("Read", file_path="a"), "Done.", hooks=[HookLog(lines.append)], tools=[read]
    )
    agent.hooks.register("before_tool", lambda: answer)
    await agent.run("Go")
    said = [line for line in lines.of("before_tool") if line.startswith("->")]
    assert said == ([] if words is None else [f"-> <lambda>: {words}"])


async def test_a_stop_is_logged_as_one(agent_of: AgentOf, lines: Lines):
    agent = agent_of(call("Read", file_path="a"), hooks=[HookLog(lines.append)], tools=[read])
    agent.hooks.register("before_tool", lambda: Stop("enough"))
    await agent.run("Go")
    assert lines.of("before_tool")[1] == "-> <lambda>: stop: enough"
    assert lines.of("after_loop") == ["hook_stopped"]


async def test_only_the_wanted_events_are_logged_by_any_of_their_names(
    agent_of: AgentOf, lines: Lines
):
    log = HookLog(lines.append, events=["PreToolUse", "after_run"])
    agent = agent_of(call("Read", file_path="a"), "Done.", hooks=[log], tools=[read])
    await agent.run("Go")
    assert [line.split()[1] for line in lines] == ["before_tool", "after_run"]


def test_an_unknown_event_is_an_error_that_names_the_nearest(lines: Lines):
    with pytest.raises(HookError, match="did you mean 'before_tool'"):
        Agent(hooks=[HookLog(lines.append, events=["before_tools"])], tools=[])
    with pytest.raises(HookError, match="'TaskCreated' comes with the extension plan"):
        Agent(hooks=[HookLog(lines.append, events=["TaskCreated"])], tools=[])


async def test_a_stream_is_one_line(agent_of: AgentOf, lines: Lines):
    agent = agent_of("many words " * 50, hooks=[HookLog(lines.append)], tools=[])
    await agent.run("Go")
    assert lines.of("on_update").count("TextDelta") == 1


async def test_lines_are_bounded_and_without_control_characters(agent_of: AgentOf, lines: Lines):
    agent = agent_of(
        call("Read", file_path="a\x1b[2J\x07\n\u202eb" + "x" * 1000),
        "Done.",
        hooks=[HookLog(lines.append, width=60)],
        tools=[read],
    )
    await agent.run("Go\r\non")
    assert max(map(len, lines)) == 60
    assert all(line.isprintable() for line in lines)
    assert lines.of("before_tool") == ["Read a?[2J? ?bxxxxxxxxxxxxxxxx..."]
    assert lines.of("before_run") == ['"Go on"']


@pytest.mark.parametrize(
    "secret",
    [
        "sk-proj-abcdefghijklmnop1234",
        "ghp_abcdefghijklmnopqrstuvwxyz012345",
        "AKIAIOSFODNN7EXAMPLE",
        "Authorization: Bearer abc.def.ghi",
        "curl -H 'X-Api-Key: 0123abcd'",
        "OPENAI_API_KEY=verysecretvalue",
        "PASSWORD='hunter2hunter2'",
        "https://me:hunter2hunter2@example.org/x",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln",
        "plain but in the environment",
    ],
)
async def test_secrets_are_left_out(
    agent_of: AgentOf, lines: Lines, secret: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("MY_SECRET", "plain but in the environment")
    agent = agent_of("Done.", hooks=[HookLog(lines.append, width=400)], tools=[])
    await agent.run(f"Use {secret} now")
    [line] = lines.of("before_run")
    assert "***" in line
    assert line.endswith('now"')
    for part in (
        "abcdefgh",
        "IOSFODNN",
        "abc.def",
        "0123abcd",
        "verysecret",
        "hunter2",
        "c2ln",
        "plain",
    ):
        assert part not in line


async def test_ordinary_words_are_no_secrets(agent_of: AgentOf, lines: Lines):
    agent = agent_of("Done.", hooks=[HookLog(lines.append)], tools=[])
    said = "Count the tokens of task-list.md at https://example.org:80/a and test the key handling"
    await agent.run(said)
    assert lines.of("before_run") == [f'"{said}"']


async def test_a_log_that_cannot_be_written_changes_nothing(agent_of: AgentOf):
    def full(line: str) -> None:
        raise OSError("no space left on device")

    agent = agent_of(call("Read", file_path="a"), "Done.", hooks=[HookLog(full)], tools=[read])
    reply = await agent.run("Go")
    assert reply.text == "Done."
    assert reply.session.messages[2].get("content") == "text"


async def test_removed_it_says_no_more(agent_of: AgentOf, lines: Lines):
    agent = agent_of(
        "One.", call("Read", file_path="a"), "Two.", hooks=[HookLog(lines.append)], tools=[read]
    )
    await agent.run("Go")
    agent.remove("hook_log")
    lines.clear()
    agent.hooks.register("before_tool", lambda: "no")
    await agent.run("Go")
    assert lines == []
    assert list(agent.hooks) == [hook for hook in agent.hooks if hook.name == "<lambda>"]


async def test_a_point_that_another_extension_defines_is_logged(agent_of: AgentOf, lines: Lines):
    class Plan:
        def init_agent(self, agent: Agent) -> None:
            agent.hooks.define(Point("on_plan", "watch", ()))

        async def after_turn(self, ctx: Any) -> None:
            await ctx.agent.hooks["on_plan"].fire(ctx)

    agent = agent_of("Done.", hooks=[HookLog(lines.append), Plan()], tools=[])
    await agent.run("Go")
    assert lines.of("on_plan") == [""]


async def test_by_itself_it_writes_to_standard_error(
    agent_of: AgentOf, capsys: pytest.CaptureFixture[str], tmp_path: Path
):
    await agent_of("Done.", hooks=[HookLog()], tools=[]).run("Go", cwd=tmp_path)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"[HOOK] on_session_start    new in {tmp_path}\n")
