"""One test through every face: in this process, over ACP, in a pipe."""

from __future__ import annotations

import json
import sys
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

import pytest

from crow import Context, Deny
from crow.events import Notice
from crow.testing import call
from crow.testing.pilot import Pilot

RAW = Path(__file__).parent.parent / "extensions" / "mcp" / "servers" / "raw.py"
PUSH = call("Bash", command="git push --force")


class NoForcePush:
    """Denies what the README's denies, and says something at the beginning."""

    async def before_run(self, ctx: Context) -> str:
        await ctx.ui.notify("being polite")
        return "Be polite."

    def before_tool(self, call: Any) -> Deny | None:
        return Deny("nobody force-pushes here") if "--force" in call.input["command"] else None


async def form(ui: Any) -> str:
    """Asks three things."""
    size = await ui.select("Which size?", ["small", "large"])
    name = await ui.ask("Which name?")
    return f"{size} {name} {await ui.confirm('Sure?')}"


def before_run(ui: Any) -> Any:
    """Ask at the beginning."""
    return form(ui)


@pytest.mark.variants(1)
@pytest.mark.faces
def test_what_an_extension_does_is_the_same_through_every_face(crow: Pilot):
    crow.use(NoForcePush)
    reply = crow.run("Push it", ["I try.", PUSH], "I will not push, then.")
    assert (reply.text, reply.stop_reason) == ("I will not push, then.", "end_turn")
    assert crow.ran("before_tool", times=1)[0].answer == Deny("nobody force-pushes here")
    assert crow.ran("before_run", by="no_force_push")[0].answer == "Be polite."
    crow.denied("Bash", "nobody force-pushes", times=1)
    crow.sent("Be polite.")
    crow.told("being polite", times=1)
    crow.told("I try.")
    crow.told("I will not push, then.")
    crow.asked(times=0)
    crow.run("And now?", "Still not.")
    crow.sent("And now?")
    crow.sent("Push it")
    crow.told("Still not.")
    crow.prefix_stable()


@pytest.mark.variants(1)
@pytest.mark.faces("process", "acp")
def test_the_user_answers_where_somebody_is_there(crow: Pilot):
    crow.use(before_run)
    crow.user.answers("large", "Ada", True, "allow_once", False)
    crow.run("Go", call("Bash", command="touch a"), call("Bash", command="touch b"), "Done.")
    crow.sent("large Ada True")
    crow.asked("select 'Which size?' [small, large]", times=1)
    crow.asked("permission for Bash (touch a): no rule allows touch a [allow_once", times=1)
    assert [path.name for path in crow.cwd.iterdir()] == ["a"]
    assert [each.outcome for each in crow.called("Bash")] == ["ok", "denied"]


@pytest.mark.faces
@pytest.mark.variants(1)
def test_rules_hold_through_every_face(crow: Pilot):
    crow.configure(allow=["Bash(touch *)"])
    crow.user.answers("reject_once")
    crow.run("Go", call("Bash", command="touch a"), call("Bash", command="rm a"), "Done.")
    crow.asked("rm a", times=1)
    crow.denied("Bash", times=1)
    assert (crow.cwd / "a").exists()


class Slow:
    """Brings a server that is there once somebody has been told that it is waited for."""

    mcp_servers: ClassVar = {
        "slow": {"command": sys.executable, "args": [str(RAW), json.dumps({"gate": "gate"})]}
    }

    def on_update(self, update: object, session: Any) -> None:
        """Let the server go on; in a session that does not wait for it, it would be too late."""
        if isinstance(update, Notice) and "for up to" in update.text:
            Path(session.cwd, "gate").touch()


@pytest.mark.slow
@pytest.mark.faces("process", "acp")
def test_a_server_is_waited_for_however_slow_the_machine_is(crow: Pilot):
    crow.use(Slow)
    crow.configure(allow=["mcp__slow"])
    crow.run("Go", call("mcp__slow__echo", x=1), "Done.")
    assert [each.outcome for each in crow.called("mcp__slow__echo")] == ["ok"]


