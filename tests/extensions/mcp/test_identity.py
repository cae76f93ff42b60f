"""A tool is its server and its raw name, whatever else rules, hooks and names make of these."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.extensions.mcp.conftest import Open, Table, Watcher
from tests.properties import examples

from crow.core.messages import text_of
from crow.extensions import PermissionsHook, ShellHooks
from crow.extensions.mcp.naming import server_part, tool_name
from crow.extensions.permissions.rules.rule import parse_rule
from crow.project import HookFile
from crow.testing import call

Raw = Callable[..., Table]
LONG = "look_up_" + "everything_there_is_" * 4


async def outcome(opened: Open, servers: Table, wanted: str, **rules: Any) -> str:
    """What becomes of a call: it ``ran``, was ``asked`` about, or ``denied``."""
    client = Watcher()
    judge = PermissionsHook(**rules)
    async with opened(servers, call(wanted), "Done.", client=client, hooks=[judge]) as it:
        await it.prompt()
        assert wanted in it.tools(0), it.tools(0)
        [told] = [text_of(m.get("content")) for m in it.session.messages if m["role"] == "tool"]
    if told.startswith("<mcp-data"):
        return "ran"
    return "asked" if client.permissions or "nobody can be asked" in told else "denied"


ODD = tool_name("a__b", "c")
DOTTED = tool_name("my.srv", "do.it")
PLUGIN = "mcp__plugin_p_s__t"


@pytest.mark.parametrize(
    "server, tool, rule, allows, denies",
    [
        ("a", "b__c", "mcp__a__b__c", True, True),
        ("a", "b__c", "mcp__a", True, True),
        ("a", "b__c", "mcp__a__*", True, True),
        ("a", "b__c", "mcp__a__b__*", True, True),
        ("a", "b__c", "mcp__a__b", False, False),
        ("a", "b__c", "mcp__a_b", False, False),
        ("a__b", "c", "mcp__a__b__c", False, True),
        ("a__b", "c", "mcp__a__b", False, True),
        ("a__b", "c", "mcp__a__b__*", False, True),
        ("a__b", "c", "mcp__a", False, False),
        ("a__b", "c", "mcp__a_b__c", False, False),
        ("a__b", "c", str(ODD), True, True),
        ("a_b", "c", "mcp__a_b__c", True, True),
        ("a_b", "c", str(ODD), False, False),
        ("my.srv", "do.it", str(DOTTED), True, True),
        ("my.srv", "do.it", "mcp__my.srv__do.it", True, True),
        ("my.srv", "do.it", "mcp__my.srv", True, True),
        ("my.srv", "do.it", "mcp__my_srv__*", True, True),
        ("plugin:p:s", "t", PLUGIN, True, True),
        ("plugin:p:s", "t", "mcp__plugin_p_s", True, True),
        ("plugin:p:s", "t", "mcp__plugin_p_s__*", True, True),
        ("s", LONG, f"mcp__s__{LONG}", True, True),
        ("s", LONG, "mcp__s__look_up_*", True, True),
        ("s", LONG, str(tool_name("s", LONG)), True, True),
        ("s", "x." + LONG, f"mcp__s__x_{LONG}", False, True),
        ("s" * 50, "t", f"mcp__{'s' * 50}__t", True, True),
        ("s" * 50, "t", f"mcp__{'s' * 49}__t", False, False),
    ],
)
def test_a_rule_means_an_identity(server: str, tool: str, rule: str, allows: bool, denies: bool):
    name = tool_name(server, tool)
    assert len(name) <= 64
    assert parse_rule(rule, "allow").names(name) is allows
    assert parse_rule(rule, "deny").names(name) is denies
    assert parse_rule(rule, "ask").names(name) is denies


NAMES = st.text("ab_.-: ü", min_size=1, max_size=8) | st.text("ab", min_size=28, max_size=44)


@pytest.mark.slow
@settings(max_examples=examples(400), deadline=None)
@given(ours=st.tuples(NAMES, NAMES), others=st.tuples(NAMES, NAMES))
def test_no_name_of_a_tool_allows_one_of_a_server_that_could_run_beside_it(
    ours: tuple[str, str], others: tuple[str, str]
):
    """Servers whose parts are the same never run together; nor are tools of one name shown."""
    assume(ours[0] != others[0] and server_part(ours[0]) != server_part(others[0]))
    mine, theirs = tool_name(*ours), tool_name(*others)
    assert mine != theirs
    assume(not any(mark in mine for mark in "()*?["))
    assert parse_rule(str(mine), "allow").names(mine)
    assert not parse_rule(str(mine), "allow").names(theirs)
    assert not parse_rule(f"mcp__{server_part(ours[0])}", "allow").names(theirs)
    assert parse_rule(str(mine), "deny").names(mine)


async def test_a_rule_for_one_server_never_allows_the_other(opened: Open, raw: Raw):
    servers = {"a": raw(tools=["b__c"]), "a__b": raw(tools=["c"])}
    rules = {"allow": ["mcp__a__b__c"]}
    assert await outcome(opened, servers, "mcp__a__b__c", **rules) == "ran"
    assert await outcome(opened, servers, str(ODD), **rules) == "asked"


@pytest.mark.slow
async def test_a_denial_holds_for_whatever_it_could_mean(opened: Open, raw: Raw):
    servers = {"a": raw(tools=["b__c", LONG]), "a__b": raw(tools=["c"])}
    rules = {"allow": ["mcp__a", str(ODD)], "deny": ["mcp__a__b__c", f"mcp__a__{LONG}"]}
    assert await outcome(opened, servers, "mcp__a__b__c", **rules) == "denied"
    assert await outcome(opened, servers, str(ODD), **rules) == "denied"
    assert await outcome(opened, servers, str(tool_name("a", LONG)), **rules) == "denied"


async def test_what_a_server_says_of_its_tool_decides_nothing(opened: Open, raw: Raw):
    hints = {"readOnlyHint": True, "destructiveHint": False}
    told = {"name": "look", "inputSchema": {"type": "object"}, "annotations": hints}
    assert await outcome(opened, {"s": raw(tools=[told])}, "mcp__s__look") == "asked"


@pytest.mark.slow
async def test_always_means_the_tool_that_was_shown_and_no_other_one_of_its_name(
    opened: Open, raw: Raw
):
    saved: list[str] = []
    client = Watcher(permission="allow_always")
    judge = PermissionsHook(save=lambda rule, _: saved.append(rule))
    once = [call("mcp__my_srv__echo"), "Done."]
    async with opened({"my_srv": raw()}, *once, *once, client=client, hooks=[judge]) as it:
        await it.prompt()
        await it.prompt()
        assert len(client.permissions) == 1
    assert saved == ["mcp__my_srv__echo"]
    assert await outcome(opened, {"my_srv": raw()}, saved[0], allow=saved) == "ran"
    assert await outcome(opened, {"my.srv": raw()}, saved[0], allow=saved) == "asked"
    assert await outcome(opened, {"my_srv": raw()}, saved[0], allow=saved) == "ran"


def hooked(tmp_path: Path, matcher: str, decision: str) -> ShellHooks:
    """A settings hook that decides on what its matcher means."""
    specific = {"hookEventName": "PreToolUse", "permissionDecision": decision}
    program = f"print({json.dumps({'hookSpecificOutput': specific})!r})"
    command = f"{shlex.quote(sys.executable)} -c {shlex.quote(program)}"
    table: dict[str, Any] = {
        "PreToolUse": [{"matcher": matcher, "hooks": [{"type": "command", "command": command}]}]
    }
    return ShellHooks([HookFile("settings.json", table)], project=str(tmp_path), directory=tmp_path)


@pytest.mark.parametrize(
    "server, tool, matcher",
    [
        ("s", LONG, f"mcp__s__{LONG}"),
        ("s", LONG, "mcp__s__look_up_.*_is_$"),
        ("a__b", "c", "mcp__a__b__c"),
        ("a__b", "c", "mcp__a__b__.*"),
        ("plugin:p:s", "t", "mcp__plugin_p_s__.*"),
    ],
)
@pytest.mark.variants(2)
async def test_a_matcher_of_hooks_means_the_tool_by_its_whole_name(
    opened: Open, raw: Raw, tmp_path: Path, server: str, tool: str, matcher: str
):
    name = tool_name(server, tool)
    for decision, wanted in (("deny", 0), ("allow", 1)):
        hooks = [hooked(tmp_path, matcher, decision), PermissionsHook()]
        async with opened({server: raw(tools=[tool])}, call(name), "Done.", hooks=hooks) as it:
            await it.prompt()
            ran = it.results[0].startswith("<mcp-data")
            assert ran is (bool(wanted) and server != "a__b"), it.results
