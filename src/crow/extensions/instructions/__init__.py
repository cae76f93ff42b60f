"""Instruction files (AGENTS.md, CLAUDE.md, rules): in the system prompt, or where a tool comes by.

They are text for the model and nothing more: a file of the project can tell the model what it
likes, but reaches no file outside of the project, and permits nothing.
"""

from __future__ import annotations

import os
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from crow import Arg, Context, PromptSection, Session, ToolContext
from crow.dataclasses import entity, frozen, mutable
from crow.hooks import Point
from crow.keys import INSTRUCTION_FILES, Key
from crow.project import project_of, repository_folders

if TYPE_CHECKING:
    from crow import Agent, CwdContext
    from crow.extensions.instructions.rules import RuleFile
    from crow.project import ProjectSettings

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
RULED = "These instructions hold for a file that you have just been at:"
OFFERED = """\
These files hold instructions, too. Read one where a task is one that it is for:"""
GONE = "These instructions hold in the directory where the user has gone:"
POINT = Point(
    "on_instructions_loaded",
    "watch",
    ("file_path", "memory_type", "load_reason", "parent_file_path", "trigger_file_path"),
    aliases=("InstructionsLoaded",),
)
TOUCHING = frozenset({"read", "edit", "move", "delete"})
LOCAL = "CLAUDE.local.md"
"""What somebody keeps for themselves, beside what the project has for everybody."""
OVERRIDE, OVERRIDDEN = "AGENTS.override.md", "AGENTS.md"
"""A file of Codex' that stands in for another one in its folder."""
_CODE = r"(?sm)^(```|~~~).*?^\1|`[^`\n]*`|<!--.*?-->"
_IMPORT = r"(?<!\S)@((?:\\ |[^\s\\])+)"


