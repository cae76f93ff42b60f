"""A point at which hooks hang: on an agent and on one session, in the order in which they run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import Any, Generic, Protocol, TypeVar, overload

from crow.core.hooks.context import Context
from crow.core.hooks.hook import NOT_GIVEN, Hook, Owner
from crow.core.hooks.points import Point, sub
from crow.core.hooks.proxy import kind_of_view
from crow.core.session import Session
from crow.core.support.clock import Waits

C = TypeVar("C", bound=Context)
F = TypeVar("F", bound=Callable[..., Any])

Line = tuple[Hook, ...]
JUDGE = attrgetter("judge")
RANK = attrgetter("judge", "order", "place")
"""What the hooks of a point are sorted by."""


class Edits:
    """A counter of the changes of what hangs on an agent, and on what belongs to it."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0


class Registry(Protocol):
    """A point's `HookRegistry`: an agent's, or a session's own.

    ``owners`` are the extensions in use there, ``edits`` counts the changes there and around,
    ``waits`` knows what keeps hooks from running.
    """

    owners: tuple[Owner, ...]
    edits: Edits
    waits: Waits
    watchers: list[Callable[..., None]]
    session: Session | None
    register: Callable[..., Any]


class HookPoint(Generic[C, F]):
    """The hooks that hang at one point, in the order in which they run.

    Calling it registers a hook, typed: ``@agent.hooks.before_tool``, with options
    ``@agent.hooks.before_tool(tools={"Bash"})``. ``entries`` hang on this agent, or on this session
    alone: ``root`` is its agent's then. ``parent`` is that of the agent that a sub-agent works
    for. ``watchers`` are called with the `Record` of each run of a hook here.
    """

    __slots__ = (
        "_chain",
        "_here",
        "_judged",
        "_view",
        "entries",
        "hooks",
        "parent",
        "point",
        "root",
        "watchers",
    )

    def __init__(
        self, point: Point, hooks: Registry, parent: HookPoint[C, F] | None = None
    ) -> None:
        self.point = point
        self.hooks = hooks
        self.parent = parent
        self.root: HookPoint[C, F] | None = None
        self.entries: Line = ()
        self.watchers: list[Callable[[Any, Any], None]] = []
        self._here: tuple[Line, Line, tuple[Owner, ...], Line] = ((), (), (), ())
        self._chain: tuple[Line, Line, Line] = ((), (), ())
        self._judged: tuple[Line, bool] = ((), False)
        self._view: tuple[Any, tuple[Any, ...]] = None, ()

    @property
    def context(self) -> type[C]:
        """What it is fired with."""
        return self.point.context  # pyright: ignore[reportReturnType] - a cast takes its time

    @overload
    def __call__(self, fn: F, /) -> F: ...
    @overload
    def __call__(
        self,
        /,
        *,
        tools: Iterable[str] | None = None,
        order: int = 0,
        timeout: float | None = 60.0,
        background: bool = False,
        judge: bool = False,
        thread: bool = False,
    ) -> Callable[[F], F]: ...
    def __call__(self, fn: F = NOT_GIVEN, /, **options: Any) -> F | Callable[[F], F]:
        """Register a hook at this point, with the options of `HookRegistry.register`."""

        def add(fn: F) -> F:
            self.hooks.register(self.point.name, fn, **options)
            return fn

        return add if fn is NOT_GIVEN else add(fn)

    def chain(self, session: Session | None = None) -> Line:
        """The hooks that a firing in a session calls, none twice.

        First what the callers of a sub-agent, and their sessions, have there: every gate, else what
        names sub-agents. Then what hangs on the agent and on the session itself. It is put together
        once, until something of that changes.
        """
        here = self.nearest(session).here
        if self.parent is None:
            return here
        above = self.parent.chain(session)
        known = self._chain
        if known[0] is not above or known[1] is not here:
            gate = self.point.kind == "gate"
            inherited = [hook for hook in above if gate or hook.when is sub]
            functions = [hook.function for hook in inherited]
            own = (hook for hook in here if hook.function not in functions)
            known = self._chain = above, here, (*inherited, *own)
        return known[2]

    def nearest(self, session: Session | None) -> HookPoint[C, F]:
        """That of a session of this agent, or of the nearest of those that it works for."""
        while session is not None:
            if (
                session.hung is not None
                and (hook_point := session.hung.hooks.below(self)) is not None
            ):
                return hook_point
            session = session.parent
        return self

    @property
    def here(self) -> Line:
        """What hangs on the agent, and on the session if this is one's, the nearest by name."""
        root, session = self.root, self.hooks.session
        if root is None or session is None:
            return self.entries
        below, own, owners = root.nearest(session.parent).here, self.entries, self.hooks.owners
        if not own and not owners:
            return below
        known = self._here
        if known[0] is not below or known[1] is not own or known[2] is not owners:
            counts = (hook for hook in (*below, *own) if not replaced(hook.owner, owners))
            line = tuple(sorted(counts, key=RANK, reverse=self.point.reverse))
            known = self._here = below, own, owners, line
        return known[3]

    def __bool__(self) -> bool:
        return bool(self.entries)

    def line(self, session: Session) -> Line:
        """The same as `chain`, at less cost where nothing but the agent counts."""
        alone = self.parent is None and session.parent is None and session.hung is None
        return self.entries if alone else self.chain(session)

    def has_judges(self, line: Line) -> bool:
        """True where one of these hooks is called last, on what nobody can change any more."""
        known = self._judged
        if known[0] is not line:
            known = self._judged = line, any(map(JUDGE, line))
        return known[1]

    def view(self, ctx: C) -> tuple[Any, ...]:
        """The class of the views of a moment, and what puts into them what is in every view."""
        run = ctx.run
        if run is not None and run.abandoned:
            return kind_of_view(type(ctx), after_end=True)
        if self._view[0] is not type(ctx):
            self._view = type(ctx), kind_of_view(type(ctx), after_end=False)
        return self._view[1]

    def due(self, ctx: C) -> list[Hook]:
        """The hooks that there are at a moment."""
        return [each for each in self.line(ctx.session) if each.always or each.concerns(ctx)]


def replaced(owner: Owner, owners: tuple[Owner, ...]) -> bool:
    """True for an extension in whose place another one stands among these."""
    return owner.used > 0 and owner not in owners and any(owner.name == o.name for o in owners)


def behind(past: Sequence[Hook], line: Line) -> Line:
    """The rest of a line that has changed: what is behind the last of those that were called."""
    return line[1 + max((n for n, hook in enumerate(line) if hook in past), default=-1) :]
