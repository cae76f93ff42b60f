"""The composer: it hangs extensions on an agent in a fixed sequence, with the settings' options."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, partial
from operator import itemgetter
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from crow.app.extension_loader import (
    Kind,
    Source,
    Sources,
    files_in,
    find,
    in_a_line,
    load_file,
    things,
)
from crow.app.models import fallback_models
from crow.app.plugins import (
    brought_of,
    described_servers,
    hooks_of,
    instructions_of,
    others_of,
    plugins_of,
    server_policy_of,
)
from crow.app.rules import (
    KEPT_RULES,
    can_keep_rules,
    drop_rule,
    home_of_rules,
    keep_rule,
    rules_of,
    scripts_run,
)
from crow.app.sandbox import sandbox_of
from crow.core.agent import Agent
from crow.core.errors import CrowError, ExtensionError, raised_at
from crow.core.extensions import Found, MissingOption
from crow.core.hooks.discovery import name_of
from crow.core.support.validation import implementing, implements
from crow.entry_points import JUDGE, ON_REQUEST, OURS, EntryPoint, entry_points
from crow.ports.extensions import OptionsReader, Ordered, SubagentPrompter
from crow.project.settings import ProjectSettings
from crow.project.trust import HOMES, sealed
from crow.settings import Settings

if TYPE_CHECKING:
    from crow.project.imports import Seal
    from crow.project.settings import Proposals

FOLDER = Path(".crow", "extensions")
"""Where the extensions of a home or a project lie."""
LAST = 1000
"""The order of an extension that says none."""
HELPER = "; a helper of a file has a name with an underscore, or is not in the file's __all__"
UNTRUSTED = "the project is not trusted (crow trust)"
Used = tuple[tuple[str, ...], str | None]
"""The names under which something is in use, and the error in a line where it cannot be."""
Loaded = tuple[float, EntryPoint, Any, str | None]
"""Where an extension says that it hangs, what brings it, and what it is, or the error in a line."""
ORDER = itemgetter(0)


class Composer:
    """Hangs extensions on an agent and keeps what became of each."""

    def __init__(self, agent: Agent, settings: Settings) -> None:
        self.agent = agent
        self.settings = settings
        self.disabled = {entry.text for entry in settings.disabled}
        self.trusted = {entry.text for entry in settings.permissions.trusted}
        self.plugins = plugins_of(settings)[0]
        self.problems: dict[str, tuple[str, ...]] = {}
        self.refused: dict[str, str] = {}

    @cached_property
    def installed(self) -> list[EntryPoint]:
        """The extensions of installed packages, as far as they are wanted."""
        wanted = {*self.settings.extensions, *self.disabled}
        every = entry_points()
        return [point for point in every if point.group != ON_REQUEST or point.name in wanted]

    def use_installed(self, given: Sequence[Any] = (), *, late: bool = False) -> None:
        """Use those that come with Crow, in the order that they say, then others by name.

        Those whose order is above `LAST` come ``late``, behind everybody's files. What is ``given``
        by hand is not used.
        """
        by_hand = {*map(id, given), *map(id, map(type, given))}
        for order, point, thing, broken in self.loaded:
            if (order > LAST) is not late or (id(thing) in by_hand and not point.own):
                continue
            name, names, error = point.name, tuple[str, ...](), broken
            source, where = (OURS, OURS) if point.own else (point.package, point.value)
            if thing is not None:
                trusted = point.own or name in self.trusted
                names, error = self.attempt(thing, name, where, trusted)
            self.keep(name, source, error, name in self.disabled, names)

    @cached_property
    def loaded(self) -> list[Loaded]:
        """What is installed, in the order of its use."""
        loaded = [self.load(point) for point in self.installed]
        own = [each for each in loaded if each[1].own]
        return sorted(own, key=ORDER) + [each for each in loaded if not each[1].own]

    def use_given(self, thing: Any) -> None:
        """Use what a program brings; a class is made with the options that its name has.

        A class that a package brings as well has the name that it has there.
        """
        name = next((point.name for _, point, each, _ in self.loaded if each is thing), "")
        name = name or name_of(thing)
        if not inspect.isclass(thing) or name in self.agent.extensions:
            self.agent.use(thing)
            return
        self.agent.use(thing, name=name, **self.options_for(thing, name))
        self.keep(name, "code", None, False, (name,))

    def load(self, point: EntryPoint) -> Loaded:
        """What an entry point names, unless it is disabled, or the error in a line."""
        try:
            thing = None if point.name in self.disabled else point.load()
            if not point.own and thing is not None:
                refuse_misread(thing, Ordered)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - must not stop the others
            is_told = isinstance(error, CrowError) or raised_at(error)
            named = "" if is_told else f" (its entry point is {point.value})"
            return LAST, point, None, f"{in_a_line(error)}{named}"
        return thing.order if implements(thing, Ordered) else LAST, point, thing, None

    def refuse_unjudged(self) -> None:
        """Raise `ExtensionError` where a judge is broken, or there is none and none is disabled.

        An option of a judge's that does not fit breaks it: nobody judges then as the user wants.
        """
        judges = {(p.name, p.brought_by) for p in self.installed if p.group == JUDGE}
        found = (each for each in self.agent.found if (each.name, each.source) in judges)
        errors = {each.name: each.error for each in found if each.error}
        broken = next(self.misjudged(errors), None)
        hooks = self.agent.hooks.before_tool.entries
        judged = any(hook.judge and hook.tools is None for hook in hooks)
        if broken or not (judged or self.settings.unjudged):
            why = broken or "they are not installed"
            raise ExtensionError(f"the permissions cannot be judged: {why}")

    def misjudged(self, broken: Mapping[str, str]) -> Iterator[str]:
        """Why nobody judges calls as the settings want, where judges are among what is ``broken``.

        An option that does not fit breaks a judge, and lists of rules that are none break them all.
        """
        judges = {point.name for point in self.installed if point.group == JUDGE} - self.disabled
        for name in sorted(judges):
            if name in broken:
                yield broken[name]
            yield from self.misfits(name)
        if not self.settings.unjudged:
            yield from self.settings.lost_rules

    def options_for(self, cls: Any, name: str) -> dict[str, Any]:
        """What an extension of this class is made with."""
        own = dict(self.settings.extensions.get(name, {}))
        if own and cls is not None:
            own = self.read(cls, name, own)
        if implements(cls, OptionsReader):
            return dict(cls.options_from(self.project_settings, own))
        return own

    def read(self, cls: type[Any], name: str, own: dict[str, Any]) -> dict[str, Any]:
        """Options as the class takes them, without those that do not fit; these are complained of.

        Those of installed packages were held against their classes when files were read.
        """
        from crow.annotations.options import options_of
        from crow.settings.schema import Sieve

        def drop(path: str, value: Any, text: str) -> None:
            source = self.settings.origins.get(path, "the settings")
            self.refused[path] = text
            self.problems[name] = (*self.problems.get(name, ()), f"{source}: {text}")

        options = options_of(cls)
        fitting = Sieve(drop, options.node).sift(own, f"extensions.{name}")
        return options.read(fitting)

    @cached_property
    def project_settings(self) -> ProjectSettings:
        """What extensions are told that ask."""
        settings = self.settings
        return ProjectSettings(
            settings.project,
            settings.trusted,
            self.plugins,
            described_servers(settings, self.plugins),
            rules_of(settings),
            hooks_of(settings, self.plugins),
            partial(scripts_run, settings),
            self.keep_rule if can_keep_rules(settings) else None,
            partial(drop_rule, settings),
            self.prompted,
            self.proposals,
            sandbox_of(settings),
            settings.cleanup_period_days,
            brought_of(settings),
            others_of(settings),
            partial(instructions_of, settings),
            fallback_models(settings, {**os.environ, **settings.env}),
            server_policy_of(settings),
        )

    def proposals(self) -> Proposals:
        """What puts extensions into use while the agent works."""
        live: Any = self.agent.extensions["settings"]
        return live.proposals()

    def prompted(self, prompt: str) -> list[object]:
        """The extension that puts a sub-agent's prompt before its requests, where one can."""
        makers = implementing(self.agent.extensions.values(), SubagentPrompter)
        return [each.for_sub_agent(prompt) for each in makers[:1]]

    @property
    def sources(self) -> Sources | None:
        """The files that the agent's extensions were loaded from."""
        return getattr(self.agent.extensions.get("settings"), "sources", None)

    def note(self, path: str, kind: Kind, spec: str, before: set[str]) -> None:
        """Keep what a file or folder was loaded as; ``before`` that, there were these modules."""
        if self.sources is not None:
            self.sources.note(Source(path, kind, spec), {*sys.modules} - before)

    def keep_rule(self, rule: str, behaviour: str) -> None:
        """Add a rule to the project's local settings; nobody is told that these have changed."""
        keep_rule(self.settings, rule, behaviour)
        live: Any = self.agent.extensions.get("settings")
        if live is not None:
            live.kept(home_of_rules(self.settings) / KEPT_RULES)

    def misfits(self, name: str) -> Iterator[str]:
        """Lines about options of an extension that do not fit, in files and in what they make."""
        start = f"extensions.{name}"
        for each in self.settings.rejected:
            if any(path == start or path.startswith(f"{start}.") for path in each.table):
                yield f"{each.source}: {each.why}"
        yield from self.problems.get(name, ())

    def use_folder(self, folder: Path, seal: Seal | None = None, *, trusted: bool = True) -> None:
        """Use the Python files of a folder, by name."""
        if seal is None and trusted and self.sources is not None:
            self.sources.watch(str(folder))
        for path in files_in(folder):
            name = path.stem
            off = name in self.disabled
            if any(each.source == str(path) and each.names for each in self.agent.found):
                continue  # in use already: `ExtensionReloader` sees to what has changed
            names, error = (), None if trusted else UNTRUSTED
            if trusted and not off:
                names, error = self.attempt_file(path, seal)
            self.keep(name, str(path), error, off, names)

    def use_project(self) -> None:
        """Use the Python files of the settings' project, as they are trusted."""
        project = Path(self.settings.project)
        if not files_in(project / FOLDER):
            return
        contents = sealed(project) if self.settings.trusted else None
        if contents is None:
            self.use_folder(project / FOLDER, trusted=False)
            return
        from crow.project.imports import Seal

        self.use_folder(project / FOLDER, Seal(project, contents, HOMES))

    def attempt_file(self, path: Path, seal: Seal | None) -> Used:
        """Use one file."""
        before = {*sys.modules}
        try:
            module = load_file(path, seal)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - somebody else's code
            return (), in_a_line(error)
        finally:
            self.note(str(path), "user" if seal is None else "project", "", before)
        trusted = path.stem in self.trusted
        return self.attempt(module, path.stem, str(path), trusted)

    def use_named(self, spec: str) -> None:
        """Use what ``--extension`` names. Raises `ExtensionError` where it is broken."""
        before = {*sys.modules}
        name, source, thing = find(spec)
        path = Path(os.path.expanduser(spec))
        if path.exists():
            self.note(str(path.absolute()), "named", source, before)
        if any(owner.source in (source, _whole(source)) for owner in self.agent.hooks.owners):
            return
        names, error = self.attempt(thing, name, source, True)
        if error:
            raise ExtensionError(f"the extension {spec} is broken: {error}")
        self.keep(name, source, None, False, names)

    def try_named(self, spec: str) -> None:
        """Do so, and remember what is wrong where it is broken."""
        try:
            self.use_named(spec)
        except ExtensionError as error:
            self.keep(spec, "--extension", str(error), False, ())

    def attempt(self, thing: Any, name: str, source: str, trusted: bool) -> Used:
        """Use a thing, or all that a module holds, the first under its name; else nothing of it."""
        agent = self.agent
        before, known = agent.hooks.owners, {*agent.extensions}
        try:
            found = things(thing) if isinstance(thing, ModuleType) else [thing]
            for number, each in enumerate(found, 1):
                options = self.options_for(each, name) if inspect.isclass(each) else {}
                known_as = name if number == 1 else f"{name}_{number}"
                agent.scope.use(each, name=known_as, trusted=trusted, source=source, **options)
            if source != OURS:
                self.refuse_ours({name, *agent.extensions} - known)
                for used in {*agent.extensions} - known:
                    refuse_misread(agent.extensions[used])
        except (Exception, SystemExit) as error:  # noqa: BLE001 - must not stop the others
            for used in agent.scope.names_since(before):
                agent.remove(used)
            for key in {*agent.extensions} - known:
                del agent.extensions[key]
            helper = isinstance(error, MissingOption) and isinstance(thing, ModuleType)
            return (), f"{in_a_line(error)}{HELPER if helper else ''}"
        return agent.scope.names_since(before), None

    def refuse_ours(self, names: set[str]) -> None:
        """Raise `ExtensionError` for a name of what comes with Crow, in use by now or later."""
        for point in entry_points():
            if point.own and point.name in names - self.disabled:
                raise ExtensionError(
                    f"the name {point.name!r} is taken by {OURS}: choose another one"
                )

    def keep(
        self, name: str, source: str, error: str | None, disabled: bool, names: tuple[str, ...]
    ) -> None:
        """Remember what became of an extension."""
        problems = () if error and not names else self.problems.get(name, ())
        self.agent.found.append(Found(name, source, error, disabled, problems, names))


def refuse_misread(thing: Any, *protocols: type[Any]) -> None:
    """Raise `ExtensionError` where a member of somebody's extension is not what Crow reads there.

    What is looked at is imported once there is such an extension.
    """
    from crow.app.members import refuse

    refuse(thing, *protocols)


def _whole(path: str) -> str:
    return str(Path(path).absolute())
