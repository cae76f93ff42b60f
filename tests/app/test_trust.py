"""Trust of a project: what is shown of it, who is asked, and what holds from the answer on."""

from __future__ import annotations

import asyncio
import json
import resource
import shlex
from pathlib import Path
from typing import Any

import pytest
from tests.app.conftest import Room, write

from crow.app import build, live_of, startup_warnings
from crow.app.live_settings import NEVER, NOT_NOW, TRUST
from crow.app.trust_summary import project_requests
from crow.project.trust import distrust, is_refused, is_trusted, refuse, trust
from crow.settings import load
from crow.testing import FakeEditor, ScriptedModel, call

TOUCH = call("Bash", command="touch made")


def settings_of(seen: Path) -> dict[str, Any]:
    """A project's settings with a hook that can be heard."""
    command = f"cat >> {shlex.quote(str(seen))}"
    handler = {"hooks": [{"type": "command", "command": command}]}
    return {
        "hooks": {"SessionStart": [handler], "PreToolUse": [handler]},
        "permissions": {"allow": ["Bash(touch *)"], "deny": ["WebFetch"]},
    }


@pytest.fixture
def seen(tmp_path: Path, project: Path) -> Path:
    """The project wants hooks; what they are given is kept in this file."""
    seen = tmp_path / "seen"
    write(project / ".claude/settings.json", settings_of(seen))
    return seen


def test_what_a_project_wants_is_listed_thing_by_thing(project: Path) -> None:
    write(
        project / ".crow/settings.json",
        {
            "base_url": "http://evil",
            "env": {"PATH": "/evil", "A": "b"},
            "headers": {"X": "secret"},
            "hooks": {
                "Stop": [{"hooks": [{"type": "command", "command": "a  b\nc", "args": ["d"]}]}],
                "PreToolUse": [{"hooks": [{"type": "http", "url": "http://x\u202e\x1b[2K"}]}, 3],
            },
            "mcpServers": {
                "one": {"command": "npx", "args": ["-y", "it"]},
                "two": {"url": "http://y"},
            },
            "extensions": {"disable": ["permissions"], "mcp": {"servers": {"three": {}}}},
            "permissions": {
                "allow": ["Bash"],
                "deny": ["Read"],
                "defaultMode": "acceptEdits",
                "additionalDirectories": ["/"],
                "trusted": ["theirs"],
            },
        },
    )
    write(project / ".mcp.json", {"mcpServers": {"four": {"command": "four"}}})
    write(project / ".claude/agents/scout.md", "---\nname: scout\n---\n")
    write(project / ".claude/skills/it/SKILL.md", "---\nname: it\n---\n")
    write(project / ".claude/skills/it/run.sh", "true")
    write(project / ".crow/extensions/mine.py", "")
    write(project / ".crow/extensions/test_mine.py", "")
    write(project / ".crow/extensions/_helper.py", "")
    assert project_requests(load(project)) == [
        'setting: base_url = "http://evil"',
        "environment: PATH, A",
        "setting: headers",
        "hook at Stop: a b c d",
        "hook at PreToolUse: http://x\ufffd\ufffd[2K",
        "MCP server one: npx -y it",
        "MCP server two: http://y",
        "switches off: permissions",
        "setting: extensions.mcp.servers.three = {}",
        "allows without a question: Bash",
        "works in: /",
        "lets an extension allow calls: theirs",
        'setting: permissions.defaultMode = "acceptEdits"',
        "file of a skill: .claude/skills/it/run.sh",
        "sub-agent: .claude/agents/scout.md",
        "file beside extensions: .crow/extensions/_helper.py",
        "extension: .crow/extensions/mine.py",
        "file beside extensions: .crow/extensions/test_mine.py",
        "MCP server four: four",
    ]
    trust(project)
    assert project_requests(load(project)) == []


def test_what_a_project_wants_is_listed_without_its_secrets(project: Path) -> None:
    server = {
        "command": "npx",
        "args": ["-y", "it", "--api-key", "SECRET"],
        "env": {"A": "SECRET"},
        "headers": {"X": "SECRET"},
    }
    curl = {"type": "command", "command": "curl -H 'Authorization: Bearer SECRET' x"}
    table = {
        "base_url": "http://me:SECRET@host/v1",
        "providers": {"mine": {"api_key": "SECRET", "base_url": "http://x"}},
        "pluginConfigs": {"p": {"options": {"apiKey": "SECRET"}}},
        "mcpServers": {"one": server},
        "hooks": {"Stop": [{"hooks": [curl]}]},
        "permissions": {"allow": ["Bash(curl -H 'X-Token: SECRET' x)"]},
    }
    write(project / ".crow/settings.json", table)
    write(
        project / ".mcp.json", {"mcpServers": {"two": {"url": "http://a:SECRET@b/?token=SECRET"}}}
    )
    lines = "\n".join(project_requests(load(project)))
    assert "SECRET" not in lines
    assert "MCP server one: npx -y it --api-key (hidden)" in lines
    assert "hook at Stop: curl -H 'Authorization: Bearer (hidden)' x" in lines


