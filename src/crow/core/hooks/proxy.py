"""A hook's own view of a moment: whose it is, what it changed so far, and what is too late.

It is a context like the one that it shows, and reads from that. What a hook may change it changes
in copies of its own, which reach the run by `settle` alone, checked and all at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from copy import copy
from functools import cache
from itertools import filterfalse
from operator import attrgetter
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar, TypeGuard, TypeVar, cast

from crow.core.errors import ALIKE, HookError, nearest
from crow.core.history import before, flaw, flaw_before, open_end
from crow.core.hooks.context import Context
from crow.core.messages import Message
from crow.core.ports.llm import Request
from crow.core.session import Session
from crow.core.support.clock import Clock
from crow.core.support.frozen import KeptDict, KeptList, all_kept, thawed
from crow.core.support.tasks import Spawned
from crow.core.support.validation import check, fits
from crow.core.tools import Call
from crow.core.trace import Role

C = TypeVar("C", bound=Context)

IN_VIEW = ("_base", "_role", "ended")
"""What is put into every view."""
SETTERS = attrgetter(*[f"{name}.__set__" for name in IN_VIEW])
FREE = ("messages", "prompt")
"""What a hook may always do with as it likes where it cannot change it: it is a copy."""
COPIED = ("call", "results", "ended")
"""What `View` shows in a way of its own."""
IN_REQUEST = ("messages", "tools", "model", "params")
SHARED = ("messages", "tools")
"""What a hook that comes later gets in a list of its own, whose items are everybody's."""
SETTLED = "the hook has answered"
SHOWN = {
    "agent": "_base.agent",
    "session": "_base.session",
    "run": "_base.run",
    "owner": "_role.owner.name",
    "moment": "_role.moment",
    "_may": "_role.changes",
    "cache": "_base.session.cache",
    "client": "_base.session.client",
    "roots": "_base.session.roots",
    "trace": "_base.session.trace",
}
"""What a view has of the context and of its role; what asks no Python is asked most."""

_new = object.__new__
put = cast("Callable[[object, str, object], None]", object.__setattr__)
"""Sets what a view has of its own: an assignment is a hook's."""


