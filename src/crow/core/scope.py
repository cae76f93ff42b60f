"""A scope that things hang in, an agent's or a session's, and how extensions come and go there."""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from operator import attrgetter
from typing import Any
from weakref import WeakSet

from crow.core.catalog import (
    AnyCatalog,
    Catalog,
    Extensions,
    Mode,
    PromptSection,
    bound_to,
    spec_of,
    tools_in,
)
from crow.core.errors import CrowError, ExtensionError, HookError, hint_of, nearest
from crow.core.extensions import (
    AgentExtension,
    LifespanExtension,
    Lifespans,
    initialiser,
    make,
    refuse_lazy,
)
from crow.core.hooks.discovery import MARK, misnamed, name_of, unknown_event
from crow.core.hooks.hook import NUMBERS, Owner
from crow.core.hooks.hook_point import replaced
from crow.core.hooks.registry import HookRegistry
from crow.core.messages import ToolSpec
from crow.core.ports.tool import SlashCommand, Tool
from crow.core.session import Session
from crow.core.support.frozen import KeptList
from crow.core.support.turnstile import Turnstile
from crow.core.support.validation import implements

USED = attrgetter("used")


class Scope:
    """A scope of an agent, or of one of its sessions: what hangs there; both say what it does.

    A session's is made when it is first asked for. The nearest counts: a tool or a command of the
    session stands in the place of the agent's of that name, and so does an extension, with all that
    it has hung: of the agent's one nothing counts there meanwhile.
    """

    def __init__(self, agent: Any, session: Session | None = None) -> None:
        self.agent = agent
        self.session = session
        parent = agent.parent
        if session is None:
            self.hooks = HookRegistry(parent.hooks if parent else None)
        else:
            self.hooks = HookRegistry(agent=agent.hooks, session=session)
        self.hooks.host = agent
        self.turnstile = Turnstile()
        self.tools: Catalog[Tool] = Catalog("tool")
        self.commands: Catalog[SlashCommand] = Catalog("command")
        self.modes: Catalog[Mode] = Catalog("mode")
        self.sections: Catalog[PromptSection] = Catalog("prompt section")
        self.extensions = Extensions()
        self._inside: WeakSet[Scope] = WeakSet()
        self._whole: dict[str, tuple[object, Mapping[str, Any]]] = {}
        self._specs: tuple[object, int, list[ToolSpec]] = None, 0, []
        self._lifespans = Lifespans()
        self._at = 0
        self._looked: tuple[int, ...] = ()
        self._asked: set[str] = set()
        outside: Scope | None = agent.scope if session else parent.scope if parent else None
        if outside is not None:
            outside._inside.add(self)  # noqa: SLF001 - its own class

    def of(self, session: Session) -> Scope:
        """A scope for a session of this agent."""
        return Scope(self.agent, session)

    @property
    def catalogs(self) -> tuple[AnyCatalog, ...]:
        """Everything that hangs here by name, beside extensions."""
        return self.tools, self.commands, self.modes, self.sections

    # what counts

    @property
    def outer(self) -> Scope | None:
        """Whose things count here, too: of a session's agent, or of a session that it works for."""
        return None if self.session is None else self.agent.scope_of(self.session.parent)

    def whole(self, catalog: str) -> Mapping[str, Any]:
        """What counts here of tools, commands, modes or sections, the nearest of each name."""
        self._asked.add(catalog)
        outer, own = self.outer, getattr(self, catalog)
        if outer is None or not (own or self.hooks.owners):
            return own if outer is None else outer.whole(catalog)
        scopes = list(self.line())
        state = [(each.hooks.owners, getattr(each, catalog).version) for each in scopes]
        known = self._whole.get(catalog)
        if known is None or known[0] != state:
            found: dict[str, tuple[Any, Owner | None]] = {}
            for scope in reversed(scopes):
                found |= getattr(scope, catalog).owned
                found = {name: each for name, each in found.items() if scope.counts(each[1])}
            whole = {name: thing for name, (thing, _) in found.items()}
            known = self._whole[catalog] = state, whole
        return known[1]

    def tool_specs(self) -> list[ToolSpec]:
        """What a model is told of the tools that count here; the same list while they stay."""
        tools, outer = self.whole("tools"), self.outer
        if outer is not None and tools is outer.whole("tools"):
            return outer.tool_specs()
        known, version, specs = self._specs
        if known is not tools or version != self.tools.version:
            specs = KeptList(map(spec_of, tools.values()))
            self._specs = tools, self.tools.version, specs
        return specs

    def unread(self, catalog: str) -> list[str]:
        """The names that count here where nobody has ever asked for them; each once.

        Those that come with Crow are not among them: whoever asks for them was switched off.
        """
        scopes = [*self.line()]
        if any(catalog in scope._asked for scope in scopes):  # noqa: SLF001 - its own class
            return []
        owned = [item for scope in scopes for item in getattr(scope, catalog).owned.items()]
        crows = {name for name, (_, owner) in owned if owner is not None and owner.source == "crow"}
        return [name for name in self.whole(catalog) if name not in crows]

    def line(self) -> Iterator[Scope]:
        """This one, and those whose things count here, too, outwards."""
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.outer

    def counts(self, owner: Owner | None) -> bool:
        """False for an extension in whose place another one stands here."""
        return owner is None or not replaced(owner, self.hooks.owners)

    def owner_of(self, catalog: str, name: str) -> str:
        """The name of the extension that brought what counts here under a name, else that name."""
        nearest = next((each for each in self.line() if name in getattr(each, catalog)), self)
        return getattr(getattr(nearest, catalog).owner(name), "name", name)

    def all_extensions(self) -> Mapping[str, Any]:
        """The extensions that count here by name, the nearest of each."""
        outer = self.outer
        return self.extensions if outer is None else {**outer.all_extensions(), **self.extensions}

    # extensions

    def use(
        self,
        thing: Any,
        *,
        name: str | None = None,
        trusted: bool = True,
        source: str = "code",
        **options: Any,
    ) -> Any:
        """Hang an extension here; what fails half-way leaves nothing behind.

        Without a ``name`` it has its own, with a number where that is taken: ``rules_2``. One that
        says so itself, in its ``init_agent``, hangs once.
        """
        if self.hooks.owner is not None and self.hooks.owner.thing is thing:
            return thing
        known_as = self._free_name(name_of(thing)) if name is None else name
        for other in self.hooks.owners:
            if other.name == known_as:
                place = "" if other.source == "code" else f", from {other.source}"
                raise ExtensionError(f"there is an extension {known_as!r} already{place}")
        if inspect.isclass(thing) or options:
            thing = make(thing, known_as, options)
        hooks, by = self.hooks, self.hooks.whose()
        owner = Owner(known_as, thing, trusted and (by is None or by.trusted), source, by=by)
        owner.used, owner.moved = self._at or next(NUMBERS), self._at > 0
        if owner.moved or self.session is not None:
            self._place(owner)
        outer, hooks.owner = hooks.owner, owner
        try:
            self._hang(thing, owner)
        except CrowError:
            self._discard(owner)
            raise
        except (Exception, SystemExit) as error:
            self._discard(owner)
            told = f"the extension {owner.name} failed: {error!r}{hint_of(error)}"
            raise ExtensionError(told) from error
        finally:
            hooks.owner = outer
        return thing

    def _adopt(self) -> None:
        """Use the rest of extensions that brought themselves, as those of Flask do.

        Such a one has an ``init_agent`` that nobody but itself has called: it has put itself into
        ``extensions``, or hung a hook, a tool or a command that is a method of its own.
        """
        catalogs = [each.version for each in self.catalogs]
        looked = self.hooks.edits.count, len(self.extensions), *catalogs
        if looked == self._looked:
            return
        for thing in self._strangers():
            names = [name for name, each in self.extensions.items() if each is thing]
            owner = Owner(names[0] if names else self._free_name(name_of(thing)), thing)
            owner.used = next(NUMBERS)
            self._admit((*self.hooks.owners, owner))
            for hook in self.hooks.of(owner):
                hook.owner = owner
            for catalog in self.catalogs:
                catalog.claim(thing, owner)
            self.hooks.add(thing, owner)
            self.extensions[owner.name] = thing
            if implements(thing, LifespanExtension):
                self._lifespans.hold(owner.name, thing.lifespan, self.session or self.agent)
        self._looked = self.hooks.edits.count, len(self.extensions), *catalogs

    def _strangers(self) -> list[Any]:
        """What has an ``init_agent``, has hung something here, and was used by nobody."""
        around = [owner for hooks in self.hooks.around(self.session) for owner in hooks.owners]
        known = {id(self), id(None), *[id(owner.thing) for owner in around]}
        hung = [hook.owner.thing for hook in self.hooks if not hook.owner.used]
        owned = [each for catalog in self.catalogs for each in catalog.owned.values()]
        made = [bound_to(each) for each, owner in owned if owner is None]
        found = {id(each): each for each in (*self.extensions.values(), *hung, *made)}
        return [
            each
            for at, each in found.items()
            if at not in known and implements(each, AgentExtension)
        ]

    def _admit(self, owners: Iterable[Owner]) -> None:
        """Let these be the extensions in use here, which may count in the place of others."""
        self.hooks.owners = tuple(owners)
        self.hooks.edits.count += 1

    def names_since(self, before: tuple[Owner, ...]) -> tuple[str, ...]:
        """The names of what is in use and was not before, without what this uses in turn."""
        owners = self.hooks.owners
        if owners and owners[:-1] == before:
            return (owners[-1].name,)
        new = {*owners} - {*before}
        return tuple([each.name for each in owners if each in new and each.by not in new])

    def _free_name(self, name: str) -> str:
        taken = {*self.extensions, *(owner.name for owner in self.hooks.owners)}
        number = 2
        free = name
        while free in taken:
            free, number = f"{name}_{number}", number + 1
        return free

    def _place(self, owner: Owner) -> None:
        """Put an extension into the place of another one: with its number, on a session."""
        if not owner.moved:
            outer = [each for scope in [*self.line()][1:] for each in scope.hooks.owners]
            owner.used = next((each.used for each in outer if each.name == owner.name), owner.used)
        if owner.moved or owner.used in [each.used for each in self.agent.hooks.owners]:
            owner.place = 0, owner.used

    def _hang(self, thing: Any, owner: Owner) -> None:
        owners = (*self.hooks.owners, owner)
        self.hooks.owners = tuple(sorted(owners, key=USED)) if owner.moved else owners
        self.hooks.edits.count += 1
        if inspect.isfunction(thing) and thing.__name__ not in ("init_agent", "init_session"):
            self._hang_function(thing, owner)
        else:
            self._hang_object(thing, owner)
        for name, other in self.extensions.items():
            if other is thing:
                owner.name = name
                break
        else:
            self.extensions[owner.name] = thing
        if owner.moved:
            self.extensions.settle(self.hooks.owners)
        if implements(thing, LifespanExtension):
            self._lifespans.hold(owner.name, thing.lifespan, self.session or self.agent)

    def _hang_object(self, thing: Any, owner: Owner) -> None:
        initialise = initialiser(thing, on_session=self.session is not None)
        is_registry = isinstance(thing, HookRegistry)  # whose agent is a session's
        if not is_registry and getattr(thing, "__dict__", {}).get("agent", self) is None:
            setattr(thing, "agent", self.agent)  # noqa: B010 - made without the agent it wants
        tools = tools_in(thing) if initialise is None and inspect.ismodule(thing) else ()
        for tool in tools:
            (self.session or self.agent).add_tool(tool)
        if initialise is not None:
            before = self.agent.store
            try:
                refuse_lazy(initialise, initialise(self.session or self.agent))
            finally:
                owner.store = None if self.agent.store is before else self.agent.store
        hooks = self.hooks.add(thing, owner)
        if not (hooks or tools or initialise is not None or implements(thing, LifespanExtension)):
            host = "agent" if self.session is None else "session"
            raise ExtensionError(
                f"{thing!r} hangs nothing on the {host}: it has no init_{host}, no lifespan, and "
                f"no method that is named like an event{misnamed([thing], self.hooks.names)}"
            )

    def _hang_function(self, function: Callable[..., Any], owner: Owner) -> None:
        hooks = self.hooks
        for event, options in getattr(function, MARK, ()):
            hooks.register(event, function, owner=owner, **options)
        if not hasattr(function, MARK):
            if not hooks.knows(function.__name__):
                hint = unknown_event(function.__name__, hooks.names)
                raise HookError(f"{hint} (name the function like an event, or mark it @hook(...))")
            hooks.register(function.__name__, function, owner=owner)

    def remove(self, name: str) -> None:
        """Take an extension away with all that it added; what it holds is left to `stop`."""
        if name not in self.extensions:
            near = nearest(name, self.extensions)
            hint = f"; did you mean {near!r}?" if near else ""
            raise ExtensionError(f"there is no extension {name!r}{hint}")
        thing = self.extensions.pop(name)
        owners = [owner for owner in self.hooks.owners if owner.thing is thing]
        for owner in owners or [Owner(name, thing)]:
            self._discard(owner)

    @asynccontextmanager
    async def in_place_of(self, names: Iterable[str]) -> AsyncGenerator[None]:
        """What is used within stands where these extensions stood, which are gone then.

        Its lifespans are entered at the end. Whatever fails, here or there, the ones before hang
        again as they did, and hold what they held.
        """
        wanted = {*names}
        before = self.hooks.owners
        olds = [owner for owner in before if owner.name in wanted]
        held = self._lifespans.take([owner.name for owner in olds])
        for owner in olds:
            self.remove(owner.name)
        try:
            self._at = min((owner.used for owner in olds), default=0)
            yield
            self._at = 0
            await self.start()
        except BaseException:
            for owner in [each for each in self.hooks.owners if each not in before]:
                self._discard(owner)
            for owner in olds:
                self._at = owner.used
                how, where = owner.trusted, owner.source
                self.use(owner.thing, name=owner.name, trusted=how, source=where)
            self._lifespans.restore(held, [owner.name for owner in before])
            raise
        finally:
            self._at = 0
            await self._lifespans.leave_removed(wanted)
        for lifespan in held.values():
            await lifespan.leave()

    def _discard(self, owner: Owner) -> None:
        """Let nothing be left of an extension, wherever it has hung something."""
        self.hooks.remove(owner)
        if self.agent.store is (owner.store or owner.thing):
            self.agent.store = None
        self._admit(each for each in self.hooks.owners if each is not owner)
        for key in [k for k, thing in self.extensions.items() if thing is owner.thing]:
            del self.extensions[key]
        self._lifespans.drop(owner.name)
        for scope in self.agent.scope.everywhere():
            scope.drop(owner)

    def everywhere(self) -> Iterator[Scope]:
        """This one, those of the sessions, and those of sub-agents that work for them."""
        yield self
        for scope in list(self._inside):
            yield from scope.everywhere()

    def drop(self, owner: Owner) -> None:
        """Take away what somebody hung here."""
        self.hooks.drop(owner)
        for catalog in self.catalogs:
            catalog.remove(owner)
        for own in self.hooks.owners:
            if own.by is owner:
                self._discard(own)

    # what they hold

    async def start(self) -> None:
        """Enter the lifespans that are not entered yet."""
        if self.session is None:
            self._adopt()
        await self._lifespans.enter()

    async def stop(self, name: str) -> None:
        """Leave the lifespan of one extension, also of one that was removed."""
        await self._lifespans.leave(name)

    async def close(self) -> None:
        """Leave every lifespan, the last entered first."""
        await self._lifespans.close()
        if self.session is not None:
            for owner in reversed(self.hooks.owners):
                self._discard(owner)
