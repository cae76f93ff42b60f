"""The fixture ``crow``: the whole agent at work, and what it is asked then."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from crow import Agent, Context, Deny, ToolContext, hook
from crow.errors import ExtensionError
from crow.testing import ScriptedModel, call
from crow.testing.pilot import Pilot

PUSH = call("Bash", command="git push --force")


class NoForcePush:
    """Denies what the README's denies."""

    def before_tool(self, call: Any) -> Deny | None:
        if "push --force" in call.input.get("command", ""):
            return Deny("nobody force-pushes here")
        return None


class Polite:
    """Says something at the beginning."""

    async def before_run(self, ctx: Context) -> str:
        await ctx.ui.notify("being polite")
        return "Be polite."


def test_what_an_extension_does_is_asked_in_ten_lines(crow: Pilot):
    crow.use(NoForcePush, Polite())
    reply = crow.run("Push it", PUSH, "I will not push, then.")
    assert reply.text == "I will not push, then."
    (ruling,) = crow.ran("before_tool")
    assert ruling.answer == Deny("nobody force-pushes here")
    crow.denied("Bash", "nobody force-pushes")
    crow.sent("Be polite.")
    crow.told("being polite")
    crow.told("I will not push, then.", times=1)
    crow.asked(times=0)
    crow.called("Bash", command="git push", times=0)
    crow.prefix_stable()


def test_the_user_is_asked_by_the_real_permissions_and_the_call_really_runs(crow: Pilot):
    crow.user.answers("allow_once")
    crow.run("Go", call("Bash", command="touch made"), "Done.")
    crow.asked("Bash (touch made)")
    assert (crow.cwd / "made").exists()
    assert crow.called("Bash")[0].outcome == "ok"
    crow.ran("before_tool", times=0)
    crow.ran("before_tool", by="permissions")


def test_it_is_made_as_the_test_says_and_goes_on_in_one_session(crow: Pilot):
    crow.configure(allow=["Bash(touch *)"])
    crow.run("Go", call("Bash", command="touch made"), "Done.")
    crow.use(NoForcePush())
    crow.run("Go on", PUSH, "No.")
    crow.asked(times=0)
    crow.called("Bash", times=2)
    crow.denied("Bash", times=1)
    crow.sent("Go on", times=1)


def test_a_test_sets_options_of_an_extension_as_a_user_would(crow: Pilot):
    guard = crow.cwd / "budget.py"
    guard.write_text(
        "class Budget:\n    def __init__(self, *, prompts: int = 9): self.prompts = prompts\n"
        "    def before_run(self): return f'{self.prompts} prompts are left'\n"
    )
    with pytest.raises(TypeError, match=r"settings=\{'extensions': \{\.\.\.\}\}"):
        crow.configure(extensions={"budget": {"prompts": 3}})
    crow.configure(settings={"extensions": {"budget": {"prompts": 3}}})
    crow.use(guard)
    crow.run("Go", "Done.")
    crow.sent("3 prompts are left")


def test_a_file_that_is_not_there_is_said_where_it_is_used(crow: Pilot):
    with pytest.raises(FileNotFoundError, match=r"Path\(__file__\)\.with_name\('guard\.py'\)"):
        crow.use("somewhere/guard.py")
    (crow.cwd / "broken.py").write_text("def before_tool(:\n")
    crow.use(crow.cwd / "broken.py")
    with pytest.raises(ExtensionError, match="SyntaxError"):
        crow.run("Go")
    crow.close()  # as the fixture does; there is no agent that could be closed


def test_the_end_of_a_session_is_seen_once_it_is_closed(crow: Pilot):
    ended: list[str] = []

    def on_session_end(reason: str) -> None:
        ended.append(reason)

    crow.use(on_session_end)
    crow.run("Go", "Done.")
    crow.ran("on_session_end", times=0)
    crow.close()
    crow.ran("on_session_end", times=1)
    assert ended == ["exit"]


async def test_in_an_async_test_it_is_awaited(crow: Pilot):
    async with crow:
        crow.use(NoForcePush())
        await crow.arun("Push it", PUSH, "No.")
        crow.denied("Bash")


def test_what_sub_agents_do_is_seen(crow: Pilot):
    crow.configure(allow=["Bash(*)"])
    crow.use(NoForcePush)
    task = call("Agent", description="Push", prompt="Push it", subagent_type="general-purpose")
    crow.run("Go", task, PUSH, "I may not.", "It may not.")
    crow.denied("Bash", "nobody force-pushes")
    crow.ran("before_tool", times=2)
    crow.prefix_stable()


def test_prompts_that_hooks_queue_are_answered_before_it_goes_on(crow: Pilot):
    prompts = ["More"]

    def after_run(ctx: Context):
        if prompts:
            ctx.agent.queue(ctx.session, prompts.pop())

    crow.use(after_run)
    crow.run("Go", "One.", "Two.")
    crow.told("Two.")
    crow.ran("after_run", times=2)


def failure(said: Any, *args: Any, **options: Any) -> str:
    """What an assertion says that does not hold."""
    with pytest.raises(AssertionError) as caught:
        said(*args, **options)
    return str(caught.value)


