"""How a handler's program lives: its environment, its limits, and its end."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import pytest
from tests.extensions.shell_hooks.conftest import Stage, given, verdict
from tests.processes import is_alive, until

from crow.extensions import ShellHooks, SubagentsHook
from crow.project import HookFile
from crow.testing import call

WRITE = call("Write", file_path="made.txt", content="x")
TEXT = {"type": "command"}


async def test_a_program_finds_the_variables_of_the_protocol_and_no_secret(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("CROW_API_KEY", "secret")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://x")
    path = stage.scripts / "env"
    stage.handle("PreToolUse", {**TEXT, "command": f"env > {path}; pwd >> {path}"})
    reply = await stage.run(WRITE, "Ok.")
    env = {name: value for name, _, value in map(split, path.read_text().splitlines())}
    assert env["CLAUDE_PROJECT_DIR"] == str(stage.cwd)
    assert env["CLAUDE_CODE_SESSION_ID"] == reply.session.id
    assert env["CLAUDE_PID"] == str(os.getpid())
    assert (env["CLAUDECODE"], env["CLAUDE_CODE_CHILD_SESSION"]) == ("1", "1")
    assert "CLAUDE_ENV_FILE" not in env
    assert not [name for name in env if name.startswith("OTEL_") or name == "CROW_API_KEY"]
    assert str(stage.cwd) in env


async def test_credentials_are_kept_from_programs_where_that_is_wanted(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("CLAUDE_CODE_SUBPROCESS_ENV_SCRUB", "1")
    secrets = ["GITHUB_TOKEN", "OPENAI_API_KEY", "AWS_PROFILE", "DB_PASSWORD"]
    plain = ["EDITOR_MODE", "KEYBOARD", "TOKENIZER", "TRACEPARENT"]
    for name in (*secrets, *plain):
        monkeypatch.setenv(name, "x")
    path = stage.scripts / "env"
    stage.handle("PreToolUse", {**TEXT, "command": f"env > {path}"})
    await stage.run(WRITE, "Ok.")
    names = {split(line)[0] for line in path.read_text().splitlines()}
    assert names.isdisjoint(secrets)
    assert names.issuperset(plain)


async def test_the_effort_is_a_variable_where_it_was_chosen(stage: Stage):
    path = stage.scripts / "env"
    stage.handle("Stop", {**TEXT, "command": f"echo ${{CLAUDE_EFFORT-unset}} >> {path}"})
    async with stage.agent("Ok.", "Ok.") as agent:
        session = await agent.new_session(stage.cwd)
        await agent.prompt(session, "Go")
        session.options["params"] = {"reasoning_effort": "high"}
        await agent.prompt(session, "Go")
    assert path.read_text() == "unset\nhigh\n"


@pytest.mark.parametrize(
    ("event", "has_file"), [("SessionStart", True), ("UserPromptSubmit", False), ("Stop", False)]
)
async def test_the_env_file_is_there_where_it_is_read(stage: Stage, event: str, has_file: bool):
    path = stage.scripts / "env"
    stage.handle(event, {**TEXT, "command": f"echo ${{CLAUDE_ENV_FILE:+there}} > {path}"})
    await stage.run("Ok.")
    assert path.read_text().strip() == ("there" if has_file else "")


def split(line: str) -> tuple[str, str, str]:
    return line.partition("=")


async def test_the_project_is_a_variable_a_placeholder_and_safe_in_odd_directories(tmp_path: Path):
    odd = tmp_path / "it's $(touch pwned) odd"
    odd.mkdir()
    stage = Stage(odd)
    out = stage.cwd / "out"
    stage.handle("PreToolUse", {**TEXT, "command": 'echo 1 >> "${CLAUDE_PROJECT_DIR}/out"'})
    stage.handle("PreToolUse", {**TEXT, "command": 'echo 2 >> "$CLAUDE_PROJECT_DIR"/out'})
    await stage.run(WRITE, "Ok.")
    assert sorted(out.read_text().split()) == ["1", "2"]
    assert not list(tmp_path.rglob("pwned"))


async def test_a_prefix_wraps_commands_for_the_shell(stage: Stage, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("CLAUDE_CODE_SHELL_PREFIX", "env WRAPPED=yes sh -c")
    out = stage.scripts / "out"
    stage.handle("PreToolUse", {**TEXT, "command": f"echo $WRAPPED > {out}"})
    await stage.run(WRITE, "Ok.")
    assert out.read_text() == "yes\n"


async def test_a_program_has_no_terminal_and_a_session_of_its_own(stage: Stage):
    out = stage.scripts / "out"
    command = f"(: < /dev/tty) 2> {out}; ps -o sid= -p $$ >> {out}; echo $$ >> {out}"
    stage.handle("PreToolUse", {**TEXT, "command": command})
    await stage.run(WRITE, "Ok.")
    error, sid, pid = out.read_text().splitlines()
    assert "/dev/tty" in error
    assert sid.strip() == pid


async def test_endless_output_is_read_to_a_limit_and_decides_nothing(stage: Stage):
    stage.handle("PreToolUse", {**TEXT, "command": "head -c 30000000 /dev/zero | tr '\\0' 'x'"})
    await stage.run(WRITE, "Ok.")
    assert (stage.cwd / "made.txt").exists()


async def test_a_child_that_holds_the_output_is_not_waited_for(stage: Stage, tmp_path: Path):
    pid = tmp_path / "pid"
    said = json.dumps(verdict("deny", "no"))
    command = f"sleep 1000 & echo $! > {pid}; echo '{said}'"
    stage.handle("PreToolUse", {**TEXT, "command": command})
    async with asyncio.timeout(50):
        await stage.run(WRITE, "Ok.")
    assert stage.told().endswith("no")
    os.kill(int(pid.read_text()), 9)


async def test_cancelling_a_run_kills_the_hook_with_its_children(stage: Stage, tmp_path: Path):
    pid = tmp_path / "pid"
    stage.handle("PreToolUse", {**TEXT, "command": f"sleep 1000 & echo $! > {pid}; wait"})
    async with stage.agent(WRITE) as agent:
        session = await agent.new_session(stage.cwd)
        running = asyncio.create_task(agent.prompt(session, "Go"))
        await until(lambda: pid.exists() and pid.read_text().strip())
        agent.cancel(session)
        assert (await running).stop_reason == "cancelled"
        await until(lambda: not is_alive(int(pid.read_text())))


async def test_a_directory_that_is_gone_is_replaced(stage: Stage):
    out = stage.scripts / "out"
    stage.handle("Stop", {**TEXT, "command": f"pwd > {out}"})
    async with stage.agent("Ok.") as agent:
        session = await agent.new_session(stage.cwd / "gone")
        await agent.run("Go", session=session)
    assert out.read_text().strip() == str(stage.cwd)


async def test_where_the_project_is_gone_too_programs_start_in_the_home_directory(
    stage: Stage, home: Path
):
    out = stage.scripts / "out"
    stage.handle("Stop", {**TEXT, "command": f"pwd > {out}"})
    gone = str(stage.cwd / "gone")
    async with stage.agent("Ok.") as agent:
        agent.remove("shell_hooks")
        agent.use(stage.hooks(project=gone))
        session = await agent.new_session(gone)
        await agent.run("Go", session=session)
    assert out.read_text().strip() == str(home)


async def test_the_same_handler_in_two_files_runs_once_and_as_strictly_as_either_says(
    stage: Stage,
):
    out = stage.scripts / "out"
    handler = {**TEXT, "command": f"echo ran >> {out}; exit 1"}
    stage.handle("PreToolUse", handler)
    stage.handle("PreToolUse", handler, matcher="Write", own=True)
    await stage.run(WRITE, "Ok.")
    assert out.read_text() == "ran\n"
    assert not (stage.cwd / "made.txt").exists()


@pytest.mark.parametrize(
    ("rule", "command", "expected"),
    [
        ("Bash(echo *)", "echo hi", True),
        ("Bash(rm *)", "echo hi", False),
        ("Bash(rm *)", "X=1 echo hi && rm -f none", True),
        ("Bash(rm *)", "echo $(rm -f none)", True),
        ("Bash(git push *)", "echo $HOME", True),
        ("Read(*)", "echo hi", False),
        ("((", "echo hi", True),
    ],
)
async def test_if_is_a_permission_rule_that_fails_towards_running(
    stage: Stage, rule: str, command: str, expected: bool
):
    out = stage.scripts / "out"
    stage.handle("PreToolUse", {**TEXT, "command": f"touch {out}", "if": rule})
    await stage.run(call("Bash", command=command), "Ok.")
    assert out.exists() == expected


async def test_once_is_ignored_in_settings_files(stage: Stage):
    seen = stage.on("PreToolUse", once=True)
    await stage.run(WRITE, WRITE, "Ok.")
    assert len(given(seen)) == 2


async def test_variables_of_the_env_file_are_there_in_later_commands_and_in_sub_agents(
    stage: Stage,
):
    command = """echo 'export ANSWER="4 2"' >> "$CLAUDE_ENV_FILE" """
    stage.handle("SessionStart", {**TEXT, "command": command})
    bash = call("Bash", command='echo "<$ANSWER>"')
    task = call("Agent", description="A task", prompt="Do it")
    await stage.run(bash, task, bash, "Done.", "Ok.", hooks=[SubagentsHook(())])
    for request in (1, 3):
        assert "<4 2>" in stage.told(request)


@pytest.mark.slow
async def test_the_status_message_is_shown_while_a_handler_takes_its_time(
    stage: Stage, tmp_path: Path
):
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    stage.on("PreToolUse", f"cat {gate} > /dev/null", statusMessage="Checking the call")
    async with stage.agent(WRITE, "Ok.") as agent:
        running = asyncio.create_task(agent.run("Go", cwd=stage.cwd, client=stage.person))
        await until(lambda: "Checking the call" in stage.person.notices)
        await asyncio.to_thread(gate.write_text, "go")
        await running
    assert stage.person.notices == "Checking the call"


@pytest.mark.parametrize(
    ("variable", "limits", "expected"),
    [
        (None, [None, None], [1.5, 1.5]),
        (None, [None, 20], [20, 20]),
        (None, [5, 90], [5, 60]),
        ("4000", [None, 20], [4, 4]),
    ],
)
def test_hooks_of_the_sessions_end_share_the_longest_time(
    monkeypatch: pytest.MonkeyPatch,
    variable: str | None,
    limits: list[float | None],
    expected: list[float],
):
    if variable is not None:
        monkeypatch.setenv("CLAUDE_CODE_SESSIONEND_HOOKS_TIMEOUT_MS", variable)
    handlers = [
        {**TEXT, "command": str(n), **({"timeout": limit} if limit else {})}
        for n, limit in enumerate(limits)
    ]
    hooks = ShellHooks([HookFile("f", {"SessionEnd": [{"hooks": handlers}]})])
    assert [entry.timeout for entry in hooks.entries] == expected
