"""One firing: the handlers that match run side by side, and what they say is joined."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from crow import ModelError, Record, ToolContext
from crow.extensions.shell_hooks.entry import Entry
from crow.extensions.shell_hooks.environment import (
    command_line,
    directory,
    environment,
    of_plugin,
)
from crow.extensions.shell_hooks.http import HTTPFailedError
from crow.extensions.shell_hooks.memory import NAME, SECONDS, Memory, effort_of
from crow.extensions.shell_hooks.outcome import Outcome, concluded, failed
from crow.extensions.shell_hooks.output import Printed, without_faults
from crow.extensions.shell_hooks.payload import encoded, own_payload, payload
from crow.extensions.shell_hooks.process import GRACE, Program
from crow.extensions.shell_hooks.prompt import ask_model, call_tool
from crow.extensions.shell_hooks.spill import LIMIT, capped
from crow.extensions.shell_hooks.verifier import ask_agent
from crow.messages import context_block

if TYPE_CHECKING:
    from crow import Context

PATIENCE = 1.0  # seconds before a handler's status message is shown

Watch = Callable[[Entry, bytes, Printed], None]


@dataclass(slots=True)
class Firing:
    """An event that fires now: what its handlers are given, and where they run.

    ``main`` is the memory of the session that a person talks to. ``watch`` is told what each of
    them printed, ``spend`` takes away what was to run once.
    """

    ctx: Context
    whole: dict[str, Any]
    memory: Memory
    main: Memory
    project: str
    env_file: str | None = None
    watch: Watch | None = None
    spend: Callable[[Entry], None] = lambda entry: None

    async def run(self, entries: Sequence[Entry]) -> list[tuple[Entry, Outcome]]:
        """Start all handlers at once; the outcomes of those that are waited for, in order."""
        waited = [entry for entry in entries if not entry.detached]
        for entry in entries:
            if entry.detached:
                self._leave(entry, self._beside(entry), entry.spec.get("timeout"))
        outcomes = await asyncio.gather(*map(self._timed, waited))
        return list(zip(waited, outcomes, strict=True))

    async def _timed(self, entry: Entry) -> Outcome:
        """Run one handler, and put that into the trace."""
        began = perf_counter()
        outcome = self._settled(entry, await self._announced(entry))
        call = self.ctx.call.id if isinstance(self.ctx, ToolContext) else None
        seconds = perf_counter() - began
        error = outcome.notice or None
        answer = {"outcome": outcome.kind, **(outcome.output.fields or {})}
        if outcome.block is not None:
            answer["block"] = outcome.block
        record = Record(entry.event.name, NAME, str(entry), answer, (), error, seconds, call)
        self.ctx.session.trace.add(record)
        return outcome

    async def _announced(self, entry: Entry) -> Outcome:
        """Run one handler; its status message is shown where that takes a while."""
        text = entry.spec.get("statusMessage")
        if not text:
            return await self._handled(entry)
        done = asyncio.Event()
        teller = asyncio.create_task(self._tell(text, done))
        try:
            return await self._handled(entry)
        finally:
            done.set()
            await teller

    async def _tell(self, text: str, done: asyncio.Event) -> None:
        try:
            async with asyncio.timeout(PATIENCE):
                await done.wait()
        except TimeoutError:
            await self.ctx.ui.notify(text)

    def _settled(self, entry: Entry, outcome: Outcome) -> Outcome:
        """Take away what was to run once and succeeded."""
        if entry.once and outcome.kind == "success":
            self.spend(entry)
        return outcome

    async def _handled(self, entry: Entry) -> Outcome:
        if entry.kind == "command":
            return await self._command(entry)
        try:
            async with asyncio.timeout(entry.timeout):
                return await self._asked(entry)
        except TimeoutError:
            return failed(entry, f"took longer than {entry.timeout:g} s", kind="cancelled")
        except (HTTPFailedError, ModelError, OSError) as error:
            return failed(entry, str(error))

    async def _asked(self, entry: Entry) -> Outcome:
        """Run a handler that is no program."""
        body = self.body(entry)
        if entry.kind == "agent":
            path = self.whole["transcript_path"]
            return await ask_agent(entry, self.ctx, body.decode().strip(), path)
        if entry.kind == "prompt":
            return await ask_model(entry, self.ctx, body.decode().strip())
        if entry.kind == "http":
            printed: Printed | str | None = await self.memory.web.ask(
                entry.spec, body, self.env(entry)
            )
        else:
            printed = await call_tool(entry, self.ctx, self.whole)
        if printed is None:
            return Outcome()
        if isinstance(printed, str):
            return failed(entry, printed)
        self._show(entry, body, printed)
        outcome = self.conclude(entry, printed)
        if entry.kind == "http" and outcome.output.plain:
            return failed(entry, "the answer is no JSON object")
        return outcome

    async def _command(self, entry: Entry) -> Outcome:
        """Run a program, no longer than it may."""
        body = self.body(entry)
        try:
            program = await self._start(entry, body)
        except (OSError, ValueError) as error:
            return failed(entry, f"it cannot be started: {error}")
        try:
            async with asyncio.timeout(entry.timeout):
                await program.decided.wait()
        except TimeoutError:
            await program.stop(GRACE)
            program.close()
            return failed(entry, f"took longer than {entry.timeout:g} s", kind="cancelled")
        except asyncio.CancelledError:
            await program.end()
            raise
        if program.detached:
            self._leave(entry, self._follow(entry, program, body), program.limit)
            return Outcome()
        printed = await self._collect(program)
        self._show(entry, body, printed)
        return self.conclude(entry, printed)

    async def _start(self, entry: Entry, body: bytes) -> Program:
        env = self.env(entry)
        cwd = directory(self.ctx.cwd, self.ctx.session.root.cwd, self.project)
        program = Program(self.main.reaper)
        await program.feed(command_line(entry, env), body, cwd, env)
        return program

    async def _collect(self, program: Program) -> Printed:
        try:
            return await program.printed()
        except asyncio.CancelledError:
            await program.end()
            raise
        finally:
            program.close()

    def _leave(self, entry: Entry, work: Coroutine[Any, Any, None], seconds: float | None) -> None:
        """Let something run on beside the conversation: a sub-agent's is its caller's as well.

        What a session begins with is its surroundings, and no end of a run waits for that.
        """
        task = self.ctx.session.root.spawn(work)
        task.set_name(f"{entry.event.name} hook [{entry}]")
        is_setting_up = entry.event.name in ("SessionStart", "Setup")
        self.main.watch(task, 0.0 if is_setting_up else seconds or SECONDS)

    async def _beside(self, entry: Entry) -> None:
        """Run a handler that nobody waits for."""
        body = self.body(entry)
        if entry.kind != "command":
            self.deliver(entry, self._settled(entry, await self._handled(entry)))
            return
        try:
            program = await self._start(entry, body)
        except (OSError, ValueError) as error:
            await self.ctx.ui.notify(failed(entry, str(error)).notice, severity="warning")
            return
        await self._follow(entry, program, body)

    async def _follow(self, entry: Entry, program: Program, body: bytes) -> None:
        """Wait for a program in the background; what it says reaches the model's next turn."""
        limit = entry.timeout if entry.spec.get("asyncRewake") else program.limit
        try:
            async with asyncio.timeout(limit):
                printed = await self._collect(program)
        except TimeoutError:
            return
        self._show(entry, body, printed)
        if entry.spec.get("asyncRewake") and printed.code == 2:
            self._wake(entry, printed)
        else:
            sound = replace(printed, stdout=without_faults(entry.event, printed.stdout))
            self.deliver(entry, self._settled(entry, self.conclude(entry, sound)))

    def _wake(self, entry: Entry, printed: Printed) -> None:
        said = printed.stderr.strip() or printed.stdout.strip()
        if said:
            session = self.ctx.session
            text = capped(f"{entry.event.name} hook in the background: {said}", self.memory.folder)
            reminder = f"<system-reminder>\n{text}\n</system-reminder>"
            self.ctx.agent.steer(session, reminder)

    def deliver(self, entry: Entry, outcome: Outcome) -> None:
        """Put what a handler in the background said before the model's next turn."""
        for said in (outcome.context, outcome.message):
            if said:
                text = f"{entry.event.name} hook in the background: {said}"
                self.ctx.session.pending.append(context_block(text, NAME))

    def conclude(self, entry: Entry, printed: Printed) -> Outcome:
        """What was printed means this; texts that are too long are in files."""
        outcome = concluded(entry, printed)
        texts = (outcome.context, outcome.message)
        if all(len(text) <= LIMIT for text in texts):
            return outcome
        context, message = (capped(text, self.memory.folder) for text in texts)
        return replace(outcome, context=context, message=message)

    def body(self, entry: Entry) -> bytes:
        """What a handler is given."""
        return encoded(own_payload(self.ctx, self.whole) if entry.own else self.whole)

    def env(self, entry: Entry) -> dict[str, str]:
        """The environment of a handler. Raises ``OSError``."""
        session = self.ctx.session.root
        env = environment(
            self.ctx.environment, self.project, session.id, self.env_file, effort_of(session)
        )
        return env if entry.plugin is None else env | of_plugin(entry.plugin)

    def _show(self, entry: Entry, body: bytes, printed: Printed) -> None:
        if self.watch is not None:
            self.watch(entry, body, printed)


def place(
    ctx: Context, fields: Mapping[str, Any], entry: Entry, folder: Path, project: str
) -> Firing:
    """The firing of an event in a session; its transcript is brought up to date."""
    memory = Memory.of(ctx.session, folder)
    root = ctx.session.root
    main = memory if root is ctx.session else Memory.of(root, folder)
    for each in {id(memory): memory, id(main): main}.values():
        each.transcript.sync()
    whole = payload(entry.event, ctx, fields, memory, main)
    return Firing(ctx, whole, memory, main, project)
