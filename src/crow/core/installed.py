"""Extensions of other packages: found by entry point, made from options, named if broken."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, TypeVar

from crow.core.errors import ExtensionError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "crow.extensions"
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Found:
    """An extension that was looked for: where it came from, and the error if it is broken."""

    name: str
    source: str
    error: str | None = None
    disabled: bool = False


def entry_points() -> list[EntryPoint]:
    """Every entry point of the group ``crow.extensions``, by name."""
    from importlib.metadata import entry_points as installed  # 17 ms, only where it is wanted

    return sorted(installed(group=GROUP), key=lambda point: point.name)


def source_of(point: EntryPoint) -> str:
    """The distribution that an entry point comes from."""
    return point.dist.name if point.dist else point.value


def attempt(
    use: Callable[..., Any],
    point: EntryPoint,
    trusted: bool,
    options: Mapping[str, Any],
) -> str | None:
    """Use what an entry point names; the error in one line where that fails."""
    try:
        use(point.load(), name=point.name, trusted=trusted, source=point.value, **options)
    except Exception as error:  # noqa: BLE001 - a broken package must not stop the others
        return " ".join(f"{type(error).__name__}: {error}".split())
    return None


def make(cls: type[T], name: str, options: Mapping[str, Any]) -> T:
    """An extension from its class and its options, which must fit the constructor."""
    try:
        parameters = inspect.signature(cls).parameters
    except (TypeError, ValueError):
        return cls()
    named = [key for key, p in parameters.items() if key != "agent" and p.kind is not p.VAR_KEYWORD]
    open_ended = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    for option in options:
        if option not in named and not open_ended:
            near = get_close_matches(option, named, n=1)
            hint = (
                f"; did you mean {near[0]!r}?" if near else f"; it has {', '.join(named) or 'none'}"
            )
            raise ExtensionError(f"the extension {name} has no option {option!r}{hint}")
    missing = [
        key
        for key, p in parameters.items()
        if p.default is p.empty
        and p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)
        and key not in options
    ]
    if missing:
        raise ExtensionError(f"the extension {name} needs the option {missing[0]!r}")
    return cls(**options)
