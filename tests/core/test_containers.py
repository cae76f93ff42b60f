"""No hook can spoil what the core keeps in a container, by changing that in place."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, MutableMapping, MutableSequence, MutableSet
from typing import Any

import pytest

from crow.core.agent import Agent
from crow.core.cache import Key
from crow.core.history import flaw
from crow.core.hooks.points import POINTS
from crow.testing import ScriptedModel, call

LIKE_LIST = (
    lambda it: it.clear(),
    lambda it: it.pop(),
    lambda it: it.__setitem__(slice(None), []),
    lambda it: it.__delitem__(slice(None)),
    lambda it: it.append(object()),
    lambda it: it.insert(0, 5),
    lambda it: it.extend([None, {"role": "tool", "content": ""}]),
    lambda it: it.reverse(),
)
LIKE_DICT = (
    lambda it: it.clear(),
    lambda it: it.popitem(),
    lambda it: it.update({key: object() for key in it}),
    lambda it: it.update({"content": 5, "input_tokens": "x", "role": "tool", 7: 8}),
)
LIKE_SET = (
    lambda it: it.clear(),
    lambda it: it.pop(),
    lambda it: it.add(object()),
    lambda it: it.difference_update(set(it)),
    lambda it: it.__iand__(set()),
)
OWN = ("state", "cache", "options", "tools", "commands", "extensions")
"""Containers that are there for extensions to put things in."""
JUDGED = ("messages", "history", "args", "params", "changes")
"""What a hook may change in place where its answer may say so; looked at behind each hook."""


def changes_of(value: Any) -> tuple[Any, ...]:
    if isinstance(value, MutableSequence):
        return LIKE_LIST
    if isinstance(value, MutableMapping):
        return LIKE_DICT
    return LIKE_SET if isinstance(value, MutableSet) else ()


def containers(thing: Any) -> Iterator[tuple[str, Any]]:
    """What of a thing's public attributes can be changed in place."""
    for name in dir(thing):
        if not name.startswith("_"):
            try:
                value = getattr(thing, name)
            except Exception:  # noqa: BLE001 - no state without an owner
                continue
            if changes_of(value):
                yield name, value


def spoil(ctx: Any) -> set[str]:
    """Change everything in place that can be reached; names what could be reached."""
    run = ctx.run
    things = {
        "ctx": ctx,
        "session": ctx.session,
        "agent": ctx.agent,
        "hooks": ctx.agent.hooks,
        "trace": ctx.session.trace,
    }
    if run is not None:
        things |= {"run": run, "run.reply": run.reply}
        things |= {f"run.open[{i}]": opened for i, opened in enumerate(run.open)}
    found: set[str] = set()
    for of, thing in things.items():
        for name, value in containers(thing):
            if name not in (*OWN, *JUDGED):
                found.add(f"{of}.{name}")
                change_all(value)
    change_all(ctx.agent.tool_specs(ctx.session))
    return found


def change_all(value: Any) -> None:
    for change in changes_of(value):
        try:
            change(value)
        except Exception:  # noqa: BLE001 - refused
            continue


@pytest.mark.parametrize("point", [point.name for point in POINTS])
async def test_no_result_is_lost_and_no_request_spoilt_whatever_a_hook_does_in_place(
    echo, whole, point
):
    model = ScriptedModel(call("echo", text="a"), "done", call("echo", text="b"), "again")
    agent = Agent(model, tools=[echo])
    found: set[str] = set()

    async def around(ctx: Any, call_next: Any) -> Any:
        found.update(spoil(ctx))
        answer = await call_next()
        spoil(ctx)
        return answer

    def act(ctx: Any) -> None:
        found.update(spoil(ctx))

    agent.hooks.register(point, around if point.startswith("around") else act)
    async with asyncio.timeout(20):
        session = await agent.new_session()
        await agent.configure(session, mode="plan")
        first = await agent.prompt(session, "go")
        agent.steer(session, "more")
        await asyncio.gather(*session.tasks)
        whole(session.messages)
        said = [message["content"] for message in session.messages]
        assert not session.lock.locked()
        await agent.close()
    assert (first.stop_reason, first.detail) == ("end_turn", "")
    assert said == ["go", None, "echo a", "done", "more", None, "echo b", "again"]
    for asked in model.asked:
        assert flaw(asked["messages"]) is None
        assert [spec["function"]["name"] for spec in asked["tools"]] == ["echo"]
    assert found or point in NEVER