class View:
    """A view of a context; `lend` mixes this with the context's own class.

    ``_role`` says whose it is, at which moment, and what may be changed. ``_given`` holds, by name,
    what the hook was given or has assigned, and what that was before; None while that is nothing.
    ``ended`` says why nothing that the hook assigns counts any more, and is empty while it does;
    ``_late`` why it is too late to do anything more. ``wrong`` is the last error of an assignment
    that cannot be. ``awaited`` is true while a run waits for it, ``outer`` is whose work that run
    is in turn; ``echoes`` counts how often hooks have called one another within its.
    """

    __slots__ = ()

    waiters: ClassVar[tuple[()]] = ()
    awaited: bool = False
    echoes: int = 0
    clock: Clock | None = None
    _given: dict[str, tuple[Any, Any]] | None = None
    outer: View | Spawned | None = None
    _after_end: bool = False
    _late: str = ""
    wrong: BaseException | None = None

    if TYPE_CHECKING:
        agent: Any
        ended: str
        moment: str
        owner: str
        _role: Role
        session: Session
        _base: Any
        _may: tuple[str, ...]

    def __getattr__(self, name: str) -> Any:
        """What the context has; a copy of that where a hook could change it in place."""
        if name == "ended":
            return ""
        if name == "_base" or name[:2] == "__":
            raise AttributeError(name)
        base, may = self._base, self._may
        value: Any = getattr(base, name)
        if type(value) is Call and name == "call":
            value = Call(value.id, value.name, self.args, value.raw, value.fault)
            put(self, name, value)
        elif name == "results":
            role = self._onlooker()
            value = [lend(each, role) for each in base.results]
            put(self, name, value)
            self._touch()
        elif (name in base.kept and (name != "reply" or "reply" in may)) or (
            name in may and isinstance(value, dict | list)
        ):
            own: Any = copied(value)
            is_call = name == "args" and "result" in base.shapes
            was = base.approved if is_call and base.approved == value else as_it_is(value)
            self._touch()[name] = own, was
            put(self, name, own)
            return own
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        try:
            self._assign(name, value)
        except (AttributeError, TypeError) as error:
            put(self, "wrong", error)
            self._touch()
            raise

    def _assign(self, name: str, value: Any) -> None:
        if name == "request" and "messages" in self._may:
            check("ctx.request", value, Request)
        elif name not in self._may:
            near = None if hasattr(self._base, name) else nearest(name, self._may, ALIKE)
            hint = f"; did you mean {near!r}?" if near else ""
            raise AttributeError(f"must not change {name} at {self.moment}{hint}")
        if self.ended:
            raise AttributeError(f"too late to change {name}: {self.ended}")
        base = self._base
        if name in IN_REQUEST and "request" in base.kept:
            self._check(name, value)
            setattr(self.request, name, value)
            return
        self._check(name, value)
        known = self._given or {}
        was = known[name][1] if name in known else copied(getattr(base, name))
        self._touch()[name] = value, was
        put(self, name, value)
        if name == "args" and "result" in base.shapes:
            put(self.call, "args", value)

    def _check(self, name: str, value: Any) -> None:
        """Raise ``TypeError`` for what has not the field's shape; a history has, and is long."""
        shape = self._base.shapes.get(name, Any)
        own = before(value, self.session.history) if _are_messages(name, value) else None
        if own is None or not fits(shape)(value[:own]):
            check(f"ctx.{name}", value, shape)

    def _touch(self) -> dict[str, tuple[Any, Any]]:
        """Have something of one's own from now on: nobody else can have this view."""
        own = self._given
        if own is None:
            put(self, "_given", own := {})
        return own

    def _onlooker(self) -> Role:
        """The same somebody, who may change nothing."""
        return Role(self._role.owner, self.moment, self._role.name)

    def __copy__(self) -> Any:
        return lend(self._base, self._onlooker())

    def changed(self) -> dict[str, Any]:
        """What the hook has changed: new values by name. Raises ``TypeError`` for a wrong one."""
        try:
            return self.compared()
        except TypeError as error:
            put(self, "wrong", error)
            raise

    def compared(self) -> dict[str, Any]:
        """The same, and nothing is kept of what is wrong."""
        new: dict[str, Any] = {}
        for name, (own, was) in (self._given or {}).items():
            if name == "request":
                new |= _differences(own, was)
            elif own is not was and own != was:
                new[name] = own
        return self._allowed(new) if new else new

    def _allowed(self, new: dict[str, Any]) -> dict[str, Any]:
        for name in new:
            if name not in self._may and name not in FREE:
                raise TypeError(f"must not change {name} at {self.moment}")
        new = {name: new[name] for name in self._may if name in new}
        for name, value in new.items():
            self._check(name, value)
            if name == "messages" and (wrong := flaw_before(value, self.session.history)):
                raise TypeError(f"ctx.messages cannot be sent: {wrong}")
        return new

    def settle(self, *, ends: bool = False) -> tuple[str, ...]:
        """Let the run have what the hook has changed; the names of that. Raises as `changed`.

        What it changes after that counts, too, unless its moment ``ends``.
        """
        own_values = self._given
        if own_values is None:
            return ()
        new = self.changed()
        for name, value in new.items():
            setattr(self._base, name, self._shared(name, value))
        for name, (own, _) in own_values.items():
            if name == "request" and new:
                self._base.request.message_id = own.message_id
            if not ends:
                own_values[name] = (own, copied(own))
        return tuple(new)

    def _shared(self, name: str, value: Any) -> Any:
        """A copy of a new value that nobody else changes."""
        if name not in SHARED:
            return copied(value)
        history = self.session.history
        own = before(value, history) if _are_messages(name, value) else None
        return all_kept(value) if own is None else [*all_kept(value[:own]), *history]

    def close(self, late: str = "") -> None:
        """Let no assignment count any more, and nothing at all where it is ``late``."""
        if late and not self._late:
            put(self, "_late", late)
        put(self, "ended", self._late or SETTLED)

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
def kind_of_view(cls: type[Context], after_end: bool) -> tuple[Any, ...]:
    """The class of the views of such contexts, and what puts into them what is in every view.

    They may do something ``after_end`` of their run where they are lent then.
    """
    made = cls if issubclass(cls, View) else _made(cls, after_end)
    return made, *SETTERS(made)