def test_failures_say_what_did_happen(crow: Pilot):
    crow.use(NoForcePush(), Polite())
    crow.run("Push it", PUSH, "No.")
    assert failure(crow.denied, "Bash", "on Fridays") == (
        "expected that Bash was denied because of 'on Fridays'; what happened:\n"
        "  before_run: polite.before_run: 'Be polite.'\n"
        "  before_tool: no_force_push.before_tool: Deny('nobody force-pushes here')\n"
        "  before_tool: permissions.judge: Ask('no rule allows git push --force')\n"
        "  call: Bash {'command': 'git push --force'}: denied: nobody force-pushes here"
    )
    assert failure(crow.told, "yes") == (
        "expected that the user was told 'yes'; what happened:\n  told: being polite\n  told: No."
    )
    assert "  sent: user: Push it\n" in failure(crow.sent, "yes")
    assert "expected 2 times, and not 1, that a hook ran at" in failure(
        crow.ran, "before_tool", times=2
    )
    assert "that the user was asked about 'Bash'; " in failure(crow.asked, "Bash")


def test_the_failure_of_the_page_is_a_real_one(crow: Pilot):
    page = (Path(__file__).parents[2] / "docs" / "testing.md").read_text("utf-8")
    shown = page.split("```text\nE   AssertionError: ")[1].split("```")[0]
    crow.use(NoForcePush)
    crow.run("Push it", PUSH, "No.")
    said = failure(crow.denied, "Bash", "on Fridays").replace("\n", "\nE   ")
    assert f"{said}\n" == shown


def test_failures_name_what_may_be_meant(crow: Pilot):
    crow.run("Go", "Done.")
    assert failure(crow.ran, "before_tol") == (
        "there is no event 'before_tol'; did you mean 'before_tool'?"
    )
    assert failure(crow.ran, "PreToolUse") == (
        "PreToolUse is another name of the event 'before_tool'"
    )
    assert failure(crow.denied, "Bsh") == "there is no tool 'Bsh'; did you mean 'Bash'?"
    assert failure(crow.called, "Bash") == "expected that Bash was called; what happened: nothing"
    assert failure(crow.ran, "before_run", by="polit").startswith("there is no extension 'polit'")


def test_a_question_that_nobody_expected_fails_the_run_that_asked_it(crow: Pilot):
    said = failure(crow.run, "Go", call("Bash", command="touch made"), "Done.")
    assert "no answer: permission for Bash (touch made): no rule allows touch made" in said


def test_a_model_that_is_asked_past_its_script_fails_the_run(tmp_path: Path):
    """In a folder where nobody looks at the script again."""
    pilot = Pilot(lambda **options: Agent(ScriptedModel("One.")), tmp_path)
    pilot.run("Go")
    assert "has 1 lines and was asked 2 times" in failure(pilot.run, "Go on")
    pilot.close()


def test_what_comes_too_late_is_refused(crow: Pilot):
    crow.run("Go", "Done.")
    with pytest.raises(RuntimeError, match="comes before everything else"):
        crow.configure(allow=["Bash"])


async def test_in_an_async_test_it_says_what_to_write(crow: Pilot):
    with pytest.raises(RuntimeError, match=r"await crow\.arun"):
        crow.run("Go", "Done.")
    with pytest.raises(RuntimeError, match="`async with crow:` comes before"):
        await crow.arun("Go", "Done.")


def test_requests_that_begin_otherwise_are_told(crow: Pilot):
    count = iter("abc")

    def before_llm_request(messages: list[Any]) -> list[Any]:
        return [{"role": "system", "content": next(count)}, *messages[1:]]

    crow.use(before_llm_request)
    crow.run("Go", call("Bash", command="ls"), "Done.")
    assert "request 2 began otherwise than the one before" in failure(crow.prefix_stable)


FILE = """
from crow import tool

@tool
def weather(city: str = "Rome") -> str:
    \"\"\"Say how the weather is.\"\"\"
    return f"rain in {city}"
"""


def weather(tmp_path: Path, text: str = FILE) -> Path:
    path = tmp_path / "weather.py"
    path.write_text(text, "utf-8")
    return path


@pytest.mark.parametrize("how", ["a path", "a text", "a module", "the agent"])
def test_a_file_that_has_only_tools_is_used_by_its_path_or_as_a_module(
    crow: Pilot, tmp_path: Path, how: str
):
    path = weather(tmp_path)
    crow.configure(allow=["weather"])
    module = ModuleType("weather")
    exec(FILE, vars(module))
    match how:
        case "a path":
            crow.use(path)
        case "a text":
            crow.use(str(path))
        case "a module":
            crow.use(module)
        case _:
            crow.agent.use(module)
    crow.run("Weather?", call("weather"), "Rain.")
    crow.sent("rain in Rome")