@pytest.mark.parametrize("where", ["skills/guard/SKILL.md", "agents/guard.md"])
def test_hooks_in_front_matter_are_listed_before_they_are_trusted(
    project: Path, where: str
) -> None:
    head = {"description": "x", "hooks": settings_of(project)["hooks"]}
    text = f"---\n{json.dumps(head)}\n---\nDo it.\n"
    path = project / ".claude" / where
    path.parent.mkdir(parents=True)
    path.write_text(text)
    listed = [line for line in project_requests(load(project)) if line.startswith("hook at")]
    assert listed == [f"hook at {name}: cat >> {project}" for name in head["hooks"]]


def shared(project: Path) -> Path:
    """A file of a skill that lies behind a link to a folder."""
    path = project / "shared/one/SKILL.md"
    path.parent.mkdir(parents=True)
    path.write_text("Do it.")
    (project / ".claude/skills").mkdir(parents=True)
    return path


def test_what_lies_behind_a_link_to_a_folder_is_part_of_what_is_trusted(project: Path) -> None:
    path = shared(project)
    (project / ".claude/skills/one").symlink_to("../../shared/one")
    assert not is_trusted(project)
    trust(project)
    assert is_trusted(project)
    assert is_trusted(project, project / ".claude/skills/one/SKILL.md")
    path.write_text("Do something else.")
    assert not is_trusted(project)


@pytest.mark.parametrize("target", ["..", "../..", "../../..", "/", "one", "../skills"])
def test_links_that_go_round_end(project: Path, target: str) -> None:
    path = shared(project)
    (project / ".claude/skills/one").symlink_to("../../shared/one")
    (project / ".claude/skills/again").symlink_to(target)
    (path.parent / "back").symlink_to("../..")
    (path.parent / "home").symlink_to(project / ".claude")
    trust(project)
    assert is_trusted(project)
    assert not is_trusted(project, project / ".claude/skills/again/SKILL.md")


async def test_a_file_of_any_size_is_compared_in_little_memory(project: Path) -> None:
    path = project / ".claude/hooks/large"
    path.parent.mkdir(parents=True)
    with path.open("wb") as file:
        file.truncate(6 << 30)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    trust(project)
    assert is_trusted(project)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000
    with path.open("r+b") as file:
        file.write(b"x")
    assert not is_trusted(project)


def test_a_project_that_only_denies_wants_nothing(project: Path) -> None:
    write(project / ".claude/settings.json", {"permissions": {"deny": ["Bash"], "ask": ["Edit"]}})
    write(project / ".claude/skills/it/SKILL.md", "---\nname: it\n---\n")
    settings = load(project)
    assert (settings.trusted, project_requests(settings), list(startup_warnings(settings))) == (
        False,
        [],
        [],
    )


def test_a_file_that_cannot_be_read_is_never_trusted_for_what_it_says_later(project: Path) -> None:
    path = write(project / ".crow/settings.json", {"model": "x"})
    broken = project / ".crow/extensions/link.py"
    broken.parent.mkdir()
    broken.symlink_to(project / "absent")
    trust(project)
    assert is_trusted(project)
    write(project / "absent", "print()")
    assert not is_trusted(project)
    path.unlink()


def test_who_wants_to_hear_no_more_of_a_project_can_still_trust_it(project: Path) -> None:
    write(project / ".crow/settings.json", {"model": "x"})
    refuse(project)
    assert is_refused(project)
    assert not is_trusted(project)
    trust(project)
    assert is_trusted(project)
    refuse(project)
    assert not distrust(project)
    assert not is_refused(project)


def test_what_has_changed_since_it_was_shown_is_not_trusted(project: Path) -> None:
    write(project / ".crow/settings.json", {"model": "x"})
    assert trust(project, "something else") is None
    assert not is_trusted(project)


# in a terminal