@pytest.mark.faces
@pytest.mark.variants(1)
async def test_an_async_test_awaits_it(crow: Pilot):
    async with crow:
        crow.use(NoForcePush)
        await crow.arun("Push it", PUSH, "No.")
        crow.denied("Bash")


@pytest.mark.faces
@pytest.mark.variants(1)
def test_the_end_of_the_session_is_seen_once_it_is_closed(crow: Pilot):
    crow.use(on_session_end)
    crow.run("Go", "Done.")
    crow.close()
    crow.ran("on_session_end", times=1)


def on_session_end() -> None:
    """Nothing."""


@pytest.mark.slow
@pytest.mark.faces("acp", "pipe")
def test_what_cannot_go_to_another_process_is_refused(crow: Pilot):
    def before_tool() -> None:
        """Stand inside another function."""

    for thing in (before_tool, NoForcePush()):
        with pytest.raises(TypeError, match="use a class, a function or a module that stands at"):
            crow.use(thing)
    with pytest.raises(TypeError, match="takes allow, deny, extensions, settings, not hooks"):
        crow.configure(hooks=[])
    with pytest.raises(TypeError, match="cannot say ValueError"):
        crow.run("Go", ValueError())
    crow.run("Go", "Done.")
    with pytest.raises(RuntimeError, match="comes before run"):
        crow.use(NoForcePush)


@pytest.mark.variants(1)
@pytest.mark.faces("acp", "pipe")
def test_a_run_that_fails_says_why(crow: Pilot):
    with pytest.raises(AssertionError, match=r"the run failed: .*past the script"):
        crow.run("Go")


@pytest.mark.variants(1)
@pytest.mark.faces("acp", "pipe")
def test_a_process_that_does_not_start_says_why(crow: Pilot, capfd: pytest.CaptureFixture[str]):
    crow.configure(extensions=["absent.py"])
    with pytest.raises(Exception):  # noqa: B017 - what the faces raise differs
        crow.run("Go")


@pytest.mark.slow
@pytest.mark.faces("acp", "pipe")
def test_lines_that_are_left_over_are_complained_of(crow: Pilot):
    crow.run("Go", "Done.", "Never said.")
    with pytest.raises(AssertionError, match="1 of the model's lines were left over"):
        crow.verify()
    crow.run("Go on")


@pytest.mark.slow
@pytest.mark.faces("pipe")
def test_in_a_pipe_nobody_can_say_yes(crow: Pilot):
    crow.user.answers("allow_once")
    with pytest.raises(AssertionError, match="in a pipe nobody can answer 'allow_once' to 'rm a'"):
        crow.run("Go", call("Bash", command="rm a"), "Done.")


GREETER = """
class Greeter:
    def __init__(self, word="Hello"):
        self.word = word

    def init_agent(self, agent):
        agent.add_section(PromptSection("greeter", self.word))


from crow import PromptSection
"""


@pytest.fixture
def greeter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A class of a package that is installed."""
    (tmp_path / "crow_greeter.py").write_text(GREETER, "utf-8")
    (tmp_path / "crow_greeter-1.dist-info").mkdir()
    (tmp_path / "crow_greeter-1.dist-info" / "entry_points.txt").write_text(
        "[crow.extensions]\ngreeter = crow_greeter:Greeter\n", "utf-8"
    )
    monkeypatch.delitem(sys.modules, "crow_greeter", raising=False)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return import_module("crow_greeter").Greeter


@pytest.mark.variants(1)
@pytest.mark.faces
def test_what_is_installed_hangs_once_with_the_options_of_its_user(
    crow: Pilot, greeter: Any
) -> None:
    crow.configure(settings={"extensions": {"greeter": {"word": "Servus"}}})
    crow.use(greeter)
    crow.run("Hi", "Hi.")
    crow.sent("Servus", times=1)
