"""A session's settings, and the updater, which brings changed ones to it or to the whole agent."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import field
from functools import partial
from pathlib import Path
from typing import Any, cast

from crow.app.composer import UNTRUSTED, Composer, in_a_line
from crow.app.models import MODEL, keys_of, models_of, secrets_of
from crow.app.startup_warnings import of_extensions
from crow.core.agent import Agent
from crow.core.cache import SUBAGENTS
from crow.core.errors import CrowError
from crow.core.extensions import AgentExtension, SessionExtension, make
from crow.core.hooks.contexts import SessionContext
from crow.core.ports.llm import LLM
from crow.core.session import Session
from crow.core.support.frozen import frozen, mutable
from crow.core.support.validation import implements
from crow.ports.extensions import Configurable, OptionsHolder, OptionsReader, Successor
from crow.settings import Memory, Settings

NAME = "settings"
CatchUp = Callable[[SessionContext], Awaitable[None]]


@mutable
class SessionSettings:
    """The settings of one session, how their files looked, and what was said of them.

    ``cwd`` is the directory that they were read for. ``would_run`` is how the project's files
    looked that are trusted or not as a whole, ``asking`` that the user is being asked about them.
    ``begins`` says that hooks that hang now will hear of the session's beginning. ``unjudged`` says
    why no call may run: nobody judges as the settings want.
    """

    settings: Settings
    memory: Memory
    cwd: str
    would_run: tuple[Any, ...] = ()
    told: set[str] = field(default_factory=set[str])
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    asking: bool = False
    begins: bool = False
    unjudged: str = ""

    @property
    def project(self) -> Path:
        """The project's directory."""
        return Path(self.settings.project)


def ground_of(session: Session) -> SessionSettings | None:
    """What holds in a session."""
    return session.root.cache.get(NAME)


@frozen
class Applied:
    """The result of other settings for a session.

    ``late`` tells extensions that are new to a session which has begun before; it may take as long
    as they do. ``broken`` are those that cannot be made so, by name, and why. ``unjudged`` says why
    nobody judges calls as the settings want; empty where somebody does.
    """

    late: list[CatchUp]
    broken: dict[str, str]
    unjudged: str


