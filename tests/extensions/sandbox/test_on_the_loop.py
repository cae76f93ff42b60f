"""The sandbox on the real loop: real commands in what this machine has, and what is said of them."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.extensions.sandbox.conftest import backend

from crow import Agent, Allow, ToolEnvironment
from crow.core.events import Event, Notice
from crow.core.ports.client import Files, PermissionRequest, Question
from crow.core.tools import ToolKind
from crow.extensions import SandboxHook
from crow.extensions.sandbox.mounts import PRIVATE, is_below
from crow.extensions.sandbox.probe import find_backend
from crow.keys import SANDBOX
from crow.project import SandboxSettings
from crow.testing import BuildAgent, ScriptedModel, call

OUT = {"dangerouslyDisableSandbox": True}
ELSEWHERE = Path(__file__).with_name("elsewhere.txt")
elsewhere = pytest.mark.skipif(
    is_below(str(ELSEWHERE), PRIVATE), reason="this clone lies where commands have their own files"
)
"""A file beside the project that its user could write; ``/tmp`` is a session's own."""


@dataclass
class Person:
    """A client that says yes to what it is asked."""

    asked: list[PermissionRequest] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    files: Files | None = None
    terminals: Any = None

    async def update(self, session_id: str, event: Event) -> None:
        if isinstance(event, Notice):
            self.notices.append(event.text)

    async def permission(self, session_id: str, request: PermissionRequest) -> str | None:
        self.asked.append(request)
        return "allow_once"

    async def ask(self, session_id: str, question: Question) -> Any:
        return question.default


@dataclass
class Played:
    """What came of some commands."""

    outputs: list[str]
    asked: list[str]
    notices: list[str]


Play = Callable[..., Any]


def bash(args: dict[str, Any]) -> Any:
    """A call of the model's."""
    return call("Bash", **args)


@pytest.fixture(autouse=True)
def on(build_agent: BuildAgent, monkeypatch: pytest.MonkeyPatch) -> None:
    """Switch the sandbox on, as it is where nobody says anything; `build_agent` switches it off."""
    del build_agent
    monkeypatch.delenv("CROW_SANDBOX")


@pytest.fixture
def held(on: None) -> None:
    """Skip where nothing on this machine holds the workspace ring."""
    found = find_backend()
    if not {"write", "protected", "network", "processes"} <= found.holds:
        pytest.skip(f"{found.name} does not hold the workspace ring on this machine")


@pytest.fixture
def project(home: Path, tmp_path: Path) -> Path:
    """A repository, beside a home with a key in it."""
    ELSEWHERE.unlink(missing_ok=True)
    folder = tmp_path / "project"
    (folder / ".git").mkdir(parents=True)
    (home / ".ssh").mkdir()
    (home / ".ssh/id_rsa").write_text("a private key")
    return folder


@pytest.fixture
def play(build_agent: BuildAgent, project: Path) -> Play:
    """Run commands in the whole agent, one after another."""

    async def playing(*commands: str | dict[str, Any], person: Person | None = None) -> Played:
        person = person or Person()
        given = [each if isinstance(each, dict) else {"command": each} for each in commands]
        async with build_agent(*map(bash, given), "done") as agent:
            session = await agent.new_session(str(project), client=person)
            await agent.prompt(session, "Go")
            outputs = [str(m.get("content")) for m in session.messages if m["role"] == "tool"]
            return Played(outputs, [each.reason for each in person.asked], person.notices)

    return playing


def settings(**sandbox: Any) -> None:
    """Let the user's settings say this of the sandbox."""
    path = Path.home() / ".crow/settings.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"sandbox": sandbox}))