class InstructionsContext(Context):
    """An instruction file was read.

    ``memory_type`` is ``User``, ``Project`` or ``Local``; ``load_reason`` is ``session_start``,
    ``include`` (another file names it: ``parent_file_path``), ``compact`` or ``nested_traversal``
    (a tool touched a file below it, or one that a rule is for: ``trigger_file_path``).
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
    memory_type: Literal["User", "Project", "Local"]
    parent: Path | None = None


@entity
class InstructionsHook:
    """Adds the user's instruction files and those of the project to the system prompt.

    Read once a session: ``names`` in the ``user`` folders, then in every folder from the root of
    the git repository down to the session's directory (only there, outside of a repository).
    ``@path`` in a file imports another, up to ``DEPTH`` deep; a project's file can import only
    from the project. Files are cut at ``limit`` characters, and a notice says so.

    Files in folders of ``rules`` count, too, the user's in a folder ``rules`` of theirs. One whose
    front matter names ``paths`` (Claude Code) or ``globs`` (Cursor) is read when a tool first reads
    or changes a file that fits; Cursor's with neither these nor ``alwaysApply`` is offered by its
    description.

    What lies in a folder below is read when a tool first reads or changes a file there, and stands
    behind that tool's result; nothing outside of the session's directories is read so. Fires
    ``on_instructions_loaded`` (``InstructionsLoaded``) for every file.
    """

    name = NAME
    order = 40
    is_its_options = True

    names: Sequence[str] = (
        *("AGENTS.md", "CLAUDE.md", ".claude/CLAUDE.md", LOCAL),
        ".cursorrules",
    )
    """What such files are called."""
    rules: Sequence[str] = (".claude/rules", ".cursor/rules")
    """Folders of a project whose files are such, some for certain files alone."""
    _: KW_ONLY
    user: Sequence[str | Path] = ("~/.crow", "~/.claude")
    """The user's folders."""
    files: Sequence[str | Path] = ()
    """Further files of the user's."""
    limit: Annotated[int, Arg(minimum=0)] = 40_000
    """Characters of one file."""
    exclude: Sequence[str] = ()
    """Files that are left out, absolute, `*` and `**` stand for anything."""
    elsewhere: Callable[[Path], Sequence[Path]] = lambda project: ()
    """Gives the files that a user and a project have for other agents."""

    @classmethod
    def options_from(cls, settings: ProjectSettings, own: Mapping[str, Any]) -> dict[str, Any]:
        """The options, with the files that people have for other agents."""
        return {**own, "elsewhere": settings.instructions}

    def init_agent(self, agent: Agent) -> None:
        """Add the section and the event."""

        async def section(session: Session) -> str:
            return await self._section(agent, session)

        if POINT.name not in agent.hooks.names:
            agent.hooks.define(POINT)
        agent.add_section(PromptSection(self.name, section, ORDER))

    def _loader(self) -> InstructionLoader:
        return InstructionLoader(self.limit, tuple(self.exclude))

    async def _section(self, agent: Agent, session: Session) -> str:
        reading = READING.set(session, self._loader())
        found = list(self._files(reading, session.cwd))
        INSTRUCTION_FILES.set(session, {str(each.path): len(each.text) for each in found})
        await self._tell(Context(agent, session), reading, found)
        rules = (rule for rule, *_ in self._rules(reading, session.cwd))
        offered = [f"- {rule.path}: {rule.description}" for rule in rules if rule.is_offered]
        more = ["\n".join([OFFERED, *offered])] if offered else []
        return "\n\n".join([INTRODUCTION, *map(_shown, found), *more]) if found or more else ""

    async def _tell(
        self,
        ctx: Context,
        reading: InstructionLoader,
        found: Sequence[Instructions],
        trigger: str = "",
    ) -> None:
        """Say what was read, and what could not be."""
        point = ctx.agent.hooks[POINT.name]
        for each in found if point else ():
            await point.fire(InstructionsContext(ctx.agent, ctx.session, each, trigger or None))
        complaints, reading.complaints = reading.complaints, []
        for complaint in complaints:
            await ctx.ui.notify(complaint, severity="warning")

    def after_tool(self, ctx: ToolContext) -> Awaitable[None] | None:
        """Read what lies on the way to the files that a tool has touched."""
        return self._read(ctx) if ctx.outcome == "ok" and ctx.kind in TOUCHING else None

    async def _read(self, ctx: ToolContext) -> None:
        reading = READING.get(ctx) or READING.set(ctx, self._loader())
        for location in ctx.locations:
            await self._fit(ctx, reading, location.path)
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

    async def _fit(self, ctx: ToolContext, reading: InstructionLoader, path: str) -> None:
        """Read the rules for a file that nobody has read before."""
        known, found = _known(ctx), list[Instructions]()
        for rule, top, root in self._rules(reading, ctx.session.cwd):
            if rule.patterns and str(rule.path) not in known and rule.fits(path, top):
                known.append(str(rule.path))
                found += reading.read(rule.path, root)
        if found:
            await self._tell(ctx, reading, found, path)
            await ctx.inject_context("\n\n".join([RULED, *map(_shown, found)]))

    def _rules(
        self, reading: InstructionLoader, cwd: str
    ) -> Iterator[tuple[RuleFile, Path, Path | None]]:
        """The rules that there are, the folder that their patterns begin in, and their border."""
        folders = repository_folders(Path(cwd))[::-1]
        for folder in self.user:
            place = Path(os.path.expanduser(folder), "rules")
            yield from ((rule, folders[0], None) for rule in reading.rules(place))
        for folder in folders:
            for name in self.rules:
                found = reading.rules(folder / name)
                yield from ((rule, folder, folders[0].resolve()) for rule in found)

    async def _visit(self, ctx: ToolContext, reading: InstructionLoader, path: str) -> None:
        """Read what lies on the way to a file, as far as nobody has looked there before."""
        known = _known(ctx)
        found: list[Instructions] = []
        for folder, root in nested_folders(Path(path), ctx.session):
            if str(folder) not in known:
                known.append(str(folder))
                files = [folder / name for name in self.names]
                every = (rule for name in self.rules for rule in reading.rules(folder / name))
                files += [rule.path for rule in every if rule.holds_for(path, folder)]
                found += [each for file in files for each in reading.read(file, root)]
        await self._tell(ctx, reading, found, path)
        if found:
            await ctx.inject_context("\n\n".join([NESTED, *map(_shown, found)]))

    def _files(self, reading: InstructionLoader, cwd: str) -> Iterator[Instructions]:
        for folder in self.user:
            for name in self.names:
                yield from reading.read(Path(os.path.expanduser(folder)) / name, None)
        folders = repository_folders(Path(cwd))[::-1]
        top = folders[0].resolve()
        project = project_of(cwd)
        own = [Path(os.path.expanduser(file)) for file in self.files]
        for file in (*own, *self.elsewhere(project)):
            border = project.resolve() if file.is_relative_to(project) else None
            yield from reading.read(file, border)
        for folder in folders:
            for name in self.names:
                yield from reading.read(folder / name, top)
        for rule, _, root in self._rules(reading, cwd):
            if rule.patterns is None:
                yield from reading.read(rule.path, root)


