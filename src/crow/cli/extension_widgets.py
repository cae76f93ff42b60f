"""Widgets of extensions on the screen: what `crow.ports.faces` has, and no other face.

One that fails is named, and not asked again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, TypeVar

from crow.core.support.validation import implements, members_of
from crow.ports.faces import CardProvider, KeyProvider, StatusProvider, WidgetProvider
from crow.text import clean, one_line

if TYPE_CHECKING:
    from crow.core.agent import Agent
    from crow.core.session import Session
    from crow.core.tools import Call, ToolResult
    from crow.terminal.tab import Tab

P = TypeVar("P")
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
            if not implements(extension, KeyProvider):
                continue
            for text, act in extension.terminal_keys.items():
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
        said = self._said(StatusProvider, lambda it: it.terminal_status(self._session))
        return [one_line(str(each)) for each in said]

    def widget(self) -> list[str]:
        """Lines above the editor."""
        said = self._said(WidgetProvider, lambda it: it.terminal_widget(self._session))
        return [line for each in said for line in lines_of(each)[:LINES]]

    def card(self, call: Call, result: ToolResult) -> list[str] | None:
        """Lines for the card of a call; None where nobody has any."""
        said = next(self._said(CardProvider, lambda it: it.terminal_card(call, result)), None)
        return None if said is None else lines_of(said)

    def _said(self, protocol: type[P], ask: Callable[[P], Any]) -> Iterator[Any]:
        [member] = members_of(protocol)
        for name, extension in self._agent.extensions_of(self._session).items():
            if (name, member) in self._failed or not implements(extension, protocol):
                continue
            try:
                said = ask(extension)
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
