"""An extension in the whole agent, twice, in a process of its own: ``python -m`` this, SPEC, FILE.

What is wrong is written into FILE, a JSON object a line. Home and folder are empty ones.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from crow.app.extension_loader import OWN_NAME, find, in_a_line, things
from crow.cli.ext_check.finding import Finding
from crow.cli.ext_check.harness import Player, Warnings, agent_around, concerns
from crow.cli.ext_check.leaks import around, end, left, settled
from crow.cli.ext_check.options import options
from crow.cli.ext_check.origins import OriginTracker
from crow.cli.ext_check.prefix import Asked, prefix
from crow.cli.ext_check.session_checks import unheard, unstored
from crow.cli.ext_check.source_lines import NOWHERE, Place, hooks, place_of_hook
from crow.cli.ext_check.tools import undescribed
from crow.cli.ext_check.unawaited import Unawaited
from crow.core.agent import Agent
from crow.core.errors import CrowError
from crow.core.hooks.context import Context
from crow.core.session import Session
from crow.core.trace import Record

LONGEST = 60
LATE = f"a session did not end within {LONGEST} s"
ACT: tuple[tuple[tuple[str, dict[str, Any]], ...], ...] = (
    (("Write", {"file_path": "notes.txt", "content": "one\n"}),),
    (("Read", {"file_path": "notes.txt"}), ("Read", {"file_path": "missing.txt"})),
    (("Bash", {"command": "cat notes.txt"}),),
    (("Edit", {"file_path": "notes.txt", "old_string": "one", "new_string": "two"}),),
)
"""What the model does: a reply a line."""


async def check(spec: str) -> list[Finding]:
    """What is wrong with an extension."""
    try:
        name, source, thing = find(spec)
        every = things(thing)
    except CrowError as error:
        return [Finding.of(str(error))]
    findings = [finding for each in every for finding in options(each, name)]
    witness, unawaited = OriginTracker(), Unawaited()
    first = await Trial(name, source, thing, witness, unawaited).run()
    findings += first.findings
    if first.asked:
        again = await Trial(name, source, thing, witness, unawaited).run()
        findings += [*again.findings, *prefix(first, again)]
        return [*repeated(findings, first.findings, again.findings)]
    return findings


def repeated(
    findings: list[Finding], first: list[Finding], again: list[Finding]
) -> Iterator[Finding]:
    """Without what took long only once, as it may on a busy machine."""
    slow = {each.place for each in first if each.is_slow} & {
        each.place for each in again if each.is_slow
    }
    for each in findings:
        if not each.is_slow:
            yield each
        elif each.place in slow:
            slow.remove(each.place)
            yield each


class Trial:
    """A session in which an extension takes part.

    ``findings`` are what is wrong, ``asked`` what the model was sent, ``sections`` what the
    extension adds to the instructions, ``told`` what its hooks did, each with its place, and
    ``ended_by`` the error that ended it, in a line.
    """

    def __init__(
        self, name: str, source: str, thing: Any, witness: OriginTracker, unawaited: Unawaited
    ) -> None:
        self.name, self.source, self.thing = name, source, thing
        self.witness, self.unawaited = witness, unawaited
        self.findings: list[Finding] = []
        self.asked: list[Asked] = []
        self.sections: dict[str, str] = {}
        self.told: list[tuple[Record, Place]] = []
        self.used: tuple[str, ...] = ()
        self.files: tuple[str, ...] = ()
        self.ended_by = ""

    async def run(self) -> Trial:
        """Play it to its end."""
        self.witness.follow_tasks()
        before, model, heard = around(), Player(ACT), Warnings()
        agent, composer = agent_around(self.name, model)
        self.used, error = composer.attempt(self.thing, self.name, self.source, True)
        if error is not None:
            await agent.close()
            self.findings = [Finding.of(error)]
            return self
        self.files = (*files_of(self.thing),)
        silent = [*undescribed(agent, self.used)]
        agent.hooks.watchers.append(self._watch)
        logging.getLogger("crow").addHandler(heard)
        session = await self._perform(agent, heard)
        await agent.close()
        logging.getLogger("crow").removeHandler(heard)
        self.asked = model.asked
        said = dict.fromkeys(
            line for line in heard.said if line == LATE or concerns(line, self.used)
        )
        if self.ended_by and not said:
            said = {self.ended_by: None}
        now = await settled(before)
        end(before)
        self.findings = [
            *silent,
            *map(Finding.of, said),
            *unheard(self.told),
            *unstored(session, self.used, self.files),
            *self.unawaited.found(self.files),
            *left(before, now, self.witness),
        ]
        return self

    async def _perform(self, agent: Agent, heard: Warnings) -> Session | None:
        session = None
        try:
            async with asyncio.timeout(LONGEST):
                session = await agent.new_session(os.getcwd())  # noqa: PTH109
                session.mode = "bypassPermissions"
                await self._read_sections(agent, session)
                for prompt in ("Write down one thing.", "What did you write?"):
                    await agent.prompt(session, prompt)
                running = asyncio.create_task(agent.prompt(session, "Once more."))
                await asyncio.sleep(0)
                agent.cancel(session)
                await running
        except TimeoutError:
            heard.said.append(LATE)
        except Exception as error:  # noqa: BLE001 - somebody else's code
            self.ended_by = in_a_line(error)
        return session

    async def _read_sections(self, agent: Agent, session: Session) -> None:
        for name, (section, owner) in agent.scope.sections.owned.items():
            if getattr(owner, "name", "") in self.used:
                self.sections[name] = await section.written(session)

    def _watch(self, record: Record, ctx: Context) -> None:
        if record.owner in self.used:
            every = hooks(ctx.agent, [record.owner])
            place = next(
                (place_of_hook(each) for each in every if each.name == record.hook), NOWHERE
            )
            self.told.append((record, place))


def files_of(thing: Any) -> Iterable[str]:
    """The files that an extension's text stands in: its own, or those of its package."""
    module = thing if isinstance(thing, ModuleType) else sys.modules.get(_module_of(thing))
    own = getattr(module, "__file__", None) or ""
    if module is None or module.__name__.startswith(OWN_NAME):
        return [own] if own else []
    folder = f"{Path(own).parent}{os.sep}"
    known = {getattr(each, "__file__", None) or "" for each in [*sys.modules.values()]}
    inside = (path for path in known if path.startswith(folder) and path.endswith(".py"))
    return [own, *sorted({*inside} - {own})]


def _module_of(thing: Any) -> str:
    return getattr(thing, "__module__", None) or type(thing).__module__


def main(spec: str, file: str) -> None:
    """Check an extension, and write down what is wrong."""
    findings = asyncio.new_event_loop().run_until_complete(check(spec))
    lines = [json.dumps(finding.table) for finding in findings]
    Path(file).write_text("".join(f"{line}\n" for line in lines), "utf-8")
    os._exit(0)  # whatever threads there are


if __name__ == "__main__":
    main(*sys.argv[1:])
