"""What other agents call their tools, as rules know them."""

from __future__ import annotations

from typing import Any

import pytest

from crow.acp.proxy.tool_names import SHOWN, calls_of, requested, shown_input

Told = dict[str, Any]
DIFF = {"type": "diff", "path": "/p/a.py", "oldText": "a", "newText": "b"}


@pytest.mark.parametrize(
    "told, named",
    [
        # claude-agent-acp: the name came with the call's first update
        (
            {"_meta": {"claudeCode": {"toolName": "Bash"}}, "rawInput": {"command": "ls"}},
            [("Bash", {"command": "ls"}, True)],
        ),
        (
            {"name": "mcp__github__merge", "rawInput": {"number": 7}},
            [("mcp__github__merge", {"number": 7}, True)],
        ),
        (
            {"_meta": {"claudeCode": {"toolName": "WebFetch"}}, "rawInput": {"url": "https://a.b"}},
            [("WebFetch", {"url": "https://a.b"}, True)],
        ),
        # codex-acp: a command is a list, whatever kind it seems to be
        (
            {"kind": "read", "rawInput": {"command": ["bash", "-lc", "cat a"], "cwd": "/p"}},
            [("Bash", {"command": "cat a", "cwd": "/p"}, True)],
        ),
        (
            {"kind": "execute", "rawInput": {"command": ["rm", "a b"]}},
            [("Bash", {"command": "rm 'a b'"}, True)],
        ),
        (
            {
                "kind": "edit",
                "rawInput": {"changes": {"/p/a": {"update": {"move_path": "/p/b"}}, "/p/c": {}}},
            },
            [
                ("Edit", {"file_path": "/p/a"}, True),
                ("Edit", {"file_path": "/p/b"}, True),
                ("Edit", {"file_path": "/p/c"}, True),
            ],
        ),
        (
            {"rawInput": {"server": "gh", "tool": "merge", "arguments": {"number": 7}}},
            [("mcp__gh__merge", {"number": 7}, True)],
        ),
        # gemini: no arguments, the command is the title
        ({"kind": "execute", "title": "rm -rf x"}, [("Bash", {"command": "rm -rf x"}, False)]),
        (
            {"kind": "edit", "content": [DIFF], "locations": [{"path": "/p/a.py"}]},
            [("Edit", {"file_path": "/p/a.py"}, True)],
        ),
        ({"kind": "read", "locations": [{"path": "/p/a"}]}, [("Read", {"file_path": "/p/a"}, False)]),
        # nobody knows
        ({"kind": "think", "title": "Hm"}, [("unknown", {}, False)]),
        ({"name": "launch", "rawInput": {"at": "noon"}}, [("launch", {"at": "noon"}, False)]),
        ({}, [("unknown", {}, False)]),
    ],
)  # fmt: skip
def test_a_call_is_known_by_what_its_agent_tells_of_it(told: Told, named: list[Any]) -> None:
    found = [(each.name, each.args, each.is_sure) for each in calls_of(told)]
    assert [(name, sure) for name, _, sure in found] == [(name, sure) for name, _, sure in named]
    for (_, args, _), (_, wanted, _) in zip(found, named, strict=True):
        assert wanted.items() <= args.items()


@pytest.mark.parametrize(
    "status, text, seen",
    [
        ("pending", '{"command": "rm -rf build"}', "rm -rf build"),
        ("pending", '{"command": "rm -r', "Bash"),
        ("pending", '["rm"]', "Bash"),
        ("completed", '{"command": "rm -rf build"}', "Bash"),
    ],
)
def test_arguments_that_are_shown_alone_can_refuse_and_never_allow(
    status: str, text: str, seen: str
) -> None:
    content = [{"type": "content", "content": {"type": "text", "text": text}}]
    told = {"title": "Bash", "kind": "execute", "status": status, "content": content}
    (call,) = calls_of({**told, SHOWN: shown_input(told)})
    assert (call.name, call.args["command"], call.is_sure) == ("Bash", seen, False)


def test_a_question_about_more_than_a_command_is_never_answered_with_yes() -> None:
    wider = {"command": ["curl", "a.b"], "network_approval_context": {"host": "a.b"}}
    (call,) = calls_of({"kind": "execute", "rawInput": wider})
    assert (call.name, call.is_sure) == ("Bash", False)


def test_a_terminal_is_judged_by_all_that_its_command_is_made_of() -> None:
    params = {
        "command": "git",
        "args": ["push", "--force", "a b"],
        "env": [{"name": "GIT_DIR", "value": "/x y"}],
        "cwd": "/p",
    }
    call = requested("terminal/create", params)
    assert call is not None
    assert call.args == {"command": "GIT_DIR='/x y' git push --force 'a b'", "cwd": "/p"}
    assert requested("terminal/kill", {}) is None
