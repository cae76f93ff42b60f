"""The catalog of things by name: tools, commands, modes, prompt sections and extensions."""

from __future__ import annotations

import inspect
from collections.abc import (
    Awaitable,
    Callable,
    ItemsView,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
    ValuesView,
)
from typing import TYPE_CHECKING, Any, Generic, TypeGuard, TypeVar, cast

from crow.core.errors import ExtensionError, raised_at, with_place
from crow.core.extensions import place_in_source
from crow.core.hooks.hook import Owner
from crow.core.messages import ToolSpec
from crow.core.ports.tool import Tool
from crow.core.support.frozen import frozen, kept

if TYPE_CHECKING:
    from crow.core.hooks.contexts import CommandContext
    from crow.core.session import Session
    from crow.core.verdicts import Answer

T = TypeVar("T")


class Catalog(Mapping[str, T], Generic[T]):
    """Things by name, each with its owner. ``version`` grows with every change.

    A name can be taken once, unless ``replace`` is said; taking the later one away brings the
    earlier one back.
    """

    def __init__(self, noun: str) -> None:
        self.noun = noun
        self.version = 0
        self._entries: list[tuple[str, T, object]] = []
        self._things: dict[str, T] = {}

    def add(
        self, name: str, thing: T, owner: Any = None, *, replace: bool = False
    ) -> Callable[[], None]:
        """Put a thing in; returns its disposer. Raises `ExtensionError` where the name is taken."""
        if name in self._things and not replace:
            raise ExtensionError(
                f"there is a {self.noun} {name!r} already (replace=True to hide it)"
            )
        entry = (name, thing, owner)
        if getattr(owner, "moved", False):
            behind = [getattr(each[2], "used", 0) > owner.used for each in self._entries]
            self._entries.insert([*behind, True].index(True), entry)
            self._rebuild()
        else:
            self._entries.append(entry)
            self._things[name] = thing
            self.version += 1

        def dispose() -> None:
            self._entries[:] = [other for other in self._entries if other is not entry]
            self._rebuild()

        return dispose

    def claim(self, thing: object, owner: object) -> None:
        """Give an owner what is nobody's, and a method of its, or made of one."""
        self._entries[:] = [
            (name, each, owner if held is None and bound_to(each) is thing else held)
            for name, each, held in self._entries
        ]

    def remove(self, owner: object) -> None:
        """Take away everything of one owner."""
        self._entries[:] = [entry for entry in self._entries if entry[2] is not owner]
        self._rebuild()

    def owner(self, name: str) -> object:
        """Whoever added what now stands under a name; None for nothing or nobody."""
        return next((entry[2] for entry in reversed(self._entries) if entry[0] == name), None)

    @property
    def owned(self) -> dict[str, tuple[T, object]]:
        """What stands under each name, and whoever added it."""
        return {name: (thing, owner) for name, thing, owner in self._entries}

    def _rebuild(self) -> None:
        self.version += 1
        self._things = {name: thing for name, thing, _ in self._entries}

    def __getitem__(self, name: str) -> T:
        return self._things[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._things)

    def __len__(self) -> int:
        return len(self._things)

    def __contains__(self, name: object) -> bool:
        return name in self._things

    def items(self) -> ItemsView[str, T]:
        """What stands under each name; asked before every request."""
        return self._things.items()

    def values(self) -> ValuesView[T]:
        """What stands under the names."""
        return self._things.values()


AnyCatalog = Catalog[Any]


def bound_to(thing: object) -> object:
    """Whose method is called by a tool or a command; None for nobody's."""
    called = getattr(thing, "function", None) or getattr(thing, "run", None)
    return getattr(called, "__self__", None)


def tools_in(module: object) -> list[Tool]:
    """The tools that stand in a module."""
    return [each for each in vars(module).values() if is_tool(each)]


def is_tool(thing: object) -> TypeGuard[Tool]:
    """True for what a model can call."""
    wanted = "name", "description", "parameters", "run"
    return not inspect.isclass(thing) and all(hasattr(thing, name) for name in wanted)


class Extensions(dict[str, Any]):
    """The extensions in use by name; a name that is taken is nobody else's."""

    def __setitem__(self, name: str, thing: Any) -> None:
        if self.get(name, thing) is not thing:
            raise ExtensionError(f"there is an extension {name!r} already: remove({name!r}) first")
        super().__setitem__(name, thing)

    def update(self, *others: Any, **more: Any) -> None:
        """Put several extensions."""
        for name, thing in dict[str, Any](*others, **more).items():
            self[name] = thing

    def __ior__(self, other: Any) -> Any:
        self.update(other)
        return self

    def settle(self, owners: Sequence[Owner]) -> None:
        """Be in the order of their owners; what is nobody's comes first."""
        places = {id(owner.thing): number for number, owner in enumerate(owners, 1)}
        ordered = sorted(self.items(), key=lambda each: places.get(id(each[1]), 0))
        self.clear()
        super().update(ordered)


@frozen
class Command:
    """A slash command.

    ``run``, async or not, gets the context (``ctx.args`` is the rest of the line). Text that it
    returns is the prompt that the model gets; an `Answer` is shown and no model is asked; None
    says nothing.
    ``hint`` shows what can be typed behind the name; ``complete(session, text)`` is asked in a
    terminal what the text behind the name can become. It may give all that there is: what does not
    fit is left out there.
    """

    name: str
    description: str
    run: Callable[[CommandContext], Awaitable[str | Answer | None] | str | Answer | None]
    hint: str = ""
    complete: Callable[[Session, str], Iterable[str]] | None = None


def spec_of(tool: Tool) -> ToolSpec:
    """What a model is told of a tool; that no other arguments are taken goes without saying."""
    parameters = dict(tool.parameters)
    if parameters.get("additionalProperties") is False:
        del parameters["additionalProperties"]
    function = {"name": tool.name, "description": tool.description, "parameters": parameters}
    return cast("ToolSpec", kept({"type": "function", "function": function}))


@frozen
class Mode:
    """A way of working that the user can choose, such as ``plan``."""

    id: str
    name: str
    description: str = ""


@frozen
class PromptSection:
    """A part of the system prompt. A callable is asked once a session."""

    name: str
    text: str | Callable[[Session], str | Awaitable[str]]
    order: int = 0

    async def written(self, session: Session) -> str:
        """The text for a session. Raises `ExtensionError` where it cannot be had."""
        try:
            said = self.text(session) if callable(self.text) else self.text
            text = cast("object", await said if inspect.isawaitable(said) else said)
            if isinstance(text, str):
                return text
            raise TypeError(f"it must be text, not {text!r:.60}")
        except Exception as error:
            place = "" if raised_at(error) else place_in_source(self.text)
            told = f"the prompt section {self.name} failed: {with_place(error)}{place}"
            raise ExtensionError(told) from error