def _known(ctx: Context) -> list[str]:
    """The folders that need no second look, as long as what was read there is in the history."""
    if ctx.state.get("segment") != ctx.session.segment:
        ctx.state.update(segment=ctx.session.segment, folders=[])
    return ctx.state["folders"]


@mutable
class InstructionLoader:
    """One pass over the files: each is read once, and all together are bounded."""

    limit: int
    exclude: tuple[str, ...] = ()
    room: int = TOTAL_LIMIT
    seen: set[Path] = field(default_factory=set[Path])
    texts: set[str] = field(default_factory=set[str])
    complaints: list[str] = field(default_factory=list[str])
    ruled: dict[Path, list[RuleFile]] = field(default_factory=dict[Path, "list[RuleFile]"])
    visited: set[tuple[int, tuple[str, ...], str]] = field(
        default_factory=set[tuple[int, tuple[str, ...], str]]
    )

    def is_first_visit(self, path: str, session: Session) -> bool:
        """True once for each folder in a segment, and again where the session's roots change."""
        visit = (session.segment, session.roots, os.path.dirname(path))  # noqa: PTH120 - cheap
        is_first = visit not in self.visited
        self.visited.add(visit)
        return is_first

    def rules(self, folder: Path) -> list[RuleFile]:
        """The rules in a folder, as they were when it was first looked at."""
        if folder not in self.ruled:
            self.ruled[folder] = _rules_in(folder) if folder.is_dir() else []
        return self.ruled[folder]

    def read(
        self, path: Path, root: Path | None, parent: Path | None = None, depth: int = 0
    ) -> Iterator[Instructions]:
        """A file and what it imports; a ``root`` is the folder that nothing may be outside of."""
        if path.name == OVERRIDDEN and _real(path.with_name(OVERRIDE)) is not None:
            path = path.with_name(OVERRIDE)
        real = _real(path)
        if real is None or real in self.seen or self._is_excluded(path):
            return
        if root is not None and not real.is_relative_to(root):
            self.complaints.append(f"{path} is not read: it is outside of the project {root}")
            return
        self.seen.add(real)
        text = self._text(path, real)
        if text and text not in self.texts:  # some have a copy for each agent
            self.texts.add(text)
            yield Instructions(path, text, _kind(path, root), parent)
        if depth < DEPTH:
            for imported in imports(text, path.parent):
                yield from self.read(imported, root, path, depth + 1)

    def _is_excluded(self, path: Path) -> bool:
        """True for a file that its user wants nobody to read."""
        if not self.exclude:
            return False
        from pathspec import GitIgnoreSpec

        lines = [os.path.expanduser(each) for each in self.exclude]
        return GitIgnoreSpec.from_lines(lines).match_file(path.absolute().as_posix().lstrip("/"))

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
        return _without_head(path, text.replace("\0", "")).strip()


def _rules_in(folder: Path) -> list[RuleFile]:
    from crow.extensions.instructions.rules import rules_in

    return rules_in(folder)


READING: Key[InstructionLoader] = Key(NAME)


def _kind(path: Path, root: Path | None) -> Literal["User", "Project", "Local"]:
    return "User" if root is None else "Local" if path.name == LOCAL else "Project"


def _without_head(path: Path, text: str) -> str:
    """The text of a rule without its front matter; of other files it is a part of the text."""
    if "rules" not in path.parts or not text.startswith("---"):
        return text
    from crow.project import FrontMatter

    return FrontMatter.parse(text).body


def nested_folders(file: Path, session: Session) -> Iterator[tuple[Path, Path]]:
    """The folders from below the session's directory down to a file, and what they must be in.

    Of an additional directory the folder itself counts, too.
    """
    for root in map(Path, session.roots):
        if file.is_relative_to(root):
            is_main = str(root) == session.cwd
            chain = [folder for folder in file.parents if folder.is_relative_to(root)]
            border = (repository_folders(root)[-1] if is_main else root).resolve()
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
        return path.resolve() if path.is_file() else None  # few of the places have one
    except (OSError, ValueError, RuntimeError):
        return None


def _shown(found: Instructions) -> str:
    return f'<instructions file="{found.path}">\n{found.text}\n</instructions>'
