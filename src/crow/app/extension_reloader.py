"""The reloader of extensions: files that changed take the place of what was in use.

The new one is loaded before anything of the old one ends. What fails leaves the old one at work.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from crow.app.composer import FOLDER, UNTRUSTED, Composer
from crow.app.extension_loader import (
    Kind,
    Source,
    Sources,
    files_in,
    find,
    in_a_line,
    load_file,
    load_text,
    module_name,
)
from crow.core.agent import Agent
from crow.core.errors import ExtensionError
from crow.core.extensions import Found
from crow.core.hooks.contexts import SessionContext
from crow.core.session import Session
from crow.project.files import write_atomically
from crow.project.imports import Seal
from crow.project.trust import HOMES, sealed
from crow.settings import Settings

REASON = "reload"


class ExtensionReloader:
    """Brings an agent's extensions to what their files say now.

    ``said`` are lines about what is in use now, ``failed`` about what could not be used.
    """

    def __init__(self, agent: Agent, settings: Settings, sources: Sources) -> None:
        self.agent = agent
        self.settings = settings
        self.sources = sources
        self.composer = Composer(agent, settings)
        self.said: list[str] = []
        self.failed: list[str] = []

    def is_busy(self, session: Session) -> bool:
        """True while sessions work that this one is no part of."""
        others = (each for each in self.agent.sessions.values() if each.busy)
        return any(each.root is not session.root for each in others)

    async def reload(self, *, asked: bool) -> None:
        """Use what has changed: of the user's, of a project's that is trusted as it is now.

        What was named on the command line is only offered, unless this is ``asked`` for.
        """
        self.sources.owes = False
        for source in list(self.sources.changed()):
            if source.kind == "project" and self._seal() is None:
                self.sources.owes = True
                self.failed += [f"{source.path} has changed, and {UNTRUSTED}"] if asked else ()
            elif source.kind != "named" or asked:
                await self._swap(source)
            elif self.sources.is_news(source):
                self.said.append(f"{source.path} has changed: /reload uses it as it is now")
        for source in self.sources.of("named"):
            if not Path(source.path).exists():
                await self._miss(source, asked=asked)
        await self._follow(Path.home() / FOLDER, "user")
        if self._seal() is not None:
            await self._follow(Path(self.settings.project) / FOLDER, "project")
        self.sources.seen()

    async def _follow(self, folder: Path, kind: Kind) -> None:
        """Use the files that are new in a folder, and those no more that have gone."""
        there = {str(path): path for path in files_in(folder)}
        for source in self.sources.of(kind):
            if source.path not in there:
                await self._end(source)
        found = {each.source for each in self.agent.found if each.error != UNTRUSTED}
        for path in [path for path in there if path not in found]:
            name = there[path].stem
            if name not in self.composer.disabled:
                await self._swap(Source(path, kind), Found(name, path))

    async def _miss(self, source: Source, *, asked: bool) -> None:
        """Use what was named on the command line no more where it is gone, once ``asked`` to."""
        if asked:
            await self._end(source)
        elif self.sources.is_news(source):
            self.said.append(f"{source.path} is gone: /reload uses it no more")

    async def _end(self, source: Source) -> None:
        """Use a file no more that is gone."""
        self.sources.forget(source)
        found = self._found(source)
        if found is None:
            return
        await self._close(found.names)
        async with self.agent.scope.in_place_of(found.names):
            pass
        self.agent.found.remove(found)
        self.said.append(f"{found.name} is gone, and not in use any more")

    async def _swap(self, source: Source, new: Found | None = None) -> None:
        """Put what a file says now in the place of what it said; a ``new`` one was not in use."""
        found = new or self._found(source)
        if found is None or found.disabled:
            return
        taken = {
            name: sys.modules.pop(name) for name in self.sources.modules(source) & {*sys.modules}
        }
        before = {*sys.modules}
        error = None
        names = found.names
        try:
            thing = self._load(source)
            trusted = source.kind == "named" or found.name in self.composer.trusted
            names = await self._put(thing, found, source.path, trusted)
        except (Exception, SystemExit) as raised:  # noqa: BLE001 - somebody else's code
            error = in_a_line(raised)
        self.sources.note(source, {*sys.modules} - before)
        if error is None:
            state = "is new, and in use" if new else "is in use as it is now"
            self.said.append(f"the extension {found.name} {state}")
        else:
            self._restore(taken, {*sys.modules} - before)
            state = ", the one before stays in use" if names else ""
            self.failed.append(f"the extension {found.name} is broken{state}: {error}")
        problems = self.composer.problems.get(found.name, ())
        now = Found(found.name, found.source, None if names else error, False, problems, names)
        every = [
            each for each in self.agent.found if each is not found and each.source != found.source
        ]
        self.agent.found[:] = [*every, now]
        self.sources.texts.pop(found.name, None)

    async def use_text(self, path: Path, text: str, own: Path | None) -> Found:
        """Use a text as the extension of a file, and keep it as the user's ``own`` where it is to.

        Raises `ExtensionError` where it is broken, and ``OSError`` where it cannot be kept.
        """
        name, place = path.stem, own or path
        old = next((each for each in self.agent.found if name in each.names), None)
        source = old.source if old and not own else str(place)
        module = module_name(place)
        taken = sys.modules.get(module)
        try:
            thing = load_text(place, text)
            trusted = own is not None and name in self.composer.trusted
            names = await self._put(thing, old or Found(name, source), source, trusted)
        except (Exception, SystemExit) as raised:
            self._restore({} if taken is None else {module: taken}, {module})
            raise ExtensionError(in_a_line(raised)) from raised
        now = Found(name, source, None, False, self.composer.problems.get(name, ()), names)
        every = [each for each in self.agent.found if each is not old and each.source != source]
        self.agent.found[:] = [*every, now]
        self.sources.texts[name] = text
        if own is not None:
            write_atomically(own, text)
            self.sources.note(Source(str(own), "user"), ())
        return now

    def _restore(self, taken: dict[str, ModuleType], new: set[str]) -> None:
        """Let what is in use have the modules that it was made with."""
        for name in new:
            if name in taken:
                del sys.modules[name]
        sys.modules.update(taken)

    async def _put(self, thing: Any, found: Found, source: str, trusted: bool) -> tuple[str, ...]:
        """End the one before, then hang what was loaded in its place; its names."""
        agent, names = self.agent, found.names
        before = [owner for owner in agent.hooks.owners if owner.name in names]
        where = before[0].source if before else source
        others = self._told(names)
        await self._close(names)
        try:
            async with agent.scope.in_place_of(names):
                used, error = self.composer.attempt(thing, found.name, where, trusted)
                if error is not None:
                    raise ExtensionError(error)
        finally:
            await self._begin(others)
        return used

    def _load(self, source: Source) -> Any:
        importlib.invalidate_caches()
        if source.kind == "project":
            return load_file(Path(source.path), self._seal())
        if source.path.endswith(".py"):
            return load_file(Path(source.path))
        return find(source.path)[2]

    def _seal(self) -> Seal | None:
        """What may be imported of the project; None where it is not trusted as it is now."""
        project = Path(self.settings.project)
        if not self.settings.project or project == Path.home() or not self.settings.trusted:
            return None
        contents = sealed(project)
        return None if contents is None else Seal(project, contents, HOMES)

    def _found(self, source: Source) -> Found | None:
        known = (source.path, source.spec) if source.spec else (source.path,)
        return next((each for each in self.agent.found if each.source in known), None)

    # the sessions that are open

    def _told(self, names: tuple[str, ...]) -> set[object]:
        """What hangs at the beginning and the end of sessions, without that of these."""
        hooks = self.agent.hooks
        every = (*hooks.on_session_start.entries, *hooks.on_session_end.entries)
        return {hook for hook in every if hook.owner.name not in names}

    async def _close(self, names: tuple[str, ...]) -> None:
        """Tell these alone that the sessions end, as they do for them."""
        for session in [*self.agent.sessions.values()]:
            ctx = SessionContext(self.agent, session, reason=REASON)
            await self.agent.hooks.on_session_end.fire(ctx, self._told(names))

    async def _begin(self, told: set[object]) -> None:
        """Tell those that are new that sessions have begun."""
        for session in [*self.agent.sessions.values()]:
            ctx = SessionContext(self.agent, session, source=REASON)
            await self.agent.hooks.on_session_start.fire(ctx, {*told})