class SettingsUpdater:
    """Brings new settings into force.

    ``llm`` is the model that the settings named when the agent was made; ``env`` gives the
    environment. ``exported`` is what `os.environ` had where the settings' variables are now, None
    where they were not put there.
    """

    def __init__(self, agent: Agent, llm: LLM, env: Callable[[], Mapping[str, str]]) -> None:
        self.agent = agent
        self.llm = llm
        self.env = env
        self.exported: dict[str, str | None] | None = None

    # for a session

    def on_session(self, session: Session, old: Settings, new: Settings) -> Applied:
        """Let rules, hooks and servers of a session be those of other settings.

        An extension that cannot be made so stays as it is, and holds up no other.
        """
        before, now = Composer(self.agent, old), Composer(self.agent, new)
        late: list[CatchUp] = []
        broken: dict[str, str] = {}
        for name, thing in list(self.agent.extensions_of(session).items()):
            if name not in self._made or not is_of_sessions(thing):
                continue
            try:
                fresh = self._anew(name, thing, before, now)
                if fresh is not None:
                    hang(session, name, fresh, thing)
                    if implements(fresh, Successor):
                        late.append(partial(fresh.catch_up, before=thing))
            except (Exception, SystemExit) as error:  # noqa: BLE001 - must not stop the others
                broken[name] = in_a_line(error)
        return Applied(late, broken, next(now.misjudged(broken), ""))

    def warnings(self, session: Session) -> Iterator[str]:
        """What extensions find wrong with the settings of a session, a line each."""
        return of_extensions(self.agent.extensions_of(session))

    def _anew(self, name: str, thing: Any, before: Composer, now: Composer) -> Any:
        """An extension as other settings make it; None where it is the same."""
        options = now.options_for(type(thing), name)
        if options == before.options_for(type(thing), name):
            return None
        return make(cast("type[Any]", type(thing)), name, options)

    # for the agent

    def on_agent(self, old: Settings, new: Settings) -> Iterator[str]:
        """Let model, environment and extensions be as other settings say; lines about the rest."""
        if new is old:
            return
        if old.env != new.env:
            self._export(new.env)
        self.agent.withheld = keys_of(new)
        self.agent.known_secrets |= secrets_of(new)
        if any(
            getattr(old, name) != getattr(new, name)
            for name in (*MODEL, "claude_model", "models", "purposes", "env")
        ):
            self._models(new)
        if old.project != new.project or (new.trusted and not old.trusted):
            self._project(new)
        if {each.text for each in old.disabled} != {each.text for each in new.disabled}:
            yield "extensions.disable counts from the next start on"
        yield from self._options(old, new)

    def _export(self, env: Mapping[str, str]) -> None:
        before = self.exported
        if before is None:
            return
        for name in [name for name in before if name not in env]:
            restore(name, before.pop(name))
        self.exported = {**export(env), **before}

    def _models(self, new: Settings) -> None:
        """Ask other models from the next request on; those that are being asked end first."""
        if self.agent.llm is self.llm:
            from crow.llm.routing import Routed

            if isinstance(self.llm, Routed):
                said = self.llm.routes().said if self.llm.routes else None
                self.llm.become(models_of(new, {**self.env(), **new.env}, said))

    def _project(self, new: Settings) -> None:
        """Use what a project brings, or what was left out of it until now."""
        composer = Composer(self.agent, new)
        left = [found for found in self.agent.found if found.error == UNTRUSTED]
        for found in left:
            self.agent.found.remove(found)
        if Path(new.project) != Path.home():
            composer.use_project()

    @property
    def _made(self) -> set[str]:
        """The extensions that are made from settings; others came from a program as they are."""
        return {each.name for each in self.agent.found if each.name in each.names}

    def _options(self, old: Settings, new: Settings) -> Iterator[str]:
        before, now = Composer(self.agent, old), Composer(self.agent, new)
        for name in sorted({*old.extensions, *new.extensions, *self._made}):
            thing: Any = self.agent.extensions.get(name)
            if is_of_sessions(thing):
                continue
            cls = type(cast("object", thing)) if name in self._made else None
            options = now.options_for(cls, name)
            if options != before.options_for(cls, name) and not self._configured(
                name, thing, options
            ):
                yield f"extensions.{name} counts from the next start on"

    def _configured(self, name: str, thing: object, options: dict[str, Any]) -> bool:
        """Give an extension its options anew; False where it cannot take them."""
        try:
            if implements(thing, Configurable):
                thing.configure(**options)
            elif implements(thing, OptionsHolder) and thing.is_its_options:
                vars(thing).update(vars(make(type(thing), name, options)))
            else:
                return False
        except (CrowError, TypeError, ValueError):
            return False
        return True


def is_of_sessions(thing: object) -> bool:
    """True for an extension that follows the settings of each session by itself."""
    own = implements(thing, SessionExtension) or not implements(thing, AgentExtension)
    return own and implements(type(thing), OptionsReader)


def hang(session: Session, name: str, fresh: object, before: object) -> None:
    """Use an extension on a session in place of another; on those of sub-agents that share it, too.

    They have the gates from there. It is trusted as the other is, and came from where that did.
    """
    owners = (each for scope in session.scope.line() for each in scope.hooks.owners)
    owner = next(each for each in owners if each.thing is before)
    if name in session.extensions:
        session.remove(name)
    session.use(fresh, name=name, trusted=owner.trusted, source=owner.source)
    for sub in (SUBAGENTS.get(session) or {}).values():
        if sub.closed or sub.agent is None:
            continue
        if sub.agent.extensions_of(sub).get(name) is before:
            hang(sub, name, fresh, before)


def export(env: Mapping[str, str]) -> dict[str, str | None]:
    """Put variables into the environment of this process; what was there before."""
    before = {name: os.environ.get(name) for name in env}
    os.environ.update(env)
    return before


def restore(name: str, value: str | None) -> None:
    """Put an environment variable back to what it was."""
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value