NEVER = ("on_permission", "on_notification", "after_compact", "before_compact", "on_error",
         "before_command", "on_cwd_changed", "on_worktree_create",
         "on_worktree_remove")  # fmt: skip


async def test_a_cancelled_run_is_followed_up_though_a_hook_spoils_what_runs(make_echo, whole):
    slow = make_echo("slow", wait=asyncio.Event())
    agent = Agent(ScriptedModel(call("slow", text="a"), "done"), tools=[slow])

    async def around_tool(ctx: Any, call_next: Any) -> Any:
        spoil(ctx)
        return await call_next()

    agent.hooks.register("around_tool", around_tool)
    session = await agent.new_session()
    running = asyncio.create_task(agent.prompt(session, "go"))
    await slow.started.wait()
    agent.cancel(session)
    reply = await asyncio.wait_for(running, 5)
    assert reply.stop_reason == "cancelled"
    assert session.messages[-1]["content"] == "cancelled by the user"
    whole(session.messages)
    await asyncio.gather(*session.tasks)
    assert (await agent.prompt(session, "more")).text == "done"


async def test_what_somebody_steers_reaches_the_model_though_a_hook_empties_what_waits(echo):
    model = ScriptedModel(call("echo", text="a"), "done")
    agent = Agent(model, tools=[echo])

    def steers(ctx: Any) -> None:
        agent.steer(ctx.session, "be quick")

    agent.hooks.register("before_tool", steers)
    agent.hooks.register("after_tool", lambda ctx: ctx.session.pending.clear())
    reply = await agent.run("go")
    assert "be quick" in [message["content"] for message in reply.session.messages]
    [error] = [record.error for record in reply.session.trace if record.error]
    assert "cannot be" in error


@pytest.mark.parametrize(
    "take",
    [
        lambda ctx: setattr(ctx.session, "cache", {}),
        lambda ctx: ctx.session.cache.clear(),
        lambda ctx: ctx.cache.popitem(),
        lambda ctx: setattr(ctx.session, "pending", []),
        lambda ctx: setattr(ctx.run, "open", []),
        lambda ctx: setattr(ctx.run, "holds_lock", False),
        lambda ctx: setattr(ctx.run, "abandoned", True),
        lambda ctx: setattr(ctx.run, "sent", {"role": "tool", "content": "x"}),
        lambda ctx: ctx.session.tasks.clear(),
        lambda ctx: ctx.run.sent.clear(),
        lambda ctx: ctx.agent.sessions.clear(),
    ],
)
async def test_what_is_the_cores_own_or_everybodys_is_not_a_hooks_to_take_away(echo, take):
    agent = Agent(ScriptedModel(call("echo", text="a"), "done"), tools=[echo])
    agent.hooks.register("after_tool", take)
    async with asyncio.timeout(20):
        session = await agent.new_session()
        session.cache["of somebody"] = 1
        reply = await agent.run("go", session=session)
        async with session.lock:
            pass
    [error] = [record.error for record in session.trace if record.error]
    assert error.startswith(("TypeError", "AttributeError"))
    assert f"({__file__}:" in error
    assert session.cache["of somebody"] == 1
    assert reply.text == "done"


async def test_a_key_is_used_with_a_session_and_its_contexts_and_is_its_name(echo):
    seen: Key[list[str]] = Key("seen")
    agent = Agent(ScriptedModel(call("echo", text="a"), "done"), tools=[echo])
    agent.hooks.register("before_tool", lambda ctx: seen.setdefault(ctx, []).append(ctx.name))
    session = await agent.new_session()
    assert seen.get(session) is None
    await agent.run("go", session=session)
    assert seen.get(session) == session.cache["seen"] == ["echo"]
    session.cache["seen"] = ["by name"]
    assert seen.pop(session) == ["by name"]
    assert seen.pop(session) is None
    assert seen.set(session, []) is session.cache[seen]
