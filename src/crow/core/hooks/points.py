"""A point: a moment at which hooks are called, its names and fields, and what answers mean there.

`event` makes one from a method, which is how the table of them is written.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator, Mapping
from dataclasses import field, replace
from functools import wraps
from itertools import filterfalse
from typing import Any, Literal, TypeAlias

from crow.core.events import ConfigChanged, TextDelta
from crow.core.hooks.call_next import Next
from crow.core.hooks.context import Context
from crow.core.hooks.run_context import Reply
from crow.core.ports.llm import Completion
from crow.core.support.frozen import frozen
from crow.core.support.validation import check, fits
from crow.core.tools import ToolResult
from crow.core.verdicts import Answer, Deny, answerable

Kind = Literal["gate", "fold", "watch", "wrap", "continue"]
Filter: TypeAlias = Callable[[Any], bool]
Aliases: TypeAlias = "tuple[str, ...] | Mapping[str, Filter | None]"
Plain: TypeAlias = Callable[[Any, Any], "Deny | str | None"]
"""What a plain answer means: called with the hook's context and the answer, it changes a field, or
returns a `Deny`, or text that becomes context. ``NotImplemented`` says that it means nothing."""


def inject(ctx: Any, answer: object) -> Any:
    """Text becomes context."""
    return answer if isinstance(answer, str) else NotImplemented


def deny(ctx: Any, answer: object) -> Any:
    """Text denies, and is the reason."""
    return Deny(answer) if isinstance(answer, str) else NotImplemented


def messages(ctx: Any, answer: object) -> Any:
    """A list becomes the messages of the request."""
    if not isinstance(answer, list):
        return NotImplemented
    ctx.messages = answer
    return None


def summary(ctx: Any, answer: object) -> Any:
    """Text becomes the summary, a `Deny` leaves the history as it is."""
    if isinstance(answer, str):
        ctx.summary = answer
        return None
    return answer if isinstance(answer, Deny) else NotImplemented


def update(ctx: Any, answer: object) -> Any:
    """An event goes to the client instead, a `Deny` lets none go."""
    if isinstance(answer, Deny):
        return answer
    if not hasattr(answer, "__dataclass_fields__"):
        return NotImplemented
    ctx.update = answer
    return None


def reply(ctx: Any, answer: object) -> Any:
    """Text becomes the reply's, a whole reply takes its place."""
    if isinstance(answer, str):
        ctx.reply = replace(ctx.reply, text=answer)
    elif isinstance(answer, Completion | Reply) and type(answer) is type(ctx.reply):
        ctx.reply = answer
    else:
        return NotImplemented
    return None


def path(ctx: Any, answer: object) -> Any:
    """Text is the path."""
    if not isinstance(answer, str):
        return NotImplemented
    ctx.path = answer
    return None


def result(ctx: Any, answer: object) -> Any:
    """Text becomes context, an `Answer` or a result takes the result's place."""
    if isinstance(answer, str):
        return answer
    if not isinstance(answer, Answer | ToolResult):
        return NotImplemented
    value = answer.value if isinstance(answer, Answer) else answer
    check("the answer's value", value, answerable)
    ctx.result = ToolResult.of(value)
    return None


@frozen
class Point:
    """A moment at which hooks are called.

    ``fields`` are the context's fields that a hook can name as parameters, ``changes`` the ones
    it may change. ``plain`` is what a plain answer does; where it is None, text denies at a gate,
    and is of no use elsewhere. ``aliases`` are further names, or say for which contexts the point
    fires under them; ``other_names`` are those of parameters. ``context`` is what it is fired with.
    """

    name: str
    kind: Kind
    fields: tuple[str, ...]
    changes: tuple[str, ...] = ()
    plain: Plain | None = None
    reverse: bool = False
    aliases: Aliases = ()
    other_names: Mapping[str, str] = field(default_factory=dict[str, str])
    context: type[Context] = Context

    @property
    def names(self) -> dict[str, Filter | None]:
        """Every name that it has, and for which contexts it fires under that."""
        aliases = self.aliases if isinstance(self.aliases, Mapping) else dict.fromkeys(self.aliases)
        return {self.name: None, **aliases}

    def attribute(self, parameter: str) -> str | None:
        """The context's attribute that fills a parameter of this name; None where none does."""
        if parameter in self.fields or parameter in COMMON:
            return parameter
        return self.other_names.get(parameter)


