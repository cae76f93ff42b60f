"""The plan: a list of steps that the model keeps, shown to the user, brought to mind when stale."""

from __future__ import annotations

from collections.abc import Awaitable, Iterator
from typing import TYPE_CHECKING, Annotated, Any, cast

from crow import (
    Arg,
    CompactContext,
    Context,
    Session,
    Stop,
    ToolContext,
    ToolEnvironment,
    ToolResult,
    TurnContext,
)
from crow.dataclasses import entity
from crow.events import PlanChanged, PlanEntry
from crow.hooks import Point
from crow.tools import ToolKind

if TYPE_CHECKING:
    from crow import Agent

NAME = "plan"
STATUSES = ("pending", "in_progress", "completed")
MARKS = {"pending": "[ ]", "in_progress": "[>]", "completed": "[x]"}
FIELDS = ("task_id", "task_subject", "task_description")
CREATED = Point("on_task_created", "gate", FIELDS, aliases=("TaskCreated",))
COMPLETED = Point("on_task_completed", "gate", FIELDS, aliases=("TaskCompleted",))
DESCRIPTION = (
    "Show the user the steps of a longer task: always the whole list, one step in_progress. "
    "activeForm: 'Running tests'."
)
PARAMETERS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "todos": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "content": {"type": "string"},
                    "status": {"type": "string", "enum": list(STATUSES)},
                    "activeForm": {"type": "string"},
                },
                "required": ["content", "status"],
            },
        }
    },
    "required": ["todos"],
    "additionalProperties": False,
}
Todo = dict[str, str]


class TaskContext(Context):
    """A step is about to be put on the plan, or to be completed.

    ``task_id`` is the step's number in the session, ``task_subject`` what is to be done,
    ``task_description`` the same as it is said while it is done (None where the model gave none).
    """

    __slots__ = ("task_description", "task_id", "task_subject")

    def __init__(self, ctx: ToolContext, todo: Todo) -> None:
        super().__init__(ctx.agent, ctx.session, ctx.run)
        self.task_id = todo["id"]
        self.task_subject = todo["content"]
        self.task_description = todo.get("activeForm")


@entity
class PlanHook:
    """Adds the tool ``TodoWrite``, whose list is kept with the session and shown as a plan.

    Where steps are open and the list was not touched for ``stale`` turns, or the history was
    replaced, the model is reminded at the tail of the conversation. Fires the gates
    ``on_task_created`` (``TaskCreated``) and ``on_task_completed`` (``TaskCompleted``) for every
    step that is new or newly done; where one is refused, the list stays as it was and the model is
    told why.
    """

    name = NAME
    order = 140
    is_its_options = True

    stale: Annotated[int, Arg(minimum=1)] = 10
    """Turns without a look at the list after which the model is reminded."""

    def init_agent(self, agent: Agent) -> None:
        """Add the tool and the events."""
        for point in (CREATED, COMPLETED):
            if point.name not in agent.hooks.names:
                agent.hooks.define(point)
        agent.add_tool(TodoWrite())

    def after_turn(self, ctx: TurnContext) -> Awaitable[None] | None:
        """Count the turns since the list was touched, and bring it to mind when it is stale."""
        plan = plan_of(ctx.session)
        if not ctx.results or not _open(plan):
            return None
        plan["idle"] = plan.get("idle", 0) + 1
        if plan["idle"] < self.stale:
            return None
        plan["idle"] = 0
        text = "The plan was not touched for a while. Update it with TodoWrite if it has changed."
        return ctx.inject_context(f"{text}\n{_written(plan)}")

    async def after_compact(self, ctx: CompactContext) -> None:
        """Bring the list to mind: it may have gone with the history."""
        plan = plan_of(ctx.session)
        if _open(plan):
            plan["idle"] = 0
            await ctx.inject_context(f"The plan, as it stands:\n{_written(plan)}")


