"""Bash: runs a command line, shows its output while it runs, and ends it in time."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from crow.core.ports.client import Terminal, Terminals
from crow.core.ports.tool import ToolEnvironment
from crow.core.support.tasks import Begun, nobodys
from crow.core.tools import ToolResult
from crow.keys import ENDING, ENV_FILE, JOBS
from crow.tools.errors import ToolError
from crow.tools.output import readable
from crow.tools.process import Process
from crow.tools.shells import BackgroundCommand, Shells, sourced
from crow.tools.spill import clip, outputs

LIMIT = 30_000
MAX_TIMEOUT = 600_000
GRACE = 2.0
CANCEL_GRACE = 0.3
_DRAIN = 0.2
_BEAT = 0.05
_QUIET = "(no output)"
Progress = Callable[[str], Awaitable[None]]


async def preview(ctx: ToolEnvironment, command: str, **_: Any) -> None:
    """Nothing but why it cannot be started; of a client's terminals nobody knows."""
    if not command.strip():
        raise ToolError("There is no command in it.")
    if ctx.client.terminals is None and not await asyncio.to_thread(Path(ctx.cwd).is_dir):
        raise ToolError(f"bash cannot be started: the directory {ctx.cwd} is not there.")


async def run(ctx: ToolEnvironment, command: str, timeout: int) -> ToolResult:
    """Run a command line until its end, ``timeout`` milliseconds at most.

    What is confined runs here, where it can be: nobody confines a terminal of a client's.
    """
    seconds = min(max(timeout, 1), MAX_TIMEOUT) / 1000
    if ctx.client.terminals is not None and ctx.launcher is None:
        line = sourced(command, ENV_FILE.get(ctx))
        terminal = await _create(ctx.client.terminals, line, ctx)
        if terminal is not None:
            return await _watch_terminal(terminal, ctx, seconds)
    shells = Shells.of(ctx)
    process = await shells.start(
        command, ctx.cwd, limit=LIMIT, is_background=False, launcher=ctx.launcher
    )
    try:
        return await follow(process, ctx.progress, seconds)
    except asyncio.CancelledError:
        await _end_behind(process, shells, ctx)
        raise
    finally:
        shells.release(process)


async def _end_behind(process: Process, shells: Shells, ctx: ToolEnvironment) -> None:
    """End a command of a call that was cancelled; one that takes its time is not waited for."""
    ending = nobodys(shells.end(process, CANCEL_GRACE))
    others = ENDING.setdefault(ctx, set())
    others.add(ending)
    ending.add_done_callback(others.discard)
    await asyncio.wait({ending}, timeout=_BEAT / 2)


async def follow(process: Process, progress: Progress, seconds: float | None = None) -> ToolResult:
    """Follow a command to its end, which comes after ``seconds`` at the latest; what came of it."""
    began = time.monotonic()
    is_late = await _wait(process, progress, seconds)
    return _result(process, is_late, time.monotonic() - began)


async def _wait(process: Process, progress: Progress, seconds: float | None) -> bool:
    """Wait for the end, showing output meanwhile; True where it had to be ended.

    What ends at once is shown in one piece, which needs no task beside it.
    """
    over = asyncio.Event()
    show: asyncio.Task[None] | None = None
    try:
        beat = _BEAT if seconds is None else min(_BEAT, seconds)
        if not await process.wait(beat):
            show = asyncio.create_task(_show(process, progress, over))
            async with asyncio.timeout(None if seconds is None else seconds - beat):
                await process.exited.wait()
    except TimeoutError:
        await process.stop(GRACE)
        return True
    except asyncio.CancelledError:
        if show is not None:
            show.cancel()
        raise
    else:
        await process.settle(_DRAIN)
        if show is None and (text := process.take()):
            await _soon(progress(text))
        return False
    finally:
        if show is not None:
            over.set()
            process.news.set()
            await _finish(show)


async def _show(process: Process, progress: Progress, over: asyncio.Event) -> None:
    """Tell whoever watches what was printed, a few times a second at most."""
    is_over = False
    while not is_over:
        await process.news.wait()
        process.news.clear()
        is_over = over.is_set()
        if text := process.take():
            await progress(text)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(over.wait(), _BEAT)


async def _soon(telling: Awaitable[None]) -> None:
    """Tell whoever watches, but do not wait for a client that takes nothing."""
    if (begun := Begun(telling)).done:
        return
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_DRAIN):
            await begun


