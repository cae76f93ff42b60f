"""Settings files that are edited while a session is open: the next call is judged by them."""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path
from typing import Any

import pytest
from tests.app.conftest import Room, write

from crow.app import export, live_of
from crow.core.events import ConfigChanged
from crow.core.extensions import Found
from crow.core.hooks.discovery import hook
from crow.core.verdicts import Deny
from crow.project.trust import trust
from crow.settings import load
from crow.testing import call

TOUCH = call("Bash", command="touch made")


def appending(file: Path, *, code: int = 0) -> dict[str, Any]:
    """A hook that keeps what it is given."""
    command = f"cat >> {shlex.quote(str(file))}; echo >> {shlex.quote(str(file))}; exit {code}"
    return {"hooks": [{"type": "command", "command": command}]}


async def test_a_rule_that_is_saved_between_two_calls_holds_for_the_second(
    room: Room, home: Path
) -> None:
    path = write(home / ".crow/settings.json", {"permissions": {"allow": ["Bash(touch *)"]}})

    def edit(ctx: Any) -> None:
        write(path, {"permissions": {"deny": ["Bash(touch *)"]}})

    room.agent(hooks=[type("Edit", (), {"after_turn": staticmethod(edit)})()])
    first, second = await room.do(TOUCH, TOUCH)
    assert "denie" not in first
    assert "the rule Bash(touch *) denies it" in second
    assert f"{path} was changed: what it says holds from now on" in room.person.told


async def test_a_file_that_is_made_and_one_that_is_removed_count_too(
    room: Room, home: Path
) -> None:
    await room.do(TOUCH)
    assert len(room.person.asked) == 1
    path = write(home / ".claude/settings.json", {"permissions": {"allow": ["Bash(touch *)"]}})
    await room.do(TOUCH)
    assert len(room.person.asked) == 1
    path.unlink()
    await room.do(TOUCH)
    assert len(room.person.asked) == 2


async def test_a_file_of_the_command_line_and_the_administrators_are_followed(
    room: Room, tmp_path: Path
) -> None:
    managed = tmp_path / "managed"
    path = write(tmp_path / "more.json", {"permissions": {"allow": ["Bash(touch *)"]}})
    room.agent(settings=load(room.project, file=str(path), managed=(managed,)))
    await room.do(TOUCH)
    assert room.person.asked == []
    write(managed / "managed-settings.d/10.json", {"permissions": {"deny": ["Bash"]}})
    assert "denies it" in (await room.do(TOUCH))[0]
    (managed / "managed-settings.d/10.json").unlink()
    write(path, {})
    await room.do(TOUCH)
    assert len(room.person.asked) == 1


@pytest.mark.parametrize("broken", ['{"permissions": {', "[]", b"\xff\xfe"])
async def test_a_broken_edit_leaves_what_held_before_and_says_so_once(
    room: Room, home: Path, broken: Any
) -> None:
    path = write(home / ".crow/settings.json", {"permissions": {"deny": ["Bash(touch *)"]}})
    await room.open()
    path.write_bytes(broken if isinstance(broken, bytes) else broken.encode())
    for _ in range(2):
        assert "denies it" in (await room.do(TOUCH))[0]
    (told,) = [text for text in room.person.notices if "still holds" in text]
    assert told.startswith(f"{path}: ")
    assert told.endswith("; what it said before still holds")
    write(path, {})
    await room.do(TOUCH)
    assert len(room.person.asked) == 1


async def test_while_rules_cannot_be_read_every_call_is_asked_about(room: Room, home: Path) -> None:
    path = write(home / ".crow/settings.json", '{"permissions": {"deny": ["Bash"]')
    write(room.project / "a.txt", "text")
    look = call("Read", file_path="a.txt")
    await room.open(mode="bypassPermissions")
    await room.do(look, TOUCH)
    assert [request.call.name for request in room.person.asked] == ["Read", "Bash"]
    assert f"{path}: line 1: no JSON" in room.person.told
    assert "so every call is asked about" in room.person.told
    write(path, {"permissions": {"deny": ["Bash"]}})
    read, touched = await room.do(look, TOUCH)
    assert "text" in read
    assert "denies it" in touched
    assert len(room.person.asked) == 2


