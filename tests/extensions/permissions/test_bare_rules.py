"""A bare rule speaks of its own tool, whatever path rules are written for."""

from __future__ import annotations

from pathlib import Path

import pytest

from crow.extensions.permissions import Permissions


@pytest.mark.parametrize(
    "rule, tool, decision",
    [
        ("Write", "Write", "allow"),
        ("Write", "Edit", "ask"),
        ("Edit", "Write", "allow"),
        ("Edit", "Edit", "allow"),
        ("Read", "Write", "ask"),
    ],
)
def test_a_bare_allow_rule_lets_its_own_tool_write(tmp_path: Path, rule, tool, decision):
    permissions = Permissions.of(allow=[rule])
    args = {"file_path": str(tmp_path / "a.txt"), "content": "x"}
    assert permissions.judge(tool, args, cwd=str(tmp_path)).decision == decision


@pytest.mark.parametrize("path", [".git/hooks/pre-commit", ".crow/settings.json"])
def test_a_bare_allow_rule_opens_no_protected_path(tmp_path: Path, path):
    permissions = Permissions.of(allow=["Write"])
    args = {"file_path": str(tmp_path / path), "content": "x"}
    assert permissions.judge("Write", args, cwd=str(tmp_path)).decision == "ask"


def test_a_bare_write_rule_says_nothing_of_what_a_command_writes(tmp_path: Path):
    permissions = Permissions.of(allow=["Write", "Bash(echo *)"])
    decision = permissions.judge("Bash", {"command": "echo hi > a.txt"}, cwd=str(tmp_path))
    assert decision.decision == "ask"


def test_a_bare_read_rule_reaches_outside_and_a_denial_stands(tmp_path: Path):
    permissions = Permissions.of(allow=["Grep"], deny=["Read(//etc/secret)"])
    judge = permissions.judge
    assert judge("Grep", {"pattern": "x", "path": "/opt"}, cwd=str(tmp_path)).decision == "allow"
    args = {"pattern": "x", "path": "/etc/secret"}
    assert judge("Grep", args, cwd=str(tmp_path)).decision == "deny"
