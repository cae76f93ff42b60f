"""``crow hooks explain``: the recorded chain of a real call."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.cli.conftest import Crow, Here, calls

from crow.testing.endpoint import Endpoint, answer

NOBODY = "this needs the user's permission, and nobody can be asked"
ELSEWHERE = {"hookEventName": "PreToolUse", "updatedInput": {"file_path": "b.txt", "content": "x"}}
REWRITE = f"echo '{json.dumps({'hookSpecificOutput': ELSEWHERE})}'"


def settle(home: Path) -> Path:
    """Settings with a hook that rewrites, one that fails, and a rule that denies."""
    path = home / ".claude/settings.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    rewrite = [{"type": "command", "command": REWRITE}]
    hooks: dict[str, Any] = {
        "PreToolUse": [{"matcher": "Write", "hooks": rewrite}],
        "PostToolUse": [{"hooks": [{"type": "command", "command": "echo broken >&2; exit 3"}]}],
    }
    rules = {"allow": ["Write"], "deny": ["Bash(rm *)"]}
    path.write_text(json.dumps({"hooks": hooks, "permissions": rules}), "utf-8")
    return path


async def worked(crow: Crow, endpoint: Endpoint) -> None:
    """A session with a call that is rewritten, one that is denied and one that nobody may allow."""
    endpoint.play(
        calls(("Write", {"file_path": "a.txt", "content": "x"}), ("Bash", {"command": "rm b.txt"})),
        calls(("Bash", {"command": "touch c.txt"})),
        answer("done"),
    )
    await crow("run", "go")


async def test_calls_are_told_one_with_all_that_came_of_it_and_all_with_who_decided(
    crow: Crow, here: Here, endpoint: Endpoint, home: Path
) -> None:
    path = settle(home)
    await worked(crow, endpoint)
    (info,) = (await here("sessions", "--json")).events
    told = (await here("hooks", "explain", info["id"][:8], "1")).out
    parts = [
        'asked: {"file_path": "a.txt", "content": "x"}',
        "PreToolUse\n",
        REWRITE[:40],
        f"  {path}\n",
        'shell_hooks: PreToolUse  changed args to {"file_path": "b.txt", "content": "x"}',
        "permissions: judge  allow: the rule Write allows it",
        "ran:   {",
        "PostToolUse\n",
        "broken",
        "result: Created",
    ]
    found = [told.find(part) for part in parts]
    assert -1 not in found, told
    assert found == sorted(found), told

    ended = await here("hooks", "explain")
    lines = [" ".join(line.split()) for line in ended.out.splitlines()]
    assert lines[1:8] == [
        "1 ok Write b.txt",
        'shell_hooks: changed args to {"file_path": "b.txt", "content": "x"}',
        "permissions: allow: the rule Write allows it",
        "2 denied Bash rm b.txt",
        "permissions: deny: the rule Bash(rm *) denies it",
        "3 denied Bash touch c.txt",
        f"user: deny: {NOBODY}: no rule allows touch c.txt",
    ]

    first, second, third = (await here("hooks", "explain", "--json")).events
    assert (first["tool"], first["outcome"]) == ("Write", "ok")
    assert first["ran"]["file_path"].endswith("b.txt")
    assert (second["outcome"], second["ran"]) == ("denied", None)
    (verdict,) = [hook for hook in second["hooks"] if hook["owner"] == "permissions"]
    assert verdict["answer"] == {
        "type": "deny",
        "reason": "the rule Bash(rm *) denies it",
        "rule": "Bash(rm *)",
    }
    assert third["hooks"][-1]["event"] == "after_tool"


async def test_a_wrap_that_answered_in_the_tools_place_is_told(
    crow: Crow, here: Here, endpoint: Endpoint
) -> None:
    (crow.cwd / "stub.py").write_text(
        "async def around_tool(ctx, call_next):\n"
        "    return 'nothing ran' if ctx.args['command'] == 'true' else await call_next()\n"
    )
    endpoint.play(
        calls(("Bash", {"command": "true"}), ("Bash", {"command": "echo on"})), answer("done")
    )
    allowed = ("--allow", "Bash(true)", "--allow", "Bash(echo *)")
    await crow("run", "--extension", str(crow.cwd / "stub.py"), *allowed, "go")
    lines = [" ".join(each.split()) for each in (await here("hooks", "explain")).out.splitlines()]
    assert lines.count("stub: answered in the tool's place") == 1
    assert "stub: answered in the tool's place" in lines[lines.index("1 ok Bash true") + 1 :][:2]
    first, second = (await here("hooks", "explain", "--json")).events
    answers = [
        [hook.get("answer") for hook in each["hooks"] if hook["owner"] == "stub"]
        for each in (first, second)
    ]
    assert answers == [[{"type": "answer"}], [None]]


async def test_a_wrap_that_answered_in_the_models_place_is_told(
    crow: Crow, here: Here, endpoint: Endpoint
) -> None:
    (crow.cwd / "cached.py").write_text(
        "from crow import Completion\n"
        "async def around_llm_request(ctx, call_next):\n"
        "    asked = len(ctx.messages) > 2\n"
        "    return Completion('from the cache') if asked else await call_next()\n"
    )
    endpoint.play(calls(("Read", {"file_path": "README.md"})))
    await crow("run", "--extension", str(crow.cwd / "cached.py"), "go")
    lines = [" ".join(each.split()) for each in (await here("hooks", "explain")).out.splitlines()]
    told = [line for line in lines if line.startswith("around_llm_request")]
    assert told == ["around_llm_request cached: answered in the model's place"]


async def test_what_cannot_be_explained_is_said_in_one_line(
    crow: Crow, here: Here, endpoint: Endpoint, home: Path
) -> None:
    assert "no session of this directory" in (await here("hooks", "explain")).complaint
    await worked(crow, endpoint)
    (info,) = (await here("sessions", "--json")).events
    assert "there is no session" in (await here("hooks", "explain", "zzz")).complaint
    for argv, said in (((info["id"], "9"), "has 3, from 1 on"), (("a", "b", "c"), "how to say it")):
        ended = await here("hooks", "explain", *argv)
        assert (ended.status, said in ended.complaint) == (2, True), ended.err


async def test_a_request_that_lost_the_cache_is_told_with_the_hook_that_did_it(
    crow: Crow, here: Here, endpoint: Endpoint
) -> None:
    stamp = crow.cwd / "stamp.py"
    stamp.write_text(
        "def before_llm_request(messages):\n"
        "    head = {**messages[0], 'content': f'Request {len(messages)}'}\n"
        "    return [head, *messages[1:]]\n"
    )
    endpoint.play(calls(("Bash", {"command": "true"})), answer("done"))
    ran = await crow("run", "--extension", str(stamp), "--allow", "Bash(true)", "go")
    notice = "the provider's cache of the conversation was lost: the hook stamp.before_llm_request"
    assert ran.err.count(notice) == 1
    told = (await here("hooks", "explain")).out
    _, requests = told.split("requests that began otherwise than the one before\n")
    assert " ".join(requests.split()).startswith(
        "request 2 the hook stamp.before_llm_request changed the system message: about "
    )
    called, lost = (await here("hooks", "explain", "--json")).events
    assert called["tool"] == "Bash"
    assert (lost["type"], lost["request"], lost["by"]) == (
        "prefix",
        2,
        "the hook stamp.before_llm_request",
    )
    assert requests.split()[2:] == lost["reason"].split()
    (info,) = (await here("sessions", "--json")).events
    only = (await here("hooks", "explain", info["id"], "1", "--json")).events
    assert [each["number"] for each in only] == [1]
