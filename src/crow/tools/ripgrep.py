"""Ripgrep: where its program is, and running it with bounded memory, time and answer."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import sysconfig
from collections.abc import Generator, Sequence
from pathlib import Path

from crow.core.support.frozen import frozen
from crow.tools.errors import ToolError

MOST = 8 * 1024 * 1024
PATIENCE = 30.0
LARGEST = "256M"
_MEMORY = 1024 * 1024 * 1024
_PIECE = 256 * 1024
INHERITED = ("HOME", "XDG_CONFIG_HOME", "PATH", "LANG", "LC_ALL", "USERPROFILE", "SYSTEMROOT")
"""All that it finds in its environment."""


@frozen
class RipgrepOutput:
    """The output of ripgrep; ``is_cut`` where it was ended before it had printed all.

    ``why`` says in a line that people read what ended it.
    """

    output: bytes
    why: str = ""

    @property
    def is_cut(self) -> bool:
        """True where something is missing."""
        return bool(self.why)


TOO_MUCH = "There is more; a narrower search shows it."
TOO_LONG = f"The search was ended after {PATIENCE:g} s; a narrower one looks at all."
TOO_BIG = "A line of a file is too long for the memory that a search may take."


def find_ripgrep() -> str | None:
    """The program that the wheel brings, else the one on the PATH.

    Ripgrep of distributions is years old; what is beside the interpreter is known.
    """
    import shutil

    own = (str(Path(sys.executable).parent), sysconfig.get_path("scripts"))
    return shutil.which("rg", path=os.pathsep.join(own)) or shutil.which("rg")


async def run_ripgrep(argv: Sequence[str], cwd: str) -> RipgrepOutput:
    """Run it. Raises `ToolError` with its own words where it fails, ``OSError``."""
    process = await asyncio.create_subprocess_exec(
        *argv,
        cwd=cwd,
        env={name: os.environ[name] for name in INHERITED if name in os.environ},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
        limit=_PIECE,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    _limit(process.pid)
    errors = asyncio.create_task(_head(process.stderr))
    try:
        output, why = await _collect(process.stdout)
        if not why:
            await process.wait()
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
        said = await errors
    if process.returncode == 2 and not output:
        raise ToolError(_complaint(said))
    return RipgrepOutput(output, why or (TOO_BIG if process.returncode == -signal.SIGABRT else ""))


def _limit(pid: int) -> None:
    """Let a process have only so much memory, where the system can do that."""
    with contextlib.suppress(ImportError, AttributeError, OSError, ValueError):
        import resource

        resource.prlimit(pid, resource.RLIMIT_DATA, (_MEMORY, _MEMORY))


async def _collect(stream: asyncio.StreamReader) -> tuple[bytes, str]:
    """What it prints, as much as is kept of it, and why not all."""
    pieces: list[bytes] = []
    size = 0
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(PATIENCE):
            while size <= MOST:
                piece = await stream.read(_PIECE)
                if not piece:
                    return b"".join(pieces), ""
                pieces.append(piece)
                size += len(piece)
            return b"".join(pieces), TOO_MUCH
    return b"".join(pieces), TOO_LONG


async def _head(stream: asyncio.StreamReader) -> bytes:
    """The beginning of what it complains about; the rest is read and forgotten."""
    kept = b""
    while piece := await stream.read(_PIECE):
        kept = (kept + piece)[:_PIECE]
    return kept


def _complaint(said: bytes) -> str:
    text = said.decode("utf-8", "replace").strip()
    return text.removeprefix("rg: ")[:2000] or "The search failed."


@contextlib.contextmanager
def only_glob(glob: str, *, by_type: bool = True) -> Generator[list[str]]:
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


def common_options() -> list[str]:
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


def listing_options() -> list[str]:
    """Options that name files instead of searching in them."""
    return [*common_options(), "--files"]


def search_options() -> list[str]:
    """Options of a search in files. One larger than `LARGEST` must be named itself for that."""
    return [*common_options(), "--max-filesize", LARGEST]
