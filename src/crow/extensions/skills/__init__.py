"""Skills: folders with a SKILL.md, listed in the system prompt and read when they are used."""

from __future__ import annotations

import os
import re
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from crow import Allow, Answer, Ask, Command, ConfigContext, Context, CrowError, PromptSection, hook
from crow.dataclasses import frozen
from crow.events import CommandsChanged
from crow.extensions.skills.index import (
    Files,
    SkillFolder,
    SkillIndex,
    files_in,
    folders_of_extensions,
    of_plugins,
    places,
)
from crow.keys import Key
from crow.messages import text_of
from crow.project import define_front_matter, is_trusted, use_front_matter

if TYPE_CHECKING:
    from crow import (
        Agent,
        CommandContext,
        CompactContext,
        RunContext,
        Session,
        SessionContext,
        ToolContext,
    )
    from crow.extensions.skills.skill import Skill
    from crow.project import Brought, Plugin, ProjectSettings

NAME = "skills"
TOOL = "Skill"
FOLDERS = (Path(".crow", NAME), Path(".agents", NAME), Path(".claude", NAME))
INDEX: Key[SkillIndex] = Key(NAME)
USED: Key[dict[str, int]] = Key("skills_used")
ADDED: Key[list[Path]] = Key("skills_added")
ORDER = 600
LONGEST_LIST = 40_000
INTRODUCTION = """\
# Skills

Skills are instructions for particular tasks. Where a task is one that a skill below is for, load \
the skill with the tool Skill before you begin.
"""
ANNOUNCED = "There are new skills. Where a task is one that a skill is for, read its file first:"
IN_USE = "The skill {} was in use before the summary. Its text:"
FORGOTTEN = (
    "The texts of these skills were loaded before the summary and are not here any more. Load one "
    "again where it is still needed:"
)
LONGEST_TEXT, LONGEST_TEXTS = 20_000, 40_000
"""Characters of one skill that stay where a summary stands in for the history, and of all."""
ROOM = 0.4
"""Characters of all of them for each token of the model's window, where that is less."""
_SCRIPTS = r"\.(?:crow|agents|claude)/+skills\b"


@frozen
class SkillsOptions:
    """The settings of skills."""

    folders: Sequence[str | Path] = FOLDERS
    """Folders of skills, in the project and in the user's home."""
    paths: Sequence[str | Path] = ()
    """Further folders."""
    keywords: bool = False
    """Put a skill's text behind a prompt that names its keywords."""


