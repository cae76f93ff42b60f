"""Instruction files (AGENTS.md, CLAUDE.md) as a section of the system prompt.

They are text for the model and nothing more: a file of the project can tell the model what it
likes, but reaches no file outside of the project, and permits nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, cast

from crow.core.agent import Agent
from crow.core.catalog import PromptSection
from crow.core.context import Context
from crow.core.kinds import Watch
from crow.core.points import Alias, Point
from crow.core.session import Session

NAMES = ("AGENTS.md", "CLAUDE.md")
USER_FOLDERS = ("~/.crow", "~/.claude")
ORDER = 500
DEPTH = 5
FILE_LIMIT = 40_000
TOTAL_LIMIT = 120_000
INTRODUCTION = """\
# Instructions

What follows was written by the user or by the project's authors for whoever works here. Heed it \
where it bears on the task; the user's own words in the conversation come first.\
"""
POINT = Point(
    "on_instructions_loaded",
    "watch",
    ("file_path", "memory_type", "load_reason", "parent_file_path"),
    aliases=(Alias("InstructionsLoaded"),),
)
_CODE = re.compile(r"^(```|~~~).*?^\1|`[^`\n]*`|<!--.*?-->", re.DOTALL | re.MULTILINE)
_IMPORT = re.compile(r"(?<!\S)@((?:\\ |[^\s\\])+)")


class InstructionsContext(Context):
    """An instruction file was read.

    ``memory_type`` is ``User`` or ``Project``; ``load_reason`` is ``session_start``, ``include``
    (another file names it: ``parent_file_path``) or ``compact``.
    """

    __slots__ = ("file_path", "load_reason", "memory_type", "parent_file_path")

    def __init__(self, agent: Agent, session: Session, found: Instructions) -> None:
        super().__init__(agent, session)
        again = "compact" if session.segment else "session_start"
        self.file_path = str(found.path)
        self.memory_type = found.memory_type
        self.load_reason = "include" if found.parent else again
        self.parent_file_path = str(found.parent) if found.parent else None


@dataclass(frozen=True, slots=True)
class Instructions:
    """One file's text; ``parent`` is the file that imports it."""

    path: Path
    text: str
    memory_type: Literal["User", "Project"]
    parent: Path | None = None


class InstructionsHook:
    """Adds the user's instruction files and those of the project to the system prompt.

    Read once a session: ``names`` in the ``user`` folders, then in every folder from the root of
    the git repository down to the session's directory (only there, outside of a repository).
    ``@path`` in a file imports another, up to ``DEPTH`` deep; a project's file can import only
    from the project. Files are cut at ``limit`` characters, and a notice says so. Fires
    ``on_instructions_loaded`` (``InstructionsLoaded``) for every file.
    """

    name = "instructions"

    def __init__(
        self,
        names: Sequence[str] = NAMES,
        *,
        user: Sequence[str | Path] = USER_FOLDERS,
        limit: int = FILE_LIMIT,
    ) -> None:
        self.names = tuple(names)
        self.user = tuple(user)
        self.limit = limit

    def init_agent(self, agent: Agent) -> None:
        """Add the section and the event."""

        async def section(session: Session) -> str:
            return await self._section(agent, session)

        if POINT.name not in agent.hooks.names:
            agent.hooks.define(POINT)
        agent.add_section(PromptSection(self.name, section, ORDER))

    async def _section(self, agent: Agent, session: Session) -> str:
        reading = Reading(self.limit)
        found = list(self._files(reading, session.cwd))
        point = cast("Watch[InstructionsContext]", agent.hooks[POINT.name])
        for each in found if point else ():
            await point.fire(InstructionsContext(agent, session, each))
        for complaint in reading.complaints:
            await Context(agent, session).ui.notify(complaint, severity="warning")
        return "\n\n".join([INTRODUCTION, *map(_shown, found)]) if found else ""

    def _files(self, reading: Reading, cwd: str) -> Iterator[Instructions]:
        for folder in self.user:
            for name in self.names:
                yield from reading.read(Path(folder).expanduser() / name, None)
        folders = project_folders(Path(cwd))
        for folder in folders:
            for name in self.names:
                yield from reading.read(folder / name, folders[0].resolve())


@dataclass(slots=True)
class Reading:
    """One pass over the files: each is read once, and all together are bounded."""

    limit: int
    room: int = TOTAL_LIMIT
    seen: set[Path] = field(default_factory=set[Path])
    complaints: list[str] = field(default_factory=list[str])

    def read(
        self, path: Path, root: Path | None, parent: Path | None = None, depth: int = 0
    ) -> Iterator[Instructions]:
        """A file and what it imports; a ``root`` is the folder that nothing may be outside of."""
        real = _real(path)
        if real is None or real in self.seen:
            return
        if root is not None and not real.is_relative_to(root):
            self.complaints.append(f"{path} is not read: it is outside of the project {root}")
            return
        self.seen.add(real)
        text = self._text(path, real)
        if text:
            yield Instructions(path, text, "Project" if root else "User", parent)
        if depth < DEPTH:
            for imported in imports(text, path.parent):
                yield from self.read(imported, root, path, depth + 1)

    def _text(self, path: Path, real: Path) -> str:
        limit = min(self.limit, self.room)
        try:
            with real.open(encoding="utf-8-sig", errors="replace") as opened:
                text = opened.read(limit + 1)
        except OSError as error:
            self.complaints.append(f"{path} cannot be read: {error.strerror}")
            return ""
        if len(text) > limit:
            text = text[:limit]
            self.complaints.append(f"{path} is too long: only {limit} characters of it are used")
        self.room -= len(text)
        return text.replace("\0", "").strip()


def project_folders(cwd: Path) -> list[Path]:
    """The folders from the root of the git repository down to a directory."""
    chain = [cwd, *cwd.parents]
    depth = next((i for i, folder in enumerate(chain) if (folder / ".git").exists()), 0)
    return chain[: depth + 1][::-1]


def imports(text: str, folder: Path) -> Iterator[Path]:
    """The files that a text names as ``@path``, outside of code and comments."""
    for match in _IMPORT.finditer(_CODE.sub("", text)):
        written = match[1].replace("\\ ", " ")
        for name in (written, written.rstrip(".,;:!?)\"'")):
            path = folder / Path(name).expanduser()
            if _real(path) is not None:
                yield path
                break


def _real(path: Path) -> Path | None:
    """Where a regular file really is; None where there is none."""
    try:
        real = path.resolve()
        return real if real.is_file() else None
    except (OSError, ValueError, RuntimeError):
        return None


def _shown(found: Instructions) -> str:
    return f'<instructions file="{found.path}">\n{found.text}\n</instructions>'
