"""Preferences for the screen, from the settings: keys, colours, how prompts are edited."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any, cast

from crow.terminal.background import (
    Theme,
    can_be_asked,
    knows_sixels,
    theme_of,
    theme_of_environment,
)
from crow.terminal.keys import Pressed, bindings, key_of
from crow.terminal.terminal import Terminal


def apply_settings(terminal: Terminal, wanted: Mapping[str, Any]) -> Iterator[str]:
    """Look and listen as the table ``terminal`` of the settings has it; what is wrong in that."""
    chosen: dict[str, list[Pressed]] = {}
    for name, value in wanted.get("keys", {}).items():
        try:
            chosen[name] = [key_of(text) for text in ([value] if isinstance(value, str) else value)]
        except ValueError as error:
            yield f"terminal.keys.{name}: {error}"
    terminal.screen.keys = bindings(terminal, chosen)
    if wanted.get("vi"):
        terminal.screen.edit_as_vi()
    apply_theme(terminal, wanted.get("theme", "auto"))


def apply_theme(terminal: Terminal, theme: str) -> None:
    """Take the colours for a background, and show pictures, as the terminal says that it can."""
    palette = terminal.palette

    def hear(reply: str) -> None:
        if theme == "auto" and (told := theme_of(reply)):
            palette.theme = told
            terminal.screen.refresh()
        if knows_sixels(reply) and not palette.pictures:
            palette.pictures = "sixel"

    if theme in ("dark", "light"):
        palette.theme = cast("Theme", theme)
    elif theme == "auto":
        palette.theme = theme_of_environment(os.environ)
    if can_be_asked(os.environ):
        terminal.screen.ask(hear)
