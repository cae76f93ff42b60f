"""Giving a hook the arguments it names; its signature is read once, at registration."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from operator import attrgetter
from typing import Any

from crow.core.errors import HookError
from crow.core.points import COMMON, Point
from crow.core.running import Next


def bind(fn: Callable[..., Any], point: Point) -> Callable[[Any, Next | None], Any]:
    """A callable of (context, call_next) that gives ``fn`` the arguments it names.

    Parameters with a default keep it. Raises `HookError` for a parameter that nothing fills.
    """
    sources = _sources(fn, point)
    if sources == ["ctx"]:
        return lambda ctx, call_next: fn(ctx)
    if not sources:
        return lambda ctx, call_next: fn()
    if "call_next" not in sources and "ctx" not in sources:
        get = attrgetter(*sources)
        if len(sources) == 1:
            return lambda ctx, call_next: fn(get(ctx))
        return lambda ctx, call_next: fn(*get(ctx))
    return lambda ctx, call_next: fn(*(_fill(source, ctx, call_next) for source in sources))


def _fill(source: str, ctx: Any, call_next: Next | None) -> Any:
    if source == "ctx":
        return ctx
    return call_next if source == "call_next" else getattr(ctx, source)


def _sources(fn: Callable[..., Any], point: Point) -> list[str]:
    try:
        parameters = inspect.signature(fn).parameters.values()
    except (TypeError, ValueError) as error:
        raise HookError(f"{fn!r} cannot be a hook: {error}") from None
    sources: list[str] = []
    for index, parameter in enumerate(parameters):
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        if parameter.default is not parameter.empty:
            continue
        if parameter.kind is parameter.KEYWORD_ONLY:
            raise HookError(f"{_named(fn)}: {parameter.name!r} must not be keyword-only")
        sources.append(_source(fn, point, parameter.name, first=index == 0))
    return sources


def _source(fn: Callable[..., Any], point: Point, parameter: str, *, first: bool) -> str:
    if parameter == "call_next" and point.kind == "wrap":
        return "call_next"
    attribute = point.attribute(parameter)
    if attribute is not None:
        return attribute
    if first or parameter in ("ctx", "context"):
        return "ctx"
    if point.kind == "wrap" and parameter == "next":
        return "call_next"
    offered = sorted({*point.fields, *point.other_names, *COMMON, "ctx"})
    if point.kind == "wrap":
        offered.append("call_next")
    raise HookError(f"{_named(fn)}: {point.name} has no {parameter!r}; it has {', '.join(offered)}")


def _named(fn: Callable[..., Any]) -> str:
    return str(getattr(fn, "__qualname__", fn))
