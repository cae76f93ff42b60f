"""A hook's own view of a moment: whose it is, what it changed so far, and what is too late.

It is a context like the one that it shows, and reads from that. What a hook may change it changes
in copies of its own, which reach the run by `settle` alone, checked and all at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast

from crow.core.context import Context
from crow.core.errors import HookError
from crow.core.frozen import all_kept
from crow.core.history import flaw, flaw_before, open_end
from crow.core.messages import Message
from crow.core.ports import Request
from crow.core.session import Session
from crow.core.tasks import DOING, Clock, Spawned
from crow.core.tools import Call
from crow.core.validation import check

C = TypeVar("C", bound=Context)

FREE = ("messages", "prompt")
"""What a hook may always do with as it likes where it cannot change it: it is a copy."""
IN_REQUEST = ("messages", "tools", "model", "params")
SHARED = ("messages", "tools")
"""What a hook that comes later gets in a list of its own, whose items are everybody's."""
SETTLED = "the hook has answered"

_new = object.__new__
_put = cast("Callable[[object, str, object], None]", object.__setattr__)


class View:
    """What is special about a view; `lend` mixes it with the context's own class.

    ``_given`` holds, by name, what the hook was given or has assigned, and what that was before.
    ``_late`` says why the hook is too late to do anything more, ``_may`` what it may change.
    ``awaited`` is true while a run waits for it, ``outer`` is whose work that run is in turn.
    """

    waiters: ClassVar[tuple[()]] = ()
    awaited: bool = False
    clock: Clock | None = None
    moment: str = ""
    outer: View | Spawned | None = None
    owner: str = ""
    _late: str = ""
    _settled: bool = False

    if TYPE_CHECKING:
        agent: Any
        _base: Any
        _may: tuple[str, ...]
        _given: dict[str, tuple[Any, Any]]
        session: Session
        _after_end: bool

    def __getattr__(self, name: str) -> Any:
        """What the context has; a copy of that where a hook could change it in place."""
        if name == "_base" or name.startswith("__"):
            raise AttributeError(name)
        base = self._base
        value: Any = getattr(base, name)
        if type(value) is Call and name == "call":
            args = cast(Any, self).args
            value = Call(value.id, value.name, args, value.raw, value.fault)
            _put(self, name, value)
        elif name == "results":
            value = [lend(each, self.owner, self.moment) for each in cast("list[Context]", value)]
            _put(self, name, value)
        elif self._is_its_own(name, value):
            self._given[name] = (own := copied(value), copied(value))
            _put(self, name, own)
            return own
        return value

    def _is_its_own(self, name: str, value: Any) -> bool:
        if name in self._base.kept:
            return name != "reply" or "reply" in self._may
        return name in self._may and isinstance(value, dict | list)

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "request" and "messages" in self._may:
            check("ctx.request", value, Request)
        elif name not in self._may:
            raise AttributeError(f"must not change {name} at {self.moment}")
        if self.ended:
            raise AttributeError(f"too late to change {name}: {self.ended}")
        base = self._base
        if name in IN_REQUEST and "request" in base.kept:
            check(f"ctx.{name}", value, base.shapes[name])
            setattr(cast(Any, self).request, name, value)
            return
        check(f"ctx.{name}", value, base.shapes.get(name, Any))
        before = self._given[name][1] if name in self._given else copied(getattr(base, name))
        self._given[name] = (value, before)
        _put(self, name, value)
        if name == "args" and "result" in base.shapes:
            _put(cast(Any, self).call, "args", value)

    def __copy__(self) -> Any:
        return lend(self._base, self.owner, self.moment)

    def changed(self) -> dict[str, Any]:
        """What the hook has changed: new values by name. Raises ``TypeError`` for a wrong one."""
        new: dict[str, Any] = {}
        for name, (own, before) in self._given.items():
            if name == "request":
                new |= _differences(own, before)
            elif own is not before and own != before:
                new[name] = own
        for name in new:
            if name not in self._may and name not in FREE:
                raise TypeError(f"must not change {name} at {self.moment}")
        new = {name: new[name] for name in self._may if name in new}
        for name, value in new.items():
            check(f"ctx.{name}", value, self._base.shapes.get(name, Any))
            if name == "messages" and (wrong := flaw_before(value, self.session.history)):
                raise TypeError(f"ctx.messages cannot be sent: {wrong}")
        return new

    def settle(self) -> tuple[str, ...]:
        """Let the run have what the hook has changed; the names of that. Raises as `changed`."""
        if not self._given:
            return ()
        new = self.changed()
        for name, value in new.items():
            copy_of = all_kept(value) if name in SHARED else copied(value)
            setattr(self._base, name, copy_of)
        for name, (own, _) in self._given.items():
            if name == "request" and new:
                self._base.request.message_id = own.message_id
            self._given[name] = (own, copied(own))
        return tuple(new)

    def close(self, late: str = "") -> None:
        """Let no assignment count any more, and nothing at all where it is ``late``."""
        _put(self, "_settled", True)
        if late and not self._late:
            _put(self, "_late", late)

    @property
    def ended(self) -> str:
        """Why nothing that the hook assigns counts any more; empty while it does."""
        return (self._late or SETTLED) if self._settled else ""

    def hold_back(self) -> None:
        """Raise where the hook is too late to do anything to the conversation."""
        if self._late:
            raise HookError(f"too late: {self._late}")
        run = self._base.run
        if run is not None and run.abandoned and not self._after_end:
            raise asyncio.CancelledError

    async def append(self, message: Message) -> None:
        """Put a message at the end of the history, where it is whole. Raises `HookError`."""
        check("the message", message, Message)
        if open_end(self.session.messages) or flaw([message]):
            raise HookError("the history would not be whole: use ctx.inject_context(text)")
        await Context.append(cast(Any, self), message)


