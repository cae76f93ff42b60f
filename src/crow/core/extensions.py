"""Extensions: made with their options, hung, entered and left."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from types import AsyncGeneratorType, CoroutineType, GeneratorType
from typing import Any, Protocol, TypeVar, runtime_checkable

from crow.core.errors import ExtensionError, nearest, raised_at, with_place
from crow.core.support.frozen import frozen
from crow.core.support.parameters import VAR_KEYWORD, VARIADIC, parameters
from crow.core.support.validation import implements

logger = logging.getLogger("crow.extensions")

ENTER_TIMEOUT = 30.0
LEAVE_TIMEOUT = 5.0
LAZY = (CoroutineType, AsyncGeneratorType, GeneratorType)
NO_LIFESPAN = "lifespan must be an async def with one yield between its beginning and its end"

T = TypeVar("T")


@runtime_checkable
class AgentExtension(Protocol):
    """An extension that hangs itself on an agent."""

    def init_agent(self, agent: Any) -> object:
        """Add to the agent what the extension brings: tools, commands, hooks."""
        ...


@runtime_checkable
class SessionExtension(Protocol):
    """An extension that hangs itself on a session."""

    def init_session(self, session: Any) -> object:
        """Add to the session what the extension brings."""
        ...


@runtime_checkable
class LifespanExtension(Protocol):
    """An extension that holds something open, from before the first prompt to the end."""

    def lifespan(self, host: Any) -> AsyncIterator[Any] | AbstractAsyncContextManager[Any]:
        """Open it, ``yield`` once, close it; ``host`` is the agent, or the session."""
        ...


@frozen
class Found:
    """An extension that was looked for: where it came from, and the error if it is broken.

    ``problems`` are lines about options that it did not get; ``names`` those under which it is in
    use, one for each class of a file.
    """

    name: str
    source: str
    error: str | None = None
    disabled: bool = False
    problems: tuple[str, ...] = ()
    names: tuple[str, ...] = ()


def refuse_unbrought(wanted: Iterable[str], found: Iterable[Found]) -> None:
    """Raise `ExtensionError` for the first that no installed package brings."""
    names = {each.name for each in found}
    for name in [each for each in wanted if each not in names]:
        near = nearest(name, names)
        hint = f"; did you mean {near!r}?" if near else ""
        raise ExtensionError(f"no installed package brings the extension {name!r}{hint}")


def warn_of_broken(found: Iterable[Found]) -> None:
    """Name those in the log that could not be used."""
    for each in found:
        if each.error:
            told = each.name, each.source, each.error
            logger.warning("the extension %s of %s is broken: %s", *told)


class MissingOption(ExtensionError):  # noqa: N818 - that is what is wrong
    """An option that a class cannot be made without."""


def make(cls: type[T], name: str, options: Mapping[str, Any]) -> T:
    """An extension from its class and its options, which must fit the constructor.

    Raises `ExtensionError` for an option that does not exist or is missing, and for what is no
    class, which takes none.
    """
    if not inspect.isclass(cls):
        told = f"{cls!r} is made already, and takes no options: {', '.join(options)}"
        raise ExtensionError(f"{told} (use its class)")
    if type(cls) is not type:  # such as a model of pydantic's, which takes whatever it is given
        _refuse_unfit(cls, name, options)
    try:
        return cls(**options)
    except TypeError:
        _refuse_unfit(cls, name, options)
        raise


def place_in_source(made: Any) -> str:
    """File and line of a class or a function, in brackets; empty where nobody knows them."""
    try:
        return f" ({inspect.getsourcefile(made)}:{inspect.getsourcelines(made)[1]})"
    except (OSError, TypeError):
        return ""


def initialiser(thing: Any, *, on_session: bool) -> Callable[[Any], object] | None:
    """What an extension hangs itself by; refuses one that can do so on agents alone."""
    named = {thing.__name__: thing} if inspect.isfunction(thing) else {}
    own = thing.init_agent if implements(thing, AgentExtension) else None
    on_agent = named.get("init_agent", own)
    if not on_session:
        return on_agent
    own = thing.init_session if implements(thing, SessionExtension) else None
    initialise = named.get("init_session", own)
    if initialise is None and on_agent is not None:
        raise ExtensionError(f"{thing!r} hangs on agents alone: it has no init_session")
    return initialise


def refuse_lazy(initialise: Callable[[Any], object], made: object) -> None:
    """Raise `ExtensionError` where calling it has done nothing yet, as an ``async def`` has not."""
    if isinstance(made, LAZY):
        if isinstance(made, CoroutineType):
            made.close()
        named = getattr(initialise, "__qualname__", initialise)
        raise ExtensionError(
            f"{named} is not run by a call: make it a plain def, without yield, and await in "
            f"lifespan{place_in_source(initialise)}"
        )


def _refuse_unfit(cls: type[Any], name: str, options: Mapping[str, Any]) -> None:
    """Raise for the first option that is none, with the nearest one, or that is missing."""
    given = parameters(cls)
    names = {each.name for each in given if each.kind not in VARIADIC} - {"agent"}
    takes_all = bool(given) and given[-1].kind is VAR_KEYWORD
    for option in [each for each in options if each not in names and not takes_all]:
        known = [each.name for each in given if each.name in names]
        near = nearest(option, known)
        there = f"it has {', '.join(known)}" if known else "it has none"
        hint = f"did you mean {near!r}?" if near else there
        raise ExtensionError(f"the extension {name} has no option {option!r}; {hint}")
    for each in given:
        if each.required and each.name in names - options.keys():
            told = f"the extension {name} needs the option {each.name!r} of {cls.__name__}"
            described = getattr(cls, "options", None)
            if inspect.isclass(described):
                told += f", which is made with the fields of {described.__name__}, each by name"
            raise MissingOption(f"{told}{place_in_source(cls)}")


class Lifespan:
    """One extension's ``async def lifespan(self, agent): ... yield ...``.

    On a session it is called with that.
    """

    def __init__(
        self,
        name: str,
        make: Callable[..., Any],
        host: object,
        *,
        enter_timeout: float = ENTER_TIMEOUT,
        leave_timeout: float = LEAVE_TIMEOUT,
    ) -> None:
        self.name = name
        self.enter_timeout = enter_timeout
        self.leave_timeout = leave_timeout
        self._make = make
        self._host = host
        self._leave = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @property
    def entered(self) -> bool:
        """True while there is something to leave: it was begun, and has not failed."""
        return self._task is not None

    async def enter(self) -> None:
        """Run the part before ``yield``. Raises `ExtensionError` where that fails or hangs."""
        ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        task = asyncio.create_task(self._live(ready), name=f"lifespan of {self.name}")
        self._task = task
        try:
            async with asyncio.timeout(self.enter_timeout):
                await ready
        except TimeoutError:
            raise ExtensionError(
                f"the extension {self.name} did not start within {self.enter_timeout:g} s"
            ) from None
        finally:
            if not ready.done() or ready.cancelled() or ready.exception() is not None:
                self._task = None
                task.cancel()

    async def leave(self) -> None:
        """Run the part behind ``yield``; what fails or hangs there is logged."""
        if self._task is None:
            return
        self._leave.set()
        _, late = await asyncio.wait({self._task}, timeout=self.leave_timeout)
        if late:
            logger.warning(
                "the extension %s did not stop within %g s", self.name, self.leave_timeout
            )
            self._task.cancel()

    async def _live(self, ready: asyncio.Future[None]) -> None:
        try:
            async with self._context():
                ready.set_result(None)
                await self._leave.wait()
        except Exception as error:  # noqa: BLE001 - somebody else's code
            place = "" if raised_at(error) else place_in_source(self._make)
            told = f"{with_place(error)}{place}"
            if ready.done():
                logger.warning("the extension %s failed to stop: %s", self.name, told)
            else:
                text = f"the extension {self.name} failed to start: {told}"
                ready.set_exception(ExtensionError(text))

    def _context(self) -> AbstractAsyncContextManager[Any]:
        if inspect.isasyncgenfunction(self._make):
            return asynccontextmanager(self._make)(self._host)
        if inspect.iscoroutinefunction(self._make) or inspect.isgeneratorfunction(self._make):
            raise TypeError(NO_LIFESPAN)
        return self._make(self._host)


class Lifespans:
    """The lifespans of an agent's or a session's extensions, by name, in the order of use."""

    def __init__(self) -> None:
        self._held: dict[str, Lifespan] = {}
        self._removed: list[Lifespan] = []
        self._entering = asyncio.Lock()

    def hold(self, name: str, lifespan: Callable[..., Any], host: object) -> None:
        """Take up the lifespan of an extension; it is not entered yet."""
        self._held[name] = Lifespan(name, lifespan, host)

    def drop(self, name: str) -> None:
        """Hold what an extension has no longer; what was entered is left later."""
        lifespan = self._held.pop(name, None)
        if lifespan is not None and lifespan.entered:
            self._removed.append(lifespan)

    def take(self, names: Iterable[str]) -> dict[str, Lifespan]:
        """Take those of some extensions out of here, as they are."""
        return {name: self._held.pop(name) for name in names if name in self._held}

    def restore(self, taken: Mapping[str, Lifespan], order: Iterable[str]) -> None:
        """Hold again what was taken out, all in the order of these names."""
        known = {**self._held, **taken}
        self._held = {name: known[name] for name in order if name in known}

    async def enter(self) -> None:
        """Enter those that are not entered yet."""
        if not self._held:
            return
        async with self._entering:
            for lifespan in list(self._held.values()):
                if not lifespan.entered:
                    await lifespan.enter()

    async def leave(self, name: str) -> None:
        """Leave that of one extension, also of one that was removed."""
        held = self._held.pop(name, None)
        await self.leave_removed({name})
        if held is not None:
            await held.leave()

    async def leave_removed(self, names: Collection[str]) -> None:
        """Leave those of these names whose extensions were removed."""
        for lifespan in [one for one in self._removed if one.name in names]:
            self._removed.remove(lifespan)
            await lifespan.leave()

    async def close(self) -> None:
        """Leave every one, the last entered first."""
        for lifespan in reversed([*self._removed, *self._held.values()]):
            await lifespan.leave()
        self._removed.clear()
        self._held.clear()
