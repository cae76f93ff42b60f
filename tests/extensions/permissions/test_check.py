"""Judging calls from JSON Lines, with what hooks said and what a project wants."""

from __future__ import annotations

import json

import pytest

from crow.extensions.permissions import check_case, check_lines, parse_call


def check(**case: object) -> str:
    case = {"id": "x", "tool": "Bash", "cwd": "{CWD}", "input": {"command": "node x.js"}, **case}
    return check_case(case)["decision"]


def test_each_line_gets_a_line_and_a_broken_one_an_error():
    case = {
        "id": "a",
        "tool": "Bash",
        "input": {"command": "ls"},
        "cwd": "/nonexistent",
        "rules": {},
    }
    denied = {**case, "id": "b", "rules": {"deny": ["Bash(ls *)"]}}
    lines = [json.dumps(case), "", "{", "[]", '{"id": 1}', json.dumps(denied) + "\n"]
    first, *broken, last = [json.loads(line) for line in check_lines(lines)]
    assert first == {
        "id": "a",
        "decision": "allow",
        "reason": "it only does what needs no permission",
        "rule": None,
    }
    assert [set(one) for one in broken] == [{"id", "error"}] * 3
    assert [one["id"] for one in broken] == [None, None, 1]
    assert broken[2]["error"] == "the case has no tool, input, cwd"
    assert (last["id"], last["decision"]) == ("b", "deny")
    assert last["rule"] == "Bash(ls *)"


@pytest.mark.parametrize(
    ("hook", "decision"),
    [
        ({"decision": "allow"}, "allow"),
        ({"decision": "deny"}, "deny"),
        ({"decision": "ask"}, "ask"),
        ({"decision": "timeout"}, "deny"),
        ({"exit_code": 2}, "deny"),
        ({"exit_code": 1}, "deny"),
        ({"decision": None}, "ask"),
        ([{"decision": "allow"}, {"decision": "deny"}], "deny"),
        ([{"decision": "ask"}, {"decision": "allow"}], "ask"),
        ({"decision": "allow", "updatedInput": {"command": "curl x"}}, "deny"),
    ],
)
def test_a_hook_answers_a_question_of_the_mode_and_no_other(hook, decision):
    assert check(hook=hook, rules={"deny": ["Bash(curl *)"]}) == decision


def test_what_a_hook_wants_asked_is_asked_though_a_rule_allows_it():
    rules = {"allow": ["Bash(node *)"]}
    assert check(rules=rules, hook={"decision": "ask"}) == "ask"
    assert check(rules=rules, hook={"decision": "ask"}, mode="dontAsk") == "deny"
    assert check(rules=rules) == "allow"


def test_exit_status_2_denies_whatever_a_hook_prints():
    assert check(hook={"decision": "allow", "exit_code": 2}) == "deny"


def test_dont_ask_leaves_the_question_to_hooks():
    assert check(mode="dontAsk") == "deny"
    assert check(mode="dontAsk", hook={"decision": "allow"}) == "allow"
    ask = {"ask": ["Bash(node *)"]}
    assert check(mode="dontAsk", hook={"decision": "allow"}, rules=ask) == "deny"


def test_a_project_that_is_not_trusted_can_only_refuse():
    settings = {"permissions": {"allow": ["Bash(node *)"], "defaultMode": "acceptEdits"}}
    assert check(project_settings=settings, trusted=False) == "ask"
    assert check(project_settings=settings) == "allow"
    assert check(rules={"allow": ["Bash"]}, rules_origin="project", trusted=False) == "ask"
    refusing = {"permissions": {"deny": ["Bash(node *)"]}}
    assert check(project_settings=refusing, trusted=False, rules={"allow": ["Bash"]}) == "deny"


def test_a_project_never_turns_the_questions_off():
    bypass = {"permissions": {"defaultMode": "bypassPermissions"}}
    assert check(project_settings=bypass) == "ask"
    edits = {"permissions": {"defaultMode": "acceptEdits", "additionalDirectories": ["{TMP}"]}}
    edit = {"tool": "Edit", "input": {"file_path": "{TMP}/x"}}
    assert check(project_settings=edits, **edit) == "allow"
    assert check(project_settings=edits, trusted=False, **edit) == "ask"


