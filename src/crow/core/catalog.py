"""Named things that extensions add to an agent: tools, commands, modes, prompt sections."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from crow.core.errors import ExtensionError
from crow.core.frozen import frozen

if TYPE_CHECKING:
    from crow.core.contexts import CommandContext
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
        self, name: str, thing: T, owner: object = None, *, replace: bool = False
    ) -> Callable[[], None]:
        """Put a thing in; returns its disposer. Raises `ExtensionError` where the name is taken."""
        if name in self._things and not replace:
            raise ExtensionError(
                f"there is a {self.noun} {name!r} already (replace=True to hide it)"
            )
        entry = (name, thing, owner)
        self._entries.append(entry)
        self._things[name] = thing
        self.version += 1

        def dispose() -> None:
            self._entries[:] = [other for other in self._entries if other is not entry]
            self._rebuild()

        return dispose

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


@frozen
class Command:
    """A slash command.

    ``run`` gets the context (``ctx.args`` is the rest of the line). Text that it returns is the
    prompt that the model gets; an `Answer` is shown and no model is asked; None says nothing.
    ``hint`` shows what can be typed behind the name.
    """

    name: str
    description: str
    run: Callable[[CommandContext], Awaitable[str | Answer | None]]
    hint: str = ""


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


AnyCatalog = Catalog[Any]
