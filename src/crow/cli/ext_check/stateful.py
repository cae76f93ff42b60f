"""An extension in lives that hypothesis makes up: ``python -m`` this, SPEC, FILE, PLAYS, SEED.

A life is a row of steps in the whole agent: prompts, calls that succeed, fail and are denied,
prompts that are cancelled or interrupted, sub-agents, sessions that end and come back, commands, a
reload. What is wrong, and the shortest row of steps that shows it, is written into FILE.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any, TypeAlias

import hypothesis
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st
from hypothesis.errors import FlakyFailure
from hypothesis.reporting import with_reporter

from crow.app.extension_loader import find
from crow.cli.ext_check.finding import Finding
from crow.cli.ext_check.harness import Act, Player, Warnings, agent_around, concerns
from crow.cli.ext_check.leaks import UNDO, around, end, left, settled
from crow.cli.ext_check.origins import OriginTracker
from crow.core.errors import CrowError, ModelError
from crow.core.ports.client import NullClient, PermissionRequest
from crow.core.session import Session

Step: TypeAlias = tuple[Any, ...]
"""A method of `Life`, and its arguments."""
What: TypeAlias = tuple[Any, str, str, bool]
"""What `Composer.attempt` takes: the thing, its name, its source, and whether it is trusted."""

LONGEST = 30.0
STEPS = 12
SHORTENED = 30.0
"""Seconds for which a life is made shorter that shows what is wrong."""
CALLS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("Read", {"file_path": "notes.txt"}),
    ("Read", {"file_path": "missing.txt"}),
    ("Write", {"file_path": "notes.txt", "content": "one\n"}),
    ("Edit", {"file_path": "notes.txt", "old_string": "one", "new_string": "two"}),
    ("Bash", {"command": "echo one"}),
    ("Bash", {"command": "exit 3"}),
    ("Bash", {"command": "sleep 0.02"}),
    ("Bash", {}),
    ("NoSuchTool", {"of": "no kind"}),
    ("Agent", {"description": "look", "prompt": "Look.", "subagent_type": "general-purpose"}),
)
"""Calls that a model may make anywhere."""
ONCE = (
    "it was so once, and not again: it hangs on the time that things take, or on what the module "
    "keeps (ctx.state is the place for that)"
)
WORDS = ("", "one", "notes.txt", "two words")
MODES = ("default", "acceptEdits", "plan", "bypassPermissions")
COMMANDS = ("/clear", "/compact", "/context")


class User(NullClient):
    """Answers every request for permission alike; no other question."""

    how: str | None = None

    async def permission(self, session_id: str, request: PermissionRequest) -> str | None:
        """The option of that kind, where there is one."""
        return next((each.id for each in request.options if each.kind == self.how), None)


class Life:
    """One agent and its sessions, from the first to the last. Each step is a method."""

    def __init__(self, what: What, witness: OriginTracker | None = None) -> None:
        self.what, self.witness = what, witness
        self.model, self.user = Player(), User()
        self.agent, self.composer = agent_around(what[1], self.model)
        self.names = {each.noun: {*each} for each in self.agent.catalogs}
        self.used: tuple[str, ...] = ()
        self.open: list[Session] = []
        self.closed: list[str] = []

    async def enter(self) -> None:
        """Open a session."""
        self.open.append(await self.agent.new_session(client=self.user))

    async def prompt(self, which: int, text: str, act: Act) -> None:
        """Answer a prompt to its end."""
        self.model.act = [*act]
        reply = await self.agent.prompt(self.of(which), text)
        assert reply.error is None, f"a run failed: {reply.error!r}"

    async def cancel(self, which: int, act: Act, turns: int) -> None:
        """Cancel a prompt that is at work."""
        self.model.act, session = [*act], self.of(which)
        running = asyncio.create_task(self.agent.prompt(session, "Begin."))
        for _ in range(turns):
            await asyncio.sleep(0)
        self.agent.cancel(session)
        await running

    async def interrupt(self, which: int, act: Act) -> None:
        """Say something to a prompt that is at work, and prompt once more at once."""
        self.model.act, session = [*act], self.of(which)
        running = asyncio.create_task(self.agent.prompt(session, "Begin."))
        await asyncio.sleep(0)
        self.agent.steer(session, "Do it otherwise.")
        await asyncio.gather(running, self.agent.prompt(session, "And then this."))

    async def at_once(self, act: Act) -> None:
        """Answer prompts in two sessions at once."""
        self.model.act = [*act]
        await asyncio.gather(*(self.agent.prompt(each, "Go.") for each in self.open[:2]))

    async def fail(self, which: int) -> None:
        """Have the model's endpoint fail."""
        self.model.act = [ModelError("the endpoint fails")]
        await self.agent.prompt(self.of(which), "Try.")

    async def close(self, which: int) -> None:
        """Close a session, and see that one is open."""
        session = self.of(which)
        self.open.remove(session)
        if session.messages:
            self.closed.append(session.id)
        await self.agent.close_session(session)
        if not self.open:
            await self.enter()

    async def load(self) -> None:
        """Load a session that was closed."""
        if self.closed:
            self.open.append(await self.agent.load_session(self.closed.pop(), client=self.user))

    async def mode(self, which: int, mode: str) -> None:
        """Choose a mode."""
        await self.agent.configure(self.of(which), mode=mode)

    async def answer(self, how: str | None) -> None:
        """Say from now on what the user answers to requests for permission."""
        self.user.how = how

    async def reload(self) -> None:
        """Put the extension in its own place, as after an edit."""
        async with self.agent.scope.in_place_of(self.used):
            self.attempt()

    async def remove(self) -> None:
        """Take the extension away, look for what is left of it, and use it again."""
        for name in self.used:
            self.agent.remove(name)
        for each in self.agent.catalogs:
            more = sorted({*each} - self.names[each.noun])
            assert not more, f"it was removed, and the {each.noun} {more[0]!r} stands; {UNDO}"
        await self.agent.start()
        self.attempt()
        await self.agent.start()

    # what they are made of

    def of(self, which: int) -> Session:
        """One of the open sessions."""
        return self.open[which % len(self.open)]

    def attempt(self) -> None:
        """Use the extension."""
        self.used, error = self.composer.attempt(*self.what)
        assert error is None, error

    async def play(self, steps: Sequence[Step]) -> None:
        """Take the steps, and look at everything behind each."""
        before, heard = around(), Warnings()
        if self.witness is not None:
            self.witness.follow_tasks()
        logging.getLogger("crow").addHandler(heard)
        try:
            self.attempt()
            for name, *arguments in (("enter",), *steps):
                async with asyncio.timeout(LONGEST):
                    await getattr(self, name)(*arguments)
                    self.model.act = []
                self.look(heard)
            async with asyncio.timeout(LONGEST):
                await self.agent.close()
        except TimeoutError:
            raise AssertionError(f"a step did not end within {LONGEST:g} s") from None
        finally:
            logging.getLogger("crow").removeHandler(heard)
        self.look(heard)
        now = await settled(before)
        end(before)
        for finding in left(before, now, self.witness):
            place = f" ({finding.path}:{finding.line})" if finding.path else ""
            raise AssertionError(f"{finding.what}{place}; {finding.do}")

    def look(self, heard: Warnings) -> None:
        """Raise AssertionError for what is wrong."""
        for line in heard.said:
            assert not concerns(line, self.used), line
        for session in self.open:
            assert session.busy or not session.unanswered(), "a call was never answered"
            json.dumps(session.state)