@pytest.mark.usefixtures("held")
class TestInside:
    """What stays in the workspace ring."""

    async def test_commands_work_in_the_project_and_nobody_is_asked(
        self, play: Play, project: Path
    ):
        played = await play("echo hi > a; cat a", 'python3 -c \'open("b", "w").write("x")\'; ls')
        assert played == Played(["hi", "a\nb"], [], [])
        assert (project / "b").read_text() == "x"

    @elsewhere
    async def test_nothing_is_written_elsewhere_and_the_model_is_told_how_to_go_on(
        self, play: Play
    ):
        [output] = (await play(f'python3 -c \'open("{ELSEWHERE}", "w")\'')).outputs
        assert not ELSEWHERE.exists()
        assert output.endswith(
            f"[the sandbox's workspace ring refused access to {ELSEWHERE}; a retry fails too: write in "
            "the project or in $TMPDIR, or set dangerouslyDisableSandbox and give the reason in "
            "description]"
        )

    async def test_programs_of_the_path_are_found_in_tmp_too(
        self, play: Play, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ):
        program = tmp_path / "tools/bin/greet"
        program.parent.mkdir(parents=True)
        program.write_text("#!/bin/sh\ncat $(dirname $0)/../lib\n")
        program.chmod(0o755)
        (tmp_path / "tools/lib").write_text("hello")
        monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
        assert (await play("greet")).outputs == ["hello"]

    async def test_the_network_is_off_and_the_model_is_told(self, play: Play):
        [output] = (
            await play("python3 -c 'import socket; socket.getaddrinfo(\"x.org\", 1)'")
        ).outputs
        assert "[the sandbox's workspace ring refused the network" in output
        assert "do without it" in output

    async def test_a_command_that_fails_by_itself_is_no_refusal(self, play: Play):
        for output in (await play("false", "ls nowhere", "nosuchprogram", "grep x y z")).outputs:
            assert "sandbox" not in output

    async def test_keys_are_not_there_to_read_and_secrets_not_in_the_environment(
        self, play: Play, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.setenv("GITHUB_TOKEN", "ghp_secret")
        monkeypatch.setenv("PLAIN", "plain")
        key, environment = (
            await play("make -v >&-; cat ~/.ssh/id_rsa", "make -v >&-; env")
        ).outputs
        assert "a private key" not in key
        assert "ghp_secret" not in environment
        assert "PLAIN=plain" in environment

    async def test_what_is_secret_in_the_system_and_in_the_users_own_home_is_not_there_either(
        self, play: Play
    ):
        """The user's home is not what ``HOME`` says, here; for root there is more to hide."""
        shadow = Path("/etc/shadow")
        if not os.access(shadow, os.R_OK):
            pytest.skip("this user cannot read it anyway")
        first = shadow.read_text().splitlines()[0]
        seen, unasked = (await play("cat /etc/shadow", "make -v >&-; cat /etc/shadow")).outputs
        assert first not in seen
        assert first not in unasked

    async def test_a_variable_that_is_passed_by_name_is_there(
        self, play: Play, home: Path, monkeypatch: pytest.MonkeyPatch, project: Path
    ):
        monkeypatch.setenv("GITHUB_TOKEN", "ghp_secret")
        async with Agent(
            ScriptedModel(call("Bash", command="env"), "done"),
            hooks=[SandboxHook(SandboxSettings(passed=("GITHUB_TOKEN",)))],
        ) as agent:
            reply = await agent.run("Go", cwd=project)
        assert "GITHUB_TOKEN=ghp_secret" in str(reply.session.messages[2].get("content"))

    async def test_what_only_reads_has_little_of_the_environment(
        self, play: Play, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.setenv("PLAIN", "plain")
        reading, working = (await play("printenv PLAIN", "make -v >&-; printenv PLAIN")).outputs
        assert "plain" not in reading
        assert working == "plain"

    async def test_temporary_files_stay_for_the_session_and_no_longer(self, play: Play):
        where, kept = (
            await play("echo x > $TMPDIR/keep; echo $TMPDIR", "cat $TMPDIR/keep")
        ).outputs
        assert kept == "x"
        assert not Path(where).exists()

    async def test_a_protected_file_that_appears_is_taken_away_and_the_model_hears_of_it(
        self, play: Play, project: Path
    ):
        code = "import os; os.makedirs('.crow'); open('.crow/settings.json', 'w').write('{}')"
        [output] = (await play(f'python3 -c "{code}"')).outputs
        assert not (project / ".crow").exists()
        assert f"{project}/.crow" in output

    async def test_nothing_that_a_command_started_outlives_it(self, play: Play, project: Path):
        await play("setsid sh -c 'sleep 0.5; touch late' & echo started")
        await asyncio.sleep(1)
        assert not (project / "late").exists()

    async def test_what_deny_rules_keep_from_being_read_is_masked(self, play: Play, project: Path):
        (project / "sub").mkdir()
        (project / "sub/.env").write_text("SECRET=1")
        (project / "kept.txt").write_text("SECRET=2")
        path = Path.home() / ".claude/settings.json"
        path.parent.mkdir()
        path.write_text(
            json.dumps({"permissions": {"deny": ["Read(.env)", f"Read(/{project}/kept.txt)"]}})
        )
        code = "import pathlib; [print(p.read_text()) for p in pathlib.Path('.').rglob('*') if p.is_file()]"
        [output] = (await play(f'python3 -c "{code}"')).outputs
        assert "SECRET" not in output

    @elsewhere
    async def test_in_the_background_too(self, build_agent: BuildAgent, project: Path):
        script = [
            call("Bash", command=f"echo in; echo x > {ELSEWHERE}", run_in_background=True),
            call("BashOutput", bash_id="bash_1", wait=5000),
        ]
        async with build_agent(*script, "done") as agent:
            reply = await agent.run("Go", cwd=project)
        assert "Read-only file system" in str(reply.session.messages[4].get("content"))
        assert not ELSEWHERE.exists()

    async def test_two_calls_of_one_reply_have_rings_of_their_own(
        self, build_agent: BuildAgent, project: Path, tmp_path: Path
    ):
        outside = tmp_path / "out.txt"
        both = [
            bash({"command": f"touch {outside}; echo one", **OUT}),
            bash({"command": f"touch {outside}2; echo two"}),
        ]
        person = Person()
        async with build_agent(both, "done") as agent:
            session = await agent.new_session(str(project), client=person)
            await agent.prompt(session, "Go")
        assert outside.exists()
        assert not Path(f"{outside}2").exists()
        assert len(person.asked) == 1

    async def test_a_reading_command_cannot_write_though_somebody_takes_it_for_one(
        self, project: Path
    ):
        def before_tool() -> Allow:
            return Allow("it only reads, says who knows nothing", ring="reading")

        model = ScriptedModel(call("Bash", command="touch here"), "done")
        async with Agent(model, hooks=[SandboxHook(), before_tool]) as agent:
            reply = await agent.run("Go", cwd=project)
        assert "the sandbox's reading ring refused" in str(reply.session.messages[2].get("content"))
        assert not (project / "here").exists()

    async def test_a_model_that_plans_runs_what_it_likes_and_changes_nothing(
        self, play: Play, project: Path
    ):
        path = Path.home() / ".crow/settings.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps({"permissions": {"defaultMode": "plan"}}))
        writes = 'python3 -c \'print(6 * 7, flush=True); open("new", "w")\''
        played = await play("python3 -c 'print(6 * 7)'", writes, writes)
        assert played.outputs[0] == "42"
        assert played.outputs[1].endswith(
            f"[the sandbox's reading ring refused access to {project}/new: only $TMPDIR is written "
            "there; once more, the same command asks for the workspace ring]"
        )
        assert len(played.asked) == 1
        assert (project / "new").exists()

    async def test_readers_need_no_question_though_landlock_does_not_hold_the_workspace(
        self, play: Play, project: Path, monkeypatch: pytest.MonkeyPatch
    ):
        backend("landlock")
        monkeypatch.setenv("CROW_SANDBOX", "landlock")
        (project / "a").write_text("b\na\n")
        played = await play("awk '{print $1}' a | sort", "awk '{print > \"c\"}' a", "make x; true")
        assert played.outputs[0] == "a\nb"
        assert "reading ring refused" in played.outputs[1]
        assert not (project / "c").exists()
        assert len(played.asked) == 1

    async def test_a_terminal_of_the_clients_is_left_alone_for_it_could_not_be_held(
        self, play: Play
    ):
        class Terminals:
            async def create(self, *args: Any, **kwargs: Any) -> Any:
                raise AssertionError("nobody confines this")

        assert (await play("echo hi", person=Person(terminals=Terminals()))).outputs == ["hi"]


@pytest.mark.usefixtures("held")
class TestOutside:
    """What leaves it."""

    async def test_the_model_may_ask_and_the_user_sees_why(self, play: Play, tmp_path: Path):
        other = tmp_path / "other"
        wanted = {"command": f"echo x > {other}", "description": "Write the release notes", **OUT}
        played = await play(wanted)
        assert played.asked == ["it wants to run outside of the sandbox: Write the release notes"]
        assert other.read_text() == "x\n"

    async def test_the_question_names_the_command_and_where_it_would_run(self, play: Play):
        person = Person()
        await play({"command": "make -v", **OUT}, person=person)
        assert person.asked[0].title == "make -v  (outside the sandbox)"

    async def test_where_nothing_may_leave_the_model_is_not_told_of_a_way_out(
        self, build_agent: BuildAgent, project: Path
    ):
        settings(allowUnsandboxedCommands=False)
        commands = [call("Bash", command="touch /etc/crow-was-here")]
        async with build_agent(*commands, "done", cwd=project) as agent:
            reply = await agent.run("Go", cwd=project)
        model: Any = agent.llm
        assert "dangerouslyDisableSandbox" not in json.dumps(model.asked[0]["tools"])
        assert "or ask the user to run it" in str(reply.session.messages[2].get("content"))

    async def test_excluded_commands_run_outside_and_are_asked_about(
        self, play: Play, project: Path, tmp_path: Path
    ):
        settings(excludedCommands=["touch *"])
        played = await play(f"touch {tmp_path}/made")
        assert (tmp_path / "made").exists()
        assert len(played.asked) == 1


class TestWithout:
    """Where nothing holds, or nobody wants it."""

    async def test_a_machine_without_one_says_so_once_and_asks_as_ever(
        self, play: Play, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.setenv("CROW_SANDBOX", "nosuch")
        played = await play("make -v", "make -v")
        [loud] = played.notices
        assert loud.startswith(
            "NO SANDBOX: commands run with all that you may do; the sandbox nosu"
        )
        assert played.asked == ["no rule allows make -v"] * 2

    @pytest.mark.parametrize("wanted", ["none", "nosuch"])
    async def test_a_session_says_so_before_anything_runs(
        self, build_agent: BuildAgent, project: Path, monkeypatch: pytest.MonkeyPatch, wanted: str
    ):
        monkeypatch.setenv("CROW_SANDBOX", wanted)
        person = Person()
        async with build_agent(cwd=project) as agent:
            session = await agent.new_session(str(project), client=person)
            [loud] = person.notices
            await agent.new_session(str(project), client=person, parent=session)
        assert loud.startswith("NO SANDBOX: commands run with all that you may do; ")
        assert person.notices == [loud]

    async def test_what_an_earlier_process_has_found_is_known_at_the_start(
        self, build_agent: BuildAgent, project: Path, held: None
    ):
        person = Person()
        async with build_agent(cwd=project) as agent:
            session = await agent.new_session(str(project), client=person)
            sandbox = SANDBOX.get(session)
        assert sandbox is not None
        assert sandbox.line == find_backend().name
        assert person.notices == []

    async def test_where_it_is_required_no_command_runs(
        self, play: Play, project: Path, monkeypatch: pytest.MonkeyPatch
    ):
        settings(required=True)
        monkeypatch.setenv("CROW_SANDBOX", "nosuch")
        played = await play("echo hi")
        [loud] = played.notices
        assert loud.endswith(" No command will run.")
        assert played.outputs[0].startswith("sandbox.required is set, and no sandbox works here: ")
        assert played.asked == []

    @pytest.mark.parametrize("by", ["settings", "environment"])
    async def test_switched_off_it_is_as_if_it_was_not_there(
        self, build_agent: BuildAgent, project: Path, monkeypatch: pytest.MonkeyPatch, by: str
    ):
        if by == "settings":
            settings(enabled=False)
        else:
            monkeypatch.setenv("CROW_SANDBOX", "off")
        person = Person()
        async with build_agent(call("Bash", command="make -v"), "done", cwd=project) as agent:
            session = await agent.new_session(str(project), client=person)
            await agent.prompt(session, "Go")
        model: Any = agent.llm
        assert "dangerouslyDisableSandbox" not in json.dumps(model.asked[0]["tools"])
        assert [each.reason for each in person.asked] == ["no rule allows make -v"]
        assert person.notices == []

    async def test_a_bare_agent_has_none(self, project: Path, tmp_path: Path):
        model = ScriptedModel(call("Bash", command=f"echo x > {tmp_path}/out"), "done")
        await Agent(model).run("Go", cwd=project)
        assert (tmp_path / "out").read_text() == "x\n"

    async def test_the_users_switch_counts_for_the_session(
        self, play: Play, project: Path, build_agent: BuildAgent
    ):
        person = Person()
        async with build_agent(call("Bash", command="make -v"), "done", cwd=project) as agent:
            session = await agent.new_session(str(project), client=person)
            await agent.configure(session, sandbox=False)
            await agent.prompt(session, "Go")
        assert [each.reason for each in person.asked] == ["no rule allows make -v"]


async def said(build_agent: BuildAgent, project: Path) -> str:
    async with build_agent(cwd=project) as agent:
        return (await agent.run("/sandbox", cwd=project)).text


@pytest.mark.usefixtures("held")
async def test_the_command_tells_what_commands_run_in(build_agent: BuildAgent, project: Path):
    told = await said(build_agent, project)
    assert told.startswith(f"Commands run in a sandbox: {find_backend().name}.\n\n- reading: ")
    assert "no network" in told
    assert "Commands that stay inside need no question." in told


async def test_the_command_tells_where_there_is_none(
    build_agent: BuildAgent, project: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("CROW_SANDBOX", "nosuch")
    told = await said(build_agent, project)
    assert told.startswith("Commands run without a sandbox, with all that you may do: ")
    settings(required=True)
    told = await said(build_agent, project)
    assert told.startswith("No command runs: sandbox.required is set, and no sandbox works here: ")
    settings(enabled=False)
    told = await said(build_agent, project)
    where = Path.home() / ".crow/settings.json"
    assert told == (
        f"Commands run in nothing, with all that you may do: the sandbox is switched off ({where})."
    )


@pytest.mark.slow
@pytest.mark.usefixtures("held")
def test_nothing_of_a_back_end_that_is_known_is_imported_before_a_command_needs_it(tmp_path: Path):
    import subprocess
    import sys

    code = """
import asyncio, sys
from crow import build
from crow.testing import ScriptedModel
async def main():
    async with build(model=ScriptedModel("Hello.")) as agent:
        await agent.run("Hi", cwd=sys.argv[1])
asyncio.run(main())
print(*(name for name in sys.modules if name.startswith("crow.extensions.sandbox.")))
"""
    shown = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True
    )
    light = {f"crow.extensions.sandbox.{name}" for name in ("finder", "probe_cache", "session")}
    assert set(shown.stdout.split()) == light


@pytest.mark.usefixtures("held")
class TestEdits:
    """Settings that change while a session is open."""

    async def test_what_they_say_holds_for_the_next_call(
        self, build_agent: BuildAgent, project: Path
    ):
        (project / "plain.txt").write_text("SECRET=1")
        look = bash({"command": "python3 -c 'print(open(\"plain.txt\").read())'"})
        settings()
        async with build_agent(look, "one", look, "two", cwd=project) as agent:
            session = await agent.new_session(str(project))
            await agent.prompt(session, "Go")
            settings(filesystem={"denyRead": [f"{project}/plain.txt"]})
            await agent.prompt(session, "Go on")
            before, after = [str(m.get("content")) for m in session.messages if m["role"] == "tool"]
        assert "SECRET" in before
        assert "SECRET" not in after

    async def test_switched_off_in_between_commands_are_asked_about_again(
        self, build_agent: BuildAgent, project: Path
    ):
        person, look = Person(), bash({"command": "make -v"})
        settings()
        async with build_agent(look, "one", look, "two", cwd=project) as agent:
            session = await agent.new_session(str(project), client=person)
            await agent.prompt(session, "Go")
            assert person.asked == []
            settings(enabled=False)
            await agent.prompt(session, "Go on")
        assert [each.reason for each in person.asked] == ["no rule allows make -v"]


@pytest.mark.usefixtures("held")
class TestPrograms:
    """What no call starts."""

    async def test_commands_of_hooks_run_inside_where_that_is_wanted(
        self, build_agent: BuildAgent, project: Path, tmp_path: Path, home: Path
    ):
        path = Path.home() / ".crow/settings.json"
        path.parent.mkdir(exist_ok=True)
        command = f"touch inside; touch {tmp_path}/outside; exit 0"
        hooks = {
            "PostToolUse": [{"matcher": "LS", "hooks": [{"type": "command", "command": command}]}]
        }
        for inside in (True, False):
            path.write_text(json.dumps({"hooks": hooks, "sandbox": {"hooks": inside}}))
            async with build_agent(call("LS"), "done", cwd=project) as agent:
                await agent.run("Go", cwd=project)
            assert (project / "inside").exists()
            assert (tmp_path / "outside").exists() is not inside

    async def test_so_do_mcp_servers_with_what_their_descriptions_give_them(
        self, build_agent: BuildAgent, project: Path
    ):
        path = Path.home() / ".crow/settings.json"
        path.parent.mkdir(exist_ok=True)
        script = f"echo $SERVICE_TOKEN > inside; touch {ELSEWHERE}; exit 1"
        server = {"command": "sh", "args": ["-c", script], "env": {"SERVICE_TOKEN": "given"}}
        table = {"mcpServers": {"one": server}, "sandbox": {"mcpServers": True}}
        path.write_text(json.dumps({**table, "extensions": {"mcp": {"wait": 30}}}))
        async with build_agent("done", cwd=project) as agent:
            await agent.run("Go", cwd=project)
        assert (project / "inside").read_text() == "given\n"
        assert not ELSEWHERE.exists()


def permit(**permissions: Any) -> None:
    """Write the user's settings."""
    folder = Path.home() / ".claude"
    folder.mkdir()
    (folder / "settings.json").write_text(json.dumps({"permissions": permissions}))


@pytest.mark.usefixtures("held")
async def test_directories_that_settings_name_are_written_like_the_sessions_own(
    play: Play, tmp_path: Path
) -> None:
    beside = tmp_path / "beside"
    beside.mkdir()
    permit(additionalDirectories=[str(beside)])
    played = await play(f"echo made > {beside}/made; cat {beside}/made")
    assert (played.outputs, played.asked) == (["made"], [])
    assert (beside / "made").exists()


@pytest.mark.usefixtures("held")
async def test_what_settings_take_out_of_the_working_directories_is_not_written(
    play: Play, project: Path, tmp_path: Path
) -> None:
    beside = tmp_path / "beside"
    for folder in (project / "vendor", beside / "vendor", beside / "kept"):
        folder.mkdir(parents=True)
    permit(
        additionalDirectories=[str(beside)],
        workingDirectoriesExclude=["vendor", str(beside / "kept")],
    )
    await play(
        'python3 -c \'open("vendor/a", "w")\'',
        *(f"touch {folder}/a" for folder in (beside / "vendor", beside / "kept", project)),
    )
    assert [path.name for path in project.rglob("a")] == ["a"]
    assert list(beside.rglob("a")) == []


class PlainBash:
    """A tool in Bash's place that has what a tool must, and nothing else."""

    name = "Bash"
    description = "Runs a command."
    kind: ToolKind = "execute"

    @property
    def parameters(self) -> dict[str, Any]:
        """One command."""
        return {"type": "object", "properties": {"command": {"type": "string"}}}

    async def run(self, args: dict[str, Any], ctx: ToolEnvironment) -> str:
        """Say what would run."""
        return f"ran {args['command']}"


@pytest.mark.parametrize(("args", "said"), [({}, "ran make"), (OUT, "ran make")])
async def test_a_tool_in_bashs_place_needs_no_more_than_a_tool_must(
    project: Path, args: dict[str, Any], said: str
):
    model = ScriptedModel(call("Bash", command="make", **args), "done")
    async with Agent(model, tools=[PlainBash()], hooks=[SandboxHook()]) as agent:
        reply = await agent.run("Go", cwd=project, client=Person())
    assert reply.session.messages[2].get("content") == said
