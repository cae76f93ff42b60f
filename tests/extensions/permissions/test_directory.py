"""The directory that a call names to run in: judged as it is read, and paths start there."""

from __future__ import annotations

import pytest

from crow.extensions.permissions import check_case

NAMES = ["cwd", "workdir", "working_directory", "workingDirectory", "dir_path"]
SSH = ["Read(~/.ssh/**)"]


def decide(world, tool: str, args: dict, **options) -> str:
    return world.permissions(**options).judge(tool, world.fill(args), cwd=str(world.cwd)).decision


@pytest.mark.parametrize("name", NAMES)
def test_a_directory_outside_is_asked_about(world, name):
    assert decide(world, "Bash", {"command": "ls", name: "src"}) == "allow"
    assert decide(world, "Bash", {"command": "ls", name: "/etc"}) == "ask"
    assert decide(world, "Bash", {"command": "ls", name: "@TMP@/other"}) == "ask"
    assert decide(world, "Read", {"file_path": "README.md", name: "@TMP@/other"}) == "ask"
    assert decide(world, "Grep", {"pattern": "x", name: "../other"}) == "ask"
    opened = {"directories": (f"{world.top}/other",)}
    assert decide(world, "Bash", {"command": "ls", name: "../other"}, **opened) == "allow"


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("where", ["~/.ssh", "@HOME@/.ssh", "../home/.ssh", "src/../../home/.ssh"])
def test_a_denied_directory_is_denied_and_so_is_a_file_that_starts_there(world, name, where):
    calls = [
        ("Bash", {"command": "cat id_rsa", name: where}),
        ("Bash", {"command": "pwd", name: where}),
        ("Read", {"file_path": "id_rsa", name: where}),
        ("Glob", {"pattern": "*", name: where}),
        ("mcp__x__run", {"command": "cat id_rsa", name: where}),
    ]
    for tool, args in calls:
        assert decide(world, tool, args, allow=["Bash", "Read", "mcp__x"], deny=SSH) == "deny"
    above = {"command": "cat .ssh/id_rsa", name: "~"}
    assert decide(world, "Bash", above, allow=["Bash"], deny=SSH) == "deny"


def test_a_tool_that_a_rule_allows_may_run_anywhere_that_no_rule_speaks_of(world):
    assert decide(world, "mcp__x__run", {"cwd": "/srv"}, allow=["mcp__x"]) == "allow"
    assert decide(world, "Bash", {"command": "make", "cwd": "/srv"}, allow=["Bash"]) == "allow"


def test_what_a_directory_makes_worse_is_not_made_better_by_it(world):
    args = {"command": "rm -rf work", "cwd": ".."}
    assert decide(world, "Bash", args, mode="acceptEdits") == "ask"
    args = {"command": "touch x", "cwd": "../other"}
    assert decide(world, "Bash", args, mode="acceptEdits") == "ask"
    args = {"command": "cat ../other/x", "cwd": "../other"}
    assert decide(world, "Bash", args) == "ask"


def test_directories_that_an_untrusted_project_adds_do_not_count():
    def judged(**more) -> str:
        base = {"id": 1, "tool": "Read", "input": {"file_path": "{TMP}/x"}, "cwd": "{CWD}"}
        return check_case({**base, **more})["decision"]

    settings = {"permissions": {"additionalDirectories": ["{TMP}"]}}
    assert judged(project_settings=settings) == "allow"
    assert judged(project_settings=settings, trusted=False) == "ask"
    assert judged(additional_directories=["{TMP}"]) == "allow"
    project = {"rules_origin": "project", "additional_directories": ["{TMP}"]}
    assert judged(**project, trusted=True) == "allow"
    assert judged(**project, trusted=False) == "ask"
    user = {"rules_origin": "user", "additional_directories": ["{TMP}"]}
    assert judged(**user, trusted=False) == "allow"


@pytest.mark.parametrize(
    "field",
    [
        *({"cwd": 1}, {"cwd": {"path": "/"}}, {"cwd": ["/etc"]}, {"cd": True}, {"root": ["a"]}),
        *({"env": {"PATH": "."}}, {"env": "PATH=."}, {"env": {"NODE_ENV": 1}}, {"env": ["A=1"]}),
        *({"environment": {"LD_PRELOAD": "./x"}}, {"shell": "./sh"}, {"stdin": "rm -rf /"}),
    ],
)
def test_a_field_by_which_a_command_could_do_otherwise_is_asked_about(world, field):
    args = {"command": "ls", **field}
    for options in ({}, {"allow": ["Bash"]}, {"mode": "bypassPermissions"}):
        assert decide(world, "Bash", args, **options) == "ask"
    assert decide(world, "Bash", args, mode="dontAsk") == "deny"
    assert decide(world, "Bash", {**args, "command": "curl x"}, deny=["Bash(curl *)"]) == "deny"


@pytest.mark.parametrize(
    "field",
    [
        *({"cwd": None}, {"cwd": ""}, {"env": {}}, {"env": None}, {"env": {"NODE_ENV": "test"}}),
        *({"cd": "src"}, {"root": "src"}, {"timeout": 5}, {"description": "x"}, {"cwd": "src"}),
    ],
)
def test_a_field_that_changes_nothing_is_no_question(world, field):
    assert decide(world, "Bash", {"command": "ls", **field}) == "allow"


@pytest.mark.parametrize("name", ["cd", "root", "chdir", "working-directory"])
@pytest.mark.parametrize("path", ["..", "/etc", "file:///etc", "@HOME@/.ssh"])
def test_a_directory_is_judged_by_whatever_name_it_comes(world, name, path):
    assert decide(world, "Bash", {"command": "ls", name: path}) == "ask"
    denied = {"deny": ["Read(//etc/**)", "Read(~/.ssh/**)", "Read(../**)"], "allow": ["Bash"]}
    assert decide(world, "Bash", {"command": "make", name: path}, **denied) != "allow"