def steps_with(tools: Mapping[str, Any], commands: Sequence[str]) -> st.SearchStrategy[list[Step]]:
    """Rows of steps, with the tools of an extension by their schemas, and its commands."""
    known: list[st.SearchStrategy[Any]] = [st.sampled_from(CALLS)]
    known += [st.tuples(st.just(name), values(schema)) for name, schema in tools.items()]
    act = st.lists(st.lists(st.one_of(known), min_size=1, max_size=3), max_size=3)
    which = st.integers(0, 2)
    own = [f"/{name} {word}".strip() for name in commands for word in WORDS]
    table: dict[str, tuple[st.SearchStrategy[Any], ...]] = {
        "prompt": (which, st.sampled_from(["Go on.", *COMMANDS, *own]), act),
        "cancel": (which, act, st.integers(0, 40)),
        "interrupt": (which, act),
        "at_once": (act,),
        "fail": (which,),
        "enter": (),
        "close": (which,),
        "load": (),
        "mode": (which, st.sampled_from(MODES)),
        "answer": (st.sampled_from(["allow_once", "reject_once", None]),),
        "reload": (),
        "remove": (),
    }
    steps = [st.tuples(st.just(name), *arguments) for name, arguments in table.items()]
    return st.lists(st.one_of(steps), min_size=1, max_size=STEPS)


