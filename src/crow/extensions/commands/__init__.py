"""Slash commands: the ones about the session itself, and those that people keep in files."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from crow import Allow, Answer, Command, ConfigContext, CrowError, hook
from crow.dataclasses import frozen
from crow.errors import ModelError
from crow.events import CommandsChanged
from crow.extensions.commands.builtin import DIRECTORY_ADDED, REQUEST, builtin_commands
from crow.hooks import FIRST, LAST
from crow.keys import Key
from crow.messages import text_of
from crow.ports import model_named
from crow.project import foreign_folders, is_trusted, project_of

if TYPE_CHECKING:
    from crow import (
        Agent,
        CommandContext,
        Context,
        RunContext,
        SessionContext,
        ToolContext,
        TurnContext,
    )
    from crow.extensions.commands.recipe import Recipe, Recipes, Scope
    from crow.messages import Content
    from crow.project import Brought, Plugin, ProjectSettings

FOLDERS = (Path(".crow", "commands"), Path(".claude", "commands"))
MODEL: Key[tuple[RunContext | None, str]] = Key("commands model")
INDEX: Key[CommandIndex] = Key("commands")
CommandFolder: TypeAlias = "tuple[Path, Scope, Plugin | None, str]"
"""A folder, whose it is, and the plugin or the other agent that it belongs to."""
Stamp = tuple[str, int, int]
SUFFIX = ".md"


class CommandIndex:
    """The custom commands of one session: the files as they were read, and complaints.

    ``left_out`` is a project whose commands wait for its user's trust, ``commands`` take back
    those that are offered.
    """

    def __init__(self) -> None:
        self.stamps: list[Stamp] | None = None
        self.commands: list[Callable[[], None]] = []
        self.told: set[str] = set()
        self.left_out: Path | None = None


@frozen
class CommandsOptions:
    """The settings of custom commands."""

    folders: Sequence[str | Path] = FOLDERS
    """Folders of custom ones, in the project and in the user's home."""
    paths: Sequence[str | Path] = ()
    """Further folders."""


