"""From a command's file to a prompt: shell lines run and files are read as if the model had asked.

Each is a tool call that goes the way of the model's own: judged by the same gates, asked about,
stored and shown. A command permits nothing.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crow import Call
from crow.extensions.commands.recipe import Piece

if TYPE_CHECKING:
    from crow import CommandContext

SHELL = "Bash"
READER = "Read"


async def expand(ctx: CommandContext, pieces: Sequence[Piece], roots: Sequence[str] = ()) -> str:
    """The prompt. Files may also lie in ``roots``. Raises `CrowError` where it cannot be had."""
    assert ctx.run is not None
    calls: list[Call | None] = [await _call_of(ctx, piece, roots) for piece in pieces]
    ended = iter(await ctx.agent.call_tools(ctx.run, filter(None, calls)))
    text: list[str] = []
    files: list[str] = []
    for piece, call in zip(pieces, calls, strict=True):
        result = next(ended).output if call is not None else ""
        match piece.kind:
            case "text":
                text.append(piece.text)
            case "shell":
                text.append(result.strip())
            case "file":
                text.append(f"@{piece.text}")
                if call is not None:
                    path = call.args["file_path"]
                    files.append(f'<file path="{path}">\n{result}\n</file>')
    return "\n\n".join(["".join(text).strip(), *dict.fromkeys(files)])


async def _call_of(ctx: CommandContext, piece: Piece, roots: Sequence[str]) -> Call | None:
    """The tool call for a piece; None where there is nothing to call."""
    match piece.kind:
        case "shell" if piece.text:
            told = f"For the command /{ctx.command}"
            return _call(SHELL, {"command": piece.text, "description": told})
        case "file":
            path = await _within(ctx, piece.text, roots)
            return _call(READER, {"file_path": str(path)}) if path else None
        case _:
            return None


def _call(tool: str, args: dict[str, Any]) -> Call:
    return Call(f"command-{uuid.uuid4().hex[:12]}", tool, args)


async def _within(ctx: CommandContext, written: str, more: Sequence[str]) -> Path | None:
    """The file that is meant; None where there is no such file in the session's directories."""
    path = Path(ctx.cwd, written.replace("\\ ", " "))
    try:
        real = path.resolve()
        if not real.is_file():
            return None
        roots = [Path(root).resolve() for root in (*ctx.roots, *more)]
    except (OSError, ValueError, RuntimeError):
        return None
    if any(real.is_relative_to(root) for root in roots):
        return path
    text = f"/{ctx.command}: {written} is outside of the session's directories and left out"
    await ctx.ui.notify(text, severity="warning")
    return None
