"""A project's own scripts that its hooks and MCP servers run: part of its trust, and protected."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.app.conftest import Room, write

from crow.app.trust_summary import project_requests, summary
from crow.project.trust import distrust, is_trusted, scripts, trust
from crow.settings import load
from crow.testing import call


def hooked(project: Path, command: str, **more: Any) -> None:
    handler = {"type": "command", "command": command, **more}
    groups = [{"matcher": "Bash", "hooks": [handler]}]
    table = {"hooks": {"PreToolUse": groups}, "fileSuggestion": {"command": "./files.sh"}}
    write(project / ".claude/settings.json", table)


@pytest.mark.parametrize(
    ("command", "named"),
    [
        ('sh "$CLAUDE_PROJECT_DIR"/scripts/g.sh', ["scripts/g.sh"]),
        ('"${CLAUDE_PROJECT_DIR:-.}/scripts/g.sh" --fast', ["scripts/g.sh"]),
        ("./scripts/absent.sh", ["scripts/absent.sh"]),
        ("cat | scripts/g.sh > out.sh 2>/dev/null", ["scripts/g.sh"]),
        ("bash -c 'cd scripts && ./g.sh'", ["g.sh", "scripts/g.sh"]),
        ("FOO=1 sh g", ["g"]),
        ("node --require=./pre.js g", ["g", "pre.js"]),
        ("`pwd`/scripts/g.sh; $(git rev-parse --show-toplevel)/g", ["g", "scripts/g.sh"]),
        ("sh 'scripts/g.sh", ["scripts/g.sh"]),
        ("touch g && tee -a scripts/g.sh && cat notes.txt >> notes.txt", []),
        ("/bin/sh -c true; npx https://example.com/x.js", []),
    ],
)
def test_the_scripts_of_a_command_are_told_by_its_words(
    project: Path, command: str, named: list[str]
) -> None:
    for name in ("scripts/g.sh", "g", "notes.txt"):
        write(project / name, "true")
    hooked(project, command)
    assert sorted(str(path.relative_to(project)) for path in scripts(project)) == named


def test_trust_ends_with_a_script_of_a_hook_a_server_or_front_matter(
    project: Path, tmp_path: Path
) -> None:
    hooked(project, "python3", args=[f"{project}/hook.py", str(tmp_path / "elsewhere.py")])
    write(project / ".mcp.json", {"mcpServers": {"s": {"command": "node", "args": ["srv/i.js"]}}})
    write(
        project / ".claude/skills/it/SKILL.md",
        "---\nname: it\nhooks:\n  Stop:\n  - hooks:\n    - type: command\n"
        '      command: "sh \\"$CLAUDE_PROJECT_DIR\\"/stop.sh"\ndescription: other.sh\n---\n',
    )
    write(
        project / ".claude/agents/them.md",
        "---\nname: them\ndescription: x\nmcpServers:\n- s: {command: node, args: [./own.js]}\n---\nDo.\n",
    )
    write(project / ".crow/plugins/p/hooks/hooks.json", {"hooks": {"x": [{"command": "sh p.sh"}]}})
    for name in ("hook.py", "srv/i.js", "stop.sh", "p.sh", "own.js", "other.sh"):
        write(project / name, "1")
    trust(project)
    for name in ("hook.py", "srv/i.js", "stop.sh", "p.sh", "own.js"):
        before = project_requests(load(project))
        assert before == []
        write(project / name, "2")
        assert not is_trusted(project), name
        assert f"script: {name}" in project_requests(load(project))
        assert name in summary(load(project))
        trust(project)
    write(project / "other.sh", "2")
    assert is_trusted(project)
    distrust(project)
    assert "MCP server s: node ./own.js" in project_requests(load(project))


@pytest.mark.parametrize(
    "settings",
    [
        {"apiKeyHelper": "scripts/key.sh --now"},
        {"providers": {"mine": {"base_url": "http://x", "apiKeyHelper": "sh scripts/key.sh"}}},
        {"statusLine": {"type": "command", "command": "scripts/key.sh"}},
    ],
)
def test_trust_ends_with_a_script_that_settings_name_outside_of_hooks(
    project: Path, settings: Any
) -> None:
    write(project / ".crow/settings.json", settings)
    write(project / "scripts/key.sh", "1")
    trust(project)
    assert is_trusted(project)
    write(project / "scripts/key.sh", "2")
    assert not is_trusted(project)
    assert "script: scripts/key.sh" in project_requests(load(project))


@pytest.mark.parametrize("there", [True, False])
@pytest.mark.parametrize(
    "change",
    [
        call("Write", file_path="scripts/g.sh", content="echo worse >> seen"),
        call("Bash", command="echo 'echo worse >> seen' > scripts/g.sh"),
        call("Bash", command="cp mine.sh scripts/g.sh"),
    ],
)
async def test_no_model_writes_a_hooks_script_unasked(room: Room, change: Any, there: bool) -> None:
    write(room.project / "mine.sh", "echo worse >> seen")
    if there:
        write(room.project / "scripts/g.sh", "true")
    hooked(room.project, 'sh "$CLAUDE_PROJECT_DIR"/scripts/g.sh || true')
    trust(room.project)
    room.agent()
    session = await room.open()
    session.mode = "acceptEdits"
    seen = [call("Read", file_path="scripts/g.sh")] if there else []
    await room.do(*seen, call("Write", file_path="other.sh", content="x"), change)
    assert (room.project / "other.sh").exists()
    assert len(room.person.asked) == 1
    assert (room.project / "scripts/g.sh").exists() == there


@pytest.mark.parametrize("command", ["rm -r scripts", "mv scripts old"])
async def test_a_folder_with_a_hooks_script_does_not_go_away_unasked(
    room: Room, command: str
) -> None:
    write(room.project / "scripts/deep/g.sh", "true")
    hooked(room.project, "sh scripts/deep/g.sh")
    trust(room.project)
    session = await room.open()
    session.mode = "acceptEdits"
    await room.do(call("Bash", command=command))
    assert len(room.person.asked) == 1
    assert (room.project / "scripts/deep/g.sh").exists()


@pytest.mark.parametrize("command", ["cp -r new/. .", "cp -rT new ."])
async def test_a_copied_folder_brings_no_settings_unasked(room: Room, command: str) -> None:
    write(room.project / "new/.claude/settings.json", {"env": {"A": "b"}})
    session = await room.open()
    session.mode = "acceptEdits"
    await room.do(call("Bash", command=command))
    assert len(room.person.asked) == 1
    assert not (room.project / ".claude").exists()


async def test_a_script_that_somebody_changes_between_two_calls_does_not_run_for_the_second(
    room: Room, home: Path
) -> None:
    write(home / ".crow/settings.json", {"permissions": {"allow": ["Bash(touch *)"]}})
    script = write(room.project / "scripts/g.sh", "echo 1 >> seen")
    hooked(room.project, 'sh "$CLAUDE_PROJECT_DIR"/scripts/g.sh')
    trust(room.project)

    def edit(ctx: Any) -> None:
        write(script, "echo 2 >> seen")

    room.agent(hooks=[type("Edit", (), {"after_turn": staticmethod(edit)})()])
    await room.do(call("Bash", command="touch a"), call("Bash", command="touch b"))
    assert (room.project / "b").exists()
    assert (room.project / "seen").read_text() == "1\n"
    assert "has changed since it was trusted (scripts/g.sh): only its deny" in room.person.told


async def test_a_change_that_ends_trust_is_not_said_to_hold(room: Room) -> None:
    path = write(room.project / ".crow/settings.json", {"permissions": {"deny": ["WebFetch"]}})
    trust(room.project)
    await room.do()
    write(path, {"env": {"A": "b"}})
    await room.do()
    assert "has changed since it was trusted (.crow/settings.json)" in room.person.told
    assert "holds from now on" not in room.person.told
    trust(room.project)
    await room.do()
    distrust(room.project)
    await room.do()
    assert f"{room.project} is not trusted any more" in room.person.told
