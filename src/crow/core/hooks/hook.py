"""A hook: who hung it, the arguments it names, and the point at which it hangs with others."""

from __future__ import annotations

import dis
import inspect
from collections.abc import Callable, Collection, Iterable
from functools import partial
from inspect import (
    CO_ASYNC_GENERATOR,
    CO_COROUTINE,
    CO_GENERATOR,
    CO_VARARGS,
    CO_VARKEYWORDS,
    iscoroutinefunction,
)
from itertools import count
from math import inf
from operator import attrgetter
from types import CodeType, FunctionType, MethodType
from typing import Any, TypedDict, cast

from crow.core.errors import HookError, last_line, nearest
from crow.core.hooks.context import Context
from crow.core.hooks.points import COMMON, Filter, Point
from crow.core.support.clock import BLOCKING
from crow.core.support.frozen import entity
from crow.core.support.parameters import (
    KEYWORD_ONLY,
    SAYS_MORE,
    VAR_KEYWORD,
    VAR_POSITIONAL,
    parameters,
)
from crow.core.trace import Role

NUMBERS = count(1)
"""Hooks and extensions are numbered as they are hung."""

WAITING = {dis.opmap[name] for name in ("GET_AWAITABLE", "GET_AITER", "GET_ANEXT")}
"""What an async function does that needs a task and a clock, because it may take its time."""
NUMBER = (int, float)
CONTEXT = ("ctx",)
WHOLE = {"wrap": ("ctx", "call_next")}
"""What a hook takes that is called as it is, where that is more than the context."""


@entity
class Owner:
    """Whoever hung something on an agent: an extension, or a function by itself.

    ``trusted`` is False for what was discovered and not listed as trusted; its `Allow` counts as
    no opinion. ``source`` says where it came from. ``used`` counts the extensions in the order in
    which they were used, 0 for what is none; one that stands in another's place on a session has
    that one's number. ``by`` is who used it, in a hook of its own. ``moved`` says that it stands
    where one of an earlier number stood. ``place`` is where what it hangs stands then, in either
    case. ``store`` is what it has made the agent's store, which goes with it.
    """

    name: str
    thing: Any = None
    trusted: bool = True
    source: str = "code"
    used: int = 0
    by: Owner | None = None
    moved: bool = False
    place: tuple[int, ...] = ()
    store: Any = None


NOT_GIVEN: Any = object()
"""What stands for a function that is given later: None is none, and refused."""


class HookOptions(TypedDict, total=False):
    """The options of a hook, as of `HookRegistry.register`."""

    tools: Iterable[str] | None
    order: int
    timeout: float | None
    background: bool
    judge: bool
    thread: bool


class RegisterOptions(HookOptions, total=False):
    """The options of `HookRegistry.register`."""

    owner: Owner | None


