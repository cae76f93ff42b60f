"""``crow hooks list`` and ``crow hooks test``: which settings hooks there are, and what they do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Crow, Here

from crow.testing.endpoint import Endpoint, answer

GUARD = "grep -q 'rm -rf' && { echo 'not that' >&2; exit 2; }; exit 0"


def write(path: Path, **hooks: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"hooks": hooks}), "utf-8")
    return path


def group(command: str, **more: Any) -> list[Any]:
    return [{"matcher": "Bash", "hooks": [{"type": "command", "command": command, **more}]}]


async def test_the_hooks_that_match_are_run_on_a_made_up_call(here: Here, home: Path) -> None:
    path = write(home / ".claude/settings.json", PreToolUse=group(GUARD))
    ask = ("hooks", "test", "PreToolUse", "--tool", "Bash", "--input")
    ended = await here(*ask, '{"command": "rm -rf /"}')
    assert ended.status == 0
    for line in (f"file: {path}", "exit status: 2", "stderr: not that", "Crow: blocked: not that"):
        assert line in ended.out
    assert '"tool_input": {"command": "rm -rf /"}' in ended.out

    first, last = (await here(*ask, '{"command": "ls"}', "--json")).events
    assert (first["exit_status"], first["outcome"]) == (0, "success")
    assert last == {"conclusion": ["goes on"]}

    other = await here("hooks", "test", "PreToolUse", "--tool", "Read")
    assert other.out == "Crow: no hook that is waited for matches\n"


async def test_events_without_a_tool_take_their_fields(here: Here, home: Path) -> None:
    script = 'sed \'s/.*"prompt":"\\([^"]*\\)".*/it says \\1/\''
    write(home / ".claude/settings.json", UserPromptSubmit=group(script))
    ended = await here("hooks", "test", "UserPromptSubmit", "--input", '{"prompt": "hello"}')
    assert "Crow: the model is told: it says hello" in ended.out


async def test_a_made_up_call_is_given_to_hooks_as_a_real_one_is(
    crow: Crow, here: Here, home: Path
) -> None:
    path = home / ".claude/settings.json"
    hooks = {"PreToolUse": [{"hooks": [{"type": "command", "command": "true"}]}]}
    path.parent.mkdir()
    mode = {"defaultMode": "acceptEdits"}
    path.write_text(json.dumps({"hooks": hooks, "permissions": mode}), "utf-8")
    ask = ("hooks", "test", "PreToolUse", "--tool", "Edit", "--json", "--input")
    given = (await here(*ask, '{"file_path": "src/a.py"}')).events[0]["input"]
    assert given["tool_input"]["file_path"] == str(crow.cwd / "src/a.py")
    assert given["permission_mode"] == "acceptEdits"


async def test_only_what_an_event_heeds_is_concluded(here: Here, home: Path) -> None:
    says = {"continue": False, "systemMessage": "look", "hookSpecificOutput": {}}

    async def concluded(event: str) -> list[str]:
        says["hookSpecificOutput"] = {"hookEventName": event, "additionalContext": "c"}
        hooks = [{"hooks": [{"type": "command", "command": f"echo '{json.dumps(says)}'"}]}]
        write(home / ".claude/settings.json", **{event: hooks})
        return (await here("hooks", "test", event, "--json")).events[-1]["conclusion"]

    assert await concluded("PostToolUse") == [
        "the run ends: no reason given",
        "the model is told: c",
        "the user is told: look",
    ]
    assert await concluded("Notification") == [
        "goes on: Notification passes over continue",
        "Notification passes over additionalContext",
        "the user is told: look",
    ]
    assert await concluded("SessionEnd") == [
        "goes on",
        "SessionEnd passes over additionalContext",
    ]


async def test_what_cannot_be_tried_is_said_in_one_line(here: Here, home: Path) -> None:
    assert "no settings file has hooks" in (await here("hooks", "test", "Stop")).complaint
    write(home / ".claude/settings.json", TeammateIdle=group("true"))
    assert "never fires" in (await here("hooks", "test", "TeammateIdle")).complaint
    for argv, said in (
        (("test",), "which event?"),
        (("test", "Stp"), "did you mean 'Stop'"),
        (("test", "Stop", "--input", "{"), "--input is no JSON"),
        (("test", "Stop", "--input", "[]"), "must be a JSON object"),
        (("tst", "Stop"), "did you mean 'test'"),
    ):
        ended = await here("hooks", *argv)
        assert (ended.status, said in ended.complaint) == (2, True), ended.err


async def test_every_settings_hook_is_listed_with_its_file_and_why_it_never_runs(
    here: Here, home: Path
) -> None:
    path = write(
        home / ".claude/settings.json",
        PreToolUse=group(GUARD, **{"if": "Bash(rm *)"}),
        TeammateIdle=group("true"),
    )
    own = write(home / ".crow/settings.json", PreToolUse=group("guard"))
    listed = await here("hooks", "list")
    lines = [" ".join(line.split()) for line in listed.out.splitlines()]
    (judged,) = [n for n, line in enumerate(lines) if "shell_hooks: PreToolUse" in line]
    assert lines[judged + 1 : judged + 3] == [
        f"PreToolUse (Bash) {GUARD} from {path}",
        f"PreToolUse (Bash) guard from {own}",
    ]
    assert "permissions: judge" in lines[judged + 3]
    assert "never runs: TeammateIdle never fires: there are no teams" in listed.out
    about = [e for e in (await here("hooks", "list", "PreToolUse", "--json")).events if "file" in e]
    found = {each["file"]: each for each in about if "handler" in each}
    assert set(found) == {str(path), str(own)}
    assert found[str(path)]["if"] == "Bash(rm *)"
    assert [found[str(file)]["on_failure"] for file in (path, own)] == ["continue", "block"]


async def test_what_is_wrong_in_a_file_is_said_where_somebody_looks_for_its_hooks(
    here: Here, home: Path
) -> None:
    broken = [{**group("true")[0], "matcher": "Bash("}]
    write(home / ".claude/settings.json", PreToolUze=group("true"), PostToolUse=broken)
    for action in (["list"], ["test", "PreToolUse"]):
        ended = await here("hooks", *action)
        assert "there is no hook event 'PreToolUze'; did you mean 'PreToolUse'?" in ended.err
        assert "the matcher 'Bash(' is no regular expression" in ended.err


async def test_a_hook_that_stands_in_two_files_is_listed_as_one_that_runs_once(
    here: Here, home: Path
) -> None:
    first = write(home / ".claude/settings.json", PreToolUse=group("true"))
    second = write(home / ".crow/settings.json", PreToolUse=[*group("true"), *group("false")])
    told = (await here("hooks", "list", "PreToolUse")).out
    assert told.count("runs once, with the one of") == 1
    lines = told.splitlines()
    [at] = [number for number, line in enumerate(lines) if "runs once" in line]
    with_one, listed = lines[at], lines[at - 1]
    assert {str(first), str(second)} == {with_one.split()[-1], listed.split()[-1]}
    events = (await here("hooks", "list", "PreToolUse", "--json")).events
    assert [each["runs_with"] for each in events if "runs_with" in each] == [with_one.split()[-1]]


async def test_a_projects_hooks_are_left_out_until_it_is_trusted(crow: Crow, here: Here) -> None:
    path = write(crow.cwd / ".claude/settings.json", PreToolUse=group(GUARD))
    listed = await here("hooks", "list")
    why = "the project is not trusted (crow trust)"
    assert f"{path}: hooks of PreToolUse are left out: {why}" in listed.out
    assert GUARD not in listed.out
    await here("trust", "--yes")
    assert GUARD in (await here("hooks", "list")).out
    switch = json.dumps({"disableAllHooks": True})
    listed = await here("hooks", "list", "PreToolUse", "--json", "--settings", switch)
    why = "disableAllHooks in command line"
    assert {"event": "PreToolUse", "source": str(path), "inactive": why} in listed.events


@pytest.mark.slow
async def test_setup_hooks_run_where_the_command_line_asks_for_it(crow: Crow, home: Path) -> None:
    log = home / "log"
    specific = {"hookEventName": "SessionStart", "initialUserMessage": "read README.md"}
    start = f"echo start >> {log}; echo '{json.dumps({'hookSpecificOutput': specific})}'"
    setup = f"grep -o 'init\\|maintenance' >> {log}"
    write(
        home / ".claude/settings.json",
        Setup=[{"hooks": [{"type": "command", "command": setup}]}],
        SessionStart=[{"hooks": [{"type": "command", "command": start}]}],
    )
    ended = await crow("run", "--init-only")
    assert (ended.status, ended.out, ended.err) == (0, "", "")
    assert log.read_text().split() == ["init", "start"]
    log.unlink()
    ended = await crow("run", "--maintenance", "--model", "rehearsal", "hello")
    assert log.read_text().split() == ["maintenance", "start"]
    assert ended.status == 0


async def test_a_hooks_first_message_is_answered_before_the_prompt(crow: Crow, home: Path) -> None:
    specific = {"hookEventName": "SessionStart", "initialUserMessage": "read README.md"}
    start = f"echo '{json.dumps({'hookSpecificOutput': specific})}'"
    handler = {"type": "command", "command": start}
    write(home / ".claude/settings.json", SessionStart=[{"hooks": [handler]}])
    ended = await crow("run", "--model", "rehearsal", "--json", "list files")
    calls = [event["name"] for event in ended.events if event["type"] == "tool_pending"]
    assert calls == ["Read", "LS"]


@pytest.mark.variants(1)
@pytest.mark.parametrize(
    ("script", "timeout", "done"),
    [
        ("sleep 0.5; echo done > ../kept", None, True),
        ("echo '{\"async\": true}'; sleep 0.5; echo done > ../kept", None, True),
        ("sleep 30; echo done > ../kept", 0.3, False),
    ],
)
async def test_a_hook_of_the_last_call_in_the_background_may_end_within_its_time(
    crow: Crow, endpoint: Endpoint, home: Path, script: str, timeout: float | None, done: bool
) -> None:
    handler: dict[str, Any] = {"type": "command", "command": script}
    handler |= {} if "async" in script else {"async": True}
    handler |= {"timeout": timeout} if timeout else {}
    (home / ".claude").mkdir()
    table = {"hooks": {"Stop": [{"hooks": [handler]}]}}
    (home / ".claude/settings.json").write_text(json.dumps(table), "utf-8")
    endpoint.play(answer("Ok."))
    ended = await crow("run", "Go")
    assert (ended.status, ended.out) == (0, "Ok.\n")
    assert (crow.cwd.parent / "kept").exists() == done
    assert ("was not done in time and is ended" in ended.err) != done