async def test_an_entry_that_breaks_the_schema_is_named_and_the_rest_of_the_edit_holds(
    room: Room, home: Path
) -> None:
    await room.open()
    path = write(home / ".crow/settings.json", {"permissions": {"deny": ["Bash"], "alow": []}})
    assert "denies it" in (await room.do(TOUCH))[0]
    assert f"{path}: there is no setting 'permissions.alow'; did you mean" in room.person.told


async def test_malformed_rules_and_hooks_of_an_edit_are_named(room: Room, home: Path) -> None:
    await room.open()
    table = {"permissions": {"allow": ["Bash(ls"]}, "hooks": {"PreToolUs": []}}
    write(home / ".crow/settings.json", table)
    await room.do()
    assert "Bash(ls" in room.person.told
    assert "there is no hook event 'PreToolUs'" in room.person.told


async def test_hooks_that_are_written_run_from_then_on_and_no_more_when_they_are_gone(
    room: Room, home: Path, tmp_path: Path
) -> None:
    seen = tmp_path / "seen"
    await room.open()
    path = write(home / ".claude/settings.json", {"hooks": {"PreToolUse": [appending(seen)]}})
    await room.do(TOUCH)
    assert seen.read_text().count('"PreToolUse"') == 1
    write(path, {})
    await room.do(TOUCH)
    assert seen.read_text().count('"PreToolUse"') == 1


async def test_a_hook_refuses_the_change_of_a_file_but_not_of_the_administrators(
    room: Room, home: Path, tmp_path: Path
) -> None:
    seen, managed = tmp_path / "seen", tmp_path / "managed"
    guard = {"hooks": {"ConfigChange": [appending(seen, code=2)]}}
    write(home / ".claude/settings.json", guard)
    room.agent(settings=load(room.project, managed=(managed,)))
    await room.open()
    path = write(home / ".crow/settings.json", {"permissions": {"allow": ["Bash(touch *)"]}})
    for _ in range(2):
        await room.do(TOUCH)
    assert len(room.person.asked) == 2
    assert f"a hook refuses the change of {path}" in room.person.told
    assert seen.read_text().count("user_settings") == 1
    assert str(path) in seen.read_text()

    policy = write(managed / "managed-settings.json", {"permissions": {"deny": ["Bash(touch *)"]}})
    assert "denies it" in (await room.do(TOUCH))[0]
    assert "policy_settings" in seen.read_text()
    assert str(policy) in seen.read_text()
    more = write(managed / "managed-settings.d/10.json", {"permissions": {"deny": ["Read"]}})
    assert "denies it" in (await room.do(call("Read", file_path="a")))[0]
    assert str(more) in seen.read_text()


async def test_an_extension_sees_what_a_file_will_say_and_can_refuse_or_change_it(
    room: Room, home: Path
) -> None:
    heard: list[Any] = []

    def on_config_change(changes: Any, source: str, path: str) -> Deny | None:
        heard.append((changes, source, path))
        return Deny("no") if "model" in changes["settings"] else None

    room.agent(hooks=[on_config_change])
    await room.open()
    path = write(home / ".crow/settings.json", {"permissions": {"deny": ["Bash"]}})
    assert "denies it" in (await room.do(TOUCH))[0]
    write(path, {"model": "other"})
    assert "denies it" in (await room.do(TOUCH))[0]
    assert heard == [
        ({"settings": {"permissions": {"deny": ["Bash"]}}}, "user_settings", str(path)),
        ({"settings": {"model": "other"}}, "user_settings", str(path)),
    ]


async def test_the_mode_follows_where_nobody_has_chosen_another(room: Room, home: Path) -> None:
    path = write(home / ".crow/settings.json", {"permissions": {"defaultMode": "acceptEdits"}})
    session = await room.open()
    assert session.mode == "acceptEdits"
    write(path, {"permissions": {"defaultMode": "plan"}})
    await room.do()
    assert session.mode == "plan"
    session.mode = "dontAsk"
    write(path, {})
    await room.do()
    assert session.mode == "dontAsk"


