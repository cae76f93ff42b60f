"""The registry: which callables hang at which point, who owns them, and how they are called."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, Unpack, cast, overload

from crow.core.errors import HookError
from crow.core.hooks.agent_hook import HookPoints
from crow.core.hooks.call_stack import doing, moment_of
from crow.core.hooks.context import Context
from crow.core.hooks.contexts import ToolContext
from crow.core.hooks.discovery import hooks_of, owner_of, unknown_event
from crow.core.hooks.hook import NOT_GIVEN, NUMBERS, Hook, Owner, RegisterOptions, at_place
from crow.core.hooks.hook_point import RANK, Edits, HookPoint
from crow.core.hooks.point_kinds import Fold, Gate, StopPoint, Watch
from crow.core.hooks.points import NAMES, Filter, Point
from crow.core.hooks.run_context import RunContext
from crow.core.hooks.wraps import ToolWrap, Wrap
from crow.core.hooks.wraps.request import RequestWrap
from crow.core.session import Session
from crow.core.support.clock import Waits
from crow.core.support.tasks import DOING
from crow.core.support.validation import short
from crow.core.tools import Call
from crow.core.trace import Record
from crow.core.verdicts import Continue, Ruling

if TYPE_CHECKING:
    from crow.core.hooks.event_names import EventName
    from crow.core.host import Agent

logger = logging.getLogger("crow.hooks")

FIRST = -1000
"""The order of the outermost hooks: they run first, and last at points that are reversed."""
LAST = 1000
"""The order of the innermost hooks: they run last, and first at points that are reversed."""
KINDS: Mapping[str, type[HookPoint[Any, Any]]] = {
    "gate": Gate,
    "fold": Fold,
    "watch": Watch,
    "wrap": Wrap,
    "continue": StopPoint,
    "around_llm_request": RequestWrap,
    "around_tool": ToolWrap,
}
"""What a point is, by its kind; some are more than others of their kind."""

F = TypeVar("F", bound=Callable[..., Any])


class HookRegistry(HookPoints):
    """Every point with the hooks that hang there, on an agent or on one session alone.

    Each point is also an attribute that registers a hook, so that a type checker refuses a wrong
    one. ``watchers`` are called with every `Record` of the trace, those of a point with its own.
    ``parent`` has the hooks of the agent that a sub-agent works for; a session's has its
    ``agent``'s beside it. ``host`` is the agent whose hooks they are. ``owners`` are the extensions
    in use there, ``owner`` is the one that is being used just now; ``place`` is where what hangs
    there stands, behind all that hangs on the agent of a session. ``announced`` says
    which extension makes an event happen that nobody here knows yet: hooks for it wait for that.
    """

    @staticmethod
    def announced() -> Mapping[str, str]:
        """The extension that makes each event happen which may be known later."""
        return {}

    owners: tuple[Owner, ...]

    def __init__(
        self,
        parent: HookRegistry | None = None,
        *,
        agent: HookRegistry | None = None,
        session: Session | None = None,
    ) -> None:
        self.parent = parent
        self.agent = agent
        self.session = session
        self.host: Agent | None = None
        around = agent or parent
        self.edits = Edits() if around is None else around.edits
        self.waits = Waits() if around is None else around.waits
        self.edits.count += 1
        self.watchers: list[Callable[[Record, Context], None]] = []
        self.place = (0,) if agent is None else (1,)
        self.owners = ()
        self.owner: Owner | None = None
        self._names: dict[str, tuple[Point, Filter | None]] = {**NAMES} if agent is None else {}
        self._points: dict[str, HookPoint[Any, Any]] = {}
        self._defined: dict[str, Owner] = {}
        self._waiting: list[Hook] = []

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> HookPoint[Any, Any]:
            """A point at which nothing has hung yet; it is made when it is first asked for."""
            if name[0] == "_" or not self.knows(name) or self[name].point.name != name:
                told = f"'HookRegistry' object has no attribute {name!r}"
                raise AttributeError(told, name=name, obj=self)
            return self[name]

        def __dir__(self) -> list[str]:
            return [*super().__dir__(), *self.points]

    def define(self, point: Point) -> Callable[[], None]:
        """Add a point of an extension's own; hooks that waited for it are registered.

        Returns its disposer. Fire it with ``agent.hooks["name"].fire(ctx)``.
        """
        if point.name in self._names or point.name in self._points:
            raise HookError(f"the event {point.name!r} exists already")
        for name, when in point.names.items():
            self._names[name] = point, when
        if self.owner is not None:
            self._defined[point.name] = self.owner
        self._hang_waiting()
        return lambda: self._undefine(point.name)

    def _undefine(self, name: str) -> None:
        """Take a point away; hooks for it wait again."""
        hook_point = self._points.pop(name, None)
        for gone in hook_point.entries if hook_point else ():
            gone.event = ""
            self._waiting.append(gone)
        for other in [key for key, (point, _) in self._names.items() if point.name == name]:
            del self._names[other]
        self._defined.pop(name, None)
        vars(self).pop(name, None)

    @property
    def points(self) -> dict[str, HookPoint[Any, Any]]:
        """Every point by its canonical name."""
        return {each.point.name: each for each in map(self.__getitem__, self.names)}

    @property
    def names(self) -> tuple[str, ...]:
        """Every name that an event has, aliases included."""
        return (*self._names, *(self.agent.names if self.agent else ()))

    def __getitem__(self, event: str) -> Any:
        """The point of this name, whatever its kind: ``agent.hooks["TaskCreated"].fire(ctx)``."""
        point, _ = self._names.get(event) or self._agents(event)
        hook_point = self._points.get(point.name)
        return self._make(point) if hook_point is None else hook_point

    def __repr__(self) -> str:
        """How many hooks hang here, and at which events."""
        here = {name: len(point.entries) for name, point in self._points.items() if point.entries}
        told = ", ".join(f"{name} {count}" for name, count in here.items())
        return f"<HookRegistry: {told or 'no hooks'}>"

    def __iter__(self) -> Iterator[Hook]:
        """Every hook, point by point, in the order in which they run."""
        known = [name for name in self.names if name in self._points]
        points = [self._points[name] for name in dict.fromkeys([*known, *self._points])]
        return iter([hook for point in points for hook in point.entries])

    @property
    def waiting(self) -> tuple[tuple[str, str, str], ...]:
        """Hooks for events whose extension is not in use: event, owner, extension."""
        by = self.announced()
        return tuple(
            (hook.asked, hook.owner.name, by.get(hook.asked, "")) for hook in self._waiting
        )

    def knows(self, event: str) -> bool:
        """True for a name of a point that is defined here, or on the session's agent."""
        return event in self._names or (self.agent is not None and self.agent.knows(event))

    def _agents(self, event: str) -> tuple[Point, Filter | None]:
        """What a name stands for on the session's agent."""
        if self.agent is not None and self.agent.knows(event):
            return self.agent._names[event]  # noqa: SLF001 - its own class
        announced = self.announced()
        if event in announced:
            raise HookError(f"the event {event!r} comes with the extension {announced[event]}")
        raise HookError(unknown_event(event, [*self.names, *announced]))

    def _make(self, point: Point) -> HookPoint[Any, Any]:
        """A point as it is first asked for."""
        name, parent = point.name, self.parent
        above = parent[name] if parent is not None and parent.knows(name) else None
        made = KINDS.get(name, KINDS[point.kind])(point, self, above)
        made = self._points.setdefault(name, made)  # a thread may have asked, too
        setattr(self, name, made)
        return made

    @overload
    def register(
        self, event: EventName | str, fn: Callable[..., Any], **options: Unpack[RegisterOptions]
    ) -> Callable[[], None]: ...
    @overload
    def register(
        self, event: EventName | str, **options: Unpack[RegisterOptions]
    ) -> Callable[[F], F]: ...
    def register(
        self,
        event: str,
        fn: Callable[..., Any] = NOT_GIVEN,
        *,
        tools: Iterable[str] | None = None,
        order: int = 0,
        timeout: float | None = 60.0,
        background: bool = False,
        judge: bool = False,
        thread: bool = False,
        owner: Owner | None = None,
    ) -> Any:
        """Hang a callable at an event; returns its disposer. Without one it is a decorator.

        ``tools`` limits it to these tools (any case). ``order`` sorts (`FIRST`, 0, `LAST`), ties
        run as registered. ``timeout`` is in seconds of the hook's own time. ``background`` lets a
        notice run beside the conversation. ``judge`` makes a gate hook run last, on arguments
        that are final. ``thread`` runs a synchronous hook in a thread of its own, so that it can
        take its time and be left behind. Raises `HookError` for an unknown event or parameter.
        """
        if not isinstance(cast(object, event), str):
            raise HookError(f"which event is {event!r} for? register takes its name first")
        options = tools, order, timeout, background, judge, thread

        def add(fn: F) -> F:
            self._add([Hook(event, fn, owner or self.whose(fn) or owner_of(fn), *options)])
            return fn

        if fn is NOT_GIVEN:
            return add
        (hook,) = self._add([Hook(event, fn, owner or self.whose(fn) or owner_of(fn), *options)])
        return lambda: self._unhang(hook)

    register_hook = register

    def _add(self, hooks: list[Hook]) -> list[Hook]:
        """Hang hooks, or let them wait for the extension that makes their event happen.

        For a method that is known twice, the one that hangs there already takes its place.
        """
        for at, hook in enumerate(hooks):
            event = hook.asked
            try:
                point, when = self._names.get(event) or self._agents(event)
            except HookError as error:
                if event not in self.announced():
                    raise HookError(f"{error}{at_place(hook.function)}") from None
                logger.info("%s waits for the extension %s", event, self.announced()[event])
                self._waiting.append(hook)
                continue
            if (hook_point := self._points.get(point.name)) is None:
                hook_point = self._make(point)
            hook.hang(point, when)
            for other in hook_point.entries:
                if other.function == hook.function and other.when in (hook.when, None):
                    hooks[at] = other
                    break
            else:
                stands = hook.owner.place if hook.owner in self.owners else ()
                hook.place = hook.place or (*(stands or self.place), next(NUMBERS))
                line = sorted((*hook_point.entries, hook), key=RANK, reverse=point.reverse)
                hook_point.entries = tuple(line)
                self.edits.count += 1
        return hooks

    def _hang_waiting(self) -> None:
        """Hang the hooks that waited for an event which is known by now."""
        for hook in [each for each in self._waiting if self.knows(each.asked)]:
            self._waiting.remove(hook)
            self._add([hook])

    async def trigger_hooks(self, event: str, *given: Any) -> str | None:
        """Call the hooks of an event; why it must not go on, or what to go on with.

        ``given`` is its context; or a `Call`, a call and its result, or a prompt, in a loop of
        one's own: what hooks make of the arguments is the call's then. None where nobody has
        anything against it; a question is put to the user. Raises `HookError` for an event that
        wraps something, and for what is no context.
        """
        hook_point: Any = (self.agent or self)[event]  # which looks at the session as well
        wanted = hook_point.context
        ctx = await moment_of(wanted, self.host, self.session, given)
        if hook_point.point.kind == "wrap" or ctx is None:
            own = {ToolContext: " or a Call", RunContext: " or a prompt"}.get(wanted, "")
            told = f"{event} takes a {wanted.__name__}{own}, not {short(given)}"
            raise HookError(f"{told}: await agent.hooks[{event!r}].fire(...)")
        said = await hook_point.fire(ctx)
        match given, ctx:
            case (Call(args=own), *_), ToolContext(args=args) if own != args:
                own.clear()
                own.update(args)
            case _:
                pass
        if isinstance(said, Ruling):
            said = await ctx.ui.agreed(said)
            return said.reason or f"denied at {event}" if said.refused else None
        return None if said is None else said.message if isinstance(said, Continue) else said.reason

    def _unhang(self, hook: Hook) -> None:
        if hook in self._waiting:
            self._waiting.remove(hook)
        for point in self._points.values():
            if hook in point.entries:
                point.entries = tuple(each for each in point.entries if each is not hook)
                self.edits.count += 1

    def add(self, thing: object, owner: Owner) -> bool:
        """Register every method of an object whose name is an event or that is marked a hook.

        False where it has none. Classes do not count: a module that imports `Stop` has no hook of
        that name. Of another registry all hooks are registered that it has by now.
        """
        if isinstance(thing, HookRegistry):
            found = [hook.again(owner) for hook in (*thing, *thing._waiting)]  # noqa: SLF001 - its own class
        else:
            names = self._names if self.agent is None else {*self.names}
            found = hooks_of(thing, owner, names, self.announced)
        return bool(self._add(found))

    def whose(self, fn: object = None) -> Owner | None:
        """The extension that hangs something now; raises `SessionError` on a closed session."""
        if self.session is not None and self.session.closed:
            self.session.refuse_closed()
        thing = getattr(fn, "__self__", self)  # itself for none: nobody hangs that
        if self.owner is not None or (thing is self and DOING.get() is None):
            return self.owner
        now = doing()
        known = [*self.owners, *(self.agent.owners if self.agent else ())]
        if now is not None:
            around = now.agent.hooks.around(now.session)
            known += [owner for each in around for owner in each.owners]
        for owner in known:
            if owner.thing is thing:
                return owner
        called = now.owner if now is not None else None
        for owner in known:
            if owner.name == called:
                return owner
        return None

    def below(self, root: HookPoint[Any, Any]) -> HookPoint[Any, Any] | None:
        """What a session has at a point of its agent's; hooks that waited for it are registered."""
        name = root.point.name
        if self.agent is not root.hooks:
            return None
        if self._waiting:
            self._hang_waiting()
        if name not in self._points and not self.owners:
            return None
        hook_point = self._points.get(name)
        if hook_point is None:
            hook_point = self._make(root.point)
        hook_point.root = root
        return hook_point

    def around(self, session: Session | None) -> list[HookRegistry]:
        """Those of a session, of this agent, and of those that they work for."""
        found: list[HookRegistry] = []
        while session is not None:
            if session.hung is not None:
                found.append(session.hung.hooks)
            session = session.parent
        hooks: HookRegistry | None = self
        while hooks is not None:
            found.append(hooks)
            hooks = hooks.parent
        return found

    def watching(self, session: Session, event: str) -> Sequence[Callable[..., None]]:
        """Those who are told of each run of a hook at an event, in a session of this agent."""
        found: list[Callable[..., None]] = []
        for hooks in self.around(session):
            found += hooks.watchers
            if event in hooks._points:  # noqa: SLF001 - its own class
                found += hooks._points[event].watchers  # noqa: SLF001
        return found

    def of(self, owner: Owner) -> list[Hook]:
        """The hooks of one owner, waiting ones included."""
        thing = owner.thing
        return [
            hook
            for hook in (*self, *self._waiting)
            if hook.owner is owner or (thing is not None and hook.owner.thing is thing)
        ]

    def remove(self, owner: Owner) -> None:
        """Take away all hooks, points and watchers of one owner."""
        self._take_away(lambda other: _belongs(other, owner))
        for told in (self.watchers, *(point.watchers for point in self._points.values())):
            told[:] = [each for each in told if getattr(each, "__self__", self) is not owner.thing]

    def drop(self, owner: Owner) -> None:
        """Take away what one owner hung; the same thing under another owner is somebody else's."""
        self._take_away(lambda other: other is owner)

    def _take_away(self, belongs: Callable[[Owner], bool]) -> None:
        for hook in [hook for hook in (*self._waiting, *self) if belongs(hook.owner)]:
            self._unhang(hook)
        for name in [key for key, definer in self._defined.items() if belongs(definer)]:
            self._undefine(name)


def _belongs(one: Owner, owner: Owner) -> bool:
    return one is owner or (one.thing is not None and one.thing is owner.thing)