COMMON = ("agent", "session", "session_id", "cwd", "state", "ui", "trace")
TOOL_NAMES = {"block": "call", "tool_call": "call", "tool_name": "name", "tool_input": "args"}


def main(ctx: Any) -> bool:
    """True in the session that a person talks to."""
    return ctx.session.parent is None


def sub(ctx: Any) -> bool:
    """True in a sub-agent's session."""
    return ctx.session.parent is not None


def outcome(*outcomes: str) -> Filter:
    """A filter for tool calls that ended so."""
    return lambda ctx: ctx.outcome in outcomes


def is_text(ctx: Any) -> bool:
    """True for a piece of the model's answer."""
    return isinstance(ctx.update, TextDelta)


def model_changed(ctx: Any) -> bool:
    """True for the update that says that the model was switched."""
    return isinstance(ctx.update, ConfigChanged) and "model" in ctx.update.changes


def switches_model(ctx: Any) -> bool:
    """True where another model is about to answer."""
    return "model" in ctx.changes


def ends_run(ctx: Any) -> bool:
    """True for an error that ends a run."""
    return ctx.where in ("model", "loop")


def event(
    kind: Kind, context: type[Context], **row: Any
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Make a row of the table from a method: its name, and its parameters as the fields.

    What overrides the method names the arguments that it wants, so to type checkers it takes any;
    editors complete all of them. Whatever ``await super().before_tool(...)`` is called with does
    nothing: it goes on where there is something to go around, and hands on what it was given.
    """

    def make(method: Callable[..., Any]) -> Callable[..., Any]:
        code = method.__code__
        names = code.co_varnames[1 : code.co_argcount]
        fields = tuple(filterfalse(NO_FIELDS.__contains__, names))
        point = Point(method.__name__, kind, fields, context=context, **row)
        POINTS.append(point)
        for name, when in point.names.items():
            NAMES[name] = point, when

        def untouched(self: object, *args: Any, **kwargs: Any) -> Untouched:
            return Untouched(_handed(point, [*args, *kwargs.values()]))

        def through(self: object, *args: Any, **kwargs: Any) -> Any:
            return method(self, **dict.fromkeys(fields), call_next=_next(args, kwargs))

        return wraps(method)(through if kind == "wrap" else untouched)

    return make


class Untouched(dict[str, None]):
    """The answer of a method of `AgentHook` that nobody has overridden: nothing, awaited or not.

    Awaited it is the value that a fold hands on, where the method was called with that.
    """

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        super().__init__()
        self.value = value

    def __await__(self) -> Generator[None, None, Any]:
        return self.value
        yield


def _handed(point: Point, given: list[Any]) -> Any:
    """What a fold hands on: the first argument that is like it, or that of the context."""
    if point.kind != "fold" or not point.changes:
        return None
    name = point.changes[0]
    like = fits(point.context.shapes[name])
    found = (getattr(each, name) if isinstance(each, Context) else each for each in given)
    return next((each for each in found if like(each)), None)


def _next(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Next:
    """What there is to go around, among the arguments of a wrap."""
    found = [each for each in (*args, *kwargs.values()) if inspect.isroutine(each)]
    if not found:
        raise TypeError("there is nothing to go around: hand call_next on")
    return found[-1]


NO_FIELDS = {*COMMON, "call_next"}
"""Parameters that are the same at many moments."""


POINTS: list[Point] = []


NAMES: dict[str, tuple[Point, Filter | None]] = {}
"""What each of their names stands for, and for which contexts it fires under that."""