@cache
def _view_class(cls: type[Context]) -> type[Any]:
    if issubclass(cls, View):
        return cls
    given = {name: property(attrgetter(f"_base.{name}")) for name in ("agent", "session", "run")}
    return type(cls.__name__, (View, cls), {"__module__": cls.__module__, **given})


def lend(ctx: C, owner: str, moment: str, changes: tuple[str, ...] = ()) -> C:
    """A view of a context for one hook, which may change the fields that ``changes`` names."""
    view: Any = _new(_view_class(type(ctx)))
    run = ctx.run
    after_end = run is not None and run.abandoned
    _put(
        view,
        "__dict__",
        {
            "_base": ctx,
            "owner": owner,
            "moment": moment,
            "_may": changes,
            "_given": {},
            "_after_end": after_end,
        },
    )
    return view


def seen(ctx: Context) -> View:
    """A context that `lend` has made, as a view."""
    return cast(View, ctx)


def set_awaited(ctx: Context, awaited: bool) -> None:
    """Know of somebody's work whether a run waits for it."""
    if awaited:
        outer: View | Spawned | None = DOING.get()
        while isinstance(outer, View) and not outer.awaited:
            outer = outer.outer
        _put(ctx, "outer", outer)
    _put(ctx, "awaited", awaited)


def nested(ctx: Context) -> int:
    """How often the hook that has a view is already at work on what made this moment happen."""
    view = seen(ctx)
    outer: View | Spawned | None = DOING.get()
    count = 0
    while isinstance(outer, View):
        count += outer.owner == view.owner and outer.moment == view.moment
        outer = outer.outer
    return count


@contextmanager
def working(ctx: C) -> Generator[C]:
    """Let what is done here be the work that a view stands for, which a run waits for."""
    before = DOING.get()
    set_awaited(ctx, True)
    DOING.set(ctx)
    try:
        yield ctx
    finally:
        DOING.set(before)
        set_awaited(ctx, False)


def involved(doing: View | Spawned | None) -> list[View | Spawned]:
    """What is done, what that is a part of, and what waits for it, in turn."""
    found: list[View | Spawned] = []
    left = [doing]
    while left:
        one = left.pop()
        if one is not None and one not in found:
            found.append(one)
            left += [one.outer, *one.waiters]
    return found


def awaiting(doing: View | Spawned | None) -> Iterator[View]:
    """Whose work it is, and whose that is part of in turn, while somebody waits for it."""
    return (each for each in involved(doing) if isinstance(each, View) and each.awaited)


@contextmanager
def watching(doing: View | Spawned | None, told: Callable[[], object]) -> Generator[None]:
    """Be told meanwhile of everybody who begins to wait for something that is done."""
    watched: set[Spawned] = set()

    def look() -> None:
        new = {each for each in involved(doing) if isinstance(each, Spawned)}
        for each in new - watched:
            each.watchers.add(look)
        watched.update(new)
        told()

    look()
    try:
        yield
    finally:
        for each in watched:
            each.watchers.discard(look)


def set_clock(ctx: Context, clock: Clock | None) -> None:
    """Give a view the clock of its hook."""
    _put(ctx, "clock", clock)


def copied(value: Any) -> Any:
    """A value that changes of the original do not reach; events, results, texts never change."""
    match value:
        case dict():
            return {k: _deep(v) for k, v in cast("dict[Any, Any]", value).items()}
        case list():
            return list(cast("list[Any]", value))
        case Request():
            messages, tools, params = list(value.messages), list(value.tools), copied(value.params)
            about = value.session_id, value.message_id
            return Request(messages, tools, value.model, params, *about)
        case _:
            return copy(value) if hasattr(value, "stop_reason") else value


def _deep(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _deep(v) for k, v in cast("dict[Any, Any]", value).items()}
    return list(map(_deep, cast("list[Any]", value))) if isinstance(value, list) else value


def _differences(own: Request, before: Request) -> dict[str, Any]:
    pairs: Sequence[tuple[str, Any, Any]] = [
        (name, getattr(own, name), getattr(before, name)) for name in IN_REQUEST
    ]
    return {name: now for name, now, was in pairs if now is not was and now != was}
