"""The judge where a sandbox holds commands: what needs no question then, and what still does.

The sandbox is the test's own: whatever has the members of `crow.keys.Sandbox` will do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from crow import Agent, AgentHook, SessionContext, ToolContext, tool
from crow.core.ports.client import Files, PermissionRequest, Question, Terminals
from crow.extensions import PermissionsHook
from crow.keys import SANDBOX
from crow.testing import ScriptedModel, call


@dataclass
class Box(AgentHook):
    """A sandbox that holds what it says, and notes the ring of every call that runs."""

    name: str = "box"
    unasked: bool = True
    over_ask: bool = False
    escapes: bool = True
    excluded: Sequence[str] = ()
    reads: bool = False
    refused: Sequence[str] = ()
    line: str = "a box"
    rings: list[str] = field(default_factory=list)

    def on_session_start(self, ctx: SessionContext) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        SANDBOX.set(ctx, self)

    def has_refused(self, command: str) -> bool:
        return command in self.refused

    async def around_tool(self, ctx: ToolContext, call_next: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        self.rings.append(ctx.ring)
        return await call_next()


@dataclass
class Person:
    """A client that says yes, and keeps what it was asked."""

    asked: list[PermissionRequest] = field(default_factory=list)
    files: Files | None = None
    terminals: Terminals | None = None

    async def update(self, session_id: str, event: Any) -> None: ...

    async def permission(self, session_id: str, request: PermissionRequest) -> str | None:
        self.asked.append(request)
        return "allow_once"

    async def ask(self, session_id: str, question: Question) -> Any:
        return question.default


@tool(name="Bash")
def bash(command: str, description: str = "", dangerouslyDisableSandbox: bool = False) -> str:  # noqa: N803
    """Run it."""
    return f"ran {command}"


async def play(
    world: Any,
    box: Box,
    *commands: str | dict[str, Any],
    mode: str = "default",
    hooks: Sequence[Any] = (),
    **rules: Any,
) -> tuple[list[str], list[str]]:
    """Run one command after another; the rings of those that ran, and the reasons of questions."""
    given: list[Any] = [{"command": each} if isinstance(each, str) else each for each in commands]
    calls = [call("Bash", **each) for each in given]
    person = Person()
    judge = PermissionsHook(**rules)
    agent = Agent(ScriptedModel(*calls, "done"), hooks=[judge, box, *hooks], tools=[bash])
    async with agent:
        session = await agent.new_session(str(world.cwd), client=person)
        session.mode = mode
        await agent.prompt(session, "Go")
    return box.rings, [request.reason for request in person.asked]


OUT = {"dangerouslyDisableSandbox": True}


@pytest.mark.parametrize(
    "command, ring",
    [
        ("ls", "reading"),
        ("cat README.md | head -3", "reading"),
        ("make test", "workspace"),
        ("python x.py > out.txt", "workspace"),
        ("rm dist/old.js; mkdir three", "workspace"),
        ("cp two /etc/passwd", "workspace"),
        ("$(cat README.md) --all", "workspace"),
        ("echo 'never closed", "workspace"),
    ],
)
async def test_what_stays_inside_needs_no_question(world, command: str, ring: str):
    assert await play(world, Box(), command) == ([ring], [])


async def test_without_anything_that_holds_all_is_as_ever_and_what_only_reads_is_known(world):
    rings, asked = await play(world, Box(name=""), "ls", "make test")
    assert rings == ["reading", ""]
    assert asked == ["no rule allows make test"]


async def test_where_it_does_not_hold_enough_commands_are_asked_about_and_run_inside(world):
    rings, asked = await play(world, Box(unasked=False), "ls", "make test")
    assert rings == ["reading", "workspace"]
    assert asked == ["no rule allows make test"]


async def test_an_accepted_edit_does_not_run_where_nothing_can_be_written(world):
    rings, asked = await play(world, Box(), "echo a > new", "rm dist/old.js", mode="acceptEdits")
    assert (rings, asked) == (["workspace", "workspace"], [])


async def test_deny_rules_refuse_and_ask_rules_ask_as_ever(world):
    rings, asked = await play(
        world, Box(), "git push origin", "npm publish", deny=["Bash(git push *)"],
        ask=["Bash(npm publish *)"],
    )  # fmt: skip
    assert rings == ["workspace"]
    assert asked == ["the rule Bash(npm publish *) asks about it"]


async def test_a_denied_command_cannot_hide_in_what_nobody_can_foresee(world):
    rings, asked = await play(world, Box(), "eval $x", deny=["Bash(git push *)"])
    assert rings == ["workspace"]
    assert len(asked) == 1


async def test_the_removal_of_what_is_critical_is_asked_about_and_stays_inside(world):
    rings, asked = await play(world, Box(), "rm -rf ~")
    assert rings == ["workspace"]
    assert len(asked) == 1


async def test_a_protected_path_is_asked_about_and_runs_outside_as_the_question_says(world):
    rings, [asked] = await play(world, Box(), "echo x > .git/config")
    assert rings == ["outside"]
    assert asked.endswith("the sandbox would not let it, so it runs outside once it is allowed")


async def test_a_secret_is_not_shown_unasked_wherever_that_would_run(world):
    rings, asked = await play(world, Box(), "echo $GITHUB_TOKEN")
    assert rings == ["workspace"]
    assert asked == ["the variable GITHUB_TOKEN may carry a secret"]


async def test_a_rule_that_asks_about_all_commands_is_heard_unless_somebody_said_otherwise(world):
    _, asked = await play(world, Box(), "make", ask=["Bash"])
    assert asked == ["the rule Bash asks about it"]
    _, asked = await play(world, Box(over_ask=True), "make", ask=["Bash"])
    assert asked == []
    _, asked = await play(world, Box(over_ask=True), "make", ask=["Bash"], mode="plan")
    assert asked == ["the rule Bash asks about it"]


async def test_a_model_that_plans_runs_nothing_unasked_that_could_change_something(world):
    rings, asked = await play(world, Box(), "ls", "make test", mode="plan")
    assert rings == ["reading", "workspace"]
    assert asked == ["no rule allows make test"]


async def test_a_model_that_plans_may_run_anything_where_nothing_can_be_written(world):
    box = Box(reads=True, refused=["make all"])
    rings, asked = await play(world, box, "ls", "make test; python3 x.py", "make all", mode="plan")
    assert rings == ["reading", "reading", "workspace"]
    assert asked == ["no rule allows make all"]
    _, asked = await play(world, box, "echo $GITHUB_TOKEN", "make", mode="plan", ask=["Bash(make)"])
    assert len(asked) == 2


@pytest.mark.parametrize(
    "command",
    [
        "tree -Lo 1 .envrc",
        "xxd -ac in out && strings @list | sort -u",
        "git -C sub --no-pager diff --ext-diff HEAD~3",
        "node --version; cargo --help",
        "sqlite3 -readonly a.db .tables",
        "awk '{print > \"x\"}' f",
    ],
)
async def test_what_most_likely_reads_is_tried_where_it_can_write_nothing(world, command: str):
    assert await play(world, Box(unasked=False, reads=True), command) == (["reading"], [])
    _, asked = await play(world, Box(unasked=False), command)
    assert len(asked) == 1
    refused = Box(unasked=False, reads=True, refused=[command])
    rings, asked = await play(world, refused, command)
    assert (rings, len(asked)) == (["workspace"], 1)


@pytest.mark.parametrize(
    "command",
    [
        "git push",
        "git -c x=y commit",
        "tree > x",
        "python3 -c 1",
        "cat $(x)",
        "X=1 tree",
        "./a -h b",
    ],
)
async def test_what_most_likely_writes_is_not(world, command: str):
    _, asked = await play(world, Box(unasked=False, reads=True), command)
    assert len(asked) == 1


async def test_what_only_reads_runs_in_the_workspace_once_it_was_refused_something(world):
    box = Box(reads=True, refused=["ls"])
    assert await play(world, box, "ls") == (["workspace"], [])


async def test_who_blocks_reading_outside_is_asked_as_ever(world):
    from crow.extensions.permissions import Limits

    limits = Limits(blocks_reads=True)
    _, asked = await play(world, Box(), "python x.py", limits=limits)
    assert asked == ["no rule allows python x.py"]


class TestOutside:
    """A call that asks to run outside."""

    async def test_it_is_a_question_with_the_reason(self, world):
        wanted = {"command": "make push", "description": "it needs  the network", **OUT}
        rings, asked = await play(world, Box(), wanted)
        assert rings == ["outside"]
        assert asked == ["it wants to run outside of the sandbox: it needs the network"]

    async def test_so_it_is_for_what_only_reads_and_under_a_rule_for_all_commands(self, world):
        reading = {"command": "ls", **OUT}
        rings, asked = await play(world, Box(), reading, reading, allow=["Bash"])
        assert rings == ["outside", "outside"]
        assert asked == ["it wants to run outside of the sandbox"] * 2

    async def test_a_rule_that_names_it_needs_no_question(self, world):
        wanted = {"command": "git push origin main", **OUT}
        rings, asked = await play(world, Box(), wanted, allow=["Bash(git push *)"])
        assert (rings, asked) == (["outside"], [])

    async def test_an_ask_rule_may_name_the_argument(self, world):
        wanted = {"command": "git push", **OUT}
        rules: Any = {
            "allow": ["Bash(git push *)"],
            "ask": ["Bash(dangerouslyDisableSandbox:true)"],
        }
        rings, asked = await play(world, Box(), wanted, "git push", **rules)
        assert rings == ["outside", "workspace"]
        assert asked == ["the rule Bash(dangerouslyDisableSandbox:true) asks about it"]

    async def test_where_nothing_may_leave_the_wish_counts_for_nothing(self, world):
        rings, asked = await play(world, Box(escapes=False), {"command": "make", **OUT})
        assert (rings, asked) == (["workspace"], [])

    async def test_a_hook_that_allows_it_skips_the_question_only(self, world):
        def before_tool(call: Any) -> Any:
            from crow import Allow

            return Allow("fine")

        wanted = {"command": "make", **OUT}
        rings, asked = await play(world, Box(), wanted, hooks=[before_tool])
        assert (rings, asked) == (["outside"], [])

    async def test_no_hook_lets_out_what_did_not_ask(self, world):
        def before_tool(call: Any) -> Any:
            from crow import Allow

            return Allow("fine", ring="outside")

        rings, _ = await play(world, Box(), "make", "ls", hooks=[before_tool])
        assert rings == ["workspace", "reading"]


class TestExcluded:
    """Commands that run outside by themselves."""

    @pytest.mark.parametrize("command", ["docker ps", "docker build . && docker push x"])
    async def test_they_run_outside_and_are_asked_about(self, world, command: str):
        rings, asked = await play(world, Box(excluded=["docker *"]), command)
        assert rings == ["outside"]
        assert asked

    async def test_a_rule_allows_them(self, world):
        box = Box(excluded=["docker *"])
        rings, asked = await play(world, box, "docker ps", allow=["Bash(docker ps)"])
        assert (rings, asked) == (["outside"], [])

    @pytest.mark.parametrize(
        "command",
        [
            "docker ps; make",
            "docker ps > list",
            "docker ps $(make)",
            "cd src && docker ps",
            "docker run <<< x",
            "A=1 docker ps",
            "for x in a; do docker ps; done",
        ],
    )
    async def test_whatever_else_a_command_does_keeps_it_inside(self, world, command: str):
        rings, asked = await play(world, Box(excluded=["docker *"]), command)
        assert (rings, asked) == (["workspace"], [])
