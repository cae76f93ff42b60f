"""The reporter in another process: the extensions under test, and who tells of them."""

from __future__ import annotations

import inspect
import json
import os
import pickle
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from operator import attrgetter
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeAlias

from crow.app import live_of
from crow.app.composer import Composer
from crow.core.events import ToolEnded, ToolStarted
from crow.core.hooks.context import Context
from crow.core.hooks.discovery import hook
from crow.core.hooks.registry import FIRST
from crow.core.trace import Record
from crow.core.verdicts import Ask
from crow.testing.descriptions import is_of_test

if TYPE_CHECKING:
    from crow.core.agent import Agent

VARIABLE = "CROW_TESTING"
"""The environment variable that says what to hang, and where to report."""
SPEC = f"{__name__}:Reporter"
"""What ``--extension`` is given."""
Happened: TypeAlias = Record | ToolStarted | ToolEnded


class Reporter:
    """An extension that hangs those under test, and writes the trace and all ended calls to a file.

    Both sides are one test: what is written is pickled.
    """

    def init_agent(self, agent: Agent) -> None:
        """Hang what the test has named."""
        told = json.loads(os.environ[VARIABLE])
        self._report = Path(told["report"])
        self._agent = agent
        sys.path.extend(each for each in told["path"] if each not in sys.path)
        composer = Composer(agent, live_of(agent).settings)
        for place in told["things"]:
            thing = thing_at(**place)
            for each in agent.hooks.owners:
                if each.thing is thing or type(each.thing) is thing:  # it is installed as well
                    agent.remove(each.name)
            composer.use_given(thing)
        agent.hooks.watchers.append(self._watch)

    @hook("on_session_start", order=FIRST)
    def be_patient(self, ctx: Context) -> None:
        """Wait for servers as long as they may take, as a `ScriptedUser` does."""
        client: Any = ctx.client
        client.waits_for_servers = True

    def on_update(self, update: object) -> None:
        """Report a call that begins, or has ended."""
        match update:
            case ToolStarted():
                self._write(update, update)
            case ToolEnded():
                self._write(update, replace(update, result=replace(update.result, data=None)))
            case _:
                pass

    def _watch(self, record: Record, ctx: Context) -> None:
        own = next(each.name for each in self._agent.hooks.owners if each.thing is self)
        if record.owner == own or not is_of_test(self._agent, record, ctx):
            return
        match record.answer:
            case Ask(reason, rule):  # what is called with the answer stays here
                record = replace(record, answer=Ask(reason, rule))
            case _:
                pass
        self._write(record, replace(record, answer=repr(record.answer), values={}))

    def _write(self, happened: Happened, less: Happened) -> None:
        try:
            data = pickle.dumps(happened)
        except Exception:  # noqa: BLE001 - somebody else's values
            data = pickle.dumps(less)
        with self._report.open("ab") as file:
            file.write(data)


def read_report(path: Path) -> Iterator[Happened]:
    """What a reporter has written so far."""
    with path.open("rb") as file:
        while True:
            try:
                yield pickle.load(file)  # noqa: S301 - of our own process
            except EOFError:
                return


def variable(things: Iterable[Any], report: Path) -> Mapping[str, str]:
    """The environment with what a reporter is to hang. Raises ``TypeError`` for what it cannot."""
    told = {"things": [*map(place_of, things)], "report": str(report), "path": sys.path}
    return {VARIABLE: json.dumps(told)}


def place_of(thing: Any) -> dict[str, str]:
    """Where a class, a function or a module is found by another process. Raises ``TypeError``."""
    name = "" if isinstance(thing, ModuleType) else getattr(thing, "__qualname__", "<locals>")
    if "<locals>" in name:
        raise TypeError(
            f"{thing!r} cannot be hung in another process: use a class, a function or a module "
            "that stands at the top of a file"
        )
    module = thing.__name__ if isinstance(thing, ModuleType) else thing.__module__
    return {"module": module, "file": inspect.getfile(thing), "name": name}


def thing_at(module: str, file: str, name: str) -> Any:
    """What `place_of` has found the place of."""
    home = _imported(module, file)
    return attrgetter(name)(home) if name else home


def _imported(name: str, file: str) -> ModuleType:
    """A module by its name, or where that means none, or another one, by its file."""
    try:
        module = import_module(name)
        if module.__file__ == file:
            return module
    except ImportError:
        pass
    spec = spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
