"""A program run to its end: how it ended, and what it has printed."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence

from crow.core.support.frozen import frozen
from crow.process.child import LAST, ChildProcess


@frozen
class Finished:
    """A program that has ended. ``code`` is its exit status, or minus the signal that ended it."""

    code: int
    out: bytes
    err: bytes

    @property
    def complaint(self) -> str:
        """Why it failed: the last line of its errors, else of all that it printed."""
        lines = (self.err.strip() or self.out.strip()).decode(errors="replace").splitlines()
        return lines[-1] if lines else "it said nothing"


class _Collecting(ChildProcess):
    def __init__(self) -> None:
        super().__init__()
        self.printed = {1: bytearray(), 2: bytearray()}

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        self.printed[fd] += data


async def run(
    argv: Sequence[str],
    *,
    cwd: str | os.PathLike[str] = ".",
    env: Mapping[str, str] | None = None,
    stdin: bytes = b"",
    timeout: float | None = None,
) -> Finished:
    """Run a program, which reads ``stdin``, to its end; ``timeout`` seconds at most.

    Whoever is cancelled, or waits no longer, leaves nothing of it behind. Raises ``OSError`` where
    it cannot be started, ``ValueError`` for an impossible argument, ``TimeoutError``.
    """
    program = _Collecting()
    reads = asyncio.subprocess.PIPE if stdin else asyncio.subprocess.DEVNULL
    await program.start(argv, os.fspath(cwd), os.environ if env is None else env, stdin=reads)
    try:
        async with asyncio.timeout(timeout):
            if stdin:
                program.send(stdin)
                program.end_input()
            await program.exited.wait()
        await program.settle(LAST)
    except BaseException:
        await program.end()
        raise
    program.close()
    return Finished(program.code or 0, bytes(program.printed[1]), bytes(program.printed[2]))
