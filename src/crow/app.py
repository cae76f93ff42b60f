"""The composition root: settings, a model, tools and extensions become an agent.

The one place that knows the core and what hangs on it. Extensions are hung in a fixed sequence:
built-ins, entry points by name, the user's and the project's files by name, the settings' hooks,
``hooks=[...]``, and what ``--extension`` names. A broken one is named in ``agent.found`` and stops
nobody, except the permissions and what was asked for by name.
"""

from __future__ import annotations

import inspect
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crow.core.agent import Agent
from crow.core.catalog import Mode
from crow.core.errors import ExtensionError
from crow.core.installed import Found
from crow.core.ports import LLM
from crow.discovery import find, in_a_line, load_file, things
from crow.settings import Entry, Settings, Source, load
from crow.trust import is_trusted, trust

if TYPE_CHECKING:
    from crow.extensions.subagents import Definition

BUILTIN = {
    "permissions": "PermissionsHook",
    "persistence": "PersistenceHook",
    "system_prompt": "SystemPromptHook",
    "instructions": "InstructionsHook",
    "limits": "LimitsHook",
    "stuck": "StuckHook",
    "truncation": "TruncationHook",
    "compaction": "CompactionHook",
    "cost": "CostHook",
    "commands": "CommandsHook",
    "skills": "SkillsHook",
    "web": "WebHook",
    "background": "BackgroundHook",
    "plan": "PlanHook",
    "subagents": "SubagentsHook",
    "mcp": "McpHook",
    "file_watcher": "FileWatcherHook",
}
ON_REQUEST = {"hook_log": "HookLog"}
"""Built-ins that hang only where the settings have a table for them."""
UNTRUSTED = "the project is not trusted (crow trust)"
PERMISSION_MODES = (
    ("default", "Ask", "Asks before it changes files or runs commands that no rule allows"),
    ("acceptEdits", "Accept edits", "Changes files in the project without asking"),
    ("plan", "Plan", "Reads and thinks, and changes nothing"),
    ("dontAsk", "Do not ask", "Does what rules allow, and refuses the rest without a question"),
)
MODEL = ("model", "base_url", "api_key", "headers", "params", "context_window", "providers")
FOLDER = Path(".crow", "extensions")
KEPT_RULES = Path(".claude", "settings.local.json")
LEFT_OUT = (".mcp.json", ".crow/agents", ".claude/agents")
"""What is said to be left out of a project that nobody has trusted; commands say it themselves."""


def build(
    settings: Settings | None = None,
    *,
    cwd: str | os.PathLike[str] = ".",
    model: str | None = None,
    allow: Sequence[str] = (),
    deny: Sequence[str] = (),
    extensions: Iterable[str] = (),
    hooks: Iterable[Any] = (),
    env: Mapping[str, str] | None = None,
) -> Agent:
    """An agent as the command and the editor's face use it.

    Without ``settings`` those of ``cwd`` hold; ``model``, ``allow`` and ``deny`` are the command
    line's. ``extensions`` are files, modules or ``module:Name``. Raises `ExtensionError` for a
    broken one of ``extensions``, ``hooks`` or the permissions; every other one is named in
    ``agent.found``.
    """
    settings = settings or load(cwd, flags=_flags(model, allow, deny))
    surroundings = {**(os.environ if env is None else env), **settings.env}
    agent = Agent(_models(settings, surroundings), tools=_tools())
    composer = Composer(agent, settings)
    composer.use_builtin()
    composer.use_installed()
    composer.use_folder(Path.home() / FOLDER)
    if settings.project and Path(settings.project) != Path.home():
        composer.use_folder(Path(settings.project) / FOLDER, trusted=settings.trusted)
    composer.use_settings_hooks()
    for thing in hooks:
        agent.use(thing)
    for spec in extensions:
        composer.use_named(spec)
    if "permissions" in agent.extensions:
        offer_modes(agent)
    return agent


def offer_modes(agent: Agent) -> None:
    """Let the user choose how permissions are judged, beside what extensions offer.

    ``bypassPermissions`` is for whoever begins with it: settings and options can.
    """
    for name, title, text in PERMISSION_MODES:
        if name not in agent.modes:
            agent.add_mode(Mode(name, title, text))


def complaints(settings: Settings, agent: Agent | None = None) -> Iterator[str]:
    """What a person should know before the first prompt, one line each."""
    yield from settings.problems
    if settings.withheld:
        names = "; ".join(map(str, settings.withheld))
        yield f"the project is not trusted, so these settings are left out: {names} (crow trust)"
    if settings.project and not settings.trusted:
        there = [name for name in LEFT_OUT if Path(settings.project, name).exists()]
        if there:
            names = ", ".join(there)
            yield f"the project is not trusted, so these are left out: {names} (crow trust)"
    for name in ("permissions", "shell_hooks"):
        used = agent.extensions.get(name) if agent else None
        yield from getattr(used, "warnings", ())
    yield from unknown_extensions(settings, agent)
    for found in agent.found if agent else ():
        if found.error == UNTRUSTED:
            yield f"the extension {found.name} ({found.source}) is left out: {UNTRUSTED}"
        elif found.error:
            yield f"the extension {found.name} ({found.source}) is broken: {found.error}"