def values(schema: Mapping[str, Any]) -> st.SearchStrategy[Any]:
    """Small and harmless values of a schema; of what it says in other words, texts."""
    match schema:
        case {"enum": [*known]} if known:
            return st.sampled_from(known)
        case {"anyOf": [*several]} | {"oneOf": [*several]} if several:
            return st.one_of([values(each) for each in several])
        case {"type": "object"}:
            table = {name: values(each) for name, each in schema.get("properties", {}).items()}
            needed = {name: table.pop(name) for name in schema.get("required", ()) if name in table}
            return st.fixed_dictionaries(needed, optional=table)
        case {"type": "array"}:
            return st.lists(values(schema.get("items", {})), max_size=2)
        case {"type": "integer" | "number"}:
            least = schema.get("minimum", 0)
            return st.integers(least, max(least, min(schema.get("maximum", 3), least + 3)))
        case {"type": "boolean"}:
            return st.booleans()
        case {"type": "null"}:
            return st.none()
        case _:
            return st.sampled_from(WORDS)


def brought(what: What) -> tuple[dict[str, Any], list[str]]:
    """The tools of an extension with their schemas, and its commands."""
    life = Life(what)
    life.attempt()
    tools, commands = life.agent.scope.tools, life.agent.scope.commands
    schemas = {name: tools[name].parameters for name in {*tools} - life.names[tools.noun]}
    return schemas, sorted({*commands} - life.names[commands.noun])


def lived(spec: str, plays: int, number: int) -> Iterator[Finding]:
    """What is wrong with an extension, and the shortest life that shows it."""
    try:
        name, source, thing = find(spec)
        what: What = (thing, name, source, True)
        tools, commands = brought(what)
    except (CrowError, AssertionError) as error:
        yield Finding.of(str(error))
        return
    failed: list[tuple[Exception, list[Step]]] = []
    until, witness = 0.0, OriginTracker(str(Path(hypothesis.__file__).parent))

    @seed(number)
    @settings(
        max_examples=plays,
        deadline=None,
        database=None,
        print_blob=False,
        report_multiple_bugs=False,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    @given(steps_with(tools, commands))
    def play(steps: list[Step]) -> None:
        nonlocal until
        if until and monotonic() > until and steps not in [each for _, each in failed]:
            return  # it is short enough
        with TemporaryDirectory(prefix="crow-life-") as folder:
            home, project = Path(folder, "home"), Path(folder, "project")
            for each in (home, project):
                each.mkdir()
            os.environ["HOME"] = str(home)
            os.chdir(project)
            try:
                asyncio.run(Life(what, witness).play(steps))
            except Exception as error:
                failed.append((error, steps))
                until = until or monotonic() + SHORTENED
                raise
            finally:
                os.chdir("/")

    try:
        with with_reporter(lambda text: None):
            play()
    except FlakyFailure:
        error, steps = failed[-1]
        yield from once(error, steps)
    except Exception:  # noqa: BLE001 - whatever it was, it is told
        error, steps = failed[-1]
        yield replace(Finding.of(_said(error)), steps=steps_as_text(steps))


def once(error: Exception, steps: Sequence[Step]) -> Iterator[Finding]:
    """What happened in one life and not again; what only took long is the machine's."""
    finding = Finding.of(_said(error), ONCE)
    if not finding.is_slow:
        yield replace(finding, steps=steps_as_text(steps))


def steps_as_text(steps: Sequence[Step]) -> tuple[str, ...]:
    """Steps as a person reads them."""
    return tuple(f"{name}({', '.join(map(repr, arguments))})" for name, *arguments in steps)


def _said(error: Exception) -> str:
    text = " ".join(str(error).split())
    return text if isinstance(error, AssertionError) else f"{type(error).__name__}: {text}"


def main(spec: str, file: str, plays: str, number: str) -> None:
    """Play an extension, and write down what is wrong."""
    lines = [json.dumps(each.table) for each in lived(spec, int(plays), int(number))]
    Path(file).write_text("".join(f"{line}\n" for line in lines), "utf-8")
    os._exit(0)  # whatever threads there are


if __name__ == "__main__":
    main(*sys.argv[1:])
