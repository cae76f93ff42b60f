"""The name in a prompt that begins with a slash: a command's, a short one, or none at all."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from crow.extensions.commands.recipe import NAME
from crow.messages import text_of
from crow.project import matching_names

if TYPE_CHECKING:
    from crow.messages import Content

_WORD = r"/(\S+)"


def typed(prompt: Content, names: Iterable[str]) -> str | None:
    """The prompt with the whole name of its command; None where that is not to be put in."""
    text = text_of(prompt)
    name = _named(text)
    known = matching_names(name, names) if name else []
    is_short = len(known) == 1 and known[0] != name
    return f"/{known[0]}{text[len(name) + 1 :]}" if is_short else None


def missing(prompt: Content, names: Iterable[str]) -> str:
    """What a person is told where a prompt names no command, or several; empty else.

    A path is no command, neither is what a blank stands before.
    """
    name, known = _named(text_of(prompt)), list(names)
    found = matching_names(name, known) if name else []
    if not name or len(found) == 1:
        return ""
    if found:
        return f"There are several commands /{name}: {_list(found)}"
    from difflib import get_close_matches

    near = get_close_matches(name, {*known, *(each.rpartition(":")[2] for each in known)}, n=1)
    said = f"did you mean /{near[0]}?" if near else "/help lists all."
    return (
        f"There is no command /{name}; {said} "
        "(With a blank before the slash it goes to the model as it is.)"
    )


def _named(text: str) -> str:
    """The name of the command that a text begins with; empty where it begins with none."""
    word = text.startswith("/") and re.match(_WORD, text)
    name = word[1] if word else ""
    is_path = not re.fullmatch(NAME, name) or os.path.lexists(f"/{name}")
    return "" if is_path else name


def _list(names: Iterable[str]) -> str:
    return ", ".join(f"/{name}" for name in sorted(names))
