"""What a hook can do wrong, by name: small functions that any hook at any point can be made of."""

from __future__ import annotations

import asyncio
import functools
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from crow.core.agent import Agent
from crow.core.errors import SessionError
from crow.core.events import Notice, TextDelta
from crow.core.hooks.discovery import hook
from crow.core.hooks.points import POINTS
from crow.core.messages import tool_answer, user
from crow.core.ports.llm import Completion, Request
from crow.core.tools import Call, ToolResult
from crow.core.verdicts import Allow, Answer, Ask, Continue, Deny, Stop

KINDS = {point.name: point.kind for point in POINTS}
SPOILT = "spoilt by who failed"
SECONDS = 5.0
"""A hook's time-out."""


@dataclass
class Suspect:
    """A hook to be: where it hangs, how it is called, and what it does there.

    ``flavour`` is ``sync``, ``async``, ``later`` (after it has waited), ``decorated`` (what waits
    is a function around it), ``thread`` or ``beside`` (in the background); ``extra`` chooses among variants of what it does.
    """

    where: str
    event: str
    way: str
    flavour: str = "sync"
    order: int = 0
    judge: bool = False
    extra: int = 0
    label: str = ""

    @property
    def kind(self) -> str:
        return KINDS[self.event]

    @property
    def innocent(self) -> bool:
        return self.way in INNOCENT


@dataclass
class Moment:
    """One call of a suspect."""

    world: Any
    suspect: Suspect
    ctx: Any
    call_next: Any = None

    @property
    def extra(self) -> int:
        return self.suspect.extra

    def one_of(self, *variants: Any) -> Any:
        return variants[self.extra % len(variants)]


Way = Callable[[Moment], Any]
AT_ONCE: dict[str, Way] = {}
WAITING: dict[str, Way] = {}
AROUND: dict[str, Way] = {}
INNOCENT: set[str] = set()


def way(table: dict[str, Way], *, innocent: bool = False) -> Callable[[Way], Way]:
    """A way to behave, by its name."""

    def put(fn: Way) -> Way:
        table[fn.__name__] = fn
        if innocent:
            INNOCENT.add(fn.__name__)
        return fn

    return put


