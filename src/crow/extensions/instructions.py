"""Instruction files (AGENTS.md, CLAUDE.md): in the system prompt, and where a tool comes by later.

They are text for the model and nothing more: a file of the project can tell the model what it
likes, but reaches no file outside of the project, and permits nothing.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from crow import Arg, Context, Key, Point, PromptSection, Session, ToolContext, frozen, mutable

if TYPE_CHECKING:
    from crow import Agent, CwdContext

NAME = "instructions"
ORDER = 500
DEPTH = 5
TOTAL_LIMIT = 120_000
INTRODUCTION = """\
# Instructions

What follows was written by the user or by the project's authors for whoever works here. Heed it \
where it bears on the task; the user's own words in the conversation come first.\
"""
NESTED = "These instructions hold below their folder, where you have just been:"
GONE = "These instructions hold in the directory where the user has gone:"
POINT = Point(
    "on_instructions_loaded",
    "watch",
    ("file_path", "memory_type", "load_reason", "parent_file_path", "trigger_file_path"),
    aliases=("InstructionsLoaded",),
)
TOUCHING = frozenset({"read", "edit", "move", "delete"})
_CODE = r"(?sm)^(```|~~~).*?^\1|`[^`\n]*`|<!--.*?-->"
_IMPORT = r"(?<!\S)@((?:\\ |[^\s\\])+)"


class InstructionsContext(Context):
    """An instruction file was read.

    ``memory_type`` is ``User`` or ``Project``; ``load_reason`` is ``session_start``, ``include``
    (another file names it: ``parent_file_path``), ``compact`` or ``nested_traversal`` (a tool
    touched a file below it: ``trigger_file_path``).
    """

    __slots__ = (
        "file_path",
        "load_reason",
        "memory_type",
        "parent_file_path",
        "trigger_file_path",
    )

    def __init__(
        self, agent: Agent, session: Session, found: Instructions, trigger: str | None = None
    ) -> None:
        super().__init__(agent, session)
        reason = (
            "nested_traversal" if trigger else "compact" if session.segment else "session_start"
        )
        self.file_path = str(found.path)
        self.memory_type = found.memory_type
        self.load_reason = "include" if found.parent else reason
        self.parent_file_path = str(found.parent) if found.parent else None
        self.trigger_file_path = trigger


@frozen
class Instructions:
    """One file's text; ``parent`` is the file that imports it."""

    path: Path
    text: str
    memory_type: Literal["User", "Project"]
    parent: Path | None = None


