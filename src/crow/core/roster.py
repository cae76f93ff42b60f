"""Who hangs on an agent: its extensions by name, what each added, and what it holds meanwhile."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from difflib import get_close_matches
from typing import Any

from crow.core.errors import CrowError, ExtensionError, HookError
from crow.core.hooks import MARK, Hooks, unknown_event
from crow.core.lifespan import Lifespan
from crow.core.running import Owner


class Roster:
    """The extensions of one agent; `Agent` says what its methods do and raise."""

    def __init__(self, agent: Any, hooks: Hooks, forget: Callable[[Owner], None]) -> None:
        self._agent = agent
        self._hooks = hooks
        self._forget = forget
        self.extensions: dict[str, Any] = {}
        self._owners: list[Owner] = []
        self._lifespans: dict[str, Lifespan] = {}
        self._removed: list[Lifespan] = []
        self._starting = asyncio.Lock()

    def use(self, thing: Any, name: str, trusted: bool, source: str) -> Any:
        """Hang an extension on the agent; what fails half-way leaves nothing behind."""
        owner = Owner(self._free_name(name), thing, trusted, source)
        hooks = self._hooks
        outer, hooks.owner = hooks.owner, owner
        try:
            self._hang(thing, owner)
        except CrowError:
            self._discard(owner)
            raise
        except (Exception, SystemExit) as error:
            self._discard(owner)
            raise ExtensionError(f"the extension {owner.name} failed: {error!r}") from error
        finally:
            hooks.owner = outer
        return thing

    def _free_name(self, name: str) -> str:
        taken = {owner.name for owner in self._owners}
        number = 2
        free = name
        while free in taken:
            free, number = f"{name}_{number}", number + 1
        return free

    def _hang(self, thing: Any, owner: Owner) -> None:
        self._owners.append(owner)
        if inspect.isfunction(thing) and thing.__name__ != "init_agent":
            self._hang_function(thing, owner)
        else:
            self._hang_object(thing, owner)
        known_as = [key for key, other in self.extensions.items() if other is thing]
        if known_as:
            owner.name = known_as[0]
        else:
            self.extensions[owner.name] = thing
        lifespan = getattr(thing, "lifespan", None)
        if lifespan is not None:
            self._lifespans[owner.name] = Lifespan(owner.name, lifespan, self._agent)

    def _hang_object(self, thing: Any, owner: Owner) -> None:
        initialise = thing if inspect.isfunction(thing) else getattr(thing, "init_agent", None)
        if getattr(thing, "__dict__", {}).get("agent", self) is None:
            setattr(thing, "agent", self._agent)  # noqa: B010 - made without the agent it wants
        if initialise is not None:
            initialise(self._agent)
        self._hooks.add(thing, owner)
        hangs = self._hooks.has(owner) or hasattr(thing, "lifespan")
        if initialise is None and not hangs:
            raise ExtensionError(
                f"{thing!r} hangs nothing on the agent: it has no init_agent, no lifespan, and no "
                "method that is named like an event"
            )

    def _hang_function(self, function: Callable[..., Any], owner: Owner) -> None:
        hooks = self._hooks
        for mark in getattr(function, MARK, ()):
            hooks.register(mark.event, function, owner=owner, **mark.options)
        if not hasattr(function, MARK):
            if function.__name__ not in hooks.names:
                hint = unknown_event(function.__name__, hooks.names)
                raise HookError(f"{hint} (name the function like an event, or mark it @hook(...))")
            hooks.register(function.__name__, function, owner=owner)

    def remove(self, name: str) -> None:
        """Take an extension away with all that it added; what it holds is left to `leave`."""
        if name not in self.extensions:
            near = get_close_matches(name, self.extensions, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise ExtensionError(f"there is no extension {name!r}{hint}")
        thing = self.extensions.pop(name)
        for owner in [o for o in self._owners if o.thing is thing] or [Owner(name, thing)]:
            self._discard(owner)

    def _discard(self, owner: Owner) -> None:
        self._hooks.remove(owner)
        self._forget(owner)
        if owner in self._owners:
            self._owners.remove(owner)
        for key in [k for k, thing in self.extensions.items() if thing is owner.thing]:
            del self.extensions[key]
        lifespan = self._lifespans.pop(owner.name, None)
        if lifespan is not None and lifespan.entered:
            self._removed.append(lifespan)

    async def enter(self) -> None:
        """Enter the lifespans that are not entered yet."""
        if not self._lifespans:
            return
        async with self._starting:
            for lifespan in list(self._lifespans.values()):
                if not lifespan.entered:
                    await lifespan.enter()

    async def leave(self, name: str) -> None:
        """Leave the lifespan of one extension, also of one that was removed."""
        held = self._lifespans.pop(name, None)
        left = [one for one in (held, *self._removed) if one is not None and one.name == name]
        self._removed[:] = [one for one in self._removed if one.name != name]
        for lifespan in left:
            await lifespan.leave()

    async def leave_all(self) -> None:
        """Leave every lifespan, the last entered first."""
        for lifespan in reversed([*self._removed, *self._lifespans.values()]):
            await lifespan.leave()
        self._removed.clear()
        self._lifespans.clear()