class Hostile:
    """An answer that fails whoever looks at it."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        raise ValueError("not comparable")

    def __repr__(self) -> str:
        raise ValueError("not shown")

    def __bool__(self) -> bool:
        raise ValueError("neither true nor false")


class Veiled:
    """An answer that shows nothing of itself."""

    def __getattr__(self, name: str) -> Any:
        raise ValueError(f"{name} is not shown")


class Mute(Exception):  # noqa: N818 - an odd one
    """An error that has no text."""

    def __str__(self) -> str:
        raise ValueError("no text")

    __repr__ = __str__


class Aside(BaseException):
    """Neither an error nor an end."""


ERRORS: list[Any] = [
    ValueError,
    SystemExit,
    asyncio.CancelledError,
    GeneratorExit,
    Aside,
    StopIteration,
    StopAsyncIteration,
    Mute,
    TimeoutError,
    SessionError,
    RecursionError,
]


# at once


@way(AT_ONCE, innocent=True)
def looks(now: Moment) -> None:
    _ = now.ctx.session.messages, now.ctx.cwd


@way(AT_ONCE)
def raises(now: Moment) -> None:
    raise now.one_of(*ERRORS)("on purpose")


@way(AT_ONCE)
def answers_an_object(now: Moment) -> Any:
    if now.suspect.kind in ("gate", "fold", "continue") and now.suspect.flavour != "beside":
        now.world.blame(now.suspect)
    return now.one_of(object(), Hostile(), threading.Lock(), Veiled())


@way(AT_ONCE)
def answers_nonsense(now: Moment) -> Any:
    return now.one_of(
        3, True, b"x", [1], [{}], (), {1}, Allow, Notice, Deny(5), Answer(object()), Stop(None),  # type: ignore[arg-type]
        ValueError("x"), NotImplemented, Ellipsis, TextDelta(5), ToolResult(None), Ask(3),  # type: ignore[arg-type]
        Continue(7), Completion(5), Completion(calls=(1,)), Completion(calls=None), lambda: 1,  # type: ignore[arg-type]
        Ask("x", options=(1,)), Completion(calls=(Call(5, 6, 7),)), ToolResult([{"type": "x"}]),  # type: ignore[arg-type]
        TextDelta, [None], [user("x"), 5], ToolResult("x", diffs=(1,)), type("X", (), {})(),  # type: ignore[arg-type]
    )  # fmt: skip


@way(AT_ONCE)
def answers_text(now: Moment) -> Any:
    return now.one_of("text", "", "\x00\ud800")


@way(AT_ONCE)
def allows(now: Moment) -> Any:
    return Allow()


@way(AT_ONCE)
def asks(now: Moment) -> Any:
    if now.suspect.event == "before_tool" and now.extra % 4 in (0, 2):
        now.world.to_ask[f"{now.ctx.call.id} of {now.ctx.session.id}"] = now.suspect.label
    return now.one_of(
        Ask("sure?"), Ask("?", default=True), Ask("?", rule="r"), Ask("?", options=())
    )


@way(AT_ONCE)
def denies(now: Moment) -> Any:
    now.world.refuse(now)
    return Deny("never")


@way(AT_ONCE)
def stops(now: Moment) -> Any:
    now.world.refuse(now)
    if now.suspect.event in ("before_tool", "on_permission"):
        now.world.to_stop.append(now.ctx.run)
    return Stop("enough")


@way(AT_ONCE)
def answers(now: Moment) -> Any:
    return Answer(now.one_of("instead", {"a": 1}, None, ToolResult("x", error=True)))


@way(AT_ONCE)
def answers_a_dict(now: Moment) -> Any:
    answer = now.one_of(
        {"permissionBehavior": "deny"}, {"decision": "block", "reason": "no"},
        {"permissionBehavior": "allow"}, {"reason": "never"}, {"permissionBehavior": "maybe"},
        {"hookSpecificOutput": 5}, {"continue": False}, {"updatedInput": {"text": 5}}, {"x": 1},
        {"message": "said"}, {"additionalContext": "known"}, {"blockingError": "no"}, {1: 2},
    )  # fmt: skip
    if now.suspect.kind == "gate" and now.extra % 13 not in (2, 7, 9, 10):
        now.world.refuse(now)
    return answer


@way(AT_ONCE)
def goes_on(now: Moment) -> Any:
    return Continue("go on") if now.suspect.event == "on_stop" else None


@way(AT_ONCE)
def stops_the_run(now: Moment) -> None:
    now.ctx.stop("that is enough")


@way(AT_ONCE)
def takes_the_stop_back(now: Moment) -> None:
    if now.ctx.run is not None:
        now.ctx.run.stopping = None


@way(AT_ONCE)
def rewrites(now: Moment) -> None:  # noqa: C901 - a table of changes
    ctx, event = now.ctx, now.suspect.event
    if event in ("before_tool", "on_permission"):
        new = now.one_of(
            {"text": "new"}, {"text": 5}, {}, {"text": "a", "more": 1}, {"text": "é\ud800"}
        )
        ctx.args = new
    elif event == "before_run":
        ctx.prompt = now.one_of("else", "", "/greet you", [{"type": "text", "text": "part"}])
    elif event == "before_command":
        ctx.args = "else"
    elif event == "after_tool":
        ctx.result = ToolResult(now.one_of("else", "", "\ud800"))
    elif event == "on_update":
        ctx.update = TextDelta("else")
    elif event == "after_llm_response" and now.world.once(now.suspect, 5):  # it is the model then
        calls = (Call("made_up", "echo", {"text": "x"}), Call("made_up", "echo", {"text": "y"}))
        ctx.reply = Completion("else", now.one_of((), calls[:1], calls))
    elif event == "before_compact":
        ctx.messages, ctx.summary = now.one_of([], [user("x")], [tool_answer("z", "y")]), "short"
    elif event in ("before_llm_request", "around_llm_request"):
        ctx.messages = now.one_of([user("x")], [*ctx.messages, user("y")], ctx.messages[1:], [])


@way(AT_ONCE)
def spoils_and_raises(now: Moment) -> None:
    """Change what can be changed, and fail: nothing of it counts."""
    ctx, event = now.ctx, now.suspect.event
    if event in ("before_tool", "on_permission"):
        ctx.args = {"text": SPOILT}
    elif event == "before_run":
        ctx.prompt = SPOILT
    elif event == "after_tool":
        ctx.result = ToolResult(SPOILT)
    elif event == "on_update":
        ctx.update = TextDelta(SPOILT)
    elif event in ("after_llm_response", "after_loop"):
        ctx.reply = (
            now.one_of(Completion(SPOILT), SPOILT) if event == "after_llm_response" else SPOILT
        )
    elif event in ("before_llm_request", "around_llm_request"):
        ctx.messages = [*ctx.messages, user(SPOILT)]
    raise ValueError("on purpose")


@way(AT_ONCE)
def rewrites_in_place(now: Moment) -> None:
    ctx = now.ctx
    change: list[Callable[[], Any]] = [
        lambda: ctx.args.update(text="in place"),
        lambda: ctx.args.clear(),
        lambda: ctx.call.args.update(text="in place"),
        lambda: ctx.call.input.update(text="in place"),
        lambda: ctx.messages.append(42),
        lambda: ctx.messages.clear(),
        lambda: ctx.messages[0].update(content=5),
        lambda: ctx.tools.append(5),
        lambda: ctx.params.update(x=object()),
        lambda: ctx.changes.update(mode=5),
        lambda: ctx.results.clear(),
        lambda: ctx.results[0].call.args.clear(),
        lambda: ctx.result.data.clear(),
        lambda: ctx.reply.usage.update(x=1),
        lambda: ctx.request.messages.append("x"),
        lambda: ctx.message.update(content=5),
    ]
    change[now.extra % len(change)]()


@way(AT_ONCE)
def assigns_nonsense(now: Moment) -> None:
    ctx = now.ctx
    names = ["args", "result", "reply", "prompt", "messages", "update", "summary", "changes",
             "tools", "model", "params", "request", "run", "session", "agent", "call", "tool",
             "results", "owner", "clock", "approved", "message", "settled", "outcome"]  # fmt: skip
    values: list[Any] = [None, 5, [42], {"text": object()}, object(), "x", [{"role": "x"}]]
    setattr(ctx, names[now.extra % len(names)], values[now.extra % len(values)])


@way(AT_ONCE)
def spoils_the_session(now: Moment) -> None:
    session, values = now.ctx.session, [None, 5, object(), [5], "x"]
    name = now.one_of("title", "messages", "state", "options", "model", "mode", "client", "usage",
                      "cwd", "segment", "runs", "pending", "tasks", "cache", "lock")  # fmt: skip
    if name == "client" or (name, values[now.extra % 5]) in (("cwd", "x"), ("title", "x")):
        return
    setattr(session, name, values[now.extra % 5])


@way(AT_ONCE)
def spoils_the_run(now: Moment) -> None:
    run = now.ctx.run
    change: list[Callable[[], Any]] = [
        lambda: setattr(run, "reply", None),
        lambda: setattr(run, "stopping", "no"),
        lambda: setattr(run, "count", None),
        lambda: setattr(run, "cap", "x"),
        lambda: setattr(run, "prompt", object()),
        lambda: setattr(run, "open", []),
        lambda: run.open.clear(),
        lambda: run.partial.append(5),
        lambda: setattr(run, "stored", True),
        lambda: setattr(run.reply, "text", 5),
        lambda: setattr(run.reply, "usage", None),
        lambda: setattr(run.reply, "stop_reason", "odd"),
        lambda: setattr(run, "holds_lock", False),
        lambda: setattr(run, "task", None),
        lambda: setattr(run.reply, "error", "x"),
        lambda: setattr(run, "count_in_row", -50),
    ]
    change[now.extra % len(change)]()


@way(AT_ONCE)
def touches_the_history(now: Moment) -> None:
    session = now.ctx.session
    messages = session.messages
    change: list[Callable[[], Any]] = [
        lambda: messages.append(user("hello")),
        lambda: messages.clear(),
        lambda: messages and messages.pop(),
        lambda: messages.insert(0, tool_answer("nobody", "x")),
        lambda: messages.__delitem__(slice(-2, None)),
        lambda: messages.reverse(),
        lambda: setattr(session, "messages", []),
        lambda: setattr(session, "messages", messages[-1:]),
        lambda: messages.extend([{"role": "banana"}, 42, {"content": "no role"}]),
        lambda: messages.append(tool_answer("call_1", "forged")),
        lambda: messages.append({"role": "assistant", "content": None, "tool_calls": [
            {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}]}),
        lambda: messages.append({"role": "assistant", "content": None}),
        lambda: messages.append({"role": "assistant", "content": "", "tool_calls": []}),
        lambda: messages.append({"role": "user", "content": None}),
        lambda: messages.append({"role": "system", "content": "obey"}),
        lambda: messages.sort(key=str),
        lambda: session.pending.append({"role": "tool", "content": "x"}),
        lambda: session.pending.append({"role": "assistant", "content": None}),
        lambda: session.pending.append(5),
        lambda: messages and messages[-1].update(content="spoilt"),
        lambda: session.restart([]),
        lambda: session.restart(messages[:1]),
        lambda: session.restart(),
        lambda: session.restart([{"role": "assistant", "content": "first"}]),
        lambda: session.repair(),
        lambda: messages.insert(0, {"role": "assistant", "content": "first"}),
    ]  # fmt: skip
    change[now.extra % len(change)]()


@way(AT_ONCE)
def keeps_odd_state(now: Moment) -> None:
    now.ctx.state["odd"] = now.one_of(object(), {1: 2}, "fine", threading.Lock())


@way(AT_ONCE)
def prompts_again(now: Moment) -> None:
    if now.world.once(now.suspect, 2):
        agent, session = now.ctx.agent, now.ctx.session
        now.one_of(agent.queue, agent.steer)(session, "one more thing")


@way(AT_ONCE)
def steers_on(now: Moment) -> None:
    """Say something to the run that is on, each time."""
    if now.ctx.run in now.ctx.session.runs:
        now.ctx.agent.steer(now.ctx.session, "go on")


@way(AT_ONCE)
def spawns(now: Moment) -> None:
    async def fails() -> None:
        raise now.one_of(*ERRORS)("in what was spawned")

    async def hangs() -> None:
        await asyncio.Event().wait()

    if now.world.once(now.suspect, 3):
        now.ctx.session.spawn(hangs() if now.extra == 7 else fails())


@way(AT_ONCE)
def cancels_the_session(now: Moment) -> None:
    now.world.disturbed = True
    now.ctx.agent.cancel(now.ctx.session)


@way(AT_ONCE)
def cancels_its_task(now: Moment) -> None:
    task = asyncio.current_task()
    assert task is not None
    later = asyncio.get_running_loop().call_soon
    cancel = now.one_of(task.cancel, lambda: later(task.cancel))
    cancel()
    if now.suspect.event == "after_run" and cancel != task.cancel:
        now.world.unfollowed = True  # as if the session was closed: nobody knows who it was


@way(AT_ONCE)
def cancels_what_runs_beside(now: Moment) -> None:
    now.world.disturbed = now.world.unfollowed = True
    for task in list(now.ctx.session.tasks):
        task.cancel()


@way(AT_ONCE)
def registers(now: Moment) -> None:
    if now.world.once(now.suspect, 3):
        event = now.one_of(now.suspect.event, "before_tool", "on_error", "on_update", "after_run")
        around = event.startswith("around_")
        late = innocent_wrap if around else innocent_hook
        now.world.removals.append(
            now.one_of(now.ctx.agent, now.ctx.session).hooks.register(event, late)
        )


async def innocent_wrap(call_next: Any) -> Any:
    return await call_next()


def innocent_hook(ctx: Any) -> None:
    pass


@way(AT_ONCE)
def removes(now: Moment) -> None:
    names = [name for name in now.ctx.agent.extensions if name.startswith("suspect")]
    if names:
        now.world.disturbed = True
        now.ctx.agent.remove(names[now.extra % len(names)])


@way(AT_ONCE)
def is_too_late(now: Moment) -> None:
    """Use the context of an earlier call."""
    for old in now.world.kept[-1:]:
        old.stop("late")
        name = {"before_tool": "args", "after_tool": "result"}.get(now.suspect.event, "prompt")
        setattr(old, name, {"text": "late"})
    now.world.kept.append(now.ctx)


@way(AT_ONCE)
def is_late(now: Moment) -> None:
    """Work on when the hook has answered."""
    ctx = now.ctx

    async def later() -> None:
        for _ in range(now.extra):
            await asyncio.sleep(0)
        await ctx.inject_context("late")
        ctx.args = {"text": "late"}

    if now.world.once(now.suspect, 3):
        ctx.session.spawn(later())


@way(AT_ONCE)
def blocks(now: Moment) -> None:
    if now.world.once(now.suspect, 1):
        now.world.blocked.add(now.suspect.label)
        time.sleep(0.06)


# waiting


@way(WAITING)
async def hangs(now: Moment) -> None:
    now.world.blame(now.suspect)
    now.world.refuse(now)
    await asyncio.Event().wait()


@way(WAITING)
async def outlasts(now: Moment) -> Any:
    """Swallow every cancellation."""
    now.world.blame(now.suspect)
    now.world.refuse(now)
    while True:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            continue


@way(WAITING)
async def swallows(now: Moment) -> Any:
    """Swallow one cancellation, and allow."""
    now.world.blame(now.suspect)
    now.world.refuse(now)
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        if now.extra % 2:
            now.ctx.stop("late")
            await now.ctx.inject_context("late")
        return Allow()


@way(WAITING)
async def tidies_up(now: Moment) -> None:
    now.world.blame(now.suspect)
    try:
        await asyncio.Event().wait()
    finally:
        await asyncio.sleep(now.extra)


@way(WAITING, innocent=True)
async def takes_its_time(now: Moment) -> None:
    await asyncio.sleep(SECONDS / 50)  # less than a hook has in a run that was cancelled


@way(WAITING)
async def reenters(now: Moment) -> None:
    agent, session = now.ctx.agent, now.ctx.session
    work = now.one_of(agent.prompt, agent.run)
    if not now.world.once(now.suspect, 3):
        return
    again = work(session, "again") if work == agent.prompt else work("again", session=session)
    if now.extra % 3 == 2:
        await asyncio.create_task(again)
    else:
        await again


@way(WAITING)
async def asks_the_user(now: Moment) -> None:
    await now.ctx.ui.confirm("sure?")


@way(WAITING)
async def compacts(now: Moment) -> None:
    ctx = now.ctx
    if now.world.once(now.suspect, 3):
        kept = now.one_of([], list(ctx.session.messages), list(ctx.session.messages)[-1:])
        await ctx.compact(kept, now.one_of("so far", ""))


@way(WAITING)
async def restarts(now: Moment) -> None:
    if now.world.once(now.suspect, 3):
        fresh = now.one_of(None, [], [user("anew")], [tool_answer("x", "y")], [5])
        await now.ctx.restart_with_new_session(fresh)


@way(WAITING)
async def recurses(now: Moment) -> None:
    """Make happen what it is called for."""
    ctx, event = now.ctx, now.suspect.event
    match event:
        case "on_update":
            await ctx.emit(Notice("again"))
        case "on_message":
            await ctx.append(user("again"))
        case "on_config_change":
            await ctx.agent.configure(ctx.session, mode="again")
        case "on_notification":
            await ctx.agent.notify(ctx.session, "again", "again")
        case "on_error":
            await ctx.fail(ValueError("again"), "loop")
        case "before_compact" | "after_compact":
            await ctx.compact([], "again")
        case _:
            await ctx.emit(Notice("again"))


@way(WAITING)
async def emits(now: Moment) -> None:
    junk: list[Any] = [None, 5, TextDelta(5), Notice, Notice("fine"), "x"]  # type: ignore[arg-type]
    if now.suspect.event != "on_update":
        await now.ctx.emit(junk[now.extra % len(junk)])


@way(WAITING)
async def appends(now: Moment) -> None:
    if now.suspect.event != "on_message":
        said: list[Any] = [user("more"), 5, {"role": "assistant", "content": None}, {"role": "x"},
                           tool_answer("z", "z"), user(None)]  # type: ignore[arg-type]  # fmt: skip
        await now.ctx.append(said[now.extra % len(said)])


@way(WAITING)
async def injects(now: Moment) -> None:
    said: list[Any] = ["context", "", None, 5, "\ud800"]
    await now.ctx.inject_context(said[now.extra % len(said)])


@way(WAITING)
async def closes_the_session(now: Moment) -> None:
    now.world.disturbed = True
    await now.ctx.agent.close_session(now.ctx.session)


@way(WAITING)
async def configures(now: Moment) -> None:
    if now.suspect.event != "on_config_change":
        changes: list[dict[str, Any]] = [
            {"mode": "plan"},
            {"mode": 5},
            {"model": "x"},
            {"mode": ""},
        ]
        await now.ctx.agent.configure(now.ctx.session, **changes[now.extra % 4])


@way(WAITING)
async def asks_the_model(now: Moment) -> None:
    if now.world.once(now.suspect, 2):
        await now.ctx.complete(Request([user("beside")]))


@way(WAITING)
async def prompts_another(now: Moment) -> None:
    if now.world.once(now.suspect, 1):
        agent: Agent = now.ctx.agent
        other = await agent.new_session()
        now.world.sessions.append(other)
        await agent.prompt(other, "something else")


@way(WAITING)
async def runs_tools(now: Moment) -> None:
    ctx = now.ctx
    if ctx.run is not None and now.world.once(now.suspect, 1):
        made = Call(f"own_{now.suspect.label}", "echo", {"text": "own"})
        await ctx.agent.call_tools(now.one_of(ctx.run, ctx.run), [made])


@way(WAITING)
async def fails_in_a_group(now: Moment) -> None:
    async def fails() -> None:
        raise ValueError("in a group")

    async with asyncio.TaskGroup() as group:
        group.create_task(fails())
        group.create_task(asyncio.Event().wait())


@way(WAITING)
async def is_cancelled_by_its_own_task(now: Moment) -> None:
    task = asyncio.create_task(asyncio.Event().wait())
    task.cancel()
    await task


# around


@way(AROUND)
async def never_calls(now: Moment) -> Any:
    event = now.suspect.event
    return Completion("made up") if event == "around_llm_request" else "made up"


@way(AROUND)
async def asks_for_something_else(now: Moment) -> Any:
    """Go on with another request, or with other arguments."""
    messages: list[Any] = [[user("else")], [], [tool_answer("z", "y")], [5], None]
    if now.suspect.event == "around_llm_request":
        return await now.call_next(messages=messages[now.extra % 5])
    if now.suspect.event == "around_tool":
        args = now.one_of({"text": "else"}, {"text": 5}, {}, {"text": "é"}, 5)
        return await now.call_next(args)
    return await now.call_next()


@way(AROUND)
async def calls_twice(now: Moment) -> Any:
    await now.call_next()
    return await now.call_next()


@way(AROUND)
async def calls_side_by_side(now: Moment) -> Any:
    answers = await asyncio.gather(now.call_next(), now.call_next())
    return answers[-1]


@way(AROUND)
async def calls_later(now: Moment) -> Any:
    """Leave what is wrapped to a task that nobody waits for."""
    now.world.disturbed = True  # whoever is further in may be cancelled
    task = asyncio.ensure_future(now.call_next())
    now.world.loose.append(task)
    for _ in range(now.extra):
        await asyncio.sleep(0)
    return await never_calls(now)


@way(AROUND)
async def calls_when_it_is_over(now: Moment) -> Any:
    """Call the ``call_next`` of an earlier time."""
    run = now.ctx.run
    for old, its in now.world.kept_next[-1:]:
        if its not in its.session.runs:
            await old()
            now.world.late.append(now.suspect.label)
    now.world.kept_next.append((now.call_next, run))
    return await now.call_next()


@way(AROUND)
async def cancels_what_it_called(now: Moment) -> Any:
    now.world.disturbed = True  # whoever is further in may be cancelled
    task = asyncio.ensure_future(now.call_next())
    for _ in range(now.extra % 5):
        await asyncio.sleep(0)
    task.cancel()
    return await task


@way(AROUND)
async def swallows_errors(now: Moment) -> Any:
    try:
        return await now.call_next()
    except BaseException:  # noqa: BLE001 - that is what is wrong with it
        return await never_calls(now)


@way(AROUND)
async def forgets_to_return(now: Moment) -> None:
    await now.call_next()
    if now.suspect.event != "around_run":
        now.world.blame(now.suspect)


@way(AROUND)
async def limits_the_time(now: Moment) -> Any:
    now.world.disturbed = True  # whoever is further in may be cancelled
    try:
        async with asyncio.timeout(1):
            return await now.call_next()
    except TimeoutError:
        return await never_calls(now)


@way(AROUND)
async def hangs_behind(now: Moment) -> Any:
    await now.call_next()
    await hangs(now)


@way(AROUND)
async def raises_behind(now: Moment) -> Any:
    await now.call_next()
    raises(now)


WAYS = {**AT_ONCE, **WAITING, **AROUND}
THREADED = ["looks", "raises", "answers_an_object", "allows", "denies", "assigns_nonsense", "hangs"]


def hang_in_thread(now: Moment) -> None:
    now.world.blame(now.suspect)
    now.world.refuse(now)
    now.world.hold_thread()


def function_of(suspect: Suspect, world: Any) -> Any:
    """The function that hangs at the suspect's event."""
    if suspect.kind == "wrap":
        made = wrap_of(suspect, world)
    elif suspect.flavour == "later" or (suspect.way in WAITING and suspect.flavour != "thread"):
        made = waiting_hook_of(suspect, world)
    else:
        made = hook_of(suspect, world)
    if suspect.flavour == "decorated":
        made = decorated(made)
    made.__name__ = suspect.label
    return made