def _made(cls: type[Context], after_end: bool) -> type[Any]:
    paths = {name: f"_base.{name}" for name in _plain(cls)} | SHOWN
    if "call" in cls.__slots__:
        paths["name"] = "_base.call.name"
    shown = {name: property(attrgetter(path)) for name, path in paths.items()}
    more = {"__dict__": cls.__dictoffset__, "__weakref__": cls.__weakrefoffset__}
    slots = *IN_VIEW, *filterfalse(more.get, more)
    own = {"__module__": cls.__module__, "__slots__": slots, "_after_end": after_end}
    return type(cls.__name__, (View, cls), own | shown)


def _plain(cls: type[Context]) -> set[str]:
    """Fields of a context that a view shows as they are: nobody assigns them, or gets a copy."""
    slots = set[str]()
    for base in cls.__mro__:
        slots.update(base.__dict__.get("__slots__", ()))
    return slots - {*Context.__slots__, *cls.kept, *cls.shapes, *COPIED}


def lend(ctx: C, role: Role) -> C:
    """A view of a context for somebody, who may change the fields that his role names.

    Behind the end of a run whose own work goes on, since somebody does not end it, he still may.
    """
    run = ctx.run
    cls, put_base, put_role, put_ended = kind_of_view(type(ctx), run is not None and run.abandoned)
    view: Any = _new(cls)
    put_base(view, ctx)
    put_role(view, role)
    put_ended(view, "")
    return view


def lend_by_name(ctx: C, name: str, moment: str) -> C:
    """A view of a context for somebody who changes nothing there."""
    return lend(ctx, Role(cast(Any, SimpleNamespace(name=name)), moment))


given: Callable[[Any], object] = attrgetter("_given")
"""What of a moment a view has copies of, or new values; None where the hook saw nothing of that."""


def is_as_it_was(ctx: Context) -> bool:
    """True where a hook has changed nothing of what it saw."""
    view: Any = ctx
    try:
        return not view.compared()  # whoever settles it keeps what is wrong with it
    except Exception:  # noqa: BLE001 - what a hook leaves behind may raise anything
        return False


def seen(ctx: Context) -> View:
    """A context that `lend` has made, as a view."""
    return ctx  # pyright: ignore[reportReturnType] - a cast takes its time


def as_it_is(value: Any) -> Any:
    """A value that is compared with what a hook makes of its copy; nobody changes it in place."""
    if type(value) is not Request or type(value.messages) is not list:
        return value if isinstance(value, KeptDict | KeptList) else copied(value)
    about = value.model, value.params, value.session_id, value.message_id
    return Request(value.messages, value.tools, *about)


def copied(value: Any) -> Any:
    """A value that changes of the original do not reach; events, results, texts never change."""
    whole: Any = value  # a cast takes its time
    if isinstance(value, dict):
        return thawed(whole)
    if isinstance(value, list):
        return [*whole]
    if isinstance(value, Request):
        messages, tools, params = [*value.messages], [*value.tools], copied(value.params)
        about = value.session_id, value.message_id
        return Request(messages, tools, value.model, params, *about)
    return copy(value) if hasattr(value, "stop_reason") else value


def _are_messages(name: str, value: object) -> TypeGuard[list[Message]]:
    return name == "messages" and type(value) is list


def _differences(own: Request, was: Request) -> dict[str, Any]:
    pairs: Sequence[tuple[str, Any, Any]] = [
        (name, getattr(own, name), getattr(was, name)) for name in IN_REQUEST
    ]
    return {name: now for name, now, was in pairs if now is not was and now != was}