@dataclass(eq=False)
class InstructionsHook:
    """Adds the user's instruction files and those of the project to the system prompt.

    Read once a session: ``names`` in the ``user`` folders, then in every folder from the root of
    the git repository down to the session's directory (only there, outside of a repository).
    ``@path`` in a file imports another, up to ``DEPTH`` deep; a project's file can import only
    from the project. Files are cut at ``limit`` characters, and a notice says so.

    What lies in a folder below is read when a tool first reads or changes a file there, and stands
    behind that tool's result; nothing outside of the session's directories is read so. Fires
    ``on_instructions_loaded`` (``InstructionsLoaded``) for every file.
    """

    name = NAME
    order = 40
    is_its_options = True

    names: Sequence[str] = ("AGENTS.md", "CLAUDE.md")
    """What such files are called."""
    _: KW_ONLY
    user: Sequence[str | Path] = ("~/.crow", "~/.claude")
    """The user's folders."""
    limit: Annotated[int, Arg(minimum=0)] = 40_000
    """Characters of one file."""

    def init_agent(self, agent: Agent) -> None:
        """Add the section and the event."""

        async def section(session: Session) -> str:
            return await self._section(agent, session)

        if POINT.name not in agent.hooks.names:
            agent.hooks.define(POINT)
        agent.add_section(PromptSection(self.name, section, ORDER))

    async def _section(self, agent: Agent, session: Session) -> str:
        reading = READING.set(session, Reading(self.limit))
        found = list(self._files(reading, session.cwd))
        await self._tell(Context(agent, session), reading, found)
        return "\n\n".join([INTRODUCTION, *map(_shown, found)]) if found else ""

    async def _tell(
        self, ctx: Context, reading: Reading, found: Sequence[Instructions], trigger: str = ""
    ) -> None:
        """Say what was read, and what could not be."""
        point = ctx.agent.hooks[POINT.name]
        for each in found if point else ():
            await point.fire(InstructionsContext(ctx.agent, ctx.session, each, trigger or None))
        complaints, reading.complaints = reading.complaints, []
        for complaint in complaints:
            await ctx.ui.notify(complaint, severity="warning")

    async def after_tool(self, ctx: ToolContext) -> None:
        """Read what lies on the way to the files that a tool has touched."""
        if ctx.outcome != "ok" or ctx.kind not in TOUCHING:
            return
        reading = READING.setdefault(ctx, Reading(self.limit))
        for location in ctx.locations:
            if reading.is_first_visit(location.path, ctx.session):
                await self._visit(ctx, reading, location.path)

    async def on_cwd_changed(self, ctx: CwdContext) -> None:
        """Read what holds in the directory that the session works in now."""
        reading = READING.get(ctx)
        found = list(self._files(reading, ctx.new_cwd)) if reading is not None else []
        if reading is not None:
            await self._tell(ctx, reading, found)
        if found:
            await ctx.inject_context("\n\n".join([GONE, *map(_shown, found)]))

    async def _visit(self, ctx: ToolContext, reading: Reading, path: str) -> None:
        """Read what lies on the way to a file, as far as nobody has looked there before."""
        known = _known(ctx)
        found: list[Instructions] = []
        for folder, root in nested_folders(Path(path), ctx.session):
            if str(folder) not in known:
                known.append(str(folder))
                files = [folder / name for name in self.names]
                found += [each for file in files for each in reading.read(file, root)]
        await self._tell(ctx, reading, found, path)
        if found:
            await ctx.inject_context("\n\n".join([NESTED, *map(_shown, found)]))

    def _files(self, reading: Reading, cwd: str) -> Iterator[Instructions]:
        for folder in self.user:
            for name in self.names:
                yield from reading.read(Path(os.path.expanduser(folder)) / name, None)
        folders = project_folders(Path(cwd))
        for folder in folders:
            for name in self.names:
                yield from reading.read(folder / name, folders[0].resolve())


def _known(ctx: Context) -> list[str]:
    """The folders that need no second look, as long as what was read there is in the history."""
    if ctx.state.get("segment") != ctx.session.segment:
        ctx.state.update(segment=ctx.session.segment, folders=[])
    return ctx.state["folders"]


@mutable
class Reading:
    """One pass over the files: each is read once, and all together are bounded."""

    limit: int
    room: int = TOTAL_LIMIT
    seen: set[Path] = field(default_factory=set[Path])
    complaints: list[str] = field(default_factory=list[str])
    visited: set[tuple[int, tuple[str, ...], str]] = field(
        default_factory=set[tuple[int, tuple[str, ...], str]]
    )

    def is_first_visit(self, path: str, session: Session) -> bool:
        """True once for each folder in a segment, and again where the session's roots change."""
        visit = (session.segment, session.roots, os.path.dirname(path))  # noqa: PTH120 - cheap
        is_first = visit not in self.visited
        self.visited.add(visit)
        return is_first

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


READING: Key[Reading] = Key(NAME)


def project_folders(cwd: Path) -> list[Path]:
    """The folders from the root of the git repository down to a directory."""
    chain = [cwd, *cwd.parents]
    depth = next((i for i, folder in enumerate(chain) if (folder / ".git").exists()), 0)
    return chain[: depth + 1][::-1]


def nested_folders(file: Path, session: Session) -> Iterator[tuple[Path, Path]]:
    """The folders from below the session's directory down to a file, and what they must be in.

    Of an additional directory the folder itself counts, too.
    """
    for root in map(Path, session.roots):
        if file.is_relative_to(root):
            is_main = str(root) == session.cwd
            chain = [folder for folder in file.parents if folder.is_relative_to(root)]
            border = (project_folders(root)[0] if is_main else root).resolve()
            yield from ((folder, border) for folder in chain[: len(chain) - is_main][::-1])
            return


def imports(text: str, folder: Path) -> Iterator[Path]:
    """The files that a text names as ``@path``, outside of code and comments."""
    for match in re.finditer(_IMPORT, re.sub(_CODE, "", text)):
        written = match[1].replace("\\ ", " ")
        for name in (written, written.rstrip(".,;:!?)\"'")):
            path = folder / Path(os.path.expanduser(name))
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