def unknown_extensions(settings: Settings, agent: Agent | None) -> Iterator[str]:
    """Names under ``extensions`` in the settings that no extension has, one line each."""
    if agent is None:
        return
    known = {*ON_REQUEST, *agent.extensions, *(found.name for found in agent.found)}
    named = {entry.text: str(entry.source) for entry in settings.disabled}
    named |= {name: "the settings" for name in settings.extensions if name not in named}
    for name, source in named.items():
        if name not in known:
            near = get_close_matches(name, known, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else " (crow ext list)"
            yield f"{source}: there is no extension {name!r}{hint}"


class Composer:
    """Hangs extensions on an agent and keeps what became of each."""

    def __init__(self, agent: Agent, settings: Settings) -> None:
        self.agent = agent
        self.settings = settings
        self.disabled = {entry.text for entry in settings.disabled}
        self.trusted = {entry.text for entry in settings.permissions.trusted}

    def options(self, name: str) -> dict[str, Any]:
        """The options that the settings have for an extension."""
        options = dict(self.settings.extensions.get(name, {}))
        return {**self.settings.limits, **options} if name == "limits" else options

    def use_builtin(self) -> None:
        """Use the extensions that come with Crow."""
        from crow import extensions

        chosen = {
            name: home for name, home in ON_REQUEST.items() if name in self.settings.extensions
        }
        for name, attribute in (BUILTIN | chosen).items():
            off = name in self.disabled
            error = None
            if not off:
                options = self.options(name) | self.given(name)
                error = self.attempt(getattr(extensions, attribute), name, "crow", True, options)
            if error and name == "permissions":
                raise ExtensionError(f"the permissions cannot be judged: {error}")
            self.keep(name, "crow", error, off)

    def given(self, name: str) -> dict[str, Any]:
        """Options that come from elsewhere in the settings."""
        if name == "subagents":
            return self.for_subagents()
        if name == "mcp":  # a project that is not trusted starts no servers
            servers = {**self.settings.mcp_servers, **self.options(name).get("servers", {})}
            return {"project": self.settings.project if self.settings.trusted else None} | (
                {"servers": servers} if servers else {}
            )
        if name != "permissions":
            return {}
        rules = rules_of(self.settings)
        directories = rules.pop("directories")
        save = partial(keep_rule, self.settings) if can_keep_rules(self.settings) else None
        return {**rules, "additional_directories": directories, "save": save}

    def for_subagents(self) -> dict[str, Any]:
        """Where sub-agents are defined, the strongest first, and who composes their prompts.

        The files of a project that is not trusted do not count.
        """
        projects = [Path(self.settings.project)] if self.settings.trusted else []
        roots = dict.fromkeys([*projects, Path.home()])
        folders = [root / name for root in roots for name in (".crow/agents", ".claude/agents")]
        return {"folders": folders, "hooks": prompted} | self.options("subagents")

    def use_installed(self) -> None:
        """Use the installed packages' entry points."""
        self.agent.discover(self.settings.extensions, disabled=self.disabled, trusted=self.trusted)

    def use_folder(self, folder: Path, *, trusted: bool = True) -> None:
        """Use the Python files of a folder, by name."""
        for path in sorted(folder.glob("*.py")):
            name = path.stem
            if name.startswith("_"):
                continue
            off = name in self.disabled
            error = None if trusted else UNTRUSTED
            if trusted and not off:
                error = self.attempt_file(path)
            self.keep(name, str(path), error, off)

    def attempt_file(self, path: Path) -> str | None:
        """Use one file; the error in one line where that fails."""
        try:
            module = load_file(path)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - somebody else's code
            return in_a_line(error)
        trusted = path.stem in self.trusted
        options = self.options(path.stem)
        return self.attempt(module, path.stem, str(path), trusted, options)

    def use_settings_hooks(self) -> None:
        """Use the hooks that stand in settings files, if there are any."""
        name = "shell_hooks"
        if not self.settings.hooks:
            return
        from crow.extensions import ShellHooks
        from crow.extensions.permissions.condition import applies
        from crow.extensions.shell_hooks import File

        files = [
            File(str(source), table, own=is_crows(source)) for source, table in self.settings.hooks
        ]
        off = name in self.disabled
        error = None
        if not off:
            given = {"files": files, "project": self.settings.project, "applies": applies}
            error = self.attempt(ShellHooks, name, "crow", True, self.options(name) | given)
        self.keep(name, "crow", error, off)

    def use_named(self, spec: str) -> None:
        """Use what ``--extension`` names. Raises `ExtensionError` where it is broken."""
        name, source, thing = find(spec)
        error = self.attempt(thing, name, source, True, self.options(name))
        if error:
            raise ExtensionError(f"the extension {spec} is broken: {error}")
        self.keep(name, source, None, False)

    def attempt(
        self, thing: Any, name: str, source: str, trusted: bool, options: dict[str, Any]
    ) -> str | None:
        """Use a thing, or all that a module holds; the error in one line where that fails."""
        try:
            for each in things(thing):
                own = options if inspect.isclass(each) else {}
                self.agent.use(each, name=name, trusted=trusted, source=source, **own)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - must not stop the others
            return in_a_line(error)
        return None

    def keep(self, name: str, source: str, error: str | None, disabled: bool) -> None:
        """Remember what became of an extension."""
        self.agent.found.append(Found(name, source, error, disabled))


def is_crows(source: Source) -> bool:
    """True for a settings file of Crow's own; what is in ``.claude`` is written for Claude Code."""
    return source.dialect == "crow" and source.layer != "command line"


def prompted(definition: Definition) -> Iterable[Any]:
    """The extensions that are a sub-agent's own: its prompt, put together as everybody's is."""
    from crow.extensions import SystemPromptHook

    return (SystemPromptHook(definition.prompt),)


def rules_of(settings: Settings) -> dict[str, Any]:
    """The permission lists of the settings, as `crow.extensions.permissions` takes them.

    ``allow``, ``ask``, ``deny`` are `Written` rules, ``mode`` a name, ``directories`` absolute.
    """
    from crow.extensions.permissions import Written

    lists = settings.permissions
    named = {"allow": lists.allow, "ask": lists.ask, "deny": lists.deny}
    rules: dict[str, Any] = {
        name: [Written(entry.text, str(entry.source), entry.source.root or None) for entry in each]
        for name, each in named.items()
    }
    directories = tuple(place_of(entry) for entry in lists.directories)
    return {**rules, "mode": lists.mode or "default", "directories": directories}


def can_keep_rules(settings: Settings) -> bool:
    """True where a rule that the user gives in a session would hold in the next one."""
    return settings.trusted and bool(settings.project) and Path(settings.project) != Path.home()


def keep_rule(settings: Settings, rule: str, behaviour: str) -> None:
    """Add a rule to the project's local settings, where Claude Code keeps such rules as well.

    A file that cannot be read is left alone. The project stays as trusted as it was.
    """
    project = Path(settings.project)
    path = project / KEPT_RULES
    try:
        table: Any = json.loads(path.read_text("utf-8")) if path.exists() else {}
        rules: list[str] = table.setdefault("permissions", {}).setdefault(behaviour, [])
    except (OSError, ValueError, AttributeError):
        return
    if rule in rules or not is_trusted(project):
        return
    rules.append(rule)
    path.parent.mkdir(exist_ok=True)
    fresh = path.with_suffix(f".{os.getpid()}.tmp")
    fresh.write_text(f"{json.dumps(table, indent=2, ensure_ascii=False)}\n", "utf-8")
    fresh.replace(path)
    trust(project)


def place_of(entry: Entry) -> str:
    """The directory that an entry names, absolute: relative ones start at their project."""
    root = entry.source.root or "."
    return os.path.abspath(Path(root) / Path(entry.text).expanduser())  # noqa: PTH100


def _flags(model: str | None, allow: Sequence[str], deny: Sequence[str]) -> dict[str, Any]:
    flags: dict[str, Any] = {"permissions": {"allow": list(allow), "deny": list(deny)}}
    return {**flags, "model": model} if model else flags


def _tools() -> Iterable[Any]:
    from crow.tools import builtin

    return builtin()


def _models(settings: Settings, env: Mapping[str, str]) -> LLM:
    """The command line's or the administrator's model, else the environment's, else a file's.

    Made when something is first asked of it; other models by their names.
    """
    from crow.credentials import load as stored
    from crow.llm import Routed, resolve

    table = {name: getattr(settings, name) for name in MODEL if getattr(settings, name)}
    origin = settings.origins.get("model")
    is_said = origin is not None and origin.layer in ("command line", "managed")
    said = settings.model if is_said else None

    async def look() -> list[str]:
        from crow.llm.listing import list_models

        return await list_models(table, env, stored)

    names = [entry.text for entry in settings.models]
    return Routed(lambda name: resolve(name or said, table, env, stored), names, look)
