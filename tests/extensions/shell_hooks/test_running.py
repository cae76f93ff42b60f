"""How a handler's program lives: its environment, its limits, its end, and life in the background."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.extensions.shell_hooks.conftest import Stage, given, specific, verdict
from tests.extensions.shell_hooks.test_traps import is_gone, until

from crow.extensions import ShellHooks, SubagentsHook
from crow.extensions.shell_hooks import File
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
        await until(lambda: is_gone(int(pid.read_text())))


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


KILLED = """
import asyncio, sys
from crow import Agent
from crow.extensions import ShellHooks
from crow.extensions.shell_hooks import File
from crow.testing import ScriptedModel

async def main():
    handler = {"type": "command", "command": sys.argv[1], "async": sys.argv[3] == "async"}
    hooks = ShellHooks([File("x", {"Stop": [{"hooks": [handler]}]})], directory=sys.argv[2])
    async with Agent(ScriptedModel("Ok."), hooks=[hooks], tools=[]) as agent:
        await agent.run("Go", cwd=sys.argv[2])
        await asyncio.sleep(60)

asyncio.run(main())
"""


@pytest.mark.parametrize("how", ["sync", "async"])
async def test_a_hook_dies_with_its_children_where_crow_is_killed(
    stage: Stage, tmp_path: Path, how: str
):
    pids = tmp_path / "pids"
    # it has its input, so Crow knows of it
    command = f"cat; sleep 60 & echo $! $$ >> {pids}.new; mv {pids}.new {pids}; wait"
    crow = subprocess.Popen(  # noqa: ASYNC220 - it only starts
        [sys.executable, "-c", KILLED, command, str(tmp_path), how]
    )
    with crow:
        await until(pids.exists)
        crow.kill()
    for pid in map(int, pids.read_text().split()):
        await until(lambda pid=pid: is_gone(pid))


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


# in the background


async def test_an_async_hook_is_not_waited_for_and_its_context_comes_with_the_next_turn(
    stage: Stage, tmp_path: Path
):
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    says = {**specific("PostToolUse", additionalContext="tests are green"), "decision": "block"}
    stage.on("PostToolUse", f"cat {gate} > /dev/null", says=says, **{"async": True})  # type: ignore[arg-type]
    async with stage.agent(WRITE, "Ok.", "Ok.") as agent:
        reply = await agent.run("Go", cwd=stage.cwd)
        assert "tests are green" not in stage.told()
        await asyncio.to_thread(gate.write_text, "go")
        await until(lambda: bool(reply.session.pending))
        await agent.run("And?", session=reply.session)
    assert "tests are green" in stage.told()


async def test_a_hook_in_the_background_may_take_longer_than_its_time_out(
    stage: Stage, tmp_path: Path
):
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    says = specific("Stop", additionalContext="it is late")
    stage.on("Stop", f"cat {gate} > /dev/null", says=says, timeout=0.01, **{"async": True})  # type: ignore[arg-type]
    async with stage.agent("Ok.", "Ok.") as agent:
        reply = await agent.run("Go", cwd=stage.cwd)
        await asyncio.to_thread(gate.write_text, "go")  # nobody reads it where the hook was ended
        await until(lambda: bool(reply.session.pending))
    assert "it is late" in str(reply.session.pending)


@pytest.mark.parametrize("how", ["asyncRewake", "asyncTimeout"])
async def test_a_hook_in_the_background_that_has_a_limit_is_ended_at_it(
    stage: Stage, tmp_path: Path, how: str
):
    pids = tmp_path / "pids"
    first = """echo '{"async": true, "asyncTimeout": 300}'; """ if how == "asyncTimeout" else ""
    command = f"{first}sleep 60 & echo $! $$ >> {pids}.new; mv {pids}.new {pids}; wait"
    limit = {"asyncRewake": True, "timeout": 0.3} if how == "asyncRewake" else {}
    stage.handle("Stop", {**TEXT, "command": command, **limit})
    async with stage.agent("Ok.") as agent:
        await agent.run("Go", cwd=stage.cwd)
        await until(pids.exists)
        for pid in map(int, pids.read_text().split()):
            await until(lambda pid=pid: is_gone(pid))


async def test_of_what_a_hook_in_the_background_says_the_sound_fields_count(stage: Stage):
    says = {**specific("Stop", additionalContext="read me", sessionTitle=7), "systemMessage": 7}
    stage.on("Stop", says=says, **{"async": True})  # type: ignore[arg-type]
    async with stage.agent("Ok.") as agent:
        reply = await agent.run("Go", cwd=stage.cwd, client=stage.person)
        await until(lambda: bool(reply.session.pending))
    assert "read me" in str(reply.session.pending)


async def test_a_hook_in_the_background_decides_nothing(stage: Stage):
    stage.on("PreToolUse", stderr="no", code=2, **{"async": True})  # type: ignore[arg-type]
    await stage.run(WRITE, "Ok.")
    assert (stage.cwd / "made.txt").exists()


async def test_async_rewake_wakes_the_idle_model_with_standard_error(stage: Stage):
    stage.on("Stop", "grep -q nothing", stderr="the build broke", code=2, asyncRewake=True)
    script = Path(stage.tables[False]["Stop"][0]["hooks"][0]["command"])
    text = script.read_text().replace("grep -q nothing", f"mkdir {stage.scripts}/once || exit 0")
    script.write_text(text)
    async with stage.agent("Ok.", "I will mend it.") as agent:
        reply = await agent.run("Go", cwd=stage.cwd)
        await until(lambda: len(stage.model.asked) == 2 and not reply.session.busy)
    assert "the build broke" in stage.told()
    assert "<system-reminder>" in stage.told()


async def test_a_hook_in_the_background_ends_with_the_session(stage: Stage, tmp_path: Path):
    pid = tmp_path / "pid"
    command = f"echo $$ > {pid}; exec sleep 60"
    stage.handle("Stop", {**TEXT, "command": command, "async": True})
    async with stage.agent("Ok.") as agent:
        await agent.run("Go", cwd=stage.cwd)
        await until(lambda: pid.exists() and pid.read_text().strip())
    await until(lambda: is_gone(int(pid.read_text())))


async def test_hooks_that_start_crow_inside_each_other_are_stopped(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("CROW_HOOK_DEPTH", "3")
    stage.on("Stop")
    reply = await stage.run()
    assert reply.stop_reason == "refusal"
    assert "3 times inside each other" in reply.detail


# other kinds of handler


class Server:
    """Answers every request with the same bytes, and keeps what it was asked."""

    def __init__(self) -> None:
        self.answer = b"{}"
        self.status = "200 OK"
        self.asked: list[str] = []
        self.hangs = False

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        length = int(head.lower().partition("content-length: ")[2].split()[0])
        self.asked.append(head + (await reader.readexactly(length)).decode())
        if self.hangs:
            await reader.read()  # until the client has had enough
            writer.close()
            return
        size = len(self.answer)
        top = f"HTTP/1.1 {self.status}\r\ncontent-length: {size}\r\nconnection: close\r\n\r\n"
        writer.write(top.encode() + self.answer)
        await writer.drain()
        writer.close()


@pytest.fixture
async def server() -> Any:
    server = Server()
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    server.url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/hook"  # type: ignore[attr-defined]
    async with listening:
        yield server


async def test_a_server_is_asked_with_the_input_and_only_the_allowed_variables(
    stage: Stage, server: Any, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("HOOK_TOKEN", "t0ken")
    monkeypatch.setenv("OTHER", "secret")
    server.answer = json.dumps(verdict("deny", "says the server")).encode()
    headers = {"Authorization": "Bearer ${HOOK_TOKEN}", "X-Other": "[$OTHER]"}
    handler = {"type": "http", "url": server.url, "headers": headers}
    stage.handle("PreToolUse", {**handler, "allowedEnvVars": ["HOOK_TOKEN"]})
    await stage.run(WRITE, "Ok.")
    assert stage.told().endswith("says the server")
    head, _, body = server.asked[0].partition("\r\n\r\n")
    assert "authorization: Bearer t0ken" in head.replace("Authorization", "authorization")
    assert "[]" in head
    assert "secret" not in head
    assert json.loads(body)["tool_name"] == "Write"


async def test_headers_have_only_variables_that_both_lists_allow(
    stage: Stage, server: Any, monkeypatch: pytest.MonkeyPatch
):
    for name in ("ONE", "TWO", "THREE"):
        monkeypatch.setenv(name, f"value-{name}")
    handler = {"type": "http", "url": server.url, "headers": {"X-All": "[$ONE][$TWO][$THREE]"}}
    handler["allowedEnvVars"] = ["ONE", "TWO"]
    files = [File("f", {"PreToolUse": [{"hooks": [handler]}]})]
    hooks = ShellHooks(files, directory=stage.state, variables=["TWO", "THREE"])
    await stage.run(WRITE, "Ok.", hooks=[hooks])
    [asked] = server.asked
    assert "value-TWO" in asked
    assert "value-ONE" not in asked
    assert "value-THREE" not in asked


@pytest.mark.parametrize(
    ("status", "answer", "notice"),
    [
        ("200 OK", b"", ""),
        ("204 No Content", b"", ""),
        ("200 OK", b"plain", "no JSON object"),
        ("200 OK", b'["deny"]', "no JSON object"),
        ("403 Forbidden", b'{"decision": "block"}', "HTTP status 403"),
        ("200 OK", b"{broken}", "no JSON"),
    ],
)
async def test_no_status_of_a_server_blocks(
    stage: Stage, server: Any, status: str, answer: bytes, notice: str
):
    server.status, server.answer = status, answer
    stage.handle("PreToolUse", {"type": "http", "url": server.url})
    await stage.run(WRITE, "Ok.")
    assert (stage.cwd / "made.txt").exists()
    assert notice in stage.person.notices
    assert bool(notice) == bool(stage.person.notices)


async def test_a_server_that_hangs_is_given_up(stage: Stage, server: Any):
    server.hangs = True
    stage.handle("PreToolUse", {"type": "http", "url": server.url, "timeout": 0.2})
    await stage.run(WRITE, "Ok.")
    assert "took longer than 0.2 s" in stage.person.notices


@pytest.mark.parametrize(
    ("event", "verdict_of_model", "script", "expected"),
    [
        ("PreToolUse", {"ok": True}, [WRITE], "end_turn"),
        ("PreToolUse", {"ok": False, "reason": "bad idea"}, [WRITE], "hook_stopped"),
        ("Stop", {"ok": False, "reason": "tests are missing"}, ["Ok."], "end_turn"),
        ("Stop", {"ok": False, "reason": "never", "impossible": True}, ["Ok."], "end_turn"),
        ("UserPromptSubmit", {"ok": False, "reason": "no"}, [], "refusal"),
    ],
)
async def test_a_prompt_hook_lets_a_model_judge(
    stage: Stage, event: str, verdict_of_model: Any, script: list[Any], expected: str
):
    stage.handle(event, {"type": "prompt", "prompt": "Is it fine? $ARGUMENTS costs \\$1"})
    goes_on = event == "Stop" and "impossible" not in verdict_of_model
    more = ["Done.", '{"ok": true}'] if goes_on else []
    more += ["Ok."] if verdict_of_model["ok"] else []
    before, after = ([], script) if event == "UserPromptSubmit" else (script, [])
    reply = await stage.run(*before, json.dumps(verdict_of_model), *after, *more)
    assert reply.stop_reason == expected
    asked = [m for a in stage.model.asked for m in a["messages"] if "Is it fine?" in str(m)]
    assert f'"hook_event_name":"{event}"' in str(asked[0])
    assert "costs $1" in str(asked[0])
    if goes_on:
        assert "tests are missing" in stage.told(2)


async def test_continue_on_block_lets_a_prompt_hook_deny_without_ending_the_turn(stage: Stage):
    handler = {"type": "prompt", "prompt": "Fine?", "continueOnBlock": True}
    stage.handle("PreToolUse", handler)
    await stage.run(WRITE, 'No: {"ok": false, "reason": "bad idea"}', "Ok.")
    assert stage.told().endswith("bad idea")


async def test_a_model_that_answers_no_verdict_decides_nothing(stage: Stage):
    stage.handle("PreToolUse", {"type": "prompt", "prompt": "Fine?"})
    await stage.run(WRITE, "I think so.", "Ok.")
    assert (stage.cwd / "made.txt").exists()
    assert "no verdict" in stage.person.notices


async def test_a_tool_of_a_server_is_called_with_values_of_the_input(stage: Stage):
    from crow import tool

    asked: list[Any] = []

    @tool(name="mcp__guard__check")
    def check(path: str, n: int) -> str:
        """Check."""
        asked.append((path, n))
        return json.dumps(verdict("deny", "says the guard"))

    given_input = {"path": "at ${tool_input.text}!", "n": 1}
    handler = {"type": "mcp_tool", "server": "guard", "tool": "check", "input": given_input}
    stage.handle("PreToolUse", handler, matcher="echo")

    @tool(name="echo")
    def echo(text: str) -> str:
        """Echo."""
        return text

    await stage.run(call("echo", text="home"), "Ok.", tools=[check, echo])
    assert asked == [("at home!", 1)]
    assert stage.told().endswith("says the guard")


@pytest.mark.parametrize(
    ("answer", "wish", "runs"),
    [
        ("fine by me", {}, True),
        ("fine by me", {"onFailure": "block"}, False),
        ("fine by me", {"onFailure": "continue"}, True),
        ("{}", {"onFailure": "block"}, True),
    ],
)
async def test_an_answer_of_a_tool_in_plain_text_is_a_failure_where_failures_count(
    stage: Stage, answer: str, wish: Any, runs: bool
):
    from crow import tool

    @tool(name="mcp__guard__check")
    def check() -> str:
        """Check."""
        return answer

    @tool(name="echo")
    def echo() -> str:
        """Echo."""
        return "echoed"

    stage.handle("PreToolUse", {"type": "mcp_tool", "server": "guard", "tool": "check", **wish})
    await stage.run(call("echo"), "Ok.", tools=[check, echo])
    assert ("echoed" in stage.told()) == runs


async def test_a_tool_of_a_server_is_not_missed_when_the_session_begins(stage: Stage):
    handler = {"type": "mcp_tool", "server": "guard", "tool": "check"}
    stage.handle("SessionStart", handler)
    await stage.run("Ok.")
    assert stage.person.notices == ""
    stage.handle("Stop", handler)
    await stage.run("Ok.")
    assert "'guard': it is not connected" in stage.person.notices


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
    hooks = ShellHooks([File("f", {"SessionEnd": [{"hooks": handlers}]})])
    assert [entry.timeout for entry in hooks.entries] == expected