class Hook:
    """A callable that hangs at an event: who hung it, what, when and how (`HookRegistry.register`).

    ``asked`` is the name of the event that it was hung by, ``event`` the canonical one: empty while
    no extension in use makes that event happen. ``when`` says for which contexts it runs, ``place``
    when it was hung: those of an agent run before those of a session. ``name`` is the function's.
    ``call`` takes the context, and at a wrap what it goes around. ``plain`` says that it may be
    called there and then, ``lazy`` that a call does nothing as long as nobody waits, ``eager`` that
    its first step may be made there and then, ``instant`` that it is async and waits for nothing,
    ``always`` that it runs at every moment; ``patience`` is for how many seconds it may keep
    everybody waiting. ``blocked`` and ``checked`` say that it was named for that, and looked at for
    its ``tools``.
    """

    __slots__ = (
        "always", "asked", "background", "blocked", "call", "checked", "eager", "event", "failures",
        "function", "instant", "judge", "lazy", "name", "off", "order", "owner", "patience",
        "place", "plain", "role", "thread", "timeout", "tools", "when",
    )  # fmt: skip

    def __init__(
        self,
        asked: str,
        function: Any,
        owner: Owner,
        tools: Iterable[str] | None = None,
        order: int = 0,
        timeout: float | None = 60.0,
        background: bool = False,
        judge: bool = False,
        thread: bool = False,
    ) -> None:
        """Raises `HookError` for an option that is not what it must be."""
        if isinstance(tools, str):
            raise HookError(f"tools takes several names: tools={{{tools!r}}}")
        if not isinstance(order, NUMBER):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise HookError(f"order is a number (FIRST, 0, LAST), not {order!r}")
        seconds: Any = inf if timeout is None else timeout
        if not isinstance(seconds, NUMBER) or seconds <= 0:
            told = "timeout is a number of seconds, more than 0, or None"
            raise HookError(f"{told}, not {timeout!r}")
        for name, value in (("background", background), ("judge", judge), ("thread", thread)):
            if value is not True and value is not False:
                raise HookError(f"{name} is True or False, not {value!r}")
        self.asked, self.function, self.owner = asked, function, owner
        self.tools = None if tools is None else frozenset(map(str.casefold, tools))
        self.order, self.timeout = order, seconds
        self.background, self.judge, self.thread = background, judge, thread
        self.name: str = getattr(function, "__name__", type(function).__name__)
        self.event = ""
        self.when: Filter | None = None
        self.place: tuple[int, ...] = ()
        self.failures = 0
        self.off = self.blocked = self.checked = False

    def hang(self, point: Point, when: Filter | None) -> None:
        """Be ready to be called at a point. Raises `HookError` for what does not go together."""
        code = getattr(self.function, "__code__", None) or _code_called(self.function)
        flags, steps = (0, b"") if code is None else (code.co_flags, code.co_code[::2])
        if flags & (CO_GENERATOR | CO_ASYNC_GENERATOR) and point.name != "around_llm_request":
            raise HookError(
                f"{_named(self.function)} yields, and nothing of it would run at {point.name}: "
                "return an answer; only around_llm_request has a use for pieces"
                f"{at_place(self.function)}"
            )
        if self.background or self.judge or self.thread or self.tools is not None:
            self._fit(point)
        function, whole = self.function, WHOLE.get(point.kind, CONTEXT)
        is_plain = (  # a method that says itself that it takes just the whole, as most do
            function.__class__ is MethodType
            and function.__func__.__class__ is FunctionType
            and function.__code__.co_varnames[1 : function.__code__.co_argcount] == whole
            and not (flags & (CO_VARARGS | CO_VARKEYWORDS) or function.__code__.co_kwonlyargcount)
            and not function.__defaults__
            and SAYS_MORE.isdisjoint(function.__func__.__dict__)
        )
        sources, rest = (whole, ()) if is_plain else _sources(function, point)
        if rest:
            self.call = _filled_by_name(function, sources, rest)
        else:
            self.call = function if sources == whole else _filled(function, sources, point)
        self.event, self.when = point.name, when
        changes = () if self.judge or self.background else point.changes
        self.role = Role(self.owner, point.name, self.name, changes)
        here = not (self.thread or self.background or point.kind == "wrap")
        self.always = self.tools is None and when is None and not self.off
        self.patience = min(BLOCKING, self.timeout)
        self.lazy = flags & CO_ASYNC_GENERATOR > 0 or iscoroutinefunction(self.function)
        self.instant = not self.thread and flags & CO_COROUTINE > 0 and WAITING.isdisjoint(steps)
        if self.instant:
            self.call, self.lazy = partial(_at_once, self.call), False
        self.plain, self.eager = here and not self.lazy, here and self.lazy

    def switch_off(self) -> None:
        """Let it run no more."""
        self.off, self.always = True, False

    def again(self, owner: Owner) -> Hook:
        """The same hook to be hung somewhere else, by somebody else."""
        options = self.tools, self.order, self.timeout, self.background, self.judge, self.thread
        return Hook(self.asked, self.function, owner, *options)

    def _fit(self, point: Point) -> None:
        """Raise `HookError` for an option that makes no sense at a point."""
        name, function = point.name, self.function
        if self.background and point.kind not in ("watch", "fold"):
            raise HookError(f"{name} decides something: its hooks cannot run in the background")
        if self.judge and point.kind != "gate":
            raise HookError(f"{name} is no gate: judge=True has no meaning there")
        if self.tools is not None and "call" not in point.fields:
            raise HookError(f"{name} is about no tool call: tools=... has no meaning there")
        if self.thread and point.kind == "wrap":
            raise HookError(f"{name} wraps what is async: its hooks cannot run in a thread")
        if self.thread and any(map(iscoroutinefunction, (function, type(function).__call__))):
            told = f"{_named(function)} is async: thread=True is for hooks that are not"
            raise HookError(f"{told}{at_place(function)}")

    def concerns(self, ctx: Context) -> bool:
        """True where neither the tool filter nor the alias's filter excludes this moment."""
        if self.off or (self.tools is not None and _tool_name(ctx) not in self.tools):
            return False
        return self.when is None or self.when(ctx)

    def __str__(self) -> str:
        return f"{self.owner.name}.{self.name}" if self.owner.name != self.name else self.name


def _tool_name(ctx: Any) -> str:
    return ctx.call.name.casefold()


