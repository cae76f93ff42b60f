"""Widgets of extensions on the screen: members that other faces never look at.

``terminal_status(session)`` is a text at the bottom, ``terminal_widget(session)`` lines above the
editor, ``terminal_card(call, result)`` lines in the card of a call, ``terminal_keys`` functions by
their keys. One that fails is named, and not asked again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, cast

from crow.text import clean, one_line

if TYPE_CHECKING:
    from crow.core.agent import Agent
    from crow.core.session import Session
    from crow.core.tools import Call, ToolResult
    from crow.terminal.tab import Tab

LINES = 5
"""Lines of a widget."""


class ExtensionWidgets:
    """The widgets that the extensions of a session have to show."""

    def __init__(self, agent: Agent, session: Session, tab: Tab) -> None:
        self._agent = agent
        self._session = session
        self._tab = tab
        self._failed: set[tuple[str, str]] = set()

    def bind(self) -> None:
        """Let their keys do something."""
        from crow.terminal.keys import Pressed, key_of

        chosen: dict[Pressed, Callable[[], object]] = {}
        for name, extension in self._agent.extensions_of(self._session).items():
            keys = cast("Mapping[str, Any]", getattr(extension, "terminal_keys", {}))
            for text, act in keys.items():
                try:
                    chosen[key_of(text)] = lambda act=act, name=name: self._press(name, act)
                except ValueError as error:
                    self._tab.tell(f"{name}: {error}", is_error=True)
        self._tab.bind(chosen)

    def _press(self, name: str, act: Callable[[Session], Any]) -> None:
        async def do() -> None:
            try:
                done = act(self._session)
                if isawaitable(done):
                    await done
            except Exception as error:  # noqa: BLE001 - an extension's fault is no end of the talk
                self._tell(name, "key", error)
            self._tab.refresh()

        self._session.spawn(do())

    def status(self) -> list[str]:
        """Texts for the line at the bottom."""
        return [one_line(str(said)) for said in self._said("terminal_status", self._session)]

    def widget(self) -> list[str]:
        """Lines above the editor."""
        said = self._said("terminal_widget", self._session)
        return [line for each in said for line in lines_of(each)[:LINES]]

    def card(self, call: Call, result: ToolResult) -> list[str] | None:
        """Lines for the card of a call; None where nobody has any."""
        said = next(self._said("terminal_card", call, result), None)
        return None if said is None else lines_of(said)

    def _said(self, member: str, *given: object) -> Iterator[Any]:
        for name, extension in self._agent.extensions_of(self._session).items():
            ask = getattr(extension, member, None)
            if ask is None or (name, member) in self._failed:
                continue
            try:
                said = ask(*given)
            except Exception as error:  # noqa: BLE001 - see above
                self._failed.add((name, member))
                self._tell(name, member, error)
                continue
            if said:
                yield said

    def _tell(self, name: str, what: str, error: Exception) -> None:
        told = f"{name}: its {what} failed: {type(error).__name__}: {error}"
        self._tab.tell(told, is_error=True)


def lines_of(said: Any) -> list[str]:
    """What an extension said, a text or lines, without what a terminal would obey."""
    text = said if isinstance(said, str) else "\n".join(map(str, said))
    return clean(text).expandtabs(4).split("\n")