async def _finish(show: asyncio.Task[None]) -> None:
    """Let the last output be shown, but do not wait for a client that takes nothing."""
    await asyncio.wait([show], timeout=_DRAIN)
    show.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await show


def _result(process: Process, is_late: bool, seconds: float) -> ToolResult:
    process.flush()
    where = process.spool.whereabouts
    note = f"; {where}" if where else ""
    stdout, stderr = (process.streams[fd].text(note) for fd in (1, 2))
    printed = "\n".join(text.rstrip("\n") for text in (stdout, stderr) if text.strip())
    data = {"stdout": stdout, "stderr": stderr, "interrupted": is_late, "isImage": False}
    code = process.code or 0
    head = [f"Exit code {code if code >= 0 else 128 - code}"] if code or is_late else []
    if is_late:
        head.append(f"Timed out: ended after {seconds:.1f} s. The output until then:")
    elif code < 0:
        head.append(f"Killed by {_signal_name(-code)}.")
    tail = [] if not process.has_members() else ["(it left processes running in the background)"]
    text = "\n".join([*head, printed or _QUIET, *tail])
    return ToolResult(text, error=bool(code) or is_late, data=data)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


async def run_in_background(ctx: ToolEnvironment, command: str) -> ToolResult:
    """Start a command line that goes on by itself."""
    shells = Shells.of(ctx)
    process = await shells.start(
        command, ctx.cwd, limit=LIMIT, is_background=True, launcher=ctx.launcher
    )
    name = shells.register(process)
    JOBS.setdefault(ctx, {})[name] = BackgroundCommand(process)
    data = {"stdout": "", "stderr": "", "interrupted": False, "backgroundTaskId": name}
    return ToolResult(
        f"Running in the background as {name}. BashOutput reads what it prints, "
        "KillShell ends it; it ends with the session at the latest.",
        data=data,
    )


async def _create(terminals: Terminals, command: str, ctx: ToolEnvironment) -> Terminal | None:
    """A terminal of the client's with the command in it; None where it cannot make one.

    What it has in its environment is not known: keys are emptied that it may have handed on.
    """
    given = ctx.environment
    env = dict.fromkeys((name for name in os.environ if name not in given), "")
    try:
        return await terminals.create("bash", ["-c", command], cwd=ctx.cwd, env=env, limit=LIMIT)
    except OSError:
        return None


async def _watch_terminal(terminal: Terminal, ctx: ToolEnvironment, seconds: float) -> ToolResult:
    """Wait for a command that runs where the user sees it."""
    try:
        await ctx.progress("", terminal=terminal.id)
        code, name, is_late = await _wait_terminal(terminal, seconds)
        output, is_cut = await terminal.output()
    except OSError as error:
        raise ToolError(f"The client's terminal failed: {error}.") from error
    finally:
        with contextlib.suppress(OSError):
            await asyncio.shield(terminal.release())
    return _terminal_result(terminal, ctx, output, is_cut, (code, name, is_late))


async def _wait_terminal(terminal: Terminal, seconds: float) -> tuple[int | None, str | None, bool]:
    try:
        async with asyncio.timeout(seconds):
            return (*await terminal.wait(), False)
    except TimeoutError:
        await terminal.kill()
        return 143, None, True
    except asyncio.CancelledError:
        with contextlib.suppress(OSError, TimeoutError):
            async with asyncio.timeout(CANCEL_GRACE):
                await terminal.kill()
        raise


def _terminal_result(
    terminal: Terminal,
    ctx: ToolEnvironment,
    output: str,
    is_cut: bool,
    ended: tuple[int | None, str | None, bool],
) -> ToolResult:
    code, name, is_late = ended
    printed, _ = clip(readable(output), LIMIT, lambda: outputs(ctx.session_id))
    is_bad = bool(code) or name is not None or is_late
    head = [f"Exit code {128 if code is None else code}"] if is_bad else []
    if is_late:
        head.append("Timed out. The output until then:")
    elif name is not None:
        head.append(f"Killed by {name}.")
    if is_cut:
        head.append("(the beginning of the output was cut off)")
    text = "\n".join([*head, printed.rstrip("\n") or _QUIET])
    data = {"stdout": printed, "stderr": "", "interrupted": is_late, "isImage": False}
    return ToolResult(text, error=is_bad, data=data, terminal=terminal.id)