def decorated(fn: Any) -> Any:
    """A function around another one, which waits though that one does not."""

    @functools.wraps(fn)
    async def inner(*given: Any) -> Any:
        await asyncio.sleep(0)
        return await fn(*given)

    return inner


def hook_of(suspect: Suspect, world: Any) -> Any:
    act = hang_in_thread if suspect.way == "hangs" else WAYS[suspect.way]

    def at_once(ctx: Any) -> Any:
        now = Moment(world, suspect, ctx)
        world.tick()
        try:
            return act(now)
        except BaseException as error:
            world.seen(now, error)
            raise

    async def plainly(ctx: Any) -> Any:
        return at_once(ctx)

    return plainly if suspect.flavour in ("async", "decorated") else at_once


def waiting_hook_of(suspect: Suspect, world: Any) -> Any:
    async def waiting(ctx: Any) -> Any:
        world.tick()
        await asyncio.sleep(0)
        return await behave(Moment(world, suspect, ctx))

    return waiting


def wrap_of(suspect: Suspect, world: Any) -> Any:
    async def around(ctx: Any, call_next: Any) -> Any:
        now = Moment(world, suspect, ctx, call_next)
        world.tick()
        if suspect.flavour == "later":
            await asyncio.sleep(0)
        if suspect.way in AROUND:
            return await AROUND[suspect.way](now)
        answer = await behave(now)
        result = await call_next()
        if suspect.way == "answers_an_object" and suspect.event != "around_run":
            world.blame(suspect)
        return result if answer is None else answer

    return around


async def behave(now: Moment) -> Any:
    """Do what the suspect does; what it raises is its own fault."""
    try:
        answer = WAYS[now.suspect.way](now)
        return await answer if now.suspect.way in WAITING else answer
    except BaseException as error:
        now.world.seen(now, error)
        raise


def extension_of(suspect: Suspect, world: Any) -> Any:
    """An extension with one hook."""
    options: dict[str, Any] = {"order": suspect.order, "timeout": SECONDS}
    if suspect.flavour == "thread":
        options["thread"] = True
    if suspect.flavour == "beside":
        options["background"] = True
    if suspect.judge:
        options["judge"] = True
    marked = hook(suspect.event, **options)(function_of(suspect, world))
    return type("Extension", (), {"suspected": staticmethod(marked)})()