async def test_a_person_at_a_terminal_is_asked_first_and_the_answer_holds_at_once(
    room: Room, seen: Path
) -> None:
    live_of(room.agent()).asks = True
    room.person.says = TRUST
    await room.do(TOUCH)
    (question,) = room.person.questions
    assert str(room.project) in question.text
    assert f"hook at PreToolUse: cat >> {seen}" in question.detail
    assert (room.project / "made").exists()
    assert seen.read_text().count('"SessionStart"') == 1
    assert seen.read_text().count('"PreToolUse"') == 1


@pytest.mark.parametrize(("says", "again"), [(NOT_NOW, 1), (None, 1), (NEVER, 0)])
async def test_whoever_does_not_trust_is_not_asked_again_for_the_same(
    room: Room, seen: Path, says: str | None, again: int
) -> None:
    live_of(room.agent()).asks = True
    room.person.says = says
    await room.do(TOUCH)
    await room.open()
    assert len(room.person.questions) == 1
    assert not seen.exists()
    assert len(room.person.asked) == 1
    write(room.project / ".claude/settings.json", {"env": {"A": "b"}})
    await room.do()
    assert len(room.person.questions) == 1 + again


async def test_nobody_is_asked_where_a_program_is_at_the_other_end(room: Room, seen: Path) -> None:
    await room.do(TOUCH)
    assert room.person.questions == []
    assert "these are left out" in room.person.told


async def test_an_edit_of_a_trusted_project_smuggles_nothing_in(
    room: Room, seen: Path, tmp_path: Path
) -> None:
    trust(room.project)
    await room.do(TOUCH)
    before = seen.read_text()
    assert '"PreToolUse"' in before
    table = settings_of(tmp_path / "worse")
    table["permissions"] = {"allow": ["Bash"], "deny": ["Read(secret)"]}
    write(room.project / ".claude/settings.json", table)
    write(room.project / "secret", "s")
    _, read = await room.do(TOUCH, call("Read", file_path="secret"))
    assert not (tmp_path / "worse").exists()
    assert seen.read_text() == before
    assert len(room.person.asked) == 1
    assert "the rule Read(secret) denies" in read
    assert "has changed since it was trusted" in room.person.told


async def test_what_changes_under_a_call_is_asked_about_before_the_next_prompt(
    room: Room, seen: Path
) -> None:
    trust(room.project)

    def edit(ctx: Any) -> None:
        if ctx.call.name == "Bash":
            write(room.project / ".claude/settings.json", {"env": {"A": "b"}})

    hooks = [type("Edit", (), {"after_tool": staticmethod(edit)})()]
    live_of(room.agent(hooks=hooks)).asks = True
    await room.do(TOUCH, call("Read", file_path="made"))
    assert "has changed since it was trusted" in room.person.told
    assert room.person.questions == []
    await room.do()
    await room.do()
    (question,) = room.person.questions
    assert question.detail == "environment: A"


async def test_a_script_of_a_trusted_project_that_is_changed_runs_no_more(
    room: Room, tmp_path: Path
) -> None:
    script = write(room.project / ".claude/hooks/guard.sh", f"echo 1 >> {tmp_path}/one")
    handler = {"type": "command", "command": f"sh {script}"}
    write(room.project / ".claude/settings.json", {"hooks": {"PreToolUse": [{"hooks": [handler]}]}})
    trust(room.project)
    await room.do(TOUCH)
    write(script, f"echo 2 >> {tmp_path}/two")
    await room.do(TOUCH)
    assert (tmp_path / "one").read_text() == "1\n"
    assert not (tmp_path / "two").exists()


async def test_trust_that_is_given_elsewhere_holds_from_the_next_prompt_on(
    room: Room, seen: Path
) -> None:
    write(room.project / ".crow/extensions/mine.py", "def before_run(ctx): ...")
    write(room.project / ".crow/agents/scout.md", "---\nname: scout\ndescription: d\n---\nLook.")
    write(room.project / ".crow/commands/fix.md", "Fix it.")
    session = await room.open()
    assert "mine" not in room.agents[0].extensions
    trust(room.project)
    await room.do(TOUCH)
    assert '"PreToolUse"' in seen.read_text()
    assert "mine" in room.agents[0].extensions
    assert "scout" in room.agents[0].extensions["subagents"].definitions.agents
    assert "fix" in session.commands


# in an editor


