"""A child process by itself: who reads slowly holds it back."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import cast

from crow.process import ChildProcess


class Patient(ChildProcess):
    """Reads its standard output only once it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.heard = {1: b"", 2: b""}
        self.complained = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        pipe = cast("asyncio.SubprocessTransport", transport).get_pipe_transport(1)
        self.output = cast("asyncio.ReadTransport", pipe)
        self.output.pause_reading()

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        self.heard[fd] += data
        if fd == 2:
            self.complained.set()


async def test_who_pauses_a_pipe_reads_nothing_of_it_until_it_is_resumed(tmp_path: Path) -> None:
    child = Patient()
    await child.start(["sh", "-c", "echo out; echo err >&2"], str(tmp_path), os.environ)
    await child.exited.wait()
    await child.complained.wait()
    assert child.heard == {1: b"", 2: b"err\n"}
    assert not child.silent.is_set()
    child.output.resume_reading()
    await child.silent.wait()
    assert child.heard[1] == b"out\n"
    assert child.output.is_closing()
    child.close()