def test_a_file_has_the_options_of_the_users_settings(crow: Pilot, tmp_path: Path):
    text = "class Weather:\n    def __init__(self, city: str = 'Rome') -> None:\n"
    text += "        self.city = city\n    def before_run(self) -> str:\n        return self.city\n"
    crow.configure(settings={"extensions": {"weather": {"city": "Oslo"}}})
    crow.use(weather(tmp_path, text))
    crow.run("Weather?", "Snow.")
    crow.sent("Oslo")


def test_a_class_is_used_with_options(crow: Pilot):
    class City:
        def __init__(self, city: str) -> None:
            self.city = city

        def before_run(self) -> str:
            return self.city

    crow.use(City, city="Oslo")
    crow.run("Weather?", "Snow.")
    crow.sent("Oslo")


def test_the_arguments_are_those_that_ran(crow: Pilot):
    def before_tool(ctx: ToolContext) -> None:
        ctx.args["command"] = "echo two"

    crow.configure(allow=["Bash"])
    crow.use(before_tool)
    crow.run("Go", call("Bash", command="echo one"), "Done.")
    crow.called("Bash", command="echo two")
    crow.called("Bash", command="echo one", times=0)
    with pytest.raises(AssertionError, match=r"which became .'command': 'echo two'"):
        crow.called("Bash", command="echo three")


def test_what_it_is_not_made_with_is_named(crow: Pilot):
    with pytest.raises(TypeError, match="configure has no 'alow'; did you mean 'allow'"):
        crow.configure(alow=["Bash"])


class Fails:
    def before_tool(self, ctx: object) -> None:
        raise ValueError("not today")

    @hook("after_run", background=True)
    async def look_back(self) -> None:
        await asyncio.sleep(0.01)
        raise KeyError("late")


LINE = (
    Path(__file__).read_text("utf-8").split("\n").index('        raise ValueError("not today")') + 1
)


def test_a_hook_that_fails_fails_the_test_at_its_end_with_its_place(crow: Pilot):
    crow.use(Fails)
    crow.run("Go", call("Bash", command="ls"), "Done.")
    crow.close()
    with pytest.raises(AssertionError) as caught:
        crow.verify()
    first, *told = str(caught.value).split("\n  ")
    assert first == "hooks failed, and no crow.failed(...) asked for it:"
    assert told[0].startswith("before_tool: fails.before_tool: failed: ValueError: not today")
    assert f"{__file__}:{LINE})" in told[0]
    assert told[1].startswith("after_run: fails.look_back: failed: KeyError: 'late'")
    crow.failed(times=2)


def test_a_failure_that_is_asked_for_is_none_of_the_test(crow: Pilot):
    crow.use(Fails)
    crow.run("Go", call("Bash", command="ls"), "Done.")
    with pytest.raises(
        AssertionError, match="expected that a hook of fails failed with 'tomorrow'"
    ):
        crow.failed("tomorrow", by="fails")
    (record,) = crow.failed("not today", by="fails")
    assert (record.event, record.hook) == ("before_tool", "before_tool")
    crow.denied("Bash", "not today")
    crow.close()
    crow.failed("late", times=1)


@pytest.mark.faces("acp", "pipe")
def test_it_is_so_in_other_processes(crow: Pilot):
    crow.use(Fails)
    crow.run("Go", call("Bash", command="ls"), "Done.")
    with pytest.raises(AssertionError, match=r"fails\.before_tool: failed: ValueError"):
        crow.verify()
    crow.close()
    crow.failed()


@pytest.mark.parametrize(
    "settings, wrong",
    [
        (
            {"permissions": {"alow": ["Read"]}},
            "no setting 'permissions.alow'; did you mean 'allow'?",
        ),
        ({"extensions": {"limits": {"promts": 3}}}, "no setting 'extensions.limits.promts'"),
        ({"cleanupPeriodDays": "many"}, "'cleanupPeriodDays' must be "),
    ],
)
def test_settings_that_nobody_knows_are_refused(crow: Pilot, settings: Any, wrong: str):
    with pytest.raises(ValueError, match=f"the settings do not fit: .*{re.escape(wrong)}"):
        crow.configure(settings=settings)


def test_settings_of_an_extension_that_is_not_there_are_refused_once_all_are(crow: Pilot):
    crow.configure(settings={"extensions": {"fial": {"most": 3}}})
    crow.use(Fails)
    with pytest.raises(ValueError, match=r"there is no extension 'fial'; did you mean 'fails'\?"):
        crow.run("Go", "Done.")


async def test_a_prompt_that_nobody_awaits_fails_the_test(crow: Pilot):
    with pytest.raises(RuntimeError, match="`async with crow:` comes before"):
        crow.arun("Go", "Done.").close()
    async with crow:
        crow.arun("Go", "Done.").close()
        assert crow.model.left == ["Done."]
        await crow.arun("Go on")


def test_what_a_model_cannot_say_is_refused_where_it_is_written(crow: Pilot):
    wrong: Any = 3
    with pytest.raises(TypeError, match="3 is no line of a script, which is a text, a call"):
        crow.run("Go", wrong)
    with pytest.raises(TypeError, match="3 is no line of a script"):
        ScriptedModel("Good day!", wrong)