class SkillsHook:
    """Finds skills and gives the model their names, and their texts when they are used.

    A skill is a folder with a ``SKILL.md`` in one of ``folders``: below the session's directory
    and those above it up to the root of the repository, below the user's home, in the folder
    ``skills`` of a package whose extension is in use, or in what `add_folder` was given. Of one
    name the nearest one counts. Those of ``plugins`` are called ``plugin:folder``, and by their
    name alone where only one can be meant. The system prompt lists name, description and path; the
    tool ``Skill``, or the user's ``/name arguments``, loads the text; its files are read with the
    other tools. What is found later is announced at the tail. With ``keywords`` the text of a skill
    whose ``metadata.keywords`` stand in a prompt is put behind it. Whenever a text is loaded,
    ``on_skill`` fires.

    A skill is text and permits nothing: ``allowed-tools`` is no permission, nothing in it is run
    by loading it. Those of a project that the user has not trusted are listed all the same, as
    its other texts are; a shell command that names a file of theirs is asked about, whatever the
    rules allow. Files of the user's and of installed skills may be read without a question.
    """

    name = NAME
    order = 110
    is_its_options = True
    options = SkillsOptions

    def __init__(
        self,
        folders: Sequence[str | Path] = FOLDERS,
        *,
        paths: Iterable[str | Path] = (),
        plugins: Iterable[Plugin] = (),
        keywords: bool = False,
        brought: Iterable[Brought] = (),
        others: Collection[str] = (),
    ) -> None:
        self._brought = [each for each in brought if each.kind == NAME and not each.is_project]
        self._others = others
        self.folders = tuple(map(Path, folders))
        self._paths = [Path(os.path.expanduser(path)).absolute() for path in paths]
        self._plugins = list(plugins)
        self.keywords = keywords

    @classmethod
    def options_from(cls, settings: ProjectSettings, own: Mapping[str, Any]) -> dict[str, Any]:
        """The options, with the plugins in use."""
        theirs = {"brought": settings.brought, "others": settings.others}
        return {**own, "plugins": settings.plugins, **theirs}

    def add_folder(self, path: str | Path, session: Session | None = None) -> None:
        """Look for skills in one more folder, from a session's next prompt on.

        Without a ``session`` it is for all of them.
        """
        added = self._added if session is None else ADDED.setdefault(session, [])
        added.append(Path(os.path.expanduser(path)).absolute())

    @cached_property
    def _added(self) -> list[Path]:
        """The folders that are no options, and stay when these change."""
        return []

    def brought_by(self, plugin: Plugin) -> dict[str, list[str]]:
        """The skills of a plugin, by their names."""
        index = SkillIndex()
        index.refresh(files_in(of_plugins([plugin])))
        return {NAME: list(index.skills)}

    def offers_in(self, session: Session) -> dict[str, list[str]]:
        """The skills of a session, by their names."""
        return {NAME: sorted(self.index(Context(cast("Agent", session.agent), session)).skills)}

    def init_agent(self, agent: Agent) -> None:
        """Add the list to the system prompt, the command ``/skills`` and the event."""
        define_front_matter(agent)

        def section(session: Session) -> str:
            return self._list(self.index(Context(agent, session)))

        agent.add_section(PromptSection(NAME, section, ORDER))
        agent.add_command(Command(NAME, "List the skills", self._show))

    def index(self, ctx: Context) -> SkillIndex:
        """The skills of a session."""
        index = INDEX.get(ctx)
        if index is None:
            index = INDEX.set(ctx, SkillIndex())
            index.refresh(files_in(self._places(ctx)))
        return index

    def _places(self, ctx: Context) -> Iterable[SkillFolder]:
        added = (*self._paths, *self._added, *(ADDED.get(ctx) or ()))
        installed = dict.fromkeys((*folders_of_extensions(ctx.agent), *added))
        found = places(Path(ctx.cwd), Path.home(), self.folders, installed, self._others)
        found += [SkillFolder(each.path, "user", another=each.agent) for each in self._brought]
        return [*found, *of_plugins(self._plugins)]

    # the moments

    async def on_session_start(self, ctx: SessionContext) -> None:
        """Look for skills, and tell of faults."""
        index = self.index(ctx)
        if index.skills and TOOL not in ctx.agent.tools_of(ctx.session):
            from crow.extensions.skills.tool import SkillTool

            ctx.session.add_tool(SkillTool(index, self.load))
        await self._offer(ctx, index)

    async def before_run(self, ctx: RunContext) -> str | None:
        """Look again; put the texts of skills behind a prompt that names their keywords."""
        index, files = self.index(ctx), files_in(self._places(ctx))
        await self._ask_hooks(ctx, index, files)
        if index.refresh(files) and await self._offer(ctx, index):
            await ctx.emit(CommandsChanged())
        index.matched = list(self._matching(ctx, index)) if self.keywords else []
        texts = [_text_of(ctx, skill) for skill in index.matched]
        return "\n\n".join(filter(None, texts)) or None

    async def _ask_hooks(self, ctx: RunContext, index: SkillIndex, files: Files) -> None:
        """Ask whether skills that are new or changed may be used as they are."""
        gate = ctx.agent.hooks.on_config_change
        for stamp in index.changed(files) if gate.chain(ctx.session) else ():
            path = stamp[0]
            change = ConfigContext(ctx.agent, ctx.session, {NAME: path}, source="skills", path=path)
            if (await change.ui.agreed(await gate.fire(change))).refused:
                index.refused.add(stamp)

    def _matching(self, ctx: RunContext, index: SkillIndex) -> Iterable[Skill]:
        prompt = text_of(ctx.prompt)
        used = _used(ctx)
        for skill in index.for_model():
            is_here = used.get(skill.name) == ctx.session.segment
            if not is_here and not prompt.startswith(f"/{skill.name}") and skill.matches(prompt):
                yield skill

    def around_run(
        self, ctx: RunContext, call_next: Callable[[], Awaitable[object]]
    ) -> Awaitable[object]:
        """Announce what was found since the model was last told."""
        index = self.index(ctx)
        if index.listed is None and index.begun:
            index.listed = set()
        index.begun = True
        known = index.listed
        fresh = [] if known is None else [s for s in index.for_model() if s.name not in known]
        if not (index.matched or fresh):
            return call_next()
        return self._announced(ctx, index, fresh, call_next)

    async def _announced(
        self,
        ctx: RunContext,
        index: SkillIndex,
        fresh: list[Skill],
        call_next: Callable[[], Awaitable[object]],
    ) -> object:
        for skill in index.matched:
            await _use(ctx, skill)
        if fresh and index.listed is not None:
            index.listed.update(skill.name for skill in fresh)
            await ctx.inject_context("\n".join([ANNOUNCED, *(skill.line for skill in fresh)]))
        return await call_next()

    async def after_compact(self, ctx: CompactContext) -> None:
        """Load the skills in use again, where a summary stands in for the history.

        The latest come first; of what there is no room for the names are told.
        """
        known, used = self.index(ctx).skills, _used(ctx)
        if not ctx.summary:
            return
        window = ctx.agent.context_window(ctx.session)
        room = min(LONGEST_TEXTS, int(ROOM * window)) if window else LONGEST_TEXTS
        loaded: list[str] = []
        forgotten: list[Skill] = []
        for skill in [known[name] for name in reversed([*used]) if name in known]:
            text = _text_of(ctx, skill)
            if any(text in text_of(message.get("content")) for message in ctx.messages):
                continue
            room -= len(text)
            if 0 < len(text) <= LONGEST_TEXT and room >= 0:
                loaded.insert(0, f"{IN_USE.format(skill.name)}\n\n{text}")
                used[skill.name] = ctx.session.segment
            else:
                forgotten.append(skill)
        for told in loaded:
            await ctx.inject_context(told)
        if forgotten:
            await ctx.inject_context("\n".join([FORGOTTEN, *(skill.line for skill in forgotten)]))

    @hook("before_tool", tools={TOOL, "Read", "Bash"}, judge=True)
    def judge(self, ctx: ToolContext) -> Allow | Ask | None:
        """Loading a text needs no question; running a script of an untrusted project does."""
        match ctx.name.casefold():
            case "skill":
                return Allow("it only loads a text")
            case "read" if self._is_own_file(ctx):
                return Allow("it is a file of a skill of the user's")
            case "bash" if self._runs_untrusted(ctx):
                return Ask("it names a skill of a project that is not trusted (crow trust)")
            case _:
                return None

    def _is_own_file(self, ctx: ToolContext) -> bool:
        path = ctx.args.get("file_path")
        if not isinstance(path, str) or not self.index(ctx).skills:
            return False
        real = Path(os.path.realpath(path))
        own = [skill for skill in self.index(ctx).skills.values() if skill.scope != "project"]
        return any(real.is_relative_to(os.path.realpath(skill.folder)) for skill in own)

    def _runs_untrusted(self, ctx: ToolContext) -> bool:
        command = str(ctx.args.get("command", ""))
        found = [skill for skill in self.index(ctx).skills.values() if skill.project is not None]
        if not re.search(_SCRIPTS, command) and all(str(s.folder) not in command for s in found):
            return False
        projects = {skill.project for skill in found if skill.project is not None}
        return not all(map(is_trusted, projects))

    # what is told

    def _list(self, index: SkillIndex) -> str:
        """The part of the system prompt."""
        skills = index.for_model()
        index.listed = {skill.name for skill in skills}
        lines = [skill.line for skill in skills]
        room = LONGEST_LIST
        for number, line in enumerate(lines):
            room -= len(line)
            if room < 0:
                lines[number] = f"- {skills[number].name}"
        return "\n".join([INTRODUCTION, *lines]) if lines else ""

    async def _offer(self, ctx: Context, index: SkillIndex) -> bool:
        """Make the skills commands and tell of faults; True where the commands have changed."""
        before, index.commands = index.commands, []
        for take_back in before:
            take_back()
        taken = ctx.agent.commands_of(ctx.session)
        wanted = {
            name: skill
            for name, skill in index.skills.items()
            if skill.for_user and skill.is_typed and name not in taken
        }
        for name, skill in wanted.items():
            told = f"{skill.description} ({skill.plugin.name if skill.plugin else skill.origin})"
            command = Command(name, told, partial(self._run, name), skill.hint)
            index.commands.append(ctx.session.add_command(command))
        for fault in index.news():
            await ctx.ui.notify(fault, severity="warning")
        return bool(before or wanted)

    async def _run(self, name: str, ctx: CommandContext) -> str | Answer:
        """Make a prompt of a skill."""
        skill = self.index(ctx).skills.get(name)
        if skill is None:
            return Answer(f"There is no skill {name} any more.")
        try:
            text = await self.load(ctx, skill, ctx.args)
        except (CrowError, OSError) as error:
            return Answer(f"The skill {name} cannot be read: {error}")
        return f"Do what the skill {name} says.\n\n{text}"

    async def skill_text(self, ctx: Context, name: str) -> str | None:
        """The text of a skill for somebody who begins with it; None where there is none."""
        meant = self.index(ctx).meant(name)
        return _text_of(ctx, meant[0]) if len(meant) == 1 else None

    async def load(self, ctx: Context, skill: Skill, args: str) -> str:
        """The text of a skill, which is remembered as used; fires ``on_skill``."""
        text = _text(ctx, skill, args)
        await _use(ctx, skill)
        return text

    async def _show(self, ctx: CommandContext) -> Answer:
        index = self.index(ctx)
        lines = [f"{skill.line} [{skill.origin}]" for skill in index.skills.values()]
        lines += [f"- fault: {fault}" for fault in index.faults]
        return Answer("\n".join(lines) or "There are no skills.")


def _used(ctx: Context) -> dict[str, int]:
    """The skills whose text was loaded, with the segment of the history that it is in.

    A sub-agent shares its caller's state, but not the history.
    """
    if ctx.session.parent is not None:
        return USED.setdefault(ctx, {})
    return ctx.session.state.setdefault(NAME, {}).setdefault("used", {})


async def _use(ctx: Context, skill: Skill) -> None:
    """Remember a skill as used, and let hooks see what its front matter says."""
    from crow.extensions.skills.skill import front_matter

    _used(ctx)[skill.name] = ctx.session.segment
    try:
        front = front_matter(skill)
    except (CrowError, OSError):
        return
    trusted = skill.project is None or is_trusted(skill.project, skill.path)
    await use_front_matter(ctx, str(skill.path), front, skill=skill.name, trusted=trusted)


def _text(ctx: Context, skill: Skill, args: str) -> str:
    from crow.extensions.skills.skill import instructions
    from crow.project import placeholder_values

    return instructions(skill, args, placeholder_values(ctx))


def _text_of(ctx: Context, skill: Skill) -> str:
    try:
        return _text(ctx, skill, "")
    except (CrowError, OSError):
        return ""
