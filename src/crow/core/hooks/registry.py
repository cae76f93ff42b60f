"""The registry: which callables hang at which point, who owns them, and how they are called."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from math import inf
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar, Unpack, cast, overload

from crow.core.errors import HookError
from crow.core.events import Event
from crow.core.hooks.agent_hook import ELSEWHERE, POINTS
from crow.core.hooks.attempts import Next
from crow.core.hooks.collect import hooks_of, owner_of, unknown_event
from crow.core.hooks.context import Context, RunContext
from crow.core.hooks.contexts import (
    CommandContext,
    CompactContext,
    ConfigContext,
    CwdContext,
    ErrorContext,
    MessageContext,
    NotificationContext,
    RequestContext,
    SessionContext,
    ToolContext,
    TurnContext,
    UpdateContext,
    WorktreeContext,
)
from crow.core.hooks.hook import NUMBERS, Hook, Owner
from crow.core.hooks.hook_point import Edits, HookPoint
from crow.core.hooks.kinds import Fold, Gate, StopPoint, Watch
from crow.core.hooks.points import Filter, Point
from crow.core.hooks.request_wraps import RequestWrap
from crow.core.hooks.work import doing, moment_of
from crow.core.hooks.wraps import ToolWrap, Wrap
from crow.core.messages import Message
from crow.core.ports import Completion
from crow.core.session import Reply, Session
from crow.core.tools import Call, ToolResult
from crow.core.trace import Record
from crow.core.validation import short
from crow.core.verdicts import Answer, Continue, Deny, Ruling
from crow.core.waits import Waits

if TYPE_CHECKING:
    from crow.core.session import Agent

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


class Options(TypedDict, total=False):
    """The options of `HookRegistry.register`."""

    tools: Iterable[str] | None
    order: int
    timeout: float | None
    background: bool
    judge: bool
    thread: bool
    owner: Owner | None


class HookRegistry:
    """Every point with the hooks that hang there, on an agent or on one session alone.

    Each point is also an attribute that registers a hook, so that a type checker refuses a wrong
    one. ``watchers`` are called with every `Record` of the trace, those of a point with its own.
    ``parent`` has the hooks of the agent that a sub-agent works for; a session's has its
    ``agent``'s beside it. ``host`` is the agent whose hooks they are. ``owners`` are the extensions
    in use there, ``owner`` is the one that is being used just now.
    """

    on_session_start: Fold[SessionContext, str]
    on_session_end: Watch[SessionContext]
    before_run: Gate[RunContext]
    before_command: Gate[CommandContext]
    before_llm_request: Fold[TurnContext, list[Message]]
    around_llm_request: RequestWrap
    on_llm_request: Watch[RequestContext]
    after_llm_response: Fold[TurnContext, Completion | str]
    before_tool: Gate[ToolContext]
    on_permission: Gate[ToolContext]
    around_tool: ToolWrap
    after_tool: Fold[ToolContext, str | ToolResult | Answer]
    on_message: Watch[MessageContext]
    after_turn: Watch[TurnContext]
    on_stop: StopPoint
    around_run: Wrap[RunContext, Next, Awaitable[object]]
    after_loop: Fold[RunContext, Reply | str]
    after_run: Watch[RunContext]
    before_compact: Fold[CompactContext, str | Deny]
    after_compact: Watch[CompactContext]
    on_config_change: Gate[ConfigContext]
    on_update: Fold[UpdateContext, Event | Deny]
    on_error: Watch[ErrorContext]
    on_cwd_changed: Watch[CwdContext]
    on_worktree_create: Gate[WorktreeContext]
    on_worktree_remove: Watch[WorktreeContext]
    on_notification: Watch[NotificationContext]

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
        self._owners: tuple[Owner, ...] = ()
        self.owner: Owner | None = None
        self._names: dict[str, tuple[HookPoint[Any, Any], Filter | None]] = {}
        self._hooks: dict[str, list[Hook]] = {}
        self._defined: dict[str, Owner] = {}
        self._waiting: list[Hook] = []
        for point in POINTS if agent is None else ():
            self.define(point)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> HookPoint[Any, Any]:
            """A point of the agent's where nothing hangs on the session yet."""
            if self.__dict__.get("agent") is None or name not in self.agent.points:
                raise AttributeError(f"hooks have no attribute {name!r}")
            return self[name]

    @property
    def owners(self) -> tuple[Owner, ...]:
        """The extensions in use here."""
        return self._owners

    @owners.setter
    def owners(self, owners: tuple[Owner, ...]) -> None:
        self._owners = owners
        self.edits.count += 1

    def define(self, point: Point) -> Callable[[], None]:
        """Add a point of an extension's own; hooks that waited for it are registered.

        Returns its disposer. Fire it with ``agent.hooks["name"].fire(ctx)``.
        """
        if point.name in self._names:
            raise HookError(f"the event {point.name!r} exists already")
        above = self.parent.points.get(point.name) if self.parent else None
        hook_point = KINDS.get(point.name, KINDS[point.kind])(point, self, above)
        self._hooks[point.name] = []
        names = {name: (hook_point, when) for name, when in point.names.items()}
        self._names.update(names)
        setattr(self, point.name, hook_point)
        if self.owner is not None:
            self._defined[point.name] = self.owner
        for waiting in [each for each in self._waiting if each.asked in names]:
            self._waiting.remove(waiting)
            self._hang(waiting)
        return lambda: self._undefine(point.name)

    def _undefine(self, name: str) -> None:
        """Take a point away; hooks for it wait again."""
        hook_point = self._names[name][0] if name in self._names else None
        for gone in self._hooks.pop(name, ()):
            gone.event = ""
            self._waiting.append(gone)
        for other in [key for key, (owned, _) in self._names.items() if owned is hook_point]:
            del self._names[other]
        self._defined.pop(name, None)
        vars(self).pop(name, None)

    @property
    def points(self) -> dict[str, HookPoint[Any, Any]]:
        """Every point by its canonical name."""
        return {name: self._names[name][0] for name in self._hooks}

    @property
    def names(self) -> tuple[str, ...]:
        """Every name that an event has, aliases included."""
        return tuple({**self._names, **dict.fromkeys(self.agent.names if self.agent else ())})

    def __getitem__(self, event: str) -> Any:
        """The point of this name, whatever its kind: ``agent.hooks["TaskCreated"].fire(ctx)``."""
        return self._lookup(event)[0]

    def __repr__(self) -> str:
        """How many hooks hang here, and at which events."""
        here = {name: len(point.entries) for name, point in self.points.items() if point.entries}
        told = ", ".join(f"{name} {count}" for name, count in here.items())
        return f"<HookRegistry: {told or 'no hooks'}>"

    def __iter__(self) -> Any:
        """Every hook, point by point, in the order in which they run."""
        return (hook for hook_point in self.points.values() for hook in hook_point.entries)

    @property
    def waiting(self) -> tuple[tuple[str, str, str], ...]:
        """Hooks for events whose extension is not in use: event, owner, extension."""
        return tuple(
            (each.asked, each.owner.name, ELSEWHERE.get(each.asked, "")) for each in self._waiting
        )

    def knows(self, event: str) -> bool:
        """True for a name of a point that is defined here, or on the session's agent."""
        return event in self._names or (self.agent is not None and self.agent.knows(event))

    def _lookup(self, event: str) -> tuple[HookPoint[Any, Any], Filter | None]:
        if event not in self._names and self.agent is not None and self.agent.knows(event):
            self.define(self.agent[event].point)
        if event in self._names:
            return self._names[event]
        if event in ELSEWHERE:
            raise HookError(f"the event {event!r} comes with the extension {ELSEWHERE[event]}")
        raise HookError(unknown_event(event, [*self.names, *ELSEWHERE]))

    @overload
    def register(
        self, event: str, fn: Callable[..., Any], **options: Unpack[Options]
    ) -> Callable[[], None]: ...
    @overload
    def register(self, event: str, **options: Unpack[Options]) -> Callable[[F], F]: ...
    def register(
        self,
        event: str,
        fn: Callable[..., Any] | None = None,
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
        if isinstance(tools, str):
            raise HookError(f"tools takes several names: tools={{{tools!r}}}")
        _demand_options(
            order, timeout, {"background": background, "judge": judge, "thread": thread}
        )
        names = None if tools is None else frozenset(name.casefold() for name in tools)
        options = names, order, inf if timeout is None else timeout, background, judge, thread

        def add(fn: F) -> F:
            self._add(Hook(event, fn, owner or self.whose(fn) or owner_of(fn), *options))
            return fn

        if fn is None:
            return add
        hook = self._add(Hook(event, fn, owner or self.whose(fn) or owner_of(fn), *options))
        return lambda: self._unhang(hook)

    register_hook = register

    def _add(self, hook: Hook) -> Hook:
        """Hang a hook, or let it wait for the extension that makes its event happen."""
        event = hook.asked
        if event not in ELSEWHERE or self.knows(event):
            return self._hang(hook)
        logger.info("%s waits for the extension %s", event, ELSEWHERE[event])
        self._waiting.append(hook)
        return hook

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

    def _hang(self, hook: Hook) -> Hook:
        """Put a hook to its point; the one that hangs there already for a method known twice."""
        hook_point, when = self._lookup(hook.asked)
        hook.hang(hook_point.point, when)
        hooks = self._hooks[hook_point.point.name]
        for other in hooks:
            if other.function == hook.function and other.when in (hook.when, None):
                return other
        hook.place = hook.place or self._place(hook.owner)
        hooks.append(hook)
        hook_point.put(hooks)
        return hook

    def _place(self, owner: Owner) -> tuple[int, ...]:
        """Behind what hangs already; where an extension stands for one of the agent's, there."""
        number = next(NUMBERS)
        if owner.moved:
            return 0, owner.used, number
        if self.agent is None:
            return 0, number
        numbers = [other.used for other in self.agent._owners]  # noqa: SLF001 - its own class
        stands = owner in self._owners and owner.used in numbers
        return (0, owner.used, number) if stands else (1, number)

    def _unhang(self, hook: Hook) -> None:
        if hook in self._waiting:
            self._waiting.remove(hook)
        for name, hooks in self._hooks.items():
            if hook in hooks:
                hooks.remove(hook)
                self._names[name][0].put(hooks)

    def add(self, thing: object, owner: Owner) -> None:
        """Register every method of an object whose name is an event or that is marked a hook.

        Classes do not count: a module that imports `Stop` has no hook of that name. Of another
        registry all hooks are registered that it has by now.
        """
        if isinstance(thing, HookRegistry):
            for hook in (*thing, *thing._waiting):  # noqa: SLF001 - its own class
                self._add(hook.again(owner))
            return
        for event, fn, options in hooks_of(thing, {*self.names, *ELSEWHERE}):
            self.register(event, fn, owner=owner, **options)

    def whose(self, fn: object = None) -> Owner | None:
        """The extension that hangs something now: a method of its own, or from its own code."""
        if self.owner is not None:
            return self.owner
        known = [*self._owners, *(self.agent.owners if self.agent else ())]
        thing = getattr(fn, "__self__", None)
        now = doing()
        if now is not None:
            known += [
                owner for each in now.agent.hooks.around(now.session) for owner in each.owners
            ]
        for owner in known:
            if thing is not None and owner.thing is thing:
                return owner
        called = now.owner if now is not None else None
        for owner in known:
            if owner.name == called:
                return owner
        return None

    def below(self, root: HookPoint[Any, Any]) -> HookPoint[Any, Any] | None:
        """What a session has at a point of its agent's; hooks that waited for it are registered."""
        point = root.point
        if self.agent is not root.hooks:
            return None
        if point.name not in self._names:
            if not self._waiting and not self.owners:
                return None
            self.define(point)
        hook_point = self._names[point.name][0]
        hook_point.root = root
        return hook_point

    def around(self, session: Session | None) -> Iterator[HookRegistry]:
        """Those of a session, of this agent, and of those that they work for."""
        for each in session.line if session else ():
            if each.hung is not None:
                yield each.hung.hooks
        hooks: HookRegistry | None = self
        while hooks is not None:
            yield hooks
            hooks = hooks.parent

    def watching(self, session: Session, event: str) -> Sequence[Callable[..., None]]:
        """Those who are told of each run of a hook at an event, in a session of this agent."""
        found: list[Callable[..., None]] = []
        for hooks in self.around(session):
            found += hooks.watchers
            if event in hooks._names:  # noqa: SLF001 - its own class
                found += hooks._names[event][0].watchers  # noqa: SLF001
        return found

    def of(self, owner: Owner) -> list[Hook]:
        """The hooks of one owner, waiting ones included."""
        thing = owner.thing
        hung = [hook for point in self.points.values() for hook in point.entries]
        return [
            hook
            for hook in (*hung, *self._waiting)
            if hook.owner is owner or (thing is not None and hook.owner.thing is thing)
        ]

    def remove(self, owner: Owner) -> None:
        """Take away all hooks, points and watchers of one owner."""
        self._take_away(lambda other: _belongs(other, owner))
        thing = owner.thing
        for told in (self.watchers, *(point.watchers for point in self.points.values())):
            told[:] = [each for each in told if getattr(each, "__self__", self) is not thing]

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


def _demand_options(order: object, timeout: object, flags: Mapping[str, object]) -> None:
    """Raise `HookError` for an option that is not what it must be."""
    if not isinstance(order, int | float):
        raise HookError(f"order is a number (FIRST, 0, LAST), not {order!r}")
    if timeout is not None and (not isinstance(timeout, int | float) or timeout <= 0):
        raise HookError(f"timeout is a number of seconds, more than 0, or None, not {timeout!r}")
    for name, value in flags.items():
        if not isinstance(value, bool):
            raise HookError(f"{name} is True or False, not {value!r}")