class TodoWrite:
    """The tool; its name and arguments are Claude Code's."""

    name = "TodoWrite"
    description = DESCRIPTION
    parameters = PARAMETERS
    kind: ToolKind = "think"

    def title(self, args: dict[str, Any]) -> str:
        """The step that is being worked on."""
        now = [todo for todo in args["todos"] if todo["status"] == "in_progress"]
        return f"Plan: {now[0].get('activeForm') or now[0]['content']}" if now else "Plan"

    def check(self, args: dict[str, Any]) -> str | None:
        """What is wrong with a list, in one line."""
        todos = args.get("todos")
        if not isinstance(todos, list):
            return "todos must be a list of {content, status, activeForm}"
        return next(_faults(cast("list[object]", todos)), None)

    async def run(self, args: dict[str, Any], ctx: ToolEnvironment) -> ToolResult:
        """Replace the list, unless a hook refuses one of its steps."""
        call = cast("ToolContext", ctx)
        plan = plan_of(call.session)
        old: list[Todo] = plan.get("todos", [])
        new, last = _numbered(args["todos"], old, plan.get("last", 0))
        refusal = await _refusal(call, old, new)
        if refusal:
            return ToolResult.failure(f"the plan stays as it was: {refusal}")
        plan.update(todos=new, last=last, idle=-1)
        await call.emit(PlanChanged(tuple(map(_entry, new))))
        data = {"oldTodos": list(map(_shown, old)), "newTodos": list(map(_shown, new))}
        return ToolResult(f"The plan is noted; open steps: {len(_open(plan))}.", data=data)


def plan_of(session: Session) -> dict[str, Any]:
    """What is kept: ``todos``, the ``last`` number given, the turns that it lay ``idle``."""
    return session.state.setdefault(NAME, {})


def _open(plan: dict[str, Any]) -> list[Todo]:
    return [todo for todo in plan.get("todos", ()) if todo["status"] != "completed"]


def _written(plan: dict[str, Any]) -> str:
    return "\n".join(f"{MARKS[todo['status']]} {todo['content']}" for todo in plan["todos"])


def _entry(todo: Todo) -> PlanEntry:
    return PlanEntry(todo["content"], cast("Any", todo["status"]))


def _shown(todo: Todo) -> Todo:
    return {key: value for key, value in todo.items() if key != "id"}


def _faults(todos: list[object]) -> Iterator[str]:
    for number, todo in enumerate(todos, 1):
        step = cast("dict[str, object]", todo) if isinstance(todo, dict) else {}
        content, status = step.get("content"), step.get("status")
        if not isinstance(content, str) or not content.strip():
            yield f"todos: step {number} has no content"
        elif status not in STATUSES:
            yield f"todos: the status of step {number} must be one of {', '.join(STATUSES)}"
        elif not isinstance(step.get("activeForm") or "", str):
            yield f"todos: the activeForm of step {number} must be text"


def _numbered(todos: list[Todo], old: list[Todo], last: int) -> tuple[list[Todo], int]:
    """Steps with their number: that of the step of the same content, else a new one."""
    known = {todo["content"]: todo["id"] for todo in reversed(old)}
    numbered: list[Todo] = []
    for todo in todos:
        number = known.pop(todo["content"], None)
        if number is None:
            last += 1
            number = str(last)
        step = {"id": number, "content": todo["content"], "status": todo["status"]}
        if todo.get("activeForm"):
            step["activeForm"] = todo["activeForm"]
        numbered.append(step)
    return numbered, last


async def _refusal(call: ToolContext, old: list[Todo], new: list[Todo]) -> str:
    """Ask the gates about every step that is new or newly done; the first refusal, if any."""
    before = {todo["id"]: todo["status"] for todo in old}
    for todo in new:
        points: list[Point] = []
        if todo["id"] not in before:
            points.append(CREATED)
        if todo["status"] == "completed" != before.get(todo["id"]):
            points.append(COMPLETED)
        for point in points:
            reason = await _judged(call, point, todo)
            if reason:
                verb = "be added" if point is CREATED else "be completed"
                return f"{todo['content']!r} must not {verb}: {reason}"
    return ""


async def _judged(call: ToolContext, point: Point, todo: Todo) -> str:
    """Why the gates refuse a step; empty where they do not."""
    agent: Agent | None = call.agent
    while agent is not None and point.name not in agent.hooks.names:
        agent = agent.parent  # a sub-agent runs the gates of its parent
    if agent is None:
        return ""
    ctx = TaskContext(call, todo)
    ruling = await ctx.ui.agreed(await agent.hooks[point.name].fire(ctx))
    if isinstance(ruling.verdict, Stop):
        call.stop(ruling.reason)
    return (ruling.reason or "a hook refused it") if ruling.refused else ""
