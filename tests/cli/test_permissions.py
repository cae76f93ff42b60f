"""``crow permissions list`` and ``revoke``, and ``/permissions`` in a session."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.conftest import Crow, Here

from crow.project.trust import is_trusted, trust

KEPT = ".claude/settings.local.json"


def settle(crow: Crow, home: Path) -> Path:
    """A rule that the user wrote, and one that was kept for an answer."""
    (home / ".claude").mkdir()
    rules = {"permissions": {"deny": ["Bash(rm *)"]}}
    (home / ".claude/settings.json").write_text(json.dumps(rules))
    kept = crow.cwd / KEPT
    kept.parent.mkdir()
    kept.write_text(json.dumps({"env": {"A": "b"}, "permissions": {"allow": ["Bash(make *)"]}}))
    trust(crow.cwd)
    return kept


async def test_the_rules_are_listed_with_their_files(crow: Crow, here: Here, home: Path) -> None:
    kept = settle(crow, home)
    listed = await here("permissions", "list", "--json")
    assert listed.events == [
        {"behaviour": "deny", "rule": "Bash(rm *)", "source": f"{home}/.claude/settings.json"},
        {"behaviour": "allow", "rule": "Bash(make *)", "source": str(kept)},
    ]
    shown = await here("permissions", "list")
    assert shown.out == (
        f"deny   Bash(rm *)\n       {home}/.claude/settings.json\n"
        f"allow  Bash(make *)\n       {kept}\n"
    )


async def test_where_no_rule_holds_that_is_said(here: Here) -> None:
    shown = await here("permissions", "list")
    assert (shown.status, shown.out) == (0, "")
    assert "no rules hold here" in shown.err


async def test_what_was_answered_with_always_is_taken_back(
    crow: Crow, here: Here, home: Path
) -> None:
    kept = settle(crow, home)
    ended = await here("permissions", "revoke", "Bash(make *)")
    assert ended.out == "Bash(make *) is taken back, in the project's settings too.\n"
    assert json.loads(kept.read_text()) == {"env": {"A": "b"}}
    assert is_trusted(crow.cwd)
    checked = await here("permissions", "check", "--json", "Bash(make all)")
    assert checked.events[0]["decision"] == "ask"


async def test_a_rule_that_somebody_wrote_elsewhere_stays_there(
    crow: Crow, here: Here, home: Path
) -> None:
    settle(crow, home)
    ended = await here("permissions", "revoke", "Bash(rm *)")
    assert ended.out == f"Bash(rm *) stands in {home}/.claude/settings.json: change it there.\n"
    ended = await here("permissions", "revoke", "Bash(cat *)")
    assert ended.status == 2
    assert ended.complaint == "There is no rule Bash(cat *). crow permissions list names them"


async def test_an_action_that_there_is_not_is_named(here: Here) -> None:
    ended = await here("permissions", "remove", "Bash(rm *)")
    assert "there is no action 'remove' (crow permissions check, list or revoke)" in ended.complaint