class CommandsHook:
    """Adds ``/help``, ``/clear``, ``/model``, ``/mode``, ``/context``, ``/hooks``, ``/extensions``.

    ``/think`` shows and changes how hard the model thinks, as far as it can be chosen.
    ``/cd`` fires ``on_cwd_changed`` (``CwdChanged``), ``/add-dir`` ``on_directory_added``
    (``DirectoryAdded``).

    And custom ones: every Markdown file in ``folders`` (below the project, where the user trusts
    that, and below the user's home) and in ``paths`` is a command named like the file, with its
    folder before it: ``git/fix.md`` is ``/git:fix``. Front matter: ``description``,
    ``argument-hint``, ``arguments``, ``model`` (that answers this prompt; not from ``.claude``). In
    the text ``$ARGUMENTS``, ``$1`` to ``$9`` and ``$name`` stand for what was typed, !`command` for
    what a command prints, ``@path`` adds a file, ``${CLAUDE_PROJECT_DIR}`` and its like are put in.
    These run through the tools and their permissions like calls of the model's; ``allowed-tools``
    permits nothing. Files are looked at before every prompt; changes are told to the client.
    Those of ``plugins`` are ``/plugin:name``, and ``/name`` where only one can be meant; those
    ``brought`` along from other agents are called as there, where nothing else is. Of a name
    that no command has the user is told, and the model is not asked.
    """

    name = "commands"
    order = 100
    is_its_options = True
    options = CommandsOptions

    def __init__(
        self,
        folders: Sequence[str | Path] = FOLDERS,
        *,
        paths: Iterable[str | Path] = (),
        plugins: Iterable[Plugin] = (),
        brought: Iterable[Brought] = (),
        others: Collection[str] = (),
    ) -> None:
        self._brought = [each for each in brought if self._is_ours(each)]
        self._others = others
        self.folders = tuple(map(Path, folders))
        self._paths = [Path(os.path.expanduser(path)).absolute() for path in paths]
        self._plugins = list(plugins)

    @classmethod
    def options_from(cls, settings: ProjectSettings, own: Mapping[str, Any]) -> dict[str, Any]:
        """The options, with the plugins in use."""
        theirs = {"brought": settings.brought, "others": settings.others}
        return {**own, "plugins": settings.plugins, **theirs}

    def _is_ours(self, brought: Brought) -> bool:
        """Whether it is a command, or the user's folder of some; projects' are looked for anew."""
        return brought.kind == "command" or (brought.kind == self.name and not brought.is_project)

    def add_folder(self, path: str | Path) -> None:
        """Look for commands in one more folder that the user trusts, after all others."""
        self._added.append(Path(os.path.expanduser(path)).absolute())

    @cached_property
    def _added(self) -> list[Path]:
        """The folders that are no options, and stay when these change."""
        return []

    def brought_by(self, plugin: Plugin) -> dict[str, list[str]]:
        """The commands of a plugin, by their names."""
        from crow.extensions.commands.recipe import Recipes

        recipes = Recipes()
        for path in plugin.parts[self.name]:
            recipes.read(files(path), path, "plugin", plugin)
        return {self.name: list(recipes.named)}

    def init_agent(self, agent: Agent) -> None:
        """Add the built-in commands and the event."""
        if DIRECTORY_ADDED.name not in agent.hooks.names:
            agent.hooks.define(DIRECTORY_ADDED)
        for command in builtin_commands():
            agent.add_command(command)

    async def on_session_start(self, ctx: SessionContext) -> None:
        """Read the files; the client is told of all commands when the session is open."""
        await self._refresh(ctx)

    @hook("before_run", order=FIRST)
    async def before_run(self, ctx: RunContext) -> None:
        """Read the files again where they changed."""
        if await self._refresh(ctx):
            await ctx.emit(CommandsChanged())

    @hook("before_run", order=LAST)
    def understand(self, ctx: RunContext) -> Answer | None:
        """Put the whole name for a short one; answer where there is no such command."""
        is_task = ctx.session.parent is not None
        if is_task or not names_command(ctx.prompt):
            return None
        from crow.extensions.commands.naming import typed

        commands = ctx.agent.commands_of(ctx.session)
        text = typed(ctx.prompt, commands)
        if text is not None:
            ctx.prompt = text
            return None
        told = self.no_such_command(ctx.prompt, commands)
        return Answer(told) if told else None

    def no_such_command(self, prompt: Content, commands: Iterable[str]) -> str:
        """What a person is told where a prompt names no command of these; empty where it does."""
        if not names_command(prompt):
            return ""
        from crow.extensions.commands.naming import missing

        return missing(prompt, commands)

    @hook("before_tool", tools={"Read"}, judge=True)
    def judge(self, ctx: ToolContext) -> Allow | None:
        """The files of a plugin that the user installed may be read without a question."""
        path = ctx.args.get("file_path")
        if not isinstance(path, str) or not self._plugins or "\0" in path:
            return None
        real = Path(os.path.realpath(path))
        roots = (os.path.realpath(plugin.root) for plugin in self._plugins)
        theirs = any(map(real.is_relative_to, roots))
        return Allow("it is a file of a plugin of the user's") if theirs else None

    @hook("before_llm_request", order=LAST)
    def before_llm_request(self, ctx: TurnContext) -> None:
        """Ask the model that a command names; remember what a request begins with."""
        run, model = MODEL.get(ctx) or (None, None)
        if run is ctx.run:
            ctx.model = model
        head = ctx.messages[:1]
        is_system = bool(head) and head[0]["role"] in ("system", "developer")
        REQUEST.set(ctx, (head if is_system else [], ctx.tools))

    async def _refresh(self, ctx: Context) -> bool:
        """Offer what the files say now; True where that is something else than before."""
        index = INDEX.setdefault(ctx, CommandIndex())
        places = self._places(ctx.cwd)
        now = stamps([folder for folder, *_ in places])
        is_late = index.left_out is not None and is_trusted(index.left_out)
        if now == index.stamps and not is_late:
            return False
        index.stamps = now
        if not (now or index.commands or self._brought):
            index.left_out = None
            return False
        return await self._offer(ctx, index, self._read(ctx, places, index))

    async def _offer(self, ctx: Context, index: CommandIndex, recipes: Recipes) -> bool:
        """Offer what was read; True where that is something, or something was offered before."""
        before, index.commands = index.commands, []
        for take_back in before:
            take_back()
        taken = ctx.agent.commands_of(ctx.session)
        for name, recipe in recipes.named.items():
            if name in taken and recipe.another:
                continue
            if name in taken:
                recipes.problems.append(f"{recipe.path}: there is a command /{name} already")
            else:
                index.commands.append(ctx.session.add_command(self._command(recipe)))
        for problem in recipes.problems:
            if problem not in index.told:
                index.told.add(problem)
                await ctx.ui.notify(problem, severity="warning")
        return bool(before or index.commands)

    def _places(self, cwd: str) -> list[CommandFolder]:
        """The folders, the project's first."""
        home, project = Path.home(), project_of(cwd)
        found = self._in_project(project) if project != home else []
        own = [*map(home.joinpath, self.folders), *dict.fromkeys((*self._paths, *self._added))]
        for folder in own:
            found.append((folder, "user", None, ""))
        for each in self._brought:
            if each.kind == self.name:
                found.append((each.path, "user", None, each.agent))
        for plugin in self._plugins:
            for path in plugin.parts.get(self.name, ()):
                found.append((path, "plugin", plugin, ""))
        return found

    def _in_project(self, project: Path) -> list[CommandFolder]:
        folders: list[CommandFolder] = [
            (project / each, "project", None, "") for each in self.folders
        ]
        for agent, folder in foreign_folders(project, "commands", self._others):
            folders.append((folder, "project", None, agent))
        return folders

    def _read(self, ctx: Context, places: list[CommandFolder], index: CommandIndex) -> Recipes:
        from crow.extensions.commands.recipe import Recipes

        recipes = Recipes()
        own = Recipes()
        for folder, scope, plugin, another in places:
            found = own if scope == "project" else recipes
            found.read(files(folder), folder, scope, plugin, another)
        project = project_of(ctx.cwd)
        self._take_brought(recipes, project)
        # Asked when all is read: what was read is what is trusted.
        trusted = not (own.named or own.problems) or is_trusted(project)
        index.left_out = None if trusted else project
        if trusted:
            return Recipes({**recipes.named, **own.named}, [*own.problems, *recipes.problems])
        untrusted = f"the commands of {project} are left out: it is not trusted (crow trust)"
        return Recipes(recipes.named, [untrusted, *recipes.problems])

    def _take_brought(self, recipes: Recipes, project: Path) -> None:
        """Add what is brought along from other agents; a name that is taken is nobody's fault."""
        from crow.extensions.commands.recipe import recipe_of

        for each in self._brought:
            is_elsewhere = each.is_project and not each.path.is_relative_to(project)
            if each.kind == self.name or is_elsewhere:
                continue
            with suppress(ValueError):
                recipe = recipe_of(each)
                recipes.named.setdefault(recipe.name, recipe)

    def _command(self, recipe: Recipe) -> Command:
        described = f"{recipe.description} ({recipe.origin})"
        return Command(recipe.name, described, partial(self._run, recipe), recipe.hint)

    async def _run(self, recipe: Recipe, ctx: CommandContext) -> str | Answer:
        """Make a prompt of a custom command."""
        from crow.extensions.commands.expansion import expand

        if recipe.model is not None and (refused := await _refused(ctx, recipe.model)):
            return Answer(f"/{recipe.name} was not run: {refused}")
        from crow.project import placeholder_values

        try:
            roots = (str(recipe.plugin.root),) if recipe.plugin else ()
            values = placeholder_values(ctx)
            prompt = await expand(ctx, recipe.pieces(ctx.args, values), roots)
        except CrowError as error:
            return Answer(f"/{recipe.name} was not run: {error}")
        if recipe.model is not None:
            MODEL.set(ctx, (ctx.run, recipe.model))
        return prompt