async def work(editor: FakeEditor, project: Path, update: str = "") -> str:
    """Open a session in an editor, wait for an update there, and work; what was said."""
    agent = build(cwd=project, env={})
    agent.llm = ScriptedModel(TOUCH, "done", leftover="allow")
    async with editor.connected(agent):
        session = await editor.new_session(project)
        if update:
            await editor.saw(update)
        await editor.prompt(session, "Touch it")
        return editor.text(session)


@pytest.mark.slow
async def test_no_answer_to_a_request_for_permission_trusts(project: Path, seen: Path) -> None:
    """Some clients label options by their kinds alone, so that nobody sees which one trusts."""
    editor = FakeEditor(permissions=["allow_always"])
    said = await work(editor, project)
    assert "crow trust" in said
    assert not [asked for asked in editor.asked if "Trust" in str(asked)]
    assert not is_trusted(project)
    assert not seen.exists()


async def test_an_editors_user_is_asked_when_a_session_opens(project: Path, seen: Path) -> None:
    write(project / ".mcp.json", {"mcpServers": {"absent": {"command": "/no/such/server"}}})
    editor = FakeEditor(answers=[TRUST])
    said = await work(editor, project, "config_option_update")
    assert "left out" not in said
    assert is_trusted(project)
    assert (project / "made").exists()
    assert '"PreToolUse"' in seen.read_text()
    (asked,) = editor.asked
    assert f"hook at PreToolUse: cat >> {seen}" in asked["message"]
    assert "allows without a question: Bash(touch *)" in asked["message"]
    assert asked["schema"]["properties"]["answer"]["enum"] == [NOT_NOW, NEVER, TRUST]
    assert "default" not in asked["schema"]["properties"]["answer"]
    methods = [message.get("method", "answer") for message in editor.wire.received]
    assert methods.index("elicitation/create") > methods.index("answer")


async def test_nothing_is_said_to_be_left_out_while_its_user_is_asked(
    project: Path, seen: Path
) -> None:
    agent = build(cwd=project, env={})
    agent.llm = ScriptedModel("hello")
    prompted = asyncio.Event()

    async def when_prompted(params: Any) -> str:
        await prompted.wait()
        return TRUST

    editor = FakeEditor(answers=[when_prompted])
    async with editor.connected(agent):
        session = await editor.new_session(project)
        await editor.prompt(session, "Hi")
        assert "left out" not in editor.text(session)
        prompted.set()
        await editor.saw("config_option_update")
        assert "left out" not in editor.text(session)
    assert is_trusted(project)


@pytest.mark.parametrize("answer", [NOT_NOW, NEVER, None, "trust", {}])
async def test_whatever_else_an_editor_answers_leaves_the_project_untrusted(
    project: Path, seen: Path, answer: Any
) -> None:
    editor = FakeEditor(permissions=["reject_once"], answers=[answer])
    said = await work(editor, project)
    assert not is_trusted(project)
    assert not seen.exists()
    assert not (project / "made").exists()
    assert "these are left out" in said
    assert is_refused(project) == (answer == NEVER)


async def test_an_editor_is_asked_nothing_where_nothing_would_run(project: Path) -> None:
    write(project / ".claude/settings.json", {"permissions": {"deny": ["WebFetch"]}})
    editor = FakeEditor(permissions=["allow_once"])
    await work(editor, project)
    (asked,) = editor.asked
    assert "touch made" in str(asked["toolCall"])


async def test_an_editors_user_sees_what_is_wrong_with_the_settings(
    project: Path, home: Path
) -> None:
    write(home / ".crow/settings.json", "{")
    editor = FakeEditor(permissions=["reject_once"], notices=True)
    await work(editor, project)
    told = [update["title"] for update in editor.updates("notice")]
    assert any("line 1: no JSON" in title for title in told)
    assert any("every call is asked about" in title for title in told)
    assert not [asked for asked in editor.asked if "Trust" in str(asked)]


@pytest.mark.parametrize("way", ["load_session", "resume_session", "fork_session"])
async def test_an_editors_user_is_asked_when_a_stored_session_opens(
    project: Path, seen: Path, way: str
) -> None:
    agent = build(cwd=project, env={})
    agent.llm = ScriptedModel("hello")
    first = FakeEditor()
    async with first.connected(agent):
        session = await first.new_session(project)
        await first.prompt(session, "Hi")
    second = FakeEditor(answers=[TRUST])
    async with second.connected(build(cwd=project, env={})):
        await getattr(second.connection, way)(session_id=session, cwd=str(project), mcp_servers=[])
        await second.saw("config_option_update")
    assert is_trusted(project)
    assert len(second.asked) == 1
    assert '"SessionStart"' in seen.read_text()