def _filled(fn: Callable[..., Any], sources: tuple[str, ...], point: Point) -> Callable[..., Any]:
    """A callable of a context, and at a wrap of ``call_next``, that gives ``fn`` what it names."""
    get: Callable[[Any], Any] = attrgetter(*sources or ("agent",))

    def given(ctx: Any, call_next: Any = None) -> Any:
        return fn(*[_fill(source, ctx, call_next) for source in sources])

    def given_one(ctx: Any) -> Any:
        return fn(get(ctx))

    def given_fields(ctx: Any) -> Any:
        return fn(*get(ctx))

    if not sources or point.kind == "wrap" or "ctx" in sources:
        return given
    return given_one if len(sources) == 1 else given_fields


def _filled_by_name(
    fn: Callable[..., Any], sources: tuple[str, ...], rest: tuple[str, ...]
) -> Callable[..., Any]:
    """A callable of a context that gives ``fn`` what it names, and the ``rest`` as keywords."""

    def given(ctx: Any, call_next: Any = None) -> Any:
        named = {name: _fill(name, ctx, call_next) for name in rest}
        return fn(*[_fill(source, ctx, call_next) for source in sources], **named)

    return given


def _fill(source: str, ctx: Any, call_next: Any) -> Any:
    if source == "ctx":
        return ctx
    return call_next if source == "call_next" else getattr(ctx, source)


def _at_once(function: Callable[..., Any], *given: Any) -> Any:
    """What an async function answers that waits for nothing."""
    try:
        function(*given).send(None)
    except StopIteration as stop:
        return stop.value
    raise RuntimeError("waited, though it awaits nothing")


def _sources(fn: Callable[..., Any], point: Point) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What fills the parameters, and ``**rest``; those with a default keep it.

    Raises `HookError` for one that nothing fills.
    """
    try:
        known = parameters(fn)
    except (TypeError, ValueError) as error:
        raise HookError(f"{fn!r} cannot be a hook: {error}") from None
    sources: list[str] = []
    if known and known[0].kind is VAR_POSITIONAL:
        return WHOLE.get(point.kind, CONTEXT), ()
    for index, parameter in enumerate(known):
        if not parameter.required:
            continue
        if parameter.kind is KEYWORD_ONLY:
            raise HookError(f"{_named(fn)}: {parameter.name!r} must not be keyword-only")
        name = parameter.name
        sources.append(name if name == "ctx" else _source(fn, point, name, first=index == 0))
    if not known or known[-1].kind is not VAR_KEYWORD or "ctx" in sources:
        return tuple(sources), ()
    named = {*CONTEXT, *sources, *(parameter.name for parameter in known)}
    return tuple(sources), _rest(point, named)


def _rest(point: Point, named: Collection[str]) -> tuple[str, ...]:
    """What ``**rest`` gets beside what is named: all that a point has, as a context would be."""
    every = (*point.fields, *COMMON, *WHOLE.get(point.kind, ()))
    return tuple([name for name in every if name not in named])


def _source(fn: Callable[..., Any], point: Point, parameter: str, *, first: bool) -> str:
    if parameter == "call_next" and point.kind == "wrap":
        return "call_next"
    attribute = point.attribute(parameter)
    if attribute is not None:
        return attribute
    if first or parameter == "context":
        return "ctx"
    if point.kind == "wrap" and parameter == "next":
        return "call_next"
    offered = sorted({*point.fields, *point.other_names, *COMMON, "ctx"})
    if point.kind == "wrap":
        offered.append("call_next")
    near = nearest(parameter, offered)
    hint = f"did you mean {near!r}? " if near else ""
    told = f"{_named(fn)}: {point.name} has no {parameter!r}; {hint}it has {', '.join(offered)}"
    raise HookError(f"{told}{at_place(fn)}")


def at_place(fn: Callable[..., Any]) -> str:
    """File and line of a function, in brackets; empty where nobody knows them."""
    place = place_of(fn)
    return f" ({place})" if place else ""


def _named(fn: Callable[..., Any]) -> str:
    return str(getattr(fn, "__qualname__", fn))


def place_of(function: Any, error: BaseException | None = None) -> str:
    """File and line: the last in a function's own file that an error came by, else its first."""
    code = _code_of(function)
    if code is None:
        return ""
    line = last_line(error, code.co_filename) if error else ""
    return line or f"{code.co_filename}:{code.co_firstlineno}"


def _code_of(function: Any) -> CodeType | None:
    """The code that somebody wrote: of what a decorator wraps, too."""
    inner = function.func if isinstance(function, partial) else function
    return _code_called(inspect.unwrap(inner))


def _code_called(function: Any) -> CodeType | None:
    """The code of a function, a method, a partial or an object that can be called, itself."""
    if isinstance(function, partial):
        function = cast(Any, function.func)
    called: Any = getattr(cast(Any, type(function)), "__call__", None)  # noqa: B004 - its code
    for each in (function, called):
        code = getattr(getattr(each, "__func__", each), "__code__", None)
        if code is not None:
            return code
    return None
