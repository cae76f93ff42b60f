"""The one thing that must hold whatever is hung on the loop: no allow passes a deny or ask rule.

Hooks of every source, in any order, allow calls, answer the question in the user's place, rewrite
the arguments before, during and after the judgement. What a rule denies never runs; what a rule
asks about runs only where the person said yes.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.extensions.permissions.test_hook import Person
from tests.properties import examples

from crow import Agent, tool
from crow.core.hooks.registry import FIRST, LAST
from crow.core.verdicts import Allow, Answer, Ask
from crow.extensions import PermissionsHook, ShellHooks
from crow.project import HookFile
from crow.testing import ScriptedModel, call

DENIED, ASKED, ALLOWED, UNNAMED = "curl x", "git push", "npm run x", "make all"
COMMANDS = (DENIED, ASKED, ALLOWED, UNNAMED)
commands = st.sampled_from(COMMANDS)
given_by_hook = st.one_of(st.none(), st.builds(lambda one: {"command": one}, commands))


def allowing(rewritten: Any) -> Any:
    def before(ctx: Any) -> Allow:
        if rewritten:
            ctx.args = dict(rewritten)
        return Allow("fine")

    return "before_tool", before


def rewriting(rewritten: Any) -> Any:
    def before(ctx: Any) -> None:
        ctx.args.update(rewritten or {})

    return "before_tool", before


def asking(rewritten: Any) -> Any:
    def before(ctx: Any) -> Ask:
        ctx.args = dict(rewritten or ctx.args)
        return Ask("sure?", default=True)

    return "before_tool", before


def answering(_: Any) -> Any:
    return "before_tool", lambda ctx: Answer("made up")


def permitting(rewritten: Any) -> Any:
    def permission(ctx: Any) -> Allow:
        if rewritten:
            ctx.args = dict(rewritten)
        return Allow("yes")

    return "on_permission", permission


def wrapping(rewritten: Any) -> Any:
    async def around(ctx: Any, call_next: Any) -> Any:
        ctx.args.update(rewritten or {})
        return await call_next()

    return "around_tool", around


def shouting(rewritten: Any) -> Any:
    """An allow of the wrong kind, and one that breaks half way."""

    def before(ctx: Any) -> Any:
        ctx.args = dict(rewritten or ctx.args)
        raise RuntimeError("broken")

    return "before_tool", before


makers = st.sampled_from(
    [allowing, rewriting, asking, answering, permitting, wrapping, shouting, allowing, permitting]
)
hooks = st.lists(st.tuples(makers, given_by_hook, st.sampled_from([FIRST, 0, LAST])), max_size=4)


def judge_of(mode: str) -> PermissionsHook:
    return PermissionsHook(
        allow=["Bash(npm run *)"], ask=["Bash(git push *)"], deny=["Bash(curl *)"], mode=mode
    )


async def ran(
    command: str, person: Person, mode: str, hang: Callable[[Agent], None], first: bool
) -> list[str]:
    """The commands that ran, of a call whose hooks are hung by ``hang``."""
    seen: list[str] = []

    @tool(name="Bash")
    def bash(command: str) -> str:
        """Run it."""
        seen.append(command)
        return "done"

    agent = Agent(ScriptedModel(call("Bash", command=command), "Done."), tools=[bash])
    if first:
        agent.use(judge_of(mode))
    hang(agent)
    if not first:
        agent.use(judge_of(mode))
    session = await agent.new_session(client=person)
    session.mode = mode
    await agent.prompt(session, "Go")
    await agent.close()
    return seen


def holds(seen: list[str], person: Person) -> bool:
    """Whether nothing ran that a rule denies, and nothing unasked that one asks about."""
    yes = bool(person.asked) and person.answer == "allow_once"
    return DENIED not in seen and (ASKED not in seen or yes)


@settings(max_examples=examples(150), deadline=None)
@given(
    command=commands,
    hung=hooks,
    mode=st.sampled_from(["default", "acceptEdits", "dontAsk", "bypassPermissions"]),
    first=st.booleans(),
    answer=st.sampled_from([None, "allow_once", "reject_once"]),
)
async def test_no_allow_of_any_hook_in_any_order_passes_a_rule(command, hung, mode, first, answer):
    def hang(agent: Agent) -> None:
        for make, rewritten, order in hung:
            point, function = make(rewritten)
            agent.hooks.register(point, function, order=order)

    person = Person(answer)
    seen = await ran(command, person, mode, hang, first)
    assert holds(seen, person)
    if mode == "dontAsk":
        assert ASKED not in seen


def said(event: str, rewritten: Any) -> dict[str, Any]:
    """A handler of a settings file that allows."""
    answer: dict[str, Any] = {"hookEventName": event}
    if event == "PreToolUse":
        answer |= {"permissionDecision": "allow"} | (
            {"updatedInput": rewritten} if rewritten else {}
        )
    else:
        more = {"updatedInput": rewritten} if rewritten else {}
        answer |= {"decision": {"behavior": "allow", **more}}
    output = json.dumps({"hookSpecificOutput": answer})
    return {"type": "command", "command": f"echo {shlex.quote(output)}"}


@settings(
    max_examples=12,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    command=st.sampled_from([DENIED, ASKED, ALLOWED]),
    before=st.lists(given_by_hook, max_size=2),
    permission=given_by_hook,
    first=st.booleans(),
    python=hooks,
)
async def test_no_allow_of_a_settings_hook_passes_a_rule_either(
    tmp_path: Path, command, before, permission, first, python
):
    table = {
        "PreToolUse": [{"hooks": [said("PreToolUse", one) for one in before]}],
        "PermissionRequest": [{"hooks": [said("PermissionRequest", permission)]}],
    }

    def hang(agent: Agent) -> None:
        agent.use(ShellHooks([HookFile("settings", table)], directory=tmp_path))
        for make, rewritten, order in python:
            agent.hooks.register(*make(rewritten), order=order)

    person = Person("reject_once")
    assert holds(await ran(command, person, "default", hang, first), person)
