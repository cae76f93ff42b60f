"""``crow ext``, ``hooks``, ``config``, ``trust``, ``permissions``: what is in force, and why."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tests.cli.conftest import Crow, Here
from tests.files import write

from crow.extensions.sandbox.probe import find_backend
from crow.testing.endpoint import Endpoint, answer

GOOD = "def before_run(ctx):\n    return 'context of the project'\n"
BROKEN = "import no_such_thing\n"


THING = """
class Thing:
    def before_run(self): ...
    def before_tool(self): ...
"""
TWO = """
class One:
    def before_run(self): ...

class Other:
    def before_run(self): ...
    def after_turn(self): ...
"""
HALF = TWO + "    def before_tool(self, call, nothing): ...\n"
TAKES = "def init_agent(agent):\n    agent.extensions['shell_hooks'] = object()\n"


@pytest.mark.slow
async def test_whatever_extensions_are_called_each_is_listed_with_what_it_hung_itself(
    crow: Crow, home: Path, tmp_path: Path
) -> None:
    alone = {each["name"]: each for each in (await crow("ext", "list", "--json")).events}
    names = ("settings", "permissions", "shell_hooks", "hook_log", "fine")
    listed = "".join(f"{name} = things:Thing\n" for name in names)
    write(tmp_path / "things.py", THING)
    write(tmp_path / "things-1.0.dist-info/entry_points.txt", f"[crow.extensions]\n{listed}")
    crow.env["PYTHONPATH"] = str(tmp_path)
    files = {"two": TWO, "half": HALF, "shell_hooks": GOOD, "takes": TAKES}
    for name, source in files.items():
        write(home / f".crow/extensions/{name}.py", source)
    ended = await crow("ext", "list", "--json")
    assert ended.status == 1
    found = {(each["name"], Path(each["source"]).stem): each for each in ended.events}
    errors = {key: each["error"] for key, each in found.items() if each["error"]}
    assert errors == {
        ("settings", "things"): "there is an extension 'settings' already, from crow",
        **{
            (name, "things"): f"the name {name!r} is taken by crow: things needs another one"
            for name in names[1:4]
        },
        ("half", "half"): errors["half", "half"],
        (
            "shell_hooks",
            "shell_hooks",
        ): "the name 'shell_hooks' is taken by crow: choose another one",
        ("takes", "takes"): "the name 'shell_hooks' is taken by crow: choose another one",
    }
    assert "before_tool has no 'nothing'" in errors["half", "half"]
    for key, each in found.items():
        assert bool(each["hooks"]) == bool(each["names"]) or each["name"] == "web", key
    assert found["two", "two"]["names"] == ["two", "two_2"]
    assert found["two", "two"]["hooks"] == ["after_turn", "before_run"]
    assert found["fine", "things"]["hooks"] == ["before_run", "before_tool"]
    for name in ("permissions", "shell_hooks"):
        assert found[name, "crow"] == alone[name]
    shown = await crow("ext", "list")
    assert "two.py, 3 hooks, as two, two_2\n" in shown.out
    hung = (await crow("hooks", "list", "--json")).events
    assert {each["owner"] for each in hung if each.get("file", "").startswith(str(home))} == {
        "two",
        "two_2",
    }


async def test_a_file_in_the_place_of_a_disabled_one_is_named_on_the_command_line(
    crow: Crow, tmp_path: Path, home: Path
) -> None:
    path = write(tmp_path / "stuck.py", GOOD)
    refused = await crow("ext", "list", "--extension", str(path))
    assert "there is an extension 'stuck' already, from crow" in refused.out
    write(home / ".crow/settings.json", {"extensions": {"disable": ["stuck"]}})
    assert (await crow("ext", "list", "--extension", str(path))).status == 0
    again = write(home / ".crow/extensions/good.py", GOOD)
    listed = await crow("ext", "list", "--extension", str(again))
    assert (listed.out.count("good.py"), listed.out.count("good.py, 1 hook\n")) == (1, 1)


async def test_every_extension_is_listed_with_its_state_and_source(here: Here, home: Path) -> None:
    good = write(home / ".crow/extensions/good.py", GOOD)
    broken = write(home / ".crow/extensions/broken.py", BROKEN)
    write(home / ".crow/settings.json", {"extensions": {"disable": ["limits"]}})
    ended = await here("ext", "list", "--json")
    found = {each["name"]: each for each in ended.events}
    assert ended.status == 1
    assert found["permissions"]["state"] == "in use"
    assert found["limits"]["state"] == "disabled"
    assert found["good"] == {
        "name": "good",
        "state": "in use",
        "source": str(good),
        "error": None,
        "problems": [],
        "names": ["good"],
        "hooks": ["before_run"],
    }
    assert found["broken"]["state"] == "broken"
    assert found["broken"]["source"] == str(broken)
    assert "No module named 'no_such_thing'" in found["broken"]["error"]
    listed = await here("ext")
    assert re.search(rf"^in use    good +{re.escape(str(good))}, 1 hook$", listed.out, re.MULTILINE)
    assert "broken    broken" in listed.out


async def test_plugins_are_listed_with_what_they_bring_by_its_whole_name(
    here: Here, home: Path
) -> None:
    root = home / ".crow/plugins/p"
    write(root / "commands/git/fix.md", "Mend it.")
    write(root / "skills/care/SKILL.md", "---\ndescription: D.\n---\nText.")
    write(root / "agents/looker.md", "---\ndescription: D.\n---\nLook.")
    write(home / ".crow/plugins/q/.claude-plugin/plugin.json", "{")
    ended = await here("ext", "list", "--json")
    assert (ended.status, ended.events[-1]) == (
        1,
        {
            "name": "p@inline",
            "state": "in use",
            "source": str(root),
            "commands": ["p:git:fix"],
            "skills": ["p:care"],
            "agents": ["p:looker"],
            "servers": [],
            "hooks": [],
        },
    )
    listed = await here("ext")
    assert "commands: p:git:fix" in listed.out
    assert f"the plugin {home / '.crow/plugins/q'} is left out" in listed.err


async def test_a_broken_extension_is_named_and_the_run_goes_on(
    crow: Crow, endpoint: Endpoint, home: Path
) -> None:
    endpoint.play(answer("Fine."))
    path = write(home / ".crow/extensions/broken.py", BROKEN)
    ended = await crow("run", "hello")
    assert (ended.status, ended.out) == (0, "Fine.\n")
    assert ended.complaint == (
        f"the extension broken ({path}) is broken: "
        f"ModuleNotFoundError: No module named 'no_such_thing' ({path}:1)"
    )
    listed = await crow("ext", "--extension", str(path))
    assert listed.status == 1
    assert listed.out.count("in use ") > 10
    assert "No module named 'no_such_thing'" in listed.out.splitlines()[-1]


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("import json\njson.loads('{')", "JSONDecodeError: Expecting property name"),
        (
            "def init_agent(agent):\n    agent.nothing()",
            "the extension odd failed: AttributeError(",
        ),
        ("x = 1\nimport requests_of_nobody", "ModuleNotFoundError: No module named 'requests_of"),
    ],
)
async def test_a_broken_extension_is_told_with_file_and_line(
    crow: Crow, tmp_path: Path, code: str, told: str
) -> None:
    path = write(tmp_path / "odd.py", code)
    ended = await crow("run", "--extension", str(path), "hello")
    assert ended.status == 1
    assert f"the extension {path} is broken: {told}" in ended.err
    assert f"({path}:2)" in ended.err


@pytest.mark.slow
async def test_a_projects_extensions_run_once_it_is_trusted(
    crow: Crow, here: Here, endpoint: Endpoint
) -> None:
    endpoint.play(answer("one"), answer("two"))
    write(crow.cwd / ".crow/extensions/good.py", GOOD)
    ended = await crow("run", "hello")
    assert ended.complaint == (
        "the project is not trusted, so these are left out: .crow/extensions/good.py (crow trust)"
    )
    trusted = await here("trust", "--yes")
    assert ".crow/extensions/good.py" in trusted.out
    assert (await crow("run", "hello")).err == ""
    first, second = (json.dumps(request.body["messages"]) for request in endpoint.requests)
    assert "context of the project" not in first
    assert "context of the project" in second

    assert "is trusted already" in (await here("trust")).out
    assert "is not trusted" in (await here("trust", "--revoke")).out
    assert "the project is not trusted" in (await crow("run", "hello")).err


async def test_an_untrusted_project_can_redirect_no_request(crow: Crow, endpoint: Endpoint) -> None:
    endpoint.play(answer("Here."))
    write(crow.cwd / ".crow/settings.json", {"base_url": "http://127.0.0.1:9", "model": "evil"})
    ended = await crow("run", "hello", CROW_MODEL="")
    assert "the project is not trusted" in ended.err
    assert "base_url, model" in ended.err
    ended = await crow("run", "hello")
    assert ended.out == "Here.\n"


async def test_the_hooks_are_listed_in_running_order_with_their_place(
    here: Here, tmp_path: Path
) -> None:
    path = write(tmp_path / "late.py", "\n\ndef before_run(ctx):\n    pass\n")
    ended = await here("hooks", "list", "UserPromptSubmit", "--extension", str(path), "--json")
    hooks = ended.events
    assert [each["number"] for each in hooks] == list(range(1, len(hooks) + 1))
    assert {each["event"] for each in hooks} == {"before_run"}
    [late] = [each for each in hooks if each["owner"] == "late"]
    assert (late["file"], late["order"]) == (f"{path}:3", 0)
    behind = hooks[late["number"] :]
    assert behind
    assert all(each["order"] > 0 for each in behind)
    shown = await here("hooks", "list", "before_run", "--extension", str(path))
    assert shown.out.startswith("before_run (gate)\n")
    assert "late: before_run" in shown.out


@pytest.mark.slow
async def test_every_setting_is_shown_with_the_file_that_it_came_from(
    here: Here, home: Path
) -> None:
    path = write(
        home / ".crow/settings.json",
        {
            "model": "mine",
            "api_key": "sk-secret",
            "permissions": {"deny": ["Bash(rm *)"], "defaultMode": "plan"},
            "extensions": {"limits": {"turns": 3}},
        },
    )
    ended = await here("config", "--json", "--set", "--allow", "Edit")
    assert [(e["name"], e["value"], e["source"]) for e in ended.events] == [
        ("model", "mine", str(path)),
        ("api_key", "(hidden)", str(path)),
        ("permissions.allow", "Edit", "command line"),
        ("permissions.deny", "Bash(rm *)", str(path)),
        ("permissions.defaultMode", "plan", str(path)),
        ("sandbox.enabled", False, "CROW_SANDBOX=off in the environment"),
        ("extensions.limits.turns", 3, str(path)),
    ]
    shown = (await here("config", "--all")).out
    assert "sk-secret" not in shown
    assert f"plan  {path}\n" in shown
    assert "limits.turns" in shown
    assert "200  (default)" in shown


@pytest.mark.slow
async def test_people_see_what_is_set_and_what_commands_run_in(
    here: Here, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(home / ".crow/settings.json", {"sandbox": {"excludedCommands": ["docker *"]}})
    *lines, more = (await here("config")).out.splitlines()
    assert lines == [
        "model                     not set  (default)",
        "permissions.defaultMode   default  (default)",
        "sandbox.enabled           false  CROW_SANDBOX=off in the environment",
        f"sandbox.excludedCommands  docker *  {path}",
        "commands run in           no sandbox: it is switched off (CROW_SANDBOX=off)",
    ]
    assert more.endswith(" more settings have their defaults: crow config --all")
    monkeypatch.setenv("CROW_SANDBOX", "jail")
    assert "NO SANDBOX: the sandbox jail does not work here: " in (await here("config")).out
    found = find_backend()
    if found.holds:
        monkeypatch.setenv("CROW_SANDBOX", "on")
        last = (await here("config", "--set")).out.splitlines()[-1]
        assert last.endswith(f"  a sandbox: {found.name} (crow sandbox says more)")


async def test_a_call_is_judged_by_the_rules_that_hold_here(here: Here, home: Path) -> None:
    path = write(home / ".crow/settings.json", {"permissions": {"deny": ["Bash(rm *)"]}})
    denied = await here("permissions", "check", "Bash(rm -rf build)")
    assert denied.out.startswith("deny  ")
    assert f"Bash(rm *)  from {path}" in denied.out
    allowed = await here("permissions", "check", "Bash(touch x)", "--allow", "Bash(touch *)")
    assert allowed.out.startswith("allow  ")
    asked = await here("permissions", "check", "Write(x.txt)", "--json")
    assert asked.events[0]["decision"] == "ask"
    odd = await here("permissions", "check", "rm -rf")
    assert (odd.status, odd.complaint.split(",")[0]) == (
        2,
        "'rm -rf' is not written Tool(argument)",
    )


async def test_a_call_is_judged_by_the_hooks_that_hold_here_too(here: Here, home: Path) -> None:
    allowed = {"hookEventName": "PreToolUse", "permissionDecision": "allow"}
    rewritten = {**allowed, "updatedInput": {"command": "rm x"}}
    answers = [{"permissionDecisionReason": "tidy", **allowed}, rewritten]
    handlers = [
        {"type": "command", "if": rule, "command": f"echo '{json.dumps(printed)}'"}
        for rule, answer in zip(("Bash(make *)", "Bash(cc *)"), answers, strict=True)
        for printed in [{"hookSpecificOutput": answer}]
    ]
    table = {
        "permissions": {"deny": ["Bash(rm *)"]},
        "hooks": {"PreToolUse": [{"hooks": handlers}]},
    }
    path = write(home / ".crow/settings.json", table)
    waved = await here("permissions", "check", "Bash(make all)")
    assert waved.out.startswith("allow  tidy\n  by a hook: ")
    assert f"from {path}" in waved.out
    caught = await here("permissions", "check", "Bash(cc x)")
    assert caught.out.startswith("deny  the rule Bash(rm *) denies it\n")
    assert 'a hook made of it: {"command": "rm x"}' in caught.out


async def test_cases_are_judged_one_a_line(crow: Crow) -> None:
    case = {
        "id": "1",
        "rules": {"allow": ["Bash(make *)"]},
        "tool": "Bash",
        "input": {"command": "make x"},
        "cwd": "/tmp",
    }
    ended = await crow("permissions", "check", stdin=f"{json.dumps(case)}\nno json\n")
    first, second = ended.events
    assert (first["id"], first["decision"], first["rule"]) == ("1", "allow", "Bash(make *)")
    assert "error" in second


async def test_extension_options_come_from_the_settings_and_wrong_ones_are_named(
    crow: Crow, endpoint: Endpoint, home: Path
) -> None:
    endpoint.play(answer("ok"))
    write(home / ".crow/settings.json", {"extensions": {"limits": {"trns": 3}}})
    ended = await crow("run", "hello")
    assert "there is no setting 'extensions.limits.trns'; did you mean 'turns'?" in ended.complaint


async def test_the_limits_of_the_settings_end_a_run(
    crow: Crow, endpoint: Endpoint, home: Path
) -> None:
    write(home / ".crow/settings.json", {"limits": {"turns": 0}})
    ended = await crow("run", "hello")
    assert ended.status == 1
    assert "the limit of 0 requests in one run is reached" in ended.complaint
    assert endpoint.requests == []


async def test_the_hook_log_hangs_where_the_settings_want_it(
    crow: Crow, endpoint: Endpoint, home: Path
) -> None:
    endpoint.play(answer("ok"))
    write(home / ".crow/settings.json", {"extensions": {"hook_log": {"events": ["before_run"]}}})
    ended = await crow("run", "hello")
    assert ended.err == '[HOOK] before_run          "hello"\n'
