"""BashOutput and KillShell: the companions of commands that run in the background."""

from __future__ import annotations

import asyncio
import re

from crow.core.ports.tool import ToolEnvironment
from crow.core.tools import ToolResult
from crow.tools.bash import GRACE, LIMIT
from crow.tools.errors import ToolError
from crow.tools.process import Process
from crow.tools.shells import Shells, status
from crow.tools.spill import clip, outputs

_LONGEST_WAIT = 600_000


async def preview(ctx: ToolEnvironment, **args: str | int) -> None:
    """Nothing but that there is no such command."""
    Shells.of(ctx).find(str(args.get("bash_id") or args.get("shell_id")))


async def show(ctx: ToolEnvironment, bash_id: str, lines: str, wait: int) -> ToolResult:
    """Show what was printed since the last look, after ``wait`` milliseconds at most."""
    process = Shells.of(ctx).find(bash_id)
    pattern = _pattern(lines)
    await _wait(process, min(max(wait, 0), _LONGEST_WAIT) / 1000)
    text = process.take()
    if pattern:
        text = "\n".join(line for line in text.split("\n") if pattern.search(line))
    shown, _ = clip(text, LIMIT, lambda: outputs(ctx.session_id))
    state = status(process)
    process.is_reported = process.is_reported or state != "running"
    process.spool.flush()
    where = f"\n(the whole output is in {process.spool.path})" if process.spool.path else ""
    data = {
        "shellId": bash_id,
        "command": process.command,
        "status": state,
        "exitCode": process.code,
        "stdout": shown,
        "stderr": "",
    }
    code = "" if process.code is None else f", exit code {process.code}"
    body = shown.rstrip("\n") or "(nothing new)"
    return ToolResult(f"{bash_id}: {state}{code}\n{body}{where}", data=data)


async def end(ctx: ToolEnvironment, shell_id: str) -> ToolResult:
    """End a command and everything that it started."""
    shells = Shells.of(ctx)
    process = shells.find(shell_id)
    data = {"shell_id": shell_id, "message": f"{shell_id} had ended already."}
    process.is_reported = True
    if process.has_members():
        await process.stop(GRACE)
        data["message"] = f"{shell_id} was ended: {process.command}"
    shells.release(process)
    return ToolResult(data["message"], data=data)


async def _wait(process: Process, seconds: float) -> None:
    if seconds:
        try:
            async with asyncio.timeout(seconds):
                await process.exited.wait()
        except TimeoutError:
            return
        await process.settle(0.2)


def _pattern(text: str) -> re.Pattern[str] | None:
    try:
        return re.compile(text) if text else None
    except re.error as error:
        raise ToolError(f"filter: no regular expression: {error}") from error
