"""The hooks of one point: those of an agent, of a session, and of whoever a sub-agent works for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, Protocol, TypeVar, overload

from crow.core.context import Context
from crow.core.hook import Hook, Owner
from crow.core.points import Point, sub
from crow.core.session import Session

C = TypeVar("C", bound=Context)
F = TypeVar("F", bound=Callable[..., Any])

Line = tuple[Hook, ...]


class Registry(Protocol):
    """A point's `crow.core.hooks.Hooks`: an agent's, or a session's own.

    ``owners`` are the extensions in use there.
    """

    session: Session | None
    owners: tuple[Owner, ...]
    register: Callable[..., Any]


class HookPoint(Generic[C, F]):
    """The hooks that hang at one point, in the order in which they run.

    Calling it registers a hook, typed: ``@agent.hooks.before_tool``, with options
    ``@agent.hooks.before_tool(tools={"Bash"})``. ``entries`` hang on this agent, or on this session
    alone: ``root`` is its agent's then. ``parent`` is that of the agent that a sub-agent works
    for.
    """

    __slots__ = ("_chain", "_here", "entries", "hooks", "parent", "point", "root")

    def __init__(
        self, point: Point, hooks: Registry, parent: HookPoint[C, F] | None = None
    ) -> None:
        self.point = point
        self.hooks = hooks
        self.parent = parent
        self.root: HookPoint[C, F] | None = None
        self.entries: Line = ()
        self._here: tuple[Line, Line, tuple[Owner, ...], Line] = ((), (), (), ())
        self._chain: tuple[Line, Line, Line] = ((), (), ())

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
    def __call__(self, fn: F | None = None, /, **options: Any) -> F | Callable[[F], F]:
        """Register a hook at this point, with the options of `Hooks.register`."""

        def add(fn: F) -> F:
            self.hooks.register(self.point.name, fn, **options)
            return fn

        return add if fn is None else add(fn)

    def put(self, hooks: list[Hook]) -> None:
        """Replace the hooks; sorts them by their order, ties stay as they are."""
        self.entries = self._sorted(hooks)

    def _sorted(self, hooks: Iterable[Hook]) -> Line:
        return tuple(sorted(hooks, key=Hook.rank, reverse=self.point.reverse))

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
            known = self._here = below, own, owners, self._sorted(counts)
        return known[3]

    def __bool__(self) -> bool:
        return bool(self.entries)

    def due(self, ctx: C, *, judge: bool = False) -> Iterable[Hook]:
        """The hooks to call at a moment; what hangs there or goes meanwhile counts from then on."""
        line = self._line(ctx.session)
        return self._due(line, ctx, judge) if line else ()

    def _line(self, session: Session) -> Line:
        """The same as `chain`, at less cost where nothing but the agent counts."""
        alone = self.parent is None and session.parent is None and session.hung is None
        return self.entries if alone else self.chain(session)

    def _due(self, line: Line, ctx: C, judge: bool) -> Iterator[Hook]:
        past: set[Hook] = set()
        place = 0
        while place < len(line):
            hook = line[place]
            past.add(hook)
            if hook.judge is judge and hook.concerns(ctx):
                yield hook
            now = self._line(ctx.session)
            place = place + 1 if now is line else _behind(past, now)
            line = now


def replaced(owner: Owner, owners: tuple[Owner, ...]) -> bool:
    """True for an extension in whose place another one stands among these."""
    return owner.used > 0 and owner not in owners and any(owner.name == o.name for o in owners)


def _behind(past: set[Hook], line: Line) -> int:
    """Where to go on in a line that has changed: behind the last of those that were called."""
    return 1 + max((n for n, hook in enumerate(line) if hook in past), default=-1)