async def _refused(ctx: CommandContext, model: str) -> str | None:
    """Why a model cannot answer this prompt; None where it can."""
    try:
        model_named(ctx.agent.llm, model)
    except ModelError as error:
        return str(error)
    change = ConfigContext(ctx.agent, ctx.session, {"model": model})
    ruling = await ctx.agent.hooks.on_config_change.fire(change)
    return ruling.reason or "a hook objects to the model" if ruling.refused else None


def names_command(prompt: Content) -> bool:
    """True where a prompt begins as a command does."""
    return text_of(prompt).startswith("/")


def files(folder: Path) -> Iterator[Path]:
    """The Markdown files in a folder and the ones below it; links to folders are not followed.

    A file stands for itself.
    """
    if folder.suffix == SUFFIX and folder.is_file():
        yield folder
    for place, folders, names in os.walk(folder):
        folders.sort()
        yield from (Path(place, name) for name in sorted(names) if name.endswith(SUFFIX))


def stamps(folders: Iterable[Path]) -> list[Stamp]:
    """What tells whether a file came, went or changed."""
    found: list[Stamp] = []
    for folder in folders:
        for path in files(folder):
            try:
                status = path.stat()
            except OSError:
                continue
            found.append((str(path), status.st_mtime_ns, status.st_size))
    return found