@pytest.mark.parametrize("chosen", [False, True])
async def test_a_plan_does_not_end_in_a_mode_that_settings_give_no_more(
    room: Room, home: Path, *, chosen: bool
) -> None:
    mode = "default" if chosen else "acceptEdits"
    path = write(home / ".crow/settings.json", {"permissions": {"defaultMode": mode}})
    session = await room.open()
    agent = room.agents[-1]
    if chosen:
        await agent.configure(session, mode="acceptEdits")
    await agent.configure(session, mode="plan")
    write(path, {})
    room.person.says = "Yes, and ask as before"
    await room.do(call("ExitPlanMode", plan="Do it."))
    assert session.mode == ("acceptEdits" if chosen else "default")


async def test_the_mode_without_questions_ends_where_it_is_switched_off(
    room: Room, home: Path
) -> None:
    session = await room.open(mode="bypassPermissions")
    write(
        home / ".crow/settings.json", {"permissions": {"disableBypassPermissionsMode": "disable"}}
    )
    await room.do()
    assert session.mode == "default"
    room.agent()
    assert (await room.open(mode="bypassPermissions")).mode == "default"


async def test_model_variables_and_limits_count_for_the_next_prompt(
    room: Room, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEPT", "before")
    path = home / ".crow/settings.json"
    write(path, {"model": "a/one", "base_url": "http://127.0.0.1:9", "env": {"KEPT": "one"}})
    settings = load(room.project)
    exported = export(settings.env)
    agent = room.agent(settings=settings)
    live_of(agent).updater.exported = exported
    models = agent.llm
    session = await room.open()
    assert models.model == "a/one"
    content = {"model": "a/two", "base_url": "http://127.0.0.1:9"}
    write(path, {**content, "env": {"ADDED": "two"}, "limits": {"turns": 7}})
    try:
        await live_of(agent).refresh(session, session.cache["settings"])
        assert models.model == "a/two"
        assert (os.environ["KEPT"], os.environ["ADDED"]) == ("before", "two")
        assert agent.extensions["limits"].turns == 7
        write(path, content)
        await room.do()
        assert "ADDED" not in os.environ
        assert agent.extensions["limits"].turns == 200
    finally:
        os.environ.pop("ADDED", None)


async def test_options_that_an_extension_can_take_are_given_to_it_and_others_are_named(
    room: Room, home: Path
) -> None:
    taking = """
class Taking:
    def __init__(self, city="Berlin"):
        self.city = city
    def configure(self, city="Berlin"):
        self.city = city
    def before_run(self, ctx): ...
"""
    write(home / ".crow/extensions/taking.py", taking)
    write(home / ".crow/extensions/other.py", taking.replace("configure", "nothing"))
    agent = room.agent()
    await room.open()
    named = {"taking": {"city": "Rome"}, "other": {"city": "Rome"}}
    write(home / ".crow/settings.json", {"extensions": {**named, "disable": ["web"]}})
    await room.do()
    assert agent.extensions["taking"].city == "Rome"
    assert "extensions.other counts from the next start on" in room.person.told
    assert "extensions.disable counts from the next start on" in room.person.told


async def test_one_that_is_made_anew_for_a_session_is_trusted_no_more_than_before(
    room: Room, home: Path
) -> None:
    lenient = """
from crow import Allow

class Lenient:
    def __init__(self, city="Berlin"):
        self.city = city
    @classmethod
    def options_from(cls, settings, own):
        return own
    def before_tool(self, ctx):
        return Allow(self.city)
"""
    path = write(home / ".crow/extensions/lenient.py", lenient)
    agent = room.agent()
    session = await room.open()
    await room.do(TOUCH)
    write(home / ".crow/settings.json", {"extensions": {"lenient": {"city": "Rome"}}})
    await room.do(TOUCH)
    assert agent.extensions_of(session)["lenient"].city == "Rome"
    assert len(room.person.asked) == 2
    [owner] = [each for each in session.hooks.owners if each.name == "lenient"]
    assert owner.source == str(path)


async def test_each_session_has_the_settings_of_its_own_project(room: Room, tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    (tmp_path / "other/.git").mkdir(parents=True)
    hooks = {"SessionStart": [appending(seen)], "PreToolUse": [appending(seen)]}
    table = {"hooks": hooks, "permissions": {"deny": ["Bash(touch *)"]}}
    write(tmp_path / "other/.claude/settings.json", table)
    trust(tmp_path / "other")
    mine = await room.open()
    await room.open(cwd=tmp_path / "other")
    assert "denies it" in (await room.do(TOUCH))[0]
    assert seen.read_text().count('"SessionStart"') == 1
    assert seen.read_text().count('"PreToolUse"') == 1
    room.session = mine
    await room.do(TOUCH)
    assert len(room.person.asked) == 1
    assert seen.read_text().count('"PreToolUse"') == 1


async def test_the_agents_own_things_follow_the_project_of_the_first_session(
    room: Room, tmp_path: Path
) -> None:
    (tmp_path / "other/.git").mkdir(parents=True)
    table = {"model": "b/their", "base_url": "http://127.0.0.1:9"}
    write(tmp_path / "other/.crow/settings.json", table)
    write(tmp_path / "other/.crow/extensions/mine.py", "def before_run(ctx): ...")
    trust(tmp_path / "other")
    agent = room.agent()
    await room.open(cwd=tmp_path / "other")
    assert agent.llm.model == "b/their"
    assert "mine" in agent.extensions


async def test_a_rule_that_the_user_keeps_is_no_news(room: Room, home: Path) -> None:
    heard: list[Any] = []
    agent = room.agent(hooks=[type("Hear", (), {"on_config_change": heard.append})()])
    session = await room.open()
    agent.extensions_of(session)["permissions"].save("Bash(touch *)", "allow")
    await room.do(TOUCH)
    assert room.person.asked == []
    assert heard == []


async def test_a_look_where_nothing_has_changed_fires_nothing(room: Room, home: Path) -> None:
    path = write(home / ".crow/settings.json", {"permissions": {"deny": ["WebFetch"]}})
    told: list[Any] = []
    room.agent(hooks=[type("Hear", (), {"on_update": lambda self, ctx: told.append(ctx.update)})()])
    await room.open()
    write(path, {"permissions": {"deny": ["WebFetch"]}})
    await room.do(TOUCH)
    assert not [event for event in told if isinstance(event, ConfigChanged)]


async def test_a_hook_is_asked_about_skills_that_are_new_or_changed(
    room: Room, home: Path, tmp_path: Path
) -> None:
    seen = tmp_path / "seen"
    text = "---\nname: {}\ndescription: Does it.\n---\nDo it."
    refusing = {"matcher": "skills", **appending(seen, code=2)}
    write(home / ".claude/settings.json", {"hooks": {"ConfigChange": [refusing]}})
    write(home / ".claude/skills/old/SKILL.md", text.format("old"))
    session = await room.open()
    path = write(home / ".claude/skills/new/SKILL.md", text.format("new"))
    for _ in range(2):
        await room.do()
    assert seen.read_text().count('"skills"') == 1
    assert str(path) in seen.read_text()
    assert f"{path} is left out: a hook refuses its change" in room.person.told
    assert {"old", "new"} & set(session.commands) == {"old"}
    write(home / ".claude/settings.json", {})
    path.write_text(text.format("new") + "\n", "utf-8")
    await room.do()
    assert "new" in session.commands


async def test_a_sub_agent_is_judged_by_what_holds_in_its_callers_session(
    room: Room, home: Path, tmp_path: Path
) -> None:
    seen = tmp_path / "seen"
    await room.open()
    table = {
        "permissions": {"deny": ["Bash(touch *)"]},
        "hooks": {"PreToolUse": [appending(seen)], "SubagentStart": [appending(seen)]},
    }
    write(home / ".claude/settings.json", table)
    task = call("Agent", description="it", prompt="Touch it", subagent_type="general-purpose")
    (said,) = await room.do(task, TOUCH, "I could not.")
    assert "I could not." in said
    assert not (room.project / "made").exists()
    heard = seen.read_text()
    assert heard.count('"PreToolUse"') == 2
    assert heard.count('"SubagentStart"') == 1


async def test_hooks_that_change_while_a_sub_agent_works_change_for_it_too(
    room: Room, home: Path, tmp_path: Path
) -> None:
    before, since = tmp_path / "before", tmp_path / "since"
    rules = {"permissions": {"allow": ["Bash(touch *)", "Agent"]}}
    old = {"PostToolUse": [appending(before)]}
    now = {"PreToolUse": [appending(since)], "PostToolUse": [appending(since)]}
    path = write(home / ".claude/settings.json", {"hooks": old, **rules})

    def edit(ctx: Any) -> None:
        write(path, {"hooks": now, **rules})

    room.agent(hooks=[type("Edit", (), {"before_tool": hook("before_tool")(staticmethod(edit))})()])
    task = call("Agent", description="it", prompt="Touch it", subagent_type="general-purpose")
    await room.do(task, TOUCH, TOUCH, "Done.")
    events = [
        json.loads(line)["hook_event_name"] for line in since.read_text().splitlines() if line
    ]
    assert events == ["PreToolUse", "PostToolUse"] * 2 + ["PostToolUse"]
    assert not before.exists()


async def test_a_session_that_began_before_its_settings_could_be_read_runs_nothing_without_them(
    room: Room, tmp_path: Path
) -> None:
    more = write(tmp_path / "more.json", {"permissions": {"deny": ["Bash(touch *)"]}})
    agent = room.agent(settings=load(room.project, file=str(more)))
    other = tmp_path / "other"
    (other / ".git").mkdir(parents=True)
    live_of(agent).settings.memory.good.clear()  # type: ignore[union-attr]
    more.unlink()
    await room.open(cwd=other)
    assert await room.do(TOUCH) == []
    assert room.reply is not None
    assert "could not decide" in room.reply.detail
    write(more, {"permissions": {"deny": ["Bash(touch *)"]}})
    assert "denies it" in (await room.do(TOUCH))[0]


@pytest.mark.parametrize(
    "table",
    [
        {"permissions": {"deny": "Bash"}},
        {"permissions": {"ask": None}},
        {"permissions": "Bash"},
        {"extensions": {"permissions": {"quiet": "Bash"}}},
        {"extensions": {"permissions": []}},
    ],
)
async def test_an_edit_that_leaves_open_who_may_do_what_lets_nothing_run_until_it_is_mended(
    room: Room, home: Path, table: dict[str, Any]
) -> None:
    path = write(home / ".crow/settings.json", {"permissions": {"allow": ["Bash"]}})
    assert await room.do(TOUCH) == ["(no output)"]
    write(path, table)
    for _ in range(2):
        assert "the permissions cannot be judged" in (await room.do(TOUCH))[0]
    write(path, {"permissions": {"allow": ["Bash"]}})
    assert await room.do(TOUCH) == ["(no output)"]


async def test_an_extension_that_an_edit_breaks_stays_as_it_was_and_holds_up_no_other(
    room: Room, home: Path
) -> None:
    class Level:
        """Cannot be made at some levels."""

        @classmethod
        def options_from(cls, settings: Any, own: dict[str, Any]) -> dict[str, Any]:
            if own.get("level") == 15:
                raise RuntimeError("no such level")
            return own

        def __init__(self, level: int = 0) -> None:
            self.level = level

        def after_turn(self, ctx: Any) -> None:
            """Nothing."""

    agent = room.agent()
    agent.use(Level(), name="level")
    agent.found.append(Found("level", "level", names=("level",)))
    path = write(home / ".crow/settings.json", {"permissions": {"allow": ["Bash"]}})
    assert await room.do(TOUCH) == ["(no output)"]
    hooks = {"PreToolUse": [{"hooks": [{"type": "command", "command": "echo no >&2; exit 2"}]}]}
    write(path, {"extensions": {"level": {"level": 15}}, "hooks": hooks})
    for _ in range(2):
        assert "no" in (await room.do(TOUCH))[0].split()
    assert "level stays as it was, the settings break it: RuntimeError" in room.person.told
