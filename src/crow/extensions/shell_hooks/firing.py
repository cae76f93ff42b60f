"""One firing: the handlers that match run side by side, and what they say is joined."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field, replace
from inspect import isawaitable
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from crow import ToolContext
from crow.errors import ModelError
from crow.extensions.shell_hooks.environment import (
    SKILL,
    command_line,
    directory,
    environment,
    of_plugin,
)
from crow.extensions.shell_hooks.handler import Handler
from crow.extensions.shell_hooks.http import HTTPFailedError
from crow.extensions.shell_hooks.memory import NAME, SECONDS, Memory, effort_of
from crow.extensions.shell_hooks.outcome import Outcome, concluded, failed
from crow.extensions.shell_hooks.output import RawOutput, without_faults
from crow.extensions.shell_hooks.payload import encoded, own_payload, payload
from crow.extensions.shell_hooks.process import GRACE, Program
from crow.extensions.shell_hooks.prompt import ask_model, call_tool
from crow.extensions.shell_hooks.report import Report
from crow.extensions.shell_hooks.spill import LIMIT, capped
from crow.extensions.shell_hooks.verifier import ask_agent
from crow.hooks import Record
from crow.keys import PROGRAMS
from crow.messages import context_block

if TYPE_CHECKING:
    from crow import Context

PATIENCE = 1.0  # seconds before a handler's status message is shown

Watch = Callable[[Handler, bytes, RawOutput], None]


@dataclass(slots=True)
class Firing:
    """An event that fires now: what its handlers are given, and where they run.

    ``main`` is the memory of the session that a person talks to, ``about`` what matchers look at.
    ``watch`` is told what each of them printed, ``spend`` takes away what was to run once.
    """

    ctx: Context
    whole: dict[str, Any]
    memory: Memory
    main: Memory
    project: str
    about: str = ""
    env_file: str | None = None
    watch: Watch | None = None
    spend: Callable[[Handler], None] = lambda handler: None
    reports: dict[int, Report] = field(default_factory=dict[int, Report])

    def report(self, handler: Handler) -> Report:
        """What the client is told of a handler."""
        if id(handler) not in self.reports:
            self.reports[id(handler)] = Report(handler, self.ctx, self.about)
        return self.reports[id(handler)]

    async def run(self, entries: Sequence[Handler]) -> list[tuple[Handler, Outcome]]:
        """Start all handlers at once; the outcomes of those that are waited for, in order."""
        waited = [handler for handler in entries if not handler.detached]
        for handler in entries:
            if handler.detached:
                self._leave(handler, self._beside(handler), handler.spec.get("timeout"))
        outcomes = await asyncio.gather(*map(self._timed, waited))
        return list(zip(waited, outcomes, strict=True))

    async def _timed(self, handler: Handler) -> Outcome:
        """Run one handler, and put that into the trace."""
        began = perf_counter()
        outcome = self._settled(handler, await self._reported(handler))
        call = self.ctx.call.id if isinstance(self.ctx, ToolContext) else None
        seconds = perf_counter() - began
        error = outcome.notice or None
        answer = {"outcome": outcome.kind, **(outcome.output.fields or {})}
        if outcome.block is not None:
            answer["block"] = outcome.block
        record = Record(handler.event.name, NAME, str(handler), answer, (), error, seconds, call)
        self.ctx.session.trace.add(record)
        return outcome

    async def _reported(self, handler: Handler) -> Outcome:
        """Run one handler; a client that follows hooks is told."""
        report = self.report(handler)
        report.begin()
        try:
            outcome = await self._announced(handler)
        except asyncio.CancelledError:
            report.end(None)
            raise
        if not report.goes_on:
            report.end(outcome)
        return outcome

    async def _announced(self, handler: Handler) -> Outcome:
        """Run one handler; its status message is shown where that takes a while."""
        text = handler.spec.get("statusMessage")
        if not text:
            return await self._handled(handler)
        done = asyncio.Event()
        teller = asyncio.create_task(self._tell(text, done))
        try:
            return await self._handled(handler)
        finally:
            done.set()
            await teller

    async def _tell(self, text: str, done: asyncio.Event) -> None:
        try:
            async with asyncio.timeout(PATIENCE):
                await done.wait()
        except TimeoutError:
            await self.ctx.ui.notify(text)

    def _settled(self, handler: Handler, outcome: Outcome) -> Outcome:
        """Take away what was to run once and succeeded."""
        if handler.once and outcome.kind == "success":
            self.spend(handler)
        return outcome

    async def _handled(self, handler: Handler) -> Outcome:
        if handler.kind == "unreadable":
            return failed(handler, handler.spec["fault"])
        if handler.kind == "command":
            return await self._command(handler)
        try:
            async with asyncio.timeout(handler.timeout):
                return await self._asked(handler)
        except TimeoutError:
            return failed(handler, f"took longer than {handler.timeout:g} s", kind="cancelled")
        except (HTTPFailedError, ModelError, OSError) as error:
            return failed(handler, str(error))

    async def _asked(self, handler: Handler) -> Outcome:
        """Run a handler that is no program."""
        body = self.body(handler)
        if handler.kind == "callback":
            return await self._called(handler, body)
        if handler.kind == "agent":
            path = self.whole["transcript_path"]
            return await ask_agent(handler, self.ctx, body.decode().strip(), path)
        if handler.kind == "prompt":
            return await ask_model(handler, self.ctx, body.decode().strip())
        if handler.kind == "http":
            printed: RawOutput | str | None = await self.memory.web.ask(
                handler.spec, body, self.env(handler)
            )
        else:
            printed = await call_tool(handler, self.ctx, self.whole)
        if printed is None:
            return Outcome()
        if isinstance(printed, str):
            return failed(handler, printed)
        self._show(handler, body, printed)
        outcome = self.conclude(handler, printed)
        if handler.kind == "http" and outcome.output.plain:
            return failed(handler, "the answer is no JSON object")
        return outcome

    async def _called(self, handler: Handler, body: bytes) -> Outcome:
        """Call a function; one that fails has not decided."""
        call_id = self.ctx.call.id if isinstance(self.ctx, ToolContext) else None
        try:
            said = handler.spec["callback"](json.loads(body), call_id)
            said = await said if isawaitable(said) else said
            printed = RawOutput(0, json.dumps(said or {}))
        except Exception as error:  # noqa: BLE001 - it is somebody else's function
            return failed(handler, f"{type(error).__name__}: {error}", unread=True)
        self._show(handler, body, printed)
        return self.conclude(handler, printed)

    async def _command(self, handler: Handler) -> Outcome:
        """Run a program, no longer than it may."""
        body = self.body(handler)
        try:
            program = await self._start(handler, body)
        except (OSError, ValueError) as error:
            return failed(handler, f"it cannot be started: {error}")
        report = self.report(handler)
        try:
            async with asyncio.timeout(handler.timeout), report.following(program):
                await program.decided.wait()
        except TimeoutError:
            await program.stop(GRACE)
            program.close()
            return failed(handler, f"took longer than {handler.timeout:g} s", kind="cancelled")
        except asyncio.CancelledError:
            await program.end()
            raise
        if program.detached:
            report.goes_on = True
            self._leave(handler, self._follow(handler, program, body), program.limit)
            return Outcome()
        printed = await self._collect(program)
        self._show(handler, body, printed)
        return self.conclude(handler, printed)

    async def _start(self, handler: Handler, body: bytes) -> Program:
        env = self.env(handler)
        cwd = directory(self.ctx.cwd, self.ctx.session.root.cwd, self.project)
        program = Program(self.main.reaper)
        launcher = (PROGRAMS.get(self.ctx) or {}).get("hooks")
        await program.feed(command_line(handler, env), body, cwd, env, launcher)
        return program

    async def _collect(self, program: Program) -> RawOutput:
        try:
            return await program.printed()
        except asyncio.CancelledError:
            await program.end()
            raise
        finally:
            program.close()

    def _leave(
        self, handler: Handler, work: Coroutine[Any, Any, None], seconds: float | None
    ) -> None:
        """Let something run on beside the conversation: a sub-agent's is its caller's as well.

        What a session begins with is its surroundings, and no end of a run waits for that.
        """
        task = self.ctx.session.root.spawn(work)
        task.set_name(f"{handler.event.name} hook [{handler}]")
        is_setting_up = handler.event.name in ("SessionStart", "Setup")
        self.main.watch(task, 0.0 if is_setting_up else seconds or SECONDS)

    async def _beside(self, handler: Handler) -> None:
        """Run a handler that nobody waits for."""
        body, report = self.body(handler), self.report(handler)
        if handler.kind != "command":
            self.deliver(handler, self._settled(handler, await self._reported(handler)))
            return
        report.begin()
        try:
            program = await self._start(handler, body)
        except (OSError, ValueError) as error:
            outcome = failed(handler, str(error))
            report.end(outcome)
            await self.ctx.ui.notify(outcome.notice, severity="warning")
            return
        await self._follow(handler, program, body)

    async def _follow(self, handler: Handler, program: Program, body: bytes) -> None:
        """Wait for a program in the background; what it says reaches the model's next turn."""
        limit = handler.timeout if handler.spec.get("asyncRewake") else program.limit
        report = self.report(handler)
        try:
            async with asyncio.timeout(limit), report.following(program):
                printed = await self._collect(program)
        except (TimeoutError, asyncio.CancelledError) as error:
            report.end(None)
            if isinstance(error, TimeoutError):
                return
            raise
        self._show(handler, body, printed)
        sound = replace(printed, stdout=without_faults(handler.event, printed.stdout))
        outcome = self.conclude(handler, sound)
        report.end(outcome)
        if handler.spec.get("asyncRewake") and printed.code == 2:
            self._wake(handler, printed)
        else:
            self.deliver(handler, self._settled(handler, outcome))

    def _wake(self, handler: Handler, printed: RawOutput) -> None:
        said = printed.stderr.strip() or printed.stdout.strip()
        if said:
            session = self.ctx.session
            text = capped(
                f"{handler.event.name} hook in the background: {said}", self.memory.folder
            )
            reminder = f"<system-reminder>\n{text}\n</system-reminder>"
            self.ctx.agent.steer(session, reminder)

    def deliver(self, handler: Handler, outcome: Outcome) -> None:
        """Put what a handler in the background said before the model's next turn."""
        for said in (outcome.context, outcome.message):
            if said:
                text = f"{handler.event.name} hook in the background: {said}"
                self.ctx.session.pending.append(context_block(text, NAME))

    def conclude(self, handler: Handler, printed: RawOutput) -> Outcome:
        """What was printed means this; texts that are too long are in files."""
        outcome = concluded(handler, printed)
        texts = (outcome.context, outcome.message)
        if all(len(text) <= LIMIT for text in texts):
            return outcome
        context, message = (capped(text, self.memory.folder) for text in texts)
        return replace(outcome, context=context, message=message)

    def body(self, handler: Handler) -> bytes:
        """What a handler is given."""
        return encoded(own_payload(self.ctx, self.whole) if handler.own else self.whole)

    def env(self, handler: Handler) -> dict[str, str]:
        """The environment of a handler. Raises ``OSError``."""
        session = self.ctx.session.root
        env = environment(
            self.ctx.environment, self.project, session.id, self.env_file, effort_of(session)
        )
        mine = {SKILL: handler.skill} if handler.skill else {}
        return env | mine | (of_plugin(handler.plugin) if handler.plugin else {})

    def _show(self, handler: Handler, body: bytes, printed: RawOutput) -> None:
        self.report(handler).printed = printed
        if self.watch is not None:
            self.watch(handler, body, printed)


def place(
    ctx: Context, fields: Mapping[str, Any], handler: Handler, folder: Path, project: str
) -> Firing:
    """The firing of an event in a session; its transcript is brought up to date."""
    memory = Memory.of(ctx.session, folder)
    root = ctx.session.root
    main = memory if root is ctx.session else Memory.of(root, folder)
    for each in {id(memory): memory, id(main): main}.values():
        each.transcript.sync()
    whole = payload(handler.event, ctx, fields, memory, main)
    return Firing(ctx, whole, memory, main, project)
