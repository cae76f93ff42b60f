"""Ripgrep: where its program is, and running it with a bounded answer."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from pathlib import Path

from crow.tools.errors import ToolError

MOST = 8 * 1024 * 1024
_PIECE = 256 * 1024


@dataclass(frozen=True, slots=True)
class Answer:
    """What ripgrep printed; ``is_cut`` where it was ended because it printed too much."""

    output: bytes
    is_cut: bool


def program() -> str | None:
    """The program: on the PATH, or beside the interpreter, where the wheel puts it."""
    import shutil

    return shutil.which("rg") or shutil.which("rg", path=str(Path(sys.executable).parent))


async def ask(argv: Sequence[str], cwd: str) -> Answer:
    """Run it. Raises `ToolError` with its own words where it fails, ``OSError``."""
    process = await asyncio.create_subprocess_exec(
        *argv,
        cwd=cwd,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
        limit=_PIECE,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    errors = asyncio.create_task(process.stderr.read())
    try:
        output, is_cut = await _collect(process.stdout)
        if not is_cut:
            await process.wait()
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
        said = await errors
    if process.returncode == 2 and not output:
        raise ToolError(_complaint(said))
    return Answer(output, is_cut)


async def _collect(stream: asyncio.StreamReader) -> tuple[bytes, bool]:
    pieces: list[bytes] = []
    size = 0
    while size <= MOST:
        piece = await stream.read(_PIECE)
        if not piece:
            return b"".join(pieces), False
        pieces.append(piece)
        size += len(piece)
    return b"".join(pieces), True


def _complaint(said: bytes) -> str:
    text = said.decode("utf-8", "replace").strip()
    return text.removeprefix("rg: ")[:2000] or "The search failed."


@contextlib.contextmanager
def only(glob: str, *, by_type: bool = True) -> Generator[list[str]]:
    """Options that leave the files of a glob, and of those the ones that are not ignored.

    Ripgrep's own ``--glob`` would bring back files that ``.gitignore`` names. A glob for names is
    made a file type of its own, unless ``by_type`` is False (types add up); any other becomes an
    ignore file, whose answer `is_wanted` must confirm, since ``.gitignore`` can overrule it.
    """
    name = glob.removeprefix("**/")
    if not glob:
        yield []
    elif by_type and "/" not in name and not name.startswith("!"):
        yield ["--type-add", f"crow:{name}", "--type", "crow"]
    else:
        with _ignore_file(glob) as path:
            yield ["--ignore-file", path]


@contextlib.contextmanager
def _ignore_file(glob: str) -> Generator[str]:
    import tempfile

    rules = [glob[1:]] if glob.startswith("!") else ["*", "!*/", f"!{glob}"]
    descriptor, path = tempfile.mkstemp(prefix="crow-", suffix=".ignore")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write("\n".join([*rules, ""]))
        yield path
    finally:
        Path(path).unlink(missing_ok=True)


def common() -> list[str]:
    """Options of every search: no configuration of the user's, hidden files, never ``.git``."""
    return [
        "--no-config",
        "--no-messages",
        "--hidden",
        "--glob",
        "!.git",
        "--no-require-git",
        "--color",
        "never",
    ]
