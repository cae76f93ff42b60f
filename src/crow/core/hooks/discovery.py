"""Discovery of the hooks in an object: methods named like events, or marked as hooks."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from inspect import isfunction
from types import MemberDescriptorType, ModuleType
from typing import TYPE_CHECKING, Any, TypeVar, Unpack, cast

from crow.core.errors import HookError, nearest
from crow.core.hooks.agent_hook import AgentHook
from crow.core.hooks.hook import Hook, HookOptions, Owner, at_place, place_of

if TYPE_CHECKING:
    from crow.core.hooks.event_names import EventName

MARK = "__crow_hooks__"
"""Where ``@hook(...)`` writes events on a function, each with the options it was given."""
CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
READ = (classmethod, MemberDescriptorType)
"""What an attribute is in its class that is looked at: nobody's code runs for that."""
OPTIONS = frozenset(HookOptions.__annotations__)
EVENT_LIKE = tuple("before_ after_ around_ on_ pre_ post_ mid_".split())

F = TypeVar("F", bound=Callable[..., Any])


def hook(event: EventName | str, **options: Unpack[HookOptions]) -> Callable[[F], F]:
    """Mark a function or method as a hook for ``event``; options as of `HookRegistry.register`."""
    if not isinstance(cast(object, event), str):
        raise HookError(f"which event is {event!r} for? hook takes its name first")
    for name in options.keys() - OPTIONS:
        near = nearest(name, OPTIONS)
        hint = f"did you mean {near!r}?" if near else f"it has {', '.join(sorted(OPTIONS))}"
        raise HookError(f"hook has no option {name!r}; {hint}")

    def mark(fn: F) -> F:
        setattr(fn, MARK, (*getattr(fn, MARK, ()), (event, options)))
        return fn

    return mark


def hooks_of(
    thing: object,
    owner: Owner,
    names: Collection[str],
    announced: Callable[[], Collection[str]] = tuple[str],
) -> list[Hook]:
    """What it hangs at these events; raises `HookError` for a name that nearly is one of theirs.

    ``announced`` gives those that there may be later: it is asked for a name that could be one.
    Classes do not count: a module that imports `Stop` has no hook of that name.
    """
    found: list[Hook] = []
    for name, method in _methods(thing, names):
        marks = getattr(method, MARK, ())
        if marks:
            for event, options in marks:
                found.append(Hook(event, method, owner, **options))
        elif name in names:
            if getattr(method, "__func__", method) is not AgentHook.__dict__.get(name):
                found.append(Hook(name, method, owner))
        elif (name.startswith(EVENT_LIKE) or not name.islower()) and _is_announced(
            name, method, names, announced()
        ):
            found.append(Hook(name, method, owner))
    return found


def _is_announced(
    name: str, method: Any, names: Collection[str], announced: Collection[str]
) -> bool:
    """True for an event that there may be later; raises `HookError` where another one is meant."""
    if name not in announced and (near := _meant(name, {*names, *announced})):
        raise HookError(f"{name} is no event; did you mean {near}?{at_place(method)}")
    return name in announced


def _meant(name: str, names: Collection[str]) -> str | None:
    """The event that a name nearly is, or is in the letters of another language; None for none."""
    written = CAMEL.sub("_", name).lower()
    if written in names:
        return written
    return nearest(name, names, 0.9) if name.startswith(EVENT_LIKE) else None


def intended(name: str, events: Iterable[str]) -> str | None:
    """The event that a name of several words is written nearly like, in whichever letters."""
    if "_" not in name and not CAMEL.search(name):
        return None
    written = {each.replace("_", "").lower(): each for each in events}
    near = nearest(name.replace("_", "").lower(), written, 0.9)
    return written[near] if near else None


def misnamed(things: Iterable[object], events: Collection[str]) -> str:
    """A hint at the first function of these that is nearly named like an event; empty for none."""
    for thing in things:
        members = vars(thing if isinstance(thing, type | ModuleType) else type(thing))
        for name, member in members.items():
            if isfunction(member) and (near := intended(name, events)):
                return f"; {name} is no event; did you mean {near}?{at_place(member)}"
    return ""


def _methods(thing: object, events: Collection[str]) -> list[tuple[str, Any]]:
    """What can be called of an object; no classes, and nothing that is made when it is asked for.

    Raises `HookError` for what is marked as a hook and cannot be called, and for a property that is
    named like one.
    """
    members: dict[str, Any] = {}
    for cls in reversed(type(thing).__mro__):
        members.update(vars(cls))
    found: list[tuple[str, Any]] = []
    for name in dir(thing):
        if name.startswith("__"):
            continue
        plain = members.get(name)
        if hasattr(plain, "__get__") and not callable(plain) and type(plain) not in READ:
            if name in events:
                raise HookError(_of_property(thing, name, plain))
            continue
        member = getattr(thing, name, None)
        if not callable(member) and hasattr(member, MARK):
            raise HookError(f"{member!r} is marked as a hook and cannot be called")
        if callable(member) and not isinstance(member, type):
            found.append((name, member))
    return found


def _of_property(thing: object, name: str, made: Any) -> str:
    place = place_of(getattr(made, "fget", None) or getattr(made, "func", None))
    told = "is a property, which hangs nothing: make it a method, or call it something else"
    return f"{type(thing).__name__}.{name} {told}{f' ({place})' if place else ''}"


def unknown_event(event: str, known: Collection[str]) -> str:
    """One line that says that there is no such event, and which one may be meant."""
    near = intended(event, known) or nearest(event, known) or nearest(event.lower(), known)
    hint = f"; did you mean {near!r}?" if near else ": crow.AgentHook has all of them"
    return f"there is no event {event!r}{hint}"


def name_of(thing: object) -> str:
    """The name under which a thing is known: its ``name``, or its type's in snake case.

    A trailing ``Hook`` or ``Extension`` does not count: ``AuditLogHook`` is ``audit_log``.
    """
    name = getattr(thing, "name", None)
    if isinstance(name, str) and name:
        return name
    if isinstance(thing, ModuleType):
        return thing.__name__.rpartition(".")[2]
    written = getattr(thing, "__name__", None) or type(thing).__name__
    written = re.sub(r"(?<=.)(Hook|Extension)$", "", written)
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", written).lower()


def owner_of(fn: Callable[..., Any]) -> Owner:
    """The owner of a callable that was registered by hand: the object it is a method of."""
    thing = getattr(fn, "__self__", None)
    if thing is None or isinstance(thing, ModuleType):
        thing = fn
    return Owner(name_of(thing), thing)