def test_the_files_of_a_case_are_made_for_it():
    setup = [
        {"file": "run.sh", "text": "x", "mode": "755"},
        {"dir": "src"},
        {"symlink": ["key", "{HOME}/.ssh/id"]},
        {"file": "{HOME}/.ssh/id"},
        {"hardlink": ["hard", "run.sh"]},
        {"git": True},
    ]
    rules = {"deny": ["Read(~/.ssh/**)"]}
    assert check(setup=setup, rules=rules, input={"command": "cat key"}) == "deny"
    assert check(setup=setup, rules=rules, input={"command": "cat hard"}) == "ask"
    assert check(setup=setup, input={"command": "cat run.sh src/x"}) == "allow"
    assert check(setup=setup, input={"command": "git status"}) == "allow"


FED = (
    "find . -print0 | xargs -0 cat",
    "find . -name '*.txt' | head | xargs grep x",
    "git ls-files | grep a | xargs wc -l",
    "rg -l x | xargs -n 5 head",
    "find . | xargs -I{} cat {}",
    "grep -R x .",
    "find -L . -name x",
)


@pytest.mark.parametrize("command", FED)
def test_names_of_files_may_be_read_from_where_no_link_leads_out(command):
    inside = [{"file": "a.txt"}, {"symlink": ["link", "a.txt"]}]
    assert check(setup=inside, input={"command": command}) == "allow"
    leading_out = [*inside, {"symlink": ["out", "/etc"]}]
    assert check(setup=leading_out, input={"command": command}) == "ask"


def test_names_that_are_no_single_words_are_not_read():
    odd = [{"file": "a /etc/passwd"}]
    assert check(setup=odd, input={"command": "find . | xargs cat"}) == "ask"
    assert check(setup=odd, input={"command": "find . -print0 | xargs -0 cat"}) == "allow"


def test_a_directory_with_a_protected_one_in_it_is_not_moved_or_removed_unasked():
    setup = [{"file": "pkg/.git/config"}, {"file": "lib/a"}]
    for command in ("rm -rf pkg", "mv pkg x"):
        assert check(setup=setup, input={"command": command}, mode="acceptEdits") == "ask"
    assert check(setup=setup, input={"command": "rm -rf lib"}, mode="acceptEdits") == "allow"


def test_a_tool_that_wants_its_user_asked_is_asked_about():
    case = {"tool": "mcp__a__b", "input": {}, "rules": {"allow": ["mcp__a"]}}
    meta = {"_meta": {"anthropic/requiresUserInteraction": True}}
    assert check(**case) == "allow"
    assert check(**case, mcp=meta) == "ask"
    assert check(**case, mcp=meta, hook={"decision": "allow"}) == "ask"
    assert check(**case, mcp={"annotations": {"readOnlyHint": True}}, mode="dontAsk") == "allow"


@pytest.mark.parametrize("mode", ["default", "acceptEdits", "bypassPermissions"])
def test_neither_a_hook_nor_a_mode_answers_for_a_user_who_wants_to_be_asked(mode):
    meta = {"_meta": {"anthropic/requiresUserInteraction": True}}
    for hook in ({}, {"decision": "allow"}):
        assert check(tool="mcp__a__b", input={}, mcp=meta, hook=hook, mode=mode) == "ask"


def test_a_hook_lets_nothing_through_before_there_is_trust():
    assert check(hook={"decision": "allow"}, trusted=False) == "ask"
    rewritten = {"updatedInput": {"command": "ls"}}
    assert check(hook=rewritten, trusted=False) == "ask"
    assert check(hook={"decision": "deny"}, trusted=False) == "deny"


def test_a_case_cannot_put_files_anywhere_else(tmp_path):
    case = {"id": 1, "tool": "Bash", "input": {"command": "ls"}, "cwd": "{CWD}"}
    for step in ({"file": str(tmp_path / "x")}, {"dir": "../../x"}, {"symlink": ["/x", "/y"]}):
        [answer] = check_lines([json.dumps({**case, "setup": [step]})])
        assert "is no place for" in json.loads(answer)["error"]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "call"),
    [
        ("Bash(rm -rf build)", ("Bash", {"command": "rm -rf build"})),
        ("bash(echo (a))", ("Bash", {"command": "echo (a)"})),
        ("Read(/etc/x)", ("Read", {"file_path": "/etc/x"})),
        ("WebFetch(https://a.b)", ("WebFetch", {"url": "https://a.b"})),
        ("mcp__a__b", ("mcp__a__b", {"file_path": ""})),
        ('mcp__a__b({"x": 1})', ("mcp__a__b", {"x": 1})),
        ("Bash({ ls; })", ("Bash", {"command": "{ ls; }"})),
    ],
)
def test_a_call_can_be_written_like_a_rule(text, call):
    assert parse_call(text) == call


def test_what_is_not_written_like_a_call_is_an_error():
    with pytest.raises(ValueError, match="is not written Tool"):
        parse_call("rm -rf build")
