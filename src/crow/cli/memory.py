"""Memory: ``# line`` in the terminal is a line that the instructions have from now on."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from crow.core.messages import context_block
from crow.core.ports.client import Question
from crow.project.home import from_home

if TYPE_CHECKING:
    from crow.cli.session_control import SessionControl
    from crow.extensions.instructions import InstructionsHook
    from crow.terminal.tab import Tab

UNREAD = "nothing reads instructions here: the extension 'instructions' is not in use"


def is_to_remember(prompt: str) -> bool:
    """True for one line behind one ``#``: Markdown that somebody pastes is a prompt."""
    text = prompt.strip()
    return text.startswith("#") and text.strip("#") == text[1:] and "\n" not in text


async def remember(control: SessionControl, tab: Tab, prompt: str) -> None:
    """Ask where a line is to be kept, write it there, and tell the model."""
    session = control.session
    used = control.agent.extensions_of(session).get("instructions")
    line = prompt.strip()[1:].strip()
    if used is None:
        tab.tell(UNREAD, is_error=True)
        return
    places = {near(path, session.cwd): path for path in files_of(used, session.cwd)}
    asked = Question("Where is this to be remembered?", "select", tuple(places), detail=line)
    if not line or (chosen := await tab.ask(session.id, asked)) is None:
        return
    try:
        add(places[chosen], line)
    except OSError as error:
        tab.tell(f"{chosen} cannot be written: {error.strerror}", is_error=True)
        return
    tab.tell(f"remembered in {chosen}")
    told = f"The user has added to the instructions in {places[chosen]}:\n- {line}"
    session.pending.append(context_block(told, "instructions"))


def files_of(used: InstructionsHook, cwd: str) -> Iterator[Path]:
    """The files that are read: of the project, nearest first, and the user's own.

    Where there is none of either sort, the one that would be read first.
    """
    from crow.project.trust import repository_folders

    project = repository_folders(Path(cwd))
    own = [Path(os.path.expanduser(folder)) for folder in used.user]
    for folders, first in ((project, project[-1]), (own, own[0] if own else None)):
        there = [
            path for folder in folders for name in used.names if (path := folder / name).is_file()
        ]
        yield from there or ([first / used.names[0]] if first and used.names else [])


def near(path: Path, cwd: str) -> str:
    """A path as a person reads it."""
    if path.is_relative_to(cwd):
        return str(path.relative_to(cwd))
    return from_home(path)


def add(path: Path, line: str) -> None:
    """Write one more line to a list at the end of a file. Raises ``OSError``."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab+") as file:
        file.seek(max(0, file.seek(0, 2) - 1))
        gap = b"" if file.read() in (b"", b"\n") else b"\n"
        file.write(gap + f"- {line}\n".encode())
